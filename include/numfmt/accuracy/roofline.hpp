// SPDX-License-Identifier: MIT
// What a decoder-only transformer must move and compute per step, and the time below which no implementation can go:
// the roofline model (Williams, Waterman, Patterson, CACM 52(4), 2009) for weights and a KV cache in low-precision
// formats.
#pragma once

#include <array>

#include "../block/scheme.hpp"
#include "../core/status.hpp"

/// Conventions of this header. Bytes, FLOPs (a multiply-add is 2), seconds and bytes/s as double: counts are exact up
/// to 2^53, and no product of admitted sizes overflows. Everything is per rank of a tensor-parallel group of `tp`
/// ranks; tp = 1 is the whole model. Weights are read once per step whatever the batch; the cache is read once per
/// sequence. Assumed: gated MLPs (three matrices), no biases, RMSNorm. Not counted: communication between ranks,
/// positional encodings, softmax, sampling, optional heads (multi-token prediction, vision).
namespace numfmt::accuracy::roofline {

// --- the model ------------------------------------------------------------------------------------------------------

/// A model's sizes, under the names that Hugging Face's config.json files use. 0 where an architecture has no such
/// part. Multi-head, grouped-query and multi-query attention: num_key_value_heads and head_dim. Multi-head latent
/// attention (MLA, DeepSeek-V2, arXiv:2405.04434, section 2.1): kv_lora_rank > 0. Mixture of experts:
/// n_routed_experts > 0.
struct model_config {
    const char* name = "";
    const char* source = "";
    int64_t hidden_size = 0;
    int64_t num_hidden_layers = 0;
    int64_t num_attention_heads = 0;
    int64_t num_key_value_heads = 0;
    int64_t head_dim = 0;
    int64_t intermediate_size = 0;  ///< of the dense MLPs
    int64_t vocab_size = 0;
    bool tie_word_embeddings = false;  ///< the LM head is the embedding table

    int64_t kv_lora_rank = 0;  ///< latent cached per token
    int64_t q_lora_rank = 0;   ///< 0: queries are projected in one step
    int64_t qk_nope_head_dim = 0;
    int64_t qk_rope_head_dim = 0;  ///< cached per token next to the latent, shared by all heads
    int64_t v_head_dim = 0;

    int64_t n_routed_experts = 0;
    int64_t num_experts_per_tok = 0;
    int64_t n_shared_experts = 0;
    int64_t moe_intermediate_size = 0;  ///< of one expert, routed or shared
    int64_t first_k_dense_replace = 0;  ///< the first layers have a dense MLP

    int64_t sliding_window = 0;  ///< tokens that a local layer attends to, the newest included
    int64_t local_layers = 0;    ///< how many of the layers are local

    int64_t norms_per_layer = 2;  ///< over hidden_size
    bool qk_norm = false;         ///< another two, over head_dim
};

/// A size of model_config, its key, and the values that check() admits; 0 is admitted too where `optional`.
struct config_field {
    const char* key;
    int64_t model_config::* member;
    int64_t low;
    int64_t high;
    bool optional;
};

inline constexpr std::array<config_field, 18> config_fields{{
    {"hidden_size", &model_config::hidden_size, 1, 1 << 20, false},
    {"num_hidden_layers", &model_config::num_hidden_layers, 1, 1 << 14, false},
    {"num_attention_heads", &model_config::num_attention_heads, 1, 1 << 14, false},
    {"num_key_value_heads", &model_config::num_key_value_heads, 1, 1 << 14, true},
    {"head_dim", &model_config::head_dim, 1, 1 << 14, true},
    {"intermediate_size", &model_config::intermediate_size, 1, 1 << 24, true},
    {"vocab_size", &model_config::vocab_size, 1, 1 << 26, false},
    {"kv_lora_rank", &model_config::kv_lora_rank, 1, 1 << 16, true},
    {"q_lora_rank", &model_config::q_lora_rank, 1, 1 << 16, true},
    {"qk_nope_head_dim", &model_config::qk_nope_head_dim, 1, 1 << 14, true},
    {"qk_rope_head_dim", &model_config::qk_rope_head_dim, 1, 1 << 14, true},
    {"v_head_dim", &model_config::v_head_dim, 1, 1 << 14, true},
    {"n_routed_experts", &model_config::n_routed_experts, 1, 1 << 16, true},
    {"num_experts_per_tok", &model_config::num_experts_per_tok, 1, 1 << 16, true},
    {"n_shared_experts", &model_config::n_shared_experts, 0, 1 << 10, true},
    {"moe_intermediate_size", &model_config::moe_intermediate_size, 1, 1 << 24, true},
    {"first_k_dense_replace", &model_config::first_k_dense_replace, 0, 1 << 14, true},
    {"sliding_window", &model_config::sliding_window, 1, 1 << 30, true},
}};

constexpr bool has_mla(const model_config& m) noexcept { return m.kv_lora_rank > 0; }
constexpr bool has_experts(const model_config& m) noexcept { return m.n_routed_experts > 0; }
constexpr int64_t moe_layers(const model_config& m) noexcept {
    return has_experts(m) ? m.num_hidden_layers - m.first_k_dense_replace : 0;
}
constexpr int64_t dense_layers(const model_config& m) noexcept { return m.num_hidden_layers - moe_layers(m); }
constexpr int64_t global_layers(const model_config& m) noexcept { return m.num_hidden_layers - m.local_layers; }

/// Whether the functions below accept the model. Errors name the key: out_of_range (a size outside config_fields'
/// range, `wanted` the nearest admitted value), too_small (a part that the architecture needs is missing, or smaller
/// than another key demands) and shape_mismatch (heads that the KV heads do not divide).
constexpr status check(const model_config& m) noexcept {
    for (const config_field& f : config_fields) {
        const int64_t value = m.*f.member;
        if (f.optional && value == 0) continue;
        if (value < f.low) return {status_code::out_of_range, f.key, value, f.low};
        if (value > f.high) return {status_code::out_of_range, f.key, value, f.high};
    }
    if (has_mla(m)) {
        if (m.qk_nope_head_dim == 0) return {status_code::too_small, "qk_nope_head_dim", 0, 1};
        if (m.qk_rope_head_dim == 0) return {status_code::too_small, "qk_rope_head_dim", 0, 1};
        if (m.v_head_dim == 0) return {status_code::too_small, "v_head_dim", 0, 1};
    } else {
        if (m.num_key_value_heads == 0) return {status_code::too_small, "num_key_value_heads", 0, 1};
        if (m.head_dim == 0) return {status_code::too_small, "head_dim", 0, 1};
        if (m.num_attention_heads % m.num_key_value_heads != 0)
            return {status_code::shape_mismatch, "num_key_value_heads", m.num_key_value_heads, m.num_attention_heads};
    }
    if (has_experts(m)) {
        if (m.num_experts_per_tok == 0) return {status_code::too_small, "num_experts_per_tok", 0, 1};
        if (m.num_experts_per_tok > m.n_routed_experts)
            return {status_code::out_of_range, "num_experts_per_tok", m.num_experts_per_tok, m.n_routed_experts};
        if (m.moe_intermediate_size == 0) return {status_code::too_small, "moe_intermediate_size", 0, 1};
        if (m.first_k_dense_replace > m.num_hidden_layers)
            return {status_code::out_of_range, "first_k_dense_replace", m.first_k_dense_replace, m.num_hidden_layers};
    }
    if (dense_layers(m) > 0 && m.intermediate_size == 0) return {status_code::too_small, "intermediate_size", 0, 1};
    if (m.local_layers < 0) return {status_code::out_of_range, "local_layers", m.local_layers, 0};
    if (m.local_layers > m.num_hidden_layers)
        return {status_code::out_of_range, "local_layers", m.local_layers, m.num_hidden_layers};
    if (m.local_layers > 0 && m.sliding_window == 0) return {status_code::too_small, "sliding_window", 0, 1};
    if (m.norms_per_layer < 0) return {status_code::out_of_range, "norms_per_layer", m.norms_per_layer, 0};
    if (m.norms_per_layer > 16) return {status_code::out_of_range, "norms_per_layer", m.norms_per_layer, 16};
    return {};
}

/// Whether a (checked) model can be split over `tp` ranks: tp divides the query heads and, without MLA, divides the KV
/// heads or is a multiple of them (each KV head is then held by several ranks).
constexpr status check_parallel(const model_config& m, int64_t tp) noexcept {
    if (tp < 1) return {status_code::out_of_range, "tp", tp, 1};
    if (tp > m.num_attention_heads) return {status_code::out_of_range, "tp", tp, m.num_attention_heads};
    if (m.num_attention_heads % tp != 0) return {status_code::shape_mismatch, "tp", tp, m.num_attention_heads};
    if (!has_mla(m) && m.num_key_value_heads % tp != 0 && tp % m.num_key_value_heads != 0)
        return {status_code::shape_mismatch, "tp", tp, m.num_key_value_heads};
    return {};
}

/// The presets, from the public config.json files. 70,553,706,496 parameters are "70.6B"; the MoE's multi-token
/// prediction module is not part of it; of Gemma 3 only the language model.
inline constexpr std::array<model_config, 4> model_presets{{
    {.name = "8b-gqa",
     .source = "Llama-3.1-8B (arXiv:2407.21783, table 3)",
     .hidden_size = 4096,
     .num_hidden_layers = 32,
     .num_attention_heads = 32,
     .num_key_value_heads = 8,
     .head_dim = 128,
     .intermediate_size = 14336,
     .vocab_size = 128256},
    {.name = "70b-gqa",
     .source = "Llama-3.1-70B (arXiv:2407.21783, table 3)",
     .hidden_size = 8192,
     .num_hidden_layers = 80,
     .num_attention_heads = 64,
     .num_key_value_heads = 8,
     .head_dim = 128,
     .intermediate_size = 28672,
     .vocab_size = 128256},
    {.name = "671b-moe",
     .source = "DeepSeek-V3 (arXiv:2412.19437, section 4.2)",
     .hidden_size = 7168,
     .num_hidden_layers = 61,
     .num_attention_heads = 128,
     .num_key_value_heads = 128,
     .intermediate_size = 18432,
     .vocab_size = 129280,
     .kv_lora_rank = 512,
     .q_lora_rank = 1536,
     .qk_nope_head_dim = 128,
     .qk_rope_head_dim = 64,
     .v_head_dim = 128,
     .n_routed_experts = 256,
     .num_experts_per_tok = 8,
     .n_shared_experts = 1,
     .moe_intermediate_size = 2048,
     .first_k_dense_replace = 3},
    {.name = "sliding-window",
     .source = "Gemma-3-27B (arXiv:2503.19786, section 2): 5 local layers per global one, window 1024",
     .hidden_size = 5376,
     .num_hidden_layers = 62,
     .num_attention_heads = 32,
     .num_key_value_heads = 16,
     .head_dim = 128,
     .intermediate_size = 21504,
     .vocab_size = 262208,
     .tie_word_embeddings = true,
     .sliding_window = 1024,
     .local_layers = 52,
     .norms_per_layer = 4,
     .qk_norm = true},
}};

// --- the device -----------------------------------------------------------------------------------------------------

/// What multiplies: the tensor cores in a format, or fp32 outside them (norms).
enum class arithmetic : uint8_t { fp32, bf16, fp8, fp4 };
inline constexpr int arithmetic_count = 4;
constexpr const char* name_of(arithmetic a) noexcept {
    switch (a) {
        case arithmetic::fp32:
            return "fp32";
        case arithmetic::bf16:
            return "bf16";
        case arithmetic::fp8:
            return "fp8";
        case arithmetic::fp4:
            return "fp4";
    }
    return "unknown";
}

/// A device's ceilings. `peak` in FLOP/s by arithmetic, dense; 0 where the device has none.
struct device {
    const char* name = "";
    const char* source = "";
    double bandwidth = 0;  ///< bytes/s
    double memory = 0;     ///< bytes; 0: unknown
    std::array<double, arithmetic_count> peak{};

    constexpr double peak_of(arithmetic a) const noexcept { return peak[static_cast<size_t>(a)]; }
    /// FLOPs per byte at which an operation turns from bound by memory to bound by arithmetic.
    constexpr double ridge(arithmetic a) const noexcept { return peak_of(a) / bandwidth; }
};

/// Data sheet values: dense rates (half of those that the sheets print "with sparsity"), memory in units of 10^9 bytes.
inline constexpr std::array<device, 5> device_presets{{
    {"a100", "NVIDIA A100 80GB SXM data sheet", 2.039e12, 80e9, {19.5e12, 312e12, 0, 0}},
    {"h100", "NVIDIA H100 SXM data sheet", 3.35e12, 80e9, {67e12, 989e12, 1979e12, 0}},
    {"h200", "NVIDIA H200 SXM data sheet", 4.8e12, 141e9, {67e12, 989e12, 1979e12, 0}},
    {"b200", "NVIDIA Blackwell architecture brief, HGX B200", 8e12, 180e9, {80e12, 2250e12, 4500e12, 9000e12}},
    {"l40s", "NVIDIA L40S data sheet", 864e9, 48e9, {91.6e12, 362e12, 733e12, 0}},
}};

/// The fastest arithmetic for weights of `element_bits` on a device, with activations in a format of the same width
/// where its tensor cores take one; integer codes and what they do not take are widened to bf16 in registers.
/// Blackwell multiplies 6-bit floats at the fp8 rate (PTX ISA, tcgen05.mma .kind::f8f6f4).
constexpr arithmetic fastest_arithmetic(const device& d, int element_bits, bool is_float) noexcept {
    if (!is_float || element_bits > 8) return arithmetic::bf16;
    if (element_bits <= 4 && d.peak_of(arithmetic::fp4) > 0) return arithmetic::fp4;
    const bool takes_it = element_bits == 8 || d.peak_of(arithmetic::fp4) > 0;
    return takes_it && d.peak_of(arithmetic::fp8) > 0 ? arithmetic::fp8 : arithmetic::bf16;
}

// --- formats --------------------------------------------------------------------------------------------------------

/// Bits per weight, scales included (scheme_traits::bits_per_weight), of the three kinds of parameters.
struct weight_bits {
    double linear = 16;     ///< projections, MLPs, experts
    double embedding = 16;  ///< embedding table and LM head
    double other = 16;      ///< norms and the router, which checkpoints leave alone
};

/// How the cache stores one vector: K or V of one token and KV head, or the latent of MLA.
struct kv_format {
    int element_bits = 16;
    int64_t block = 0;   ///< elements per scale; 0: no scale that grows with the tokens (none, or static ones)
    int scale_bits = 0;  ///< scale and zero point of a block

    /// Bytes of a vector of n elements: codes, and scales for all blocks, the last partial one included.
    constexpr int64_t vector_bytes(int64_t n) const noexcept {
        const int64_t scales = block > 0 ? numfmt::detail::ceil_div(n, block) : 0;
        return numfmt::detail::ceil_div(n * element_bits + scales * scale_bits, int64_t{8});
    }
};

/// Whether a cache can use the scheme: no scale may span several tokens, except one for all of them.
template <scheme S> inline constexpr bool suits_kv = S::block.rows == 1 || S::block.rows == whole;

/// A scheme as the cache's format, rows being vectors. A scale for the whole tensor is static: it costs nothing per
/// token. One per row is a scale per token, head, and K or V.
template <scheme S>
    requires suits_kv<S>
constexpr kv_format kv_format_of() noexcept {
    using traits = scheme_traits<S>;
    if (S::block.rows == whole) return {traits::element_bits, 0, 0};
    return {traits::element_bits, S::block.cols, traits::scale_bits + traits::zero_bits};
}

/// Everything that the choice of formats decides.
struct precision {
    weight_bits weights{};
    kv_format kv{};
    double activation_bits = 16;
    arithmetic linear = arithmetic::bf16;
    arithmetic embedding = arithmetic::bf16;  ///< of the LM head
    arithmetic attention = arithmetic::bf16;  ///< of scores and values
};

// --- parameters -----------------------------------------------------------------------------------------------------

/// Parameters by where they are used. `qkv` has all projections ahead of attention, of MLA also the up-projection of
/// the latent (kv_b).
struct parameter_counts {
    double embedding = 0;
    double lm_head = 0;  ///< 0 when it is the embedding table
    double qkv = 0;
    double output = 0;
    double mlp = 0;  ///< dense layers and shared experts
    double router = 0;
    double experts = 0;  ///< all routed ones
    double norms = 0;
    double experts_active = 0;  ///< of `experts`, those that one token uses
    double head_used = 0;       ///< what the LM head multiplies by: lm_head, or the embedding table

    constexpr double total() const noexcept {
        return embedding + lm_head + qkv + output + mlp + router + experts + norms;
    }
    /// Multiplied by one token's activations: all but the embedding table (one row of it is looked up) and the experts
    /// that the token does not use.
    constexpr double active() const noexcept {
        return head_used + qkv + output + mlp + router + experts_active + norms;
    }
};

/// KV heads on one rank: num_key_value_heads / tp, at least one.
constexpr int64_t kv_heads_per_rank(const model_config& m, int64_t tp) noexcept {
    return m.num_key_value_heads >= tp ? m.num_key_value_heads / tp : 1;
}

/// Parameters of one routed or shared expert on one rank.
constexpr double expert_parameters(const model_config& m, int64_t tp = 1) noexcept {
    return 3.0 * static_cast<double>(m.hidden_size) * static_cast<double>(m.moe_intermediate_size) /
           static_cast<double>(tp);
}

/// Parameters on one rank. Split over the ranks: embedding, LM head, MLPs, experts (by columns or by expert: the same
/// bytes), query heads, KV heads as far as there are enough. On every rank: norms, router, MLA's down-projections.
constexpr parameter_counts parameters(const model_config& m, int64_t tp = 1) noexcept {
    const auto real = [](int64_t v) { return static_cast<double>(v); };
    const double ranks = real(tp), h = real(m.hidden_size), layers = real(m.num_hidden_layers);
    const double heads = real(m.num_attention_heads) / ranks;
    parameter_counts c;
    c.embedding = h * real(m.vocab_size) / ranks;
    c.lm_head = m.tie_word_embeddings ? 0.0 : c.embedding;
    c.head_used = c.embedding;
    double norms = real(m.norms_per_layer) * h;
    if (has_mla(m)) {
        const double query = heads * real(m.qk_nope_head_dim + m.qk_rope_head_dim), rank = real(m.kv_lora_rank);
        const double q = m.q_lora_rank > 0 ? real(m.q_lora_rank) * (h + query) : h * query;
        const double down = h * (rank + real(m.qk_rope_head_dim));
        const double up = rank * heads * real(m.qk_nope_head_dim + m.v_head_dim);
        c.qkv = layers * (q + down + up);
        c.output = layers * heads * real(m.v_head_dim) * h;
        norms += rank + real(m.q_lora_rank);
    } else {
        const double kv = real(kv_heads_per_rank(m, tp));
        c.qkv = layers * h * (heads + 2 * kv) * real(m.head_dim);
        c.output = layers * heads * real(m.head_dim) * h;
    }
    if (m.qk_norm && !has_mla(m)) norms += 2 * real(m.head_dim);
    c.norms = layers * norms + h;
    c.mlp = real(dense_layers(m)) * 3 * h * real(m.intermediate_size) / ranks;
    if (has_experts(m)) {
        const double expert = expert_parameters(m, tp), moe = real(moe_layers(m));
        c.mlp += moe * real(m.n_shared_experts) * expert;
        c.router = moe * h * real(m.n_routed_experts);
        c.experts = moe * real(m.n_routed_experts) * expert;
        c.experts_active = moe * real(m.num_experts_per_tok) * expert;
    }
    return c;
}

/// Bytes of all weights on one rank, as stored.
constexpr double weight_bytes(const parameter_counts& c, const weight_bits& bits) noexcept {
    return ((c.qkv + c.output + c.mlp + c.experts) * bits.linear + (c.embedding + c.lm_head) * bits.embedding +
            (c.router + c.norms) * bits.other) /
           8;
}

/// Experts of one layer that at least one of `tokens` tokens uses, on average: E (1 - (1 - k/E)^tokens). Assumes that
/// every token picks k different experts of E uniformly and independently of the other tokens; a skewed router touches
/// fewer. 0 <= k <= E, tokens >= 0. By linearity of expectation: an expert is missed by a token with probability 1 -
/// k/E.
constexpr double expected_experts(int64_t experts, int64_t per_token, int64_t tokens) noexcept {
    if (experts <= 0 || tokens <= 0) return 0.0;
    const double all = static_cast<double>(experts);
    double missed = 1.0, square = 1.0 - static_cast<double>(per_token) / all;
    for (int64_t n = tokens; n > 0; n /= 2) {
        if (n % 2 != 0) missed *= square;
        square *= square;
    }
    return all * (1.0 - missed);
}

// --- the cache ------------------------------------------------------------------------------------------------------

/// Bytes that one token adds to one layer's cache on one rank: 2 H_kv vectors of head_dim, or one of d_c + d_rope for
/// MLA (DeepSeek-V2, arXiv:2405.04434, table 1), which every rank holds in full.
constexpr double kv_bytes_per_token_layer(const model_config& m, const kv_format& kv, int64_t tp = 1) noexcept {
    if (has_mla(m)) return static_cast<double>(kv.vector_bytes(m.kv_lora_rank + m.qk_rope_head_dim));
    return 2.0 * static_cast<double>(kv_heads_per_rank(m, tp)) * static_cast<double>(kv.vector_bytes(m.head_dim));
}

/// Bytes that one token adds in all layers: what each step writes per sequence.
constexpr double kv_bytes_per_token(const model_config& m, const kv_format& kv, int64_t tp = 1) noexcept {
    return static_cast<double>(m.num_hidden_layers) * kv_bytes_per_token_layer(m, kv, tp);
}

/// Bytes of the cache of one sequence of `context` tokens on one rank: what is held, and what each step reads. Local
/// layers keep at most sliding_window tokens.
constexpr double kv_bytes(const model_config& m, const kv_format& kv, int64_t context, int64_t tp = 1) noexcept {
    const int64_t local = context < m.sliding_window ? context : m.sliding_window;
    const double tokens = static_cast<double>(global_layers(m)) * static_cast<double>(context) +
                          static_cast<double>(m.local_layers) * static_cast<double>(local);
    return tokens * kv_bytes_per_token_layer(m, kv, tp);
}

// --- operations -----------------------------------------------------------------------------------------------------

/// One kind of operation, summed over all layers of a step on one rank.
struct operation {
    const char* name = "";
    arithmetic kind = arithmetic::bf16;
    double flops = 0;
    double weight_bytes = 0;
    double kv_bytes = 0;          ///< read from or written to the cache
    double activation_bytes = 0;  ///< inputs and outputs that pass from one kernel to the next

    /// Bytes that a kernel doing just this has to move.
    constexpr double bytes() const noexcept { return weight_bytes + kv_bytes + activation_bytes; }
    /// Arithmetic intensity, FLOPs per byte; 0 without bytes.
    constexpr double intensity() const noexcept { return bytes() > 0 ? flops / bytes() : 0.0; }
};

/// embedding lookup, qkv projections, attention (scores and values), output projection, mlp (dense and shared), routed
/// experts with their router, lm_head, norms. Parts that a model lacks have zeros.
using operation_list = std::array<operation, 8>;

/// Time that a phase cannot go below: the larger of moving all bytes and doing all operations.
struct time_floor {
    double memory = 0;   ///< seconds
    double compute = 0;  ///< seconds

    constexpr double seconds() const noexcept { return memory > compute ? memory : compute; }
    constexpr bool compute_bound() const noexcept { return compute >= memory; }
};

namespace detail {

// Tokens that are processed in one step, and the pairs of tokens that attention looks at in one layer of either kind.
struct step {
    int64_t tokens = 0;
    double sequences = 0;
    double global_pairs = 0;
    double local_pairs = 0;
    double kv_read = 0;  // bytes
    bool prefill = false;
};

constexpr operation_list operations(const model_config& m, const precision& p, int64_t tp, const step& s) noexcept {
    const auto real = [](int64_t v) { return static_cast<double>(v); };
    const parameter_counts c = parameters(m, tp);
    const double tokens = real(s.tokens), ranks = real(tp), h = real(m.hidden_size), layers = real(m.num_hidden_layers);
    const double heads = real(m.num_attention_heads) / ranks, act = p.activation_bits / 8;
    const double linear = p.weights.linear / 8, embedding = p.weights.embedding / 8, other = p.weights.other / 8;
    const double pairs = real(global_layers(m)) * s.global_pairs + real(m.local_layers) * s.local_pairs;

    // Per token and layer: elements that the projections hand on, that attention reads and writes, and its work per
    // pair.
    double qkv_elements = h, attention_elements = 0, pair_flops = 0, prefill_kv = 0, output_elements = 0;
    if (has_mla(m)) {
        const double rope = real(m.qk_rope_head_dim), nope = real(m.qk_nope_head_dim), v = real(m.v_head_dim);
        const double latent = real(m.kv_lora_rank);
        qkv_elements += 2 * real(m.q_lora_rank);
        output_elements = heads * v;
        if (s.prefill) {  // keys and values of every head are made from the latent
            qkv_elements += heads * (nope + rope) + heads * (nope + v);
            attention_elements = heads * (nope + rope) + heads * v;
            pair_flops = 2 * heads * (nope + rope + v);
            prefill_kv = (heads * (nope + v) + rope) * act;
        } else {  // kv_b is applied to queries and results instead (section 2.1.2 of the paper): attention over the
                  // latent
            qkv_elements += heads * (latent + rope) + heads * latent + heads * v;
            attention_elements = heads * (latent + rope) + heads * latent;
            pair_flops = 2 * heads * (2 * latent + rope);
        }
    } else {
        const double d = real(m.head_dim);
        qkv_elements += heads * d;
        attention_elements = 2 * heads * d;
        output_elements = heads * d;
        pair_flops = 4 * heads * d;
        if (s.prefill) prefill_kv = kv_bytes_per_token_layer(m, p.kv, tp);
    }
    double norm_elements = layers * real(m.norms_per_layer) * h + h;
    if (has_mla(m)) norm_elements += layers * (real(m.q_lora_rank) + real(m.kv_lora_rank));
    if (m.qk_norm && !has_mla(m)) norm_elements += layers * (heads + real(kv_heads_per_rank(m, tp))) * real(m.head_dim);

    operation_list list{};
    // A tied table is read as LM head already. Rows looked up twice are in the cache: no more than the table.
    const double rows = m.tie_word_embeddings ? 0.0 : tokens / ranks;
    list[0] = {"embedding", p.embedding,     0, (rows * h < c.embedding ? rows * h : c.embedding) * embedding,
               0,           tokens * h * act};
    list[1] = {"qkv",
               p.linear,
               2 * tokens * c.qkv,
               c.qkv * linear,
               tokens * kv_bytes_per_token(m, p.kv, tp),
               tokens * layers * qkv_elements * act};
    list[2] = {"attention", p.attention, pair_flops * pairs,
               0,           s.kv_read,   tokens * layers * (attention_elements * act + prefill_kv)};
    list[3] = {"output",          p.linear, 2 * tokens * c.output,
               c.output * linear, 0,        tokens * layers * (output_elements + h) * act};
    const double inner = real(dense_layers(m)) * real(m.intermediate_size) / ranks +
                         real(moe_layers(m)) * real(m.n_shared_experts * m.moe_intermediate_size) / ranks;
    const double mlp_layers = real(m.n_shared_experts > 0 ? m.num_hidden_layers : dense_layers(m));
    list[4] = {"mlp", p.linear, 2 * tokens * c.mlp, c.mlp * linear, 0, tokens * (2 * mlp_layers * h + 2 * inner) * act};
    list[5] = {"experts", p.linear, 0, 0, 0, 0};
    if (has_experts(m)) {
        const double moe = real(moe_layers(m));
        const double touched = expected_experts(m.n_routed_experts, m.num_experts_per_tok, s.tokens);
        list[5].flops = 2 * tokens * (c.experts_active + c.router);
        list[5].weight_bytes = moe * touched * expert_parameters(m, tp) * linear + c.router * other;
        list[5].activation_bytes =
            tokens * moe * (2 * h + 2 * real(m.num_experts_per_tok * m.moe_intermediate_size) / ranks) * act;
    }
    list[6] = {"lm_head",
               p.embedding,
               2 * s.sequences * c.head_used,
               c.head_used * embedding,
               0,
               s.sequences * (h + real(m.vocab_size) / ranks) * act};
    list[7] = {
        "norms", arithmetic::fp32, 4 * tokens * norm_elements, c.norms * other, 0, 2 * tokens * norm_elements * act};
    return list;
}

// Pairs (query, key) of a causal prompt where each token attends to at most `window` tokens, itself included.
constexpr double causal_pairs(int64_t tokens, int64_t window) noexcept {
    const double n = static_cast<double>(tokens), w = static_cast<double>(window);
    return tokens <= window ? n * (n + 1) / 2 : w * (w + 1) / 2 + (n - w) * w;
}

// The smallest n in [1, limit] with good(n), or 0. good must not turn false again once it is true.
template <class F> constexpr int64_t first_true(int64_t limit, F good) noexcept {
    int64_t high = 1;
    while (high < limit && !good(high)) high *= 2;
    if (high > limit) high = limit;
    if (!good(high)) return 0;
    int64_t low = high / 2;  // not good, or 0
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (good(middle) ? high : low) = middle;
    }
    return high;
}

}  // namespace detail

/// One decode step of `batch` sequences of `context` tokens each, the newest included: it is written to the cache and
/// attends to all of them, the local layers to the last sliding_window.
///   projections, MLPs, LM head: 2 FLOPs per parameter and token
///   attention: 4 H D FLOPs per token and cached token; with MLA 2 H (2 d_c + d_rope), attending to the latent
///   norms: 4 FLOPs per element (square and add, two products)
/// Weights once per step; of the experts those that the batch touches (expected_experts). context 0 leaves the reading
/// of the cache out.
constexpr operation_list decode_operations(const model_config& m, const precision& p, int64_t batch, int64_t context,
                                           int64_t tp = 1) noexcept {
    const double b = static_cast<double>(batch);
    const int64_t local = context < m.sliding_window ? context : m.sliding_window;
    return detail::operations(m, p, tp,
                              {batch, b, b * static_cast<double>(context), b * static_cast<double>(local),
                               b * kv_bytes(m, p.kv, context, tp), false});
}

/// The prefill of `sequences` prompts of `prompt` tokens each in one go, causal: a token attends to itself and those
/// before it, P (P + 1) / 2 pairs per layer (less in local ones). The LM head sees the last token only. K and V are
/// made, written to the cache, and read back by attention once (counted as activations: short prompts never leave the
/// chip).
constexpr operation_list prefill_operations(const model_config& m, const precision& p, int64_t prompt,
                                            int64_t sequences = 1, int64_t tp = 1) noexcept {
    const double n = static_cast<double>(sequences);
    return detail::operations(m, p, tp,
                              {prompt * sequences, n, n * detail::causal_pairs(prompt, prompt),
                               n * detail::causal_pairs(prompt, m.sliding_window), 0, true});
}

// --- time -----------------------------------------------------------------------------------------------------------

/// Bytes that a step must move: weights and cache. Activations may stay on the chip.
constexpr double required_bytes(const operation_list& list) noexcept {
    double sum = 0;
    for (const operation& o : list) sum += o.weight_bytes + o.kv_bytes;
    return sum;
}
/// Bytes of weights that a step reads.
constexpr double weight_bytes_read(const operation_list& list) noexcept {
    double sum = 0;
    for (const operation& o : list) sum += o.weight_bytes;
    return sum;
}
constexpr double total_flops(const operation_list& list) noexcept {
    double sum = 0;
    for (const operation& o : list) sum += o.flops;
    return sum;
}

/// Seconds that a kernel for this operation alone needs at least, activations included.
constexpr time_floor floor_of(const operation& o, const device& d) noexcept {
    return {o.bytes() / d.bandwidth, o.flops > 0 ? o.flops / d.peak_of(o.kind) : 0.0};
}
/// Seconds that a step needs at least if everything overlaps: required_bytes over bandwidth against operations over
/// their peaks. The device must have a peak for every arithmetic that is used.
constexpr time_floor floor_of(const operation_list& list, const device& d) noexcept {
    time_floor t{required_bytes(list) / d.bandwidth, 0};
    for (const operation& o : list) t.compute += o.flops > 0 ? o.flops / d.peak_of(o.kind) : 0.0;
    return t;
}
constexpr time_floor decode_floor(const model_config& m, const precision& p, const device& d, int64_t batch,
                                  int64_t context, int64_t tp = 1) noexcept {
    return floor_of(decode_operations(m, p, batch, context, tp), d);
}
constexpr time_floor prefill_floor(const model_config& m, const precision& p, const device& d, int64_t prompt,
                                   int64_t sequences = 1, int64_t tp = 1) noexcept {
    return floor_of(prefill_operations(m, p, prompt, sequences, tp), d);
}

inline constexpr int64_t knee_limit = int64_t{1} << 24;

/// The smallest batch whose decode step is bound by arithmetic, or 0 when none up to knee_limit is: the cache is read
/// per sequence, so a long context keeps every batch bound by memory. (Bytes grow at most linearly in the batch,
/// operations linearly: past the knee it stays so.)
constexpr int64_t knee_batch(const model_config& m, const precision& p, const device& d, int64_t context,
                             int64_t tp = 1) noexcept {
    return detail::first_true(knee_limit,
                              [&](int64_t batch) { return decode_floor(m, p, d, batch, context, tp).compute_bound(); });
}

/// The shortest prompt (one sequence) whose prefill is bound by arithmetic, or 0 when none up to knee_limit is.
constexpr int64_t knee_prompt(const model_config& m, const precision& p, const device& d, int64_t tp = 1) noexcept {
    return detail::first_true(knee_limit,
                              [&](int64_t prompt) { return prefill_floor(m, p, d, prompt, 1, tp).compute_bound(); });
}

/// The shortest context from which on a decode step of this batch reads at least as many bytes of cache as of weights;
/// 0 when it never does (every layer local, and the window too short). batch >= 1.
constexpr int64_t overtaking_context(const model_config& m, const precision& p, int64_t batch,
                                     int64_t tp = 1) noexcept {
    const double weights = weight_bytes_read(decode_operations(m, p, batch, 0, tp));
    const double per_sequence = weights / static_cast<double>(batch);
    const double per_layer = kv_bytes_per_token_layer(m, p.kv, tp), window = static_cast<double>(m.sliding_window);
    const double all = per_layer * static_cast<double>(m.num_hidden_layers);
    double context = per_sequence / all;
    if (m.local_layers > 0 && context > window) {
        if (global_layers(m) == 0) return 0;
        const double local = per_layer * static_cast<double>(m.local_layers) * window;
        context = (per_sequence - local) / (per_layer * static_cast<double>(global_layers(m)));
    }
    if (!(context < 9e18)) return 0;
    const int64_t whole_tokens = static_cast<int64_t>(context);
    return whole_tokens + (static_cast<double>(whole_tokens) < context ? 1 : 0);
}

/// Model bandwidth utilisation: bytes that must move over what the device could have moved in the measured time. Above
/// 1 the time or the bandwidth is wrong. (Databricks, "LLM Inference Performance Engineering: Best Practices", 2023.)
constexpr double bandwidth_utilisation(double bytes, double seconds, const device& d) noexcept {
    return bytes / (seconds * d.bandwidth);
}

/// The same for arithmetic: seconds at peak over measured seconds.
constexpr double compute_utilisation(const time_floor& t, double seconds) noexcept { return t.compute / seconds; }

/// Sequences of `context` tokens whose caches fit next to the weights in the device's memory; -1 when the weights alone
/// do not fit. Activations and the runtime need room too. context >= 1.
constexpr int64_t sequences_that_fit(const model_config& m, const precision& p, const device& d, int64_t context,
                                     int64_t tp = 1) noexcept {
    const double room = d.memory - weight_bytes(parameters(m, tp), p.weights);
    if (room < 0) return -1;
    return static_cast<int64_t>(room / kv_bytes(m, p.kv, context, tp));
}

}  // namespace numfmt::accuracy::roofline
