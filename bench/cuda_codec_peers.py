# SPDX-License-Identifier: MIT
"""Speed of other people's ways to do what `cuda_bench codec` does: PyTorch (eager, torch.compile) and Triton kernels
written here, measured as cuda_bench measures: medians of CUDA-graph replays over buffers that rotate past L2, in turns
with a copy kernel of the same mix of reads and writes and with a plain copy (one 16-byte access per thread, no loop).
The rows have the names of cuda_bench's. What a peer computes is checked before it is timed.

usage: cuda_codec_peers.py OUT.json [--elements N] [--only TEXT] [--repeats N] [--seconds S] [--commit C]
                           [--device cuda|cpu] [--backend inductor|eager]

--seconds: what is left out once this much time has passed (compilation counts). --device cpu: a dry run of the logic
with few elements; its times mean nothing, and Triton takes part only under TRITON_INTERPRET=1."""
import argparse
import json
import pathlib
import statistics
import sys
import time

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

COLS = 4096  # of the matrix; its rows follow from the number of elements
SETS = 2  # of buffers, each far larger than L2 at the usual size
LAUNCHES = 4  # per graph
THREADS = 256
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}
E2M1_VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]

# ---- schemes: element bits, group, largest element and the rest -------------------------------------------------------


class Scheme:
    def __init__(self, name, bits, group, scale, element, emax=0, zeros=False, tensor_scale=False):
        self.name, self.bits, self.group, self.scale, self.element = name, bits, group, scale, element
        self.emax, self.zeros, self.tensor_scale = emax, zeros, tensor_scale

    def stored_bytes(self, n):
        groups = n // self.group
        return n * self.bits // 8 + groups * {"fp32": 4, "fp16": 2, "e8m0": 1, "e4m3": 1}[self.scale] + groups // 2 * self.zeros


SCHEMES = {s.name: s for s in [
    Scheme("fp8_per_channel", 8, COLS, "fp32", "e4m3"),
    Scheme("block_fp8_1x128", 8, 128, "fp32", "e4m3"),
    Scheme("mxfp8_e4m3", 8, 32, "e8m0", "e4m3", emax=8),
    Scheme("mxfp4", 4, 32, "e8m0", "e2m1", emax=2),
    Scheme("nvfp4", 4, 16, "e4m3", "e2m1", tensor_scale=True),
    Scheme("awq_int4", 4, 128, "fp16", "int4", zeros=True),
    Scheme("int4_symmetric_g128", 4, 128, "fp16", "int4"),
]}

# ---- PyTorch, as a user would write it ----------------------------------------------------------------------------------


def pack(codes):
    return codes[..., 0::2] | (codes[..., 1::2] << 4)


def unpack(codes):
    return torch.stack((codes & 15, codes >> 4), dim=-1)


def power_of_two(code):
    """2^(code - 127) of E8M0 codes 1 .. 254."""
    return (code.to(torch.int32) << 23).view(torch.float32)


def to_e2m1(v):
    """Codes, ties to even."""
    a = v.abs()
    code = (a > 0.25).to(torch.uint8)
    for bound, tie in ((0.75, True), (1.25, False), (1.75, True), (2.5, False), (3.5, True), (5.0, False)):
        code = code + ((a >= bound) if tie else (a > bound)).to(torch.uint8)
    return code + (torch.signbit(v).to(torch.uint8) << 3)


def quantize_with_torch(scheme):
    def fp8(x):
        g = x.float().view(-1, scheme.group)
        scale = (g.abs().amax(-1, keepdim=True) / 448.0).clamp(min=2.0**-126)
        return (g * (1.0 / scale)).to(torch.float8_e4m3fn), scale

    def mx(x):
        g = x.float().view(-1, scheme.group)
        code = ((g.abs().amax(-1, keepdim=True).view(torch.int32) >> 23) - scheme.emax).clamp(min=0)
        v = g * power_of_two(254 - code)
        if scheme.element == "e4m3":
            return v.clamp(-448.0, 448.0).to(torch.float8_e4m3fn), code.to(torch.uint8)
        return pack(to_e2m1(v)), code.to(torch.uint8)

    def nvfp4(x):
        inverse = 2688.0 / x.abs().amax().float()
        g = x.float().view(-1, 16)
        scale = (g.abs().amax(-1, keepdim=True) * (inverse * (1.0 / 6.0))).to(torch.float8_e4m3fn)
        multiplier = 1.0 / inverse
        return pack(to_e2m1(g * (1.0 / (scale.float() * multiplier)))), scale, multiplier

    def awq(x):
        g = x.float().view(-1, COLS // 128, 128)
        low, high = g.amin(-1).clamp(max=0.0), g.amax(-1).clamp(min=0.0)
        scale = ((high - low) / 15.0).half()
        s = scale.float()
        zero = (-low / s).round().clamp(0.0, 15.0)
        codes = (torch.round(g / s[..., None]) + zero[..., None]).clamp(0.0, 15.0).to(torch.uint8)
        return pack(codes), scale, pack(zero.to(torch.uint8))

    def symmetric(x):
        g = x.float().view(-1, 128)
        scale = (g.abs().amax(-1, keepdim=True) / 7.0).half()
        return pack((torch.round(g / scale.float()) + 8.0).clamp(0.0, 15.0).to(torch.uint8)), scale

    if scheme.element == "int4":
        return awq if scheme.zeros else symmetric
    return {"fp32": fp8, "e8m0": mx, "e4m3": nvfp4}[scheme.scale]


def dequantize_with_torch(scheme):
    def mxfp8(codes, scales):
        return (codes.float().view(-1, 32) * power_of_two(scales).view(-1, 1)).to(torch.bfloat16)

    def mxfp4(codes, scales, values):
        return (values[unpack(codes).int()].view(-1, 32) * power_of_two(scales).view(-1, 1)).to(torch.bfloat16)

    def nvfp4(codes, scales, multiplier, values):
        scale = scales.float().view(-1, 1) * multiplier
        return (values[unpack(codes).int()].view(-1, 16) * scale).to(torch.bfloat16)

    def awq(codes, scales, zeros):
        q, z = unpack(codes).view(-1, 128).float(), unpack(zeros).view(-1, 1).float()
        return ((q - z) * scales.view(-1, 1).float()).to(torch.bfloat16)

    def symmetric(codes, scales):
        return ((unpack(codes).view(-1, 128).float() - 8.0) * scales.view(-1, 1).float()).to(torch.bfloat16)

    if scheme.element == "int4":
        return awq if scheme.zeros else symmetric
    return {"mxfp8_e4m3": mxfp8, "mxfp4": mxfp4, "nvfp4": nvfp4}[scheme.name]


# ---- Triton -------------------------------------------------------------------------------------------------------------

if triton:

    @triton.jit
    def move_kernel(source, target, READS: tl.constexpr, WRITES: tl.constexpr, SIZE: tl.constexpr):
        block = tl.program_id(0).to(tl.int64)
        i = tl.arange(0, SIZE)
        v = tl.load(source + block * READS + i, mask=i < READS, other=7)
        tl.store(target + block * WRITES + i, v, mask=i < WRITES)
        if READS > WRITES:  # true of one word in 2^32: the load stays
            tl.store(target + i, v, mask=(i >= WRITES) & (v == 0x1E3779B9))

    @triton.jit
    def cast_kernel(x, y, SIZE: tl.constexpr):
        i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.store(y + i, tl.load(x + i).to(tl.float32).to(y.dtype.element_ty))

    @triton.jit
    def amax_kernel(x, amax, SIZE: tl.constexpr):
        v = tl.load(x + tl.program_id(0) * SIZE + tl.arange(0, SIZE)).to(tl.float32)
        tl.atomic_max(amax, tl.max(tl.abs(v), axis=0).to(tl.int32, bitcast=True))  # magnitudes have the order of their bits

    @triton.jit
    def low_and_high(codes, PAIRS: tl.constexpr):
        low, high = tl.split(tl.reshape(codes, (PAIRS, 2)))
        return (low | (high << 4)).to(tl.uint8)

    @triton.jit
    def e2m1_code(v):
        # Adding 2^22, 2^23 or 2^24 rounds (ties to even) to the spacing of the values below 2, 4 and 8.
        a = tl.minimum(tl.abs(v), 6.0)
        to_two = a < 2.0
        to_four = a < 4.0
        sum = a + tl.where(to_two, 4194304.0, tl.where(to_four, 8388608.0, 16777216.0))
        code = (sum.to(tl.int32, bitcast=True) & 7) + tl.where(to_two, 0, tl.where(to_four, 2, 4))
        return code | ((v.to(tl.int32, bitcast=True) >> 28) & 8)

    @triton.jit
    def e2m1_value(code):
        # Exponent and mantissa in their places, 126 too low.
        v = ((code & 7) << 22).to(tl.float32, bitcast=True) * 8.507059173023462e37
        return (v.to(tl.int32, bitcast=True) | ((code & 8) << 28)).to(tl.float32, bitcast=True)

    @triton.jit
    def round_to_integer(v):
        return ((v + 12582912.0) - 12582912.0).to(tl.int32)

    @triton.jit
    def quantize_kernel(x, codes, scales, zeros, amax, ELEMENT: tl.constexpr, SCALE: tl.constexpr, ZEROS: tl.constexpr,
                        EMAX: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr):
        first = tl.program_id(0).to(tl.int64) * GROUPS
        g = tl.arange(0, GROUPS)
        i = g[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
        v = tl.load(x + first * GROUP + i).to(tl.float32)
        if SCALE == "e8m0":
            scale = tl.maximum((tl.max(tl.abs(v), axis=1).to(tl.int32, bitcast=True) >> 23) - EMAX, 0)
            v = v * ((254 - scale) << 23).to(tl.float32, bitcast=True)[:, None]
        elif SCALE == "e4m3":
            inverse = 2688.0 / tl.load(amax).to(tl.float32, bitcast=True)
            scale = (tl.max(tl.abs(v), axis=1) * (inverse * (1.0 / 6.0))).to(tl.float8e4nv)
            v = v * (1.0 / (scale.to(tl.float32) * (1.0 / inverse)))[:, None]
        elif SCALE == "fp32":
            scale = tl.maximum(tl.max(tl.abs(v), axis=1) / 448.0, 1.1754943508222875e-38)
            v = v * (1.0 / scale)[:, None]
        elif ZEROS:
            low = tl.minimum(tl.min(v, axis=1), 0.0)
            scale = ((tl.maximum(tl.max(v, axis=1), 0.0) - low) * (1.0 / 15.0)).to(tl.float16)
            inverse = 1.0 / scale.to(tl.float32)
            zero = tl.minimum(round_to_integer(-low * inverse), 15)
            tl.store(zeros + first // 2 + tl.arange(0, GROUPS // 2), low_and_high(zero, GROUPS // 2))
            q = round_to_integer(v * inverse[:, None]) + zero[:, None]
        else:
            scale = (tl.max(tl.abs(v), axis=1) * (1.0 / 7.0)).to(tl.float16)
            q = round_to_integer(v * (1.0 / scale.to(tl.float32))[:, None]) + 8
        tl.store(scales + first + g, scale.to(scales.dtype.element_ty))
        if ELEMENT == "e4m3":
            tl.store(codes + first * GROUP + i, v.to(tl.float8e4nv))
        else:
            if ELEMENT == "e2m1":
                q = e2m1_code(v)
            else:
                q = tl.minimum(tl.maximum(q, 0), 15)
            tl.store(codes + first * GROUP // 2 + tl.arange(0, GROUPS * GROUP // 2), low_and_high(q, GROUPS * GROUP // 2))

    @triton.jit
    def dequantize_kernel(codes, scales, zeros, multiplier, y, ELEMENT: tl.constexpr, SCALE: tl.constexpr,
                          ZEROS: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr):
        first = tl.program_id(0).to(tl.int64) * GROUPS
        g = tl.arange(0, GROUPS)
        scale = tl.load(scales + first + g)
        if SCALE == "e8m0":
            scale = (scale.to(tl.int32) << 23).to(tl.float32, bitcast=True)
        elif SCALE == "e4m3":
            scale = scale.to(tl.float32) * tl.load(multiplier)
        else:
            scale = scale.to(tl.float32)
        i = tl.arange(0, GROUPS * GROUP)
        if ELEMENT == "e4m3":
            v = tl.load(codes + first * GROUP + i).to(tl.float32)
        else:
            packed = tl.load(codes + first * GROUP // 2 + tl.arange(0, GROUPS * GROUP // 2)).to(tl.int32)
            q = tl.reshape(tl.join(packed & 15, packed >> 4), (GROUPS * GROUP,))
            if ELEMENT == "e2m1":
                v = e2m1_value(q)
            else:
                v = q.to(tl.float32)
        v = tl.reshape(v, (GROUPS, GROUP))
        if ELEMENT == "int4":
            if ZEROS:
                packed = tl.load(zeros + first // 2 + tl.arange(0, GROUPS // 2)).to(tl.int32)
                zero = tl.reshape(tl.join(packed & 15, packed >> 4), (GROUPS,))
                v = v - zero.to(tl.float32)[:, None]
            else:
                v = v - 8.0
        v = tl.reshape(v * scale[:, None], (GROUPS * GROUP,))
        tl.store(y + first * GROUP + i, v.to(y.dtype.element_ty))


def cast_with_triton(dtype, per_thread):
    def run(x):
        y = torch.empty_like(x, dtype=dtype)
        size = THREADS * per_thread * 4 // max(x.element_size(), y.element_size())
        cast_kernel[(x.numel() // size,)](x, y, SIZE=size, num_warps=THREADS // 32)
        return y

    return run


def tile_of(scheme, n, per_thread):
    """Groups of a tile; two at least, where zero points are packed in pairs."""
    groups = max(min(THREADS * per_thread, n) // scheme.group, 1)
    return max(groups, 2) if scheme.zeros else groups


def quantize_with_triton(scheme, per_thread):
    scale_type = {"fp32": torch.float32, "e8m0": torch.uint8, "e4m3": torch.float8_e4m3fn, "fp16": torch.float16}[scheme.scale]
    code_type = torch.float8_e4m3fn if scheme.bits == 8 else torch.uint8

    def run(x):
        n, groups = x.numel(), tile_of(scheme, x.numel(), per_thread)
        codes = torch.empty(n * scheme.bits // 8, dtype=code_type, device=x.device)
        scales = torch.empty(n // scheme.group, dtype=scale_type, device=x.device)
        zeros = torch.empty(n // scheme.group // 2, dtype=torch.uint8, device=x.device) if scheme.zeros else codes
        amax = codes
        if scheme.tensor_scale:
            amax = torch.zeros(1, dtype=torch.int32, device=x.device)
            size = min(8192, n)
            amax_kernel[(n // size,)](x, amax, SIZE=size, num_warps=8)
        quantize_kernel[(n // scheme.group // groups,)](
            x, codes, scales, zeros, amax, ELEMENT=scheme.element, SCALE=scheme.scale, ZEROS=scheme.zeros, EMAX=scheme.emax,
            GROUP=scheme.group, GROUPS=groups, num_warps=THREADS // 32)
        if scheme.tensor_scale:
            return codes, scales, amax  # the tensor's scale follows from it
        return (codes, scales, zeros) if scheme.zeros else (codes, scales)

    return run


def dequantize_with_triton(scheme, per_thread):
    def run(codes, scales, *more):
        n = codes.numel() * 8 // scheme.bits
        groups = tile_of(scheme, n, per_thread)
        y = torch.empty(n, dtype=torch.bfloat16, device=codes.device)
        extra = more[0] if scheme.zeros or scheme.tensor_scale else codes
        dequantize_kernel[(n // scheme.group // groups,)](
            codes, scales, extra, extra, y, ELEMENT=scheme.element, SCALE=scheme.scale, ZEROS=scheme.zeros, GROUP=scheme.group,
            GROUPS=groups, num_warps=THREADS // 32)
        return y

    return run


# ---- the check: tables and rational arithmetic in float64, on some of the rows --------------------------------------------


def code_table(name):
    """Values of all codes of a small float format, NaN and Inf included."""
    exponent_bits, mantissa_bits = {"e4m3": (4, 3), "e5m2": (5, 2), "e2m1": (2, 1)}[name]
    bias, values = 2 ** (exponent_bits - 1) - 1, []
    for code in range(1 << (exponent_bits + mantissa_bits)):
        e, m = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        v = (m + (1 << mantissa_bits) * (e > 0)) * 2.0 ** (max(e, 1) - bias - mantissa_bits)
        if name == "e4m3" and code == 127:
            v = float("nan")
        if name == "e5m2" and e == 31:
            v = float("nan") if m else float("inf")
        values.append(v)
    return torch.tensor(values + [-v for v in values], dtype=torch.float64)


def nearest_codes(x, name):
    """Codes of the nearest values, ties to even, saturating; x in float64 without NaN."""
    table = code_table(name)
    half = table.numel() // 2
    values = table[:half][torch.isfinite(table[:half])]
    bounds = (values[1:] + values[:-1]) / 2
    below, above = torch.searchsorted(bounds, x.abs()), torch.searchsorted(bounds, x.abs(), right=True)
    code = torch.where(below % 2 == 0, below, above)
    return code + half * torch.signbit(x).to(code.dtype)


def as_bytes(t):
    return t.detach().cpu().contiguous().view(torch.uint8).flatten()


def nibbles(t):
    return unpack(as_bytes(t)).flatten().long()


class Wrong(Exception):
    pass


def require(condition, what):
    if not bool(condition):
        raise Wrong(what)


def require_between(got, code_of, v, what):
    """Codes of v, or of a number that another order of fp32 operations may have made of it: their ties fall elsewhere."""
    a, b = code_of(v * (1 - 1e-6)).long().flatten(), code_of(v * (1 + 1e-6)).long().flatten()
    got = got.long().flatten()
    off = (got < torch.minimum(a, b)) | (got > torch.maximum(a, b))
    require(got.shape == a.shape and not off.any(), f"{what}: {int(off.sum())} of {off.numel()}")


def same_values(got, wanted, what):
    got, wanted = got.double().cpu().flatten(), wanted.double().flatten()
    require(torch.equal(torch.isnan(got), torch.isnan(wanted)) and torch.equal(got.nan_to_num(nan=0), wanted.nan_to_num(nan=0)), what)


def check_encode(x, y, name):
    if name == "bf16":
        bits = x.cpu().view(torch.int32).long() & 0xFFFFFFFF
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        require(torch.equal(y.cpu().view(torch.int16).long() & 0xFFFF, rounded), "codes")
    else:
        require(torch.equal(as_bytes(y).long(), nearest_codes(x.cpu().double(), name[4:])), "codes")


def check_decode(x, y, name):
    if name == "bf16":
        require(torch.equal(y.cpu().view(torch.int32), x.cpu().view(torch.int16).int() << 16), "values")
    else:
        same_values(y, code_table(name[4:])[as_bytes(x).long()], "values")


def scale_values(scheme, scales):
    """Stored block scales as float64."""
    if scheme.scale == "e8m0":
        return torch.pow(2.0, as_bytes(scales).double() - 127)
    if scheme.scale == "e4m3":
        return code_table("e4m3")[as_bytes(scales).long()]
    return scales.cpu().flatten().double()


def check_quantize(scheme, x, codes, scales, extra, amax_of_all):
    """`extra`: packed zero points, or the tensor's scale or amax. The codes are judged under the stored scale."""
    g = x.cpu().double().reshape(-1, scheme.group)
    amax = g.abs().amax(-1)
    s = scale_values(scheme, scales)
    zero = torch.zeros(len(s), dtype=torch.long)
    if scheme.scale == "e8m0":
        require(torch.equal(as_bytes(scales).long(), (torch.frexp(amax).exponent - 1 - scheme.emax + 127).clamp(0, 254).long()), "scales")
    elif scheme.tensor_scale:
        if extra.dtype == torch.int32:
            require(float(extra.cpu().view(torch.float32)) == amax_of_all, "largest magnitude of the tensor")
        else:
            require(abs(float(extra) * 2688 / amax_of_all - 1) < 1e-6, "scale of the tensor")
        require_between(as_bytes(scales), lambda v: nearest_codes(v, "e4m3"), amax / 6 * 2688 / amax_of_all, "scales")
        s = s * (amax_of_all / 2688)
    elif scheme.scale == "fp32":
        require((s * 448 / amax - 1).abs().max() < 1e-6, "scales")
    else:
        low, high = g.amin(-1).clamp(max=0), g.amax(-1).clamp(min=0)
        wanted = (high - low) / 15 if scheme.zeros else amax / 7
        require_between(scales.cpu().flatten().view(torch.int16), lambda v: v.half().view(torch.int16), wanted, "scales")
        zero += 8
        if scheme.zeros:
            zero = nibbles(extra)
            require_between(zero, lambda v: torch.round(v).clamp(0, 15), -low / s, "zero points")
    got = as_bytes(codes).long() if scheme.bits == 8 else nibbles(codes)
    if scheme.element == "int4":
        require_between(got, lambda v: (torch.round(v) + zero[:, None]).clamp(0, 15), g / s[:, None], "codes")
    elif scheme.scale == "e8m0":
        require(torch.equal(got, nearest_codes(g / s[:, None], scheme.element).flatten()), "codes")
    else:
        require_between(got, lambda v: nearest_codes(v, scheme.element), g / s[:, None], "codes")


def check_dequantize(scheme, codes, scales, extra, y):
    s = scale_values(scheme, scales)
    if scheme.tensor_scale:
        s = s * float(extra)
    if scheme.element == "int4":
        zero = nibbles(extra) if scheme.zeros else torch.full((len(s),), 8)
        v = nibbles(codes).view(-1, scheme.group) - zero[:, None].double()
    else:
        v = code_table(scheme.element)[as_bytes(codes).long() if scheme.bits == 8 else nibbles(codes)].view(-1, scheme.group)
    wanted, got = (v * s[:, None]).flatten(), y.cpu().double().flatten()
    require(torch.equal(torch.isnan(got), torch.isnan(wanted)), "NaN")
    got, wanted = got.nan_to_num(nan=0), wanted.nan_to_num(nan=0)
    if scheme.scale == "e8m0":
        require(torch.equal(got, wanted), "values")
    require((got - wanted).abs().sub(wanted.abs() * 2.0**-8).max() <= 1e-30, "values")


# ---- operations -----------------------------------------------------------------------------------------------------------


class Operation:
    """One row of cuda_bench: its bytes, input sets, peers by library and the check of a result."""

    def __init__(self, name, kind, read, written, inputs, check):
        self.name, self.kind, self.read, self.written, self.inputs, self.check = name, kind, read, written, inputs, check
        self.peers = []


def slices(n, step):
    """Where the check looks: the first and last rows."""
    rows = min(n, 16 * COLS)
    return [slice(a // step, (a + rows) // step) for a in {0, n - rows}]


def operations(n, device, backend, triton_runs):
    def compiled(f):
        return torch.compile(f, dynamic=False, fullgraph=True, backend=backend)

    def numbers(dtype):
        return lambda: [torch.randn(n, device=device, dtype=torch.float32).to(dtype) for _ in range(SETS)]

    def random_bytes(count, low=0, high=256):
        return torch.randint(low, high, (count,), device=device, dtype=torch.uint8)

    def sets_of(make):
        return lambda: [make() for _ in range(SETS)]

    def add_cast(verb, wide, narrow):
        source, target = (wide, narrow) if verb == "encode" else (narrow, wide)
        sizes = [torch.empty(0, dtype=DTYPES[t]).element_size() for t in (source, target)]
        make = numbers(DTYPES[source]) if verb == "encode" or narrow == "bf16" else sets_of(lambda: random_bytes(n).view(DTYPES[source]))

        def check(inputs, out):
            for part in slices(n, 1):
                (check_encode if verb == "encode" else check_decode)(inputs[0][part], out.flatten()[part], narrow)

        op = Operation(f"{verb} {source} -> {target}", "cast", n * sizes[0], n * sizes[1],
                       lambda: [(x,) for x in make()], check)
        to = DTYPES[target]
        op.peers.append(("torch eager", lambda x: x.to(to)))
        if triton_runs:
            op.peers += [("triton", cast_with_triton(to, k)) for k in (4, 8)]
        op.peers.append(("torch.compile", compiled(lambda x: x.to(to))))
        return op

    def add_quantize(scheme):
        def check(inputs, out):
            x = inputs[0]
            extra = out[2] if len(out) > 2 else None
            amax = float(x.abs().amax())
            for part in slices(n, 1):
                group = slice(part.start // scheme.group, part.stop // scheme.group)
                code = slice(part.start * scheme.bits // 8, part.stop * scheme.bits // 8)
                more = extra.flatten()[group.start // 2:group.stop // 2] if scheme.zeros else extra
                check_quantize(scheme, x[part], out[0].flatten()[code], out[1].flatten()[group], more, amax)

        passes = 2 if scheme.tensor_scale else 1
        op = Operation(f"quantize bf16 -> {scheme.name}", "quantize", passes * n * 2, scheme.stored_bytes(n),
                       lambda: [(x,) for x in numbers(torch.bfloat16)()], check)
        if triton_runs:
            op.peers += [("triton", quantize_with_triton(scheme, k)) for k in (8, 16)]
        op.peers.append(("torch.compile", compiled(quantize_with_torch(scheme))))
        return op

    def add_dequantize(scheme):
        def make():
            codes, groups = random_bytes(n * scheme.bits // 8), n // scheme.group
            inputs = [codes.view(torch.float8_e4m3fn) if scheme.bits == 8 else codes]
            if scheme.scale == "e8m0":
                inputs.append(random_bytes(groups, 110, 140))
            elif scheme.scale == "e4m3":
                inputs += [random_bytes(groups, 0, 120).view(torch.float8_e4m3fn), torch.full((1,), 0.37, device=device)]
            else:
                inputs.append((torch.rand(groups, device=device) + 0.01).half())
            if scheme.zeros:
                inputs.append(random_bytes(groups // 2))
            if scheme.element == "e2m1":
                inputs.append(torch.tensor(E2M1_VALUES + [-v for v in E2M1_VALUES], device=device))
            return tuple(inputs)

        def check(inputs, out):
            for part in slices(n, 1):
                group = slice(part.start // scheme.group, part.stop // scheme.group)
                code = slice(part.start * scheme.bits // 8, part.stop * scheme.bits // 8)
                extra = None
                if scheme.zeros:
                    extra = inputs[2][group.start // 2:group.stop // 2]
                elif scheme.tensor_scale:
                    extra = inputs[2]
                check_dequantize(scheme, inputs[0][code], inputs[1][group], extra, out.flatten()[part])

        op = Operation(f"dequantize {scheme.name} -> bf16", "dequantize", scheme.stored_bytes(n), n * 2, sets_of(make), check)
        if triton_runs:
            op.peers += [("triton", dequantize_with_triton(scheme, k)) for k in (8, 16)]
        op.peers.append(("torch.compile", compiled(dequantize_with_torch(scheme))))
        return op

    # The most telling first, should time run out.
    for name in ("block_fp8_1x128", "fp8_per_channel", "mxfp8_e4m3", "mxfp4", "nvfp4", "awq_int4", "int4_symmetric_g128"):
        yield lambda name=name: add_quantize(SCHEMES[name])
        if "fp8_" not in name or name.startswith("mx"):
            yield lambda name=name: add_dequantize(SCHEMES[name])
    for wide in ("bf16", "fp32"):
        for narrow in ("fp8_e4m3", "fp8_e5m2", "bf16"):
            for verb in ("encode", "decode"):
                if wide != narrow:
                    yield lambda verb=verb, wide=wide, narrow=narrow: add_cast(verb, wide, narrow)


# ---- the clock ------------------------------------------------------------------------------------------------------------


class GraphRun:
    """Seconds of one launch, of LAUNCHES in a CUDA graph that rotate over the sets."""

    def __init__(self, launch):
        for i in range(SETS):  # what is compiled or loaded at a first launch cannot be captured
            launch(i)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.kept = [launch(i % SETS) for i in range(LAUNCHES)]  # every launch writes a result of its own
        self.start, self.stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def __call__(self):
        self.start.record()
        self.graph.replay()
        self.stop.record()
        self.stop.synchronize()
        return self.start.elapsed_time(self.stop) * 1e-3 / LAUNCHES


class PlainRun:
    """The same without a graph, for the dry run."""

    def __init__(self, launch):
        self.launch = launch

    def __call__(self):
        start = time.perf_counter()
        for i in range(LAUNCHES):
            self.launch(i % SETS)
        return (time.perf_counter() - start) / LAUNCHES


class Ceilings:
    """Copies of any mix of reads and writes, as in cuda_bench."""

    def __init__(self, n, device, run_class, triton_runs):
        words = max(n, 1 << 28 if device == "cuda" else 0) + 4096
        self.wide, self.narrow = ([torch.randint(-(1 << 31), 1 << 31, (words,), dtype=torch.int32, device=device)
                                   for _ in range(SETS)] for _ in range(2))
        self.run_class, self.triton_runs, self.most = run_class, triton_runs, 4 * (words - 4096)
        self.runs = {}

    def get(self, read, written):
        """(run, bytes that it moves)"""
        wide = max(read, written)
        reads, writes = round(THREADS * read / wide), round(THREADS * written / wide)
        blocks = int(min((read + written) / (16 * (reads + writes)), self.most // (16 * THREADS)))
        if (reads, writes, blocks) not in self.runs:
            self.runs[reads, writes, blocks] = self.run_class(lambda i: self.launch(i, reads, writes, blocks)), 16.0 * blocks * (reads + writes)
        return self.runs[reads, writes, blocks]

    def launch(self, i, reads, writes, blocks):
        source, target = (self.wide[i], self.narrow[i]) if reads >= writes else (self.narrow[i], self.wide[i])
        if reads == writes:
            target = self.wide[1 - i]
        if self.triton_runs:
            move_kernel[(blocks,)](source, target, READS=4 * reads, WRITES=4 * writes, SIZE=4 * THREADS, num_warps=THREADS // 32)
        else:
            target[:4 * blocks * writes].fill_(int(source[:4 * blocks * reads].amax()))


def measure(op, inputs, peer, ceilings, run_class, repeats):
    mix, mix_bytes = ceilings.get(op.read, op.written)
    copy, copy_bytes = ceilings.get(1e9, 1e9)
    own = run_class(lambda i: peer(*inputs[i]))
    times = [(own(), mix(), copy()) for _ in range(repeats + 1)][1:]
    k, m, c = (statistics.median(t) for t in zip(*times))
    moved = op.read + op.written
    m, c = m * moved / mix_bytes, c * moved / copy_bytes
    return {"read_bytes": int(op.read), "written_bytes": int(op.written), "seconds": k, "gb_per_s": moved / k * 1e-9,
            "mix_copy_gb_per_s": moved / m * 1e-9, "copy_gb_per_s": moved / c * 1e-9, "ratio_to_mix_copy": m / k,
            "ratio_to_copy": c / k}


def run(args):
    started = time.perf_counter()
    gpu = args.device == "cuda"
    n = args.elements
    triton_runs = triton is not None and (gpu or triton.knobs.runtime.interpret)
    if not triton_runs:
        print("SKIPPED: Triton's kernels (" + ("not installed)" if triton is None else "no GPU, and TRITON_INTERPRET is not set)"))
    torch.manual_seed(7)
    run_class = GraphRun if gpu else PlainRun
    ceilings = Ceilings(n, args.device, run_class, triton_runs)
    rows, wrong, left_out = {}, [], []
    made = [make() for make in operations(n, args.device, args.backend, triton_runs)]
    # Compilation takes the most time and comes last.
    passes = [lambda library: library != "torch.compile", lambda library: library == "torch.compile"]
    print(f"{'row':40} {'library':14} {'us':>9} {'GB/s':>8} {'of mix':>8} {'of copy':>8}")
    for wanted in passes:
        for op in made:
            peers = [(library, f) for library, f in op.peers if wanted(library) and args.only in op.name]
            if not peers:
                continue
            if time.perf_counter() - started > args.seconds:
                left_out += [f"{op.name} ({library})" for library, _ in peers]
                continue
            inputs = op.inputs()
            for library, peer in peers:
                try:
                    torch._dynamo.reset()  # functions of one source line share a limit of recompilations
                    results = [peer(*inputs[i]) for i in range(SETS)]
                    for i in range(SETS):
                        op.check(inputs[i], results[i])
                    del results
                    row = measure(op, inputs, peer, ceilings, run_class, args.repeats)
                except Wrong as error:
                    wrong.append(f"{op.name} ({library}): wrong {error}")
                    print(f"WRONG: {wrong[-1]}")
                    continue
                except Exception as error:  # of one peer: the others still count
                    left_out.append(f"{op.name} ({library}): {type(error).__name__}")
                    print(f"FAILED: {op.name} ({library}): {type(error).__name__}: {str(error)[:400]}")
                    continue
                row = {"name": op.name, "library": library, "kind": op.kind} | row
                if row["seconds"] < rows.get((op.name, library), {"seconds": 1e9})["seconds"]:
                    rows[op.name, library] = row
                print(f"{op.name:40} {library:14} {row['seconds'] * 1e6:9.1f} {row['gb_per_s']:8.0f} {row['ratio_to_mix_copy']:8.3f} "
                      f"{row['ratio_to_copy']:8.3f}", flush=True)
            del inputs
            if gpu:
                torch.cuda.empty_cache()
    order = {op.name: i for i, op in enumerate(made)}
    context = {"subject": "cuda_codec_peers", "commit": args.commit,
               "device": torch.cuda.get_device_name(0) if gpu else "cpu (dry run)", "dry_run": not gpu,
               "torch": torch.__version__, "triton": triton.__version__ if triton else "none", "elements": n,
               "method": f"median of {args.repeats} graph replays of {LAUNCHES} launches, in turns with the ceilings",
               "seconds": round(time.perf_counter() - started, 1), "left_out": left_out, "wrong": wrong}
    data = {"context": context, "rows": sorted(rows.values(), key=lambda r: (order[r["name"]], r["library"]))}
    args.out.write_text(json.dumps(data, indent=1) + "\n")
    for line in left_out:
        print(f"LEFT OUT: {line}")
    print(f"{len(rows)} rows, {len(wrong)} wrong, {len(left_out)} left out, {context['seconds']} s")
    return 1 if wrong or not rows else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--elements", type=int, default=1 << 28)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    if args.elements < COLS or args.elements % COLS:
        sys.exit(f"cuda_codec_peers.py: --elements: got {args.elements}, wanted a multiple of {COLS}")
    if args.device == "cuda":
        if not torch.cuda.is_available():
            print("SKIPPED: no CUDA device")
            return 77
        if triton is None:
            sys.exit("cuda_codec_peers.py: triton is not installed; the copy kernel needs it")
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
