// SPDX-License-Identifier: MIT
// Reproducible test data: seeded random numbers in which element i depends on the seed and on i alone, so that any
// slice can be made anywhere, by any number of threads, and is always the same.
#pragma once

#include <cmath>

#include "../core/bits.hpp"
#include "../core/philox.hpp"

namespace numfmt::accuracy {

/// A distribution of mean 0 that `fill` draws from.
enum class distribution : uint8_t {
    uniform,   ///< even over (-sigma * sqrt(3), sigma * sqrt(3))
    gaussian,  ///< normal; of mean 0, like the others
    laplace,   ///< density exp(-|x| / b) / (2 b) with b = sigma / sqrt(2): heavier tails, as trained weights often have
};

namespace detail {

// The third counter word names the distribution, which keeps these draws apart from those of stochastic rounding
// (third word 0) and from each other under the same seed.
inline philox_block input_words(distribution kind, uint64_t seed, uint64_t pair) noexcept {
    return philox4x32_10(
        {{static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32), 1u + static_cast<uint32_t>(kind), 0u}},
        static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

// (2k + 1) * 2^-53 for the 52-bit k in the upper bits of high:low. Strictly between 0 and 1; u and 1 - u are both
// exact.
inline double open_unit(uint32_t low, uint32_t high) noexcept {
    const uint64_t k = ((static_cast<uint64_t>(high) << 32) | low) >> 12;
    return static_cast<double>(2 * k + 1) * numfmt::detail::exact_pow2_double(-53);
}

struct input_pair {
    double value[2];
};

// Elements 2 * pair and 2 * pair + 1, of standard deviation 1.
inline input_pair standard_pair(distribution kind, uint64_t seed, uint64_t pair) noexcept {
    constexpr double two_pi = 6.283185307179586477, sqrt_3 = 1.732050807568877294, sqrt_half = 0.7071067811865475244;
    const philox_block w = input_words(kind, seed, pair);
    const double u = open_unit(w.word[0], w.word[1]), v = open_unit(w.word[2], w.word[3]);
    if (kind == distribution::gaussian) {
        const double radius = std::sqrt(-2.0 * std::log(u));
        return {{radius * std::cos(two_pi * v), radius * std::sin(two_pi * v)}};
    }
    const auto from_uniform = [&](double p) {
        if (kind == distribution::uniform) return sqrt_3 * (2.0 * p - 1.0);
        return p < 0.5 ? sqrt_half * std::log(2.0 * p) : -sqrt_half * std::log(2.0 * (1.0 - p));
    };
    return {{from_uniform(u), from_uniform(v)}};
}

}  // namespace detail

/// Writes elements first .. first + n - 1 of the stream (kind, seed) to out[0..n), with standard deviation `sigma`.
///
/// Elements 2p and 2p + 1 come from one Philox4x32-10 block: counter (p mod 2^32, p div 2^32, 1 + kind, 0), key `seed`
/// (low word first). Its words give u from (w0, w1) and v from (w2, w3): the upper 52 bits k of w1:w0 (w3:w2) give
/// (2k + 1) * 2^-53. Then, in double:
///   gaussian  Box-Muller: sqrt(-2 ln u) * cos(2 pi v), then the same with sin; |x| stays below 8.58 sigma
///   laplace   inverse CDF: ln(2p) / sqrt(2) for p < 1/2, otherwise -ln(2 (1 - p)) / sqrt(2), with p = u, then p = v
///   uniform   sqrt(3) * (2p - 1), with p = u, then p = v
/// multiplied by sigma and rounded once to float. log, sin and cos are the C library's: another library may differ in
/// the last bit of a double, which a float rarely shows.
/// Source of the counter scheme: Salmon, Moraes, Dror, Shaw, SC11.
inline void fill(distribution kind, uint64_t seed, uint64_t first, float* out, int64_t n, double sigma = 1.0) noexcept {
    int64_t i = 0;
    while (i < n) {
        const uint64_t index = first + static_cast<uint64_t>(i);
        const detail::input_pair pair = detail::standard_pair(kind, seed, index >> 1);
        if ((index & 1u) == 0) out[i++] = static_cast<float>(sigma * pair.value[0]);
        if (i < n) out[i++] = static_cast<float>(sigma * pair.value[1]);
    }
}

/// What is known exactly about a dot product: sum x_i y_i and sum |x_i y_i|.
struct dot_facts {
    double sum = 0;
    double absolute_sum = 0;
    /// 2 sum|x y| / |sum x y|: relative changes of the inputs are amplified by half of it. Inf where the sum is 0.
    double condition() const noexcept {
        return sum != 0 ? 2 * absolute_sum / std::fabs(sum) : std::numeric_limits<double>::infinity();
    }
};

/// A dot product of n terms, n >= 3, whose condition number is known and near `condition`: terms that cancel in pairs,
/// at random places, and one that remains. Every number is +-(1 + m / 8) 2^e with 0 <= m < 8 and -3 <= e <= 3, the
/// remaining term's two factors are powers of two from 2^-6 to 2^8: all of them numbers of E4M3, fp16 and bf16. The
/// result is exact; its condition number is within a factor sqrt(2) of the one asked for, as far as n and these ranges
/// allow (n = 128: 10^-1 .. 10^6; n = 2^20: 10^3 .. 10^10).
/// Element i depends on seed, n and condition alone.
/// Source of the construction: Ogita, Rump, Oishi, SIAM J. Sci. Comput. 26 (2005), section 6, simplified.
inline dot_facts ill_conditioned(uint64_t seed, int64_t n, double condition, float* x, float* y) noexcept {
    constexpr uint32_t stream = 16;  // apart from the distributions and from stochastic rounding
    const auto words = [&](uint64_t i, uint32_t use) {
        return philox4x32_10({{static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32), stream + use, 0u}},
                             static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
    };
    const auto number = [](uint32_t w) {
        const float v =
            static_cast<float>(8u + (w & 7u)) * numfmt::detail::exact_pow2(static_cast<int>((w >> 3) % 7u) - 6);
        return (w >> 31) != 0 ? -v : v;
    };
    dot_facts facts;
    const int64_t pairs = (n - 1) / 2;
    for (int64_t p = 0; p < pairs; ++p) {
        const philox_block w = words(static_cast<uint64_t>(p), 0);
        x[2 * p] = x[2 * p + 1] = number(w.word[0]);
        y[2 * p] = number(w.word[1]);
        y[2 * p + 1] = -y[2 * p];
        facts.absolute_sum += 2 * std::fabs(static_cast<double>(x[2 * p]) * static_cast<double>(y[2 * p]));
    }
    for (int64_t i = 2 * pairs; i < n; ++i) x[i] = y[i] = 0;
    const double wanted = 2 * facts.absolute_sum / condition;
    const double exponent = std::fmin(std::fmax(std::round(std::log2(wanted)), -12.0), 16.0);
    const int e = static_cast<int>(exponent), half = numfmt::detail::min(numfmt::detail::max(e / 2, -6), 8);
    x[n - 1] = numfmt::detail::exact_pow2(half);
    y[n - 1] = numfmt::detail::exact_pow2(e - half);
    facts.sum = static_cast<double>(x[n - 1]) * static_cast<double>(y[n - 1]);
    facts.absolute_sum += facts.sum;
    for (int64_t i = n - 1; i > 0; --i) {  // a shuffle
        const philox_block w = words(static_cast<uint64_t>(i), 1);
        const uint64_t wide = static_cast<uint64_t>(w.word[0]) << 32 | w.word[1];
        const int64_t j = static_cast<int64_t>(wide % static_cast<uint64_t>(i + 1));
        const float xi = x[i], yi = y[i];
        x[i] = x[j];
        y[i] = y[j];
        x[j] = xi;
        y[j] = yi;
    }
    return facts;
}

}  // namespace numfmt::accuracy
