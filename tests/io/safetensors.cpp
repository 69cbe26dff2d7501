// SPDX-License-Identifier: MIT
// Safetensors files that are valid: every dtype through the writer, decoding, lookup, alignment, ownership, and what
// the writer refuses.
#include "safetensors_support.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

using namespace io_test;
using namespace numfmt::io;
using dtype = safetensors_dtype;

static_assert(!std::is_copy_constructible_v<safetensors_file> && !std::is_copy_assignable_v<safetensors_file>);
static_assert(std::is_nothrow_move_constructible_v<safetensors_file>);
static_assert(std::is_nothrow_move_assignable_v<safetensors_file>);

namespace {

struct dtype_case {
    dtype type;
    std::string_view name;
    int bits;
};

// Names and sizes as the reference implementation lists them (safetensors 0.8, `Dtype::bitsize`).
constexpr dtype_case all_dtypes[] = {
    {dtype::boolean, "BOOL", 8},
    {dtype::f4, "F4", 4},
    {dtype::f6_e2m3, "F6_E2M3", 6},
    {dtype::f6_e3m2, "F6_E3M2", 6},
    {dtype::u8, "U8", 8},
    {dtype::i8, "I8", 8},
    {dtype::f8_e5m2, "F8_E5M2", 8},
    {dtype::f8_e4m3, "F8_E4M3", 8},
    {dtype::f8_e8m0, "F8_E8M0", 8},
    {dtype::f8_e4m3fnuz, "F8_E4M3FNUZ", 8},
    {dtype::f8_e5m2fnuz, "F8_E5M2FNUZ", 8},
    {dtype::i16, "I16", 16},
    {dtype::u16, "U16", 16},
    {dtype::f16, "F16", 16},
    {dtype::bf16, "BF16", 16},
    {dtype::i32, "I32", 32},
    {dtype::u32, "U32", 32},
    {dtype::f32, "F32", 32},
    {dtype::c64, "C64", 64},
    {dtype::f64, "F64", 64},
    {dtype::i64, "I64", 64},
    {dtype::u64, "U64", 64},
};

bytes content_of(const safetensor& t) { return {t.data, t.data + t.byte_count}; }

// The little-endian bytes of codes of `width` bytes.
bytes little_endian(std::initializer_list<std::uint64_t> codes, unsigned width) {
    bytes out;
    for (const std::uint64_t c : codes) {
        for (unsigned i = 0; i < width; ++i) out.push_back(static_cast<std::byte>(c >> (8 * i) & 0xFFu));
    }
    return out;
}

std::uint64_t f64_bits(double v) { return std::bit_cast<std::uint64_t>(v); }
std::uint32_t f32_bits(float v) { return std::bit_cast<std::uint32_t>(v); }

std::vector<float> decoded(const safetensor& t) {
    std::vector<float> out(static_cast<std::size_t>(t.element_count()));
    const auto done = read_as_float(t, out);
    REQUIRE_MESSAGE(done.ok(), done.error);
    return out;
}

}  // namespace

TEST_CASE("safetensors: dtype names and sizes") {
    for (const auto& d : all_dtypes) {
        CAPTURE(d.name);
        dtype parsed{};
        CHECK(parse_dtype(d.name, parsed));
        CHECK(parsed == d.type);
        CHECK(name_of(d.type) == d.name);
        CHECK(bits_of(d.type) == d.bits);
    }
    CHECK(std::size(all_dtypes) == static_cast<std::size_t>(dtype::c64) + 1);
    dtype untouched = dtype::i16;
    for (const char* const name : {"", "f32", "F3", "F320", "FP16", "F8_E4M3FN"})
        CHECK_FALSE(parse_dtype(name, untouched));
    CHECK(untouched == dtype::i16);
    CHECK(bits_of(static_cast<dtype>(200)) == 0);
    CHECK(name_of(static_cast<dtype>(200)) == "?");
}

TEST_CASE("safetensors: every dtype round-trips through the writer") {
    const temp_directory dir;
    std::vector<bytes> contents;
    std::vector<safetensor> tensors;
    contents.reserve(std::size(all_dtypes));
    for (const auto& d : all_dtypes) {
        bytes content;
        for (int i = 0; i < 3 * 8 * d.bits / 8; ++i) {
            content.push_back(static_cast<std::byte>((i * 29 + static_cast<int>(d.type) * 5) & 0xFF));
        }
        contents.push_back(std::move(content));
        tensors.push_back(make_tensor("w." + std::string(d.name), d.type, {3, 8}, contents.back()));
    }
    const safetensors_metadata metadata{
        {"format", "pt"}, {"quote\"\\\n", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"}, {"", ""}};
    const auto written = write_safetensors(dir / "all", tensors, metadata);
    REQUIRE_MESSAGE(written.ok(), written.error);
    CHECK_FALSE(std::filesystem::exists(dir / "all.part"));

    for (const auto access : {file_access::map, file_access::read}) {
        const auto opened = safetensors_file::open(dir / "all", access);
        REQUIRE_MESSAGE(opened.ok(), opened.error);
        const auto& file = opened.value;
        CHECK(file.metadata() == metadata);
        REQUIRE(file.tensors().size() == tensors.size());
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            const auto& t = file.tensors()[i];
            CAPTURE(t.name);
            CHECK(t.name == tensors[i].name);
            CHECK(t.type == tensors[i].type);
            CHECK(t.shape == tensors[i].shape);
            CHECK(t.element_count() == 24);
            CHECK(content_of(t) == contents[i]);
            CHECK(file.find(t.name) == &t);
        }
        CHECK(file.find("w.F") == nullptr);
        CHECK(file.find("") == nullptr);
        CHECK(file.find("zzz") == nullptr);
    }
}

TEST_CASE("safetensors: the writer's layout") {
    const temp_directory dir;
    const bytes content = to_bytes({1, 2, 3});
    for (std::size_t n = 1; n < 10; ++n) {  // header lengths of every residue
        const std::string name(n, 'n');
        const safetensor t = make_tensor(name, dtype::u8, {3}, content);
        REQUIRE(write_safetensors(dir / "f", {&t, 1}).ok());
        std::string header = "{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}";
        header.append((8 - header.size() % 8) % 8, ' ');
        bytes wanted = raw_file(header, 0);
        wanted.insert(wanted.end(), content.begin(), content.end());
        CHECK(read_file(dir / "f") == wanted);
    }
}

TEST_CASE("safetensors: a file of the reference implementation") {
    // Written by the Python package safetensors 0.8: serialize() of an F4, an F32 and an empty BF16 tensor.
    const std::string header = R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                               R"("e":{"dtype":"BF16","shape":[0,4],"data_offsets":[8,8]},)"
                               R"("a":{"dtype":"F4","shape":[2,8],"data_offsets":[8,16]}}  )";
    bytes file = raw_file(header, 0);
    const bytes data = little_endian({f32_bits(1.5F), f32_bits(-2.0F), 0x03020100u, 0x07060504u}, 4);
    file.insert(file.end(), data.begin(), data.end());
    const auto opened = safetensors_file::view(file);
    REQUIRE_MESSAGE(opened.ok(), opened.error);
    const auto& tensors = opened.value.tensors();
    REQUIRE(tensors.size() == 3);
    CHECK(tensors[0].name == "b");
    CHECK(tensors[1].name == "e");
    CHECK(tensors[2].name == "a");
    CHECK(decoded(tensors[0]) == std::vector<float>{1.5F, -2.0F});
    CHECK(decoded(tensors[1]).empty());
    CHECK(tensors[2].byte_count == 8);  // F4 [2, 8]
    CHECK(content_of(tensors[2]) == to_bytes({0, 1, 2, 3, 4, 5, 6, 7}));
    CHECK(opened.value.metadata().at("k") == "v");
}

TEST_CASE("safetensors: tensors come in the order of their data, whatever the header's order") {
    const auto opened = safetensors_file::view(raw_file(R"({"last":{"dtype":"U8","shape":[1],"data_offsets":[3,4]},)"
                                                        R"("first":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                                                        R"("none":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},)"
                                                        R"("mid":{"dtype":"U8","shape":[],"data_offsets":[2,3]},)"
                                                        R"("end":{"dtype":"I64","shape":[7,0],"data_offsets":[4,4]}})",
                                                        4));
    REQUIRE_MESSAGE(opened.ok(), opened.error);
    std::string order;
    for (const auto& t : opened.value.tensors()) order += t.name + " ";
    CHECK(order == "first none mid last end ");
    for (const auto& t : opened.value.tensors()) CHECK(opened.value.find(t.name) == &t);
}

TEST_CASE("safetensors: scalars, empty tensors, empty names and files without tensors") {
    const temp_directory dir;
    const bytes one = little_endian({f32_bits(7.0F)}, 4);
    const std::vector<safetensor> tensors{make_tensor("none", dtype::f32, {0}, {}),
                                          make_tensor("", dtype::f32, {}, one),
                                          make_tensor("none2", dtype::f4, {5, 0, 3, 2}, {}),
                                          make_tensor("big", dtype::f64, {std::int64_t{1} << 62, 0}, {})};
    REQUIRE(write_safetensors(dir / "f", tensors).ok());
    const auto opened = safetensors_file::open(dir / "f");
    REQUIRE_MESSAGE(opened.ok(), opened.error);
    const auto* const scalar = opened.value.find("");
    REQUIRE(scalar != nullptr);
    CHECK(scalar->shape.empty());
    CHECK(scalar->element_count() == 1);
    CHECK(decoded(*scalar) == std::vector<float>{7.0F});
    for (const char* const name : {"none", "big"}) {
        const auto* const t = opened.value.find(name);
        REQUIRE(t != nullptr);
        CHECK(t->element_count() == 0);
        CHECK(t->byte_count == 0);
        CHECK(decoded(*t).empty());
    }
    CHECK(opened.value.tensors()[3].name == "big");

    REQUIRE(write_safetensors(dir / "f", {}).ok());
    const auto nothing = safetensors_file::open(dir / "f");
    CHECK_MESSAGE(nothing.ok(), nothing.error);
    CHECK(nothing.value.tensors().empty());
    CHECK(nothing.value.metadata().empty());
    CHECK(nothing.value.find("") == nullptr);
}

TEST_CASE("safetensors: what the reference implementation accepts beyond the basic form") {
    const std::string fields = R"("dtype":"U8","shape":[2],"data_offsets":[0,2])";
    std::string nested = R"({"a":{"x":)";
    nested.append(64, '[').append(64, ']').append("," + fields + "}}");
    const std::string accepted[] = {
        "{\"a\":{" + fields + "}}   \n\t ",                          // padding
        "{ \"__metadata__\" : null , \"a\" : { " + fields + " } }",  // metadata of nothing
        "{\"a\":{\"x\":[1,{\"y\":[true,null,-1.5,\"s\"]}],\"z\":-1,\"n\":null,\"t\":\"u\"," + fields + "}}",
        "{\"a\":{\"x\":{\"dtype\":1,\"shape\":{}}," + fields + "}}",           // inside a skipped value
        R"({"a":{"data_offsets":[0,2],"shape":[2],"dtype":"U8"}})",            // any order of keys
        R"({"\u0061":{"dtype":"\u00558","shape":[2],"data_offsets":[0,2]}})",  // escapes
        nested,
    };
    for (const auto& header : accepted) {
        CAPTURE(header);
        const auto opened = safetensors_file::view(raw_file(header, 2));
        CHECK_MESSAGE(opened.ok(), opened.error);
        REQUIRE(opened.value.tensors().size() == 1);
        CHECK(opened.value.tensors()[0].name == "a");
        CHECK(opened.value.tensors()[0].byte_count == 2);
        CHECK(opened.value.metadata().empty());
    }
}

TEST_CASE("case 50: packed sizes of F4 and F6 (fastsafetensors #79)") {
    struct packed_case {
        dtype type;
        std::vector<std::int64_t> shape;
        std::size_t byte_count;
    };
    const packed_case cases[] = {
        {dtype::f4, {2, 8}, 8},   {dtype::f4, {2}, 1},         {dtype::f4, {3, 5, 2}, 15},
        {dtype::f6_e2m3, {4}, 3}, {dtype::f6_e3m2, {2, 2}, 3}, {dtype::f6_e3m2, {32, 3}, 72},
    };
    const temp_directory dir;
    for (const auto& c : cases) {
        const bytes content(c.byte_count, std::byte{0x5A});
        const safetensor t = make_tensor("p", c.type, c.shape, content);
        const auto written = write_safetensors(dir / "f", {&t, 1});
        REQUIRE_MESSAGE(written.ok(), written.error);
        const auto opened = safetensors_file::open(dir / "f");
        REQUIRE_MESSAGE(opened.ok(), opened.error);
        CHECK(opened.value.tensors()[0].byte_count == c.byte_count);
    }
}

TEST_CASE("read_as_float: known codes of every dtype it decodes") {
    constexpr float inf = std::numeric_limits<float>::infinity();
    struct decode_case {
        dtype type;
        bytes content;
        std::vector<float> wanted;
    };
    const decode_case cases[] = {
        {dtype::f32,
         little_endian({f32_bits(0.1F), f32_bits(-0.0F), 1, 0xFF800000u}, 4),
         {0.1F, -0.0F, 0x1p-149F, -inf}},
        // IEEE binary16 (IEEE 754-2019 table 3.5): 1, the largest, the smallest subnormal, -Inf
        {dtype::f16, little_endian({0x3C00, 0x7BFF, 0x0001, 0xFC00}, 2), {1.0F, 65504.0F, 0x1p-24F, -inf}},
        {dtype::bf16, little_endian({0x3F80, 0x4049, 0x0001, 0xFF80}, 2), {1.0F, 3.140625F, 0x1p-133F, -inf}},
        // OCP OFP8 1.0 table 2: largest and smallest magnitudes
        {dtype::f8_e4m3, little_endian({0x38, 0x7E, 0x01, 0xFE, 0x80}, 1), {1.0F, 448.0F, 0x1p-9F, -448.0F, -0.0F}},
        {dtype::f8_e5m2, little_endian({0x3C, 0x7B, 0x01, 0xFC, 0x80}, 1), {1.0F, 57344.0F, 0x1p-16F, -inf, -0.0F}},
        // one rounding: two ties, just above a tie (bf16-first or truncating would go down), overflow, underflow
        {dtype::f64,
         little_endian({f64_bits(1 + 0x1p-24), f64_bits(1 + 0x1.8p-23), f64_bits(1 + 0x1p-24 + 0x1p-50),
                        f64_bits(-1e300), f64_bits(0x1p-150), f64_bits(0x1.1p-150)},
                       8),
         {1.0F, 1 + 0x1p-22F, 1 + 0x1p-23F, -inf, 0.0F, 0x1p-149F}},
    };
    for (const auto& c : cases) {
        CAPTURE(name_of(c.type));
        const auto n = static_cast<std::int64_t>(c.wanted.size());
        const auto out = decoded(make_tensor("t", c.type, {1, n}, c.content));
        for (std::size_t i = 0; i < out.size(); ++i) {
            CAPTURE(i);
            CHECK(f32_bits(out[i]) == f32_bits(c.wanted[i]));
        }
    }
    const auto is_nan = [](float v) { return (f32_bits(v) & 0x7FFFFFFFu) > 0x7F800000u; };
    CHECK(is_nan(decoded(make_tensor("t", dtype::f64, {1}, little_endian({0x7FF8000000000000u}, 8)))[0]));
    CHECK(is_nan(decoded(make_tensor("t", dtype::f32, {1}, little_endian({0xFFC00001u}, 4)))[0]));
    CHECK(is_nan(decoded(make_tensor("t", dtype::f16, {1}, little_endian({0x7E00}, 2)))[0]));
    CHECK(is_nan(decoded(make_tensor("t", dtype::bf16, {1}, little_endian({0xFFFF}, 2)))[0]));
    CHECK(is_nan(decoded(make_tensor("t", dtype::f8_e4m3, {1}, little_endian({0xFF}, 1)))[0]));
    CHECK(is_nan(decoded(make_tensor("t", dtype::f8_e5m2, {1}, little_endian({0x7D}, 1)))[0]));
}

TEST_CASE("read_as_float: unaligned data") {
    const temp_directory dir;
    const bytes odd = to_bytes({1});
    const bytes f64 = little_endian({f64_bits(0.5), f64_bits(-3)}, 8);
    const bytes f32 = little_endian({f32_bits(0.5F), f32_bits(-3)}, 4);
    const bytes f16 = little_endian({0x3800, 0xC200}, 2);
    const bytes bf16 = little_endian({0x3F00, 0xC040}, 2);
    const std::vector<safetensor> tensors{
        make_tensor("odd", dtype::u8, {1}, odd), make_tensor("f64", dtype::f64, {2}, f64),
        make_tensor("f32", dtype::f32, {2}, f32), make_tensor("f16", dtype::f16, {2}, f16),
        make_tensor("bf16", dtype::bf16, {2}, bf16)};
    REQUIRE(write_safetensors(dir / "f", tensors).ok());
    const auto opened = safetensors_file::open(dir / "f");
    REQUIRE_MESSAGE(opened.ok(), opened.error);
    CHECK(reinterpret_cast<std::uintptr_t>(opened.value.tensors()[0].data) % 8 == 0);
    for (std::size_t i = 1; i < tensors.size(); ++i) {
        const auto& t = opened.value.tensors()[i];
        CAPTURE(t.name);
        CHECK(reinterpret_cast<std::uintptr_t>(t.data) % 2 == 1);
        CHECK(decoded(t) == std::vector<float>{0.5F, -3.0F});
    }
}

TEST_CASE("read_as_float: errors name the tensor, what it got and what was wanted") {
    const bytes content(16);
    std::vector<float> out(4, 42.0F);
    const auto error_of = [&](const safetensor& t) {
        const auto status = read_as_float(t, out);
        CHECK_FALSE(status.ok());
        for (const float v : out) CHECK(v == 42.0F);
        return status.error;
    };
    for (const auto& d : all_dtypes) {
        if (d.type == dtype::f64 || d.type == dtype::f32 || d.type == dtype::f16 || d.type == dtype::bf16 ||
            d.type == dtype::f8_e4m3 || d.type == dtype::f8_e5m2) {
            continue;
        }
        const bytes room(static_cast<std::size_t>(d.bits * 4 / 8));
        const auto e = error_of(make_tensor("w", d.type, {4}, room));
        CHECK(contains(e, "tensor 'w'"));
        CHECK(contains(e, "got " + std::string(d.name)));
        CHECK(contains(e, "F64 F32 F16 BF16 F8_E4M3 F8_E5M2"));
    }
    const auto room = error_of(make_tensor("w", dtype::f16, {8}, content));
    CHECK(contains(room, "tensor 'w': out: got room for 4 floats, wanted 8"));
    const auto too_much = error_of(make_tensor("w", dtype::f64, {2}, content));
    CHECK(contains(too_much, "tensor 'w': out: got room for 4 floats, wanted 2"));
    const auto cut = error_of(make_tensor("w", dtype::f32, {4}, std::span(content).first(15)));
    CHECK(contains(cut, "tensor 'w': data: got 15 bytes, wanted 16"));
    const auto null = error_of({"w", dtype::f32, {4}, nullptr, 16});
    CHECK(contains(null, "tensor 'w': data: got 0 bytes, wanted 16"));
    CHECK(contains(error_of(make_tensor("w", dtype::f32, {-4}, content)), "negative"));
    CHECK(contains(error_of(make_tensor("w", static_cast<dtype>(99), {4}, content)), "dtype 99"));
    CHECK(contains(error_of(make_tensor("w", dtype::f32, std::vector<std::int64_t>(65, 1), content)), "64"));
}

TEST_CASE("safetensors: a moved file keeps its tensors where they are") {
    const temp_directory dir;
    const bytes content = little_endian({f32_bits(1), f32_bits(2)}, 4);
    const std::vector<safetensor> tensors{make_tensor("x", dtype::f32, {2}, content)};
    REQUIRE(write_safetensors(dir / "a", tensors, {{"k", "v"}}).ok());
    REQUIRE(write_safetensors(dir / "b", {}).ok());
    for (const auto access : {file_access::map, file_access::read}) {
        auto opened = safetensors_file::open(dir / "a", access);
        REQUIRE(opened.ok());
        const safetensor* const before = opened.value.find("x");
        const std::byte* const data = before->data;
        safetensors_file first(std::move(opened.value));
        CHECK(opened.value.tensors().empty());  // NOLINT(bugprone-use-after-move): must be harmless
        CHECK(opened.value.find("x") == nullptr);
        auto other = safetensors_file::open(dir / "b", access);
        REQUIRE(other.ok());
        other.value = std::move(first);
        const safetensor* const after = other.value.find("x");
        REQUIRE(after == before);
        CHECK(after->data == data);
        CHECK(decoded(*after) == std::vector<float>{1.0F, 2.0F});
        CHECK(other.value.metadata().at("k") == "v");
        CHECK(first.find("x") == nullptr);
    }
}

TEST_CASE("write_safetensors: a mapped file can be rewritten in place") {
    const temp_directory dir;
    bytes content(100000, std::byte{3});
    const std::vector<safetensor> tensors{make_tensor("x", dtype::u8, {100000}, content)};
    REQUIRE(write_safetensors(dir / "f", tensors).ok());
    const auto opened = safetensors_file::open(dir / "f");
    REQUIRE(opened.ok());
    REQUIRE(write_safetensors(dir / "f", opened.value.tensors(), {{"pass", "2"}}).ok());
    CHECK(content_of(opened.value.tensors()[0]) == content);  // the old mapping
    const auto again = safetensors_file::open(dir / "f");
    REQUIRE_MESSAGE(again.ok(), again.error);
    CHECK(content_of(again.value.tensors()[0]) == content);
    CHECK(again.value.metadata().at("pass") == "2");
}

TEST_CASE("write_safetensors: errors name the path and the tensor, and leave the old file") {
    const temp_directory dir;
    const bytes content(16);
    write_file(dir / "f", to_bytes("old"));
    const auto check = [&](const std::vector<safetensor>& tensors, const safetensors_metadata& metadata,
                           std::initializer_list<std::string_view> parts) {
        const auto status = write_safetensors(dir / "f", tensors, metadata);
        CHECK_FALSE(status.ok());
        CHECK(contains(status.error, (dir / "f").string()));
        for (const auto part : parts) {
            CAPTURE(part);
            CAPTURE(status.error);
            CHECK(contains(status.error, part));
        }
        CHECK(read_file(dir / "f") == to_bytes("old"));
        CHECK_FALSE(std::filesystem::exists(dir / "f.part"));
    };
    const auto good = make_tensor("a", dtype::f32, {4}, content);
    check({good, make_tensor("b", dtype::u8, {16}, content), good}, {}, {"tensor 'a'", "twice"});
    check({make_tensor("__metadata__", dtype::f32, {4}, content)}, {}, {"__metadata__", "reserved"});
    check({make_tensor("a\xFF", dtype::f32, {4}, content)}, {}, {"tensor 'a?'", "UTF-8"});
    check({good}, {{"k", "\xC0\x80"}}, {"__metadata__ 'k'", "UTF-8"});
    check({good}, {{"k\xFF", ""}}, {"__metadata__ 'k?'", "UTF-8"});
    check({make_tensor("a", dtype::f32, {3}, content)}, {}, {"tensor 'a'", "got 16 bytes", "wanted 12"});
    check({{"a", dtype::f32, {4}, nullptr, 16}}, {}, {"tensor 'a'", "got 0 bytes", "wanted 16"});
    check({make_tensor("a", dtype::f32, {-4, -1}, content)}, {}, {"tensor 'a'", "[-4, -1]", "negative"});
    check({make_tensor("a", dtype::f4, {32, 1}, content)}, {}, {"tensor 'a'", "F4", "[32, 1]", "odd"});
    check({make_tensor("a", dtype::f6_e2m3, {21}, content)}, {},
          {"tensor 'a'", "F6_E2M3", "[21]", "whole number of bytes"});
    check({make_tensor("a", static_cast<dtype>(77), {4}, content)}, {}, {"tensor 'a'", "dtype 77"});
    check({make_tensor("a", dtype::u8, {std::int64_t{1} << 32, std::int64_t{1} << 32}, content)}, {},
          {"tensor 'a'", "[4294967296, 4294967296]", "overflows"});

    const auto nowhere = write_safetensors(dir / "no-such-folder/f", {&good, 1});
    CHECK_FALSE(nowhere.ok());
    CHECK(contains(nowhere.error, "no-such-folder"));
    CHECK(contains(nowhere.error, std::generic_category().message(ENOENT)));
    std::filesystem::create_directory(dir / "folder");
    const auto folder = write_safetensors(dir / "folder", {&good, 1});
    CHECK_FALSE(folder.ok());
    CHECK(contains(folder.error, (dir / "folder").string()));
    CHECK_FALSE(std::filesystem::exists(dir / "folder.part"));
}
