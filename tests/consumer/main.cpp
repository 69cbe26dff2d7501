// SPDX-License-Identifier: MIT
// What a first user writes; prints a known value. Built in every way that the documentation offers.
#include <numfmt/bf16.hpp>

#ifdef CONSUMER_WITH_IO
#include <numfmt/io/safetensors.hpp>
#endif

#include <cstdio>

int main() {
    const numfmt::bf16 x(3.14159274f);  // pi as bf16: 3.140625
    std::printf("numfmt %d.%d.%d: %.9g\n", NUMFMT_VERSION_MAJOR, NUMFMT_VERSION_MINOR, NUMFMT_VERSION_PATCH,
                static_cast<double>(static_cast<float>(x)));
    return 0;
}
