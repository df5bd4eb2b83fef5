"""`perspex.show(f, *args)`: a program from the user's lines to what XLA made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perspex.api.jit import jit
from perspex_magics.documents.program import document
from perspex_magics.listing import Listing
from perspex_magics.markup import MUTED, escape, tag
from perspex_magics.widgets.view import View, shown

_FORMS = {"jaxpr": "jaxpr", "stablehlo": "StableHLO", "hlo": "optimized HLO"}


class Show(View, entry="program_widget.js"):
    """The widget; `data` is a `Program` of the panel's schema."""

    @property
    def text(self) -> str:
        return f"{self._heading()}\n{self._listing('jaxpr')}"

    @property
    def html(self) -> str:
        heading = tag("div", escape(self._heading()), style=MUTED)
        folded = [Listing(title, self._listing(form)) for form, title in _FORMS.items()]
        return tag("div", heading, *(listing._repr_html_() for listing in folded))

    def _heading(self) -> str:
        program: Any = self.data
        return f"{program['name']}({program['signature']})"

    def _listing(self, form: str) -> str:
        program: Any = self.data
        return "\n".join([line["text"] for line in program[form]])


def show(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Look at the program of a function: source, jaxpr, StableHLO and optimized HLO, linked.

    The function is traced and compiled, and not run.

    Args:
      fun: a function of arrays, compiled or not; `args` and `kwargs` may be arrays or
        `ShapeDtypeStruct`s.

    Returns:
      A widget; outside of Jupyter the text of it is printed, and nothing is returned.

    >>> import perspex, perspex.numpy as pnp
    >>> def f(x):
    ...     return pnp.sin(x)
    >>> perspex.show(f, pnp.zeros(3))
    f(f32[3])
    { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
    """
    if not callable(fun):
        raise TypeError(f"show takes a function and its arguments, got a {type(fun).__name__}")
    compiled: Any = fun if hasattr(fun, "trace") else jit(fun)
    return shown(Show(data=document(compiled.trace(*args, **kwargs))))
