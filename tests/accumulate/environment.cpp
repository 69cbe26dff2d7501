// SPDX-License-Identifier: MIT
// The accumulators under -ffast-math: the same bits, and compensation that still compensates.
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "accumulate/accumulate_cases.hpp"
#include "support/inputs.hpp"

using namespace numfmt_test;

namespace {
std::uint64_t (*volatile fast_math_unit)(const float*, const float*, const double*, int) = &fast_math_accumulate_hash;
}

TEST_CASE("accumulate environment: a unit built with -ffast-math gives the same bits") {
    random_stream random(4);
    std::vector<float> x, y;
    std::vector<double> z;
    for (int i = 0; i < 1001; ++i) {
        const auto number = [&] {
            return std::ldexp(static_cast<float>(static_cast<std::int32_t>(random.word())), -31 - i % 13);
        };
        x.push_back(number());
        y.push_back(number());
        z.push_back(static_cast<double>(number()) + std::ldexp(static_cast<double>(random.word()), -70));
    }
    const std::uint64_t here = accumulate_hash(x.data(), y.data(), z.data(), 1001);
    CHECK(fast_math_unit(x.data(), y.data(), z.data(), 1001) == here);
    y[500] = -y[500];
    CHECK(fast_math_unit(x.data(), y.data(), z.data(), 1001) != here);
    WARN_MESSAGE(accumulate_built_with_fast_math(),
                 "fastmath_accumulate.cpp was built without -ffast-math: this case shows nothing");
}

TEST_CASE("accumulate environment: what -ffast-math is known to simplify away") {
    std::vector<float> x(4097, 0x1p-24f), y(4097, 1.0f), large(4097, std::numeric_limits<float>::max());
    x[0] = 1;
    const fragile_sums s = fast_math_fragile_sums(x.data(), y.data(), large.data(), 4097);
    CHECK(s.kahan == 1.0f + 0x1p-12f);
    CHECK(s.neumaier == 1.0f + 0x1p-12f);
    CHECK(s.dot2 == 1.0f + 0x1p-12f);
    CHECK(std::isinf(s.after_overflow));
}
