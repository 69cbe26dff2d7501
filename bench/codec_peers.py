# SPDX-License-Identifier: MIT
"""Speed of other people's host conversions of FP8 and bf16 arrays, for the same sizes as codec_bench: PyTorch (one thread) and
ml_dtypes, each where it is installed. usage: codec_peers.py RESULT.json"""
import importlib.util
import json
import pathlib
import statistics
import sys
import time

SIZES = {"L2": 320 << 10, "256MB": 256 << 20}


def timed(run, seconds=0.2):
    run()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        t0 = time.perf_counter()
        run()
        times.append(time.perf_counter() - t0)
    return statistics.median(times)


def torch_rows():
    import torch

    torch.set_num_threads(1)
    types = {"fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2, "bf16": torch.bfloat16, "fp16": torch.float16}
    for size_name, size in SIZES.items():
        for name, dtype in types.items():
            bytes_each = torch.empty(1, dtype=dtype).element_size()
            n = size // (4 + bytes_each)
            x = torch.randn(n)
            codes, y = x.to(dtype), torch.empty(n)
            into = torch.empty(n, dtype=dtype)
            yield f"encode/fp32/{name}/{size_name}", n, bytes_each, timed(lambda: into.copy_(x))
            yield f"decode/fp32/{name}/{size_name}", n, bytes_each, timed(lambda: y.copy_(codes))


def ml_dtypes_rows():
    import ml_dtypes
    import numpy

    types = {"fp8_e4m3": ml_dtypes.float8_e4m3fn, "fp8_e5m2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16}
    n = SIZES["L2"] // 5
    x = numpy.random.default_rng(1).standard_normal(n, dtype=numpy.float32)
    for name, dtype in types.items():
        codes = x.astype(dtype)
        yield f"encode/fp32/{name}/L2", n, codes.itemsize, timed(lambda: x.astype(dtype))
        yield f"decode/fp32/{name}/L2", n, codes.itemsize, timed(lambda: codes.astype(numpy.float32))


def main():
    rows, context = [], {}
    for library, make in (("torch", torch_rows), ("ml_dtypes", ml_dtypes_rows)):
        if importlib.util.find_spec(library) is None:
            print(f"{library} is not installed", file=sys.stderr)
            continue
        context[library] = importlib.import_module(library).__version__
        for name, n, bytes_each, seconds in make():
            rows.append({"name": name, "library": library, "Gelem_per_s": n / seconds * 1e-9,
                         "GB_per_s": n * (4 + bytes_each) / seconds * 1e-9})
            print(f"{library:10} {name:32} {rows[-1]['GB_per_s']:8.2f} GB/s")
    if not rows:
        sys.exit("codec_peers.py: neither torch nor ml_dtypes is installed")
    pathlib.Path(sys.argv[1]).write_text(json.dumps({"context": context, "benchmarks": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
