// SPDX-License-Identifier: MIT
// Hashes of every format and rounding over all 2^32 floats, 2^24 inputs a hash, kept in the section [hashes] of the
// files of tests/golden/formats. Other backends are held against the same files. usage: golden_hashes
// --check|--check-all|--write FOLDER [FORMAT...]
// --check: 7 of the 256 ranges, 2 for stochastic; without a FORMAT all of them
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
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

/// The file with its section [hashes] replaced or added; everything else stays.
void write_hashes(const std::string& path, const std::string& format, const std::string& hashes) {
    std::ifstream in(path);
    std::string kept, section;
    for (std::string line; std::getline(in, line);) {
        if (!line.empty() && line[0] == '[') section = line;
        if (section != "[hashes]") kept += line + '\n';
    }
    while (kept.ends_with("\n\n")) kept.pop_back();
    std::ofstream out(path);
    out << kept << "\n[hashes]\n# encode<" << format
        << "> of all 2^32 floats with default options, one hash per 2^24 inputs in the order of their bits.\n"
           "# Definition: tests/support/input_hash.hpp. Written by golden_hashes --write.\n"
        << hashes << std::flush;
    if (!out) throw std::runtime_error("cannot write " + path);
}

int run(const std::string& mode, const std::string& folder, const std::vector<std::string>& names) {
    std::vector<conversion> chosen = conversions();
    for (const std::string& name : names) {
        if (std::none_of(chosen.begin(), chosen.end(), [&](const conversion& c) { return c.format == name; }))
            throw std::runtime_error("no format '" + name + "' in numfmt::all_formats");
    }
    if (!names.empty())
        std::erase_if(chosen, [&](const conversion& c) {
            return std::find(names.begin(), names.end(), c.format) == names.end();
        });
    const auto path = [&](const conversion& c) { return folder + "/" + c.format + ".txt"; };
    for (const conversion& c : chosen) numfmt_test::golden_file{path(c)};  // minutes later would be late to find out
    int wrong = 0, checked = 0;
    std::map<std::string, std::string> files;
    for (const conversion& c : chosen) {
        const std::vector<int> which = chunks(mode != "--check", c.rounding_name);
        const std::vector<uint64_t> hashes = compute(c, which);
        if (mode == "--write") {
            std::string& text = files[c.format];
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
        const auto golden = test::read_golden_hashes(path(c));
        const auto section = golden.find(c.rounding_name);
        if (section == golden.end() || section->second.size() != test::hashes_per_conversion) {
            std::printf(
                "FAILED %s %s: no 256 hashes in %s; numfmt_golden_hashes --write tests/golden/formats %s writes them\n",
                c.format.c_str(), c.rounding_name.c_str(), path(c).c_str(), c.format.c_str());
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
    for (const auto& [format, text] : files) write_hashes(folder + "/" + format + ".txt", format, text);
    if (mode != "--write")
        std::printf("%d hashes of %.9g inputs compared (%.3g inputs), %d wrong\n", checked,
                    static_cast<double>(test::inputs_per_hash),
                    static_cast<double>(checked) * static_cast<double>(test::inputs_per_hash), wrong);
    return wrong == 0 && (mode == "--write" || checked > 0) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc >= 3 ? argv[1] : "";
    if (mode != "--check" && mode != "--check-all" && mode != "--write") {
        std::fputs("usage: golden_hashes --check|--check-all|--write FOLDER [FORMAT...]\n", stderr);
        return 2;
    }
    try {
        return run(mode, argv[2], std::vector<std::string>(argv + 3, argv + argc));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "golden_hashes: %s\n", e.what());
        return 2;
    }
}
