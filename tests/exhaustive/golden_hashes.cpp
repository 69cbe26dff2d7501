// SPDX-License-Identifier: MIT
// Hashes of every format and rounding over all 2^32 floats, 2^24 inputs a hash, kept in tests/golden/exhaustive. Other
// backends are held against the same files.
// usage: golden_hashes --check|--check-all|--write FOLDER     (--check: 7 of the 256 ranges, 2 for stochastic)
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/golden_hash_file.hpp"
#include "support/input_hash.hpp"

namespace {

using namespace numfmt;

struct conversion {
    std::string format, rounding_name;
    std::function<uint64_t(int)> hash;
};

std::vector<conversion> conversions() {
    std::vector<conversion> list;
    for_each(all_formats{}, [&]<class F>() {
        test::for_each_hashed_rounding<F>([&]<rounding R>(const char* name) {
            list.push_back({F::name, name, [](int chunk) { return test::hash_chunk<F, R>(chunk); }});
        });
    });
    return list;
}

// Zero and subnormals, the whole of fp8's and fp16's exponents at one sign or the other, large numbers, Inf and NaN.
std::vector<int> chunks(bool all, const std::string& rounding_name) {
    if (!all && rounding_name == "stochastic") return {0x3C, 0x80};  // ten times as slow
    if (!all) return {0x00, 0x33, 0x37, 0x3C, 0x43, 0x7F, 0xB8};
    std::vector<int> list(test::hashes_per_conversion);
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = static_cast<int>(i);
    return list;
}

std::vector<uint64_t> compute(const conversion& c, const std::vector<int>& which) {
    std::vector<uint64_t> hashes(which.size());
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
        threads.emplace_back([&] {
            for (std::size_t i = next++; i < which.size(); i = next++) hashes[i] = c.hash(which[i]);
        });
    for (std::thread& t : threads) t.join();
    return hashes;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc == 3 ? argv[1] : "";
    if (mode != "--check" && mode != "--check-all" && mode != "--write") {
        std::fputs("usage: golden_hashes --check|--check-all|--write FOLDER\n", stderr);
        return 2;
    }
    const std::string folder = argv[2];
    std::error_code error;
    if (mode == "--write") std::filesystem::create_directories(folder, error);
    if (!std::filesystem::is_directory(folder, error)) {
        std::fprintf(stderr, "golden_hashes: %s is not a folder\n", folder.c_str());
        return 2;
    }
    int wrong = 0, checked = 0;
    std::map<std::string, std::string> files;
    for (const conversion& c : conversions()) {
        const std::vector<int> which = chunks(mode != "--check", c.rounding_name);
        const std::vector<uint64_t> hashes = compute(c, which);
        if (mode == "--write") {
            std::string& text = files[c.format];
            if (text.empty())
                text =
                    "# encode<" + c.format +
                    "> of all 2^32 floats with default options, one hash per 2^24 inputs in the order of their bits.\n"
                    "# Definition: tests/support/input_hash.hpp. Written by golden_hashes --write.\n";
            text += c.rounding_name + "\n";
            for (std::size_t i = 0; i < hashes.size(); ++i) {
                char buffer[32];
                std::snprintf(buffer, sizeof buffer, "%016" PRIX64 "%c", hashes[i], i % 8 == 7 ? '\n' : ' ');
                text += buffer;
            }
            std::printf("%s %s\n", c.format.c_str(), c.rounding_name.c_str());
            std::fflush(stdout);
            continue;
        }
        const auto golden = test::read_golden_hashes(folder + "/" + c.format + ".txt");
        const auto section = golden.find(c.rounding_name);
        if (section == golden.end() || section->second.size() != test::hashes_per_conversion) {
            std::printf("FAILED %s %s: no 256 hashes in %s\n", c.format.c_str(), c.rounding_name.c_str(),
                        folder.c_str());
            ++wrong;
            continue;
        }
        for (std::size_t i = 0; i < which.size(); ++i, ++checked) {
            const uint64_t expected = section->second[static_cast<std::size_t>(which[i])];
            if (hashes[i] == expected) continue;
            ++wrong;
            std::printf("FAILED %s %s, inputs %02X000000..: hash %016" PRIX64 ", golden %016" PRIX64 "\n",
                        c.format.c_str(), c.rounding_name.c_str(), static_cast<unsigned>(which[i]), hashes[i],
                        expected);
        }
    }
    for (const auto& [format, text] : files) {
        std::ofstream out(folder + "/" + format + ".txt");
        if (!(out << text << std::flush)) {
            std::fprintf(stderr, "golden_hashes: cannot write %s/%s.txt\n", folder.c_str(), format.c_str());
            return 1;
        }
    }
    if (mode != "--write")
        std::printf("%d hashes of 2^24 inputs compared (%.3g inputs), %d wrong\n", checked,
                    static_cast<double>(checked) * static_cast<double>(test::inputs_per_hash), wrong);
    return wrong == 0 && (mode == "--write" || checked > 0) ? 0 : 1;
}
