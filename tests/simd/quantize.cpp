// SPDX-License-Identifier: MIT
// numfmt::simd::quantize and dequantize against the reference: every scheme, every policy, every target of the CPU.
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <numfmt/simd/thread_executor.hpp>

#include "inputs.hpp"
#include "targets.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

constexpr matrix_shape shapes[] = {{1, 1},     {3, 31}, {2, 32}, {2, 1024}, {5, 1100},
                                   {130, 200}, {0, 5},  {4, 0},  {1, 4101}};

// Options number `i` of a set that takes every value of every axis.
quantize_options options_of(int i) {
    quantize_options o;
    o.scale_rule = static_cast<scale_rule>(i % 4);
    o.nonfinite = static_cast<nonfinite>(i / 4 % 2);
    o.int4_range = static_cast<int4_range>(i % 2);
    o.int4_symmetric_range = static_cast<int4_symmetric_range>(i % 3);
    o.division = static_cast<scale_division>(i % 2);
    o.nvfp4_order = static_cast<nvfp4_order>(i % 2);
    o.seed = 7;
    o.offset = static_cast<std::uint64_t>(3 + i);
    if (i % 4 == 3) {
        o.amax_floor = 1e-4f;
        o.element.drop_negative_zero = true;
    }
    if (i % 8 == 6) o.element.nan = nan_mode::keep_sign;
    return o;
}

template <class S> bool same_tensor(const quantized_tensor<S>& a, const quantized_tensor<S>& b) {
    const auto p = a.view().parts(), q = b.view().parts();
    const matrix_shape shape = a.shape(), scales = a.view().scale_shape();
    const auto equal = [](const void* x, const void* y, std::int64_t bytes) {
        return bytes == 0 || std::memcmp(x, y, static_cast<std::size_t>(bytes)) == 0;
    };
    bool same = equal(p.codes, q.codes, shape.rows * scheme_traits<S>::code_row_bytes(shape.cols)) &&
                equal(p.scales, q.scales, scales.rows * scales.cols * static_cast<std::int64_t>(sizeof *p.scales));
    if constexpr (S::has_zero_point)
        same = same && equal(p.zeros, q.zeros, scales.rows * scheme_traits<S>::zero_row_bytes(scales.cols));
    if constexpr (S::has_tensor_scale) same = same && equal(p.tensor_scale, q.tensor_scale, 4);
    return same;
}

template <class T> int differences(const std::vector<T>& a, const std::vector<T>& b) {
    int wrong = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const float x = static_cast<float>(a[i]), y = static_cast<float>(b[i]);
        wrong += std::isnan(x) ? !std::isnan(y) : std::memcmp(&x, &y, sizeof x) != 0;
    }
    return wrong;
}

template <class S, class T, rounding R> void compare(matrix_shape shape, data kind, const quantize_options& options) {
    const std::vector<T> x = converted<T>(matrix(shape.rows, shape.cols, kind));
    const matrix_view<const T> view{x.data(), shape};
    const auto expected = quantize<S, R>(view, options).value;
    std::vector<T> values(x.size()), y(x.size());
    REQUIRE(dequantize(expected.view(), matrix_view<T>{values.data(), shape}).ok());
    for_each_target([&] {
        INFO(std::string(S::name));
        CAPTURE(shape.rows);
        CAPTURE(shape.cols);
        CAPTURE(static_cast<int>(kind));
        const auto q = simd::quantize<S, R>(view, options);
        REQUIRE(q.ok());
        CHECK(same_tensor(q.value, expected));
        REQUIRE(simd::dequantize(expected.view(), matrix_view<T>{y.data(), shape}).ok());
        CHECK(differences(values, y) == 0);
    });
}

}  // namespace

TEST_CASE("simd quantize: every scheme equals the reference, from floats") {
    for_each(all_schemes{}, []<class S>() {
        for (const matrix_shape shape : shapes) {
            for (const data kind : all_data) {
                for (int i = 0; i < (reduced ? 2 : 8); ++i)
                    compare<S, float, rounding::nearest_even>(shape, kind, options_of(i));
            }
        }
    });
}

TEST_CASE("simd quantize: every scheme equals the reference, from bf16 and fp16") {
    for_each(all_schemes{}, []<class S>() {
        for (const data kind : all_data) {
            compare<S, bf16, rounding::nearest_even>({3, 1100}, kind, options_of(static_cast<int>(kind)));
            compare<S, fp16, rounding::nearest_even>({2, 300}, kind, options_of(static_cast<int>(kind)));
        }
    });
}

TEST_CASE("simd quantize: every rounding equals the reference, stochastic included") {
    for_each(all_schemes{}, []<class S>() {
        for (const data kind : all_data) {
            const int i = static_cast<int>(kind);
            compare<S, float, rounding::nearest_away>({3, 1100}, kind, options_of(i));
            compare<S, float, rounding::nearest_to_zero>({3, 1100}, kind, options_of(i));
            compare<S, float, rounding::toward_zero>({3, 1100}, kind, options_of(i));
            compare<S, float, rounding::stochastic>({3, 1100}, kind, options_of(i));
            compare<S, bf16, rounding::stochastic>({3, 1100}, kind, options_of(i));
        }
    });
}

TEST_CASE("simd quantize: strides, scale layouts and offsets into a larger tensor") {
    static constexpr matrix_shape shape{37, 1056};
    const std::vector<float> x = matrix(shape.rows, shape.cols + 3, data::gaussian);
    const matrix_view<const float> view{x.data() + 1, shape, shape.cols + 3};
    for_each(type_list<mxfp4, mxfp8_e4m3, mxfp6_e2m3, nvfp4, block_fp8_1x128>{}, [&]<class S>() {
        for (const scale_layout layout : {scale_layout::row_major, scale_layout::mn_major, scale_layout::tiled_128x4}) {
            using storage = typename scheme_traits<S>::scale_storage;
            const auto run = [&](auto&& quantizer, std::vector<std::uint8_t>& codes, std::vector<storage>& scales,
                                 float& tensor) {
                codes.assign(static_cast<std::size_t>(shape.rows) * 1100 + 5, 0xEE);
                scales.assign(128 * 128, storage(77));
                view_parts<S> parts;
                parts.codes = codes.data() + 5;
                parts.code_stride = 1100;
                parts.scales = scales.data();
                parts.shape = shape;
                parts.layout = layout;
                if constexpr (S::has_tensor_scale) parts.tensor_scale = &tensor;
                const auto out = quantized_view<S>::make(parts);
                REQUIRE(out.ok());
                REQUIRE(quantizer(out.value).ok());
                return out.value;
            };
            std::vector<std::uint8_t> codes, expected_codes;
            std::vector<storage> scales, expected_scales;
            float tensor = 0, expected_tensor = 0;
            const auto q = run([&](quantized_view<S> out) { return quantize(view, out); }, expected_codes,
                               expected_scales, expected_tensor);
            std::vector<float> values(static_cast<std::size_t>(shape.rows * shape.cols)), y(values.size());
            REQUIRE(dequantize(q, matrix_view<float>{values.data(), shape}).ok());
            for_each_target([&] {
                INFO(std::string(S::name));
                run([&](quantized_view<S> out) { return simd::quantize(view, out); }, codes, scales, tensor);
                CHECK(codes == expected_codes);
                CHECK(scales == expected_scales);
                CHECK(tensor == expected_tensor);
                REQUIRE(simd::dequantize(q, matrix_view<float>{y.data(), shape}).ok());
                CHECK(differences(values, y) == 0);
            });
        }
    });
}

TEST_CASE("simd quantize: threads give the bits of one thread") {
    static constexpr matrix_shape shape{300, 1000};
    const std::vector<float> x = matrix(shape.rows, shape.cols, data::hard_blocks);
    const matrix_view<const float> view{x.data(), shape};
    const simd::thread_executor executor(3);
    for_each(all_schemes{}, [&]<class S>() {
        INFO(std::string(S::name));
        const auto expected = quantize<S, rounding::stochastic>(view).value;
        const auto q = simd::quantize<S, rounding::stochastic>(view, {}, executor);
        REQUIRE(q.ok());
        CHECK(same_tensor(q.value, expected));
        std::vector<float> values(x.size()), y(x.size());
        REQUIRE(dequantize(expected.view(), matrix_view<float>{values.data(), shape}).ok());
        REQUIRE(simd::dequantize(expected.view(), matrix_view<float>{y.data(), shape}, executor).ok());
        CHECK(differences(values, y) == 0);
    });
}

TEST_CASE("simd quantize: int4 quotients at and beside ties round as the division does") {
    // Scales that are no powers of two, and elements at half a step: there the product with the reciprocal may round
    // otherwise.
    constexpr matrix_shape shape{400, 128};
    std::vector<float> x(static_cast<std::size_t>(shape.rows * shape.cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / 128, col = i % 128;
        const float step = static_cast<float>(fp16(0.1f + 0.003f * static_cast<float>(row)));
        const float tie = step * (static_cast<float>(col % 15) + 0.5f);
        x[i] = col == 0 ? 0.0f : col == 1 ? step * 15 : std::nextafter(tie, col % 2 == 0 ? 0.0f : 100.0f);
        if (col % 3 == 0 && col > 1) x[i] = tie;
    }
    const matrix_view<const float> view{x.data(), shape};
    const auto expected = quantize<awq_int4>(view).value;
    for_each_target([&] { CHECK(same_tensor(simd::quantize<awq_int4>(view).value, expected)); });
}

#if !defined(NUMFMT_TEST_REDUCED)  // minutes under emulation
TEST_CASE("simd quantize: results past the caches, written around them, are the same") {
    const matrix_shape shape{3300, 4096};
    REQUIRE(shape.rows * shape.cols * 4 > simd::stream_threshold);
    const std::vector<float> x = matrix(shape.rows, shape.cols, data::gaussian);
    const matrix_view<const float> view{x.data(), shape};
    std::vector<float> y(x.size()), values(x.size());
    for_each(type_list<mxfp4, block_fp8_1x128>{}, [&]<class S>() {
        const auto expected = quantize<S>(view).value;
        REQUIRE(dequantize(expected.view(), matrix_view<float>{values.data(), shape}).ok());
        CHECK(same_tensor(simd::quantize<S>(view).value, expected));
        REQUIRE(simd::dequantize(expected.view(), matrix_view<float>{y.data(), shape}).ok());
        CHECK(differences(values, y) == 0);
    });
}

#endif

TEST_CASE("simd quantize: shapes that differ are refused") {
    std::vector<float> x(64);
    auto q = quantized_tensor<mxfp4>::make({1, 32}).value;
    const status s = simd::quantize(matrix_view<const float>{x.data(), {2, 32}}, q.view());
    CHECK(s.code == status_code::shape_mismatch);
    CHECK(std::string_view(s.argument) == "x.shape.rows");
    CHECK(simd::dequantize(q.view(), matrix_view<float>{x.data(), {1, 33}}).code == status_code::shape_mismatch);
    CHECK(simd::quantize(matrix_view<const float>{nullptr, {1, 32}}, q.view()).code == status_code::null_pointer);
}
