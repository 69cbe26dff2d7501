// SPDX-License-Identifier: MIT
// The roofline formulas, against published sizes and against cases small enough to work out by hand in the comments.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <numfmt/accuracy/roofline.hpp>
#include <numfmt/numfmt.hpp>

namespace {

using namespace numfmt;
using namespace numfmt::accuracy::roofline;

constexpr const model_config& llama_8b = model_presets[0];
constexpr const model_config& llama_70b = model_presets[1];
constexpr const model_config& deepseek = model_presets[2];
constexpr const model_config& gemma = model_presets[3];

constexpr kv_format kv_bf16{16, 0, 0};
constexpr kv_format kv_fp8{8, 0, 0};

// Two layers small enough to count on paper. Parameters per layer: qkv 4 x (2 + 2*1) x 2 = 32, output 2 x 2 x 4 = 16,
// mlp 3 x 4 x 8 = 96, norms 2 x 4 = 8; around them embedding 10 x 4 = 40, LM head 40, last norm 4.
constexpr model_config toy{.name = "toy",
                           .hidden_size = 4,
                           .num_hidden_layers = 2,
                           .num_attention_heads = 2,
                           .num_key_value_heads = 1,
                           .head_dim = 2,
                           .intermediate_size = 8,
                           .vocab_size = 10};
constexpr device toy_device{"toy", "", 100, 2000, {10000, 1000, 2000, 0}};

constexpr model_config with(model_config m, int64_t model_config::* member, int64_t value) {
    m.*member = value;
    return m;
}

const operation& find(const operation_list& list, const char* name) {
    for (const operation& o : list)
        if (std::string(o.name) == name) return o;
    FAIL("no operation " << name);
    return list[0];
}

constexpr bool near(double a, double b, double relative = 1e-12) {
    const double difference = a > b ? a - b : b - a;
    return difference <= relative * (b < 0 ? -b : b);
}

// --- bits and bytes ----------------------------------------------------------------------------------------------

// Exact: element bits + (scale and zero-point bits) / block.
static_assert(scheme_traits<mxfp4>::bits_per_weight() == 4.25);
static_assert(scheme_traits<mxfp6_e2m3>::bits_per_weight() == 6.25);
static_assert(scheme_traits<mxfp8_e4m3>::bits_per_weight() == 8.25);
static_assert(scheme_traits<mxint8>::bits_per_weight() == 8.25);
static_assert(scheme_traits<nvfp4>::bits_per_weight() == 4.5);
static_assert(scheme_traits<block_fp8_128x128>::bits_per_weight() == 8.001953125);
static_assert(scheme_traits<block_fp8_1x128>::bits_per_weight() == 8.25);
static_assert(scheme_traits<block_fp8<1, 128, e8m0>>::bits_per_weight() == 8.0625);
static_assert(scheme_traits<awq_int4>::bits_per_weight() == 4.15625);
static_assert(scheme_traits<int4<64>>::bits_per_weight() == 4.3125);
static_assert(scheme_traits<int4<32>>::bits_per_weight() == 4.625);
static_assert(scheme_traits<int4_symmetric<128>>::bits_per_weight() == 4.125);

// KV bytes per token. 2 x layers x KV heads x head_dim x bytes: 2 x 80 x 8 x 128 x 2 and 2 x 32 x 8 x 128 x 2. MLA:
// 61 x (512 + 64) x 2, the "about 70 KB" of the DeepSeek papers.
static_assert(kv_bytes_per_token(llama_70b, kv_bf16) == 327680);
static_assert(kv_bytes_per_token(llama_70b, kv_fp8) == 163840);
static_assert(kv_bytes_per_token(llama_8b, kv_bf16) == 131072);
static_assert(kv_bytes_per_token(llama_8b, kv_fp8) == 65536);
static_assert(kv_bytes_per_token(deepseek, kv_bf16) == 70272);

// Static scales are free, those per token are not: 2 x 80 x 8 vectors of 128 + 4 bytes.
static_assert(kv_bytes_per_token(llama_70b, kv_format_of<fp8_per_tensor>()) == 163840);
static_assert(kv_bytes_per_token(llama_70b, kv_format_of<fp8_per_channel>()) == 2 * 80 * 8 * 132);
// mxfp8: 128 + 4 scale bytes; mxfp4: 64 + 4; nvfp4: 64 + 8; int4 g32: 64 + 4 x (16 + 4) / 8.
static_assert(kv_format_of<mxfp8_e4m3>().vector_bytes(128) == 132);
static_assert(kv_format_of<mxfp4>().vector_bytes(128) == 68);
static_assert(kv_format_of<nvfp4>().vector_bytes(128) == 72);
static_assert(kv_format_of<int4<32>>().vector_bytes(128) == 74);
// A partial block has a whole scale: 576 = 4.5 blocks of 128. 3 codes of 4 bits fill 2 bytes.
static_assert(kv_format_of<block_fp8_1x128>().vector_bytes(576) == 576 + 5 * 4);
static_assert(kv_format{4, 0, 0}.vector_bytes(3) == 2);
static_assert(!suits_kv<block_fp8_128x128>);

// --- parameters --------------------------------------------------------------------------------------------------

// 40 + 40 + 2 x (32 + 16 + 96 + 8) + 4; active: without the embedding table.
static_assert(parameters(toy).total() == 388);
static_assert(parameters(toy).active() == 348);
static_assert(weight_bytes(parameters(toy), {}) == 776);
// At 4, 16, 32 bits: 288 projections and MLPs, 80 embedding and head, 20 norms.
static_assert(weight_bytes(parameters(toy), {4, 16, 32}) == 144 + 160 + 80);

// The counts of the published checkpoints, to the last parameter (safetensors metadata): "8.03B" and "70.6B".
static_assert(parameters(llama_8b).total() == 8030261248.0);
static_assert(parameters(llama_70b).total() == 70553706496.0);
// "671B": the checkpoint has 671,026,419,200 without its MTP module, of which 58 x 256 router biases, which choose
// experts and multiply nothing, are not counted here.
static_assert(parameters(deepseek).total() + 58 * 256 == 671026419200.0);

constexpr operation_list toy_step = decode_operations(toy, {}, 3, 5);

static_assert(check(toy).ok() && check(llama_8b).ok() && check(llama_70b).ok() && check(deepseek).ok() &&
              check(gemma).ok());

}  // namespace

TEST_CASE("roofline: parameters agree with what the models' authors publish") {
    // "37B activated": the authors' own breakdown says 36.7B, and rounding either way is under 2 %.
    const parameter_counts v3 = parameters(deepseek);
    CHECK(v3.active() > 37e9 * 0.98);
    CHECK(v3.active() < 37e9 * 1.02);
    // By hand, in units of hidden_size = 7168: attention 61 x 26107.43, dense MLP 3 x 55296, 9 of 256 experts and the
    // router in 58 layers, LM head 129280.
    CHECK(v3.active() == 36625603584.0);
    CHECK(v3.experts == 58.0 * 256 * 3 * 7168 * 2048);
    CHECK(v3.experts_active == v3.experts / 32);

    // Gemma 3 report, table 1: 25,600M non-embedding parameters and 1,416M of embedding (with the vision tower's share,
    // which is why that one gets 1 %).
    const parameter_counts g = parameters(gemma);
    CHECK(g.lm_head == 0);
    CHECK(near(g.total() - g.embedding, 25600e6, 1e-4));
    CHECK(near(g.embedding, 1416e6, 0.01));
    CHECK(g.active() == g.total());     // tied: the table is what the LM head multiplies by
    CHECK(global_layers(gemma) == 10);  // every sixth of 62
}

TEST_CASE("roofline: expected experts, against counting every choice") {
    static_assert(expected_experts(4, 2, 0) == 0.0);
    static_assert(expected_experts(4, 2, 1) == 2.0);
    static_assert(expected_experts(4, 2, 2) == 3.0);  // 4 (1 - 1/4)
    static_assert(expected_experts(4, 2, 3) == 3.5);  // 4 (1 - 1/8)
    static_assert(expected_experts(256, 8, 1) == 8.0);
    static_assert(expected_experts(5, 5, 1) == 5.0);

    // All 4^3 ways in which 3 tokens choose 3 of 4 experts.
    const std::vector<unsigned> choices = {0b0111u, 0b1011u, 0b1101u, 0b1110u};
    double sum = 0;
    for (const unsigned a : choices)
        for (const unsigned b : choices)
            for (const unsigned c : choices)
                for (unsigned bits = a | b | c; bits != 0; bits &= bits - 1) sum += 1;
    CHECK(near(expected_experts(4, 3, 3), sum / 64));

    // DeepSeek-V3 at batch 64: 256 (1 - (31/32)^64) = 222.44.
    CHECK(near(expected_experts(256, 8, 64), 256 * (1 - std::pow(31.0 / 32, 64))));
    CHECK(expected_experts(256, 8, 64) > 222.4);
    CHECK(expected_experts(256, 8, 64) < 222.5);
    CHECK(expected_experts(256, 8, int64_t{1} << 40) == 256.0);
}

TEST_CASE("roofline: weights that a MoE step reads follow the experts its batch touches") {
    const double per_expert = 58.0 * 3 * 7168 * 2048;  // in all layers
    const double router = 58.0 * 7168 * 256 * 2;
    for (const int64_t batch : {1, 2, 64, 4096}) {
        const operation_list step = decode_operations(deepseek, {.weights = {8, 16, 16}}, batch, 0);
        CHECK(near(find(step, "experts").weight_bytes, expected_experts(256, 8, batch) * per_expert + router));
        // Two ways to the same FLOPs: tokens x 8 experts, whatever the number touched.
        CHECK(
            near(find(step, "experts").flops, 2.0 * static_cast<double>(batch) * (8 * per_expert + 58.0 * 7168 * 256)));
        // All other weights are read once: independent of the batch, up to the looked-up rows.
        CHECK(find(step, "mlp").weight_bytes == 3.0 * 3 * 7168 * 18432 + per_expert);
        CHECK(find(step, "embedding").weight_bytes == 7168.0 * 2 * static_cast<double>(batch));
    }
}

TEST_CASE("roofline: a decode step of the toy model, by hand") {
    // Batch 3, context 5, everything bf16 (2 bytes). FLOPs: 2 x 3 tokens x parameters; attention 4 x 2 heads x 2 per
    // pair, 3 x 5 pairs, 2 layers; norms 4 x 3 tokens x (2 x 2 x 4 + 4) elements.
    CHECK(find(toy_step, "qkv").flops == 2 * 3 * 64);
    CHECK(find(toy_step, "attention").flops == 16 * 15 * 2);
    CHECK(find(toy_step, "output").flops == 2 * 3 * 32);
    CHECK(find(toy_step, "mlp").flops == 2 * 3 * 192);
    CHECK(find(toy_step, "lm_head").flops == 2 * 3 * 40);
    CHECK(find(toy_step, "norms").flops == 4 * 3 * 20);
    CHECK(find(toy_step, "embedding").flops == 0);
    CHECK(find(toy_step, "experts").bytes() == 0);
    CHECK(total_flops(toy_step) == 384 + 480 + 192 + 1152 + 240 + 240);

    // Weights once: (64 + 32 + 192 + 40 + 20) x 2 = 696, and 3 rows of the table x 4 x 2 = 24. Cache: 16 bytes per
    // token, 3 tokens written, 3 x 5 read.
    CHECK(weight_bytes_read(toy_step) == 696 + 24);
    CHECK(find(toy_step, "qkv").kv_bytes == 48);
    CHECK(find(toy_step, "attention").kv_bytes == 240);
    CHECK(required_bytes(toy_step) == 720 + 48 + 240);

    // Activations, per token: qkv in 4, out (queries) 4; attention 4 in, 4 out; output 4, 4; each in 2 layers.
    CHECK(find(toy_step, "qkv").activation_bytes == 3 * 2 * 8 * 2);
    CHECK(find(toy_step, "attention").activation_bytes == 3 * 2 * 8 * 2);
    CHECK(find(toy_step, "output").activation_bytes == 3 * 2 * 8 * 2);
    CHECK(find(toy_step, "mlp").activation_bytes == 3 * 2 * (4 + 8 + 8 + 4) * 2);
    CHECK(find(toy_step, "lm_head").activation_bytes == 3 * (4 + 10) * 2);
    CHECK(find(toy_step, "norms").activation_bytes == 3 * 2 * 20 * 2);
    CHECK(find(toy_step, "attention").intensity() == 480.0 / (240 + 96));

    // Tied: the table is stored once and read once, as the LM head.
    model_config tied = toy;
    tied.tie_word_embeddings = true;
    CHECK(parameters(tied).total() == 348);
    CHECK(parameters(tied).active() == 348);
    CHECK(weight_bytes_read(decode_operations(tied, {}, 3, 5)) == 696);
    CHECK(total_flops(decode_operations(tied, {}, 3, 5)) == total_flops(toy_step));

    // 1008 bytes at 100 B/s; 2448 FLOPs of the tensor cores at 1000 FLOP/s and 240 at 10000.
    constexpr time_floor t = decode_floor(toy, {}, toy_device, 3, 5);
    CHECK(near(t.memory, 10.08));
    CHECK(near(t.compute, 2.448 + 0.024));
    CHECK(t.seconds() == t.memory);
    CHECK_FALSE(t.compute_bound());
    // Other arithmetic for the linear layers, 1728 FLOPs at 2000.
    constexpr time_floor fp8 = decode_floor(toy, {.linear = arithmetic::fp8}, toy_device, 3, 5);
    CHECK(near(fp8.compute, 0.864 + 0.72 + 0.024));
    CHECK(fp8.memory == t.memory);
}

TEST_CASE("roofline: 70B in mxfp4 with an fp8 cache on an H200, batch 16, by hand") {
    // 68,451,041,280 weights at 4.25 bits, LM head 1,050,673,152 and norms 1,318,912 at 16 bits, 16 table rows of 8192;
    // 163,840 bytes of cache per token, 16 written and 16 x 8192 read.
    constexpr double bytes =
        68451041280.0 * 4.25 / 8 + (1050673152.0 + 1318912.0 + 16 * 8192) * 2 + 16 * 8193 * 163840.0;
    constexpr precision p{.weights = {scheme_traits<mxfp4>::bits_per_weight(), 16, 16},
                          .kv = kv_format_of<fp8_per_tensor>()};
    constexpr operation_list step = decode_operations(llama_70b, p, 16, 8192);
    CHECK(near(required_bytes(step), bytes));
    constexpr time_floor t = decode_floor(llama_70b, p, device_presets[2], 16, 8192);
    CHECK(near(t.memory, bytes / 4.8e12));
    CHECK(t.memory > 12.48e-3);
    CHECK(t.memory < 12.50e-3);
    // 2 x 16 x 69,501,714,432 and 4 x 64 x 128 x 80 x 16 x 8192 FLOPs at 989 TFLOP/s, norms at 67.
    const double flops = 2.0 * 16 * 69501714432.0 + 4.0 * 64 * 128 * 80 * 16 * 8192;
    CHECK(near(t.compute, flops / 989e12 + 4.0 * 16 * 1318912 / 67e12));
    CHECK(std::string(device_presets[2].name) == "h200");
}

TEST_CASE("roofline: the batch at which decoding turns compute bound") {
    // Without reading the cache, on the toy device: memory (696 + 80 + 16 B) / 100 (from 10 tokens on the whole table
    // of 80 bytes is looked up), compute B ((2 x 288 + 2 x 40) / 1000 + 80 / 10000) = 0.664 B. Equal at 7.76 / 0.504
    // = 15.4.
    static_assert(knee_batch(toy, {}, toy_device, 0) == 16);
    CHECK_FALSE(decode_floor(toy, {}, toy_device, 15, 0).compute_bound());
    CHECK(decode_floor(toy, {}, toy_device, 16, 0).compute_bound());
    // At context 5 every sequence adds 0.16 + 0.8 s of moving but 0.824 s of arithmetic: never.
    static_assert(knee_batch(toy, {}, toy_device, 5) == 0);

    // The rule of thumb: bf16 weights turn at about the ridge, 989 / 4.8 = 206.
    CHECK(near(device_presets[2].ridge(arithmetic::bf16), 206.04, 1e-4));
    const int64_t knee = knee_batch(llama_70b, {}, device_presets[2], 0);
    CHECK(knee > 206);
    CHECK(knee < 225);
    // mxfp4 weights computed in bf16 need 16 / 4.25 times less, apart from the bf16 LM head.
    const int64_t quantized = knee_batch(llama_70b, {.weights = {4.25, 16, 16}}, device_presets[2], 0);
    CHECK(quantized > 206.0 * 4.25 / 16);
    CHECK(quantized < 66);
    // Eight of 256 experts per token: far more tokens until an expert sees enough of them.
    CHECK(knee_batch(deepseek, {.weights = {8, 16, 16}}, device_presets[2], 0) > 4 * 206);
}

TEST_CASE("roofline: the context at which the cache outweighs the weights") {
    // Toy, batch 3: (696 + 24) / 3 = 240 bytes per sequence, 16 per token: 15. Batch 1: (696 + 8) / 16 = 44.
    static_assert(overtaking_context(toy, {}, 3) == 15);
    static_assert(overtaking_context(toy, {}, 1) == 44);
    // Batch 2: (696 + 16) / 2 / 16 = 22.25, rounded up.
    static_assert(overtaking_context(toy, {}, 2) == 23);

    // One local layer with window 10, one global, 8 bytes per layer and token. Batch 3: 15 x 16 = 240 = 8 x 10 + 8
    // x 20.
    constexpr model_config mixed = with(with(toy, &model_config::sliding_window, 10), &model_config::local_layers, 1);
    static_assert(overtaking_context(mixed, {}, 3) == 20);
    // All local: at most 160 bytes per sequence. At batch 5 (696 + 40) / 5 = 147.2 <= 160: 147.2 / 16 = 9.2.
    constexpr model_config local = with(mixed, &model_config::local_layers, 2);
    static_assert(overtaking_context(local, {}, 3) == 0);
    static_assert(overtaking_context(local, {}, 5) == 10);

    for (const model_config& m : model_presets) {
        for (const int64_t batch : {1, 16, 256}) {
            CAPTURE(m.name);
            CAPTURE(batch);
            const int64_t context = overtaking_context(m, {}, batch);
            const auto outweighs = [&](int64_t n) {
                return find(decode_operations(m, {}, batch, n), "attention").kv_bytes >=
                       weight_bytes_read(decode_operations(m, {}, batch, n));
            };
            REQUIRE(context > 1);
            CHECK(outweighs(context));
            CHECK_FALSE(outweighs(context - 1));
        }
    }
}

TEST_CASE("roofline: a sliding window caps the cache of local layers only") {
    // Per layer and token 2 x 16 x 128 x 2 = 8192 bytes: 62 layers up to 1024 tokens, 10 of them beyond.
    static_assert(kv_bytes(gemma, kv_bf16, 1024) == 1024.0 * 62 * 8192);
    static_assert(kv_bytes(gemma, kv_bf16, 1025) - kv_bytes(gemma, kv_bf16, 1024) == 10 * 8192);
    static_assert(kv_bytes(gemma, kv_bf16, 131072) == 8192.0 * (10 * 131072.0 + 52 * 1024));
    static_assert(kv_bytes(llama_8b, kv_bf16, 131072) == 131072.0 * 131072);

    // Decode attends to as many: 4 x 2 x 2 FLOPs per pair; window 2, context 5, one layer of each kind: 5 + 2 pairs.
    constexpr model_config mixed = with(with(toy, &model_config::sliding_window, 2), &model_config::local_layers, 1);
    CHECK(find(decode_operations(mixed, {}, 1, 5), "attention").flops == 16 * 7);
    // Causal prompt of 5: 15 pairs, with window 2: 1 + 2 + 2 + 2 + 2 = 9. Of 2: 3 in either layer.
    CHECK(find(prefill_operations(mixed, {}, 5), "attention").flops == 16 * (15 + 9));
    CHECK(find(prefill_operations(mixed, {}, 2), "attention").flops == 16 * (3 + 3));
    CHECK(find(prefill_operations(toy, {}, 5, 3), "attention").flops == 3 * 2 * 16 * 15);
}

TEST_CASE("roofline: prefill of the toy model, by hand") {
    constexpr operation_list list = prefill_operations(toy, {}, 5);
    CHECK(find(list, "qkv").flops == 2 * 5 * 64);
    CHECK(find(list, "lm_head").flops == 2 * 40);  // the last token only
    CHECK(find(list, "qkv").kv_bytes == 5 * 16);   // written
    CHECK(find(list, "attention").kv_bytes == 0);
    // Queries and results 5 x 2 x 8 elements, and K and V once.
    CHECK(find(list, "attention").activation_bytes == 5 * 2 * 8 * 2 + 5 * 16);
    CHECK(required_bytes(list) == 696 + 5 * 8 + 5 * 16);
    // Looking up 20 tokens reads no more than the table of 10 rows.
    CHECK(find(prefill_operations(toy, {}, 20), "embedding").weight_bytes == 80);

    // memory (696 + 8 min(P, 10) + 16 P) / 100; compute (576 P + 80 + 32 P (P + 1) / 2) / 1000 + 80 P / 10000:
    // P = 8: 8.88 against 4.608 + 0.08 + 1.152 + 0.064 = 5.904; P = 12: 9.68, 9.584; P = 13: 9.84, 10.584.
    static_assert(knee_prompt(toy, {}, toy_device) == 13);
    constexpr time_floor t = prefill_floor(toy, {}, toy_device, 8);
    CHECK(near(t.memory, 8.88));
    CHECK(near(t.compute, 5.904));
    CHECK(near(prefill_floor(toy, {}, toy_device, 13).compute, 10.584));

    // 70B, 8192 tokens: 2 x 68.45e9 x 8192 + attention 4 x 64 x 128 x 80 x 8192 x 8193 / 2, at 989 TFLOP/s: 1.223 s.
    const time_floor large = prefill_floor(llama_70b, {}, device_presets[2], 8192);
    CHECK(large.compute_bound());
    CHECK(large.seconds() > 1.222);
    CHECK(large.seconds() < 1.225);
}

TEST_CASE("roofline: latent attention, by hand") {
    // One layer, 2 heads, hidden 4, latent 3, rope 1, nope 2, v 2, queries through rank 2.
    constexpr model_config mla{.hidden_size = 4,
                               .num_hidden_layers = 1,
                               .num_attention_heads = 2,
                               .intermediate_size = 8,
                               .vocab_size = 10,
                               .kv_lora_rank = 3,
                               .q_lora_rank = 2,
                               .qk_nope_head_dim = 2,
                               .qk_rope_head_dim = 1,
                               .v_head_dim = 2};
    static_assert(check(mla).ok());
    // q_a 4 x 2, q_b 2 x 2 x 3, kv_a 4 x (3 + 1), kv_b 3 x 2 x (2 + 2) = 8 + 12 + 16 + 24; output 2 x 2 x 4; norms
    // 2 x 4 + 3 + 2, and 4.
    static_assert(parameters(mla).qkv == 60);
    static_assert(parameters(mla).output == 16);
    static_assert(parameters(mla).norms == 17);
    // Queries in one step: 4 x 2 x 3 instead of 8 + 12.
    static_assert(parameters(with(mla, &model_config::q_lora_rank, 0)).qkv == 64);
    static_assert(kv_bytes_per_token(mla, kv_bf16) == 8);
    // Two heads x (score 3 + 1, value 3) x 2 FLOPs per pair when decoding; (2 + 1) + 2 in a prompt.
    CHECK(find(decode_operations(mla, {}, 1, 5), "attention").flops == 2 * 2 * 7 * 5);
    CHECK(find(decode_operations(mla, {}, 1, 5), "attention").kv_bytes == 5 * 8);
    CHECK(find(prefill_operations(mla, {}, 5), "attention").flops == 2 * 2 * 5 * 15);
    // The two forms of kv_b cost the same.
    CHECK(find(decode_operations(mla, {}, 5, 1), "qkv").flops == find(prefill_operations(mla, {}, 5), "qkv").flops);

    // All 128 heads share the latent: hundreds of FLOPs per byte where GQA with 8 queries per KV head has 8.
    const auto attention = [](const model_config& m) {
        return find(decode_operations(m, {}, 1, 8192), "attention").intensity();
    };
    CHECK(near(attention(deepseek), 2.0 * 128 * 1088 / 1152, 0.03));  // 241.8
    CHECK(attention(llama_70b) > 7.9);
    CHECK(attention(llama_70b) < 8.0);
}

TEST_CASE("roofline: intensity of the operations") {
    // A projection does 2 B FLOPs per 2-byte weight, so B per byte, less what its activations move.
    for (const int64_t batch : {1, 16, 128}) {
        const double b = static_cast<double>(batch);
        for (const char* name : {"qkv", "output", "mlp", "lm_head"}) {
            const double intensity = find(decode_operations(llama_70b, {}, batch, 1), name).intensity();
            CAPTURE(name);
            CHECK(intensity < b);
            CHECK(intensity > b * 0.95);
        }
        // Norms: 4 FLOPs per element read and written in 2 bytes each.
        const double norm = find(decode_operations(llama_70b, {}, batch, 1), "norms").intensity();
        CHECK(near(norm, b / (b + 0.5)));  // weights: one element of 2 bytes per 4 B bytes
    }
    // Attention is read per sequence: batching does not help.
    CHECK(near(find(decode_operations(llama_70b, {}, 1, 4096), "attention").intensity(),
               find(decode_operations(llama_70b, {}, 64, 4096), "attention").intensity()));
}

TEST_CASE("roofline: tensor parallelism") {
    static_assert(check_parallel(llama_70b, 64).ok());
    // 8 KV heads: split up to 8 ranks, then held several times.
    static_assert(kv_bytes_per_token(llama_70b, kv_bf16, 8) == 327680 / 8);
    static_assert(kv_bytes_per_token(llama_70b, kv_bf16, 16) == 327680 / 8);
    static_assert(kv_bytes_per_token(llama_70b, kv_bf16, 64) == 327680 / 8);
    // MLA: the latent is on every rank.
    static_assert(kv_bytes_per_token(deepseek, kv_bf16, 8) == 70272);

    const parameter_counts whole_model = parameters(llama_70b), eighth = parameters(llama_70b, 8);
    CHECK(eighth.total() == (whole_model.total() - whole_model.norms) / 8 + whole_model.norms);
    // 16 ranks: K and V projections of one head each, 2 x 8192 x 128 in 80 layers, twice in total.
    const parameter_counts sixteenth = parameters(llama_70b, 16);
    CHECK(16 * sixteenth.qkv == whole_model.qkv + 80.0 * 8 * 2 * 8192 * 128);
    // MLA: down-projections 7168 x (1536 + 576) on every rank, in 61 layers.
    CHECK(8 * parameters(deepseek, 8).qkv == parameters(deepseek).qkv + 7 * 61.0 * 7168 * (1536 + 576));

    // Work splits with the heads and columns; norms are done by every rank.
    const operation_list one = decode_operations(llama_70b, {}, 4, 1000),
                         eight = decode_operations(llama_70b, {}, 4, 1000, 8);
    for (const char* name : {"qkv", "attention", "output", "mlp", "lm_head"})
        CHECK(find(one, name).flops == 8 * find(eight, name).flops);
    CHECK(find(one, "norms").flops == find(eight, "norms").flops);

    CHECK(check_parallel(llama_70b, 0) == status{status_code::out_of_range, "tp", 0, 1});
    CHECK(check_parallel(llama_70b, 3) == status{status_code::shape_mismatch, "tp", 3, 64});
    CHECK(check_parallel(llama_70b, 128) == status{status_code::out_of_range, "tp", 128, 64});
    // 6 KV heads over 4 ranks fit neither way.
    model_config odd = toy;
    odd.num_attention_heads = 12;
    odd.num_key_value_heads = 6;
    CHECK(check_parallel(odd, 4) == status{status_code::shape_mismatch, "tp", 4, 6});
    CHECK(check_parallel(odd, 3).ok());
    CHECK(check_parallel(odd, 12).ok());
}

TEST_CASE("roofline: memory and utilisation") {
    // 776 bytes of weights in 2000: 1224 left, 5 x 16 per sequence of 5 tokens.
    static_assert(sequences_that_fit(toy, {}, toy_device, 5) == 15);
    static_assert(sequences_that_fit(toy, {}, {"", "", 1, 776 + 79, {}}, 5) == 0);
    static_assert(sequences_that_fit(toy, {}, {"", "", 1, 775, {}}, 5) == -1);
    // 70B: 141 GB in bf16 on an H200 is just too much; in mxfp4 there is room.
    CHECK(sequences_that_fit(llama_70b, {}, device_presets[2], 8192) == -1);
    CHECK(sequences_that_fit(llama_70b, {.weights = {4.25, 16, 16}}, device_presets[2], 8192) > 0);

    // 1008 bytes in 20 s at 100 B/s.
    CHECK(near(bandwidth_utilisation(1008, 20, toy_device), 0.504));
    CHECK(near(compute_utilisation({10.08, 2.5}, 20), 0.125));
}

TEST_CASE("roofline: which arithmetic a device has for a format") {
    const device& a100 = device_presets[0];
    const device& h200 = device_presets[2];
    const device& b200 = device_presets[3];
    CHECK(std::string(b200.name) == "b200");
    CHECK(fastest_arithmetic(h200, 8, true) == arithmetic::fp8);
    CHECK(fastest_arithmetic(a100, 8, true) == arithmetic::bf16);
    CHECK(fastest_arithmetic(h200, 4, true) == arithmetic::bf16);
    CHECK(fastest_arithmetic(h200, 6, true) == arithmetic::bf16);
    CHECK(fastest_arithmetic(b200, 4, true) == arithmetic::fp4);
    CHECK(fastest_arithmetic(b200, 6, true) == arithmetic::fp8);
    CHECK(fastest_arithmetic(b200, 4, false) == arithmetic::bf16);
    CHECK(fastest_arithmetic(b200, 16, true) == arithmetic::bf16);
    for (const device& d : device_presets) {
        CAPTURE(d.name);
        CHECK(d.peak_of(arithmetic::fp32) > 0);
        CHECK(d.peak_of(arithmetic::bf16) > d.peak_of(arithmetic::fp32));
        // Each halving of the width doubles the dense rate, to the sheets' rounding.
        if (d.peak_of(arithmetic::fp8) > 0)
            CHECK(near(d.peak_of(arithmetic::fp8), 2 * d.peak_of(arithmetic::bf16), 0.02));
        if (d.peak_of(arithmetic::fp4) > 0)
            CHECK(near(d.peak_of(arithmetic::fp4), 2 * d.peak_of(arithmetic::fp8), 0.02));
    }
}

TEST_CASE("roofline: a bad size is named") {
    for (const config_field& f : config_fields) {
        CAPTURE(f.key);
        for (const model_config& base : {llama_8b, deepseek}) {
            const status negative = check(with(base, f.member, -1));
            CHECK(std::string(negative.argument) == f.key);
            CHECK(negative == status{status_code::out_of_range, f.key, -1, f.low});
            const status huge = check(with(base, f.member, f.high + 1));
            CHECK(std::string(huge.argument) == f.key);
            CHECK(huge == status{status_code::out_of_range, f.key, f.high + 1, f.high});
            if (!f.optional) CHECK(check(with(base, f.member, 0)) == status{status_code::out_of_range, f.key, 0, 1});
        }
    }
    const auto argument = [](const model_config& m) { return std::string(check(m).argument); };
    CHECK(argument(with(llama_8b, &model_config::num_key_value_heads, 0)) == "num_key_value_heads");
    CHECK(argument(with(llama_8b, &model_config::num_key_value_heads, 5)) == "num_key_value_heads");
    CHECK(argument(with(llama_8b, &model_config::head_dim, 0)) == "head_dim");
    CHECK(argument(with(llama_8b, &model_config::intermediate_size, 0)) == "intermediate_size");
    CHECK(argument(with(deepseek, &model_config::qk_nope_head_dim, 0)) == "qk_nope_head_dim");
    CHECK(argument(with(deepseek, &model_config::qk_rope_head_dim, 0)) == "qk_rope_head_dim");
    CHECK(argument(with(deepseek, &model_config::v_head_dim, 0)) == "v_head_dim");
    CHECK(argument(with(deepseek, &model_config::num_experts_per_tok, 0)) == "num_experts_per_tok");
    CHECK(argument(with(deepseek, &model_config::num_experts_per_tok, 257)) == "num_experts_per_tok");
    CHECK(argument(with(deepseek, &model_config::moe_intermediate_size, 0)) == "moe_intermediate_size");
    CHECK(argument(with(deepseek, &model_config::first_k_dense_replace, 62)) == "first_k_dense_replace");
    CHECK(argument(with(deepseek, &model_config::intermediate_size, 0)) == "intermediate_size");
    // Experts in every layer need no dense MLP.
    CHECK(
        check(with(with(deepseek, &model_config::intermediate_size, 0), &model_config::first_k_dense_replace, 0)).ok());
    CHECK(argument(with(gemma, &model_config::sliding_window, 0)) == "sliding_window");
    CHECK(argument(with(gemma, &model_config::local_layers, 63)) == "local_layers");
    CHECK(argument(with(gemma, &model_config::local_layers, -1)) == "local_layers");
    CHECK(argument(with(gemma, &model_config::norms_per_layer, -1)) == "norms_per_layer");

    // The largest admitted model does not overflow.
    model_config largest = deepseek;
    for (const config_field& f : config_fields) largest.*f.member = f.high;
    largest.num_experts_per_tok = largest.n_routed_experts;
    largest.first_k_dense_replace = 0;
    REQUIRE(check(largest).ok());
    CHECK(std::isfinite(parameters(largest).total()));
    CHECK(parameters(largest).total() > 0);
    CHECK(std::isfinite(total_flops(prefill_operations(largest, {}, 1 << 20))));
    CHECK(kv_bytes(largest, kv_bf16, int64_t{1} << 40) > 0);
}
