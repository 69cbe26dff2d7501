// SPDX-License-Identifier: MIT
// Panels of curves over a logarithmic axis with logarithmic errors, drawn by gnuplot through a pipe.
#pragma once

#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "plot.hpp"

namespace example {

struct curve {
    std::string label;
    std::vector<std::pair<double, double>> points;  ///< (x, y); points with y <= 0 or not finite are left out
    bool is_bound = false;                          ///< dashed and grey
};

struct panel {
    std::string title;
    std::vector<curve> curves;
};

/// Where the ticks stand: 128, 1024, 8192 ... as plain numbers; 1, 10, 100 ... as powers of ten; or 0, 1, 2 ... on an
/// axis that is not logarithmic.
enum class x_axis { powers_of_two, decades, linear };

struct line_plot_request {
    std::string title, subtitle, x_label, y_label;
    std::vector<panel> panels;  ///< two in a row; curves with one label look the same in all of them
    x_axis axis = x_axis::powers_of_two;
};

/// The gnuplot script of a plot, `path` ending in .svg or .png. One legend for all panels stands on the right.
inline std::string line_plot_script(const line_plot_request& request, const std::filesystem::path& path) {
    using detail::gnuplot_string;
    const std::size_t columns = request.panels.size() > 1 ? 2 : 1,
                      rows = (request.panels.size() + columns - 1) / columns;
    std::vector<std::pair<std::string, bool>> labels;  // of the legend, in order of appearance
    for (const panel& p : request.panels)
        for (const curve& c : p.curves) {
            bool known = false;
            for (const auto& [label, bound] : labels) known = known || label == c.label;
            if (!known) labels.emplace_back(c.label, c.is_bound);
        }
    // gnuplot drops the end of a legend that does not fit.
    const double width = 1320, height = std::fmax(130 + 380 * static_cast<double>(rows),
                                                  190 + 23 * static_cast<double>(labels.size()));
    static constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                              "#56b4e9", "#e69f00", "#7f3c8d", "#000000"};
    static constexpr const char* greys[] = {"#606060", "#909090", "#b0b0b0", "#404040"};
    const auto style = [&](const std::string& label) {
        std::size_t curves = 0, bounds = 0;
        for (const auto& [l, bound] : labels) {
            if (l == label)
                return bound ? fmt::format("lines dashtype {} linewidth 2 linecolor rgb '{}'", 2 + bounds % 4,
                                           greys[bounds % 4])
                             : fmt::format(
                                   "linespoints dashtype 1 linewidth 1.5 pointtype {} pointsize 0.7 linecolor rgb '{}'",
                                   5 + 2 * (curves / 8), colours[curves % 8]);
            ++(bound ? bounds : curves);
        }
        return std::string("lines");
    };

    std::string s;
    const auto line = [&](const std::string& text) { s += text + "\n"; };
    if (path.extension() == ".png")
        line(fmt::format("set terminal pngcairo noenhanced size {},{} font 'sans,10.5'", width, height));
    else
        line(fmt::format("set terminal svg noenhanced size {},{} font 'DejaVu Sans,sans-serif,13' background 'white'",
                         width, height));
    line("set output " + gnuplot_string(std::filesystem::absolute(path).string()));
    for (std::size_t p = 0; p < request.panels.size(); ++p) {
        for (std::size_t c = 0; c < request.panels[p].curves.size(); ++c) {
            line(fmt::format("$curve{}x{} << END_OF_DATA", p, c));
            for (const auto& [x, y] : request.panels[p].curves[c].points)
                if (std::isfinite(y) && y > 0) line(fmt::format("{:.12g} {:.12g}", x, y));
            line("END_OF_DATA");
        }
    }
    line("set multiplot");
    line("set label 1 " + gnuplot_string(request.title) +
         fmt::format(" at screen 0.05, screen {:.4f} left font ',15'", 1 - 26 / height));
    line("set label 2 " + gnuplot_string(request.subtitle) +
         fmt::format(" at screen 0.05, screen {:.4f} left textcolor rgb '#555555'", 1 - 50 / height));
    line("set logscale y 10; set format y '%g'; set mytics 1");
    if (request.axis == x_axis::powers_of_two)
        line("set logscale x 2; set format x '%.0f'; set xtics 128, 8; set mxtics 1");
    else if (request.axis == x_axis::decades)
        line("set logscale x 10; set format x '%g'; set xtics autofreq; set mxtics 1");
    line("set grid xtics ytics linecolor rgb '#e0e0e0'; set border linecolor rgb '#888888'; set key off");
    line("set xlabel " + gnuplot_string(request.x_label) + " offset 0,0.5");
    line("set ylabel " + gnuplot_string(request.y_label) + " offset 1");
    const double right = 0.745, left = 0.06, gap = 0.075;
    const double panel_width = (right - left - gap * static_cast<double>(columns - 1)) / static_cast<double>(columns);
    const double top = 1 - 90 / height, bottom = 75 / height, row_gap = 100 / height;
    const double panel_height = (top - bottom - row_gap * static_cast<double>(rows - 1)) / static_cast<double>(rows);
    for (std::size_t p = 0; p < request.panels.size(); ++p) {
        const double x0 = left + (panel_width + gap) * static_cast<double>(p % columns);
        const double y1 = top - (panel_height + row_gap) * static_cast<double>(p / columns);
        line(fmt::format(
            "set lmargin at screen {:.5f}; set rmargin at screen {:.5f}; set tmargin at screen {:.5f}; set bmargin at "
            "screen {:.5f}",
            x0, x0 + panel_width, y1, y1 - panel_height));
        line("set title " + gnuplot_string(request.panels[p].title) + " offset 0,-0.5");
        std::string plot;
        for (std::size_t c = 0; c < request.panels[p].curves.size(); ++c) {
            const curve& drawn = request.panels[p].curves[c];
            bool any = false;
            for (const auto& [x, y] : drawn.points) any = any || (std::isfinite(y) && y > 0);
            if (any)
                plot += fmt::format("{}$curve{}x{} using 1:2 with {}", plot.empty() ? "plot " : ", ", p, c,
                                    style(drawn.label));
        }
        if (!plot.empty()) line(plot);
        if (p == 0) line("unset label 1; unset label 2");
    }
    // The legend: a plot of nothing in the margin.
    line(fmt::format(
        "set lmargin at screen {:.5f}; set rmargin at screen 0.99; set tmargin at screen {:.5f}; set bmargin at screen "
        "{:.5f}",
        right + 0.02, top, bottom));
    line("unset logscale; unset title; unset xlabel; unset ylabel; unset tics; unset border; unset grid");
    line(
        "set key at graph 0, graph 1 left top Left reverse samplen 2 spacing 1.15; set xrange [0:1]; set yrange [0:1]");
    std::string legend;
    for (const auto& [label, bound] : labels)
        legend +=
            fmt::format("{}2 with {} title {}", legend.empty() ? "plot " : ", ", style(label), gnuplot_string(label));
    line(legend);
    line("unset multiplot");
    line("unset output");
    return s;
}

/// Draws the plot; returns what went wrong, or an empty string.
inline std::string draw(const line_plot_request& request, const std::filesystem::path& path) {
    if (find_program("gnuplot").empty()) return "gnuplot is not installed (Debian, Ubuntu: apt install gnuplot-nox)";
    return run_gnuplot(line_plot_script(request, path), path);
}

}  // namespace example
