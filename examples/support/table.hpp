// SPDX-License-Identifier: MIT
// Text tables and CSV lines, and the numbers in them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace example {

/// Text from elsewhere (a tensor's name), made safe for a terminal: control characters become '?', long text is cut.
inline std::string printable(std::string_view text, std::size_t limit = 160) {
    std::string out(text.substr(0, limit));
    while (!out.empty() && out.size() < text.size() && (static_cast<unsigned char>(text[out.size()]) & 0xC0u) == 0x80u)
        out.pop_back();  // do not split a UTF-8 sequence
    for (char& c : out) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20u || byte == 0x7Fu) c = '?';
    }
    if (out.size() < text.size()) out += "...";
    return out;
}

/// `digits` significant digits without an exponent from 1e-4 to 1e6, otherwise with one.
inline std::string significant(double x, int digits = 3) {
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
    if (x == 0) return "0";
    const int exponent = static_cast<int>(std::floor(std::log10(std::fabs(x)) + 1e-12));
    if (exponent < -4 || exponent >= 6) return fmt::format("{:.{}e}", x, digits - 1);
    return fmt::format("{:.{}f}", x, std::max(digits - 1 - exponent, 0));
}

/// 1234567 as "1,234,567".
inline std::string with_commas(std::int64_t n) {
    std::string digits = std::to_string(n);
    for (std::size_t i = digits.size(); i > 3 + (n < 0 ? 1u : 0u); i -= 3) digits.insert(i - 3, 1, ',');
    return digits;
}

/// A table with a header line and a line of units; the first `left` columns are aligned left, the others right.
class text_table {
  public:
    explicit text_table(std::vector<std::pair<std::string, std::string>> headers, std::size_t left = 1) : left_(left) {
        std::vector<std::string> names, units;
        for (auto& [name, unit] : headers) {
            names.push_back(std::move(name));
            units.push_back(std::move(unit));
        }
        lines_.push_back(std::move(names));
        lines_.push_back(std::move(units));
    }

    void add(std::vector<std::string> cells) { lines_.push_back(std::move(cells)); }

    std::string str() const {
        std::vector<std::size_t> width(lines_[0].size(), 0);
        for (const auto& line : lines_)
            for (std::size_t c = 0; c < line.size(); ++c) width[c] = std::max(width[c], line[c].size());
        std::size_t total = 2 * (width.size() - 1);
        for (const std::size_t w : width) total += w;

        std::string out;
        for (std::size_t r = 0; r < lines_.size(); ++r) {
            std::string line;
            for (std::size_t c = 0; c < lines_[r].size(); ++c) {
                if (c > 0) line += "  ";
                line += c < left_ ? fmt::format("{:<{}}", lines_[r][c], width[c])
                                  : fmt::format("{:>{}}", lines_[r][c], width[c]);
            }
            line.erase(line.find_last_not_of(' ') + 1);
            out += line + "\n";
            if (r == 1) out += std::string(total, '-') + "\n";
        }
        return out;
    }

  private:
    std::size_t left_;
    std::vector<std::vector<std::string>> lines_;
};

/// One line of CSV (RFC 4180), ended by a newline.
inline std::string csv_line(const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i > 0) line += ',';
        if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
            line += cells[i];
            continue;
        }
        line += '"';
        for (const char c : cells[i]) line += c == '"' ? std::string("\"\"") : std::string(1, c);
        line += '"';
    }
    return line + "\n";
}

/// A number for CSV that reads back as the same double; empty for NaN and infinities.
inline std::string csv_number(double x) { return std::isfinite(x) ? fmt::format("{}", x) : std::string(); }

}  // namespace example
