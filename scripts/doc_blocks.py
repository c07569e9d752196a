"""The blocks and formulas of a page of documentation; docs/about.md says what they mean.

blocks(text) yields the fenced blocks in order, formulas(text) the formulas. The site (web/site/hooks.py) draws them,
scripts/check_blocks.py runs the blocks and scripts/check_text.py compares the formulas with the built page."""

import re
from dataclasses import dataclass
from typing import Iterator

FENCE = re.compile(r"^```([\w+-]*)[ ]*([^\n]*)\n(.*?)^```$", re.M | re.S)
INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
FORMULA = re.compile(r"(?<![\\$\w])\$(?![\s$])((?:[^$\n]|\n(?!\s*\n))+?)(?<![\s\\])\$(?![\w$])")
RUN = ("bash", "python", "cpp")


@dataclass
class Block:
    """kind: run (executed), output (what the block before it prints), file (saved), math, shown."""

    kind: str
    language: str
    title: str
    code: str
    start: int
    end: int
    line: int


def blocks(text: str) -> Iterator[Block]:
    before = None
    for match in FENCE.finditer(text):
        language, title, code = match.groups()
        kind = "shown"
        if title.startswith("file="):
            kind = "file"
        elif language in RUN:
            kind = "run"
        elif language == "math":
            kind = "math"
        elif language == "text" and before and before.kind == "run" and not text[before.end:match.start()].strip():
            kind = "output"
        before = Block(kind, language, title, code, match.start(), match.end(), text.count("\n", 0, match.start()) + 1)
        yield before


@dataclass
class Formula:
    """TeX, shown in a line of its own or within a sentence."""

    tex: str
    display: bool
    start: int
    end: int


def formulas(text: str) -> list[Formula]:
    """Formulas in the order of the page: blocks of the language math, and $..$ outside of code."""
    found = [Formula(b.code.strip(), True, b.start, b.end) for b in blocks(text) if b.kind == "math"]
    hidden = blank(text, [(b.start, b.end) for b in blocks(text)])
    hidden = blank(hidden, [m.span() for m in INLINE_CODE.finditer(hidden)])
    found += [Formula(m.group(1), False, *m.span()) for m in FORMULA.finditer(hidden)]
    return sorted(found, key=lambda f: f.start)


def blank(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with these spans overwritten by spaces; places stay what they were."""
    for start, end in spans:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text
