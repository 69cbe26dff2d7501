// SPDX-License-Identifier: MIT
// What every CUDA entry point shares: the result of a launch, and the checks before it. Host code only.
//
// Entry points take the stream last, never allocate, never synchronise, and are deterministic. A result with ok() means
// the arguments were good and the launch was accepted; faults while it runs appear, as always in CUDA, at a later call.
#pragma once

#include <cuda_runtime_api.h>

#include "../core/status.hpp"

namespace numfmt::cuda {

/// Outcome of an entry point: `status` says what is wrong with the arguments (nothing was launched then), `error` is
/// what the launch itself returned. An error that was pending before the call stays pending.
struct [[nodiscard]] launch_result {
    numfmt::status status{};
    cudaError_t error = cudaSuccess;

    bool ok() const noexcept { return status.ok() && error == cudaSuccess; }
    explicit operator bool() const noexcept { return ok(); }
};

namespace detail {

/// Blocks in the x dimension of a grid.
inline constexpr int64_t max_grid = 0x7FFFFFFF;

/// Launches `kernel` with cudaLaunchKernelExC, which returns the launch's own error and leaves pending ones alone.
template <class... Parameters, class... Arguments>
launch_result launch(void (*kernel)(Parameters...), int64_t blocks, int threads, cudaStream_t stream,
                     Arguments... arguments) noexcept {
    if (blocks == 0) return {};
    if (blocks > max_grid) return {{status_code::size_overflow, "size", blocks, max_grid}, cudaSuccess};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.stream = stream;
    const auto run = [&](Parameters... parameters) {
        void* pointers[] = {static_cast<void*>(&parameters)...};
        return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers);
    };
    return {{}, run(arguments...)};
}

inline status check_pointer(const void* p, const char* name, int64_t alignment) noexcept {
    if (p == nullptr) return {status_code::null_pointer, name, 0, 0};
    const auto remainder =
        static_cast<int64_t>(reinterpret_cast<std::uintptr_t>(p) % static_cast<std::uintptr_t>(alignment));
    if (remainder != 0) return {status_code::misaligned, name, remainder, alignment};
    return {};
}
inline bool is_aligned(const void* p, int64_t alignment) noexcept {
    return reinterpret_cast<std::uintptr_t>(p) % static_cast<std::uintptr_t>(alignment) == 0;
}

}  // namespace detail
}  // namespace numfmt::cuda
