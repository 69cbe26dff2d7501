// SPDX-License-Identifier: MIT
// Error-free transforms, the emulated FMA and the exact sum, against arithmetic that is exact by construction.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <numfmt/accumulate/eft.hpp>
#include <numfmt/accumulate/exact.hpp>

#include "support/inputs.hpp"

using namespace numfmt::accumulate;
using numfmt_test::random_stream;

namespace {

// A float with a random sign, significand and an exponent within +-range.
float random_float(random_stream& r, int range) {
    const int e = static_cast<int>(r.word() % static_cast<unsigned>(2 * range + 1)) - range;
    const float m = std::ldexp(static_cast<float>((r.word() & 0xFFFFFFu) | 0x800000u), -23);
    return std::ldexp((r.word() & 1u) != 0 ? -m : m, e);
}

}  // namespace

TEST_CASE("eft: two_sum and fast_two_sum give the exact sum and its error") {
    random_stream r(1);
    int inexact = 0;
    for (int i = 0; i < 200000; ++i) {
        const float a = random_float(r, 13), b = random_float(r, 13);
        const double exact = static_cast<double>(a) + static_cast<double>(b);  // 24 bits, 26 places apart at most
        const auto s = two_sum(a, b);
        CHECK(s.value == static_cast<float>(exact));
        CHECK(static_cast<double>(s.value) + static_cast<double>(s.error) == exact);
        const auto f = std::fabs(a) >= std::fabs(b) ? fast_two_sum(a, b) : fast_two_sum(b, a);
        CHECK(f.value == s.value);
        CHECK(f.error == s.error);
        inexact += s.error != 0 ? 1 : 0;
    }
    CHECK(inexact > 150000);
    static_assert(two_sum(1.0f, 0x1p-30f).error == 0x1p-30f);
    static_assert(two_sum(0x1p-60, 1.0).error == 0x1p-60);
}

TEST_CASE("eft: two_prod gives the exact product and its error") {
    random_stream r(2);
    int inexact = 0;
    for (int i = 0; i < 200000; ++i) {
        const float a = random_float(r, 40), b = random_float(r, 40);
        const auto p = two_prod(a, b);
        CHECK(static_cast<double>(p.value) + static_cast<double>(p.error) ==
              static_cast<double>(a) * static_cast<double>(b));
        inexact += p.error != 0 ? 1 : 0;
    }
    CHECK(inexact > 150000);
    static_assert(two_prod(0x1.000002p0f, 0x1.000002p0f).error == 0x1p-46f);
    const auto d = two_prod(1.0 + 0x1p-52, 1.0 + 0x1p-52);
    CHECK(d.value == 1.0 + 0x1p-51);
    CHECK(d.error == 0x1p-104);
}

TEST_CASE("eft: the FMA of constant evaluation is the processor's") {
    random_stream r(3);
    for (int i = 0; i < 300000; ++i) {
        const float a = random_float(r, 30), b = random_float(r, 30);
        float c = random_float(r, 60);
        // Near ties and cancellation: c just beside -a * b, and beside half an ulp of it.
        if (i % 3 == 1) c = -a * b;
        if (i % 3 == 2) c = std::ldexp(a * b, i % 2 == 0 ? 24 : -24);
        CHECK(detail::fma_by_rounding_to_odd(a, b, c) == std::fma(a, b, c));
    }
    for (const float a : {0x1p-100f, 0x1.8p-75f, 0x1.FFFFFEp-74f})
        for (const float c : {0.0f, 0x1p-149f, -0x1p-126f, 0x1.000002p-125f})
            CHECK(detail::fma_by_rounding_to_odd(a, a, c) == std::fma(a, a, c));
    static_assert(rounded_fma(0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f) == 0x1p-46f);
}

TEST_CASE("exact_sum: exact in any order, one rounding at the end") {
    random_stream r(5);
    std::vector<double> terms;
    for (int i = 0; i < 2000; ++i) {
        const double x = std::ldexp(static_cast<double>(r.word()) + 1, static_cast<int>(r.word() % 2000u) - 1060);
        terms.push_back(x);
        terms.push_back(-x);
    }
    terms.push_back(0x1.8p-1074);  // = 2^-1073 after parsing to a double
    for (std::size_t i = terms.size() - 1; i > 0; --i) std::swap(terms[i], terms[r.word() % (i + 1)]);
    exact_sum s, t;
    for (std::size_t i = 0; i < terms.size(); ++i) (i % 3 == 0 ? t : s).add(terms[i]);
    s.merge(t);
    CHECK(s.value() == 0x1.8p-1074);

    const auto of = [](std::initializer_list<double> v) {
        exact_sum e;
        for (const double x : v) e.add(x);
        return e;
    };
    CHECK(of({}).value() == 0);
    CHECK(of({1, 0x1p-53}).value() == 1);
    CHECK(of({1, 0x1p-53, 0x1p-1074}).value() == 1 + 0x1p-52);
    CHECK(of({1 + 0x1p-52, 0x1p-53}).value() == 1 + 0x1p-51);
    CHECK(of({-1, -0x1p-53, -0x1p-1074}).value() == -1 - 0x1p-52);
    CHECK(of({0x1p1023, 0x1p1023, -0x1p1023}).value() == 0x1p1023);
    CHECK(of({0x1p1023, 0x1p1023}).value() == HUGE_VAL);
    CHECK(of({-std::numeric_limits<double>::max(), -0x1p970}).value() == -HUGE_VAL);
    CHECK(of({HUGE_VAL, 1}).value() == HUGE_VAL);
    CHECK(std::isnan(of({HUGE_VAL, -HUGE_VAL}).value()));
    CHECK(std::isnan(of({std::nan(""), 1}).value()));
    // One rounding to float, where a detour through double would make two.
    CHECK(of({1, 0x1p-24, 0x1p-80}).value_as_float() == 1 + 0x1p-23f);
    CHECK(of({1, 0x1p-24}).value_as_float() == 1);
    CHECK(of({0x1p-150, 0x1p-200}).value_as_float() == 0x1p-149f);
    CHECK(of({0x1p-150}).value_as_float() == 0);
    CHECK(of({0x1.FFFFFEp127, 0x1p103}).value_as_float() == HUGE_VALF);
    CHECK(of({0x1.FFFFFEp127, 0x1.FFFFFFp102}).value_as_float() == std::numeric_limits<float>::max());
}

TEST_CASE("exact_sum: random sums in three binades against 128-bit integers") {
    random_stream r(6);
    for (int trial = 0; trial < 2000; ++trial) {
        exact_sum s;
        __int128 integer = 0;
        for (int i = 0; i < 40; ++i) {
            const auto v = static_cast<std::int64_t>(static_cast<std::int32_t>(r.word()));
            const int shift = static_cast<int>(r.word() % 64u);
            integer += static_cast<__int128>(v) * (static_cast<__int128>(1) << shift);
            s.add(std::ldexp(static_cast<double>(v), shift - 40));
        }
        CHECK(s.value() == std::ldexp(static_cast<double>(integer), -40));
        CHECK(s.value_as_float() == std::ldexp(static_cast<float>(integer), -40));
    }
}
