// SPDX-License-Identifier: MIT
// main() of every unit-test binary, and the skip() of support/skip.hpp.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <iostream>
#include <string_view>

#include "support/skip.hpp"

namespace numfmt_test {
namespace {

const char* current_test_case = "";
bool already_skipped = false;  // a test case counts once, however often it says so

struct current_test_case_listener : doctest::IReporter {
    explicit current_test_case_listener(const doctest::ContextOptions&) {}
    void test_case_start(const doctest::TestCaseData& data) override {
        current_test_case = data.m_name;
        already_skipped = false;
    }
    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("numfmt_current_test_case", 1, current_test_case_listener);

}  // namespace

void skip(std::string_view reason) {
    if (already_skipped) {
        return;
    }
    already_skipped = true;
    // tests/support/summarize.py looks for this prefix.
    std::cout << "[numfmt] skipped: " << current_test_case << ": " << reason << std::endl;
}

}  // namespace numfmt_test
