// SPDX-License-Identifier: MIT
// Seeded inputs: golden values of an independent implementation, slices, moments and shape of each distribution.
#include <numfmt/accuracy/inputs.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <numfmt/accumulate/exact.hpp>
#include <numfmt/fp8.hpp>

using numfmt::accuracy::distribution;
using numfmt::accuracy::fill;

namespace {

std::vector<float> draw(distribution kind, std::uint64_t seed, std::int64_t n, double sigma = 1) {
    std::vector<float> x(static_cast<std::size_t>(n));
    fill(kind, seed, 0, x.data(), n, sigma);
    return x;
}

struct moments {
    double mean = 0, variance = 0, kurtosis = 0, skewness = 0, neighbours = 0, largest = 0;
};

moments moments_of(const std::vector<float>& x) {
    const double n = static_cast<double>(x.size());
    moments m;
    for (const float v : x) m.mean += static_cast<double>(v) / n;
    double third = 0, fourth = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double d = static_cast<double>(x[i]) - m.mean;
        m.variance += d * d / n;
        third += d * d * d / n;
        fourth += d * d * d * d / n;
        if (i > 0) m.neighbours += d * (static_cast<double>(x[i - 1]) - m.mean) / n;
        m.largest = std::fmax(m.largest, std::fabs(static_cast<double>(x[i])));
    }
    m.skewness = third / std::pow(m.variance, 1.5);
    m.kurtosis = fourth / (m.variance * m.variance);
    m.neighbours /= m.variance;
    return m;
}

}  // namespace

TEST_CASE("inputs: first values agree with an independent implementation") {
    // Philox4x32-10 and the transforms written in Python with its math module.
    struct golden {
        distribution kind;
        std::uint64_t seed, first;
        float even, odd;
    };
    const golden cases[] = {
        {distribution::uniform, 0, 0, 0x1.85e4a8p+0f, 0x1.b823fp-5f},
        {distribution::uniform, 0, 2, 0x1.370126p+0f, -0x1.01c65p-2f},
        {distribution::uniform, 0x123456789abcdef0u, 0, -0x1.345bd8p+0f, -0x1.2a915cp-1f},
        {distribution::uniform, 7, 17179869184u, -0x1.55770ap+0f, 0x1.1b5438p-1f},
        {distribution::gaussian, 0, 0, -0x1.9b7d4ep-1f, 0x1.679e06p-3f},
        {distribution::gaussian, 0, 2, -0x1.c8b46ep+0f, 0x1.cfa0b2p-1f},
        {distribution::gaussian, 0x123456789abcdef0u, 0, -0x1.40dbe8p-1f, 0x1.da2a28p+0f},
        {distribution::gaussian, 7, 17179869184u, -0x1.47d34ap-1f, 0x1.300a24p+0f},
        {distribution::laplace, 0, 0, -0x1.69cc0ep+0f, 0x1.a4fe1ap-2f},
        {distribution::laplace, 0, 2, 0x1.46eb8p+0f, 0x1.1ca9bap-1f},
        {distribution::laplace, 0x123456789abcdef0u, 0, 0x1.dcc24ep-3f, 0x1.fdbbeap-2f},
        {distribution::laplace, 7, 17179869184u, 0x1.66fad8p-7f, 0x1.974db2p-4f},
    };
    for (const golden& c : cases) {
        CAPTURE(static_cast<int>(c.kind));
        CAPTURE(c.seed);
        CAPTURE(c.first);
        float x[2];
        fill(c.kind, c.seed, c.first, x, 2);
        // One unit in the last place: another C library may round log, sin or cos differently.
        CHECK(std::fabs(x[0] - c.even) <= std::fabs(c.even) * 0x1p-23f);
        CHECK(std::fabs(x[1] - c.odd) <= std::fabs(c.odd) * 0x1p-23f);
    }
}

TEST_CASE("inputs: any slice equals the same part of the whole") {
    for (const distribution kind : {distribution::uniform, distribution::gaussian, distribution::laplace}) {
        const std::vector<float> whole = draw(kind, 42, 101);
        for (std::int64_t first = 0; first <= 8; ++first) {
            for (std::int64_t n = 0; n <= 9; ++n) {
                std::vector<float> part(static_cast<std::size_t>(n) + 1, -99.0f);
                fill(kind, 42, static_cast<std::uint64_t>(first), part.data(), n);
                bool same = true;
                for (std::int64_t i = 0; i < n; ++i)
                    same = same && part[static_cast<std::size_t>(i)] == whole[static_cast<std::size_t>(first + i)];
                CHECK_MESSAGE(same, "first ", first, " n ", n);
                CHECK(part.back() == -99.0f);  // nothing behind the slice is touched
            }
        }
    }
}

TEST_CASE("inputs: seeds and distributions draw different numbers") {
    const auto equal = [](const std::vector<float>& a, const std::vector<float>& b) {
        int n = 0;
        for (std::size_t i = 0; i < a.size(); ++i) n += a[i] == b[i] ? 1 : 0;
        return n;
    };
    const auto a = draw(distribution::gaussian, 0, 1000);
    CHECK(equal(a, draw(distribution::gaussian, 0, 1000)) == 1000);
    CHECK(equal(a, draw(distribution::gaussian, 1, 1000)) < 3);
    CHECK(equal(a, draw(distribution::gaussian, std::uint64_t{1} << 32, 1000)) < 3);

    // Both are monotone in the same uniform number: were the streams shared, the signs would agree.
    const auto u = draw(distribution::uniform, 0, 10000), l = draw(distribution::laplace, 0, 10000);
    int agree = 0;
    for (std::size_t i = 0; i < u.size(); ++i) agree += (u[i] < 0) == (l[i] < 0) ? 1 : 0;
    CHECK(agree > 4700);
    CHECK(agree < 5300);
}

TEST_CASE("inputs: moments") {
    // Bounds of 5 standard errors: sd of the mean 1/sqrt(n), of the variance sqrt((kurtosis - 1)/n), and so on.
    constexpr std::int64_t n = 1 << 20;
    const double root_n = std::sqrt(static_cast<double>(n));
    struct wanted {
        distribution kind;
        double kurtosis, kurtosis_slack, largest_low, largest_high;
    };
    const wanted cases[] = {
        {distribution::uniform, 1.8, 5 * 0.8 / root_n, 1.7320, 1.7321},
        {distribution::gaussian, 3.0, 5 * std::sqrt(24.0) / root_n, 4.2, 6.5},
        {distribution::laplace, 6.0, 5 * 60.0 / root_n, 7.5, 16.0},
    };
    for (const wanted& w : cases) {
        CAPTURE(static_cast<int>(w.kind));
        const moments m = moments_of(draw(w.kind, 2024, n));
        CHECK(std::fabs(m.mean) < 5 / root_n);
        CHECK(std::fabs(m.variance - 1) < 5 * std::sqrt(w.kurtosis - 1) / root_n);
        CHECK(std::fabs(m.skewness) < 5 * 8 / root_n);
        CHECK(std::fabs(m.kurtosis - w.kurtosis) < w.kurtosis_slack);
        CHECK(std::fabs(m.neighbours) < 5 / root_n);
        CHECK(m.largest > w.largest_low);
        CHECK(m.largest < w.largest_high);
    }
}

TEST_CASE("inputs: quantiles of the gaussian and the laplace distribution") {
    constexpr std::int64_t n = 1 << 20;
    const auto share_below = [&](distribution kind, double x) {
        std::int64_t below = 0;
        for (const float v : draw(kind, 5, n)) below += static_cast<double>(v) < x ? 1 : 0;
        return static_cast<double>(below) / static_cast<double>(n);
    };
    for (const double x : {-2.5, -1.0, -0.25, 0.5, 1.5, 3.0}) {
        CAPTURE(x);
        const double normal = 0.5 * std::erfc(-x / std::sqrt(2.0));
        const double laplace = x < 0 ? 0.5 * std::exp(std::sqrt(2.0) * x) : 1 - 0.5 * std::exp(-std::sqrt(2.0) * x);
        CHECK(std::fabs(share_below(distribution::gaussian, x) - normal) < 5 * std::sqrt(normal * (1 - normal) / n));
        CHECK(std::fabs(share_below(distribution::laplace, x) - laplace) < 5 * std::sqrt(laplace * (1 - laplace) / n));
    }
}

TEST_CASE("inputs: sigma scales every value") {
    const auto unit = draw(distribution::laplace, 9, 64), small = draw(distribution::laplace, 9, 64, 0x1p-20);
    for (std::size_t i = 0; i < unit.size(); ++i) CHECK(small[i] == unit[i] * 0x1p-20f);
}

TEST_CASE("inputs: an ill-conditioned dot product has the condition number it says") {
    for (const std::int64_t n : {3, 128, 129, 4096}) {
        for (const double wanted : {1e3, 1e5, 1e6}) {
            std::vector<float> x(static_cast<std::size_t>(n)), y(x.size()), again(x.size()), other(x.size());
            const auto facts = numfmt::accuracy::ill_conditioned(7, n, wanted, x.data(), y.data());
            numfmt::accumulate::exact_sum sum, absolute;
            int zeros = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                sum.add_product(x[i], y[i]);
                absolute.add_product(std::fabs(x[i]), std::fabs(y[i]));
                CHECK(static_cast<float>(numfmt::fp8_e4m3(x[i])) == x[i]);
                CHECK(static_cast<float>(numfmt::fp8_e4m3(y[i])) == y[i]);
                zeros += x[i] == 0 ? 1 : 0;
            }
            CHECK(facts.sum == sum.value());
            CHECK(facts.absolute_sum == absolute.value());
            CHECK(zeros == (n % 2 == 0 ? 1 : 0));
            if (n > 3) {
                CHECK(facts.condition() > wanted / 1.5);
                CHECK(facts.condition() < wanted * 1.5);
                // The terms that cancel do not lie side by side.
                int side_by_side = 0;
                for (std::size_t i = 1; i < x.size(); ++i) side_by_side += x[i] * y[i] == -x[i - 1] * y[i - 1] ? 1 : 0;
                CHECK(side_by_side < n / 8 + 8);
            }
            numfmt::accuracy::ill_conditioned(7, n, wanted, again.data(), y.data());
            numfmt::accuracy::ill_conditioned(8, n, wanted, other.data(), y.data());
            CHECK(again == x);
            CHECK(other != x);
        }
    }
}
