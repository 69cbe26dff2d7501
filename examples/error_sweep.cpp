// SPDX-License-Identifier: MIT
// What does each number format cost in accuracy? Quantizes every weight matrix of a .safetensors checkpoint with every
// scheme of the library and reports the error, of the weights and, where the file has activations, of the layer's
// output.

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "support/program.hpp"
#include "sweep/measure.hpp"
#include "sweep/report.hpp"
#include "sweep/rows.hpp"
#include "sweep/settings.hpp"
#include "sweep/workload.hpp"

namespace {

using namespace sweep;

int run(int argc, char** argv) {
    const settings s = parse_command_line(argc, argv);
    const std::vector<row> rows = chosen_rows(s);
    example::check_outputs(s.csv, s.plot);
    workload work = s.synthetic ? synthetic_workload(s) : file_workload(s);
    for (weight& w : work.weights) {
        w.first_task = work.tasks;
        work.tasks += w.tasks();
        work.elements += w.elements();
    }
    note_skipped(work);
    for (const std::string& note : work.notes) fmt::print(stderr, "note: {}\n", note);

    const std::vector<measurements> results = measure_all(s, work, rows);
    const measurements total = total_of(results, rows.size());
    if (s.json) {
        // A path need not be UTF-8; JSON has to be.
        fmt::print(
            "{}\n",
            json_of(s, work, rows, results, total).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
        print_tables(s, work, rows, results, total);
    }
    if (!s.csv.empty()) write_csv(s, work, rows, results, total);
    if (!s.plot.empty()) write_plot(s, work, rows, total);
    if (std::fflush(stdout) != 0) throw std::runtime_error("stdout: cannot write");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return example::run_program("error_sweep", "; fewer --threads need less", [&] { return run(argc, argv); });
}
