"""The reference: a page for each public module, from the docstrings of what it really holds.

Public functions are often rows of a table or wrapped, so that no reader of source text finds their
signatures; here they are imported and asked. A module with many names is divided by subject, which
is the file that a function stands in. Each name has one entry, at its home; other modules that have
the same object lead there.

    python website/reference.py [NAME ...]

prints the pages of modules, or says how many names there are.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from docstrings import markdown, summary
from perspex.base.public import MODULES

# A page with more entries than this is divided by subject.
MOST = 70
# Modules come in this order, then by the alphabet.
FIRST = ["perspex", "perspex.numpy", "perspex.lax", "perspex.random", "perspex.nn"]
_WIDTH = 80


@dataclasses.dataclass(frozen=True)
class Entry:
    """A public name: where it is, what it is, and on which page it is described."""

    module: str
    name: str
    value: Any
    subject: str

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def page(self) -> str:
        """The page in the site, as mkdocs names its source."""
        within = f"{self.module}/{self.subject}" if self.subject else self.module
        return f"reference/{within}.md"


def public_names(module: ModuleType) -> list[str]:
    """The names that a module offers: those of `__all__`, or all that do not begin with `_`."""
    listed = getattr(module, "__all__", None)
    names = listed if listed is not None else [n for n in dir(module) if not n.startswith("_")]
    return sorted(
        {n for n in names if _is_offered(getattr(module, n, None), n)},
        key=lambda name: (name.lower(), name),
    )


def _is_offered(value: Any, name: str) -> bool:
    if inspect.ismodule(value) or name == "annotations":
        return False
    home = sys.modules.get(str(getattr(value, "__module__", None)))
    # What a module imports from Python's own library is not part of what it offers.
    is_pythons = home is not None and home.__name__.partition(".")[0] in sys.stdlib_module_names
    return not (is_pythons and getattr(home, name, None) is value)


def entries() -> list[Entry]:
    """All public names, each at its home and, where other modules have it too, there as well."""
    found = []
    for name in sorted(MODULES, key=lambda n: (FIRST.index(n) if n in FIRST else len(FIRST), n)):
        module = importlib.import_module(name)
        names = public_names(module)
        subjects = _subjects(module, names) if len(names) > MOST else {}
        found += [Entry(name, n, getattr(module, n), subjects.get(n, "")) for n in names]
    return found


def _subjects(module: ModuleType, names: list[str]) -> dict[str, str]:
    """The file that lists each name; a subject with few names joins the rest."""
    start = f"{module.__name__}."
    inside = {n: m for n, m in sys.modules.items() if n.startswith(start) and m is not None}
    chosen: dict[str, str] = {}
    for full, part in sorted(inside.items(), key=lambda item: (item[0] in MODULES, item[0])):
        for name in getattr(part, "__all__", ()):
            is_same = getattr(part, name, part) is getattr(module, name, None)
            if name in names and is_same and full not in MODULES:
                chosen.setdefault(name, full.removeprefix(start).replace(".", "-").strip("_"))
    for name in names:
        value = getattr(module, name)
        made_in = _file_module(value)
        if name not in chosen and made_in:
            chosen[name] = made_in
        if name.endswith("_p"):
            chosen[name] = "primitives"
        elif inspect.isclass(value):
            chosen.setdefault(name, "types")
    count = {s: list(chosen.values()).count(s) for s in set(chosen.values())}
    return {n: s if count.get(s := chosen.get(n, ""), 0) > 3 else "others" for n in names}


def _file_module(value: Any) -> str:
    code = getattr(inspect.unwrap(value) if callable(value) else None, "__code__", None)
    if code is None or "perspex/" not in code.co_filename:
        return ""
    parts = code.co_filename.rpartition("core/perspex/")[2] or code.co_filename
    return parts.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2].strip("_")


def navigation(made: dict[str, str]) -> list[Any]:
    """The pages of the reference as mkdocs' `nav`: modules, and the subjects inside large ones."""
    found: list[Any] = ["reference/index.md"]
    inside: dict[str, list[str]] = {}
    for page in made:
        module, slash, _ = page.removeprefix("reference/").partition("/")
        if slash:
            inside.setdefault(module, []).append(page)
        elif page != found[0]:
            found.append(page)
    large = [{module: sorted(pages, key=_index_first)} for module, pages in inside.items()]
    return [found[0], *large, *found[1:]]


def _index_first(page: str) -> tuple[bool, str]:
    return not page.endswith("/index.md"), page


# ---- pages --------------------------------------------------------------------------------------


def pages() -> Iterator[tuple[str, str]]:
    """The source of each page, by its name."""
    everything = entries()
    homes = _homes(everything)
    by_module: dict[str, list[Entry]] = {}
    for entry in everything:
        by_module.setdefault(entry.module, []).append(entry)
    yield "reference/index.md", _index(by_module)
    for module, inside in by_module.items():
        by_page: dict[str, list[Entry]] = {}
        for entry in inside:
            by_page.setdefault(entry.page, []).append(entry)
        if len(by_page) == 1:
            yield f"reference/{module}.md", _page(module, module, inside, homes)
            continue
        yield f"reference/{module}/index.md", _contents(module, by_page, homes)
        for page, some in sorted(by_page.items()):
            title = some[0].subject.replace("_", " ").replace("-", " ").capitalize()
            yield page, _page(module, title, some, homes)


def _homes(everything: list[Entry]) -> dict[int, Entry]:
    """The entry that describes an object: that of the module that it names, or the first."""
    found: dict[int, Entry] = {}
    for entry in everything:
        if not _is_described(entry.value):
            continue
        known = found.get(id(entry.value))
        is_home = getattr(entry.value, "__module__", None) == entry.module
        if known is None or (is_home and known.value.__module__ != known.module):
            found[id(entry.value)] = entry
    return found


def _is_described(value: Any) -> bool:
    """Whether a value has a docstring of its own; a number shares that of its type."""
    return callable(value) or inspect.isclass(value)


def _index(by_module: dict[str, list[Entry]]) -> str:
    rows = []
    for module, inside in by_module.items():
        target = f"{module}/index.md" if len({e.page for e in inside}) > 1 else f"{module}.md"
        says = summary(importlib.import_module(module).__doc__ or "")
        rows.append(f"| [`{module}`]({target}) | {len(inside):,} | {_cell(says)} |")
    total = sum(len(inside) for inside in by_module.values())
    return (
        "---\ntitle: Functions\n---\n\n# Functions by module\n\n"
        f"The {len(by_module)} public modules of Perspex have {total:,} names. "
        "In the Perspex kernel, and after `import perspex.as_jax`, the same modules answer to "
        "`jax` instead of `perspex`.\n\n| module | names | |\n|---|--:|---|\n" + "\n".join(rows)
    )


def _contents(module: str, by_page: dict[str, list[Entry]], homes: dict[int, Entry]) -> str:
    text = importlib.import_module(module).__doc__ or ""
    parts = [f"---\ntitle: {module}\n---\n\n# `{module}`\n", markdown(text)]
    for page, inside in sorted(by_page.items()):
        title = inside[0].subject.replace("_", " ").replace("-", " ").capitalize()
        file = page.rpartition("/")[2]
        parts.append(f"## [{title}]({file})\n\n| | |\n|---|---|")
        parts[-1] += "".join(
            f"\n| [`{e.name}`]({file}#{e.path}) | {_cell(_says(e, homes))} |" for e in inside
        )
    return "\n\n".join(parts)


def _page(module: str, title: str, inside: list[Entry], homes: dict[int, Entry]) -> str:
    head = f"`{module}`" if title == module else f"`{module}`: {title[:1].lower()}{title[1:]}"
    text = (importlib.import_module(module).__doc__ or "") if title == module else ""
    parts = [f"---\ntitle: {title}\n---\n\n# {head}\n", markdown(text)]
    parts += [_entry(entry, homes) for entry in inside]
    return "\n\n".join(parts)


def _says(entry: Entry, homes: dict[int, Entry]) -> str:
    if not _is_described(entry.value):
        return f"`{_short(repr(entry.value))}`"
    return summary(_doc(entry.value))


def _entry(entry: Entry, homes: dict[int, Entry]) -> str:
    head = f"## `{entry.name}` {{ #{entry.path} }}"
    home = homes.get(id(entry.value))
    if home is not None and home is not entry:
        up = "../" * entry.page.removeprefix("reference/").count("/")
        target = f"{up}{home.page.removeprefix('reference/')}#{home.path}"
        return f"{head}\n\nThe same as [`{home.path}`]({target}): {summary(_doc(entry.value))}"
    if not _is_described(entry.value):
        kind = type(entry.value).__name__
        return f"{head}\n\n`{_short(repr(entry.value))}`, of the type `{kind}`."
    parts = [head]
    shown = signature(entry.value, entry.name)
    if shown:
        parts.append(f"```python\n{shown}\n```")
    parts.append(markdown(_doc(entry.value)))
    if inspect.isclass(entry.value):
        parts += _members(entry.value)
    return "\n\n".join(part for part in parts if part)


def _members(kind: type) -> list[str]:
    """What a class adds to its bases, as a table of first sentences."""
    rows = []
    for name, raw in sorted(vars(kind).items()):
        value = getattr(raw, "__func__", getattr(raw, "fget", raw))
        text = inspect.getdoc(value) if callable(value) else ""
        if not name.startswith("_") and text:
            mark = "" if isinstance(raw, property) else "()"
            rows.append(f"| `.{name}{mark}` | {_cell(summary(text))} |")
    return ["| | |\n|---|---|\n" + "\n".join(rows)] if rows else []


def _doc(value: Any) -> str:
    """The docstring of a value, without the one that Python gives every object of its type."""
    own = inspect.getdoc(value) or ""
    if not inspect.isclass(value) and own == (inspect.getdoc(type(value)) or ""):
        return getattr(value, "__doc__", "") or ""
    return own


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _short(text: str) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", " ".join(text.split())).replace("`", "'")
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def signature(value: Callable[..., Any], name: str) -> str:
    """A call with its parameters, on several lines if one is too long; empty if Python has none."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    words, seen = [], {p.kind for p in found.parameters.values()}
    star = inspect.Parameter.VAR_POSITIONAL in seen
    last = None
    for p in found.parameters.values():
        if p.name.startswith("_"):
            continue
        if last is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
            words.append("/")
        if p.kind is p.KEYWORD_ONLY and not star and last is not p.KEYWORD_ONLY:
            words.append("*")
        words.append(_parameter(p))
        last = p.kind
    if last is inspect.Parameter.POSITIONAL_ONLY:
        words.append("/")
    returned = found.return_annotation
    tail = "" if returned is found.empty else f" -> {_annotation(returned)}"
    line = f"{name}({', '.join(words)}){tail}"
    if len(line) <= _WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){tail}"


def _parameter(p: inspect.Parameter) -> str:
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    shown = stars + p.name
    if p.annotation is not p.empty:
        shown += f": {_annotation(p.annotation)}"
    if p.default is not p.empty:
        default = _short(repr(p.default))
        if default.startswith("<"):
            default = getattr(p.default, "__name__", "...")
        shown += f" = {default}" if p.annotation is not p.empty else f"={default}"
    return shown


def _annotation(value: Any) -> str:
    text = value if isinstance(value, str) else getattr(value, "__name__", repr(value))
    return text.replace("typing.", "").strip("'")


if __name__ == "__main__":
    wanted = sys.argv[1:]
    for name, text in pages():
        if name.removeprefix("reference/").removesuffix(".md") in wanted:
            print(text)
    if not wanted:
        print(f"{len(entries()):,} names on {len(list(pages()))} pages")
