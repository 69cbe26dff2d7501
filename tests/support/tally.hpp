// SPDX-License-Identifier: MIT
// Counts comparisons in loops that are too hot for one test-framework assertion each, and keeps the first failures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

namespace numfmt_test {

class tally {
  public:
    /// Counts one comparison. `describe(stream)` runs only for the first few mismatches and says what the input was.
    template <class T, class U, class Describe> void expect_equal(const T& got, const U& wanted, Describe&& describe) {
        ++checked_;
        if (got == static_cast<T>(wanted)) return;
        if (++failed_ > 5) return;
        std::ostringstream os;
        describe(os);
        os << std::hex << ": got " << +got << ", wanted " << +wanted << '\n';
        first_ += os.str();
    }

    std::size_t checked() const { return checked_; }
    std::size_t failed() const { return failed_; }
    /// The first mismatches, for the message of the assertion.
    const std::string& first() const { return first_; }

  private:
    std::size_t checked_ = 0;
    std::size_t failed_ = 0;
    std::string first_;
};

}  // namespace numfmt_test

/// No comparison of the tally failed, and at least `minimum` were made (an empty loop is a failure).
#define NUMFMT_CHECK_TALLY(t, minimum)                 \
    do {                                               \
        CHECK_MESSAGE((t).failed() == 0, (t).first()); \
        CHECK((t).checked() >= (minimum));             \
    } while (false)
