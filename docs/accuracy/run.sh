#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the studies and makes every figure and picture of docs/accuracy.md again. A few minutes on two cores.
set -euo pipefail
# shellcheck source=tests/support/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tests/support/setup.sh"

if [ $# -gt 0 ]; then
    say "usage: bash docs/accuracy/run.sh    (writes docs/accuracy.md and docs/accuracy/; no options)"
    [ "$1" = --help ] || exit 2
    exit 0
fi

want_build_tools
want_example_libraries
want gnuplot-nox have_command gnuplot
install_wanted

cd "$repo_root"
cmake --preset release
cmake --build --preset release -j "$jobs" --target numfmt_example_layernorm_error numfmt_example_attention_error \
    numfmt_example_master_weights
python3 docs/accuracy/report.py --run build/release/examples
git --no-pager diff --stat -- docs/accuracy docs/accuracy.md
