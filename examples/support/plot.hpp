// SPDX-License-Identifier: MIT
// Scatter plots with a label at every point, drawn by gnuplot through a pipe. Label places are chosen here, because
// gnuplot would print labels of neighbouring points over each other.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "files.hpp"

namespace example {

struct plot_point {
    double x = 0;
    double y = 0;  ///< > 0: the axis is logarithmic
    std::string label;
    std::size_t group = 0;  ///< index into plot_request::groups
};

struct plot_request {
    std::string title;
    std::string subtitle;
    std::string x_label;
    std::string y_label;
    std::string y_format = "%g";      ///< of the axis marks, as gnuplot takes it
    std::vector<std::string> groups;  ///< legend: each group has its own colour and mark
    std::vector<plot_point> points;
};

namespace detail {

// Pixels, y downwards.
struct box {
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;

    double overlap(const box& o) const {
        const double w = std::min(x1, o.x1) - std::max(x0, o.x0), h = std::min(y1, o.y1) - std::max(y0, o.y0);
        return w > 0 && h > 0 ? w * h : 0.0;
    }
};

struct placed_label {
    box area;
    std::array<double, 4> leader{};  // from the mark to the nearest place of the label
    double distance = 0;
};

inline bool segments_cross(const std::array<double, 4>& a, const std::array<double, 4>& b) {
    const auto side = [](const std::array<double, 4>& s, double x, double y) {
        return (s[2] - s[0]) * (y - s[1]) - (s[3] - s[1]) * (x - s[0]);
    };
    return side(a, b[0], b[1]) * side(a, b[2], b[3]) < 0 && side(b, a[0], a[1]) * side(b, a[2], a[3]) < 0;
}

// Length of the part of a segment inside a box, by sampling: good enough for a cost.
inline double inside(const std::array<double, 4>& s, const box& b) {
    const double length = std::hypot(s[2] - s[0], s[3] - s[1]);
    constexpr int steps = 16;
    int hits = 0;
    for (int i = 0; i <= steps; ++i) {
        const double t = static_cast<double>(i) / steps;
        const double x = s[0] + t * (s[2] - s[0]), y = s[1] + t * (s[3] - s[1]);
        hits += x > b.x0 && x < b.x1 && y > b.y0 && y < b.y1 ? 1 : 0;
    }
    return length * hits / (steps + 1);
}

// Labels near their points without overlaps as far as possible: every label in turn takes the cheapest of a few hundred
// places, several rounds over. Deterministic.
inline std::vector<placed_label> place_labels(const std::vector<std::array<double, 2>>& marks,
                                              const std::vector<double>& widths, double height, const box& area,
                                              const box& legend) {
    constexpr double mark = 6;  // half the size of a mark, and some air
    const std::size_t n = marks.size();
    std::vector<placed_label> labels(n);
    std::vector<bool> placed(n, false);
    constexpr std::array<double, 12> distances = {4, 12, 20, 30, 42, 56, 72, 90, 110, 132, 156, 184};
    constexpr int directions = 24;
    constexpr int rounds = 12;

    const auto candidate = [&](std::size_t i, double distance, int direction) {
        const double angle = 2 * 3.14159265358979 * direction / directions;
        const double dx = std::cos(angle), dy = std::sin(angle);
        // The label touches a circle around its mark: its centre is half its own size further out.
        const double cx = marks[i][0] + dx * (mark + distance + widths[i] / 2),
                     cy = marks[i][1] + dy * (mark + distance + height / 2);
        placed_label l;
        l.area = {cx - widths[i] / 2, cy - height / 2, cx + widths[i] / 2, cy + height / 2};
        l.leader = {marks[i][0], marks[i][1], std::clamp(marks[i][0], l.area.x0, l.area.x1),
                    std::clamp(marks[i][1], l.area.y0, l.area.y1)};
        l.distance = std::hypot(l.leader[2] - l.leader[0], l.leader[3] - l.leader[1]);
        return l;
    };
    const auto cost = [&](std::size_t i, const placed_label& l) {
        const auto outside = [&](const box& b) {
            return std::max(0.0, area.x0 - b.x0) + std::max(0.0, b.x1 - area.x1) + std::max(0.0, area.y0 - b.y0) +
                   std::max(0.0, b.y1 - area.y1);
        };
        double sum = l.distance + 200 * outside(l.area) + 5 * l.area.overlap(legend);
        for (std::size_t j = 0; j < n; ++j) {
            const box m = {marks[j][0] - mark, marks[j][1] - mark, marks[j][0] + mark, marks[j][1] + mark};
            sum += 20 * l.area.overlap(m);
            if (j != i) sum += 3 * inside(l.leader, m);
            if (j == i || !placed[j]) continue;
            const box padded = {l.area.x0 - 8, l.area.y0 - 2, l.area.x1 + 8, l.area.y1 + 2};
            sum += 20 * padded.overlap(labels[j].area) + 6 * inside(l.leader, labels[j].area) +
                   6 * inside(labels[j].leader, l.area) + (segments_cross(l.leader, labels[j].leader) ? 60 : 0);
        }
        return sum;
    };
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < n; ++i) {
            double best = std::numeric_limits<double>::infinity();
            placed_label chosen;
            for (const double distance : distances) {
                for (int direction = 0; direction < directions; ++direction) {
                    const placed_label l = candidate(i, distance, direction);
                    const double c = cost(i, l);
                    if (c < best) {
                        best = c;
                        chosen = l;
                    }
                }
            }
            labels[i] = chosen;
            placed[i] = true;
        }
    }
    return labels;
}

// A gnuplot string: between single quotes, a quote is doubled.
inline std::string gnuplot_string(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'') out += '\'';
        out += c == '\n' ? ' ' : c;
    }
    return out + "'";
}

}  // namespace detail

/// True for the file types that draw() can write: .svg and .png.
inline bool plot_type_known(const std::filesystem::path& path) {
    return path.extension() == ".svg" || path.extension() == ".png";
}

/// The gnuplot script of a plot, `path` ending in .svg or .png.
inline std::string plot_script(const plot_request& request, const std::filesystem::path& path) {
    using detail::gnuplot_string;
    constexpr double width = 1000, height = 760;
    constexpr detail::box area = {80, 70, 975, 690};  // the frame of the plot
    constexpr double char_width = 8.2, label_height = 16;

    double x0 = std::numeric_limits<double>::infinity(), x1 = -x0, y0 = x0, y1 = -x0;
    for (const plot_point& p : request.points) {
        x0 = std::min(x0, p.x);
        x1 = std::max(x1, p.x);
        y0 = std::min(y0, std::log10(p.y));
        y1 = std::max(y1, std::log10(p.y));
    }
    const double x_air = std::max((x1 - x0) * 0.08, 0.5), y_air = std::max((y1 - y0) * 0.1, 0.15);
    x0 -= x_air;
    x1 += x_air;
    y0 -= y_air;
    y1 += y_air;

    std::size_t longest = 0;
    for (const std::string& group : request.groups) longest = std::max(longest, group.size());
    const double legend_width = 50 + char_width * static_cast<double>(longest);
    const detail::box legend = {area.x1 - legend_width, area.y0, area.x1,
                                area.y0 + 24 + 20 * static_cast<double>(request.groups.size())};
    std::vector<std::array<double, 2>> marks;
    std::vector<double> widths;
    for (const plot_point& p : request.points) {
        marks.push_back({area.x0 + (p.x - x0) / (x1 - x0) * (area.x1 - area.x0),
                         area.y1 - (std::log10(p.y) - y0) / (y1 - y0) * (area.y1 - area.y0)});
        widths.push_back(char_width * static_cast<double>(p.label.size()));
    }
    const auto labels = detail::place_labels(marks, widths, label_height, area, legend);

    // Pixels as fractions of the canvas, y upwards.
    const auto at = [&](double x, double y) {
        return fmt::format("screen {:.5f}, screen {:.5f}", x / width, 1 - y / height);
    };
    std::string s;
    const auto line = [&](std::string text) { s += text + "\n"; };
    if (path.extension() == ".png") {
        line(fmt::format("set terminal pngcairo noenhanced size {},{} font 'sans,10.5'", width, height));
    } else {
        line(fmt::format("set terminal svg noenhanced size {},{} font 'DejaVu Sans,sans-serif,13' background 'white'",
                         width, height));
    }
    // An absolute path: gnuplot would run a name that begins with '|'.
    line("set output " + gnuplot_string(std::filesystem::absolute(path).string()));
    line(fmt::format("set lmargin at screen {:.5f}; set rmargin at screen {:.5f}", area.x0 / width, area.x1 / width));
    line(fmt::format("set tmargin at screen {:.5f}; set bmargin at screen {:.5f}", 1 - area.y0 / height,
                     1 - area.y1 / height));
    line("set label " + gnuplot_string(request.title) + " at " + at(area.x0, 24) + " left font ',15'");
    line("set label " + gnuplot_string(request.subtitle) + " at " + at(area.x0, 48) + " left textcolor rgb '#555555'");
    line("set xlabel " + gnuplot_string(request.x_label));
    line("set ylabel " + gnuplot_string(request.y_label) + " offset 1");
    line("set logscale y");
    line("set format y " + gnuplot_string(request.y_format));
    line(fmt::format("set xrange [{:.9g}:{:.9g}]; set yrange [{:.9g}:{:.9g}]", x0, x1, std::pow(10, y0),
                     std::pow(10, y1)));
    line("set xtics 1; set mytics 10; set tics scale 0.6");
    line(
        "set grid xtics ytics mytics linetype 1 linecolor rgb '#d0d0d0' linewidth 1, linetype 1 linecolor rgb "
        "'#e8e8e8' linewidth 1");
    line("set border linecolor rgb '#888888'");
    line("set key top right Left reverse samplen 1 spacing 1.2");
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const auto& l = labels[i];
        if (l.distance > 14) {
            line("set arrow from " + at(l.leader[0], l.leader[1]) + " to " + at(l.leader[2], l.leader[3]) +
                 " nohead linecolor rgb '#888888' linewidth 1 back");
        }
        line("set label " + gnuplot_string(request.points[i].label) + " at " +
             at((l.area.x0 + l.area.x1) / 2, (l.area.y0 + l.area.y1) / 2) + " center front");
    }

    static constexpr std::array<std::string_view, 6> colours = {"#0072b2", "#d55e00", "#009e73",
                                                                "#cc79a7", "#56b4e9", "#000000"};
    static constexpr std::array<int, 6> shapes = {7, 5, 9, 13, 11, 1};
    for (std::size_t g = 0; g < request.groups.size(); ++g) {
        line(fmt::format("$group{} << END_OF_DATA", g));
        for (const plot_point& p : request.points)
            if (p.group == g) line(fmt::format("{:.12g} {:.12g}", p.x, p.y));
        line("END_OF_DATA");
    }
    std::string plot;
    for (std::size_t g = 0; g < request.groups.size(); ++g) {
        if (std::none_of(request.points.begin(), request.points.end(), [&](const auto& p) { return p.group == g; }))
            continue;
        plot += fmt::format("{}$group{} using 1:2 with points pointtype {} pointsize 1.1 linecolor rgb '{}' title {}",
                            plot.empty() ? "plot " : ", ", g, shapes[g % shapes.size()], colours[g % colours.size()],
                            gnuplot_string(request.groups[g]));
    }
    line(plot);
    line("unset output");
    return s;
}

/// Runs a script that writes `path`; returns what went wrong, or an empty string. gnuplot writes its own messages to
/// stderr.
inline std::string run_gnuplot(const std::string& script, const std::filesystem::path& path) {
    std::error_code code;
    std::filesystem::remove(path, code);
#if defined(__unix__) || defined(__APPLE__)
    const auto previous = std::signal(SIGPIPE, SIG_IGN);  // gnuplot may end before it has read everything
    FILE* const pipe = ::popen("gnuplot", "w");
    if (pipe == nullptr) return "gnuplot could not be started";
    const bool written = std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
    const int status = ::pclose(pipe);
    std::signal(SIGPIPE, previous);
    if (!written || status != 0) return "gnuplot failed";
#else
    static_cast<void>(script);
#endif
    if (std::filesystem::file_size(path, code) == 0 || code) return "gnuplot wrote no file";
    return {};
}

/// Draws the plot; returns what went wrong, or an empty string.
inline std::string draw(const plot_request& request, const std::filesystem::path& path) {
    if (request.points.empty()) return "there is no point to plot";
    if (find_program("gnuplot").empty()) return "gnuplot is not installed (Debian, Ubuntu: apt install gnuplot-nox)";
    return run_gnuplot(plot_script(request, path), path);
}

}  // namespace example
