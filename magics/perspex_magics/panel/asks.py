"""Carries out what pages ask for, one request after the other.

A thread of its own does this, because a document may take a second, and what is evicted may run the
user's code when it goes; neither belongs into the handler of a message, nor into the outbox. The
thread ends after some seconds without a request.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError

from perspex.base.events import report_ignored
from perspex_magics.compiling.actions import UNKNOWN, WITH_ONE, clear
from perspex_magics.compiling.compilations import Compilation
from perspex_magics.documents.program import compiled, outline
from perspex_magics.memory.buffers import free
from perspex_magics.notebook.running import is_cell_on_a_stack
from perspex_magics.panel.clients import Client
from perspex_magics.panel.contract import (
    Ask,
    AskClear,
    AskCompiled,
    AskEvict,
    AskFree,
    AskPin,
    AskProfile,
    AskProgram,
    AskRestart,
    AskUnpin,
    Reply,
)
from perspex_magics.panel.outbox import Outbox
from perspex_magics.panel.texts import SENTENCE, cut
from perspex_magics.panel.topics.buffers import BuffersTopic
from perspex_magics.panel.topics.programs import compilation, recorder_of
from perspex_magics.panel.topics.topic import magics
from perspex_magics.restart.magic import Restart
from perspex_magics.session import part
from perspex_magics.timing.profile import ProfileMagics
from perspex_magics.timing.roofline import peak

# Requests that change nothing.
_LOOKING = (AskProgram, AskCompiled)
_MOST_WAITING = 100
_IDLE = 10.0


class Desk:
    """Answers the requests of one notebook's pages."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox, self.shell = outbox, outbox.shell
        self._waiting: queue.SimpleQueue[tuple[Client, Ask]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._answers: dict[type, Callable[[Any], Reply]] = {
            AskProgram: self._program,
            AskCompiled: self._compiled,
            AskEvict: self._keep,
            AskPin: self._keep,
            AskUnpin: self._keep,
            AskClear: self._clear,
            AskFree: self._free,
            AskProfile: self._profile,
            AskRestart: self._restart,
        }

    def add(self, client: Client, ask: Ask) -> None:
        """Take a request; its answer comes when its turn has come."""
        if self._waiting.qsize() >= _MOST_WAITING:
            client.send(reply(ask.request, False, "Too many requests at once. Try again."))
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
                client.send(self._answer(ask))
            except Exception as error:  # the client cannot be reached any more
                self.outbox.clients.remove(client)
                report_ignored(error, "in answering the Perspex panel", client.send)
            del client
            if not isinstance(ask, _LOOKING):
                self.outbox.refresh_all()

    def _answer(self, ask: Ask) -> Reply:
        try:
            return self._answers[type(ask)](ask)
        except Exception as error:
            text = f"Could not {self._described(ask)}: {type(error).__name__}: {error}"
            return reply(ask.request, False, text)

    def _described(self, ask: Ask) -> str:
        """What a request is for, after "could not"."""
        if isinstance(ask, AskClear):
            return "evict all programs"
        if isinstance(ask, AskProfile):
            return f"turn device times by line {'on' if ask.on else 'off'}"
        if isinstance(ask, AskRestart):
            return "restart the kernel"
        if isinstance(ask, AskFree):
            return f"free `{self._variable(ask) or 'the variable'}`"
        one = compilation(self.shell, ask.id)
        verb = {AskProgram: "show", AskCompiled: "show the compiled forms of"}.get(type(ask))
        return f"{verb or tag_of(ask)} `{cut(one.name) if one else 'the program'}`"

    # ---- programs ---------------------------------------------------------------------------

    def _traced(self, ask: AskProgram | AskCompiled) -> tuple[Compilation, Any] | Reply:
        """The compilation of a row, with its program; or why there is none."""
        one = compilation(self.shell, ask.id)
        if one is None:
            return reply(ask.request, *UNKNOWN)
        traced = one.traced()
        if traced is None:
            text = f"`{cut(one.name)}` or its program is gone. Call the function again to show it."
            return reply(ask.request, False, text)
        return one, traced

    def _program(self, ask: AskProgram) -> Reply:
        found = self._traced(ask)
        if isinstance(found, Reply):
            return found
        one, traced = found
        answer = reply(ask.request, True, f"`{cut(one.name)}` ({one.signature})")
        made: Any = outline(traced, cell_of=self.outbox.places.cell_of)
        answer.program = made
        return answer

    def _compiled(self, ask: AskCompiled) -> Reply:
        found = self._traced(ask)
        if isinstance(found, Reply):
            return found
        one, traced = found
        answer = reply(ask.request, True, f"`{cut(one.name)}` ({one.signature})")
        made: Any = compiled(traced)
        answer.compiled = made
        return answer

    def _keep(self, ask: AskEvict | AskPin | AskUnpin) -> Reply:
        one = compilation(self.shell, ask.id)
        if one is None:
            return reply(ask.request, *UNKNOWN)
        return reply(ask.request, *WITH_ONE[tag_of(ask)](recorder_of(self.shell), one))

    def _clear(self, ask: AskClear) -> Reply:
        return reply(ask.request, *clear(recorder_of(self.shell)))

    # ---- the rest ---------------------------------------------------------------------------

    def _variable(self, ask: AskFree) -> str | None:
        """The name of the variable behind a row."""
        topic = self.outbox.topic(BuffersTopic.name)
        return topic.variables.get(ask.id) if isinstance(topic, BuffersTopic) else None

    def _free(self, ask: AskFree) -> Reply:
        name = self._variable(ask)
        if name is None:
            return reply(ask.request, False, "This variable no longer exists.")
        if self.outbox.is_busy() or is_cell_on_a_stack():
            text = f"Cannot free `{cut(name)}`: a running cell may use it. Try again afterwards."
            return reply(ask.request, False, text)
        try:
            return reply(ask.request, True, free(self.shell, [name]))
        except UsageError as error:
            return reply(ask.request, False, str(error).removeprefix("%buffers free: "))

    def _profile(self, ask: AskProfile) -> Reply:
        magics(self.shell, ProfileMagics).switch(ask.on)
        if ask.on and not self.outbox.is_busy():
            peak()  # otherwise programs are compared with no peak
        text = (
            "Device times by line are measured from the next cell on."
            if ask.on
            else "Device times by line are no longer measured."
        )
        return reply(ask.request, True, text)

    def _restart(self, ask: AskRestart) -> Reply:
        obstacle = part(self.shell, Restart).obstacle
        kernel: Any = getattr(self.shell, "kernel", None)
        said = f"Cannot restart: {obstacle}." if obstacle else kernel.restart()
        return reply(ask.request, False, said)


def tag_of(ask: Ask) -> str:
    """The `what` of a request."""
    return str(ask.__struct_config__.tag)


def reply(request: int, ok: bool, text: str) -> Reply:
    """The answer to a request."""
    return Reply(request=request, ok=ok, text=cut(text, SENTENCE))
