// SPDX-License-Identifier: MIT
// One query's walk over a cache: against a softmax in doubles, against the tensor core's own sum, masks and merges.
#include <numfmt/accuracy/attention_error.hpp>
#include <numfmt/numfmt.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace numfmt;
using namespace numfmt::accuracy;
using A = attention_accumulator;
using P = probability_format;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

struct problem {
    std::int64_t keys;
    int d;
    std::vector<float> query, key, value, bias;
    std::vector<float> key_scale, value_scale;

    problem(std::int64_t n, int head_size, std::uint64_t seed)
        : keys(n),
          d(head_size),
          query(static_cast<std::size_t>(d)),
          key(static_cast<std::size_t>(n * d)),
          value(key.size()),
          bias(static_cast<std::size_t>(n)),
          key_scale(static_cast<std::size_t>(n), 1.0f),
          value_scale(static_cast<std::size_t>(n), 1.0f) {
        fill(distribution::gaussian, seed * 4, 0, query.data(), d, 1.5);
        fill(distribution::gaussian, seed * 4 + 1, 0, key.data(), n * d, 1);
        fill(distribution::gaussian, seed * 4 + 2, 0, value.data(), n * d, 1);
        fill(distribution::gaussian, seed * 4 + 3, 0, bias.data(), n, 1);
    }
    double scale() const { return 1 / std::sqrt(static_cast<double>(d)); }

    attention_tile tile(std::int64_t first, std::int64_t n, bool tensor_cores) const {
        attention_tile t;
        t.keys = n;
        t.head_size = d;
        t.key.assign(key.begin() + first * d, key.begin() + (first + n) * d);
        t.value.assign(value.begin() + first * d, value.begin() + (first + n) * d);
        t.key_scale.assign(key_scale.begin() + first, key_scale.begin() + first + n);
        t.value_scale.assign(value_scale.begin() + first, value_scale.begin() + first + n);
        t.finish(tensor_cores);
        return t;
    }
    void walk(attention_stream& s, std::int64_t first, std::int64_t last, std::int64_t step, bool cores = false) const {
        for (std::int64_t at = first; at < last; at += step)
            s.add(tile(at, numfmt::detail::min(step, last - at), cores), bias.data() + at);
    }
    attention_stream stream(const attention_policy& policy, std::int64_t step) const {
        attention_stream s(policy, query.data(), d, scale());
        walk(s, 0, keys, step, is_tensor_core(policy.scores) || is_tensor_core(policy.values));
        return s;
    }
};

// The definition, in doubles, all scores at once.
struct direct {
    std::vector<double> output;
    double log_sum = -std::numeric_limits<double>::infinity();
    double largest_score_terms = 0;  ///< max over keys of scale * sum |q k| + |bias|
    double largest_value = 0;

    explicit direct(const problem& p) : output(static_cast<std::size_t>(p.d)) {
        std::vector<double> s(static_cast<std::size_t>(p.keys));
        double top = log_sum;
        for (std::int64_t j = 0; j < p.keys; ++j) {
            double dot = 0, terms = 0;
            for (int c = 0; c < p.d; ++c) {
                const double product =
                    static_cast<double>(p.query[std::size_t(c)]) * static_cast<double>(p.key[std::size_t(j * p.d + c)]);
                dot += product;
                terms += std::fabs(product);
            }
            const double k = p.scale() * static_cast<double>(p.key_scale[std::size_t(j)]);
            s[std::size_t(j)] = dot * k + static_cast<double>(p.bias[std::size_t(j)]);
            if (p.bias[std::size_t(j)] > -inf)
                largest_score_terms =
                    std::fmax(largest_score_terms, terms * k + std::fabs(static_cast<double>(p.bias[std::size_t(j)])));
            top = std::fmax(top, s[std::size_t(j)]);
        }
        double sum = 0;
        for (std::int64_t j = 0; j < p.keys; ++j) {
            const double e = std::exp(s[std::size_t(j)] - top);
            sum += e;
            for (int c = 0; c < p.d; ++c) {
                const double v = static_cast<double>(p.value[std::size_t(j * p.d + c)]) *
                                 static_cast<double>(p.value_scale[std::size_t(j)]);
                output[std::size_t(c)] += e * v;
                largest_value = std::fmax(largest_value, std::fabs(v));
            }
        }
        for (double& o : output) o /= sum;
        log_sum = top + std::log(sum);
    }
};

attention_policy exactly() {
    attention_policy p;
    p.scores = p.values = A::exact;
    return p;
}

double largest_difference(const attention_stream& s, const std::vector<double>& wanted) {
    double worst = 0;
    for (std::size_t c = 0; c < wanted.size(); ++c)
        worst = std::fmax(worst, std::fabs(s.output(static_cast<int>(c)) - wanted[c]));
    return worst;
}

bool same_bits(const attention_stream& a, const attention_stream& b, int d) {
    for (int c = 0; c < d; ++c)
        if (a.output(c) != b.output(c)) return false;
    return a.log_sum() == b.log_sum() && a.mass_kept() == b.mass_kept();
}

// The error that fp32 arithmetic can make: a score's d products and sums, its scaling and bias make delta; exp and the
// subtraction of the maximum make 4 u (1 + |s|) more; a probability is then off by its factor e^delta, and so are the
// numerator and the denominator, each with one rounding per key and two per tile.
double fp32_bound(const problem& p, const direct& wanted, std::int64_t tiles) {
    constexpr double u = 0x1p-24;
    const double delta = (p.d + 8) * u * wanted.largest_score_terms + 4 * u * (1 + 2 * wanted.largest_score_terms);
    return (2 * std::expm1(delta) + 2 * static_cast<double>(p.keys + 3 * tiles + 4) * u) * wanted.largest_value;
}

}  // namespace

TEST_CASE("attention: the exact walk is the softmax's definition, whatever the tiles") {
    for (const std::int64_t keys : {1, 16, 37, 500}) {
        const problem p(keys, 24, static_cast<std::uint64_t>(keys));
        const direct wanted(p);
        for (const std::int64_t step : {1, 16, 37, 128, 512}) {
            const attention_stream s = p.stream(exactly(), step);
            CHECK(largest_difference(s, wanted.output) <= 1e-13 * static_cast<double>(keys + 10));
            CHECK(s.log_sum() == doctest::Approx(wanted.log_sum).epsilon(1e-13));
            CHECK(s.mass_kept() == doctest::Approx(1).epsilon(1e-13));
        }
    }
}

TEST_CASE("attention: fp32 accumulators stay within their bound, and off it") {
    double largest = 0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed)
        for (const std::int64_t step : {16, 128}) {
            problem p(700, 64, seed);
            // Scales of a token, as a cache stores them.
            for (std::size_t j = 0; j < p.key_scale.size(); ++j) {
                p.key_scale[j] = 0.5f + 0.25f * static_cast<float>(j % 5);
                p.value_scale[j] = 0.75f + 0.5f * static_cast<float>(j % 3);
            }
            const direct wanted(p);
            const attention_stream s = p.stream({}, step);
            const double error = largest_difference(s, wanted.output);
            largest = std::fmax(largest, error);
            CHECK(error <= fp32_bound(p, wanted, (p.keys + step - 1) / step));
            CHECK(std::fabs(s.log_sum() - wanted.log_sum) <= fp32_bound(p, wanted, 100) / wanted.largest_value);
        }
    CHECK(largest > 0x1p-28);  // fp32, not double
}

TEST_CASE("case 59: masked keys, all of them, and empty parts") {
    for (const A accumulator : {A::exact, A::fp32, A::hopper_16bit}) {
        CAPTURE(name_of(accumulator));
        attention_policy policy;
        policy.scores = policy.values = accumulator;
        const bool cores = is_tensor_core(accumulator);
        problem p(256, 16, 3);
        const attention_stream whole = p.stream(policy, 64);

        problem masked = p;
        for (float& b : masked.bias) b = -inf;
        const attention_stream none = masked.stream(policy, 64);
        for (int c = 0; c < p.d; ++c) CHECK(none.output(c) == 0);
        CHECK(none.log_sum() == -std::numeric_limits<double>::infinity());

        // A masked tile before, between and after changes nothing.
        attention_stream s(policy, p.query.data(), p.d, p.scale());
        masked.walk(s, 0, 64, 64, cores);
        p.walk(s, 0, 128, 64, cores);
        masked.walk(s, 64, 128, 64, cores);
        p.walk(s, 128, 256, 64, cores);
        masked.walk(s, 0, 64, 64, cores);
        CHECK(same_bits(s, whole, p.d));

        // Nothing merged into something, and something into nothing.
        attention_stream left = whole, right = none;
        left.merge(none);
        right.merge(whole);
        CHECK(same_bits(left, whole, p.d));
        CHECK(same_bits(right, whole, p.d));
        attention_stream empty = none;
        empty.merge(none);
        CHECK(empty.output(0) == 0);

        // Some keys of a tile masked: as if they were not there.
        problem some = p;
        for (std::size_t j = 0; j < some.bias.size(); ++j)
            if (j % 3 == 1) some.bias[j] = -inf;
        const direct wanted(some);
        const double bound = accumulator == A::exact ? 1e-13 * 300 : 1e-2;  // 16-bit operands: 2^-9 of every term
        CHECK(largest_difference(some.stream(policy, 64), wanted.output) <= bound);
    }
}

TEST_CASE("attention: a split walk merges to the whole one") {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        problem p(640, 32, seed);
        for (std::size_t j = 0; j < p.value_scale.size(); ++j) p.value_scale[j] = j < 320 ? 0.25f : 3.0f;
        const direct wanted(p);
        for (const bool exact : {true, false}) {
            const attention_policy policy = exact ? exactly() : attention_policy{};
            attention_stream merged(policy, p.query.data(), p.d, p.scale());
            for (std::int64_t first = 0; first < p.keys; first += 160) {
                attention_stream part(policy, p.query.data(), p.d, p.scale());
                p.walk(part, first, first + 160, 32);
                merged.merge(part);
            }
            const double bound = exact ? 1e-10 : fp32_bound(p, wanted, 30);
            CHECK(largest_difference(merged, wanted.output) <= bound);
            CHECK(std::fabs(merged.log_sum() - wanted.log_sum) <= bound);
            CHECK(std::fabs(merged.mass_kept() - 1) <= bound);
        }
    }
}

TEST_CASE("case 60: separate scales of keys and values, each applied once and the right way round") {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        problem p(200, 32, seed);
        const std::vector<float> k(p.key.size() / 32, 0.5f), v(p.key.size() / 32, 2.0f);
        problem stored = p, dequantized = p;
        REQUIRE(
            store_kv(kv_format::fp8_e4m3, {p.key.data(), {200, 32}, 0}, k.data(), {}, {stored.key.data(), {200, 32}, 0})
                .ok());
        REQUIRE(store_kv(kv_format::fp8_e4m3, {p.value.data(), {200, 32}, 0}, v.data(), {},
                         {stored.value.data(), {200, 32}, 0})
                    .ok());
        stored.key_scale = k;
        stored.value_scale = v;
        for (std::size_t i = 0; i < p.key.size(); ++i) {
            dequantized.key[i] = stored.key[i] * 0.5f;
            dequantized.value[i] = stored.value[i] * 2.0f;
        }
        const direct wanted(dequantized), original(p);
        const attention_stream s = stored.stream({}, 64);
        CHECK(largest_difference(s, wanted.output) <= fp32_bound(stored, wanted, 4));
        CHECK(largest_difference(s, original.output) > 1e-4);  // three mantissa bits were lost
    }
    // A key of 1000 under a scale of 1 saturates.
    const float x[] = {1000.0f}, one[] = {1.0f};
    float y[] = {0.0f};
    REQUIRE(store_kv(kv_format::fp8_e4m3, {x, {1, 1}, 0}, one, {}, {y, {1, 1}, 0}).ok());
    CHECK(y[0] == 448);
}

TEST_CASE("case 61: sixteen values of 10^4 overflow an fp16 accumulator and no other") {
    problem p(16, 16, 1);
    for (float& k : p.key) k = 0;
    for (float& b : p.bias) b = 0;
    for (float& v : p.value) v = 1e4f;
    for (const A accumulator : {A::fp32, A::bf16, A::fp16, A::hopper_16bit}) {
        CAPTURE(name_of(accumulator));
        attention_policy policy;
        policy.values = accumulator;
        const double o = p.stream(policy, 16).output(0);
        if (accumulator == A::fp16)
            CHECK(std::isinf(o));
        else
            CHECK(std::fabs(o - 1e4) <= 1e4 * 0x1p-4);  // bf16: 16 roundings of 2^-9, and the operand's own
    }
}

TEST_CASE("attention: the tensor core's sums are those of its model, one chain or one per tile") {
    // All scores are equal, so every probability is 1: 2^8 in fp8.
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        problem p(320, 8, seed);
        for (float& k : p.key) k = 0;
        for (float& b : p.bias) b = 0;
        for (float& v : p.value) v = decode<fp8_e4m3>(encode<fp8_e4m3>(100 * v));
        std::vector<accumulate::tensor_core_operand> ones(320, accumulate::to_operand<bf16>(encode<bf16>(256.0f)));
        for (int c = 0; c < p.d; ++c) {
            std::vector<accumulate::tensor_core_operand> column;
            for (std::int64_t j = 0; j < p.keys; ++j)
                column.push_back(accumulate::to_operand<fp8_e4m3>(encode<fp8_e4m3>(p.value[std::size_t(j * p.d + c)])));
            for (const bool promoted : {false, true}) {
                attention_policy policy;
                policy.scores = A::hopper_fp8;
                policy.values = promoted ? A::hopper_fp8_promoted : A::hopper_fp8;
                policy.query = kv_format::fp8_e4m3;
                policy.probabilities = P::fp8_e4m3;
                const float sum = bit_cast<float>(accumulate::tensor_core_dot(
                    accumulate::tensor_cores::hopper_wgmma_fp8, ones.data(), column.data(), 320, 0, promoted ? 64 : 0));
                CHECK(p.stream(policy, 64).output(c) == static_cast<double>(sum * ((1.0f / 320) * 0x1p-8f)));
            }
        }
    }
}

TEST_CASE("attention: Q K on tensor cores, and a query in fp8") {
    // One key takes the whole mass or the other does, by the sign of the score's last bits.
    problem p(1, 64, 7);
    for (float& b : p.bias) b = 0;
    for (float& k : p.key) k = decode<fp8_e4m3>(encode<fp8_e4m3>(k));
    attention_policy policy;
    policy.scores = A::hopper_fp8;
    policy.query = kv_format::fp8_e4m3;
    const float s = float_scale(kv_format::fp8_e4m3, amax_of(p.query.data(), 64));
    std::vector<accumulate::tensor_core_operand> q, k;
    for (int c = 0; c < 64; ++c) {
        q.push_back(accumulate::to_operand<fp8_e4m3>(encode<fp8_e4m3>(p.query[std::size_t(c)] * (1.0f / s))));
        k.push_back(accumulate::to_operand<fp8_e4m3>(encode<fp8_e4m3>(p.key[std::size_t(c)])));
    }
    const float dot = bit_cast<float>(
        accumulate::tensor_core_dot(accumulate::tensor_cores::hopper_wgmma_fp8, q.data(), k.data(), 64));
    const double scale = p.scale() * static_cast<double>(s);
    CHECK(p.stream(policy, 16).log_sum() == static_cast<double>(dot * static_cast<float>(scale)));
}

TEST_CASE("attention: probabilities in fp8 keep their tail only where they are multiplied first") {
    // 255 keys at exp(-8) = 2^-11.5 of the first: below e4m3's half smallest number 2^-10, above 2^-18.
    problem p(256, 8, 2);
    for (float& k : p.key) k = 0;
    for (float& v : p.value) v = 1;
    for (float& b : p.bias) b = -8;
    p.bias[0] = 0;
    attention_policy policy;
    policy.probabilities = P::fp8_e4m3;
    const double tail = 255 * std::exp(-8.0);
    policy.probability_shift = 0;
    CHECK(p.stream(policy, 128).mass_kept() == doctest::Approx(1 / (1 + tail)).epsilon(1e-5));
    policy.probability_shift = 8;
    const double kept = p.stream(policy, 128).mass_kept();
    CHECK(std::fabs(kept - 1) <= 0x1p-4 * tail / (1 + tail) + 1e-6);  // e4m3's half step
    CHECK(kept != 1);
}

TEST_CASE("attention: what no hardware does is refused, and what no run can be") {
    const auto refused = [](const attention_case& c, const char* argument) {
        const status s = c.check();
        CHECK(!s.ok());
        CHECK(std::string(s.argument) == argument);
    };
    attention_case c;
    c.format = kv_format::fp8_e4m3;
    CHECK(c.check().ok());
    c.policy.scores = A::hopper_fp8;
    refused(c, "policy.scores");  // the query is not fp8
    c.policy.query = kv_format::fp8_e4m3;
    CHECK(c.check().ok());
    c.policy.values = A::hopper_fp8_promoted;
    refused(c, "policy.values");
    c.policy.probabilities = P::fp8_e4m3;
    CHECK(c.check().ok());
    c.format = kv_format::bf16;
    refused(c, "policy.scores");
    c = {};
    c.splits = 0;
    refused(c, "splits");
    c = {};
    c.scale_factor = std::numeric_limits<double>::quiet_NaN();
    refused(c, "scale_factor");
    const attention_source source(attention_problem{});
    std::vector<attention_errors> errors;
    const status s =
        measure_attention(source, {attention_case{}}, calibrate(source, 16), 0, errors, [](std::int64_t) {});
    CHECK(std::string(s.argument) == "tile");
}

TEST_CASE("attention: memory does not depend on the number of keys") {
    // A source that counts what it is asked for.
    struct counting : attention_source {
        explicit counting(const attention_problem& p) : attention_source(p) {}
        void tile(std::int64_t first, std::int64_t n, float* k, float* v, float* b) const {
            largest = numfmt::detail::max(largest, n);
            keys_seen += n;
            attention_source::tile(first, n, k, v, b);
        }
        mutable std::int64_t largest = 0, keys_seen = 0;
    };
    attention_problem p;
    p.keys = 20000 + 7;
    p.head_size = 8;
    const counting source(p);
    std::vector<attention_errors> errors;
    REQUIRE(measure_attention(source, {attention_case{}}, kv_amax{}, 128, errors, [](std::int64_t) {}).ok());
    CHECK(source.largest == 128);
    CHECK(source.keys_seen == p.keys);
}
