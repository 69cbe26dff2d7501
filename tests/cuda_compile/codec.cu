// SPDX-License-Identifier: MIT
// The reference codec in device code: compiles without --expt-relaxed-constexpr and with every warning an error.
#include <numfmt/bf16.hpp>
#include <numfmt/core/philox.hpp>
#include <numfmt/core/status.hpp>
#include <numfmt/e8m0.hpp>
#include <numfmt/fp16.hpp>
#include <numfmt/fp4.hpp>
#include <numfmt/fp8.hpp>

namespace {

using namespace numfmt;

template <class Format> __global__ void round_trip(const float* x, const double* wide, float* y, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    const auto a = encode<Format>(x[i]);
    const auto b = encode<Format>(wide[i], {.overflow = overflow::to_nonfinite, .nan = nan_mode::keep_sign});
    const Format c(x[i]);
    y[i] = decode<Format>(a) + decode<Format>(b) + static_cast<float>(c) + (c < Format(2) ? 1.0f : 0.0f);
}

__global__ void scaled(const float* x, float* y, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    y[i] = decode_scaled<fp4_e2m1>(encode_scaled<fp4_e2m1>(x[i], 3), 3);
    y[i] +=
        static_cast<float>(encode<fp8_e5m2, rounding::stochastic>(x[i], {}, random_word(1, static_cast<uint64_t>(i))));
    y[i] += static_cast<float>(bf16(x[i]) * bf16(2.0f));
}

}  // namespace

void use(const float* x, const double* wide, float* y, int n) {
    round_trip<bf16><<<1, 32>>>(x, wide, y, n);
    round_trip<fp16><<<1, 32>>>(x, wide, y, n);
    round_trip<fp8_e4m3><<<1, 32>>>(x, wide, y, n);
    round_trip<fp8_e5m2><<<1, 32>>>(x, wide, y, n);
    round_trip<fp4_e2m1><<<1, 32>>>(x, wide, y, n);
    round_trip<e8m0><<<1, 32>>>(x, wide, y, n);
    scaled<<<1, 32>>>(x, y, n);
}
