// SPDX-License-Identifier: MIT
// numfmt::simd::encode over all 2^32 floats against the hashes of tests/golden/formats, for every target of the CPU.
// usage: simd_hashes --few|--defaults|--all FOLDER
// --defaults: every format under its default rounding, with the best target; --few: as that, one range in 16;
// --all: every rounding and target
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <numfmt/simd.hpp>

#include "support/golden_hash_file.hpp"
#include "support/input_hash.hpp"

namespace {

using namespace numfmt;

template <class Format, rounding R> uint64_t simd_hash(int range) {
    constexpr uint32_t piece = 1u << 13;
    std::vector<float> x(piece);
    std::vector<typename Format::storage> codes(piece);
    uint64_t sum = 0;
    const uint32_t first = static_cast<uint32_t>(range) << 24;
    for (uint32_t done = 0; done < test::inputs_per_hash; done += piece) {
        for (uint32_t i = 0; i < piece; ++i) x[i] = bit_cast<float>(first + done + i);
        (void)simd::encode<Format, R>(x.data(), piece, codes.data(), {}, {test::hash_seed, first + done});
        for (uint32_t i = 0; i < piece; ++i) sum += test::hash_term(first + done + i, codes[i]);
    }
    return sum;
}

struct tally {
    int compared = 0, wrong = 0;
};

template <class Format, rounding R>
void check(const char* name, const std::vector<uint64_t>& golden, int step, tally& t) {
    std::vector<uint64_t> hashes(golden.size());
    std::atomic<int> next{0};
    std::vector<std::jthread> threads;
    for (unsigned k = 0; k < std::max(1u, std::thread::hardware_concurrency()); ++k) {
        threads.emplace_back([&] {
            for (int i = next++; i * step < static_cast<int>(golden.size()); i = next++)
                hashes[static_cast<std::size_t>(i * step)] = simd_hash<Format, R>(i * step);
        });
    }
    threads.clear();
    for (std::size_t i = 0; i < golden.size(); i += static_cast<std::size_t>(step)) {
        ++t.compared;
        if (hashes[i] == golden[i]) continue;
        ++t.wrong;
        std::printf("FAILED %s %s on %s, inputs %02zX000000..: hash %016" PRIX64 ", golden %016" PRIX64 "\n",
                    Format::name, name, simd::target_name(), i, hashes[i], golden[i]);
    }
}

void check_all(const std::string& folder, bool every_rounding, int step, tally& t) {
    for_each(all_formats{}, [&]<class Format>() {
        const auto golden = test::read_golden_hashes(folder + "/" + Format::name + ".txt");
        test::for_each_hashed_rounding<Format>([&]<rounding R>(const char* name) {
            if (!every_rounding && R != default_rounding_v<Format>) return;
            const auto hashes = golden.find(name);
            if (hashes == golden.end() || hashes->second.size() != test::hashes_per_conversion) {
                std::printf("FAILED %s %s: no hashes\n", Format::name, name);
                ++t.wrong;
                return;
            }
            check<Format, R>(name, hashes->second, step, t);
        });
    });
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc == 3 ? argv[1] : "";
    if (mode != "--defaults" && mode != "--all" && mode != "--few") {
        std::fputs("usage: simd_hashes --few|--defaults|--all FOLDER\n", stderr);
        return 2;
    }
    try {
        tally t;
        if (mode != "--all") {
            std::printf("%s\n", simd::target_name());
            check_all(argv[2], false, mode == "--few" ? 16 : 1, t);
        } else {
            for (int64_t rest = simd::detail::usable_targets(); rest != 0; rest &= rest - 1) {
                simd::detail::use_targets(rest & -rest);
                std::printf("%s\n", simd::target_name());
                std::fflush(stdout);
                check_all(argv[2], true, 1, t);
            }
        }
        std::printf("%d hashes of %.9g inputs compared, %d wrong\n", t.compared,
                    static_cast<double>(test::inputs_per_hash), t.wrong);
        return t.wrong == 0 && t.compared > 0 ? 0 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "simd_hashes: %s\n", e.what());
        return 2;
    }
}
