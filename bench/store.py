# SPDX-License-Identifier: MIT
"""Adds where a benchmark's results come from (commit, hash of the sources, device) and takes out what is not its business
(host name, paths). usage: store.py RAW.json RESULT.json"""
import hashlib
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def source_hash():
    """One hash over the library and the benchmarks, so that results of older sources are recognised."""
    digest = hashlib.sha256()
    for folder, pattern in (("include", "**/*.h*"), ("bench", "*.[ch]pp")):
        for path in sorted((ROOT / folder).glob(pattern)):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def device():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU part")):
            name = line.split(":", 1)[1].strip()
            break
    else:
        name = "unknown"
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    for isa in ("avx512_bf16", "avx512f", "avx2", "sse4_2"):
        if isa in flags:
            return f"{name} ({isa})"
    return name


def main():
    raw, target = map(pathlib.Path, sys.argv[1:])
    data = json.loads(raw.read_text())
    context = data["context"]
    for key in ("host_name", "load_avg"):
        context.pop(key, None)
    context["executable"] = pathlib.Path(context["executable"]).name
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    context |= {"commit": commit, "source_hash": source_hash(), "device": device()}
    target.write_text(json.dumps(data, indent=1) + "\n")
    print(f"stored {target}")


if __name__ == "__main__":
    main()
