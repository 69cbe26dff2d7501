// SPDX-License-Identifier: MIT
// Version, the few macros of the library, and the fixed-width integer names that every other header uses.
// May include only the four standard headers below; under NVRTC, which has none, it supplies the names itself.
#pragma once

#define NUMFMT_VERSION_MAJOR 0
#define NUMFMT_VERSION_MINOR 1
#define NUMFMT_VERSION_PATCH 0

#if !defined(__CUDACC_RTC__) && (!defined(__cplusplus) || (__cplusplus < 202002L && !defined(_MSC_VER)))
#error "numfmt needs C++20: compile with -std=c++20 or later"
#endif

#if defined(__CUDACC_RTC__)
// NVRTC: no standard headers.
#else
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#endif

// NUMFMT_HD: callable from host and device. Empty outside CUDA.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define NUMFMT_HD __host__ __device__
#else
#define NUMFMT_HD
#endif

// NUMFMT_INLINE: hot functions are always inlined, so that a unit built for a newer instruction set cannot hand its
// out-of-line copy of one to a unit built for an older CPU (both would carry the same mangled name).
#if defined(_MSC_VER) && !defined(__clang__)
#define NUMFMT_INLINE __forceinline
#elif defined(__CUDACC_RTC__)
#define NUMFMT_INLINE __forceinline__
#else
#define NUMFMT_INLINE inline __attribute__((always_inline))
#endif

#define NUMFMT_FN NUMFMT_HD NUMFMT_INLINE constexpr

// NUMFMT_PER_ISA: on functions too large to be always inlined: units built for different instruction sets get symbols
// of their own, for the same reason.
#if !defined(__GNUC__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define NUMFMT_PER_ISA
#elif defined(__AVX512VBMI__)
#define NUMFMT_PER_ISA __attribute__((abi_tag("avx512vbmi")))
#elif defined(__AVX512F__)
#define NUMFMT_PER_ISA __attribute__((abi_tag("avx512")))
#elif defined(__AVX2__)
#define NUMFMT_PER_ISA __attribute__((abi_tag("avx2")))
#elif defined(__AVX__)
#define NUMFMT_PER_ISA __attribute__((abi_tag("avx")))
#elif defined(__SSE4_1__)
#define NUMFMT_PER_ISA __attribute__((abi_tag("sse4")))
#elif defined(__ARM_FEATURE_SVE)
#define NUMFMT_PER_ISA __attribute__((abi_tag("sve")))
#else
#define NUMFMT_PER_ISA
#endif

// NUMFMT_RESTRICT: the pointed-to array is not reached through any other pointer in the function.
#if defined(_MSC_VER) && !defined(__clang__)
#define NUMFMT_RESTRICT __restrict
#else
#define NUMFMT_RESTRICT __restrict__
#endif

namespace numfmt {

#if defined(__CUDACC_RTC__)
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using size_t = decltype(sizeof(0));
#else
using std::int16_t;
using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::size_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;
#endif

namespace detail {

// The few type traits the core needs, so that it also compiles where <type_traits> is missing.
template <class A, class B> inline constexpr bool is_same_v = false;
template <class A> inline constexpr bool is_same_v<A, A> = true;

template <class T> struct remove_cv {
    using type = T;
};
template <class T> struct remove_cv<const T> {
    using type = T;
};
template <class T> struct remove_cv<volatile T> {
    using type = T;
};
template <class T> struct remove_cv<const volatile T> {
    using type = T;
};
template <class T> using remove_cv_t = typename remove_cv<T>::type;

template <bool C, class A, class B> struct conditional {
    using type = A;
};
template <class A, class B> struct conditional<false, A, B> {
    using type = B;
};
template <bool C, class A, class B> using conditional_t = typename conditional<C, A, B>::type;

template <class T, class... Us> inline constexpr bool is_one_of_v = (is_same_v<T, Us> || ...);

// The standard integer types (bool and the character types included), by name: the same list on every compiler.
template <class T>
inline constexpr bool is_integer_v =
    is_one_of_v<remove_cv_t<T>, bool, char, signed char, unsigned char, wchar_t, char8_t, char16_t, char32_t, short,
                unsigned short, int, unsigned int, long, unsigned long, long long, unsigned long long>;

template <class> inline constexpr bool always_false_v = false;

}  // namespace detail
}  // namespace numfmt
