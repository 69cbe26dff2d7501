// SPDX-License-Identifier: MIT
// Register-level conversions between the packed narrow formats and bf16, fp16 and float, for kernels that hold codes in
// 32-bit registers. The only file of the library with conversion instructions; every function has an integer fallback
// where the architecture has none, and gives the same bits everywhere. Compiles under NVRTC, needs no other CUDA
// header.
//
// Registers. A 32-bit word holds eight 4-bit codes (code i in bits 4i .. 4i + 3), four 8-bit codes (byte i) or two
// 16-bit numbers (low half first): the little-endian order of the memory layout. `words<N>` is N such registers.
//
// Lane order. lanes::pairs: result j holds elements 2j (low half) and 2j + 1 (high half), as in memory.
// lanes::strided: result j of a 4-bit decode holds elements j and j + 4, which takes fewer instructions and serves
// wherever both operands of a product can be permuted alike.
//
// Policies. Encoding here is round to nearest even, saturating (Inf too), NaN to the canonical code: the defaults of
// encode(). Every other policy runs encode() itself, which is integer code and works on the device.
//
// Interop. reinterpret<__nv_bfloat162>(word), reinterpret<__half2>(word), reinterpret<uint32_t>(__nv_fp8x4_e4m3{...})
// and so on cost no instruction.
//
// Instruction counts in the docstrings are per element, read in sm_90a SASS of a kernel that does only this; "issue" is
// all of them, "ALU" those that share the pipe of LOP3, PRMT and F2FP (64 a clock and SM on Hopper).
#pragma once

#include "../bf16.hpp"
#include "../block/scheme.hpp"
#include "../e8m0.hpp"
#include "../fp16.hpp"
#include "../fp4.hpp"
#include "../fp6.hpp"
#include "../fp8.hpp"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "numfmt/cuda needs compute capability 8.0 or later"
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define NUMFMT_DEVICE __device__ __forceinline__
#else
#error "numfmt/cuda/convert.cuh is CUDA code: compile it with nvcc, clang -x cuda or NVRTC"
#endif

namespace numfmt::cuda {

/// What the architecture being compiled for converts by itself. Same bits either way.
struct native {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    static constexpr bool fp8 = true;  ///< e4m3, e5m2 <-> f16x2, and from f32
#else
    static constexpr bool fp8 = false;
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
    static constexpr bool narrow = __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000 && __CUDA_ARCH_FAMILY_SPECIFIC__ < 1300;
#define NUMFMT_CUDA_NARROW 1  ///< e2m1, e2m3, e3m2 and ue8m0: only sm_100f, 103f, 110f, 120f and their `a` targets
#else
    static constexpr bool narrow = false;
#define NUMFMT_CUDA_NARROW 0
#endif
};

/// N 32-bit registers.
template <int N> struct words {
    uint32_t w[N];
    NUMFMT_DEVICE uint32_t& operator[](int i) { return w[i]; }
    NUMFMT_DEVICE uint32_t operator[](int i) const { return w[i]; }
};

enum class lanes : uint8_t {
    pairs,    ///< register j: elements 2j and 2j + 1
    strided,  ///< register j: elements j and j + 4
};

/// The bits of `from` as a `To` of the same size; also for CUDA's vector types, whose constructors rule out bit_cast.
/// No instruction.
template <class To, class From> NUMFMT_DEVICE To reinterpret(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "numfmt::cuda::reinterpret: both types must have the same size");
    To to;
    __builtin_memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof(To));
    return to;
}

/// Single instructions, as functions. `.rn` without `.ftz` everywhere: no compiler flag changes a bit.
namespace reg {

NUMFMT_DEVICE float as_float(uint32_t bits) { return __uint_as_float(bits); }
NUMFMT_DEVICE uint32_t as_bits(float x) { return __float_as_uint(x); }

NUMFMT_DEVICE float multiply(float a, float b) {
    float d;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}
NUMFMT_DEVICE float add(float a, float b) {
    float d;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}
NUMFMT_DEVICE float multiply_add(float a, float b, float c) {
    float d;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
    return d;
}
/// The smaller and the larger; the number where one of the two is NaN.
NUMFMT_DEVICE float minimum(float a, float b) {
    float d;
    asm("min.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}
NUMFMT_DEVICE float maximum(float a, float b) {
    float d;
    asm("max.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}
NUMFMT_DEVICE float magnitude(float a) {
    float d;
    asm("abs.f32 %0, %1;" : "=f"(d) : "f"(a));
    return d;
}
/// a > limit, a >= limit, and the same with true for NaN.
NUMFMT_DEVICE bool above(float a, float limit) {
    uint32_t d;
    asm("{ .reg .pred p; setp.gt.f32 p, %1, %2; selp.u32 %0, 1, 0, p; }" : "=r"(d) : "f"(a), "f"(limit));
    return d != 0;
}
NUMFMT_DEVICE bool at_least(float a, float limit) {
    uint32_t d;
    asm("{ .reg .pred p; setp.ge.f32 p, %1, %2; selp.u32 %0, 1, 0, p; }" : "=r"(d) : "f"(a), "f"(limit));
    return d != 0;
}
NUMFMT_DEVICE bool above_or_nan(float a, float limit) {
    uint32_t d;
    asm("{ .reg .pred p; setp.gtu.f32 p, %1, %2; selp.u32 %0, 1, 0, p; }" : "=r"(d) : "f"(a), "f"(limit));
    return d != 0;
}
NUMFMT_DEVICE bool at_least_or_nan(float a, float limit) {
    uint32_t d;
    asm("{ .reg .pred p; setp.geu.f32 p, %1, %2; selp.u32 %0, 1, 0, p; }" : "=r"(d) : "f"(a), "f"(limit));
    return d != 0;
}

/// (a & mask) | c as one LOP3 even where mask and c are both constants.
NUMFMT_DEVICE uint32_t and_or(uint32_t a, uint32_t mask, uint32_t c) {
    uint32_t d;
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(d) : "r"(a), "r"(mask), "r"(c));
    return d;
}

/// Bytes of (a, b), picked by the four nibbles of `selector`: 0..3 from a, 4..7 from b; +8 replicates the sign bit.
NUMFMT_DEVICE uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
    uint32_t d;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
    return d;
}

/// Two floats as f16x2 or bf16x2, nearest even; overflow gives Inf, NaN 7FFF.
NUMFMT_DEVICE uint32_t to_f16x2(float low, float high) {
    uint32_t d;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
    return d;
}
NUMFMT_DEVICE uint32_t to_bf16x2(float low, float high) {
    uint32_t d;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
    return d;
}
NUMFMT_DEVICE float f16_low(uint32_t w) {
    float d;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }" : "=f"(d) : "r"(w));
    return d;
}
NUMFMT_DEVICE float f16_high(uint32_t w) {
    float d;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }" : "=f"(d) : "r"(w));
    return d;
}
NUMFMT_DEVICE float bf16_low(uint32_t w) { return as_float(w << 16); }
NUMFMT_DEVICE float bf16_high(uint32_t w) { return as_float(w & 0xFFFF0000u); }

NUMFMT_DEVICE uint32_t multiply_f16x2(uint32_t a, uint32_t b) {
    uint32_t d;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
NUMFMT_DEVICE uint32_t multiply_add_f16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
NUMFMT_DEVICE uint32_t multiply_add_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
NUMFMT_DEVICE uint32_t multiply_bf16x2(uint32_t a, uint32_t b) {
    return multiply_add_bf16x2(a, b, 0x80008000u);  // + -0: one rounding, the sign of a zero kept
}
NUMFMT_DEVICE uint32_t minimum_f16x2(uint32_t a, uint32_t b) {
    uint32_t d;
    asm("min.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
NUMFMT_DEVICE uint32_t maximum_f16x2(uint32_t a, uint32_t b) {
    uint32_t d;
    asm("max.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
/// The smaller and the larger of each half in the 16-bit format To; NaN (7FFF) where either is NaN.
template <class To> NUMFMT_DEVICE uint32_t minimum_or_nan(uint32_t a, uint32_t b) {
    uint32_t d;
    if constexpr (numfmt::detail::is_same_v<To, fp16>)
        asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    else
        asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
template <class To> NUMFMT_DEVICE uint32_t maximum_or_nan(uint32_t a, uint32_t b) {
    uint32_t d;
    if constexpr (numfmt::detail::is_same_v<To, fp16>)
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    else
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
/// 1 / a, rounded to nearest even; subnormals kept.
NUMFMT_DEVICE float reciprocal(float a) {
    float d;
    asm("rcp.rn.f32 %0, %1;" : "=f"(d) : "f"(a));
    return d;
}
NUMFMT_DEVICE uint32_t magnitude_f16x2(uint32_t a) {
    uint32_t d;
    asm("abs.f16x2 %0, %1;" : "=r"(d) : "r"(a));
    return d;
}
/// The larger of each unsigned half.
NUMFMT_DEVICE uint32_t maximum_u16x2(uint32_t a, uint32_t b) {
#if __CUDA_ARCH__ >= 900
    uint32_t d;
    asm("max.u16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
#else
    const uint32_t low = max(a & 0xFFFFu, b & 0xFFFFu), high = max(a >> 16, b >> 16);
    return high << 16 | low;
#endif
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
NUMFMT_DEVICE uint32_t e4m3x2(float low, float high) {
    uint16_t d;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(high), "f"(low));
    return d;
}
NUMFMT_DEVICE uint32_t e5m2x2(float low, float high) {
    uint16_t d;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(d) : "f"(high), "f"(low));
    return d;
}
NUMFMT_DEVICE uint32_t e4m3x2(uint32_t f16x2) {
    uint16_t d;
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(d) : "r"(f16x2));
    return d;
}
NUMFMT_DEVICE uint32_t e5m2x2(uint32_t f16x2) {
    uint16_t d;
    asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(d) : "r"(f16x2));
    return d;
}
NUMFMT_DEVICE uint32_t e4m3x2_to_f16x2(uint32_t codes) {
    uint32_t d;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(d) : "h"(static_cast<uint16_t>(codes)));
    return d;
}
NUMFMT_DEVICE uint32_t e5m2x2_to_f16x2(uint32_t codes) {
    uint32_t d;
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(d) : "h"(static_cast<uint16_t>(codes)));
    return d;
}
#endif

#if NUMFMT_CUDA_NARROW
NUMFMT_DEVICE uint32_t e2m1x8(const float (&x)[8]) {
    uint32_t d;
    asm("{ .reg .b8 a, b, c, d;\n"
        "cvt.rn.satfinite.e2m1x2.f32 a, %2, %1; cvt.rn.satfinite.e2m1x2.f32 b, %4, %3;\n"
        "cvt.rn.satfinite.e2m1x2.f32 c, %6, %5; cvt.rn.satfinite.e2m1x2.f32 d, %8, %7;\n"
        "mov.b32 %0, {a, b, c, d}; }"
        : "=r"(d)
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "f"(x[4]), "f"(x[5]), "f"(x[6]), "f"(x[7]));
    return d;
}
NUMFMT_DEVICE words<4> e2m1x8_to_f16x2(uint32_t codes) {
    words<4> r;
    asm("{ .reg .b8 a, b, c, d; mov.b32 {a, b, c, d}, %4;\n"
        "cvt.rn.f16x2.e2m1x2 %0, a; cvt.rn.f16x2.e2m1x2 %1, b;\n"
        "cvt.rn.f16x2.e2m1x2 %2, c; cvt.rn.f16x2.e2m1x2 %3, d; }"
        : "=r"(r.w[0]), "=r"(r.w[1]), "=r"(r.w[2]), "=r"(r.w[3])
        : "r"(codes));
    return r;
}
NUMFMT_DEVICE uint32_t e2m3x2(float low, float high) {
    uint16_t d;
    asm("cvt.rn.satfinite.e2m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(high), "f"(low));
    return d;
}
NUMFMT_DEVICE uint32_t e3m2x2(float low, float high) {
    uint16_t d;
    asm("cvt.rn.satfinite.e3m2x2.f32 %0, %1, %2;" : "=h"(d) : "f"(high), "f"(low));
    return d;
}
NUMFMT_DEVICE uint32_t ue8m0x2_to_bf16x2(uint32_t codes) {
    uint32_t d;
    asm("cvt.rn.bf16x2.ue8m0x2 %0, %1;" : "=r"(d) : "h"(static_cast<uint16_t>(codes)));
    return d;
}
#endif

/// The magnitude bits below the sign, as the sign-and-magnitude halves of a decode: bits moved from (h << up >> down).
template <class To> inline constexpr bool is_half_v = numfmt::detail::is_one_of_v<To, bf16, fp16>;
/// 2^k twice, in the 16-bit format To.
template <class To> NUMFMT_DEVICE constexpr uint32_t power_pair(int k) {
    const uint32_t bits = static_cast<uint32_t>(k + To::spec.bias) << To::spec.mantissa_bits;
    return bits << 16 | bits;
}
template <class To> NUMFMT_DEVICE uint32_t multiply_pair(uint32_t a, uint32_t b) {
    if constexpr (numfmt::detail::is_same_v<To, fp16>)
        return multiply_f16x2(a, b);
    else
        return multiply_bf16x2(a, b);
}
template <class To> NUMFMT_DEVICE uint32_t multiply_add_pair(uint32_t a, uint32_t b, uint32_t c) {
    if constexpr (numfmt::detail::is_same_v<To, fp16>)
        return multiply_add_f16x2(a, b, c);
    else
        return multiply_add_bf16x2(a, b, c);
}
template <class To> NUMFMT_DEVICE uint32_t to_pair(float low, float high) {
    if constexpr (numfmt::detail::is_same_v<To, fp16>)
        return to_f16x2(low, high);
    else
        return to_bf16x2(low, high);
}

}  // namespace reg

// ---- 16-bit pairs <-> float -----------------------------------------------------------------------------------------

/// 2N floats from N registers of To pairs. fp16: one HADD2.F32 each; bf16: one shift or mask each. Exact; NaN stays
/// NaN.
template <class To, int N> NUMFMT_DEVICE void to_float(const words<N>& x, float (&y)[2 * N]) {
    static_assert(reg::is_half_v<To>, "numfmt::cuda::to_float: the pairs must be bf16 or fp16");
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if constexpr (numfmt::detail::is_same_v<To, fp16>) {
            y[2 * i] = reg::f16_low(x[i]);
            y[2 * i + 1] = reg::f16_high(x[i]);
        } else {
            y[2 * i] = reg::bf16_low(x[i]);
            y[2 * i + 1] = reg::bf16_high(x[i]);
        }
    }
}

/// N registers of To pairs from 2N floats: 0.5 instructions (one F2FP for two). Nearest even, overflow to Inf, NaN
/// 7FFF: the defaults of encode<bf16> and encode<fp16>.
template <class To, int N> NUMFMT_DEVICE words<N> from_float(const float (&x)[2 * N]) {
    words<N> r;
#pragma unroll
    for (int i = 0; i < N; ++i) r[i] = reg::to_pair<To>(x[2 * i], x[2 * i + 1]);
    return r;
}

/// One 16-bit number in both halves.
NUMFMT_DEVICE uint32_t broadcast(uint16_t bits) { return uint32_t{bits} * 0x10001u; }

/// Every number of x times `scale`, a To pair (see broadcast): 0.5 instructions, rounded once in To.
template <class To, int N> NUMFMT_DEVICE words<N> multiply(words<N> x, uint32_t scale) {
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = reg::multiply_pair<To>(x[i], scale);
    return x;
}

// ---- 4-bit codes ----------------------------------------------------------------------------------------------------

/// Eight int4 codes, or e2m1 codes, as bf16 or fp16 pairs: exact values (int4: 0 .. 15, no zero point).
/// Format: uint4 or fp4_e2m1; To: bf16 or fp16. Instructions per element, all but the "half" ones ALU:
///   e2m1 -> fp16  pairs 1.6 (PRMT tables)     strided 1.5 + 0.9 half
///   e2m1 -> bf16  pairs 1.9                   strided 1.5 + 0.9 half
///   uint4 -> fp16 pairs 1.1 + 0.5 half        strided 0.6 + 0.5 half (magic number 1024 + code)
///   uint4 -> bf16 pairs 1.1 + 0.5 half        strided 0.9 + 0.5 half (magic number 128 + code)
/// -0 stays -0. Neither format has NaN.
template <class Format, class To, lanes L = lanes::pairs> NUMFMT_DEVICE words<4> decode8(uint32_t codes);

namespace reg {

/// Eight e2m1 codes as byte tables: byte i of the result is table[magnitude of code i], OR the sign in bit 7.
struct byte_pair_table {
    uint32_t low, high;  // entries 0..3 and 4..7
};
template <bool WithSign> NUMFMT_DEVICE words<2> lookup(uint32_t codes, uint32_t magnitudes, byte_pair_table t) {
    words<2> r{{permute(t.low, t.high, magnitudes), permute(t.low, t.high, magnitudes >> 16)}};
    if constexpr (WithSign) {
        // A selector with bit 3 set replicates the table's sign bit: 80 becomes FF where the code is negative.
        const uint32_t s0 = permute(0x80808080u, 0x80808080u, codes);
        const uint32_t s1 = permute(0x80808080u, 0x80808080u, codes >> 16);
        r[0] |= (s0 << 7) & 0x80808080u;
        r[1] |= (s1 << 7) & 0x80808080u;
    }
    return r;
}

/// Even and odd nibbles as bytes, then four code bytes in order per register.
NUMFMT_DEVICE words<2> nibbles_to_bytes(uint32_t codes) {
    const uint32_t even = codes & 0x0F0F0F0Fu, odd = (codes >> 4) & 0x0F0F0F0Fu;
    return {{permute(even, odd, 0x5140u), permute(even, odd, 0x7362u)}};
}

/// Pairs (1024 + n) of fp16 or (128 + n) of bf16, n the int4 codes; strided fp16 gives (1024 + 16 n) in registers 1, 3.
template <class To, lanes L> NUMFMT_DEVICE words<4> int4_magic(uint32_t codes) {
    constexpr bool f16 = numfmt::detail::is_same_v<To, fp16>;
    constexpr uint32_t magic = f16 ? 0x64006400u : 0x43004300u;
    if constexpr (L == lanes::pairs) {
        const words<2> b = nibbles_to_bytes(codes);
        return {{permute(b[0], magic, 0x5150u), permute(b[0], magic, 0x5352u), permute(b[1], magic, 0x5150u),
                 permute(b[1], magic, 0x5352u)}};
    } else if constexpr (f16) {
        const uint32_t upper = codes >> 8;
        return {{and_or(codes, 0x000F000Fu, magic), and_or(codes, 0x00F000F0u, magic),
                 and_or(upper, 0x000F000Fu, magic), and_or(upper, 0x00F000F0u, magic)}};
    } else {
        return {{and_or(codes, 0x000F000Fu, magic), and_or((codes >> 4), 0x000F000Fu, magic),
                 and_or((codes >> 8), 0x000F000Fu, magic), and_or((codes >> 12), 0x000F000Fu, magic)}};
    }
}

/// int4 codes minus an integer 0 .. 15, given as the pair (1024 + z) or (128 + z), negated.
template <class To, lanes L> NUMFMT_DEVICE words<4> int4_minus(uint32_t codes, uint32_t minus_magic_zero) {
    words<4> r = int4_magic<To, L>(codes);
    constexpr uint32_t one = power_pair<To>(0);
    if constexpr (L == lanes::strided && numfmt::detail::is_same_v<To, fp16>) {
        // (1024 + 16 n) / 16 - (64 + z), exact: the addend is 960 less than for the others.
        uint32_t shifted;
        asm("add.rn.f16x2 %0, %1, %2;" : "=r"(shifted) : "r"(minus_magic_zero), "r"(0x63806380u));
        constexpr uint32_t sixteenth = power_pair<To>(-4);
        r[0] = multiply_add_pair<To>(r[0], one, minus_magic_zero);
        r[1] = multiply_add_pair<To>(r[1], sixteenth, shifted);
        r[2] = multiply_add_pair<To>(r[2], one, minus_magic_zero);
        r[3] = multiply_add_pair<To>(r[3], sixteenth, shifted);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) r[i] = multiply_add_pair<To>(r[i], one, minus_magic_zero);
    }
    return r;
}

}  // namespace reg

/// What int4_decode8 needs to know of a zero point 0 .. 15: hoist it out of the loop over a group.
template <class To> NUMFMT_DEVICE uint32_t int4_zero(uint32_t zero_point) {
    constexpr uint32_t minus_magic = numfmt::detail::is_same_v<To, fp16> ? 0xE400u : 0xC300u;
    return (minus_magic + zero_point) * 0x10001u;
}

/// Eight int4 codes minus a zero point, exact integers -15 .. 15 as To pairs; `zero` from int4_zero<To>(z).
/// Instructions per element: as decode8<uint4, To, L>.
template <class To, lanes L = lanes::pairs> NUMFMT_DEVICE words<4> int4_decode8(uint32_t codes, uint32_t zero) {
    static_assert(reg::is_half_v<To>, "numfmt::cuda::int4_decode8: the result is bf16 or fp16");
    return reg::int4_minus<To, L>(codes, zero);
}

template <class Format, class To, lanes L> NUMFMT_DEVICE words<4> decode8(uint32_t codes) {
    static_assert(reg::is_half_v<To>, "numfmt::cuda::decode8: the result is bf16 or fp16");
    if constexpr (numfmt::detail::is_same_v<Format, numfmt::uint4>) {
        return reg::int4_minus<To, L>(codes, int4_zero<To>(0));
    } else {
        static_assert(numfmt::detail::is_same_v<Format, fp4_e2m1>, "numfmt::cuda::decode8: uint4 or fp4_e2m1");
        constexpr bool f16 = numfmt::detail::is_same_v<To, fp16>;
        if constexpr (L == lanes::strided) {
            // Sign to bit 15, the three magnitude bits to the top of the mantissa: the value times 2^-14 (2^-126).
            constexpr int down = f16 ? 3 : 6;
            constexpr uint32_t mask = f16 ? 0x0E000E00u : 0x01C001C0u;
            words<4> r;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const uint32_t top = codes << (12 - 4 * k);
                r[k] = (top & 0x80008000u) | ((top >> down) & mask);
            }
            return multiply<To>(r, reg::power_pair<To>(f16 ? 14 : 126));
        } else if constexpr (f16) {
#if NUMFMT_CUDA_NARROW
            return reg::e2m1x8_to_f16x2(codes);
#else
            // The upper bytes of 0 .. 6 in binary16; the lower ones are all 0.
            const words<2> b = reg::lookup<true>(codes, codes & 0x77777777u, {0x3E3C3800u, 0x46444240u});
            return {{reg::permute(b[0], 0u, 0x1404u), reg::permute(b[0], 0u, 0x3424u), reg::permute(b[1], 0u, 0x1404u),
                     reg::permute(b[1], 0u, 0x3424u)}};
#endif
        } else {
            const uint32_t magnitudes = codes & 0x77777777u;
            const words<2> upper = reg::lookup<true>(codes, magnitudes, {0x3F3F3F00u, 0x40404040u});
            const words<2> lower = reg::lookup<false>(codes, magnitudes, {0xC0800000u, 0xC0804000u});
            return {{reg::permute(lower[0], upper[0], 0x5140u), reg::permute(lower[0], upper[0], 0x7362u),
                     reg::permute(lower[1], upper[1], 0x5140u), reg::permute(lower[1], upper[1], 0x7362u)}};
        }
    }
}

/// decode8 with the scale fused: every value times `scale` (a To pair), one rounding in To. + 0.5 instructions.
template <class Format, class To, lanes L = lanes::pairs>
NUMFMT_DEVICE words<4> decode8(uint32_t codes, uint32_t scale) {
    return multiply<To>(decode8<Format, To, L>(codes), scale);
}

/// Power of two that decode8_deferred leaves out: value = result * 2^deferred_exponent. Fold it into the scale that is
/// applied later (to the accumulator, or by one multiplication).
template <class Format, class To>
inline constexpr int deferred_exponent =
    numfmt::detail::is_same_v<Format, numfmt::uint4> ? To::spec.mantissa_bits - To::spec.min_exponent()
                                                     : To::spec.bias - fp4_e2m1::spec.bias;

/// Eight 4-bit codes as subnormals of To, strided lanes: exact values times 2^-deferred_exponent (uint4: fp16 24, bf16
/// 133; e2m1: fp16 14, bf16 126). Subnormal operands are exact in mma.sync, wgmma and HFMA2.
/// Instructions per element, all ALU: uint4 0.9, e2m1 1.9.
template <class Format, class To> NUMFMT_DEVICE words<4> decode8_deferred(uint32_t codes) {
    static_assert(reg::is_half_v<To>, "numfmt::cuda::decode8_deferred: the result is bf16 or fp16");
    words<4> r;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if constexpr (numfmt::detail::is_same_v<Format, numfmt::uint4>) {
            r[k] = (codes >> (4 * k)) & 0x000F000Fu;
        } else {
            static_assert(numfmt::detail::is_same_v<Format, fp4_e2m1>, "decode8_deferred: uint4 or fp4_e2m1");
            constexpr bool f16 = numfmt::detail::is_same_v<To, fp16>;
            const uint32_t top = codes << (12 - 4 * k);
            r[k] = (top & 0x80008000u) | ((top >> (f16 ? 3 : 6)) & (f16 ? 0x0E000E00u : 0x01C001C0u));
        }
    }
    return r;
}

/// Eight 4-bit codes as e4m3 codes, elements 0..3 and 4..7: the operand of an fp8 tensor-core instruction.
/// e2m1: the exact values, 1.25 instructions per element, -0 kept. uint4: the code times 2^-9 (an e4m3 code below 16 is
/// that multiple), 0.6 instructions. All ALU.
template <class Format> NUMFMT_DEVICE words<2> decode8_e4m3(uint32_t codes) {
    if constexpr (numfmt::detail::is_same_v<Format, numfmt::uint4>) {
        return reg::nibbles_to_bytes(codes);
    } else {
        static_assert(numfmt::detail::is_same_v<Format, fp4_e2m1>, "numfmt::cuda::decode8_e4m3: uint4 or fp4_e2m1");
        return reg::lookup<true>(codes, codes & 0x77777777u, {0x3C383000u, 0x4C484440u});
    }
}

/// Eight e2m1 codes from four registers of fp16 pairs that hold the values times 2^-10 in strided lanes; pairs of
/// normal numbers must be exact there (11 bits are). 3.5 instructions per element, 2 of them ALU; NaN gives +6.
///
/// The three slopes of e2m1 (steps of 1/2 below 2, 1 below 4, 2 above) are three lines of which the lowest counts:
/// code = min(RNE(2 a), 2 + RNE(a), 4 + RNE(a / 2)) for a = |x| <= 6, each one fused multiply-add whose result is
/// an fp16 subnormal, that is, an integer.
NUMFMT_DEVICE uint32_t encode8_e2m1_strided(const words<4>& x) {
    words<4> c;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const uint32_t a = reg::minimum_f16x2(reg::magnitude_f16x2(x[k]), 0x1E001E00u);  // 6 * 2^-10
        const uint32_t below_2 = reg::multiply_add_f16x2(a, 0x08000800u, 0u);            // 2^-13
        const uint32_t below_4 = reg::multiply_add_f16x2(a, 0x04000400u, 0x00020002u);   // 2^-14
        const uint32_t above_4 = reg::multiply_add_f16x2(a, 0x02000200u, 0x00040004u);   // 2^-15
        c[k] = reg::minimum_f16x2(reg::minimum_f16x2(below_2, below_4), above_4);
    }
    const uint32_t magnitudes = ((c[3] * 16 + c[2]) * 16 + c[1]) * 16 + c[0];
    // The upper bytes of elements 1 3 5 7 have their sign where it belongs; those of 0 2 4 6 four bits higher.
    const uint32_t odd = reg::permute(x[1], x[3], 0x7351u), even = reg::permute(x[0], x[2], 0x7351u);
    return magnitudes | (odd & 0x80808080u) | ((even >> 4) & 0x08080808u);
}

/// Eight e2m1 codes from floats: nearest even, saturating, NaN to +6 (code 7), -0 kept. sm_100a, 103a, 120a: one
/// conversion for two; elsewhere 8.3 instructions per element, 4.3 of them ALU.
NUMFMT_DEVICE uint32_t encode8_e2m1(const float (&x)[8]) {
#if NUMFMT_CUDA_NARROW
    return reg::e2m1x8(x);
#else
    float clamped[8];
    uint32_t magnitudes = 0;
#pragma unroll
    for (int i = 7; i >= 0; --i) {
        clamped[i] = reg::minimum(x[i], 6.0f);  // NaN becomes +6 here, so that its sign is lost
        const float a = reg::minimum(reg::magnitude(clamped[i]), 6.0f);
        const float below_2 = reg::multiply_add(a, 2.0f, 8388608.0f);
        const float below_4 = reg::add(a, 8388608.0f + 2.0f);
        const float above_4 = reg::multiply_add(a, 0.5f, 8388608.0f + 4.0f);
        // Positive floats are ordered as their bits, of which three have one instruction.
        magnitudes =
            magnitudes * 16 + ::min(::min(reg::as_bits(below_2), reg::as_bits(below_4)), reg::as_bits(above_4));
    }
    magnitudes -= 0xFB000000u;  // what is left of the eight exponents of 2^23 modulo 2^32
    const auto upper = [&](int a, int b) {
        return reg::permute(reg::as_bits(clamped[a]), reg::as_bits(clamped[b]), 0x0073u);
    };
    const uint32_t odd = reg::permute(upper(1, 3), upper(5, 7), 0x5410u);
    const uint32_t even = reg::permute(upper(0, 2), upper(4, 6), 0x5410u);
    return magnitudes | (odd & 0x80808080u) | ((even >> 4) & 0x08080808u);
#endif
}

/// Eight e2m1 codes from bf16 or fp16 pairs in memory order. 6 instructions per element, 2.5 (bf16: 3) of them ALU.
template <class From> NUMFMT_DEVICE uint32_t encode8_e2m1(const words<4>& x) {
    float f[8];
    to_float<From>(x, f);
#if NUMFMT_CUDA_NARROW
    return reg::e2m1x8(f);
#else
    words<4> h;
#pragma unroll
    for (int k = 0; k < 4; ++k) h[k] = reg::to_f16x2(reg::multiply(f[k], 0x1p-10f), reg::multiply(f[k + 4], 0x1p-10f));
    return encode8_e2m1_strided(h);
#endif
}

// ---- 6-bit codes ----------------------------------------------------------------------------------------------------

/// Four 6-bit codes, one per byte, as the 24 bits of the memory layout (code i in bits 6i .. 6i + 5), and back. Bits 7
/// and 6 of the bytes are ignored; bits 31..24 of the packed word are ignored, and zero when packed.
/// 1.5 and 1.5 instructions per element.
NUMFMT_DEVICE uint32_t pack6(uint32_t bytes) {
    const uint32_t twelve = (bytes & 0x003F003Fu) | ((bytes & 0x3F003F00u) >> 2);
    return (twelve & 0x00000FFFu) | ((twelve & 0x0FFF0000u) >> 4);
}
NUMFMT_DEVICE uint32_t unpack6(uint32_t packed) {
    const uint32_t twelve = (packed & 0x00000FFFu) | ((packed << 4) & 0x0FFF0000u);
    return (twelve & 0x003F003Fu) | ((twelve << 2) & 0x3F003F00u);
}

// ---- codes of one byte ----------------------------------------------------------------------------------------------

/// Two e8m0 codes (bits 15..0) as a bf16 pair, exact: 00 is the subnormal 2^-127, FF NaN (7FFF). sm_100a, 103a, 120a:
/// one conversion; elsewhere 7 instructions.
NUMFMT_DEVICE uint32_t e8m0x2_to_bf16x2(uint32_t codes) {
#if NUMFMT_CUDA_NARROW
    return reg::ue8m0x2_to_bf16x2(codes);
#else
    const uint32_t c = reg::permute(codes, 0u, 0x4140u);  // one code in each half
    const uint32_t nan = (c + 0x00010001u) & 0x01000100u;
    const uint32_t zero = ~(c + 0x00FF00FFu) & 0x01000100u;  // code 00: no carry
    return (c << 7) | (zero >> 2) | ((nan >> 1) - (nan >> 8));
#endif
}

/// Four codes, one per byte, as fp16 or bf16 pairs in memory order; exact. Format: fp8_e4m3, fp8_e5m2, fp8_ue4m3,
/// fp8_e4m3fnuz, fp6_e2m3, fp6_e3m2 (bits above the format's width are ignored); others run decode(). NaN gives NaN.
/// Instructions per element: e4m3, e5m2 -> fp16 0.5 (sm_89 and later; fallback 2.8, e5m2 0.5); -> bf16 2; fp6 -> either
/// 2 + 0.5 half; others about 10.
template <class Format, class To> NUMFMT_DEVICE words<2> decode4(uint32_t codes) {
    using namespace numfmt::detail;
    static_assert(reg::is_half_v<To>, "numfmt::cuda::decode4: the result is bf16 or fp16");
    constexpr bool f16 = is_same_v<To, fp16>;
    // Byte i of the codes in the upper byte of a half.
    [[maybe_unused]] const auto raised = [&] {
        return words<2>{{reg::permute(codes, 0u, 0x1404u), reg::permute(codes, 0u, 0x3424u)}};
    };
    if constexpr (is_same_v<Format, fp8_ue4m3>) {
        return decode4<fp8_e4m3, To>(codes & 0x7F7F7F7Fu);
    } else if constexpr (is_one_of_v<Format, fp6_e2m3, fp6_e3m2>) {
        constexpr int m = Format::spec.mantissa_bits;
        // The magnitude sits in bits 12..8; its lowest mantissa bit goes to bit (10 or 7) - m.
        constexpr int down = 8 - (To::spec.mantissa_bits - m);
        constexpr uint32_t mask = 0x001F001Fu << (To::spec.mantissa_bits - m);
        words<2> r = raised();
#pragma unroll
        for (int i = 0; i < 2; ++i) r[i] = ((r[i] << 2) & 0x80008000u) | ((r[i] >> down) & mask);
        return multiply<To>(r, reg::power_pair<To>(To::spec.bias - Format::spec.bias));
    } else if constexpr (f16 && is_same_v<Format, fp8_e4m3fnuz>) {
        words<2> r = raised();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint32_t sign = r[i] & 0x80008000u, magnitude = (r[i] >> 1) & 0x3F803F80u;
            const uint32_t nan = sign & ~(magnitude + 0x7FFF7FFFu);  // the code 80
            r[i] = reg::multiply_f16x2(magnitude | sign, reg::power_pair<fp16>(7)) | (nan - (nan >> 6));
        }
        return r;
    } else if constexpr (is_same_v<Format, fp8_e4m3fnuz>) {
        float y[4];
        to_float<fp16>(decode4<Format, fp16>(codes), y);
        return from_float<bf16, 2>(y);
    } else if constexpr (!f16 && is_same_v<Format, fp8_e5m2fnuz>) {
        // The top exponents are no numbers in binary16; bf16 has room: the value times 2^-111.
        words<2> r = raised();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint32_t sign = r[i] & 0x80008000u, magnitude = (r[i] >> 3) & 0x0FE00FE0u;
            const uint32_t nan = sign & ~(magnitude + 0x7FFF7FFFu);
            r[i] = reg::multiply_bf16x2(magnitude | sign, reg::power_pair<bf16>(111)) | (nan - (nan >> 9));
        }
        return r;
    } else if constexpr (is_same_v<Format, fp8_e5m2fnuz>) {
        float y[4];
        to_float<bf16>(decode4<Format, bf16>(codes), y);
        return from_float<fp16, 2>(y);
    } else if constexpr (!f16 && is_same_v<Format, e8m0>) {
        return {{e8m0x2_to_bf16x2(codes), e8m0x2_to_bf16x2(codes >> 16)}};
    } else if constexpr (is_one_of_v<Format, fp8_e4m3, fp8_e5m2>) {
        constexpr bool e4m3 = is_same_v<Format, fp8_e4m3>;
        words<2> h;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
        h[0] = e4m3 ? reg::e4m3x2_to_f16x2(codes) : reg::e5m2x2_to_f16x2(codes);
        h[1] = e4m3 ? reg::e4m3x2_to_f16x2(codes >> 16) : reg::e5m2x2_to_f16x2(codes >> 16);
#else
        h = raised();  // e5m2 is the upper byte of binary16
        if constexpr (e4m3) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const uint32_t sign = h[i] & 0x80008000u, magnitude = (h[i] >> 1) & 0x3F803F80u;
                const uint32_t nan = (magnitude + 0x00800080u) & 0x40004000u;  // only 7F carries into bit 14
                h[i] = reg::multiply_f16x2(magnitude | sign, reg::power_pair<fp16>(8)) | ((nan << 1) - (nan >> 5));
            }
        }
#endif
        if constexpr (f16) {
            return h;
        } else {
            float y[4];
            to_float<fp16>(h, y);
            return from_float<bf16, 2>(y);
        }
    } else {
        float y[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) y[i] = decode<Format>(static_cast<uint8_t>(codes >> (8 * i)));
        return from_float<To, 2>(y);
    }
}

/// decode4 with the scale fused: every value times `scale` (a To pair), one rounding in To. + 0.5 instructions.
template <class Format, class To> NUMFMT_DEVICE words<2> decode4(uint32_t codes, uint32_t scale) {
    return multiply<To>(decode4<Format, To>(codes), scale);
}

/// Four codes, one per byte, as floats; exact. e4m3, e5m2: 1.5 instructions per element; fp6 3.5; others run decode().
template <class Format> NUMFMT_DEVICE void decode4(uint32_t codes, float (&y)[4]) {
    using namespace numfmt::detail;
    if constexpr (is_one_of_v<Format, fp8_e4m3, fp8_e5m2, fp8_ue4m3, fp8_e4m3fnuz, fp6_e2m3, fp6_e3m2>) {
        to_float<fp16>(decode4<Format, fp16>(codes), y);
    } else if constexpr (is_one_of_v<Format, fp8_e5m2fnuz, e8m0>) {
        to_float<bf16>(decode4<Format, bf16>(codes), y);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) y[i] = decode<Format>(static_cast<uint8_t>(codes >> (8 * i)));
    }
}

/// Four int8 codes (two's complement, one per byte) as floats; exact. 2 instructions per element.
NUMFMT_DEVICE void int8_decode4(uint32_t codes, float (&y)[4]) {
    const uint32_t biased = codes ^ 0x80808080u;
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i)
        y[i] = reg::add(reg::as_float(reg::permute(biased, 0x4B000000u, 0x7440u + i)), -8388736.0f);  // 2^23 + 128
}

/// Four floats as codes, one per byte: nearest even, saturating, NaN canonical, as encode<Format>(x). Instructions per
/// element: e4m3, e5m2, ue4m3 0.75 (sm_89 and later); fp6 4.3; e4m3fnuz 5; e5m2fnuz 11; others, and older
/// architectures, run encode(), about 20.
template <class Format> NUMFMT_DEVICE uint32_t encode4(const float (&x)[4]) {
    using namespace numfmt::detail;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    if constexpr (is_same_v<Format, fp8_e4m3>) {
        return reg::e4m3x2(x[0], x[1]) | reg::e4m3x2(x[2], x[3]) << 16;
    } else if constexpr (is_same_v<Format, fp8_e5m2>) {
        return reg::e5m2x2(x[0], x[1]) | reg::e5m2x2(x[2], x[3]) << 16;
    } else if constexpr (is_same_v<Format, fp8_ue4m3>) {
        return encode4<fp8_e4m3>(x) & 0x7F7F7F7Fu;
    } else if constexpr (is_same_v<Format, fp8_e4m3fnuz>) {
        // e4m3 of twice the value, whose grid is the same; e4m3 ends one code earlier, at 7E.
        const float twice[4] = {reg::multiply(x[0], 2.0f), reg::multiply(x[1], 2.0f), reg::multiply(x[2], 2.0f),
                                reg::multiply(x[3], 2.0f)};
        uint32_t c = encode4<fp8_e4m3>(twice);
        c &= ((c & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | 0x7F7F7F7Fu;  // no -0
        // 7E becomes 7F above the tie at 464, and NaN, which is 7F here, becomes 80.
#pragma unroll
        for (int i = 0; i < 4; ++i) c += reg::above_or_nan(reg::magnitude(twice[i]), 464.0f) ? 1u << (8 * i) : 0u;
        return c;
    } else if constexpr (is_same_v<Format, fp8_e5m2fnuz>) {
        // e5m2 of twice the value, which ends at 7B; 7C .. 7F follow at its ties (>= where the upper code is even), and
        // NaN, which is 7F here, becomes 80.
        const float twice[4] = {reg::multiply(x[0], 2.0f), reg::multiply(x[1], 2.0f), reg::multiply(x[2], 2.0f),
                                reg::multiply(x[3], 2.0f)};
        uint32_t c = encode4<fp8_e5m2>(twice);
        c &= ((c & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | 0x7F7F7F7Fu;  // no -0
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float a = reg::magnitude(twice[i]);
            c += reg::at_least_or_nan(a, 61440.0f) ? 1u << (8 * i) : 0u;
            c += reg::above(a, 73728.0f) ? 1u << (8 * i) : 0u;
            c += reg::at_least(a, 90112.0f) ? 1u << (8 * i) : 0u;
            c += reg::above(a, 106496.0f) ? 1u << (8 * i) : 0u;
        }
        return c;
    } else
#if NUMFMT_CUDA_NARROW
        if constexpr (is_same_v<Format, fp6_e2m3>) {
        return reg::e2m3x2(x[0], x[1]) | reg::e2m3x2(x[2], x[3]) << 16;
    } else if constexpr (is_same_v<Format, fp6_e3m2>) {
        return reg::e3m2x2(x[0], x[1]) | reg::e3m2x2(x[2], x[3]) << 16;
    } else
#endif
        if constexpr (is_one_of_v<Format, fp6_e2m3, fp6_e3m2>) {
        // The grid of e2m3 is that of e4m3 times 2^6, subnormals included, and e3m2's that of e5m2 times 2^12: scaled,
        // the eight-bit conversion gives the six-bit code, its sign in bit 7. Clamping first also takes NaN to +max.
        constexpr bool e2m3 = is_same_v<Format, fp6_e2m3>;
        constexpr float shrink = exact_pow2(Format::spec.bias - (e2m3 ? 7 : 15));
        constexpr float top = decode<Format>(static_cast<uint8_t>(Format::spec.max_finite_code())) * shrink;
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = reg::maximum(reg::minimum(reg::multiply(x[i], shrink), top), -top);
        uint32_t c;
        if constexpr (e2m3)
            c = encode4<fp8_e4m3>(v);
        else
            c = encode4<fp8_e5m2>(v);
        return (c & 0x1F1F1F1Fu) | ((c >> 2) & 0x20202020u);
    } else
#endif
    {
        uint32_t c = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) c |= uint32_t{encode<Format>(x[i])} << (8 * i);
        return c;
    }
}

/// Four numbers, in two registers of fp16 or bf16 pairs, as codes, one per byte. e4m3 and e5m2 from fp16: 0.75
/// instructions per element (sm_89 and later); otherwise as encode4 of the floats.
template <class Format, class From> NUMFMT_DEVICE uint32_t encode4(const words<2>& x) {
    using namespace numfmt::detail;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    if constexpr (is_same_v<From, fp16> && is_same_v<Format, fp8_e4m3>) {
        return reg::e4m3x2(x[0]) | reg::e4m3x2(x[1]) << 16;
    } else if constexpr (is_same_v<From, fp16> && is_same_v<Format, fp8_e5m2>) {
        return reg::e5m2x2(x[0]) | reg::e5m2x2(x[1]) << 16;
    } else
#endif
        if constexpr (is_same_v<From, bf16> && is_same_v<Format, e8m0>) {
        // The exponent field; of the fields FF, Inf saturates to FE and NaN stays.
        words<2> r;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint32_t other = ((x[i] & 0x7FFF7FFFu) ^ 0x7F807F80u) + 0x7FFF7FFFu;  // bit 15 clear: Inf
            r[i] = ((x[i] >> 7) & 0x00FF00FFu) - ((~other & 0x80008000u) >> 15);
        }
        return reg::permute(r[0], r[1], 0x6420u);
    } else {
        float f[4];
        to_float<From>(x, f);
        return encode4<Format>(f);
    }
}

// ---- e8m0 -----------------------------------------------------------------------------------------------------------

/// The float of an e8m0 code: 2^(code - 127), 00 the subnormal 2^-127, FF NaN. 4 instructions.
NUMFMT_DEVICE float e8m0_to_float(uint32_t code) { return decode<e8m0>(static_cast<uint8_t>(code)); }

/// The float 2^(127 - code) that a block is multiplied by to undo its scale, for code != FF; exact. 3 instructions.
NUMFMT_DEVICE float e8m0_inverse(uint32_t code) {
    return reg::as_float(code >= 254u ? 0x00400000u : (254u - code) << 23);
}

}  // namespace numfmt::cuda
