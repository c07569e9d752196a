#!/usr/bin/env python3
"""Sums the random comparisons that the tests made (tests/testing.h) and holds the suite to its budget.

count_comparisons.py BUILD: reads BUILD/comparisons, one file per test, written by the last run of it."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> int:
    header = (ROOT / "tests/testing.h").read_text()
    budget = float(re.search(r"kMaxComparisons = ([0-9.e]+);", header)[1])
    files = sorted((pathlib.Path(sys.argv[1]) / "comparisons").glob("*"))
    counts = {path.name: int(path.read_text()) for path in files}
    total = sum(counts.values())
    for name, count in sorted(counts.items(), key=lambda item: -item[1])[:5]:
        print(f"{count:8d}  {name}")
    print(f"{total:8d}  random comparisons in {len(counts)} tests, budget {budget:.0f}")
    return 0 if 0 < total <= budget else 1


if __name__ == "__main__":
    sys.exit(main())
