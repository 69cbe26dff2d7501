// SPDX-License-Identifier: MIT
// core/std.hpp: printing, hashing and naming.
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>
#include <unordered_set>

#include <doctest/doctest.h>

#include <numfmt/core/std.hpp>

#include "support/oracle.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

template <class T> std::string printed(const T& x) {
    std::ostringstream os;
    os << x;
    return os.str();
}

// All enumerators and their names: there are `count` of them, each survives a round trip, nothing else is accepted.
template <class Enum> void check_names(std::initializer_list<std::pair<Enum, const char*>> names, int count) {
    CHECK(static_cast<int>(names.size()) == count);
    for (const auto& [value, name] : names) {
        CHECK(enum_name(value) == name);
        CHECK(printed(value) == name);
        for (int start = 0; start < count; ++start) {
            Enum parsed = static_cast<Enum>(start);
            CHECK(from_string(name, parsed));
            CHECK(parsed == value);
        }
        const std::string text = name;
        for (const std::string& wrong :
             {text + " ", " " + text, text.substr(1), text.substr(0, text.size() - 1), text + "x"}) {
            Enum untouched = value;
            CHECK_FALSE(from_string(wrong, untouched));
            CHECK(untouched == value);
        }
    }
    for (int i = 0; i < count; ++i) CHECK(enum_name(static_cast<Enum>(i)) != "unknown");
    CHECK(enum_name(static_cast<Enum>(count)) == "unknown");
    Enum e = static_cast<Enum>(0);
    CHECK_FALSE(from_string("", e));
    CHECK_FALSE(from_string("unknown", e));
    CHECK_FALSE(from_string("NEAREST_EVEN", e));
}

template <class T>
concept has_name = requires(T x) { enum_name(x); };

}  // namespace

TEST_CASE("names: every enumerator of every policy") {
    check_names<rounding>({{rounding::nearest_even, "nearest_even"},
                           {rounding::nearest_away, "nearest_away"},
                           {rounding::nearest_to_zero, "nearest_to_zero"},
                           {rounding::toward_zero, "toward_zero"},
                           {rounding::stochastic, "stochastic"},
                           {rounding::down, "down"},
                           {rounding::up, "up"},
                           {rounding::nearest_up, "nearest_up"}},
                          8);
    check_names<overflow>({{overflow::by_format, "by_format"},
                           {overflow::saturate, "saturate"},
                           {overflow::to_nonfinite, "to_nonfinite"},
                           {overflow::saturate_finite, "saturate_finite"}},
                          4);
    check_names<nan_mode>({{nan_mode::canonical, "canonical"},
                           {nan_mode::keep_sign, "keep_sign"},
                           {nan_mode::canonical_signed, "canonical_signed"}},
                          3);
    check_names<scale_rule>({{scale_rule::floor, "floor"},
                             {scale_rule::ceil, "ceil"},
                             {scale_rule::round_up, "round_up"},
                             {scale_rule::even, "even"}},
                            4);
    check_names<nonfinite>({{nonfinite::propagate, "propagate"}, {nonfinite::saturate, "saturate"}}, 2);
    check_names<int4_range>({{int4_range::include_zero, "include_zero"}, {int4_range::minmax, "minmax"}}, 2);
    check_names<int4_symmetric_range>({{int4_symmetric_range::within_7, "within_7"},
                                       {int4_symmetric_range::full_range, "full_range"},
                                       {int4_symmetric_range::no_clipping, "no_clipping"}},
                                      3);
    check_names<scale_division>({{scale_division::reciprocal, "reciprocal"}, {scale_division::divide, "divide"}}, 2);
    check_names<nvfp4_order>(
        {{nvfp4_order::transformer_engine, "transformer_engine"}, {nvfp4_order::torchao, "torchao"}}, 2);
    static_assert(!has_name<int> && !has_name<status_code>);
}

TEST_CASE("stream: a value prints as its float") {
    CHECK(printed(fp8_e4m3(1.5f)) == "1.5");
    CHECK(printed(fp8_e4m3(-448.0f)) == "-448");
    CHECK(printed(-fp8_e4m3(0.0f)) == "-0");
    CHECK(printed(fp4_e2m1(6.0f)) == "6");
    CHECK(printed(bf16(0x1p-133f)) == "9.18355e-41");
    CHECK(printed(e8m0(0.25f)) == "0.25");
    CHECK(printed(fp8_e5m2::from_bits(0x7C)) == "inf");
    CHECK(printed(fp16::from_bits(0xFC00)) == "-inf");
    std::ostringstream os;
    os << std::setw(8) << std::fixed << std::setprecision(2) << fp16(2.5f) << '|' << std::setw(5)
       << fp8_e4m3::from_bits(0x7F);
    CHECK(os.str() == "    2.50|  nan");
    std::wostringstream wide;
    wide << bf16(2.5f) << L' ' << bf16::from_bits(0xFFFF);
    CHECK(wide.str() == L"2.5 nan");
}

TEST_CASE("stream: every NaN prints as nan, with or without a sign") {
    for_each_format([]<class Format>() {
        for (std::uint32_t c = 0; c < 1u << Format::spec.bits(); ++c) {
            if (!oracle_of<Format>().is_nan(c)) continue;
            if (printed(Format::from_bits(static_cast<typename Format::storage>(c))) != "nan")
                FAIL_CHECK(Format::name << c);
        }
    });
    CHECK(printed(fp8_e4m3::from_bits(0xFF)) == "nan");
}

TEST_CASE("hash: equal values hash equal, different values differ") {
    for_each_format([]<class Format>() {
        const auto at = [](std::uint32_t c) { return Format::from_bits(static_cast<typename Format::storage>(c)); };
        std::unordered_set<std::size_t> hashes;
        std::unordered_set<Format> values;
        std::size_t distinct = 0;
        for (std::uint32_t c = 0; c < 1u << Format::spec.bits(); ++c) {
            if (oracle_of<Format>().is_nan(c)) continue;
            const bool second_zero = c != 0 && at(c) == at(0);
            distinct += second_zero ? 0u : 1u;
            hashes.insert(std::hash<Format>{}(at(c)));
            values.insert(at(c));
        }
        CAPTURE(Format::name);
        CHECK(hashes.size() == distinct);
        CHECK(values.size() == distinct);
        if constexpr (Format::spec.has_negative_zero()) {
            CHECK(std::hash<Format>{}(at(0)) == std::hash<Format>{}(at(Format::spec.sign_bit())));
        }
    });
}

#if defined(__cpp_lib_format)
TEST_CASE("format: the specification of float") {
    CHECK(std::format("{}", fp8_e4m3(1.5f)) == "1.5");
    CHECK(std::format("{:8.3f}|{:<6}|{:+}", bf16(2.5f), fp4_e2m1(-3.0f), fp16(1.0f)) == "   2.500|-3    |+1");
    CHECK(std::format("{} {}", fp8_e4m3::from_bits(0xFF), fp8_e5m2::from_bits(0xFC)) == "nan -inf");
    CHECK(std::format(L"{}", bf16(0.5f)) == L"0.5");
}
#endif
