// SPDX-License-Identifier: MIT
// MXFP4: E2M1 elements, an E8M0 scale per 32.
#pragma once

#include "block/quantize.hpp"
#include "e8m0.hpp"
#include "fp4.hpp"

namespace numfmt {

/// OCP MXFP4: 4.25 bits per weight.
struct mxfp4 : block_scheme<fp4_e2m1, e8m0, 1, 32> {
    static constexpr const char* name = "mxfp4";
    static constexpr const char* source = "OCP Microscaling Formats (MX) 1.0, section 5.2";
};

}  // namespace numfmt
