# SPDX-License-Identifier: MIT
# Shared by tests/run.sh, examples/run.sh and .ci/run: installs what is missing. To be sourced by bash.
#
#   want PACKAGE CHECK...            needed: the script stops if it cannot be had
#   want_if_possible PACKAGE CHECK...  useful: a line says so if it cannot be had
#   install_wanted                   installs all that was wanted and is missing, in one go
#
# CHECK is a command that succeeds where the package is there: have_command NAME or have_header NAME. A header library
# that cannot be installed is not fatal here: CMake then fetches a pinned release, or says what to do.
# shellcheck shell=bash disable=SC2034

repo_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)
missing_packages=()
missing_checks=()
missing_needed=()

say() { printf '%s\n' "$*"; }
die() {
    printf '%s: error: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

have_command() { command -v "$1" >/dev/null 2>&1; }
have_header() {
    local folder
    for folder in /usr/include /usr/local/include; do
        [ -e "$folder/$1" ] && return 0
    done
    return 1
}

want_as() {
    local needed=$1 package=$2
    shift 2
    if ! "$@"; then
        missing_packages+=("$package")
        missing_checks+=("$*")
        missing_needed+=("$needed")
    fi
}
want() { want_as yes "$@"; }
want_if_possible() { want_as no "$@"; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Why packages cannot be installed here, or nothing.
no_installing_because() {
    if ! have_command apt-get; then
        say "there is no apt-get"
    elif [ "$(id -u)" -ne 0 ] && ! have_command sudo; then
        say "it takes root or sudo"
    fi
}

install_wanted() {
    local i package log status=0 because
    [ ${#missing_packages[@]} -gt 0 ] || return 0
    because=$(no_installing_because)
    if [ -z "$because" ]; then
        say "installing: ${missing_packages[*]}"
        log=$(mktemp)
        {
            as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
                as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing_packages[@]}"
        } >"$log" 2>&1 </dev/null || status=$?
        if [ $status -ne 0 ]; then
            because="apt-get failed: $(grep -E '^(E|Err):' "$log" | sort -u | head -n 3 | tr '\n' ' ' || tail -n 1 "$log")"
            # One unknown name makes apt-get refuse all of them, so try the rest one by one.
            for package in "${missing_packages[@]}"; do
                as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$package" >>"$log" 2>&1 </dev/null || true
            done
        fi
        rm -f "$log"
        hash -r
    fi
    local lost=()
    for i in "${!missing_packages[@]}"; do
        package=${missing_packages[i]}
        # The check is a function name and one word, so splitting it is what is meant.
        # shellcheck disable=SC2086
        if ! ${missing_checks[i]}; then
            if [ "${missing_needed[i]}" = yes ]; then
                lost+=("$package")
            else
                say "not installed: $package (${because:-it does not provide what was looked for})"
            fi
        fi
    done
    missing_packages=() missing_checks=() missing_needed=()
    [ ${#lost[@]} -eq 0 ] ||
        die "cannot go on without: ${lost[*]} (${because:-installed, but does not provide what was looked for}). Please install them and run this again."
}

# What every build of numfmt takes.
want_build_tools() {
    want g++ have_command g++
    want cmake have_command cmake
    want make have_command make
    want python3 have_command python3
}

# Header libraries; see above why they are not fatal.
want_test_libraries() {
    want_if_possible doctest-dev have_header doctest/doctest.h
    want_if_possible libbenchmark-dev have_header benchmark/benchmark.h
    want_if_possible libhwy-dev have_header hwy/highway.h
}
want_example_libraries() {
    want_if_possible nlohmann-json3-dev have_header nlohmann/json.hpp
    want_if_possible libfmt-dev have_header fmt/format.h
    want_if_possible libcli11-dev have_header CLI/CLI.hpp
}
