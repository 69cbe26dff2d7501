// SPDX-License-Identifier: MIT
// layernorm_error: the rows, the errors of every method on them on several threads, and the verdicts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <numfmt/accuracy/inputs.hpp>
#include <numfmt/io/safetensors.hpp>

#include "../support/files.hpp"
#include "../support/parallel.hpp"
#include "../support/progress.hpp"
#include "settings.hpp"

namespace layernorm {

/// Rows of one kind in one format, and the errors of every method on them.
struct cell {
    std::string source;  ///< "synthetic", or a tensor's name
    row_format input = row_format::fp32;
    std::int64_t width = 0;
    double mean = 0;  ///< over the deviation; of real rows what was found, root mean square
    std::vector<acc::layernorm_errors> methods;
};

struct verdict {
    const change* what = nullptr;
    row_format input = row_format::fp32;
    /// The largest mean/deviation up to which the method was right at all widths, -1 for none; and the worst errors at
    /// the first mean where the two differ in that (or at the largest of all).
    double before_until = -1, after_until = -1, at = 0;
    acc::layernorm_errors before, after;
    double cure_until = 0;  ///< how far the best known cure is right: two passes in fp32, for RMS fp32 sums
    const char* text() const {
        if (after_until > before_until) return after_until >= cure_until ? "correctness fix" : "only postpones it";
        return after_until < before_until ? "breaks it" : "changes nothing";
    }
};

struct results {
    std::vector<cell> cells;
    std::vector<verdict> verdicts;
};

struct real_rows {
    std::string name;
    std::int64_t width = 0;
    std::vector<float> x;
};

inline std::vector<real_rows> read_rows() {
    constexpr const char* file_name = "minilm_states.safetensors";
    const auto path = example::find_sample(file_name);
    if (path.empty()) throw std::runtime_error(fmt::format("cannot find the sample {}", file_name));
    auto opened = numfmt::io::safetensors_file::open(path);
    if (!opened) throw std::runtime_error(opened.error);
    std::vector<real_rows> all;
    for (const auto& t : opened.value.tensors()) {
        const std::string suffix = ".LayerNorm.input";
        if (t.name.size() < suffix.size() || t.name.substr(t.name.size() - suffix.size()) != suffix) continue;
        real_rows rows{t.name.substr(0, t.name.size() - 6), t.shape[1], {}};
        rows.x.resize(static_cast<std::size_t>(t.element_count()));
        if (const auto status = numfmt::io::read_as_float(t, rows.x); !status.ok())
            throw std::runtime_error(status.error);
        all.push_back(std::move(rows));
    }
    if (all.empty()) throw std::runtime_error("the sample has no rows that enter a LayerNorm");
    return all;
}

/// Element i of row `row`: (normal + mean) * scale, rounded to `input`; the scale is 1 or the power of two that keeps
/// the largest numbers of E4M3 and fp16 out of reach.
inline double synthetic_scale(double mean) { return std::exp2(std::fmin(std::floor(std::log2(256 / (mean + 8))), 0)); }
inline void make_row(const settings& s, row_format input, double mean, std::int64_t row, std::vector<float>& x) {
    const auto n = static_cast<std::int64_t>(x.size());
    numfmt::accuracy::fill(acc::distribution::gaussian, s.seed, static_cast<std::uint64_t>(row * n), x.data(), n);
    const double scale = synthetic_scale(mean);
    for (float& v : x) v = acc::rounded_to_format(input, static_cast<float>((static_cast<double>(v) + mean) * scale));
}

inline void measure_row(const settings& s, const std::vector<float>& x, double eps,
                        std::vector<acc::layernorm_errors>& e, double& squared_mean) {
    const auto n = static_cast<std::int64_t>(x.size());
    const acc::moments centred = acc::exact_moments(true, x.data(), n), raw = acc::exact_moments(false, x.data(), n);
    if (centred.variance > 0) squared_mean += centred.mean * centred.mean / centred.variance;
    for (std::size_t m = 0; m < s.methods.size(); ++m) {
        const method& how = s.methods[m];
        acc::add_row(e[m], how.formula, how.sums, x.data(), n,
                     how.formula == variance_formula::mean_square ? raw : centred, eps, s.output);
    }
}

inline std::vector<verdict> judge(const settings& s, const std::vector<cell>& cells) {
    std::vector<verdict> verdicts;
    for (const row_format input : s.inputs) {
        for (const change& c : all_changes()) {
            const auto index = [&](const method& m) {
                return std::find(s.methods.begin(), s.methods.end(), m) - s.methods.begin();
            };
            const auto b = static_cast<std::size_t>(index(c.before)), a = static_cast<std::size_t>(index(c.after));
            if (b == s.methods.size() || a == s.methods.size()) continue;
            const auto cure = static_cast<std::size_t>(
                index({c.after.formula == variance_formula::mean_square ? c.after.formula : variance_formula::two_pass,
                       sum_accumulator::fp32_lanes}));
            verdict v;
            v.what = &c;
            v.input = input;
            bool cure_right = cure < s.methods.size(), before_right = true, after_right = true, differ = false;
            for (const double mean : s.means) {
                acc::layernorm_errors before, after, cured;
                for (const cell& at : cells) {
                    if (at.input != input || at.mean != mean || at.source != "synthetic") continue;
                    before.merge(at.methods[b]);
                    after.merge(at.methods[a]);
                    if (cure_right) cured.merge(at.methods[cure]);
                }
                if (before.rows == 0) continue;  // constant rows only
                if (!differ) {
                    v.at = mean;
                    v.before = before;
                    v.after = after;
                    differ = before.correct(s.limit) != after.correct(s.limit);
                }
                before_right = before_right && before.correct(s.limit);
                after_right = after_right && after.correct(s.limit);
                cure_right = cure_right && cured.correct(s.limit);
                if (cure_right) v.cure_until = mean;
                if (before_right) v.before_until = mean;
                if (after_right) v.after_until = mean;
            }
            verdicts.push_back(v);
        }
    }
    return verdicts;
}

inline results measure_all(const settings& s) {
    std::vector<real_rows> real;
    if (s.real) real = read_rows();
    results r;
    // A task is one row, or one tensor, of a cell.
    struct task {
        std::size_t cell;
        std::int64_t row;
        const real_rows* rows;
    };
    std::vector<task> tasks;
    std::uint64_t total = 0;
    const auto add_cell = [&](std::string source, row_format input, std::int64_t width, double mean) {
        r.cells.push_back({std::move(source), input, width, mean, {}});
        r.cells.back().methods.resize(s.methods.size());
    };
    for (const row_format input : s.inputs) {
        for (const double mean : s.means)
            for (const std::int64_t width : s.widths) {
                add_cell("synthetic", input, width, mean);
                for (std::int64_t row = 0; row < s.rows_at(width); ++row)
                    tasks.push_back({r.cells.size() - 1, row, nullptr});
                total += static_cast<std::uint64_t>(s.rows_at(width) * width);
            }
        for (const real_rows& rows : real) {
            add_cell(rows.name, input, rows.width, 0);
            tasks.push_back({r.cells.size() - 1, 0, &rows});
            total += rows.x.size();
        }
    }
    example::progress_bar progress("measuring", total);
    example::parallel_in_order(
        tasks.size(), s.threads,
        [&](std::size_t i) {
            const task& t = tasks[i];
            const cell& at = r.cells[t.cell];
            std::pair<std::vector<acc::layernorm_errors>, double> part;
            part.first.resize(s.methods.size());
            std::vector<float> x(static_cast<std::size_t>(at.width));
            double squared_mean = 0;
            if (t.rows == nullptr) {
                const double scale = synthetic_scale(at.mean);
                make_row(s, at.input, at.mean, t.row, x);
                measure_row(s, x, 1e-5 * scale * scale, part.first, squared_mean);
                progress.advance(static_cast<std::uint64_t>(at.width));
            } else {
                const std::int64_t rows = static_cast<std::int64_t>(t.rows->x.size()) / at.width;
                for (std::int64_t row = 0; row < rows; ++row) {
                    for (std::size_t c = 0; c < x.size(); ++c)
                        x[c] =
                            acc::rounded_to_format(at.input, t.rows->x[static_cast<std::size_t>(row * at.width) + c]);
                    measure_row(s, x, 1e-12, part.first, squared_mean);
                }
                part.second = std::sqrt(squared_mean / static_cast<double>(rows));
                progress.advance(t.rows->x.size());
            }
            return part;
        },
        [&](std::size_t i, const std::pair<std::vector<acc::layernorm_errors>, double>& part) {
            cell& at = r.cells[tasks[i].cell];
            for (std::size_t m = 0; m < s.methods.size(); ++m) at.methods[m].merge(part.first[m]);
            if (tasks[i].rows != nullptr) at.mean = part.second;
        });
    r.verdicts = judge(s, r.cells);
    return r;
}

}  // namespace layernorm
