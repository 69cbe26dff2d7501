// SPDX-License-Identifier: MIT
// Prints every format and scheme as a table made from their descriptors, and keeps the tables in documents up to date.
#include <fmt/format.h>
#include <numfmt/numfmt.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace numfmt;
using row = std::vector<std::string>;

std::string number(double v) {
    // Exact for everything in the tables: six digits where they suffice, else all of them.
    const std::string brief = fmt::format("{:.6g}", v);
    return std::stod(brief) == v ? brief : fmt::format("{:.9g}", v);
}

std::string specials(const float_spec& s) {
    switch (s.specials) {
        case special_values::ieee:
            return "Inf, NaN";
        case special_values::fn:
            return "NaN";
        case special_values::fnuz:
            return "NaN, no -0";
        case special_values::finite:
            return "none";
    }
    return "";
}

template <class F> row format_row() {
    constexpr float_spec s = F::spec;
    using limits = std::numeric_limits<F>;
    return {fmt::format("`{}`", F::name),
            fmt::format("{}", s.bits()),
            fmt::format("{}/{}/{}", s.is_signed ? 1 : 0, s.exponent_bits, s.mantissa_bits),
            number(static_cast<float>(limits::max())),
            fmt::format("2^{}", s.min_exponent()),
            s.has_zero ? fmt::format("2^{}", s.min_exponent() - s.mantissa_bits) : "-",
            s.has_zero ? fmt::format("2^-{}", s.precision()) : "-",
            specials(s),
            F::tag::source};
}

std::string extent(int64_t n) { return n == whole ? "all" : fmt::format("{}", n); }

template <class S> row scheme_row() {
    using traits = scheme_traits<S>;
    const double bits = traits::bits_per_weight();
    return {fmt::format("`{}`", S::name),
            S::element::name,
            S::has_zero_point ? fmt::format("{} + 4-bit zero", detail::scale_traits<typename S::scale>::name)
                              : detail::scale_traits<typename S::scale>::name,
            fmt::format("{} x {}", extent(S::block.rows), extent(S::block.cols)),
            number(bits),
            number(bits / 8),
            S::source};
}

std::string markdown(const row& header, const std::vector<row>& rows) {
    std::vector<std::size_t> width;
    for (const std::string& cell : header) width.push_back(cell.size());
    for (const row& r : rows)
        for (std::size_t c = 0; c < r.size(); ++c) width[c] = std::max(width[c], r[c].size());
    std::string out;
    const auto line = [&](const row& r) {
        out += "|";
        for (std::size_t c = 0; c < r.size(); ++c) out += fmt::format(" {:<{}} |", r[c], width[c]);
        out += "\n";
    };
    line(header);
    out += "|";
    for (const std::size_t w : width) out += std::string(w + 2, '-') + "|";
    out += "\n";
    for (const row& r : rows) line(r);
    return out;
}

// `columns` of the full tables, by index.
std::string tables(bool full) {
    std::vector<row> formats, schemes;
    for_each(all_formats{}, [&]<class F>() { formats.push_back(format_row<F>()); });
    for_each(all_schemes{}, [&]<class S>() { schemes.push_back(scheme_row<S>()); });
    row format_header{"format",   "bits",          "S/E/M",    "largest", "smallest normal",
                      "smallest", "unit roundoff", "specials", "source"};
    row scheme_header{"scheme",          "element",          "scale", "block (rows x cols)",
                      "bits per weight", "bytes per weight", "source"};
    if (!full) {
        for (row* r : {&format_header, &scheme_header}) r->pop_back();
        for (row& r : formats) r.pop_back();
        for (row& r : schemes) r.pop_back();
    }
    return markdown(format_header, formats) + "\n" + markdown(scheme_header, schemes);
}

// Replaces what stands between the two marker lines of `path`. Returns false if they are not there.
bool update(const std::string& path, const std::string& text, bool check_only, bool& same) {
    std::ifstream in(path);
    if (!in) return false;
    std::stringstream buffer;
    buffer << in.rdbuf();
    const std::string old = buffer.str();
    const std::string begin = "<!-- format_table: begin -->\n", end = "<!-- format_table: end -->\n";
    const std::size_t b = old.find(begin), e = old.find(end);
    if (b == std::string::npos || e == std::string::npos || e < b) return false;
    const std::string fresh = old.substr(0, b + begin.size()) + text + old.substr(e);
    same = fresh == old;
    if (!same && !check_only) std::ofstream(path) << fresh;
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Every number format and quantization scheme of numfmt, as Markdown tables made from their descriptors."};
    bool full = false, check = false;
    std::vector<std::string> files;
    app.add_flag("--full", full, "Also the source of each definition");
    app.add_option("--update", files, "Rewrite the tables between the marker lines of these files instead of printing")
        ->check(CLI::ExistingFile);
    app.add_flag("--check", check, "With --update: change nothing, exit with 1 if a file is out of date")
        ->needs("--update");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        const int code = app.exit(e);
        return code == 0 ? 0 : 2;
    }
    if (files.empty()) {
        std::fputs(tables(full).c_str(), stdout);
        return 0;
    }
    int status = 0;
    for (const std::string& file : files) {
        bool same = false;
        if (!update(file, tables(full), check, same)) {
            fmt::print(stderr,
                       "format_table: {} has no lines <!-- format_table: begin --> and <!-- format_table: end -->\n",
                       file);
            return 2;
        }
        if (check && !same) {
            fmt::print(stderr, "format_table: {} is out of date; run: format_table{} --update {}\n", file,
                       full ? " --full" : "", file);
            status = 1;
        }
    }
    return status;
}
