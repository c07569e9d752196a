"""together.py ROOT OUT NAME MOST SOURCE...: files that are compiled in one, because copies of inline code cost half of a build.

Writes OUT/NAME_K.cc, each of which includes at most MOST of the sources, and prints the list of what is to be compiled:
these files and the sources that stay alone. A file that says the same as before is not touched.

Two sources A and B may stand in one file only if neither can notice the other:
- no name that A keeps for itself (in an unnamed namespace, static, an alias, a macro) is a word of B;
- no name that is declared in a header of ours that A reads and B does not is a word of B, so that the overloads that B
  can call stay the same;
and the same with A and B exchanged. All headers of a file are read before the first source, so that no header sees what
a source keeps for itself. A word in a comment or in a string does not count. Words are compared as text, so some
sources stay apart without need, and nobody has to think of other files when choosing a name.
"""

import functools
import re
import sys
from pathlib import Path

WORD = re.compile(r"[A-Za-z_]\w*")
QUIET = re.compile(
    r"""R"([^(\s]*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![\w'])'(?:\\.|[^'\\\n])+'""", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)[^\n]*$', re.M)
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.M)
NAMESPACE = re.compile(r"\b(?:inline\s+)?namespace\b([\w:\s]*)$")
# What a declaration names: the word before its brackets or its value, or after the word that opens it.
DECLARED = re.compile(r"([A-Za-z_]\w*)\s*(?=[({=;\[,:])|\b(?:struct|class|enum|union|using|namespace|concept)\s+([A-Za-z_]\w*)")
GRAMMAR = set("""auto bool char const constexpr default delete double else enum explicit float for if inline int long
 namespace noexcept operator override return short static std string struct switch template typename union unsigned
 using vector void while size_t class concept requires decltype esscher""".split())


def declared(text):
    """Names that the text declares outside of functions and classes: (those that a file keeps for itself, the others)."""
    own, shared = set(), set()
    start, stack = 0, []  # of open braces: "own", "open" (other namespaces) or None (anything else)
    piece = []

    def end():
        nonlocal piece
        names = {word for pair in DECLARED.findall("".join(piece)) for word in pair if word} - GRAMMAR
        kept = "own" in stack or any(re.match(r"\s*(?:template\s*<.*>\s*)?static\b", part) for part in piece)
        alias = any(re.match(r"\s*(?:using|namespace)\s+\w+\s*=", part) for part in piece)
        (own if kept or alias else shared).update(names)
        piece = []

    depth = 0  # of round brackets
    for mark in re.finditer(r"[{}();]", text):
        at = mark.start()
        inside = None not in stack and depth == 0
        if inside:
            piece.append(text[start:at])
        start = mark.end()
        kind = mark.group()
        if kind == "(":
            if inside:
                piece.append("(")
            depth += 1
        elif kind == ")":
            depth -= 1
        elif kind == "{":
            space = NAMESPACE.search("".join(piece)) if inside else None
            if space:
                stack.append("open" if space.group(1).strip() else "own")
                piece = []
            else:
                if inside:
                    piece.append("{")
                    end()
                stack.append(None)
        elif kind == "}":
            if None not in stack:
                end()
            stack.pop()
        elif inside:
            piece.append(";")
            end()
    return own, shared


@functools.cache
def read(root, path):
    """(own names, shared names, words, our headers as seen from the root, other headers) of one file."""
    raw = path.read_text()
    beside = path.parent.relative_to(root)
    ours = [(beside / name).as_posix() if (path.parent / name).is_file() else name
            for name, _ in INCLUDE.findall(raw) if name.endswith(".h")]
    others = [other for ours, other in INCLUDE.findall(raw) if other]
    text = QUIET.sub(" ", INCLUDE.sub("", raw))
    macros = set(DEFINE.findall(text))
    words = set(WORD.findall(text))
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    own, shared = declared(text)
    return own | macros, shared | macros, words, ours, others


@functools.cache
def headers(root, path):
    """Every header of ours that this file reads, directly or not."""
    found = set()
    for name in read(root, path)[3]:
        header = root / name
        if header.is_file():
            found |= {header} | headers(root, header)
    return frozenset(found)


class Source:
    def __init__(self, root, path):
        self.root, self.path = root, path
        self.own, _, self.words, self.ours, self.others = read(root, path)
        self.headers = headers(root, path)
        # A kernel includes itself, and a using directive brings names that no list knows.
        text = QUIET.sub(" ", INCLUDE.sub("", path.read_text()))
        self.alone = "hwy/foreach_target.h" in self.others + self.ours or bool(re.search(r"\busing\s+namespace\b", text))

    def unseen_by(self, other):
        if self.own & other.words:
            return False
        return not any(read(self.root, header)[1] & other.words for header in self.headers - other.headers)


def group(root, paths, most):
    groups = []
    for path in sorted(paths):
        source = Source(root, path)
        for members in groups if not source.alone else ():
            if (len(members) < most and not members[0].alone and
                    all(source.unseen_by(member) and member.unseen_by(source) for member in members)):
                members.append(source)
                break
        else:
            groups.append([source])
    return groups


def text_of(root, members):
    lines = ["// Written by cmake/together.py."]
    for kind in ("others", "ours"):
        names = dict.fromkeys(name for member in members for name in getattr(member, kind))
        lines += [f"#include <{name}>" if kind == "others" else f'#include "{name}"' for name in names]
    lines += [f'#include "{member.path.relative_to(root).as_posix()}"' for member in members]
    return "\n".join(lines) + "\n"


def main():
    root, out, name, most = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    out.mkdir(parents=True, exist_ok=True)
    answer = []
    for members in group(root, map(Path, sys.argv[5:]), most):
        if len(members) == 1:
            answer.append(str(members[0].path))
            continue
        file = out / f"{name}_{members[0].path.parent.name}_{members[0].path.stem}.cc"
        text = text_of(root, members)
        if not file.is_file() or file.read_text() != text:
            file.write_text(text)
        answer.append(str(file))
    print(";".join(answer), end="")


if __name__ == "__main__":
    main()
