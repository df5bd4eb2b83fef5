"""Makes the built site small: a visit loads what it shows, and the search when somebody searches.

The theme brings its whole stylesheet, maps of its sources and word lists for thirty languages, and
fetches the index of the search with each page (`search.highlight` in mkdocs.yml would, too). A
change in the theme that this file does not expect fails the build.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

# How much of a part of a page is searched.
_SEARCHED, _SEARCHED_OF_ENTRY = 400, 90
# The theme waits for the search to be opened only where a page comes from a folder.
_AT_ONCE, _WHEN_OPENED = '$(location.protocol!=="file:")', "$(!1)"
_USED = re.compile(r'\bclass=(?:"([^"]*)"|([^\s>"]+))')
_CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
_VARIABLE = re.compile(r"(--[\w-]+):url\([^)]*\);?")


def site(folder: Path) -> None:
    """Make a built site smaller, in its folder."""
    index(folder / "search")
    (bundle,) = (folder / "assets" / "javascripts").glob("bundle.*.min.js")
    scripts = bundle.read_text(encoding="utf-8")
    if scripts.count(_AT_ONCE) != 1:
        raise RuntimeError("the theme loads its search in another way: see website/smaller.py")
    bundle.write_text(_without_map(scripts.replace(_AT_ONCE, _WHEN_OPENED)), encoding="utf-8")
    known = set(re.findall(r"[\w-]+", scripts))
    for page in folder.rglob("*.html"):
        for quoted, bare in _USED.findall(page.read_text(encoding="utf-8")):
            known.update(quoted.split() or [bare])
    for path in (folder / "assets" / "stylesheets").glob("*.css"):
        text = stylesheet(_without_map(path.read_text(encoding="utf-8")), known)
        path.write_text(text, encoding="utf-8")
    for path in (folder / "assets").rglob("*.map"):
        path.unlink()
    shutil.rmtree(folder / "assets" / "javascripts" / "lunr", ignore_errors=True)


def index(folder: Path) -> None:
    """Keep names, headings, and how each part begins; once for a server, once for a folder."""
    path = folder / "search_index.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    for part in found["docs"]:
        is_entry = part["location"].startswith("reference/perspex")
        # Of an entry, what follows the signature.
        text = re.sub(r"<pre>.*?</pre>", "", part["text"], flags=re.DOTALL)
        part["text"] = _whole(text, _SEARCHED_OF_ENTRY if is_entry else _SEARCHED)
    text = json.dumps(found, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".js").write_text(f"var __index={text}", encoding="utf-8")


def _whole(text: str, most: int) -> str:
    """The beginning of a text, without markup."""
    plain = " ".join(re.sub(r"<[^>]+>", " ", text).split())
    return plain if len(plain) <= most else plain[:most].rpartition(" ")[0]


def _without_map(text: str) -> str:
    return re.sub(r"\s*(//|/\*)# sourceMappingURL=\S+( ?\*/)?\s*$", "\n", text)


def stylesheet(text: str, known: set[str]) -> str:
    """A stylesheet without the rules for classes that nothing has.

    Args:
      text: the sheet, without comments.
      known: the classes of all pages, and the words of all scripts.
    """
    kept = _rules(text, known)
    # Icons of what is not there: variables that no rule reads.
    read = set(re.findall(r"var\((--[\w-]+)", kept))
    return _VARIABLE.sub(lambda found: found[0] if found[1] in read else "", kept)


def _rules(text: str, known: set[str]) -> str:
    kept, at = [], 0
    while (brace := text.find("{", at)) >= 0:
        head = text[at:brace]
        end = _closing(text, brace)
        body = text[brace + 1 : end]
        at = end + 1
        if re.match(r"\s*@(media|supports|layer)", head):
            inner = _rules(body, known)
            kept += [f"{head}{{{inner}}}"] if inner else []
            continue
        if not head.lstrip().startswith("@"):
            chosen = [one for one in _selectors(head) if _is_used(one, known)]
            if not chosen:
                continue
            head = ",".join(chosen)
        kept.append(f"{head}{{{body}}}")
    return "".join([*kept, text[at:]])


def _is_used(selector: str, known: set[str]) -> bool:
    # What stands in `:not(...)` or `:is(...)` need not be there.
    plain = re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", selector)
    return all(name in known for name in _CLASS.findall(plain))


def _selectors(head: str) -> list[str]:
    """The parts of a list of selectors, divided at the commas outside of parentheses."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(head):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            parts.append(head[start:place])
            start = place + 1
    return [*parts, head[start:]]


def _closing(text: str, brace: int) -> int:
    depth, quote, place = 0, "", brace
    while True:
        sign = text[place]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return place
        place += 1
