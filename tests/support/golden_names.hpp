// SPDX-License-Identifier: MIT
// The golden files against a list of types: none missing, none too many.
#pragma once

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include <doctest/doctest.h>

namespace numfmt_test {

/// Checks that the folder (below tests/golden) holds NAME.txt for just these names.
inline void check_golden_names(const std::string& folder, const std::set<std::string>& names, const std::string& list) {
    const std::filesystem::path root = std::filesystem::path(NUMFMT_TEST_DATA_DIR) / folder;
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(root))
        if (entry.path().extension() == ".txt") files.insert(entry.path().stem().string());
    for (const std::string& name : names)
        CHECK_MESSAGE(files.count(name) == 1, name, " is in ", list, ", but tests/golden/", folder, "/", name,
                      ".txt is missing: docs/adding_a_format.md says what it holds");
    for (const std::string& name : files)
        CHECK_MESSAGE(names.count(name) == 1, "tests/golden/", folder, "/", name, ".txt is there, but ", name,
                      " is not in ", list);
}

}  // namespace numfmt_test
