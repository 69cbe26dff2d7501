// SPDX-License-Identifier: MIT
// The tensor core itself against its model, bit for bit: every instruction of the device, ten classes of inputs, single
// instructions (over 10^8 dot products) and chains of up to 131072 products. For every class with a mismatch: the
// smallest input that shows it, and how other models fare. Exit code 0 without mismatches, 1 with, 77 without a device.
#include <chrono>
#include <cmath>
#include <fstream>

#include "support/tensor_core_device.cuh"
#include "support/tensor_core_inputs.hpp"

using namespace numfmt_test;

namespace {

constexpr const char* usage = R"(usage: tensor_core [options]
  --json FILE      also write all numbers as JSON
  --vectors FILE   write dot products computed by this device (a few thousand lines) and stop
  --tiles N        tiles of 512 dot products per instruction and class [2048]
  --seed N         seed of the inputs [1]
  --only TEXT      only instructions whose name contains TEXT
  --no-chains      leave out the chains
  --dry-run        no device: the model stands in for the hardware, with one tile per class
  --perturb        with --dry-run: hardware with one bit less, so that everything must be found
)";

struct settings {
    std::string json, vectors, only;
    int64_t tiles = 2048;
    uint64_t seed = 1;
    bool chains = true, perturb = false;
};

/// Writes the inputs of tiles first_tile ..: i is an element of A, then of B, then of C.
struct make_inputs {
    input_source source;
    format_info a_format, b_format;
    void *a, *b;
    uint32_t* c;
    int64_t k, tiles;
    uint64_t first_tile;
    bool fp16_output;

    NUMFMT_HD void operator()(int64_t i) const {
        const int64_t in_a = tiles * ptx::tile_rows * k, in_b = tiles * ptx::tile_cols * k;
        if (i < in_a) {
            store_code(a, i, a_format.bytes, element(a_format, 0, i, ptx::tile_rows));
        } else if (i < in_a + in_b) {
            store_code(b, i - in_a, b_format.bytes, element(b_format, 1, i - in_a, ptx::tile_cols));
        } else {
            const int64_t at = i - in_a - in_b, tile = at / (ptx::tile_rows * ptx::tile_cols),
                          in_tile = at % (ptx::tile_rows * ptx::tile_cols);
            c[at] = input_addend(source, a_format.spec, fp16_output, first_tile + static_cast<uint64_t>(tile),
                                 static_cast<uint64_t>(in_tile / ptx::tile_cols),
                                 static_cast<uint64_t>(in_tile % ptx::tile_cols));
        }
    }
    NUMFMT_HD uint32_t element(const format_info& f, int side, int64_t i, int64_t rows) const {
        const int64_t row = i / k;
        const auto at = static_cast<uint64_t>(i % k);
        const uint64_t tile = first_tile + static_cast<uint64_t>(row / rows),
                       in_tile = static_cast<uint64_t>(row % rows);
        const uint32_t code = input_element(source, f.spec, side, tile, in_tile, at);
        if (f.dropped == 0) return code;
        // tf32: the bits that the hardware is said to ignore, random in some classes.
        const bool noisy = source.kind == input_class::wide || source.kind == input_class::random;
        const uint32_t low = static_cast<uint32_t>(
            numfmt_test::detail::draw(source, 4, tile, in_tile * 2 + static_cast<uint64_t>(side), at));
        return code << f.dropped | (noisy ? low & ((1u << f.dropped) - 1u) : 0u);
    }
};

/// Counts the dot products whose D is not the model's; remembers one with the fewest nonzero terms.
struct compare_tiles {
    dot_source source;
    tensor_core_model model;
    const uint32_t *c, *d;
    int64_t k;
    unsigned long long* counters;  // mismatches, smallest key, NaN and Inf results

    NUMFMT_HD void operator()(int64_t i) const {
        const int64_t tile = i / (ptx::tile_rows * ptx::tile_cols), at = i % (ptx::tile_rows * ptx::tile_cols);
        const int64_t a_row = (tile * ptx::tile_rows + at / ptx::tile_cols) * k,
                      b_row = (tile * ptx::tile_cols + at % ptx::tile_cols) * k;
        const uint32_t want = source.dot(model, a_row, b_row, k, c[i]);
        const uint32_t infinity = model.output == tensor_core_output::fp16 ? 0x7C00u : 0x7F800000u;
        if ((d[i] & (2u * infinity - 1u) & ~(infinity << 1)) >= infinity) add(counters + 2, 1);
        if (d[i] == want) return;
        unsigned long long terms = 0;
        for (int64_t j = 0; j < k; ++j)
            terms +=
                source.operand(false, a_row + j).significand != 0 && source.operand(true, b_row + j).significand != 0;
        add(counters, 1);
        smallest(counters + 1, terms << 40 | static_cast<unsigned long long>(i));
    }
    NUMFMT_HD static void add(unsigned long long* p, unsigned long long x) {
#if defined(__CUDA_ARCH__)
        atomicAdd(p, x);
#else
        *p += x;
#endif
    }
    NUMFMT_HD static void smallest(unsigned long long* p, unsigned long long x) {
#if defined(__CUDA_ARCH__)
        atomicMin(p, x);
#else
        if (x < *p) *p = x;
#endif
    }
};

/// Mismatches alone, for other models.
struct count_tiles {
    dot_source source;
    tensor_core_model model;
    const uint32_t *c, *d;
    int64_t k;
    unsigned long long* counter;

    NUMFMT_HD void operator()(int64_t i) const {
        const int64_t tile = i / (ptx::tile_rows * ptx::tile_cols), at = i % (ptx::tile_rows * ptx::tile_cols);
        const uint32_t want = source.dot(model, (tile * ptx::tile_rows + at / ptx::tile_cols) * k,
                                         (tile * ptx::tile_cols + at % ptx::tile_cols) * k, k, c[i]);
        if (d[i] != want) compare_tiles::add(counter, 1);
    }
};

/// A model and how it differs from the library's.
struct candidate {
    std::string name;
    tensor_core_model model;
    unsigned long long mismatches = 0;
};
std::vector<candidate> candidates_of(const tensor_core_model& base) {
    std::vector<candidate> all;
    const auto with = [&](const std::string& name, auto&& change) {
        tensor_core_model m = base;
        change(m);
        all.push_back({name, m, 0});
    };
    for (const int by : {-1, 1})
        with(std::to_string(base.fraction_bits + by) + " bits", [&](auto& m) { m.fraction_bits += by; });
    with("exponent floor " + std::to_string(base.exponent_floor + 1), [](auto& m) { ++m.exponent_floor; });
    with("exponent floor " + std::to_string(base.exponent_floor - 1), [](auto& m) { --m.exponent_floor; });
    with("exponent floor -126", [](auto& m) { m.exponent_floor = -126; });
    with("no exponent floor", [](auto& m) { m.exponent_floor = -1000; });
    if (base.group > 4) with("groups of " + std::to_string(base.group / 2), [](auto& m) { m.group /= 2; });
    if (base.k == 2 * base.group && base.k <= 32)
        with("one group of " + std::to_string(base.k), [](auto& m) {
            m.group = m.k;
            m.order = tensor_core_order::contiguous;
        });
    if (base.k >= 8) {
        with("halves by even and odd products", [](auto& m) {
            m.group = m.k / 2;
            m.order = tensor_core_order::even_then_odd;
        });
        with("halves by pairs of four", [](auto& m) {
            m.group = m.k / 2;
            m.order = tensor_core_order::pairs_of_four;
        });
        with("contiguous halves", [](auto& m) {
            m.group = m.k / 2;
            m.order = tensor_core_order::contiguous;
        });
    }
    if (base.addend == tensor_core_addend::fused)
        with("C added last", [](auto& m) { m.addend = tensor_core_addend::added_last; });
    else
        with("C in the first group", [](auto& m) { m.addend = tensor_core_addend::fused; });
    if (base.output == tensor_core_output::fp32)
        with("output to nearest", [](auto& m) { m.output = tensor_core_output::fp32_nearest; });
    if (base.output == tensor_core_output::fp22)
        with("output of 23 bits", [](auto& m) { m.output = tensor_core_output::fp32; });
    return all;
}

/// Everything about one input, in words.
std::string describe(const instruction& i, const dot_input& in, uint32_t hardware, uint32_t model) {
    std::string text;
    char part[200];
    std::snprintf(part, sizeof part, "C %0*X (%a)", i.fp16_output ? 4 : 8, in.c, result_value(i, in.c));
    text += part;
    for (size_t j = 0; j < in.a.size(); ++j) {
        if (is_zero(i.a, in.a[j]) && is_zero(i.b, in.b[j])) continue;
        if ((is_zero(i.a, in.a[j]) || is_zero(i.b, in.b[j])) && std::isfinite(value_of(i.a, in.a[j])) &&
            std::isfinite(value_of(i.b, in.b[j])))
            continue;
        std::snprintf(part, sizeof part, "  [%zu] %0*X x %0*X (%a x %a)", j, 2 * i.a.bytes, in.a[j], 2 * i.b.bytes,
                      in.b[j], value_of(i.a, in.a[j]), value_of(i.b, in.b[j]));
        text += part;
        if (text.size() > 3000) return text + " ...";
    }
    std::snprintf(part, sizeof part, "  -> hardware %0*X (%a), model %0*X (%a)", i.fp16_output ? 4 : 8, hardware,
                  result_value(i, hardware), i.fp16_output ? 4 : 8, model, result_value(i, model));
    return text + part;
}

/// Makes a mismatching input smaller for as long as it still mismatches: terms to zero, C to zero, numbers to powers of
/// two, signs to plus.
dot_input shrink(const instruction& i, const tensor_core_model& model, const tensor_core_model* hardware,
                 dot_input in) {
    for (int round = 0; round < 100; ++round) {
        std::vector<dot_input> smaller;
        const auto propose = [&](auto&& change) {
            dot_input next = in;
            change(next);
            if (next.a != in.a || next.b != in.b || next.c != in.c) smaller.push_back(std::move(next));
        };
        const auto power_of_two = [](const format_info& f, uint32_t code) {
            return f.dropped > 0 ? code & 0xFF800000u : code & ~f.spec.mantissa_mask();
        };
        for (size_t j = 0; j < in.a.size(); ++j) propose([&](dot_input& n) { n.a[j] = n.b[j] = 0; });
        propose([](dot_input& n) { n.c = 0; });
        for (size_t j = 0; j < in.a.size(); ++j) {
            propose([&](dot_input& n) { n.a[j] = power_of_two(i.a, n.a[j]); });
            propose([&](dot_input& n) { n.b[j] = power_of_two(i.b, n.b[j]); });
        }
        propose([&](dot_input& n) { n.c &= i.fp16_output ? 0xFC00u : 0xFF800000u; });
        for (size_t j = 0; j < in.a.size(); ++j)
            propose([&](dot_input& n) {
                n.a[j] &= ~(i.a.spec.sign_bit() << i.a.dropped);
                n.b[j] &= ~(i.b.spec.sign_bit() << i.b.dropped);
            });
        if (smaller.size() > 1024) smaller.resize(1024);
        const std::vector<uint32_t> d = run_dots(i, smaller, hardware);
        size_t found = smaller.size();
        for (size_t n = 0; n < smaller.size() && found == smaller.size(); ++n)
            if (d[n] != model_dot(i, model, smaller[n])) found = n;
        if (found == smaller.size()) break;
        in = smaller[found];
    }
    return in;
}

struct result_row {
    std::string instruction, kind;
    int64_t k = 0;
    unsigned long long compared = 0, mismatches = 0, nonfinite = 0;
    std::string smallest;
};
struct instruction_report {
    std::string name, model;
    bool layout = true;
    std::vector<candidate> others;
};

class program {
  public:
    explicit program(settings s) : s_(std::move(s)) {}

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
        std::printf("device %s, compute capability %d.%d, seed %llu\n", device_.c_str(), capability_ / 10,
                    capability_ % 10, static_cast<unsigned long long>(s_.seed));
        if (!s_.vectors.empty()) return write_vectors();
        for (const instruction& i : instructions(capability_)) {
            if (i.name.find(s_.only) == std::string::npos) continue;
            one_instruction(i);
        }
        return report();
    }

  private:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

    input_source source_of(const instruction& i, const tensor_core_model& m, int kind, int64_t k) const {
        return {s_.seed + 1000 * static_cast<uint64_t>(k != i.k), static_cast<input_class>(kind), m.fraction_bits,
                static_cast<int>(k <= 32         ? 48
                                 : 2 * k < 60000 ? 2 * k
                                                 : 60000),
                std::min(i.k, m.group)};
    }
    /// What a dry run takes for the hardware.
    tensor_core_model stand_in(const tensor_core_model& m) const {
        tensor_core_model h = m;
        if (s_.perturb) --h.fraction_bits;
        return h;
    }

    struct tiles_on_device {
        tiles_on_device(const instruction& i, int64_t k, int64_t tiles)
            : a(static_cast<size_t>(tiles * ptx::tile_rows * k * i.a.bytes)),
              b(static_cast<size_t>(tiles * ptx::tile_cols * k * i.b.bytes)),
              c(static_cast<size_t>(tiles * ptx::tile_rows * ptx::tile_cols)),
              d(c.size()) {}
        array<uint8_t> a, b;
        array<uint32_t> c, d;
    };

    void fill(const instruction& i, const tensor_core_model& m, int kind, int64_t k, int64_t tiles, uint64_t first,
              const tiles_on_device& t) const {
        for_each_index(tiles * ((ptx::tile_rows + ptx::tile_cols) * k + ptx::tile_rows * ptx::tile_cols),
                       make_inputs{source_of(i, m, kind, k), i.a, i.b, t.a.data(), t.b.data(), t.c.data(), k, tiles,
                                   first, i.fp16_output});
    }
    static dot_input input_at(const instruction& i, const tiles_on_device& t, int64_t k, int64_t index) {
        const int64_t tile = index / (ptx::tile_rows * ptx::tile_cols), at = index % (ptx::tile_rows * ptx::tile_cols);
        const auto row = [&](const array<uint8_t>& from, int64_t r, int bytes) {
            const auto raw = from.host(static_cast<size_t>(r * k * bytes), static_cast<size_t>(k * bytes));
            std::vector<uint32_t> codes;
            for (int64_t j = 0; j < k; ++j) codes.push_back(load_code(raw.data(), j, bytes));
            return codes;
        };
        return {row(t.a, tile * ptx::tile_rows + at / ptx::tile_cols, i.a.bytes),
                row(t.b, tile * ptx::tile_cols + at % ptx::tile_cols, i.b.bytes),
                t.c.host(static_cast<size_t>(index), 1)[0]};
    }

    void one_instruction(const instruction& i) {
        const tensor_core_model* m = model_of(i, capability_);
        if (m == nullptr) {
            std::printf("%-28s no model for this device\n", i.name.c_str());
            return;
        }
        const tensor_core_model hardware = stand_in(*m);
        instruction_report r{i.name, m->name, true, candidates_of(*m)};
        r.layout = layout_is_right(i, &hardware);
        if (!r.layout) {
            std::printf("%-28s the fragments or descriptors are wrong: not compared\n", i.name.c_str());
            reports_.push_back(std::move(r));
            ++failures_;
            return;
        }
        const tiles_on_device t(i, i.k, s_.tiles);
        for (int kind = 0; kind < input_classes; ++kind) {
            fill(i, *m, kind, i.k, s_.tiles, 0, t);
            compare(i, *m, hardware, kind, i.k, s_.tiles, t, &r.others);
        }
        if (s_.chains) {
            for (const int64_t k : {4 * i.k, 32 * i.k, 4096, 131072}) {
                if (dry_run && k > 32 * i.k) break;
                const int64_t tiles = k <= 4096 && !dry_run ? 4 : 1;
                const tiles_on_device chain(i, k, tiles);
                for (int kind = 0; kind < input_classes; ++kind) {
                    fill(i, *m, kind, k, tiles, 0, chain);
                    compare(i, *m, hardware, kind, k, tiles, chain, nullptr);
                }
            }
        }
        reports_.push_back(std::move(r));
        std::printf("%-28s done after %.1f s\n", i.name.c_str(), seconds());
        std::fflush(stdout);
    }

    void compare(const instruction& i, const tensor_core_model& m, const tensor_core_model& hardware, int kind,
                 int64_t k, int64_t tiles, const tiles_on_device& t, std::vector<candidate>* others) {
        run_tiles(i, t.a.data(), t.b.data(), t.c.data(), t.d.data(), k, tiles, &hardware);
        array<unsigned long long> counters(3);
        counters.set({0, ~0ull, 0});
        const int64_t n = tiles * ptx::tile_rows * ptx::tile_cols;
        const dot_source source{t.a.data(), t.b.data(), i.a, i.b};
        for_each_index(n, compare_tiles{source, m, t.c.data(), t.d.data(), k, counters.data()});
        const std::vector<unsigned long long> got = counters.host();
        result_row row{i.name, input_class_names[kind], k, static_cast<unsigned long long>(n), got[0], got[2], {}};
        if (got[0] > 0) {
            const auto index = static_cast<int64_t>(got[1] & ((1ull << 40) - 1));
            dot_input in = input_at(i, t, k, index);
            if (k <= 128) in = shrink(i, m, &hardware, std::move(in));
            const uint32_t d = run_dots(i, {in}, &hardware)[0];
            row.smallest = describe(i, in, d, model_dot(i, m, in));
        }
        rows_.push_back(std::move(row));
        if (others == nullptr) return;
        array<unsigned long long> counter(others->size());
        for (size_t o = 0; o < others->size(); ++o)
            for_each_index(n, count_tiles{source, (*others)[o].model, t.c.data(), t.d.data(), k, counter.data() + o});
        const std::vector<unsigned long long> counted = counter.host();
        for (size_t o = 0; o < others->size(); ++o) (*others)[o].mismatches += counted[o];
    }

    int report() {
        unsigned long long single = 0, single_wrong = 0, chains = 0, chains_wrong = 0;
        std::printf("\n%-28s %-11s %8s %12s %12s %12s\n", "instruction", "class", "K", "compared", "Inf, NaN",
                    "mismatches");
        for (const result_row& r : rows_) {
            std::printf("%-28s %-11s %8lld %12llu %12llu %12llu\n", r.instruction.c_str(), r.kind.c_str(),
                        static_cast<long long>(r.k), r.compared, r.nonfinite, r.mismatches);
            (r.k <= 32 ? single : chains) += r.compared;
            (r.k <= 32 ? single_wrong : chains_wrong) += r.mismatches;
        }
        std::printf("\nother models, mismatches over all classes of single instructions:\n");
        for (const instruction_report& r : reports_)
            for (const candidate& c : r.others)
                std::printf("%-28s %-36s %12llu\n", r.name.c_str(), c.name.c_str(), c.mismatches);
        bool first = true;
        for (const result_row& r : rows_) {
            if (r.mismatches == 0) continue;
            if (first) std::printf("\nsmallest inputs that differ:\n");
            first = false;
            std::printf("%s, %s, K = %lld: %s\n", r.instruction.c_str(), r.kind.c_str(), static_cast<long long>(r.k),
                        r.smallest.c_str());
        }
        std::printf("\n%llu dot products of one instruction: %llu mismatches; %llu chains: %llu mismatches; %.1f s\n",
                    single, single_wrong, chains, chains_wrong, seconds());
        if (!s_.json.empty()) write_json(single, single_wrong, chains, chains_wrong);
        return single_wrong + chains_wrong == 0 && failures_ == 0 && single > 0 ? 0 : 1;
    }

    void write_json(unsigned long long single, unsigned long long single_wrong, unsigned long long chains,
                    unsigned long long chains_wrong) const {
        std::ofstream out(s_.json);
        const auto quoted = [](const std::string& text) { return '"' + text + '"'; };  // no text here needs escapes
        out << "{\n  \"device\": " << quoted(device_) << ",\n  \"compute_capability\": " << capability_
            << ",\n  \"seed\": " << s_.seed << ",\n  \"single\": " << single
            << ",\n  \"single_mismatches\": " << single_wrong << ",\n  \"chains\": " << chains
            << ",\n  \"chain_mismatches\": " << chains_wrong << ",\n  \"seconds\": " << seconds()
            << ",\n  \"rows\": [\n";
        for (size_t n = 0; n < rows_.size(); ++n) {
            const result_row& r = rows_[n];
            out << "    {\"instruction\": " << quoted(r.instruction) << ", \"class\": " << quoted(r.kind)
                << ", \"k\": " << r.k << ", \"compared\": " << r.compared << ", \"nonfinite\": " << r.nonfinite
                << ", \"mismatches\": " << r.mismatches;
            if (!r.smallest.empty()) out << ", \"smallest\": " << quoted(r.smallest);
            out << (n + 1 < rows_.size() ? "},\n" : "}\n");
        }
        out << "  ],\n  \"instructions\": [\n";
        for (size_t n = 0; n < reports_.size(); ++n) {
            const instruction_report& r = reports_[n];
            out << "    {\"instruction\": " << quoted(r.name) << ", \"model\": " << quoted(r.model)
                << ", \"layout\": " << (r.layout ? "true" : "false") << ", \"other_models\": {";
            for (size_t o = 0; o < r.others.size(); ++o)
                out << (o > 0 ? ", " : "") << quoted(r.others[o].name) << ": " << r.others[o].mismatches;
            out << (n + 1 < reports_.size() ? "}},\n" : "}}\n");
        }
        out << "  ]\n}\n";
        if (!out.flush()) std::fprintf(stderr, "tensor_core: cannot write %s\n", s_.json.c_str());
    }

    /// Ten dot products of each instruction and class, and one chain of four instructions, as the device computes them.
    int write_vectors() {
        std::ofstream out(s_.vectors);
        out << "# Dot products d = c + sum a_i b_i as " << device_
            << " computes them (tests/cuda/tensor_core.cu --vectors, seed " << s_.seed
            << ").\n# instruction class a b c d: codes of a and b in hexadecimal, one after the other; c and d as "
               "bits of a float, or of an fp16 number.\n";
        int lines = 0;
        for (const instruction& i : instructions(capability_)) {
            const tensor_core_model* m = model_of(i, capability_);
            if (m == nullptr || i.name.find(s_.only) == std::string::npos) continue;
            const tensor_core_model hardware = stand_in(*m);
            for (int kind = 0; kind < input_classes; ++kind) {
                for (const int64_t k : {int64_t{i.k}, int64_t{4 * i.k}}) {
                    const int64_t tiles = k == i.k ? 10 : 1;
                    const tiles_on_device t(i, k, tiles);
                    fill(i, *m, kind, k, tiles, 1 << 20, t);  // tiles that the comparison does not use
                    run_tiles(i, t.a.data(), t.b.data(), t.c.data(), t.d.data(), k, tiles, &hardware);
                    for (int64_t n = 0; n < tiles; ++n) {
                        const int64_t index = n * (ptx::tile_rows * ptx::tile_cols + 51) + kind;
                        if (index >= tiles * ptx::tile_rows * ptx::tile_cols) continue;
                        write_vector(out, i, input_class_names[kind], input_at(i, t, k, index),
                                     t.d.host(static_cast<size_t>(index), 1)[0]);
                        ++lines;
                    }
                }
            }
        }
        if (!out.flush()) {
            std::fprintf(stderr, "tensor_core: cannot write %s\n", s_.vectors.c_str());
            return 1;
        }
        std::printf("%d vectors written to %s\n", lines, s_.vectors.c_str());
        return 0;
    }
    static void write_vector(std::ostream& out, const instruction& i, const char* kind, const dot_input& in,
                             uint32_t d) {
        std::string name = i.name;
        std::replace(name.begin(), name.end(), ' ', '_');
        char digits[16];
        out << name << ' ' << kind << ' ';
        for (const uint32_t code : in.a) {
            std::snprintf(digits, sizeof digits, "%0*x", 2 * i.a.bytes, code);
            out << digits;
        }
        out << ' ';
        for (const uint32_t code : in.b) {
            std::snprintf(digits, sizeof digits, "%0*x", 2 * i.b.bytes, code);
            out << digits;
        }
        std::snprintf(digits, sizeof digits, " %0*x", i.fp16_output ? 4 : 8, in.c);
        out << digits;
        std::snprintf(digits, sizeof digits, " %0*x\n", i.fp16_output ? 4 : 8, d);
        out << digits;
    }

    settings s_;
    int capability_ = 0, failures_ = 0;
    std::string device_;
    std::vector<result_row> rows_;
    std::vector<instruction_report> reports_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

int main(int argc, char** argv) {
    settings s;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        const auto value = [&]() -> std::string {
            if (i + 1 < argc) return argv[++i];
            std::fprintf(stderr, "tensor_core: %s needs a value\n%s", option.c_str(), usage);
            std::exit(2);
        };
        if (option == "--json") {
            s.json = value();
        } else if (option == "--vectors") {
            s.vectors = value();
        } else if (option == "--tiles") {
            s.tiles = std::max(1L, std::atol(value().c_str()));
        } else if (option == "--seed") {
            s.seed = std::strtoull(value().c_str(), nullptr, 10);
        } else if (option == "--only") {
            s.only = value();
        } else if (option == "--no-chains") {
            s.chains = false;
        } else if (option == "--dry-run") {
            dry_run = true;
            s.tiles = 1;
        } else if (option == "--perturb") {
            s.perturb = true;
        } else {
            std::fputs(usage, option == "--help" ? stdout : stderr);
            return option == "--help" ? 0 : 2;
        }
    }
    int devices = 0;
    if (!dry_run && (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)) {
        std::puts("SKIPPED: no CUDA device");
        return 77;
    }
    return program(s).run();
}
