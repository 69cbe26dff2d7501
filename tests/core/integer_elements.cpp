// SPDX-License-Identifier: MIT
// round_to_integer and int_spec: the elements of the integer schemes.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <numfmt/core/std.hpp>

#include "support/inputs.hpp"
#include "support/tally.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

// x * 2^-k rounded to an integer, in double: exact for the scales below.
template <rounding R> double rounded(float x, int k, std::uint32_t draw) {
    const double y = std::ldexp(static_cast<double>(x), -k), a = std::fabs(y), low = std::floor(a), rest = a - low;
    double r = low;
    switch (R) {
        case rounding::toward_zero:
            break;
        case rounding::nearest_away:
            r += rest >= 0.5 ? 1 : 0;
            break;
        case rounding::nearest_to_zero:
            r += rest > 0.5 ? 1 : 0;
            break;
        case rounding::stochastic:
            r += static_cast<double>(draw) < std::floor(std::ldexp(rest, 32)) ? 1 : 0;
            break;
        default:
            r += rest > 0.5 || (rest == 0.5 && std::fmod(low, 2) == 1) ? 1 : 0;
            break;
    }
    return std::signbit(y) ? -r : r;
}

template <rounding R> void compare(tally& t, float x, int k, std::uint32_t draw) {
    struct range {
        int low, high;
    };
    for (const range r : {range{-127, 127}, range{-8, 7}, range{0, 15}, range{-32767, 32767}}) {
        const double wanted = std::isnan(x) ? 0 : std::clamp(rounded<R>(x, k, draw), 1.0 * r.low, 1.0 * r.high);
        t.expect_equal(round_to_integer<R>(x, k, r.low, r.high, draw), static_cast<int>(wanted), [&](std::ostream& os) {
            os << std::hexfloat << x << " * 2^" << -k << ' ' << R << " draw " << draw << " in " << r.low << ".."
               << r.high;
        });
    }
}

template <class Fn> void all_roundings(Fn&& fn) { for_each_rounding<bf16>(fn); }

}  // namespace

TEST_CASE("round_to_integer: every exponent and every tie up to 200, all scales") {
    std::vector<float> inputs = every_exponent<float>();
    for (int i = -400; i <= 400; ++i) {
        const float x = 0.5f * static_cast<float>(i);
        for (const float y : {x, std::nextafter(x, 1e9f), std::nextafter(x, -1e9f)}) inputs.push_back(y);
    }
    random_stream r(61);
    all_roundings([&]<rounding R>() {
        tally t;
        for (const float x : inputs) {
            const std::uint32_t draw = r.word();
            compare<R>(t, x, 0, draw);
            const int k = static_cast<int>(r.below(301)) - 150;
            compare<R>(t, x, k, draw);
            compare<R>(t, std::ldexp(x, k), k, draw);
        }
        NUMFMT_CHECK_TALLY(t, 12 * inputs.size());
    });
}

TEST_CASE("round_to_integer: zero, the smallest and the largest numbers under far scales") {
    all_roundings([]<rounding R>() {
        tally t;
        for (const float x :
             {0.0f, -0.0f, 0x1p-149f, -0x1p-126f, 1.0f, -0x1.FFFFFEp127f, HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
            for (int k = -800; k <= 800; k += 7) compare<R>(t, x, k, 1u);
        }
        NUMFMT_CHECK_TALLY(t, 5000u);
    });
}

TEST_CASE("int_spec: the largest power of two that the codes reach") {
    CHECK(int_spec{8, true, 6, -127, 127}.max_exponent() == 0);  // MXINT8: 1.984375
    CHECK(int_spec{4, true, 0, -8, 7}.max_exponent() == 2);
    CHECK(int_spec{4, false, 0, 0, 15}.max_exponent() == 3);
    CHECK(int_spec{4, false, 0, 0, 15}.code_mask() == 0xFu);
    CHECK(int_spec{8, true, 6, -127, 127}.code_mask() == 0xFFu);
}
