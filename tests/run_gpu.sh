#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the GPU tests with nvcc and runs them on the first device. Ends with the line "N passed, N failed".
set -euo pipefail

usage() {
    cat <<'END'
usage: bash tests/run_gpu.sh [--build-dir DIR] [--no-build] [--only NAME] [--sanitize] [--no-hashes]

  --build-dir DIR  where the programs are (default build/gpu)
  --no-build       run the programs that are in DIR already
  --only NAME      one program: the name of a file in tests/cuda without .cu, or device_hashes
  --no-hashes      leave out the two programs that go through all 2^32 floats
  --sanitize       also run each under compute-sanitizer (memcheck, racecheck, initcheck, synccheck)
  --help           this text

The architecture is the device's own unless NUMFMT_CUDA_ARCHITECTURE says otherwise (90a, 100a, ...). NVCC names the
compiler, DOCTEST_INCLUDE a folder that holds doctest/doctest.h. Test cases are counted one by one, device_hashes as one.
Exit code 0 if something ran and nothing failed, 77 where there is no device.
END
}
die() {
    printf 'run_gpu.sh: error: %s\n' "$*" >&2
    exit 2
}

repo_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repo_root"
build=build/gpu build_programs=yes only='' sanitize=no hashes=yes
while [ $# -gt 0 ]; do
    case $1 in
    --build-dir)
        [ $# -ge 2 ] || die "--build-dir needs a folder"
        build=$2
        shift
        ;;
    --only)
        [ $# -ge 2 ] || die "--only needs a name"
        only=$2
        shift
        ;;
    --no-build) build_programs=no ;;
    --no-hashes) hashes=no ;;
    --sanitize) sanitize=yes ;;
    --help | -h)
        usage
        exit 0
        ;;
    *) die "unknown argument '$1'; see --help" ;;
    esac
    shift
done

names=()
for source in tests/cuda/*.cu tests/exhaustive/device_hashes.cu; do
    name=$(basename "$source" .cu)
    [ "$hashes" = yes ] || case $name in *_hashes) continue ;; esac
    [ -z "$only" ] || [ "$only" = "$name" ] || continue
    names+=("$name")
done
[ ${#names[@]} -gt 0 ] || die "no program is called '$only'"

mkdir -p "$build"
if [ $build_programs = yes ]; then
    nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
    [ -x "$nvcc" ] || die "there is no nvcc; put it on PATH or set NVCC"
    arch=${NUMFMT_CUDA_ARCHITECTURE:-}
    if [ -z "$arch" ]; then
        arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ' || true)
        arch=${arch:-90}
        [ "$arch" -lt 90 ] || arch=${arch}a
    fi
    echo "building ${#names[@]} programs for sm_$arch"
    compile() {
        local source=tests/cuda/$1.cu
        [ -e "$source" ] || source=tests/exhaustive/$1.cu
        "$nvcc" -std=c++20 -O2 "-arch=sm_$arch" -Werror all-warnings -Xcompiler=-Wall -I include -I tests \
            ${DOCTEST_INCLUDE:+-I "$DOCTEST_INCLUDE"} "$source" -o "$build/$1"
    }
    jobs=$(nproc 2>/dev/null || echo 2)
    for name in "${names[@]}"; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
        rm -f "$build/$name"
        compile "$name" >"$build/$name.build.log" 2>&1 &
    done
    wait
fi

passed=0 failed=0
# run NAME COMMAND...: counts what the program says; a program that dies or does not exist is one failure.
run() {
    local label=$1 output status=0 cases
    shift
    output=$("$@" 2>&1) || status=$?
    printf '%s\n' "$output" | tail -n 12
    if [ $status -eq 77 ]; then
        echo "run_gpu.sh: no CUDA device"
        exit 77
    fi
    # doctest: "[doctest] test cases:  9 |  9 passed | 0 failed | 0 skipped"
    cases=$(printf '%s\n' "$output" | sed -nE 's/.*test cases: *[0-9]+ *\| *([0-9]+) passed \| *([0-9]+) failed.*/\1 \2/p' | tail -n 1)
    if [ -n "$cases" ]; then
        passed=$((passed + ${cases% *})) failed=$((failed + ${cases#* }))
        [ $status -eq 0 ] || [ "${cases#* }" -gt 0 ] || failed=$((failed + 1))
    elif [ $status -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
    echo "== $label: exit code $status"
}

for name in "${names[@]}"; do
    if [ ! -x "$build/$name" ]; then
        echo "== $name: did not build"
        tail -n 20 "$build/$name.build.log" 2>/dev/null || true
        failed=$((failed + 1))
        continue
    fi
    arguments=()
    [ "$name" != device_hashes ] || arguments=(tests/golden/formats)
    run "$name" env NUMFMT_GOLDEN_FORMATS=tests/golden/formats "$build/$name" ${arguments[@]+"${arguments[@]}"}
    if [ $sanitize = yes ]; then
        case $name in *_hashes | tensor_core) continue ;; esac  # hours under a sanitizer
        for tool in memcheck racecheck initcheck synccheck; do
            run "$name under $tool" compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 "$build/$name"
        done
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
