// SPDX-License-Identifier: MIT
// The comparison itself, and a check that it notices single wrong bits.
#include "oracle_compare.hpp"

#include <doctest/doctest.h>

#include <cstdio>

using namespace block_test;
using namespace block_oracle;

namespace {

constexpr std::uint8_t canary = 0xA5;
constexpr std::size_t guard = 64;

/// splitmix64 (Steele, Lea, Flood 2014).
struct random_source {
    std::uint64_t state;
    std::uint64_t next() {
        std::uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    std::uint32_t bits() { return static_cast<std::uint32_t>(next() >> 32); }
    int below(int n) { return static_cast<int>(bits() % static_cast<std::uint32_t>(n)); }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
};

enum class data_kind {
    bell,
    log_uniform,
    log_narrow,
    ties,
    integer_ties,
    huge,
    subnormal,
    outlier,
    top,
    any_bits,
    count
};

float make_value(data_kind kind, random_source& g, std::int64_t at) {
    const auto with_sign = [&](double v) { return static_cast<float>(g.below(2) == 0 ? v : -v); };
    const auto significand = [&] { return 1 + static_cast<double>(g.bits() >> 9) * 0x1p-23; };
    switch (kind) {
        case data_kind::bell:
            return static_cast<float>(g.uniform() + g.uniform() + g.uniform() - 1.5);
        case data_kind::log_uniform:
            return with_sign(std::ldexp(significand(), g.below(276) - 149));
        case data_kind::log_narrow:
            return with_sign(std::ldexp(significand(), g.below(24) - 20));
        // Multiples of 1/8 with amax 7: float scales become powers of two, and many quotients ties.
        case data_kind::ties:
            return at % 8 == 3 ? -7.0f : static_cast<float>(g.below(113) - 56) / 8;
        // Half integers over a range of 15: every second one a tie of int4, the end points among them.
        case data_kind::integer_ties:
            return at % 3 == 0 ? -3.5f : at % 3 == 1 ? 11.5f : static_cast<float>(g.below(31) - 7) / 2;
        case data_kind::huge:
            return with_sign(std::ldexp(significand(), 100 + g.below(28)));
        case data_kind::subnormal:
            return float_from_bits((g.bits() & 0x80000000u) | (g.bits() >> (8 + g.below(20))));
        case data_kind::outlier:
            return with_sign(at % 29 == 7 ? std::ldexp(significand(), g.below(80)) : significand() - 1);
        // Significands near the largest element's, where the scale rules part.
        case data_kind::top: {
            const double largest[] = {1.5, 1.75, 1.875, 1.9375, 2.0, 1.0};
            return with_sign(std::ldexp(largest[g.below(6)] + (g.below(3) - 1) * 0x1p-23, g.below(4) == 0 ? 3 : 0));
        }
        default:
            return float_from_bits(g.bits());
    }
}

/// Bytes with canaries around and between what the callee may write.
struct guarded {
    std::vector<std::uint8_t> bytes;
    explicit guarded(std::int64_t n) : bytes(static_cast<std::size_t>(n) + 2 * guard, canary) {}
    std::uint8_t* data() { return bytes.data() + guard; }
};

std::string first_difference(const char* what, const std::vector<std::uint8_t>& got,
                             const std::vector<std::uint8_t>& want) {
    for (std::size_t k = 0; k < got.size(); ++k) {
        if (got[k] == want[k]) continue;
        char text[120];
        std::snprintf(text, sizeof text, "%s: byte %lld is %02X, not %02X", what,
                      static_cast<long long>(k) - static_cast<long long>(guard), got[k], want[k]);
        return text;
    }
    return {};
}

void store(std::uint8_t* at, std::uint32_t value, int bytes) {
    for (int k = 0; k < bytes; ++k) at[k] = static_cast<std::uint8_t>(value >> (8 * k));
}

int source_bytes(source t) { return t == source::fp32 ? 4 : 2; }
std::uint32_t source_bits(source t, float v) {
    if (t == source::fp32) return float_bits(v);
    return encode(t == source::bf16 ? brain() : half(), static_cast<double>(v), rounding::nearest_even);
}
float source_value(source t, std::uint32_t bits) {
    if (t == source::fp32) return float_from_bits(bits);
    return static_cast<float>(decode(t == source::bf16 ? brain() : half(), bits));
}
bool source_is_nan(source t, std::uint32_t bits) {
    return t == source::fp32 ? (bits & 0x7FFFFFFFu) > 0x7F800000u
                             : (bits & 0x7FFFu) > (t == source::bf16 ? 0x7F80u : 0x7C00u);
}

struct trial {
    matrix_shape shape;
    data_kind kind;
    scale_layout layout;
    int padding;  // extra stride
    numfmt::quantize_options options;
};

std::string compare_one(const subject& s, const trial& t, random_source& g) {
    const scheme_facts& f = s.facts;
    const auto [rows, cols] = t.shape;
    const int element_bytes = source_bytes(s.type);

    // The source: padding between the rows holds NaN, which would show in every scale.
    const std::int64_t x_stride = cols + t.padding;
    std::vector<float> values;
    guarded x(rows * x_stride * element_bytes);
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < x_stride; ++c) {
            std::uint32_t bits = s.type == source::fp32 ? 0x7FC00000u : 0x7FFFu;
            if (c < cols) {
                bits = source_bits(s.type, make_value(t.kind, g, r * cols + c));
                if (t.kind == data_kind::any_bits && s.type != source::fp32) bits = g.bits() & 0xFFFFu;
                values.push_back(source_value(s.type, bits));
            }
            store(x.data() + (r * x_stride + c) * element_bytes, bits, element_bytes);
        }
    }
    const quantized want = block_oracle::quantize(f, values, rows, cols, s.r, t.options);

    // What every byte of the output must be.
    const std::int64_t code_bytes = row_bytes(cols, f.bits()), zero_bytes = row_bytes(want.scale_cols, 4);
    const std::int64_t padding = t.padding;
    raw_parts p{};
    p.shape = t.shape;
    p.layout = t.layout;
    p.code_stride = code_bytes + padding;
    p.zero_stride = zero_bytes + padding;
    std::int64_t scale_count = 0;
    switch (t.layout) {
        case scale_layout::row_major:
            p.scale_stride = want.scale_cols + padding;
            scale_count = want.scale_rows * p.scale_stride;
            break;
        case scale_layout::mn_major:
            p.scale_stride = want.scale_rows + padding;
            scale_count = want.scale_cols * p.scale_stride;
            break;
        case scale_layout::tiled_128x4:
            p.scale_stride = blocks(want.scale_cols, 4) + padding;
            scale_count = blocks(want.scale_rows, 128) * p.scale_stride * 512;
            break;
    }
    guarded codes(rows * p.code_stride), scales(scale_count * f.scale_bytes());
    guarded zeros(f.has_zeros() ? want.scale_rows * p.zero_stride : 0);
    guarded want_codes = codes, want_scales = scales, want_zeros = zeros;
    for (std::int64_t r = 0; r < rows; ++r) {
        std::uint8_t* const row = want_codes.data() + r * p.code_stride;
        std::fill(row, row + code_bytes, std::uint8_t{0});
        for (std::int64_t c = 0; c < cols; ++c)
            write_code(row, c, f.bits(), want.codes[static_cast<std::size_t>(r * cols + c)]);
    }
    for (std::int64_t i = 0; i < want.scale_rows; ++i) {
        std::uint8_t* const row = want_zeros.data() + i * p.zero_stride;
        if (f.has_zeros()) std::fill(row, row + zero_bytes, std::uint8_t{0});
        for (std::int64_t j = 0; j < want.scale_cols; ++j) {
            const std::size_t k = static_cast<std::size_t>(i * want.scale_cols + j);
            const std::int64_t at = scale_position(t.layout, p.scale_stride, i, j);
            store(want_scales.data() + at * f.scale_bytes(), want.scales[k], f.scale_bytes());
            if (f.has_zeros()) write_code(row, j, 4, want.zeros[k]);
        }
    }

    p.codes = codes.data();
    p.scales = scales.data();
    p.zeros = f.has_zeros() ? zeros.data() : nullptr;
    float tensor_scale = 1;
    p.tensor_scale = f.has_tensor_scale() ? &tensor_scale : nullptr;
    if (const status st = s.quantize(x.data(), x_stride, p, t.options); !st.ok())
        return std::string("quantize refused ") + st.argument;
    if (std::string d = first_difference("scales", scales.bytes, want_scales.bytes); !d.empty()) return d;
    if (float_bits(tensor_scale) != float_bits(want.tensor_scale)) return "the tensor's scale differs";
    if (std::string d = first_difference("zeros", zeros.bytes, want_zeros.bytes); !d.empty()) return d;
    if (std::string d = first_difference("codes", codes.bytes, want_codes.bytes); !d.empty()) return d;

    const std::vector<float> back = block_oracle::dequantize(f, want);
    guarded y(rows * x_stride * element_bytes), want_y = y;
    if (const status st = s.dequantize(p, y.data(), x_stride); !st.ok())
        return std::string("dequantize refused ") + st.argument;
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) {
            const std::size_t at = static_cast<std::size_t>((r * x_stride + c) * element_bytes);
            const std::uint32_t bits = source_bits(s.type, back[static_cast<std::size_t>(r * cols + c)]);
            store(want_y.data() + at, bits, element_bytes);
            std::uint32_t got = 0;
            for (int k = 0; k < element_bytes; ++k)
                got |= static_cast<std::uint32_t>(y.data()[at + static_cast<std::size_t>(k)]) << (8 * k);
            // NaN is compared as a class.
            if (source_is_nan(s.type, bits) && source_is_nan(s.type, got))
                store(want_y.data() + at, got, element_bytes);
        }
    }
    return first_difference("values", y.bytes, want_y.bytes);
}

}  // namespace

std::string block_test::compare_with_oracle(const subject& s) {
    std::vector<matrix_shape> shapes = {{0, 0}, {0, 7}, {130, 200}, {257, 129}};
    for (std::int64_t rows = 1; rows <= 5; ++rows)
        for (const std::int64_t cols : {0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 63, 64, 100, 127, 128, 129, 257, 300})
            shapes.push_back({rows, cols});
    const bool rules = s.facts.scale == scale_kind::power_of_two, ranges = s.facts.has_zeros(),
               symmetric = s.facts.is_symmetric();
    const bool orders = s.facts.has_tensor_scale();
    const int variants = rules ? 4 : symmetric ? 3 : ranges || orders ? 2 : 1;
    random_source g{0x5EEDu + static_cast<std::uint64_t>(s.r) * 16 + static_cast<std::uint64_t>(s.type)};
    for (int variant = 0; variant < variants; ++variant) {
        for (const matrix_shape shape : shapes) {
            const int draws = shape.rows > 100 ? 1 : variants == 1 ? 5 : 2;
            for (int n = 0; n < draws; ++n) {
                trial t{shape, static_cast<data_kind>(g.below(static_cast<int>(data_kind::count))), {}, 0, {}};
                t.layout = static_cast<scale_layout>(g.below(3));
                t.padding = g.below(2) * (1 + g.below(9));
                if (rules) t.options.scale_rule = static_cast<scale_rule>(variant);
                if (ranges) t.options.int4_range = static_cast<int4_range>(variant);
                if (symmetric) t.options.int4_symmetric_range = static_cast<numfmt::int4_symmetric_range>(variant);
                if (orders) t.options.nvfp4_order = static_cast<numfmt::nvfp4_order>(variant);
                // The orders of operations that other libraries use.
                t.options.division = static_cast<numfmt::scale_division>(g.below(2));
                t.options.amax_floor = g.below(4) == 0 ? 1e-4f : 0;
                t.options.element.drop_negative_zero = g.below(4) == 0;
                t.options.nonfinite = static_cast<nonfinite>(g.below(2));
                t.options.element.nan = static_cast<numfmt::nan_mode>(g.below(3));
                // Which of the two wins over Inf is not specified: do not mix them.
                if (t.options.nonfinite == nonfinite::propagate)
                    t.options.element.overflow = static_cast<numfmt::overflow>(g.below(4));
                t.options.seed = g.next();
                t.options.offset = g.below(2) == 0 ? g.next() : 0;
                if (const std::string d = compare_one(s, t, g); !d.empty()) {
                    char where[200];
                    std::snprintf(where, sizeof where,
                                  " (rounding %d, source %d, %lldx%lld, data %d, layout %d, padding %d, variant %d, "
                                  "nonfinite %d)",
                                  static_cast<int>(s.r), static_cast<int>(s.type), static_cast<long long>(shape.rows),
                                  static_cast<long long>(shape.cols), static_cast<int>(t.kind),
                                  static_cast<int>(t.layout), t.padding, variant,
                                  static_cast<int>(t.options.nonfinite));
                    return s.facts.name + ": " + d + where;
                }
            }
        }
    }
    return {};
}

namespace {

// A quantize that is right up to one bit: what compare_with_oracle must see.
template <int Fault>
status faulty_quantize(const void* x, std::int64_t stride, const raw_parts& p, const numfmt::quantize_options& o) {
    const status s = run_quantize<numfmt::mxfp4, rounding::nearest_even, float>(x, stride, p, o);
    if (p.shape.rows != 5 || p.shape.cols != 33) return s;
    auto* const codes = static_cast<std::uint8_t*>(p.codes);
    auto* const scales = static_cast<std::uint8_t*>(p.scales);
    if (Fault == 0) codes[16] ^= 0x10;                  // the unused high nibble of the last byte of row 0
    if (Fault == 1) codes[4 * p.code_stride + 17] = 1;  // one byte behind the last row
    if (Fault == 2) scales[scale_position(p.layout, p.scale_stride, 4, 1)] ^= 1;
    if (Fault == 3) codes[p.code_stride + 3] ^= 0x80;
    return s;
}
status faulty_dequantize(const raw_parts& p, void* y, std::int64_t stride) {
    const status s = run_dequantize<numfmt::mxfp4, float>(p, y, stride);
    if (p.shape.rows == 5 && p.shape.cols == 33) static_cast<std::uint8_t*>(y)[-1] = 0;
    return s;
}

TEST_CASE("oracle: the comparison notices a single wrong bit") {
    const auto good = make_subject<numfmt::mxfp4, rounding::nearest_even, float, source::fp32>();
    subject bad = good;
    bad.quantize = &faulty_quantize<0>;
    CHECK(compare_with_oracle(bad).find("mxfp4: codes: byte 16 ") == 0);
    bad.quantize = &faulty_quantize<1>;
    CHECK(compare_with_oracle(bad).find("mxfp4: codes: byte ") == 0);
    bad.quantize = &faulty_quantize<2>;
    CHECK(compare_with_oracle(bad).find("mxfp4: scales: byte ") == 0);
    bad.quantize = &faulty_quantize<3>;
    CHECK(compare_with_oracle(bad).find("mxfp4: codes: byte ") == 0);
    bad = good;
    bad.dequantize = &faulty_dequantize;
    CHECK(compare_with_oracle(bad).find("mxfp4: values: byte -1 ") == 0);
}

TEST_CASE("oracle: its own tables and roundings") {
    // OCP OFP8 1.0, Table 1, and the overflow ties 464 and 61440.
    CHECK(e4m3().values.back() == 448);
    CHECK(e5m2().values.back() == 57344);
    CHECK(e2m1().values == std::vector<double>{0, 0.5, 1, 1.5, 2, 3, 4, 6});
    CHECK(e2m3().values.back() == 7.5);
    CHECK(half().values.back() == 65504);
    constexpr numfmt::encode_options open{.overflow = numfmt::overflow::to_nonfinite};
    CHECK(encode(e4m3(), 464, rounding::nearest_even, open) == 0x7E);
    CHECK(encode(e4m3(), 464.0625, rounding::nearest_even, open) == 0x7F);
    CHECK(encode(e4m3(), -464.0625, rounding::nearest_even) == 0xFE);
    CHECK(encode(e5m2(), 61440, rounding::nearest_even, open) == 0x7C);
    CHECK(encode(e5m2(), 1e30, rounding::toward_zero, open) == 0x7B);
    CHECK(encode(e2m1(), 2.5, rounding::nearest_even) == 4);
    CHECK(encode(e2m1(), 2.5, rounding::nearest_away) == 5);
    CHECK(encode(e2m1(), -3.5, rounding::nearest_to_zero) == 0xD);
    CHECK(encode(e2m1(), 2.25, rounding::stochastic, {}, 0x3FFFFFFF) == 5);
    CHECK(encode(e2m1(), 2.25, rounding::stochastic, {}, 0x40000000) == 4);
    CHECK(philox_word(0, 0) == 0x6627E8D5);  // Random123's known answer for an all-zero counter and key
    CHECK(philox_word(0, 3) == 0x9B00DBD8);
}

}  // namespace
