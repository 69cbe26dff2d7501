// SPDX-License-Identifier: MIT
// master_weights: the command line, every option checked, and which stores and optimizers a run compares.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <numfmt/accuracy/training.hpp>

#include "../support/command_line.hpp"

namespace master_weights {

namespace acc = numfmt::accuracy;
using acc::optimizer_kind;
using acc::weight_store;
using example::refuse;

/// A store with the format of the optimizer's state.
struct arm {
    weight_store store = weight_store::fp32;
    bool bf16_state = false;
    std::string name() const { return std::string(acc::name_of(store)) + (bf16_state ? "_bf16_state" : ""); }
};

struct settings {
    std::vector<weight_store> stores;
    std::vector<std::int64_t> update_steps;  ///< of the update experiment: ratio 1 / (8 * steps); empty: not run
    std::int64_t update_weights = 256;
    std::vector<optimizer_kind> optimizers;  ///< empty: no training
    std::vector<double> rates;               ///< empty: rates_of
    acc::optimizer_options options;
    std::int64_t steps = 500, start_steps = 500, batch = 32, hidden = 64;
    int seeds = 4;
    std::uint64_t seed = 0;
    std::string csv, plot;
    unsigned threads = 1;
    bool json = false;

    std::vector<double> rates_of(optimizer_kind k) const {
        if (!rates.empty()) return rates;
        if (k == optimizer_kind::sgd) return {1e-1, 3e-2, 1e-2, 3e-3, 1e-3};
        return {3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5};
    }
    /// Of training. The first one is fp32, which the others are compared with, wanted or not.
    std::vector<arm> arms_of(optimizer_kind k) const {
        std::vector<arm> arms = {{weight_store::fp32, false}};
        for (const weight_store s : stores)
            if (s != weight_store::fp32) arms.push_back({s, false});
        if (k == optimizer_kind::adam &&
            std::find(stores.begin(), stores.end(), weight_store::fp32_master) != stores.end())
            arms.push_back({weight_store::fp32_master, true});
        return arms;
    }
    acc::optimizer_options optimizer(optimizer_kind k, const arm& a) const {
        acc::optimizer_options o = options;
        o.kind = k;
        o.bf16_state = a.bf16_state;
        return o;
    }
};

inline constexpr const char* help_header =
    R"(master_weights: when bf16 weights stop learning, and what each remedy costs in bytes and in loss.

First the same small update, added many times to weights in every store: which share of it arrives. Then a small network
trained further on real data, from a common start, with every store and learning rate. Exit code 0, 2 for bad input, 1
for any other failure.
)";
inline constexpr const char* help_footer = R"(
The stores:
  fp32             fp32, which the model reads too: the reference
  fp32_master      fp32, of which the model reads a copy rounded to bf16
  bf16_kahan       bf16 beside a bf16 compensation
  bf16_stochastic  bf16, rounded up with the probability of the discarded fraction
  bf16             bf16, rounded to nearest even
  fp32_master_bf16_state (in training with Adam) the master, and Adam's means in bf16

Updates: each is the weight times 2^-E, as many as make an eighth of the weight.
  share       what arrived, over what was sent: 1 is all of it; mean and deviation over the weights
  error       root mean square of share - 1
  theory      a bound of |share - 1|: 2^-8, 2^-16 (Kahan) or 2^-24 (fp32) over the ratio; a deviation for stochastic
  still       share of the weights that never moved

Training: y = relu(x A) B predicts what layer 3's first attention head makes of a token (its 32 values) from the token's
keys and values in layer 0 (128 numbers), 613 tokens of the sample, every column with mean 0 and deviation 1. From random
weights --start-steps steps of Adam in fp32 come first (rate 3e-3), rounded to bf16; then --steps with every store, on
the same batches.
  loss        mean squared error over all tokens; 1 is what predicting 0 would give
  gain kept   (loss at the start - loss) / (the same with fp32), per seed
  ratio       median |update| / |weight|, in the fp32 run
  lost        share of those updates that a bf16 weight rounded to nearest would not notice

Examples:
  master_weights                                                     everything, under a minute
  master_weights --plot weights.svg --csv weights.csv                curves with the bounds; every number
  master_weights --part updates --store bf16 --ratio 8 --ratio 8.5 --ratio 9 --weights 4096
  master_weights --part training --optimizer adam --rate 1e-4 --steps 4000 --json
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

inline settings parse_command_line(int argc, char** argv) {
    settings s;
    std::vector<std::string> parts, stores, optimizers;
    std::vector<double> exponents;
    example::command_line line("master_weights", help_header, help_footer);
    const auto number = [&](const char* name, auto& variable, auto low, auto high, const std::string& text) {
        return line.add(name, variable, "N", text)->check(CLI::Range(low, high).description(""));
    };
    line.choice("--part", parts, {"updates", "training"}, "only this part; may be repeated");
    line.choice("--store", stores, names_of<weight_store>(acc::weight_store_count),
                "only this store; may be repeated (training adds fp32)");
    auto* const ratio =
        line.add("--ratio", exponents, "E", "only updates of 2^-E times the weight; may be repeated [3, 4 .. 20]")
            ->check(example::real_range(3, 24))
            ->allow_extra_args(false);
    auto* const weights = number("--weights", s.update_weights, std::int64_t{1}, std::int64_t{1} << 20,
                                 "how many weights take these updates [256]");
    auto* const optimizer = line.choice("--optimizer", optimizers, names_of<optimizer_kind>(acc::optimizer_kind_count),
                                        "only this optimizer; may be repeated");
    auto* const rate = line.add("--rate", s.rates, "X",
                                "only this learning rate; may be repeated [adam: 3e-3 .. 1e-5;\nsgd: 0.1 .. 1e-3]")
                           ->check(example::real_range(1e-12, 10))
                           ->allow_extra_args(false);
    auto* const momentum =
        line.add("--momentum", s.options.momentum, "X", "of sgd [0.9]")->check(example::real_range(0, 0.9999));
    auto* const steps = number("--steps", s.steps, std::int64_t{8}, std::int64_t{1} << 24, "of every run [500]");
    auto* const start = number("--start-steps", s.start_steps, std::int64_t{0}, std::int64_t{1} << 24,
                               "before, with fp32 weights [500]");
    auto* const batch = number("--batch", s.batch, std::int64_t{1}, std::int64_t{1} << 16, "tokens per step [32]");
    auto* const hidden =
        number("--hidden", s.hidden, std::int64_t{1}, std::int64_t{1} << 14, "width of the hidden layer [64]");
    auto* const seeds = number("--seeds", s.seeds, 1, 1000, "how many starts and sequences of batches [4]");
    line.add_outputs("errors, bounds and gains against the ratio of\nupdate and weight");
    line.parse(argc, argv);
    s.json = line.json;
    s.csv = line.csv;
    s.plot = line.plot;
    s.threads = line.threads;
    s.seed = line.seed();

    const auto has = [&](const char* part) {
        return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
    };
    // No option is ignored.
    const auto only = [&](std::initializer_list<const CLI::Option*> options, bool used, const char* by) {
        for (const CLI::Option* o : options)
            if (o->count() > 0 && !used) refuse("{}: only {} uses it", o->get_name(), by);
    };
    only({ratio, weights}, has("updates"), "--part updates");
    only({optimizer, rate, steps, start, batch, hidden, seeds, momentum}, has("training"), "--part training");
    s.stores = values_of<weight_store>(stores, acc::weight_store_count);
    if (has("training")) {
        s.optimizers = values_of<optimizer_kind>(optimizers, acc::optimizer_kind_count);
        const bool sgd = std::find(s.optimizers.begin(), s.optimizers.end(), optimizer_kind::sgd) != s.optimizers.end();
        only({momentum}, sgd, "--optimizer sgd");
    }
    std::sort(s.rates.rbegin(), s.rates.rend());
    s.rates.erase(std::unique(s.rates.begin(), s.rates.end()), s.rates.end());
    if (has("updates")) {
        if (exponents.empty())
            for (int e = 3; e <= 20; ++e) exponents.push_back(e);
        for (const double e : exponents)
            s.update_steps.push_back(static_cast<std::int64_t>(std::llround(std::exp2(e - 3))));
        std::sort(s.update_steps.begin(), s.update_steps.end());
        s.update_steps.erase(std::unique(s.update_steps.begin(), s.update_steps.end()), s.update_steps.end());
    }
    return s;
}

}  // namespace master_weights
