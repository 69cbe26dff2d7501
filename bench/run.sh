#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds one benchmark with one compiler and stores its results, with where they come from, in bench/results.
# usage: bash bench/run.sh reference|codec [CXX] [benchmark options]      (CXX: g++ by default; for instance clang++-19)
set -euo pipefail
# shellcheck source=tests/support/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../tests/support/setup.sh"
[ $# -ge 1 ] || die "name a benchmark: reference or codec"
subject=$1
cxx=${2:-g++}
shift
[ $# -eq 0 ] || shift
want_build_tools
want_test_libraries
want_if_possible nlohmann-json3-dev have_header nlohmann/json.hpp
install_wanted
have_command "$cxx" || die "there is no compiler '$cxx'"

cd "$repo_root"
# The reference is what the compiler makes of it for this machine; numfmt::simd chooses at run time.
flags=-march=native simd=OFF
[ "$subject" != codec ] || flags='' simd=ON
build="build/bench-$subject-$cxx"
cmake --preset bench -B "$build" "-DCMAKE_CXX_COMPILER=$cxx" "-DCMAKE_CXX_FLAGS=$flags" -DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNUMFMT_WITH_SIMD=$simd >/dev/null
cmake --build "$build" -j "$jobs" --target "numfmt_${subject}_bench" >/dev/null
raw=$(mktemp)
trap 'rm -f "$raw"' EXIT
"$build/bench/${subject}_bench" --benchmark_out="$raw" --benchmark_out_format=json "$@"
mkdir -p bench/results
target=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["context"].get("target", sys.argv[2]))' "$raw" "$cxx")
python3 bench/store.py "$subject" "$raw" "bench/results/${subject}.${target}.json"
