// SPDX-License-Identifier: MIT
// Layer and RMS normalisation of rows with Google Highway, compiled once per target. The row's statistics are those of
// accumulate/normalization.hpp over 64 chains (16 lanes, 4 vectors, halves), whatever the target's vectors hold: the
// same bits on every target that has fused multiply-adds; the others (SSSE3) round products of the squares' sums and of
// the weights once more.
#if defined(NUMFMT_SIMD_LAYERNORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMFMT_SIMD_LAYERNORM_INL_H_
#undef NUMFMT_SIMD_LAYERNORM_INL_H_
#else
#define NUMFMT_SIMD_LAYERNORM_INL_H_
#endif

#include "codec-inl.h"
#include "norm_job.hpp"

HWY_BEFORE_NAMESPACE();
namespace numfmt {
namespace simd {
namespace HWY_NAMESPACE {
namespace {  // a unit may be built for more than its target: its functions stay its own

#if HWY_TARGET != HWY_SCALAR

// Lanes(D8()) elements as floats, in order.
template <class X> HWY_INLINE void load_four(const X* x, VF& a, VF& b, VF& c, VF& d) {
    const size_t n = hn::Lanes(DF());
    if constexpr (sizeof(X) == 1) {
        const hn::Rebind<uint8_t, D16> half;
        const auto* const codes = reinterpret_cast<const uint8_t*>(x);
        const V16 lo = decode16<X>(hn::PromoteTo(D16(), hn::LoadU(half, codes)));
        const V16 hi = decode16<X>(hn::PromoteTo(D16(), hn::LoadU(half, codes + 2 * n)));
        a = widen_lower(lo);
        b = widen_upper(lo);
        c = widen_lower(hi);
        d = widen_upper(hi);
    } else {
        a = load_floats(x);
        b = load_floats(x + n);
        c = load_floats(x + 2 * n);
        d = load_floats(x + 3 * n);
    }
}

// Floats to Y under its default policies.
template <class Y> HWY_INLINE void store_four(VF a, VF b, VF c, VF d, Y* y, bool stream) {
    const size_t n = hn::Lanes(DF());
    if constexpr (std::is_same_v<Y, float>) {
        store(a, DF(), y, stream);
        store(b, DF(), y + n, stream);
        store(c, DF(), y + 2 * n, stream);
        store(d, DF(), y + 3 * n, stream);
    } else if constexpr (sizeof(Y) == 2) {
        store(narrow<Y>(a, b), D16(), y, stream);
        store(narrow<Y>(c, d), D16(), y + 2 * n, stream);
    } else {
        constexpr detail::encode_constants k = detail::make_constants<Y>(rounding::nearest_even, {});
        const V16 lo = encode16<Y, k.plain>(fold(a, b), k), hi = encode16<Y, k.plain>(fold(c, d), k);
        store(hn::ConcatEven(D8(), hn::BitCast(D8(), hi), hn::BitCast(D8(), lo)), D8(), y, stream);
    }
}

// Sums over a row's 64 chains: of x - shift, and of its squares.
template <bool Sum, bool Squares> struct row_chains {
    alignas(64) float sums[detail::norm_chains] = {};
    alignas(64) float squares[detail::norm_chains] = {};

    template <class X> HWY_NOINLINE void add_row(const X* x, int64_t n, float shift) {
        constexpr int64_t chains = detail::norm_chains;
        const DF df;
        const int64_t lanes = static_cast<int64_t>(hn::Lanes(df)), slice = 4 * lanes, whole = n / chains * chains;
        const VF subtract = hn::Set(df, shift);
        // What is missing of the last 64 elements adds nothing: its deviation is 0.
        alignas(64) float tail[chains];
        if (whole < n) fill_tail(x + whole, n - whole, shift, tail);
        for (int64_t first = 0; first < chains; first += slice) {
            VF s0 = hn::Zero(df), s1 = s0, s2 = s0, s3 = s0, q0 = s0, q1 = s0, q2 = s0, q3 = s0;
            VF a = s0, b = s0, c = s0, d = s0;
            const auto add = [&]() NUMFMT_SIMD_LAMBDA {
                a = hn::Sub(a, subtract);
                b = hn::Sub(b, subtract);
                c = hn::Sub(c, subtract);
                d = hn::Sub(d, subtract);
                if constexpr (Sum) {
                    s0 = hn::Add(s0, a);
                    s1 = hn::Add(s1, b);
                    s2 = hn::Add(s2, c);
                    s3 = hn::Add(s3, d);
                }
                if constexpr (Squares) {
                    q0 = hn::MulAdd(a, a, q0);
                    q1 = hn::MulAdd(b, b, q1);
                    q2 = hn::MulAdd(c, c, q2);
                    q3 = hn::MulAdd(d, d, q3);
                }
            };
            for (int64_t i = first; i < whole; i += chains) {
                load_four(x + i, a, b, c, d);
                add();
            }
            if (whole < n) {
                load_four(tail + first, a, b, c, d);
                add();
            }
            if constexpr (Sum) store_four(s0, s1, s2, s3, sums + first, false);
            if constexpr (Squares) store_four(q0, q1, q2, q3, squares + first, false);
        }
    }

  private:
    template <class X> static HWY_INLINE void fill_tail(const X* x, int64_t n, float pad, float* tail) {
        constexpr int64_t chains = detail::norm_chains;
        alignas(64) X part[chains] = {};
        std::memcpy(static_cast<void*>(part), x, static_cast<size_t>(n) * sizeof(X));
        const DF df;
        VF a = hn::Zero(df), b = a, c = a, d = a;
        for (int64_t i = 0; i < chains; i += static_cast<int64_t>(hn::Lanes(D8()))) {
            load_four(part + i, a, b, c, d);
            store_four(a, b, c, d, tail + i, false);
        }
        for (int64_t i = n; i < chains; ++i) tail[i] = pad;
    }
};

// As moments_of_row() of the reference.
template <class X> numfmt::accumulate::row_moments moments_of(const X* x, int64_t n, const detail::norm_job& job) {
    namespace acc = numfmt::accumulate;
    if (n <= 0) return {0, 0, 0};
    const auto mean_of = [n](const float* chains) NUMFMT_SIMD_LAMBDA {
        return acc::rounded_div(detail::chain_sum(chains), static_cast<float>(n));
    };
    if (!job.centred) {
        row_chains<false, true> chains;
        chains.add_row(x, n, 0.0f);
        return {0, 0, mean_of(chains.squares)};
    }
    float shift = 0;
    if (job.variance == variance_policy::shifted) shift = static_cast<float>(x[0]);
    if (job.variance == variance_policy::two_pass) {
        row_chains<true, false> first;
        first.add_row(x, n, 0.0f);
        shift = mean_of(first.sums);
    }
    row_chains<true, true> chains;
    chains.add_row(x, n, shift);
    return acc::moments_about(shift, mean_of(chains.sums), mean_of(chains.squares));
}

// Calls step(x, y, weight, bias, stream) for Lanes(D8()) elements at a time, on padded copies for the rest.
template <class X, class Y, class Step>
HWY_INLINE void for_each_four(const X* x, int64_t n, Y* y, detail::norm_vector weight, detail::norm_vector bias,
                              bool stream, const Step& step) {
    const int64_t width = static_cast<int64_t>(hn::Lanes(D8()));
    if (stream && reinterpret_cast<uintptr_t>(y) % static_cast<size_t>(width) != 0) stream = false;
    int64_t i = 0;
    for (; i + width <= n; i += width) step(x + i, y + i, weight.from(i), bias.from(i), stream);
    if (i == n) return;
    alignas(64) X in[max_lanes8] = {};
    alignas(64) Y out[max_lanes8];
    alignas(64) float w[max_lanes8] = {}, b[max_lanes8] = {};
    const int64_t count = n - i;
    std::memcpy(static_cast<void*>(in), x + i, static_cast<size_t>(count) * sizeof(X));
    weight.from(i).copy_to(w, count);
    bias.from(i).copy_to(b, count);
    step(in, out, weight.present() ? detail::norm_vector(w) : weight, bias.present() ? detail::norm_vector(b) : bias,
         false);
    std::memcpy(static_cast<void*>(y + i), out, static_cast<size_t>(count) * sizeof(Y));
}

HWY_INLINE void load_vector(detail::norm_vector v, VF& a, VF& b, VF& c, VF& d) {
    if (v.type == detail::norm_vector::kind::fp32)
        load_four(static_cast<const float*>(v.data), a, b, c, d);
    else if (v.type == detail::norm_vector::kind::bf16)
        load_four(static_cast<const bf16*>(v.data), a, b, c, d);
    else
        load_four(static_cast<const fp16*>(v.data), a, b, c, d);
}

/// residual[0 .. n) = X(x + residual), rounded to nearest even.
template <class X> void add_to_residual(const X* x, int64_t n, X* residual) {
    const auto step = [](const X* from, X* to, detail::norm_vector, detail::norm_vector, bool) NUMFMT_SIMD_LAMBDA {
        const DF df;
        VF a = hn::Zero(df), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
        load_four(from, a, b, c, d);
        load_four(static_cast<const X*>(to), e, f, g, h);
        store_four(hn::Add(a, e), hn::Add(b, f), hn::Add(c, g), hn::Add(d, h), to, false);
    };
    const int64_t width = static_cast<int64_t>(hn::Lanes(D8())), whole = n / width * width;
    for_each_four(x, whole, residual, {}, {}, false, step);
    for (int64_t i = whole; i < n; ++i) residual[i] = X(static_cast<float>(x[i]) + static_cast<float>(residual[i]));
}

/// y[0 .. n) = (((x * scale - shift) - offset) * rstd) * weight + bias. y may be x.
template <class X, class Y>
void normalise_row(const X* x, int64_t n, const numfmt::accumulate::row_statistics& s, detail::norm_vector weight,
                   detail::norm_vector bias, const X* next, Y* y, bool stream) {
    const DF df;
    const VF scale = hn::Set(df, s.scale), shift = hn::Set(df, s.shift), offset = hn::Set(df, s.offset),
             rstd = hn::Set(df, s.rstd);
    const auto ahead = reinterpret_cast<uintptr_t>(next) - reinterpret_cast<uintptr_t>(x);
    for_each_four(x, n, y, weight, bias, stream,
                  [&](const X* from, Y* to, detail::norm_vector w, detail::norm_vector b, bool streams)
                      NUMFMT_SIMD_LAMBDA {
                          if (next != nullptr) prefetch_ahead<max_lanes8>(from, ahead);
                          VF v0 = hn::Zero(df), v1 = v0, v2 = v0, v3 = v0, w0 = v0, w1 = v0, w2 = v0, w3 = v0;
                          load_four(from, v0, v1, v2, v3);
                          v0 = hn::Mul(hn::Sub(hn::MulSub(v0, scale, shift), offset), rstd);
                          v1 = hn::Mul(hn::Sub(hn::MulSub(v1, scale, shift), offset), rstd);
                          v2 = hn::Mul(hn::Sub(hn::MulSub(v2, scale, shift), offset), rstd);
                          v3 = hn::Mul(hn::Sub(hn::MulSub(v3, scale, shift), offset), rstd);
                          if (w.present()) {
                              load_vector(w, w0, w1, w2, w3);
                              if (b.present()) {
                                  VF b0 = hn::Zero(df), b1 = b0, b2 = b0, b3 = b0;
                                  load_vector(b, b0, b1, b2, b3);
                                  v0 = hn::MulAdd(v0, w0, b0);
                                  v1 = hn::MulAdd(v1, w1, b1);
                                  v2 = hn::MulAdd(v2, w2, b2);
                                  v3 = hn::MulAdd(v3, w3, b3);
                              } else {
                                  v0 = hn::Mul(v0, w0);
                                  v1 = hn::Mul(v1, w1);
                                  v2 = hn::Mul(v2, w2);
                                  v3 = hn::Mul(v3, w3);
                              }
                          } else if (b.present()) {
                              load_vector(b, w0, w1, w2, w3);
                              v0 = hn::Add(v0, w0);
                              v1 = hn::Add(v1, w1);
                              v2 = hn::Add(v2, w2);
                              v3 = hn::Add(v3, w3);
                          }
                          store_four(v0, v1, v2, v3, to, streams);
                      });
}

#else  // HWY_SCALAR: the reference

template <class X> numfmt::accumulate::row_moments moments_of(const X* x, int64_t n, const detail::norm_job& job) {
    return numfmt::accumulate::moments_of_row<detail::norm_accumulator>(
        [x](int64_t i) { return static_cast<float>(x[i]); }, n, job.centred, job.variance);
}
template <class X> void add_to_residual(const X* x, int64_t n, X* residual) {
    for (int64_t i = 0; i < n; ++i) residual[i] = X(static_cast<float>(x[i]) + static_cast<float>(residual[i]));
}
template <class X, class Y>
void normalise_row(const X* x, int64_t n, const numfmt::accumulate::row_statistics& s, detail::norm_vector weight,
                   detail::norm_vector bias, const X*, Y* y, bool) {
    for (int64_t i = 0; i < n; ++i)
        y[i] = Y(detail::weighted(numfmt::accumulate::normalised(static_cast<float>(x[i]), s), weight, bias, i));
}

#endif  // HWY_TARGET != HWY_SCALAR

/// Statistics of row `row` of a job, after its residual was added.
template <class X> numfmt::accumulate::row_statistics statistics_of(const detail::norm_job& job, int64_t row) {
    if (job.residual != nullptr)
        add_to_residual(static_cast<const X*>(job.x) + row * job.x_stride, job.cols,
                        static_cast<X*>(job.residual) + row * job.residual_stride);
    const X* const x = job.input<X>(row);
    return detail::statistics_from(moments_of(x, job.cols, job), x, job);
}

/// Columns [first, first + n) of a row, normalised.
template <class X, class Y>
void normalise_part(const detail::norm_job& job, int64_t row, const numfmt::accumulate::row_statistics& s,
                    int64_t first, int64_t n, Y* y) {
    const X* const next =
        row + 1 < job.last ? static_cast<const X*>(job.x) + (row + 1) * job.x_stride + first : nullptr;
    normalise_row(job.input<X>(row) + first, n, s, job.weight.from(first), job.bias.from(first), next, y, job.stream);
#if HWY_TARGET != HWY_SCALAR
    if (job.stream && row + 1 == job.last) hwy::FlushStream();
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace numfmt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
