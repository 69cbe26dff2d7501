// SPDX-License-Identifier: MIT
// Runs quantize and dequantize of one scheme against the oracle over shapes, data, layouts, strides and sources, and
// compares every byte of every buffer, the padding and the surroundings included.
#pragma once

#include <numfmt/numfmt.hpp>

#include <string>
#include <tuple>
#include <type_traits>

#include "support/block_oracle.hpp"

namespace block_test {

using numfmt::matrix_shape;
using numfmt::matrix_view;
using numfmt::quantized_view;
using numfmt::rounding;
using numfmt::scale_layout;
using numfmt::status;

/// The arrays of a view without their types.
struct raw_parts {
    void* codes;
    void* scales;
    void* zeros;
    float* tensor_scale;
    matrix_shape shape;
    std::int64_t code_stride, scale_stride, zero_stride;
    scale_layout layout;
};

template <class S> numfmt::result<quantized_view<S>> make_view(const raw_parts& p) {
    numfmt::view_parts<S> parts;
    parts.codes = static_cast<std::uint8_t*>(p.codes);
    parts.scales = static_cast<typename numfmt::scheme_traits<S>::scale_storage*>(p.scales);
    if constexpr (S::has_zero_point) parts.zeros = static_cast<std::uint8_t*>(p.zeros);
    parts.tensor_scale = p.tensor_scale;
    parts.shape = p.shape;
    parts.code_stride = p.code_stride;
    parts.scale_stride = p.scale_stride;
    parts.zero_stride = p.zero_stride;
    parts.layout = p.layout;
    return quantized_view<S>::make(parts);
}

template <class S, rounding R, class T>
status run_quantize(const void* x, std::int64_t stride, const raw_parts& p, const numfmt::quantize_options& o) {
    const auto view = make_view<S>(p);
    if (!view.ok()) return view.status;
    return numfmt::quantize<R>(matrix_view<const T>{static_cast<const T*>(x), p.shape, stride}, view.value, o);
}
template <class S, class T> status run_dequantize(const raw_parts& p, void* y, std::int64_t stride) {
    const auto view = make_view<S>(p);
    if (!view.ok()) return view.status;
    return numfmt::dequantize(view.value, matrix_view<T>{static_cast<T*>(y), p.shape, stride});
}

enum class source { fp32, bf16, fp16 };

/// One function to test: a scheme at one rounding and one source type.
struct subject {
    block_oracle::scheme_facts facts;
    rounding r;
    source type;
    status (*quantize)(const void*, std::int64_t, const raw_parts&, const numfmt::quantize_options&);
    status (*dequantize)(const raw_parts&, void*, std::int64_t);
};

template <class S, rounding R, class T, source Type> subject make_subject() {
    return {block_oracle::facts_of(S::name), R, Type, &run_quantize<S, R, T>, &run_dequantize<S, T>};
}

/// Compares over all shapes; empty, or the first difference in words.
std::string compare_with_oracle(const subject& s);

template <class... Subjects> std::string compare_all(const Subjects&... subjects) {
    std::string difference;
    ((difference = difference.empty() ? compare_with_oracle(subjects) : difference), ...);
    return difference;
}

/// Every rounding over float, and the 16-bit sources under some of them.
template <class S> std::string compare_scheme() {
    using enum rounding;
    return compare_all(
        make_subject<S, nearest_even, float, source::fp32>(), make_subject<S, nearest_away, float, source::fp32>(),
        make_subject<S, nearest_to_zero, float, source::fp32>(), make_subject<S, toward_zero, float, source::fp32>(),
        make_subject<S, stochastic, float, source::fp32>(), make_subject<S, nearest_even, numfmt::bf16, source::bf16>(),
        make_subject<S, toward_zero, numfmt::bf16, source::bf16>(),
        make_subject<S, nearest_even, numfmt::fp16, source::fp16>(),
        make_subject<S, stochastic, numfmt::fp16, source::fp16>());
}

/// The default rounding and the random one: for schemes that only vary a parameter of another.
template <class S> std::string compare_scheme_briefly() {
    using enum rounding;
    return compare_all(make_subject<S, nearest_even, float, source::fp32>(),
                       make_subject<S, stochastic, numfmt::bf16, source::bf16>());
}

/// The schemes of all_schemes by what their scales are, a part for each oracle_*.cpp: together they are all of them.
enum class part { float_scale, power_of_two, two_level, int4 };
template <class S> constexpr part part_of() {
    if (S::has_tensor_scale) return part::two_level;
    if (S::has_zero_point || requires { S::fixed_zero_point; }) return part::int4;
    return numfmt::scheme_traits<S>::power_of_two_scale ? part::power_of_two : part::float_scale;
}
namespace detail {
template <part P, class List> struct schemes_of;
template <part P, class... Ss> struct schemes_of<P, numfmt::type_list<Ss...>> {
    using type =
        decltype(std::tuple_cat(std::conditional_t < part_of<Ss>() == P, std::tuple<Ss>, std::tuple < >> {}...));
};
}  // namespace detail
template <part P> using schemes_of = typename detail::schemes_of<P, numfmt::all_schemes>::type;

}  // namespace block_test
