// SPDX-License-Identifier: MIT
// The same for encode(), which says why.
// expect: long double is not supported
#include <numfmt/fp8.hpp>

unsigned narrow(long double x) {
#if defined(NUMFMT_COMPILE_FAIL)
    return numfmt::encode<numfmt::fp8_e4m3>(x);
#else
    return numfmt::encode<numfmt::fp8_e4m3>(static_cast<double>(x));
#endif
}
