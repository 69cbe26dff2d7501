// SPDX-License-Identifier: MIT
// How large inputs are spread over threads: by an executor that the caller supplies. There is no pool behind it.
#pragma once

#include "../core/config.hpp"

namespace numfmt::simd {

namespace detail {
struct any_task {
    void operator()(int64_t) const {}
};
}  // namespace detail

/// An executor runs f(0) .. f(tasks - 1), each once, in any order and on any threads, and returns when all are done.
/// `concurrency()` says how many run at once.
template <class E>
concept executor = requires(const E& e, int64_t tasks, detail::any_task f) {
    { e.concurrency() };
    e(tasks, f);
};

/// Everything on the calling thread; the default.
struct serial_executor {
    constexpr int concurrency() const noexcept { return 1; }
    template <class F> void operator()(int64_t tasks, F&& f) const {
        for (int64_t i = 0; i < tasks; ++i) f(i);
    }
};

}  // namespace numfmt::simd
