// SPDX-License-Identifier: MIT
// master_weights: the real data, the updates that arrive and the losses that are reached, on several threads.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <numfmt/core/std.hpp>
#include <numfmt/io/safetensors.hpp>

#include "../support/files.hpp"
#include "../support/parallel.hpp"
#include "../support/progress.hpp"
#include "settings.hpp"

namespace master_weights {

/// Mean and standard deviation over the seeds.
struct summary {
    double mean = 0, deviation = 0;
};
inline summary summary_of(const std::vector<double>& x) {
    summary s;
    for (const double v : x) s.mean += v / static_cast<double>(x.size());
    for (const double v : x) s.deviation += (v - s.mean) * (v - s.mean);
    s.deviation = x.size() > 1 ? std::sqrt(s.deviation / static_cast<double>(x.size() - 1)) : 0;
    return s;
}

/// One store with one optimizer at one learning rate.
struct trained {
    std::vector<double> losses;               // by seed
    summary loss, excess, kept;               // excess: over the loss with fp32; kept: share of fp32's gain
    double median_ratio = 0, lost_share = 0;  // means over the seeds (of the ratio: geometric)
};
struct rate_results {
    double rate = 0;
    std::vector<trained> by_arm;
};
struct results {
    std::vector<std::vector<acc::update_arrival>> updates;  // by ratio, then by store
    std::int64_t samples = 0, inputs = 0, outputs = 0, weights = 0;
    std::vector<double> start;                            // losses at the start, by seed
    std::vector<std::vector<rate_results>> by_optimizer;  // as in the settings
};

/// Keys and values of layer 0 with a 1 behind them, and the first head's values of layer 3: one row for each token.
inline acc::regression_data read_data() {
    constexpr const char* name = "minilm_states.safetensors";
    const auto path = example::find_sample(name);
    if (path.empty()) throw std::runtime_error(fmt::format("cannot find the sample {}", name));
    auto opened = numfmt::io::safetensors_file::open(path);
    if (!opened) throw std::runtime_error(opened.error);
    acc::regression_data data;
    // Appends the first `take` columns of a tensor to the rows, each with mean 0 and deviation 1.
    const auto read = [&](const std::string& tensor, std::int64_t take) {
        const auto* const t = opened.value.find(tensor);
        if (t == nullptr || t->shape.size() != 2 || t->shape[1] < take ||
            (data.samples != 0 && t->shape[0] != data.samples))
            throw std::runtime_error(fmt::format("the sample has no {} of the wanted shape", tensor));
        data.samples = t->shape[0];
        std::vector<float> v(static_cast<std::size_t>(t->element_count()));
        if (const auto status = numfmt::io::read_as_float(*t, v); !status.ok()) throw std::runtime_error(status.error);
        const auto rows = static_cast<std::size_t>(data.samples), stride = static_cast<std::size_t>(t->shape[1]);
        std::vector<std::vector<float>> columns(static_cast<std::size_t>(take), std::vector<float>(rows));
        for (std::size_t c = 0; c < columns.size(); ++c) {
            std::vector<double> x(rows);
            for (std::size_t r = 0; r < rows; ++r) x[r] = static_cast<double>(v[r * stride + c]);
            const summary s = summary_of(x);
            for (std::size_t r = 0; r < rows; ++r) columns[c][r] = static_cast<float>((x[r] - s.mean) / s.deviation);
        }
        return columns;
    };
    const auto interleave = [&](const std::vector<std::vector<float>>& columns, std::vector<float>& out) {
        for (std::size_t r = 0; r < static_cast<std::size_t>(data.samples); ++r)
            for (const auto& column : columns) out.push_back(column[r]);
    };
    std::vector<std::vector<float>> inputs = read("encoder.layer.0.attention.self.key.output", 64);
    for (auto& column : read("encoder.layer.0.attention.self.value.output", 64)) inputs.push_back(std::move(column));
    inputs.emplace_back(static_cast<std::size_t>(data.samples), 1.0f);
    data.inputs = static_cast<std::int64_t>(inputs.size());
    interleave(inputs, data.x);
    data.outputs = 32;
    interleave(read("encoder.layer.3.attention.self.value.output", data.outputs), data.y);
    return data;
}

inline void measure_updates(const settings& s, results& r) {
    r.updates.assign(s.update_steps.size(), std::vector<acc::update_arrival>(s.stores.size()));
    std::uint64_t total = 0;
    for (const std::int64_t steps : s.update_steps) total += static_cast<std::uint64_t>(steps) * s.stores.size();
    example::progress_bar progress("updating", total);
    example::parallel_in_order(
        s.update_steps.size() * s.stores.size(), s.threads,
        [&](std::size_t i) {
            // The longest first.
            const std::int64_t steps = s.update_steps[s.update_steps.size() - 1 - i / s.stores.size()];
            acc::update_arrival a;
            const auto status =
                acc::measure_update_arrival(s.stores[i % s.stores.size()], steps, s.update_weights, s.seed, a);
            if (!status.ok()) throw std::runtime_error(numfmt::to_string(status));
            progress.advance(static_cast<std::uint64_t>(steps));
            return a;
        },
        [&](std::size_t i, const acc::update_arrival& a) {
            r.updates[s.update_steps.size() - 1 - i / s.stores.size()][i % s.stores.size()] = a;
        });
}

inline void measure_training(const settings& s, results& r) {
    const acc::regression_data data = read_data();
    acc::two_layer_network network(data.inputs, s.hidden, data.outputs);
    r.samples = data.samples;
    r.inputs = data.inputs;
    r.outputs = data.outputs;
    r.weights = network.weights();
    struct task {
        std::size_t optimizer, rate, arm;
        std::uint64_t seed;
    };
    std::vector<task> tasks;
    for (std::size_t o = 0; o < s.optimizers.size(); ++o) {
        const std::vector<double> rates = s.rates_of(s.optimizers[o]);
        const std::size_t arms = s.arms_of(s.optimizers[o]).size();
        r.by_optimizer.emplace_back();
        for (std::size_t i = 0; i < rates.size(); ++i) {
            r.by_optimizer[o].push_back({rates[i], std::vector<trained>(arms)});
            for (std::size_t a = 0; a < arms; ++a)
                for (int seed = 0; seed < s.seeds; ++seed) tasks.push_back({o, i, a, static_cast<std::uint64_t>(seed)});
        }
    }
    const auto count = static_cast<std::size_t>(s.seeds);
    example::progress_bar progress("training", tasks.size() * static_cast<std::uint64_t>(s.steps) +
                                                   count * static_cast<std::uint64_t>(s.start_steps));
    // Seeds of the initial weights, of the batches before the start and of those after it lie apart.
    const auto seed_of = [&](std::uint64_t seed, std::uint64_t use) {
        return s.seed * 0x9E3779B97F4A7C15u + 3 * seed + use;
    };
    std::vector<std::vector<float>> start(count);
    example::parallel_in_order(
        count, s.threads,
        [&](std::size_t i) {
            std::vector<float> w(static_cast<std::size_t>(network.weights()));
            network.initialise(seed_of(i, 0), w.data());
            acc::training_options o;
            o.rate = 3e-3;
            o.steps = s.start_steps;
            o.batch = s.batch;
            o.seed = seed_of(i, 1);
            w = acc::train(network, data, w.data(), o).model;
            for (float& x : w) x = numfmt::bf16(x);
            progress.advance(static_cast<std::uint64_t>(s.start_steps));
            return w;
        },
        [&](std::size_t i, std::vector<float> w) {
            r.start.push_back(network.loss(w.data(), data));
            start[i] = std::move(w);
        });
    example::parallel_in_order(
        tasks.size(), s.threads,
        [&](std::size_t i) {
            const task& t = tasks[i];
            const arm a = s.arms_of(s.optimizers[t.optimizer])[t.arm];
            acc::training_options o;
            o.store = a.store;
            o.optimizer = s.optimizer(s.optimizers[t.optimizer], a);
            o.rate = r.by_optimizer[t.optimizer][t.rate].rate;
            o.steps = s.steps;
            o.batch = s.batch;
            o.seed = seed_of(t.seed, 2);
            acc::training_result result = acc::train(network, data, start[t.seed].data(), o);
            result.model.clear();
            progress.advance(static_cast<std::uint64_t>(s.steps));
            return result;
        },
        [&](std::size_t i, const acc::training_result& result) {
            const task& t = tasks[i];
            trained& at = r.by_optimizer[t.optimizer][t.rate].by_arm[t.arm];
            at.losses.push_back(result.loss);
            at.median_ratio += std::log2(result.median_ratio) / s.seeds;
            at.lost_share += result.lost_share / s.seeds;
        });
    for (auto& rates : r.by_optimizer)
        for (rate_results& rate : rates)
            for (trained& at : rate.by_arm) {
                std::vector<double> excess, kept;
                for (std::size_t i = 0; i < count; ++i) {
                    const double reference = rate.by_arm[0].losses[i];
                    excess.push_back(at.losses[i] - reference);
                    kept.push_back((r.start[i] - at.losses[i]) / (r.start[i] - reference));
                }
                at.loss = summary_of(at.losses);
                at.excess = summary_of(excess);
                at.kept = summary_of(kept);
                at.median_ratio = std::exp2(at.median_ratio);
            }
}

inline results measure_all(const settings& s) {
    results r;
    if (!s.update_steps.empty()) measure_updates(s, r);
    if (!s.optimizers.empty()) measure_training(s, r);
    return r;
}

}  // namespace master_weights
