// SPDX-License-Identifier: MIT
// Layer and RMS normalisation: the exact result in double, how far an fp32 kernel may be from it, and rows that kernels
// are known to get wrong. For every backend.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <numfmt/accumulate/normalization.hpp>

namespace numfmt_test {

struct norm_row {
    std::string name;
    std::vector<float> x;
    float eps = 1e-5f;
};

/// Rows with a mean that drowns the deviation, rows whose squares leave fp32, constant rows, one spike, and plain ones.
inline std::vector<norm_row> hard_norm_rows() {
    std::vector<norm_row> rows;
    const auto add = [&](std::string name, std::int64_t n, float eps, auto value) {
        norm_row row{std::move(name), {}, eps};
        for (std::int64_t i = 0; i < n; ++i) row.x.push_back(static_cast<float>(value(i)));
        rows.push_back(std::move(row));
    };
    std::mt19937 random(54);
    std::normal_distribution<double> normal;
    add("case 54: 40000 .. 40003", 4, 1e-5f, [](std::int64_t i) { return 40000.0 + static_cast<double>(i); });
    add("case 55: 1000 + i / 1000", 16, 1e-5f, [](std::int64_t i) { return 1000.0 + 1e-3 * static_cast<double>(i); });
    add("case 55: 100 + normal / 100", 32768, 1e-5f, [&](std::int64_t) { return 100.0 + 0.01 * normal(random); });
    add("case 56: constant", 256, 1e-5f, [](std::int64_t) { return 1234.0; });
    add("case 56: constant, no eps", 256, 0.0f, [](std::int64_t) { return 1234.0; });
    add("case 56: zeros, eps 1e-12", 256, 1e-12f, [](std::int64_t) { return 0.0; });
    add("case 57: 1e30", 4, 1e-5f, [](std::int64_t i) { return 1e30 * static_cast<double>(i + 1); });
    add("case 57: the largest floats", 100, 1e-5f, [](std::int64_t i) { return i % 3 == 0 ? -3.4e38 : 3.3e38; });
    add("1e-30, no eps", 70, 0.0f, [&](std::int64_t) { return 1e-30 * normal(random); });
    add("1e-30, eps 1e-32", 70, 1e-32f, [&](std::int64_t) { return 1e-30 * normal(random); });
    add("subnormal numbers, eps 1e-30", 70, 1e-30f, [&](std::int64_t) { return 1e-40 * normal(random); });
    add("case 58: a spike", 512, 1e-6f, [](std::int64_t i) { return i == 77 ? 1e3 : 1e-3; });
    for (const std::int64_t n : {1, 2, 46, 63, 64, 65, 255, 256, 257, 3420, 4096, 5000})
        add("normal, " + std::to_string(n), n, 1e-5f, [&](std::int64_t) { return 0.5 + normal(random); });
    return rows;
}

struct exact_norm {
    long double mean = 0, second = 0, rstd = 0;
    std::vector<double> y;
};

template <class X>
exact_norm normalise_exactly(const std::vector<X>& x, bool centred, float eps, const std::vector<float>& weight = {},
                             const std::vector<float>& bias = {}) {
    exact_norm e;
    const long double n = static_cast<long double>(x.size());
    if (centred) {
        for (const X v : x) e.mean += static_cast<long double>(static_cast<float>(v));
        e.mean /= n;
    }
    for (const X v : x) {
        const long double d = static_cast<long double>(static_cast<float>(v)) - e.mean;
        e.second += d * d;
    }
    e.second /= n;
    const long double sum = e.second + static_cast<long double>(eps);
    e.rstd = sum == 0 ? 0 : 1 / std::sqrt(sum);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const long double v = (static_cast<long double>(static_cast<float>(x[i])) - e.mean) * e.rstd;
        const long double w = weight.empty() ? 1 : static_cast<long double>(weight[i]);
        e.y.push_back(static_cast<double>(v * w + (bias.empty() ? 0 : static_cast<long double>(bias[i]))));
    }
    return e;
}

/// How far an fp32 result of the two-pass policy (RMS: of one pass) may be from element i, before its last rounding to
/// another format: sums in `chains` chains are off by c = n / chains + 10 roundings at most (a chain, a tree over at
/// most 2^6 chains, a division, and a few to spare for the subtraction and the square). With u = 2^-24 and d = x -
/// mean:
///   the shift     e = c u mean|x| from the mean
///   its offset    m = c u (mean|d| + e)
///   the variance  c u (variance + e^2), and 2 e m + m^2 from the square of the offset
///   the root, its reciprocal, the product with it, weight and bias: 5 u
template <class X>
double norm_bound(const std::vector<X>& x, const exact_norm& e, bool centred, float eps, std::size_t i, double weight,
                  double bias, double chains) {
    const double u = std::ldexp(1.0, -24), n = static_cast<double>(x.size()), c = n / chains + 10;
    double magnitude = 0, deviation = 0;
    for (const X v : x) {
        const double value = static_cast<double>(static_cast<float>(v));
        magnitude += centred ? std::fabs(value) / n : 0;
        deviation += centred ? std::fabs(value - static_cast<double>(e.mean)) / n : 0;
    }
    const double shift_error = c * u * magnitude, mean_error = c * u * (deviation + shift_error);
    const double second = static_cast<double>(e.second), rstd = static_cast<double>(e.rstd);
    const double sum = second + static_cast<double>(eps);
    const double second_error =
        c * u * (second + shift_error * shift_error) + mean_error * (2 * shift_error + mean_error);
    const double relative = sum > 0 ? second_error / sum : 0;
    const double v = std::fabs((static_cast<double>(static_cast<float>(x[i])) - static_cast<double>(e.mean)) * rstd);
    // 1 / sqrt(1 + r) is within r / 2 (1 + r) of 1 for r < 1/2; beyond that the bound says nothing.
    const double root = relative < 0.5 ? relative * (0.5 + relative) : 1e30;
    return std::fabs(weight) * (mean_error * rstd * (1 + root) + v * (root + 5 * u)) + u * std::fabs(bias) +
           std::ldexp(1.0, -149);
}

}  // namespace numfmt_test
