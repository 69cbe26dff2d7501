// SPDX-License-Identifier: MIT
// SIMD encode, decode, quantize and dequantize on the host with run-time dispatch: the best instruction set of the CPU
// it runs on, the bits of the reference. Needs the library numfmt::simd (CMake), or in one .cpp of a program that is
// built by hand:
//     #define NUMFMT_SIMD_IMPLEMENTATION
//     #include <numfmt/simd.hpp>
// compiled for a baseline that Highway supports (x86: -march=x86-64-v2) and linked with -lhwy.
#pragma once

#include "numfmt.hpp"
#include "simd/common.hpp"
#include "simd/dispatch.hpp"
#include "simd/executor.hpp"

namespace numfmt::simd {

/// Name of the instruction set in use, as Highway calls it: "AVX2", "AVX3_DL", "NEON", ...
inline const char* target_name() noexcept { return detail::dispatch().target; }

/// Where stochastic rounding draws from: element i of an array uses word (offset + i) & 3 of Philox counter
/// (offset + i) >> 2 under `seed`, whatever the instruction set and the number of threads.
struct random_stream {
    uint64_t seed = 0;
    uint64_t offset = 0;
};

/// codes[i] = encode<Format, R>(x[i], options) for 0 <= i < n; x float, bf16 or fp16; any alignment; the arrays must
/// not overlap. Errors: negative_size (n), null_pointer (x, codes); nothing is written then.
template <float_format Format, rounding R = default_rounding_v<Format>, class Source, executor E = serial_executor>
status encode(const Source* x, int64_t n, typename Format::storage* codes, encode_options options = {},
              random_stream random = {}, const E& run = {}) {
    static_assert(numfmt::detail::rounding_allowed(Format::spec, R),
                  "numfmt::simd::encode: the format has no such rounding");
    if (const status s = detail::check_arrays(x, "x", n, codes, "codes"); !s.ok()) return s;
    const auto f = detail::dispatch().encode[detail::format_index<Format>][detail::tensor_type_index<Source>];
    const int64_t part = detail::elements_per_task(n, sizeof(Source), run.concurrency());
    run(numfmt::detail::ceil_div(n, part), [&](int64_t task) {
        const int64_t i = task * part;
        const int64_t count = numfmt::detail::min(part, n - i);
        f(x + i, count, codes + i, R, options, random.seed, random.offset + static_cast<uint64_t>(i));
    });
    return {};
}

/// y[i] = decode<Format>(codes[i]) for 0 <= i < n: y float (exact), bf16 or fp16 (nearest even where the format's value
/// does not fit). NaN compares as a class. Errors: negative_size (n), null_pointer (codes, y).
template <float_format Format, class Target, executor E = serial_executor>
status decode(const typename Format::storage* codes, int64_t n, Target* y, const E& run = {}) {
    if (const status s = detail::check_arrays(codes, "codes", n, y, "y"); !s.ok()) return s;
    const auto f = detail::dispatch().decode[detail::format_index<Format>][detail::tensor_type_index<Target>];
    const int64_t part = detail::elements_per_task(n, sizeof(Target), run.concurrency());
    run(numfmt::detail::ceil_div(n, part), [&](int64_t task) {
        const int64_t i = task * part;
        f(codes + i, numfmt::detail::min(part, n - i), y + i);
    });
    return {};
}

namespace detail {

// quantize() for the types that have kernels.
template <rounding R, class T, class S, class E>
status quantize_matrix(matrix_view<T> x, quantized_view<S> out, const quantize_options& options, const E& run) {
    using value = numfmt::detail::remove_cv_t<T>;
    if (const status s = numfmt::detail::check_quantize(x, out); !s.ok()) return s;
    constexpr int type = detail::tensor_type_index<value>;
    const detail::scheme_functions& f = detail::dispatch().schemes[detail::scheme_index<S>];
    constexpr bool one_scale = S::block.rows == whole && S::block.cols == whole;
    const int64_t rows = x.shape.rows;
    numfmt::detail::tensor_scale tensor;
    numfmt::detail::block_range range;
    if constexpr (S::has_tensor_scale || one_scale) {
        // One pass over all rows first, whose partial results are combined in any order: maxima.
        constexpr int64_t most = 256;
        const int64_t part = detail::rows_per_task(x.shape, sizeof(value), 1, run.concurrency());
        const int64_t tasks = numfmt::detail::min(numfmt::detail::ceil_div(rows, part), most);
        const int64_t step = tasks > 0 ? numfmt::detail::ceil_div(rows, tasks) : 1;
        numfmt::detail::block_range parts[most];
        run(tasks, [&](int64_t task) {
            const int64_t first = numfmt::detail::min(task * step, rows);
            f.range[type](x.data, x.shape, x.stride, first, numfmt::detail::min(first + step, rows), parts[task]);
        });
        for (int64_t task = 0; task < tasks; ++task) range = detail::combine(range, parts[task]);
    }
    if constexpr (S::has_tensor_scale) {
        tensor = numfmt::detail::choose_tensor_scale(range.amax, options.nvfp4_order);
        if (out.parts().tensor_scale != nullptr) *out.parts().tensor_scale = tensor.multiplier;
    }
    const int64_t scale_rows = out.scale_shape().rows;
    // With a single scale the rows themselves are shared out.
    const int64_t units = one_scale ? rows : scale_rows;
    const int64_t unit_rows = one_scale ? 1 : S::block.rows;
    const int64_t part = detail::rows_per_task(x.shape, sizeof(value), unit_rows, run.concurrency());
    if (one_scale && out.scale_shape().cols > 0 && scale_rows > 0) {
        out.scale(0, 0) = numfmt::detail::choose_scale<S>(range, tensor, options).stored;
    }
    run(numfmt::detail::ceil_div(units, part), [&](int64_t task) {
        const int64_t first = task * part;
        const detail::quantize_job job{
            x.data, x.shape, x.stride, R, options, tensor, range, first, numfmt::detail::min(first + part, units)};
        f.quantize[type](job, &out);
    });
    return {};
}

}  // namespace detail

/// As numfmt::quantize<R>(x, out, options), for every scheme of all_schemes; x float or bf16 (fp16: by the reference).
template <rounding R = rounding::nearest_even, class T, class S, executor E = serial_executor>
status quantize(matrix_view<T> x, quantized_view<S> out, const quantize_options& options = {}, const E& run = {}) {
    using value = numfmt::detail::remove_cv_t<T>;
    static_assert(!numfmt::detail::is_same_v<S, const S>, "numfmt::simd::quantize: the output view is read-only");
    static_assert(!numfmt::detail::is_scale_rounding(R),
                  "numfmt::simd::quantize: choose quantize_options::scale_rule instead");
    if constexpr (numfmt::detail::is_same_v<value, fp16>) {
        return numfmt::quantize<R>(x, out, options);
    } else {
        return detail::quantize_matrix<R>(x, out, options, run);
    }
}

/// Quantizes into a new tensor. Throws std::bad_alloc when memory runs out.
template <class S, rounding R = rounding::nearest_even, class T, executor E = serial_executor>
result<quantized_tensor<S>> quantize(matrix_view<T> x, const quantize_options& options = {}, const E& run = {}) {
    if (const status s = numfmt::detail::check_matrix(x, "x", "x.stride"); !s.ok()) return {{}, s};
    result<quantized_tensor<S>> t = quantized_tensor<S>::make(x.shape);
    if (t.ok()) t.status = quantize<R>(x, t.value.view(), options, run);
    return t;
}

/// As numfmt::dequantize(q, y), for every scheme of all_schemes; y float or bf16 (fp16: by the reference).
template <class S, class T, executor E = serial_executor>
status dequantize(quantized_view<S> q, matrix_view<T> y, const E& run = {}) {
    using scheme = numfmt::detail::remove_cv_t<S>;
    if constexpr (numfmt::detail::is_same_v<T, fp16>) {
        return numfmt::dequantize(q, y);
    } else {
        if (const status s = numfmt::detail::check_dequantize(q, y); !s.ok()) return s;
        const quantized_view<const scheme> view = q;
        const auto f =
            detail::dispatch().schemes[detail::scheme_index<scheme>].dequantize[detail::tensor_type_index<T>];
        constexpr bool one_row = scheme::block.rows == whole;
        const int64_t units = one_row ? y.shape.rows : q.scale_shape().rows;
        const int64_t part =
            detail::rows_per_task(y.shape, sizeof(T), one_row ? 1 : scheme::block.rows, run.concurrency());
        run(numfmt::detail::ceil_div(units, part), [&](int64_t task) {
            const int64_t first = task * part;
            f(&view, y.data, y.shape, y.stride, first, numfmt::detail::min(first + part, units));
        });
        return {};
    }
}

}  // namespace numfmt::simd

#if defined(NUMFMT_SIMD_IMPLEMENTATION)
#include "simd/implementation.hpp"
#endif
