// SPDX-License-Identifier: MIT
// A long double would be rounded twice.
// expect: (use of deleted function|call to deleted constructor|uses deleted function)
#include <numfmt/fp8.hpp>

numfmt::fp8_e4m3 narrow(long double x) {
#if defined(NUMFMT_COMPILE_FAIL)
    return numfmt::fp8_e4m3(x);
#else
    return numfmt::fp8_e4m3(static_cast<double>(x));
#endif
}
