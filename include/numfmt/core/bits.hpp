// SPDX-License-Identifier: MIT
// Bit tricks: the only place for them. Everything is constexpr, works on the device, and never touches the
// floating-point environment.
#pragma once

#include "config.hpp"

namespace numfmt {

/// The object representation of `from` as a `To` of the same size. `std::bit_cast` is not usable in device code
/// without an experimental compiler flag; the builtin behind it is.
template <class To, class From> NUMFMT_FN To bit_cast(const From& from) noexcept {
    static_assert(sizeof(To) == sizeof(From), "numfmt::bit_cast: both types must have the same size");
    return __builtin_bit_cast(To, from);
}

namespace detail {

/// Number of leading zero bits of `x`, 32 or 64 for zero. Branch-free halving: constexpr and device without builtins.
template <class UInt> NUMFMT_FN int countl_zero(UInt x) noexcept {
    int n = static_cast<int>(sizeof(UInt) * 8);
    for (int s = n / 2; s > 0; s /= 2) {
        const bool high = (x >> s) != 0;
        n = high ? n - s : n;
        x = high ? static_cast<UInt>(x >> s) : x;
    }
    return x != 0 ? n - 1 : n;
}

/// 2^k as a float, exact for -149 <= k <= 127 (subnormals included).
NUMFMT_FN float exact_pow2(int k) noexcept {
    return bit_cast<float>(k >= -126 ? static_cast<uint32_t>(k + 127) << 23 : 1u << (k + 149));
}

/// 2^k as a double, exact for -1022 <= k <= 1023.
NUMFMT_FN double exact_pow2_double(int k) noexcept { return bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52); }

/// ceil(a / b) for a >= 0, b > 0, without overflow for any pair.
NUMFMT_FN int64_t ceil_div(int64_t a, int64_t b) noexcept { return a / b + (a % b != 0 ? 1 : 0); }

template <class T> NUMFMT_FN T min(T a, T b) noexcept { return b < a ? b : a; }
template <class T> NUMFMT_FN T max(T a, T b) noexcept { return a < b ? b : a; }

/// condition ? a : b by a mask: gcc 12 turns some chains of ?: into jumps and then leaves the loop around them scalar.
NUMFMT_FN uint32_t blend(bool condition, uint32_t a, uint32_t b) noexcept {
    return b ^ ((a ^ b) & (0u - static_cast<uint32_t>(condition)));
}

inline constexpr int64_t int64_max = 0x7FFFFFFFFFFFFFFF;

// Bits of the IEEE binary32 format.
inline constexpr uint32_t f32_abs_mask = 0x7FFFFFFFu;
inline constexpr uint32_t f32_infinity = 0x7F800000u;
inline constexpr uint32_t f32_min_normal = 0x00800000u;
inline constexpr uint32_t f32_quiet_nan = 0x7FC00000u;

/// True for NaN, read from the bits: holds under -ffast-math, where `x != x` is folded away.
NUMFMT_FN bool is_nan(float x) noexcept { return (bit_cast<uint32_t>(x) & f32_abs_mask) > f32_infinity; }
NUMFMT_FN bool is_finite(float x) noexcept { return (bit_cast<uint32_t>(x) & f32_abs_mask) < f32_infinity; }

}  // namespace detail
}  // namespace numfmt
