// SPDX-License-Identifier: MIT
// The int4 schemes against the oracle, over every range rule.
#include <doctest/doctest.h>

#include "oracle_compare.hpp"

using namespace numfmt;

TEST_CASE_TEMPLATE_DEFINE("oracle: int4", S, int4_groups) { CHECK(block_test::compare_scheme<S>() == ""); }
TEST_CASE_TEMPLATE_APPLY(int4_groups, block_test::schemes_of<block_test::part::int4>);

TEST_CASE_TEMPLATE("oracle: int4 with other scales and an odd group", S, int4<32, bf16>, int4<3, float>,
                   int4_symmetric<5, float>) {
    CHECK(block_test::compare_scheme_briefly<S>() == "");
}
