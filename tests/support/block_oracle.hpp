// SPDX-License-Identifier: MIT
// A second quantizer to hold the library against. It is written from the specifications with doubles, search in a table
// of decoded values and one bit at a time; of the library it uses only the names of the policies and no function.
// Formats and schemes are what tests/golden says they are.
#pragma once

#include <numfmt/block/quantize.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "format_facts.hpp"

namespace block_oracle {

using numfmt::int4_range;
using numfmt::nonfinite;
using numfmt::rounding;
using numfmt::scale_rule;

/// The magnitudes of a float format in increasing order: the index is the magnitude code.
struct float_table {
    std::vector<double> values;
    double beyond = 0;  // what would follow the largest value if the exponent went on
    std::uint32_t sign = 0;
    std::uint32_t magnitude_mask = 0;
    std::uint32_t nan = 0;        // canonical; the largest magnitude where there is no NaN
    std::uint32_t quiet_nan = 0;  // under keep_sign
    std::uint32_t nonfinite = 0;  // what overflow::to_nonfinite gives
    bool has_nan = true;
    bool has_negative_zero = true;  // otherwise its code is the NaN
    bool saturates_by_default = true;
    int emax = 0, mantissa_bits = 0;

    std::uint32_t largest() const { return static_cast<std::uint32_t>(values.size() - 1); }
};

/// From widths, bias and special codes.
inline float_table make_table(const numfmt_test::facts& f) {
    const auto value = [&](std::uint32_t code) {
        const auto e = static_cast<int>(code >> f.mantissa_bits);
        const auto m = static_cast<int>(code & ((1u << f.mantissa_bits) - 1));
        if (f.kind == numfmt_test::shape::power_of_two) return std::ldexp(1.0, e - f.bias);
        if (e == 0) return std::ldexp(m, 1 - f.bias - f.mantissa_bits);
        return std::ldexp((1 << f.mantissa_bits) + m, e - f.bias - f.mantissa_bits);
    };
    float_table t;
    for (std::uint32_t c = 0; c <= f.largest; ++c) t.values.push_back(value(c));
    t.beyond = value(f.largest + 1);
    t.magnitude_mask = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
    t.sign = f.sign_bits != 0 ? t.magnitude_mask + 1 : 0;
    t.nan = f.canonical_nan;
    t.quiet_nan = f.quiet_nan;
    t.nonfinite = f.infinity >= 0 ? static_cast<std::uint32_t>(f.infinity) : f.canonical_nan;
    t.has_nan = f.kind != numfmt_test::shape::all_finite;
    t.has_negative_zero = f.kind != numfmt_test::shape::negative_zero_is_nan;
    t.saturates_by_default = f.saturates;
    t.mantissa_bits = f.mantissa_bits;
    return t;
}

/// The table of a format by its name, read once from tests/golden/formats. Not for several threads.
inline const float_table& table_of(const std::string& name) {
    static std::map<std::string, float_table> tables;
    auto at = tables.find(name);
    if (at == tables.end()) {
        const numfmt_test::golden_format golden(name);
        at = tables.emplace(name, make_table(golden.facts)).first;
        at->second.emax = golden.landmarks.largest_exponent;
    }
    return at->second;
}
inline const float_table& e4m3() {
    static const float_table& t = table_of("fp8_e4m3");
    return t;
}
inline const float_table& e5m2() {
    static const float_table& t = table_of("fp8_e5m2");
    return t;
}
inline const float_table& e2m1() {
    static const float_table& t = table_of("fp4_e2m1");
    return t;
}
inline const float_table& e2m3() {
    static const float_table& t = table_of("fp6_e2m3");
    return t;
}
inline const float_table& half() {
    static const float_table& t = table_of("fp16");
    return t;
}
inline const float_table& brain() {
    static const float_table& t = table_of("bf16");
    return t;
}

/// Philox4x32-10 as in Salmon et al., SC11: word index & 3 of counter index >> 2 under the 64-bit key `seed`.
inline std::uint32_t philox_word(std::uint64_t seed, std::uint64_t index) {
    std::uint32_t c[4] = {static_cast<std::uint32_t>(index >> 2), static_cast<std::uint32_t>(index >> 34), 0, 0};
    std::uint32_t k[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2];
        const std::uint32_t next[4] = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
                                       static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1],
                                       static_cast<std::uint32_t>(a)};
        std::memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    return c[index % 4];
}

/// Whether a value that lies strictly between two neighbours goes to the upper one; `fraction` in (0, 1) is exact.
inline bool goes_up(double fraction, bool lower_is_odd, rounding r, std::uint32_t draw) {
    switch (r) {
        case rounding::nearest_even:
            return fraction > 0.5 || (fraction == 0.5 && lower_is_odd);
        case rounding::nearest_away:
            return fraction >= 0.5;
        case rounding::nearest_to_zero:
            return fraction > 0.5;
        case rounding::stochastic:
            return static_cast<double>(draw) < std::floor(std::ldexp(fraction, 32));
        default:
            return false;
    }
}

/// The code of v, which a double holds exactly.
inline std::uint32_t encode(const float_table& t, double v, rounding r, numfmt::encode_options o = {},
                            std::uint32_t draw = 0) {
    using numfmt::overflow;
    const std::uint32_t sign = std::signbit(v) ? t.sign : 0;
    if (std::isnan(v)) {
        if (o.nan == numfmt::nan_mode::canonical) return t.nan;
        return (o.nan == numfmt::nan_mode::keep_sign ? t.quiet_nan : t.nan) | sign;
    }
    const bool by_format = o.overflow == overflow::by_format;
    const bool saturates = o.overflow == overflow::saturate || (by_format && t.saturates_by_default);
    const std::uint32_t infinite = (saturates ? t.largest() : t.nonfinite) | sign;
    const std::uint32_t too_large =
        (saturates || o.overflow == overflow::saturate_finite ? t.largest() : t.nonfinite) | sign;
    const double a = std::fabs(v);
    if (std::isinf(a)) return infinite;
    std::size_t low = 0, high = t.values.size();  // values[low] <= a < values[high]
    if (a >= t.beyond) return r == rounding::toward_zero ? t.largest() | sign : too_large;
    while (high - low > 1) {
        const std::size_t middle = (low + high) / 2;
        (t.values[middle] <= a ? low : high) = middle;
    }
    const double upper = high < t.values.size() ? t.values[high] : t.beyond;
    const double fraction = (a - t.values[low]) / (upper - t.values[low]);  // the divisor is a power of two
    const bool up = fraction > 0 && goes_up(fraction, low % 2 == 1, r, draw);
    const std::size_t code = up ? high : low;
    if (code == t.values.size()) return too_large;
    return code == 0 && (o.drop_negative_zero || !t.has_negative_zero) ? 0 : static_cast<std::uint32_t>(code) | sign;
}

/// NaN, +-Inf or the value of a code.
inline double decode(const float_table& t, std::uint32_t code) {
    const std::uint32_t magnitude = code & t.magnitude_mask;
    double v = 0;
    if (!t.has_negative_zero && (code & (t.sign | t.magnitude_mask)) == t.sign)
        v = std::nan("");
    else if (magnitude <= t.largest())
        v = t.values[magnitude];
    else
        v = magnitude == t.nonfinite && t.nonfinite != t.nan ? HUGE_VAL : std::nan("");
    return (code & t.sign) != 0 ? -v : v;
}

/// v, at most 2^52 in magnitude or infinite, rounded to an integer; NaN gives 0.
inline double round_integer(double v, rounding r, std::uint32_t draw = 0) {
    if (std::isnan(v)) return 0;
    if (std::isinf(v)) return v;
    const double a = std::fabs(v), low = std::floor(a);
    const bool up = a > low && goes_up(a - low, std::fmod(low, 2) == 1, r, draw);
    return std::copysign(up ? low + 1 : low, v);
}

/// How a scale is chosen and stored: a float, a 16-bit float, a power of two, or one per block and one per tensor.
enum class scale_kind { fp32, narrow, power_of_two, two_level };
inline constexpr std::int64_t all = INT64_MAX;

/// A row of "special blocks": what becomes of a block with NaN, Inf, zeros or subnormals (tests/golden/README.md).
struct special_row {
    std::string block, nonfinite, scale, zero, codes;
};
/// The SQNR in dB of data with standard deviation 1; the rule is "-" where the scales are no powers of two.
struct sqnr_row {
    std::string rule;
    double gaussian, laplace;
};

/// What tests/golden/schemes says about a scheme.
struct scheme_facts {
    std::string name, source, element_name, scale_name;
    const float_table* elements = nullptr;  // null for integers:
    int integer_bits = 0, integer_fraction_bits = 0, lowest_code = 0, highest_code = 0;
    scale_kind scale = scale_kind::fp32;
    const float_table* scales = nullptr;  // null for fp32
    std::int64_t block_rows = 1, block_cols = 1;
    bool stored_zeros = false;
    int fixed_zero = 0;
    double bits_per_weight = 0;  // 0: not given
    std::vector<special_row> special;
    std::vector<sqnr_row> sqnr;
    bool has_sqnr = true;  // false: the file says that there are no figures

    int bits() const {
        if (elements == nullptr) return integer_bits;
        int n = 0;
        for (std::uint32_t codes = elements->sign | elements->magnitude_mask; codes != 0; codes >>= 1) ++n;
        return n;
    }
    int scale_bytes() const {
        if (scale == scale_kind::fp32) return 4;
        return scales->magnitude_mask > 0xFF ? 2 : 1;
    }
    bool has_zeros() const { return stored_zeros; }
    bool is_symmetric() const { return fixed_zero != 0; }
    bool is_int4() const { return has_zeros() || is_symmetric(); }
    bool has_tensor_scale() const { return scale == scale_kind::two_level; }
    const float_table& table() const { return *elements; }
    double largest() const {
        return elements == nullptr ? std::ldexp(highest_code, -integer_fraction_bits) : elements->values.back();
    }
    int emax() const {
        if (elements != nullptr) return elements->emax;
        int e = 0;
        std::frexp(largest(), &e);
        return e - 1;
    }
    int mantissa_bits() const { return elements == nullptr ? integer_fraction_bits : elements->mantissa_bits; }
};

inline scheme_facts read_scheme(const std::string& name) {
    const numfmt_test::golden_file file = numfmt_test::read_golden_file("schemes", name);
    file.expect_keys({"source", "element", "integer_bits", "integer_fraction_bits", "integer_codes", "scale", "block",
                      "zero_point", "tensor_scale", "bits_per_weight", "special", "sqnr"});
    scheme_facts f;
    f.name = name;
    f.source = file.text("source");
    f.element_name = file.text("element");
    if (file.has("integer_bits")) {
        f.integer_bits = file.integer("integer_bits");
        f.integer_fraction_bits = file.integer("integer_fraction_bits");
        const std::vector<std::string> codes = file.words("integer_codes");
        if (codes.size() != 2) file.fail("needs the lowest and the highest code in 'integer_codes'");
        f.lowest_code = std::stoi(codes[0]);
        f.highest_code = std::stoi(codes[1]);
    } else {
        f.elements = &table_of(f.element_name);
    }
    f.scale_name = file.text("scale");
    if (f.scale_name != "fp32") {
        f.scales = &table_of(f.scale_name);
        f.scale = f.scales->mantissa_bits == 0 ? scale_kind::power_of_two : scale_kind::narrow;
    }
    if (file.flag("tensor_scale")) f.scale = scale_kind::two_level;
    const std::vector<std::string> block = file.words("block");
    if (block.size() != 2) file.fail("needs rows and columns, or 'all', in 'block'");
    f.block_rows = block[0] == "all" ? all : std::stoll(block[0]);
    f.block_cols = block[1] == "all" ? all : std::stoll(block[1]);
    const std::string& zero = file.text("zero_point");
    f.stored_zeros = zero == "stored";
    if (!f.stored_zeros && zero != "none") f.fixed_zero = file.integer("zero_point");
    if (file.has("bits_per_weight")) f.bits_per_weight = file.number("bits_per_weight");
    for (const std::string& line : file.all("special")) {
        const std::vector<std::string> words = numfmt_test::golden_file::split(line);
        if (words.size() < 5)
            file.fail("needs block, nonfinite, scale, zero point and codes in 'special " + line + "'");
        special_row row{words[0], words[1], words[2], words[3], words[4]};
        for (std::size_t k = 5; k < words.size(); ++k) row.codes += ' ' + words[k];
        f.special.push_back(row);
    }
    for (const std::string& line : file.all("sqnr")) {
        const std::vector<std::string> words = numfmt_test::golden_file::split(line);
        f.has_sqnr = f.has_sqnr && words[0] != "none";
        if (!f.has_sqnr) continue;
        if (words.size() != 3) file.fail("needs a rule and two numbers in 'sqnr " + line + "'");
        f.sqnr.push_back({words[0], std::stod(words[1]), std::stod(words[2])});
    }
    return f;
}

/// The facts of the scheme with this name, read once. Not for several threads.
inline const scheme_facts& facts_of(const std::string& name) {
    static std::map<std::string, scheme_facts> known;
    auto at = known.find(name);
    if (at == known.end()) at = known.emplace(name, read_scheme(name)).first;
    return at->second;
}

/// The E8M0 code of a block's scale, with exact comparisons of doubles.
inline int e8m0_scale(const scheme_facts& f, double amax, scale_rule rule) {
    if (amax == 0) return 0;
    int e = 0;
    const double fraction = std::frexp(amax, &e);  // amax = fraction * 2^e, 0.5 <= fraction < 1
    int exponent = 0;
    switch (rule) {
        case scale_rule::floor:
            exponent = e - 1 - f.emax();
            break;
        case scale_rule::ceil:
            exponent = (fraction == 0.5 ? e - 1 : e) - f.emax();
            break;
        case scale_rule::round_up: {
            const double largest = f.largest();
            exponent = e - 2 - f.emax();
            while (std::ldexp(largest, exponent) < amax) ++exponent;
            break;
        }
        case scale_rule::even: {
            // Half up at the element's last mantissa bit, then the exponent.
            const double ulps = std::ldexp(fraction, f.mantissa_bits() + 1);
            int carried = 0;
            std::frexp(std::floor(ulps + 0.5), &carried);
            exponent = e + carried - (f.mantissa_bits() + 1) - 1 - f.emax();
            break;
        }
    }
    const int code = exponent + 127;
    return code < 0 ? 0 : code > 254 ? 254 : code;
}

/// One correctly rounded binary32 operation of floats, whose result the double holds to at least 53 bits.
inline double f32(double v) { return static_cast<double>(static_cast<float>(v)); }

inline std::uint32_t float_bits(float v) {
    std::uint32_t b = 0;
    std::memcpy(&b, &v, sizeof b);
    return b;
}
inline float float_from_bits(std::uint32_t b) {
    float v = 0;
    std::memcpy(&v, &b, sizeof v);
    return v;
}

/// Bits of a float scale of value v in its storage type: at least 2^-126, never zero, saturating.
inline std::uint32_t store_scale(const scheme_facts& f, double v) {
    v = std::fmax(v, std::ldexp(1.0, -126));
    if (f.scale == scale_kind::fp32) return float_bits(static_cast<float>(v));
    const std::uint32_t code = encode(*f.scales, v, rounding::nearest_even, {.overflow = numfmt::overflow::saturate});
    return code == 0 ? 1 : code;
}
/// The value of a stored scale, NaN included.
inline double scale_value(const scheme_facts& f, std::uint32_t bits) {
    return f.scale == scale_kind::fp32 ? static_cast<double>(float_from_bits(bits)) : decode(*f.scales, bits);
}
inline std::uint32_t nan_scale(const scheme_facts& f) {
    return f.scale == scale_kind::fp32 ? 0x7FC00000 : f.scales->nan;
}

/// A quantized tensor, nothing packed.
struct quantized {
    std::int64_t rows = 0, cols = 0, scale_rows = 0, scale_cols = 0;
    std::vector<std::uint8_t> codes;    // rows x cols
    std::vector<std::uint32_t> scales;  // scale_rows x scale_cols, the stored bits
    std::vector<std::uint8_t> zeros;    // as scales
    float tensor_scale = 1;
};

inline std::int64_t blocks(std::int64_t n, std::int64_t block) {
    std::int64_t count = 0;
    while (n > 0) {
        ++count;
        n = block == all ? 0 : n - block;
    }
    return count;
}

/// Calls f(row, column) for the elements of block (i, j).
template <class F> void for_block(const scheme_facts& s, const quantized& q, std::int64_t i, std::int64_t j, F&& f) {
    const std::int64_t r1 = s.block_rows >= q.rows ? q.rows : std::min(q.rows, (i + 1) * s.block_rows);
    const std::int64_t c1 = s.block_cols >= q.cols ? q.cols : std::min(q.cols, (j + 1) * s.block_cols);
    for (std::int64_t r = i == 0 ? 0 : i * s.block_rows; r < r1; ++r)
        for (std::int64_t c = j == 0 ? 0 : j * s.block_cols; c < c1; ++c) f(r, c);
}

/// The scale of a symmetric int4 group: the three rules that torchao and GPTQ use.
inline double symmetric_step(double low, double high, double amax, const numfmt::quantize_options& o) {
    const double floor = static_cast<double>(o.amax_floor), a = std::fmax(amax, floor);
    switch (o.int4_symmetric_range) {
        case numfmt::int4_symmetric_range::within_7:
            return f32(a / 7);
        case numfmt::int4_symmetric_range::full_range:
            return f32(a / 7.5);
        default:
            return std::fmax(std::fmax(f32(-low / 8), f32(high / 7)), f32(floor / 7));
    }
}

/// x is rows x cols, tight.
inline quantized quantize(const scheme_facts& s, const std::vector<float>& x, std::int64_t rows, std::int64_t cols,
                          rounding r, const numfmt::quantize_options& o) {
    quantized q;
    q.rows = rows;
    q.cols = cols;
    q.scale_rows = blocks(rows, s.block_rows);
    q.scale_cols = blocks(cols, s.block_cols);
    q.codes.resize(static_cast<std::size_t>(rows * cols));
    q.scales.resize(static_cast<std::size_t>(q.scale_rows * q.scale_cols));
    q.zeros.resize(q.scales.size());
    const bool torchao = o.nvfp4_order == numfmt::nvfp4_order::torchao;
    constexpr double flt_max = 3.4028234663852886e38;
    double inverse = 1;  // of the tensor's scale
    if (s.has_tensor_scale()) {
        double amax = 0;
        for (const float v : x) amax = std::isfinite(v) ? std::fmax(amax, std::fabs(static_cast<double>(v))) : amax;
        if (amax > 0 && torchao) {
            q.tensor_scale = static_cast<float>(std::fmax(f32(amax / 2688), std::ldexp(1.0, -126)));
            inverse = f32(1 / static_cast<double>(q.tensor_scale));
        } else if (amax > 0) {
            inverse = std::fmin(f32(2688 / amax), flt_max);
            q.tensor_scale = static_cast<float>(1 / inverse);
        }
    }
    for (std::int64_t i = 0; i < q.scale_rows; ++i) {
        for (std::int64_t j = 0; j < q.scale_cols; ++j) {
            double low = HUGE_VAL, high = -HUGE_VAL;
            bool poisoned = false;
            for_block(s, q, i, j, [&](std::int64_t row, std::int64_t col) {
                const double v = static_cast<double>(x[static_cast<std::size_t>(row * cols + col)]);
                if (!std::isfinite(v)) {
                    poisoned = true;
                    return;
                }
                low = std::fmin(low, v);
                high = std::fmax(high, v);
            });
            if (low > high) low = high = 0;
            const std::size_t k = static_cast<std::size_t>(i * q.scale_cols + j);
            if (poisoned && o.nonfinite == nonfinite::propagate) {
                q.scales[k] = nan_scale(s);  // the codes and the zero point stay 0
                continue;
            }
            const double amax = std::fmax(std::fabs(low), std::fabs(high));
            const double bounded = std::fmax(amax, static_cast<double>(o.amax_floor));
            double scale = 0, zero = s.fixed_zero, factor = 0;
            if (s.is_int4()) {
                double step = 0;
                if (s.is_symmetric()) {
                    step = symmetric_step(low, high, amax, o);
                } else {
                    if (o.int4_range == int4_range::include_zero) {
                        low = std::fmin(low, 0.0);
                        high = std::fmax(high, 0.0);
                    }
                    step = std::fmax(f32(high - low), static_cast<double>(o.amax_floor));
                    step = std::isinf(step) ? f32(f32(high / 15) - f32(low / 15)) : f32(step / 15);
                }
                if (amax == 0 && o.amax_floor == 0) step = f32(static_cast<double>(1e-5f) / 15);
                q.scales[k] = store_scale(s, step);
                scale = scale_value(s, q.scales[k]);
                if (s.has_zeros()) {
                    zero = -round_integer(f32(low / scale), rounding::nearest_even);
                    zero = std::fmin(std::fmax(zero, 0), 15);
                    q.zeros[k] = static_cast<std::uint8_t>(zero);
                }
            } else if (s.scale == scale_kind::power_of_two) {
                q.scales[k] = static_cast<std::uint32_t>(e8m0_scale(s, bounded, o.scale_rule));
                scale = scale_value(s, q.scales[k]);
            } else if (s.has_tensor_scale()) {
                const double g = static_cast<double>(q.tensor_scale);
                const double t = torchao ? std::fmin(std::fmax(f32(f32(amax / 6) / g), 0.015625), 448.0)
                                         : f32(amax * f32(inverse * f32(1.0 / 6)));
                q.scales[k] = encode(*s.scales, t, rounding::nearest_even, {.overflow = numfmt::overflow::saturate});
                if (poisoned && q.scales[k] == 0) q.scales[k] = 1;  // so that a saturated Inf is not zero
                const double block = scale_value(s, q.scales[k]);
                factor = torchao ? f32(inverse / block) : std::fmin(f32(1 / f32(block * g)), flt_max);
            } else {
                q.scales[k] = store_scale(s, f32(bounded / s.largest()));
                scale = scale_value(s, q.scales[k]);
                factor = f32(1 / scale);
            }
            for_block(s, q, i, j, [&](std::int64_t row, std::int64_t col) {
                const std::size_t at = static_cast<std::size_t>(row * cols + col);
                const double v = static_cast<double>(x[at]);
                const std::uint32_t draw =
                    r == rounding::stochastic ? philox_word(o.seed, o.offset + static_cast<std::uint64_t>(at)) : 0;
                if (s.is_int4()) {
                    const double code = round_integer(f32(v / scale), r, draw) + zero;
                    q.codes[at] = static_cast<std::uint8_t>(std::fmin(std::fmax(code, 0), 15));
                } else if (s.elements == nullptr) {
                    const double code = round_integer(std::ldexp(v / scale, s.integer_fraction_bits), r, draw);
                    q.codes[at] = static_cast<std::uint8_t>(
                        static_cast<int>(std::fmin(std::fmax(code, s.lowest_code), s.highest_code)));
                } else {
                    const bool divide = o.division == numfmt::scale_division::divide && !s.has_tensor_scale();
                    const double scaled = s.scale == scale_kind::power_of_two ? v / scale
                                          : divide                            ? f32(v / scale)
                                                                              : f32(v * factor);
                    q.codes[at] = static_cast<std::uint8_t>(encode(s.table(), scaled, r, o.element, draw));
                }
            });
        }
    }
    return q;
}

/// The value of one element, as a float.
inline float dequantize_one(const scheme_facts& s, std::uint32_t scale_bits, std::uint32_t zero, std::uint32_t code,
                            float tensor_scale = 1) {
    double scale = scale_value(s, scale_bits);
    if (std::isnan(scale)) return std::nanf("");
    if (s.has_tensor_scale()) scale = f32(scale * static_cast<double>(tensor_scale));
    double v = 0;
    if (s.is_int4())
        v = static_cast<double>(code) - (s.is_symmetric() ? s.fixed_zero : static_cast<double>(zero));
    else if (s.elements == nullptr)
        v = std::ldexp(static_cast<double>(code) - (code >= 128 ? 256 : 0), -s.integer_fraction_bits);
    else
        v = decode(s.table(), code);
    return static_cast<float>(v * scale);  // the product is exact in double: 24 + 8 bits
}

/// rows x cols, tight.
inline std::vector<float> dequantize(const scheme_facts& s, const quantized& q) {
    std::vector<float> y(q.codes.size());
    for (std::int64_t i = 0; i < q.scale_rows; ++i)
        for (std::int64_t j = 0; j < q.scale_cols; ++j)
            for_block(s, q, i, j, [&](std::int64_t row, std::int64_t col) {
                const std::size_t at = static_cast<std::size_t>(row * q.cols + col);
                const std::size_t k = static_cast<std::size_t>(i * q.scale_cols + j);
                y[at] = dequantize_one(s, q.scales[k], q.zeros[k], q.codes[at], q.tensor_scale);
            });
    return y;
}

/// Code `column` of a little-endian bit stream, one bit at a time.
inline std::uint32_t read_code(const std::uint8_t* row, std::int64_t column, int bits) {
    std::uint32_t code = 0;
    for (int b = 0; b < bits; ++b) {
        const std::int64_t at = column * bits + b;
        if ((row[at / 8] >> (at % 8)) & 1) code |= 1u << b;
    }
    return code;
}
/// Writes it; the bits of the row are zero before.
inline void write_code(std::uint8_t* row, std::int64_t column, int bits, std::uint32_t code) {
    for (int b = 0; b < bits; ++b) {
        const std::int64_t at = column * bits + b;
        if ((code >> b) & 1) row[at / 8] = static_cast<std::uint8_t>(row[at / 8] | (1 << (at % 8)));
    }
}
inline std::int64_t row_bytes(std::int64_t cols, int bits) { return (cols * bits + 7) / 8; }

/// Position of scale (i, j). Tiles as in the cuBLAS 13 documentation, "1D Block Scaling Factors Layout".
inline std::int64_t scale_position(numfmt::scale_layout layout, std::int64_t stride, std::int64_t i, std::int64_t j) {
    if (layout == numfmt::scale_layout::row_major) return i * stride + j;
    if (layout == numfmt::scale_layout::mn_major) return j * stride + i;
    const std::int64_t tile = (i / 128) * stride + j / 4, outer = i % 128, inner = j % 4;
    return tile * 512 + (outer % 32) * 16 + (outer / 32) * 4 + inner;
}

}  // namespace block_oracle
