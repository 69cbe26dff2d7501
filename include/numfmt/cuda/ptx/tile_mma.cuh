// SPDX-License-Identifier: MIT
// The tensor core's instructions one by one: D = C + A B^T of a 64 x 8 tile through a chosen mma.sync or wgmma, K
// products at a time, in the order of K. For looking at the hardware (tests, probes), not for speed.
//
// A is [64][k], B is [8][k], both with k contiguous, as codes of the instruction's formats (tf32: bits of floats); C
// and D are [64][8], bits of floats or, for fp16 outputs, of fp16 numbers in the lower half of a word. Source: PTX
// ISA 9.0, "Matrix multiply-accumulate operation using mma instruction" and "Asynchronous warpgroup level matrix
// instructions".
#pragma once

#include <cuda_runtime.h>

#include "../../accumulate/tensor_core.hpp"
#include "../../bf16.hpp"
#include "../../fp16.hpp"
#include "../../fp8.hpp"

namespace numfmt::cuda::ptx {

inline constexpr int tile_rows = 64, tile_cols = 8, tile_threads = 128;

/// Oldest compute capability (10 * major + minor) that has an instruction; wgmma exists on 9.0 alone.
struct instruction_needs {
    int oldest;
    bool only_hopper;
};

namespace detail {

template <class A, class B, int K, bool Fp16Output, bool Warpgroup, int Oldest> struct instruction_facts {
    using format_a = A;
    using format_b = B;
    using storage = typename A::storage;
    static_assert(sizeof(typename A::storage) == sizeof(typename B::storage));
    static constexpr int k = K;                                              // products of one instruction
    static constexpr int words = K * static_cast<int>(sizeof(storage)) / 4;  // 32-bit words of one row in it: 4 or 8
    static constexpr bool fp16_output = Fp16Output;
    static constexpr bool warpgroup = Warpgroup;
    static constexpr instruction_needs needs{Oldest, Warpgroup};
};

}  // namespace detail

// One struct per instruction: its facts, its PTX name, and the instruction itself on fragments. `d` holds C before and
// D after; f32 accumulators are passed as bits.
#define NUMFMT_MMA_F32(Name, A, B, K, Oldest, ptx)                                                                     \
    struct Name : detail::instruction_facts<A, B, K, false, false, Oldest> {                                           \
        static constexpr const char* name = ptx;                                                                       \
        static __device__ __forceinline__ void run(uint32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { \
            float x0 = __uint_as_float(d[0]), x1 = __uint_as_float(d[1]), x2 = __uint_as_float(d[2]),                  \
                  x3 = __uint_as_float(d[3]);                                                                          \
                                                                                                                       \
            asm volatile(ptx " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                        \
                         : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)                                                      \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                          \
            d[0] = __float_as_uint(x0);                                                                                \
            d[1] = __float_as_uint(x1);                                                                                \
            d[2] = __float_as_uint(x2);                                                                                \
            d[3] = __float_as_uint(x3);                                                                                \
        }                                                                                                              \
    };
#define NUMFMT_MMA_F32_HALF_K(Name, A, B, K, Oldest, ptx)                                                              \
    struct Name : detail::instruction_facts<A, B, K, false, false, Oldest> {                                           \
        static constexpr const char* name = ptx;                                                                       \
        static __device__ __forceinline__ void run(uint32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { \
            float x0 = __uint_as_float(d[0]), x1 = __uint_as_float(d[1]), x2 = __uint_as_float(d[2]),                  \
                  x3 = __uint_as_float(d[3]);                                                                          \
            asm volatile(ptx " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                                    \
                         : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)                                                      \
                         : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                                           \
            d[0] = __float_as_uint(x0);                                                                                \
            d[1] = __float_as_uint(x1);                                                                                \
            d[2] = __float_as_uint(x2);                                                                                \
            d[3] = __float_as_uint(x3);                                                                                \
        }                                                                                                              \
    };
#define NUMFMT_MMA_F16(Name, A, B, K, Oldest, ptx)                                                                     \
    struct Name : detail::instruction_facts<A, B, K, true, false, Oldest> {                                            \
        static constexpr const char* name = ptx;                                                                       \
        static __device__ __forceinline__ void run(uint32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { \
            asm volatile(ptx " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"                                        \
                         : "+r"(d[0]), "+r"(d[1])                                                                      \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                          \
        }                                                                                                              \
    };
// `tail` are the immediates: scale of A and B, then, for 16-bit types, whether they are transposed.
#define NUMFMT_WGMMA_F32(Name, A, B, K, ptx, tail)                                                               \
    struct Name : detail::instruction_facts<A, B, K, false, true, 90> {                                          \
        static constexpr const char* name = ptx;                                                                 \
        static __device__ __forceinline__ void run(uint32_t (&d)[4], uint64_t a, uint64_t b) {                   \
            float x0 = __uint_as_float(d[0]), x1 = __uint_as_float(d[1]), x2 = __uint_as_float(d[2]),            \
                  x3 = __uint_as_float(d[3]);                                                                    \
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                              \
            asm volatile(ptx " {%0, %1, %2, %3}, %4, %5, 1, " tail ";"                                           \
                         : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)                                                \
                         : "l"(a), "l"(b));                                                                      \
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                                       \
            asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)::"memory"); \
            d[0] = __float_as_uint(x0);                                                                          \
            d[1] = __float_as_uint(x1);                                                                          \
            d[2] = __float_as_uint(x2);                                                                          \
            d[3] = __float_as_uint(x3);                                                                          \
        }                                                                                                        \
    };
#define NUMFMT_WGMMA_F16(Name, A, B, K, ptx, tail)                                                         \
    struct Name : detail::instruction_facts<A, B, K, true, true, 90> {                                     \
        static constexpr const char* name = ptx;                                                           \
        static __device__ __forceinline__ void run(uint32_t (&d)[4], uint64_t a, uint64_t b) {             \
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                        \
            asm volatile(ptx " {%0, %1}, %2, %3, 1, " tail ";" : "+r"(d[0]), "+r"(d[1]) : "l"(a), "l"(b)); \
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                                 \
            asm volatile("wgmma.wait_group.sync.aligned 0;" : "+r"(d[0]), "+r"(d[1])::"memory");           \
        }                                                                                                  \
    };

// clang-format off
using accumulate::tf32;
NUMFMT_MMA_F32(mma_bf16_k16, bf16, bf16, 16, 80, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
NUMFMT_MMA_F32_HALF_K(mma_bf16_k8, bf16, bf16, 8, 80, "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32")
NUMFMT_MMA_F32(mma_fp16_k16, fp16, fp16, 16, 80, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
NUMFMT_MMA_F32_HALF_K(mma_fp16_k8, fp16, fp16, 8, 75, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")
NUMFMT_MMA_F16(mma_fp16_k16_f16, fp16, fp16, 16, 80, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
NUMFMT_MMA_F32(mma_tf32_k8, tf32, tf32, 8, 80, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
NUMFMT_MMA_F32_HALF_K(mma_tf32_k4, tf32, tf32, 4, 80, "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32")
NUMFMT_MMA_F32(mma_e4m3_k32, fp8_e4m3, fp8_e4m3, 32, 89, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
NUMFMT_MMA_F32(mma_e5m2_k32, fp8_e5m2, fp8_e5m2, 32, 89, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32")
NUMFMT_MMA_F32(mma_e4m3_e5m2_k32, fp8_e4m3, fp8_e5m2, 32, 89, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32")
NUMFMT_MMA_F16(mma_e4m3_k32_f16, fp8_e4m3, fp8_e4m3, 32, 89, "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16")
NUMFMT_MMA_F16(mma_e5m2_k32_f16, fp8_e5m2, fp8_e5m2, 32, 89, "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16")
NUMFMT_WGMMA_F32(wgmma_bf16, bf16, bf16, 16, "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", "1, 1, 0, 0")
NUMFMT_WGMMA_F32(wgmma_fp16, fp16, fp16, 16, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "1, 1, 0, 0")
NUMFMT_WGMMA_F16(wgmma_fp16_f16, fp16, fp16, 16, "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16", "1, 1, 0, 0")
NUMFMT_WGMMA_F32(wgmma_tf32, tf32, tf32, 8, "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", "1, 1")
NUMFMT_WGMMA_F32(wgmma_e4m3, fp8_e4m3, fp8_e4m3, 32, "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", "1, 1")
NUMFMT_WGMMA_F32(wgmma_e5m2, fp8_e5m2, fp8_e5m2, 32, "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2", "1, 1")
NUMFMT_WGMMA_F32(wgmma_e4m3_e5m2, fp8_e4m3, fp8_e5m2, 32, "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2", "1, 1")
NUMFMT_WGMMA_F16(wgmma_e4m3_f16, fp8_e4m3, fp8_e4m3, 32, "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3", "1, 1")
NUMFMT_WGMMA_F16(wgmma_e5m2_f16, fp8_e5m2, fp8_e5m2, 32, "wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e5m2", "1, 1")
// clang-format on

#undef NUMFMT_MMA_F32
#undef NUMFMT_MMA_F32_HALF_K
#undef NUMFMT_MMA_F16
#undef NUMFMT_WGMMA_F32
#undef NUMFMT_WGMMA_F16

/// True where this compilation for the device has the instruction.
template <class I> __device__ constexpr bool compiled_in() {
#if !defined(__CUDA_ARCH__)
    return false;
#else
    if constexpr (I::warpgroup) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        return true;
#else
        return false;
#endif
    } else {
        return __CUDA_ARCH__ >= 10 * I::needs.oldest;
    }
#endif
}

/// Shared memory that run_tile needs for wgmma: A and B of one instruction.
inline constexpr int tile_shared_bytes = tile_rows * 32 + tile_cols * 32;

namespace detail {

/// Descriptor of a K-major operand without swizzle: core matrices of 8 rows x 16 bytes, 128 bytes apart along k and 256
/// bytes apart along the rows.
__device__ __forceinline__ uint64_t descriptor(const void* shared) {
    const auto address = static_cast<uint64_t>(__cvta_generic_to_shared(shared));
    return (address & 0x3FFFFu) >> 4 | uint64_t{128 >> 4} << 16 | uint64_t{256 >> 4} << 32;
}

}  // namespace detail

/// One tile by a block of 128 threads: `a` and `b` are the tile's rows in global memory, `k` words of 32 bits apart
/// times sizeof(storage) / 4, a multiple of the instruction's k; `c` and `d` are [64][8]. `shared`: tile_shared_bytes,
/// aligned to 128 bytes.
template <class I>
__device__ void run_tile(const typename I::storage* a, const typename I::storage* b, const uint32_t* c, uint32_t* out,
                         int64_t k, unsigned char* shared) {
    if constexpr (compiled_in<I>()) {
        const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
        const int row = warp * 16 + lane / 4, col = lane % 4 * 2;
        uint32_t d[4];
        if constexpr (I::fp16_output) {
            for (int h = 0; h < 2; ++h)
                d[h] = (c[(row + 8 * h) * tile_cols + col] & 0xFFFFu) | c[(row + 8 * h) * tile_cols + col + 1] << 16;
        } else {
            for (int i = 0; i < 4; ++i) d[i] = c[(row + i / 2 * 8) * tile_cols + col + i % 2];
        }
        const int64_t stride = k * static_cast<int64_t>(sizeof(typename I::storage)) / 4;  // words
        const auto* a_words = reinterpret_cast<const uint32_t*>(a);
        const auto* b_words = reinterpret_cast<const uint32_t*>(b);
        for (int64_t step = 0; step < stride; step += I::words) {
            if constexpr (I::warpgroup) {
                // 128 threads copy 16 bytes of A each: row t / 2, half t % 2; 16 of them the same of B.
                const int r = thread / 2, half = thread % 2;
                const int at = r / 8 * 256 + half * 128 + r % 8 * 16;
                *reinterpret_cast<uint4*>(shared + at) =
                    *reinterpret_cast<const uint4*>(a_words + r * stride + step + half * 4);
                if (thread < 16)
                    *reinterpret_cast<uint4*>(shared + tile_rows * 32 + at) =
                        *reinterpret_cast<const uint4*>(b_words + r * stride + step + half * 4);
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncthreads();
                I::run(d, detail::descriptor(shared), detail::descriptor(shared + tile_rows * 32));
                __syncthreads();
            } else {
                const int t = lane % 4;
                uint32_t x[4] = {}, y[2] = {};
                for (int i = 0; i < I::words / 2; ++i)
                    x[i] = a_words[(row + i % 2 * 8) * stride + step + t + i / 2 * 4];
                for (int i = 0; i < I::words / 4; ++i) y[i] = b_words[lane / 4 * stride + step + t + i * 4];
                I::run(d, x, y);
            }
        }
        if constexpr (I::fp16_output) {
            for (int h = 0; h < 2; ++h) {
                out[(row + 8 * h) * tile_cols + col] = d[h] & 0xFFFFu;
                out[(row + 8 * h) * tile_cols + col + 1] = d[h] >> 16;
            }
        } else {
            for (int i = 0; i < 4; ++i) out[(row + i / 2 * 8) * tile_cols + col + i % 2] = d[i];
        }
    }
}

/// Tile blockIdx.x of many: a is [tiles][64][k], b is [tiles][8][k], c and d are [tiles][64][8].
template <class I>
__global__ void __launch_bounds__(tile_threads)
    tile_kernel(const typename I::storage* a, const typename I::storage* b, const uint32_t* c, uint32_t* d, int64_t k) {
    __shared__ alignas(128) unsigned char shared[tile_shared_bytes];
    const int64_t tile = blockIdx.x;
    run_tile<I>(a + tile * tile_rows * k, b + tile * tile_cols * k, c + tile * tile_rows * tile_cols,
                d + tile * tile_rows * tile_cols, k, shared);
}

}  // namespace numfmt::cuda::ptx
