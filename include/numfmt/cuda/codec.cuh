// SPDX-License-Identifier: MIT
// Bulk element-wise encode and decode on the device: arrays of float, bf16 or fp16 to and from the codes of any format,
// bit for bit as the host's encode() and decode(). Memory-bound: one 16-byte access per thread where the addresses are
// aligned, single elements where they are not.
#pragma once

#include "../block/packing.hpp"
#include "../core/philox.hpp"
#include "convert.cuh"
#include "launch.hpp"

namespace numfmt::cuda {

/// Options of a bulk encode: the element options, and for stochastic rounding the Philox key and what is added to the
/// element index (element i draws random_word(seed, offset + i)).
struct codec_options {
    encode_options element{};
    uint64_t seed = 0;
    uint64_t offset = 0;
};

namespace detail {

inline constexpr int block_threads = 256;

/// True where `o` is what the conversion instructions and encode4/encode8 do for formats of at most eight bits, and the
/// 16-bit conversions for bf16 and fp16.
template <class Format> constexpr bool is_default(const encode_options& o) noexcept {
    constexpr overflow natural = Format::spec.bits() <= 8 ? overflow::saturate : overflow::to_nonfinite;
    return (o.overflow == overflow::by_format || o.overflow == natural) && o.nan == nan_mode::canonical &&
           !o.drop_negative_zero;
}

template <class T> inline constexpr bool is_float_v = numfmt::detail::is_same_v<T, float>;
template <class T> inline constexpr bool is_tensor_v = numfmt::detail::is_one_of_v<T, float, bf16, fp16>;

// Plain accesses: on an H200 the streaming hints cost up to 8 % of a cast's bandwidth.
template <class T> NUMFMT_DEVICE T load_vector(const T* p) { return *p; }
template <class T> NUMFMT_DEVICE void store_vector(T* p, T v) { *p = v; }
// Written out, because nvcc 13.0 splits a uint4 and does not always put it together again: four stores of 4 bytes, with
// others between them, cost half the bandwidth. Nothing of what a kernel writes is read again by it.
NUMFMT_DEVICE void store_vector(::uint4* p, ::uint4 v) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w));
}
NUMFMT_DEVICE void store_vector(::uint2* p, ::uint2 v) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "r"(v.x), "r"(v.y));
}

/// N elements of a tensor type in registers, as they lie in memory.
template <class T, int N> using chunk = words<N* static_cast<int>(sizeof(T)) / 4>;

/// Loads N elements from p: all of them with accesses of at most 16 bytes if `whole`, else the first n, the rest zero.
template <class T, int N> NUMFMT_DEVICE chunk<T, N> load_chunk(const T* p, int n, bool whole) {
    chunk<T, N> r{};
    if (whole) {
        constexpr int count = N * static_cast<int>(sizeof(T)) / 4;
        if constexpr (count % 4 == 0) {
#pragma unroll
            for (int i = 0; i < count / 4; ++i) {
                const ::uint4 v = load_vector(reinterpret_cast<const ::uint4*>(p) + i);
                r[4 * i] = v.x, r[4 * i + 1] = v.y, r[4 * i + 2] = v.z, r[4 * i + 3] = v.w;
            }
        } else {
            static_assert(count == 2);
            const ::uint2 v = load_vector(reinterpret_cast<const ::uint2*>(p));
            r[0] = v.x, r[1] = v.y;
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (i >= n) break;
            if constexpr (sizeof(T) == 4)
                r[i] = reg::as_bits(p[i]);
            else
                r[i / 2] |= uint32_t{p[i].bits()} << (i % 2 * 16);
        }
    }
    return r;
}

/// Stores N elements at p: all if `whole`, else the first n.
template <class T, int N> NUMFMT_DEVICE void store_chunk(T* p, const chunk<T, N>& r, int n, bool whole) {
    if (whole) {
        constexpr int count = N * static_cast<int>(sizeof(T)) / 4;
        static_assert(count % 4 == 0 || count == 2);
        if constexpr (count % 4 == 0) {
#pragma unroll
            for (int i = 0; i < count / 4; ++i)
                store_vector(reinterpret_cast<::uint4*>(p) + i,
                             ::uint4{r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]});
        } else {
            store_vector(reinterpret_cast<::uint2*>(p), ::uint2{r[0], r[1]});
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (i >= n) break;
            if constexpr (sizeof(T) == 4)
                p[i] = reg::as_float(r[i]);
            else
                p[i] = T::from_bits(static_cast<typename T::storage>(r[i / 2] >> (i % 2 * 16)));
        }
    }
}

/// The numbers of a chunk as floats, exact. The conversion instruction of fp16 drops the sign of NaN, which only other
/// options than the default ones keep: KeepNan decodes by integers.
template <class T, int N, bool KeepNan = false> NUMFMT_DEVICE void chunk_to_float(const chunk<T, N>& r, float (&x)[N]) {
    if constexpr (is_float_v<T>) {
#pragma unroll
        for (int i = 0; i < N; ++i) x[i] = reg::as_float(r[i]);
    } else if constexpr (KeepNan && numfmt::detail::is_same_v<T, fp16>) {
#pragma unroll
        for (int i = 0; i < N; ++i) x[i] = decode<fp16>(static_cast<uint16_t>(r[i / 2] >> (i % 2 * 16)));
    } else {
        to_float<T, N / 2>(r, x);
    }
}
template <class T, int N> NUMFMT_DEVICE chunk<T, N> chunk_from_float(const float (&x)[N]) {
    if constexpr (is_float_v<T>) {
        chunk<T, N> r;
#pragma unroll
        for (int i = 0; i < N; ++i) r[i] = reg::as_bits(x[i]);
        return r;
    } else {
        return from_float<T, N / 2>(x);
    }
}

// ---- packed codes: N codes of Bits bits, the little-endian bit stream of the memory layout --------------------------

template <int Bits, int N> inline constexpr int packed_words = (Bits * N + 31) / 32;
template <int Bits, int N> using packed = words<packed_words<Bits, N>>;
/// Bytes of the first n of N codes.
template <int Bits> NUMFMT_DEVICE int packed_bytes(int n) { return (n * Bits + 7) / 8; }

/// Alignment in bytes that lets N codes be stored and loaded whole.
template <int Bits, int N>
inline constexpr int packed_alignment = Bits != 6 ? Bits * N / 8
                                        : N == 16 ? 16
                                        : N == 8  ? 8
                                                  : 4;

/// Packs codes that are given one by one.
template <int Bits, int N, class Code> NUMFMT_DEVICE packed<Bits, N> pack_codes(const Code (&codes)[N]) {
    packed<Bits, N> r{};
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const int bit = i * Bits;
        r[bit / 32] |= uint32_t{codes[i]} << (bit % 32);
        if (bit % 32 + Bits > 32) r[bit / 32 + 1] |= uint32_t{codes[i]} >> (32 - bit % 32);
    }
    return r;
}
template <int Bits, int N> NUMFMT_DEVICE uint32_t packed_code(const packed<Bits, N>& r, int i) {
    const int bit = i * Bits;
    uint32_t c = r[bit / 32] >> (bit % 32);
    if (bit % 32 + Bits > 32) c |= r[bit / 32 + 1] << (32 - bit % 32);
    return c & ((1u << Bits) - 1u);
}
/// Clears the codes from n on.
template <int Bits, int N> NUMFMT_DEVICE void clear_from(packed<Bits, N>& r, int n) {
#pragma unroll
    for (int i = 0; i < packed_words<Bits, N>; ++i) {
        const int left = n * Bits - 32 * i;
        if (left < 32) r[i] &= left <= 0 ? 0u : (1u << left) - 1u;
    }
}

/// Stores the first n of N packed codes byte by byte.
template <int Bits, int N> NUMFMT_DEVICE void store_bytes(uint8_t* p, const packed<Bits, N>& r, int n) {
    const int bytes = packed_bytes<Bits>(n);
#pragma unroll
    for (int i = 0; i < Bits * N / 8; ++i)
        if (i < bytes) p[i] = static_cast<uint8_t>(r[i / 4] >> (i % 4 * 8));
}
template <int Bits, int N> NUMFMT_DEVICE packed<Bits, N> load_bytes(const uint8_t* p, int n) {
    const int bytes = packed_bytes<Bits>(n);
    packed<Bits, N> r{};
#pragma unroll
    for (int i = 0; i < Bits * N / 8; ++i)
        if (i < bytes) r[i / 4] |= uint32_t{p[i]} << (i % 4 * 8);
    return r;
}

/// Stores N packed codes of a thread, whole; p aligned to packed_alignment. For 6-bit codes (N = 8 or 16) every aligned
/// four lanes of the warp must come here together with four consecutive chunks: three of them write 8 or 16 bytes each.
template <int Bits, int N> NUMFMT_DEVICE void store_packed(uint8_t* p, const packed<Bits, N>& r) {
    if constexpr (Bits == 6) {
        static_assert(N == 8 || N == 16);
        const int lane = static_cast<int>(threadIdx.x) % 4;
        const unsigned mask = 0xFu << (threadIdx.x % 32 / 4 * 4);
        packed<Bits, N> next;
#pragma unroll
        for (int i = 0; i < packed_words<Bits, N>; ++i) next[i] = __shfl_down_sync(mask, r[i], 1, 4);
        if constexpr (N == 8) {
            // Lane j writes bytes 8j .. 8j + 7 of the 24: its own 48 bits from 16j on, then the next lane's.
            ::uint2 v;
            v.x = lane == 2 ? (r[1] & 0xFFFFu) | next[0] << 16
                            : __funnelshift_r(r[0], r[1], 16 * static_cast<unsigned>(lane));
            v.y = lane == 0 ? r[1] | next[0] << 16 : lane == 1 ? next[0] : __funnelshift_r(next[0], next[1], 16);
            if (lane < 3) store_vector(reinterpret_cast<::uint2*>(p + 2 * lane), v);
        } else {
            // Lane j writes bytes 16j .. 16j + 15 of the 48: its own three words from word j on, then the next lane's.
            ::uint4 v;
            v.x = lane == 0 ? r[0] : lane == 1 ? r[1] : r[2];
            v.y = lane == 0 ? r[1] : lane == 1 ? r[2] : next[0];
            v.z = lane == 0 ? r[2] : lane == 1 ? next[0] : next[1];
            v.w = lane == 0 ? next[0] : lane == 1 ? next[1] : next[2];
            if (lane < 3) store_vector(reinterpret_cast<::uint4*>(p + 4 * lane), v);
        }
    } else if constexpr (Bits * N == 128) {
        store_vector(reinterpret_cast<::uint4*>(p), ::uint4{r[0], r[1], r[2], r[3]});
    } else if constexpr (Bits * N == 64) {
        store_vector(reinterpret_cast<::uint2*>(p), ::uint2{r[0], r[1]});
    } else if constexpr (Bits * N == 32) {
        store_vector(reinterpret_cast<uint32_t*>(p), r[0]);
    } else {
        static_assert(Bits * N == 16);
        store_vector(reinterpret_cast<uint16_t*>(p), static_cast<uint16_t>(r[0]));
    }
}

/// Loads N packed codes, whole. For 6-bit codes `index` is the chunk's number in its row and the row is aligned to 4
/// bytes: two word loads, the second of which stays inside the aligned group of four chunks.
template <int Bits, int N> NUMFMT_DEVICE packed<Bits, N> load_packed(const uint8_t* p, uint32_t index) {
    packed<Bits, N> r{};
    if constexpr (Bits == 6) {
        constexpr unsigned bytes = Bits * N / 8;
        const unsigned lane = index % 4, skip = lane * bytes % 4;
        const uint32_t* const word = reinterpret_cast<const uint32_t*>(p - skip);
        const uint32_t first = load_vector(word);
        const uint32_t second = skip + bytes > 4 ? load_vector(word + 1) : 0u;
        r[0] = __funnelshift_r(first, second, 8 * skip);
        if constexpr (N == 8) r[1] = second >> (8 * skip) & 0xFFFFu;
    } else if constexpr (Bits * N == 128) {
        const ::uint4 v = load_vector(reinterpret_cast<const ::uint4*>(p));
        r[0] = v.x, r[1] = v.y, r[2] = v.z, r[3] = v.w;
    } else if constexpr (Bits * N == 64) {
        const ::uint2 v = load_vector(reinterpret_cast<const ::uint2*>(p));
        r[0] = v.x, r[1] = v.y;
    } else if constexpr (Bits * N == 32) {
        r[0] = load_vector(reinterpret_cast<const uint32_t*>(p));
    } else {
        static_assert(Bits * N == 16);
        r[0] = load_vector(reinterpret_cast<const uint16_t*>(p));
    }
    return r;
}

// ---- a chunk through the codec --------------------------------------------------------------------------------------

/// Bits a code of the format takes in memory: 7-bit ue4m3 fills its byte.
template <class Format>
inline constexpr int stored_bits = Format::spec.bits() > 8   ? 16
                                   : Format::spec.bits() > 6 ? 8
                                                             : Format::spec.bits();

/// N floats to packed codes: nearest even with default options.
template <class Format, int N> NUMFMT_DEVICE packed<stored_bits<Format>, N> encode_fast(const float (&x)[N]) {
    constexpr int bits = stored_bits<Format>;
    packed<bits, N> r{};
    if constexpr (bits == 16) {
        r = from_float<Format, N / 2>(x);
    } else if constexpr (bits == 4) {
#pragma unroll
        for (int i = 0; i < N / 8; ++i) {
            float part[8];
#pragma unroll
            for (int k = 0; k < 8; ++k) part[k] = x[8 * i + k];
            r[i] = encode8_e2m1(part);
        }
    } else {
#pragma unroll
        for (int i = 0; i < N / 4; ++i) {
            const float part[4] = {x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]};
            const uint32_t c = encode4<Format>(part);
            if constexpr (bits == 8) {
                r[i] = c;
            } else {
                const uint32_t four = pack6(c);
                const int word = 24 * i / 32, shift = 24 * i % 32;
                r[word] |= four << shift;
                if (shift > 8) r[word + 1] |= four >> (32 - shift);
            }
        }
    }
    return r;
}

/// N packed codes to floats, exact.
template <class Format, int N>
NUMFMT_DEVICE void decode_packed(const packed<stored_bits<Format>, N>& r, float (&y)[N]) {
    constexpr int bits = stored_bits<Format>;
    if constexpr (bits == 16) {
        to_float<Format, N / 2>(r, y);
    } else if constexpr (bits == 4) {
        const words<4> h = decode8<fp4_e2m1, fp16>(r[0]);
        float all[8];
        to_float<fp16>(h, all);
#pragma unroll
        for (int i = 0; i < N; ++i) y[i] = all[i];
    } else {
#pragma unroll
        for (int i = 0; i < N / 4; ++i) {
            uint32_t c = 0;
            if constexpr (bits == 8)
                c = r[i];
            else
                c = unpack6(i == 0 ? r[0] : __funnelshift_r(r[0], r[packed_words<bits, N> - 1], 24));
            float part[4];
            decode4<Format>(c, part);
            y[4 * i] = part[0], y[4 * i + 1] = part[1], y[4 * i + 2] = part[2], y[4 * i + 3] = part[3];
        }
    }
}

/// Elements a thread handles in one go: 16 bytes of the wider side, or eight elements where codes are narrower.
template <class Format, class Source>
inline constexpr int encode_width = is_float_v<Source> && stored_bits<Format> >= 8 ? 4 : 8;
template <class Target> inline constexpr int decode_width = is_float_v<Target> ? 4 : 8;

/// Chunks per thread, a block apart.
inline constexpr int codec_chunks = 2;

template <class Format, rounding R, class Source, bool Fast>
__global__ __launch_bounds__(block_threads) void encode_kernel(const Source* NUMFMT_RESTRICT x, int64_t n,
                                                               uint8_t* NUMFMT_RESTRICT codes, codec_options o,
                                                               bool aligned) {
    constexpr int width = encode_width<Format, Source>, bits = stored_bits<Format>;
    const int64_t tile = static_cast<int64_t>(blockIdx.x) * (block_threads * codec_chunks * width);
    const int64_t left = n - tile;
    x += tile;
    codes += tile * bits / 8;
    chunk<Source, width> raw[codec_chunks];
#pragma unroll
    for (int k = 0; k < codec_chunks; ++k) {
        const int e = (k * block_threads + static_cast<int>(threadIdx.x)) * width;
        // Groups of four threads store 6-bit codes together, so they take the whole path together.
        raw[k] = load_chunk<Source, width>(x + e, static_cast<int>(min(left - e, int64_t{width})),
                                           aligned && left >= (e / (4 * width) + 1) * (4 * width));
    }
#pragma unroll
    for (int k = 0; k < codec_chunks; ++k) {
        const int e = (k * block_threads + static_cast<int>(threadIdx.x)) * width;
        float v[width];
        chunk_to_float<Source, width, !Fast>(raw[k], v);
        packed<bits, width> r{};
        if constexpr (!Fast) {
            const auto plan = numfmt::detail::plan_encode<Format>(o.element);
            typename Format::storage c[width];
            numfmt::philox_block draws{};
#pragma unroll
            for (int i = 0; i < width; ++i) {
                uint32_t draw = 0;
                if constexpr (R == rounding::stochastic) {
                    const uint64_t index = o.offset + static_cast<uint64_t>(tile + e + i);
                    if (i == 0 || index % 4 == 0) draws = random_words(o.seed, index >> 2);
                    const uint32_t which = static_cast<uint32_t>(index & 3u);
                    draw = which == 0   ? draws.word[0]
                           : which == 1 ? draws.word[1]
                           : which == 2 ? draws.word[2]
                                        : draws.word[3];
                }
                c[i] = numfmt::detail::encode_bits<Format, R, false>(reg::as_bits(v[i]), 0, plan, draw);
            }
            r = pack_codes<bits, width>(c);
        } else if constexpr (bits == 4 && !is_float_v<Source>) {
            r[0] = encode8_e2m1<Source>(raw[k]);
        } else if constexpr (bits == 8 && !is_float_v<Source>) {
#pragma unroll
            for (int i = 0; i < width / 4; ++i)
                r[i] = encode4<Format, Source>(words<2>{{raw[k][2 * i], raw[k][2 * i + 1]}});
        } else {
            r = encode_fast<Format, width>(v);
        }
        const int in_range = static_cast<int>(min(left - e, int64_t{width}));
        if (aligned && left >= (e / (4 * width) + 1) * (4 * width)) {
            store_packed<bits, width>(codes + e * bits / 8, r);
        } else if (in_range > 0) {
            clear_from<bits, width>(r, in_range);
            store_bytes<bits, width>(codes + e * bits / 8, r, in_range);
        }
    }
}

template <class Format, class Target>
__global__ __launch_bounds__(block_threads) void decode_kernel(const uint8_t* NUMFMT_RESTRICT codes, int64_t n,
                                                               Target* NUMFMT_RESTRICT y, bool aligned) {
    constexpr int width = decode_width<Target>, bits = stored_bits<Format>;
    const int64_t tile = static_cast<int64_t>(blockIdx.x) * (block_threads * codec_chunks * width);
    const int64_t left = n - tile;
    codes += tile * bits / 8;
    y += tile;
    packed<bits, width> r[codec_chunks];
#pragma unroll
    for (int k = 0; k < codec_chunks; ++k) {
        const int e = (k * block_threads + static_cast<int>(threadIdx.x)) * width;
        const uint8_t* const p = codes + e * bits / 8;
        if (aligned && left >= e + width)
            r[k] = load_packed<bits, width>(p, threadIdx.x);
        else if (left > e)
            r[k] = load_bytes<bits, width>(p, static_cast<int>(min(left - e, int64_t{width})));
        else
            r[k] = {};
    }
#pragma unroll
    for (int k = 0; k < codec_chunks; ++k) {
        const int e = (k * block_threads + static_cast<int>(threadIdx.x)) * width;
        const int in_range = static_cast<int>(min(left - e, int64_t{width}));
        if (in_range <= 0) break;
        chunk<Target, width> out;
        if constexpr (bits == 8 && !is_float_v<Target>) {
#pragma unroll
            for (int i = 0; i < width / 4; ++i) {
                const words<2> h = decode4<Format, Target>(r[k][i]);
                out[2 * i] = h[0], out[2 * i + 1] = h[1];
            }
        } else if constexpr (bits == 4 && !is_float_v<Target>) {
            out = decode8<fp4_e2m1, Target>(r[k][0]);
        } else {
            float v[width];
            decode_packed<Format, width>(r[k], v);
            out = chunk_from_float<Target, width>(v);
        }
        store_chunk<Target, width>(y + e, out, in_range, aligned && in_range == width);
    }
}

inline status check_count(int64_t n) noexcept {
    if (n < 0) return {status_code::negative_size, "n", n, 0};
    if (n > numfmt::detail::int64_max / 16) return {status_code::size_overflow, "n", n, numfmt::detail::int64_max / 16};
    return {};
}

}  // namespace detail

/// codes of x[i] for 0 <= i < n, as numfmt::encode<Format, R>(x[i], options.element, draw): bf16 and fp16 as 16-bit
/// numbers, eight-bit formats and e8m0 one byte each, 6- and 4-bit formats packed as one row of the canonical layout
/// (block/packing.hpp; the unused bits of the last byte are zero). x: device pointer to float, bf16 or fp16; codes:
/// device pointer to packed_row_bytes(n, bits) bytes (16-bit formats: aligned to 2). The arrays must not overlap.
/// Errors: negative_size or size_overflow (n), null_pointer or misaligned (x, codes).
template <float_format Format, rounding R = default_rounding_v<Format>, class Source>
launch_result encode(const Source* x, int64_t n, void* codes, const codec_options& options = {},
                     cudaStream_t stream = nullptr) noexcept {
    using namespace detail;
    static_assert(is_tensor_v<Source>, "numfmt::cuda::encode: the input must be float, bf16 or fp16");
    if (const status s = check_count(n); !s.ok()) return {s, cudaSuccess};
    if (n == 0) return {};
    if (const status s = check_pointer(x, "x", alignof(Source)); !s.ok()) return {s, cudaSuccess};
    if (const status s = check_pointer(codes, "codes", alignof(typename Format::storage)); !s.ok())
        return {s, cudaSuccess};
    constexpr int width = encode_width<Format, Source>;
    const int64_t blocks = numfmt::detail::ceil_div(n, block_threads * codec_chunks * width);
    const bool aligned = is_aligned(x, 16) && is_aligned(codes, packed_alignment<stored_bits<Format>, width>);
    uint8_t* const bytes = static_cast<uint8_t*>(codes);
    if constexpr (R == default_rounding_v<Format>) {
        if (is_default<Format>(options.element))
            return launch(&encode_kernel<Format, R, Source, true>, blocks, block_threads, stream, x, n, bytes, options,
                          aligned);
    }
    return launch(&encode_kernel<Format, R, Source, false>, blocks, block_threads, stream, x, n, bytes, options,
                  aligned);
}

/// y[i] = the value of code i for 0 <= i < n: float exactly, bf16 and fp16 by one more nearest-even rounding. Layout,
/// pointers and errors as for encode.
template <float_format Format, class Target>
launch_result decode(const void* codes, int64_t n, Target* y, cudaStream_t stream = nullptr) noexcept {
    using namespace detail;
    static_assert(is_tensor_v<Target>, "numfmt::cuda::decode: the output must be float, bf16 or fp16");
    if (const status s = check_count(n); !s.ok()) return {s, cudaSuccess};
    if (n == 0) return {};
    if (const status s = check_pointer(codes, "codes", alignof(typename Format::storage)); !s.ok())
        return {s, cudaSuccess};
    if (const status s = check_pointer(y, "y", alignof(Target)); !s.ok()) return {s, cudaSuccess};
    constexpr int width = decode_width<Target>;
    const int64_t blocks = numfmt::detail::ceil_div(n, block_threads * codec_chunks * width);
    const bool aligned = is_aligned(y, 16) && is_aligned(codes, packed_alignment<stored_bits<Format>, width>);
    return launch(&decode_kernel<Format, Target>, blocks, block_threads, stream, static_cast<const uint8_t*>(codes), n,
                  y, aligned);
}

}  // namespace numfmt::cuda
