// SPDX-License-Identifier: MIT
// accumulation_error: the data, and the errors of every accumulator on them, on several threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <numfmt/accumulate/exact.hpp>
#include <numfmt/accuracy/inputs.hpp>
#include <numfmt/io/safetensors.hpp>

#include "../support/files.hpp"
#include "../support/parallel.hpp"
#include "../support/progress.hpp"
#include "settings.hpp"

namespace accumulation {

/// A layer of the sample: weight [rows][cols], input [tokens][cols], both scaled by a power of two that takes their
/// largest number to [8, 16): well inside E4M3, and no sum of fp16 overflows at once.
struct layer {
    std::int64_t rows = 0, tokens = 0, cols = 0;
    std::vector<float> weight, input;
};

inline std::vector<layer> read_layers() {
    constexpr const char* name = "minilm_sample.safetensors";
    const auto path = example::find_sample(name);
    if (path.empty()) throw std::runtime_error(fmt::format("cannot find the sample {}", name));
    auto opened = numfmt::io::safetensors_file::open(path);
    if (!opened) throw std::runtime_error(opened.error);
    const numfmt::io::safetensors_file& file = opened.value;
    const auto read = [](const numfmt::io::safetensor& t) {
        std::vector<float> v(static_cast<std::size_t>(t.element_count()));
        if (const auto status = numfmt::io::read_as_float(t, v); !status.ok()) throw std::runtime_error(status.error);
        float largest = 0;
        for (const float x : v) largest = std::max(largest, std::fabs(x));
        for (float& x : v) x = std::ldexp(x, 3 - std::ilogb(largest));
        return v;
    };
    std::vector<layer> layers;
    for (const auto& t : file.tensors()) {
        const std::string suffix = ".weight";
        if (t.name.size() < suffix.size() || t.name.substr(t.name.size() - suffix.size()) != suffix) continue;
        const auto* const input = file.find(t.name.substr(0, t.name.size() - suffix.size()) + ".input");
        if (input == nullptr) continue;
        layers.push_back({t.shape[0], input->shape[0], t.shape[1], read(t), read(*input)});
    }
    if (layers.empty()) throw std::runtime_error("the sample has no layer with its input");
    return layers;
}

/// What one accumulator did in some trials of one K. Parts merge.
struct measurement {
    double noise = 0, bias = 0, backward = 0;
    std::int64_t overflows = 0, correct = 0;

    void merge(const measurement& o) {
        noise += o.noise;
        bias += o.bias;
        backward = std::max(backward, o.backward);
        overflows += o.overflows;
        correct += o.correct;
    }
};
/// One K of one data set.
struct cell {
    std::int64_t k = 0, trials = 0;
    double signal = 0, log_condition = 0;
    std::vector<measurement> by_accumulator;

    void merge(const cell& o) {
        signal += o.signal;
        log_condition += o.log_condition;
        for (std::size_t i = 0; i < by_accumulator.size(); ++i) by_accumulator[i].merge(o.by_accumulator[i]);
    }
    /// Results that are not finite would make every figure infinite: they are counted, and the rest measured.
    std::int64_t measured(std::size_t a) const { return trials - by_accumulator[a].overflows; }
    double relative_error(std::size_t a) const {
        if (by_accumulator[a].overflows > 0) return std::numeric_limits<double>::infinity();
        return std::sqrt(by_accumulator[a].noise / signal);
    }
    double bias(std::size_t a) const {
        if (by_accumulator[a].overflows > 0) return std::numeric_limits<double>::quiet_NaN();
        return by_accumulator[a].bias / static_cast<double>(trials);
    }
    double backward_error(std::size_t a) const {
        return by_accumulator[a].overflows > 0 ? std::numeric_limits<double>::infinity() : by_accumulator[a].backward;
    }
    double correctly_rounded(std::size_t a) const {
        return static_cast<double>(by_accumulator[a].correct) / static_cast<double>(trials);
    }
    /// Geometric mean over the trials.
    double condition() const { return std::exp(log_condition / static_cast<double>(trials)); }
};

using results = std::vector<std::vector<cell>>;  // by data set, then by K

template <class Format> void round_to(operands& o) {
    const auto round = [](std::vector<float>& v, std::vector<na::tensor_core_operand>& out) {
        out.resize(v.size());
        for (std::size_t i = 0; i < v.size(); ++i) {
            const Format f(v[i]);
            v[i] = f;
            out[i] = na::to_operand<Format>(f.bits());
        }
    };
    round(o.x, o.a);
    round(o.y, o.b);
}

/// The numbers of one trial.
inline void make(const settings& s, const std::string& data, std::int64_t k, std::int64_t trial,
                 const std::vector<layer>& layers, operands& o) {
    using numfmt::accuracy::distribution;
    const auto n = static_cast<std::size_t>(k);
    o.x.resize(n);
    o.y.resize(n);
    // Trials of one K are consecutive parts of one stream, so that a trial depends on seed, K and its number alone.
    const auto first = static_cast<std::uint64_t>(2 * trial) * static_cast<std::uint64_t>(k);
    if (data == "zero_mean") {
        numfmt::accuracy::fill(distribution::gaussian, s.seed, first, o.x.data(), k);
        numfmt::accuracy::fill(distribution::gaussian, s.seed, first + n, o.y.data(), k);
    } else if (data == "positive") {
        const double sigma = 1 / std::sqrt(12.0);
        numfmt::accuracy::fill(distribution::uniform, s.seed, first, o.x.data(), k, sigma);
        numfmt::accuracy::fill(distribution::uniform, s.seed, first + n, o.y.data(), k, sigma);
        for (auto* v : {&o.x, &o.y})
            for (float& x : *v) x += 0.5f;
    } else if (data == "ill_conditioned") {
        const std::uint64_t seed = s.seed * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(trial) + 1;
        numfmt::accuracy::ill_conditioned(seed, k, s.condition, o.x.data(), o.y.data());
    } else {
        // Pairs of a token and a row, one after the other, from a place that depends on the trial.
        const layer& l = layers[static_cast<std::size_t>(trial) % layers.size()];
        const std::int64_t pairs = l.tokens * l.rows;
        const std::uint32_t draw = numfmt::random_word(s.seed, static_cast<std::uint64_t>(trial));
        const std::int64_t start = static_cast<std::int64_t>(draw) % pairs;
        for (std::int64_t i = 0; i < k; ++i) {
            const std::int64_t pair = (start + i / l.cols) % pairs, col = i % l.cols;
            o.x[static_cast<std::size_t>(i)] = l.input[static_cast<std::size_t>(pair % l.tokens * l.cols + col)];
            o.y[static_cast<std::size_t>(i)] = l.weight[static_cast<std::size_t>(pair / l.tokens * l.cols + col)];
        }
    }
    switch (s.format()) {
        case input_format::e4m3:
            return round_to<numfmt::fp8_e4m3>(o);
        case input_format::bf16:
            return round_to<numfmt::bf16>(o);
        case input_format::fp16:
            return round_to<numfmt::fp16>(o);
    }
}

inline void measure_one(const operands& o, const std::vector<accumulator>& accumulators, cell& out) {
    na::exact_sum sum;
    double absolute = 0;
    for (std::size_t i = 0; i < o.x.size(); ++i) {
        sum.add_product(o.x[i], o.y[i]);
        absolute += std::fabs(static_cast<double>(o.x[i]) * static_cast<double>(o.y[i]));
    }
    const double exact = sum.value();
    const float rounded = sum.value_as_float();
    out.signal += exact * exact;
    out.log_condition += std::log(exact != 0 ? 2 * absolute / std::fabs(exact) : 1e300);
    for (std::size_t a = 0; a < accumulators.size(); ++a) {
        measurement& m = out.by_accumulator[a];
        const float d = accumulators[a].dot(o);
        if (!std::isfinite(d)) {
            ++m.overflows;
            continue;
        }
        const double error = static_cast<double>(d) - exact;
        m.noise += error * error;
        m.bias += exact != 0 ? error / std::fabs(exact) : 0;
        if (absolute > 0) m.backward = std::max(m.backward, std::fabs(error) / absolute);
        m.correct += d == rounded ? 1 : 0;
    }
}

inline results measure_all(const settings& s, const std::vector<accumulator>& accumulators) {
    std::vector<layer> layers;
    if (std::find(s.data.begin(), s.data.end(), "activations") != s.data.end()) layers = read_layers();
    // A task is some trials of one cell: about a quarter of a million products.
    struct task {
        std::size_t data, k;
        std::int64_t first, count;
    };
    std::vector<task> tasks;
    std::uint64_t total = 0;
    results r(s.data.size());
    for (std::size_t d = 0; d < s.data.size(); ++d) {
        for (std::size_t i = 0; i < s.k.size(); ++i) {
            const std::int64_t trials = s.trials_at(s.k[i]);
            const std::int64_t at_once = std::max<std::int64_t>((std::int64_t{1} << 18) / s.k[i], 1);
            for (std::int64_t t = 0; t < trials; t += at_once)
                tasks.push_back({d, i, t, std::min(at_once, trials - t)});
            total += static_cast<std::uint64_t>(trials * s.k[i]);
            cell c;
            c.k = s.k[i];
            c.trials = trials;
            c.by_accumulator.resize(accumulators.size());
            r[d].push_back(std::move(c));
        }
    }
    example::progress_bar progress("measuring", total);
    example::parallel_in_order(
        tasks.size(), s.threads,
        [&](std::size_t i) {
            const task& t = tasks[i];
            cell part;
            part.by_accumulator.resize(accumulators.size());
            operands o;
            for (std::int64_t n = 0; n < t.count; ++n) {
                make(s, s.data[t.data], s.k[t.k], t.first + n, layers, o);
                measure_one(o, accumulators, part);
                progress.advance(static_cast<std::uint64_t>(s.k[t.k]));
            }
            return part;
        },
        [&](std::size_t i, const cell& part) { r[tasks[i].data][tasks[i].k].merge(part); });
    return r;
}

}  // namespace accumulation
