// SPDX-License-Identifier: MIT
// numfmt against the host functions of the CUDA headers (cuda_fp8.h, cuda_fp6.h, cuda_fp4.h): an oracle that shares no
// code with it. Host code only; needs the headers, no device. usage: cuda_headers [--all]      default: 2^24 inputs
// spread over all floats; --all: every one of the 2^32
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <numfmt/numfmt.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using namespace numfmt;

template <class Mine, class Theirs> bool compare(const char* what, bool all, Mine mine, Theirs theirs) {
    const uint64_t step = all ? 1 : 255;  // odd, so that every mantissa pattern occurs
    std::atomic<uint64_t> next{0}, wrong{0}, compared{0};
    std::atomic<uint32_t> first_wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
        threads.emplace_back([&] {
            for (uint64_t part = next++; part < 1024; part = next++) {
                const uint64_t begin = part << 22, end = (part + 1) << 22;
                uint64_t n = 0;
                for (uint64_t b = (begin + step - 1) / step * step; b < end; b += step, ++n) {
                    const uint32_t bits = static_cast<uint32_t>(b);
                    const float x = bit_cast<float>(bits);
                    if (mine(x) != theirs(x) && wrong++ == 0) first_wrong = bits;
                }
                compared += n;
            }
        });
    for (std::thread& t : threads) t.join();
    std::printf("%-44s %10llu inputs, %llu differ", what, static_cast<unsigned long long>(compared.load()),
                static_cast<unsigned long long>(wrong.load()));
    if (wrong > 0) std::printf(", for instance %08X", first_wrong.load());
    std::printf("\n");
    std::fflush(stdout);
    return wrong == 0;
}

constexpr encode_options saturate{.overflow = overflow::saturate}, nosat{.overflow = overflow::to_nonfinite};

}  // namespace

int main(int argc, char** argv) {
    const bool all = argc == 2 && std::strcmp(argv[1], "--all") == 0;
    if (argc > 2 || (argc == 2 && !all)) {
        std::fputs("usage: cuda_headers [--all]\n", stderr);
        return 2;
    }
    bool ok = true;
    ok &= compare(
        "fp8_e4m3 nearest_even saturate", all, [](float x) { return encode<fp8_e4m3>(x, saturate); },
        [](float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); });
    ok &= compare(
        "fp8_e4m3 nearest_even to_nonfinite", all, [](float x) { return encode<fp8_e4m3>(x, nosat); },
        [](float x) { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3); });
    ok &= compare(
        "fp8_e5m2 nearest_even saturate", all, [](float x) { return encode<fp8_e5m2>(x, saturate); },
        [](float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2); });
    ok &= compare(
        "fp8_e5m2 nearest_even to_nonfinite", all, [](float x) { return encode<fp8_e5m2>(x, nosat); },
        [](float x) { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2); });
    ok &= compare(
        "fp6_e2m3 nearest_even", all, [](float x) { return encode<fp6_e2m3>(x); },
        [](float x) { return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest); });
    ok &= compare(
        "fp6_e2m3 toward_zero", all, [](float x) { return encode<fp6_e2m3, rounding::toward_zero>(x); },
        [](float x) { return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundZero); });
    ok &= compare(
        "fp6_e3m2 nearest_even", all, [](float x) { return encode<fp6_e3m2>(x); },
        [](float x) { return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest); });
    ok &= compare(
        "fp6_e3m2 toward_zero", all, [](float x) { return encode<fp6_e3m2, rounding::toward_zero>(x); },
        [](float x) { return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundZero); });
    ok &= compare(
        "fp4_e2m1 nearest_even", all, [](float x) { return encode<fp4_e2m1>(x); },
        [](float x) { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); });
    ok &= compare(
        "fp4_e2m1 toward_zero", all, [](float x) { return encode<fp4_e2m1, rounding::toward_zero>(x); },
        [](float x) { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundZero); });
    ok &= compare(
        "e8m0 down saturate", all, [](float x) { return encode<e8m0>(x, saturate); },
        [](float x) { return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero); });
    ok &= compare(
        "e8m0 down to_nonfinite", all, [](float x) { return encode<e8m0>(x, nosat); },
        [](float x) { return __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cudaRoundZero); });
    ok &= compare(
        "e8m0 up saturate", all, [](float x) { return encode<e8m0, rounding::up>(x, saturate); },
        [](float x) { return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf); });
    ok &= compare(
        "e8m0 up to_nonfinite", all, [](float x) { return encode<e8m0, rounding::up>(x, nosat); },
        [](float x) { return __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cudaRoundPosInf); });
    return ok ? 0 : 1;
}
