// SPDX-License-Identifier: MIT
// A number format as data: five stored facts for a float, three for an integer; everything else is derived from them.
#pragma once

#include "config.hpp"

namespace numfmt {

/// Which codes are not finite numbers.
enum class special_values : uint8_t {
    ieee,    ///< the top exponent holds +-Inf (mantissa 0) and NaN (bf16, fp16, E5M2)
    fn,      ///< only the all-ones magnitude is NaN, no Inf (E4M3, UE4M3, E8M0)
    fnuz,    ///< only the code of -0 is NaN, no Inf, no -0 (AMD MI300 style)
    finite,  ///< every code is a finite number (FP6, FP4)
};

/// A binary floating-point format of at most 16 bits: [sign] exponent mantissa, most significant first.
struct float_spec {
    int exponent_bits;
    int mantissa_bits;
    int bias;
    special_values specials;
    bool is_signed = true;
    /// False for a pure power-of-two scale (E8M0): code 0 is 2^-bias, there is neither zero nor a subnormal.
    bool has_zero = true;

    NUMFMT_FN int bits() const { return (is_signed ? 1 : 0) + exponent_bits + mantissa_bits; }
    NUMFMT_FN int magnitude_bits() const { return exponent_bits + mantissa_bits; }
    NUMFMT_FN uint32_t magnitude_mask() const { return (1u << magnitude_bits()) - 1u; }
    NUMFMT_FN uint32_t code_mask() const { return (1u << bits()) - 1u; }
    NUMFMT_FN uint32_t sign_bit() const { return is_signed ? 1u << magnitude_bits() : 0u; }
    NUMFMT_FN uint32_t mantissa_mask() const { return (1u << mantissa_bits) - 1u; }
    NUMFMT_FN bool has_infinity() const { return specials == special_values::ieee; }
    NUMFMT_FN bool has_nan() const { return specials != special_values::finite; }
    NUMFMT_FN bool has_negative_zero() const { return is_signed && has_zero && specials != special_values::fnuz; }

    /// Exponent of the smallest normal number (of code 0 where there is no zero).
    NUMFMT_FN int min_exponent() const { return has_zero ? 1 - bias : -bias; }
    /// Exponent of the largest power of two in the format; "emax" in the MX specification.
    NUMFMT_FN int max_exponent() const { return static_cast<int>(max_finite_code() >> mantissa_bits) - bias; }
    /// Magnitude code of the largest finite number.
    NUMFMT_FN uint32_t max_finite_code() const {
        switch (specials) {
            case special_values::ieee:
                return magnitude_mask() - mantissa_mask() - 1u;
            case special_values::fn:
                return magnitude_mask() - 1u;
            default:
                return magnitude_mask();
        }
    }
    /// Magnitude code of infinity; meaningful only where has_infinity().
    NUMFMT_FN uint32_t infinity_code() const { return magnitude_mask() - mantissa_mask(); }
    /// The code every NaN becomes under nan_mode::canonical: all ones without the sign (7F, 7FFF, FF for E8M0) as the
    /// CUDA conversions give it, 80 for fnuz, the largest number where the format has no NaN.
    NUMFMT_FN uint32_t canonical_nan_code() const {
        if (specials == special_values::fnuz) return sign_bit();
        return magnitude_mask();
    }
    /// Magnitude of the NaN under nan_mode::keep_sign: the quiet NaN without payload (7FC0, 7E00, 7E for E5M2, 7F).
    NUMFMT_FN uint32_t quiet_nan_code() const {
        if (specials != special_values::ieee) return canonical_nan_code();
        return infinity_code() | (1u << (mantissa_bits - 1));
    }

    /// Unit roundoff of round-to-nearest is 2^-(mantissa_bits + 1).
    NUMFMT_FN int precision() const { return mantissa_bits + 1; }

    friend NUMFMT_FN bool operator==(const float_spec&, const float_spec&) = default;
};

/// A two's-complement or unsigned integer element with an implied power-of-two scale: value = code * 2^-fraction_bits.
struct int_spec {
    int bits;
    bool is_signed;
    int fraction_bits;  ///< 0 for int4; 6 for MXINT8
    int min_code;       ///< smallest and largest integer the encoder emits (-127 for symmetric int8)
    int max_code;

    NUMFMT_FN uint32_t code_mask() const { return (1u << bits) - 1u; }
    /// Exponent of the largest power of two that max_code reaches; "emax" in the MX specification.
    NUMFMT_FN int max_exponent() const {
        int e = -1;
        for (int v = max_code; v > 0; v >>= 1) ++e;
        return e - fraction_bits;
    }
};

/// True where every value of `from` (NaN as a class) is a value of `to`, so that the conversion cannot round.
NUMFMT_FN bool represents_all(const float_spec& from, const float_spec& to) {
    const bool range = to.max_exponent() >= from.max_exponent() && to.mantissa_bits >= from.mantissa_bits &&
                       to.min_exponent() - to.mantissa_bits <= from.min_exponent() - from.mantissa_bits;
    const bool largest = to.max_exponent() > from.max_exponent() ||
                         (to.max_finite_code() & to.mantissa_mask()) << (16 - to.mantissa_bits) >=
                             (from.max_finite_code() & from.mantissa_mask()) << (16 - from.mantissa_bits);
    const bool zero = (to.has_zero || !from.has_zero) && (to.has_negative_zero() || !from.has_negative_zero());
    return range && largest && zero && (to.is_signed || !from.is_signed) && (to.has_nan() || !from.has_nan()) &&
           (to.has_infinity() || !from.has_infinity());
}

}  // namespace numfmt
