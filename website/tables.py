"""Pages that are tables of what the package has: options, events, notices, the gallery."""

from __future__ import annotations

import inspect
import re

import gallery
import perspex
from docstrings import markdown, summary
from perspex import errors
from perspex.base import events
from perspex.base.flags import flags, retracing

OPTIONS = """---
title: Options
---

# Options

`perspex.config.update("name", value)` sets an option for all threads. `with
perspex.config.name(value):` sets it inside the block, in this thread. The environment variable
`PERSPEX_NAME`, or `JAX_NAME`, sets it when Perspex is imported. An option that retraces is part of
the key of every compiled call: after a change, a function is traced again.

| option | default | retraces | |
|---|---|---|---|
"""
EVENTS = """---
title: Events
---

# Events

`perspex.events.subscribe(listener, kinds)` calls a function at each event of these kinds, and
returns what ends that. [How to listen](../howto/listen-to-events.md) has an example.

"""


def pages() -> dict[str, str]:
    """The tables, by the names of their pages."""
    fixed = {"reference/options.md": _options(), "reference/events.md": _events()}
    return fixed | _errors()


def _options() -> str:
    rows = []
    for name in sorted(flags):
        flag = flags[name]
        says = " ".join(flag.doc.split()).replace("|", "\\|")
        default = repr(flag.value).replace("|", "\\|")
        mark = "yes" if flag in retracing else ""
        rows.append(f"| `{name}` | `{default}` | {mark} | {says} |")
    return OPTIONS + "\n".join(rows) + "\n"


def _events() -> str:
    text = events.__doc__ or ""
    kinds = re.findall(r"^\* `(\w+)`: (.+?)(?=^\* |\Z)", text, re.MULTILINE | re.DOTALL)
    rows = [f"| `{kind}` | {' '.join(says.split()).rstrip('.;')}. |" for kind, says in kinds]
    table = "## Kinds\n\n| kind | what happened, and its `data` |\n|---|---|\n" + "\n".join(rows)
    fields = "## What an event has\n\n" + markdown(perspex.events.Event.__doc__ or "")
    return EVENTS + table + "\n\n" + fields + "\n"


ERRORS = """---
title: Errors and notices
---

# Errors and notices

An error about a traced value shows the way of the value from the arguments to the line that failed,
and the line rewritten so that it works: an [error card](../../truth/error-cards.md). Shapes, dtypes
and axes that do not fit raise Python's own `TypeError`, `ValueError` and `IndexError`.

## Errors

| error | a kind of | |
|---|---|---|
"""
NOTICES = """
## Notices

A notice stands below its cell. Front ends and programs find its data under the type
`application/vnd.perspex.KIND+json`, beside text and HTML.

| kind | says | page |
|---|---|---|
"""
KINDS = [
    ("stale", "A compiled function used the old value of a variable.", "stale-captures"),
    ("recompile", "A function was compiled again: what differed, what it took.", "recompiles"),
    ("clock", "Where the time of the cell went.", "time"),
    ("heartbeat", "A trace or compilation takes long, and which line makes it long.", "time"),
    ("keyreuse", "A key was used more than once, and where.", "keys"),
    ("fixed", "What ran once, while a function was traced.", "fixed"),
    ("error", "The card of an error about a traced value.", "error-cards"),
    ("pinned", "Arrays that an error held, and that were released.", "memory"),
]


def error_classes() -> list[type[BaseException]]:
    """All exceptions that Perspex defines, by name."""
    found = {
        v for v in vars(errors).values() if inspect.isclass(v) and issubclass(v, BaseException)
    }
    return sorted(found, key=lambda error: error.__name__)


def _errors() -> dict[str, str]:
    """A page for each error, and the table of all of them with the notices."""
    pages, rows = {}, []
    for error in error_classes():
        name = error.__name__
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        text = error.__doc__ or ""
        rows.append(f"| [`{name}`]({name}.md) | {bases} | {summary(text)} |")
        pages[f"reference/errors/{name}.md"] = (
            f"---\ntitle: {name}\n---\n\n# `{name}`\n\nA kind of {bases}.\n\n{markdown(text)}\n\n"
            "[All errors and notices](index.md)\n"
        )
    told = [f"| `{kind}` | {says} | [{at}](../../truth/{at}.md) |" for kind, says, at in KINDS]
    both = [ERRORS, "\n".join(rows), "\n", NOTICES, "\n".join(told), "\n"]
    pages["reference/errors/index.md"] = "".join(both)
    return pages


SECTIONS = {
    "": "Analyses and tours",
    "ecosystem": "Libraries built on JAX",
    "seeds": "Notes and courses on JAX, run unchanged",
}


def gallery_index(outputs: dict[str, list[str]]) -> str:
    """The gallery: a card for each notebook, with its first figure and sentence."""
    cards: dict[str, list[str]] = {folder: [] for folder in SECTIONS}
    for path in gallery.notebooks():
        page = gallery.page_of(path)
        link = page.removeprefix("gallery/")
        folder = link.rpartition("/")[0]
        figure = re.search(r"@@([\w.-]+\.png)@@", "".join(outputs[page]))
        picture = ""
        if figure:
            where = f"{folder}/figures/{figure[1]}".lstrip("/")
            picture = f"![]({where}){{ loading=lazy }}\n\n    "
        title, says = gallery.about(gallery.executed(path))
        cards[folder].append(f"-   {picture}**[{title}]({link})**\n\n    {says}\n")
    parts = [
        "---\ntitle: Gallery\nhide: [toc]\n---\n\n# Gallery\n\n"
        "Notebooks that the Perspex kernel ran when this site was built, figures and notices "
        "included. Those of the libraries need `make ecosystem`, and stand here without outputs."
    ]
    for folder, title in SECTIONS.items():
        grid = '<div class="grid cards pspx-gallery" markdown>'
        parts.append(f"## {title}\n\n{grid}\n\n" + "\n".join(cards[folder]) + "\n</div>")
    return "\n\n".join(parts) + "\n"
