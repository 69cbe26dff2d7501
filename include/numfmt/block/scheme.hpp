// SPDX-License-Identifier: MIT
// What a quantization scheme is: a descriptor of a few facts, and the sizes that follow from them.
#pragma once

#include "../core/minifloat.hpp"
#include "packing.hpp"

namespace numfmt {

/// A block extent that covers the whole row, column or tensor.
inline constexpr int64_t whole = detail::int64_max;

/// Rows x columns of elements that share one scale. Columns run along the reduction axis.
struct block_shape {
    int64_t rows;
    int64_t cols;
    friend NUMFMT_FN bool operator==(const block_shape&, const block_shape&) = default;
};

/// Rows x columns of a matrix.
struct matrix_shape {
    int64_t rows = 0;
    int64_t cols = 0;
    friend NUMFMT_FN bool operator==(const matrix_shape&, const matrix_shape&) = default;
};

/// Order of the scales in memory; rows and columns here count scales, not elements.
enum class scale_layout : uint8_t {
    row_major,    ///< [row][column]; `scale_stride` elements from row to row
    mn_major,     ///< [column][row]; `scale_stride` elements from column to column (DeepGEMM's activations)
    tiled_128x4,  ///< 512-scale tiles of 128 rows x 4 columns, as Blackwell's block-scaled GEMM reads them (cuBLAS 13,
                  ///< "1D Block Scaling Factors Layout"); `scale_stride` counts tiles from tile row to tile row
};

/// An unsigned integer element: value = (code - zero_point) * scale. `spec` is an int_spec.
template <class E>
concept integer_format = requires { requires detail::is_same_v<detail::remove_cv_t<decltype(E::spec)>, int_spec>; };

/// The element of int4 schemes: codes 0..15, zero point subtracted.
struct uint4 {
    using storage = uint8_t;
    static constexpr int_spec spec{.bits = 4, .is_signed = false, .fraction_bits = 0, .min_code = 0, .max_code = 15};
    static constexpr const char* name = "uint4";
};

namespace detail {
template <class Scale> struct scale_traits {
    using storage = typename Scale::storage;
    static constexpr int bits = static_cast<int>(sizeof(storage)) * 8;  // as stored: UE4M3 takes a whole byte
    static constexpr bool power_of_two = Scale::spec.mantissa_bits == 0;
    static constexpr const char* name = Scale::name;
};
template <> struct scale_traits<float> {
    using storage = float;
    static constexpr int bits = 32;
    static constexpr bool power_of_two = false;
    static constexpr const char* name = "fp32";
};

NUMFMT_FN int element_bits(const float_spec& s) { return s.bits(); }
NUMFMT_FN int element_bits(const int_spec& s) { return s.bits; }
}  // namespace detail

/// A quantization scheme: an empty type with
///   name, source            strings: the scheme's name and where it is defined
///   element                 a float_format (minifloat) or integer_format of at most 8 bits
///   scale                   float, or a minifloat (e8m0, bf16, fp16, ...)
///   block                   block_shape; `whole` for extents that follow the tensor
///   has_zero_point          bool: one 4-bit zero point per scale
///   fixed_zero_point        int, only where unsigned codes have the same zero point everywhere (symmetric int4: 8)
///   has_tensor_scale        bool: one float for the whole tensor on top of the block scales
template <class S>
concept scheme = requires {
    S::name;
    typename S::element;
    typename S::scale;
    requires detail::is_same_v<detail::remove_cv_t<decltype(S::block)>, block_shape>;
    requires detail::is_same_v<detail::remove_cv_t<decltype(S::has_zero_point)>, bool>;
    requires detail::is_same_v<detail::remove_cv_t<decltype(S::has_tensor_scale)>, bool>;
} && (float_format<typename S::element> || integer_format<typename S::element>);

/// What most descriptors share; a scheme derives from it and adds `name` and `source`.
template <class Element, class Scale, int64_t Rows, int64_t Cols> struct block_scheme {
    using element = Element;
    using scale = Scale;
    static constexpr block_shape block{Rows, Cols};
    static constexpr bool has_zero_point = false;
    static constexpr bool has_tensor_scale = false;
};

/// Sizes and types derived from a scheme's descriptor.
template <class S> struct scheme_traits {
    using element = typename S::element;
    using scale_storage = typename detail::scale_traits<typename S::scale>::storage;
    static constexpr int element_bits = detail::element_bits(element::spec);
    static constexpr int scale_bits = detail::scale_traits<typename S::scale>::bits;
    static constexpr int zero_bits = S::has_zero_point ? 4 : 0;
    /// The scale is a power of two: scaling is exact.
    static constexpr bool power_of_two_scale = detail::scale_traits<typename S::scale>::power_of_two;

    /// Scales of a rows x cols tensor.
    static NUMFMT_FN matrix_shape scale_shape(matrix_shape t) noexcept {
        return {detail::ceil_div(t.rows, S::block.rows), detail::ceil_div(t.cols, S::block.cols)};
    }
    /// Bytes of one packed row of codes, and of zero points.
    static NUMFMT_FN int64_t code_row_bytes(int64_t cols) noexcept { return packed_row_bytes(cols, element_bits); }
    static NUMFMT_FN int64_t zero_row_bytes(int64_t scale_cols) noexcept { return packed_row_bytes(scale_cols, 4); }

    /// Bits per weight of a tensor without partial blocks: element bits plus the block's share of its scale and zero
    /// point. One scale for a whole row or tensor counts as 0.
    static NUMFMT_HD constexpr double bits_per_weight() noexcept {
        if (S::block.rows == whole || S::block.cols == whole) return element_bits;
        return element_bits + static_cast<double>(scale_bits + zero_bits) /
                                  (static_cast<double>(S::block.rows) * static_cast<double>(S::block.cols));
    }
    /// The same for one tensor: all stored bits, padding included, over rows * cols.
    static NUMFMT_HD constexpr double bits_per_weight(matrix_shape t) noexcept {
        const matrix_shape scales = scale_shape(t);
        const double code_bytes = static_cast<double>(t.rows) * static_cast<double>(code_row_bytes(t.cols));
        const double scale_count = static_cast<double>(scales.rows) * static_cast<double>(scales.cols);
        const double zero_bytes =
            S::has_zero_point ? static_cast<double>(scales.rows) * static_cast<double>(zero_row_bytes(scales.cols))
                              : 0.0;
        const double tensor_bits = S::has_tensor_scale ? 32.0 : 0.0;
        const double weights = static_cast<double>(t.rows) * static_cast<double>(t.cols);
        return weights > 0 ? (8 * (code_bytes + zero_bytes) + scale_bits * scale_count + tensor_bits) / weights : 0.0;
    }
};

namespace detail {

/// Scheme names made at compile time: "block_fp8_128x128", "int4_g64".
struct fixed_name {
    char text[48] = {};
    int length = 0;

    NUMFMT_HD constexpr fixed_name& add(const char* s) {
        for (; *s != '\0'; ++s) text[length++] = *s;
        return *this;
    }
    NUMFMT_HD constexpr fixed_name& add(int64_t v) {
        int64_t unit = 1;
        while (v / unit >= 10) unit *= 10;
        for (; unit > 0; unit /= 10) text[length++] = static_cast<char>('0' + v / unit % 10);
        return *this;
    }
};

}  // namespace detail
}  // namespace numfmt
