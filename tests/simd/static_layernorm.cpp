// SPDX-License-Identifier: MIT
// The static way into the normalisation kernels: layernorm-inl.h in a unit compiled for one instruction set. Compiled
// for the oldest x86 that Highway supports; small, so that tests/mutate.sh can build it for each planted fault.
#include <doctest/doctest.h>

#include <numfmt/simd/layernorm-inl.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "support/norm_cases.hpp"

using namespace numfmt;
using namespace numfmt_test;
namespace kernels = numfmt::simd::HWY_NAMESPACE;

namespace {

simd::detail::norm_job job_of(const std::vector<float>& x, bool centred, float eps) {
    const auto n = static_cast<std::int64_t>(x.size());
    return {x.data(), n, nullptr, 0, n, 1, {}, {}, eps, variance_policy::two_pass, centred, false};
}

// Elements of the row outside of their bound.
int outside(const std::vector<float>& x, simd::detail::norm_job job, const std::vector<float>& weight = {},
            const std::vector<float>& bias = {}) {
    if (!weight.empty()) job.weight = weight.data();
    if (!bias.empty()) job.bias = bias.data();
    std::vector<float> y(x.size());
    const auto statistics = kernels::statistics_of<float>(job, 0);
    kernels::normalise_part<float>(job, 0, statistics, 0, job.cols, y.data());
    const exact_norm exact = normalise_exactly(x, job.centred, job.eps, weight, bias);
    int wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double w = weight.empty() ? 1 : static_cast<double>(weight[i]),
                     b = bias.empty() ? 0 : static_cast<double>(bias[i]);
        const double bound = norm_bound(x, exact, job.centred, job.eps, i, w, b, 64);
        wrong += !(std::fabs(static_cast<double>(y[i]) - exact.y[i]) <= bound);
    }
    return wrong;
}

}  // namespace

TEST_CASE("simd static: rows that normalisations get wrong, within the bound of the policy") {
    for (const norm_row& row : hard_norm_rows()) {
        for (const bool centred : {true, false}) {
            INFO(row.name);
            CAPTURE(centred);
            CHECK(outside(row.x, job_of(row.x, centred, row.eps)) == 0);
        }
    }
}

TEST_CASE("simd static: weights and biases, of whole vectors and of the tail") {
    for (const norm_row& row : hard_norm_rows()) {
        if (row.name.substr(0, 6) != "normal") continue;
        std::vector<float> weight, bias;
        for (std::size_t i = 0; i < row.x.size(); ++i) {
            weight.push_back(1.0f + static_cast<float>(i % 7) / 4);
            bias.push_back(static_cast<float>(i % 5) - 2.0f);
        }
        INFO(row.name);
        CHECK(outside(row.x, job_of(row.x, true, row.eps), weight) == 0);
        CHECK(outside(row.x, job_of(row.x, true, row.eps), {}, bias) == 0);
        CHECK(outside(row.x, job_of(row.x, false, row.eps), weight, bias) == 0);
    }
}

TEST_CASE("simd static: a residual becomes the sum, which is what is normalised") {
    for (const std::int64_t n : {40, 64, 131}) {
        std::vector<bf16> x, residual, sum;
        for (std::int64_t i = 0; i < n; ++i) {
            x.push_back(bf16(static_cast<float>(i * 37 % 101) / 16 - 3));
            residual.push_back(bf16(static_cast<float>(i * 53 % 97) / 8));
            sum.push_back(bf16(static_cast<float>(x.back()) + static_cast<float>(residual.back())));
        }
        simd::detail::norm_job job{x.data(), n,     residual.data(),           n,    n,    1, {},
                                   {},       1e-5f, variance_policy::two_pass, true, false};
        const auto statistics = kernels::statistics_of<bf16>(job, 0);
        std::vector<float> y(static_cast<std::size_t>(n));
        kernels::normalise_part<bf16>(job, 0, statistics, 0, n, y.data());
        const exact_norm exact = normalise_exactly(sum, true, 1e-5f);
        int wrong = 0;
        for (std::size_t i = 0; i < y.size(); ++i) {
            wrong += residual[i].bits() != sum[i].bits();
            wrong += !(std::fabs(static_cast<double>(y[i]) - exact.y[i]) <=
                       norm_bound(sum, exact, true, 1e-5f, i, 1, 0, 64));
        }
        CHECK(wrong == 0);
    }
}
