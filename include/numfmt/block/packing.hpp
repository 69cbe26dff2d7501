// SPDX-License-Identifier: MIT
// Packed rows of codes: a little-endian bit stream, code j of a row in bits [j * Bits, (j + 1) * Bits) of its bytes.
// (Bits = 4: even column in the low nibble; Bits = 6: four codes in three bytes; Bits = 8: one byte each.)
#pragma once

#include "../core/bits.hpp"

namespace numfmt {

/// Bytes of a row of `cols` codes of `bits` bits; every row starts on a byte.
NUMFMT_FN int64_t packed_row_bytes(int64_t cols, int bits) noexcept {
    return cols / 8 * bits + detail::ceil_div(cols % 8 * bits, 8);
}

/// Writes codes[0..n) as columns first .. first + n - 1 of a row. Columns of one row must be written in increasing
/// order: a byte shared with an earlier column keeps that column's bits, a byte begun here has its unused bits zero.
template <int Bits>
NUMFMT_PER_ISA NUMFMT_HD constexpr void pack(const uint8_t* codes, int64_t n, uint8_t* row, int64_t first) noexcept {
    static_assert(Bits >= 1 && Bits <= 8);
    constexpr uint32_t mask = (1u << Bits) - 1u;
    if constexpr (Bits == 8) {
        for (int64_t j = 0; j < n; ++j) row[first + j] = codes[j];
    } else {
        int64_t j = 0;
        // Eight codes fill `Bits` whole bytes; from a byte boundary on they can be written without reading.
        if (first % 8 == 0) {
            uint8_t* out = row + first / 8 * Bits;
            for (; j + 8 <= n; j += 8, out += Bits) {
                uint64_t word = 0;
                for (int k = 0; k < 8; ++k) word |= static_cast<uint64_t>(codes[j + k] & mask) << (k * Bits);
                for (int k = 0; k < Bits; ++k) out[k] = static_cast<uint8_t>(word >> (8 * k));
            }
        }
        for (; j < n; ++j) {
            const int64_t column = first + j;
            const int64_t bit = column % 8 * Bits;
            uint8_t* out = row + column / 8 * Bits + bit / 8;
            const int offset = static_cast<int>(bit % 8);
            const uint32_t word = (codes[j] & mask) << offset;
            const uint32_t kept = offset == 0 ? 0u : out[0] & ((1u << offset) - 1u);
            out[0] = static_cast<uint8_t>(kept | word);
            if (offset + Bits > 8) out[1] = static_cast<uint8_t>(word >> 8);
        }
    }
}

/// Reads columns first .. first + n - 1 of a row into codes[0..n). Never reads past the row's last byte.
template <int Bits>
NUMFMT_PER_ISA NUMFMT_HD constexpr void unpack(const uint8_t* row, int64_t first, int64_t n, uint8_t* codes) noexcept {
    static_assert(Bits >= 1 && Bits <= 8);
    constexpr uint32_t mask = (1u << Bits) - 1u;
    if constexpr (Bits == 8) {
        for (int64_t j = 0; j < n; ++j) codes[j] = row[first + j];
    } else {
        int64_t j = 0;
        if (first % 8 == 0) {
            const uint8_t* in = row + first / 8 * Bits;
            for (; j + 8 <= n; j += 8, in += Bits) {
                uint64_t word = 0;
                for (int k = 0; k < Bits; ++k) word |= static_cast<uint64_t>(in[k]) << (8 * k);
                for (int k = 0; k < 8; ++k) codes[j + k] = static_cast<uint8_t>((word >> (k * Bits)) & mask);
            }
        }
        for (; j < n; ++j) {
            const int64_t column = first + j;
            const int64_t bit = column % 8 * Bits;
            const uint8_t* in = row + column / 8 * Bits + bit / 8;
            const int offset = static_cast<int>(bit % 8);
            uint32_t word = in[0];
            if (offset + Bits > 8) word |= static_cast<uint32_t>(in[1]) << 8;
            codes[j] = static_cast<uint8_t>((word >> offset) & mask);
        }
    }
}

/// One code of a packed row.
template <int Bits> NUMFMT_FN uint8_t unpack_one(const uint8_t* row, int64_t column) noexcept {
    uint8_t code = 0;
    unpack<Bits>(row, column, 1, &code);
    return code;
}

}  // namespace numfmt
