#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, builds numfmt and runs its tests. Ends with the line "N passed, N failed, N skipped".
set -euo pipefail
# shellcheck source=tests/support/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/support/setup.sh"

usage() {
    cat <<'END'
usage: bash tests/run.sh [--label L] [--sanitize] [--all-compilers]

  --label L        only tests with this label: unit, exhaustive, oracle, includes, headers, compile_fail, consumer,
                   cuda-compile, examples, bench, bench-compile, cli, harness; with --all-compilers also docs, qemu
  --sanitize       also run the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
  --all-compilers  also run the unit tests of core and block and the hashes with clang 14 and clang 19 (19: those of simd
                   as well), check the headers with them and follow docs/adding_a_format.md
                   (the default where CI=true)
  --help           this text

The last line counts the test cases of doctest and unittest one by one and every other test as one. Exit code 0 if a
test ran and none failed. Build trees are build/dev, build/asan, build/clang-14 and build/clang-19.
END
}

label='' sanitize=no all_compilers=no
[ "${CI:-}" != true ] || all_compilers=yes
while [ $# -gt 0 ]; do
    case $1 in
    --label)
        [ $# -ge 2 ] || die "--label needs a label; see --help"
        label=$2
        shift
        ;;
    --sanitize) sanitize=yes ;;
    --all-compilers) all_compilers=yes ;;
    --help | -h)
        usage
        exit 0
        ;;
    *) die "unknown argument '$1'; see --help" ;;
    esac
    shift
done

want_build_tools
want_test_libraries
want_example_libraries
clang_versions=()
if [ $all_compilers = yes ]; then
    clang_versions=(14 19)
    for version in "${clang_versions[@]}"; do
        if [ "${CI:-}" = true ]; then
            want "clang-$version" have_command "clang++-$version"
        else
            want_if_possible "clang-$version" have_command "clang++-$version"
        fi
    done
fi
install_wanted

cd "$repo_root"
results=()
failed_steps=()

# run_tests NAME PRESET [cmake options]: build/NAME from the preset. What goes wrong is counted, not fatal.
run_tests() {
    local name=$1 preset=$2 result="build/$1/test-results.xml"
    shift 2
    say "== $name"
    rm -f "$result"
    if ! cmake --preset "$preset" -B "build/$name" "$@"; then
        failed_steps+=(--failed-step "$name: configure")
        return
    fi
    if ! cmake --build "build/$name" -j "$jobs"; then
        failed_steps+=(--failed-step "$name: build")
        return
    fi
    # The size options keep the whole output in the results file: the counts of doctest stand at its end.
    ctest --test-dir "build/$name" -j "$jobs" --output-on-failure --output-junit "$repo_root/$result" \
        --test-output-size-passed 4000000 --test-output-size-failed 4000000 ${label:+-L "^$label\$"} || true
    results+=("$result")
}

# Most of the time goes into compiling. By default the same tests are compiled with -O1 and without the benchmarks beside
# them; with --all-compilers with the preset's -O2, and everything.
options=(-DNUMFMT_TEST_ALL_COMPILERS=OFF -DNUMFMT_BENCH_PROGRAMS=OFF "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG") hashes=few
[ $all_compilers = no ] || options=(-DNUMFMT_TEST_ALL_COMPILERS=ON -DNUMFMT_BENCH_PROGRAMS=ON) hashes=defaults
run_tests dev dev "${options[@]}" "-DNUMFMT_TEST_HASHES=$hashes" ${NUMFMT_ORACLE_PYTHON:+"-DNUMFMT_ORACLE_PYTHON=$NUMFMT_ORACLE_PYTHON"}
[ $sanitize = no ] || run_tests asan asan
for version in ${clang_versions[@]+"${clang_versions[@]}"}; do
    if have_command "clang++-$version"; then
        # numfmt::simd takes minutes to compile: with the newest compiler only.
        rooms='core;block' simd=OFF
        [ "$version" != 19 ] || rooms='core;block;simd' simd=ON
        run_tests "clang-$version" dev "-DCMAKE_CXX_COMPILER=clang++-$version" "-DNUMFMT_TEST_ROOMS=$rooms" "-DNUMFMT_WITH_SIMD=$simd" \
            "-DNUMFMT_TEST_HASHES=$hashes" -DNUMFMT_TEST_PROJECT_CHECKS=OFF -DNUMFMT_BUILD_EXAMPLES=OFF -DNUMFMT_BUILD_BENCH=OFF
    else
        say "skipped: clang++-$version is not installed"
    fi
done

say "== summary"
exec python3 tests/support/summarize.py ${failed_steps[@]+"${failed_steps[@]}"} ${results[@]+"${results[@]}"}
