// SPDX-License-Identifier: MIT
// Nor compound assignment.
// expect: (no match for|invalid operands to binary expression|no viable overloaded)
#include <numfmt/fp8.hpp>

void accumulate(numfmt::fp8_e5m2& a, numfmt::fp8_e5m2 b) {
#if defined(NUMFMT_COMPILE_FAIL)
    a += b;
#else
    a = b;
#endif
}
