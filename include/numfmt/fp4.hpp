// SPDX-License-Identifier: MIT
// The 4-bit floating-point format, the element of MXFP4 and NVFP4.
#pragma once

#include "core/minifloat.hpp"

namespace numfmt {

struct fp4_e2m1_tag {
    using storage = uint8_t;
    static constexpr float_spec spec{
        .exponent_bits = 2, .mantissa_bits = 1, .bias = 1, .specials = special_values::finite};
    static constexpr const char* name = "fp4_e2m1";
    static constexpr const char* source = "OCP Microscaling Formats (MX) 1.0, section 5.3.3";
};

/// FP4 E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; the code is in bits 3..0. Overflow and NaN saturate.
using fp4_e2m1 = minifloat<fp4_e2m1_tag>;

}  // namespace numfmt
