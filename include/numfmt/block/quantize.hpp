// SPDX-License-Identifier: MIT
// The reference quantize and dequantize of every scheme: scales chosen per block, elements encoded under them, in the
// operation order that is part of each scheme. Every faster path in the library is held equal to it bit for bit.
//
// Power-of-two scales (E8M0) are integer arithmetic from end to end. Float scales need IEEE fp32 division and
// multiplication: compile without -ffast-math and leave FTZ and DAZ off.
#pragma once

#include "../core/philox.hpp"
#include "view.hpp"

namespace numfmt {

/// Options of quantize. Rounding is the template parameter; these are run-time data.
struct quantize_options {
    numfmt::scale_rule scale_rule = numfmt::scale_rule::floor;                ///< E8M0 scales only
    numfmt::nonfinite nonfinite = numfmt::nonfinite::propagate;
    numfmt::int4_range int4_range = numfmt::int4_range::include_zero;         ///< schemes with a zero point only
    encode_options element{};                                                ///< float elements only
    uint64_t seed = 0;    ///< stochastic rounding: the Philox key
    uint64_t offset = 0;  ///< stochastic rounding: added to the row-major element index
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

/// E8M0 code of the scale of a block whose largest magnitude is `amax` (finite; the sign is ignored), for an element
/// format with largest power of two 2^emax. The biased exponent is clamped to 0 .. 254. An all-zero block gives 0.
/// Sources: OCP MX v1.0 section 6.3 (floor); the other rules as documented at scale_rule.
template <class Element> NUMFMT_FN uint8_t scale_code(float amax, scale_rule rule) noexcept {
    constexpr uint32_t full = 0x007FFFFFu;
    // Mantissa of the largest element, as float bits: a larger one would saturate.
    constexpr uint32_t largest = bit_cast<uint32_t>(detail::largest_element<Element>()) & full;
    const uint32_t add = rule == scale_rule::ceil       ? full
                         : rule == scale_rule::round_up ? full - largest
                         : rule == scale_rule::even     ? 1u << (22 - detail::mantissa_bits_of(Element::spec))
                                                        : 0u;
    const uint32_t bits = bit_cast<uint32_t>(amax) & detail::f32_abs_mask;
    const auto v = detail::split<detail::source_subnormals::normalise>(bits);
    const int exponent = v.exponent + static_cast<int>(((v.sig & full) + add) >> 23);
    const int code = detail::min(detail::max(exponent - Element::spec.max_exponent() + 127, 0), 254);
    return static_cast<uint8_t>(bits == 0 ? 0 : code);
}

namespace detail {

inline constexpr int chunk = 256;  // elements handled at once on the stack; a multiple of 8, so that packing stays aligned

inline constexpr float smallest_fp32_scale = 1.17549435082228750797e-38f;  // 2^-126
inline constexpr float int4_zero_group_range = 1e-5f;  // range of an all-zero group (llm-awq's floor): scale 1e-5 / 15

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
    uint32_t any = 0;   // largest magnitude bits, NaN and Inf included
    uint32_t amax = 0;  // largest finite magnitude bits
    int32_t low = 0x7FFFFFFF;    // order keys of the finite extremes; untouched if there is no finite element
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
    if constexpr (S::has_zero_point) {
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

/// What a block's elements are encoded and decoded under.
template <class S> struct block_scale {
    using storage = typename scheme_traits<S>::scale_storage;
    storage stored{};
    uint8_t zero_point = 0;
    bool poisoned = false;  // NaN scale: codes are zero
    int exponent = 0;       // power-of-two scales
    float value = 0;        // the stored scale as a float
};

template <class S> NUMFMT_FN typename scheme_traits<S>::scale_storage nan_scale() noexcept {
    if constexpr (is_same_v<typename S::scale, float>) return bit_cast<float>(f32_quiet_nan);
    else return static_cast<typename scheme_traits<S>::scale_storage>(S::scale::spec.canonical_nan_code());
}

/// A float scale in its storage type: finite, never zero.
template <class S> NUMFMT_FN typename scheme_traits<S>::scale_storage store_scale(float s) noexcept {
    s = max(s, smallest_fp32_scale);
    if constexpr (is_same_v<typename S::scale, float>) {
        return s;
    } else {
        const auto code = encode<typename S::scale>(s, {.overflow = overflow::saturate});
        return code == 0 ? typename scheme_traits<S>::scale_storage{1} : code;
    }
}

template <class S> NUMFMT_FN float load_scale(typename scheme_traits<S>::scale_storage stored) noexcept {
    if constexpr (is_same_v<typename S::scale, float>) return stored;
    else return decode<typename S::scale>(stored);
}

/// Rebuilds the state from what is stored: the only way scales reach the elements, in both directions.
template <class S>
NUMFMT_FN block_scale<S> scale_from_storage(typename scheme_traits<S>::scale_storage stored, uint8_t zero_point) noexcept {
    block_scale<S> b;
    b.stored = stored;
    b.zero_point = zero_point;
    b.value = load_scale<S>(stored);
    b.poisoned = is_nan(b.value);
    if constexpr (scheme_traits<S>::power_of_two_scale) b.exponent = static_cast<int>(stored) - S::scale::spec.bias;
    return b;
}

template <class S> NUMFMT_FN block_scale<S> choose_scale(const block_range& range, const quantize_options& options) noexcept {
    using element = typename S::element;
    if (range.nonfinite() && options.nonfinite == nonfinite::propagate) return scale_from_storage<S>(nan_scale<S>(), 0);
    const float amax = bit_cast<float>(range.amax);
    if constexpr (S::has_zero_point) {
        static_assert(integer_format<element>);
        constexpr float levels = static_cast<float>(element::spec.max_code);
        const bool zero = options.int4_range == int4_range::include_zero;
        const float low = zero ? min(range.lowest(), 0.0f) : range.lowest();
        const float high = zero ? max(range.highest(), 0.0f) : range.highest();
        // The difference of two finite floats can overflow; the difference of their shares cannot.
        const float difference = high - low;
        float s = is_finite(difference) ? difference / levels : high / levels - low / levels;
        if (range.amax == 0) s = int4_zero_group_range / levels;
        const auto stored = store_scale<S>(s);
        const int zero_point = -round_to_integer(low / load_scale<S>(stored), 0, -element::spec.max_code, 0);
        return scale_from_storage<S>(stored, static_cast<uint8_t>(zero_point));
    } else if constexpr (scheme_traits<S>::power_of_two_scale) {
        return scale_from_storage<S>(scale_code<element>(amax, options.scale_rule), 0);
    } else {
        return scale_from_storage<S>(store_scale<S>(amax / largest_element<element>()), 0);
    }
}

template <class S, rounding R>
NUMFMT_FN void encode_chunk(const block_scale<S>& b, const float* x, int n, uint8_t* codes, const quantize_options& options,
                            uint64_t index) noexcept {
    using element = typename S::element;
    const auto draw = [&](int j) {
        if constexpr (R == rounding::stochastic) return random_word(options.seed, options.offset + index + static_cast<uint64_t>(j));
        else return uint32_t{0};
    };
    if (b.poisoned) {
        for (int j = 0; j < n; ++j) codes[j] = 0;
    } else if constexpr (S::has_zero_point) {
        const int z = b.zero_point;
        for (int j = 0; j < n; ++j) {
            const int q = round_to_integer<R>(x[j] / b.value, 0, -32767, 32767, draw(j)) + z;
            codes[j] = static_cast<uint8_t>(min(max(q, element::spec.min_code), element::spec.max_code));
        }
    } else if constexpr (scheme_traits<S>::power_of_two_scale) {
        for (int j = 0; j < n; ++j) codes[j] = encode_scaled<element, R>(x[j], b.exponent, options.element, draw(j));
    } else {
        const float inverse = 1.0f / b.value;
        for (int j = 0; j < n; ++j) codes[j] = encode<element, R>(x[j] * inverse, options.element, draw(j));
    }
}

template <class S> NUMFMT_FN void decode_chunk(const block_scale<S>& b, const uint8_t* codes, int n, float* y) noexcept {
    using element = typename S::element;
    if (b.poisoned) {
        for (int j = 0; j < n; ++j) y[j] = bit_cast<float>(f32_quiet_nan);
    } else if constexpr (S::has_zero_point) {
        for (int j = 0; j < n; ++j) y[j] = static_cast<float>(static_cast<int>(codes[j]) - b.zero_point) * b.value;
    } else if constexpr (scheme_traits<S>::power_of_two_scale) {
        for (int j = 0; j < n; ++j) y[j] = decode_scaled<element>(codes[j], b.exponent);
    } else {
        for (int j = 0; j < n; ++j) y[j] = decode<element>(codes[j]) * b.value;
    }
}

/// Elements [c, c + n) of a row as floats: in place, or converted (exactly) into `scratch`.
template <class T> NUMFMT_FN const float* as_floats(const T* x, int n, float* scratch) noexcept {
    if constexpr (is_same_v<remove_cv_t<T>, float>) {
        return x;
    } else {
        for (int j = 0; j < n; ++j) scratch[j] = static_cast<float>(x[j]);
        return scratch;
    }
}

/// Calls f(row, first column, count) for every run of at most `chunk` columns of scale block (i, j).
template <class S, class F> NUMFMT_FN void for_each_run(matrix_shape shape, int64_t i, int64_t j, F&& f) noexcept {
    // S::block may be `whole`: compare before multiplying.
    const int64_t r0 = i == 0 ? 0 : i * S::block.rows;
    const int64_t c0 = j == 0 ? 0 : j * S::block.cols;
    const int64_t rows = min(shape.rows - r0, S::block.rows);
    const int64_t cols = min(shape.cols - c0, S::block.cols);
    for (int64_t r = r0; r < r0 + rows; ++r)
        for (int64_t c = 0; c < cols; c += chunk) f(r, c0 + c, static_cast<int>(min(cols - c, int64_t{chunk})));
}

template <class T>
inline constexpr bool is_tensor_type_v =
    is_same_v<T, float> || [] {
        if constexpr (is_minifloat_v<T>) return T::spec.bits() == 16;
        else return false;
    }();

}  // namespace detail

/// Quantizes the rows x cols matrix `x` (float, bf16 or fp16) into `out`, which must have the same shape: chooses every
/// block's scale by the scheme's rule, stores it, and encodes the elements under the stored scale. Partial blocks at the
/// right and bottom edges use the elements they have. NaN and Inf: see quantize_options::nonfinite.
/// Errors: shape_mismatch, or what is wrong with `x`'s pointer or stride; nothing is written then.
template <rounding R = rounding::nearest_even, class T, class S>
status quantize(matrix_view<T> x, quantized_view<S> out, const quantize_options& options = {}) noexcept {
    using value = detail::remove_cv_t<T>;
    static_assert(detail::is_tensor_type_v<value>, "numfmt::quantize: the input must be float, bf16 or fp16");
    static_assert(!detail::is_same_v<S, const S>, "numfmt::quantize: the output view is read-only");
    static_assert(!detail::is_scale_rounding(R), "numfmt::quantize: rounding::down, up and nearest_up belong to e8m0; "
                                                 "choose quantize_options::scale_rule for the scales");
    if (const status s = detail::check_matrix(x, "x", "x.stride"); !s.ok()) return s;
    if (x.shape.rows != out.rows()) return {status_code::shape_mismatch, "x.shape.rows", x.shape.rows, out.rows()};
    if (x.shape.cols != out.cols()) return {status_code::shape_mismatch, "x.shape.cols", x.shape.cols, out.cols()};

    constexpr int bits = scheme_traits<S>::element_bits;
    const matrix_shape scales = out.scale_shape();
    float scratch[detail::chunk];
    uint8_t codes[detail::chunk];
    for (int64_t i = 0; i < scales.rows; ++i) {
        for (int64_t j = 0; j < scales.cols; ++j) {
            detail::block_range range;
            detail::for_each_run<S>(x.shape, i, j, [&](int64_t r, int64_t c, int n) {
                detail::extend<S>(range, detail::as_floats(x.row(r) + c, n, scratch), n);
            });
            const detail::block_scale<S> scale = detail::choose_scale<S>(range, options);
            out.scale(i, j) = scale.stored;
            if constexpr (S::has_zero_point) pack<4>(&scale.zero_point, 1, out.zero_row(i), j);
            detail::for_each_run<S>(x.shape, i, j, [&](int64_t r, int64_t c, int n) {
                const uint64_t index = static_cast<uint64_t>(r) * static_cast<uint64_t>(x.shape.cols) + static_cast<uint64_t>(c);
                detail::encode_chunk<S, R>(scale, detail::as_floats(x.row(r) + c, n, scratch), n, codes, options, index);
                pack<bits>(codes, n, out.code_row(r), c);
            });
        }
    }
    return {};
}

/// Quantizes into a new tensor. Throws std::bad_alloc when memory runs out.
template <class S, rounding R = rounding::nearest_even, class T>
result<quantized_tensor<S>> quantize(matrix_view<T> x, const quantize_options& options = {}) {
    if (const status s = detail::check_matrix(x, "x", "x.stride"); !s.ok()) return {{}, s};
    result<quantized_tensor<S>> t = quantized_tensor<S>::make(x.shape);
    if (t.ok()) t.status = quantize<R>(x, t.value.view(), options);
    return t;
}

/// Writes the values of `q` to the matrix `y` (float, or bf16/fp16 by one more nearest-even rounding) of the same shape.
/// A power-of-two scale is applied exactly; a float scale by one fp32 multiplication. A NaN scale gives NaN.
/// Errors: shape_mismatch, or what is wrong with `y`'s pointer or stride; nothing is written then.
template <class S, class T> status dequantize(quantized_view<S> q, matrix_view<T> y) noexcept {
    using scheme = detail::remove_cv_t<S>;
    static_assert(detail::is_tensor_type_v<T>, "numfmt::dequantize: the output must be float, bf16 or fp16");
    if (const status s = detail::check_matrix(y, "y", "y.stride"); !s.ok()) return s;
    if (y.shape.rows != q.rows()) return {status_code::shape_mismatch, "y.shape.rows", y.shape.rows, q.rows()};
    if (y.shape.cols != q.cols()) return {status_code::shape_mismatch, "y.shape.cols", y.shape.cols, q.cols()};

    constexpr int bits = scheme_traits<scheme>::element_bits;
    const matrix_shape scales = q.scale_shape();
    float values[detail::chunk];
    uint8_t codes[detail::chunk];
    for (int64_t i = 0; i < scales.rows; ++i) {
        for (int64_t j = 0; j < scales.cols; ++j) {
            uint8_t zero_point = 0;
            if constexpr (scheme::has_zero_point) zero_point = q.zero_point(i, j);
            const auto scale = detail::scale_from_storage<scheme>(q.scale(i, j), zero_point);
            detail::for_each_run<scheme>(y.shape, i, j, [&](int64_t r, int64_t c, int n) {
                unpack<bits>(q.code_row(r), c, n, codes);
                T* const out = y.row(r) + c;
                if constexpr (detail::is_same_v<T, float>) {
                    detail::decode_chunk<scheme>(scale, codes, n, out);
                } else {
                    detail::decode_chunk<scheme>(scale, codes, n, values);
                    for (int k = 0; k < n; ++k) out[k] = T(values[k]);
                }
            });
        }
    }
    return {};
}

}  // namespace numfmt
