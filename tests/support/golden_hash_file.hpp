// SPDX-License-Identifier: MIT
// Reads a file of tests/golden/exhaustive: one section per rounding, its name alone on a line, then 256 hashes in
// hexadecimal, eight a line; lines that begin with # are remarks.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace numfmt::test {

inline std::map<std::string, std::vector<std::uint64_t>> read_golden_hashes(const std::string& path) {
    std::map<std::string, std::vector<std::uint64_t>> sections;
    std::ifstream in(path);
    std::string line, section;
    while (std::getline(in, line)) {
        if (line.empty() || line[0] == '#') continue;
        if (line.find(' ') == std::string::npos) {
            section = line;
            continue;
        }
        for (std::size_t i = 0; i + 16 <= line.size(); i += 17)
            sections[section].push_back(std::stoull(line.substr(i, 16), nullptr, 16));
    }
    return sections;
}

}  // namespace numfmt::test
