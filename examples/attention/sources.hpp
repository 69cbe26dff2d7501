// SPDX-License-Identifier: MIT
// attention_error: real queries, keys and values as a source of any length, beside the library's synthetic ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <numfmt/core/philox.hpp>
#include <numfmt/io/safetensors.hpp>

#include "../support/files.hpp"

namespace attention {

/// One attention head of the sample: [tokens][size] each.
struct real_head {
    std::string name;
    std::int64_t tokens = 0;
    int size = 0;
    std::vector<float> query, key, value;
};

inline std::vector<real_head> read_heads() {
    constexpr const char* file_name = "minilm_states.safetensors";
    constexpr int size = 32;
    const auto path = example::find_sample(file_name);
    if (path.empty()) throw std::runtime_error(fmt::format("cannot find the sample {}", file_name));
    auto opened = numfmt::io::safetensors_file::open(path);
    if (!opened) throw std::runtime_error(opened.error);
    std::vector<real_head> heads;
    for (const int layer : {0, 3, 5}) {
        const std::string module = fmt::format("encoder.layer.{}.attention.self", layer);
        const auto read = [&](const char* part) {
            const auto* const t = opened.value.find(fmt::format("{}.{}.output", module, part));
            if (t == nullptr) throw std::runtime_error(fmt::format("the sample has no {}.{}.output", module, part));
            std::vector<float> v(static_cast<std::size_t>(t->element_count()));
            if (const auto status = numfmt::io::read_as_float(*t, v); !status.ok())
                throw std::runtime_error(status.error);
            return std::pair(std::move(v), t->shape[1]);
        };
        const auto [query, columns] = read("query");
        const auto key = read("key").first, value = read("value").first;
        for (std::int64_t h = 0; h < columns / size; ++h) {
            real_head head{fmt::format("{} head {}", module, h),
                           static_cast<std::int64_t>(query.size()) / columns,
                           size,
                           {},
                           {},
                           {}};
            const auto cut = [&, width = columns](const std::vector<float>& all, std::vector<float>& out) {
                for (std::int64_t t = 0; t < head.tokens; ++t) {
                    const auto row = all.begin() + t * width + h * size;
                    out.insert(out.end(), row, row + size);
                }
            };
            cut(query, head.query);
            cut(key, head.key);
            cut(value, head.value);
            heads.push_back(std::move(head));
        }
    }
    return heads;
}

/// A head with its tokens repeated to any length; the queries are tokens that depend on the seed. Calibrated on the
/// first half of its tokens.
class real_source {
  public:
    real_source(const real_head& head, std::int64_t keys, int group, std::uint64_t seed)
        : head_(&head), keys_(keys), group_(group), seed_(seed) {}

    std::int64_t key_count() const { return keys_; }
    int head_size() const { return head_->size; }
    int query_count() const { return group_; }
    double score_scale() const { return 1 / std::sqrt(static_cast<double>(head_->size)); }
    const float* query(int g) const {
        const std::uint32_t draw = numfmt::random_word(seed_, static_cast<std::uint64_t>(g));
        return row(head_->query, static_cast<std::int64_t>(draw) % head_->tokens);
    }
    int answer_count() const { return 0; }
    const float* answer(int, int) const { return nullptr; }

    void tile(std::int64_t first, std::int64_t n, float* keys, float* values, float* bias) const {
        copy(first, n, head_->tokens, keys, values, bias);
    }
    void calibration(std::int64_t n, float* keys, float* values, float* bias) const {
        copy(0, n, std::max<std::int64_t>(head_->tokens / 2, 1), keys, values, bias);
    }

  private:
    const float* row(const std::vector<float>& m, std::int64_t token) const { return m.data() + token * head_->size; }
    void copy(std::int64_t first, std::int64_t n, std::int64_t period, float* keys, float* values, float* bias) const {
        for (std::int64_t j = 0; j < n; ++j) {
            const std::int64_t token = (first + j) % period;
            std::copy_n(row(head_->key, token), head_->size, keys + j * head_->size);
            std::copy_n(row(head_->value, token), head_->size, values + j * head_->size);
            bias[j] = 0;
        }
    }

    const real_head* head_;
    std::int64_t keys_;
    int group_;
    std::uint64_t seed_;
};

}  // namespace attention
