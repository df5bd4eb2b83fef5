"""The JavaScript of the widgets, which `make panel` builds from `labextension/src/widgets`.

A wheel contains it. A checkout has it once it was built, which takes Node.js; until then widgets
show their HTML without scripts and say how to build the rest.
"""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"

MISSING = (
    "This widget is shown without its JavaScript: to build that, run `make panel` in the Perspex "
    "checkout (Node.js 20.19 or newer), then run this cell again."
)


def module(name: str) -> str | None:
    """The text of the ES module of a widget, or `None` if it has not been built."""
    path = STATIC / f"{name}.js"
    return path.read_text(encoding="utf-8") if path.exists() else None
