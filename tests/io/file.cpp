// SPDX-License-Identifier: MIT
// Mapping and reading of files: content, ownership, and the errors of paths that cannot be read.
#include "safetensors_support.hpp"

#include <doctest/doctest.h>

#include <type_traits>

#if NUMFMT_IO_HAS_MMAP
#include <sys/stat.h>
#endif

using namespace io_test;
using numfmt::io::file_access;
using numfmt::io::file_bytes;

static_assert(!std::is_copy_constructible_v<file_bytes> && !std::is_copy_assignable_v<file_bytes>);
static_assert(std::is_nothrow_move_constructible_v<file_bytes> && std::is_nothrow_move_assignable_v<file_bytes>);

TEST_CASE("file_bytes: both kinds of access give the file's bytes") {
    const temp_directory dir;
    bytes content;
    for (int i = 0; i < 10000; ++i) content.push_back(static_cast<std::byte>(i * 7 & 0xFF));
    write_file(dir / "f", content);
    for (const auto access : {file_access::map, file_access::read}) {
        const auto file = file_bytes::open(dir / "f", access);
        REQUIRE_MESSAGE(file.ok(), file.error);
        CHECK(bytes(file.value.bytes().begin(), file.value.bytes().end()) == content);
        CHECK(file.value.mapped() == (NUMFMT_IO_HAS_MMAP != 0 && access == file_access::map));
    }
}

TEST_CASE("file_bytes: an empty file is no error and has no bytes") {
    const temp_directory dir;
    write_file(dir / "empty", {});
    for (const auto access : {file_access::map, file_access::read}) {
        const auto file = file_bytes::open(dir / "empty", access);
        CHECK_MESSAGE(file.ok(), file.error);
        CHECK(file.value.bytes().empty());
    }
}

TEST_CASE("file_bytes: a move hands the bytes over and leaves the source empty") {
    const temp_directory dir;
    write_file(dir / "a", to_bytes("first"));
    write_file(dir / "b", to_bytes("second"));
    for (const auto access : {file_access::map, file_access::read}) {
        auto a = file_bytes::open(dir / "a", access);
        auto b = file_bytes::open(dir / "b", access);
        REQUIRE(a.ok());
        REQUIRE(b.ok());
        const std::byte* const data = a.value.bytes().data();
        file_bytes moved(std::move(a.value));
        CHECK(a.value.bytes().empty());  // NOLINT(bugprone-use-after-move): the documented state
        CHECK_FALSE(a.value.mapped());
        CHECK(moved.bytes().data() == data);
        moved = std::move(b.value);  // frees the first file
        CHECK(b.value.bytes().empty());
        CHECK(bytes(moved.bytes().begin(), moved.bytes().end()) == to_bytes("second"));
        file_bytes& self = moved;
        moved = std::move(self);
        CHECK(bytes(moved.bytes().begin(), moved.bytes().end()) == to_bytes("second"));
    }
}

TEST_CASE("file_bytes: errors name the path and the system's reason") {
    const temp_directory dir;
    const auto reason = [](int code) { return std::generic_category().message(code); };
    std::filesystem::create_directory(dir / "folder");
    for (const auto access : {file_access::map, file_access::read}) {
        const auto missing = file_bytes::open(dir / "no-such-file", access);
        CHECK_FALSE(missing.ok());
        CHECK(contains(missing.error, (dir / "no-such-file").string()));
        CHECK(contains(missing.error, reason(ENOENT)));

        const auto folder = file_bytes::open(dir / "folder", access);
        CHECK_FALSE(folder.ok());
        CHECK(contains(folder.error, (dir / "folder").string()));
        CHECK(contains(folder.error, reason(EISDIR)));

        write_file(dir / "locked", to_bytes("x"));
        std::filesystem::permissions(dir / "locked", std::filesystem::perms::none);
        if (!std::ifstream(dir / "locked")) {  // the superuser may read it all the same
            const auto locked = file_bytes::open(dir / "locked", access);
            CHECK_FALSE(locked.ok());
            CHECK(contains(locked.error, (dir / "locked").string()));
            CHECK(contains(locked.error, reason(EACCES)));
        }
        std::filesystem::permissions(dir / "locked", std::filesystem::perms::owner_all);
    }
}

#if NUMFMT_IO_HAS_MMAP
TEST_CASE("file_bytes: a FIFO is refused and does not block") {
    const temp_directory dir;
    REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
    for (const auto access : {file_access::map, file_access::read}) {
        const auto pipe = file_bytes::open(dir / "pipe", access);
        CHECK_FALSE(pipe.ok());
        CHECK(contains(pipe.error, (dir / "pipe").string()));
        CHECK(contains(pipe.error, "not a regular file"));
    }
}
#endif
