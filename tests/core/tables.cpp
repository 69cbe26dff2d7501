// SPDX-License-Identifier: MIT
// The hand-checked tables of tests/golden/core against the codec, and the oracle against the same tables.
#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include "golden/core/tables.hpp"
#include "support/oracle.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

constexpr encode_options saturating{overflow::saturate};
constexpr encode_options nonsaturating{overflow::to_nonfinite};

// Code of x from the codec; also checks that the oracle says the same.
template <class Format, rounding R = rounding::nearest_even, class Source>
std::uint32_t code_of(Source x, encode_options options = saturating) {
    const std::uint32_t code = encode<Format, R>(x, options);
    CHECK(oracle_of<Format>().encode(real_of(x), R, options) == code);
    return code;
}

template <class Format, std::size_t N> void check_runs(const golden::code_run (&runs)[N]) {
    for (const golden::code_run& run : runs) {
        for (std::uint32_t i = 0; i < 8; ++i) {
            const std::uint32_t code = run.first + i;
            CAPTURE(code);
            const float got = decode<Format>(static_cast<typename Format::storage>(code));
            const double wanted = run.value[i];
            if (std::isnan(wanted)) {
                CHECK(std::isnan(got));
                CHECK(std::isnan(oracle_of<Format>().decode(code)));
                continue;
            }
            CHECK(static_cast<double>(got) == wanted);
            CHECK(std::signbit(got) == std::signbit(wanted));
            CHECK(oracle_of<Format>().decode(code) == wanted);
            if (std::isfinite(wanted)) CHECK(code_of<Format>(wanted) == code);
        }
    }
}

template <class Format, std::size_t N> void check_fp8(const golden::fp8_row (&rows)[N]) {
    for (const golden::fp8_row& row : rows) {
        CAPTURE(row.input);
        CHECK(code_of<Format>(row.input) == row.nearest);
        CHECK(code_of<Format>(row.input, nonsaturating) == row.nonsaturating);
        CHECK(code_of<Format, rounding::toward_zero>(row.input) == row.truncated);
        CHECK(code_of<Format, rounding::nearest_away>(row.input) == row.away);
        CHECK(code_of<Format>(static_cast<double>(row.input)) == row.nearest);
        CHECK(encode<Format>(row.input) == row.nearest);  // saturation is the default
    }
}

}  // namespace

TEST_CASE("tables: values of consecutive codes") {
    check_runs<fp8_e4m3>(golden::e4m3_runs);
    check_runs<fp8_e5m2>(golden::e5m2_runs);
    check_runs<fp6_e3m2>(golden::e3m2_runs);
    check_runs<fp6_e2m3>(golden::e2m3_runs);
    check_runs<fp4_e2m1>(golden::e2m1_runs);
}

TEST_CASE("tables: the 254 finite codes of E4M3 sum to 10815.75 in magnitude") {
    double sum = 0;
    for (unsigned c = 0; c < 256; ++c) {
        const float x = decode<fp8_e4m3>(static_cast<std::uint8_t>(c));
        if (std::isfinite(x)) sum += static_cast<double>(std::fabs(x));
    }
    CHECK(sum == 10815.75);
}

TEST_CASE("tables: E5M2 is the upper byte of fp16") {
    for (unsigned c = 0; c < 256; ++c) {
        const float narrow = decode<fp8_e5m2>(static_cast<std::uint8_t>(c));
        const float wide = decode<fp16>(static_cast<std::uint16_t>(c << 8));
        if (std::isnan(wide)) {
            CHECK(std::isnan(narrow));
        } else {
            CHECK(narrow == wide);
        }
    }
}

TEST_CASE("tables: float to bf16 and fp16") {
    for (const golden::half_row& row : golden::halves) {
        const float x = std::bit_cast<float>(row.input);
        CAPTURE(x);
        CHECK(code_of<bf16>(x, {}) == row.bf16_nearest);
        CHECK(code_of<bf16, rounding::toward_zero>(x, {}) == row.bf16_truncated);
        CHECK(code_of<fp16>(x, {}) == row.fp16_nearest);
        CHECK(code_of<fp16, rounding::toward_zero>(x, {}) == row.fp16_truncated);
        CHECK(code_of<bf16>(-x, {}) == (row.bf16_nearest | 0x8000u));
        CHECK(code_of<fp16>(static_cast<double>(x), {}) == row.fp16_nearest);
    }
}

TEST_CASE("tables: bf16 and fp16 specials") {
    constexpr float inf = golden::inf, nan = golden::nan;
    CHECK(code_of<bf16>(inf, {}) == 0x7F80);
    CHECK(code_of<bf16>(-inf, {}) == 0xFF80);
    CHECK(code_of<bf16>(nan, {}) == 0x7FFF);
    CHECK(code_of<bf16>(-nan, {}) == 0x7FFF);
    CHECK(code_of<fp16>(inf, {}) == 0x7C00);
    CHECK(code_of<fp16>(nan, {}) == 0x7FFF);
    CHECK(code_of<bf16>(inf, saturating) == 0x7F7F);
    CHECK(code_of<fp16>(-inf, saturating) == 0xFBFF);
    CHECK(code_of<fp16>(65520.0f, saturating) == 0x7BFF);
    CHECK(code_of<bf16>(-nan, {overflow::by_format, nan_mode::keep_sign}) == 0xFFC0);
    CHECK(code_of<fp16>(nan, {overflow::by_format, nan_mode::keep_sign}) == 0x7E00);
}

TEST_CASE("tables: float to E4M3 and E5M2") {
    check_fp8<fp8_e4m3>(golden::e4m3_rows);
    check_fp8<fp8_e5m2>(golden::e5m2_rows);
    CHECK(code_of<fp8_e4m3, rounding::nearest_away>(464.0f, nonsaturating) == 0x7F);
}

TEST_CASE("tables: E2M1 ties under the three nearest roundings") {
    for (const golden::e2m1_tie& row : golden::e2m1_ties) {
        CAPTURE(row.input);
        for (const float s : {1.0f, -1.0f}) {
            const auto value = [](std::uint32_t code) { return decode<fp4_e2m1>(static_cast<std::uint8_t>(code)); };
            CHECK(value(code_of<fp4_e2m1>(s * row.input)) == s * row.even);
            CHECK(value(code_of<fp4_e2m1, rounding::nearest_to_zero>(s * row.input)) == s * row.to_zero);
            CHECK(value(code_of<fp4_e2m1, rounding::nearest_away>(s * row.input)) == s * row.away);
        }
    }
}

TEST_CASE("tables: E2M1 and FP6 saturate whatever the overflow rule, NaN is +max, -0 stays") {
    constexpr float inf = golden::inf, nan = golden::nan;
    for (const encode_options o : {saturating, nonsaturating, encode_options{}}) {
        CHECK(code_of<fp4_e2m1>(inf, o) == 0x7);
        CHECK(code_of<fp4_e2m1>(-inf, o) == 0xF);
        CHECK(code_of<fp4_e2m1>(1e9f, o) == 0x7);
        CHECK(code_of<fp4_e2m1>(nan, o) == 0x7);
        CHECK(code_of<fp4_e2m1>(-nan, o) == 0x7);
        CHECK(code_of<fp4_e2m1>(-0.0f, o) == 0x8);
        CHECK(code_of<fp6_e2m3>(-nan, o) == 0x1F);
        CHECK(code_of<fp6_e3m2>(-1e9f, o) == 0x3F);
    }
    CHECK(code_of<fp4_e2m1>(-nan, {overflow::saturate, nan_mode::keep_sign}) == 0xF);
}

TEST_CASE("tables: FP6 ties") {
    for (const golden::tie& row : golden::e3m2_ties) CHECK(code_of<fp6_e3m2>(row.input) == row.code);
    for (const golden::tie& row : golden::e2m3_ties) CHECK(code_of<fp6_e2m3>(row.input) == row.code);
}

TEST_CASE("tables: FNUZ formats") {
    for (const golden::fnuz_row& row : golden::e4m3fnuz_rows) {
        CAPTURE(row.input);
        CHECK(code_of<fp8_e4m3fnuz>(row.input) == row.saturated);
        CHECK(code_of<fp8_e4m3fnuz>(row.input, nonsaturating) == row.nonsaturating);
    }
    for (const golden::fnuz_row& row : golden::e5m2fnuz_rows) {
        CAPTURE(row.input);
        CHECK(code_of<fp8_e5m2fnuz>(row.input) == row.saturated);
        CHECK(code_of<fp8_e5m2fnuz>(row.input, nonsaturating) == row.nonsaturating);
    }
    for (unsigned c = 0; c < 256; ++c) {  // half of E4M3 wherever both are finite
        const float half = decode<fp8_e4m3fnuz>(static_cast<std::uint8_t>(c)),
                    full = decode<fp8_e4m3>(static_cast<std::uint8_t>(c));
        if (std::isfinite(full) && c != 0x80) CHECK(2 * half == full);
    }
}

TEST_CASE("tables: E8M0") {
    const auto value = [](unsigned c) { return decode_bits<e8m0>(static_cast<std::uint8_t>(c)); };
    CHECK(value(0) == 0x00400000u);
    for (unsigned c = 1; c < 255; ++c) CHECK(value(c) == c << 23);
    CHECK((value(255) & 0x7FFFFFFFu) > 0x7F800000u);
    CHECK(bf16(e8m0::from_bits(0)).bits() == 0x0040);
    CHECK(bf16(e8m0::from_bits(255)).bits() == 0x7FFF);
    for (const golden::e8m0_row& row : golden::e8m0_rows) {
        CAPTURE(row.input);
        CHECK(code_of<e8m0, rounding::down>(row.input) == row.down);
        CHECK(code_of<e8m0, rounding::toward_zero>(row.input) == row.down);
        CHECK(code_of<e8m0, rounding::up>(row.input) == row.up);
        CHECK(code_of<e8m0, rounding::down>(row.input, nonsaturating) == row.down_nonfinite);
        CHECK(code_of<e8m0, rounding::up>(row.input, nonsaturating) == row.up_nonfinite);
        CHECK(code_of<e8m0, rounding::nearest_up>(row.input) == row.nearest_up);
        CHECK(code_of<e8m0, rounding::up>(static_cast<double>(row.input)) == row.up);
        CHECK(encode<e8m0>(row.input) == row.down);  // the defaults: down, saturate
    }
    CHECK(code_of<e8m0, rounding::nearest_up>(0x1.8p127f, nonsaturating) == 0xFF);
    CHECK(code_of<e8m0, rounding::nearest_up>(0x1.7FFFFEp127f, nonsaturating) == 0xFE);
}
