// SPDX-License-Identifier: MIT
// A hash of a conversion over a range of float inputs that any backend can compute in any order: the sum, modulo 2^64,
// of mix(bits of the input) * (code + 1). Header of its own, host and device, so that every backend shares the
// definition.
#pragma once

#include <numfmt/core/philox.hpp>
#include <numfmt/numfmt.hpp>

namespace numfmt::test {

/// Inputs per hash: the floats with bits [i * 2^24, (i + 1) * 2^24). A test of the tools themselves takes only the
/// first few of each range.
#ifdef NUMFMT_TEST_INPUTS_PER_HASH
inline constexpr uint64_t inputs_per_hash = NUMFMT_TEST_INPUTS_PER_HASH;
#else
inline constexpr uint64_t inputs_per_hash = uint64_t{1} << 24;
#endif
inline constexpr int hashes_per_conversion = 256;
/// Stochastic rounding draws the word of element index = bits under this seed.
inline constexpr uint64_t hash_seed = 1;

/// An invertible scrambling of 32 bits ("lowbias32"), so that errors at neighbouring inputs cannot cancel in the sum.
NUMFMT_FN uint32_t mix(uint32_t x) noexcept {
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    x ^= x >> 16;
    return x;
}

NUMFMT_FN uint64_t hash_term(uint32_t bits, uint32_t code) noexcept { return uint64_t{mix(bits)} * (code + 1u); }

template <class Format, rounding R> NUMFMT_FN uint32_t hashed_code(uint32_t bits) noexcept {
    const uint32_t draw = R == rounding::stochastic ? random_word(hash_seed, bits) : 0u;
    return encode<Format, R>(bit_cast<float>(bits), {}, draw);
}

/// The hash of encode<Format, R> with default options over the chunk-th range of inputs.
template <class Format, rounding R> uint64_t hash_chunk(int chunk) noexcept {
    uint64_t sum = 0;
    const uint32_t first = static_cast<uint32_t>(chunk) << 24;
    for (uint32_t i = 0; i < inputs_per_hash; ++i) sum += hash_term(first + i, hashed_code<Format, R>(first + i));
    return sum;
}

/// fn.template operator()<R>(name of R) for every rounding of the format, in the order of the golden files.
template <class Format, class Fn> void for_each_hashed_rounding(Fn&& fn) {
    if constexpr (Format::spec.has_zero) {
        fn.template operator()<rounding::nearest_even>("nearest_even");
        fn.template operator()<rounding::nearest_away>("nearest_away");
        fn.template operator()<rounding::nearest_to_zero>("nearest_to_zero");
        fn.template operator()<rounding::stochastic>("stochastic");
    } else {
        fn.template operator()<rounding::down>("down");
        fn.template operator()<rounding::up>("up");
        fn.template operator()<rounding::nearest_up>("nearest_up");
    }
    fn.template operator()<rounding::toward_zero>("toward_zero");
}

}  // namespace numfmt::test
