// SPDX-License-Identifier: MIT
// Calls the half for old CPUs alone, and compares its results with the oracle's; the other half is linked in and must
// not have replaced any of its functions.
#include "old_cpu.hpp"

#include <cstdio>

static bool check(const char* what, std::uint64_t got, std::uint64_t expected) {
    std::printf("%s: %s: sum %016llx, expected %016llx\n", got == expected ? "ok" : "FAILED", what,
                static_cast<unsigned long long>(got), static_cast<unsigned long long>(expected));
    return got == expected;
}

int main(int argc, char**) {
    float x[1024];
    for (int i = 0; i < 1024; ++i) x[i] = static_cast<float>((i * 7919) % 2003 - 1001) * 0.013f;
    // Never true here: keeps the other half in the program.
    if (argc > 1000) return static_cast<int>(work_of_new(x, 1024).reference);
    const std::uint64_t expected = expected_work(x, 1024);
    const unit_results old = work_of_old(x, 1024);
    const bool reference = check("the reference", old.reference, expected);
    const bool kernels = check("the kernels", old.kernels, expected);
    return reference && kernels ? 0 : 1;
}
