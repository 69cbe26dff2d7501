// SPDX-License-Identifier: MIT
// accumulation_error: tables, CSV, JSON and the plot.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "../support/files.hpp"
#include "../support/line_plot.hpp"
#include "../support/table.hpp"
#include "measure.hpp"

namespace accumulation {

inline std::string describe(const settings& s, const std::string& data) {
    if (data == "zero_mean") return "normal, mean 0";
    if (data == "positive") return "uniform over [0, 1)";
    if (data == "ill_conditioned") return fmt::format("condition number near {}", example::significant(s.condition));
    return "real weights and activations";
}

/// Columns of the table: at most seven of the Ks, the first and the last among them.
inline std::vector<std::size_t> table_columns(std::size_t count) {
    std::vector<std::size_t> columns;
    const std::size_t shown = std::min<std::size_t>(count, 7);
    for (std::size_t i = 0; i < shown; ++i) columns.push_back(shown > 1 ? i * (count - 1) / (shown - 1) : 0);
    return columns;
}
inline std::string short_number(double x) {
    return std::isfinite(x) ? (x == 0 ? "0" : fmt::format("{:.1e}", x)) : "inf";
}
inline std::string k_name(std::int64_t k) {
    return (k & (k - 1)) == 0 ? fmt::format("K = 2^{}", std::ilogb(static_cast<double>(k))) : fmt::format("K = {}", k);
}

inline void print_tables(const settings& s, const std::vector<accumulator>& accumulators, const results& r) {
    for (std::size_t d = 0; d < s.data.size(); ++d) {
        const std::vector<std::size_t> columns = table_columns(r[d].size());
        const cell& last = r[d].back();
        fmt::print("{}: {}; condition number {} to {}\n", s.data[d], describe(s, s.data[d]),
                   example::significant(r[d].front().condition()), example::significant(last.condition()));
        std::vector<std::pair<std::string, std::string>> headers = {{"accumulator", ""}};
        for (std::size_t i = 0; i < columns.size(); ++i)
            headers.emplace_back(k_name(r[d][columns[i]].k), i == 0 ? "relative error" : "");
        headers.insert(headers.end(),
                       {{"bias", "at the last K"}, {"backward", "error there"}, {"expected", ""}, {"bound", ""}});
        example::text_table table(std::move(headers));
        for (std::size_t a = 0; a < accumulators.size(); ++a) {
            std::vector<std::string> cells = {accumulators[a].name};
            for (const std::size_t i : columns) cells.push_back(short_number(r[d][i].relative_error(a)));
            const auto n = static_cast<double>(last.k);
            cells.push_back(std::isfinite(last.bias(a)) ? fmt::format("{:+.1e}", last.bias(a)) : "-");
            cells.push_back(short_number(last.backward_error(a)));
            cells.push_back(short_number(accumulators[a].expected.value(n)));
            cells.push_back(short_number(accumulators[a].worst.value(n)));
            table.add(std::move(cells));
        }
        // The textbook bounds of the backward error, u = 2^-24.
        const auto bound_row = [&](const char* name, auto f) {
            std::vector<std::string> cells = {name};
            for (const std::size_t i : columns) cells.push_back(short_number(f(static_cast<double>(r[d][i].k))));
            table.add(std::move(cells));
        };
        bound_row("(n u)", [](double n) { return n * 0x1p-24; });
        bound_row("(sqrt(n) u)", [](double n) { return std::sqrt(n) * 0x1p-24; });
        bound_row("(log2(n) u)", [](double n) { return std::log2(n) * 0x1p-24; });
        fmt::print("{}\n", table.str());
    }
    fmt::print("numbers in {}, seed {}, {} to {} dot products per K; u = 2^-24. What the columns mean: --help.\n",
               s.input, s.seed, s.trials_at(s.k.back()), s.trials_at(s.k.front()));
}

inline nlohmann::ordered_json json_of(const settings& s, const std::vector<accumulator>& accumulators,
                                      const results& r) {
    using json = nlohmann::ordered_json;
    const auto number = [](double x) { return std::isfinite(x) ? json(x) : json(); };
    json out;
    out["version"] = example::version();
    out["input"] = s.input;
    out["seed"] = s.seed;
    out["accumulators"] = json::array();
    for (const accumulator& a : accumulators)
        out["accumulators"].push_back({{"name", a.name},
                                       {"text", a.text},
                                       {"group", a.group},
                                       {"bound", a.worst.formula},
                                       {"expected", a.expected.formula}});
    out["data"] = json::array();
    for (std::size_t d = 0; d < s.data.size(); ++d) {
        json set = {{"name", s.data[d]}, {"text", describe(s, s.data[d])}, {"k", json::array()}};
        for (const cell& c : r[d]) {
            const auto n = static_cast<double>(c.k);
            json at = {{"k", c.k},
                       {"trials", c.trials},
                       {"condition", c.condition()},
                       {"n_u", n * 0x1p-24},
                       {"sqrt_n_u", std::sqrt(n) * 0x1p-24},
                       {"log2_n_u", std::log2(n) * 0x1p-24}};
            at["rows"] = json::array();
            for (std::size_t a = 0; a < accumulators.size(); ++a)
                at["rows"].push_back({{"accumulator", accumulators[a].name},
                                      {"relative_error", number(c.relative_error(a))},
                                      {"bias", number(c.bias(a))},
                                      {"backward_error", number(c.backward_error(a))},
                                      {"expected", accumulators[a].expected.value(n)},
                                      {"bound", accumulators[a].worst.value(n)},
                                      {"correctly_rounded", c.correctly_rounded(a)},
                                      {"not_finite", c.by_accumulator[a].overflows}});
            set["k"].push_back(std::move(at));
        }
        out["data"].push_back(std::move(set));
    }
    return out;
}

inline void write_csv(const settings& s, const std::vector<accumulator>& accumulators, const results& r) {
    std::string text = example::csv_line({"data", "k", "trials", "condition", "accumulator", "relative_error", "bias",
                                          "backward_error", "expected", "bound", "correctly_rounded", "not_finite"});
    for (std::size_t d = 0; d < s.data.size(); ++d)
        for (const cell& c : r[d])
            for (std::size_t a = 0; a < accumulators.size(); ++a) {
                const auto n = static_cast<double>(c.k);
                text += example::csv_line(
                    {s.data[d], std::to_string(c.k), std::to_string(c.trials), example::csv_number(c.condition()),
                     accumulators[a].name, example::csv_number(c.relative_error(a)), example::csv_number(c.bias(a)),
                     example::csv_number(c.backward_error(a)), example::csv_number(accumulators[a].expected.value(n)),
                     example::csv_number(accumulators[a].worst.value(n)), example::csv_number(c.correctly_rounded(a)),
                     std::to_string(c.by_accumulator[a].overflows)});
            }
    example::write_csv_file(s.csv, text);
}

inline void write_plot(const settings& s, const std::vector<accumulator>& accumulators, const results& r) {
    example::line_plot_request plot;
    plot.title = "Largest |error| / sum |x y| against the number of terms";
    plot.subtitle =
        fmt::format("numbers in {}; dashed: a-priori bounds with u = 2^-24; exact results are not shown", s.input);
    plot.x_label = "number of terms K";
    plot.y_label = "backward error";
    for (std::size_t d = 0; d < s.data.size(); ++d) {
        example::panel p;
        p.title = s.data[d] + ": " + describe(s, s.data[d]);
        for (std::size_t a = 0; a < accumulators.size(); ++a) {
            example::curve c{accumulators[a].name, {}, false};
            for (const cell& at : r[d]) c.points.emplace_back(static_cast<double>(at.k), at.backward_error(a));
            p.curves.push_back(std::move(c));
        }
        const auto bound_curve = [&](const char* label, auto f) {
            example::curve c{label, {}, true};
            for (const cell& at : r[d]) c.points.emplace_back(static_cast<double>(at.k), f(static_cast<double>(at.k)));
            p.curves.push_back(std::move(c));
        };
        bound_curve("n u", [](double n) { return n * 0x1p-24; });
        bound_curve("sqrt(n) u", [](double n) { return std::sqrt(n) * 0x1p-24; });
        bound_curve("log2(n) u", [](double n) { return std::log2(n) * 0x1p-24; });
        plot.panels.push_back(std::move(p));
    }
    if (const std::string error = example::draw(plot, s.plot); !error.empty())
        throw std::runtime_error("--plot: " + error);
}

}  // namespace accumulation
