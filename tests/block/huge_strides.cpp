// SPDX-License-Identifier: MIT
// quantize and dequantize through arrays of many gigabytes of which only a few pages exist: 64-bit strides in the loops
// themselves (the positions alone are in cases_packing.cpp).
#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include <string>
#include <vector>

#include "support/skip.hpp"

#if defined(__linux__)
#include <sys/mman.h>

using namespace numfmt;

namespace {

/// Address space without memory behind it; pages appear as they are touched.
class reserved {
  public:
    explicit reserved(size_t bytes) : bytes_(bytes) {
        void* const p =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        data_ = p == MAP_FAILED ? nullptr : p;
    }
    reserved(const reserved&) = delete;
    reserved& operator=(const reserved&) = delete;
    ~reserved() {
        if (data_ != nullptr) munmap(data_, bytes_);
    }
    template <class T> T* as() const { return static_cast<T*>(data_); }
    bool ok() const { return data_ != nullptr; }

  private:
    void* data_ = nullptr;
    size_t bytes_;
};

template <class S>
void check(const reserved& x, const reserved& codes, const reserved& scales, const reserved& zeros, const reserved& y) {
    constexpr int64_t rows = 3, cols = 75, stride = (int64_t{1} << 31) + 16;
    std::vector<float> tight;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
            tight.push_back(static_cast<float>((r * cols + c) * 37 % 101 - 50) * 0.01f);
            x.as<float>()[r * stride + c] = tight.back();
        }
    for (const scale_layout layout : {scale_layout::row_major, scale_layout::mn_major}) {
        view_parts<S> p;
        p.codes = codes.as<uint8_t>();
        p.scales = scales.as<typename view_parts<S>::scale_storage>();
        p.shape = {rows, cols};
        if constexpr (S::has_zero_point) p.zeros = zeros.as<uint8_t>();
        p.code_stride = p.scale_stride = p.zero_stride = stride;
        p.layout = layout;
        const auto v = quantized_view<S>::make(p);
        REQUIRE(v.ok());
        REQUIRE(quantize(matrix_view<const float>{x.as<float>(), {rows, cols}, stride}, v.value).ok());
        REQUIRE(dequantize(v.value, matrix_view<float>{y.as<float>(), {rows, cols}, stride}).ok());
        const auto want = quantize<S>(matrix_view<const float>{tight.data(), {rows, cols}});
        std::vector<float> values(tight.size());
        REQUIRE(dequantize(want.value.view(), matrix_view<float>{values.data(), {rows, cols}}).ok());
        int wrong = 0;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cols; ++c) {
                wrong += v.value.code(r, c) != want.value.view().code(r, c);
                wrong += y.as<float>()[r * stride + c] != values[static_cast<size_t>(r * cols + c)];
            }
        INFO(std::string(S::name));
        CHECK(wrong == 0);
    }
}

}  // namespace

TEST_CASE("case 51 and 52: quantize and dequantize with strides past 2^31 (vllm #53390, SageAttention #390)") {
    constexpr size_t elements = size_t{3} * ((size_t{1} << 31) + 16);
    const reserved x(4 * elements), codes(elements), scales(4 * elements), zeros(elements), y(4 * elements);
    if (!x.ok() || !codes.ok() || !scales.ok() || !zeros.ok() || !y.ok()) {
        numfmt_test::skip("the system does not reserve 90 GB of address space");
        return;
    }
    check<mxfp4>(x, codes, scales, zeros, y);
    check<block_fp8_1x128>(x, codes, scales, zeros, y);
    check<int4<32>>(x, codes, scales, zeros, y);
}

#endif
