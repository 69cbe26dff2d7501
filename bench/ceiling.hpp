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

// `Per` blocks of the longer stream for each of the shorter, a number known to the compiler where it is below 9: a loop
// of unknown length inside takes longer than its loads and stores. The quotient's remainder is spread out too: one
// block more whenever `error` has come round.
template <int Bytes, int Per>
inline __attribute__((always_inline)) void move_ratio(const unsigned char* in, std::int64_t reads, unsigned char* out,
                                                      std::int64_t writes, std::int64_t per) {
    using block = typename block_of<Bytes>::type;
    if constexpr (Per != 0) per = Per;
    block value{}, next{};
    std::int64_t error = 0;
    if (reads >= writes) {
        const std::int64_t rest = reads - per * writes;
        for (std::int64_t w = 0; w < writes; ++w, out += Bytes) {
            __builtin_memcpy(&value, in, Bytes);
#pragma GCC unroll 8
            for (std::int64_t k = 1; k < per; ++k) {
                __builtin_memcpy(&next, in + k * Bytes, Bytes);
                value ^= next;
            }
            in += per * Bytes;
            if ((error += rest) >= writes) {
                error -= writes;
                __builtin_memcpy(&next, in, Bytes);
                value ^= next;
                in += Bytes;
            }
            __builtin_memcpy(out, &value, Bytes);
        }
    } else {
        const std::int64_t rest = writes - per * reads;
        for (std::int64_t r = 0; r < reads; ++r, in += Bytes) {
            __builtin_memcpy(&value, in, Bytes);
#pragma GCC unroll 8
            for (std::int64_t k = 0; k < per; ++k) __builtin_memcpy(out + k * Bytes, &value, Bytes);
            out += per * Bytes;
            if ((error += rest) >= reads) {
                error -= reads;
                __builtin_memcpy(out, &value, Bytes);
                out += Bytes;
            }
        }
    }
}

template <int Bytes>
inline __attribute__((always_inline)) void move_blocks(const unsigned char* in, std::int64_t in_bytes,
                                                       unsigned char* out, std::int64_t out_bytes) {
    const std::int64_t reads = in_bytes / Bytes, writes = out_bytes / Bytes;
    if (reads == 0 || writes == 0) return;
    const std::int64_t per = reads >= writes ? reads / writes : writes / reads;
    switch (per) {
        case 1:
            return move_ratio<Bytes, 1>(in, reads, out, writes, per);
        case 2:
            return move_ratio<Bytes, 2>(in, reads, out, writes, per);
        case 3:
            return move_ratio<Bytes, 3>(in, reads, out, writes, per);
        case 4:
            return move_ratio<Bytes, 4>(in, reads, out, writes, per);
        case 5:
            return move_ratio<Bytes, 5>(in, reads, out, writes, per);
        case 6:
            return move_ratio<Bytes, 6>(in, reads, out, writes, per);
        case 7:
            return move_ratio<Bytes, 7>(in, reads, out, writes, per);
        case 8:
            return move_ratio<Bytes, 8>(in, reads, out, writes, per);
        default:
            return move_ratio<Bytes, 0>(in, reads, out, writes, per);
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
