// SPDX-License-Identifier: MIT
// quantize from, and dequantize to, float: every scheme on the device against the host.
#include "quantize_body.hpp"

using namespace numfmt_test;

TEST_CASE("quantize_float: every scheme, special blocks, tails, strides and scale layouts") {
    check_every_scheme<float>();
}
TEST_CASE("quantize_float: the options of every scheme") { check_options<float>(); }
