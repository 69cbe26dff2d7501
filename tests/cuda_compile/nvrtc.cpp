// SPDX-License-Identifier: MIT
// Core, formats and cuda/convert.cuh under NVRTC, which has no standard headers. libnvrtc is loaded at run time; exit
// code 77 and a message where there is none.
// usage: nvrtc INCLUDE_DIR [LIBRARY]
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <string>

namespace {

const char* const source = R"(
#include <numfmt/core/philox.hpp>
#include <numfmt/core/status.hpp>
#include <numfmt/bf16.hpp>
#include <numfmt/e8m0.hpp>
#include <numfmt/fp16.hpp>
#include <numfmt/fp4.hpp>
#include <numfmt/fp6.hpp>
#include <numfmt/fp8.hpp>
#include <numfmt/cuda/convert.cuh>

using namespace numfmt;

extern "C" __global__ void kernel(const unsigned* in, unsigned* out, float* y, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    const auto pairs = cuda::decode8<fp4_e2m1, bf16>(in[i]);
    const auto four = cuda::decode4<fp8_e4m3, fp16>(in[i]);
    float f[8];
    cuda::to_float<bf16>(pairs, f);
    out[i] = cuda::encode8_e2m1(f) + four[0] + random_word(1, static_cast<uint64_t>(i));
    y[i] = static_cast<float>(fp8_e5m2(f[0])) + decode<e8m0>(encode<e8m0>(f[1])) +
           decode<fp6_e2m3>(encode<fp6_e2m3, rounding::stochastic>(f[2], {}, in[i]));
}
)";

template <class F> F find(void* library, const char* name) { return reinterpret_cast<F>(dlsym(library, name)); }

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: nvrtc INCLUDE_DIR [LIBRARY]\n", stderr);
        return 2;
    }
    void* library = nullptr;
    for (const char* name : {argc > 2 ? argv[2] : "", "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"})
        if (library == nullptr && name[0] != '\0') library = dlopen(name, RTLD_NOW);
    if (library == nullptr) {
        std::puts("SKIPPED: libnvrtc is not installed");
        return 77;
    }
    using program = void*;
    const auto create = find<int (*)(program*, const char*, const char*, int, const char* const*, const char* const*)>(
        library, "nvrtcCreateProgram");
    const auto compile = find<int (*)(program, int, const char* const*)>(library, "nvrtcCompileProgram");
    const auto log_size = find<int (*)(program, std::size_t*)>(library, "nvrtcGetProgramLogSize");
    const auto get_log = find<int (*)(program, char*)>(library, "nvrtcGetProgramLog");
    const auto cubin_size = find<int (*)(program, std::size_t*)>(library, "nvrtcGetCUBINSize");
    if (create == nullptr || compile == nullptr || log_size == nullptr || get_log == nullptr || cubin_size == nullptr) {
        std::puts("nvrtc: the library lacks a function");
        return 1;
    }
    int failures = 0;
    const std::string include = std::string("-I") + argv[1];
    for (const char* arch : {"-arch=sm_80", "-arch=sm_90a", "-arch=sm_100a"}) {
        for (const char* math : {"-use_fast_math", "-fmad=true"}) {
            program p = nullptr;
            const char* const options[] = {"-std=c++20", include.c_str(), arch, math};
            const bool ok = create(&p, source, "test.cu", 0, nullptr, nullptr) == 0 && compile(p, 4, options) == 0;
            std::size_t size = 0;
            if (p != nullptr && log_size(p, &size) == 0 && size > 1) {
                std::string log(size, '\0');
                get_log(p, log.data());
                std::printf("%s %s:\n%s\n", arch, math, log.c_str());
                if (ok && log.find("warning") != std::string::npos) ++failures;
            }
            std::size_t bytes = 0;
            if (!ok || cubin_size(p, &bytes) != 0 || bytes == 0) {
                std::printf("nvrtc %s %s: FAILED\n", arch, math);
                ++failures;
            } else {
                std::printf("nvrtc %s %s: %zu bytes of machine code\n", arch, math, bytes);
            }
        }
    }
    return failures == 0 ? 0 : 1;
}
