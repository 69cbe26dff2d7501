// SPDX-License-Identifier: MIT
// The ceilings that benchmarks are held against, measured in the same run: a plain loop that moves the same number of
// bytes in and out, and nothing else.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>

namespace numfmt::bench {

/// Seconds of the fastest of `repeats` calls of f.
template <class F> double fastest(int repeats, F&& f) {
    double best = 1e30;
    for (int r = 0; r < repeats; ++r) {
        const auto t0 = std::chrono::steady_clock::now();
        f();
        const std::chrono::duration<double> t = std::chrono::steady_clock::now() - t0;
        best = t.count() < best ? t.count() : best;
    }
    return best;
}

/// Reads `in_bytes` and writes `out_bytes`, 32 bytes at a time, spreading the longer stream evenly over the shorter.
/// Neither the compiler nor a reviewer can leave anything out: the bytes written are the bytes read.
inline void move_bytes(const unsigned char* in, std::int64_t in_bytes, unsigned char* out, std::int64_t out_bytes) {
    constexpr std::int64_t line = 32;
    // A vector type: gcc would otherwise take the line apart, word by word.
    typedef std::uint64_t block __attribute__((vector_size(32)));
    const std::int64_t reads = in_bytes / line, writes = out_bytes / line;
    block value{};
    if (reads >= writes) {
        const std::int64_t per = writes > 0 ? reads / writes : reads;
        std::int64_t r = 0;
        for (std::int64_t w = 0; w < writes; ++w) {
            for (std::int64_t k = 0; k < per; ++k, ++r) {
                block b;
                std::memcpy(&b, in + r * line, line);
                value ^= b;
            }
            std::memcpy(out + w * line, &value, line);
        }
    } else {
        const std::int64_t per = writes / reads;
        std::int64_t w = 0;
        for (std::int64_t r = 0; r < reads; ++r) {
            std::memcpy(&value, in + r * line, line);
            for (std::int64_t k = 0; k < per; ++k, ++w) std::memcpy(out + w * line, &value, line);
        }
    }
}

}  // namespace numfmt::bench
