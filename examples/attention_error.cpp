// SPDX-License-Identifier: MIT
// What does a quantized KV cache cost in attention, and where does it fail? Formats, scales and accumulators against
// context length, with the error split into rounding, clipping and accumulation.

#include <cstdio>
#include <stdexcept>

#include <fmt/core.h>

#include "attention/measure.hpp"
#include "attention/report.hpp"
#include "attention/settings.hpp"
#include "support/program.hpp"

namespace {

using namespace attention;

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
    return example::run_program("attention_error", "; fewer --threads or a smaller --tile need less",
                                [&] { return run(argc, argv); });
}
