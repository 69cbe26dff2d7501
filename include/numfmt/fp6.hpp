// SPDX-License-Identifier: MIT
// The 6-bit floating-point formats, the elements of MXFP6.
#pragma once

#include "core/minifloat.hpp"

namespace numfmt {

struct fp6_e2m3_tag {
    using storage = uint8_t;
    static constexpr float_spec spec{
        .exponent_bits = 2, .mantissa_bits = 3, .bias = 1, .specials = special_values::finite};
    static constexpr const char* name = "fp6_e2m3";
    static constexpr const char* source = "OCP Microscaling Formats (MX) 1.0, section 5.3.2";
};

struct fp6_e3m2_tag {
    using storage = uint8_t;
    static constexpr float_spec spec{
        .exponent_bits = 3, .mantissa_bits = 2, .bias = 3, .specials = special_values::finite};
    static constexpr const char* name = "fp6_e3m2";
    static constexpr const char* source = "OCP Microscaling Formats (MX) 1.0, section 5.3.2";
};

/// FP6 E2M3: 2^-3 .. 7.5; the code is in bits 5..0. Overflow and NaN saturate.
using fp6_e2m3 = minifloat<fp6_e2m3_tag>;
/// FP6 E3M2: 2^-4 .. 28; the code is in bits 5..0. Overflow and NaN saturate.
using fp6_e3m2 = minifloat<fp6_e3m2_tag>;

}  // namespace numfmt
