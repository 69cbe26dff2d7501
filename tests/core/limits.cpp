// SPDX-License-Identifier: MIT
// Landmarks of every format: numeric_limits and the derived facts of float_spec against typed-in values.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include "support/golden_names.hpp"
#include "support/oracle.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

template <class List> std::set<std::string> names_of(List list) {
    std::set<std::string> names;
    numfmt::for_each(list, [&]<class Format>() { names.insert(Format::name); });
    return names;
}

}  // namespace

TEST_CASE("limits: a golden file for every format of the library, and no other") {
    CHECK(names_of(all_formats{}).size() == all_formats::size);
    check_golden_names("formats", names_of(all_formats{}), "numfmt::all_formats");
    check_golden_names("formats/test_only", names_of(local_formats{}), "numfmt_test::local_formats");
}

TEST_CASE("limits: a golden file that is missing or malformed says so") {
    const auto message = [](const std::string& text, auto&& read) -> std::string {
        const std::string path = (std::filesystem::temp_directory_path() / "numfmt_golden_file_test.txt").string();
        std::ofstream(path) << text;
        std::string what = "nothing thrown";
        try {
            read(golden_file(path));
        } catch (const std::runtime_error& e) {
            what = e.what();
        }
        std::filesystem::remove(path);
        const std::size_t at = what.find(path);
        return at == std::string::npos ? what : what.substr(at + path.size() + 1);
    };
    const auto bias = [](const golden_file& f) { f.integer("bias"); };
    CHECK_THROWS_WITH(golden_format("no_such_format"),
                      (std::string("golden file ") + NUMFMT_TEST_DATA_DIR +
                       "/formats/no_such_format.txt is missing; docs/adding_a_format.md says what it holds")
                          .c_str());
    CHECK(message("# bias 7\n[checksums]\nbias 7\n", bias) == "has no line 'bias'");
    CHECK(message("bias 7\nbias 8\n", bias) == "has more than one line 'bias'");
    CHECK(message("bias 7x\n", bias) == "has no number in 'bias 7x'");
    CHECK(message("bias\n", bias) == "has a line without a value: bias");
    CHECK(message("biass 7\n", [](const golden_file& f) { f.expect_keys({"bias"}); }) == "has an unknown line 'biass'");
    CHECK(message("saturates true\n", [](const golden_file& f) { f.flag("saturates"); }) ==
          "does not know 'true' as saturates");
    CHECK(message("bias   7\n[a]\n1\n", [](const golden_file& f) {
              f.fail(std::to_string(f.integer("bias")) + f.section("a").front());
          }) == "71");
}

TEST_CASE("limits: numeric_limits of every format") {
    for_each_format([]<class Format>() {
        CAPTURE(Format::name);
        using L = std::numeric_limits<Format>;
        const landmarks* const l = &golden_of<Format>().landmarks;
        const facts& f = facts_of<Format>();
        const auto value = [](Format x) { return static_cast<double>(static_cast<float>(x)); };
        static_assert(L::is_specialized && !L::is_integer && !L::is_exact && L::is_bounded && L::radix == 2);
        static_assert(!L::is_modulo && !L::traps && !L::is_iec559 && !L::has_signaling_NaN);
        CHECK(value(L::max()) == l->largest);
        CHECK(value(L::min()) == l->smallest_normal);
        CHECK(value(L::denorm_min()) == l->smallest_subnormal);
        CHECK(value(L::lowest()) == (f.sign_bits != 0        ? -l->largest
                                     : Format::spec.has_zero ? 0.0
                                                             : l->smallest_normal));
        CHECK(value(L::epsilon()) == l->epsilon);
        CHECK(value(L::round_error()) == l->round_error);
        CHECK(L::is_signed == (f.sign_bits != 0));
        CHECK(L::has_infinity == (f.infinity >= 0));
        CHECK(L::has_quiet_NaN == (f.kind != shape::all_finite));
        CHECK(L::digits == l->digits);
        CHECK(L::digits10 == l->digits10);
        CHECK(L::max_digits10 == l->max_digits10);
        CHECK(L::min_exponent == l->min_exponent);
        CHECK(L::max_exponent == l->max_exponent);
        CHECK(L::min_exponent10 == l->min_exponent10);
        CHECK(L::max_exponent10 == l->max_exponent10);
        CHECK(std::isinf(static_cast<float>(L::infinity())) == (f.infinity >= 0));
        CHECK(std::isnan(static_cast<float>(L::quiet_NaN())) == (f.kind != shape::all_finite));
        CHECK(L::round_style == (Format::spec.has_zero ? std::round_to_nearest : std::round_toward_zero));
    });
}

TEST_CASE("limits: landmarks from the codes themselves") {
    for_each_format([]<class Format>() {
        CAPTURE(Format::name);
        const landmarks* const l = &golden_of<Format>().landmarks;
        double largest = 0, smallest = HUGE_VAL, above_one = HUGE_VAL, largest_power = 0;
        for (std::uint32_t c = 0; c < 1u << Format::spec.bits(); ++c) {
            const double x = static_cast<double>(decode<Format>(static_cast<typename Format::storage>(c)));
            if (!std::isfinite(x)) continue;
            int exponent = 0;
            if (x > largest) largest = x;
            if (x > 0 && x < smallest) smallest = x;
            if (x > 1 && x < above_one) above_one = x;
            if (std::frexp(x, &exponent) == 0.5 && x > largest_power) largest_power = x;
        }
        CHECK(largest == l->largest);
        CHECK(smallest == l->smallest_subnormal);
        CHECK(above_one - 1 == l->epsilon);
        CHECK(largest_power == std::ldexp(1.0, l->largest_exponent));
        CHECK(Format::spec.max_exponent() == l->largest_exponent);
        CHECK(std::ldexp(1.0, -Format::spec.precision()) == l->unit_roundoff);
        if (Format::spec.has_zero) {
            const std::uint32_t code = (1u << Format::spec.mantissa_bits) - 1u;
            CHECK(static_cast<double>(decode<Format>(static_cast<typename Format::storage>(code))) ==
                  l->largest_subnormal);
        }
    });
}

TEST_CASE("limits: the derived facts of a spec equal the specification's") {
    for_each_format([]<class Format>() {
        constexpr float_spec s = Format::spec;
        const facts& f = facts_of<Format>();
        CAPTURE(f.name);
        CHECK(f.name == Format::name);
        CHECK(Format::spec.bias == f.bias);
        CHECK(Format::spec.exponent_bits == f.exponent_bits);
        CHECK(!f.source.empty());
        CHECK(s.bits() == f.bits());
        CHECK(s.magnitude_bits() == f.exponent_bits + f.mantissa_bits);
        CHECK(s.code_mask() == (1u << f.bits()) - 1u);
        CHECK(s.sign_bit() == f.sign_code());
        CHECK(s.max_finite_code() == f.largest);
        CHECK(s.has_infinity() == (f.infinity >= 0));
        if (f.infinity >= 0) CHECK(s.infinity_code() == static_cast<std::uint32_t>(f.infinity));
        CHECK(s.has_nan() == (f.kind != shape::all_finite));
        CHECK(s.canonical_nan_code() == f.canonical_nan);
        CHECK(s.quiet_nan_code() == f.quiet_nan);
        const std::uint32_t infinite = encode<Format>(std::numeric_limits<double>::infinity());
        CHECK((infinite == f.largest) == (f.saturates || f.kind == shape::all_finite));
        CHECK(s.has_negative_zero() == (f.sign_bits == 1 && f.kind != shape::negative_zero_is_nan));
    });
}

TEST_CASE("limits: represents_all is true exactly where every value survives") {
    struct entry {
        float_spec spec;
        const oracle* o;
    };
    std::vector<entry> all;
    for_each_format([&]<class Format>() { all.push_back({Format::spec, &oracle_of<Format>()}); });
    for (const entry& from : all) {
        for (const entry& to : all) {
            bool survives = true;
            const auto mode = to.spec.has_zero ? rounding::toward_zero : rounding::down;
            for (std::uint32_t c = 0; c < from.o->codes() && survives; ++c) {
                const double x = from.o->decode(c);
                const double y = to.o->decode(to.o->encode(from.o->source(c), mode, {overflow::to_nonfinite}));
                survives = std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
            }
            const bool claimed = represents_all(from.spec, to.spec);
            CHECK_MESSAGE(claimed == survives, from.o->format().name << " -> " << to.o->format().name);
        }
    }
}

TEST_CASE("limits: a value is its storage and nothing else") {
    for_each_format([]<class Format>() {
        static_assert(sizeof(Format) == sizeof(typename Format::storage));
        static_assert(alignof(Format) == alignof(typename Format::storage));
        static_assert(std::is_trivially_copyable_v<Format> && std::is_standard_layout_v<Format>);
        static_assert(std::is_trivially_default_constructible_v<Format>);
    });
    CHECK(sizeof(bf16[3]) == 6);
    CHECK(sizeof(fp8_e4m3[3]) == 3);
    CHECK(sizeof(fp4_e2m1) == 1);
}
