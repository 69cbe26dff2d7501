// SPDX-License-Identifier: MIT
// What a first user of the CUDA component writes; prints the line of main.cpp. Where there is a device, it encodes the
// number there too.
#include <numfmt/bf16.hpp>
#include <numfmt/cuda/codec.cuh>

#include <cstdint>
#include <cstdio>

// The code of x, made on the device; false where something failed.
static bool encode_on_device(float x, std::uint16_t& code) {
    float* source = nullptr;
    std::uint16_t* codes = nullptr;
    return cudaMalloc(&source, sizeof x) == cudaSuccess && cudaMalloc(&codes, sizeof code) == cudaSuccess &&
           cudaMemcpy(source, &x, sizeof x, cudaMemcpyHostToDevice) == cudaSuccess &&
           numfmt::cuda::encode<numfmt::bf16>(source, 1, codes).ok() &&
           cudaMemcpy(&code, codes, sizeof code, cudaMemcpyDeviceToHost) == cudaSuccess;
}

int main() {
    const float pi = 3.14159274f;
    numfmt::bf16 x(pi);  // 3.140625
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) {
        std::uint16_t code = 0;
        if (!encode_on_device(pi, code)) {
            std::puts("numfmt::cuda::encode failed");
            return 1;
        }
        x = numfmt::bf16::from_bits(code);
    }
    std::printf("numfmt %d.%d.%d: %.9g\n", NUMFMT_VERSION_MAJOR, NUMFMT_VERSION_MINOR, NUMFMT_VERSION_PATCH,
                static_cast<double>(static_cast<float>(x)));
    return 0;
}
