#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the results in bench/results against bench/goals.json and writes docs/performance.md.

usage: report.py [--check]     --check: print every goal with its figure, and why it is missed where it is; write nothing

A result is stale when a source of its subject changed after it was measured. A goal that is not met is printed as a miss and
is no failure: it is a result. A failure is what makes the report untrue: results that are missing or stale, a goal without a
row, a miss without a reason. The prose of docs/performance.md stands in bench/performance.in.md.

goals.json: "subjects" (result files; "ratio": the metric of the table's own column; "peers": rows of several libraries),
"goals" (an expression for rows, a metric, its lower bound), "limits" (what limits a row, by a short name) and "reasons" (which
limit explains which miss: expressions for row and metric; with "within", only misses by less than that factor; the first that
fits counts)."""
import json
import re
import statistics
import sys

from sources import ROOT, source_hash

RESULTS = ROOT / "bench" / "results"


def rows_of(data):
    for row in data.get("benchmarks", data.get("rows", [])):
        yield re.split(r"/(?:min_time|iterations|manual_time)", row["name"])[0], row


def load(goals, results=RESULTS, hash_of=source_hash):
    """Rows by subject (of peers: by "row (library)"), contexts by subject, and what is wrong with the files."""
    rows, contexts, problems = {}, {}, []
    for subject, about in goals["subjects"].items():
        rows[subject] = {}
        for file in about["files"]:
            path = results / file
            if not path.exists():
                problems.append(f"bench/results/{file} is missing")
                continue
            data = json.loads(path.read_text())
            contexts[subject] = data["context"]
            if data["context"].get("source_hash") != hash_of(subject):
                problems.append(f"bench/results/{file} is stale: measured at commit {data['context'].get('commit')}, the sources changed since")
            for name, row in rows_of(data):
                rows[subject][f"{name} ({row['library']})" if about.get("peers") else name] = row
    return rows, contexts, problems


def add_best_peers(rows, peers):
    """Adds to a row its best peer, that peer's ratio to the copy of the same mix, and the quotient of the two ratios."""
    for name, row in rows.items():
        same = [peer for peer in peers.values() if peer["name"] == name]
        if same:
            best = max(same, key=lambda peer: peer["ratio_to_mix_copy"])
            row["best_peer"], row["best_peer_ratio"] = best["library"], best["ratio_to_mix_copy"]
            row["times_best_peer"] = row["ratio_to_mix_copy"] / best["ratio_to_mix_copy"]


def limit_of(goals, subject, name, metric, goal, measured):
    """The short name of what limits a row that misses its goal, or None."""
    for reason in goals["reasons"]:
        if (reason["subject"] == subject and re.fullmatch(reason["row"], name)
                and re.fullmatch(reason.get("metric", ".*"), metric) and measured >= goal * reason.get("within", 0)):
            return reason["limit"]
    return None


def check_goals(goals, rows, problems):
    """(subject, row name, metric, goal, measured, limit or "", row) for every goal and every row that it matches."""
    lines = []
    for goal in goals["goals"]:
        subject, metric, bound = goal["subject"], goal["metric"], goal["at_least"]
        matched = [(n, r) for n, r in rows[subject].items() if re.fullmatch(goal["row"], n) and metric in r]
        if not matched:
            problems.append(f"no row of {subject} matches '{goal['row']}' and has '{metric}'")
        for name, row in matched:
            limit = ""
            if row[metric] < bound:
                limit = limit_of(goals, subject, name, metric, bound, row[metric])
                if limit is None:
                    problems.append(f"{subject}: {name}: {metric} misses {bound:g} and goals.json gives no reason")
                    limit = "?"
            lines.append((subject, name, metric, bound, row[metric], limit, row))
    return lines


def verdict(goal, measured):
    return "pass" if measured >= goal else "miss"


def limits_list(goals, lines):
    """The limits that the lines name, in the order of goals.json."""
    named = {line[5] for line in lines}
    return [(limit, text) for limit, text in goals["limits"].items() if limit in named]


def table(goals, lines, subject):
    lines = [line for line in lines if line[0] == subject]
    ratio = goals["subjects"][subject].get("ratio")
    peers = any("best_peer" in line[6] for line in lines)
    heads = ["row", "metric", "goal", "measured", "", "what limits it"]
    heads += [ratio] if ratio else []
    heads += ["best peer", "its ratio"] if peers else []
    out = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for _, name, metric, goal, measured, limit, row in lines:
        cells = [name, metric, f"{goal:g}", f"{measured:.3g}", verdict(goal, measured), limit]
        cells += [f"{row[ratio]:.2f}"] if ratio else []
        cells += [row.get("best_peer", ""), f"{row['best_peer_ratio']:.2f}" if "best_peer" in row else ""] if peers else []
        out.append("| " + " | ".join(cells) + " |")
    limits = limits_list(goals, lines)
    if limits:
        out += ["", "What limits the rows that miss:", ""] + [f"- **{limit}**: {text}" for limit, text in limits]
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


def cpp_peers_table(rows, context):
    """Every row of the libraries that were built and timed beside numfmt::simd, and which libraries those were."""
    if not rows:
        return ""
    out = ["| row | library | its Gelem/s | numfmt::simd | times | same results | faster build |", "|---|---|---|---|---|---|---|"]
    for row in rows.values():
        out.append(f"| {row['name']} | {row['library']} | {row['Gelem_per_s']:.2f} | {row['ours_Gelem_per_s']:.2f} | {row['times_peer']:.2f} | "
                   f"{row['same_results'] * 100:.4g} % | {row['compiler']} |")
    libraries = "; ".join(f"{library}: {version}" for library, version in context.get("libraries", {}).items())
    builds = ", ".join(context.get("builds", []))
    return "\n".join(out + ["", f"{libraries}. Built by {builds}; numfmt::simd ({context.get('numfmt')}) by {context.get('numfmt_build')}."])


def cuda_peers_table(rows, peers, contexts):
    """Ratio to the copy of the same mix (GB/s) of every peer beside ours, and how the copies of the two runs compare."""
    if not peers:
        return ""
    libraries = sorted({r["library"] for r in peers.values()})
    by = {(r["library"], r["name"]): r for r in peers.values()}
    cell = lambda r: f"{r['ratio_to_mix_copy']:.2f} ({r['gb_per_s']:.0f})" if r else ""
    out = ["| ratio to the copy of the same mix (GB/s) | numfmt::cuda | " + " | ".join(libraries) + " |", "|---" * (2 + len(libraries)) + "|"]
    for name in dict.fromkeys(r["name"] for r in peers.values()):
        out.append(f"| {name} | {cell(rows.get(name))} | " + " | ".join(cell(by.get((l, name))) for l in libraries) + " |")
    copies = [statistics.median(r["copy_gb_per_s"] for r in some.values()) for some in (rows, peers) if some]
    context = contexts.get("cuda_codec_peers", {})
    out += ["", f"The plain copy: {' and '.join(f'{c:.0f}' for c in copies)} GB/s in the two runs (ours, the peers'). "
            f"torch {context.get('torch')}, Triton {context.get('triton')}, {context.get('device')}."]
    if context.get("left_out"):
        out += [f"Left out: {'; '.join(context['left_out'])}."]
    return "\n".join(out)


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    goals = json.loads((ROOT / "bench" / "goals.json").read_text())
    rows, contexts, problems = load(goals)
    add_best_peers(rows["cuda_codec"], rows["cuda_codec_peers"])
    lines = check_goals(goals, rows, problems)
    for subject, name, metric, goal, measured, limit, row in lines:
        because = f"  because: {limit}" if limit else ""
        print(f"{verdict(goal, measured)}  {subject:15} {name:52} {metric:18} goal {goal:6g}  measured {measured:8.3f}{because}")
    for limit, text in limits_list(goals, lines):
        count = sum(line[5] == limit for line in lines)
        print(f"{limit} ({count} {'row' if count == 1 else 'rows'}): {text}")
    met = sum(verdict(line[3], line[4]) == "pass" for line in lines)
    print(f"{met} of {len(lines)} goals met")
    for problem in problems:
        print(f"PROBLEM: {problem}")
    if not check:
        text = (ROOT / "bench" / "performance.in.md").read_text()
        for subject, about in goals["subjects"].items():
            context = contexts.get(subject, {})
            where = ", ".join(str(context[k]) for k in ("device", "compiler", "flags", "target", "commit") if k in context)
            measured = f"Measured on: {where}." if where else "Not measured yet."
            goal_table = table(goals, lines, subject) if any(line[0] == subject for line in lines) else ""
            text = text.replace(f"@{subject}@", f"{about['note']}\n\n{measured}\n\n{goal_table}".rstrip())
        text = text.replace("@peers_table@", peers_table())
        text = text.replace("@codec_peers_cpp_table@", cpp_peers_table(rows["codec_peers_cpp"], contexts.get("codec_peers_cpp", {})))
        text = text.replace("@cuda_codec_peers_table@", cuda_peers_table(rows["cuda_codec"], rows["cuda_codec_peers"], contexts))
        (ROOT / "docs" / "performance.md").write_text(text.rstrip() + "\n")
        print("wrote docs/performance.md")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
