#!/usr/bin/env python3
"""A folder of esscher/ may include only itself and folders before it in ORDER, and x.cc includes
x.h first, which proves that x.h compiles alone."""

import pathlib
import re
import sys

ORDER = (
    "base io random simd measure tilt attention prompt estimate concentration icl heads "
    "config store report paper"
).split()
INCLUDE = re.compile(r'^\s*#include\s+"esscher/(\w+)/', re.MULTILINE)
FIRST = re.compile(r'^\s*#include\s+["<](.*)[">]', re.MULTILINE)
ROOT = pathlib.Path(__file__).resolve().parent.parent


def violations(path: pathlib.Path) -> list[str]:
    folder = path.parent.name
    if folder not in ORDER:
        return [f"{path.relative_to(ROOT)}: folder {folder} is not in the layer order"]
    allowed = ORDER[: ORDER.index(folder) + 1]
    return [
        f"{path.relative_to(ROOT)}: {folder} may not include {target}"
        for target in INCLUDE.findall(path.read_text())
        if target not in allowed
    ]


def header_not_first(path: pathlib.Path) -> list[str]:
    header = path.with_suffix(".h")
    if path.suffix != ".cc" or not header.exists():
        return []
    wanted, first = str(header.relative_to(ROOT)), FIRST.search(path.read_text())
    if first and first[1] == wanted:
        return []
    return [f"{path.relative_to(ROOT)}: the first include must be {wanted}"]


def main() -> int:
    files = sorted(p for p in (ROOT / "esscher").glob("*/*") if p.suffix in (".h", ".cc"))
    found = [line for path in files for line in violations(path) + header_not_first(path)]
    print("\n".join(found) or f"{len(files)} files keep the layer order and include their own header first")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
