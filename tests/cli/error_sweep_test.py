#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Runs error_sweep as a user does: every bad input, every option, every output, and the numbers of the sample against an
# independent implementation.
"""usage: error_sweep_test.py    with NUMFMT_ERROR_SWEEP (the program) and NUMFMT_SAMPLE_DIR (examples/data) set"""
import csv
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("NUMFMT_ERROR_SWEEP", "")
SAMPLE = pathlib.Path(os.environ.get("NUMFMT_SAMPLE_DIR", "")) / "minilm_sample.safetensors"
QUERY = "encoder.layer.5.attention.self.query"
UNSCALED = ["bf16", "fp16", "fp8_e4m3", "fp8_e5m2"]
NUMBERS = ["bits_per_weight", "stored_bits_per_weight", "sqnr_db", "relative_rms_error", "max_relative_error",
           "share_clipped", "share_flushed", "wx_relative_error"]
COUNTS = ["weights", "nan", "infinite", "lost", "replaced", "clipped", "flushed"]


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
                          **options)


def checkpoint(header, data=b""):
    """Bytes of a .safetensors file; `header` is an object or the header's own bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensors(**named):
    """Bytes of a file of tensors: name=(dtype, shape, bytes). Two underscores in a name stand for a dot."""
    header, data = {}, b""
    for name, (dtype, shape, payload) in named.items():
        header[name.replace("__", ".")] = {
            "dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(payload)]}
        data += payload
    return checkpoint(header, data)


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def spread(n, scale=1.0):
    """n values without a pattern that a block would see."""
    return [scale * math.sin(i * i + 1.0) for i in range(n)]


def read_sample(name):
    """(shape, values) of one F32 tensor of the sample."""
    raw = SAMPLE.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    entry = json.loads(raw[8:8 + size])[name]
    begin, end = entry["data_offsets"]
    return entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", raw[8 + size + begin:8 + size + end])


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="error_sweep_test."))
        self.addCleanup(shutil.rmtree, self.directory, True)

    def file(self, content, name="model.safetensors"):
        path = self.directory / name
        path.write_bytes(content)
        return path

    def succeed(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, message, *arguments, code=2, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        self.assertIn(message, result.stderr)
        self.assertTrue(result.stderr.startswith("error_sweep: "), result.stderr)
        self.assertEqual(result.stdout, "")

    def sweep(self, *arguments):
        """The parsed JSON of a run."""
        return json.loads(self.succeed(*arguments, "--json").stdout)

    def rows(self, *arguments):
        """The total's rows by (scheme, scale rule)."""
        return {(r["scheme"], r["scale_rule"]): r for r in self.sweep(*arguments)["schemes"]}

    def one(self, *arguments):
        """The only row."""
        schemes = self.sweep(*arguments)["schemes"]
        self.assertEqual(len(schemes), 1)
        return schemes[0]


class BadInput(Case):
    def bad_file(self, message, content):
        self.refused(message, self.file(content))

    def test_damaged_files(self):
        weight = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
        self.bad_file("got a file of 0 bytes", b"")
        self.bad_file("got a file of 5 bytes", b"\x01\0\0\0\0")
        self.bad_file("header length: got 99999", struct.pack("<Q", 99999) + b"{}")
        self.bad_file("header length: got 18446744073709551615", b"\xff" * 8 + b"{}")
        self.bad_file("wanted an end within", SAMPLE.read_bytes()[:-1])
        self.bad_file("header length", SAMPLE.read_bytes()[:200])
        self.bad_file("not valid JSON", checkpoint(b'{"w": nonsense}'))
        self.bad_file("opening brace", checkpoint(b"[1, 2]", bytes(8)))
        self.bad_file("dtype: got 'F13', wanted one of", checkpoint({"w": dict(weight, dtype="F13")}, bytes(24)))
        self.bad_file("shape: got -2", checkpoint({"w": dict(weight, shape=[-2, 3])}, bytes(24)))
        self.bad_file("overflows 63 bits", checkpoint({"w": dict(weight, shape=[2**40, 2**40])}, bytes(24)))
        self.bad_file("wanted 36 bytes for F32 [3, 3]", checkpoint({"w": dict(weight, shape=[3, 3])}, bytes(24)))
        self.bad_file("wanted begin <= end", checkpoint({"w": dict(weight, data_offsets=[24, 0])}, bytes(24)))
        self.bad_file("overlaps the tensor before it",
                      checkpoint({"a": weight, "b": dict(weight, data_offsets=[12, 36])}, bytes(36)))
        self.bad_file("trailing bytes", checkpoint({"w": weight}, bytes(30)))
        self.bad_file("dtype is missing", checkpoint({"w": {"shape": [2, 3], "data_offsets": [0, 24]}}, bytes(24)))

    def test_paths(self):
        self.refused("cannot open: No such file", self.directory / "missing.safetensors")
        self.refused("Is a directory", self.directory)
        self.refused("the path is empty", "")
        fifo = self.directory / "fifo.safetensors"
        os.mkfifo(fifo)
        self.refused("is not a regular file", fifo)
        if os.geteuid() != 0:  # root may read everything
            path = self.file(tensors(w=("F32", [1, 2], bytes(8))))
            path.chmod(0)
            self.refused("cannot open: Permission denied", path)

    def test_nothing_to_measure(self):
        self.bad_file("no weight to measure", checkpoint({}))
        self.bad_file("no weight to measure", tensors(bias=("F32", [3], bytes(12)), ids=("I64", [1, 2], bytes(16)),
                                                      none=("F32", [0, 4], b"")))
        self.bad_file("no weight to measure", tensors(x__input=("F32", [1, 2], bytes(8))))

    def test_activations_that_do_not_fit(self):
        weight = ("F32", [2, 3], floats(spread(6)))
        self.bad_file("tensor 'a.input': got shape [1, 2], wanted [T, 3] as activations of 'a.weight'",
                      tensors(a__weight=weight, a__input=("F32", [1, 2], bytes(8))))
        self.bad_file("got shape [3]", tensors(a__weight=weight, a__input=("F32", [3], bytes(12))))

    def test_options(self):
        self.refused("--scheme: 'mxfp5' is unknown; known are: bf16, fp16, fp8_e4m3, fp8_e5m2, fp8_per_tensor",
                     "--scheme", "mxfp5")
        self.refused("--scheme: '' is unknown", "--scheme", "")
        self.refused("--tensor: '(' is not a regular expression", "--tensor", "(")
        self.refused("matches 'no such tensor'", "--tensor", "no such tensor")
        self.refused("--tensor", "--tensor", "")
        self.refused("--rounding", "--rounding", "up")
        self.refused("--scale-rule", "--scale-rule", "sometimes")
        self.refused("--nonfinite", "--nonfinite", "ignore")
        self.refused("--int4-range", "--int4-range", "max")
        self.refused("--int4-symmetric-range", "--int4-symmetric-range", "minmax")
        self.refused("--synthetic", "--synthetic", "cauchy")
        self.refused("--threads", "--threads", "0")
        self.refused("--threads", "--threads", "many")
        self.refused("--samples", "--synthetic", "gaussian", "--samples", "0")
        self.refused("--samples", "--synthetic", "gaussian", "--samples", "1e6")
        self.refused("got 5000, wanted at most 4096 or a multiple", "--synthetic", "gaussian", "--samples", "5000")
        self.refused("--sigma", "--synthetic", "gaussian", "--sigma", "0")
        for seed in ("-1", 2**64, "1.5", "", "x"):
            self.refused(f"--seed: got '{seed}', wanted an integer", "--synthetic", "gaussian", "--seed", seed)
        self.refused("--no-such-option", "--no-such-option")
        self.refused("second", SAMPLE, "second")

    def test_options_that_would_do_nothing(self):
        self.refused("--samples: only --synthetic", "--samples", "4096")
        self.refused("--sigma: only --synthetic", "--sigma", "2")
        self.refused("--seed: only --synthetic and --rounding stochastic", "--seed", "1")
        self.refused("does not go with --synthetic", SAMPLE, "--synthetic", "gaussian")
        self.refused("--tensor: does not go with --synthetic", "--tensor", "a", "--synthetic", "gaussian")
        self.refused("--summary: does not go with --json", "--summary", "--json")
        self.refused("--scale-rule: none of the chosen", "--scheme", "bf16", "--scale-rule", "ceil")
        self.refused("--int4-range: none of the chosen", "--scheme", "mxfp4", "--int4-range", "minmax")
        self.refused("--int4-symmetric-range: none of the chosen", "--scheme", "awq_int4",
                     "--int4-symmetric-range", "within_7")

    def test_outputs(self):
        self.refused("--csv: cannot write", "--csv", self.directory / "no" / "out.csv")
        self.refused("it is a directory", "--csv", self.directory)
        self.refused("wanted a name that ends in .svg or .png", "--plot", self.directory / "plot.pdf")
        self.refused("--plot: cannot write", "--plot", self.directory / "no" / "plot.svg")
        bare = dict(os.environ, PATH=str(self.directory))
        self.refused("gnuplot is not installed", "--plot", self.directory / "plot.svg", code=1, env=bare)
        self.assertEqual(list(self.directory.iterdir()), [])  # nothing was left behind

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([PROGRAM, SAMPLE, "--summary"], stdout=full, stderr=subprocess.PIPE, timeout=300,
                                    check=False)
        self.assertEqual(result.returncode, 1, result.stderr)
        result = run(SAMPLE, "--summary", "--csv", "/dev/full")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--csv: cannot write '/dev/full'", result.stderr)


class Outputs(Case):
    def test_help(self):
        text = self.succeed("--help").stdout
        for option in ("--scheme", "--tensor", "--rounding", "--scale-rule", "--nonfinite", "--int4-range", "--summary",
                       "--csv", "--json", "--plot", "--synthetic", "--samples", "--sigma", "--seed", "--threads"):
            self.assertIn(option, text)
        self.assertIn("Examples:", text)
        self.assertRegex(self.succeed("--version").stdout, r"numfmt \d+\.\d+\.\d+")

    def test_json_lists_every_scheme(self):
        known = run("--scheme", "?").stderr.split("known are: ")[1].strip().split(", ")
        out = self.sweep(SAMPLE)
        self.assertEqual([r["scheme"] for r in out["schemes"]], known)
        self.assertEqual(known[:4], UNSCALED)
        for scheme in ("fp8_per_tensor", "fp8_per_channel", "block_fp8_128x128", "mxfp8_e4m3", "mxfp4", "awq_int4"):
            self.assertIn(scheme, known)
        self.assertEqual(len(out["tensors"]), 4)
        self.assertEqual(out["skipped"], [])
        for rows in [out["schemes"]] + [t["schemes"] for t in out["tensors"]]:
            self.assertEqual([r["scheme"] for r in rows], known)
            for row in rows:
                for key in NUMBERS:
                    self.assertIsInstance(row[key], (int, float), (row["scheme"], key))
                for key in COUNTS:
                    self.assertIsInstance(row[key], int)
        weights = [t["schemes"][0]["weights"] for t in out["tensors"]]
        self.assertEqual(weights, [math.prod(t["shape"]) for t in out["tensors"]])
        self.assertEqual(out["schemes"][0]["weights"], sum(weights))

    def test_bits_per_weight(self):
        rows = {r["scheme"]: r for r in self.sweep(SAMPLE, "--tensor", "layer.0")["schemes"]}
        for scheme, bits in (("bf16", 16), ("fp8_e4m3", 8), ("mxfp4", 4.25), ("mxfp8_e4m3", 8.25),
                             ("awq_int4", 4.15625),
                             ("block_fp8_128x128", 8.001953125), ("block_fp8_1x128", 8.25), ("fp8_per_tensor", 8)):
            self.assertEqual(rows[scheme]["bits_per_weight"], bits)
        # [384, 384]: three groups a row have 3 * 4 bits of zero points in 2 bytes; one float for the tensor.
        self.assertAlmostEqual(rows["awq_int4"]["stored_bits_per_weight"], 4 + (3 * 16 + 16) / 384, places=12)
        self.assertAlmostEqual(rows["fp8_per_tensor"]["stored_bits_per_weight"], 8 + 32 / 384**2, places=12)
        self.assertEqual(rows["mxfp4"]["stored_bits_per_weight"], 4.25)

    def test_csv(self):
        path = self.directory / "out.csv"
        result = self.succeed(SAMPLE, "--csv", path)
        self.assertIn("W x error", result.stdout)  # the tables are still there
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        out = self.sweep(SAMPLE)
        schemes = len(out["schemes"])
        self.assertEqual(len(rows), (4 + 1) * schemes)
        self.assertEqual([r["tensor"] for r in rows[::schemes]], [t["name"] for t in out["tensors"]] + ["total"])
        for row, wanted in zip(rows[-schemes:], out["schemes"]):
            self.assertEqual(row["scheme"], wanted["scheme"])
            for key in NUMBERS:
                self.assertEqual(float(row[key]), wanted[key], key)
            for key in COUNTS:
                self.assertEqual(int(row[key]), wanted[key], key)

    def test_csv_quotes_names(self):
        name = 'a,"b"\nc'
        path = self.file(checkpoint({name: {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}, floats([1, 2])))
        out = self.directory / "out.csv"
        self.succeed(path, "--csv", out)
        with open(out, newline="", encoding="utf-8") as file:
            self.assertEqual({r["tensor"] for r in csv.DictReader(file)}, {name, "total"})

    def test_table(self):
        result = self.succeed(SAMPLE)
        lines = result.stdout.splitlines()
        self.assertEqual(result.stderr, "")
        headers = [i for i, line in enumerate(lines) if line.startswith("scheme")]
        self.assertEqual(len(headers), 5)
        for i in headers:
            self.assertIn("SQNR", lines[i])
            self.assertIn("dB", lines[i + 1])
            self.assertEqual(set(lines[i + 2]), {"-"})
            width = len(lines[i + 2])
            self.assertTrue(all(len(line) == width for line in lines[i + 3:i + 7]), lines[i + 3:i + 7])
        self.assertTrue(any(line.startswith("total") and "383,232 weights" in line for line in lines))
        summary = self.succeed(SAMPLE, "--summary").stdout
        self.assertEqual(summary.count("SQNR"), 1)
        self.assertTrue(summary.startswith("total"))
        self.assertTrue(result.stdout.endswith(summary))

    def test_default_is_the_sample(self):
        self.assertEqual(self.sweep()["schemes"], self.sweep(SAMPLE)["schemes"])
        result = self.succeed("--summary", cwd=self.directory)
        self.assertIn("minilm_sample", result.stdout)

    def test_plot(self):
        if shutil.which("gnuplot") is None:
            print("[numfmt] skipped: error_sweep: plot: gnuplot is not installed", flush=True)
            self.skipTest("gnuplot is not installed")
        svg, png = self.directory / "it's a plot.svg", self.directory / "plot.png"
        self.succeed(SAMPLE, "--plot", svg)
        text = svg.read_text(encoding="utf-8")
        self.assertIn("<svg", text)
        self.assertIn("bits per weight", text)
        self.assertIn("relative error of W x", text)
        for scheme in UNSCALED + ["mxfp4", "awq_int4", "block_fp8_128x128"]:
            self.assertEqual(text.count(f">{scheme}<"), 1, scheme)
        # No two labels overlap: 7.3 units a character and 13 a line at this font size.
        places = re.findall(r'translate\(([\d.]+),([\d.]+)\)"[^>]*font-size="13.00"[^>]*anchor="middle">\s*'
                            r'<text>(\w+)</text>', text)
        self.assertGreaterEqual(len(places), 16)
        boxes = [(float(x), float(y), 7.3 * len(name) / 2, name) for x, y, name in places]
        for i, (x, y, half, name) in enumerate(boxes):
            for other_x, other_y, other_half, other in boxes[:i]:
                apart = abs(x - other_x) >= half + other_half or abs(y - other_y) >= 13
                self.assertTrue(apart, (name, other))
        self.succeed("--synthetic", "gaussian", "--samples", "8192", "--plot", png)
        self.assertEqual(png.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.succeed("--synthetic", "gaussian", "--samples", "8192", "--plot", svg)
        self.assertIn("relative rms error", svg.read_text(encoding="utf-8"))  # no activations
        self.succeed(SAMPLE, "--scheme", "bf16", "--plot", svg)  # a single point

    def test_exact_and_odd_names(self):
        # bf16 holds these values: no error, which JSON has no number for. Control characters never reach the terminal.
        path = self.file(checkpoint({"x\u001b[2J.weight": {"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32]}},
                                    floats([1, 2, -3, 4, 0.5, 0, 7, 1.5])))
        row = self.one(path, "--scheme", "bf16")
        self.assertIsNone(row["sqnr_db"])
        self.assertEqual(row["relative_rms_error"], 0)
        self.assertIsNone(row["wx_relative_error"])
        table = self.succeed(path, "--scheme", "bf16").stdout
        self.assertIn("exact", table)
        self.assertIn("x?[2J.weight", table)
        self.assertNotIn("\x1b", table)


class Options(Case):
    def test_scheme_is_a_filter(self):
        rows = self.sweep(SAMPLE, "--scheme", "mxfp4", "--scheme", "fp16", "--scheme", "mxfp4")["schemes"]
        self.assertEqual([r["scheme"] for r in rows], ["fp16", "mxfp4"])
        everything = {r["scheme"]: r for r in self.sweep(SAMPLE)["schemes"]}
        self.assertEqual(rows[1], everything["mxfp4"])

    def test_tensor_is_a_filter(self):
        names = [t["name"] for t in self.sweep(SAMPLE, "--tensor", r"layer\.[25]\.")["tensors"]]
        self.assertEqual(len(names), 2)
        self.assertTrue(all("layer.2." in n or "layer.5." in n for n in names))

    def test_rounding_reaches_every_row(self):
        # Ties of every format with a scale of 1 somewhere, and values between.
        values = [2.5, 3.5, -2.5, 5.0, 7.0, 0.25, 0.75, -1.75] * 16 + spread(128, 6.0)
        path = self.file(tensors(w__weight=("F32", [2, 128], floats(values)),
                                 w__input=("F32", [1, 128], floats([1] * 128))))
        by_rounding = {}
        for rounding in ("nearest_even", "nearest_away", "nearest_to_zero", "toward_zero", "stochastic"):
            by_rounding[rounding] = self.rows(path, "--rounding", rounding)
        for row, nearest in by_rounding["nearest_even"].items():
            for rounding in ("toward_zero", "stochastic"):
                other = by_rounding[rounding][row]
                self.assertLess(other["sqnr_db"], nearest["sqnr_db"] - 1, (row, rounding))
        # Both sides of a tie have the same error, but not the same sum.
        mxfp4 = [r[("mxfp4", "floor")]["wx_relative_error"] for r in by_rounding.values()]
        self.assertEqual(len(set(mxfp4)), 5, mxfp4)
        # Stochastic: about 10 log10(2) dB worse than nearest (E[f (1 - f)] = 1/6 against 1/12).
        arguments = ("--synthetic", "gaussian", "--samples", 1 << 20, "--scheme", "bf16")
        nearest = self.one(*arguments)["sqnr_db"]
        self.assertAlmostEqual(nearest - self.one(*arguments, "--rounding", "stochastic")["sqnr_db"], 3.01, delta=0.03)
        layer = (SAMPLE, "--tensor", QUERY, "--scheme", "bf16", "--rounding", "stochastic")
        self.assertNotEqual(self.one(*layer, "--seed", 1)["sqnr_db"], self.one(*layer, "--seed", 2)["sqnr_db"])

    def test_scale_rule_changes_power_of_two_scales_only(self):
        floor = self.rows(SAMPLE)
        every = self.rows(SAMPLE, "--scale-rule", "all")
        for rule in ("ceil", "round_up", "even"):
            other = self.rows(SAMPLE, "--scale-rule", rule)
            changed = 0
            for (scheme, scale_rule), row in other.items():
                if scale_rule is None:
                    self.assertEqual(row, floor[(scheme, None)])
                else:
                    self.assertEqual(scale_rule, rule)
                    self.assertEqual(row, every[(scheme, rule)])
                    self.assertNotEqual(row["sqnr_db"], floor[(scheme, "floor")]["sqnr_db"])
                    changed += 1
            self.assertGreaterEqual(changed, 5)
        ruled = sum(rule is not None for _, rule in floor)
        self.assertEqual(len(every), len(floor) + 3 * ruled)
        # The rule that never saturates amax never clips; the floor rule does.
        self.assertEqual(every[("mxfp4", "round_up")]["clipped"], 0)
        self.assertGreater(every[("mxfp4", "floor")]["share_clipped"], 0.003)

    def test_int4_range(self):
        path = self.file(tensors(w=("F32", [2, 128], floats([1 + abs(v) for v in spread(256)]))))
        include = self.one(path, "--scheme", "awq_int4")
        minmax = self.one(path, "--scheme", "awq_int4", "--int4-range", "minmax")
        self.assertEqual(include["clipped"], 0)
        self.assertGreater(minmax["share_clipped"], 0.1)  # the zero point of a one-signed group does not fit

    def test_int4_symmetric_range(self):
        sqnr = {}
        for name in ("within_7", "full_range", "no_clipping"):
            row = self.one("--synthetic", "gaussian", "--samples", 1 << 18, "--scheme", "int4_symmetric_g128",
                           "--int4-symmetric-range", name)
            sqnr[name] = row["sqnr_db"]
        self.assertEqual(len(set(sqnr.values())), 3)
        # A step of amax / 7 or of amax / 7.5, the noise being step^2 / 12: 0.6 dB.
        self.assertAlmostEqual(sqnr["full_range"] - sqnr["within_7"], 20 * math.log10(7.5 / 7), delta=0.15)

    def test_nonfinite(self):
        values = spread(3 * 64)
        values[5], values[70], values[71] = math.nan, math.inf, -math.inf
        path = self.file(tensors(w=("F32", [3, 64], floats(values))))
        rows = self.rows(path)
        for row in rows.values():
            self.assertEqual((row["nan"], row["infinite"], row["replaced"]), (1, 2, 0))
        lost = {scheme: row["lost"] for (scheme, _), row in rows.items()}
        self.assertEqual(lost["bf16"], 0)
        self.assertEqual(lost["mxfp4"], 31 + 30)             # two blocks of 32
        self.assertEqual(lost["fp8_per_channel"], 63 + 62)   # two rows
        self.assertEqual(lost["fp8_per_tensor"], 3 * 64 - 3)
        self.assertEqual(lost["awq_int4"], 63 + 62)
        self.assertIsNone(rows[("fp8_per_tensor", None)]["sqnr_db"])  # nothing is left to compare
        table = self.succeed(path).stdout
        self.assertIn("1 NaN, 2 Inf", table)
        self.assertRegex(table, r"flushed +lost\n")
        for row in self.rows(path, "--nonfinite", "saturate").values():
            self.assertEqual(row["lost"], 0)
            # Formats with a NaN keep it; FP6, FP4 and the integers have none.
            keeps_nan = "fp8" in row["scheme"] or row["scheme"] in UNSCALED
            self.assertEqual(row["replaced"], 2 if keeps_nan else 3, row["scheme"])
        self.assertRegex(self.succeed(path, "--nonfinite", "saturate").stdout, r"flushed +replaced\n")

    def test_lost_weights_leave_no_good_looking_output_error(self):
        values = spread(2 * 32)
        values[3] = math.nan
        path = self.file(tensors(a__weight=("F32", [2, 32], floats(values)),
                                 a__input=("F32", [1, 32], floats(spread(32)))))
        rows = self.rows(path)
        self.assertIsNone(rows[("mxfp4", "floor")]["wx_relative_error"])
        self.assertGreater(rows[("bf16", None)]["wx_relative_error"], 0)
        self.assertRegex(self.succeed(path, "--scheme", "mxfp4").stdout, r"mxfp4 .* nan +31\n")

    def test_synthetic(self):
        arguments = ("--synthetic", "gaussian", "--samples", 1 << 20)
        rows = self.rows(*arguments, "--scheme", "mxfp4", "--scheme", "fp8_per_tensor", "--scheme", "bf16")
        self.assertAlmostEqual(rows[("bf16", None)]["sqnr_db"], 55.589, delta=0.03)
        self.assertAlmostEqual(rows[("fp8_per_tensor", None)]["sqnr_db"], 31.545, delta=0.15)
        self.assertAlmostEqual(rows[("mxfp4", "floor")]["sqnr_db"], 18.790, delta=0.05)
        laplace = self.one("--synthetic", "laplace", "--samples", 1 << 20, "--scheme", "mxfp4")
        self.assertAlmostEqual(laplace["sqnr_db"], 17.992, delta=0.05)
        seeds = {self.one(*arguments, "--scheme", "mxfp4", "--seed", s)["sqnr_db"] for s in (0, 1)}
        self.assertEqual(len(seeds), 2)
        small = self.one(*arguments, "--scheme", "fp8_e4m3", "--sigma", "0.002")
        self.assertAlmostEqual(small["sqnr_db"], 10.997, delta=0.05)
        few = self.sweep("--synthetic", "gaussian", "--samples", 100, "--scheme", "bf16")
        self.assertEqual(few["tensors"][0]["shape"], [1, 100])

    def test_results_do_not_depend_on_threads(self):
        # Several bands, two of them partial blocks, and one scale for all of them.
        arguments = ("--synthetic", "laplace", "--samples", 4096 * 777, "--rounding", "stochastic", "--seed", 3,
                     "--scheme", "fp8_per_tensor", "--scheme", "block_fp8_128x128", "--scheme", "mxfp4", "--json")
        outputs = {self.succeed(*arguments, "--threads", n).stdout for n in (1, 2, 7)}
        self.assertEqual(len(outputs), 1)


class Files(Case):
    def test_types_of_tensors(self):
        values = [1.5, -2.0, 0.25, 3.0, -0.5, 1.0, 1.75, -3.5]  # exact in every type
        top16 = struct.unpack("<8I", floats(values))
        codes = {"F64": struct.pack("<8d", *values), "F32": floats(values), "F16": struct.pack("<8e", *values),
                 "BF16": struct.pack("<8H", *(c >> 16 for c in top16)),
                 "F8_E5M2": bytes((struct.unpack("<H", struct.pack("<e", v))[0] >> 8) for v in values),
                 "F8_E4M3": bytes([0x3C, 0xC0, 0x28, 0x44, 0xB0, 0x38, 0x3E, 0xC6])}
        results = {}
        for dtype, data in codes.items():
            path = self.file(tensors(w=(dtype, [2, 4], data)))
            results[dtype] = self.sweep(path, "--scheme", "mxfp4")
            self.assertEqual(results[dtype]["schemes"], results["F64"]["schemes"], dtype)
        self.assertIn("F64 weights are rounded", results["F64"]["notes"][0])
        self.assertIn("taken as stored", results["F8_E4M3"]["notes"][0])
        self.assertEqual(results["F32"]["schemes"][0]["weights"], 8)

    def test_experts_are_separate_matrices(self):
        # Two experts of 3 rows, a thousand times apart: a scale or block across both would flush the small one.
        small, large = spread(3 * 40, 1e-3), spread(3 * 40, 1.0)
        stacked = self.file(tensors(w=("F32", [2, 3, 40], floats(small + large))), "stacked.safetensors")
        apart = self.file(tensors(a=("F32", [3, 40], floats(small)), b=("F32", [3, 40], floats(large))))
        self.assertEqual(self.rows(stacked), self.rows(apart))
        deep = self.file(tensors(w=("F32", [2, 1, 3, 40], floats(small + large))), "deep.safetensors")
        self.assertEqual(self.rows(deep), self.rows(apart))

    def test_what_is_skipped_is_named(self):
        path = self.file(tensors(w=("F32", [2, 4], floats(spread(8))), norm=("F32", [4], bytes(16)),
                                 s=("F32", [], bytes(4)),
                                 ids=("I32", [2, 2], bytes(16)), none=("BF16", [0, 4], b""),
                                 lonely__input=("F32", [1, 4], bytes(16))))
        result = self.succeed(path, "--scheme", "bf16")
        for text in ("skipped 1 tensor (1-D): norm", "(0-D): s", "(I32 is not read): ids", "(empty): none",
                     "(activations without a weight): lonely.input"):
            self.assertIn(text, result.stderr)
        skipped = self.sweep(path, "--scheme", "bf16")["skipped"]
        self.assertEqual({s["name"] for s in skipped}, {"norm", "s", "ids", "none", "lonely.input"})

    def test_activations_that_are_not_finite(self):
        path = self.file(tensors(a__weight=("F32", [2, 4], floats(spread(8))),
                                 a__input=("F32", [1, 4], floats([1, math.nan, 2, 3]))))
        result = self.succeed(path)
        self.assertIn("1 of 4 activations are NaN or Inf: no W x error", result.stderr)
        self.assertNotIn("W x error", result.stdout)

    def test_large_tensor_with_one_scale(self):
        # Several bands; the largest weight is in the last one and sets the scale of all.
        cols, rows = 2048, 1100
        values = [0.001 * ((i * 7919) % 1999 - 999) / 999 for i in range(cols)] * rows
        values[-1] = 448.0
        path = self.file(tensors(w=("F32", [rows, cols], floats(values))))
        row = self.one(path, "--scheme", "fp8_per_tensor")
        # Scale 1: everything below 2^-10 is flushed, what is above becomes 2^-9 at most.
        wanted = sum(0 < abs(v) <= 2**-10 for v in values)
        self.assertEqual(row["flushed"], wanted)
        self.assertGreater(row["share_flushed"], 0.9)


class Numbers(Case):
    """The sample's smallest layer against an implementation written for this test."""

    @staticmethod
    def single(x):
        return struct.unpack("<f", struct.pack("<f", x))[0]

    @staticmethod
    def half(x):
        return struct.unpack("<e", struct.pack("<e", x))[0]

    def mxfp4(self, row):
        table = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
        out = []
        for k in range(0, len(row), 32):
            block = row[k:k + 32]
            scale = 2.0 ** (math.frexp(max(map(abs, block)))[1] - 1 - 2)
            for v in block:
                m = abs(v) / scale
                code = min(range(8), key=lambda c: (abs(table[c] - m), c % 2))  # nearest, ties to the even code
                out.append(math.copysign(table[code] * scale, v))
        return out

    def awq_int4(self, row):
        out = []
        for k in range(0, len(row), 128):
            group = row[k:k + 128]
            low, high = min(min(group), 0), max(max(group), 0)
            scale = self.half(self.single(self.single(high - low) / 15))
            zero = -round(self.single(low / scale))
            for v in group:
                code = min(max(round(self.single(v / scale)) + zero, 0), 15)
                out.append(self.single((code - zero) * scale))
        return out

    def test_mxfp4_and_awq_int4(self):
        (n, k), weight = read_sample(QUERY + ".weight")
        (t, _), x = read_sample(QUERY + ".input")
        tokens = [x[i * k:(i + 1) * k] for i in range(t)]
        rows = [weight[i * k:(i + 1) * k] for i in range(n)]
        signal = sum(v * v for v in weight)
        reference = sum(sum(a * b for a, b in zip(r, token)) ** 2 for r in rows for token in tokens)
        energy = [sum(token[j] ** 2 for token in tokens) for j in range(k)]  # of each input channel
        for scheme, quantize in (("mxfp4", self.mxfp4), ("awq_int4", self.awq_int4)):
            got = self.one(SAMPLE, "--tensor", QUERY, "--scheme", scheme)
            difference = [[b - a for a, b in zip(r, quantize(r))] for r in rows]
            noise = sum(d * d for r in difference for d in r)
            product = sum(sum(d * v for d, v in zip(r, token)) ** 2 for r in difference for token in tokens)
            relative = max(abs(d / w) for r, dr in zip(rows, difference) for w, d in zip(r, dr) if w != 0)
            flushed = sum(w != 0 and d == -w for r, dr in zip(rows, difference) for w, d in zip(r, dr))
            self.assertAlmostEqual(got["sqnr_db"], 10 * math.log10(signal / noise), places=8)
            self.assertAlmostEqual(got["relative_rms_error"], math.sqrt(noise / signal), places=10)
            self.assertAlmostEqual(got["wx_relative_error"], math.sqrt(product / reference), places=10)
            self.assertAlmostEqual(got["max_relative_error"], relative, places=10)
            self.assertEqual(got["flushed"], flushed)
            # Were the errors independent of each other, ||D X^T||^2 would be sum_k d_k^2 ||x_k||^2. They nearly are.
            independent = sum(d * d * energy[j] for r in difference for j, d in enumerate(r))
            self.assertGreater(product, 0.7 * independent)
            self.assertLess(product, 1.4 * independent)

    def test_total_of_the_sample(self):
        rows = self.rows(SAMPLE)
        # Rms error: E2M1 in blocks of 32 has 18.79 dB (11.5 %) on Gaussian and 17.99 dB (12.6 %) on Laplace weights,
        # int4 in groups of 128 at most 19.96 dB (10.0 %) and 17.69 dB (13.0 %). The sample lies between the two.
        # bf16: a relative error even over +-2^-9 at the binade's start and half of it at its end: 55.6 dB.
        mxfp4, awq, bf16 = rows[("mxfp4", "floor")], rows[("awq_int4", None)], rows[("bf16", None)]
        self.assertTrue(0.112 < mxfp4["relative_rms_error"] < 0.130, mxfp4)
        self.assertTrue(0.098 < awq["relative_rms_error"] < 0.135, awq)
        self.assertAlmostEqual(bf16["sqnr_db"], 55.6, delta=0.3)
        # W x: independent errors would give about the same relative error. Less where a few exact large products
        # dominate the output, as in layer 2; never more than the rms error by much.
        self.assertTrue(0.05 < mxfp4["wx_relative_error"] < 0.14, mxfp4)
        self.assertTrue(0.03 < awq["wx_relative_error"] < 0.14, awq)
        self.assertTrue(2e-4 < bf16["wx_relative_error"] < 3e-3, bf16)
        # The total pools the tensors: signal and noise add up.
        out = self.sweep(SAMPLE, "--scheme", "mxfp4")
        parts = [t["schemes"][0] for t in out["tensors"]]
        worst, best = max(p["sqnr_db"] for p in parts), min(p["sqnr_db"] for p in parts)
        self.assertTrue(best < mxfp4["sqnr_db"] < worst)
        self.assertEqual(mxfp4["flushed"], sum(p["flushed"] for p in parts))


if __name__ == "__main__":
    if not PROGRAM or not SAMPLE.is_file():
        print("SKIPPED: NUMFMT_ERROR_SWEEP or the sample in NUMFMT_SAMPLE_DIR is missing")
        sys.exit(1)
    unittest.main(verbosity=2)
