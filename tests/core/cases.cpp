// SPDX-License-Identifier: MIT
// Faults that other projects had with scalar conversions, each with its public report. A case tests the whole kind of
// fault, not only the reported input.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "support/environment_cases.hpp"
#include "support/inputs.hpp"
#include "support/tally.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float quiet = std::numeric_limits<float>::quiet_NaN();
constexpr encode_options saturating{overflow::saturate};
constexpr encode_options nonsaturating{overflow::to_nonfinite};
constexpr encode_options signed_nan{overflow::to_nonfinite, nan_mode::keep_sign};

float from_bits(std::uint32_t bits) { return bit_cast<float>(bits); }

}  // namespace

TEST_CASE("case 1: round first, then test the range (universal #1302, #1351)") {
    CHECK(encode<fp8_e4m3>(500.0f, signed_nan) == 0x7F);
    CHECK(encode<fp8_e4m3>(inf, signed_nan) == 0x7F);
    CHECK(encode<fp8_e4m3>(-inf, signed_nan) == 0xFF);
    CHECK(encode<fp8_e4m3>(-quiet, signed_nan) == 0xFF);
    CHECK(encode<fp8_e5m2>(58000.0f, signed_nan) == 0x7B);
    // Everything between the largest number and the overflow tie is the largest number in both modes.
    for_each_format([]<class Format>() {
        if constexpr (Format::spec.has_zero) {
            const std::vector<double>& v = oracle_of<Format>().values();
            const double largest = v[v.size() - 2], tie = largest + (v.back() - largest) / 2;
            for (const double x : {std::nextafter(largest, HUGE_VAL), (largest + tie) / 2, std::nextafter(tie, 0.0)}) {
                CAPTURE(Format::name);
                CHECK(encode<Format>(x, saturating) == facts_of<Format>().largest);
                CHECK(encode<Format>(x, nonsaturating) == facts_of<Format>().largest);
            }
            if (facts_of<Format>().kind != shape::all_finite) {
                CHECK(encode<Format>(std::nextafter(tie, HUGE_VAL), nonsaturating) > facts_of<Format>().largest);
            }
        }
    });
}

TEST_CASE("case 2: E4M3 overflow in both modes (ml_dtypes #260, #400, #147; pytorch #178817)") {
    for (const float x : {465.0f, 1000.0f, 3e10f, std::numeric_limits<float>::max(), inf}) {
        CAPTURE(x);
        CHECK(encode<fp8_e4m3>(x, nonsaturating) == 0x7F);
        CHECK(encode<fp8_e4m3>(x, saturating) == 0x7E);
        CHECK(encode<fp8_e4m3>(-x, nonsaturating) == 0xFF);
        CHECK(encode<fp8_e4m3>(-x, saturating) == 0xFE);
        CHECK(encode<fp8_e4m3>(x) == 0x7E);
    }
    CHECK(encode<fp8_e4m3>(464.0f, nonsaturating) == 0x7E);
    CHECK(encode<fp8_e4m3>(464.0f, saturating) == 0x7E);
}

TEST_CASE("case 3: the top exponent of E4M3 holds numbers (sglang #40581; tilelang-metax #140; ggml's UE4M3)") {
    CHECK(encode<fp8_e4m3>(256.0f) == 0x78);
    CHECK(encode<fp8_e4m3>(288.0f) == 0x79);
    CHECK(encode<fp8_e4m3>(320.0f) == 0x7A);
    CHECK(encode<fp8_e4m3>(400.0f) == 0x7C);  // 384: a tie
    CHECK(encode<fp8_e4m3>(440.0f) == 0x7E);
    for (std::uint8_t c = 0x78; c < 0x7F; ++c) {
        CHECK(decode<fp8_e4m3>(c) == 256.0f + 32.0f * static_cast<float>(c - 0x78));
        CHECK(encode<fp8_e4m3>(decode<fp8_e4m3>(c)) == c);
        CHECK(encode<fp8_ue4m3>(decode<fp8_ue4m3>(c)) == c);
    }
}

TEST_CASE("case 4: reserved codes decode to Inf and NaN (intel-xpu-backend-for-triton #7771)") {
    for (const unsigned sign : {0u, 0x80u}) {
        CHECK(std::isnan(decode<fp8_e4m3>(static_cast<std::uint8_t>(0x7F | sign))));
        CHECK(decode<fp8_e5m2>(static_cast<std::uint8_t>(0x7C | sign)) == (sign != 0 ? -inf : inf));
        for (unsigned c = 0x7D; c <= 0x7F; ++c)
            CHECK(std::isnan(decode<fp8_e5m2>(static_cast<std::uint8_t>(c | sign))));
        CHECK(std::isfinite(decode<fp8_e4m3>(static_cast<std::uint8_t>(0x7E | sign))));
        CHECK(std::isfinite(decode<fp8_e5m2>(static_cast<std::uint8_t>(0x7B | sign))));
    }
    CHECK(std::isnan(decode<e8m0>(0xFF)));
    CHECK(std::isnan(decode<fp8_e4m3fnuz>(0x80)));
    for (unsigned c = 0; c < 16; ++c) CHECK(std::isfinite(decode<fp4_e2m1>(static_cast<std::uint8_t>(c))));
}

TEST_CASE("case 5: subnormal codes have no implied bit (1bit-MONSTER #300; b12x #388)") {
    for (unsigned c = 0; c < 8; ++c)
        CHECK(decode<fp8_e4m3>(static_cast<std::uint8_t>(c)) == static_cast<float>(c) * 0x1p-9f);
    for (unsigned c = 0; c < 4; ++c)
        CHECK(decode<fp8_e5m2>(static_cast<std::uint8_t>(c)) == static_cast<float>(c) * 0x1p-16f);
    for (unsigned c = 0; c < 1024; ++c)
        CHECK(decode<fp16>(static_cast<std::uint16_t>(c)) == static_cast<float>(c) * 0x1p-24f);
    for (unsigned c = 0; c < 128; ++c)
        CHECK(decode<bf16>(static_cast<std::uint16_t>(c)) == static_cast<float>(c) * 0x1p-133f);
    CHECK(decode<fp4_e2m1>(1) == 0.5f);
}

TEST_CASE("case 6: ties below the normal range are rounded once and may carry into it (openvino #30057)") {
    const float tie = 0x1.8p-9f;
    CHECK(encode<fp8_e4m3>(tie) == 0x02);
    CHECK(encode<fp8_e4m3>(std::nextafter(tie, 0.0f)) == 0x01);
    CHECK(encode<fp8_e4m3>(std::nextafter(tie, 1.0f)) == 0x02);
    CHECK(encode<fp8_e4m3>(0x7.8p-9f) == 0x08);
    // All subnormal ties of all formats, from both types, with neighbours.
    for_each_format([]<class Format>() {
        if constexpr (Format::spec.has_zero) {
            const double step = oracle_of<Format>().values()[1];
            for (std::uint32_t c = 0; c < 1u << Format::spec.mantissa_bits; ++c) {
                const double x = (c + 0.5) * step;
                const std::uint32_t even = c + (c & 1u);
                const auto narrow = static_cast<float>(x);
                if (encode<Format>(x) != even || encode<Format>(std::nextafter(x, 0.0)) != c ||
                    encode<Format>(std::nextafter(x, 1.0)) != c + 1 || encode<Format>(narrow) != even ||
                    encode<Format>(std::nextafter(narrow, 0.0f)) != c ||
                    encode<Format>(std::nextafter(narrow, 1.0f)) != c + 1) {
                    FAIL_CHECK(Format::name << " between codes " << c << " and " << c + 1);
                }
            }
        }
    });
}

TEST_CASE("case 7: numbers around half of the smallest subnormal (Float8s.jl #22)") {
    CHECK(encode<fp8_e4m3>(0.000538887) == 0x00);
    CHECK(encode<fp8_e4m3>(0.00083075) == 0x00);
    CHECK(encode<fp8_e4m3>(0.00103349) == 0x01);
    CHECK(encode<fp8_e4m3>(0.00112769) == 0x01);
    CHECK(encode<fp8_e4m3>(0.00083075f) == 0x00);
    CHECK(encode<fp8_e4m3>(0.00103349f) == 0x01);
}

TEST_CASE("case 8: FNUZ has no -0: a negative number that rounds to zero is code 00 (onnx #5764)") {
    tally t;
    for (const float x : {-1e-7f, -0.0f, -0x1p-149f, -0x1p-126f, -0x1p-20f, -0x1p-30f}) {
        for_each_rounding<fp8_e4m3fnuz>([&]<rounding R>() {
            for (const encode_options& o : all_options()) {
                const std::uint32_t last_draw = 0xFFFFFFFFu;  // stochastic: never up
                const auto describe = [&](std::ostream& os) { os << x << ' ' << static_cast<int>(R); };
                t.expect_equal(encode<fp8_e4m3fnuz, R>(x, o, last_draw), 0u, describe);
                t.expect_equal(encode<fp8_e5m2fnuz, R>(x, o, last_draw), 0u, describe);
                t.expect_equal(encode<fp8_e4m3fnuz, R>(static_cast<double>(x), o, last_draw), 0u, describe);
            }
        });
    }
    NUMFMT_CHECK_TALLY(t, 6u * 5 * 5 * 3);
    CHECK(encode_scaled<fp8_e4m3fnuz>(-1.0f, 100) == 0x00);
}

TEST_CASE("case 9: Inf to FNUZ follows the overflow rule: +-max or NaN (onnx #6220)") {
    CHECK(encode<fp8_e4m3fnuz>(inf) == 0x7F);
    CHECK(encode<fp8_e4m3fnuz>(-inf) == 0xFF);
    CHECK(encode<fp8_e4m3fnuz>(inf, nonsaturating) == 0x80);
    CHECK(encode<fp8_e5m2fnuz>(-inf, nonsaturating) == 0x80);
}

TEST_CASE("case 10: the largest number comes from the type (ROCm TransformerEngine #485)") {
    CHECK(std::numeric_limits<fp8_e4m3fnuz>::max() == 240.0f);
    CHECK(std::numeric_limits<fp8_e4m3>::max() == 448.0f);
    CHECK(std::numeric_limits<fp8_e5m2fnuz>::max() == 57344.0f);
    CHECK(std::numeric_limits<fp8_e5m2>::max() == 57344.0f);
}

TEST_CASE("case 11: negative E2M1 codes (llvm #160121)") {
    CHECK(decode<fp4_e2m1>(0b1001) == -0.5f);
    CHECK(bit_cast<std::uint32_t>(decode<fp4_e2m1>(0b1000)) == 0x80000000u);
    for (unsigned c = 0; c < 8; ++c) {
        CHECK(decode_bits<fp4_e2m1>(static_cast<std::uint8_t>(c | 8u)) ==
              (decode_bits<fp4_e2m1>(static_cast<std::uint8_t>(c)) | 0x80000000u));
    }
}

TEST_CASE("case 12: E2M1 ties go to the even code (aiter #3992, #974, #2247)") {
    const float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    const unsigned codes[] = {0, 2, 2, 4, 4, 6, 6};
    for (unsigned i = 0; i < 7; ++i) {
        CHECK(encode<fp4_e2m1>(ties[i]) == codes[i]);
        CHECK(encode<fp4_e2m1>(-ties[i]) == (codes[i] | 8u));
        CHECK(encode<fp4_e2m1>(bf16(ties[i])) == codes[i]);
        CHECK(encode<fp4_e2m1>(fp16(ties[i])) == codes[i]);
        CHECK(encode<fp4_e2m1>(static_cast<double>(ties[i])) == codes[i]);
        CHECK(encode<fp4_e2m1>(std::nextafter(ties[i], 0.0f)) == i);
        CHECK(encode<fp4_e2m1>(std::nextafter(ties[i], 9.0f)) == i + 1);
    }
}

TEST_CASE("case 13: the top binade of E2M3 is not clamped (rocm-systems #6870)") {
    CHECK(encode<fp6_e2m3>(4.0f) == 0x18);
    CHECK(encode<fp6_e2m3>(5.5f) == 0x1B);
    CHECK(encode<fp6_e2m3>(7.5f) == 0x1F);
    CHECK(encode<fp6_e2m3>(7.75f) == 0x1F);
    for (std::uint8_t c = 0x18; c <= 0x1F; ++c)
        CHECK(encode<fp6_e2m3>(4.0f + 0.5f * static_cast<float>(c - 0x18)) == c);
}

TEST_CASE("case 14: the last exponent of UE5M3 is finite, only FF is NaN (cutlass #3602)") {
    for (unsigned c = 0xF8; c <= 0xFE; ++c) {
        CHECK(decode<ue5m3>(static_cast<std::uint8_t>(c)) == 65536.0f + 8192.0f * static_cast<float>(c - 0xF8));
    }
    CHECK(std::isnan(decode<ue5m3>(0xFF)));
}

TEST_CASE("case 15: bf16 rounds, it does not truncate (universal #1133)") {
    CHECK(static_cast<float>(bf16(0.2691408770292272)) == 0.26953125f);
    CHECK(static_cast<float>(bf16(0.26914087f)) == 0.26953125f);
    CHECK(static_cast<float>(bf16(-0.2691408770292272)) == -0.26953125f);
}

TEST_CASE("case 16: NaN stays NaN wherever its payload is (dotnet #130583; tilelang #2481, #2690; half-rs #6)") {
    CHECK(encode<bf16>(from_bits(0x7F800001), signed_nan) == 0x7FC0);
    CHECK(encode<bf16>(from_bits(0xFF800001), signed_nan) == 0xFFC0);
    CHECK(encode<bf16>(from_bits(0x7FFFFFFF), signed_nan) == 0x7FC0);
    CHECK(encode<fp16>(bit_cast<double>(std::uint64_t{0x7FF0000000000001}), signed_nan) == 0x7E00);
    CHECK(encode<fp16>(bit_cast<double>(std::uint64_t{0xFFF0000000000001}), signed_nan) == 0xFE00);
    // One payload bit at a time, both signs, every format, rounding and source.
    for_each_format([]<class Format>() {
        tally t;
        const facts& f = facts_of<Format>();
        for_each_rounding<Format>([&]<rounding R>() {
            for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{1}}) {
                const std::uint32_t kept = f.quiet_nan | (sign != 0 ? f.sign_code() : 0u);
                const auto check = [&](auto x, int bit) {
                    const auto describe = [&](std::ostream& os) { os << Format::name << " payload bit " << bit; };
                    t.expect_equal(encode<Format, R>(x), f.canonical_nan, describe);
                    t.expect_equal(encode<Format, R>(x, signed_nan), kept, describe);
                };
                for (int b = 0; b < 23; ++b)
                    check(bit_cast<float>(static_cast<std::uint32_t>(sign << 31) | 0x7F800000u | 1u << b), b);
                for (int b = 0; b < 52; ++b)
                    check(bit_cast<double>(sign << 63 | 0x7FF0000000000000u | std::uint64_t{1} << b), b);
            }
        });
        NUMFMT_CHECK_TALLY(t, 4u * 2 * 75 * 2);
    });
}

TEST_CASE("case 17: what looks wrong and is right (gorse #1240; numpy #22704; pytorch #150756; ml_dtypes #221)") {
    CHECK(encode<bf16>(std::numeric_limits<float>::max()) == 0x7F80);
    CHECK(encode<fp16>(from_bits(0x34200000)) == 0x0002);
    CHECK(decode<fp8_e4m3>(encode<fp8_e4m3>(464.0f)) == 448.0f);
    CHECK(decode<fp8_e4m3>(encode<fp8_e4m3>(4.25f)) == 4.0f);
}

TEST_CASE("case 18: no detour through fp16 or bf16 (triton #2583, #10846)") {
    CHECK(encode<fp8_e4m3>(1.0625f + 0x1p-13f) == 0x39);
    CHECK(encode<fp8_e4m3>(fp16(1.0625f + 0x1p-13f)) == 0x38);  // what the detour gives
    // Just above and below every tie of every format, closer than any narrower type can tell, from float and double.
    for_each_format([]<class Format>() {
        if constexpr (Format::spec.has_zero) {
            tally t;
            const std::vector<double>& v = oracle_of<Format>().values();
            for (std::uint32_t c = 0; c + 2 < v.size(); ++c) {
                const double tie = v[c] + (v[c + 1] - v[c]) / 2;
                for (const double distance : {0x1p-13, 0x1p-22, 0x1p-30, 0x1p-52}) {
                    const double over = tie * (1 + distance), under = tie * (1 - distance);
                    const auto describe = [&](std::ostream& os) {
                        os << Format::name << " above code " << c << ' ' << distance;
                    };
                    t.expect_equal(encode<Format>(over), c + 1, describe);
                    t.expect_equal(encode<Format>(under), c, describe);
                    if (distance < 0x1p-22 || tie < 0x1p-110) continue;
                    t.expect_equal(encode<Format>(static_cast<float>(over)), c + 1, describe);
                    t.expect_equal(encode<Format>(static_cast<float>(under)), c, describe);
                }
            }
            NUMFMT_CHECK_TALLY(t, 50u);
        }
    });
}

TEST_CASE("case 19: truncation to bf16 finds the exponent from the bits (gfloat #49)") {
    const auto truncate = [](auto x) {
        return static_cast<double>(decode<bf16>(encode<bf16, rounding::toward_zero>(x)));
    };
    CHECK(truncate(6.6461399789245764e35) == 6.620178494631905e35);
    CHECK(truncate(-6.6461399789245764e35) == -6.620178494631905e35);
    for (int e = -126; e <= 127; ++e) {  // one ulp around every power of two
        const float power = std::ldexp(1.0f, e);
        CHECK(truncate(power) == static_cast<double>(power));
        CHECK(truncate(std::nextafter(power, inf)) == static_cast<double>(power));
        CHECK(truncate(std::nextafter(power, 0.0f)) ==
              static_cast<double>(power) * (e == -126 ? 127.0 / 128 : 255.0 / 256));
    }
}

TEST_CASE("case 20: truncating a finite number never gives Inf or NaN, in either overflow mode (riscv-isa-sim #2284)") {
    CHECK(encode<fp8_e4m3, rounding::toward_zero>(bf16::from_bits(0x5BF8), nonsaturating) == 0x7E);
    for_each_format([]<class Format>() {
        constexpr rounding mode = Format::spec.has_zero ? rounding::toward_zero : rounding::down;
        for (const double x : {1e6, 1e30, 1e40, 1e300, std::numeric_limits<double>::max()}) {
            if (x <= oracle_of<Format>().values()[facts_of<Format>().largest]) continue;
            CHECK(encode<Format, mode>(x, nonsaturating) == facts_of<Format>().largest);
            CHECK(encode<Format, mode>(-x, nonsaturating) ==
                  (facts_of<Format>().largest | facts_of<Format>().sign_code()));
        }
        if (facts_of<Format>().kind != shape::all_finite) {
            CHECK(encode<Format, mode>(inf, nonsaturating) > facts_of<Format>().largest);  // Inf itself is not finite
        }
    });
}

TEST_CASE("case 21: NaN tests and bf16 rounding survive -ffast-math (1bit-MONSTER #404; comfy-kitchen #74)") {
    const std::uint32_t bits[] = {0x7FC00000, 0x7F800000, 0x00000000, 0x00000000, 0x3F80C000};
    const fragile_results r = fast_math_results(bits);
    CHECK(r.nan_to_e4m3 == 0x7F);
    CHECK(r.bf16_round_trip == 0x3F810000);  // 1.005859375 became 1.0078125
}

TEST_CASE("case 22: tiny numbers, zeros, NaN signs and the overflow boundary (rocm-libraries #5471, #7517)") {
    // Below 2^-126 the true value counts, not zero and not the field of the exponent.
    for (const std::uint32_t bits : {0x00000001u, 0x00000002u, 0x003FFFFFu, 0x00400000u, 0x007FFFFFu, 0x00800000u}) {
        for (const std::uint32_t sign : {0u, 0x80000000u}) {
            const float x = from_bits(bits | sign);
            CHECK(encode<fp8_e4m3>(x) == sign >> 24);
            CHECK(encode<fp8_e5m2>(x) == sign >> 24);
            CHECK(encode<fp16>(x) == sign >> 16);
            CHECK(encode<bf16>(x) == (((bits + 0x7FFFu + (bits >> 16 & 1u)) | sign) >> 16));
        }
    }
    CHECK(encode<fp8_e5m2>(0.0f) == 0x00);
    CHECK(encode<fp8_e5m2>(-0.0f) == 0x80);
    CHECK(encode<fp8_e5m2>(quiet, signed_nan) == 0x7E);
    CHECK(encode<fp8_e5m2>(-quiet, signed_nan) == 0xFE);
    CHECK(encode<fp8_e5m2>(-quiet) == 0x7F);
    const auto around = [](auto format, float tie, unsigned below, unsigned at, unsigned above) {
        using Format = decltype(format);
        CHECK(encode<Format>(std::nextafter(tie, 0.0f), nonsaturating) == below);
        CHECK(encode<Format>(tie, nonsaturating) == at);
        CHECK(encode<Format>(std::nextafter(tie, inf), nonsaturating) == above);
    };
    around(fp8_e4m3{}, 464.0f, 0x7E, 0x7E, 0x7F);
    around(fp8_e5m2{}, 61440.0f, 0x7B, 0x7C, 0x7C);
    around(fp16{}, 65520.0f, 0x7BFF, 0x7C00, 0x7C00);
    around(bf16{}, 0x1.FFp127f, 0x7F7F, 0x7F80, 0x7F80);
}
