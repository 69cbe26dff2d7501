// SPDX-License-Identifier: MIT
// Checksums over every code of each format and over every 16-bit input.
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

struct encode_row {
    const char *format, *source;
    rounding mode;
    encode_options options;
    std::uint32_t (*compute)(encode_options);
    std::uint32_t crc;
};

#define DECODE(format, crc)
#define ENCODE(format, source, mode, over, nan, crc)    \
    {                                                   \
        #format,                                        \
        #source,                                        \
        rounding::mode,                                 \
        {overflow::over, nan_mode::nan},                \
        &crc_of_encode<format, source, rounding::mode>, \
        crc},
const encode_row encode_rows[] = {
#include "golden/core/checksums.inc"
};
#undef DECODE
#undef ENCODE

}  // namespace

TEST_CASE("checksums: decode of every code, library and oracle") {
#define ENCODE(format, source, mode, over, nan, crc)
#define DECODE(format, crc)                                                                                           \
    CHECK_MESSAGE(crc_of_decode<format>(                                                                              \
                      [](std::uint32_t c) { return decode_bits<format>(static_cast<format::storage>(c)); }) == (crc), \
                  "decode " #format);                                                                                 \
    CHECK_MESSAGE(crc_of_decode<format>([](std::uint32_t c) {                                                         \
                      return std::bit_cast<std::uint32_t>(static_cast<float>(oracle_of<format>().decode(c)));         \
                  }) == (crc),                                                                                        \
                  "oracle decode " #format);
#include "golden/core/checksums.inc"
#undef DECODE
#undef ENCODE
}

TEST_CASE("checksums: encode of every bf16 and fp16 code, every rounding, overflow and NaN rule") {
    for (const encode_row& row : encode_rows) {
        CHECK_MESSAGE(row.compute(row.options) == row.crc, row.format << " from " << row.source << ' ' << row.mode
                                                                      << ' ' << row.options.overflow << ' '
                                                                      << row.options.nan);
    }
}

TEST_CASE("checksums: the golden file has a row for every policy of every format") {
    std::size_t formats = 0;
    for_each(library_formats{}, [&]<class Format>() {
        std::size_t rows = 0;
        for (const encode_row& row : encode_rows) rows += std::string(row.format) == Format::name ? 1u : 0u;
        CHECK_MESSAGE(rows == 2 * 4 * 3 * 3, Format::name);  // sources x roundings x overflow x nan
        ++formats;
    });
    CHECK(formats >= 11);
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
