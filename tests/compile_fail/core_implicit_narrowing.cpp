// SPDX-License-Identifier: MIT
// Narrowing is explicit.
// expect: (no viable conversion from|conversion from) .?float
#include <numfmt/fp8.hpp>

numfmt::fp8_e4m3 narrow(float x) {
#if defined(NUMFMT_COMPILE_FAIL)
    numfmt::fp8_e4m3 y = x;
#else
    numfmt::fp8_e4m3 y(x);
#endif
    return y;
}
