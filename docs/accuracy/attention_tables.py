# SPDX-License-Identifier: MIT
"""The tables and sentences of attention.in.md, from the outputs of attention_error."""

KERNELS = {"hopper_16bit": "bf16 tensor core", "hopper_fp8": "fp8 tensor core",
           "hopper_fp8_promoted": "fp8 tensor core, promoted", "fp32": "fp32", "bf16": "bf16", "fp16": "fp16"}
SCALES = {"calibrated": "calibrated", "small": "4 times too small", "large": "4 times too large", "one": "1"}
MODELS = {"gaussian": "all keys alike (normal scores)", "recency": "the last 2048 keys or so", "needle": "0.7 % on one key",
          "real": "six real heads", "sink": "half on the first key"}


def percent(x):
    """Two significant digits; None is an output that is not finite."""
    if x is None:
        return "Inf"
    digits = 0 if x >= 0.0995 else 1 if x >= 0.00995 else 2 if x >= 0.000995 else 3
    return f"{100 * x:.{digits}f} %"


def keys_of(at):
    return f"{at['keys'] // 1024}K" if at["keys"] % 1024 == 0 else str(at["keys"])


def markdown(header, body):
    lines = [header, ["---"] * len(header), *body]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def lengths(output, scores):
    return next(m["lengths"] for m in output["scores"] if m["name"] == scores)


def row(at, **wanted):
    found = [r for r in at["rows"] if all(r[key] == value for key, value in wanted.items())]
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows are {wanted}")
    return found[0]


def setting(output):
    return (f"One decode step: a query against a context's keys and values, with the softmax formed tile by tile "
            f"({output['tile']} keys) as kernels form it, and every sum as the accumulator in question forms it, down to the "
            "bits of Hopper's tensor cores. The error is that of the output beside the same in double on the unquantized numbers: "
            "|output - exact| / |exact|, root mean square over the queries. FP8 caches have one scale per head, calibrated on "
            "other tokens, unless a table says otherwise.")


def fails(output):
    at = lengths(output, "gaussian")
    first, last = row(at[0], accumulator="hopper_fp8"), row(at[-1], accumulator="hopper_fp8")
    return (f"With both products on Hopper's fp8 tensor cores the error is {percent(first['error'])} at {keys_of(at[0])} keys, where exact "
            f"sums would leave {percent(first['without_accumulation'])}, and {percent(last['error'])} at {keys_of(at[-1])}, where they "
            f"would leave {percent(last['without_accumulation'])}: the accumulator loses {percent(1 - last['kept'])} of the softmax's "
            "mass, and the cache's rounding is next to no part of it.")


def length_table(output):
    body = []
    for at in lengths(output, "gaussian"):
        plain = row(at, accumulator="hopper_fp8")
        body.append([keys_of(at), percent(row(at, accumulator="hopper_16bit")["error"]), percent(plain["error"]),
                     percent(plain["without_accumulation"]), percent(plain["kept"]),
                     percent(row(at, accumulator="hopper_fp8_promoted")["error"])])
    return markdown(["keys", "bf16 tensor core", "fp8 tensor core", "the same with exact sums", "mass it keeps",
                     "fp8 tensor core, promoted"], body)


def cure(output):
    at = lengths(output, "gaussian")[-1]
    return (f"Adding the fp8 tensor core's sum to an fp32 one after every {output['tile']} keys brings the error at {keys_of(at)} keys "
            f"from {percent(row(at, accumulator='hopper_fp8')['error'])} to "
            f"{percent(row(at, accumulator='hopper_fp8_promoted')['error'])}; decoding the same cache for the bf16 tensor core, to "
            f"{percent(row(at, accumulator='hopper_16bit')['error'])}.")


def needle(output):
    (at,) = lengths(output, "needle")
    plain, promoted = row(at, accumulator="hopper_fp8"), row(at, accumulator="hopper_fp8_promoted")
    return (f"One key in {at['keys']} with {percent(1 / (1 + 2.718281828459045**5))} of the softmax's mass is found in "
            f"{percent(at['exact_hit_rate'])} of {at['queries']} queries by exact attention and in {percent(promoted['hit_rate'])} by the "
            f"promoted fp8 tensor core, but in {percent(plain['hit_rate'])} by the plain one.")


def needle_table(output):
    (at,) = lengths(output, "needle")
    body = [["exact", "", "100 %", percent(at["exact_hit_rate"]), f"{at['exact_margin']:.4f}"]]
    body += [[KERNELS[r["accumulator"]], percent(r["error"]), percent(r["kept"]), percent(r["hit_rate"]), f"{r['margin']:.4f}"]
             for r in at["rows"]]
    return markdown(["accumulator, e4m3 cache", "error", "mass it keeps", "hits", "margin"], body)


def scale(output):
    (at,) = lengths(output, "gaussian")
    by = {r["scale"]: r for r in at["rows"]}
    return (f"A scale four times too small costs {percent(by['small']['error'])}, and {percent(by['small']['without_clipping'])} with clipping "
            f"switched off, which is what the calibrated scale's rounding costs; one four times too large costs {percent(by['large']['error'])}: "
            "a scale decides what is clipped, and rounding takes no notice of it.")


def scale_table(output):
    (at,) = lengths(output, "gaussian")
    return markdown(["scale", "error", "without rounding", "without clipping", "without accumulation errors"],
                    [[SCALES[r["scale"]], percent(r["error"]), percent(r["without_rounding"]), percent(r["without_clipping"]),
                      percent(r["without_accumulation"])] for r in at["rows"]])


def per(output):
    (at,) = lengths(output, "gaussian")
    return {r["per"]: r["error"] for r in at["rows"]}


def near(output):
    by = per(output)
    return (f"Two heads that differ by a factor of {output['head_spread']:.0f} lose {percent(by['tensor'])} with one scale for both and "
            f"{percent(by['head'])} with one each, as e4m3 has exponents of its own;")


def far(output):
    by = per(output)
    return (f"a factor of 2^{output['head_spread'].as_integer_ratio()[0].bit_length() - 1} is beyond them, and the smaller head is lost: "
            f"{percent(by['tensor'])} and {percent(by['head'])}. A scale per token changes little more ({percent(by['token'])}): tokens "
            "of one head differ by less.")


def heads_table(output):
    by = per(output)
    return markdown([f"heads differ by {output['head_spread']:.0f}: one scale per", "error"], [[key, percent(e)] for key, e in by.items()])


FORMATS = {"bf16": "bf16", "e4m3": "fp8_e4m3", "e5m2": "fp8_e5m2", "mxfp8": "mxfp8_e4m3", "int4, group 32": "int4_g32",
           "mxfp4": "mxfp4"}


def where(output):
    def error(scores, i):
        return percent(row(lengths(output, scores)[i], cache="fp8_e4m3")["error"])

    first, last = (keys_of(at) for at in lengths(output, "gaussian"))
    return (f"An e4m3 cache, read by a kernel that sums in fp32, costs most where few keys hold much of the mass: {error('sink', 1)} with a "
            f"sink and {error('real', 1)} in real heads at {last} keys, but {error('gaussian', 1)} where all keys count alike, and there "
            f"it falls with the context (at {first}: {error('gaussian', 0)}).")


def where_table(output):
    body = [[text, keys_of(at), *(percent(row(at, cache=cache)["error"]) for cache in FORMATS.values())]
            for model, text in MODELS.items() for at in lengths(output, model)]
    return markdown(["where the mass lies", "keys", *FORMATS], body)


def overflow(output):
    lost = next(at for at in lengths(output, "real") if row(at, accumulator="fp16")["error"] is None)
    return (f"Over the codes of an e4m3 cache, which reach 448 and get their scale after the sum, an fp16 sum also overflows: with real "
            f"heads from {keys_of(lost)} keys on, in the default run.")


def accumulators(output):
    gaussian = lengths(output, "gaussian")
    return (f"The same bf16 cache summed in bf16 loses {percent(row(gaussian[0], accumulator='bf16')['error'])} of the output at "
            f"{keys_of(gaussian[0])} keys and {percent(row(gaussian[-1], accumulator='bf16')['error'])} at {keys_of(gaussian[-1])}; in fp16, "
            f"{percent(row(gaussian[-1], accumulator='fp16')['error'])}; the bf16 tensor core, "
            f"which sums in fp32, {percent(row(gaussian[-1], accumulator='hopper_16bit')['error'])}.")


def accumulators_table(output):
    body = []
    for model in ("gaussian", "real"):
        for at in lengths(output, model):
            body.append([MODELS[model], keys_of(at), *(percent(r["error"]) for r in at["rows"])])
    return markdown(["where the mass lies", "keys", *(KERNELS[r["accumulator"]] for r in lengths(output, "real")[0]["rows"])], body)
