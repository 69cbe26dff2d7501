// SPDX-License-Identifier: MIT
// The exact sum of any doubles, and the exact dot product of floats, rounded once at the end: the reference against
// which every accumulator is measured. Host code (it keeps 68 words per sum).
#pragma once

#include "../core/bits.hpp"

namespace numfmt::accumulate {

/// A fixed-point number wide enough for every double: sums in it are exact, in any order.
/// Source: Kulisch & Snyder, "The exact dot product as basic tool for long interval arithmetic", Computing 91 (2011).
class exact_sum {
  public:
    using value_type = double;

    constexpr void add(double x) noexcept {
        const uint64_t bits = bit_cast<uint64_t>(x);
        const int field = static_cast<int>(bits >> 52 & 0x7FFu);
        uint64_t significand = bits & ((uint64_t{1} << 52) - 1u);
        const bool negative = bits >> 63 != 0;
        if (field == 0x7FF) {
            specials_ |= significand != 0 ? 4u : negative ? 2u : 1u;
            return;
        }
        // x = significand * 2^(position - 1074), position >= 0.
        if (field != 0) significand |= uint64_t{1} << 52;
        const int position = field != 0 ? field - 1 : 0;
        const int word = position / 32, shift = position % 32;
        // Three words of 32 bits hold the 53 + 31 bits.
        const uint64_t low = significand << shift, high = shift == 0 ? 0u : significand >> (64 - shift);
        const int64_t part[3] = {static_cast<int64_t>(low & 0xFFFFFFFFu), static_cast<int64_t>(low >> 32),
                                 static_cast<int64_t>(high)};
        for (int i = 0; i < 3; ++i) word_[word + i] += negative ? -part[i] : part[i];
        if (++pending_ == 1 << 30) normalise();
    }
    /// a * b, which a double holds exactly for any two floats.
    constexpr void add_product(float a, float b) noexcept { add(static_cast<double>(a) * static_cast<double>(b)); }

    constexpr void merge(const exact_sum& other) noexcept {
        exact_sum o = other;
        o.normalise();
        normalise();
        for (int i = 0; i < words; ++i) word_[i] += o.word_[i];
        specials_ |= o.specials_;
        normalise();
    }

    /// The sum rounded to the nearest double, ties to even; NaN where a NaN or Infs of both signs came in.
    constexpr double value() const noexcept { return rounded(52, 1023); }
    /// The sum rounded once to the nearest float.
    constexpr float value_as_float() const noexcept {
        return static_cast<float>(rounded(23, 127));  // already a float's value
    }

  private:
    static constexpr int words = 68;  // 2^-1074 .. 2^1024 and room for carries

    // Carries moved up: every word but the last within [0, 2^32).
    constexpr void normalise() noexcept {
        int64_t carry = 0;
        for (int i = 0; i < words - 1; ++i) {
            const int64_t w = word_[i] + carry;
            carry = w >> 32;
            word_[i] = w - carry * (int64_t{1} << 32);
        }
        word_[words - 1] += carry;
        pending_ = 0;
    }

    constexpr double rounded(int mantissa_bits, int bias) const noexcept {
        const double infinity = bit_cast<double>(uint64_t{0x7FF0000000000000u});  // also under -ffast-math
        if ((specials_ & 4u) != 0 || (specials_ & 3u) == 3u) return bit_cast<double>(uint64_t{0x7FF8000000000000u});
        if (specials_ != 0) return specials_ == 1u ? infinity : -infinity;
        exact_sum m = *this;
        m.normalise();
        const bool negative = m.word_[words - 1] < 0;
        if (negative) {
            for (int i = 0; i < words; ++i) m.word_[i] = -m.word_[i];
            m.normalise();
        }
        int top = words - 1;
        while (top >= 0 && m.word_[top] == 0) --top;
        if (top < 0) return 0;
        const int leading = 63 - numfmt::detail::countl_zero(static_cast<uint64_t>(m.word_[top])) + 32 * top;
        // The lowest bit that is kept: mantissa_bits below the leading one, or the format's smallest subnormal.
        const int smallest = 1074 - (bias - 1 + mantissa_bits);
        const int last = numfmt::detail::max(leading - mantissa_bits, smallest);
        uint64_t kept = 0;
        for (int b = leading; b >= last; --b) kept = kept << 1 | m.bit(b);
        bool sticky = false;
        for (int i = 0; i < (last - 1) / 32 && !sticky; ++i) sticky = m.word_[i] != 0;
        for (int b = numfmt::detail::max((last - 1) / 32 * 32, 0); b < last - 1 && !sticky; ++b) sticky = m.bit(b) != 0;
        const bool half = last > 0 && m.bit(last - 1) != 0;
        if (half && (sticky || (kept & 1u) != 0)) ++kept;
        // kept * 2^(last - 1074): assembled, since the power may be below the smallest normal double.
        const uint64_t implicit = uint64_t{1} << mantissa_bits;
        int exponent = last - 1074 + mantissa_bits;  // of the leading bit, if it is in place
        if (kept == implicit << 1) {
            kept >>= 1;
            ++exponent;
        }
        if (kept >= implicit && exponent > bias) return negative ? -infinity : infinity;
        double v = static_cast<double>(kept);
        int power = last - 1074 + (exponent != last - 1074 + mantissa_bits ? 1 : 0);
        while (power < -1000) {  // exact: the result is a multiple of 2^-1074
            v *= numfmt::detail::exact_pow2_double(-60);
            power += 60;
        }
        v *= numfmt::detail::exact_pow2_double(power);
        return negative ? -v : v;
    }
    constexpr unsigned bit(int b) const noexcept { return static_cast<unsigned>(word_[b / 32] >> (b % 32) & 1); }

    int64_t word_[words] = {};
    unsigned specials_ = 0;  // 1: +Inf seen, 2: -Inf, 4: NaN
    int pending_ = 0;
};

}  // namespace numfmt::accumulate
