// SPDX-License-Identifier: MIT
// attention_error: the command line, every option checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "../support/command_line.hpp"
#include "cases.hpp"

namespace attention {

using example::refuse;

struct settings {
    std::vector<std::string> scores;
    std::vector<std::int64_t> keys;
    std::vector<named_case> cases;
    acc::attention_problem problem;  ///< but for model, keys, seed, head and amplitude
    std::optional<double> margin;
    int heads = 1;
    double head_spread = 1;
    std::int64_t tile = 128;
    std::int64_t trials = 0;  ///< 0: as many as make about 2^15 keys, 1 .. 8
    std::string csv, plot;
    unsigned threads = 1;
    bool json = false;

    std::int64_t trials_at(std::int64_t length) const {
        return trials > 0 ? trials : std::clamp((std::int64_t{1} << 15) / length, std::int64_t{1}, std::int64_t{8});
    }
    bool has(const char* model) const { return std::find(scores.begin(), scores.end(), model) != scores.end(); }
};

inline std::vector<std::string> score_names() {
    std::vector<std::string> names = names_of(acc::score_model::gaussian, acc::score_model::recency);
    names.emplace_back("real");
    return names;
}

inline constexpr const char* help_header =
    R"(attention_error: what a quantized KV cache and a kernel's accumulators cost in attention, against context length.

One query (or a group that shares a head) against up to a million keys, as a decode kernel walks over them: scores,
online softmax, P V, tile by tile, with the cache, the query and P in their formats and the sums formed as the
accumulator forms them, bit for bit; beside the same in double on the unquantized numbers. Exit code 0, 2 for bad
input, 1 for any other failure.
)";
inline constexpr const char* help_footer = R"(
Where the softmax's mass lies (--scores):
  gaussian   on all keys: normal scores
  sink       a share on the first key, which has a value near zero and a few outlier channels
  needle     a share on one key that holds an answer
  passage    that share spread over --passage-share of the keys, which all hold the answer
  recency    on the last keys: a score falls by ln 2 every --half-life keys
  real       keys, values and queries of six heads of the sample (head size 32, 613 tokens, repeated)
The share of sink, needle and passage is exp(margin) times that of all other keys: --margin.

Caches: fp32 bf16 fp16; fp8_e4m3, fp8_e5m2 with an fp32 scale per tensor, head or token (calibrated: amax of 4096 other
tokens goes to the largest value; small, large: a quarter and four times that; one: 1); mxfp8_e4m3 and mxfp4 (E8M0 per
32); int4_g32 (fp16 scale and zero point per 32).
Accumulators: exact (double), fp32, bf16, fp16 (rounded after every product), hopper_16bit (the fp16/bf16 tensor core),
hopper_fp8 (fp8 wgmma, P V in one chain over all tiles; query and P in fp8), hopper_fp8_promoted (a tile's sum is added
to an fp32 one).

What is measured, over the queries of all trials and heads:
  error       root mean square over the queries of |output - exact| / |exact|
  mass        root mean square error of log sum exp: the relative error of the softmax's mass
  kept        what of that mass P V carries: 1 without errors
  hits        share of queries whose answer scores higher than 63 others; margin: by how much, over |answer|^2
  causes      the error with one cause switched off: rounding (cache, query, P), clipping (the cache's range without an
              end), accumulation (double)

Memory: one tile of keys per thread, whatever their number.

Examples:
  attention_error                                                          the comparison, under a minute
  attention_error --scores needle --keys 131072 --cache fp8_e4m3 --accumulator hopper_fp8 --accumulator hopper_fp8_promoted
  attention_error --scores gaussian --keys 1048576 --cache bf16 --accumulator hopper_16bit
  attention_error --cache fp8_e4m3 --scale small --scale calibrated --causes --plot errors.svg
)";

inline settings parse_command_line(int argc, char** argv) {
    settings s;
    std::vector<std::string> caches, scales, pers, accumulators;
    std::string probabilities, qk;
    int splits = 1;
    bool causes = false;
    std::vector<std::string> scale_names;
    for (const auto& [name, factor] : scale_choices()) scale_names.push_back(name);

    example::command_line line("attention_error", help_header, help_footer);
    const auto number = [&](const char* name, auto& variable, auto low, auto high, const std::string& text) {
        if constexpr (std::is_floating_point_v<decltype(low)>)
            return line.add(name, variable, "X", text)->check(example::real_range(low, high));
        else
            return line.add(name, variable, "N", text)->check(CLI::Range(low, high).description(""));
    };
    line.choice("--scores", s.scores, score_names(), "only this score model; may be repeated [all but passage]");
    number("--keys", s.keys, std::int64_t{1}, std::int64_t{1} << 24,
           "only this context length; may be repeated [1024, 4096, 16384,\n131072]")
        ->allow_extra_args(false);
    auto* const head_size =
        number("--head-size", s.problem.head_size, 8, 512, "numbers in a key, a multiple of 8 [64]");
    number("--group", s.problem.group, 1, 64, "queries that share a head (GQA) [2]");
    number("--heads", s.heads, 1, 64, "KV heads [1]");
    auto* const spread = number("--head-spread", s.head_spread, 1.0, 1e12,
                                "amplitude of the first head's keys and values over that of the\nlast one [1]");
    line.choice("--cache", caches, cache_names(), "only this cache; may be repeated");
    auto* const scale =
        line.choice("--scale", scales, scale_names, "scales of fp8 caches; may be repeated [calibrated]");
    auto* const per =
        line.choice("--per", pers, granularity_names(), "what shares such a scale; may be repeated [head]");
    line.choice("--accumulator", accumulators, accumulator_names(), "of P V, and of Q K; may be repeated [fp32]");
    line.choice("--qk-accumulator", qk, accumulator_names(),
                "of Q K [as --accumulator; hopper_fp8 for\nhopper_fp8_promoted]");
    line.choice("--p", probabilities, probability_names(), "format of P [bf16; fp8_e4m3 for the fp8 tensor core]");
    number("--splits", splits, 1, 4096, "parts of the keys with a softmax each (split-KV) [1]");
    line.app.add_flag("--causes", causes, "also with rounding, clipping, accumulation errors switched off in\nturn");
    number("--tile", s.tile, std::int64_t{16}, std::int64_t{1} << 16,
           "keys between rescalings and promotions, a multiple of 16 [128]");
    double log_odds = 0;
    auto* const margin =
        number("--margin", log_odds, -50.0, 50.0,
               "log odds of the special keys' share [sink: 0, a half; needle and\npassage: -5, 0.7 %]");
    auto* const depth =
        number("--depth", s.problem.depth, 0.0, 1.0, "where needle and passage stand, 0 first, 1 last [0.5]");
    auto* const share = number("--passage-share", s.problem.passage_share, 0.0, 1.0, "of the keys [0.0625]");
    auto* const half_life = number("--half-life", s.problem.half_life, std::int64_t{1}, std::int64_t{1} << 40,
                                   "of recency, in keys [2048]");
    auto* const deviation =
        number("--score-deviation", s.problem.score_deviation, 0.0, 8.0, "of the ordinary keys, in nats [1]");
    auto* const mean = number("--value-mean", s.problem.value_mean, 0.0, 100.0,
                              "channel means of the values over their deviation [0.3]");
    number("--trials", s.trials, std::int64_t{1}, std::int64_t{1} << 20, "problems of each length [2^15 keys, 1 to 8]");
    line.add_outputs("the error against the number of keys");
    s.problem.group = 2;
    s.problem.head_size = 64;
    line.parse(argc, argv);
    s.json = line.json;
    s.csv = line.csv;
    s.plot = line.plot;
    s.threads = line.threads;
    s.problem.seed = line.seed();

    if (s.scores.empty()) s.scores = {"gaussian", "sink", "needle", "recency", "real"};
    if (s.keys.empty()) s.keys = {1024, 4096, 16384, 131072};
    std::sort(s.keys.begin(), s.keys.end());
    s.keys.erase(std::unique(s.keys.begin(), s.keys.end()), s.keys.end());
    if (s.problem.head_size % 8 != 0) refuse("--head-size: got {}, wanted a multiple of 8", s.problem.head_size);
    if (s.tile % 16 != 0) refuse("--tile: got {}, wanted a multiple of 16", s.tile);
    if (s.head_spread > 1 && s.heads == 1) refuse("--head-spread: needs --heads of at least 2");
    // No option is ignored.
    const bool synthetic = s.scores.size() > 1 || !s.has("real");
    const bool answer = s.has("needle") || s.has("passage");
    const auto only = [&](const CLI::Option* option, bool used, const char* by) {
        if (option->count() > 0 && !used) refuse("{}: only {} it", option->get_name(), by);
    };
    only(margin, answer || s.has("sink"), "sink, needle and passage scores use");
    if (margin->count() > 0) s.margin = log_odds;
    only(depth, answer, "needle and passage scores use");
    only(share, s.has("passage"), "passage scores use");
    only(half_life, s.has("recency"), "recency scores use");
    for (const CLI::Option* option : {head_size, deviation, mean, spread})
        only(option, synthetic, "synthetic scores use");

    const bool chosen = !caches.empty() || !accumulators.empty() || !scales.empty() || !pers.empty() || !qk.empty() ||
                        !probabilities.empty() || splits > 1;
    if (!chosen) {
        s.cases = default_cases();
        for (named_case& c : s.cases) c.causes = c.causes || causes;
        return s;
    }
    if (caches.empty()) caches = {"fp8_e4m3"};
    if (accumulators.empty()) accumulators = {"fp32"};
    if (scales.empty()) scales = {"calibrated"};
    if (pers.empty()) pers = {"head"};
    bool scaled = false;
    for (const std::string& cache : caches)
        for (const std::string& accumulator : accumulators) {
            const auto format = value_of<kv_format>(cache_names(), cache);
            const auto values = value_of<attention_accumulator>(accumulator_names(), accumulator);
            auto row_scores =
                values == attention_accumulator::hopper_fp8_promoted ? attention_accumulator::hopper_fp8 : values;
            if (!qk.empty()) row_scores = value_of<attention_accumulator>(accumulator_names(), qk);
            acc::attention_case c = kernel_case(format, row_scores, values);
            if (!probabilities.empty())
                c.policy.probabilities = value_of<probability_format>(probability_names(), probabilities);
            c.splits = splits;
            if (!has_float_scale(format)) {
                s.cases.push_back({c, "", causes});
            } else {
                scaled = true;
                for (const std::string& name : scales)
                    for (const std::string& shared : pers) {
                        for (const auto& [choice, factor] : scale_choices())
                            if (choice == name) c.scale_factor = factor;
                        c.granularity = value_of<scale_granularity>(granularity_names(), shared);
                        s.cases.push_back({c, name, causes});
                    }
            }
            if (takes_fp8_only(values) && c.policy.probabilities != probability_format::fp8_e4m3)
                refuse("--p: {} takes fp8_e4m3, got {}", accumulator, probabilities);
            if (takes_fp8_only(values) && !has_float_scale(format))
                refuse("--accumulator: {} takes an fp8_e4m3 or fp8_e5m2 cache, got {}", accumulator, cache);
            if (takes_fp8_only(row_scores) && !has_float_scale(format))
                refuse("--qk-accumulator: {} takes an fp8_e4m3 or fp8_e5m2 cache, got {}", acc::name_of(row_scores),
                       cache);
        }
    only(scale, scaled, "fp8_e4m3 and fp8_e5m2 caches use");
    only(per, scaled, "fp8_e4m3 and fp8_e5m2 caches use");
    return s;
}

}  // namespace attention
