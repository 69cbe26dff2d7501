// SPDX-License-Identifier: MIT
// When do bf16 weights stop learning, and what does each remedy cost? Small updates added to weights in every store,
// and a small network trained on real data.

#include <cstdio>
#include <stdexcept>

#include <fmt/core.h>

#include "master_weights/measure.hpp"
#include "master_weights/report.hpp"
#include "master_weights/settings.hpp"
#include "support/program.hpp"

namespace {

using namespace master_weights;

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
    return example::run_program("master_weights", "; fewer --threads or a smaller --hidden need less",
                                [&] { return run(argc, argv); });
}
