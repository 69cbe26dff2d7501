// SPDX-License-Identifier: MIT
// What the units of the two-CPU program share: the functions they call of each other, and the sum of
// their results. Everything with a body is internal, so that no unit gets another unit's copy.
#pragma once

#include <cstdint>
#include <cstring>

/// The sums of one unit: of the reference, compiled for the unit's CPU, and of its SIMD kernels.
struct unit_results {
    std::uint64_t reference, kernels;
};
unit_results work_of_old(const float* x, std::int64_t n);
unit_results work_of_new(const float* x, std::int64_t n);
/// Both sums as they must be, by the oracle of the tests, which shares no function with numfmt.
std::uint64_t expected_work(const float* x, std::int64_t n);

namespace {

class checksum {
  public:
    void add(std::uint32_t code, float value) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        add(code);
        add(bits);
    }
    std::uint64_t value() const { return sum_; }

  private:
    void add(std::uint64_t v) { sum_ = (sum_ ^ v) * 6364136223846793005u + 1; }
    std::uint64_t sum_ = 0;
};

}  // namespace
