// SPDX-License-Identifier: MIT
// The value type over a format: a code with conversions, comparisons and numeric_limits.
#pragma once

#include "codec.hpp"

namespace numfmt {

/// A number in the format that `Tag` describes (`Tag::storage`, `Tag::spec`, `Tag::name`). It has the size of its
/// storage, is trivially copyable, and holds any code, the unused high bits of the storage being zero.
///
/// Converting to float is implicit and exact. Converting from float, double or an integer is explicit and rounds once
/// (nearest even; E8M0: down) with the format's default overflow and NaN rules; use encode() for the other policies.
/// Between formats: implicit where every value of the source exists in the target, explicit otherwise.
template <class Tag> class minifloat {
  public:
    using tag = Tag;
    using storage = typename Tag::storage;
    static constexpr float_spec spec = Tag::spec;
    static constexpr const char* name = Tag::name;
    static_assert(spec.bits() <= static_cast<int>(sizeof(storage) * 8), "the storage must hold the format's bits");

    minifloat() = default;

    template <class Source>
        requires(detail::is_one_of_v<Source, float, double> || detail::is_integer_v<Source>)
    NUMFMT_FN explicit minifloat(Source x) noexcept : bits_(encode<minifloat>(x)) {}

    /// Deleted: a long double would be rounded to double first and then once more.
    NUMFMT_HD explicit minifloat(long double) = delete;

    template <class Other>
    NUMFMT_FN explicit(!represents_all(Other::spec, Tag::spec)) minifloat(minifloat<Other> x) noexcept
        : bits_(encode<minifloat>(x)) {}

    /// The number whose code is `code`; bits above the format's width are dropped.
    static NUMFMT_FN minifloat from_bits(storage code) noexcept {
        minifloat r{};
        r.bits_ = static_cast<storage>(code & spec.code_mask());
        return r;
    }

    NUMFMT_FN storage bits() const noexcept { return bits_; }
    NUMFMT_FN operator float() const noexcept { return decode<minifloat>(bits_); }

    // Comparisons on integers: NaN is unordered, -0 equals +0, whatever the floating-point flags.
    friend NUMFMT_FN bool operator==(minifloat a, minifloat b) noexcept {
        return !is_nan(a) && !is_nan(b) && order(a) == order(b);
    }
    friend NUMFMT_FN bool operator!=(minifloat a, minifloat b) noexcept { return !(a == b); }
    friend NUMFMT_FN bool operator<(minifloat a, minifloat b) noexcept {
        return !is_nan(a) && !is_nan(b) && order(a) < order(b);
    }
    friend NUMFMT_FN bool operator>(minifloat a, minifloat b) noexcept { return b < a; }
    friend NUMFMT_FN bool operator<=(minifloat a, minifloat b) noexcept {
        return !is_nan(a) && !is_nan(b) && order(a) <= order(b);
    }
    friend NUMFMT_FN bool operator>=(minifloat a, minifloat b) noexcept { return b <= a; }

    /// Sign change; FNUZ formats have no -0 and keep 0 and NaN as they are. Unsigned formats have none.
    friend NUMFMT_FN minifloat operator-(minifloat a) noexcept
        requires(spec.is_signed)
    {
        const bool keep = !spec.has_negative_zero() && (a.bits_ & spec.magnitude_mask()) == 0;
        return from_bits(static_cast<storage>(keep ? a.bits_ : a.bits_ ^ spec.sign_bit()));
    }

    friend NUMFMT_FN bool is_nan(minifloat a) noexcept { return detail::is_nan(static_cast<float>(a)); }
    friend NUMFMT_FN bool is_finite(minifloat a) noexcept { return detail::is_finite(static_cast<float>(a)); }

  private:
    // Codes as integers in the order of their values; both zeros are 0.
    static NUMFMT_FN int32_t order(minifloat a) noexcept {
        const int32_t m = static_cast<int32_t>(a.bits_ & spec.magnitude_mask());
        return (a.bits_ & spec.sign_bit()) != 0 ? -m : m;
    }

    storage bits_;
};

// Arithmetic: the 16-bit formats compute in float and round each result once. The narrow formats have none, because
// every operation would lose most of its result: convert to float, compute, encode once.
template <class Tag>
    requires(Tag::spec.bits() == 16)
NUMFMT_FN minifloat<Tag> operator+(minifloat<Tag> a, minifloat<Tag> b) noexcept {
    return minifloat<Tag>(static_cast<float>(a) + static_cast<float>(b));
}
template <class Tag>
    requires(Tag::spec.bits() == 16)
NUMFMT_FN minifloat<Tag> operator-(minifloat<Tag> a, minifloat<Tag> b) noexcept {
    return minifloat<Tag>(static_cast<float>(a) - static_cast<float>(b));
}
template <class Tag>
    requires(Tag::spec.bits() == 16)
NUMFMT_FN minifloat<Tag> operator*(minifloat<Tag> a, minifloat<Tag> b) noexcept {
    return minifloat<Tag>(static_cast<float>(a) * static_cast<float>(b));
}
template <class Tag>
    requires(Tag::spec.bits() == 16)
NUMFMT_FN minifloat<Tag> operator/(minifloat<Tag> a, minifloat<Tag> b) noexcept {
    return minifloat<Tag>(static_cast<float>(a) / static_cast<float>(b));
}
template <class Tag>
    requires(Tag::spec.bits() == 16)
NUMFMT_FN minifloat<Tag>& operator+=(minifloat<Tag>& a, minifloat<Tag> b) noexcept {
    return a = a + b;
}
template <class Tag>
    requires(Tag::spec.bits() == 16)
NUMFMT_FN minifloat<Tag>& operator-=(minifloat<Tag>& a, minifloat<Tag> b) noexcept {
    return a = a - b;
}
template <class Tag>
    requires(Tag::spec.bits() == 16)
NUMFMT_FN minifloat<Tag>& operator*=(minifloat<Tag>& a, minifloat<Tag> b) noexcept {
    return a = a * b;
}
template <class Tag>
    requires(Tag::spec.bits() == 16)
NUMFMT_FN minifloat<Tag>& operator/=(minifloat<Tag>& a, minifloat<Tag> b) noexcept {
    return a = a / b;
}

// clang-format off
template <class A, class B> requires(A::spec.bits() < 16 || B::spec.bits() < 16)
NUMFMT_HD void operator+(minifloat<A>, minifloat<B>) = delete;  // no arithmetic below 16 bits: convert to float first
template <class A, class B> requires(A::spec.bits() < 16 || B::spec.bits() < 16)
NUMFMT_HD void operator-(minifloat<A>, minifloat<B>) = delete;  // no arithmetic below 16 bits: convert to float first
template <class A, class B> requires(A::spec.bits() < 16 || B::spec.bits() < 16)
NUMFMT_HD void operator*(minifloat<A>, minifloat<B>) = delete;  // no arithmetic below 16 bits: convert to float first
template <class A, class B> requires(A::spec.bits() < 16 || B::spec.bits() < 16)
NUMFMT_HD void operator/(minifloat<A>, minifloat<B>) = delete;  // no arithmetic below 16 bits: convert to float first
// clang-format on

namespace detail {
template <class T> inline constexpr bool is_minifloat_v = false;
template <class Tag> inline constexpr bool is_minifloat_v<minifloat<Tag>> = true;
}  // namespace detail

}  // namespace numfmt

#if !defined(__CUDACC_RTC__)
/// Derived from the format's spec. `digits10` and `max_digits10` follow the standard's formulas.
template <class Tag> class std::numeric_limits<numfmt::minifloat<Tag>> {
    using T = numfmt::minifloat<Tag>;
    static constexpr numfmt::float_spec s = Tag::spec;
    static constexpr T code(std::uint32_t c) { return T::from_bits(static_cast<typename T::storage>(c)); }

  public:
    static constexpr bool is_specialized = true;
    static constexpr bool is_signed = s.is_signed;
    static constexpr bool is_integer = false;
    static constexpr bool is_exact = false;
    static constexpr bool has_infinity = s.has_infinity();
    static constexpr bool has_quiet_NaN = s.has_nan();
    static constexpr bool has_signaling_NaN = false;
    static constexpr bool is_iec559 = false;
    static constexpr bool is_bounded = true;
    static constexpr bool is_modulo = false;
    static constexpr bool traps = false;
    static constexpr bool tinyness_before = false;
    static constexpr std::float_round_style round_style = s.has_zero ? std::round_to_nearest : std::round_toward_zero;
    static constexpr int radix = 2;
    static constexpr int digits = s.precision();
    static constexpr int digits10 = static_cast<int>((s.precision() - 1) * 30103L / 100000);
    static constexpr int max_digits10 = static_cast<int>(s.precision() * 30103L / 100000) + 2;
    static constexpr int min_exponent = s.min_exponent() + 1;
    static constexpr int max_exponent = s.max_exponent() + 1;
    // 10^n is representable as a normal number for min_exponent10 <= n <= max_exponent10.
    static constexpr int min_exponent10 = -static_cast<int>(-s.min_exponent() * 30103L / 100000);
    static constexpr int max_exponent10 = [] {
        int n = 0;
        for (double p = 10, top = static_cast<double>(static_cast<float>(
                                T::from_bits(static_cast<typename T::storage>(s.max_finite_code()))));
             p <= top; p *= 10)
            ++n;
        return n;
    }();

    /// Smallest positive normal number.
    static constexpr T min() noexcept { return code(s.has_zero ? 1u << s.mantissa_bits : 0u); }
    static constexpr T max() noexcept { return code(s.max_finite_code()); }
    static constexpr T lowest() noexcept { return s.is_signed ? code(s.max_finite_code() | s.sign_bit()) : code(0u); }
    /// Smallest positive number.
    static constexpr T denorm_min() noexcept { return code(s.has_zero ? 1u : 0u); }
    /// Distance from 1 to the next larger number.
    static constexpr T epsilon() noexcept {
        if (!s.has_zero) return T(1.0f);
        return T(numfmt::detail::exact_pow2(-s.mantissa_bits));
    }
    static constexpr T round_error() noexcept { return T(s.has_zero ? 0.5f : 1.0f); }
    static constexpr T infinity() noexcept { return s.has_infinity() ? code(s.infinity_code()) : T{}; }
    static constexpr T quiet_NaN() noexcept { return s.has_nan() ? code(s.canonical_nan_code()) : T{}; }
    static constexpr T signaling_NaN() noexcept { return quiet_NaN(); }
};
#endif
