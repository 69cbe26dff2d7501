// SPDX-License-Identifier: MIT
// The roundings of E8M0 are not roundings of elements: scale_rule chooses how scales round.
// expect: numfmt::quantize: rounding::down, up and nearest_up belong to e8m0
#include <numfmt/mxfp8.hpp>

#ifdef NUMFMT_COMPILE_FAIL
constexpr numfmt::rounding mode = numfmt::rounding::up;
#else
constexpr numfmt::rounding mode = numfmt::rounding::toward_zero;
#endif

numfmt::status f(numfmt::matrix_view<const float> x, numfmt::quantized_view<numfmt::mxfp8_e4m3> q) {
    return numfmt::quantize<mode>(x, q);
}
