// SPDX-License-Identifier: MIT
// error_sweep: what is compared, every scheme as one row of the tables.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <numfmt/accuracy/weights.hpp>
#include <numfmt/numfmt.hpp>

#include "../support/table.hpp"
#include "settings.hpp"

namespace sweep {

using measure_function = numfmt::status (*)(matrix_view<const float> band, std::int64_t first_row, const tensor_range&,
                                            quantize_options, matrix_view<float> decoded, error_metrics&);

/// One line of the tables: a scheme, under one scale rule where it has power-of-two scales.
struct row {
    std::string scheme;
    std::optional<scale_rule> rule;
    double bits = 0;                                // nominal, per weight
    double (*stored_bits)(matrix_shape) = nullptr;  // of one matrix, per weight, padding included
    measure_function measure = nullptr;
    bool needs_range = false, has_zero_point = false, is_symmetric_int4 = false;
    std::size_t group = 0;  // in the plot's legend

    std::string rule_name() const { return rule ? name_of(scale_rules, *rule) : "-"; }
};

inline constexpr std::string_view plot_groups[] = {"no scale", "float scales", "power-of-two scales",
                                                   "float scales, zero points"};

/// The instantiation of a template over all roundings that `r` names.
template <class Pick> measure_function with_rounding(rounding r, Pick pick) {
    switch (r) {
        case rounding::nearest_away:
            return pick.template operator()<rounding::nearest_away>();
        case rounding::nearest_to_zero:
            return pick.template operator()<rounding::nearest_to_zero>();
        case rounding::toward_zero:
            return pick.template operator()<rounding::toward_zero>();
        case rounding::stochastic:
            return pick.template operator()<rounding::stochastic>();
        default:
            return pick.template operator()<rounding::nearest_even>();
    }
}

using unscaled_formats = numfmt::type_list<numfmt::bf16, numfmt::fp16, numfmt::fp8_e4m3, numfmt::fp8_e5m2>;

inline std::vector<row> all_rows(const settings& s) {
    std::vector<row> rows;
    numfmt::for_each(unscaled_formats{}, [&]<class F>() {
        row r;
        r.scheme = F::name;
        r.bits = F::spec.bits();
        r.stored_bits = [](matrix_shape) { return static_cast<double>(F::spec.bits()); };
        r.measure = with_rounding(
            s.round, []<rounding R>() -> measure_function { return numfmt::accuracy::measure_band_unscaled<F, R>; });
        rows.push_back(r);
    });
    numfmt::for_each(numfmt::all_schemes{}, [&]<class S>() {
        using traits = numfmt::scheme_traits<S>;
        row r;
        r.scheme = S::name;
        r.bits = traits::bits_per_weight();
        r.stored_bits = [](matrix_shape shape) { return traits::bits_per_weight(shape); };
        r.measure = with_rounding(
            s.round, []<rounding R>() -> measure_function { return numfmt::accuracy::measure_band<S, R>; });
        r.needs_range = numfmt::accuracy::needs_tensor_range<S>;
        r.has_zero_point = S::has_zero_point;
        r.is_symmetric_int4 = requires { S::fixed_zero_point; };
        r.group = S::has_zero_point ? 3 : traits::power_of_two_scale ? 2 : 1;
        if constexpr (traits::power_of_two_scale) {
            for (const scale_rule rule : s.rules) {
                r.rule = rule;
                rows.push_back(r);
            }
        } else {
            rows.push_back(r);
        }
    });
    return rows;
}

/// The rows that the command line asks for, in the library's order.
inline std::vector<row> chosen_rows(const settings& s) {
    std::vector<row> rows = all_rows(s);
    if (!s.schemes.empty()) {
        std::string known;
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (i == 0 || rows[i].scheme != rows[i - 1].scheme) known += (i > 0 ? ", " : "") + rows[i].scheme;
        for (const std::string& name : s.schemes)
            if (std::none_of(rows.begin(), rows.end(), [&](const row& r) { return r.scheme == name; }))
                refuse("--scheme: '{}' is unknown; known are: {}", example::printable(name), known);
        std::erase_if(rows, [&](const row& r) {
            return std::find(s.schemes.begin(), s.schemes.end(), r.scheme) == s.schemes.end();
        });
    }
    if (s.rule_given && std::none_of(rows.begin(), rows.end(), [](const row& r) { return r.rule.has_value(); }))
        refuse("--scale-rule: none of the chosen schemes has power-of-two scales");
    if (s.int4_given && std::none_of(rows.begin(), rows.end(), [](const row& r) { return r.has_zero_point; }))
        refuse("--int4-range: none of the chosen schemes has zero points");
    if (s.symmetric_given && std::none_of(rows.begin(), rows.end(), [](const row& r) { return r.is_symmetric_int4; }))
        refuse("--int4-symmetric-range: none of the chosen schemes is symmetric int4");
    return rows;
}

}  // namespace sweep
