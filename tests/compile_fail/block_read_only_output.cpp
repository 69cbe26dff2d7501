// SPDX-License-Identifier: MIT
// quantize into a read-only view says so.
// expect: numfmt::quantize: the output view is read-only
#include <numfmt/mxfp4.hpp>

#ifdef NUMFMT_COMPILE_FAIL
using target = const numfmt::mxfp4;
#else
using target = numfmt::mxfp4;
#endif

numfmt::status f(numfmt::matrix_view<const float> x, numfmt::quantized_view<target> q) {
    return numfmt::quantize(x, q);
}
