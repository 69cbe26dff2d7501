// SPDX-License-Identifier: MIT
// Properties of all codes of a format: decode, round trips, order, arrays.
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "support/compare.hpp"

using namespace numfmt_test;

TEST_CASE("decode: every code of every format equals the oracle's value, sign of zero included") {
    for_each_format([]<class Format>() {
        tally t;
        for (std::uint32_t c = 0; c < 1u << Format::spec.bits(); ++c) {
            const float x = numfmt::decode<Format>(static_cast<typename Format::storage>(c));
            const double wanted = oracle_of<Format>().decode(c);
            const auto describe = [&](std::ostream& os) { os << Format::name << " code " << std::hex << c; };
            t.expect_equal(std::isnan(x), std::isnan(wanted), describe);
            if (std::isnan(wanted)) continue;
            t.expect_equal(std::bit_cast<std::uint64_t>(static_cast<double>(x)), std::bit_cast<std::uint64_t>(wanted),
                           describe);
        }
        NUMFMT_CHECK_TALLY(t, 1u << Format::spec.bits());
    });
}

TEST_CASE("decode: bits above the format's width are ignored") {
    for_each_format([]<class Format>() {
        using storage = typename Format::storage;
        if constexpr (Format::spec.bits() < static_cast<int>(sizeof(storage) * 8)) {
            std::size_t wrong = 0;
            for (std::uint32_t c = 0; c < 1u << (sizeof(storage) * 8); ++c) {
                const storage masked = static_cast<storage>(c & ((1u << Format::spec.bits()) - 1u));
                wrong += numfmt::decode_bits<Format>(static_cast<storage>(c)) != numfmt::decode_bits<Format>(masked)
                             ? 1u
                             : 0u;
                wrong += Format::from_bits(static_cast<storage>(c)).bits() != masked ? 1u : 0u;
            }
            CHECK_MESSAGE(wrong == 0, Format::name);
        }
    });
}

TEST_CASE("round trip: encode(decode(c)) is c for every number, under every rounding and from float and double") {
    for_each_format([]<class Format>() {
        tally t;
        for_each_rounding<Format>([&]<numfmt::rounding R>() {
            for (std::uint32_t c = 0; c < 1u << Format::spec.bits(); ++c) {
                const auto code = static_cast<typename Format::storage>(c);
                if (oracle_of<Format>().is_nan(c)) continue;
                const float x = numfmt::decode<Format>(code);
                // to_nonfinite, so that infinities return as well; draw 0 rounds up whatever has a fraction.
                const numfmt::encode_options o{numfmt::overflow::to_nonfinite};
                const auto describe = [&](std::ostream& os) {
                    os << Format::name << ' ' << R << " code " << std::hex << c;
                };
                t.expect_equal(numfmt::encode<Format, R>(x, o), code, describe);
                t.expect_equal(numfmt::encode<Format, R>(static_cast<double>(x), o), code, describe);
                t.expect_equal(Format::from_bits(code).bits(), code, describe);
            }
        });
        NUMFMT_CHECK_TALLY(t, (1u << Format::spec.bits()) - 1u);
    });
}

TEST_CASE("round trip: NaN stays NaN, with its sign where it is kept") {
    for_each_format([]<class Format>() {
        for (std::uint32_t c = 0; c < 1u << Format::spec.bits(); ++c) {
            if (!oracle_of<Format>().is_nan(c)) continue;
            const Format x = Format::from_bits(static_cast<typename Format::storage>(c));
            const auto kept = numfmt::encode<Format>(x, {numfmt::overflow::by_format, numfmt::nan_mode::keep_sign});
            CHECK(is_nan(Format::from_bits(numfmt::encode<Format>(x))));
            CHECK(is_nan(Format::from_bits(kept)));
            CHECK((kept & Format::spec.sign_bit()) == (c & Format::spec.sign_bit()));
        }
    });
}

TEST_CASE("order: encode is monotone in its input") {
    for_each_format([]<class Format>() {
        std::vector<float> inputs = every_exponent<float>();
        const std::vector<float> near = boundaries<float>(oracle_of<Format>());
        inputs.insert(inputs.end(), near.begin(), near.end());
        std::erase_if(inputs, [](float x) { return std::isnan(x) || std::signbit(x); });
        std::sort(inputs.begin(), inputs.end());
        for_each_rounding<Format>([&]<numfmt::rounding R>() {
            if (R == numfmt::rounding::stochastic) return;
            const conversion<float> convert = &encode_code<Format, R, float>;
            std::size_t wrong = 0;
            const auto value = [&](float x) { return oracle_of<Format>().decode(convert(x, {}, 0)); };
            for (std::size_t i = 1; i < inputs.size(); ++i) {
                wrong += value(inputs[i - 1]) <= value(inputs[i]) ? 0u : 1u;
                if (Format::spec.is_signed) wrong += value(-inputs[i]) <= value(-inputs[i - 1]) ? 0u : 1u;
            }
            CHECK_MESSAGE(wrong == 0, Format::name << ' ' << R);
            CHECK(inputs.size() > 2000);
        });
    });
}

TEST_CASE("arrays: encode and decode of an array equal the element's, for every length") {
    using namespace numfmt;
    const std::vector<float> x = random_floats<float>(oracle_of<fp8_e4m3>(), 77, 40);
    for (std::int64_t n = 0; n <= static_cast<std::int64_t>(x.size()); ++n) {
        std::vector<std::uint8_t> codes(x.size() + 1, 0xA5);
        encode<fp8_e4m3>(x.data(), n, codes.data());
        std::vector<std::uint8_t> truncated(x.size() + 1, 0xA5);
        encode<fp8_e4m3, rounding::toward_zero>(x.data(), n, truncated.data(), {overflow::to_nonfinite});
        std::vector<float> y(x.size() + 1, -3.5f);
        decode<fp8_e4m3>(codes.data(), n, y.data());
        bool equal = true;
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
            equal = equal && codes[i] == encode<fp8_e4m3>(x[i]);
            equal = equal && truncated[i] == encode<fp8_e4m3, rounding::toward_zero>(x[i], {overflow::to_nonfinite});
            equal = equal && std::bit_cast<std::uint32_t>(y[i]) == decode_bits<fp8_e4m3>(codes[i]);
        }
        CHECK(equal);
        CHECK(codes[static_cast<std::size_t>(n)] == 0xA5);  // nothing beyond the end is written
        CHECK(y[static_cast<std::size_t>(n)] == -3.5f);
    }
}
