// SPDX-License-Identifier: MIT
// How fast can a model decode on a GPU at best, and what limits it? Parameters, bytes of weights and cache, the floor
// of a decode step and of a prefill, and the arithmetic intensity of every operation, for any number format of the
// library.

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <numfmt/accuracy/roofline.hpp>
#include <numfmt/numfmt.hpp>

#include "support/command_line.hpp"
#include "support/files.hpp"
#include "support/plot.hpp"
#include "support/table.hpp"

namespace {

namespace roof = numfmt::accuracy::roofline;
using example::csv_number;
using example::printable;
using example::refuse;
using example::significant;
using example::with_commas;
using roof::arithmetic;
using roof::device;
using roof::model_config;
using roof::operation;
using roof::operation_list;
using roof::time_floor;

// --- formats --------------------------------------------------------------------------------------------------------

struct format_choice {
    std::string name;
    double bits = 0;  // per weight, scales included
    int element_bits = 0;
    bool is_float = true;
    std::optional<roof::kv_format> kv;  // nothing: its scales span several tokens
};

using unscaled_formats = numfmt::type_list<numfmt::bf16, numfmt::fp16, numfmt::fp8_e4m3, numfmt::fp8_e5m2>;

const std::vector<format_choice>& all_choices() {
    static const std::vector<format_choice> choices = [] {
        std::vector<format_choice> list;
        numfmt::for_each(unscaled_formats{}, [&]<class F>() {
            constexpr int bits = F::spec.bits();
            list.push_back({F::name, bits, bits, true, roof::kv_format{bits, 0, 0}});
        });
        numfmt::for_each(numfmt::all_schemes{}, [&]<class S>() {
            using traits = numfmt::scheme_traits<S>;
            format_choice c{S::name, traits::bits_per_weight(), traits::element_bits,
                            numfmt::float_format<typename S::element>, std::nullopt};
            if constexpr (roof::suits_kv<S>) c.kv = roof::kv_format_of<S>();
            list.push_back(std::move(c));
        });
        return list;
    }();
    return choices;
}

struct alias {
    const char* name;
    const char* meaning;
};
constexpr alias aliases[] = {{"fp8", "fp8_e4m3"},
                             {"fp8_per_token", "fp8_per_channel"},
                             {"mxfp8", "mxfp8_e4m3"},
                             {"mxfp6", "mxfp6_e2m3"},
                             {"int4", "awq_int4"}};

std::string known_formats(bool for_kv) {
    std::string text;
    for (const format_choice& c : all_choices())
        if (!for_kv || c.kv) text += (text.empty() ? "" : ", ") + c.name;
    for (const alias& a : aliases) text += fmt::format(", {} (= {})", a.name, a.meaning);
    return text;
}

const format_choice& choose_format(const char* option, std::string_view name, bool for_kv) {
    std::string_view meaning = name;
    for (const alias& a : aliases)
        if (name == a.name) meaning = a.meaning;
    for (const format_choice& c : all_choices()) {
        if (c.name != meaning) continue;
        if (for_kv && !c.kv)
            refuse("{}: '{}' has scales that span several tokens, which a cache cannot use; known are: {}", option,
                   name, known_formats(true));
        return c;
    }
    refuse("{}: '{}' is unknown; known are: {}", option, printable(name), known_formats(for_kv));
}

// --- devices --------------------------------------------------------------------------------------------------------

/// What was measured on one H200 under CUDA 13.0: reads of 0.5 GB through cp.async.bulk, and bare wgmma loops under the
/// power cap (in the first 20 ms they run at 950 and 1840 TFLOP/s). A measurement, so it is not in the library.
constexpr device measured_devices[] = {
    {"h200-measured",
     "measured on one H200: bulk reads, sustained wgmma; memory and fp32 from the data sheet",
     4.70e12,
     141e9,
     {67e12, 860e12, 1676e12, 0}}};

std::vector<device> all_devices() {
    std::vector<device> list(roof::device_presets.begin(), roof::device_presets.end());
    list.insert(list.end(), std::begin(measured_devices), std::end(measured_devices));
    return list;
}

// --- the model ------------------------------------------------------------------------------------------------------

struct chosen_model {
    model_config config;
    std::string name, source;
    std::vector<std::string> notes;
};

chosen_model preset_model(std::string_view name) {
    std::vector<std::string> known;
    for (const model_config& m : roof::model_presets) {
        if (name == m.name) return {m, m.name, m.source, {}};
        known.emplace_back(m.name);
    }
    refuse("--model: '{}' is unknown; known are: {}. Others: --config config.json", printable(name),
           fmt::join(known, ", "));
}

/// Reads a Hugging Face config.json. Every complaint names the key, what it got and what it wanted.
class config_reader {
  public:
    explicit config_reader(const std::string& path) : path_(path) {
        constexpr std::size_t limit = std::size_t{16} << 20;
        std::ifstream file(path, std::ios::binary);
        std::error_code code;
        if (std::filesystem::is_directory(path, code)) refuse("--config: '{}' is a directory", printable(path));
        if (!file) refuse("--config: cannot read '{}'", printable(path));
        std::string text;
        std::array<char, 65536> buffer{};
        while (file.read(buffer.data(), buffer.size()), file.gcount() > 0) {
            text.append(buffer.data(), static_cast<std::size_t>(file.gcount()));
            if (text.size() > limit) refuse("--config: '{}' is larger than 16 MiB: not a config.json", printable(path));
        }
        try {
            root_ = nlohmann::json::parse(text);
        } catch (const nlohmann::json::exception& e) {
            refuse("--config: '{}' is not JSON: {}", printable(path), printable(e.what()));
        }
        if (!root_.is_object()) refuse("--config: '{}': got {}, wanted an object", printable(path), shown(root_));
        object_ = &root_;
        // Models with images or sound keep the language model's sizes one level down.
        if (!root_.contains("hidden_size") && root_.contains("text_config")) {
            object_ = &root_["text_config"];
            prefix_ = "text_config.";
            if (!object_->is_object()) complain("", "an object", *object_);
        }
    }

    chosen_model read() {
        model_config m;
        for (const roof::config_field& f : roof::config_fields) {
            const std::string_view key = key_of(f);
            if (const auto value = integer(key, f.low, f.high))
                m.*f.member = *value;
            else if (!f.optional)
                missing(f.key, fmt::format("an integer from {} to {}", f.low, f.high));
        }
        const std::string type = text("model_type").value_or("");
        const auto is = [&](std::string_view start) { return type.compare(0, start.size(), start) == 0; };
        if (const auto tied = boolean("tie_word_embeddings")) {
            m.tie_word_embeddings = *tied;
        } else {
            m.tie_word_embeddings = is("gemma");
            note("tie_word_embeddings is absent: taken as {}", m.tie_word_embeddings);
        }
        read_attention(m);
        read_experts(m);
        read_windows(m, type);
        if (is("gemma2") || is("gemma3")) m.norms_per_layer = 4;
        m.qk_norm = is("gemma3") || is("qwen3");
        check(m);
        return {m, std::filesystem::path(path_).filename().string(),
                type.empty() ? "sizes from a file" : fmt::format("model_type {}", printable(type, 40)), notes_};
    }

  private:
    using json = nlohmann::json;

    void read_attention(model_config& m) {
        if (roof::has_mla(m)) return;
        if (m.num_key_value_heads == 0) {
            m.num_key_value_heads = m.num_attention_heads;
            note("num_key_value_heads is absent: taken as num_attention_heads, {}", m.num_attention_heads);
        }
        if (m.head_dim == 0) {
            if (m.hidden_size % m.num_attention_heads != 0)
                refuse("{}: missing, and hidden_size {} is not a multiple of num_attention_heads {}", where("head_dim"),
                       m.hidden_size, m.num_attention_heads);
            m.head_dim = m.hidden_size / m.num_attention_heads;
            note("head_dim is absent: taken as hidden_size / num_attention_heads, {}", m.head_dim);
        }
    }

    void read_experts(model_config& m) {
        if (!roof::has_experts(m)) return;
        // Dense and sparse layers in turns: only a dense beginning is modelled.
        for (const char* key : {"decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step"}) {
            const json* value = find(key);
            if (value != nullptr && *value != 1) complain(key, "1: MoE layers in turns are not supported", *value);
        }
        const json* dense = find("mlp_only_layers");
        if (dense != nullptr && !(dense->is_array() && dense->empty()))
            complain("mlp_only_layers", "[]: use first_k_dense_replace", *dense);
        if (m.moe_intermediate_size == 0 && m.intermediate_size > 0) {
            m.moe_intermediate_size = m.intermediate_size;
            note("moe_intermediate_size is absent: taken as intermediate_size, {}", m.intermediate_size);
        }
        // One shared expert with a size of its own counts as that many of the others' size.
        if (const auto shared = integer("shared_expert_intermediate_size", 0, 1 << 24); shared && *shared > 0) {
            if (m.moe_intermediate_size == 0 || *shared % m.moe_intermediate_size != 0)
                refuse("{}: got {}, wanted a multiple of moe_intermediate_size {}",
                       where("shared_expert_intermediate_size"), *shared, m.moe_intermediate_size);
            m.n_shared_experts = *shared / m.moe_intermediate_size;
        }
    }

    void read_windows(model_config& m, const std::string& type) {
        if (boolean("use_sliding_window") == false) m.sliding_window = 0;
        if (const json* types = find("layer_types")) {
            if (!types->is_array()) complain("layer_types", "a list of layer types", *types);
            if (types->size() != static_cast<std::size_t>(m.num_hidden_layers))
                refuse("{}: got {} entries, wanted num_hidden_layers, {}", where("layer_types"), types->size(),
                       m.num_hidden_layers);
            for (std::size_t i = 0; i < types->size(); ++i) {
                if ((*types)[i] == "sliding_attention")
                    ++m.local_layers;
                else if ((*types)[i] != "full_attention")
                    complain(fmt::format("layer_types[{}]", i), R"("full_attention" or "sliding_attention")",
                             (*types)[i]);
            }
            if (m.local_layers > 0 && m.sliding_window == 0)
                missing("sliding_window", "an integer from 1 on, since layer_types has sliding_attention");
            return;
        }
        if (m.sliding_window == 0) return;
        auto pattern = integer("sliding_window_pattern", 1, 1 << 14);
        if (!pattern) pattern = integer("_sliding_window_pattern", 1, 1 << 14);
        if (!pattern && (type == "gemma2" || type == "gemma3_text")) {
            pattern = type == "gemma2" ? 2 : 6;
            note("sliding_window_pattern is absent: taken as {} for {}", *pattern, type);
        }
        const auto first_local = integer("max_window_layers", 0, 1 << 14);
        if (pattern) {
            m.local_layers = m.num_hidden_layers - m.num_hidden_layers / *pattern;
        } else if (first_local && boolean("use_sliding_window") == true) {
            m.local_layers = std::max(m.num_hidden_layers - *first_local, std::int64_t{0});
        } else {
            m.local_layers = m.num_hidden_layers;
            note("sliding_window without layer_types or sliding_window_pattern: every layer is taken as local");
        }
    }

    // What the sizes have to be together.
    void check(const model_config& m) {
        const numfmt::status s = roof::check(m);
        if (s.ok()) return;
        const std::string key(key_of(s.argument));
        const bool absent = find(key) == nullptr;
        switch (s.code) {
            case numfmt::status_code::too_small:
                if (absent) missing(key, fmt::format("an integer from {} on, which this architecture needs", s.wanted));
                refuse("{}: got {}, wanted at least {}", where(key), s.got, s.wanted);
            case numfmt::status_code::shape_mismatch:
                refuse("{}: got {}, wanted a divisor of num_attention_heads, {}", where(key), s.got, s.wanted);
            default:
                refuse("{}: got {}, wanted at most {}", where(key), s.got, s.wanted);
        }
    }

    // --- values by key; null counts as absent ---

    const json* find(std::string_view key) const {
        const auto it = object_->find(std::string(key));
        return it == object_->end() || it->is_null() ? nullptr : &*it;
    }

    // The experts' number goes by three names.
    std::string_view key_of(std::string_view key) const {
        if (key != "n_routed_experts" || find(key) != nullptr) return key;
        for (const char* other : {"num_local_experts", "num_experts"})
            if (find(other) != nullptr) return other;
        return key;
    }
    std::string_view key_of(const roof::config_field& f) const { return key_of(f.key); }

    std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high) const {
        const json* value = find(key);
        if (value == nullptr) return std::nullopt;
        const bool is_size =
            value->is_number_integer() &&
            (value->is_number_unsigned() ? value->get<std::uint64_t>() <= static_cast<std::uint64_t>(high)
                                         : value->get<std::int64_t>() <= high);
        // Some configs write 0 for a part that they lack.
        const bool zero_means_absent = key == "q_lora_rank";
        if (is_size && zero_means_absent && value->get<std::int64_t>() == 0) return std::nullopt;
        if (!is_size || value->get<std::int64_t>() < low)
            complain(key, fmt::format("an integer from {} to {}", low, high), *value);
        return value->get<std::int64_t>();
    }
    std::optional<bool> boolean(std::string_view key) const {
        const json* value = find(key);
        if (value == nullptr) return std::nullopt;
        if (!value->is_boolean()) complain(key, "true or false", *value);
        return value->get<bool>();
    }
    std::optional<std::string> text(std::string_view key) const {
        const json* value = find(key);
        if (value == nullptr) return std::nullopt;
        if (!value->is_string()) complain(key, "a string", *value);
        return value->get<std::string>();
    }

    std::string where(std::string_view key) const {
        std::string name = prefix_ + std::string(key);
        if (!name.empty() && name.back() == '.') name.pop_back();
        return fmt::format("--config: '{}': {}", printable(path_), name);
    }
    static std::string shown(const json& value) {
        if (value.is_object()) return "an object";
        if (value.is_array()) return fmt::format("a list of {}", value.size());
        return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 60);
    }
    [[noreturn]] void complain(std::string_view key, std::string_view wanted, const json& got) const {
        refuse("{}: got {}, wanted {}", where(key), shown(got), wanted);
    }
    [[noreturn]] void missing(std::string_view key, std::string_view wanted) const {
        refuse("{}: missing, wanted {}", where(key), wanted);
    }
    template <class... Args> void note(fmt::format_string<Args...> format, Args&&... args) {
        notes_.push_back(fmt::format(format, std::forward<Args>(args)...));
    }

    std::string path_;
    json root_;
    const json* object_ = nullptr;
    std::string prefix_;
    std::vector<std::string> notes_;
};

// --- the command line -----------------------------------------------------------------------------------------------

struct settings {
    chosen_model model;
    device gpu;
    std::string gpu_name, gpu_source;
    format_choice weights, embedding, kv;
    roof::precision precision;
    std::int64_t batch = 1, context = 8192, prompt = 0, tp = 1;
    std::optional<double> measured_ms;
    std::string csv, plot;
    bool json = false, list = false;
};

constexpr const char* help_header = R"(roofline: how fast a model can decode on a GPU at best, and what limits it.

From a model's sizes, a GPU's bandwidth and peaks, and the formats of weights and KV cache: parameters, bytes, whether
they fit, the time that a decode step and a prefill cannot go below, the batch and the context at which the limit
changes, and the arithmetic intensity of every operation. Exit code 0, 2 for bad input, 1 for any other failure.
)";
constexpr const char* help_footer = R"(
What is counted:
  floor         the larger of bytes / bandwidth and operations / peak, everything overlapping. Bytes: the weights once
                per step (of an MoE the experts that the batch touches), the cache once per sequence, and the entry of
                the new token. In the tables of operations each is a kernel of its own and also moves its inputs and
                outputs.
  experts       expected number that a batch touches per layer, E (1 - (1 - k/E)^batch): every token picks k of E
                uniformly and independently. A skewed router touches fewer.
  weights       format of projections, MLPs and experts, scales included; embedding and LM head have --embedding; norms
                and router are bf16
  KV            scales that grow with the tokens are counted (mxfp8, mxfp4, nvfp4, int4, fp8_per_token: one per token,
                head, and K or V), static ones are free (fp8, fp8_per_tensor)
  knee          smallest batch (or shortest prompt) at which arithmetic takes longer than moving the bytes
  KV > weights  context from which on a step reads more cache than weights
  --tp N        everything is per rank: heads, MLPs, experts and vocabulary are split; KV heads are copied once there
                are more ranks than heads; MLA's latent, norms and router are on every rank. Communication is not
                counted.
Not counted: biases, softmax, sampling, vision towers, multi-token prediction. GB are 10^9 bytes.

Examples:
  roofline --model 70b-gqa --weights mxfp4 --kv fp8 --gpu h200 --batch 16
  roofline --model 671b-moe --weights block_fp8_128x128 --kv bf16 --gpu h200 --tp 8 --batch 64 --plot roofline.svg
  roofline --model 8b-gqa --weights awq_int4 --measured-ms 2.1      how much of the bandwidth a measured step used
  roofline --config config.json --bandwidth 1.0 --flops 165 --memory 24      any model, any GPU
  roofline --list                                                    models, GPUs and formats
)";

void check_range(const char* option, double value, double low, double high) {
    if (!(value >= low && value <= high)) refuse("{}: got {}, wanted {} to {}", option, value, low, high);
}
void check_range(const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high) refuse("{}: got {}, wanted {} to {}", option, value, low, high);
}

void choose_device(settings& s, const std::string& name, std::optional<double> bandwidth, std::optional<double> flops,
                   std::optional<double> memory) {
    if (bandwidth) check_range("--bandwidth", *bandwidth, 1e-6, 1e6);
    if (flops) check_range("--flops", *flops, 1e-6, 1e9);
    if (memory) check_range("--memory", *memory, 1e-3, 1e9);
    if (name.empty() && (bandwidth || flops)) {
        if (!bandwidth || !flops) refuse("without --gpu, both --bandwidth and --flops are needed");
        s.gpu_name = "custom";
        s.gpu_source = "from the command line";
    } else {
        std::vector<std::string> known;
        bool found = false;
        for (const device& d : all_devices()) {
            known.emplace_back(d.name);
            if ((name.empty() ? "h200" : name) != d.name) continue;
            found = true;
            s.gpu = d;
            s.gpu_name = d.name;
            s.gpu_source = d.source;
        }
        if (!found)
            refuse("--gpu: '{}' is unknown; known are: {}. Others: --bandwidth and --flops", printable(name),
                   fmt::join(known, ", "));
        if (bandwidth || flops || memory) s.gpu_source += ", changed on the command line";
    }
    if (bandwidth) s.gpu.bandwidth = *bandwidth * 1e12;
    if (memory) s.gpu.memory = *memory * 1e9;
    if (flops) {
        for (double& peak : s.gpu.peak)
            if (peak > 0 || s.gpu_name == "custom") peak = *flops * 1e12;
    }
}

void choose_precision(settings& s, const std::string& compute) {
    roof::precision& p = s.precision;
    p.weights = {s.weights.bits, s.embedding.bits, static_cast<double>(numfmt::bf16::spec.bits())};
    p.kv = *s.kv.kv;
    p.linear = roof::fastest_arithmetic(s.gpu, s.weights.element_bits, s.weights.is_float);
    p.embedding = roof::fastest_arithmetic(s.gpu, s.embedding.element_bits, s.embedding.is_float);
    if (!compute.empty()) {
        std::vector<std::string> known;
        for (const arithmetic a : {arithmetic::bf16, arithmetic::fp8, arithmetic::fp4})
            if (s.gpu.peak_of(a) > 0) known.emplace_back(roof::name_of(a));
        if (std::find(known.begin(), known.end(), compute) == known.end())
            refuse("--compute: got '{}', wanted what {} has: {}", printable(compute), s.gpu_name,
                   fmt::join(known, ", "));
        for (const arithmetic a : {arithmetic::bf16, arithmetic::fp8, arithmetic::fp4})
            if (compute == roof::name_of(a)) p.linear = a;
    }
}

void print_list() {
    example::text_table models(
        {{"model", ""}, {"what it is", ""}, {"parameters", "10^9"}, {"active", "10^9"}, {"KV in bf16", "B/token"}}, 2);
    for (const model_config& m : roof::model_presets) {
        const auto c = roof::parameters(m);
        models.add({m.name, m.source, fmt::format("{:.2f}", c.total() / 1e9), fmt::format("{:.2f}", c.active() / 1e9),
                    fmt::format("{:.0f}", roof::kv_bytes_per_token(m, {16, 0, 0}))});
    }
    example::text_table gpus({{"GPU", ""},
                              {"where from", ""},
                              {"bandwidth", "TB/s"},
                              {"memory", "GB"},
                              {"fp32", "TFLOP/s"},
                              {"bf16", "TFLOP/s"},
                              {"fp8", "TFLOP/s"},
                              {"fp4", "TFLOP/s"}},
                             2);
    for (const device& d : all_devices()) {
        std::vector<std::string> cells = {d.name, d.source, fmt::format("{:.3f}", d.bandwidth / 1e12),
                                          fmt::format("{:.0f}", d.memory / 1e9)};
        for (const double peak : d.peak) cells.push_back(peak > 0 ? fmt::format("{:g}", peak / 1e12) : "-");
        gpus.add(std::move(cells));
    }
    example::text_table formats({{"format", ""}, {"weights", "bits"}, {"KV, head of 128", "bits/element"}}, 1);
    for (const format_choice& c : all_choices())
        formats.add({c.name, fmt::format("{:.5f}", c.bits),
                     c.kv ? fmt::format("{:.4f}", static_cast<double>(c.kv->vector_bytes(128)) / 16) : "-"});
    fmt::print("{}\n{}\n{}", models.str(), gpus.str(), formats.str());
    for (const alias& a : aliases) fmt::print("{} = {}\n", a.name, a.meaning);
}

settings parse_command_line(int argc, char** argv) {
    settings s;
    std::string model, config, gpu, weights = "bf16", embedding = "bf16", kv = "bf16", compute;
    std::optional<double> bandwidth, flops, memory;

    CLI::App app(help_header, "roofline");
    app.footer(help_footer);
    app.get_formatter()->column_width(30);
    app.set_version_flag("--version", example::version(), "print the version and exit");
    const auto add = [&](const char* name, auto& variable, const char* type, const char* text) {
        return app.add_option(name, variable, text)->type_name(type);
    };
    add("--model", model, "NAME", "a preset: 8b-gqa, 70b-gqa, 671b-moe, sliding-window");
    add("--config", config, "FILE", "a model's config.json, with Hugging Face's keys");
    add("--gpu", gpu, "NAME", "a preset, see --list [h200]");
    add("--bandwidth", bandwidth, "TB/s", "memory bandwidth, instead of the preset's");
    add("--flops", flops, "TFLOP/s", "dense peak of all arithmetic, instead of the preset's");
    add("--memory", memory, "GB", "memory, instead of the preset's");
    add("--weights", weights, "NAME", "format of the weights: bf16, fp16, fp8 or a scheme, see --list [bf16]");
    add("--embedding", embedding, "NAME", "format of embedding table and LM head [bf16]");
    add("--kv", kv, "NAME", "format of the KV cache [bf16]");
    add("--compute", compute, "NAME",
        "arithmetic of the linear layers: bf16, fp8, fp4 [the GPU's fastest for the weights]");
    add("--batch", s.batch, "N", "sequences per decode step, of the table of operations [1]");
    add("--context", s.context, "N", "tokens per sequence [8192]");
    auto* const prompt = add("--prompt", s.prompt, "N", "tokens of the prompt [--context]");
    add("--tp", s.tp, "N", "ranks of tensor parallelism [1]");
    add("--measured-ms", s.measured_ms, "X", "a measured decode step of --batch: shows the bandwidth it used");
    app.add_flag("--json", s.json, "print JSON instead of tables");
    add("--csv", s.csv, "FILE", "also write all steps and operations to this file");
    add("--plot", s.plot, "FILE", "also draw the roofline and decode time against batch; .svg or .png (needs gnuplot)");
    app.add_flag("--list", s.list, "print the known models, GPUs and formats, and exit");

    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& e) {  // --help, --version
        std::exit(app.exit(e));
    } catch (const CLI::ParseError& e) {
        refuse("{}\nRun with --help for more information.", e.what());
    }
    if (s.list) return s;

    if (model.empty() && config.empty()) refuse("--model or --config is needed. Run with --help for more information.");
    if (!model.empty() && !config.empty()) refuse("--config: does not go with --model");
    choose_device(s, gpu, bandwidth, flops, memory);
    s.weights = choose_format("--weights", weights, false);
    s.embedding = choose_format("--embedding", embedding, false);
    s.kv = choose_format("--kv", kv, true);
    choose_precision(s, compute);
    check_range("--batch", s.batch, 1, 1 << 20);
    check_range("--context", s.context, 1, 1 << 30);
    if (prompt->count() == 0) s.prompt = s.context;
    check_range("--prompt", s.prompt, 1, 1 << 30);
    if (s.measured_ms) check_range("--measured-ms", *s.measured_ms, 1e-6, 1e9);
    s.model = config.empty() ? preset_model(model) : config_reader(config).read();
    const numfmt::status split = roof::check_parallel(s.model.config, s.tp);
    if (split.code == numfmt::status_code::out_of_range)
        refuse("--tp: got {}, wanted 1 to {}", s.tp, s.model.config.num_attention_heads);
    if (!split.ok())
        refuse("--tp: got {}, wanted a divisor of the {} query heads{}", s.tp, s.model.config.num_attention_heads,
               roof::has_mla(s.model.config) ? ""
                                             : fmt::format(" that divides the {} KV heads or is a multiple of them",
                                                           s.model.config.num_key_value_heads));
    return s;
}

// --- results --------------------------------------------------------------------------------------------------------

struct decode_row {
    std::int64_t batch = 0;
    operation_list operations{};
    time_floor floor{};
    double weights = 0, kv = 0;  // bytes
    double experts = 0;
    std::int64_t overtaking = 0;
    double held = 0;  // bytes of weights and caches
};

struct results {
    roof::parameter_counts parameters, parameters_per_rank;
    double weight_bytes = 0, kv_per_token = 0, kv_bytes = 0;  // per rank; of one sequence
    std::int64_t sequences = 0;
    std::vector<decode_row> decode;
    decode_row chosen;  // at --batch
    std::int64_t knee = 0, knee_without_cache = 0;
    operation_list prefill{};
    time_floor prefill_floor{};
    std::int64_t prompt_knee = 0;
    std::optional<double> mbu, mfu;
};

decode_row decode_at(const settings& s, std::int64_t batch, double weights_held, double kv_per_sequence) {
    const model_config& m = s.model.config;
    decode_row r;
    r.batch = batch;
    r.operations = roof::decode_operations(m, s.precision, batch, s.context, s.tp);
    r.floor = roof::floor_of(r.operations, s.gpu);
    r.weights = roof::weight_bytes_read(r.operations);
    r.kv = roof::required_bytes(r.operations) - r.weights;
    r.experts = roof::expected_experts(m.n_routed_experts, m.num_experts_per_tok, batch);
    r.overtaking = roof::overtaking_context(m, s.precision, batch, s.tp);
    r.held = weights_held + static_cast<double>(batch) * kv_per_sequence;
    return r;
}

results compute(const settings& s) {
    const model_config& m = s.model.config;
    results r;
    r.parameters = roof::parameters(m);
    r.parameters_per_rank = roof::parameters(m, s.tp);
    r.weight_bytes = roof::weight_bytes(r.parameters_per_rank, s.precision.weights);
    r.kv_per_token = roof::kv_bytes_per_token(m, s.precision.kv, s.tp);
    r.kv_bytes = roof::kv_bytes(m, s.precision.kv, s.context, s.tp);
    r.sequences = roof::sequences_that_fit(m, s.precision, s.gpu, s.context, s.tp);
    std::vector<std::int64_t> batches = {1, 2, 4, 8, 16, 32, 64, 128, 256};
    if (const auto place = std::lower_bound(batches.begin(), batches.end(), s.batch);
        place == batches.end() || *place != s.batch)
        batches.insert(place, s.batch);
    for (const std::int64_t batch : batches) {
        r.decode.push_back(decode_at(s, batch, r.weight_bytes, r.kv_bytes));
        if (batch == s.batch) r.chosen = r.decode.back();
    }
    r.knee = roof::knee_batch(m, s.precision, s.gpu, s.context, s.tp);
    r.knee_without_cache = roof::knee_batch(m, s.precision, s.gpu, 0, s.tp);
    r.prefill = roof::prefill_operations(m, s.precision, s.prompt, 1, s.tp);
    r.prefill_floor = roof::floor_of(r.prefill, s.gpu);
    r.prompt_knee = roof::knee_prompt(m, s.precision, s.gpu, s.tp);
    if (s.measured_ms) {
        const double seconds = *s.measured_ms / 1e3;
        r.mbu = roof::bandwidth_utilisation(roof::required_bytes(r.chosen.operations), seconds, s.gpu);
        r.mfu = roof::compute_utilisation(r.chosen.floor, seconds);
    }
    return r;
}

const char* bound_by(const time_floor& t) { return t.compute_bound() ? "compute" : "memory"; }

// --- tables ---------------------------------------------------------------------------------------------------------

std::string describe(const model_config& m) {
    std::string text = fmt::format("{} layers, hidden {}", m.num_hidden_layers, m.hidden_size);
    if (roof::has_mla(m))
        text += fmt::format(", {} heads over a latent of {} + {}", m.num_attention_heads, m.kv_lora_rank,
                            m.qk_rope_head_dim);
    else
        text +=
            fmt::format(", {} query and {} KV heads of {}", m.num_attention_heads, m.num_key_value_heads, m.head_dim);
    if (m.local_layers > 0) text += fmt::format(", {} layers with a window of {}", m.local_layers, m.sliding_window);
    if (roof::dense_layers(m) > 0) text += fmt::format(", MLP {}", m.intermediate_size);
    if (roof::has_experts(m)) {
        text +=
            fmt::format(", {} of {} experts of {}", m.num_experts_per_tok, m.n_routed_experts, m.moe_intermediate_size);
        if (m.n_shared_experts > 0) text += fmt::format(" and {} shared", m.n_shared_experts);
        text += fmt::format(" in {} layers", roof::moe_layers(m));
    }
    return text + fmt::format(", vocabulary {}{}", m.vocab_size, m.tie_word_embeddings ? " (tied)" : "");
}

std::string describe(const settings& s) {
    std::string peaks;
    for (const arithmetic a : {arithmetic::bf16, arithmetic::fp8, arithmetic::fp4})
        if (s.gpu.peak_of(a) > 0) peaks += fmt::format(", {} {:g} TFLOP/s", roof::name_of(a), s.gpu.peak_of(a) / 1e12);
    const std::string memory = s.gpu.memory > 0 ? fmt::format(", {:g} GB", s.gpu.memory / 1e9) : "";
    return fmt::format("{}: {:g} TB/s{}{} ({})", s.gpu_name, s.gpu.bandwidth / 1e12, memory, peaks, s.gpu_source);
}

std::string gigabytes(double bytes) { return significant(bytes / 1e9, 4); }
std::string milliseconds(double seconds) { return significant(seconds * 1e3, 4); }
std::string tokens_or_never(std::int64_t n) { return n > 0 ? with_commas(n) : "never"; }

std::string knee_text(std::int64_t batch) {
    return batch > 0 ? fmt::format("compute bound from batch {} on", with_commas(batch))
                     : "bound by memory at every batch";
}

std::string operations_table(const settings& s, const operation_list& list) {
    example::text_table table({{"operation", ""},
                               {"in", ""},
                               {"operations", "GFLOP"},
                               {"weights", "MB"},
                               {"cache", "MB"},
                               {"activations", "MB"},
                               {"intensity", "FLOP/B"},
                               {"ridge", "FLOP/B"},
                               {"floor", "ms"},
                               {"bound by", ""}},
                              2);
    double sum = 0;
    for (const operation& o : list) {
        if (o.bytes() == 0) continue;
        const time_floor t = roof::floor_of(o, s.gpu);
        sum += t.seconds();
        const auto megabytes = [](double bytes) { return bytes > 0 ? significant(bytes / 1e6) : std::string("-"); };
        table.add({o.name, o.flops > 0 ? roof::name_of(o.kind) : "-", o.flops > 0 ? significant(o.flops / 1e9) : "-",
                   megabytes(o.weight_bytes), megabytes(o.kv_bytes), megabytes(o.activation_bytes),
                   o.flops > 0 ? significant(o.intensity()) : "-", o.flops > 0 ? significant(s.gpu.ridge(o.kind)) : "-",
                   milliseconds(t.seconds()), bound_by(t)});
    }
    return table.str() + fmt::format("One kernel after the other: {} ms.\n", milliseconds(sum));
}

void print_tables(const settings& s, const results& r) {
    const model_config& m = s.model.config;
    const char* const per_rank = s.tp > 1 ? " per rank" : "";
    fmt::print("{}: {}\n{}\n{}\n", printable(s.model.name), s.model.source, describe(m), describe(s));
    fmt::print("weights {} ({:g} bits), embedding and head {}, cache {}; linear layers multiply in {}", s.weights.name,
               s.weights.bits, s.embedding.name, s.kv.name, roof::name_of(s.precision.linear));
    fmt::print("{}\n\n", s.tp > 1 ? fmt::format("; {} ranks, all figures below per rank", s.tp) : "");

    fmt::print("parameters        {} ({:.2f}e9), {:.2f}e9 active per token\n",
               with_commas(static_cast<std::int64_t>(r.parameters.total())), r.parameters.total() / 1e9,
               r.parameters.active() / 1e9);
    fmt::print("weights           {} GB{}\n", gigabytes(r.weight_bytes), per_rank);
    fmt::print("cache per token   {} B{}{}\n", with_commas(static_cast<std::int64_t>(r.kv_per_token)), per_rank,
               m.local_layers > 0 ? fmt::format("; {} B past {} tokens",
                                                with_commas(static_cast<std::int64_t>(
                                                    static_cast<double>(roof::global_layers(m)) *
                                                    roof::kv_bytes_per_token_layer(m, s.precision.kv, s.tp))),
                                                m.sliding_window)
                                  : "");
    fmt::print("cache             {} GB for {} x {} tokens\n", gigabytes(static_cast<double>(s.batch) * r.kv_bytes),
               s.batch, s.context);
    if (s.gpu.memory > 0) {
        fmt::print("together          {} of {:g} GB: ", gigabytes(r.chosen.held), s.gpu.memory / 1e9);
        if (r.sequences < 0)
            fmt::print("the weights alone do not fit\n");
        else
            fmt::print("{}; there is room for {} sequences of {} tokens\n",
                       r.sequences >= s.batch ? "fits" : "does not fit", with_commas(r.sequences), s.context);
    }

    fmt::print("\nDecode, {} tokens of context\n", s.context);
    std::vector<std::pair<std::string, std::string>> headers = {{"batch", ""}};
    if (roof::has_experts(m)) headers.emplace_back("experts", "of " + std::to_string(m.n_routed_experts));
    headers.insert(headers.end(), {{"weights", "GB"},
                                   {"cache", "GB"},
                                   {"moving", "ms"},
                                   {"computing", "ms"},
                                   {"floor", "ms"},
                                   {"bound by", ""},
                                   {"tokens/s", "in all"},
                                   {"tokens/s", "each"},
                                   {"KV > weights", "context"}});
    if (s.gpu.memory > 0) headers.emplace_back("fits", "");
    example::text_table table(std::move(headers), 0);
    for (const decode_row& d : r.decode) {
        std::vector<std::string> cells = {std::to_string(d.batch)};
        if (roof::has_experts(m)) cells.push_back(fmt::format("{:.1f}", d.experts));
        const double t = d.floor.seconds();
        cells.insert(cells.end(), {gigabytes(d.weights), gigabytes(d.kv), milliseconds(d.floor.memory),
                                   milliseconds(d.floor.compute), milliseconds(t), bound_by(d.floor),
                                   with_commas(static_cast<std::int64_t>(static_cast<double>(d.batch) / t)),
                                   significant(1 / t), tokens_or_never(d.overtaking)});
        if (s.gpu.memory > 0) cells.emplace_back(d.held <= s.gpu.memory ? "yes" : "no");
        table.add(std::move(cells));
    }
    fmt::print("{}", table.str());
    fmt::print("Knee: {}; if the cache were not read: {}.\n", knee_text(r.knee), knee_text(r.knee_without_cache));
    if (roof::has_experts(m)) fmt::print("Experts: expected number under uniform, independent routing.\n");

    fmt::print("\nOperations of a decode step, batch {}, all layers together\n{}", s.batch,
               operations_table(s, r.chosen.operations));
    fmt::print("\nPrefill of {} tokens: at least {} ms, bound by {} (by compute from {} on)\n{}", s.prompt,
               milliseconds(r.prefill_floor.seconds()), bound_by(r.prefill_floor),
               r.prompt_knee > 0 ? with_commas(r.prompt_knee) + " tokens" : "no length",
               operations_table(s, r.prefill));
    if (s.measured_ms) {
        fmt::print(
            "\nMeasured {:g} ms: {:.1f} % of the bandwidth (MBU), {:.1f} % of the arithmetic; {:.2f} times the "
            "floor{}\n",
            *s.measured_ms, 100 * *r.mbu, 100 * *r.mfu, *s.measured_ms / 1e3 / r.chosen.floor.seconds(),
            *s.measured_ms / 1e3 < r.chosen.floor.seconds() ? ". Below it: time, formats or peaks are not these" : "");
    }
    for (const std::string& note : s.model.notes) fmt::print("note: {}\n", note);
}

// --- JSON and CSV ---------------------------------------------------------------------------------------------------

using ordered_json = nlohmann::ordered_json;

// A count as an integer where it is one, so that it reads back exactly.
ordered_json number(double x) {
    if (!std::isfinite(x)) return {};
    if (x == std::floor(x) && std::fabs(x) < 9e15) return static_cast<std::int64_t>(x);
    return x;
}
ordered_json count_or_null(std::int64_t n) { return n > 0 ? ordered_json(n) : ordered_json(); }

ordered_json json_of(const settings& s, const operation_list& list) {
    ordered_json out = ordered_json::array();
    for (const operation& o : list) {
        if (o.bytes() == 0) continue;
        const time_floor t = roof::floor_of(o, s.gpu);
        out.push_back({{"operation", o.name},
                       {"arithmetic", roof::name_of(o.kind)},
                       {"flops", number(o.flops)},
                       {"weight_bytes", number(o.weight_bytes)},
                       {"kv_bytes", number(o.kv_bytes)},
                       {"activation_bytes", number(o.activation_bytes)},
                       {"intensity", o.intensity()},
                       {"ridge", s.gpu.ridge(o.kind)},
                       {"memory_seconds", t.memory},
                       {"compute_seconds", t.compute},
                       {"floor_seconds", t.seconds()},
                       {"bound", bound_by(t)}});
    }
    return out;
}

ordered_json json_of(const settings& s, const results& r) {
    const model_config& m = s.model.config;
    ordered_json out;
    out["version"] = example::version();
    out["model"] = {{"name", s.model.name}, {"source", s.model.source}};
    for (const roof::config_field& f : roof::config_fields) out["model"][f.key] = m.*f.member;
    out["model"]["local_layers"] = m.local_layers;
    out["model"]["tie_word_embeddings"] = m.tie_word_embeddings;
    out["gpu"] = {{"name", s.gpu_name},
                  {"source", s.gpu_source},
                  {"bandwidth_bytes_per_second", number(s.gpu.bandwidth)},
                  {"memory_bytes", s.gpu.memory > 0 ? number(s.gpu.memory) : ordered_json()}};
    for (int a = 0; a < roof::arithmetic_count; ++a) {
        const double peak = s.gpu.peak[static_cast<std::size_t>(a)];
        out["gpu"]["peak_flops"][roof::name_of(static_cast<arithmetic>(a))] = peak > 0 ? number(peak) : ordered_json();
    }
    out["weights"] = {{"format", s.weights.name},
                      {"bits_per_weight", s.weights.bits},
                      {"embedding_format", s.embedding.name},
                      {"embedding_bits_per_weight", s.embedding.bits},
                      {"arithmetic", roof::name_of(s.precision.linear)}};
    out["tp"] = s.tp;
    out["parameters"] = {{"total", number(r.parameters.total())}, {"active", number(r.parameters.active())}};
    out["weight_bytes"] = number(r.weight_bytes);
    out["kv"] = {{"format", s.kv.name},
                 {"bytes_per_token", number(r.kv_per_token)},
                 {"context", s.context},
                 {"bytes_per_sequence", number(r.kv_bytes)}};
    out["fits"] = s.gpu.memory > 0 ? ordered_json(r.chosen.held <= s.gpu.memory) : ordered_json();
    out["sequences_that_fit"] =
        s.gpu.memory > 0 ? ordered_json(std::max(r.sequences, std::int64_t{0})) : ordered_json();
    out["decode"] = ordered_json::array();
    for (const decode_row& d : r.decode) {
        out["decode"].push_back({{"batch", d.batch},
                                 {"experts_touched", roof::has_experts(m) ? ordered_json(d.experts) : ordered_json()},
                                 {"weight_bytes", number(d.weights)},
                                 {"kv_bytes", number(d.kv)},
                                 {"flops", number(roof::total_flops(d.operations))},
                                 {"memory_seconds", d.floor.memory},
                                 {"compute_seconds", d.floor.compute},
                                 {"floor_seconds", d.floor.seconds()},
                                 {"bound", bound_by(d.floor)},
                                 {"overtaking_context", count_or_null(d.overtaking)},
                                 {"fits", s.gpu.memory > 0 ? ordered_json(d.held <= s.gpu.memory) : ordered_json()}});
    }
    out["knee_batch"] = count_or_null(r.knee);
    out["knee_batch_without_cache"] = count_or_null(r.knee_without_cache);
    out["batch"] = s.batch;
    out["decode_operations"] = json_of(s, r.chosen.operations);
    out["prefill"] = {{"prompt", s.prompt},
                      {"memory_seconds", r.prefill_floor.memory},
                      {"compute_seconds", r.prefill_floor.compute},
                      {"floor_seconds", r.prefill_floor.seconds()},
                      {"bound", bound_by(r.prefill_floor)},
                      {"knee_prompt", count_or_null(r.prompt_knee)},
                      {"operations", json_of(s, r.prefill)}};
    if (s.measured_ms)
        out["measured"] = {
            {"seconds", *s.measured_ms / 1e3}, {"bandwidth_utilisation", *r.mbu}, {"compute_utilisation", *r.mfu}};
    out["notes"] = s.model.notes;
    return out;
}

void write_csv(const settings& s, const results& r) {
    std::string text = example::csv_line({"phase", "item", "batch", "tokens", "arithmetic", "flops", "weight_bytes",
                                          "kv_bytes", "activation_bytes", "intensity", "ridge", "memory_seconds",
                                          "compute_seconds", "floor_seconds", "bound"});
    const auto add_step = [&](const char* phase, std::int64_t batch, std::int64_t tokens, const operation_list& list,
                              const time_floor& t) {
        const double weights = roof::weight_bytes_read(list);
        text += example::csv_line({phase, "step", std::to_string(batch), std::to_string(tokens), "",
                                   csv_number(roof::total_flops(list)), csv_number(weights),
                                   csv_number(roof::required_bytes(list) - weights), "", "", "", csv_number(t.memory),
                                   csv_number(t.compute), csv_number(t.seconds()), bound_by(t)});
    };
    const auto add_operations = [&](const char* phase, std::int64_t batch, std::int64_t tokens,
                                    const operation_list& list) {
        for (const operation& o : list) {
            if (o.bytes() == 0) continue;
            const time_floor t = roof::floor_of(o, s.gpu);
            text += example::csv_line({phase, o.name, std::to_string(batch), std::to_string(tokens),
                                       roof::name_of(o.kind), csv_number(o.flops), csv_number(o.weight_bytes),
                                       csv_number(o.kv_bytes), csv_number(o.activation_bytes),
                                       csv_number(o.intensity()), csv_number(s.gpu.ridge(o.kind)), csv_number(t.memory),
                                       csv_number(t.compute), csv_number(t.seconds()), bound_by(t)});
        }
    };
    for (const decode_row& d : r.decode) add_step("decode", d.batch, s.context, d.operations, d.floor);
    add_operations("decode", s.batch, s.context, r.chosen.operations);
    add_step("prefill", 1, s.prompt, r.prefill, r.prefill_floor);
    add_operations("prefill", 1, s.prompt, r.prefill);
    example::write_csv_file(s.csv, text);
}

// --- the picture ----------------------------------------------------------------------------------------------------

// A frame of the picture with logarithmic axes: pixels from the top left corner of a canvas.
struct panel {
    double canvas_width, canvas_height;
    example::detail::box area;
    double x0, x1, y0, y1;  // axis limits

    double px(double x) const { return area.x0 + std::log(x / x0) / std::log(x1 / x0) * (area.x1 - area.x0); }
    double py(double y) const { return area.y1 - std::log(y / y0) / std::log(y1 / y0) * (area.y1 - area.y0); }
    std::string at(double pixel_x, double pixel_y) const {
        return fmt::format("screen {:.5f}, screen {:.5f}", pixel_x / canvas_width, 1 - pixel_y / canvas_height);
    }
    std::string frame() const {
        return fmt::format(
            "set lmargin at screen {:.5f}; set rmargin at screen {:.5f}; set tmargin at screen {:.5f}; set bmargin at "
            "screen {:.5f}\nset logscale xy\nset xrange [{:.9g}:{:.9g}]; set yrange [{:.9g}:{:.9g}]\n",
            area.x0 / canvas_width, area.x1 / canvas_width, 1 - area.y0 / canvas_height, 1 - area.y1 / canvas_height,
            x0, x1, y0, y1);
    }
};

struct labelled {
    double x, y;
    std::string text;
    std::string colour;
};

// Puts the labels beside their points, clear of each other, of the other points and of the obstacles (pixels along
// curves and text). Every label in turn takes the cheapest of many places, a few rounds over. Deterministic.
std::string place(const panel& p, const std::vector<labelled>& points,
                  const std::vector<std::array<double, 2>>& obstacles, const example::detail::box& legend) {
    using example::detail::box;
    constexpr double half = 7, height = 15;
    std::vector<box> blocked = {legend};
    const auto block = [&](double x, double y) { blocked.push_back({x - half, y - half, x + half, y + half}); };
    for (const labelled& l : points) block(p.px(l.x), p.py(l.y));
    for (const auto& o : obstacles) block(o[0], o[1]);

    struct placed_label {
        box area;
        std::array<double, 4> leader{};  // from the point to the label
        double distance = 0;
    };
    std::vector<std::optional<placed_label>> placed(points.size());
    for (int round = 0; round < 4; ++round) {
        for (std::size_t i = 0; i < points.size(); ++i) {
            const double x = p.px(points[i].x), y = p.py(points[i].y);
            const double width = 7.6 * static_cast<double>(points[i].text.size());
            double lowest = 1e300;
            placed_label best;
            for (double distance = 9; distance < 110; distance += 7) {
                for (int direction = 0; direction < 32; ++direction) {
                    const double angle = 2 * 3.14159265358979 * direction / 32;
                    const double cx = x + std::cos(angle) * (distance + width / 2),
                                 cy = y + std::sin(angle) * (distance + height / 2);
                    placed_label l;
                    l.area = {cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2};
                    l.leader = {x, y, std::clamp(x, l.area.x0, l.area.x1), std::clamp(y, l.area.y0, l.area.y1)};
                    l.distance = std::hypot(l.leader[2] - x, l.leader[3] - y);
                    double cost = l.distance;
                    cost += 200 * (std::max(0.0, p.area.x0 + 4 - l.area.x0) + std::max(0.0, l.area.x1 - p.area.x1 + 4) +
                                   std::max(0.0, p.area.y0 + 4 - l.area.y0) + std::max(0.0, l.area.y1 - p.area.y1 + 4));
                    for (const box& b : blocked) cost += 2 * l.area.overlap(b);
                    for (std::size_t k = 0; k < points.size() && cost < lowest; ++k) {
                        if (k == i || !placed[k]) continue;
                        const placed_label& other = *placed[k];
                        const box padded = {l.area.x0 - 5, l.area.y0 - 1, l.area.x1 + 5, l.area.y1 + 1};
                        cost += 20 * padded.overlap(other.area) +
                                6 * (example::detail::inside(l.leader, other.area) +
                                     example::detail::inside(other.leader, l.area)) +
                                (example::detail::segments_cross(l.leader, other.leader) ? 60 : 0);
                    }
                    if (cost < lowest) {
                        lowest = cost;
                        best = l;
                    }
                }
            }
            placed[i] = best;
        }
    }
    std::string s;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const placed_label& l = *placed[i];
        if (l.distance > 12)
            s += "set arrow from " + p.at(l.leader[0], l.leader[1]) + " to " + p.at(l.leader[2], l.leader[3]) +
                 " nohead linecolor rgb '#999999' linewidth 1 back\n";
        s += "set label " + example::detail::gnuplot_string(points[i].text) + " at " +
             p.at((l.area.x0 + l.area.x1) / 2, (l.area.y0 + l.area.y1) / 2) + " center front textcolor rgb '" +
             points[i].colour + "'\n";
    }
    return s;
}

void add_line(std::vector<std::array<double, 2>>& pixels, const panel& p, double xa, double ya, double xb, double yb) {
    const double ax = p.px(xa), ay = p.py(ya), bx = p.px(xb), by = p.py(yb);
    const int n = std::max(1, static_cast<int>(std::hypot(bx - ax, by - ay) / 14));
    for (int i = 0; i <= n; ++i) {
        const double t = static_cast<double>(i) / n;
        pixels.push_back({ax + t * (bx - ax), ay + t * (by - ay)});
    }
}

constexpr const char* decode_colour = "#0072b2";
constexpr const char* prefill_colour = "#d55e00";
constexpr const char* compute_colour = "#009e73";
constexpr const char* measured_colour = "#cc0000";

// Rooflines in TFLOP/s against FLOP/B, a point per operation at its intensity, on the roof that it can reach.
std::string roofline_panel(const settings& s, const results& r, double width, double height) {
    const double bandwidth = s.gpu.bandwidth;
    const auto attainable = [&](const operation& o) {
        return std::min(bandwidth * o.intensity(), s.gpu.peak_of(o.kind)) / 1e12;
    };
    struct phase {
        const operation_list& list;
        const char* name;
        const char* colour;
        int shape;
    };
    const std::array<phase, 2> phases = {
        {{r.chosen.operations, "decode", decode_colour, 7}, {r.prefill, "prefill", prefill_colour, 5}}};

    double x0 = 1, x1 = 1, top = 0;
    std::array<bool, roof::arithmetic_count> used{};
    for (const phase& f : phases) {
        for (const operation& o : f.list) {
            if (o.flops <= 0) continue;
            x0 = std::min(x0, o.intensity());
            x1 = std::max(x1, o.intensity());
            used[static_cast<std::size_t>(o.kind)] = true;
        }
    }
    for (int a = 0; a < roof::arithmetic_count; ++a) {
        top = std::max(top, s.gpu.peak[static_cast<std::size_t>(a)]);
        x1 = std::max(x1, s.gpu.ridge(static_cast<arithmetic>(a)));
    }
    panel p{width, height, {75, 95, 735, 690}, x0 / 3, x1 * 14, 0, 0};
    p.y0 = bandwidth * p.x0 / 1e12;
    p.y1 = top / 1e12 * 4;

    std::string out = p.frame();
    out += "set xlabel 'arithmetic intensity (FLOP per byte)'\nset ylabel 'TFLOP/s' offset 1\n";
    out += "set key bottom right Left reverse samplen 1.5 spacing 1.2\n";
    std::vector<std::array<double, 2>> pixels;
    std::string plot;
    const auto add_plot = [&](const std::string& text) { plot += (plot.empty() ? "plot " : ", ") + text; };

    // The slope, up to the highest roof; then the roofs, the unused ones thinner.
    const double corner = top / bandwidth;
    out += fmt::format("$slope << END_OF_DATA\n{:.9g} {:.9g}\n{:.9g} {:.9g}\nEND_OF_DATA\n", p.x0, p.y0, corner,
                       top / 1e12);
    add_plot("$slope using 1:2 with lines linewidth 2 linecolor rgb '#444444' notitle");
    add_line(pixels, p, p.x0, p.y0, corner, top / 1e12);
    for (int a = 0; a < roof::arithmetic_count; ++a) {
        const double peak = s.gpu.peak[static_cast<std::size_t>(a)];
        const bool is_used = used[static_cast<std::size_t>(a)];
        if (peak <= 0 || (s.gpu_name == "custom" && a != 1)) continue;
        out += fmt::format("$roof{} << END_OF_DATA\n{:.9g} {:.9g}\n{:.9g} {:.9g}\nEND_OF_DATA\n", a, peak / bandwidth,
                           peak / 1e12, p.x1, peak / 1e12);
        add_plot(fmt::format("$roof{} using 1:2 with lines linewidth {} linecolor rgb '{}' dashtype {} notitle", a,
                             is_used ? 2 : 1, is_used ? "#444444" : "#999999", is_used ? 1 : 2));
        add_line(pixels, p, peak / bandwidth, peak / 1e12, p.x1, peak / 1e12);
        const std::string text = fmt::format(
            "{}{:g} TFLOP/s",
            s.gpu_name == "custom" ? "" : fmt::format("{}: ", roof::name_of(static_cast<arithmetic>(a))), peak / 1e12);
        const double y = p.py(peak / 1e12) - 11;
        out += fmt::format("set label '{}' at {} right textcolor rgb '{}'\n", text, p.at(p.area.x1 - 8, y),
                           is_used ? "#444444" : "#888888");
        for (double x = 8; x < 8 + 7.6 * static_cast<double>(text.size()); x += 12)
            pixels.push_back({p.area.x1 - x, y});
    }

    std::vector<labelled> points;
    for (const phase& f : phases) {
        const bool is_decode = &f == &phases[0];
        out += fmt::format("$points_{} << END_OF_DATA\n", f.name);
        for (const operation& o : f.list) {
            if (o.flops <= 0) continue;
            points.push_back({o.intensity(), attainable(o), o.name, f.colour});
            out += fmt::format("{:.9g} {:.9g}\n", o.intensity(), attainable(o));
        }
        out += "END_OF_DATA\n";
        add_plot(
            fmt::format("$points_{} using 1:2 with points pointtype {} pointsize 1.1 linecolor rgb '{}' title '{}'",
                        f.name, f.shape, f.colour,
                        is_decode ? fmt::format("decode, batch {}, context {}", s.batch, s.context)
                                  : fmt::format("prefill, {} tokens", s.prompt)));
    }
    if (s.measured_ms) {
        const double flops = roof::total_flops(r.chosen.operations), seconds = *s.measured_ms / 1e3;
        const double x = flops / roof::required_bytes(r.chosen.operations), y = flops / seconds / 1e12;
        out += fmt::format("$measured << END_OF_DATA\n{:.9g} {:.9g}\nEND_OF_DATA\n", x, y);
        add_plot(fmt::format(
            "$measured using 1:2 with points pointtype 3 pointsize 1.6 linewidth 2 linecolor rgb '{}' title "
            "'measured step, {:.0f} % of the bandwidth'",
            measured_colour, 100 * *r.mbu));
    }
    // The bandwidth, written along the slope where that is emptiest.
    const double angle = std::atan2(p.py(1) - p.py(2), p.px(2) - p.px(1));
    std::array<double, 2> best{};
    double best_distance = -1;
    for (double x = p.x0 * 2.5; x < corner / 2.5; x *= 1.1) {
        const std::array<double, 2> here = {p.px(x), p.py(bandwidth * x / 1e12)};
        double nearest = 1e9;
        for (const labelled& l : points)
            nearest = std::min(nearest, std::hypot(p.px(l.x) - here[0], p.py(l.y) - here[1]));
        if (nearest > best_distance) {
            best_distance = nearest;
            best = here;
        }
    }
    out += fmt::format("set label '{:g} TB/s' at {} center rotate by {:.1f} textcolor rgb '#444444'\n",
                       bandwidth / 1e12, p.at(best[0] - 12 * std::sin(angle), best[1] - 12 * std::cos(angle)),
                       angle * 180 / 3.14159265358979);
    for (double t = -36; t <= 36; t += 12)
        pixels.push_back({best[0] - 12 * std::sin(angle) + t * std::cos(angle),
                          best[1] - 12 * std::cos(angle) - t * std::sin(angle)});
    const example::detail::box legend = {p.area.x1 - 300, p.area.y1 - (s.measured_ms ? 75 : 55), p.area.x1, p.area.y1};
    out += place(p, points, pixels, legend);
    return out + plot + "\n";
}

// Floor of a decode step against the batch, with its knees.
std::string batch_panel(const settings& s, const results& r, double width, double height) {
    const model_config& m = s.model.config;
    double last = 256;
    for (const std::int64_t knee : {r.knee, r.knee_without_cache})
        if (knee > 0 && knee <= 8192) last = std::max(last, 4.0 * static_cast<double>(knee));
    last = std::max(last, static_cast<double>(s.batch));
    std::vector<std::int64_t> batches;
    for (double b = 1; b < last; b *= 1.07) {
        const auto n = static_cast<std::int64_t>(b);
        if (batches.empty() || n > batches.back()) batches.push_back(n);
    }
    batches.push_back(static_cast<std::int64_t>(last));
    std::string data = "$steps << END_OF_DATA\n";
    double low = 1e300, high = 0;
    for (const std::int64_t b : batches) {
        const time_floor t = roof::decode_floor(m, s.precision, s.gpu, b, s.context, s.tp);
        const time_floor bare = roof::decode_floor(m, s.precision, s.gpu, b, 0, s.tp);
        data += fmt::format("{} {:.9g} {:.9g} {:.9g} {:.9g}\n", b, t.seconds() * 1e3, t.memory * 1e3, t.compute * 1e3,
                            bare.seconds() * 1e3);
        low = std::min(low, bare.seconds() * 1e3);
        high = std::max(high, t.seconds() * 1e3);
    }
    data += "END_OF_DATA\n";
    if (s.measured_ms) {
        low = std::min(low, *s.measured_ms);
        high = std::max(high, *s.measured_ms);
    }
    panel p{width, height, {840, 95, 1385, 690}, 1, static_cast<double>(batches.back()), low / 3, high * 4};
    std::string out = "unset label; unset arrow\n" + p.frame();
    out += "set xlabel 'batch (sequences per step)'\nset ylabel 'decode step (ms)' offset 1\n";
    out += "set key top left Left reverse samplen 2 spacing 1.2\nset logscale x 2\n";
    out += data;
    std::string plot = fmt::format(
        "plot $steps using 1:2 with lines linewidth 5 linecolor rgb '#b8d4e8' title 'floor, context {0}', "
        "$steps using 1:3 with lines linewidth 2 linecolor rgb '{1}' title 'moving weights and cache', "
        "$steps using 1:4 with lines linewidth 2 linecolor rgb '{2}' title 'computing', "
        "$steps using 1:5 with lines linewidth 2 dashtype 2 linecolor rgb '#888888' title 'floor if the cache were not "
        "read'",
        s.context, decode_colour, compute_colour);
    struct knee {
        std::int64_t batch;
        std::int64_t context;
    };
    int index = 0;
    for (const knee& k : {knee{r.knee, s.context}, knee{r.knee_without_cache, 0}}) {
        ++index;
        if (k.batch <= 0 || static_cast<double>(k.batch) > p.x1) continue;
        const double y = roof::decode_floor(m, s.precision, s.gpu, k.batch, k.context, s.tp).seconds() * 1e3;
        const double x = static_cast<double>(k.batch);
        out += "set arrow from " + p.at(p.px(x), p.area.y1) + " to " + p.at(p.px(x), p.py(y)) +
               " nohead dashtype 3 linecolor rgb '#555555' linewidth 1.5\n";
        // Of two knees the one without the cache comes first: its label goes to the left.
        const bool right = p.px(x) < p.area.x1 - 85 && (r.knee == 0 || k.context > 0);
        out += fmt::format("set label 'batch {}' at {} {} front textcolor rgb '#333333'\n", k.batch,
                           p.at(p.px(x) + (right ? 6 : -6), p.area.y1 - 14), right ? "left" : "right");
        out += fmt::format("$knee{} << END_OF_DATA\n{:.9g} {:.9g}\nEND_OF_DATA\n", index, x, y);
        plot += fmt::format(
            ", $knee{} using 1:2 with points pointtype 6 pointsize 1.4 linewidth 2 linecolor rgb '#333333' notitle",
            index);
    }
    if (s.measured_ms) {
        out += fmt::format("$measured_step << END_OF_DATA\n{} {:.9g}\nEND_OF_DATA\n", s.batch, *s.measured_ms);
        plot += fmt::format(
            ", $measured_step using 1:2 with points pointtype 3 pointsize 1.6 linewidth 2 linecolor rgb '{}' title "
            "'measured'",
            measured_colour);
    }
    return out + plot + "\n";
}

std::string picture(const settings& s, const results& r) {
    constexpr double width = 1410, height = 750;
    const std::filesystem::path path = s.plot;
    using example::detail::gnuplot_string;
    std::string out;
    if (path.extension() == ".png")
        out += fmt::format("set terminal pngcairo noenhanced size {},{} font 'sans,10'\n", width, height);
    else
        out += fmt::format(
            "set terminal svg noenhanced size {},{} font 'DejaVu Sans,sans-serif,12.5' background 'white'\n", width,
            height);
    // An absolute path: gnuplot would run a name that begins with '|'.
    out += "set output " + gnuplot_string(std::filesystem::absolute(path).string()) + "\n";
    out += "set multiplot\n";
    const panel canvas{width, height, {}, 1, 1, 1, 1};
    const std::string title =
        fmt::format("{} on {}{}: weights {}, cache {}", printable(s.model.name, 60), s.gpu_name,
                    s.tp > 1 ? fmt::format(" x {} (per rank)", s.tp) : "", s.weights.name, s.kv.name);
    out += "set label " + gnuplot_string(title) + " at " + canvas.at(75, 26) + " left font ',15'\n";
    out += "set label " + gnuplot_string(printable(fmt::format("{}; {}", s.model.source, describe(s)), 190)) + " at " +
           canvas.at(75, 52) + " left textcolor rgb '#555555' font ',9'\n";
    out += "set label 'Roofline of the operations' at " + canvas.at(75, 80) + " left\n";
    out += "set label " + gnuplot_string(fmt::format("Floor of a decode step: {}", knee_text(r.knee))) + " at " +
           canvas.at(840, 80) + " left\n";
    out += "set format x '%g'; set format y '%g'; set tics scale 0.6\n";
    out += "set grid xtics ytics linetype 1 linecolor rgb '#e0e0e0' linewidth 1\nset border linecolor rgb '#888888'\n";
    out += roofline_panel(s, r, width, height) + batch_panel(s, r, width, height);
    return out + "unset multiplot\nunset output\n";
}

void draw(const settings& s, const results& r) {
    std::error_code code;
    std::filesystem::remove(s.plot, code);
    const std::string script = picture(s, r);
#if defined(__unix__) || defined(__APPLE__)
    const auto previous = std::signal(SIGPIPE, SIG_IGN);  // gnuplot may end before it has read everything
    FILE* const pipe = ::popen("gnuplot", "w");
    if (pipe == nullptr) throw std::runtime_error("--plot: gnuplot could not be started");
    const bool written = std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
    const int status = ::pclose(pipe);
    std::signal(SIGPIPE, previous);
    if (!written || status != 0) throw std::runtime_error("--plot: gnuplot failed");
#endif
    if (std::filesystem::file_size(s.plot, code) == 0 || code)
        throw std::runtime_error("--plot: gnuplot wrote no file");
}

int run(int argc, char** argv) {
    const settings s = parse_command_line(argc, argv);
    if (s.list) {
        print_list();
    } else {
        example::check_outputs(s.csv, s.plot);
        const results r = compute(s);
        if (s.json)  // a path need not be UTF-8; JSON has to be
            fmt::print("{}\n", json_of(s, r).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
        else
            print_tables(s, r);
        if (!s.csv.empty()) write_csv(s, r);
        if (!s.plot.empty()) draw(s, r);
    }
    if (std::fflush(stdout) != 0) throw std::runtime_error("stdout: cannot write");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return example::run_program("roofline", "", [&] { return run(argc, argv); });
}
