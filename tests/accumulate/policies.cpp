// SPDX-License-Identifier: MIT
// Accumulators: the order of their additions, their error bounds, stagnation, and what Inf and NaN become.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <numfmt/accumulate/exact.hpp>
#include <numfmt/accumulate/policies.hpp>
#include <numfmt/bf16.hpp>
#include <numfmt/fp16.hpp>

#include "support/inputs.hpp"

using namespace numfmt::accumulate;
using numfmt::bf16;
using numfmt::fp16;
using numfmt_test::random_stream;

namespace {

// Writes down how terms were added.
class recorder {
  public:
    using value_type = std::string;
    void add(const std::string& x) { text_ = text_.empty() ? x : "(" + text_ + x + ")"; }
    void merge(const recorder& other) {
        if (!other.text_.empty()) add(other.text_);
    }
    std::string value() const { return text_; }

  private:
    std::string text_;
};

template <class A> std::string order(int n) {
    A a{};
    for (int i = 0; i < n; ++i) a.add(std::string(1, static_cast<char>('a' + i)));
    return a.value();
}

std::vector<float> random_floats(std::uint64_t seed, int n, bool positive) {
    random_stream r(seed);
    std::vector<float> v;
    for (int i = 0; i < n; ++i) {
        const float x = std::ldexp(static_cast<float>(r.word() >> 8), -24);
        v.push_back(positive ? x : 2 * x - 1);
    }
    return v;
}

double exact_dot(const std::vector<float>& x, const std::vector<float>& y) {
    exact_sum s;
    for (std::size_t i = 0; i < x.size(); ++i) s.add_product(x[i], y[i]);
    return s.value();
}
double absolute_dot(const std::vector<float>& x, const std::vector<float>& y) {
    exact_sum s;
    for (std::size_t i = 0; i < x.size(); ++i) s.add_product(std::fabs(x[i]), std::fabs(y[i]));
    return s.value();
}

// Largest |error| / sum |x y| over 40 dot products, in units of u = 2^-24.
template <class A> double worst_in_u(int n, bool positive) {
    double worst = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const auto x = random_floats(2 * seed, n, positive), y = random_floats(2 * seed + 1, n, positive);
        const double error = static_cast<double>(dot<A>(x.data(), y.data(), n)) - exact_dot(x, y);
        worst = std::fmax(worst, std::fabs(error) / absolute_dot(x, y));
    }
    return std::ldexp(worst, 24);
}

}  // namespace

TEST_CASE("trees: the order in which lanes and vectors meet") {
    CHECK(order<recorder>(4) == "(((ab)c)d)");
    CHECK(order<interleaved<recorder, 4>>(8) == "(((ae)(cg))((bf)(dh)))");
    CHECK(order<interleaved<recorder, 4, 1, tree::neighbours>>(8) == "(((ae)(bf))((cg)(dh)))");
    CHECK(order<interleaved<recorder, 4, 1, tree::in_order>>(8) == "((((ae)(bf))(cg))(dh))");
    // Two vectors of two lanes: elements a b | c d | e f | g h.
    CHECK(order<interleaved<recorder, 2, 2>>(8) == "(((ae)(cg))((bf)(dh)))");
    CHECK(order<interleaved<recorder, 2, 2>>(5) == "(((ae)c)(bd))");
    CHECK(order<interleaved<recorder, 3, 1, tree::halves>>(3) == "((ac)b)");
    CHECK(order<interleaved<recorder, 5, 1, tree::halves>>(5) == "(((ad)c)(be))");
    CHECK(order<interleaved<recorder, 5, 1, tree::neighbours>>(5) == "(((ab)(cd))e)");
    CHECK(order<pairwise<recorder>>(8) == "(((ab)(cd))((ef)(gh)))");
    CHECK(order<pairwise<recorder>>(7) == "(((ab)(cd))((ef)g))");
    CHECK(order<pairwise<recorder, 2>>(8) == "(((ab)(cd))((ef)(gh)))");
    CHECK(order<pairwise<recorder, 3>>(8) == "((((ab)c)((de)f))(gh))");
    CHECK(order<promoted<recorder, 3, recorder>>(8) == "((((ab)c)((de)f))(gh))");
    CHECK(order<promoted<recorder, 3, recorder>>(7) == "((((ab)c)((de)f))g)");
    CHECK(order<promoted<recorder, 3, recorder>>(6) == "(((ab)c)((de)f))");
    CHECK(order<interleaved<recorder, 4>>(0).empty());
}

TEST_CASE("accumulators: worst errors of dot products lie within their bounds and not far below") {
    constexpr int n = 4096;
    // Sequential fused multiply-adds: at most n u; random signs stay near sqrt(n) u / a few.
    const double sequential_error = worst_in_u<sequential<float>>(n, false);
    CHECK(sequential_error < n);
    CHECK(sequential_error > 0.3);
    CHECK(worst_in_u<sequential<float>>(n, true) > 4);
    // A tree over 4096 leaves: at most 12 + 1 roundings.
    const double tree_error = worst_in_u<pairwise<sequential<float>>>(n, true);
    CHECK(tree_error < 13);
    CHECK(tree_error > 0.3);
    // 16 x 4 lanes: 64 terms, then a tree of 6: at most 70.
    const double lane_error = worst_in_u<interleaved<sequential<float>, 16, 4>>(n, true);
    CHECK(lane_error < 70);
    CHECK(lane_error < 0.5 * worst_in_u<sequential<float>>(n, true));
    // Compensated: one rounding of the result (u times |sum|, at most u), whatever n; and not less on positive data.
    for (const bool positive : {false, true}) {
        CHECK(worst_in_u<dot2<float>>(n, positive) < 1.01);
        CHECK(worst_in_u<in_double>(n, positive) < 1.01);
        CHECK(worst_in_u<kahan<float>>(n, positive) < 2.1);
        CHECK(worst_in_u<neumaier<float>>(n, positive) < 2.1);  // each product rounded: one more u
        CHECK(worst_in_u<interleaved<kahan<float>, 8, 2>>(n, positive) < 2.1);
        CHECK(worst_in_u<interleaved<dot2<float>, 8, 2>>(n, positive) < 1.01);
    }
    CHECK(worst_in_u<dot2<float>>(n, true) > 0.4);
    CHECK(worst_in_u<in_double>(n, true) > 0.4);
    // A bf16 sum: u = 2^-8 is 2^16 times the unit here. 4096 positive terms of mean 1/4 stop growing near 64 or 128.
    const double narrow = worst_in_u<rounded_to<bf16>>(n, true);
    CHECK(narrow > 0.5 * 0x1p24);
    CHECK(narrow < 0x1p24);
    // Promoted every 128: 128 terms of mean 1/4 reach 32, where bf16 still has steps of 1/4.
    const double held = worst_in_u<promoted<rounded_to<bf16>, 128>>(n, true);
    CHECK(held < 0.05 * 0x1p24);
    CHECK(held > 0.0005 * 0x1p24);
}

TEST_CASE("accumulators: an ill-conditioned dot product") {
    // 1 + tiny terms between huge ones that cancel; the exact value is 2^-20.
    const std::vector<float> x = {0x1p40f, 1.0f, 0x1p-20f, -0x1p40f, -1.0f}, y(5, 1.0f);
    CHECK(dot<sequential<float>>(x.data(), y.data(), 5) == -1.0f);
    CHECK(dot<dot2<float>>(x.data(), y.data(), 5) == 0x1p-20f);
    CHECK(dot<neumaier<float>>(x.data(), y.data(), 5) == 0x1p-20f);
    CHECK(dot<in_double>(x.data(), y.data(), 5) == 0.0f);  // 60 bits would be needed
    // Kahan loses what is smaller than the excess that a larger term brings; Neumaier does not.
    const std::vector<float> k = {1.0f, 0x1p60f, 1.0f, -0x1p60f};
    CHECK(sum<kahan<float>>(k.data(), 4) == 0.0f);
    CHECK(sum<neumaier<float>>(k.data(), 4) == 2.0f);
    // Products whose rounding errors are all that is left: only Dot2 and double keep them.
    const std::vector<float> a = {0x1.000002p0f, -1.0f}, b = {0x1.000002p0f, 0x1.000004p0f};
    CHECK(dot<dot2<float>>(a.data(), b.data(), 2) == 0x1p-46f);
    CHECK(dot<in_double>(a.data(), b.data(), 2) == 0x1p-46f);
    CHECK(dot<neumaier<float>>(a.data(), b.data(), 2) == 0.0f);
    // Merging keeps the corrections of both sides.
    neumaier<float> p, q;
    p.add(0x1p40f);
    p.add(1.0f);
    q.add(-0x1p40f);
    q.add(0x1p-20f);
    p.merge(q);
    CHECK(p.value() == 1.0f + 0x1p-20f);
    kahan<float> s, t;
    s.add(1.0f);
    for (int i = 0; i < 15; ++i) s.add(0x1p-28f);
    t.add(0x1p-28f);
    s.merge(t);
    CHECK(s.value() == 1.0f);  // 16 x 2^-28 is half an ulp: the tie goes to even
    s.add(0x1p-28f);
    CHECK(s.value() == 1.0f + 0x1p-23f);
}

TEST_CASE("accumulators: where a running sum of ones stops") {
    const auto stops_at = [](auto accumulator) {
        float last = -1;
        int n = 0;
        while (n < 100000 && accumulator.value() != last) {
            last = accumulator.value();
            accumulator.add(1.0f);
            ++n;
        }
        return last;
    };
    CHECK(stops_at(rounded_to<bf16>{}) == 256);
    CHECK(stops_at(rounded_to<fp16>{}) == 2048);
    const std::vector<float> ones(70000, 1.0f);
    CHECK(sum<promoted<rounded_to<bf16>, 128>>(ones.data(), 70000) == 70000);
    CHECK(sum<promoted<rounded_to<bf16>, 512>>(ones.data(), 70000) == 136 * 256 + 256);
}

TEST_CASE("accumulators: Inf and NaN") {
    constexpr float inf = std::numeric_limits<float>::infinity(), big = std::numeric_limits<float>::max();
    const std::vector<float> overflow = {big, big, -1.0f, 5.0f}, infinite = {1.0f, inf, 2.0f}, nan = {1.0f, NAN, 2.0f},
                             both = {inf, -inf, 1.0f};
    const auto check = [&]<class A>() {
        CHECK(sum<A>(overflow.data(), 4) == inf);
        CHECK(sum<A>(infinite.data(), 3) == inf);
        CHECK(std::isnan(sum<A>(nan.data(), 3)));
        CHECK(std::isnan(sum<A>(both.data(), 3)));
    };
    check.template operator()<sequential<float>>();
    check.template operator()<neumaier<float>>();
    check.template operator()<dot2<float>>();
    check.template operator()<interleaved<neumaier<float>, 4>>();
    check.template operator()<rounded_to<bf16>>();
    CHECK(sum<in_double>(overflow.data(), 4) == inf);          // only in the end
    CHECK(std::isnan(sum<kahan<float>>(overflow.data(), 4)));  // documented
}
