// SPDX-License-Identifier: MIT
// Layer normalisation and RMS normalisation of one row: the moments and the order of operations that the host's and the
// device's kernels share.
//
//   layer:  y = (x - mean) / sqrt(variance + eps) * weight + bias      RMS:  y = x / sqrt(mean(x^2) + eps) * weight +
//   bias
//
// Everything is fp32: x decoded, sums by an accumulator of policies.hpp (over the lanes and the tree of a kernel), the
// root and its reciprocal correctly rounded, eps inside the root. Sources: Ba, Kiros, Hinton, "Layer normalization",
// arXiv:1607.06450; Zhang & Sennrich, "Root mean square layer normalization", NeurIPS 2019.
#pragma once

#include "welford.hpp"

namespace numfmt {

/// How a row's variance is formed: from E[d^2] - E[d]^2 of d = x - shift, not below 0. The policies differ in the
/// shift. Errors: welford.hpp.
enum class variance_policy : uint8_t {
    two_pass,  ///< the rounded mean, from a pass of its own; what that rounding lost, E[d] finds. The default
    shifted,   ///< x[0]: as good where x[0] is within a few deviations of the mean
    one_pass,  ///< 0: wrong where the mean is large against the deviation
};

}  // namespace numfmt

namespace numfmt::accumulate {

/// What a row is normalised with: ((x * scale - shift) - offset) * rstd. `scale` is a power of two, 1 but for rows
/// whose squares leave fp32's range; shift + offset is the mean of the scaled row, 0 for RMS normalisation.
struct row_statistics {
    float scale = 1;
    float shift = 0;
    float offset = 0;
    float rstd = 0;

    /// Mean and reciprocal deviation of the row itself.
    NUMFMT_FN float row_mean() const noexcept { return rounded_div(rounded_add(shift, offset), scale); }
    NUMFMT_FN float row_rstd() const noexcept { return rounded_mul(rstd, scale); }
};

/// Of a row: shift + offset is the mean, `second` the variance. RMS: 0, 0 and the mean of squares.
struct row_moments {
    float shift, offset, second;
};

/// 1 / sqrt(second_moment + eps); 0 where both are 0, so that a constant row gives zeros without an eps as well.
NUMFMT_HD NUMFMT_INLINE float reciprocal_deviation(float second_moment, float eps) noexcept {
    const float sum = rounded_add(second_moment, eps);
    return sum == 0 ? 0.0f : rounded_div(1.0f, rounded_sqrt(sum));
}

/// True where squares may have overflowed, or underflowed so far that eps does not hide it: such a row is scaled first.
NUMFMT_FN bool needs_scaling(float second_moment, float eps) noexcept {
    constexpr float lowest =
        numfmt::detail::exact_pow2(-96);  // what d * d lost below 2^-149 is less than 2^-53 of this
    const float sum = rounded_add(second_moment, eps);
    return !(sum >= lowest && numfmt::detail::is_finite(sum));
}

/// The power of two that brings `amax`, the row's largest magnitude, into [1, 2), or as far as eps * scale^2 stays
/// below 2^102; 1 where the row has NaN, Inf, or only zeros, which scaling does not help. eps >= 0.
NUMFMT_FN float row_scale(float amax, float eps) noexcept {
    const auto exponent = [](float x) { return static_cast<int>(bit_cast<uint32_t>(x) >> 23) - 127; };
    if (amax == 0 || !numfmt::detail::is_finite(amax)) return 1;
    const int most = eps > 0 ? numfmt::detail::min((100 - exponent(eps)) / 2, 126) : 126;
    return numfmt::detail::exact_pow2(numfmt::detail::max(numfmt::detail::min(-exponent(amax), most), -126));
}

/// Moments from sums of x - shift and of their squares over n elements.
NUMFMT_FN row_moments moments_about(float shift, float mean, float mean_of_squares) noexcept {
    const float variance = rounded_sub(mean_of_squares, rounded_mul(mean, mean));
    return {shift, mean, variance < 0 ? 0.0f : variance};
}

/// Moments of value(0) .. value(n - 1) by the accumulator A. Zeros for n = 0.
template <class A, class Value>
NUMFMT_FN row_moments moments_of_row(const Value& value, int64_t n, bool centred, variance_policy policy) noexcept {
    if (n <= 0) return {0, 0, 0};
    float shift = 0;
    if (centred && policy == variance_policy::shifted) shift = value(0);
    if (centred && policy == variance_policy::two_pass) {
        A sum{};
        for (int64_t i = 0; i < n; ++i) sum.add(value(i));
        shift = rounded_div(sum.value(), static_cast<float>(n));
    }
    power_sums<A> sums{};
    for (int64_t i = 0; i < n; ++i) sums.add(rounded_sub(value(i), shift));
    if (!centred) return {0, 0, sums.mean_of_squares()};
    return moments_about(shift, sums.mean(), sums.mean_of_squares());
}

/// Statistics of the row value(0) .. value(n - 1).
template <class A, class Value>
NUMFMT_HD NUMFMT_INLINE row_statistics statistics_of_row(const Value& value, int64_t n, bool centred,
                                                         variance_policy policy, float eps) noexcept {
    row_moments m = moments_of_row<A>(value, n, centred, policy);
    row_statistics s;
    if (needs_scaling(m.second, eps)) {
        uint32_t amax = 0;
        for (int64_t i = 0; i < n; ++i)
            amax = numfmt::detail::max(amax, bit_cast<uint32_t>(value(i)) & numfmt::detail::f32_abs_mask);
        s.scale = row_scale(bit_cast<float>(amax), eps);
        if (s.scale != 1) {
            const auto scaled = [&](int64_t i) { return rounded_mul(value(i), s.scale); };
            m = moments_of_row<A>(scaled, n, centred, policy);
            eps = rounded_mul(rounded_mul(eps, s.scale), s.scale);
        }
    }
    s.shift = m.shift;
    s.offset = m.offset;
    s.rstd = reciprocal_deviation(m.second, eps);
    return s;
}

/// A value of the row, normalised; weight and bias still missing.
NUMFMT_HD NUMFMT_INLINE float normalised(float x, const row_statistics& s) noexcept {
    return rounded_mul(rounded_sub(rounded_fma(x, s.scale, negated(s.shift)), s.offset), s.rstd);
}

}  // namespace numfmt::accumulate
