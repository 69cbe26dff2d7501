// SPDX-License-Identifier: MIT
// MXINT8: 8-bit integers with 6 fraction bits, an E8M0 scale per 32.
#pragma once

#include "block/quantize.hpp"
#include "e8m0.hpp"

namespace numfmt {

/// The element of MXINT8: two's complement, value = code / 64. The encoder stays within +-127 (+-1.984375), so that the
/// range is symmetric; the code 80 (-2.0) is decoded if a checkpoint holds it.
struct int8_q6 {
    using storage = uint8_t;
    static constexpr int_spec spec{.bits = 8, .is_signed = true, .fraction_bits = 6, .min_code = -127, .max_code = 127};
    static constexpr const char* name = "int8_q6";
};

/// OCP MXINT8: 8.25 bits per weight.
struct mxint8 : block_scheme<int8_q6, e8m0, 1, 32> {
    static constexpr const char* name = "mxint8";
    static constexpr const char* source = "OCP Microscaling Formats (MX) 1.0, section 5.2";
};

}  // namespace numfmt
