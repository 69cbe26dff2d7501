// SPDX-License-Identifier: MIT
// error_sweep: the command line, every option checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <numfmt/accuracy/inputs.hpp>
#include <numfmt/accuracy/weights.hpp>
#include <numfmt/block/quantize.hpp>

#include "../support/command_line.hpp"

namespace sweep {

using numfmt::matrix_shape;
using numfmt::matrix_view;
using numfmt::quantize_options;
using numfmt::rounding;
using numfmt::scale_rule;
using numfmt::accuracy::distribution;
using numfmt::accuracy::error_metrics;
using numfmt::accuracy::tensor_range;

using example::bad_input;
using example::refuse;

template <class E> using named = std::pair<const char*, E>;

inline constexpr named<rounding> roundings[] = {{"nearest_even", rounding::nearest_even},
                                                {"nearest_away", rounding::nearest_away},
                                                {"nearest_to_zero", rounding::nearest_to_zero},
                                                {"toward_zero", rounding::toward_zero},
                                                {"stochastic", rounding::stochastic}};
inline constexpr named<scale_rule> scale_rules[] = {{"floor", scale_rule::floor},
                                                    {"ceil", scale_rule::ceil},
                                                    {"round_up", scale_rule::round_up},
                                                    {"even", scale_rule::even}};
inline constexpr named<numfmt::nonfinite> nonfinite_rules[] = {{"propagate", numfmt::nonfinite::propagate},
                                                               {"saturate", numfmt::nonfinite::saturate}};
inline constexpr named<numfmt::int4_range> int4_ranges[] = {{"include_zero", numfmt::int4_range::include_zero},
                                                            {"minmax", numfmt::int4_range::minmax}};
inline constexpr named<numfmt::int4_symmetric_range> int4_symmetric_ranges[] = {
    {"within_7", numfmt::int4_symmetric_range::within_7},
    {"full_range", numfmt::int4_symmetric_range::full_range},
    {"no_clipping", numfmt::int4_symmetric_range::no_clipping}};
inline constexpr named<distribution> distributions[] = {{"gaussian", distribution::gaussian},
                                                        {"laplace", distribution::laplace}};

template <class E, std::size_t N> std::vector<std::string> names_of(const named<E> (&list)[N]) {
    std::vector<std::string> names;
    for (const auto& entry : list) names.emplace_back(entry.first);
    return names;
}
template <class E, std::size_t N> E value_of(const named<E> (&list)[N], std::string_view name) {
    for (const auto& entry : list)
        if (entry.first == name) return entry.second;
    throw std::logic_error("a choice without a value");
}
template <class E, std::size_t N> const char* name_of(const named<E> (&list)[N], E value) {
    for (const auto& entry : list)
        if (entry.second == value) return entry.first;
    throw std::logic_error("a value without a name");
}

/// The command line. Invariants hold: what does not go together was refused.
struct settings {
    std::string file;  // empty: the sample
    std::vector<std::string> schemes;
    std::string tensor_pattern;
    std::string csv, plot;
    bool json = false, summary = false, rule_given = false, int4_given = false, symmetric_given = false;
    rounding round = rounding::nearest_even;
    std::vector<scale_rule> rules = {scale_rule::floor};
    quantize_options options;
    std::optional<distribution> synthetic;
    std::int64_t samples = std::int64_t{1} << 24;
    double sigma = 1;
    std::uint64_t seed = 0;
    unsigned threads = 1;
};

inline constexpr std::int64_t synthetic_cols = 4096;

inline constexpr const char* help_header = R"(error_sweep: what each number format costs in accuracy, on real weights.

Quantizes every weight matrix of a .safetensors file with every scheme and compares the result with the original. A
tensor NAME.input [T, K] holds activations of NAME.weight [N, K]: the error of their product is reported too.
Without FILE: the sample of examples/data. Exit code 0, 2 for bad input, 1 for any other failure.
)";
inline constexpr const char* help_footer = R"(
What is measured, per tensor and in total (errors pooled over all weights):
  bits/weight   codes, scales and zero points; one scale for a row or tensor counts as 0
  SQNR          10 log10(sum w^2 / sum (w' - w)^2), w' being the quantized weight
  rms, max      sqrt(sum (w' - w)^2 / sum w^2), and the largest |w' - w| / |w| over w != 0
  clipped       weights more than half a step beyond the largest value that their block's scale can represent
  flushed       weights that are not zero and become zero
  W x           ||(W' - W) X^T|| / ||W X^T|| (Frobenius norms in fp64), X being the activations in the file
  lost          finite weights that became NaN or Inf; replaced: NaN or Inf that became finite. Shown when there are
                any; left out of the other errors of the weights. With lost weights W x is nan

Tensors of F64 (rounded to fp32 first), F32, F16, BF16, F8_E4M3 and F8_E5M2 are read (values as stored; no separate
scale tensor is applied). More than 2 dimensions: one matrix per leading index. 1-D tensors are skipped.

Memory: bands of about a million weights per thread, whatever the file's size. Schemes with one scale per tensor read
the tensor twice.

Examples:
  error_sweep                                            the sample, every scheme
  error_sweep model.safetensors --summary                a checkpoint, the total only
  error_sweep model.safetensors --tensor 'mlp\.' --scheme mxfp4 --scheme awq_int4 --csv out.csv
  error_sweep --scheme mxfp4 --scale-rule all            compare the rules for power-of-two scales
  error_sweep --plot error.svg                           error against bits per weight
  error_sweep --synthetic laplace --samples 1048576 --json
)";

inline settings parse_command_line(int argc, char** argv) {
    settings s;
    std::string round = "nearest_even", rule = "floor", nonfinite = "propagate", int4 = "include_zero",
                symmetric = "within_7", synthetic;
    std::string seed_text = "0";
    s.threads = std::max(1u, std::thread::hardware_concurrency());

    CLI::App app(help_header, "error_sweep");
    app.footer(help_footer);
    app.get_formatter()->column_width(34);
    app.set_version_flag("--version", example::version(), "print the version and exit");
    const auto add = [&](const char* name, auto& variable, const char* type, const std::string& text) {
        return app.add_option(name, variable, text)->type_name(type);
    };
    // A choice of names, listed in the help.
    const auto choice = [&](const char* name, std::string& variable, const std::vector<std::string>& names,
                            const char* text) {
        return add(name, variable, "NAME",
                   fmt::format("{}\n{}{}", text, fmt::join(names, ", "), variable.empty() ? "" : " [" + variable + "]"))
            ->check(CLI::IsMember(names).description(""));
    };
    std::vector<std::string> rule_names = names_of(scale_rules);
    rule_names.emplace_back("all");

    const auto* const file = add("FILE", s.file, "", "a .safetensors file; the sample of examples/data when left out");
    add("--scheme", s.schemes, "NAME", "only this scheme; may be repeated")->allow_extra_args(false);
    const auto* const tensor = add("--tensor", s.tensor_pattern, "REGEX",
                                   "only weights in whose name this regular expression (ECMAScript)\nis found");
    choice("--rounding", round, names_of(roundings), "rounding of the elements");
    const auto* const rule_option =
        choice("--scale-rule", rule, rule_names, "rule for power-of-two scales, or a row for each");
    choice("--nonfinite", nonfinite, names_of(nonfinite_rules), "what a block with NaN or Inf becomes");
    const auto* const int4_option =
        choice("--int4-range", int4, names_of(int4_ranges), "range of a group with a zero point");
    const auto* const symmetric_option =
        choice("--int4-symmetric-range", symmetric, names_of(int4_symmetric_ranges), "range of a symmetric int4 group");
    app.add_flag("--summary", s.summary, "print the total only, not each tensor");
    app.add_flag("--json", s.json, "print JSON instead of tables");
    add("--csv", s.csv, "FILE", "also write all numbers to this file");
    add("--plot", s.plot, "FILE", "also plot error against bits per weight; .svg or .png (needs gnuplot)");
    choice("--synthetic", synthetic, names_of(distributions), "random weights instead of a file, in rows of 4096");
    const auto* const samples = add("--samples", s.samples, "N", "how many: up to 4096, or a multiple of it [2^24]")
                                    ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40).description(""));
    const auto* const sigma =
        add("--sigma", s.sigma, "X", "their standard deviation [1]")->check(example::real_range(1e-30, 1e30));
    const auto* const seed = add("--seed", seed_text, "N", "seed of --synthetic and of stochastic rounding [0]");
    add("--threads", s.threads, "N", "how many to use [all]; the results do not depend on it")
        ->check(CLI::Range(1u, 1024u).description(""));

    try {
        app.parse(argc, argv);
        if (file->count() > 0 && s.file.empty()) throw CLI::ValidationError("FILE", "the path is empty");
    } catch (const CLI::Success& e) {  // --help, --version
        std::exit(app.exit(e));
    } catch (const CLI::ParseError& e) {
        refuse("{}\nRun with --help for more information.", e.what());
    }

    s.round = value_of(roundings, round);
    s.rules.clear();
    for (const auto& entry : scale_rules)
        if (rule == "all" || rule == entry.first) s.rules.push_back(entry.second);
    s.options.nonfinite = value_of(nonfinite_rules, nonfinite);
    s.options.int4_range = value_of(int4_ranges, int4);
    s.options.int4_symmetric_range = value_of(int4_symmetric_ranges, symmetric);
    s.seed = example::seed_of(seed_text);
    s.options.seed = s.seed;
    if (!synthetic.empty()) s.synthetic = value_of(distributions, synthetic);
    // No option is ignored.
    const auto without_synthetic = [&](const CLI::Option* option) {
        if (option->count() > 0 && !s.synthetic) refuse("{}: only --synthetic uses it", option->get_name());
    };
    without_synthetic(samples);
    without_synthetic(sigma);
    for (const CLI::Option* option : {file, tensor})
        if (option->count() > 0 && s.synthetic) refuse("{}: does not go with --synthetic", option->get_name());
    if (s.json && s.summary) refuse("--summary: does not go with --json");
    if (tensor->count() > 0 && s.tensor_pattern.empty()) refuse("--tensor: the expression is empty");
    if (s.synthetic && s.samples > synthetic_cols && s.samples % synthetic_cols != 0)
        refuse("--samples: got {}, wanted at most {} or a multiple of it", s.samples, synthetic_cols);
    if (seed->count() > 0 && !s.synthetic && s.round != rounding::stochastic)
        refuse("--seed: only --synthetic and --rounding stochastic use it");
    s.rule_given = rule_option->count() > 0;
    s.int4_given = int4_option->count() > 0;
    s.symmetric_given = symmetric_option->count() > 0;
    return s;
}

}  // namespace sweep
