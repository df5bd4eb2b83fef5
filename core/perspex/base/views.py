"""Names that packages above the core give to Perspex: `perspex.show`, `perspex.plot`, ...

Such a package declares them as entry points, so the core shows what is installed and names nobody:

    [project.entry-points."perspex.views"]
    show = "perspex_magics.widgets.show:show"
    "debug.visualize_sharding" = "perspex_magics.display.placement:visualize_sharding"

The entry point `extension` of the group `perspex.ipython` is the module that `%load_ext perspex`
loads.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def _declared(group: str) -> dict[str, Any]:
    # 20 ms, and 10 for the import: nobody pays who does not ask for a view.
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


def find(module: str, name: str) -> Any:
    """The view that goes by a name in a module of Perspex (`""` is the package itself).

    Raises:
      AttributeError: if no installed package declares it.
    """
    entry = None if name.startswith("_") else _declared("perspex.views").get(f"{module}{name}")
    if entry is None:
        owner = f"perspex.{module}".rstrip(".")
        raise AttributeError(f"module {owner!r} has no attribute {name!r}")
    return entry.load()


def names(module: str) -> list[str]:
    """The names of the views in a module."""
    declared = _declared("perspex.views")
    return [
        name.removeprefix(module)
        for name in declared
        if name.startswith(module) and "." not in name.removeprefix(module)
    ]


def extension() -> str:
    """The module that extends IPython.

    Raises:
      ImportError: if no installed package has one.
    """
    entry = _declared("perspex.ipython").get("extension")
    if entry is None:
        raise ImportError("no IPython extension of Perspex is installed; pip install perspex")
    return str(entry.value)
