// SPDX-License-Identifier: MIT
// Faults that other projects had with int4 groups, packing and bounds, each by its kind: all the values of that kind,
// not only the reported one.
#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include <cmath>
#include <vector>

#include "support/quantized.hpp"

using namespace numfmt;
using namespace numfmt_test;

TEST_CASE("case 41: the order of nibbles (llm-awq #91, Quark #30, vllm #48552)") {
    // The canonical order is sequential, even column in the low nibble; AWQ's 0,2,4,6,1,3,5,7 is a conversion
    // elsewhere.
    uint8_t codes[8], row[4];
    for (uint8_t k = 0; k < 8; ++k) codes[k] = k;
    pack<4>(codes, 8, row, 0);
    const uint32_t word = static_cast<uint32_t>(row[0] | row[1] << 8 | row[2] << 16) | static_cast<uint32_t>(row[3])
                                                                                           << 24;
    CHECK(word == 0x76543210);
    std::vector<float> x(8);
    for (size_t k = 0; k < 8; ++k) x[k] = static_cast<float>(k) / 7 * 15;  // scale 1, codes round(15 k / 7)
    const auto q = quantized_row<int4<8, float>>(x);
    CHECK(q.view().parts().codes[0] == 0x20);
    CHECK(q.view().parts().codes[1] == 0x64);
    CHECK(q.view().parts().codes[2] == 0xB9);
    CHECK(q.view().parts().codes[3] == 0xFD);
}

TEST_CASE("case 43: groups of one sign keep an error of half a step (llm-awq #193, AutoAWQ #185)") {
    std::vector<float> w;
    for (int k = 0; k < 8; ++k) w.push_back(10.5f + 0.5f * static_cast<float>(k));
    const auto reported = quantized_row<int4<8, float>>(w);
    CHECK(reported.view().scale(0, 0) == 14.0f / 15);
    CHECK(reported.view().zero_point(0, 0) == 0);
    // Every offset of a range of width 1, both signs: with zero in the range nothing clips. The fp16 scale is off by at
    // most 2^-11 of itself, fifteen steps of it at the end of the range.
    for (int k = -200; k <= 200; ++k) {
        std::vector<float> x;
        for (int j = 0; j <= 16; ++j) x.push_back(static_cast<float>(k) / 10 + static_cast<float>(j) / 16);
        const auto check = [&]<class S>(S, float bound, float scale, const std::vector<float>& y) {
            float worst = 0;
            for (size_t j = 0; j < x.size(); ++j) worst = std::max(worst, std::fabs(x[j] - y[j]) / scale);
            CAPTURE(k);
            CHECK(worst <= bound);
        };
        const auto f = quantized_row<int4<32, float>>(x);
        check(int4<32, float>{}, 0.5f + 1e-5f, f.view().scale(0, 0), values(f));
        const auto h = quantized_row<int4<32>>(x);
        check(int4<32>{}, 0.5f + 15.0f / 2048, decode<fp16>(h.view().scale(0, 0)), values(h));
    }
    // Over min and max alone, as llm-awq computes it, the reported group clips: zero point 0, all codes 15.
    const auto clipped = quantized_row<int4<8, float>>(w, {.int4_range = int4_range::minmax});
    CHECK(clipped.view().zero_point(0, 0) == 0);
    CHECK(values(clipped)[0] == doctest::Approx(3.5));
    CHECK(values(clipped)[7] == doctest::Approx(3.5));
}

TEST_CASE(
    "case 44: zero and tiny groups stay finite under fp16 scales (AutoAWQ #498 and #519, llm-awq #96, lmdeploy "
    "#1844)") {
    for (const int4_range range : {int4_range::include_zero, int4_range::minmax}) {
        for (int e = -149; e <= 20; ++e) {
            const float amax = std::ldexp(1.0f, e);
            const auto q = quantized_row<awq_int4>({amax, -amax / 3, 0, amax / 2}, {.int4_range = range});
            CAPTURE(e);
            const float scale = decode<fp16>(q.view().scale(0, 0));
            CHECK(scale > 0);
            CHECK(detail::is_finite(scale));
            const auto y = values(q);
            CHECK(count_nan(y) == 0);
            for (const float v : y) CHECK(std::fabs(v) <= std::fmax(1.1f * amax, 0x1p-24f));
            CHECK(y[2] == 0);
        }
        CHECK(count_nan(values(quantized_row<awq_int4>({0, 0, 0, 0}, {.int4_range = range}))) == 0);
        CHECK(count_nan(values(quantized_row<awq_int4>({1e-8f, 1e-8f}, {.int4_range = range}))) == 0);
        CHECK(count_nan(values(quantized_row<awq_int4>({5, 5, 5}, {.int4_range = range}))) == 0);
    }
}

TEST_CASE("case 46: sign extension does not reach the neighbour's nibble (onnx #6160 and #6161)") {
    for (int a = -8; a < 8; ++a)
        for (int b = -8; b < 8; ++b) {
            const uint8_t codes[2] = {static_cast<uint8_t>(a), static_cast<uint8_t>(b)};
            uint8_t byte = 0;
            pack<4>(codes, 2, &byte, 0);
            CHECK(byte == ((a & 15) | (b & 15) << 4));
        }
    const uint8_t reported[2] = {static_cast<uint8_t>(-1), static_cast<uint8_t>(-2)};
    uint8_t byte = 0;
    pack<4>(reported, 2, &byte, 0);
    CHECK(byte == 0xEF);
}

TEST_CASE(
    "case 47 and 48: the bias of the scale byte, and no factor of two in the elements (tilelang #2748, tinygrad "
    "#14850)") {
    uint8_t codes[16][8];
    for (auto& row : codes)
        for (int k = 0; k < 8; ++k) row[k] = static_cast<uint8_t>(2 * k | (2 * k + 1) << 4);  // all sixteen codes
    const double elements[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
    for (int s = 0; s < 255; ++s) {
        const auto scale = static_cast<uint8_t>(s);
        const auto v = quantized_view<const mxfp4>::make({.codes = codes[0], .scales = &scale, .shape = {1, 16}});
        float y[16];
        REQUIRE(dequantize(v.value, matrix_view<float>{y, {1, 16}}).ok());
        CAPTURE(s);
        for (int k = 0; k < 16; ++k) CHECK(y[k] == static_cast<float>(std::ldexp(elements[k], s - 127)));
    }
}

TEST_CASE(
    "case 51: positions past 2^31 elements (vllm #53390 and #9425, bitsandbytes #1784, FBGEMM #2131, unsloth #6884, "
    "Quark #43)") {
    // Addresses only: nothing is read or written.
    auto* const base = reinterpret_cast<uint8_t*>(std::uintptr_t{1} << 24);
    const auto offset = [&](const void* p) {
        return static_cast<int64_t>(reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(base));
    };
    const auto v = quantized_view<fp8_per_channel>::make(
                       {.codes = base, .scales = reinterpret_cast<float*>(base), .shape = {70000, 34816}})
                       .value;
    REQUIRE(v.rows() == 70000);
    CHECK(offset(v.code_row(61681)) == 2147485696);
    CHECK(offset(v.code_row(69999)) == int64_t{69999} * 34816);
    const matrix_view<float> x{reinterpret_cast<float*>(base), {70000, 34816}};
    CHECK(offset(x.row(61681)) == 4 * int64_t{2147485696});
    // Scales: every layout past 2^31 and 2^32.
    constexpr int64_t rows = 200000, cols = int64_t{32} * 40000;
    const auto at = [&](scale_layout layout, int64_t stride) {
        const auto w = quantized_view<mxfp4>::make(
            {.codes = base, .scales = base, .shape = {rows, cols}, .scale_stride = stride, .layout = layout});
        REQUIRE(w.ok());
        return w.value.scale_offset(rows - 1, 39999);
    };
    CHECK(at(scale_layout::row_major, 0) == 7999999999);
    CHECK(at(scale_layout::row_major, 50000) == int64_t{199999} * 50000 + 39999);
    CHECK(at(scale_layout::mn_major, 0) == 7999999999);
    // Tile (1562, 9999) of rows of 10000, inside it (63, 3).
    CHECK(at(scale_layout::tiled_128x4, 0) == (int64_t{1562} * 10000 + 9999) * 512 + 31 * 16 + 4 + 3);
    const auto z =
        quantized_view<int4<32>>::make(
            {.codes = base, .scales = reinterpret_cast<uint16_t*>(base), .shape = {rows, cols}, .zeros = base})
            .value;
    CHECK(offset(z.zero_row(199999)) == int64_t{199999} * 20000);
    CHECK(offset(z.code_row(199999)) == int64_t{199999} * (cols / 2));
    CHECK(scheme_traits<block_fp8_128x128>::scale_shape({int64_t{1} << 40, 129}) == matrix_shape{int64_t{1} << 33, 2});
    CHECK(scheme_traits<mxfp4>::bits_per_weight(matrix_shape{int64_t{1} << 30, 64}) == 4.25);
}

TEST_CASE("case 52: strides whose products pass 2^31 (SageAttention #390)") {
    auto* const base = reinterpret_cast<uint8_t*>(std::uintptr_t{1} << 24);
    const auto offset = [&](const void* p) {
        return static_cast<int64_t>(reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(base));
    };
    const auto v =
        quantized_view<mxfp8_e4m3>::make(
            {.codes = base, .scales = base, .shape = {100000, 64}, .code_stride = 21504, .scale_stride = 43008})
            .value;
    CHECK(offset(v.code_row(99864)) == 2147475456);
    CHECK(offset(v.code_row(99865)) == 2147496960);
    CHECK(v.scale_offset(99865, 1) == 4294993921);
    const matrix_view<fp16> x{reinterpret_cast<fp16*>(base), {100000, 64}, 43008};
    CHECK(offset(x.row(99865)) == int64_t{99865} * 43008 * 2);
}

TEST_CASE("case 53: rows and arrays at any alignment (flashinfer #5013, vllm #45466)") {
    // Bytes of 3420 and 46 columns put rows on every alignment; so does every start of the arrays.
    for (const int64_t cols : {46, 3420}) {
        std::vector<float> x(static_cast<size_t>(2 * cols));
        for (size_t k = 0; k < x.size(); ++k) x[k] = random_float(k);
        const auto want = values(quantized<mxfp4>(x, {2, cols}));
        const auto want_int4 = values(quantized<int4<32>>(x, {2, cols}));
        std::vector<uint8_t> bytes(static_cast<size_t>(2 * cols + 64)), scales(1024), zeros(1024);
        std::vector<float> source(x.size() + 16), y(x.size() + 16);
        for (size_t shift = 0; shift < 16; ++shift) {
            std::copy(x.begin(), x.end(), source.begin() + static_cast<std::ptrdiff_t>(shift));
            const matrix_view<const float> in{source.data() + shift, {2, cols}};
            const matrix_view<float> out{y.data() + shift, {2, cols}};
            CAPTURE(cols);
            CAPTURE(shift);
            const auto v = quantized_view<mxfp4>::make(
                {.codes = bytes.data() + shift, .scales = scales.data() + 15 - shift, .shape = {2, cols}});
            REQUIRE(quantize(in, v.value).ok());
            REQUIRE(dequantize(v.value, out).ok());
            CHECK(std::equal(want.begin(), want.end(), y.begin() + static_cast<std::ptrdiff_t>(shift)));
            const auto i = quantized_view<int4<32>>::make({.codes = bytes.data() + shift,
                                                           .scales = reinterpret_cast<uint16_t*>(scales.data()) + shift,
                                                           .shape = {2, cols},
                                                           .zeros = zeros.data() + shift});
            REQUIRE(quantize(in, i.value).ok());
            REQUIRE(dequantize(i.value, out).ok());
            CHECK(std::equal(want_int4.begin(), want_int4.end(), y.begin() + static_cast<std::ptrdiff_t>(shift)));
        }
    }
}
