#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Measures how much longer a translation unit takes to compile because it includes a numfmt header. Prints JSON.
"""usage: compile_time.py [--cxx CXX] [--include DIR] [--header H] [--runs N] [--limit S] [--check] [--out FILE]

Compiles a unit with only #include <H> and one with nothing, alternately, N times each, with -std=c++20 -O2, and compares
the medians of the wall-clock times. --check: exit code 1 if the difference is above the limit in seconds.
"""
import argparse
import hashlib
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

FLAGS = ["-std=c++20", "-O2"]
MAIN = "int main() { return 0; }\n"


def timed(command, environment):
    """(wall seconds, processor seconds) of one compilation."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_line(command, folder=None):
    try:
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def source_hash(include):
    digest = hashlib.sha256()
    for path in sorted(p for p in include.rglob("*") if p.is_file()):
        digest.update(path.relative_to(include).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--include", type=pathlib.Path, default=root / "include")
    parser.add_argument("--header", default="numfmt/mxfp4.hpp")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--limit", type=float, default=0.25)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error(f"--runs is {options.runs}, must be at least 1")
    if not (options.include / options.header).is_file():
        parser.error(f"no header {options.header} in {options.include}")

    environment = dict(os.environ, CCACHE_DISABLE="1")
    times = {"empty": [], "header": []}
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        commands = {}
        for name, text in (("empty", MAIN), ("header", f"#include <{options.header}>\n" + MAIN)):
            (folder / f"{name}.cpp").write_text(text, encoding="utf-8")
            commands[name] = [options.cxx, *FLAGS, "-I", str(options.include), "-c", str(folder / f"{name}.cpp"),
                              "-o", str(folder / f"{name}.o")]
        for command in commands.values():  # once each, to bring the files into memory
            timed(command, environment)
        for _ in range(options.runs):
            for name, command in commands.items():
                times[name].append(timed(command, environment))

    def median(name, which):
        return statistics.median(run[which] for run in times[name])

    extra = median("header", 0) - median("empty", 0)
    report = {
        "benchmark": "compile_time",
        "header": options.header,
        "unit": "s",
        "runs": options.runs,
        "empty_median": round(median("empty", 0), 4),
        "header_median": round(median("header", 0), 4),
        "extra": round(extra, 4),
        "extra_processor_time": round(median("header", 1) - median("empty", 1), 4),
        "limit": options.limit,
        "within_limit": extra <= options.limit,
        "compiler": first_line([options.cxx, "--version"]),
        "flags": " ".join(FLAGS),
        "device": platform.machine() + ", " + str(os.cpu_count()) + " cores",
        "commit": first_line(["git", "rev-parse", "HEAD"], root),
        "source_hash": source_hash(options.include),
    }
    text = json.dumps(report, indent=2)
    print(text)
    if options.out:
        pathlib.Path(options.out).write_text(text + "\n", encoding="utf-8")
    return 1 if options.check and not report["within_limit"] else 0


if __name__ == "__main__":
    sys.exit(main())
