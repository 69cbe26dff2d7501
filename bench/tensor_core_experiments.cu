// SPDX-License-Identifier: MIT
// Small designed inputs that decide what published models of the tensor core leave open or disagree on. Each prints the
// hardware's result and what every candidate gives; --json writes the same for docs/tensor_core.md.
//
//   nvcc -std=c++20 -O2 -arch=sm_90a -I include -I tests bench/tensor_core_experiments.cu -o tensor_core_experiments
//   ./tensor_core_experiments [--json FILE] [--dry-run]
//
// Exit code 0 when the library's model agrees everywhere, 1 otherwise, 77 without a device.
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>

#include <numfmt/accuracy/inputs.hpp>

#include "support/tensor_core_device.cuh"

using namespace numfmt_test;

namespace {

/// The code of a number that the format has exactly.
uint32_t code_of(const format_info& f, double x) {
    if (f.dropped > 0) return bit_cast<uint32_t>(static_cast<float>(x));
    for (uint32_t c = 0; c <= f.spec.code_mask(); ++c)
        if (value_of(f, c) == x && std::signbit(value_of(f, c)) == (x < 0)) return c;
    std::fprintf(stderr, "tensor_core_experiments: %s has no %a\n", f.name, x);
    std::exit(1);
}
/// A product of that value, shared between the two factors as evenly as their exponents allow.
struct factors {
    uint32_t a, b;
};
factors product(const instruction& i, double x) {
    if (x == 0) return {0, 0};
    int e = 0;
    double m = std::frexp(x, &e) * 2;  // x = m * 2^(e - 1)
    --e;
    // An integer significand that neither factor holds alone is split into two.
    const auto integer = static_cast<int64_t>(std::ldexp(std::fabs(m), 20));
    int64_t odd = integer;
    while (odd % 2 == 0) odd /= 2;
    int64_t p = odd, q = 1;
    const int64_t room = int64_t{1} << (std::min(i.a.spec.mantissa_bits, i.b.spec.mantissa_bits) + 1);
    for (int64_t d = 1; d < room && p >= room; ++d)
        if (odd % d == 0 && odd / d < room) p = odd / d, q = d;
    double pa = static_cast<double>(p), qb = static_cast<double>(q);
    int scale = 0;  // x = +-pa * qb * 2^scale
    std::frexp(x / (pa * qb), &scale);
    --scale;
    // A takes the larger share of a negative exponent when it has to.
    const int lo_a = i.a.spec.min_exponent() - i.a.spec.mantissa_bits,
              lo_b = i.b.spec.min_exponent() - i.b.spec.mantissa_bits;
    int share = scale / 2;
    share = std::max(share, lo_a);
    if (scale - share < lo_b) share = scale - lo_b;
    return {code_of(i.a, std::ldexp(x < 0 ? -pa : pa, share)), code_of(i.b, std::ldexp(qb, scale - share))};
}

/// An input made of values of products; nan and infinities are given as codes through `raw`.
dot_input input(const instruction& i, double c, const std::vector<double>& products, int instructions = 1) {
    dot_input in;
    in.a.assign(static_cast<size_t>(i.k * instructions), 0);
    in.b = in.a;
    for (size_t j = 0; j < products.size(); ++j) {
        const factors f = product(i, products[j]);
        in.a[j] = f.a;
        in.b[j] = f.b;
    }
    in.c = i.fp16_output ? fp16(c).bits() : bit_cast<uint32_t>(static_cast<float>(c));
    return in;
}

using model_function = std::function<uint32_t(const dot_input&)>;
struct outcome {
    std::string name;
    uint32_t result;
};
struct experiment {
    std::string question, instruction, text;
    uint32_t hardware = 0;
    bool fp16_output = false;
    std::vector<outcome> candidates;  // the library's model is the first
};

class program {
  public:
    explicit program(std::string json) : json_(std::move(json)) {}

    int run() {
        if (dry_run) {
            capability_ = 90;
            device_ = "none (dry run)";
        } else {
            cudaDeviceProp p{};
            NUMFMT_CUDA(cudaGetDeviceProperties(&p, 0));
            capability_ = 10 * p.major + p.minor;
            device_ = p.name;
        }
        std::printf("device %s, compute capability %d.%d\n", device_.c_str(), capability_ / 10, capability_ % 10);
        for (const instruction& i : instructions(capability_)) {
            const tensor_core_model* m = model_of(i, capability_);
            if (m == nullptr) continue;
            if (!layout_is_right(i, m)) {
                ++wrong_;
                continue;
            }
            exponent_floor(i, *m);
            exponent_floor_fp16(i, *m);
            addend_bits(i, *m);
            groups(i, *m);
            ignored_bits(i, *m);
            zeros(i, *m);
            overflow_and_rounding(i, *m);
            subnormal_inputs(i, *m);
            special_values(i, *m);
        }
        for (const instruction& i : instructions(capability_))
            if (i.name == "wgmma e4m3") error_of_long_chains(i, *model_of(i, capability_));
        std::printf("\n%zu experiments, the model differs in %d\n", done_.size(), wrong_);
        if (!json_.empty()) write_json();
        return wrong_ == 0 ? 0 : 1;
    }

  private:
    using named_model = std::pair<std::string, tensor_core_model>;

    static named_model with(const std::string& name, tensor_core_model m, void (*change)(tensor_core_model&)) {
        change(m);
        return {name, m};
    }

    /// Runs one input, prints and keeps what came out.
    uint32_t decide(const std::string& question, const instruction& i, const tensor_core_model& m, const dot_input& in,
                    const std::vector<named_model>& others,
                    const std::vector<std::pair<std::string, model_function>>& more = {}) {
        experiment e;
        e.question = question;
        e.instruction = i.name;
        e.fp16_output = i.fp16_output;
        e.hardware = run_dots(i, {in}, &m)[0];
        e.candidates.push_back({"model", model_dot(i, m, in)});
        for (const auto& [name, other] : others) e.candidates.push_back({name, model_dot(i, other, in)});
        for (const auto& [name, f] : more) e.candidates.push_back({name, f(in)});
        char part[160];
        std::snprintf(part, sizeof part, "C %a", result_value(i, in.c));
        e.text = part;
        // Runs of equal products are written once.
        for (size_t j = 0; j < in.a.size();) {
            size_t n = 1;
            while (j + n < in.a.size() && in.a[j + n] == in.a[j] && in.b[j + n] == in.b[j]) ++n;
            if (in.a[j] != 0 || in.b[j] != 0) {
                std::snprintf(part, sizeof part, "  [%zu]%s%s %0*X x %0*X (%a x %a)", j, n > 1 ? " x " : "",
                              n > 1 ? std::to_string(n).c_str() : "", 2 * i.a.bytes, in.a[j], 2 * i.b.bytes, in.b[j],
                              value_of(i.a, in.a[j]), value_of(i.b, in.b[j]));
                e.text += part;
            }
            j += n;
        }
        const bool right = e.hardware == e.candidates[0].result;
        wrong_ += right ? 0 : 1;
        std::printf("%s%s | %s | %s\n    hardware %0*X (%a)", right ? "" : "DIFFERENT ", question.c_str(),
                    i.name.c_str(), e.text.c_str(), i.fp16_output ? 4 : 8, e.hardware, result_value(i, e.hardware));
        for (const outcome& o : e.candidates)
            std::printf("; %s %0*X%s", o.name.c_str(), i.fp16_output ? 4 : 8, o.result,
                        o.result == e.hardware ? " fits" : "");
        std::printf("\n");
        done_.push_back(e);
        return e.hardware;
    }

    /// Terms of 2^u that together with others just reach 2^-149: they do if u is above the last bit that is kept.
    void exponent_floor(const instruction& i, const tensor_core_model& m) {
        if (i.fp16_output || i.a.spec.max_exponent() < 100 || m.k != m.group) return;
        const std::vector<named_model> others = {with("floor -126", m, [](auto& x) { x.exponent_floor = -126; }),
                                                 with("one higher", m, [](auto& x) { ++x.exponent_floor; }),
                                                 with("one lower", m, [](auto& x) { --x.exponent_floor; }),
                                                 with("none", m, [](auto& x) { x.exponent_floor = -1000; })};
        for (int u = -151; u >= -162; --u) {
            const int small = i.k > 4 ? i.k - 3 : 2;
            // 2^-149 - small * 2^u in one to three products of at most 8 bits each.
            int64_t rest = (int64_t{1} << (-149 - u)) - small;
            if (rest < 0) continue;
            std::vector<double> p(static_cast<size_t>(small), std::ldexp(1.0, u));
            for (int shift = 0; rest > 0; shift += 7, rest >>= 7)
                if ((rest & 127) != 0) p.push_back(std::ldexp(static_cast<double>(rest & 127), u + shift));
            if (static_cast<int>(p.size()) > i.k) continue;
            decide("is 2^" + std::to_string(u) + " kept among tiny terms", i, m, input(i, 0, p), others);
        }
    }

    /// A tie between 0 and 2^-24 that 2^u decides, if it is kept.
    void exponent_floor_fp16(const instruction& i, const tensor_core_model& m) {
        if (!i.fp16_output) return;
        const int smallest =
            i.a.spec.min_exponent() - i.a.spec.mantissa_bits + i.b.spec.min_exponent() - i.b.spec.mantissa_bits;
        if (smallest > -26) return;  // E4M3: no product is that small
        const std::vector<named_model> others = {with("one higher", m, [](auto& x) { ++x.exponent_floor; }),
                                                 with("one lower", m, [](auto& x) { --x.exponent_floor; }),
                                                 with("none", m, [](auto& x) { x.exponent_floor = -1000; })};
        for (int u = std::max(-49 + 0, smallest); u <= -28; ++u) {
            if (u > smallest + 6) break;
            decide("is 2^" + std::to_string(u) + " kept beside 2^-25", i, m, input(i, 0, {0x1p-25, std::ldexp(1.0, u)}),
                   others);
        }
    }

    /// How much of C is kept, and when it is cut.
    void addend_bits(const instruction& i, const tensor_core_model& m) {
        if (i.fp16_output) {
            for (const double c : {0x1.004p0, -0x1.004p0, 0x1p-24, 2048.0})
                decide("C alone", i, m, input(i, c, {}), {});
            decide("C and half an ulp", i, m, input(i, 1, {0x1p-6, 0x1p-6}), {});
            return;
        }
        std::vector<named_model> others = {
            with("C added last", m, [](auto& x) { x.addend = tensor_core_addend::added_last; }),
            with("C fused", m, [](auto& x) { x.addend = tensor_core_addend::fused; }),
            with("output of 23 bits", m, [](auto& x) { x.output = tensor_core_output::fp32; }),
            with("25 bits", m, [](auto& x) { x.fraction_bits = 25; }),
            with("output to nearest", m, [](auto& x) { x.output = tensor_core_output::fp32_nearest; })};
        for (const double c : {0x1.000002p0, -0x1.000002p0, 0x1.0008p0, -0x1.0008p0, 0x1.0004p0, 0x1.FFFFFEp0, 0x1p-126,
                               0x1p-139, 0x1p-140, 0x1p-149, -0x1p-149, 0x1.FFFFFEp127})
            decide("C alone, products zero", i, m, input(i, c, {}), others);
        // Products that cancel and push C's last bit below what is kept: is C cut like the products?
        const auto not_cut = [&](const dot_input& in) { return model_dot(i, m, input(i, result_value(i, in.c), {})); };
        const double beyond = std::ldexp(1.0, 2 - m.fraction_bits - 1);
        decide("C cut like the products", i, m, input(i, 0.5 + beyond, {4, -4}), others, {{"C not cut", not_cut}});
        decide("C cut like the products", i, m, input(i, -0.5 - beyond, {4, -4}), others, {{"C not cut", not_cut}});
        // Where the output has 13 bits: C's 14th, and a product that takes the sum into the binade below.
        const auto sum_of_exact = [](uint32_t bits) { return [bits](const dot_input&) { return bits; }; };
        if (m.output == tensor_core_output::fp22)
            decide("C cut before the sum", i, m, input(i, 0x1.0004p0, {-0x1p-13}), others,
                   {{"C not cut", sum_of_exact(0x3F7FFE00)}});
        decide("two halves below the last bit, one of them C", i, m, input(i, 0x1.0002p0, {0x1p-10, 0x1p-12}), others);
        decide("C far above the products", i, m, input(i, 16384, std::vector<double>(static_cast<size_t>(i.k), 1.0)),
               others);
        decide("C below the products", i, m, input(i, 0x1.8p-12, {1, 1}), others);
        decide("C at the last bit below a product", i, m, input(i, 0x1p-13, {1}), others);
        decide("C one below the last bit", i, m, input(i, 0x1.FFFFFEp-14, {1}), others);
        decide("C cancels", i, m, input(i, -1, {1, 0x1p-12}), others);
        // Two instructions: C enters the first, its result the second.
        std::vector<double> chain(static_cast<size_t>(2 * i.k), 0);
        chain[0] = 1;
        chain[static_cast<size_t>(i.k)] = 0x1p-10;
        decide("a chain of two, C != 0", i, m, input(i, 0x1.0006p0, chain, 2), others);
    }

    /// Large numbers that cancel at 0 and 1, and a small one at j: lost if all three are in one group.
    void groups(const instruction& i, const tensor_core_model& m) {
        const std::vector<named_model> others = {with("groups of 4", m,
                                                      [](auto& x) {
                                                          x.group = 4;
                                                          x.order = tensor_core_order::contiguous;
                                                      }),
                                                 with("groups of 8", m,
                                                      [](auto& x) {
                                                          x.group = 8 < x.k ? 8 : x.k;
                                                          x.order = tensor_core_order::contiguous;
                                                      }),
                                                 with("groups of 16", m,
                                                      [](auto& x) {
                                                          x.group = 16 < x.k ? 16 : x.k;
                                                          x.order = tensor_core_order::contiguous;
                                                      }),
                                                 with("one group", m, [](auto& x) {
                                                     x.group = x.k;
                                                     x.order = tensor_core_order::contiguous;
                                                 })};
        const int small = 2 - m.fraction_bits - 4 + 8;  // exponent of a term that does not reach 2^8's last bit
        const bool fits = small >= i.a.spec.min_exponent() + i.b.spec.min_exponent();
        const double large = fits ? 0x1p8 : 0x1p14, lost = std::ldexp(large, -m.fraction_bits - 1);
        std::string kept;
        for (int j = 2; j < i.k; ++j) {
            std::vector<double> p(static_cast<size_t>(i.k), 0);
            p[0] = large;
            p[1] = -large;
            p[static_cast<size_t>(j)] = i.fp16_output ? std::max(lost, 0x1p-24) : lost;
            const uint32_t d = decide("0, 1 and " + std::to_string(j) + " in one group", i, m, input(i, 0, p), others);
            kept += d == 0 ? '.' : '+';
        }
        std::printf("    %s: products 2, 3, ... beside 0 and 1: %s (. lost, + kept)\n", i.name.c_str(), kept.c_str());
    }

    /// The lower 13 bits of a tf32 register.
    void ignored_bits(const instruction& i, const tensor_core_model& m) {
        if (i.a.dropped == 0) return;
        const auto rounded = [&](uint32_t add) {
            return [&i, &m, add](const dot_input& in) {
                dot_input r = in;
                for (auto* v : {&r.a, &r.b})
                    for (uint32_t& x : *v) x = (x + add) & 0xFFFFE000u;
                return model_dot(i, m, r);
            };
        };
        for (const uint32_t bits :
             {0x3F801FFFu, 0x3F801000u, 0x3F801001u, 0xBF801FFFu, 0x00001FFFu, 0x7F800001u, 0x7FBFFFFFu, 0x7F7FFFFFu}) {
            dot_input in = input(i, 0, {});
            in.a[0] = bits;
            in.b[0] = 0x3F800000;
            decide("bits below tf32's last", i, m, in, {}, {{"rounded to nearest", rounded(0x1000)}});
        }
    }

    /// The sign of zero.
    void zeros(const instruction& i, const tensor_core_model& m) {
        const uint32_t minus_a = i.a.spec.sign_bit() << i.a.dropped, minus_c = i.fp16_output ? 0x8000u : 0x80000000u;
        const uint32_t one = code_of(i.b, 1);
        const auto negative = [&](const dot_input&) { return minus_c; };
        dot_input in = input(i, 0, {});
        in.c = minus_c;
        decide("C = -0, products +0 x +0", i, m, in, {}, {{"-0", negative}});
        for (int j = 0; j < i.k; ++j) {
            in.a[static_cast<size_t>(j)] = minus_a;
            in.b[static_cast<size_t>(j)] = one;
        }
        decide("C = -0, products -0", i, m, in, {}, {{"-0", negative}});
        in.c = 0;
        decide("C = +0, products -0", i, m, in, {}, {{"-0", negative}});
        decide("1 - 1, C = 0", i, m, input(i, 0, {1, -1}), {}, {{"-0", negative}});
        decide("-1 + 1, C = 0", i, m, input(i, 0, {-1, 1}), {}, {{"-0", negative}});
        decide("C = 1, product -1", i, m, input(i, 1, {-1}), {}, {{"-0", negative}});
        decide("C = -1, product 1", i, m, input(i, -1, {1}), {}, {{"-0", negative}});
        if (i.fp16_output) {
            if (i.a.spec.mantissa_bits == 10)
                decide("a negative number that rounds to zero", i, m, input(i, 0, {-0x1p-26}), {}, {{"-0", negative}});
        } else if (i.a.spec.max_exponent() > 100) {
            decide("a negative number that is cut to zero", i, m, input(i, 0, {-0x1p-150}), {}, {{"-0", negative}});
        }
    }

    void overflow_and_rounding(const instruction& i, const tensor_core_model& m) {
        const uint32_t largest = i.fp16_output ? 0x7BFFu : 0x7F7FFFFFu;
        const auto saturated = [&](const dot_input&) { return largest; };
        if (i.fp16_output) {
            for (const double p : {8.0, 15.0, 16.0, 17.0})
                if (i.a.spec.mantissa_bits == 10 || p == 8.0 || p == 16.0)
                    decide("65504 and a little", i, m, input(i, 65504, {p}), {}, {{"largest", saturated}});
            return;
        }
        const auto nearest = with("output to nearest", m, [](auto& x) { x.output = tensor_core_output::fp32_nearest; });
        decide("a tie", i, m, input(i, 1, {0x1p-10, 0x1p-14 * (m.fraction_bits > 13 ? 1 : 16)}), {nearest});
        if (i.a.spec.max_exponent() < 100) return;
        decide("overflow of a product", i, m, input(i, 0, {0x1p130}), {}, {{"largest", saturated}});
        decide("overflow of the sum", i, m, input(i, 0x1.FFFFFEp127, {0x1p104}), {}, {{"largest", saturated}});
        decide("just no overflow", i, m, input(i, 0x1.FFFFFEp127, {0x1p103}), {},
               {{"Inf", [](const auto&) { return 0x7F800000u; }}});
        decide("huge products that cancel", i, m, input(i, 3, {0x1p200, -0x1p200}), {},
               {{"largest", saturated}, {"NaN", [](const auto&) { return 0x7FFFFFFFu; }}});
        decide("more than the largest exponent, cancelling", i, m, input(i, 0, {0x1p200, -0x1p200, 0x1p190}), {},
               {{"largest", saturated}});
        decide("a tie of negative numbers", i, m, input(i, -1, {-0x1p-24}), {nearest});
    }

    /// Whether a subnormal factor is normalised before its exponent is used.
    void subnormal_inputs(const instruction& i, const tensor_core_model& m) {
        const int lo = i.a.spec.min_exponent(), down = std::min(i.a.spec.mantissa_bits, 3);
        const auto normalised = [&](const dot_input& in) {
            std::vector<tensor_core_operand> x, y;
            for (size_t j = 0; j < in.a.size(); ++j) {
                x.push_back(accumulate::detail::operand_of(i.a.spec, in.a[j] >> i.a.dropped));
                y.push_back(accumulate::detail::operand_of(i.b.spec, in.b[j] >> i.b.dropped));
            }
            for (auto* v : {&x, &y})
                for (tensor_core_operand& o : *v)
                    while (o.significand != 0 && std::abs(o.significand) < 1024 && o.exponent > -1000) {
                        o.significand = static_cast<int16_t>(o.significand * 2);
                        --o.exponent;
                    }
            return tensor_core_dot(m, x.data(), y.data(), static_cast<int64_t>(x.size()), in.c);
        };
        // A subnormal 2^(lo - down) times 2^t, and a term that the kept bits below 2^(lo + t) just miss.
        const int t = std::min(i.b.spec.max_exponent(), i.a.spec.max_exponent() > 100 ? 120 : 8);
        dot_input in = input(i, 0, {});
        in.a[0] = code_of(i.a, std::ldexp(1.0, lo - down));
        in.b[0] = code_of(i.b, std::ldexp(1.0, t));
        const double small = std::ldexp(1.0, lo + t - m.fraction_bits - 1);
        const int smallest = i.a.spec.min_exponent() + i.b.spec.min_exponent();
        if (std::ilogb(small) >= smallest) {
            const factors f = product(i, small);
            in.a[1] = f.a;
            in.b[1] = f.b;
        } else if (!i.fp16_output) {
            in.c = bit_cast<uint32_t>(static_cast<float>(small));
        } else {
            return;
        }
        decide("a subnormal factor", i, m, in, {}, {{"normalised first", normalised}});
        in = input(i, 0, {});
        in.a[0] = code_of(i.a, std::ldexp(1.0, lo - i.a.spec.mantissa_bits));
        in.b[0] = code_of(i.b, std::ldexp(1.0, t));
        decide("a subnormal factor alone", i, m, in, {}, {{"flushed", [](const auto&) { return 0u; }}});
    }

    void special_values(const instruction& i, const tensor_core_model& m) {
        const uint32_t nan_a = i.a.spec.quiet_nan_code() << i.a.dropped, one = code_of(i.b, 1), zero = 0;
        const auto run = [&](const char* text, uint32_t a, uint32_t b, double c) {
            dot_input in = input(i, c, {});
            in.a[i.k > 1 ? 1 : 0] = a;
            in.b[i.k > 1 ? 1 : 0] = b;
            decide(text, i, m, in, {});
        };
        run("NaN x 1", nan_a, one, 0);
        run("NaN x 0", nan_a, zero, 0);
        run("-NaN x 1", nan_a | i.a.spec.sign_bit() << i.a.dropped, one, 0);
        run("1 x 1, C = NaN", code_of(i.a, 1), one, NAN);
        run("1 x 1, C = Inf", code_of(i.a, 1), one, INFINITY);
        run("1 x 1, C = -Inf", code_of(i.a, 1), one, -INFINITY);
        if (!i.a.spec.has_infinity()) return;
        const uint32_t inf = i.a.spec.infinity_code() << i.a.dropped;
        run("Inf x 1", inf, one, 0);
        run("Inf x 0", inf, zero, 0);
        run("Inf x 1, C = -Inf", inf, one, -INFINITY);
        run("-Inf x 1, C = NaN", inf | i.a.spec.sign_bit() << i.a.dropped, one, NAN);
    }

    /// The relative error of whole chains on one tile, hardware beside model: positive data (uniform over [0, 1) and
    /// the same times 448), normal data; and how many of the 512 results differ.
    void error_of_long_chains(const instruction& i, const tensor_core_model& m) {
        struct data_set {
            const char* name;
            bool positive;
            double scale;
        };
        for (const data_set set : {data_set{"uniform [0, 1)", true, 1}, data_set{"uniform [0, 448)", true, 448},
                                   data_set{"normal", false, 1}}) {
            for (const int64_t k : {4096, 131072}) {
                const auto numbers = [&](uint64_t seed, int64_t rows) {
                    std::vector<float> x(static_cast<size_t>(rows * k));
                    using accuracy::distribution;
                    accuracy::fill(set.positive ? distribution::uniform : distribution::gaussian, seed, 0, x.data(),
                                   rows * k, set.positive ? 1 / std::sqrt(12.0) : 1.0);
                    std::vector<uint8_t> codes;
                    for (const float v : x)
                        codes.push_back(fp8_e4m3(static_cast<float>(set.scale) * (set.positive ? v + 0.5f : v)).bits());
                    return codes;
                };
                const std::vector<uint8_t> a = numbers(1, ptx::tile_rows), b = numbers(2, ptx::tile_cols);
                array<uint8_t> da(a.size()), db(b.size());
                array<uint32_t> dc(ptx::tile_rows * ptx::tile_cols), dd(dc.size());
                da.set(a);
                db.set(b);
                run_tiles(i, da.data(), db.data(), dc.data(), dd.data(), k, 1, &m);
                const std::vector<uint32_t> d = dd.host();
                std::vector<tensor_core_operand> x(a.size()), y(b.size());
                to_operands<fp8_e4m3>(a.data(), static_cast<int64_t>(a.size()), x.data());
                to_operands<fp8_e4m3>(b.data(), static_cast<int64_t>(b.size()), y.data());
                double signal = 0, noise = 0, promoted = 0;
                int different = 0;
                const int rows = dry_run ? 2 : ptx::tile_rows;
                for (int64_t r = 0; r < rows; ++r) {
                    for (int64_t c = 0; c < ptx::tile_cols; ++c) {
                        double exact = 0;
                        for (int64_t j = 0; j < k; ++j)
                            exact += static_cast<double>(
                                         static_cast<float>(fp8_e4m3::from_bits(a[static_cast<size_t>(r * k + j)]))) *
                                     static_cast<double>(
                                         static_cast<float>(fp8_e4m3::from_bits(b[static_cast<size_t>(c * k + j)])));
                        const uint32_t got = d[static_cast<size_t>(r * ptx::tile_cols + c)];
                        different += got != tensor_core_dot(m, x.data() + r * k, y.data() + c * k, k);
                        const double e = result_value(i, got) - exact;
                        const double p = static_cast<double>(bit_cast<float>(
                                             tensor_core_dot(m, x.data() + r * k, y.data() + c * k, k, 0, 128))) -
                                         exact;
                        signal += exact * exact;
                        noise += e * e;
                        promoted += p * p;
                    }
                }
                chains_.push_back({set.name, k, std::sqrt(noise / signal), std::sqrt(promoted / signal), different});
                std::printf(
                    "%s, K = %lld: relative error %.4g, promoted every 128 (model) %.4g; %d results differ from the "
                    "model\n",
                    set.name, static_cast<long long>(k), std::sqrt(noise / signal), std::sqrt(promoted / signal),
                    different);
                wrong_ += different > 0 ? 1 : 0;
            }
        }
    }

    void write_json() const {
        std::ofstream out(json_);
        out << "{\n  \"device\": \"" << device_ << "\",\n  \"compute_capability\": " << capability_
            << ",\n  \"different\": " << wrong_ << ",\n  \"experiments\": [\n";
        char digits[16];
        for (size_t n = 0; n < done_.size(); ++n) {
            const experiment& e = done_[n];
            const auto hex = [&](uint32_t bits) {
                std::snprintf(digits, sizeof digits, "%0*X", e.fp16_output ? 4 : 8, bits);
                return std::string(digits);
            };
            out << "    {\"question\": \"" << e.question << "\", \"instruction\": \"" << e.instruction
                << "\", \"input\": \"" << e.text << "\", \"hardware\": \"" << hex(e.hardware)
                << "\", \"candidates\": {";
            for (size_t c = 0; c < e.candidates.size(); ++c)
                out << (c > 0 ? ", " : "") << '"' << e.candidates[c].name << "\": \"" << hex(e.candidates[c].result)
                    << '"';
            out << (n + 1 < done_.size() ? "}},\n" : "}}\n");
        }
        out << "  ],\n  \"chains\": [\n";
        for (size_t n = 0; n < chains_.size(); ++n)
            out << "    {\"data\": \"" << chains_[n].data << "\", \"k\": " << chains_[n].k
                << ", \"relative_error\": " << chains_[n].error << ", \"promoted_every_128\": " << chains_[n].promoted
                << ", \"different_from_model\": " << chains_[n].different << (n + 1 < chains_.size() ? "},\n" : "}\n");
        out << "  ]\n}\n";
        if (!out.flush()) std::fprintf(stderr, "tensor_core_experiments: cannot write %s\n", json_.c_str());
    }

    struct chain_row {
        std::string data;
        int64_t k;
        double error, promoted;
        int different;
    };
    std::string json_, device_;
    int capability_ = 0, wrong_ = 0;
    std::vector<experiment> done_;
    std::vector<chain_row> chains_;
};

}  // namespace

int main(int argc, char** argv) {
    std::string json;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if (option == "--dry-run") {
            dry_run = true;
        } else if (option == "--json" && i + 1 < argc) {
            json = argv[++i];
        } else {
            std::puts("usage: tensor_core_experiments [--json FILE] [--dry-run]");
            return option == "--help" ? 0 : 2;
        }
    }
    int devices = 0;
    if (!dry_run && (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)) {
        std::puts("SKIPPED: no CUDA device");
        return 77;
    }
    return program(json).run();
}
