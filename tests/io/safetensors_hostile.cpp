// SPDX-License-Identifier: MIT
// Safetensors files that must be rejected: every rule of the format broken on its own, with a message that names the
// culprit; then seeded mutations of a valid file, which must never lead outside its bytes.
#include "safetensors_support.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>

using namespace io_test;
using namespace numfmt::io;

namespace {

// Opens `file` from a heap block of exactly its size, so that the address sanitizer sees a read past the end.
void check_rejected(const bytes& file, std::initializer_list<std::string_view> parts) {
    const bytes exact(file.begin(), file.end());
    const auto opened = safetensors_file::view(exact);
    CHECK_FALSE(opened.ok());
    CHECK(opened.value.tensors().empty());
    CHECK(opened.error.size() < 2000);
    CHECK_FALSE(contains(opened.error, "\n"));
    for (const auto part : parts) {
        CAPTURE(part);
        CAPTURE(opened.error);
        CHECK(contains(opened.error, part));
    }
}

void check_header(std::string_view header, std::size_t data_size, std::initializer_list<std::string_view> parts) {
    CAPTURE(header.substr(0, 200));
    check_rejected(raw_file(header, data_size), parts);
}

std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
    return "{\"w\":{\"dtype\":" + std::string(dtype) + ",\"shape\":" + std::string(shape) +
           ",\"data_offsets\":" + std::string(offsets) + "}}";
}

const std::string u8x2 = R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})";

bytes valid_file() {
    return raw_file(R"({"__metadata__":{"format":"pt","n\u00e4me":"x"},)"
                    R"("embed":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                    R"("s":{"dtype":"F16","shape":[],"data_offsets":[24,26]},)"
                    R"("none":{"dtype":"I64","shape":[0,7],"data_offsets":[26,26]},)"
                    R"("q":{"dtype":"F4","shape":[2,8],"data_offsets":[26,34]},)"
                    R"("k":{"dtype":"F8_E4M3","shape":[5],"data_offsets":[34,39]},)"
                    R"("b":{"dtype":"BF16","shape":[1,2,2],"data_offsets":[39,47]},)"
                    R"("d":{"dtype":"F64","shape":[1],"data_offsets":[47,55]}} )",
                    55);
}

}  // namespace

TEST_CASE("safetensors hostile: the header length") {
    check_rejected({}, {"got a file of 0 bytes", "wanted at least the 8"});
    check_rejected(bytes(1), {"got a file of 1 bytes"});
    check_rejected(bytes(7), {"got a file of 7 bytes"});
    check_rejected(bytes(8), {"header length: got 0"});
    bytes file = raw_file("{}", 0);
    REQUIRE(safetensors_file::view(file).ok());
    for (const std::uint64_t length :
         {std::uint64_t{3}, std::uint64_t{10}, std::uint64_t{100'000'001}, std::uint64_t{1} << 32,
          std::uint64_t{1} << 63, ~std::uint64_t{0} - 7, ~std::uint64_t{0} - 6, ~std::uint64_t{0}}) {
        set_header_length(file, length);
        check_rejected(file, {"header length: got " + std::to_string(length) + ",", "the 2 bytes that follow"});
    }
}

TEST_CASE("safetensors hostile: a header above the format's 100 MB is refused before it is parsed") {
    const temp_directory dir;
    bytes file = raw_file("{}", 0);
    set_header_length(file, 100'000'001);
    write_file(dir / "f", file);
    std::filesystem::resize_file(dir / "f", 8 + 100'000'001 + 5);  // sparse
    const auto opened = safetensors_file::open(dir / "f");
    CHECK_FALSE(opened.ok());
    CHECK(contains(opened.error, (dir / "f").string()));
    CHECK(contains(opened.error, "header length: got 100000001, wanted at most 100000000"));
}

TEST_CASE("safetensors hostile: every proper prefix of a valid file") {
    const bytes file = valid_file();
    const auto whole = safetensors_file::view(file);
    REQUIRE_MESSAGE(whole.ok(), whole.error);
    for (std::size_t n = 0; n < file.size(); ++n) {
        CAPTURE(n);
        check_rejected(bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n)), {"wanted"});
    }
    bytes cut(file.begin(), file.end() - 1);
    check_rejected(cut, {"tensor 'd'", "[47, 55]", "54 bytes of data"});
}

TEST_CASE("safetensors hostile: a header that is not JSON") {
    for (const char* const header :
         {"{", "{\"w\"", "{\"w\":", "{\"w\":}", "{'w':1}", "{}x", "{}{}", "{},", "{w:1}", "{/**/}", "{}//",
          "{\"w\":1e999}", "{\"w\":nan}", "{\"w\":\"\\x\"}", "{\"w\n\":1}", "{\"a\":nul"}) {
        check_header(header, 0, {"header: not valid JSON near its byte"});
    }
    check_header("{}    x", 0, {"near its byte 7"});
}

TEST_CASE("safetensors hostile: a header that is not an object") {
    for (const char* const header : {"[]", "\"w\"", "1", "null", " {}", "\n{}", "\xEF\xBB\xBF{}", "x"}) {
        check_header(header, 0,
                     {"header: got byte " + std::to_string(static_cast<unsigned char>(header[0])), "an opening brace"});
    }
}

TEST_CASE("safetensors hostile: a NUL does not end the header early") {
    using namespace std::string_view_literals;
    check_header("{}\0"sv, 0, {"header: got a NUL at its byte 2"});
    check_header("{}\0{\"w\":1}"sv, 0, {"header: got a NUL at its byte 2"});
    check_header("{\"\0\":1}"sv, 0, {"header: got a NUL at its byte 2"});
}

TEST_CASE("safetensors hostile: invalid UTF-8") {
    for (const std::string bad :
         {"\xFF", "\xC0\x80", "\xE2\x82", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\x80", "\\ud800", "\\udc00\\ud800"}) {
        check_header("{\"" + bad + "\":" + u8x2 + "}", 2, {"header: not valid JSON"});
        check_header("{\"__metadata__\":{\"k\":\"" + bad + "\"}}", 0, {"header: not valid JSON"});
    }
    check_header("{}\xC3\xA4", 0, {"header: not valid JSON"});
}

TEST_CASE("safetensors hostile: deep nesting") {
    const auto repeat = [](std::string_view text, int n) {
        std::string out;
        for (int i = 0; i < n; ++i) out += text;
        return out;
    };
    for (const int depth : {65, 66, 1'000'000}) {
        CAPTURE(depth);
        check_header("{\"w\":{\"x\":" + repeat("[", depth), 0, {"tensor 'w'", "key 'x'", "deeper than 64 levels"});
        check_header("{\"w\":{\"x\":" + repeat("[", depth) + repeat("]", depth) + "}}", 0,
                     {"tensor 'w'", "key 'x'", "64 levels"});
        check_header("{\"w\":{\"x\":" + repeat("{\"y\":", depth), 0, {"tensor 'w'", "key 'x'", "64 levels"});
        check_header("{\"w\":" + repeat("[", depth), 0, {"tensor 'w'", "got an array"});
        check_header("{\"w\":{\"shape\":" + repeat("[", depth), 0, {"tensor 'w': shape", "got an array"});
        check_header("{\"__metadata__\":{\"k\":" + repeat("[", depth), 0, {"__metadata__ 'k'", "got an array"});
    }
    check_header(repeat("{\"w\":", 1'000'000), 0, {"tensor 'w'", "key 'w'", "64 levels"});
    // Closed levels do not add up.
    REQUIRE(
        safetensors_file::view(raw_file("{\"w\":{\"x\":[" + repeat("[[],{}],", 1000) + "0]," + u8x2.substr(1) + "}", 2))
            .ok());
}

TEST_CASE("safetensors hostile: duplicates") {
    check_header("{\"w\":" + u8x2 + ",\"w\":" + u8x2 + "}", 2, {"tensor 'w'", "twice"});
    check_header("{\"w\":" + u8x2 + R"(,"\u0077":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})", 4,
                 {"tensor 'w'", "twice"});
    check_header(R"({"w":{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2,
                 {"tensor 'w'", "dtype", "twice"});
    check_header(R"({"w":{"dtype":"U8","shape":[2],"shape":[2],"data_offsets":[0,2]}})", 2,
                 {"tensor 'w'", "shape", "twice"});
    check_header(R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"data_offsets":[0,2]}})", 2,
                 {"tensor 'w'", "data_offsets", "twice"});
    check_header(R"({"__metadata__":{},"__metadata__":{}})", 0, {"__metadata__", "twice"});
    check_header(R"({"__metadata__":null,"__metadata__":{}})", 0, {"__metadata__", "twice"});
    check_header(R"({"__metadata__":{"key":"1","key":"1"}})", 0, {"__metadata__ 'key'", "twice"});
}

TEST_CASE("safetensors hostile: missing keys") {
    check_header(R"({"w":{}})", 0, {"tensor 'w'", "dtype is missing"});
    check_header(R"({"w":{"shape":[2],"data_offsets":[0,2]}})", 2, {"tensor 'w'", "dtype is missing"});
    check_header(R"({"w":{"dtype":"U8","data_offsets":[0,2]}})", 2, {"tensor 'w'", "shape is missing"});
    check_header(R"({"w":{"dtype":"U8","shape":[2]}})", 2, {"tensor 'w'", "data_offsets is missing"});
    // The keys of one tensor do not count for the next.
    check_header("{\"v\":" + u8x2 + R"(,"w":{"dtype":"U8","shape":[0]}})", 2,
                 {"tensor 'w'", "data_offsets is missing"});
}

TEST_CASE("safetensors hostile: wrong JSON types") {
    for (const auto& [value, name] : std::initializer_list<std::pair<const char*, const char*>>{{"null", "null"},
                                                                                                {"true", "true"},
                                                                                                {"3", "3"},
                                                                                                {"-3", "-3"},
                                                                                                {"1.5", "1.5"},
                                                                                                {"\"s\"", "a string"},
                                                                                                {"[]", "an array"},
                                                                                                {"{}", "an object"}}) {
        const std::string v = value;
        CAPTURE(v);
        const std::string got = std::string("got ") + name;
        if (v != "{}") check_header("{\"w\":" + v + "}", 0, {"tensor 'w'", got, "wanted an object"});
        if (v != "\"s\"") check_header(one(v, "[2]", "[0,2]"), 2, {"tensor 'w': dtype", got, "wanted a string"});
        if (v != "[]") {
            check_header(one("\"U8\"", v, "[0,2]"), 2, {"tensor 'w': shape", got, "wanted an array"});
            check_header(one("\"U8\"", "[2]", v), 2, {"tensor 'w': data_offsets", got, "wanted an array"});
        }
        if (v != "3") {
            check_header(one("\"U8\"", "[" + v + "]", "[0,2]"), 2, {"tensor 'w': shape", got, "wanted integers"});
            check_header(one("\"U8\"", "[2]", "[" + v + ",2]"), 2, {"tensor 'w': data_offsets", got, "integers"});
            check_header(one("\"U8\"", "[2]", "[0," + v + "]"), 2, {"tensor 'w': data_offsets", got, "integers"});
        }
        if (v != "{}" && v != "null") {
            check_header("{\"__metadata__\":" + v + "}", 0, {"__metadata__", got, "wanted an object of strings"});
        }
        if (v != "\"s\"") {
            check_header("{\"__metadata__\":{\"key\":" + v + "}}", 0, {"__metadata__ 'key'", got, "wanted a string"});
        }
    }
    check_header(one("\"U8\"", "[2]", "[]"), 2, {"tensor 'w': data_offsets", "got 0 numbers"});
    check_header(one("\"U8\"", "[2]", "[0]"), 2, {"tensor 'w': data_offsets", "got 1 numbers"});
    check_header(one("\"U8\"", "[2]", "[0,2,2]"), 2, {"tensor 'w': data_offsets", "more than 2"});
}

TEST_CASE("safetensors hostile: unknown dtypes") {
    for (const char* const name : {"F128", "f32", "", "F8_E4M3FN", "BF16 ", "float32"}) {
        check_header(one('"' + std::string(name) + '"', "[0]", "[0,0]"), 0,
                     {"tensor 'w': dtype", "got '" + std::string(name) + "'", " F64 F32 F16 BF16 F8_E4M3 F8_E5M2",
                      " F4 ", " C64"});
    }
}

TEST_CASE("safetensors hostile: dimensions that are no counts") {
    for (const char* const d : {"-1", "-9223372036854775808", "-0", "1.0", "0.5", "1e3", "9223372036854775808",
                                "18446744073709551615", "18446744073709551616", "-9223372036854775809"}) {
        check_header(one("\"U8\"", "[2," + std::string(d) + "]", "[0,2]"), 2,
                     {"tensor 'w': shape", "got " + std::string(d) + ",", "0 to 2^63 - 1"});
    }
    std::string dims = "[1";
    for (int i = 0; i < 64; ++i) dims += ",1";
    check_header(one("\"U8\"", dims + "]", "[0,1]"), 1, {"tensor 'w': shape", "more than 64 dimensions"});
    // Refused while it is read: a shape cannot grow with the header.
    check_header("{\"w\":{\"shape\":" + dims, 0, {"tensor 'w': shape", "more than 64 dimensions"});
    REQUIRE(safetensors_file::view(raw_file(one("\"U8\"", "[" + dims.substr(3) + "]", "[0,1]"), 1)).ok());
}

TEST_CASE("safetensors hostile: sizes that overflow") {
    for (const char* const shape : {"[4294967296, 4294967296]", "[4294967296, 2147483648]", "[9223372036854775807, 2]",
                                    "[4611686018427387904, 4, 0]", "[0, 4611686018427387904, 4]",
                                    "[4611686018427387904, 0, 4]", "[3, 6148914691236517206]"}) {
        check_header(one("\"U8\"", shape, "[0,0]"), 0, {"tensor 'w'", shape, "element count overflows"});
    }
    // The element count fits, the byte count does not; 2^61 doubles are 2^64 bytes, which wraps to 0.
    for (const char* const shape : {"[2305843009213693952]", "[1152921504606846976]", "[9223372036854775800]"}) {
        check_header(one("\"F64\"", shape, "[0,0]"), 0, {"tensor 'w'", "F64", shape, "byte count overflows"});
    }
    check_header(one("\"U8\"", "[9223372036854775807]", "[0,9223372036854775807]"), 0, {"tensor 'w'"});
}

TEST_CASE("safetensors hostile: packed formats that do not fill their bytes") {
    check_header(one("\"F4\"", "[2, 7]", "[0,7]"), 7, {"tensor 'w'", "F4", "[2, 7]", "last dimension is odd"});
    check_header(one("\"F4\"", "[8, 1]", "[0,4]"), 4, {"tensor 'w'", "F4", "[8, 1]", "last dimension is odd"});
    check_header(one("\"F4\"", "[3]", "[0,2]"), 2, {"tensor 'w'", "F4", "[3]", "last dimension is odd"});
    check_header(one("\"F4\"", "[3]", "[0,1]"), 1, {"tensor 'w'", "F4", "[3]", "last dimension is odd"});
    check_header(one("\"F4\"", "[]", "[0,1]"), 1, {"tensor 'w'", "F4", "[]", "whole number of bytes"});
    check_header(one("\"F4\"", "[2, 8]", "[0,16]"), 16, {"tensor 'w'", "got [0, 16]", "wanted 8 bytes", "F4 [2, 8]"});
    check_header(one("\"F4\"", "[2, 8]", "[0,7]"), 7, {"tensor 'w'", "got [0, 7]", "wanted 8 bytes"});
    check_header(one("\"F6_E2M3\"", "[3]", "[0,2]"), 2, {"tensor 'w'", "F6_E2M3", "[3]", "whole number of bytes"});
    check_header(one("\"F6_E3M2\"", "[2, 5]", "[0,8]"), 8,
                 {"tensor 'w'", "F6_E3M2", "[2, 5]", "whole number of bytes"});
}

TEST_CASE("safetensors hostile: offsets of one tensor") {
    check_header(one("\"U8\"", "[2]", "[2,0]"), 2, {"tensor 'w'", "got [2, 0]", "begin <= end"});
    check_header(one("\"U8\"", "[0]", "[1,0]"), 1, {"tensor 'w'", "got [1, 0]", "begin <= end"});
    check_header(one("\"U8\"", "[2]", "[0,2]"), 1, {"tensor 'w'", "got [0, 2]", "1 bytes of data"});
    check_header(one("\"U8\"", "[0]", "[3,3]"), 2, {"tensor 'w'", "got [3, 3]", "2 bytes of data"});
    check_header(one("\"U8\"", "[2]", "[18446744073709551614,18446744073709551615]"), 2,
                 {"tensor 'w'", "got [18446744073709551614, 18446744073709551615]", "2 bytes of data"});
    check_header(one("\"U8\"", "[2]", "[18446744073709551615,1]"), 2, {"tensor 'w'", "begin <= end"});
    check_header(one("\"U8\"", "[2]", "[0,18446744073709551616]"), 2,
                 {"tensor 'w': data_offsets", "got 18446744073709551616"});
    check_header(one("\"F32\"", "[2]", "[0,2]"), 2, {"tensor 'w'", "got [0, 2]", "wanted 8 bytes", "F32 [2]"});
    check_header(one("\"F32\"", "[]", "[0,0]"), 0, {"tensor 'w'", "wanted 4 bytes", "F32 []"});
    check_header(one("\"F32\"", "[0]", "[0,4]"), 4, {"tensor 'w'", "wanted 0 bytes", "F32 [0]"});
}

TEST_CASE("safetensors hostile: tensors that overlap, leave holes or do not reach the end") {
    const auto two = [](std::string_view a, std::string_view b) {
        return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(a) +
               R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(b) + "}}";
    };
    REQUIRE(safetensors_file::view(raw_file(two("[4,8]", "[0,4]"), 8)).ok());
    check_header(two("[0,4]", "[3,7]"), 7, {"tensor 'b'", "begin of 3, wanted 4", "overlaps"});
    check_header(two("[3,7]", "[0,4]"), 7, {"tensor 'a'", "begin of 3, wanted 4", "overlaps"});
    check_header(two("[0,4]", "[0,4]"), 4, {"tensor 'b'", "begin of 0, wanted 4", "overlaps"});
    check_header(two("[0,4]", "[5,9]"), 9, {"tensor 'b'", "begin of 5, wanted 4", "hole"});
    check_header(two("[1,5]", "[5,9]"), 9, {"tensor 'a'", "begin of 1, wanted 0", "hole"});
    check_header(two("[0,4]", "[4,8]"), 9, {"1 trailing bytes", "tensor 'b'"});
    check_header("{}", 3, {"3 trailing bytes"});
    check_header(R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 1, {"1 trailing bytes", "tensor 'w'"});
    check_header(
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"z":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
        4, {"tensor 'z'", "begin of 2, wanted 4", "overlaps"});
    check_header(R"({"z":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})", 2,
                 {"tensor 'z'", "begin of 2, wanted 0", "hole"});
}

TEST_CASE("safetensors hostile: names in messages are cut and stay on one line") {
    check_header("{\"a\\nb\\u0007\":1}", 0, {"tensor 'a?b?'"});
    check_header("{\"" + std::string(50000, 'n') + "\":1}", 0, {"nnn...'"});
    std::string name(119, 'n');
    for (int i = 0; i < 100; ++i) name += "\xC3\xA4";  // two bytes each: the cut must not fall between them
    check_header("{\"" + name + "\":1}", 0, {std::string(119, 'n') + "...'"});
    check_header("{\"w\":{\"x\"" + std::string(100000, '!'), 0, {"not valid JSON"});
}

TEST_CASE("safetensors hostile: open() names the file") {
    const temp_directory dir;
    for (const auto access : {file_access::map, file_access::read}) {
        write_file(dir / "bad", raw_file("{\"w\":1}", 0));
        const auto bad = safetensors_file::open(dir / "bad", access);
        CHECK_FALSE(bad.ok());
        CHECK(contains(bad.error, (dir / "bad").string()));
        CHECK(contains(bad.error, "tensor 'w'"));
        write_file(dir / "empty", {});
        const auto empty = safetensors_file::open(dir / "empty", access);
        CHECK_FALSE(empty.ok());
        CHECK(contains(empty.error, (dir / "empty").string()));
        CHECK(contains(empty.error, "0 bytes"));
        const auto missing = safetensors_file::open(dir / "missing", access);
        CHECK_FALSE(missing.ok());
        CHECK(contains(missing.error, (dir / "missing").string()));
        CHECK(contains(missing.error, std::generic_category().message(ENOENT)));
    }
}

TEST_CASE("safetensors hostile: seeded mutations of a valid file") {
    const temp_directory dir;
    const bytes original = valid_file();
    std::mt19937_64 random(20240611);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    static constexpr std::string_view tokens[] = {"[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  ",",
                                                  ":",
                                                  "\"",
                                                  "0",
                                                  "9",
                                                  "-",
                                                  ".",
                                                  "e",
                                                  "null",
                                                  "true",
                                                  "18446744073709551615",
                                                  "9223372036854775807",
                                                  "\\u0000",
                                                  "F4",
                                                  "F6_E2M3",
                                                  "\"shape\":",
                                                  "\"dtype\":",
                                                  "[[[[[[[["};
    int accepted = 0;
    int rejected = 0;
    for (int round = 0; round < 20000; ++round) {
        CAPTURE(round);
        bytes file = original;
        const auto mutations = 1 + below(3);
        for (std::size_t m = 0; m < mutations && !file.empty(); ++m) {
            const std::size_t at = below(file.size());
            const auto here = file.begin() + static_cast<std::ptrdiff_t>(at);
            switch (below(6)) {
                case 0:
                    *here ^= static_cast<std::byte>(1u << below(8));
                    break;
                case 1:
                    *here = static_cast<std::byte>(below(256));
                    break;
                case 2:
                    file.resize(at);
                    break;
                case 3:
                    file.erase(here);
                    break;
                case 4:
                    file.insert(here, static_cast<std::byte>(below(256)));
                    break;
                default: {  // a token of the header's language, the header length kept right
                    const bytes token = to_bytes(tokens[below(std::size(tokens))]);
                    file.insert(here, token.begin(), token.end());
                    if (at >= 8) {
                        std::uint64_t length = token.size();
                        for (unsigned i = 0; i < 8; ++i) length += std::to_integer<std::uint64_t>(file[i]) << (8 * i);
                        set_header_length(file, length);
                    }
                }
            }
        }
        const bytes exact(file.begin(), file.end());
        const bool through_file = round % 50 == 0;
        if (through_file) write_file(dir / "f", exact);
        const auto opened = through_file ? safetensors_file::open(dir / "f") : safetensors_file::view(exact);
        if (!opened.ok()) {
            ++rejected;
            continue;
        }
        ++accepted;
        // Accepted: the tensors tile the data section, sizes agree, and all of it can be read.
        std::size_t total = 0;
        unsigned sum = 0;
        for (const auto& t : opened.value.tensors()) {
            if (total > 0) REQUIRE(t.data == opened.value.tensors()[0].data + total);
            total += t.byte_count;
            for (std::size_t i = 0; i < t.byte_count; ++i) sum += std::to_integer<unsigned>(t.data[i]);
            REQUIRE(static_cast<std::uint64_t>(t.element_count()) * static_cast<unsigned>(bits_of(t.type)) ==
                    t.byte_count * 8);
            REQUIRE(opened.value.find(t.name) == &t);
            std::vector<float> out(static_cast<std::size_t>(t.element_count()));
            const bool readable = t.type <= safetensors_dtype::f8_e5m2;
            REQUIRE(read_as_float(t, out).ok() == readable);
        }
        REQUIRE((total == 0 || sum > 0));
        std::uint64_t length = 0;
        for (unsigned i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(exact[i]) << (8 * i);
        REQUIRE(8 + length + total == exact.size());
    }
    CHECK(accepted > 200);
    CHECK(rejected > 10000);
    MESSAGE("mutations accepted: " << accepted << ", rejected: " << rejected);
}
