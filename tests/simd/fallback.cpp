// SPDX-License-Identifier: MIT
// Where Highway has only its scalar target, the kernels are the reference.
#define HWY_COMPILE_ONLY_SCALAR
#include <doctest/doctest.h>

#include <numfmt/simd/dequantize-inl.h>
#include <numfmt/simd/quantize-inl.h>
#include <numfmt/numfmt.hpp>

#include <cstring>

#include "inputs.hpp"

using namespace numfmt;
namespace scalar = numfmt::simd::HWY_NAMESPACE;

TEST_CASE("simd fallback: the scalar target gives the reference's bits") {
    static_assert(HWY_TARGET == HWY_SCALAR);
    const std::vector<float> x = numfmt_test::matrix(3, 100, numfmt_test::data::hard_blocks);
    std::vector<std::uint8_t> codes(x.size()), expected(x.size());
    scalar::encode_array<fp8_e4m3>(x.data(), 300, codes.data(), rounding::nearest_even, {}, 0, 0);
    encode<fp8_e4m3>(x.data(), 300, expected.data());
    CHECK(codes == expected);
    std::vector<float> y(x.size());
    scalar::decode_array<fp8_e4m3>(codes.data(), 300, y.data());
    for (std::size_t i = 0; i < y.size(); ++i) CHECK((std::isnan(y[i]) || y[i] == decode<fp8_e4m3>(codes[i])));

    const matrix_view<const float> view{x.data(), {3, 100}};
    for_each(type_list<mxfp4, awq_int4, fp8_per_channel>{}, [&]<class S>() {
        auto q = quantized_tensor<S>::make(view.shape).value;
        const auto reference = quantize<S>(view).value;
        scalar::quantize_rows<S>(view, q.view(), {}, rounding::nearest_even, {}, 0, q.view().scale_shape().rows);
        CHECK(std::memcmp(q.view().parts().codes, reference.view().parts().codes,
                          static_cast<std::size_t>(3 * scheme_traits<S>::code_row_bytes(100))) == 0);
    });
}
