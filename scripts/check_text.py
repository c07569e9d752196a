#!/usr/bin/env python3
"""check_text.py SITE: what a page says in its source, the built page says too. Formulas are compared one by one (KaTeX
keeps the TeX of each in the MathML that screen readers read), and so is every word of text and code, so that nothing
like <a,z'> is taken for a tag and lost. Mathematics in ASCII is found and refused."""

import re
import sys
from difflib import SequenceMatcher
from html.parser import HTMLParser
from pathlib import Path

from doc_blocks import FORMULA, INLINE_CODE, blank, blocks, formulas

ROOT = Path(__file__).resolve().parents[1]
VOID = {"br", "hr", "img", "input", "meta", "link"}
# Text that comes from the program and from docstrings, which speak to terminals.
GENERATED = {"reference/columns.md"}
MADE = re.compile(r"^<!-- made by .*?^<!-- end -->", re.M | re.S)
ASCII = re.compile(r"""\b(?:Lambda|Gamma|Sigma)\(|\w\^[({\w-]|\bsqrt\b|<[a-z],\s?\w|\bint_0|\btau²|\b(?:mu|omega|xi|nu)_\w
                   |\bT_hat\b|\bR\^d\b|\bE\||\b(?:grad|Hess)\s(?:Lambda|R)\b""", re.X)
FRAGILE = re.compile(r"\\[^a-zA-Z\s]|(?<![\\lr])\|")


class Article(HTMLParser):
    """The words of the article of a page, with a formula as the word ⟦TeX⟧."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words, self.formulas = [], []
        self.inside, self.annotation, self.unseen = False, False, 0
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        given = dict(attrs)
        if tag == "article":
            self.inside = True
        if self.unseen and tag not in VOID:
            self.unseen += 1
        elif given.get("class") in ("formula line", "formula block", "label"):
            self.unseen = 1
        if tag == "annotation":
            self.annotation = True
        if tag == "img" and self.inside:
            self.words += words(given.get("alt", ""))

    def handle_endtag(self, tag) -> None:
        if tag == "article":
            self.inside = False
        if tag == "annotation":
            self.annotation = False
        if self.unseen and tag not in VOID:
            self.unseen -= 1

    def handle_data(self, data) -> None:
        if self.annotation:
            self.formulas.append(data)
            self.words.append(f"⟦{data}⟧")
        elif self.inside and not self.unseen:
            self.words += words(data)


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+|[<>=+≤≥·±]", text)


def said(source: str) -> list[str]:
    """The words of a page of Markdown, in order, as a reader should see them."""
    kept = {}

    def keep(found: list[str]) -> str:
        kept[len(kept)] = found
        return f" ⟦{len(kept) - 1}⟧ "

    cuts = [(b.start, b.end, words(b.code)) for b in blocks(source) if b.kind != "math"]
    cuts += [(f.start, f.end, [f"⟦{f.tex}⟧"]) for f in formulas(source)]
    for start, end, found in sorted(cuts, reverse=True):
        source = source[:start] + keep(found) + source[end:]
    source = INLINE_CODE.sub(lambda m: keep(words(m[2])), source)
    source = re.sub(r"<!--.*?-->|<a id=\"[\w-]+\"></a>", "", source, flags=re.S)
    source = re.sub(r"^\s*\|[-| :]+\|\s*$", "", source, flags=re.M)  # the line under the head of a table
    source = re.sub(r"^(#+|\d+\.|>|!!! .*|[-+*]) ", "", source, flags=re.M)
    source = re.sub(r"(?<!\\)\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r" \1 ", source)  # a link is its words
    found = re.findall(r"⟦\d+⟧|[^\W_]+|[<>=+≤≥·±]", source)
    return [word for part in found for word in (kept[int(part[1:-1])] if part.startswith("⟦") else [part])]


def complaints(name: str, source: str) -> list[str]:
    """What is wrong with a source before it is built.

    >>> complaints("p", "Here e^(tau) is $e^\\tau$, and `e^(tau)` is code.")
    ['p:1: "e^(" is mathematics in ASCII; write it between $ and $']
    >>> complaints("p", "The pair $(a\\,b)$.")
    ['p: $(a\\\\,b)$ holds \\\\,, which Markdown on GitHub changes']
    """
    prose = blank(source, [(b.start, b.end) for b in blocks(source)] + [m.span() for m in MADE.finditer(source)])
    prose = blank(prose, [m.span() for m in INLINE_CODE.finditer(prose)])
    wrong = [f"{name}: ${m.group(1)}$ holds {FRAGILE.search(m.group(1))[0]}, which Markdown on GitHub changes"
             for m in FORMULA.finditer(prose) if FRAGILE.search(m.group(1))]
    prose = blank(prose, [m.span() for m in FORMULA.finditer(prose)])
    prose = re.sub(r"\]\([^)]*\)", "", prose)
    for number, line in enumerate(prose.splitlines(), 1):
        if "$" in line:
            wrong.append(f"{name}:{number}: a $ without its partner")
        if name not in GENERATED and ASCII.search(line):
            wrong.append(f"{name}:{number}: \"{ASCII.search(line)[0]}\" is mathematics in ASCII; write it between $ and $")
    return wrong


def compare(name: str, source: str, page: Article) -> list[str]:
    """How a page differs from its source.

    >>> formula = '<span class="formula line"><math><annotation>a_b</annotation></math><span>ab</span></span>'
    >>> compare("p", "Put $a_b$ <z>.", Article(f"<article>Put {formula} &lt;z&gt;.</article>"))
    []
    >>> compare("p", "Put $a_b$ <z>.", Article(f"<article>Put {formula} <z>.</article>"))
    ['p: the source says "Put ⟦a_b⟧ < z >", the page "Put ⟦a_b⟧"']
    >>> compare("p", "Put $a_b$.", Article("<article>Put $a_b$.</article>"))
    ['p: formulas of the source and of the page differ: a_b']
    """
    wanted, found = [f.tex for f in formulas(source)], page.formulas
    if wanted != found:
        lost = [tex for tex in wanted if tex not in found] or ["their order"]
        return [f"{name}: formulas of the source and of the page differ: {lost[0]}"]
    one, two = said(source), page.words
    for tag, i, j, k, m in SequenceMatcher(None, one, two, autojunk=False).get_opcodes() if one != two else []:
        if tag != "equal":
            return [f"{name}: the source says \"{' '.join(one[max(0, i - 4):j])}\", the page \"{' '.join(two[max(0, k - 4):m])}\""]
    return []


def main(site: Path) -> int:
    wrong, pages, count = [], 0, 0
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name, source = str(path.relative_to(ROOT / "docs")), path.read_text()
        built = site / (name.removesuffix("index.md") + "index.html" if path.name == "index.md"
                        else name.removesuffix(".md") + "/index.html")
        found = complaints(name, source) + compare(name, source, Article(built.read_text()))
        pages, count, wrong = pages + 1, count + len(formulas(source)), wrong + found
    print("\n".join(wrong))
    print(f"{count} formulas on {pages} pages")
    print(f"text: {pages - len({w.split(':')[0] for w in wrong})} passed, {len({w.split(':')[0] for w in wrong})} failed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
