// SPDX-License-Identifier: MIT
// The codec under -ffast-math, other rounding modes, flush-to-zero and denormals-are-zero: the same bits.
#include <cfenv>
#include <vector>

#include <doctest/doctest.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "support/environment_cases.hpp"
#include "support/inputs.hpp"

using namespace numfmt_test;

namespace {

struct sample {
    std::vector<std::uint32_t> floats;
    std::vector<std::uint64_t> doubles;
    int size() const { return static_cast<int>(floats.size()); }
};

// Bit patterns, never touched as floats here: every exponent of both types, and random ones.
const sample& inputs() {
    static const sample s = [] {
        sample r;
        random_stream random(55);
        for (const double x : every_exponent<double>()) r.doubles.push_back(std::bit_cast<std::uint64_t>(x));
        const std::vector<float> floats = every_exponent<float>();
        for (std::size_t i = 0; i < r.doubles.size(); ++i) {
            r.floats.push_back(i % 3 == 0 ? random.word() : std::bit_cast<std::uint32_t>(floats[i % floats.size()]));
        }
        return r;
    }();
    return s;
}

std::uint64_t hash_here() { return codec_hash(inputs().floats.data(), inputs().doubles.data(), inputs().size()); }

// Called through volatile pointers, so that nothing is computed outside the changed environment.
std::uint64_t (*volatile normal_unit)() = &hash_here;
std::uint64_t (*volatile fast_math_unit)(const std::uint32_t*, const std::uint64_t*, int) = &fast_math_hash;

#if defined(__SSE2__) || defined(__aarch64__)
// Flush-to-zero and denormals-are-zero while it lives.
class flush_subnormals {
  public:
#if defined(__SSE2__)
    flush_subnormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u); }
    ~flush_subnormals() { _mm_setcsr(saved_); }

  private:
    unsigned saved_;
#else
    flush_subnormals() {
        __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
        __asm__ volatile("msr fpcr, %0" ::"r"(saved_ | (std::uint64_t{1} << 24)));
    }
    ~flush_subnormals() { __asm__ volatile("msr fpcr, %0" ::"r"(saved_)); }

  private:
    std::uint64_t saved_;
#endif
};
#define NUMFMT_TEST_CAN_FLUSH 1
#endif

// Reads one product and sum the compiler cannot precompute: shows that the environment really changed.
float multiply(float a, float b) {
    volatile float x = a, y = b;
    return x * y;
}
float add(float a, float b) {
    volatile float x = a, y = b;
    return x + y;
}

}  // namespace

TEST_CASE("environment: a unit built with -ffast-math gives the same bits") {
    const std::uint64_t wanted = normal_unit();
    CHECK(fast_math_unit(inputs().floats.data(), inputs().doubles.data(), inputs().size()) == wanted);
    WARN_MESSAGE(built_with_fast_math(), "fastmath_codec.cpp was built without -ffast-math: this case shows nothing");
}

TEST_CASE("environment: the conversions that -ffast-math is known to break") {
    const std::uint32_t bits[] = {0x7F800001, 0xFF800000, 0x00010000, 0x80000000, 0x3F80C000};
    const fragile_results r = fast_math_results(bits);
    CHECK(r.nan_to_e4m3 == 0x7F);
    CHECK(r.nan_to_bf16 == 0x7FFF);
    CHECK(r.infinity_to_e4m3 == 0xFE);
    CHECK(r.subnormal_to_bf16 == 0x0001);
    CHECK(r.negative_zero_to_fp16 == 0x8000);
    CHECK(r.bf16_round_trip == 0x3F810000);
    CHECK(r.bf16_subnormal == 0x00010000);
    CHECK_FALSE(r.nan_equals_itself);
    CHECK(r.nan_is_nan);
    CHECK_FALSE(r.infinity_is_finite);
}

TEST_CASE("environment: every rounding mode of the processor") {
    const std::uint64_t wanted = normal_unit();
    const int before = std::fegetround();
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
        REQUIRE(std::fesetround(mode) == 0);
        const float probe = add(1.0f, 0x1p-30f);
        const std::uint64_t normal = normal_unit();
        const std::uint64_t fast = fast_math_unit(inputs().floats.data(), inputs().doubles.data(), inputs().size());
        std::fesetround(before);
        CHECK((probe > 1.0f) == (mode == FE_UPWARD));
        CHECK(normal == wanted);
        CHECK(fast == wanted);
    }
}

#if defined(NUMFMT_TEST_CAN_FLUSH)
TEST_CASE("environment: flush-to-zero and denormals-are-zero") {
    const std::uint64_t wanted = normal_unit();
    float probe = 1;
    std::uint64_t normal = 0, fast = 0;
    {
        const flush_subnormals scope;
        probe = multiply(0x1p-100f, 0x1p-30f);
        normal = normal_unit();
        fast = fast_math_unit(inputs().floats.data(), inputs().doubles.data(), inputs().size());
    }
    CHECK(probe == 0.0f);
    CHECK(multiply(0x1p-100f, 0x1p-30f) == 0x1p-130f);  // and back to normal afterwards
    CHECK(normal == wanted);
    CHECK(fast == wanted);
}
#endif
