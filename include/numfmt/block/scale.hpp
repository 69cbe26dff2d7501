// SPDX-License-Identifier: MIT
// How a block's scale is chosen, stored and applied: one place for the operation order of every scheme, used by the
// reference quantizer and by every faster path.
#pragma once

#include "../core/arithmetic.hpp"
#include "../core/philox.hpp"
#include "scheme.hpp"

namespace numfmt {

/// Options of quantize. Rounding is the template parameter; these are run-time data. Each applies to the schemes named
/// and has no meaning for the others. `compat.hpp` has the combinations that reproduce other libraries.
struct quantize_options {
    numfmt::scale_rule scale_rule = numfmt::scale_rule::floor;         ///< E8M0 scales
    numfmt::nonfinite nonfinite = numfmt::nonfinite::propagate;        ///< every scheme
    numfmt::int4_range int4_range = numfmt::int4_range::include_zero;  ///< int4 with zero points
    numfmt::int4_symmetric_range int4_symmetric_range = numfmt::int4_symmetric_range::within_7;  ///< symmetric int4
    scale_division division = scale_division::reciprocal;  ///< float scales, except int4 (always divides) and NVFP4
    numfmt::nvfp4_order nvfp4_order = numfmt::nvfp4_order::transformer_engine;  ///< NVFP4
    /// Lower bound of amax (of max - min for int4); 0 for none. DeepGEMM has 1e-4, llm-awq 1e-5. Not for NVFP4.
    float amax_floor = 0;
    encode_options element{};  ///< float elements
    uint64_t seed = 0;         ///< stochastic rounding: the Philox key
    uint64_t offset = 0;       ///< stochastic rounding: added to the row-major element index
};

namespace detail {
/// The largest element, and the mantissa bits at that element's exponent.
template <float_format E> NUMFMT_FN float largest_element() noexcept {
    return decode<E>(static_cast<typename E::storage>(E::spec.max_finite_code()));
}
template <integer_format E> NUMFMT_FN float largest_element() noexcept {
    return static_cast<float>(E::spec.max_code) * exact_pow2(-E::spec.fraction_bits);
}
NUMFMT_FN int mantissa_bits_of(const float_spec& s) noexcept { return s.mantissa_bits; }
NUMFMT_FN int mantissa_bits_of(const int_spec& s) noexcept { return s.max_exponent() + s.fraction_bits; }
}  // namespace detail

namespace detail {
/// What `rule` adds to the mantissa bits of amax: a carry raises the exponent.
template <class Element> NUMFMT_FN uint32_t scale_rule_addend(scale_rule rule) noexcept {
    constexpr uint32_t full = 0x007FFFFFu;
    // Mantissa of the largest element, as float bits: a larger one would saturate.
    constexpr uint32_t largest = bit_cast<uint32_t>(largest_element<Element>()) & full;
    return rule == scale_rule::ceil       ? full
           : rule == scale_rule::round_up ? full - largest
           : rule == scale_rule::even     ? 1u << (22 - mantissa_bits_of(Element::spec))
                                          : 0u;
}
}  // namespace detail

namespace detail {
/// What a scale rule adds to the mantissa bits of amax before the exponent is taken.
template <class Element> NUMFMT_FN uint32_t scale_addend(scale_rule rule) noexcept {
    constexpr uint32_t full = 0x007FFFFFu;
    // Mantissa of the largest element, as float bits: a larger one would saturate.
    constexpr uint32_t largest = bit_cast<uint32_t>(largest_element<Element>()) & full;
    return rule == scale_rule::ceil       ? full
           : rule == scale_rule::round_up ? full - largest
           : rule == scale_rule::even     ? 1u << (22 - mantissa_bits_of(Element::spec))
                                          : 0u;
}
}  // namespace detail

/// E8M0 code of the scale of a block whose largest magnitude is `amax` (finite; the sign is ignored), for an element
/// format with largest power of two 2^emax. The biased exponent is clamped to 0 .. 254. An all-zero block gives 0.
/// Sources: OCP MX v1.0 section 6.3 (floor); the other rules as documented at scale_rule.
template <class Element> NUMFMT_FN uint8_t scale_code(float amax, scale_rule rule) noexcept {
    constexpr uint32_t full = 0x007FFFFFu;
    const uint32_t add = detail::scale_addend<Element>(rule);
    const uint32_t bits = bit_cast<uint32_t>(amax) & detail::f32_abs_mask;
    const auto v = detail::split<detail::source_subnormals::normalise>(bits);
    const int exponent = v.exponent + static_cast<int>(((v.sig & full) + add) >> 23);
    const int code = detail::min(detail::max(exponent - Element::spec.max_exponent() + 127, 0), 254);
    return static_cast<uint8_t>(bits == 0 ? 0 : code);
}

namespace detail {

inline constexpr float smallest_fp32_scale = 1.17549435082228750797e-38f;  // 2^-126
inline constexpr float largest_float = 3.40282346638528859812e+38f;
inline constexpr float zero_group_range = 1e-5f;  // range of an all-zero int4 group (llm-awq's floor): scale 1e-5 / 15

/// Float bits as a signed integer in the order of the values (-0 just below +0), and back.
NUMFMT_FN int32_t order_key(uint32_t bits) noexcept {
    const int32_t i = static_cast<int32_t>(bits);
    return i ^ ((i >> 31) & static_cast<int32_t>(f32_abs_mask));
}
NUMFMT_FN float from_order_key(int32_t key) noexcept {
    return bit_cast<float>(static_cast<uint32_t>(key ^ ((key >> 31) & static_cast<int32_t>(f32_abs_mask))));
}

/// Range of a block, gathered with integer reductions (compilers do not vectorise floating-point ones).
struct block_range {
    uint32_t any = 0;          // largest magnitude bits, NaN and Inf included
    uint32_t amax = 0;         // largest finite magnitude bits
    int32_t low = 0x7FFFFFFF;  // order keys of the finite extremes; untouched if there is no finite element
    int32_t high = -0x7FFFFFFF;

    NUMFMT_FN bool nonfinite() const noexcept { return any >= f32_infinity; }
    NUMFMT_FN float lowest() const noexcept { return low > high ? 0.0f : from_order_key(low); }
    NUMFMT_FN float highest() const noexcept { return low > high ? 0.0f : from_order_key(high); }
};

template <class S> NUMFMT_FN void extend(block_range& range, const float* x, int n) noexcept {
    uint32_t any = range.any, amax = range.amax;
    for (int j = 0; j < n; ++j) {
        const uint32_t a = bit_cast<uint32_t>(x[j]) & f32_abs_mask;
        any = max(any, a);
        amax = max(amax, blend(a < f32_infinity, a, 0u));
    }
    range.any = any;
    range.amax = amax;
    if constexpr (integer_format<typename S::element>) {
        int32_t low = range.low, high = range.high;
        for (int j = 0; j < n; ++j) {
            const uint32_t bits = bit_cast<uint32_t>(x[j]);
            const bool finite = (bits & f32_abs_mask) < f32_infinity;
            const uint32_t key = static_cast<uint32_t>(order_key(bits));
            low = min(low, static_cast<int32_t>(blend(finite, key, 0x7FFFFFFFu)));
            high = max(high, static_cast<int32_t>(blend(finite, key, 0x80000001u)));
        }
        range.low = low;
        range.high = high;
    }
}

template <class S> NUMFMT_FN typename scheme_traits<S>::scale_storage nan_scale() noexcept {
    if constexpr (is_same_v<typename S::scale, float>)
        return bit_cast<float>(f32_quiet_nan);
    else
        return static_cast<typename scheme_traits<S>::scale_storage>(S::scale::spec.canonical_nan_code());
}

/// A float scale in its storage type: finite, never zero.
template <class S> NUMFMT_FN typename scheme_traits<S>::scale_storage store_scale(float s) noexcept {
    s = larger(s, smallest_fp32_scale);
    if constexpr (is_same_v<typename S::scale, float>) {
        return s;
    } else {
        const auto code = encode<typename S::scale>(s, {.overflow = overflow::saturate});
        return code == 0 ? typename scheme_traits<S>::scale_storage{1} : code;
    }
}

template <class S> NUMFMT_FN float load_scale(typename scheme_traits<S>::scale_storage stored) noexcept {
    if constexpr (is_same_v<typename S::scale, float>)
        return stored;
    else
        return decode<typename S::scale>(stored);
}

/// The scale of the whole tensor: the multiplier that is stored, and its inverse as the encoder uses it.
struct tensor_scale {
    float multiplier = 1;
    float inverse = 1;
};

/// `amax_bits`: the largest finite magnitude of the tensor, as float bits.
NUMFMT_FN tensor_scale choose_tensor_scale(uint32_t amax_bits, nvfp4_order order) noexcept {
    constexpr float span = 448.0f * 6.0f;
    const float amax = bit_cast<float>(amax_bits);
    if (amax_bits == 0) return {};
    if (order == nvfp4_order::torchao) {
        const float g = larger(quotient(amax, span), smallest_fp32_scale);
        return {g, quotient(1.0f, g)};
    }
    const float inverse = smaller(quotient(span, amax), largest_float);
    return {quotient(1.0f, inverse), inverse};
}

/// What a block's elements are encoded and decoded under.
template <class S> struct block_scale {
    using storage = typename scheme_traits<S>::scale_storage;
    storage stored{};
    uint8_t zero_point = 0;
    bool poisoned = false;  // NaN scale: codes are zero, values NaN
    int exponent = 0;       // power-of-two scales: the value is 2^exponent
    float value = 0;        // other scales: what a decoded element is multiplied by
    float inverse = 0;      // other scales: what an element is multiplied by before it is encoded
};

/// The state that decoding needs, from what is stored. `tensor_multiplier` is 1 where the scheme has none.
template <class S>
NUMFMT_FN block_scale<S> scale_from_storage(typename scheme_traits<S>::scale_storage stored, uint8_t zero_point,
                                            float tensor_multiplier = 1.0f) noexcept {
    block_scale<S> b;
    b.stored = stored;
    b.zero_point = zero_point;
    if constexpr (requires { S::fixed_zero_point; }) b.zero_point = static_cast<uint8_t>(S::fixed_zero_point);
    b.value = load_scale<S>(stored);
    b.poisoned = is_nan(b.value);
    if constexpr (scheme_traits<S>::power_of_two_scale) b.exponent = static_cast<int>(stored) - S::scale::spec.bias;
    if constexpr (S::has_tensor_scale) b.value = product(b.value, tensor_multiplier);
    return b;
}

/// Scale and zero point of an int4 group. The codes follow from the stored scale, never from the exact one.
template <class S>
NUMFMT_FN block_scale<S> choose_int4_scale(const block_range& range, const quantize_options& options) noexcept {
    constexpr float levels = static_cast<float>(S::element::spec.max_code);
    float low = range.lowest(), high = range.highest();
    float s = 0;
    if constexpr (S::has_zero_point) {
        if (options.int4_range == int4_range::include_zero) {
            low = smaller(low, 0.0f);
            high = larger(high, 0.0f);
        }
        // The difference of two finite floats can overflow; the difference of their shares cannot.
        const float span = larger(difference(high, low), options.amax_floor);
        s = is_finite(span) ? quotient(span, levels) : difference(quotient(high, levels), quotient(low, levels));
    } else {
        const float amax = larger(bit_cast<float>(range.amax), options.amax_floor);
        switch (options.int4_symmetric_range) {
            case int4_symmetric_range::within_7:
                s = quotient(amax, 7.0f);
                break;
            case int4_symmetric_range::full_range:
                s = quotient(amax, 7.5f);
                break;
            case int4_symmetric_range::no_clipping:
                s = larger(larger(quotient(-low, 8.0f), quotient(high, 7.0f)), quotient(options.amax_floor, 7.0f));
                break;
        }
    }
    if (range.amax == 0 && options.amax_floor == 0) s = zero_group_range / levels;
    const auto stored = store_scale<S>(s);
    int zero_point = 0;
    if constexpr (S::has_zero_point)
        zero_point = -round_to_integer(quotient(low, load_scale<S>(stored)), 0, -S::element::spec.max_code, 0);
    return scale_from_storage<S>(stored, static_cast<uint8_t>(zero_point));
}

/// Block scale of a two-level scheme (NVFP4) in either published order of operations.
template <class S>
NUMFMT_FN block_scale<S> choose_two_level_scale(const block_range& range, tensor_scale tensor,
                                                nvfp4_order order) noexcept {
    using scale_format = typename S::scale;
    constexpr float largest = largest_element<typename S::element>();
    const float amax = bit_cast<float>(range.amax);
    const bool torchao = order == nvfp4_order::torchao;
    const float t = torchao ? smaller(larger(quotient(quotient(amax, largest), tensor.multiplier), 0.015625f), 448.0f)
                            : product(amax, product(tensor.inverse, 1.0f / largest));
    auto stored = encode<scale_format>(t, {.overflow = overflow::saturate});
    if (range.nonfinite() && stored == 0) stored = 1;  // so that a saturated Inf is not zero
    block_scale<S> b = scale_from_storage<S>(stored, 0, tensor.multiplier);
    b.inverse = torchao ? quotient(tensor.inverse, decode<scale_format>(stored))
                        : smaller(quotient(1.0f, b.value), largest_float);
    return b;
}

/// The scale of a block by the scheme's rule; `tensor` matters to two-level schemes only.
template <class S>
NUMFMT_FN block_scale<S> choose_scale(const block_range& range, tensor_scale tensor,
                                      const quantize_options& options) noexcept {
    using element = typename S::element;
    if (range.nonfinite() && options.nonfinite == nonfinite::propagate) return scale_from_storage<S>(nan_scale<S>(), 0);
    const float amax = larger(bit_cast<float>(range.amax), options.amax_floor);
    if constexpr (S::has_tensor_scale) {
        return choose_two_level_scale<S>(range, tensor, options.nvfp4_order);
    } else if constexpr (scheme_traits<S>::power_of_two_scale) {
        return scale_from_storage<S>(scale_code<element>(amax, options.scale_rule), 0);
    } else if constexpr (integer_format<element>) {
        return choose_int4_scale<S>(range, options);
    } else {
        block_scale<S> b = scale_from_storage<S>(store_scale<S>(quotient(amax, largest_element<element>())), 0);
        b.inverse = quotient(1.0f, b.value);
        return b;
    }
}

/// codes[j] = the code of x[j] under `b`. `index` is the row-major position of x[0], for stochastic rounding.
template <class S, rounding R>
NUMFMT_FN void encode_chunk(const block_scale<S>& b, const float* x, int n, uint8_t* codes,
                            const quantize_options& options, uint64_t index) noexcept {
    using element = typename S::element;
    const auto draw = [&](int j) {
        if constexpr (R == rounding::stochastic)
            return random_word(options.seed, options.offset + index + static_cast<uint64_t>(j));
        else
            return uint32_t{0};
    };
    if (b.poisoned) {
        for (int j = 0; j < n; ++j) codes[j] = 0;
    } else if constexpr (integer_format<element>) {
        constexpr int_spec spec = element::spec;
        const int z = b.zero_point;
        for (int j = 0; j < n; ++j) {
            int q = 0;
            if constexpr (scheme_traits<S>::power_of_two_scale) {
                q = round_to_integer<R>(x[j], b.exponent - spec.fraction_bits, spec.min_code, spec.max_code, draw(j));
            } else {
                q = round_to_integer<R>(quotient(x[j], b.value), 0, -32767, 32767, draw(j)) + z;
            }
            codes[j] = static_cast<uint8_t>(min(max(q, spec.min_code), spec.max_code));
        }
    } else if constexpr (scheme_traits<S>::power_of_two_scale) {
        for (int j = 0; j < n; ++j) codes[j] = encode_scaled<element, R>(x[j], b.exponent, options.element, draw(j));
    } else if (!S::has_tensor_scale && options.division == scale_division::divide) {
        for (int j = 0; j < n; ++j) codes[j] = encode<element, R>(quotient(x[j], b.value), options.element, draw(j));
    } else {
        for (int j = 0; j < n; ++j) codes[j] = encode<element, R>(product(x[j], b.inverse), options.element, draw(j));
    }
}

/// y[j] = the value of codes[j] under `b`.
template <class S>
NUMFMT_FN void decode_chunk(const block_scale<S>& b, const uint8_t* codes, int n, float* y) noexcept {
    using element = typename S::element;
    if (b.poisoned) {
        for (int j = 0; j < n; ++j) y[j] = bit_cast<float>(f32_quiet_nan);
    } else if constexpr (integer_format<element>) {
        constexpr int_spec spec = element::spec;
        for (int j = 0; j < n; ++j) {
            if constexpr (scheme_traits<S>::power_of_two_scale) {
                static_assert(spec.is_signed && spec.bits == 8);
                const float integer = static_cast<float>(static_cast<int8_t>(codes[j]));
                y[j] = bit_cast<float>(scale_bits<false>(bit_cast<uint32_t>(integer), b.exponent - spec.fraction_bits));
            } else {
                y[j] = product(static_cast<float>(static_cast<int>(codes[j]) - b.zero_point), b.value);
            }
        }
    } else if constexpr (scheme_traits<S>::power_of_two_scale) {
        for (int j = 0; j < n; ++j) y[j] = decode_scaled<element>(codes[j], b.exponent);
    } else {
        for (int j = 0; j < n; ++j) y[j] = product(decode<element>(codes[j]), b.value);
    }
}

}  // namespace detail
}  // namespace numfmt
