#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Checks with one compiler that every header under include/numfmt compiles alone (and twice in a row) under the strict
# warnings, and that all of them together can be included by two translation units of one program.
"""usage: check_headers.py INCLUDE_DIR --cxx CXX --work DIR [--system DIRS] [--only ROOM...] [--leave-out ROOM...] [--flags F...]
       check_headers.py --self-test --cxx CXX --work DIR [--flags F...]   (--flags comes last)

INCLUDE_DIR  the folder that holds numfmt/
--system     include folders of third-party headers, separated by ';'
--only       rooms or files, relative to numfmt/, that are looked at; default: all
--leave-out  rooms or files, relative to numfmt/, that need another compiler or a library that is not there
"""
import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys


class Compiler:
    def __init__(self, cxx, flags, system):
        # A standard folder given with -isystem would break #include_next.
        folders = [f for f in system.split(";") if f and os.path.realpath(f) not in ("/usr/include", "/usr/local/include")]
        self.command = [cxx, "-std=c++20", *flags] + [part for f in folders for part in ("-isystem", f)]

    def run(self, *arguments):
        """(succeeded, what the compiler said)"""
        environment = dict(os.environ, LC_ALL="C")
        done = subprocess.run([*self.command, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=environment, text=True, errors="replace")
        return done.returncode == 0, done.stdout


def find_headers(include_dir, leave_out, only):
    library = include_dir / "numfmt"
    headers = []
    for path in sorted([*library.rglob("*.hpp"), *library.rglob("*.h")]):
        relative = path.relative_to(library)

        def is_in(rooms):
            return any(relative == pathlib.Path(room) or pathlib.Path(room) in relative.parents for room in rooms)

        if not is_in(leave_out) and (not only or is_in(only)):
            headers.append("numfmt/" + relative.as_posix())
    return headers


def check(include_dir, compiler, work, leave_out=(), only=()):
    """Names of what failed; prints the compiler's messages."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    headers = find_headers(include_dir, leave_out, only)
    if not headers:
        print(f"no headers under {include_dir}/numfmt")
        return ["no headers"]
    failed = []

    def compile_alone(header):
        unit = work / (header.replace("/", "__") + ".cpp")
        unit.write_text(f"#include <{header}>\n#include <{header}>\n", encoding="utf-8")
        return compiler.run("-I", include_dir, "-fsyntax-only", unit)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for header, (good, output) in zip(headers, pool.map(compile_alone, headers)):
            if not good:
                failed.append(header)
                print(f"--- {header} does not compile alone:\n{output}")
    if failed:
        return failed

    # Two units, the second with the headers in reverse order: a function that should be inline is defined twice, and a
    # header that relies on what came before it fails in one of the two.
    units = []
    for name, order, body in (("unit_a", headers, "int other_unit();\nint main() { return other_unit(); }\n"),
                              ("unit_b", headers[::-1], "int other_unit();\nint other_unit() { return 0; }\n")):
        unit = work / (name + ".cpp")
        unit.write_text("".join(f"#include <{h}>\n" for h in order) + body, encoding="utf-8")
        units.append(unit)
    program = work / "two_units"
    good, output = compiler.run("-I", include_dir, *units, "-o", program)
    if not good:
        print(f"--- two translation units with every header do not make one program:\n{output}")
        return ["two units"]
    if subprocess.run([str(program)]).returncode != 0:
        print("--- the program of two translation units fails")
        return ["two units"]
    print(f"{len(headers)} headers compile alone and in two translation units of one program")
    return []


# Fabricated trees: what each consists of, what must be reported, and further arguments of check().
SELF_TEST = [
    ("good", {"a.hpp": "#pragma once\ninline int f() { return 1; }\n"}, []),
    ("not self-contained", {"a.hpp": "#pragma once\nstruct s {};\n", "b.hpp": "#pragma once\ninline s g() { return {}; }\n"},
     ["numfmt/b.hpp"]),
    ("no include guard", {"a.hpp": "struct s {};\n"}, ["numfmt/a.hpp"]),
    ("warning", {"a.hpp": "#pragma once\ninline int f(double x) { return x; }\n"}, ["numfmt/a.hpp"]),
    ("not inline", {"a.hpp": "#pragma once\nint f();\nint f() { return 1; }\n"}, ["two units"]),
    ("clash", {"a.hpp": "#pragma once\nstruct s {};\n", "io/b.hpp": "#pragma once\nstruct s { int i; };\n"}, ["two units"]),
    ("empty", {}, ["no headers"]),
    ("name in .h", {"a.h": "struct s {};\n"}, ["numfmt/a.h"]),
    ("room left out", {"a.hpp": "#pragma once\n", "io/b.hpp": "wrong"}, [], {"leave_out": ["io"]}),
    ("one room", {"a.hpp": "wrong", "io/b.hpp": "#pragma once\n"}, [], {"only": ["io"]}),
    ("fault in one room", {"a.hpp": "#pragma once\n", "io/b.hpp": "wrong"}, ["numfmt/io/b.hpp"], {"only": ["io"]}),
    ("no such room", {"a.hpp": "#pragma once\n"}, ["no headers"], {"only": ["io"]}),
]


def self_test(compiler, work):
    faults = 0
    for name, files, expected, *further in SELF_TEST:
        tree = work / name.replace(" ", "_")
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        for file, text in files.items():
            path = tree / "numfmt" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        found = check(tree, compiler, tree / "work", **(further[0] if further else {}))
        verdict = "as expected" if found == expected else f"WRONG, expected {expected}"
        print(f"self-test: {name}: reported {found}, {verdict}\n")
        faults += found != expected
    return faults


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("include_dir", nargs="?", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--system", default="")
    parser.add_argument("--only", nargs="*", default=[], action="extend")
    parser.add_argument("--leave-out", nargs="*", default=[], action="extend")
    # Everything after --flags belongs to the compiler; they begin with '-', which argparse would take for its own.
    arguments = sys.argv[1:]
    flags = []
    if "--flags" in arguments:
        flags = arguments[arguments.index("--flags") + 1:]
        arguments = arguments[:arguments.index("--flags")]
    options = parser.parse_args(arguments)
    compiler = Compiler(options.cxx, flags, options.system)
    if options.self_test:
        return 1 if self_test(compiler, options.work) else 0
    if options.include_dir is None:
        parser.error("INCLUDE_DIR is missing")
    return 1 if check(options.include_dir.resolve(), compiler, options.work, options.leave_out, options.only) else 0


if __name__ == "__main__":
    sys.exit(main())
