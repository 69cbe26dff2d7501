// SPDX-License-Identifier: MIT
// The bulk encode and decode against numfmt::encode and decode on the host: all 16-bit inputs and all codes, every
// length around the vector width, every misalignment, the options, and what bad arguments give.
#include "support.hpp"

#include <numfmt/cuda/codec.cuh>

using namespace numfmt_test;
namespace nc = numfmt::cuda;

namespace {

constexpr encode_options other_options{
    .overflow = overflow::to_nonfinite, .nan = nan_mode::keep_sign, .drop_negative_zero = true};

template <class Source> std::vector<Source> inputs() {
    std::vector<Source> v;
    random_words_stream r(9);
    for (uint32_t i = 0; i < 65536; ++i) {
        if constexpr (numfmt::detail::is_same_v<Source, float>)
            v.push_back(bit_cast<float>(i << 16 | (r() & (i % 3 == 0 ? 0u : 0xFFFFu))));
        else
            v.push_back(Source::from_bits(static_cast<uint16_t>(i)));
    }
    return v;
}

/// The host's codes, packed as the device packs them.
template <class Format, rounding R, class Source>
std::vector<uint8_t> host_codes(const Source* x, size_t n, const nc::codec_options& o) {
    constexpr int bits = nc::detail::stored_bits<Format>;
    std::vector<uint8_t> codes(static_cast<size_t>(packed_row_bytes(static_cast<int64_t>(n), bits)));
    for (size_t i = 0; i < n; ++i) {
        const auto c = encode<Format, R>(x[i], o.element, random_word(o.seed, o.offset + i));
        if constexpr (bits == 16) {
            std::memcpy(&codes[2 * i], &c, 2);
        } else {
            const uint8_t byte = static_cast<uint8_t>(c);
            pack<bits>(&byte, 1, codes.data(), static_cast<int64_t>(i));
        }
    }
    return codes;
}

template <class Format, rounding R, class Source>
void compare(const std::vector<Source>& x, size_t n, size_t x_front, size_t code_front, const nc::codec_options& o,
             differences& d) {
    const device_array<Source> in(std::vector<Source>(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)), x_front);
    const std::vector<uint8_t> want = host_codes<Format, R>(x.data(), n, o);
    device_array<uint8_t> out(want.size(), code_front);
    const nc::launch_result r = nc::encode<Format, R>(in.data(), static_cast<int64_t>(n), out.data(), o);
    REQUIRE(r.ok());
    const std::vector<uint8_t> got = out.host();
    CHECK(out.intact());
    for (size_t i = 0; i < want.size(); ++i)
        d.expect(got[i] == want[i], [&] {
            return std::string(Format::name) + " n " + std::to_string(n) + " byte " + std::to_string(i) + ": " +
                   hex(got[i]) + " not " + hex(want[i]);
        });
}

template <class Format, class Target> void compare_decode(size_t n, size_t code_front, size_t y_front, differences& d) {
    constexpr int bits = nc::detail::stored_bits<Format>;
    std::vector<uint8_t> codes(static_cast<size_t>(packed_row_bytes(static_cast<int64_t>(n), bits)));
    for (size_t i = 0; i < codes.size(); ++i)
        codes[i] = static_cast<uint8_t>(bits == 16 ? i / 2 >> (i % 2 * 8) : i * 0x95 + i / 256);
    const device_array<uint8_t> in(codes, code_front);
    device_array<Target> out(n, y_front);
    REQUIRE(nc::decode<Format>(in.data(), static_cast<int64_t>(n), out.data()).ok());
    const std::vector<Target> got = out.host();
    CHECK(out.intact());
    for (size_t i = 0; i < n; ++i) {
        typename Format::storage c{};
        if constexpr (bits == 16)
            std::memcpy(&c, &codes[2 * i], 2);
        else
            c = unpack_one<bits>(codes.data(), static_cast<int64_t>(i));
        d.expect(same_number(got[i], Target(decode<Format>(c))),
                 [&] { return std::string(Format::name) + " code " + hex(c) + " at " + std::to_string(i); });
    }
}

template <class Format, class Source> void check_source() {
    constexpr rounding R = default_rounding_v<Format>;
    const std::vector<Source> x = inputs<Source>();
    differences d;
    compare<Format, R>(x, x.size(), 0, 0, {}, d);
    compare<Format, R>(x, x.size(), 0, 0, {.element = other_options}, d);
    for (size_t n = 1; n <= 33; ++n) compare<Format, R>(x, n, 0, 0, {}, d);
    for (const size_t n : {1023u, 2048u, 4097u, 16390u}) {
        compare<Format, R>(x, n, 0, 0, {}, d);
        compare<Format, R>(x, n, sizeof(Source), 0, {}, d);
        compare<Format, R>(x, n, 0, sizeof(typename Format::storage), {}, d);
    }
    const std::vector<Source> shifted(x.begin() + 3, x.end());
    compare<Format, R>(shifted, 5000, sizeof(Source), 2 * sizeof(typename Format::storage), {}, d);
    NUMFMT_CHECK_NONE(d);
}
template <class Format, class Target> void check_target() {
    differences d;
    compare_decode<Format, Target>(65536, 0, 0, d);
    for (size_t n = 1; n <= 33; ++n) compare_decode<Format, Target>(n, 0, 0, d);
    for (const size_t n : {1023u, 2048u, 4097u, 16390u}) {
        compare_decode<Format, Target>(n, 0, 0, d);
        compare_decode<Format, Target>(n, sizeof(typename Format::storage), 0, d);
        compare_decode<Format, Target>(n, 0, sizeof(Target), d);
    }
    NUMFMT_CHECK_NONE(d);
}

}  // namespace

TEST_CASE("codec: every format from float, bf16 and fp16: all 16-bit inputs, lengths, misalignments, options") {
    for_each(all_formats{}, [&]<class Format>() {
        check_source<Format, float>();
        check_source<Format, bf16>();
        check_source<Format, fp16>();
    });
}
TEST_CASE("codec: every format to float, bf16 and fp16: all codes, lengths, misalignments") {
    for_each(all_formats{}, [&]<class Format>() {
        check_target<Format, float>();
        check_target<Format, bf16>();
        check_target<Format, fp16>();
    });
}
TEST_CASE("codec: the index of stochastic rounding starts at the offset, which need not be a multiple of four") {
    const std::vector<float> x = inputs<float>();
    differences d;
    for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{6}, uint64_t{1} << 40, ~uint64_t{0} - 9})
        compare<fp8_e4m3, rounding::stochastic>(x, 9001, 0, 0, {.seed = 77, .offset = offset}, d);
    NUMFMT_CHECK_NONE(d);
}
TEST_CASE("codec: bad arguments give a status, launch nothing, and leave a pending error pending") {
    const device_array<float> x(8);
    device_array<uint8_t> codes(8);
    const auto status_of = [](const nc::launch_result& r) { return r.status.code; };
    CHECK(status_of(nc::encode<fp8_e4m3>(x.data(), -1, codes.data())) == status_code::negative_size);
    CHECK(status_of(nc::encode<fp8_e4m3>(x.data(), numfmt::detail::int64_max, codes.data())) ==
          status_code::size_overflow);
    CHECK(status_of(nc::encode<fp8_e4m3>(x.data(), int64_t{1} << 58, codes.data())) == status_code::size_overflow);
    CHECK(status_of(nc::encode<fp8_e4m3>(static_cast<const float*>(nullptr), 8, codes.data())) ==
          status_code::null_pointer);
    CHECK(status_of(nc::encode<fp8_e4m3>(x.data(), 8, nullptr)) == status_code::null_pointer);
    const auto* odd = reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(x.data()) + 2);
    const nc::launch_result r = nc::encode<fp8_e4m3>(odd, 1, codes.data());
    CHECK(r.status == status{status_code::misaligned, "x", 2, 4});
    CHECK(nc::encode<fp8_e4m3>(static_cast<const float*>(nullptr), 0, nullptr).ok());
    CHECK(status_of(nc::decode<fp8_e4m3>(codes.data(), -5, const_cast<float*>(x.data()))) ==
          status_code::negative_size);
    CHECK(codes.intact());

    void* p = nullptr;
    CHECK(cudaMalloc(&p, ~size_t{0} / 2) == cudaErrorMemoryAllocation);  // pending from here on
    CHECK(nc::encode<fp8_e4m3>(x.data(), 8, codes.data()).ok());
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    check_cuda(cudaDeviceSynchronize());
}
