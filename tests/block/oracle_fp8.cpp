// SPDX-License-Identifier: MIT
// The FP8 schemes with float scales against the oracle, in all shapes, layouts, roundings and sources.
#include <doctest/doctest.h>

#include "oracle_compare.hpp"

using namespace numfmt;

TEST_CASE_TEMPLATE_DEFINE("oracle: fp8 with float scales", S, float_scales) {
    CHECK(block_test::compare_scheme<S>() == "");
}
TEST_CASE_TEMPLATE_APPLY(float_scales, block_test::schemes_of<block_test::part::float_scale>);

TEST_CASE_TEMPLATE("oracle: fp8 blocks that no checkpoint uses", S, block_fp8<128, 128, bf16>, block_fp8<3, 5>) {
    CHECK(block_test::compare_scheme_briefly<S>() == "");
}
