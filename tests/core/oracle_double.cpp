// SPDX-License-Identifier: MIT
// encode() from double against the exact oracle: every format, rounding, overflow and NaN rule.
#include <doctest/doctest.h>

#include "support/compare.hpp"

using namespace numfmt_test;

TEST_CASE("encode from double: every exponent with boundary mantissas") {
    const std::vector<double> inputs = every_exponent<double>();
    for_each_format([&]<class Format>() {
        tally t;
        compare_all_roundings<Format>(t, inputs);
        NUMFMT_CHECK_TALLY(t, 4 * inputs.size());
    });
}

TEST_CASE("encode from double: every value and midpoint with its neighbours") {
    for_each_format([]<class Format>() {
        tally t;
        compare_all_roundings<Format>(t, boundaries<double>(oracle_of<Format>()));
        NUMFMT_CHECK_TALLY(t, 500u);
    });
}

TEST_CASE("encode from double: random bit patterns and random points of the format's range") {
    for_each_format([]<class Format>() {
        tally t;
        compare_all_roundings<Format>(t, random_floats<double>(oracle_of<Format>(), 0xD0B1E, 5000));
        NUMFMT_CHECK_TALLY(t, 10000u);
    });
}
