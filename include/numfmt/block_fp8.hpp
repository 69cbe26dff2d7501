// SPDX-License-Identifier: MIT
// FP8 E4M3 with one scale per tile, row or tensor.
#pragma once

#include "block/quantize.hpp"
#include "e8m0.hpp"
#include "fp8.hpp"

namespace numfmt {

/// E4M3 elements with one scale per Rows x Cols tile, stored as float, bf16 or e8m0: w = q * scale. With float scales
/// scale = amax / 448 and q = encode(x * (1 / scale)) in fp32; with e8m0 the power of two follows quantize_options'
/// scale_rule (round_up is ceil(log2(amax / 448)), the "ue8m0" of DeepSeek-V3.1).
template <int64_t Rows, int64_t Cols, class Scale = float>
struct block_fp8 : block_scheme<fp8_e4m3, Scale, Rows, Cols> {
    static constexpr detail::fixed_name full_name = [] {
        detail::fixed_name n;
        n.add("block_fp8_").add(Rows).add("x").add(Cols);
        if (!detail::is_same_v<Scale, float>) n.add("_").add(detail::scale_traits<Scale>::name);
        return n;
    }();
    static constexpr const char* name = full_name.text;
    static constexpr const char* source = "DeepSeek-V3 technical report (arXiv:2412.19437), section 3.3";
};

/// DeepSeek's weights: 8.00195 bits.
using block_fp8_128x128 = block_fp8<128, 128>;
/// DeepSeek's activations: 8.25 bits.
using block_fp8_1x128 = block_fp8<1, 128>;

/// E4M3 with one float scale for the whole tensor.
struct fp8_per_tensor : block_scheme<fp8_e4m3, float, whole, whole> {
    static constexpr const char* name = "fp8_per_tensor";
    static constexpr const char* source = "FP8 Formats for Deep Learning (arXiv:2209.05433), section 3";
};

/// E4M3 with one float scale per row (output channel of a weight, token of an activation).
struct fp8_per_channel : block_scheme<fp8_e4m3, float, 1, whole> {
    static constexpr const char* name = "fp8_per_channel";
    static constexpr const char* source = "FP8 Formats for Deep Learning (arXiv:2209.05433), section 3";
};

}  // namespace numfmt
