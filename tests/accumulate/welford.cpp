// SPDX-License-Identifier: MIT
// Variance: errors of the five ways at several ratios of mean to deviation, two-sided.
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <numfmt/accumulate/exact.hpp>
#include <numfmt/accumulate/welford.hpp>
#include <numfmt/accuracy/inputs.hpp>
#include <numfmt/bf16.hpp>

using namespace numfmt::accumulate;

namespace {

constexpr int n = 4096;

std::vector<float> normal(double mean, std::uint64_t seed) {
    std::vector<float> v(n);
    numfmt::accuracy::fill(numfmt::accuracy::distribution::gaussian, seed, 0, v.data(), n);
    for (float& x : v) x = static_cast<float>(mean + static_cast<double>(x));
    return v;
}

// In long double from exact first moments: its error is below 1e-13 at every ratio here.
double exact_variance(const std::vector<float>& v) {
    exact_sum s;
    for (const float x : v) s.add(static_cast<double>(x));
    const long double mean = static_cast<long double>(s.value()) / n;
    long double squares = 0;
    for (const float x : v) squares += (static_cast<long double>(x) - mean) * (static_cast<long double>(x) - mean);
    return static_cast<double>(squares / n);
}

template <class V> double variance_of(const std::vector<float>& v) {
    V a{};
    for (const float x : v) a.add(x);
    return static_cast<double>(a.value());
}

struct errors {
    double largest = 0, median = 0;
    int not_positive = 0;
};
template <class F> errors over_trials(double mean, int trials, F&& variance) {
    std::vector<double> all;
    errors e;
    for (int t = 0; t < trials; ++t) {
        const auto v = normal(mean, static_cast<std::uint64_t>(t));
        const double got = variance(v), want = exact_variance(v);
        all.push_back(std::fabs(got - want) / want);
        e.not_positive += got <= 0 ? 1 : 0;
    }
    std::sort(all.begin(), all.end());
    e.largest = all.back();
    e.median = all[all.size() / 2];
    return e;
}
template <class V> errors errors_of(double mean, int trials = 60) {
    return over_trials(mean, trials, [](const auto& v) { return variance_of<V>(v); });
}
template <class A> errors two_pass_errors(double mean, int trials = 60) {
    return over_trials(mean, trials, [](const std::vector<float>& v) {
        return static_cast<double>(two_pass<A>(v.data(), n).variance);
    });
}

using one_pass = power_sums<sequential<float>>;
using shifted = shifted_power_sums<sequential<float>>;

}  // namespace

TEST_CASE("variance: largest errors of sequential sums, mean / deviation from 0 to 10000") {
    // Maxima over 60 data sets; each bound is a factor of about 3 around what 200 sets gave elsewhere.
    CHECK(errors_of<one_pass>(0).largest < 8e-6);
    CHECK(errors_of<welford<float>>(0).largest < 8e-6);
    CHECK(errors_of<one_pass>(10).largest > 1e-4);
    CHECK(errors_of<one_pass>(100).largest > 1e-2);
    CHECK(errors_of<one_pass>(1000).largest > 1);
    CHECK(errors_of<one_pass>(1000).not_positive > 5);
    for (const double mean : {10.0, 100.0, 1000.0}) {
        CHECK(errors_of<shifted>(mean).largest < 6e-5);
        CHECK(errors_of<shifted>(mean).largest > 2e-6);
        CHECK(two_pass_errors<sequential<float>>(mean).largest < 1.5e-5);
        CHECK(two_pass_errors<sequential<float>>(mean).largest > 5e-7);
        CHECK(errors_of<welford<float>>(mean).largest < 1.5e-4);
    }
    CHECK(errors_of<welford<float>>(1000).largest > 1e-5);
    CHECK(errors_of<welford<float>>(10000).largest > 2e-4);
    CHECK(errors_of<welford<float>>(10000).largest < 3e-3);
    // Chan over 32 lanes.
    CHECK(errors_of<interleaved<welford<float>, 32>>(0).largest < 6e-7);
    CHECK(errors_of<interleaved<welford<float>, 32>>(1000).largest < 5e-5);
    CHECK(errors_of<interleaved<welford<float>, 32>>(1000).largest > 3e-6);
}

TEST_CASE("variance: 256 chains and a tree at mean / deviation 1000, medians") {
    CHECK(errors_of<interleaved<one_pass, 256>>(1000).median > 1.5e-2);
    CHECK(errors_of<interleaved<one_pass, 256>>(1000).median < 1.5e-1);
    CHECK(errors_of<interleaved<welford<float>, 256>>(1000).median > 3e-7);
    CHECK(errors_of<interleaved<welford<float>, 256>>(1000).median < 6e-6);
    const errors two = two_pass_errors<interleaved<sequential<float>, 256>>(1000);
    CHECK(two.median < 1.5e-7);
    CHECK(two.median > 5e-9);
    const errors once = over_trials(1000, 60, [](const std::vector<float>& v) {
        interleaved<power_sums<sequential<float>>, 256> sums;
        for (const float x : v) sums.add(x - v[0]);
        return static_cast<double>(sums.value());
    });
    CHECK(once.median < 3e-7);
    CHECK(once.median > 1e-8);
    // bf16 sums: nothing is left of the variance.
    CHECK(errors_of<interleaved<power_sums<rounded_to<numfmt::bf16>>, 256>>(100, 40).not_positive == 40);
    CHECK(errors_of<interleaved<power_sums<rounded_to<numfmt::bf16>>, 256>>(0, 40).not_positive == 0);
}

TEST_CASE("variance: counts, means, merging and the empty set") {
    welford<float> a, b, all, none;
    const std::vector<float> v = {1, 2, 3, 4, 10};
    for (int i = 0; i < 5; ++i) {
        (i < 2 ? a : b).add(v[static_cast<std::size_t>(i)]);
        all.add(v[static_cast<std::size_t>(i)]);
    }
    CHECK(all.mean() == 4);
    CHECK(all.variance() == 10);
    a.merge(b);
    CHECK(a.count() == 5);
    CHECK(a.mean() == doctest::Approx(4).epsilon(1e-6));
    CHECK(a.variance() == doctest::Approx(10).epsilon(1e-6));
    a.merge(none);
    CHECK(a.count() == 5);
    none.merge(all);
    CHECK(none.variance() == 10);
    CHECK(welford<float>{}.variance() == 0);
    CHECK(one_pass{}.variance() == 0);
    shifted s(2.0f), t(2.0f), unset;
    for (const float x : {1.0f, 2.0f, 3.0f}) s.add(x);
    for (const float x : {4.0f, 10.0f}) t.add(x);
    s.merge(t);
    CHECK(s.mean() == 4);
    CHECK(s.variance() == 10);
    unset.merge(s);
    CHECK(unset.variance() == 10);
    CHECK(two_pass<sequential<float>>(v.data(), 5).variance == 10);
    CHECK(two_pass<sequential<float>>(v.data(), 0).variance == 0);
}
