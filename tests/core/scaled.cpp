// SPDX-License-Identifier: MIT
// encode_scaled and decode_scaled against exact double arithmetic: x * 2^k is exact in double over their whole range.
#include <cmath>

#include <doctest/doctest.h>

#include "support/compare.hpp"

using namespace numfmt_test;

namespace {

// x * 2^-k as a number to encode. Beyond 2^+-800 nothing changes any more, and ldexp stays exact.
real scaled(float x, int k) { return real_of(std::ldexp(static_cast<double>(x), -std::clamp(k, -800, 800))); }

struct scaled_input {
    float x;
    int k;
};

template <class Format, numfmt::rounding R>
std::uint32_t encode_scaled_code(scaled_input in, numfmt::encode_options options, std::uint32_t draw) {
    return numfmt::encode_scaled<Format, R>(in.x, in.k, options, draw);
}

template <class Format, numfmt::rounding R> void compare_scaled(tally& t, float x, int k) {
    compare_one<scaled_input>(t, oracle_of<Format>(), R, scaled(x, k), &encode_scaled_code<Format, R>, {x, k});
}

template <class Format> constexpr bool can_scale = Format::spec.has_zero;

}  // namespace

TEST_CASE("encode_scaled: every exponent of the source with the scales that reach the format's range") {
    const std::vector<float> inputs = every_exponent<float>();
    for_each_format([&]<class Format>() {
        if constexpr (can_scale<Format>) {
            random_stream r(4);
            tally t;
            for_each_rounding<Format>([&]<numfmt::rounding R>() {
                for (const float x : inputs) {
                    int e = 0;
                    std::frexp(x, &e);
                    if (!std::isfinite(x)) e = 0;
                    // The scale that moves x to a random place in the format, or anywhere.
                    const int range =
                        Format::spec.max_exponent() - Format::spec.min_exponent() + Format::spec.mantissa_bits + 6;
                    const int target =
                        Format::spec.max_exponent() + 2 - static_cast<int>(r.below(static_cast<std::uint32_t>(range)));
                    compare_scaled<Format, R>(t, x, e - target);
                    compare_scaled<Format, R>(t, x, static_cast<int>(r.below(255)) - 127);
                }
            });
            NUMFMT_CHECK_TALLY(t, 8 * inputs.size());
        }
    });
}

TEST_CASE("encode_scaled: ties and neighbours of every narrow format under every E8M0 scale") {
    for_each_format([&]<class Format>() {
        if constexpr (can_scale<Format> && Format::spec.bits() <= 8) {
            tally t;
            const std::vector<double>& v = oracle_of<Format>().values();
            for (std::size_t c = 0; c + 1 < v.size(); ++c) {
                for (const double exact : {v[c], (v[c] + v[c + 1]) / 2}) {
                    for (int k = -127; k <= 127; k += v.size() > 16 ? 7 : 1) {
                        const float x = static_cast<float>(std::ldexp(exact, k));
                        for (const float y : {x, std::nextafter(x, HUGE_VALF), std::nextafter(x, 0.0f), -x}) {
                            compare_scaled<Format, numfmt::rounding::nearest_even>(t, y, k);
                        }
                    }
                }
            }
            NUMFMT_CHECK_TALLY(t, 1000u);
        }
    });
}

TEST_CASE("encode_scaled: zeros, subnormals and the largest numbers over all scale exponents") {
    const float inputs[] = {0.0f, -0.0f,           0x1p-149f, -0x1.8p-148f, 0x1.FFFFFCp-127f, 0x1p-126f,
                            1.0f, 0x1.FFFFFEp127f, -0x1p127f, HUGE_VALF,    -HUGE_VALF,       std::nanf("")};
    for_each_format([&]<class Format>() {
        if constexpr (can_scale<Format>) {
            tally t;
            for_each_rounding<Format>([&]<numfmt::rounding R>() {
                for (const float x : inputs) {
                    for (int k = -1000; k <= 1000; k += 3) compare_scaled<Format, R>(t, x, k);
                }
            });
            NUMFMT_CHECK_TALLY(t, 1000u);
        }
    });
}

TEST_CASE("encode_scaled: scale 0 is encode") {
    for_each_format([&]<class Format>() {
        if constexpr (can_scale<Format>) {
            tally t;
            for (const float x : random_floats<float>(oracle_of<Format>(), 5, 3000)) {
                t.expect_equal(numfmt::encode_scaled<Format>(x, 0), numfmt::encode<Format>(x),
                               [&](std::ostream& os) { os << Format::name << ' ' << x; });
            }
            NUMFMT_CHECK_TALLY(t, 6000u);
        }
    });
}

TEST_CASE("decode_scaled: all codes of the narrow formats times all E8M0 scales") {
    for_each_format([&]<class Format>() {
        if constexpr (can_scale<Format> && Format::spec.bits() <= 8) {
            tally t;
            for (std::uint32_t c = 0; c < 1u << Format::spec.bits(); ++c) {
                for (int k = -127; k <= 127; ++k) {
                    const float got = numfmt::decode_scaled<Format>(static_cast<typename Format::storage>(c), k);
                    const double exact = std::ldexp(oracle_of<Format>().decode(c), k);
                    const auto describe = [&](std::ostream& os) {
                        os << Format::name << " code " << c << " * 2^" << k;
                    };
                    t.expect_equal(std::isnan(got), std::isnan(exact), describe);
                    if (std::isnan(exact)) continue;
                    const float wanted = static_cast<float>(exact);  // exact, or Inf above the largest float
                    t.expect_equal(std::isinf(wanted) || static_cast<double>(wanted) == exact, true, describe);
                    t.expect_equal(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(wanted), describe);
                }
            }
            NUMFMT_CHECK_TALLY(t, 255u << Format::spec.bits());
        }
    });
}

TEST_CASE("scaled: decode_scaled undoes encode_scaled for every number and scale that a float can hold") {
    using namespace numfmt;
    for (std::uint32_t c = 0; c < 16; ++c) {
        for (int k = -127; k <= 125; ++k) {
            const float x = decode_scaled<fp4_e2m1>(static_cast<std::uint8_t>(c), k);
            CHECK(encode_scaled<fp4_e2m1>(x, k) == c);
        }
    }
}
