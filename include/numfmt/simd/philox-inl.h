// SPDX-License-Identifier: MIT
// The random words of stochastic rounding in vectors, compiled once per target: the same words as core/philox.hpp.
#if defined(NUMFMT_SIMD_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMFMT_SIMD_PHILOX_INL_H_
#undef NUMFMT_SIMD_PHILOX_INL_H_
#else
#define NUMFMT_SIMD_PHILOX_INL_H_
#endif

#include "../core/philox.hpp"
#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numfmt {
namespace simd {
namespace HWY_NAMESPACE {
namespace {  // a unit may be built for more than its target: its functions stay its own

#if HWY_TARGET != HWY_SCALAR

/// Random words of consecutive elements, in batches: element `index` draws word index & 3 of Philox counter index >> 2.
class draws {
  public:
    HWY_INLINE draws(uint64_t seed, uint64_t first) : seed_(seed), index_(first), end_(first & ~uint64_t{3}) {}

    /// The words of the next Lanes(D32()) elements.
    HWY_INLINE V32 next() {
        const D32 d;
        const uint64_t lanes = hn::Lanes(d);
        while (end_ - index_ < lanes || end_ < index_) refill();
        const V32 v = hn::LoadU(d, buffer_ + (index_ - begin_));
        index_ += lanes;
        return v;
    }
    /// Skips back or forth to element `index`; anything drawn before is forgotten.
    HWY_INLINE void seek(uint64_t index) {
        index_ = index;
        end_ = index & ~uint64_t{3};
    }

  private:
    // Keeps what is left and draws four vectors of words behind it.
    HWY_NOINLINE void refill() {
        const D32 d;
        const size_t lanes = hn::Lanes(d);
        const size_t left = end_ > index_ ? static_cast<size_t>(end_ - index_) : 0;
        if (left > 0) std::memmove(buffer_, buffer_ + (index_ - begin_), left * sizeof(uint32_t));
        // At the very beginning index_ may be up to three words past end_, inside the group drawn now.
        begin_ = left > 0 ? index_ : end_;
        draw(end_ >> 2, buffer_ + left);
        end_ += 4 * lanes;
    }

    HWY_INLINE void draw(uint64_t group, uint32_t* HWY_RESTRICT words) const {
        const D32 d;
        const size_t lanes = hn::Lanes(d);
        const uint32_t low = static_cast<uint32_t>(group);
        if (low + static_cast<uint32_t>(lanes) < low) {  // the counter's lower word wraps inside the batch
            for (size_t i = 0; i < lanes; ++i) {
                const philox_block b = random_words(seed_, group + i);
                std::memcpy(words + 4 * i, b.word, sizeof b.word);
            }
            return;
        }
        V32 c0 = hn::Iota(d, low), c1 = hn::Set(d, static_cast<uint32_t>(group >> 32)), c2 = hn::Zero(d),
            c3 = hn::Zero(d);
        uint32_t key0 = static_cast<uint32_t>(seed_), key1 = static_cast<uint32_t>(seed_ >> 32);
        for (int round = 0; round < 10; ++round) {
            V32 high0 = c0, high1 = c2;
            const V32 low0 = multiply(c0, 0xD2511F53u, high0);
            const V32 low1 = multiply(c2, 0xCD9E8D57u, high1);
            c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, key0));
            c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, key1));
            c1 = low1;
            c3 = low0;
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
        hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
    }

    // The lower words of v * factor; `high` receives the upper ones.
    static HWY_INLINE V32 multiply(V32 v, uint32_t factor, V32& high) {
        const D32 d;
        const hn::RepartitionToWide<D32> d64;
        const V32 f = hn::Set(d, factor);
        const auto even = hn::MulEven(v, f);
        const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, v))), f);
        high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
        return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
    }

    uint64_t seed_, index_, end_;  // end_: first element not drawn yet, a multiple of 4
    uint64_t begin_ = 0;           // element of buffer_[0]
    alignas(64) uint32_t buffer_[4 * 16 + 16 + 4] = {};
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace numfmt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
