#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Runs attention_error as a user does: bad input, every option, every output, bounded memory, and what the default run
# says of 131072 keys.
"""usage: attention_error_test.py    with NUMFMT_ATTENTION_ERROR (the program) set"""
import csv
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ.get("NUMFMT_ATTENTION_ERROR", "")
SMALL = ("--keys", 256, "--keys", 512, "--head-size", 16, "--trials", 2)


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
                          **options)


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="attention_error_test."))
        self.addCleanup(shutil.rmtree, self.directory, True)

    def succeed(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, message, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 2, (arguments, result.stdout, result.stderr))
        self.assertIn(message, result.stderr)
        self.assertTrue(result.stderr.startswith("attention_error: "), result.stderr)
        self.assertEqual(result.stdout, "")

    def rows(self, *arguments):
        """{(scores, keys): [row]} of a run, and the parsed JSON."""
        out = json.loads(self.succeed(*arguments, "--json").stdout)
        return {(m["name"], at["keys"]): at["rows"] for m in out["scores"] for at in m["lengths"]}, out


class Options(Case):
    def test_bad_input(self):
        self.refused("--scores", "--scores", "gamma")
        self.refused("--keys", "--keys", 0)
        self.refused("--keys", "--keys", "many")
        self.refused("--cache", "--cache", "fp3")
        self.refused("--accumulator", "--accumulator", "abacus")
        self.refused("--head-size: got 20, wanted a multiple of 8", "--head-size", 20)
        self.refused("--tile: got 24, wanted a multiple of 16", "--tile", 24)
        self.refused("--margin", "--margin", "nan")
        self.refused("--margin: only sink, needle and passage", "--margin", -3, "--scores", "gaussian")
        self.refused("--half-life: only recency", "--half-life", 5, "--scores", "sink")
        self.refused("--head-size: only synthetic", "--head-size", 64, "--scores", "real")
        self.refused("--head-spread: needs --heads", "--head-spread", 2)
        self.refused("--scale: only fp8_e4m3 and fp8_e5m2", "--cache", "bf16", "--scale", "small")
        self.refused("--accumulator: hopper_fp8 takes an fp8_e4m3 or fp8_e5m2 cache, got bf16", "--cache", "bf16",
                     "--accumulator", "hopper_fp8")
        self.refused("--p: hopper_fp8 takes fp8_e4m3, got bf16", "--accumulator", "hopper_fp8", "--p", "bf16")
        self.refused("--seed: got '-1'", "--seed", "-1")
        self.refused("--unknown", "--unknown")
        self.refused("--csv: cannot write", "--csv", self.directory)
        self.refused("wanted a name that ends in .svg or .png", "--plot", self.directory / "plot.gif")

    def test_help_and_version(self):
        text = self.succeed("--help").stdout
        for word in ("needle", "hopper_fp8_promoted", "--per", "--causes", "kept", "int4_g32"):
            self.assertIn(word, text)
        self.assertRegex(self.succeed("--version").stdout, r"^numfmt \d+\.\d+\.\d+\n$")

    def test_choices_are_what_is_measured(self):
        rows, out = self.rows("--scores", "passage", "--scores", "real", "--keys", 300, "--cache", "fp8_e5m2", "--scale",
                              "large", "--per", "token", "--accumulator", "bf16", "--qk-accumulator", "fp16", "--p",
                              "fp32", "--splits", 3, "--causes", "--trials", 1, "--seed", 7, "--group", 3)
        self.assertEqual(list(rows), [("passage", 300), ("real", 300)])
        for (row,) in rows.values():
            wanted = {"cache": "fp8_e5m2", "scale": "large", "per": "token", "p": "fp32", "qk_accumulator": "fp16",
                      "accumulator": "bf16", "splits": 3}
            self.assertEqual({key: row[key] for key in wanted}, wanted)
            self.assertIn("without_accumulation", row)
        self.assertEqual((out["seed"], out["group"]), (7, 3))
        # Options that change the problem change the numbers.
        base = self.rows("--scores", "needle", *SMALL, "--cache", "bf16")[0]
        for option in (("--margin", -2), ("--depth", 0.9), ("--score-deviation", 2), ("--value-mean", 1), ("--tile", 16),
                       ("--group", 1), ("--heads", 2), ("--seed", 1)):
            self.assertNotEqual(base, self.rows("--scores", "needle", *SMALL, "--cache", "bf16", *option)[0], option)

    def test_results_do_not_depend_on_threads(self):
        outputs = {self.succeed(*SMALL, "--json", "--threads", n).stdout for n in (1, 2, 5)}
        self.assertEqual(len(outputs), 1)

    def test_table_csv_and_plot(self):
        table, plot = self.directory / "errors.csv", self.directory / "errors.svg"
        arguments = [*SMALL, "--scores", "gaussian", "--scores", "needle", "--csv", table]
        if shutil.which("gnuplot"):
            arguments += ["--plot", plot]
        out = self.succeed(*arguments)
        self.assertRegex(out.stdout, r"(?m)^needle: 0\.67 % of the mass on one key")
        self.assertIn("seed 0", out.stdout)
        self.assertEqual(out.stderr, "")  # no progress bar where stderr is not a terminal
        rows = list(csv.DictReader(table.read_text().splitlines()))
        same, _ = self.rows(*SMALL, "--scores", "gaussian", "--scores", "needle")
        flat = [row for at in same.values() for row in at]
        self.assertEqual([float(r["error"]) for r in rows], [r["error"] for r in flat])
        self.assertEqual([r["cache"] for r in rows], [r["cache"] for r in flat])
        if shutil.which("gnuplot"):
            drawn = plot.read_text()
            for label in ("hopper_fp8", "keys/32 x 34 x 2^-13", "needle"):
                self.assertIn(label, drawn)

    def test_a_million_keys_in_bounded_memory(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))

        # The keys and values alone would take 256 MiB.
        result = self.succeed("--scores", "gaussian", "--keys", 1 << 20, "--head-size", 32, "--group", 1, "--cache",
                              "bf16", "--threads", 1, "--json", preexec_fn=limit)
        error = json.loads(result.stdout)["scores"][0]["lengths"][0]["rows"][0]["error"]
        self.assertTrue(1e-6 < error < 1e-3, error)


class Numbers(Case):
    def test_everything_in_less_than_a_minute(self):
        started = time.monotonic()
        rows, _ = self.rows()
        self.assertLess(time.monotonic() - started, 60)
        self.assertEqual({scores for scores, _ in rows}, {"gaussian", "sink", "needle", "recency", "real"})
        for scores in ("gaussian", "needle"):
            at = {(r["cache"], r["accumulator"]): r for r in rows[(scores, 131072)]
                  if r["splits"] == 1 and r["scale"] in ("", "calibrated") and r["per"] in ("", "head")}
            plain, promoted = at[("fp8_e4m3", "hopper_fp8")], at[("fp8_e4m3", "hopper_fp8_promoted")]
            # The accumulator is all of it, and promotion takes it away.
            self.assertTrue(0.3 < plain["error"] < 0.7, plain)
            self.assertLess(plain["without_accumulation"], 0.01)
            self.assertEqual(plain["without_accumulation"] > 1e-4, True)
            self.assertTrue(0.15 < plain["kept"] < 0.5, plain)
            self.assertLess(promoted["error"], 0.01)
            # On a short prompt nothing is to be seen.
            short = {(r["cache"], r["accumulator"], r["splits"]): r for r in rows[(scores, 1024)]}
            self.assertLess(short[("fp8_e4m3", "hopper_fp8", 1)]["error"], 0.03)


if __name__ == "__main__":
    if not PROGRAM:
        print("SKIPPED: NUMFMT_ATTENTION_ERROR is missing")
        sys.exit(1)
    unittest.main(verbosity=2)
