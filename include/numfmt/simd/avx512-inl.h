// SPDX-License-Identifier: MIT
// What AVX-512 does in fewer instructions than Highway's portable operations, compiled once per target.
#if defined(NUMFMT_SIMD_AVX512_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMFMT_SIMD_AVX512_INL_H_
#undef NUMFMT_SIMD_AVX512_INL_H_
#else
#define NUMFMT_SIMD_AVX512_INL_H_
#endif

#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numfmt {
namespace simd {
namespace HWY_NAMESPACE {
namespace {  // a unit may be built for more than its target: its functions stay its own

#if HWY_TARGET != HWY_SCALAR

#undef NUMFMT_SIMD_HAVE_AVX512
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define NUMFMT_SIMD_HAVE_AVX512 1

// Indices that exchange the 32-bit lanes' place within 128 bits and the place of these.
HWY_INLINE __m512i four_by_four() { return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15); }

/// Rounding to nearest even of 64 floats, none of them NaN, by one addition each: C = 2^(23 - m) * 2^e is the float
/// whose last place is the format's quantum in the binade 2^e of x (or in that of the smallest normal number), so the
/// last bits of x + C hold the rounded significand. The addition carries its own rounding mode.
template <class Format> class nearest_even_encoder {
    static constexpr float_spec s = Format::spec;
    static constexpr int m = s.mantissa_bits;
    static constexpr int lowest = 127 + s.min_exponent();  // exponent field of the smallest normal number

  public:
    static constexpr bool serves = s.is_signed && s.has_zero && s.has_negative_zero() && s.bits() <= 8 && m >= 1;

    /// `cap`: the code of everything larger than it.
    explicit HWY_INLINE nearest_even_encoder(uint16_t cap)
        : cap_(
              _mm512_set1_ps(bit_cast<float>(((uint32_t{cap} >> m) + static_cast<uint32_t>(lowest) - 1u) << 23 |
                                             (uint32_t{cap} & static_cast<uint32_t>(s.mantissa_mask())) << (23 - m)))) {
    }

    /// The codes of a, b, c and d, in order.
    HWY_INLINE V8 operator()(VF a, VF b, VF c, VF d) const {
        const __m512i low = codes16(a.raw, b.raw), high = codes16(c.raw, d.raw);
        const __m512i bytes = _mm512_packus_epi16(low, high);
#if HWY_TARGET <= HWY_AVX3_DL
        alignas(64) static constexpr detail::pack_order order{};
        return V8{_mm512_permutexvar_epi8(_mm512_load_si512(order.bytes), bytes)};
#else
        alignas(16) static constexpr uint8_t words[16] = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};
        const V8 grouped = hn::TableLookupBytes(V8{bytes}, hn::LoadDup128(D8(), words));
        return V8{_mm512_permutexvar_epi32(four_by_four(), grouped.raw)};
#endif
    }

  private:
    // The codes of a[0], b[0], a[1], b[1], ...
    HWY_INLINE __m512i codes16(__m512 a, __m512 b) const {
        __m512i exponent_a, exponent_b;
        const __m512i sum_a = sum(a, exponent_a), sum_b = sum(b, exponent_b);
        constexpr __mmask32 odd = 0xAAAAAAAAu;
#if HWY_TARGET <= HWY_AVX3_DL
        const __m512i inner = _mm512_shldi_epi32(sum_b, exponent_a, 16);
        const __m512i significands = _mm512_mask_mov_epi16(sum_a, odd, inner);
        const __m512i exponents = _mm512_mask_mov_epi16(inner, odd, exponent_b);
#else
        const __m512i significands = _mm512_mask_mov_epi16(sum_a, odd, _mm512_slli_epi32(sum_b, 16));
        const __m512i exponents = _mm512_mask_mov_epi16(_mm512_srli_epi32(exponent_a, 16), odd, exponent_b);
#endif
        const __m512i magnitude = _mm512_add_epi16(significands, _mm512_srli_epi16(exponents, 7 - m));
        const __m512i sign = _mm512_srli_epi16(exponents, 16 - s.bits());
        constexpr int select = 0xCA;
        return _mm512_ternarylogic_epi32(_mm512_set1_epi16(static_cast<short>(s.magnitude_mask())), magnitude, sign,
                                         select);
    }
    // x + C, under x's sign; `exponent` receives 2^e with that sign. The last place of C is moved so that the
    // code's exponent comes out by adding the exponent field of 2^e (modulo the code's width).
    HWY_INLINE __m512i sum(__m512 x, __m512i& exponent) const {
        constexpr int magnitude_min = 2, magnitude_max = 3;  // of the operands, under the sign of the first one
        constexpr uint32_t offset = (0u - (static_cast<uint32_t>(lowest) << m)) & s.magnitude_mask();
        constexpr float to_quantum = bit_cast<float>((127u + 23u - m) << 23 | offset);
        constexpr float smallest = bit_cast<float>(static_cast<uint32_t>(lowest) << 23);
        const __m512 capped = _mm512_range_ps(x, cap_, magnitude_min);
        const __m512 binade =
            _mm512_and_ps(capped, _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(0xFF800000u))));
        const __m512 power = _mm512_range_ps(binade, _mm512_set1_ps(smallest), magnitude_max);
        exponent = _mm512_castps_si512(power);
        return _mm512_castps_si512(_mm512_fmadd_round_ps(power, _mm512_set1_ps(to_quantum), capped,
                                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }

    __m512 cap_;
};

// How Lanes(DF()) = 16 floats below 2^31 round to integers, to nearest even whatever the mode in force.
HWY_INLINE VI nearest_integers(VF v) {
    return VI{_mm512_cvt_roundps_epi32(v.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
// v - its nearest integer.
HWY_INLINE VF distance_to_integer(VF v, VI) {
    return VF{_mm512_reduce_ps(v.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
HWY_INLINE VF largest_magnitude(VF a, VF b) {
    constexpr int magnitude_max = 3;
    return VF{_mm512_range_ps(a.raw, b.raw, magnitude_max | 8)};  // without a sign
}
// Four vectors of integers to bytes, saturated.
template <bool Signed> HWY_INLINE V8 saturate_to_bytes(VI a, VI b, VI c, VI d) {
    const __m512i low = _mm512_packs_epi32(a.raw, b.raw), high = _mm512_packs_epi32(c.raw, d.raw);
    const __m512i bytes = Signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    return V8{_mm512_permutexvar_epi32(four_by_four(), bytes)};
}

HWY_INLINE bool any_nan(VF a, VF b, VF c, VF d) {
    const __mmask16 ab = _mm512_cmp_ps_mask(a.raw, b.raw, _CMP_UNORD_Q);
    return _mm512_kortestz(ab, _mm512_cmp_ps_mask(c.raw, d.raw, _CMP_UNORD_Q)) == 0;
}
#else
#define NUMFMT_SIMD_HAVE_AVX512 0

// As above; where the rounding mode in force is to nearest even.
HWY_INLINE VI nearest_integers(VF v) { return hn::NearestInt(v); }
HWY_INLINE VF distance_to_integer(VF v, VI nearest) { return hn::Sub(v, hn::ConvertTo(DF(), nearest)); }
HWY_INLINE VF largest_magnitude(VF a, VF b) { return hn::Max(hn::Abs(a), hn::Abs(b)); }
template <bool Signed> HWY_INLINE V8 saturate_to_bytes(VI a, VI b, VI c, VI d) {
    const hn::RebindToSigned<D32> ds;
    const D16 d16;
    const D8 d8;
    const VI least = hn::Set(ds, Signed ? -128 : 0), most = hn::Set(ds, Signed ? 127 : 255);
    const auto halves = [&](VI x, VI y) NUMFMT_SIMD_LAMBDA {
        x = hn::Min(hn::Max(x, least), most);
        y = hn::Min(hn::Max(y, least), most);
        return hn::ConcatEven(d16, hn::BitCast(d16, y), hn::BitCast(d16, x));
    };
    const V16 low = halves(a, b), high = halves(c, d);
    return hn::ConcatEven(d8, hn::BitCast(d8, high), hn::BitCast(d8, low));
}
#endif

#undef NUMFMT_SIMD_HAVE_VBMI
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define NUMFMT_SIMD_HAVE_VBMI 1
// 64 codes to the two byte planes of 64 results of 16 bits, from tables: one vpermb or vpermi2b per plane. The
// results come out of the planes in order by unpacking within 128 bits if the codes stand in units: unit 4 for
// results of 32 bits, unit 8 for results of 16 bits (detail::unit_source).
template <class Format, class Target> class plane_decoder {
    static constexpr float_spec s = Format::spec;

  public:
    static HWY_INLINE void planes(__m512i codes, __m512i& low, __m512i& high) {
        alignas(64) static constexpr detail::plane_tables<Format, Target> tables{};
        if constexpr (s.bits() <= 6) {
            low = _mm512_permutexvar_epi8(codes, _mm512_load_si512(tables.low));
            high = _mm512_permutexvar_epi8(codes, _mm512_load_si512(tables.high));
        } else {
            low = _mm512_permutex2var_epi8(_mm512_load_si512(tables.low), codes, _mm512_load_si512(tables.low + 64));
            high = _mm512_permutex2var_epi8(_mm512_load_si512(tables.high), codes, _mm512_load_si512(tables.high + 64));
        }
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

// Two vectors of floats to bf16 by AVX512_BF16's instruction (no target of Highway 1.0 has it): nearest even whatever
// the mode in force, but a subnormal float or result counts as zero.
HWY_INLINE bool have_bf16_conversion() {
#ifdef __AVX512BF16__
    return true;
#else
    return __builtin_cpu_supports("avx512bf16") != 0;
#endif
}
HWY_INLINE V16 convert_to_bf16(VF lo, VF hi) {
    __m512i halves;
    asm("vcvtne2ps2bf16 %[lo], %[hi], %[halves]" : [halves] "=v"(halves) : [lo] "v"(lo.raw), [hi] "v"(hi.raw));
    return V16{halves};
}
// Whether it rounds all lanes as the reference does: none is subnormal, none NaN; where sees_subnormals().
HWY_INLINE bool converts_to_bf16(VF a, VF b, VF c, VF d) {
    constexpr int quiet_nan = 0x01, subnormal = 0x20, signaling_nan = 0x80;
    constexpr int any = quiet_nan | subnormal | signaling_nan;
    const __mmask16 ab = _mm512_kor(_mm512_fpclass_ps_mask(a.raw, any), _mm512_fpclass_ps_mask(b.raw, any));
    const __mmask16 cd = _mm512_kor(_mm512_fpclass_ps_mask(c.raw, any), _mm512_fpclass_ps_mask(d.raw, any));
    return _mm512_kortestz(ab, cd) != 0;
}

HWY_INLINE bool sees_subnormals() { return (_mm_getcsr() & 0x0040u) == 0; }  // DAZ is off

// 64 codes of 8 bits in order, to units.
template <int Unit> HWY_INLINE __m512i to_units(__m512i codes) {
    if constexpr (Unit == 4)
        return _mm512_permutexvar_epi32(four_by_four(), codes);
    else
        return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), codes);
}
// 16-bit results 32 * Part ... of planes in units of 8.
template <int Part> HWY_INLINE __m512i interleave_planes(__m512i low, __m512i high) {
    return Part == 0 ? _mm512_unpacklo_epi8(low, high) : _mm512_unpackhi_epi8(low, high);
}
// Results 16 * Part ... of planes in units of 4, each in the upper half of a 32-bit lane.
template <int Part> HWY_INLINE __m512i widen_planes(__m512i low, __m512i high) {
    const __m512i zero = _mm512_setzero_si512(), halves = interleave_planes<Part / 2>(low, high);
    return Part % 2 == 0 ? _mm512_unpacklo_epi16(zero, halves) : _mm512_unpackhi_epi16(zero, halves);
}
#else
#define NUMFMT_SIMD_HAVE_VBMI 0
HWY_INLINE bool have_bf16_conversion() { return false; }
#endif

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace numfmt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
