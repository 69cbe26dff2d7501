// SPDX-License-Identifier: MIT
// layernorm_error: the command line, every option checked, and the changes that a run judges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <numfmt/accuracy/layernorm.hpp>

#include "../support/command_line.hpp"

namespace layernorm {

namespace acc = numfmt::accuracy;
using acc::row_format;
using acc::sum_accumulator;
using acc::variance_formula;
using example::refuse;

/// A formula with an accumulator.
struct method {
    variance_formula formula = variance_formula::two_pass;
    sum_accumulator sums = sum_accumulator::fp32_lanes;
    friend bool operator==(const method&, const method&) = default;
};

struct settings {
    std::vector<method> methods;
    std::vector<row_format> inputs;
    std::vector<double> means;  ///< over the deviation; empty: no synthetic rows
    std::vector<std::int64_t> widths;
    bool real = true;
    row_format output = row_format::bf16;
    double limit = 1;
    std::int64_t rows = 0;  ///< of each cell; 0: rows_at
    std::uint64_t seed = 0;
    std::string csv, plot;
    unsigned threads = 1;
    bool json = false;

    std::int64_t rows_at(std::int64_t width) const {
        return rows > 0 ? rows : std::clamp<std::int64_t>((std::int64_t{1} << 17) / width, 4, 64);
    }
};

/// What somebody may change in a kernel, and what the change is called.
struct change {
    const char* text;
    method before, after;
};
inline const std::vector<change>& all_changes() {
    using F = variance_formula;
    using A = sum_accumulator;
    static const std::vector<change> changes = {
        {"bf16 sums -> fp32 sums", {F::two_pass, A::bf16_lanes}, {F::two_pass, A::fp32_lanes}},
        {"fp16 sums -> fp32 sums", {F::two_pass, A::fp16_lanes}, {F::two_pass, A::fp32_lanes}},
        {"one pass -> two passes", {F::one_pass, A::fp32_lanes}, {F::two_pass, A::fp32_lanes}},
        {"one pass -> shifted by the first element", {F::one_pass, A::fp32_lanes}, {F::shifted, A::fp32_lanes}},
        {"one pass -> Welford over lanes (Chan)", {F::one_pass, A::fp32_lanes}, {F::welford, A::fp32_lanes}},
        {"two passes -> corrected by E[d]", {F::two_pass, A::fp32_lanes}, {F::two_pass_corrected, A::fp32_lanes}},
        {"one pass: all of it in double", {F::one_pass, A::fp32_lanes}, {F::one_pass, A::double_precision}},
        {"one pass: sums in double, subtracted in fp32", {F::one_pass, A::fp32_lanes}, {F::one_pass, A::double_sums}},
        {"one pass: negative variances clamped to 0",
         {F::one_pass, A::fp32_lanes},
         {F::one_pass_clamped, A::fp32_lanes}},
        {"one pass -> two passes, sums left in bf16", {F::one_pass, A::bf16_lanes}, {F::two_pass, A::bf16_lanes}},
        {"two passes -> Welford over lanes (Chan)", {F::two_pass, A::fp32_lanes}, {F::welford, A::fp32_lanes}},
        {"two passes: compensated sums", {F::two_pass, A::fp32_lanes}, {F::two_pass, A::fp32_compensated}},
        {"two passes: sums in double", {F::two_pass, A::fp32_lanes}, {F::two_pass, A::double_sums}},
        {"RMS: bf16 sums -> fp32 sums", {F::mean_square, A::bf16_lanes}, {F::mean_square, A::fp32_lanes}},
        {"RMS: fp32 sums -> double", {F::mean_square, A::fp32_lanes}, {F::mean_square, A::double_precision}},
    };
    return changes;
}

inline constexpr const char* help_header =
    R"(layernorm_error: what forms a layer normalisation's variance well enough, and which changes only look like a fix.

Every formula of the variance with every accumulator on rows of given mean/deviation, width and format, and on real ones;
the variance beside the exact one of the stored values, and the output in units of its format's last place. Exit code
0, 2 for bad input, 1 for any other failure.
)";
inline constexpr const char* help_footer = R"(
Formulas (--formula):
  one_pass            E[x^2] - E[x]^2
  one_pass_clamped    the same, not below 0
  shifted             one pass over x - x[0]
  two_pass            the mean, then E[(x - mean)^2]
  two_pass_corrected  the same, and E[x - mean] makes up for the mean's rounding
  welford             Welford's update; with lanes Chan's merge of their results
  mean_square         E[x^2]: RMS normalisation
Sums (--sums): bf16, fp16 (rounded after every addition), fp32, each as one chain or in 16 x 4 lanes and a tree;
fp32_compensated (Dot2); double_sums (rounded to fp32 before they are used); double (differences and variance too).

What is measured, over the rows of a cell:
  variance   largest |variance / exact - 1|
  lost       share of the rows whose variance is <= 0, NaN or Inf
  output     largest |y - exact y| in units of the last place of --output at |y|, at 1 for smaller ones; rounding alone
             gives 0.5. `nan`: a row became NaN
  constant   rows whose stored values are all the same (a narrow format at a large mean): left out

Verdicts. A method is right at a mean/deviation if no row is lost and no output is off by more than --limit units, at any
width. A change from one method to another, judged over the means from 0 on,
  is a correctness fix   if it is right up to a larger mean than what it replaces, and wherever two passes in fp32 are
                         (RMS: fp32 sums)
  only postpones it      if up to a larger mean, but not as far as those
  breaks it              if up to a smaller one
  changes nothing        if both are right up to the same mean, whatever it costs

Examples:
  layernorm_error                                             everything, under a minute
  layernorm_error --input bf16 --width 4096 --output bf16 --plot variance.svg
  layernorm_error --input fp32 --formula one_pass --formula two_pass --sums fp32_lanes --mean 100 --mean 1000 --csv v.csv
  layernorm_error --output fp32 --limit 64                    how far fp32 outputs may be off
)";

template <class E> std::vector<std::string> names_of(int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.emplace_back(acc::name_of(static_cast<E>(i)));
    return names;
}
/// The values of the names, in the order of the enum and each once; all of them where there is no name.
template <class E> std::vector<E> values_of(const std::vector<std::string>& names, int count) {
    std::vector<E> values;
    for (int i = 0; i < count; ++i) {
        const auto value = static_cast<E>(i);
        if (names.empty() || std::find(names.begin(), names.end(), acc::name_of(value)) != names.end())
            values.push_back(value);
    }
    return values;
}
template <class T> void sort_and_dedupe(std::vector<T>& v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
}

inline settings parse_command_line(int argc, char** argv) {
    settings s;
    std::vector<std::string> formulas, sums, inputs, data;
    std::string output = "bf16";
    example::command_line line("layernorm_error", help_header, help_footer);
    line.choice("--data", data, {"synthetic", "real"}, "only these rows; may be repeated");
    line.choice("--formula", formulas, names_of<variance_formula>(acc::variance_formula_count),
                "only this formula; may be repeated");
    line.choice("--sums", sums, names_of<sum_accumulator>(acc::sum_accumulator_count),
                "only this accumulator; may be repeated");
    line.choice("--input", inputs, names_of<row_format>(acc::row_format_count),
                "only rows stored in this format; may be repeated");
    line.choice("--output", output, names_of<row_format>(acc::row_format_count), "format of the output [bf16]");
    auto* const mean =
        line.add("--mean", s.means, "X", "only this mean over the deviation; may be repeated\n[0, 1, 10 .. 1e5]")
            ->check(example::real_range(0, 1e9))
            ->allow_extra_args(false);
    auto* const width = line.add("--width", s.widths, "N",
                                 "only this many elements in a row; may be repeated\n[256, 1024, 4096, 16384, 65536]")
                            ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 24).description(""))
                            ->allow_extra_args(false);
    auto* const rows = line.add("--rows", s.rows, "N", "of each cell [2^17 elements, 4 to 64]")
                           ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20).description(""));
    line.add("--limit", s.limit, "X", "of an output's error, in units of its last place, for a verdict\n[1]")
        ->check(example::real_range(0.5, 1e9));
    line.add_outputs("the variance's error against mean/deviation");
    line.parse(argc, argv);
    s.json = line.json;
    s.csv = line.csv;
    s.plot = line.plot;
    s.threads = line.threads;
    s.seed = line.seed();

    const auto has = [&](const char* name) {
        return data.empty() || std::find(data.begin(), data.end(), name) != data.end();
    };
    s.real = has("real");
    for (const CLI::Option* o : {mean, width, rows})
        if (o->count() > 0 && !has("synthetic")) refuse("{}: only --data synthetic uses it", o->get_name());
    if (!s.plot.empty() && !has("synthetic")) refuse("--plot: only --data synthetic uses it");
    if (has("synthetic")) {
        if (s.means.empty()) s.means = {0, 1, 10, 100, 1e3, 1e4, 1e5};
        if (s.widths.empty()) s.widths = {256, 1024, 4096, 16384, 65536};
        sort_and_dedupe(s.means);
        sort_and_dedupe(s.widths);
    }
    s.inputs = values_of<row_format>(inputs, acc::row_format_count);
    s.output = values_of<row_format>({output}, acc::row_format_count).front();
    for (const variance_formula f : values_of<variance_formula>(formulas, acc::variance_formula_count))
        for (const sum_accumulator a : values_of<sum_accumulator>(sums, acc::sum_accumulator_count))
            if (acc::exists(f, a)) s.methods.push_back({f, a});
    if (s.methods.empty()) refuse("--formula, --sums: welford has no sum for {} to keep", sums.front());
    return s;
}

}  // namespace layernorm
