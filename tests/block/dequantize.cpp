// SPDX-License-Identifier: MIT
// dequantize over every code under every scale byte (or many float scales), to float, bf16 and fp16, against exact
// products.
#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include "support/block_oracle.hpp"

using namespace numfmt;
namespace oracle = block_oracle;

namespace {

bool same(uint32_t got, uint32_t want, uint32_t infinity, uint32_t magnitude_mask) {
    return got == want || ((got & magnitude_mask) > infinity && (want & magnitude_mask) > infinity);
}

/// Every code under one scale: 256 / 2^bits rows are enough. Returns the number of wrong values over the three outputs.
template <class S> int wrong_values(uint32_t scale_bits, uint8_t zero_point) {
    using traits = scheme_traits<S>;
    const oracle::scheme_facts& facts = oracle::facts_of(S::name);
    constexpr int64_t codes = int64_t{1} << traits::element_bits;
    // One row with all codes, wrapped into blocks that all have the same scale.
    const matrix_shape scales = traits::scale_shape({1, codes});
    uint8_t packed[256] = {};
    for (int64_t c = 0; c < codes; ++c) oracle::write_code(packed, c, traits::element_bits, static_cast<uint32_t>(c));
    typename traits::scale_storage stored[256];
    for (int64_t j = 0; j < scales.cols; ++j) std::memcpy(&stored[j], &scale_bits, sizeof stored[j]);
    uint8_t zeros[256];
    std::fill(zeros, zeros + 256, static_cast<uint8_t>(zero_point * 0x11));

    view_parts<const S> parts;
    parts.codes = packed;
    parts.scales = stored;
    parts.shape = {1, codes};
    if constexpr (S::has_zero_point) parts.zeros = zeros;
    const auto view = quantized_view<const S>::make(parts);
    REQUIRE(view.ok());

    float y[256];
    bf16 b[256];
    fp16 h[256];
    REQUIRE(dequantize(view.value, matrix_view<float>{y, {1, codes}}).ok());
    REQUIRE(dequantize(view.value, matrix_view<bf16>{b, {1, codes}}).ok());
    REQUIRE(dequantize(view.value, matrix_view<fp16>{h, {1, codes}}).ok());
    int wrong = 0;
    for (int64_t c = 0; c < codes; ++c) {
        const float want = oracle::dequantize_one(facts, scale_bits, zero_point, static_cast<uint32_t>(c));
        const double exact = static_cast<double>(want);
        wrong += !same(oracle::float_bits(y[c]), oracle::float_bits(want), 0x7F800000, 0x7FFFFFFF);
        wrong += !same(b[c].bits(), oracle::encode(oracle::brain(), exact, rounding::nearest_even), 0x7F80, 0x7FFF);
        wrong += !same(h[c].bits(), oracle::encode(oracle::half(), exact, rounding::nearest_even), 0x7C00, 0x7FFF);
    }
    return wrong;
}

}  // namespace

TEST_CASE_TEMPLATE("dequantize: every code under every power-of-two scale", S, mxfp8_e4m3, mxfp8_e5m2, mxfp4,
                   block_fp8<1, 128, e8m0>, block_fp8<128, 128, e8m0>) {
    for (uint32_t scale = 0; scale < 256; ++scale) {
        CAPTURE(scale);
        CHECK(wrong_values<S>(scale, 0) == 0);
    }
}

TEST_CASE_TEMPLATE("dequantize: every code under fp32 scales of every exponent", S, fp8_per_tensor, fp8_per_channel,
                   block_fp8_128x128, block_fp8_1x128) {
    for (uint32_t exponent = 0; exponent < 256; ++exponent)
        for (const uint32_t mantissa : {0u, 1u, 0x00049249u, 0x00400000u, 0x005B6DB7u, 0x007FFFFFu}) {
            const uint32_t scale = exponent << 23 | mantissa;
            CAPTURE(scale);
            CHECK(wrong_values<S>(scale, 0) == 0);
        }
}

TEST_CASE_TEMPLATE("dequantize: every code and zero point under fp16 scales", S, awq_int4, int4<32>) {
    for (uint8_t zero = 0; zero < 16; ++zero)
        for (uint32_t scale = zero; scale < 0x8000; scale += 37) {
            CAPTURE(zero);
            CAPTURE(scale);
            CHECK(wrong_values<S>(scale, zero) == 0);
        }
}

TEST_CASE("dequantize: scale bytes 00, FE and FF, and subnormal results") {
    // One row of four codes, each row under its own scale.
    const uint8_t codes[3][4] = {{0x01, 0x38, 0x7E, 0x80}, {0x01, 0x38, 0xFE, 0x07}, {0x00, 0x38, 0x7E, 0x81}};
    const uint8_t scales[3] = {0x00, 0xFE, 0xFF};
    const auto view = quantized_view<const mxfp8_e4m3>::make({.codes = codes[0], .scales = scales, .shape = {3, 4}});
    REQUIRE(view.ok());
    float y[12];
    REQUIRE(dequantize(view.value, matrix_view<float>{y, {3, 4}}).ok());
    CHECK(oracle::float_bits(y[0]) == 0x00002000);  // 2^-9 * 2^-127 = 2^-136, 2^13 times the smallest float
    CHECK(oracle::float_bits(y[1]) == 0x00400000);  // 2^-127
    CHECK(y[2] == 448 * 0x1p-127f);
    CHECK(oracle::float_bits(y[3]) == 0x80000000);
    CHECK(y[4] == 0x1p118f);
    CHECK(y[5] == 0x1p127f);
    CHECK(y[6] == -std::numeric_limits<float>::infinity());  // 448 * 2^127 is above every float
    CHECK(y[7] == 7 * 0x1p118f);
    for (int k = 8; k < 12; ++k) CHECK(detail::is_nan(y[k]));
}

TEST_CASE("dequantize: a float result is rounded once more to the 16-bit outputs") {
    // Code 1.0, so that the product is the scale: values halfway between two bf16 or fp16 numbers, and above the
    // largest.
    const uint8_t code = 0x38;
    for (const uint32_t bits : {0x3F808000u, 0x3F818000u, 0x3F808001u, 0x477FF000u, 0x7F7FFFFFu}) {
        const float scale = bit_cast<float>(bits);
        const auto view =
            quantized_view<const fp8_per_tensor>::make({.codes = &code, .scales = &scale, .shape = {1, 1}});
        bf16 b;
        fp16 h;
        REQUIRE(dequantize(view.value, matrix_view<bf16>{&b, {1, 1}}).ok());
        REQUIRE(dequantize(view.value, matrix_view<fp16>{&h, {1, 1}}).ok());
        CAPTURE(bits);
        CHECK(b.bits() == (bits == 0x3F808000u   ? 0x3F80
                           : bits == 0x3F818000u ? 0x3F82
                           : bits == 0x3F808001u ? 0x3F81
                           : bits == 0x477FF000u ? 0x4780
                                                 : 0x7F80));
        CHECK(h.bits() == (bits == 0x3F808000u   ? 0x3C04
                           : bits == 0x3F818000u ? 0x3C0C
                           : bits == 0x3F808001u ? 0x3C04
                                                 : 0x7C00));
    }
}
