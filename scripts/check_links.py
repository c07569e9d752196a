#!/usr/bin/env python3
"""check_links.py SITE: every relative link and anchor of the built pages exists, and no page loads
anything from the network."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        given = dict(attrs)
        self.anchors.update(given[key] for key in ("id", "name") if given.get(key))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        for key in ("src", "href"):
            if tag in ("script", "img", "link") and given.get(key) and given.get("rel") != "canonical":
                self.loads.append(given[key])


def problems(site: Path) -> tuple[int, list[str]]:
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    checked, wrong = 0, []
    for path, page in pages.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    wrong.append(f"{path}: loads {link} from the network")
                continue
            checked += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{path}: {link} leads nowhere")
            elif parts.fragment and target in pages and parts.fragment not in pages[target].anchors:
                wrong.append(f"{path}: {link} has no such anchor")
    return checked, wrong


if __name__ == "__main__":
    count, found = problems(Path(sys.argv[1]).resolve())
    print("\n".join(found))
    print(f"links: {count - len(found)} passed, {len(found)} failed")
    sys.exit(bool(found))
