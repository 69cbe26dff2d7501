# SPDX-License-Identifier: MIT
"""Runs the mutants of tests/mutants.toml.

A mutant names a header (or several by a pattern), an exact piece of text that occurs once in it, what to put there
instead, and the test case that must then fail; "x86_flags" are further compiler flags on an x86-64 machine. The test's source is first built and run against the untouched headers, so that a test that fails anyway
does not count as a catch; then against a copy with the fault. A fault is caught if the named test case fails, or if a
static_assert stops the compilation.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
CXX = os.environ.get("CXX", "g++")
FLAGS = ["-std=c++20", "-O1", "-w"]
LIMIT_S = 90


def flags_of(mutant):
    return mutant.get("x86_flags", "") if platform.machine() in ("x86_64", "AMD64") else ""


def build(source, flags, include, work, main_object):
    binary = work / "test"
    command = [CXX, *FLAGS, *flags.split(), f"-I{include}", f"-I{TESTS}", f'-DNUMFMT_TEST_DATA_DIR="{TESTS / "golden"}"',
               f'-DNUMFMT_SAMPLE_DIR="{ROOT / "examples" / "data"}"', *(str(TESTS / part) for part in source.split()), str(main_object), "-o", str(binary)]
    return subprocess.run(command, capture_output=True, text=True), binary


def run(binary, case):
    escaped = case.replace(",", "\\,")
    return subprocess.run([str(binary), f"--test-case={escaped}", "--no-version"], capture_output=True, text=True, timeout=LIMIT_S * 4)


def ran_one(output):
    # doctest's summary: "[doctest] test cases: 1 | 1 passed | ..."
    for line in output.splitlines():
        if "test cases:" in line:
            return int(line.split("test cases:")[1].split("|")[0]) >= 1
    return False


def baseline(key, cases, work, main_object):
    source, flags = key
    work.mkdir(parents=True)
    built, binary = build(source, flags, ROOT / "include", work, main_object)
    if built.returncode != 0:
        return f"{source} does not compile without a fault:\n{built.stdout}{built.stderr}"
    for case in sorted(cases):
        result = run(binary, case)
        if not ran_one(result.stdout):
            return f"{source} has no test case '{case}'"
        if result.returncode != 0:
            return f"'{case}' fails without a fault:\n{result.stdout}"
    return None


def try_mutant(mutant, work, main_object):
    started = time.monotonic()
    work.mkdir(parents=True)
    shutil.copytree(ROOT / "include", work / "include")
    headers = list((work / "include" / "numfmt").glob(mutant["file"]))
    counts = [header.read_text().count(mutant["find"]) for header in headers]
    count = sum(counts)
    if count != 1:
        return "error", f"'{mutant['find']}' occurs {count} times in {mutant['file']}, not once", 0.0
    header = headers[counts.index(1)]
    header.write_text(header.read_text().replace(mutant["find"], mutant["replace"]))
    built, binary = build(mutant["source"], flags_of(mutant), work / "include", work, main_object)
    seconds = time.monotonic() - started
    if built.returncode != 0:
        if "static assertion failed" in built.stderr or "static_assert failed" in built.stderr:
            return "caught", f"a static_assert in {mutant['source']}", seconds
        return "error", f"the planted fault does not compile:\n{built.stderr[:2000]}", seconds
    try:
        result = run(binary, mutant["test"])
        failed = result.returncode != 0
    except subprocess.TimeoutExpired:
        failed = False
    seconds = time.monotonic() - started
    if failed and seconds > LIMIT_S:
        return "error", f"caught by '{mutant['test']}', but only after {seconds:.0f} s (limit {LIMIT_S})", seconds
    return ("caught" if failed else "survived"), f"'{mutant['test']}' ({mutant['source']})", seconds


def main():
    parser = argparse.ArgumentParser(prog="mutate.sh", description="Plants faults and shows which test catches each.")
    parser.add_argument("names", nargs="*", help="only these faults")
    parser.add_argument("--list", action="store_true", help="print the faults and stop")
    options = parser.parse_args()
    mutants = tomllib.loads((TESTS / "mutants.toml").read_text())["mutant"]
    unknown = set(options.names) - {m["name"] for m in mutants}
    if unknown:
        sys.exit(f"mutate.sh: no such fault: {', '.join(sorted(unknown))}")
    if options.names:
        mutants = [m for m in mutants if m["name"] in options.names]
    if options.list:
        for m in mutants:
            print(f"{m['name']:<28} {m['file']:<22} {m['test']}")
        return 0

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        main_object = folder / "main.o"
        subprocess.run([CXX, *FLAGS, f"-I{ROOT / 'include'}", f"-I{TESTS}", "-c", str(TESTS / "support" / "doctest_main.cpp"), "-o",
                        str(main_object)], check=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            cases = collections.defaultdict(set)  # of each program
            for m in mutants:
                cases[m["source"], flags_of(m)].add(m["test"])
            jobs = [pool.submit(baseline, key, cases[key], folder / f"baseline{i}", main_object) for i, key in enumerate(sorted(cases))]
            problems = [p for p in (job.result() for job in jobs) if p]
            if problems:
                sys.exit("mutate.sh: " + "\n".join(problems))
            jobs = [pool.submit(try_mutant, m, folder / f"mutant{i}", main_object) for i, m in enumerate(mutants)]
            caught = 0
            for mutant, job in zip(mutants, jobs):
                verdict, by, seconds = job.result()
                caught += verdict == "caught"
                print(f"{verdict:<9} {mutant['name']:<28} {seconds:5.1f} s  {by}", flush=True)
    print(f"{len(mutants)} faults planted, {caught} caught")
    return 0 if caught == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
