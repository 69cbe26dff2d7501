// SPDX-License-Identifier: MIT
// What a KV cache gives back: the codec's own numbers, and each of their two errors switched off.
#include <numfmt/accuracy/inputs.hpp>
#include <numfmt/accuracy/kv_cache.hpp>
#include <numfmt/numfmt.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace numfmt;
using namespace numfmt::accuracy;

namespace {

constexpr matrix_shape shape{5, 96};
constexpr storage_effects both{}, only_clipping{false, true}, only_rounding{true, false}, neither{false, false};

std::vector<float> tokens(std::uint64_t seed) {
    std::vector<float> x(static_cast<std::size_t>(shape.rows * shape.cols));
    fill(distribution::laplace, seed, 0, x.data(), shape.rows * shape.cols, 3);
    return x;
}

std::vector<float> stored(kv_format format, const std::vector<float>& x, const std::vector<float>& scale,
                          storage_effects effects, matrix_shape s = shape) {
    std::vector<float> y(x.size(), 1e30f);
    REQUIRE(store_kv(format, {x.data(), s, 0}, scale.data(), effects, {y.data(), s, 0}).ok());
    return y;
}

// One element by the reference codec.
template <class F> float by_codec(float x, float scale) {
    encode_options saturating;
    saturating.overflow = overflow::saturate;
    const float inverse = 1.0f / scale;
    return decode<F>(encode<F>(x * inverse, saturating));
}

template <class F> void check_elements(kv_format format, float largest) {
    CAPTURE(name_of(format));
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const std::vector<float> x = tokens(seed);
        std::vector<float> scale;
        for (std::int64_t r = 0; r < shape.rows; ++r)
            scale.push_back(largest > 1 ? 0.004f * static_cast<float>(r + 1) : 1);
        const std::vector<float> y = stored(format, x, scale, both);
        bool clipped = false;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const float s = scale[i / static_cast<std::size_t>(shape.cols)];
            REQUIRE(y[i] == by_codec<F>(x[i], s));
            clipped = clipped || std::fabs(y[i]) == largest;
        }
        if (format == kv_format::fp8_e4m3) CHECK(clipped);  // the data reach the end of the range
    }
}

template <class S> void check_blocks(kv_format format) {
    CAPTURE(S::name);
    const std::vector<float> x = tokens(4);
    const auto q = quantize<S>(matrix_view<const float>{x.data(), shape, 0});
    REQUIRE(q.ok());
    std::vector<float> wanted(x.size());
    REQUIRE(dequantize(q.value.view(), matrix_view<float>{wanted.data(), shape, 0}).ok());
    CHECK(stored(format, x, {}, both) == wanted);
    CHECK(stored(format, x, {}, neither) == x);
}

}  // namespace

TEST_CASE("kv cache: stored numbers are the codec's and the schemes' own") {
    check_elements<fp8_e4m3>(kv_format::fp8_e4m3, 448);
    check_elements<fp8_e5m2>(kv_format::fp8_e5m2, 57344);
    check_elements<bf16>(kv_format::bf16, 1);
    check_elements<fp16>(kv_format::fp16, 1);
    check_blocks<mxfp8_e4m3>(kv_format::mxfp8_e4m3);
    check_blocks<mxfp4>(kv_format::mxfp4);
    check_blocks<int4<32>>(kv_format::int4_g32);
    const std::vector<float> x = tokens(5);
    CHECK(stored(kv_format::fp32, x, {}, both) == x);
}

TEST_CASE("kv cache: rounding and clipping are told apart, element by element") {
    // 17 lies between the e4m3 numbers 16 and 18; 500 is beyond 448 and lies between 480 and 512 of e4m3's mantissa.
    const std::vector<float> x = {17, -500, 16, 0, 448, 1000};
    const matrix_shape one{1, 6};
    CHECK(stored(kv_format::fp8_e4m3, x, {1}, both, one) == std::vector<float>{16, -448, 16, 0, 448, 448});
    CHECK(stored(kv_format::fp8_e4m3, x, {1}, only_rounding, one) == std::vector<float>{16, -512, 16, 0, 448, 1024});
    CHECK(stored(kv_format::fp8_e4m3, x, {1}, only_clipping, one) == std::vector<float>{17, -448, 16, 0, 448, 448});
    CHECK(stored(kv_format::fp8_e4m3, x, {1}, neither, one) == x);
}

TEST_CASE("kv cache: rounding and clipping are told apart in a block") {
    // MXFP4 with the floor rule: amax 7.5 has the scale 1, whose largest number is 6.
    std::vector<float> x(32, 1.2f);
    x[3] = 7.5f;
    const matrix_shape one{1, 32};
    const auto at = [&](storage_effects e, std::size_t i) { return stored(kv_format::mxfp4, x, {}, e, one)[i]; };
    CHECK(at(both, 3) == 6);
    CHECK(at(only_rounding, 3) == 8);  // one bit below the leading one: 6, 8
    CHECK(at(only_clipping, 3) == 6);
    CHECK(at(neither, 3) == 7.5f);
    CHECK(at(both, 0) == 1);
    CHECK(at(only_rounding, 0) == 1);
    CHECK(at(only_clipping, 0) == 1.2f);

    // int4 reaches its largest and smallest number: nothing is clipped but by the rounding of scale and zero point.
    const std::vector<float> y = tokens(6);
    const std::vector<float> clipped = stored(kv_format::int4_g32, y, {}, only_clipping);
    for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t first = i / 32 * 32;
        float low = 0, high = 0;
        for (std::size_t j = first; j < first + 32; ++j) {
            low = std::fmin(low, y[j]);
            high = std::fmax(high, y[j]);
        }
        // The zero point is off by half a step, a fifteenth of the range; the scale by 2^-11 of it.
        REQUIRE(std::fabs(clipped[i] - y[i]) <= (high - low) * (0.5f / 15 + 0x1p-10f));
    }
}

TEST_CASE("kv cache: a scale that is no scale, shapes that differ") {
    const std::vector<float> x(6, 1.0f);
    std::vector<float> y(6);
    for (const float bad :
         {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        const float scales[] = {1.0f, bad};
        const status s = store_kv(kv_format::fp8_e4m3, {x.data(), {2, 3}, 0}, scales, {}, {y.data(), {2, 3}, 0});
        CHECK(s.code == status_code::out_of_range);
        CHECK(std::string(s.argument) == "scale");
        CHECK(s.got == 1);
    }
    const float scales[] = {1.0f, 1.0f, 1.0f};
    const status s = store_kv(kv_format::fp8_e4m3, {x.data(), {2, 3}, 0}, scales, {}, {y.data(), {3, 2}, 0});
    CHECK(s.code == status_code::shape_mismatch);
    CHECK(std::string(s.argument) == "y.shape.rows");
}
