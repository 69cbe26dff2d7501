// SPDX-License-Identifier: MIT
// FP8 has no arithmetic: every operation would lose most of its result.
// expect: (use of deleted function|overload resolution selected deleted operator)
// expect: no arithmetic below 16 bits
#include <numfmt/fp8.hpp>

float sum(numfmt::fp8_e4m3 a, numfmt::fp8_e4m3 b) {
#if defined(NUMFMT_COMPILE_FAIL)
    return a + b;
#else
    return static_cast<float>(a) + static_cast<float>(b);
#endif
}
