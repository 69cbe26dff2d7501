// SPDX-License-Identifier: MIT
// quantize from, and dequantize to, bf16: every scheme on the device against the host.
#include "quantize_body.hpp"

using namespace numfmt_test;

TEST_CASE("quantize_bf16: every scheme, special blocks, tails, strides and scale layouts") {
    check_every_scheme<numfmt::bf16>();
}
TEST_CASE("quantize_bf16: the options of every scheme") { check_options<numfmt::bf16>(); }
