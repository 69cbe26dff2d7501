#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Plants the faults of tests/mutants.toml one at a time in a copy of the headers and shows which test catches each.
# usage: bash tests/mutate.sh [--list] [NAME...]    exit code 0 if every planted fault was caught
set -euo pipefail
# shellcheck source=tests/support/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/support/setup.sh"
want_build_tools
want_test_libraries
install_wanted
exec python3 "$repo_root/tests/support/mutate.py" "$@"
