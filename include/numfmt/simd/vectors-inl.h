// SPDX-License-Identifier: MIT
// The vectors that the SIMD kernels work on, compiled once per target: types of at most 64 bytes, loads of every source
// type as floats, the fold of floats to 16-bit lanes, stores.
#if defined(NUMFMT_SIMD_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMFMT_SIMD_VECTORS_INL_H_
#undef NUMFMT_SIMD_VECTORS_INL_H_
#else
#define NUMFMT_SIMD_VECTORS_INL_H_
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
using VI = hn::Vec<hn::RebindToSigned<D32>>;
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

HWY_INLINE V32 magnitude_bits(VF v) {
    return hn::And(hn::BitCast(D32(), v), hn::Set(D32(), numfmt::detail::f32_abs_mask));
}

/// How far ahead of what is read memory is asked for, in bytes: about a hundred nanoseconds at the kernels' rates.
inline constexpr size_t prefetch_distance = 4096;

// Asks for the `Count` elements that lie `distance` bytes behind x, which may be past the end of the array.
template <int Count, class T> HWY_INLINE void prefetch_ahead(const T* x, size_t distance) {
    for (size_t i = 0; i < Count * sizeof(T); i += 64) {
        hwy::Prefetch(reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(x) + distance + i));
    }
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

// Upper halves of floats to floats: the lower and the upper half of `h`'s lanes.
HWY_INLINE VF widen_lower(V16 h) {
    return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(D32(), hn::LowerHalf(hn::Half<D16>(), h))));
}
HWY_INLINE VF widen_upper(V16 h) {
    return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(D32(), hn::UpperHalf(hn::Half<D16>(), h))));
}

template <class D, class T> HWY_INLINE void store(hn::Vec<D> v, D d, T* to, bool stream) {
    static_assert(sizeof(T) == sizeof(hn::TFromD<D>));
    auto* const p = reinterpret_cast<hn::TFromD<D>*>(to);
    if (stream)
        hn::Stream(v, d, p);
    else
        hn::StoreU(v, d, p);
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace numfmt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
