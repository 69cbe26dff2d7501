#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the results in bench/results against bench/goals.json and writes docs/performance.md.

usage: report.py [--check]     --check: print every goal with its figure, write nothing; fails on missing or stale results

A result is stale when a source of its subject changed after it was measured. A goal that is not met is printed as a miss and
is no failure: it is a result. The prose of docs/performance.md stands in bench/performance.in.md."""
import json
import re
import sys

from sources import ROOT, source_hash

RESULTS = ROOT / "bench" / "results"


def rows_of(data):
    for row in data.get("benchmarks", data.get("rows", [])):
        yield re.split(r"/(?:min_time|iterations|manual_time)", row["name"])[0], row


def load(goals):
    """Rows by subject, and what is wrong with the files."""
    rows, contexts, problems = {}, {}, []
    for subject, about in goals["subjects"].items():
        rows[subject] = {}
        for file in about["files"]:
            path = RESULTS / file
            if not path.exists():
                problems.append(f"bench/results/{file} is missing")
                continue
            data = json.loads(path.read_text())
            contexts[subject] = data["context"]
            if data["context"].get("source_hash") != source_hash(subject):
                problems.append(f"bench/results/{file} is stale: measured at commit {data['context'].get('commit')}, the sources changed since")
            rows[subject].update(rows_of(data))
    return rows, contexts, problems


def check_goals(goals, rows, problems):
    """(subject, row name, metric, goal, measured, row) for every goal and every row that it matches."""
    lines = []
    for goal in goals["goals"]:
        matched = [(n, r) for n, r in rows[goal["subject"]].items() if re.fullmatch(goal["row"], n)]
        if not matched:
            problems.append(f"no row of {goal['subject']} matches '{goal['row']}'")
        for name, row in matched:
            lines.append((goal["subject"], name, goal["metric"], goal["at_least"], row[goal["metric"]], row))
    return lines


def verdict(goal, measured):
    return "pass" if measured >= goal else "miss"


def table(lines, subject):
    ratio = "ratio_to_copy" if subject == "codec" else "ratio_to_mix_copy"
    out = [f"| row | metric | goal | measured | | {ratio} |", "|---|---|---|---|---|---|"]
    for s, name, metric, goal, measured, row in lines:
        if s == subject:
            out.append(f"| {name} | {metric} | {goal:g} | {measured:.3g} | {verdict(goal, measured)} | {row[ratio]:.2f} |")
    return "\n".join(out)


def peers_table():
    path = RESULTS / "codec_peers.json"
    if not path.exists():
        return ""
    data = json.loads(path.read_text())
    libraries = sorted({r["library"] for r in data["benchmarks"]})
    names = list(dict.fromkeys(r["name"] for r in data["benchmarks"]))
    by = {(r["library"], r["name"]): r["GB_per_s"] for r in data["benchmarks"]}
    mine = dict(rows_of(json.loads((RESULTS / "codec.AVX3_DL.json").read_text())))
    scalar = {}
    if (RESULTS / "reference.clang++-19.avx512.json").exists():
        scalar = {f"{n}/L2": r for n, r in rows_of(json.loads((RESULTS / "reference.clang++-19.avx512.json").read_text()))}
    out = ["| GB/s | numfmt::simd | plain loop, clang 19 | " + " | ".join(f"{l} {data['context'][l]}" for l in libraries) + " |",
           "|---" * (3 + len(libraries)) + "|"]
    for name in names:
        own = mine.get(f"{name}/threads:1")
        loop = scalar.get(name)
        loop_rate = f"{loop['bytes_per_second'] * 1e-9:.1f}" if loop else ""
        cells = [f"{by[l, name]:.2f}" if (l, name) in by else "" for l in libraries]
        out.append(f"| {name} | {own['GB_per_s']:.1f} | {loop_rate} | " + " | ".join(cells) + " |" if own else "")
    return "\n".join(line for line in out if line)


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    goals = json.loads((ROOT / "bench" / "goals.json").read_text())
    rows, contexts, problems = load(goals)
    lines = check_goals(goals, rows, problems)
    for subject, name, metric, goal, measured, row in lines:
        print(f"{verdict(goal, measured)}  {subject:10} {name:52} {metric:18} goal {goal:6g}  measured {measured:8.3f}")
    met = sum(verdict(goal, measured) == "pass" for _, _, _, goal, measured, _ in lines)
    print(f"{met} of {len(lines)} goals met")
    for problem in problems:
        print(f"PROBLEM: {problem}")
    if not check:
        text = (ROOT / "bench" / "performance.in.md").read_text()
        for subject, about in goals["subjects"].items():
            context = contexts.get(subject, {})
            where = ", ".join(str(context[k]) for k in ("device", "compiler", "flags", "target", "commit") if k in context)
            text = text.replace(f"@{subject}@", f"{about['note']}\n\nMeasured on: {where}.\n\n{table(lines, subject)}")
        text = text.replace("@peers@", peers_table())
        (ROOT / "docs" / "performance.md").write_text(text)
        print("wrote docs/performance.md")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
