// SPDX-License-Identifier: MIT
// What becomes of blocks that hold NaN or Inf, only zeros, or only float subnormals: the exact scale bits and codes of
// every scheme, from the lines "special" of tests/golden/schemes, and docs/special_blocks.md, which must hold them.
#include <doctest/doctest.h>

#include <numfmt/numfmt.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/block_oracle.hpp"

using namespace numfmt;
using block_oracle::facts_of;
using block_oracle::scheme_facts;
using block_oracle::special_row;

namespace {

/// The first elements of a block; the rest repeats the last `period` of them.
struct block_case {
    const char* key;  // in the golden files
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
    {"nan", "NaN, 1.75, -0.5, 0.25, 0, 0...", {0x7FC00000, 0x3FE00000, 0xBF000000, 0x3E800000, 0}, 1},
    {"+inf", "+Inf, 1.75, -0.5, 0.25, 0, 0...", {0x7F800000, 0x3FE00000, 0xBF000000, 0x3E800000, 0}, 1},
    {"-inf", "-Inf, 1.75, -0.5, 0.25, 0, 0...", {0xFF800000, 0x3FE00000, 0xBF000000, 0x3E800000, 0}, 1},
    {"zeros", "+0, -0, +0, -0...", {0x00000000, 0x80000000}, 2},
    {"subnormals",
     "2^-126 - 2^-149, -2^-127, 2^-149, -2^-149, and again...",
     {0x007FFFFF, 0x80400000, 0x00000001, 0x80000001},
     4},
};

const block_case* find_case(const std::string& key) {
    for (const block_case& c : cases)
        if (c.key == key) return &c;
    return nullptr;
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

template <class S> void check_row(const special_row& want, const block_case& in, nonfinite policy) {
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
    if constexpr (S::has_zero_point)
        CHECK(hex(v.zero_point(t.special_row, t.special_col), 1) == want.zero);
    else
        CHECK(want.zero == "-");
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
    const scheme_facts& facts = facts_of(S::name);
    const bool element_has_nan = facts.elements != nullptr && facts.elements->has_nan;
    t.each([&](int64_t r, int64_t c, int64_t k) {
        const float value = y[static_cast<size_t>(r * t.cols + c)];
        const bool poisoned = !detail::is_finite(in.value(0)) && policy == nonfinite::propagate;
        const bool nan_code = detail::is_nan(in.value(k)) && element_has_nan;
        wrong += detail::is_nan(value) != (poisoned || nan_code);
        if (want.block == "zeros") wrong += value != 0;
    });
    CHECK(wrong == 0);
}

/// A row of the document for one scheme.
std::string document_row(const std::string& scheme, const special_row& r) {
    const block_case* const in = find_case(r.block);
    return "| " + scheme + " | " + (in == nullptr ? r.block : in->name) + " | " + r.nonfinite + " | " + r.scale +
           " | " + r.zero + " | " + r.codes + " |";
}

}  // namespace

TEST_CASE("special blocks: scale bits and codes of every scheme, and the blocks beside them") {
    for_each(all_schemes{}, [&]<class S>() {
        INFO(std::string(S::name));
        const std::vector<special_row>& rows = facts_of(S::name).special;
        CHECK_MESSAGE(!rows.empty(), "tests/golden/schemes/", std::string(S::name), ".txt has no lines 'special'");
        std::map<std::pair<std::string, bool>, int> seen;
        for (const special_row& r : rows) {
            const block_case* const in = find_case(r.block);
            REQUIRE_MESSAGE(in != nullptr, "unknown block '", r.block, "'");
            REQUIRE_MESSAGE((r.nonfinite == "propagate" || r.nonfinite == "saturate" || r.nonfinite == "either"),
                            r.nonfinite);
            for (const nonfinite policy : {nonfinite::propagate, nonfinite::saturate}) {
                const bool propagate = policy == nonfinite::propagate;
                if (r.nonfinite == (propagate ? "saturate" : "propagate")) continue;
                check_row<S>(r, *in, policy);
                ++seen[{r.block, propagate}];
            }
        }
        CHECK(seen.size() == 2 * cases.size());
    });
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

TEST_CASE("special blocks: docs/special_blocks.md holds these rows and no others") {
    std::ifstream file(std::string(NUMFMT_TEST_DATA_DIR) + "/../../docs/special_blocks.md");
    REQUIRE(file.is_open());
    std::vector<std::string> lines, in_document, wanted;
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] == '|') lines.push_back(line);
    REQUIRE(lines.size() > 2);
    CHECK(lines[0] == "| schemes | elements of the block | nonfinite | scale | zero point | codes |");
    CHECK(lines[1] == "|---|---|---|---|---|---|");
    for (size_t k = 2; k < lines.size(); ++k) {  // a line for each of the schemes that it names
        const size_t end = lines[k].find(" |");
        const std::string names = lines[k].substr(2, end - 2);
        for (size_t at = 0; at < names.size();) {
            const size_t stop = std::min(names.find(", ", at), names.size());
            in_document.push_back("| " + names.substr(at, stop - at) + lines[k].substr(end));
            at = stop + 2;
        }
    }
    for_each(all_schemes{}, [&]<class S>() {
        for (const special_row& r : facts_of(S::name).special) wanted.push_back(document_row(S::name, r));
    });
    std::sort(in_document.begin(), in_document.end());
    std::sort(wanted.begin(), wanted.end());
    INFO("python3 tests/golden/generate.py writes the table");
    REQUIRE(in_document.size() == wanted.size());
    for (size_t k = 0; k < wanted.size(); ++k) CHECK(in_document[k] == wanted[k]);
}
