#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Checks who includes whom under include/numfmt: the dependency rule between the rooms, which standard and third-party
# headers a room may use, that every included numfmt header exists, and that there is no cycle.
"""usage: check_includes.py INCLUDE_DIR | check_includes.py --self-test

Prints "file:line: what is wrong" for each offence. Exit code 1 if there is one.
"""
import pathlib
import re
import sys
import tempfile

# The rule, from left to right: io, calibrate, accuracy, simd, cuda -> formats -> block, accumulate -> core.
# "formats" are the headers directly in include/numfmt. A room may always include itself.
BELOW_FORMATS = {"block", "accumulate", "core"}
BELOW_BACKENDS = {"formats"} | BELOW_FORMATS
MAY_INCLUDE = {
    "core": set(),
    "block": {"core"},
    "accumulate": {"core"},
    "formats": BELOW_FORMATS,
    "io": BELOW_BACKENDS,
    "calibrate": BELOW_BACKENDS,
    "accuracy": BELOW_BACKENDS,
    "simd": BELOW_BACKENDS,
    "cuda": BELOW_BACKENDS,
}

# Headers directly in include/numfmt that are the front door of a room rather than a format.
ROOM_OF_FILE = {"simd.hpp": "simd", "cuda.hpp": "cuda", "io.hpp": "io", "accuracy.hpp": "accuracy", "calibrate.hpp": "calibrate"}

# Standard headers: the few that a room is held to; any of them where a room is not listed.
STANDARD_ALLOWED = {"core": {"cstdint", "cstddef", "type_traits", "limits"}}
STANDARD_ALLOWED_IN_FILE = {"core/std.hpp": None}  # None: any; opt-in, so that nobody else pays for <ostream>
STANDARD_FORBIDDEN = {
    "iostream": "it adds a static initialiser to every user; the library never prints",
    "regex": "it is slow to compile and to run",
}

# Third-party and operating-system headers, as patterns, per room. A room that is not listed has none.
THIRD_PARTY = {
    "io": [r"nlohmann/.*", r"fcntl\.h", r"unistd\.h", r"sys/(mman|stat|types)\.h", r"windows\.h"],  # mapped files
    "simd": [r"hwy/.*"],
    "cuda": [r"cuda.*", r"cooperative_groups.*", r"vector_types\.h", r"sm_.*"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
INCLUDE_OTHER = re.compile(r"^\s*#\s*include\b(?!\s*[<\"])")
HEADER_SUFFIXES = {".hpp", ".h", ".cuh", ".inc"}


def room_of(path):
    """Room of a path relative to include/numfmt."""
    if len(path.parts) > 1:
        return path.parts[0]
    return ROOM_OF_FILE.get(path.name, "formats")


def code_lines(text):
    """(number, line) with comments removed, so that an #include in a comment does not count."""
    def blank(match):
        return match.group(0) if match.group(0)[0] == '"' else "\n" * match.group(0).count("\n")
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', blank, text, flags=re.DOTALL)
    return enumerate(text.splitlines(), 1)


def check_tree(include_dir):
    """All offences under include_dir/numfmt, as strings "file:line: what is wrong"."""
    root = pathlib.Path(include_dir).resolve()
    library = root / "numfmt"
    files = sorted(p for p in library.rglob("*") if p.is_file() and p.suffix in HEADER_SUFFIXES)
    offences = []
    edges = {}
    if not files:
        offences.append(f"{library}: no headers found")
    for file in files:
        here = file.relative_to(library)
        room = room_of(here)
        edges[here] = []

        def offend(line, what):
            offences.append(f"{file}:{line}: {what}")

        if room not in MAY_INCLUDE:
            offend(1, f"room '{room}' is not in the rule of {pathlib.Path(__file__).name}")
            continue
        for line, code in code_lines(file.read_text(encoding="utf-8")):
            if INCLUDE_OTHER.match(code) and room != "simd":  # Highway's foreach_target.h is included by macro
                offend(line, "an #include that is not a plain <...> or \"...\" cannot be checked")
                continue
            match = INCLUDE.match(code)
            if not match:
                continue
            quoted, name = match.group(1) == '"', match.group(2)
            target = (file.parent / name).resolve() if quoted else None
            if target is None or not target.is_file():
                target = (root / name).resolve()
            if target.is_file() and library in target.parents:
                there = target.relative_to(library)
                edges[here].append((line, there))
                if room_of(there) != room and room_of(there) not in MAY_INCLUDE[room]:
                    offend(line, f"{room} must not include {room_of(there)} ({there})")
            elif quoted or name.startswith("numfmt/"):
                offend(line, f"no such header: {name}")
            elif re.fullmatch(r"[a-z0-9_]+", name):  # a standard header
                if name in STANDARD_FORBIDDEN:
                    offend(line, f"<{name}> is forbidden: {STANDARD_FORBIDDEN[name]}")
                allowed = STANDARD_ALLOWED_IN_FILE.get(str(here), STANDARD_ALLOWED.get(room))
                if allowed is not None and name not in allowed:
                    offend(line, f"{room} must not include <{name}>: only {', '.join(sorted(allowed))}")
            elif not any(re.fullmatch(pattern, name) for pattern in THIRD_PARTY.get(room, [])):
                offend(line, f"{room} must not include <{name}>: not a standard header, and not a library of that room")
    return offences + find_cycles(library, edges)


def find_cycles(library, edges):
    """One offence per cycle; #pragma once would hide it until somebody includes the headers in another order."""
    offences, done = [], set()

    def visit(node, trail):
        if node in trail:
            cycle = trail[trail.index(node):] + [node]
            line = next(line for line, there in edges[trail[-1]] if there == node)
            offences.append(f"{library / trail[-1]}:{line}: include cycle: {' -> '.join(map(str, cycle))}")
        elif node not in done:
            for _, there in edges.get(node, []):
                visit(there, trail + [node])
            done.add(node)

    for node in sorted(edges):
        visit(node, [])
    return offences


# A bad tree: each file with its text, and the lines that must be reported (with a word of the message).
SELF_TEST = {
    "core/good.hpp": ("#pragma once\n#include <cstdint>\n// #include <vector>\n/* #include <iostream>\n#include <map> */\n", {}),
    "core/std.hpp": ("#include <ostream>\n#include \"good.hpp\"\n", {}),
    "core/heavy.hpp": ("#include <cstdint>\n#include <cmath>\n", {2: "cmath"}),
    "core/upwards.hpp": ("\n\n#include \"../block/good.hpp\"\n", {3: "core must not include block"}),
    "core/cycle_a.hpp": ("#include \"cycle_b.hpp\"\n", {}),
    "core/cycle_b.hpp": ("#include <numfmt/core/cycle_a.hpp>\n", {1: "cycle"}),
    "block/good.hpp": ("#include <numfmt/core/good.hpp>\n#include <span>\n", {}),
    "block/sideways.hpp": ("#include <numfmt/accumulate/good.hpp>\n", {1: "block must not include accumulate"}),
    "block/upwards.hpp": ("#include \"../fp.hpp\"\n", {1: "block must not include formats"}),
    "accumulate/good.hpp": ("#include <numfmt/core/good.hpp>\n", {}),
    "fp.hpp": ("#include \"core/good.hpp\"\n#include \"block/good.hpp\"\n#include \"accumulate/good.hpp\"\n", {}),
    "fp_bad.hpp": ("#include <numfmt/io/good.hpp>\n", {1: "formats must not include io"}),
    "io/good.hpp": ("#include <nlohmann/json.hpp>\n#include <numfmt/fp.hpp>\n#include <vector>\n", {}),
    "io/prints.hpp": ("#include <iostream>\n", {1: "forbidden"}),
    "accuracy/sideways.hpp": ("#include <numfmt/io/good.hpp>\n", {1: "accuracy must not include io"}),
    "accuracy/third_party.hpp": ("#include <nlohmann/json.hpp>\n", {1: "nlohmann/json.hpp"}),
    "calibrate/missing.hpp": ("#include <numfmt/nowhere.hpp>\n#include \"nowhere.hpp\"\n", {1: "no such", 2: "no such"}),
    "calibrate/macro.hpp": ("#define H <vector>\n#include H\n", {2: "cannot be checked"}),
    "simd.hpp": ("#include <numfmt/cuda/good.cuh>\n", {1: "simd must not include cuda"}),
    "cuda/good.cuh": ("#include <cuda_fp8.h>\n#include <numfmt/fp.hpp>\n", {}),
    "attic/file.hpp": ("#pragma once\n", {1: "room 'attic'"}),
}


def self_test():
    with tempfile.TemporaryDirectory() as directory:
        library = pathlib.Path(directory).resolve() / "numfmt"
        for name, (text, _) in SELF_TEST.items():
            (library / name).parent.mkdir(parents=True, exist_ok=True)
            (library / name).write_text(text, encoding="utf-8")
        found = check_tree(directory)
        faults = 0
        for name, (_, expected) in SELF_TEST.items():
            reported = [o for o in found if o.startswith(f"{library / name}:")]
            wanted = [(f"{library / name}:{line}: ", word) for line, word in expected.items()]
            missed = [w for w in wanted if not any(o.startswith(w[0]) and w[1] in o for o in reported)]
            extra = [o for o in reported if not any(o.startswith(w[0]) and w[1] in o for w in wanted)]
            for prefix, word in missed:
                print(f"self-test: not reported: {prefix}... {word}")
            for offence in extra:
                print(f"self-test: reported without a fault: {offence}")
            faults += len(missed) + len(extra)
        if check_tree(pathlib.Path(directory) / "empty") == []:
            print("self-test: an empty tree was accepted")
            faults += 1
    print(f"self-test: {len(found)} offences found in the bad tree, {faults} of them wrong or missing")
    return 1 if faults else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    offences = check_tree(sys.argv[1])
    for offence in offences:
        print(offence)
    print(f"{len(offences)} offences against the dependency rule")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
