// SPDX-License-Identifier: MIT
// Training a small network with its weights in one of the stores: what a store costs in the loss that is reached.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "master_weights.hpp"
#include "optimizers.hpp"

namespace numfmt::accuracy {

/// Rows of x [samples][inputs] and y [samples][outputs] to be predicted from them. A bias is an input that is 1.
struct regression_data {
    int64_t samples = 0, inputs = 0, outputs = 0;
    std::vector<float> x, y;
};

/// y = relu(x A) B with A [inputs][hidden] and B [hidden][outputs], one array of weights: A, then B. fp32 throughout,
/// sums in the order of the samples, then of the inputs.
class two_layer_network {
  public:
    /// Throws std::bad_alloc.
    two_layer_network(int64_t inputs, int64_t hidden, int64_t outputs)
        : inputs_(inputs),
          hidden_(hidden),
          outputs_(outputs),
          h_(static_cast<size_t>(hidden)),
          dh_(h_.size()),
          dy_(static_cast<size_t>(outputs)),
          transposed_(static_cast<size_t>(hidden * outputs)) {}

    int64_t weights() const noexcept { return hidden_ * (inputs_ + outputs_); }

    /// Normal numbers of variance 2 / inputs (A) and 1 / hidden (B).
    /// Source of the variances: He, Zhang, Ren, Sun, "Delving deep into rectifiers" (arXiv:1502.01852).
    void initialise(uint64_t seed, float* w) const noexcept {
        const int64_t split = inputs_ * hidden_;
        fill(distribution::gaussian, seed, 0, w, split, std::sqrt(2 / static_cast<double>(inputs_)));
        fill(distribution::gaussian, seed, static_cast<uint64_t>(split), w + split, hidden_ * outputs_,
             std::sqrt(1 / static_cast<double>(hidden_)));
    }

    /// Mean of (prediction - y)^2 over all samples and outputs, and its gradient over the rows row[0 .. count) where
    /// `gradient` is not null. Sizes of `data` as given to the constructor.
    double loss(const float* w, const regression_data& data, const int64_t* row, int64_t count,
                float* gradient) noexcept {
        const float* b = w + inputs_ * hidden_;
        float* gb = nullptr;
        if (gradient != nullptr) {
            gb = gradient + inputs_ * hidden_;
            std::fill(gradient, gradient + weights(), 0.0f);
            for (int64_t j = 0; j < hidden_; ++j)
                for (int64_t o = 0; o < outputs_; ++o)
                    transposed_[static_cast<size_t>(o * hidden_ + j)] = b[j * outputs_ + o];
        }
        const double scale = 1 / static_cast<double>(count * outputs_);
        double squares = 0;
        for (int64_t s = 0; s < count; ++s) {
            const float* x = data.x.data() + row[s] * inputs_;
            const float* y = data.y.data() + row[s] * outputs_;
            std::fill(h_.begin(), h_.end(), 0.0f);
            for (int64_t i = 0; i < inputs_; ++i) add_multiple(x[i], w + i * hidden_, h_.data(), hidden_);
            for (float& v : h_) v = v > 0 ? v : 0.0f;
            for (int64_t o = 0; o < outputs_; ++o) dy_[static_cast<size_t>(o)] = -y[o];
            for (int64_t j = 0; j < hidden_; ++j)
                add_multiple(h_[static_cast<size_t>(j)], b + j * outputs_, dy_.data(), outputs_);
            for (float& v : dy_) {
                squares += static_cast<double>(v) * static_cast<double>(v);
                v *= static_cast<float>(2 * scale);
            }
            if (gradient == nullptr) continue;
            for (int64_t j = 0; j < hidden_; ++j)
                add_multiple(h_[static_cast<size_t>(j)], dy_.data(), gb + j * outputs_, outputs_);
            std::fill(dh_.begin(), dh_.end(), 0.0f);
            for (int64_t o = 0; o < outputs_; ++o)
                add_multiple(dy_[static_cast<size_t>(o)], transposed_.data() + o * hidden_, dh_.data(), hidden_);
            for (size_t j = 0; j < h_.size(); ++j) dh_[j] = h_[j] > 0 ? dh_[j] : 0.0f;
            for (int64_t i = 0; i < inputs_; ++i) add_multiple(x[i], dh_.data(), gradient + i * hidden_, hidden_);
        }
        return squares * scale;
    }
    /// Over every sample.
    double loss(const float* w, const regression_data& data) {
        std::vector<int64_t> rows(static_cast<size_t>(data.samples));
        for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
        return loss(w, data, rows.data(), data.samples, nullptr);
    }

  private:
    static void add_multiple(float a, const float* NUMFMT_RESTRICT x, float* NUMFMT_RESTRICT y, int64_t n) noexcept {
        for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
    }

    int64_t inputs_, hidden_, outputs_;
    std::vector<float> h_, dh_, dy_, transposed_;
};

struct training_options {
    weight_store store = weight_store::fp32;
    optimizer_options optimizer;
    double rate = 1e-3;  ///< learning rate
    int64_t steps = 500;
    int64_t batch = 32;  ///< rows per step, drawn anew each time
    uint64_t seed = 0;   ///< of the batches and of stochastic rounding
};

struct training_result {
    double loss = 0;  ///< over all samples, with the weights that the model reads at the end; NaN or Inf if diverged
    double median_ratio = 0;   ///< of |update| / |weight|, over all weights and looked-at steps; 0 if there was none
    double lost_share = 0;     ///< of those updates: that a bf16 weight rounded to nearest would not notice
    std::vector<float> model;  ///< the weights that the model reads
};

/// Trains from the weights `start`. Updates are looked at in every eighth step. All stores see the same batches. Throws
/// std::bad_alloc.
inline training_result train(two_layer_network network, const regression_data& data, const float* start,
                             const training_options& options) {
    constexpr uint32_t stream = 65;  // apart from those of master_weights.hpp and inputs.hpp
    constexpr int lowest = -40, highest = 8, per_octave = 8;
    const int64_t n = network.weights();
    stored_weights stored(options.store, start, n, options.seed);
    optimizer state(options.optimizer, n);
    training_result result;
    result.model.resize(static_cast<size_t>(n));
    std::vector<float> gradient(result.model.size()), update(result.model.size());
    std::vector<int64_t> rows(static_cast<size_t>(options.batch));
    std::vector<int64_t> histogram(static_cast<size_t>((highest - lowest) * per_octave + 1), 0);
    int64_t looked_at = 0, lost = 0;
    float* const w = result.model.data();
    stored.read(w);
    for (int64_t step = 0; step < options.steps; ++step) {
        for (size_t i = 0; i < rows.size(); ++i) {
            const philox_block word =
                philox4x32_10({{static_cast<uint32_t>(i), static_cast<uint32_t>(step), stream, 0u}},
                              static_cast<uint32_t>(options.seed), static_cast<uint32_t>(options.seed >> 32));
            rows[i] = static_cast<int64_t>(word.word[0]) % data.samples;
        }
        network.loss(w, data, rows.data(), options.batch, gradient.data());
        state.step(gradient.data(), static_cast<float>(options.rate), update.data());
        if (step % 8 == 7) {
            for (size_t i = 0; i < update.size(); ++i) {
                // No ratio where a unit of the network is off, or after training diverged.
                if (update[i] == 0 || w[i] == 0 || !numfmt::detail::is_finite(update[i]) ||
                    !numfmt::detail::is_finite(w[i]))
                    continue;
                const double octave = std::log2(std::fabs(static_cast<double>(update[i]) / static_cast<double>(w[i])));
                const double place = (std::clamp<double>(octave, lowest, highest) - lowest) * per_octave;
                ++histogram[static_cast<size_t>(place)];
                ++looked_at;
                lost += update_vanishes(bf16(w[i]), update[i]) ? 1 : 0;
            }
        }
        stored.add(update.data());
        stored.read(w);
    }
    result.loss = network.loss(w, data);
    if (looked_at == 0) return result;
    result.lost_share = static_cast<double>(lost) / static_cast<double>(looked_at);
    int64_t below = 0;
    for (size_t i = 0; i < histogram.size(); ++i) {
        below += histogram[i];
        if (2 * below < looked_at) continue;
        result.median_ratio = std::exp2((static_cast<double>(i) + 0.5) / per_octave + lowest);
        break;
    }
    return result;
}

}  // namespace numfmt::accuracy
