// SPDX-License-Identifier: MIT
// A progress bar on stderr, only where stderr is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

#include <fmt/core.h>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace example {

inline bool stderr_is_terminal() {
#if defined(__unix__) || defined(__APPLE__)
    return ::isatty(2) == 1;
#else
    return false;
#endif
}

/// Shows "what [#####.....] 42 %  1:23 left". Safe to advance from several threads; gone from the screen when
/// destroyed.
class progress_bar {
  public:
    progress_bar(std::string what, std::uint64_t total)
        : what_(std::move(what)), total_(total), start_(clock::now()), visible_(stderr_is_terminal() && total > 0) {}
    progress_bar(const progress_bar&) = delete;
    progress_bar& operator=(const progress_bar&) = delete;
    ~progress_bar() {
        if (shown_) std::fputs("\r\x1b[K", stderr);
    }

    void advance(std::uint64_t amount) {
        if (!visible_) return;
        const std::lock_guard lock(mutex_);
        done_ += amount;
        const auto now = clock::now();
        if (now - drawn_ < std::chrono::milliseconds(100)) return;
        drawn_ = now;
        constexpr int width = 30;
        const double share = static_cast<double>(done_) / static_cast<double>(total_);
        const double elapsed = std::chrono::duration<double>(now - start_).count();
        const auto left = static_cast<std::int64_t>(elapsed * (1 - share) / share);
        const int filled = static_cast<int>(share * width);
        fmt::print(stderr, "\r{} [{:#<{}}{:.<{}}] {:3.0f} %  {}:{:02} left\x1b[K", what_, "", filled, "",
                   width - filled, 100 * share, left / 60, left % 60);
        std::fflush(stderr);
        shown_ = true;
    }

  private:
    using clock = std::chrono::steady_clock;
    std::string what_;
    std::uint64_t total_;
    std::uint64_t done_ = 0;
    clock::time_point start_;
    clock::time_point drawn_{};
    bool visible_;
    bool shown_ = false;
    std::mutex mutex_;
};

}  // namespace example
