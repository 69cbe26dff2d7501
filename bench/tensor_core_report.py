#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fills the measured part of docs/tensor_core.md from what the GPU programs wrote.

usage: tensor_core_report.py [--check]     --check: write nothing; exit code 1 if the document is out of date

Reads bench/results/tensor_core.*.json (tests/cuda/tensor_core.cu --json) and bench/results/tensor_core_experiments.*.json
(bench/tensor_core_experiments.cu --json), one pair per device.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
DOCUMENT = ROOT / "docs" / "tensor_core.md"
BEGIN, END = "<!-- measured: begin (bench/tensor_core_report.py) -->", "<!-- measured: end -->"


def comparison(data):
    """Tables of one run of tests/cuda/tensor_core.cu."""
    lines = [f"### {data['device']}: the model beside the hardware", ""]
    lines.append(f"{data['single']:,} dot products of one instruction: {data['single_mismatches']:,} different. "
                 f"{data['chains']:,} chains of up to {max(r['k'] for r in data['rows']):,} products: {data['chain_mismatches']:,} different.")
    lines += ["", "| instruction | model | one instruction | different | chains | different |", "|---|---|---|---|---|---|"]
    for entry in data["instructions"]:
        rows = [r for r in data["rows"] if r["instruction"] == entry["instruction"]]
        if not rows:
            lines.append(f"| {entry['instruction']} | {entry['model']} | not compared | | | |")
            continue
        single = [r for r in rows if r["k"] <= 32 and r["k"] == min(x["k"] for x in rows)]
        chains = [r for r in rows if r not in single]
        total = [sum(r["compared"] for r in part) for part in (single, chains)]
        wrong = [sum(r["mismatches"] for r in part) for part in (single, chains)]
        lines.append(f"| {entry['instruction']} | {entry['model']} | {total[0]:,} | {wrong[0]:,} | {total[1]:,} | {wrong[1]:,} |")
    different = [r for r in data["rows"] if r["mismatches"] > 0]
    if different:
        lines += ["", "Smallest inputs that differ:", ""]
        lines += [f"- {r['instruction']}, {r['class']}, K = {r['k']}: {r['mismatches']:,} of {r['compared']:,}; {r.get('smallest', '')}"
                  for r in different]
    lines += ["", "Other models on the same single instructions, different results in all classes together:", ""]
    for entry in data["instructions"]:
        others = ", ".join(f"{name} {count:,}" for name, count in entry["other_models"].items())
        lines.append(f"- {entry['instruction']}: {others}")
    return lines


def experiments(data):
    """Questions with the inputs that decide them: those on which a candidate differs from the hardware."""
    lines = [f"### {data['device']}: designed inputs", "",
             f"{len(data['experiments'])} experiments, the model differs in {data['different']}. For each question, one input that "
             "tells the candidates apart:", "",
             "| question | instruction | input | hardware | the model | other candidates |", "|---|---|---|---|---|---|"]
    seen = set()
    for e in data["experiments"]:
        candidates = dict(e["candidates"])
        model = candidates.pop("model")
        wrong = {n: v for n, v in candidates.items() if v != e["hardware"]}
        kind = "wgmma" if e["instruction"].startswith("wgmma") else "mma"
        question = re.sub(r"\b\d+ in one group", "j in one group", e["question"])
        precision = "fp8" if re.search("e4m3|e5m2", e["instruction"]) else "tf32" if "tf32" in e["instruction"] else "16 bit"
        for name in sorted(wrong) or ([""] if model != e["hardware"] else []):
            key = (question, name, kind, precision, "to fp16" in e["instruction"])
            if key in seen:
                continue
            seen.add(key)
            others = f"{name} {wrong[name]}" if name else ""
            lines.append(f"| {question} | {e['instruction']} | {e['input']} | {e['hardware']} | "
                         f"{'the same' if model == e['hardware'] else '**' + model + '**'} | {others} |")
    lines += ["", "Whole chains of fp8 wgmma, 512 outputs each:", "",
              "| data | K | relative error | promoted every 128 | different from the model |", "|---|---|---|---|---|"]
    for c in data["chains"]:
        lines.append(f"| {c['data']} | {c['k']:,} | {c['relative_error']:.3g} | {c['promoted_every_128']:.3g} | {c['different_from_model']} |")
    return lines


def measured():
    lines = []
    for path in sorted(RESULTS.glob("tensor_core.*.json")):
        lines += comparison(json.loads(path.read_text())) + [""]
    for path in sorted(RESULTS.glob("tensor_core_experiments.*.json")):
        lines += experiments(json.loads(path.read_text())) + [""]
    return "\n".join(lines) if lines else "No results in `bench/results` yet.\n"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    text = DOCUMENT.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    wanted = f"{head}{BEGIN}\n\n{measured()}\n{END}{tail}"
    if sys.argv[1:] == ["--check"]:
        if wanted != text:
            print("docs/tensor_core.md is out of date: run bench/tensor_core_report.py")
        return 0 if wanted == text else 1
    DOCUMENT.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
