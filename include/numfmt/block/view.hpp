// SPDX-License-Identifier: MIT
// Quantized tensors: a non-owning view (codes, scales, zero points, shape, strides), validated once when it is made,
// and an owning tensor beside it.
#pragma once

#include <new>

#include "../core/status.hpp"
#include "scheme.hpp"

namespace numfmt {

/// A non-owning rows x cols matrix of T, `stride` elements from row to row (0 means cols).
template <class T> struct matrix_view {
    T* data = nullptr;
    matrix_shape shape{};
    int64_t stride = 0;

    NUMFMT_FN int64_t row_stride() const noexcept { return stride == 0 ? shape.cols : stride; }
    NUMFMT_FN T* row(int64_t r) const noexcept { return data + r * row_stride(); }
    template <class U>
        requires(detail::is_same_v<U, const T> && !detail::is_same_v<U, T>)
    NUMFMT_FN operator matrix_view<U>() const noexcept {
        return {data, shape, stride};
    }
};

namespace detail {

template <class S, class T> struct like_const {
    using type = T;
};
template <class S, class T> struct like_const<const S, T> {
    using type = const T;
};

NUMFMT_FN bool product_overflows(int64_t a, int64_t b) noexcept { return b > 0 && a > int64_max / b; }

/// Checks an array of `rows` rows, `stride` units apart, each using `used` units of `unit_bytes` bytes.
NUMFMT_PER_ISA inline status check_rows(const void* p, const char* pointer_name, int64_t rows, int64_t used,
                                        int64_t stride, const char* stride_name, int64_t unit_bytes,
                                        int64_t alignment) noexcept {
    if (stride < used) return {status_code::too_small, stride_name, stride, used};
    if (product_overflows(rows, stride) || product_overflows(rows * stride, unit_bytes))
        return {status_code::size_overflow, stride_name, stride, 0};
    if (rows == 0 || used == 0) return {};
    if (p == nullptr) return {status_code::null_pointer, pointer_name, 0, 0};
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    if (address % static_cast<std::uintptr_t>(alignment) != 0)
        return {status_code::misaligned, pointer_name,
                static_cast<int64_t>(address % static_cast<std::uintptr_t>(alignment)), alignment};
    return {};
}

NUMFMT_PER_ISA inline status check_shape(matrix_shape s) noexcept {
    if (s.rows < 0) return {status_code::negative_size, "rows", s.rows, 0};
    if (s.cols < 0) return {status_code::negative_size, "cols", s.cols, 0};
    // 8 bits an element at most, and a bit count must fit as well.
    if (product_overflows(s.rows, s.cols) || product_overflows(s.rows * s.cols, 8))
        return {status_code::size_overflow, "rows", s.rows, 0};
    return {};
}

template <class T>
NUMFMT_PER_ISA status check_matrix(matrix_view<T> m, const char* name, const char* stride_name) noexcept {
    if (const status s = check_shape(m.shape); !s.ok()) return s;
    return check_rows(m.data, name, m.shape.rows, m.shape.cols, m.row_stride(), stride_name, sizeof(T), alignof(T));
}

}  // namespace detail

/// The arrays and strides a quantized_view is made from. Strides of 0 mean "tight".
template <class S> struct view_parts {
    using scale_storage = typename scheme_traits<detail::remove_cv_t<S>>::scale_storage;

    /// Packed codes, [rows][code_stride] bytes, each row starting on a byte (block/packing.hpp).
    typename detail::like_const<S, uint8_t>::type* codes = nullptr;
    /// Scales in the storage type of the scheme's scale, in the order that `layout` says.
    typename detail::like_const<S, scale_storage>::type* scales = nullptr;
    matrix_shape shape{};
    /// 4-bit zero points, [scale rows][zero_stride] bytes, packed like codes; only where the scheme has them.
    typename detail::like_const<S, uint8_t>::type* zeros = nullptr;
    /// One float for the tensor; only where the scheme has it (NVFP4). Not needed for an empty tensor.
    typename detail::like_const<S, float>::type* tensor_scale = nullptr;
    int64_t code_stride = 0;   ///< bytes
    int64_t scale_stride = 0;  ///< scales, or tiles for tiled_128x4
    int64_t zero_stride = 0;   ///< bytes
    scale_layout layout = scale_layout::row_major;
};

/// A quantized rows x cols tensor that somebody else owns. `quantized_view<const S>` is read-only. Made by `make`,
/// which checks everything that kernels then rely on.
template <class S> class quantized_view {
  public:
    using scheme = detail::remove_cv_t<S>;
    using traits = scheme_traits<scheme>;
    using scale_storage = typename traits::scale_storage;

    quantized_view() = default;

    /// Checks sizes, strides, pointers and alignment. Any row and column count is accepted, zero included.
    NUMFMT_PER_ISA static result<quantized_view> make(view_parts<S> p) noexcept {
        if (const status s = detail::check_shape(p.shape); !s.ok()) return {{}, s};
        const matrix_shape scales = traits::scale_shape(p.shape);
        const int64_t code_bytes = traits::code_row_bytes(p.shape.cols);
        const int64_t zero_bytes = traits::zero_row_bytes(scales.cols);
        matrix_shape rows_of_scales = scales;
        int64_t unit = sizeof(scale_storage);
        if (p.layout == scale_layout::mn_major) rows_of_scales = {scales.cols, scales.rows};
        if (p.layout == scale_layout::tiled_128x4) {
            rows_of_scales = {detail::ceil_div(scales.rows, 128), detail::ceil_div(scales.cols, 4)};
            unit *= 512;
        }
        if (p.code_stride == 0) p.code_stride = code_bytes;
        if (p.scale_stride == 0) p.scale_stride = rows_of_scales.cols;
        if (p.zero_stride == 0) p.zero_stride = zero_bytes;
        status s = detail::check_rows(p.codes, "codes", p.shape.rows, code_bytes, p.code_stride, "code_stride", 1, 1);
        if (!s.ok()) return {{}, s};
        s = detail::check_rows(p.scales, "scales", rows_of_scales.rows, rows_of_scales.cols, p.scale_stride,
                               "scale_stride", unit, alignof(scale_storage));
        if (!s.ok()) return {{}, s};
        if constexpr (scheme::has_zero_point) {
            s = detail::check_rows(p.zeros, "zeros", scales.rows, zero_bytes, p.zero_stride, "zero_stride", 1, 1);
            if (!s.ok()) return {{}, s};
        }
        if constexpr (scheme::has_tensor_scale) {
            const int64_t needed = p.shape.rows > 0 && p.shape.cols > 0 ? 1 : 0;
            s = detail::check_rows(p.tensor_scale, "tensor_scale", needed, 1, 1, "tensor_scale", 4, alignof(float));
            if (!s.ok()) return {{}, s};
        }
        quantized_view v;
        v.parts_ = p;
        return {v, {}};
    }

    template <class U>
        requires(detail::is_same_v<U, const S> && !detail::is_same_v<U, S>)
    NUMFMT_FN operator quantized_view<U>() const noexcept {
        return quantized_view<U>::trusted({parts_.codes, parts_.scales, parts_.shape, parts_.zeros, parts_.tensor_scale,
                                           parts_.code_stride, parts_.scale_stride, parts_.zero_stride, parts_.layout});
    }

    NUMFMT_FN matrix_shape shape() const noexcept { return parts_.shape; }
    NUMFMT_FN int64_t rows() const noexcept { return parts_.shape.rows; }
    NUMFMT_FN int64_t cols() const noexcept { return parts_.shape.cols; }
    NUMFMT_FN matrix_shape scale_shape() const noexcept { return traits::scale_shape(parts_.shape); }
    NUMFMT_FN const view_parts<S>& parts() const noexcept { return parts_; }

    /// First byte of row r's packed codes.
    NUMFMT_FN auto* code_row(int64_t r) const noexcept { return parts_.codes + r * parts_.code_stride; }
    /// First byte of the packed zero points of scale row i.
    NUMFMT_FN auto* zero_row(int64_t i) const noexcept { return parts_.zeros + i * parts_.zero_stride; }
    /// Position of scale (i, j) in `scales`.
    NUMFMT_FN int64_t scale_offset(int64_t i, int64_t j) const noexcept {
        switch (parts_.layout) {
            case scale_layout::mn_major:
                return j * parts_.scale_stride + i;
            case scale_layout::tiled_128x4:
                return (i / 128 * parts_.scale_stride + j / 4) * 512 + i % 32 * 16 + i % 128 / 32 * 4 + j % 4;
            default:
                return i * parts_.scale_stride + j;
        }
    }
    NUMFMT_FN auto& scale(int64_t i, int64_t j) const noexcept { return parts_.scales[scale_offset(i, j)]; }
    /// The code of element (r, c).
    NUMFMT_FN uint8_t code(int64_t r, int64_t c) const noexcept {
        return unpack_one<traits::element_bits>(code_row(r), c);
    }
    NUMFMT_FN uint8_t zero_point(int64_t i, int64_t j) const noexcept { return unpack_one<4>(zero_row(i), j); }

  private:
    template <class> friend class quantized_view;
    static NUMFMT_FN quantized_view trusted(view_parts<S> p) noexcept {
        quantized_view v;
        v.parts_ = p;
        return v;
    }

    view_parts<S> parts_{};
};

namespace detail {

/// A 64-byte aligned array, zero-filled. (std::vector would double the compile time of every format header.)
template <class T> class buffer {
  public:
    buffer() = default;
    /// Throws std::bad_alloc.
    NUMFMT_PER_ISA explicit buffer(int64_t n) : size_(n) {
        if (n <= 0) return;
        data_ = static_cast<T*>(::operator new(static_cast<size_t>(n) * sizeof(T), std::align_val_t{64}));
        for (int64_t i = 0; i < n; ++i) data_[i] = T{};
    }
    buffer(buffer&& o) noexcept : data_(o.data_), size_(o.size_) {
        o.data_ = nullptr;
        o.size_ = 0;
    }
    buffer& operator=(buffer&& o) noexcept {
        T* const data = data_;
        const int64_t size = size_;
        data_ = o.data_;
        size_ = o.size_;
        o.data_ = data;
        o.size_ = size;
        return *this;
    }
    ~buffer() { ::operator delete(data_, std::align_val_t{64}); }

    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    int64_t size() const noexcept { return size_; }

  private:
    T* data_ = nullptr;
    int64_t size_ = 0;
};

}  // namespace detail

/// An owning quantized tensor with tight strides and row-major scales. Movable, not copyable.
template <class S> class quantized_tensor {
  public:
    using scheme = S;
    using traits = scheme_traits<S>;

    quantized_tensor() = default;

    /// A tensor of zero bytes. Bad sizes give a status; throws std::bad_alloc when memory runs out.
    NUMFMT_PER_ISA static result<quantized_tensor> make(matrix_shape shape) {
        if (const status s = detail::check_shape(shape); !s.ok()) return {{}, s};
        const matrix_shape scales = traits::scale_shape(shape);
        quantized_tensor t;
        t.shape_ = shape;
        t.codes_ = detail::buffer<uint8_t>(shape.rows * traits::code_row_bytes(shape.cols));
        t.scales_ = detail::buffer<typename traits::scale_storage>(scales.rows * scales.cols);
        if constexpr (S::has_zero_point)
            t.zeros_ = detail::buffer<uint8_t>(scales.rows * traits::zero_row_bytes(scales.cols));
        return {static_cast<quantized_tensor&&>(t), {}};
    }

    matrix_shape shape() const noexcept { return shape_; }
    quantized_view<S> view() noexcept { return make_view<S>(*this); }
    quantized_view<const S> view() const noexcept { return make_view<const S>(*this); }

    /// Bytes of codes, scales, zero points and tensor scale together.
    int64_t bytes() const noexcept {
        return codes_.size() + scales_.size() * static_cast<int64_t>(sizeof(typename traits::scale_storage)) +
               zeros_.size() + (S::has_tensor_scale ? 4 : 0);
    }

  private:
    template <class View, class Self> NUMFMT_PER_ISA static quantized_view<View> make_view(Self& t) noexcept {
        view_parts<View> p;
        p.codes = t.codes_.data();
        p.scales = t.scales_.data();
        p.shape = t.shape_;
        if constexpr (S::has_zero_point) p.zeros = t.zeros_.data();
        if constexpr (S::has_tensor_scale) p.tensor_scale = &t.tensor_scale_;
        return quantized_view<View>::make(p).value;
    }

    matrix_shape shape_{};
    detail::buffer<uint8_t> codes_;
    detail::buffer<typename traits::scale_storage> scales_;
    detail::buffer<uint8_t> zeros_;
    float tensor_scale_ = 1.0f;
};

}  // namespace numfmt
