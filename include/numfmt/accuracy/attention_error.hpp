// SPDX-License-Identifier: MIT
// What a quantized KV cache and the accumulators of a kernel do to attention's output: many cases over one stream of
// keys beside the exact result, in memory that does not depend on the number of keys.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "attention.hpp"
#include "metrics.hpp"
#include "score_models.hpp"

namespace numfmt::accuracy {

/// What shares a float scale: everything, one KV head, or one token of one head.
enum class scale_granularity : uint8_t { tensor, head, token };

NUMFMT_FN const char* name_of(scale_granularity g) noexcept {
    constexpr const char* names[] = {"tensor", "head", "token"};
    return names[static_cast<int>(g)];
}

/// A cache and a kernel that reads it.
struct attention_case {
    kv_format format = kv_format::bf16;
    scale_granularity granularity = scale_granularity::head;
    double scale_factor =
        1;  ///< times the scale that takes the calibrated amax to the largest value; 0: the scale is 1
    attention_policy policy{};
    storage_effects effects{};
    int splits = 1;  ///< parts of the keys with an online softmax each, merged in order (split-KV)

    /// Refuses what no hardware does: fp8 tensor cores with a cache, a query or probabilities that are not fp8.
    status check() const noexcept {
        if (splits < 1) return {status_code::out_of_range, "splits", splits, 1};
        if (!(scale_factor >= 0))
            return {status_code::out_of_range, "scale_factor", static_cast<int64_t>(scale_factor), 0};
        if (takes_fp8_only(policy.scores) && (!has_float_scale(format) || policy.query != kv_format::fp8_e4m3))
            return {status_code::unsupported, "policy.scores", static_cast<int>(policy.scores), 0};
        if (takes_fp8_only(policy.values) &&
            (!has_float_scale(format) || policy.probabilities != probability_format::fp8_e4m3))
            return {status_code::unsupported, "policy.values", static_cast<int>(policy.values), 0};
        return {};
    }

    attention_case without_rounding() const noexcept {
        attention_case c = *this;
        c.effects.rounding = c.policy.rounding = false;
        return c;
    }
    attention_case without_clipping() const noexcept {
        attention_case c = *this;
        c.effects.clipping = false;
        return c;
    }
    attention_case without_accumulation() const noexcept {
        attention_case c = *this;
        c.policy.scores = c.policy.values = attention_accumulator::exact;
        return c;
    }
};

/// Sums over queries. Parts merge.
struct attention_errors {
    int64_t queries = 0;
    int64_t not_finite = 0;    ///< queries with an output that is Inf or NaN: left out of the sums below
    pairwise_sum relative;     ///< squares of every query's |output - exact| / |exact|: heads of any size count alike
    double log_sum_error = 0;  ///< sum of log-sum-exp minus the exact one
    double log_sum_squares = 0;
    double mass_kept = 0;  ///< sum of attention_stream::mass_kept
    double worst = 0;      ///< largest relative error of one query's output
    int64_t hits = 0;      ///< queries whose answer wins over the other candidates
    double margin = 0;     ///< sum over queries of (score of the answer - best other) / |answer|^2

    void merge(const attention_errors& o) noexcept {
        queries += o.queries;
        not_finite += o.not_finite;
        relative.merge(o.relative);
        log_sum_error += o.log_sum_error;
        log_sum_squares += o.log_sum_squares;
        mass_kept += o.mass_kept;
        worst = numfmt::detail::max(worst, o.worst);
        hits += o.hits;
        margin += o.margin;
    }
    /// Root mean square of the queries' |output - exact| / |exact|: +Inf as soon as one output is not finite.
    double relative_error() const noexcept {
        if (not_finite > 0) return std::numeric_limits<double>::infinity();
        return std::sqrt(mean(relative.value()));
    }
    /// Root mean square of exp(error of log-sum-exp) - 1, to first order: the relative error of the softmax's mass.
    double mass_error() const noexcept { return std::sqrt(mean(log_sum_squares)); }
    double mean_mass_kept() const noexcept { return mean(mass_kept); }
    double hit_rate() const noexcept { return mean(static_cast<double>(hits)); }
    double mean_margin() const noexcept { return mean(margin); }

  private:
    double mean(double sum) const noexcept { return queries > 0 ? sum / static_cast<double>(queries) : 0.0; }
};

namespace detail {

/// How a cache looks to the cases that share it.
struct stored_variant {
    kv_format format;
    scale_granularity granularity;
    double scale_factor;
    storage_effects effects;
    bool tensor_cores;
    attention_tile tile;

    bool serves(const attention_case& c) const noexcept {
        return format == c.format && effects.rounding == c.effects.rounding && effects.clipping == c.effects.clipping &&
               (!has_float_scale(format) || (granularity == c.granularity && scale_factor == c.scale_factor));
    }
};

/// The cases' streams over one query's keys, a part of the keys at a time.
struct split_streams {
    attention_stream merged, part;
};

template <class Source>
void score_answers(const Source& source, int g, const std::vector<double>& output, attention_errors& e) {
    const int n = source.answer_count(), d = static_cast<int>(output.size());
    if (n == 0) return;
    double right = 0, best_other = -std::numeric_limits<double>::infinity(), squares = 0;
    for (int i = 0; i < n; ++i) {
        const float* a = source.answer(g, i);
        double score = 0;
        for (int c = 0; c < d; ++c) score += output[static_cast<size_t>(c)] * static_cast<double>(a[c]);
        if (i == 0) {
            right = score;
            for (int c = 0; c < d; ++c) squares += static_cast<double>(a[c]) * static_cast<double>(a[c]);
        } else {
            best_other = numfmt::detail::max(best_other, score);
        }
    }
    e.hits += right > best_other ? 1 : 0;
    e.margin += (right - best_other) / squares;
}

}  // namespace detail

/// Largest magnitudes that scales are calibrated on: of one head's keys and values, and of all heads of the tensor.
struct kv_amax {
    float head_key = 0, head_value = 0;
    float tensor_key = 0, tensor_value = 0;

    /// Takes another head of the same tensor into account.
    void widen(const kv_amax& o) noexcept {
        tensor_key = numfmt::detail::max(tensor_key, o.tensor_key);
        tensor_value = numfmt::detail::max(tensor_value, o.tensor_value);
    }
};

/// amax of the source's calibration keys and values, as the head's and as the tensor's: merge the latter over heads.
template <class Source> kv_amax calibrate(const Source& source, int64_t tokens = 4096) {
    const int d = source.head_size();
    std::vector<float> key(static_cast<size_t>(tokens * d)), value(key.size()), bias(static_cast<size_t>(tokens));
    source.calibration(tokens, key.data(), value.data(), bias.data());
    const float k = amax_of(key.data(), tokens * d), v = amax_of(value.data(), tokens * d);
    return {k, v, k, v};
}

/// Runs every case and the exact computation over all keys of the source's queries and writes what they come to into
/// errors[0 .. cases); errors[cases] is the exact result's own (hits and margin; no error).
///
/// Source  key_count(), head_size(), query_count(), query(g), score_scale(), tile(first, n, keys, values, bias) and,
/// for
///         an answer, answer_count() and answer(g, i): attention_source is one
/// amax    for the scales per tensor and per head; those per token are taken from the token, times scale_factor
/// tile    keys between two rescalings, and between two promotions
/// progress  called with a number of keys as they are done
/// Errors: those of attention_case::check. Throws std::bad_alloc.
template <class Source, class Progress>
status measure_attention(const Source& source, const std::vector<attention_case>& cases, const kv_amax& amax,
                         int64_t tile, std::vector<attention_errors>& errors, Progress progress) {
    for (const attention_case& c : cases)
        if (const status s = c.check(); !s.ok()) return s;
    if (tile < 1) return {status_code::out_of_range, "tile", tile, 1};
    const int d = source.head_size(), group = source.query_count();
    const int64_t keys = source.key_count();

    std::vector<detail::stored_variant> variants;
    std::vector<size_t> variant_of(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) {
        const attention_case& c = cases[i];
        size_t v = 0;
        while (v < variants.size() && !variants[v].serves(c)) ++v;
        if (v == variants.size()) variants.push_back({c.format, c.granularity, c.scale_factor, c.effects, false, {}});
        variant_of[i] = v;
        variants[v].tensor_cores =
            variants[v].tensor_cores || is_tensor_core(c.policy.scores) || is_tensor_core(c.policy.values);
    }

    attention_policy exact;
    exact.scores = exact.values = attention_accumulator::exact;
    std::vector<attention_stream> reference;
    std::vector<std::vector<detail::split_streams>> streams(cases.size());
    for (int g = 0; g < group; ++g) {
        reference.emplace_back(exact, source.query(g), d, source.score_scale());
        for (size_t i = 0; i < cases.size(); ++i) {
            const attention_stream fresh(cases[i].policy, source.query(g), d, source.score_scale());
            streams[i].push_back({fresh, fresh});
        }
    }

    const int64_t tiles = (keys + tile - 1) / tile;
    attention_tile original;
    original.head_size = d;
    std::vector<float> bias;
    for (int64_t t = 0; t < tiles; ++t) {
        const int64_t first = t * tile, n = numfmt::detail::min(tile, keys - first);
        const auto size = static_cast<size_t>(n * d);
        original.keys = n;
        original.key.resize(size);
        original.value.resize(size);
        original.key_scale.assign(static_cast<size_t>(n), 1.0f);
        original.value_scale.assign(static_cast<size_t>(n), 1.0f);
        bias.resize(static_cast<size_t>(n));
        source.tile(first, n, original.key.data(), original.value.data(), bias.data());
        original.finish(false);
        for (attention_stream& r : reference) r.add(original, bias.data());

        const auto store = [&](const detail::stored_variant& v, const std::vector<float>& x, float head, float tensor,
                               std::vector<float>& scales, std::vector<float>& y) {
            scales.assign(static_cast<size_t>(n), 1.0f);
            y.resize(size);
            if (has_float_scale(v.format) && v.scale_factor > 0)
                for (int64_t j = 0; j < n; ++j) {
                    const float largest = v.granularity == scale_granularity::tensor ? tensor
                                          : v.granularity == scale_granularity::head ? head
                                                                                     : amax_of(x.data() + j * d, d);
                    scales[static_cast<size_t>(j)] =
                        float_scale(v.format, static_cast<float>(static_cast<double>(largest) * v.scale_factor));
                }
            return store_kv(v.format, {x.data(), {n, d}, 0}, scales.data(), v.effects, {y.data(), {n, d}, 0});
        };
        for (detail::stored_variant& v : variants) {
            v.tile.keys = n;
            v.tile.head_size = d;
            if (const status s = store(v, original.key, amax.head_key, amax.tensor_key, v.tile.key_scale, v.tile.key);
                !s.ok())
                return s;
            if (const status s =
                    store(v, original.value, amax.head_value, amax.tensor_value, v.tile.value_scale, v.tile.value);
                !s.ok())
                return s;
            v.tile.finish(v.tensor_cores);
        }
        for (size_t i = 0; i < cases.size(); ++i) {
            const int64_t splits = numfmt::detail::min<int64_t>(cases[i].splits, tiles);
            const bool begins = t == 0 || t * splits / tiles != (t - 1) * splits / tiles;
            for (int g = 0; g < group; ++g) {
                detail::split_streams& s = streams[i][static_cast<size_t>(g)];
                if (begins && t > 0) {
                    s.merged.merge(s.part);
                    s.part = attention_stream(cases[i].policy, source.query(g), d, source.score_scale());
                }
                s.part.add(variants[variant_of[i]].tile, bias.data());
            }
        }
        progress(n);
    }

    errors.assign(cases.size() + 1, {});
    std::vector<double> output(static_cast<size_t>(d)), wanted(output.size());
    for (int g = 0; g < group; ++g) {
        const attention_stream& r = reference[static_cast<size_t>(g)];
        for (int c = 0; c < d; ++c) wanted[static_cast<size_t>(c)] = r.output(c);
        attention_errors& own = errors.back();
        ++own.queries;
        own.mass_kept += r.mass_kept();
        detail::score_answers(source, g, wanted, own);
        for (size_t i = 0; i < cases.size(); ++i) {
            detail::split_streams& s = streams[i][static_cast<size_t>(g)];
            s.merged.merge(s.part);
            attention_errors& e = errors[i];
            ++e.queries;
            double signal = 0, noise = 0;
            for (int c = 0; c < d; ++c) {
                const auto at = static_cast<size_t>(c);
                output[at] = s.merged.output(c);
                signal += wanted[at] * wanted[at];
                noise += (output[at] - wanted[at]) * (output[at] - wanted[at]);
            }
            if (!std::isfinite(noise)) {
                ++e.not_finite;
                continue;
            }
            const double square = signal > 0  ? noise / signal
                                  : noise > 0 ? std::numeric_limits<double>::infinity()
                                              : 0.0;
            e.relative.add(square);
            e.worst = numfmt::detail::max(e.worst, std::sqrt(square));
            const double off = s.merged.log_sum() - r.log_sum();
            e.log_sum_error += off;
            e.log_sum_squares += off * off;
            e.mass_kept += s.merged.mass_kept();
            detail::score_answers(source, g, output, e);
        }
    }
    return {};
}

}  // namespace numfmt::accuracy
