# SPDX-License-Identifier: MIT
"""Adds to a benchmark's results where they come from (commit, hash of the sources, device) and takes out what is not its
business (host name, paths). usage: store.py SUBJECT RAW.json RESULT.json [--device TEXT]

--device: the machine the benchmark ran on, where that is not this one."""
import argparse
import json
import pathlib
import subprocess
import sys

from sources import ROOT, SOURCES, source_hash


def this_device():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(("model name", "CPU part"))]
    name = names[0] if names else "unknown"
    isa = next((isa for isa in ("avx512_bf16", "avx512f", "avx2", "sse4_2") if isa in text), "")
    return f"{name} ({isa})" if isa else name


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subject", choices=sorted(SOURCES))
    parser.add_argument("raw", type=pathlib.Path)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--device")
    args = parser.parse_args()
    data = json.loads(args.raw.read_text())
    context = data["context"]
    if context.get("dry_run"):
        sys.exit(f"store.py: {args.raw}: the times of a dry run are no results")
    if context.get("wrong"):
        sys.exit(f"store.py: {args.raw}: has wrong results: {'; '.join(context['wrong'])}")
    if context.get("subject", args.subject) != args.subject:
        sys.exit(f"store.py: {args.raw}: results of {context['subject']}, not of {args.subject}")
    for key in ("host_name", "load_avg"):
        context.pop(key, None)
    if "executable" in context:
        context["executable"] = pathlib.Path(context["executable"]).name
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    context |= {"commit": commit, "source_hash": source_hash(args.subject)}
    context["device"] = args.device or context.get("device") or this_device()
    args.result.write_text(json.dumps(data, indent=1) + "\n")
    print(f"stored {args.result}")


if __name__ == "__main__":
    main()
