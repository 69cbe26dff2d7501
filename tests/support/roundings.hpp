// SPDX-License-Identifier: MIT
// The roundings that a format has.
#pragma once

#include <numfmt/core/codec.hpp>

namespace numfmt_test {

/// fn.template operator()<R>() for every rounding that Format has.
template <class Format, class Fn> void for_each_rounding(Fn&& fn) {
    using enum numfmt::rounding;
    if constexpr (Format::spec.has_zero) {
        fn.template operator()<nearest_even>();
        fn.template operator()<nearest_away>();
        fn.template operator()<nearest_to_zero>();
        fn.template operator()<toward_zero>();
        fn.template operator()<stochastic>();
    } else {
        fn.template operator()<down>();
        fn.template operator()<up>();
        fn.template operator()<nearest_up>();
        fn.template operator()<toward_zero>();
    }
}

}  // namespace numfmt_test
