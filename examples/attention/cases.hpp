// SPDX-License-Identifier: MIT
// attention_error: caches and kernels by name, and which of them a run compares.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <numfmt/accuracy/attention_error.hpp>

namespace attention {

namespace acc = numfmt::accuracy;
using acc::attention_accumulator;
using acc::kv_format;
using acc::probability_format;
using acc::scale_granularity;

/// The names of values first .. last of an enum, as the library has them.
template <class E> std::vector<std::string> names_of(E first, E last) {
    std::vector<std::string> names;
    for (int i = static_cast<int>(first); i <= static_cast<int>(last); ++i)
        names.emplace_back(acc::name_of(static_cast<E>(i)));
    return names;
}
inline std::vector<std::string> cache_names() { return names_of(kv_format::fp32, kv_format::int4_g32); }
inline std::vector<std::string> granularity_names() {
    return names_of(scale_granularity::tensor, scale_granularity::token);
}
inline std::vector<std::string> probability_names() {
    return names_of(probability_format::fp32, probability_format::fp8_e4m3);
}
inline std::vector<std::string> accumulator_names() {
    return names_of(attention_accumulator::exact, attention_accumulator::hopper_fp8_promoted);
}

/// Times the calibrated scale; 0 stands for a scale of 1.
inline const std::vector<std::pair<std::string, double>>& scale_choices() {
    static const std::vector<std::pair<std::string, double>> choices = {
        {"calibrated", 1}, {"small", 0.25}, {"large", 4}, {"one", 0}};
    return choices;
}

template <class E> E value_of(const std::vector<std::string>& names, const std::string& name) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == name) return static_cast<E>(i);
    throw std::logic_error("a name without a value");
}

struct named_case {
    acc::attention_case what;
    std::string scale;    ///< its name; empty where the cache has no float scale
    bool causes = false;  ///< also without rounding, without clipping, without accumulation errors

    std::string cache() const { return acc::name_of(what.format); }
    std::string per() const { return scale.empty() ? "" : acc::name_of(what.granularity); }
    /// Without the accumulator of Q K where it is the one that goes with that of P V: a promoted chain's is plain.
    std::string kernel() const {
        const std::string qk = acc::name_of(what.policy.scores), pv = acc::name_of(what.policy.values);
        const bool promoted = what.policy.values == attention_accumulator::hopper_fp8_promoted &&
                              what.policy.scores == attention_accumulator::hopper_fp8;
        return qk == pv || promoted ? pv : fmt::format("{}, QK {}", pv, qk);
    }
    /// A label for a curve: what sets it apart from a calibrated cache with one scale per head.
    std::string label() const {
        std::string text = cache();
        if (!scale.empty() && scale != "calibrated") text += fmt::format(", scale {}", scale);
        if (!scale.empty() && what.granularity != scale_granularity::head) text += ", per " + per();
        if (what.policy.values != attention_accumulator::fp32 || what.policy.scores != attention_accumulator::fp32)
            text += ", " + kernel();
        if (what.splits > 1) text += fmt::format(", {} splits", what.splits);
        return text;
    }
};

/// A kernel that reads `format`: its query and probabilities are as narrow as its accumulator's operands have to be,
/// and bf16 for the others.
inline acc::attention_case kernel_case(kv_format format, attention_accumulator scores, attention_accumulator values) {
    acc::attention_case c;
    c.format = format;
    c.policy.scores = scores;
    c.policy.values = values;
    const bool fp32 = scores == attention_accumulator::exact && values == attention_accumulator::exact;
    c.policy.query = takes_fp8_only(scores) ? kv_format::fp8_e4m3 : fp32 ? kv_format::fp32 : kv_format::bf16;
    c.policy.probabilities = takes_fp8_only(values) ? probability_format::fp8_e4m3
                             : fp32                 ? probability_format::fp32
                                                    : probability_format::bf16;
    return c;
}

/// What a run without options compares.
inline std::vector<named_case> default_cases() {
    using A = attention_accumulator;
    using K = kv_format;
    std::vector<named_case> cases;
    const auto add = [&](K format, A scores, A values, const char* scale = "", double factor = 1,
                         scale_granularity per = scale_granularity::head, int splits = 1, bool causes = false) {
        acc::attention_case c = kernel_case(format, scores, values);
        c.scale_factor = factor;
        c.granularity = per;
        c.splits = splits;
        cases.push_back({c, scale, causes});
    };
    add(K::bf16, A::hopper_16bit, A::hopper_16bit);
    add(K::fp8_e4m3, A::hopper_16bit, A::hopper_16bit, "calibrated");
    add(K::fp8_e4m3, A::hopper_fp8, A::hopper_fp8, "calibrated", 1, scale_granularity::head, 1, true);
    add(K::fp8_e4m3, A::hopper_fp8, A::hopper_fp8_promoted, "calibrated");
    add(K::fp8_e4m3, A::hopper_fp8, A::hopper_fp8, "calibrated", 1, scale_granularity::head, 32);
    add(K::fp8_e4m3, A::fp32, A::fp32, "calibrated");
    add(K::fp8_e4m3, A::fp32, A::fp32, "small", 0.25, scale_granularity::head, 1, true);
    add(K::fp8_e4m3, A::fp32, A::fp32, "large", 4);
    add(K::fp8_e4m3, A::fp32, A::fp32, "one", 0);
    add(K::fp8_e4m3, A::fp32, A::fp32, "calibrated", 1, scale_granularity::token);
    add(K::fp8_e5m2, A::fp32, A::fp32, "calibrated");
    add(K::mxfp8_e4m3, A::fp32, A::fp32);
    add(K::mxfp4, A::fp32, A::fp32);
    add(K::int4_g32, A::fp32, A::fp32);
    add(K::fp8_e4m3, A::fp32, A::bf16, "calibrated");
    add(K::fp8_e4m3, A::fp32, A::fp16, "calibrated");
    return cases;
}

}  // namespace attention
