// SPDX-License-Identifier: MIT
// The SQNR of every scheme on Gaussian and Laplace data against known figures, two-sided: a scheme that is too good is
// as wrong as one that is too bad.
#include <numfmt/accuracy/inputs.hpp>
#include <numfmt/accuracy/weights.hpp>
#include <numfmt/numfmt.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/block_oracle.hpp"
#include "support/formats.hpp"

using namespace numfmt;
using namespace numfmt::accuracy;

// Sanitizers make this some twenty times slower; they need not see 2^24 samples.
#if defined(__SANITIZE_ADDRESS__)
#define NUMFMT_TEST_FEW_SAMPLES
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NUMFMT_TEST_FEW_SAMPLES
#endif
#endif

namespace {

#if defined(NUMFMT_TEST_FEW_SAMPLES)
constexpr int bands = 2;
constexpr double tolerance = 0.12;
#else
constexpr int bands = 16;
constexpr double tolerance = 0.03;
#endif
constexpr matrix_shape band_shape{256, 4096};  // 2^20 samples, which is also the tensor of the schemes with one scale

// The figures (dB) are the lines "sqnr" of tests/golden: Monte Carlo results of implementations that share nothing with
// this library, in double, over at least 2^26 samples of standard deviation 1; their standard error is at most 0.003 dB
// (per-tensor scale: 0.01). Formats without a scale depend on sigma, because they run out of exponents.
constexpr std::pair<const char*, scale_rule> rules[] = {{"floor", scale_rule::floor},
                                                        {"ceil", scale_rule::ceil},
                                                        {"round_up", scale_rule::round_up},
                                                        {"even", scale_rule::even}};

using results = std::map<std::string, error_metrics>;  // by "scheme rule" or "format sigma"

std::string unscaled_key(const char* format, double sigma) {
    return std::string(format) + " sigma " + std::to_string(sigma);
}

/// fn.template operator()<F>(row) for every figure of a format without a scale.
template <class Fn> void for_each_unscaled_figure(Fn&& fn) {
    for_each(all_formats{}, [&]<class F>() {
        if constexpr (F::spec.has_zero)
            for (const numfmt_test::unscaled_sqnr& f : numfmt_test::golden_of<F>().sqnr) fn.template operator()<F>(f);
    });
}

results measure_one_band(distribution kind, int index) {
    const std::int64_t n = band_shape.rows * band_shape.cols;
    std::vector<float> x(static_cast<std::size_t>(n)), y(x.size());
    fill(kind, 20, static_cast<std::uint64_t>(index * n), x.data(), n);
    tensor_range range;
    range.add(x.data(), n);
    const matrix_view<const float> in{x.data(), band_shape, 0};
    const matrix_view<float> out{y.data(), band_shape, 0};
    results r;
    quantize_options options;
    options.int4_range = int4_range::minmax;
    for_each(all_schemes{}, [&]<class S>() {
        if constexpr (scheme_traits<S>::power_of_two_scale) {
            for (const auto& [name, rule] : rules) {
                options.scale_rule = rule;
                if (!measure_band<S>(in, 0, range, options, out, r[std::string(S::name) + " " + name]).ok()) r.clear();
            }
        } else {
            if (!measure_band<S>(in, 0, range, options, out, r[std::string(S::name) + " -"]).ok()) r.clear();
        }
    });
    for_each_unscaled_figure([&]<class F>(const numfmt_test::unscaled_sqnr& f) {
        std::vector<float> scaled;
        for (const float v : x) scaled.push_back(v * static_cast<float>(f.sigma));
        const matrix_view<const float> small{scaled.data(), band_shape, 0};
        if (!measure_band_unscaled<F>(small, 0, {}, options, out, r[unscaled_key(F::name, f.sigma)]).ok()) r.clear();
    });
    return r;
}

results measure_all(distribution kind) {
    std::vector<results> parts(bands);
    std::atomic<int> next{0};
    const auto work = [&] {
        for (int i = next++; i < bands; i = next++) parts[static_cast<std::size_t>(i)] = measure_one_band(kind, i);
    };
    std::vector<std::thread> pool;
    for (unsigned t = 1; t < std::thread::hardware_concurrency() && t < bands; ++t) pool.emplace_back(work);
    work();
    for (std::thread& t : pool) t.join();
    results sum;
    for (const results& part : parts)
        for (const auto& [key, metrics] : part) sum[key].merge(metrics);
    return sum;
}

void check_against_figures(distribution kind) {
    const auto pick = [&](const auto& f) { return kind == distribution::gaussian ? f.gaussian : f.laplace; };
    const results measured = measure_all(kind);
    const auto check = [&](const std::string& key, double wanted) {
        CAPTURE(key);
        const auto at = measured.find(key);
        REQUIRE(at != measured.end());
        CHECK(at->second.count == bands * band_shape.rows * band_shape.cols);
        CHECK(std::fabs(at->second.sqnr_db() - wanted) < tolerance);
    };
    int unscaled = 0;
    for_each_unscaled_figure([&]<class F>(const numfmt_test::unscaled_sqnr& f) {
        check(unscaled_key(F::name, f.sigma), pick(f));
        ++unscaled;
    });
    CHECK(unscaled >= 6);
    int checked = 0;
    for_each(all_schemes{}, [&]<class S>() {
        const block_oracle::scheme_facts& facts = block_oracle::facts_of(S::name);
        if (!facts.has_sqnr) return;  // "sqnr none": nobody published them
        std::set<std::string> wanted{"-"}, found;
        if (scheme_traits<S>::power_of_two_scale) {
            wanted.clear();
            for (const auto& entry : rules) wanted.insert(entry.first);
        }
        for (const block_oracle::sqnr_row& row : facts.sqnr) found.insert(row.rule);
        CHECK_MESSAGE(found == wanted, "tests/golden/schemes/", std::string(S::name),
                      ".txt needs a line 'sqnr' for every scale rule, or 'sqnr none'");
        for (const block_oracle::sqnr_row& row : facts.sqnr) check(std::string(S::name) + ' ' + row.rule, pick(row));
        checked += static_cast<int>(facts.sqnr.size());
    });
    CHECK(checked >= 42);
}

}  // namespace

TEST_CASE("sqnr: Gaussian data, every scheme under every scale rule") { check_against_figures(distribution::gaussian); }

TEST_CASE("sqnr: Laplace data, every scheme under every scale rule") { check_against_figures(distribution::laplace); }
