// SPDX-License-Identifier: MIT
// One function that exercises the whole codec and hashes the results, compiled into units with different flags and run
// in different floating-point environments: the hash must not change. No standard library and no test framework in
// here, so that a unit built with -ffast-math shares no inline function with the others.
#pragma once

#include <cstdint>

#include <numfmt/bf16.hpp>
#include <numfmt/e8m0.hpp>
#include <numfmt/fp16.hpp>
#include <numfmt/fp4.hpp>
#include <numfmt/fp6.hpp>
#include <numfmt/fp8.hpp>

namespace numfmt_test {

/// Results of single conversions that -ffast-math is known to break, computed from bit patterns at run time.
struct fragile_results {
    std::uint32_t nan_to_e4m3, nan_to_bf16, infinity_to_e4m3, subnormal_to_bf16, negative_zero_to_fp16;
    std::uint32_t bf16_round_trip;  // bits of float(bf16(1 + 2^-8 + 2^-9)): must be rounded
    std::uint32_t bf16_subnormal;   // bits of float(bf16 code 1)
    bool nan_equals_itself, nan_is_nan, infinity_is_finite;
};

// Defined in core/fastmath_codec.cpp, which is built with -ffast-math, and in core/environment.cpp, which is not.
std::uint64_t fast_math_hash(const std::uint32_t* floats, const std::uint64_t* doubles, int n);
fragile_results fast_math_results(const volatile std::uint32_t* float_bits);
bool built_with_fast_math();

namespace {  // a copy per unit, on purpose

class hasher {
  public:
    void add(std::uint32_t word) { state_ = (state_ ^ word) * 0x100000001B3u; }
    std::uint64_t value() const { return state_; }

  private:
    std::uint64_t state_ = 0xCBF29CE484222325u;
};

template <class Format, numfmt::rounding R> void hash_encodes(hasher& h, std::uint32_t f, std::uint64_t d) {
    using namespace numfmt;
    const float x = bit_cast<float>(f);
    const double y = bit_cast<double>(d);
    const encode_options options[] = {{}, {overflow::to_nonfinite, nan_mode::keep_sign, true}};
    for (const encode_options o : options) {
        h.add(encode<Format, R>(x, o, f));
        h.add(encode<Format, R>(y, o, f));
        h.add(encode<Format, R>(static_cast<std::int64_t>(d), o, f));
        if constexpr (Format::spec.has_zero) h.add(encode_scaled<Format, R>(x, static_cast<int>(d >> 56) - 128, o, f));
    }
}

template <class Format> void hash_format(hasher& h, std::uint32_t f, std::uint64_t d) {
    using namespace numfmt;
    if constexpr (Format::spec.has_zero) {
        hash_encodes<Format, rounding::nearest_even>(h, f, d);
        hash_encodes<Format, rounding::nearest_away>(h, f, d);
        hash_encodes<Format, rounding::nearest_to_zero>(h, f, d);
        hash_encodes<Format, rounding::toward_zero>(h, f, d);
        hash_encodes<Format, rounding::stochastic>(h, f, d);
    } else {
        hash_encodes<Format, rounding::down>(h, f, d);
        hash_encodes<Format, rounding::up>(h, f, d);
        hash_encodes<Format, rounding::nearest_up>(h, f, d);
    }
    const auto code = static_cast<typename Format::storage>(f >> 7);
    h.add(decode_bits<Format>(code));
    if constexpr (Format::spec.has_zero && Format::spec.bits() <= 8) {
        h.add(bit_cast<std::uint32_t>(decode_scaled<Format>(code, static_cast<int>(d >> 57) - 64)));
    }
    const Format a = Format::from_bits(code), b = Format::from_bits(static_cast<typename Format::storage>(d));
    h.add((a == b ? 1u : 0u) | (a < b ? 2u : 0u) | (a >= b ? 4u : 0u) | (is_nan(a) ? 8u : 0u) |
          (is_finite(b) ? 16u : 0u));
}

inline std::uint64_t codec_hash(const std::uint32_t* floats, const std::uint64_t* doubles, int n) {
    using namespace numfmt;
    hasher h;
    for (int i = 0; i < n; ++i) {
        hash_format<bf16>(h, floats[i], doubles[i]);
        hash_format<fp16>(h, floats[i], doubles[i]);
        hash_format<fp8_e4m3>(h, floats[i], doubles[i]);
        hash_format<fp8_e5m2>(h, floats[i], doubles[i]);
        hash_format<fp8_e4m3fnuz>(h, floats[i], doubles[i]);
        hash_format<fp8_ue4m3>(h, floats[i], doubles[i]);
        hash_format<fp6_e3m2>(h, floats[i], doubles[i]);
        hash_format<fp4_e2m1>(h, floats[i], doubles[i]);
        hash_format<e8m0>(h, floats[i], doubles[i]);
    }
    return h.value();
}

}  // namespace
}  // namespace numfmt_test
