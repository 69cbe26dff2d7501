// SPDX-License-Identifier: MIT
// Half of a program of two halves: the same work, compiled once for a new CPU and once for an old one (UNIT is new or
// old).
#include <numfmt/simd/quantize-inl.h>
#include <numfmt/numfmt.hpp>

#include <cstdint>

namespace target = numfmt::simd::HWY_NAMESPACE;

#define NAME_OF(unit) work_of_##unit
#define NAME(unit) NAME_OF(unit)

// A checksum over codes and values of the reference and of this unit's own SIMD target.
std::uint64_t NAME(UNIT)(const float* x, std::int64_t n) {
    using namespace numfmt;
    std::uint64_t sum = 0;
    const auto add = [&sum](std::uint64_t v) { sum = sum * 6364136223846793005u + v; };
    std::uint8_t codes[1024];
    float y[1024];
    for_each(type_list<fp8_e4m3, fp8_e5m2, fp4_e2m1, e8m0>{}, [&]<class F>() {
        encode<F>(x, n, codes);
        decode<F>(codes, n, y);
        for (std::int64_t i = 0; i < n; ++i) add(codes[i]), add(bit_cast<std::uint32_t>(y[i]));
        target::encode_array<F>(x, n, codes, default_rounding_v<F>, {}, 0, 0);
        target::decode_array<F>(codes, n, y);
        for (std::int64_t i = 0; i < n; ++i) add(codes[i]), add(bit_cast<std::uint32_t>(y[i]));
    });
    for_each(type_list<mxfp4, nvfp4, awq_int4, block_fp8_1x128>{}, [&]<class S>() {
        auto q = quantized_tensor<S>::make({1, n}).value;
        (void)quantize(matrix_view<const float>{x, {1, n}}, q.view());
        (void)dequantize(q.view(), matrix_view<float>{y, {1, n}});
        for (std::int64_t i = 0; i < n; ++i) add(q.view().code(0, i)), add(bit_cast<std::uint32_t>(y[i]));
    });
    return sum;
}
