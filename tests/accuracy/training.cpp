// SPDX-License-Identifier: MIT
// Optimizers by hand and beside a version in double, the network's gradient, and when bf16 weights stop learning:
// exactly where Adam's largest possible update is below the weights' threshold, and not above it.
#include <numfmt/accuracy/training.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace numfmt;
using namespace numfmt::accuracy;

namespace {

constexpr std::int64_t inputs = 17, hidden = 16, outputs = 8, samples = 256;

// Normal inputs and a 1, and what a network of random weights makes of them.
regression_data teacher_data(std::uint64_t seed) {
    regression_data data{samples, inputs, outputs, {}, {}};
    data.x.resize(samples * inputs);
    data.y.resize(samples * outputs);
    fill(distribution::gaussian, seed, 0, data.x.data(), samples * inputs);
    for (std::size_t i = inputs - 1; i < data.x.size(); i += inputs) data.x[i] = 1;
    std::vector<float> a(inputs * hidden), b(hidden * outputs);
    fill(distribution::gaussian, seed + 100, 0, a.data(), inputs * hidden);
    fill(distribution::gaussian, seed + 200, 0, b.data(), hidden * outputs);
    for (std::size_t s = 0; s < samples; ++s)
        for (std::size_t j = 0; j < hidden; ++j) {
            float h = 0;
            for (std::size_t i = 0; i < inputs; ++i) h += data.x[s * inputs + i] * a[i * hidden + j];
            for (std::size_t o = 0; o < outputs && h > 0; ++o) data.y[s * outputs + o] += h * b[j * outputs + o];
        }
    return data;
}

// bf16 numbers of random signs with magnitudes in [scale / 2, scale), scale a power of two.
std::vector<float> start_weights(std::uint64_t seed, float scale) {
    std::vector<float> w(hidden * (inputs + outputs));
    for (std::size_t i = 0; i < w.size(); ++i) {
        const std::uint32_t word = random_word(seed + 300, i);
        const float magnitude = scale * static_cast<float>(128 + (word >> 25)) / 256;
        w[i] = (word & 1u) != 0 ? -magnitude : magnitude;
    }
    return w;
}

training_result run(weight_store store, double rate, std::uint64_t seed, const std::vector<float>& start,
                    std::int64_t steps = 400) {
    training_options o;
    o.store = store;
    o.rate = rate;
    o.steps = steps;
    o.seed = seed;
    return train(two_layer_network(inputs, hidden, outputs), teacher_data(seed), start.data(), o);
}

double start_loss(std::uint64_t seed, const std::vector<float>& start) {
    return two_layer_network(inputs, hidden, outputs).loss(start.data(), teacher_data(seed));
}

}  // namespace

TEST_CASE("optimizers: SGD and Adam by hand") {
    optimizer_options o;
    o.kind = optimizer_kind::sgd;
    o.momentum = 0.5f;
    optimizer sgd(o, 2);
    const float gradient[2] = {1, -4};
    float update[2];
    sgd.step(gradient, 0.25f, update);
    CHECK(update[0] == -0.25f);
    CHECK(update[1] == 1.0f);
    sgd.step(gradient, 0.25f, update);
    CHECK(update[0] == -0.375f);
    CHECK(update[1] == 1.5f);
    CHECK(state_bytes(o) == 4);
    o.momentum = 0;
    CHECK(state_bytes(o) == 0);

    // Adam moves every weight by the rate while its gradient stays the same, whatever its size.
    optimizer adam(optimizer_options{}, 2);
    for (int step = 0; step < 20; ++step) {
        adam.step(gradient, 0.25f, update);
        CHECK(update[0] == doctest::Approx(-0.25).epsilon(1e-5));
        CHECK(update[1] == doctest::Approx(0.25).epsilon(1e-5));
    }
    optimizer_options narrow;
    CHECK(state_bytes(narrow) == 8);
    narrow.bf16_state = true;
    CHECK(state_bytes(narrow) == 4);
}

TEST_CASE("optimizers: Adam beside the published algorithm in double") {
    for (const std::uint64_t seed : {0u, 1u, 2u}) {
        constexpr std::size_t n = 50;
        optimizer adam(optimizer_options{}, n);
        std::vector<float> g(n), update(n);
        std::vector<double> m(n), v(n);
        const double beta1 = static_cast<double>(0.9f), beta2 = static_cast<double>(0.999f);
        for (int t = 1; t <= 60; ++t) {
            fill(distribution::gaussian, seed, static_cast<std::uint64_t>(t) * n, g.data(), n);
            adam.step(g.data(), 1e-3f, update.data());
            for (std::size_t i = 0; i < n; ++i) {
                const double x = static_cast<double>(g[i]);
                m[i] = beta1 * m[i] + (1 - beta1) * x;
                v[i] = beta2 * v[i] + (1 - beta2) * x * x;
                const double corrected = m[i] / (1 - std::pow(beta1, t));
                const double expected = -1e-3 * corrected / (std::sqrt(v[i] / (1 - std::pow(beta2, t))) + 1e-8);
                // 1 - beta2 in fp32 is exact; a mean of t terms of size 1 is off by at most t half units of 2^-24, and
                // updates are of the rate's size.
                CHECK(std::fabs(static_cast<double>(update[i]) - expected) < 1e-3 * 4 * t * 0x1p-24 * 10);
            }
        }
    }
}

TEST_CASE("optimizers: Adam's v in bf16 stops at a quarter of g^2 and never falls") {
    // An increment of (1 - beta2) (g^2 - v) is half a unit of v or more up to v = g^2 / 4, where the unit becomes 2^-9.
    optimizer_options options;
    optimizer wide(options, 1);
    options.bf16_state = true;
    optimizer narrow(options, 1);
    float update = 0;
    const auto steps = [&](float g, int count) {
        for (int i = 0; i < count; ++i) {
            wide.step(&g, 1e-3f, &update);
            narrow.step(&g, 1e-3f, &update);
        }
    };
    steps(1, 4000);
    CHECK(narrow.second()[0] == 0.25f);
    CHECK(wide.second()[0] == doctest::Approx(1 - std::pow(0.999, 4000)).epsilon(1e-3));
    CHECK(narrow.first()[0] > 0.9f);  // changes of a tenth arrive
    steps(0, 1000);
    CHECK(narrow.second()[0] == 0.25f);
    CHECK(wide.second()[0] < 0.4f);
    // bf16 notices a g^2 that is several times v.
    steps(2, 1000);
    CHECK(narrow.second()[0] == 1.0f);
}

TEST_CASE("training: the gradient is that of the loss") {
    // Positive inputs and hidden units that are on or off for every sample: within each the loss is quadratic in one
    // weight, for which central differences are exact. Predictions below 2^4 carry errors of some 2^-20, over a step of
    // 2^-6.
    regression_data data{9, 3, 2, {}, {}};
    data.x.resize(27);
    data.y.resize(18);
    fill(distribution::uniform, 1, 0, data.x.data(), 27, 0.2);
    for (float& x : data.x) x += 1;
    fill(distribution::gaussian, 2, 0, data.y.data(), 18);
    constexpr std::int64_t units = 4;
    two_layer_network network(3, units, 2);
    REQUIRE(network.weights() == 20);
    std::vector<float> w(20), gradient(20);
    fill(distribution::gaussian, 3, 0, w.data(), 20);
    for (std::size_t i = 0; i < 12; ++i) w[i] = (i % units == 1 ? -1.0f : 1.0f) * (0.5f + std::fabs(w[i]));
    const std::vector<std::int64_t> rows = {0, 2, 3, 5, 8, 2};
    network.loss(w.data(), data, rows.data(), 6, gradient.data());
    for (std::size_t i = 0; i < w.size(); ++i) {
        const auto at = [&](float shift) {
            std::vector<float> moved = w;
            moved[i] += shift;
            return network.loss(moved.data(), data, rows.data(), 6, nullptr);
        };
        const double slope = (at(0x1p-6f) - at(-0x1p-6f)) / 0x1p-5;
        CHECK(std::fabs(slope - static_cast<double>(gradient[i])) < 1e-3);
        if (i < 12 && i % units == 1) CHECK(gradient[i] == 0);  // a unit that is off
        if (i < 12 && i % units != 1) CHECK(gradient[i] != 0);
    }
}

TEST_CASE("training: runs repeat, and a model reads what its store holds") {
    const std::vector<float> start = start_weights(0, 1);
    for (int i = 0; i < weight_store_count; ++i) {
        const auto store = static_cast<weight_store>(i);
        const training_result a = run(store, 1e-3, 0, start, 50), b = run(store, 1e-3, 0, start, 50);
        CHECK(a.model == b.model);
        CHECK(a.loss == b.loss);
        CHECK(run(store, 1e-3, 1, start, 50).loss != a.loss);
        bool narrow = true;
        for (const float w : a.model) narrow = narrow && static_cast<float>(bf16(w)) == w;
        CHECK(narrow == (store != weight_store::fp32));
    }
}

TEST_CASE("training: a run that diverges says so") {
    training_options o;
    o.optimizer.kind = optimizer_kind::sgd;
    o.rate = 1e6;
    o.steps = 40;
    const std::vector<float> start = start_weights(0, 1);
    const training_result r = train(two_layer_network(inputs, hidden, outputs), teacher_data(0), start.data(), o);
    CHECK_FALSE(std::isfinite(r.loss));
    CHECK(r.lost_share >= 0);
    CHECK(r.lost_share <= 1);
}

TEST_CASE("training: bf16 weights stop where the largest update is below half their distance") {
    // Weights in [1/2, 1) stay for updates below 2^-10. Adam's are at most rate (1 - beta1) / sqrt(1 - beta2), 3.2
    // times the rate (Kingma & Ba, section 2.1): below 2^-10 at rate 2^-13. So the loss stays what it was, to the last
    // bit.
    constexpr double rate = 0x1p-13, path = 400 * rate;
    for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
        const std::vector<float> start = start_weights(seed, 1);
        const double before = start_loss(seed, start);
        const training_result reference = run(weight_store::fp32, rate, seed, start);
        const double gain = before - reference.loss;
        CHECK(gain > 0.02 * before);
        CHECK(reference.lost_share > 0.99);
        CHECK(reference.median_ratio < 0x1p-10);
        const training_result stopped = run(weight_store::bf16, rate, seed, start);
        CHECK(stopped.model == start);
        CHECK(stopped.loss == before);
        CHECK(stopped.lost_share == 1);
        // The ratio counts, not the rate: at the same rate smaller weights learn.
        const std::vector<float> small = start_weights(seed, 0x1p-4f);
        CHECK(run(weight_store::bf16, rate, seed, small).loss < start_loss(seed, small));

        // A master and Kahan's weights are read with an error of at most U / 2 = 2^-9, a share of the path; a
        // stochastic weight strays by sqrt(U path), 28 % of it, which over 400 weights of random signs comes to 1.4 %:
        // 5 deviations.
        const auto kept = [&](weight_store store) { return (before - run(store, rate, seed, start).loss) / gain; };
        CHECK(std::fabs(kept(weight_store::fp32_master) - 1) < 0x1p-9 / path);
        CHECK(std::fabs(kept(weight_store::bf16_kahan) - 1) < 0x1p-9 / path);
        CHECK(std::fabs(kept(weight_store::bf16_stochastic) - 1) < 5 * std::sqrt(0x1p-8 / path / 400));
    }
}

TEST_CASE("training: bf16 weights learn above the threshold, and in part around it") {
    // Half the distance of weights in [1/2, 1) is 2^-9. Adam's updates are the rate or less, seldom more: at rate 2^-10
    // nearly none arrives, at 2^-9 some do, and at 2^-6 each is rounded by at most an eighth of the rate.
    for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
        const std::vector<float> start = start_weights(seed, 1);
        const double before = start_loss(seed, start);
        const auto kept = [&](double rate) {
            return (before - run(weight_store::bf16, rate, seed, start).loss) /
                   (before - run(weight_store::fp32, rate, seed, start).loss);
        };
        CHECK(std::fabs(kept(0x1p-10)) < 0.02);
        const double around = kept(0x1p-9);
        CHECK(around > 0.05);
        CHECK(around < 0.8);
        CHECK(std::fabs(kept(0x1p-6) - 1) < 0.125);
    }
}
