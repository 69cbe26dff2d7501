// SPDX-License-Identifier: MIT
// Variance, five ways: one pass over sums, shifted sums, two passes, Welford's update, and Chan's merge of any of the
// mergeable ones over lanes and trees (tree.hpp). All give the variance of a population, sum (x - mean)^2 / n.
//
// With kappa = sqrt(1 + mean^2 / variance), n elements and unit roundoff u the relative error grows like
//   one pass        n kappa^2 u                 (can come out negative)
//   two passes      n u + n^2 kappa^2 u^2
//   Welford         n kappa u
//   Chan over a tree  log2(n) kappa u
// Source: Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The American Statistician 37 (1983).
#pragma once

#include "policies.hpp"

namespace numfmt::accumulate {

/// Sum x and sum x^2 by the accumulator `Sum`: one pass, and wrong where the mean is large against the deviation.
template <class Sum> class power_sums {
  public:
    using value_type = typename Sum::value_type;
    NUMFMT_FN void add(value_type x) noexcept {
        ++count_;
        sum_.add(x);
        squares_.add_product(x, x);
    }
    NUMFMT_FN void merge(const power_sums& other) noexcept {
        count_ += other.count_;
        sum_.merge(other.sum_);
        squares_.merge(other.squares_);
    }
    NUMFMT_FN int64_t count() const noexcept { return count_; }
    /// 0 without elements.
    NUMFMT_FN value_type mean() const noexcept { return rounded_div(sum_.value(), divisor()); }
    NUMFMT_FN value_type mean_of_squares() const noexcept { return rounded_div(squares_.value(), divisor()); }
    /// E[x^2] - E[x]^2; may be negative.
    NUMFMT_FN value_type variance() const noexcept {
        const value_type m = mean();
        return rounded_sub(mean_of_squares(), rounded_mul(m, m));
    }
    NUMFMT_FN value_type value() const noexcept { return variance(); }

  private:
    NUMFMT_FN value_type divisor() const noexcept { return static_cast<value_type>(count_ > 0 ? count_ : 1); }
    Sum sum_{}, squares_{};
    int64_t count_ = 0;
};

/// power_sums of x - shift, the shift being the first element (or one that was given). Good where the shift is within a
/// few deviations of the mean.
template <class Sum> class shifted_power_sums {
  public:
    using value_type = typename Sum::value_type;
    shifted_power_sums() = default;
    NUMFMT_FN explicit shifted_power_sums(value_type shift) noexcept : shift_(shift), has_shift_(true) {}

    NUMFMT_FN void add(value_type x) noexcept {
        if (!has_shift_) {
            shift_ = x;
            has_shift_ = true;
        }
        sums_.add(rounded_sub(x, shift_));
    }
    /// Both need the same shift: take it from the data once and pass it to each part.
    NUMFMT_FN void merge(const shifted_power_sums& other) noexcept {
        if (!has_shift_)
            *this = other;
        else
            sums_.merge(other.sums_);
    }
    NUMFMT_FN int64_t count() const noexcept { return sums_.count(); }
    NUMFMT_FN value_type mean() const noexcept { return rounded_add(shift_, sums_.mean()); }
    NUMFMT_FN value_type variance() const noexcept { return sums_.variance(); }
    NUMFMT_FN value_type value() const noexcept { return variance(); }

  private:
    power_sums<Sum> sums_{};
    value_type shift_{};
    bool has_shift_ = false;
};

/// Welford's running mean and sum of squared deviations; merge() is Chan's. Never negative.
/// Source: Welford, Technometrics 4 (1962).
template <class Real> class welford {
  public:
    using value_type = Real;
    NUMFMT_FN void add(Real x) noexcept {
        ++count_;
        const Real delta = rounded_sub(x, mean_);
        mean_ = rounded_add(mean_, rounded_div(delta, static_cast<Real>(count_)));
        squares_ = rounded_fma(delta, rounded_sub(x, mean_), squares_);
    }
    NUMFMT_FN void merge(const welford& other) noexcept {
        if (other.count_ == 0) return;
        if (count_ == 0) {
            *this = other;
            return;
        }
        const int64_t n = count_ + other.count_;
        const Real delta = rounded_sub(other.mean_, mean_);
        const Real share = rounded_div(static_cast<Real>(other.count_), static_cast<Real>(n));
        mean_ = rounded_fma(delta, share, mean_);
        const Real spread = rounded_mul(rounded_mul(delta, delta), rounded_mul(static_cast<Real>(count_), share));
        squares_ = rounded_add(rounded_add(squares_, other.squares_), spread);
        count_ = n;
    }
    NUMFMT_FN int64_t count() const noexcept { return count_; }
    NUMFMT_FN Real mean() const noexcept { return mean_; }
    NUMFMT_FN Real variance() const noexcept {
        return rounded_div(squares_, static_cast<Real>(count_ > 0 ? count_ : 1));
    }
    NUMFMT_FN Real value() const noexcept { return variance(); }

  private:
    Real mean_{}, squares_{};
    int64_t count_ = 0;
};

/// Mean and variance of a population.
template <class Real> struct mean_and_variance {
    Real mean;
    Real variance;
};

/// Two passes over x[0 .. n), both by the accumulator A (over lanes and trees as well): the mean, then the deviations
/// from it. {0, 0} for n = 0.
template <class A, class X>
NUMFMT_FN mean_and_variance<typename A::value_type> two_pass(const X* x, int64_t n) noexcept {
    using Real = typename A::value_type;
    if (n <= 0) return {Real{}, Real{}};
    const Real divisor = static_cast<Real>(n);
    const Real mean = rounded_div(sum<A>(x, n), divisor);
    A squares{};
    for (int64_t i = 0; i < n; ++i) {
        const Real d = rounded_sub(static_cast<Real>(x[i]), mean);
        squares.add_product(d, d);
    }
    return {mean, rounded_div(squares.value(), divisor)};
}

}  // namespace numfmt::accumulate
