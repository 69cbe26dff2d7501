// SPDX-License-Identifier: MIT
// Asymmetric int4 with a scale and a zero point per group: the AWQ scheme.
#pragma once

#include "block/quantize.hpp"
#include "fp16.hpp"

namespace numfmt {

namespace detail {
template <class Scale> constexpr fixed_name int4_name(const char* prefix, int64_t group) {
    fixed_name n;
    n.add(prefix).add(group);
    if (!is_same_v<Scale, fp16>) n.add("_").add(scale_traits<Scale>::name);
    return n;
}
}  // namespace detail

/// Codes 0..15 and a 4-bit zero point per `Group` columns: w = (q - zero_point) * scale. The codes are computed from
/// the stored scale: scale = (max - min) / 15, zero_point = -round(min / scale), q = round(w / scale) + zero_point, all
/// rounded to even and clamped to 0..15. quantize_options::int4_range says whether the range includes 0.
template <int64_t Group, class Scale = fp16> struct int4 : block_scheme<uint4, Scale, 1, Group> {
    static_assert(Group > 0, "numfmt::int4: the group size must be positive");
    static constexpr detail::fixed_name full_name = detail::int4_name<Scale>("int4_g", Group);
    static constexpr const char* name = full_name.text;
    static constexpr const char* source = "AWQ (arXiv:2306.00978); pseudo_quantize_tensor of llm-awq";
    static constexpr bool has_zero_point = true;
};

/// Codes 0..15 that stand for -8..7, no zero points: w = (q - 8) * scale. quantize_options::int4_symmetric_range names
/// the three ways to choose the scale. As for int4, the codes are computed from the stored scale: q = round(w / scale)
/// + 8.
template <int64_t Group, class Scale = fp16> struct int4_symmetric : block_scheme<uint4, Scale, 1, Group> {
    static_assert(Group > 0, "numfmt::int4_symmetric: the group size must be positive");
    static constexpr detail::fixed_name full_name = detail::int4_name<Scale>("int4_symmetric_g", Group);
    static constexpr const char* name = full_name.text;
    static constexpr const char* source = "GPTQ (arXiv:2210.17323); Marlin";
    static constexpr int fixed_zero_point = 8;
};

}  // namespace numfmt
