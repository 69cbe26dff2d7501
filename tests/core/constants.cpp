// SPDX-License-Identifier: MIT
// Everything in core/ is usable in constant expressions: most of this file is checked by compiling it.
#include <array>
#include <bit>
#include <limits>

#include <doctest/doctest.h>

#include <numfmt/core/philox.hpp>
#include <numfmt/core/std.hpp>

#include "support/formats.hpp"

using namespace numfmt;
using namespace numfmt_test;

// encode: sources, roundings, options.
static_assert(encode<fp8_e4m3>(464.0f) == 0x7E);
static_assert(encode<fp8_e4m3>(464.0f, {.overflow = overflow::to_nonfinite}) == 0x7E);
static_assert(encode<fp8_e4m3>(464.0625f, {.overflow = overflow::to_nonfinite}) == 0x7F);
static_assert(encode<fp8_e5m2>(61440.0, {.overflow = overflow::to_nonfinite}) == 0x7C);
static_assert(encode<fp8_e4m3, rounding::nearest_away>(1.0625) == 0x39);
static_assert(encode<fp8_e4m3, rounding::toward_zero>(-1.99f) == 0xBF);
static_assert(encode<fp8_e4m3, rounding::stochastic>(1.0625f, {}, 0x7FFFFFFFu) == 0x39);
static_assert(encode<fp8_e4m3, rounding::stochastic>(1.0625f, {}, 0x80000000u) == 0x38);
static_assert(encode<fp4_e2m1, rounding::nearest_to_zero>(5.0f) == 0x6);
static_assert(encode<bf16>((std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1) == 0x5D81);
static_assert(encode<fp16>(-65536) == 0xFC00);
static_assert(encode<fp8_e4m3>(bf16(448.0f)) == 0x7E);
static_assert(encode<e8m0, rounding::up>(1.5f) == 0x80 && encode<e8m0>(1.5f) == 0x7F);
static_assert(encode<bf16>(std::numeric_limits<float>::quiet_NaN()) == 0x7FFF);
static_assert(encode<bf16>(-std::numeric_limits<float>::infinity()) == 0xFF80);
static_assert(encode<bf16>(0x1p-133f) == 0x0001 && encode<bf16>(0x1p-134f) == 0x0000);
static_assert(encode_scaled<fp4_e2m1>(0x1.8p-140f, -140) == 0x3);
static_assert(encode_scaled<fp8_e4m3>(0.0f, -1000) == 0x00 && encode_scaled<fp8_e4m3>(1.0f, -1000) == 0x7E);

// decode.
static_assert(decode<fp8_e4m3>(0x01) == 0x1p-9f && decode<fp8_e4m3>(0xFE) == -448.0f);
static_assert(decode_bits<e8m0>(0x00) == 0x00400000u && decode<e8m0>(0xFE) == 0x1p127f);
static_assert(decode_scaled<fp4_e2m1>(0x1, -127) == 0x1p-128f && decode_scaled<fp8_e5m2>(0x01, -127) == 0x1p-143f);

// Arrays.
constexpr std::array<std::uint8_t, 3> encode_three() {
    const float x[] = {1.0f, -0.3f, 1000.0f};
    std::array<std::uint8_t, 3> codes{};
    encode<fp8_e4m3>(x, 3, codes.data());
    return codes;
}
static_assert(encode_three() == std::array<std::uint8_t, 3>{0x38, 0xAA, 0x7E});

// Values.
static_assert(fp8_e4m3(1.5) == 1.5f && fp8_e4m3(1) < fp8_e4m3(2) && -fp8_e4m3(1) == fp8_e4m3(-1));
static_assert(bf16(1.5f) + bf16(0.25f) == bf16(1.75f) && fp16(3.0f) / fp16(2.0f) == fp16(1.5f));
static_assert([] {
    bf16 x(2.0f);
    x *= bf16(4.0f);
    return x.bits();
}() == 0x4100);
static_assert(fp8_e4m3(fp4_e2m1(6.0f)) == fp8_e4m3(6.0f) && fp4_e2m1(fp8_e4m3(5.0f)).bits() == 0x6);
static_assert(is_nan(fp8_e4m3::from_bits(0xFF)) && !is_finite(fp8_e5m2::from_bits(0x7C)));
static_assert(std::numeric_limits<fp8_e4m3>::max() == 448.0f && std::numeric_limits<fp16>::epsilon() == 0x1p-10f);

inline constexpr fp8_e4m3 pi(3.14159f);
static_assert(pi == 3.25f);

// Policies, status, Philox, names.
static_assert(represents_all(fp8_e4m3_tag::spec, bf16_tag::spec) && !represents_all(bf16_tag::spec, fp16_tag::spec));
static_assert(default_rounding_v<bf16> == rounding::nearest_even && default_rounding_v<e8m0> == rounding::down);
static_assert(random_word(0, 1) == 0xE169C58Du);
static_assert(status{}.ok() && !status{status_code::too_small, "n", 1, 2});
static_assert(enum_name(rounding::nearest_even) == "nearest_even");
static_assert([] {
    overflow o{};
    return from_string("to_nonfinite", o) && o == overflow::to_nonfinite;
}());
static_assert([] {
    char text[8] = {};
    return message(status{status_code::null_pointer, "x", 0, 0}, text, 8) == 19 && text[0] == 'x' && text[7] == '\0';
}());

TEST_CASE("constants: the same at run time") {
    volatile float x = 464.0625f;
    CHECK(encode<fp8_e4m3>(static_cast<float>(x), {.overflow = overflow::to_nonfinite}) == 0x7F);
    constexpr std::array<std::uint8_t, 3> at_compile_time = encode_three();
    CHECK(encode_three() == at_compile_time);
}

TEST_CASE("constants: codec results computed by the compiler equal those computed by the machine") {
    constexpr std::size_t n = 512;
    constexpr auto input = [](std::size_t i) {
        return bit_cast<float>(static_cast<std::uint32_t>(i * 0x00800000u + i * 12345u));
    };
    constexpr auto codes = [=] {
        std::array<std::uint32_t, n> c{};
        for (std::size_t i = 0; i < n; ++i) {
            c[i] = static_cast<std::uint32_t>(encode<fp8_e4m3>(input(i))) |
                   static_cast<std::uint32_t>(encode<bf16>(input(i))) << 8 |
                   static_cast<std::uint32_t>(encode<e8m0>(input(i))) << 24;
        }
        return c;
    }();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) {
        volatile std::uint32_t hidden = std::bit_cast<std::uint32_t>(input(i));
        const float x = std::bit_cast<float>(static_cast<std::uint32_t>(hidden));
        const std::uint32_t c = static_cast<std::uint32_t>(encode<fp8_e4m3>(x)) |
                                static_cast<std::uint32_t>(encode<bf16>(x)) << 8 |
                                static_cast<std::uint32_t>(encode<e8m0>(x)) << 24;
        wrong += c != codes[i] ? 1u : 0u;
    }
    CHECK(wrong == 0);
}
