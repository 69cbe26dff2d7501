// SPDX-License-Identifier: MIT
// What the programs that hold the tensor core's model against a GPU share: the instructions as a list, arrays on the
// device (or, in a dry run, on the host, where the model stands in for the hardware), and single dot products.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include <numfmt/cuda/ptx/tile_mma.cuh>

namespace numfmt_test {

using namespace numfmt;
using namespace numfmt::accumulate;
namespace tc = numfmt::accumulate::tensor_cores;
namespace ptx = numfmt::cuda::ptx;

/// True: no device is used; the "hardware" is the model.
inline bool dry_run = false;

#define NUMFMT_CUDA(call)                                                                                         \
    do {                                                                                                          \
        const cudaError_t numfmt_error = (call);                                                                  \
        if (numfmt_error != cudaSuccess) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(numfmt_error)); \
            std::exit(1);                                                                                         \
        }                                                                                                         \
    } while (false)

/// Zeroed memory that kernels (in a dry run: host loops) work on.
template <class T> class array {
  public:
    explicit array(size_t n) : n_(n) {
        if (dry_run) {
            data_ = static_cast<T*>(std::calloc(n > 0 ? n : 1, sizeof(T)));
        } else {
            NUMFMT_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), n > 0 ? n * sizeof(T) : 1));
            NUMFMT_CUDA(cudaMemset(data_, 0, n * sizeof(T)));
        }
    }
    array(const array&) = delete;
    array& operator=(const array&) = delete;
    ~array() {
        if (dry_run)
            std::free(data_);
        else
            cudaFree(data_);
    }
    T* data() const { return data_; }
    size_t size() const { return n_; }
    std::vector<T> host(size_t first, size_t n) const {
        std::vector<T> v(n);
        copy(v.data(), data_ + first, n * sizeof(T), cudaMemcpyDeviceToHost);
        return v;
    }
    std::vector<T> host() const { return host(0, n_); }
    void set(const std::vector<T>& v) { copy(data_, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice); }

  private:
    static void copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
        if (bytes == 0) return;
        if (dry_run)
            std::memcpy(to, from, bytes);
        else
            NUMFMT_CUDA(cudaMemcpy(to, from, bytes, kind));
    }
    T* data_ = nullptr;
    size_t n_;
};

template <class F> __global__ void index_kernel(F f, int64_t n) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) f(i);
}
/// f(i) for 0 <= i < n; f is a function object for host and device.
template <class F> void for_each_index(int64_t n, F f) {
    if (dry_run) {
        for (int64_t i = 0; i < n; ++i) f(i);
    } else if (n > 0) {
        index_kernel<<<static_cast<unsigned>((n + 127) / 128), 128>>>(f, n);
        NUMFMT_CUDA(cudaGetLastError());
    }
}

/// A format as run-time data.
struct format_info {
    const char* name;
    float_spec spec;
    int bytes;
    int dropped;  ///< low bits of the storage that do not belong to the number: 13 for tf32
};
template <class F> format_info info_of() {
    return {F::name, F::spec, static_cast<int>(sizeof(typename F::storage)), sizeof(typename F::storage) == 4 ? 13 : 0};
}
NUMFMT_FN uint32_t load_code(const void* p, int64_t i, int bytes) {
    if (bytes == 1) return static_cast<const uint8_t*>(p)[i];
    if (bytes == 2) return static_cast<const uint16_t*>(p)[i];
    return static_cast<const uint32_t*>(p)[i];
}
NUMFMT_FN void store_code(void* p, int64_t i, int bytes, uint32_t code) {
    if (bytes == 1)
        static_cast<uint8_t*>(p)[i] = static_cast<uint8_t>(code);
    else if (bytes == 2)
        static_cast<uint16_t*>(p)[i] = static_cast<uint16_t>(code);
    else
        static_cast<uint32_t*>(p)[i] = code;
}

/// One instruction, its type erased.
struct instruction {
    std::string name;  ///< "wgmma bf16"
    const char* ptx;
    format_info a, b;
    int k;
    bool fp16_output, warpgroup;
    ptx::instruction_needs needs;
    cudaError_t (*launch)(const void* a, const void* b, const uint32_t* c, uint32_t* d, int64_t k, int64_t tiles);
};

template <class I> instruction describe(const char* name) {
    instruction i;
    i.name = name;
    i.ptx = I::name;
    i.a = info_of<typename I::format_a>();
    i.b = info_of<typename I::format_b>();
    i.k = I::k;
    i.fp16_output = I::fp16_output;
    i.warpgroup = I::warpgroup;
    i.needs = I::needs;
    i.launch = [](const void* a, const void* b, const uint32_t* c, uint32_t* d, int64_t k, int64_t tiles) {
        using storage = typename I::storage;
        ptx::tile_kernel<I><<<static_cast<unsigned>(tiles), ptx::tile_threads>>>(
            static_cast<const storage*>(a), static_cast<const storage*>(b), c, d, k);
        return cudaGetLastError();
    };
    return i;
}

/// The instructions that a device of this compute capability (10 * major + minor) has.
inline std::vector<instruction> instructions(int capability) {
    const std::vector<instruction> all = {
        describe<ptx::mma_bf16_k16>("mma m16n8k16 bf16"),
        describe<ptx::mma_bf16_k8>("mma m16n8k8 bf16"),
        describe<ptx::mma_fp16_k16>("mma m16n8k16 fp16"),
        describe<ptx::mma_fp16_k8>("mma m16n8k8 fp16"),
        describe<ptx::mma_fp16_k16_f16>("mma m16n8k16 fp16 to fp16"),
        describe<ptx::mma_tf32_k8>("mma m16n8k8 tf32"),
        describe<ptx::mma_tf32_k4>("mma m16n8k4 tf32"),
        describe<ptx::mma_e4m3_k32>("mma m16n8k32 e4m3"),
        describe<ptx::mma_e5m2_k32>("mma m16n8k32 e5m2"),
        describe<ptx::mma_e4m3_e5m2_k32>("mma m16n8k32 e4m3 x e5m2"),
        describe<ptx::mma_e4m3_k32_f16>("mma m16n8k32 e4m3 to fp16"),
        describe<ptx::mma_e5m2_k32_f16>("mma m16n8k32 e5m2 to fp16"),
        describe<ptx::wgmma_bf16>("wgmma bf16"),
        describe<ptx::wgmma_fp16>("wgmma fp16"),
        describe<ptx::wgmma_fp16_f16>("wgmma fp16 to fp16"),
        describe<ptx::wgmma_tf32>("wgmma tf32"),
        describe<ptx::wgmma_e4m3>("wgmma e4m3"),
        describe<ptx::wgmma_e5m2>("wgmma e5m2"),
        describe<ptx::wgmma_e4m3_e5m2>("wgmma e4m3 x e5m2"),
        describe<ptx::wgmma_e4m3_f16>("wgmma e4m3 to fp16"),
        describe<ptx::wgmma_e5m2_f16>("wgmma e5m2 to fp16"),
    };
    std::vector<instruction> there;
    for (const instruction& i : all)
        if (capability >= i.needs.oldest && (!i.needs.only_hopper || capability == 90)) there.push_back(i);
    return there;
}

/// The library's model of an instruction on a device, or null where it has none.
inline const tensor_core_model* model_of(const instruction& i, int capability) {
    const bool fp8 = i.a.bytes == 1, tf32_input = i.a.bytes == 4, hopper = capability == 90, ada = capability == 89,
               ampere = capability >= 80 && capability < 90, blackwell = capability >= 100;
    static tensor_core_model kept[64];
    static int used = 0;
    const tensor_core_model* m = nullptr;
    if (fp8) {
        if (i.warpgroup)
            m = i.fp16_output ? &tc::hopper_wgmma_fp8_to_fp16 : &tc::hopper_wgmma_fp8;
        else if (hopper || capability / 10 == 10)
            m = i.fp16_output ? &tc::hopper_mma_fp8_to_fp16 : &tc::hopper_mma_fp8;
        else if (ada)
            m = i.fp16_output ? &tc::ada_fp8_to_fp16 : &tc::ada_fp8;
    } else if (tf32_input) {
        m = hopper ? &tc::hopper_tf32 : ampere ? &tc::ampere_tf32 : blackwell ? &tc::blackwell_tf32 : nullptr;
    } else if (i.fp16_output) {
        m = hopper      ? &tc::hopper_fp16_to_fp16
            : ampere    ? &tc::ampere_fp16_to_fp16
            : blackwell ? &tc::blackwell_fp16_to_fp16
                        : nullptr;
    } else {
        m = hopper ? &tc::hopper_16bit : ampere ? &tc::ampere_16bit : blackwell ? &tc::blackwell_16bit : nullptr;
    }
    if (m == nullptr || m->k <= i.k || used == 64) return m;
    // A shorter instruction of the same kind: the same groups, as far as they go.
    kept[used] = *m;
    kept[used].k = i.k;
    kept[used].group = std::min(m->group, i.k);
    return &kept[used++];
}

/// Operands of one instruction, decoded where they are used.
struct dot_source {
    const void *a, *b;  ///< rows of codes
    format_info a_format, b_format;

    NUMFMT_FN tensor_core_operand operand(bool of_b, int64_t k) const {
        const format_info& f = of_b ? b_format : a_format;
        const uint32_t code = load_code(of_b ? b : a, k, f.bytes);
        return accumulate::detail::operand_of(f.spec, code >> f.dropped);
    }
    /// D of the chain over k products by a model.
    NUMFMT_HD uint32_t dot(const tensor_core_model& m, int64_t a_first, int64_t b_first, int64_t k, uint32_t c) const {
        uint32_t d = c;
        for (int64_t i = 0; i < k; i += m.k) {
            tensor_core_operand x[32], y[32];
            for (int j = 0; j < m.k; ++j) {
                x[j] = operand(false, a_first + i + j);
                y[j] = operand(true, b_first + i + j);
            }
            d = tensor_core_instruction(m, x, y, d);
        }
        return d;
    }
};

/// The model over tiles: what a dry run takes for the hardware.
struct model_tiles {
    dot_source source;
    tensor_core_model model;
    const uint32_t* c;
    uint32_t* d;
    int64_t k;

    NUMFMT_HD void operator()(int64_t i) const {
        const int64_t tile = i / (ptx::tile_rows * ptx::tile_cols), at = i % (ptx::tile_rows * ptx::tile_cols);
        d[i] = source.dot(model, (tile * ptx::tile_rows + at / ptx::tile_cols) * k,
                          (tile * ptx::tile_cols + at % ptx::tile_cols) * k, k, c[i]);
    }
};

/// D of many tiles from the hardware (in a dry run: from `stand_in`).
inline void run_tiles(const instruction& i, const void* a, const void* b, const uint32_t* c, uint32_t* d, int64_t k,
                      int64_t tiles, const tensor_core_model* stand_in) {
    if (dry_run) {
        for_each_index(tiles * ptx::tile_rows * ptx::tile_cols, model_tiles{{a, b, i.a, i.b}, *stand_in, c, d, k});
    } else {
        NUMFMT_CUDA(i.launch(a, b, c, d, k, tiles));
        NUMFMT_CUDA(cudaDeviceSynchronize());
    }
}

/// One dot product as codes; k of them is a multiple of the instruction's k.
struct dot_input {
    std::vector<uint32_t> a, b;
    uint32_t c = 0;
};

/// The model's D of a single dot product.
inline uint32_t model_dot(const instruction& i, const tensor_core_model& m, const dot_input& in) {
    std::vector<tensor_core_operand> x, y;
    for (size_t j = 0; j < in.a.size(); ++j) {
        x.push_back(accumulate::detail::operand_of(i.a.spec, in.a[j] >> i.a.dropped));
        y.push_back(accumulate::detail::operand_of(i.b.spec, in.b[j] >> i.b.dropped));
    }
    return tensor_core_dot(m, x.data(), y.data(), static_cast<int64_t>(x.size()), in.c);
}

/// D of single dot products from the hardware, each in a tile of its own, at row 0 and column 0.
inline std::vector<uint32_t> run_dots(const instruction& i, const std::vector<dot_input>& inputs,
                                      const tensor_core_model* stand_in) {
    std::vector<uint32_t> results;
    if (inputs.empty()) return results;
    if (dry_run) {
        for (const dot_input& in : inputs) results.push_back(model_dot(i, *stand_in, in));
        return results;
    }
    const auto k = static_cast<int64_t>(inputs[0].a.size());
    const size_t tiles = inputs.size(), row = static_cast<size_t>(k) * static_cast<size_t>(i.a.bytes);
    std::vector<uint8_t> a(tiles * ptx::tile_rows * row), b(tiles * ptx::tile_cols * row);
    std::vector<uint32_t> c(tiles * ptx::tile_rows * ptx::tile_cols);
    for (size_t t = 0; t < tiles; ++t) {
        for (int64_t j = 0; j < k; ++j) {
            store_code(a.data() + t * ptx::tile_rows * row, j, i.a.bytes, inputs[t].a[static_cast<size_t>(j)]);
            store_code(b.data() + t * ptx::tile_cols * row, j, i.b.bytes, inputs[t].b[static_cast<size_t>(j)]);
        }
        c[t * ptx::tile_rows * ptx::tile_cols] = inputs[t].c;
    }
    array<uint8_t> da(a.size()), db(b.size());
    array<uint32_t> dc(c.size()), dd(c.size());
    da.set(a);
    db.set(b);
    dc.set(c);
    run_tiles(i, da.data(), db.data(), dc.data(), dd.data(), k, static_cast<int64_t>(tiles), stand_in);
    const std::vector<uint32_t> d = dd.host();
    for (size_t t = 0; t < tiles; ++t) results.push_back(d[t * ptx::tile_rows * ptx::tile_cols]);
    return results;
}

/// The value of a code, and of an addend or result.
inline double value_of(const format_info& f, uint32_t code) {
    const tensor_core_operand o = accumulate::detail::operand_of(f.spec, code >> f.dropped);
    if (o.exponent > 4000) return o.significand == 0 ? NAN : o.significand > 0 ? INFINITY : -INFINITY;
    return std::ldexp(static_cast<double>(o.significand), o.significand == 0 ? 0 : o.exponent - 10);
}
inline double result_value(const instruction& i, uint32_t bits) {
    if (i.fp16_output) return static_cast<double>(static_cast<float>(fp16::from_bits(static_cast<uint16_t>(bits))));
    return static_cast<double>(bit_cast<float>(bits));
}
inline bool is_zero(const format_info& f, uint32_t code) {
    return ((code >> f.dropped) & f.spec.magnitude_mask()) == 0;
}

/// Whether the fragments and descriptors are right at all: small integers, every row and column different, exact in
/// every format. Prints what is wrong.
inline bool layout_is_right(const instruction& i, const tensor_core_model* stand_in) {
    const auto code = [](const format_info& f, int x) -> uint32_t {  // x in 0 .. 7
        const float v = static_cast<float>(x);
        if (f.bytes == 4) return bit_cast<uint32_t>(v);
        if (f.spec.mantissa_bits == 7) return bf16(v).bits();
        if (f.spec.mantissa_bits == 10) return fp16(v).bits();
        return f.spec.mantissa_bits == 3 ? fp8_e4m3(v).bits() : fp8_e5m2(v).bits();
    };
    const int64_t k = 2 * i.k;
    std::vector<uint8_t> a(static_cast<size_t>(ptx::tile_rows * k * i.a.bytes)),
        b(static_cast<size_t>(ptx::tile_cols * k * i.b.bytes));
    std::vector<int> x(static_cast<size_t>(ptx::tile_rows * k)), y(static_cast<size_t>(ptx::tile_cols * k));
    std::vector<uint32_t> c(ptx::tile_rows * ptx::tile_cols);
    for (size_t n = 0; n < x.size(); ++n) {
        x[n] = static_cast<int>((n * 2654435761u >> 7) % 4);
        store_code(a.data(), static_cast<int64_t>(n), i.a.bytes, code(i.a, x[n]));
    }
    for (size_t n = 0; n < y.size(); ++n) {
        y[n] = static_cast<int>((n * 2246822519u >> 9) % 4);
        store_code(b.data(), static_cast<int64_t>(n), i.b.bytes, code(i.b, y[n]));
    }
    for (size_t n = 0; n < c.size(); ++n)
        c[n] = i.fp16_output ? fp16(static_cast<float>(n)).bits() : bit_cast<uint32_t>(static_cast<float>(n));
    array<uint8_t> da(a.size()), db(b.size());
    array<uint32_t> dc(c.size()), dd(c.size());
    da.set(a);
    db.set(b);
    dc.set(c);
    run_tiles(i, da.data(), db.data(), dc.data(), dd.data(), k, 1, stand_in);
    const std::vector<uint32_t> d = dd.host();
    int wrong = 0;
    for (int r = 0; r < ptx::tile_rows; ++r) {
        for (int n = 0; n < ptx::tile_cols; ++n) {
            int want = r * ptx::tile_cols + n;
            for (int64_t j = 0; j < k; ++j)
                want += x[static_cast<size_t>(r * k + j)] * y[static_cast<size_t>(n * k + j)];
            const double got = result_value(i, d[static_cast<size_t>(r * ptx::tile_cols + n)]);
            if (got != want && wrong++ < 4)
                std::printf("layout: %s: row %d column %d: got %g, wanted %d\n", i.name.c_str(), r, n, got, want);
        }
    }
    return wrong == 0;
}

}  // namespace numfmt_test
