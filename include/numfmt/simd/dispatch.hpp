// SPDX-License-Identifier: MIT
// The table of functions behind <numfmt/simd.hpp>: one per instruction set, chosen at run time. No Highway here.
#pragma once

#include "../block/quantize.hpp"
#include "../numfmt.hpp"
#include "norm_job.hpp"

namespace numfmt::simd::detail {

// Position of a type in a type_list; the number of types if it is not there.
template <class T, class List> inline constexpr int index_in = 0;
template <class T, class... Ts>
inline constexpr int index_in<T, type_list<Ts...>> = [] {
    int index = 0, found = static_cast<int>(sizeof...(Ts));
    ((numfmt::detail::is_same_v<T, Ts> ? found = index : 0, ++index), ...);
    return found;
}();

/// What arrays of values may hold, and what matrices the kernels of the schemes take; fp16 matrices go through the
/// reference.
using tensor_types = type_list<float, bf16, fp16>;
using matrix_types = type_list<float, bf16>;

template <class Format> constexpr int checked_format_index() {
    constexpr int i = index_in<Format, all_formats>;
    static_assert(
        i < all_formats::size,
        "numfmt::simd: run-time dispatch has the formats of numfmt::all_formats; for others use the reference "
        "(numfmt::encode, decode) or simd/codec-inl.h");
    return i;
}
template <class S> constexpr int checked_scheme_index() {
    constexpr int i = index_in<S, all_schemes>;
    static_assert(
        i < all_schemes::size,
        "numfmt::simd: run-time dispatch has the schemes of numfmt::all_schemes; for others use the reference "
        "(numfmt::quantize, dequantize) or simd/quantize-inl.h");
    return i;
}
template <class T> constexpr int checked_tensor_type_index() {
    constexpr int i = index_in<numfmt::detail::remove_cv_t<T>, tensor_types>;
    static_assert(i < tensor_types::size, "numfmt::simd: arrays hold float, bf16 or fp16");
    return i;
}
template <class Format> inline constexpr int format_index = checked_format_index<Format>();
template <class S> inline constexpr int scheme_index = checked_scheme_index<S>();
template <class T> inline constexpr int tensor_type_index = checked_tensor_type_index<T>();

using encode_function = void (*)(const void* x, int64_t n, void* codes, rounding, const encode_options&, uint64_t seed,
                                 uint64_t first);
using decode_function = void (*)(const void* codes, int64_t n, void* y);

/// Scale rows [first, last) of a quantization; rows where the tensor has one scale, whose range is then known.
struct quantize_job {
    const void* x;
    matrix_shape shape;
    int64_t stride;
    numfmt::rounding rounding;
    const quantize_options& options;
    numfmt::detail::tensor_scale tensor;
    numfmt::detail::block_range range;
    int64_t first, last;
};

struct scheme_functions {
    void (*quantize[matrix_types::size])(const quantize_job&, const void* view);
    void (*dequantize[matrix_types::size])(const void* view, void* y, matrix_shape, int64_t stride, int64_t first,
                                           int64_t last);
    void (*range[matrix_types::size])(const void* x, matrix_shape, int64_t stride, int64_t first, int64_t last,
                                      numfmt::detail::block_range& range);
};

/// What normalisations read and write without scales.
using norm_types = type_list<float, bf16, fp16, fp8_e4m3, fp8_e5m2>;
template <class T> constexpr int checked_norm_type_index() {
    constexpr int i = index_in<numfmt::detail::remove_cv_t<T>, norm_types>;
    static_assert(i < norm_types::size, "numfmt::simd: a normalisation takes float, bf16, fp16, fp8_e4m3 or fp8_e5m2");
    return i;
}
template <class T> inline constexpr int norm_type_index = checked_norm_type_index<T>();

/// Rows of one type: their statistics, and columns [first, first + n) of one normalised into y of another type.
struct norm_functions {
    accumulate::row_statistics (*statistics)(const norm_job&, int64_t row);
    void (*apply[norm_types::size])(const norm_job&, int64_t row, const accumulate::row_statistics&, int64_t first,
                                    int64_t n, void* y);
};

struct dispatch_table {
    const char* target;
    encode_function encode[all_formats::size][tensor_types::size];
    decode_function decode[all_formats::size][tensor_types::size];
    scheme_functions schemes[all_schemes::size];
    norm_functions norms[norm_types::size];
};

/// The table for the CPU this runs on; defined in the library numfmt::simd.
const dispatch_table& dispatch() noexcept;

/// For tests and benchmarks: the instruction sets that were compiled in and that this CPU has, as Highway's bits, and a
/// restriction to some of them (0: none). Not to be called while another thread uses numfmt::simd.
int64_t usable_targets() noexcept;
void use_targets(int64_t targets) noexcept;

NUMFMT_INLINE status check_arrays(const void* in, const char* in_name, int64_t n, const void* out,
                                  const char* out_name) noexcept {
    if (n < 0) return {status_code::negative_size, "n", n, 0};
    if (n > 0 && in == nullptr) return {status_code::null_pointer, in_name, 0, 0};
    if (n > 0 && out == nullptr) return {status_code::null_pointer, out_name, 0, 0};
    return {};
}

// Work is shared out in pieces of at least 64 KiB, four for each thread, so that no thread waits long for another.
NUMFMT_INLINE int64_t pieces(int64_t n, int64_t bytes_each, int64_t concurrency) noexcept {
    const int64_t smallest = numfmt::detail::ceil_div(int64_t{1} << 16, numfmt::detail::max(bytes_each, int64_t{1}));
    const int64_t even = concurrency > 1 ? numfmt::detail::ceil_div(n, 4 * concurrency) : n;
    return numfmt::detail::max(numfmt::detail::max(smallest, even), int64_t{1});
}
/// Elements of one task: a multiple of 64, so that every task's part of a packed or aligned array begins well.
NUMFMT_INLINE int64_t elements_per_task(int64_t n, size_t bytes, int64_t concurrency) noexcept {
    return numfmt::detail::ceil_div(pieces(n, static_cast<int64_t>(bytes), concurrency), 64) * 64;
}
/// Units (of `unit_rows` rows) of one task.
NUMFMT_INLINE int64_t rows_per_task(matrix_shape shape, size_t bytes, int64_t unit_rows, int64_t concurrency) noexcept {
    const int64_t rows_of_unit = numfmt::detail::min(unit_rows, numfmt::detail::max(shape.rows, int64_t{1}));
    const int64_t units = numfmt::detail::ceil_div(shape.rows, rows_of_unit);
    const int64_t cols = numfmt::detail::max(shape.cols, int64_t{1});
    return pieces(units, rows_of_unit * cols * static_cast<int64_t>(bytes), concurrency);
}

NUMFMT_INLINE numfmt::detail::block_range combine(numfmt::detail::block_range a,
                                                  const numfmt::detail::block_range& b) noexcept {
    a.any = numfmt::detail::max(a.any, b.any);
    a.amax = numfmt::detail::max(a.amax, b.amax);
    a.low = numfmt::detail::min(a.low, b.low);
    a.high = numfmt::detail::max(a.high, b.high);
    return a;
}

}  // namespace numfmt::simd::detail
