// SPDX-License-Identifier: MIT
// All host formats and schemes (no CUDA, no Highway), and the lists that tests, documents and benchmarks iterate over.
#pragma once

#include "awq.hpp"
#include "bf16.hpp"
#include "block_fp8.hpp"
#include "e8m0.hpp"
#include "fp16.hpp"
#include "fp4.hpp"
#include "fp6.hpp"
#include "fp8.hpp"
#include "int4.hpp"
#include "mxfp4.hpp"
#include "mxfp6.hpp"
#include "mxfp8.hpp"
#include "mxint8.hpp"
#include "nvfp4.hpp"

namespace numfmt {

/// A list of types, and a loop over it: `for_each(all_schemes{}, []<class S>() { ... })`.
template <class... Ts> struct type_list {
    static constexpr int size = sizeof...(Ts);
};
template <class... Ts, class F> constexpr void for_each(type_list<Ts...>, F&& f) { (f.template operator()<Ts>(), ...); }

/// Every element and scale format.
using all_formats = type_list<bf16, fp16, fp8_e4m3, fp8_e5m2, fp8_e4m3fnuz, fp8_e5m2fnuz, fp8_ue4m3, fp6_e2m3, fp6_e3m2,
                              fp4_e2m1, e8m0>;

/// Every scheme, in the parametrisations that checkpoints use.
using all_schemes =
    type_list<fp8_per_tensor, fp8_per_channel, block_fp8_128x128, block_fp8_1x128, block_fp8<128, 128, e8m0>,
              block_fp8<1, 128, e8m0>, mxfp8_e4m3, mxfp8_e5m2, mxint8, mxfp6_e2m3, mxfp6_e3m2, mxfp4, nvfp4, awq_int4,
              int4<64>, int4<32>, int4_symmetric<128>, int4_symmetric<32>>;

}  // namespace numfmt
