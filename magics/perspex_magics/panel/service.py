"""The comm target `perspex.panel`: handles the messages of pages.

A front end may send these messages to a subshell, so the handlers run in any thread, also while a
cell runs. They read a message, note the request, and wake the outbox or the desk.

A page opens the comm target and names the topics it shows; `contract` has all messages as types.
`asks` answers requests, `outbox` sends changes from a thread of its own, and `topics` makes the
rows of each table from what the rest of the extension records.

As long as no page is open there is no thread and no listener. A handler of a message runs none of
the user's code. Messages have no parent, so they belong to no cell.
"""

from __future__ import annotations

import importlib.metadata
import uuid
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

import perspex
from perspex.runtime import client as platforms
from perspex_magics.panel.asks import Desk, reply
from perspex_magics.panel.clients import Client
from perspex_magics.panel.contract import TARGET, VERSION, Hello, Resync, Watch
from perspex_magics.panel.contract import Topic as Name
from perspex_magics.panel.messages import NO_REQUEST, RefusedError, is_integer, read, read_open
from perspex_magics.panel.outbox import Outbox
from perspex_magics.panel.places import Places
from perspex_magics.panel.texts import valid
from perspex_magics.panel.topics.badges import BadgesTopic
from perspex_magics.panel.topics.buffers import BuffersTopic
from perspex_magics.panel.topics.cells import CellsTopic
from perspex_magics.panel.topics.devices import DevicesTopic
from perspex_magics.panel.topics.engines import EnginesTopic
from perspex_magics.panel.topics.exchanges import ExchangesTopic
from perspex_magics.panel.topics.keys import KeysTopic
from perspex_magics.panel.topics.lines import LinesTopic
from perspex_magics.panel.topics.memory import MemoryTopic
from perspex_magics.panel.topics.placements import PlacementsTopic
from perspex_magics.panel.topics.programs import ProgramsTopic
from perspex_magics.panel.topics.topic import Topic, magics
from perspex_magics.timing.profile import ProfileMagics

TOPICS: dict[Name, type[Topic]] = {
    topic.name: topic
    for topic in (
        *(ProgramsTopic, CellsTopic, BuffersTopic, MemoryTopic, KeysTopic, LinesTopic),
        *(DevicesTopic, PlacementsTopic, ExchangesTopic, EnginesTopic),
        BadgesTopic,
    )
}


def serve_panel(shell: InteractiveShell) -> Callable[[], object]:
    """Answer panels, if there is a kernel; returns the function that ends that."""
    places, forget_places = Places.noting(shell)
    kernel = getattr(shell, "kernel", None)
    manager = getattr(kernel, "comm_manager", None)
    if manager is None:
        return forget_places
    panel = Panel(shell, kernel, places)
    manager.register_target(TARGET, panel.open)

    def undo() -> None:
        manager.unregister_target(TARGET, panel.open)
        panel.outbox.close()
        forget_places()

    return undo


class Panel:
    """The kernel's side of all panels of one notebook."""

    def __init__(self, shell: InteractiveShell, kernel: Any, places: Places) -> None:
        self.kernel = kernel
        self.session = uuid.uuid4().hex
        self.outbox = Outbox(shell, places, TOPICS)
        self.desk = Desk(self.outbox)

    def open(self, comm: Any, message: Any) -> None:
        """A page has opened a comm."""
        client = Client(lambda data: self._send(comm, data), comm.close)
        client.send(self._hello())
        try:
            opened = read_open(message["content"].get("data"))
        except RefusedError as error:
            said = f"The kernel cannot serve this panel: {error}."
            client.send(reply(NO_REQUEST, False, said))
            comm.on_msg(lambda message: client.send(reply(_request(message), False, said)))
            return
        if opened.version != VERSION:
            said = (
                f"This panel speaks version {opened.version} of the protocol, the kernel version "
                f"{VERSION}. Install the same Perspex for both, and reload the page."
            )
            comm.on_msg(lambda message: client.send(reply(_request(message), False, said)))
            return
        comm.on_msg(lambda message: self._hear(client, message))
        comm.on_close(lambda message: self._forget(client))
        client.watch(opened.topics)
        self.outbox.open(opened.client, client)

    def _hear(self, client: Client, message: Any) -> None:
        """A page has sent a message."""
        if not self.outbox.clients.heard(client):
            return
        try:
            said = read(message["content"].get("data"))
        except RefusedError as error:
            client.send(
                reply(error.request, False, f"The kernel cannot read this message: {error}.")
            )
            return
        if isinstance(said, Watch):
            client.watch(said.topics)
        elif isinstance(said, Resync):
            client.resync()
        else:
            self.desk.add(client, said)
            return
        self.outbox.wake()

    def _forget(self, client: Client) -> None:
        self.outbox.clients.remove(client)
        self.outbox.wake()

    def _hello(self) -> Hello:
        return Hello(
            version=VERSION,
            perspex=perspex.__version__,
            jaxlib=importlib.metadata.version("jaxlib"),
            platform=platforms.expected(),
            session=self.session,
            profiling=magics(self.outbox.shell, ProfileMagics).is_on,
        )

    def _send(self, comm: Any, data: dict[str, Any]) -> None:
        """Send through the kernel's thread for such messages, with no parent.

        `comm.send` would name the request that the kernel handles at the moment, and a front end
        shows and stores what a cell causes with that cell.
        """
        kernel = self.kernel
        content = {"comm_id": comm.comm_id, "data": data}
        try:
            kernel.session.send(kernel.iopub_socket, "comm_msg", content, ident=comm.topic)
        except (TypeError, ValueError):  # a text is not valid Unicode, which is rare
            content = valid(content)
            kernel.session.send(kernel.iopub_socket, "comm_msg", content, ident=comm.topic)


def _request(message: Any) -> int:
    """The number of a request that is answered unread."""
    data = message["content"].get("data")
    found: Any = data.get("request") if isinstance(data, dict) else None
    return found if is_integer(found) else NO_REQUEST
