// SPDX-License-Identifier: MIT
// The model against dot products computed by real tensor cores.
//
// Public vectors (Khattak & Mikaitis, github.com/north-numerical-computing/MATLAB-tensor-core, folder
// model_validation), repacked as GPU_INPUT_OUTPUT.csv.gz: the folder is the environment variable
// NUMFMT_TENSOR_CORE_VECTORS. A line is "a_1 .. a_n,b_1 .. b_n,c,d", hexadecimal: a, b and c as bits of floats, d as
// bits of a float (8 digits) or of an fp16 number (4 digits).
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <numfmt/accumulate/tensor_core.hpp>
#include <numfmt/bf16.hpp>
#include <numfmt/fp16.hpp>
#include <numfmt/fp8.hpp>

#include "support/skip.hpp"

using namespace numfmt::accumulate;
namespace tc = tensor_cores;

namespace {

/// One file's meaning.
struct vector_set {
    tensor_core_model model;
    bool zero_addend = false;  // the hardware ran with c = 0
};
const std::map<std::string, vector_set>& sets() {
    static const std::map<std::string, vector_set> all = [] {
        std::map<std::string, vector_set> m = {
            {"V100_fp16_fp32", {tc::volta_fp16}},      {"V100_fp16_fp16", {tc::volta_fp16_to_fp16}},
            {"Ada_E4M3_fp32", {tc::ada_fp8}},          {"Ada_E5M2_fp32", {tc::ada_fp8}},
            {"B200_bf16_fp32", {tc::blackwell_16bit}}, {"B200_fp16_fp32", {tc::blackwell_16bit}}};
        for (const std::string gpu : {"A100", "Ada"}) {
            m[gpu + "_bf16_fp32"] = m[gpu + "_fp16_fp32"] = {tc::ampere_16bit};
            m[gpu + "_fp16_fp16"] = {tc::ampere_fp16_to_fp16};
            m[gpu + "_tf32_fp32"] = {tc::ampere_tf32};
        }
        for (const std::string gpu : {"H100", "H200"}) {
            m[gpu + "_bf16_fp32"] = m[gpu + "_fp16_fp32"] = {tc::hopper_16bit};
            m[gpu + "_fp16_fp16"] = {tc::hopper_fp16_to_fp16};
            m[gpu + "_tf32_fp32"] = {tc::hopper_tf32};
            m[gpu + "_E4M3_fp32"] = m[gpu + "_E5M2_fp32"] = {tc::hopper_wgmma_fp8, true};
        }
        return m;
    }();
    return all;
}

std::uint32_t hex(const std::string& word) { return static_cast<std::uint32_t>(std::stoul(word, nullptr, 16)); }

struct line {
    std::vector<std::uint32_t> a, b;
    std::uint32_t c = 0, d = 0;
    bool d_is_fp16 = false;
};
std::vector<line> read(const std::filesystem::path& path) {
    std::vector<line> lines;
    std::FILE* pipe = popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    char buffer[65536];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
    pclose(pipe);
    std::istringstream in(text);
    for (std::string row; std::getline(in, row);) {
        std::istringstream fields(row);
        std::string field[4], word;
        for (auto& f : field) std::getline(fields, f, ',');
        line l;
        for (std::istringstream s(field[0]); s >> word;) l.a.push_back(hex(word));
        for (std::istringstream s(field[1]); s >> word;) l.b.push_back(hex(word));
        l.c = hex(field[2]);
        l.d = hex(field[3]);
        l.d_is_fp16 = field[3].find_last_not_of(" \r") == 3;
        lines.push_back(std::move(l));
    }
    return lines;
}

tensor_core_operand operand(const std::string& format, std::uint32_t float_bits) {
    const float x = std::bit_cast<float>(float_bits);
    if (format == "bf16") return to_operand<numfmt::bf16>(numfmt::bf16(x).bits());
    if (format == "fp16") return to_operand<numfmt::fp16>(numfmt::fp16(x).bits());
    if (format == "E4M3") return to_operand<numfmt::fp8_e4m3>(numfmt::fp8_e4m3(x).bits());
    if (format == "E5M2") return to_operand<numfmt::fp8_e5m2>(numfmt::fp8_e5m2(x).bits());
    REQUIRE(format == "tf32");
    return to_operand<tf32>(float_bits);
}

int mismatches(const std::vector<line>& lines, const std::string& format, const vector_set& set) {
    int wrong = 0;
    const bool fp16_out = set.model.output == tensor_core_output::fp16;
    for (const line& l : lines) {
        std::vector<tensor_core_operand> a, b;
        for (const auto x : l.a) a.push_back(operand(format, x));
        for (const auto x : l.b) b.push_back(operand(format, x));
        std::uint32_t c = set.zero_addend ? 0 : l.c;
        if (fp16_out) c = numfmt::fp16(std::bit_cast<float>(c)).bits();
        std::uint32_t d = tensor_core_dot(set.model, a.data(), b.data(), static_cast<std::int64_t>(a.size()), c);
        if (fp16_out && !l.d_is_fp16)
            d = std::bit_cast<std::uint32_t>(
                static_cast<float>(numfmt::fp16::from_bits(static_cast<std::uint16_t>(d))));
        wrong += d != l.d ? 1 : 0;
    }
    return wrong;
}

}  // namespace

TEST_CASE("tensor_core vectors: public ones of seven GPUs, and models a bit away do not fit them") {
    const char* const folder = std::getenv("NUMFMT_TENSOR_CORE_VECTORS");
    if (folder == nullptr || *folder == '\0') {
        numfmt_test::skip("NUMFMT_TENSOR_CORE_VECTORS does not name a folder");
        return;
    }
    REQUIRE_MESSAGE(std::filesystem::is_directory(folder), "NUMFMT_TENSOR_CORE_VECTORS: no such folder: ", folder);
    int files = 0;
    for (const auto& entry : sets()) {
        const std::string& name = entry.first;
        const vector_set& set = entry.second;
        const std::filesystem::path path = std::filesystem::path(folder) / (name + ".csv.gz");
        if (!std::filesystem::exists(path)) continue;
        ++files;
        const std::vector<line> lines = read(path);
        CHECK_MESSAGE(lines.size() >= 100, name);
        const std::string format = name.substr(name.find('_') + 1, 4);
        CHECK_MESSAGE(mismatches(lines, format, set) == 0, name, " ", lines[0].a.size(), " products");
        // The vectors tell one bit more or less apart, where the output keeps that much.
        if (set.model.output == tensor_core_output::fp16) continue;
        for (const int bits : {-1, 1}) {
            vector_set other = set;
            other.model.fraction_bits += bits;
            CHECK_MESSAGE(mismatches(lines, format, other) > 0, name, " with ", other.model.fraction_bits, " bits");
        }
    }
    MESSAGE(files, " files of public vectors compared");
    CHECK(files > 0);
}

namespace {

/// What the instructions of our own vectors are on compute capability 9.0.
struct own_instruction {
    const char* name;
    const char *a, *b;
    tensor_core_model model;
};
const std::vector<own_instruction>& own_instructions() {
    const auto shorter = [](tensor_core_model m, int k) {
        m.k = m.group = k;
        return m;
    };
    static const std::vector<own_instruction> all = {
        {"mma_m16n8k16_bf16", "bf16", "bf16", tc::hopper_16bit},
        {"mma_m16n8k8_bf16", "bf16", "bf16", shorter(tc::hopper_16bit, 8)},
        {"mma_m16n8k16_fp16", "fp16", "fp16", tc::hopper_16bit},
        {"mma_m16n8k8_fp16", "fp16", "fp16", shorter(tc::hopper_16bit, 8)},
        {"mma_m16n8k16_fp16_to_fp16", "fp16", "fp16", tc::hopper_fp16_to_fp16},
        {"mma_m16n8k8_tf32", "tf32", "tf32", tc::hopper_tf32},
        {"mma_m16n8k4_tf32", "tf32", "tf32", shorter(tc::hopper_tf32, 4)},
        {"mma_m16n8k32_e4m3", "E4M3", "E4M3", tc::hopper_mma_fp8},
        {"mma_m16n8k32_e5m2", "E5M2", "E5M2", tc::hopper_mma_fp8},
        {"mma_m16n8k32_e4m3_x_e5m2", "E4M3", "E5M2", tc::hopper_mma_fp8},
        {"mma_m16n8k32_e4m3_to_fp16", "E4M3", "E4M3", tc::hopper_mma_fp8_to_fp16},
        {"mma_m16n8k32_e5m2_to_fp16", "E5M2", "E5M2", tc::hopper_mma_fp8_to_fp16},
        {"wgmma_bf16", "bf16", "bf16", tc::hopper_16bit},
        {"wgmma_fp16", "fp16", "fp16", tc::hopper_16bit},
        {"wgmma_fp16_to_fp16", "fp16", "fp16", tc::hopper_fp16_to_fp16},
        {"wgmma_tf32", "tf32", "tf32", tc::hopper_tf32},
        {"wgmma_e4m3", "E4M3", "E4M3", tc::hopper_wgmma_fp8},
        {"wgmma_e5m2", "E5M2", "E5M2", tc::hopper_wgmma_fp8},
        {"wgmma_e4m3_x_e5m2", "E4M3", "E5M2", tc::hopper_wgmma_fp8},
        {"wgmma_e4m3_to_fp16", "E4M3", "E4M3", tc::hopper_wgmma_fp8_to_fp16},
        {"wgmma_e5m2_to_fp16", "E5M2", "E5M2", tc::hopper_wgmma_fp8_to_fp16},
    };
    return all;
}

std::vector<tensor_core_operand> operands(const std::string& format, const std::string& digits) {
    const std::size_t width = format == "tf32" ? 8 : format.size() == 4 && format[0] == 'E' ? 2 : 4;
    std::vector<tensor_core_operand> v;
    for (std::size_t i = 0; i + width <= digits.size(); i += width) {
        const std::uint32_t code = hex(digits.substr(i, width));
        if (format == "bf16") v.push_back(to_operand<numfmt::bf16>(static_cast<std::uint16_t>(code)));
        if (format == "fp16") v.push_back(to_operand<numfmt::fp16>(static_cast<std::uint16_t>(code)));
        if (format == "E4M3") v.push_back(to_operand<numfmt::fp8_e4m3>(static_cast<std::uint8_t>(code)));
        if (format == "E5M2") v.push_back(to_operand<numfmt::fp8_e5m2>(static_cast<std::uint8_t>(code)));
        if (format == "tf32") v.push_back(to_operand<tf32>(code));
    }
    return v;
}

}  // namespace

TEST_CASE("tensor_core vectors: our own, of every instruction and class of inputs") {
    const std::filesystem::path folder = std::filesystem::path(NUMFMT_TEST_DATA_DIR) / "tensor_core";
    int files = 0, lines = 0, unknown = 0;
    std::map<std::string, int> wrong, seen;
    if (std::filesystem::is_directory(folder)) {
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            if (entry.path().extension() != ".txt") continue;
            ++files;
            std::ifstream in(entry.path());
            for (std::string line; std::getline(in, line);) {
                if (line.empty() || line[0] == '#') continue;
                std::istringstream words(line);
                std::string name, kind, a, b, c, d;
                words >> name >> kind >> a >> b >> c >> d;
                const own_instruction* found = nullptr;
                for (const own_instruction& i : own_instructions())
                    if (name == i.name) found = &i;
                if (found == nullptr) {
                    ++unknown;
                    continue;
                }
                const auto x = operands(found->a, a), y = operands(found->b, b);
                CHECK(x.size() == y.size());
                ++lines;
                ++seen[name + ' ' + kind];
                const std::uint32_t got =
                    tensor_core_dot(found->model, x.data(), y.data(), static_cast<std::int64_t>(x.size()), hex(c));
                if (got != hex(d)) ++wrong[name + ' ' + kind];
            }
        }
    }
    if (files == 0) {
        numfmt_test::skip("no vectors in tests/golden/tensor_core (tests/cuda/tensor_core.cu --vectors writes them)");
        return;
    }
    for (const auto& row : wrong)
        CHECK_MESSAGE(row.second == 0, row.first, ": ", row.second, " of ", seen[row.first], " differ");
    CHECK(unknown == 0);
    CHECK(lines > 2000);
    CHECK(seen.size() == 10 * own_instructions().size());  // every class of every instruction
}
