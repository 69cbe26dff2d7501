// SPDX-License-Identifier: MIT
// encode() from integers of every width against the exact oracle: one rounding, also above 2^53.
#include <doctest/doctest.h>

#include "support/compare.hpp"

using namespace numfmt_test;

namespace {

template <class Int> void check_integers(std::uint64_t seed) {
    const std::vector<Int> inputs = integers<Int>(seed, 1000);
    for_each(library_formats{}, [&]<class Format>() {
        tally t;
        compare_all_roundings<Format>(t, inputs);
        NUMFMT_CHECK_TALLY(t, 4 * inputs.size());
    });
}

}  // namespace

TEST_CASE("encode from integers: int64") { check_integers<std::int64_t>(1); }
TEST_CASE("encode from integers: uint64") { check_integers<std::uint64_t>(2); }
TEST_CASE("encode from integers: int32") { check_integers<std::int32_t>(3); }

TEST_CASE("encode from integers: every type that names an integer") {
    tally t;
    const auto all_of = [&]<class Int>(Int) {
        for (int i = -300; i <= 300; ++i) {
            const Int x = static_cast<Int>(i);
            const real exact =
                real_of(static_cast<std::conditional_t<std::is_signed_v<Int>, std::int64_t, std::uint64_t>>(x));
            constexpr auto mode = numfmt::rounding::nearest_even;
            compare_one<Int>(t, oracle_of<numfmt::fp8_e4m3>(), mode, exact, &encode_code<numfmt::fp8_e4m3, mode, Int>,
                             x);
        }
    };
    all_of(static_cast<signed char>(0));
    all_of(static_cast<unsigned char>(0));
    all_of(char{});
    all_of(char8_t{});
    all_of(char16_t{});
    all_of(char32_t{});
    all_of(wchar_t{});
    all_of(static_cast<short>(0));
    all_of(static_cast<unsigned short>(0));
    all_of(0);
    all_of(0u);
    all_of(0l);
    all_of(0ul);
    all_of(0ll);
    all_of(0ull);
    NUMFMT_CHECK_TALLY(t, 15u * 601u);
    CHECK(numfmt::encode<numfmt::fp8_e4m3>(true) == 0x38);
    CHECK(numfmt::encode<numfmt::fp8_e4m3>(false) == 0x00);
}

TEST_CASE("encode from integers: ties that a detour through double or float would move") {
    using namespace numfmt;
    constexpr std::int64_t one = 1;
    // bf16 keeps 8 bits: at 2^60 the step is 2^53 and 2^60 + 2^52 is a tie. One more unit is lost in a double.
    CHECK(encode<bf16>((one << 60) + (one << 52)) == 0x5D80);
    CHECK(encode<bf16>((one << 60) + (one << 52) + 1) == 0x5D81);
    CHECK(encode<bf16>(-(one << 60) - (one << 52) - 1) == 0xDD81);
    CHECK(encode<bf16>((one << 60) + 3 * (one << 52)) == 0x5D82);
    CHECK(encode<bf16>((one << 60) + 3 * (one << 52) - 1) == 0x5D81);
    // The same below 2^53, where only a detour through float loses the unit.
    CHECK(encode<bf16>((one << 40) + (one << 32)) == 0x5380);
    CHECK(encode<bf16>((one << 40) + (one << 32) + 1) == 0x5381);
    CHECK(encode<fp16>(2049) == 0x6800);
    CHECK(encode<fp16>(2051) == 0x6802);
    CHECK(encode<fp16>(65519) == 0x7BFF);
    CHECK(encode<fp16>(65520) == 0x7C00);
    CHECK(encode<bf16>(std::numeric_limits<std::int64_t>::min()) == 0xDF00);
    CHECK(encode<bf16>(std::numeric_limits<std::uint64_t>::max()) == 0x5F80);
    CHECK(encode<e8m0>(std::numeric_limits<std::uint64_t>::max()) == 127 + 63);
    CHECK(encode<e8m0, rounding::up>(std::numeric_limits<std::uint64_t>::max()) == 127 + 64);
    CHECK(encode<e8m0, rounding::up>((std::uint64_t{1} << 63) + 1) == 127 + 64);
}
