// SPDX-License-Identifier: MIT
// Scales searched for the least weighted squared error.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include <numfmt/calibrate/mse_search.hpp>
#include <numfmt/numfmt.hpp>

using namespace numfmt;

namespace {

constexpr matrix_shape shape{6, 300};

std::vector<float> bell(std::uint64_t seed) {
    std::vector<float> x(static_cast<std::size_t>(shape.rows * shape.cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const philox_block w = random_words(seed, i);
        float sum = 0;
        for (const std::uint32_t v : w.word) sum += static_cast<float>(static_cast<std::int32_t>(v)) * 0x1p-31f;
        x[i] = sum;
    }
    return x;
}

template <class S>
double weighted_error(const quantized_tensor<S>& q, const std::vector<float>& x, const std::vector<float>& w) {
    std::vector<float> y(x.size());
    REQUIRE(dequantize(q.view(), matrix_view<float>{y.data(), shape}).ok());
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double d = static_cast<double>(x[i]) - static_cast<double>(y[i]);
        sum += d * d * static_cast<double>(w[i % static_cast<std::size_t>(shape.cols)]);
    }
    return sum;
}

template <class S> quantized_tensor<S> search(const std::vector<float>& x, const float* importance) {
    auto q = quantized_tensor<S>::make(shape).value;
    REQUIRE(calibrate::quantize_least_squares(matrix_view<const float>{x.data(), shape}, importance, q.view()).ok());
    return q;
}

template <class S> bool same(const quantized_tensor<S>& a, const quantized_tensor<S>& b) {
    const auto p = a.view().parts(), q = b.view().parts();
    const matrix_shape scales = a.view().scale_shape();
    return std::memcmp(p.codes, q.codes,
                       static_cast<std::size_t>(shape.rows * scheme_traits<S>::code_row_bytes(shape.cols))) == 0 &&
           std::memcmp(p.scales, q.scales, static_cast<std::size_t>(scales.rows * scales.cols) * sizeof *p.scales) == 0;
}

using searched = type_list<mxfp4, mxfp8_e4m3, mxint8, mxfp6_e2m3, block_fp8_1x128, int4_symmetric<32>, awq_int4>;

}  // namespace

TEST_CASE("mse search: never worse than the rule, and better somewhere") {
    const std::vector<float> x = bell(3), ones(static_cast<std::size_t>(shape.cols), 1.0f);
    for_each(searched{}, [&]<class S>() {
        CAPTURE(S::name);
        const auto rule = quantize<S>(matrix_view<const float>{x.data(), shape}).value;
        CHECK(weighted_error(search<S>(x, nullptr), x, ones) <= weighted_error(rule, x, ones));
    });
    // The floor rule saturates the largest element of some blocks of MXFP4, and a clipped int4 range is finer.
    const auto gain = [&]<class S>() {
        return weighted_error(quantize<S>(matrix_view<const float>{x.data(), shape}).value, x, ones) /
               weighted_error(search<S>(x, nullptr), x, ones);
    };
    CHECK(gain.operator()<mxfp4>() > 1.01);
    CHECK(gain.operator()<int4_symmetric<32>>() > 1.01);
}

TEST_CASE("mse search: weights move the error to where they are small") {
    const std::vector<float> x = bell(4);
    std::vector<float> weights(static_cast<std::size_t>(shape.cols));
    for (std::size_t c = 0; c < weights.size(); ++c) weights[c] = c % 4 == 0 ? 100.0f : 0.01f;
    const auto plain = search<mxfp4>(x, nullptr), weighted = search<mxfp4>(x, weights.data());
    CHECK(weighted_error(weighted, x, weights) < weighted_error(plain, x, weights));
    const std::vector<float> ones(weights.size(), 1.0f);
    CHECK(weighted_error(weighted, x, ones) > weighted_error(plain, x, ones));
}

TEST_CASE("case 35: importance weights that are all zero in a block count as equal (llama.cpp #8661)") {
    const std::vector<float> x = bell(5);
    for_each(searched{}, [&]<class S>() {
        CAPTURE(S::name);
        const std::vector<float> zeros(static_cast<std::size_t>(shape.cols), 0.0f);
        const auto plain = search<S>(x, nullptr), zero = search<S>(x, zeros.data());
        CHECK(same(plain, zero));
        std::vector<float> y(x.size());
        REQUIRE(dequantize(zero.view(), matrix_view<float>{y.data(), shape}).ok());
        for (const float v : y) REQUIRE(std::isfinite(v));
        // In one block only: that one equals the unweighted one.
        std::vector<float> some(zeros.size(), 2.0f);
        for (std::size_t c = 0; c < static_cast<std::size_t>(S::block.cols); ++c) some[c] = 0;
        CHECK(search<S>(x, some.data()).view().scale(0, 0) == plain.view().scale(0, 0));
    });
}

TEST_CASE("mse search: NaN blocks stay NaN, bad weights are named") {
    std::vector<float> x = bell(6);
    x[5] = std::numeric_limits<float>::quiet_NaN();
    const auto q = search<mxfp4>(x, nullptr);
    CHECK(q.view().scale(0, 0) == 0xFF);
    CHECK(q.view().scale(0, 1) != 0xFF);

    auto out = quantized_tensor<mxfp4>::make(shape).value;
    const matrix_view<const float> view{x.data(), shape};
    std::vector<float> weights(static_cast<std::size_t>(shape.cols), 1.0f);
    for (const float bad : {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        weights[7] = bad;
        const status s = calibrate::quantize_least_squares(view, weights.data(), out.view());
        CHECK(s.code == status_code::out_of_range);
        CHECK(std::string_view(s.argument) == "importance");
        CHECK(s.got == 7);
    }
    CHECK(out.view().scale(0, 1) == 0);
}
