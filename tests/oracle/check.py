# SPDX-License-Identifier: MIT
"""Compares numfmt with ml_dtypes, gfloat and PyTorch: every code decoded, and a million floats encoded per format and mode.

usage: check.py CODES_PROGRAM LIBRARY    LIBRARY: ml_dtypes, gfloat or torch
Exit code 77 (skipped) if the library is not installed, unless NUMFMT_REQUIRE_ORACLES is set.
"""
import os
import subprocess
import sys

SAMPLES = 1_000_000
failures = 0
compared = 0


def missing(error):
    print(f"SKIPPED: {error}; install tests/oracle/requirements.txt")
    sys.exit(1 if os.environ.get("NUMFMT_REQUIRE_ORACLES") else 77)


try:
    import numpy as np
except ImportError as e:
    missing(e)

program, library = sys.argv[1:]
FORMATS = {}
for line in subprocess.run([program, "list"], check=True, capture_output=True, text=True).stdout.splitlines():
    name, bits, size = line.split()
    FORMATS[name] = (int(bits), np.dtype(f"u{size}"))


def inputs(name):
    """Random bit patterns, random numbers inside the format's range, every value and midpoint and their neighbours."""
    rng = np.random.default_rng(20260101)
    patterns = rng.integers(0, 1 << 32, SAMPLES // 2, dtype=np.uint64).astype(np.uint32).view(np.float32)
    values = decoded(name)
    values = values[np.isfinite(values)].astype(np.float64)
    values = np.unique(values[np.isfinite(values)])
    middles = (values[1:] + values[:-1]) / 2
    with np.errstate(over="ignore"):
        points = np.concatenate([values, middles, values[-1:] * 2]).astype(np.float32)
    points = np.concatenate([points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(-np.inf))])
    top = np.log2(float(values[-1]))
    low = np.log2(float(values[values > 0][0])) - 3
    rest = max(SAMPLES - patterns.size - points.size, 0)
    with np.errstate(over="ignore"):
        ranged = (np.exp2(rng.uniform(low, top + 1, rest)) * rng.choice([-1.0, 1.0], rest)).astype(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    return np.concatenate([patterns, points, ranged, special])


def decoded(name):
    return np.frombuffer(subprocess.run([program, "decode", name], check=True, capture_output=True).stdout, np.float32)


def encoded(name, x, rounding, overflow, nan):
    out = subprocess.run([program, "encode", name, rounding, overflow, nan], input=x.tobytes(), check=True, capture_output=True).stdout
    return np.frombuffer(out, FORMATS[name][1])


def report(what, got, want, x=None):
    global failures, compared
    compared += got.size
    wrong = np.flatnonzero(got != want)
    if wrong.size:
        failures += 1
        i = wrong[0]
        at = f"code {i}" if x is None else f"{x[i]!r} ({x[i:i + 1].view(np.uint32)[0]:08X})"
        print(f"FAILED {what}: {wrong.size} of {got.size} differ, first at {at}: numfmt {got[i]}, {library} {want[i]}")
    else:
        print(f"{what}: {got.size} equal")


def same_values(what, mine, theirs):
    """Floats compared with NaN as a class and the sign of zero."""
    def key(v):
        v = np.asarray(v, np.float32)
        bits = v.view(np.uint32).copy()
        bits[np.isnan(v)] = 0x7FC00000
        return bits
    report(what, key(mine), key(theirs))


def check_ml_dtypes():
    try:
        import ml_dtypes as m
    except ImportError as e:
        missing(e)
    names = {"bf16": m.bfloat16, "fp16": np.float16, "fp8_e4m3": m.float8_e4m3fn, "fp8_e5m2": m.float8_e5m2, "fp8_e4m3fnuz": m.float8_e4m3fnuz,
             "fp8_e5m2fnuz": m.float8_e5m2fnuz, "fp6_e2m3": m.float6_e2m3fn, "fp6_e3m2": m.float6_e3m2fn, "fp4_e2m1": m.float4_e2m1fn,
             "e8m0": m.float8_e8m0fnu}
    for name, dtype in names.items():
        bits, storage = FORMATS[name]
        codes = np.arange(1 << bits, dtype=storage)
        same_values(f"decode {name}", decoded(name), codes.view(dtype).astype(np.float32))
        x = inputs(name)
        rounding = "nearest_even"
        if name == "e8m0":  # ties to even there, upward here; zero, negatives and subnormal results are its own rules
            rounding = "nearest_up"
            x = x[(x >= 2.0**-126) & ((x.view(np.uint32) & 0x7FFFFF) != 0x400000) & np.isfinite(x)]
        if name in ("fp6_e2m3", "fp6_e3m2", "fp4_e2m1"):  # no NaN: what becomes of one is each library's choice
            x = x[~np.isnan(x)]
        if name in ("bf16", "fp16"):  # NaN payloads differ; numpy and ml_dtypes keep or drop them in their own way
            x = x[~np.isnan(x)]
        with np.errstate(over="ignore", invalid="ignore"):
            theirs = x.astype(dtype).view(storage)
        report(f"encode {name}", encoded(name, x, rounding, "to_nonfinite", "keep_sign"), theirs, x)


def check_gfloat():
    try:
        import gfloat
        import gfloat.formats as f
    except ImportError as e:
        missing(e)
    names = {"bf16": f.format_info_bfloat16, "fp16": f.format_info_binary16, "fp8_e4m3": f.format_info_ocp_e4m3, "fp8_e5m2": f.format_info_ocp_e5m2,
             "fp6_e2m3": f.format_info_ocp_e2m3, "fp6_e3m2": f.format_info_ocp_e3m2, "fp4_e2m1": f.format_info_ocp_e2m1}
    modes = {"nearest_even": gfloat.RoundMode.TiesToEven, "nearest_away": gfloat.RoundMode.TiesToAway, "toward_zero": gfloat.RoundMode.TowardZero}
    for name, info in names.items():
        bits, storage = FORMATS[name]
        values = decoded(name)
        same_values(f"decode {name}", values, np.array([gfloat.decode_float(info, c).fval for c in range(1 << bits)]))
        x = inputs(name)
        x = x[~np.isnan(x)]
        for mode, theirs_mode in modes.items():
            for saturate in (True, False):
                if not saturate and bits < 8:
                    continue  # FP6 and FP4 have nothing but saturation
                codes = encoded(name, x, mode, "saturate" if saturate else "to_nonfinite", "canonical")
                with np.errstate(all="ignore"):
                    want = gfloat.round_ndarray(info, x.astype(np.float64), theirs_mode, saturate)
                same_values(f"encode {name} {mode} {'saturate' if saturate else 'to_nonfinite'}", values[codes], want)


def check_torch():
    try:
        import torch
    except ImportError as e:
        missing(e)
    names = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2,
             "fp8_e4m3fnuz": torch.float8_e4m3fnuz, "fp8_e5m2fnuz": torch.float8_e5m2fnuz, "e8m0": torch.float8_e8m0fnu}
    # PyTorch saturates E4M3, Inf included, since 2026; nothing else.
    saturates = int(torch.tensor([1000.0]).to(torch.float8_e4m3fn).view(torch.uint8)[0]) == 0x7E
    print(f"torch {torch.__version__}: E4M3 {'saturates' if saturates else 'does not saturate'}")
    for name, dtype in names.items():
        bits, storage = FORMATS[name]
        view = torch.int16 if bits == 16 else torch.uint8
        codes = torch.from_numpy(np.arange(1 << bits, dtype=storage).view(np.int16 if bits == 16 else np.uint8)).view(dtype)
        same_values(f"decode {name}", decoded(name), codes.to(torch.float32).numpy())
        x = inputs(name)
        if bits == 16:
            x = x[~np.isnan(x)]
        rounding = "nearest_even"
        if name == "e8m0":  # below 1.5 * 2^-127 PyTorch rounds up to 2^-126; the sign is ignored by both
            rounding = "nearest_up"
            a = np.abs(x)
            x = x[~((a > 2.0**-127) & (a < 1.5 * 2.0**-127))]
        overflow = "saturate" if name == "fp8_e4m3" and saturates else "to_nonfinite"
        theirs = torch.from_numpy(x.copy()).to(dtype).view(view).numpy().view(storage)
        report(f"encode {name}", encoded(name, x, rounding, overflow, "canonical_signed"), theirs, x)


{"ml_dtypes": check_ml_dtypes, "gfloat": check_gfloat, "torch": check_torch}[library]()
print(f"{compared} comparisons with {library}, {failures} rows failed")
sys.exit(1 if failures or compared == 0 else 0)
