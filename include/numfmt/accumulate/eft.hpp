// SPDX-License-Identifier: MIT
// Error-free transforms: a rounded result together with its exact rounding error, both in the working precision.
// `Real` is float, double, or a type with its own rounded_add, rounded_sub, rounded_mul, rounded_fma and negated.
#pragma once

#include "rounded.hpp"

namespace numfmt::accumulate {

/// A value as the unevaluated sum of a rounded result and what the rounding left out.
template <class Real> struct with_error {
    Real value;
    Real error;
};

/// a + b = value + error exactly, for all finite a and b without overflow. Six operations, no branch.
/// Source: Knuth, The Art of Computer Programming, vol. 2, section 4.2.2.
template <class Real> NUMFMT_FN with_error<Real> two_sum(Real a, Real b) noexcept {
    const Real s = rounded_add(a, b);
    const Real t = rounded_sub(s, a);
    return {s, rounded_add(rounded_sub(a, rounded_sub(s, t)), rounded_sub(b, t))};
}

/// The same in three operations where |a| >= |b| or a = 0.
/// Source: Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18 (1971).
template <class Real> NUMFMT_FN with_error<Real> fast_two_sum(Real a, Real b) noexcept {
    const Real s = rounded_add(a, b);
    return {s, rounded_sub(b, rounded_sub(s, a))};
}

/// a * b = value + error exactly, where neither overflows and a * b is a multiple of the smallest subnormal (for float:
/// of 2^-149; always so where the exponents of a and b sum to at least -102).
/// Source: Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005), algorithm 3.5.
template <class Real> NUMFMT_FN with_error<Real> two_prod(Real a, Real b) noexcept {
    const Real p = rounded_mul(a, b);
    return {p, rounded_fma(a, b, negated(p))};
}

}  // namespace numfmt::accumulate
