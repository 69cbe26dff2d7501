// SPDX-License-Identifier: MIT
// A test case that cannot run here (no device, no optional file) says so and is counted as skipped, not as passed.
#pragma once

#include <string_view>

namespace numfmt_test {

/// Prints why the running test case is skipped; tests/run.sh counts it. Return from the test case right after it.
void skip(std::string_view reason);

}  // namespace numfmt_test
