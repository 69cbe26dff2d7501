// SPDX-License-Identifier: MIT
// encode() from float against the exact oracle: every format, rounding, overflow and NaN rule.
#include <doctest/doctest.h>

#include "support/compare.hpp"

using namespace numfmt_test;

TEST_CASE("encode from float: every exponent with boundary mantissas") {
    const std::vector<float> inputs = every_exponent<float>();
    for_each_format([&]<class Format>() {
        tally t;
        compare_all_roundings<Format>(t, inputs);
        NUMFMT_CHECK_TALLY(t, 4 * inputs.size());
    });
}

TEST_CASE("encode from float: every value and midpoint with its neighbours") {
    for_each_format([]<class Format>() {
        tally t;
        compare_all_roundings<Format>(t, boundaries<float>(oracle_of<Format>()));
        NUMFMT_CHECK_TALLY(t, 500u);
    });
}

TEST_CASE("encode from float: random bit patterns and random points of the format's range") {
    for_each_format([]<class Format>() {
        tally t;
        compare_all_roundings<Format>(t, random_floats<float>(oracle_of<Format>(), 0x5EED, 5000));
        NUMFMT_CHECK_TALLY(t, 10000u);
    });
}
