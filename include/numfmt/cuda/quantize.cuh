// SPDX-License-Identifier: MIT
// Quantize and dequantize of every scheme on the device, bit for bit as block/quantize.hpp: amax, scale, encode and
// pack in one pass over the input (per-tensor scales and NVFP4 take a second one). What a scale is and the order of the
// operations come from block/scale.hpp; this file only moves data and encodes fast.
#pragma once

#include "../block/quantize.hpp"
#include "../fp4.hpp"
#include "codec.cuh"

namespace numfmt::cuda {

/// Device memory that a function may use while it runs; the caller keeps it alive and unshared until then.
struct workspace {
    void* data = nullptr;
    size_t bytes = 0;
};

namespace detail {

/// What the first pass over a tensor leaves for the second.
struct alignas(16) tensor_state {
    uint32_t any, amax;    // magnitude bits: of all elements, of the finite ones
    uint32_t blocks_done;  // cleared before the first pass, with the two above
    uint32_t unused;
    numfmt::detail::tensor_scale scale;  // two-level schemes
};

template <class S> inline constexpr bool is_whole_tensor = S::block.rows == whole && S::block.cols == whole;
template <class S> inline constexpr bool needs_state = S::has_tensor_scale || is_whole_tensor<S>;
template <class S> inline constexpr bool is_integer = integer_format<typename S::element>;
template <class S> inline constexpr bool is_int4 = is_integer<S> && scheme_traits<S>::element_bits == 4;

/// n / d for the many n of a launch, by a multiplication where the sizes allow it.
struct divider {
    uint64_t d = 1, magic = 0;

    divider() = default;
    divider(int64_t divisor, int64_t largest) noexcept : d(static_cast<uint64_t>(divisor)) {
        // magic = floor(2^64 / d) + 1 is exact for n * d < 2^64.
        if (d > 1 && static_cast<uint64_t>(largest) < ~uint64_t{0} / d) magic = ~uint64_t{0} / d + 1;
    }
    NUMFMT_DEVICE uint64_t quotient(uint64_t n) const {
        if (magic != 0) return __umul64hi(n, magic);
        return d == 1 ? n : n / d;
    }
};

/// Elements of a group that lie together in one thread: two loads of 16 bytes from bf16 or fp16, so that a thread's
/// codes are 8 (4-bit), 12 (6-bit) or 16 bytes.
inline constexpr int run = 16;

/// Groups of 1 x C elements of T, a group handled by `lanes` threads with `runs` runs of 16 elements each.
template <class S, class T> struct group_shape {
    static constexpr int64_t sixteenths = is_whole_tensor<S> ? 4 : S::block.cols / run;
    static constexpr bool fits = is_whole_tensor<S> || (S::block.rows == 1 && S::block.cols % run == 0 &&
                                                        sixteenths <= 32 && (sixteenths & (sixteenths - 1)) == 0);
    // An int4 scale takes many instructions: more elements share one, as far as registers go.
    static constexpr int runs = !fits || !is_int4<S> || sixteenths < 2 ? 1 : is_float_v<T> || sixteenths < 8 ? 2 : 4;
    static constexpr int lanes = fits ? static_cast<int>(sixteenths) / runs : 1;
    static constexpr int64_t cols = fits ? sixteenths * run : run;
    static constexpr int per_block = block_threads / lanes;
};

using numfmt::detail::block_range;
using numfmt::detail::block_scale;

/// Folds N elements into a range. `raw` and `x` are the same numbers; the first n count (n may be negative or above N).
/// Do not clamp n first: for max(min(n, N), 0) == N ptxas 13.0.88 takes a predicate of VIMNMX.RELU that is wrong.
template <class S, class T, int N>
NUMFMT_DEVICE void extend_range(block_range& range, const chunk<T, N>& raw, const float (&x)[N], int n) {
    using namespace numfmt::detail;
    // Elements from n on are zero, which no largest magnitude minds; the extremes of an int4 group do.
    uint32_t any = 0;
    [[maybe_unused]] uint32_t low_pair = 0, high_pair = 0;
    if constexpr (is_float_v<T>) {
#pragma unroll
        for (int i = 0; i < N; ++i) any = max(any, raw[i] & f32_abs_mask);
    } else if constexpr (is_int4<S>) {
        low_pair = high_pair = raw[0];
#pragma unroll
        for (int i = 1; i < N / 2; ++i) {
            low_pair = reg::minimum_or_nan<T>(low_pair, raw[i]);
            high_pair = reg::maximum_or_nan<T>(high_pair, raw[i]);
        }
        const uint32_t pair = reg::maximum_u16x2(low_pair & 0x7FFF7FFFu, high_pair & 0x7FFF7FFFu);
        const uint32_t half = max(pair & 0xFFFFu, pair >> 16);
        any = is_same_v<T, bf16> ? half << 16 : reg::as_bits(reg::f16_low(half));
    } else {
        uint32_t pair = 0;
#pragma unroll
        for (int i = 0; i < N / 2; ++i) pair = reg::maximum_u16x2(pair, raw[i] & 0x7FFF7FFFu);
        const uint32_t half = max(pair & 0xFFFFu, pair >> 16);
        if constexpr (is_same_v<T, bf16>)
            any = half << 16;
        else
            any = reg::as_bits(reg::f16_low(half));
    }
    if (any < f32_infinity && (!is_int4<S> || n >= N)) {
        range.any = max(range.any, any);
        range.amax = max(range.amax, any);
        if constexpr (is_int4<S>) {
            float low = x[0], high = x[0];
            if constexpr (is_float_v<T>) {
#pragma unroll
                for (int i = 1; i < N; ++i) {
                    low = reg::minimum(low, x[i]);
                    high = reg::maximum(high, x[i]);
                }
            } else {
                float l[2], h[2];
                to_float<T, 1>(words<1>{{low_pair}}, l);
                to_float<T, 1>(words<1>{{high_pair}}, h);
                low = reg::minimum(l[0], l[1]);
                high = reg::maximum(h[0], h[1]);
            }
            range.low = min(range.low, order_key(reg::as_bits(low)));
            range.high = max(range.high, order_key(reg::as_bits(high)));
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (i < n) extend<S>(range, &x[i], 1);
    }
}

/// The range over `Lanes` neighbouring lanes, in all of them. Every lane of the warp calls it.
template <class S, int Lanes> NUMFMT_DEVICE void reduce_range(block_range& range) {
#pragma unroll
    for (int d = Lanes / 2; d > 0; d /= 2) range.any = max(range.any, __shfl_xor_sync(0xFFFFFFFFu, range.any, d));
    if (range.any < numfmt::detail::f32_infinity && Lanes > 1) range.amax = range.any;
    if (__any_sync(0xFFFFFFFFu, range.nonfinite())) {
        uint32_t amax = range.amax;
#pragma unroll
        for (int d = Lanes / 2; d > 0; d /= 2) amax = max(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, d));
        range.amax = amax;
    }
    if constexpr (is_int4<S>) {
#pragma unroll
        for (int d = Lanes / 2; d > 0; d /= 2) {
            range.low = min(range.low, __shfl_xor_sync(0xFFFFFFFFu, range.low, d));
            range.high = max(range.high, __shfl_xor_sync(0xFFFFFFFFu, range.high, d));
        }
    }
}

/// choose_scale with its bits, in fewer instructions where the block is ordinary.
template <class S>
NUMFMT_DEVICE block_scale<S> fast_scale(const block_range& range, numfmt::detail::tensor_scale tensor,
                                        const quantize_options& o) {
    using namespace numfmt::detail;
    const bool poisoned = range.nonfinite() && o.nonfinite == nonfinite::propagate;
    if constexpr (scheme_traits<S>::power_of_two_scale) {
        // Of a normal amax the exponent field and a carry into it are the whole rule.
        const uint32_t bits = reg::as_bits(larger(reg::as_float(range.amax), o.amax_floor));
        if (!poisoned && (bits >= f32_min_normal || bits == 0)) {
            const int field = static_cast<int>((bits + scale_addend<typename S::element>(o.scale_rule)) >> 23);
            block_scale<S> b;
            const int code = ::min(::max(field - S::element::spec.max_exponent(), 0), 254);
            b.stored = static_cast<uint8_t>(bits == 0 ? 0 : code);
            b.exponent = static_cast<int>(b.stored) - S::scale::spec.bias;
            return b;
        }
    }
#if __CUDA_ARCH__ >= 890
    if constexpr (S::has_tensor_scale && is_same_v<typename S::scale, fp8_ue4m3>) {
        if (!poisoned && o.nvfp4_order == nvfp4_order::transformer_engine) {
            constexpr float share = 1.0f / largest_element<typename S::element>();
            const float t = reg::multiply(reg::as_float(range.amax), reg::multiply(tensor.inverse, share));
            uint32_t code = reg::e4m3x2(t, 0.0f) & 0x7Fu;
            if (range.nonfinite() && code == 0) code = 1;
            block_scale<S> b;
            b.stored = static_cast<uint8_t>(code);
            b.value = reg::multiply(reg::f16_low(reg::e4m3x2_to_f16x2(code)), tensor.multiplier);
            b.inverse = reg::minimum(reg::reciprocal(b.value), largest_float);
            return b;
        }
    }
#endif
    return choose_scale<S>(range, tensor, o);
}

/// x / s for a finite x and many x of one s in 2^-100 .. 2^100, r = RN(1 / s): two corrections of x * r give the
/// correctly rounded quotient (Markstein, IBM J. Res. Dev. 34(1), 1990) wherever it is at least 2^-20 in magnitude;
/// below, the caller rounds it to 0 either way. With `Few` bits (x and s of at most 11 significant bits) a quotient is
/// a half-integer or at least 2^-13 of itself away from one: one correction makes the former exact, which is all that
/// rounding to an integer needs.
template <bool Few> NUMFMT_DEVICE float divide_by_common(float x, float s, float r) {
    float q = reg::multiply(x, r);
    q = reg::multiply_add(reg::multiply_add(-q, s, x), r, q);
    if constexpr (!Few) q = reg::multiply_add(reg::multiply_add(-q, s, x), r, q);
    return q;
}

/// The packed codes of N elements (8 or 16) under a scale.
template <class S, rounding R, bool Fast, class T, int N>
NUMFMT_DEVICE packed<scheme_traits<S>::element_bits, N> encode_group_chunk(const block_scale<S>& b, bool finite,
                                                                           const float (&x)[N],
                                                                           const quantize_options& o, uint64_t index) {
    using element = typename S::element;
    constexpr int bits = scheme_traits<S>::element_bits;
    constexpr bool power_of_two = scheme_traits<S>::power_of_two_scale;
    packed<bits, N> r{};
    if (b.poisoned) return r;
    if constexpr (Fast && !is_integer<S>) {
        float factor = 0;
        if constexpr (power_of_two)
            factor = e8m0_inverse(b.stored);
        else
            factor = b.inverse;
#if __CUDA_ARCH__ >= 890
        if constexpr (bits == 6 && power_of_two) {
            // The scaled numbers are below 2^(emax + 1): they overflow by rounding up to the code 20 or not at all.
            if (finite) {
                constexpr bool e2m3 = numfmt::detail::is_same_v<element, fp6_e2m3>;
                const float small = reg::multiply(
                    factor, numfmt::detail::exact_pow2(element::spec.bias - (e2m3 ? 7 : 15)));  // see encode4
#pragma unroll
                for (int i = 0; i < N / 4; ++i) {
                    float v[4];
#pragma unroll
                    for (int k = 0; k < 4; ++k) v[k] = reg::multiply(x[4 * i + k], small);
                    const uint32_t c = encode4<numfmt::detail::conditional_t<e2m3, fp8_e4m3, fp8_e5m2>>(v);
                    const uint32_t magnitude = c & 0x3F3F3F3Fu;
                    const uint32_t four =
                        pack6((magnitude - ((magnitude >> 5) & 0x01010101u)) | ((c >> 2) & 0x20202020u));
                    const int word = 24 * i / 32, shift = 24 * i % 32;
                    r[word] |= four << shift;
                    if (shift > 8) r[word + 1] |= four >> (32 - shift);
                }
                return r;
            }
        }
#endif
        if constexpr (bits == 4 && power_of_two && !is_float_v<T>) {
            // At most 11 bits of significand, so that fp16 holds the scaled numbers.
            factor = reg::multiply(factor, 0x1p-10f);
#pragma unroll
            for (int e = 0; e < N; e += 8) {
                words<4> h;
#pragma unroll
                for (int k = e; k < e + 4; ++k)
                    h[k - e] = reg::to_f16x2(reg::multiply(x[k], factor), reg::multiply(x[k + 4], factor));
                r[e / 8] = encode8_e2m1_strided(h);
            }
        } else {
            float v[N];
#pragma unroll
            for (int i = 0; i < N; ++i) v[i] = reg::multiply(x[i], factor);
            r = encode_fast<element, N>(v);
        }
        return r;
    } else if constexpr (Fast && is_integer<S> && power_of_two) {
        if (finite) {
            constexpr float top = 127.0f / 64.0f;
            static_assert(element::spec.fraction_bits == 6 && element::spec.max_code == 127);
            const float factor = e8m0_inverse(b.stored);
            uint32_t c[N];
#pragma unroll
            for (int i = 0; i < N; ++i) {
                const float v = reg::maximum(reg::minimum(reg::multiply(x[i], factor), top), -top);
                c[i] = reg::as_bits(reg::add(v, 196608.0f));  // 1.5 * 2^17: the last place is 2^-6
            }
#pragma unroll
            for (int i = 0; i < N / 4; ++i)
                r[i] = reg::permute(reg::permute(c[4 * i], c[4 * i + 1], 0x0040u),
                                    reg::permute(c[4 * i + 2], c[4 * i + 3], 0x0040u), 0x5410u);
            return r;
        }
    } else if constexpr (Fast && is_int4<S>) {
        if (finite && b.value >= 0x1p-100f && b.value <= 0x1p100f) {
            constexpr bool few = !is_float_v<T> && !numfmt::detail::is_same_v<typename S::scale, float>;
            const float unmagic = static_cast<float>(b.zero_point) - 12582912.0f;
            const float reciprocal = numfmt::detail::quotient(1.0f, b.value);
#pragma unroll
            for (int e = 0; e < N; e += 8) {
                // Rounded at 1.5 * 2^23, where ties are even, before the zero point is added; then clamped as pairs of
                // fp16 and multiplied by 2^-24, which leaves the code as the bits of a subnormal.
                float f[8];
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    f[i] =
                        reg::add(reg::add(divide_by_common<few>(x[e + i], b.value, reciprocal), 12582912.0f), unmagic);
                uint32_t c[4];
#pragma unroll
                for (int k = 0; k < 4; ++k)
                    c[k] = reg::multiply_f16x2(
                        reg::minimum_f16x2(reg::maximum_f16x2(reg::to_f16x2(f[k], f[k + 4]), 0u), 0x4B804B80u),
                        0x00010001u);
                r[e / 8] = ((c[3] * 16 + c[2]) * 16 + c[1]) * 16 + c[0];
            }
            return r;
        }
    }
    uint8_t codes[N];
    numfmt::detail::encode_chunk<S, R>(b, x, N, codes, o, index);
    return pack_codes<bits, N>(codes);
}

/// Stores N packed codes of column c, a multiple of N; n of them (or all, where n is larger) are inside the row.
/// Aligned 6-bit codes are stored by four lanes together if `Together`; `quad` must be the same in all of them.
template <class S, int N, bool Together>
NUMFMT_DEVICE void store_codes(uint8_t* p, packed<scheme_traits<S>::element_bits, N> r, int n, bool aligned,
                               bool quad) {
    constexpr int bits = scheme_traits<S>::element_bits;
    if (aligned && (bits != 6 ? n >= N : Together && quad)) {
        store_packed<bits, N>(p, r);
    } else if (n > 0) {
        clear_from<bits, N>(r, n);
        store_bytes<bits, N>(p, r, n);
    }
}

template <class T> struct matrix_in {
    const T* data;
    int64_t rows, cols, stride;
    bool aligned;  // 16 bytes, every row
};

/// Whether scale (i, j) is the j-th of a row of scales.
template <class S> NUMFMT_DEVICE bool is_row_major(const quantized_view<S>& q) {
    return q.parts().layout == scale_layout::row_major;
}
/// Scale `j + offset` of scale row `i`; Plain: in a row-major layout, where 32 bits do for the offset.
template <bool Plain, class S>
NUMFMT_DEVICE auto& scale_at(const quantized_view<S>& q, int64_t i, int64_t j, uint32_t offset) {
    if constexpr (Plain)
        return q.parts().scales[i * q.parts().scale_stride + j + offset];
    else
        return q.scale(i, j + offset);
}

/// One thread block's part of a row. Full: all of it lies inside the row, is aligned, and its scales are row-major.
template <bool Full, class S, rounding R, class T, bool Fast>
NUMFMT_DEVICE void quantize_groups(const matrix_in<T>& x, const quantized_view<S>& out, bool out_aligned, int64_t row,
                                   int64_t block_column, int left_in_block, const quantize_options& o,
                                   const tensor_state* state) {
    using shape = group_shape<S, T>;
    constexpr int L = shape::lanes, K = shape::runs, bits = scheme_traits<S>::element_bits;
    constexpr int cols = static_cast<int>(shape::cols), all = shape::per_block * cols;
    const int left = Full ? all : left_in_block;
    const int group = static_cast<int>(threadIdx.x) / L, sub = static_cast<int>(threadIdx.x) % L;
    const int first = group * cols + sub * run;  // column within the block
    const bool inside = Full || group * cols < left;
    const T* const in = x.data + row * x.stride + block_column;

    chunk<T, run> raw[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const int c = first + k * L * run;
        raw[k] = load_chunk<T, run>(in + c, left - c, Full || (x.aligned && c + run <= left));
    }
    block_range range;
    block_scale<S> b;
    if constexpr (is_whole_tensor<S>) {
        range.any = state->any;
        range.amax = state->amax;
        b = numfmt::detail::choose_scale<S>(range, {}, o);
    } else {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            float v[run];
            chunk_to_float<T, run>(raw[k], v);
            extend_range<S, T, run>(range, raw[k], v, Full ? run : left - first - k * L * run);
        }
        reduce_range<S, L>(range);
        if constexpr (S::has_tensor_scale)
            b = fast_scale<S>(range, state->scale, o);
        else
            b = fast_scale<S>(range, {}, o);
        const int64_t j = block_column / cols;
        if (sub == 0 && inside) scale_at<Full>(out, row, j, static_cast<uint32_t>(group)) = b.stored;
        if constexpr (S::has_zero_point) {
            const uint32_t next = __shfl_down_sync(0xFFFFFFFFu, uint32_t{b.zero_point}, L);
            if (sub == 0 && inside && group % 2 == 0)
                (out.zero_row(row) + j / 2)[group / 2] =
                    static_cast<uint8_t>(b.zero_point | (Full || (group + 1) * cols < left ? next << 4 : 0u));
        }
    }
    uint8_t* const codes = out.code_row(row) + block_column / 8 * bits;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const int c = first + k * L * run;
        float v[run];
        chunk_to_float<T, run, !Fast>(raw[k], v);
        const auto r = encode_group_chunk<S, R, Fast, T, run>(b, !range.nonfinite(), v, o,
                                                              static_cast<uint64_t>(row * x.cols + block_column + c));
        store_codes<S, run, K == 1>(codes + c / 8 * bits, r, Full ? run : left - c, Full || out_aligned,
                                    Full || c / (4 * run) * (4 * run) + 4 * run <= left);
    }
}

/// 1 x C groups, and the second pass of per-tensor schemes: a few threads per group, everything in registers. Thread
/// blocks do not cross rows; a tensor without gaps comes here as one long row.
template <class S, rounding R, class T, bool Fast>
__global__ __launch_bounds__(block_threads) void group_kernel(matrix_in<T> x, quantized_view<S> out, bool out_aligned,
                                                              uint32_t blocks_per_row, quantize_options o,
                                                              const tensor_state* state) {
    using shape = group_shape<S, T>;
    constexpr int block_cols = shape::per_block * static_cast<int>(shape::cols);
    static_assert(shape::per_block % 2 == 0);  // zero points: whole bytes
    const uint32_t row32 = blocks_per_row >= gridDim.x ? 0 : blockIdx.x / blocks_per_row;
    const int64_t row = row32;
    const int64_t block_column = static_cast<int64_t>(blockIdx.x - row32 * blocks_per_row) * block_cols;
    const int left = static_cast<int>(min(x.cols - block_column, int64_t{block_cols}));
    if (left == block_cols && x.aligned && out_aligned && is_row_major(out))
        quantize_groups<true, S, R, T, Fast>(x, out, out_aligned, row, block_column, left, o, state);
    else
        quantize_groups<false, S, R, T, Fast>(x, out, out_aligned, row, block_column, left, o, state);
}

/// One block. The first `cached` chunks of a thread stay in registers between the two passes; the rest is read again
/// (from L2, as a rule). Full: the block has all its rows and columns and is aligned.
template <bool Full, class S, rounding R, class T, bool Fast, int Threads>
NUMFMT_DEVICE void quantize_block(const matrix_in<T>& x, const quantized_view<S>& out, bool out_aligned, int64_t i,
                                  int64_t j, const quantize_options& o) {
    constexpr int cached = 4;
    using count = numfmt::detail::conditional_t<Full, int, int64_t>;
    const int64_t r0 = i == 0 ? 0 : i * S::block.rows, c0 = j == 0 ? 0 : j * S::block.cols;
    count rows, cols;
    if constexpr (Full) {
        rows = static_cast<int>(S::block.rows);
        cols = static_cast<int>(S::block.cols);
    } else {
        rows = numfmt::detail::min(x.rows - r0, S::block.rows);
        cols = numfmt::detail::min(x.cols - c0, S::block.cols);
    }
    const count per_row = S::block.cols != whole ? static_cast<count>(numfmt::detail::ceil_div(S::block.cols, 8))
                                                 : static_cast<count>(numfmt::detail::ceil_div(cols, 8));
    const count chunks = rows * per_row;
    const T* const in = x.data + r0 * x.stride + c0;

    // Row and column of chunk q, and how many of its elements are inside.
    const auto place = [&](count q, count& r, count& c) {
        r = S::block.rows == 1 ? 0 : q / per_row;
        c = (q - r * per_row) * 8;
        if constexpr (Full) return 8;
        return q < chunks ? static_cast<int>(numfmt::detail::min(numfmt::detail::max(cols - c, count{0}), count{8}))
                          : 0;
    };
    const auto load = [&](count q) {
        count r = 0, c = 0;
        const int n = place(q, r, c);
        return load_chunk<T, 8>(in + r * x.stride + c, n, Full || (x.aligned && n == 8));
    };
    chunk<T, 8> raw[cached];
    block_range range;
    const count first = static_cast<count>(threadIdx.x);
#pragma unroll
    for (int k = 0; k < cached; ++k) raw[k] = load(first + k * Threads);
    const auto extend_by = [&](const chunk<T, 8>& part) {
        float v[8];
        chunk_to_float<T, 8>(part, v);
        extend_range<S, T, 8>(range, part, v, 8);  // elements outside are zero and change no largest magnitude
    };
#pragma unroll
    for (int k = 0; k < cached; ++k) extend_by(raw[k]);
    for (count q = first + cached * Threads; q < chunks; q += Threads) extend_by(load(q));

    reduce_range<S, 32>(range);
    if constexpr (Threads > 32) {
        __shared__ uint32_t any[Threads / 32], amax[Threads / 32];
        if (threadIdx.x % 32 == 0) any[threadIdx.x / 32] = range.any, amax[threadIdx.x / 32] = range.amax;
        __syncthreads();
#pragma unroll
        for (int w = 0; w < Threads / 32; ++w) {
            range.any = numfmt::detail::max(range.any, any[w]);
            range.amax = numfmt::detail::max(range.amax, amax[w]);
        }
    }
    const block_scale<S> b = fast_scale<S>(range, {}, o);
    if (threadIdx.x == 0) out.scale(i, j) = b.stored;

    constexpr int bits = scheme_traits<S>::element_bits;
    const auto encode_one = [&](count q, const chunk<T, 8>& part) {
        count r = 0, c = 0;
        const int n = place(q, r, c);
        float v[8];
        chunk_to_float<T, 8, !Fast>(part, v);
        const uint64_t index = static_cast<uint64_t>((r0 + r) * x.cols + c0 + c);
        const auto codes = encode_group_chunk<S, R, Fast, T, 8>(b, !range.nonfinite(), v, o, index);
        store_codes<S, 8, false>(out.code_row(r0 + r) + c0 * bits / 8 + c / 8 * bits, codes, n, Full || out_aligned,
                                 false);
    };
#pragma unroll
    for (int k = 0; k < cached; ++k) encode_one(first + k * Threads, raw[k]);
    for (count q = first + cached * Threads; q < chunks; q += Threads) encode_one(q, load(q));
}

/// Any rows x cols block of float elements: one thread block each.
template <class S, rounding R, class T, bool Fast, int Threads>
__global__ __launch_bounds__(Threads) void block_kernel(matrix_in<T> x, quantized_view<S> out, bool out_aligned,
                                                        quantize_options o) {
    const int64_t scale_cols = numfmt::detail::ceil_div(x.cols, S::block.cols);
    const int64_t i = scale_cols == 1 ? int64_t{blockIdx.x} : int64_t{blockIdx.x} / scale_cols;
    const int64_t j = int64_t{blockIdx.x} - i * scale_cols;
    // Blocks whose chunks fill the threads' registers exactly.
    constexpr int64_t elements = int64_t{Threads} * 4 * 8;
    if constexpr (S::block.rows <= elements && S::block.cols % 8 == 0 && elements % S::block.rows == 0 &&
                  elements / S::block.rows == S::block.cols) {
        if (x.aligned && out_aligned && (i + 1) * S::block.rows <= x.rows && (j + 1) * S::block.cols <= x.cols) {
            quantize_block<true, S, R, T, Fast, Threads>(x, out, out_aligned, i, j, o);
            return;
        }
    }
    quantize_block<false, S, R, T, Fast, Threads>(x, out, out_aligned, i, j, o);
}

/// First pass of two: the largest magnitudes of the tensor. The last block to finish stores what they lead to.
template <class S, class T>
__global__ __launch_bounds__(block_threads) void tensor_range_kernel(matrix_in<T> x, divider chunks_per_row,
                                                                     int64_t chunks, quantized_view<S> out,
                                                                     quantize_options o, tensor_state* state) {
    using namespace numfmt::detail;
    block_range range;
    constexpr int K = 4;
    const int64_t step = static_cast<int64_t>(gridDim.x) * (block_threads * K);
    for (int64_t base = static_cast<int64_t>(blockIdx.x) * (block_threads * K); base < chunks; base += step) {
        chunk<T, 8> raw[K];
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const int64_t q = base + k * block_threads + static_cast<int>(threadIdx.x);
            const int64_t row = static_cast<int64_t>(chunks_per_row.quotient(static_cast<uint64_t>(q)));
            const int64_t c = (q - row * static_cast<int64_t>(chunks_per_row.d)) * 8;
            const int n = q < chunks ? static_cast<int>(numfmt::detail::min(x.cols - c, int64_t{8})) : 0;
            raw[k] = load_chunk<T, 8>(x.data + row * x.stride + c, n, x.aligned && n == 8);
        }
#pragma unroll
        for (int k = 0; k < K; ++k) {
            float v[8];
            chunk_to_float<T, 8>(raw[k], v);
            extend_range<S, T, 8>(range, raw[k], v, 8);
        }
    }
    reduce_range<S, 32>(range);
    __shared__ uint32_t any[block_threads / 32], amax[block_threads / 32];
    if (threadIdx.x % 32 == 0) any[threadIdx.x / 32] = range.any, amax[threadIdx.x / 32] = range.amax;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 0; w < block_threads / 32; ++w) {
        range.any = numfmt::detail::max(range.any, any[w]);
        range.amax = numfmt::detail::max(range.amax, amax[w]);
    }
    atomicMax(&state->any, range.any);
    atomicMax(&state->amax, range.amax);
    __threadfence();
    if (atomicAdd(&state->blocks_done, 1u) != gridDim.x - 1) return;
    __threadfence();
    range.any = atomicMax(&state->any, 0u);
    range.amax = atomicMax(&state->amax, 0u);
    if constexpr (S::has_tensor_scale) {
        const numfmt::detail::tensor_scale t = choose_tensor_scale(range.amax, o.nvfp4_order);
        state->scale = t;
        *out.parts().tensor_scale = t.multiplier;
    } else {
        out.scale(0, 0) = choose_scale<S>(range, {}, o).stored;
    }
}

/// True where `o` leaves everything that encoding an element depends on at its default.
template <class S> bool is_fast(const quantize_options& o) noexcept {
    if constexpr (is_integer<S>) {
        return true;
    } else {
        if (!is_default<typename S::element>(o.element)) return false;
        return scheme_traits<S>::power_of_two_scale || S::has_tensor_scale || o.division == scale_division::reciprocal;
    }
}

template <class S>
inline constexpr bool has_block_kernel =
    !is_integer<S> && !S::has_tensor_scale && !S::has_zero_point &&
    (S::block.cols == whole || S::block.cols % 8 * scheme_traits<S>::element_bits % 8 == 0);

/// True where the tensor is one long row in every array, blocks and all: no gaps, whole groups, whole bytes.
template <class S> bool is_flat(const quantized_view<S>& q, int64_t stride) noexcept {
    using scheme = numfmt::detail::remove_cv_t<S>;
    using traits = scheme_traits<scheme>;
    const auto& p = q.parts();
    const matrix_shape scales = q.scale_shape();
    if (q.rows() == 1) return true;
    bool flat = stride == q.cols() && p.code_stride == traits::code_row_bytes(q.cols()) &&
                q.cols() * traits::element_bits % 8 == 0;
    if constexpr (is_whole_tensor<scheme>) return flat;
    if (scheme::block.rows != 1 || scheme::block.cols == whole || q.cols() % scheme::block.cols != 0) return false;
    if constexpr (scheme::has_zero_point)
        flat = flat && p.zero_stride == traits::zero_row_bytes(scales.cols) && scales.cols % 2 == 0;
    return flat && p.layout == scale_layout::row_major && p.scale_stride == scales.cols;
}
template <class S> quantized_view<S> flatten(const quantized_view<S>& q) noexcept {
    if (q.rows() == 1) return q;
    view_parts<S> p = q.parts();
    p.shape = {1, q.rows() * q.cols()};
    p.code_stride = p.scale_stride = p.zero_stride = 0;
    return quantized_view<S>::make(p).value;
}

template <class S, rounding R, bool Fast, class T>
launch_result launch_quantize(matrix_in<T> x, quantized_view<S> out, const quantize_options& o, tensor_state* state,
                              cudaStream_t stream) noexcept {
    using numfmt::detail::ceil_div;
    constexpr int bits = scheme_traits<S>::element_bits;
    const auto aligned_to = [&](int64_t alignment) {
        return is_aligned(out.parts().codes, alignment) && (out.parts().code_stride % alignment == 0 || x.rows == 1);
    };
    if constexpr (group_shape<S, T>::fits) {
        using shape = group_shape<S, T>;
        if (is_flat(out, x.stride)) {
            x = {x.data, 1, x.rows * x.cols, x.rows * x.cols, x.aligned};
            out = flatten(out);
        }
        const int64_t blocks_per_row = ceil_div(x.cols, shape::per_block * shape::cols);
        if (blocks_per_row > max_grid / x.rows)
            return {{status_code::size_overflow, "x.shape.rows", x.rows, max_grid / blocks_per_row}, cudaSuccess};
        return launch(&group_kernel<S, R, T, Fast>, blocks_per_row * x.rows, block_threads, stream, x, out,
                      aligned_to(packed_alignment<bits, run>), static_cast<uint32_t>(blocks_per_row), o, state);
    } else if constexpr (has_block_kernel<S>) {
        const matrix_shape scales = out.scale_shape();
        const bool fits = S::block.cols == whole || S::block.cols % 8 == 0;
        if (!fits) x.aligned = false;
        const bool out_aligned = fits && aligned_to(packed_alignment<bits, 8>);
        const int64_t blocks = scales.rows * scales.cols;
        if constexpr (S::block.rows != 1)
            return launch(&block_kernel<S, R, T, Fast, 512>, blocks, 512, stream, x, out, out_aligned, o);
        const int64_t cols = numfmt::detail::min(x.cols, S::block.cols);
        if (cols <= 1024) return launch(&block_kernel<S, R, T, Fast, 32>, blocks, 32, stream, x, out, out_aligned, o);
        if (cols <= 4096) return launch(&block_kernel<S, R, T, Fast, 128>, blocks, 128, stream, x, out, out_aligned, o);
        return launch(&block_kernel<S, R, T, Fast, 256>, blocks, 256, stream, x, out, out_aligned, o);
    } else {
        return {{status_code::unsupported, "scheme", 0, 0}, cudaSuccess};
    }
}

/// Chunks per thread: packed codes are short loads, of which more must be under way.
template <class S> inline constexpr int dequantize_chunks = scheme_traits<S>::element_bits < 8 ? 4 : 2;

/// One thread block's part of a row, as quantize_groups().
template <bool Full, class S, class T>
NUMFMT_DEVICE void dequantize_part(const quantized_view<const S>& q, T* y, bool aligned, int64_t row,
                                   int64_t block_column, int left_in_block) {
    using namespace numfmt::detail;
    using element = typename S::element;
    constexpr int width = decode_width<T>, bits = scheme_traits<S>::element_bits, K = dequantize_chunks<S>;
    constexpr int block_cols = block_threads * K * width;
    constexpr bool one_scale = S::block.cols == whole || S::block.cols % width == 0;
    const int left = Full ? block_cols : left_in_block;
    const int64_t scale_row = S::block.rows == whole ? 0 : row / S::block.rows;
    const uint8_t* const in = q.code_row(row) + block_column / 8 * bits;
    float tensor_multiplier = 1.0f;
    if constexpr (S::has_tensor_scale) tensor_multiplier = *q.parts().tensor_scale;
    // Column of the scale of column c of the part: the first part's, and what is added to it.
    constexpr bool part_of_blocks = S::block.cols != whole && block_cols % S::block.cols == 0;
    const int64_t first_scale = part_of_blocks ? block_column / S::block.cols : 0;
    const auto scale_offset = [&](int c) -> uint32_t {
        if constexpr (S::block.cols == whole)
            return 0;
        else if constexpr (part_of_blocks)
            return static_cast<uint32_t>(c) / static_cast<uint32_t>(S::block.cols);
        else
            return static_cast<uint32_t>((block_column + c) / S::block.cols);
    };

    packed<bits, width> codes[K]{};
    typename scheme_traits<S>::scale_storage stored[K]{};
    uint8_t zero[K]{};
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const int c = (k * block_threads + static_cast<int>(threadIdx.x)) * width;
        if (!Full && c >= left) continue;
        const uint8_t* const p = in + c / 4 * bits / 2;
        if (Full || (aligned && c + width <= left))
            codes[k] = load_packed<bits, width>(p, threadIdx.x);
        else
            codes[k] = load_bytes<bits, width>(p, numfmt::detail::min(left - c, width));
        if constexpr (one_scale) {
            const uint32_t j = scale_offset(c);
            stored[k] = scale_at<Full>(q, scale_row, first_scale, j);
            if constexpr (S::has_zero_point) {
                // Parts begin on a byte of zero points, or first_scale is 0.
                static_assert(!part_of_blocks || block_cols / S::block.cols % 2 == 0);
                zero[k] = static_cast<uint8_t>((q.zero_row(scale_row) + first_scale / 2)[j / 2] >> (j % 2 * 4) & 15);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const int c = (k * block_threads + static_cast<int>(threadIdx.x)) * width;
        if (!Full && c >= left) continue;
        float v[width];
        if constexpr (one_scale) {
            const auto b = scale_from_storage<S>(stored[k], zero[k], tensor_multiplier);
            if constexpr (is_int4<S>) {
                const words<4> h = int4_decode8<fp16>(codes[k][0], int4_zero<fp16>(b.zero_point));
                float all[8];
                to_float<fp16>(h, all);
#pragma unroll
                for (int i = 0; i < width; ++i) v[i] = reg::multiply(all[i], b.value);
            } else if constexpr (is_integer<S>) {
                static_assert(bits == 8 && element::spec.is_signed);
                constexpr float unit = exact_pow2(-element::spec.fraction_bits);
#pragma unroll
                for (int i = 0; i < width / 4; ++i) {
                    float part[4];
                    int8_decode4(codes[k][i], part);
#pragma unroll
                    for (int e = 0; e < 4; ++e) v[4 * i + e] = reg::multiply(reg::multiply(part[e], unit), b.value);
                }
            } else {
                decode_packed<element, width>(codes[k], v);
#pragma unroll
                for (int i = 0; i < width; ++i) v[i] = reg::multiply(v[i], b.value);
            }
        } else {
#pragma unroll
            for (int e = 0; e < width; ++e) {
                v[e] = 0;
                if (c + e >= left) continue;
                const int64_t j = first_scale + scale_offset(c + e);
                uint8_t z = 0;
                if constexpr (S::has_zero_point) z = q.zero_point(scale_row, j);
                const auto b = scale_from_storage<S>(q.scale(scale_row, j), z, tensor_multiplier);
                const uint8_t code = static_cast<uint8_t>(packed_code<bits, width>(codes[k], e));
                decode_chunk<S>(b, &code, 1, &v[e]);
            }
        }
        const chunk<T, width> out = chunk_from_float<T, width>(v);
        store_chunk<T, width>(y + c, out, Full ? width : numfmt::detail::min(left - c, width),
                              Full || (aligned && c + width <= left));
    }
}

/// Thread blocks do not cross rows.
template <class S, class T>
__global__ __launch_bounds__(block_threads) void dequantize_kernel(quantized_view<const S> q, T* y, int64_t stride,
                                                                   bool aligned, uint32_t blocks_per_row) {
    constexpr int block_cols = block_threads * dequantize_chunks<S> * decode_width<T>;
    const uint32_t row32 = blocks_per_row >= gridDim.x ? 0 : blockIdx.x / blocks_per_row;
    const int64_t row = row32;
    const int64_t block_column = static_cast<int64_t>(blockIdx.x - row32 * blocks_per_row) * block_cols;
    const int left = static_cast<int>(numfmt::detail::min(q.cols() - block_column, int64_t{block_cols}));
    y += row * stride + block_column;
    if (left == block_cols && aligned && is_row_major(q))
        dequantize_part<true, S, T>(q, y, aligned, row, block_column, left);
    else
        dequantize_part<false, S, T>(q, y, aligned, row, block_column, left);
}

}  // namespace detail

/// Bytes of workspace that quantize needs for the scheme, any shape; 0 for all but per-tensor schemes and NVFP4. The
/// memory needs an alignment of 16 and no initial contents.
template <scheme S> constexpr size_t quantize_workspace_size() noexcept {
    return detail::needs_state<S> ? sizeof(detail::tensor_state) : 0;
}

/// numfmt::quantize on the device: `x` and `out` describe device memory; the bits are those of the host's function for
/// every shape, stride, scale layout and option. One kernel; per-tensor schemes and NVFP4 clear a few bytes of
/// workspace and run two. Errors: those of numfmt::quantize; null_pointer, too_small or misaligned (workspace);
/// unsupported (scheme) for 4- and 6-bit groups whose columns do not fill bytes and for int4 groups that are not 8 ..
/// 512 columns in powers of two.
template <rounding R = rounding::nearest_even, class T, class S>
launch_result quantize(matrix_view<T> x, quantized_view<S> out, const quantize_options& options = {},
                       workspace memory = {}, cudaStream_t stream = nullptr) noexcept {
    using value = numfmt::detail::remove_cv_t<T>;
    static_assert(detail::is_tensor_v<value>, "numfmt::cuda::quantize: the input must be float, bf16 or fp16");
    static_assert(!numfmt::detail::is_same_v<S, const S>, "numfmt::cuda::quantize: the output view is read-only");
    static_assert(!numfmt::detail::is_scale_rounding(R),
                  "numfmt::cuda::quantize: rounding::down, up and nearest_up belong to e8m0; choose "
                  "quantize_options::scale_rule for the scales");
    if (const status s = numfmt::detail::check_matrix(x, "x", "x.stride"); !s.ok()) return {s, cudaSuccess};
    if (x.shape.rows != out.rows())
        return {{status_code::shape_mismatch, "x.shape.rows", x.shape.rows, out.rows()}, cudaSuccess};
    if (x.shape.cols != out.cols())
        return {{status_code::shape_mismatch, "x.shape.cols", x.shape.cols, out.cols()}, cudaSuccess};
    if (x.shape.rows == 0 || x.shape.cols == 0) return {};

    const int64_t stride = x.row_stride();
    const bool rows_aligned = stride * static_cast<int64_t>(sizeof(value)) % 16 == 0 || x.shape.rows == 1;
    const detail::matrix_in<value> in{x.data, x.shape.rows, x.shape.cols, stride,
                                      rows_aligned && detail::is_aligned(x.data, 16)};
    detail::tensor_state* state = nullptr;
    if constexpr (detail::needs_state<S>) {
        constexpr auto needed = static_cast<int64_t>(sizeof(detail::tensor_state));
        if (const status s = detail::check_pointer(memory.data, "workspace", 16); !s.ok()) return {s, cudaSuccess};
        if (static_cast<int64_t>(memory.bytes) < needed)
            return {{status_code::too_small, "workspace", static_cast<int64_t>(memory.bytes), needed}, cudaSuccess};
        state = static_cast<detail::tensor_state*>(memory.data);
        if (const cudaError_t e = cudaMemsetAsync(state, 0, 16, stream); e != cudaSuccess) return {{}, e};
        const int64_t per_row = numfmt::detail::ceil_div(x.shape.cols, 8), chunks = per_row * x.shape.rows;
        const int64_t blocks =
            numfmt::detail::min(numfmt::detail::ceil_div(chunks, detail::block_threads * 4), int64_t{132 * 8});
        const launch_result first =
            detail::launch(&detail::tensor_range_kernel<S, value>, blocks, detail::block_threads, stream, in,
                           detail::divider(per_row, chunks + (int64_t{1} << 24)), chunks, out, options, state);
        if (!first.ok()) return first;
    }
    if constexpr (R == rounding::nearest_even) {
        if (detail::is_fast<S>(options)) return detail::launch_quantize<S, R, true>(in, out, options, state, stream);
        if constexpr (detail::is_integer<S>) return {};  // not reached: integer elements have one path
    }
    if constexpr (!(R == rounding::nearest_even && detail::is_integer<S>))
        return detail::launch_quantize<S, R, false>(in, out, options, state, stream);
}

/// numfmt::dequantize on the device, the same bits: float values exactly as the host gives them, bf16 and fp16 by one
/// more nearest-even rounding, NaN for the blocks with a NaN scale. One kernel. Errors: those of numfmt::dequantize.
template <class S, class T>
launch_result dequantize(quantized_view<S> q, matrix_view<T> y, cudaStream_t stream = nullptr) noexcept {
    using scheme = numfmt::detail::remove_cv_t<S>;
    static_assert(detail::is_tensor_v<T>, "numfmt::cuda::dequantize: the output must be float, bf16 or fp16");
    if (const status s = numfmt::detail::check_matrix(y, "y", "y.stride"); !s.ok()) return {s, cudaSuccess};
    if (y.shape.rows != q.rows())
        return {{status_code::shape_mismatch, "y.shape.rows", y.shape.rows, q.rows()}, cudaSuccess};
    if (y.shape.cols != q.cols())
        return {{status_code::shape_mismatch, "y.shape.cols", y.shape.cols, q.cols()}, cudaSuccess};
    if (y.shape.rows == 0 || y.shape.cols == 0) return {};
    constexpr int width = detail::decode_width<T>, bits = scheme_traits<scheme>::element_bits;
    constexpr int64_t alignment = detail::packed_alignment<bits, width>;
    const int64_t stride = y.row_stride();
    const bool one_row = y.shape.rows == 1;
    const bool aligned =
        detail::is_aligned(y.data, 16) && detail::is_aligned(q.parts().codes, alignment) &&
        (one_row || (stride * static_cast<int64_t>(sizeof(T)) % 16 == 0 && q.parts().code_stride % alignment == 0));
    const bool flat = detail::is_flat(q, stride);
    const auto view = flat ? detail::flatten(q) : q;
    const int64_t blocks_per_row =
        numfmt::detail::ceil_div(view.cols(), detail::block_threads * detail::dequantize_chunks<scheme> * width);
    if (blocks_per_row > detail::max_grid / view.rows())
        return {{status_code::size_overflow, "y.shape.rows", view.rows(), detail::max_grid / blocks_per_row},
                cudaSuccess};
    return detail::launch(&detail::dequantize_kernel<scheme, T>, blocks_per_row * view.rows(), detail::block_threads,
                          stream, quantized_view<const scheme>(view), y.data, flat ? view.cols() : stride, aligned,
                          static_cast<uint32_t>(blocks_per_row));
}

}  // namespace numfmt::cuda
