// SPDX-License-Identifier: MIT
// error_sweep: what is measured, the weights of a checkpoint (or random ones) cut into bands of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <regex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <numfmt/accuracy/weights.hpp>
#include <numfmt/io/safetensors.hpp>
#include <numfmt/numfmt.hpp>

#include "../support/files.hpp"
#include "../support/table.hpp"
#include "settings.hpp"

namespace sweep {

/// A weight tensor as `views` matrices of one shape, one behind the other, in bands of `band_rows` rows.
struct weight {
    std::string name, type;
    std::vector<std::int64_t> shape;
    const numfmt::io::safetensor* data = nullptr;   // null: synthetic
    const numfmt::io::safetensor* input = nullptr;  // activations, or null
    std::int64_t views = 1;
    matrix_shape view;
    std::int64_t band_rows = 1, bands = 1;  // per view
    std::size_t first_task = 0;

    std::int64_t elements() const { return views * view.rows * view.cols; }
    std::size_t tasks() const { return static_cast<std::size_t>(views * bands); }
};

struct skipped_tensor {
    std::string name, why;
};

struct workload {
    std::string title;
    numfmt::io::safetensors_file file;
    std::vector<weight> weights;
    std::vector<skipped_tensor> skipped;
    std::vector<std::string> notes;
    std::size_t tasks = 0;
    std::int64_t elements = 0;
};

inline bool readable(numfmt::io::safetensors_dtype type) {
    using enum numfmt::io::safetensors_dtype;
    return type == f64 || type == f32 || type == f16 || type == bf16 || type == f8_e4m3 || type == f8_e5m2;
}

/// Elements first .. first + out.size() - 1 of a tensor as floats.
inline void read_elements(const numfmt::io::safetensor& tensor, std::int64_t first, std::span<float> out) {
    const int bytes = numfmt::io::bits_of(tensor.type) / 8;
    numfmt::io::safetensor part;
    part.name = tensor.name;
    part.type = tensor.type;
    part.shape = {static_cast<std::int64_t>(out.size())};
    part.data = tensor.data + first * bytes;
    part.byte_count = out.size() * static_cast<std::size_t>(bytes);
    if (const auto status = numfmt::io::read_as_float(part, out); !status.ok()) throw std::runtime_error(status.error);
}

/// No block may straddle two bands; about a million weights a band.
inline void cut_into_bands(weight& w) {
    std::int64_t step = 1;
    numfmt::for_each(numfmt::all_schemes{},
                     [&]<class S>() { step = std::lcm(step, numfmt::accuracy::band_alignment<S>); });
    constexpr std::int64_t target = std::int64_t{1} << 20;
    w.band_rows = std::min(std::max(target / w.view.cols / step, std::int64_t{1}) * step, w.view.rows);
    w.bands = (w.view.rows + w.band_rows - 1) / w.band_rows;
}

inline workload synthetic_workload(const settings& s) {
    workload work;
    weight w;
    w.name = fmt::format("synthetic {}", name_of(distributions, *s.synthetic));
    w.type = "F32";
    w.view = {std::max(s.samples / synthetic_cols, std::int64_t{1}), std::min(s.samples, synthetic_cols)};
    w.shape = {w.view.rows, w.view.cols};
    cut_into_bands(w);
    work.title = fmt::format("{}, sigma {}, seed {}", w.name, s.sigma, s.seed);
    work.weights.push_back(w);
    return work;
}

/// The layer's activations, or null. A pair that does not fit is refused.
inline const numfmt::io::safetensor* find_input(workload& work, const numfmt::io::safetensor& tensor) {
    constexpr std::string_view suffix = ".weight";
    if (!tensor.name.ends_with(suffix) || tensor.shape.size() != 2) return nullptr;
    const auto* const input = work.file.find(tensor.name.substr(0, tensor.name.size() - suffix.size()) + ".input");
    if (input == nullptr) return nullptr;
    const std::string name = example::printable(input->name);
    if (input->shape.size() != 2 || input->shape[1] != tensor.shape[1])
        refuse("tensor '{}': got shape [{}], wanted [T, {}] as activations of '{}'", name,
               fmt::join(input->shape, ", "), tensor.shape[1], example::printable(tensor.name));
    if (!readable(input->type)) {
        work.notes.push_back(fmt::format("'{}': {} activations are not read: no W x error for this layer", name,
                                         numfmt::io::name_of(input->type)));
        return nullptr;
    }
    std::vector<float> values(static_cast<std::size_t>(input->element_count()));
    read_elements(*input, 0, values);
    const auto bad = std::count_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
    if (values.empty() || bad > 0) {
        work.notes.push_back(fmt::format("'{}': {} of {} activations are NaN or Inf: no W x error for this layer", name,
                                         bad, values.size()));
        return nullptr;
    }
    return input;
}

inline workload file_workload(const settings& s) {
    workload work;
    std::filesystem::path path = s.file;
    if (s.file.empty()) {
        path = example::find_sample("minilm_sample.safetensors");
        if (path.empty()) refuse("the sample examples/data/minilm_sample.safetensors was not found: name a file");
    }
    auto opened = numfmt::io::safetensors_file::open(path);
    if (!opened.ok()) throw bad_input(opened.error);
    work.file = std::move(opened.value);
    work.title = path.string();

    std::optional<std::regex> pattern;
    try {
        if (!s.tensor_pattern.empty()) pattern.emplace(s.tensor_pattern);
    } catch (const std::regex_error& e) {
        refuse("--tensor: '{}' is not a regular expression: {}", example::printable(s.tensor_pattern), e.what());
    }

    std::size_t matches = 0;
    bool doubles = false, raw_fp8 = false;
    for (const auto& tensor : work.file.tensors()) {
        const auto skip = [&](std::string why) { work.skipped.push_back({tensor.name, std::move(why)}); };
        if (tensor.name.ends_with(".input")) {  // never a weight
            const std::string owner = tensor.name.substr(0, tensor.name.size() - 6) + ".weight";
            if (work.file.find(owner) == nullptr) skip("activations without a weight");
            continue;
        }
        if (pattern) {
            constexpr std::size_t longest = 4096;  // std::regex recurses once per character
            if (tensor.name.size() > longest) {
                skip("name too long for --tensor");
                continue;
            }
            if (!std::regex_search(tensor.name, *pattern)) continue;
        }
        ++matches;
        if (tensor.shape.size() < 2) {
            skip(fmt::format("{}-D", tensor.shape.size()));
        } else if (tensor.element_count() == 0) {
            skip("empty");
        } else if (!readable(tensor.type)) {
            skip(fmt::format("{} is not read", numfmt::io::name_of(tensor.type)));
        } else {
            weight w;
            w.name = tensor.name;
            w.type = numfmt::io::name_of(tensor.type);
            w.shape = tensor.shape;
            w.data = &tensor;
            w.input = find_input(work, tensor);
            // The leading index counts matrices (experts), so that no block straddles two of them.
            w.views = tensor.shape.size() > 2 ? tensor.shape.front() : 1;
            w.view.cols = tensor.shape.back();
            w.view.rows = tensor.element_count() / w.views / w.view.cols;
            cut_into_bands(w);
            work.weights.push_back(std::move(w));
            doubles = doubles || tensor.type == numfmt::io::safetensors_dtype::f64;
            raw_fp8 = raw_fp8 || numfmt::io::bits_of(tensor.type) == 8;
        }
    }
    if (pattern && matches == 0)
        refuse("--tensor: no weight of {} matches '{}'", example::printable(work.title),
               example::printable(s.tensor_pattern));
    if (work.weights.empty())
        refuse(
            "{}: no weight to measure: wanted a tensor of 2 or more dimensions of F64, F32, F16, BF16, F8_E4M3 or "
            "F8_E5M2",
            example::printable(work.title));
    if (doubles) work.notes.emplace_back("F64 weights are rounded to fp32 first");
    if (raw_fp8) work.notes.emplace_back("FP8 weights are taken as stored: scales in other tensors are not applied");
    return work;
}

/// One note per reason, naming the first few.
inline void note_skipped(workload& work) {
    std::map<std::string, std::vector<std::string>> by_reason;
    for (const auto& t : work.skipped) by_reason[t.why].push_back(example::printable(t.name, 60));
    for (const auto& [why, names] : by_reason) {
        const std::size_t shown = std::min<std::size_t>(names.size(), 3);
        work.notes.push_back(
            fmt::format("skipped {} tensor{} ({}): {}{}", names.size(), names.size() == 1 ? "" : "s", why,
                        fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                        names.size() > shown ? ", ..." : ""));
    }
}

}  // namespace sweep
