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
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

// dB. The figures are Monte Carlo results of implementations that share nothing with this library, in double, over at
// least 2^26 samples of standard deviation 1; their standard error is at most 0.003 dB (per-tensor scale: 0.01).
struct figure {
    const char* scheme;
    const char* rule;  // "" where the scales are no powers of two
    double gaussian, laplace;
};
constexpr figure figures[] = {
    {"mxfp8_e4m3", "floor", 30.647, 30.075},
    {"mxfp8_e4m3", "ceil", 31.521, 31.537},
    {"mxfp8_e4m3", "round_up", 31.521, 31.537},
    {"mxfp8_e4m3", "even", 31.179, 30.856},
    {"mxfp8_e5m2", "floor", 25.360, 25.237},
    {"mxfp8_e5m2", "ceil", 25.543, 25.560},
    {"mxfp8_e5m2", "round_up", 25.543, 25.560},
    {"mxfp8_e5m2", "even", 25.543, 25.560},
    {"mxfp6_e2m3", "floor", 30.941, 30.312},
    {"mxfp6_e2m3", "ceil", 28.766, 27.316},
    {"mxfp6_e2m3", "round_up", 30.958, 30.257},
    {"mxfp6_e2m3", "even", 30.988, 30.349},
    {"mxfp6_e3m2", "floor", 25.360, 25.236},
    {"mxfp6_e3m2", "ceil", 25.542, 25.559},
    {"mxfp6_e3m2", "round_up", 25.542, 25.559},
    {"mxfp6_e3m2", "even", 25.542, 25.559},
    {"mxfp4", "floor", 18.790, 17.992},
    {"mxfp4", "ceil", 16.823, 15.436},
    {"mxfp4", "round_up", 18.758, 17.558},
    {"mxfp4", "even", 19.029, 18.156},
    {"mxint8", "floor", 41.666, 40.043},
    {"mxint8", "ceil", 35.645, 34.028},
    {"mxint8", "round_up", 41.613, 39.980},
    {"mxint8", "even", 41.640, 40.014},
    {"nvfp4", "", 20.435, 20.660},
    {"awq_int4", "", 19.956, 17.692},  // int4: range from min to max, not extended to zero
    {"int4_g64", "", 20.817, 18.989},
    {"int4_g32", "", 21.857, 20.503},
    {"int4_symmetric_g128", "", 18.617, 15.902},  // codes within +-7
    {"int4_symmetric_g32", "", 20.264, 18.335},
    {"fp8_per_tensor", "", 31.545, 31.534},
    {"fp8_per_channel", "", 31.544, 31.574},  // rows of 4096
    {"block_fp8_128x128", "", 31.547, 31.545},
    {"block_fp8_1x128", "", 31.796, 32.103},
    {"block_fp8_128x128_e8m0", "floor", 31.483, 31.498},
    {"block_fp8_128x128_e8m0", "ceil", 31.521, 31.537},
    {"block_fp8_128x128_e8m0", "round_up", 31.521, 31.537},
    {"block_fp8_128x128_e8m0", "even", 31.511, 31.518},
    {"block_fp8_1x128_e8m0", "floor", 31.405, 30.670},
    {"block_fp8_1x128_e8m0", "ceil", 31.521, 31.537},
    {"block_fp8_1x128_e8m0", "round_up", 31.521, 31.537},
    {"block_fp8_1x128_e8m0", "even", 31.461, 31.153},
};

// Formats without a scale depend on sigma, because they run out of exponents.
struct unscaled_figure {
    const char* format;
    float sigma;
    double gaussian, laplace;
};
constexpr unscaled_figure unscaled_figures[] = {
    {"bf16", 1, 55.589, 55.604},     {"fp16", 1, 73.652, 73.667},         {"fp8_e5m2", 1, 25.543, 25.560},
    {"fp8_e4m3", 1, 31.521, 31.537}, {"fp8_e4m3", 0.02f, 29.620, 29.303}, {"fp8_e4m3", 0.002f, 10.997, 11.234},
};

constexpr std::pair<const char*, scale_rule> rules[] = {{"floor", scale_rule::floor},
                                                        {"ceil", scale_rule::ceil},
                                                        {"round_up", scale_rule::round_up},
                                                        {"even", scale_rule::even}};

const figure* find_figure(const char* scheme, const char* rule) {
    for (const figure& f : figures)
        if (std::strcmp(f.scheme, scheme) == 0 && std::strcmp(f.rule, rule) == 0) return &f;
    return nullptr;
}

using results = std::map<std::string, error_metrics>;  // by "scheme rule" or "format sigma"

std::string unscaled_key(const char* format, float sigma) {
    return std::string(format) + " sigma " + std::to_string(sigma);
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
            if (!measure_band<S>(in, 0, range, options, out, r[std::string(S::name) + " "]).ok()) r.clear();
        }
    });
    for (const unscaled_figure& f : unscaled_figures) {
        std::vector<float> scaled;
        for (const float v : x) scaled.push_back(v * f.sigma);
        const matrix_view<const float> small{scaled.data(), band_shape, 0};
        for_each(type_list<bf16, fp16, fp8_e4m3, fp8_e5m2>{}, [&]<class F>() {
            if (std::strcmp(F::name, f.format) != 0) return;
            if (!measure_band_unscaled<F>(small, 0, {}, options, out, r[unscaled_key(F::name, f.sigma)]).ok())
                r.clear();
        });
    }
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
    const auto check_scheme = [&](const char* scheme, const char* rule) {
        const figure* const f = find_figure(scheme, rule);
        CHECK_MESSAGE(f != nullptr, std::string(scheme), " ", std::string(rule),
                      ": a new scheme needs its figures here");
        if (f != nullptr) check(std::string(scheme) + " " + rule, pick(*f));
    };
    for_each(all_schemes{}, [&]<class S>() {
        if constexpr (scheme_traits<S>::power_of_two_scale) {
            for (const auto& entry : rules) check_scheme(S::name, entry.first);
        } else {
            check_scheme(S::name, "");
        }
    });
    for (const unscaled_figure& f : unscaled_figures) check(unscaled_key(f.format, f.sigma), pick(f));
}

}  // namespace

TEST_CASE("sqnr: Gaussian data, every scheme under every scale rule") { check_against_figures(distribution::gaussian); }

TEST_CASE("sqnr: Laplace data, every scheme under every scale rule") { check_against_figures(distribution::laplace); }
