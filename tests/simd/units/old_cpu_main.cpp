// SPDX-License-Identifier: MIT
// Calls the half for old CPUs alone; the other half is linked in and must not have replaced any of its functions.
#include <cstdint>
#include <cstdio>

std::uint64_t work_of_old(const float* x, std::int64_t n);
std::uint64_t work_of_new(const float* x, std::int64_t n);

int main(int argc, char**) {
    float x[1024];
    for (int i = 0; i < 1024; ++i) x[i] = static_cast<float>((i * 7919) % 2003 - 1001) * 0.013f;
    // Never true here: keeps the other half in the program.
    if (argc > 1000) return static_cast<int>(work_of_new(x, 1024));
    std::printf("%016llx\n", static_cast<unsigned long long>(work_of_old(x, 1024)));
    return 0;
}
