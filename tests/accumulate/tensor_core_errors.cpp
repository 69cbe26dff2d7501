// SPDX-License-Identifier: MIT
// The accumulation errors that one H200 measured with fp8 wgmma (M = N = 2048, relative Frobenius error of the fp32
// output against fp64), from the model: K = 4096 and 131072, with fast accumulation and promoted every 128.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <numfmt/accumulate/tensor_core.hpp>
#include <numfmt/accuracy/inputs.hpp>
#include <numfmt/fp8.hpp>

using namespace numfmt::accumulate;

namespace {

/// ||d - exact|| / ||exact|| over `trials` dot products of E4M3 numbers, each with its own operands.
double relative_error(bool positive, std::int64_t k, int trials, std::int64_t promote_every) {
    using numfmt::accuracy::distribution;
    double signal = 0, noise = 0;
    std::vector<float> x(static_cast<std::size_t>(2 * k));
    std::vector<tensor_core_operand> o(x.size());
    for (int t = 0; t < trials; ++t) {
        numfmt::accuracy::fill(positive ? distribution::uniform : distribution::gaussian,
                               100 + static_cast<std::uint64_t>(t), 0, x.data(), 2 * k,
                               positive ? 1 / std::sqrt(12.0) : 1.0);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const numfmt::fp8_e4m3 code(positive ? x[i] + 0.5f : x[i]);
            o[i] = to_operand<numfmt::fp8_e4m3>(code.bits());
            x[i] = code;
        }
        double exact = 0;
        for (std::int64_t i = 0; i < k; ++i)
            exact += static_cast<double>(x[static_cast<std::size_t>(i)]) *
                     static_cast<double>(x[static_cast<std::size_t>(k + i)]);
        const std::uint32_t d =
            tensor_core_dot(tensor_cores::hopper_wgmma_fp8, o.data(), o.data() + k, k, 0, promote_every);
        const double error = static_cast<double>(numfmt::bit_cast<float>(d)) - exact;
        signal += exact * exact;
        noise += error * error;
    }
    return std::sqrt(noise / signal);
}

void check_within(double got, double low, double high) {
    INFO("relative error ", got);
    CHECK(got > low);
    CHECK(got < high);
}

}  // namespace

TEST_CASE("tensor_core errors: positive data, as an H200 measured them") {
    // Measured 6.6e-2 and 0.75; 5.0e-4 at every K when promoted. The error is almost all bias, hence the same for every
    // dot product up to the last digits printed: bounds of half a unit of those and 1 % for sampling.
    check_within(relative_error(true, 4096, 100, 0), 0.0645, 0.0672);
    check_within(relative_error(true, 131072, 10, 0), 0.737, 0.763);
    check_within(relative_error(true, 4096, 200, 128), 4.9e-4, 5.1e-4);
    check_within(relative_error(true, 131072, 10, 128), 4.9e-4, 5.1e-4);
}

TEST_CASE("tensor_core errors: zero-mean data, as an H200 measured them") {
    // Measured 1.3e-3, 1.0e-2 and 1.26e-4. The rms of n errors has a relative standard error near 1 / sqrt(2 n), more
    // for their heavy tails: three of those with n = 1500 and 150 and the last digit printed.
    check_within(relative_error(false, 4096, 1500, 0), 1.15e-3, 1.5e-3);
    check_within(relative_error(false, 131072, 150, 0), 0.8e-2, 1.25e-2);
    check_within(relative_error(false, 4096, 1500, 128), 1.15e-4, 1.37e-4);
}
