// SPDX-License-Identifier: MIT
// attention_error: every case on every problem, on several threads.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../support/parallel.hpp"
#include "../support/progress.hpp"
#include "settings.hpp"
#include "sources.hpp"

namespace attention {

/// One case at one length: its error, and what is left of it with one cause switched off (where it was asked for).
struct outcome {
    acc::attention_errors all, without_rounding, without_clipping, without_accumulation;
    void merge(const outcome& o) {
        all.merge(o.all);
        without_rounding.merge(o.without_rounding);
        without_clipping.merge(o.without_clipping);
        without_accumulation.merge(o.without_accumulation);
    }
};
/// One score model at one length: by case, and the exact result's hits and margin.
struct cell {
    std::int64_t keys = 0;
    std::vector<outcome> cases;
    acc::attention_errors exact;
};
using results = std::vector<std::vector<cell>>;  // by score model, then by length

/// The amplitude of head h: the first has 1, the last 1 / head_spread, evenly on a logarithmic scale.
inline double amplitude(const settings& s, int h) {
    return s.heads > 1 ? std::pow(s.head_spread, -static_cast<double>(h) / (s.heads - 1)) : 1.0;
}

inline acc::attention_problem problem_of(const settings& s, const std::string& scores, std::int64_t keys,
                                         std::int64_t trial, int head) {
    acc::attention_problem p = s.problem;
    p.model = value_of<acc::score_model>(score_names(), scores);
    p.keys = keys;
    p.seed = s.problem.seed * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(trial);
    p.head = static_cast<std::uint64_t>(head);
    p.amplitude = amplitude(s, head);
    p.margin = s.margin ? *s.margin : p.model == acc::score_model::sink ? 0.0 : -5.0;
    return p;
}

inline results measure_all(const settings& s) {
    std::vector<real_head> heads;
    if (s.has("real")) heads = read_heads();
    // The cases and, behind each that wants them, its three switched-off companions.
    std::vector<acc::attention_case> cases;
    bool per_tensor = false;
    for (const named_case& c : s.cases) {
        cases.push_back(c.what);
        per_tensor = per_tensor || (has_float_scale(c.what.format) && c.what.granularity == scale_granularity::tensor);
        if (!c.causes) continue;
        cases.push_back(c.what.without_rounding());
        cases.push_back(c.what.without_clipping());
        cases.push_back(c.what.without_accumulation());
    }
    for (const acc::attention_case& c : cases)
        if (const numfmt::status status = c.check(); !status.ok()) {
            char text[200];
            numfmt::message(status, text, sizeof text);
            refuse("{}", text);
        }

    struct task {
        std::size_t scores, length;
        std::int64_t trial;
        int head;
    };
    std::vector<task> tasks;
    results r(s.scores.size());
    std::uint64_t total = 0;
    for (std::size_t m = 0; m < s.scores.size(); ++m) {
        for (std::size_t i = 0; i < s.keys.size(); ++i) {
            cell c;
            c.keys = s.keys[i];
            c.cases.resize(s.cases.size());
            r[m].push_back(std::move(c));
        }
        // The longest first: the last thread to finish then has little left to do.
        for (std::size_t i = s.keys.size(); i-- > 0;)
            for (std::int64_t t = 0; t < s.trials_at(s.keys[i]); ++t)
                for (int h = 0; h < s.heads; ++h) {
                    tasks.push_back({m, i, t, h});
                    total += static_cast<std::uint64_t>(s.keys[i]);
                }
    }
    example::progress_bar bar("attention", total);
    const auto advance = [&](std::int64_t n) { bar.advance(static_cast<std::uint64_t>(n)); };
    const auto run = [&](const auto& source, const acc::kv_amax& amax) {
        std::vector<acc::attention_errors> errors;
        if (const numfmt::status status = acc::measure_attention(source, cases, amax, s.tile, errors, advance);
            !status.ok())
            throw std::logic_error("a case that was checked was refused");
        return errors;
    };
    const auto work = [&](std::size_t i) {
        const task& t = tasks[i];
        const std::string& scores = s.scores[t.scores];
        const std::int64_t keys = s.keys[t.length];
        if (scores == "real") {
            const auto head = static_cast<std::size_t>(t.trial * s.heads + t.head) % heads.size();
            const real_source source(
                heads[head], keys, s.problem.group,
                s.problem.seed + static_cast<std::uint64_t>(t.trial) * 64 + static_cast<std::uint64_t>(t.head));
            acc::kv_amax amax = acc::calibrate(source);
            for (const real_head& other : heads) amax.widen(acc::calibrate(real_source(other, keys, 1, 0)));
            return run(source, amax);
        }
        const acc::attention_source source(problem_of(s, scores, keys, t.trial, t.head));
        acc::kv_amax amax = acc::calibrate(source);
        for (int h = 0; per_tensor && h < s.heads; ++h)
            if (h != t.head) amax.widen(acc::calibrate(acc::attention_source(problem_of(s, scores, keys, t.trial, h))));
        return run(source, amax);
    };
    const auto merge = [&](std::size_t i, std::vector<acc::attention_errors> errors) {
        cell& c = r[tasks[i].scores][tasks[i].length];
        std::size_t at = 0;
        for (std::size_t k = 0; k < s.cases.size(); ++k) {
            c.cases[k].all.merge(errors[at++]);
            if (!s.cases[k].causes) continue;
            c.cases[k].without_rounding.merge(errors[at++]);
            c.cases[k].without_clipping.merge(errors[at++]);
            c.cases[k].without_accumulation.merge(errors[at++]);
        }
        c.exact.merge(errors[at]);
    };
    example::parallel_in_order(tasks.size(), s.threads, work, merge);
    return r;
}

}  // namespace attention
