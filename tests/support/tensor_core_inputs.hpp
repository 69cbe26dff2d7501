// SPDX-License-Identifier: MIT
// Classes of inputs for dot products on tensor cores, made from a seed with integers alone: the same on host and
// device. Every element is a function of (seed, tile, side, row, k), so that the tiles of a test need not be stored.
#pragma once

#include <cstdint>

#include <numfmt/core/float_spec.hpp>

namespace numfmt_test {

/// What the dot products of a class are like. All but `positive` have random signs; C is 0 in a quarter of them.
enum class input_class : std::uint8_t {
    random,      ///< exponents within a few of 0
    wide,        ///< exponents over 48 binades, as far as the format goes
    positive,    ///< all terms of one sign
    cancelling,  ///< neighbours cancel, exactly or up to their last bits
    ladder,      ///< one or two large products (that may cancel), the others around the last bit that is kept
    subnormal,   ///< half of A's numbers are subnormal
    tiny,        ///< products and C around the smallest numbers of the output
    huge,        ///< products and C around the largest
    special,     ///< a few Inf, NaN and many zeros
    sparse,      ///< three of four products are zero
};
inline constexpr int input_classes = 10;
inline constexpr const char* input_class_names[input_classes] = {
    "random", "wide", "positive", "cancelling", "ladder", "subnormal", "tiny", "huge", "special", "sparse"};

/// Where a dot product's numbers come from. `fraction_bits` is how many bits the ladder should straddle,
/// `special_every` one in how many elements is Inf or NaN in the class `special`.
struct input_source {
    std::uint64_t seed;
    input_class kind;
    int fraction_bits;
    int special_every;
    int k_of_group;  ///< the ladder's large products are placed within the first so many
};

namespace detail {

NUMFMT_FN std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBu;
    return x ^ x >> 31;
}
NUMFMT_FN std::uint64_t draw(const input_source& s, std::uint64_t what, std::uint64_t tile, std::uint64_t row,
                             std::uint64_t k) {
    std::uint64_t h = mix(s.seed + 0x9E3779B97F4A7C15u * (static_cast<std::uint64_t>(s.kind) + 1));
    h = mix(h ^ (tile << 32 | row << 4 | what));
    return mix(h + 0x9E3779B97F4A7C15u * (k + 1));
}
// low .. high from 16 bits of a draw.
NUMFMT_FN int between(std::uint64_t bits, int low, int high) {
    return low + static_cast<int>((bits & 0xFFFFu) * static_cast<std::uint64_t>(high - low + 1) >> 16);
}

/// +-(1.mantissa) * 2^e in the format, as near as it has it; the largest number beyond, subnormal or 0 below.
NUMFMT_FN std::uint32_t make_code(const numfmt::float_spec& s, bool negative, int e, std::uint32_t mantissa) {
    const std::uint32_t m = mantissa & s.mantissa_mask();
    std::uint32_t code = 0;
    if (e > s.max_exponent()) {
        code = s.max_finite_code();
    } else if (e >= s.min_exponent()) {
        code = (static_cast<std::uint32_t>(e + s.bias) << s.mantissa_bits) | m;
        code = code < s.max_finite_code() ? code : s.max_finite_code();
    } else {
        const int down = s.min_exponent() - e;
        code = down < 32 ? (m | (s.mantissa_mask() + 1u)) >> down : 0u;
    }
    return negative ? code | s.sign_bit() : code;
}
NUMFMT_FN numfmt::float_spec fp32_spec() {
    return {.exponent_bits = 8, .mantissa_bits = 23, .bias = 127, .specials = numfmt::special_values::ieee};
}
NUMFMT_FN numfmt::float_spec fp16_spec() {
    return {.exponent_bits = 5, .mantissa_bits = 10, .bias = 15, .specials = numfmt::special_values::ieee};
}

}  // namespace detail

/// The code of element k of a row of A (side 0) or of B (side 1).
NUMFMT_FN std::uint32_t input_element(const input_source& s, const numfmt::float_spec& f, int side, std::uint64_t tile,
                                      std::uint64_t row, std::uint64_t k) {
    using namespace detail;
    const auto what = static_cast<std::uint64_t>(side);
    const std::uint64_t h = draw(s, what, tile, row, k);
    const bool negative = (h >> 63) != 0;
    const std::uint32_t mantissa = static_cast<std::uint32_t>(h >> 20);
    const int lo = f.min_exponent(), hi = f.max_exponent();
    const bool large_range = hi > 100;
    const auto make = [&](int e) { return make_code(f, negative, e, mantissa); };
    const auto clamp = [](int e, int a, int b) { return e < a ? a : e > b ? b : e; };
    switch (s.kind) {
        case input_class::random:
            return make(between(h, -3, 3));
        case input_class::wide:
            return make(between(h, clamp(-24, lo - f.mantissa_bits, hi), clamp(24, lo, hi)));
        case input_class::positive:
            return make_code(f, false, between(h, -2, 1), mantissa);
        case input_class::cancelling: {
            // A repeats every second number; B repeats it with the other sign and, half the time, another last bit.
            const std::uint64_t first = draw(s, what, tile, row, k & ~std::uint64_t{1});
            const std::uint32_t code =
                make_code(f, (first >> 63) != 0, between(first, -4, 3), static_cast<std::uint32_t>(first >> 20));
            if ((k & 1u) == 0) return code;
            const std::uint32_t other = (h & 1u) != 0 && (code & f.magnitude_mask()) > 0 ? 1u : 0u;
            return side == 0 ? code : (code ^ f.sign_bit()) ^ other;
        }
        case input_class::ladder: {
            const std::uint64_t place = draw(s, 8, tile, 0, 0);
            const auto group = static_cast<std::uint64_t>(s.k_of_group);
            const std::uint64_t first = place % group, second = (place >> 16) % group;
            const int top = s.fraction_bits <= 13 ? 4 : hi < 12 ? hi - 1 : 8;  // of one factor of a large product
            const bool paired = (place & 0x80000000u) != 0;
            if (k == first || (k == second && paired)) {
                const std::uint64_t same = draw(s, what, tile, row, 1 << 30);
                const bool flip = k != first && side == 1;  // the second cancels the first
                return make_code(f, ((same >> 63) != 0) != flip, top, static_cast<std::uint32_t>(same >> 20));
            }
            const int sum = 2 * top - s.fraction_bits, mine = side == 0 ? sum / 2 : sum - sum / 2;
            return make(mine + between(h, -2, 2));
        }
        case input_class::subnormal: {
            if (side == 0 && (h >> 16 & 1u) != 0)
                return make_code(f, negative, lo - 1 - between(h, 0, f.mantissa_bits), mantissa);
            if (side == 0) return make(lo + between(h, 0, 3));
            return make(large_range ? between(h, 100, 127) : between(h, 0, hi < 8 ? hi : 8));
        }
        case input_class::tiny:
            if (!large_range) return make(lo - between(h, -2, f.mantissa_bits + 1));
            // Products around 2^-152 .. 2^-116, those of a tile within ten binades.
            return side == 0 ? make(-70 + between(h, -3, 2))
                             : make(between(draw(s, 8, tile, 0, 1), -82, -48) + between(h, -3, 2));
        case input_class::huge:
            if (!large_range) return make(hi - between(h, 0, 2));
            return (h >> 16 & 7u) == 0 ? make(between(h, 100, 127)) : make(between(h, 60, 64));
        case input_class::special: {
            const std::uint64_t pick = (h >> 40 & 0xFFFFu) % static_cast<std::uint64_t>(s.special_every);
            if (pick == 0 && f.has_infinity()) return f.infinity_code() | (negative ? f.sign_bit() : 0u);
            if (pick == 1 && f.has_nan() && (h >> 57 & 1u) != 0)
                return f.quiet_nan_code() | (negative ? f.sign_bit() : 0u);
            if ((h >> 16 & 3u) == 0) return negative ? f.sign_bit() : 0u;
            return make(between(h, -3, 3));
        }
        default:
            if ((h >> 16 & 1u) != 0) return negative ? f.sign_bit() : 0u;  // a product is zero in 3 of 4
            return make(between(h, clamp(-10, lo, hi), clamp(10, lo, hi)));
    }
}

/// The bits of C at (row, col), of a float or of an fp16 number.
NUMFMT_FN std::uint32_t input_addend(const input_source& s, const numfmt::float_spec& f, bool fp16, std::uint64_t tile,
                                     std::uint64_t row, std::uint64_t col) {
    using namespace detail;
    const std::uint64_t h = draw(s, 2, tile, row << 3 | col, 0);
    const numfmt::float_spec c = fp16 ? fp16_spec() : fp32_spec();
    const bool negative = (h >> 63) != 0;
    const std::uint32_t mantissa = static_cast<std::uint32_t>(h >> 20);
    if ((h >> 16 & 3u) == 0) return negative ? c.sign_bit() : 0u;
    const auto make = [&](int e) { return make_code(c, negative, e, mantissa); };
    const bool large_range = f.max_exponent() > 100;
    switch (s.kind) {
        case input_class::random:
            return make(between(h, -8, 8));
        case input_class::wide:
            return make(between(h, -40, 40));
        case input_class::positive:
            return make_code(c, false, between(h, -4, 12), mantissa);
        case input_class::cancelling:
            return make(between(h, -30, 4));
        case input_class::ladder: {
            const int hi = f.max_exponent(), top = 2 * (s.fraction_bits <= 13 ? 4 : hi < 12 ? hi - 1 : 8);
            return (h >> 18 & 1u) != 0 ? make(top + between(h, -3, 3))
                                       : make(top - s.fraction_bits + between(h, -4, 3));
        }
        case input_class::subnormal:
            return make(large_range ? between(h, -149, 0) : f.min_exponent() + between(h, -24, 8));
        case input_class::tiny:
            if (fp16) return make(between(h, -25, -12));
            if (!large_range) return make(2 * f.min_exponent() + between(h, -24, 4));
            return make(between(h, -150, -112));
        case input_class::huge:
            if (fp16) return make(between(h, 12, 15));
            return make(large_range ? between(h, 120, 127) : 2 * f.max_exponent() + between(h, -2, 12));
        case input_class::special:
            if ((h >> 18 & 15u) == 0) return c.infinity_code() | (negative ? c.sign_bit() : 0u);
            if ((h >> 18 & 31u) == 1) return c.quiet_nan_code() | (negative ? c.sign_bit() : 0u);
            return make(between(h, -8, 8));
        default:
            return make(between(h, -30, 10));
    }
}

}  // namespace numfmt_test
