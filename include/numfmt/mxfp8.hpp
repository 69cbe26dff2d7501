// SPDX-License-Identifier: MIT
// MXFP8: E4M3 or E5M2 elements, an E8M0 scale per 32.
#pragma once

#include "block/quantize.hpp"
#include "e8m0.hpp"
#include "fp8.hpp"

namespace numfmt {

/// OCP MXFP8 over either FP8 format: 8.25 bits per weight.
template <class Element> struct basic_mxfp8 : block_scheme<Element, e8m0, 1, 32> {
    static constexpr detail::fixed_name full_name = detail::fixed_name{}.add("mx").add(Element::name);
    static constexpr const char* name = full_name.text;
    static constexpr const char* source = "OCP Microscaling Formats (MX) 1.0, section 5.2";
};

using mxfp8_e4m3 = basic_mxfp8<fp8_e4m3>;
using mxfp8_e5m2 = basic_mxfp8<fp8_e5m2>;

}  // namespace numfmt
