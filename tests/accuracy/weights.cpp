// SPDX-License-Identifier: MIT
// Measuring by bands of rows: the same bits as the whole tensor at once, clip ranges by hand, the product norm.
#include <numfmt/accuracy/inputs.hpp>
#include <numfmt/accuracy/weights.hpp>
#include <numfmt/numfmt.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

using namespace numfmt;
using namespace numfmt::accuracy;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_weights(matrix_shape shape, std::uint64_t seed = 3) {
    std::vector<float> x(static_cast<std::size_t>(shape.rows * shape.cols));
    fill(distribution::laplace, seed, 0, x.data(), shape.rows * shape.cols, 0.05);
    return x;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// All of a tensor through measure_band in bands of `step` rows.
template <class S, rounding R>
std::vector<float> by_bands(const std::vector<float>& x, matrix_shape shape, std::int64_t step,
                            const quantize_options& options, error_metrics& metrics) {
    tensor_range range;
    if (needs_tensor_range<S>) range.add(x.data(), shape.rows * shape.cols);
    std::vector<float> y(x.size());
    for (std::int64_t r = 0; r < shape.rows; r += step) {
        const matrix_shape band{std::min(step, shape.rows - r), shape.cols};
        const status s = measure_band<S, R>({x.data() + r * shape.cols, band, 0}, r, range, options,
                                            {y.data() + r * shape.cols, band, 0}, metrics);
        REQUIRE(s.ok());
    }
    return y;
}

template <class S, rounding R>
void check_bands(const std::vector<float>& x, matrix_shape shape, const quantize_options& options) {
    CAPTURE(S::name);
    const auto q = quantize<S, R>(matrix_view<const float>{x.data(), shape, 0}, options);
    REQUIRE(q.ok());
    std::vector<float> whole_at_once(x.size());
    REQUIRE(dequantize(q.value.view(), matrix_view<float>{whole_at_once.data(), shape, 0}).ok());
    error_metrics reference;
    reference.add(x.data(), whole_at_once.data(), shape.rows * shape.cols);

    error_metrics one_band, bands;
    CHECK(same_bits(by_bands<S, R>(x, shape, shape.rows, options, one_band), whole_at_once));
    CHECK(same_bits(by_bands<S, R>(x, shape, 128, options, bands), whole_at_once));
    for (const error_metrics& m : {one_band, bands}) {
        CHECK(m.count == reference.count);
        CHECK(m.lost == reference.lost);
        CHECK(m.replaced == reference.replaced);
        CHECK(m.flushed == reference.flushed);
        CHECK(m.max_relative() == reference.max_relative());
        CHECK(m.noise() == doctest::Approx(reference.noise()).epsilon(1e-13));
    }
    CHECK(one_band.clipped == bands.clipped);
}

template <class S> clip_range clip_of(const std::vector<float>& x, quantize_options options = {}) {
    const matrix_shape shape{1, static_cast<std::int64_t>(x.size())};
    const auto q = quantize<S>(matrix_view<const float>{x.data(), shape, 0}, options);
    REQUIRE(q.ok());
    const quantized_tensor<S>& tensor = q.value;
    return block_clip_range<S>(tensor.view(), 0, 0);
}

}  // namespace

TEST_CASE("weights: bands give the bits of the whole tensor, for every scheme") {
    const matrix_shape shape{300, 200};  // partial blocks at both edges, a partial band
    const std::vector<float> x = random_weights(shape);
    quantize_options options;
    options.seed = 11;
    options.offset = 5;
    for_each(all_schemes{}, [&]<class S>() {
        check_bands<S, rounding::nearest_even>(x, shape, options);
        check_bands<S, rounding::stochastic>(x, shape, options);
    });
}

TEST_CASE("weights: bands give the bits of the whole tensor where values are not finite") {
    const matrix_shape shape{260, 96};
    std::vector<float> x = random_weights(shape);
    x[5] = not_a_number;
    x[140 * 96 + 90] = -inf;
    for (const nonfinite rule : {nonfinite::propagate, nonfinite::saturate}) {
        quantize_options options;
        options.nonfinite = rule;
        for_each(all_schemes{}, [&]<class S>() { check_bands<S, rounding::nearest_even>(x, shape, options); });
    }
}

TEST_CASE("weights: a single column, and a tensor of NaN") {
    const std::vector<float> x = random_weights({200, 1});
    for_each(all_schemes{}, [&]<class S>() { check_bands<S, rounding::nearest_even>(x, {200, 1}, {}); });
    const std::vector<float> nans(150 * 40, not_a_number);
    for_each(all_schemes{}, [&]<class S>() { check_bands<S, rounding::nearest_even>(nans, {150, 40}, {}); });
}

TEST_CASE("weights: the range of a tensor is needed, and used, where one scale covers it") {
    CHECK(needs_tensor_range<fp8_per_tensor>);
    CHECK_FALSE(needs_tensor_range<fp8_per_channel>);
    CHECK_FALSE(needs_tensor_range<mxfp4>);
    CHECK(band_alignment<block_fp8_128x128> == 128);

    // 1 under a tensor scale of 448 / 448 and under one of 1 / 448: 1.0625 rounds to 1 (step 1/8) or is exact (step
    // 1/448).
    const float x[] = {1.0625f, 1, 1, 1};
    float y[4];
    tensor_range range;
    range.add(x, 4);
    const float far[] = {-448};
    range.add(far, 1);
    error_metrics m;
    REQUIRE(measure_band<fp8_per_tensor>({x, {1, 4}, 0}, 0, range, {}, {y, {1, 4}, 0}, m).ok());
    CHECK(y[0] == 1);
    CHECK(m.count == 4);  // the rows that carry the range are not measured
}

TEST_CASE("weights: ranges merge in any order") {
    tensor_range a, b, none;
    const float low[] = {-3, 2}, high[] = {not_a_number, 7};
    a.add(low, 2);
    b.add(high, 2);
    CHECK(a.low == -3);
    CHECK(b.low == 7);
    CHECK(b.any_nonfinite);
    tensor_range ab = a, ba = b;
    ab.merge(b);
    ab.merge(none);
    ba.merge(none);
    ba.merge(a);
    for (const tensor_range& r : {ab, ba}) {
        CHECK(r.low == -3);
        CHECK(r.high == 7);
        CHECK(r.any_finite);
        CHECK(r.any_nonfinite);
    }
}

TEST_CASE("weights: a misplaced band is refused") {
    const std::vector<float> x = random_weights({128, 8});
    std::vector<float> y(x.size());
    error_metrics m;
    const matrix_view<const float> band{x.data(), {128, 8}, 0};
    const matrix_view<float> out{y.data(), {128, 8}, 0};
    const status s = measure_band<block_fp8_128x128>(band, 100, {}, {}, out, m);
    CHECK(s.code == status_code::out_of_range);
    CHECK(std::strcmp(s.argument, "first_row") == 0);
    CHECK(s.got == 100);
    CHECK(measure_band<mxfp4>(band, -1, {}, {}, out, m).code == status_code::out_of_range);
    CHECK(measure_band<mxfp4>(band, 100, {}, {}, {y.data(), {127, 8}, 0}, m).code == status_code::shape_mismatch);
    CHECK(measure_band_unscaled<bf16>(band, -1, {}, {}, out, m).code == status_code::out_of_range);
    CHECK(measure_band_unscaled<bf16>(band, 0, {}, {}, {y.data(), {128, 7}, 0}, m).code == status_code::shape_mismatch);
    CHECK(m.count == 0);
}

TEST_CASE("weights: clip ranges by hand") {
    // E4M3 above 448 has a step of 32, so that 464 still rounds to 448. amax 448 * 8 with the fp32 scale 8.
    clip_range c = clip_of<block_fp8_1x128>({448 * 8, -1, 0});
    CHECK(c.high == 464 * 8);
    CHECK(c.low == -464 * 8);
    // E2M1: largest 6, step 2: 7. amax 7.9 under the floor rule has scale 1, under round_up scale 2.
    c = clip_of<mxfp4>({7.9f, 0, 0});
    CHECK(c.high == 7);
    CHECK(c.low == -7);
    quantize_options up;
    up.scale_rule = scale_rule::round_up;
    CHECK(clip_of<mxfp4>({7.9f, 0, 0}, up).high == 14);
    // E5M2: largest 57344, step 8192.
    CHECK(clip_of<mxfp8_e5m2>({57344, 0, 0}).high == 61440);
    // int4: 0 .. 15 has scale 1 and zero point 0, half a step more on both sides.
    c = clip_of<awq_int4>({0, 15, 3});
    CHECK(c.low == -0.5);
    CHECK(c.high == 15.5);
    // -5 .. 10: zero point 5.
    c = clip_of<awq_int4>({-5, 10, 3});
    CHECK(c.low == -5.5);
    CHECK(c.high == 10.5);
    // A poisoned block clips nothing.
    c = clip_of<mxfp4>({not_a_number, 100, 0});
    error_metrics m;
    const float x = 100, y = not_a_number;
    m.add(&x, &y, 1, c);
    CHECK(m.clipped == 0);
    CHECK(m.lost == 1);
}

TEST_CASE("weights: clipped counts saturated weights") {
    // Scale 1 under the floor rule: 7.5 and -7.9 clip, 7 and 6 do not.
    std::vector<float> x = {7.5f, -7.9f, 7, 6, 0.1f, 0};
    std::vector<float> y(6);
    const matrix_view<const float> band{x.data(), {1, 6}, 0};
    const matrix_view<float> out{y.data(), {1, 6}, 0};
    error_metrics floor, up;
    REQUIRE(measure_band<mxfp4>(band, 0, {}, {}, out, floor).ok());
    CHECK(y[0] == 6);
    CHECK(y[1] == -6);
    CHECK(floor.clipped == 2);
    CHECK(floor.flushed == 1);
    quantize_options options;
    options.scale_rule = scale_rule::round_up;
    REQUIRE(measure_band<mxfp4>(band, 0, {}, options, out, up).ok());
    CHECK(up.clipped == 0);
}

TEST_CASE("weights: a format without a scale") {
    const float x[] = {1, 464, 465, -1000, 0x1p-11f, inf, not_a_number};
    float y[7];
    const matrix_view<const float> band{x, {1, 7}, 0};
    const matrix_view<float> out{y, {1, 7}, 0};
    error_metrics m;
    REQUIRE(measure_band_unscaled<fp8_e4m3>(band, 0, {}, {}, out, m).ok());
    CHECK(y[0] == 1);
    CHECK(y[1] == 448);
    CHECK(y[2] == 448);
    CHECK(y[3] == -448);
    CHECK(y[4] == 0);
    CHECK(std::isnan(y[5]));  // propagate: E4M3 has no Inf
    CHECK(std::isnan(y[6]));
    CHECK(m.clipped == 2);
    CHECK(m.flushed == 1);
    CHECK(m.nan == 1);
    CHECK(m.infinite == 1);
    CHECK(m.replaced == 0);

    quantize_options saturate;
    saturate.nonfinite = nonfinite::saturate;
    error_metrics s;
    REQUIRE(measure_band_unscaled<fp8_e4m3>(band, 0, {}, saturate, out, s).ok());
    CHECK(y[5] == 448);
    CHECK(s.replaced == 1);

    const float large[] = {65519, 65520, -1e9f};
    error_metrics f, g;
    REQUIRE(measure_band_unscaled<fp16>({large, {1, 3}, 0}, 0, {}, {}, {y, {1, 3}, 0}, f).ok());
    CHECK(y[0] == 65504);
    CHECK(f.lost == 2);  // fp16 overflows to Inf unless told to saturate
    CHECK(f.clipped == 1);
    REQUIRE(measure_band_unscaled<fp16>({large, {1, 3}, 0}, 0, {}, saturate, {y, {1, 3}, 0}, g).ok());
    CHECK(y[2] == -65504);
    CHECK(g.lost == 0);
}

TEST_CASE("weights: the rounding is passed on") {
    const float x[] = {1.75f, 2.5f, -2.5f, 3};
    float y[4];
    error_metrics m;
    REQUIRE(measure_band_unscaled<fp4_e2m1, rounding::toward_zero>({x, {1, 4}, 0}, 0, {}, {}, {y, {1, 4}, 0}, m).ok());
    CHECK(y[0] == 1.5f);
    REQUIRE(measure_band_unscaled<fp4_e2m1, rounding::nearest_away>({x, {1, 4}, 0}, 0, {}, {}, {y, {1, 4}, 0}, m).ok());
    CHECK(y[1] == 3);
    REQUIRE(measure_band<mxfp4, rounding::nearest_to_zero>({x, {1, 4}, 0}, 0, {}, {}, {y, {1, 4}, 0}, m).ok());
    CHECK(y[0] == 1.5f);  // amax 3 has scale 1/2: 3.5 lies between 3 and 4, whose code is even
    REQUIRE(measure_band<mxfp4>({x, {1, 4}, 0}, 0, {}, {}, {y, {1, 4}, 0}, m).ok());
    CHECK(y[0] == 2);
    CHECK(y[2] == -2);  // 5 lies between 4, whose code is even, and 6
    REQUIRE(measure_band<mxfp4, rounding::nearest_away>({x, {1, 4}, 0}, 0, {}, {}, {y, {1, 4}, 0}, m).ok());
    CHECK(y[2] == -3);
}

TEST_CASE("weights: product norm by hand, for any number of tokens") {
    // M = [[1, 2], [3, -1]], token t = (t + 1, 1): the outputs are t + 3 and 3t + 2.
    const double m[] = {1, 2, 3, -1};
    for (std::int64_t tokens = 0; tokens <= 9; ++tokens) {
        std::vector<double> x;
        double wanted = 0;
        for (std::int64_t t = 0; t < tokens; ++t) {
            x.push_back(static_cast<double>(t + 1));
            x.push_back(1);
            wanted += static_cast<double>((t + 3) * (t + 3) + (3 * t + 2) * (3 * t + 2));
        }
        CHECK(squared_product_norm({m, {2, 2}, 0}, {x.data(), {tokens, 2}, 0}) == wanted);
    }
}
