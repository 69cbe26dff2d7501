// SPDX-License-Identifier: MIT
// What the tests of numfmt::io share: a temporary directory, bytes from literals, files written without the library.
#pragma once

#include <numfmt/io/safetensors.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace io_test {

using bytes = std::vector<std::byte>;

/// A fresh directory, removed with everything in it.
class temp_directory {
  public:
    temp_directory() {
        static std::atomic<unsigned> counter{0};
        std::random_device random;
        path_ = std::filesystem::temp_directory_path() / ("numfmt-io-" + std::to_string(random()) + "-" +
                                                          std::to_string(random()) + "-" + std::to_string(counter++));
        std::filesystem::create_directories(path_);
    }
    temp_directory(const temp_directory&) = delete;
    temp_directory& operator=(const temp_directory&) = delete;
    ~temp_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

inline bytes to_bytes(std::string_view text) {
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
}

inline bytes to_bytes(std::initializer_list<int> values) {
    bytes out;
    for (const int v : values) out.push_back(static_cast<std::byte>(v));
    return out;
}

/// A safetensors file put together by hand: the header length (that of `header` unless given), the header, the data.
inline bytes raw_file(std::string_view header, std::size_t data_size) {
    bytes out;
    for (unsigned i = 0; i < 8; ++i)
        out.push_back(static_cast<std::byte>(std::uint64_t{header.size()} >> (8 * i) & 0xFFu));
    const bytes text = to_bytes(header);
    out.insert(out.end(), text.begin(), text.end());
    for (std::size_t i = 0; i < data_size; ++i) out.push_back(static_cast<std::byte>(i * 37 + 11));
    return out;
}

inline void set_header_length(bytes& file, std::uint64_t length) {
    for (unsigned i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(length >> (8 * i) & 0xFFu);
}

inline void write_file(const std::filesystem::path& path, std::span<const std::byte> content) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
}

inline bytes read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return to_bytes(text);
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

inline numfmt::io::safetensor make_tensor(std::string name, numfmt::io::safetensors_dtype type,
                                          std::vector<std::int64_t> shape, std::span<const std::byte> content) {
    return {std::move(name), type, std::move(shape), content.data(), content.size()};
}

}  // namespace io_test
