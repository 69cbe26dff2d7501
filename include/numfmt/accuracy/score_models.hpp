// SPDX-License-Identifier: MIT
// Attention problems of any length, made tile by tile: queries, keys and values in which one thing is known exactly or
// in expectation: how much of the softmax lies where.
#pragma once

#include <cmath>
#include <vector>

#include "inputs.hpp"

namespace numfmt::accuracy {

/// Where the mass of the softmax lies.
enum class score_model : uint8_t {
    gaussian,  ///< on all keys: scores are normal with the problem's deviation
    sink,      ///< a share on the first key, whose value is nearly zero and whose key has outlier channels
    needle,    ///< a share on one key that holds the answer
    passage,   ///< the same share spread over consecutive keys that all hold the answer
    recency,   ///< on the last keys: a score falls by ln 2 every half_life keys
};
inline constexpr int score_model_count = 5;

NUMFMT_FN const char* name_of(score_model m) noexcept {
    constexpr const char* names[score_model_count] = {"gaussian", "sink", "needle", "passage", "recency"};
    return names[static_cast<int>(m)];
}

/// One KV head and the queries that share it.
struct attention_problem {
    score_model model = score_model::gaussian;
    int64_t keys = 1024;
    int head_size = 128;
    int group = 1;  ///< queries that share the head (GQA)
    uint64_t seed = 0;
    uint64_t head = 0;     ///< part of the seed: heads are independent
    double amplitude = 1;  ///< standard deviation of keys and values; queries are divided by it, so scores keep theirs
    double score_deviation = 1;  ///< of q k / sqrt(head_size) over the ordinary keys, in nats
    double value_mean = 0.3;     ///< deviation of the values' channel means over that of the values around them
    double margin = 0;   ///< log odds of the sink's, needle's or passage's share: 0 is half of the softmax, -5 is 0.7 %
    double depth = 0.5;  ///< where needle and passage begin: 0 the first key, 1 as late as they fit
    double passage_share = 1.0 / 16;  ///< of the keys
    int64_t half_life = 2048;         ///< of recency, in keys

    /// Of the passage of one query; 1 for the needle, 0 without an answer.
    int64_t answer_keys() const noexcept {
        if (model == score_model::needle) return 1;
        if (model != score_model::passage) return 0;
        return numfmt::detail::max(int64_t{1}, static_cast<int64_t>(passage_share * static_cast<double>(keys)));
    }
    /// First key of the answer to query g. The group's answers follow one another.
    int64_t answer_begin(int g) const noexcept {
        const int64_t room = keys - group * answer_keys();
        return static_cast<int64_t>(depth * static_cast<double>(numfmt::detail::max(room, int64_t{0}))) +
               g * answer_keys();
    }
};

/// The problem's numbers; everything depends on the problem and on the index of the key alone.
class attention_source {
  public:
    static constexpr int candidates = 64;  ///< answers a query chooses between; the right one is number 0

    explicit attention_source(const attention_problem& p)
        : p_(p),
          d_(p.head_size),
          queries_(static_cast<size_t>(p.group) * size(d_)),
          means_(size(d_)),
          answers_(static_cast<size_t>(p.group) * candidates * size(d_)) {
        draw(0, 0, queries_.data(), p.group * static_cast<int64_t>(d_), p.score_deviation / p.amplitude);
        // The sink is reached through a few channels in which every query is positive, each by its own amount.
        if (p.model == score_model::sink) {
            draw(5, 0, outliers_, outlier_channels, 1);
            for (int c = 0; c < outlier_channels; ++c) {
                outliers_[c] = 1 + std::fabs(outliers_[c]);
                for (int g = 0; g < p.group; ++g) {
                    float& q = queries_[static_cast<size_t>(g) * size(d_) + size(c)];
                    q = static_cast<float>(p.score_deviation / p.amplitude) + std::fabs(q);
                }
            }
        }
        draw(1, 0, means_.data(), d_, p.value_mean * p.amplitude);
        draw(2, 0, answers_.data(), p.group * static_cast<int64_t>(candidates) * d_, p.amplitude);
        // A reader who has learned the channel means does not take them for an answer.
        const double squares = dot(means_.data(), means_.data());
        for (int i = 0; squares > 0 && i < p.group * candidates; ++i) {
            float* a = answers_.data() + size(i) * size(d_);
            const double along = dot(a, means_.data()) / squares;
            for (int c = 0; c < d_; ++c)
                a[c] = static_cast<float>(static_cast<double>(a[c]) - along * static_cast<double>(means_[size(c)]));
        }
    }

    const attention_problem& problem() const noexcept { return p_; }
    int64_t key_count() const noexcept { return p_.keys; }
    int head_size() const noexcept { return d_; }
    int query_count() const noexcept { return p_.group; }
    double score_scale() const noexcept { return 1 / std::sqrt(static_cast<double>(d_)); }
    int answer_count() const noexcept { return p_.answer_keys() > 0 ? candidates : 0; }
    const float* query(int g) const noexcept { return queries_.data() + static_cast<size_t>(g) * size(d_); }
    /// What the value of candidate i's answer to query g is above the channel means, at right angles to them.
    const float* answer(int g, int i) const noexcept {
        return answers_.data() + (static_cast<size_t>(g) * candidates + static_cast<size_t>(i)) * size(d_);
    }

    /// Keys first .. first + n - 1: keys and values [n][head_size]; bias [n] is added to the scaled score.
    void tile(int64_t first, int64_t n, float* keys, float* values, float* bias) const {
        draw(3, static_cast<uint64_t>(first), keys, n * d_, p_.amplitude);
        draw(4, static_cast<uint64_t>(first), values, n * d_, p_.amplitude);
        for (int64_t j = 0; j < n; ++j) {
            float* v = values + j * d_;
            for (int c = 0; c < d_; ++c) v[c] += means_[size(c)];
            bias[j] = p_.model == score_model::recency
                          ? static_cast<float>(-0.69314718055994531 * static_cast<double>(p_.keys - 1 - (first + j)) /
                                               static_cast<double>(p_.half_life))
                          : 0.0f;
        }
        if (p_.model == score_model::sink && first == 0 && n > 0) make_sink(keys, values);
        for (int g = 0; g < p_.group && p_.answer_keys() > 0; ++g) {
            const int64_t begin = numfmt::detail::max(first, p_.answer_begin(g));
            const int64_t end = numfmt::detail::min(first + n, p_.answer_begin(g) + p_.answer_keys());
            for (int64_t j = begin; j < end; ++j) make_answer(g, keys + (j - first) * d_, values + (j - first) * d_);
        }
    }

    /// n ordinary keys and values of another part of the stream, and the sink first where there is one: what a scale is
    /// calibrated on.
    void calibration(int64_t n, float* keys, float* values, float* bias) const {
        constexpr int64_t elsewhere = int64_t{1} << 40;
        tile(elsewhere, n, keys, values, bias);
        if (p_.model == score_model::sink && n > 0) make_sink(keys, values);
    }

  private:
    static constexpr int outlier_channels = 4;
    static constexpr size_t size(int n) noexcept { return static_cast<size_t>(n); }

    void draw(uint64_t use, uint64_t row, float* out, int64_t n, double sigma) const noexcept {
        const uint64_t seed = (p_.seed * 0x9E3779B97F4A7C15u + p_.head) * 8 + use;
        fill(distribution::gaussian, seed, row * static_cast<uint64_t>(d_), out, n, sigma);
    }
    double dot(const float* a, const float* b) const noexcept {
        double s = 0;
        for (int c = 0; c < d_; ++c) s += static_cast<double>(a[c]) * static_cast<double>(b[c]);
        return s;
    }
    // The score at which `parts` keys together have the margin's log odds against all others. The sum over the others
    // is what normal scores of deviation |q| / sqrt(head_size) make in expectation.
    double special_score(const float* q, int64_t parts) const noexcept {
        const double variance = dot(q, q) * p_.amplitude * p_.amplitude / d_;
        const double others = static_cast<double>(numfmt::detail::max(p_.keys - parts, int64_t{1}));
        return std::log(others) + variance / 2 + p_.margin - std::log(static_cast<double>(parts));
    }
    void make_sink(float* key, float* value) const noexcept {
        for (int c = 0; c < d_; ++c) {
            key[c] = c < outlier_channels ? outliers_[c] : 0.0f;
            value[c] *= 0.01f;
        }
        // The group's mean score is the one wanted.
        double wanted = 0, score = 0;
        for (int g = 0; g < p_.group; ++g) {
            wanted += special_score(query(g), 1) * std::sqrt(static_cast<double>(d_));
            score += dot(query(g), key);
        }
        for (int c = 0; c < outlier_channels; ++c)
            key[c] = static_cast<float>(static_cast<double>(key[c]) * wanted / score);
    }
    void make_answer(int g, float* key, float* value) const noexcept {
        const float* q = query(g);
        const double wanted = special_score(q, p_.answer_keys()) * std::sqrt(static_cast<double>(d_));
        const double along = (wanted - dot(q, key)) / dot(q, q);
        for (int c = 0; c < d_; ++c)
            key[c] = static_cast<float>(static_cast<double>(key[c]) + along * static_cast<double>(q[c]));
        // A passage's keys have their own noise beside the answer they share.
        for (int c = 0; c < d_; ++c)
            value[c] = p_.model == score_model::needle ? means_[size(c)] + answer(g, 0)[c] : value[c] + answer(g, 0)[c];
    }

    attention_problem p_;
    int d_;
    std::vector<float> queries_, means_, answers_;
    float outliers_[outlier_channels] = {};
};

}  // namespace numfmt::accuracy
