// SPDX-License-Identifier: MIT
// attention_error: tables, CSV, JSON and the plot.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "../support/line_plot.hpp"
#include "../support/table.hpp"
#include "measure.hpp"

namespace attention {

inline std::string describe(const settings& s, const std::string& scores) {
    const double log_odds = s.margin ? *s.margin : scores == "sink" ? 0.0 : -5.0;
    const double share = 100 / (1 + std::exp(-log_odds));
    if (scores == "gaussian") return "the mass on all keys";
    if (scores == "sink") return fmt::format("{} % of the mass on the first key", example::significant(share, 2));
    if (scores == "needle")
        return fmt::format("{} % of the mass on one key, the answer", example::significant(share, 2));
    if (scores == "passage")
        return fmt::format("{} % of the mass on {} % of the keys, all the answer", example::significant(share, 2),
                           example::significant(100 * s.problem.passage_share, 3));
    if (scores == "recency") return fmt::format("the mass on the last {} keys or so", s.problem.half_life);
    return "six real heads, head size 32";
}

inline std::string short_number(double x) { return std::isfinite(x) ? fmt::format("{:.1e}", x) : "inf"; }
inline std::string length_name(std::int64_t keys) {
    if (keys >= 1 << 20 && keys % (1 << 20) == 0) return fmt::format("{}M", keys >> 20);
    return keys >= 1024 && keys % 1024 == 0 ? fmt::format("{}K", keys >> 10) : std::to_string(keys);
}

inline void print_tables(const settings& s, const results& r) {
    for (std::size_t m = 0; m < r.size(); ++m) {
        const bool answer = s.scores[m] == "needle" || s.scores[m] == "passage";
        fmt::print("{}: {}\n\n", s.scores[m], describe(s, s.scores[m]));
        std::vector<std::pair<std::string, std::string>> headers = {
            {"cache", ""}, {"scale", ""}, {"per", ""}, {"P", ""}, {"accumulator", ""}};
        for (const cell& c : r[m]) headers.emplace_back(length_name(c.keys), "error");
        const std::string longest = length_name(r[m].back().keys);
        headers.emplace_back("mass", longest);
        headers.emplace_back("kept", longest);
        if (answer) {
            headers.emplace_back("hits", longest);
            headers.emplace_back("margin", longest);
        }
        example::text_table table(headers, 5);
        for (std::size_t i = 0; i < s.cases.size(); ++i) {
            const named_case& c = s.cases[i];
            std::vector<std::string> cells = {
                c.cache(), c.scale, c.per(), acc::name_of(c.what.policy.probabilities),
                c.kernel() + (c.what.splits > 1 ? fmt::format(", {} splits", c.what.splits) : "")};
            for (const cell& at : r[m]) cells.push_back(short_number(at.cases[i].all.relative_error()));
            const acc::attention_errors& last = r[m].back().cases[i].all;
            cells.push_back(short_number(last.mass_error()));
            cells.push_back(fmt::format("{:.4f}", last.mean_mass_kept()));
            if (answer) {
                cells.push_back(fmt::format("{:.2f}", last.hit_rate()));
                cells.push_back(fmt::format("{:.4f}", last.mean_margin()));
            }
            table.add(std::move(cells));
        }
        fmt::print("{}", table.str());
        if (answer)
            fmt::print("exact: hits {:.2f}, margin {:.4f} at {}\n", r[m].back().exact.hit_rate(),
                       r[m].back().exact.mean_margin(), longest);
        fmt::print("\n");

        bool any = false;
        example::text_table causes({{"with one cause switched off", ""},
                                    {"keys", ""},
                                    {"nothing off", "error"},
                                    {"rounding off", "error"},
                                    {"clipping off", "error"},
                                    {"accumulation off", "error"}});
        for (std::size_t i = 0; i < s.cases.size(); ++i)
            for (const cell& at : r[m]) {
                if (!s.cases[i].causes || (&at != &r[m].front() && &at != &r[m].back())) continue;
                any = true;
                const outcome& o = at.cases[i];
                causes.add({s.cases[i].label(), length_name(at.keys), short_number(o.all.relative_error()),
                            short_number(o.without_rounding.relative_error()),
                            short_number(o.without_clipping.relative_error()),
                            short_number(o.without_accumulation.relative_error())});
            }
        if (any) fmt::print("{}\n", causes.str());
    }
    fmt::print("head size {}, {} queries a head, {} head(s), tiles of {}, seed {}. What the columns mean: --help.\n",
               s.problem.head_size, s.problem.group, s.heads, s.tile, s.problem.seed);
}

inline nlohmann::ordered_json json_of(const settings& s, const results& r) {
    using json = nlohmann::ordered_json;
    const auto number = [](double x) { return std::isfinite(x) ? json(x) : json(); };
    json out;
    out["version"] = example::version();
    out["seed"] = s.problem.seed;
    out["head_size"] = s.problem.head_size;
    out["group"] = s.problem.group;
    out["heads"] = s.heads;
    out["head_spread"] = s.head_spread;
    out["tile"] = s.tile;
    out["scores"] = json::array();
    for (std::size_t m = 0; m < r.size(); ++m) {
        json model = {{"name", s.scores[m]}, {"text", describe(s, s.scores[m])}, {"lengths", json::array()}};
        for (const cell& at : r[m]) {
            json length = {{"keys", at.keys},
                           {"queries", at.exact.queries},
                           {"exact_hit_rate", at.exact.hit_rate()},
                           {"exact_margin", at.exact.mean_margin()},
                           {"rows", json::array()}};
            for (std::size_t i = 0; i < s.cases.size(); ++i) {
                const named_case& c = s.cases[i];
                const outcome& o = at.cases[i];
                json row = {{"cache", c.cache()},
                            {"bits", acc::bits_of(c.what.format)},
                            {"scale", c.scale},
                            {"per", c.per()},
                            {"query", acc::name_of(c.what.policy.query)},
                            {"p", acc::name_of(c.what.policy.probabilities)},
                            {"qk_accumulator", acc::name_of(c.what.policy.scores)},
                            {"accumulator", acc::name_of(c.what.policy.values)},
                            {"splits", c.what.splits},
                            {"error", number(o.all.relative_error())},
                            {"worst", number(o.all.worst)},
                            {"mass_error", o.all.mass_error()},
                            {"kept", o.all.mean_mass_kept()},
                            {"hit_rate", o.all.hit_rate()},
                            {"margin", o.all.mean_margin()},
                            {"not_finite", o.all.not_finite}};
                if (c.causes) {
                    row["without_rounding"] = number(o.without_rounding.relative_error());
                    row["without_clipping"] = number(o.without_clipping.relative_error());
                    row["without_accumulation"] = number(o.without_accumulation.relative_error());
                }
                length["rows"].push_back(std::move(row));
            }
            model["lengths"].push_back(std::move(length));
        }
        out["scores"].push_back(std::move(model));
    }
    return out;
}

inline void write_csv(const settings& s, const results& r) {
    std::string text = example::csv_line({"scores",
                                          "keys",
                                          "queries",
                                          "cache",
                                          "scale",
                                          "per",
                                          "query",
                                          "p",
                                          "qk_accumulator",
                                          "accumulator",
                                          "splits",
                                          "error",
                                          "worst",
                                          "mass_error",
                                          "kept",
                                          "hit_rate",
                                          "margin",
                                          "not_finite",
                                          "without_rounding",
                                          "without_clipping",
                                          "without_accumulation"});
    for (std::size_t m = 0; m < r.size(); ++m)
        for (const cell& at : r[m])
            for (std::size_t i = 0; i < s.cases.size(); ++i) {
                const named_case& c = s.cases[i];
                const outcome& o = at.cases[i];
                const auto cause = [&](const acc::attention_errors& e) {
                    return c.causes ? example::csv_number(e.relative_error()) : std::string();
                };
                text += example::csv_line({s.scores[m],
                                           std::to_string(at.keys),
                                           std::to_string(at.exact.queries),
                                           c.cache(),
                                           c.scale,
                                           c.per(),
                                           acc::name_of(c.what.policy.query),
                                           acc::name_of(c.what.policy.probabilities),
                                           acc::name_of(c.what.policy.scores),
                                           acc::name_of(c.what.policy.values),
                                           std::to_string(c.what.splits),
                                           example::csv_number(o.all.relative_error()),
                                           example::csv_number(o.all.worst),
                                           example::csv_number(o.all.mass_error()),
                                           example::csv_number(o.all.mean_mass_kept()),
                                           example::csv_number(o.all.hit_rate()),
                                           example::csv_number(o.all.mean_margin()),
                                           std::to_string(o.all.not_finite),
                                           cause(o.without_rounding),
                                           cause(o.without_clipping),
                                           cause(o.without_accumulation)});
            }
    example::write_csv_file(s.csv, text);
}

inline void write_plot(const settings& s, const results& r) {
    example::line_plot_request plot;
    plot.title = "Relative error of attention's output against the number of keys";
    plot.subtitle = "dashed: what the fp8 tensor core's chain cannot exceed, and half a step of e4m3";
    plot.x_label = "keys";
    plot.y_label = "relative error";
    for (std::size_t m = 0; m < r.size(); ++m) {
        example::panel p;
        p.title = s.scores[m] + ": " + describe(s, s.scores[m]);
        for (std::size_t i = 0; i < s.cases.size(); ++i) {
            example::curve c{s.cases[i].label(), {}, false};
            for (const cell& at : r[m])
                c.points.emplace_back(static_cast<double>(at.keys), at.cases[i].all.relative_error());
            p.curves.push_back(std::move(c));
        }
        const auto bound = [&](const char* label, auto f) {
            example::curve c{label, {}, true};
            for (const cell& at : r[m])
                c.points.emplace_back(static_cast<double>(at.keys), f(static_cast<double>(at.keys)));
            p.curves.push_back(std::move(c));
        };
        // Of every group of 32 the 33 terms and the result lose less than 2^-13 of the largest: at most everything.
        bound("keys/32 x 34 x 2^-13", [](double n) { return std::fmin(std::ceil(n / 32) * 34 * 0x1p-13, 1.0); });
        bound("2^-4", [](double) { return 0x1p-4; });
        plot.panels.push_back(std::move(p));
    }
    if (const std::string error = example::draw(plot, s.plot); !error.empty())
        throw std::runtime_error("--plot: " + error);
}

}  // namespace attention
