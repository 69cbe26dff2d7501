// SPDX-License-Identifier: MIT
// How the library reports bad input: a small value that names the argument, what it got and what was wanted.
#pragma once

#include "config.hpp"

namespace numfmt {

enum class status_code : uint8_t {
    ok,
    null_pointer,    ///< a required array is missing
    negative_size,   ///< a row or column count below zero
    too_small,       ///< a stride or a buffer holds fewer elements than needed; `wanted` is the minimum
    size_overflow,   ///< the element or byte count does not fit in 63 bits
    misaligned,      ///< a pointer is not aligned for its element type; `wanted` is the alignment in bytes
    shape_mismatch,  ///< two arguments disagree on a size; `wanted` is the other one's
    out_of_range,    ///< a number outside its range; `wanted` is the nearest allowed value
    unsupported,     ///< a combination this function does not implement
};

/// Result of a checked call. `argument` is a string literal with the argument's name; `got` and `wanted` are the
/// numbers concerned (their unit is the argument's own: elements, bytes or rows), 0 where a code has none.
struct [[nodiscard]] status {
    status_code code = status_code::ok;
    const char* argument = "";
    int64_t got = 0;
    int64_t wanted = 0;

    NUMFMT_FN bool ok() const noexcept { return code == status_code::ok; }
    NUMFMT_FN explicit operator bool() const noexcept { return ok(); }
    friend NUMFMT_FN bool operator==(const status& a, const status& b) noexcept {
        return a.code == b.code && a.got == b.got && a.wanted == b.wanted;
    }
};

/// The text of a status code, without the numbers.
NUMFMT_HD constexpr const char* describe(status_code code) noexcept {
    switch (code) {
        case status_code::ok:
            return "ok";
        case status_code::null_pointer:
            return "is a null pointer";
        case status_code::negative_size:
            return "is negative";
        case status_code::too_small:
            return "is too small";
        case status_code::size_overflow:
            return "makes the tensor's size overflow 63 bits";
        case status_code::misaligned:
            return "is not aligned for its type";
        case status_code::shape_mismatch:
            return "does not match the other argument's size";
        case status_code::out_of_range:
            return "is out of range";
        case status_code::unsupported:
            return "is not supported here";
    }
    return "unknown status code";
}

/// Writes `argument: description (got G, wanted W)` into `buffer`, cut to `capacity - 1` characters and always
/// terminated; returns the full length without the terminator, as snprintf does. `capacity` 0 writes nothing.
/// (core/std.hpp has `to_string` and stream output.)
NUMFMT_HD constexpr size_t message(const status& s, char* buffer, size_t capacity) noexcept {
    size_t n = 0;
    const auto put = [&](char c) {
        if (n + 1 < capacity) buffer[n] = c;
        ++n;
    };
    const auto text = [&](const char* p) {
        for (; *p != '\0'; ++p) put(*p);
    };
    const auto number = [&](int64_t v) {
        uint64_t u = v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
        if (v < 0) put('-');
        uint64_t unit = 1;
        while (u / unit >= 10) unit *= 10;
        for (; unit > 0; unit /= 10) put(static_cast<char>('0' + (u / unit) % 10));
    };
    if (!s.ok()) {
        text(s.argument);
        text(" ");
    }
    text(describe(s.code));
    if (!s.ok() && s.code != status_code::null_pointer && s.code != status_code::unsupported) {
        text(" (got ");
        number(s.got);
        text(", wanted ");
        if (s.code == status_code::too_small) text("at least ");
        number(s.wanted);
        text(")");
    }
    if (capacity > 0) buffer[n < capacity ? n : capacity - 1] = '\0';
    return n;
}

/// A value, or the status that says why there is none. `value` is usable only when `ok()`.
template <class T> struct [[nodiscard]] result {
    T value{};
    numfmt::status status{};

    NUMFMT_FN bool ok() const noexcept { return status.ok(); }
    NUMFMT_FN explicit operator bool() const noexcept { return ok(); }
};

}  // namespace numfmt
