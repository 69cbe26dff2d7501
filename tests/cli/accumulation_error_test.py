#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Runs accumulation_error as a user does: bad input, every option, every output, the a-priori bounds, and the errors
# that one H200 measured with fp8 wgmma.
"""usage: accumulation_error_test.py    with NUMFMT_ACCUMULATION_ERROR (the program) set"""
import csv
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ.get("NUMFMT_ACCUMULATION_ERROR", "")
DATA = ["zero_mean", "positive", "ill_conditioned", "activations"]
U = 2.0**-24


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
                          **options)


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="accumulation_error_test."))
        self.addCleanup(shutil.rmtree, self.directory, True)

    def succeed(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, message, *arguments, code=2):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        self.assertIn(message, result.stderr)
        self.assertTrue(result.stderr.startswith("accumulation_error: "), result.stderr)
        self.assertEqual(result.stdout, "")

    def cells(self, *arguments):
        """{(data, K): {accumulator: row}} of a run, and the parsed JSON."""
        out = json.loads(self.succeed(*arguments, "--json").stdout)
        return {(d["name"], c["k"]): {r["accumulator"]: r for r in c["rows"]} for d in out["data"] for c in d["k"]}, out

    def error(self, data, k, accumulator, trials, seed=0):
        cells, _ = self.cells("--data", data, "--k", k, "--accumulator", accumulator, "--trials", trials, "--seed", seed)
        return cells[(data, k)][accumulator]["relative_error"]


class Options(Case):
    def test_bad_input(self):
        self.refused("--data", "--data", "gamma")
        self.refused("--accumulator", "--accumulator", "abacus")
        self.refused("--input", "--input", "fp4")
        self.refused("--k", "--k", 2)
        self.refused("--k", "--k", "many")
        self.refused("--trials", "--trials", 0)
        self.refused("--seed: got '-1'", "--seed", "-1")
        self.refused("--seed: got '18446744073709551616'", "--seed", 2**64)
        self.refused("--condition", "--condition", 0.5)
        self.refused("--condition: only ill_conditioned", "--condition", 1e5, "--data", "positive")
        self.refused("hopper_wgmma_fp8 does not take bf16", "--input", "bf16", "--accumulator", "hopper_wgmma_fp8")
        self.refused("v100 does not take bf16", "--input", "bf16", "--accumulator", "v100")
        self.refused("--unknown", "--unknown")
        self.refused("--csv: cannot write", "--csv", self.directory)
        self.refused("wanted a name that ends in .svg or .png", "--plot", self.directory / "plot.gif")
        self.refused("--plot: cannot write", "--plot", self.directory / "none" / "plot.svg")

    def test_help_and_version(self):
        text = self.succeed("--help").stdout
        for word in DATA + ["fp32_dot2", "hopper_wgmma_fp8_promoted_128", "backward error", "--condition"]:
            self.assertIn(word, text)
        self.assertRegex(self.succeed("--version").stdout, r"^numfmt \d+\.\d+\.\d+\n$")

    def test_selection_and_input_formats(self):
        cells, out = self.cells("--data", "positive", "--accumulator", "fp32", "--accumulator", "bf16", "--k", 256, "--k", 64)
        self.assertEqual(list(cells), [("positive", 64), ("positive", 256)])
        self.assertEqual(list(cells[("positive", 64)]), ["fp32", "bf16"])
        self.assertEqual(out["seed"], 0)
        for fmt, there, missing in (("bf16", "a100", "v100"), ("fp16", "v100", "ada_fp8"), ("e4m3", "ada_fp8", None)):
            cells, out = self.cells("--input", fmt, "--k", 64, "--data", "zero_mean", "--trials", 4)
            self.assertEqual(out["input"], fmt)
            self.assertIn(there, cells[("zero_mean", 64)])
            self.assertNotIn(missing, cells[("zero_mean", 64)])

    def test_results_depend_on_the_seed_and_not_on_threads(self):
        arguments = ("--k", 1024, "--k", 4096, "--trials", 70, "--json")
        outputs = {self.succeed(*arguments, "--threads", n).stdout for n in (1, 2, 5)}
        self.assertEqual(len(outputs), 1)
        self.assertNotEqual(outputs, {self.succeed(*arguments, "--seed", 1).stdout})

    def test_table_csv_and_plot(self):
        table, plot = self.directory / "errors.csv", self.directory / "errors.svg"
        arguments = ["--k", 128, "--k", 1024, "--trials", 20, "--csv", table]
        if shutil.which("gnuplot"):
            arguments += ["--plot", plot]
        out = self.succeed(*arguments)
        for data in DATA:
            self.assertRegex(out.stdout, rf"(?m)^{data}: ")
        self.assertRegex(out.stdout, r"(?m)^accumulator +K = 2\^7 +K = 2\^10 +bias")
        self.assertEqual(len(re.findall(r"(?m)^\(sqrt\(n\) u\) ", out.stdout)), 4)
        self.assertIn("seed 0", out.stdout)
        self.assertEqual(out.stderr, "")  # no progress bar where stderr is not a terminal
        rows = list(csv.DictReader(table.read_text().splitlines()))
        cells, parsed = self.cells("--k", 128, "--k", 1024, "--trials", 20)
        self.assertEqual(len(rows), 4 * 2 * len(parsed["accumulators"]))
        for row in rows:
            same = cells[(row["data"], int(row["k"]))][row["accumulator"]]
            self.assertEqual(float(row["relative_error"]), same["relative_error"])
            self.assertEqual(float(row["bound"]), same["bound"])
        if shutil.which("gnuplot"):
            drawn = plot.read_text()
            for label in ("fp32_pairwise", "hopper_wgmma_fp8", "n u", "sqrt(n) u", "log2(n) u", "ill_conditioned"):
                self.assertIn(label, drawn)


class Numbers(Case):
    def test_everything_in_less_than_a_minute(self):
        started = time.monotonic()
        cells, out = self.cells()
        seconds = time.monotonic() - started
        self.assertLess(seconds, 60)
        self.assertEqual([d["name"] for d in out["data"]], DATA)
        self.assertEqual([c["k"] for c in out["data"][0]["k"]], [2**e for e in range(7, 21)])
        # No backward error is beyond its a-priori bound, and what is not finite is a sum beyond 65504 in fp16.
        for (data, k), rows in cells.items():
            for name, row in rows.items():
                if row["not_finite"] > 0:
                    self.assertEqual(name, "fp16", (data, k))
                    continue
                self.assertLessEqual(row["backward_error"], row["bound"], (data, k, name))
        for d in out["data"]:
            for c in d["k"]:
                n = c["k"]
                self.assertEqual((c["n_u"], c["sqrt_n_u"], c["log2_n_u"]), (n * U, math.sqrt(n) * U, math.log2(n) * U))

        def error(data, k, name):
            return cells[(data, k)][name]["relative_error"]

        # On data of one sign truncation adds up: a chain loses in proportion to K, promotion holds.
        for k in (2**12, 2**17):
            self.assertGreater(error("positive", k, "hopper_wgmma_fp8"), 50 * error("positive", k, "hopper_wgmma_fp8_promoted_128"))
            self.assertLess(cells[("positive", k)]["hopper_wgmma_fp8"]["bias"], -0.05)
            self.assertGreater(error("positive", k, "hopper"), 5 * error("positive", k, "fp32_pairwise"))
        self.assertGreater(error("positive", 2**20, "bf16"), 0.98)      # stops at 128 or 256
        self.assertLess(error("positive", 2**20, "bf16_promoted_128"), 0.02)
        self.assertGreater(error("positive", 2**20, "bf16_promoted_128"), 0.001)
        # Compensated sums are correctly rounded, or nearly always.
        for data in DATA:
            for name in ("fp32_dot2", "fp64", "fp32_kahan"):
                self.assertGreater(cells[(data, 2**14)][name]["correctly_rounded"], 0.95, (data, name))
            self.assertLess(cells[(data, 2**17)]["hopper_wgmma_fp8"]["correctly_rounded"], 0.1)
        # A condition number of 1e6 turns the rounding errors of the chain into errors of that size.
        ill = [c for d in out["data"] if d["name"] == "ill_conditioned" for c in d["k"]]
        for c in ill:
            self.assertTrue(0.7e6 < c["condition"] < 1.5e6, c["condition"])
        self.assertGreater(error("ill_conditioned", 2**17, "fp32"), 1e-4)
        self.assertLess(error("ill_conditioned", 2**17, "fp32"), 1e-1)
        self.assertGreater(error("ill_conditioned", 2**17, "hopper_wgmma_fp8"), 1)
        self.assertEqual(error("ill_conditioned", 2**17, "fp32_dot2"), 0)  # the exact result is a power of two
        # Positive data are perfectly conditioned.
        self.assertTrue(all(abs(c["condition"] - 2) < 1e-9 for d in out["data"] if d["name"] == "positive" for c in d["k"]))

    def test_figures_of_the_h200(self):
        # Relative Frobenius error of fp8 wgmma, measured with M = N = 2048: positive data 6.6e-2 (K = 4096) and 0.75
        # (131072), promoted every 128 5.0e-4; zero-mean data 1.3e-3 and 1.0e-2, promoted 1.26e-4. Margins: the last
        # digit given, and three standard errors of the trials here.
        self.assertTrue(0.064 < self.error("positive", 4096, "hopper_wgmma_fp8", 200) < 0.068)
        self.assertTrue(0.74 < self.error("positive", 131072, "hopper_wgmma_fp8", 8) < 0.76)
        for k, trials in ((4096, 200), (131072, 8)):
            promoted = self.error("positive", k, "hopper_wgmma_fp8_promoted_128", trials)
            self.assertTrue(4.9e-4 < promoted < 5.1e-4, promoted)
        short = self.error("zero_mean", 4096, "hopper_wgmma_fp8", 3000)
        self.assertTrue(1.2e-3 < short < 1.4e-3, short)
        long = self.error("zero_mean", 131072, "hopper_wgmma_fp8", 200)
        self.assertTrue(0.8e-2 < long < 1.25e-2, long)
        promoted = self.error("zero_mean", 4096, "hopper_wgmma_fp8_promoted_128", 3000)
        self.assertTrue(1.19e-4 < promoted < 1.33e-4, promoted)

    def test_condition_number_scales_the_error(self):
        relative = {}
        for condition in (1e4, 1e6):
            cells, _ = self.cells("--data", "ill_conditioned", "--condition", condition, "--k", 2**15, "--trials", 40,
                                  "--accumulator", "hopper_wgmma_fp8", "--input", "e4m3")
            relative[condition] = cells[("ill_conditioned", 2**15)]["hopper_wgmma_fp8"]["relative_error"]
        self.assertTrue(30 < relative[1e6] / relative[1e4] < 300, relative)


if __name__ == "__main__":
    if not PROGRAM:
        print("SKIPPED: NUMFMT_ACCUMULATION_ERROR is missing")
        sys.exit(1)
    unittest.main(verbosity=2)
