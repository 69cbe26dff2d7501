# SPDX-License-Identifier: MIT
"""What a benchmark's results depend on: one hash over the sources of its subject, so that results of older sources are
recognised."""
import hashlib
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = ["include/numfmt/*.hpp", "include/numfmt/core/*.hpp", "include/numfmt/block/*.hpp"]
SOURCES = {
    "reference": LIBRARY + ["bench/reference_bench.cpp", "bench/ceiling.hpp"],
    "codec": LIBRARY + ["include/numfmt/simd/*", "bench/codec_bench.cpp", "bench/measure.hpp", "bench/ceiling.hpp"],
    "codec_peers": ["bench/codec_peers.py"],
    "codec_peers_cpp": [],  # other people's libraries, built outside this repository: no source here makes them stale
    "cuda_codec": LIBRARY + ["include/numfmt/cuda/*", "bench/cuda_bench.cu"],
    "cuda_codec_peers": ["bench/cuda_codec_peers.py"],
}


def source_hash(subject):
    digest = hashlib.sha256()
    for path in sorted({p for pattern in SOURCES[subject] for p in ROOT.glob(pattern) if p.is_file()}):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
