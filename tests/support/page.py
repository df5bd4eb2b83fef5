"""A page of the panel: opens its comm in a live kernel, and keeps the tables that it is told of.

Each message is checked against the schema, and the messages of a comm must be numbered one by one.
"""

from __future__ import annotations

import itertools
import json
import queue
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator
from jupyter_client.blocking.client import BlockingKernelClient
from support.session import TIMEOUT, Ran, Session

from perspex_magics.panel.tables import NOTHING

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "magics/perspex_magics/panel/schema.json").read_text())
TOPICS = SCHEMA["constants"]["TOPICS"]
_ROWS = {
    *("program", "cell", "buffer", "memory", "key", "line"),
    *("device", "placement", "exchange", "engine", "badge"),
}


def validator(definition: str) -> Draft7Validator:
    """What checks a message or a row against one definition of the schema."""
    schema = {"$ref": f"#/definitions/{definition}", "definitions": SCHEMA["definitions"]}
    return Draft7Validator(schema)


_MESSAGES = {name: validator(name.capitalize()) for name in ("hello", "changes", "reply")}
# A row says itself which of the definitions applies.
_KINDS = {name: validator(f"{name.capitalize()}Row") for name in _ROWS}


def check(message: dict[str, Any]) -> None:
    """Check a message from the kernel, each of its rows by the definition that it names."""
    if message["type"] == "changes":
        for topic in message["topics"]:
            for row in topic["put"]:
                _KINDS[row["row"]].validate(row)
        message = {**message, "topics": [{**t, "put": []} for t in message["topics"]]}
    _MESSAGES[message["type"]].validate(message)


def rows_of(topic: Any) -> list[Any]:
    """All rows that a topic has."""
    changes, _ = topic.table.changes(NOTHING, topic.most)
    return [] if changes is None else changes.put


class Page:
    """One open panel. `tables` are the rows by topic and id."""

    def __init__(
        self,
        client: BlockingKernelClient,
        opening: Mapping[str, Any],
        is_checking: bool = True,
        in_subshell: bool = False,
    ) -> None:
        self.client, self.is_checking = client, is_checking
        self.comm = uuid.uuid4().hex
        self.tables: dict[str, dict[str, dict[str, Any]]] = {}
        self.messages: list[dict[str, Any]] = []
        self.replies: dict[int, dict[str, Any]] = {}
        self.arrived: list[float] = []
        self.parents: list[dict[str, Any]] = []
        self.is_closed = False
        self._requests = itertools.count(1)
        self.subshell = self._new_subshell() if in_subshell else None
        self._send("comm_open", {"target_name": "perspex.panel", "data": dict(opening)})

    def _send(self, kind: str, content: dict[str, Any]) -> None:
        message = self.client.session.msg(kind, {"comm_id": self.comm, **content})
        if self.subshell is not None:
            message["header"]["subshell_id"] = self.subshell
        self.client.shell_channel.send(message)

    def _new_subshell(self) -> str:
        """As JupyterLab does, so that comms are heard while a cell runs."""
        request = self.client.session.msg("create_subshell_request", {})
        self.client.control_channel.send(request)
        content = self.client.get_control_msg(timeout=TIMEOUT)["content"]
        assert content["status"] == "ok", content
        return str(content["subshell_id"])

    def say(self, data: Any) -> None:
        """Send a message to the kernel."""
        self._send("comm_msg", {"data": data})

    def close(self) -> None:
        """Close the comm."""
        self._send("comm_close", {"data": {}})

    def ask(self, what: str, **fields: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer."""
        request = next(self._requests)
        self.say({"type": "ask", "request": request, "what": what, **fields})
        self.until(lambda: request in self.replies)
        return self.replies[request]

    @property
    def hello(self) -> dict[str, Any]:
        return self.messages[0]

    def rows(self, topic: str) -> list[dict[str, Any]]:
        """The rows of a topic, in their order."""
        return sorted(self.tables.get(topic, {}).values(), key=lambda row: row["order"])

    def until(self, done: Callable[[], Any], seconds: float = TIMEOUT) -> None:
        """Listen until something holds."""
        end = time.monotonic() + seconds
        while not done():
            left = end - time.monotonic()
            assert left > 0, f"nothing came that was waited for; last: {self.messages[-1:]}"
            self.listen(left)

    def listen(self, seconds: float) -> None:
        """Hear one message, if there is one in this time."""
        try:
            message = self.client.get_iopub_msg(timeout=seconds)
        except queue.Empty:
            return
        content = message["content"]
        if content.get("comm_id") != self.comm:
            return
        if message["msg_type"] == "comm_close":
            self.is_closed = True
        elif message["msg_type"] == "comm_msg":
            self.arrived.append(time.monotonic())
            self.parents.append(message["parent_header"])
            self.hear(content["data"])

    def quiet(self, seconds: float) -> None:
        """Listen for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.listen(left)

    def hear(self, message: dict[str, Any]) -> None:
        """Take in a message, as a panel does."""
        if self.is_checking:
            check(message)
        assert message["number"] == len(self.messages)
        self.messages.append(message)
        if message["type"] == "reply":
            self.replies[message["request"]] = message
        for change in message.get("topics", []):
            table = self.tables.setdefault(change["topic"], {})
            if change["reset"]:
                table.clear()
            table.update({row["id"]: row for row in change["put"]})
            for key in change["drop"]:
                table.pop(key, None)


def opening(client: str = "page", topics: list[str] | None = None) -> dict[str, Any]:
    """The data with which a page opens its comm."""
    return {"version": 1, "client": client, "topics": TOPICS if topics is None else topics}


@contextmanager
def open_page(
    session: Session,
    data: Mapping[str, Any] | None = None,
    is_checking: bool = True,
    in_subshell: bool = False,
) -> Iterator[Page]:
    """A page with a connection of its own, so that no message is lost to somebody else."""
    # Not one of the manager's, which would have its identity, to which replies are sent.
    client = BlockingKernelClient()
    client.load_connection_info(session.manager.get_connection_info())
    client.start_channels()
    client.wait_for_ready(timeout=TIMEOUT)
    page = Page(client, opening() if data is None else data, is_checking, in_subshell)
    try:
        page.until(lambda: page.messages)
        yield page
    finally:
        page.close()
        client.stop_channels()


def run_cell(session: Session, code: str, cell: str) -> Ran:
    """Run a cell as a notebook does, with the cell's id."""
    return session.wait(begin_cell(session, code, cell))


def begin_cell(session: Session, code: str, cell: str) -> str:
    """Begin to run a cell; returns the id of the request, for `session.wait`."""
    content = {
        "code": code,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": True,
    }
    client = session.client
    message = client.session.msg("execute_request", content, metadata={"cellId": cell})
    client.shell_channel.send(message)
    found: str = message["header"]["msg_id"]
    return found
