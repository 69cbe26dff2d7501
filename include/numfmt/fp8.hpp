// SPDX-License-Identifier: MIT
// The 8-bit floating-point formats.
#pragma once

#include "core/minifloat.hpp"

namespace numfmt {

struct fp8_e4m3_tag {
    using storage = uint8_t;
    static constexpr float_spec spec{.exponent_bits = 4, .mantissa_bits = 3, .bias = 7, .specials = special_values::fn};
    static constexpr const char* name = "fp8_e4m3";
    static constexpr const char* source = "OCP 8-bit Floating Point Specification (OFP8) 1.0, Table 1";
};

struct fp8_e5m2_tag {
    using storage = uint8_t;
    static constexpr float_spec spec{
        .exponent_bits = 5, .mantissa_bits = 2, .bias = 15, .specials = special_values::ieee};
    static constexpr const char* name = "fp8_e5m2";
    static constexpr const char* source = "OCP 8-bit Floating Point Specification (OFP8) 1.0, Table 1";
};

struct fp8_e4m3fnuz_tag {
    using storage = uint8_t;
    static constexpr float_spec spec{
        .exponent_bits = 4, .mantissa_bits = 3, .bias = 8, .specials = special_values::fnuz};
    static constexpr const char* name = "fp8_e4m3fnuz";
    static constexpr const char* source = "8-bit Numerical Formats for Deep Neural Networks (arXiv:2206.02915)";
};

struct fp8_e5m2fnuz_tag {
    using storage = uint8_t;
    static constexpr float_spec spec{
        .exponent_bits = 5, .mantissa_bits = 2, .bias = 16, .specials = special_values::fnuz};
    static constexpr const char* name = "fp8_e5m2fnuz";
    static constexpr const char* source = "8-bit Numerical Formats for Deep Neural Networks (arXiv:2206.02915)";
};

struct fp8_ue4m3_tag {
    using storage = uint8_t;
    static constexpr float_spec spec{
        .exponent_bits = 4, .mantissa_bits = 3, .bias = 7, .specials = special_values::fn, .is_signed = false};
    static constexpr const char* name = "fp8_ue4m3";
    static constexpr const char* source = "PTX ISA, alternate floating-point formats (ue4m3)";
};

/// FP8 E4M3 ("float8_e4m3fn"): 2^-9 .. 448, NaN is 7F and FF, no Inf. Overflow saturates by default.
using fp8_e4m3 = minifloat<fp8_e4m3_tag>;
using fp8_e4m3fn = fp8_e4m3;
/// FP8 E5M2: 2^-16 .. 57344, IEEE Inf and NaN. Overflow saturates by default.
using fp8_e5m2 = minifloat<fp8_e5m2_tag>;
/// The AMD MI300 variants: bias one higher, NaN is 80, neither Inf nor -0; 2^-10 .. 240 and 2^-17 .. 57344.
using fp8_e4m3fnuz = minifloat<fp8_e4m3fnuz_tag>;
using fp8_e5m2fnuz = minifloat<fp8_e5m2fnuz_tag>;
/// Unsigned E4M3, the block scale of NVFP4: seven bits in a byte; encoding takes |x|, decoding ignores bit 7.
using fp8_ue4m3 = minifloat<fp8_ue4m3_tag>;

}  // namespace numfmt
