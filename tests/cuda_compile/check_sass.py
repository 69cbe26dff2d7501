#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Compiles a CUDA source for one architecture and looks at the machine code: instructions that must be there, and no
# local memory.
"""usage: check_sass.py --nvcc NVCC --include DIR --work DIR --arch 90a [--want REGEX]... [--counts] SOURCE

Needs cuobjdump: on PATH, beside nvcc, or from the package nvidia-cuda-cuobjdump. Prints "SKIPPED: ..." and exits with 77
where there is none, unless NUMFMT_REQUIRE_CUOBJDUMP is set in the environment.
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
    candidates = [shutil.which("cuobjdump"), pathlib.Path(nvcc).resolve().parent / "cuobjdump"]
    for root in {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"], *sys.path}:
        candidates += pathlib.Path(root or ".").glob("nvidia/*/bin/cuobjdump")
    return next((str(c) for c in candidates if c and os.access(c, os.X_OK)), None)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    for name in ("--nvcc", "--include", "--work", "--arch"):
        parser.add_argument(name, required=True)
    parser.add_argument("--want", action="append", default=[])
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("source")
    options = parser.parse_args()
    cuobjdump = find_cuobjdump(options.nvcc)
    if cuobjdump is None:
        print("SKIPPED: cuobjdump is not installed (pip install nvidia-cuda-cuobjdump)")
        return 1 if os.environ.get("NUMFMT_REQUIRE_CUOBJDUMP") else 77
    work = pathlib.Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    cubin = work / f"{pathlib.Path(options.source).stem}.{options.arch}.cubin"
    subprocess.run([options.nvcc, "-std=c++20", "-O2", f"-arch=sm_{options.arch}", "-Werror", "all-warnings", "-I",
                    options.include, "-cubin", options.source, "-o", str(cubin)], check=True)
    sass = subprocess.run([cuobjdump, "-sass", str(cubin)], check=True, capture_output=True, text=True).stdout
    kernels = re.split(r"Function : ", sass)[1:]
    failures = [f"no instruction matches '{w}'" for w in options.want if not re.search(w, sass)]
    if not kernels:
        failures.append("no kernel was found")
    for kernel in kernels:
        name = kernel.split("\n", 1)[0]
        kinds = collections.Counter(i.split(".")[0] for i in INSTRUCTION.findall(kernel) if i != "NOP")
        if kinds["STL"] or kinds["LDL"]:
            failures.append(f"{name} uses local memory: {kinds['STL']} stores, {kinds['LDL']} loads")
        if options.counts:
            print(f"{name}: {sum(kinds.values())}", dict(kinds.most_common()))
    for failure in failures:
        print(f"sm_{options.arch}: {failure}")
    print(f"sm_{options.arch}: {len(kernels)} kernels, {len(failures)} faults")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
