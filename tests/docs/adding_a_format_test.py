# SPDX-License-Identifier: MIT
"""Follows docs/adding_a_format.md to the letter in a copy of the tree.

A code block is the whole of the file that the text before it names, or, marked as diff, a change of that file. The commands are
run as they stand, except that this test builds and runs a few of the test sources itself instead of the whole tree: they must
pass, and must fail with a clear message as long as a golden file or a generated section is missing.

usage: adding_a_format_test.py --cxx COMPILER --work FOLDER [--system INCLUDE_FOLDERS]
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENT = ROOT / "docs" / "adding_a_format.md"
COPIED = ["include", "tests/support", "tests/core", "tests/block", "tests/exhaustive", "tests/golden", "docs"]

# What this test does in place of these commands is said beside them.
REPLACED = {
    "cmake": "the programs are built by build() below",
    "build/dev/examples/format_table": "needs the libraries of the examples; the test cli.format_table covers it",
    "bash tests/run.sh": "the tests below",
}

# One test of each kind: facts and landmarks, the value type, checksums; descriptor, special blocks, the oracle.
CORE = ["tests/core/limits.cpp", "tests/core/minifloat.cpp", "tests/core/checksums.cpp"]
FACTS = "-tc=limits:*,minifloat: between*,checksums: decode*"  # what takes no time
BLOCK = ["tests/block/scheme.cpp", "tests/block/special_blocks.cpp", "tests/block/oracle_compare.cpp", "oracle_of_new_scheme.cpp"]
ORACLE = """#include <doctest/doctest.h>
#include "block/oracle_compare.hpp"
TEST_CASE("oracle: %s") { CHECK(block_test::compare_scheme_briefly<numfmt::%s>() == ""); }
"""


def parse(text):
    """[(kind, file, block)] of the files and changes, and the list of commands."""
    files, commands = [], []
    parts = re.split(r"^```(\w+)\n(.*?)^```\n", text, flags=re.M | re.S)
    named = None
    for before, kind, block in zip(parts[0::3], parts[1::3], parts[2::3]):
        names = re.findall(r"(?:header|golden file|list entry), (?:in )?`([\w./]+)`", before)
        named = names[-1] if names else named  # a second change of the same file needs no name
        if kind == "sh":
            commands += block.splitlines()
        else:
            files.append((kind, named, block))
    return files, commands


def apply_change(text, diff, name):
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    if text.count(old) != 1:
        raise AssertionError(f"{DOCUMENT.name}: this change does not fit {name}:\n{diff}")
    return text.replace(old, new)


class Tree:
    def __init__(self, options):
        self.cxx, self.root = options.cxx, pathlib.Path(options.work) / "tree"
        # /usr/include is searched anyway, and named once more it would hide the compiler's own headers.
        folders = [folder for folder in options.system.split(";") if folder not in ("", "/usr/include")]
        self.includes = [flag for folder in folders for flag in ("-isystem", folder)]
        shutil.rmtree(self.root, ignore_errors=True)
        for name in COPIED:
            shutil.copytree(ROOT / name, self.root / name)
        self.files, self.commands = parse(DOCUMENT.read_text())
        self.formats = [pathlib.Path(f).stem for _, f, _ in self.files if "golden/formats" in f]
        self.schemes = [pathlib.Path(f).stem for _, f, _ in self.files if "golden/schemes" in f]
        for kind, name, block in self.files:
            path = self.root / name
            if kind == "diff":
                path.write_text(apply_change(path.read_text(), block, name))
            else:
                if path.exists():
                    raise AssertionError(f"{DOCUMENT.name}: {name} exists already")
                path.write_text(block)
        (self.root / "oracle_of_new_scheme.cpp").write_text(ORACLE % (self.schemes[0], self.schemes[0]))

    def compile(self, source, flags):
        output = self.root / (source.replace("/", "_") + ".o")
        command = [self.cxx, "-std=c++20", "-Wall", "-Wextra", "-Werror", *flags, "-I", "include", "-I", "tests", *self.includes,
                   f'-DNUMFMT_TEST_DATA_DIR="{self.root}/tests/golden"', "-DDOCTEST_CONFIG_SUPER_FAST_ASSERTS", "-c", source, "-o", output]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{source}:\n{done.stderr[:4000]}")
        return output

    def build(self):
        """Test programs for core and block, and the writer of hashes, of which it takes the first few inputs of each range."""
        few = ["-O1", "-DNUMFMT_TEST_INPUTS_PER_HASH=4096"]
        jobs = {source: ["-O0"] for source in ["tests/support/doctest_main.cpp", *CORE, *BLOCK]}
        jobs["tests/exhaustive/golden_hashes.cpp"] = few
        with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            objects = dict(zip(jobs, pool.map(lambda job: self.compile(*job), jobs.items())))
        main = objects["tests/support/doctest_main.cpp"]
        hashes = self.root / "build/dev/tests/numfmt_golden_hashes"
        hashes.parent.mkdir(parents=True)
        for output, parts in ((self.root / "core_test", [main, *(objects[s] for s in CORE)]),
                              (self.root / "block_test", [main, *(objects[s] for s in BLOCK)]),
                              (hashes, [objects["tests/exhaustive/golden_hashes.cpp"], "-pthread"])):
            subprocess.run([self.cxx, *parts, "-o", output], check=True)

    def run(self, *command):
        """(exit code, output)"""
        done = subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout


class AddingAFormat(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.tree = Tree(OPTIONS)
        cls.tree.build()

    def fails(self, command, message):
        code, output = self.tree.run(*command)
        self.assertNotEqual(code, 0, output[-2000:])
        self.assertTrue(message in output, f"no '{message}' in:\n{output[:2000]}")

    def passes(self, command, *messages):
        code, output = self.tree.run(*command)
        self.assertEqual(code, 0, output[-6000:])
        for message in messages:
            self.assertIn(message, output)
        return output

    def without(self, name, command, message):
        path = self.tree.root / name
        text = path.read_text()
        path.unlink()
        try:
            self.fails(command, message)
        finally:
            path.write_text(text)

    # In the order of their names: first what happens before the commands of the document are run.
    def test_1_generated_sections_are_missed(self):
        name = self.tree.formats[0]
        self.fails(["./core_test", "-tc=checksums:*"], f"python3 tests/golden/generate.py {name} writes it")
        self.fails(["./block_test", "-tc=special blocks: docs*"], "python3 tests/golden/generate.py writes the table")
        self.fails(["build/dev/tests/numfmt_golden_hashes", "--check", "tests/golden/formats", name],
                   f"numfmt_golden_hashes --write tests/golden/formats {name} writes them")

    def test_2_commands(self):
        self.assertEqual((len(self.tree.formats), len(self.tree.schemes)), (1, 1))
        typed = {name: block for kind, name, block in self.tree.files if "golden/formats" in name}
        ran = 0
        for command in self.tree.commands:
            if not any(command.startswith(start) for start in REPLACED):
                self.passes(command.split())
                ran += 1
        self.assertEqual(ran, 2)
        for name, block in typed.items():
            self.assertTrue((self.tree.root / name).read_text().startswith(block), "the typed-in lines stay as they are")

    def test_3_core_tests_pass(self):
        self.passes(["./core_test"], "0 failed")

    def test_4_block_tests_pass(self):
        self.passes(["./block_test"], "0 failed")

    def test_5_hashes_agree(self):
        self.passes(["build/dev/tests/numfmt_golden_hashes", "--check-all", "tests/golden/formats", self.tree.formats[0]],
                    " 0 wrong")

    def test_6_missing_golden_file_of_the_format(self):
        name = self.tree.formats[0]
        path = f"tests/golden/formats/{name}.txt"
        wanted = f"{name} is in numfmt::all_formats, but {path} is missing: docs/adding_a_format.md says what it holds"
        self.without(path, ["./core_test", FACTS], wanted)
        self.without(path, ["./core_test", "-tc=checksums: decode*"], f"{path} is missing; docs/adding_a_format.md")
        self.without(path, ["build/dev/tests/numfmt_golden_hashes", "--check", "tests/golden/formats"], f"{path} is missing")

    def test_7_missing_golden_file_of_the_scheme(self):
        name = self.tree.schemes[0]
        path = f"tests/golden/schemes/{name}.txt"
        wanted = f"{name} is in numfmt::all_schemes, but {path} is missing: docs/adding_a_format.md says what it holds"
        self.without(path, ["./block_test", "-tc=scheme:*"], wanted)
        self.without(path, ["./block_test", "-tc=oracle: " + name], f"{path} is missing; docs/adding_a_format.md")

    def test_8_golden_file_without_an_entry(self):
        for kind, *program in (("formats", "./core_test", FACTS), ("schemes", "./block_test", "-tc=scheme:*")):
            extra = self.tree.root / "tests/golden" / kind / "no_such.txt"
            extra.write_text("source none\n")
            self.fails(program, f"tests/golden/{kind}/no_such.txt is there, but no_such is not in numfmt::all_{kind}")
            extra.unlink()

    def test_9_wrong_facts_are_noticed(self):
        path = self.tree.root / f"tests/golden/formats/{self.tree.formats[0]}.txt"
        text = path.read_text()
        try:
            for key, wrong in (("bias", "2"), ("largest", "7F"), ("largest_value", "29"), ("digits10", "2"), ("shape", "ieee"),
                               ("saturates", "no"), ("fits_in", "bf16"), ("holds", "fp4_e2m1 e8m0"), ("decode", "00000000")):
                path.write_text(re.sub(rf"^({key} +).*$", rf"\g<1>{wrong}", text, count=1, flags=re.M))
                self.assertNotEqual(path.read_text(), text, key)
                self.assertNotEqual(self.tree.run("./core_test", FACTS)[0], 0, key)
        finally:
            path.write_text(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--system", default="", help="folders of doctest's headers, separated by semicolons")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
