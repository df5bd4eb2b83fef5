"""What all widgets are: a view in the notebook, and a text wherever there is no notebook.

A widget needs a kernel to live. An exported notebook, a terminal and a script have none, so every
widget can say as text what it shows, and its output holds that, too.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import anywidget
import traitlets
from IPython.core.getipython import get_ipython
from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.listing import preformatted
from perspex_magics.widgets.modules import module
from perspex_magics.widgets.refusals import Refused


class View(anywidget.AnyWidget):
    """A widget that is told what to show by its trait `data`, and asks by messages.

    A subclass names its entry file in `static/`, gives a `text`, and answers in `on_ask`. Front
    ends may deliver messages on several threads; one is answered at a time.
    """

    data = traitlets.Dict().tag(sync=True)
    # The line under the view: what could not be done, and why.
    said = traitlets.Unicode().tag(sync=True)

    def __init_subclass__(cls, entry: str = "", **rest: Any) -> None:
        if entry:
            cls._esm = module(entry)
        super().__init_subclass__(**rest)

    def __init__(self, **given: Any) -> None:
        self._answering = threading.RLock()
        super().__init__(**given)
        self.on_msg(self._answer)

    def _answer(self, widget: object, message: object, buffers: object) -> None:
        if not isinstance(message, dict):
            return
        with self._answering:
            self.said = ""
            try:
                self.on_ask(message)
            except Refused as error:
                self.said = str(error)

    def on_ask(self, message: dict[str, Any]) -> None:
        """Do what the view asks for, or raise `Refused`. The message may hold anything."""

    @property
    def text(self) -> str:
        """What the view shows, as text."""
        raise NotImplementedError

    @property
    def html(self) -> str:
        """The same without scripts."""
        return preformatted(self.text)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "text/plain": self.text, "text/html": self.html}, metadata


V = TypeVar("V", bound=View)


def shell_here() -> InteractiveShell | None:
    """The shell that runs the notebook, if there is one."""
    return get_ipython()


def shown(view: V) -> V | None:
    """The view itself in a notebook; elsewhere its text is printed."""
    if getattr(shell_here(), "kernel", None) is not None:
        return view
    print(view.text)
    view.close()
    return None
