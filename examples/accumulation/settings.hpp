// SPDX-License-Identifier: MIT
// accumulation_error: the command line, every option checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../support/command_line.hpp"
#include "accumulators.hpp"

namespace accumulation {

using example::refuse;

inline const std::vector<std::string>& data_names() {
    static const std::vector<std::string> names = {"zero_mean", "positive", "ill_conditioned", "activations"};
    return names;
}
inline const std::vector<std::pair<std::string, input_format>>& input_names() {
    static const std::vector<std::pair<std::string, input_format>> names = {
        {"e4m3", input_format::e4m3}, {"bf16", input_format::bf16}, {"fp16", input_format::fp16}};
    return names;
}

struct settings {
    std::vector<std::string> data, accumulators;
    std::vector<std::int64_t> k;
    std::string input = "e4m3", csv, plot;
    std::int64_t trials = 0;  // 0: as many as make about 2^20 products, 4 .. 4096
    double condition = 1e6;
    std::uint64_t seed = 0;
    unsigned threads = 1;
    bool json = false;

    input_format format() const {
        for (const auto& [name, f] : input_names())
            if (name == input) return f;
        throw std::logic_error("an input format without a value");
    }
    std::int64_t trials_at(std::int64_t n) const {
        if (trials > 0) return trials;
        return std::clamp((std::int64_t{1} << 20) / n, std::int64_t{4}, std::int64_t{4096});
    }
};

inline constexpr const char* help_header =
    R"(accumulation_error: what forming the sum costs, whatever the format of the numbers in it.

Dot products of K = 2^7 .. 2^20 numbers by every accumulator of the library and by the tensor cores' bit-exact models,
against the exact sum of the same products rounded once. Exit code 0, 2 for bad input, 1 for any other failure.
)";
inline constexpr const char* help_footer = R"(
The data, rounded to the input format first, so that every row sums the same products:
  zero_mean        normal, mean 0, standard deviation 1
  positive         uniform over [0, 1)
  ill_conditioned  terms that cancel in pairs; the condition number 2 sum|xy| / |sum xy| is the one of --condition
  activations      real weights and the inputs of their layer (examples/data); beyond one row, several rows in a chain

What is measured, over all trials of one K:
  relative error   sqrt(sum (d - exact)^2 / sum exact^2): Frobenius, as of a matrix product
  backward error   the largest |d - exact| / sum|x y|: what a-priori bounds are about
  bound            of the backward error: holds for every input
  expected         the same if errors were independent with mean 0 (sqrt instead of n)
  bias             mean of (d - exact) / |exact|: truncation is one-sided

Examples:
  accumulation_error                                                    everything, under a minute
  accumulation_error --plot errors.svg --csv errors.csv                 curves with the bounds; every number
  accumulation_error --data positive --accumulator fp32 --accumulator hopper_wgmma_fp8
  accumulation_error --data zero_mean --k 4096 --trials 5000 --json
  accumulation_error --input bf16 --condition 1e8
)";

inline settings parse_command_line(int argc, char** argv) {
    settings s;
    std::vector<std::string> names, inputs;
    for (const accumulator& a : all_accumulators()) names.push_back(a.name);
    for (const auto& [name, f] : input_names()) inputs.push_back(name);

    example::command_line line("accumulation_error", help_header, help_footer);
    line.choice("--data", s.data, data_names(), "only this data; may be repeated");
    line.choice("--accumulator", s.accumulators, names, "only this accumulator; may be repeated");
    line.add("--k", s.k, "K", "only this number of terms; may be repeated [2^7, 2^8 .. 2^20]")
        ->check(CLI::Range(std::int64_t{4}, std::int64_t{1} << 24).description(""))
        ->allow_extra_args(false);
    line.choice("--input", s.input, inputs, "format of the numbers [e4m3]");
    line.add("--trials", s.trials, "N", "dot products of each K [about 2^20 products, 4 to 4096]")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24).description(""));
    const auto* const condition = line.add("--condition", s.condition, "X", "condition number of ill_conditioned [1e6]")
                                      ->check(example::real_range(1.0, 1e12));
    line.add_outputs("backward errors and bounds against K");
    line.parse(argc, argv);
    s.json = line.json;
    s.csv = line.csv;
    s.plot = line.plot;
    s.threads = line.threads;
    s.seed = line.seed();
    if (s.data.empty()) s.data = data_names();
    if (s.k.empty())
        for (int e = 7; e <= 20; ++e) s.k.push_back(std::int64_t{1} << e);
    std::sort(s.k.begin(), s.k.end());
    s.k.erase(std::unique(s.k.begin(), s.k.end()), s.k.end());
    if (condition->count() > 0 && std::find(s.data.begin(), s.data.end(), "ill_conditioned") == s.data.end())
        refuse("--condition: only ill_conditioned data uses it");
    return s;
}

/// The accumulators that were asked for and take the input format.
inline std::vector<accumulator> chosen_accumulators(const settings& s) {
    std::vector<accumulator> chosen;
    for (accumulator& a : all_accumulators()) {
        const bool wanted = s.accumulators.empty() ||
                            std::find(s.accumulators.begin(), s.accumulators.end(), a.name) != s.accumulators.end();
        const bool takes =
            s.format() == input_format::e4m3 || (s.format() == input_format::bf16 ? a.takes_bf16 : a.takes_fp16);
        if (wanted && !takes && !s.accumulators.empty())
            refuse("--accumulator: {} does not take {} numbers", a.name, s.input);
        if (wanted && takes) chosen.push_back(std::move(a));
    }
    return chosen;
}

}  // namespace accumulation
