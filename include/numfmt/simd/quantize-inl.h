// SPDX-License-Identifier: MIT
// Quantize and dequantize with Google Highway, compiled once per target: one pass over a block finds its range, chooses
// the scale, encodes and packs. Bit for bit equal to block/quantize.hpp, whose functions choose every scale that is not
// on the short path here.
//
// A power-of-two scale is applied by a float multiplication, which is exact wherever it is used: blocks whose scale is
// so small or so large that a subnormal could matter (or be flushed) go to the reference.
#if defined(NUMFMT_SIMD_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMFMT_SIMD_QUANTIZE_INL_H_
#undef NUMFMT_SIMD_QUANTIZE_INL_H_
#else
#define NUMFMT_SIMD_QUANTIZE_INL_H_
#endif

#include "../fp8.hpp"
#include "codec-inl.h"
#include "reference.hpp"

HWY_BEFORE_NAMESPACE();
namespace numfmt {
namespace simd {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

// --- range of a block
// --------------------------------------------------------------------------------------------------

HWY_INLINE V32 magnitude_bits(VF v) {
    return hn::And(hn::BitCast(D32(), v), hn::Set(D32(), numfmt::detail::f32_abs_mask));
}

/// Extends `range` by x[0..n), as detail::extend of the reference; its extremes only where asked for.
template <bool Extremes, class Source>
void extend_range(numfmt::detail::block_range& range, const Source* x, int64_t n) {
    const D32 d;
    const hn::RebindToSigned<D32> ds;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));

    const V32 infinity = hn::Set(d, numfmt::detail::f32_infinity);
    V32 any0 = hn::Zero(d), any1 = any0, finite0 = any0, finite1 = any0;
    auto low = hn::Set(ds, 0x7FFFFFFF), high = hn::Set(ds, -0x7FFFFFFF);
    const auto add = [&](VF v, V32& any, V32& finite) NUMFMT_SIMD_LAMBDA {
        const V32 a = magnitude_bits(v);
        const auto is_finite = greater_than(infinity, a);
        any = hn::Max(any, a);
        finite = hn::Max(finite, hn::IfThenElseZero(is_finite, a));
        if constexpr (Extremes) {
            const auto i = hn::BitCast(ds, v);
            const auto key = hn::Xor(i, hn::And(hn::BroadcastSignBit(i), hn::Set(ds, 0x7FFFFFFF)));
            const auto m = hn::RebindMask(ds, is_finite);
            low = hn::Min(low, hn::IfThenElse(m, key, hn::Set(ds, 0x7FFFFFFF)));
            high = hn::Max(high, hn::IfThenElse(m, key, hn::Set(ds, -0x7FFFFFFF)));
        }
    };
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        add(load_floats(x + i), any0, finite0);
        add(load_floats(x + i + lanes), any1, finite1);
    }
    for (; i + lanes <= n; i += lanes) add(load_floats(x + i), any0, finite0);
    range.any = numfmt::detail::max(range.any, hn::GetLane(hn::MaxOfLanes(d, hn::Max(any0, any1))));
    range.amax = numfmt::detail::max(range.amax, hn::GetLane(hn::MaxOfLanes(d, hn::Max(finite0, finite1))));
    if constexpr (Extremes) {
        range.low = numfmt::detail::min(range.low, hn::GetLane(hn::MinOfLanes(ds, low)));
        range.high = numfmt::detail::max(range.high, hn::GetLane(hn::MaxOfLanes(ds, high)));
    }
    if (i < n) {
        float rest[16];
        const int count = static_cast<int>(n - i);
        for (int j = 0; j < count; ++j) rest[j] = static_cast<float>(x[i + j]);
        numfmt::detail::extend<std::conditional_t<Extremes, detail::integer_elements, detail::float_elements>>(
            range, rest, count);
    }
}

// What block_reduction() gathers: a lane-wise leaf of some floats, and how two vectors combine.
struct magnitudes {
    using D = D32;
    static HWY_INLINE V32 leaf(VF v) { return magnitude_bits(v); }
    static HWY_INLINE V32 combine(V32 a, V32 b) { return hn::Max(a, b); }
};
struct lows {
    using D = DF;
    static HWY_INLINE VF leaf(VF v) { return v; }
    static HWY_INLINE VF combine(VF a, VF b) { return hn::Min(a, b); }
};
struct highs {
    using D = DF;
    static HWY_INLINE VF leaf(VF v) { return v; }
    static HWY_INLINE VF combine(VF a, VF b) { return hn::Max(a, b); }
};

// The reductions of `Count` blocks of `Block` elements, one block per lane, Count being Lanes(D32()) at the outermost
// call. Lanes past block `last` repeat it.
template <class Reduction, int Block, int Count, class Source>
HWY_INLINE hn::Vec<typename Reduction::D> block_reduction(const Source* x, int64_t first, int64_t last) {
    const typename Reduction::D d;
    if constexpr (Count == 1) {
        const size_t lanes = hn::Lanes(d);
        const Source* const from = x + Block * (first < last ? first : last);
        auto m = Reduction::leaf(load_floats(from));
        for (size_t i = lanes; i < Block; i += lanes) m = Reduction::combine(m, Reduction::leaf(load_floats(from + i)));
        return m;
    } else {
        const auto a = block_reduction<Reduction, Block, Count / 2>(x, first, last);
        const auto b = block_reduction<Reduction, Block, Count / 2>(x, first + Count / 2, last);
        return Reduction::combine(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
    }
}
template <class Reduction, int Block, class Source>
HWY_INLINE hn::Vec<typename Reduction::D> block_reduction(const Source* x, int64_t count) {
    const size_t lanes = hn::Lanes(D32());
    if constexpr (HWY_MAX_BYTES >= 64) {
        if (lanes == 16) return block_reduction<Reduction, Block, 16>(x, 0, count - 1);
    }
    if constexpr (HWY_MAX_BYTES >= 32) {
        if (lanes == 8) return block_reduction<Reduction, Block, 8>(x, 0, count - 1);
    }
    return block_reduction<Reduction, Block, 4>(x, 0, count - 1);
}

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
    const D16 d;
    const V16 a = hn::BitCast(d, lo), b = hn::BitCast(d, hi);
    return join(hn::Or(a, hn::ShiftRight<4>(a)), hn::Or(b, hn::ShiftRight<4>(b)));
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
    alignas(64) static constexpr detail::triple_index<true> index{};
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
HWY_INLINE V8 load_packed6(const uint8_t* from) {
#if NUMFMT_SIMD_HAVE_VBMI
    // Three bytes to the bottom of each 32-bit lane, then six bits to each byte.
    alignas(64) static constexpr detail::triple_index<false> index{};
    const __m512i words =
        _mm512_permutexvar_epi8(_mm512_load_si512(index.bytes), _mm512_maskz_loadu_epi8(0xFFFFFFFFFFFFull, from));
    const __m512i codes = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x322C2620120C0600), words);
    return V8{_mm512_and_si512(codes, _mm512_set1_epi8(0x3F))};
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
    // Each 32-bit word twice, then bits 4 j .. 4 j + 7 of it to byte j; whoever reads the codes masks them.
    alignas(64) static constexpr detail::nibble_index index{};
    const __m512i words =
        _mm512_permutexvar_epi8(_mm512_load_si512(index.bytes),
                                _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
    const __m512i nibbles = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x1C1814100C080400), words);
    return V8{_mm512_and_si512(nibbles, _mm512_set1_epi8(15))};
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

// --- encoding under a given scale
// ----------------------------------------------------------------------------------------

enum class element_path { plain, stochastic, integer };

// What a run of elements is encoded with.
struct run_state {
    detail::encode_constants k;
    float inverse = 1;     // elements are multiplied by this,
    float divisor = 0;     // or divided by this if it is not 0
    float zero_point = 0;  // unsigned integer elements: added after rounding
    draws* random = nullptr;
};

// The nearest integer to v / divisor, ties to even, plus zero_point, far beyond the codes of int4 clamped. The product
// with the reciprocal has the same nearest integer unless it lies within its error (below 2^-17 for quotients below 64)
// of a tie: only then is the division needed.
HWY_INLINE VF rounded_quotient(VF v, VF inverse, VF divisor, VF zero_point) {
    const DF df;
    const VF least = hn::Set(df, -64.0f), most = hn::Set(df, 64.0f);
    const VF product = hn::Min(hn::Max(hn::Mul(v, inverse), least), most);
    VF rounded = hn::ConvertTo(df, hn::NearestInt(product));
    const auto certain = hn::Lt(hn::Abs(hn::Sub(product, rounded)), hn::Set(df, 0.5f - 0x1p-16f));
    if (HWY_UNLIKELY(!hn::AllTrue(df, certain)))
        rounded = hn::ConvertTo(df, hn::NearestInt(hn::Min(hn::Max(hn::Div(v, divisor), least), most)));
    return hn::Add(rounded, zero_point);
}

// Codes of 2 x Lanes(DF()) floats that the scale was applied to.
template <class Element, element_path P> HWY_INLINE V16 element_codes(VF lo, VF hi, const run_state& state) {
    const D16 d16;
    if constexpr (P == element_path::integer) {
        constexpr int_spec spec = Element::spec;
        const DF df;
        const auto one = [&](VF v) NUMFMT_SIMD_LAMBDA {
            // Clamped first: rounding keeps the order, and the conversion to integer stays in range.
            v = hn::Max(v, hn::Set(df, static_cast<float>(spec.min_code)));
            v = hn::Min(v, hn::Set(df, static_cast<float>(spec.max_code)));
            return hn::And(hn::BitCast(D32(), hn::NearestInt(v)), hn::Set(D32(), spec.code_mask()));
        };
        return hn::ConcatEven(d16, hn::BitCast(d16, one(hi)), hn::BitCast(d16, one(lo)));
    } else if constexpr (P == element_path::stochastic) {
        const D32 d;
        const V32 a = encode32<Element, true>(hn::BitCast(d, lo), state.random->next(), state.k);
        const V32 b = encode32<Element, true>(hn::BitCast(d, hi), state.random->next(), state.k);
        return hn::ConcatEven(d16, hn::BitCast(d16, b), hn::BitCast(d16, a));
    } else {
        return encode16<Element, true>(fold(lo, hi), state.k);
    }
}

// One chunk (chunk_elements<Bits>() elements) of packed codes. `scaled(i)` gives elements i .. i + Lanes(DF()) - 1 with
// the scale applied.
template <class Element, int Bits, element_path P, class Scaled>
HWY_INLINE void encode_chunk(const Scaled& scaled, const run_state& state, uint8_t* to, bool stream) {
    const size_t n = hn::Lanes(DF());
    const auto codes16 = [&](size_t i)
                             NUMFMT_SIMD_LAMBDA { return element_codes<Element, P>(scaled(i), scaled(i + n), state); };
    const auto codes8 = [&](size_t i) NUMFMT_SIMD_LAMBDA {
        const V16 lo = codes16(i);
        const V16 hi = codes16(i + 2 * n);
        return join(lo, hi);
    };
    if constexpr (Bits == 8) {
        store(codes8(0), D8(), to, stream);
    } else if constexpr (Bits == 6) {
        store_packed6(codes8(0), to);
    } else {
        const V8 lo = codes8(0);
        const V8 hi = codes8(4 * n);
        store(pack_nibbles(lo, hi), D8(), to, stream);
    }
}

// x[0..n) to packed codes from `to` on, whole bytes but for the last one, whose unused bits become zero.
template <class Element, int Bits, element_path P, class Source>
HWY_NOINLINE void encode_run(const Source* x, int64_t n, uint8_t* to, const run_state& state, bool stream) {
    const int64_t step = chunk_elements<Bits>();
    const DF df;
    const VF inverse = hn::Set(df, state.inverse), divisor = hn::Set(df, state.divisor);
    const auto run = [&](const Source* from, uint8_t* out, bool nt) NUMFMT_SIMD_LAMBDA {
        if constexpr (P == element_path::integer && !Element::spec.is_signed) {
            const VF zero_point = hn::Set(df, state.zero_point);
            const auto scaled = [&](size_t i) NUMFMT_SIMD_LAMBDA {
                return rounded_quotient(load_floats(from + i), inverse, divisor, zero_point);
            };
            encode_chunk<Element, Bits, P>(scaled, state, out, nt);
        } else if (state.divisor != 0) {
            const auto scaled = [&](size_t i) NUMFMT_SIMD_LAMBDA { return hn::Div(load_floats(from + i), divisor); };
            encode_chunk<Element, Bits, P>(scaled, state, out, nt);
        } else {
            const auto scaled = [&](size_t i) NUMFMT_SIMD_LAMBDA { return hn::Mul(load_floats(from + i), inverse); };
            encode_chunk<Element, Bits, P>(scaled, state, out, nt);
        }
    };
    if (stream && reinterpret_cast<uintptr_t>(to) % hn::Lanes(D8()) != 0) stream = false;
    int64_t i = 0;
    for (; i + step <= n; i += step) run(x + i, to + i / 8 * Bits, stream);
    if (i < n) {
        alignas(64) Source in[2 * max_lanes8] = {};
        alignas(64) uint8_t out[max_lanes8];
        const int64_t count = n - i;
        std::memcpy(static_cast<void*>(in), x + i, static_cast<size_t>(count) * sizeof(Source));
        run(in, out, false);
        const int64_t bytes = packed_row_bytes(count, Bits);
        const int used = static_cast<int>(count * Bits % 8);
        if (used != 0) out[bytes - 1] = static_cast<uint8_t>(out[bytes - 1] & ((1u << used) - 1u));
        std::memcpy(to + i / 8 * Bits, out, static_cast<size_t>(bytes));
    }
}

// Range of exponents e for which x * 2^-e is formed exactly by a float multiplication, or is so small that it encodes
// to zero under every rounding (stochastic compares 32 bits of the fraction), subnormals of x flushed or not.
template <class Element> constexpr int lowest_safe_exponent() {
    if constexpr (integer_format<Element>)
        return -126 + Element::spec.fraction_bits + 33;
    else
        return -126 - (Element::spec.min_exponent() - Element::spec.mantissa_bits) + 33;
}
inline constexpr int highest_safe_exponent = 126;

// Encodes rows [r0, r1) x columns [c0, c1) of x under one scale.
template <class S, class Source>
void encode_block(matrix_view<const Source> x, int64_t r0, int64_t r1, int64_t c0, int64_t c1,
                  const quantized_view<S>& out, const numfmt::detail::block_scale<S>& scale, bool finite, rounding r,
                  const quantize_options& options, bool stream) {
    using element = typename S::element;
    constexpr int bits = scheme_traits<S>::element_bits;
    const bool stochastic = r == rounding::stochastic;
    bool fast = !scale.poisoned;
    run_state state;
    if constexpr (scheme_traits<S>::power_of_two_scale) {
        fast = fast && scale.exponent >= lowest_safe_exponent<element>() && scale.exponent <= highest_safe_exponent;
        if (fast) state.inverse = numfmt::detail::exact_pow2(-scale.exponent);
    } else if constexpr (integer_format<element>) {
        state.inverse = 1.0f / scale.value;
        state.divisor = scale.value;
        state.zero_point = static_cast<float>(scale.zero_point);
    } else {
        state.inverse = scale.inverse;
        if (!S::has_tensor_scale && options.division == scale_division::divide) state.divisor = scale.value;
    }
    if constexpr (integer_format<element>) {
        fast = fast && finite && r == rounding::nearest_even && detail::rounds_to_nearest();
        if constexpr (element::spec.is_signed) state.inverse *= numfmt::detail::exact_pow2(element::spec.fraction_bits);
    } else {
        state.k = detail::make_constants<element>(r, options.element);
        fast = fast && (stochastic || state.k.plain);
    }
    for (int64_t row = r0; row < r1; ++row) {
        const Source* const from = x.row(row) + c0;
        uint8_t* const to = out.code_row(row) + c0 / 8 * bits + c0 % 8 * bits / 8;
        const uint64_t index =
            static_cast<uint64_t>(row) * static_cast<uint64_t>(x.shape.cols) + static_cast<uint64_t>(c0);
        if (!fast) {
            detail::reference_run<S>(scale, from, c1 - c0, out.code_row(row), c0, r, options, index);
        } else if constexpr (integer_format<element>) {
            encode_run<element, bits, element_path::integer>(from, c1 - c0, to, state, stream);
        } else if (stochastic) {
            draws random(options.seed, options.offset + index);
            state.random = &random;
            encode_run<element, bits, element_path::stochastic>(from, c1 - c0, to, state, false);
        } else {
            encode_run<element, bits, element_path::plain>(from, c1 - c0, to, state, stream);
        }
    }
}

// Chooses the scale of block (i, j), stores it, and encodes the block.
template <class S, class Source>
void quantize_block(matrix_view<const Source> x, const quantized_view<S>& out, numfmt::detail::tensor_scale tensor,
                    int64_t i, int64_t j, rounding r, const quantize_options& options, bool stream) {
    // An extent of `whole` has only index 0; the product must not be formed for others' sake.
    const int64_t r0 = i == 0 ? 0 : i * S::block.rows, c0 = j == 0 ? 0 : j * S::block.cols;
    const int64_t r1 = r0 + numfmt::detail::min(x.shape.rows - r0, S::block.rows);
    const int64_t c1 = c0 + numfmt::detail::min(x.shape.cols - c0, S::block.cols);
    numfmt::detail::block_range range;
    for (int64_t row = r0; row < r1; ++row)
        extend_range<integer_format<typename S::element>>(range, x.row(row) + c0, c1 - c0);
    const auto scale = numfmt::detail::choose_scale<S>(range, tensor, options);
    out.scale(i, j) = scale.stored;
    if constexpr (S::has_zero_point) pack<4>(&scale.zero_point, 1, out.zero_row(i), j);
    encode_block<S>(x, r0, r1, c0, c1, out, scale, !range.nonfinite(), r, options, stream);
}

/// Encodes rows [first, last) of a tensor with one scale, chosen from the range of all its rows. The scale itself is
/// stored by the caller, once.
template <class S, class Source>
void quantize_rows_under(matrix_view<const Source> x, const quantized_view<S>& out,
                         const numfmt::detail::block_range& range, rounding r, const quantize_options& options,
                         int64_t first, int64_t last) {
    static_assert(!S::has_zero_point);
    const bool stream = x.shape.rows * x.shape.cols * static_cast<int64_t>(sizeof(Source)) >= stream_threshold;
    const auto scale = numfmt::detail::choose_scale<S>(range, {}, options);
    encode_block<S>(x, first, last, 0, x.shape.cols, out, scale, !range.nonfinite(), r, options, stream);
    if (stream) hwy::FlushStream();
}

// --- many small blocks at once
// -------------------------------------------------------------------------------------------

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

// The scales of a group, one block per entry.
struct group_scales {
    alignas(64) uint32_t stored[16];
    alignas(64) float factors[16];   // elements are multiplied by these,
    alignas(64) float divisors[16];  // or divided by these
    alignas(64) float zero_points[16];
};

// Power-of-two scales, from the largest magnitudes. This and the next three: false where a block needs the reference.
template <class S> HWY_INLINE bool choose_exponents(V32 maxima, const quantize_options& options, group_scales& g) {
    using element = typename S::element;
    const D32 d;
    const DF df;
    constexpr uint32_t emax = static_cast<uint32_t>(element::spec.max_exponent());
    constexpr int lowest = lowest_safe_exponent<element>() + 127, highest = highest_safe_exponent + 127;
    const V32 floor = hn::Set(d, bit_cast<uint32_t>(options.amax_floor > 0 ? options.amax_floor : 0.0f));
    const V32 amax = hn::Max(maxima, floor);
    const V32 add = hn::Set(d, numfmt::detail::scale_rule_addend<element>(options.scale_rule));
    const V32 raised = hn::ShiftRight<23>(hn::Add(amax, add));
    const V32 code = hn::Sub(hn::Max(raised, hn::Set(d, emax)), hn::Set(d, emax));
    const auto zero = hn::Eq(amax, hn::Zero(d));
    const auto in_range = hn::And(greater_than(code, hn::Set(d, static_cast<uint32_t>(lowest - 1))),
                                  greater_than(hn::Set(d, static_cast<uint32_t>(highest + 1)), code));
    if (!hn::AllTrue(d, hn::Or(zero, in_range))) return false;
    const V32 factor =
        hn::ShiftLeft<23>(hn::Sub(hn::Set(d, static_cast<uint32_t>(254 + detail::fraction_bits<element>)), code));
    hn::Store(hn::IfThenZeroElse(zero, code), d, g.stored);
    hn::Store(hn::BitCast(df, hn::IfThenElse(zero, hn::Set(d, 0x3F800000u), factor)), df, g.factors);
    return true;
}

// As choose_two_level_scale() of the reference, for finite blocks.
template <class S>
HWY_INLINE bool choose_two_level_scales(V32 maxima, numfmt::detail::tensor_scale tensor,
                                        const quantize_options& options, group_scales& g) {
    using scale_format = typename S::scale;
    constexpr float largest = numfmt::detail::largest_element<typename S::element>();
    const D32 d;
    const DF df;
    const bool torchao = options.nvfp4_order == nvfp4_order::torchao;
    const VF amax = hn::BitCast(df, maxima);
    VF t = hn::Mul(amax, hn::Set(df, tensor.inverse * (1.0f / largest)));
    if (torchao) {
        t = hn::Div(hn::Div(amax, hn::Set(df, largest)), hn::Set(df, tensor.multiplier));
        t = hn::Min(hn::Max(t, hn::Set(df, 0.015625f)), hn::Set(df, 448.0f));
    }
    constexpr detail::encode_constants k =
        detail::make_constants<scale_format>(rounding::nearest_even, {.overflow = overflow::saturate});
    const V32 codes = encode32<scale_format, false>(hn::BitCast(d, t), hn::Zero(d), k);
    hn::Store(codes, d, g.stored);
    static constexpr detail::value_table<scale_format> table{};
    for (size_t i = 0; i < hn::Lanes(d); ++i) g.factors[i] = table.value[g.stored[i]];
    const VF value = hn::Load(df, g.factors);
    const VF inverse = torchao ? hn::Div(hn::Set(df, tensor.inverse), value)
                               : hn::Min(hn::Div(hn::Set(df, 1.0f), hn::Mul(value, hn::Set(df, tensor.multiplier))),
                                         hn::Set(df, numfmt::detail::largest_float));
    hn::Store(inverse, df, g.factors);
    return true;
}

// fp32 scales of float elements: amax / largest.
template <class S> HWY_INLINE bool choose_float_scales(V32 maxima, const quantize_options& options, group_scales& g) {
    const DF df;
    const VF amax = hn::Max(hn::BitCast(df, maxima), hn::Set(df, options.amax_floor));
    VF s = hn::Div(amax, hn::Set(df, numfmt::detail::largest_element<typename S::element>()));
    s = hn::Max(s, hn::Set(df, numfmt::detail::smallest_fp32_scale));
    hn::Store(hn::BitCast(D32(), s), D32(), g.stored);
    hn::Store(hn::Div(hn::Set(df, 1.0f), s), df, g.factors);
    hn::Store(s, df, g.divisors);
    return true;
}

// As choose_int4_scale() of the reference, for finite blocks.
template <class S, class Source>
HWY_INLINE bool choose_int4_scales(V32 maxima, const Source* x, int64_t count, const quantize_options& options,
                                   group_scales& g) {
    constexpr int block = static_cast<int>(S::block.cols);
    constexpr float levels = static_cast<float>(S::element::spec.max_code);
    const D32 d;
    const DF df;
    const VF zero = hn::Zero(df), floor = hn::Set(df, options.amax_floor);
    VF low = block_reduction<lows, block>(x, count), high = block_reduction<highs, block>(x, count);
    VF s = zero;
    if constexpr (S::has_zero_point) {
        if (options.int4_range == int4_range::include_zero) {
            low = hn::Min(low, zero);
            high = hn::Max(high, zero);
        }
        const VF difference = hn::Max(hn::Sub(high, low), floor);
        if (!hn::AllTrue(d, greater_than(hn::Set(d, numfmt::detail::f32_infinity), magnitude_bits(difference))))
            return false;
        s = hn::Div(difference, hn::Set(df, levels));
    } else {
        const VF amax = hn::Max(hn::BitCast(df, maxima), floor);
        switch (options.int4_symmetric_range) {
            case int4_symmetric_range::within_7:
                s = hn::Div(amax, hn::Set(df, 7.0f));
                break;
            case int4_symmetric_range::full_range:
                s = hn::Div(amax, hn::Set(df, 7.5f));
                break;
            case int4_symmetric_range::no_clipping:
                s = hn::Max(hn::Div(hn::Neg(low), hn::Set(df, 8.0f)), hn::Div(high, hn::Set(df, 7.0f)));
                s = hn::Max(s, hn::Set(df, options.amax_floor / 7.0f));
                break;
        }
    }
    if (options.amax_floor == 0) {
        const auto all_zero = hn::RebindMask(df, hn::Eq(maxima, hn::Zero(d)));
        s = hn::IfThenElse(all_zero, hn::Set(df, numfmt::detail::zero_group_range / levels), s);
    }
    s = hn::Max(s, hn::Set(df, numfmt::detail::smallest_fp32_scale));
    VF value = s;
    if constexpr (std::is_same_v<typename S::scale, float>) {
        hn::Store(hn::BitCast(d, s), d, g.stored);
    } else {
        constexpr detail::encode_constants k =
            detail::make_constants<typename S::scale>(rounding::nearest_even, {.overflow = overflow::saturate});
        const V32 code = hn::Max(encode32<typename S::scale, false>(hn::BitCast(d, s), hn::Zero(d), k), hn::Set(d, 1));
        hn::Store(code, d, g.stored);
        alignas(64) typename S::scale scales[16];
        for (size_t i = 0; i < hn::Lanes(d); ++i)
            scales[i] = S::scale::from_bits(static_cast<typename S::scale::storage>(g.stored[i]));
        value = load_floats(scales);
    }
    hn::Store(value, df, g.divisors);
    hn::Store(hn::Div(hn::Set(df, 1.0f), value), df, g.factors);
    if constexpr (S::has_zero_point) {
        // -round(low / value), clamped to the codes.
        const VF quotient = hn::Max(hn::Min(hn::Div(low, value), zero), hn::Set(df, -levels));
        hn::Store(hn::Neg(hn::ConvertTo(df, hn::NearestInt(quotient))), df, g.zero_points);
    } else {
        hn::Store(hn::Set(df, static_cast<float>(S::fixed_zero_point)), df, g.zero_points);
    }
    return true;
}

template <class S, class Source>
HWY_INLINE bool choose_scales(const Source* x, int64_t count, numfmt::detail::tensor_scale tensor,
                              const quantize_options& options, group_scales& g) {
    const D32 d;
    const V32 maxima = block_reduction<magnitudes, static_cast<int>(S::block.cols)>(x, count);
    if (!hn::AllTrue(d, greater_than(hn::Set(d, numfmt::detail::f32_infinity), maxima))) return false;
    if constexpr (scheme_traits<S>::power_of_two_scale)
        return choose_exponents<S>(maxima, options, g);
    else if constexpr (S::has_tensor_scale)
        return choose_two_level_scales<S>(maxima, tensor, options, g);
    else if constexpr (integer_format<typename S::element>)
        return choose_int4_scales<S>(maxima, x, count, options, g);
    else
        return choose_float_scales<S>(maxima, options, g);
}

template <class S> HWY_INLINE typename scheme_traits<S>::scale_storage stored_scale(uint32_t bits) {
    if constexpr (std::is_same_v<typename S::scale, float>)
        return bit_cast<float>(bits);
    else
        return static_cast<typename scheme_traits<S>::scale_storage>(bits);
}

// Quantizes `count` blocks of row `row` from block j on. False: nothing was written, the reference has to do it.
template <class S, element_path P, class Source>
HWY_INLINE bool quantize_group(matrix_view<const Source> x, const quantized_view<S>& out,
                               numfmt::detail::tensor_scale tensor, int64_t row, int64_t j, int64_t count,
                               run_state& state, const quantize_options& options, bool stream) {
    using element = typename S::element;
    constexpr int bits = scheme_traits<S>::element_bits;
    constexpr int block = static_cast<int>(S::block.cols);
    const DF df;
    group_scales g;
    const Source* const from = x.row(row) + j * block;
    if (!choose_scales<S>(from, count, tensor, options, g)) return false;
    if (out.parts().layout == scale_layout::row_major) {
        auto* const to = &out.scale(row, j);
        for (int64_t b = 0; b < count; ++b) to[b] = stored_scale<S>(g.stored[b]);
    } else {
        for (int64_t b = 0; b < count; ++b) out.scale(row, j + b) = stored_scale<S>(g.stored[b]);
    }
    if constexpr (S::has_zero_point) {
        uint8_t zero_points[16];
        for (int64_t b = 0; b < count; ++b) zero_points[b] = static_cast<uint8_t>(g.zero_points[b]);
        pack<4>(zero_points, count, out.zero_row(row), j);
    }
    uint8_t* const to = out.code_row(row) + j * block / 8 * bits;
    if constexpr (P == element_path::stochastic) {
        state.random->seek(options.offset + static_cast<uint64_t>(row) * static_cast<uint64_t>(x.shape.cols) +
                           static_cast<uint64_t>(j * block));
    }
    constexpr bool by_quotient = integer_format<element> && !scheme_traits<S>::power_of_two_scale;
    constexpr bool may_divide = !scheme_traits<S>::power_of_two_scale && !S::has_tensor_scale;
    const bool divide = may_divide && options.division == scale_division::divide;
    const int64_t step = chunk_elements<bits>(), total = block * count;
    for (int64_t i = 0; i < total; i += step) {
        const auto scaled = [&](size_t k) NUMFMT_SIMD_LAMBDA {
            const size_t at = static_cast<size_t>(i) + k, b = at / block;
            const VF v = load_floats(from + at);
            if constexpr (by_quotient) {
                return rounded_quotient(v, hn::Set(df, g.factors[b]), hn::Set(df, g.divisors[b]),
                                        hn::Set(df, g.zero_points[b]));
            } else {
                if constexpr (may_divide) {
                    if (divide) return hn::Div(v, hn::Set(df, g.divisors[b]));
                }
                return hn::Mul(v, hn::Set(df, g.factors[b]));
            }
        };
        encode_chunk<element, bits, P>(scaled, state, to + i / 8 * bits, stream);
    }
    return true;
}

template <class S, element_path P, class Source>
void quantize_rows_of_groups(matrix_view<const Source> x, const quantized_view<S>& out,
                             numfmt::detail::tensor_scale tensor, int64_t row0, int64_t row1, rounding r,
                             const quantize_options& options, bool stream) {
    run_state state;
    if constexpr (float_format<typename S::element>)
        state.k = detail::make_constants<typename S::element>(r, options.element);
    draws random(options.seed, options.offset);
    state.random = &random;
    const int64_t blocks = out.scale_shape().cols, whole_blocks = x.shape.cols / S::block.cols;
    const int64_t chunk = chunk_elements<scheme_traits<S>::element_bits>();
    for (int64_t row = row0; row < row1; ++row) {
        const bool aligned = reinterpret_cast<uintptr_t>(out.code_row(row)) % hn::Lanes(D8()) == 0;
        int64_t j = 0;
        for (int64_t count = group_size<S>(whole_blocks, chunk); count > 0;
             count = group_size<S>(whole_blocks - j, chunk)) {
            if (!quantize_group<S, P>(x, out, tensor, row, j, count, state, options, stream && aligned)) {
                for (int64_t b = j; b < j + count; ++b) quantize_block<S>(x, out, tensor, row, b, r, options, false);
            }
            j += count;
        }
        for (; j < blocks; ++j) quantize_block<S>(x, out, tensor, row, j, r, options, false);
    }
}

/// Quantizes scale rows [first, last) of `x` into `out`, whose shapes agree. `tensor`: for two-level schemes.
template <class S, class Source>
void quantize_rows(matrix_view<const Source> x, quantized_view<S> out, numfmt::detail::tensor_scale tensor, rounding r,
                   const quantize_options& options, int64_t first, int64_t last) {
    using element = typename S::element;
    // Only whole bytes can be written without reading what is there.
    if constexpr (!begins_on_bytes<S>) {
        detail::reference_rows<S>(x, out, tensor, r, options, first, last);
    } else {
        const bool stream = x.shape.rows * x.shape.cols * static_cast<int64_t>(sizeof(Source)) >= stream_threshold;
        bool groups = false;
        if constexpr (has_groups<S>) {
            using enum element_path;
            if constexpr (integer_format<element>) {
                groups = r == rounding::nearest_even && detail::rounds_to_nearest();
                if (groups) quantize_rows_of_groups<S, integer>(x, out, tensor, first, last, r, options, stream);
            } else if (r == rounding::stochastic) {
                groups = true;
                quantize_rows_of_groups<S, stochastic>(x, out, tensor, first, last, r, options, false);
            } else {
                groups = detail::make_constants<element>(r, options.element).plain;
                if (groups) quantize_rows_of_groups<S, plain>(x, out, tensor, first, last, r, options, stream);
            }
        }
        if (!groups) {
            const int64_t blocks = out.scale_shape().cols;
            for (int64_t i = first; i < last; ++i)
                for (int64_t j = 0; j < blocks; ++j) quantize_block<S>(x, out, tensor, i, j, r, options, stream);
        }
        if (stream) hwy::FlushStream();
    }
}

// --- decoding
// --------------------------------------------------------------------------------------------------------------

// Upper halves of the values of Lanes(D8()) codes.
template <class Element> HWY_INLINE void decode_codes(V8 codes, V16& lo, V16& hi) {
#if NUMFMT_SIMD_HAVE_VBMI
    __m512i low, high;
    plane_decoder<Element, float>::planes(codes.raw, low, high);
    lo = V16{interleave_planes<0>(low, high)};
    hi = V16{interleave_planes<1>(low, high)};
#else
    const D16 d;
    const hn::Half<D8> half;
    lo = decode16<Element>(hn::PromoteTo(d, hn::LowerHalf(half, codes)));
    hi = decode16<Element>(hn::PromoteTo(d, hn::UpperHalf(half, codes)));
#endif
}

// How codes become values: a factor, or an addend for the exponent, for each quarter of Lanes(D8()) codes.
struct quarter_scales {
    float factor[4] = {1, 1, 1, 1};
    int exponent[4] = {0, 0, 0, 0};  // of quarters 0 and 2, where exponents are added
    int zero_point[4] = {0, 0, 0, 0};

    static quarter_scales all(float factor, int exponent, int zero) {
        return {{factor, factor, factor, factor}, {exponent, exponent, exponent, exponent}, {zero, zero, zero, zero}};
    }
};

// S is a run_scheme.
template <class S, class Target> struct chunk_decoder {
    using element = typename S::element;
    // Byte planes widen to floats in one permutation each, and a multiplication scales them.
    static constexpr bool by_planes = NUMFMT_SIMD_HAVE_VBMI && float_format<element> && std::is_same_v<Target, float>;
    // Else, elements that are all finite can be scaled by adding to the exponents of their upper halves.
    static constexpr bool add_exponent = [] {
        if constexpr (!by_planes && scheme_traits<S>::power_of_two_scale && float_format<element>)
            return element::spec.specials == special_values::finite;
        else
            return false;
    }();

    // Lanes(D8()) codes to as many values.
    static HWY_INLINE void decode(V8 codes, const quarter_scales& scales, Target* y, bool stream) {
        const size_t n = hn::Lanes(DF());
        const D16 d16;
        const DF df;
        const VF f0 = hn::Set(df, scales.factor[0]), f1 = hn::Set(df, scales.factor[1]);
        const VF f2 = hn::Set(df, scales.factor[2]), f3 = hn::Set(df, scales.factor[3]);
        if constexpr (integer_format<element>) {
            const hn::Half<D8> half;
            const V16 lo = hn::PromoteTo(d16, hn::LowerHalf(half, codes)),
                      hi = hn::PromoteTo(d16, hn::UpperHalf(half, codes));
            put(hn::Mul(integer_values<0>(lo, scales.zero_point[0]), f0),
                hn::Mul(integer_values<1>(lo, scales.zero_point[1]), f1), y, stream);
            put(hn::Mul(integer_values<0>(hi, scales.zero_point[2]), f2),
                hn::Mul(integer_values<1>(hi, scales.zero_point[3]), f3), y + 2 * n, stream);
#if NUMFMT_SIMD_HAVE_VBMI
        } else if constexpr (by_planes) {
            __m512i low, high;
            plane_decoder<element, float>::planes(codes.raw, low, high);
            const auto part = [&](__m512i bits, VF factor)
                                  NUMFMT_SIMD_LAMBDA { return hn::Mul(hn::BitCast(df, V32{bits}), factor); };
            put(part(widen_planes<0>(low, high), f0), part(widen_planes<1>(low, high), f1), y, stream);
            put(part(widen_planes<2>(low, high), f2), part(widen_planes<3>(low, high), f3), y + 2 * n, stream);
#endif
        } else {
            V16 lo = hn::Zero(d16), hi = lo;
            decode_codes<element>(codes, lo, hi);
            if constexpr (add_exponent) {
                lo = raise(lo, scales.exponent[0]);
                hi = raise(hi, scales.exponent[2]);
                if constexpr (std::is_same_v<Target, bf16>) {
                    store(lo, d16, y, stream);
                    store(hi, d16, y + 2 * n, stream);
                } else {
                    put(widen_lower(lo), widen_upper(lo), y, stream);
                    put(widen_lower(hi), widen_upper(hi), y + 2 * n, stream);
                }
            } else {
                put(hn::Mul(widen_lower(lo), f0), hn::Mul(widen_upper(lo), f1), y, stream);
                put(hn::Mul(widen_lower(hi), f2), hn::Mul(widen_upper(hi), f3), y + 2 * n, stream);
            }
        }
    }

  private:
    static HWY_INLINE V16 raise(V16 h, int exponent) {
        const D16 d;
        const auto zero = hn::Eq(hn::And(h, hn::Set(d, 0x7FFF)), hn::Zero(d));
        return hn::IfThenElse(zero, h, hn::Add(h, hn::Set(d, static_cast<uint16_t>(exponent * 128))));
    }
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
    static HWY_INLINE void put(VF lo, VF hi, Target* y, bool stream) {
        const size_t n = hn::Lanes(DF());
        if constexpr (std::is_same_v<Target, float>) {
            store(lo, DF(), y, stream);
            store(hi, DF(), y + n, stream);
        } else {
            store(narrow<Target>(lo, hi), D16(), y, stream);
        }
    }
};

// y[0..n) from packed codes that start on a byte, all under one scale.
template <class S, class Target>
HWY_NOINLINE void decode_run(const quarter_scales& scales, const uint8_t* from, int64_t n, Target* y, bool stream) {
    using decoder = chunk_decoder<S, Target>;
    constexpr int bits = scheme_traits<S>::element_bits;
    const int64_t step = static_cast<int64_t>(hn::Lanes(D8()));
    if (stream && reinterpret_cast<uintptr_t>(y) % hn::Lanes(D8()) != 0) stream = false;
    int64_t i = 0;
    for (; i + step <= n; i += step) decoder::decode(load_codes<bits>(from + i / 8 * bits), scales, y + i, stream);
    if (i < n) {
        alignas(64) uint8_t in[max_lanes8] = {};
        alignas(64) Target out[max_lanes8];
        std::memcpy(in, from + i / 8 * bits, static_cast<size_t>(packed_row_bytes(n - i, bits)));
        decoder::decode(load_codes<bits>(in), scales, out, false);
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
            decode_run<detail::run_scheme<S>>(quarter_scales::all(factor, scale.exponent, scale.zero_point), from, n,
                                              y.row(row) + c0, stream);
        } else {
            detail::reference_run_values<S>(scale, q.code_row(row), c0, n, y.row(row) + c0);
        }
    }
}

// `count` blocks of a row from block j on. False: nothing was written, they have to be done one by one.
template <class S, class Target>
HWY_INLINE bool decode_group(const quantized_view<const S>& q, matrix_view<Target> y, int64_t row, int64_t j,
                             int64_t count, float multiplier, bool stream) {
    using element = typename S::element;
    using decoder = chunk_decoder<detail::run_scheme<S>, Target>;
    using storage = typename scheme_traits<S>::scale_storage;
    constexpr int bits = scheme_traits<S>::element_bits;
    constexpr int block = static_cast<int>(S::block.cols);
    const D32 d;
    const DF df;
    const size_t lanes = hn::Lanes(d);
    storage stored[16] = {};
    alignas(64) float factors[16];
    alignas(64) int32_t exponents[16];
    uint8_t zero_points[16] = {};
    for (int64_t b = 0; b < 16; ++b) stored[b] = q.scale(row, j + (b < count ? b : 0));
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
        for (size_t b = 0; b < lanes; ++b) factors[b] = numfmt::detail::load_scale<S>(stored[b]);
        const VF value = hn::Load(df, factors);
        const auto nan = greater_than(magnitude_bits(value), hn::Set(d, numfmt::detail::f32_infinity));
        if (!hn::AllFalse(d, nan)) return false;
        if constexpr (S::has_tensor_scale) hn::Store(hn::Mul(value, hn::Set(df, multiplier)), df, factors);
        if constexpr (S::has_zero_point) unpack<4>(q.zero_row(row), j, count, zero_points);
        if constexpr (requires { S::fixed_zero_point; }) {
            for (uint8_t& z : zero_points) z = static_cast<uint8_t>(S::fixed_zero_point);
        }
    }
    const uint8_t* const from = q.code_row(row) + j * block / 8 * bits;
    Target* const to = y.row(row) + j * block;
    const int64_t step = static_cast<int64_t>(hn::Lanes(D8())), total = block * count;
    for (int64_t e = 0; e < total; e += step) {
        quarter_scales scales;
        for (size_t part = 0; part < 4; ++part) {
            const size_t b = (static_cast<size_t>(e) + part * lanes) / block;
            if constexpr (decoder::add_exponent)
                scales.exponent[part] = exponents[b];
            else
                scales.factor[part] = factors[b];
            if constexpr (integer_format<element>) scales.zero_point[part] = zero_points[b];
        }
        decoder::decode(load_codes<bits>(from + e / 8 * bits), scales, to + e, stream);
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

/// Largest finite magnitude bits (`amax`) and largest magnitude bits (`any`) of rows [first, last) of `x`.
template <class S, class Source>
numfmt::detail::block_range range_of_rows(matrix_view<const Source> x, int64_t first, int64_t last) {
    numfmt::detail::block_range range;
    for (int64_t row = first; row < last; ++row)
        extend_range<integer_format<typename S::element>>(range, x.row(row), x.shape.cols);
    return range;
}

#else  // HWY_SCALAR: the reference

template <class S, class Source>
void quantize_rows_under(matrix_view<const Source> x, const quantized_view<S>& out,
                         const numfmt::detail::block_range& range, rounding r, const quantize_options& options,
                         int64_t first, int64_t last) {
    const auto scale = numfmt::detail::choose_scale<S>(range, {}, options);
    for (int64_t row = first; row < last; ++row) {
        detail::reference_run<S>(scale, x.row(row), x.shape.cols, out.code_row(row), 0, r, options,
                                 static_cast<uint64_t>(row) * static_cast<uint64_t>(x.shape.cols));
    }
}

template <class S, class Source>
void quantize_rows(matrix_view<const Source> x, quantized_view<S> out, numfmt::detail::tensor_scale tensor, rounding r,
                   const quantize_options& options, int64_t first, int64_t last) {
    detail::reference_rows<S>(x, out, tensor, r, options, first, last);
}
template <class S, class Target>
void dequantize_rows(quantized_view<const S> q, matrix_view<Target> y, int64_t first, int64_t last) {
    detail::reference_values<S>(q, y, first, last);
}
template <class S, class Source>
numfmt::detail::block_range range_of_rows(matrix_view<const Source> x, int64_t first, int64_t last) {
    numfmt::detail::block_range range;
    numfmt::detail::extend_by_rows<S>(range, x, first, last);
    return range;
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace numfmt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
