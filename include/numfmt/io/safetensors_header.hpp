// SPDX-License-Identifier: MIT
// What a .safetensors header says: element types, tensor descriptions, and the checked parse of the JSON text.
// Format: github.com/huggingface/safetensors, README section "Format".
#pragma once

#include "file.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace numfmt::io {

/// The element types of the format. FP6 and FP4 elements are packed, so that bytes = elements * bits / 8.
enum class safetensors_dtype : std::uint8_t {
    f64,
    f32,
    f16,
    bf16,
    f8_e4m3,
    f8_e5m2,
    f8_e4m3fnuz,
    f8_e5m2fnuz,
    f8_e8m0,
    f6_e2m3,
    f6_e3m2,
    f4,
    i64,
    i32,
    i16,
    i8,
    u64,
    u32,
    u16,
    u8,
    boolean,
    c64
};

namespace detail {

struct safetensors_dtype_entry {
    std::string_view name;
    int bits;
};

// In the order of the enumeration. C64 is a pair of binary32.
inline constexpr safetensors_dtype_entry safetensors_dtypes[] = {
    {"F64", 64},        {"F32", 32},        {"F16", 16},    {"BF16", 16},   {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
    {"I64", 64},        {"I32", 32},        {"I16", 16},    {"I8", 8},      {"U64", 64},    {"U32", 32},
    {"U16", 16},        {"U8", 8},          {"BOOL", 8},    {"C64", 64}};

inline constexpr std::size_t safetensors_dtype_count = std::size(safetensors_dtypes);
static_assert(safetensors_dtype_count == static_cast<std::size_t>(safetensors_dtype::c64) + 1);

}  // namespace detail

/// The name in the file ("BF16"); "?" for a value outside the enumeration.
constexpr std::string_view name_of(safetensors_dtype type) noexcept {
    const auto i = static_cast<std::size_t>(type);
    return i < detail::safetensors_dtype_count ? detail::safetensors_dtypes[i].name : std::string_view("?");
}

/// Bits per element, 4 to 64; 0 for a value outside the enumeration.
constexpr int bits_of(safetensors_dtype type) noexcept {
    const auto i = static_cast<std::size_t>(type);
    return i < detail::safetensors_dtype_count ? detail::safetensors_dtypes[i].bits : 0;
}

/// Looks a dtype up by its name in the file (case matters). False and `out` untouched when there is none.
constexpr bool parse_dtype(std::string_view name, safetensors_dtype& out) noexcept {
    for (std::size_t i = 0; i < detail::safetensors_dtype_count; ++i) {
        if (detail::safetensors_dtypes[i].name != name) continue;
        out = static_cast<safetensors_dtype>(i);
        return true;
    }
    return false;
}

/// One tensor: row-major, little-endian elements that somebody else owns (the file, or the caller of the writer).
struct safetensor {
    std::string name;  ///< UTF-8, may be empty; not "__metadata__"
    safetensors_dtype type = safetensors_dtype::u8;
    std::vector<std::int64_t> shape;  ///< elements per dimension, each >= 0; empty for a scalar
    const std::byte* data = nullptr;  ///< not necessarily aligned for the element type
    std::size_t byte_count = 0;       ///< elements * bits / 8

    /// Product of the shape: 1 for a scalar, 0 when a dimension is 0. Meaningful for a tensor that came from a file.
    std::int64_t element_count() const noexcept {
        std::int64_t n = 1;
        for (const std::int64_t d : shape) n = n == 0 || d == 0 ? 0 : n * d;
        return n;
    }
};

using safetensors_metadata = std::map<std::string, std::string, std::less<>>;

/// The format's own bound on the JSON header, in bytes.
inline constexpr std::uint64_t safetensors_max_header = 100'000'000;
/// This reader's bound on the number of dimensions (the one of NumPy and PyTorch); keeps shapes small in memory.
inline constexpr std::size_t safetensors_max_rank = 64;

namespace detail {

inline std::string shape_text(std::span<const std::int64_t> shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

inline std::string tensor_text(std::string_view name) { return "tensor " + quoted_name(name); }

// Byte length of a tensor, or the error. The product of the non-zero dimensions has to fit in 63 bits even when a
// dimension is 0, so that strides computed from the shape cannot overflow either.
inline io_result<std::uint64_t> shape_bytes(std::string_view name, safetensors_dtype type,
                                            std::span<const std::int64_t> shape) {
    constexpr std::int64_t limit = std::numeric_limits<std::int64_t>::max();
    const auto bad = [&](const auto&... why) {
        return io_result<std::uint64_t>{
            0, text_line(tensor_text(name), ": ", name_of(type), " shape ", shape_text(shape), ": ", why...)};
    };
    const int bits = bits_of(type);
    if (bits == 0) return {0, text_line(tensor_text(name), ": dtype ", static_cast<int>(type), " is not a known one")};
    if (shape.size() > safetensors_max_rank) {
        return {0, text_line(tensor_text(name), ": shape has more than ", safetensors_max_rank, " dimensions")};
    }
    std::int64_t product = 1;
    bool empty = false;
    for (const std::int64_t d : shape) {
        if (d < 0) return bad("a dimension is negative");
        if (d == 0) {
            empty = true;
        } else if (product > limit / d) {
            return bad("the element count overflows 63 bits");
        } else {
            product *= d;
        }
    }
    // F4 packs two neighbours of a row into a byte: an odd row has no defined packing (fastsafetensors #79).
    if (type == safetensors_dtype::f4 && !shape.empty() && shape.back() % 2 != 0) {
        return bad("the last dimension is odd, wanted an even one");
    }
    const std::int64_t elements = empty ? 0 : product;
    if ((elements % 8) * bits % 8 != 0) return bad("got a bit count that is not a whole number of bytes");
    if (elements / 8 > (limit - 64) / bits) return bad("the byte count overflows 63 bits");
    return {static_cast<std::uint64_t>(elements / 8 * bits + (elements % 8) * bits / 8), {}};
}

// Receives the events of the JSON parser, which works without recursion, and accepts exactly the shape of a safetensors
// header. No document tree is built: nesting costs one bit per level in the parser and nothing here.
class safetensors_header {
  public:
    struct entry {
        safetensor tensor;
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::size_t order = 0;  // position in the header
    };

    explicit safetensors_header(std::uint64_t data_size) : data_size_(data_size) {}

    std::vector<entry> entries;
    safetensors_metadata metadata;
    std::string error;

    bool null() {
        if (where_ == place::metadata) return go(place::root);  // written by serializers of an absent optional
        return scalar("null");
    }
    bool boolean(bool value) { return scalar(value ? "true" : "false"); }
    bool number_integer(std::int64_t value) {  // what has a minus sign
        return scalar(value == 0 ? std::string("-0") : std::to_string(value));
    }
    bool number_float(double, const std::string& digits) { return scalar(printable(digits, 40, true)); }
    bool binary(const std::vector<std::uint8_t>&) { return scalar("binary data"); }

    bool number_unsigned(std::uint64_t value) {
        if (where_ == place::dimension && value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
            auto& shape = current_.tensor.shape;
            if (shape.size() == safetensors_max_rank) {
                return fail(tensor(), ": shape: got more than ", safetensors_max_rank, " dimensions");
            }
            shape.push_back(static_cast<std::int64_t>(value));
            return true;
        }
        if (where_ == place::offset) {
            if (offsets_ == 2) return fail(tensor(), ": data_offsets: got more than 2 numbers, wanted [begin, end]");
            (offsets_ == 0 ? current_.begin : current_.end) = value;
            ++offsets_;
            return true;
        }
        return scalar(std::to_string(value));
    }

    bool string(std::string& value) {
        if (where_ == place::dtype) {
            if (!parse_dtype(value, current_.tensor.type)) {
                std::string known;
                for (const auto& d : safetensors_dtypes) known.append(" ").append(d.name);
                return fail(tensor(), ": dtype: got ", quoted_name(value), ", wanted one of", known);
            }
            return go(place::tensor);
        }
        if (where_ == place::metadata_value) {
            if (!metadata.emplace(key_, std::move(value)).second) {
                return fail("__metadata__ ", quoted_name(key_), ": the key appears twice");
            }
            return go(place::metadata_key);
        }
        return scalar("a string");
    }

    bool start_object(std::size_t) {
        if (where_ == place::ignored) return deeper();
        if (where_ == place::start) return go(place::root);
        if (where_ == place::metadata) return go(place::metadata_key);
        if (where_ != place::entry) return unexpected("an object");
        return go(place::tensor);
    }

    bool key(std::string& name) {
        if (where_ == place::root) {
            if (name == "__metadata__") {
                if (std::exchange(metadata_seen_, true)) return fail("__metadata__: the key appears twice");
                return go(place::metadata);
            }
            current_ = {};
            current_.tensor.name = std::move(name);
            seen_ = 0;
            offsets_ = 0;
            return go(place::entry);
        }
        if (where_ == place::ignored) return true;
        key_ = std::move(name);
        if (where_ == place::metadata_key) return go(place::metadata_value);
        for (unsigned i = 0; i < 3; ++i) {
            if (key_ != fields[i].name) continue;
            if ((seen_ >> i & 1u) != 0) return fail(tensor(), ": ", key_, ": the key appears twice");
            seen_ |= 1u << i;
            return go(fields[i].next);
        }
        depth_ = 0;
        return go(place::ignored);  // as the reference implementation does: room for extensions
    }

    bool end_object() {
        if (where_ == place::ignored) return shallower();
        if (where_ == place::root) return go(place::finished);
        if (where_ == place::metadata_key) return go(place::root);
        for (unsigned i = 0; i < 3; ++i) {
            if ((seen_ >> i & 1u) == 0) return fail(tensor(), ": ", fields[i].name, " is missing");
        }
        const auto wanted = shape_bytes(current_.tensor.name, current_.tensor.type, current_.tensor.shape);
        if (!wanted) return fail(wanted.error);
        const auto range = text_line(tensor(), ": data_offsets: got [", current_.begin, ", ", current_.end, "], ");
        if (current_.begin > current_.end) return fail(range, "wanted begin <= end");
        if (current_.end > data_size_) return fail(range, "wanted an end within the ", data_size_, " bytes of data");
        if (current_.end - current_.begin != wanted.value) {
            return fail(range, "wanted ", wanted.value, " bytes for ", name_of(current_.tensor.type), " ",
                        shape_text(current_.tensor.shape));
        }
        current_.order = entries.size();
        entries.push_back(std::move(current_));
        return go(place::root);
    }

    bool start_array(std::size_t) {
        if (where_ == place::ignored) return deeper();
        if (where_ == place::shape) return go(place::dimension);
        if (where_ == place::offsets) return go(place::offset);
        return unexpected("an array");
    }

    bool end_array() {
        if (where_ == place::ignored) return shallower();
        if (where_ == place::offset && offsets_ != 2) {
            return fail(tensor(), ": data_offsets: got ", offsets_, " numbers, wanted [begin, end]");
        }
        return go(place::tensor);
    }

    template <class Exception> bool parse_error(std::size_t position, const std::string&, const Exception& e) {
        std::string_view why = e.what();  // "[json.exception.parse_error.101] parse error at ..."
        if (const auto prefix = why.find("] "); prefix != why.npos) why.remove_prefix(prefix + 2);
        return fail("header: not valid JSON near its byte ", position, ": ", printable(why, 300, true));
    }

  private:
    enum class place : std::uint8_t {
        start,
        root,
        entry,
        tensor,
        dtype,
        shape,
        dimension,
        offsets,
        offset,
        metadata,
        metadata_key,
        metadata_value,
        ignored,
        finished
    };
    struct field {
        std::string_view name;
        place next;
    };
    static constexpr field fields[3] = {
        {"dtype", place::dtype}, {"shape", place::shape}, {"data_offsets", place::offsets}};
    static constexpr int max_depth = 64;

    std::string tensor() const { return tensor_text(current_.tensor.name); }

    bool go(place next) {
        where_ = next;
        return true;
    }
    template <class... Parts> bool fail(const Parts&... parts) {
        error = text_line(parts...);
        return false;
    }
    bool scalar(std::string_view got) {
        if (where_ != place::ignored) return unexpected(got);
        return depth_ > 0 || go(place::tensor);
    }
    bool deeper() {
        if (++depth_ <= max_depth) return true;
        return fail(tensor(), ": key ", quoted_name(key_), ": nested deeper than ", max_depth, " levels");
    }
    bool shallower() { return --depth_ > 0 || go(place::tensor); }

    bool unexpected(std::string_view got) {
        const auto bad = [&](const std::string& subject, const char* wanted) {
            return fail(subject, ": got ", got, ", wanted ", wanted);
        };
        switch (where_) {
            case place::entry:
                return bad(tensor(), "an object with dtype, shape and data_offsets");
            case place::dtype:
                return bad(tensor() + ": dtype", "a string");
            case place::shape:
                return bad(tensor() + ": shape", "an array of integers");
            case place::dimension:
                return bad(tensor() + ": shape", "integers from 0 to 2^63 - 1");
            case place::offsets:
            case place::offset:
                return bad(tensor() + ": data_offsets", "an array of 2 integers from 0 to 2^64 - 1");
            case place::metadata:
                return bad("__metadata__", "an object of strings");
            case place::metadata_value:
                return bad("__metadata__ " + quoted_name(key_), "a string");
            default:
                return bad("header", "an object of tensors");
        }
    }

    std::uint64_t data_size_;
    entry current_;
    std::string key_;
    place where_ = place::start;
    unsigned seen_ = 0;
    int offsets_ = 0;
    int depth_ = 0;
    bool metadata_seen_ = false;
};

}  // namespace detail

}  // namespace numfmt::io
