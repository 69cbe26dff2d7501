// SPDX-License-Identifier: MIT
// Stochastic rounding in quantize: element i of the row-major order draws word i, whatever the strides, the source and
// the way a tensor is cut; and it is unbiased.
#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "support/block_oracle.hpp"

using namespace numfmt;

namespace {

constexpr auto random_rounding = rounding::stochastic;

std::vector<float> bell(int64_t n) {
    std::vector<float> x(static_cast<size_t>(n));
    for (size_t k = 0; k < x.size(); ++k) {
        double sum = 0;
        for (uint64_t j = 0; j < 4; ++j) sum += static_cast<double>(block_oracle::philox_word(99, 4 * k + j));
        // Multiples of 2^-6 below 2: exact in bf16 and fp16.
        x[k] = static_cast<float>(std::floor(sum * 0x1p-26) - 128) * 0x1p-6f;
    }
    return x;
}

template <class S> std::vector<uint8_t> codes_of(const quantized_view<const S>& v) {
    std::vector<uint8_t> out;
    for (int64_t r = 0; r < v.rows(); ++r)
        for (int64_t c = 0; c < v.cols(); ++c) out.push_back(v.code(r, c));
    return out;
}
template <class S, class T> std::vector<uint8_t> random_codes(matrix_view<const T> x, const quantize_options& o) {
    const auto q = quantize<S, random_rounding>(x, o);
    REQUIRE(q.ok());
    return codes_of<S>(q.value.view());
}

}  // namespace

TEST_CASE("stochastic: the same codes for strided views, bf16 and fp16 sources of equal values") {
    constexpr int64_t rows = 140, cols = 150, stride = 171;
    const std::vector<float> x = bell(rows * cols);
    std::vector<float> strided(rows * stride, std::numeric_limits<float>::quiet_NaN());
    std::vector<bf16> b;
    std::vector<fp16> h;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
            const float v = x[static_cast<size_t>(r * cols + c)];
            strided[static_cast<size_t>(r * stride + c)] = v;
            b.push_back(bf16(v));
            h.push_back(fp16(v));
            REQUIRE(static_cast<float>(b.back()) == v);
            REQUIRE(static_cast<float>(h.back()) == v);
        }
    const quantize_options o{.seed = 0x123456789ABCDEF0u, .offset = 3};
    for_each(all_schemes{}, [&]<class S>() {
        const auto want = random_codes<S>(matrix_view<const float>{x.data(), {rows, cols}}, o);
        INFO(std::string(S::name));
        CHECK((random_codes<S>(matrix_view<const float>{strided.data(), {rows, cols}, stride}, o) == want));
        CHECK((random_codes<S>(matrix_view<const bf16>{b.data(), {rows, cols}}, o) == want));
        CHECK((random_codes<S>(matrix_view<const fp16>{h.data(), {rows, cols}}, o) == want));
        // And it is the seed and the offset that matter; MXINT8 holds these values exactly.
        if constexpr (detail::is_same_v<S, mxint8>) return;
        CHECK((random_codes<S>(matrix_view<const float>{x.data(), {rows, cols}}, {.seed = o.seed + 1, .offset = 3}) !=
               want));
        CHECK(
            (random_codes<S>(matrix_view<const float>{x.data(), {rows, cols}}, {.seed = o.seed, .offset = 4}) != want));
        CHECK((random_codes<S>(matrix_view<const float>{x.data(), {rows, cols}},
                               {.seed = o.seed + (uint64_t{1} << 32), .offset = 3}) != want));
    });
}

TEST_CASE("stochastic: slices of whole blocks of rows give the same codes under their offset") {
    constexpr int64_t rows = 384, cols = 70;
    const std::vector<float> x = bell(rows * cols);
    for_each(all_schemes{}, [&]<class S>() {
        if constexpr (S::block.rows != whole && !S::has_tensor_scale) {  // a scale of the tensor changes with the slice
            const auto want =
                random_codes<S>(matrix_view<const float>{x.data(), {rows, cols}}, {.seed = 5, .offset = 1000});
            std::vector<uint8_t> got;
            for (const int64_t first : {0, 128}) {
                const int64_t count = first == 0 ? 128 : 256;
                const auto part = random_codes<S>(matrix_view<const float>{x.data() + first * cols, {count, cols}},
                                                  {.seed = 5, .offset = 1000 + static_cast<uint64_t>(first * cols)});
                got.insert(got.end(), part.begin(), part.end());
            }
            INFO(std::string(S::name));
            CHECK((got == want));
        }
    });
}

TEST_CASE("stochastic: the draw is that of the logical index, also past 2^32 and around 2^64") {
    const block_oracle::scheme_facts& facts = block_oracle::facts_of("mxfp4");
    const std::vector<float> x = bell(3 * 50);
    for (const uint64_t offset : {uint64_t{0}, (uint64_t{1} << 32) - 7, (uint64_t{1} << 34) - 2, ~uint64_t{0} - 60}) {
        const quantize_options o{.seed = 42, .offset = offset};
        CAPTURE(offset);
        CHECK((random_codes<mxfp4>(matrix_view<const float>{x.data(), {3, 50}}, o) ==
               block_oracle::quantize(facts, x, 3, 50, random_rounding, o).codes));
    }
}

namespace {

// Mean of the decoded values of n elements of value v beside an element that fixes the scale.
template <class S> void check_unbiased(float amax, float v, double lower, double upper) {
    constexpr int64_t n = 20000, width = 20;  // rows of 20: one element amax, 19 of value v
    std::vector<float> x(static_cast<size_t>(n * width), v), y(x.size());
    for (size_t r = 0; r < n; ++r) x[r * width] = amax;
    const auto q = quantize<S, random_rounding>(matrix_view<const float>{x.data(), {n, width}}, {.seed = 2026});
    REQUIRE(dequantize(q.value.view(), matrix_view<float>{y.data(), {n, width}}).ok());
    double sum = 0, wrong = 0;
    const double count = static_cast<double>(n * (width - 1));
    for (size_t k = 0; k < y.size(); ++k) {
        if (k % width == 0) continue;
        const double value = static_cast<double>(y[k]);
        sum += value;
        wrong += value != lower && value != upper;
    }
    const double p = (static_cast<double>(v) - lower) / (upper - lower);
    const double sigma = (upper - lower) * std::sqrt(p * (1 - p) / count);
    INFO(std::string(S::name) << " " << v << ": mean " << sum / count << ", sigma " << sigma);
    CHECK(wrong == 0);
    CHECK(std::fabs(sum / count - static_cast<double>(v)) < 3 * sigma);
    CHECK(sigma > 0);
}

}  // namespace

TEST_CASE("stochastic: unbiased within three standard errors") {
    // Scale 1 (amax 448 or 4); neighbours of v on both sides.
    check_unbiased<mxfp8_e4m3>(448, 1.03125f, 1, 1.125);
    check_unbiased<mxfp8_e4m3>(448, 300, 288, 320);
    check_unbiased<mxfp8_e4m3>(448, -0.3f, -0.3125, -0.28125);
    check_unbiased<mxfp8_e4m3>(448, 0x1p-11f, 0, 0x1p-9);  // a quarter of the smallest number
    check_unbiased<mxfp8_e4m3>(448, 0x1.8p-16f, 0, 0x1p-9);
    check_unbiased<mxfp4>(4, 0.1f, 0, 0.5);
    check_unbiased<mxfp4>(4, 2.3f, 2, 3);
    check_unbiased<fp8_per_channel>(448, 3.3f, 3.25, 3.5);
    check_unbiased<block_fp8_128x128>(448, -100, -104, -96);
    check_unbiased<int4<32, float>>(15, 3.14159f, 3, 4);
    check_unbiased<int4<32, float>>(15, 0.01f, 0, 1);
    check_unbiased<awq_int4>(-15, -7.75f, -8, -7);
}
