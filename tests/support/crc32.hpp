// SPDX-License-Identifier: MIT
// CRC-32 as zlib computes it (reflected, polynomial EDB88320), for the golden checksums.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace numfmt_test {

class crc32 {
  public:
    void add(std::uint8_t byte) { state_ = (state_ >> 8) ^ table()[(state_ ^ byte) & 0xFFu]; }

    /// The lowest `bytes` bytes of `word`, least significant first.
    void add_little_endian(std::uint32_t word, int bytes) {
        for (int i = 0; i < bytes; ++i) add(static_cast<std::uint8_t>(word >> (8 * i)));
    }

    std::uint32_t value() const { return ~state_; }

  private:
    static const std::array<std::uint32_t, 256>& table() {
        static const std::array<std::uint32_t, 256> t = [] {
            std::array<std::uint32_t, 256> r{};
            for (std::uint32_t i = 0; i < 256; ++i) {
                std::uint32_t c = i;
                for (int k = 0; k < 8; ++k) c = (c & 1u) != 0 ? (c >> 1) ^ 0xEDB88320u : c >> 1;
                r[i] = c;
            }
            return r;
        }();
        return t;
    }

    std::uint32_t state_ = 0xFFFFFFFFu;
};

}  // namespace numfmt_test
