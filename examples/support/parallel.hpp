// SPDX-License-Identifier: MIT
// A parallel loop whose results arrive in order, so that sums do not depend on the number of threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace example {

/// Calls work(i) for 0 <= i < count on `threads` threads, and merge(i, result) for i = 0, 1, 2, ..., never two at once.
/// The first exception stops the loop and is thrown again here.
template <class Work, class Merge> void parallel_in_order(std::size_t count, unsigned threads, Work work, Merge merge) {
    using result = decltype(work(std::size_t{}));
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
    std::mutex mutex;
    std::map<std::size_t, result> waiting;  // finished ahead of their turn
    std::size_t merged = 0;
    std::exception_ptr error;

    const auto run = [&] {
        try {
            for (std::size_t i = next++; i < count && !stop; i = next++) {
                result r = work(i);
                const std::lock_guard lock(mutex);
                waiting.emplace(i, std::move(r));
                for (auto first = waiting.begin(); first != waiting.end() && first->first == merged;
                     first = waiting.begin()) {
                    merge(merged++, std::move(first->second));
                    waiting.erase(first);
                }
            }
        } catch (...) {
            stop = true;
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
        }
    };

    {
        std::vector<std::jthread> pool;
        for (unsigned t = 1; t < threads && t < count; ++t) pool.emplace_back(run);
        run();
    }
    if (error) std::rethrow_exception(error);
}

}  // namespace example
