"""What a page asks to be done or looked up, carried out one after the other.

In a thread of its own, because a document may take a second and what is forgotten may run the
user's code when it goes; neither belongs into the handler of a message, nor into the outbox. The
thread ends when nothing has been asked for a while.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from IPython.core.error import UsageError

from perspex.events import report_ignored
from perspex.runtime import cache
from perspex_magics.buffers import free
from perspex_magics.cache import forget
from perspex_magics.compilations import Compilation
from perspex_magics.documents.program import document
from perspex_magics.outermost import is_cell_on_a_stack
from perspex_magics.panel.clients import Client
from perspex_magics.panel.messages import Ask
from perspex_magics.panel.outbox import Outbox
from perspex_magics.panel.texts import SENTENCE, cut
from perspex_magics.panel.topics.buffers import BuffersTopic
from perspex_magics.panel.topics.programs import compilation, recorder_of
from perspex_magics.panel.topics.topic import magics
from perspex_magics.profile import ProfileMagics
from perspex_magics.roofline import peak

_MOST_WAITING = 100
_IDLE = 10.0


class Answer(NamedTuple):
    """What came of a request."""

    ok: bool
    text: str
    program: dict[str, Any] | None = None


class Desk:
    """Answers what is asked of one notebook."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox, self.shell = outbox, outbox.shell
        self._waiting: queue.SimpleQueue[tuple[Client, Ask]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._answers: dict[str, Callable[[Ask], Answer]] = {
            "program": self._program,
            "evict": self._evict,
            "pin": self._pin,
            "unpin": self._unpin,
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
            if ask.what != "program":
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
        made = document(traced, cell_of=self.outbox.places.cell_of)
        return Answer(True, f"`{one.name}` ({one.signature})", made)

    def _evict(self, ask: Ask) -> Answer:
        one = self._found(ask)
        if one is None:
            return _UNKNOWN
        closed = one.origin and one.origin.closed()
        owner = one.origin and one.origin.owner()
        if owner is not None and closed is not None:
            owner.evict(closed)
        if one.key:
            cache.evict(bytes.fromhex(one.key))
            recorder_of(self.shell).remove(one.key)
        if owner is None or closed is None:
            said = "XLA compiles it when it is needed anew; what holds it still uses it."
        else:
            said = "its next call compiles it."
        return Answer(True, f"`{one.name}` ({one.signature}) is forgotten: {said}")

    def _pin(self, ask: Ask) -> Answer:
        one = self._found(ask)
        if one is None:
            return _UNKNOWN
        if not one.key:
            return Answer(False, f"`{one.name}` calls Python functions, and is never kept.")
        key = bytes.fromhex(one.key)
        if not cache.pin(key):
            return Answer(False, "So many programs are pinned already that there is no room.")
        if cache.is_remembered(key):
            return Answer(True, f"`{one.name}` ({one.signature}) stays in memory.")
        return Answer(True, f"`{one.name}` is not in memory now; it stays once it is needed again.")

    def _unpin(self, ask: Ask) -> Answer:
        one = self._found(ask)
        if one is None:
            return _UNKNOWN
        if one.key:
            cache.unpin(bytes.fromhex(one.key))
        return Answer(True, f"`{one.name}` ({one.signature}) may go when others need the room.")

    def _clear(self, ask: Ask) -> Answer:
        count = forget(recorder_of(self.shell))
        kept = "those on disk stay; `%cache clear --disk` removes them"
        return Answer(True, f"{count} programs in memory are forgotten; {kept}.")

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


_UNKNOWN = Answer(False, "This program is not in the record any more.")


def reply(
    request: int, ok: bool, text: str, program: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The message that answers a request."""
    message = {"type": "reply", "request": request, "ok": ok, "text": cut(text, SENTENCE)}
    return message if program is None else {**message, "program": program}
