"""Talk to a live Perspex kernel as a notebook does, and see what came back."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

TIMEOUT = 60


@dataclass
class Ran:
    """What one cell gave: its reply, its outputs, how long it took."""

    reply: dict[str, Any]
    outputs: list[dict[str, Any]]
    seconds: float
    streams: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> str:
        return self.reply["status"]

    @property
    def ename(self) -> str:
        return self.reply.get("ename", "")

    @property
    def traceback(self) -> str:
        """The traceback as plain text, colours taken out."""
        text = "\n".join(self.reply.get("traceback", []))
        return re.sub(r"\x1b\[[0-9;]*m", "", text)

    @property
    def data(self) -> dict[str, Any]:
        """The displayed result, by MIME type."""
        for output in self.outputs:
            if output["msg_type"] == "execute_result":
                return output["content"]["data"]
        return {}

    @property
    def text(self) -> str:
        return self.data.get("text/plain", "")

    @property
    def stdout(self) -> str:
        return self.streams.get("stdout", "")

    @property
    def stderr(self) -> str:
        return self.streams.get("stderr", "")


class Session:
    """One kernel and one client."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client

    def send(self, code: str, **options: Any) -> str:
        """Ask for a cell and return at once."""
        return self.client.execute(code, **options)

    def wait(self, msg_id: str, started: float | None = None) -> Ran:
        """Collect a cell's outputs until the kernel is idle again."""
        started = time.monotonic() if started is None else started
        outputs: list[dict[str, Any]] = []
        streams: dict[str, str] = {}
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            content = message["content"]
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                break
            if message["msg_type"] == "stream":
                streams[content["name"]] = streams.get(content["name"], "") + content["text"]
            outputs.append(message)
        while True:
            reply = self.client.get_shell_msg(timeout=TIMEOUT)
            if reply["parent_header"].get("msg_id") == msg_id:
                break
        return Ran(reply["content"], outputs, time.monotonic() - started, streams)

    def run(self, code: str, **options: Any) -> Ran:
        """Run a cell to its end, whatever that is."""
        started = time.monotonic()
        return self.wait(self.send(code, **options), started)

    def ok(self, code: str, **options: Any) -> Ran:
        """Run a cell that must succeed."""
        ran = self.run(code, **options)
        assert ran.status == "ok", ran.traceback + ran.stderr
        return ran

    def until_output(self, msg_id: str, text: str) -> None:
        """Wait until the running cell has printed `text`."""
        seen = ""
        while text not in seen:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            seen += message["content"].get("text", "")
            ended = message["content"].get("execution_state") == "idle"
            assert not ended, f"the cell ended before it printed {text!r}"

    def interrupt(self, code: str, after: str) -> Ran:
        """Start a cell, interrupt it once it has printed `after`, and time how long it goes on."""
        msg_id = self.send(code)
        self.until_output(msg_id, after)
        # A moment for the cell to reach what follows its print.
        time.sleep(0.2)
        started = time.monotonic()
        self.manager.interrupt_kernel()
        return self.wait(msg_id, started)


@contextmanager
def open_session(**options: Any) -> Iterator[Session]:
    """A fresh kernel, shut down at the end."""
    manager, client = start_new_kernel(kernel_name="perspex", startup_timeout=TIMEOUT, **options)
    try:
        yield Session(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
