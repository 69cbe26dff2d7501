// SPDX-License-Identifier: MIT
// Packed rows: every width, length and first column against a bit-by-bit stream, with canaries and exact allocations.
#include <doctest/doctest.h>

#include <numfmt/block/packing.hpp>

#include <memory>

#include "support/block_oracle.hpp"

using namespace numfmt;
namespace oracle = block_oracle;

namespace {

uint8_t random_byte(uint64_t index) { return static_cast<uint8_t>(oracle::philox_word(7, index) >> 11); }

/// A heap array of exactly n bytes: under AddressSanitizer, reading one more is an error.
std::unique_ptr<uint8_t[]> exactly(int64_t n, uint8_t fill) {
    std::unique_ptr<uint8_t[]> p(new uint8_t[static_cast<size_t>(n)]);
    std::fill(p.get(), p.get() + n, fill);
    return p;
}

template <int Bits> void check_width() {
    CAPTURE(Bits);
    constexpr uint8_t mask = static_cast<uint8_t>((1 << Bits) - 1);
    for (int64_t first = 0; first <= 16; ++first) {
        for (int64_t n = 0; n <= 40; ++n) {
            const int64_t columns = first + n, bytes = oracle::row_bytes(columns, Bits);
            CAPTURE(first);
            CAPTURE(n);
            REQUIRE(packed_row_bytes(columns, Bits) == bytes);

            // The codes carry bits above their width, which must be dropped.
            const auto codes = exactly(columns, 0);
            for (int64_t j = 0; j < columns; ++j)
                codes[static_cast<size_t>(j)] = random_byte(static_cast<uint64_t>(first * 64 + n * 1024 + j));
            const auto want = exactly(bytes, 0);
            for (int64_t j = 0; j < columns; ++j)
                oracle::write_code(want.get(), j, Bits, codes[static_cast<size_t>(j)]);

            // Written in two steps over garbage, with canaries around: the second step keeps the first one's bits.
            const auto row = exactly(bytes + 16, 0xA5);
            pack<Bits>(codes.get(), first, row.get() + 8, 0);
            pack<Bits>(codes.get() + first, n, row.get() + 8, first);
            int wrong = 0;
            for (int64_t k = 0; k < bytes; ++k)
                wrong += row[static_cast<size_t>(k + 8)] != want[static_cast<size_t>(k)];
            CHECK(wrong == 0);  // the unused bits of the last byte are zero in `want`
            int touched = 0;
            for (size_t k = 0; k < 8; ++k)
                touched += (row[k] != 0xA5) + (row[static_cast<size_t>(bytes) + 8 + k] != 0xA5);
            CHECK(touched == 0);

            // Read from a row that ends with its allocation, into an array that ends with the codes.
            const auto tight = exactly(bytes, 0);
            std::copy(want.get(), want.get() + bytes, tight.get());
            const auto back = exactly(n, 0xEE);
            unpack<Bits>(tight.get(), first, n, back.get());
            int differing = 0;
            for (int64_t j = 0; j < n; ++j) {
                const uint8_t code = static_cast<uint8_t>(codes[static_cast<size_t>(first + j)] & mask);
                differing += back[static_cast<size_t>(j)] != code;
                differing += unpack_one<Bits>(tight.get(), first + j) != code;
            }
            CHECK(differing == 0);
        }
    }
}

}  // namespace

TEST_CASE("packing: 3, 4, 5, 6 and 8 bits at every length and first column") {
    check_width<3>();
    check_width<4>();
    check_width<5>();
    check_width<6>();
    check_width<8>();
}

TEST_CASE("packing: 1, 2 and 7 bits at every length and first column") {
    check_width<1>();
    check_width<2>();
    check_width<7>();
}

TEST_CASE("packing: column by column gives the same bytes as all at once") {
    uint8_t codes[40];
    for (size_t j = 0; j < 40; ++j) codes[j] = random_byte(5000 + j);
    uint8_t whole_row[30], piecewise[30];
    std::fill(whole_row, whole_row + 30, uint8_t{0xA5});
    std::fill(piecewise, piecewise + 30, uint8_t{0x5A});
    pack<6>(codes, 40, whole_row, 0);
    for (int64_t j = 0; j < 40; ++j) pack<6>(codes + j, 1, piecewise, j);
    for (size_t k = 0; k < 30; ++k) CHECK(whole_row[k] == piecewise[k]);
}

TEST_CASE("packing: the documented orders") {
    const uint8_t nibbles[4] = {0x1, 0x2, 0x3, 0x4};
    uint8_t bytes[3] = {};
    pack<4>(nibbles, 4, bytes, 0);  // even column in the low nibble
    CHECK(bytes[0] == 0x21);
    CHECK(bytes[1] == 0x43);
    const uint8_t sixes[4] = {0x3F, 0x00, 0x01, 0x20};  // four codes in three bytes
    pack<6>(sixes, 4, bytes, 0);
    CHECK(bytes[0] == 0x3F);
    CHECK(bytes[1] == 0x10);
    CHECK(bytes[2] == 0x80);
    static_assert(packed_row_bytes(0, 4) == 0 && packed_row_bytes(1, 4) == 1 && packed_row_bytes(3, 6) == 3);
    // A row of 2^60 codes: the byte count is formed without an intermediate product in bits.
    static_assert(packed_row_bytes(int64_t{1} << 60, 8) == int64_t{1} << 60);
    static_assert(packed_row_bytes((int64_t{1} << 62) + 1, 6) == (int64_t{1} << 62) / 8 * 6 + 1);
    constexpr uint8_t at_compile_time = [] {
        const uint8_t code[2] = {0xA, 0xB};
        uint8_t row[1] = {};
        pack<4>(code, 2, row, 0);
        return row[0];
    }();
    static_assert(at_compile_time == 0xBA);
}
