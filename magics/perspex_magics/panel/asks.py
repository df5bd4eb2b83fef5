"""What a page asks to be done or looked up, carried out one after the other.

In a thread of its own, because a document may take a second and what is forgotten may run the
user's code when it goes; neither belongs into the handler of a message, nor into the outbox. The
thread ends when nothing has been asked for a while.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from IPython.core.error import UsageError

from perspex.base.events import report_ignored
from perspex_magics.compiling.actions import UNKNOWN, WITH_ONE, clear
from perspex_magics.compiling.compilations import Compilation
from perspex_magics.documents.program import compiled, outline
from perspex_magics.memory.buffers import free
from perspex_magics.notebook.running import is_cell_on_a_stack
from perspex_magics.panel.clients import Client
from perspex_magics.panel.messages import Ask
from perspex_magics.panel.outbox import Outbox
from perspex_magics.panel.texts import SENTENCE, cut
from perspex_magics.panel.topics.buffers import BuffersTopic
from perspex_magics.panel.topics.programs import compilation, recorder_of
from perspex_magics.panel.topics.topic import magics
from perspex_magics.timing.profile import ProfileMagics
from perspex_magics.timing.roofline import peak

# What changes nothing.
_LOOKING = ("program", "compiled")
_MOST_WAITING = 100
_IDLE = 10.0


class Answer(NamedTuple):
    """What came of a request."""

    ok: bool
    text: str
    # What else the reply has, by name.
    made: Mapping[str, Any] = MappingProxyType({})


class Desk:
    """Answers what is asked of one notebook."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox, self.shell = outbox, outbox.shell
        self._waiting: queue.SimpleQueue[tuple[Client, Ask]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._answers: dict[str, Callable[[Ask], Answer]] = {
            "program": self._program,
            "compiled": self._program,
            **dict.fromkeys(WITH_ONE, self._keep),
            "clear": self._clear,
            "free": self._free,
            "profile": self._profile,
        }

    def add(self, client: Client, ask: Ask) -> None:
        """Something is asked; it is answered when its turn comes."""
        if self._waiting.qsize() >= _MOST_WAITING:
            client.send(reply(ask.request, False, "Too much is asked at once; try again later."))
            return
        with self._lock:
            self._waiting.put((client, ask))
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._serve, name="perspex-panel-asks", daemon=True
                )
                self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, ask = self._waiting.get(timeout=_IDLE)
            except queue.Empty:
                with self._lock:
                    if self._waiting.empty():
                        self._thread = None
                        return
                continue
            try:
                client.send(reply(ask.request, *self._answer(ask)))
            except Exception as error:  # nothing can be sent to it any more
                self.outbox.clients.remove(client)
                report_ignored(error, "in answering the Perspex panel", client.send)
            del client
            if ask.what not in _LOOKING:
                self.outbox.refresh_all()

    def _answer(self, ask: Ask) -> Answer:
        try:
            return self._answers[ask.what](ask)
        except Exception as error:
            kind = type(error).__name__
            return Answer(False, f"`{ask.what}` has failed with {kind}: {error}")

    # ---- programs ---------------------------------------------------------------------------

    def _found(self, ask: Ask) -> Compilation | None:
        return compilation(self.shell, ask.id)

    def _program(self, ask: Ask) -> Answer:
        one = self._found(ask)
        if one is None:
            return _UNKNOWN
        traced = one.traced()
        if traced is None:
            return Answer(
                False,
                f"`{one.name}` or its program is gone; call the function again to look at it.",
            )
        # What takes longer is asked for apart, so that the rest can be looked at.
        if ask.what == "compiled":
            made = compiled(traced)
        else:
            made = outline(traced, cell_of=self.outbox.places.cell_of)
        return Answer(True, f"`{one.name}` ({one.signature})", {ask.what: made})

    def _keep(self, ask: Ask) -> Answer:
        one = self._found(ask)
        if one is None:
            return _UNKNOWN
        return Answer(*WITH_ONE[ask.what](recorder_of(self.shell), one))

    def _clear(self, ask: Ask) -> Answer:
        return Answer(*clear(recorder_of(self.shell)))

    # ---- the rest ---------------------------------------------------------------------------

    def _free(self, ask: Ask) -> Answer:
        topic = self.outbox.topic(BuffersTopic.name)
        name = topic.variables.get(ask.id) if isinstance(topic, BuffersTopic) else None
        if name is None:
            return Answer(False, "There is no such variable any more.")
        if self.outbox.is_busy() or is_cell_on_a_stack():
            return Answer(False, f"A cell is running and may use `{name}`; free it afterwards.")
        try:
            return Answer(True, free(self.shell, [name]))
        except UsageError as error:
            return Answer(False, str(error).removeprefix("%buffers free: "))

    def _profile(self, ask: Ask) -> Answer:
        magics(self.shell, ProfileMagics).switch(ask.on)
        if ask.on and not self.outbox.is_busy():
            peak()  # what programs are compared with; else they are not
        state = "measured from the next cell on" if ask.on else "not measured any more"
        return Answer(True, f"Device times by line are {state}.")


_UNKNOWN = Answer(*UNKNOWN)


def reply(
    request: int, ok: bool, text: str, made: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The message that answers a request."""
    message = {"type": "reply", "request": request, "ok": ok, "text": cut(text, SENTENCE)}
    return {**message, **made}
