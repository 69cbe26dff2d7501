// SPDX-License-Identifier: MIT
// Between formats, too, where a value could be lost.
// expect: (no viable conversion from|conversion from|could not convert) .*bf16
#include <numfmt/bf16.hpp>
#include <numfmt/fp16.hpp>

numfmt::fp16 narrow(numfmt::bf16 x) {
#if defined(NUMFMT_COMPILE_FAIL)
    return x;
#else
    return numfmt::fp16(x);
#endif
}
