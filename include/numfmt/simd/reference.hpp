// SPDX-License-Identifier: MIT
// The reference quantizer behind the SIMD kernels, with the rounding as run-time data: for blocks that are off the fast
// path, and for everything where Highway has only its scalar target.
#pragma once

#include <cfenv>

#include "../block/quantize.hpp"
#include "../e8m0.hpp"
#include "common.hpp"

namespace numfmt::simd::detail {

/// Elements and kind of scale, all that encoding and decoding under a given scale depends on: schemes that share them
/// share the code.
template <class S>
using run_scheme = block_scheme<typename S::element,
                                numfmt::detail::conditional_t<scheme_traits<S>::power_of_two_scale, e8m0, float>, 1, 1>;

template <class S>
numfmt::detail::block_scale<run_scheme<S>> run_scale(const numfmt::detail::block_scale<S>& b) noexcept {
    numfmt::detail::block_scale<run_scheme<S>> r;
    r.zero_point = b.zero_point;
    r.poisoned = b.poisoned;
    r.exponent = b.exponent;
    r.value = b.value;
    r.inverse = b.inverse;
    return r;
}

/// Fraction bits of an integer element; 0 for floats.
template <class Element>
inline constexpr int fraction_bits = [] {
    if constexpr (integer_format<Element>)
        return Element::spec.fraction_bits;
    else
        return 0;
}();

/// Exponents e for which the value of every code under 2^e is a normal float (or zero, Inf, NaN): a multiplication, or
/// an addition to the exponent, is then exact, and nothing can be flushed.
template <class Element> struct exact_exponents {
    static constexpr int lowest = [] {
        if constexpr (integer_format<Element>)
            return -126 + Element::spec.fraction_bits;
        else
            return numfmt::detail::max(-126, -126 - Element::spec.min_exponent() + Element::spec.mantissa_bits);
    }();
    static constexpr int highest = [] {
        if constexpr (integer_format<Element>)
            return 126 - Element::spec.max_exponent();
        else
            return numfmt::detail::min(127, 127 - Element::spec.max_exponent());
    }();
};

/// The conversion of floats to integers follows the processor's rounding mode, the reference does not.
NUMFMT_INLINE bool rounds_to_nearest() noexcept { return std::fegetround() == FE_TONEAREST; }

// For the reference's reductions, which ask the scheme for its elements alone.
struct float_elements {
    using element = fp16;
};
struct integer_elements {
    using element = uint4;
};

// Any rounding that quantize takes is one that a float format with a zero has.
template <class Run>
NUMFMT_PER_ISA void reference_chunk(const numfmt::detail::block_scale<Run>& scale, const float* x, int n,
                                    uint8_t* codes, rounding r, const quantize_options& options,
                                    uint64_t index) noexcept {
    with_rounding<fp16>(
        r, [&]<rounding R>() { numfmt::detail::encode_chunk<Run, R>(scale, x, n, codes, options, index); });
}

/// x[0..n) under `scale` to columns column .. column + n - 1 of a packed row. `index`: row-major position of x[0].
template <class S, class Source>
NUMFMT_PER_ISA void reference_run(const numfmt::detail::block_scale<S>& scale, const Source* x, int64_t n, uint8_t* row,
                                  int64_t column, rounding r, quantize_options options, uint64_t index) noexcept {
    constexpr int64_t chunk = numfmt::detail::chunk;
    if constexpr (S::has_tensor_scale) options.division = scale_division::reciprocal;  // the option is not for them
    float scratch[chunk];
    uint8_t codes[chunk];
    for (int64_t c = 0; c < n; c += chunk) {
        const int count = static_cast<int>(numfmt::detail::min(n - c, chunk));
        reference_chunk(run_scale(scale), numfmt::detail::as_floats(x + c, count, scratch), count, codes, r, options,
                        index + static_cast<uint64_t>(c));
        pack<scheme_traits<S>::element_bits>(codes, count, row, column + c);
    }
}

/// Scale rows [first, last), for blocks that do not begin on a byte.
template <class S, class Source>
NUMFMT_PER_ISA void reference_rows(matrix_view<const Source> x, const quantized_view<S>& out,
                                   numfmt::detail::tensor_scale tensor, rounding r, const quantize_options& options,
                                   int64_t first, int64_t last) noexcept {
    with_rounding<fp16>(
        r, [&]<rounding R>() { numfmt::detail::quantize_scale_rows<R>(x, out, tensor, options, first, last); });
}

template <class Run>
NUMFMT_PER_ISA void reference_chunk_values(const numfmt::detail::block_scale<Run>& scale, const uint8_t* codes, int n,
                                           float* values) noexcept {
    numfmt::detail::decode_chunk<Run>(scale, codes, n, values);
}

/// Values of columns column .. column + n - 1 of a packed row.
template <class S, class Target>
NUMFMT_PER_ISA void reference_run_values(const numfmt::detail::block_scale<S>& scale, const uint8_t* row,
                                         int64_t column, int64_t n, Target* y) noexcept {
    constexpr int64_t chunk = numfmt::detail::chunk;
    float values[chunk];
    uint8_t codes[chunk];
    for (int64_t c = 0; c < n; c += chunk) {
        const int count = static_cast<int>(numfmt::detail::min(n - c, chunk));
        unpack<scheme_traits<S>::element_bits>(row, column + c, count, codes);
        reference_chunk_values(run_scale(scale), codes, count, values);
        for (int k = 0; k < count; ++k) y[c + k] = Target(values[k]);
    }
}

/// Values of scale rows [first, last), or of rows where a block has all rows.
template <class S, class Target>
NUMFMT_PER_ISA void reference_values(const quantized_view<const S>& q, matrix_view<Target> y, int64_t first,
                                     int64_t last) noexcept {
    if constexpr (S::block.rows == whole) {
        float multiplier = 1;
        if constexpr (S::has_tensor_scale) multiplier = *q.parts().tensor_scale;
        for (int64_t row = first; row < last; ++row) {
            for (int64_t j = 0; j < q.scale_shape().cols; ++j) {
                const int64_t c0 = j == 0 ? 0 : j * S::block.cols;
                const int64_t n = numfmt::detail::min(y.shape.cols - c0, S::block.cols);
                uint8_t zero_point = 0;
                if constexpr (S::has_zero_point) zero_point = q.zero_point(0, j);
                const auto scale = numfmt::detail::scale_from_storage<S>(q.scale(0, j), zero_point, multiplier);
                reference_run_values<S>(scale, q.code_row(row), c0, n, y.row(row) + c0);
            }
        }
    } else {
        numfmt::detail::dequantize_scale_rows(q, y, first, last);
    }
}

}  // namespace numfmt::simd::detail
