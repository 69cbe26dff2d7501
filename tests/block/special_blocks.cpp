// SPDX-License-Identifier: MIT
// What becomes of blocks that hold NaN or Inf, only zeros, or only float subnormals: the exact scale bits and codes of
// every scheme, as rows of docs/special_blocks.md, which must be these.
#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace numfmt;

namespace {

/// The first elements of a block; the rest repeats the last `period` of them.
struct block_case {
    const char* name;
    std::vector<uint32_t> start;  // float bits
    size_t period;

    float value(int64_t k) const {
        const size_t at = static_cast<size_t>(k) < start.size()
                              ? static_cast<size_t>(k)
                              : start.size() - period + (static_cast<size_t>(k) - start.size()) % period;
        return bit_cast<float>(start[at]);
    }
};

// 1.75, -0.5, 0.25, 0
const std::vector<block_case> cases = {
    {"NaN, 1.75, -0.5, 0.25, 0, 0...", {0x7FC00000, 0x3FE00000, 0xBF000000, 0x3E800000, 0}, 1},
    {"+Inf, 1.75, -0.5, 0.25, 0, 0...", {0x7F800000, 0x3FE00000, 0xBF000000, 0x3E800000, 0}, 1},
    {"-Inf, 1.75, -0.5, 0.25, 0, 0...", {0xFF800000, 0x3FE00000, 0xBF000000, 0x3E800000, 0}, 1},
    {"+0, -0, +0, -0...", {0x00000000, 0x80000000}, 2},
    {"2^-126 - 2^-149, -2^-127, 2^-149, -2^-149, and again...", {0x007FFFFF, 0x80400000, 0x00000001, 0x80000001}, 4},
};

struct row {
    const char* schemes;
    size_t block_case;
    const char* nonfinite;  // "propagate", "saturate" or "either"
    const char* scale;
    const char* zero;
    const char* codes;  // of the elements listed
};

// Derived by hand. fp32 scale of amax 1.75: 1.75 / 448 = 2^-8, elements times 256: 448 = 7E, -128 = F0, 64 = 68. Of no
// amax, or one below 448 * 2^-126: 2^-126; then 1 - 2^-23 rounds to 1 = 38, -0.5 = B0, and 2^-23 is below half of
// E4M3's smallest 2^-9. The E8M0 byte of amax 1.75 is 127 + 0 - emax (8, 15, 2): elements times 2^8 as before, times
// 2^15: 57344 = 7B, -2^14 = F4, 2^13 = 70; times 4: 7 saturates to 6 = 7, -2 = C, 1 = 2. Of tiny ones it is 00, 2^-127:
// elements times 2^127: 2 - 2^-22 rounds to 2 = 40 (E5M2 40, E2M1 4), -1 = B8 (BC, A).
// int4 over [-0.5, 1.75]: 2.25 / 15 = 0.15, in binary16 30CD = 0.1500244; zero point round(3.33) = 3; 11.66 + 3 = 15,
// -3.33 + 3 = 0, 1.67 + 3 = 5. Symmetric: 1.75 / 7 = 0.25 = 3400. MXINT8: 64 times 1.75, -0.5, 0.25. MXFP6: E2M3 has
// emax 2 and 1E = 7, E3M2 emax 4 and 28 = 1F. NVFP4 beside an amax of 2.96: 448 * 1.75 / 2.96 = 264.9, in E4M3 256 =
// 78; elements times 2688 / 2.96 / 256 = 3.547: 6.2, -1.77, 0.89; a block scale of 0 has the factor FLT_MAX. Zeros:
// 1e-5 / 15 = 11.18 * 2^-24 = 000B. Subnormals: the smallest scale, 2^-24 = 0001.
const row rows[] = {
    {"fp8_per_tensor, fp8_per_channel, block_fp8_128x128, block_fp8_1x128", 0, "propagate", "7FC00000", "",
     "00 00 00 00 00"},
    {"", 0, "saturate", "3B800000", "", "7F 7E F0 68 00"},
    {"", 1, "propagate", "7FC00000", "", "00 00 00 00 00"},
    {"", 1, "saturate", "3B800000", "", "7E 7E F0 68 00"},
    {"", 2, "propagate", "7FC00000", "", "00 00 00 00 00"},
    {"", 2, "saturate", "3B800000", "", "FE 7E F0 68 00"},
    {"", 3, "either", "00800000", "", "00 80"},
    {"", 4, "either", "00800000", "", "38 B0 00 80"},

    {"block_fp8_128x128_e8m0, block_fp8_1x128_e8m0, mxfp8_e4m3", 0, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 0, "saturate", "77", "", "7F 7E F0 68 00"},
    {"", 1, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 1, "saturate", "77", "", "7E 7E F0 68 00"},
    {"", 2, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 2, "saturate", "77", "", "FE 7E F0 68 00"},
    {"", 3, "either", "00", "", "00 80"},
    {"", 4, "either", "00", "", "40 B8 00 80"},

    {"mxfp8_e5m2", 0, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 0, "saturate", "70", "", "7F 7B F4 70 00"},
    {"", 1, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 1, "saturate", "70", "", "7B 7B F4 70 00"},
    {"", 2, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 2, "saturate", "70", "", "FB 7B F4 70 00"},
    {"", 3, "either", "00", "", "00 80"},
    {"", 4, "either", "00", "", "40 BC 00 80"},

    {"mxfp4", 0, "propagate", "FF", "", "0 0 0 0 0"},
    {"", 0, "saturate", "7D", "", "7 7 C 2 0"},
    {"", 1, "propagate", "FF", "", "0 0 0 0 0"},
    {"", 1, "saturate", "7D", "", "7 7 C 2 0"},
    {"", 2, "propagate", "FF", "", "0 0 0 0 0"},
    {"", 2, "saturate", "7D", "", "F 7 C 2 0"},
    {"", 3, "either", "00", "", "0 8"},
    {"", 4, "either", "00", "", "4 A 0 8"},

    {"mxint8", 0, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 0, "saturate", "7F", "", "00 70 E0 10 00"},
    {"", 1, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 1, "saturate", "7F", "", "7F 70 E0 10 00"},
    {"", 2, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 2, "saturate", "7F", "", "81 70 E0 10 00"},
    {"", 3, "either", "00", "", "00 00"},
    {"", 4, "either", "00", "", "7F C0 00 00"},

    {"mxfp6_e2m3", 0, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 0, "saturate", "7D", "", "1F 1E 30 08 00"},
    {"", 1, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 1, "saturate", "7D", "", "1F 1E 30 08 00"},
    {"", 2, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 2, "saturate", "7D", "", "3F 1E 30 08 00"},
    {"", 3, "either", "00", "", "00 20"},
    {"", 4, "either", "00", "", "10 28 00 20"},

    {"mxfp6_e3m2", 0, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 0, "saturate", "7B", "", "1F 1F 38 14 00"},
    {"", 1, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 1, "saturate", "7B", "", "1F 1F 38 14 00"},
    {"", 2, "propagate", "FF", "", "00 00 00 00 00"},
    {"", 2, "saturate", "7B", "", "3F 1F 38 14 00"},
    {"", 3, "either", "00", "", "00 20"},
    {"", 4, "either", "00", "", "10 2C 00 20"},

    {"nvfp4", 0, "propagate", "7F", "", "0 0 0 0 0"},
    {"", 0, "saturate", "78", "", "7 7 C 2 0"},
    {"", 1, "propagate", "7F", "", "0 0 0 0 0"},
    {"", 1, "saturate", "78", "", "7 7 C 2 0"},
    {"", 2, "propagate", "7F", "", "0 0 0 0 0"},
    {"", 2, "saturate", "78", "", "F 7 C 2 0"},
    {"", 3, "either", "00", "", "0 8"},
    {"", 4, "either", "00", "", "6 C 0 8"},

    {"int4_symmetric_g128, int4_symmetric_g32", 0, "propagate", "7FFF", "", "0 0 0 0 0"},
    {"", 0, "saturate", "3400", "", "8 F 6 9 8"},
    {"", 1, "propagate", "7FFF", "", "0 0 0 0 0"},
    {"", 1, "saturate", "3400", "", "F F 6 9 8"},
    {"", 2, "propagate", "7FFF", "", "0 0 0 0 0"},
    {"", 2, "saturate", "3400", "", "0 F 6 9 8"},
    {"", 3, "either", "000B", "", "8 8"},
    {"", 4, "either", "0001", "", "8 8 8 8"},

    {"awq_int4, int4_g64, int4_g32", 0, "propagate", "7FFF", "0", "0 0 0 0 0"},
    {"", 0, "saturate", "30CD", "3", "3 F 0 5 3"},
    {"", 1, "propagate", "7FFF", "0", "0 0 0 0 0"},
    {"", 1, "saturate", "30CD", "3", "F F 0 5 3"},
    {"", 2, "propagate", "7FFF", "0", "0 0 0 0 0"},
    {"", 2, "saturate", "30CD", "3", "0 F 0 5 3"},
    {"", 3, "either", "000B", "0", "0 0"},
    {"", 4, "either", "0001", "0", "0 0 0 0"},
};

/// The rows whose schemes are named by the last non-empty entry.
std::map<std::string, std::vector<const row*>> rows_by_scheme() {
    std::map<std::string, std::vector<const row*>> out;
    std::string names;
    for (const row& r : rows) {
        if (*r.schemes != '\0') names = r.schemes;
        for (size_t at = 0; at < names.size();) {
            const size_t end = std::min(names.find(", ", at), names.size());
            out[names.substr(at, end - at)].push_back(&r);
            at = end + 2;
        }
    }
    return out;
}

std::string hex(uint32_t v, int digits) {
    char text[16];
    std::snprintf(text, sizeof text, "%0*X", digits, v);
    return text;
}

template <class S> uint32_t scale_bits(const quantized_view<const S>& v, int64_t i, int64_t j) {
    if constexpr (detail::is_same_v<typename S::scale, float>)
        return bit_cast<uint32_t>(v.scale(i, j));
    else
        return v.scale(i, j);
}

/// A tensor of four blocks (one along an axis that a block covers), the special one not the first.
template <class S> struct tensor {
    static constexpr int64_t rows = S::block.rows == whole ? 2 : 2 * S::block.rows;
    static constexpr int64_t cols = S::block.cols == whole ? 10 : 2 * S::block.cols;
    static constexpr int64_t block_rows = S::block.rows == whole ? rows : S::block.rows;
    static constexpr int64_t block_cols = S::block.cols == whole ? cols : S::block.cols;
    static constexpr int64_t special_row = rows / block_rows - 1, special_col = cols / block_cols - 1;
    std::vector<float> x = std::vector<float>(rows * cols);

    tensor() {
        for (int64_t k = 0; k < rows * cols; ++k) x[static_cast<size_t>(k)] = 0.37f * static_cast<float>(k % 17 - 8);
    }
    /// Calls f(row, col, index in the block) over the special block.
    template <class F> static void each(F&& f) {
        for (int64_t r = 0; r < block_rows; ++r)
            for (int64_t c = 0; c < block_cols; ++c)
                f(special_row * block_rows + r, special_col * block_cols + c, r * block_cols + c);
    }
    matrix_view<const float> view() const { return {x.data(), {rows, cols}}; }
};

template <class S> void check_row(const row& want, nonfinite policy) {
    const block_case& in = cases[want.block_case];
    tensor<S> t;
    const auto clean = quantize<S>(t.view(), {.nonfinite = policy});
    t.each([&](int64_t r, int64_t c, int64_t k) { t.x[static_cast<size_t>(r * t.cols + c)] = in.value(k); });
    const auto q = quantize<S>(t.view(), {.nonfinite = policy});
    const auto v = q.value.view();
    const auto before = clean.value.view();
    constexpr int digits = scheme_traits<S>::element_bits > 4 ? 2 : 1;
    INFO(std::string(S::name));
    INFO(std::string(in.name));

    CHECK(hex(scale_bits<S>(v, t.special_row, t.special_col), scheme_traits<S>::scale_bits / 4) == want.scale);
    if constexpr (S::has_zero_point) CHECK(hex(v.zero_point(t.special_row, t.special_col), 1) == want.zero);
    std::string codes;
    int unlike = 0;
    t.each([&](int64_t r, int64_t c, int64_t k) {
        const std::string code = hex(v.code(r, c), digits);
        if (k < static_cast<int64_t>(in.start.size()))
            codes += (k == 0 ? "" : " ") + code;
        else
            unlike +=
                code != hex(v.code(t.special_row * t.block_rows + (k - static_cast<int64_t>(in.period)) / t.block_cols,
                                   t.special_col * t.block_cols + (k - static_cast<int64_t>(in.period)) % t.block_cols),
                            digits);
    });
    CHECK(codes == want.codes);
    CHECK(unlike == 0);

    // The other blocks are what they were.
    const matrix_shape scales = v.scale_shape();
    int changed = 0;
    for (int64_t i = 0; i < scales.rows; ++i)
        for (int64_t j = 0; j < scales.cols; ++j)
            if (i != t.special_row || j != t.special_col) {
                changed += scale_bits<S>(v, i, j) != scale_bits<S>(before, i, j);
                if constexpr (S::has_zero_point) changed += v.zero_point(i, j) != before.zero_point(i, j);
            }
    for (int64_t r = 0; r < t.rows; ++r)
        for (int64_t c = 0; c < t.cols; ++c)
            if (r / t.block_rows != t.special_row || c / t.block_cols != t.special_col)
                changed += v.code(r, c) != before.code(r, c);
    CHECK(changed == 0);

    // A NaN scale decodes to NaN, zeros to zeros, everything else to finite numbers but the element NaN itself.
    std::vector<float> y(t.x.size());
    REQUIRE(dequantize(v, matrix_view<float>{y.data(), {t.rows, t.cols}}).ok());
    int wrong = 0;
    t.each([&](int64_t r, int64_t c, int64_t k) {
        const float value = y[static_cast<size_t>(r * t.cols + c)];
        const bool poisoned = want.block_case <= 2 && policy == nonfinite::propagate;
        const bool nan_code =
            want.block_case == 0 && k == 0 && detail::is_one_of_v<typename S::element, fp8_e4m3, fp8_e5m2>;
        wrong += detail::is_nan(value) != (poisoned || nan_code);
        if (want.block_case == 3) wrong += value != 0;
    });
    CHECK(wrong == 0);
}

/// The table as it stands in the document.
std::vector<std::string> document_rows() {
    std::vector<std::string> lines = {"| schemes | elements of the block | nonfinite | scale | zero point | codes |",
                                      "|---|---|---|---|---|---|"};
    std::string names;
    for (const row& r : rows) {
        if (*r.schemes != '\0') names = r.schemes;
        lines.push_back("| " + names + " | " + cases[r.block_case].name + " | " + r.nonfinite + " | " + r.scale +
                        " | " + (*r.zero != '\0' ? r.zero : "-") + " | " + r.codes + " |");
    }
    return lines;
}

}  // namespace

TEST_CASE("special blocks: scale bits and codes of every scheme, and the blocks beside them") {
    const auto expected = rows_by_scheme();
    for_each(all_schemes{}, [&]<class S>() {
        const auto found = expected.find(S::name);
        INFO(std::string(S::name));
        REQUIRE(found != expected.end());
        std::map<std::pair<size_t, int>, int> seen;
        for (const row* r : found->second) {
            for (const nonfinite policy : {nonfinite::propagate, nonfinite::saturate}) {
                const bool propagate = policy == nonfinite::propagate;
                if (std::strcmp(r->nonfinite, propagate ? "saturate" : "propagate") == 0) continue;
                check_row<S>(*r, policy);
                ++seen[{r->block_case, propagate}];
            }
        }
        CHECK(seen.size() == 2 * cases.size());
    });
    CHECK(expected.size() == all_schemes::size);
}

TEST_CASE("special blocks: every position of a NaN poisons its block") {
    for_each(all_schemes{}, []<class S>() {
        for (const int64_t at :
             {int64_t{0}, tensor<S>::block_cols - 1, tensor<S>::block_rows * tensor<S>::block_cols - 1}) {
            for (const uint32_t bits : {0x7F800001u, 0xFFFFFFFFu, 0x7FC00000u, 0xFF800000u}) {
                tensor<S> t;
                t.each([&](int64_t r, int64_t c, int64_t k) {
                    if (k == at) t.x[static_cast<size_t>(r * t.cols + c)] = bit_cast<float>(bits);
                });
                const auto q = quantize<S>(t.view());
                std::vector<float> y(t.x.size());
                REQUIRE(dequantize(q.value.view(), matrix_view<float>{y.data(), {t.rows, t.cols}}).ok());
                int64_t nans = 0;
                for (const float v : y) nans += detail::is_nan(v);
                INFO(std::string(S::name));
                CHECK(nans == t.block_rows * t.block_cols);
            }
        }
    });
}

TEST_CASE("special blocks: a block of nothing but NaN and Inf saturates to finite numbers") {
    for_each(all_schemes{}, []<class S>() {
        const uint32_t bits[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000};
        float x[4], y[4];
        for (int k = 0; k < 4; ++k) x[k] = bit_cast<float>(bits[k]);
        const auto q = quantize<S>(matrix_view<const float>{x, {1, 4}}, {.nonfinite = nonfinite::saturate});
        REQUIRE(dequantize(q.value.view(), matrix_view<float>{y, {1, 4}}).ok());
        INFO(std::string(S::name));
        CHECK(y[0] > 0);
        CHECK(detail::is_finite(y[0]));
        if constexpr (S::has_zero_point)
            CHECK(y[1] == 0.0f);  // unsigned codes end at the zero point
        else if constexpr (requires { S::fixed_zero_point; })
            CHECK(y[1] / 8 == doctest::Approx(-y[0] / 7));  // -8 and 7
        else
            CHECK(y[1] == -y[0]);
    });
}

TEST_CASE("special blocks: docs/special_blocks.md holds this table") {
    std::ifstream file(std::string(NUMFMT_TEST_DATA_DIR) + "/../../docs/special_blocks.md");
    REQUIRE(file.is_open());
    std::vector<std::string> in_document;
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] == '|') in_document.push_back(line);
    const std::vector<std::string> wanted = document_rows();
    REQUIRE(in_document.size() == wanted.size());
    for (size_t k = 0; k < wanted.size(); ++k) CHECK(in_document[k] == wanted[k]);
}
