// SPDX-License-Identifier: MIT
// Reads and writes .safetensors checkpoints: a memory-mapped file of named tensors. Files are treated as hostile: every
// length, offset, shape and name is checked before it is used.
// Format: github.com/huggingface/safetensors, README section "Format".
#pragma once

#include "../bf16.hpp"
#include "../fp16.hpp"
#include "../fp8.hpp"
#include "file.hpp"
#include "safetensors_header.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

namespace numfmt::io {

/// An open checkpoint. Movable, not copyable; tensors point into the file's bytes and stay valid when it is moved.
class safetensors_file {
  public:
    safetensors_file() = default;
    safetensors_file(safetensors_file&&) noexcept = default;
    safetensors_file& operator=(safetensors_file&&) noexcept = default;

    /// Maps (or reads) `path` and checks its whole header; tensor data are not touched. Errors: what file_bytes::open
    /// reports; anything that breaks the format: a header that is cut, larger than safetensors_max_header, not JSON or
    /// of another structure; repeated names or keys; an unknown dtype; a size that overflows; offsets that disagree
    /// with dtype and shape, overlap, leave a hole or do not end at the end of the file. Unknown keys of a tensor are
    /// skipped, `"__metadata__": null` counts as absent.
    static io_result<safetensors_file> open(const std::filesystem::path& path,
                                            file_access access = file_access::map) noexcept {
        return detail::without_exceptions([&]() -> io_result<safetensors_file> {
            auto file = file_bytes::open(path, access);
            if (!file) return {{}, std::move(file.error)};
            auto out = parse(file.value.bytes());
            if (!out) return {{}, detail::path_text(path) + ": " + out.error};
            out.value.bytes_ = std::move(file.value);
            return out;
        });
    }

    /// The same checks on bytes in memory, which the caller keeps alive for as long as the tensors are used.
    static io_result<safetensors_file> view(std::span<const std::byte> bytes) noexcept {
        return detail::without_exceptions([&] { return parse(bytes); });
    }

    /// All tensors in the order of their data in the file.
    const std::vector<safetensor>& tensors() const noexcept { return tensors_; }

    /// The tensor of that name, or a null pointer. O(log n).
    const safetensor* find(std::string_view name) const noexcept {
        const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                         [&](std::size_t i, std::string_view n) { return tensors_[i].name < n; });
        return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
    }

    /// The file's `__metadata__`; empty when there is none.
    const safetensors_metadata& metadata() const noexcept { return metadata_; }

  private:
    static io_result<safetensors_file> parse(std::span<const std::byte> bytes) {
        const auto bad = [](const auto&... parts) {
            return io_result<safetensors_file>{{}, detail::text_line(parts...)};
        };
        if (bytes.size() < 8) {
            return bad("got a file of ", bytes.size(), " bytes, wanted at least the 8 of the header length");
        }
        std::uint64_t length = 0;
        for (std::size_t i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
        const std::uint64_t rest = bytes.size() - 8;
        if (length > rest) {
            return bad("header length: got ", length, ", wanted at most the ", rest, " bytes that follow it");
        }
        if (length > safetensors_max_header) {
            return bad("header length: got ", length, ", wanted at most ", safetensors_max_header);
        }
        if (length == 0) return bad("header length: got 0, wanted a JSON object");
        const char* const text = reinterpret_cast<const char*>(bytes.data()) + 8;
        const auto text_size = static_cast<std::size_t>(length);
        if (*text != '{') {
            return bad("header: got byte ", std::to_integer<int>(bytes[8]), " first, wanted 123, an opening brace");
        }
        // The JSON parser takes a NUL for the end of its input, and what follows would go unseen.
        if (const void* const nul = std::memchr(text, 0, text_size)) {
            return bad("header: got a NUL at its byte ", static_cast<const char*>(nul) - text, ", wanted JSON text");
        }

        detail::safetensors_header header(rest - length);
        if (!nlohmann::json::sax_parse(text, text + text_size, &header)) {
            return bad(header.error.empty() ? std::string("header: not valid JSON") : header.error);
        }

        auto& entries = header.entries;
        // Empty tensors come before the one that starts where they lie, and keep the header's order.
        std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
            return std::tie(a.begin, a.end, a.order) < std::tie(b.begin, b.end, b.order);
        });
        safetensors_file file;
        file.by_name_.resize(entries.size());
        for (std::size_t i = 0; i < entries.size(); ++i) file.by_name_[i] = i;
        const auto name = [&](std::size_t i) -> const std::string& { return entries[i].tensor.name; };
        std::sort(file.by_name_.begin(), file.by_name_.end(),
                  [&](std::size_t a, std::size_t b) { return name(a) < name(b); });
        for (std::size_t i = 1; i < file.by_name_.size(); ++i) {
            const std::string& twice = name(file.by_name_[i]);
            if (name(file.by_name_[i - 1]) == twice) return bad(detail::tensor_text(twice), ": the name appears twice");
        }

        std::uint64_t end = 0;
        file.tensors_.reserve(entries.size());
        for (auto& e : entries) {
            if (e.begin != end) {
                return bad(detail::tensor_text(e.tensor.name), ": data_offsets: got a begin of ", e.begin, ", wanted ",
                           end, ": it ", e.begin < end ? "overlaps the tensor before it" : "leaves a hole before it");
            }
            end = e.end;
            e.tensor.data = bytes.data() + 8 + text_size + static_cast<std::size_t>(e.begin);
            e.tensor.byte_count = static_cast<std::size_t>(e.end - e.begin);
            file.tensors_.push_back(std::move(e.tensor));
        }
        if (end != rest - length) {
            const auto last =
                file.tensors_.empty() ? std::string("the header") : detail::tensor_text(file.tensors_.back().name);
            return bad("got ", rest - length - end, " trailing bytes after ", last, ", wanted none");
        }
        file.metadata_ = std::move(header.metadata);
        return {std::move(file), {}};
    }

    file_bytes bytes_;
    std::vector<safetensor> tensors_;
    std::vector<std::size_t> by_name_;
    safetensors_metadata metadata_;
};

namespace detail {

// The value whose little-endian bytes start at `p`, at any alignment.
template <class T> T load_little_endian(const std::byte* p) noexcept {
    std::byte bytes[sizeof(T)];
    std::memcpy(bytes, p, sizeof(T));
    if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, bytes + sizeof(T));
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
}

template <class Storage, class Decode>
void decode_each(const std::byte* from, std::span<float> out, Decode decode_one) {
    for (float& value : out) {
        value = decode_one(load_little_endian<Storage>(from));
        from += sizeof(Storage);
    }
}

}  // namespace detail

/// Decodes a whole tensor of F64, F32, F16, BF16, F8_E4M3 or F8_E5M2 into `out`, row-major, `element_count()` floats.
/// Exact for every dtype but F64, where each value is rounded once to nearest even (IEEE conversion: too large gives an
/// infinity; results below 2^-126 need a CPU that does not flush subnormals). NaN stays NaN. Errors: another dtype; a
/// size of `out` other than the element count; a `byte_count` that disagrees with dtype and shape. `out` is untouched
/// on error.
inline io_status read_as_float(const safetensor& tensor, std::span<float> out) noexcept {
    return detail::without_exceptions([&]() -> io_status {
        const auto subject = [&] { return detail::tensor_text(tensor.name); };
        const auto wanted = detail::shape_bytes(tensor.name, tensor.type, tensor.shape);
        if (!wanted) return {wanted.error};
        if (tensor.byte_count != wanted.value || (tensor.data == nullptr && wanted.value > 0)) {
            return {detail::text_line(subject(), ": data: got ", tensor.data == nullptr ? 0 : tensor.byte_count,
                                      " bytes, wanted ", wanted.value)};
        }
        if (out.size() != static_cast<std::uint64_t>(tensor.element_count())) {
            return {detail::text_line(subject(), ": out: got room for ", out.size(), " floats, wanted ",
                                      tensor.element_count())};
        }
        const std::byte* const p = tensor.data;
        switch (tensor.type) {
            case safetensors_dtype::f64:
                detail::decode_each<double>(p, out, [](double v) { return static_cast<float>(v); });
                return {};
            case safetensors_dtype::f32:
                detail::decode_each<float>(p, out, [](float v) { return v; });
                return {};
            case safetensors_dtype::f16:
                detail::decode_each<std::uint16_t>(p, out, [](std::uint16_t c) { return numfmt::decode<fp16>(c); });
                return {};
            case safetensors_dtype::bf16:
                detail::decode_each<std::uint16_t>(p, out, [](std::uint16_t c) { return numfmt::decode<bf16>(c); });
                return {};
            case safetensors_dtype::f8_e4m3:
                detail::decode_each<std::uint8_t>(p, out, [](std::uint8_t c) { return numfmt::decode<fp8_e4m3>(c); });
                return {};
            case safetensors_dtype::f8_e5m2:
                detail::decode_each<std::uint8_t>(p, out, [](std::uint8_t c) { return numfmt::decode<fp8_e5m2>(c); });
                return {};
            default:
                return {detail::text_line(subject(), ": dtype: got ", name_of(tensor.type),
                                          ", wanted one of F64 F32 F16 BF16 F8_E4M3 F8_E5M2")};
        }
    });
}

/// Writes `tensors` in the given order and `metadata` (left out when empty) to `path`, replacing what was there. The
/// data section starts at a multiple of 8 bytes; tensors follow each other without padding, as the format demands, so
/// order them by falling element size where alignment matters. The bytes go to `path` + ".part" first, which is then
/// renamed: tensors may lie in a mapping of the old file, and a failed call leaves the old file as it was.
/// Errors: a name that repeats, is "__metadata__" or is not UTF-8; dtype, shape and byte_count that disagree; a header
/// above safetensors_max_header; the system's own reason when writing fails.
inline io_status write_safetensors(const std::filesystem::path& path, std::span<const safetensor> tensors,
                                   const safetensors_metadata& metadata = {}) noexcept {
    return detail::without_exceptions([&]() -> io_status {
        const auto bad = [&](const auto&... parts) {
            return io_status{detail::text_line(detail::path_text(path), ": ", parts...)};
        };
        std::string header = "{";
        // JSON text of a string; throws on invalid UTF-8.
        const auto add_string = [&](const std::string& text) { header += nlohmann::json(text).dump(); };
        if (!metadata.empty()) {
            const char* separator = "\"__metadata__\":{";
            for (const auto& [key, value] : metadata) {
                header += std::exchange(separator, ",");
                try {
                    add_string(key);
                    header += ":";
                    add_string(value);
                } catch (const nlohmann::json::exception&) {
                    return bad("__metadata__ '", detail::printable(key, 120, true), "': not valid UTF-8");
                }
            }
            header += "}";
        }
        std::vector<std::string_view> names;
        std::uint64_t offset = 0;
        for (const safetensor& t : tensors) {
            if (t.name == "__metadata__") return bad("tensor '__metadata__': the name is reserved");
            if (header.size() > 1) header += ",";
            try {
                add_string(t.name);
            } catch (const nlohmann::json::exception&) {
                return bad("tensor '", detail::printable(t.name, 120, true), "': the name is not valid UTF-8");
            }
            names.push_back(t.name);
            const auto wanted = detail::shape_bytes(t.name, t.type, t.shape);
            if (!wanted) return bad(wanted.error);
            if (t.byte_count != wanted.value || (t.data == nullptr && wanted.value > 0)) {
                return bad(detail::tensor_text(t.name), ": data: got ", t.data == nullptr ? 0 : t.byte_count,
                           " bytes, wanted ", wanted.value);
            }
            const std::uint64_t begin = std::exchange(offset, offset + t.byte_count);
            const std::string shape = detail::shape_text(t.shape);
            header += detail::text_line(":{\"dtype\":\"", name_of(t.type), "\",\"shape\":", shape,
                                        ",\"data_offsets\":[", begin, ",", offset, "]}");
        }
        header += "}";
        header.append((8 - header.size() % 8) % 8, ' ');
        if (header.size() > safetensors_max_header) {
            return bad("header length: got ", header.size(), ", wanted at most ", safetensors_max_header);
        }
        std::sort(names.begin(), names.end());
        const auto twice = std::adjacent_find(names.begin(), names.end());
        if (twice != names.end()) return bad(detail::tensor_text(*twice), ": the name appears twice");

        std::filesystem::path partial = path;
        partial += ".part";
        errno = 0;
        std::ofstream file(partial, std::ios::binary | std::ios::trunc);
        if (!file) return {detail::os_error(partial, "cannot create", errno)};
        const auto put = [&](const void* data, std::size_t size) {
            file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
        };
        unsigned char length[8];
        for (unsigned i = 0; i < 8; ++i) {
            length[i] = static_cast<unsigned char>(std::uint64_t{header.size()} >> (8 * i) & 0xFFu);
        }
        put(length, sizeof length);
        put(header.data(), header.size());
        for (const safetensor& t : tensors) {
            if (t.byte_count > 0) put(t.data, t.byte_count);
        }
        file.close();
        std::error_code code;
        if (!file) {
            const int reason = errno;
            std::filesystem::remove(partial, code);
            return {detail::os_error(partial, "cannot write", reason)};
        }
        std::filesystem::rename(partial, path, code);
        if (code) {
            const int reason = code.value();
            std::filesystem::remove(partial, code);
            return {detail::os_error(path, "cannot replace", reason)};
        }
        return {};
    });
}

}  // namespace numfmt::io
