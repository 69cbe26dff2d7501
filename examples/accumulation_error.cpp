// SPDX-License-Identifier: MIT
// What does forming the sum cost in accuracy? Dot products of growing length by every accumulator and by the tensor
// cores' bit-exact models, beside the a-priori bounds.

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "accumulation/measure.hpp"
#include "accumulation/report.hpp"
#include "accumulation/settings.hpp"
#include "support/program.hpp"

namespace {

using namespace accumulation;

int run(int argc, char** argv) {
    const settings s = parse_command_line(argc, argv);
    const std::vector<accumulator> accumulators = chosen_accumulators(s);
    example::check_outputs(s.csv, s.plot);
    const results r = measure_all(s, accumulators);
    if (s.json)
        fmt::print("{}\n", json_of(s, accumulators, r).dump(2));
    else
        print_tables(s, accumulators, r);
    if (!s.csv.empty()) write_csv(s, accumulators, r);
    if (!s.plot.empty()) write_plot(s, accumulators, r);
    if (std::fflush(stdout) != 0) throw std::runtime_error("stdout: cannot write");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return example::run_program("accumulation_error", "; fewer --threads or a smaller --k need less",
                                [&] { return run(argc, argv); });
}
