#!/usr/bin/env python3
"""check_blocks.py BUILD [PAGE.md...]: runs the code blocks of README.md and docs/ (docs/about.md says
how). A page runs in a folder of its own, its blocks in order."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

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


def matches(expected: str, found: str) -> bool:
    """Equal, where "..." in the expected text stands for anything."""
    def tidy(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip().splitlines())
    pattern = ".*".join(re.escape(part) for part in tidy(expected).split("..."))
    return re.fullmatch(pattern, tidy(found), re.S) is not None


class Page:
    """Runs blocks in one folder; Python blocks of a page share their variables."""

    def __init__(self, folder: Path, build: Path) -> None:
        self.folder, self.build, self.count = folder, build, 0
        (folder / "run").write_text('#!/bin/sh\nexec esscher "$@"\n')
        (folder / "run").chmod(0o755)
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "experiments").symlink_to(ROOT / "experiments")
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


def run_page(path: Path, build: Path) -> tuple[int, int]:
    text = path.read_text()
    passed, failed = 0, 0
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
                    if not matches(block.code, output):
                        raise Failure(f"expected:\n{block.code}found:\n{output}")
                    passed += 1
            except (Failure, subprocess.TimeoutExpired) as failure:
                failed += 1
                print(f"{where}: {block.language} block failed\n{failure}")
        page.close()
    return passed, failed


def main(build: Path, names: list[str]) -> int:
    pages = [ROOT / name for name in names if name] or [
        page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if page.exists()]
    good, bad = 0, 0
    for path in pages:
        passed, failed = run_page(path, build)
        good, bad = good + passed, bad + failed
    print(f"blocks: {good} passed, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
