// SPDX-License-Identifier: MIT
// Element-wise encode and decode with Google Highway, compiled once per target: for code that is itself compiled per
// target (static dispatch). `<numfmt/simd.hpp>` has the same operations with run-time dispatch. Bit for bit equal to
// core/codec.hpp; integer arithmetic, so independent of rounding mode, FTZ and DAZ.
//
// Formats of at most 8 bits are encoded in 16-bit lanes: a float is folded to its upper half with the lower half as a
// sticky bit, which is below every rounding position of such a format. What needs more (bf16 and fp16 as targets, E8M0,
// stochastic rounding) runs in 32-bit lanes.
#if defined(NUMFMT_SIMD_CODEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMFMT_SIMD_CODEC_INL_H_
#undef NUMFMT_SIMD_CODEC_INL_H_
#else
#define NUMFMT_SIMD_CODEC_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstring>

#include "common.hpp"

HWY_BEFORE_NAMESPACE();
namespace numfmt {
namespace simd {
namespace HWY_NAMESPACE {
namespace {  // a unit may be built for more than its target: its functions stay its own

namespace hn = hwy::HWY_NAMESPACE;

#undef NUMFMT_SIMD_LAMBDA
#define NUMFMT_SIMD_LAMBDA HWY_ATTR __attribute__((always_inline))

#if HWY_TARGET != HWY_SCALAR

// Vectors of at most 64 bytes: enough for every block size of the schemes to hold whole vectors.
using D8 = hn::CappedTag<uint8_t, 64>;
using D16 = hn::CappedTag<uint16_t, 32>;
using D32 = hn::CappedTag<uint32_t, 16>;
using DF = hn::CappedTag<float, 16>;
using V8 = hn::Vec<D8>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using VF = hn::Vec<DF>;
inline constexpr int max_lanes8 = 64;  ///< the largest Lanes(D8())

// v << count per lane, for counts 0 .. 7.
HWY_INLINE V16 shift_left_small(V16 v, V16 count) {
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
    // No 16-bit variable shift before AVX-512: multiply by a power of two from a table.
    const D16 d16;
    const D8 d8;
    alignas(16) static constexpr uint8_t power[16] = {1, 2, 4, 8, 16, 32, 64, 128};
    const V16 index = hn::Or(count, hn::Set(d16, 0x8000u));  // a set top bit gives 0
    return hn::Mul(v, hn::BitCast(d16, hn::TableLookupBytesOr0(hn::LoadDup128(d8, power), hn::BitCast(d8, index))));
#else
    return hn::Shl(v, count);
#endif
}

// Unsigned comparison of values below 2^15, which is one instruction everywhere as a signed one.
HWY_INLINE hn::Mask<D16> greater_than(V16 a, V16 b) {
    const hn::RebindToSigned<D16> ds;
    return hn::RebindMask(D16(), hn::Gt(hn::BitCast(ds, a), hn::BitCast(ds, b)));
}
HWY_INLINE hn::Mask<D32> greater_than(V32 a, V32 b) {
    const hn::RebindToSigned<D32> ds;
    return hn::RebindMask(D32(), hn::Gt(hn::BitCast(ds, a), hn::BitCast(ds, b)));
}

// --- loading
// -----------------------------------------------------------------------------------------------------------

HWY_INLINE VF load_floats(const float* x) { return hn::LoadU(DF(), x); }
HWY_INLINE VF load_floats(const bf16* x) {
    const hn::Rebind<uint16_t, D32> d;
    return hn::BitCast(DF(),
                       hn::ShiftLeft<16>(hn::PromoteTo(D32(), hn::LoadU(d, reinterpret_cast<const uint16_t*>(x)))));
}
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM
HWY_INLINE VF load_floats(const fp16* x) {
    const hn::Rebind<hwy::float16_t, DF> d;
    return hn::PromoteTo(DF(), hn::LoadU(d, reinterpret_cast<const hwy::float16_t*>(x)));
}
#else
// Without an instruction: as decode_bits() of the reference, Inf and NaN included.
HWY_INLINE VF load_floats(const fp16* x) {
    const D32 d;
    const hn::RebindToSigned<D32> ds;
    const hn::Rebind<uint16_t, D32> d16;
    const V32 h = hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(x)));
    const V32 magnitude = hn::And(h, hn::Set(d, 0x7FFFu));
    const V32 normal = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(d, 112u << 23));
    // A subnormal is magnitude * 2^-24, and the conversion of so small an integer is exact.
    const auto integer = hn::BitCast(ds, hn::ConvertTo(DF(), hn::BitCast(ds, magnitude)));
    const V32 small = hn::BitCast(d, hn::Max(hn::Sub(integer, hn::Set(ds, 24 << 23)), hn::Zero(ds)));
    V32 value = hn::IfThenElse(greater_than(magnitude, hn::Set(d, 0x3FFu)), normal, small);
    value =
        hn::IfThenElse(greater_than(magnitude, hn::Set(d, 0x7BFFu)), hn::Set(d, numfmt::detail::f32_infinity), value);
    value =
        hn::IfThenElse(greater_than(magnitude, hn::Set(d, 0x7C00u)), hn::Set(d, numfmt::detail::f32_quiet_nan), value);
    return hn::BitCast(DF(), hn::Or(value, hn::ShiftLeft<16>(hn::And(h, hn::Set(d, 0x8000u)))));
}
#endif

// The upper halves of 2 x 32-bit lanes, the lowest bit set where the lower half is not zero.
HWY_INLINE V16 fold(VF lo, VF hi) {
    const D16 d16;
    const V16 a = hn::BitCast(d16, lo), b = hn::BitCast(d16, hi);
    const V16 rest = hn::ConcatEven(d16, b, a);
    return hn::Or(hn::ConcatOdd(d16, b, a), hn::Min(rest, hn::Set(d16, 1)));
}
template <class Source> HWY_INLINE V16 load_folded(const Source* x) {
    return fold(load_floats(x), load_floats(x + hn::Lanes(D32())));
}
HWY_INLINE V16 load_folded(const bf16* x) { return hn::LoadU(D16(), reinterpret_cast<const uint16_t*>(x)); }

// --- encode
// ------------------------------------------------------------------------------------------------------------

/// True where encode16() serves the format: a zero, at most 8 bits, exponents well inside float's.
template <class Format>
inline constexpr bool fits_16_bit_lanes =
    Format::spec.has_zero && Format::spec.bits() <= 8 && Format::spec.mantissa_bits <= 5 &&
    127 + Format::spec.min_exponent() > Format::spec.mantissa_bits + 3;

/// Codes of folded floats. Plain: Inf and finite overflow share a code, NaN has no sign, -0 is kept.
template <class Format, bool Plain> HWY_INLINE V16 encode16(V16 h, const detail::encode_constants& k) {
    constexpr float_spec s = Format::spec;
    constexpr int m = s.mantissa_bits;
    constexpr int lowest = 127 + s.min_exponent();  // exponent field of the smallest normal number
    constexpr int room = m + 2;                     // further right everything rounds to zero
    const D16 d;
    const V16 magnitude = hn::And(h, hn::Set(d, 0x7FFF));
    const V16 field = hn::ShiftRight<7>(magnitude);
    const V16 up = hn::Min(hn::SaturatedSub(field, hn::Set(d, lowest - room)), hn::Set(d, room));
    const V16 significand = hn::Or(hn::And(h, hn::Set(d, 0x7F)), hn::Set(d, 0x80));
    const V16 v = shift_left_small(significand, up);
    // 7 - m mantissa bits go, and `room` places: always nine.
    const V16 odd = hn::And(hn::ShiftRight<9>(v), hn::Set(d, k.odd));
    const V16 rounded = hn::ShiftRight<9>(hn::Add(hn::Add(v, hn::Set(d, k.bias)), odd));
    const V16 above = hn::SaturatedSub(field, hn::Set(d, lowest));
    V16 code = hn::Add(hn::ShiftLeft<m>(above), rounded);
    const auto nan = greater_than(magnitude, hn::Set(d, 0x7F80));
    const V16 sign = hn::ShiftRight<15 - s.magnitude_bits()>(h);
    if constexpr (Plain) {
        code = hn::IfThenElse(nan, hn::Set(d, k.nan), hn::Min(code, hn::Set(d, k.cap)));
        if constexpr (s.is_signed) {
            const V16 kept = hn::And(sign, hn::Set(d, static_cast<uint16_t>(s.sign_bit())));
            code = hn::Or(code, hn::IfThenZeroElse(nan, kept));
        }
        return code;
    } else {
        V16 cap =
            hn::IfThenElse(greater_than(magnitude, hn::Set(d, 0x7F7F)), hn::Set(d, k.infinity), hn::Set(d, k.cap));
        cap = hn::IfThenElse(nan, hn::Set(d, k.nan), cap);
        code = hn::Min(code, cap);
        V16 mask = hn::IfThenElse(nan, hn::Set(d, k.nan_sign), hn::Set(d, static_cast<uint16_t>(s.sign_bit())));
        mask = hn::IfThenElse(hn::Eq(code, hn::Zero(d)), hn::Set(d, k.zero_sign), mask);
        return hn::Or(code, hn::And(sign, mask));
    }
}

/// Codes of floats in 32-bit lanes: any format, any rounding. `draw` is used by stochastic rounding alone.
template <class Format, bool Stochastic>
HWY_INLINE V32 encode32(V32 bits, V32 draw, const detail::encode_constants& k) {
    constexpr float_spec s = Format::spec;
    const D32 d;
    const V32 one = hn::Set(d, 1);
    const V32 magnitude = hn::And(bits, hn::Set(d, numfmt::detail::f32_abs_mask));
    V32 code = magnitude;
    if constexpr (!s.has_zero) {
        const V32 field = hn::ShiftRight<23>(hn::Add(magnitude, hn::Set(d, k.bias32)));
        if constexpr (s.bias == 127) {
            const V32 low = hn::IfThenElse(greater_than(hn::Set(d, k.next_exponent), magnitude), hn::Zero(d), one);
            code = hn::IfThenElse(greater_than(hn::Set(d, 0x00800000u), magnitude), low, field);
        } else {
            const V32 offset = hn::Set(d, 127u - static_cast<uint32_t>(s.bias));
            code = hn::Sub(hn::Max(field, offset), offset);
        }
    } else if constexpr (s.min_exponent() == -126) {
        constexpr int dropped = 23 - s.mantissa_bits;
        const V32 kept = hn::ShiftRight<dropped>(magnitude);
        if constexpr (Stochastic) {
            const V32 fraction = hn::ShiftLeft<32 - dropped>(magnitude);
            code = hn::Sub(kept, hn::VecFromMask(d, hn::Lt(draw, fraction)));
        } else {
            const V32 add = hn::Add(hn::Set(d, k.bias32), hn::And(kept, hn::Set(d, uint32_t{k.odd})));
            code = hn::ShiftRight<dropped>(hn::Add(magnitude, add));
        }
    } else {
        constexpr int dropped = 23 - s.mantissa_bits;
        constexpr int lowest = 127 + s.min_exponent();
        static_assert(lowest >= 2);
        const hn::RebindToSigned<D32> ds;
        const V32 field = hn::ShiftRight<23>(magnitude);
        const V32 lead = hn::IfThenElseZero(hn::Ne(field, hn::Zero(d)), hn::Set(d, 0x00800000u));
        const V32 sig = hn::Or(hn::And(magnitude, hn::Set(d, 0x007FFFFFu)), lead);
        const auto zero = hn::Zero(ds);
        const auto exponent = hn::Sub(hn::BitCast(ds, hn::Max(field, one)), hn::Set(ds, lowest));
        const auto exact = hn::Add(hn::Max(hn::Neg(exponent), zero), hn::Set(ds, dropped));
        const V32 shift = hn::BitCast(d, hn::Min(exact, hn::Set(ds, 25)));
        const V32 kept = hn::Shr(sig, shift);
        V32 rounded = kept;
        if constexpr (Stochastic) {
            const V32 rest = hn::Sub(sig, hn::Shl(kept, shift));
            const V32 left = hn::BitCast(d, hn::Max(hn::Sub(hn::Set(ds, 32), exact), zero));
            const V32 right = hn::BitCast(d, hn::Min(hn::Max(hn::Sub(exact, hn::Set(ds, 32)), zero), hn::Set(ds, 31)));
            const V32 fraction = hn::Shr(hn::Shl(rest, left), right);
            rounded = hn::Sub(kept, hn::VecFromMask(d, hn::Lt(draw, fraction)));
        } else {
            const V32 half = hn::And(hn::Shl(one, hn::Sub(shift, one)), hn::Set(d, k.half_mask));
            const V32 add =
                hn::Add(hn::Sub(half, hn::Set(d, k.below_half)), hn::And(kept, hn::Set(d, uint32_t{k.odd})));
            rounded = hn::Shr(hn::Add(sig, add), shift);
        }
        const V32 above = hn::BitCast(d, hn::Max(exponent, zero));
        code = hn::Add(hn::ShiftLeft<s.mantissa_bits>(above), rounded);
    }
    const auto nonfinite = greater_than(magnitude, hn::Set(d, numfmt::detail::f32_infinity - 1));
    const auto nan = greater_than(magnitude, hn::Set(d, numfmt::detail::f32_infinity));
    V32 cap = hn::Set(d, uint32_t{k.cap});
    cap = hn::IfThenElse(nonfinite, hn::Set(d, uint32_t{k.infinity}), cap);
    cap = hn::IfThenElse(nan, hn::Set(d, uint32_t{k.nan}), cap);
    code = hn::IfThenElse(nonfinite, cap, hn::Min(code, cap));
    if constexpr (s.is_signed) {
        V32 mask = hn::IfThenElse(nan, hn::Set(d, uint32_t{k.nan_sign}), hn::Set(d, s.sign_bit()));
        mask = hn::IfThenElse(hn::Eq(code, hn::Zero(d)), hn::Set(d, uint32_t{k.zero_sign}), mask);
        code = hn::Or(code, hn::And(hn::ShiftRight<31 - s.magnitude_bits()>(bits), mask));
    }
    return code;
}

/// Two vectors of float bits to one of bf16 codes: nearest roundings and truncation, overflow to Inf, NaN 7FFF.
HWY_INLINE V16 encode_bf16_plain(V32 lo, V32 hi, const detail::encode_constants& k) {
    const D32 d;
    const D16 d16;
    const V32 bias = hn::Set(d, k.bias32), odd = hn::Set(d, uint32_t{k.odd});
    const V32 abs_mask = hn::Set(d, numfmt::detail::f32_abs_mask), infinity = hn::Set(d, numfmt::detail::f32_infinity);
    const V32 nan = hn::Set(d, 0x7FFF0000u);
    const V32 a = hn::Add(lo, hn::Add(bias, hn::And(hn::ShiftRight<16>(lo), odd)));
    const V32 b = hn::Add(hi, hn::Add(bias, hn::And(hn::ShiftRight<16>(hi), odd)));
    const V32 x = hn::IfThenElse(greater_than(hn::And(lo, abs_mask), infinity), nan, a);
    const V32 y = hn::IfThenElse(greater_than(hn::And(hi, abs_mask), infinity), nan, b);
    return hn::ConcatOdd(d16, hn::BitCast(d16, y), hn::BitCast(d16, x));
}

#undef NUMFMT_SIMD_HAVE_F16C
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define NUMFMT_SIMD_HAVE_F16C 1
/// Nearest even to fp16, overflow to Inf, NaN 7FFF: the instruction's rounding is fixed, whatever MXCSR says.
HWY_INLINE V16 encode_fp16_plain(VF lo, VF hi) {
    const D16 d;
    const hn::Rebind<hwy::float16_t, DF> dh;
    const hn::Half<D16> dhu;
    const V16 h = hn::Combine(d, hn::BitCast(dhu, hn::DemoteTo(dh, hi)), hn::BitCast(dhu, hn::DemoteTo(dh, lo)));
    const auto nan = greater_than(hn::And(h, hn::Set(d, 0x7FFF)), hn::Set(d, 0x7C00));
    return hn::IfThenElse(nan, hn::Set(d, 0x7FFF), h);
}
#else
#define NUMFMT_SIMD_HAVE_F16C 0
#endif

/// Random words of consecutive elements, in batches: element `index` draws word index & 3 of Philox counter index >> 2.
class draws {
  public:
    HWY_INLINE draws(uint64_t seed, uint64_t first) : seed_(seed), index_(first), end_(first & ~uint64_t{3}) {}

    /// The words of the next Lanes(D32()) elements.
    HWY_INLINE V32 next() {
        const D32 d;
        const uint64_t lanes = hn::Lanes(d);
        while (end_ - index_ < lanes || end_ < index_) refill();
        const V32 v = hn::LoadU(d, buffer_ + (index_ - begin_));
        index_ += lanes;
        return v;
    }
    /// Skips back or forth to element `index`; anything drawn before is forgotten.
    HWY_INLINE void seek(uint64_t index) {
        index_ = index;
        end_ = index & ~uint64_t{3};
    }

  private:
    // Keeps what is left and draws four vectors of words behind it.
    HWY_NOINLINE void refill() {
        const D32 d;
        const size_t lanes = hn::Lanes(d);
        const size_t left = end_ > index_ ? static_cast<size_t>(end_ - index_) : 0;
        if (left > 0) std::memmove(buffer_, buffer_ + (index_ - begin_), left * sizeof(uint32_t));
        // At the very beginning index_ may be up to three words past end_, inside the group drawn now.
        begin_ = left > 0 ? index_ : end_;
        draw(end_ >> 2, buffer_ + left);
        end_ += 4 * lanes;
    }

    HWY_INLINE void draw(uint64_t group, uint32_t* HWY_RESTRICT words) const {
        const D32 d;
        const size_t lanes = hn::Lanes(d);
        const uint32_t low = static_cast<uint32_t>(group);
        if (low + static_cast<uint32_t>(lanes) < low) {  // the counter's lower word wraps inside the batch
            for (size_t i = 0; i < lanes; ++i) {
                const philox_block b = random_words(seed_, group + i);
                std::memcpy(words + 4 * i, b.word, sizeof b.word);
            }
            return;
        }
        V32 c0 = hn::Iota(d, low), c1 = hn::Set(d, static_cast<uint32_t>(group >> 32)), c2 = hn::Zero(d),
            c3 = hn::Zero(d);
        uint32_t key0 = static_cast<uint32_t>(seed_), key1 = static_cast<uint32_t>(seed_ >> 32);
        for (int round = 0; round < 10; ++round) {
            V32 high0 = c0, high1 = c2;
            const V32 low0 = multiply(c0, 0xD2511F53u, high0);
            const V32 low1 = multiply(c2, 0xCD9E8D57u, high1);
            c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, key0));
            c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, key1));
            c1 = low1;
            c3 = low0;
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
        hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
    }

    // The lower words of v * factor; `high` receives the upper ones.
    static HWY_INLINE V32 multiply(V32 v, uint32_t factor, V32& high) {
        const D32 d;
        const hn::RepartitionToWide<D32> d64;
        const V32 f = hn::Set(d, factor);
        const auto even = hn::MulEven(v, f);
        const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, v))), f);
        high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
        return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
    }

    uint64_t seed_, index_, end_;  // end_: first element not drawn yet, a multiple of 4
    uint64_t begin_ = 0;           // element of buffer_[0]
    alignas(64) uint32_t buffer_[4 * 16 + 16 + 4] = {};
};

// --- decode
// ------------------------------------------------------------------------------------------------------------

// Zero and the subnormals by their leading bit, from bit B on.
template <class Format, int B> HWY_INLINE V16 small_values(V16 magnitude) {
    constexpr float_spec s = Format::spec;
    const D16 d;
    if constexpr (B == s.mantissa_bits) {
        return hn::Zero(d);
    } else {
        constexpr int field = 127 + s.min_exponent() - s.mantissa_bits + B;
        const V16 below = hn::And(magnitude, hn::Set(d, (1u << B) - 1u));
        const V16 value = hn::Or(hn::ShiftLeft<7 - B>(below), hn::Set(d, static_cast<uint16_t>(field << 7)));
        const V16 has_bit = hn::And(magnitude, hn::Set(d, 1u << B));
        const V16 higher = small_values<Format, B + 1>(magnitude);
        // A higher leading bit wins.
        return hn::IfThenElse(greater_than(higher, hn::Zero(d)), higher,
                              hn::IfThenZeroElse(hn::Eq(has_bit, hn::Zero(d)), value));
    }
}

/// Upper halves of the floats that codes (one per 16-bit lane, no bits above the format's width) stand for: exact for
/// every format of at most 8 bits. A NaN is 7FC0 with the code's sign.
template <class Format> HWY_INLINE V16 decode16(V16 codes) {
    constexpr float_spec s = Format::spec;
    constexpr int m = s.mantissa_bits;
    static_assert(s.bits() <= 8 && m <= 5);
    const D16 d;
    const D8 d8;
    const V16 magnitude = s.is_signed ? hn::And(codes, hn::Set(d, static_cast<uint16_t>(s.magnitude_mask()))) : codes;
    V16 value = hn::Add(hn::ShiftLeft<7 - m>(magnitude), hn::Set(d, static_cast<uint16_t>((127 - s.bias) << 7)));
    if constexpr (!s.has_zero) {
        if constexpr (s.bias == 127) value = hn::IfThenElse(hn::Eq(codes, hn::Zero(d)), hn::Set(d, 0x0040), value);
    } else if constexpr (m <= 3) {
        // Zero and the subnormals, from a table of 2^m entries.
        alignas(16) static constexpr detail::small_table<Format> table{};
        const V16 low = hn::And(magnitude, hn::Set(d, static_cast<uint16_t>(s.mantissa_mask())));
        const V16 index = hn::Add(hn::Mul(low, hn::Set(d, 0x0202)), hn::Set(d, 0x0100));
        const V16 small = hn::BitCast(d, hn::TableLookupBytes(hn::LoadDup128(d8, table.bytes), hn::BitCast(d8, index)));
        value = hn::IfThenElse(greater_than(hn::Set(d, 1u << m), magnitude), small, value);
    } else {
        value = hn::IfThenElse(greater_than(hn::Set(d, 1u << m), magnitude), small_values<Format, 0>(magnitude), value);
    }
    if constexpr (s.specials == special_values::ieee) {
        value = hn::IfThenElse(greater_than(magnitude, hn::Set(d, static_cast<uint16_t>(s.infinity_code() - 1))),
                               hn::Set(d, 0x7F80), value);
        value = hn::IfThenElse(greater_than(magnitude, hn::Set(d, static_cast<uint16_t>(s.infinity_code()))),
                               hn::Set(d, 0x7FC0), value);
    } else if constexpr (s.specials == special_values::fn) {
        value = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, static_cast<uint16_t>(s.magnitude_mask()))),
                               hn::Set(d, 0x7FC0), value);
    } else if constexpr (s.specials == special_values::fnuz) {
        value =
            hn::IfThenElse(hn::Eq(codes, hn::Set(d, static_cast<uint16_t>(s.sign_bit()))), hn::Set(d, 0x7FC0), value);
    }
    if constexpr (s.is_signed) {
        const V16 sign = hn::And(hn::ShiftLeft<15 - s.magnitude_bits()>(codes), hn::Set(d, 0x8000));
        value = hn::Or(value, sign);
    }
    return value;
}

// Upper halves of floats to floats: the lower and the upper half of `h`'s lanes.
HWY_INLINE VF widen_lower(V16 h) {
    return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(D32(), hn::LowerHalf(hn::Half<D16>(), h))));
}
HWY_INLINE VF widen_upper(V16 h) {
    return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(D32(), hn::UpperHalf(hn::Half<D16>(), h))));
}

#undef NUMFMT_SIMD_HAVE_VBMI
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define NUMFMT_SIMD_HAVE_VBMI 1
// Whole 64-byte vectors of codes through tables of 128 bytes (one vpermi2b per byte plane of the result).
template <class Format, class Target> class plane_decoder {
    static constexpr float_spec s = Format::spec;

  public:
    // The two byte planes of 64 results, 16 bits each.
    static HWY_INLINE void planes(__m512i codes, __m512i& low, __m512i& high) {
        alignas(64) static constexpr detail::plane_tables<Format, Target> tables{};
        low = _mm512_permutex2var_epi8(_mm512_load_si512(tables.low), codes, _mm512_load_si512(tables.low + 64));
        high = _mm512_permutex2var_epi8(_mm512_load_si512(tables.high), codes, _mm512_load_si512(tables.high + 64));
        if constexpr (s.bits() == 8 && s.is_signed) {
            high = _mm512_or_si512(high, _mm512_and_si512(codes, _mm512_set1_epi8(static_cast<char>(0x80))));
        }
        if constexpr (s.specials == special_values::fnuz) {
            const __mmask64 nan = _mm512_cmpeq_epi8_mask(codes, _mm512_set1_epi8(static_cast<char>(0x80)));
            high = _mm512_mask_mov_epi8(high, nan, _mm512_set1_epi8(static_cast<char>(0xFF)));
            low = _mm512_mask_mov_epi8(low, nan, _mm512_set1_epi8(static_cast<char>(0xC0)));
        }
    }
};

// Bytes of `low` and `high` alternating, from element 32 * Part on: 32 16-bit lanes.
template <int Part> HWY_INLINE __m512i interleave_planes(__m512i low, __m512i high) {
    alignas(64) static constexpr detail::interleave_index<2, Part> index{};
    return _mm512_permutex2var_epi8(low, _mm512_load_si512(index.bytes), high);
}
// The same in the upper halves of 16 32-bit lanes, from element 16 * Part on.
template <int Part> HWY_INLINE __m512i widen_planes(__m512i low, __m512i high) {
    alignas(64) static constexpr detail::interleave_index<4, Part> index{};
    return _mm512_maskz_permutex2var_epi8(0xCCCCCCCCCCCCCCCCull, low, _mm512_load_si512(index.bytes), high);
}
#else
#define NUMFMT_SIMD_HAVE_VBMI 0
#endif

// --- arrays
// --------------------------------------------------------------------------------------------------------------

template <class D, class T> HWY_INLINE void store(hn::Vec<D> v, D d, T* to, bool stream) {
    static_assert(sizeof(T) == sizeof(hn::TFromD<D>));
    auto* const p = reinterpret_cast<hn::TFromD<D>*>(to);
    if (stream)
        hn::Stream(v, d, p);
    else
        hn::StoreU(v, d, p);
}

// Calls step(x + i, y + i, stream) for every whole step, and on padded copies for the rest. With `stream`, y + i is
// aligned for non-temporal stores.
template <class Step, class In, class Out>
HWY_INLINE void for_each_step(Step& step, const In* HWY_RESTRICT x, int64_t n, Out* HWY_RESTRICT y, bool stream) {
    const int64_t width = static_cast<int64_t>(hn::Lanes(D8()));
    const auto partial = [&](int64_t i, int64_t count) NUMFMT_SIMD_LAMBDA {
        alignas(64) In in[max_lanes8] = {};
        alignas(64) Out out[max_lanes8];
        std::memcpy(static_cast<void*>(in), x + i, static_cast<size_t>(count) * sizeof(In));
        step(in, out, false);
        std::memcpy(static_cast<void*>(y + i), out, static_cast<size_t>(count) * sizeof(Out));
    };
    int64_t i = 0, count = 0;
    if (stream) {
        const size_t misaligned = reinterpret_cast<uintptr_t>(y) % static_cast<size_t>(width);
        if (misaligned % sizeof(Out) != 0) stream = false;
        if (stream && misaligned != 0)
            count =
                numfmt::detail::min(n, (width - static_cast<int64_t>(misaligned)) / static_cast<int64_t>(sizeof(Out)));
    }
    // A few elements up to the alignment, whole steps, the rest: one copy of each kind of code.
    for (bool last = false;; last = true) {
        if (count > 0) partial(i, count);
        i += count;
        if (last) break;
        for (; i + width <= n; i += width) step(x + i, y + i, stream);
        count = n - i;
    }
    if (stream) hwy::FlushStream();
}

// Encoders of Lanes(D8()) elements.
template <class Format, class Source, bool Plain> struct encode_step16 {
    detail::encode_constants k;
    HWY_INLINE void operator()(const Source* x, uint8_t* codes, bool stream) const {
        const V16 lo = encode16<Format, Plain>(load_folded(x), k);
        const V16 hi = encode16<Format, Plain>(load_folded(x + hn::Lanes(D16())), k);
        const D8 d;
        store(hn::ConcatEven(d, hn::BitCast(d, hi), hn::BitCast(d, lo)), d, codes, stream);
    }
};
template <class Format, class Source, bool Stochastic> struct encode_step32 {
    detail::encode_constants k;
    draws& random;
    HWY_INLINE V32 codes32(const Source* x) const {
        const D32 d;
        V32 draw = hn::Zero(d);
        if constexpr (Stochastic) draw = random.next();
        return encode32<Format, Stochastic>(hn::BitCast(d, load_floats(x)), draw, k);
    }
    HWY_INLINE V16 codes16(const Source* x) const {
        const D16 d;
        const V32 lo = codes32(x), hi = codes32(x + hn::Lanes(D32()));
        return hn::ConcatEven(d, hn::BitCast(d, hi), hn::BitCast(d, lo));
    }
    HWY_INLINE void operator()(const Source* x, uint8_t* codes, bool stream) const {
        const D8 d;
        const V16 lo = codes16(x), hi = codes16(x + hn::Lanes(D16()));
        store(hn::ConcatEven(d, hn::BitCast(d, hi), hn::BitCast(d, lo)), d, codes, stream);
    }
    HWY_INLINE void operator()(const Source* x, uint16_t* codes, bool stream) const {
        const V16 lo = codes16(x), hi = codes16(x + hn::Lanes(D16()));
        store(lo, D16(), codes, stream);
        store(hi, D16(), codes + hn::Lanes(D16()), stream);
    }
};
template <class Format, class Source> struct encode_step_halves {  // bf16 and fp16 under their default policies
    detail::encode_constants k;
    HWY_INLINE V16 codes16(const Source* x) const {
        const VF lo = load_floats(x), hi = load_floats(x + hn::Lanes(D32()));
#if NUMFMT_SIMD_HAVE_F16C
        if constexpr (std::is_same_v<Format, fp16>) return encode_fp16_plain(lo, hi);
#endif
        return encode_bf16_plain(hn::BitCast(D32(), lo), hn::BitCast(D32(), hi), k);
    }
    HWY_INLINE void operator()(const Source* x, uint16_t* codes, bool stream) const {
        store(codes16(x), D16(), codes, stream);
        store(codes16(x + hn::Lanes(D16())), D16(), codes + hn::Lanes(D16()), stream);
    }
};

/// codes[i] = the code of x[i], 0 <= i < n, as numfmt::encode<Format, r>: x float, bf16 or fp16, any rounding that the
/// format has. Stochastic rounding draws word (index & 3) of Philox counter index >> 2 with index = first + i under
/// `seed`. The arrays must not overlap; any alignment.
template <class Format, class Source>
void encode_array(const Source* x, int64_t n, typename Format::storage* codes, rounding r, encode_options options,
                  uint64_t seed, uint64_t first) {
    using storage = typename Format::storage;
    const detail::encode_constants k = detail::make_constants<Format>(r, options);
    const bool stream = n * static_cast<int64_t>(sizeof(Source) + sizeof(storage)) >= stream_threshold;
    draws random(seed, first);
    if constexpr (Format::spec.has_zero) {
        if (r == rounding::stochastic) {
            encode_step32<Format, Source, true> step{k, random};
            for_each_step(step, x, n, codes, false);
            return;
        }
    }
    if constexpr (fits_16_bit_lanes<Format>) {
        if constexpr (Format::spec.has_negative_zero() || !Format::spec.is_signed) {
            if (k.plain) {
                encode_step16<Format, Source, true> step{k};
                for_each_step(step, x, n, codes, stream);
                return;
            }
        }
        encode_step16<Format, Source, false> step{k};
        for_each_step(step, x, n, codes, stream);
    } else {
        constexpr bool halves = std::is_same_v<Format, bf16> || (NUMFMT_SIMD_HAVE_F16C && std::is_same_v<Format, fp16>);
        if constexpr (halves) {
            // encode_bf16_plain() carries into Inf by itself; the fp16 instruction rounds to even only.
            const bool served = r == rounding::nearest_even ||
                                (std::is_same_v<Format, bf16> && r != rounding::stochastic && k.cap == k.infinity);
            if (k.plain && k.infinity == Format::spec.infinity_code() && k.nan == Format::spec.canonical_nan_code() &&
                served) {
                encode_step_halves<Format, Source> step{k};
                for_each_step(step, x, n, codes, stream);
                return;
            }
        }
        encode_step32<Format, Source, false> step{k, random};
        for_each_step(step, x, n, codes, stream);
    }
}

// Floats to bf16 or fp16, nearest even, under the default policies.
template <class Target> HWY_INLINE V16 narrow(VF lo, VF hi) {
    constexpr detail::encode_constants k = detail::make_constants<Target>(rounding::nearest_even, {});
    const D32 d;
    const D16 d16;
#if NUMFMT_SIMD_HAVE_F16C
    if constexpr (std::is_same_v<Target, fp16>) return encode_fp16_plain(lo, hi);
#endif
    if constexpr (std::is_same_v<Target, bf16>) {
        return encode_bf16_plain(hn::BitCast(d, lo), hn::BitCast(d, hi), k);
    } else {
        const V32 zero = hn::Zero(d);
        const V32 a = encode32<Target, false>(hn::BitCast(d, lo), zero, k);
        const V32 b = encode32<Target, false>(hn::BitCast(d, hi), zero, k);
        return hn::ConcatEven(d16, hn::BitCast(d16, b), hn::BitCast(d16, a));
    }
}

template <class Format, class Target> struct decode_step {
    HWY_INLINE VF floats(const uint16_t* codes) const {
        if constexpr (std::is_same_v<Format, bf16>)
            return load_floats(reinterpret_cast<const bf16*>(codes));
        else
            return load_floats(reinterpret_cast<const fp16*>(codes));
    }
    HWY_INLINE void operator()(const uint16_t* codes, float* y, bool stream) const {
        for (size_t i = 0; i < hn::Lanes(D8()); i += hn::Lanes(DF())) store(floats(codes + i), DF(), y + i, stream);
    }
    HWY_INLINE void operator()(const uint16_t* codes, uint16_t* y, bool stream) const {
        for (size_t i = 0; i < hn::Lanes(D8()); i += hn::Lanes(D16())) {
            const VF lo = floats(codes + i), hi = floats(codes + i + hn::Lanes(DF()));
            store(narrow<Target>(lo, hi), D16(), y + i, stream);
        }
    }
    HWY_INLINE void operator()(const uint8_t* codes, float* y, bool stream) const {
        for (size_t i = 0; i < hn::Lanes(D8()); i += hn::Lanes(D16())) {
            const V16 h = halves(codes + i);
            store(widen_lower(h), DF(), y + i, stream);
            store(widen_upper(h), DF(), y + i + hn::Lanes(DF()), stream);
        }
    }
    HWY_INLINE void operator()(const uint8_t* codes, uint16_t* y, bool stream) const {
        for (size_t i = 0; i < hn::Lanes(D8()); i += hn::Lanes(D16())) {
            const V16 h = halves(codes + i);
            if constexpr (std::is_same_v<Target, bf16>)
                store(h, D16(), y + i, stream);
            else
                store(narrow<Target>(widen_lower(h), widen_upper(h)), D16(), y + i, stream);
        }
    }

  private:
    HWY_INLINE V16 halves(const uint8_t* codes) const {
        const hn::Rebind<uint8_t, D16> d;
        V16 c = hn::PromoteTo(D16(), hn::LoadU(d, codes));
        if constexpr (Format::spec.bits() < 8)
            c = hn::And(c, hn::Set(D16(), static_cast<uint16_t>(Format::spec.code_mask())));
        return decode16<Format>(c);
    }
};

#if NUMFMT_SIMD_HAVE_VBMI
template <class Format, class Target> struct decode_step_planes {
    using decoder = plane_decoder<Format, Target>;
    HWY_INLINE void operator()(const uint8_t* codes, float* y, bool stream) const {
        __m512i low, high;
        decoder::planes(_mm512_loadu_si512(codes), low, high);
        put(widen_planes<0>(low, high), y, stream);
        put(widen_planes<1>(low, high), y + 16, stream);
        put(widen_planes<2>(low, high), y + 32, stream);
        put(widen_planes<3>(low, high), y + 48, stream);
    }
    HWY_INLINE void operator()(const uint8_t* codes, uint16_t* y, bool stream) const {
        __m512i low, high;
        decoder::planes(_mm512_loadu_si512(codes), low, high);
        put(interleave_planes<0>(low, high), y, stream);
        put(interleave_planes<1>(low, high), y + 32, stream);
    }

  private:
    static HWY_INLINE void put(__m512i v, void* to, bool stream) {
        if (stream)
            _mm512_stream_si512(static_cast<__m512i*>(to), v);
        else
            _mm512_storeu_si512(to, v);
    }
};
#endif

/// y[i] = the value of codes[i], 0 <= i < n, as numfmt::decode<Format>: y float (exact), bf16 or fp16 (exact where the
/// format has the value, else one nearest-even rounding). NaN compares as a class. The arrays must not overlap.
template <class Format, class Target> void decode_array(const typename Format::storage* codes, int64_t n, Target* y) {
    using storage = typename Format::storage;
    using out = std::conditional_t<std::is_same_v<Target, float>, float, uint16_t>;
    const bool stream = n * static_cast<int64_t>(sizeof(Target) + sizeof(storage)) >= stream_threshold;
#if NUMFMT_SIMD_HAVE_VBMI
    if constexpr (sizeof(storage) == 1 && Format::spec.has_zero) {
        decode_step_planes<Format, Target> step;
        for_each_step(step, codes, n, reinterpret_cast<out*>(y), stream);
        return;
    }
#endif
    decode_step<Format, Target> step;
    for_each_step(step, codes, n, reinterpret_cast<out*>(y), stream);
}

#else  // HWY_SCALAR: the reference

template <class Format, class Source>
void encode_array(const Source* x, int64_t n, typename Format::storage* codes, rounding r, encode_options options,
                  uint64_t seed, uint64_t first) {
    numfmt::simd::detail::reference_encode<Format>(x, n, codes, r, options, seed, first);
}
template <class Format, class Target> void decode_array(const typename Format::storage* codes, int64_t n, Target* y) {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Target>(numfmt::decode<Format>(codes[i]));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace numfmt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
