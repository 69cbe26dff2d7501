// SPDX-License-Identifier: MIT
// encode() from every code of every format to every other format against the exact oracle, and the same conversions
// between values.
#include <doctest/doctest.h>

#include "support/compare.hpp"

using namespace numfmt_test;

namespace {

// One format of each kind; the others are covered by the constructors below.
using kinds =
    format_list<numfmt::bf16, numfmt::fp16, numfmt::fp8_e4m3, numfmt::fp8_e5m2, numfmt::fp4_e2m1, numfmt::e8m0>;

template <class From, class To, numfmt::rounding R>
std::uint32_t convert_code(std::uint32_t code, numfmt::encode_options options, std::uint32_t draw) {
    return numfmt::encode<To, R>(From::from_bits(static_cast<typename From::storage>(code)), options, draw);
}

template <class From, class To> std::uint32_t construct(std::uint32_t code, numfmt::encode_options, std::uint32_t) {
    return To(From::from_bits(static_cast<typename From::storage>(code))).bits();
}

// The loops over all codes, shared by every pair of formats.
void compare_codes(const oracle& from, const oracle& to, numfmt::rounding mode, conversion<std::uint32_t> convert) {
    tally t;
    for (std::uint32_t c = 0; c < from.codes(); ++c) compare_one(t, to, mode, from.source(c), convert, c);
    CAPTURE(from.format().name);
    NUMFMT_CHECK_TALLY(t, 4 * from.codes());
}
void compare_construction(const oracle& from, const oracle& to, numfmt::rounding mode,
                          conversion<std::uint32_t> convert) {
    tally t;
    for (std::uint32_t c = 0; c < from.codes(); ++c) {
        t.expect_equal(convert(c, {}, 0), to.encode(from.source(c), mode), [&](std::ostream& os) {
            os << from.format().name << " code " << c << " to " << to.format().name;
        });
    }
    NUMFMT_CHECK_TALLY(t, from.codes());
}

}  // namespace

TEST_CASE("encode from formats: every code of each kind of format to each other") {
    for_each(kinds{}, []<class From>() {
        for_each(kinds{}, []<class To>() {
            for_each_rounding<To>([]<numfmt::rounding R>() {
                compare_codes(oracle_of<From>(), oracle_of<To>(), R, &convert_code<From, To, R>);
            });
        });
    });
}

TEST_CASE("conversion between values: one rounding, the default policies") {
    for_each(library_formats{}, []<class From>() {
        for_each(library_formats{}, []<class To>() {
            if constexpr (!std::is_same_v<From, To>) {
                compare_construction(oracle_of<From>(), oracle_of<To>(), numfmt::default_rounding_v<To>,
                                     &construct<From, To>);
            }
        });
    });
}
