// SPDX-License-Identifier: MIT
// One instantiation of each bulk kernel: compiles for every supported architecture with warnings as errors, and
// check_sass.py makes sure that nothing lands in local memory.
#include <numfmt/numfmt.hpp>

#include <numfmt/cuda/quantize.cuh>

using namespace numfmt;

// One kernel of each kind: grouped E8M0, two-level, int4, a block per thread block, and the plain casts.
cuda::launch_result use(matrix_view<const bf16> x, const float* f, uint8_t* codes, float* y, cudaStream_t s) {
    (void)cuda::encode<fp8_e4m3>(f, 8, codes, {}, s);
    (void)cuda::encode<fp6_e3m2, rounding::stochastic>(f, 8, codes, {}, s);
    (void)cuda::decode<fp4_e2m1>(codes, 8, y, s);
    (void)cuda::quantize(x, quantized_view<mxfp4>{}, {}, {}, s);
    (void)cuda::quantize(x, quantized_view<nvfp4>{}, {}, {}, s);
    (void)cuda::quantize(x, quantized_view<awq_int4>{}, {}, {}, s);
    (void)cuda::quantize(x, quantized_view<block_fp8_128x128>{}, {}, {}, s);
    return cuda::dequantize(quantized_view<const mxfp6_e2m3>{}, matrix_view<float>{y, {1, 8}}, s);
}
