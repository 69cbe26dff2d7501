// SPDX-License-Identifier: MIT
// What a row of a host benchmark reports: the time of a function beside that of a plain loop that moves the same number
// of bytes in and out, the two called in turn.
#pragma once

#include <benchmark/benchmark.h>
#include <numfmt/core/philox.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "ceiling.hpp"

namespace numfmt::bench {

/// Bytes on a 4 KiB boundary, touched, so that page faults are over before anything is timed.
class bytes {
  public:
    explicit bytes(std::int64_t n)
        : size_(n),
          data_(static_cast<unsigned char*>(::operator new(static_cast<std::size_t>(n) + 64, std::align_val_t{4096}))) {
        std::memset(data_, 1, static_cast<std::size_t>(n) + 64);
    }
    bytes(const bytes&) = delete;
    bytes& operator=(const bytes&) = delete;
    ~bytes() { ::operator delete(data_, std::align_val_t{4096}); }
    template <class T> T* as() { return reinterpret_cast<T*>(data_); }
    std::int64_t size() const { return size_; }

  private:
    std::int64_t size_;
    unsigned char* data_;
};

/// Bell-shaped numbers of both signs with a spread of exponents: the sum of four uniform words.
inline void fill_floats(float* x, std::int64_t n) {
    // A period of 2^20: the data of large arrays repeats, their making does not take minutes.
    const std::int64_t period = std::min<std::int64_t>(n, 1 << 20);
    for (std::int64_t i = 0; i < period; ++i) {
        const philox_block w = random_words(1, static_cast<std::uint64_t>(i));
        float sum = 0;
        for (const std::uint32_t v : w.word) sum += static_cast<float>(static_cast<std::int32_t>(v)) * 0x1p-31f;
        x[i] = sum;
    }
    for (std::int64_t i = period; i < n; ++i) x[i] = x[i - period];
}

inline double median(std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
}

/// Times f against the ceiling, in turn; both work on the whole input once per call. `split(f)` calls f(part) for every
/// thread's part, in the way that f itself is spread over threads (serial: one part).
template <class F, class Split>
void measure(benchmark::State& state, std::int64_t elements, std::int64_t in_bytes, std::int64_t out_bytes, int threads,
             F&& f, Split&& split) {
    bytes in(in_bytes), out(out_bytes);
    std::vector<double> mine, ceiling, ratio;
    const auto copy = [&](std::int64_t part) {
        const std::int64_t i = in_bytes / threads / 64 * 64, o = out_bytes / threads / 64 * 64;
        move_bytes(in.as<unsigned char>() + part * i, threads == 1 ? in_bytes : i, out.as<unsigned char>() + part * o,
                   threads == 1 ? out_bytes : o);
    };
    benchmark::DoNotOptimize(out.as<unsigned char>());
    const auto seconds = [](auto&& g) {
        const auto t0 = std::chrono::steady_clock::now();
        g();
        benchmark::ClobberMemory();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    };
    for (auto _ : state) {
        const double m = seconds(f);
        state.SetIterationTime(m);
        const double c = seconds([&] { split(copy); });
        mine.push_back(m);
        ceiling.push_back(c);
        ratio.push_back(c / m);
    }
    const double m = median(mine), c = median(ceiling);
    const auto moved = static_cast<double>(in_bytes + out_bytes);
    state.counters["Gelem_per_s"] = static_cast<double>(elements) / m * 1e-9;
    state.counters["GB_per_s"] = moved / m * 1e-9;
    state.counters["ceiling_GB_per_s"] = moved / c * 1e-9;
    state.counters["ratio_to_copy"] = median(ratio);
}

}  // namespace numfmt::bench
