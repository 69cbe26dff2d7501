// SPDX-License-Identifier: MIT
// The reference quantize and dequantize of every scheme: walks the blocks, chooses scales, encodes, packs. Every faster
// path in the library is held equal to it bit for bit.
//
// Power-of-two scales (E8M0) are integer arithmetic from end to end. Float scales need IEEE fp32 division and
// multiplication: compile without -ffast-math and leave FTZ and DAZ off.
#pragma once

#include "scale.hpp"
#include "view.hpp"

namespace numfmt {
namespace detail {

inline constexpr int chunk =
    256;  // elements handled at once on the stack; a multiple of 8, so that packing stays aligned

/// Elements [c, c + n) of a row as floats: in place, or converted (exactly) into `scratch`.
template <class T> NUMFMT_FN const float* as_floats(const T* x, int n, float* scratch) noexcept {
    if constexpr (is_same_v<remove_cv_t<T>, float>) {
        return x;
    } else {
        for (int j = 0; j < n; ++j) scratch[j] = static_cast<float>(x[j]);
        return scratch;
    }
}

/// Calls f(row, first column, count) for every run of at most `chunk` columns of block (i, j).
template <class F>
NUMFMT_FN void for_each_run(matrix_shape shape, block_shape block, int64_t i, int64_t j, F&& f) noexcept {
    // An extent of `whole` has only index 0; the product must not be formed for others' sake.
    const int64_t r0 = i == 0 ? 0 : i * block.rows;
    const int64_t c0 = j == 0 ? 0 : j * block.cols;
    const int64_t rows = min(shape.rows - r0, block.rows);
    const int64_t cols = min(shape.cols - c0, block.cols);
    for (int64_t r = r0; r < r0 + rows; ++r)
        for (int64_t c = 0; c < cols; c += chunk) f(r, c0 + c, static_cast<int>(min(cols - c, int64_t{chunk})));
}

template <class T>
inline constexpr bool is_tensor_type_v = is_same_v<T, float> || [] {
    if constexpr (is_minifloat_v<T>)
        return T::spec.bits() == 16;
    else
        return false;
}();

/// Extends `range` by rows [first, last) of `x`.
template <class S, class T>
NUMFMT_FN void extend_by_rows(block_range& range, matrix_view<T> x, int64_t first, int64_t last) noexcept {
    float scratch[chunk];
    for (int64_t r = first; r < last; ++r) {
        for (int64_t c = 0; c < x.shape.cols; c += chunk) {
            const int n = static_cast<int>(min(x.shape.cols - c, int64_t{chunk}));
            extend<S>(range, as_floats(x.row(r) + c, n, scratch), n);
        }
    }
}

/// Checks `x` and that it has the shape of `out`.
template <class T, class S>
NUMFMT_PER_ISA status check_quantize(matrix_view<T> x, const quantized_view<S>& out) noexcept {
    if (const status s = check_matrix(x, "x", "x.stride"); !s.ok()) return s;
    if (x.shape.rows != out.rows()) return {status_code::shape_mismatch, "x.shape.rows", x.shape.rows, out.rows()};
    if (x.shape.cols != out.cols()) return {status_code::shape_mismatch, "x.shape.cols", x.shape.cols, out.cols()};
    return {};
}

/// Checks `y` and that it has the shape of `q`.
template <class S, class T>
NUMFMT_PER_ISA status check_dequantize(const quantized_view<S>& q, matrix_view<T> y) noexcept {
    if (const status s = check_matrix(y, "y", "y.stride"); !s.ok()) return s;
    if (y.shape.rows != q.rows()) return {status_code::shape_mismatch, "y.shape.rows", y.shape.rows, q.rows()};
    if (y.shape.cols != q.cols()) return {status_code::shape_mismatch, "y.shape.cols", y.shape.cols, q.cols()};
    return {};
}

/// Quantizes scale rows [first, last) of `x` into `out`, whose shapes agree.
template <rounding R, class T, class S>
NUMFMT_PER_ISA NUMFMT_HD constexpr void quantize_scale_rows(matrix_view<T> x, const quantized_view<S>& out,
                                                            tensor_scale tensor, const quantize_options& options,
                                                            int64_t first, int64_t last) noexcept {
    constexpr int bits = scheme_traits<S>::element_bits;
    const int64_t scale_cols = out.scale_shape().cols;
    float scratch[chunk] = {};
    uint8_t codes[chunk] = {};
    for (int64_t i = first; i < last; ++i) {
        for (int64_t j = 0; j < scale_cols; ++j) {
            block_range range;
            for_each_run(x.shape, S::block, i, j, [&](int64_t r, int64_t c, int n) {
                extend<S>(range, as_floats(x.row(r) + c, n, scratch), n);
            });
            const block_scale<S> scale = choose_scale<S>(range, tensor, options);
            out.scale(i, j) = scale.stored;
            if constexpr (S::has_zero_point) pack<4>(&scale.zero_point, 1, out.zero_row(i), j);
            for_each_run(x.shape, S::block, i, j, [&](int64_t r, int64_t c, int n) {
                const uint64_t index =
                    static_cast<uint64_t>(r) * static_cast<uint64_t>(x.shape.cols) + static_cast<uint64_t>(c);
                encode_chunk<S, R>(scale, as_floats(x.row(r) + c, n, scratch), n, codes, options, index);
                pack<bits>(codes, n, out.code_row(r), c);
            });
        }
    }
}

/// Writes the values of scale rows [first, last) of `q` to `y`, whose shapes agree.
template <class S, class T>
NUMFMT_PER_ISA NUMFMT_HD constexpr void dequantize_scale_rows(const quantized_view<S>& q, matrix_view<T> y,
                                                              int64_t first, int64_t last) noexcept {
    using scheme = remove_cv_t<S>;
    constexpr int bits = scheme_traits<scheme>::element_bits;
    const int64_t scale_cols = q.scale_shape().cols;
    float values[chunk] = {};
    uint8_t codes[chunk] = {};
    float tensor_multiplier = 1.0f;
    if constexpr (scheme::has_tensor_scale) {
        if (q.parts().tensor_scale != nullptr) tensor_multiplier = *q.parts().tensor_scale;
    }
    for (int64_t i = first; i < last; ++i) {
        for (int64_t j = 0; j < scale_cols; ++j) {
            uint8_t zero_point = 0;
            if constexpr (scheme::has_zero_point) zero_point = q.zero_point(i, j);
            const auto scale = scale_from_storage<scheme>(q.scale(i, j), zero_point, tensor_multiplier);
            for_each_run(y.shape, scheme::block, i, j, [&](int64_t r, int64_t c, int n) {
                unpack<bits>(q.code_row(r), c, n, codes);
                T* const out = y.row(r) + c;
                if constexpr (is_same_v<T, float>) {
                    decode_chunk<scheme>(scale, codes, n, out);
                } else {
                    decode_chunk<scheme>(scale, codes, n, values);
                    for (int k = 0; k < n; ++k) out[k] = T(values[k]);
                }
            });
        }
    }
}

}  // namespace detail

/// Quantizes the rows x cols matrix `x` (float, bf16 or fp16) into `out`, which must have the same shape: chooses every
/// block's scale by the scheme's rule, stores it, and encodes the elements under the stored scale. Partial blocks at
/// the right and bottom edges use the elements they have. NaN and Inf: see quantize_options::nonfinite. Errors:
/// shape_mismatch, or what is wrong with `x`'s pointer or stride; nothing is written then.
template <rounding R = rounding::nearest_even, class T, class S>
NUMFMT_PER_ISA status quantize(matrix_view<T> x, quantized_view<S> out, const quantize_options& options = {}) noexcept {
    using value = detail::remove_cv_t<T>;
    static_assert(detail::is_tensor_type_v<value>, "numfmt::quantize: the input must be float, bf16 or fp16");
    static_assert(!detail::is_same_v<S, const S>, "numfmt::quantize: the output view is read-only");
    static_assert(!detail::is_scale_rounding(R),
                  "numfmt::quantize: rounding::down, up and nearest_up belong to e8m0; "
                  "choose quantize_options::scale_rule for the scales");
    if (const status s = detail::check_quantize(x, out); !s.ok()) return s;
    detail::tensor_scale tensor;
    if constexpr (S::has_tensor_scale) {
        detail::block_range range;
        detail::extend_by_rows<S>(range, x, 0, x.shape.rows);
        tensor = detail::choose_tensor_scale(range.amax, options.nvfp4_order);
        if (out.parts().tensor_scale != nullptr) *out.parts().tensor_scale = tensor.multiplier;
    }
    detail::quantize_scale_rows<R>(x, out, tensor, options, 0, out.scale_shape().rows);
    return {};
}

/// Quantizes into a new tensor. Throws std::bad_alloc when memory runs out.
template <class S, rounding R = rounding::nearest_even, class T>
NUMFMT_PER_ISA result<quantized_tensor<S>> quantize(matrix_view<T> x, const quantize_options& options = {}) {
    if (const status s = detail::check_matrix(x, "x", "x.stride"); !s.ok()) return {{}, s};
    result<quantized_tensor<S>> t = quantized_tensor<S>::make(x.shape);
    if (t.ok()) t.status = quantize<R>(x, t.value.view(), options);
    return t;
}

/// Writes the values of `q` to the matrix `y` (float, or bf16/fp16 by one more nearest-even rounding) of the same
/// shape. A power-of-two scale is applied exactly; a float scale by one fp32 multiplication. A NaN scale gives NaN.
/// Errors: shape_mismatch, or what is wrong with `y`'s pointer or stride; nothing is written then.
template <class S, class T> NUMFMT_PER_ISA status dequantize(quantized_view<S> q, matrix_view<T> y) noexcept {
    static_assert(detail::is_tensor_type_v<T>, "numfmt::dequantize: the output must be float, bf16 or fp16");
    if (const status s = detail::check_dequantize(q, y); !s.ok()) return s;
    detail::dequantize_scale_rows(q, y, 0, q.scale_shape().rows);
    return {};
}

}  // namespace numfmt
