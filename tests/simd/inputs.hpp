// SPDX-License-Identifier: MIT
// Inputs of the SIMD tests: what decides a conversion (every exponent with mantissas at and beside every rounding
// position, every pattern of 16 bits), and matrices whose blocks are hard to quantize.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <numfmt/numfmt.hpp>

namespace numfmt_test {

/// Under emulation fewer combinations of policies; the decisive inputs stay.
#if defined(NUMFMT_TEST_REDUCED)
inline constexpr bool reduced = true;
#else
inline constexpr bool reduced = false;
#endif

/// Floats: both signs of every exponent with the mantissas 2^k and 3 * 2^k, each with its neighbours; and every upper
/// half with a lower half of 0, 1, half and half's neighbours. In a scrambled order, so that lanes differ.
inline std::vector<float> decisive_floats() {
    std::vector<std::uint32_t> bits;
    for (std::uint32_t high = 0; high < 512; ++high) {
        for (int k = 0; k < 23; ++k) {
            for (const std::uint32_t m : {1u << k, 3u << k}) {
                for (const std::uint32_t delta : {0xFFFFFFFFu, 0u, 1u})
                    bits.push_back(high << 23 | ((m + delta) & 0x7FFFFFu));
            }
        }
    }
    for (std::uint32_t upper = 0; upper < 65536; ++upper) {
        for (const std::uint32_t lower : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u}) bits.push_back(upper << 16 | lower);
    }
    std::mt19937 random(1);
    for (std::size_t i = bits.size(); i > 1; --i) std::swap(bits[i - 1], bits[random() % i]);
    std::vector<float> x(bits.size());
    std::memcpy(x.data(), bits.data(), bits.size() * sizeof(float));
    return x;
}

/// All 65,536 values of a 16-bit format.
template <class Half> std::vector<Half> all_halves() {
    std::vector<Half> x;
    for (std::uint32_t c = 0; c < 65536; ++c) x.push_back(Half::from_bits(static_cast<std::uint16_t>(c * 40503u)));
    return x;
}

enum class data { gaussian, every_exponent, hard_blocks, any_bits, ties };
inline constexpr data all_data[] = {data::gaussian, data::every_exponent, data::hard_blocks, data::any_bits,
                                    data::ties};

/// rows x cols values; hard_blocks: zeros, -0, subnormals, the largest floats, NaN, Inf, alone and in one row.
inline std::vector<float> matrix(std::int64_t rows, std::int64_t cols, data kind, unsigned seed = 1) {
    std::mt19937 random(seed + static_cast<unsigned>(kind));
    std::normal_distribution<float> normal;
    std::vector<float> x(static_cast<std::size_t>(rows * cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
        float v = normal(random);
        switch (kind) {
            case data::gaussian:
                break;
            case data::every_exponent:
                v = std::ldexp(v, static_cast<int>(random() % 250) - 126);
                break;
            case data::hard_blocks:
                switch (i / 32 % 9) {
                    case 0:
                        v = 0;
                        break;
                    case 1:
                        v = std::ldexp(v, -130);
                        break;
                    case 2:
                        v = std::ldexp(v / 8, 127);
                        break;
                    case 3:
                        v = i % 32 == 5 ? std::numeric_limits<float>::quiet_NaN() : v;
                        break;
                    case 4:
                        v = i % 32 == 7 ? -std::numeric_limits<float>::infinity() : v;
                        break;
                    case 5:
                        v = -0.0f;
                        break;
                    case 6:
                        v = std::fabs(v) + 1;
                        break;
                    default:
                        break;
                }
                break;
            case data::any_bits: {
                const std::uint32_t bits = static_cast<std::uint32_t>(random());
                std::memcpy(&v, &bits, sizeof v);
                break;
            }
            case data::ties:
                v = std::round(v * 4) / 8;
                break;
        }
        x[i] = v;
    }
    return x;
}

template <class T> std::vector<T> converted(const std::vector<float>& x) {
    std::vector<T> y;
    y.reserve(x.size());
    for (const float v : x) y.push_back(T(v));
    return y;
}

}  // namespace numfmt_test
