#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Compiles a CUDA source for one architecture and looks at the machine code: instructions that must be there, and no
# local memory.
"""usage: check_sass.py --nvcc NVCC --include DIR --work DIR --arch 90a [--want REGEX]... [--counts] SOURCE
       check_sass.py --self-test --nvcc NVCC --work DIR

Needs cuobjdump and nvdisasm, in one folder: on PATH, beside nvcc, or from the packages of tests/cuda_compile/requirements.txt in
the Python that runs this. Where there are none it prints "SKIPPED: ..." and exits with 77, or "FAILED: ..." and 1 if
NUMFMT_REQUIRE_CUOBJDUMP is set in the environment.
--want    a regular expression that an instruction's name must match, from its beginning on
--counts  also print how many instructions of each kind every kernel has
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\d+\s+)?([A-Z][A-Z0-9_.]+)", re.M)


def find_cuobjdump(nvcc):
    folders = [pathlib.Path(nvcc).resolve().parent]
    if shutil.which("cuobjdump"):
        folders.insert(0, pathlib.Path(shutil.which("cuobjdump")).parent)
    for root in sorted({sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"], *sys.path}):
        folders += sorted(pathlib.Path(root or ".").glob("nvidia/*/bin"))
    return next((f / "cuobjdump" for f in folders if all(os.access(f / tool, os.X_OK) for tool in ("cuobjdump", "nvdisasm"))), None)


def compile_and_look(nvcc, cuobjdump, source, work, arch, flags=(), want=(), counts=False):
    """(number of kernels, what is wrong)"""
    cubin = work / f"{pathlib.Path(source).stem}.{arch}.cubin"
    subprocess.run([nvcc, "-std=c++20", "-O2", f"-arch=sm_{arch}", "-Werror", "all-warnings", *flags, "-cubin", str(source), "-o",
                    str(cubin)], check=True)
    environment = dict(os.environ, PATH=f"{cuobjdump.parent}{os.pathsep}{os.environ.get('PATH', '')}")  # it starts nvdisasm
    sass = subprocess.run([str(cuobjdump), "-sass", str(cubin)], check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    kernels = re.split(r"Function : ", sass)[1:]
    instructions = set(INSTRUCTION.findall(sass))
    failures = [f"no instruction matches '{w}'" for w in want if not any(re.match(w, i) for i in instructions)]
    if not kernels:
        failures.append("no kernel was found")
    for kernel in kernels:
        name = kernel.split("\n", 1)[0]
        kinds = collections.Counter(i.split(".")[0] for i in INSTRUCTION.findall(kernel) if i != "NOP")
        if not kinds:
            failures.append(f"{name} has no instructions")
        if kinds["STL"] or kinds["LDL"]:
            failures.append(f"{name} uses local memory: {kinds['STL']} stores, {kinds['LDL']} loads")
        if counts:
            print(f"{name}: {sum(kinds.values())}", dict(kinds.most_common()))
    return len(kernels), failures


# What is compiled, what is wanted of it, and how what is reported begins.
SELF_TEST = [
    ("__global__ void add(int* p) { p[threadIdx.x] += 1; }", ["IADD3|VIADD"], []),
    ("__global__ void add(int* p) { p[threadIdx.x] += 1; }", ["F2FP.SATFINITE.E4M3"], ["no instruction matches"]),
    # A function's name, or the middle of an instruction's, is no instruction.
    ("extern \"C\" __global__ void HMMA(int* p) { p[threadIdx.x] += 1; }", ["HMMA", "ADD"], ["no instruction matches"] * 2),
    ("__global__ void pick(const int* in, int* out) { int a[64]; for (int i = 0; i < 64; ++i) a[i] = in[i] * in[i + 1];\n"
     "for (int i = 0; i < 64; ++i) a[in[i + 70] & 63] += i; out[0] = a[in[65] & 63]; }", [], ["_Z4pickPKiPi uses local memory"]),
    ("int host();", [], ["no kernel was found"]),
]


def self_test(nvcc, cuobjdump, work):
    faults = 0
    for number, (text, want, expected) in enumerate(SELF_TEST):
        source = work / f"self_test_{number}.cu"
        source.write_text(text + "\n", encoding="utf-8")
        _, found = compile_and_look(nvcc, cuobjdump, source, work, "90a", want=want)
        if len(found) != len(expected) or not all(f.startswith(e) for f, e in zip(found, expected)):
            print(f"self-test: {text}: reported {found}, wanted {expected}")
            faults += 1
    print(f"self-test: {len(SELF_TEST)} sources, {faults} judged wrongly")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--include")
    parser.add_argument("--arch")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--want", action="append", default=[])
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("source", nargs="?")
    options = parser.parse_args()
    if not options.self_test and None in (options.include, options.arch, options.source):
        parser.error("--include, --arch and SOURCE are needed")
    cuobjdump = find_cuobjdump(options.nvcc)
    if cuobjdump is None:
        required = bool(os.environ.get("NUMFMT_REQUIRE_CUOBJDUMP"))
        print(f"{'FAILED' if required else 'SKIPPED'}: cuobjdump and nvdisasm are not installed "
              "(pip install -r tests/cuda_compile/requirements.txt)")
        return 1 if required else 77
    options.work.mkdir(parents=True, exist_ok=True)
    if options.self_test:
        return self_test(options.nvcc, cuobjdump, options.work)
    kernels, failures = compile_and_look(options.nvcc, cuobjdump, options.source, options.work, options.arch,
                                         ["-I", options.include], options.want, options.counts)
    for failure in failures:
        print(f"sm_{options.arch}: {failure}")
    print(f"sm_{options.arch}: {kernels} kernels, {len(failures)} faults")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
