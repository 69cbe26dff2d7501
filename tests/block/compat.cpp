// SPDX-License-Identifier: MIT
// Each preset of compat.hpp on the inputs that tell it from the others.
#include <doctest/doctest.h>

#include <numfmt/compat.hpp>
#include <numfmt/numfmt.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "support/crc32.hpp"
#include "support/inputs.hpp"

using namespace numfmt;

namespace {

template <class F> std::uint32_t crc_over_bf16(encode_options o) {
    numfmt_test::crc32 crc;
    for (std::uint32_t c = 0; c < 65536; ++c)
        crc.add_little_endian(encode<F>(bf16::from_bits(static_cast<uint16_t>(c)), o), 1);
    return crc.value();
}

template <class S> std::vector<int> codes(const quantized_tensor<S>& t) {
    std::vector<int> out;
    for (int64_t c = 0; c < t.view().cols(); ++c) out.push_back(t.view().code(0, c));
    return out;
}

template <class S, rounding R = rounding::nearest_even>
quantized_tensor<S> one_row(const std::vector<float>& x, const quantize_options& o) {
    auto t = quantize<S, R>(matrix_view<const float>{x.data(), {1, static_cast<int64_t>(x.size())}}, o);
    REQUIRE(t.ok());
    return std::move(t.value);
}

}  // namespace

TEST_CASE("compat: fp8 casts of CUDA, ml_dtypes and PyTorch over every bf16 number") {
    CHECK(crc_over_bf16<fp8_e4m3>(compat::cuda_satfinite) == 0x452A7AE4u);
    CHECK(crc_over_bf16<fp8_e4m3>(compat::cuda_nosat) == 0x3A170622u);
    CHECK(crc_over_bf16<fp8_e4m3>(compat::ml_dtypes) == 0xCBF713FEu);
    CHECK(crc_over_bf16<fp8_e4m3>(compat::torch_before_2026) == 0xCBF713FEu);
    CHECK(crc_over_bf16<fp8_e4m3>(compat::torch_since_2026_e4m3) == 0xB4CA6F38u);  // torch 2.15.0, executed
    CHECK(crc_over_bf16<fp8_e4m3>({.overflow = overflow::saturate_finite, .nan = nan_mode::canonical_signed}) ==
          0x1FB3E611u);
    CHECK(crc_over_bf16<fp8_e5m2>(compat::ml_dtypes) == 0xEE0DE81Cu);
    CHECK(crc_over_bf16<fp8_e5m2>(compat::torch_before_2026) == 0xAB11F833u);
    CHECK(crc_over_bf16<fp8_e5m2>(compat::torch_since_2026_e5m2) == 0xAB11F833u);
}

TEST_CASE("compat: where PyTorch changed in 2026") {
    const float inf = std::numeric_limits<float>::infinity();
    for (const float x : {464.0625f, 480.0f, 65504.0f, 1e6f}) {
        CHECK(encode<fp8_e4m3>(x, compat::torch_before_2026) == 0x7F);
        CHECK(encode<fp8_e4m3>(x, compat::torch_since_2026_e4m3) == 0x7E);
        CHECK(encode<fp8_e4m3>(-x, compat::torch_since_2026_e4m3) == 0xFE);
    }
    CHECK(encode<fp8_e4m3>(inf, compat::torch_before_2026) == 0x7F);
    CHECK(encode<fp8_e4m3>(-inf, compat::torch_before_2026) == 0xFF);
    CHECK(encode<fp8_e4m3>(inf, compat::torch_since_2026_e4m3) == 0x7E);
    CHECK(encode<fp8_e4m3>(-inf, compat::torch_since_2026_e4m3) == 0xFE);
    for (const encode_options& o : {compat::torch_before_2026, compat::torch_since_2026_e4m3}) {
        CHECK(encode<fp8_e4m3>(464.0f, o) == 0x7E);
        CHECK(encode<fp8_e4m3>(-std::numeric_limits<float>::quiet_NaN(), o) == 0xFF);
    }
}

TEST_CASE("compat: microxcaling rounds ties away from zero, ggml and DeepGEMM toward it, without -0") {
    // Scale 1 (amax 6): the seven midpoints of E2M1, and a number that rounds to -0.
    const std::vector<float> x = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 6.0f, -0.1f, -0.25f};
    CHECK(codes(one_row<mxfp4>(x, compat::torchao_mx.options)) == std::vector<int>{0, 2, 2, 4, 4, 6, 6, 7, 8, 8});
    CHECK(codes(one_row<mxfp4, compat::microxcaling.rounding>(x, compat::microxcaling.options)) ==
          std::vector<int>{1, 2, 3, 4, 5, 6, 7, 7, 8, 9});
    CHECK(codes(one_row<mxfp4, compat::ggml_mxfp4.rounding>(x, compat::ggml_mxfp4.options)) ==
          std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 0, 0});
    CHECK(codes(one_row<mxfp4, compat::deepgemm_fp4.rounding>(x, compat::deepgemm_fp4.options)) ==
          std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 0, 0});
}

TEST_CASE("compat: a block as ggml's quantize_row_mxfp4_ref stores it") {
    std::vector<float> x(32);
    for (int i = 0; i < 32; ++i) x[static_cast<size_t>(i)] = 0.4375f * static_cast<float>(i - 16);
    const auto t = one_row<mxfp4, compat::ggml_mxfp4.rounding>(x, compat::ggml_mxfp4.options);
    CHECK(t.view().scale(0, 0) == 0x7F);
    const std::vector<int> c = codes(t);
    // ggml keeps element j in the low and element j + 16 in the high nibble of byte j.
    const int executed[16] = {0x0f, 0x1f, 0x2f, 0x3f, 0x3f, 0x4e, 0x5e, 0x5e,
                              0x5d, 0x6d, 0x6d, 0x6c, 0x7b, 0x7b, 0x7a, 0x79};
    for (size_t j = 0; j < 16; ++j) CHECK((c[j] | c[j + 16] << 4) == executed[j]);
}

TEST_CASE("compat: Transformer Engine and torchao disagree on small NVFP4 blocks") {
    // Block 0 fixes the tensor's scale; the others are so small that their scale is below 2^-6, zero, or zero by
    // rounding.
    std::vector<float> x(64, 0.0f);
    x[0] = 448 * 6.0f;
    x[16] = 6 * 0.0078125f;  // exactly 6 times the subnormal scale 2^-7
    x[48] = 1e-4f;
    const auto te = one_row<nvfp4>(x, compat::transformer_engine.options);
    const auto ao = one_row<nvfp4>(x, compat::torchao_nvfp4.options);
    const int te_scales[4] = {0x7E, 0x04, 0x00, 0x00}, ao_scales[4] = {0x7E, 0x08, 0x08, 0x08};
    for (int j = 0; j < 4; ++j) {
        CHECK(te.view().scale(0, j) == te_scales[j]);
        CHECK(ao.view().scale(0, j) == ao_scales[j]);
    }
    CHECK(te.view().code(0, 16) == 7);  // 6
    CHECK(ao.view().code(0, 16) == 5);  // 3, at twice the scale
    std::vector<float> y(64);
    for (const auto* t : {&te, &ao}) {
        REQUIRE(dequantize(t->view(), matrix_view<float>{y.data(), {1, 64}}).ok());
        CHECK(y[32] == 0);
        CHECK(y[48] == 0);
    }
}

TEST_CASE("compat: an NVFP4 block in both orders of operations") {
    // 16 numbers beside a tensor maximum of 8; both orders give scale 192 and these codes.
    std::vector<float> x(32, 0.0f);
    for (int i = 0; i < 16; ++i) x[static_cast<size_t>(i)] = 0.4375f * static_cast<float>(i - 8);
    x[31] = 8;
    const int packed[8] = {0xff, 0xee, 0xcd, 0xab, 0x20, 0x43, 0x65, 0x76};
    for (const auto& p : {compat::transformer_engine, compat::torchao_nvfp4}) {
        const auto t = one_row<nvfp4>(x, p.options);
        CHECK(t.view().scale(0, 0) == 0x74);
        for (int j = 0; j < 8; ++j) CHECK(t.view().code_row(0)[j] == packed[j]);
    }
    const auto te = one_row<nvfp4>(x, compat::transformer_engine.options);
    CHECK(bit_cast<uint32_t>(*te.view().parts().tensor_scale) == bit_cast<uint32_t>(1.0f / 336.0f));
}

TEST_CASE("compat: DeepGEMM's floor and ue8m0 scales") {
    const struct {
        float amax;
        uint32_t scale;
        int code;
    } rows[] = {{0.0f, 0x346FACAD, 0x69},   {1e-5f, 0x346FACAD, 0x69},  {1e-4f, 0x346FACAD, 0x69},
                {1.0f, 0x3B124925, 0x77},   {1.75f, 0x3B800000, 0x77},  {3.5f, 0x3C000000, 0x78},
                {448.0f, 0x3F800000, 0x7F}, {449.0f, 0x3F804925, 0x80}, {1000.0f, 0x400EDB6E, 0x81}};
    for (const auto& row : rows) {
        CAPTURE(row.amax);
        CHECK(bit_cast<uint32_t>(one_row<block_fp8_1x128>({row.amax}, compat::deepgemm.options).view().scale(0, 0)) ==
              row.scale);
        CHECK(one_row<block_fp8<1, 128, e8m0>>({row.amax}, compat::deepgemm.options).view().scale(0, 0) == row.code);
        CHECK(bit_cast<uint32_t>(
                  one_row<block_fp8_1x128>({row.amax}, compat::deepseek_v3.options).view().scale(0, 0)) == row.scale);
    }
    // Without the preset there is no floor.
    CHECK(one_row<block_fp8_1x128>({1e-5f}, {}).view().scale(0, 0) == 1e-5f / 448.0f);
}

TEST_CASE("compat: x / s and x * (1 / s) are not the same") {
    int different = 0;
    for (int trial = 0; trial < 200; ++trial) {
        // Multiples of the scale that are midpoints of E4M3: one ulp decides.
        std::vector<float> x(128);
        x[0] = 1.0f + static_cast<float>(random_word(77, static_cast<uint64_t>(trial)) >> 9) * 0x1p-23f;
        for (size_t k = 1; k < x.size(); ++k)
            x[k] = (1.0625f + 0.125f * static_cast<float>(k % 8)) * static_cast<float>(1 << k / 16) * (x[0] / 448.0f);
        const auto a = codes(one_row<block_fp8_1x128>(x, compat::deepgemm.options));
        const auto b = codes(one_row<block_fp8_1x128>(x, compat::deepseek_v3.options));
        const auto t = one_row<block_fp8_1x128>(x, compat::deepseek_v3.options);
        const float s = t.view().scale(0, 0);
        for (size_t k = 0; k < x.size(); ++k) {
            CHECK(b[k] == encode<fp8_e4m3>(x[k] / s));
            CHECK(std::abs(a[k] - b[k]) <= 1);
            different += a[k] != b[k];
        }
    }
    CHECK(different > 100);
    CHECK(different < 200 * 127 / 2);
}

TEST_CASE("compat: llm-awq clips one-signed groups, with an fp32 scale of at least 1e-5 / 15") {
    const auto t = one_row<int4<8, float>>({1, 1.5f, 2, 2.5f, 3, 3.5f, 4, 5}, compat::llm_awq.options);
    CHECK(bit_cast<uint32_t>(t.view().scale(0, 0)) == 0x3E888889u);
    CHECK(t.view().zero_point(0, 0) == 0);
    CHECK(codes(t) == std::vector<int>{4, 6, 7, 9, 11, 13, 15, 15});
    for (const std::vector<float>& tiny : {std::vector<float>(8, 0.0f), std::vector<float>{0, 1e-6f, 0, 0, 0, 0, 0, 0}})
        CHECK(bit_cast<uint32_t>(one_row<int4<8, float>>(tiny, compat::llm_awq.options).view().scale(0, 0)) ==
              0x3532F4FCu);
}

TEST_CASE("case 42: a symmetric GPTQ zero point is code 8, stored as 7 or as 8 (vllm #38966 and #26343)") {
    // The symmetric scheme stores no zero points, so that there is nothing to be off by one: code 8 is 0.
    const auto t = one_row<int4_symmetric<32>>({0.0f, 1.0f, -1.0f}, {});
    CHECK(t.view().code(0, 0) == 8);
    float y[3];
    REQUIRE(dequantize(t.view(), matrix_view<float>{y, {1, 3}}).ok());
    CHECK(y[0] == 0);
}

TEST_CASE("case 45: the three rules for a symmetric int4 scale (ao #805, gptq #19)") {
    const std::vector<float> x = {-1.0f, 0.9f};
    using enum int4_symmetric_range;
    const struct {
        int4_symmetric_range rule;
        float scale;
        std::vector<int> codes;
    } rows[] = {{within_7, 1.0f / 7, {1, 14}},       // -7, 6.3
                {full_range, 1.0f / 7.5f, {1, 15}},  // the scale was rounded up: -7.4999995, 6.75
                {no_clipping, 0.9f / 7, {0, 15}}};   // -7.78, 7
    for (const auto& row : rows) {
        const auto t = one_row<int4_symmetric<32, float>>(x, {.int4_symmetric_range = row.rule});
        CHECK(t.view().scale(0, 0) == row.scale);
        CHECK(codes(t) == row.codes);
    }
}

TEST_CASE(
    "case 49: the global scale of NVFP4 divides in compressed-tensors and multiplies in ModelOpt (modular #6600)") {
    CHECK(convert_nvfp4_scale(3584.0f, nvfp4_scale_convention::divide) == 1.0f / 3584.0f);
    CHECK(convert_nvfp4_scale(1.0f / 3584.0f, nvfp4_scale_convention::multiply) == 1.0f / 3584.0f);
    // 6 * 448 / 3584 = 0.75, whichever way the scale is written down.
    uint8_t code[8] = {0x07}, scale = 0x7E;
    float y[16];
    for (const auto& [g, convention] : {std::pair{3584.0f, nvfp4_scale_convention::divide},
                                        std::pair{1.0f / 3584.0f, nvfp4_scale_convention::multiply}}) {
        float tensor_scale = convert_nvfp4_scale(g, convention);
        const auto v = quantized_view<nvfp4>::make(
            {.codes = code, .scales = &scale, .shape = {1, 16}, .tensor_scale = &tensor_scale});
        REQUIRE(v.ok());
        REQUIRE(dequantize(v.value, matrix_view<float>{y, {1, 16}}).ok());
        CHECK(y[0] == doctest::Approx(0.75).epsilon(1e-6));
    }
}
