// SPDX-License-Identifier: MIT
// Asymmetric int4 with a scale and a zero point per group: the AWQ scheme.
#pragma once

#include "block/quantize.hpp"
#include "fp16.hpp"

namespace numfmt {

/// Codes 0..15 and a 4-bit zero point per `Group` columns: w = (q - zero_point) * scale. The codes are computed from the
/// stored scale: scale = (max - min) / 15, zero_point = -round(min / scale), q = round(w / scale) + zero_point, all
/// rounded to even and clamped to 0..15. quantize_options::int4_range says whether the range includes 0.
template <int64_t Group, class Scale = fp16> struct int4 {
    static_assert(Group > 0, "numfmt::int4: the group size must be positive");
    static constexpr detail::fixed_name full_name = [] {
        detail::fixed_name n;
        n.add("int4_g").add(Group);
        if (!detail::is_same_v<Scale, fp16>) n.add("_").add(detail::scale_traits<Scale>::name);
        return n;
    }();
    static constexpr const char* name = full_name.text;
    static constexpr const char* source = "AWQ (arXiv:2306.00978); pseudo_quantize_tensor of llm-awq";
    using element = uint4;
    using scale = Scale;
    static constexpr block_shape block{1, Group};
    static constexpr bool has_zero_point = true;
    static constexpr bool has_tensor_scale = false;
};

}  // namespace numfmt
