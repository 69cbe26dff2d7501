// SPDX-License-Identifier: MIT
// All 2^32 floats through the bulk encode, every format and rounding, against the hashes that the host wrote to
// tests/golden/formats (the folder is the environment variable NUMFMT_GOLDEN_FORMATS or the compiled-in one).
#include "support.hpp"

#include <cstdlib>

#include <numfmt/cuda/codec.cuh>

#include "support/golden_hash_file.hpp"
#include "support/input_hash.hpp"

#ifndef NUMFMT_TEST_DATA_DIR
#define NUMFMT_TEST_DATA_DIR "tests/golden"
#endif

using namespace numfmt_test;
namespace nc = numfmt::cuda;

namespace {

constexpr int64_t batch = int64_t{1} << 28;

__global__ void fill(float* x, uint32_t first) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = __uint_as_float(first + i);
}
/// Adds the hash of 2^24 codes each; one row of blocks per hash.
template <int Bits> __global__ void hash(const uint8_t* codes, uint32_t first, unsigned long long* sums) {
    unsigned long long sum = 0;
    const uint32_t chunk = blockIdx.y;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < test::inputs_per_hash; i += gridDim.x * blockDim.x) {
        const uint32_t element = chunk * static_cast<uint32_t>(test::inputs_per_hash) + i;
        uint32_t code;
        if constexpr (Bits == 16)
            code = reinterpret_cast<const uint16_t*>(codes)[element];
        else
            code = unpack_one<Bits>(codes, element);
        sum += test::hash_term(first + element, code);
    }
    atomicAdd(&sums[(first >> 24) + chunk], sum);
}

}  // namespace

TEST_CASE("codec_hashes: all 2^32 floats, every format and rounding") {
    const char* folder = std::getenv("NUMFMT_GOLDEN_FORMATS");
    const std::string root = folder != nullptr ? folder : NUMFMT_TEST_DATA_DIR "/formats";
    const device_array<float> x(batch);
    device_array<uint8_t> codes(2 * batch);
    device_array<unsigned long long> sums(test::hashes_per_conversion);
    int compared = 0;
    for_each(all_formats{}, [&]<class Format>() {
        auto golden = test::read_golden_hashes(root + "/" + Format::name + ".txt");
        test::for_each_hashed_rounding<Format>([&]<rounding R>(const char* name) {
            check_cuda(cudaMemset(sums.data(), 0, sums.size() * 8));
            for (uint64_t first = 0; first < uint64_t{1} << 32; first += batch) {
                fill<<<batch / 256, 256>>>(x.data(), static_cast<uint32_t>(first));
                const nc::codec_options o{.seed = test::hash_seed, .offset = first};
                REQUIRE(nc::encode<Format, R>(x.data(), batch, codes.data(), o).ok());
                hash<nc::detail::stored_bits<Format>>
                    <<<dim3(64, batch >> 24), 256>>>(codes.data(), static_cast<uint32_t>(first), sums.data());
                check_cuda(cudaGetLastError());
            }
            const std::vector<unsigned long long> got = sums.host();
            REQUIRE(golden[name].size() == got.size());
            int wrong = 0;
            for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != golden[name][i];
            compared += static_cast<int>(got.size());
            CHECK_MESSAGE(wrong == 0, wrong, " of 256 hashes of ", std::string(Format::name), " ", std::string(name),
                          " differ");
        });
    });
    std::printf("%d hashes of 2^24 inputs compared\n", compared);
}
