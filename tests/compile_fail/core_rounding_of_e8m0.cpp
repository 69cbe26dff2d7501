// SPDX-License-Identifier: MIT
// "Even" means nothing without a mantissa.
// expect: this rounding does not exist for this format
#include <numfmt/e8m0.hpp>

unsigned scale(float amax) {
#if defined(NUMFMT_COMPILE_FAIL)
    return numfmt::encode<numfmt::e8m0, numfmt::rounding::nearest_even>(amax);
#else
    return numfmt::encode<numfmt::e8m0, numfmt::rounding::nearest_up>(amax);
#endif
}
