// SPDX-License-Identifier: MIT
// What the SIMD kernels share that does not depend on the target: policies as numbers, small tables, thresholds.
#pragma once

#include "../bf16.hpp"
#include "../core/codec.hpp"
#include "../core/philox.hpp"
#include "../fp16.hpp"

namespace numfmt::simd {

/// From this many bytes read and written on, results are written around the caches (non-temporal stores).
inline constexpr int64_t stream_threshold = int64_t{48} << 20;

namespace detail {

/// The policies of an encode as numbers, so that rounding is run-time data: rounded = (v + bias + (kept & odd)) >> n.
struct encode_constants {
    uint16_t bias = 0;           // 16-bit lanes: 256 is half a unit in the last place
    uint16_t odd = 0;            // 1 for ties to even
    uint32_t bias32 = 0;         // 32-bit lanes, formats with float's exponents and E8M0
    uint32_t half_mask = 0;      // 32-bit lanes, others: all ones for nearest roundings
    uint32_t below_half = 0;     // and 1 to round ties down, or to even with `odd`
    uint32_t next_exponent = 0;  // E8M0: from here on a subnormal float has code 1
    uint16_t cap = 0, infinity = 0, nan = 0, nan_sign = 0, zero_sign = 0;
    bool plain = false;  // Inf and finite overflow share a code, NaN has no sign, -0 is kept
};

/// Constants of Format for a rounding that the format has (stochastic included, which uses the caps alone).
template <class Format> constexpr encode_constants make_constants(rounding r, encode_options options) noexcept {
    constexpr float_spec s = Format::spec;
    const numfmt::detail::encode_plan plan = numfmt::detail::plan_encode<Format>(options);
    const bool nearest = r == rounding::nearest_even || r == rounding::nearest_away || r == rounding::nearest_to_zero;
    const bool overflows = nearest || r == rounding::up || r == rounding::nearest_up || r == rounding::stochastic;
    const uint32_t below = r == rounding::nearest_away ? 0u : 1u;
    encode_constants k;
    k.bias = static_cast<uint16_t>(nearest ? 256u - below : 0u);
    k.odd = r == rounding::nearest_even ? 1 : 0;
    k.half_mask = nearest ? ~uint32_t{0} : 0u;
    k.below_half = nearest ? below : 0u;
    if constexpr (s.has_zero) {
        k.bias32 = nearest ? (1u << (22 - s.mantissa_bits)) - below : 0u;
    } else {
        constexpr uint32_t one = 1u << 23, half = 1u << 22;
        k.bias32 = r == rounding::up ? one - 1u : r == rounding::nearest_up ? half : 0u;
        k.next_exponent = r == rounding::up ? half + 1u : r == rounding::nearest_up ? half + half / 2u : one;
    }
    k.cap = static_cast<uint16_t>(overflows ? plan.overflow_code : s.max_finite_code());
    k.infinity = static_cast<uint16_t>(plan.infinity_code);
    k.nan = static_cast<uint16_t>(plan.nan_code);
    k.nan_sign = static_cast<uint16_t>(plan.nan_sign_mask);
    k.zero_sign = static_cast<uint16_t>(plan.zero_sign_mask);
    k.plain = k.cap == k.infinity && k.nan_sign == 0 && k.zero_sign == s.sign_bit();
    return k;
}

/// Upper halves of the floats of a format's codes 0 .. 7 (zero and the subnormals come first), as bytes.
template <class Format> struct small_table {
    uint8_t bytes[16] = {};
    constexpr small_table() {
        for (uint32_t c = 0; c < 8; ++c) {
            const uint32_t bits = decode_bits<Format>(static_cast<typename Format::storage>(c));
            bytes[2 * c] = static_cast<uint8_t>(bits >> 16);
            bytes[2 * c + 1] = static_cast<uint8_t>(bits >> 24);
        }
    }
};

/// Byte planes of 16-bit results: the upper halves of the floats (Target float or bf16), or fp16 codes, of 128 codes.
template <class Format, class Target> struct plane_tables {
    alignas(64) uint8_t low[128] = {};
    alignas(64) uint8_t high[128] = {};
    constexpr plane_tables() {
        for (uint32_t c = 0; c < 128; ++c) {
            const auto code = static_cast<typename Format::storage>(c & Format::spec.code_mask());
            uint32_t bits = decode_bits<Format>(code) >> 16;
            if constexpr (numfmt::detail::is_same_v<Target, fp16>) bits = numfmt::encode<fp16>(Format::from_bits(code));
            low[c] = static_cast<uint8_t>(bits);
            high[c] = static_cast<uint8_t>(bits >> 8);
        }
    }
};

/// Byte planes of the upper halves of the floats -32 .. 31, by their six-bit two's complement.
struct signed6_planes {
    alignas(64) uint8_t low[64] = {};
    alignas(64) uint8_t high[64] = {};
    constexpr signed6_planes() {
        for (int i = 0; i < 64; ++i) {
            const uint32_t bits = bit_cast<uint32_t>(static_cast<float>(i < 32 ? i : i - 64));
            low[i] = static_cast<uint8_t>(bits >> 16);
            high[i] = static_cast<uint8_t>(bits >> 24);
        }
    }
};

/// Codes in units: which code stands at byte `i` so that unpacking within 128 bits gives results in order, 16 or 32
/// codes of each quarter at a time: unit k of each 16 bytes belongs to the k-th result vector.
template <int Unit> constexpr int unit_source(int i) noexcept {
    const int lane = i / 16, unit = i % 16 / Unit;
    return unit * 4 * Unit + lane * Unit + i % Unit;
}

/// Where the bytes of four vectors of 16 lanes stand after their lanes were merged in pairs (0 with 1, 2 with 3) and
/// _mm512_packus_epi16 narrowed the two merged vectors.
struct pack_order {
    uint8_t bytes[64] = {};
    constexpr pack_order() {
        for (int i = 0; i < 64; ++i) {
            const int vector = i / 16, lane = i % 16;
            bytes[i] = static_cast<uint8_t>(lane / 4 * 16 + vector / 2 * 8 + lane % 4 * 2 + vector % 2);
        }
    }
};

/// Bytes of 32 packed ones from which bits 4 j .. of each 64-bit lane are the lane's code j, in units (or in order:
/// Unit 64).
template <int Unit> struct nibble_index {
    uint8_t bytes[64] = {};
    constexpr nibble_index() {
        for (int i = 0; i < 64; ++i) {
            const int code = i / 8 * 8 + i % 4 * 2;
            bytes[i] = static_cast<uint8_t>((Unit == 64 ? code : unit_source<Unit>(code)) / 2);
        }
    }
};

/// Byte indices between 64 bytes whose every fourth is unused and 48 packed ones.
struct triple_pack_index {
    uint8_t bytes[64] = {};
    constexpr triple_pack_index() {
        for (int i = 0; i < 48; ++i) bytes[i] = static_cast<uint8_t>(i / 3 * 4 + i % 3);
    }
};
/// And back, the four codes of each three bytes in units (or in order: Unit 64).
template <int Unit> struct triple_unpack_index {
    uint8_t bytes[64] = {};
    constexpr triple_unpack_index() {
        for (int i = 0; i < 64; ++i) {
            const int group = (Unit == 64 ? i : unit_source<Unit>(i)) / 4;
            bytes[i] = static_cast<uint8_t>(i % 4 < 3 ? group * 3 + i % 4 : 63);
        }
    }
};

/// Calls f.template operator()<R>() for the run-time rounding `r`, which Format must have.
template <class Format, class F> constexpr void with_rounding(rounding r, F&& f) {
    using enum rounding;
    if constexpr (Format::spec.has_zero) {
        switch (r) {
            case nearest_away:
                return f.template operator()<nearest_away>();
            case nearest_to_zero:
                return f.template operator()<nearest_to_zero>();
            case toward_zero:
                return f.template operator()<toward_zero>();
            case stochastic:
                return f.template operator()<stochastic>();
            default:
                return f.template operator()<nearest_even>();
        }
    } else {
        switch (r) {
            case up:
                return f.template operator()<up>();
            case nearest_up:
                return f.template operator()<nearest_up>();
            default:
                return f.template operator()<down>();
        }
    }
}

/// The reference encode over an array with the rounding as data.
template <class Format, class Source>
NUMFMT_PER_ISA void reference_encode(const Source* x, int64_t n, typename Format::storage* codes, rounding r,
                                     encode_options options, uint64_t seed, uint64_t first) noexcept {
    with_rounding<Format>(r, [&]<rounding R>() {
        for (int64_t i = 0; i < n; ++i) {
            uint32_t draw = 0;
            if constexpr (R == rounding::stochastic) draw = random_word(seed, first + static_cast<uint64_t>(i));
            codes[i] = numfmt::encode<Format, R>(x[i], options, draw);
        }
    });
}

}  // namespace detail
}  // namespace numfmt::simd
