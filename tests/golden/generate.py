# SPDX-License-Identifier: MIT
"""Writes what follows from the typed-in lines of the golden files.

usage: python3 tests/golden/generate.py [FORMAT...]

For each FORMAT (all without arguments) the section [checksums] of formats/FORMAT.txt: CRC-32 of all decoded values, and of
encode() over all 65,536 codes of bf16 and fp16. An exact model that shares no code with the library: it searches the table of
values and compares with midpoints, all of which are exact doubles. A few seconds per format. Then the table of
docs/special_blocks.md, from the lines "special" of schemes/*.txt. Needs only Python; all other lines stay as they are.
"""
import bisect
import itertools
import math
import pathlib
import struct
import sys
import zlib

GOLDEN = pathlib.Path(__file__).resolve().parent
DOCUMENT = GOLDEN.parent.parent / "docs" / "special_blocks.md"
FLOAT_ROUNDINGS = ("nearest_even", "nearest_away", "nearest_to_zero", "toward_zero")
SCALE_ROUNDINGS = ("down", "up", "nearest_up", "toward_zero")
OVERFLOWS = ("saturate", "to_nonfinite", "saturate_finite")
NANS = ("canonical", "keep_sign", "canonical_signed")
BLOCKS = {
    "nan": "NaN, 1.75, -0.5, 0.25, 0, 0...",
    "+inf": "+Inf, 1.75, -0.5, 0.25, 0, 0...",
    "-inf": "-Inf, 1.75, -0.5, 0.25, 0, 0...",
    "zeros": "+0, -0, +0, -0...",
    "subnormals": "2^-126 - 2^-149, -2^-127, 2^-149, -2^-149, and again...",
}


def read(path):
    """The typed-in lines of a golden file: [(key, value)]."""
    lines = []
    for line in path.read_text().splitlines():
        if line.startswith("["):
            break
        if line and not line.startswith("#"):
            key, _, value = line.partition(" ")
            lines.append((key, value.strip()))
    return lines


class Format:
    def __init__(self, path):
        facts = dict(read(path))
        try:
            s, e, self.m, self.bias = (int(facts[k]) for k in ("sign_bits", "exponent_bits", "mantissa_bits", "bias"))
            self.kind = facts["shape"]
            self.inf = None if facts["infinity"] == "-" else int(facts["infinity"], 16)
            self.largest, self.nan, self.quiet = (int(facts[k], 16) for k in ("largest", "canonical_nan", "quiet_nan"))
        except KeyError as missing:
            sys.exit(f"{path}: no line {missing}")
        self.bits = s + e + self.m
        self.sign = 1 << (e + self.m) if s else 0
        self.values = [self.magnitude(c) for c in range(self.largest + 2)]

    def magnitude(self, c):
        e, f = divmod(c, 1 << self.m)
        if self.kind == "power_of_two":
            return math.ldexp(1.0, e - self.bias)
        if e == 0:
            return math.ldexp(f, 1 - self.bias - self.m)
        return math.ldexp((1 << self.m) + f, e - self.bias - self.m)

    def decode(self, code):
        """(negative, value): value is a float, inf or nan."""
        negative = bool(code & self.sign)
        c = code & ~self.sign
        if self.kind == "negative_zero_is_nan" and code == self.sign:
            return negative, math.nan
        if c <= self.largest:
            return negative, self.values[c]
        return negative, math.inf if c == self.inf else math.nan

    def finish(self, negative, x, c, overflow, nan):
        """The code of x, which rounds to the magnitude c (largest + 1: overflow)."""
        sign = self.sign if negative else 0
        if math.isnan(x):
            return {"canonical": self.nan, "keep_sign": self.quiet | sign, "canonical_signed": self.nan | sign}[nan]
        if c > self.largest:
            saturates = overflow == "saturate" or (overflow == "saturate_finite" and x != math.inf)
            if saturates or self.kind == "all_finite":
                c = self.largest
            else:
                c = self.inf if self.inf is not None else self.nan
        return 0 if c == 0 and self.kind == "negative_zero_is_nan" else c | sign

    def round(self, x, rounding):
        if math.isnan(x):
            return 0
        if x == math.inf:
            return self.largest + 1
        v = self.values
        hi = bisect.bisect_right(v, x)  # first value above x
        if hi == 0:
            return 0
        down = rounding in ("toward_zero", "down")
        if hi == len(v):
            return self.largest if down else self.largest + 1
        lo = hi - 1
        if x == v[lo] or down:
            return lo
        if rounding == "up":
            return hi
        middle = (v[lo] + v[hi]) / 2
        if x != middle:
            return lo if x < middle else hi
        if rounding == "nearest_even":
            return lo if lo % 2 == 0 else hi
        return lo if rounding == "nearest_to_zero" else hi


def crc_decode(f):
    words = []
    for code in range(1 << f.bits):
        negative, x = f.decode(code)
        words.append(0x7FC00000 if math.isnan(x) else struct.unpack("<I", struct.pack("<f", -x if negative else x))[0])
    return zlib.crc32(struct.pack("<%dI" % len(words), *words))


def checksums(f, sources):
    yield "# CRC-32, see tests/golden/README.md. Written by tests/golden/generate.py."
    yield "decode %08X" % crc_decode(f)
    for source, inputs in sources.items():
        for rounding in SCALE_ROUNDINGS if f.kind == "power_of_two" else FLOAT_ROUNDINGS:
            rounded = [(n, x, f.round(x, rounding)) for n, x in inputs]
            for overflow, nan in itertools.product(OVERFLOWS, NANS):
                codes = [f.finish(n, x, c, overflow, nan) for n, x, c in rounded]
                crc = zlib.crc32(struct.pack("<65536" + ("H" if f.bits > 8 else "B"), *codes))
                yield "encode %s %s %s %s %08X" % (source, rounding, overflow, nan, crc)


def write_section(path, name, lines):
    """Replaces the section, or adds it before the others."""
    sections = path.read_text().split("\n[")
    rest = [s for s in sections[1:] if not s.startswith(name + "]")]
    sections = [sections[0].rstrip("\n") + "\n", name + "]\n" + "\n".join(lines) + "\n", *rest]
    path.write_text("\n[".join(sections).rstrip("\n") + "\n")


def special_table():
    """The rows of schemes that agree in all of them share lines."""
    groups = {}
    for path in sorted((GOLDEN / "schemes").glob("*.txt")):
        rows = tuple(value for key, value in read(path) if key == "special")
        if rows:
            groups.setdefault(rows, []).append(path.stem)
    yield "| schemes | elements of the block | nonfinite | scale | zero point | codes |"
    yield "|---|---|---|---|---|---|"
    for rows, names in groups.items():
        for row in rows:
            block, nonfinite, scale, zero, *codes = row.split()
            cells = (", ".join(names), BLOCKS.get(block, block), nonfinite, scale, zero, " ".join(codes))
            yield "| " + " | ".join(cells) + " |"


def write_table():
    lines = DOCUMENT.read_text().splitlines()
    table = [i for i, line in enumerate(lines) if line.startswith("|")]
    lines[table[0]:table[-1] + 1] = special_table()
    DOCUMENT.write_text("\n".join(lines) + "\n")


def main(names):
    paths = {path.stem: path for path in sorted((GOLDEN / "formats").glob("**/*.txt"))}
    unknown = [name for name in names if name not in paths]
    if unknown:
        sys.exit(f"generate.py: there is no tests/golden/formats/{unknown[0]}.txt")
    sources = {}
    for source in ("bf16", "fp16"):
        f = Format(paths[source])
        sources[source] = [f.decode(c) for c in range(65536)]
    for name in names or paths:
        write_section(paths[name], "checksums", checksums(Format(paths[name]), sources))
        print(name)
    write_table()


if __name__ == "__main__":
    main(sys.argv[1:])
