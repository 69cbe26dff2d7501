// SPDX-License-Identifier: MIT
// numfmt::simd::encode and decode against the reference: every format, every policy, every target of the CPU.
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <numfmt/core/std.hpp>
#include <numfmt/simd/thread_executor.hpp>

#include "inputs.hpp"
#include "support/roundings.hpp"
#include "targets.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

constexpr simd::random_stream stream{42,
                                     0xFFFFFFF0ull * 4 + 1};  // a group counter that wraps its lower word on the way

template <class Format, rounding R, class Source>
std::vector<typename Format::storage> reference(const std::vector<Source>& x, encode_options options) {
    std::vector<typename Format::storage> codes(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        std::uint32_t draw = 0;
        if (R == rounding::stochastic) draw = random_word(stream.seed, stream.offset + i);
        codes[i] = encode<Format, R>(x[i], options, draw);
    }
    return codes;
}

template <class Format, rounding R, class Source> void compare(const std::vector<Source>& x, encode_options options) {
    using storage = typename Format::storage;
    const std::vector<storage> expected = reference<Format, R>(x, options);
    for_each_target([&] {
        std::vector<storage> codes(x.size());
        const auto n = static_cast<std::int64_t>(x.size());
        REQUIRE(simd::encode<Format, R>(x.data(), n, codes.data(), options, stream).ok());
        std::size_t wrong = 0, first = 0;
        for (std::size_t i = x.size(); i-- > 0;) {
            if (codes[i] != expected[i]) ++wrong, first = i;
        }
        INFO(std::string(Format::name) << ": input " << static_cast<float>(x[first]) << " gave " << +codes[first]
                                       << ", not " << +expected[first]);
        CHECK(wrong == 0);
    });
}

bool same(float a, float b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return std::memcmp(&a, &b, sizeof a) == 0;
}

struct counting_executor {
    std::vector<int>* calls;
    int concurrency() const { return 5; }
    template <class F> void operator()(std::int64_t tasks, F&& f) const {
        calls->assign(static_cast<std::size_t>(tasks), 0);
        for (std::int64_t i = tasks; i-- > 0;) ++(*calls)[static_cast<std::size_t>(i)], f(i);
    }
};

}  // namespace

TEST_CASE("simd codec: encode equals the reference on decisive floats and all halves, default options") {
    const std::vector<float> floats = decisive_floats();
    const std::vector<bf16> bf16s = all_halves<bf16>();
    const std::vector<fp16> fp16s = all_halves<fp16>();
    for_each(all_formats{}, [&]<class Format>() {
        for_each_rounding<Format>([&]<rounding R>() {
            compare<Format, R>(floats, {});
            compare<Format, R>(bf16s, {});
            compare<Format, R>(fp16s, {});
        });
    });
}

TEST_CASE("simd codec: encode equals the reference under every combination of policies") {
    std::vector<float> x = decisive_floats();
    x.resize(reduced ? 2011 : 20011);
    for (const float v : {INFINITY, -INFINITY, NAN, -NAN, 0.0f, -0.0f, 464.0f, 61440.0f, 1e-30f}) x.push_back(v);
    for_each(all_formats{}, [&]<class Format>() {
        for_each_rounding<Format>([&]<rounding R>() {
            for (const overflow o :
                 {overflow::by_format, overflow::saturate, overflow::to_nonfinite, overflow::saturate_finite}) {
                for (const nan_mode nan : {nan_mode::canonical, nan_mode::keep_sign, nan_mode::canonical_signed}) {
                    for (const bool drop : {false, true}) compare<Format, R>(x, {o, nan, drop});
                }
            }
        });
    });
}

TEST_CASE("simd codec: decode equals the reference for every code into float, bf16 and fp16") {
    for_each(all_formats{}, [&]<class Format>() {
        using storage = typename Format::storage;
        std::vector<storage> codes;
        for (std::uint32_t c = 0; c < 65536; ++c) codes.push_back(static_cast<storage>(c * 40503u));
        const auto check = [&]<class Target>() {
            for_each_target([&] {
                std::vector<Target> y(codes.size());
                REQUIRE(simd::decode<Format>(codes.data(), static_cast<std::int64_t>(codes.size()), y.data()).ok());
                int wrong = 0;
                for (std::size_t i = 0; i < codes.size(); ++i)
                    wrong += !same(static_cast<float>(y[i]), static_cast<float>(Target(decode<Format>(codes[i]))));
                INFO(std::string(Format::name));
                CHECK(wrong == 0);
            });
        };
        check.template operator()<float>();
        check.template operator()<bf16>();
        check.template operator()<fp16>();
    });
}

TEST_CASE("simd codec: every length from 0 on, every misalignment, nothing written outside") {
    constexpr std::size_t longest = 4 * 64 + 1;
    std::vector<float> source = decisive_floats();
    source.resize(longest + 64);
    for_each(type_list<fp8_e4m3, bf16, fp16, e8m0>{}, [&]<class Format>() {
        using storage = typename Format::storage;
        const std::vector<storage> expected = reference<Format, default_rounding_v<Format>>(source, {});
        for_each_target([&] {
            int wrong = 0;
            std::vector<storage> codes(longest + 192);
            std::vector<float> values(longest + 192);
            for (std::size_t n = 0; n <= longest; ++n) {
                const std::size_t shift = n % 64;  // of the input, the output shifted by another
                const std::size_t at = 64 + n * 7 % 64;
                std::memset(static_cast<void*>(codes.data()), 0xA5, codes.size() * sizeof(storage));
                REQUIRE(
                    simd::encode<Format>(source.data() + shift, static_cast<std::int64_t>(n), codes.data() + at).ok());
                const auto canary = static_cast<storage>(0xA5A5);
                for (std::size_t i = 0; i < codes.size(); ++i) {
                    const bool inside = i >= at && i < at + n;
                    wrong += codes[i] != (inside ? expected[shift + i - at] : canary);
                }
                for (float& v : values) v = -7.0f;
                REQUIRE(simd::decode<Format>(expected.data() + shift, static_cast<std::int64_t>(n), values.data() + at)
                            .ok());
                for (std::size_t i = 0; i < values.size(); ++i) {
                    const bool inside = i >= at && i < at + n;
                    wrong += !same(values[i], inside ? decode<Format>(expected[shift + i - at]) : -7.0f);
                }
            }
            INFO(std::string(Format::name));
            CHECK(wrong == 0);
        });
    });
}

#if !defined(NUMFMT_TEST_REDUCED)  // minutes under emulation
TEST_CASE("simd codec: results past the caches, written around them, are the same") {
    const std::int64_t n = simd::stream_threshold / 5 + 12345;  // 5 bytes an element: float in, fp8 out
    std::vector<float> x(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = bit_cast<float>(static_cast<std::uint32_t>(i * 2654435761u));
    std::vector<std::uint8_t> codes(x.size() + 3), expected(x.size());
    std::vector<float> y(x.size() + 3);
    encode<fp8_e4m3>(x.data(), n, expected.data());
    for_each_target([&] {
        // An output that begins off any vector's alignment, and one that never reaches it.
        REQUIRE(simd::encode<fp8_e4m3>(x.data(), n, codes.data() + 3).ok());
        CHECK(std::memcmp(codes.data() + 3, expected.data(), expected.size()) == 0);
        REQUIRE(simd::decode<fp8_e4m3>(expected.data(), n, y.data() + 1).ok());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < x.size(); ++i) wrong += !same(y[i + 1], decode<fp8_e4m3>(expected[i]));
        CHECK(wrong == 0);
    });
}

#endif

TEST_CASE("simd codec: threads give the bits of one thread") {
    std::vector<float> x = decisive_floats();
    const auto n = static_cast<std::int64_t>(x.size());
    const std::vector<std::uint8_t> expected = reference<fp8_e5m2, rounding::stochastic>(x, {});
    for (const int threads : {1, 2, 3, 7}) {
        const simd::thread_executor executor(threads);
        std::vector<std::uint8_t> codes(x.size());
        REQUIRE(simd::encode<fp8_e5m2, rounding::stochastic>(x.data(), n, codes.data(), {}, stream, executor).ok());
        CHECK(codes == expected);
        std::vector<float> y(x.size());
        REQUIRE(simd::decode<fp8_e5m2>(codes.data(), n, y.data(), executor).ok());
        int wrong = 0;
        for (std::size_t i = 0; i < x.size(); ++i) wrong += !same(y[i], decode<fp8_e5m2>(codes[i]));
        CHECK(wrong == 0);
    }
}

TEST_CASE("simd codec: an executor gets every task once") {
    std::vector<int> calls;
    std::vector<float> x(1 << 20, 1.5f);
    std::vector<std::uint8_t> codes(x.size());
    REQUIRE(simd::encode<fp8_e4m3>(x.data(), 1 << 20, codes.data(), {}, {}, counting_executor{&calls}).ok());
    CHECK(calls.size() == 20);  // four for each of five threads
    CHECK(codes == std::vector<std::uint8_t>(x.size(), 0x3C));
}

TEST_CASE("simd codec: bad arguments are named and nothing is written") {
    float x[4] = {1, 2, 3, 4};
    std::uint8_t codes[4] = {9, 9, 9, 9};
    CHECK(to_string(simd::encode<fp8_e4m3>(x, -1, codes)) == "n is negative (got -1, wanted 0)");
    CHECK(simd::encode<fp8_e4m3>(static_cast<const float*>(nullptr), 4, codes).code == status_code::null_pointer);
    CHECK(std::string_view(simd::encode<fp8_e4m3>(x, 4, nullptr).argument) == "codes");
    CHECK(std::string_view(simd::decode<fp8_e4m3>(codes, 4, static_cast<float*>(nullptr)).argument) == "y");
    CHECK(simd::encode<fp8_e4m3>(static_cast<const float*>(nullptr), 0, nullptr).ok());
    for (const std::uint8_t c : codes) CHECK(c == 9);
}
