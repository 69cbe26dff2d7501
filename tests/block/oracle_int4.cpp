// SPDX-License-Identifier: MIT
// The asymmetric int4 schemes against the oracle, over both ranges.
#include <doctest/doctest.h>

#include "oracle_compare.hpp"

using namespace numfmt;

TEST_CASE_TEMPLATE("oracle: int4", S, awq_int4, int4<64>, int4<32>) { CHECK(block_test::compare_scheme<S>() == ""); }

TEST_CASE_TEMPLATE("oracle: int4 with other scales and an odd group", S, int4<32, bf16>, int4<3, float>) {
    CHECK(block_test::compare_scheme_briefly<S>() == "");
}
