// SPDX-License-Identifier: MIT
// One instruction set's table of functions for <numfmt/simd.hpp>.
#if defined(NUMFMT_SIMD_IMPLEMENTATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMFMT_SIMD_IMPLEMENTATION_INL_H_
#undef NUMFMT_SIMD_IMPLEMENTATION_INL_H_
#else
#define NUMFMT_SIMD_IMPLEMENTATION_INL_H_
#endif

#include "dequantize-inl.h"
#include "dispatch.hpp"
#include "layernorm-inl.h"
#include "quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numfmt {
namespace simd {
namespace HWY_NAMESPACE {

template <class Format, class Source>
void encode_entry(const void* x, int64_t n, void* codes, rounding r, const encode_options& options, uint64_t seed,
                  uint64_t first) {
    encode_array<Format>(static_cast<const Source*>(x), n, static_cast<typename Format::storage*>(codes), r, options,
                         seed, first);
}
template <class Format, class Target> void decode_entry(const void* codes, int64_t n, void* y) {
    decode_array<Format>(static_cast<const typename Format::storage*>(codes), n, static_cast<Target*>(y));
}
template <class S, class Source> void quantize_entry(const detail::quantize_job& job, const void* view) {
    const matrix_view<const Source> x{static_cast<const Source*>(job.x), job.shape, job.stride};
    const auto& out = *static_cast<const quantized_view<S>*>(view);
    if constexpr (S::block.rows == whole && S::block.cols == whole)
        quantize_rows_under<S>(x, out, job.range, job.rounding, job.options, job.first, job.last);
    else
        quantize_rows<S>(x, out, job.tensor, job.rounding, job.options, job.first, job.last);
}
template <class S, class Target>
void dequantize_entry(const void* view, void* y, matrix_shape shape, int64_t stride, int64_t first, int64_t last) {
    const auto& q = *static_cast<const quantized_view<const S>*>(view);
    dequantize_rows<S>(q, matrix_view<Target>{static_cast<Target*>(y), shape, stride}, first, last);
}
template <class S, class Source>
void range_entry(const void* x, matrix_shape shape, int64_t stride, int64_t first, int64_t last,
                 numfmt::detail::block_range& range) {
    range = range_of_rows<S>(matrix_view<const Source>{static_cast<const Source*>(x), shape, stride}, first, last);
}

template <class X> accumulate::row_statistics statistics_entry(const detail::norm_job& job, int64_t row) {
    return statistics_of<X>(job, row);
}
template <class X, class Y>
void normalise_entry(const detail::norm_job& job, int64_t row, const accumulate::row_statistics& s, int64_t first,
                     int64_t n, void* y) {
    normalise_part<X>(job, row, s, first, n, static_cast<Y*>(y));
}

template <class... Formats> constexpr void fill_formats(detail::dispatch_table& t, type_list<Formats...>) {
    int i = 0;
    const auto fill = [&]<class Format, class... Types>(type_list<Types...>) {
        int k = 0;
        ((t.encode[i][k] = encode_entry<Format, Types>, t.decode[i][k] = decode_entry<Format, Types>, ++k), ...);
        ++i;
    };
    (fill.template operator()<Formats>(detail::tensor_types{}), ...);
}
template <class... Schemes> constexpr void fill_schemes(detail::dispatch_table& t, type_list<Schemes...>) {
    int i = 0;
    const auto fill = [&]<class S, class... Types>(type_list<Types...>) {
        int k = 0;
        ((t.schemes[i].quantize[k] = quantize_entry<S, Types>, t.schemes[i].dequantize[k] = dequantize_entry<S, Types>,
          t.schemes[i].range[k] = range_entry<S, Types>, ++k),
         ...);
        ++i;
    };
    (fill.template operator()<Schemes>(detail::matrix_types{}), ...);
}

template <class... Types> constexpr void fill_norms(detail::dispatch_table& t, type_list<Types...>) {
    int i = 0;
    const auto fill = [&]<class X>() {
        int k = 0;
        t.norms[i].statistics = statistics_entry<X>;
        ((t.norms[i].apply[k] = normalise_entry<X, Types>, ++k), ...);
        ++i;
    };
    (fill.template operator()<Types>(), ...);
}

inline constexpr detail::dispatch_table this_table = [] {
    detail::dispatch_table t{};
    fill_formats(t, all_formats{});
    fill_schemes(t, all_schemes{});
    fill_norms(t, detail::norm_types{});
    return t;
}();

inline const detail::dispatch_table* table() {
    static const detail::dispatch_table t = [] {
        detail::dispatch_table named = this_table;
        named.target = hwy::TargetName(HWY_TARGET);
        return named;
    }();
    return &t;
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace numfmt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
