// SPDX-License-Identifier: MIT
// A kernel of one's own on numfmt's register-level conversions: the dot products of MXFP4 rows with a bf16 vector,
// reading the stored format. The only numfmt header that the kernel needs is cuda/convert.cuh.
// Build: nvcc -std=c++20 -arch=sm_90a -I include examples/user_kernel.cu -o user_kernel
#include <cmath>
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

#include <numfmt/cuda/convert.cuh>

namespace nc = numfmt::cuda;

/// y[row] = sum over columns of q * 2^(scale - 127) * x, one warp a row; cols a multiple of 256. `codes` holds eight
/// e2m1 codes a word, `scales` one e8m0 byte for 32 columns.
__global__ void mxfp4_dot(const unsigned* codes, const unsigned char* scales, const uint4* x, float* y, int cols) {
    const int row = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x), words = cols / 8;
    float sum = 0;
    for (int w = lane; w < words; w += 32) {
        const unsigned c = codes[row * words + w];
        const uint4 v = x[w];
        // Eight codes to four fp16 pairs, in memory order; the scale is applied once, to the sum of the eight.
        float q[8], a[8];
        nc::to_float<numfmt::fp16>(nc::decode8<numfmt::fp4_e2m1, numfmt::fp16>(c), q);
        nc::to_float<numfmt::bf16>(nc::words<4>{{v.x, v.y, v.z, v.w}}, a);
        float part = 0;
        for (int i = 0; i < 8; ++i) part = fmaf(q[i], a[i], part);
        sum = fmaf(part, nc::e8m0_to_float(scales[row * (cols / 32) + w / 4]), sum);
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, d);
    if (lane == 0) y[row] = sum;
}

int main() {
    constexpr int rows = 64, cols = 1024;
    std::vector<unsigned> codes(rows * cols / 8);
    std::vector<unsigned char> scales(rows * cols / 32);
    std::vector<numfmt::bf16> x(cols);
    unsigned state = 1;
    const auto next = [&] { return state = state * 1664525u + 1013904223u; };
    for (unsigned& c : codes) c = next() ^ next() >> 16;
    for (unsigned char& s : scales) s = static_cast<unsigned char>(120 + next() % 10);
    for (numfmt::bf16& v : x) v = numfmt::bf16(static_cast<float>(static_cast<int>(next() >> 20) - 2048) / 1024);

    unsigned* d_codes = nullptr;
    unsigned char* d_scales = nullptr;
    uint4* d_x = nullptr;
    float* d_y = nullptr;
    if (cudaMalloc(&d_codes, codes.size() * 4) != cudaSuccess) {
        std::puts("SKIPPED: no CUDA device");
        return 77;
    }
    cudaMalloc(&d_scales, scales.size());
    cudaMalloc(&d_x, cols * 2);
    cudaMalloc(&d_y, rows * 4);
    cudaMemcpy(d_codes, codes.data(), codes.size() * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(d_scales, scales.data(), scales.size(), cudaMemcpyHostToDevice);
    cudaMemcpy(d_x, x.data(), cols * 2, cudaMemcpyHostToDevice);
    mxfp4_dot<<<rows, 32>>>(d_codes, d_scales, d_x, d_y, cols);
    std::vector<float> y(rows);
    const cudaError_t error = cudaMemcpy(y.data(), d_y, rows * 4, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess) {
        std::printf("user_kernel: %s\n", cudaGetErrorString(error));
        return 1;
    }
    // The same on the host, in double, from the same codes.
    double worst = 0;
    for (int r = 0; r < rows; ++r) {
        double sum = 0, magnitude = 0;
        for (int c = 0; c < cols; ++c) {
            const unsigned code = codes[static_cast<size_t>(r * cols + c) / 8] >> (c % 8 * 4) & 15u;
            const double q = numfmt::decode<numfmt::fp4_e2m1>(static_cast<unsigned char>(code));
            const double s = numfmt::decode<numfmt::e8m0>(scales[static_cast<size_t>(r * cols + c) / 32]);
            const double term = q * s * static_cast<double>(static_cast<float>(x[static_cast<size_t>(c)]));
            sum += term;
            magnitude += std::fabs(term);
        }
        worst = std::fmax(worst, std::fabs(sum - y[static_cast<size_t>(r)]) / magnitude);
    }
    // A term passes through at most 8 + 4 + 1 + 5 roundings of 2^-24 each.
    std::printf("largest error of %d dot products: %.2e of the sum of magnitudes (bound %.2e)\n", rows, worst,
                18 * std::ldexp(1.0, -24));
    return worst <= 18 * std::ldexp(1.0, -24) ? 0 : 1;
}
