// SPDX-License-Identifier: MIT
// The CUDA kernels against the ceiling measured in the same run.
// usage: cuda_bench codec [--elements N] [--only TEXT] [--out FILE.json] [--commit C] [--repeats N]
//
// codec: every cast and every scheme's quantize and dequantize. A row's time is the median of CUDA-graph replays over
// buffers that rotate past the L2 cache; beside it, replayed in turns with it, a kernel that moves as many bytes with
// the same mix of reads and writes (one 16-byte access per thread on the wider side, 256 threads, no loop) and a plain
// copy of that kind. GB/s count all bytes: input (twice where a scheme needs two passes), codes, scales, zero points.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include <numfmt/numfmt.hpp>

#include <numfmt/cuda/quantize.cuh>

#ifndef NUMFMT_BENCH_FLAGS
#define NUMFMT_BENCH_FLAGS "unknown"
#endif

namespace {

using namespace numfmt;
namespace nc = numfmt::cuda;

void check(cudaError_t e, const char* what) {
    if (e == cudaSuccess) return;
    std::fprintf(stderr, "cuda_bench: %s: %s\n", what, cudaGetErrorString(e));
    std::exit(1);
}
void check(const nc::launch_result& r) {
    if (r.ok()) return;
    std::fprintf(stderr, "cuda_bench: %s %s\n", r.status.argument, cudaGetErrorString(r.error));
    std::exit(1);
}

struct settings {
    int64_t elements = int64_t{1} << 28;
    int repeats = 9;
    std::string only, out, commit = "unknown";
};

// ---- the ceiling ----------------------------------------------------------------------------------------------------

/// The first `readers` threads of a block read 16 bytes each, the first `writers` write 16 bytes each.
__global__ __launch_bounds__(256) void move_kernel(const void* from, void* to, unsigned readers, unsigned writers) {
    const ::uint4* const in = static_cast<const ::uint4*>(from);
    ::uint4* const out = static_cast<::uint4*>(to);
    const unsigned t = threadIdx.x;
    ::uint4 v{t, blockIdx.x, t, t};
    if (t < readers) v = in[static_cast<size_t>(blockIdx.x) * readers + t];
    if (t < writers) {
        out[static_cast<size_t>(blockIdx.x) * writers + t] = v;
    } else if (v.x == 0x9E3779B9u && v.y == 0x7F4A7C15u && v.z == 0xF39CC060u) {
        out[0] = v;  // never, but the load stays
    }
}
struct mover {
    unsigned readers = 256, writers = 256;
    int64_t blocks = 0;
    double bytes() const { return 16.0 * static_cast<double>(blocks) * (readers + writers); }
};
mover make_mover(double read, double written) {
    const double wide = std::max(read, written);
    mover m;
    m.readers = static_cast<unsigned>(std::lround(256 * read / wide));
    m.writers = static_cast<unsigned>(std::lround(256 * written / wide));
    m.blocks = static_cast<int64_t>((read + written) / (16.0 * (m.readers + m.writers)));
    return m;
}

// ---- data -----------------------------------------------------------------------------------------------------------

template <class T> __global__ void fill_numbers(T* x, int64_t n, uint32_t seed) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    // A sum of uniform numbers: bell-shaped, sigma about 1.
    const philox_block w = random_words(seed, static_cast<uint64_t>(i));
    float v = 0;
    for (int k = 0; k < 4; ++k) v += static_cast<float>(w.word[k]) * 0x1p-32f - 0.5f;
    x[i] = T(v * 1.7f);
}
__global__ void fill_bytes(uint32_t* x, int64_t n, uint32_t seed, uint32_t mask) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) x[i] = random_word(seed, static_cast<uint64_t>(i)) & mask;
}

constexpr int sets = 2;  // of buffers, each far larger than L2 at the usual size

struct buffers {
    uint8_t *wide[sets], *narrow[sets], *scales[sets], *zeros[sets];
    void* memory = nullptr;
    float* tensor_scale = nullptr;
};

struct row {
    std::string name, kind;
    double read, written;  // bytes
    std::function<void(int, cudaStream_t)> launch;
};

/// Medians in seconds of one launch each, the three measured in turns.
struct timing {
    double kernel, mix, copy;
};

class graph {
  public:
    graph(int launches, const std::function<void(int, cudaStream_t)>& f, cudaStream_t s) : launches_(launches) {
        cudaGraph_t g = nullptr;
        check(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), "capture");
        for (int i = 0; i < launches; ++i) f(i % sets, s);
        check(cudaStreamEndCapture(s, &g), "capture");
        check(cudaGraphInstantiate(&exec_, g, 0), "instantiate");
        check(cudaGraphDestroy(g), "destroy");
    }
    ~graph() { cudaGraphExecDestroy(exec_); }
    double run(cudaStream_t s, cudaEvent_t a, cudaEvent_t b) const {
        check(cudaEventRecord(a, s), "event");
        check(cudaGraphLaunch(exec_, s), "replay");
        check(cudaEventRecord(b, s), "event");
        check(cudaEventSynchronize(b), "kernel");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, a, b), "event");
        return ms * 1e-3 / launches_;
    }

  private:
    cudaGraphExec_t exec_ = nullptr;
    int launches_;
};

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

timing measure(const row& r, const buffers& b, const settings& s, cudaStream_t stream) {
    static cudaEvent_t start = nullptr, stop = nullptr;
    if (start == nullptr) {
        check(cudaEventCreate(&start), "event");
        check(cudaEventCreate(&stop), "event");
    }
    const mover mix = make_mover(r.read, r.written), even = make_mover(1e9, 1e9);
    const auto move = [&](const mover& m) {
        return [&b, m](int set, cudaStream_t st) {
            // The wider side of the traffic uses the wider buffer.
            const bool reads = m.readers >= m.writers;
            auto* in = reinterpret_cast<::uint4*>(reads ? b.wide[set] : b.narrow[set]);
            auto* out = reinterpret_cast<::uint4*>(reads ? b.narrow[set] : b.wide[set]);
            if (m.readers == m.writers) out = reinterpret_cast<::uint4*>(b.wide[1 - set]);
            move_kernel<<<static_cast<unsigned>(m.blocks), 256, 0, st>>>(in, out, m.readers, m.writers);
        };
    };
    constexpr int launches = 4;
    const graph kernel(launches, r.launch, stream), mix_graph(launches, move(mix), stream),
        copy_graph(launches, move(even), stream);
    std::vector<double> k, m, c;
    for (int i = 0; i < s.repeats + 1; ++i) {
        const double tk = kernel.run(stream, start, stop), tm = mix_graph.run(stream, start, stop),
                     tc = copy_graph.run(stream, start, stop);
        if (i == 0) continue;
        k.push_back(tk), m.push_back(tm), c.push_back(tc);
    }
    return {median(k), median(m) * (r.read + r.written) / mix.bytes(), median(c) * (r.read + r.written) / even.bytes()};
}

template <class T> constexpr const char* name_of() {
    if constexpr (numfmt::detail::is_same_v<T, float>)
        return "fp32";
    else
        return T::name;
}

template <class F> void for_each_tensor_type(F&& f) {
    f.template operator()<float>();
    f.template operator()<bf16>();
    f.template operator()<fp16>();
}

std::vector<row> make_rows(const buffers& b, const settings& s) {
    std::vector<row> rows;
    const int64_t n = s.elements;
    const double elements = static_cast<double>(n);
    for_each(all_formats{}, [&]<class Format>() {
        const double bytes = elements * nc::detail::stored_bits<Format> / 8;
        for_each_tensor_type([&]<class T>() {
            if constexpr (!numfmt::detail::is_same_v<T, Format>) {
                rows.push_back(
                    {std::string("encode ") + name_of<T>() + " -> " + Format::name, "cast", elements * sizeof(T), bytes,
                     [=, &b](int set, cudaStream_t st) {
                         check(nc::encode<Format>(reinterpret_cast<const T*>(b.wide[set]), n, b.narrow[set], {}, st));
                     }});
                rows.push_back({std::string("decode ") + Format::name + " -> " + name_of<T>(), "cast", bytes,
                                elements * sizeof(T), [=, &b](int set, cudaStream_t st) {
                                    check(nc::decode<Format>(b.narrow[set], n, reinterpret_cast<T*>(b.wide[set]), st));
                                }});
            }
        });
    });
    const matrix_shape shape{n / 4096, 4096};
    for_each(all_schemes{}, [&]<class S>() {
        using traits = scheme_traits<S>;
        const matrix_shape scales = traits::scale_shape(shape);
        const double scale_bytes = static_cast<double>(scales.rows * scales.cols) * traits::scale_bits / 8;
        const double zero_bytes =
            S::has_zero_point ? static_cast<double>(scales.rows * traits::zero_row_bytes(scales.cols)) : 0.0;
        const double bytes = elements * traits::element_bits / 8 + scale_bytes + zero_bytes;
        const auto view = [=, &b](int set) {
            view_parts<S> p;
            p.codes = b.narrow[set];
            p.scales = reinterpret_cast<typename traits::scale_storage*>(b.scales[set]);
            p.shape = shape;
            if constexpr (S::has_zero_point) p.zeros = b.zeros[set];
            if constexpr (S::has_tensor_scale) p.tensor_scale = b.tensor_scale;
            return quantized_view<S>::make(p).value;
        };
        for_each_tensor_type([&]<class T>() {
            const double passes = nc::detail::needs_state<S> ? 2 : 1;
            rows.push_back({std::string("quantize ") + name_of<T>() + " -> " + S::name, "quantize",
                            passes * elements * sizeof(T), bytes, [=, &b](int set, cudaStream_t st) {
                                check(nc::quantize(matrix_view<const T>{reinterpret_cast<const T*>(b.wide[set]), shape},
                                                   view(set), {}, {b.memory, 256}, st));
                            }});
            rows.push_back(
                {std::string("dequantize ") + S::name + " -> " + name_of<T>(), "dequantize", bytes,
                 elements * sizeof(T), [=, &b](int set, cudaStream_t st) {
                     check(nc::dequantize(view(set), matrix_view<T>{reinterpret_cast<T*>(b.wide[set]), shape}, st));
                 }});
        });
    });
    return rows;
}

void fill(const buffers& b, const settings& s, const row& r) {
    const bool in_is_wide = r.name.rfind("encode ", 0) == 0 || r.name.rfind("quantize ", 0) == 0;
    const unsigned blocks = static_cast<unsigned>((s.elements + 255) / 256);
    for (int i = 0; i < sets; ++i) {
        if (in_is_wide) {
            const size_t space = r.name.find(' ') + 1;
            if (r.name.compare(space, 4, "fp32") == 0)
                fill_numbers<<<blocks, 256>>>(reinterpret_cast<float*>(b.wide[i]), s.elements,
                                              7u + static_cast<uint32_t>(i));
            if (r.name.compare(space, 4, "bf16") == 0)
                fill_numbers<<<blocks, 256>>>(reinterpret_cast<bf16*>(b.wide[i]), s.elements,
                                              7u + static_cast<uint32_t>(i));
            if (r.name.compare(space, 4, "fp16") == 0)
                fill_numbers<<<blocks, 256>>>(reinterpret_cast<fp16*>(b.wide[i]), s.elements,
                                              7u + static_cast<uint32_t>(i));
        } else {
            const int64_t words = s.elements / 2;
            fill_bytes<<<static_cast<unsigned>((words + 255) / 256), 256>>>(reinterpret_cast<uint32_t*>(b.narrow[i]),
                                                                            words, 3u, 0xFFFFFFFFu);
            // Scales without NaN: small positive numbers in every scale format.
            fill_bytes<<<static_cast<unsigned>((words / 8 + 255) / 256), 256>>>(
                reinterpret_cast<uint32_t*>(b.scales[i]), words / 8, 4u, 0x3F3F3F3Fu);
            fill_bytes<<<static_cast<unsigned>((words / 64 + 255) / 256), 256>>>(
                reinterpret_cast<uint32_t*>(b.zeros[i]), words / 64, 5u, 0xFFFFFFFFu);
        }
    }
    check(cudaDeviceSynchronize(), "fill");
}

int run_codec(const settings& s) {
    cudaDeviceProp device{};
    check(cudaGetDeviceProperties(&device, 0), "device");
    buffers b{};
    for (int i = 0; i < sets; ++i) {
        check(cudaMalloc(&b.wide[i], static_cast<size_t>(std::max(s.elements * 9, int64_t{1} << 30))), "allocate");
        check(cudaMalloc(&b.narrow[i], static_cast<size_t>(std::max(s.elements * 9, int64_t{1} << 30))), "allocate");
        check(cudaMalloc(&b.scales[i], static_cast<size_t>(s.elements / 4 + 4096)), "allocate");
        check(cudaMalloc(&b.zeros[i], static_cast<size_t>(s.elements / 16 + 4096)), "allocate");
    }
    check(cudaMalloc(&b.memory, 256), "allocate");
    check(cudaMalloc(&b.tensor_scale, 4), "allocate");
    const float one = 1;
    check(cudaMemcpy(b.tensor_scale, &one, 4, cudaMemcpyHostToDevice), "copy");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream), "stream");

    FILE* out = s.out.empty() ? nullptr : std::fopen(s.out.c_str(), "w");
    if (!s.out.empty() && out == nullptr) {
        std::fprintf(stderr, "cuda_bench: cannot write %s\n", s.out.c_str());
        return 1;
    }
    if (out != nullptr)
        std::fprintf(
            out,
            "{\n  \"context\": {\"subject\": \"cuda_codec\", \"commit\": \"%s\", \"device\": \"%s\", "
            "\"multiprocessors\": %d, "
            "\"l2_bytes\": %d, \"compiler\": \"nvcc %d.%d.%d\", \"flags\": \"%s\", \"elements\": %lld, \"method\": "
            "\"median of %d graph replays of 4 launches, in turns with the ceilings\"},\n  \"rows\": [",
            s.commit.c_str(), device.name, device.multiProcessorCount, device.l2CacheSize, __CUDACC_VER_MAJOR__,
            __CUDACC_VER_MINOR__, __CUDACC_VER_BUILD__, NUMFMT_BENCH_FLAGS, static_cast<long long>(s.elements),
            s.repeats);
    std::printf("%-52s %9s %8s %8s %8s\n", "row", "us", "GB/s", "of mix", "of copy");
    const char* separator = "\n";
    for (const row& r : make_rows(b, s)) {
        if (r.name.find(s.only) == std::string::npos) continue;
        fill(b, s, r);
        const timing t = measure(r, b, s, stream);
        const double bytes = r.read + r.written;
        std::printf("%-52s %9.1f %8.0f %8.3f %8.3f\n", r.name.c_str(), t.kernel * 1e6, bytes / t.kernel * 1e-9,
                    t.mix / t.kernel, t.copy / t.kernel);
        std::fflush(stdout);
        if (out != nullptr)
            std::fprintf(out,
                         "%s    {\"name\": \"%s\", \"kind\": \"%s\", \"read_bytes\": %.0f, \"written_bytes\": %.0f, "
                         "\"seconds\": %.4e, "
                         "\"gb_per_s\": %.1f, \"mix_copy_gb_per_s\": %.1f, \"copy_gb_per_s\": %.1f, "
                         "\"ratio_to_mix_copy\": %.4f, "
                         "\"ratio_to_copy\": %.4f}",
                         separator, r.name.c_str(), r.kind.c_str(), r.read, r.written, t.kernel,
                         bytes / t.kernel * 1e-9, bytes / t.mix * 1e-9, bytes / t.copy * 1e-9, t.mix / t.kernel,
                         t.copy / t.kernel);
        separator = ",\n";
    }
    if (out != nullptr) {
        std::fprintf(out, "\n  ]\n}\n");
        std::fclose(out);
    }
    return 0;
}

int usage(FILE* f) {
    std::fputs("usage: cuda_bench codec [--elements N] [--only TEXT] [--out FILE.json] [--commit C] [--repeats N]\n",
               f);
    return f == stdout ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
    settings s;
    if (argc >= 2 && std::strcmp(argv[1], "--help") == 0) return usage(stdout);
    if (argc < 2 || std::strcmp(argv[1], "codec") != 0) return usage(stderr);
    for (int i = 2; i < argc; i += 2) {
        const std::string name = argv[i];
        if (i + 1 >= argc) return usage(stderr);
        const char* value = argv[i + 1];
        if (name == "--elements")
            s.elements = std::max(std::atoll(value) / 1048576 * 1048576, 1048576LL);
        else if (name == "--only")
            s.only = value;
        else if (name == "--out")
            s.out = value;
        else if (name == "--commit")
            s.commit = value;
        else if (name == "--repeats")
            s.repeats = std::max(std::atoi(value), 1);
        else
            return usage(stderr);
    }
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("SKIPPED: no CUDA device");
        return 77;
    }
    return run_codec(s);
}
