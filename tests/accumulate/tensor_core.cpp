// SPDX-License-Identifier: MIT
// The model of the tensor core's sum: designed inputs with known results, special values, chains, promotion, shapes.
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <numfmt/accumulate/tensor_core.hpp>
#include <numfmt/bf16.hpp>
#include <numfmt/e8m0.hpp>
#include <numfmt/fp16.hpp>
#include <numfmt/fp4.hpp>
#include <numfmt/fp8.hpp>

#include "support/inputs.hpp"

using namespace numfmt::accumulate;
namespace tc = tensor_cores;
using numfmt::bf16;
using numfmt::fp16;
using numfmt::fp8_e4m3;
using numfmt::fp8_e5m2;

namespace {

struct factor {
    double a, b;
};
using products = std::vector<factor>;

products times(int n, factor p) { return products(static_cast<std::size_t>(n), p); }
products operator+(products x, const products& y) {
    x.insert(x.end(), y.begin(), y.end());
    return x;
}

template <class Format> tensor_core_operand operand(double x) {
    const Format f(x);
    CHECK(static_cast<double>(static_cast<float>(f)) == x);  // the case means this number
    return to_operand<Format>(f.bits());
}
template <class Format> std::uint32_t run(const tensor_core_model& m, float c, const products& p) {
    std::vector<tensor_core_operand> a, b;
    for (const factor& f : p) {
        a.push_back(operand<Format>(f.a));
        b.push_back(operand<Format>(f.b));
    }
    return tensor_core_dot(m, a.data(), b.data(), static_cast<std::int64_t>(p.size()), std::bit_cast<std::uint32_t>(c));
}
float value(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// 2^e as a product of two numbers of the format.
factor power(int e) { return {std::ldexp(1.0, e / 2), std::ldexp(1.0, e - e / 2)}; }
factor minus(factor f) { return {-f.a, f.b}; }

}  // namespace

TEST_CASE("tensor_core: bf16 on Hopper (groups of 16, 25 bits) and on Ampere (8, 24)") {
    const auto hopper = [](float c, const products& p) { return run<bf16>(tc::hopper_16bit, c, p); };
    const auto ampere = [](float c, const products& p) { return run<bf16>(tc::ampere_16bit, c, p); };
    const products four = times(4, power(-25)), two = times(2, power(-24)), eight = times(8, power(-26));
    CHECK(hopper(1, four) == 0x3F800001);
    CHECK(ampere(1, four) == 0x3F800000);
    CHECK(hopper(1, two) == 0x3F800001);
    CHECK(ampere(1, two) == 0x3F800001);
    CHECK(hopper(1, eight) == 0x3F800000);
    CHECK(ampere(1, eight) == 0x3F800000);
    CHECK(hopper(1, {minus(power(-25))}) == 0x3F7FFFFF);
    CHECK(ampere(1, {minus(power(-25))}) == 0x3F800000);
    CHECK(hopper(1, {minus(power(-24))}) == 0x3F7FFFFF);
    CHECK(ampere(1, {minus(power(-24))}) == 0x3F7FFFFF);
    CHECK(value(hopper(-1, {minus(power(-24))})) == -1);
    CHECK(value(ampere(-1, {minus(power(-24))})) == -1);
    CHECK(hopper(1 + 0x1p-23f, {power(-24)}) == 0x3F800001);
    CHECK(ampere(1 + 0x1p-23f, {power(-24)}) == 0x3F800001);
    const auto around_one = [](int e) { return products{power(e), {1, 1}, minus(power(e))}; };
    CHECK(value(hopper(0, around_one(24))) == 1);
    CHECK(value(ampere(0, around_one(24))) == 1);
    CHECK(value(hopper(0, around_one(25))) == 1);
    CHECK(value(ampere(0, around_one(25))) == 0);
    CHECK(value(hopper(0, around_one(26))) == 0);
    CHECK(value(ampere(0, around_one(26))) == 0);
    CHECK(hopper(0, products{{1.5, 1.5}} + times(8, power(-25))) == 0x40100001);
    CHECK(hopper(2.25f, times(8, power(-25))) == 0x40100000);
}

TEST_CASE("tensor_core: fp8 wgmma (groups of 32, 13 bits)") {
    const auto wgmma = [](float c, const products& p) { return run<fp8_e4m3>(tc::hopper_wgmma_fp8, c, p); };
    CHECK(value(wgmma(1, times(4, power(-14)))) == 1);
    CHECK(wgmma(1, times(2, {0x1p-6, 0x1p-7})) == 0x3F800800);
    CHECK(wgmma(0, products{{1.5, 1.5}} + times(2, {0x1p-6, 0x1p-7})) == 0x40100400);
    CHECK(wgmma(2.25f, times(2, {0x1p-6, 0x1p-7})) == 0x40100000);
    CHECK(wgmma(0, products{{2, 1.125}} + times(2, {0x1p-6, 0x1p-7})) == 0x40100000);
    const auto around = [](double a, double b) { return products{{448, 448}, {a, b}, {-448, 448}}; };
    CHECK(value(wgmma(0, around(4, 8))) == 32);
    CHECK(value(wgmma(0, around(2, 4))) == 8);
    CHECK(value(wgmma(0, around(2, 2))) == 0);
    CHECK(wgmma(16383, times(32, {1, 1})) == 0x46803C00);
    CHECK(value(wgmma(16384, times(32, {1, 1}))) == 16384);
    CHECK(value(wgmma(16384, times(32, {2, 1}))) == 16448);
    // Ada: the same bits in two chained groups of 16.
    CHECK(value(run<fp8_e4m3>(tc::ada_fp8, 16384, times(32, {1, 1}))) == 16384);
    CHECK(value(run<fp8_e4m3>(tc::ada_fp8, 16384, times(32, {2, 1}))) == 16448);
}

TEST_CASE("tensor_core: where a running sum of ones stops") {
    const auto stops_at = [](const tensor_core_model& m, tensor_core_operand one) {
        const std::vector<tensor_core_operand> ones(32, one);
        std::uint32_t c = 0, before = 1;
        // In steps of one instruction from well below.
        const float start = std::ldexp(1.0f, m.fraction_bits + 1) - 512;
        c = std::bit_cast<std::uint32_t>(start);
        for (int i = 0; i < 10000 && c != before; ++i) {
            before = c;
            c = tensor_core_instruction(m, ones.data(), ones.data(), c);
        }
        return value(c);
    };
    const tensor_core_operand one = to_operand<fp8_e4m3>(fp8_e4m3(1.0f).bits());
    CHECK(stops_at(tc::hopper_wgmma_fp8, one) == 0x1p14f);
    CHECK(stops_at(tc::ada_fp8, one) == 0x1p14f);
    CHECK(stops_at(tc::ampere_16bit, one) == 0x1p25f);
    CHECK(stops_at(tc::hopper_16bit, one) == 0x1p26f);
    // A product of exponent e adds nothing once C has the exponent e + F + 1.
    for (const int e : {-3, 0, 4}) {
        CHECK(value(run<fp8_e4m3>(tc::hopper_wgmma_fp8, std::ldexp(1.0f, e + 14), {{std::ldexp(1.75, e), 1.0}})) ==
              std::ldexp(1.0f, e + 14));
        CHECK(value(run<fp8_e4m3>(tc::hopper_wgmma_fp8, std::ldexp(1.0f, e + 13), {{std::ldexp(1.75, e), 1.0}})) ==
              std::ldexp(1.0f, e + 13) + std::ldexp(1.0f, e));
    }
}

TEST_CASE("tensor_core: fp8 mma.sync on Hopper is another function") {
    const auto mma = [](float c, const products& p) { return run<fp8_e4m3>(tc::hopper_mma_fp8, c, p); };
    // C is added last, in fp32, to nearest even.
    CHECK(value(mma(16384, times(32, {1, 1}))) == 16416);
    CHECK(mma(1 + 0x1p-23f, {{0x1p-6, 0x1p-6}}) == 0x3F800001 + 0x800);
    CHECK(value(mma(0x1p24f, {{1, 1}})) == 0x1p24f);
    CHECK(value(mma(0x1p24f, {{1, 1}, {0x1p-6, 0x1p-6}})) == 0x1p24f + 2);
    CHECK(std::isnan(value(mma(NAN, {{1, 1}}))));
    CHECK(mma(HUGE_VALF, {{1, 1}}) == 0x7F800000);
    // e4m3's subnormals are normal numbers of fp16: their exponent is their own (H200: 2^-9 x 2^15 and 1.25 x 2^-15).
    std::vector<tensor_core_operand> u(32, to_operand<fp8_e4m3>(0)), v(32, to_operand<fp8_e5m2>(0));
    u[18] = to_operand<fp8_e4m3>(0x01), v[18] = to_operand<fp8_e5m2>(0x78);
    u[29] = to_operand<fp8_e4m3>(0x12), v[29] = to_operand<fp8_e5m2>(0x14);
    CHECK(tensor_core_instruction(tc::hopper_mma_fp8, u.data(), v.data(), 0) == 0x42800005);
    tensor_core_model as_they_are = tc::hopper_mma_fp8;
    as_they_are.through_fp16 = false;
    CHECK(tensor_core_instruction(as_they_are, u.data(), v.data(), 0) == 0x42800004);
    // fp16: products 0, 1, 4, 5, ... first, rounded; then 2, 3, 6, 7, ...
    std::vector<tensor_core_operand> a(32, to_operand<fp8_e4m3>(0)), b(32, to_operand<fp8_e4m3>(fp8_e4m3(1.0f).bits()));
    const auto at = [&](int i, float x) { a[static_cast<std::size_t>(i)] = to_operand<fp8_e4m3>(fp8_e4m3(x).bits()); };
    const auto d = [&](const tensor_core_model& m) { return tensor_core_instruction(m, a.data(), b.data(), 0); };
    b[0] = to_operand<fp8_e4m3>(fp8_e4m3(256.0f).bits());
    at(0, 8);  // 2048, where fp16 has steps of 2: a single 1 is a tie that goes to 2048
    const auto half_value = [&](tensor_core_order order) {
        tensor_core_model m = tc::hopper_mma_fp8_to_fp16;
        CHECK(m.order == tensor_core_order::pairs_of_four);
        m.order = order;
        return static_cast<float>(fp16::from_bits(static_cast<std::uint16_t>(d(m))));
    };
    at(1, 1);
    at(2, 1);  // the other half of a register
    CHECK(half_value(tensor_core_order::pairs_of_four) == 2048);
    CHECK(half_value(tensor_core_order::contiguous) == 2050);
    at(2, 0);
    at(4, 1);
    CHECK(half_value(tensor_core_order::pairs_of_four) == 2050);
    CHECK(half_value(tensor_core_order::even_then_odd) == 2048);
    at(4, 0);
    at(16, 1);
    CHECK(half_value(tensor_core_order::pairs_of_four) == 2050);
    CHECK(half_value(tensor_core_order::contiguous) == 2048);
}

TEST_CASE("tensor_core: special values") {
    const double inf = HUGE_VAL, nan = std::nan("");
    const auto hopper = [](float c, std::vector<std::pair<std::uint16_t, std::uint16_t>> codes) {
        std::vector<tensor_core_operand> a, b;
        for (const auto& [x, y] : codes) {
            a.push_back(to_operand<bf16>(x));
            b.push_back(to_operand<bf16>(y));
        }
        return tensor_core_dot(tc::hopper_16bit, a.data(), b.data(), static_cast<std::int64_t>(a.size()),
                               std::bit_cast<std::uint32_t>(c));
    };
    const auto code = [](double x) { return bf16(x).bits(); };
    CHECK(hopper(0, {{code(inf), code(2)}}) == 0x7F800000);
    CHECK(hopper(0, {{code(inf), code(-2)}, {code(3), code(4)}}) == 0xFF800000);
    CHECK(hopper(0, {{code(inf), code(0)}}) == 0x7FFFFFFF);
    CHECK(hopper(0, {{code(0), code(-inf)}}) == 0x7FFFFFFF);
    CHECK(hopper(0, {{code(inf), code(1)}, {code(-inf), code(1)}}) == 0x7FFFFFFF);
    CHECK(hopper(0, {{code(inf), code(-inf)}}) == 0xFF800000);
    CHECK(hopper(0, {{code(nan), code(0)}}) == 0x7FFFFFFF);
    CHECK(hopper(NAN, {{code(1), code(1)}}) == 0x7FFFFFFF);
    CHECK(hopper(HUGE_VALF, {{code(1), code(1)}}) == 0x7F800000);
    CHECK(hopper(-HUGE_VALF, {{code(inf), code(1)}}) == 0x7FFFFFFF);
    CHECK(hopper(-HUGE_VALF, {{code(0x1p100), code(0x1p100)}}) == 0xFF800000);
    // Overflow of finite terms, and huge terms that cancel before they could overflow.
    CHECK(hopper(0, {{code(0x1p100), code(0x1p28)}}) == 0x7F800000);
    CHECK(hopper(0, {{code(0x1p100), code(0x1.8p27)}}) == 0x7F400000);
    CHECK(hopper(5, {{code(0x1p100), code(0x1p100)}, {code(-0x1p100), code(0x1p100)}}) == 0);
    CHECK(hopper(0x1.FFFFFEp127f, {{code(0x1p100), code(0x1p3)}}) == 0x7F7FFFFF);  // toward zero
    // E4M3 has a NaN and no Inf, E5M2 both.
    const tensor_core_operand e4m3_nan = to_operand<fp8_e4m3>(0x7F), e5m2_inf = to_operand<fp8_e5m2>(0x7C),
                              e5m2_nan = to_operand<fp8_e5m2>(0x7D), zero = to_operand<fp8_e5m2>(0x80);
    CHECK(e4m3_nan.significand == 0);
    CHECK(e5m2_inf.significand == 1024);
    CHECK(e5m2_nan.significand == 0);
    CHECK(tensor_core_dot(tc::hopper_wgmma_fp8, &e4m3_nan, &zero, 1) == 0x7FFFFFFF);
    CHECK(tensor_core_dot(tc::hopper_wgmma_fp8, &e5m2_inf, &e5m2_inf, 1) == 0x7F800000);
    CHECK(tensor_core_dot(tc::hopper_wgmma_fp8, &zero, &zero, 1) == 0);
    CHECK(tensor_core_dot(tc::hopper_fp16_to_fp16, &e5m2_nan, &zero, 1) == 0x7FFF);
    CHECK(tensor_core_dot(tc::hopper_fp16_to_fp16, &e5m2_inf, &e5m2_inf, 1, 0xFC00) == 0x7FFF);
    CHECK(tensor_core_dot(tc::hopper_fp16_to_fp16, &zero, &zero, 1, 0x8000) == 0);
}

TEST_CASE("tensor_core: operands of every code") {
    const auto check = [](auto format, std::uint32_t codes) {
        using F = decltype(format);
        for (std::uint32_t c = 0; c < codes; ++c) {
            const auto f = F::from_bits(static_cast<typename F::storage>(c));
            const tensor_core_operand o = to_operand<F>(f.bits());
            const float x = f;
            if (std::isnan(x)) {
                CHECK(o.significand == 0);
                CHECK(o.exponent > 4000);
            } else if (std::isinf(x)) {
                CHECK(o.significand == (x > 0 ? 1024 : -1024));
                CHECK(o.exponent > 4000);
            } else {
                CHECK(std::ldexp(static_cast<double>(o.significand), o.exponent - 10) == static_cast<double>(x));
                if (x == 0) CHECK(o.exponent < -2000);
                // Normal numbers have their leading bit in place, subnormal ones the smallest exponent.
                if (x != 0) CHECK((std::abs(o.significand) >= 1024 || o.exponent == F::spec.min_exponent()));
            }
        }
    };
    check(bf16{}, 65536);
    check(fp16{}, 65536);
    check(fp8_e4m3{}, 256);
    check(fp8_e5m2{}, 256);
    // tf32: the lower 13 bits of the register do not count.
    const auto t = to_operand<tf32>(std::bit_cast<std::uint32_t>(0x1.FFFFFEp3f));
    CHECK(t.significand == 2047);
    CHECK(t.exponent == 3);
    CHECK(to_operand<tf32>(0x7F800001).significand == 1024);  // a NaN whose payload is cut off reads as Inf
}

TEST_CASE("tensor_core: subnormals and outputs") {
    // The smallest fp16 products: exact, as a float.
    const auto h = [](float c, const products& p) { return run<fp16>(tc::hopper_16bit, c, p); };
    CHECK(value(h(0, {{0x1p-24, 0x1p-24}})) == 0x1p-48f);
    CHECK(value(h(0x1p-149f, {{0, 1}})) == 0x1p-149f);
    CHECK(value(h(-0x1p-140f, {{0, 1}})) == -0x1p-140f);
    // Tiny terms: nothing below 2^(-133 - 25) is kept, whatever their largest exponent. 13 terms of 2^u and the rest of
    // 2^-149 reach it only if 2^u is kept.
    const auto reaches = [](int u) {
        const std::int64_t rest = (std::int64_t{1} << (-149 - u)) - 13;
        products p = times(13, power(u));
        for (int shift = 0; rest >> shift > 0; shift += 7)
            p.push_back({std::ldexp(static_cast<double>(rest >> shift & 127), -75), std::ldexp(1.0, u + shift + 75)});
        return run<bf16>(tc::hopper_16bit, 0, p) == 1;
    };
    CHECK(reaches(-156));
    CHECK(reaches(-158));
    CHECK_FALSE(reaches(-159));
    // fp22: a subnormal addend keeps 13 fraction bits of 2^-126.
    CHECK(value(run<fp8_e4m3>(tc::hopper_wgmma_fp8, 0x1p-139f, {{0, 1}})) == 0x1p-139f);
    CHECK(value(run<fp8_e4m3>(tc::hopper_wgmma_fp8, 0x1p-140f, {{0, 1}})) == 0);
    CHECK(value(run<fp8_e4m3>(tc::hopper_wgmma_fp8, 0x1.FFFFFEp-1f, {{0, 1}})) == 0x1.FFF8p-1f);
    // fp16: to nearest, ties to even, through subnormals and overflow.
    const auto to_fp16 = [](float c, const products& p) {
        std::vector<tensor_core_operand> a, b;
        for (const factor& f : p) {
            a.push_back(operand<fp16>(f.a));
            b.push_back(operand<fp16>(f.b));
        }
        const std::uint32_t d = tensor_core_dot(tc::hopper_fp16_to_fp16, a.data(), b.data(),
                                                static_cast<std::int64_t>(a.size()), fp16(c).bits());
        return static_cast<float>(fp16::from_bits(static_cast<std::uint16_t>(d)));
    };
    CHECK(to_fp16(2048, {{1, 1}}) == 2048);
    CHECK(to_fp16(2050, {{1, 1}}) == 2052);
    CHECK(to_fp16(2048, {{1, 1}, {0x1p-4, 0x1p-5}}) == 2050);
    CHECK(to_fp16(65504, {{1, 15}}) == 65504);
    CHECK(to_fp16(65504, {{4, 4}}) == HUGE_VALF);
    CHECK(to_fp16(-65504, {{-4, 4}}) == -HUGE_VALF);
    CHECK(to_fp16(0, {{0x1p-24, 0.5}}) == 0);
    CHECK(to_fp16(0, {{0x1p-24, 0.75}}) == 0x1p-24f);
    CHECK(to_fp16(0x1p-24f, {{0x1p-24, 0.5}}) == 0x1p-23f);
    CHECK(to_fp16(-0x1p-14f, {{0x1p-24, 1}}) == -0x1p-14f + 0x1p-24f);
    // A negative sum that rounds to zero is +0 (H200).
    CHECK_FALSE(std::signbit(to_fp16(0, {{-0x1p-24, 0.5}})));
    CHECK(run<bf16>(tc::hopper_16bit, 0, {{-0x1p-72, 0x1p-78}}) == 0);
    CHECK(run<bf16>(tc::hopper_16bit, 0, {{-0x1p-71, 0x1p-78}}) == 0x80000001);
}

TEST_CASE("tensor_core: chains, tails and promotion") {
    const tensor_core_operand one = to_operand<fp8_e4m3>(fp8_e4m3(1.0f).bits());
    const std::vector<tensor_core_operand> ones(65536, one);
    const auto dot = [&](std::int64_t k, float c, std::int64_t every) {
        return value(
            tensor_core_dot(tc::hopper_wgmma_fp8, ones.data(), ones.data(), k, std::bit_cast<std::uint32_t>(c), every));
    };
    CHECK(dot(65536, 0, 0) == 16384);
    CHECK(dot(65536, 0, 128) == 65536);
    CHECK(dot(65536, 1, 128) == 65537);
    CHECK(dot(65536, 0, 1 << 15) == 32768);
    CHECK(dot(1000, 0, 0) == 1000);
    CHECK(dot(1000, 0, 128) == 1000);
    CHECK(dot(33, 5, 0) == 38);
    CHECK(dot(0, 3, 0) == 3);
    CHECK(dot(0, 3, 128) == 3);
    // A chain is the same as its instructions one by one.
    numfmt_test::random_stream r(1);
    std::vector<tensor_core_operand> a, b;
    for (int i = 0; i < 512; ++i) {
        a.push_back(to_operand<bf16>(static_cast<std::uint16_t>(0x3000 + r.below(0x2000) + (r.below(2) << 15))));
        b.push_back(to_operand<bf16>(static_cast<std::uint16_t>(0x3000 + r.below(0x2000))));
    }
    for (const tensor_core_model& m : {tc::volta_fp16, tc::ampere_16bit, tc::ampere_tf32, tc::hopper_16bit,
                                       tc::hopper_tf32, tc::hopper_mma_fp8, tc::blackwell_f8f6f4}) {
        std::uint32_t c = 0x3F800000;
        for (int i = 0; i < 512; i += m.k) c = tensor_core_instruction(m, a.data() + i, b.data() + i, c);
        CHECK(tensor_core_dot(m, a.data(), b.data(), 512, 0x3F800000) == c);
    }
}

TEST_CASE("tensor_core: constant evaluation") {
    static constexpr auto d = [] {
        tensor_core_operand a[16] = {}, b[16] = {};
        for (int i = 0; i < 16; ++i) {
            a[i] = to_operand<bf16>(0x3F80);
            b[i] = to_operand<bf16>(0x3380);  // 2^-24
        }
        return tensor_core_instruction(tc::hopper_16bit, a, b, 0x3F800000);
    }();
    static_assert(d == 0x3F800008);
}

TEST_CASE("tensor_core: a matrix product is its dot products") {
    constexpr std::int64_t m = 5, n = 7, k = 70;
    numfmt_test::random_stream r(3);
    std::vector<tensor_core_operand> a, b;
    for (int i = 0; i < m * k; ++i) a.push_back(to_operand<fp8_e4m3>(static_cast<std::uint8_t>(r.below(0x70))));
    for (int i = 0; i < n * k; ++i) b.push_back(to_operand<fp8_e4m3>(static_cast<std::uint8_t>(r.below(0x70))));
    for (const std::int64_t every : {0, 32}) {
        std::vector<float> d(m * n, 2.0f);
        tensor_core_matmul(tc::hopper_wgmma_fp8, a.data(), b.data(), d.data(), 0, 2, n, k, every);
        tensor_core_matmul(tc::hopper_wgmma_fp8, a.data(), b.data(), d.data(), 2, m, n, k, every);
        for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j)
                CHECK(std::bit_cast<std::uint32_t>(d[static_cast<std::size_t>(i * n + j)]) ==
                      tensor_core_dot(tc::hopper_wgmma_fp8, a.data() + i * k, b.data() + j * k, k, 0x40000000, every));
    }
}

TEST_CASE("tensor_core: 512 x 512 x 512 in less than a minute") {
    constexpr std::int64_t n = 512;
    numfmt_test::random_stream r(11);
    std::vector<tensor_core_operand> a, b;
    for (std::int64_t i = 0; i < n * n; ++i) {
        a.push_back(to_operand<bf16>(static_cast<std::uint16_t>(0x3C00 + r.below(0x600) + (r.below(2) << 15))));
        b.push_back(to_operand<bf16>(static_cast<std::uint16_t>(0x3C00 + r.below(0x600) + (r.below(2) << 15))));
    }
    std::vector<float> d(static_cast<std::size_t>(n * n));
    const auto start = std::chrono::steady_clock::now();
    tensor_core_matmul(tc::hopper_16bit, a.data(), b.data(), d.data(), 0, n, n, n);
    CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 60);
    for (std::int64_t i = 0; i < n; i += 37)
        CHECK(std::bit_cast<std::uint32_t>(d[static_cast<std::size_t>(i * n + (i * 7) % n)]) ==
              tensor_core_dot(tc::hopper_16bit, a.data() + i * n, b.data() + (i * 7) % n * n, n));
}

TEST_CASE("tensor_core: block-scaled instructions of Blackwell, as published") {
    using numfmt::e8m0;
    using numfmt::fp4_e2m1;
    using numfmt::fp8_ue4m3;
    const auto power_scale = [](int e) { return to_block_scale<e8m0>(static_cast<std::uint8_t>(127 + e)); };
    CHECK(to_block_scale<e8m0>(0xFF).exponent > 4000);
    CHECK(to_block_scale<fp8_ue4m3>(fp8_ue4m3(1.5f).bits()).significand == 1536);
    CHECK(to_block_scale<fp8_ue4m3>(0x7F).exponent > 4000);

    // mxf8: with scales of 1 the unscaled instruction; scales shift the result exactly and move C's alignment.
    numfmt_test::random_stream r(4);
    std::vector<tensor_core_operand> a, b;
    for (int i = 0; i < 32; ++i) {
        a.push_back(to_operand<fp8_e4m3>(static_cast<std::uint8_t>(r.below(0x7F) + 0x80 * r.below(2))));
        b.push_back(to_operand<fp8_e4m3>(static_cast<std::uint8_t>(r.below(0x7F))));
    }
    const std::uint32_t plain = tensor_core_instruction(tc::blackwell_f8f6f4, a.data(), b.data(), 0x3F800000);
    CHECK(tensor_core_mxf8(a.data(), b.data(), power_scale(0), power_scale(0), 0x3F800000) == plain);
    CHECK(value(tensor_core_mxf8(a.data(), b.data(), power_scale(20), power_scale(-7), 0)) ==
          std::ldexp(value(tensor_core_instruction(tc::blackwell_f8f6f4, a.data(), b.data(), 0)), 13));
    CHECK(tensor_core_mxf8(a.data(), b.data(), power_scale(-60), power_scale(0), 0x3F800000) == 0x3F800000);
    CHECK(tensor_core_mxf8(a.data(), b.data(), to_block_scale<e8m0>(0xFF), power_scale(0), 0) == 0x7FFFFFFF);

    // mxf4, nvf4: exact sums of 16, scale significands, 35 bits.
    std::vector<tensor_core_operand> x(64), y(64), sa(4), sb(4);
    const auto fill = [&](std::vector<tensor_core_operand>& v, int first, float number) {
        for (int i = first; i < first + 16; ++i)
            v[static_cast<std::size_t>(i)] = to_operand<fp4_e2m1>(fp4_e2m1(number).bits());
    };
    const auto nv = [](float s) { return to_block_scale<fp8_ue4m3>(fp8_ue4m3(s).bits()); };
    const auto run16 = [&](float c) {
        return value(tensor_core_mxf4(x.data(), y.data(), sa.data(), sb.data(), 16, std::bit_cast<std::uint32_t>(c)));
    };
    for (int g = 0; g < 4; ++g) {
        fill(x, 16 * g, 0.5f * static_cast<float>(g + 1));  // 0.5, 1, 1.5, 2
        fill(y, 16 * g, g == 3 ? -6.0f : 3.0f);
        sa[static_cast<std::size_t>(g)] = nv(1.125f);
        sb[static_cast<std::size_t>(g)] = nv(g == 0 ? 0x1p-9f : 2.5f);  // 2^-9: subnormal in E4M3
    }
    CHECK(run16(1) == 1 + 1.125f * (24 * 0x1p-9f + (48 + 72 - 192) * 2.5f));
    // 35 bits below the largest scale exponent, whatever the size of the sums: C = 2^-35 is kept, 2^-36 is not.
    for (auto* v : {&x, &y}) fill(*v, 16, 0), fill(*v, 32, 0), fill(*v, 48, 0);
    fill(x, 0, 6.0f);
    fill(y, 0, 0.5f);
    x[1] = to_operand<fp4_e2m1>(fp4_e2m1(-6.0f).bits());  // the sum is 14 * 3 = 42
    sa[0] = sb[0] = nv(1.0f);
    CHECK(run16(0) == 42);
    fill(x, 16, -6.0f);  // the second group takes the first one away
    fill(y, 16, 0.5f);
    x[17] = to_operand<fp4_e2m1>(fp4_e2m1(6.0f).bits());
    sa[1] = sb[1] = nv(1.0f);
    CHECK(run16(0x1p-35f) == 0x1p-35f);
    CHECK(run16(0x1.8p-35f) == 0x1p-35f);
    CHECK(run16(0x1p-36f) == 0);
    CHECK(std::isnan(value(tensor_core_mxf4(x.data(), y.data(), sa.data(), sb.data(), 16, 0x7FC00000))));
    // One scale for 32: powers of two shift exactly.
    std::vector<tensor_core_operand> pa = {power_scale(30), power_scale(0)}, pb = {power_scale(-10), power_scale(1)};
    for (int g = 0; g < 4; ++g) {
        fill(x, 16 * g, 1.0f);
        fill(y, 16 * g, 1.5f);
    }
    CHECK(value(tensor_core_mxf4(x.data(), y.data(), pa.data(), pb.data(), 32, 0)) == 48 * 0x1p20f + 48 * 2);
}
