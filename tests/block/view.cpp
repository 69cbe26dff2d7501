// SPDX-License-Identifier: MIT
// Views and owning tensors: every status with its argument and numbers, legal degenerate shapes, 64-bit positions.
#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace numfmt;

namespace {

constexpr int64_t big = std::numeric_limits<int64_t>::max();

void check(const status& got, status_code code, const char* argument, int64_t got_number, int64_t wanted) {
    CHECK(got.code == code);
    CHECK(std::string(got.argument) == argument);
    CHECK(got.got == got_number);
    CHECK(got.wanted == wanted);
}

/// Room for a 3x40 tensor of any scheme here, and views of it that are valid until a test spoils a part.
struct room {
    alignas(64) uint8_t bytes[4096] = {};
    alignas(64) float scales[2048] = {};
    float tensor_scale = 1;

    template <class S> view_parts<S> parts() {
        view_parts<S> p;
        p.codes = bytes;
        p.scales = reinterpret_cast<typename view_parts<S>::scale_storage*>(scales);
        p.shape = {3, 40};
        if constexpr (S::has_zero_point) p.zeros = bytes + 2048;
        if constexpr (S::has_tensor_scale) p.tensor_scale = &tensor_scale;
        return p;
    }
};

// A scheme with a scale for the tensor on top, to check that its pointer is wanted.
struct two_level {
    [[maybe_unused]] static constexpr const char* name = "two_level";
    using element = fp4_e2m1;
    using scale = fp8_e4m3;
    static constexpr block_shape block{1, 16};
    static constexpr bool has_zero_point = false;
    static constexpr bool has_tensor_scale = true;
};

template <class S> status make(const view_parts<S>& p) { return quantized_view<S>::make(p).status; }

}  // namespace

TEST_CASE("view: what is valid") {
    room m;
    for_each(all_schemes{}, [&]<class S>() {
        INFO(std::string(S::name));
        for (const scale_layout layout : {scale_layout::row_major, scale_layout::mn_major, scale_layout::tiled_128x4}) {
            auto p = m.parts<S>();
            p.layout = layout;
            const auto v = quantized_view<S>::make(p);
            REQUIRE(v.ok());
            // Zero strides have become tight ones.
            CHECK(v.value.rows() == 3);
            CHECK(v.value.cols() == 40);
            CHECK(v.value.parts().code_stride == 40 * scheme_traits<S>::element_bits / 8);
            const matrix_shape scales = v.value.scale_shape();
            CHECK(v.value.parts().scale_stride == (layout == scale_layout::row_major  ? scales.cols
                                                   : layout == scale_layout::mn_major ? scales.rows
                                                                                      : 1));
            CHECK(v.value.code_row(2) == m.bytes + 2 * v.value.parts().code_stride);
        }
    });
    CHECK(quantized_view<two_level>::make(m.parts<two_level>()).ok());
    CHECK(quantized_view<const two_level>(quantized_view<two_level>::make(m.parts<two_level>()).value)
              .parts()
              .tensor_scale == &m.tensor_scale);
}

TEST_CASE("view: null pointers are named") {
    room m;
    for_each(all_schemes{}, [&]<class S>() {
        auto p = m.parts<S>();
        p.codes = nullptr;
        check(make(p), status_code::null_pointer, "codes", 0, 0);
        p = m.parts<S>();
        p.scales = nullptr;
        check(make(p), status_code::null_pointer, "scales", 0, 0);
        p = m.parts<S>();
        p.zeros = nullptr;
        if (S::has_zero_point)
            check(make(p), status_code::null_pointer, "zeros", 0, 0);
        else
            CHECK(make(p).ok());
    });
    auto p = m.parts<two_level>();
    p.tensor_scale = nullptr;
    check(make(p), status_code::null_pointer, "tensor_scale", 0, 0);
}

TEST_CASE("view: negative and overflowing sizes") {
    room m;
    auto p = m.parts<mxfp4>();
    p.shape = {-1, 40};
    check(make(p), status_code::negative_size, "rows", -1, 0);
    p.shape = {3, -7};
    check(make(p), status_code::negative_size, "cols", -7, 0);
    p.shape = {std::numeric_limits<int64_t>::min(), -7};
    check(make(p), status_code::negative_size, "rows", std::numeric_limits<int64_t>::min(), 0);
    p.shape = {int64_t{1} << 62, 4};  // 2^64 elements
    check(make(p), status_code::size_overflow, "rows", int64_t{1} << 62, 0);
    p.shape = {int64_t{1} << 60, 1};  // 2^63 bits
    check(make(p), status_code::size_overflow, "rows", int64_t{1} << 60, 0);
    p.shape = {1, int64_t{1} << 60};
    check(make(p), status_code::size_overflow, "rows", 1, 0);
    p.shape = {(int64_t{1} << 60) - 1, 1};  // the last that fits
    CHECK(make(p).ok());
    p.shape = {big, big};
    check(make(p), status_code::size_overflow, "rows", big, 0);
    // Strides that make an array too large.
    p = m.parts<mxfp4>();
    p.code_stride = big / 2;
    check(make(p), status_code::size_overflow, "code_stride", big / 2, 0);
    p.code_stride = big / 3;
    CHECK(make(p).ok());
    p = m.parts<mxfp4>();
    p.scale_stride = big / 2;
    check(make(p), status_code::size_overflow, "scale_stride", big / 2, 0);
    auto f = m.parts<block_fp8_1x128>();
    f.scale_stride = big / 3;  // 3 rows fit, 4 bytes each do not
    check(make(f), status_code::size_overflow, "scale_stride", big / 3, 0);
    f.scale_stride = big / 12;
    CHECK(make(f).ok());
    p.scale_stride = big / 511;  // one row of tiles
    p.layout = scale_layout::tiled_128x4;
    check(make(p), status_code::size_overflow, "scale_stride", big / 511, 0);
    p.scale_stride = big / 512;
    CHECK(make(p).ok());
    auto z = m.parts<int4<32>>();
    z.zero_stride = big / 2;
    check(make(z), status_code::size_overflow, "zero_stride", big / 2, 0);

    check(quantized_tensor<mxfp4>::make({-3, 4}).status, status_code::negative_size, "rows", -3, 0);
    check(quantized_tensor<mxfp4>::make({3, -4}).status, status_code::negative_size, "cols", -4, 0);
    check(quantized_tensor<mxfp4>::make({int64_t{1} << 62, 4}).status, status_code::size_overflow, "rows",
          int64_t{1} << 62, 0);
}

TEST_CASE("view: strides that are too small") {
    room m;
    auto p = m.parts<mxfp4>();
    p.code_stride = 19;
    check(make(p), status_code::too_small, "code_stride", 19, 20);
    p.code_stride = -20;
    check(make(p), status_code::too_small, "code_stride", -20, 20);
    p.code_stride = 20;
    CHECK(make(p).ok());
    p.scale_stride = 1;
    check(make(p), status_code::too_small, "scale_stride", 1, 2);
    p.layout = scale_layout::mn_major;
    p.scale_stride = 2;
    check(make(p), status_code::too_small, "scale_stride", 2, 3);
    p.layout = scale_layout::tiled_128x4;
    p.scale_stride = -1;
    check(make(p), status_code::too_small, "scale_stride", -1, 1);
    p.scale_stride = 1;
    CHECK(make(p).ok());
    auto z = m.parts<int4<8>>();  // 5 groups, 3 bytes
    z.zero_stride = 2;
    check(make(z), status_code::too_small, "zero_stride", 2, 3);
    z.zero_stride = 3;
    CHECK(make(z).ok());
    z.scale_stride = 4;
    check(make(z), status_code::too_small, "scale_stride", 4, 5);
    // The message says it in words.
    char text[64];
    CHECK(message(make(z), text, sizeof text) == 52);
    CHECK(std::string(text) == "scale_stride is too small (got 4, wanted at least 5)");
}

TEST_CASE("view: misaligned scales") {
    room m;
    auto f = m.parts<block_fp8_1x128>();
    for (int offset = 1; offset < 4; ++offset) {
        f.scales = reinterpret_cast<float*>(m.bytes + offset);
        check(make(f), status_code::misaligned, "scales", offset, 4);
    }
    f.scales = reinterpret_cast<float*>(m.bytes + 4);
    CHECK(make(f).ok());
    auto h = m.parts<awq_int4>();
    h.scales = reinterpret_cast<uint16_t*>(m.bytes + 3);
    check(make(h), status_code::misaligned, "scales", 1, 2);
    h.scales = reinterpret_cast<uint16_t*>(m.bytes + 2);
    CHECK(make(h).ok());
    auto b = m.parts<mxfp4>();  // bytes have no alignment
    b.scales = m.bytes + 1;
    b.codes = m.bytes + 3;
    CHECK(make(b).ok());
}

TEST_CASE("view: zero rows and zero columns need no memory") {
    for_each(all_schemes{}, []<class S>() {
        for (const matrix_shape shape : {matrix_shape{0, 0}, matrix_shape{0, 100}, matrix_shape{100, 0}}) {
            for (const scale_layout layout :
                 {scale_layout::row_major, scale_layout::mn_major, scale_layout::tiled_128x4}) {
                view_parts<S> p;
                p.shape = shape;
                p.layout = layout;
                const auto v = quantized_view<S>::make(p);
                INFO(std::string(S::name));
                CHECK(v.ok());
                CHECK(v.value.shape() == shape);
                CHECK(quantize(matrix_view<const float>{nullptr, shape}, v.value).ok());
                CHECK(dequantize(v.value, matrix_view<float>{nullptr, shape}).ok());
            }
            auto t = quantized_tensor<S>::make(shape);
            CHECK(t.ok());
            CHECK(t.value.bytes() == (S::has_tensor_scale ? 4 : 0));
            CHECK(t.value.view().shape() == shape);
        }
        CHECK(quantized_view<S>().shape() == matrix_shape{0, 0});
    });
}

TEST_CASE("view: quantize and dequantize say what is wrong and write nothing") {
    room m;
    for (auto& b : m.bytes) b = 0xA5;
    const auto v = quantized_view<block_fp8_1x128>::make(m.parts<block_fp8_1x128>()).value;
    alignas(8) float x[3 * 50 + 2] = {};
    const auto both = [&](matrix_shape shape, int64_t stride, const char* pointer_x, const char* pointer_y,
                          status_code code, int64_t got, int64_t wanted, float* data) {
        check(quantize(matrix_view<const float>{data, shape, stride}, v), code, pointer_x, got, wanted);
        check(dequantize(v, matrix_view<float>{data, shape, stride}), code, pointer_y, got, wanted);
    };
    both({2, 40}, 0, "x.shape.rows", "y.shape.rows", status_code::shape_mismatch, 2, 3, x);
    both({3, 41}, 0, "x.shape.cols", "y.shape.cols", status_code::shape_mismatch, 41, 40, x);
    both({3, 40}, 0, "x", "y", status_code::null_pointer, 0, 0, nullptr);
    both({3, 40}, 39, "x.stride", "y.stride", status_code::too_small, 39, 40, x);
    both({3, 40}, -40, "x.stride", "y.stride", status_code::too_small, -40, 40, x);
    both({3, 40}, big / 3, "x.stride", "y.stride", status_code::size_overflow, big / 3, 0, x);
    both({-3, 40}, 0, "rows", "rows", status_code::negative_size, -3, 0, x);
    both({3, -40}, 0, "cols", "cols", status_code::negative_size, -40, 0, x);
    both({3, 40}, 0, "x", "y", status_code::misaligned, 1, 4,
         reinterpret_cast<float*>(reinterpret_cast<uint8_t*>(x) + 1));
    int touched = 0;
    for (const uint8_t b : m.bytes) touched += b != 0xA5;
    for (const float s : m.scales) touched += s != 0;
    for (const float s : x) touched += s != 0;
    CHECK(touched == 0);
    // The owning overload reports the same.
    check(quantize<mxfp4>(matrix_view<const float>{nullptr, {3, 40}}).status, status_code::null_pointer, "x", 0, 0);
    check(quantize<mxfp4>(matrix_view<const float>{x, {3, 40}, 2}).status, status_code::too_small, "x.stride", 2, 40);
    check(quantize<mxfp4>(
              matrix_view<const bf16>{reinterpret_cast<const bf16*>(reinterpret_cast<uint8_t*>(x) + 1), {3, 40}})
              .status,
          status_code::misaligned, "x", 1, 2);
    CHECK(quantize(matrix_view<const float>{x, {3, 40}, 50}, v).ok());
}

TEST_CASE("view: scale positions of the three layouts") {
    room m;
    view_parts<mxfp4> p = m.parts<mxfp4>();
    p.shape = {1, 1};
    p.layout = scale_layout::tiled_128x4;
    const auto one = quantized_view<mxfp4>::make(p).value;
    // cuBLAS 13, "1D Block Scaling Factors Layout": positions inside a tile.
    CHECK(one.scale_offset(0, 0) == 0);
    CHECK(one.scale_offset(0, 3) == 3);
    CHECK(one.scale_offset(1, 0) == 16);
    CHECK(one.scale_offset(31, 0) == 496);
    CHECK(one.scale_offset(32, 0) == 4);
    CHECK(one.scale_offset(64, 0) == 8);
    CHECK(one.scale_offset(96, 3) == 15);
    CHECK(one.scale_offset(127, 3) == 511);
    // Tiles follow each other along the columns first; 300 x 320 has 10 scale columns, three tiles a row.
    std::vector<uint8_t> codes(300 * 160), scales(3 * 3 * 512);
    const auto v =
        quantized_view<mxfp4>::make(
            {.codes = codes.data(), .scales = scales.data(), .shape = {300, 320}, .layout = scale_layout::tiled_128x4})
            .value;
    CHECK(v.parts().scale_stride == 3);
    CHECK(v.scale_offset(0, 4) == 512);
    CHECK(v.scale_offset(0, 8) == 1024);
    CHECK(v.scale_offset(128, 0) == 1536);
    CHECK(v.scale_offset(299, 9) == (2 * 3 + 2) * 512 + 11 * 16 + 4 + 1);
    // Every scale has its own place.
    std::vector<int> used(scales.size());
    for (int64_t i = 0; i < 300; ++i)
        for (int64_t j = 0; j < 10; ++j) ++used[static_cast<size_t>(v.scale_offset(i, j))];
    int64_t once = 0, more = 0;
    for (const int n : used) (n > 1 ? more : once) += n;
    CHECK(once == 3000);
    CHECK(more == 0);
    const auto row = quantized_view<mxfp4>::make(
                         {.codes = codes.data(), .scales = scales.data(), .shape = {300, 320}, .scale_stride = 12})
                         .value;
    CHECK(row.scale_offset(7, 9) == 93);
    const auto column =
        quantized_view<mxfp4>::make(
            {.codes = codes.data(), .scales = scales.data(), .shape = {300, 320}, .layout = scale_layout::mn_major})
            .value;
    CHECK(column.scale_offset(7, 9) == 2707);
}

TEST_CASE("view: a read-only view has the same parts") {
    room m;
    auto p = m.parts<int4<8>>();
    p.code_stride = 24;
    p.scale_stride = 7;
    p.zero_stride = 5;
    p.layout = scale_layout::mn_major;
    const quantized_view<int4<8>> v = quantized_view<int4<8>>::make(p).value;
    const quantized_view<const int4<8>> c = v;
    CHECK(c.parts().codes == p.codes);
    CHECK(c.parts().scales == p.scales);
    CHECK(c.parts().zeros == p.zeros);
    CHECK(c.parts().shape == p.shape);
    CHECK(c.parts().code_stride == 24);
    CHECK(c.parts().scale_stride == 7);
    CHECK(c.parts().zero_stride == 5);
    CHECK(c.parts().layout == scale_layout::mn_major);
    CHECK(c.zero_row(2) == p.zeros + 10);
    static_assert(std::is_same_v<decltype(c.code_row(0)), const uint8_t*> &&
                  std::is_same_v<decltype(v.code_row(0)), uint8_t*>);
    static_assert(std::is_convertible_v<quantized_view<mxfp4>, quantized_view<const mxfp4>>);
    static_assert(!std::is_convertible_v<quantized_view<const mxfp4>, quantized_view<mxfp4>>);
    static_assert(std::is_trivially_copyable_v<quantized_view<mxfp4>> &&
                  std::is_trivially_copyable_v<matrix_view<float>>);
    static_assert(std::is_convertible_v<matrix_view<float>, matrix_view<const float>> &&
                  !std::is_convertible_v<matrix_view<const float>, matrix_view<float>>);
    const matrix_view<const float> converted = matrix_view<float>{m.scales, {2, 3}, 5};
    CHECK(converted.row_stride() == 5);
    CHECK(converted.row(1) == m.scales + 5);
    CHECK(matrix_view<float>{m.scales, {2, 3}}.row(1) == m.scales + 3);
}

TEST_CASE("view: an owning tensor starts as zeros, aligned, and moves") {
    for_each(all_schemes{}, []<class S>() {
        auto made = quantized_tensor<S>::make({130, 130});
        REQUIRE(made.ok());
        quantized_tensor<S> t = std::move(made.value);
        static_assert(!std::is_copy_constructible_v<quantized_tensor<S>>);
        const auto v = t.view();
        INFO(std::string(S::name));
        CHECK(v.shape() == matrix_shape{130, 130});
        CHECK(reinterpret_cast<std::uintptr_t>(v.parts().codes) % 64 == 0);
        CHECK(reinterpret_cast<std::uintptr_t>(v.parts().scales) % 64 == 0);
        int nonzero = 0;
        for (int64_t k = 0; k < 130 * v.parts().code_stride; ++k) nonzero += v.parts().codes[k] != 0;
        CHECK(nonzero == 0);
        v.parts().codes[5] = 7;
        quantized_tensor<S> other = std::move(t);
        CHECK(std::as_const(other).view().parts().codes[5] == 7);
        quantized_tensor<S> assigned;
        CHECK(assigned.view().shape() == matrix_shape{0, 0});
        assigned = std::move(other);
        CHECK(assigned.view().parts().codes == v.parts().codes);
    });
}
