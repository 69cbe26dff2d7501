// SPDX-License-Identifier: MIT
// The reference codec on a GPU: every format and rounding over all 2^32 floats against the hashes that the host wrote.
// usage: device_hashes FOLDER      FOLDER: tests/golden/formats; prints and exits with 77 where there is no device
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "support/golden_hash_file.hpp"
#include "support/input_hash.hpp"

namespace {

using namespace numfmt;

// One block per 2^24 inputs and 256 of them; the sum does not depend on the order.
template <class Format, rounding R> __global__ void hash_kernel(unsigned long long* sums) {
    const uint32_t chunk = blockIdx.y;
    unsigned long long sum = 0;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < test::inputs_per_hash; i += gridDim.x * blockDim.x) {
        const uint32_t bits = chunk << 24 | i;
        sum += test::hash_term(bits, test::hashed_code<Format, R>(bits));
    }
    atomicAdd(&sums[chunk], sum);
}

bool ok(cudaError_t e, const char* what) {
    if (e != cudaSuccess) std::fprintf(stderr, "device_hashes: %s: %s\n", what, cudaGetErrorString(e));
    return e == cudaSuccess;
}

int compared = 0, wrong = 0;

template <class Format, rounding R> void check(const std::string& folder, const char* rounding_name) {
    unsigned long long* sums = nullptr;
    constexpr size_t bytes = test::hashes_per_conversion * sizeof(*sums);
    std::vector<unsigned long long> got(test::hashes_per_conversion);
    bool fine = ok(cudaMalloc(&sums, bytes), "cudaMalloc") && ok(cudaMemset(sums, 0, bytes), "cudaMemset");
    if (fine) {
        hash_kernel<Format, R><<<dim3(16, test::hashes_per_conversion), 256>>>(sums);
        fine = ok(cudaGetLastError(), "launch") &&
               ok(cudaMemcpy(got.data(), sums, bytes, cudaMemcpyDeviceToHost), "kernel");
    }
    cudaFree(sums);
    std::vector<uint64_t> golden;
    try {
        golden = test::read_golden_hashes(folder + "/" + Format::name + ".txt")[rounding_name];
    } catch (const std::exception& e) {
        std::puts(e.what());
    }
    if (!fine || golden.size() != got.size()) {
        std::printf("FAILED %s %s: %s\n", Format::name, rounding_name, fine ? "no 256 golden hashes" : "CUDA error");
        ++wrong;
        return;
    }
    int differ = 0;
    for (size_t i = 0; i < got.size(); ++i) differ += got[i] != golden[i];
    compared += static_cast<int>(got.size());
    wrong += differ;
    std::printf("%s %s: %d of 256 hashes differ\n", Format::name, rounding_name, differ);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: device_hashes FOLDER\n", stderr);
        return 2;
    }
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("SKIPPED: no CUDA device");
        return 77;
    }
    const std::string folder = argv[1];
    for_each(all_formats{}, [&]<class F>() {
        test::for_each_hashed_rounding<F>([&]<rounding R>(const char* name) { check<F, R>(folder, name); });
    });
    std::printf("%d hashes of 2^24 inputs compared on the device, %d wrong\n", compared, wrong);
    return wrong == 0 && compared > 0 ? 0 : 1;
}
