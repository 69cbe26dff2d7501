// SPDX-License-Identifier: MIT
// Error metrics against cases worked out by hand, and sums that a plain loop would get wrong.
#include <numfmt/accuracy/metrics.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using numfmt::accuracy::error_metrics;
using numfmt::accuracy::pairwise_sum;

namespace {
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
}  // namespace

TEST_CASE("metrics: four values by hand") {
    const float x[] = {1, -2, 4, 0.5f}, y[] = {1.5f, -2, 3, 0};
    error_metrics m;
    m.add(x, y, 4);
    CHECK(m.count == 4);
    CHECK(m.signal() == 1 + 4 + 16 + 0.25);
    CHECK(m.noise() == 0.25 + 0 + 1 + 0.25);
    CHECK(m.relative_rms() == doctest::Approx(std::sqrt(1.5 / 21.25)).epsilon(1e-15));
    CHECK(m.sqnr_db() == doctest::Approx(10 * std::log10(21.25 / 1.5)).epsilon(1e-15));
    CHECK(m.max_relative() == 1);  // the flushed one
    CHECK(m.max_absolute() == 1);
    CHECK(m.flushed == 1);
    CHECK(m.share_flushed() == 0.25);
    CHECK(m.clipped == 0);
}

TEST_CASE("metrics: largest relative error is over nonzero values only") {
    const float x[] = {0, 2, -8}, y[] = {100, 2.5f, -5};
    error_metrics m;
    m.add(x, y, 3);
    CHECK(m.max_relative() == 0.375);  // of the negative one
    CHECK(m.max_absolute() == 100);
    CHECK(m.flushed == 0);
}

TEST_CASE("metrics: differences are formed in double") {
    const float x = 1, y = 0x1p-30f;
    error_metrics m;
    m.add(&x, &y, 1);
    CHECK(m.max_relative() == 1 - 0x1p-30);
}

TEST_CASE("metrics: clipped is what lies outside the range, both ends excluded") {
    const float x[] = {-3, -2, 0, 5, 5.5f}, y[] = {-2, -2, 0, 5, 5};
    error_metrics m;
    m.add(x, y, 5, {-2, 5});
    CHECK(m.clipped == 2);
    CHECK(m.share_clipped() == doctest::Approx(0.4).epsilon(1e-15));
    m.add(x, y, 5);  // without a range nothing is clipped
    CHECK(m.clipped == 2);
    CHECK(m.share_clipped() == doctest::Approx(0.2).epsilon(1e-15));
}

TEST_CASE("metrics: no error, no signal, no elements") {
    error_metrics none;
    CHECK(std::isnan(none.sqnr_db()));  // not "no error"
    CHECK(std::isnan(none.relative_rms()));
    CHECK(none.share_clipped() == 0);

    const float x[] = {1, 0, -0.0f};
    error_metrics exact;
    exact.add(x, x, 3);
    CHECK(exact.sqnr_db() == infinity);
    CHECK(exact.max_relative() == 0);
    CHECK(exact.flushed == 0);  // zero that stays zero is not flushed

    const float zero = 0, one = 1;
    error_metrics noise_only;
    noise_only.add(&zero, &one, 1);
    CHECK(noise_only.sqnr_db() == -infinity);
    CHECK(noise_only.relative_rms() == infinity);
    CHECK(noise_only.max_relative() == 0);
}

TEST_CASE("metrics: values that are not finite are counted and kept out of the sums") {
    const float x[] = {not_a_number, inf, -inf, not_a_number, 3, 70000, 2},
                y[] = {not_a_number, 448, not_a_number, 6, not_a_number, inf, 1};
    error_metrics m;
    m.add(x, y, 7, {-65520, 65520});
    CHECK(m.count == 7);
    CHECK(m.nan == 2);
    CHECK(m.infinite == 2);
    CHECK(m.replaced == 2);  // Inf -> 448, NaN -> 6
    CHECK(m.lost == 2);      // 3 -> NaN, 70000 -> Inf
    CHECK(m.clipped == 1);   // 70000, although it is lost too; never NaN or Inf
    CHECK(m.signal() == 4);
    CHECK(m.noise() == 1);
    CHECK(m.max_relative() == 0.5);
    CHECK(m.compared() == 1);
}

TEST_CASE("metrics: nothing that could be compared is not the same as no error") {
    const float x[] = {1, 2, inf}, y[] = {not_a_number, inf, inf};
    error_metrics m;
    m.add(x, y, 3);
    CHECK(m.compared() == 0);
    CHECK(m.lost == 2);
    CHECK(std::isnan(m.sqnr_db()));
    CHECK(std::isnan(m.relative_rms()));
}

TEST_CASE("metrics: parts merge to the whole") {
    constexpr std::int64_t n = 5000;
    std::vector<float> x, y;
    for (std::int64_t i = 0; i < n; ++i) {
        x.push_back(static_cast<float>(i % 97) - 48);
        y.push_back(i % 13 == 0 ? 0 : i % 501 == 7 ? not_a_number : x.back() * 1.0625f);
    }
    error_metrics whole, merged;
    whole.add(x.data(), y.data(), n, {-40, 40});
    for (std::int64_t first = 0; first < n; first += 700) {
        error_metrics part;
        part.add(x.data() + first, y.data() + first, std::min<std::int64_t>(700, n - first), {-40, 40});
        merged.merge(part);
    }
    CHECK(merged.count == whole.count);
    CHECK(merged.clipped == whole.clipped);
    CHECK(merged.clipped > 500);
    CHECK(merged.flushed == whole.flushed);
    CHECK(merged.flushed > 300);
    CHECK(merged.lost == whole.lost);
    CHECK(merged.lost > 0);
    CHECK(merged.max_relative() == whole.max_relative());
    CHECK(merged.max_absolute() == whole.max_absolute());
    CHECK(merged.signal() == doctest::Approx(whole.signal()).epsilon(1e-14));
    CHECK(merged.noise() == doctest::Approx(whole.noise()).epsilon(1e-14));
}

TEST_CASE("metrics: a large term does not swallow the small ones") {
    // 2^20 terms of 2^-53 after a 1: a running sum stays at 1, because each of them is half a unit in its last place.
    pairwise_sum sum;
    double running = 1;
    sum.add(1);
    for (int i = 0; i < (1 << 20); ++i) {
        sum.add(0x1p-53);
        running += 0x1p-53;
    }
    CHECK(running == 1);
    CHECK(std::fabs(sum.value() - (1 + 0x1p-33)) < 0x1p-48);
}

TEST_CASE("metrics: 2^24 values of 0.1f and its error of a tenth") {
    constexpr std::int64_t n = 1 << 16;
    const std::vector<float> x(n, 0.1f), y(n, 0.11f);
    error_metrics m, part;
    part.add(x.data(), y.data(), n);
    for (int i = 0; i < 256; ++i) m.merge(part);
    const double tenth = static_cast<double>(0.1f), error = static_cast<double>(0.11f) - tenth;
    CHECK(m.count == std::int64_t{1} << 24);
    CHECK(std::fabs(m.signal() / (0x1p24 * tenth * tenth) - 1) < 1e-14);
    CHECK(std::fabs(m.noise() / (0x1p24 * error * error) - 1) < 1e-14);
}

TEST_CASE("metrics: sums merge without losing a term") {
    for (const int n : {0, 1, 2, 3, 7, 8, 100, 1023}) {
        pairwise_sum a, b;
        for (int i = 0; i < n; ++i) a.add(i);
        for (int i = 0; i < 77; ++i) b.add(1000 * i);
        a.merge(b);
        CHECK(a.value() == n * (n - 1) / 2 + 1000 * 77 * 38);
    }
}
