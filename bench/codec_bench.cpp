// SPDX-License-Identifier: MIT
// Speed of numfmt::simd: every format's encode and decode and every scheme's quantize and dequantize, from and to float
// and bf16, in L2 and in 256 MB, on one thread and two. Each row carries elements per second, bytes read and written
// per second, and the ratio to a plain loop that moves the same bytes, timed in turn with it. Options beside Google
// Benchmark's: --targets NAME limits the instruction set (AVX2, AVX3, ...).
#include <benchmark/benchmark.h>
#include <numfmt/simd.hpp>
#include <numfmt/simd/thread_executor.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "measure.hpp"

namespace {

using namespace numfmt;

struct size_class {
    const char* name;
    std::int64_t bytes;  // of both arrays together
};
constexpr size_class sizes[] = {{"L2", std::int64_t{320} << 10}, {"256MB", std::int64_t{256} << 20}};

template <class T> constexpr const char* type_name() {
    if constexpr (std::is_same_v<T, float>)
        return "fp32";
    else
        return T::name;
}

template <class Body> void with_threads(int threads, Body&& body) {
    if (threads == 1)
        body(simd::serial_executor{});
    else
        body(simd::thread_executor(threads));
}

template <class T> void fill(T* x, std::int64_t n) {
    if constexpr (std::is_same_v<T, float>) {
        bench::fill_floats(x, n);
    } else {
        bench::bytes floats(n * 4);
        bench::fill_floats(floats.as<float>(), n);
        (void)simd::encode<T>(floats.as<float>(), n, reinterpret_cast<typename T::storage*>(x));
    }
}

template <class Format, class T> void encode_row(benchmark::State& state, size_class size, int threads) {
    using storage = typename Format::storage;
    const std::int64_t n = size.bytes / static_cast<std::int64_t>(sizeof(T) + sizeof(storage)) / 4096 * 4096;
    bench::bytes x(n * static_cast<std::int64_t>(sizeof(T))), codes(n * static_cast<std::int64_t>(sizeof(storage)));
    fill(x.as<T>(), n);
    with_threads(threads, [&](const auto& run) {
        bench::measure(
            state, n, x.size(), codes.size(), threads,
            [&] { (void)simd::encode<Format>(x.as<T>(), n, codes.as<storage>(), {}, {}, run); },
            [&](auto&& part) { run(threads, part); });
    });
}

template <class Format, class T> void decode_row(benchmark::State& state, size_class size, int threads) {
    using storage = typename Format::storage;
    const std::int64_t n = size.bytes / static_cast<std::int64_t>(sizeof(T) + sizeof(storage)) / 4096 * 4096;
    bench::bytes y(n * static_cast<std::int64_t>(sizeof(T))), codes(n * static_cast<std::int64_t>(sizeof(storage)));
    fill(y.as<T>(), n);
    (void)simd::encode<Format>(y.as<T>(), n, codes.as<storage>());
    with_threads(threads, [&](const auto& run) {
        bench::measure(
            state, n, codes.size(), y.size(), threads,
            [&] { (void)simd::decode<Format>(codes.as<storage>(), n, y.as<T>(), run); },
            [&](auto&& part) { run(threads, part); });
    });
}

template <class S, class T> matrix_shape shape_for(size_class size) {
    const double bytes_each = sizeof(T) + scheme_traits<S>::bits_per_weight() / 8;
    const std::int64_t cols = size.bytes > (1 << 20) ? 4096 : 1024;
    return {std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(size.bytes) / bytes_each) / cols),
            cols};
}

template <class S, class T> void quantize_row(benchmark::State& state, size_class size, int threads) {
    const matrix_shape shape = shape_for<S, T>(size);
    const std::int64_t n = shape.rows * shape.cols;
    bench::bytes x(n * static_cast<std::int64_t>(sizeof(T)));
    fill(x.as<T>(), n);
    auto q = quantized_tensor<S>::make(shape).value;
    const matrix_view<const T> view{x.as<T>(), shape};
    with_threads(threads, [&](const auto& run) {
        bench::measure(
            state, n, x.size(), q.bytes(), threads, [&] { (void)simd::quantize(view, q.view(), {}, run); },
            [&](auto&& part) { run(threads, part); });
    });
}

template <class S, class T> void dequantize_row(benchmark::State& state, size_class size, int threads) {
    const matrix_shape shape = shape_for<S, T>(size);
    const std::int64_t n = shape.rows * shape.cols;
    bench::bytes y(n * static_cast<std::int64_t>(sizeof(T)));
    fill(y.as<T>(), n);
    const auto q = simd::quantize<S>(matrix_view<const T>{y.as<T>(), shape}).value;
    with_threads(threads, [&](const auto& run) {
        bench::measure(
            state, n, q.bytes(), y.size(), threads,
            [&] { (void)simd::dequantize(q.view(), matrix_view<T>{y.as<T>(), shape}, run); },
            [&](auto&& part) { run(threads, part); });
    });
}

using row_function = void (*)(benchmark::State&, size_class, int);

void add(const std::string& name, row_function f) {
    for (const size_class size : sizes) {
        for (const int threads : {1, 2}) {
            if (threads > 1 && size.bytes < (1 << 20)) continue;  // starting a thread takes longer than the work
            const std::string row = name + "/" + size.name + "/threads:" + std::to_string(threads);
            auto* b = benchmark::RegisterBenchmark(row.c_str(), [=](benchmark::State& s) { f(s, size, threads); });
            b->UseManualTime()->Unit(benchmark::kMicrosecond);
            // The ceiling is timed in turn with each iteration.
            if (size.bytes < (1 << 20))
                b->MinTime(0.1);
            else
                b->Iterations(9);
        }
    }
}

// Restricts numfmt::simd to the instruction set of that name; false if it cannot be used here.
bool use_target(const char* name) {
    for (std::int64_t rest = simd::detail::usable_targets(); rest != 0; rest &= rest - 1) {
        simd::detail::use_targets(rest & -rest);
        if (std::strcmp(simd::target_name(), name) == 0) return true;
    }
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; ++i) {
        if (std::strcmp(argv[i], "--targets") != 0) continue;
        if (!use_target(argv[i + 1])) {
            std::fprintf(stderr, "codec_bench: --targets: this program or CPU has no '%s'\n", argv[i + 1]);
            return 2;
        }
        std::rotate(argv + i, argv + i + 2, argv + argc);
        argc -= 2;
        break;
    }
    benchmark::AddCustomContext("compiler", NUMFMT_BENCH_COMPILER);
    benchmark::AddCustomContext("flags", NUMFMT_BENCH_FLAGS);
    benchmark::AddCustomContext("target", simd::target_name());
    const auto add_types = [](const std::string& verb, const std::string& name, row_function fp32, row_function half) {
        add(verb + "/fp32/" + name, fp32);
        add(verb + "/bf16/" + name, half);
    };
    for_each(all_formats{}, [&]<class F>() {
        add_types("encode", F::name, encode_row<F, float>, encode_row<F, bf16>);
        add_types("decode", F::name, decode_row<F, float>, decode_row<F, bf16>);
    });
    for_each(all_schemes{}, [&]<class S>() {
        add_types("quantize", S::name, quantize_row<S, float>, quantize_row<S, bf16>);
        add_types("dequantize", S::name, dequantize_row<S, float>, dequantize_row<S, bf16>);
    });
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
