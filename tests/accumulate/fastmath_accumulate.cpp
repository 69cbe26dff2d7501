// SPDX-License-Identifier: MIT
// Built with -ffast-math (the build adds the flag to fastmath_*.cpp): compensation must survive it.
#include "accumulate/accumulate_cases.hpp"

namespace numfmt_test {

std::uint64_t fast_math_accumulate_hash(const float* x, const float* y, const double* z, int n) {
    return accumulate_hash(x, y, z, n);
}

fragile_sums fast_math_fragile_sums(const float* x, const float* y, const float* large, int n) {
    using namespace numfmt::accumulate;
    return {sum<kahan<float>>(x, n), sum<neumaier<float>>(x, n), dot<dot2<float>>(x, y, n),
            sum<neumaier<float>>(large, n)};
}

bool accumulate_built_with_fast_math() {
#if defined(__FAST_MATH__)
    return true;
#else
    return false;
#endif
}

}  // namespace numfmt_test
