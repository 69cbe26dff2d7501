// SPDX-License-Identifier: MIT
// What a tensor core's D = C + sum a_i b_i is, bit for bit, as data: one row per architecture and instruction, one
// function for all of them, on host and device. Integer arithmetic; no flag changes it (the emulated fp8 mma.sync ends
// in one float addition).
//
// A group of products and the addend C are summed at once:
//   1. a product keeps the exponent e_a + e_b and its significand in [1, 4): it is not normalised. Subnormal inputs
//   have
//      their format's smallest exponent and a significand below 1.
//   2. M is the largest exponent of the terms that are not zero, C included, but at least `exponent_floor`.
//   3. every term is truncated toward zero to a multiple of 2^(M - fraction_bits); the integers are summed exactly.
//   4. the sum is rounded once to the output: toward zero for fp32, to nearest even for fp16. Subnormals are produced;
//   a zero is +0.
//   5. any NaN, 0 x Inf or Inf - Inf gives the NaN 7FFFFFFF (fp16: 7FFF); otherwise an Inf gives Inf, as does overflow.
// An instruction with more products than a group is a chain of groups, C entering the first; a longer dot product is a
// chain of instructions.
// Sources: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 7:e330 (2021);
// Khattak & Mikaitis, "Accurate models of NVIDIA tensor cores" (arXiv:2512.07004); Xie et al., "MMA-Sim"
// (arXiv:2511.10909); DeepSeek (arXiv:2505.09343).
#pragma once

#include "../core/codec.hpp"
#include "rounded.hpp"

namespace numfmt::accumulate {

/// tf32 as a tensor core reads it: the upper 19 bits of a float register, the lower 13 ignored (truncation).
struct tf32 {
    using storage = uint32_t;
    static constexpr float_spec spec{
        .exponent_bits = 8, .mantissa_bits = 10, .bias = 127, .specials = special_values::ieee};
    static constexpr const char* name = "tf32";
};

/// Where the sum goes: how many fraction bits are kept, how it is rounded, and what C and D are stored as.
enum class tensor_core_output : uint8_t {
    fp32,          ///< 23 fraction bits, toward zero
    fp22,          ///< 1 + 8 + 13 bits, toward zero, in a float whose lower 10 bits are 0
    fp16,          ///< nearest even
    fp32_nearest,  ///< 23 fraction bits, nearest even: no known hardware, for comparison
};

/// How C meets the products of an instruction.
enum class tensor_core_addend : uint8_t {
    fused,       ///< as one more term of the first group
    added_last,  ///< the groups start from zero; C + result is one addition, rounded to nearest even
};

/// Which products form group g of an instruction with k = 2 x group of them.
enum class tensor_core_order : uint8_t {
    contiguous,     ///< g * group .. (g + 1) * group - 1
    pairs_of_four,  ///< products i with (i mod 4) div 2 = g: the halves of 4-byte registers that hold four fp8 numbers
    even_then_odd,  ///< products i with i mod 2 = g: no known hardware, for comparison
};

/// One instruction's sum. `k` products per instruction in k / group groups; see the top of this file.
struct tensor_core_model {
    const char* name;    ///< architecture and instruction
    int k;               ///< products of one instruction
    int group;           ///< products that are summed at once: 4, 8, 16 or 32
    int fraction_bits;   ///< kept below the largest exponent, at most 29
    int exponent_floor;  ///< smallest value of that largest exponent
    tensor_core_output output = tensor_core_output::fp32;
    tensor_core_addend addend = tensor_core_addend::fused;
    tensor_core_order order = tensor_core_order::contiguous;
    bool through_fp16 =
        false;  ///< the operands are converted to fp16 first, where subnormals of e4m3 are normal numbers
};

/// The models, by architecture and instruction. "Published": taken from the papers above and never compared with a GPU
/// by this library's tests. In device code copy one first: `constexpr tensor_core_model m =
/// tensor_cores::hopper_16bit;`
namespace tensor_cores {

// V100, mma m8n8k4.
inline constexpr tensor_core_model volta_fp16{"V100 fp16", 4, 4, 23, -131};
inline constexpr tensor_core_model volta_fp16_to_fp16{"V100 fp16 to fp16", 4, 4, 23, -19, tensor_core_output::fp16};
// Turing, mma m16n8k8. Published.
inline constexpr tensor_core_model turing_fp16{"Turing fp16", 8, 8, 24, -132};
inline constexpr tensor_core_model turing_fp16_to_fp16{"Turing fp16 to fp16", 8, 8, 24, -20, tensor_core_output::fp16};
// A100, A2, A30 and Ada, mma m16n8k16 (fp16, bf16) and m16n8k8 (tf32): two chained groups.
inline constexpr tensor_core_model ampere_16bit{"Ampere/Ada fp16, bf16", 16, 8, 24, -132};
inline constexpr tensor_core_model ampere_fp16_to_fp16{"Ampere/Ada fp16 to fp16", 16, 8, 24, -20,
                                                       tensor_core_output::fp16};
inline constexpr tensor_core_model ampere_tf32{"Ampere/Ada tf32", 8, 4, 24, -132};
// Ada, mma m16n8k32: two chained groups of 16.
inline constexpr tensor_core_model ada_fp8{"Ada fp8", 32, 16, 13, -132, tensor_core_output::fp22};
inline constexpr tensor_core_model ada_fp8_to_fp16{"Ada fp8 to fp16", 32, 16, 13, -20, tensor_core_output::fp16};
// Hopper, mma.sync and wgmma.
inline constexpr tensor_core_model hopper_16bit{"Hopper fp16, bf16", 16, 16, 25, -133};
inline constexpr tensor_core_model hopper_fp16_to_fp16{"Hopper fp16 to fp16",   16, 16, 25, -21,
                                                       tensor_core_output::fp16};
inline constexpr tensor_core_model hopper_tf32{"Hopper tf32", 8, 8, 25, -133};
inline constexpr tensor_core_model hopper_wgmma_fp8{"Hopper wgmma fp8", 32, 32, 13, -133, tensor_core_output::fp22};
inline constexpr tensor_core_model hopper_wgmma_fp8_to_fp16{"Hopper wgmma fp8 to fp16", 32, 32, 13, -21,
                                                            tensor_core_output::fp16};
// Hopper and B200, mma.sync m16n8k32 on fp8: two fp16 instructions on the unpacked registers, then C.
inline constexpr tensor_core_model hopper_mma_fp8{"Hopper mma.sync fp8",
                                                  32,
                                                  16,
                                                  25,
                                                  -133,
                                                  tensor_core_output::fp32,
                                                  tensor_core_addend::added_last,
                                                  tensor_core_order::pairs_of_four,
                                                  true};
inline constexpr tensor_core_model hopper_mma_fp8_to_fp16{
    "Hopper mma.sync fp8 to fp16",    32,  16, 25, -21, tensor_core_output::fp16, tensor_core_addend::added_last,
    tensor_core_order::pairs_of_four, true};
// Blackwell. fp16, bf16 and tf32 as Hopper; tcgen05 and sm_120 fp8, fp6, fp4: published.
inline constexpr tensor_core_model blackwell_16bit{"Blackwell fp16, bf16", 16, 16, 25, -133};
inline constexpr tensor_core_model blackwell_fp16_to_fp16{"Blackwell fp16 to fp16", 16, 16, 25, -21,
                                                          tensor_core_output::fp16};
inline constexpr tensor_core_model blackwell_tf32{"Blackwell tf32", 8, 8, 25, -133};
inline constexpr tensor_core_model blackwell_f8f6f4{"Blackwell f8f6f4", 32, 32, 25, -133};

}  // namespace tensor_cores

/// A number as a tensor core sees it: significand * 2^(exponent - 10), the significand signed and, for normal numbers,
/// of 11 bits. Zero has significand 0 and an exponent far below all others, Inf significand +-1024 and NaN significand
/// 0 with an exponent far above.
struct tensor_core_operand {
    int16_t significand;
    int16_t exponent;
};

namespace detail {

inline constexpr int operand_fraction_bits = 10;
inline constexpr int zero_exponent = -4000, special_exponent = 10000;
// Sums of two exponents: anything special, even times zero, lies above this; anything finite below.
inline constexpr int special_threshold = 4000;
inline constexpr uint32_t nan_fp32 = 0x7FFFFFFFu, nan_fp16 = 0x7FFFu;

NUMFMT_FN tensor_core_operand operand_of(const float_spec& s, uint32_t code) noexcept {
    const uint32_t magnitude = code & s.magnitude_mask();
    const uint32_t mantissa = magnitude & s.mantissa_mask();
    const bool negative = (code & s.sign_bit()) != 0;
    const int up = operand_fraction_bits - s.mantissa_bits;
    int significand = 0, exponent = zero_exponent;
    if (magnitude > s.max_finite_code()) {
        exponent = special_exponent;
        significand = s.has_infinity() && magnitude == s.infinity_code() ? 1 << operand_fraction_bits : 0;
    } else if (magnitude != 0) {
        const bool normal = magnitude > s.mantissa_mask();
        significand = static_cast<int>((normal ? mantissa | (s.mantissa_mask() + 1u) : mantissa) << up);
        exponent = normal ? static_cast<int>(magnitude >> s.mantissa_bits) - s.bias : s.min_exponent();
    }
    return {static_cast<int16_t>(negative ? -significand : significand), static_cast<int16_t>(exponent)};
}

/// The addend as significand * 2^(exponent - 23).
struct addend_value {
    int64_t significand;
    int exponent;
};
NUMFMT_FN addend_value addend_of(uint32_t bits, bool is_fp16) noexcept {
    const int mantissa_bits = is_fp16 ? 10 : 23, bias = is_fp16 ? 15 : 127;
    const uint32_t top = is_fp16 ? 31u : 255u, sign = bits >> (is_fp16 ? 15 : 31) & 1u;
    const uint32_t field = bits >> mantissa_bits & top;
    const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1u);
    int64_t significand = mantissa;
    int exponent = 1 - bias;
    if (field == top) {
        significand = mantissa != 0 ? 0 : 1;
        exponent = special_exponent;
    } else if (field != 0) {
        significand |= int64_t{1} << mantissa_bits;
        exponent = static_cast<int>(field) - bias;
    } else if (mantissa == 0) {
        exponent = zero_exponent;
    }
    significand <<= 23 - mantissa_bits;
    return {sign != 0 ? -significand : significand, exponent};
}

/// |sum| * 2^unit with the sign, rounded to the output: the bits of a float, or of an fp16 number.
NUMFMT_FN uint32_t round_to_output(int64_t sum, int unit, tensor_core_output output) noexcept {
    const bool fp16 = output == tensor_core_output::fp16;
    const bool nearest = fp16 || output == tensor_core_output::fp32_nearest;
    const int kept_bits = fp16 ? 10 : output == tensor_core_output::fp22 ? 13 : 23;
    const int stored_bits = fp16 ? 10 : 23, min_exponent = fp16 ? -14 : -126;
    const uint32_t infinity = fp16 ? 0x7C00u : 0x7F800000u, sign_bit = fp16 ? 0x8000u : 0x80000000u;
    if (sum == 0) return 0;
    const uint64_t magnitude = sum < 0 ? 0 - static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
    const int leading = 63 - numfmt::detail::countl_zero(magnitude) + unit;
    const int exponent = numfmt::detail::max(leading, min_exponent);
    const int shift = numfmt::detail::min(exponent - kept_bits - unit, 63);
    uint64_t kept = magnitude;
    if (shift <= 0) {
        kept <<= -shift;  // at most 23 places: there are fewer bits than the output has
    } else {
        kept >>= shift;
        if (nearest) {
            const uint64_t rest = magnitude - (kept << shift), half = uint64_t{1} << (shift - 1);
            kept += rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u;
        }
    }
    // The leading bit adds itself to the exponent field; a carry out of the rounding too.
    const uint64_t field = static_cast<uint64_t>(exponent - min_exponent);
    uint64_t code = (field << stored_bits) + (kept << (stored_bits - kept_bits));
    if (code == 0) return 0;  // a negative sum that rounds to zero loses its sign
    code = code < infinity ? code : infinity;
    return static_cast<uint32_t>(code) | (sum < 0 ? sign_bit : 0u);
}

/// NaN or Inf: what the special terms make of the sum, or 0 where there is none after all.
NUMFMT_HD inline constexpr uint32_t special_sum(const tensor_core_operand* a, const tensor_core_operand* b, int n,
                                                addend_value c, bool fp16) noexcept {
    bool positive = false, negative = false, nan = false;
    for (int i = 0; i < n; ++i) {
        if (a[i].exponent + b[i].exponent <= special_threshold) continue;
        const int product = a[i].significand * b[i].significand;
        nan = nan || product == 0;  // a NaN, or Inf times zero
        positive = positive || product > 0;
        negative = negative || product < 0;
    }
    if (c.exponent == special_exponent) {
        nan = nan || c.significand == 0;
        positive = positive || c.significand > 0;
        negative = negative || c.significand < 0;
    }
    if (nan || (positive && negative)) return fp16 ? nan_fp16 : nan_fp32;
    const uint32_t infinity = fp16 ? 0x7C00u : 0x7F800000u;
    return negative ? infinity | (fp16 ? 0x8000u : 0x80000000u) : infinity;
}

/// One group: c + sum a_i b_i.
template <int N>
NUMFMT_FN uint32_t fused_group(const tensor_core_model& m, const tensor_core_operand* a, const tensor_core_operand* b,
                               uint32_t c_bits) noexcept {
    const bool fp16 = m.output == tensor_core_output::fp16;
    const addend_value c = addend_of(c_bits, fp16);
    int exponent[N] = {};
    int largest = c.exponent;
    for (int i = 0; i < N; ++i) {
        exponent[i] = a[i].exponent + b[i].exponent;
        largest = numfmt::detail::max(largest, exponent[i]);
    }
    if (largest > special_threshold) return special_sum(a, b, N, c, fp16);
    largest = numfmt::detail::max(largest, m.exponent_floor);
    // In units of 2^(largest - fraction_bits). A product has 20 fraction bits and less than 2^22: 9 more fit.
    const int down = 29 - m.fraction_bits + largest;
    int64_t sum = 0;
    for (int i = 0; i < N; ++i) {
        const int32_t product = static_cast<int32_t>(a[i].significand) * static_cast<int32_t>(b[i].significand);
        const int32_t sign = product >> 31;
        const uint32_t magnitude = static_cast<uint32_t>((product ^ sign) - sign) << 9;
        const int32_t term = static_cast<int32_t>(magnitude >> numfmt::detail::min(down - exponent[i], 31));
        sum += (term ^ sign) - sign;
    }
    const uint64_t c_magnitude = static_cast<uint64_t>(c.significand < 0 ? -c.significand : c.significand) << 6;
    const int64_t c_term = static_cast<int64_t>(c_magnitude >> numfmt::detail::min(down - c.exponent, 63));
    sum += c.significand < 0 ? -c_term : c_term;
    return round_to_output(sum, largest - m.fraction_bits, m.output);
}

NUMFMT_FN uint32_t fused_group(const tensor_core_model& m, const tensor_core_operand* a, const tensor_core_operand* b,
                               uint32_t c) noexcept {
    switch (m.group) {
        case 4:
            return fused_group<4>(m, a, b, c);
        case 8:
            return fused_group<8>(m, a, b, c);
        case 16:
            return fused_group<16>(m, a, b, c);
        default:
            return fused_group<32>(m, a, b, c);
    }
}

/// A finite operand as the same number in fp16: normalised as far as fp16's exponents go.
NUMFMT_FN tensor_core_operand in_fp16(tensor_core_operand x) noexcept {
    if (x.significand == 0 || x.exponent == special_exponent) return x;
    while (x.exponent > -14 && x.significand > -(1 << operand_fraction_bits) &&
           x.significand < 1 << operand_fraction_bits) {
        x.significand = static_cast<int16_t>(x.significand * 2);
        x.exponent = static_cast<int16_t>(x.exponent - 1);
    }
    return x;
}

struct half {  // fp16, which lives above this room
    using storage = uint16_t;
    static constexpr float_spec spec{
        .exponent_bits = 5, .mantissa_bits = 10, .bias = 15, .specials = special_values::ieee};
};

/// x + y in fp32 or fp16, rounded to nearest even, with the hardware's NaN.
NUMFMT_FN uint32_t rounded_sum(uint32_t x, uint32_t y, bool fp16) noexcept {
    if (fp16) {
        // Once to 24 bits and once more to 11: the same as once to 11, since 24 >= 2 * 11 + 2.
        return encode<half>(
            rounded_add(decode<half>(static_cast<uint16_t>(x)), decode<half>(static_cast<uint16_t>(y))));
    }
    const float s = rounded_add(bit_cast<float>(x), bit_cast<float>(y));
    return is_nan(s) ? nan_fp32 : bit_cast<uint32_t>(s);
}

}  // namespace detail

/// The operand that `code` of a format of at most 10 mantissa bits stands for (bf16, fp16, tf32, fp8, fp6, fp4).
template <class Format> NUMFMT_FN tensor_core_operand to_operand(typename Format::storage code) noexcept {
    constexpr float_spec s = Format::spec;
    static_assert(s.mantissa_bits <= detail::operand_fraction_bits && s.has_zero,
                  "numfmt::accumulate::to_operand: tensor cores take formats with at most 10 mantissa bits");
    if constexpr (detail::operand_fraction_bits == s.mantissa_bits && sizeof(code) == 4)
        return detail::operand_of(s, code >> 13);  // tf32
    else
        return detail::operand_of(s, code);
}
/// operands[i] = to_operand(codes[i]) for 0 <= i < n: once per matrix, not once per product.
template <class Format>
NUMFMT_FN void to_operands(const typename Format::storage* codes, int64_t n, tensor_core_operand* operands) noexcept {
    for (int64_t i = 0; i < n; ++i) operands[i] = to_operand<Format>(codes[i]);
}

/// D of one instruction: m.k operands each, C and D as bits of a float (of an fp16 number where the model's output is).
NUMFMT_HD inline constexpr uint32_t tensor_core_instruction(const tensor_core_model& m, const tensor_core_operand* a,
                                                            const tensor_core_operand* b, uint32_t c) noexcept {
    const bool last = m.addend == tensor_core_addend::added_last;
    uint32_t d = last ? 0u : c;
    for (int g = 0; g * m.group < m.k; ++g) {
        if (m.order == tensor_core_order::contiguous && !m.through_fp16) {
            d = detail::fused_group(m, a + g * m.group, b + g * m.group, d);
        } else {
            tensor_core_operand x[32] = {}, y[32] = {};
            for (int i = 0; i < m.group; ++i) {
                const int at = m.order == tensor_core_order::contiguous      ? g * m.group + i
                               : m.order == tensor_core_order::even_then_odd ? 2 * i + g
                                                                             : i / 2 * 4 + 2 * g + i % 2;
                x[i] = m.through_fp16 ? detail::in_fp16(a[at]) : a[at];
                y[i] = m.through_fp16 ? detail::in_fp16(b[at]) : b[at];
            }
            d = detail::fused_group(m, x, y, d);
        }
    }
    return last ? detail::rounded_sum(c, d, m.output == tensor_core_output::fp16) : d;
}

/// D of a chain of instructions over k products, each taking the last one's D as its C. A tail is filled up with zeros.
/// With promote_every > 0 (rounded up to whole instructions) the chain is restarted at zero after that many products
/// and its result added to an fp32 sum that starts at C, rounded to nearest even: fp32 and fp22 outputs only.
NUMFMT_HD inline constexpr uint32_t tensor_core_dot(const tensor_core_model& m, const tensor_core_operand* a,
                                                    const tensor_core_operand* b, int64_t k, uint32_t c = 0,
                                                    int64_t promote_every = 0) noexcept {
    uint32_t d = promote_every > 0 ? 0u : c;
    uint32_t promoted = c;
    int64_t in_chain = 0;
    for (int64_t i = 0; i < k; i += m.k) {
        if (k - i >= m.k) {
            d = tensor_core_instruction(m, a + i, b + i, d);
        } else {
            tensor_core_operand x[32] = {}, y[32] = {};
            for (int j = 0; j < 32; ++j) {
                x[j] = j < k - i ? a[i + j] : tensor_core_operand{0, detail::zero_exponent};
                y[j] = j < k - i ? b[i + j] : tensor_core_operand{0, detail::zero_exponent};
            }
            d = tensor_core_instruction(m, x, y, d);
        }
        in_chain += m.k;
        if (promote_every > 0 && in_chain >= promote_every) {
            promoted = detail::rounded_sum(promoted, d, false);
            d = 0;
            in_chain = 0;
        }
    }
    if (promote_every <= 0) return d;
    return in_chain > 0 ? detail::rounded_sum(promoted, d, false) : promoted;
}

/// A block scale as a tensor core sees it: E8M0 (a power of two) or unsigned E4M3. NaN as in tensor_core_operand.
template <class Format> NUMFMT_FN tensor_core_operand to_block_scale(typename Format::storage code) noexcept {
    constexpr float_spec s = Format::spec;
    if constexpr (s.has_zero) {
        static_assert(s.mantissa_bits <= 3, "numfmt::accumulate::to_block_scale: E8M0 or UE4M3");
        return detail::operand_of(s, code & s.magnitude_mask());
    } else {
        const bool nan = code > s.max_finite_code();
        return {static_cast<int16_t>(nan ? 0 : 1 << detail::operand_fraction_bits),
                static_cast<int16_t>(nan ? detail::special_exponent : static_cast<int>(code) - s.bias)};
    }
}

/// D of a Blackwell mxf8f6f4 instruction: 32 products of fp8, fp6 or fp4 numbers with one power-of-two scale a side,
/// whose exponents join those of the products. Published (arXiv:2511.10909), never compared with a GPU here.
NUMFMT_HD inline constexpr uint32_t tensor_core_mxf8(const tensor_core_operand* a, const tensor_core_operand* b,
                                                     tensor_core_operand scale_a, tensor_core_operand scale_b,
                                                     uint32_t c) noexcept {
    if (scale_a.exponent == detail::special_exponent || scale_b.exponent == detail::special_exponent)
        return detail::nan_fp32;
    constexpr tensor_core_model m = tensor_cores::blackwell_f8f6f4;
    tensor_core_operand x[32] = {}, y[32] = {};
    for (int i = 0; i < 32; ++i) {
        x[i] = {a[i].significand, static_cast<int16_t>(a[i].exponent + scale_a.exponent)};
        y[i] = {b[i].significand, static_cast<int16_t>(b[i].exponent + scale_b.exponent)};
    }
    return tensor_core_instruction(m, x, y, c);
}

/// D of a Blackwell mxf4 or mxf4nvf4 instruction: 64 products of E2M1 numbers; each 16 of them are summed exactly and
/// multiplied with the significands of their two scales (one per `block` elements, 16 or 32), the scales' exponents
/// being the term's; then the four terms and C are cut to 35 bits below the largest exponent and summed, the result
/// toward zero to fp32. Published (arXiv:2511.10909), never compared with a GPU here.
NUMFMT_HD inline constexpr uint32_t tensor_core_mxf4(const tensor_core_operand* a, const tensor_core_operand* b,
                                                     const tensor_core_operand* scale_a,
                                                     const tensor_core_operand* scale_b, int block,
                                                     uint32_t c_bits) noexcept {
    constexpr int fraction_bits = 35, exponent_floor = -139;
    const detail::addend_value c = detail::addend_of(c_bits, false);
    if (c.exponent == detail::special_exponent && c.significand == 0) return detail::nan_fp32;
    int64_t term[4] = {};
    int exponent[4] = {};
    int largest = c.exponent;
    for (int g = 0; g < 4; ++g) {
        const tensor_core_operand sa = scale_a[g * 16 / block], sb = scale_b[g * 16 / block];
        if (sa.exponent == detail::special_exponent || sb.exponent == detail::special_exponent) return detail::nan_fp32;
        // E2M1 numbers are multiples of 1/2 and at most 6: quarters, exactly.
        int quarters = 0;
        for (int i = g * 16; i < g * 16 + 16; ++i) {
            const int x = a[i].significand == 0 ? 0 : a[i].significand * (1 << (a[i].exponent + 1)) >> 10;
            const int y = b[i].significand == 0 ? 0 : b[i].significand * (1 << (b[i].exponent + 1)) >> 10;
            quarters += x * y;
        }
        // Scale significands have 3 fraction bits.
        term[g] = static_cast<int64_t>(quarters) * (sa.significand >> 7) * (sb.significand >> 7);
        exponent[g] = sa.exponent + sb.exponent;
        if (term[g] != 0) largest = numfmt::detail::max(largest, exponent[g]);
    }
    if (c.exponent == detail::special_exponent) return c.significand < 0 ? 0xFF800000u : 0x7F800000u;
    largest = numfmt::detail::max(largest, exponent_floor);
    // In units of 2^(largest - 35): a term has 2 + 3 + 3 fraction bits, C has 23.
    const auto cut = [&](int64_t value, int up, int e) {
        const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? -value : value) << up;
        const int64_t kept = static_cast<int64_t>(magnitude >> numfmt::detail::min(largest - e, 63));
        return value < 0 ? -kept : kept;
    };
    int64_t sum = cut(c.significand, fraction_bits - 23, c.exponent);
    for (int g = 0; g < 4; ++g) sum += term[g] == 0 ? 0 : cut(term[g], fraction_bits - 8, exponent[g]);
    return detail::round_to_output(sum, largest - fraction_bits, tensor_core_output::fp32);
}

/// D += A B^T for rows first_row <= i < last_row: a is [m][k], b is [n][k], d is [m][n], all row-major and tight, d
/// being C before and D after. Float outputs (fp32, fp22). Rows are independent: give every thread its own range.
inline void tensor_core_matmul(const tensor_core_model& m, const tensor_core_operand* a, const tensor_core_operand* b,
                               float* d, int64_t first_row, int64_t last_row, int64_t n, int64_t k,
                               int64_t promote_every = 0) noexcept {
    for (int64_t i = first_row; i < last_row; ++i)
        for (int64_t j = 0; j < n; ++j)
            d[i * n + j] = bit_cast<float>(
                tensor_core_dot(m, a + i * k, b + j * k, k, bit_cast<uint32_t>(d[i * n + j]), promote_every));
}

}  // namespace numfmt::accumulate
