// SPDX-License-Identifier: MIT
// The ceilings that benchmarks are held against, measured in the same run: a plain loop that moves the same number of
// bytes in and out, and nothing else.
#pragma once

#include <chrono>
#include <cstdint>

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

namespace detail {

// A vector type: gcc would otherwise take the block apart, word by word. Loaded and stored by memcpy: any alignment.
template <int Bytes> struct block_of {
    typedef std::uint64_t type __attribute__((vector_size(Bytes)));
};

template <int Bytes>
inline __attribute__((always_inline)) void move_blocks(const unsigned char* in, std::int64_t in_bytes,
                                                       unsigned char* out, std::int64_t out_bytes) {
    using block = typename block_of<Bytes>::type;
    const std::int64_t reads = in_bytes / Bytes, writes = out_bytes / Bytes;
    block value{}, next{};
    // The quotient's remainder is spread out too: one block more whenever `error` has come round.
    std::int64_t error = 0;
    if (reads >= writes) {
        const std::int64_t per = writes > 0 ? reads / writes : reads, rest = writes > 0 ? reads % writes : 0;
        for (std::int64_t w = 0; w < writes; ++w, out += Bytes) {
            std::int64_t more = per;
            if ((error += rest) >= writes) error -= writes, ++more;
            __builtin_memcpy(&value, in, Bytes);
            for (std::int64_t k = 1; k < more; ++k) {
                __builtin_memcpy(&next, in + k * Bytes, Bytes);
                value ^= next;
            }
            in += more * Bytes;
            __builtin_memcpy(out, &value, Bytes);
        }
    } else {
        const std::int64_t per = writes / reads, rest = writes % reads;
        for (std::int64_t r = 0; r < reads; ++r, in += Bytes) {
            std::int64_t more = per;
            if ((error += rest) >= reads) error -= reads, ++more;
            __builtin_memcpy(&value, in, Bytes);
            for (std::int64_t k = 0; k < more; ++k) __builtin_memcpy(out + k * Bytes, &value, Bytes);
            out += more * Bytes;
        }
    }
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) inline void move_avx512(const unsigned char* in, std::int64_t in_bytes,
                                                           unsigned char* out, std::int64_t out_bytes) {
    move_blocks<64>(in, in_bytes, out, out_bytes);
}
__attribute__((target("avx2"))) inline void move_avx2(const unsigned char* in, std::int64_t in_bytes,
                                                      unsigned char* out, std::int64_t out_bytes) {
    move_blocks<32>(in, in_bytes, out, out_bytes);
}
#endif

}  // namespace detail

/// Reads `in_bytes` and writes `out_bytes`, spreading the longer stream evenly over the shorter, with the widest
/// vectors of the machine. Neither the compiler nor a reviewer can leave anything out: what is written follows from all
/// that is read.
inline void move_bytes(const unsigned char* in, std::int64_t in_bytes, unsigned char* out, std::int64_t out_bytes) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return detail::move_avx512(in, in_bytes, out, out_bytes);
    if (__builtin_cpu_supports("avx2")) return detail::move_avx2(in, in_bytes, out, out_bytes);
#endif
    detail::move_blocks<16>(in, in_bytes, out, out_bytes);
}

}  // namespace numfmt::bench
