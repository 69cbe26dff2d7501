// SPDX-License-Identifier: MIT
// How a sum of numbers or of products is formed: each policy is one chain of additions; tree.hpp makes shapes of
// chains.
//
// A policy has add(x), add_product(a, b), merge(other) and value(). `Real` is float, double, or a type with its own
// rounded_* operations (a vector: then every lane is a chain). u is the unit roundoff: 2^-24 for float, 2^-53 for
// double. Every operation is rounded once, in the order written here, whatever the compiler's flags.
#pragma once

#include "../core/codec.hpp"
#include "eft.hpp"
#include "tree.hpp"

namespace numfmt::accumulate {

/// One addition, or one fused multiply-add, after the other. Error at most (n - 1) u sum|x|; for random signs near
/// sqrt(n) u. Source: Higham & Mary, "A new approach to probabilistic rounding error analysis", SISC 41 (2019).
template <class Real> class sequential {
  public:
    using value_type = Real;
    NUMFMT_FN void add(Real x) noexcept { sum_ = rounded_add(sum_, x); }
    NUMFMT_FN void add_product(Real a, Real b) noexcept { sum_ = rounded_fma(a, b, sum_); }
    NUMFMT_FN void merge(const sequential& other) noexcept { sum_ = rounded_add(sum_, other.sum_); }
    NUMFMT_FN Real value() const noexcept { return sum_; }

  private:
    Real sum_{};
};

/// Kahan's compensated summation: the low part that an addition lost is taken off the next term. Error 2u + O(n u^2)
/// relative to sum|x|; a term larger than the sum so far is compensated less well than by `neumaier`. NaN after an
/// overflow. Source: Kahan, "Further remarks on reducing truncation errors", CACM 8 (1965).
template <class Real> class kahan {
  public:
    using value_type = Real;
    NUMFMT_FN void add(Real x) noexcept { step(rounded_sub(x, excess_)); }
    /// The product enters without a rounding of its own: fma(a, b, -excess).
    NUMFMT_FN void add_product(Real a, Real b) noexcept { step(rounded_fma(a, b, negated(excess_))); }
    NUMFMT_FN void merge(const kahan& other) noexcept {
        add(negated(other.excess_));
        add(other.sum_);
    }
    NUMFMT_FN Real value() const noexcept { return sum_; }

  private:
    NUMFMT_FN void step(Real y) noexcept {
        const Real t = rounded_add(sum_, y);
        excess_ = rounded_sub(rounded_sub(t, sum_), y);
        sum_ = t;
    }
    Real sum_{}, excess_{};  // the sum is too large by the excess
};

/// Neumaier's variant, as a branch-free two_sum: the rounding errors are summed beside the sum and added at the end.
/// Error u + O(n^2 u^2) relative to sum|x|, whatever the order of the terms. A product is rounded once before it is
/// added. Source: Neumaier, ZAMM 54 (1974); identical with Sum2 of Ogita, Rump, Oishi (2005).
template <class Real> class neumaier {
  public:
    using value_type = Real;
    NUMFMT_FN void add(Real x) noexcept {
        const with_error<Real> s = two_sum(sum_, x);
        sum_ = s.value;
        correction_ = rounded_add(correction_, s.error);
    }
    NUMFMT_FN void add_product(Real a, Real b) noexcept { add(rounded_mul(a, b)); }
    NUMFMT_FN void merge(const neumaier& other) noexcept {
        add(other.sum_);
        correction_ = rounded_add(correction_, other.correction_);
    }
    NUMFMT_FN Real value() const noexcept { return add_correction(sum_, correction_); }

  private:
    Real sum_{}, correction_{};
};

/// Dot2: as if the dot product were formed in twice the working precision and rounded once. Error u + O(n^2 u^2) times
/// the condition number. Source: Ogita, Rump, Oishi, "Accurate sum and dot product", SISC 26 (2005), algorithm 5.3.
template <class Real> class dot2 {
  public:
    using value_type = Real;
    NUMFMT_FN void add(Real x) noexcept {
        const with_error<Real> s = two_sum(sum_, x);
        sum_ = s.value;
        correction_ = rounded_add(correction_, s.error);
    }
    NUMFMT_FN void add_product(Real a, Real b) noexcept {
        const with_error<Real> p = two_prod(a, b);
        const with_error<Real> s = two_sum(sum_, p.value);
        sum_ = s.value;
        correction_ = rounded_add(correction_, rounded_add(s.error, p.error));
    }
    NUMFMT_FN void merge(const dot2& other) noexcept {
        add(other.sum_);
        correction_ = rounded_add(correction_, other.correction_);
    }
    NUMFMT_FN Real value() const noexcept { return add_correction(sum_, correction_); }

  private:
    Real sum_{}, correction_{};
};

/// Floats summed in double: products of floats are exact there, sums have u = 2^-53. The value is rounded to float.
class in_double {
  public:
    using value_type = float;
    NUMFMT_FN void add(float x) noexcept { sum_ = rounded_add(sum_, widened(x)); }
    NUMFMT_FN void add_product(float a, float b) noexcept {
        sum_ = rounded_add(sum_, rounded_mul(widened(a), widened(b)));
    }
    NUMFMT_FN void merge(const in_double& other) noexcept { sum_ = rounded_add(sum_, other.sum_); }
    NUMFMT_FN float value() const noexcept { return narrowed(sum_); }
    NUMFMT_FN double value_in_double() const noexcept { return sum_; }

  private:
    double sum_ = 0;
};

/// `x` rounded to the nearest number of a 16-bit (or narrower) format, as a float; overflow as the format's default.
template <class Format> NUMFMT_FN float round_to_format(float x) noexcept { return decode<Format>(encode<Format>(x)); }

/// A running sum kept in `Format` (bf16, fp16): every addition, or fused multiply-add, is rounded to float and then to
/// Format. Between numbers of Format the addition is one correct rounding, since float has at least 2p + 2 bits. With
/// u = 2^-(p): 1 + 1 + 1 + ... stops at 2^p, 256 for bf16 and 2048 for fp16.
template <class Format> class rounded_to {
  public:
    using value_type = float;
    NUMFMT_FN void add(float x) noexcept { sum_ = round_to_format<Format>(rounded_add(sum_, x)); }
    NUMFMT_FN void add_product(float a, float b) noexcept { sum_ = round_to_format<Format>(rounded_fma(a, b, sum_)); }
    NUMFMT_FN void merge(const rounded_to& other) noexcept { add(other.sum_); }
    NUMFMT_FN float value() const noexcept { return sum_; }

  private:
    float sum_ = 0;
};

/// A narrow or fast inner accumulator whose value goes to a better outer one after every `Every` elements, the inner
/// one starting again at zero. Source: DeepSeek-V3 technical report (arXiv:2412.19437) section 3.3.2, Every = 128.
template <class Inner, int Every, class Outer = sequential<typename Inner::value_type>> class promoted {
    static_assert(Every >= 1, "numfmt::accumulate::promoted: at least one element between promotions");

  public:
    using value_type = typename Outer::value_type;
    template <class X> NUMFMT_FN void add(X x) noexcept {
        inner_.add(x);
        count();
    }
    template <class X> NUMFMT_FN void add_product(X a, X b) noexcept {
        inner_.add_product(a, b);
        count();
    }
    NUMFMT_FN void merge(const promoted& other) noexcept {
        promote();
        outer_.merge(other.promoted_outer());
    }
    NUMFMT_FN value_type value() const noexcept { return promoted_outer().value(); }

  private:
    NUMFMT_FN void count() noexcept {
        if (++pending_ == Every) promote();
    }
    NUMFMT_FN void promote() noexcept {
        if (pending_ == 0) return;
        outer_.add(inner_.value());
        inner_ = Inner{};
        pending_ = 0;
    }
    NUMFMT_FN Outer promoted_outer() const noexcept {
        Outer sum = outer_;
        if (pending_ > 0) sum.add(inner_.value());
        return sum;
    }
    Inner inner_{};
    Outer outer_{};
    int pending_ = 0;
};

/// Sum of x[0 .. n) by the accumulator A. n >= 0; the empty sum is 0.
template <class A, class X> NUMFMT_FN typename A::value_type sum(const X* x, int64_t n) noexcept {
    A a{};
    for (int64_t i = 0; i < n; ++i) a.add(x[i]);
    return a.value();
}

/// Dot product of x[0 .. n) and y[0 .. n) by the accumulator A.
template <class A, class X> NUMFMT_FN typename A::value_type dot(const X* x, const X* y, int64_t n) noexcept {
    A a{};
    for (int64_t i = 0; i < n; ++i) a.add_product(x[i], y[i]);
    return a.value();
}

}  // namespace numfmt::accumulate
