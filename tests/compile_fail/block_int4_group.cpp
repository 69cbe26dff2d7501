// SPDX-License-Identifier: MIT
// int4 needs a group of at least one column.
// expect: numfmt::int4: the group size must be positive
#include <numfmt/int4.hpp>

#ifdef NUMFMT_COMPILE_FAIL
constexpr std::int64_t group = 0;
#else
constexpr std::int64_t group = 1;
#endif

constexpr double bits = numfmt::scheme_traits<numfmt::int4<group>>::bits_per_weight();
static_assert(bits > 4);
