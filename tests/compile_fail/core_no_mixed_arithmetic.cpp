// SPDX-License-Identifier: MIT
// Not mixed with a wider format either.
// expect: (use of deleted function|overload resolution selected deleted operator)
#include <numfmt/bf16.hpp>
#include <numfmt/fp4.hpp>

float product(numfmt::bf16 a, numfmt::fp4_e2m1 b) {
#if defined(NUMFMT_COMPILE_FAIL)
    return a * b;
#else
    return a * static_cast<numfmt::bf16>(b);
#endif
}
