// SPDX-License-Identifier: MIT
// MXFP6: E2M3 or E3M2 elements, an E8M0 scale per 32.
#pragma once

#include "block/quantize.hpp"
#include "e8m0.hpp"
#include "fp6.hpp"

namespace numfmt {

/// OCP MXFP6 over either FP6 format: 6.25 bits per weight, four codes in three bytes.
template <class Element> struct basic_mxfp6 : block_scheme<Element, e8m0, 1, 32> {
    static constexpr detail::fixed_name full_name = detail::fixed_name{}.add("mx").add(Element::name);
    static constexpr const char* name = full_name.text;
    static constexpr const char* source = "OCP Microscaling Formats (MX) 1.0, section 5.2";
};

using mxfp6_e2m3 = basic_mxfp6<fp6_e2m3>;
using mxfp6_e3m2 = basic_mxfp6<fp6_e3m2>;

}  // namespace numfmt
