#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Checks that a piece of code does not compile, and for the right reason.
"""usage: check.py --cxx CXX --include INCLUDE_DIR FILE.cpp
       check.py --cxx CXX --self-test

FILE.cpp must compile as it is, and must fail to compile with -DNUMFMT_COMPILE_FAIL; what the compiler then says must
match the regular expression (Python's) of each line "// expect: REGEX" in the file. There must be at least one.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def compile_file(cxx, include, file, define):
    """(succeeded, what the compiler said)"""
    with tempfile.TemporaryDirectory() as directory:
        command = [cxx, "-std=c++20", *(["-I", include] if include else []), *define, "-c", str(file),
                   "-o", os.path.join(directory, "unit.o")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              env=dict(os.environ, LC_ALL="C"))
    return done.returncode == 0, done.stdout


def check(cxx, include, file):
    """What is wrong, or an empty string."""
    text = pathlib.Path(file).read_text(encoding="utf-8")
    expected = re.findall(r"^\s*//\s*expect:\s*(.*\S)\s*$", text, re.MULTILINE)
    if not expected:
        return "it has no line '// expect: REGEX'"
    good, output = compile_file(cxx, include, file, [])
    if not good:
        return f"it must compile without -DNUMFMT_COMPILE_FAIL, but does not:\n{output}"
    good, output = compile_file(cxx, include, file, ["-DNUMFMT_COMPILE_FAIL"])
    if good:
        return "it must not compile with -DNUMFMT_COMPILE_FAIL, but does"
    for regex in expected:
        if not re.search(regex, output):
            return f"it fails to compile, but not with '{regex}':\n{output}"
    return ""


# Fabricated cases: the text, and a word of what must be reported ("" for a good case).
SELF_TEST = [
    ("#ifdef NUMFMT_COMPILE_FAIL\nstatic_assert(sizeof(int) == 1, \"int is wide\");\n#endif\n// expect: int is wide\n", ""),
    ("#ifdef NUMFMT_COMPILE_FAIL\nint f() { return 1; }\n#endif\n// expect: int\n", "must not compile"),
    ("int f() { return undeclared; }\n// expect: undeclared\n", "must compile without"),
    ("#ifdef NUMFMT_COMPILE_FAIL\n#error other\n#endif\n// expect: this one\n", "not with 'this one'"),
    ("#ifdef NUMFMT_COMPILE_FAIL\n#error one\n#endif\n// expect: one\n// expect: two\n", "not with 'two'"),
    ("#ifdef NUMFMT_COMPILE_FAIL\n#error other\n#endif\n", "no line"),
    # The body of a template counts only where it is instantiated, so the check must really compile.
    ("template <class T> void f(T) { static_assert(sizeof(T) == 1, \"too wide\"); }\n#ifdef NUMFMT_COMPILE_FAIL\n"
     "void g() { f(1); }\n#endif\n// expect: too wide\n", ""),
]


def self_test(cxx):
    faults = 0
    with tempfile.TemporaryDirectory() as directory:
        for i, (text, expected) in enumerate(SELF_TEST):
            file = pathlib.Path(directory) / f"case_{i}.cpp"
            file.write_text(text, encoding="utf-8")
            found = check(cxx, None, file)
            good = expected in found if expected else found == ""
            print(f"self-test: case {i}: {'as expected' if good else 'WRONG'}: {found.splitlines()[0] if found else 'no fault'}")
            faults += not good
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--include")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test(options.cxx)
    if options.file is None:
        parser.error("FILE.cpp is missing")
    wrong = check(options.cxx, options.include, options.file)
    print(f"{options.file}: {wrong or 'does not compile, as it should'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
