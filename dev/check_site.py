#!/usr/bin/env python3
# check_site.py - fails when a page of the site links to what is not there, or loads something from elsewhere.
# SPDX-License-Identifier: MIT
"""Usage: check_site.py FOLDER

Each link inside FOLDER, and each picture, style and script, leads to a file, and to a heading where it names one. Nothing is
loaded from another host: pages may link there only.
"""
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("video", "src"),
         ("audio", "src"), ("object", "data"), ("embed", "src"), ("image", "href"), ("use", "href")}
STYLE_URL = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)")


class Page(HTMLParser):
    """What a page links to, what it loads, and the names in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.names = [], [], {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.names.add(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")
            elif (tag, name) in LOADS:
                self.loads.append(value or "")
            elif name == "style":
                self.loads += [one or other for one, other in STYLE_URL.findall(value or "")]


def problems(root):
    pages = {path: Page(path.read_text()) for path in sorted(root.rglob("*.html"))}
    if not pages:
        yield root, "has no pages"
    wanted = [(path, link, False) for path, page in pages.items() for link in page.links]
    wanted += [(path, link, True) for path, page in pages.items() for link in page.loads]
    wanted += [(path, one or other, True) for path in sorted(root.rglob("*.css"))
               for one, other in STYLE_URL.findall(path.read_text())]
    for path, link, loaded in wanted:
        parts = urlsplit(link)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            if loaded:
                yield path, f"loads {link} from elsewhere"
            continue
        name = unquote(parts.path)
        target = path if not name else (root / name.lstrip("/") if name.startswith("/") else path.parent / name).resolve()
        if target.is_dir():
            target /= "index.html"
        if not target.is_file() or not target.is_relative_to(root):
            yield path, f"{link} leads nowhere"
        elif target in pages and not loaded and unquote(parts.fragment) not in pages[target].names:
            yield path, f"{link} has no such heading"


def main():
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print(__doc__)
        return 2
    root = Path(sys.argv[1]).resolve()
    found = sorted({f"{path.relative_to(root)}: {problem}" for path, problem in problems(root)})
    print("".join(line + "\n" for line in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
