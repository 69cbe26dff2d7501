// SPDX-License-Identifier: MIT
// Checksums over every code of each format and over every 16-bit input.
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include <numfmt/core/std.hpp>

#include "support/crc32.hpp"
#include "support/oracle.hpp"

using namespace numfmt;
using namespace numfmt_test;

namespace {

template <class Format, class Decode> std::uint32_t crc_of_decode(Decode&& value_of) {
    crc32 crc;
    for (std::uint32_t c = 0; c < 1u << Format::spec.bits(); ++c) {
        const std::uint32_t bits = value_of(c);
        crc.add_little_endian((bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : bits, 4);
    }
    return crc.value();
}

template <class Format, class Source, rounding R> std::uint32_t crc_of_encode(encode_options options) {
    crc32 crc;
    for (std::uint32_t c = 0; c < 65536; ++c) {
        const auto code = encode<Format, R>(Source::from_bits(static_cast<std::uint16_t>(c)), options);
        crc.add_little_endian(code, static_cast<int>(sizeof(code)));
    }
    return crc.value();
}

/// The section [checksums] of the golden file: "decode" or "encode source rounding overflow nan", and the CRC.
template <class Format> const std::map<std::string, std::string>& golden_checksums() {
    static const std::map<std::string, std::string> rows = [] {
        std::map<std::string, std::string> m;
        for (const std::string& line : golden_of<Format>().checksums) {
            const std::size_t end = line.rfind(' ');
            m[line.substr(0, end)] = line.substr(end + 1);
        }
        return m;
    }();
    return rows;
}

template <class Format> void expect_crc(const std::string& what, std::uint32_t crc) {
    const std::string format = Format::name;
    const auto row = golden_checksums<Format>().find(what);
    if (row == golden_checksums<Format>().end()) {
        FAIL_CHECK(format << ": no '" << what << "' in its golden file; python3 tests/golden/generate.py " << format
                          << " writes it");
        return;
    }
    char text[16];
    std::snprintf(text, sizeof text, "%08X", crc);
    CHECK_MESSAGE(row->second == text, format << ' ' << what);
}

/// fn(row name, function, options) for every row of one source that a golden file has.
template <class Format, class Source, class Fn> void for_each_row(Fn&& fn) {
    for_each_rounding<Format>([&]<rounding R>() {
        if constexpr (R != rounding::stochastic) {
            for (const overflow o : {overflow::saturate, overflow::to_nonfinite, overflow::saturate_finite}) {
                for (const nan_mode n : {nan_mode::canonical, nan_mode::keep_sign, nan_mode::canonical_signed}) {
                    std::ostringstream name;
                    name << "encode " << Source::name << ' ' << R << ' ' << o << ' ' << n;
                    fn(name.str(), &crc_of_encode<Format, Source, R>, encode_options{o, n});
                }
            }
        }
    });
}

}  // namespace

TEST_CASE("checksums: decode of every code, library and oracle") {
    for_each_format([]<class Format>() {
        expect_crc<Format>("decode", crc_of_decode<Format>([](std::uint32_t c) {
                               return decode_bits<Format>(static_cast<typename Format::storage>(c));
                           }));
        expect_crc<Format>("decode", crc_of_decode<Format>([](std::uint32_t c) {
                               return std::bit_cast<std::uint32_t>(static_cast<float>(oracle_of<Format>().decode(c)));
                           }));
    });
}

TEST_CASE("checksums: encode of every bf16 and fp16 code, every rounding, overflow and NaN rule") {
    for_each_format([]<class Format>() {
        const auto check = [](const std::string& name, auto* compute, encode_options options) {
            expect_crc<Format>(name, compute(options));
        };
        for_each_row<Format, bf16>(check);
        for_each_row<Format, fp16>(check);
    });
}

TEST_CASE("checksums: the golden file has a row for every policy of every format") {
    std::size_t formats = 0;
    for_each_format([&]<class Format>() {
        std::set<std::string> wanted{"decode"};
        const auto add = [&](const std::string& name, auto*, encode_options) { wanted.insert(name); };
        for_each_row<Format, bf16>(add);
        for_each_row<Format, fp16>(add);
        CHECK(wanted.size() == 1 + 2 * 4 * 3 * 3);  // sources x roundings x overflow x nan
        std::set<std::string> found;
        for (const auto& [name, crc] : golden_checksums<Format>()) found.insert(name);
        CHECK_MESSAGE((found == wanted), std::string(Format::name));
        CHECK_MESSAGE(golden_of<Format>().checksums.size() == wanted.size(), std::string(Format::name));
        ++formats;
    });
    CHECK(formats >= 14);
}

// The values that NVIDIA's CUDA 13.0 headers produce on the host, kept apart from the generated file.
TEST_CASE("checksums: values shared with the CUDA headers") {
    constexpr encode_options sat{overflow::saturate}, nosat{overflow::to_nonfinite};
    using enum rounding;
    CHECK(crc_of_encode<fp8_e4m3, bf16, nearest_even>(sat) == 0x452A7AE4u);
    CHECK(crc_of_encode<fp8_e4m3, bf16, nearest_even>(nosat) == 0x3A170622u);
    CHECK(crc_of_encode<fp8_e4m3, fp16, nearest_even>(sat) == 0x5F1B19ECu);
    CHECK(crc_of_encode<fp8_e4m3, fp16, nearest_even>(nosat) == 0x1B1CDB40u);
    CHECK(crc_of_encode<fp8_e5m2, bf16, nearest_even>(sat) == 0x62C73E5Eu);
    CHECK(crc_of_encode<fp8_e5m2, bf16, nearest_even>(nosat) == 0x5AF1EDEFu);
    CHECK(crc_of_encode<fp8_e5m2, fp16, nearest_even>(sat) == 0xBCD08540u);
    CHECK(crc_of_encode<fp8_e5m2, fp16, nearest_even>(nosat) == 0x25A88B7Au);
    CHECK(crc_of_encode<fp6_e3m2, bf16, nearest_even>(sat) == 0x54963B24u);
    CHECK(crc_of_encode<fp6_e3m2, fp16, nearest_even>(sat) == 0x13D8B7ADu);
    CHECK(crc_of_encode<fp6_e3m2, bf16, toward_zero>(sat) == 0x7C70BF12u);
    CHECK(crc_of_encode<fp6_e3m2, fp16, toward_zero>(sat) == 0x08FFABF9u);
    CHECK(crc_of_encode<fp6_e2m3, bf16, nearest_even>(sat) == 0x39294056u);
    CHECK(crc_of_encode<fp6_e2m3, fp16, nearest_even>(sat) == 0x2D941148u);
    CHECK(crc_of_encode<fp6_e2m3, bf16, toward_zero>(sat) == 0x4C0962FDu);
    CHECK(crc_of_encode<fp6_e2m3, fp16, toward_zero>(sat) == 0xA801D2C3u);
    CHECK(crc_of_encode<fp4_e2m1, bf16, nearest_even>(sat) == 0x19AE53B0u);
    CHECK(crc_of_encode<fp4_e2m1, fp16, nearest_even>(sat) == 0xDF5651E6u);
    CHECK(crc_of_encode<fp4_e2m1, bf16, toward_zero>(sat) == 0x8542BA0Du);
    CHECK(crc_of_encode<fp4_e2m1, fp16, toward_zero>(sat) == 0x5E2B2793u);
    for (const bool truncate : {true, false}) {  // cudaRoundZero is `down` and `toward_zero` alike
        const auto down_bf16 = truncate ? &crc_of_encode<e8m0, bf16, toward_zero> : &crc_of_encode<e8m0, bf16, down>;
        const auto down_fp16 = truncate ? &crc_of_encode<e8m0, fp16, toward_zero> : &crc_of_encode<e8m0, fp16, down>;
        CHECK(down_bf16(sat) == 0x235C014Eu);
        CHECK(down_bf16(nosat) == 0x88258867u);
        CHECK(down_fp16(sat) == 0x5DFE6727u);
        CHECK(down_fp16(nosat) == 0xD9BEC643u);
    }
    CHECK(crc_of_encode<e8m0, bf16, up>(sat) == 0xA6013A2Du);
    CHECK(crc_of_encode<e8m0, bf16, up>(nosat) == 0x3FF0E9BAu);
    CHECK(crc_of_encode<e8m0, fp16, up>(sat) == 0xCA2F7236u);
    CHECK(crc_of_encode<e8m0, fp16, up>(nosat) == 0x4E6FD352u);
}

TEST_CASE("checksums: ml_dtypes and PyTorch, which keep the sign of NaN") {
    constexpr encode_options framework{overflow::to_nonfinite, nan_mode::keep_sign};
    CHECK(crc_of_encode<fp8_e4m3, bf16, rounding::nearest_even>(framework) == 0xCBF713FEu);
    CHECK(crc_of_encode<fp8_e5m2, bf16, rounding::nearest_even>(framework) == 0xEE0DE81Cu);  // ml_dtypes' NaN, 7E
    CHECK(crc_of_encode<fp8_e5m2, bf16, rounding::nearest_even>({overflow::to_nonfinite, nan_mode::canonical_signed}) ==
          0xAB11F833u);  // PyTorch's NaN, 7F
    CHECK(crc_of_encode<fp8_e4m3, bf16, rounding::nearest_even>({overflow::saturate_finite, nan_mode::keep_sign}) ==
          0x1FB3E611u);  // PyTorch since 2026: finite values saturate, Inf becomes NaN
}
