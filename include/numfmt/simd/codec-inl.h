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

#include <cstring>

#include "avx512-inl.h"
#include "philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numfmt {
namespace simd {
namespace HWY_NAMESPACE {
namespace {  // a unit may be built for more than its target: its functions stay its own

#if HWY_TARGET != HWY_SCALAR

// --- encode
// ------------------------------------------------------------------------------------------------------------

/// True where encode16() serves the format: a zero, at most 8 bits, exponents well inside float's.
template <class Format>
inline constexpr bool fits_16_bit_lanes =
    Format::spec.has_zero && Format::spec.bits() <= 8 && Format::spec.mantissa_bits <= 5 &&
    127 + Format::spec.min_exponent() > Format::spec.mantissa_bits + 3;

/// Codes of folded floats. Plain: Inf and finite overflow share a code, NaN has no sign, -0 is kept. MayBeNan: false
/// where there is none.
template <class Format, bool Plain, bool MayBeNan = true>
HWY_INLINE V16 encode16(V16 h, const detail::encode_constants& k) {
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
    const V16 sign = hn::ShiftRight<15 - s.magnitude_bits()>(h);
    if constexpr (Plain && !MayBeNan) {
        code = hn::Min(code, hn::Set(d, k.cap));
        if constexpr (s.is_signed) code = hn::Or(code, hn::And(sign, hn::Set(d, static_cast<uint16_t>(s.sign_bit()))));
        return code;
    }
    const auto nan = greater_than(magnitude, hn::Set(d, 0x7F80));
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

// The values of finite positive codes of a format, one per 32-bit lane.
template <class Format> HWY_INLINE VF scale_values(V32 codes) {
    constexpr float_spec s = Format::spec;
    constexpr int m = s.mantissa_bits;
    const D32 d;
    const DF df;
    const hn::RebindToSigned<D32> ds;
    const V32 normal = hn::Add(hn::ShiftLeft<23 - m>(codes), hn::Set(d, static_cast<uint32_t>(127 - s.bias) << 23));
    const VF small = hn::Mul(hn::ConvertTo(df, hn::BitCast(ds, codes)),
                             hn::Set(df, numfmt::detail::exact_pow2(s.min_exponent() - m)));
    const auto is_small = hn::RebindMask(df, greater_than(hn::Set(d, 1u << m), codes));
    return hn::IfThenElse(is_small, small, hn::BitCast(df, normal));
}

// --- arrays
// --------------------------------------------------------------------------------------------------------------

// Calls step(x + i, y + i, stream) for every whole step, and on padded copies for the rest. With `stream`, y + i is
// aligned for non-temporal stores.
template <class Step, class In, class Out>
HWY_INLINE void for_each_step(const Step& step, const In* HWY_RESTRICT x, int64_t n, Out* HWY_RESTRICT y, bool stream) {
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
        if constexpr (sizeof(In) > sizeof(Out)) {
            // Between two loads lies enough arithmetic for memory to fall idle.
            for (; i + width <= n; i += width) {
                prefetch_ahead<max_lanes8>(x + i, prefetch_distance);
                step(x + i, y + i, stream);
            }
        } else if (stream) {  // so little that a test before each store would show
            for (; i + width <= n; i += width) step(x + i, y + i, true);
        } else {
            for (; i + width <= n; i += width) step(x + i, y + i, false);
        }
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
#if NUMFMT_SIMD_HAVE_AVX512
template <class Format, class Source> struct encode_step_nearest {
    encode_step16<Format, Source, true> with_nan;
    nearest_even_encoder<Format> encoder{with_nan.k.cap};
    HWY_INLINE void operator()(const Source* x, uint8_t* codes, bool stream) const {
        const VF a = load_floats(x), b = load_floats(x + 16), c = load_floats(x + 32), e = load_floats(x + 48);
        if (HWY_UNLIKELY(any_nan(a, b, c, e)))
            encode_all(x, codes, stream);
        else
            store(encoder(a, b, c, e), D8(), codes, stream);
    }
    HWY_NOINLINE void encode_all(const Source* x, uint8_t* codes, bool stream) const { with_nan(x, codes, stream); }
};
#endif
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

#if NUMFMT_SIMD_HAVE_VBMI
template <class Source> struct encode_step_bf16 {  // by the instruction
    encode_step_halves<bf16, Source> with_all;
    HWY_INLINE void operator()(const Source* x, uint16_t* codes, bool stream) const {
        const VF a = load_floats(x), b = load_floats(x + 16), c = load_floats(x + 32), e = load_floats(x + 48);
        if (HWY_UNLIKELY(!converts_to_bf16(a, b, c, e))) {
            encode_all(x, codes, stream);
        } else {
            store(convert_to_bf16(a, b), D16(), codes, stream);
            store(convert_to_bf16(c, e), D16(), codes + 32, stream);
        }
    }
    HWY_NOINLINE void encode_all(const Source* x, uint16_t* codes, bool stream) const { with_all(x, codes, stream); }
};
#endif

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
                const encode_step16<Format, Source, true> step{k};
#if NUMFMT_SIMD_HAVE_AVX512
                // A bf16 is half of a float already: 16-bit lanes are quicker.
                if constexpr (nearest_even_encoder<Format>::serves && !std::is_same_v<Source, bf16>) {
                    if (r == rounding::nearest_even) {
                        const encode_step_nearest<Format, Source> nearest{step};
                        for_each_step(nearest, x, n, codes, stream);
                        return;
                    }
                }
#endif
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
                const encode_step_halves<Format, Source> step{k};
#if NUMFMT_SIMD_HAVE_VBMI
                if constexpr (std::is_same_v<Format, bf16>) {
                    if (r == rounding::nearest_even && have_bf16_conversion() && sees_subnormals()) {
                        for_each_step(encode_step_bf16<Source>{step}, x, n, codes, stream);
                        return;
                    }
                }
#endif
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
        decoder::planes(to_units<4>(_mm512_loadu_si512(codes)), low, high);
        put(widen_planes<0>(low, high), y, stream);
        put(widen_planes<1>(low, high), y + 16, stream);
        put(widen_planes<2>(low, high), y + 32, stream);
        put(widen_planes<3>(low, high), y + 48, stream);
    }
    HWY_INLINE void operator()(const uint8_t* codes, uint16_t* y, bool stream) const {
        __m512i low, high;
        decoder::planes(to_units<8>(_mm512_loadu_si512(codes)), low, high);
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
