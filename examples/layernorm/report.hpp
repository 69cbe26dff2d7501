// SPDX-License-Identifier: MIT
// layernorm_error: results as tables, JSON, CSV and a picture.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "../support/line_plot.hpp"
#include "../support/program.hpp"
#include "../support/table.hpp"
#include "measure.hpp"

namespace layernorm {

inline std::string name_of(const method& m) {
    return fmt::format("{}, {}", acc::name_of(m.formula), acc::name_of(m.sums));
}
inline std::string mean_text(double mean) { return mean < 0 ? "never" : example::significant(mean, 3); }
inline std::string output_text(const acc::layernorm_errors& e) {
    return e.nan_rows > 0 ? "nan" : fmt::format("{:.3g}", e.worst_ulp);
}
inline std::string variance_text(const acc::layernorm_errors& e) {
    if (e.rows == 0) return "constant";
    std::string text = e.finite > 0 ? fmt::format("{:.1e}", e.worst) : std::string("nan");
    if (e.lost > 0) text += fmt::format(" lost {:.0f}%", 100 * e.share_lost());
    return text;
}

/// With all methods a table is too long to read: without single chains in narrow formats and what equals another line.
inline bool in_tables(const settings& s, const method& m) {
    using enum sum_accumulator;
    return s.methods.size() <= 16 || m.sums == bf16_lanes || m.sums == fp32 || m.sums == fp32_lanes ||
           m.sums == double_sums || m.sums == double_precision;
}

inline void print_verdicts(const settings& s, const results& r, row_format input) {
    bool any = false;
    example::text_table table({{"change", ""},
                               {"verdict", ""},
                               {"right before", "to mean/dev"},
                               {"after", ""},
                               {"output before", "ulp"},
                               {"after", ""},
                               {"at", "mean/dev"}},
                              2);
    for (const verdict& v : r.verdicts) {
        if (v.input != input) continue;
        any = true;
        table.add({v.what->text, v.text(), mean_text(v.before_until), mean_text(v.after_until), output_text(v.before),
                   output_text(v.after), mean_text(v.at)});
    }
    if (any)
        fmt::print("{} rows, {} output, all widths: right is within {} units of the last place and no row lost\n\n{}\n",
                   acc::name_of(input), acc::name_of(s.output), s.limit, table.str());
}

inline void print_synthetic(const settings& s, const results& r, row_format input) {
    // One width stands for all; the CSV and the JSON have the others.
    const std::int64_t width = s.widths[s.widths.size() / 2];
    fmt::print(
        "{} rows of {}: largest error of the variance, relative / of the {} output, in units of the last place\n\n",
        acc::name_of(input), width, acc::name_of(s.output));
    std::vector<std::pair<std::string, std::string>> headers = {{"variance", ""}, {"sums", ""}};
    for (const double mean : s.means) headers.emplace_back(mean_text(mean), "mean/dev");
    example::text_table table(std::move(headers), 2);
    for (std::size_t m = 0; m < s.methods.size(); ++m) {
        if (!in_tables(s, s.methods[m])) continue;
        std::vector<std::string> cells = {acc::name_of(s.methods[m].formula), acc::name_of(s.methods[m].sums)};
        for (const double mean : s.means)
            for (const cell& at : r.cells) {
                if (at.source != "synthetic" || at.input != input || at.width != width || at.mean != mean) continue;
                const auto& e = at.methods[m];
                cells.push_back(e.rows == 0 ? "constant" : fmt::format("{} / {}", variance_text(e), output_text(e)));
            }
        table.add(std::move(cells));
    }
    fmt::print("{}\n", table.str());
}

inline void print_real(const settings& s, const results& r, row_format input) {
    example::text_table table({{"variance", ""}, {"sums", ""}, {"variance error", ""}, {"output", "ulp"}}, 2);
    double largest_mean = 0;
    std::int64_t tensors = 0;
    std::vector<acc::layernorm_errors> all(s.methods.size());
    for (const cell& at : r.cells) {
        if (at.source == "synthetic" || at.input != input) continue;
        ++tensors;
        largest_mean = std::fmax(largest_mean, at.mean);
        for (std::size_t m = 0; m < s.methods.size(); ++m) all[m].merge(at.methods[m]);
    }
    for (std::size_t m = 0; m < s.methods.size(); ++m)
        if (in_tables(s, s.methods[m]))
            table.add({acc::name_of(s.methods[m].formula), acc::name_of(s.methods[m].sums), variance_text(all[m]),
                       output_text(all[m])});
    fmt::print(
        "{} rows that enter {} layer normalisations of the sample (mean/deviation up to {:.2f}, eps 1e-12), {} "
        "output\n\n{}\n",
        acc::name_of(input), tensors, largest_mean, acc::name_of(s.output), table.str());
}

inline void print_tables(const settings& s, const results& r) {
    for (const row_format input : s.inputs) {
        if (!s.means.empty()) print_synthetic(s, r, input);
        if (s.real) print_real(s, r, input);
        if (!s.means.empty()) print_verdicts(s, r, input);
    }
    fmt::print("seed {}. What the columns mean: --help.\n", s.seed);
}

inline nlohmann::ordered_json json_number(double x) {
    return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json(nullptr);
}
inline nlohmann::ordered_json json_errors(const acc::layernorm_errors& e) {
    return {{"rows", e.rows},
            {"constant", e.constant},
            {"lost", e.lost},
            {"nan_rows", e.nan_rows},
            {"variance_worst", json_number(e.finite > 0 ? e.worst : std::nan(""))},
            {"variance_rms", json_number(e.finite > 0 ? e.variance_rms() : std::nan(""))},
            {"output_worst_ulp", json_number(e.elements > 0 ? e.worst_ulp : std::nan(""))},
            {"output_rms_ulp", json_number(e.elements > 0 ? e.ulp_rms() : std::nan(""))}};
}

inline nlohmann::ordered_json json_of(const settings& s, const results& r) {
    nlohmann::ordered_json out;
    out["program"] = "layernorm_error";
    out["version"] = example::version();
    out["seed"] = s.seed;
    out["output"] = acc::name_of(s.output);
    out["limit_ulp"] = s.limit;
    out["cells"] = nlohmann::ordered_json::array();
    for (const cell& at : r.cells) {
        nlohmann::ordered_json c = {{"source", at.source},
                                    {"input", acc::name_of(at.input)},
                                    {"width", at.width},
                                    {"mean_over_deviation", at.mean},
                                    {"methods", nlohmann::ordered_json::array()}};
        for (std::size_t m = 0; m < s.methods.size(); ++m) {
            nlohmann::ordered_json one = {{"formula", acc::name_of(s.methods[m].formula)},
                                          {"sums", acc::name_of(s.methods[m].sums)}};
            one.update(json_errors(at.methods[m]));
            c["methods"].push_back(std::move(one));
        }
        out["cells"].push_back(std::move(c));
    }
    out["verdicts"] = nlohmann::ordered_json::array();
    for (const verdict& v : r.verdicts)
        out["verdicts"].push_back({{"change", v.what->text},
                                   {"input", acc::name_of(v.input)},
                                   {"verdict", v.text()},
                                   {"before_right_until", v.before_until < 0 ? nlohmann::ordered_json(nullptr)
                                                                             : nlohmann::ordered_json(v.before_until)},
                                   {"after_right_until", v.after_until < 0 ? nlohmann::ordered_json(nullptr)
                                                                           : nlohmann::ordered_json(v.after_until)},
                                   {"at", v.at},
                                   {"before", json_errors(v.before)},
                                   {"after", json_errors(v.after)}});
    return out;
}

inline void write_csv(const settings& s, const results& r) {
    std::string text = example::csv_line({"source", "input", "output", "width", "mean_over_deviation", "formula",
                                          "sums", "rows", "constant", "lost", "nan_rows", "variance_worst",
                                          "variance_rms", "output_worst_ulp", "output_rms_ulp"});
    for (const cell& at : r.cells)
        for (std::size_t m = 0; m < s.methods.size(); ++m) {
            const auto& e = at.methods[m];
            const auto counted = [](std::int64_t n, double x) {
                return n > 0 ? example::csv_number(x) : std::string();
            };
            text += example::csv_line(
                {at.source, acc::name_of(at.input), acc::name_of(s.output), std::to_string(at.width),
                 example::csv_number(at.mean), acc::name_of(s.methods[m].formula), acc::name_of(s.methods[m].sums),
                 std::to_string(e.rows), std::to_string(e.constant), std::to_string(e.lost), std::to_string(e.nan_rows),
                 counted(e.finite, e.worst), counted(e.finite, e.variance_rms()), counted(e.elements, e.worst_ulp),
                 counted(e.elements, e.ulp_rms())});
        }
    example::write_csv_file(s.csv, text);
}

/// Error of the variance against mean/deviation, one panel per format of the rows, at the middle width.
inline void write_plot(const settings& s, const results& r) {
    const std::int64_t width = s.widths[s.widths.size() / 2];
    example::line_plot_request plot;
    plot.title = fmt::format("Largest relative error of the variance, rows of {}", width);
    plot.subtitle = "dashed: the bounds of one chain in fp32; 1 and more: nothing of it is right";
    plot.x_label = "mean / deviation";
    plot.y_label = "relative error";
    plot.axis = example::x_axis::decades;
    const bool many = s.methods.size() > 12;
    for (const row_format input : s.inputs) {
        example::panel p;
        p.title = fmt::format("stored in {}", acc::name_of(input));
        const auto draw = [&](std::string label, bool bound, auto value) {
            example::curve c{std::move(label), {}, bound};
            for (const cell& at : r.cells)
                if (at.source == "synthetic" && at.input == input && at.width == width && at.mean > 0 &&
                    at.methods[0].rows > 0)
                    if (const double y = value(at); y > 0 && std::isfinite(y)) c.points.emplace_back(at.mean, y);
            p.curves.push_back(std::move(c));
        };
        for (std::size_t m = 0; m < s.methods.size(); ++m) {
            const method& how = s.methods[m];
            const bool shown =
                (how.sums == sum_accumulator::fp32_lanes && how.formula != variance_formula::one_pass_clamped &&
                 how.formula != variance_formula::mean_square) ||
                how == method{variance_formula::two_pass, sum_accumulator::bf16_lanes} ||
                how == method{variance_formula::one_pass, sum_accumulator::double_sums};
            if (many && !shown) continue;
            draw(name_of(how), false,
                 [m](const cell& at) { return at.methods[m].finite > 0 ? at.methods[m].worst : 0; });
        }
        const auto bound = [&](const char* label, variance_formula f) {
            draw(label, true, [&, f](const cell& at) {
                return acc::variance_bound(f, static_cast<double>(width), std::sqrt(1 + at.mean * at.mean));
            });
        };
        bound("one pass: n kappa^2 u", variance_formula::one_pass);
        bound("two passes: n u + n^2 kappa^2 u^2", variance_formula::two_pass);
        bound("Welford: n kappa u", variance_formula::welford);
        plot.panels.push_back(std::move(p));
    }
    if (const std::string error = example::draw(plot, s.plot); !error.empty())
        throw std::runtime_error("--plot: " + error);
}

}  // namespace layernorm
