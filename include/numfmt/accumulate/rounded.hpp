// SPDX-License-Identifier: MIT
// Single float and double operations that are rounded once, to nearest even, and that no compiler flag folds, reorders
// or contracts: what error-free transforms are made of. Flush-to-zero remains the processor's business on the host (a
// program linked with -ffast-math sets it); the device's instructions keep subnormals under every flag.
#pragma once

#include "../core/bits.hpp"

#if defined(__clang__) && !defined(__CUDACC__) && defined(__x86_64__) && !defined(__FMA__)
#include <cmath>
#define NUMFMT_FMA_BY_CALL
#endif

// Under -ffast-math the value passes through an empty assembly statement, which an optimiser cannot see through; so
// does a product where an FMA instruction could swallow it. Clang also gets the pragma, for flags that have no macro.
#if defined(__clang__) && !defined(__CUDACC__)
#define NUMFMT_PRECISE _Pragma("float_control(precise, on)") _Pragma("clang fp contract(off)")
#else
#define NUMFMT_PRECISE
#endif
#if defined(__CUDA_ARCH__) || !defined(__GNUC__)
#define NUMFMT_OPAQUE(x) static_cast<void>(0)
#elif defined(__SSE2__)
#define NUMFMT_OPAQUE(x) \
    if (!__builtin_is_constant_evaluated()) asm("" : "+x"(x))
#elif defined(__aarch64__)
#define NUMFMT_OPAQUE(x) \
    if (!__builtin_is_constant_evaluated()) asm("" : "+w"(x))
#else
#define NUMFMT_OPAQUE(x) \
    if (!__builtin_is_constant_evaluated()) asm("" : "+m"(x))
#endif
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__)
#define NUMFMT_PIN(x) NUMFMT_OPAQUE(x)
#define NUMFMT_PIN_PRODUCT(x) NUMFMT_OPAQUE(x)
#elif defined(__FP_FAST_FMAF) || defined(__FP_FAST_FMA) || (defined(__SSE2__) && !defined(__clang__))
// gcc may inline into a function whose target attribute has FMA while the unit's own flags, which the macros tell, do not.
#define NUMFMT_PIN(x) static_cast<void>(0)
#define NUMFMT_PIN_PRODUCT(x) NUMFMT_OPAQUE(x)
#else
#define NUMFMT_PIN(x) static_cast<void>(0)
#define NUMFMT_PIN_PRODUCT(x) static_cast<void>(0)
#endif

namespace numfmt::accumulate {

// The operations are overloads that argument-dependent lookup can find: a vector type that brings its own (rounded_add,
// rounded_sub, rounded_mul, rounded_div, rounded_fma, negated, add_correction) runs through the same accumulators.

/// a + b.
NUMFMT_FN float rounded_add(float a, float b) noexcept {
    NUMFMT_PRECISE
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        float r = 0;
        asm("add.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
        return r;
    }
#endif
    float r = a + b;
    NUMFMT_PIN(r);
    return r;
}
NUMFMT_FN double rounded_add(double a, double b) noexcept {
    NUMFMT_PRECISE
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        double r = 0;
        asm("add.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
        return r;
    }
#endif
    double r = a + b;
    NUMFMT_PIN(r);
    return r;
}

/// a - b.
NUMFMT_FN float rounded_sub(float a, float b) noexcept {
    NUMFMT_PRECISE
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        float r = 0;
        asm("sub.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
        return r;
    }
#endif
    float r = a - b;
    NUMFMT_PIN(r);
    return r;
}
NUMFMT_FN double rounded_sub(double a, double b) noexcept {
    NUMFMT_PRECISE
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        double r = 0;
        asm("sub.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
        return r;
    }
#endif
    double r = a - b;
    NUMFMT_PIN(r);
    return r;
}

/// -a: the sign bit alone. (Under -ftz the device's own negation would turn a subnormal number into zero.)
NUMFMT_FN float negated(float a) noexcept {
#if defined(__CUDA_ARCH__)
    return bit_cast<float>(bit_cast<uint32_t>(a) ^ 0x80000000u);
#else
    return -a;
#endif
}
NUMFMT_FN double negated(double a) noexcept { return -a; }

/// float to double, exact, and double to float, rounded once; subnormal numbers are kept on the device as well.
NUMFMT_FN double widened(float x) noexcept {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        double r = 0;
        asm("cvt.f64.f32 %0, %1;" : "=d"(r) : "f"(x));
        return r;
    }
#endif
    return static_cast<double>(x);
}
NUMFMT_FN float narrowed(double x) noexcept {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        float r = 0;
        asm("cvt.rn.f32.f64 %0, %1;" : "=f"(r) : "d"(x));
        return r;
    }
#endif
    return static_cast<float>(x);
}

/// a * b, never contracted with a later addition.
NUMFMT_FN float rounded_mul(float a, float b) noexcept {
    NUMFMT_PRECISE
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        float r = 0;
        asm("mul.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
        return r;
    }
#endif
    float r = a * b;
    NUMFMT_PIN_PRODUCT(r);
    return r;
}
NUMFMT_FN double rounded_mul(double a, double b) noexcept {
    NUMFMT_PRECISE
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        double r = 0;
        asm("mul.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
        return r;
    }
#endif
    double r = a * b;
    NUMFMT_PIN_PRODUCT(r);
    return r;
}

/// a / b, never turned into a multiplication by a reciprocal.
NUMFMT_FN float rounded_div(float a, float b) noexcept {
    NUMFMT_PRECISE
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        float r = 0;
        asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
        return r;
    }
#endif
    NUMFMT_PIN(b);
    float r = a / b;
    NUMFMT_PIN(r);
    return r;
}
NUMFMT_FN double rounded_div(double a, double b) noexcept {
    NUMFMT_PRECISE
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        double r = 0;
        asm("div.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
        return r;
    }
#endif
    NUMFMT_PIN(b);
    double r = a / b;
    NUMFMT_PIN(r);
    return r;
}

namespace detail {

/// a * b + c rounded once to float, without an FMA: the product is exact in double; the double sum is rounded to odd,
/// so that the rounding to float sees on which side of a tie it was. Source: Boldo & Melquiond, "Emulation of a FMA and
/// correctly rounded sums", IEEE Trans. Computers 57 (2008).
NUMFMT_FN float fma_by_rounding_to_odd(float a, float b, float c) noexcept {
    const double p = static_cast<double>(a) * static_cast<double>(b), w = static_cast<double>(c);
    const double s = rounded_add(p, w);
    const double t = rounded_sub(s, p);
    const double error = rounded_add(rounded_sub(p, rounded_sub(s, t)), rounded_sub(w, t));
    uint64_t bits = bit_cast<uint64_t>(s);
    // Where the sum is inexact and its last bit even, the neighbour on the error's side has an odd one.
    const bool inexact = error != 0 && error == error;
    if (inexact && (bits & 1u) == 0) bits += (error > 0) == (s > 0) ? 1u : ~uint64_t{0};
    return static_cast<float>(bit_cast<double>(bits));
}

#if defined(NUMFMT_FMA_BY_CALL)
// Without FMA instructions clang splits a fused multiply-add under several flags. A function it cannot name it calls.
template <class F> NUMFMT_INLINE F* opaque(F* function) noexcept {
    asm("" : "+r"(function));
    return function;
}
#endif

}  // namespace detail

/// a * b + c, rounded once.
NUMFMT_FN float rounded_fma(float a, float b, float c) noexcept {
    if (__builtin_is_constant_evaluated()) return detail::fma_by_rounding_to_odd(a, b, c);
#if defined(__CUDA_ARCH__)
    float r = 0;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
    return r;
#else
#if defined(NUMFMT_FMA_BY_CALL)
    using function = float(float, float, float);
    function* const call = detail::opaque<function>(&::fmaf);
    float r = call(a, b, c);
#else
    float r = __builtin_fmaf(a, b, c);
#endif
    NUMFMT_PIN(r);
    return r;
#endif
}
/// Not constexpr: compilers before clang 20 have no constant FMA, and double has no wider type to emulate it in.
NUMFMT_HD NUMFMT_INLINE double rounded_fma(double a, double b, double c) noexcept {
#if defined(__CUDA_ARCH__)
    double r = 0;
    asm("fma.rn.f64 %0, %1, %2, %3;" : "=d"(r) : "d"(a), "d"(b), "d"(c));
    return r;
#else
#if defined(NUMFMT_FMA_BY_CALL)
    using function = double(double, double, double);  // of the overloads that <cmath> may have put beside it
    function* const call = detail::opaque<function>(&::fma);
    double r = call(a, b, c);
#else
    double r = __builtin_fma(a, b, c);
#endif
    NUMFMT_PIN(r);
    return r;
#endif
}

/// The square root; NaN below zero. Not constexpr: compilers have no constant one before C++26.
NUMFMT_HD NUMFMT_INLINE float rounded_sqrt(float x) noexcept {
#if defined(__CUDA_ARCH__)
    float r = 0;
    asm("sqrt.rn.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
#else
    NUMFMT_PIN(x);
    float r = __builtin_sqrtf(x);
    NUMFMT_PIN(r);
    return r;
#endif
}

namespace detail {

/// True for NaN, read from the bits: holds under -ffast-math.
NUMFMT_FN bool is_nan(float x) noexcept { return numfmt::detail::is_nan(x); }
NUMFMT_FN bool is_nan(double x) noexcept { return (bit_cast<uint64_t>(x) & 0x7FFFFFFFFFFFFFFFu) > 0x7FF0000000000000u; }

}  // namespace detail

/// sum + correction, or the sum alone where the correction is NaN: after an overflow the sum is Inf and what the
/// transforms take for its rounding error is Inf - Inf.
NUMFMT_FN float add_correction(float sum, float correction) noexcept {
    return detail::is_nan(correction) ? sum : rounded_add(sum, correction);
}
NUMFMT_FN double add_correction(double sum, double correction) noexcept {
    return detail::is_nan(correction) ? sum : rounded_add(sum, correction);
}

}  // namespace numfmt::accumulate

#undef NUMFMT_PRECISE
#undef NUMFMT_OPAQUE
#undef NUMFMT_PIN
#undef NUMFMT_PIN_PRODUCT
#undef NUMFMT_FMA_BY_CALL
