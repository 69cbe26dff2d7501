// SPDX-License-Identifier: MIT
// The AWQ names over int4.hpp.
#pragma once

#include "int4.hpp"

namespace numfmt {

/// AWQ's default: asymmetric int4, group 128, fp16 scales: 4.15625 bits per weight.
struct awq_int4 : int4<128, fp16> {
    static constexpr const char* name = "awq_int4";
};

}  // namespace numfmt
