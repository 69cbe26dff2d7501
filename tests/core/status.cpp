// SPDX-License-Identifier: MIT
// The exact text of every status, also when the buffer is too small.
#include <limits>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include <numfmt/core/std.hpp>

using namespace numfmt;

TEST_CASE("status: messages name the argument, what it got and what was wanted") {
    using enum status_code;
    CHECK(to_string(status{}) == "ok");
    CHECK(to_string(status{null_pointer, "codes", 0, 0}) == "codes is a null pointer");
    CHECK(to_string(status{negative_size, "rows", -1, 0}) == "rows is negative (got -1, wanted 0)");
    CHECK(to_string(status{too_small, "code_stride", -3, 16}) ==
          "code_stride is too small (got -3, wanted at least 16)");
    CHECK(to_string(status{size_overflow, "cols", 5, 4}) ==
          "cols makes the tensor's size overflow 63 bits (got 5, wanted 4)");
    CHECK(to_string(status{misaligned, "scales", 2, 4}) == "scales is not aligned for its type (got 2, wanted 4)");
    CHECK(to_string(status{shape_mismatch, "out", 7, 8}) ==
          "out does not match the other argument's size (got 7, wanted 8)");
    CHECK(to_string(status{out_of_range, "group", 100, 64}) == "group is out of range (got 100, wanted 64)");
    CHECK(to_string(status{unsupported, "scheme", 0, 0}) == "scheme is not supported here");
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                           most = std::numeric_limits<std::int64_t>::max();
    CHECK(to_string(status{out_of_range, "n", least, most}) ==
          "n is out of range (got -9223372036854775808, wanted 9223372036854775807)");
    CHECK(std::string(describe(static_cast<status_code>(200))) == "unknown status code");
}

TEST_CASE("status: message() behaves as snprintf does for every buffer size") {
    const status s{status_code::too_small, "x", 10, 205};
    const std::string whole = "x is too small (got 10, wanted at least 205)";
    for (std::size_t capacity = 0; capacity <= whole.size() + 3; ++capacity) {
        char buffer[64];
        for (char& c : buffer) c = '#';
        CHECK(message(s, buffer, capacity) == whole.size());
        if (capacity > 0) CHECK(std::string(buffer) == whole.substr(0, capacity - 1));
        for (std::size_t i = capacity; i < sizeof(buffer); ++i) CHECK(buffer[i] == '#');  // nothing beyond the buffer
    }
    CHECK(message(s, nullptr, 0) == whole.size());
}

TEST_CASE("status: streams, truth, equality") {
    std::ostringstream os;
    os << status{status_code::misaligned, "q", 1, 2} << '|' << status{} << '|' << status_code::too_small;
    CHECK(os.str() == "q is not aligned for its type (got 1, wanted 2)|ok|is too small");
    CHECK(status{}.ok());
    CHECK(static_cast<bool>(status{}));
    CHECK_FALSE(static_cast<bool>(status{status_code::unsupported, "", 0, 0}));
    CHECK(status{status_code::too_small, "a", 1, 2} == status{status_code::too_small, "b", 1, 2});
    CHECK_FALSE(status{status_code::too_small, "a", 1, 2} == status{status_code::too_small, "a", 1, 3});
    CHECK_FALSE(status{status_code::too_small, "a", 1, 2} == status{status_code::out_of_range, "a", 1, 2});
    CHECK_FALSE(status{status_code::too_small, "a", 1, 2} == status{status_code::too_small, "a", 0, 2});
}

TEST_CASE("status: a result holds a value or says why there is none") {
    const result<int> good{7, {}};
    const result<int> bad{0, {status_code::out_of_range, "k", 9, 8}};
    CHECK(good.ok());
    CHECK(good.value == 7);
    CHECK_FALSE(bad.ok());
    CHECK_FALSE(static_cast<bool>(bad));
    CHECK(to_string(bad.status) == "k is out of range (got 9, wanted 8)");
}
