// SPDX-License-Identifier: MIT
// The one implementation unit of <numfmt/simd.hpp>: includes the kernels once per instruction set and chooses among
// them. Included by that header where NUMFMT_SIMD_IMPLEMENTATION is defined, which one .cpp of a program does.
#pragma once

#if !defined(HWY_WANT_AVX3_DL)
#define HWY_WANT_AVX3_DL  // Highway 1.0 leaves the newest AVX-512 target out unless asked
#endif
#if !defined(HWY_DISABLED_TARGETS) && (defined(__x86_64__) || defined(_M_X64))
// CPUs with SSE4 and without AVX2 get SSSE3: one target less to compile for a decade-old difference.
#define HWY_DISABLED_TARGETS HWY_SSE4
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numfmt/simd/implementation-inl.h"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "implementation-inl.h"

namespace numfmt::simd::detail {

HWY_EXPORT(table);

const dispatch_table& dispatch() noexcept { return *HWY_DYNAMIC_DISPATCH(table)(); }

#if (HWY_TARGETS & (HWY_TARGETS - 1)) != 0
int64_t usable_targets() noexcept { return HWY_TARGETS & hwy::SupportedTargets(); }
void use_targets(int64_t targets) noexcept {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}
#else  // one target: there is nothing to choose
int64_t usable_targets() noexcept { return HWY_TARGETS; }
void use_targets(int64_t) noexcept {}
#endif

}  // namespace numfmt::simd::detail
