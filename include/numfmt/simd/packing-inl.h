// SPDX-License-Identifier: MIT
// Packed codes of 4, 6 and 8 bits to and from one code per byte, and how the blocks of a scheme lie on bytes and
// vectors; compiled once per target.
#if defined(NUMFMT_SIMD_PACKING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMFMT_SIMD_PACKING_INL_H_
#undef NUMFMT_SIMD_PACKING_INL_H_
#else
#define NUMFMT_SIMD_PACKING_INL_H_
#endif

#include "../block/scheme.hpp"
#include "avx512-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numfmt {
namespace simd {
namespace HWY_NAMESPACE {
namespace {  // a unit may be built for more than its target: its functions stay its own

#if HWY_TARGET != HWY_SCALAR

// --- packing
// -----------------------------------------------------------------------------------------------------------

/// Elements that fill a vector of packed codes: one D8 vector (6 bits: three quarters of one).
template <int Bits> HWY_INLINE int64_t chunk_elements() {
    return static_cast<int64_t>(hn::Lanes(D8())) * (Bits == 4 ? 2 : 1);
}

HWY_INLINE V8 join(V16 lo, V16 hi) {
    const D8 d;
    return hn::ConcatEven(d, hn::BitCast(d, hi), hn::BitCast(d, lo));
}
// Bytes 0 .. 15 to their nibbles, in pairs.
HWY_INLINE V8 pack_nibbles(V8 lo, V8 hi) {
#if NUMFMT_SIMD_HAVE_AVX512
    const __m512i weights = _mm512_set1_epi16(0x1001);  // 1 and 16
    const __m512i a = _mm512_maddubs_epi16(lo.raw, weights), b = _mm512_maddubs_epi16(hi.raw, weights);
    return V8{_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), _mm512_packus_epi16(a, b))};
#else
    const D16 d;
    const V16 a = hn::BitCast(d, lo), b = hn::BitCast(d, hi);
    return join(hn::Or(a, hn::ShiftRight<4>(a)), hn::Or(b, hn::ShiftRight<4>(b)));
#endif
}
// Writes Lanes(D8()) 6-bit codes as three quarters as many bytes.
HWY_INLINE void store_packed6(V8 codes, uint8_t* to) {
    const D8 d8;
    const D32 d;
    const V32 w = hn::BitCast(d, codes);
    const V32 first = hn::Or(hn::And(w, hn::Set(d, 0x3Fu)), hn::And(hn::ShiftRight<2>(w), hn::Set(d, 0xFC0u)));
    const V32 second = hn::Or(hn::And(hn::ShiftRight<4>(w), hn::Set(d, 0x3F000u)),
                              hn::And(hn::ShiftRight<6>(w), hn::Set(d, 0xFC0000u)));
#if NUMFMT_SIMD_HAVE_VBMI
    alignas(64) static constexpr detail::triple_pack_index index{};
    const __m512i packed =
        _mm512_permutexvar_epi8(_mm512_load_si512(index.bytes), hn::BitCast(d8, hn::Or(first, second)).raw);
    _mm512_mask_storeu_epi8(to, 0xFFFFFFFFFFFFull, packed);
#else
    alignas(16) static constexpr uint8_t gather[16] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};
    const V8 bytes = hn::TableLookupBytesOr0(hn::BitCast(d8, hn::Or(first, second)), hn::LoadDup128(d8, gather));
    alignas(64) uint8_t buffer[max_lanes8];
    hn::Store(bytes, d8, buffer);
    for (size_t i = 0; i < hn::Lanes(d8) / 16; ++i) std::memcpy(to + 12 * i, buffer + 16 * i, 12);
#endif
}
#if NUMFMT_SIMD_HAVE_VBMI
// 64 codes in units, or in order (Unit 64); above each code stand bits of its neighbours.
template <int Unit> HWY_INLINE __m512i unpack6(const uint8_t* from) {
    // Three bytes to the bottom of each 32-bit lane, then six bits to each byte.
    alignas(64) static constexpr detail::triple_unpack_index<Unit> index{};
    const __m512i words =
        _mm512_permutexvar_epi8(_mm512_load_si512(index.bytes), _mm512_maskz_loadu_epi8(0xFFFFFFFFFFFFull, from));
    return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x322C2620120C0600), words);
}
template <int Unit> HWY_INLINE __m512i unpack4(const uint8_t* from) {
    alignas(64) static constexpr detail::nibble_index<Unit> index{};
    const __m256i packed = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m512i words = _mm512_permutexvar_epi8(_mm512_load_si512(index.bytes), _mm512_castsi256_si512(packed));
    return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x1C1814100C080400), words);
}
template <int Bits, int Unit> HWY_INLINE __m512i load_units(const uint8_t* from) {
    if constexpr (Bits == 8)
        return to_units<Unit>(_mm512_loadu_si512(from));
    else if constexpr (Bits == 6)
        return unpack6<Unit>(from);
    else
        return unpack4<Unit>(from);
}
#endif
HWY_INLINE V8 load_packed6(const uint8_t* from) {
#if NUMFMT_SIMD_HAVE_VBMI
    return V8{_mm512_and_si512(unpack6<64>(from), _mm512_set1_epi8(0x3F))};
#else
    const D8 d8;
    const D32 d;
    alignas(16) static constexpr uint8_t spread[16] = {0, 1, 2, 0x80, 3, 4, 5, 0x80, 6, 7, 8, 0x80, 9, 10, 11, 0x80};
    alignas(64) uint8_t buffer[max_lanes8];
    for (size_t i = 0; i < hn::Lanes(d8) / 16; ++i) std::memcpy(buffer + 16 * i, from + 12 * i, 12);
    const V32 w = hn::BitCast(d, hn::TableLookupBytesOr0(hn::Load(d8, buffer), hn::LoadDup128(d8, spread)));
    const V32 first = hn::Or(hn::And(w, hn::Set(d, 0x3Fu)), hn::And(hn::ShiftLeft<2>(w), hn::Set(d, 0x3F00u)));
    const V32 second = hn::Or(hn::And(hn::ShiftLeft<4>(w), hn::Set(d, 0x3F0000u)),
                              hn::And(hn::ShiftLeft<6>(w), hn::Set(d, 0x3F000000u)));
    return hn::BitCast(d8, hn::Or(first, second));
#endif
}
// Nibbles of Lanes(D8()) / 2 bytes, one per byte, in order.
HWY_INLINE V8 load_nibbles(const uint8_t* from) {
#if NUMFMT_SIMD_HAVE_VBMI
    return V8{_mm512_and_si512(unpack4<64>(from), _mm512_set1_epi8(15))};
#else
    const D16 d;
    const hn::Half<D8> half;
    const V16 w = hn::PromoteTo(d, hn::LoadU(half, from));
    return hn::BitCast(D8(), hn::Or(hn::And(w, hn::Set(d, 0x000F)), hn::And(hn::ShiftLeft<4>(w), hn::Set(d, 0x0F00))));
#endif
}

template <int Bits> HWY_INLINE V8 load_codes(const uint8_t* from) {
    if constexpr (Bits == 8) {
        return hn::LoadU(D8(), from);
    } else if constexpr (Bits == 6) {
        return load_packed6(from);
    } else {
        static_assert(Bits == 4);
        return load_nibbles(from);
    }
}

/// True where every block of a row begins on a byte of its packed codes.
template <class S>
inline constexpr bool begins_on_bytes =
    S::block.cols == whole || S::block.cols % 8 * scheme_traits<S>::element_bits % 8 == 0;

/// True where a whole vector of blocks is worked on at once: blocks of a row, of 16 to 128 elements.
template <class S>
inline constexpr bool has_groups = S::block.rows == 1 && S::block.cols <= 128 && S::block.cols % 16 == 0 &&
                                   (scheme_traits<S>::power_of_two_scale || S::has_tensor_scale ||
                                    std::is_same_v<typename S::scale, float> || integer_format<typename S::element>);

/// Blocks of a group: at most Lanes(D32()), so many of the `left` whole ones as fill whole chunks of `chunk` elements.
template <class S> HWY_INLINE int64_t group_size(int64_t left, int64_t chunk) {
    const int64_t most = numfmt::detail::min(left, static_cast<int64_t>(hn::Lanes(D32())));
    const int64_t unit = numfmt::detail::max(chunk / S::block.cols, int64_t{1});
    return most / unit * unit;
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace numfmt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
