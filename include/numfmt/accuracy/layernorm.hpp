// SPDX-License-Identifier: MIT
// What the variance of a layer normalisation costs in accuracy: every formula with every accumulator on the stored
// values of a row, beside the exact variance, and what reaches the output in units of its format's last place.
//
//     y = (x - mean) / sqrt(variance + eps)          RMS: y = x / sqrt(mean(x^2) + eps)
//
// The sums are formed in the accumulator's format; everything else is fp32 (`double_precision`: double), as in a
// kernel.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "../accumulate/policies.hpp"
#include "../accumulate/tree.hpp"
#include "../accumulate/welford.hpp"
#include "../bf16.hpp"
#include "../fp16.hpp"
#include "../fp8.hpp"

namespace numfmt::accuracy {

/// How the variance is formed. Bounds: accumulate/welford.hpp.
enum class variance_formula : uint8_t {
    one_pass,            ///< E[x^2] - E[x]^2
    one_pass_clamped,    ///< the same, not below 0
    shifted,             ///< one pass over x - x[0]
    two_pass,            ///< the mean, then E[(x - mean)^2]
    two_pass_corrected,  ///< d = x - the rounded mean; E[d^2] - E[d]^2, and E[d] makes up for the mean's rounding
    welford,             ///< Welford's update; over lanes, Chan's merge of its results
    mean_square,         ///< E[x^2], the mean taken for 0: RMS normalisation
};
inline constexpr int variance_formula_count = 7;
constexpr const char* name_of(variance_formula f) noexcept {
    constexpr const char* names[variance_formula_count] = {
        "one_pass", "one_pass_clamped", "shifted", "two_pass", "two_pass_corrected", "welford", "mean_square"};
    return names[static_cast<int>(f)];
}

/// What the sums are kept in. `lanes`: 16 x 4 chains and a tree, as vectors sum; the others are one chain.
enum class sum_accumulator : uint8_t {
    bf16,              ///< rounded to bf16 after every addition
    bf16_lanes,        ///
    fp16,              ///< rounded to fp16 after every addition; overflows to Inf
    fp16_lanes,        ///
    fp32,              ///
    fp32_lanes,        ///
    fp32_compensated,  ///< Dot2: as in twice the precision, rounded to fp32
    double_sums,       ///< double, rounded to fp32 before anything is made of the sums
    double_precision,  ///< double, mean, differences and variance too
};
inline constexpr int sum_accumulator_count = 9;
constexpr const char* name_of(sum_accumulator a) noexcept {
    constexpr const char* names[sum_accumulator_count] = {
        "bf16", "bf16_lanes", "fp16", "fp16_lanes", "fp32", "fp32_lanes", "fp32_compensated", "double_sums", "double"};
    return names[static_cast<int>(a)];
}

/// Formats that rows are stored in and written to.
enum class row_format : uint8_t { fp32, bf16, fp16, fp8_e4m3 };
inline constexpr int row_format_count = 4;
constexpr const char* name_of(row_format f) noexcept {
    constexpr const char* names[row_format_count] = {"fp32", "bf16", "fp16", "fp8_e4m3"};
    return names[static_cast<int>(f)];
}

/// `x` rounded to nearest even in `f`, overflow as the format's default.
inline float rounded_to_format(row_format f, float x) noexcept {
    switch (f) {
        case row_format::bf16:
            return accumulate::round_to_format<bf16>(x);
        case row_format::fp16:
            return accumulate::round_to_format<fp16>(x);
        case row_format::fp8_e4m3:
            return accumulate::round_to_format<fp8_e4m3>(x);
        default:
            return x;
    }
}

/// The distance between the numbers of `f` at |y|, its unit in the last place there; that at 1 for smaller ones: a
/// normalised row has deviation 1, and an element next to its mean would otherwise be measured in units of its own.
inline double output_ulp(row_format f, double y) noexcept {
    const int mantissa = f == row_format::bf16       ? bf16_tag::spec.mantissa_bits
                         : f == row_format::fp16     ? fp16_tag::spec.mantissa_bits
                         : f == row_format::fp8_e4m3 ? fp8_e4m3_tag::spec.mantissa_bits
                                                     : 23;
    return std::ldexp(1.0, (std::fabs(y) < 1 ? 0 : std::ilogb(y)) - mantissa);
}

struct moments {
    double mean = 0;
    double variance = 0;
    double offset = 0;  ///< to be added to the mean, where a formula keeps it apart: below the mean's last place
};

namespace detail {

/// A number every operation on which is rounded to Format, by way of float: what Welford's update has in place of a
/// sum.
template <class Format> struct rounded_number {
    float value = 0;
    rounded_number() = default;
    template <class T>
    explicit rounded_number(T x) noexcept : value(accumulate::round_to_format<Format>(static_cast<float>(x))) {}
    explicit operator double() const noexcept { return static_cast<double>(value); }
    friend rounded_number rounded_add(rounded_number a, rounded_number b) noexcept {
        return rounded_number(accumulate::rounded_add(a.value, b.value));
    }
    friend rounded_number rounded_sub(rounded_number a, rounded_number b) noexcept {
        return rounded_number(accumulate::rounded_sub(a.value, b.value));
    }
    friend rounded_number rounded_mul(rounded_number a, rounded_number b) noexcept {
        return rounded_number(accumulate::rounded_mul(a.value, b.value));
    }
    friend rounded_number rounded_div(rounded_number a, rounded_number b) noexcept {
        return rounded_number(accumulate::rounded_div(a.value, b.value));
    }
    friend rounded_number rounded_fma(rounded_number a, rounded_number b, rounded_number c) noexcept {
        return rounded_number(accumulate::rounded_fma(a.value, b.value, c.value));
    }
};

template <class W> moments by_welford(const float* x, int64_t n) {
    W w{};
    for (int64_t i = 0; i < n; ++i) w.add(static_cast<typename W::value_type>(x[i]));
    if constexpr (requires { w.reduced(); })
        return {static_cast<double>(w.reduced().mean()), static_cast<double>(w.reduced().variance())};
    else
        return {static_cast<double>(w.mean()), static_cast<double>(w.variance())};
}

// Sum: the accumulator. Update: what Welford's formula runs in, void where there is none.
template <class Sum, class Update> moments moments_by(variance_formula f, const float* x, int64_t n) {
    using Real = typename Sum::value_type;
    const auto two_sums = [&](auto sums) {
        for (int64_t i = 0; i < n; ++i) sums.add(static_cast<Real>(x[i]));
        return moments{static_cast<double>(sums.mean()), static_cast<double>(sums.variance())};
    };
    switch (f) {
        case variance_formula::one_pass:
            return two_sums(accumulate::power_sums<Sum>{});
        case variance_formula::one_pass_clamped: {
            moments m = two_sums(accumulate::power_sums<Sum>{});
            if (m.variance < 0) m.variance = 0;
            return m;
        }
        case variance_formula::shifted:
            return two_sums(accumulate::shifted_power_sums<Sum>{});
        case variance_formula::two_pass: {
            const auto m = accumulate::two_pass<Sum>(x, n);
            return {static_cast<double>(m.mean), static_cast<double>(m.variance)};
        }
        case variance_formula::two_pass_corrected: {
            const Real mean = accumulate::two_pass<Sum>(x, n).mean;
            accumulate::power_sums<Sum> sums{};
            for (int64_t i = 0; i < n; ++i) sums.add(accumulate::rounded_sub(static_cast<Real>(x[i]), mean));
            return {static_cast<double>(mean), static_cast<double>(sums.variance()), static_cast<double>(sums.mean())};
        }
        case variance_formula::mean_square: {
            accumulate::power_sums<Sum> sums{};
            for (int64_t i = 0; i < n; ++i) sums.add(static_cast<Real>(x[i]));
            return {0, static_cast<double>(sums.mean_of_squares())};
        }
        case variance_formula::welford:
            if constexpr (!std::is_void_v<Update>) return by_welford<Update>(x, n);
            break;
    }
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
}

template <class A> using in_lanes = accumulate::interleaved<A, 16, 4>;

}  // namespace detail

/// Whether there is such a combination: Welford's update has no sum to compensate.
constexpr bool exists(variance_formula f, sum_accumulator a) noexcept {
    return f != variance_formula::welford ||
           (a != sum_accumulator::fp32_compensated && a != sum_accumulator::double_sums);
}

/// Mean and variance (mean_square: 0 and E[x^2]) of x[0 .. n), n >= 1, by formula `f` with sums in `a`; NaN where
/// exists(f, a) is false.
inline moments moments_of(variance_formula f, sum_accumulator a, const float* x, int64_t n) {
    using namespace accumulate;
    using detail::in_lanes;
    using detail::moments_by;
    using detail::rounded_number;
    switch (a) {
        case sum_accumulator::bf16:
            return moments_by<rounded_to<bf16>, welford<rounded_number<bf16>>>(f, x, n);
        case sum_accumulator::bf16_lanes:
            return moments_by<in_lanes<rounded_to<bf16>>, in_lanes<welford<rounded_number<bf16>>>>(f, x, n);
        case sum_accumulator::fp16:
            return moments_by<rounded_to<fp16>, welford<rounded_number<fp16>>>(f, x, n);
        case sum_accumulator::fp16_lanes:
            return moments_by<in_lanes<rounded_to<fp16>>, in_lanes<welford<rounded_number<fp16>>>>(f, x, n);
        case sum_accumulator::fp32:
            return moments_by<sequential<float>, welford<float>>(f, x, n);
        case sum_accumulator::fp32_lanes:
            return moments_by<in_lanes<sequential<float>>, in_lanes<welford<float>>>(f, x, n);
        case sum_accumulator::fp32_compensated:
            return moments_by<dot2<float>, void>(f, x, n);
        case sum_accumulator::double_sums:
            return moments_by<in_double, void>(f, x, n);
        case sum_accumulator::double_precision:
            return moments_by<sequential<double>, welford<double>>(f, x, n);
    }
    return {};
}

/// The same of the numbers themselves: two passes in long double, whose error is far below any above.
inline moments exact_moments(bool centred, const float* x, int64_t n) noexcept {
    long double mean = 0, squares = 0;
    if (centred) {
        for (int64_t i = 0; i < n; ++i) mean += static_cast<long double>(x[i]);
        mean /= static_cast<long double>(n);
    }
    for (int64_t i = 0; i < n; ++i) {
        const long double d = static_cast<long double>(x[i]) - mean;
        squares += d * d;
    }
    return {static_cast<double>(mean), static_cast<double>(squares / static_cast<long double>(n))};
}

/// sqrt(1 + mean^2 / variance): what a variance's bounds grow with.
inline double kappa_of(const moments& exact) noexcept {
    return std::sqrt(1 + exact.mean * exact.mean / exact.variance);
}

/// Bound of the relative error of a variance of n elements in fp32 with one chain, in the first order of u = 2^-24 and,
/// where it is the only one that is left, the second; 0 where there is none of that form.
/// Source: Chan, Golub, LeVeque, The American Statistician 37 (1983).
inline double variance_bound(variance_formula f, double n, double kappa) noexcept {
    const double u = 0x1p-24;
    switch (f) {
        case variance_formula::one_pass:
        case variance_formula::one_pass_clamped:
            return n * kappa * kappa * u;
        case variance_formula::two_pass:
            return n * u + n * n * kappa * kappa * u * u;
        case variance_formula::two_pass_corrected:
            return n * u + n * n * n * kappa * kappa * u * u * u;
        case variance_formula::welford:
            return n * kappa * u;
        case variance_formula::mean_square:
            return n * u;
        default:
            return 0;
    }
}

/// Errors over many rows. Rows whose exact variance is 0 are counted apart: nothing can be relative to it.
struct layernorm_errors {
    int64_t rows = 0;        ///< with a variance above 0
    int64_t constant = 0;    ///< without
    int64_t lost = 0;        ///< variance <= 0, NaN or Inf although the exact one is neither
    int64_t nan_rows = 0;    ///< output with a NaN or Inf
    double worst = 0;        ///< largest |variance / exact - 1| of the rows with a finite variance
    double squares = 0;      ///< sum of that squared
    int64_t finite = 0;      ///< rows with a finite variance
    double worst_ulp = 0;    ///< of outputs: largest |y - exact y| in ulp of y's format, over rows without NaN
    double ulp_squares = 0;  ///< sum over elements of that squared
    int64_t elements = 0;    ///< elements in that sum

    double variance_rms() const noexcept { return finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0; }
    double ulp_rms() const noexcept {
        return elements > 0 ? std::sqrt(ulp_squares / static_cast<double>(elements)) : 0;
    }
    double share_lost() const noexcept { return rows > 0 ? static_cast<double>(lost) / static_cast<double>(rows) : 0; }
    /// No row was lost and no output is off by more than `limit` ulp. Rounding alone is off by up to 0.5.
    bool correct(double limit = 1) const noexcept { return lost == 0 && nan_rows == 0 && worst_ulp <= limit; }

    void merge(const layernorm_errors& o) noexcept {
        rows += o.rows;
        constant += o.constant;
        lost += o.lost;
        nan_rows += o.nan_rows;
        worst = numfmt::detail::max(worst, o.worst);
        squares += o.squares;
        finite += o.finite;
        worst_ulp = numfmt::detail::max(worst_ulp, o.worst_ulp);
        ulp_squares += o.ulp_squares;
        elements += o.elements;
    }
};

/// Adds what becomes of the row x[0 .. n), n >= 1, stored values as floats, when its variance is formed by `f` with
/// sums in `a`, which must exist, and the output is rounded to `output`. `exact`: exact_moments() of the row. eps >= 0
/// is added inside the root.
inline void add_row(layernorm_errors& e, variance_formula f, sum_accumulator a, const float* x, int64_t n,
                    const moments& exact, double eps, row_format output) {
    if (!(exact.variance > 0)) {
        ++e.constant;
        return;
    }
    ++e.rows;
    const moments m = moments_of(f, a, x, n);
    const bool finite = std::isfinite(m.variance);
    if (!finite || m.variance <= 0) ++e.lost;
    if (finite) {
        const double error = std::fabs(m.variance / exact.variance - 1);
        e.worst = numfmt::detail::max(e.worst, error);
        e.squares += error * error;
        ++e.finite;
    }
    const bool in_double = a == sum_accumulator::double_precision;
    const auto mean = static_cast<float>(m.mean), offset = static_cast<float>(m.offset);
    const float sum = accumulate::rounded_add(static_cast<float>(m.variance), static_cast<float>(eps));
    const float rstd = accumulate::rounded_div(1.0f, accumulate::rounded_sqrt(sum));
    const double rstd_in_double = 1 / std::sqrt(m.variance + eps), exact_rstd = 1 / std::sqrt(exact.variance + eps);
    double worst = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double value = static_cast<double>(x[i]);
        const float y = in_double ? static_cast<float>((value - m.mean - m.offset) * rstd_in_double)
                                  : accumulate::rounded_mul(
                                        accumulate::rounded_sub(accumulate::rounded_sub(x[i], mean), offset), rstd);
        const float stored = rounded_to_format(output, y);
        if (!std::isfinite(stored)) {
            ++e.nan_rows;
            return;
        }
        const double wanted = (value - exact.mean) * exact_rstd;
        const double ulp = std::fabs(static_cast<double>(stored) - wanted) / output_ulp(output, wanted);
        worst = numfmt::detail::max(worst, ulp);
        squares += ulp * ulp;
    }
    e.worst_ulp = numfmt::detail::max(e.worst_ulp, worst);
    e.ulp_squares += squares;
    e.elements += n;
}

}  // namespace numfmt::accuracy
