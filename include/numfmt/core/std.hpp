// SPDX-License-Identifier: MIT
// Opt-in glue to the standard library: stream output, hashing, std::format and the names of the policies. Kept out of
// the other headers so that nobody pays for <ostream> who does not print.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <version>
#if defined(__cpp_lib_format)
#include <format>
#endif

#include "minifloat.hpp"
#include "status.hpp"

namespace numfmt {
namespace detail {

template <class Enum> struct named_value {
    Enum value;
    std::string_view name;
};

/// `table` lists every enumerator of Enum with its name. Specialised for the policies; there is none for other types.
template <class Enum> struct enum_names;

// The name is the enumerator, typed once.
#define NUMFMT_DETAIL_NAMED(value) {enum_type::value, #value}
template <> struct enum_names<rounding> {
    using enum_type = rounding;
    static constexpr named_value<rounding> table[] = {
        NUMFMT_DETAIL_NAMED(nearest_even), NUMFMT_DETAIL_NAMED(nearest_away), NUMFMT_DETAIL_NAMED(nearest_to_zero),
        NUMFMT_DETAIL_NAMED(toward_zero),  NUMFMT_DETAIL_NAMED(stochastic),   NUMFMT_DETAIL_NAMED(down),
        NUMFMT_DETAIL_NAMED(up),           NUMFMT_DETAIL_NAMED(nearest_up)};
};
template <> struct enum_names<overflow> {
    using enum_type = overflow;
    static constexpr named_value<overflow> table[] = {NUMFMT_DETAIL_NAMED(by_format), NUMFMT_DETAIL_NAMED(saturate),
                                                      NUMFMT_DETAIL_NAMED(to_nonfinite),
                                                      NUMFMT_DETAIL_NAMED(saturate_finite)};
};
template <> struct enum_names<nan_mode> {
    using enum_type = nan_mode;
    static constexpr named_value<nan_mode> table[] = {NUMFMT_DETAIL_NAMED(canonical), NUMFMT_DETAIL_NAMED(keep_sign),
                                                      NUMFMT_DETAIL_NAMED(canonical_signed)};
};
template <> struct enum_names<scale_rule> {
    using enum_type = scale_rule;
    static constexpr named_value<scale_rule> table[] = {NUMFMT_DETAIL_NAMED(floor), NUMFMT_DETAIL_NAMED(ceil),
                                                        NUMFMT_DETAIL_NAMED(round_up), NUMFMT_DETAIL_NAMED(even)};
};
template <> struct enum_names<nonfinite> {
    using enum_type = nonfinite;
    static constexpr named_value<nonfinite> table[] = {NUMFMT_DETAIL_NAMED(propagate), NUMFMT_DETAIL_NAMED(saturate)};
};
template <> struct enum_names<int4_range> {
    using enum_type = int4_range;
    static constexpr named_value<int4_range> table[] = {NUMFMT_DETAIL_NAMED(include_zero), NUMFMT_DETAIL_NAMED(minmax)};
};
template <> struct enum_names<int4_symmetric_range> {
    using enum_type = int4_symmetric_range;
    static constexpr named_value<int4_symmetric_range> table[] = {
        NUMFMT_DETAIL_NAMED(within_7), NUMFMT_DETAIL_NAMED(full_range), NUMFMT_DETAIL_NAMED(no_clipping)};
};
template <> struct enum_names<scale_division> {
    using enum_type = scale_division;
    static constexpr named_value<scale_division> table[] = {NUMFMT_DETAIL_NAMED(reciprocal),
                                                            NUMFMT_DETAIL_NAMED(divide)};
};
template <> struct enum_names<nvfp4_order> {
    using enum_type = nvfp4_order;
    static constexpr named_value<nvfp4_order> table[] = {NUMFMT_DETAIL_NAMED(transformer_engine),
                                                         NUMFMT_DETAIL_NAMED(torchao)};
};
#undef NUMFMT_DETAIL_NAMED

template <class Enum>
concept named_enum = requires { enum_names<Enum>::table; };

}  // namespace detail

/// The enumerator's name, as `from_string` reads it: "nearest_even". "unknown" for a value that is no enumerator.
/// For every enumeration of core/policy.hpp.
template <detail::named_enum Enum> constexpr std::string_view enum_name(Enum value) noexcept {
    for (const auto& entry : detail::enum_names<Enum>::table) {
        if (entry.value == value) return entry.name;
    }
    return "unknown";
}

/// Sets `value` to the enumerator that `text` names exactly (case included, no spaces) and returns true; returns false
/// and leaves `value` alone where there is none.
template <detail::named_enum Enum> constexpr bool from_string(std::string_view text, Enum& value) noexcept {
    for (const auto& entry : detail::enum_names<Enum>::table) {
        if (entry.name == text) {
            value = entry.value;
            return true;
        }
    }
    return false;
}

template <detail::named_enum Enum> std::ostream& operator<<(std::ostream& os, Enum value) {
    return os << enum_name(value);
}

/// The text of message(): "code_stride is too small (got 3, wanted at least 16)", "ok" for success.
inline std::string to_string(const status& s) {
    std::string text(message(s, nullptr, 0), '\0');
    message(s, text.data(), text.size() + 1);  // the terminator goes where std::string keeps its own
    return text;
}

inline std::ostream& operator<<(std::ostream& os, const status& s) { return os << to_string(s); }
inline std::ostream& operator<<(std::ostream& os, status_code code) { return os << describe(code); }

/// Prints the value as a float under the stream's flags; every NaN prints as "nan".
template <class Char, class Traits, class Tag>
std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& os, minifloat<Tag> x) {
    if (is_nan(x)) return os << "nan";
    return os << static_cast<float>(x);
}

}  // namespace numfmt

/// Equal values hash equal: -0 and +0 included. NaN, equal to nothing, hashes by its code.
template <class Tag> struct std::hash<numfmt::minifloat<Tag>> {
    std::size_t operator()(numfmt::minifloat<Tag> x) const noexcept {
        constexpr bool two_zeros = Tag::spec.has_negative_zero();
        const std::uint32_t code = x.bits();
        return std::hash<std::uint32_t>{}(two_zeros && code == Tag::spec.sign_bit() ? 0u : code);
    }
};

#if defined(__cpp_lib_format)
/// The format specification of float: std::format("{:.3f}", x). Every NaN prints as "nan".
template <class Tag, class Char> struct std::formatter<numfmt::minifloat<Tag>, Char> : std::formatter<float, Char> {
    template <class Context> auto format(numfmt::minifloat<Tag> x, Context& context) const {
        const float value = is_nan(x) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(x);
        return std::formatter<float, Char>::format(value, context);
    }
};
#endif
