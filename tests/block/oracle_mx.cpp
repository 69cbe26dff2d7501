// SPDX-License-Identifier: MIT
// The schemes with power-of-two scales against the oracle, under every scale rule.
#include <doctest/doctest.h>

#include "oracle_compare.hpp"

using namespace numfmt;

TEST_CASE_TEMPLATE("oracle: power-of-two scales", S, mxfp8_e4m3, mxfp8_e5m2, mxfp4, block_fp8<128, 128, e8m0>, block_fp8<1, 128, e8m0>) {
    CHECK(block_test::compare_scheme<S>() == "");
}
