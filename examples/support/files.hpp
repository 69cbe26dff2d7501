// SPDX-License-Identifier: MIT
// Where the sample is, and whether an output file can be written, before hours of work depend on it.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace example {

/// examples/data/NAME: where the build put the path (NUMFMT_SAMPLE_DIR), then under the working directory, the
/// program's directory and every directory above them. Empty when it is nowhere.
inline std::filesystem::path find_sample(std::string_view name) {
    namespace fs = std::filesystem;
    std::error_code code;
    std::vector<fs::path> candidates;
#ifdef NUMFMT_SAMPLE_DIR
    candidates.emplace_back(fs::path(NUMFMT_SAMPLE_DIR) / name);
#endif
    for (const fs::path& start : {fs::current_path(code), fs::read_symlink("/proc/self/exe", code).parent_path()}) {
        for (fs::path dir = start; !dir.empty(); dir = dir.parent_path()) {
            candidates.push_back(dir / "examples" / "data" / name);
            candidates.push_back(dir / name);
            if (dir == dir.root_path()) break;
        }
    }
    for (const fs::path& path : candidates)
        if (fs::is_regular_file(path, code)) return path;
    return {};
}

/// Why a file cannot be created at `path` (an existing one is left as it is), or an empty string.
inline std::string why_not_writable(const std::filesystem::path& path) {
    std::error_code code;
    if (path.empty()) return "the path is empty";
    if (std::filesystem::is_directory(path, code)) return "it is a directory";
    const bool existed = std::filesystem::exists(path, code);
    errno = 0;
    const std::ofstream file(path, std::ios::app | std::ios::binary);
    if (!file) return std::generic_category().message(errno != 0 ? errno : EIO);
    if (!existed) std::filesystem::remove(path, code);
    return {};
}

/// The full path of a program that the shell would find, or an empty path.
inline std::filesystem::path find_program(std::string_view name) {
    const char* variable = std::getenv("PATH");
    std::string_view list = variable != nullptr ? variable : "";
    while (!list.empty()) {
        const auto colon = list.find(':');
        const std::filesystem::path candidate = std::filesystem::path(list.substr(0, colon)) / name;
        list = colon == list.npos ? std::string_view() : list.substr(colon + 1);
#if defined(__unix__) || defined(__APPLE__)
        std::error_code code;
        if (std::filesystem::is_regular_file(candidate, code) && ::access(candidate.c_str(), X_OK) == 0)
            return candidate;
#endif
    }
    return {};
}

}  // namespace example
