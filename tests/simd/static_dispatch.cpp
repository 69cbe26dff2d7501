// SPDX-License-Identifier: MIT
// The static way into numfmt::simd: a unit that is compiled for one instruction set includes the -inl.h headers, calls
// their functions in HWY_NAMESPACE, and needs neither the library nor run-time dispatch. Compiled for the oldest x86
// that Highway supports; small, so that tests/mutate.sh can build it for each planted fault.
#include <doctest/doctest.h>

#include <numfmt/simd/codec-inl.h>
#include <numfmt/simd/dequantize-inl.h>
#include <numfmt/simd/quantize-inl.h>
#include <numfmt/bf16.hpp>
#include <numfmt/block/quantize.hpp>
#include <numfmt/fp4.hpp>
#include <numfmt/fp8.hpp>
#include <numfmt/mxfp4.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace numfmt;
namespace kernels = numfmt::simd::HWY_NAMESPACE;

namespace {

// Every upper half of a float with a lower half on, beside and far from a tie, in a scrambled order.
std::vector<float> decisive() {
    std::vector<float> x;
    constexpr std::uint32_t lower[] = {0u, 1u, 0x8000u, 0xFFFFu};
    for (std::uint32_t i = 0; i < 4 * 65536; ++i) {
        const std::uint32_t upper = i * 40503u & 0xFFFFu;
        x.push_back(bit_cast<float>(upper << 16 | lower[i >> 16]));
    }
    return x;
}

template <class Format> std::vector<std::uint8_t> reference(const std::vector<float>& x, rounding r) {
    std::vector<std::uint8_t> codes(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        codes[i] = r == rounding::nearest_away  ? encode<Format, rounding::nearest_away>(x[i])
                   : r == rounding::toward_zero ? encode<Format, rounding::toward_zero>(x[i])
                                                : encode<Format>(x[i]);
    }
    return codes;
}

template <class Format> int wrong_codes(const std::vector<float>& x, rounding r) {
    const std::vector<std::uint8_t> expected = reference<Format>(x, r);
    std::vector<std::uint8_t> codes(x.size());
    kernels::encode_array<Format>(x.data(), static_cast<std::int64_t>(x.size()), codes.data(), r, {}, 0, 0);
    int wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) wrong += codes[i] != expected[i];
    return wrong;
}

// Blocks of every kind of scale, ties, zeros, and a tail; whole groups and single blocks.
std::vector<float> matrix_values(std::int64_t rows, std::int64_t cols) {
    std::mt19937 random(3);
    std::vector<float> x(static_cast<std::size_t>(rows * cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const auto step = static_cast<float>(static_cast<int>(random() % 257) - 128);
        const int exponent = static_cast<int>(i / 32 % 23) - 11;
        x[i] = i / 32 % 11 == 10 ? 0.0f : std::ldexp(step, exponent);
    }
    return x;
}

template <class S> bool same_as_reference(matrix_view<const float> x, const quantize_options& options) {
    const auto expected = quantize<S>(x, options).value;
    auto q = quantized_tensor<S>::make(x.shape).value;
    kernels::quantize_rows<S>(x, q.view(), {}, rounding::nearest_even, options, 0, q.view().scale_shape().rows);
    const auto a = q.view().parts();
    const auto b = expected.view().parts();
    const matrix_shape scales = q.view().scale_shape();
    const auto code_bytes = static_cast<std::size_t>(x.shape.rows * scheme_traits<S>::code_row_bytes(x.shape.cols));
    const auto scale_bytes = static_cast<std::size_t>(scales.rows * scales.cols) * sizeof *a.scales;
    return std::memcmp(a.codes, b.codes, code_bytes) == 0 && std::memcmp(a.scales, b.scales, scale_bytes) == 0;
}

}  // namespace

TEST_CASE("simd static: encode equals the reference, ties under every rule and values beside them") {
#if defined(__SSSE3__)
    static_assert(HWY_TARGET != HWY_SCALAR);
#endif
    const std::vector<float> x = decisive();
    for (const rounding r : {rounding::nearest_even, rounding::nearest_away, rounding::toward_zero}) {
        INFO(static_cast<int>(r));
        CHECK(wrong_codes<fp8_e4m3>(x, r) == 0);
        CHECK(wrong_codes<fp4_e2m1>(x, r) == 0);
    }
}

TEST_CASE("simd static: every length of an encode, nothing written outside") {
    constexpr std::size_t longest = 150;
    std::vector<float> x(longest);
    for (std::size_t i = 0; i < longest; ++i) x[i] = static_cast<float>(i) - 70.5f;
    const std::vector<std::uint8_t> expected = reference<fp8_e4m3>(x, rounding::nearest_even);
    int wrong = 0;
    for (std::size_t n = 0; n <= longest; ++n) {
        std::vector<std::uint8_t> codes(longest + 64, 0xA5);
        kernels::encode_array<fp8_e4m3>(x.data(), static_cast<std::int64_t>(n), codes.data(), rounding::nearest_even,
                                        {}, 0, 0);
        for (std::size_t i = 0; i < codes.size(); ++i) wrong += codes[i] != (i < n ? expected[i] : 0xA5);
    }
    CHECK(wrong == 0);
}

TEST_CASE("simd static: decode equals the reference for every code") {
    std::vector<std::uint8_t> codes(256);
    for (std::size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::uint8_t>(i);
    std::vector<float> y(256);
    kernels::decode_array<fp8_e4m3>(codes.data(), 256, y.data());
    int wrong = 0;
    for (std::size_t i = 0; i < 256; ++i) {
        const float expected = decode<fp8_e4m3>(codes[i]);
        wrong += std::isnan(expected) ? !std::isnan(y[i]) : std::memcmp(&y[i], &expected, sizeof expected) != 0;
    }
    CHECK(wrong == 0);
}

TEST_CASE("simd static: quantize to MXFP4 equals the reference under every scale rule") {
    constexpr matrix_shape shape{5, 1100};
    const std::vector<float> x = matrix_values(shape.rows, shape.cols);
    for (int rule = 0; rule < 4; ++rule) {
        INFO(rule);
        quantize_options options;
        options.scale_rule = static_cast<scale_rule>(rule);
        CHECK(same_as_reference<mxfp4>(matrix_view<const float>{x.data(), shape}, options));
    }
}
