// SPDX-License-Identifier: MIT
// Other libraries' conversions by name: the options under which numfmt gives their bits. Each is a set of run-time
// options, with the rounding (a template argument) beside it where it is not nearest even:
//
//     auto code = encode<fp8_e4m3>(x, compat::ml_dtypes);
//     quantize<compat::microxcaling.rounding>(x, view, compat::microxcaling.options);
#pragma once

#include "block/scale.hpp"

namespace numfmt::compat {

/// Options of a quantizer and the rounding it uses.
struct preset {
    numfmt::rounding rounding = numfmt::rounding::nearest_even;
    quantize_options options{};
};

// ---- element-wise casts: encode_options ----------------------------------------------------------------------------

/// CUDA's __nv_cvt_float_to_fp8 with __NV_SATFINITE, and the PTX conversions: numfmt's default.
inline constexpr encode_options cuda_satfinite{.overflow = overflow::saturate};
/// CUDA's __NV_NOSAT: overflow and Inf become NaN (E4M3) or Inf (E5M2), every NaN 7F.
inline constexpr encode_options cuda_nosat{.overflow = overflow::to_nonfinite};
/// ml_dtypes' astype (numpy, JAX): nothing saturates, NaN keeps its sign (E5M2: 7E and FE).
inline constexpr encode_options ml_dtypes{.overflow = overflow::to_nonfinite, .nan = nan_mode::keep_sign};
/// PyTorch's fp8 casts before 2026 (up to 2.11): nothing saturates, NaN is 7F or FF.
inline constexpr encode_options torch_before_2026{.overflow = overflow::to_nonfinite,
                                                  .nan = nan_mode::canonical_signed};
/// PyTorch's E4M3 casts since pytorch #177870 and #178817 (2026): everything saturates, Inf included (as run: 2.15.0).
inline constexpr encode_options torch_since_2026_e4m3{.overflow = overflow::saturate,
                                                      .nan = nan_mode::canonical_signed};
/// PyTorch's E5M2 casts did not change in 2026.
inline constexpr encode_options torch_since_2026_e5m2 = torch_before_2026;

// ---- quantizers: preset
// ----------------------------------------------------------------------------------------------

/// torchao's MX casts (prototype/mx_formats) with ScaleCalculationMode.FLOOR: numfmt's default.
inline constexpr preset torchao_mx{};
/// torchao's nvfp4: the block scale is at least 2^-6 and the division has another order.
inline constexpr preset torchao_nvfp4{.options = {.nvfp4_order = nvfp4_order::torchao}};
/// Transformer Engine's NVFP4 order (numfmt's default), and its MXFP8 scale, which never saturates amax.
inline constexpr preset transformer_engine{.options = {.scale_rule = scale_rule::round_up}};
/// DeepGEMM's per_token_cast_to_fp8 and per_block_cast_to_fp8: amax at least 1e-4, multiplication by 1 / s, and with
/// E8M0 scales ("use_ue8m0") rounding up.
inline constexpr preset deepgemm{.options = {.scale_rule = scale_rule::round_up, .amax_floor = 1e-4f}};
/// DeepGEMM's FP4 test cast: ties toward zero, no -0.
inline constexpr preset deepgemm_fp4{
    .rounding = rounding::nearest_to_zero,
    .options = {.scale_rule = scale_rule::round_up, .amax_floor = 1e-4f, .element = {.drop_negative_zero = true}}};
/// DeepSeek-V3's act_quant kernel: as DeepGEMM, but x / s.
inline constexpr preset deepseek_v3{
    .options = {.scale_rule = scale_rule::round_up, .division = scale_division::divide, .amax_floor = 1e-4f}};
/// microxcaling's default: OCP floor scale, round="nearest" meaning half away from zero.
inline constexpr preset microxcaling{.rounding = rounding::nearest_away};
/// ggml's quantize_row_mxfp4_ref: ties toward zero, never -0. (Its block layout is another matter.)
inline constexpr preset ggml_mxfp4{.rounding = rounding::nearest_to_zero,
                                   .options = {.element = {.drop_negative_zero = true}}};
/// llm-awq's pseudo_quantize_tensor: minimum and maximum as they are, a range of at least 1e-5; its scale is fp32
/// there, so use it with int4<Group, float>.
inline constexpr preset llm_awq{.options = {.int4_range = int4_range::minmax, .amax_floor = 1e-5f}};

}  // namespace numfmt::compat
