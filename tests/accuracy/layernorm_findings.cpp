// SPDX-License-Identifier: MIT
// What docs/accuracy.md says of layer normalisation, each claim from both sides: it fails where the effect is missing
// and where it is larger than its cause allows. Seeds vary.
#include <numfmt/accuracy/inputs.hpp>
#include <numfmt/accuracy/layernorm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace numfmt;
using namespace numfmt::accuracy;
using F = variance_formula;
using A = sum_accumulator;

namespace {

constexpr std::uint64_t seeds[] = {21, 22, 23};

// Rows of one mean/deviation, bf16 output.
layernorm_errors errors_of(F f, A a, double mean, std::int64_t n, std::uint64_t seed,
                           row_format input = row_format::fp32, int rows = 24) {
    layernorm_errors e;
    std::vector<float> x(static_cast<std::size_t>(n));
    for (int r = 0; r < rows; ++r) {
        fill(distribution::gaussian, seed, static_cast<std::uint64_t>(r) * static_cast<std::uint64_t>(n), x.data(), n);
        for (float& v : x) v = rounded_to_format(input, static_cast<float>(static_cast<double>(v) + mean));
        add_row(e, f, a, x.data(), n, exact_moments(f != F::mean_square, x.data(), n), 1e-5, row_format::bf16);
    }
    return e;
}

}  // namespace

TEST_CASE("finding: fp32 sums are a correctness fix at every mean, bf16 sums are wrong at all") {
    for (const std::uint64_t seed : seeds) {
        for (const double mean : {0.0, 10.0, 1000.0}) {
            const auto wrong = errors_of(F::two_pass, A::bf16_lanes, mean, 4096, seed);
            const auto right = errors_of(F::two_pass, A::fp32_lanes, mean, 4096, seed);
            CAPTURE(mean);
            CHECK(!wrong.correct());
            CHECK(right.correct());
            // 64 terms a lane, then a tree: (64 + 6) 2^-8 is all that the squares' sum can lose at mean 0.
            if (mean == 0) CHECK(wrong.worst < 70 * 0x1p-8);
            CHECK(wrong.worst > 1e-3);
            CHECK(right.worst < 1e-5);
        }
    }
}

TEST_CASE("finding: a chain in bf16 stops at 2^8 terms: half of the variance of 4096 is missing, most of 65536") {
    for (const std::uint64_t seed : seeds) {
        const auto at_4096 = errors_of(F::mean_square, A::bf16, 0, 4096, seed, row_format::fp32, 4);
        const auto at_65536 = errors_of(F::mean_square, A::bf16, 0, 65536, seed, row_format::fp32, 4);
        CHECK(at_4096.worst > 0.3);
        CHECK(at_4096.worst < 0.9);
        CHECK(at_65536.worst > 0.9);
        CHECK(at_65536.worst < 1);
    }
}

TEST_CASE("finding: one pass loses rows from a mean of 1000 deviations on, two passes lose none") {
    for (const std::uint64_t seed : seeds) {
        CHECK(errors_of(F::one_pass, A::fp32_lanes, 10, 4096, seed).correct());
        CHECK(!errors_of(F::one_pass, A::fp32_lanes, 1000, 4096, seed).correct());
        const auto lost = errors_of(F::one_pass, A::fp32_lanes, 1e4, 4096, seed);
        CHECK(lost.share_lost() > 0.2);  // kappa^2 u = 6: the variance is noise of either sign
        CHECK(lost.share_lost() < 0.95);
        for (const double mean : {10.0, 1000.0, 1e4}) {
            CHECK(errors_of(F::two_pass, A::fp32_lanes, mean, 4096, seed).correct());
            CHECK(errors_of(F::shifted, A::fp32_lanes, mean, 4096, seed).correct());
        }
        // The error grows with the square of the mean: by 10^2 for 10, within the factor 4 by which maxima vary.
        const double growth = errors_of(F::one_pass, A::fp32_lanes, 1000, 4096, seed).variance_rms() /
                              errors_of(F::one_pass, A::fp32_lanes, 100, 4096, seed).variance_rms();
        CHECK(growth > 25);
        CHECK(growth < 400);
    }
}

TEST_CASE("finding: clamping a negative variance and summing in double only look like fixes of one pass") {
    for (const std::uint64_t seed : seeds) {
        const auto clamped = errors_of(F::one_pass_clamped, A::fp32_lanes, 1e4, 4096, seed);
        CHECK(clamped.nan_rows == 0);    // looks like one
        CHECK(clamped.worst_ulp > 1e4);  // 1 / sqrt(eps) = 316 times what it should be, in units of 2^-7
        const auto doubled = errors_of(F::one_pass, A::double_sums, 1e4, 4096, seed);
        CHECK(!doubled.correct());
        CHECK(doubled.share_lost() > 0.2);
        // What is subtracted has been rounded to fp32: kappa^2 u is left, whatever the sums are in.
        const double bound = 1e6 * 0x1p-24;
        const auto at_1000 = errors_of(F::one_pass, A::double_sums, 1000, 4096, seed);
        CHECK(at_1000.worst > bound / 4);
        CHECK(at_1000.worst < 4 * bound);
        CHECK(errors_of(F::one_pass, A::double_precision, 1e4, 4096, seed).correct());
    }
}

TEST_CASE("finding: on bf16 rows nothing beyond fp32 and two passes is to be gained") {
    for (const std::uint64_t seed : seeds) {
        for (const double mean : {0.0, 10.0, 100.0}) {
            const double plain = errors_of(F::two_pass, A::fp32_lanes, mean, 4096, seed, row_format::bf16).worst_ulp;
            for (const auto& [f, a] :
                 {std::pair(F::two_pass, A::fp32_compensated), std::pair(F::two_pass, A::double_sums),
                  std::pair(F::two_pass, A::double_precision), std::pair(F::welford, A::fp32_lanes)}) {
                const double other = errors_of(f, a, mean, 4096, seed, row_format::bf16).worst_ulp;
                CHECK(std::fabs(plain - other) < 0.02);
            }
            CHECK(plain > 0.4);
            CHECK(plain < 0.52);
        }
    }
}

TEST_CASE("finding: at a mean of 10^5 deviations the rounded mean is what is left, and E[d] makes up for it") {
    for (const std::uint64_t seed : seeds) {
        const auto plain = errors_of(F::two_pass, A::fp32_lanes, 1e5, 4096, seed);
        const auto corrected = errors_of(F::two_pass_corrected, A::fp32_lanes, 1e5, 4096, seed);
        // Half of the last place of 10^5 is 2^-8, half a unit of the bf16 output; sums of 64 terms lose a few of them.
        CHECK(plain.worst_ulp > 0.6);
        CHECK(plain.worst_ulp < 8);
        CHECK(corrected.worst_ulp < 0.52);
        CHECK(corrected.worst < 1e-5);
    }
}

TEST_CASE("finding: RMS normalisation has no cancellation: fp32 sums are right at every mean, bf16 sums are not") {
    for (const std::uint64_t seed : seeds) {
        for (const double mean : {0.0, 100.0, 1e4}) {
            CHECK(errors_of(F::mean_square, A::fp32_lanes, mean, 4096, seed).worst < 1e-6);
            CHECK(errors_of(F::mean_square, A::bf16_lanes, mean, 4096, seed).worst > 1e-4);
        }
        CHECK(!errors_of(F::mean_square, A::bf16_lanes, 0, 4096, seed).correct());
    }
}
