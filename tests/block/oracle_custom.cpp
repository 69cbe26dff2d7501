// SPDX-License-Identifier: MIT
// Schemes that exist only here: two-dimensional blocks of packed codes whose rows end inside a byte.
// A scheme is a descriptor; nothing else is written for these.
#include <doctest/doctest.h>

#include "oracle_compare.hpp"

using namespace numfmt;

namespace {

template <class Element, int64_t Rows, int64_t Cols> struct test_scheme : block_scheme<Element, e8m0, Rows, Cols> {
    static constexpr detail::fixed_name full_name = detail::fixed_name{}
                                                        .add("test_")
                                                        .add(detail::is_same_v<Element, fp4_e2m1> ? "e2m1" : "e2m3")
                                                        .add("_")
                                                        .add(Rows)
                                                        .add("x")
                                                        .add(Cols);
    static constexpr const char* name = full_name.text;
    static constexpr const char* source = "this test";
};

}  // namespace

TEST_CASE_TEMPLATE("oracle: blocks that end inside a byte", S, test_scheme<fp6_e2m3, 2, 5>,
                   test_scheme<fp4_e2m1, 3, 7>) {
    CHECK(block_test::compare_scheme_briefly<S>() == "");
}

TEST_CASE("oracle: every scheme of the list is compared") {
    using enum block_test::part;
    CHECK(std::tuple_size_v<block_test::schemes_of<float_scale>> +
              std::tuple_size_v<block_test::schemes_of<power_of_two>> +
              std::tuple_size_v<block_test::schemes_of<two_level>> + std::tuple_size_v<block_test::schemes_of<int4>> ==
          all_schemes::size);
    int known = 0;
    for_each(all_schemes{}, [&]<class S>() { known += block_oracle::facts_of(S::name).name == S::name ? 1 : 0; });
    CHECK(known == all_schemes::size);
}
