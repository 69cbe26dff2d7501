// SPDX-License-Identifier: MIT
// The error of x_hat against x: sums in double that stay exact to about 1e-14 for any number of elements, and can be
// collected in parts and merged.
#pragma once

#include <cmath>

#include "../core/bits.hpp"

namespace numfmt::accuracy {

/// A sum of doubles in which terms meet as in a balanced tree: the error grows with log2 of the number of terms.
/// Source: Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14 (1993), pairwise summation.
class pairwise_sum {
  public:
    void add(double term) noexcept { add_at(0, term); }

    /// Adds the terms of another sum. Merging parts in the same order always gives the same bits.
    void merge(const pairwise_sum& other) noexcept {
        for (int level = 0; level < levels; ++level)
            if ((other.occupied_ >> level & 1u) != 0) add_at(level, other.part_[level]);
    }

    double value() const noexcept {
        double sum = 0;
        for (int level = 0; level < levels; ++level)
            if ((occupied_ >> level & 1u) != 0) sum += part_[level];
        return sum;
    }

  private:
    static constexpr int levels = 56;

    // A binary counter: two sums of 2^level terms carry into one of 2^(level + 1). The last level takes what comes.
    void add_at(int level, double sum) noexcept {
        for (; (occupied_ >> level & 1u) != 0; ++level) {
            sum += part_[level];
            occupied_ &= ~(uint64_t{1} << level);
            if (level == levels - 1) break;
        }
        part_[level] = sum;
        occupied_ |= uint64_t{1} << level;
    }

    double part_[levels] = {};
    uint64_t occupied_ = 0;
};

/// Values beyond which an element counts as clipped; the default clips nothing.
struct clip_range {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
};

/// Error statistics of pairs (x, x_hat). Sums and maxima are over the pairs in which both are finite; the others are
/// counted, never dropped silently.
///
/// Counts, of elements:
///   count        all of them
///   nan, infinite  x is NaN, x is +-Inf
///   replaced     x is NaN or Inf, x_hat is finite (nonfinite::saturate)
///   lost         x is finite, x_hat is not (a block poisoned by a neighbour, or an overflow to Inf)
///   clipped      x is finite and outside the clip_range it was added with (accuracy/weights.hpp says which one)
///   flushed      x is finite and not zero, x_hat is zero
class error_metrics {
  public:
    int64_t count = 0;
    int64_t nan = 0;
    int64_t infinite = 0;
    int64_t replaced = 0;
    int64_t lost = 0;
    int64_t clipped = 0;
    int64_t flushed = 0;

    /// Adds n pairs that share one clip range. Differences are formed in double.
    void add(const float* x, const float* x_hat, int64_t n, clip_range range = {}) noexcept {
        constexpr int64_t chunk = 512;
        for (int64_t i = 0; i < n; i += chunk) {
            const int m = static_cast<int>(numfmt::detail::min(n - i, chunk));
            add_chunk(x + i, x_hat + i, m, range);
        }
    }

    /// Adds everything `other` has seen. For the same bits every time, merge parts in the same order.
    void merge(const error_metrics& other) noexcept {
        count += other.count;
        nan += other.nan;
        infinite += other.infinite;
        replaced += other.replaced;
        lost += other.lost;
        clipped += other.clipped;
        flushed += other.flushed;
        signal_.merge(other.signal_);
        noise_.merge(other.noise_);
        max_relative_ = numfmt::detail::max(max_relative_, other.max_relative_);
        max_absolute_ = numfmt::detail::max(max_absolute_, other.max_absolute_);
    }

    /// Sum of x^2 and of (x_hat - x)^2.
    double signal() const noexcept { return signal_.value(); }
    double noise() const noexcept { return noise_.value(); }

    /// Pairs in which both are finite: what the sums and maxima are over.
    int64_t compared() const noexcept { return count - nan - infinite - lost; }

    /// 10 log10(signal / noise), in dB. +Inf for no error at all (an all-zero input included), -Inf where only the
    /// input is zero, NaN if no pair could be compared.
    double sqnr_db() const noexcept { return -20.0 * std::log10(relative_rms()); }
    /// sqrt(noise / signal): the rms error over the rms value. 0 for no error at all, +Inf where only the input is
    /// zero, NaN if no pair could be compared.
    double relative_rms() const noexcept {
        if (compared() == 0) return std::numeric_limits<double>::quiet_NaN();
        const double s = signal(), e = noise();
        if (e == 0) return 0;
        return s == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(e / s);
    }
    /// Largest |x_hat - x| / |x| over the pairs with x != 0; 1 as soon as one is flushed to zero. 0 if there are none.
    double max_relative() const noexcept { return max_relative_; }
    /// Largest |x_hat - x|.
    double max_absolute() const noexcept { return max_absolute_; }

    /// clipped / count and flushed / count, 0 .. 1; 0 without elements.
    double share_clipped() const noexcept { return share(clipped); }
    double share_flushed() const noexcept { return share(flushed); }

  private:
    double share(int64_t part) const noexcept {
        return count > 0 ? static_cast<double>(part) / static_cast<double>(count) : 0.0;
    }

    void add_chunk(const float* x, const float* x_hat, int n, clip_range range) noexcept {
        namespace nd = numfmt::detail;
        double signal = 0, noise = 0, relative = 0, absolute = 0;
        int64_t out_of_range = 0, zeroed = 0;
        for (int j = 0; j < n; ++j) {
            const bool finite = nd::is_finite(x[j]);
            if (!finite || !nd::is_finite(x_hat[j])) {
                count_nonfinite(x[j], x_hat[j], range);
                continue;
            }
            const double value = static_cast<double>(x[j]);
            const double error = std::fabs(static_cast<double>(x_hat[j]) - value);
            signal += value * value;
            noise += error * error;
            const double ratio = value != 0 ? error / std::fabs(value) : 0.0;
            relative = ratio > relative ? ratio : relative;
            absolute = error > absolute ? error : absolute;
            out_of_range += value < range.low || value > range.high ? 1 : 0;
            zeroed += x_hat[j] == 0 && value != 0 ? 1 : 0;
        }
        count += n;
        clipped += out_of_range;
        flushed += zeroed;
        signal_.add(signal);
        noise_.add(noise);
        max_relative_ = nd::max(max_relative_, relative);
        max_absolute_ = nd::max(max_absolute_, absolute);
    }

    void count_nonfinite(float x, float x_hat, clip_range range) noexcept {
        if (numfmt::detail::is_finite(x)) {
            ++lost;
            clipped += static_cast<double>(x) < range.low || static_cast<double>(x) > range.high ? 1 : 0;
        } else {
            ++(numfmt::detail::is_nan(x) ? nan : infinite);
            replaced += numfmt::detail::is_finite(x_hat) ? 1 : 0;
        }
    }

    pairwise_sum signal_, noise_;
    double max_relative_ = 0;
    double max_absolute_ = 0;
};

}  // namespace numfmt::accuracy
