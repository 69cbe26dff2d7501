// SPDX-License-Identifier: MIT
// The formats that the tests iterate over: those of the library and a few that exist only here, each with what
// tests/golden/formats says about it.
#pragma once

#include <cstdint>

#include <numfmt/numfmt.hpp>

#include "format_facts.hpp"
#include "roundings.hpp"

namespace numfmt_test {

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

template <class... Formats> using format_list = numfmt::type_list<Formats...>;

/// The formats that the library defines.
using library_formats = numfmt::all_formats;
/// The formats of this file.
using local_formats = format_list<ue5m3, e6m9, e7m8>;

/// The golden file of a format, read once. Throws if there is none.
template <class Format> const golden_format& golden_of() {
    static const golden_format golden(Format::name);
    return golden;
}
template <class Format> const facts& facts_of() { return golden_of<Format>().facts; }

/// fn.template operator()<Format>() for every format of the library and of this file.
template <class Fn> void for_each_format(Fn&& fn) {
    numfmt::for_each(library_formats{}, fn);
    numfmt::for_each(local_formats{}, fn);
}

}  // namespace numfmt_test
