// SPDX-License-Identifier: MIT
// Short forms for tests that quantize a few numbers and look at what comes back.
#pragma once

#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include <utility>
#include <vector>

#include "block_oracle.hpp"

namespace numfmt_test {

using namespace numfmt;

template <class S>
quantized_tensor<S> quantized(const std::vector<float>& x, matrix_shape shape, const quantize_options& o = {}) {
    auto q = quantize<S>(matrix_view<const float>{x.data(), shape}, o);
    REQUIRE(q.ok());
    return std::move(q.value);
}
template <class S> quantized_tensor<S> quantized_row(const std::vector<float>& x, const quantize_options& o = {}) {
    return quantized<S>(x, {1, static_cast<int64_t>(x.size())}, o);
}
template <class S> std::vector<float> values(const quantized_tensor<S>& t) {
    std::vector<float> y(static_cast<size_t>(t.shape().rows * t.shape().cols));
    REQUIRE(dequantize(t.view(), matrix_view<float>{y.data(), t.shape()}).ok());
    return y;
}
inline int count_nan(const std::vector<float>& y) {
    int n = 0;
    for (const float v : y) n += detail::is_nan(v);
    return n;
}
/// Uniform in [-1, 1), the same number for the same index.
inline float random_float(uint64_t index) {
    return static_cast<float>(block_oracle::philox_word(11, index)) * 0x1p-31f - 1.0f;
}

}  // namespace numfmt_test
