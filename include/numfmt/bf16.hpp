// SPDX-License-Identifier: MIT
// bf16: the upper half of an IEEE binary32.
#pragma once

#include "core/minifloat.hpp"

namespace numfmt {

struct bf16_tag {
    using storage = uint16_t;
    static constexpr float_spec spec{
        .exponent_bits = 8, .mantissa_bits = 7, .bias = 127, .specials = special_values::ieee};
    static constexpr const char* name = "bf16";
    static constexpr const char* source = "Intel, BFLOAT16 Hardware Numerics Definition, 2018";
};

/// bfloat16: 1 sign, 8 exponent, 7 mantissa bits; 2^-133 .. 3.39e38. Overflow gives Inf by default.
using bf16 = minifloat<bf16_tag>;

}  // namespace numfmt
