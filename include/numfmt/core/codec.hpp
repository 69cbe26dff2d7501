// SPDX-License-Identifier: MIT
// The reference encode and decode of every float format: constexpr, host and device, integer arithmetic only (the one
// other instruction is the conversion of an integer below 2^24 to float, which is exact), hence independent of rounding
// mode, FTZ, DAZ and -ffast-math. Every faster path in the library is held equal to it bit for bit.
//
// Written without branches on data, so that compilers vectorise a plain loop over encode() or decode().
#pragma once

#include "bits.hpp"
#include "policy.hpp"

namespace numfmt {

/// A float format: a type with a `spec` (float_spec) and the unsigned integer `storage` of its codes. `minifloat<Tag>`
/// is the library's model of it.
template <class F>
concept float_format = requires {
    typename F::storage;
    requires detail::is_same_v<detail::remove_cv_t<decltype(F::spec)>, float_spec>;
};

/// The rounding a format uses when none is named: nearest_even, or `down` for E8M0.
template <float_format Format> inline constexpr rounding default_rounding_v = detail::default_rounding(Format::spec);

namespace detail {

// The two wide source layouts. Every other source is exact in one of them.
template <class UInt> struct ieee_source;
template <> struct ieee_source<uint32_t> {
    static constexpr int mantissa_bits = 23, bias = 127;
    static constexpr uint32_t infinity = f32_infinity, sign = 0x80000000u;
};
template <> struct ieee_source<uint64_t> {
    static constexpr int mantissa_bits = 52, bias = 1023;
    static constexpr uint64_t infinity = 0x7FF0000000000000u, sign = 0x8000000000000000u;
};

// What the options mean for one format, computed once and hoisted out of loops.
struct encode_plan {
    uint32_t overflow_code;  // magnitude for a finite overflow under a nearest rounding
    uint32_t infinity_code;  // magnitude for Inf
    uint32_t nan_code;
    uint32_t nan_sign_mask;   // the sign bit if NaN keeps its sign, else 0
    uint32_t zero_sign_mask;  // the sign bit if -0 is kept, else 0
};

template <class Format> NUMFMT_FN encode_plan plan_encode(encode_options o) noexcept {
    constexpr float_spec s = Format::spec;
    constexpr overflow by_format = s.bits() <= 8 ? overflow::saturate : overflow::to_nonfinite;
    constexpr uint32_t nonfinite_code = s.has_infinity() ? s.infinity_code()
                                        : s.has_nan()    ? s.canonical_nan_code()
                                                         : s.max_finite_code();
    const overflow mode = o.overflow == overflow::by_format ? by_format : o.overflow;
    encode_plan plan{};
    plan.overflow_code = mode == overflow::to_nonfinite ? nonfinite_code : s.max_finite_code();
    plan.infinity_code = mode == overflow::saturate ? s.max_finite_code() : nonfinite_code;
    plan.nan_code = o.nan == nan_mode::keep_sign ? s.quiet_nan_code() : s.canonical_nan_code();
    plan.nan_sign_mask = o.nan == nan_mode::canonical ? 0u : s.sign_bit();
    plan.zero_sign_mask = s.has_negative_zero() && !o.drop_negative_zero ? s.sign_bit() : 0u;
    return plan;
}

/// sig / 2^shift rounded to an integer, for 1 <= shift < width(UInt) - 1 and sig < 2^(width - 2).
/// Stochastic uses the exact shift, which may be larger than the clamped one the other roundings get.
template <rounding R, class UInt>
NUMFMT_FN UInt round_shift(UInt sig, int shift, int exact_shift, uint32_t draw) noexcept {
    if constexpr (R == rounding::toward_zero) {
        return static_cast<UInt>(sig >> shift);
    } else if constexpr (R == rounding::stochastic) {
        const UInt kept = static_cast<UInt>(sig >> shift);
        const uint64_t rest = static_cast<uint64_t>(sig - static_cast<UInt>(kept << shift));
        // The discarded fraction, rest / 2^exact_shift, scaled to 2^32 and truncated.
        const int up = exact_shift <= 32 ? 32 - exact_shift : 0;
        const int down = min(exact_shift <= 32 ? 0 : exact_shift - 32, 63);
        const uint64_t fraction = (rest << up) >> down;
        return static_cast<UInt>(kept + (static_cast<uint64_t>(draw) < fraction ? 1u : 0u));
    } else {
        const UInt half = static_cast<UInt>(UInt{1} << (shift - 1));
        if constexpr (R == rounding::nearest_even) {
            const UInt odd = static_cast<UInt>((sig >> shift) & 1u);
            return static_cast<UInt>((sig + half - 1u + odd) >> shift);
        } else if constexpr (R == rounding::nearest_away) {
            return static_cast<UInt>((sig + half) >> shift);
        } else {
            static_assert(R == rounding::nearest_to_zero);
            return static_cast<UInt>((sig + half - 1u) >> shift);
        }
    }
}

/// A positive finite number as significand * 2^(exponent - mantissa_bits), the significand with its leading bit in
/// place (0 for zero).
template <class UInt> struct significand {
    UInt sig;
    int exponent;
};

/// How split() treats the source's subnormals.
enum class source_subnormals : uint8_t {
    keep,       // leave the leading bit missing, as stored
    normalise,  // shift it into place
    dont_care,  // give any value below the smallest normal number's double: the target rounds all of them to zero
};

template <source_subnormals S, class UInt> NUMFMT_FN significand<UInt> split(UInt magnitude) noexcept {
    using src = ieee_source<UInt>;
    constexpr UInt implicit = UInt{1} << src::mantissa_bits;
    constexpr UInt mask = implicit - 1u;
    if constexpr (S == source_subnormals::normalise) {
        static_assert(sizeof(UInt) == 4);
        // A subnormal is magnitude * 2^-149: converting that integer (< 2^23, exact) finds its leading bit.
        const bool subnormal = magnitude < f32_min_normal;
        const UInt converted = bit_cast<UInt>(static_cast<float>(static_cast<int32_t>(magnitude & mask)));
        const UInt m = blend(subnormal, converted, magnitude);
        // Zero gets an exponent that no scale of the documented range lifts to 0.
        const uint32_t below = blend(m != 0, blend(subnormal, 127 + 149, 127), 2048);
        const int exponent = static_cast<int>(m >> 23) - static_cast<int>(below);
        return {static_cast<UInt>((m & mask) | blend(m != 0, implicit, 0)), exponent};
    } else {
        const int field = static_cast<int>(magnitude >> src::mantissa_bits);
        if constexpr (S == source_subnormals::dont_care) {
            return {static_cast<UInt>((magnitude & mask) | implicit), field - src::bias};
        } else {
            const UInt lead = field != 0 ? implicit : UInt{0};
            return {static_cast<UInt>((magnitude & mask) | lead), max(field, 1) - src::bias};
        }
    }
}

/// Rounded magnitude code of a format with a zero; may exceed the largest finite code. The value encoded is
/// magnitude * 2^-scale_exponent, formed without an intermediate rounding, underflow or overflow.
template <class Format, rounding R, bool Scaled, class UInt>
NUMFMT_FN uint32_t round_magnitude(UInt magnitude, int scale_exponent, uint32_t draw) noexcept {
    using src = ieee_source<UInt>;
    constexpr float_spec s = Format::spec;
    constexpr int dropped = src::mantissa_bits - s.mantissa_bits;
    static_assert(s.min_exponent() >= 1 - src::bias, "the source must reach as far down as the format");
    if constexpr (!Scaled && s.min_exponent() == 1 - src::bias) {
        // Same exponent range (float -> bf16): the fields line up, one shift does it.
        return static_cast<uint32_t>(round_shift<R>(magnitude, dropped, dropped, draw));
    } else {
        constexpr int headroom = static_cast<int>(sizeof(UInt)) * 8 - 2 - src::mantissa_bits;
        constexpr bool tiny_is_zero =
            R != rounding::stochastic && s.min_exponent() - s.mantissa_bits - 1 > 2 - src::bias;
        constexpr source_subnormals treatment = Scaled         ? source_subnormals::normalise
                                                : tiny_is_zero ? source_subnormals::dont_care
                                                               : source_subnormals::keep;
        const significand<UInt> v = split<treatment>(magnitude);
        const int above = v.exponent - (Scaled ? scale_exponent : 0) - s.min_exponent();
        UInt i = 0;
        if constexpr (s.mantissa_bits + 2 <= headroom && R != rounding::stochastic) {
            // Below min_exponent the significand moves right, at most mantissa_bits + 2 places (then it rounds to
            // zero). The register has that much room above it: start there, lose no bit, and round at a fixed place.
            constexpr int room = s.mantissa_bits + 2;
            const int up = room + max(min(above, 0), -room);
            i = round_shift<R>(static_cast<UInt>(v.sig << up), dropped + room, dropped + room, draw);
        } else {
            const int exact_shift = dropped + max(-above, 0);
            // From mantissa_bits + 2 on everything rounds to zero; a larger shift would leave the register.
            const int shift = min(exact_shift, src::mantissa_bits + 2);
            i = round_shift<R>(v.sig, shift, exact_shift, draw);
        }
        // The significand's leading bit (or a carry out of the rounding) increments the exponent field by itself.
        return (static_cast<uint32_t>(max(above, 0)) << s.mantissa_bits) + static_cast<uint32_t>(i);
    }
}

/// Rounded exponent code of a format without a zero (E8M0); may exceed the largest finite code.
template <class Format, rounding R, class UInt> NUMFMT_FN uint32_t round_exponent(UInt magnitude) noexcept {
    using src = ieee_source<UInt>;
    constexpr float_spec s = Format::spec;
    static_assert(s.mantissa_bits == 0 && src::bias >= s.bias);
    constexpr UInt one = UInt{1} << src::mantissa_bits;
    constexpr UInt half = UInt{1} << (src::mantissa_bits - 1);
    constexpr UInt add = R == rounding::up ? one - 1u : R == rounding::nearest_up ? half : UInt{0};
    int code = static_cast<int>((magnitude + add) >> src::mantissa_bits) - (src::bias - s.bias);
    if constexpr (src::bias == s.bias) {
        // Code 0 is 2^-127, a subnormal of the source: its binade ends at the smallest normal number.
        constexpr UInt next = R == rounding::up ? half + 1u : R == rounding::nearest_up ? half + half / 2u : one;
        code = magnitude < one ? (magnitude >= next ? 1 : 0) : code;
    }
    return static_cast<uint32_t>(max(code, 0));
}

template <class Format, rounding R, bool Scaled, class UInt>
NUMFMT_FN typename Format::storage encode_bits(UInt bits, int scale_exponent, encode_plan plan,
                                               uint32_t draw) noexcept {
    using src = ieee_source<UInt>;
    constexpr float_spec s = Format::spec;
    static_assert(rounding_allowed(s, R),
                  "numfmt::encode: this rounding does not exist for this format (e8m0 takes rounding::down, up, "
                  "nearest_up or toward_zero; every other format takes the rest)");
    const UInt magnitude = static_cast<UInt>(bits & (src::sign - 1u));
    uint32_t code = 0;
    if constexpr (s.has_zero) {
        code = round_magnitude<Format, R, Scaled>(magnitude, scale_exponent, draw);
    } else {
        code = round_exponent<Format, R>(magnitude);
    }
    // Where the source's exponents reach far above the format's, Inf and NaN already have a code above every cap.
    constexpr bool far_above = !Scaled && src::bias - s.bias > 1;
    const bool nan = magnitude > src::infinity;
    const bool infinite = magnitude == src::infinity;
    if constexpr (!far_above) code = blend(magnitude >= src::infinity, 0x10000u, code);
    // Overflow is tested after rounding. A rounding that never moves away from zero keeps finite values finite.
    constexpr bool overflows = is_nearest(R) || R == rounding::up || R == rounding::stochastic;
    uint32_t cap = overflows ? plan.overflow_code : s.max_finite_code();
    cap = infinite ? plan.infinity_code : cap;
    cap = blend(nan, plan.nan_code, cap);
    code = min(code, cap);
    uint32_t sign_mask = blend(nan, plan.nan_sign_mask, s.sign_bit());
    sign_mask = code == 0 ? plan.zero_sign_mask : sign_mask;
    const uint32_t sign =
        static_cast<uint32_t>(bits >> (sizeof(UInt) * 8 - 1 - static_cast<unsigned>(s.magnitude_bits())));
    return static_cast<typename Format::storage>(code | (sign & sign_mask));
}

/// Bits of x * 2^exponent for x zero, normal, Inf or NaN; exact where the result's lowest set bit is at least 2^-149,
/// +-Inf beyond the largest float.
template <bool MayBeNonfinite> NUMFMT_FN uint32_t scale_bits(uint32_t bits, int exponent) noexcept {
    const uint32_t sign = bits & ~f32_abs_mask;
    const uint32_t magnitude = bits & f32_abs_mask;
    const int field = static_cast<int>(magnitude >> 23) + exponent;
    const uint32_t normal = magnitude + (static_cast<uint32_t>(exponent) << 23);
    const uint32_t sig = (magnitude & 0x007FFFFFu) | f32_min_normal;
    const uint32_t subnormal = sig >> min(max(1 - field, 0), 31);  // exact: only zeros are shifted out
    uint32_t value = blend(field <= 0, subnormal, normal);
    value = blend(field >= 255, f32_infinity, value);
    value = blend(magnitude == 0, 0u, value);
    if constexpr (MayBeNonfinite) value = blend(magnitude >= f32_infinity, magnitude, value);
    return value | sign;
}

/// An integer as the bits of a double; beyond 53 bits the lowest bit is sticky (round to odd), so that a later
/// rounding to at most 51 bits is still the rounding of the integer itself.
template <class Int> NUMFMT_FN uint64_t integer_as_double_bits(Int x) noexcept {
    const bool negative = x < Int{0};
    const uint64_t wide = static_cast<uint64_t>(x);
    const uint64_t m = negative ? 0 - wide : wide;
    if (m == 0) return 0;
    const int width = 64 - countl_zero(m);
    uint64_t sig = 0;
    if (width <= 53) {
        sig = m << (53 - width);
    } else {
        const int drop = width - 53;
        sig = (m >> drop) | ((m & ((uint64_t{1} << drop) - 1u)) != 0 ? 1u : 0u);
    }
    const uint64_t field = static_cast<uint64_t>(width - 1 + 1023);
    return (negative ? uint64_t{1} << 63 : 0u) | (field << 52) | (sig & ((uint64_t{1} << 52) - 1u));
}

}  // namespace detail

/// Bits of the float that `code` stands for, exact for every format. Bits above the format's width are ignored. NaN
/// gives a quiet NaN with the code's sign (bf16: with its payload as well); compare NaN as a class.
template <float_format Format> NUMFMT_FN uint32_t decode_bits(typename Format::storage code) noexcept {
    constexpr float_spec s = Format::spec;
    const uint32_t c = code;
    if constexpr (s.exponent_bits == 8 && s.bias == 127 && s.has_zero && s.specials == special_values::ieee) {
        return c << 16;  // bf16 is the upper half of a float
    } else {
        const uint32_t mag = c & s.magnitude_mask();
        const uint32_t sign = (c & s.sign_bit()) << (31 - s.magnitude_bits());
        const uint32_t normal = (mag << (23 - s.mantissa_bits)) + (static_cast<uint32_t>(127 - s.bias) << 23);
        uint32_t value = normal;
        if constexpr (!s.has_zero) {
            if constexpr (s.bias == 127) value = mag == 0 ? 0x00400000u : normal;  // 2^-127, a float subnormal
        } else {
            // A subnormal is mag * 2^(min_exponent - mantissa_bits); mag is small, so its conversion is exact.
            const uint32_t integer = bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(mag)));
            // Zero, whose bits are 0, turns negative when the exponent is lowered.
            constexpr int32_t down = (s.mantissa_bits - s.min_exponent()) << 23;
            const uint32_t subnormal = static_cast<uint32_t>(detail::max(static_cast<int32_t>(integer) - down, 0));
            value = detail::blend(mag <= s.mantissa_mask(), subnormal, normal);
        }
        if constexpr (s.specials == special_values::ieee) {
            value = detail::blend(mag >= s.infinity_code(), detail::f32_infinity, value);
            value = detail::blend(mag > s.infinity_code(), detail::f32_quiet_nan, value);
        } else if constexpr (s.specials == special_values::fn) {
            value = detail::blend(mag == s.magnitude_mask(), detail::f32_quiet_nan, value);
        } else if constexpr (s.specials == special_values::fnuz) {
            value = detail::blend((c & s.code_mask()) == s.sign_bit(), detail::f32_quiet_nan, value);
        }
        return value | sign;
    }
}

/// The float that `code` stands for, exact for every format.
template <float_format Format> NUMFMT_FN float decode(typename Format::storage code) noexcept {
    return bit_cast<float>(decode_bits<Format>(code));
}

/// The code of `Format` for `x`: one correct rounding from any source (float, double, any integer type up to 64 bits,
/// or another numfmt format), overflow and NaN as `options` say. The sign is dropped by unsigned formats.
/// `draw` is the random word of rounding::stochastic (see core/philox.hpp) and ignored by every other rounding.
template <float_format Format, rounding R = default_rounding_v<Format>, class Source>
NUMFMT_FN typename Format::storage encode(Source x, encode_options options = {}, uint32_t draw = 0) noexcept {
    const detail::encode_plan plan = detail::plan_encode<Format>(options);
    if constexpr (detail::is_same_v<Source, float>) {
        return detail::encode_bits<Format, R, false>(bit_cast<uint32_t>(x), 0, plan, draw);
    } else if constexpr (detail::is_same_v<Source, double>) {
        return detail::encode_bits<Format, R, false>(bit_cast<uint64_t>(x), 0, plan, draw);
    } else if constexpr (detail::is_integer_v<Source>) {
        return detail::encode_bits<Format, R, false>(detail::integer_as_double_bits(x), 0, plan, draw);
    } else if constexpr (float_format<Source>) {
        return detail::encode_bits<Format, R, false>(decode_bits<Source>(x.bits()), 0, plan, draw);
    } else {
        static_assert(detail::always_false_v<Source>,
                      "numfmt::encode: the source must be float, double, an integer of at most 64 bits or a numfmt "
                      "format (long double is not supported: converting it to double first would round twice)");
    }
}

/// The code for x * 2^-scale_exponent with a single rounding: no intermediate underflow, overflow or flush, whatever
/// the exponents. This is how an element is encoded under an E8M0 scale. |scale_exponent| <= 1000.
template <float_format Format, rounding R = default_rounding_v<Format>>
NUMFMT_FN typename Format::storage encode_scaled(float x, int scale_exponent, encode_options options = {},
                                                 uint32_t draw = 0) noexcept {
    return detail::encode_bits<Format, R, true>(bit_cast<uint32_t>(x), scale_exponent,
                                                detail::plan_encode<Format>(options), draw);
}

/// decode(code) * 2^scale_exponent for formats of at most 8 bits with a zero and -127 <= scale_exponent <= 127: exact,
/// subnormal results included, +-Inf where the product exceeds the largest float.
template <float_format Format>
NUMFMT_FN float decode_scaled(typename Format::storage code, int scale_exponent) noexcept {
    constexpr float_spec s = Format::spec;
    static_assert(s.has_zero && s.min_exponent() - s.mantissa_bits - 127 >= -149,
                  "numfmt::decode_scaled: the smallest product must be a multiple of the smallest float");
    constexpr bool may_be_nonfinite = s.specials != special_values::finite;
    return bit_cast<float>(detail::scale_bits<may_be_nonfinite>(decode_bits<Format>(code), scale_exponent));
}

/// x * 2^-scale_exponent rounded to an integer and clamped to [low, high] (low <= 0 <= high, both within +-32767).
/// NaN gives 0, as the conversions of PTX do; +-Inf clamps.
template <rounding R = rounding::nearest_even>
NUMFMT_FN int round_to_integer(float x, int scale_exponent, int low, int high, uint32_t draw = 0) noexcept {
    using namespace detail;
    static_assert(!is_scale_rounding(R), "numfmt::round_to_integer: rounding::down, up and nearest_up belong to e8m0");
    const uint32_t bits = bit_cast<uint32_t>(x);
    const uint32_t magnitude = bits & f32_abs_mask;
    const significand<uint32_t> v = split<source_subnormals::normalise>(magnitude);
    const int exponent = v.exponent - scale_exponent;
    const int exact_shift = max(23 - exponent, 1);
    const uint32_t rounded = round_shift<R>(v.sig, min(exact_shift, 25), exact_shift, draw);
    uint32_t i = blend(exponent >= 15, 32768u, rounded);
    i = blend(magnitude >= f32_infinity, magnitude > f32_infinity ? 0u : 32768u, i);
    const int sign = static_cast<int>(bits) >> 31;
    return min(max((static_cast<int>(i) ^ sign) - sign, low), high);
}

/// encode() over an array: codes[i] = encode<Format, R>(x[i]) for 0 <= i < n. The arrays must not overlap.
template <float_format Format, rounding R = default_rounding_v<Format>, class Source>
NUMFMT_FN void encode(const Source* NUMFMT_RESTRICT x, int64_t n, typename Format::storage* NUMFMT_RESTRICT codes,
                      encode_options options = {}) noexcept {
    static_assert(R != rounding::stochastic,
                  "numfmt::encode: pass the draw of each element: encode<F, R>(x, options, draw)");
    for (int64_t i = 0; i < n; ++i) codes[i] = encode<Format, R>(x[i], options);
}

/// decode() over an array: y[i] = decode<Format>(codes[i]) for 0 <= i < n. The arrays must not overlap.
template <float_format Format>
NUMFMT_FN void decode(const typename Format::storage* NUMFMT_RESTRICT codes, int64_t n,
                      float* NUMFMT_RESTRICT y) noexcept {
    for (int64_t i = 0; i < n; ++i) y[i] = decode<Format>(codes[i]);
}

}  // namespace numfmt
