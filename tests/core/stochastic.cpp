// SPDX-License-Identifier: MIT
// Philox4x32-10 against its published vectors, and what stochastic rounding promises: unbiased, exact values untouched,
// never beyond the two neighbours, the same draw for the same logical position.
#include <cmath>

#include <doctest/doctest.h>

#include <numfmt/core/philox.hpp>

#include "support/inputs.hpp"
#include "support/tally.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

void check_words(const philox_block& got, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    CHECK(got.word[0] == a);
    CHECK(got.word[1] == b);
    CHECK(got.word[2] == c);
    CHECK(got.word[3] == d);
}

// How many standard deviations the mean of `draws` stochastic encodings of x is away from x. `up` counts those that
// went away from zero.
template <class Format, class Source> double deviation(Source x, std::uint64_t seed, int draws, int* up = nullptr) {
    const std::vector<double>& values = oracle_of<Format>().values();
    const double a = std::fabs(static_cast<double>(x));
    const auto hi = std::upper_bound(values.begin(), values.end(), a);
    const double lo = *(hi - 1), step = *hi - lo, p = (a - lo) / step;
    double sum = 0;
    for (int i = 0; i < draws; ++i) {
        const auto code = encode<Format, rounding::stochastic>(x, {}, random_word(seed, static_cast<std::uint64_t>(i)));
        const double y = static_cast<double>(decode<Format>(code));
        if (up != nullptr && std::fabs(y) > a) ++*up;
        sum += y - static_cast<double>(x);
    }
    const double variance = p * (1 - p) * step * step * draws;
    return variance > 0 ? sum / std::sqrt(variance) : sum == 0 ? 0 : HUGE_VAL;
}

}  // namespace

TEST_CASE("philox: known answers of Random123") {
    check_words(philox4x32_10({{0, 0, 0, 0}}, 0, 0), 0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8);
    constexpr std::uint32_t ones = 0xFFFFFFFF;
    check_words(philox4x32_10({{ones, ones, ones, ones}}, ones, ones), 0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD);
    check_words(philox4x32_10({{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}}, 0xA4093822, 0x299F31D0), 0xD16CFE09,
                0x94FDCCEB, 0x5001E420, 0x24126EA1);
}

TEST_CASE("philox: element i draws word i & 3 of counter i >> 2 under the 64-bit seed") {
    check_words(random_words(0, 0), 0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8);
    const std::uint64_t seed = 0x299F31D0A4093822u;  // low word is key 0, high word key 1
    for (const std::uint64_t group : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{0x123456789ABC}}) {
        const philox_block direct =
            philox4x32_10({{static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32), 0, 0}},
                          0xA4093822, 0x299F31D0);
        check_words(random_words(seed, group), direct.word[0], direct.word[1], direct.word[2], direct.word[3]);
        for (std::uint64_t i = 0; i < 4; ++i) CHECK(random_word(seed, 4 * group + i) == direct.word[i]);
    }
}

TEST_CASE("stochastic: a tie goes up half of the time, within 3 sigma") {
    int up = 0;
    const int draws = 10000;
    const float tie = std::bit_cast<float>(0x38900000u);  // halfway between two E5M2 numbers
    CHECK(std::fabs(deviation<fp8_e5m2>(tie, 1, draws, &up)) < 3);
    CHECK(up > 5000 - 150);
    CHECK(up < 5000 + 150);
    const auto both = [&](auto format, double x, std::uint64_t seed) {
        using Format = decltype(format);
        CHECK(std::fabs(deviation<Format>(static_cast<float>(x), seed, draws)) < 3);
        CHECK(std::fabs(deviation<Format>(-x, seed + 1, draws)) < 3);
    };
    both(fp8_e4m3{}, 1.0625, 2);
    both(fp4_e2m1{}, 5, 4);
    both(fp4_e2m1{}, .25, 6);
    both(bf16{}, 1 + 0x1p-8, 8);
    both(fp16{}, 2049, 10);
}

TEST_CASE("stochastic: subnormals of the format are unbiased, far below the smallest number too") {
    const int draws = 20000;
    for (const double k : {0.5, 1.5, 6.5, 7.5, 0.25, 2.875, 0.01}) {
        CAPTURE(k);
        CHECK(std::fabs(deviation<fp8_e4m3>(static_cast<float>(k * 0x1p-9), 21, draws)) < 3);
        CHECK(std::fabs(deviation<fp16>(-k * 0x1p-24, 22, draws)) < 3);
        CHECK(std::fabs(deviation<bf16>(static_cast<float>(k * 0x1p-133), 23, draws)) < 3);
        CHECK(std::fabs(deviation<bf16>(k * 0x1p-133, 24, draws)) < 3);
    }
    // 2^-3 of the smallest number: one draw in eight gives it.
    int up = 0;
    CHECK(std::fabs(deviation<fp8_e4m3>(0x1p-12f, 25, draws, &up)) < 3);
    CHECK(up > 0);
}

TEST_CASE("stochastic: the deviations over many inputs are distributed as they should be") {
    // A sum of n squared standard normal deviates has mean n and variance 2n; too small is as wrong as too large.
    for_each_format([]<class Format>() {
        if constexpr (Format::spec.has_zero) {
            random_stream r(31);
            const std::vector<double>& v = oracle_of<Format>().values();
            const int n = 200;
            double sum = 0, mean = 0;
            for (int i = 0; i < n; ++i) {
                const std::uint32_t c = r.below(static_cast<std::uint32_t>(v.size()) - 2);
                const float x = static_cast<float>(v[c] + (v[c + 1] - v[c]) * (0.1 + 0.8 * r.unit()));
                const double d = deviation<Format>(x, 1000 + static_cast<std::uint64_t>(i), 500);
                sum += d * d;
                mean += d;
            }
            CAPTURE(Format::name);
            CHECK(std::fabs(sum - n) < 4 * std::sqrt(2.0 * n));
            CHECK(std::fabs(mean) < 4 * std::sqrt(1.0 * n));
        }
    });
}

TEST_CASE("stochastic: exact values never move, other values never pass a neighbour") {
    for_each_format([]<class Format>() {
        if constexpr (Format::spec.has_zero) {
            random_stream r(41);
            tally t;
            const std::vector<double>& v = oracle_of<Format>().values();
            const std::uint32_t count = static_cast<std::uint32_t>(v.size()) - 1;
            for (std::uint32_t c = 0; c < count; ++c) {
                const auto describe = [&](std::ostream& os) { os << Format::name << " code " << c; };
                for (const std::uint32_t draw : {0u, 1u, 0x7FFFFFFFu, 0xFFFFFFFFu, r.word()}) {
                    const auto sr = [&](auto x) { return encode<Format, rounding::stochastic>(x, {}, draw); };
                    t.expect_equal(sr(v[c]), c, describe);
                    t.expect_equal(sr(static_cast<float>(v[c])), c, describe);
                    if (c + 1 == count) continue;
                    const double x = v[c] + (v[c + 1] - v[c]) * r.unit();
                    const std::uint32_t code = sr(x);
                    t.expect_equal(code == c || code == c + 1, true, describe);
                }
            }
            NUMFMT_CHECK_TALLY(t, 14u * count);
        }
    });
}

TEST_CASE("stochastic: the threshold is the discarded fraction scaled to 2^32") {
    constexpr auto sr = [](double x, std::uint32_t draw) {
        return encode<fp8_e4m3, rounding::stochastic>(x, {}, draw);
    };
    // 1 + f / 8: rounds up to 39 for draws below f * 2^32.
    CHECK(sr(1.03125, 0x3FFFFFFF) == 0x39);
    CHECK(sr(1.03125, 0x40000000) == 0x38);
    CHECK(sr(1.09375, 0xBFFFFFFF) == 0x39);
    CHECK(sr(1.09375, 0xC0000000) == 0x38);
    CHECK(sr(1 + 0x1p-35, 0) == 0x39);  // 2^-32 of a step: exactly the draw 0
    CHECK(sr(1 + 0x1p-35, 1) == 0x38);
    CHECK(sr(1 + 0x1p-36, 0) == 0x38);  // less than any draw can see
    CHECK(sr(0x1p-41, 0) == 0x01);      // the same below the smallest number, 2^-9
    CHECK(sr(0x1p-41, 1) == 0x00);
    CHECK(sr(0x1p-42, 0) == 0x00);
    CHECK(sr(-0x1p-41, 0) == 0x81);
}

TEST_CASE("stochastic: overflow follows the overflow rule after the draw") {
    constexpr encode_options to_nonfinite{overflow::to_nonfinite};
    const auto e5m2 = [](float x, encode_options o, std::uint32_t draw) {
        return encode<fp8_e5m2, rounding::stochastic>(x, o, draw);
    };
    CHECK(e5m2(61440.0f, to_nonfinite, 0x7FFFFFFF) == 0x7C);
    CHECK(e5m2(61440.0f, to_nonfinite, 0x80000000) == 0x7B);
    CHECK(e5m2(61440.0f, {}, 0) == 0x7B);
    CHECK(e5m2(1e9f, to_nonfinite, 0xFFFFFFFF) == 0x7C);
    CHECK(encode<fp8_e4m3, rounding::stochastic>(464.0f, to_nonfinite, 0) == 0x7F);
    CHECK(encode<fp4_e2m1, rounding::stochastic>(7.0f, to_nonfinite, 0) == 0x7);
}
