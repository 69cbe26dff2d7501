// SPDX-License-Identifier: MIT
// Every function of cuda/convert.cuh in a kernel of its own: compiles for each architecture with warnings as errors,
// and check_sass.py looks at the instructions.
#include <numfmt/cuda/convert.cuh>

namespace nc = numfmt::cuda;
using namespace numfmt;

#define NUMFMT_UNARY(name, ...)                                                                             \
    extern "C" __global__ void name(const unsigned* in, unsigned* out) {                                    \
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                           \
        const unsigned w = in[i];                                                                           \
        const auto r = __VA_ARGS__;                                                                         \
        for (int k = 0; k < int(sizeof(r) / 4); ++k) out[i * unsigned(sizeof(r) / 4) + unsigned(k)] = r[k]; \
    }
NUMFMT_UNARY(int4_f16_pairs, nc::decode8<numfmt::uint4, fp16>(w))
NUMFMT_UNARY(int4_f16_strided, nc::decode8<numfmt::uint4, fp16, nc::lanes::strided>(w))
NUMFMT_UNARY(int4_bf16_pairs, nc::decode8<numfmt::uint4, bf16>(w))
NUMFMT_UNARY(int4_bf16_strided, nc::decode8<numfmt::uint4, bf16, nc::lanes::strided>(w))
NUMFMT_UNARY(e2m1_f16_pairs, nc::decode8<fp4_e2m1, fp16>(w))
NUMFMT_UNARY(e2m1_f16_strided, nc::decode8<fp4_e2m1, fp16, nc::lanes::strided>(w))
NUMFMT_UNARY(e2m1_bf16_pairs, nc::decode8<fp4_e2m1, bf16>(w))
NUMFMT_UNARY(e2m1_bf16_strided, nc::decode8<fp4_e2m1, bf16, nc::lanes::strided>(w))
NUMFMT_UNARY(e2m1_f16_scaled, nc::decode8<fp4_e2m1, fp16>(w, nc::broadcast(0x3800)))
NUMFMT_UNARY(int4_f16_deferred, nc::decode8_deferred<numfmt::uint4, fp16>(w))
NUMFMT_UNARY(e2m1_bf16_deferred, nc::decode8_deferred<fp4_e2m1, bf16>(w))
NUMFMT_UNARY(int4_zero_bf16, nc::int4_decode8<bf16>(w, nc::int4_zero<bf16>(in[0])))
NUMFMT_UNARY(e2m1_e4m3, nc::decode8_e4m3<fp4_e2m1>(w))
NUMFMT_UNARY(int4_e4m3, nc::decode8_e4m3<numfmt::uint4>(w))
NUMFMT_UNARY(e4m3_f16, nc::decode4<fp8_e4m3, fp16>(w))
NUMFMT_UNARY(e4m3_bf16, nc::decode4<fp8_e4m3, bf16>(w))
NUMFMT_UNARY(e5m2_f16, nc::decode4<fp8_e5m2, fp16>(w))
NUMFMT_UNARY(e4m3fnuz_f16, nc::decode4<fp8_e4m3fnuz, fp16>(w))
NUMFMT_UNARY(ue4m3_f16, nc::decode4<fp8_ue4m3, fp16>(w))
NUMFMT_UNARY(e2m3_bf16, nc::decode4<fp6_e2m3, bf16>(nc::unpack6(w)))
NUMFMT_UNARY(e3m2_f16, nc::decode4<fp6_e3m2, fp16>(w))
NUMFMT_UNARY(e4m3_scaled, nc::decode4<fp8_e4m3, fp16>(w, nc::broadcast(0x3800)))
NUMFMT_UNARY(e8m0_bf16, nc::words<1>{{nc::e8m0x2_to_bf16x2(w)}})
NUMFMT_UNARY(e8m0_float,
             nc::words<2>{{__float_as_uint(nc::e8m0_to_float(w)), __float_as_uint(nc::e8m0_inverse(w & 127u))}})

#define NUMFMT_ENCODE(name, count, ...)                                \
    extern "C" __global__ void name(const float* in, unsigned* out) {  \
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;      \
        float x[count];                                                \
        for (unsigned k = 0; k < count; ++k) x[k] = in[i * count + k]; \
        out[i] = __VA_ARGS__;                                          \
    }
NUMFMT_ENCODE(encode_e4m3, 4, nc::encode4<fp8_e4m3>(x))
NUMFMT_ENCODE(encode_e5m2, 4, nc::encode4<fp8_e5m2>(x))
NUMFMT_ENCODE(encode_e4m3fnuz, 4, nc::encode4<fp8_e4m3fnuz>(x))
NUMFMT_ENCODE(encode_e2m3, 4, nc::pack6(nc::encode4<fp6_e2m3>(x)))
NUMFMT_ENCODE(encode_e3m2, 4, nc::encode4<fp6_e3m2>(x))
NUMFMT_ENCODE(encode_e2m1, 8, nc::encode8_e2m1(x))
NUMFMT_ENCODE(encode_e4m3_bf16, 4, nc::encode4<fp8_e4m3, bf16>(nc::from_float<bf16, 2>(x)))
NUMFMT_ENCODE(encode_e2m1_f16, 8, nc::encode8_e2m1<fp16>(nc::from_float<fp16, 4>(x)))
