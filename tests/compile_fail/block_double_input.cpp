// SPDX-License-Identifier: MIT
// quantize takes float, bf16 and fp16; a double would be rounded twice.
// expect: numfmt::quantize: the input must be float, bf16 or fp16
#include <numfmt/mxfp4.hpp>

#ifdef NUMFMT_COMPILE_FAIL
using input = double;
#else
using input = float;
#endif

numfmt::status f(numfmt::matrix_view<const input> x, numfmt::quantized_view<numfmt::mxfp4> q) {
    return numfmt::quantize(x, q);
}
