"""together.py ROOT OUT NAME MOST SOURCE...: files that are compiled in one, because copies of inline code cost half of a build.

Writes OUT/NAME_K.cc, each of which includes at most MOST of the sources, and prints the list of what is to be compiled:
these files and the sources that stay alone. A file that says the same as before is not touched.

Two sources A and B may stand in one file only if neither can notice the other:
- no name that A keeps for itself (in an unnamed namespace, static, an alias, a macro) is used by B;
- no name that is declared in a header of ours that A reads and B does not is used by B, so that the overloads that B can
  call stay the same;
and the same with A and B exchanged. To use a function is to call it; a local variable of that name is none. What stands
behind a dot or behind :: is a member or of another namespace, so it uses only macros. Both may have the same alias. All
headers of a file are read before the first source, so that no header sees what a source keeps for itself. Names are
compared as text, so some sources stay apart without need, and nobody has to think of other files when choosing a name.
"""

import functools
import re
import sys
from pathlib import Path

WORD = re.compile(r"\b[A-Za-z_]\w*")
USED = re.compile(r"(?:(?<![.:>\w])|(?<=[^-]>)|(?<=[^:]:)|(?<=\.\.\.)|(?<=\besscher::))([A-Za-z_]\w*)(\s*[(<])?")
QUIET = re.compile(
    r"""R"([^(\s]*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![\w'])'(?:\\.|[^'\\\n])+'""", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)[^\n]*$', re.M)
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.M)
NAMESPACE = re.compile(r"\b(?:inline\s+)?namespace\b([\w:\s]*)$")
TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>")
# What a declaration names: the word before its brackets or its end, or after the word that opens it.
FUNCTION = re.compile(r"(?<![\w:.])([A-Za-z_]\w*)\s*\(")
OTHER = re.compile(r"(?<![\w:.])([A-Za-z_]\w*)\s*(?=[{=;\[,:]|$)|\b(?:struct|class|enum|union|using|namespace|concept)\s+([A-Za-z_]\w*)")
ALIAS = re.compile(r"\s*(?:using|namespace)\s+\w+\s*=")
GRAMMAR = set("""auto bool char const constexpr default delete double else enum explicit float for if inline int long
 namespace noexcept operator override return short static std string struct switch template typename union unsigned
 using vector void while size_t class concept requires decltype esscher""".split())


class Names:
    """Declared names: of functions, aliases with what they stand for, and others."""

    def __init__(self):
        self.functions, self.others, self.aliases, self.directive = set(), set(), {}, False

    def add(self, text):
        if re.match(r"\s*using\s+namespace\b", text):
            self.directive = True
            return
        if ALIAS.match(text):
            name, value = text.split("=", 1)
            self.aliases[name.split()[-1]] = "".join(value.split())
            return
        text = text.split("=", 1)[0]  # no name is declared in a value
        self.functions |= set(FUNCTION.findall(text)) - GRAMMAR
        self.others |= {word for pair in OTHER.findall(text) for word in pair if word} - GRAMMAR

    def all(self):
        return self.functions | self.others | self.aliases.keys()


def declared(text):
    """What the text declares outside of functions and classes: (what a file keeps for itself, what others see)."""
    own, shared = Names(), Names()
    text = TEMPLATE.sub(" ", text)
    start, stack = 0, []  # of open braces: "own", "open" (other namespaces) or None (anything else)
    piece = []

    def end():
        nonlocal piece
        whole = "".join(piece)
        kept = "own" in stack or re.match(r"\s*static\b", whole) or ALIAS.match(whole)
        (own if kept else shared).add(whole)
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


class File:
    """One file as text: what it keeps for itself, what it shows to others, its macros, and the words that it uses."""

    def __init__(self, root, path):
        raw = path.read_text()
        beside = path.parent.relative_to(root)
        self.ours = [(beside / name).as_posix() if (path.parent / name).is_file() else name
                     for name, _ in INCLUDE.findall(raw) if name.endswith(".h")]
        self.others = [other for _, other in INCLUDE.findall(raw) if other]
        text = QUIET.sub(" ", INCLUDE.sub("", raw))
        self.macros = set(DEFINE.findall(text))
        self.words = set(WORD.findall(text))
        used = USED.findall(text)
        self.used = {word for word, _ in used}
        self.called = {word for word, call in used if call}
        text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
        self.own, self.shared = declared(text)
        # A kernel includes itself, and a using directive outside of functions reaches the sources after it.
        self.alone = "hwy/foreach_target.h" in self.ours or self.own.directive or self.shared.directive


read = functools.cache(File)


@functools.cache
def headers(root, path):
    """Every header of ours that this file reads, directly or not."""
    found = set()
    for name in read(root, path).ours:
        header = root / name
        if header.is_file():
            found |= {header} | headers(root, header)
    return frozenset(found)


class Source:
    def __init__(self, root, path):
        self.root, self.path = root, path
        self.file = read(root, path)
        self.headers = headers(root, path)
        self.aliases = dict(self.file.own.aliases)
        for header in self.headers:
            self.aliases |= read(root, header).own.aliases

    def unseen_by(self, other):
        mine, theirs = self.file, other.file
        if any(name in theirs.used and other.aliases.get(name) != value for name, value in self.aliases.items()):
            return False
        if (mine.own.functions & theirs.called or mine.own.others & theirs.used or mine.macros & theirs.words or
                mine.own.all() & (theirs.own.functions | theirs.own.others)):
            return False
        for header in self.headers - other.headers:
            seen = read(self.root, header)
            functions, others = seen.shared.functions | seen.own.functions, seen.shared.others | seen.own.others
            if functions & theirs.called or others & theirs.used or seen.macros & theirs.words:
                return False
        return True


def group(root, paths, most):
    groups = []
    for path in sorted(paths):
        source = Source(root, path)
        for members in groups if not source.file.alone else ():
            if (len(members) < most and not members[0].file.alone and
                    all(source.unseen_by(member) and member.unseen_by(source) for member in members)):
                members.append(source)
                break
        else:
            groups.append([source])
    return groups


def text_of(root, members):
    lines = ["// Written by cmake/together.py."]
    for kind in ("others", "ours"):
        names = dict.fromkeys(name for member in members for name in getattr(member.file, kind))
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
