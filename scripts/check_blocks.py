#!/usr/bin/env python3
"""check_blocks.py BUILD [--write] [PAGE.md...]: runs the code blocks of README.md and docs/ (docs/about.md says
how). A page runs in a folder of its own, its blocks in order. With --write, outputs that differ are written into the
page; read them before you commit them."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Optional

from doc_blocks import blocks

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = re.compile(r"^\s*(git clone|cd esscher|\./check|pip install|sudo |apt)\b", re.M)
PYTHON = "/usr/bin/python3"
RUNNER = """
import sys
for line in sys.stdin:
    path = line.strip()
    try:
        exec(compile(open(path).read(), path, "exec"), globals())
        print(f"\\n=end= ok", flush=True)
    except BaseException:
        import traceback
        traceback.print_exc(file=sys.stdout)
        print(f"\\n=end= failed", flush=True)
"""


class Failure(Exception):
    """A block that does not do what the page says."""


NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w])")


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def close(expected: str, found: str) -> bool:
    """Whole numbers are equal. Others differ by at most a unit of the last digit shown, or by 1e-9 of themselves,
    because another processor rounds differently.

    >>> [close("0.123", found) for found in ("0.1234567", "0.124", "0.126", "0.12")]
    [True, True, False, False]
    >>> close("17953", "17954"), close("1e+12", "1000000000000"), close("2.5e-05", "2.6e-05"), close("-0.5", "0.5")
    (False, False, True, False)
    """
    if expected == found:
        return True
    if not re.search(r"[.eE]", expected) or not re.search(r"[.eE]", found):
        return False
    mantissa, _, exponent = expected.lower().partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(float(expected) - float(found)) <= max(1.001 * unit, 1e-9 * abs(float(expected)))


def fits(chunk: str, found: str, at: int) -> int:
    """Where a piece of the expected text ends in the found one if it begins at this place there; -1 if it does not.
    Blanks between words may be more or fewer, because a column is as wide as its numbers."""
    parts = re.split(f"({NUMBER.pattern}|[ ]+)", chunk)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            if not found.startswith(part, at):
                return -1
            at += len(part)
            continue
        there = (re.compile(" *" if at == 0 or found[at - 1] == "\n" else " +") if part.isspace() else NUMBER).match(found, at)
        if there is None or not (part.isspace() or close(part, there[0])):
            return -1
        at = there.end()
    return at


def match(expected: str, found: str) -> Optional[list[tuple[int, int]]]:
    """The places in the found text of the pieces between the dots of the expected one; None if they are not there.

    >>> match("a ...\\nc 0.12", "a b\\nc 0.123")
    [(0, 2), (3, 11)]
    >>> match("a ...\\nc 0.12", "a b\\nc 0.15") is None
    True
    >>> match("t  1.0 s", "t 0.9999999999 s")
    [(0, 16)]
    """
    chunks, places, at = expected.split("..."), [], 0
    for i, chunk in enumerate(chunks):
        first, last = i == 0, i == len(chunks) - 1
        end = -1
        for begin in range(at, 1 if first else len(found) + 1):
            end = fits(chunk, found, begin)
            if end >= 0 and (not last or end == len(found)):
                break
        else:
            return None
        places.append((begin, end))
        at = end
    return places


def filled(expected: str, found: str) -> str:
    """What a page should show: all that was found, except where dots stand alone in a line and stand for a long cut.

    >>> print(filled("a 0.5...\\n...\\nd", "a 0.52\\nb\\nc\\nd"))
    a 0.52
    ...
    d
    >>> print(filled("a 0.52...\\n...\\nd", "x"))
    x
    """
    places = match(expected, found)
    if places is None:
        return found
    if all(line == "..." or "..." not in line for line in expected.splitlines()):
        return expected  # nothing to fill in, and digits that differ by rounding need not change a page
    text, end = "", 0
    for i, (begin, stop) in enumerate(places):
        alone = (text == "" or text.endswith("\n")) and re.match(r"\n|$", expected.split("...")[i])
        text += ("..." if alone else found[end:begin]) if i else ""
        text, end = text + found[begin:stop], stop
    return text


class Page:
    """Runs blocks in one folder; Python blocks of a page share their variables."""

    def __init__(self, folder: Path, build: Path) -> None:
        self.folder, self.build, self.count = folder, build, 0
        (folder / "run").write_text('#!/bin/sh\nexec esscher "$@"\n')
        (folder / "run").chmod(0o755)
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "experiments").symlink_to(ROOT / "experiments")
        (folder / "tests").symlink_to(ROOT / "tests")
        self.python = subprocess.Popen(
            [PYTHON, "-c", RUNNER], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        self.python.communicate("", timeout=60)

    def run_bash(self, code: str) -> str:
        lines = "\n".join(line for line in code.splitlines() if not SKIPPED.match(line))
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", lines], cwd=self.folder, text=True,
                              capture_output=True, timeout=300)
        if done.returncode != 0:
            raise Failure(done.stdout + done.stderr)
        return done.stdout

    def run_python(self, code: str) -> str:
        self.count += 1
        path = self.folder / f"block{self.count}.py"
        path.write_text(code)
        self.python.stdin.write(f"{path}\n")
        self.python.stdin.flush()
        lines = []
        for line in self.python.stdout:
            if line.startswith("=end= "):
                break
            lines.append(line)
        else:
            raise Failure("Python died\n" + "".join(lines))
        if line.strip() != "=end= ok":
            raise Failure("".join(lines))
        return "".join(lines)

    def run_cpp(self, code: str) -> str:
        self.count += 1
        source, program = self.folder / f"block{self.count}.cc", self.folder / f"block{self.count}"
        source.write_text(code)
        done = subprocess.run([*compiler(self.build), source, "-o", program, *libraries(self.build)],
                              text=True, capture_output=True, timeout=300)
        if done.returncode != 0:
            raise Failure(done.stderr)
        done = subprocess.run([program], cwd=self.folder, text=True, capture_output=True, timeout=60)
        if done.returncode != 0:
            raise Failure(done.stdout + done.stderr)
        return done.stdout


def compiler(build: Path) -> list:
    ccache = ["ccache"] if subprocess.run(["which", "ccache"], capture_output=True).returncode == 0 else []
    return [*ccache, "g++", "-std=c++20", "-O0", "-Wall", "-Werror", f"-I{ROOT}", "-I/usr/include/eigen3"]


def libraries(build: Path) -> list:
    """Both libraries and what they need; the linker takes what a program uses."""
    found = [build / "esscher/libesscher_lab.a", build / "esscher/libesscher.a", "-lhwy", "-ltbb", "-lz"]
    return found + ["-lsundials_cvode", "-lsundials_nvecserial", "-lsqlite3", "-lfmt"]


def run_page(path: Path, build: Path, write: bool) -> tuple[int, int]:
    text = path.read_text()
    passed, failed, outputs = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        page = Page(Path(folder), build)
        output = ""
        for block in blocks(text):
            where = f"{path.relative_to(ROOT)}:{block.line}"
            try:
                if block.kind == "file":
                    (page.folder / block.title.removeprefix("file=")).write_text(block.code)
                elif block.kind == "run":
                    output = None
                    output = getattr(page, f"run_{block.language}")(block.code)
                    passed += 1
                elif block.kind == "output" and output is not None:
                    expected, found = tidy(block.code), tidy(output)
                    if write:
                        outputs.append((block, filled(expected, found)))
                    elif match(expected, found) is None:
                        raise Failure(f"expected:\n{block.code}found:\n{output}")
                    passed += 1
            except (Failure, subprocess.TimeoutExpired) as failure:
                failed += 1
                print(f"{where}: {block.language} block failed\n{failure}")
        page.close()
    for block, found in reversed(outputs):
        text = text[:block.start] + f"```text\n{found}\n```" + text[block.end:]
    if outputs:
        path.write_text(text)
    return passed, failed


def main(build: Path, names: list[str]) -> int:
    write = "--write" in names
    names = [name for name in names if name != "--write"]
    pages = [ROOT / name for name in names if name] or [
        page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if page.exists()]
    good, bad = 0, 0
    for path in pages:
        passed, failed = run_page(path, build, write)
        good, bad = good + passed, bad + failed
    print(f"blocks: {good} passed, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
