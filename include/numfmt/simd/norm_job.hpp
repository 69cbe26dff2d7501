// SPDX-License-Identifier: MIT
// What the normalisation kernels are given, and the parts of them that do not depend on the target.
#pragma once

#include "../accumulate/normalization.hpp"
#include "../bf16.hpp"
#include "../fp16.hpp"
#include "../fp8.hpp"

namespace numfmt::simd {

namespace detail {

/// A row of weights in fp32, bf16 or fp16, or none.
struct norm_vector {
    enum class kind : uint8_t { none, fp32, bf16, fp16 };
    const void* data = nullptr;
    kind type = kind::none;

    NUMFMT_FN norm_vector() noexcept = default;
    NUMFMT_FN norm_vector(const float* p) noexcept : data(p), type(p == nullptr ? kind::none : kind::fp32) {}
    NUMFMT_FN norm_vector(const numfmt::bf16* p) noexcept : data(p), type(p == nullptr ? kind::none : kind::bf16) {}
    NUMFMT_FN norm_vector(const numfmt::fp16* p) noexcept : data(p), type(p == nullptr ? kind::none : kind::fp16) {}

    NUMFMT_FN bool present() const noexcept { return type != kind::none; }
    NUMFMT_FN int64_t element_bytes() const noexcept { return type == kind::fp32 ? 4 : 2; }
    /// The same without its first i elements.
    NUMFMT_HD NUMFMT_INLINE norm_vector from(int64_t i) const noexcept {
        norm_vector v = *this;
        if (present()) v.data = static_cast<const char*>(data) + i * element_bytes();
        return v;
    }
    NUMFMT_HD NUMFMT_INLINE float at(int64_t i) const noexcept {
        if (type == kind::fp32) return static_cast<const float*>(data)[i];
        if (type == kind::bf16) return static_cast<float>(static_cast<const numfmt::bf16*>(data)[i]);
        return static_cast<float>(static_cast<const numfmt::fp16*>(data)[i]);
    }
    NUMFMT_HD NUMFMT_INLINE void copy_to(float* to, int64_t n) const noexcept {
        for (int64_t i = 0; present() && i < n; ++i) to[i] = at(i);
    }
};

/// A normalised value times its weight plus its bias.
NUMFMT_HD NUMFMT_INLINE float weighted(float v, const norm_vector& weight, const norm_vector& bias,
                                       int64_t i) noexcept {
    if (weight.present() && bias.present()) return accumulate::rounded_fma(v, weight.at(i), bias.at(i));
    if (weight.present()) return accumulate::rounded_mul(v, weight.at(i));
    return bias.present() ? accumulate::rounded_add(v, bias.at(i)) : v;
}

/// The shape of the kernels' sums: element i belongs to chain i mod 64.
using norm_accumulator = accumulate::interleaved<accumulate::sequential<float>, 16, 4>;
inline constexpr int norm_chains = norm_accumulator::lanes * norm_accumulator::unroll;

/// The value of norm_accumulator whose chains are these.
NUMFMT_FN float chain_sum(const float* chains) noexcept {
    float lane[16] = {};
    for (int i = 0; i < 16; ++i)
        lane[i] = accumulate::rounded_add(accumulate::rounded_add(chains[i], chains[i + 32]),
                                          accumulate::rounded_add(chains[i + 16], chains[i + 48]));
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) lane[i] = accumulate::rounded_add(lane[i], lane[i + half]);
    return lane[0];
}

/// Rows [.., last) of a normalisation. Strides in elements.
struct norm_job {
    const void* x;
    int64_t x_stride;
    void* residual;
    int64_t residual_stride;
    int64_t cols, last;
    norm_vector weight, bias;
    float eps;
    variance_policy variance;
    bool centred;  ///< layer, not RMS
    bool stream;   ///< results go around the caches

    /// What is normalised: the sum that the residual has become, where there is one.
    template <class X> NUMFMT_HD NUMFMT_INLINE const X* input(int64_t row) const noexcept {
        return residual != nullptr ? static_cast<const X*>(residual) + row * residual_stride
                                   : static_cast<const X*>(x) + row * x_stride;
    }
};

/// As statistics_of_row(), where the moments of the unscaled row are known.
template <class X>
NUMFMT_PER_ISA accumulate::row_statistics statistics_from(accumulate::row_moments m, const X* x,
                                                          const norm_job& job) noexcept {
    if (!accumulate::needs_scaling(m.second, job.eps))
        return {1, m.shift, m.offset, accumulate::reciprocal_deviation(m.second, job.eps)};
    return accumulate::statistics_of_row<norm_accumulator>([x](int64_t i) { return static_cast<float>(x[i]); },
                                                           job.cols, job.centred, job.variance, job.eps);
}

}  // namespace detail
}  // namespace numfmt::simd
