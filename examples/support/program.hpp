// SPDX-License-Identifier: MIT
// What the programs share around their work: input that is refused, outputs looked at before hours depend on them, and
// exit codes.
#pragma once

#include <cstdio>
#include <exception>
#include <fstream>
#include <ios>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <fmt/format.h>

#include "files.hpp"
#include "plot.hpp"
#include "table.hpp"

namespace example {

/// Something the user can put right: printed as it is, exit code 2.
struct bad_input : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <class... Args> [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
    throw bad_input(fmt::format(format, std::forward<Args>(args)...));
}

/// Finds out before the work whether its results can be written; `csv` and `plot` are paths, empty where not wanted.
inline void check_outputs(const std::string& csv, const std::string& plot) {
    if (!csv.empty()) {
        if (const std::string why = why_not_writable(csv); !why.empty())
            refuse("--csv: cannot write '{}': {}", printable(csv), why);
    }
    if (plot.empty()) return;
    if (!plot_type_known(plot)) refuse("--plot: got '{}', wanted a name that ends in .svg or .png", printable(plot));
    if (const std::string why = why_not_writable(plot); !why.empty())
        refuse("--plot: cannot write '{}': {}", printable(plot), why);
    if (find_program("gnuplot").empty())
        throw std::runtime_error("--plot: gnuplot is not installed (Debian, Ubuntu: apt install gnuplot-nox)");
}

/// Writes the lines of a CSV file; refuses where that fails.
inline void write_csv_file(const std::string& path, const std::string& lines) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << lines;
    file.close();
    if (!file) refuse("--csv: cannot write '{}'", printable(path));
}

/// The exit code of run(): its own, 2 for bad input, 1 for any other failure, each with its message on stderr.
/// `memory_hint` says what would need less memory.
template <class Run> int run_program(const char* name, const char* memory_hint, Run&& run) {
    try {
        return run();
    } catch (const bad_input& e) {
        fmt::print(stderr, "{}: {}\n", name, e.what());
        return 2;
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "{}: out of memory{}\n", name, memory_hint);
    } catch (const std::exception& e) {
        fmt::print(stderr, "{}: {}\n", name, e.what());
    }
    return 1;
}

}  // namespace example
