// SPDX-License-Identifier: MIT
// accumulation_error: every way to form the sum, its a-priori error bounds, and which inputs it takes.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <numfmt/accumulate/policies.hpp>
#include <numfmt/accumulate/tensor_core.hpp>
#include <numfmt/bf16.hpp>
#include <numfmt/fp16.hpp>
#include <numfmt/fp8.hpp>

namespace accumulation {

namespace na = numfmt::accumulate;
namespace tc = numfmt::accumulate::tensor_cores;

enum class input_format { e4m3, bf16, fp16 };

/// One dot product's numbers, as floats and as tensor-core operands.
struct operands {
    std::vector<float> x, y;
    std::vector<na::tensor_core_operand> a, b;
};

/// A bound on |error| / sum |x y| before anything is computed, as a function of the number of terms.
struct bound {
    std::string formula;  // "n u"
    std::function<double(double n)> value;
};

struct accumulator {
    std::string name;   // as the command line has it
    std::string text;   // what it is
    std::string group;  // "fp32", "compensated", "narrow", "tensor core": a colour of the plot
    bool takes_bf16 = true, takes_fp16 = true;
    std::function<float(const operands&)> dot;
    bound worst;     // holds for every input
    bound expected;  // what independent errors of mean 0 would come to; RZ accumulators break that assumption
};

template <class A> float run(const operands& o) {
    return na::dot<A>(o.x.data(), o.y.data(), static_cast<std::int64_t>(o.x.size()));
}

inline std::vector<accumulator> all_accumulators() {
    using numfmt::bf16;
    using numfmt::fp16;
    constexpr double u = 0x1p-24, u_bf16 = 0x1p-8, u_fp16 = 0x1p-11;
    const auto of = [](const char* formula, auto f) { return bound{formula, f}; };
    std::vector<accumulator> all;
    const auto add = [&](const char* name, const char* text, const char* group, auto dot, bound worst, bound expected) {
        all.push_back({name, text, group, true, true, dot, std::move(worst), std::move(expected)});
    };
    add("fp32", "one fp32 chain of FMAs", "fp32", run<na::sequential<float>>,
        of("n u", [=](double n) { return n * u; }), of("sqrt(n) u", [=](double n) { return std::sqrt(n) * u; }));
    add("fp32_lanes", "fp32, 16 lanes x 4, then a tree", "fp32", run<na::interleaved<na::sequential<float>, 16, 4>>,
        of("(n/64 + 6) u", [=](double n) { return (n / 64 + 6) * u; }),
        of("sqrt(n/64 + 6) u", [=](double n) { return std::sqrt(n / 64 + 6) * u; }));
    add("fp32_pairwise", "fp32, balanced tree", "fp32", run<na::pairwise<na::sequential<float>>>,
        of("(log2(n) + 1) u", [=](double n) { return (std::log2(n) + 1) * u; }),
        of("sqrt(log2(n) + 1) u", [=](double n) { return std::sqrt(std::log2(n) + 1) * u; }));
    add("fp32_kahan", "fp32, Kahan", "compensated", run<na::kahan<float>>,
        of("2u + 2 n u^2", [=](double n) { return 2 * u + 2 * n * u * u; }), of("u", [=](double) { return u; }));
    add("fp32_neumaier", "fp32, Neumaier", "compensated", run<na::neumaier<float>>,
        of("2u + n^2 u^2", [=](double n) { return 2 * u + n * n * u * u; }), of("u", [=](double) { return u; }));
    add("fp32_dot2", "fp32, Dot2", "compensated", run<na::dot2<float>>,
        of("u + n^2 u^2", [=](double n) { return u + n * n * u * u; }), of("u", [=](double) { return u; }));
    add("fp64", "double, rounded to fp32", "compensated", run<na::in_double>,
        of("u + n 2^-53", [=](double n) { return u + n * 0x1p-53; }), of("u", [=](double) { return u; }));
    add("bf16", "one bf16 chain", "narrow", run<na::rounded_to<bf16>>,
        of("n u, u = 2^-8", [=](double n) { return n * u_bf16; }),
        of("sqrt(n) u", [=](double n) { return std::sqrt(n) * u_bf16; }));
    add("fp16", "one fp16 chain", "narrow", run<na::rounded_to<fp16>>,
        of("n u, u = 2^-11", [=](double n) { return n * u_fp16; }),
        of("sqrt(n) u", [=](double n) { return std::sqrt(n) * u_fp16; }));
    add("bf16_promoted_128", "bf16, to fp32 every 128", "narrow", run<na::promoted<na::rounded_to<bf16>, 128>>,
        of("128 u + n/128 2^-24", [=](double n) { return std::fmin(n, 128) * u_bf16 + n / 128 * u; }),
        of("sqrt(128) u", [=](double n) { return std::sqrt(std::fmin(n, 128)) * u_bf16; }));

    // A group of g products cuts g + 1 terms by at most 2^-F of the largest and its output by one unit; a chain has n /
    // g.
    const auto tensor = [&](const char* name, const char* text, const na::tensor_core_model& m, std::int64_t every,
                            bool bf16_too, bool fp16_too) {
        const double out = m.output == na::tensor_core_output::fp22 ? 0x1p-13 : 0x1p-23;
        const double step = (m.group + 1) * std::ldexp(1.0, -m.fraction_bits) + out;
        const double group = m.group;
        const auto chain = [=](double n) { return every > 0 ? std::fmin(n, static_cast<double>(every)) : n; };
        const auto outer = [=](double n) { return every > 0 ? n / static_cast<double>(every) * u : 0.0; };
        // An emulated instruction adds C in fp32 once more.
        const double last = m.addend == na::tensor_core_addend::added_last ? u : 0.0;
        accumulator a{name,
                      text,
                      "tensor core",
                      bf16_too,
                      fp16_too,
                      [m, every](const operands& o) {
                          return numfmt::bit_cast<float>(na::tensor_core_dot(
                              m, o.a.data(), o.b.data(), static_cast<std::int64_t>(o.a.size()), 0, every));
                      },
                      of("n/g ((g + 1) 2^-F + ulp)",
                         [=](double n) { return std::ceil(chain(n) / group) * (step + last) + outer(n); }),
                      of("sqrt(n/g) ulp", [=](double n) { return std::sqrt(std::ceil(chain(n) / group)) * out; })};
        all.push_back(std::move(a));
    };
    tensor("v100", "V100 fp16", tc::volta_fp16, 0, false, true);
    tensor("a100", "A100, Ada fp16, bf16", tc::ampere_16bit, 0, true, true);
    tensor("hopper", "Hopper, Blackwell fp16, bf16", tc::hopper_16bit, 0, true, true);
    tensor("hopper_tf32", "Hopper tf32", tc::hopper_tf32, 0, true, true);
    tensor("hopper_mma_fp8", "Hopper mma.sync fp8 (emulated)", tc::hopper_mma_fp8, 0, false, false);
    tensor("hopper_wgmma_fp8", "Hopper wgmma fp8", tc::hopper_wgmma_fp8, 0, false, false);
    tensor("hopper_wgmma_fp8_promoted_128", "the same, to fp32 every 128", tc::hopper_wgmma_fp8, 128, false, false);
    tensor("hopper_wgmma_fp8_promoted_512", "the same, to fp32 every 512", tc::hopper_wgmma_fp8, 512, false, false);
    tensor("ada_fp8", "Ada fp8", tc::ada_fp8, 0, false, false);
    tensor("blackwell_fp8", "Blackwell f8f6f4 (published)", tc::blackwell_f8f6f4, 0, false, false);
    return all;
}

}  // namespace accumulation
