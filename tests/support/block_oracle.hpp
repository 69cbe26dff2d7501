// SPDX-License-Identifier: MIT
// A second quantizer to hold the library against. It is written from the specifications with doubles, search in a table
// of decoded values and one bit at a time; of the library it uses only the names of the policies and no function.
#pragma once

#include <numfmt/block/quantize.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

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
    std::uint32_t nan = 0;        // canonical; the largest magnitude where there is no NaN
    std::uint32_t quiet_nan = 0;  // under keep_sign
    std::uint32_t nonfinite = 0;  // what overflow::to_nonfinite gives
    bool saturates_by_default = true;

    std::uint32_t largest() const { return static_cast<std::uint32_t>(values.size() - 1); }
};

inline float_table make_table(int exponent_bits, int mantissa_bits, int bias, std::size_t finite_count) {
    const auto value = [&](std::size_t code) {
        const auto e = static_cast<int>(code >> mantissa_bits);
        const auto m = static_cast<int>(code & ((std::size_t{1} << mantissa_bits) - 1));
        if (e == 0) return std::ldexp(m, 1 - bias - mantissa_bits);
        return std::ldexp((1 << mantissa_bits) + m, e - bias - mantissa_bits);
    };
    float_table t;
    for (std::size_t c = 0; c < finite_count; ++c) t.values.push_back(value(c));
    t.beyond = value(finite_count);
    t.sign = 1u << (exponent_bits + mantissa_bits);
    t.nan = t.sign - 1;
    t.quiet_nan = t.nan;
    t.nonfinite = t.nan;
    return t;
}

// OCP OFP8 1.0, Table 1; OCP MX 1.0, section 5.3; IEEE 754 binary16; the upper half of binary32.
inline const float_table& e4m3() {
    static const float_table t = make_table(4, 3, 7, 127);
    return t;
}
inline const float_table& e5m2() {
    static const float_table t = [] {
        float_table r = make_table(5, 2, 15, 124);
        r.nonfinite = 0x7C;
        r.quiet_nan = 0x7E;
        return r;
    }();
    return t;
}
inline const float_table& e2m1() {
    static const float_table t = make_table(2, 1, 1, 8);
    return t;
}
inline const float_table& e2m3() {
    static const float_table t = make_table(2, 3, 1, 32);
    return t;
}
inline const float_table& e3m2() {
    static const float_table t = make_table(3, 2, 3, 32);
    return t;
}
inline const float_table& half() {
    static const float_table t = [] {
        float_table r = make_table(5, 10, 15, 0x7C00);
        r.nonfinite = 0x7C00;
        r.quiet_nan = 0x7E00;
        r.saturates_by_default = false;
        return r;
    }();
    return t;
}
inline const float_table& brain() {
    static const float_table t = [] {
        float_table r = make_table(8, 7, 127, 0x7F80);
        r.nonfinite = 0x7F80;
        r.quiet_nan = 0x7FC0;
        r.saturates_by_default = false;
        return r;
    }();
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
    return code == 0 && o.drop_negative_zero ? 0 : static_cast<std::uint32_t>(code) | sign;
}

/// NaN, +-Inf or the value of a code.
inline double decode(const float_table& t, std::uint32_t code) {
    const std::uint32_t magnitude = code & (t.sign - 1);
    double v = 0;
    if (magnitude <= t.largest())
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

enum class element_kind { e4m3, e5m2, e2m1, e2m3, e3m2, int8_q6, uint4, uint4_around_8 };
enum class scale_kind { fp32, fp16, bf16, e8m0, ue4m3_and_fp32 };
inline constexpr std::int64_t all = INT64_MAX;

/// What the oracle knows about a scheme.
struct scheme_facts {
    std::string_view name;
    element_kind element;
    scale_kind scale;
    std::int64_t block_rows, block_cols;

    int bits() const {
        switch (element) {
            case element_kind::e2m1:
            case element_kind::uint4:
            case element_kind::uint4_around_8:
                return 4;
            case element_kind::e2m3:
            case element_kind::e3m2:
                return 6;
            default:
                return 8;
        }
    }
    int scale_bytes() const {
        switch (scale) {
            case scale_kind::fp32:
                return 4;
            case scale_kind::fp16:
            case scale_kind::bf16:
                return 2;
            default:
                return 1;
        }
    }
    bool has_zeros() const { return element == element_kind::uint4; }
    bool is_symmetric() const { return element == element_kind::uint4_around_8; }
    bool is_int4() const { return has_zeros() || is_symmetric(); }
    bool has_tensor_scale() const { return scale == scale_kind::ue4m3_and_fp32; }
    const float_table& table() const {
        switch (element) {
            case element_kind::e5m2:
                return e5m2();
            case element_kind::e2m1:
                return e2m1();
            case element_kind::e2m3:
                return e2m3();
            case element_kind::e3m2:
                return e3m2();
            default:
                return e4m3();
        }
    }
    double largest() const { return element == element_kind::int8_q6 ? 127.0 / 64 : table().values.back(); }
    int emax() const {
        switch (element) {
            case element_kind::e4m3:
                return 8;
            case element_kind::e5m2:
                return 15;
            case element_kind::e3m2:
                return 4;
            case element_kind::int8_q6:
                return 0;
            default:
                return 2;
        }
    }
    int mantissa_bits() const {
        switch (element) {
            case element_kind::e5m2:
            case element_kind::e3m2:
                return 2;
            case element_kind::e2m1:
                return 1;
            case element_kind::int8_q6:
                return 6;
            default:
                return 3;
        }
    }
};

/// The facts of the scheme with this name; a scheme that is not here has an empty name.
inline scheme_facts facts_of(std::string_view name) {
    using enum element_kind;
    static constexpr scheme_facts known[] = {
        {"fp8_per_tensor", e4m3, scale_kind::fp32, all, all},
        {"fp8_per_channel", e4m3, scale_kind::fp32, 1, all},
        {"block_fp8_128x128", e4m3, scale_kind::fp32, 128, 128},
        {"block_fp8_1x128", e4m3, scale_kind::fp32, 1, 128},
        {"block_fp8_128x128_e8m0", e4m3, scale_kind::e8m0, 128, 128},
        {"block_fp8_1x128_e8m0", e4m3, scale_kind::e8m0, 1, 128},
        {"mxfp8_e4m3", e4m3, scale_kind::e8m0, 1, 32},
        {"mxfp8_e5m2", e5m2, scale_kind::e8m0, 1, 32},
        {"mxfp6_e2m3", e2m3, scale_kind::e8m0, 1, 32},
        {"mxfp6_e3m2", e3m2, scale_kind::e8m0, 1, 32},
        {"mxint8", int8_q6, scale_kind::e8m0, 1, 32},
        {"mxfp4", e2m1, scale_kind::e8m0, 1, 32},
        {"nvfp4", e2m1, scale_kind::ue4m3_and_fp32, 1, 16},
        {"awq_int4", uint4, scale_kind::fp16, 1, 128},
        {"int4_g64", uint4, scale_kind::fp16, 1, 64},
        {"int4_g32", uint4, scale_kind::fp16, 1, 32},
        {"int4_symmetric_g128", uint4_around_8, scale_kind::fp16, 1, 128},
        {"int4_symmetric_g32", uint4_around_8, scale_kind::fp16, 1, 32},
        // Not in the list of schemes: other parameters, and shapes that only tests use.
        {"block_fp8_128x128_bf16", e4m3, scale_kind::bf16, 128, 128},
        {"block_fp8_3x5", e4m3, scale_kind::fp32, 3, 5},
        {"int4_g3_fp32", uint4, scale_kind::fp32, 1, 3},
        {"int4_g8_fp32", uint4, scale_kind::fp32, 1, 8},
        {"int4_g32_bf16", uint4, scale_kind::bf16, 1, 32},
        {"int4_symmetric_g5_fp32", uint4_around_8, scale_kind::fp32, 1, 5},
        {"test_e2m3_2x5", e2m3, scale_kind::e8m0, 2, 5},
        {"test_e2m1_3x7", e2m1, scale_kind::e8m0, 3, 7},
    };
    for (const scheme_facts& f : known)
        if (f.name == name) return f;
    return {};
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
    const float_table& t = f.scale == scale_kind::fp16 ? half() : brain();
    const std::uint32_t code = encode(t, v, rounding::nearest_even, {.overflow = numfmt::overflow::saturate});
    return code == 0 ? 1 : code;
}
/// The value of a stored scale, NaN included.
inline double scale_value(const scheme_facts& f, std::uint32_t bits) {
    switch (f.scale) {
        case scale_kind::fp32:
            return static_cast<double>(float_from_bits(bits));
        case scale_kind::fp16:
            return decode(half(), bits);
        case scale_kind::bf16:
            return decode(brain(), bits);
        case scale_kind::ue4m3_and_fp32:
            return decode(e4m3(), bits & 0x7F);
        default:
            return bits == 255 ? std::nan("") : std::ldexp(1.0, static_cast<int>(bits) - 127);
    }
}
inline std::uint32_t nan_scale(const scheme_facts& f) {
    switch (f.scale) {
        case scale_kind::fp32:
            return 0x7FC00000;
        case scale_kind::e8m0:
            return 0xFF;
        case scale_kind::ue4m3_and_fp32:
            return 0x7F;
        default:
            return 0x7FFF;
    }
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
            double scale = 0, zero = s.is_symmetric() ? 8 : 0, factor = 0;
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
            } else if (s.scale == scale_kind::e8m0) {
                q.scales[k] = static_cast<std::uint32_t>(e8m0_scale(s, bounded, o.scale_rule));
                scale = scale_value(s, q.scales[k]);
            } else if (s.has_tensor_scale()) {
                const double g = static_cast<double>(q.tensor_scale);
                const double t = torchao ? std::fmin(std::fmax(f32(f32(amax / 6) / g), 0.015625), 448.0)
                                         : f32(amax * f32(inverse * f32(1.0 / 6)));
                q.scales[k] = encode(e4m3(), t, rounding::nearest_even, {.overflow = numfmt::overflow::saturate});
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
                } else if (s.element == element_kind::int8_q6) {
                    const double code = round_integer(std::ldexp(v / scale, 6), r, draw);
                    q.codes[at] = static_cast<std::uint8_t>(static_cast<int>(std::fmin(std::fmax(code, -127), 127)));
                } else {
                    const bool divide = o.division == numfmt::scale_division::divide && !s.has_tensor_scale();
                    const double scaled = s.scale == scale_kind::e8m0 ? v / scale
                                          : divide                    ? f32(v / scale)
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
        v = static_cast<double>(code) - (s.is_symmetric() ? 8.0 : static_cast<double>(zero));
    else if (s.element == element_kind::int8_q6)
        v = (static_cast<double>(code) - (code >= 128 ? 256 : 0)) / 64;
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
