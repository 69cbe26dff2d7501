// SPDX-License-Identifier: MIT
// NVFP4: E2M1 elements, a UE4M3 scale per 16, one fp32 scale per tensor.
#pragma once

#include "block/quantize.hpp"
#include "fp4.hpp"
#include "fp8.hpp"

namespace numfmt {

/// NVIDIA's NVFP4: 4.5 bits per weight; w = q * block scale * tensor scale. The view's `tensor_scale` is the multiplier
/// (amax / 2688 for a tensor quantized here); see nvfp4_scale_convention for checkpoints that store its inverse.
/// The default order of operations is Transformer Engine's; quantize_options::nvfp4_order has torchao's.
struct nvfp4 : block_scheme<fp4_e2m1, fp8_ue4m3, 1, 16> {
    static constexpr const char* name = "nvfp4";
    static constexpr const char* source = "NVIDIA, Pretraining Large Language Models with NVFP4 (arXiv:2509.25149)";
    static constexpr bool has_tensor_scale = true;
};

/// What a checkpoint's global scale means.
enum class nvfp4_scale_convention : uint8_t {
    multiply,  ///< w = q * s * g, g = amax / 2688: ModelOpt's weight_scale_2, and numfmt's tensor_scale
    divide,    ///< w = q * s / g, g = 2688 / amax: compressed-tensors' weight_global_scale
};

/// A stored global scale as the multiplier of quantized_view::tensor_scale, and back: the same function both ways,
/// because the two conventions are reciprocal. One fp32 division.
NUMFMT_FN float convert_nvfp4_scale(float g, nvfp4_scale_convention convention) noexcept {
    return convention == nvfp4_scale_convention::multiply ? g : 1.0f / g;
}

}  // namespace numfmt
