// SPDX-License-Identifier: MIT
// The accumulators and the tensor core's model in device code, and every tensor-core instruction of tile_mma.cuh:
// compiles without --expt-relaxed-constexpr and with every warning an error.
#include <numfmt/accumulate/welford.hpp>
#include <numfmt/cuda/ptx/tile_mma.cuh>

namespace {

using namespace numfmt::accumulate;
namespace ptx = numfmt::cuda::ptx;
using numfmt::bf16;
using numfmt::fp16;

template <class A> __device__ float both(const float* x, const float* y, int64_t n) {
    return sum<A>(x, n) + dot<A>(x, y, n);
}

__global__ void sums(const float* x, const float* y, const double* z, float* out, int64_t n) {
    out[0] = both<sequential<float>>(x, y, n);
    out[1] = both<interleaved<kahan<float>, 4, 2>>(x, y, n);
    out[2] = both<pairwise<neumaier<float>, 8>>(x, y, n);
    out[3] = both<interleaved<dot2<float>, 8, 1, tree::neighbours>>(x, y, n);
    out[4] = both<in_double>(x, y, n);
    out[5] = both<promoted<rounded_to<bf16>, 128>>(x, y, n) + both<rounded_to<fp16>>(x, y, n);
    out[6] = static_cast<float>(dot<dot2<double>>(z, z, n));
    interleaved<welford<float>, 8> w;
    shifted_power_sums<sequential<float>> s;
    for (int64_t i = 0; i < n; ++i) {
        w.add(x[i]);
        s.add(x[i]);
    }
    out[7] = w.value() + s.value() + two_pass<interleaved<sequential<float>, 8>>(x, n).variance;
}

__global__ void model(const uint16_t* a, const uint16_t* b, uint32_t* d, int64_t k) {
    tensor_core_operand x[64], y[64];
    to_operands<bf16>(a, 64, x);
    to_operands<bf16>(b, 64, y);
    // nvcc does not let device code refer to a constant of the host: a constexpr copy is what the header advises.
    constexpr tensor_core_model hopper = tensor_cores::hopper_16bit, wgmma = tensor_cores::hopper_wgmma_fp8,
                                emulated = tensor_cores::hopper_mma_fp8_to_fp16;
    d[0] = tensor_core_dot(hopper, x, y, k, d[0]);
    d[1] = tensor_core_dot(wgmma, x, y, k, 0, 128);
    d[2] = tensor_core_dot(emulated, x, y, k, d[2]);
}

template <class... I> void launch_all(void* p, uint32_t* c) {
    (ptx::tile_kernel<I><<<1, ptx::tile_threads>>>(static_cast<const typename I::storage*>(p),
                                                   static_cast<const typename I::storage*>(p), c, c, 64),
     ...);
}

}  // namespace

void use(float* x, double* z, uint16_t* a, uint32_t* d) {
    sums<<<1, 1>>>(x, x, z, x, 100);
    model<<<1, 1>>>(a, a, d, 64);
    launch_all<ptx::mma_bf16_k16, ptx::mma_bf16_k8, ptx::mma_fp16_k16, ptx::mma_fp16_k8, ptx::mma_fp16_k16_f16,
               ptx::mma_tf32_k8, ptx::mma_tf32_k4, ptx::mma_e4m3_k32, ptx::mma_e5m2_k32, ptx::mma_e4m3_e5m2_k32,
               ptx::mma_e4m3_k32_f16, ptx::mma_e5m2_k32_f16, ptx::wgmma_bf16, ptx::wgmma_fp16, ptx::wgmma_fp16_f16,
               ptx::wgmma_tf32, ptx::wgmma_e4m3, ptx::wgmma_e5m2, ptx::wgmma_e4m3_e5m2, ptx::wgmma_e4m3_f16,
               ptx::wgmma_e5m2_f16>(a, d);
}
