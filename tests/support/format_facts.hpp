// SPDX-License-Identifier: MIT
// What the definition of a format says, typed in by hand in tests/golden/formats. Nothing here comes from the library's
// own description.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "golden_file.hpp"

namespace numfmt_test {

enum class shape { ieee, one_nan, negative_zero_is_nan, all_finite, power_of_two };

/// Widths, bias and the special codes.
struct facts {
    std::string name, source;
    int sign_bits, exponent_bits, mantissa_bits, bias;
    shape kind;
    std::uint32_t largest;        ///< magnitude code of the largest finite number
    std::int32_t infinity;        ///< magnitude code of infinity, -1 where there is none
    std::uint32_t canonical_nan;  ///< what a NaN becomes by default, whatever its sign
    std::uint32_t quiet_nan;      ///< magnitude of the NaN that keeps its sign
    bool saturates;               ///< overflow saturates by default

    int bits() const { return sign_bits + exponent_bits + mantissa_bits; }
    std::uint32_t sign_code() const { return sign_bits != 0 ? 1u << (exponent_bits + mantissa_bits) : 0u; }
};

/// Values at the ends of a format, and numeric_limits.
struct landmarks {
    double largest, smallest_normal, largest_subnormal, smallest_subnormal, unit_roundoff;
    int largest_exponent;
    int digits, digits10, max_digits10, min_exponent, max_exponent, min_exponent10, max_exponent10;
    double epsilon, round_error;
};

/// SQNR in dB without a scale, of data with standard deviation sigma.
struct unscaled_sqnr {
    double sigma, gaussian, laplace;
};

/// One file of tests/golden/formats.
struct golden_format {
    numfmt_test::facts facts;
    numfmt_test::landmarks landmarks;
    std::vector<std::string> fits_in, holds;  ///< formats that contain this one, or that it contains; each pair once
    std::vector<unscaled_sqnr> sqnr;
    std::vector<std::string> checksums;  ///< lines of generate.py

    explicit golden_format(const std::string& name) {
        const golden_file file = read_golden_file("formats", name);
        file.expect_keys({"source",
                          "sign_bits",
                          "exponent_bits",
                          "mantissa_bits",
                          "bias",
                          "shape",
                          "largest",
                          "infinity",
                          "canonical_nan",
                          "quiet_nan",
                          "saturates",
                          "largest_value",
                          "smallest_normal",
                          "largest_subnormal",
                          "smallest_subnormal",
                          "unit_roundoff",
                          "largest_exponent",
                          "digits",
                          "digits10",
                          "max_digits10",
                          "min_exponent",
                          "max_exponent",
                          "min_exponent10",
                          "max_exponent10",
                          "epsilon",
                          "round_error",
                          "fits_in",
                          "holds",
                          "sqnr"});
        facts.name = name;
        facts.source = file.text("source");
        facts.sign_bits = file.integer("sign_bits");
        facts.exponent_bits = file.integer("exponent_bits");
        facts.mantissa_bits = file.integer("mantissa_bits");
        facts.bias = file.integer("bias");
        facts.kind = static_cast<shape>(
            file.choice("shape", {"ieee", "one_nan", "negative_zero_is_nan", "all_finite", "power_of_two"}));
        facts.largest = file.code("largest");
        facts.infinity = file.text("infinity") == "-" ? -1 : static_cast<std::int32_t>(file.code("infinity"));
        facts.canonical_nan = file.code("canonical_nan");
        facts.quiet_nan = file.code("quiet_nan");
        facts.saturates = file.flag("saturates");
        landmarks = {file.number("largest_value"),     file.number("smallest_normal"),
                     file.number("largest_subnormal"), file.number("smallest_subnormal"),
                     file.number("unit_roundoff"),     file.integer("largest_exponent"),
                     file.integer("digits"),           file.integer("digits10"),
                     file.integer("max_digits10"),     file.integer("min_exponent"),
                     file.integer("max_exponent"),     file.integer("min_exponent10"),
                     file.integer("max_exponent10"),   file.number("epsilon"),
                     file.number("round_error")};
        fits_in = file.words("fits_in");
        holds = file.words("holds");
        for (const std::string& line : file.all("sqnr")) {
            const std::vector<std::string> words = golden_file::split(line);
            if (words.size() != 3) file.fail("needs three numbers in 'sqnr " + line + "'");
            sqnr.push_back({std::stod(words[0]), std::stod(words[1]), std::stod(words[2])});
        }
        checksums = file.section("checksums");
    }
};

}  // namespace numfmt_test
