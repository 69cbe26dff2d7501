// SPDX-License-Identifier: MIT
// An independent answer to "which code is x?": an exact search for the neighbours of x in the table of all values of
// a format. Nothing is taken from the codec; comparisons are exact because every value and every midpoint of a format
// of at most 16 bits is a double. Needs IEEE arithmetic: never include it in a unit built with -ffast-math.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <vector>

#include "formats.hpp"

namespace numfmt_test {

/// A number to encode, exactly: a double, or an integer of up to 64 bits and a sign.
struct real {
    bool nan = false;
    bool infinite = false;
    bool negative = false;
    bool integer = false;
    double magnitude = 0;       // where !integer
    std::uint64_t natural = 0;  // where integer

    /// Sign of |this| - y, exact, for finite numbers and y >= 0.
    int compare(double y) const {
        if (!integer) return magnitude < y ? -1 : magnitude > y ? 1 : 0;
        if (y >= 18446744073709551616.0) return -1;
        const std::uint64_t whole = static_cast<std::uint64_t>(y);
        if (natural != whole) return natural < whole ? -1 : 1;
        return static_cast<double>(whole) < y ? -1 : 0;  // a double below 2^64 with a fraction is below 2^53
    }

    /// |this| - y in units of `step`, exact but for integers of more than 53 bits, whose lowest eleven are dropped;
    /// for y <= |this| <= y + step, y and step values of a 16-bit format.
    double steps_above(double y, double step) const {
        if (!integer) return (magnitude - y) / step;  // Sterbenz, and step is a power of two
        if (natural < (std::uint64_t{1} << 53)) return (static_cast<double>(natural) - y) / step;
        const std::uint64_t rest = natural - static_cast<std::uint64_t>(y);
        return static_cast<double>(rest >> 11 << 11) / step;  // truncated to 53 bits, so that a floor stays the floor
    }
};

inline real real_of(double x) {
    real r;
    r.nan = std::isnan(x);
    r.infinite = std::isinf(x);
    r.negative = std::signbit(x);
    r.magnitude = std::fabs(x);
    return r;
}
inline real real_of(float x) { return real_of(static_cast<double>(x)); }
template <std::integral Int> real real_of(Int x) {
    real r;
    r.integer = true;
    if constexpr (std::is_signed_v<Int>) r.negative = x < 0;
    r.natural = r.negative ? std::uint64_t{0} - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
    return r;
}

class oracle {
  public:
    explicit oracle(const facts& f) : facts_(f) {
        // The last entry is the value that would follow the largest one, were the exponent wider: overflow is decided
        // by rounding as if it existed.
        for (std::uint32_t c = 0; c <= f.largest + 1; ++c) values_.push_back(value_by_fields(c));
    }

    const facts& format() const { return facts_; }
    std::uint32_t codes() const { return 1u << facts_.bits(); }

    /// Values of the magnitude codes 0, 1, ..., largest, and the would-be next one.
    const std::vector<double>& values() const { return values_; }

    bool is_nan(std::uint32_t code) const {
        const std::uint32_t magnitude = code & (facts_.sign_code() - 1u);
        switch (facts_.kind) {
            case shape::ieee:
                return magnitude > static_cast<std::uint32_t>(facts_.infinity);
            case shape::one_nan:
            case shape::power_of_two:
                return (facts_.sign_bits != 0 ? magnitude : code) == facts_.quiet_nan;
            case shape::negative_zero_is_nan:
                return code == facts_.sign_code();
            case shape::all_finite:
                return false;
        }
        return false;
    }
    bool is_infinite(std::uint32_t code) const {
        return facts_.infinity >= 0 &&
               (code & (facts_.sign_code() - 1u)) == static_cast<std::uint32_t>(facts_.infinity);
    }

    /// The value of a code, NaN where it has none.
    double decode(std::uint32_t code) const {
        const bool negative = (code & facts_.sign_code()) != 0;
        const std::uint32_t magnitude = code & ~facts_.sign_code();
        double v = is_nan(code) ? std::nan("") : is_infinite(code) ? HUGE_VAL : values_[magnitude];
        return negative ? -v : v;
    }

    /// `code` as a number to encode, its NaN sign included.
    real source(std::uint32_t code) const {
        real r = real_of(decode(code));
        r.negative = (code & facts_.sign_code()) != 0;
        return r;
    }

    /// The magnitude code of finite |x| before the overflow rule; largest + 1 stands for overflow.
    std::uint32_t round(const real& x, numfmt::rounding mode, std::uint32_t draw) const {
        using enum numfmt::rounding;
        const bool directed = mode == toward_zero || mode == down;
        const std::uint32_t next = facts_.largest + 1;
        // First value above |x|.
        const auto above =
            std::partition_point(values_.begin(), values_.end(), [&](double v) { return x.compare(v) >= 0; });
        if (above == values_.end()) return directed ? facts_.largest : next;
        if (above == values_.begin()) return 0;  // only a format without zero
        const std::uint32_t hi = static_cast<std::uint32_t>(above - values_.begin());
        const std::uint32_t lo = hi - 1;
        if (x.compare(values_[lo]) == 0 || directed) return lo;
        if (mode == up) return hi;
        const double step = values_[hi] - values_[lo];
        if (mode == stochastic) {
            return static_cast<double>(draw) < std::floor(x.steps_above(values_[lo], step) * 4294967296.0) ? hi : lo;
        }
        const int side = x.compare(values_[lo] + step / 2);
        if (side != 0) return side < 0 ? lo : hi;
        switch (mode) {
            case nearest_even:
                return lo % 2 == 0 ? lo : hi;
            case nearest_to_zero:
                return lo;
            default:
                return hi;  // nearest_away, nearest_up
        }
    }

    /// The fraction of stochastic rounding, in units of 2^-32: rounds away from zero for draws below it.
    std::uint64_t stochastic_threshold(const real& x) const {
        const auto above =
            std::partition_point(values_.begin(), values_.end(), [&](double v) { return x.compare(v) >= 0; });
        if (x.nan || x.infinite || above == values_.end() || above == values_.begin()) return 0;
        const double lo = *(above - 1);
        return static_cast<std::uint64_t>(std::floor(x.steps_above(lo, *above - lo) * 4294967296.0));
    }

    /// The code of x whose rounded magnitude is `rounded`.
    std::uint32_t finish(const real& x, std::uint32_t rounded, const numfmt::encode_options& options) const {
        using numfmt::nan_mode;
        using numfmt::overflow;
        const std::uint32_t sign = x.negative ? facts_.sign_code() : 0u;
        if (x.nan) {
            if (options.nan == nan_mode::keep_sign) return facts_.quiet_nan | sign;
            return facts_.canonical_nan | (options.nan == nan_mode::canonical_signed ? sign : 0u);
        }
        if (x.infinite || rounded > facts_.largest) {
            overflow over = options.overflow;
            if (over == overflow::by_format) over = facts_.saturates ? overflow::saturate : overflow::to_nonfinite;
            const bool saturates = over == overflow::saturate || (over == overflow::saturate_finite && !x.infinite);
            if (saturates || facts_.kind == shape::all_finite) return facts_.largest | sign;
            if (facts_.infinity >= 0) return static_cast<std::uint32_t>(facts_.infinity) | sign;
            return facts_.canonical_nan | sign;
        }
        const bool positive_zero = facts_.kind == shape::negative_zero_is_nan || options.drop_negative_zero;
        return rounded == 0 && positive_zero ? 0 : rounded | sign;
    }

    std::uint32_t encode(const real& x, numfmt::rounding mode, numfmt::encode_options options = {},
                         std::uint32_t draw = 0) const {
        const std::uint32_t rounded = x.nan || x.infinite ? 0u : round(x, mode, draw);
        return finish(x, rounded, options);
    }

  private:
    double value_by_fields(std::uint32_t magnitude) const {
        const std::uint32_t scale = 1u << facts_.mantissa_bits;
        const int exponent = static_cast<int>(magnitude / scale);
        const std::uint32_t fraction = magnitude % scale;
        if (facts_.kind == shape::power_of_two) return std::ldexp(1.0, exponent - facts_.bias);
        if (exponent == 0) return std::ldexp(static_cast<double>(fraction), 1 - facts_.bias - facts_.mantissa_bits);
        return std::ldexp(static_cast<double>(scale + fraction), exponent - facts_.bias - facts_.mantissa_bits);
    }

    facts facts_;
    std::vector<double> values_;
};

/// The oracle of a format, built once.
template <class Format> const oracle& oracle_of() {
    static const oracle o(facts_of<Format>());
    return o;
}

/// The default and every choice of each option. Overflow and NaN rules act on different inputs, so that their pairs
/// need no more than this.
inline const std::vector<numfmt::encode_options>& all_options() {
    using numfmt::nan_mode;
    using numfmt::overflow;
    static const std::vector<numfmt::encode_options> v = {{},
                                                          {overflow::saturate, nan_mode::canonical},
                                                          {overflow::to_nonfinite, nan_mode::keep_sign},
                                                          {overflow::saturate_finite, nan_mode::canonical_signed},
                                                          {overflow::by_format, nan_mode::canonical, true}};
    return v;
}

}  // namespace numfmt_test
