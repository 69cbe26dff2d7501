// SPDX-License-Identifier: MIT
// numfmt's codes for other programs to compare with.
// usage: codes list                                      names of the formats, their bits and storage bytes
//        codes decode FORMAT                             the float of every code, on standard output
//        codes encode FORMAT ROUNDING OVERFLOW NAN       codes of the floats on standard input, in the format's storage
//        type
#include <numfmt/core/std.hpp>
#include <numfmt/numfmt.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace numfmt;

template <class T> void put(const std::vector<T>& v) { std::fwrite(v.data(), sizeof(T), v.size(), stdout); }

std::vector<float> read_floats() {
    std::vector<float> x;
    float buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, sizeof(float), 4096, stdin)) > 0;)
        x.insert(x.end(), buffer, buffer + n);
    return x;
}

template <class F, rounding R> bool encode_if(rounding wanted, const std::vector<float>& x, encode_options options) {
    if (wanted != R) return false;
    std::vector<typename F::storage> codes(x.size());
    encode<F, R>(x.data(), static_cast<int64_t>(x.size()), codes.data(), options);
    put(codes);
    return true;
}

template <class F> bool run(const std::vector<std::string>& words) {
    if (words[0] == "decode" && words.size() == 2) {
        std::vector<float> values(std::size_t{1} << F::spec.bits());
        for (std::size_t c = 0; c < values.size(); ++c) values[c] = decode<F>(static_cast<typename F::storage>(c));
        put(values);
        return true;
    }
    rounding r{};
    encode_options options;
    if (words[0] != "encode" || words.size() != 5 || !from_string(words[2], r) ||
        !from_string(words[3], options.overflow) || !from_string(words[4], options.nan))
        return false;
    const std::vector<float> x = read_floats();
    if constexpr (F::spec.has_zero) {
        return encode_if<F, rounding::nearest_even>(r, x, options) ||
               encode_if<F, rounding::nearest_away>(r, x, options) ||
               encode_if<F, rounding::nearest_to_zero>(r, x, options) ||
               encode_if<F, rounding::toward_zero>(r, x, options);
    } else {
        return encode_if<F, rounding::down>(r, x, options) || encode_if<F, rounding::up>(r, x, options) ||
               encode_if<F, rounding::nearest_up>(r, x, options);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    bool done = false;
    if (words.size() == 1 && words[0] == "list") {
        for_each(all_formats{},
                 []<class F>() { std::printf("%s %d %d\n", F::name, F::spec.bits(), static_cast<int>(sizeof(F))); });
        done = true;
    } else if (words.size() >= 2) {
        for_each(all_formats{}, [&]<class F>() { done = done || (words[1] == F::name && run<F>(words)); });
    }
    if (!done) std::fputs("usage: codes list | decode FORMAT | encode FORMAT ROUNDING OVERFLOW NAN\n", stderr);
    return done ? 0 : 2;
}
