// SPDX-License-Identifier: MIT
// Philox4x32-10, the counter-based generator of stochastic rounding and of reproducible test data.
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11.
#pragma once

#include "config.hpp"

namespace numfmt {

/// Four random 32-bit words.
struct philox_block {
    uint32_t word[4];
};

/// Philox4x32 with ten rounds: a bijection of the counter for every key.
NUMFMT_FN philox_block philox4x32_10(philox_block counter, uint32_t key0, uint32_t key1) noexcept {
    for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = uint64_t{0xD2511F53u} * counter.word[0];
        const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter.word[2];
        counter = {{static_cast<uint32_t>(p1 >> 32) ^ counter.word[1] ^ key0, static_cast<uint32_t>(p1),
                    static_cast<uint32_t>(p0 >> 32) ^ counter.word[3] ^ key1, static_cast<uint32_t>(p0)}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

/// The four words that elements 4 * group .. 4 * group + 3 draw under `seed`.
NUMFMT_FN philox_block random_words(uint64_t seed, uint64_t group) noexcept {
    return philox4x32_10({{static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32), 0u, 0u}},
                         static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

/// The word that element `index` draws under `seed`: word index & 3 of counter index >> 2. A function of the logical
/// position alone, so that any vector width, tiling or backend draws the same numbers.
NUMFMT_FN uint32_t random_word(uint64_t seed, uint64_t index) noexcept {
    return random_words(seed, index >> 2).word[index & 3u];
}

}  // namespace numfmt
