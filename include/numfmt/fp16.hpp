// SPDX-License-Identifier: MIT
// fp16: IEEE binary16.
#pragma once

#include "core/minifloat.hpp"

namespace numfmt {

struct fp16_tag {
    using storage = uint16_t;
    static constexpr float_spec spec{
        .exponent_bits = 5, .mantissa_bits = 10, .bias = 15, .specials = special_values::ieee};
    static constexpr const char* name = "fp16";
    static constexpr const char* source = "IEEE 754-2019, binary16";
};

/// IEEE half precision: 1 sign, 5 exponent, 10 mantissa bits; 2^-24 .. 65504. Overflow gives Inf by default.
using fp16 = minifloat<fp16_tag>;

}  // namespace numfmt
