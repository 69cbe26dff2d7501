// SPDX-License-Identifier: MIT
// What the tensor cores of the card in front of it do, found by small dot products and without assuming a model: how
// many products are summed at once, how many bits are kept, how terms are cut and results rounded, how C enters; and
// whether the library's model gives the same bits on random inputs.
//
//   nvcc -std=c++20 -O2 -arch=native -I include examples/tensor_core_probe.cu -o tensor_core_probe   (Hopper:
//   -arch=sm_90a)
//   ./tensor_core_probe [--model]      --model: probe the library's models of Hopper instead; needs no device
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <numfmt/cuda/ptx/tile_mma.cuh>

using namespace numfmt;
using namespace numfmt::accumulate;
namespace ptx = numfmt::cuda::ptx;

namespace {

bool model_only = false;
int capability = 90;

void check(cudaError_t e) {
    if (e == cudaSuccess) return;
    std::fprintf(stderr, "tensor_core_probe: %s\n", cudaGetErrorString(e));
    std::exit(1);
}

/// The library's model of an instruction on this device, if it has one; shorter instructions take the groups they fill.
template <class I> bool find_model(tensor_core_model& m) {
    namespace tc = tensor_cores;
    const bool fp8 = sizeof(typename I::storage) == 1, tf32_input = sizeof(typename I::storage) == 4;
    const bool ampere = capability >= 80 && capability < 90, hopper = capability == 90,
               datacentre = capability / 10 == 10;
    if (fp8) {
        if (I::warpgroup)
            m = I::fp16_output ? tc::hopper_wgmma_fp8_to_fp16 : tc::hopper_wgmma_fp8;
        else if (hopper || datacentre)
            m = I::fp16_output ? tc::hopper_mma_fp8_to_fp16 : tc::hopper_mma_fp8;
        else if (capability == 89)
            m = I::fp16_output ? tc::ada_fp8_to_fp16 : tc::ada_fp8;
        else
            return false;
    } else if (capability < 80) {
        return false;
    } else if (tf32_input) {
        m = ampere ? tc::ampere_tf32 : hopper ? tc::hopper_tf32 : tc::blackwell_tf32;
    } else if (I::fp16_output) {
        m = ampere ? tc::ampere_fp16_to_fp16 : hopper ? tc::hopper_fp16_to_fp16 : tc::blackwell_fp16_to_fp16;
    } else {
        m = ampere ? tc::ampere_16bit : hopper ? tc::hopper_16bit : tc::blackwell_16bit;
    }
    if (m.k > I::k) {
        m.k = I::k;
        m.group = std::min(m.group, I::k);
    }
    return true;
}

template <class F> typename F::storage code_of(double x) {
    if constexpr (sizeof(typename F::storage) == 4)
        return bit_cast<uint32_t>(static_cast<float>(x));
    else
        return F(static_cast<float>(x)).bits();
}

/// One instruction, by dot products: A and B are codes of I::k numbers, C and D values.
template <class I> class machine {
  public:
    using storage = typename I::storage;
    using format_a = typename I::format_a;
    using format_b = typename I::format_b;

    machine() : modelled_(find_model<I>(model_)) {
        if (model_only) return;
        check(cudaMalloc(&a_, ptx::tile_rows * I::k * sizeof(storage)));
        check(cudaMalloc(&b_, ptx::tile_cols * I::k * sizeof(storage)));
        check(cudaMalloc(&c_, outputs * 4));
        check(cudaMalloc(&d_, outputs * 4));
    }
    machine(const machine&) = delete;
    machine& operator=(const machine&) = delete;
    ~machine() {
        for (void* p : {static_cast<void*>(a_), static_cast<void*>(b_), static_cast<void*>(c_), static_cast<void*>(d_)})
            if (p != nullptr) cudaFree(p);
    }

    bool modelled() const { return modelled_; }
    const tensor_core_model& model() const { return model_; }

    /// D of a whole tile.
    std::vector<uint32_t> tile(const std::vector<storage>& a, const std::vector<storage>& b,
                               const std::vector<uint32_t>& c) {
        std::vector<uint32_t> d(outputs);
        if (model_only) return model_tile(a, b, c);
        check(cudaMemcpy(a_, a.data(), a.size() * sizeof(storage), cudaMemcpyHostToDevice));
        check(cudaMemcpy(b_, b.data(), b.size() * sizeof(storage), cudaMemcpyHostToDevice));
        check(cudaMemcpy(c_, c.data(), c.size() * 4, cudaMemcpyHostToDevice));
        ptx::tile_kernel<I><<<1, ptx::tile_threads>>>(a_, b_, c_, d_, I::k);
        check(cudaGetLastError());
        check(cudaMemcpy(d.data(), d_, d.size() * 4, cudaMemcpyDeviceToHost));
        return d;
    }
    std::vector<uint32_t> model_tile(const std::vector<storage>& a, const std::vector<storage>& b,
                                     const std::vector<uint32_t>& c) const {
        std::vector<tensor_core_operand> x(a.size()), y(b.size());
        to_operands<format_a>(a.data(), static_cast<int64_t>(a.size()), x.data());
        to_operands<format_b>(b.data(), static_cast<int64_t>(b.size()), y.data());
        std::vector<uint32_t> d(outputs);
        for (int i = 0; i < outputs; ++i)
            d[static_cast<size_t>(i)] =
                tensor_core_dot(model_, x.data() + i / ptx::tile_cols * I::k, y.data() + i % ptx::tile_cols * I::k,
                                I::k, c[static_cast<size_t>(i)]);
        return d;
    }

    /// D of one dot product of products given by value, each split into two powers of two times a small factor.
    double dot(double c, const std::vector<double>& products) {
        std::vector<storage> a(ptx::tile_rows * I::k), b(ptx::tile_cols * I::k);
        for (size_t i = 0; i < products.size(); ++i) {
            if (products[i] == 0) continue;
            const int e = std::ilogb(products[i]), half = e >= 0 ? e / 2 : -((1 - e) / 2);
            a[i] = code_of<format_a>(std::ldexp(products[i], half - e));
            b[i] = code_of<format_b>(std::ldexp(1.0, e - half));
        }
        std::vector<uint32_t> cs(outputs);
        cs[0] = I::fp16_output ? fp16(static_cast<float>(c)).bits() : bit_cast<uint32_t>(static_cast<float>(c));
        const uint32_t d = tile(a, b, cs)[0];
        if (I::fp16_output) return static_cast<double>(static_cast<float>(fp16::from_bits(static_cast<uint16_t>(d))));
        return static_cast<double>(bit_cast<float>(d));
    }

    static constexpr int outputs = ptx::tile_rows * ptx::tile_cols;

  private:
    storage *a_ = nullptr, *b_ = nullptr;
    uint32_t *c_ = nullptr, *d_ = nullptr;
    tensor_core_model model_ = tensor_cores::hopper_16bit;
    bool modelled_;
};

template <class I> void probe(const char* name) {
    if (capability < I::needs.oldest || (I::needs.only_hopper && capability != 90)) return;
    machine<I> m;
    // Positions 0, 1 and `third` are in one group everywhere that is known: fp8 instructions that are emulated take
    // products 0, 1, 4, 5, ... first.
    const int third = sizeof(typename I::storage) == 1 ? 4 : 2;
    const auto in_group = [&](double p0, double p1, double p2) {
        std::vector<double> p(static_cast<size_t>(I::k), 0);
        p[0] = p0;
        p[1] = p1;
        p[static_cast<size_t>(third)] = p2;
        return p;
    };
    // Large products that cancel; a third one that is still seen below them.
    const double large = sizeof(typename I::storage) == 1 ? 0x1p14 : 0x1p8;
    const double floor = I::fp16_output ? 0x1p-24 : 0;  // what the output can show at all
    int kept = 0;
    bool more = false;
    for (int j = 1; j <= 30; ++j) {
        const double small = std::ldexp(large, -j);
        if (small < floor || (sizeof(typename I::storage) == 1 && small < 0x1p-12)) {
            more = kept == j - 1;
            break;
        }
        if (m.dot(0, in_group(large, small, -large)) != 0) kept = j;
    }
    const double unit = std::ldexp(large, -kept);
    // Terms between two multiples of the last bit: cut toward zero, down, or rounded?
    const double up = m.dot(0, in_group(large, 1.5 * unit, -large)),
                 down = m.dot(0, in_group(large, -1.5 * unit, -large));
    const char* cut = up == unit && down == -unit       ? "toward zero"
                      : up == unit && down == -2 * unit ? "down"
                      : up == 2 * unit                  ? "to nearest"
                      : up == 1.5 * unit                ? "not cut"
                                                        : "?";
    // Which products share a group with 0 and 1.
    int group = 2;
    const double lost = unit / 2;
    bool visible = lost >= floor;
    std::string map = "..";
    for (int j = 2; j < I::k; ++j) {
        std::vector<double> p(static_cast<size_t>(I::k), 0);
        p[0] = large;
        p[1] = -large;
        p[static_cast<size_t>(j)] = lost;
        const bool same = m.dot(0, p) == 0;
        group += same ? 1 : 0;
        map += same ? '.' : '+';
    }
    // The output: how many fraction bits, and how it is rounded to them.
    int bits = 0;
    for (int j = 1; j <= kept && j <= 24; ++j)
        if (m.dot(0, in_group(large, std::ldexp(large, -j), 0)) != large) bits = j;
    const double ulp = std::ldexp(large, -bits);
    const double tie = bits < kept ? m.dot(0, in_group(large, ulp, ulp / 2)) : 0;
    const char* rounding = bits >= kept             ? "as terms"
                           : tie == large + ulp     ? "toward zero"
                           : tie == large + 2 * ulp ? "to nearest"
                                                    : "?";
    // C below the last bit of products that cancel: lost if it is one of the terms.
    const double with_c = m.dot(lost, in_group(large, 0, -large));
    const char* addend = !visible ? "?" : with_c == 0 ? "a term" : "added last";
    const double subnormal = std::ldexp(1.0, I::format_a::spec.min_exponent() - I::format_a::spec.mantissa_bits);
    std::vector<typename I::storage> a(ptx::tile_rows * I::k), b(ptx::tile_cols * I::k);
    a[0] = code_of<typename I::format_a>(subnormal);
    b[0] = code_of<typename I::format_b>(I::format_a::spec.max_exponent() > 100 ? 0x1p100 : 2.0);
    const bool keeps_subnormals = m.tile(a, b, std::vector<uint32_t>(m.outputs))[0] != 0;
    // The model on random codes, C as well.
    std::string verdict = "no model";
    if (m.modelled()) {
        uint64_t state = 12345;
        const auto next = [&] {
            state = state * 6364136223846793005u + 1442695040888963407u;
            return static_cast<uint32_t>(state >> 32);
        };
        int different = 0, compared = 0;
        for (int round = 0; round < 40; ++round) {
            const auto fill = [&](auto& v, const float_spec& s, int dropped) {
                for (auto& x : v) {
                    const uint32_t exponent = static_cast<uint32_t>(s.bias - 4) + next() % 8u;
                    const uint32_t code = (exponent << s.mantissa_bits | (next() & s.mantissa_mask())) |
                                          (next() % 2u != 0 ? s.sign_bit() : 0u);
                    x = static_cast<typename I::storage>(code << dropped);
                }
            };
            const int dropped = sizeof(typename I::storage) == 4 ? 13 : 0;
            fill(a, I::format_a::spec, dropped);
            fill(b, I::format_b::spec, dropped);
            std::vector<uint32_t> c(m.outputs);
            for (uint32_t& x : c) x = I::fp16_output ? 0x3000u + next() % 0x1400u : 0x3E000000u + next() % 0x4000000u;
            const auto d = m.tile(a, b, c), want = m.model_tile(a, b, c);
            for (size_t i = 0; i < d.size(); ++i) different += d[i] != want[i] ? 1 : 0;
            compared += static_cast<int>(d.size());
        }
        verdict = std::string(m.model().name) + ": " + std::to_string(different) + " of " + std::to_string(compared) +
                  " differ";
    }
    std::printf("%-26s %5d  %s%-3d %-12s %4d  %-12s %-11s %-8s %s\n", name, group, more ? ">=" : "  ", kept, cut, bits,
                rounding, addend, keeps_subnormals ? "kept" : "flushed", verdict.c_str());
    if (group != I::k) std::printf("%26s        products in one group with 0 and 1: %s (.)\n", "", map.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--model") == 0) {
            model_only = true;
        } else {
            std::puts(
                "usage: tensor_core_probe [--model]\nPrints what this device's tensor cores do; --model: what the "
                "library's models of Hopper do.");
            return std::strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    if (!model_only) {
        int devices = 0;
        if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
            std::puts("tensor_core_probe: there is no CUDA device (--model probes the models)");
            return 77;
        }
        cudaDeviceProp p{};
        check(cudaGetDeviceProperties(&p, 0));
        capability = 10 * p.major + p.minor;
        std::printf("%s, compute capability %d.%d\n", p.name, p.major, p.minor);
    } else {
        std::puts("the models of compute capability 9.0");
    }
    std::printf("%-26s %5s  %5s %-12s %4s  %-12s %-11s %-8s %s\n", "instruction", "group", "kept", "terms cut", "out",
                "rounded", "C is", "subnorm.", "model");
    std::printf("%-26s %5s  %5s %-12s %4s\n", "", "", "bits", "", "bits");
    probe<ptx::mma_bf16_k16>("mma m16n8k16 bf16");
    probe<ptx::mma_fp16_k16>("mma m16n8k16 fp16");
    probe<ptx::mma_fp16_k16_f16>("mma m16n8k16 fp16 to fp16");
    probe<ptx::mma_tf32_k8>("mma m16n8k8 tf32");
    probe<ptx::mma_e4m3_k32>("mma m16n8k32 e4m3");
    probe<ptx::mma_e5m2_k32>("mma m16n8k32 e5m2");
    probe<ptx::mma_e4m3_k32_f16>("mma m16n8k32 e4m3 to fp16");
    probe<ptx::wgmma_bf16>("wgmma bf16");
    probe<ptx::wgmma_fp16>("wgmma fp16");
    probe<ptx::wgmma_fp16_f16>("wgmma fp16 to fp16");
    probe<ptx::wgmma_tf32>("wgmma tf32");
    probe<ptx::wgmma_e4m3>("wgmma e4m3");
    probe<ptx::wgmma_e5m2>("wgmma e5m2");
    probe<ptx::wgmma_e4m3_f16>("wgmma e4m3 to fp16");
    return 0;
}
