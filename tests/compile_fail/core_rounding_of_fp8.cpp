// SPDX-License-Identifier: MIT
// Up, down and nearest_up belong to E8M0.
// expect: this rounding does not exist for this format
#include <numfmt/fp8.hpp>

unsigned code(float x) {
#if defined(NUMFMT_COMPILE_FAIL)
    return numfmt::encode<numfmt::fp8_e4m3, numfmt::rounding::up>(x);
#else
    return numfmt::encode<numfmt::fp8_e4m3, numfmt::rounding::nearest_away>(x);
#endif
}
