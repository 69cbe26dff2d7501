// SPDX-License-Identifier: MIT
// Runs a test body once for every instruction set that is compiled in and that this CPU has.
#pragma once

#include <doctest/doctest.h>

#include <numfmt/simd.hpp>

#include <string>

namespace numfmt_test {

/// fn() under each usable target in turn, the target's name in every message.
template <class Fn> void for_each_target(Fn&& fn) {
    const std::int64_t usable = numfmt::simd::detail::usable_targets();
    int tested = 0;
    for (std::int64_t rest = usable; rest != 0; rest &= rest - 1) {
        numfmt::simd::detail::use_targets(rest & -rest);
        INFO(std::string(numfmt::simd::target_name()));
        fn();
        ++tested;
    }
    numfmt::simd::detail::use_targets(0);
    CHECK(tested > 0);
}

}  // namespace numfmt_test
