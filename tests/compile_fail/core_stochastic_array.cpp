// SPDX-License-Identifier: MIT
// The array form has no place for the random words.
// expect: pass the draw of each element
#include <numfmt/fp8.hpp>

void codes(const float* x, unsigned char* y) {
#if defined(NUMFMT_COMPILE_FAIL)
    numfmt::encode<numfmt::fp8_e4m3, numfmt::rounding::stochastic>(x, 4, y);
#else
    numfmt::encode<numfmt::fp8_e4m3, numfmt::rounding::toward_zero>(x, 4, y);
#endif
}
