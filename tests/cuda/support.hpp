// SPDX-License-Identifier: MIT
// Shared by the GPU tests: main() (exit code 77 where there is no device), device arrays, and comparisons that treat
// NaN as a class. Included by exactly one source per program.
#pragma once

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include <numfmt/numfmt.hpp>

namespace numfmt_test {

using namespace numfmt;

inline void check_cuda(cudaError_t e) { REQUIRE_MESSAGE(e == cudaSuccess, cudaGetErrorString(e)); }

/// An array on the device with `front` bytes before it, so that its alignment can be chosen. Memory past the end and
/// before the start holds a pattern that intact() looks for.
template <class T> class device_array {
  public:
    explicit device_array(size_t n, size_t front = 0) : n_(n), front_(front) {
        check_cuda(cudaMalloc(&base_, bytes() + front_ + 2 * guard));
        check_cuda(cudaMemset(base_, 0xA5, bytes() + front_ + 2 * guard));
    }
    explicit device_array(const std::vector<T>& host, size_t front = 0) : device_array(host.size(), front) {
        if (!host.empty()) check_cuda(cudaMemcpy(data(), host.data(), bytes(), cudaMemcpyHostToDevice));
    }
    device_array(const device_array&) = delete;
    device_array& operator=(const device_array&) = delete;
    ~device_array() { cudaFree(base_); }

    T* data() const { return reinterpret_cast<T*>(base_ + guard + front_); }
    size_t size() const { return n_; }
    std::vector<T> host() const {
        std::vector<T> h(n_);
        if (n_ > 0) check_cuda(cudaMemcpy(h.data(), data(), bytes(), cudaMemcpyDeviceToHost));
        return h;
    }
    /// True if nothing was written outside the array.
    bool intact() const {
        std::vector<unsigned char> h(bytes() + front_ + 2 * guard);
        check_cuda(cudaMemcpy(h.data(), base_, h.size(), cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < h.size(); ++i)
            if ((i < guard + front_ || i >= guard + front_ + bytes()) && h[i] != 0xA5) return false;
        return true;
    }

  private:
    static constexpr size_t guard = 256;
    size_t bytes() const { return n_ * sizeof(T); }

    unsigned char* base_ = nullptr;
    size_t n_, front_;
};

/// A deterministic stream of words.
class random_words_stream {
  public:
    explicit random_words_stream(uint64_t seed) : seed_(seed) {}
    uint32_t operator()() { return random_word(seed_, index_++); }

  private:
    uint64_t seed_, index_ = 0;
};

/// Equal bits, or both NaN (of a 16-bit float format, or of float).
template <class T> bool same_number(T a, T b) {
    if constexpr (numfmt::detail::is_minifloat_v<T>) {
        return a.bits() == b.bits() || (is_nan(a) && is_nan(b));
    } else {
        return bit_cast<uint32_t>(a) == bit_cast<uint32_t>(b) ||
               (numfmt::detail::is_nan(a) && numfmt::detail::is_nan(b));
    }
}

/// Counts differences without the cost of one assertion each; the first is described.
struct differences {
    int64_t compared = 0, wrong = 0;
    std::string first;
    template <class Describe> void expect(bool equal, Describe&& describe) {
        ++compared;
        if (!equal && wrong++ == 0) first = describe();
    }
};
#define NUMFMT_CHECK_NONE(d)                                                                           \
    do {                                                                                               \
        CHECK_MESSAGE((d).wrong == 0, (d).wrong, " of ", (d).compared, " differ, first: ", (d).first); \
        CHECK((d).compared > 0);                                                                       \
    } while (false)

inline std::string hex(uint64_t v) {
    char text[20];
    std::snprintf(text, sizeof text, "%llX", static_cast<unsigned long long>(v));
    return text;
}

}  // namespace numfmt_test

int main(int argc, char** argv) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("SKIPPED: no CUDA device");
        return 77;
    }
    doctest::Context context(argc, argv);
    return context.run();
}
