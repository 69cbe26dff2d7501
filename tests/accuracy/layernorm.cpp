// SPDX-License-Identifier: MIT
// accuracy/layernorm.hpp: formulas of the variance against exact ones and their published bounds, the row's metrics.
#include <numfmt/accuracy/inputs.hpp>
#include <numfmt/accuracy/layernorm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace numfmt;
using namespace numfmt::accuracy;
using F = variance_formula;
using A = sum_accumulator;

namespace {

std::vector<float> normal_row(std::int64_t n, double mean, std::uint64_t seed) {
    std::vector<float> x(static_cast<std::size_t>(n));
    fill(distribution::gaussian, seed, 0, x.data(), n);
    for (float& v : x) v = static_cast<float>(static_cast<double>(v) + mean);
    return x;
}
template <class Fn> void for_each_method(Fn fn) {
    for (int f = 0; f < variance_formula_count; ++f)
        for (int a = 0; a < sum_accumulator_count; ++a) fn(static_cast<F>(f), static_cast<A>(a));
}
double mean_of(F f, const moments& m) { return f == F::mean_square ? 0 : m.mean + m.offset; }

}  // namespace

TEST_CASE("layernorm study: small integers, whose sums are exact everywhere, give the exact moments") {
    // Deviations -3, -1, 1, 3 around 8 (shifted by 5: 0, 2, 4, 6): every partial sum is an integer below 2^8.
    const std::vector<float> x = {5, 7, 9, 11};
    for_each_method([&](F f, A a) {
        CAPTURE(name_of(f));
        CAPTURE(name_of(a));
        const moments m = moments_of(f, a, x.data(), 4);
        if (!exists(f, a)) {
            CHECK(std::isnan(m.variance));
            return;
        }
        // Squares and E[x]^2 need more than bf16's 8 bits: 276 is no bf16 number, 64 and 69 are.
        const bool narrow = (a == A::bf16 || a == A::bf16_lanes) && (f == F::one_pass || f == F::one_pass_clamped);
        const bool ms = f == F::mean_square;
        if (narrow || (ms && (a == A::bf16 || a == A::bf16_lanes))) return;
        CHECK(mean_of(f, m) == (ms ? 0 : 8));
        CHECK(m.variance == (ms ? 69 : 5));
    });
}

TEST_CASE("layernorm study: one element, constant rows and a row length of no power of two") {
    const std::vector<float> one = {3.5f}, constant(77, 0.375f);
    for_each_method([&](F f, A a) {
        if (!exists(f, a) || f == F::mean_square) return;
        CAPTURE(name_of(f));
        CAPTURE(name_of(a));
        CHECK(moments_of(f, a, one.data(), 1).variance == 0);
        CHECK(mean_of(f, moments_of(f, a, one.data(), 1)) == 3.5);
        if (a == A::bf16 || a == A::fp16 || a == A::bf16_lanes) return;  // 77 terms do not add up exactly
        CHECK(std::fabs(moments_of(f, a, constant.data(), 77).variance) < 1e-6);
    });
    const moments exact = exact_moments(true, constant.data(), 77);
    CHECK(exact.mean == 0.375);
    CHECK(exact.variance == 0);
}

TEST_CASE("layernorm study: fp32 and double formulas stay within their bounds, and narrow sums do not") {
    for (const std::uint64_t seed : {1, 2, 3}) {
        for (const double mean : {0.0, 1.0, 30.0, 1000.0}) {
            for (const std::int64_t n : {5, 100, 1000, 4099}) {
                const std::vector<float> x = normal_row(n, mean, seed);
                const moments exact = exact_moments(true, x.data(), n), raw = exact_moments(false, x.data(), n);
                const double kappa = kappa_of(exact), size = static_cast<double>(n);
                for_each_method([&](F f, A a) {
                    if (!exists(f, a) || f == F::shifted) return;
                    const moments& e = f == F::mean_square ? raw : exact;
                    const double error = std::fabs(moments_of(f, a, x.data(), n).variance / e.variance - 1);
                    const bool fp32 =
                        a == A::fp32 || a == A::fp32_lanes || a == A::fp32_compensated || a == A::double_sums;
                    CAPTURE(name_of(f));
                    CAPTURE(name_of(a));
                    CAPTURE(n);
                    CAPTURE(mean);
                    // A handful of roundings more than n: the divisions, the product and the difference.
                    const double factor = (size + 6) / size * 1.5;
                    if (fp32) CHECK(error <= factor * variance_bound(f, size, kappa));
                    if (a == A::double_precision)
                        CHECK(error <= factor * variance_bound(f, size, kappa) * 0x1p-29 + 1e-15);
                });
            }
        }
        // 4096 terms stop at 2^8 of the same size in bf16: the sum is of the wrong order.
        const std::vector<float> x = normal_row(4096, 0, seed);
        const double exact = exact_moments(true, x.data(), 4096).variance;
        const double bf16_error = std::fabs(moments_of(F::two_pass, A::bf16, x.data(), 4096).variance / exact - 1);
        CHECK(bf16_error > 0.3);
        CHECK(bf16_error < 0.95);
    }
}

TEST_CASE("layernorm study: accumulators are told apart") {
    const std::vector<float> x = normal_row(3000, 50, 9);
    std::vector<double> seen;
    for (int a = 0; a < sum_accumulator_count; ++a) {
        const double v = moments_of(F::one_pass, static_cast<A>(a), x.data(), 3000).variance;
        if (static_cast<A>(a) == A::fp16 || static_cast<A>(a) == A::fp16_lanes) {
            CHECK(!std::isfinite(v));                      // 3000 x 2500 is beyond 65504, and so is a lane's 47 x 2500
        } else if (static_cast<A>(a) != A::double_sums) {  // rounded once, as the compensated sum nearly always is
            for (const double other : seen) CHECK(v != other);
            seen.push_back(v);
        }
    }
    CHECK(seen.size() == 6);
    // Clamping changes a negative variance and nothing else.
    for (const double mean : {2.0, 3000.0}) {
        for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
            const std::vector<float> row = normal_row(512, mean, seed);
            const double plain = moments_of(F::one_pass, A::fp32, row.data(), 512).variance;
            const double clamped = moments_of(F::one_pass_clamped, A::fp32, row.data(), 512).variance;
            CHECK(clamped == (plain < 0 ? 0 : plain));
        }
    }
}

TEST_CASE("layernorm study: output ulp is the format's, at 1 for smaller numbers") {
    CHECK(output_ulp(row_format::fp32, 1) == 0x1p-23);
    CHECK(output_ulp(row_format::fp32, -3.9) == 0x1p-22);
    CHECK(output_ulp(row_format::bf16, 1.5) == 0x1p-7);
    CHECK(output_ulp(row_format::bf16, 0.001) == 0x1p-7);
    CHECK(output_ulp(row_format::fp16, 2) == 0x1p-9);
    CHECK(output_ulp(row_format::fp8_e4m3, -8) == 1);
}

TEST_CASE("layernorm study: what add_row counts") {
    std::vector<float> x = normal_row(640, 1, 4);
    layernorm_errors e;
    const auto add = [&](F f, A a, row_format output) {
        add_row(e, f, a, x.data(), 640, exact_moments(f != F::mean_square, x.data(), 640), 1e-5, output);
    };
    for (const row_format output : {row_format::bf16, row_format::fp16, row_format::fp8_e4m3}) {
        e = {};
        add(F::two_pass, A::fp32_lanes, output);
        add(F::mean_square, A::fp32_lanes, output);
        CAPTURE(name_of(output));
        CHECK(e.rows == 2);
        CHECK(e.elements == 1280);
        CHECK(e.worst_ulp <= 0.51);  // rounding, and what fp32 adds to it: 2^-23 (10 + 5) of 2^-10
        CHECK(e.worst_ulp > 0.4);
        CHECK(e.ulp_rms() > 0.01);
        CHECK(e.ulp_rms() < 0.5 / std::sqrt(3.0) + 0.01);  // errors even over half a unit, smaller below 1
        CHECK(e.correct());
        CHECK(!e.correct(0.3));
    }
    e = {};
    add(F::two_pass, A::fp16, row_format::bf16);
    const layernorm_errors few = e;
    CHECK(few.lost == 0);
    for (float& v : x) v = v * 100;  // squares beyond 65504: Inf, and rows of zeros
    e = {};
    add(F::two_pass, A::fp16, row_format::bf16);
    CHECK(e.lost == 1);
    CHECK(e.finite == 0);
    CHECK(!e.correct());
    CHECK(e.worst_ulp > 100);
    for (float& v : x) v = 4;
    e = {};
    add(F::two_pass, A::fp32, row_format::bf16);
    CHECK(e.constant == 1);
    CHECK(e.rows == 0);
    // A negative variance: lost, and NaN in the output where eps does not hide it.
    std::int64_t lost = 0, nan = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        x = normal_row(640, 5000, seed);
        e = {};
        add(F::one_pass, A::fp32, row_format::bf16);
        lost += e.lost;
        nan += e.nan_rows;
        layernorm_errors both = e;
        both.merge(e);
        CHECK(both.rows == 2);
        CHECK(both.lost == 2 * e.lost);
        CHECK(both.worst == e.worst);
    }
    CHECK(lost > 0);
    CHECK(lost < 8);
    CHECK(nan == lost);
}
