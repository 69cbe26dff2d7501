// SPDX-License-Identifier: MIT
// Optimizers that turn gradients into updates and know nothing of how the weights are stored: SGD and Adam.
#pragma once

#include <cmath>
#include <vector>

#include "../accumulate/policies.hpp"
#include "../bf16.hpp"

namespace numfmt::accuracy {

enum class optimizer_kind : uint8_t {
    sgd,   ///< v = momentum v + g; update = -rate v
    adam,  ///< m, v: running means of g and g^2; update = -rate m / (sqrt(v) + epsilon), both corrected for their start
};
inline constexpr int optimizer_kind_count = 2;

NUMFMT_FN const char* name_of(optimizer_kind k) noexcept { return k == optimizer_kind::sgd ? "sgd" : "adam"; }

struct optimizer_options {
    optimizer_kind kind = optimizer_kind::adam;
    float momentum = 0.9f;  ///< of SGD, 0 .. 1; 0: plain SGD
    float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
    /// Momentum, m and v are rounded to bf16 (nearest even) after every step. v then never falls: that takes a relative
    /// change of 1 - beta2, and bf16 loses changes below 2^-9; it grows only where g^2 is several times v.
    bool bf16_state = false;
};

/// Bytes of optimizer state per weight.
NUMFMT_FN int state_bytes(const optimizer_options& o) noexcept {
    const int numbers = o.kind == optimizer_kind::adam ? 2 : o.momentum != 0 ? 1 : 0;
    return numbers * (o.bf16_state ? 2 : 4);
}

/// The state of one tensor. All arithmetic is fp32.
/// Source of Adam: Kingma & Ba, "Adam: a method for stochastic optimization" (arXiv:1412.6980), algorithm 1.
class optimizer {
  public:
    /// Throws std::bad_alloc.
    optimizer(const optimizer_options& options, int64_t n) : options_(options), first_(static_cast<size_t>(n), 0.0f) {
        if (options.kind == optimizer_kind::adam) second_.assign(first_.size(), 0.0f);
    }

    /// update[i], to be added to weight i, from gradient[i]; 0 <= i < n. `rate` is the learning rate of this step.
    void step(const float* gradient, float rate, float* update) noexcept {
        if (options_.kind == optimizer_kind::sgd) {
            for (size_t i = 0; i < first_.size(); ++i) {
                first_[i] = options_.momentum * first_[i] + gradient[i];
                update[i] = -rate * first_[i];
            }
        } else {
            power1_ *= static_cast<double>(options_.beta1);
            power2_ *= static_cast<double>(options_.beta2);
            const float scale = static_cast<float>(-static_cast<double>(rate) / (1 - power1_));
            const float root = static_cast<float>(1 / std::sqrt(1 - power2_));
            for (size_t i = 0; i < first_.size(); ++i) {
                const float g = gradient[i];
                first_[i] += (1 - options_.beta1) * (g - first_[i]);
                second_[i] += (1 - options_.beta2) * (g * g - second_[i]);
                update[i] = scale * first_[i] / (std::sqrt(second_[i]) * root + options_.epsilon);
            }
        }
        if (!options_.bf16_state) return;
        for (auto* state : {&first_, &second_})
            for (float& x : *state) x = accumulate::round_to_format<bf16>(x);
    }

    /// Momentum or Adam's m, and Adam's v (empty for SGD).
    const std::vector<float>& first() const noexcept { return first_; }
    const std::vector<float>& second() const noexcept { return second_; }

  private:
    optimizer_options options_;
    std::vector<float> first_, second_;
    double power1_ = 1, power2_ = 1;
};

}  // namespace numfmt::accuracy
