# SPDX-License-Identifier: MIT
# Writes checksums.inc: CRC-32 of all decoded values of each format, and of encode() over all 65,536 codes of bf16 and
# fp16. An exact model that shares no code with the library: it searches the table of values and compares with
# midpoints, all of which are exact doubles. Needs only Python: python3 generate.py > checksums.inc (about two minutes).
import bisect
import math
import struct
import zlib

# name: sign, exponent and mantissa bits, bias, kind, largest finite, infinity, canonical NaN, sign-keeping NaN
FORMATS = {
    "bf16": (1, 8, 7, 127, "ieee", 0x7F7F, 0x7F80, 0x7FFF, 0x7FC0),
    "fp16": (1, 5, 10, 15, "ieee", 0x7BFF, 0x7C00, 0x7FFF, 0x7E00),
    "fp8_e4m3": (1, 4, 3, 7, "fn", 0x7E, None, 0x7F, 0x7F),
    "fp8_e5m2": (1, 5, 2, 15, "ieee", 0x7B, 0x7C, 0x7F, 0x7E),
    "fp4_e2m1": (1, 2, 1, 1, "finite", 0x7, None, 0x7, 0x7),
    "e8m0": (0, 8, 0, 127, "scale", 0xFE, None, 0xFF, 0xFF),
    "fp8_e4m3fnuz": (1, 4, 3, 8, "fnuz", 0x7F, None, 0x80, 0x80),
    "fp8_e5m2fnuz": (1, 5, 2, 16, "fnuz", 0x7F, None, 0x80, 0x80),
    "fp6_e2m3": (1, 2, 3, 1, "finite", 0x1F, None, 0x1F, 0x1F),
    "fp6_e3m2": (1, 3, 2, 3, "finite", 0x1F, None, 0x1F, 0x1F),
    "fp8_ue4m3": (0, 4, 3, 7, "fn", 0x7E, None, 0x7F, 0x7F),
    "ue5m3": (0, 5, 3, 15, "fn", 0xFE, None, 0xFF, 0xFF),
}
FLOAT_ROUNDINGS = ("nearest_even", "nearest_away", "nearest_to_zero", "toward_zero")
SCALE_ROUNDINGS = ("down", "up", "nearest_up", "toward_zero")


class Format:
    def __init__(self, name):
        s, e, m, self.bias, self.kind, self.largest, self.inf, self.nan, self.quiet = FORMATS[name]
        self.m = m
        self.bits = s + e + m
        self.sign = 1 << (e + m) if s else 0
        self.values = [self.magnitude(c) for c in range(self.largest + 2)]

    def magnitude(self, c):
        e, f = divmod(c, 1 << self.m)
        if self.kind == "scale":
            return math.ldexp(1.0, e - self.bias)
        if e == 0:
            return math.ldexp(f, 1 - self.bias - self.m)
        return math.ldexp((1 << self.m) + f, e - self.bias - self.m)

    def decode(self, code):
        """(negative, value): value is a float, inf or nan."""
        negative = bool(code & self.sign)
        c = code & ~self.sign
        if self.kind == "fnuz" and code == self.sign:
            return negative, math.nan
        if c <= self.largest:
            return negative, self.values[c]
        return negative, math.inf if c == self.inf else math.nan

    def encode(self, negative, x, rounding, overflow, nan):
        sign = self.sign if negative else 0
        if math.isnan(x):
            return {"canonical": self.nan, "keep_sign": self.quiet | sign, "canonical_signed": self.nan | sign}[nan]
        c = self.round(x, rounding) if x != math.inf else self.largest + 1
        if c > self.largest:
            saturates = overflow == "saturate" or (overflow == "saturate_finite" and x != math.inf)
            if saturates or self.kind == "finite":
                c = self.largest
            else:
                c = self.inf if self.inf is not None else self.nan
        return 0 if c == 0 and self.kind == "fnuz" else c | sign

    def round(self, x, rounding):
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


def crc_encode(f, inputs, *policy):
    codes = [f.encode(n, x, *policy) for n, x in inputs]
    return zlib.crc32(struct.pack("<65536" + ("H" if f.bits > 8 else "B"), *codes))


def main():
    formats = {name: Format(name) for name in FORMATS}
    print("// SPDX-License-Identifier: MIT")
    print("// Written by generate.py; see README.md.")
    for name, f in formats.items():
        print('DECODE(%s, 0x%08Xu)' % (name, crc_decode(f)))
    for source in ("bf16", "fp16"):
        inputs = [formats[source].decode(c) for c in range(65536)]
        for name, f in formats.items():
            for rounding in SCALE_ROUNDINGS if f.kind == "scale" else FLOAT_ROUNDINGS:
                for overflow in ("saturate", "to_nonfinite", "saturate_finite"):
                    for nan in ("canonical", "keep_sign", "canonical_signed"):
                        crc = crc_encode(f, inputs, rounding, overflow, nan)
                        print("ENCODE(%s, %s, %s, %s, %s, 0x%08Xu)" % (name, source, rounding, overflow, nan, crc))


main()
