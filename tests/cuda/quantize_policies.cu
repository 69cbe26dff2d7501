// SPDX-License-Identifier: MIT
// Roundings other than nearest even, stochastic included, the arguments of quantize and dequantize, and schemes that a
// user defines.
#include "quantize_body.hpp"

using namespace numfmt_test;

TEST_CASE("quantize_policies: stochastic rounding draws by logical position, whatever the scheme and stride") {
    for_each(all_schemes{}, [&]<class S>() {
        differences d;
        for (const matrix_shape shape : {matrix_shape{1, 1000}, matrix_shape{130, 136}, matrix_shape{7, 77}})
            for (int kind = 0; kind < 4; ++kind)
                compare<S, rounding::stochastic, float>(shape, kind, {.seed = 12345678901u, .offset = 3},
                                                        {.x_extra = 4}, d);
        NUMFMT_CHECK_NONE(d);
    });
}
TEST_CASE("quantize_policies: the other roundings") {
    const auto check = [&]<class S>(S) {
        differences d;
        for (int kind = 0; kind < 4; ++kind) {
            compare<S, rounding::nearest_away, bf16>({5, 300}, kind, {}, {}, d);
            compare<S, rounding::nearest_to_zero, bf16>({5, 300}, kind, {}, {}, d);
            compare<S, rounding::toward_zero, bf16>({5, 300}, kind, {}, {}, d);
        }
        NUMFMT_CHECK_NONE(d);
    };
    check(mxfp4{});
    check(mxfp6_e3m2{});
    check(mxint8{});
    check(nvfp4{});
    check(block_fp8_1x128{});
    check(awq_int4{});
}
TEST_CASE("quantize_policies: block sizes and scale types of a user") {
    const auto check = [&]<class S>(S) {
        differences d;
        for (const matrix_shape shape : {matrix_shape{70, 200}, matrix_shape{1, 1}, matrix_shape{3, 4100}})
            for (int kind = 0; kind < 4; ++kind) compare<S, rounding::nearest_even, float>(shape, kind, {}, {}, d);
        NUMFMT_CHECK_NONE(d);
    };
    check(block_fp8<64, 64>{});
    check(block_fp8<1, 100, bf16>{});
    check(block_fp8<3, whole>{});
    check(block_fp8<whole, 32>{});
    check(numfmt::int4<256, float>{});
    check(numfmt::int4<16, bf16>{});
}
TEST_CASE("quantize_policies: bad arguments give a status and write nothing") {
    device_array<float> x(256);
    device_array<uint8_t> codes(256), scales(8), memory(64);
    device_array<float> tensor(1);
    view_parts<mxfp4> p;
    p.codes = codes.data(), p.scales = scales.data(), p.shape = {4, 64};
    const auto q = quantized_view<mxfp4>::make(p).value;
    const auto code = [](const nc::launch_result& r) { return r.status.code; };
    CHECK(nc::quantize(matrix_view<float>{x.data(), {4, 63}}, q).status ==
          status{status_code::shape_mismatch, "", 63, 64});
    CHECK(code(nc::quantize(matrix_view<float>{nullptr, {4, 64}}, q)) == status_code::null_pointer);
    CHECK(code(nc::quantize(matrix_view<float>{x.data(), {4, 64}, 63}, q)) == status_code::too_small);
    CHECK(code(nc::dequantize(q, matrix_view<float>{x.data(), {3, 64}})) == status_code::shape_mismatch);
    view_parts<nvfp4> n;
    n.codes = codes.data(), n.scales = scales.data(), n.shape = {1, 64}, n.tensor_scale = tensor.data();
    const auto two_level = quantized_view<nvfp4>::make(n).value;
    const matrix_view<float> in{x.data(), {1, 64}};
    CHECK(nc::quantize(in, two_level).status == status{status_code::null_pointer, "workspace"});
    CHECK(nc::quantize(in, two_level, {}, {memory.data(), 16}).status ==
          status{status_code::too_small, "workspace", 16, static_cast<int64_t>(nc::quantize_workspace_size<nvfp4>())});
    CHECK(code(nc::quantize(in, two_level, {}, {memory.data() + 8, 56})) == status_code::misaligned);
    view_parts<numfmt::int4<20>> odd;
    device_array<uint16_t> half(4);
    device_array<uint8_t> zeros(2);
    odd.codes = codes.data(), odd.scales = half.data(), odd.shape = {1, 64}, odd.zeros = zeros.data();
    CHECK(code(nc::quantize(in, quantized_view<numfmt::int4<20>>::make(odd).value)) == status_code::unsupported);
    CHECK(codes.intact());
    for (const uint8_t c : codes.host()) CHECK(c == 0xA5);
    view_parts<mxfp4> empty;
    empty.codes = codes.data(), empty.scales = scales.data(), empty.shape = {0, 64};
    CHECK(nc::quantize(matrix_view<float>{x.data(), {0, 64}}, quantized_view<mxfp4>::make(empty).value).ok());
}
