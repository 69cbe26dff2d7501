// SPDX-License-Identifier: MIT
// Faults that other projects had with block scales, each by its kind: all the values of that kind, not only the
// reported one.
#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/quantized.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr scale_rule rules[] = {scale_rule::floor, scale_rule::ceil, scale_rule::round_up, scale_rule::even};

// A function, not a lambda: compilers try to evaluate a lambda's call at compile time.
template <class F> int wrong_round_trips() {
    int wrong = 0;
    for (int e = -127; e <= 127; ++e)
        for (uint32_t c = 0; c < 256; ++c) {
            const auto code = static_cast<uint8_t>(c & F::spec.code_mask());
            const float v = decode_scaled<F>(code, e);
            if (!detail::is_finite(v)) continue;
            wrong += encode_scaled<F>(v, e) != code;
        }
    return wrong;
}

}  // namespace

TEST_CASE(
    "case 23: the reciprocal of every E8M0 scale is exact (TransformerEngine #2408 and #2647, ao #4117, flashinfer "
    "#4023)") {
    // Scaling down and up again gives the code back under all 255 scales, 254 included, whose reciprocal 2^-127 is
    // subnormal.
    CHECK(wrong_round_trips<fp8_e4m3>() == 0);
    CHECK(wrong_round_trips<fp8_e5m2>() == 0);
    CHECK(wrong_round_trips<fp4_e2m1>() == 0);
    CHECK(encode_scaled<fp8_e4m3>(0x1p127f, 127) == 0x38);
    CHECK(encode_scaled<fp8_e4m3>(0x1p118f, 127) == 0x01);
    // Blocks of the largest floats: only what rounds up to 2^128 is lost.
    for (const scale_rule rule : {scale_rule::ceil, scale_rule::round_up}) {
        const auto y = values(quantized_row<mxfp8_e4m3>({0x1.fffffep127f, -0x1p127f, 0x1p100f}, {.scale_rule = rule}));
        CHECK(y[0] == infinity);  // 1.99... * 2^127 rounds up to 2^128, above the largest float
        CHECK(y[1] == -0x1p127f);
        CHECK(y[2] == 0);  // 2^100 is 27 binades below, under the smallest element
    }
}

TEST_CASE("case 24: rounding the scale to nearest clips 29 % (mlx #4353, ml_dtypes #298)") {
    const auto scale = [](float amax, scale_rule rule) {
        return quantized_row<mxfp8_e4m3>({amax, 1.0f}, {.scale_rule = rule}).view().scale(0, 0);
    };
    CHECK(scale(448 * 1.414f, scale_rule::floor) == 128);
    CHECK(scale(448 * 1.414f, scale_rule::round_up) == 128);
    CHECK(scale(480, scale_rule::floor) == 127);
    CHECK(scale(480, scale_rule::round_up) == 128);
    // Every amax of two binades: round_up and ceil lose at most half a unit of the last place, 1/16; floor clips no
    // more than from 512 to 448.
    for (int k = 0; k <= 512; ++k) {
        const float amax = 256 + static_cast<float>(k) * 1.5f;
        const auto loss = [&](scale_rule rule) {
            const float y = values(quantized_row<mxfp8_e4m3>({amax, 1.0f}, {.scale_rule = rule}))[0];
            return std::fabs(y - amax) / amax;
        };
        CAPTURE(amax);
        CHECK(loss(scale_rule::round_up) <= 0.0625f);
        CHECK(loss(scale_rule::ceil) <= 0.0625f);
        CHECK(loss(scale_rule::even) <= 1 - 448.0f / 496);
        CHECK(loss(scale_rule::floor) <= 0.125f);
    }
    CHECK(values(quantized_row<mxfp8_e4m3>({480, 1}))[0] == 448);
    CHECK(values(quantized_row<mxfp8_e4m3>({480, 1}, {.scale_rule = scale_rule::round_up}))[0] == 480);
}

TEST_CASE("case 25: the scale over a sweep of amax, by every rule (FlyDSL #590, vllm #43557)") {
    for (int k = 64; k < 128; ++k) {
        const float amax = static_cast<float>(k) / 64;  // 1 to 2
        CAPTURE(amax);
        const auto expect = [&]<class S>(S, int floor, float largest, float half_ulp) {
            const auto scale = [&](scale_rule rule) {
                return static_cast<int>(quantized_row<S>({-amax, 0.5f}, {.scale_rule = rule}).view().scale(0, 0));
            };
            CHECK(scale(scale_rule::floor) == floor);
            CHECK(scale(scale_rule::ceil) == floor + (amax > 1));
            CHECK(scale(scale_rule::round_up) == floor + (amax > largest));
            CHECK(scale(scale_rule::even) == floor + (amax + half_ulp >= 2));
        };
        expect(mxfp4{}, 125, 1.5f, 0.25f);
        expect(mxfp8_e4m3{}, 119, 1.75f, 0.0625f);
        expect(mxfp8_e5m2{}, 112, 1.75f, 0.125f);
    }
}

TEST_CASE("case 26: amax that is exactly the largest element times a power of two (onnxruntime #32122)") {
    for (int k = -120; k <= 110; ++k) {
        CAPTURE(k);
        const float power = std::ldexp(1.0f, k);
        for (const scale_rule rule : {scale_rule::floor, scale_rule::round_up, scale_rule::even}) {
            CHECK(quantized_row<mxfp8_e4m3>({448 * power}, {.scale_rule = rule}).view().scale(0, 0) == 127 + k);
            CHECK(quantized_row<mxfp4>({6 * power}, {.scale_rule = rule}).view().scale(0, 0) == 127 + k);
            CHECK(quantized_row<block_fp8<1, 128, e8m0>>({448 * power}, {.scale_rule = rule}).view().scale(0, 0) ==
                  127 + k);
            if (k <= 112)
                CHECK(quantized_row<mxfp8_e5m2>({57344 * power}, {.scale_rule = rule}).view().scale(0, 0) == 127 + k);
        }
        // The same for fp32 scales: no rounding, no factor of two.
        CHECK(quantized_row<block_fp8_1x128>({448 * power}).view().scale(0, 0) == power);
        CHECK(quantized_row<block_fp8_1x128>({448 * power}).view().code(0, 0) == 0x7E);
    }
}

TEST_CASE("case 27: amax just below a power of two (ao #4725, higham/chop #5, bitstring #334)") {
    for (int k = -120; k <= 127; ++k) {
        CAPTURE(k);
        const float below = std::nextafterf(std::ldexp(1.0f, k), 0);
        CHECK(quantized_row<mxfp4>({below}).view().scale(0, 0) == std::max(k - 1 - 2 + 127, 0));
        CHECK(quantized_row<mxfp8_e4m3>({below}).view().scale(0, 0) == std::max(k - 1 - 8 + 127, 0));
    }
    // No rounding of amax to a shorter format first: 1.998 is 2 in bf16.
    CHECK(quantized_row<mxfp4>({1.998f}).view().scale(0, 0) == 125);
    CHECK(quantized_row<mxfp8_e4m3>({std::nextafterf(8, 0)}).view().scale(0, 0) == 121);
}

TEST_CASE(
    "case 28: zero blocks give zeros, not 0/0 (slime #2256, ao #4713 and #4762, kernels-community #681, lmdeploy "
    "#3652, aiter #4289)") {
    for_each(all_schemes{}, []<class S>() {
        std::vector<float> w(256 * 256);
        w[0] = 1;
        const auto q = quantized<S>(w, {256, 256});
        const auto y = values(q);
        INFO(std::string(S::name));
        CHECK(count_nan(y) == 0);
        int nonzero = 0;
        for (size_t k = 1; k < y.size(); ++k) nonzero += y[k] != 0;
        CHECK(nonzero == 0);
        CHECK(std::fabs(y[0] - 1) < 1e-3f);
        const auto v = q.view();
        for (int64_t i = 0; i < v.scale_shape().rows; ++i)
            for (int64_t j = 0; j < v.scale_shape().cols; ++j) {
                if constexpr (detail::is_same_v<typename S::scale, float>)
                    CHECK((v.scale(i, j) > 0 && v.scale(i, j) < 1));
            }
    });
}

TEST_CASE("case 29: an all-zero tensor has finite scales and decodes to zeros (compressed-tensors #595)") {
    for_each(all_schemes{}, []<class S>() {
        for (const float zero : {0.0f, -0.0f}) {
            const auto y = values(quantized<S>(std::vector<float>(5 * 130, zero), {5, 130}));
            int nonzero = 0;
            for (const float v : y) nonzero += !(v == 0);
            INFO(std::string(S::name));
            CHECK(nonzero == 0);
        }
    });
}

TEST_CASE(
    "case 30: a scale that its storage cannot hold saturates, it never becomes Inf or NaN (Model-Optimizer #1397 and "
    "#1633)") {
    // fp16 ends at 65504: ranges above 15 * 65504.
    for (const float huge : {1e6f, 1e10f, 1e38f, 0x1.fffffep127f}) {
        CAPTURE(huge);
        const auto q = quantized<int4<32>>(std::vector<float>{huge, -huge, 1, 0}, {1, 4});
        CHECK(q.view().scale(0, 0) == 0x7BFF);
        CHECK(count_nan(values(q)) == 0);
        const auto b = quantized<int4<32, bf16>>(std::vector<float>{huge, -huge, 1, 0}, {1, 4});
        CHECK(detail::is_finite(decode<bf16>(b.view().scale(0, 0))));
        CHECK(count_nan(values(b)) == 0);
        CHECK(values(b)[0] > 0.9f * huge);
        const auto f = quantized<int4<32, float>>(std::vector<float>{huge, -huge, 1, 0}, {1, 4});
        CHECK(detail::is_finite(f.view().scale(0, 0)));  // although max - min overflows for the last
        CHECK(values(f)[0] > 0.9f * huge);
        const auto t = quantized<block_fp8<128, 128, bf16>>(std::vector<float>{huge, 0, 0, 0}, {1, 4});
        CHECK(detail::is_finite(decode<bf16>(t.view().scale(0, 0))));
    }
    // A zero block beside large ones decodes to zeros.
    std::vector<float> x(2 * 128, 1e38f);
    for (size_t k = 0; k < 128; ++k) x[k] = 0;
    CHECK(values(quantized_row<awq_int4>(x))[5] == 0);
    CHECK(values(quantized_row<block_fp8_1x128>(x))[5] == 0);
    CHECK(values(quantized_row<mxfp8_e4m3>(x))[5] == 0);
}

TEST_CASE("case 31: blocks whose scale or elements are subnormal floats (flashinfer #2440)") {
    const auto q =
        quantized_row<mxfp8_e4m3>({2.8094e-36f, 9.18e-40f, -2.8094e-36f}, {.scale_rule = scale_rule::round_up});
    CHECK(q.view().scale(0, 0) == 1);
    CHECK(decode<fp8_e4m3>(q.view().code(0, 0)) == 240);
    CHECK(decode<fp8_e4m3>(q.view().code(0, 2)) == -240);
    CHECK(decode<fp8_e4m3>(q.view().code(0, 1)) == 0.078125f);  // 9.18e-40 * 2^126
    // Every amax down to the smallest float: no NaN, no saturation, error at most half a step of the block.
    for (int e = -149; e <= -100; ++e)
        for (const float m : {1.0f, 1.3f, 1.75f, 1.999f}) {
            const float amax = std::ldexp(m, e);
            CAPTURE(amax);
            for (const scale_rule rule : {scale_rule::ceil, scale_rule::round_up}) {
                const auto y = values(quantized_row<mxfp8_e4m3>({amax, -amax / 2}, {.scale_rule = rule}));
                const double step = std::fmax(std::ldexp(1.0, -127 - 9), static_cast<double>(amax) / 8);
                CHECK(std::fabs(static_cast<double>(y[0]) - static_cast<double>(amax)) <= step / 2);
                CHECK(std::fabs(static_cast<double>(y[1]) - static_cast<double>(-amax / 2)) <= step / 2);
            }
        }
}

TEST_CASE("case 32: no hidden floor under amax (DeepGEMM #109)") {
    // DeepGEMM and DeepSeek's kernel raise amax to 1e-4, which would give 346FACAD and 69 below.
    for (const float amax : {1e-5f, 1e-6f, 1e-20f, 1e-30f}) {
        CAPTURE(amax);
        CHECK(quantized_row<block_fp8_1x128>({amax, 0}).view().scale(0, 0) == amax / 448);
        CHECK(quantized_row<block_fp8_1x128>({amax, 0}).view().code(0, 0) == 0x7E);
        CHECK(quantized_row<fp8_per_tensor>({amax, 0}).view().code(0, 0) == 0x7E);
        CHECK(std::fabs(values(quantized_row<block_fp8_1x128>({amax, 0}))[0] / amax - 1) < 1e-6f);
    }
    // Powers of two hold down to 2^-127.
    for (int k = -127; k <= -60; ++k) {
        const auto q =
            quantized_row<block_fp8<1, 128, e8m0>>({std::ldexp(448.0f, k)}, {.scale_rule = scale_rule::round_up});
        CAPTURE(k);
        CHECK(q.view().scale(0, 0) == 127 + k);
        CHECK(q.view().code(0, 0) == 0x7E);
    }
    // fp32 scales end at 2^-126: below 448 * 2^-126 elements take smaller codes, down to zero.
    CHECK(quantized_row<block_fp8_1x128>({0x1p-130f}).view().scale(0, 0) == 0x1p-126f);
    CHECK(values(quantized_row<block_fp8_1x128>({0x1p-130f}))[0] == 0x1p-130f);
    CHECK(values(quantized_row<block_fp8_1x128>({0x1p-137f}))[0] == 0);
}

TEST_CASE("case 33: E8M0 of a negative and of a tiny number (iree #20847)") {
    // The sign is ignored and underflow goes to 2^-127, as CUDA's conversion does.
    CHECK(encode<e8m0>(-1.0f) == 127);
    CHECK(encode<e8m0>(1e-45f) == 0);
    for (const scale_rule rule : rules) {
        CHECK(scale_code<fp4_e2m1>(-4.0f, rule) == 127);
        CHECK(scale_code<fp4_e2m1>(1e-45f, rule) == 0);
        CHECK(quantized_row<mxfp4>({-4.0f, 1.0f}, {.scale_rule = rule}).view().scale(0, 0) == 127);
    }
}

TEST_CASE("case 34: one Inf never gives a small finite block (ao #4725, flashinfer #4023)") {
    for_each(all_schemes{}, []<class S>() {
        for (const float inf : {infinity, -infinity}) {
            for (size_t at : {size_t{0}, size_t{7}, size_t{31}}) {
                std::vector<float> x(32, 1.0f);
                x[at] = inf;
                INFO(std::string(S::name));
                CHECK(count_nan(values(quantized_row<S>(x))) ==
                      std::min<int64_t>(32, S::block.cols));  // its own block and no other
                const auto y = values(quantized_row<S>(x, {.nonfinite = nonfinite::saturate}));
                CHECK(count_nan(y) == 0);
                CHECK(std::fabs(y[at == 0 ? 1 : 0] - 1) < 0.04f);  // the finite ones keep their precision
                if (!S::has_zero_point) CHECK((inf > 0 ? y[at] : -y[at]) >= 1.0f - 0.04f);
            }
        }
    });
}

TEST_CASE(
    "case 36: padding of the scales is neither read nor written (vllm #37564 and #38148, TransformerEngine #3070)") {
    for (const int64_t rows : {1, 5, 128, 130}) {
        for (const int64_t cols : {32, 100, 160}) {
            const int64_t scale_cols = (cols + 31) / 32, tiles = (rows + 127) / 128 * ((scale_cols + 3) / 4);
            std::vector<float> x(static_cast<size_t>(rows * cols));
            for (size_t k = 0; k < x.size(); ++k) x[k] = random_float(k);
            const std::vector<float> want = values(quantized<mxfp8_e4m3>(x, {rows, cols}));
            for (const uint8_t poison : {uint8_t{0x7F}, uint8_t{0xFF}, uint8_t{0}}) {
                std::vector<uint8_t> codes(static_cast<size_t>(rows * (cols + 3)), poison),
                    scales(static_cast<size_t>(tiles * 512), poison);
                const auto v = quantized_view<mxfp8_e4m3>::make({.codes = codes.data(),
                                                                 .scales = scales.data(),
                                                                 .shape = {rows, cols},
                                                                 .code_stride = cols + 3,
                                                                 .layout = scale_layout::tiled_128x4});
                REQUIRE(v.ok());
                REQUIRE(quantize(matrix_view<const float>{x.data(), {rows, cols}}, v.value).ok());
                std::vector<float> y(x.size());
                REQUIRE(dequantize(v.value, matrix_view<float>{y.data(), {rows, cols}}).ok());
                CHECK((y == want));
                std::vector<uint8_t> is_scale(scales.size());
                for (int64_t i = 0; i < rows; ++i)
                    for (int64_t j = 0; j < scale_cols; ++j)
                        is_scale[static_cast<size_t>(v.value.scale_offset(i, j))] = 1;
                int written = 0;
                for (size_t k = 0; k < scales.size(); ++k) written += is_scale[k] == 0 && scales[k] != poison;
                CHECK(written == 0);
            }
        }
    }
}

TEST_CASE(
    "case 37: the block of a row follows from the block size, not from the shapes (TensorRT-Model-Connect #1115)") {
    constexpr int64_t rows = 1000, cols = 130;
    std::vector<uint8_t> codes(rows * cols, 0x38);
    float scales[8 * 2];
    for (int k = 0; k < 16; ++k) scales[k] = static_cast<float>(k + 1);
    const auto v =
        quantized_view<const block_fp8_128x128>::make({.codes = codes.data(), .scales = scales, .shape = {rows, cols}});
    REQUIRE(v.ok());
    std::vector<float> y(rows * cols);
    REQUIRE(dequantize(v.value, matrix_view<float>{y.data(), {rows, cols}}).ok());
    CHECK(y[126 * cols] == 1);  // 1000 / 8 = 125 rows would put row 126 into the second block
    int wrong = 0;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c)
            wrong += y[static_cast<size_t>(r * cols + c)] != static_cast<float>(r / 128 * 2 + c / 128 + 1);
    CHECK(wrong == 0);
}

TEST_CASE("case 38: blocks do not straddle the matrices of a stack (sglang #29727)") {
    // Two experts of 192 rows: two scale rows each, the second of 64 rows. One flattened matrix of 384 rows has three.
    constexpr int64_t rows = 192, cols = 40;
    std::vector<float> x(2 * rows * cols);
    for (size_t k = 0; k < x.size(); ++k) x[k] = random_float(k) * (k < rows * cols ? 1.0f : 1000.0f);
    CHECK(scheme_traits<block_fp8_128x128>::scale_shape({rows, cols}) == matrix_shape{2, 1});
    CHECK(scheme_traits<block_fp8_128x128>::scale_shape({2 * rows, cols}) == matrix_shape{3, 1});
    std::vector<uint8_t> codes(x.size());
    float scales[4] = {};
    for (int64_t e = 0; e < 2; ++e) {
        const auto v = quantized_view<block_fp8_128x128>::make(
            {.codes = codes.data() + e * rows * cols, .scales = scales + 2 * e, .shape = {rows, cols}});
        REQUIRE(v.ok());
        REQUIRE(quantize(matrix_view<const float>{x.data() + e * rows * cols, {rows, cols}}, v.value).ok());
    }
    // A block that took rows of both would have a scale near 1000/448 in the first expert.
    CHECK(scales[0] < 1.01f / 448);
    CHECK(scales[1] < 1.01f / 448);
    CHECK(scales[2] > 900.0f / 448);
    CHECK(scales[3] > 900.0f / 448);
}

TEST_CASE("case 39: shapes that no block divides (TransformerEngine #2966, unsloth #6848)") {
    for_each(all_schemes{}, []<class S>() {
        for (const matrix_shape shape :
             {matrix_shape{5, 100}, matrix_shape{1, 1}, matrix_shape{129, 33}, matrix_shape{3, 257}}) {
            std::vector<float> x(static_cast<size_t>(shape.rows * shape.cols));
            for (size_t k = 0; k < x.size(); ++k) x[k] = random_float(k);
            const auto y = values(quantized<S>(x, shape));
            float worst = 0;
            for (size_t k = 0; k < x.size(); ++k) worst = std::max(worst, std::fabs(x[k] - y[k]));
            INFO(std::string(S::name));
            // Half the largest gap below 1: 1/32 for E4M3, 1/8 for E5M2, 1/4 for E2M1 (floor clips 7 to 6), 1/15 for
            // int4.
            CHECK(worst <= (detail::is_same_v<typename S::element, fp4_e2m1> ? 0.251f : 0.126f));
        }
    });
}

TEST_CASE("case 40: the error grows smoothly with the block size (bitsandbytes #565, #1160 and #1157)") {
    constexpr int64_t n = int64_t{1} << 17;
    std::vector<float> x(n);
    for (size_t k = 0; k < n; ++k) {
        double sum = -4;
        for (uint64_t j = 0; j < 8; ++j) sum += static_cast<double>(block_oracle::philox_word(40, 8 * k + j)) * 0x1p-32;
        x[k] = static_cast<float>(sum);
    }
    double last = 0;
    const auto grows = [&]<int64_t Group>(std::integral_constant<int64_t, Group>) {
        const auto y = values(quantized<int4<Group>>(x, {n / 4096, 4096}));
        double noise = 0;
        for (size_t k = 0; k < n; ++k) noise += std::pow(static_cast<double>(x[k]) - static_cast<double>(y[k]), 2);
        const double error = std::sqrt(noise / n);
        CAPTURE(Group);
        if (last > 0) {
            CHECK(error > last);
            CHECK(error < 1.2 * last);
        }
        last = error;
    };
    grows(std::integral_constant<int64_t, 64>{});
    grows(std::integral_constant<int64_t, 128>{});
    grows(std::integral_constant<int64_t, 256>{});
    grows(std::integral_constant<int64_t, 512>{});
    grows(std::integral_constant<int64_t, 1024>{});
    grows(std::integral_constant<int64_t, 2048>{});
    grows(std::integral_constant<int64_t, 4096>{});
}
