// SPDX-License-Identifier: MIT
// What the programs' command lines share: the version, names chosen from a list, seeds, threads and files, each
// checked.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <numfmt/core/config.hpp>

#include "program.hpp"

namespace example {

inline std::string version() {
    return fmt::format("numfmt {}.{}.{}", NUMFMT_VERSION_MAJOR, NUMFMT_VERSION_MINOR, NUMFMT_VERSION_PATCH);
}

/// A check for numbers from low to high; CLI::Range alone takes NaN.
inline CLI::Validator real_range(double low, double high) {
    return CLI::Validator(
        [low, high](std::string& text) {
            const double x = std::strtod(text.c_str(), nullptr);
            return x >= low && x <= high ? std::string()
                                         : fmt::format("Value {} not in range {} to {}", text, low, high);
        },
        "");
}

/// A seed as text: CLI11 would take -1 for 2^64 - 1, and anything larger too.
inline std::uint64_t seed_of(const std::string& text) {
    std::uint64_t seed = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
        refuse("--seed: got '{}', wanted an integer from 0 to 2^64 - 1", text);
    return seed;
}

/// Every study's command line: what it takes beside these is added to `app`, then parse().
class command_line {
  public:
    CLI::App app;
    bool json = false;
    std::string csv, plot;
    unsigned threads = std::max(1u, std::thread::hardware_concurrency());

    command_line(const char* name, const char* header, const char* footer) : app(header, name) {
        app.footer(footer);
        app.get_formatter()->column_width(34);
        app.set_version_flag("--version", version(), "print the version and exit");
    }

    template <class T> CLI::Option* add(const char* name, T& variable, const char* type, const std::string& text) {
        return app.add_option(name, variable, text)->type_name(type);
    }
    /// A name out of `names`, which the help lists; a vector may be given several, one option each.
    template <class T>
    CLI::Option* choice(const char* name, T& variable, const std::vector<std::string>& names, const std::string& text) {
        return add(name, variable, "NAME", fmt::format("{}\n{}", text, fmt::join(names, ", ")))
            ->check(CLI::IsMember(names).description(""))
            ->allow_extra_args(false);
    }
    /// --json, --csv, --plot, --seed, --threads.
    void add_outputs(const char* plotted) {
        app.add_flag("--json", json, "print JSON instead of tables");
        add("--csv", csv, "FILE", "also write all numbers to this file");
        add("--plot", plot, "FILE", fmt::format("also plot {}; .svg or .png (needs\ngnuplot)", plotted));
        add("--seed", seed_text_, "N", "seed of the data [0]");
        add("--threads", threads, "N", "how many to use [all]; the results do not depend on it")
            ->check(CLI::Range(1u, 1024u).description(""));
    }
    /// Exits for --help and --version; refuses what it cannot read.
    void parse(int argc, char** argv) {
        try {
            app.parse(argc, argv);
        } catch (const CLI::Success& e) {
            std::exit(app.exit(e));
        } catch (const CLI::ParseError& e) {
            refuse("{}\nRun with --help for more information.", e.what());
        }
        (void)seed();
    }
    std::uint64_t seed() const { return seed_of(seed_text_); }

  private:
    std::string seed_text_ = "0";
};

}  // namespace example
