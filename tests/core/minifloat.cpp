// SPDX-License-Identifier: MIT
// The value type: which conversions exist, comparisons, negation, arithmetic.
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "support/inputs.hpp"
#include "support/tally.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

// Which formats contain which others, as their golden files say: either may name the other.
template <class From, class To> bool implicit() {
    const auto has = [](const std::vector<std::string>& names, const char* name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    return std::is_same_v<From, To> || has(golden_of<From>().fits_in, To::name) ||
           has(golden_of<To>().holds, From::name);
}

template <class A, class B>
concept adds = requires(A a, B b) { a + b; };
template <class A, class B>
concept subtracts = requires(A a, B b) { a - b; };
template <class A, class B>
concept multiplies = requires(A a, B b) { a* b; };
template <class A, class B>
concept divides = requires(A a, B b) { a / b; };
template <class A, class B>
concept assigns = requires(A a, B b) { a += b; } || requires(A a, B b) { a -= b; } || requires(A a, B b) { a *= b; } ||
                  requires(A a, B b) { a /= b; };

template <class A, class B>
constexpr bool any_arithmetic = adds<A, B> || subtracts<A, B> || multiplies<A, B> || divides<A, B>;
template <class A, class B>
constexpr bool all_arithmetic = adds<A, B> && subtracts<A, B> && multiplies<A, B> && divides<A, B>;

// One assertion for all pairs of formats, rather than one per instantiation.
void expect(bool holds, const char* a, const char* b) { CHECK_MESSAGE(holds, a << " and " << b); }

// The double that rounds to 16 bits as approx + (something of the sign of residual) does: round to odd.
double sticky(double approx, double residual) {
    if (residual == 0 || (std::bit_cast<std::uint64_t>(approx) & 1u) != 0) return approx;
    return std::nextafter(approx, residual > 0 ? HUGE_VAL : -HUGE_VAL);
}
double exact_sum(double a, double b) {
    const double s = a + b, t = s - a;
    return std::isfinite(s) ? sticky(s, (a - (s - t)) + (b - t)) : s;
}
double exact_quotient(double a, double b) {
    const double q = a / b;
    if (!std::isfinite(q) || q == 0 || !std::isfinite(b)) return q;
    const double r = std::fma(-q, b, a);  // a - q b, exact
    return sticky(q, std::signbit(b) ? -r : r);
}

// Every operation on a and b equals the exact result rounded once.
template <class T> void compare_arithmetic(tally& t, T a, T b) {
    const double x = static_cast<double>(static_cast<float>(a)), y = static_cast<double>(static_cast<float>(b));
    const auto check = [&](T got, double exact, char op) {
        t.expect_equal(got.bits(), oracle_of<T>().encode(real_of(exact), rounding::nearest_even),
                       [&](std::ostream& os) { os << T::name << ": " << x << ' ' << op << ' ' << y; });
    };
    check(a + b, exact_sum(x, y), '+');
    check(a - b, exact_sum(x, -y), '-');
    check(a * b, x * y, '*');
    check(a / b, exact_quotient(x, y), '/');
}

}  // namespace

TEST_CASE("minifloat: between formats implicit exactly where nothing is lost, explicit always") {
    for_each(library_formats{}, []<class From>() {
        for_each(library_formats{}, []<class To>() {
            expect(std::is_convertible_v<From, To> == implicit<From, To>(), From::name, To::name);
            expect(std::is_constructible_v<To, From>, From::name, To::name);
        });
    });
}

TEST_CASE("minifloat: from and to the built-in types") {
    for_each_format([]<class Format>() {
        static_assert(std::is_convertible_v<Format, float>);
        static_assert(std::is_convertible_v<Format, double>);
        static_assert(std::is_nothrow_constructible_v<Format, float> && !std::is_convertible_v<float, Format>);
        static_assert(std::is_constructible_v<Format, double> && !std::is_convertible_v<double, Format>);
        static_assert(std::is_constructible_v<Format, int> && !std::is_convertible_v<int, Format>);
        static_assert(std::is_constructible_v<Format, std::uint64_t> && !std::is_convertible_v<std::uint64_t, Format>);
        static_assert(!std::is_constructible_v<Format, long double>);
        static_assert(!std::is_constructible_v<Format, const char*>);
        static_assert(!std::is_assignable_v<Format&, float>);
        CHECK(static_cast<float>(Format(1)) == 1.0f);
        CHECK(static_cast<float>(Format(1.0)) == 1.0f);
        CHECK(static_cast<float>(Format(2.0f)) == 2.0f);
        CHECK(static_cast<float>(Format(std::int64_t{4})) == 4.0f);
        CHECK(Format{}.bits() == 0);
    });
    CHECK(std::is_same_v<fp8_e4m3fn, fp8_e4m3>);
}

TEST_CASE("minifloat: construction rounds once with the default policies") {
    for_each_format([]<class Format>() {
        tally t;
        for (const double x : random_floats<double>(oracle_of<Format>(), 3, 2000)) {
            const auto describe = [&](std::ostream& os) { os << Format::name << ' ' << x; };
            const auto wanted = [](auto v) {
                return oracle_of<Format>().encode(real_of(v), default_rounding_v<Format>);
            };
            t.expect_equal(Format(x).bits(), wanted(x), describe);
            t.expect_equal(Format(static_cast<float>(x)).bits(), wanted(static_cast<float>(x)), describe);
        }
        NUMFMT_CHECK_TALLY(t, 8000u);
    });
}

TEST_CASE("minifloat: comparisons agree with float's for every pair of codes") {
    for_each_format([]<class Format>() {
        tally t;
        const std::uint32_t codes = 1u << Format::spec.bits();
        random_stream r(9);
        const auto check = [&](std::uint32_t i, std::uint32_t j) {
            const Format a = Format::from_bits(static_cast<typename Format::storage>(i));
            const Format b = Format::from_bits(static_cast<typename Format::storage>(j));
            const double x = oracle_of<Format>().decode(i), y = oracle_of<Format>().decode(j);
            const int got = (a == b) | (a != b) << 1 | (a < b) << 2 | (a > b) << 3 | (a <= b) << 4 | (a >= b) << 5;
            const int wanted = (x == y) | (x != y) << 1 | (x < y) << 2 | (x > y) << 3 | (x <= y) << 4 | (x >= y) << 5;
            t.expect_equal(got, wanted,
                           [&](std::ostream& os) { os << Format::name << std::hex << " codes " << i << ' ' << j; });
        };
        if (codes <= 256) {
            for (std::uint32_t i = 0; i < codes; ++i) {
                for (std::uint32_t j = 0; j < codes; ++j) check(i, j);
            }
        } else {
            for (std::uint32_t i = 0; i < codes; ++i) {
                check(i, i);
                check(i, i ^ 0x8000u);
                check(i, (i + 1) % codes);
                check(i, r.below(codes));
                check(i, 0x7FFF);
                check(0, i);
                check(0x8000, i);
            }
        }
        NUMFMT_CHECK_TALLY(t, 256u);
    });
}

TEST_CASE("minifloat: comparisons between formats and with float") {
    CHECK(fp8_e4m3(1.5f) == 1.5f);
    CHECK(fp4_e2m1(1.5f) == fp8_e4m3(1.5f));
    CHECK(bf16(1.5f) == fp16(1.5f));
    CHECK(bf16(3.0f) > fp8_e5m2(2.5f));
    CHECK(e8m0(4.0f) < bf16(5.0f));
    CHECK_FALSE(fp8_e4m3(1.5f) == 1.4375f);
}

TEST_CASE("minifloat: negation flips the sign bit, except for FNUZ's zero and NaN") {
    for_each_format([]<class Format>() {
        if constexpr (Format::spec.is_signed) {
            for (std::uint32_t c = 0; c < 1u << Format::spec.bits(); ++c) {
                const bool kept = facts_of<Format>().kind == shape::negative_zero_is_nan && (c == 0 || c == 0x80);
                const std::uint32_t wanted = kept ? c : c ^ facts_of<Format>().sign_code();
                const Format negated = -Format::from_bits(static_cast<typename Format::storage>(c));
                if (negated.bits() != wanted) FAIL_CHECK(Format::name << " code " << c);
            }
        } else {
            static_assert(std::is_same_v<decltype(-std::declval<Format>()), float>, "unsigned: negated as a float");
        }
    });
    CHECK((-fp8_e4m3(0.0f)).bits() == 0x80);
    CHECK((-fp8_e4m3fnuz(0.0f)).bits() == 0x00);
    CHECK((-fp4_e2m1(6.0f)).bits() == 0xF);
}

TEST_CASE("minifloat: no arithmetic below 16 bits, not even mixed; bf16 and fp16 have all four operations") {
    for_each(library_formats{}, []<class A>() {
        for_each(library_formats{}, []<class B>() {
            constexpr bool wide = A::spec.bits() == 16 && B::spec.bits() == 16;
            expect(any_arithmetic<A, B> == wide, A::name, B::name);
            expect(all_arithmetic<A, B> == wide, A::name, B::name);
            expect(assigns<A, B> == (wide && std::is_same_v<A, B>), A::name, B::name);
        });
    });
    static_assert(std::is_same_v<decltype(bf16{} + bf16{}), bf16> && std::is_same_v<decltype(fp16{} / fp16{}), fp16>);
    static_assert(std::is_same_v<decltype(bf16{} + 1.0f), float>, "with a float: a float");
    static_assert(std::is_same_v<decltype(bf16{} * fp16{}), float>, "of two kinds: a float");
}

TEST_CASE("minifloat: bf16 and fp16 arithmetic rounds the exact result once") {
    const auto check = []<class T>(T) {
        tally t;
        random_stream r(17);
        const auto any = [&] { return T::from_bits(static_cast<std::uint16_t>(r.word())); };
        for (int i = 0; i < 60000; ++i) {
            const T a = any();
            // Half of the pairs with exponents close together, so that sums cancel and round.
            const T b = i % 2 == 0 ? any() : T::from_bits(static_cast<std::uint16_t>(a.bits() ^ (r.word() & 0x8FFFu)));
            compare_arithmetic(t, a, b);
        }
        const std::uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x03FF, 0x0400, 0x3C00,
                                         0x3F80, 0x7BFF, 0x7C00, 0x7F7F, 0x7F80, 0xFF80, 0xFC00, 0x7FFF, 0xFFC0};
        for (const std::uint16_t i : special) {
            for (const std::uint16_t j : special) compare_arithmetic(t, T::from_bits(i), T::from_bits(j));
        }
        NUMFMT_CHECK_TALLY(t, 240000u);
    };
    check(bf16{});
    check(fp16{});
}

TEST_CASE("minifloat: compound assignment is the operation and an assignment") {
    bf16 x(3.0f);
    x += bf16(0.5f);
    CHECK(x == 3.5f);
    x *= bf16(2.0f);
    CHECK(x == 7.0f);
    x -= bf16(1.0f);
    CHECK(x == 6.0f);
    x /= bf16(4.0f);
    CHECK(x == 1.5f);
    // One rounding per step: 256 + 1 is a tie of bf16 and stays.
    bf16 sum(256.0f);
    for (int i = 0; i < 10; ++i) sum += bf16(1.0f);
    CHECK(sum == 256.0f);
}

TEST_CASE("minifloat: is_nan and is_finite of every code") {
    for_each_format([]<class Format>() {
        tally t;
        for (std::uint32_t c = 0; c < 1u << Format::spec.bits(); ++c) {
            const Format x = Format::from_bits(static_cast<typename Format::storage>(c));
            const double v = oracle_of<Format>().decode(c);
            const auto describe = [&](std::ostream& os) { os << Format::name << " code " << c; };
            t.expect_equal(is_nan(x), std::isnan(v), describe);
            t.expect_equal(is_finite(x), std::isfinite(v), describe);
        }
        NUMFMT_CHECK_TALLY(t, 2u << Format::spec.bits());
    });
}
