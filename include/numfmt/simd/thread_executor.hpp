// SPDX-License-Identifier: MIT
// An executor over std::thread, for programs without a thread pool of their own: starts its threads at every call, so
// it pays from about a megabyte on.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "executor.hpp"

namespace numfmt::simd {

/// Runs tasks on the calling thread and `threads - 1` others. Throws std::system_error when no thread can be started.
class thread_executor {
  public:
    /// `threads`: at least 1; 0 stands for as many as the machine runs at once.
    explicit thread_executor(int threads = 0) noexcept
        : threads_(threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency())) {
        if (threads_ < 1) threads_ = 1;
    }

    int concurrency() const noexcept { return threads_; }

    template <class F> void operator()(int64_t tasks, F&& f) const {
        std::atomic<int64_t> next{0};
        const auto work = [&] {
            for (int64_t i = next.fetch_add(1); i < tasks; i = next.fetch_add(1)) f(i);
        };
        const int64_t helpers = tasks < threads_ ? tasks - 1 : threads_ - 1;
        std::vector<std::jthread> others;
        for (int64_t i = 0; i < helpers; ++i) others.emplace_back(work);
        work();
    }

  private:
    int threads_;
};

}  // namespace numfmt::simd
