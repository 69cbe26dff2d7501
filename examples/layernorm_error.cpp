// SPDX-License-Identifier: MIT
// Which change of a layer normalisation is a correctness fix, and which only looks like one? Every formula of the
// variance with every accumulator, on rows whose mean drowns their deviation and on real ones.

#include <cstdio>
#include <stdexcept>

#include <fmt/core.h>

#include "layernorm/measure.hpp"
#include "layernorm/report.hpp"
#include "layernorm/settings.hpp"
#include "support/program.hpp"

namespace {

using namespace layernorm;

int run(int argc, char** argv) {
    const settings s = parse_command_line(argc, argv);
    example::check_outputs(s.csv, s.plot);
    const results r = measure_all(s);
    if (s.json)
        fmt::print("{}\n", json_of(s, r).dump(2));
    else
        print_tables(s, r);
    if (!s.csv.empty()) write_csv(s, r);
    if (!s.plot.empty()) write_plot(s, r);
    if (std::fflush(stdout) != 0) throw std::runtime_error("stdout: cannot write");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return example::run_program("layernorm_error", "; fewer --threads need less", [&] { return run(argc, argv); });
}
