// SPDX-License-Identifier: MIT
// What follows from a scheme's descriptor: bits per weight, sizes and names.
#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include <set>
#include <string>

#include "support/block_oracle.hpp"
#include "support/golden_names.hpp"

using namespace numfmt;

namespace {
template <class S> constexpr double bits = scheme_traits<S>::bits_per_weight();
template <class S> double bits_of(int64_t rows, int64_t cols) {
    return scheme_traits<S>::bits_per_weight(matrix_shape{rows, cols});
}
}  // namespace

TEST_CASE("scheme: bits per weight are the published figures") {
    CHECK(bits<mxfp4> == 4.25);  // OCP MX v1.0: (32 * 4 + 8) / 32
    CHECK(bits<mxfp8_e4m3> == 8.25);
    CHECK(bits<mxfp8_e5m2> == 8.25);
    CHECK(bits<block_fp8_128x128> == 8.001953125);  // DeepSeek-V3
    CHECK(bits<block_fp8_1x128> == 8.25);
    CHECK(bits<block_fp8<1, 128, e8m0>> == 8.0625);
    CHECK(bits<block_fp8<128, 128, e8m0>> == 8 + 8.0 / 16384);
    CHECK(bits<awq_int4> == 4.15625);  // 4 + 16/128 + 4/128
    CHECK(bits<int4<64>> == 4.3125);
    CHECK(bits<int4<32>> == 4.625);
    CHECK(bits<fp8_per_tensor> == 8);
    CHECK(bits<fp8_per_channel> == 8);
}

TEST_CASE("scheme: a golden file for every scheme of the library, and no other") {
    std::set<std::string> names;
    for_each(all_schemes{}, [&]<class S>() { names.insert(S::name); });
    numfmt_test::check_golden_names("schemes", names, "numfmt::all_schemes");
}

TEST_CASE("scheme: the descriptors say what the golden files say") {
    const auto extent = [](int64_t n) { return n == whole ? block_oracle::all : n; };
    for_each(all_schemes{}, [&]<class S>() {
        const block_oracle::scheme_facts& f = block_oracle::facts_of(S::name);
        CAPTURE(f.name);
        CHECK(!f.source.empty());
        CHECK(f.element_name == S::element::name);
        CHECK(f.scale_name == detail::scale_traits<typename S::scale>::name);
        CHECK(f.bits() == scheme_traits<S>::element_bits);
        CHECK(f.scale_bytes() * 8 == scheme_traits<S>::scale_bits);
        CHECK(f.block_rows == extent(S::block.rows));
        CHECK(f.block_cols == extent(S::block.cols));
        CHECK(f.has_zeros() == S::has_zero_point);
        CHECK(f.has_tensor_scale() == S::has_tensor_scale);
        CHECK((f.scale == block_oracle::scale_kind::power_of_two) == scheme_traits<S>::power_of_two_scale);
        CHECK(f.bits_per_weight == bits<S>);
        if constexpr (requires { S::fixed_zero_point; })
            CHECK(f.fixed_zero == S::fixed_zero_point);
        else
            CHECK(f.fixed_zero == 0);
        if constexpr (integer_format<typename S::element>) {
            CHECK(f.integer_fraction_bits == S::element::spec.fraction_bits);
            CHECK(f.lowest_code == S::element::spec.min_code);
            CHECK(f.highest_code == S::element::spec.max_code);
        }
    });
}

TEST_CASE("scheme: bits per weight of one tensor count padding and partial blocks") {
    // Without partial blocks it is the same figure.
    CHECK(bits_of<mxfp4>(7, 64) == 4.25);
    CHECK(bits_of<awq_int4>(3, 256) == 4.15625);
    CHECK(bits_of<block_fp8_128x128>(256, 384) == 8.001953125);
    // 576x7168: 5x56 scales for 4.5x56 blocks.
    CHECK(bits_of<block_fp8_128x128>(576, 7168) == 8 + 32.0 * 280 / (576.0 * 7168));
    // 5 rows of 33 codes: 17 bytes and 2 scale bytes each.
    CHECK(bits_of<mxfp4>(5, 33) == doctest::Approx(8.0 * 19 / 33).epsilon(1e-15));
    // 2 rows of 129 codes: 65 bytes, 2 fp16 scales, 1 byte of zero points each.
    CHECK(bits_of<awq_int4>(2, 129) == doctest::Approx(8.0 * (65 + 4 + 1) / 129).epsilon(1e-15));
    // 1 group of a row: its 4-bit zero point takes a byte.
    CHECK(bits_of<awq_int4>(1, 128) == 4 + 16.0 / 128 + 8.0 / 128);
    CHECK(bits_of<fp8_per_tensor>(4, 8) == 8 + 1.0);
    CHECK(bits_of<fp8_per_channel>(4, 8) == 8 + 4.0);
    CHECK(bits_of<mxfp4>(0, 5) == 0);
    CHECK(bits_of<mxfp4>(5, 0) == 0);
}

TEST_CASE("scheme: an owning tensor stores just those bits") {
    for_each(all_schemes{}, []<class S>() {
        for (const matrix_shape shape :
             {matrix_shape{1, 1}, matrix_shape{5, 33}, matrix_shape{129, 257}, matrix_shape{128, 256}}) {
            const auto t = quantized_tensor<S>::make(shape);
            REQUIRE(t.ok());
            INFO(std::string(S::name));
            CHECK(
                static_cast<double>(t.value.bytes()) * 8 ==
                doctest::Approx(scheme_traits<S>::bits_per_weight(shape) * static_cast<double>(shape.rows * shape.cols))
                    .epsilon(1e-12));
        }
    });
}

TEST_CASE("scheme: scale shapes with partial and unbounded blocks") {
    CHECK(scheme_traits<mxfp4>::scale_shape({3, 33}) == matrix_shape{3, 2});
    CHECK(scheme_traits<mxfp4>::scale_shape({3, 32}) == matrix_shape{3, 1});
    CHECK(scheme_traits<block_fp8_128x128>::scale_shape({129, 1}) == matrix_shape{2, 1});
    CHECK(scheme_traits<fp8_per_tensor>::scale_shape({1000, 1000}) == matrix_shape{1, 1});
    CHECK(scheme_traits<fp8_per_channel>::scale_shape({1000, 1000}) == matrix_shape{1000, 1});
    for_each(all_schemes{}, []<class S>() {
        CHECK(scheme_traits<S>::scale_shape({0, 0}) == matrix_shape{0, 0});
        static_assert(scheme<S>);
    });
    static_assert(!scheme<int> && !scheme<fp8_e4m3>);
}

TEST_CASE("scheme: names are as documented and differ") {
    CHECK(std::string(block_fp8_128x128::name) == "block_fp8_128x128");
    CHECK(std::string(block_fp8<1, 128, e8m0>::name) == "block_fp8_1x128_e8m0");
    CHECK(std::string(mxfp8_e4m3::name) == "mxfp8_e4m3");
    CHECK(std::string(int4<64>::name) == "int4_g64");
    CHECK(std::string(int4<8, float>::name) == "int4_g8_fp32");
    CHECK(std::string(awq_int4::name) == "awq_int4");
    std::set<std::string> names;
    for_each(all_schemes{}, [&]<class S>() { names.insert(S::name); });
    CHECK(names.size() == all_schemes::size);
}
