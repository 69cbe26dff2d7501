#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Runs layernorm_error as a user does: bad input, every option, every output, and the verdicts of the default run.
"""usage: layernorm_error_test.py    with NUMFMT_LAYERNORM_ERROR (the program) set"""
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ.get("NUMFMT_LAYERNORM_ERROR", "")
SMALL = ("--data", "synthetic", "--width", 256, "--rows", 4, "--input", "fp32", "--mean", 0, "--mean", 10, "--mean", 1000)


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="layernorm_error_test."))
        self.addCleanup(shutil.rmtree, self.directory, True)

    def succeed(self, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, message, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 2, (arguments, result.stdout, result.stderr))
        self.assertIn(message, result.stderr)
        self.assertTrue(result.stderr.startswith("layernorm_error: "), result.stderr)
        self.assertEqual(result.stdout, "")

    def json_of(self, *arguments):
        return json.loads(self.succeed(*arguments, "--json").stdout)


class Options(Case):
    def test_bad_input(self):
        self.refused("--formula", "--formula", "three_pass")
        self.refused("--sums", "--sums", "fp8")
        self.refused("--input", "--input", "int8")
        self.refused("--output", "--output", "fp4")
        self.refused("--mean", "--mean", -1)
        self.refused("--mean", "--mean", "nan")
        self.refused("--width", "--width", 1)
        self.refused("--rows", "--rows", 0)
        self.refused("--limit", "--limit", 0.1)
        self.refused("--mean: only --data synthetic", "--data", "real", "--mean", 1)
        self.refused("--plot: only --data synthetic", "--data", "real", "--plot", self.directory / "x.svg")
        self.refused("welford has no sum for double_sums to keep", "--formula", "welford", "--sums", "double_sums")
        self.refused("--seed: got '-1'", "--seed", "-1")
        self.refused("--csv: cannot write", "--csv", self.directory)
        self.refused("wanted a name that ends in .svg or .png", "--plot", self.directory / "plot.gif")

    def test_help_and_version(self):
        text = self.succeed("--help").stdout
        for word in ("two_pass_corrected", "double_sums", "correctness fix", "only postpones it", "--limit"):
            self.assertIn(word, text)
        self.assertRegex(self.succeed("--version").stdout, r"^numfmt \d+\.\d+\.\d+\n$")

    def test_choices_are_what_is_measured(self):
        out = self.json_of("--formula", "welford", "--sums", "bf16", "--input", "fp16", "--output", "fp16", "--mean", 3,
                           "--width", 77, "--rows", 5, "--seed", 4, "--data", "synthetic")
        (cell,) = out["cells"]
        self.assertEqual((cell["source"], cell["input"], cell["width"], cell["mean_over_deviation"]),
                         ("synthetic", "fp16", 77, 3))
        (method,) = cell["methods"]
        self.assertEqual((method["formula"], method["sums"], method["rows"]), ("welford", "bf16", 5))
        self.assertEqual((out["seed"], out["output"]), (4, "fp16"))
        base = self.json_of(*SMALL)["cells"]
        for option in (("--seed", 1), ("--output", "fp16"), ("--width", 512), ("--mean", 20), ("--input", "bf16")):
            self.assertNotEqual(base, self.json_of(*SMALL, *option)["cells"], option)
        real = self.json_of("--data", "real", "--input", "bf16")["cells"]
        self.assertEqual([c["width"] for c in real], [384] * 6)
        self.assertEqual(real[0]["methods"][0]["rows"], 32)

    def test_results_do_not_depend_on_threads(self):
        outputs = {self.succeed(*SMALL, "--json", "--threads", n).stdout for n in (1, 2, 5)}
        self.assertEqual(len(outputs), 1)

    def test_limit_moves_verdicts(self):
        strict = self.json_of(*SMALL, "--limit", 0.5)["verdicts"]
        # Without a mean no row is lost, and everything is right within a million units.
        wide = self.json_of(*SMALL[:-4], "--limit", 1e6)["verdicts"]
        self.assertEqual(len(strict), len(wide))
        self.assertEqual({v["verdict"] for v in wide}, {"changes nothing"})
        self.assertIn(None, [v["after_right_until"] for v in strict])

    def test_table_csv_and_plot(self):
        table, plot = self.directory / "errors.csv", self.directory / "errors.svg"
        arguments = [*SMALL, "--csv", table]
        if shutil.which("gnuplot"):
            arguments += ["--plot", plot]
        out = self.succeed(*arguments)
        self.assertIn("right is within 1 units of the last place", out.stdout)
        self.assertIn("seed 0", out.stdout)
        self.assertEqual(out.stderr, "")  # no progress bar where stderr is not a terminal
        rows = list(csv.DictReader(table.read_text().splitlines()))
        flat = [m for c in self.json_of(*SMALL)["cells"] for m in c["methods"]]
        self.assertEqual([r["formula"] for r in rows], [m["formula"] for m in flat])
        self.assertEqual([r["variance_worst"] for r in rows if r["sums"] == "fp32"],
                         [str(m["variance_worst"]) for m in flat if m["sums"] == "fp32"])
        if shutil.which("gnuplot"):
            drawn = plot.read_text()
            for label in ("one_pass, fp32_lanes", "one pass: n kappa^2 u", "stored in fp32"):
                self.assertIn(label, drawn)


class Numbers(Case):
    def test_everything_in_less_than_a_minute(self):
        started = time.monotonic()
        out = self.json_of()
        self.assertLess(time.monotonic() - started, 60)
        self.assertEqual({c["input"] for c in out["cells"]}, {"fp32", "bf16", "fp16", "fp8_e4m3"})
        self.assertEqual({c["width"] for c in out["cells"] if c["source"] == "synthetic"}, {256, 1024, 4096, 16384, 65536})
        verdicts = {(v["input"], v["change"]): v for v in out["verdicts"]}
        for change, verdict in {"bf16 sums -> fp32 sums": "correctness fix",
                                "one pass -> two passes": "correctness fix",
                                "one pass -> shifted by the first element": "correctness fix",
                                "RMS: bf16 sums -> fp32 sums": "correctness fix",
                                "one pass: negative variances clamped to 0": "changes nothing",
                                "one pass -> two passes, sums left in bf16": "changes nothing",
                                "two passes: compensated sums": "changes nothing",
                                "two passes -> Welford over lanes (Chan)": "changes nothing",
                                "one pass: sums in double, subtracted in fp32": "only postpones it",
                                "RMS: fp32 sums -> double": "changes nothing"}.items():
            self.assertEqual(verdicts[("bf16", change)]["verdict"], verdict, change)
        # Narrow rows at a large mean are constant, and said to be.
        constant = [c["methods"][0]["rows"] for c in out["cells"]
                    if c["input"] == "fp8_e4m3" and c["mean_over_deviation"] == 1e5]
        self.assertEqual(set(constant), {0})
        # Real rows have next to no mean: one pass in fp32 is right there, bf16 sums are not.
        real = [m for c in out["cells"] if c["source"] != "synthetic" and c["input"] == "fp32" for m in c["methods"]]
        by = {}
        for m in real:
            key = (m["formula"], m["sums"])
            by[key] = max(by.get(key, 0), m["output_worst_ulp"] or 0)
        self.assertLess(by[("one_pass", "fp32_lanes")], 0.52)
        self.assertGreater(by[("one_pass", "bf16_lanes")], 1)
        self.assertLess(by[("one_pass", "bf16_lanes")], 8)


if __name__ == "__main__":
    if not PROGRAM:
        print("SKIPPED: NUMFMT_LAYERNORM_ERROR is missing")
        sys.exit(1)
    unittest.main(verbosity=2)
