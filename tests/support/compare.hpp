// SPDX-License-Identifier: MIT
// encode() against the oracle on a list of inputs, under every overflow and NaN rule, with the random words around the
// decision of stochastic rounding. Only a one-line function is instantiated per format and rounding; the loops are
// shared, which keeps the tests quick to compile.
#pragma once

#include <ios>
#include <vector>

#include <numfmt/core/std.hpp>

#include "inputs.hpp"
#include "oracle.hpp"
#include "tally.hpp"

namespace numfmt_test {

/// The conversion under test: a code from an input, the options and the random word.
template <class Input>
using conversion = std::uint32_t (*)(Input x, numfmt::encode_options options, std::uint32_t draw);

template <class Format, numfmt::rounding R, class Source>
std::uint32_t encode_code(Source x, numfmt::encode_options options, std::uint32_t draw) {
    return numfmt::encode<Format, R>(x, options, draw);
}

/// Compares convert(x) with the oracle's code for `exact`, the exact value of x.
template <class Input>
void compare_one(tally& t, const oracle& o, numfmt::rounding mode, const real& exact, conversion<Input> convert,
                 Input x) {
    std::uint32_t draws[4] = {0, 0, 0, 0};
    int draw_count = 1;
    if (mode == numfmt::rounding::stochastic) {
        const std::uint64_t threshold = o.stochastic_threshold(exact);
        draws[1] = static_cast<std::uint32_t>(threshold);  // the first draw that rounds toward zero
        draws[2] = threshold > 0 ? static_cast<std::uint32_t>(threshold - 1) : 1u;
        draws[3] = 0xFFFFFFFFu;
        draw_count = 4;
    }
    for (int d = 0; d < draw_count; ++d) {
        const std::uint32_t draw = draws[d];
        const std::uint32_t rounded = exact.nan || exact.infinite ? 0u : o.round(exact, mode, draw);
        for (const numfmt::encode_options& options : all_options()) {
            t.expect_equal(convert(x, options, draw), o.finish(exact, rounded, options), [&](std::ostream& os) {
                os << o.format().name << ' ' << mode << ' ' << options.overflow << ' ' << options.nan << " draw "
                   << draw << " of " << (exact.nan ? "NaN" : "") << (exact.negative ? "-" : "") << std::hexfloat
                   << exact.magnitude << std::defaultfloat << " or integer " << exact.natural;
            });
        }
    }
}

template <class Format, class Source> void compare_all_roundings(tally& t, const std::vector<Source>& inputs) {
    for_each_rounding<Format>([&]<numfmt::rounding R>() {
        const conversion<Source> convert = &encode_code<Format, R, Source>;
        for (const Source& x : inputs) compare_one(t, oracle_of<Format>(), R, real_of(x), convert, x);
    });
}

}  // namespace numfmt_test
