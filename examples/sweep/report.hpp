// SPDX-License-Identifier: MIT
// error_sweep: tables, CSV, JSON and the plot.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "../support/files.hpp"
#include "../support/plot.hpp"
#include "../support/table.hpp"
#include "measure.hpp"

namespace sweep {

inline std::string percent(double share) { return example::significant(100 * share); }

inline std::string table_of(const std::vector<row>& rows, const measurements& results) {
    const bool products = std::any_of(results.begin(), results.end(), [](const auto& m) { return m.has_product(); });
    const bool lost = std::any_of(results.begin(), results.end(), [](const auto& m) { return m.error.lost > 0; });
    const bool replaced =
        std::any_of(results.begin(), results.end(), [](const auto& m) { return m.error.replaced > 0; });
    const bool ruled = std::any_of(rows.begin(), rows.end(), [](const row& r) { return r.rule.has_value(); });
    std::vector<std::pair<std::string, std::string>> headers = {{"scheme", ""}};
    if (ruled) headers.emplace_back("scale rule", "");
    const std::size_t left = headers.size();
    headers.insert(headers.end(), {{"bits/weight", "bit"},
                                   {"SQNR", "dB"},
                                   {"rms error", "%"},
                                   {"max error", "%"},
                                   {"clipped", "%"},
                                   {"flushed", "%"}});
    if (products) headers.emplace_back("W x error", "%");
    if (lost) headers.emplace_back("lost", "weights");
    if (replaced) headers.emplace_back("replaced", "weights");
    example::text_table table(std::move(headers), left);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const measurement& m = results[i];
        std::vector<std::string> cells = {rows[i].scheme};
        if (ruled) cells.push_back(rows[i].rule_name());
        cells.push_back(fmt::format("{:.5f}", rows[i].bits));
        const bool compared = m.error.compared() > 0, exact = m.error.noise() == 0;
        cells.push_back(!compared ? "-" : exact ? "exact" : fmt::format("{:.2f}", m.error.sqnr_db()));
        cells.push_back(compared ? percent(m.error.relative_rms()) : "-");
        cells.push_back(compared ? percent(m.error.max_relative()) : "-");
        cells.push_back(percent(m.error.share_clipped()));
        cells.push_back(percent(m.error.share_flushed()));
        if (products) cells.push_back(m.has_product() ? percent(m.product_error()) : "-");
        if (lost) cells.push_back(example::with_commas(m.error.lost));
        if (replaced) cells.push_back(example::with_commas(m.error.replaced));
        table.add(std::move(cells));
    }
    return table.str();
}

inline std::string describe(const weight& w, const error_metrics& error) {
    std::string text = fmt::format("{}  [{}] {}", example::printable(w.name), fmt::join(w.shape, ", "), w.type);
    if (w.input != nullptr) text += fmt::format(", activations [{}]", fmt::join(w.input->shape, ", "));
    if (error.nan + error.infinite > 0) text += fmt::format("; {} NaN, {} Inf", error.nan, error.infinite);
    return text;
}

inline void print_tables(const settings& s, const workload& work, const std::vector<row>& rows,
                         const std::vector<measurements>& results, const measurements& total) {
    const bool several = results.size() > 1;
    if (!s.summary || !several) {
        for (std::size_t i = 0; i < results.size(); ++i)
            fmt::print("{}\n{}\n", describe(work.weights[i], results[i][0].error), table_of(rows, results[i]));
    }
    if (several) {
        const auto layers =
            std::count_if(work.weights.begin(), work.weights.end(), [](const weight& w) { return w.input != nullptr; });
        const error_metrics& error = total[0].error;
        std::string text =
            fmt::format("total  {} tensors, {} weights", results.size(), example::with_commas(error.count));
        if (layers > 0) text += fmt::format(", activations for {} of them", layers);
        if (error.nan + error.infinite > 0) text += fmt::format("; {} NaN, {} Inf", error.nan, error.infinite);
        fmt::print("{}\n{}\n", text, table_of(rows, total));
    }
    std::string options = fmt::format("rounding {}, nonfinite {}", name_of(roundings, s.round),
                                      name_of(nonfinite_rules, s.options.nonfinite));
    if (std::any_of(rows.begin(), rows.end(), [](const row& r) { return r.has_zero_point; }))
        options += fmt::format(", int4 range {}", name_of(int4_ranges, s.options.int4_range));
    if (std::any_of(rows.begin(), rows.end(), [](const row& r) { return r.is_symmetric_int4; }))
        options += fmt::format(", symmetric int4 {}", name_of(int4_symmetric_ranges, s.options.int4_symmetric_range));
    fmt::print("{}; {}.\nWhat the columns mean: --help.\n", example::printable(work.title), options);
}

/// The numbers of one row in the order of CSV columns and JSON keys. Not finite: JSON null, an empty CSV field.
struct named_number {
    const char* name;
    double value;
    bool is_count;
};
inline std::vector<named_number> numbers_of(const row& r, const measurement& m) {
    const error_metrics& e = m.error;
    const auto count = [](const char* name, std::int64_t n) {
        return named_number{name, static_cast<double>(n), true};
    };
    return {{"bits_per_weight", r.bits, false},
            {"stored_bits_per_weight", m.stored_bits_per_weight(), false},
            {"sqnr_db", e.sqnr_db(), false},
            {"relative_rms_error", e.relative_rms(), false},
            {"max_relative_error", e.max_relative(), false},
            {"share_clipped", e.share_clipped(), false},
            {"share_flushed", e.share_flushed(), false},
            {"wx_relative_error", m.product_error(), false},
            count("weights", e.count),
            count("nan", e.nan),
            count("infinite", e.infinite),
            count("lost", e.lost),
            count("replaced", e.replaced),
            count("clipped", e.clipped),
            count("flushed", e.flushed)};
}

inline void write_csv(const settings& s, const workload& work, const std::vector<row>& rows,
                      const std::vector<measurements>& results, const measurements& total) {
    std::vector<std::string> header = {"tensor", "type", "shape", "scheme", "scale_rule", "rounding"};
    for (const auto& n : numbers_of(rows[0], total[0])) header.emplace_back(n.name);
    std::string text = example::csv_line(header);
    const auto add = [&](const std::string& name, const std::string& type, const std::string& shape,
                         const measurements& values) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            std::vector<std::string> cells = {name,
                                              type,
                                              shape,
                                              rows[i].scheme,
                                              rows[i].rule ? rows[i].rule_name() : "",
                                              name_of(roundings, s.round)};
            for (const auto& n : numbers_of(rows[i], values[i]))
                cells.push_back(n.is_count ? fmt::format("{:.0f}", n.value) : example::csv_number(n.value));
            text += example::csv_line(cells);
        }
    };
    for (std::size_t i = 0; i < results.size(); ++i) {
        const weight& w = work.weights[i];
        add(w.name, w.type, fmt::format("{}", fmt::join(w.shape, "x")), results[i]);
    }
    add("total", "", "", total);
    example::write_csv_file(s.csv, text);
}

inline nlohmann::ordered_json json_of(const settings& s, const workload& work, const std::vector<row>& rows,
                                      const std::vector<measurements>& results, const measurements& total) {
    using json = nlohmann::ordered_json;
    const auto schemes = [&](const measurements& values) {
        json list = json::array();
        for (std::size_t i = 0; i < rows.size(); ++i) {
            json entry = {{"scheme", rows[i].scheme}};
            entry["scale_rule"] = rows[i].rule ? json(rows[i].rule_name()) : json();
            for (const auto& n : numbers_of(rows[i], values[i])) {
                if (n.is_count)
                    entry[n.name] = static_cast<std::int64_t>(n.value);
                else
                    entry[n.name] = std::isfinite(n.value) ? json(n.value) : json();
            }
            list.push_back(std::move(entry));
        }
        return list;
    };
    json out;
    out["source"] = work.title;
    out["version"] = example::version();
    out["rounding"] = name_of(roundings, s.round);
    out["nonfinite"] = name_of(nonfinite_rules, s.options.nonfinite);
    out["int4_range"] = name_of(int4_ranges, s.options.int4_range);
    out["int4_symmetric_range"] = name_of(int4_symmetric_ranges, s.options.int4_symmetric_range);
    out["schemes"] = schemes(total);
    out["tensors"] = json::array();
    for (std::size_t i = 0; i < results.size(); ++i) {
        const weight& w = work.weights[i];
        json entry = {{"name", w.name}, {"type", w.type}, {"shape", w.shape}};
        entry["activations"] = w.input != nullptr ? json(w.input->shape) : json();
        entry["schemes"] = schemes(results[i]);
        out["tensors"].push_back(std::move(entry));
    }
    out["skipped"] = json::array();
    for (const auto& t : work.skipped) out["skipped"].push_back({{"name", t.name}, {"why", t.why}});
    out["notes"] = work.notes;
    return out;
}

inline void write_plot(const settings& s, const workload& work, const std::vector<row>& rows,
                       const measurements& total) {
    const bool products = total[0].has_product();
    example::plot_request plot;
    plot.title = products ? "Error of W x against size" : "Error of the weights against size";
    plot.x_label = "bits per weight";
    plot.y_label = products ? "relative error of W x" : "relative rms error of the weights";
    plot.y_format = "%g %%";
    plot.groups.assign(std::begin(plot_groups), std::end(plot_groups));
    std::string exact;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double error = products ? total[i].product_error() : total[i].error.relative_rms();
        std::string label = rows[i].scheme;
        if (rows[i].rule && s.rules.size() > 1) label += " (" + rows[i].rule_name() + ")";
        if (std::isfinite(error) && error > 0)
            plot.points.push_back({rows[i].bits, 100 * error, label, rows[i].group});
        else
            exact += (exact.empty() ? "" : ", ") + label;
    }
    std::string name = std::filesystem::path(work.title).filename().string();
    plot.subtitle = fmt::format("{}: {} weights; rounding {}", example::printable(name, 80),
                                example::with_commas(total[0].error.count), name_of(roundings, s.round));
    if (s.rules.size() == 1 && std::any_of(rows.begin(), rows.end(), [](const row& r) { return r.rule.has_value(); }))
        plot.subtitle += fmt::format(", scale rule {}", name_of(scale_rules, s.rules[0]));
    if (!exact.empty()) plot.subtitle += "; not shown, without error: " + exact;
    if (const std::string error = example::draw(plot, s.plot); !error.empty())
        throw std::runtime_error("--plot: " + error);
}

}  // namespace sweep
