#!/usr/bin/env python3
"""count_tests.py LOG OK: prints "passed failed" of a step, as its test runner said, else 1 0 or 0 1."""

import re
import sys

CTEST = re.compile(r"(\d+) tests? failed out of (\d+)")
PLAIN = re.compile(r"(\d+) passed")
PLAIN_FAILED = re.compile(r"(\d+) (?:failed|error)")


def count(text: str, ok: bool) -> tuple[int, int]:
    ctest = CTEST.findall(text)
    if ctest:
        bad = sum(int(b) for b, _ in ctest)
        good = sum(int(n) for _, n in ctest) - bad
    else:
        lines = [line for line in text.splitlines() if PLAIN.search(line)]
        good = sum(int(PLAIN.search(line)[1]) for line in lines)
        bad = sum(int(n) for line in lines for n in PLAIN_FAILED.findall(line))
        good = good or int(ok)
    return good, bad if ok else max(bad, 1)


if __name__ == "__main__":
    with open(sys.argv[1], errors="replace") as log:
        print(*count(log.read(), sys.argv[2] == "1"))
