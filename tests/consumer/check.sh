#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Uses numfmt from another project in one of the documented ways: configures, builds, runs, compares what it prints.
# usage: check.sh CASE SOURCE WORK CMAKE CXX [BUILD|NVCC]
#   BUILD  case simd: a build tree of numfmt in which numfmt::simd is built already; it is installed, not built again
#   NVCC   case cuda: the compiler
set -euo pipefail

case_name=$1 source=$2 work=$3 cmake=$4 cxx=$5 extra=${6:-}
here=$source/tests/consumer
version=$(sed -n 's/^#define NUMFMT_VERSION_[A-Z]* *\([0-9]*\).*/\1/p' "$source/include/numfmt/core/config.hpp" | paste -sd .)
expected="numfmt $version: 3.140625"
export CXX=$cxx
unset CXXFLAGS CMAKE_BUILD_TYPE CMAKE_PREFIX_PATH numfmt_DIR

rm -rf "$work"
mkdir -p "$work"
prefix="$work/prefix with a space"

fail() {
    echo "consumer check '$case_name' failed: $*" >&2
    exit 1
}

# check_installed: nothing of ours in the text files of $prefix (an archive carries debug information).
check_installed() {
    if grep -rE -e '-Werror|-Wall|-fsanitize|numfmt_dev_flags' "$prefix" --include='*.cmake'; then
        fail "the installed package carries our development flags"
    fi
    if grep -rIF -e "$source" "$prefix"; then
        fail "the installed package names the source tree"
    fi
}

# install_numfmt [cmake options]: installs numfmt into $prefix the way a packager does.
install_numfmt() {
    "$cmake" -S "$source" -B "$work/numfmt" -DNUMFMT_BUILD_TESTS=OFF -DNUMFMT_BUILD_EXAMPLES=OFF -DNUMFMT_BUILD_BENCH=OFF -DNUMFMT_WITH_SIMD=OFF "$@"
    "$cmake" --build "$work/numfmt"
    "$cmake" --install "$work/numfmt" --prefix "$prefix"
    check_installed
}

# configure NAME [cmake options]; then build_and_run NAME.
configure() {
    local name=$1
    shift
    "$cmake" -S "$here" -B "$work/$name" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "-DCMAKE_PREFIX_PATH=$prefix" "$@"
}

check_output() {
    [ "$1" = "$expected" ] || fail "it printed '$1', not '$expected'"
}

build_and_run() {
    "$cmake" --build "$work/$1"
    if grep -E -e '-Werror|-Wall|-fsanitize' "$work/$1/compile_commands.json"; then
        fail "our development flags reached the consumer's compile command"
    fi
    check_output "$("$work/$1/consumer")"
}

# expect_error REGEX COMMAND...: the command must fail and say so.
expect_error() {
    local regex=$1 output
    shift
    if output=$("$@" 2>&1); then
        fail "this should have failed: $*"
    fi
    # CMake wraps its messages, so compare with the white space folded.
    tr -s '[:space:]' ' ' <<<"$output" | grep -qE -e "$regex" || fail "no message '$regex' in: $output"
}

case $case_name in
find_package)
    install_numfmt
    configure consumer
    build_and_run consumer
    expect_error "compatible with requested version \"99" "$cmake" -S "$here/wrong_version" -B "$work/wrong_version" "-DCMAKE_PREFIX_PATH=$prefix"
    expect_error "component 'nonsense' cannot be used: this installation does not have it" configure unknown -DCONSUMER_COMPONENTS=nonsense
    ;;
add_subdirectory | fetch_content)
    configure consumer "-DCONSUMER_MODE=$case_name" "-DNUMFMT_SOURCE=$source"
    build_and_run consumer
    for folder in tests examples bench; do
        find "$work/consumer" -path "*/$folder/cmake_install.cmake" | grep . && fail "a subproject builds our $folder"
    done
    ;;
plain_copy)
    cp -r "$source/include" "$work/include"
    "$cxx" -std=c++20 -Wall -Wextra -Werror -I "$work/include" "$here/main.cpp" -o "$work/consumer"
    check_output "$("$work/consumer")"
    ;;
parent_untouched)
    for build_type in "" Debug; do
        "$cmake" -S "$here/parent" -B "$work/parent$build_type" "-DNUMFMT_SOURCE=$source" "-DCMAKE_BUILD_TYPE=$build_type" \
            -DCMAKE_CXX_FLAGS=-DPARENT_FLAG -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
        grep -qx "CMAKE_BUILD_TYPE:STRING=$build_type" "$work/parent$build_type/CMakeCache.txt" ||
            fail "the parent's build type '$build_type' was changed"
        build_and_run "parent$build_type"
    done
    ;;
without_json)
    # Nobody who does not ask for io is asked for nlohmann-json; whoever asks for io is told what is missing.
    hidden=-DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON
    install_numfmt
    configure core $hidden
    build_and_run core
    configure optional $hidden -DCONSUMER_OPTIONAL_COMPONENTS=io
    build_and_run optional
    expect_error "component 'io' cannot be used: it needs nlohmann-json 3.10 or later" configure io $hidden -DCONSUMER_COMPONENTS=io
    configure subproject $hidden -DCONSUMER_MODE=add_subdirectory "-DNUMFMT_SOURCE=$source"
    build_and_run subproject
    expect_error "nlohmann_json >= 3.10 is not installed.*nlohmann-json3-dev" \
        configure subproject_io $hidden -DCONSUMER_MODE=add_subdirectory "-DNUMFMT_SOURCE=$source" \
        -DCONSUMER_COMPONENTS=io -DFETCHCONTENT_FULLY_DISCONNECTED=ON
    rm -rf "$prefix" "$work/numfmt"
    install_numfmt $hidden -DNUMFMT_WITH_IO=OFF
    expect_error "component 'io' cannot be used: this installation does not have it" configure no_io -DCONSUMER_COMPONENTS=io
    ;;
io)
    install_numfmt
    configure installed -DCONSUMER_COMPONENTS=io
    build_and_run installed
    configure subproject -DCONSUMER_MODE=add_subdirectory "-DNUMFMT_SOURCE=$source" -DCONSUMER_COMPONENTS=io
    build_and_run subproject
    ;;
simd)
    "$cmake" --install "$extra" --prefix "$prefix"
    check_installed
    [ -n "$(find "$prefix" -name 'libnumfmt_simd.*')" ] || fail "the library was not installed"
    configure installed -DCONSUMER_COMPONENTS=simd
    build_and_run installed
    # Nobody who does not ask for simd is asked for Highway; whoever asks for it is told what is missing.
    hidden=-DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON
    configure core $hidden
    build_and_run core
    expect_error "component 'simd' cannot be used: it needs Highway 1.0.3 or later" configure missing $hidden -DCONSUMER_COMPONENTS=simd
    # As a subproject, configured alone: the library takes minutes to compile.
    configure subproject -DCONSUMER_MODE=add_subdirectory "-DNUMFMT_SOURCE=$source" -DCONSUMER_COMPONENTS=simd
    grep -q numfmt_simd.cpp "$work/subproject/compile_commands.json" || fail "a subproject does not build numfmt::simd"
    if grep -E -e '-Werror|-Wall|-fsanitize' "$work/subproject/compile_commands.json"; then
        fail "our development flags reached the compile commands of a subproject"
    fi
    ;;
cuda)
    compiler=("-DCMAKE_CUDA_COMPILER=$extra" "-DCMAKE_CUDA_HOST_COMPILER=$cxx" -DCMAKE_CUDA_ARCHITECTURES=80)
    install_numfmt -DNUMFMT_WITH_CUDA=ON -DNUMFMT_WITH_IO=OFF
    configure installed "${compiler[@]}" -DCONSUMER_COMPONENTS=cuda
    build_and_run installed
    configure subproject "${compiler[@]}" -DCONSUMER_MODE=add_subdirectory "-DNUMFMT_SOURCE=$source" -DCONSUMER_COMPONENTS=cuda
    build_and_run subproject
    ;;
*)
    fail "no such case"
    ;;
esac
echo "consumer check '$case_name': ok"
