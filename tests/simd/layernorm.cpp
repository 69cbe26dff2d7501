// SPDX-License-Identifier: MIT
// numfmt::simd::layernorm and rmsnorm: the bits of the scalar definition on every target of the CPU with fused
// multiply-adds, and within the derived bound of the exact result on all; every type and scheme, tails, strides,
// canaries.
#include <numfmt/simd/layernorm.hpp>

#include <cstring>
#include <memory>
#include <string_view>

#include <numfmt/simd/thread_executor.hpp>

#include "inputs.hpp"
#include "support/norm_cases.hpp"
#include "targets.hpp"

using namespace numfmt;
using namespace numfmt_test;
namespace accu = numfmt::accumulate;

namespace {

bool fused_target() {
    const std::string_view name = simd::target_name();
    return name != "SSE2" && name != "SSSE3" && name != "SSE4" && name != "EMU128";
}

template <class T> bool same(T a, T b) {
    const float x = static_cast<float>(a), y = static_cast<float>(b);
    return (std::isnan(x) && std::isnan(y)) || std::memcmp(&a, &b, sizeof a) == 0;
}

// The definition: one chain after the other, element by element.
template <class X>
std::vector<float> by_definition(const std::vector<X>& x, bool centred, const simd::norm_options& o,
                                 accu::row_statistics* statistics = nullptr) {
    const auto value = [&](std::int64_t i) { return static_cast<float>(x[static_cast<std::size_t>(i)]); };
    const auto n = static_cast<std::int64_t>(x.size());
    const accu::row_statistics s =
        accu::statistics_of_row<simd::detail::norm_accumulator>(value, n, centred, o.variance, o.eps);
    if (statistics != nullptr) *statistics = s;
    std::vector<float> y;
    for (std::int64_t i = 0; i < n; ++i) {
        float v = accu::normalised(value(i), s);
        if (o.weight.present() && o.bias.present())
            v = std::fma(v, o.weight.at(i), o.bias.at(i));
        else if (o.weight.present())
            v *= o.weight.at(i);
        else if (o.bias.present())
            v += o.bias.at(i);
        y.push_back(v);
    }
    return y;
}

template <class X> matrix_view<const X> one_row(const std::vector<X>& x) {
    return {x.data(), {1, static_cast<std::int64_t>(x.size())}};
}

std::vector<float> normal(std::int64_t n, unsigned seed, float mean = 0) {
    std::vector<float> x = matrix(1, n, data::gaussian, seed);
    for (float& v : x) v += mean;
    return x;
}

}  // namespace

TEST_CASE(
    "layernorm, rmsnorm: rows that kernels get wrong, within the bound of the policy and with the definition's bits") {
    for (const norm_row& row : hard_norm_rows()) {
        const std::size_t n = row.x.size();
        for (const bool centred : {true, false}) {
            const exact_norm exact = normalise_exactly(row.x, centred, row.eps);
            simd::norm_options o;
            o.eps = row.eps;
            const std::vector<float> expected = by_definition(row.x, centred, o);
            for_each_target([&] {
                INFO(row.name);
                CAPTURE(centred);
                std::vector<float> y(n);
                float mean = -1, rstd = -1;
                o.mean = &mean;
                o.rstd = &rstd;
                const matrix_view<float> out{y.data(), {1, static_cast<std::int64_t>(n)}};
                REQUIRE(
                    (centred ? simd::layernorm(one_row(row.x), out, o) : simd::rmsnorm(one_row(row.x), out, o)).ok());
                int outside = 0, different = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    const double bound = norm_bound(row.x, exact, centred, row.eps, i, 1, 0, 64);
                    outside += !(std::fabs(static_cast<double>(y[i]) - exact.y[i]) <= bound);
                    different += !same(y[i], expected[i]);
                }
                CHECK(outside == 0);
                if (fused_target()) CHECK(different == 0);
                CHECK(static_cast<double>(mean) == doctest::Approx(static_cast<double>(exact.mean)).epsilon(1e-4));
                CHECK(static_cast<double>(rstd) == doctest::Approx(static_cast<double>(exact.rstd)).epsilon(1e-3));
            });
        }
    }
}

TEST_CASE("layernorm: what public reports expected") {
    for_each_target([&] {
        std::vector<float> y(16);
        const auto norm = [&](const std::vector<float>& x, float eps) {
            REQUIRE(simd::layernorm(one_row(x), matrix_view<float>{y.data(), {1, static_cast<std::int64_t>(x.size())}},
                                    {.eps = eps})
                        .ok());
        };
        norm({40000, 40001, 40002, 40003}, 1e-5f);  // case 54
        CHECK(y[0] == doctest::Approx(-1.341635).epsilon(1e-6));
        CHECK(y[2] == doctest::Approx(0.447212).epsilon(1e-6));
        norm({1e30f, 2e30f, 3e30f, 4e30f}, 1e-5f);  // case 57
        CHECK(y[0] == doctest::Approx(-1.34164).epsilon(1e-5));
        CHECK(y[3] == doctest::Approx(1.34164).epsilon(1e-5));
        std::vector<float> ramp;
        for (int i = 0; i < 16; ++i) ramp.push_back(static_cast<float>(1000.0 + i * 1e-3));
        norm(ramp, 1e-5f);  // case 55
        CHECK(y[0] == doctest::Approx(-1.34151).epsilon(1e-5));
        norm(std::vector<float>(16, 1234.0f), 0.0f);  // case 56
        for (const float v : y) CHECK(v == 0);
    });
}

TEST_CASE("layernorm: one-pass variance is wrong where the policy says so, shifted and two-pass are not") {
    const std::vector<float> x = normal(4096, 3, 3000);
    const exact_norm exact = normalise_exactly(x, true, 1e-5f);
    for_each_target([&] {
        std::vector<float> y(x.size());
        const matrix_view<float> out{y.data(), {1, 4096}};
        const auto worst = [&](variance_policy policy) {
            float rstd = 0;
            REQUIRE(simd::layernorm(one_row(x), out, {.variance = policy, .rstd = &rstd}).ok());
            return std::fabs(static_cast<double>(rstd) / static_cast<double>(exact.rstd) - 1);
        };
        // kappa^2 = 9e6 and 74 roundings of a chain: at least one rounding of E[x^2] itself, 2^-24 9e6 = 0.5, shows.
        CHECK(worst(variance_policy::one_pass) > 0.01);
        CHECK(worst(variance_policy::shifted) < 1e-4);
        CHECK(worst(variance_policy::two_pass) < 1e-5);
    });
}

namespace {

// Types of input and output, weights of every type, odd widths, one row after the other in one call.
template <class X, class Y> void types() {
    for (const std::int64_t n : {1, 31, 64, 100, 203, 512}) {
        if (reduced && n != 203) continue;
        const std::int64_t rows = 3, stride = n + 5;
        const std::vector<float> numbers = normal(rows * stride, static_cast<unsigned>(n), 0.25f);
        const std::vector<X> x = converted<X>(numbers);
        const std::vector<float> w32 = normal(n, 7), b32 = normal(n, 8);
        const std::vector<bf16> w16 = converted<bf16>(w32);
        const std::vector<fp16> b16 = converted<fp16>(b32);
        for (int which = 0; which < 5; ++which) {
            simd::norm_options o;
            if (which == 1) o.weight = w32.data();
            if (which == 2) o.bias = b32.data();
            if (which == 3) o.weight = w16.data(), o.bias = b16.data();
            if (which == 4) o.weight = w32.data(), o.bias = b32.data(), o.variance = variance_policy::shifted;
            for (const bool centred : {true, false}) {
                for_each_target([&] {
                    CAPTURE(n);
                    CAPTURE(which);
                    const Y canary = Y(3.0f);
                    std::vector<Y> y(static_cast<std::size_t>(rows * (n + 3) + 2), canary);
                    const matrix_view<const X> in{x.data(), {rows, n}, stride};
                    const matrix_view<Y> out{y.data() + 1, {rows, n}, n + 3};
                    REQUIRE((centred ? simd::layernorm(in, out, o) : simd::rmsnorm(in, out, o)).ok());
                    int different = 0, overrun = !same(y.front(), canary) + !same(y.back(), canary), far = 0;
                    for (std::int64_t r = 0; r < rows; ++r) {
                        const std::vector<X> row(in.row(r), in.row(r) + n);
                        const std::vector<float> expected = by_definition(row, centred, o);
                        for (std::int64_t i = 0; i < n + 3; ++i) {
                            const Y got = out.row(r)[i];
                            if (i >= n) {
                                overrun += !same(got, canary);
                                continue;
                            }
                            const float want = expected[static_cast<std::size_t>(i)];
                            different += !same(got, Y(want));
                            // One rounding of Y apart, for targets that round twice.
                            const float a = static_cast<float>(got), b = static_cast<float>(Y(want));
                            far += !(std::fabs(a - b) <= std::fabs(b) * (sizeof(Y) == 1 ? 0.26f : 1e-2f) + 2e-2f);
                        }
                    }
                    CHECK(overrun == 0);
                    CHECK(far == 0);
                    if (fused_target()) CHECK(different == 0);
                });
            }
        }
    }
}
template <class X> void outputs() {
    types<X, float>();
    types<X, bf16>();
    types<X, fp16>();
    types<X, fp8_e4m3>();
    types<X, fp8_e5m2>();
}

}  // namespace

TEST_CASE("layernorm, rmsnorm: every type to every type, weights, strides, canaries") {
    outputs<float>();
    outputs<bf16>();
    outputs<fp16>();
    outputs<fp8_e4m3>();
    outputs<fp8_e5m2>();
}

namespace {

template <class S> void quantizes(std::int64_t cols, const quantize_options& how, scale_layout layout) {
    const std::int64_t rows = 3;
    std::vector<float> numbers = matrix(rows, cols, data::gaussian, 11);
    if (cols > 40) numbers[static_cast<std::size_t>(cols) + 40] = std::numeric_limits<float>::infinity();
    const std::vector<bf16> x = converted<bf16>(numbers);
    const std::vector<bf16> w = converted<bf16>(normal(cols, 12, 1));
    simd::norm_options o;
    o.weight = w.data();
    for_each_target([&] {
        INFO(std::string(S::name));
        CAPTURE(cols);
        CAPTURE(static_cast<int>(layout));
        const matrix_view<const bf16> in{x.data(), {rows, cols}};
        std::vector<float> values(x.size());
        REQUIRE(simd::rmsnorm(in, matrix_view<float>{values.data(), {rows, cols}}, o).ok());
        const auto expected = numfmt::quantize<S>(matrix_view<const float>{values.data(), {rows, cols}}, how).value;
        const matrix_shape scales = scheme_traits<S>::scale_shape({rows, cols});
        using storage = typename scheme_traits<S>::scale_storage;
        const std::int64_t code_stride = scheme_traits<S>::code_row_bytes(cols) + 3;
        const std::int64_t zero_stride = scheme_traits<S>::zero_row_bytes(scales.cols) + 1;
        std::vector<std::uint8_t> codes(static_cast<std::size_t>(rows * code_stride), 0xA5),
            zeros(static_cast<std::size_t>(rows * zero_stride), 0);
        std::vector<storage> stored(static_cast<std::size_t>(
            layout == scale_layout::tiled_128x4 ? 512 * ((scales.cols + 3) / 4) : scales.rows * scales.cols));
        view_parts<S> parts;
        parts.codes = codes.data();
        parts.scales = stored.data();
        parts.shape = {rows, cols};
        parts.code_stride = code_stride;
        parts.layout = layout;
        if constexpr (S::has_zero_point) {
            parts.zeros = zeros.data();
            parts.zero_stride = zero_stride;
        }
        const auto view = quantized_view<S>::make(parts);
        REQUIRE(view.ok());
        REQUIRE(simd::rmsnorm(in, view.value, o, how).ok());
        int different = 0, overrun = 0;
        const auto reference = expected.view();
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < cols; ++c) different += view.value.code(r, c) != reference.code(r, c);
            for (std::int64_t j = 0; j < scales.cols; ++j) {
                const storage a = view.value.scale(r, j), b = reference.scale(r, j);
                different += std::memcmp(&a, &b, sizeof a) != 0;
                if constexpr (S::has_zero_point) different += view.value.zero_point(r, j) != reference.zero_point(r, j);
            }
            for (std::int64_t i = code_stride - 3; i < code_stride; ++i)
                overrun += codes[static_cast<std::size_t>(r * code_stride + i)] != 0xA5;
        }
        CHECK(different == 0);
        CHECK(overrun == 0);
    });
}

}  // namespace

TEST_CASE("rmsnorm into a scheme: what quantize makes of the normalised rows, buffers and layouts crossed") {
    for (const std::int64_t cols : {1, 40, 128, 2048, 2051, 4500}) {
        quantize_options how;
        quantizes<fp8_per_channel>(cols, how, scale_layout::row_major);
        quantizes<block_fp8_1x128>(cols, how, scale_layout::mn_major);
        quantizes<mxfp8_e4m3>(cols, how, scale_layout::tiled_128x4);
        how.scale_rule = scale_rule::round_up;
        how.nonfinite = nonfinite::saturate;
        quantizes<mxfp4>(cols, how, scale_layout::row_major);
        quantizes<mxfp6_e2m3>(cols, how, scale_layout::mn_major);
        quantizes<int4<32>>(cols, how, scale_layout::row_major);
        quantizes<fp8_per_channel>(cols, how, scale_layout::row_major);
    }
}

TEST_CASE("layernorm into a scheme, stochastic: a draw per element of the matrix, whatever the buffers") {
    const std::int64_t rows = 2, cols = 2500;
    const std::vector<float> x = matrix(rows, cols, data::gaussian, 5);
    const matrix_view<const float> in{x.data(), {rows, cols}};
    quantize_options how;
    how.seed = 9;
    how.offset = 3;
    for_each_target([&] {
        std::vector<float> values(x.size());
        REQUIRE(simd::layernorm(in, matrix_view<float>{values.data(), {rows, cols}}).ok());
        const auto expected =
            numfmt::quantize<mxfp4, rounding::stochastic>(matrix_view<const float>{values.data(), {rows, cols}}, how)
                .value;
        auto q = quantized_tensor<mxfp4>::make({rows, cols}).value;
        REQUIRE(simd::layernorm<rounding::stochastic>(in, q.view(), {}, how).ok());
        int different = 0;
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < cols; ++c) different += q.view().code(r, c) != expected.view().code(r, c);
        CHECK(different == 0);
    });
}

TEST_CASE("add_rmsnorm: the residual becomes the rounded sum, and that is what is normalised") {
    const std::int64_t rows = 3, n = 133, stride = n + 7;
    const std::vector<bf16> x = converted<bf16>(normal(rows * n, 21));
    const std::vector<bf16> before = converted<bf16>(normal(rows * stride, 22, 4));
    for_each_target([&] {
        for (const bool centred : {true, false}) {
            std::vector<bf16> residual = before, y(static_cast<std::size_t>(rows * n));
            const matrix_view<const bf16> in{x.data(), {rows, n}};
            const matrix_view<bf16> sum{residual.data(), {rows, n}, stride}, out{y.data(), {rows, n}};
            REQUIRE((centred ? simd::add_layernorm(in, sum, out) : simd::add_rmsnorm(in, sum, out)).ok());
            int wrong = 0, touched = 0;
            for (std::int64_t r = 0; r < rows; ++r) {
                std::vector<bf16> row;
                for (std::int64_t i = 0; i < stride; ++i) {
                    const bf16 old = before[static_cast<std::size_t>(r * stride + i)];
                    if (i < n) {
                        row.push_back(bf16(static_cast<float>(in.row(r)[i]) + static_cast<float>(old)));
                        wrong += !same(sum.row(r)[i], row.back());
                    } else if (r * stride + i < static_cast<std::int64_t>(residual.size())) {
                        touched += !same(residual[static_cast<std::size_t>(r * stride + i)], old);
                    }
                }
                const std::vector<float> expected = by_definition(row, centred, {});
                for (std::int64_t i = 0; i < n; ++i)
                    wrong += fused_target() && !same(out.row(r)[i], bf16(expected[static_cast<std::size_t>(i)]));
            }
            CHECK(wrong == 0);
            CHECK(touched == 0);
        }
    });
}

TEST_CASE("layernorm: in place, misaligned, by several threads, and around the caches: the same bits") {
    const std::int64_t rows = 700, n = 3420;
    const std::vector<float> numbers = normal(rows * n, 31);
    const std::vector<bf16> x = converted<bf16>(numbers);
    const matrix_view<const bf16> in{x.data(), {rows, n}};
    for_each_target([&] {
        std::vector<bf16> y(x.size()), in_place = x, odd(x.size() + 1);
        REQUIRE(simd::layernorm(in, matrix_view<bf16>{y.data(), {rows, n}}).ok());
        const matrix_view<bf16> same_place{in_place.data(), {rows, n}};
        REQUIRE(simd::layernorm(same_place, same_place, {}, simd::thread_executor(2)).ok());
        REQUIRE(simd::layernorm(in, matrix_view<bf16>{odd.data() + 1, {rows, n}}).ok());
        CHECK(std::memcmp(y.data(), in_place.data(), y.size() * 2) == 0);
        CHECK(std::memcmp(y.data(), odd.data() + 1, y.size() * 2) == 0);
    });
    // Past the threshold from which results are streamed.
    const std::int64_t many = simd::stream_threshold / (4 * 4096) + 3;
    const std::vector<float> large = normal(many * 4096, 32);
    std::vector<float> streamed(large.size()), plain(4096);
    REQUIRE(simd::rmsnorm(matrix_view<const float>{large.data(), {many, 4096}},
                          matrix_view<float>{streamed.data(), {many, 4096}})
                .ok());
    int wrong = 0;
    for (std::int64_t r = 0; r < many; r += 97) {
        const matrix_view<const float> row{large.data() + r * 4096, {1, 4096}};
        REQUIRE(simd::rmsnorm(row, matrix_view<float>{plain.data(), {1, 4096}}).ok());
        wrong += std::memcmp(plain.data(), streamed.data() + r * 4096, 4096 * 4) != 0;
    }
    CHECK(wrong == 0);
}

TEST_CASE("case 51, 52: rows more than 2^31 elements apart") {
    const std::int64_t stride = (std::int64_t{1} << 31) + 4099, n = 70;
    // Only the pages that are written are ever there.
    const std::unique_ptr<fp8_e4m3[]> memory(new fp8_e4m3[static_cast<std::size_t>(stride + n)]);
    const std::vector<fp8_e4m3> x = converted<fp8_e4m3>(normal(2 * n, 41, 1));
    std::memcpy(static_cast<void*>(memory.get()), x.data(), static_cast<std::size_t>(n));
    std::memcpy(static_cast<void*>(memory.get() + stride), x.data() + n, static_cast<std::size_t>(n));
    std::vector<float> y(static_cast<std::size_t>(2 * n));
    REQUIRE(
        simd::layernorm(matrix_view<const fp8_e4m3>{memory.get(), {2, n}, stride}, matrix_view<float>{y.data(), {2, n}})
            .ok());
    for (std::int64_t r = 0; r < 2; ++r) {
        const std::vector<float> expected =
            by_definition(std::vector<fp8_e4m3>(x.begin() + r * n, x.begin() + (r + 1) * n), true, {});
        for (std::int64_t i = 0; i < n; ++i)
            CHECK(y[static_cast<std::size_t>(r * n + i)] ==
                  doctest::Approx(expected[static_cast<std::size_t>(i)]).epsilon(1e-5));
    }
}

TEST_CASE("layernorm: a row with NaN or Inf, and only that row, is NaN") {
    const std::int64_t n = 100;
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        std::vector<float> x = normal(3 * n, 51), y(x.size());
        x[static_cast<std::size_t>(n) + 99] = bad;
        for_each_target([&] {
            REQUIRE(
                simd::layernorm(matrix_view<const float>{x.data(), {3, n}}, matrix_view<float>{y.data(), {3, n}}).ok());
            int nan[3] = {};
            for (std::int64_t i = 0; i < 3 * n; ++i) nan[i / n] += std::isnan(y[static_cast<std::size_t>(i)]);
            CHECK(nan[0] == 0);
            CHECK(nan[1] == n);
            CHECK(nan[2] == 0);
        });
    }
}

TEST_CASE("layernorm: bad input names the argument") {
    std::vector<float> x(20), y(20), w(5);
    const matrix_view<const float> in{x.data(), {4, 5}};
    const matrix_view<float> out{y.data(), {4, 5}};
    const auto refused = [](const status& s, status_code code, std::string_view argument) {
        CHECK(s.code == code);
        CHECK(argument == s.argument);
    };
    refused(simd::layernorm(in, matrix_view<float>{y.data(), {3, 5}}), status_code::shape_mismatch, "y.rows");
    refused(simd::layernorm(in, matrix_view<float>{y.data(), {4, 4}}), status_code::shape_mismatch, "y.cols");
    refused(simd::layernorm(matrix_view<const float>{nullptr, {4, 5}}, out), status_code::null_pointer, "x");
    refused(simd::rmsnorm(in, matrix_view<float>{nullptr, {4, 5}}), status_code::null_pointer, "y");
    refused(simd::rmsnorm(matrix_view<const float>{x.data(), {4, 5}, 4}, out), status_code::too_small, "x.stride");
    for (const float eps : {-1e-5f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
        refused(simd::layernorm(in, out, {.eps = eps}), status_code::out_of_range, "eps");
    const auto* const crooked = reinterpret_cast<const float*>(reinterpret_cast<const char*>(w.data()) + 1);
    refused(simd::layernorm(in, out, {.weight = crooked}), status_code::misaligned, "weight");
    refused(simd::layernorm(in, out, {.bias = crooked}), status_code::misaligned, "bias");
    refused(simd::add_layernorm(in, matrix_view<float>{x.data(), {4, 4}}, out), status_code::shape_mismatch,
            "residual.cols");
    refused(simd::add_rmsnorm(in, matrix_view<float>{nullptr, {4, 5}}, out), status_code::null_pointer, "residual");
    for (const float v : y) CHECK(v == 0);
    CHECK(simd::layernorm(matrix_view<const float>{nullptr, {0, 5}}, matrix_view<float>{nullptr, {0, 5}}).ok());
    CHECK(simd::rmsnorm(matrix_view<const float>{nullptr, {4, 0}}, matrix_view<float>{nullptr, {4, 0}}).ok());
}
