// SPDX-License-Identifier: MIT
// Every accumulator over the same numbers, hashed: compiled into units with different flags. No standard library in
// here, so that a unit built with -ffast-math shares no inline function with the others.
#pragma once

#include <cstdint>

#include <numfmt/accumulate/welford.hpp>
#include <numfmt/bf16.hpp>
#include <numfmt/fp16.hpp>

namespace numfmt_test {

// Defined in fastmath_accumulate.cpp, which is built with -ffast-math.
std::uint64_t fast_math_accumulate_hash(const float* x, const float* y, const double* z, int n);
/// Sums that come out wrong when a compiler simplifies the compensation away: kahan, neumaier, dot2 of x (and y), and
/// neumaier after an overflow.
struct fragile_sums {
    float kahan, neumaier, dot2, after_overflow;
};
fragile_sums fast_math_fragile_sums(const float* x, const float* y, const float* large, int n);
bool accumulate_built_with_fast_math();

namespace {  // a copy per unit, on purpose

template <class A> void hash_sums(std::uint64_t& h, const float* x, const float* y, int n) {
    const auto add = [&](float v) { h = (h ^ numfmt::bit_cast<std::uint32_t>(v)) * 0x100000001B3u; };
    add(numfmt::accumulate::sum<A>(x, n));
    add(numfmt::accumulate::dot<A>(x, y, n));
}

template <class Policy> void hash_shapes(std::uint64_t& h, const float* x, const float* y, int n) {
    using namespace numfmt::accumulate;
    hash_sums<Policy>(h, x, y, n);
    hash_sums<interleaved<Policy, 8, 2>>(h, x, y, n);
    hash_sums<interleaved<Policy, 3, 4, tree::neighbours>>(h, x, y, n);
    hash_sums<interleaved<Policy, 16, 1, tree::in_order>>(h, x, y, n);
    hash_sums<pairwise<Policy, 4>>(h, x, y, n);
    hash_sums<promoted<Policy, 32>>(h, x, y, n);
}

template <class V> void hash_variance(std::uint64_t& h, const float* x, int n) {
    V v{};
    for (int i = 0; i < n; ++i) v.add(x[i]);
    h = (h ^ numfmt::bit_cast<std::uint32_t>(v.value())) * 0x100000001B3u;
}

inline std::uint64_t accumulate_hash(const float* x, const float* y, const double* z, int n) {
    using namespace numfmt::accumulate;
    std::uint64_t h = 0xCBF29CE484222325u;
    hash_shapes<sequential<float>>(h, x, y, n);
    hash_shapes<kahan<float>>(h, x, y, n);
    hash_shapes<neumaier<float>>(h, x, y, n);
    hash_shapes<dot2<float>>(h, x, y, n);
    hash_shapes<in_double>(h, x, y, n);
    hash_shapes<rounded_to<numfmt::bf16>>(h, x, y, n);
    hash_shapes<rounded_to<numfmt::fp16>>(h, x, y, n);
    hash_variance<power_sums<sequential<float>>>(h, x, n);
    hash_variance<shifted_power_sums<kahan<float>>>(h, x, n);
    hash_variance<interleaved<welford<float>, 8>>(h, x, n);
    const auto v = two_pass<neumaier<float>>(x, n);
    h = (h ^ numfmt::bit_cast<std::uint32_t>(v.mean)) * 0x100000001B3u;
    h = (h ^ numfmt::bit_cast<std::uint32_t>(v.variance)) * 0x100000001B3u;
    const double d[] = {sum<kahan<double>>(z, n), dot<neumaier<double>>(z, z + 1, n - 1),
                        dot<interleaved<dot2<double>, 4, 2>>(z, z + 1, n - 1), sum<pairwise<sequential<double>>>(z, n)};
    for (const double v64 : d) h = (h ^ numfmt::bit_cast<std::uint64_t>(v64)) * 0x100000001B3u;
    return h;
}

}  // namespace
}  // namespace numfmt_test
