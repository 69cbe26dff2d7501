#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Adds up test results for tests/run.sh: reads the JUnit files that ctest wrote, counts the test cases of doctest and
# of Python's unittest one by one and every other ctest test as one, and ends with the line "N passed, N failed, N skipped".
"""usage: summarize.py [--failed-step NAME]... FILE...
       summarize.py --self-test

A doctest binary or unittest script counts as its test cases (read from its summary, or summaries where a test starts several
programs); one that ends without a summary, or that exits with an error though every case passed, counts as one failure more. --failed-step adds a failure that is not a ctest
test (a build that broke). Exit code: 0 if something ran and nothing failed, else 1.
"""
import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree

DOCTEST_SUMMARY = re.compile(
    r"^\[doctest\] test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed\s*\|\s*(\d+) skipped", re.MULTILINE)
DOCTEST_BANNER = re.compile(r"^\[doctest\] ", re.MULTILINE)
DOCTEST_START = re.compile(r"^\[doctest\] doctest version is ", re.MULTILINE)
UNITTEST_SUMMARY = re.compile(r"^Ran (\d+) tests? in [^\n]*\n\s*^(?:OK|FAILED)(?: \(([^)\n]*)\))?\s*$", re.MULTILINE)
SKIPPED_CASE = re.compile(r"^\[numfmt\] skipped: ", re.MULTILINE)


def count_test(test):
    """(passed, failed, skipped, has_cases) of one <testcase> of ctest's JUnit file."""
    status = test.get("status")
    output = test.findtext("system-out") or ""
    ran_well = status == "run"
    if status in ("notrun", "disabled"):
        # ctest says "notrun" both for a skip and for a test whose program is missing; only the latter is a failure.
        skipped = test.find("skipped")
        reason = skipped.get("message", "") if skipped is not None else ""
        missing = "SKIP_" not in reason and status == "notrun"
        return (0, 1, 0, False) if missing else (0, 0, 1, False)
    summaries = DOCTEST_SUMMARY.findall(output)
    if summaries:
        passed, failed, skipped = (sum(int(summary[i]) for summary in summaries) for i in (1, 2, 3))
        failed += max(0, len(DOCTEST_START.findall(output)) - len(summaries))
        said_skip = min(len(SKIPPED_CASE.findall(output)), passed)
        if not ran_well and failed == 0:
            failed = 1
        return passed - said_skip, failed, skipped + said_skip, True
    summary = UNITTEST_SUMMARY.search(output)
    if summary:
        parts = dict(re.findall(r"([a-z ]+)=(\d+)", summary.group(2) or ""))
        parts = {name.strip(): int(n) for name, n in parts.items()}
        failed = sum(parts.get(name, 0) for name in ("failures", "errors", "unexpected successes"))
        skipped = parts.get("skipped", 0)
        passed = int(summary.group(1)) - failed - skipped
        if not ran_well and failed == 0:
            failed = 1
        return passed, failed, skipped, True
    if DOCTEST_BANNER.search(output):
        return 0, 1, 0, True  # started, never reached its summary
    return (1, 0, 0, False) if ran_well else (0, 1, 0, False)


BANNER = '[doctest] doctest version is "2.4.9"\n'
# status, a skip's reason, output; and the (passed, failed, skipped, has_cases) it stands for.
SELF_TEST = [
    ("run", None, "fine", (1, 0, 0, False)),
    ("fail", None, "not fine", (0, 1, 0, False)),
    ("notrun", "SKIP_REGULAR_EXPRESSION_MATCHED", "SKIPPED: no compiler", (0, 0, 1, False)),
    ("notrun", "SKIP_RETURN_CODE=77", "", (0, 0, 1, False)),
    ("notrun", "Unable to find executable", "", (0, 1, 0, False)),
    ("disabled", "", "", (0, 0, 1, False)),
    ("run", None, BANNER + "[doctest] test cases:   5 |   4 passed | 0 failed | 1 skipped\n", (4, 0, 1, True)),
    ("run", None, BANNER + "[numfmt] skipped: a: b\n[doctest] test cases: 5 | 5 passed | 0 failed | 0 skipped\n", (4, 0, 1, True)),
    ("fail", None, BANNER + "[doctest] test cases: 5 | 3 passed | 2 failed | 0 skipped\n", (3, 2, 0, True)),
    # A leak found after the summary; a crash before it.
    ("fail", None, BANNER + "[doctest] test cases: 5 | 5 passed | 0 failed | 0 skipped\nERROR: LeakSanitizer", (5, 1, 0, True)),
    ("fail", None, BANNER + "Segmentation fault", (0, 1, 0, True)),
    ("run", None, BANNER, (0, 1, 0, True)),
    # Several programs in one test: all pass; the second fails or dies, or a program without test cases fails.
    ("run", None, (BANNER + "[doctest] test cases: 5 | 5 passed | 0 failed | 0 skipped\n") * 3, (15, 0, 0, True)),
    ("fail", None, BANNER + "[doctest] test cases: 5 | 5 passed | 0 failed | 0 skipped\n"
     + BANNER + "[doctest] test cases: 5 | 3 passed | 2 failed | 0 skipped\n", (8, 2, 0, True)),
    ("fail", None, BANNER + "[doctest] test cases: 5 | 5 passed | 0 failed | 0 skipped\n" + BANNER + "Illegal instruction", (5, 1, 0, True)),
    ("fail", None, BANNER + "[doctest] test cases: 5 | 5 passed | 0 failed | 0 skipped\nFAILED: the kernels", (5, 1, 0, True)),
    ("run", None, "Ran 1 test in 0.1s\n\nOK\n", (1, 0, 0, True)),
    ("run", None, "Ran 9 tests in 0.1s\n\nOK (skipped=2)\n", (7, 0, 2, True)),
    ("fail", None, "Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1, unexpected successes=1)\n", (4, 4, 1, True)),
    ("fail", None, "Ran 9 tests in 0.1s\n\nOK\n", (9, 1, 0, True)),
]


def self_test():
    faults = 0
    for status, reason, output, expected in SELF_TEST:
        test = ElementTree.Element("testcase", status=status)
        if reason is not None:
            ElementTree.SubElement(test, "skipped", message=reason)
        ElementTree.SubElement(test, "system-out").text = output
        found = count_test(test)
        if found != expected:
            print(f"self-test: {status}, {reason}, {output!r}: got {found}, wanted {expected}")
            faults += 1
    print(f"self-test: {len(SELF_TEST)} results, {faults} counted wrongly")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--failed-step", action="append", default=[])
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()

    total = [0, 0, 0]
    notes = []
    for file in arguments.files:
        try:
            root = ElementTree.parse(file).getroot()
        except (OSError, ElementTree.ParseError) as error:
            arguments.failed_step.append(f"results of {file}: {error}")
            continue
        for test in root.iter("testcase"):
            passed, failed, skipped, has_cases = count_test(test)
            for i, n in enumerate((passed, failed, skipped)):
                total[i] += n
            name = test.get("name")
            if has_cases:
                print(f"{file}: {name}: {passed} test cases passed, {failed} failed, {skipped} skipped")
            if failed:
                notes.append(f"FAILED: {name} ({file})")
            elif skipped and not has_cases:
                reason = re.search(r"SKIPPED: (.*)", test.findtext("system-out") or "")
                notes.append(f"skipped: {name}" + (f": {reason.group(1)}" if reason else ""))
            elif skipped:
                notes += [f"skipped: {line}" for line in re.findall(
                    r"^\[numfmt\] skipped: (.*)", test.findtext("system-out") or "", re.MULTILINE)]
    for step in arguments.failed_step:
        total[1] += 1
        notes.append(f"FAILED: {step}")
    for note in notes:
        print(note)
    passed, failed, skipped = total
    if passed + failed == 0:
        print("no test was run")
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 0 if passed > 0 and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
