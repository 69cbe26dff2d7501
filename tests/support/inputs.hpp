// SPDX-License-Identifier: MIT
// Inputs that a conversion to a given format is most likely to get wrong: every value and every midpoint with its
// neighbours in the source type, all exponents with boundary mantissas, and random numbers.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <numfmt/core/philox.hpp>

#include "oracle.hpp"

namespace numfmt_test {

/// A deterministic stream of 64-bit words.
class random_stream {
  public:
    explicit random_stream(std::uint64_t seed) : seed_(seed) {}
    std::uint32_t word() { return numfmt::random_word(seed_, index_++); }
    std::uint64_t wide() {
        const std::uint64_t high = word();
        return high << 32 | word();
    }
    /// Uniform in [0, n).
    std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((std::uint64_t{word()} * n) >> 32); }
    /// Uniform in [0, 1), 32 bits.
    double unit() { return static_cast<double>(word()) / 4294967296.0; }

  private:
    std::uint64_t seed_;
    std::uint64_t index_ = 0;
};

template <class Float> using bits_of = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

/// Zeros, subnormals, infinities, NaNs (quiet, signalling, payload in the lowest bit alone) and, for every exponent,
/// mantissas around the places where a carry starts; both signs.
template <class Float> std::vector<Float> every_exponent() {
    using bits = bits_of<Float>;
    constexpr int mantissa = std::numeric_limits<Float>::digits - 1;
    constexpr bits one = bits{1} << mantissa, half = one / 2, sign = bits{1} << (sizeof(bits) * 8 - 1);
    const bits mantissas[] = {0, 1, 2, half - 1, half, half + 1, one - 2, one - 1};
    std::vector<Float> v;
    for (bits exponent = 0; exponent < sign / one; ++exponent) {
        for (const bits m : mantissas) {
            for (const bits s : {bits{0}, sign})
                v.push_back(std::bit_cast<Float>(static_cast<bits>(exponent * one | m | s)));
        }
    }
    return v;
}

/// Every value of the format and every midpoint (the would-be value above the largest included), each with its two
/// neighbours in Float and with two points close to it that a detour through a narrower type would round onto it.
template <class Float> std::vector<Float> boundaries(const oracle& o) {
    std::vector<Float> v;
    const auto add = [&](double exact) {
        const Float x = static_cast<Float>(exact);
        if (!std::isfinite(x)) return;
        const Float top = std::numeric_limits<Float>::infinity();
        for (const Float y : {x, std::nextafter(x, top), std::nextafter(x, Float{0}),
                              static_cast<Float>(exact * (1 + 0x1p-14)), static_cast<Float>(exact * (1 - 0x1p-22))}) {
            v.push_back(y);
            v.push_back(-y);
        }
    };
    const std::vector<double>& t = o.values();
    for (std::size_t c = 0; c + 1 < t.size(); ++c) {
        add(t[c]);
        add(t[c] + (t[c + 1] - t[c]) / 2);
    }
    add(t.back());
    add(t.back() * 1.5);
    return v;
}

/// `count` random bit patterns and `count` random points of the format's range.
template <class Float> std::vector<Float> random_floats(const oracle& o, std::uint64_t seed, std::uint32_t count) {
    random_stream r(seed);
    std::vector<Float> v;
    const std::vector<double>& t = o.values();
    for (std::uint32_t i = 0; i < count; ++i) {
        v.push_back(std::bit_cast<Float>(static_cast<bits_of<Float>>(r.wide())));
        const std::uint32_t c = r.below(static_cast<std::uint32_t>(t.size()) - 1);
        const double x = t[c] + (t[c + 1] - t[c]) * (static_cast<double>(r.wide() >> 11) * 0x1p-53);
        v.push_back(static_cast<Float>((r.word() & 1u) != 0 ? -x : x));
    }
    return v;
}

/// Integers of every width: powers of two with a second and a third bit anywhere, neighbours, limits, random ones.
template <class Int> std::vector<Int> integers(std::uint64_t seed, std::uint32_t count) {
    std::vector<Int> v;
    const auto add = [&](std::uint64_t magnitude) {
        v.push_back(static_cast<Int>(magnitude));
        if constexpr (std::is_signed_v<Int>) v.push_back(static_cast<Int>(std::uint64_t{0} - magnitude));
    };
    add(0);
    constexpr int width = std::numeric_limits<Int>::digits;
    for (int a = 0; a < width; ++a) {
        for (int b = 0; b <= a; ++b) {
            const std::uint64_t m = (std::uint64_t{1} << a) | (std::uint64_t{1} << b);
            for (const std::uint64_t low : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}}) {
                add(m | low);
                add(m - low);
            }
            for (int c = 1; c < b; c += 3) add(m | std::uint64_t{1} << c);
        }
    }
    v.push_back(std::numeric_limits<Int>::max());
    v.push_back(std::numeric_limits<Int>::min());
    random_stream r(seed);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t shift = r.below(static_cast<std::uint32_t>(width));
        v.push_back(static_cast<Int>(r.wide() >> shift));
    }
    return v;
}

}  // namespace numfmt_test
