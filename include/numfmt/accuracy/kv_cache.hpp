// SPDX-License-Identifier: MIT
// Keys and values as a KV cache in some format gives them back, with rounding and clipping each able to be left out, so
// that an error can be split into its causes.
#pragma once

#include <cmath>
#include <vector>

#include "../accumulate/policies.hpp"
#include "../bf16.hpp"
#include "../fp16.hpp"
#include "../fp8.hpp"
#include "../int4.hpp"
#include "../mxfp4.hpp"
#include "../mxfp8.hpp"
#include "weights.hpp"

namespace numfmt::accuracy {

/// What the cache holds. fp8 formats have one fp32 scale per tensor, head or token; mxfp8, mxfp4 (E8M0 per 32) and int4
/// (codes 0..15, fp16 scale and zero point per 32) have theirs along the head dimension of every token.
enum class kv_format : uint8_t { fp32, bf16, fp16, fp8_e4m3, fp8_e5m2, mxfp8_e4m3, mxfp4, int4_g32 };

NUMFMT_FN const char* name_of(kv_format f) noexcept {
    constexpr const char* names[] = {"fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "mxfp8_e4m3", "mxfp4", "int4_g32"};
    return names[static_cast<int>(f)];
}
NUMFMT_FN bool has_float_scale(kv_format f) noexcept { return f == kv_format::fp8_e4m3 || f == kv_format::fp8_e5m2; }

/// Largest value of a format with a float scale; 1 for the others.
NUMFMT_FN float largest_code_value(kv_format f) noexcept {
    return f == kv_format::fp8_e4m3 ? 448.0f : f == kv_format::fp8_e5m2 ? 57344.0f : 1.0f;
}

/// Bits per number, the scales of blocks included (one scale per tensor, head or token of at least 64 counts as 0).
NUMFMT_FN double bits_of(kv_format f) noexcept {
    constexpr double bits[] = {32, 16, 16, 8, 8, 8.25, 4.25, 4 + (16 + 4) / 32.0};
    return bits[static_cast<int>(f)];
}

/// Which of its two errors a stored number gets. Without rounding it keeps all its bits within the format's range;
/// without clipping the range has no end and a number beyond it is rounded to the format's mantissa.
struct storage_effects {
    bool rounding = true;
    bool clipping = true;
};

namespace detail {

/// x to `mantissa_bits` below its leading bit, ties to even: rounding alone, without a range.
NUMFMT_FN float round_mantissa(float x, int mantissa_bits) noexcept {
    const uint32_t bits = bit_cast<uint32_t>(x);
    const int drop = 23 - mantissa_bits;
    const uint32_t half = (1u << (drop - 1)) - 1u + (bits >> drop & 1u);
    return bit_cast<float>((bits + half) >> drop << drop);
}

/// One number of a format without a block, as a float.
template <float_format F> float stored(float t, storage_effects e) noexcept {
    constexpr float top = decode<F>(static_cast<typename F::storage>(F::spec.max_finite_code()));
    const bool beyond = !(std::fabs(t) <= top);
    if (!e.rounding) return e.clipping && beyond ? std::copysign(top, t) : t;
    if (!e.clipping && beyond) return round_mantissa(t, F::spec.mantissa_bits);
    encode_options saturating;
    saturating.overflow = overflow::saturate;
    return decode<F>(encode<F>(t, saturating));
}

template <float_format F> void store(const float* x, int64_t n, float scale, storage_effects e, float* y) noexcept {
    const float inverse = 1.0f / scale;
    if (!e.rounding || !e.clipping) {
        for (int64_t i = 0; i < n; ++i) y[i] = stored<F>(accumulate::rounded_mul(x[i], inverse), e);
        return;
    }
    // The same in pieces that compilers vectorise.
    constexpr int64_t piece = 256;
    typename F::storage codes[piece];
    float scaled[piece];
    encode_options saturating;
    saturating.overflow = overflow::saturate;
    for (int64_t i = 0; i < n; i += piece) {
        const int64_t m = numfmt::detail::min(piece, n - i);
        for (int64_t j = 0; j < m; ++j) scaled[j] = accumulate::rounded_mul(x[i + j], inverse);
        encode<F>(scaled, m, codes, saturating);
        decode<F>(codes, m, y + i);
    }
}

/// Rows through a block scheme. Throws std::bad_alloc.
template <class S> status store_blocks(matrix_view<const float> x, storage_effects e, matrix_view<float> y) {
    const auto q = quantize<S>(x);
    if (!q.ok()) return q.status;
    if (const status s = dequantize(q.value.view(), y); !s.ok()) return s;
    if (e.rounding && e.clipping) return {};
    const matrix_shape scales = q.value.view().scale_shape();
    for (int64_t i = 0; i < scales.rows; ++i)
        for (int64_t j = 0; j < scales.cols; ++j) {
            const block_values v = block_extremes<S>(q.value.view(), i, j);
            const int64_t first = j * S::block.cols;
            const int64_t last = numfmt::detail::min(first + S::block.cols, x.shape.cols);
            for (int64_t c = first; c < last; ++c) {
                const float value = x.row(i)[c];
                float& out = y.row(i)[c];
                if (!e.rounding) {
                    out = !e.clipping ? value : std::fmin(std::fmax(value, v.low), v.high);
                } else if (value < v.low - v.half_step || value > v.high + v.half_step) {
                    if constexpr (float_format<typename S::element>)
                        out = round_mantissa(value, S::element::spec.mantissa_bits);
                    else
                        out = v.half_step > 0 ? std::nearbyint(value / (2 * v.half_step)) * (2 * v.half_step) : value;
                }
            }
        }
    return {};
}

}  // namespace detail

/// Writes what the cache holds for the rows of `x` (tokens x head size) to `y`, same shape: the numbers that the codes
/// stand for before a float scale is applied, so that row r of the cache is y[r] * scale[r].
///
/// scale  fp8 only, one per row: the true value is divided by it (multiplied by its fp32 reciprocal), saturated to
///        +-448 (+-57344) and rounded to nearest even. Positive and finite. Not read for the other formats.
/// Errors: shape_mismatch, out_of_range for a scale; what quantize reports. Throws std::bad_alloc.
inline status store_kv(kv_format format, matrix_view<const float> x, const float* scale, storage_effects effects,
                       matrix_view<float> y) {
    if (const status s = numfmt::detail::check_matrix(x, "x", "x.stride"); !s.ok()) return s;
    if (const status s = numfmt::detail::check_matrix(y, "y", "y.stride"); !s.ok()) return s;
    if (y.shape.rows != x.shape.rows) return {status_code::shape_mismatch, "y.shape.rows", y.shape.rows, x.shape.rows};
    if (y.shape.cols != x.shape.cols) return {status_code::shape_mismatch, "y.shape.cols", y.shape.cols, x.shape.cols};
    const int64_t cols = x.shape.cols;
    if (has_float_scale(format))
        for (int64_t r = 0; r < x.shape.rows; ++r)
            if (!(scale[r] > 0) || !numfmt::detail::is_finite(scale[r]))
                return {status_code::out_of_range, "scale", r, 0};
    switch (format) {
        case kv_format::mxfp8_e4m3:
            return detail::store_blocks<mxfp8_e4m3>(x, effects, y);
        case kv_format::mxfp4:
            return detail::store_blocks<mxfp4>(x, effects, y);
        case kv_format::int4_g32:
            return detail::store_blocks<int4<32>>(x, effects, y);
        default:
            break;
    }
    for (int64_t r = 0; r < x.shape.rows; ++r) {
        const float* from = x.row(r);
        float* to = y.row(r);
        if (format == kv_format::fp8_e4m3)
            detail::store<fp8_e4m3>(from, cols, scale[r], effects, to);
        else if (format == kv_format::fp8_e5m2)
            detail::store<fp8_e5m2>(from, cols, scale[r], effects, to);
        else if (format == kv_format::bf16)
            detail::store<bf16>(from, cols, 1, effects, to);
        else if (format == kv_format::fp16)
            detail::store<fp16>(from, cols, 1, effects, to);
        else
            for (int64_t c = 0; c < cols; ++c) to[c] = from[c];
    }
    return {};
}

/// The largest magnitude of n numbers; 0 for none.
inline float amax_of(const float* x, int64_t n) noexcept {
    float largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = numfmt::detail::max(largest, std::fabs(x[i]));
    return largest;
}

/// The fp32 scale that takes `amax` to the format's largest value; at least 2^-126.
NUMFMT_FN float float_scale(kv_format format, float amax) noexcept {
    return numfmt::detail::max(amax / largest_code_value(format), numfmt::detail::exact_pow2(-126));
}

}  // namespace numfmt::accuracy
