// SPDX-License-Identifier: MIT
// What a scheme does to a weight matrix, measured one band of rows at a time, so that a checkpoint larger than memory
// can be swept; and the error it causes in the layer's output.
#pragma once

#include <vector>

#include "../block/quantize.hpp"
#include "metrics.hpp"

namespace numfmt::accuracy {

/// Extremes of a tensor over its finite elements, and whether others were seen. Collected in any order and merged.
struct tensor_range {
    float low = 0;
    float high = 0;
    bool any_finite = false;
    bool any_nonfinite = false;

    void add(const float* x, int64_t n) noexcept {
        for (int64_t i = 0; i < n; ++i) {
            if (numfmt::detail::is_finite(x[i]))
                merge({x[i], x[i], true, false});
            else
                any_nonfinite = true;
        }
    }
    void merge(const tensor_range& o) noexcept {
        if (o.any_finite) {
            low = any_finite ? numfmt::detail::min(low, o.low) : o.low;
            high = any_finite ? numfmt::detail::max(high, o.high) : o.high;
            any_finite = true;
        }
        any_nonfinite = any_nonfinite || o.any_nonfinite;
    }
};

/// Whether the scheme needs to have seen the whole tensor before it can quantize any of it: a pass with tensor_range
/// comes first.
template <class S> inline constexpr bool needs_tensor_range = S::block.rows == whole || S::has_tensor_scale;

/// A band has to begin at a multiple of this many rows, so that no block straddles two bands.
template <class S> inline constexpr int64_t band_alignment = S::block.rows == whole ? 1 : S::block.rows;

namespace detail {

inline constexpr int max_anchor_rows = 3;

// Rows that, put before any band of a tensor, give the band the range of the whole tensor. Returns how many (0 .. 3).
inline int anchor_rows(const tensor_range& range, float (&value)[max_anchor_rows]) noexcept {
    int n = 0;
    if (range.any_finite) {
        value[n++] = range.low;
        value[n++] = range.high;
    }
    if (range.any_nonfinite) value[n++] = bit_cast<float>(numfmt::detail::f32_quiet_nan);
    return n;
}

// Codes of the two largest elements and of the smallest one.
template <class E> constexpr void extreme_codes(uint8_t (&codes)[3]) noexcept {
    if constexpr (float_format<E>) {
        const uint32_t top = E::spec.max_finite_code();
        codes[0] = static_cast<uint8_t>(top);
        codes[1] = static_cast<uint8_t>(top - 1u);
        codes[2] = static_cast<uint8_t>(E::spec.is_signed ? top | E::spec.sign_bit() : 0u);
    } else {
        const uint32_t mask = E::spec.code_mask();
        codes[0] = static_cast<uint8_t>(static_cast<uint32_t>(E::spec.max_code) & mask);
        codes[1] = static_cast<uint8_t>(static_cast<uint32_t>(E::spec.max_code - 1) & mask);
        codes[2] = static_cast<uint8_t>(static_cast<uint32_t>(E::spec.min_code) & mask);
    }
}

}  // namespace detail

/// A block's smallest and largest value, and half the distance from the largest to the one before it.
struct block_values {
    float low = 0, high = 0, half_step = 0;
};
/// Of block (i, j) of `q`; NaN where the block's scale is, so that nothing lies beyond.
template <class S> block_values block_extremes(quantized_view<const S> q, int64_t i, int64_t j) noexcept {
    static_assert(S::block.cols >= 3, "numfmt::accuracy::block_extremes: needs blocks of at least 3 columns");
    constexpr int bits = scheme_traits<S>::element_bits;
    // Three columns of their own under the block's scale: the scheme itself says what its codes mean.
    uint8_t codes[3], packed[3] = {}, zero = 0;
    detail::extreme_codes<typename S::element>(codes);
    pack<bits>(codes, 3, packed, 0);
    typename scheme_traits<S>::scale_storage scale = q.scale(i, j);
    view_parts<const S> p;
    p.codes = packed;
    p.scales = &scale;
    p.shape = {1, 3};
    if constexpr (S::has_zero_point) {
        zero = q.zero_point(i, j);
        p.zeros = &zero;
    }
    p.tensor_scale = q.parts().tensor_scale;
    float y[3];
    const auto view = quantized_view<const S>::make(p);
    constexpr float unknown = std::numeric_limits<float>::quiet_NaN();
    if (!view.ok() || !dequantize(view.value, matrix_view<float>{y, {1, 3}, 0}).ok())
        return {unknown, unknown, unknown};
    return {y[2], y[0], (y[0] - y[1]) / 2};
}

/// The values beyond which block (i, j) of `q` clips: its largest and smallest value, and half a step (the distance to
/// the value before the largest) further. Up to there an element is within the error that rounding always has, as for
/// overflow, which is tested after rounding too (OCP OFP8 section 5.2): E4M3 with scale 1 clips above 464, E2M1
/// above 7.
template <class S> clip_range block_clip_range(quantized_view<const S> q, int64_t i, int64_t j) noexcept {
    const block_values v = block_extremes(q, i, j);
    const double half_step = static_cast<double>(v.half_step);
    return {static_cast<double>(v.low) - half_step, static_cast<double>(v.high) + half_step};
}

namespace detail {

// The range's anchor rows, then the band.
inline std::vector<float> anchored_band(matrix_view<const float> band, const tensor_range& range, int64_t& anchors) {
    float value[max_anchor_rows];
    anchors = anchor_rows(range, value);
    std::vector<float> rows;
    rows.reserve(static_cast<size_t>((anchors + band.shape.rows) * band.shape.cols));
    for (int64_t a = 0; a < anchors; ++a) rows.insert(rows.end(), static_cast<size_t>(band.shape.cols), value[a]);
    for (int64_t r = 0; r < band.shape.rows; ++r) rows.insert(rows.end(), band.row(r), band.row(r) + band.shape.cols);
    return rows;
}

// Decodes a band that lies behind `anchors` rows of `q` and adds its errors. Not a template over the rounding: one
// instantiation per scheme.
template <class S>
status measure_codes(const quantized_tensor<S>& q, int64_t anchors, matrix_view<const float> band,
                     matrix_view<float> decoded, error_metrics& metrics) {
    // The band without its anchors: the same scales where they belong to the tensor, the later ones otherwise.
    view_parts<const S> parts = q.view().parts();
    parts.shape = band.shape;
    parts.codes += anchors * parts.code_stride;
    if constexpr (S::block.rows != whole) {
        parts.scales += anchors * parts.scale_stride;
        if constexpr (S::has_zero_point) parts.zeros += anchors * parts.zero_stride;
    }
    const auto view = quantized_view<const S>::make(parts);
    if (!view.ok()) return view.status;
    if (const status s = dequantize(view.value, decoded); !s.ok()) return s;

    const matrix_shape scales = view.value.scale_shape();
    for (int64_t i = 0; i < scales.rows; ++i) {
        for (int64_t j = 0; j < scales.cols; ++j) {
            const clip_range clip = block_clip_range<S>(view.value, i, j);
            const int64_t r0 = i == 0 ? 0 : i * S::block.rows, c0 = j == 0 ? 0 : j * S::block.cols;
            const int64_t rows = numfmt::detail::min(band.shape.rows - r0, S::block.rows);
            const int64_t cols = numfmt::detail::min(band.shape.cols - c0, S::block.cols);
            for (int64_t r = r0; r < r0 + rows; ++r) metrics.add(band.row(r) + c0, decoded.row(r) + c0, cols, clip);
        }
    }
    return {};
}

}  // namespace detail

/// Quantizes a band of rows of a tensor, dequantizes it into `decoded` (same shape) and adds the error of every element
/// to `metrics`. The result is bit for bit that of quantizing the whole tensor at once.
///
/// first_row  row of the tensor at which the band begins; a multiple of band_alignment<S>. Every band of a tensor but
///            the last one has a multiple of band_alignment<S> rows.
/// range      the whole tensor's; read only where needs_tensor_range<S>
/// options    `offset` is the index of the tensor's first element
/// Errors: out_of_range for first_row, and what quantize and dequantize report. Throws std::bad_alloc.
template <class S, rounding R = rounding::nearest_even>
status measure_band(matrix_view<const float> band, int64_t first_row, const tensor_range& range,
                    quantize_options options, matrix_view<float> decoded, error_metrics& metrics) {
    constexpr int64_t alignment = band_alignment<S>;
    if (first_row < 0 || first_row % alignment != 0)
        return {status_code::out_of_range, "first_row", first_row,
                first_row < 0 ? 0 : first_row / alignment * alignment};
    if (const status s = numfmt::detail::check_matrix(band, "band", "band.stride"); !s.ok()) return s;

    // Rows ahead of the band carry the tensor's extremes; the band's elements keep the index they have in the tensor.
    std::vector<float> anchored;
    matrix_view<const float> source = band;
    int64_t anchors = 0;
    if constexpr (needs_tensor_range<S>) {
        static_assert(S::block.rows == 1 || S::block.rows == whole,
                      "numfmt::accuracy::measure_band: rows put before a band would shift its blocks");
        anchored = detail::anchored_band(band, range, anchors);
        source = {anchored.data(), {anchors + band.shape.rows, band.shape.cols}, 0};
    }
    options.offset += static_cast<uint64_t>(first_row - anchors) * static_cast<uint64_t>(band.shape.cols);
    const auto q = quantize<S, R>(source, options);
    if (!q.ok()) return q.status;
    return detail::measure_codes<S>(q.value, anchors, band, decoded, metrics);
}

/// The same for a format without any scale: every element is encoded on its own. nonfinite::propagate keeps NaN and Inf
/// nonfinite (in a format without Inf it becomes NaN) and leaves a finite overflow to options.element; saturate also
/// turns what overflows, Inf included, into +-max. There are no blocks, so that `range` is not read.
template <float_format F, rounding R = rounding::nearest_even>
status measure_band_unscaled(matrix_view<const float> band, int64_t first_row, const tensor_range&,
                             quantize_options options, matrix_view<float> decoded, error_metrics& metrics) noexcept {
    if (first_row < 0) return {status_code::out_of_range, "first_row", first_row, 0};
    if (const status s = numfmt::detail::check_matrix(band, "band", "band.stride"); !s.ok()) return s;
    if (const status s = numfmt::detail::check_matrix(decoded, "decoded", "decoded.stride"); !s.ok()) return s;
    if (decoded.shape.rows != band.shape.rows)
        return {status_code::shape_mismatch, "decoded.shape.rows", decoded.shape.rows, band.shape.rows};
    if (decoded.shape.cols != band.shape.cols)
        return {status_code::shape_mismatch, "decoded.shape.cols", decoded.shape.cols, band.shape.cols};

    using storage = typename F::storage;
    constexpr uint32_t top = F::spec.max_finite_code();
    const double largest = static_cast<double>(decode<F>(static_cast<storage>(top)));
    const double limit = largest + (largest - static_cast<double>(decode<F>(static_cast<storage>(top - 1u)))) / 2;
    const bool saturate = options.nonfinite == nonfinite::saturate;
    encode_options finite = options.element;
    if (saturate) finite.overflow = overflow::saturate;
    encode_options special = finite;
    if (!saturate) special.overflow = overflow::to_nonfinite;
    for (int64_t r = 0; r < band.shape.rows; ++r) {
        const float* x = band.row(r);
        float* y = decoded.row(r);
        const uint64_t index =
            options.offset + static_cast<uint64_t>(first_row + r) * static_cast<uint64_t>(band.shape.cols);
        for (int64_t c = 0; c < band.shape.cols; ++c) {
            uint32_t draw = 0;
            if constexpr (R == rounding::stochastic) draw = random_word(options.seed, index + static_cast<uint64_t>(c));
            y[c] = decode<F>(encode<F, R>(x[c], numfmt::detail::is_finite(x[c]) ? finite : special, draw));
        }
        metrics.add(x, y, band.shape.cols, {-limit, limit});
    }
    return {};
}

/// The squared Frobenius norm of M X^T: M is [N, K], X is [T, K], all in double, strides in elements.
/// N * T * K multiply-adds; each inner product is a plain sum over K.
inline double squared_product_norm(matrix_view<const double> m, matrix_view<const double> x) noexcept {
    pairwise_sum sum;
    const int64_t tokens = x.shape.rows, k = m.shape.cols;
    for (int64_t r = 0; r < m.shape.rows; ++r) {
        const double* a = m.row(r);
        double squares = 0;
        int64_t t = 0;
        for (; t + 4 <= tokens; t += 4) {  // four independent sums keep the processor busy
            const double *b0 = x.row(t), *b1 = x.row(t + 1), *b2 = x.row(t + 2), *b3 = x.row(t + 3);
            double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            for (int64_t i = 0; i < k; ++i) {
                s0 += a[i] * b0[i];
                s1 += a[i] * b1[i];
                s2 += a[i] * b2[i];
                s3 += a[i] * b3[i];
            }
            squares += (s0 * s0 + s1 * s1) + (s2 * s2 + s3 * s3);
        }
        for (; t < tokens; ++t) {
            double s = 0;
            for (int64_t i = 0; i < k; ++i) s += a[i] * x.row(t)[i];
            squares += s * s;
        }
        sum.add(squares);
    }
    return sum.value();
}

}  // namespace numfmt::accuracy
