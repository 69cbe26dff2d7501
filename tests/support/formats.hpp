// SPDX-License-Identifier: MIT
// The list of formats that the core tests iterate over, each with an independent description of it typed in from its
// specification. A new element format gets one entry here.
#pragma once

#include <cstdint>

#include <numfmt/bf16.hpp>
#include <numfmt/e8m0.hpp>
#include <numfmt/fp16.hpp>
#include <numfmt/fp4.hpp>
#include <numfmt/fp6.hpp>
#include <numfmt/fp8.hpp>

namespace numfmt_test {

enum class shape { ieee, one_nan, negative_zero_is_nan, all_finite, power_of_two };

/// What a specification says about a format: widths, bias and the special codes as literal numbers. Nothing here is
/// computed from the library's own description.
struct facts {
    const char* name;
    int sign_bits, exponent_bits, mantissa_bits, bias;
    shape kind;
    std::uint32_t largest;        ///< magnitude code of the largest finite number
    std::int32_t infinity;        ///< magnitude code of infinity, -1 where there is none
    std::uint32_t canonical_nan;  ///< what a NaN becomes by default, whatever its sign
    std::uint32_t quiet_nan;      ///< magnitude of the NaN that keeps its sign
    bool saturates;               ///< overflow saturates by default

    int bits() const { return sign_bits + exponent_bits + mantissa_bits; }
    std::uint32_t sign_code() const { return sign_bits != 0 ? 1u << (exponent_bits + mantissa_bits) : 0u; }
};

// Formats that exist only here: they show that a format is data and reach corners that the library's do not.
struct ue5m3_tag {  // 8 bits without a sign, only FF is NaN (CUTLASS's float_ue5m3)
    using storage = std::uint8_t;
    static constexpr numfmt::float_spec spec{5, 3, 15, numfmt::special_values::fn, false};
    static constexpr const char* name = "ue5m3";
};
struct e6m9_tag {  // 16 bits, IEEE-like, in no specification
    using storage = std::uint16_t;
    static constexpr numfmt::float_spec spec{6, 9, 31, numfmt::special_values::ieee};
    static constexpr const char* name = "e6m9";
};
struct e7m8_tag {  // 16 bits with exponents so low that subnormal floats matter to stochastic rounding
    using storage = std::uint16_t;
    static constexpr numfmt::float_spec spec{7, 8, 116, numfmt::special_values::ieee};
    static constexpr const char* name = "e7m8";
};
using ue5m3 = numfmt::minifloat<ue5m3_tag>;
using e6m9 = numfmt::minifloat<e6m9_tag>;
using e7m8 = numfmt::minifloat<e7m8_tag>;

// clang-format off
template <class Format> inline constexpr facts facts_of = {};
//                                                            name       S  E  M  bias  shape              largest infinity NaN     keep    saturates
template <> inline constexpr facts facts_of<numfmt::bf16>     {"bf16",     1, 8, 7,  127, shape::ieee,       0x7F7F, 0x7F80, 0x7FFF, 0x7FC0, false};
template <> inline constexpr facts facts_of<numfmt::fp16>     {"fp16",     1, 5, 10, 15,  shape::ieee,       0x7BFF, 0x7C00, 0x7FFF, 0x7E00, false};
template <> inline constexpr facts facts_of<numfmt::fp8_e4m3> {"fp8_e4m3", 1, 4, 3,  7,   shape::one_nan,    0x7E,   -1,     0x7F,   0x7F,   true};
template <> inline constexpr facts facts_of<numfmt::fp8_e5m2> {"fp8_e5m2", 1, 5, 2,  15,  shape::ieee,       0x7B,   0x7C,   0x7F,   0x7E,   true};
template <> inline constexpr facts facts_of<numfmt::fp4_e2m1> {"fp4_e2m1", 1, 2, 1,  1,   shape::all_finite, 0x7,    -1,     0x7,    0x7,    true};
template <> inline constexpr facts facts_of<numfmt::e8m0>     {"e8m0",     0, 8, 0,  127, shape::power_of_two, 0xFE, -1,     0xFF,   0xFF,   true};
template <> inline constexpr facts facts_of<numfmt::fp8_e4m3fnuz> {"fp8_e4m3fnuz", 1, 4, 3, 8,  shape::negative_zero_is_nan, 0x7F, -1, 0x80, 0x80, true};
template <> inline constexpr facts facts_of<numfmt::fp8_e5m2fnuz> {"fp8_e5m2fnuz", 1, 5, 2, 16, shape::negative_zero_is_nan, 0x7F, -1, 0x80, 0x80, true};
template <> inline constexpr facts facts_of<numfmt::fp6_e2m3> {"fp6_e2m3",     1, 2, 3, 1,  shape::all_finite, 0x1F, -1, 0x1F, 0x1F, true};
template <> inline constexpr facts facts_of<numfmt::fp6_e3m2> {"fp6_e3m2",     1, 3, 2, 3,  shape::all_finite, 0x1F, -1, 0x1F, 0x1F, true};
template <> inline constexpr facts facts_of<numfmt::fp8_ue4m3> {"fp8_ue4m3",    0, 4, 3, 7,  shape::one_nan,    0x7E, -1, 0x7F, 0x7F, true};
template <> inline constexpr facts facts_of<ue5m3>    {"ue5m3",    0, 5, 3, 15, shape::one_nan,    0xFE, -1, 0xFF, 0xFF, true};
template <> inline constexpr facts facts_of<e6m9>     {"e6m9",     1, 6, 9, 31, shape::ieee,       0x7DFF, 0x7E00, 0x7FFF, 0x7F00, false};
template <> inline constexpr facts facts_of<e7m8>     {"e7m8",     1, 7, 8, 116, shape::ieee,      0x7EFF, 0x7F00, 0x7FFF, 0x7F80, false};
// clang-format on

template <class... Formats> struct format_list {};

/// The formats that the library defines.
using library_formats = format_list<numfmt::bf16, numfmt::fp16, numfmt::fp8_e4m3, numfmt::fp8_e5m2,
                                    numfmt::fp8_e4m3fnuz, numfmt::fp8_e5m2fnuz, numfmt::fp8_ue4m3, numfmt::fp6_e2m3,
                                    numfmt::fp6_e3m2, numfmt::fp4_e2m1, numfmt::e8m0>;
/// The formats of this file.
using local_formats = format_list<ue5m3, e6m9, e7m8>;

/// fn.template operator()<Format>() for every format of the list.
template <class... Formats, class Fn> void for_each(format_list<Formats...>, Fn&& fn) {
    (fn.template operator()<Formats>(), ...);
}
template <class Fn> void for_each_format(Fn&& fn) {
    for_each(library_formats{}, fn);
    for_each(local_formats{}, fn);
}

/// fn.template operator()<R>() for every rounding that Format has.
template <class Format, class Fn> void for_each_rounding(Fn&& fn) {
    using enum numfmt::rounding;
    if constexpr (facts_of<Format>.kind == shape::power_of_two) {
        fn.template operator()<down>();
        fn.template operator()<up>();
        fn.template operator()<nearest_up>();
        fn.template operator()<toward_zero>();
    } else {
        fn.template operator()<nearest_even>();
        fn.template operator()<nearest_away>();
        fn.template operator()<nearest_to_zero>();
        fn.template operator()<toward_zero>();
        fn.template operator()<stochastic>();
    }
}

}  // namespace numfmt_test
