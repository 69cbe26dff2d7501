// SPDX-License-Identifier: MIT
// Reads the section [hashes] of a file of tests/golden/formats: for each rounding its name alone on a line, then 256
// hashes in hexadecimal, eight a line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "golden_file.hpp"

namespace numfmt::test {

/// By rounding; throws if there is no such file.
inline std::map<std::string, std::vector<std::uint64_t>> read_golden_hashes(const std::string& path) {
    std::map<std::string, std::vector<std::uint64_t>> hashes;
    std::string rounding;
    for (const std::string& line : numfmt_test::golden_file(path).section("hashes")) {
        if (line.find(' ') == std::string::npos) {
            rounding = line;
            continue;
        }
        for (std::size_t i = 0; i + 16 <= line.size(); i += 17)
            hashes[rounding].push_back(std::stoull(line.substr(i, 16), nullptr, 16));
    }
    return hashes;
}

}  // namespace numfmt::test
