#!/usr/bin/env python3
"""What holds the house together:

- a folder of esscher/ includes only itself and the folders above it in esscher/layers.txt;
- x.cc includes x.h first, which proves that x.h compiles alone;
- headers in detail/ are private: only their own folder and the folders of the same library include them,
  and no public header does;
- no header of the core library includes a JSON header;
- no two headers define a type of the same name in the same namespace: a file that includes both would not compile,
  and a program that links both would be wrong without a word;
- the table of folders in DESIGN.md says what esscher/layers.txt says."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = [
    line.split(maxsplit=2)
    for line in (ROOT / "esscher/layers.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
ORDER = [folder for _, folder, _ in LAYERS]
CORE = {folder for library, folder, _ in LAYERS if library == "core"}
INCLUDE = re.compile(r'^\s*#include\s+"esscher/(\w+)/', re.MULTILINE)
PRIVATE = re.compile(r'^\s*#include\s+"(esscher/\w+/detail/[^"]+)"', re.MULTILINE)
JSON = re.compile(r'^\s*#include\s+["<](nlohmann/|esscher/json/)', re.MULTILINE)
FIRST = re.compile(r'^\s*#include\s+["<](.*)[">]', re.MULTILINE)


def folder_of(path: pathlib.Path) -> str:
    return path.relative_to(ROOT / "esscher").parts[0]


def is_private(path: pathlib.Path) -> bool:
    return path.parent.name == "detail" or path.name.endswith("-inl.h")


def violations(path: pathlib.Path) -> list[str]:
    folder = folder_of(path)
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


def leaks(path: pathlib.Path) -> list[str]:
    """A public header shows neither private headers nor, in the core library, JSON."""
    if path.suffix != ".h":
        return []
    name, text = path.relative_to(ROOT), path.read_text()
    found = []
    if not is_private(path):
        found += [f"{name}: a public header may not include {h}" for h in PRIVATE.findall(text)]
    if folder_of(path) in CORE and JSON.search(text):
        found.append(f"{name}: a header of the core library may not include a JSON header")
    return found


def defined_twice(files: list[pathlib.Path]) -> list[str]:
    """Types at the first column of headers, by the namespace that was opened last."""
    places: dict[tuple[str, str], list[str]] = {}
    for path in (p for p in files if p.suffix == ".h" and not p.name.endswith("-inl.h")):
        namespace = ""
        for line in path.read_text().splitlines():
            if opened := re.match(r"namespace ([\w:]+) \{", line):
                namespace = opened[1]
            elif defined := re.match(r"(?:struct|class|enum class|enum) (\w+)[^;:]*(?: : [^;]*)?\{", line):
                places.setdefault((namespace, defined[1]), []).append(str(path.relative_to(ROOT)))
    return [f"{n}::{t} is defined in {' and in '.join(where)}" for (n, t), where in places.items() if len(where) > 1]


def design_differs() -> list[str]:
    """Rows of the table of folders in DESIGN.md: | `base/` | what it holds | library |"""
    rows = re.findall(r"^\| `(\w+)/` \| (.*?) \| (\w+) \|$", (ROOT / "DESIGN.md").read_text(), re.MULTILINE)
    wanted = [(folder, text, library) for library, folder, text in LAYERS]
    return [f"DESIGN.md: row {r} is not in esscher/layers.txt" for r in rows if r not in wanted] + [
        f"DESIGN.md: no row {w}" for w in wanted if w not in rows
    ]


def main() -> int:
    files = sorted(p for p in (ROOT / "esscher").glob("*/**/*") if p.suffix in (".h", ".cc"))
    found = [line for path in files for line in violations(path) + header_not_first(path) + leaks(path)]
    found += defined_twice(files) + design_differs()
    print("\n".join(found) or f"{len(files)} files keep the rules of esscher/layers.txt")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
