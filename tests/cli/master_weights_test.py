#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Runs master_weights as a user does: bad input, every option, every output, the bounds of the update experiment, and on
# real data the loss that every store reaches.
"""usage: master_weights_test.py    with NUMFMT_MASTER_WEIGHTS (the program) set"""
import csv
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("NUMFMT_MASTER_WEIGHTS", "")
STORES = ["fp32", "fp32_master", "bf16_kahan", "bf16_stochastic", "bf16"]
REMEDIES = STORES[1:4]
SHORT = ("--steps", 40, "--start-steps", 40, "--seeds", 2, "--hidden", 8)
SMALL = ("--hidden", 16, "--batch", 16, "--start-steps", 700)  # an eighth of the default's work per step


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
                          **options)


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="master_weights_test."))
        self.addCleanup(shutil.rmtree, self.directory, True)

    def succeed(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, message, *arguments, code=2):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        self.assertIn(message, result.stderr)
        self.assertTrue(result.stderr.startswith("master_weights: "), result.stderr)
        self.assertEqual(result.stdout, "")

    def json(self, *arguments):
        return json.loads(self.succeed(*arguments, "--json").stdout)


class Options(Case):
    def test_bad_input(self):
        for name, value in (("--part", "all"), ("--store", "fp64"), ("--optimizer", "lion"), ("--ratio", 2),
                            ("--ratio", 25), ("--ratio", "few"), ("--weights", 0), ("--rate", 0), ("--rate", 11),
                            ("--rate", "nan"), ("--momentum", 1), ("--momentum", -0.1), ("--steps", 7), ("--batch", 0),
                            ("--hidden", 0), ("--seeds", 0), ("--start-steps", -1), ("--threads", 0)):
            self.refused(name, name, value)
        self.refused("--momentum", "--momentum", "nan")
        self.refused("--seed: got '-1'", "--seed", "-1")
        self.refused("--seed: got '18446744073709551616'", "--seed", 2**64)
        self.refused("--ratio: only --part updates uses it", "--part", "training", "--ratio", 8)
        self.refused("--weights: only --part updates uses it", "--part", "training", "--weights", 8)
        for name, value in (("--rate", 0.1), ("--optimizer", "sgd"), ("--hidden", 3), ("--momentum", 0.5)):
            self.refused(f"{name}: only --part training uses it", "--part", "updates", name, value)
        self.refused("--momentum: only --optimizer sgd uses it", "--optimizer", "adam", "--momentum", 0.5)
        self.refused("--unknown", "--unknown")
        self.refused("--csv: cannot write", "--csv", self.directory)
        self.refused("wanted a name that ends in .svg or .png", "--plot", self.directory / "plot.gif")
        self.refused("--plot: cannot write", "--plot", self.directory / "none" / "plot.svg")

    def test_help_and_version(self):
        text = self.succeed("--help").stdout
        for word in STORES + ["fp32_master_bf16_state", "gain kept", "--start-steps", "--ratio"]:
            self.assertIn(word, text)
        self.assertRegex(self.succeed("--version").stdout, r"^numfmt \d+\.\d+\.\d+\n$")

    def test_selection(self):
        out = self.json("--part", "updates", "--store", "bf16", "--store", "bf16_kahan", "--ratio", 9, "--ratio", 8.5,
                        "--weights", 300)
        self.assertNotIn("training", out)
        self.assertEqual([s["name"] for s in out["stores"]], ["bf16_kahan", "bf16"])
        self.assertEqual([r["steps"] for r in out["updates"]["ratios"]], [45, 64])
        self.assertEqual(out["updates"]["ratios"][1]["ratio"], 2**-9)
        out = self.json("--part", "training", *SHORT, "--store", "bf16", "--optimizer", "adam", "--rate", 1e-4,
                        "--rate", 1e-3)
        self.assertNotIn("updates", out)
        (adam,) = out["training"]["optimizers"]
        self.assertEqual([r["rate"] for r in adam["rates"]], [1e-3, 1e-4])
        self.assertEqual([r["store"] for r in adam["rates"][0]["rows"]], ["fp32", "bf16"])
        self.assertEqual(len(adam["rates"][0]["rows"][0]["losses"]), 2)
        # Momentum is used.
        sgd = ("--part", "training", *SHORT, "--store", "fp32", "--optimizer", "sgd", "--rate", 0.01)
        self.assertNotEqual(self.succeed(*sgd, "--momentum", 0).stdout, self.succeed(*sgd).stdout)

    def test_divergence_is_said(self):
        arguments = ("--part", "training", *SHORT, "--optimizer", "sgd", "--rate", 10, "--rate", 1e-3)
        self.assertIn(" diverged ", self.succeed(*arguments).stdout)
        rates = self.json(*arguments)["training"]["optimizers"][0]["rates"]
        self.assertEqual([r["rows"][0]["loss"]["mean"] is None for r in rates], [True, False])

    def test_results_depend_on_the_seed_and_not_on_threads(self):
        arguments = (*SHORT, "--ratio", 5, "--ratio", 12, "--json")
        outputs = {self.succeed(*arguments, "--threads", n).stdout for n in (1, 2, 5)}
        self.assertEqual(len(outputs), 1)
        self.assertNotEqual(outputs, {self.succeed(*arguments, "--seed", 1).stdout})

    def test_table_csv_and_plot(self):
        table, plot = self.directory / "weights.csv", self.directory / "weights.svg"
        arguments = [*SHORT, "--ratio", 4, "--ratio", 8, "--ratio", 10, "--ratio", 17]
        outputs = ["--csv", table] + (["--plot", plot] if shutil.which("gnuplot") else [])
        out = self.succeed(*arguments, *outputs)
        self.assertRegex(out.stdout, r"(?m)^2\^-10 +128 ")
        self.assertRegex(out.stdout, r"(?m)^sgd: 40 steps from a loss of ")
        self.assertRegex(out.stdout, r"(?m)^bf16, adam: keeps ")
        self.assertIn("seed 0", out.stdout)
        self.assertLess(max(map(len, out.stdout.splitlines())), 160)
        self.assertEqual(out.stderr, "")  # no progress bar where stderr is not a terminal
        parsed = self.json(*arguments)
        rows = list(csv.DictReader(table.read_text().splitlines()))
        updates = [r for r in rows if r["part"] == "updates"]
        same = [(ratio["ratio"], row) for ratio in parsed["updates"]["ratios"] for row in ratio["rows"]]
        self.assertEqual(len(updates), len(same))
        for row, (ratio, other) in zip(updates, same):
            self.assertEqual((float(row["ratio"]), row["store"]), (ratio, other["store"]))
            for name, key in (("share_mean", "mean"), ("rms_error", "rms_error"), ("theory", "theory")):
                self.assertEqual(float(row[name]), other[key])
        trained = [r for r in rows if r["part"] == "training"]
        same = [(o["name"], at["rate"], row) for o in parsed["training"]["optimizers"] for at in o["rates"]
                for row in at["rows"]]
        self.assertEqual(len(trained), len(same))
        for row, (name, rate, other) in zip(trained, same):
            self.assertEqual((row["optimizer"], float(row["rate"]), row["store"]), (name, rate, other["store"]))
            self.assertEqual(float(row["loss_mean"]), other["loss"]["mean"])
            self.assertEqual(float(row["kept_mean"]), other["kept"]["mean"])
            self.assertEqual(int(row["bytes_with_state"]), other["bytes_with_state"])
        if shutil.which("gnuplot"):
            drawn = plot.read_text()
            for label in (*STORES, "bf16: 2^-8 / r", "Kahan: 2^-8 + 2^-16 / r", "fp32: 2^-24 / r", "2^-9: bf16 loses all"):
                self.assertIn(label, drawn)


class Numbers(Case):
    def test_updates(self):
        for seed in (0, 1):
            out = self.json("--part", "updates", "--seed", seed, "--weights", 64)
            self.assertEqual([r["ratio"] for r in out["updates"]["ratios"]], [2.0**-e for e in range(3, 21)])
            for at in out["updates"]["ratios"]:
                rows, r, n = {row["store"]: row for row in at["rows"]}, at["ratio"], out["updates"]["weights"]
                self.assertEqual(list(rows), STORES)
                for name in ("fp32", "fp32_master", "bf16_kahan", "bf16"):
                    self.assertLessEqual(rows[name]["worst"], rows[name]["theory"], (name, r))
                self.assertEqual(rows["bf16"]["theory"], 2**-8 / r)
                self.assertEqual(rows["fp32"]["theory"], 2**-24 / r)
                # bf16 loses everything from 2^-9 on, and Kahan nearly everything from 2^-17 on; neither before.
                self.assertEqual(rows["bf16"]["still"] == n, r <= 2**-9)
                self.assertEqual(rows["bf16"]["mean"] < 0.5, r <= 2**-9)
                self.assertEqual(rows["bf16_kahan"]["mean"] < 0.5, r <= 2**-17)
                # A mean over n weights of shares with that deviation; sums in fp32 are off by 2^-24 / r.
                stochastic = rows["bf16_stochastic"]
                self.assertLess(abs(stochastic["mean"] - 1), 5 * stochastic["theory"] / math.sqrt(n) + 2**-24 / r)
                self.assertLess(stochastic["rms_error"], 1.25 * stochastic["theory"])
                self.assertGreater(stochastic["rms_error"], 0.4 * stochastic["theory"])

    def test_training(self):
        # A smaller network and fewer rates than by default, for time. Gains are compared within a seed.
        out = self.json("--part", "training", *SMALL, "--seeds", 4, "--rate", 1e-3, "--rate", 1e-5, "--optimizer", "adam",
                        "--seed", 7)["training"]
        self.assertLess(out["start"]["mean"], 0.8)  # it predicts: 1 is the loss of predicting nothing
        fast, slow = out["optimizers"][0]["rates"]
        for at in (fast, slow):
            rows = {row["store"]: row for row in at["rows"]}
            self.assertGreater(out["start"]["mean"] - rows["fp32"]["loss"]["mean"], 0.002)
            for name in [*REMEDIES, "fp32_master_bf16_state"]:
                # No worse than the starts differ from each other, and most of each seed's gain.
                self.assertLess(abs(rows[name]["excess"]["mean"]), rows["fp32"]["loss"]["deviation"], name)
                self.assertLess(abs(rows[name]["kept"]["mean"] - 1), 0.05, name)
            self.assertEqual([rows[n]["bytes_with_state"] for n in [*STORES, "fp32_master_bf16_state"]],
                             [12, 14, 12, 10, 10, 10])
            plain = rows["bf16"]
            self.assertGreater(plain["excess"]["mean"], 0)
            self.assertLess(plain["excess"]["mean"], out["start"]["mean"] - rows["fp32"]["loss"]["mean"] + 1e-3)
        # At 1e-3 half of the updates are near 2^-9 of the weight: most of the gain is kept, not all. At 1e-5 they are near
        # 2^-15, and Adam's largest possible update, 3.2 times the rate, is lost by all weights above 2^-6.
        kept_fast, kept_slow = (next(row["kept"]["mean"] for row in at["rows"] if row["store"] == "bf16")
                                for at in (fast, slow))
        self.assertTrue(2**-10 < fast["ratio"] < 2**-8, fast["ratio"])
        self.assertTrue(0.5 < kept_fast < 0.95, kept_fast)
        self.assertLess(slow["ratio"], 2**-14)
        self.assertTrue(-0.02 < kept_slow < 0.1, kept_slow)
        self.assertGreater(slow["lost"], 0.97)

    def test_sgd(self):
        out = self.json("--part", "training", *SMALL, "--seeds", 2, "--rate", 0.1, "--rate", 0.001, "--optimizer", "sgd",
                        "--store", "bf16", "--store", "bf16_kahan")["training"]
        fast, slow = ({row["store"]: row["kept"]["mean"] for row in at["rows"]} for at in out["optimizers"][0]["rates"])
        self.assertGreater(fast["bf16"], 0.9)
        self.assertTrue(0.02 < slow["bf16"] < 0.5, slow)
        self.assertLess(abs(slow["bf16_kahan"] - 1), 0.02)


if __name__ == "__main__":
    if not PROGRAM:
        print("SKIPPED: NUMFMT_MASTER_WEIGHTS is missing")
        sys.exit(1)
    unittest.main(verbosity=2)
