#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# numfmt::simd under emulation. usage: qemu.sh neon|sve|old_x86 SOURCE WORK SIMD_TESTS
#   neon, sve  cross-compiles the unit tests for 64-bit Arm with a reduced set of inputs and runs them, SVE at 128, 256 and 512
#              bits. There the implementation is compiled by hand (NUMFMT_SIMD_IMPLEMENTATION), for one target.
#   old_x86    runs all of SIMD_TESTS on a CPU without AVX, and a program of two units, one built for AVX-512 and one for an old
#              CPU, linked in both orders: the old unit must not have got a function from the new one, and its results must be
#              the oracle's.
# Exit code 77 where the emulator or the cross compiler is missing; 1 if NUMFMT_REQUIRE_QEMU is set.
set -euo pipefail
name=$1 source=$2 work=$3 simd_tests=$4
mkdir -p "$work"

need() {
    command -v "$1" >/dev/null && return
    if [ -n "${NUMFMT_REQUIRE_QEMU:-}" ]; then
        echo "FAILED: $1 is not installed, and NUMFMT_REQUIRE_QEMU is set"
        exit 1
    fi
    echo "SKIPPED: $1 is not installed"
    exit 77
}

case $name in
neon | sve)
    need aarch64-linux-gnu-g++
    need qemu-aarch64-static
    # The headers of Highway and doctest alone: the rest of /usr/include is another machine's.
    mkdir -p "$work/include"
    ln -sfn /usr/include/hwy "$work/include/hwy"
    ln -sfn /usr/include/doctest "$work/include/doctest"
    march=armv8.2-a+crypto
    [ "$name" = neon ] || march=armv8.2-a+sve+crypto
    printf '#define NUMFMT_SIMD_IMPLEMENTATION\n#include <numfmt/simd.hpp>\n' >"$work/implementation.cpp"
    rm -f "$work"/*.o
    for unit in "$source"/tests/simd/{codec,quantize,environment}.cpp "$source"/tests/support/doctest_main.cpp "$work/implementation.cpp"; do
        aarch64-linux-gnu-g++ -std=c++20 -O1 "-march=$march" -DHWY_COMPILE_ONLY_STATIC -DNUMFMT_TEST_REDUCED -I "$source/include" \
            -I "$source/tests" -isystem "$work/include" -c "$unit" -o "$work/$(basename "$unit" .cpp).o"
    done
    aarch64-linux-gnu-g++ -static "$work"/*.o -o "$work/tests" -lpthread
    if [ "$name" = neon ]; then
        qemu-aarch64-static "$work/tests"
    else
        for quads in 1 2 4; do
            echo "SVE of $((quads * 128)) bits"
            qemu-aarch64-static -cpu "max,sve-max-vq=$quads" "$work/tests"
        done
    fi
    ;;
old_x86)
    need qemu-x86_64-static
    [ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: not an x86-64 machine" && exit 77; }
    # qemu-user has no AVX-512, and Nehalem no AVX.
    qemu-x86_64-static -cpu Nehalem "$simd_tests"
    # compile OBJECT SOURCE OPTION...
    compile() {
        local object=$1 unit=$2
        shift 2
        g++ -std=c++20 -O2 -I "$source/include" -I "$source/tests" "-DNUMFMT_TEST_DATA_DIR=\"$source/tests/golden\"" "$@" \
            -c "$source/tests/simd/units/$unit.cpp" -o "$work/$object.o"
    }
    compile main old_cpu_main -march=x86-64-v2
    compile expected old_cpu_expected -march=x86-64-v2
    compile old old_cpu_unit -march=x86-64-v2 -DUNIT=old
    # The first has Highway's newest target, the second (for Highway, which also asks for AES) the same one as the old unit.
    for march in icelake-server x86-64-v4; do
        compile new old_cpu_unit "-march=$march" -DUNIT=new
        for order in "new old" "old new"; do
            echo "$march, linked in the order $order"
            # shellcheck disable=SC2086
            (cd "$work" && g++ main.o $(printf '%s.o ' $order) expected.o -lhwy -o program && qemu-x86_64-static -cpu Nehalem ./program)
        done
    done
    ;;
*)
    echo "qemu.sh: neon, sve or old_x86, not '$name'" >&2
    exit 2
    ;;
esac
