// SPDX-License-Identifier: MIT
// Dequantize with Google Highway, compiled once per target: unpack and scale in one pass. Bit for bit equal to
// block/quantize.hpp.
#if defined(NUMFMT_SIMD_DEQUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMFMT_SIMD_DEQUANTIZE_INL_H_
#undef NUMFMT_SIMD_DEQUANTIZE_INL_H_
#else
#define NUMFMT_SIMD_DEQUANTIZE_INL_H_
#endif

#include "codec-inl.h"
#include "packing-inl.h"
#include "reference.hpp"

HWY_BEFORE_NAMESPACE();
namespace numfmt {
namespace simd {
namespace HWY_NAMESPACE {
namespace {  // a unit may be built for more than its target: its functions stay its own

#if HWY_TARGET != HWY_SCALAR

// From here on a factor's products with non-zero elements are normal floats.
template <class Element>
inline constexpr float smallest_normal_factor = [] {
    if constexpr (integer_format<Element>)
        return numfmt::detail::exact_pow2(-126);
    else
        return numfmt::detail::exact_pow2(-126 - Element::spec.min_exponent() + Element::spec.mantissa_bits);
}();

// How codes become values: a factor, or an addend for the exponent, for each quarter of Lanes(D8()) codes.
struct quarter_scales {
    float factor[4] = {1, 1, 1, 1};
    int exponent[4] = {0, 0, 0, 0};  // of quarters 0 and 2, where exponents are added
    int zero_point[4] = {0, 0, 0, 0};
    bool converts = false;  // every product is a normal float, zero, Inf or NaN, and convert_to_bf16() is there

    template <class S> static quarter_scales all(float factor, int exponent, int zero) {
        return {{factor, factor, factor, factor},
                {exponent, exponent, exponent, exponent},
                {zero, zero, zero, zero},
                have_bf16_conversion() && factor >= smallest_normal_factor<typename S::element>};
    }
};

// Lanes(D8()) packed codes to as many values. S is a run_scheme. OneBlock: the quarters have the same scale.
template <class S, class Target, bool OneBlock> struct chunk_decoder {
    using element = typename S::element;
    static constexpr int bits = scheme_traits<S>::element_bits;
    // Upper halves of floats are bf16 values: under a power of two an addition to their exponents scales them.
    static constexpr bool add_exponent =
        scheme_traits<S>::power_of_two_scale && float_format<element> && std::is_same_v<Target, bf16>;

    static HWY_INLINE void decode(const uint8_t* from, const quarter_scales& scales, Target* y, bool stream) {
        const size_t n = hn::Lanes(DF());
        const DF df;
        if constexpr (add_exponent) {
            V16 lo = hn::Zero(D16()), hi = lo;
            upper_halves(from, lo, hi);
            store(raise(lo, scales.exponent[0]), D16(), y, stream);
            store(raise(hi, scales.exponent[OneBlock ? 0 : 2]), D16(), y + 2 * n, stream);
        } else {
            VF v0 = hn::Zero(df), v1 = v0, v2 = v0, v3 = v0;
            values(from, scales, v0, v1, v2, v3);
            const auto factor = [&](int quarter)
                                    NUMFMT_SIMD_LAMBDA { return hn::Set(df, scales.factor[OneBlock ? 0 : quarter]); };
            put(hn::Mul(v0, factor(0)), hn::Mul(v1, factor(1)), y, scales.converts, stream);
            put(hn::Mul(v2, factor(2)), hn::Mul(v3, factor(3)), y + 2 * n, scales.converts, stream);
        }
    }

  private:
    // Elements less their zero points, before scaling.
    static HWY_INLINE void values(const uint8_t* from, const quarter_scales& scales, VF& v0, VF& v1, VF& v2, VF& v3) {
#if NUMFMT_SIMD_HAVE_VBMI
        if constexpr (float_format<element> || bits == 4) {
            __m512i codes = load_units<bits, 4>(from), low, high;
            if constexpr (float_format<element>) {
                plane_decoder<element, float>::planes(codes, low, high);
            } else {
                alignas(64) static constexpr detail::signed6_planes tables{};
                codes = _mm512_sub_epi8(_mm512_and_si512(codes, _mm512_set1_epi8(15)), zero_points(scales));
                low = _mm512_permutexvar_epi8(codes, _mm512_load_si512(tables.low));
                high = _mm512_permutexvar_epi8(codes, _mm512_load_si512(tables.high));
            }
            const DF df;
            v0 = hn::BitCast(df, V32{widen_planes<0>(low, high)});
            v1 = hn::BitCast(df, V32{widen_planes<1>(low, high)});
            v2 = hn::BitCast(df, V32{widen_planes<2>(low, high)});
            v3 = hn::BitCast(df, V32{widen_planes<3>(low, high)});
            return;
        }
#endif
        if constexpr (float_format<element>) {
            V16 lo = hn::Zero(D16()), hi = lo;
            upper_halves(from, lo, hi);
            v0 = widen_lower(lo);
            v1 = widen_upper(lo);
            v2 = widen_lower(hi);
            v3 = widen_upper(hi);
        } else {
            V16 lo = hn::Zero(D16()), hi = lo;
            promote(load_codes<bits>(from), lo, hi);
            v0 = integer_values<0>(lo, scales.zero_point[0]);
            v1 = integer_values<1>(lo, scales.zero_point[1]);
            v2 = integer_values<0>(hi, scales.zero_point[2]);
            v3 = integer_values<1>(hi, scales.zero_point[3]);
        }
    }
    // Upper halves of the values of float elements.
    static HWY_INLINE void upper_halves(const uint8_t* from, V16& lo, V16& hi) {
#if NUMFMT_SIMD_HAVE_VBMI
        __m512i low, high;
        plane_decoder<element, float>::planes(load_units<bits, 8>(from), low, high);
        lo = V16{interleave_planes<0>(low, high)};
        hi = V16{interleave_planes<1>(low, high)};
#else
        promote(load_codes<bits>(from), lo, hi);
        lo = decode16<element>(lo);
        hi = decode16<element>(hi);
#endif
    }
    static HWY_INLINE void promote(V8 codes, V16& lo, V16& hi) {
        const hn::Half<D8> half;
        lo = hn::PromoteTo(D16(), hn::LowerHalf(half, codes));
        hi = hn::PromoteTo(D16(), hn::UpperHalf(half, codes));
    }
    static HWY_INLINE V16 raise(V16 h, int exponent) {
        const D16 d;
        const V16 magnitude = hn::And(h, hn::Set(d, 0x7FFF));
        auto fixed = hn::Eq(magnitude, hn::Zero(d));
        if constexpr (element::spec.specials != special_values::finite)
            fixed = hn::Or(fixed, greater_than(magnitude, hn::Set(d, 0x7F7F)));  // Inf, NaN
        return hn::IfThenElse(fixed, h, hn::Add(h, hn::Set(d, static_cast<uint16_t>(exponent * 128))));
    }
#if NUMFMT_SIMD_HAVE_VBMI
    // In units of 4, as load_units() has the codes: one unit of each 16 bytes belongs to a quarter.
    static HWY_INLINE __m512i zero_points(const quarter_scales& scales) {
        const int32_t* const z = scales.zero_point;
        constexpr int32_t each = 0x01010101;
        if constexpr (OneBlock) return _mm512_set1_epi8(static_cast<char>(z[0]));
        return _mm512_broadcast_i32x4(_mm_setr_epi32(z[0] * each, z[1] * each, z[2] * each, z[3] * each));
    }
#endif
    template <int Part> static HWY_INLINE VF integer_values(V16 codes, int zero_point) {
        constexpr int_spec spec = element::spec;
        const hn::RebindToSigned<D32> ds;
        const hn::Half<D16> half;
        V32 wide = hn::Zero(D32());
        if constexpr (Part == 0)
            wide = hn::PromoteTo(D32(), hn::LowerHalf(half, codes));
        else
            wide = hn::PromoteTo(D32(), hn::UpperHalf(half, codes));
        auto q = hn::BitCast(ds, wide);
        if constexpr (spec.is_signed)
            q = hn::ShiftRight<32 - spec.bits>(hn::ShiftLeft<32 - spec.bits>(q));
        else
            q = hn::Sub(q, hn::Set(ds, zero_point));
        return hn::ConvertTo(DF(), q);
    }
    static HWY_INLINE void put(VF lo, VF hi, Target* y, [[maybe_unused]] bool converts, bool stream) {
        const size_t n = hn::Lanes(DF());
        if constexpr (std::is_same_v<Target, float>) {
            store(lo, DF(), y, stream);
            store(hi, DF(), y + n, stream);
        } else {
#if NUMFMT_SIMD_HAVE_VBMI
            if constexpr (std::is_same_v<Target, bf16>) {
                if (converts) return store(convert_to_bf16(lo, hi), D16(), y, stream);
            }
#endif
            store(narrow<Target>(lo, hi), D16(), y, stream);
        }
    }
};

// y[0..n) from packed codes that start on a byte, all under one scale.
template <class S, class Target>
HWY_NOINLINE void decode_run(const quarter_scales& scales, const uint8_t* from, int64_t n, Target* y, bool stream) {
    using decoder = chunk_decoder<S, Target, true>;
    constexpr int bits = scheme_traits<S>::element_bits;
    const int64_t step = static_cast<int64_t>(hn::Lanes(D8()));
    if (stream && reinterpret_cast<uintptr_t>(y) % hn::Lanes(D8()) != 0) stream = false;
    int64_t i = 0;
    for (; i + step <= n; i += step) decoder::decode(from + i / 8 * bits, scales, y + i, stream);
    if (i < n) {
        alignas(64) uint8_t in[max_lanes8] = {};
        alignas(64) Target out[max_lanes8];
        std::memcpy(in, from + i / 8 * bits, static_cast<size_t>(packed_row_bytes(n - i, bits)));
        decoder::decode(in, scales, out, false);
        std::memcpy(static_cast<void*>(y + i), out, static_cast<size_t>(n - i) * sizeof(Target));
    }
}

template <class Element> constexpr bool exact_under(int exponent) {
    return exponent >= detail::exact_exponents<Element>::lowest &&
           exponent <= detail::exact_exponents<Element>::highest;
}

// Columns [j, last) of scales of one row of blocks, each block on its own.
template <class S, class Target>
void decode_blocks(const quantized_view<const S>& q, matrix_view<Target> y, int64_t i, int64_t row, int64_t j,
                   int64_t last, float multiplier, bool stream) {
    using element = typename S::element;
    constexpr int bits = scheme_traits<S>::element_bits;
    for (; j < last; ++j) {
        const int64_t c0 = j == 0 ? 0 : j * S::block.cols;
        const int64_t n = numfmt::detail::min(y.shape.cols - c0, S::block.cols);
        uint8_t zero_point = 0;
        if constexpr (S::has_zero_point) zero_point = q.zero_point(i, j);
        const auto scale = numfmt::detail::scale_from_storage<S>(q.scale(i, j), zero_point, multiplier);
        bool fast = !scale.poisoned;
        float factor = scale.value;
        if constexpr (scheme_traits<S>::power_of_two_scale) {
            fast = fast && exact_under<element>(scale.exponent);
            if (fast) factor = numfmt::detail::exact_pow2(scale.exponent - detail::fraction_bits<element>);
        }
        if (fast) {
            const uint8_t* const from = q.code_row(row) + c0 / 8 * bits + c0 % 8 * bits / 8;
            decode_run<detail::run_scheme<S>>(quarter_scales::all<S>(factor, scale.exponent, scale.zero_point), from, n,
                                              y.row(row) + c0, stream);
        } else {
            detail::reference_run_values<S>(scale, q.code_row(row), c0, n, y.row(row) + c0);
        }
    }
}

// The values of Lanes(D32()) stored scales; false if one of them is NaN or has a sign.
template <class S> HWY_INLINE bool load_scales(const typename scheme_traits<S>::scale_storage* stored, VF& values) {
    using scale = typename S::scale;
    const D32 d;
    if constexpr (std::is_same_v<scale, float> || scheme_traits<S>::scale_bits == 16) {
        values = load_floats(reinterpret_cast<const scale*>(stored));
        return hn::AllFalse(d, greater_than(magnitude_bits(values), hn::Set(d, numfmt::detail::f32_infinity)));
    } else {
        const V32 codes = hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint8_t, D32>(), stored));
        values = scale_values<scale>(codes);
        return hn::AllFalse(d, greater_than(codes, hn::Set(d, scale::spec.max_finite_code())));
    }
}

// `count` blocks of a row from block j on. False: nothing was written, they have to be done one by one.
template <class S, class Target>
HWY_INLINE bool decode_group(const quantized_view<const S>& q, matrix_view<Target> y, int64_t row, int64_t j,
                             int64_t count, float multiplier, bool stream) {
    using element = typename S::element;
    using decoder = chunk_decoder<detail::run_scheme<S>, Target, S::block.cols % max_lanes8 == 0>;
    using storage = typename scheme_traits<S>::scale_storage;
    constexpr int bits = scheme_traits<S>::element_bits;
    constexpr int block = static_cast<int>(S::block.cols);
    const D32 d;
    const DF df;
    const size_t lanes = hn::Lanes(d);
    alignas(64) float factors[16];
    alignas(64) int32_t exponents[16];
    uint8_t zero_points[16] = {};
    storage gathered[16] = {};
    const storage* stored = gathered;
    if (count == static_cast<int64_t>(lanes) && q.parts().layout == scale_layout::row_major)
        stored = &q.scale(row, j);
    else
        for (int64_t b = 0; b < 16; ++b) gathered[b] = q.scale(row, j + (b < count ? b : 0));
    if constexpr (scheme_traits<S>::power_of_two_scale) {
        // 2^(code - 127 - fraction bits), where every value of the block is a normal float.
        constexpr int lowest = detail::exact_exponents<element>::lowest + 127;
        constexpr int highest = detail::exact_exponents<element>::highest + 127;
        const hn::Rebind<uint8_t, D32> d8;
        const hn::RebindToSigned<D32> ds;
        const auto code = hn::BitCast(ds, hn::PromoteTo(d, hn::LoadU(d8, stored)));
        const auto in_range = hn::And(hn::Gt(code, hn::Set(ds, lowest - 1)), hn::Gt(hn::Set(ds, highest + 1), code));
        if (!hn::AllTrue(ds, in_range)) return false;
        const auto field = hn::Sub(code, hn::Set(ds, detail::fraction_bits<element>));
        hn::Store(hn::BitCast(df, hn::ShiftLeft<23>(field)), df, factors);
        if constexpr (decoder::add_exponent) hn::Store(hn::Sub(code, hn::Set(ds, 127)), ds, exponents);
    } else {
        VF value = hn::Zero(df);
        if (!load_scales<S>(stored, value)) return false;
        if constexpr (S::has_tensor_scale) value = hn::Mul(value, hn::Set(df, multiplier));
        hn::Store(value, df, factors);
        if constexpr (S::has_zero_point) unpack<4>(q.zero_row(row), j, count, zero_points);
        if constexpr (requires { S::fixed_zero_point; }) {
            for (uint8_t& z : zero_points) z = static_cast<uint8_t>(S::fixed_zero_point);
        }
    }
    const uint8_t* const from = q.code_row(row) + j * block / 8 * bits;
    Target* const to = y.row(row) + j * block;
    const int64_t step = static_cast<int64_t>(hn::Lanes(D8())), total = block * count;
    quarter_scales scales;
    const VF least = hn::Set(df, smallest_normal_factor<element>);
    scales.converts = have_bf16_conversion() && hn::AllTrue(df, hn::Ge(hn::Load(df, factors), least));
    for (int64_t e = 0; e < total; e += step) {
        for (size_t part = 0; part < 4; ++part) {
            const size_t b = (static_cast<size_t>(e) + part * lanes) / block;
            if constexpr (decoder::add_exponent)
                scales.exponent[part] = exponents[b];
            else
                scales.factor[part] = factors[b];
            if constexpr (integer_format<element>) scales.zero_point[part] = zero_points[b];
        }
        decoder::decode(from + e / 8 * bits, scales, to + e, stream);
    }
    return true;
}

/// Dequantizes scale rows [first, last) of `q` into `y`, whose shapes agree; rows [first, last) where a block has all
/// rows.
template <class S, class Target>
void dequantize_rows(quantized_view<const S> q, matrix_view<Target> y, int64_t first, int64_t last) {
    if constexpr (!begins_on_bytes<S>) {
        detail::reference_values<S>(q, y, first, last);
    } else {
        const bool stream = y.shape.rows * y.shape.cols * static_cast<int64_t>(sizeof(Target)) >= stream_threshold;
        float multiplier = 1;
        if constexpr (S::has_tensor_scale) {
            if (q.parts().tensor_scale != nullptr) multiplier = *q.parts().tensor_scale;
        }
        const int64_t blocks = q.scale_shape().cols;
        constexpr bool one_row = S::block.rows == whole;
        for (int64_t unit = first; unit < last; ++unit) {
            const int64_t i = one_row ? 0 : unit;
            const int64_t r0 = one_row ? unit : unit * S::block.rows;
            const int64_t r1 = one_row ? unit + 1 : r0 + numfmt::detail::min(y.shape.rows - r0, S::block.rows);
            for (int64_t row = r0; row < r1; ++row) {
                int64_t j = 0;
                if constexpr (has_groups<S>) {
                    const int64_t whole_blocks = y.shape.cols / S::block.cols,
                                  chunk = static_cast<int64_t>(hn::Lanes(D8()));
                    const bool aligned = reinterpret_cast<uintptr_t>(y.row(row)) % hn::Lanes(D8()) == 0;
                    for (int64_t n = group_size<S>(whole_blocks, chunk); n > 0;
                         n = group_size<S>(whole_blocks - j, chunk)) {
                        if (!decode_group<S>(q, y, row, j, n, multiplier, stream && aligned))
                            decode_blocks<S>(q, y, i, row, j, j + n, multiplier, false);
                        j += n;
                    }
                }
                decode_blocks<S>(q, y, i, row, j, blocks, multiplier, stream);
            }
        }
        if (stream) hwy::FlushStream();
    }
}

#else   // HWY_SCALAR: the reference

template <class S, class Target>
void dequantize_rows(quantized_view<const S> q, matrix_view<Target> y, int64_t first, int64_t last) {
    detail::reference_values<S>(q, y, first, last);
}
#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace numfmt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
