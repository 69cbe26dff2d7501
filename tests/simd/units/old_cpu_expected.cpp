// SPDX-License-Identifier: MIT
// What the units have to give, by the oracle of the tests: a search in tables of doubles, no function of numfmt. Linked
// last, so that its copies of the standard library's functions replace nobody's.
#include "old_cpu.hpp"
#include "support/block_oracle.hpp"

std::uint64_t expected_work(const float* x, std::int64_t n) {
    using numfmt::rounding;
    checksum sum;
    for (const char* const name : {"fp8_e4m3", "fp8_e5m2", "fp4_e2m1", "e8m0"}) {
        const block_oracle::float_table& table = block_oracle::table_of(name);
        const bool has_zero = table.values[0] == 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const double v = static_cast<double>(x[i]);
            const std::uint32_t code =
                block_oracle::encode(table, v, has_zero ? rounding::nearest_even : rounding::toward_zero);
            sum.add(code, static_cast<float>(block_oracle::decode(table, code)));
        }
    }
    const std::vector<float> all(x, x + n);
    for (const char* const name : {"mxfp4", "nvfp4", "awq_int4", "block_fp8_1x128"}) {
        const block_oracle::scheme_facts& facts = block_oracle::facts_of(name);
        const block_oracle::quantized q = block_oracle::quantize(facts, all, 1, n, rounding::nearest_even, {});
        const std::vector<float> y = block_oracle::dequantize(facts, q);
        for (std::size_t i = 0; i < y.size(); ++i) sum.add(q.codes[i], y[i]);
    }
    return sum.value();
}
