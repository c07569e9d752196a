"""What mkdocs does with our pages beyond Markdown: formulas are set by KaTeX, code is coloured by Pygments, output is
told apart from input, wide tables scroll, and the notebooks of examples/ become pages. Everything happens at build time; the site loads nothing from elsewhere.

Code and formulas are cut out before Markdown sees the page, so that no underscore, bracket or < of theirs is taken for
markup, and put back into the finished HTML. A mark ⟦c3⟧ stands for code, ⟦3⟧ for a formula."""

import base64
import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "scripts"))
from doc_blocks import INLINE_CODE, Block, blocks, formulas  # noqa: E402

KATEX = Path("/usr/share/javascript/katex")
LEXERS = {"sh": "bash", "text": "text", "": "text"}
LABELS = {"bash": "shell", "sh": "shell", "python": "Python", "pycon": "Python", "py": "signature", "cpp": "C++", "toml": "TOML", "json": "JSON"}
NOTEBOOKS = HERE.parents[1] / "examples"
# The page of `esscher explore`; the site has it where scripts/explorer has built it.
EXPLORER = HERE.parents[1] / "build/explore/explore.html"
node = None
pages: dict = {}


def set_formulas(found: list) -> list[str]:
    """The HTML of each formula."""
    global node
    if not found:
        return []
    if node is None:
        node = subprocess.Popen(["node", HERE / "formulas.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    node.stdin.write(json.dumps([[f.tex, f.display] for f in found]) + "\n")
    node.stdin.flush()
    answer = json.loads(node.stdout.readline())
    wrong = [a["error"] for a in answer if isinstance(a, dict)]
    if wrong:
        raise PluginError("KaTeX: " + "; ".join(wrong))
    return answer


def code_html(block: Block) -> str:
    lexer = get_lexer_by_name(LEXERS.get(block.language, block.language))
    inner = highlight(block.code, lexer, HtmlFormatter(nowrap=True))
    if block.kind == "output":
        label = "output"
    elif block.kind == "file":
        label = block.title.removeprefix("file=")
    else:
        label = LABELS.get(block.language, "")
    kind = "output" if block.kind == "output" or not label else "input"
    head = f'<span class="label">{html.escape(label)}</span>' if label else ""
    return f'<div class="code {kind}">{head}<pre><code>{inner}</code></pre></div>'


def cut(markdown: str) -> tuple[str, list, list]:
    """The page with marks, its code as HTML, its formulas."""
    code, maths = [b for b in blocks(markdown) if b.kind != "math"], formulas(markdown)
    spans = [(b.start, b.end, f"\n⟦c{i}⟧\n") for i, b in enumerate(code)]
    spans += [(f.start, f.end, f"\n⟦{i}⟧\n" if f.display else f"⟦{i}⟧") for i, f in enumerate(maths)]
    for start, end, mark in sorted(spans, reverse=True):
        markdown = markdown[:start] + mark + markdown[end:]
    return without_tags(markdown), [code_html(b) for b in code], maths


def without_tags(markdown: str) -> str:
    """A < that opens neither an anchor nor a comment is a character: <U z, z'> is no tag."""
    parts, end = [], 0
    for code in [*INLINE_CODE.finditer(markdown), None]:
        prose = markdown[end:code.start() if code else None]
        parts += [re.sub(r"<(?!a id=|/a>|!--|https?:)", "&lt;", prose), code[0] if code else ""]
        end = code.end() if code else end
    return "".join(parts)


def on_config(config):
    text = (HERE.parents[1] / "esscher/base/version.h").read_text()
    config.extra["version"] = re.search(r'kVersion = "(.*)"', text)[1]
    config.extra["explorer"] = EXPLORER.exists()
    return config


def notebook_markdown(path: Path) -> str:
    """A notebook as Markdown, with the outputs that are stored in it."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            said = "".join(output.get("text", data.get("text/plain", ""))).strip()
            if "image/svg+xml" in data:
                packed = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
                parts.append(f"![{said}](data:image/svg+xml;base64,{packed})")
            elif "image/png" in data:
                parts.append(f"![Picture]({'data:image/png;base64,' + ''.join(data['image/png']).strip()})")
            else:
                parts.append(f"```text\n{said}\n```")
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\nThis is the notebook `examples/{path.name}`.\n{rest}\n"


def on_files(files, config):
    """The notebooks as pages; a link to ../examples/NAME.ipynb, which GitHub shows, leads to them."""
    made = HERE.parents[1] / "build/notebooks"
    (made / "notebooks").mkdir(parents=True, exist_ok=True)
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        name = f"notebooks/{path.stem}.md"
        (made / name).write_text(notebook_markdown(path))
        files.append(File(name, str(made), config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_markdown(markdown, page, **_):
    markdown = re.sub(r"\]\(((?:\.\./)*)\.\./examples/(\w+)\.ipynb\)", r"](\1notebooks/\2.md)", markdown)
    markdown, code, maths = cut(markdown)
    if re.search(r"^#.*⟦", markdown, re.M):
        raise PluginError(f"{page.file.src_path}: a heading holds a formula")
    pages[page.file.src_path] = (code, maths, set_formulas(maths))
    return markdown


def for_phones(image: re.Match) -> str:
    """The image, with the narrow picture that scripts/pictures put beside it for phones."""
    narrow = f"images/{image[1]}-narrow.svg"
    if not (HERE.parents[1] / "docs" / narrow).exists():
        return image[0]
    place = re.search(r'src="([^"]*)images/', image[0])[1]
    return f'<picture><source media="(max-width: 36rem)" srcset="{place}{narrow}">{image[0]}</picture>'


def on_page_content(content, page, **_):
    code, maths, _ = pages[page.file.src_path]
    content = re.sub(r"<p>⟦c(\d+)⟧</p>", lambda m: code[int(m[1])], content)
    # The search index reads this: the TeX of a formula can be searched for.
    content = re.sub(r"⟦(\d+)⟧", lambda m: f'<span class="tex">⟦{m[1]}⟧{html.escape(maths[int(m[1])].tex)}</span>', content)
    content = re.sub(r'<img [^>]*src="[^"]*images/([^"]+)\.svg"[^>]*/?>', for_phones, content)
    # A browser breaks a line after a hyphen, also after those of --out; what is short stays in one piece, a 2e-08 in a table too.
    content = re.sub(r"<code>([^<]{1,28})</code>", r'<code class="short">\1</code>', content)
    # In a table of Markdown a bar inside code is written \|, as GitHub reads it.
    content = re.sub(r"<code[^>]*>[^<]*</code>", lambda m: m[0].replace("\\|", "|"), content)
    content = re.sub(r"<td>([^<]{1,14})</td>", r'<td class="short">\1</td>', content)
    return content.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")


def on_post_page(output, page, **_):
    _, maths, shown = pages[page.file.src_path]

    def formula(m) -> str:
        kind = "block" if maths[int(m[1])].display else "line"
        return f'<span class="formula {kind}">{shown[int(m[1])]}</span>'

    return re.sub(r'<span class="tex">⟦(\d+)⟧.*?</span>', formula, output, flags=re.S)


def on_post_build(config, **_):
    global node
    target = Path(config["site_dir"]) / "katex"
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    style = (KATEX / "katex.min.css").read_text()
    # Browsers that have MathML and WebAssembly read woff2; the other formats stay away.
    (target / "katex.css").write_text(re.sub(r",url\(fonts/[^)]*\.(?:woff|ttf)\) format\([^)]*\)", "", style))
    if EXPLORER.exists():
        shutil.copy(EXPLORER, Path(config["site_dir"]) / "explorer.html")
    for font in (KATEX / "fonts").glob("*.woff2"):
        shutil.copy(font, target / "fonts")
    if node is not None:
        node.stdin.close()
        node.wait()
        node = None
