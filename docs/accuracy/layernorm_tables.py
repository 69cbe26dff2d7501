# SPDX-License-Identifier: MIT
"""The tables and sentences of layernorm.in.md, from the outputs of layernorm_error."""

SUMS = {"bf16": "bf16, one chain", "bf16_lanes": "bf16, 64 chains", "fp16": "fp16, one chain", "fp16_lanes": "fp16, 64 chains",
        "fp32": "fp32, one chain", "fp32_lanes": "fp32, 64 chains", "fp32_compensated": "fp32, compensated",
        "double_sums": "double, rounded to fp32", "double": "double, all of it"}
FORMULAS = {"one_pass": "one pass", "one_pass_clamped": "one pass, clamped", "shifted": "shifted", "two_pass": "two passes",
            "two_pass_corrected": "two passes, corrected", "welford": "Welford", "mean_square": "mean square"}
WIDTH = 4096


def markdown(header, body):
    lines = [header, ["---"] * len(header), *body]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def power(x):
    """0, 1, 10, 10^2 ..."""
    text = f"{x:g}"
    return text if x < 1000 else f"10^{len(str(int(x))) - 1}" if str(int(x)).strip("0") == "1" else text


def number(x):
    return "NaN" if x is None else f"{x:.1e}" if x < 0.01 or x >= 1e4 else f"{x:.2g}" if x < 100 else f"{x:.0f}"


def until(x):
    return "never" if x is None else f"to {power(x)}"


def cells(output, input_format, width=WIDTH):
    """{mean: {(formula, sums): errors}} of synthetic rows."""
    return {c["mean_over_deviation"]: {(m["formula"], m["sums"]): m for m in c["methods"]} for c in output["cells"]
            if c["source"] == "synthetic" and c["input"] == input_format and c["width"] == width}


def variance(m):
    if m["rows"] == 0:
        return "constant"
    lost = f", {100 * m['lost'] / m['rows']:.0f} % lost" if m["lost"] else ""
    return number(m["variance_worst"]) + lost


def in_output(m):
    return "constant" if m["rows"] == 0 else "NaN" if m["nan_rows"] else number(m["output_worst_ulp"])


def verdicts(output, input_format="fp32"):
    return {v["change"]: v for v in output["verdicts"] if v["input"] == input_format}


def setting(output):
    widths = sorted({c["width"] for c in output["cells"] if c["source"] == "synthetic"})
    return (f"Rows of {', '.join(map(str, widths[:-1]))} and {widths[-1]} normal numbers with a mean of 0 to 10^5 deviations, stored in fp32 or "
            "bf16; the variance beside the exact one of the stored numbers, and the output, in "
            f"{output['output']}, in units of its last place. The sums are formed in the accumulator's format, everything else is fp32.")


def fixes(output):
    by = verdicts(output)
    bf16 = verdicts(output, "bf16")
    names = {"two passes: compensated sums": "compensated sums", "two passes: sums in double": "sums in double",
             "two passes -> Welford over lanes (Chan)": "Welford's update"}
    idle = [name for change, name in names.items() if bf16[change]["verdict"] == "changes nothing"]
    clamped = by["one pass: negative variances clamped to 0"]
    return (f"Summing in fp32 instead of bf16 is a correctness fix at every mean: the output of bf16 sums is off by up to "
            f"{number(by['bf16 sums -> fp32 sums']['before']['output_worst_ulp'])} units at mean "
            f"{power(by['bf16 sums -> fp32 sums']['at'])}; two passes, or one shifted by an element, are one from a mean of "
            f"{power(by['one pass -> two passes']['at'])} deviations on ({number(by['one pass -> two passes']['before']['output_worst_ulp'])} "
            f"units before, {number(by['one pass -> two passes']['after']['output_worst_ulp'])} after); clamping negative variances to 0 "
            f"{clamped['verdict']} ({number(clamped['after']['output_worst_ulp'])} units), and beyond two passes in fp32 nothing is to be gained "
            f"on bf16 rows: neither by {', by '.join(idle)}.")


def verdict_table(output):
    columns = ["fp32", "bf16"]
    by = {f: verdicts(output, f) for f in columns}
    body = []
    for change in by["fp32"]:
        row = [change.replace("->", "to")]
        for f in columns:
            v = by[f][change]
            row += [v["verdict"], f"{until(v['before_right_until'])}; {until(v['after_right_until'])}"]
        body.append(row)
    header = ["change"]
    for f in columns:
        header += [f"on {f} rows", "right before; after"]
    return markdown(header, body)


def one_pass(output):
    by = cells(output, "fp32")
    one = {mean: m[("one_pass", "fp32_lanes")] for mean, m in by.items()}
    double = by[1e4][("one_pass", "double_sums")]
    return (f"In fp32 the variance of one pass is off by {number(one[100]['variance_worst'])} of itself at a mean of 100 deviations and by "
            f"{number(one[1000]['variance_worst'])} at 1000, and at 10^4 it is zero or less in {100 * one[1e4]['lost'] / one[1e4]['rows']:.0f} % of the rows, "
            f"with sums in double in {100 * double['lost'] / double['rows']:.0f} %; two passes are off by "
            f"{number(by[1e4][('two_pass', 'fp32_lanes')]['variance_worst'])} there.")


def one_pass_table(output):
    by = cells(output, "fp32")
    rows = [("one_pass", "fp32_lanes"), ("one_pass", "double_sums"), ("one_pass", "double"), ("shifted", "fp32_lanes"),
            ("welford", "fp32_lanes"), ("two_pass", "fp32_lanes"), ("two_pass_corrected", "fp32_lanes")]
    return markdown([f"variance of {WIDTH} fp32 numbers, sums", *(f"mean {power(m)}" for m in by)],
                    [[f"{FORMULAS[f]}, {SUMS[a]}", *(variance(at[(f, a)]) for at in by.values())] for f, a in rows])


def accumulators(output):
    by = cells(output, "bf16")
    at = by[0]
    return (f"On bf16 rows of {WIDTH} without a mean, two passes with one bf16 chain are off by "
            f"{number(at[('two_pass', 'bf16')]['output_worst_ulp'])} units of the bf16 output, with 64 of them by "
            f"{number(at[('two_pass', 'bf16_lanes')]['output_worst_ulp'])}, with fp32 sums by "
            f"{number(at[('two_pass', 'fp32_lanes')]['output_worst_ulp'])}, which is rounding, and with all of it in double by as much "
            f"({number(at[('two_pass', 'double')]['output_worst_ulp'])}).")


def accumulators_table(output):
    by = cells(output, "bf16")
    order = ["bf16", "bf16_lanes", "fp16", "fp16_lanes", "fp32", "fp32_lanes", "fp32_compensated", "double"]
    return markdown([f"units of the output, bf16 rows of {WIDTH}, two passes", *(f"mean {power(m)}" for m in by)],
                    [[SUMS[a], *(in_output(at[("two_pass", a)]) for at in by.values())] for a in order])


def rms(output):
    by = cells(output, "bf16")
    return (f"Nothing cancels in a mean of squares: with fp32 sums it is right at every mean, to "
            f"{number(max(m[('mean_square', 'fp32_lanes')]['variance_worst'] for m in by.values()))} at most, and fp32 sums are all that it needs; "
            f"with bf16 sums the output is off by {number(by[0][('mean_square', 'bf16_lanes')]['output_worst_ulp'])} units, and with one bf16 "
            f"chain by {number(by[0][('mean_square', 'bf16')]['output_worst_ulp'])}.")


def rms_table(output):
    by = cells(output, "bf16")
    order = ["bf16", "bf16_lanes", "fp32", "fp32_lanes", "double"]
    return markdown([f"mean square of {WIDTH} bf16 numbers / units of the output", *(f"mean {power(m)}" for m in by)],
                    [[SUMS[a], *(f"{variance(at[('mean_square', a)])} / {in_output(at[('mean_square', a)])}" for at in by.values())]
                     for a in order])


def real_methods(output, input_format):
    """{(formula, sums): (worst variance error, worst output)} over the sample's tensors."""
    found = {}
    for c in output["cells"]:
        if c["input"] != input_format:
            continue
        for m in c["methods"]:
            key = (m["formula"], m["sums"])
            worst = found.get(key, (0, 0))
            found[key] = (max(worst[0], m["variance_worst"] or float("inf")), max(worst[1], m["output_worst_ulp"] or float("inf")))
    return found


def real(output):
    by = real_methods(output, "bf16")
    mean = max(c["mean_over_deviation"] for c in output["cells"])
    return (f"What enters this encoder's layer normalisations has a mean of {mean:.2g} deviations at most, so that one pass in fp32 is as right "
            f"there as two ({number(by[('one_pass', 'fp32_lanes')][1])} and {number(by[('two_pass', 'fp32_lanes')][1])} units of the bf16 output): such rows "
            f"cannot tell a good formula from a bad one; bf16 sums they do tell ({number(by[('two_pass', 'bf16_lanes')][1])}, one chain "
            f"{number(by[('two_pass', 'bf16')][1])}), and shifting by the first element, which may be an outlier, costs bf16 sums most "
            f"({number(by[('shifted', 'bf16_lanes')][1])}).")


def real_table(output):
    order = [("one_pass", "bf16"), ("one_pass", "bf16_lanes"), ("shifted", "bf16_lanes"), ("two_pass", "bf16_lanes"),
             ("one_pass", "fp32_lanes"), ("shifted", "fp32_lanes"), ("two_pass", "fp32_lanes"), ("mean_square", "bf16_lanes"),
             ("mean_square", "fp32_lanes")]
    by = {f: real_methods(output, f) for f in ("fp32", "bf16", "fp8_e4m3")}
    return markdown(["variance, sums", *(f"{f} rows: variance / output" for f in by)],
                    [[f"{FORMULAS[f]}, {SUMS[a]}", *(f"{number(m[(f, a)][0])} / {number(m[(f, a)][1])}" for m in by.values())]
                     for f, a in order])
