// SPDX-License-Identifier: MIT
// Half of a program of two halves: the same work, compiled once for a new CPU and once for an old one (UNIT is new or
// old).
#include <numfmt/simd/quantize-inl.h>
#include <numfmt/numfmt.hpp>

#include "old_cpu.hpp"

namespace target = numfmt::simd::HWY_NAMESPACE;

#define NAME_OF(unit) work_of_##unit
#define NAME(unit) NAME_OF(unit)

// The formats and schemes are those of old_cpu_expected.cpp, n at most 1024.
unit_results NAME(UNIT)(const float* x, std::int64_t n) {
    using namespace numfmt;
    checksum reference, kernels;
    std::uint8_t codes[1024];
    float y[1024];
    for_each(type_list<fp8_e4m3, fp8_e5m2, fp4_e2m1, e8m0>{}, [&]<class F>() {
        encode<F>(x, n, codes);
        decode<F>(codes, n, y);
        for (std::int64_t i = 0; i < n; ++i) reference.add(codes[i], y[i]);
        target::encode_array<F>(x, n, codes, default_rounding_v<F>, {}, 0, 0);
        target::decode_array<F>(codes, n, y);
        for (std::int64_t i = 0; i < n; ++i) kernels.add(codes[i], y[i]);
    });
    const matrix_view<const float> view{x, {1, n}};
    for_each(type_list<mxfp4, nvfp4, awq_int4, block_fp8_1x128>{}, [&]<class S>() {
        auto q = quantized_tensor<S>::make({1, n}).value;
        const auto add = [&](checksum& sum) {
            (void)dequantize(q.view(), matrix_view<float>{y, {1, n}});
            for (std::int64_t i = 0; i < n; ++i) sum.add(q.view().code(0, i), y[i]);
        };
        (void)quantize(view, q.view());
        add(reference);
        // The kernels write everything but the tensor's scale.
        std::memset(q.view().parts().codes, 0xA5, static_cast<std::size_t>(scheme_traits<S>::code_row_bytes(n)));
        numfmt::detail::tensor_scale tensor;
        if constexpr (S::has_tensor_scale) {
            const auto range = target::range_of_rows<S>(view, 0, 1);
            tensor = numfmt::detail::choose_tensor_scale(range.amax, quantize_options{}.nvfp4_order);
        }
        target::quantize_rows<S>(view, q.view(), tensor, rounding::nearest_even, {}, 0, 1);
        add(kernels);
    });
    return {reference.value(), kernels.value()};
}
