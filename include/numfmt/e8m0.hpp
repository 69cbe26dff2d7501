// SPDX-License-Identifier: MIT
// E8M0: the power-of-two scale of the MX formats ("ue8m0" in CUDA and CUTLASS, "float8_e8m0fnu" in PyTorch).
#pragma once

#include "core/minifloat.hpp"

namespace numfmt {

struct e8m0_tag {
    using storage = uint8_t;
    static constexpr float_spec spec{.exponent_bits = 8,
                                     .mantissa_bits = 0,
                                     .bias = 127,
                                     .specials = special_values::fn,
                                     .is_signed = false,
                                     .has_zero = false};
    static constexpr const char* name = "e8m0";
    static constexpr const char* source = "OCP Microscaling Formats (MX) 1.0, section 5.4.1";
};

/// E8M0: 2^-127 .. 2^127, NaN is FF; no zero, Inf or sign. Encoding takes |x|, rounds down unless another rounding is
/// named, gives 00 for everything up to 2^-127 (zero included) and saturates at 2^127 by default.
using e8m0 = minifloat<e8m0_tag>;

}  // namespace numfmt
