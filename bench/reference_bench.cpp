// SPDX-License-Identifier: MIT
// Speed of the reference codec and quantizers, that is, of plain loops that the compiler vectorises: what somebody gets
// who only includes a header. Buffers fit in L2. Each row carries elements per second and its ratio to a loop that
// moves the same bytes, measured around it.
#include <benchmark/benchmark.h>
#include <numfmt/core/philox.hpp>
#include <numfmt/numfmt.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "ceiling.hpp"

namespace {

using namespace numfmt;

constexpr std::int64_t elements = 1 << 16;  // 256 KiB of floats
constexpr matrix_shape shape{64, 1024};

std::vector<float> random_floats() {
    std::vector<float> x(elements);
    for (std::int64_t i = 0; i < elements; ++i) {
        // Sum of uniform words: bell-shaped, a spread of exponents, both signs.
        const philox_block w = random_words(1, static_cast<std::uint64_t>(i));
        float sum = 0;
        for (const std::uint32_t v : w.word) sum += static_cast<float>(static_cast<std::int32_t>(v)) * 0x1p-31f;
        x[static_cast<std::size_t>(i)] = sum;
    }
    return x;
}

// Runs f once per iteration; reports the ratio of the same-bytes loop's fastest time to f's fastest time.
template <class F>
void measure(benchmark::State& state, const void* in, std::int64_t in_bytes, void* out, std::int64_t out_bytes, F&& f) {
    benchmark::DoNotOptimize(out);  // the buffer escapes, so that no store to it is dead
    double mine = 1e30;
    for (auto _ : state) {
        mine = std::min(mine, bench::fastest(1, f));
        benchmark::ClobberMemory();
    }
    // The ceiling overwrites the output, so it comes last, and as often as f was tried (within reason).
    const int repeats = static_cast<int>(std::clamp<std::int64_t>(state.iterations(), 20, 2000));
    const double ceiling = bench::fastest(repeats, [&] {
        bench::move_bytes(static_cast<const unsigned char*>(in), in_bytes, static_cast<unsigned char*>(out), out_bytes);
        benchmark::ClobberMemory();
    });
    state.SetItemsProcessed(state.iterations() * elements);
    state.SetBytesProcessed(state.iterations() * (in_bytes + out_bytes));
    state.counters["Gelem_per_s"] = static_cast<double>(elements) / mine * 1e-9;
    state.counters["ceiling_GB_per_s"] = static_cast<double>(in_bytes + out_bytes) / ceiling * 1e-9;
    state.counters["ratio_to_copy"] = ceiling / mine;
}

template <class Format> void encode_format(benchmark::State& state) {
    const std::vector<float> x = random_floats();
    std::vector<typename Format::storage> codes(elements);
    constexpr std::int64_t code_bytes = elements * static_cast<std::int64_t>(sizeof(codes[0]));
    measure(state, x.data(), elements * 4, codes.data(), code_bytes,
            [&] { encode<Format>(x.data(), elements, codes.data()); });
}

template <class Format> void decode_format(benchmark::State& state) {
    const std::vector<float> x = random_floats();
    std::vector<typename Format::storage> codes(elements);
    std::vector<float> y(elements);
    encode<Format>(x.data(), elements, codes.data());
    constexpr std::int64_t code_bytes = elements * static_cast<std::int64_t>(sizeof(codes[0]));
    measure(state, codes.data(), code_bytes, y.data(), elements * 4,
            [&] { decode<Format>(codes.data(), elements, y.data()); });
}

template <class S> void quantize_scheme(benchmark::State& state) {
    const std::vector<float> x = random_floats();
    auto q = quantized_tensor<S>::make(shape).value;
    std::vector<unsigned char> sink(static_cast<std::size_t>(q.bytes()));
    benchmark::DoNotOptimize(q.view().parts().codes);
    measure(state, x.data(), elements * 4, sink.data(), q.bytes(),
            [&] { (void)quantize(matrix_view<const float>{x.data(), shape}, q.view()); });
}

template <class S> void dequantize_scheme(benchmark::State& state) {
    const std::vector<float> x = random_floats();
    auto q = quantized_tensor<S>::make(shape).value;
    (void)quantize(matrix_view<const float>{x.data(), shape}, q.view());
    std::vector<float> y(elements);
    const std::vector<unsigned char> source(static_cast<std::size_t>(q.bytes()), 1);
    measure(state, source.data(), q.bytes(), y.data(), elements * 4,
            [&] { (void)dequantize(q.view(), matrix_view<float>{y.data(), shape}); });
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::AddCustomContext("compiler", NUMFMT_BENCH_COMPILER);
    benchmark::AddCustomContext("flags", NUMFMT_BENCH_FLAGS);
    for_each(all_formats{}, []<class F>() {
        benchmark::RegisterBenchmark((std::string("encode/fp32/") + F::name).c_str(), encode_format<F>);
        benchmark::RegisterBenchmark((std::string("decode/fp32/") + F::name).c_str(), decode_format<F>);
    });
    for_each(all_schemes{}, []<class S>() {
        benchmark::RegisterBenchmark((std::string("quantize/fp32/") + S::name).c_str(), quantize_scheme<S>);
        benchmark::RegisterBenchmark((std::string("dequantize/fp32/") + S::name).c_str(), dequantize_scheme<S>);
    });
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
