// SPDX-License-Identifier: MIT
// Single fp32 operations that round once and keep subnormals, whatever the compiler's flags. On the host they are the
// plain operators; on the device they are the PTX instructions that -use_fast_math, -ftz and -fmad leave alone.
#pragma once

#include "bits.hpp"

namespace numfmt::detail {

/// a * b, rounded to nearest even; never contracted with an addition on the device. Where a is NaN the result is a:
/// CPUs keep its sign, which the GPU's instructions drop.
NUMFMT_FN float product(float a, float b) noexcept {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        float r = 0;
        asm("mul.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
        return is_nan(a) ? a : r;
    }
#endif
    return a * b;
}

/// a / b, rounded to nearest even; a where a is NaN.
NUMFMT_FN float quotient(float a, float b) noexcept {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        float r = 0;
        asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
        return is_nan(a) ? a : r;
    }
#endif
    return a / b;
}

/// a - b, rounded to nearest even.
NUMFMT_FN float difference(float a, float b) noexcept {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        float r = 0;
        asm("sub.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
        return r;
    }
#endif
    return a - b;
}

/// The larger and the smaller of two numbers that are not NaN. (Under -ftz a comparison written with operators would
/// take subnormals for zero.)
NUMFMT_FN float larger(float a, float b) noexcept {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        float r = 0;
        asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
        return r;
    }
#endif
    return max(a, b);
}
NUMFMT_FN float smaller(float a, float b) noexcept {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        float r = 0;
        asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
        return r;
    }
#endif
    return min(a, b);
}

}  // namespace numfmt::detail
