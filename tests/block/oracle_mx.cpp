// SPDX-License-Identifier: MIT
// The schemes with power-of-two scales, and NVFP4, against the oracle, under every scale rule and order of operations.
#include <doctest/doctest.h>

#include "oracle_compare.hpp"

using namespace numfmt;

TEST_CASE_TEMPLATE_DEFINE("oracle: power-of-two scales", S, powers_of_two) {
    CHECK(block_test::compare_scheme<S>() == "");
}
TEST_CASE_TEMPLATE_APPLY(powers_of_two, block_test::schemes_of<block_test::part::power_of_two>);

TEST_CASE("oracle: two-level scales") {
    []<class... Ss>(const std::tuple<Ss...>&) {
        for_each(type_list<Ss...>{}, []<class S>() { CHECK(block_test::compare_scheme<S>() == ""); });
    }(block_test::schemes_of<block_test::part::two_level>{});
}
