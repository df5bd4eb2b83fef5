"""What all widgets are: a view in the notebook, and a text wherever there is no notebook.

A widget needs a kernel to live. An exported notebook, a terminal and a script have none, so every
widget can say what it shows as HTML without scripts and as text, and its output holds that, too.

Where a program runs the notebook, as `nbconvert --execute` does, the output holds nothing else:
nobody is there to click, and nbconvert would prefer the widget, whose page is blank without a net.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import anywidget
import traitlets
from IPython.core.getipython import get_ipython
from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.display.listing import preformatted
from perspex_magics.widgets.modules import module
from perspex_magics.widgets.refusals import Refused


class View(anywidget.AnyWidget):
    """A widget that is told what to show by its trait `data`, and asks by messages.

    A subclass names its entry file in `static/`, gives a `text`, and answers in `on_ask`. Front
    ends may deliver messages on several threads; one is answered at a time. Each answer has the
    `request` of the message and whether it is `ok`, and a `text`; `{"do": "greet"}` is answered by
    all widgets, so that a view knows whether its kernel is there.
    """

    data = traitlets.Dict().tag(sync=True)

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
        request, is_ok, said = message.get("request"), False, ""
        with self._answering:
            try:
                said = "" if message.get("do") == "greet" else self.on_ask(message)
                is_ok = True
            except Refused as error:
                said = str(error)
            except Exception as error:
                said = f"It has failed with {type(error).__name__}: {error}"
                raise
            finally:
                if isinstance(request, str) and len(request) <= _LONGEST_REQUEST:
                    self.send({"request": request, "ok": is_ok, "text": said})

    def on_ask(self, message: dict[str, Any]) -> str:
        """Do what the view asks for, or raise `Refused`. The message may hold anything.

        Returns what there is to say about it.
        """
        raise Refused("There is nothing to do here.")

    @property
    def text(self) -> str:
        """What the view shows, as text."""
        raise NotImplementedError

    @property
    def html(self) -> str:
        """The same without scripts."""
        return preformatted(self.text)

    def open(self) -> None:
        """Tell the page of the widget, if there is one to be told."""
        if is_attended():
            super().open()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle: Any = super()._repr_mimebundle_(**options) if self.comm is not None else {}
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "text/plain": self.text, "text/html": self.html}, metadata


V = TypeVar("V", bound=View)
_LONGEST_REQUEST = 40


def shell_here() -> InteractiveShell | None:
    """The shell that runs the notebook, if there is one."""
    return get_ipython()


def is_attended() -> bool:
    """Whether the code that runs was sent by a front end with a person before it.

    Programs that run notebooks (nbclient, and so nbconvert and papermill) tell the kernel that
    nobody will answer an `input()`.
    """
    kernel = getattr(shell_here(), "kernel", None)
    if kernel is None:
        return True
    content = kernel.get_parent("shell").get("content", {})
    return bool(content.get("allow_stdin", True))


def shown(view: V) -> V | None:
    """The view itself in a notebook; elsewhere its text is printed."""
    if getattr(shell_here(), "kernel", None) is not None:
        return view
    print(view.text)
    view.close()
    return None
