"""What people do to a kernel, as a table of cells, and whether a kernel still answers after each.

The cells are in `tests/data/abuse.txt`. They run one after the other in one kernel, as in a
notebook. After each, what it broke is put right (`undo`), and then `CHECK` has to succeed.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel
from support.session import TIMEOUT, Ran, Session

TABLE = Path(__file__).resolve().parents[1] / "data" / "abuse.txt"
_MARKS = {"ends"}
# How often what puts a cell right is run at most, until it succeeds.
_TRIES = 20

# Independent of every name of the notebook. The number comes from arithmetic.
CHECK = """
(lambda p: float(p.jit(lambda x: (p.numpy.sin(x) ** 2 + p.numpy.cos(x) ** 2) * 42)(0.5)))(
    __import__("perspex"))
"""


@dataclass
class Abuse:
    """One cell: its name, its text, what puts right what it broke, and its marks."""

    name: str
    code: str
    undo: str = ""
    marks: set[str] = field(default_factory=set)


def _hostile(dunders: Iterable[str]) -> Iterator[Abuse]:
    for dunder in dict.fromkeys(dunders):
        yield Abuse(f"{dunder} raises", f"_ = spread({dunder!r})\ncaptured()")
        yield Abuse(
            f"what was captured with {dunder} changes",
            "rate += 1.0\nhostile_list.append(1)\nfor i in range(6):\n"
            "    globals()[f'hostile_{i}'], holder_0.inside = hostile_1, hostile_2\n"
            "    try: globals()[f'reads_{i}'](jnp.ones(2))\n"
            "    except BaseException as error: print(type(error).__name__)",
        )


def read_table() -> tuple[str, list[Abuse]]:
    """The cell of definitions, and all others in their order."""
    definitions, cells = "", []
    for block in TABLE.read_text().split("\n==== ")[1:]:
        section, _, text = block.partition("\n")
        head, *parts = text.split("\n== ")
        if section == "definitions":
            definitions = head
            continue
        for line in text.splitlines():
            if line.startswith("@@ hostile "):
                cells += _hostile(line.split()[2:])
        if head.startswith("== "):
            parts.insert(0, head.removeprefix("== "))
        for part in parts:
            heading, _, body = part.partition("\n")
            words = heading.split()
            marks = set()
            while words[-1] in _MARKS and len(words) > 1:
                marks.add(words.pop())
            code, _, undo = body.partition("\n-- undo\n")
            code = "\n".join(line for line in code.splitlines() if not line.startswith("@@ "))
            cells.append(Abuse(" ".join(words), code, undo.strip(), marks))
    names = [cell.name for cell in cells]
    assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]
    return definitions, cells


@dataclass
class Outcome:
    """What a cell did to its kernel: `answered`, `silent`, or `ended`; and what is wrong then."""

    cell: Abuse
    what: str
    told: str = ""
    seconds: float = 0.0
    ran: Ran | None = None


class Abused:
    """A kernel that is abused, and another one where it ends."""

    def __init__(self, definitions: str, kernel: str = "perspex", **options: Any) -> None:
        self.definitions, self.kernel, self.options = definitions, kernel, options
        self.session: Session | None = None
        self.again = f"from IPython import get_ipython\nget_ipython().init_user_ns()\n{definitions}"

    def start(self) -> Session:
        manager, client = start_new_kernel(
            kernel_name=self.kernel, startup_timeout=TIMEOUT, **self.options
        )
        self.session = Session(manager, client)
        self.first = self.session.run(self.definitions)
        assert self.first.status == "ok", self.first.traceback + self.first.stderr
        return self.session

    def stop(self) -> None:
        if self.session is not None:
            self.session.client.stop_channels()
            self.session.manager.shutdown_kernel(now=True)
            self.session = None

    def run(self, cell: Abuse, timeout: float = 60) -> Outcome:
        """Run a cell, put right what it broke, and see whether the kernel answers."""
        session = self.session or self.start()
        began = time.monotonic()
        ran = None
        try:
            ran = answer(session, cell.code, timeout)
            for code in (self.again if cell.undo == "definitions" else cell.undo, CHECK):
                if not code:
                    continue
                after = answer(session, code, timeout)
                for _ in range(_TRIES if code is not CHECK else 0):
                    if after.status == "ok":
                        break  # or else an alarm rang in the cell that turns it off
                    after = answer(session, code, timeout)
                if code is CHECK and after.status != "ok":
                    told = after.traceback or str(after.reply)
                    self.stop()
                    return Outcome(cell, "silent", told, time.monotonic() - began, ran)
            if not 41.99 < float(after.text) < 42.01:
                return Outcome(cell, "wrong", after.text, time.monotonic() - began, ran)
        except (queue.Empty, RuntimeError) as error:
            what = "silent" if session.manager.is_alive() else "ended"
            self.stop()
            return Outcome(cell, what, repr(error), time.monotonic() - began, ran)
        return Outcome(cell, "answered", "", time.monotonic() - began, ran)


def answer(session: Session, code: str, timeout: float) -> Ran:
    """Run a cell; `queue.Empty` if no answer comes, `RuntimeError` if the kernel ends."""
    msg_id = session.send(code, allow_stdin=False)
    started = time.monotonic()
    outputs: list[dict[str, Any]] = []
    streams: dict[str, str] = {}
    reply: dict[str, Any] | None = None
    is_idle = False
    while reply is None or not is_idle:
        if time.monotonic() - started > timeout:
            raise queue.Empty(f"no answer within {timeout} s; reply {reply}")
        if not is_idle:
            try:
                message = session.client.get_iopub_msg(timeout=0.5 if reply is None else 5)
            except queue.Empty:
                message = None
                if reply is not None:
                    raise
            if message is not None and message["parent_header"].get("msg_id") == msg_id:
                content = message["content"]
                if message["msg_type"] == "stream":
                    streams[content["name"]] = streams.get(content["name"], "") + content["text"]
                outputs.append(message)
                is_idle = content.get("execution_state") == "idle"
            elif message is None and not session.manager.is_alive():
                raise RuntimeError("the kernel has ended")
        if is_idle and reply is None:
            found = session.client.get_shell_msg(timeout=10)
            if found["parent_header"].get("msg_id") == msg_id:
                reply = found["content"]
    return Ran(reply, outputs, time.monotonic() - started, streams)
