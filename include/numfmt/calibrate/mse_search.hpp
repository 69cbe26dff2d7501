// SPDX-License-Identifier: MIT
// Quantization with scales searched for the least squared error, each column weighted by its importance (for instance
// the mean square of the activations that it meets).
#pragma once

#include "../block/quantize.hpp"

namespace numfmt::calibrate {

namespace detail {

using numfmt::detail::block_scale;
using numfmt::detail::chunk;

/// A scale near the rule's: for a power of two its exponent moved by -1, 0 or 1 (`candidate` 0 .. 2, the rule's own
/// first), else the rule's times 1 - candidate / 20.
template <class S> block_scale<S> nearby_scale(const block_scale<S>& rule, int candidate) noexcept {
    using traits = scheme_traits<S>;
    if (candidate == 0 || rule.poisoned) return rule;
    if constexpr (traits::power_of_two_scale) {
        const int code = static_cast<int>(rule.stored) + (candidate == 1 ? -1 : 1);
        const int clamped = numfmt::detail::min(numfmt::detail::max(code, 0), 254);
        return numfmt::detail::scale_from_storage<S>(static_cast<typename traits::scale_storage>(clamped), 0);
    } else {
        const float s = numfmt::detail::load_scale<S>(rule.stored) * (1.0f - 0.05f * static_cast<float>(candidate));
        auto b = numfmt::detail::scale_from_storage<S>(numfmt::detail::store_scale<S>(s), rule.zero_point);
        b.inverse = 1.0f / b.value;
        return b;
    }
}

}  // namespace detail

/// Quantizes `x` into `out` as numfmt::quantize does, but tries scales near the one that the rule gives (a power of
/// two: one exponent down and up; else ten steps of 5 % down, as the clip search of llm-awq) and keeps, block by block,
/// the one with the least sum of importance[column] * (x - decoded)^2; the rule's own wins a draw, so that no block
/// gets worse. `importance` has one finite weight >= 0 for each column, or is null for equal weights; a block whose
/// weights are all zero is searched with equal weights. Not for schemes with a tensor scale. Errors: as quantize;
/// out_of_range ("importance", `got` is its column)
/// for a weight that is negative or not finite; nothing is written then.
template <rounding R = rounding::nearest_even, class S>
status quantize_least_squares(matrix_view<const float> x, const float* importance, quantized_view<S> out,
                              const quantize_options& options = {}) noexcept {
    static_assert(!S::has_tensor_scale, "numfmt::calibrate: schemes with a tensor scale are not searched");
    static_assert(R != rounding::stochastic,
                  "numfmt::calibrate: a search compares errors, which stochastic rounding draws");
    using namespace numfmt::detail;
    if (const status s = check_quantize(x, out); !s.ok()) return s;
    for (int64_t c = 0; importance != nullptr && c < x.shape.cols; ++c) {
        if (!is_finite(importance[c]) || importance[c] < 0) return {status_code::out_of_range, "importance", c, 0};
    }
    constexpr int bits = scheme_traits<S>::element_bits;
    constexpr int candidates = scheme_traits<S>::power_of_two_scale ? 3 : 11;
    const matrix_shape scales = out.scale_shape();
    uint8_t codes[chunk];
    float values[chunk];
    for (int64_t i = 0; i < scales.rows; ++i) {
        for (int64_t j = 0; j < scales.cols; ++j) {
            block_range range;
            bool weighted = false;
            for_each_run(x.shape, S::block, i, j, [&](int64_t r, int64_t c, int n) {
                extend<S>(range, x.row(r) + c, n);
                for (int k = 0; importance != nullptr && k < n; ++k) weighted = weighted || importance[c + k] > 0;
            });
            const block_scale<S> rule = choose_scale<S>(range, {}, options);
            block_scale<S> best = rule;
            double least = 0;
            for (int candidate = 0; candidate < candidates && !rule.poisoned; ++candidate) {
                const block_scale<S> scale = detail::nearby_scale<S>(rule, candidate);
                double error = 0;
                for_each_run(x.shape, S::block, i, j, [&](int64_t r, int64_t c, int n) {
                    encode_chunk<S, R>(scale, x.row(r) + c, n, codes, options, 0);
                    decode_chunk<S>(scale, codes, n, values);
                    for (int k = 0; k < n; ++k) {
                        const double d = static_cast<double>(x.row(r)[c + k]) - static_cast<double>(values[k]);
                        error += d * d * (weighted ? static_cast<double>(importance[c + k]) : 1.0);
                    }
                });
                if (candidate == 0 || error < least) {
                    least = error;
                    best = scale;
                }
            }
            out.scale(i, j) = best.stored;
            if constexpr (S::has_zero_point) pack<4>(&best.zero_point, 1, out.zero_row(i), j);
            for_each_run(x.shape, S::block, i, j, [&](int64_t r, int64_t c, int n) {
                encode_chunk<S, R>(best, x.row(r) + c, n, codes, options, 0);
                pack<bits>(codes, n, out.code_row(r), c);
            });
        }
    }
    return {};
}

}  // namespace numfmt::calibrate
