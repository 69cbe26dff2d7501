// SPDX-License-Identifier: MIT
// Layer normalisation and RMS normalisation on the host, with run-time dispatch: rows in fp32, bf16, fp16 or fp8 to
// rows in those or quantized to a scheme in the same pass. Needs the library numfmt::simd, as <numfmt/simd.hpp> says.
//
//     numfmt::simd::rmsnorm(x, y, {.weight = w, .eps = 1e-6f});
//     numfmt::simd::add_rmsnorm(x, residual, quantized.view(), {.weight = w});   // residual += x; y = norm(residual)
//
// The arithmetic is that of accumulate/normalization.hpp, over 64 chains of sums: one row gives the same bits on every
// target with fused multiply-adds, whatever the number of threads.
#pragma once

#include "../simd.hpp"
#include "norm_job.hpp"

namespace numfmt::simd {

/// A row of cols weights in float, bf16 or fp16; empty, or made from a null pointer: none.
using norm_vector = detail::norm_vector;

struct norm_options {
    norm_vector weight{};  ///< [cols], or none: 1
    norm_vector bias{};    ///< [cols], or none: 0
    float eps =
        1e-5f;  ///< >= 0, added to the variance (RMS: the mean square) inside the root; with 0 a constant row gives 0
    variance_policy variance = variance_policy::two_pass;  ///< not used by RMS
    float* mean = nullptr;                                 ///< out, [rows]: each row's mean (RMS: 0), or null
    float* rstd = nullptr;                                 ///< out, [rows]: 1 / sqrt(variance + eps), or null
};

namespace detail {

// Columns that are normalised into a buffer before they are quantized: a multiple of every block of columns.
inline constexpr int64_t norm_buffer = 2048;

template <class X> status check_norm(matrix_view<X> x, matrix_shape y, const norm_options& o) noexcept {
    if (const status s = numfmt::detail::check_matrix(x, "x", "x.stride"); !s.ok()) return s;
    if (y.rows != x.shape.rows) return {status_code::shape_mismatch, "y.rows", y.rows, x.shape.rows};
    if (y.cols != x.shape.cols) return {status_code::shape_mismatch, "y.cols", y.cols, x.shape.cols};
    if (!(o.eps >= 0 && numfmt::detail::is_finite(o.eps))) {
        // The number as an integer is all that a status can say; NaN and Inf have none.
        return {status_code::out_of_range, "eps", o.eps < 0 && o.eps > -1e9f ? static_cast<int64_t>(o.eps) : -1, 0};
    }
    const auto aligned = [](const void* p, int64_t bytes, const char* name) -> status {
        const auto over = static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes));
        return over == 0 ? status{} : status{status_code::misaligned, name, over, bytes};
    };
    if (o.weight.present())
        if (const status s = aligned(o.weight.data, o.weight.element_bytes(), "weight"); !s.ok()) return s;
    if (o.bias.present())
        if (const status s = aligned(o.bias.data, o.bias.element_bytes(), "bias"); !s.ok()) return s;
    if (const status s = aligned(o.mean, alignof(float), "mean"); !s.ok()) return s;
    return aligned(o.rstd, alignof(float), "rstd");
}

// x + residual where residual.data is not null.
template <class X> status check_residual(matrix_view<X> residual, matrix_shape x) noexcept {
    if (const status s = numfmt::detail::check_matrix(residual, "residual", "residual.stride"); !s.ok()) return s;
    if (residual.shape.rows != x.rows)
        return {status_code::shape_mismatch, "residual.rows", residual.shape.rows, x.rows};
    if (residual.shape.cols != x.cols)
        return {status_code::shape_mismatch, "residual.cols", residual.shape.cols, x.cols};
    return {};
}

// Where a row's values go.
template <class Y> struct plain_output {
    matrix_view<Y> y;
    static constexpr size_t streamed_bytes = sizeof(Y);  // of results that may go around the caches, per element
    matrix_shape shape() const noexcept { return y.shape; }
    status check() const noexcept { return numfmt::detail::check_matrix(y, "y", "y.stride"); }
    void put(const norm_functions& f, const norm_job& job, int64_t row, const accumulate::row_statistics& s) const {
        f.apply[norm_type_index<Y>](job, row, s, 0, job.cols, y.row(row));
    }
};

// Quantized as numfmt::quantize<R> would the normalised row: by way of a buffer that stays in the nearest cache.
template <class S, rounding R> struct quantized_output {
    quantized_view<S> y;
    const quantize_options& options;
    static constexpr size_t streamed_bytes = 0;  // into the buffer
    static constexpr int64_t block = S::block.cols;
    static_assert(S::block.rows == 1 && !S::has_tensor_scale,
                  "numfmt::simd: a normalisation quantizes to schemes with scales of their own for each row");
    static_assert(block == whole || norm_buffer % block == 0);

    matrix_shape shape() const noexcept { return y.shape(); }
    status check() const noexcept { return {}; }

    void put(const norm_functions& f, const norm_job& job, int64_t row, const accumulate::row_statistics& s) const {
        alignas(64) float buffer[norm_buffer];
        const auto normalise = [&](int64_t first) {
            const int64_t n = numfmt::detail::min(norm_buffer, job.cols - first);
            f.apply[norm_type_index<float>](job, row, s, first, n, buffer);
            return n;
        };
        if constexpr (block == whole)
            put_under_one_scale(normalise, buffer, job.cols, row);
        else
            put_blocks(normalise, buffer, job.cols, row);
    }

  private:
    using storage = typename scheme_traits<S>::scale_storage;
    static constexpr int bits = scheme_traits<S>::element_bits;
    static constexpr int float_type = tensor_type_index<float>;

    quantize_options options_at(int64_t row, int64_t first, int64_t cols) const noexcept {
        quantize_options o = options;
        o.offset += static_cast<uint64_t>(row) * static_cast<uint64_t>(cols) + static_cast<uint64_t>(first);
        return o;
    }

    // Schemes with blocks: a buffer holds whole blocks.
    template <class Normalise>
    void put_blocks(const Normalise& normalise, float* values, int64_t cols, int64_t row) const {
        storage scales[norm_buffer / block];
        const bool in_order = y.parts().layout == scale_layout::row_major;
        for (int64_t first = 0; first < cols; first += norm_buffer) {
            const int64_t n = normalise(first), scale0 = first / block;
            view_parts<S> parts;
            parts.codes = y.code_row(row) + first / 8 * bits;
            parts.scales = in_order ? &y.scale(row, scale0) : scales;
            parts.shape = {1, n};
            if constexpr (S::has_zero_point) parts.zeros = y.zero_row(row) + scale0 / 2;
            quantize_part<S>(values, n, parts, {}, options_at(row, first, cols));
            if (in_order) continue;
            for (int64_t j = 0; j < numfmt::detail::ceil_div(n, block); ++j) y.scale(row, scale0 + j) = scales[j];
        }
    }

    // One scale for the row: its range first, then the codes, as a tensor with one scale gets them.
    template <class Normalise>
    void put_under_one_scale(const Normalise& normalise, float* values, int64_t cols, int64_t row) const {
        static_assert(numfmt::detail::is_same_v<S, fp8_per_channel>);
        if (cols == 0) return;
        numfmt::detail::block_range range;
        for (int64_t first = 0; first < cols; first += norm_buffer) {
            const int64_t n = normalise(first);
            numfmt::detail::block_range part;
            dispatch().schemes[scheme_index<S>].range[float_type](values, {1, n}, n, 0, 1, part);
            range = combine(range, part);
        }
        y.scale(row, 0) = numfmt::detail::choose_scale<S>(range, {}, options).stored;
        for (int64_t first = 0; first < cols; first += norm_buffer) {
            const int64_t n = cols <= norm_buffer ? cols : normalise(first);  // else the buffer has it still
            view_parts<fp8_per_tensor> parts;
            parts.codes = y.code_row(row) + first;
            parts.scales = &y.scale(row, 0);
            parts.shape = {1, n};
            quantize_part<fp8_per_tensor>(values, n, parts, range, options_at(row, first, cols));
        }
    }

    template <class Scheme>
    static void quantize_part(const float* values, int64_t n, const view_parts<Scheme>& parts,
                              const numfmt::detail::block_range& range, const quantize_options& o) {
        const quantized_view<Scheme> part = quantized_view<Scheme>::make(parts).value;
        dispatch().schemes[scheme_index<Scheme>].quantize[float_type]({values, {1, n}, n, R, o, {}, range, 0, 1},
                                                                      &part);
    }
};

template <class X, class Output, class E>
status normalise(matrix_view<const X> x, matrix_view<X> residual, const Output& y, const norm_options& o, bool centred,
                 const E& run) {
    if (const status s = check_norm(x, y.shape(), o); !s.ok()) return s;
    if (const status s = y.check(); !s.ok()) return s;
    const matrix_shape shape = x.shape;
    const norm_job all{
        x.data,        x.row_stride(),
        residual.data, residual.row_stride(),
        shape.cols,    0,
        o.weight,      o.bias,
        o.eps,         o.variance,
        centred,       shape.rows * shape.cols * static_cast<int64_t>(Output::streamed_bytes) >= stream_threshold};
    const norm_functions& f = dispatch().norms[norm_type_index<X>];
    const int64_t part = rows_per_task(shape, sizeof(X), 1, run.concurrency());
    run(numfmt::detail::ceil_div(shape.rows, part), [&](int64_t task) {
        norm_job job = all;
        job.last = numfmt::detail::min((task + 1) * part, shape.rows);
        for (int64_t row = task * part; row < job.last; ++row) {
            const accumulate::row_statistics s = f.statistics(job, row);
            if (o.mean != nullptr) o.mean[row] = s.row_mean();
            if (o.rstd != nullptr) o.rstd[row] = s.row_rstd();
            y.put(f, job, row, s);
        }
    });
    return {};
}

}  // namespace detail

/// y = the rows of x, each less its mean and divided by its standard deviation, times weight plus bias. x and y are
/// float, bf16, fp16, fp8_e4m3 or fp8_e5m2 of the same shape, y rounded under its format's default policies; y may be x
/// itself. A row that holds NaN or Inf becomes NaN. Errors: what is wrong with x, y, eps (out_of_range) or the options'
/// arrays; nothing is written then.
template <class X, class Y, executor E = serial_executor>
status layernorm(matrix_view<X> x, matrix_view<Y> y, const norm_options& options = {}, const E& run = {}) {
    using value = numfmt::detail::remove_cv_t<X>;
    return detail::normalise<value>(x, {}, detail::plain_output<Y>{y}, options, true, run);
}
/// As quantize<R>(the normalised rows in fp32, y, how), in one pass; schemes with blocks or one scale per row
/// (fp8_per_channel).
template <rounding R = rounding::nearest_even, class X, class S, executor E = serial_executor>
status layernorm(matrix_view<X> x, quantized_view<S> y, const norm_options& options = {},
                 const quantize_options& how = {}, const E& run = {}) {
    using value = numfmt::detail::remove_cv_t<X>;
    return detail::normalise<value>(x, {}, detail::quantized_output<S, R>{y, how}, options, true, run);
}

/// As layernorm, without a mean: y = x / sqrt(mean(x^2) + eps) * weight + bias. An Inf in a row makes it NaN there and
/// 0 elsewhere, as the arithmetic has it.
template <class X, class Y, executor E = serial_executor>
status rmsnorm(matrix_view<X> x, matrix_view<Y> y, const norm_options& options = {}, const E& run = {}) {
    using value = numfmt::detail::remove_cv_t<X>;
    return detail::normalise<value>(x, {}, detail::plain_output<Y>{y}, options, false, run);
}
template <rounding R = rounding::nearest_even, class X, class S, executor E = serial_executor>
status rmsnorm(matrix_view<X> x, quantized_view<S> y, const norm_options& options = {},
               const quantize_options& how = {}, const E& run = {}) {
    using value = numfmt::detail::remove_cv_t<X>;
    return detail::normalise<value>(x, {}, detail::quantized_output<S, R>{y, how}, options, false, run);
}

/// residual = x + residual, rounded to its type, then y = layernorm(residual). `residual` has x's shape and must not
/// overlap x or y. Errors: as layernorm, and what is wrong with residual.
template <class X, class Y, executor E = serial_executor>
status add_layernorm(matrix_view<X> x, matrix_view<numfmt::detail::remove_cv_t<X>> residual, matrix_view<Y> y,
                     const norm_options& options = {}, const E& run = {}) {
    using value = numfmt::detail::remove_cv_t<X>;
    if (const status s = detail::check_residual(residual, x.shape); !s.ok()) return s;
    return detail::normalise<value>(x, residual, detail::plain_output<Y>{y}, options, true, run);
}
template <rounding R = rounding::nearest_even, class X, class S, executor E = serial_executor>
status add_layernorm(matrix_view<X> x, matrix_view<numfmt::detail::remove_cv_t<X>> residual, quantized_view<S> y,
                     const norm_options& options = {}, const quantize_options& how = {}, const E& run = {}) {
    using value = numfmt::detail::remove_cv_t<X>;
    if (const status s = detail::check_residual(residual, x.shape); !s.ok()) return s;
    return detail::normalise<value>(x, residual, detail::quantized_output<S, R>{y, how}, options, true, run);
}
/// residual = x + residual, rounded to its type, then y = rmsnorm(residual).
template <class X, class Y, executor E = serial_executor>
status add_rmsnorm(matrix_view<X> x, matrix_view<numfmt::detail::remove_cv_t<X>> residual, matrix_view<Y> y,
                   const norm_options& options = {}, const E& run = {}) {
    using value = numfmt::detail::remove_cv_t<X>;
    if (const status s = detail::check_residual(residual, x.shape); !s.ok()) return s;
    return detail::normalise<value>(x, residual, detail::plain_output<Y>{y}, options, false, run);
}
template <rounding R = rounding::nearest_even, class X, class S, executor E = serial_executor>
status add_rmsnorm(matrix_view<X> x, matrix_view<numfmt::detail::remove_cv_t<X>> residual, quantized_view<S> y,
                   const norm_options& options = {}, const quantize_options& how = {}, const E& run = {}) {
    using value = numfmt::detail::remove_cv_t<X>;
    if (const status s = detail::check_residual(residual, x.shape); !s.ok()) return s;
    return detail::normalise<value>(x, residual, detail::quantized_output<S, R>{y, how}, options, false, run);
}

}  // namespace numfmt::simd
