// SPDX-License-Identifier: MIT
// The schemes with power-of-two scales, and NVFP4, against the oracle, under every scale rule and order of operations.
#include <doctest/doctest.h>

#include "oracle_compare.hpp"

using namespace numfmt;

TEST_CASE_TEMPLATE("oracle: power-of-two scales", S, mxfp8_e4m3, mxfp8_e5m2, mxint8, mxfp6_e2m3, mxfp6_e3m2, mxfp4,
                   block_fp8<128, 128, e8m0>, block_fp8<1, 128, e8m0>) {
    CHECK(block_test::compare_scheme<S>() == "");
}

TEST_CASE("oracle: two-level scales") { CHECK(block_test::compare_scheme<nvfp4>() == ""); }
