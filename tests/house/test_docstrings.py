"""What `?` shows: each public function describes its arguments, its result, its errors.

`python tests/house/test_docstrings.py [namespace ...]` lists what is missing.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from perspex.arguments.glossary import describe

NAMESPACES = [
    "image",
    "custom_batching",
    "custom_derivatives",
    "experimental.compilation_cache.compilation_cache",
    "experimental.jet",
    "experimental.ode",
    "experimental.shard_map",
    "experimental.sparse",
    "experimental.sparse.linalg",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "lax",
    "lax.linalg",
    "random",
    "nn",
    "nn.initializers",
    "scipy.cluster.vq",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse.linalg",
    "scipy.spatial.transform",
    "scipy.special",
    "scipy.stats",
]
ENTRY = re.compile(r"^ +(\**\w+(?:, \**\w+)*):", re.MULTILINE)
SHORT = {"self", "args", "kwargs"}


def functions(namespace: str) -> Iterator[tuple[str, Any]]:
    """The public functions of a namespace, and of the distributions in `scipy.stats`."""
    module = importlib.import_module(f"perspex.{namespace}")
    for name in getattr(module, "__all__", dir(module)):
        found = getattr(module, name)
        if name.startswith("_") or name.endswith("_p") or inspect.isclass(found):
            continue
        if inspect.ismodule(found):
            if namespace == "scipy.stats":
                for inner in getattr(found, "__all__", ()):
                    one = getattr(found, inner)
                    if not inner.startswith("_") and getattr(one, "__module__", "") == (
                        found.__name__
                    ):
                        yield f"{name}.{inner}", one
            continue
        if callable(found) and str(getattr(found, "__module__", "")).startswith("perspex"):
            yield name, found


def missing(function: Any) -> list[str]:
    """What the docstring of a function lacks."""
    text = inspect.getdoc(function) or ""
    try:
        parameters = [p for p in inspect.signature(function).parameters if p not in SHORT]
    except (TypeError, ValueError):
        parameters = []
    sections = re.split(r"^(Args|Returns|Raises|References):$", text, flags=re.MULTILINE)
    bodies = dict(zip(sections[1::2], sections[2::2], strict=True))
    described = {
        name.lstrip("*")
        for match in ENTRY.finditer(bodies.get("Args", ""))
        for name in match[1].split(", ")
    }
    lacks = [f"Args: {name}" for name in parameters if name not in described]
    lacks += [name for name in ("Returns", "Raises") if name not in bodies]
    if ">>>" not in text:
        lacks.append("example")
    if "see the module" in text.lower():
        lacks.append("(says 'see the module')")
    return lacks


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_docstrings_are_whole(namespace: str) -> None:
    wrong = {name: lacks for name, f in functions(namespace) if (lacks := missing(f))}
    assert not wrong, "\n".join(f"{name}: {', '.join(lacks)}" for name, lacks in wrong.items())


def test_describe_adds_what_is_missing_in_order() -> None:
    def scaled(x: Any, axis: int = 0) -> Any:
        """A result.

        Args:
          x: an array.

        >>> 1
        1
        """

    raises = "TypeError: for anything\nelse.\nValueError: for no axis."
    describe([scaled], {"x": "unused", "axis": "the axis"}, raises, "An array.")
    lines = (inspect.getdoc(scaled) or "").splitlines()
    wanted = [
        *("A result.", "", "Args:", "  x: an array.", "  axis: the axis", ""),
        *("Returns:", "  An array.", "", "Raises:", "  TypeError: for anything", "    else."),
        *("  ValueError: for no axis.", "", ">>> 1", "1"),
    ]
    assert lines == wanted
    assert not missing(scaled)


if __name__ == "__main__":
    for space in sys.argv[1:] or NAMESPACES:
        found = list(functions(space))
        gaps = {name: lacks for name, f in found if (lacks := missing(f))}
        print(f"{space}: {len(gaps)} of {len(found)} functions lack something")
        if sys.argv[1:]:
            for name, lacks in gaps.items():
                print(f"  {name}: {', '.join(lacks)}")
