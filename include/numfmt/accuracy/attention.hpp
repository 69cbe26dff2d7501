// SPDX-License-Identifier: MIT
// Decode attention of one query over any number of keys, tile by tile as kernels do it: scores, online softmax, P V,
// with the formats of Q, P and the cache and the accumulators of both products as parameters, down to the bits of
// Hopper's tensor cores.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "../accumulate/tensor_core.hpp"
#include "kv_cache.hpp"

namespace numfmt::accuracy {

/// How the sums of Q K and P V are formed, one chain per output over the head dimension (Q K) or the keys (P V).
enum class attention_accumulator : uint8_t {
    exact,                ///< double, scores, exponentials and denominator too
    fp32,                 ///< product and sum rounded to fp32 (one rounding where the product is exact)
    bf16,                 ///< fp32 and then bf16 after every product
    fp16,                 ///< the same in fp16; overflows at 65504
    hopper_16bit,         ///< Hopper's fp16 and bf16 tensor core, bit for bit: groups of 16
    hopper_fp8,           ///< Hopper's fp8 wgmma: groups of 32, 13 fraction bits; P V in one chain over all tiles
    hopper_fp8_promoted,  ///< the same, a tile's chain starting at zero and added to an fp32 sum
};

NUMFMT_FN const char* name_of(attention_accumulator a) noexcept {
    constexpr const char* names[] = {
        "exact", "fp32", "bf16", "fp16", "hopper_16bit", "hopper_fp8", "hopper_fp8_promoted"};
    return names[static_cast<int>(a)];
}
NUMFMT_FN bool is_tensor_core(attention_accumulator a) noexcept { return a >= attention_accumulator::hopper_16bit; }
/// Whether its operands are fp8 numbers.
NUMFMT_FN bool takes_fp8_only(attention_accumulator a) noexcept { return a >= attention_accumulator::hopper_fp8; }

/// What the probabilities exp(s - max) are rounded to before P V. fp8: times 2^shift first, saturated to 448.
enum class probability_format : uint8_t { fp32, bf16, fp8_e4m3 };

NUMFMT_FN const char* name_of(probability_format p) noexcept {
    constexpr const char* names[] = {"fp32", "bf16", "fp8_e4m3"};
    return names[static_cast<int>(p)];
}

struct attention_policy {
    attention_accumulator scores = attention_accumulator::fp32;
    attention_accumulator values = attention_accumulator::fp32;
    probability_format probabilities = probability_format::fp32;
    /// Of the query: fp32, bf16, fp16, or fp8_e4m3 with one scale for the query.
    kv_format query = kv_format::fp32;
    int probability_shift = 8;  ///< 8 as in FlashAttention-3, 0: e4m3 then loses what is below 2^-10 of the maximum
    bool rounding = true;       ///< false: neither Q nor P are rounded
};

/// A tile of the cache as one policy sees it: numbers before the float scales are applied (store_kv), keys also with
/// the head dimension outermost, both as tensor-core operands where a policy wants them.
struct attention_tile {
    int64_t keys = 0;
    int head_size = 0;
    std::vector<float> key, value;                               ///< [keys][head_size]
    std::vector<float> key_by_channel;                           ///< [head_size][keys]
    std::vector<float> key_scale, value_scale;                   ///< [keys]
    std::vector<accumulate::tensor_core_operand> key_operand;    ///< [keys][head_size]
    std::vector<accumulate::tensor_core_operand> value_operand;  ///< [head_size][keys]

    /// Fills the derived arrays from `key` and `value`.
    void finish(bool for_tensor_cores);
};

namespace detail {

/// The nearest number of 11 significant bits, which is as much as a tensor core's operand holds: bf16 and fp8 numbers
/// and normal fp16 numbers as they are.
inline accumulate::tensor_core_operand operand_of(float x) noexcept {
    return accumulate::to_operand<accumulate::tf32>(bit_cast<uint32_t>(round_mantissa(x, 10)));
}

template <float_format F> float rounded_to_format(float x) noexcept { return accumulate::round_to_format<F>(x); }

}  // namespace detail

inline void attention_tile::finish(bool for_tensor_cores) {
    const auto d = static_cast<size_t>(head_size), n = static_cast<size_t>(keys);
    key_by_channel.resize(d * n);
    for (size_t j = 0; j < n; ++j)
        for (size_t c = 0; c < d; ++c) key_by_channel[c * n + j] = key[j * d + c];
    if (!for_tensor_cores) return;
    key_operand.resize(n * d);
    value_operand.resize(n * d);
    for (size_t j = 0; j < n; ++j)
        for (size_t c = 0; c < d; ++c) {
            key_operand[j * d + c] = detail::operand_of(key[j * d + c]);
            value_operand[c * n + j] = detail::operand_of(value[j * d + c]);
        }
}

/// One query's walk over the keys. The running maximum, the denominator and the output are those of online softmax
/// (Milakov & Gimelshein, arXiv:1805.02867): a tile that raises the maximum first multiplies both by exp(old - new).
/// The denominator sums the unrounded probabilities in fp32, in 16 interleaved lanes per tile, as kernels keep it in
/// registers. A scale per key of V is multiplied into P, relative to the largest scale so far.
/// Beside V's channels a column of ones is accumulated the same way: what of the mass P V carries.
class attention_stream {
  public:
    /// `query` [head_size]; `scale` multiplies q k before the bias: 1 / sqrt(head_size) as a rule.
    attention_stream(const attention_policy& policy, const float* query, int head_size, double scale)
        : policy_(policy), d_(head_size), query_(query, query + head_size), scale_(scale) {
        if (policy.rounding) round_query();
        if (is_tensor_core(policy.scores)) {
            operands_.resize(static_cast<size_t>(d_));
            for (size_t c = 0; c < query_.size(); ++c) operands_[c] = detail::operand_of(query_[c]);
        }
        output_.assign(static_cast<size_t>(d_) + 1, 0.0f);
        exact_output_.assign(static_cast<size_t>(d_) + 1, 0.0);
    }

    /// The tile's keys in order; `bias` [keys] is added to the scaled scores (-infinity masks a key).
    void add(const attention_tile& t, const float* bias) {
        if (policy_.values == attention_accumulator::exact)
            add_exact(t, bias);
        else
            add_rounded(t, bias);
    }

    /// Takes in a stream over other keys: the split-KV merge, in fp32 (double for exact).
    void merge(const attention_stream& o) {
        if (!(o.maximum_ > lowest)) return;
        if (!(maximum_ > lowest)) {
            *this = o;
            return;
        }
        const double top = numfmt::detail::max(maximum_, o.maximum_);
        const double mine = std::exp(maximum_ - top), theirs = std::exp(o.maximum_ - top);
        if (policy_.values == attention_accumulator::exact) {
            exact_sum_ = exact_sum_ * mine + o.exact_sum_ * theirs;
            for (size_t c = 0; c < exact_output_.size(); ++c)
                exact_output_[c] = exact_output_[c] * mine + o.exact_output_[c] * theirs;
        } else {
            const float a = static_cast<float>(mine), b = static_cast<float>(theirs);
            sum_ = sum_ * a + o.sum_ * b;
            // Both outputs in units of the larger of the two value scales.
            const float unit = numfmt::detail::max(value_scale_, o.value_scale_);
            const float wa = a * (value_scale_ / unit), wb = b * (o.value_scale_ / unit);
            for (size_t c = 0; c < output_.size(); ++c) {
                const bool ones = c + 1 == output_.size();
                output_[c] = output_[c] * (ones ? a : wa) + o.output_[c] * (ones ? b : wb);
            }
            value_scale_ = unit;
        }
        maximum_ = top;
    }

    /// Output of channel c; 0 where every key was masked.
    double output(int c) const noexcept {
        if (!(maximum_ > lowest)) return 0;
        const auto i = static_cast<size_t>(c);
        if (policy_.values == attention_accumulator::exact) return exact_output_[i] / exact_sum_;
        const float inverse = 1.0f / sum_;
        return static_cast<double>(output_[i] * (inverse * value_scale_ * probability_unit()));
    }
    /// log sum exp of the scores; -infinity where every key was masked.
    double log_sum() const noexcept {
        if (!(maximum_ > lowest)) return -std::numeric_limits<double>::infinity();
        const bool exact = policy_.values == attention_accumulator::exact;
        return maximum_ + std::log(exact ? exact_sum_ : static_cast<double>(sum_));
    }
    /// The mass that P V carries over the denominator: 1 without errors.
    double mass_kept() const noexcept {
        if (!(maximum_ > lowest)) return 1;
        if (policy_.values == attention_accumulator::exact) return exact_output_.back() / exact_sum_;
        return static_cast<double>(output_.back() * probability_unit()) / static_cast<double>(sum_);
    }

  private:
    static constexpr double lowest = -std::numeric_limits<double>::infinity();

    void round_query() {
        if (policy_.query == kv_format::fp8_e4m3) {
            const float s = float_scale(kv_format::fp8_e4m3, amax_of(query_.data(), d_));
            std::vector<float> q(query_.size());
            detail::store<fp8_e4m3>(query_.data(), d_, s, {}, q.data());
            query_ = std::move(q);
            scale_ *= static_cast<double>(s);
        } else if (policy_.query == kv_format::bf16) {
            for (float& q : query_) q = detail::rounded_to_format<bf16>(q);
        } else if (policy_.query == kv_format::fp16) {
            for (float& q : query_) q = detail::rounded_to_format<fp16>(q);
        }
    }

    // 1 / 2^shift where P is stored as multiples of it.
    int shift() const noexcept {
        return policy_.probabilities == probability_format::fp8_e4m3 ? policy_.probability_shift : 0;
    }
    float probability_unit() const noexcept { return numfmt::detail::exact_pow2(-shift()); }

    // The dot products of the query with the tile's keys, unscaled.
    void dot_keys(const attention_tile& t) {
        const auto n = static_cast<size_t>(t.keys), d = static_cast<size_t>(d_);
        const auto by_channel = [&](auto&& round) {
            dots_.assign(n, 0.0f);
            float* NUMFMT_RESTRICT s = dots_.data();
            for (size_t c = 0; c < d; ++c) {
                const float q = query_[c];
                const float* NUMFMT_RESTRICT k = t.key_by_channel.data() + c * n;
                for (size_t j = 0; j < n; ++j)
                    s[j] = round(accumulate::rounded_add(s[j], accumulate::rounded_mul(q, k[j])));
            }
        };
        switch (policy_.scores) {
            case attention_accumulator::bf16:
                return by_channel([](float x) { return detail::rounded_to_format<bf16>(x); });
            case attention_accumulator::fp16:
                return by_channel([](float x) { return detail::rounded_to_format<fp16>(x); });
            case attention_accumulator::hopper_16bit:
            case attention_accumulator::hopper_fp8:
            case attention_accumulator::hopper_fp8_promoted: {
                dots_.resize(n);
                const auto m = model(policy_.scores);
                for (size_t j = 0; j < n; ++j)
                    dots_[j] = bit_cast<float>(
                        accumulate::tensor_core_dot(m, operands_.data(), t.key_operand.data() + j * d, d_));
                return;
            }
            default:
                return by_channel([](float x) { return x; });
        }
    }

    static constexpr accumulate::tensor_core_model model(attention_accumulator a) noexcept {
        return takes_fp8_only(a) ? accumulate::tensor_cores::hopper_wgmma_fp8 : accumulate::tensor_cores::hopper_16bit;
    }

    float rounded_probability(float p) const noexcept {
        if (policy_.probabilities == probability_format::fp32) return p;
        if (policy_.probabilities == probability_format::bf16)
            return policy_.rounding ? detail::rounded_to_format<bf16>(p) : p;
        const float t = p * numfmt::detail::exact_pow2(shift());
        return policy_.rounding ? detail::rounded_to_format<fp8_e4m3>(t) : t;
    }

    void add_rounded(const attention_tile& t, const float* bias) {
        const auto n = static_cast<size_t>(t.keys);
        dot_keys(t);
        float top = static_cast<float>(maximum_);
        for (size_t j = 0; j < n; ++j) {
            const float factor = static_cast<float>(scale_ * static_cast<double>(t.key_scale[j]));
            dots_[j] = dots_[j] * factor + bias[j];
            top = numfmt::detail::max(top, dots_[j]);
        }
        if (!(static_cast<double>(top) > lowest)) return;  // all masked so far
        float unit = maximum_ > lowest ? value_scale_ : 0.0f;
        for (size_t j = 0; j < n; ++j) unit = numfmt::detail::max(unit, t.value_scale[j]);
        if (maximum_ > lowest) {
            const float shrink = std::exp(static_cast<float>(maximum_) - top);
            const float rescale = shrink * (value_scale_ / unit);
            sum_ *= shrink;
            for (size_t c = 0; c + 1 < output_.size(); ++c) output_[c] = narrowed(output_[c] * rescale);
            output_.back() = narrowed(output_.back() * shrink);
        }
        maximum_ = static_cast<double>(top);
        value_scale_ = unit;

        probabilities_.resize(n);
        ones_.resize(n);
        accumulate::interleaved<accumulate::sequential<float>, 16> tile_sum;
        for (size_t j = 0; j < n; ++j) {
            const float p = std::exp(dots_[j] - top);
            tile_sum.add(p);
            probabilities_[j] = rounded_probability(p * (t.value_scale[j] / unit));
            ones_[j] = t.value_scale[j] == unit ? probabilities_[j] : rounded_probability(p);
        }
        sum_ += tile_sum.value();
        accumulate_values(t);
    }

    // An output that lives in a narrow accumulator is rounded to it after every rescaling too.
    float narrowed(float x) const noexcept {
        if (policy_.values == attention_accumulator::bf16) return detail::rounded_to_format<bf16>(x);
        if (policy_.values == attention_accumulator::fp16) return detail::rounded_to_format<fp16>(x);
        return x;
    }

    void accumulate_values(const attention_tile& t) {
        const auto n = static_cast<size_t>(t.keys), d = static_cast<size_t>(d_);
        const auto by_key = [&](auto&& round) {
            float* NUMFMT_RESTRICT o = output_.data();
            for (size_t j = 0; j < n; ++j) {
                const float p = probabilities_[j];
                const float* NUMFMT_RESTRICT v = t.value.data() + j * d;
                for (size_t c = 0; c < d; ++c)
                    o[c] = round(accumulate::rounded_add(o[c], accumulate::rounded_mul(p, v[c])));
                o[d] = round(accumulate::rounded_add(o[d], ones_[j]));
            }
        };
        switch (policy_.values) {
            case attention_accumulator::bf16:
                return by_key([](float x) { return detail::rounded_to_format<bf16>(x); });
            case attention_accumulator::fp16:
                return by_key([](float x) { return detail::rounded_to_format<fp16>(x); });
            case attention_accumulator::hopper_16bit:
            case attention_accumulator::hopper_fp8:
            case attention_accumulator::hopper_fp8_promoted:
                break;
            default:
                return by_key([](float x) { return x; });
        }
        probability_operands_.resize(n);
        one_operands_.resize(n, accumulate::to_operand<bf16>(0x3F80));
        const auto m = model(policy_.values);
        const bool promoted = policy_.values == attention_accumulator::hopper_fp8_promoted;
        const auto channel = [&](float& o, const accumulate::tensor_core_operand* v) {
            const uint32_t c = promoted ? 0u : bit_cast<uint32_t>(o);
            const float sum =
                bit_cast<float>(accumulate::tensor_core_dot(m, probability_operands_.data(), v, t.keys, c));
            o = promoted ? o + sum : sum;
        };
        for (size_t j = 0; j < n; ++j) probability_operands_[j] = detail::operand_of(probabilities_[j]);
        for (size_t c = 0; c < d; ++c) channel(output_[c], t.value_operand.data() + c * n);
        for (size_t j = 0; j < n; ++j) probability_operands_[j] = detail::operand_of(ones_[j]);
        channel(output_.back(), one_operands_.data());
    }

    void add_exact(const attention_tile& t, const float* bias) {
        const auto n = static_cast<size_t>(t.keys), d = static_cast<size_t>(d_);
        exact_dots_.assign(n, 0.0);
        double* NUMFMT_RESTRICT s = exact_dots_.data();
        for (size_t c = 0; c < d; ++c) {
            const double q = static_cast<double>(query_[c]);
            const float* NUMFMT_RESTRICT k = t.key_by_channel.data() + c * n;
            for (size_t j = 0; j < n; ++j) s[j] += q * static_cast<double>(k[j]);
        }
        double top = maximum_;
        for (size_t j = 0; j < n; ++j) {
            s[j] = s[j] * scale_ * static_cast<double>(t.key_scale[j]) + static_cast<double>(bias[j]);
            top = numfmt::detail::max(top, s[j]);
        }
        if (!(top > lowest)) return;
        if (maximum_ > lowest) {
            const double shrink = std::exp(maximum_ - top);
            exact_sum_ *= shrink;
            for (double& o : exact_output_) o *= shrink;
        }
        maximum_ = top;
        double* NUMFMT_RESTRICT o = exact_output_.data();
        for (size_t j = 0; j < n; ++j) {
            const double p = std::exp(s[j] - top);
            exact_sum_ += p;
            // P's format stays with an exact accumulator: rounding and accumulation are told apart.
            const double stored =
                policy_.rounding && policy_.probabilities != probability_format::fp32
                    ? static_cast<double>(rounded_probability(static_cast<float>(p)) * probability_unit())
                    : p;
            const double weight = stored * static_cast<double>(t.value_scale[j]);
            const float* NUMFMT_RESTRICT v = t.value.data() + j * d;
            for (size_t c = 0; c < d; ++c) o[c] += weight * static_cast<double>(v[c]);
            o[d] += stored;
        }
    }

    attention_policy policy_;
    int d_;
    std::vector<float> query_;
    double scale_;
    std::vector<accumulate::tensor_core_operand> operands_;

    double maximum_ = lowest;
    float sum_ = 0, value_scale_ = 1;
    double exact_sum_ = 0;
    std::vector<float> output_;  // the channels and the column of ones, in units of 2^-shift and of value_scale_
    std::vector<double> exact_output_;

    // Of the tile at hand.
    std::vector<float> dots_, probabilities_, ones_;
    std::vector<double> exact_dots_;
    std::vector<accumulate::tensor_core_operand> probability_operands_, one_operands_;
};

}  // namespace numfmt::accuracy
