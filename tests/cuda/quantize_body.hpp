// SPDX-License-Identifier: MIT
// The comparison of the device's quantize and dequantize with the host's, shared by the quantize_*.cu programs: every
// byte of codes, scales and zero points, padding included, and every value that comes back.
#pragma once

#include "support.hpp"

#include <numfmt/cuda/quantize.cuh>

namespace numfmt_test {

namespace nc = numfmt::cuda;

/// Random numbers and all that a block can hold: kind 0 plain, 1 any bit pattern, 2 special blocks, 3 ties.
template <class T> std::vector<T> make_input(matrix_shape shape, int kind, uint64_t seed) {
    std::vector<T> x(static_cast<size_t>(shape.rows * shape.cols));
    random_words_stream r(seed);
    uint32_t block = 0;
    float scale = 1;
    for (size_t i = 0; i < x.size(); ++i) {
        const uint32_t w = r();
        if (i % 32 == 0) block = r();
        float v = static_cast<float>(static_cast<int32_t>(w)) * 0x1p-31f;
        if (kind == 0) {
            scale = (block & 7) == 0 ? 1e-3f : (block & 7) == 1 ? 250.0f : 1.0f;
            v *= scale;
        } else if (kind == 1) {
            v = bit_cast<float>((block & 1) != 0 ? w : (w & 0x807FFFFFu) | ((100 + (block >> 8 & 63)) << 23));
        } else if (kind == 2) {
            switch (block % 12) {
                case 0:
                    v = (w & 1) != 0 ? 0.0f : -0.0f;
                    break;
                case 1:
                    v = bit_cast<float>(w & 0x807FFFFFu);
                    break;  // subnormals of float
                case 2:
                    v = i % 32 == 5 ? bit_cast<float>(0xFFC00001u) : v;
                    break;  // one NaN
                case 3:
                    v = i % 32 == 31 ? -bit_cast<float>(0x7F800000u) : v;
                    break;  // one Inf
                case 4:
                    v *= 0x1p127f;
                    break;
                case 5:
                    v *= 0x1p-126f;
                    break;
                case 6:
                    v = bit_cast<float>(0x7F800000u | (w & 0x80000000u));
                    break;  // all Inf
                case 7:
                    v = bit_cast<float>(0x7FFFFFFFu);
                    break;  // all NaN
                case 8:
                    v = v < 0 ? -v : v;
                    break;
                case 9:
                    v *= 0x1p-14f;
                    break;
                case 10:
                    v *= 0x1p-24f;
                    break;
                default:
                    v = bit_cast<float>(0x7F7FFFFFu ^ (w & 0x80000000u));
                    break;
            }
        } else {
            // Multiples of a sixteenth of a power of two: ties of every element format.
            v = static_cast<float>(static_cast<int>(w % 257) - 128) * 0.0625f *
                numfmt::detail::exact_pow2(static_cast<int>(block % 40) - 20);
        }
        x[i] = T(v);
    }
    return x;
}

struct arrangement {
    int64_t x_extra = 0, code_extra = 0, scale_extra = 0, zero_extra = 0;  // beyond tight strides
    size_t x_front = 0, code_front = 0;                                    // bytes of misalignment
    scale_layout layout = scale_layout::row_major;
};

template <class S> int64_t scale_count(matrix_shape shape, scale_layout layout, int64_t extra, int64_t& stride) {
    const matrix_shape s = scheme_traits<S>::scale_shape(shape);
    const auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    if (layout == scale_layout::mn_major) return s.cols * (stride = s.rows + extra);
    if (layout == scale_layout::tiled_128x4) return up(s.rows, 128) * (stride = up(s.cols, 4) + extra) * 512;
    return s.rows * (stride = s.cols + extra);
}

template <class S, rounding R, class T>
void compare(matrix_shape shape, int kind, const quantize_options& o, const arrangement& a, differences& d) {
    using traits = scheme_traits<S>;
    using storage = typename traits::scale_storage;
    const std::vector<T> tight =
        make_input<T>(shape, kind, static_cast<uint64_t>(shape.rows * 1000003 + shape.cols * 7 + kind));
    const int64_t x_stride = shape.cols + a.x_extra;
    std::vector<T> x(static_cast<size_t>(shape.rows * x_stride), T(3.0f));
    for (int64_t r = 0; r < shape.rows; ++r)
        for (int64_t c = 0; c < shape.cols; ++c)
            x[static_cast<size_t>(r * x_stride + c)] = tight[static_cast<size_t>(r * shape.cols + c)];

    const int64_t code_stride = traits::code_row_bytes(shape.cols) + a.code_extra;
    const matrix_shape scales = traits::scale_shape(shape);
    const int64_t zero_stride = traits::zero_row_bytes(scales.cols) + a.zero_extra;
    int64_t scale_stride = 0;
    const int64_t n_scales = scale_count<S>(shape, a.layout, a.scale_extra, scale_stride);
    const int64_t n_zeros = S::has_zero_point ? scales.rows * zero_stride : 0;
    std::vector<uint8_t> codes(static_cast<size_t>(shape.rows * code_stride), 0xA5),
        zeros(static_cast<size_t>(n_zeros), 0xA5);
    std::vector<storage> scale_array(static_cast<size_t>(n_scales));
    std::memset(scale_array.data(), 0xA5, scale_array.size() * sizeof(storage));
    float tensor_scale = 0;

    const auto view = [&](uint8_t* c, storage* s, uint8_t* z, float* t) {
        view_parts<S> p;
        p.codes = c, p.scales = s, p.shape = shape;
        if constexpr (S::has_zero_point) p.zeros = z;
        if constexpr (S::has_tensor_scale) p.tensor_scale = t;
        p.code_stride = code_stride, p.scale_stride = scale_stride, p.zero_stride = zero_stride, p.layout = a.layout;
        const auto v = quantized_view<S>::make(p);
        REQUIRE(v.ok());
        return v.value;
    };
    const quantized_view<S> host_view = view(codes.data(), scale_array.data(), zeros.data(), &tensor_scale);
    REQUIRE(quantize<R>(matrix_view<const T>{x.data(), shape, x_stride}, host_view, o).ok());

    const device_array<T> dx(x, a.x_front);
    device_array<uint8_t> dcodes(codes.size(), a.code_front), dzeros(zeros.size());
    device_array<storage> dscales(scale_array.size());
    device_array<float> dtensor(1);
    device_array<uint8_t> memory(nc::quantize_workspace_size<S>());
    const quantized_view<S> device_view = view(dcodes.data(), dscales.data(), dzeros.data(), dtensor.data());
    const nc::launch_result launched = nc::quantize<R>(matrix_view<const T>{dx.data(), shape, x_stride}, device_view, o,
                                                       {memory.data(), memory.size()});
    REQUIRE(launched.status == status{});
    check_cuda(launched.error);
    const std::vector<uint8_t> got_codes = dcodes.host(), got_zeros = dzeros.host();
    const std::vector<storage> got_scales = dscales.host();
    CHECK(dcodes.intact());
    CHECK(dscales.intact());
    CHECK(dzeros.intact());
    CHECK(memory.intact());
    const auto where = [&](const char* what, size_t i) {
        return std::string(S::name) + " from " + std::to_string(sizeof(T)) + "-byte kind " + std::to_string(kind) +
               " " + std::to_string(shape.rows) + "x" + std::to_string(shape.cols) + " " + what + " " +
               std::to_string(i);
    };
    for (size_t i = 0; i < codes.size(); ++i)
        d.expect(got_codes[i] == codes[i],
                 [&] { return where("code byte", i) + ": " + hex(got_codes[i]) + " not " + hex(codes[i]); });
    for (size_t i = 0; i < zeros.size(); ++i) d.expect(got_zeros[i] == zeros[i], [&] { return where("zero byte", i); });
    for (size_t i = 0; i < scale_array.size(); ++i) {
        bool same = std::memcmp(&got_scales[i], &scale_array[i], sizeof(storage)) == 0;
        if constexpr (numfmt::detail::is_same_v<storage, float>)
            same = same || same_number(got_scales[i], scale_array[i]);
        d.expect(same, [&] { return where("scale", i); });
    }
    if constexpr (S::has_tensor_scale)
        d.expect(same_number(dtensor.host()[0], tensor_scale), [&] { return where("tensor scale", 0); });

    std::vector<T> want(x.size(), T(3.0f));
    REQUIRE(dequantize(quantized_view<const S>(host_view), matrix_view<T>{want.data(), shape, x_stride}).ok());
    device_array<T> dy(std::vector<T>(x.size(), T(3.0f)), a.x_front);
    const nc::launch_result back = nc::dequantize(device_view, matrix_view<T>{dy.data(), shape, x_stride});
    REQUIRE(back.ok());
    const std::vector<T> got = dy.host();
    CHECK(dy.intact());
    for (size_t i = 0; i < want.size(); ++i) d.expect(same_number(got[i], want[i]), [&] { return where("value", i); });
}

inline const matrix_shape shapes[] = {{1, 1},    {1, 7},     {3, 33},    {2, 64},   {5, 250},
                                      {1, 1000}, {130, 264}, {257, 129}, {3, 2056}, {2, 20016}};
inline const arrangement arrangements[] = {
    {.x_extra = 8, .code_extra = 8, .scale_extra = 3, .zero_extra = 1},
    {.x_extra = 1, .code_extra = 1, .layout = scale_layout::mn_major},
    {.scale_extra = 2, .code_front = 1, .layout = scale_layout::mn_major},
    {.x_front = 4, .layout = scale_layout::tiled_128x4},
    {.x_extra = 3, .scale_extra = 1, .layout = scale_layout::tiled_128x4},
};

/// Every scheme from T, default element options.
template <class T> void check_every_scheme() {
    for_each(all_schemes{}, [&]<class S>() {
        differences d;
        for (const matrix_shape shape : shapes)
            for (int kind = 0; kind < 4; ++kind) {
                compare<S, rounding::nearest_even, T>(shape, kind, {}, {}, d);
                compare<S, rounding::nearest_even, T>(shape, kind, {.nonfinite = nonfinite::saturate}, {}, d);
            }
        for (const arrangement& a : arrangements)
            for (const matrix_shape shape : {matrix_shape{130, 520}, matrix_shape{5, 77}})
                compare<S, rounding::nearest_even, T>(shape, 2, {.nonfinite = nonfinite::saturate}, a, d);
        NUMFMT_CHECK_NONE(d);
    });
}
/// The run-time options that change a scale or an element.
template <class T> void check_options() {
    quantize_options list[8];
    list[0].scale_rule = scale_rule::ceil;
    list[1].scale_rule = scale_rule::round_up;
    list[1].amax_floor = 1e-4f;
    list[2].scale_rule = scale_rule::even;
    list[2].int4_range = int4_range::minmax;
    list[3].division = scale_division::divide;
    list[3].int4_symmetric_range = int4_symmetric_range::full_range;
    list[4].nvfp4_order = nvfp4_order::torchao;
    list[4].int4_symmetric_range = int4_symmetric_range::no_clipping;
    list[5].element = {.overflow = overflow::to_nonfinite, .nan = nan_mode::keep_sign};
    list[5].nonfinite = nonfinite::saturate;
    list[6].element.drop_negative_zero = true;
    list[7].amax_floor = 1e-5f;
    list[7].int4_range = int4_range::minmax;
    for_each(all_schemes{}, [&]<class S>() {
        differences d;
        for (const quantize_options& o : list)
            for (int kind = 0; kind < 4; ++kind) compare<S, rounding::nearest_even, T>({9, 392}, kind, o, {}, d);
        NUMFMT_CHECK_NONE(d);
    });
}

}  // namespace numfmt_test
