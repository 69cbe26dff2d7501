// SPDX-License-Identifier: MIT
// The register-level conversions against the reference codec: every code in every lane, every 16-bit input, floats at
// all exponents, and the CUDA headers' own conversions. (All 2^32 floats go through the bulk kernels: codec_hashes.cu.)
#include "support.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <numfmt/cuda/convert.cuh>

using namespace numfmt;
using namespace numfmt_test;
namespace nc = numfmt::cuda;

namespace {

/// out[i] = f(in[i]), In and Out words each.
template <class F> __global__ void apply(const uint32_t* in, uint32_t* out, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) F::run(in + i * F::in, out + i * F::out);
}
template <class F> std::vector<uint32_t> on_device(const std::vector<uint32_t>& in) {
    const device_array<uint32_t> x(in);
    const int n = static_cast<int>(in.size()) / F::in;
    device_array<uint32_t> y(static_cast<size_t>(n) * F::out);
    apply<F><<<(n + 127) / 128, 128>>>(x.data(), y.data(), n);
    check_cuda(cudaGetLastError());
    CHECK(y.intact());
    return y.host();
}

template <class Format, class To, nc::lanes L> struct decode8_fn {
    static constexpr int in = 1, out = 4;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        const auto r = nc::decode8<Format, To, L>(x[0]);
        for (int i = 0; i < 4; ++i) y[i] = r[i];
    }
};
template <class To, nc::lanes L> struct int4_zero_fn {  // word 1: the zero point
    static constexpr int in = 2, out = 4;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        const auto r = nc::int4_decode8<To, L>(x[0], nc::int4_zero<To>(x[1]));
        for (int i = 0; i < 4; ++i) y[i] = r[i];
    }
};
template <class Format, class To> struct deferred_fn {
    static constexpr int in = 1, out = 4;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        const auto r = nc::decode8_deferred<Format, To>(x[0]);
        for (int i = 0; i < 4; ++i) y[i] = r[i];
    }
};
template <class Format> struct to_e4m3_fn {
    static constexpr int in = 1, out = 2;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        const auto r = nc::decode8_e4m3<Format>(x[0]);
        y[0] = r[0], y[1] = r[1];
    }
};
template <class Format, class To> struct decode4_fn {
    static constexpr int in = 1, out = 2;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        const auto r = nc::decode4<Format, To>(x[0]);
        y[0] = r[0], y[1] = r[1];
    }
};
template <class Format> struct decode4_float_fn {
    static constexpr int in = 1, out = 4;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        float f[4];
        nc::decode4<Format>(x[0], f);
        for (int i = 0; i < 4; ++i) y[i] = __float_as_uint(f[i]);
    }
};
struct int8_fn {
    static constexpr int in = 1, out = 4;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        float f[4];
        nc::int8_decode4(x[0], f);
        for (int i = 0; i < 4; ++i) y[i] = __float_as_uint(f[i]);
    }
};
template <class Format> struct encode4_float_fn {
    static constexpr int in = 4, out = 1;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        const float f[4] = {__uint_as_float(x[0]), __uint_as_float(x[1]), __uint_as_float(x[2]), __uint_as_float(x[3])};
        y[0] = nc::encode4<Format>(f);
    }
};
template <class Format, class From> struct encode4_pairs_fn {
    static constexpr int in = 2, out = 1;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        y[0] = nc::encode4<Format, From>(nc::words<2>{{x[0], x[1]}});
    }
};
struct encode8_float_fn {
    static constexpr int in = 8, out = 1;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        float f[8];
        for (int i = 0; i < 8; ++i) f[i] = __uint_as_float(x[i]);
        y[0] = nc::encode8_e2m1(f);
    }
};
template <class From> struct encode8_pairs_fn {
    static constexpr int in = 4, out = 1;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        y[0] = nc::encode8_e2m1<From>(nc::words<4>{{x[0], x[1], x[2], x[3]}});
    }
};
struct pack6_fn {
    static constexpr int in = 1, out = 2;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        y[0] = nc::pack6(x[0]);
        y[1] = nc::unpack6(x[0]);
    }
};
struct e8m0_fn {
    static constexpr int in = 1, out = 3;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        y[0] = __float_as_uint(nc::e8m0_to_float(x[0] & 0xFFu));
        y[1] = __float_as_uint(nc::e8m0_inverse(x[0] & 0xFFu));
        y[2] = nc::e8m0x2_to_bf16x2(x[0] & 0xFFFFu);
    }
};

// Words with every 16-bit pattern in both halves, in an order without regularity, and the plain order.
std::vector<uint32_t> all_halves() {
    std::vector<uint32_t> v;
    for (uint32_t i = 0; i < 65536; i += 2) v.push_back((i + 1) << 16 | i);
    for (uint32_t i = 0; i < 65536; ++i) v.push_back((i * 0x9E37u & 0xFFFFu) << 16 | i);
    return v;
}
std::vector<uint32_t> hard_floats() {
    std::vector<uint32_t> v;
    for (uint32_t high = 0; high < 65536; ++high)
        for (const uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) v.push_back(high << 16 | low);
    random_words_stream r(3);
    for (int i = 0; i < 1 << 18; ++i) v.push_back(r());
    while (v.size() % 8 != 0) v.push_back(0);
    return v;
}

template <class To> To half_at(const std::vector<uint32_t>& words, size_t i) {
    return To::from_bits(static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16)));
}
template <class Format> float value_of(uint32_t code) {
    if constexpr (numfmt::detail::is_same_v<Format, numfmt::uint4>)
        return static_cast<float>(code & 15u);
    else
        return decode<Format>(static_cast<typename Format::storage>(code));
}
// Place of element i of a word among the eight halves of the result.
size_t place(nc::lanes l, size_t i) { return l == nc::lanes::pairs ? i : i % 4 * 2 + i / 4; }

template <class Format, class To, nc::lanes L> void check_decode8() {
    const std::vector<uint32_t> in = all_halves();
    const std::vector<uint32_t> out = on_device<decode8_fn<Format, To, L>>(in);
    differences d;
    for (size_t w = 0; w < in.size(); ++w)
        for (size_t i = 0; i < 8; ++i) {
            const To want(value_of<Format>(in[w] >> (4 * i) & 15u));
            const To got = half_at<To>(out, 8 * w + place(L, i));
            d.expect(got.bits() == want.bits(),
                     [&] { return hex(in[w]) + " lane " + hex(i) + ": " + hex(got.bits()); });
        }
    NUMFMT_CHECK_NONE(d);
}
template <class To, nc::lanes L> void check_int4_zero() {
    std::vector<uint32_t> in;
    for (uint32_t z = 0; z < 16; ++z)
        for (uint32_t w : {0x76543210u, 0xFEDCBA98u, 0x0F1E2D3Cu, 0x89ABCDEFu, 0x00000000u, 0xFFFFFFFFu}) {
            in.push_back(w);
            in.push_back(z);
        }
    const std::vector<uint32_t> out = on_device<int4_zero_fn<To, L>>(in);
    differences d;
    for (size_t w = 0; w < in.size() / 2; ++w)
        for (size_t i = 0; i < 8; ++i) {
            const int q = static_cast<int>(in[2 * w] >> (4 * i) & 15u) - static_cast<int>(in[2 * w + 1]);
            const To got = half_at<To>(out, 8 * w + place(L, i));
            d.expect(static_cast<float>(got) == static_cast<float>(q),
                     [&] { return hex(in[2 * w]) + " z " + hex(in[2 * w + 1]); });
        }
    NUMFMT_CHECK_NONE(d);
}
template <class Format, class To> void check_deferred() {
    const std::vector<uint32_t> in = all_halves();
    const std::vector<uint32_t> out = on_device<deferred_fn<Format, To>>(in);
    differences d;
    for (size_t w = 0; w < in.size(); ++w)
        for (size_t i = 0; i < 8; ++i) {
            const double want = value_of<Format>(in[w] >> (4 * i) & 15u);
            const double got = static_cast<float>(half_at<To>(out, 8 * w + place(nc::lanes::strided, i)));
            d.expect(std::ldexp(got, nc::deferred_exponent<Format, To>) == want, [&] { return hex(in[w]); });
        }
    NUMFMT_CHECK_NONE(d);
}
template <class Format> void check_decode4() {
    const std::vector<uint32_t> in = all_halves();
    differences d;
    const auto compare16 = [&]<class To>(To) {
        const std::vector<uint32_t> out = on_device<decode4_fn<Format, To>>(in);
        for (size_t i = 0; i < 4 * in.size(); ++i) {
            const uint8_t code = static_cast<uint8_t>(in[i / 4] >> (i % 4 * 8));
            const To want(decode<Format>(code)), got = half_at<To>(out, i);
            d.expect(same_number(got, want),
                     [&] { return std::string(To::name) + " " + hex(code) + ": " + hex(got.bits()); });
        }
    };
    compare16(fp16{});
    compare16(bf16{});
    const std::vector<uint32_t> out = on_device<decode4_float_fn<Format>>(in);
    for (size_t i = 0; i < 4 * in.size(); ++i) {
        const uint8_t code = static_cast<uint8_t>(in[i / 4] >> (i % 4 * 8));
        d.expect(same_number(bit_cast<float>(out[i]), decode<Format>(code)), [&] { return "float " + hex(code); });
    }
    NUMFMT_CHECK_NONE(d);
}
template <class Format> void check_encode4() {
    const std::vector<uint32_t> floats = hard_floats();
    const std::vector<uint32_t> out = on_device<encode4_float_fn<Format>>(floats);
    differences d;
    for (size_t i = 0; i < floats.size(); ++i) {
        const uint32_t want = encode<Format>(bit_cast<float>(floats[i])), got = out[i / 4] >> (i % 4 * 8) & 0xFFu;
        d.expect(got == want, [&] { return hex(floats[i]) + ": " + hex(got) + " not " + hex(want); });
    }
    const auto from16 = [&]<class From>(From) {
        const std::vector<uint32_t> in = all_halves();
        const std::vector<uint32_t> codes = on_device<encode4_pairs_fn<Format, From>>(in);
        for (size_t i = 0; i < 2 * in.size(); ++i) {
            const uint32_t want = encode<Format>(half_at<From>(in, i)), got = codes[i / 4] >> (i % 4 * 8) & 0xFFu;
            d.expect(got == want, [&] {
                return std::string(From::name) + " " + hex(half_at<From>(in, i).bits()) + ": " + hex(got);
            });
        }
    };
    from16(fp16{});
    from16(bf16{});
    NUMFMT_CHECK_NONE(d);
}

}  // namespace

TEST_CASE("convert: eight int4 or e2m1 codes to bf16 and fp16, all codes in all lanes") {
    check_decode8<numfmt::uint4, fp16, nc::lanes::pairs>();
    check_decode8<numfmt::uint4, fp16, nc::lanes::strided>();
    check_decode8<numfmt::uint4, bf16, nc::lanes::pairs>();
    check_decode8<numfmt::uint4, bf16, nc::lanes::strided>();
    check_decode8<fp4_e2m1, fp16, nc::lanes::pairs>();
    check_decode8<fp4_e2m1, fp16, nc::lanes::strided>();
    check_decode8<fp4_e2m1, bf16, nc::lanes::pairs>();
    check_decode8<fp4_e2m1, bf16, nc::lanes::strided>();
}
TEST_CASE("convert: int4 minus every zero point") {
    check_int4_zero<fp16, nc::lanes::pairs>();
    check_int4_zero<fp16, nc::lanes::strided>();
    check_int4_zero<bf16, nc::lanes::pairs>();
    check_int4_zero<bf16, nc::lanes::strided>();
}
TEST_CASE("convert: deferred decodes times their documented factor") {
    check_deferred<numfmt::uint4, fp16>();
    check_deferred<numfmt::uint4, bf16>();
    check_deferred<fp4_e2m1, fp16>();
    check_deferred<fp4_e2m1, bf16>();
}
TEST_CASE("convert: 4-bit codes to e4m3 codes") {
    const std::vector<uint32_t> in = all_halves();
    differences d;
    const std::vector<uint32_t> e2m1 = on_device<to_e4m3_fn<fp4_e2m1>>(in),
                                int4 = on_device<to_e4m3_fn<numfmt::uint4>>(in);
    for (size_t i = 0; i < 8 * in.size(); ++i) {
        const uint8_t code = static_cast<uint8_t>(in[i / 8] >> (i % 8 * 4) & 15u);
        const uint8_t a = static_cast<uint8_t>(e2m1[i / 4] >> (i % 4 * 8)),
                      b = static_cast<uint8_t>(int4[i / 4] >> (i % 4 * 8));
        d.expect(a == encode<fp8_e4m3>(decode<fp4_e2m1>(code)), [&] { return "e2m1 " + hex(code); });
        d.expect(decode<fp8_e4m3>(b) * 512 == static_cast<float>(code), [&] { return "int4 " + hex(code); });
    }
    NUMFMT_CHECK_NONE(d);
}
TEST_CASE("convert: one-byte codes to fp16, bf16 and float, all codes in all lanes") {
    check_decode4<fp8_e4m3>();
    check_decode4<fp8_e5m2>();
    check_decode4<fp8_ue4m3>();
    check_decode4<fp8_e4m3fnuz>();
    check_decode4<fp8_e5m2fnuz>();
    check_decode4<fp6_e2m3>();
    check_decode4<fp6_e3m2>();
    const std::vector<uint32_t> in = all_halves(), out = on_device<int8_fn>(in);
    differences d;
    for (size_t i = 0; i < 4 * in.size(); ++i) {
        const int8_t code = static_cast<int8_t>(in[i / 4] >> (i % 4 * 8));
        d.expect(bit_cast<float>(out[i]) == static_cast<float>(code), [&] { return hex(static_cast<uint8_t>(code)); });
    }
    NUMFMT_CHECK_NONE(d);
}
TEST_CASE("convert: encodes to one-byte codes, all 16-bit inputs and floats of every exponent") {
    check_encode4<fp8_e4m3>();
    check_encode4<fp8_e5m2>();
    check_encode4<fp8_ue4m3>();
    check_encode4<fp8_e4m3fnuz>();
    check_encode4<fp8_e5m2fnuz>();
    check_encode4<fp6_e2m3>();
    check_encode4<fp6_e3m2>();
}
TEST_CASE("convert: encodes to e2m1, all 16-bit inputs and floats of every exponent") {
    const std::vector<uint32_t> floats = hard_floats(), out = on_device<encode8_float_fn>(floats);
    differences d;
    for (size_t i = 0; i < floats.size(); ++i) {
        const uint32_t want = encode<fp4_e2m1>(bit_cast<float>(floats[i])), got = out[i / 8] >> (i % 8 * 4) & 15u;
        d.expect(got == want, [&] { return hex(floats[i]) + ": " + hex(got) + " not " + hex(want); });
    }
    const auto from16 = [&]<class From>(From) {
        const std::vector<uint32_t> in = all_halves(), codes = on_device<encode8_pairs_fn<From>>(in);
        for (size_t i = 0; i < 2 * in.size(); ++i) {
            const uint32_t want = encode<fp4_e2m1>(half_at<From>(in, i)), got = codes[i / 8] >> (i % 8 * 4) & 15u;
            d.expect(got == want, [&] {
                return std::string(From::name) + " " + hex(half_at<From>(in, i).bits()) + ": " + hex(got);
            });
        }
    };
    from16(fp16{});
    from16(bf16{});
    NUMFMT_CHECK_NONE(d);
}
TEST_CASE("convert: packing of four 6-bit codes, and e8m0") {
    std::vector<uint32_t> in;
    random_words_stream r(5);
    for (int i = 0; i < 4096; ++i) in.push_back(r());
    const std::vector<uint32_t> out = on_device<pack6_fn>(in);
    differences d;
    for (size_t i = 0; i < in.size(); ++i) {
        uint8_t codes[4], bytes[3] = {}, word[4];
        std::memcpy(codes, &in[i], 4);
        pack<6>(codes, 4, bytes, 0);
        d.expect(out[2 * i] == (bytes[0] | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16),
                 [&] { return "pack " + hex(in[i]); });
        unpack<6>(codes, 0, 4, word);
        uint32_t want;
        std::memcpy(&want, word, 4);
        d.expect(out[2 * i + 1] == want, [&] { return "unpack " + hex(in[i]); });
    }
    std::vector<uint32_t> codes;
    for (uint32_t c = 0; c < 256; ++c) codes.push_back((255 - c) << 8 | c);
    const std::vector<uint32_t> e = on_device<e8m0_fn>(codes);
    for (uint32_t c = 0; c < 256; ++c) {
        const float want = decode<e8m0>(static_cast<uint8_t>(c));
        d.expect(same_number(bit_cast<float>(e[3 * c]), want), [&] { return "e8m0 " + hex(c); });
        if (c != 255)
            d.expect(static_cast<double>(bit_cast<float>(e[3 * c + 1])) * want == 1.0,
                     [&] { return "inverse " + hex(c); });
        const bf16 low = bf16::from_bits(static_cast<uint16_t>(e[3 * c + 2])),
                   high = bf16::from_bits(static_cast<uint16_t>(e[3 * c + 2] >> 16));
        d.expect(same_number(low, bf16(want)), [&] { return "bf16 low " + hex(c); });
        d.expect(same_number(high, bf16(decode<e8m0>(static_cast<uint8_t>(255 - c)))),
                 [&] { return "bf16 high " + hex(c); });
    }
    NUMFMT_CHECK_NONE(d);
}

// ---- the CUDA headers' types: reinterpret costs nothing and means the same codes ------------------------------------
namespace {
struct header_fn {
    static constexpr int in = 4, out = 8;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        const float4 f =
            make_float4(__uint_as_float(x[0]), __uint_as_float(x[1]), __uint_as_float(x[2]), __uint_as_float(x[3]));
        const float a[4] = {f.x, f.y, f.z, f.w};
        y[0] = nc::reinterpret<uint32_t>(__nv_fp8x4_e4m3(f));
        y[1] = nc::encode4<fp8_e4m3>(a);
        y[2] = nc::reinterpret<uint32_t>(__nv_fp8x4_e5m2(f));
        y[3] = nc::encode4<fp8_e5m2>(a);
        y[4] = nc::reinterpret<uint32_t>(__nv_fp6x4_e2m3(f));
        y[5] = nc::encode4<fp6_e2m3>(a);
        const float b[8] = {f.x, f.y, f.z, f.w, 0, 0, 0, 0};
        y[6] = nc::reinterpret<uint16_t>(__nv_fp4x4_e2m1(f));
        y[7] = nc::encode8_e2m1(b);
    }
};
struct header_decode_fn {
    static constexpr int in = 1, out = 4;
    static __device__ void run(const uint32_t* x, uint32_t* y) {
        const auto h = nc::decode4<fp8_e4m3, fp16>(x[0]);
        const float2 mine = __half22float2(nc::reinterpret<__half2>(h[0]));
        const float4 theirs = static_cast<float4>(nc::reinterpret<__nv_fp8x4_e4m3>(x[0]));
        y[0] = __float_as_uint(mine.x), y[1] = __float_as_uint(theirs.x);
        const auto b = nc::decode4<fp8_e4m3, bf16>(x[0]);
        const float2 high = __bfloat1622float2(nc::reinterpret<__nv_bfloat162>(b[1]));
        y[2] = __float_as_uint(high.y), y[3] = __float_as_uint(theirs.w);
    }
};
}  // namespace
TEST_CASE("convert: the CUDA headers' vector types hold the same codes") {
    const std::vector<uint32_t> floats = hard_floats(), out = on_device<header_fn>(floats);
    differences d;
    for (size_t i = 0; i < floats.size() / 4; ++i)
        for (size_t k = 0; k < 8; k += 2)
            d.expect(out[8 * i + k] == out[8 * i + k + 1],
                     [&] { return hex(k) + ": " + hex(out[8 * i + k]) + " " + hex(out[8 * i + k + 1]); });
    const std::vector<uint32_t> in = all_halves(), y = on_device<header_decode_fn>(in);
    for (size_t i = 0; i < y.size(); i += 2)
        d.expect(same_number(bit_cast<float>(y[i]), bit_cast<float>(y[i + 1])), [&] { return hex(in[i / 4]); });
    NUMFMT_CHECK_NONE(d);
}
