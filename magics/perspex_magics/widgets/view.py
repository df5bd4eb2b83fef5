"""The base of all widgets: a view in the notebook, and text wherever there is no notebook.

A widget needs a kernel to live. An exported notebook, a terminal and a script have none, so every
widget also renders as HTML without scripts and as text, and its output contains both.

Where a program runs the notebook, as `nbconvert --execute` does, the output contains nothing else:
nobody is there to click, and nbconvert would prefer the widget, whose page is blank offline.
"""

from __future__ import annotations

import threading
from typing import Any, ClassVar, TypeVar

import anywidget
import traitlets
from IPython.core.getipython import get_ipython
from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.display.listing import preformatted
from perspex_magics.display.markup import MUTED, coded, tag
from perspex_magics.widgets.modules import MISSING, module
from perspex_magics.widgets.refusals import Refused


class View(anywidget.AnyWidget):
    """A widget whose trait `data` says what to show, and which asks by messages.

    A subclass names its `module`, gives a `text`, and answers in `on_ask`. Front ends may deliver
    messages on several threads; the widget answers one at a time. Each answer has the `request` of
    the message, whether it is `ok`, and a `text`. All widgets answer `{"do": "greet"}`, so that a
    view knows whether its kernel is there.
    """

    data = traitlets.Dict().tag(sync=True)
    # The name of its ES module.
    module: ClassVar[str]
    # Whether that module has been built.
    is_built = False

    def __init__(self, **given: Any) -> None:
        self._answering = threading.RLock()
        text = module(self.module)
        if text is not None:
            self._esm = text
            self.is_built = True
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
                said = f"Failed with {type(error).__name__}: {error}"
                raise
            finally:
                if isinstance(request, str) and len(request) <= _LONGEST_REQUEST:
                    self.send({"request": request, "ok": is_ok, "text": said})

    def on_ask(self, message: dict[str, Any]) -> str:
        """Do what the view asks for, or raise `Refused`. The message may contain anything.

        Returns:
          What the view shows as the outcome.
        """
        raise Refused("This widget takes no requests.")

    @property
    def text(self) -> str:
        """The contents of the view as text."""
        raise NotImplementedError

    @property
    def html(self) -> str:
        """The contents of the view as HTML without scripts."""
        return preformatted(self.text)

    def open(self) -> None:
        """Announce the widget to the page, if somebody sees one and can use it."""
        if self.is_built and is_attended():
            super().open()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle: Any = super()._repr_mimebundle_(**options) if self.comm is not None else {}
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        text, html = self.text, self.html
        if not self.is_built and is_attended():
            text = f"{text}\n{MISSING}"
            html = tag("div", html, tag("div", coded(MISSING), style=MUTED))
        return {**data, "text/plain": text, "text/html": html}, metadata


V = TypeVar("V", bound=View)
_LONGEST_REQUEST = 40


def shell_here() -> InteractiveShell | None:
    """The shell that runs the notebook, if there is one."""
    return get_ipython()


def is_attended() -> bool:
    """Whether a front end with a person in front of it sent the running code.

    Programs that run notebooks (nbclient, and with it nbconvert and papermill) tell the kernel that
    nobody will answer an `input()`.
    """
    kernel = getattr(shell_here(), "kernel", None)
    if kernel is None:
        return True
    content = kernel.get_parent("shell").get("content", {})
    return bool(content.get("allow_stdin", True))


def shown(view: V) -> V | None:
    """The view itself in a notebook; elsewhere print its text and return `None`."""
    if getattr(shell_here(), "kernel", None) is not None:
        return view
    print(view.text)
    view.close()
    return None
