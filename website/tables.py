"""Pages that are tables of what the package has: options, events, notices, the gallery."""

from __future__ import annotations

import re

import gallery
import perspex
from docstrings import markdown
from perspex import errors
from perspex.advice import explain
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

`%explain NAME` shows these pages in a notebook and `perspex explain NAME` in a terminal, without a
network.

## Errors

| error | says |
|---|---|
"""
NOTICES = """
## Notices

A notice stands below its cell. Front ends and programs find its data under the type
`application/vnd.perspex.KIND+json`, beside text and HTML.

| kind | says |
|---|---|
"""


def _errors() -> dict[str, str]:
    """A page for each error and each notice, and the table of all of them."""
    texts = explain.pages(vars(errors))
    rows: dict[bool, list[str]] = {True: [], False: []}
    made = {}
    for name in sorted(texts):
        is_error = name[0].isupper()
        rows[is_error].append(f"| [`{name}`]({name}.md) | {explain.says(texts[name])} |")
        made[f"reference/errors/{name}.md"] = (
            f"---\ntitle: {name}\n---\n\n{texts[name]}\n[All errors and notices](index.md)\n"
        )
    both = [ERRORS, "\n".join(rows[True]), "\n", NOTICES, "\n".join(rows[False]), "\n"]
    made["reference/errors/index.md"] = "".join(both)
    return made


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
