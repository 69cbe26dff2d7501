# SPDX-License-Identifier: MIT
"""The tables and sentences of weights.in.md, from the outputs of master_weights."""
import math

NAMES = {"fp32": "fp32", "fp32_master": "fp32 master, bf16 copy", "bf16_kahan": "bf16, Kahan",
         "bf16_stochastic": "bf16, stochastic", "bf16": "bf16, nearest even",
         "fp32_master_bf16_state": "fp32 master, Adam's means in bf16"}


def power(x, digits=1):
    exponent = math.log2(x)
    return f"2^{exponent:.0f}" if exponent == round(exponent) else f"2^{exponent:.{digits}f}"


def percent(x, digits=0):
    return f"{100 * x:.{digits}f} %"


def spread(x, digits=0):
    return f"{100 * x['mean']:.{digits}f} +- {100 * x['deviation']:.{digits}f} %"


def small(x):
    return "0" if x == 0 else f"{x:.1e}"


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def rows_of(at):
    return {row["store"]: row for row in at["rows"]}


def optimizers(output):
    return {o["name"]: o["rates"] for o in output["training"]["optimizers"]}


def vanishing(output, store):
    return next(s["vanishing_ratio"] for s in output["stores"] if s["name"] == store)


def setting(output):
    t = output["training"]
    return (f"A network of {t['weights']:,} weights, {t['inputs']} - {t['hidden']} - {t['outputs']} with ReLU, predicts real data: the "
            f"values of layer 3's first attention head of the sample's encoder from a token's keys and values in layer 0, "
            f"{t['samples']} tokens. It is trained for {t['start_steps']} steps with fp32 weights, to a loss of "
            f"{t['start']['mean']:.3f} of the targets' variance, and from there on with every store of weights and several "
            f"learning rates. Gradients and optimizer are fp32; only the storage of the weights differs.")


def stop(output):
    """The smallest rate of Adam, and the largest at which bf16 keeps less than half of the gain."""
    rates = optimizers(output)["adam"]
    failed = next(at for at in rates if rows_of(at)["bf16"]["kept"]["mean"] < 0.5)
    last = rates[-1]
    return (f"bf16 weights rounded to nearest lose every update below {power(vanishing(output, 'bf16') / 2)} of the weight: where half "
            f"of Adam's updates are below {power(failed['ratio'])} of their weight, the loss falls by "
            f"{percent(rows_of(failed)['bf16']['kept']['mean'])} of what it falls with fp32 weights, and at {power(last['ratio'])} by "
            f"{percent(rows_of(last)['bf16']['kept']['mean'])}.")


def stop_table(output):
    table = []
    for name, rates in optimizers(output).items():
        for at in rates:
            rows = rows_of(at)
            table.append([name, f"{at['rate']:g}", power(at["ratio"]), percent(at["lost"]),
                          f"{rows['fp32']['loss']['mean']:.4f}", f"{rows['bf16']['loss']['mean']:.4f}",
                          spread(rows["bf16"]["kept"])])
    return markdown(["optimizer", "learning rate", "median update / weight", "updates that bf16 loses", "loss, fp32",
                     "loss, bf16", "bf16 keeps of fp32's gain"], table)


def threshold(output):
    limit = vanishing(output, "bf16")
    return (f"With bf16's 8 significant bits that is {power(limit)} of a weight at the bottom of its binade and {power(limit / 2)} of one "
            f"at the top; with fp32's 24 bits {power(vanishing(output, 'fp32'))} and {power(vanishing(output, 'fp32') / 2)}.")


REMEDIES = [("fp32_master", "an fp32 master beside a bf16 copy"), ("bf16_kahan", "Kahan's compensation in bf16"),
            ("bf16_stochastic", "stochastic rounding")]


def least_kept(output, store):
    return min(rows_of(at)[store]["kept"]["mean"] for at in optimizers(output)["adam"])


def remedies(output):
    bytes_of = {name: row["bytes"] for name, row in rows_of(optimizers(output)["adam"][0]).items()}
    parts = [f"{text} keeps {percent(least_kept(output, name), 1)} for {bytes_of[name]} bytes per weight" for name, text in REMEDIES]
    return (f"Of fp32's gain, at the worst learning rate, {'; '.join(parts)}; without a remedy it is "
            f"{percent(least_kept(output, 'bf16'), 1)} for {bytes_of['bf16']}.")


def remedies_table(output):
    rates = optimizers(output)["adam"]
    table = []
    for name in rows_of(rates[0]):
        rows = [rows_of(at)[name] for at in rates]
        worst = max(rows, key=lambda row: row["excess"]["mean"])
        table.append([NAMES[name], rows[0]["bytes"], rows[0]["bytes_with_state"],
                      *(spread(row["kept"], 1) for row in rows),
                      f"{worst['excess']['mean']:+.5f} +- {worst['excess']['deviation']:.5f}"])
    header = ["store", "bytes", "with Adam", *(f"gain kept at {at['rate']:g}" for at in rates), "largest loss - fp32's"]
    return markdown(header, table)


def arrival(output):
    ratios = output["updates"]["ratios"]

    def first(store):
        return next(at for at in ratios if rows_of(at)[store]["mean"] < 0.5)["ratio"]

    above = next(at for at in ratios if at["ratio"] == 2 * first("bf16"))
    stochastic = [rows_of(at)["bf16_stochastic"] for at in ratios]
    off = max(abs(row["mean"] - 1) for row in stochastic)
    return (f"Rounded to nearest, bf16 keeps no update of {power(first('bf16'))} of the weight, and of {power(above['ratio'])} it adds "
            f"{rows_of(above)['bf16']['mean']:.2f} times what was sent; with Kahan's compensation in bf16 the end comes at "
            f"{power(first('bf16_kahan'))}; stochastic rounding keeps the sum to {percent(off, 1)} on average at every size.")


def arrival_table(output):
    table = []
    for at in output["updates"]["ratios"]:
        rows = rows_of(at)
        bf16, kahan, stochastic, fp32 = (rows[n] for n in ("bf16", "bf16_kahan", "bf16_stochastic", "fp32"))
        table.append([power(at["ratio"]), f"{bf16['mean']:.3f}", f"{small(bf16['worst'])} ({small(bf16['theory'])})",
                      f"{kahan['mean']:.3f}", f"{small(kahan['worst'])} ({small(kahan['theory'])})",
                      f"{stochastic['mean']:.3f}", f"{small(stochastic['deviation'])} ({small(stochastic['theory'])})",
                      f"{small(fp32['worst'])} ({small(fp32['theory'])})"])
    return markdown(["update / weight", "nearest: share", "largest error (bound)", "Kahan: share", "largest error (bound)",
                     "stochastic: share", "deviation (at most)", "fp32: largest error (bound)"], table)


def state(output):
    rates = optimizers(output)["adam"]
    kept = [rows_of(at)["fp32_master_bf16_state"]["kept"]["mean"] for at in rates]
    row = rows_of(rates[0])
    return (f"Adam's means in bf16 save {row['fp32_master']['bytes_with_state'] - row['fp32_master_bf16_state']['bytes_with_state']} "
            f"bytes per weight, and over {output['training']['steps']} steps cost {percent(1 - max(kept), 1)} to "
            f"{percent(1 - min(kept), 1)} of the gain, with fp32 master weights.")


def state_table(output):
    table = []
    for at in optimizers(output)["adam"]:
        for name, row in rows_of(at).items():
            table.append([f"{at['rate']:g}", NAMES[name], row["bytes_with_state"], f"{row['loss']['mean']:.4f}",
                          spread(row["kept"], 1)])
    return markdown(["learning rate", "store", "bytes with Adam", "loss", "gain kept"], table)
