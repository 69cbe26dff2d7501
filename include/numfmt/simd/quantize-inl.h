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
#include "packing-inl.h"
#include "reference.hpp"

HWY_BEFORE_NAMESPACE();
namespace numfmt {
namespace simd {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

// --- range of a block
// --------------------------------------------------------------------------------------------------

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
    // In tall blocks this row's part of the next one, else what comes later in the row.
    const size_t ahead = numfmt::detail::min(static_cast<size_t>(n) * sizeof(Source), prefetch_distance);
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        prefetch_ahead<2 * (HWY_MAX_BYTES < 64 ? HWY_MAX_BYTES : 64) / 4>(x + i, ahead);
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
        // The first reduction of a group asks for a later one's memory: while elements are encoded none is read.
        if constexpr (std::is_same_v<Reduction, magnitudes>) prefetch_ahead<Block>(from, prefetch_distance);
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

// --- encoding under a given scale
// ----------------------------------------------------------------------------------------

// nearest: finite elements, to nearest even under the default policies; plain: as encode16()'s Plain.
enum class element_path { nearest, plain, stochastic, integer };

// What a run of elements is encoded with.
struct run_state {
    detail::encode_constants k;
    float inverse = 1;   // elements are multiplied by this,
    float divisor = 0;   // or divided by this if it is not 0
    int zero_point = 0;  // unsigned integer elements: added after rounding
    draws* random = nullptr;
};

// Whether a float element's path may be `nearest`.
template <class Element> HWY_INLINE bool may_be_nearest(rounding r, const detail::encode_constants& k) {
    return r == rounding::nearest_even && k.plain;
}

// Codes of 2 x Lanes(DF()) floats that the scale was applied to.
template <class Element, element_path P> HWY_INLINE V16 element_codes(VF lo, VF hi, const run_state& state) {
    if constexpr (P == element_path::stochastic) {
        const D32 d;
        const D16 d16;
        const V32 a = encode32<Element, true>(hn::BitCast(d, lo), state.random->next(), state.k);
        const V32 b = encode32<Element, true>(hn::BitCast(d, hi), state.random->next(), state.k);
        return hn::ConcatEven(d16, hn::BitCast(d16, b), hn::BitCast(d16, a));
    } else {
        return encode16 < Element, true, P != element_path::nearest > (fold(lo, hi), state.k);
    }
}

// Codes of Lanes(D8()) floats that the scale was applied to; integer elements come as integers.
template <class Element, element_path P, class V>
HWY_INLINE V8 element_bytes(V a, V b, V c, V d, const run_state& state) {
    if constexpr (P == element_path::integer) {
        constexpr int_spec spec = Element::spec;
        const V8 bytes = saturate_to_bytes<spec.is_signed>(a, b, c, d);
        if constexpr (spec.is_signed) {
            const hn::RebindToSigned<D8> ds;
            const auto clamped = hn::Max(hn::BitCast(ds, bytes), hn::Set(ds, static_cast<int8_t>(spec.min_code)));
            return hn::BitCast(D8(), hn::Min(clamped, hn::Set(ds, static_cast<int8_t>(spec.max_code))));
        } else {
            return hn::Min(bytes, hn::Set(D8(), static_cast<uint8_t>(spec.max_code)));
        }
    } else {
#if NUMFMT_SIMD_HAVE_AVX512
        if constexpr (P == element_path::nearest && nearest_even_encoder<Element>::serves)
            return nearest_even_encoder<Element>(state.k.cap)(a, b, c, d);
#endif
        const V16 low = element_codes<Element, P>(a, b, state);
        const V16 high = element_codes<Element, P>(c, d, state);
        return join(low, high);
    }
}

// One chunk (chunk_elements<Bits>() elements) of packed codes. `scaled(i)` gives elements i .. i + Lanes(DF()) - 1 with
// the scale applied.
template <class Element, int Bits, element_path P, class Scaled>
HWY_INLINE void encode_chunk(const Scaled& scaled, const run_state& state, uint8_t* to, bool stream) {
    const size_t n = hn::Lanes(DF());
    const auto bytes = [&](size_t i) NUMFMT_SIMD_LAMBDA {
        const auto a = scaled(i), b = scaled(i + n), c = scaled(i + 2 * n), d = scaled(i + 3 * n);
        return element_bytes<Element, P>(a, b, c, d, state);
    };
    if constexpr (Bits == 8) {
        store(bytes(0), D8(), to, stream);
    } else if constexpr (Bits == 6) {
        store_packed6(bytes(0), to);
    } else {
        const V8 lo = bytes(0);
        const V8 hi = bytes(4 * n);
        store(pack_nibbles(lo, hi), D8(), to, stream);
    }
}

// The same for unsigned integer elements: round(x / divisor) + zero point, the quotients below 2^6 in magnitude. The
// product with the reciprocal has the same nearest integer unless it lies within its error (below 2^-17) of a tie: only
// then is a chunk divided. `inverse(i)`, `divisor(i)`, `zero_point(i)`: those of elements i .. i + Lanes(DF()) - 1.
template <class Element, int Bits, class Loaded, class Inverse, class Divisor, class ZeroPoint>
HWY_INLINE void encode_quotients(const Loaded& loaded, const Inverse& inverse, const Divisor& divisor,
                                 const ZeroPoint& zero_point, const run_state& state, uint8_t* to, bool stream) {
    const DF df;
    VF farthest = hn::Zero(df);
    const auto by_product = [&](size_t i) NUMFMT_SIMD_LAMBDA {
        const VF product = hn::Mul(loaded(i), inverse(i));
        const VI nearest = nearest_integers(product);
        farthest = largest_magnitude(farthest, distance_to_integer(product, nearest));
        return hn::Add(nearest, zero_point(i));
    };
    encode_chunk<Element, Bits, element_path::integer>(by_product, state, to, stream);
    if (HWY_UNLIKELY(!hn::AllTrue(df, hn::Lt(farthest, hn::Set(df, 0.5f - 0x1p-16f))))) {
        const auto by_quotient = [&](size_t i) NUMFMT_SIMD_LAMBDA {
            return hn::Add(nearest_integers(hn::Div(loaded(i), divisor(i))), zero_point(i));
        };
        encode_chunk<Element, Bits, element_path::integer>(by_quotient, state, to, stream);
    }
}
inline constexpr float largest_quotient = 62.0f;  // of amax and the rounded reciprocal, to be below 2^6 for certain

// x[0..n) to packed codes from `to` on, whole bytes but for the last one, whose unused bits become zero.
template <class Element, int Bits, element_path P, class Source>
HWY_NOINLINE void encode_run(const Source* x, int64_t n, uint8_t* to, const run_state& state, bool stream) {
    const int64_t step = chunk_elements<Bits>();
    const DF df;
    const VF inverse = hn::Set(df, state.inverse), divisor = hn::Set(df, state.divisor);
    const auto run = [&](const Source* from, uint8_t* out, bool nt) NUMFMT_SIMD_LAMBDA {
        if constexpr (P == element_path::integer && !Element::spec.is_signed) {
            const VI zero_point = hn::Set(hn::RebindToSigned<D32>(), state.zero_point);
            encode_quotients<Element, Bits>([&](size_t i) NUMFMT_SIMD_LAMBDA { return load_floats(from + i); },
                                            [&](size_t) NUMFMT_SIMD_LAMBDA { return inverse; },
                                            [&](size_t) NUMFMT_SIMD_LAMBDA { return divisor; },
                                            [&](size_t) NUMFMT_SIMD_LAMBDA { return zero_point; }, state, out, nt);
        } else if constexpr (P == element_path::integer) {
            const auto scaled = [&](size_t i) NUMFMT_SIMD_LAMBDA {
                return nearest_integers(hn::Mul(load_floats(from + i), inverse));
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
                  const quantized_view<S>& out, const numfmt::detail::block_scale<S>& scale,
                  const numfmt::detail::block_range& range, rounding r, const quantize_options& options, bool stream) {
    using element = typename S::element;
    constexpr int bits = scheme_traits<S>::element_bits;
    const bool stochastic = r == rounding::stochastic, finite = !range.nonfinite();
    bool fast = !scale.poisoned, nearest = false;
    run_state state;
    if constexpr (scheme_traits<S>::power_of_two_scale) {
        fast = fast && scale.exponent >= lowest_safe_exponent<element>() && scale.exponent <= highest_safe_exponent;
        if (fast) state.inverse = numfmt::detail::exact_pow2(-scale.exponent);
    } else if constexpr (integer_format<element>) {
        state.inverse = 1.0f / scale.value;
        state.divisor = scale.value;
        state.zero_point = scale.zero_point;
        fast = fast && bit_cast<float>(range.amax) * state.inverse <= largest_quotient;
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
        // 0 x Inf would be a NaN.
        nearest = finite && state.inverse <= numfmt::detail::largest_float && may_be_nearest<element>(r, state.k);
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
        } else if (nearest) {
            encode_run<element, bits, element_path::nearest>(from, c1 - c0, to, state, stream);
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
    encode_block<S>(x, r0, r1, c0, c1, out, scale, range, r, options, stream);
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
    encode_block<S>(x, first, last, 0, x.shape.cols, out, scale, range, r, options, stream);
    if (stream) hwy::FlushStream();
}

// --- many small blocks at once
// -------------------------------------------------------------------------------------------

// The scales of a group, one block per entry.
struct group_scales {
    alignas(64) uint32_t stored[16];
    alignas(64) float factors[16];   // elements are multiplied by these,
    alignas(64) float divisors[16];  // or divided by these
    alignas(64) int32_t zero_points[16];
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
    if (!hn::AllFalse(d, greater_than(codes, hn::Set(d, scale_format::spec.max_finite_code())))) return false;  // NaN
    hn::Store(codes, d, g.stored);
    const VF value = scale_values<scale_format>(codes);
    const VF inverse = torchao ? hn::Div(hn::Set(df, tensor.inverse), value)
                               : hn::Min(hn::Div(hn::Set(df, 1.0f), hn::Mul(value, hn::Set(df, tensor.multiplier))),
                                         hn::Set(df, numfmt::detail::largest_float));
    if (!hn::AllTrue(df, hn::Le(inverse, hn::Set(df, numfmt::detail::largest_float)))) return false;  // 0 x Inf is NaN
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
    VF low = zero, s = zero;
    if constexpr (S::has_zero_point) {
        low = block_reduction<lows, block>(x, count);
        VF high = block_reduction<highs, block>(x, count);
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
                low = block_reduction<lows, block>(x, count);
                s = block_reduction<highs, block>(x, count);
                s = hn::Max(hn::Div(hn::Neg(low), hn::Set(df, 8.0f)), hn::Div(s, hn::Set(df, 7.0f)));
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
    const VF inverse = hn::Div(hn::Set(df, 1.0f), value);
    if (!hn::AllTrue(df, hn::Le(hn::Mul(hn::BitCast(df, maxima), inverse), hn::Set(df, largest_quotient))))
        return false;
    hn::Store(inverse, df, g.factors);
    const hn::RebindToSigned<D32> ds;
    if constexpr (S::has_zero_point) {
        // -round(low / value), clamped to the codes.
        const VF quotient = hn::Max(hn::Min(hn::Div(low, value), zero), hn::Set(df, -levels));
        hn::Store(hn::Neg(nearest_integers(quotient)), ds, g.zero_points);
    } else {
        hn::Store(hn::Set(ds, S::fixed_zero_point), ds, g.zero_points);
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
    constexpr bool may_divide = !scheme_traits<S>::power_of_two_scale && !S::has_tensor_scale;
    const bool divide = may_divide && options.division == scale_division::divide;
    const int64_t step = chunk_elements<bits>(), total = block * count;
    for (int64_t i = 0; i < total; i += step) {
        const auto loaded = [&](size_t k) NUMFMT_SIMD_LAMBDA { return load_floats(from + i + k); };
        const auto block_of = [&](size_t k) NUMFMT_SIMD_LAMBDA { return (static_cast<size_t>(i) + k) / block; };
        const auto factor = [&](size_t k) NUMFMT_SIMD_LAMBDA { return hn::Set(df, g.factors[block_of(k)]); };
        const auto divisor = [&](size_t k) NUMFMT_SIMD_LAMBDA { return hn::Set(df, g.divisors[block_of(k)]); };
        uint8_t* const codes = to + i / 8 * bits;
        if constexpr (P == element_path::integer && !scheme_traits<S>::power_of_two_scale) {
            const auto zero_point = [&](size_t k) NUMFMT_SIMD_LAMBDA {
                return hn::Set(hn::RebindToSigned<D32>(), g.zero_points[block_of(k)]);
            };
            encode_quotients<element, bits>(loaded, factor, divisor, zero_point, state, codes, stream);
        } else if constexpr (P == element_path::integer) {
            const auto scaled = [&](size_t k)
                                    NUMFMT_SIMD_LAMBDA { return nearest_integers(hn::Mul(loaded(k), factor(k))); };
            encode_chunk<element, bits, P>(scaled, state, codes, stream);
        } else {
            const auto scaled = [&](size_t k) NUMFMT_SIMD_LAMBDA {
                if constexpr (may_divide) {
                    if (divide) return hn::Div(loaded(k), divisor(k));
                }
                return hn::Mul(loaded(k), factor(k));
            };
            encode_chunk<element, bits, P>(scaled, state, codes, stream);
        }
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
                // Other roundings, which are rare, go block by block.
                groups = may_be_nearest<element>(r, detail::make_constants<element>(r, options.element));
                if (groups) quantize_rows_of_groups<S, nearest>(x, out, tensor, first, last, r, options, stream);
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
