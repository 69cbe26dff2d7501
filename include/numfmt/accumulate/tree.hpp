// SPDX-License-Identifier: MIT
// In which order partial sums meet: independent chains over the lanes of a vector, and trees over their results.
#pragma once

#include "../core/bits.hpp"

namespace numfmt::accumulate {

/// The order in which n partial results meet.
enum class tree : uint8_t {
    halves,  ///< i with i + ceil(n / 2), level by level: extracting vector halves, shuffling down a warp; the default
    neighbours,  ///< 2i with 2i + 1, level by level: horizontal additions
    in_order,    ///< 0 with 1, the result with 2, and so on
};

/// Merges parts[0 .. n), n >= 1, into parts[0]. What is left of the others is unspecified.
template <tree Tree, class Part> NUMFMT_FN void reduce(Part* parts, int n) noexcept {
    if constexpr (Tree == tree::in_order) {
        for (int i = 1; i < n; ++i) parts[0].merge(parts[i]);
    } else {
        while (n > 1) {
            const int half = (n + 1) / 2;
            for (int i = 0; i < n / 2; ++i) {
                if constexpr (Tree == tree::halves) {
                    parts[i].merge(parts[i + half]);
                } else {
                    if (i > 0) parts[i] = parts[2 * i];
                    parts[i].merge(parts[2 * i + 1]);
                }
            }
            if constexpr (Tree == tree::neighbours)
                if (n % 2 != 0) parts[half - 1] = parts[n - 1];
            n = half;
        }
    }
}

/// Lanes x Unroll independent accumulators: element i goes to lane i mod Lanes of vector (i div Lanes) mod Unroll, as a
/// loop over vectors with several accumulators takes them. The result merges the vectors, then the lanes, by `Tree`.
/// So a scalar loop gives the bits of a kernel with that shape.
template <class Policy, int Lanes, int Unroll = 1, tree Tree = tree::halves> class interleaved {
    static_assert(Lanes >= 1 && Unroll >= 1, "numfmt::accumulate::interleaved: at least one lane and one vector");

  public:
    using policy = Policy;
    using value_type = typename Policy::value_type;
    static constexpr int lanes = Lanes, unroll = Unroll;

    template <class X> NUMFMT_FN void add(X x) noexcept { chain_[advance()].add(x); }
    template <class X> NUMFMT_FN void add_product(X a, X b) noexcept { chain_[advance()].add_product(a, b); }

    /// Chain by chain; both sides should have taken a multiple of Lanes x Unroll elements, or the order is another one.
    NUMFMT_FN void merge(const interleaved& other) noexcept {
        for (int i = 0; i < Lanes * Unroll; ++i) chain_[i].merge(other.chain_[i]);
    }

    /// All chains merged into one accumulator.
    NUMFMT_FN Policy reduced() const noexcept {
        Policy lane[Lanes] = {};
        for (int l = 0; l < Lanes; ++l) {
            Policy part[Unroll] = {};
            for (int u = 0; u < Unroll; ++u) part[u] = chain_[u * Lanes + l];
            reduce<Tree>(part, Unroll);
            lane[l] = part[0];
        }
        reduce<Tree>(lane, Lanes);
        return lane[0];
    }
    NUMFMT_FN value_type value() const noexcept { return reduced().value(); }

  private:
    NUMFMT_FN int advance() noexcept {
        const int i = next_;
        next_ = i + 1 == Lanes * Unroll ? 0 : i + 1;
        return i;
    }

    Policy chain_[Lanes * Unroll] = {};
    int next_ = 0;
};

/// A balanced binary tree over runs of `Leaf` elements: the error grows with log2 of their number. Any number of
/// elements; O(log n) memory. Source: Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14
/// (1993).
template <class Policy, int Leaf = 1> class pairwise {
    static_assert(Leaf >= 1, "numfmt::accumulate::pairwise: a leaf holds at least one element");

  public:
    using policy = Policy;
    using value_type = typename Policy::value_type;

    template <class X> NUMFMT_FN void add(X x) noexcept {
        leaf_.add(x);
        count();
    }
    template <class X> NUMFMT_FN void add_product(X a, X b) noexcept {
        leaf_.add_product(a, b);
        count();
    }
    /// Adds the other's sum as one more, last, part.
    NUMFMT_FN void merge(const pairwise& other) noexcept {
        if (!other.empty()) carry(other.reduced());
    }
    /// The parts merged, the youngest (smallest) first.
    NUMFMT_FN Policy reduced() const noexcept {
        Policy sum = leaf_;
        bool any = in_leaf_ > 0;
        for (int level = 0; level < levels; ++level) {
            if ((occupied_ >> level & 1u) == 0) continue;
            Policy part = part_[level];
            if (any) part.merge(sum);
            sum = part;
            any = true;
        }
        return sum;
    }
    NUMFMT_FN value_type value() const noexcept { return reduced().value(); }

  private:
    static constexpr int levels = 40;

    NUMFMT_FN bool empty() const noexcept { return occupied_ == 0 && in_leaf_ == 0; }
    NUMFMT_FN void count() noexcept {
        if (++in_leaf_ < Leaf) return;
        carry(leaf_);
        leaf_ = Policy{};
        in_leaf_ = 0;
    }
    // A binary counter: two sums of 2^level leaves carry into one of 2^(level + 1). The last level takes what comes.
    NUMFMT_FN void carry(Policy part) noexcept {
        int level = 0;
        for (; level < levels - 1 && (occupied_ >> level & 1u) != 0; ++level) {
            Policy older = part_[level];
            older.merge(part);
            part = older;
            occupied_ &= ~(uint64_t{1} << level);
        }
        if ((occupied_ >> level & 1u) != 0) {
            part_[level].merge(part);
        } else {
            part_[level] = part;
            occupied_ |= uint64_t{1} << level;
        }
    }

    Policy leaf_ = {};
    Policy part_[levels] = {};
    uint64_t occupied_ = 0;
    int in_leaf_ = 0;
};

}  // namespace numfmt::accumulate
