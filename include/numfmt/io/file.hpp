// SPDX-License-Identifier: MIT
// The bytes of a file, mapped read-only or read into memory, and the result types of numfmt::io: errors are one line of
// text, because they have to name paths and tensors that are known only at run time.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#if (defined(__unix__) || defined(__APPLE__)) && __has_include(<sys/mman.h>)
#define NUMFMT_IO_HAS_MMAP 1
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#define NUMFMT_IO_HAS_MMAP 0
#endif

namespace numfmt::io {

/// Outcome of a call without a value. `error` is empty on success, otherwise one line of UTF-8 that names the file, the
/// tensor or argument concerned, what it got and what was wanted.
struct [[nodiscard]] io_status {
    std::string error;

    bool ok() const noexcept { return error.empty(); }
    explicit operator bool() const noexcept { return ok(); }
};

/// A value, or the error (as in io_status) that says why there is none. `value` is usable only when `ok()`.
template <class T> struct [[nodiscard]] io_result {
    T value{};
    std::string error;

    bool ok() const noexcept { return error.empty(); }
    explicit operator bool() const noexcept { return ok(); }
};

/// How a file's bytes get into the address space.
enum class file_access : std::uint8_t {
    map,   ///< mmap where there is one (pages are loaded on first use), otherwise as `read`
    read,  ///< a private copy in memory: safe against another process that truncates the file meanwhile
};

namespace detail {

// `text` cut to `limit` bytes, fit for an error line: control characters become '?', a UTF-8 sequence is never split.
// With `ascii_only` every byte outside ASCII becomes '?' too, for text that was not checked to be UTF-8.
inline std::string printable(std::string_view text, std::size_t limit = 120, bool ascii_only = false) {
    std::size_t n = text.size();
    if (n > limit) {
        n = limit;
        while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0u) == 0x80u) --n;
    }
    std::string out(text.substr(0, n));
    for (char& c : out) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20u || byte == 0x7Fu || (ascii_only && byte > 0x7Fu)) c = '?';
    }
    if (n < text.size()) out += "...";
    return out;
}

inline std::string quoted_name(std::string_view name) { return '\'' + printable(name) + '\''; }

template <class T> std::string text_part(const T& part) {
    if constexpr (std::is_arithmetic_v<T>) {
        return std::to_string(part);
    } else {
        return std::string(std::string_view(part));
    }
}

// One line of text from text and numbers.
template <class... Parts> std::string text_line(const Parts&... parts) {
    std::string line;
    ((line += text_part(parts)), ...);
    return line;
}

inline std::string path_text(const std::filesystem::path& path) {
    const std::u8string text = path.u8string();
    return printable(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()), 4096);
}

// `code` is an errno value; streams do not promise to set it, hence the fallback.
inline std::string os_error(const std::filesystem::path& path, const char* what, int code) {
    return text_line(path_text(path), ": ", what, ": ",
                     code != 0 ? std::generic_category().message(code) : std::string("unknown input/output error"));
}

// Runs `body`, which returns an io_status or io_result, and turns what the standard library or the JSON library throws
// (in practice: out of memory) into an error of that type.
template <class Body> auto without_exceptions(Body&& body) noexcept -> decltype(body()) {
    decltype(body()) failed{};
    try {
        return body();
    } catch (const std::bad_alloc&) {
        failed.error = "out of memory";  // short enough to need no allocation
    } catch (const std::exception& e) {
        try {
            failed.error = printable(e.what(), 400, true);
        } catch (...) {
            failed.error = "out of memory";
        }
    }
    return failed;
}

}  // namespace detail

/// Owns the bytes of one file, read-only. Movable, not copyable; a moved-from object is empty. Pointers into the bytes
/// stay valid when the object is moved.
///
/// With file_access::map the file must keep its length while the object lives: another process that truncates it turns
/// an access into SIGBUS (POSIX mmap). Replacing a file by renaming another one over it is harmless.
class file_bytes {
  public:
    file_bytes() = default;
    file_bytes(file_bytes&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          mapped_(std::exchange(other.mapped_, false)) {}
    file_bytes& operator=(file_bytes&& other) noexcept {
        file_bytes taken(std::move(other));  // `other` may be *this
        std::swap(data_, taken.data_);
        std::swap(size_, taken.size_);
        std::swap(mapped_, taken.mapped_);
        return *this;
    }
    ~file_bytes() {
#if NUMFMT_IO_HAS_MMAP
        if (mapped_) {
            ::munmap(const_cast<std::byte*>(data_), size_);
            return;
        }
#endif
        delete[] data_;
    }

    /// Opens a regular file of any size, 0 included. Errors: the path cannot be opened or read (with the system's own
    /// reason), is a directory or another thing that is not a regular file, or does not fit in memory.
    static io_result<file_bytes> open(const std::filesystem::path& path,
                                      file_access access = file_access::map) noexcept {
        return detail::without_exceptions([&] { return access == file_access::map ? map(path) : read(path); });
    }

    std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
    bool mapped() const noexcept { return mapped_; }

  private:
    static io_result<file_bytes> map(const std::filesystem::path& path) {
#if NUMFMT_IO_HAS_MMAP
        struct descriptor {
            int fd;
            ~descriptor() {
                if (fd >= 0) ::close(fd);
            }
        };
        // O_NONBLOCK: opening a FIFO must not wait for a writer.
        const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
        if (file.fd < 0) return {{}, detail::os_error(path, "cannot open", errno)};
        struct ::stat info{};
        if (::fstat(file.fd, &info) != 0) return {{}, detail::os_error(path, "cannot stat", errno)};
        if (S_ISDIR(info.st_mode)) return {{}, detail::os_error(path, "cannot read", EISDIR)};
        if (!S_ISREG(info.st_mode)) return {{}, detail::path_text(path) + ": is not a regular file"};
        const auto size = static_cast<std::uint64_t>(info.st_size);
        if (size > std::numeric_limits<std::size_t>::max()) return {{}, detail::os_error(path, "cannot map", EFBIG)};
        io_result<file_bytes> out;
        if (size == 0) return out;  // mmap rejects a length of 0
        void* const address = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, file.fd, 0);
        if (address == MAP_FAILED) return {{}, detail::os_error(path, "cannot map", errno)};
        out.value.data_ = static_cast<const std::byte*>(address);
        out.value.size_ = static_cast<std::size_t>(size);
        out.value.mapped_ = true;
        return out;
#else
        return read(path);
#endif
    }

    static io_result<file_bytes> read(const std::filesystem::path& path) {
        std::error_code code;
        const auto kind = std::filesystem::status(path, code).type();
        if (kind == std::filesystem::file_type::directory) return {{}, detail::os_error(path, "cannot read", EISDIR)};
        if (kind != std::filesystem::file_type::regular && std::filesystem::exists(path, code)) {
            return {{}, detail::path_text(path) + ": is not a regular file"};
        }
        errno = 0;
        std::ifstream file(path, std::ios::binary);
        if (!file) return {{}, detail::os_error(path, "cannot open", errno)};
        const std::uintmax_t size = std::filesystem::file_size(path, code);
        if (code) return {{}, detail::os_error(path, "cannot stat", code.value())};
        // The stream counts in signed values.
        if (size > static_cast<std::uintmax_t>(std::numeric_limits<std::ptrdiff_t>::max())) {
            return {{}, detail::os_error(path, "cannot read", EFBIG)};
        }
        io_result<file_bytes> out;
        out.value.size_ = static_cast<std::size_t>(size);
        auto* const memory = new std::byte[out.value.size_];
        out.value.data_ = memory;
        errno = 0;
        file.read(reinterpret_cast<char*>(memory), static_cast<std::streamsize>(size));
        if (file.gcount() != static_cast<std::streamsize>(size)) {
            const int reason = errno;
            if (reason != 0) return {{}, detail::os_error(path, "cannot read", reason)};
            return {{}, detail::text_line(detail::path_text(path), ": got ", file.gcount(), " bytes, wanted ", size)};
        }
        return out;
    }

    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    bool mapped_ = false;
};

}  // namespace numfmt::io
