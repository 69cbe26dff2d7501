// SPDX-License-Identifier: MIT
// What a first user writes; prints a known value. Built in every way that the documentation offers.
#include <numfmt/bf16.hpp>

#ifdef CONSUMER_WITH_IO
#include <numfmt/io/safetensors.hpp>
#endif

#ifdef CONSUMER_WITH_SIMD
#include <numfmt/simd.hpp>
#endif

#include <cstdio>

#ifdef CONSUMER_WITH_SIMD
// A matrix to MXFP4 and back by the library numfmt::simd: the values and codes of the header-only reference?
static bool simd_works() {
    using namespace numfmt;
    float x[3 * 100], y[3 * 100], expected[3 * 100];
    for (int i = 0; i < 300; ++i) x[i] = static_cast<float>(i * 37 % 101 - 50) / 16;
    constexpr matrix_shape shape{3, 100};
    const auto q = simd::quantize<mxfp4>(matrix_view<const float>{x, shape});
    const auto reference = quantize<mxfp4>(matrix_view<const float>{x, shape});
    if (!q.ok() || !simd::dequantize(q.value.view(), matrix_view<float>{y, shape}).ok()) return false;
    if (!dequantize(reference.value.view(), matrix_view<float>{expected, shape}).ok()) return false;
    for (int i = 0; i < 300; ++i) {
        if (y[i] != expected[i] ||
            q.value.view().code(i / 100, i % 100) != reference.value.view().code(i / 100, i % 100))
            return false;
    }
    return y[1] != 0;
}
#endif

int main() {
#ifdef CONSUMER_WITH_SIMD
    if (!simd_works()) {
        std::puts("numfmt::simd differs from the reference");
        return 1;
    }
#endif
    const numfmt::bf16 x(3.14159274f);  // pi as bf16: 3.140625
    std::printf("numfmt %d.%d.%d: %.9g\n", NUMFMT_VERSION_MAJOR, NUMFMT_VERSION_MINOR, NUMFMT_VERSION_PATCH,
                static_cast<double>(static_cast<float>(x)));
    return 0;
}
