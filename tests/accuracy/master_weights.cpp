// SPDX-License-Identifier: MIT
// Stores of weights in training: their bits by hand and beside other code, and which share of small updates arrives,
// held to the theory from both sides.
#include <numfmt/accuracy/master_weights.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <vector>

using namespace numfmt;
using namespace numfmt::accuracy;

namespace {

stored_weights one(weight_store store, float w) { return {store, &w, 1}; }

// A weight after some updates.
stored_weights after(weight_store store, float w, std::initializer_list<float> updates) {
    stored_weights s = one(store, w);
    for (const float u : updates) s.add(&u);
    return s;
}

update_arrival arrival(weight_store store, std::int64_t steps, std::int64_t weights, std::uint64_t seed) {
    update_arrival a;
    REQUIRE(measure_update_arrival(store, steps, weights, seed, a).ok());
    return a;
}

// A float that is rounded to bf16 after every operation, for the accumulators.
struct bf16_real {
    float x = 0;
};
bf16_real rounded_add(bf16_real a, bf16_real b) { return {accumulate::round_to_format<bf16>(a.x + b.x)}; }
bf16_real rounded_sub(bf16_real a, bf16_real b) { return {accumulate::round_to_format<bf16>(a.x - b.x)}; }

// update / U of the 128 significands at the ratio 1 / (8 * steps).
double update_in_quanta(int significand, std::int64_t steps) {
    return significand / 128.0 / static_cast<double>(8 * steps) * 128.0;
}

}  // namespace

TEST_CASE("master_weights: bits of every store by hand") {
    // Above 1 the neighbours stand 2^-7 apart, below it 2^-8. Ties go to the even significand: 1, and 1 + 2^-6.
    const auto plain = [](float w, float u) { return after(weight_store::bf16, w, {u})[0]; };
    CHECK(plain(1, 0x1p-8f) == 1);
    CHECK(plain(1, 0x1.001p-8f) == 1 + 0x1p-7f);
    CHECK(plain(1 + 0x1p-7f, 0x1p-8f) == 1 + 0x1p-6f);
    CHECK(plain(1, -0x1p-9f) == 1);
    CHECK(plain(1, -0x1.001p-9f) == 1 - 0x1p-8f);
    CHECK(plain(-1, -0x1p-8f) == -1);
    CHECK(after(weight_store::bf16, 1, {0x1p-8f, 0x1p-8f, 0x1p-8f, 0x1p-8f}).kept(0) == 1);

    const stored_weights master = after(weight_store::fp32_master, 1, {0x1p-8f});
    CHECK(master[0] == 1);
    CHECK(master.kept(0) == 1 + 0x1p-8);
    CHECK(after(weight_store::fp32_master, 1, {0x1p-8f, 0x1p-8f})[0] == 1 + 0x1p-7f);
    CHECK(after(weight_store::fp32_master, 1, {0x1p-24f}).kept(0) == 1);  // the same tie in fp32
    CHECK(after(weight_store::fp32, 1, {0x1p-8f})[0] == 1 + 0x1p-8f);

    // The compensation grows to 2^-8, a tie that the even weight keeps; a third update lifts it over, by one quantum.
    const stored_weights twice = after(weight_store::bf16_kahan, 1, {0x1p-9f, 0x1p-9f});
    CHECK(twice[0] == 1);
    CHECK(twice.kept(0) == 1 + 0x1p-8);
    const stored_weights thrice = after(weight_store::bf16_kahan, 1, {0x1p-9f, 0x1p-9f, 0x1p-9f});
    CHECK(thrice[0] == 1 + 0x1p-7f);
    CHECK(thrice.kept(0) == 1 + 3 * 0x1p-9);
    CHECK(thrice.step() == 3);

    // A store that is narrower than its weights rounds them once.
    CHECK(one(weight_store::fp32, 1.001f)[0] == 1.001f);
    CHECK(one(weight_store::fp32_master, 1.001f)[0] == 1);
    CHECK(one(weight_store::fp32_master, 1.001f).kept(0) == static_cast<double>(1.001f));
    CHECK(one(weight_store::bf16_kahan, 1.001f).kept(0) == 1);

    CHECK(update_vanishes(bf16(1.0f), 0x1p-8f));
    CHECK_FALSE(update_vanishes(bf16(1.0f), 0x1.001p-8f));
    CHECK(update_vanishes(bf16(1.0f), -0x1p-9f));
    CHECK_FALSE(update_vanishes(bf16(1.0f), -0x1.001p-9f));
    const int bytes[] = {4, 6, 4, 2, 2};
    for (int i = 0; i < weight_store_count; ++i) CHECK(bytes_per_weight(static_cast<weight_store>(i)) == bytes[i]);
}

TEST_CASE("master_weights: Kahan is the accumulator of that name over bf16") {
    constexpr std::int64_t n = 64;
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
        std::vector<float> w(n), update(n);
        fill(distribution::gaussian, seed, 0, w.data(), n);
        for (float& x : w) x += std::copysign(0.25f, x);  // far above the updates: what a sum moved is a bf16 number
        stored_weights stored(weight_store::bf16_kahan, w.data(), n);
        std::vector<accumulate::kahan<bf16_real>> sums(n);
        for (std::size_t i = 0; i < w.size(); ++i) sums[i].add({accumulate::round_to_format<bf16>(w[i])});
        int moved = 0;
        for (std::uint64_t step = 0; step < 500; ++step) {
            fill(distribution::gaussian, seed + 10, step * n, update.data(), n, 0x1p-9);
            for (float& u : update) u = bf16(u);  // the store takes fp32 updates, the accumulator bf16 ones
            stored.add(update.data());
            for (std::size_t i = 0; i < w.size(); ++i) {
                sums[i].add({update[i]});
                REQUIRE(stored[static_cast<std::int64_t>(i)] == sums[i].value().x);
            }
        }
        for (std::int64_t i = 0; i < n; ++i)
            moved += stored[i] != static_cast<float>(bf16(w[static_cast<std::size_t>(i)]));
        CHECK(moved > n / 2);
    }
}

TEST_CASE("master_weights: stochastic bits follow from seed, step and index") {
    constexpr std::int64_t n = 7;  // the four words of a counter straddle the steps
    for (const std::uint64_t seed : {0u, 5u}) {
        std::vector<float> w(n), update(n), other(n);
        fill(distribution::gaussian, 1, 0, w.data(), n);
        for (float& x : w) x = bf16(x);
        stored_weights stored(weight_store::bf16_stochastic, w.data(), n, seed);
        stored_weights elsewhere(weight_store::bf16_stochastic, w.data(), n, seed + 1);
        int differ = 0;
        for (std::uint64_t step = 0; step < 40; ++step) {
            fill(distribution::gaussian, 2, step * n, update.data(), n, 0x1p-9);
            stored.add(update.data());
            elsewhere.add(update.data());
            for (std::size_t i = 0; i < w.size(); ++i) {
                const auto code = encode<bf16, rounding::stochastic>(w[i] + update[i], encode_options{},
                                                                     random_word(seed, step * n + i));
                w[i] = decode<bf16>(code);
                REQUIRE(stored[static_cast<std::int64_t>(i)] == w[i]);
                differ += elsewhere[static_cast<std::int64_t>(i)] != w[i] ? 1 : 0;
            }
        }
        CHECK(differ > 0);
    }
}

TEST_CASE("master_weights: stochastic rounding is unbiased") {
    // Of n weights 1 with the update f 2^-7 a number that is binomial (n, f) goes up; 5 standard deviations are missed
    // once in 10^6.
    constexpr std::int64_t n = 40000;
    const std::vector<float> w(n, 1.0f);
    for (const std::uint64_t seed : {0u, 1u, 2u})
        for (const double f : {0x1p-10, 0.1, 0.5, 0.9}) {
            const std::vector<float> update(n, static_cast<float>(f * 0x1p-7));
            stored_weights stored(weight_store::bf16_stochastic, w.data(), n, seed);
            stored.add(update.data());
            double up = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                REQUIRE((stored[i] == 1 || stored[i] == 1 + 0x1p-7f));
                up += stored[i] != 1 ? 1 : 0;
            }
            const double expected = static_cast<double>(n) * f;
            CHECK(std::fabs(up - expected) < 5 * std::sqrt(expected * (1 - f)));
        }
}

TEST_CASE("master_weights: bf16 loses all updates below 2^-9 of the weight and moves above") {
    constexpr std::int64_t n = 2048;
    for (const std::uint64_t seed : {0u, 1u, 2u}) {
        for (const std::int64_t steps : {64, 100, 1024}) {  // 2^-9 and less
            const update_arrival a = arrival(weight_store::bf16, steps, n, seed);
            CHECK(a.still == n);
            CHECK(a.mean == 0);
            CHECK(a.rms_error == 1);
        }
        // In between, significands up to a limit stay: u <= U / 2, the tie at an even significand included.
        for (const std::int64_t steps : {33, 45, 60}) {
            int stay = 0;
            for (int m = 128; m < 256; ++m) {
                const double q = update_in_quanta(m, steps);
                stay += q < 0.5 || (q == 0.5 && m % 2 == 0) ? 1 : 0;
            }
            const double p = stay / 128.0;
            REQUIRE(p > 0.01);
            REQUIRE(p < 0.99);
            const update_arrival a = arrival(weight_store::bf16, steps, n, seed);
            CHECK(std::fabs(static_cast<double>(a.still) / n - p) < 5 * std::sqrt(p * (1 - p) / n));
        }
        // At 2^-8 all but the powers of two move, by a whole U each time: the share is U / u, 256 / m on average 1.4.
        double mean = 0, squares = 0;
        for (int m = 129; m < 256; ++m) {
            mean += 256.0 / m / 128;
            squares += 256.0 / m * 256.0 / m / 128;
        }
        const update_arrival a = arrival(weight_store::bf16, 32, n, seed);
        CHECK(std::fabs(a.mean - mean) < 5 * std::sqrt((squares - mean * mean) / n));
        CHECK(a.mean > 1.3);
        CHECK(static_cast<double>(a.still) / n < 1.0 / 128 + 5 * std::sqrt(1.0 / 128 / n));
    }
}

TEST_CASE("master_weights: nearest sums are off by up to half a quantum every time") {
    // u / U takes all fractions, so that the error is uniform over +- U / 2: rms U / u / sqrt(12), where the mean of
    // (U / u)^2 over the binade is half of its largest value. That is 0.41 of the bound.
    constexpr std::int64_t n = 1024;
    for (const std::uint64_t seed : {0u, 1u, 2u}) {
        for (const std::int64_t steps : {1, 3, 8}) {
            const update_arrival a = arrival(weight_store::bf16, steps, n, seed);
            const double bound = arrival_bound(weight_store::bf16, steps);
            CHECK(bound == doctest::Approx(0x1p-8 * 8 * static_cast<double>(steps)));
            CHECK(a.worst <= bound);
            CHECK(a.rms_error > 0.3 * bound);
            CHECK(a.rms_error < 0.5 * bound);
        }
        for (const weight_store store : {weight_store::fp32, weight_store::fp32_master}) {
            const std::int64_t steps = 1 << 16;  // 2^-19
            const update_arrival a = arrival(store, steps, 256, seed);
            CHECK(a.worst <= arrival_bound(store, steps));
            CHECK(a.rms_error > 0.3 * arrival_bound(store, steps));
            CHECK(arrival(store, 64, n, seed).worst <= 0x1p-24 * 512);
            CHECK(arrival(store, 64, n, seed).still == 0);
        }
    }
}

TEST_CASE("master_weights: Kahan in bf16 keeps updates down to 2^-16 and stops there") {
    constexpr std::int64_t n = 512;
    for (const std::uint64_t seed : {0u, 1u, 2u}) {
        for (const std::int64_t steps : {1, 32, 64, 1024, 4096}) {
            const update_arrival a = arrival(weight_store::bf16_kahan, steps, n, seed);
            CHECK(a.worst <= arrival_bound(weight_store::bf16_kahan, steps));
            CHECK(a.still == 0);
            CHECK(a.mean > 0.95);  // the errors of one update have both signs
        }
        // 2^-17: the compensation stops at U / 2 after at most one step of U, and the sent sum is U w 16 or more.
        const update_arrival stopped = arrival(weight_store::bf16_kahan, 1 << 14, 128, seed);
        CHECK(stopped.mean < 1.5 / 16);
        CHECK(stopped.worst < 1);  // what the compensation holds is kept all the same
    }
}

TEST_CASE("master_weights: stochastic rounding keeps the mean, and strays as a random walk") {
    constexpr std::int64_t n = 4096;
    for (const std::uint64_t seed : {0u, 1u, 2u})
        for (const std::int64_t steps : {4, 32, 64, 1024}) {
            const update_arrival a = arrival(weight_store::bf16_stochastic, steps, n, seed);
            // Variance of the share, (U / u)^2 f (1 - f) / steps, over the significands.
            double variance = 0;
            for (int m = 128; m < 256; ++m) {
                const double q = update_in_quanta(m, steps), f = q - std::floor(q);
                variance += f * (1 - f) / (q * q) / static_cast<double>(steps) / 128;
            }
            const double ratio = 1 / static_cast<double>(8 * steps);
            CHECK(std::sqrt(variance) <= arrival_bound(weight_store::bf16_stochastic, steps));
            CHECK(std::sqrt(variance) > 0.4 * arrival_bound(weight_store::bf16_stochastic, steps));
            // The sum formed in fp32 may be off by 2^-24 / ratio every time.
            CHECK(std::fabs(a.mean - 1) < 5 * std::sqrt(variance / n) + 0x1p-24 / ratio);
            // A sample variance strays by sqrt((kurtosis - 1) / n) of itself; binomials of several widths mixed have a
            // kurtosis below 6.
            CHECK(a.deviation * a.deviation == doctest::Approx(variance).epsilon(5 * std::sqrt(5.0 / n)));
        }
}

TEST_CASE("master_weights: refused sizes") {
    update_arrival a;
    constexpr auto out_of_range = status_code::out_of_range;
    CHECK(measure_update_arrival(weight_store::bf16, 0, 1, 0, a) == status{out_of_range, "steps", 0, 1});
    CHECK(measure_update_arrival(weight_store::bf16, (1 << 23) + 1, 1, 0, a) ==
          status{out_of_range, "steps", (1 << 23) + 1, 1 << 23});
    CHECK(measure_update_arrival(weight_store::bf16, 1, 0, 0, a) == status{out_of_range, "weights", 0, 1});
    CHECK(measure_update_arrival(weight_store::bf16, 1, (1 << 24) + 1, 0, a) ==
          status{out_of_range, "weights", (1 << 24) + 1, 1 << 24});
}
