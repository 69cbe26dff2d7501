// SPDX-License-Identifier: MIT
// Built with -ffast-math (the build adds the flag to fastmath_*.cpp): the codec must not notice.
#include "support/environment_cases.hpp"

namespace numfmt_test {

std::uint64_t fast_math_hash(const std::uint32_t* floats, const std::uint64_t* doubles, int n) {
    return codec_hash(floats, doubles, n);
}

fragile_results fast_math_results(const volatile std::uint32_t* float_bits) {
    using namespace numfmt;
    const auto at = [&](int i) { return bit_cast<float>(static_cast<std::uint32_t>(float_bits[i])); };
    const float nan = at(0), infinity = at(1), subnormal = at(2), negative_zero = at(3), tie_and_more = at(4);
    const bf16 quiet(nan);
    return {encode<fp8_e4m3>(nan),
            quiet.bits(),
            encode<fp8_e4m3>(infinity),
            encode<bf16>(subnormal),
            encode<fp16>(negative_zero),
            bit_cast<std::uint32_t>(static_cast<float>(bf16(tie_and_more))),
            bit_cast<std::uint32_t>(static_cast<float>(bf16::from_bits(1))),
            quiet == quiet,
            is_nan(quiet),
            is_finite(bf16(infinity))};
}

bool built_with_fast_math() {
#if defined(__FAST_MATH__)
    return true;
#else
    return false;
#endif
}

}  // namespace numfmt_test
