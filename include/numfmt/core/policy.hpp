// SPDX-License-Identifier: MIT
// The axes on which number-format libraries disagree, one enum each, every one with a documented default.
#pragma once

#include "float_spec.hpp"

namespace numfmt {

/// How a value between two neighbours of the format is rounded. The only axis that is a template parameter.
enum class rounding : uint8_t {
    nearest_even,     ///< nearest, ties to the even code; the default
    nearest_away,     ///< nearest, ties away from zero
    nearest_to_zero,  ///< nearest, ties toward zero (ggml, DeepGEMM's FP4)
    toward_zero,      ///< truncate
    stochastic,       ///< up with probability equal to the discarded fraction (Philox4x32-10)
    down,             ///< E8M0 only: largest power of two <= |x|
    up,               ///< E8M0 only: smallest power of two >= |x|
    nearest_up,       ///< E8M0 only: nearest in value, the tie 1.5 * 2^k goes up
};

/// What becomes of a value that is too large, tested after rounding (OCP OFP8 section 5.2).
enum class overflow : uint8_t {
    by_format,     ///< saturate for fp8, fp6, fp4 and e8m0; to_nonfinite for bf16 and fp16; the default
    saturate,      ///< +-max, for finite values and for Inf
    to_nonfinite,  ///< Inf where the format has one, else NaN, else (fp6, fp4) +-max; a directed rounding (toward_zero,
                   ///< down) of a finite value never gives Inf or NaN
    saturate_finite,  ///< finite values saturate, Inf goes as in to_nonfinite (the text of arXiv:2209.05433)
};

/// What becomes of NaN.
enum class nan_mode : uint8_t {
    canonical,  ///< one code: 7F for fp8, 7FFF for bf16 and fp16, +max for fp6 and fp4, FF for e8m0; the default
    keep_sign,  ///< the sign kept on a quiet NaN (7FC0 and FFC0 for bf16, 7E and FE for E5M2); +-max for fp6 and fp4
    canonical_signed,  ///< the sign kept on the canonical code (7F and FF for E5M2, as PyTorch)
};

/// Options of an element-wise encode. Run-time data: no code is duplicated for them.
struct encode_options {
    numfmt::overflow overflow = numfmt::overflow::by_format;
    nan_mode nan = nan_mode::canonical;
    bool drop_negative_zero = false;  ///< true: a result of -0 becomes +0 (ggml, DeepGEMM's FP4)
};

/// How the E8M0 scale of a block follows from its largest magnitude `amax` (element format: largest power of two
/// 2^emax, largest value max, M mantissa bits). In every case the exponent is taken from the bits of amax after an
/// integer was added to them, never from a floating-point logarithm.
enum class scale_rule : uint8_t {
    floor,     ///< floor(log2 amax) - emax: OCP MX v1.0 section 6.3; the default. May saturate amax
    ceil,      ///< ceil(log2 amax) - emax
    round_up,  ///< ceil(log2(amax / max)): NVIDIA's "RCEIL"; the smallest scale that does not saturate amax
    even,      ///< exponent of (bits(amax) + half an element ulp) - emax: rounds half up at the element's mantissa
};

/// What a block that holds NaN or Inf becomes.
enum class nonfinite : uint8_t {
    propagate,  ///< NaN scale and all-zero codes for that block (row, tensor); the others are untouched; the default
    saturate,   ///< amax over the finite values; Inf becomes +-max, NaN the canonical element code
};

/// Range over which an asymmetric int4 group spreads its 16 codes.
enum class int4_range : uint8_t {
    include_zero,  ///< min and max are extended to 0, so that 0 is exact and |error| <= scale / 2; the default
    minmax,        ///< min and max as they are (llm-awq): a one-signed group clips
};

/// How the scale of a symmetric int4 group, whose codes stand for -8 .. 7, follows from its extremes.
enum class int4_symmetric_range : uint8_t {
    within_7,     ///< amax / 7: codes stay within +-7, zero is the middle; the default
    full_range,   ///< amax / 7.5: all 16 codes are used, the positive end may clip by half a step (torchao SYMMETRIC)
    no_clipping,  ///< max(-min / 8, max / 7): all 16 codes, nothing clips (torchao SYMMETRIC_NO_CLIPPING_ERR)
};

/// How an element is divided by a float scale.
enum class scale_division : uint8_t {
    reciprocal,  ///< encode(x * (1 / s)) in fp32: DeepGEMM, Transformer Engine; the default
    divide,      ///< encode(x / s) in fp32: DeepSeek-V3's reference kernels
};

/// Order of operations of NVFP4's two-level scaling; S = 2688 / amax of the tensor.
enum class nvfp4_order : uint8_t {
    transformer_engine,  ///< s = E4M3(block amax * (S * (1/6))), q = E2M1(x * (1 / (s * (1/S)))); the default
    torchao,  ///< s = E4M3(clamp((block amax / 6) / g, 2^-6, 448)), q = E2M1(x * ((1 / g) / s)), g = amax / 2688
};

namespace detail {

NUMFMT_FN bool is_nearest(rounding r) {
    return r == rounding::nearest_even || r == rounding::nearest_away || r == rounding::nearest_to_zero ||
           r == rounding::nearest_up;
}
NUMFMT_FN bool is_scale_rounding(rounding r) {
    return r == rounding::down || r == rounding::up || r == rounding::nearest_up;
}
/// e8m0 has no mantissa, so that "even" is undefined there: its own three roundings, and truncation (= down).
NUMFMT_FN bool rounding_allowed(const float_spec& spec, rounding r) {
    return spec.has_zero ? !is_scale_rounding(r) : is_scale_rounding(r) || r == rounding::toward_zero;
}
/// nearest_even everywhere; `down` for E8M0, as in the MX specification's scale.
NUMFMT_FN rounding default_rounding(const float_spec& spec) {
    return spec.has_zero ? rounding::nearest_even : rounding::down;
}

}  // namespace detail
}  // namespace numfmt
