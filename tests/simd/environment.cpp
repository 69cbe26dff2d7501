// SPDX-License-Identifier: MIT
// Formats and schemes with E8M0 scales give the same bits whatever the processor's rounding mode, and with subnormals
// flushed.
#include <cfenv>
#include <cstring>
#include <string>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "inputs.hpp"
#include "targets.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

struct rounding_mode {
    explicit rounding_mode(int mode) : before(std::fegetround()) { REQUIRE(std::fesetround(mode) == 0); }
    ~rounding_mode() { std::fesetround(before); }
    int before;
};

#if defined(__SSE__)
struct flushed_subnormals {
    flushed_subnormals() : before(_mm_getcsr()) { _mm_setcsr(before | 0x8040); }  // FTZ and DAZ
    ~flushed_subnormals() { _mm_setcsr(before); }
    unsigned before;
};
#endif

// Every result as bytes, made under `Environment`.
template <class Environment> std::vector<std::uint8_t> results(const std::vector<float>& x, Environment&& enter) {
    std::vector<std::uint8_t> all;
    const auto keep = [&](const void* p, std::size_t bytes) {
        const auto* b = static_cast<const std::uint8_t*>(p);
        all.insert(all.end(), b, b + bytes);
    };
    const auto n = static_cast<std::int64_t>(x.size());
    const matrix_shape shape{n / 256, 256};
    [[maybe_unused]] const auto environment = enter();
    for_each(all_formats{}, [&]<class F>() {
        std::vector<typename F::storage> codes(x.size());
        std::vector<float> y(x.size());
        (void)simd::encode<F>(x.data(), n, codes.data());
        (void)simd::decode<F>(codes.data(), n, y.data());
        keep(codes.data(), codes.size() * sizeof codes[0]);
        keep(y.data(), y.size() * sizeof y[0]);
    });
    for_each(type_list<mxfp8_e4m3, mxfp8_e5m2, mxint8, mxfp6_e2m3, mxfp6_e3m2, mxfp4>{}, [&]<class S>() {
        const auto q = simd::quantize<S>(matrix_view<const float>{x.data(), shape}).value;
        std::vector<float> y(static_cast<std::size_t>(shape.rows * shape.cols));
        (void)simd::dequantize(q.view(), matrix_view<float>{y.data(), shape});
        keep(q.view().parts().codes,
             static_cast<std::size_t>(shape.rows * scheme_traits<S>::code_row_bytes(shape.cols)));
        keep(q.view().parts().scales, static_cast<std::size_t>(shape.rows * q.view().scale_shape().cols));
        keep(y.data(), y.size() * sizeof y[0]);
    });
    return all;
}

std::vector<float> inputs() {
    std::vector<float> x = matrix(64, 256, data::every_exponent);
    const std::vector<float> more = matrix(64, 256, data::hard_blocks), bits = matrix(16, 256, data::any_bits);
    x.insert(x.end(), more.begin(), more.end());
    x.insert(x.end(), bits.begin(), bits.end());
    const std::vector<float> ties = matrix(16, 256, data::ties);
    x.insert(x.end(), ties.begin(), ties.end());
    return x;
}

}  // namespace

TEST_CASE("simd environment: every rounding mode of the processor") {
    const std::vector<float> x = inputs();
    for_each_target([&] {
        const auto expected = results(x, [] { return 0; });
        for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
            INFO(mode);
            CHECK(results(x, [mode] { return rounding_mode(mode); }) == expected);
        }
    });
}

#if defined(__SSE__)
TEST_CASE("simd environment: flush-to-zero and denormals-are-zero") {
    const std::vector<float> x = inputs();
    for_each_target([&] {
        const auto expected = results(x, [] { return 0; });
        CHECK(results(x, [] { return flushed_subnormals(); }) == expected);
    });
}
#endif
