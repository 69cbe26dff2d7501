// SPDX-License-Identifier: MIT
// What docs/accuracy.md says of attention, each claim from both sides: it fails where the effect is missing and where
// it is larger than its cause allows. Seeds vary; the head is small, since the sums over keys do not depend on it.
#include <numfmt/accuracy/attention_error.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace numfmt;
using namespace numfmt::accuracy;
using A = attention_accumulator;

namespace {

constexpr int channels = 16;
const std::uint64_t seeds[] = {11, 12, 13};

attention_problem problem_of(score_model model, std::int64_t keys, std::uint64_t seed) {
    attention_problem p;
    p.model = model;
    p.keys = keys;
    p.head_size = channels;
    p.group = 2;
    p.seed = seed;
    p.margin = model == score_model::sink ? 0 : -5;
    return p;
}

attention_case e4m3(A scores, A values, double scale_factor = 1) {
    attention_case c;
    c.format = kv_format::fp8_e4m3;
    c.scale_factor = scale_factor;
    c.policy.scores = scores;
    c.policy.values = values;
    c.policy.query = takes_fp8_only(scores) ? kv_format::fp8_e4m3 : kv_format::bf16;
    c.policy.probabilities = takes_fp8_only(values) ? probability_format::fp8_e4m3 : probability_format::bf16;
    return c;
}
const attention_case plain_fp8 = e4m3(A::hopper_fp8, A::hopper_fp8);
const attention_case promoted_fp8 = e4m3(A::hopper_fp8, A::hopper_fp8_promoted);
const attention_case upcast = e4m3(A::fp32, A::fp32);

std::vector<attention_errors> measure(const attention_problem& p, const std::vector<attention_case>& cases) {
    const attention_source source(p);
    std::vector<attention_errors> errors;
    REQUIRE(measure_attention(source, cases, calibrate(source, 1024), 128, errors, [](std::int64_t) {}).ok());
    return errors;
}

// Keys that all score alike: what each accumulator makes of n equal probabilities can be counted.
struct even_keys {
    std::int64_t keys;
    std::vector<float> zeros = std::vector<float>(channels);

    std::int64_t key_count() const { return keys; }
    int head_size() const { return channels; }
    int query_count() const { return 1; }
    double score_scale() const { return 1; }
    const float* query(int) const { return zeros.data(); }
    int answer_count() const { return 0; }
    const float* answer(int, int) const { return nullptr; }
    void tile(std::int64_t, std::int64_t n, float* k, float* v, float* b) const {
        for (std::int64_t i = 0; i < n * channels; ++i) {
            k[i] = 0;
            v[i] = 1;
        }
        for (std::int64_t i = 0; i < n; ++i) b[i] = 0;
    }
};

double kept_of_even_keys(std::int64_t keys, attention_case c) {
    c.scale_factor = 0;
    std::vector<attention_errors> errors;
    REQUIRE(measure_attention(even_keys{keys}, {c}, kv_amax{}, 128, errors, [](std::int64_t) {}).ok());
    return errors[0].mean_mass_kept();
}

}  // namespace

TEST_CASE("finding: a chain on the fp8 tensor core is exact up to 2^14 keys of one score and stops there") {
    // P is 2^8. The accumulator keeps 13 bits below its leading one, so at 2^22, after 2^14 keys, 2^8 is half of the
    // last place and is cut off.
    for (const std::int64_t keys : {std::int64_t{1} << 10, std::int64_t{1} << 14})
        CHECK(kept_of_even_keys(keys, plain_fp8) == 1);
    for (const std::int64_t keys : {std::int64_t{1} << 15, std::int64_t{1} << 17})
        CHECK(kept_of_even_keys(keys, plain_fp8) == 16384.0 / static_cast<double>(keys));
    for (const std::int64_t keys : {std::int64_t{1} << 15, std::int64_t{1} << 17})
        CHECK(kept_of_even_keys(keys, promoted_fp8) == 1);
}

TEST_CASE("finding: a bf16 accumulator stops after 2^8 equal terms and an fp16 one after 2^11; fp32 carries them all") {
    // 1 is half of the last place of 2^8 with 8 significant bits, of 2^11 with 11; ties go to the even sum.
    for (const std::int64_t keys : {std::int64_t{256}, std::int64_t{2048}, std::int64_t{32768}}) {
        const double n = static_cast<double>(keys);
        CHECK(kept_of_even_keys(keys, e4m3(A::fp32, A::bf16)) == std::fmin(1, 256 / n));
        CHECK(kept_of_even_keys(keys, e4m3(A::fp32, A::fp16)) == std::fmin(1, 2048 / n));
        CHECK(kept_of_even_keys(keys, e4m3(A::fp32, A::fp32)) == 1);
        CHECK(kept_of_even_keys(keys, e4m3(A::fp32, A::hopper_16bit)) == 1);
    }
}

TEST_CASE("finding: fp8 attention looks free on short prompts and loses most of the mass at 64K keys") {
    for (const std::uint64_t seed : seeds)
        for (const score_model model : {score_model::gaussian, score_model::needle}) {
            const auto shorter = measure(problem_of(model, 1024, seed), {plain_fp8, plain_fp8.without_accumulation()});
            const auto longer = measure(problem_of(model, 65536, seed), {plain_fp8, plain_fp8.without_accumulation()});
            // Short: within three times what rounding to fp8 does alone. A term is cut by less than one part in 2^13 of
            // the sum so far, so 1024 of them by less than a sixteenth (half of it on average over the growing sum).
            CHECK(shorter[0].relative_error() < 3 * shorter[1].relative_error());
            CHECK(shorter[0].mean_mass_kept() > 1 - 1.0 / 16);
            // Long: the loss is what the output's error is, and it is not the rounding's.
            const double kept = longer[0].mean_mass_kept();
            CHECK(kept < 0.75);
            CHECK(longer[0].relative_error() > 20 * longer[1].relative_error());
            CHECK(longer[0].relative_error() > 0.15);
            // Probabilities can only be lost, and never more than all.
            CHECK(longer[0].relative_error() < 1);
            CHECK(kept > 0);
        }
}

TEST_CASE("finding: promotion after every 128 keys cures the accumulator, splitting in part") {
    attention_case split = plain_fp8;
    split.splits = 16;
    for (const std::uint64_t seed : seeds) {
        const auto e = measure(problem_of(score_model::gaussian, 65536, seed),
                               {plain_fp8, promoted_fp8, promoted_fp8.without_accumulation(), split});
        // Of a tile's 4 groups each of the 33 terms and the result lose less than 2^-13 of the largest sum.
        CHECK(e[1].mean_mass_kept() > 1 - 4 * 34 * 0x1p-13);
        CHECK(e[1].relative_error() < e[2].relative_error() + 4 * 34 * 0x1p-13);
        CHECK(e[1].relative_error() > 0.5 * e[2].relative_error());  // fp8 numbers stay fp8 numbers
        // A split is a chain of 4096 keys: between the two.
        CHECK(1 - e[3].mean_mass_kept() < 0.5 * (1 - e[0].mean_mass_kept()));
        CHECK(1 - e[3].mean_mass_kept() > 2 * (1 - e[1].mean_mass_kept()));
    }
}

TEST_CASE("finding: a needle that the exact attention finds is lost by the accumulator, not by the cache") {
    // One chance in 64 finds the answer in noise; 24 queries.
    std::int64_t exact = 0, plain = 0, promoted = 0, queries = 0;
    double plain_margin = 0, promoted_margin = 0, exact_margin = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        attention_problem p = problem_of(score_model::needle, 65536, seed);
        p.group = 4;
        p.head_size = 32;
        p.margin = -4;
        const auto e = measure(p, {plain_fp8, promoted_fp8});
        plain += e[0].hits;
        promoted += e[1].hits;
        exact += e[2].hits;
        queries += e[2].queries;
        plain_margin += e[0].mean_margin() / 6;
        promoted_margin += e[1].mean_margin() / 6;
        exact_margin += e[2].mean_margin() / 6;
    }
    CHECK(queries == 24);
    CHECK(exact >= queries - 1);
    CHECK(promoted >= exact - 1);
    CHECK(promoted_margin > 0.8 * exact_margin);
    CHECK(plain_margin < 0.8 * exact_margin);
    CHECK(plain <= exact);
}

TEST_CASE("finding: a scale four times too small clips, one four times too large changes next to nothing") {
    for (const std::uint64_t seed : seeds) {
        const auto small = e4m3(A::fp32, A::fp32, 0.25), large = e4m3(A::fp32, A::fp32, 4);
        const auto e = measure(problem_of(score_model::gaussian, 4096, seed),
                               {upcast, small, small.without_clipping(), small.without_rounding(), large});
        // Normal numbers beyond a quarter of their largest, about one deviation, lose their excess: of the channel
        // means that make up most of the output, as much as the share of numbers beyond (0.2 to 0.4), and at most all.
        CHECK(e[1].relative_error() > 0.1);
        CHECK(e[1].relative_error() < 0.5);
        // Clipping is all of it: without it the error is the calibrated scale's, without rounding nothing changes.
        CHECK(e[2].relative_error() == doctest::Approx(e[0].relative_error()).epsilon(0.05));
        CHECK(e[3].relative_error() == doctest::Approx(e[1].relative_error()).epsilon(0.05));
        // A factor of 4 moves numbers to other exponents with the same mantissas; only subnormals, below
        // 2^-6 * 4 / 448 of amax, differ.
        CHECK(e[4].relative_error() == doctest::Approx(e[0].relative_error()).epsilon(0.05));
        CHECK(e[4].relative_error() > 0);
    }
}

TEST_CASE("finding: rounding averages out over keys, but not where one key takes half of the mass") {
    double gaussian[2] = {}, sink[2] = {};
    const std::int64_t lengths[] = {1024, 16384};
    for (std::uint64_t seed = 1; seed <= 8; ++seed)
        for (int i = 0; i < 2; ++i) {
            gaussian[i] +=
                measure(problem_of(score_model::gaussian, lengths[i], seed), {upcast})[0].relative_error() / 8;
            sink[i] += measure(problem_of(score_model::sink, lengths[i], seed), {upcast})[0].relative_error() / 8;
        }
    // Sixteen times the keys: a quarter of the error, within a factor of two for 16 queries.
    CHECK(gaussian[1] < gaussian[0] / 2);
    CHECK(gaussian[1] > gaussian[0] / 8);
    // One key's score has one error, whatever the others do.
    CHECK(sink[1] > sink[0] / 2);
    CHECK(sink[1] < sink[0] * 2);
    CHECK(sink[1] > 4 * gaussian[1]);
    // A score of log(16384) + 1/2 made of 4 channels, each rounded by up to 2^-4 in key and 2^-9 in query.
    CHECK(sink[1] < (std::log(16384.0) + 0.5) * 0x1p-4);
}

TEST_CASE("finding: a scale per head buys nothing until heads differ by more than e4m3's own range") {
    attention_case per_tensor = upcast;
    per_tensor.granularity = scale_granularity::tensor;
    attention_case per_token = upcast;
    per_token.granularity = scale_granularity::token;
    for (const std::uint64_t seed : seeds)
        for (const double spread : {0x1p-4, 0x1p-20}) {
            CAPTURE(spread);
            // The small head beside one of amplitude 1.
            attention_problem p = problem_of(score_model::gaussian, 2048, seed), other = p;
            p.amplitude = spread;
            p.head = 1;
            const attention_source source(p);
            kv_amax amax = calibrate(source, 1024);
            amax.widen(calibrate(attention_source(other), 1024));
            std::vector<attention_errors> e;
            REQUIRE(measure_attention(source, {upcast, per_tensor, per_token}, amax, 128, e, [](std::int64_t) {}).ok());
            // 448 is 2^14.8 times the smallest normal number: at 2^-4 all but the smallest numbers keep three bits.
            if (spread == 0x1p-4)
                CHECK(e[1].relative_error() == doctest::Approx(e[0].relative_error()).epsilon(0.2));
            else  // all below half of the smallest subnormal: nothing is left
                CHECK(e[1].relative_error() == doctest::Approx(1).epsilon(0.01));
            CHECK(e[0].relative_error() < 0.05);
            CHECK(e[2].relative_error() == doctest::Approx(e[0].relative_error()).epsilon(0.5));
        }
}

TEST_CASE("finding: e5m2 costs twice e4m3's error") {
    attention_case e5m2 = upcast;
    e5m2.format = kv_format::fp8_e5m2;
    double ratio = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const auto e = measure(problem_of(score_model::gaussian, 4096, seed), {upcast, e5m2});
        ratio += e[1].relative_error() / e[0].relative_error() / 8;
    }
    // One mantissa bit less is twice the step: within a fifth over 16 queries.
    CHECK(ratio > 1.6);
    CHECK(ratio < 2.4);
}
