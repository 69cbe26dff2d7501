// SPDX-License-Identifier: MIT
// Weights that are trained: the ways to store them between two updates, and which share of small updates arrives.
//
// With round-to-nearest an update below half the distance to the neighbouring number is lost, however many follow. The
// distance U of bf16 numbers is 2^-7 of the weight at the bottom of a binade and 2^-8 at its top, so that updates below
// 2^-9 of the weight never arrive, and those up to 2^-8 only where the weight's significand is small enough.
#pragma once

#include <cmath>
#include <vector>

#include "../accumulate/policies.hpp"
#include "../bf16.hpp"
#include "../core/status.hpp"
#include "inputs.hpp"

namespace numfmt::accuracy {

/// How a weight is kept. An update is a float; weight + update is formed in fp32, as optimizers do, and then stored.
enum class weight_store : uint8_t {
    fp32,             ///< fp32, which the model reads too: the reference
    fp32_master,      ///< fp32, of which the model reads a copy rounded to bf16
    bf16_kahan,       ///< bf16 beside a bf16 compensation: what the weight lost so far is added to the next update
    bf16_stochastic,  ///< bf16, rounded up with the probability of the discarded fraction
    bf16,             ///< bf16, rounded to nearest even
};
inline constexpr int weight_store_count = 5;

NUMFMT_FN const char* name_of(weight_store s) noexcept {
    constexpr const char* names[weight_store_count] = {"fp32", "fp32_master", "bf16_kahan", "bf16_stochastic", "bf16"};
    return names[static_cast<int>(s)];
}

/// Bytes per weight, the optimizer's state not counted: 4, 4 + 2, 2 + 2, 2, 2.
NUMFMT_FN int bytes_per_weight(weight_store s) noexcept {
    constexpr int bytes[weight_store_count] = {4, 6, 4, 2, 2};
    return bytes[static_cast<int>(s)];
}

/// Whether the update leaves a bf16 weight that is rounded to nearest as it is.
NUMFMT_FN bool update_vanishes(bf16 weight, float update) noexcept {
    return bf16(accumulate::rounded_add(static_cast<float>(weight), update)).bits() == weight.bits();
}

/// A tensor of weights in one of the stores. All stores of the same bf16 numbers start alike.
class stored_weights {
  public:
    /// w[0 .. n), rounded to nearest where the store is narrower. `seed` is read by bf16_stochastic alone.
    /// Throws std::bad_alloc.
    stored_weights(weight_store store, const float* w, int64_t n, uint64_t seed = 0)
        : store_(store), size_(n), seed_(seed) {
        const auto count = static_cast<size_t>(n);
        if (store == weight_store::fp32 || store == weight_store::fp32_master) full_.assign(w, w + n);
        if (store == weight_store::bf16_kahan) compensation_.assign(count, bf16(0.0f));
        if (store == weight_store::fp32) return;
        narrow_.resize(count);
        for (size_t i = 0; i < count; ++i) narrow_[i] = bf16(w[i]);
    }

    weight_store store() const noexcept { return store_; }
    int64_t size() const noexcept { return size_; }
    /// Updates so far: the step of the next one.
    uint64_t step() const noexcept { return step_; }

    /// What the model reads, i = 0 .. size() - 1.
    float operator[](int64_t i) const noexcept {
        const auto at = static_cast<size_t>(i);
        return store_ == weight_store::fp32 ? full_[at] : static_cast<float>(narrow_[at]);
    }
    void read(float* out) const noexcept {
        for (int64_t i = 0; i < size_; ++i) out[i] = (*this)[i];
    }
    /// All that is known of the weight: the master, or the sum of weight and compensation (exact in double).
    double kept(int64_t i) const noexcept {
        const auto at = static_cast<size_t>(i);
        if (!full_.empty()) return static_cast<double>(full_[at]);
        double w = static_cast<double>(static_cast<float>(narrow_[at]));
        if (!compensation_.empty()) w += static_cast<double>(static_cast<float>(compensation_[at]));
        return w;
    }

    /// One step: adds update[i] to weight i. With bf16_stochastic weight i of step s draws word s * size() + i of the
    /// seed (core/philox.hpp), so that its bits depend on nothing else.
    void add(const float* update) noexcept {
        switch (store_) {
            case weight_store::fp32:
                for (size_t i = 0; i < full_.size(); ++i) full_[i] = accumulate::rounded_add(full_[i], update[i]);
                break;
            case weight_store::fp32_master:
                for (size_t i = 0; i < full_.size(); ++i) {
                    full_[i] = accumulate::rounded_add(full_[i], update[i]);
                    narrow_[i] = bf16(full_[i]);
                }
                break;
            case weight_store::bf16_kahan:
                add_compensated(update);
                break;
            case weight_store::bf16_stochastic:
                add_stochastic(update);
                break;
            case weight_store::bf16:
                for (size_t i = 0; i < narrow_.size(); ++i) narrow_[i] = bf16(sum(narrow_[i], update[i]));
                break;
        }
        ++step_;
    }

  private:
    static float sum(bf16 w, float update) noexcept { return accumulate::rounded_add(static_cast<float>(w), update); }

    // Kahan's step: weight and compensation are rounded to bf16, what happens in between is fp32. What the compensation
    // cannot hold is lost. Source: Zamirai, Zhang, Aberger, De Sa, "Revisiting BFloat16 Training" (arXiv:2010.06192).
    void add_compensated(const float* update) noexcept {
        for (size_t i = 0; i < narrow_.size(); ++i) {
            const bf16 y(sum(compensation_[i], update[i])), old = narrow_[i];
            narrow_[i] = bf16(sum(old, static_cast<float>(y)));
            const float moved = accumulate::rounded_sub(static_cast<float>(narrow_[i]), static_cast<float>(old));
            compensation_[i] = bf16(accumulate::rounded_sub(static_cast<float>(y), moved));
        }
    }

    void add_stochastic(const float* update) noexcept {
        const uint64_t first = step_ * static_cast<uint64_t>(size_);
        philox_block words = random_words(seed_, first >> 2);
        for (size_t i = 0; i < narrow_.size(); ++i) {
            const uint64_t index = first + i;
            if ((index & 3u) == 0) words = random_words(seed_, index >> 2);
            narrow_[i] = bf16::from_bits(encode<bf16, rounding::stochastic>(sum(narrow_[i], update[i]),
                                                                            encode_options{}, words.word[index & 3u]));
        }
    }

    weight_store store_;
    int64_t size_;
    uint64_t seed_, step_ = 0;
    std::vector<float> full_;
    std::vector<bf16> narrow_, compensation_;
};

/// What became of the same small update, made many times. The share is (last - first) / (sum of the updates), of what
/// the store keeps: 1 where every update arrived, 0 where none did.
struct update_arrival {
    double ratio = 0;      ///< update / weight at the start
    int64_t steps = 0;     ///< updates of each weight
    int64_t weights = 0;   ///< how many weights
    double mean = 0;       ///< of the share
    double deviation = 0;  ///< standard deviation of the share over the weights
    double rms_error = 0;  ///< root mean square of share - 1
    double worst = 0;      ///< largest |share - 1|
    int64_t still = 0;     ///< weights that never moved
};

/// What updates of w / (8 * steps) each, `steps` times, add up to: an eighth of the weight, however small the ratio
/// 1 / (8 * steps) of update and weight is. Weights have random signs, exponents -8 .. 0 and 7-bit significands; those
/// in the lower half of their binade grow, the others shrink, and none leaves its binade even where rounding doubles
/// its updates. So the distance U of its neighbours is the same all the way.
///
/// steps    1 .. 2^23, that is ratios 2^-3 .. 2^-26
/// weights  1 .. 2^24
/// Errors: out_of_range. Throws std::bad_alloc.
inline status measure_update_arrival(weight_store store, int64_t steps, int64_t weights, uint64_t seed,
                                     update_arrival& out) {
    constexpr int64_t most_steps = int64_t{1} << 23, most_weights = int64_t{1} << 24;
    if (steps < 1 || steps > most_steps) return {status_code::out_of_range, "steps", steps, steps < 1 ? 1 : most_steps};
    if (weights < 1 || weights > most_weights)
        return {status_code::out_of_range, "weights", weights, weights < 1 ? 1 : most_weights};
    constexpr uint32_t stream = 64;  // apart from those of inputs.hpp and from stochastic rounding
    const auto n = static_cast<size_t>(weights);
    std::vector<float> start(n), update(n);
    for (size_t i = 0; i < n; ++i) {
        const philox_block w = philox4x32_10({{static_cast<uint32_t>(i), 0u, stream, 0u}}, static_cast<uint32_t>(seed),
                                             static_cast<uint32_t>(seed >> 32));
        const uint32_t significand = 128u + (w.word[0] >> 25);
        const float size =
            static_cast<float>(significand) * numfmt::detail::exact_pow2(-7 - static_cast<int>(w.word[1] % 9u));
        start[i] = (w.word[2] >> 31) != 0 ? -size : size;
        const double step = static_cast<double>(start[i]) / static_cast<double>(8 * steps);
        update[i] = static_cast<float>(significand < 192 ? step : -step);
    }
    stored_weights stored(store, start.data(), weights, seed);
    for (int64_t s = 0; s < steps; ++s) stored.add(update.data());

    out = {};
    out.ratio = 1 / static_cast<double>(8 * steps);
    out.steps = steps;
    out.weights = weights;
    double squares = 0;
    for (size_t i = 0; i < n; ++i) {
        const double moved = stored.kept(static_cast<int64_t>(i)) - static_cast<double>(start[i]);
        const double share = moved / (static_cast<double>(update[i]) * static_cast<double>(steps));
        out.mean += share;
        squares += (share - 1) * (share - 1);
        out.worst = std::fmax(out.worst, std::fabs(share - 1));
        out.still += moved == 0 ? 1 : 0;
    }
    const double count = static_cast<double>(weights);
    out.mean /= count;
    out.rms_error = std::sqrt(squares / count);
    out.deviation = std::sqrt(std::fmax(squares / count - (out.mean - 1) * (out.mean - 1), 0.0));
    return {};
}

/// The ratio of update and weight from which on updates arrive wherever the weight lies in its binade: half the
/// distance to its neighbour over the smallest number of the binade. Below half of it none does, save for the random
/// walk of bf16_stochastic, whose ratio is that of the sum formed in fp32. A compensation of 8 bits below a weight of 8
/// bits stops at 2^-16: once it is half of U (a tie that an even weight keeps) its own numbers stand U 2^-8 apart.
NUMFMT_FN double vanishing_ratio(weight_store s) noexcept {
    constexpr double ratio[weight_store_count] = {0x1p-24, 0x1p-24, 0x1p-16, 0x1p-24, 0x1p-8};
    return ratio[static_cast<int>(s)];
}

/// What theory says of |share - 1| at the ratio r = 1 / (8 * steps). U / update is at most 2^-7 / r in bf16 and 2^-23 /
/// r in fp32.
///   fp32, fp32_master, bf16  vanishing_ratio / r, for every weight: a nearest sum is off by at most U / 2, and by the
///                            same amount every time, since weights are multiples of U
///   bf16_kahan               2^-8 + 2^-16 / r, for every weight: compensation plus update is at most U / 2 + update,
///   and
///                            is rounded by at most 2^-8 of that; the other two operations are exact
///   bf16_stochastic          a standard deviation: U / update sqrt(f (1 - f) / steps), f being the fraction of U that
///                            the update leaves. f (1 - f) is at most update / U and at most 1/4; so is the result
inline double arrival_bound(weight_store s, int64_t steps) noexcept {
    const double r = 1 / static_cast<double>(8 * steps);
    if (s == weight_store::bf16_stochastic) return std::fmin(0.25, 0x1p-8 / r / std::sqrt(static_cast<double>(steps)));
    return vanishing_ratio(s) / r + (s == weight_store::bf16_kahan ? 0x1p-8 : 0.0);
}

}  // namespace numfmt::accuracy
