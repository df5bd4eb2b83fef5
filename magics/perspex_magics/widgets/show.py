"""`perspex.show(f, *args)`: a program from the user's lines to XLA's optimized HLO."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import traitlets

from perspex.api.jit import jit
from perspex.base.recent import Recent
from perspex_magics.display.listing import Listing
from perspex_magics.display.markup import MUTED, escape, shortened, tag
from perspex_magics.documents.program import document
from perspex_magics.widgets.view import View, shown

_FORMS = {"jaxpr": "jaxpr", "stablehlo": "StableHLO", "hlo": "optimized HLO"}
# The number of functions whose last program is kept for comparison.
_MOST_FUNCTIONS = 32

_LONGEST_TYPES = 400

Program = dict[str, Any]


class Show(View):
    """The widget. `data` and `previous` are each a `Program` of the panel's contract, or `None`."""

    module = "program"

    previous = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)

    @property
    def text(self) -> str:
        return f"{self._heading()}\n{_listing(self._program, 'jaxpr')}"

    @property
    def html(self) -> str:
        program = self._program
        notes = [tag("div", escape(note), style=MUTED) for note in program["notes"]]
        listings = [_source(program)]
        listings += [
            Listing(title, _listing(program, form), form=form) for form, title in _FORMS.items()
        ]
        folded = [
            listing.folded(is_open=listing.title in ("source", "jaxpr"))
            for listing in listings
            if listing.text
        ]
        return tag("div", tag("div", escape(self._heading()), style=MUTED), *folded, *notes)

    @property
    def _program(self) -> Program:
        program: Program = self.data
        return program

    def _heading(self) -> str:
        name, types = self._program["name"], self._program["signature"]
        return f"{shortened(name)}({shortened(types, _LONGEST_TYPES)})"


def _listing(program: Program, form: str) -> str:
    text: str = program[form]["text"]
    return text


def _source(program: Program) -> Listing:
    """The user's lines, with their numbers, each excerpt under the name of its file or cell."""
    parts, total = [], 0
    for one in program["sources"]:
        lines = one["lines"]["text"].split("\n")
        numbered = [f"{i:>4}  {text}" for i, text in enumerate(lines, one["first"])]
        parts.append("\n".join([one["name"], *numbered]))
        total += len(numbered)
    return Listing("source", "\n\n".join(parts), total)


class _Versions:
    """For each function the program shown last, and the last one that differed from it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known = Recent[str, tuple[Program, Program | None]](_MOST_FUNCTIONS)

    def before(self, program: Program) -> Program | None:
        """The last different program of this function; `program` becomes the last one."""
        name = program["name"]
        with self._lock:
            last, previous = self._known.get(name, (None, None))
            if last is not None and _content(last) != _content(program):
                previous = last
            self._known[name] = program, previous
        return previous


def _content(program: Program) -> tuple[str, ...]:
    """The texts that identify a program, wherever it stands."""
    sources = [one["lines"]["text"] for one in program["sources"]]
    return program["signature"], *(_listing(program, form) for form in _FORMS), *sources


_versions = _Versions()


def show(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The program of a function: source, jaxpr, StableHLO and optimized HLO, linked line by line.

    The function is traced and compiled, but does not run. If this session has shown another program
    of a function of the same name, the widget compares the two.

    Args:
      fun: a function of arrays, compiled or not.
      args: its positional arguments: arrays or `ShapeDtypeStruct`s.
      kwargs: its keyword arguments.

    Returns:
      A widget. Outside of Jupyter, `None`, after printing the signature and the jaxpr.

    Raises:
      TypeError: if `fun` is not callable.

    >>> import perspex, perspex.numpy as pnp
    >>> def f(x):
    ...     return pnp.sin(x)
    >>> perspex.show(f, pnp.zeros(3))
    f(f32[3])
    { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
    """
    if not callable(fun):
        raise TypeError(f"show takes a function and its arguments; got a {type(fun).__name__}")
    compiled: Any = fun if hasattr(fun, "trace") else jit(fun)
    program = document(compiled.trace(*args, **kwargs))
    return shown(Show(data=program, previous=_versions.before(program)))
