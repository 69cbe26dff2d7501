// SPDX-License-Identifier: MIT
// Published and hand-checked blocks: scale bytes of every rule, an MXFP4 block in packed bytes, DeepSeek's scales, the
// groups of llm-awq's quantizer.
#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include <algorithm>
#include <string_view>

#include "support/block_oracle.hpp"

using namespace numfmt;
using block_oracle::float_bits;

namespace {

constexpr scale_rule rules[] = {scale_rule::floor, scale_rule::ceil, scale_rule::round_up, scale_rule::even};

// The scale bytes of OCP MX v1.0 section 6.3 (floor), of its ceiling, of cvt.rp.ue8m0 on amax / max (round_up) and of
// rounding half up at the element's mantissa (even), in exact arithmetic; 0 entries of a row that names one format only
// are skipped.
struct scale_row {
    double amax;
    uint8_t e4m3[4], e5m2[4], e2m1[4], e2m3[4], e3m2[4];
};
constexpr scale_row scale_table[] = {
    {0x1p-149, {}, {}, {}, {}, {}},
    {0x1p-127, {}, {}, {}, {}, {}},
    {0x1p-126, {}, {}, {}, {}, {}},
    {0x1p-120, {0, 0, 0, 0}, {0, 0, 0, 0}, {5, 5, 5, 5}, {5, 5, 5, 5}, {3, 3, 3, 3}},
    {1,
     {0x77, 0x77, 0x77, 0x77},
     {0x70, 0x70, 0x70, 0x70},
     {0x7D, 0x7D, 0x7D, 0x7D},
     {0x7D, 0x7D, 0x7D, 0x7D},
     {0x7B, 0x7B, 0x7B, 0x7B}},
    {1.25,
     {0x77, 0x78, 0x77, 0x77},
     {0x70, 0x71, 0x70, 0x70},
     {0x7D, 0x7E, 0x7D, 0x7D},
     {0x7D, 0x7E, 0x7D, 0x7D},
     {0x7B, 0x7C, 0x7B, 0x7B}},
    {1.5,
     {0x77, 0x78, 0x77, 0x77},
     {0x70, 0x71, 0x70, 0x70},
     {0x7D, 0x7E, 0x7D, 0x7D},
     {0x7D, 0x7E, 0x7D, 0x7D},
     {0x7B, 0x7C, 0x7B, 0x7B}},
    {1.5 + 0x1p-23,
     {0x77, 0x78, 0x77, 0x77},
     {0x70, 0x71, 0x70, 0x70},
     {0x7D, 0x7E, 0x7E, 0x7D},
     {0x7D, 0x7E, 0x7D, 0x7D},
     {0x7B, 0x7C, 0x7B, 0x7B}},
    {1.75,
     {0x77, 0x78, 0x77, 0x77},
     {0x70, 0x71, 0x70, 0x70},
     {0x7D, 0x7E, 0x7E, 0x7E},
     {0x7D, 0x7E, 0x7D, 0x7D},
     {0x7B, 0x7C, 0x7B, 0x7B}},
    {1.75 + 0x1p-23,
     {0x77, 0x78, 0x78, 0x77},
     {0x70, 0x71, 0x71, 0x70},
     {0x7D, 0x7E, 0x7E, 0x7E},
     {0x7D, 0x7E, 0x7D, 0x7D},
     {0x7B, 0x7C, 0x7C, 0x7B}},
    {1.875,
     {0x77, 0x78, 0x78, 0x77},
     {0x70, 0x71, 0x71, 0x71},
     {0x7D, 0x7E, 0x7E, 0x7E},
     {0x7D, 0x7E, 0x7D, 0x7D},
     {0x7B, 0x7C, 0x7C, 0x7C}},
    {1.9375,
     {0x77, 0x78, 0x78, 0x78},
     {0x70, 0x71, 0x71, 0x71},
     {0x7D, 0x7E, 0x7E, 0x7E},
     {0x7D, 0x7E, 0x7E, 0x7E},
     {0x7B, 0x7C, 0x7C, 0x7C}},
    {2 - 0x1p-23,
     {0x77, 0x78, 0x78, 0x78},
     {0x70, 0x71, 0x71, 0x71},
     {0x7D, 0x7E, 0x7E, 0x7E},
     {0x7D, 0x7E, 0x7E, 0x7E},
     {0x7B, 0x7C, 0x7C, 0x7C}},
    {2,
     {0x78, 0x78, 0x78, 0x78},
     {0x71, 0x71, 0x71, 0x71},
     {0x7E, 0x7E, 0x7E, 0x7E},
     {0x7E, 0x7E, 0x7E, 0x7E},
     {0x7C, 0x7C, 0x7C, 0x7C}},
    {6,
     {0x79, 0x7A, 0x79, 0x79},
     {0x72, 0x73, 0x72, 0x72},
     {0x7F, 0x80, 0x7F, 0x7F},
     {0x7F, 0x80, 0x7F, 0x7F},
     {0x7D, 0x7E, 0x7D, 0x7D}},
    {7,
     {0x79, 0x7A, 0x79, 0x79},
     {0x72, 0x73, 0x72, 0x72},
     {0x7F, 0x80, 0x80, 0x80},
     {0x7F, 0x80, 0x7F, 0x7F},
     {0x7D, 0x7E, 0x7D, 0x7D}},
    {448,
     {0x7F, 0x80, 0x7F, 0x7F},
     {0x78, 0x79, 0x78, 0x78},
     {0x85, 0x86, 0x86, 0x86},
     {0x85, 0x86, 0x85, 0x85},
     {0x83, 0x84, 0x83, 0x83}},
    {464,
     {0x7F, 0x80, 0x80, 0x7F},
     {0x78, 0x79, 0x79, 0x78},
     {0x85, 0x86, 0x86, 0x86},
     {0x85, 0x86, 0x85, 0x85},
     {0x83, 0x84, 0x84, 0x83}},
    {480,
     {0x7F, 0x80, 0x80, 0x7F},
     {0x78, 0x79, 0x79, 0x79},
     {0x85, 0x86, 0x86, 0x86},
     {0x85, 0x86, 0x85, 0x85},
     {0x83, 0x84, 0x84, 0x84}},
    {512,
     {0x80, 0x80, 0x80, 0x80},
     {0x79, 0x79, 0x79, 0x79},
     {0x86, 0x86, 0x86, 0x86},
     {0x86, 0x86, 0x86, 0x86},
     {0x84, 0x84, 0x84, 0x84}},
    {0x1.fffffep127,
     {0xF6, 0xF7, 0xF7, 0xF7},
     {0xEF, 0xF0, 0xF0, 0xF0},
     {0xFC, 0xFD, 0xFD, 0xFD},
     {0xFC, 0xFD, 0xFD, 0xFD},
     {0xFA, 0xFB, 0xFB, 0xFB}},
};

static_assert(scale_code<fp8_e4m3>(448.0f, scale_rule::floor) == 0x7F &&
              scale_code<fp4_e2m1>(7.0f, scale_rule::round_up) == 0x80);

/// The scale byte that quantize stores for one row whose largest magnitude is amax.
template <class S> int stored_scale(float amax, scale_rule rule) {
    const float x[3] = {0.25f * amax, -amax, 0.0f};
    const auto q = quantize<S>(matrix_view<const float>{x, {1, 3}}, {.scale_rule = rule});
    return q.value.view().scale(0, 0);
}

/// Values from a normal number with every exponent, near the significands that matter.
template <class F> void for_boundary_values(F&& f) {
    for (uint32_t exponent = 0; exponent < 255; ++exponent)
        for (const uint32_t centre :
             {0u, 0x200000u, 0x400000u, 0x600000u, 0x680000u, 0x700000u, 0x740000u, 0x780000u, 0x7C0000u, 0x800000u})
            for (uint32_t d = 0; d < 5; ++d) {
                const uint32_t bits = (exponent << 23) + centre + d;
                if (bits >= 2 && bits - 2 < 0x7F800000u) f(bits - 2);
            }
}

template <class Element> int wrong_scales(const std::string& scheme) {
    const block_oracle::scheme_facts& facts = block_oracle::facts_of(scheme);
    int wrong = 0;
    for_boundary_values([&](uint32_t bits) {
        const float amax = bit_cast<float>(bits);
        for (const scale_rule rule : rules)
            wrong +=
                scale_code<Element>(amax, rule) != block_oracle::e8m0_scale(facts, static_cast<double>(amax), rule);
    });
    return wrong;
}

}  // namespace

TEST_CASE("golden: scale bytes of every rule and element format") {
    for (const scale_row& row : scale_table) {
        for (int k = 0; k < 4; ++k) {
            CAPTURE(row.amax);
            CAPTURE(k);
            const float amax = static_cast<float>(row.amax);
            CHECK(scale_code<fp8_e4m3>(amax, rules[k]) == row.e4m3[k]);
            CHECK(scale_code<fp8_e5m2>(amax, rules[k]) == row.e5m2[k]);
            CHECK(scale_code<fp4_e2m1>(amax, rules[k]) == row.e2m1[k]);
            CHECK(scale_code<fp6_e2m3>(amax, rules[k]) == row.e2m3[k]);
            CHECK(scale_code<fp6_e3m2>(amax, rules[k]) == row.e3m2[k]);
            CHECK(scale_code<fp8_e4m3>(-amax, rules[k]) == row.e4m3[k]);
            CHECK(stored_scale<mxfp8_e4m3>(amax, rules[k]) == row.e4m3[k]);
            CHECK(stored_scale<block_fp8<128, 128, e8m0>>(amax, rules[k]) == row.e4m3[k]);
            CHECK(stored_scale<mxfp8_e5m2>(amax, rules[k]) == row.e5m2[k]);
            CHECK(stored_scale<mxfp4>(amax, rules[k]) == row.e2m1[k]);
            CHECK(stored_scale<mxfp6_e2m3>(amax, rules[k]) == row.e2m3[k]);
            CHECK(stored_scale<mxfp6_e3m2>(amax, rules[k]) == row.e3m2[k]);
        }
    }
    for (const scale_rule rule : rules) {
        CHECK(stored_scale<mxfp4>(0.0f, rule) == 0);
        CHECK(stored_scale<mxfp8_e4m3>(0.0f, rule) == 0);
        CHECK(stored_scale<mxfp8_e5m2>(0.0f, rule) == 0);
        for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
            CHECK(stored_scale<mxfp4>(bad, rule) == 0xFF);
            CHECK(stored_scale<mxfp8_e4m3>(bad, rule) == 0xFF);
            CHECK(stored_scale<mxfp8_e5m2>(bad, rule) == 0xFF);
        }
    }
}

TEST_CASE("golden: the largest float below every power of two keeps the lower exponent") {
    for (int k = -148; k <= 128; ++k) {
        const double power = std::ldexp(1.0, k);
        const float below = k == 128 ? 0x1.fffffep127f : std::nextafterf(static_cast<float>(power), 0.0f);
        int exponent = 0;
        std::frexp(static_cast<double>(below), &exponent);  // 2^(exponent-1) <= below < 2^exponent
        CAPTURE(k);
        const auto code = [](int e) { return std::max(e + 127, 0); };
        CHECK(scale_code<fp8_e4m3>(below, scale_rule::floor) == code(exponent - 1 - 8));
        CHECK(scale_code<fp8_e5m2>(below, scale_rule::floor) == code(exponent - 1 - 15));
        CHECK(scale_code<fp4_e2m1>(below, scale_rule::floor) == code(exponent - 1 - 2));
        if (k > -126) CHECK(exponent == k);
        // A power of two needs no rounding up; its lower neighbour rounds up to it (a subnormal one is a power itself
        // only at 2^-149).
        if (k <= 127) {
            CHECK(scale_code<fp4_e2m1>(static_cast<float>(power), scale_rule::ceil) == code(k - 2));
            if (k > -148) CHECK(scale_code<fp4_e2m1>(below, scale_rule::ceil) == code(k - 2));
        }
    }
}

TEST_CASE("golden: scale bytes at every exponent against exact comparisons") {
    CHECK(wrong_scales<fp8_e4m3>("mxfp8_e4m3") == 0);
    CHECK(wrong_scales<fp8_e5m2>("mxfp8_e5m2") == 0);
    CHECK(wrong_scales<fp4_e2m1>("mxfp4") == 0);
    CHECK(wrong_scales<fp6_e2m3>("mxfp6_e2m3") == 0);
    CHECK(wrong_scales<fp6_e3m2>("mxfp6_e3m2") == 0);
    CHECK(wrong_scales<int8_q6>("mxint8") == 0);
}

TEST_CASE("golden: an MXFP4 block, codes, bytes and error") {
    float x[32], y[32];
    for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i - 16) * 0.4375f;
    struct expected {
        scale_rule rule;
        int scale;
        const char* codes;
        uint8_t bytes[16];
        double squared_error;
    };
    const expected floor_block = {
        scale_rule::floor,
        0x7F,
        "FFFFFEEEEDDCCBA90123445566667777",
        {0xff, 0xff, 0xef, 0xee, 0xde, 0xcd, 0xbc, 0x9a, 0x10, 0x32, 0x44, 0x55, 0x66, 0x66, 0x77, 0x77},
        5.6875};
    expected up_block = {
        scale_rule::round_up,
        0x80,
        "EDDDDCCCCBBAA9980011223344445555",
        {0xde, 0xdd, 0xcd, 0xcc, 0xbc, 0xab, 0x9a, 0x89, 0x00, 0x11, 0x22, 0x33, 0x44, 0x44, 0x55, 0x55},
        6.1875};
    const auto check = [&](const expected& want) {
        auto q = quantize<mxfp4>(matrix_view<const float>{x, {1, 32}}, {.scale_rule = want.rule});
        REQUIRE(q.ok());
        const auto view = q.value.view();
        CHECK(view.scale(0, 0) == want.scale);
        for (int i = 0; i < 32; ++i) {
            CAPTURE(i);
            CHECK("0123456789ABCDEF"[view.code(0, i)] == want.codes[i]);
        }
        for (int i = 0; i < 16; ++i) CHECK(view.parts().codes[i] == want.bytes[i]);
        REQUIRE(dequantize(view, matrix_view<float>{y, {1, 32}}).ok());
        double error = 0;
        for (int i = 0; i < 32; ++i) error += std::pow(static_cast<double>(x[i]) - static_cast<double>(y[i]), 2);
        CHECK(error == want.squared_error);
    };
    check(floor_block);
    for (const scale_rule rule : {scale_rule::round_up, scale_rule::even, scale_rule::ceil}) {
        up_block.rule = rule;
        check(up_block);
    }
}

TEST_CASE("golden: DeepSeek's scales, fp32 and ue8m0") {
    struct row {
        float amax;
        uint32_t fp32_scale;
        int ue8m0;
    };
    // DeepSeek-V3's s = amax / 448, and ceil(log2 s) of its "ue8m0" variant.
    const row rows[] = {{1, 0x3B124925, 0x77},   {1.75f, 0x3B800000, 0x77}, {3.5f, 0x3C000000, 0x78},
                        {448, 0x3F800000, 0x7F}, {449, 0x3F804925, 0x80},   {1000, 0x400EDB6E, 0x81}};
    for (const row& want : rows) {
        CAPTURE(want.amax);
        float x[130] = {};
        x[5] = -want.amax;
        x[129] = want.amax;  // alone in a block of two columns
        const matrix_view<const float> m{x, {1, 130}};
        for (const int64_t j : {0, 1}) {
            const auto f = quantize<block_fp8_1x128>(m);
            CHECK(float_bits(f.value.view().scale(0, j)) == want.fp32_scale);
            const auto u = quantize<block_fp8<1, 128, e8m0>>(m, {.scale_rule = scale_rule::round_up});
            CHECK(u.value.view().scale(0, j) == want.ue8m0);
        }
        CHECK(float_bits(quantize<block_fp8_128x128>(m).value.view().scale(0, 1)) == want.fp32_scale);
        CHECK(float_bits(quantize<fp8_per_tensor>(m).value.view().scale(0, 0)) == want.fp32_scale);
        CHECK(float_bits(quantize<fp8_per_channel>(m).value.view().scale(0, 0)) == want.fp32_scale);
        // The largest element takes the largest code.
        CHECK(quantize<block_fp8_1x128>(m).value.view().code(0, 5) == 0xFE);
    }
    // Shapes of the checkpoint: 7168x2048 has 56x16 scales, 576x7168 has 5x56.
    CHECK(scheme_traits<block_fp8_128x128>::scale_shape({7168, 2048}) == matrix_shape{56, 16});
    CHECK(scheme_traits<block_fp8_128x128>::scale_shape({576, 7168}) == matrix_shape{5, 56});
}

namespace {

struct int4_row {
    float w[8];
    uint32_t scale;
    int zero;
    int q[8];
};

template <class S> void check_group(const int4_row& row, const quantize_options& options) {
    const auto q = quantize<S>(matrix_view<const float>{row.w, {1, 8}}, options);
    REQUIRE(q.ok());
    const auto v = q.value.view();
    CAPTURE(row.scale);
    if constexpr (detail::is_same_v<typename S::scale, float>)
        CHECK(float_bits(v.scale(0, 0)) == row.scale);
    else
        CHECK(v.scale(0, 0) == row.scale);
    CHECK(v.zero_point(0, 0) == row.zero);
    for (int j = 0; j < 8; ++j) CHECK(v.code(0, j) == row.q[j]);
}

}  // namespace

TEST_CASE("golden: int4 groups over min and max as llm-awq computes them, fp32 scale") {
    // pseudo_quantize_tensor of llm-awq d6e797a, zero_point=True, evaluated in fp32.
    const int4_row rows[] = {
        {{-1, -.5f, -.25f, 0, .25f, .5f, 1, 2}, 0x3E4CCCCD, 5, {0, 3, 4, 5, 6, 7, 10, 15}},
        {{-.75f, -.5f, -.25f, 0, .25f, .5f, .75f, 1}, 0x3DEEEEEF, 6, {0, 2, 4, 6, 8, 10, 12, 15}},
        {{1, 1.5f, 2, 2.5f, 3, 3.5f, 4, 5}, 0x3E888889, 0, {4, 6, 7, 9, 11, 13, 15, 15}},
        {{-3, -2.5f, -2, -1.75f, -1.5f, -1.25f, -1.125f, -1}, 0x3E088889, 15, {0, 0, 0, 2, 4, 6, 7, 8}},
        {{0, 0, 0, 0, 0, 0, 0, 0}, 0x3532F4FC, 0, {0, 0, 0, 0, 0, 0, 0, 0}},
    };
    for (const int4_row& row : rows) check_group<int4<8, float>>(row, {.int4_range = int4_range::minmax});
}

TEST_CASE("golden: int4 groups over a range that includes zero, codes under the stored fp16 scale") {
    // Scale: fp32 division by 15, then binary16; zero point and codes from that scale. Computed with exact fractions.
    const int4_row rows[] = {
        {{-1, -.5f, -.25f, 0, .25f, .5f, 1, 2}, 0x3266, 5, {0, 2, 4, 5, 6, 8, 10, 15}},
        {{-.75f, -.5f, -.25f, 0, .25f, .5f, .75f, 1}, 0x2F77, 6, {0, 2, 4, 6, 8, 10, 12, 15}},
        {{1, 1.5f, 2, 2.5f, 3, 3.5f, 4, 5}, 0x3555, 0, {3, 5, 6, 8, 9, 11, 12, 15}},
        {{-3, -2.5f, -2, -1.75f, -1.5f, -1.25f, -1.125f, -1}, 0x3266, 15, {0, 2, 5, 6, 7, 9, 9, 10}},
        {{10.5f, 11, 11.5f, 12, 12.5f, 13, 13.5f, 14}, 0x3B77, 0, {11, 12, 12, 13, 13, 14, 14, 15}},
        {{5, 5, 5, 5, 5, 5, 5, 5}, 0x3555, 0, {15, 15, 15, 15, 15, 15, 15, 15}},
        {{0, 0, 0, 0, 0, 0, 0, 0}, 0x000B, 0, {0, 0, 0, 0, 0, 0, 0, 0}},
    };
    for (const int4_row& row : rows) check_group<int4<8>>(row, {});
    for (const int4_row& row : rows) check_group<awq_int4>(row, {});
}
