#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, builds the examples and runs the main one on the sample: what each format costs in accuracy
# on real weights, as a table and a plot.
set -euo pipefail
# shellcheck source=tests/support/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../tests/support/setup.sh"

if [ $# -gt 0 ]; then
    say "usage: bash examples/run.sh    (writes into build/release; no options)"
    [ "$1" = --help ] || exit 2
    exit 0
fi

want_build_tools
want_example_libraries
want_if_possible gnuplot-nox have_command gnuplot
install_wanted

cd "$repo_root"
cmake --preset release
cmake --build --preset release -j "$jobs"

program=build/release/examples/error_sweep
sample=examples/data/minilm_sample.safetensors
out=build/release/error_sweep
[ -x "$program" ] || die "$program was not built"
[ -f "$sample" ] || die "the sample $sample is missing"
mkdir -p "$out"
rm -f "$out"/errors.*

arguments=(--csv "$out/errors.csv")
if have_command gnuplot; then
    arguments+=(--plot "$out/errors.svg")
else
    say "skipped: the plot, since gnuplot is not installed"
fi
"$program" "$sample" "${arguments[@]}"

say ""
say "Written:"
for file in "$out"/errors.*; do
    [ -s "$file" ] || die "$file is empty"
    say "  $repo_root/$file"
done
say "More: $program --help"
