# SPDX-License-Identifier: MIT
"""The tables in the documents are those of the descriptors, and the README's first program does what it says."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["NUMFMT_FORMAT_TABLE"]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class Tables(unittest.TestCase):
    def test_documents_are_up_to_date(self):
        for extra, name in (([], "README.md"), (["--full"], "docs/formats.md")):
            result = run(*extra, "--update", ROOT / name, "--check")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_check_notices_a_changed_cell_and_update_repairs_it(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "README.md"
            shutil.copy(ROOT / "README.md", copy)
            text = copy.read_text()
            self.assertIn(" 4.25 ", text)
            copy.write_text(text.replace(" 4.25 ", " 4.26 ", 1))
            result = run("--update", copy, "--check")
            self.assertEqual(result.returncode, 1)
            self.assertIn("out of date", result.stderr)
            self.assertIn(" 4.26 ", copy.read_text())
            self.assertEqual(run("--update", copy).returncode, 0)
            self.assertEqual(copy.read_text(), text)

    def test_bad_input(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = pathlib.Path(folder) / "plain.md"
            plain.write_text("no markers\n")
            result = run("--update", plain)
            self.assertEqual(result.returncode, 2)
            self.assertIn("format_table: begin", result.stderr)
        self.assertEqual(run("--no-such-option").returncode, 2)
        self.assertEqual(run("--update", "/nonexistent").returncode, 2)

    def test_every_scheme_has_a_row(self):
        rows = re.findall(r"^\| `(\w+)`", run().stdout, re.M)
        self.assertEqual(len(rows), len(set(rows)))
        for name in ("bf16", "fp8_e4m3", "fp6_e2m3", "e8m0", "mxfp4", "nvfp4", "awq_int4", "block_fp8_128x128"):
            self.assertIn(name, rows)


class Readme(unittest.TestCase):
    def test_first_program(self):
        readme = (ROOT / "README.md").read_text()
        code = re.search(r"```cpp\n(.*?)```", readme, re.S).group(1)
        printed = re.search(r"`g\+\+ -std=c\+\+20 -I include first.cpp && ./a.out` prints `([^`]*)`", readme).group(1)
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "first.cpp"
            source.write_text(code)
            binary = pathlib.Path(folder) / "first"
            subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "include"), str(source), "-o",
                            str(binary)], check=True)
            self.assertEqual(subprocess.run([str(binary)], capture_output=True, text=True).stdout.strip(), printed)

    def test_relative_links_exist(self):
        for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
            for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
                if "://" not in target:
                    self.assertTrue((document.parent / target).exists(), f"{document.name}: {target}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
