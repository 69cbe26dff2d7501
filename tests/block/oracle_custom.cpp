// SPDX-License-Identifier: MIT
// Schemes that exist only here: six-bit codes, and two-dimensional blocks of packed codes whose rows end inside a byte.
// A scheme is a descriptor; nothing else is written for these.
#include <doctest/doctest.h>

#include "oracle_compare.hpp"

using namespace numfmt;

namespace {

struct e2m3_tag {
    using storage = uint8_t;
    static constexpr float_spec spec{.exponent_bits = 2, .mantissa_bits = 3, .bias = 1, .specials = special_values::finite};
    static constexpr const char* name = "e2m3";
};

template <class Element, int64_t Rows, int64_t Cols> struct test_scheme {
    static constexpr detail::fixed_name full_name =
        detail::fixed_name{}.add("test_").add(detail::is_same_v<Element, fp4_e2m1> ? "e2m1" : "e2m3").add("_").add(Rows).add("x").add(Cols);
    static constexpr const char* name = full_name.text;
    static constexpr const char* source = "this test";
    using element = Element;
    using scale = e8m0;
    static constexpr block_shape block{Rows, Cols};
    static constexpr bool has_zero_point = false;
    static constexpr bool has_tensor_scale = false;
};

using six_bits = minifloat<e2m3_tag>;

}  // namespace

TEST_CASE_TEMPLATE("oracle: six-bit codes and blocks that end inside a byte", S, test_scheme<six_bits, 1, 32>, test_scheme<six_bits, 2, 5>,
                   test_scheme<fp4_e2m1, 3, 7>) {
    CHECK(block_test::compare_scheme_briefly<S>() == "");
}

TEST_CASE("oracle: every scheme of the list is compared") {
    int known = 0;
    for_each(all_schemes{}, [&]<class S>() { known += block_oracle::facts_of(S::name).name.empty() ? 0 : 1; });
    CHECK(known == all_schemes::size);
}
