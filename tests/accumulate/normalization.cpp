// SPDX-License-Identifier: MIT
// accumulate/normalization.hpp: rows that normalisations get wrong, by one chain and by many, within the derived bound;
// the policies told apart; scaling.
#include <numfmt/accumulate/normalization.hpp>
#include <numfmt/accumulate/tree.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/norm_cases.hpp"

using namespace numfmt;
using namespace numfmt_test;
using namespace numfmt::accumulate;

namespace {

template <class A> void hard_rows(double chains) {
    for (const norm_row& row : hard_norm_rows()) {
        for (const bool centred : {true, false}) {
            INFO(row.name);
            CAPTURE(centred);
            const auto value = [&](std::int64_t i) { return row.x[static_cast<std::size_t>(i)]; };
            const auto n = static_cast<std::int64_t>(row.x.size());
            const row_statistics s = statistics_of_row<A>(value, n, centred, variance_policy::two_pass, row.eps);
            const exact_norm exact = normalise_exactly(row.x, centred, row.eps);
            int outside = 0;
            for (std::size_t i = 0; i < row.x.size(); ++i) {
                const double error = std::fabs(static_cast<double>(normalised(row.x[i], s)) - exact.y[i]);
                outside += !(error <= norm_bound(row.x, exact, centred, row.eps, i, 1, 0, chains));
            }
            CHECK(outside == 0);
            CHECK(static_cast<double>(s.row_mean()) == doctest::Approx(static_cast<double>(exact.mean)).epsilon(1e-4));
            CHECK(static_cast<double>(s.row_rstd()) == doctest::Approx(static_cast<double>(exact.rstd)).epsilon(1e-3));
        }
    }
}

}  // namespace

TEST_CASE("cases 54 to 58: rows that normalisations get wrong, by one chain and by 64") {
    hard_rows<sequential<float>>(1);
    hard_rows<interleaved<sequential<float>, 16, 4>>(64);
}

TEST_CASE("normalization: one pass cancels, a shift and two passes do not") {
    const auto value = [](std::int64_t i) { return 20000.0f + static_cast<float>(i % 5); };  // variance 2
    const auto variance = [&](variance_policy p) {
        return moments_of_row<sequential<float>>(value, 1000, true, p).second;
    };
    CHECK(variance(variance_policy::two_pass) == doctest::Approx(2.0).epsilon(1e-5));
    CHECK(variance(variance_policy::shifted) == doctest::Approx(2.0).epsilon(1e-5));
    CHECK(std::fabs(variance(variance_policy::one_pass) - 2.0f) > 0.5f);  // 4e8 has a last place of 32
    // What the rounded mean lacks is in the offset: 0.1 is no float's neighbour of a mean of its own copies.
    const row_moments m =
        moments_of_row<sequential<float>>([](std::int64_t) { return 0.1f; }, 1000, true, variance_policy::two_pass);
    CHECK(m.shift + m.offset == 0.1f);
    CHECK(m.second < 1e-16f);
}

TEST_CASE("normalization: rows are scaled only where their squares leave fp32") {
    CHECK(!needs_scaling(1, 0));
    CHECK(!needs_scaling(0, 1e-12f));
    CHECK(needs_scaling(0, 0));
    CHECK(needs_scaling(0x1p-97f, 0));
    CHECK(needs_scaling(std::numeric_limits<float>::infinity(), 1e-5f));
    CHECK(needs_scaling(std::numeric_limits<float>::quiet_NaN(), 1e-5f));
    CHECK(row_scale(0, 0) == 1);
    CHECK(row_scale(std::numeric_limits<float>::infinity(), 0) == 1);
    CHECK(row_scale(3e38f, 1e-5f) == 0x1p-126f);
    CHECK(row_scale(12, 0) == 0x1p-3f);
    CHECK(row_scale(0x1p-120f, 0) == 0x1p120f);
    CHECK(row_scale(0x1p-120f, 0x1p-20f) == 0x1p60f);  // eps 2^120 2^-20 = 2^100
    CHECK(reciprocal_deviation(0, 0) == 0);
    CHECK(reciprocal_deviation(0.25f, 0) == 2);
    CHECK(reciprocal_deviation(3, 1) == 0.5f);
    CHECK(rounded_sqrt(2.0f) == 0x1.6a09e6p0f);
    CHECK(std::isnan(rounded_sqrt(-1.0f)));
}
