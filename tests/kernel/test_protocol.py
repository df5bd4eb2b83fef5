"""Jupyter's own kernel test suite, and what it leaves out of the protocol."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import jupyter_kernel_test
import pytest
from jupyter_client.manager import KernelManager
from support.session import TIMEOUT, Session, open_session


@pytest.mark.usefixtures("jupyter_home")
class TestProtocol(jupyter_kernel_test.KernelTests):
    @classmethod
    def setUpClass(cls) -> None:
        # Through files: another process may take a port before the kernel does that chose it.
        cls.km = KernelManager(kernel_name=cls.kernel_name, transport="ipc")
        cls.km.start_kernel()
        cls.kc = cls.km.client()
        cls.kc.start_channels()
        cls.kc.wait_for_ready(timeout=TIMEOUT)

    kernel_name = "perspex"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('oops', file=sys.stderr)"
    code_page_something = "zip?"
    code_generate_error = "raise ValueError('on purpose')"
    code_execute_result = [
        {"code": "1+2+3", "result": "6"},
        {"code": "[n * n for n in range(4)]", "result": "[0, 1, 4, 9]"},
    ]
    code_display_data = [
        {
            "code": "from IPython.display import HTML, display; display(HTML('<b>bold</b>'))",
            "mime": "text/html",
        }
    ]
    code_history_pattern = "1?2*"
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"
    completion_samples = [{"text": "zi", "matches": {"zip"}}]
    complete_code_samples = ["1", "print('hello, world')", "def f(x):\n  return x*2\n\n\n"]
    incomplete_code_samples = ["print('''hello", "def f(x):\n  x*2"]
    invalid_code_samples = ["import = 7q"]
    # ipykernel keeps no session numbers that the suite's "range" request would find.
    supported_history_operations = ("tail", "search")
    support_iopub_welcome = True


@pytest.mark.usefixtures("jupyter_home")
class TestWelcome(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = "perspex"
    support_iopub_welcome = True


def control(session: Session, kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """Ask on the control channel, which is answered while a cell runs."""
    message = session.client.session.msg(kind, content)
    session.client.control_channel.send(message)
    while True:
        reply = session.client.get_control_msg(timeout=TIMEOUT)
        if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
            return reply["content"]


def ask(session: Session, kind: str, subshell: str, **content: Any) -> dict[str, Any]:
    """Ask a subshell; returns the reply."""
    message = session.client.session.msg(kind, content)
    message["header"]["subshell_id"] = subshell
    session.client.shell_channel.send(message)
    while True:
        reply = session.client.get_shell_msg(timeout=TIMEOUT)
        if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
            return reply["content"]


@pytest.fixture
def busy(live: Session) -> Iterator[str]:
    """A subshell beside a main shell that is at work; its id."""
    live.ok("import perspex, perspex.numpy as jnp, time\nkept = jnp.arange(3.0)")
    subshell = control(live, "create_subshell_request", {})["subshell_id"]
    msg_id = live.send("print('started')\nwhile True: time.sleep(0.01)")
    live.until_output(msg_id, "started")
    yield subshell
    live.manager.interrupt_kernel()
    assert live.wait(msg_id).ename == "KeyboardInterrupt"
    assert control(live, "delete_subshell_request", {"subshell_id": subshell})["status"] == "ok"


def execute(code: str) -> dict[str, Any]:
    return {"code": code, "silent": False, "allow_stdin": False, "user_expressions": {"k": "k"}}


def test_a_subshell_computes_while_the_main_shell_is_busy(live: Session, busy: str) -> None:
    assert busy in control(live, "list_subshell_request", {})["subshell_id"]
    code = "k = float(perspex.jit(lambda x: (x * x).sum())(kept))"
    reply = ask(live, "execute_request", busy, **execute(code))
    assert reply["status"] == "ok" and reply["user_expressions"]["k"]["data"]["text/plain"] == "5.0"


def test_completion_and_inspection_while_busy(live: Session, busy: str) -> None:
    code = "perspex.make_ja"
    reply = ask(live, "complete_request", busy, code=code, cursor_pos=len(code))
    assert any(match.endswith("make_jaxpr") for match in reply["matches"])
    reply = ask(live, "inspect_request", busy, code="kept", cursor_pos=4, detail_level=0)
    assert reply["found"] and "[0. 1. 2.]" in reply["data"]["text/plain"]


def test_an_error_in_a_subshell_is_its_own(live: Session, busy: str) -> None:
    reply = ask(live, "execute_request", busy, **execute("%%jit\nq = kept + 1\n1 / 0"))
    assert (reply["status"], reply["ename"]) == ("error", "ZeroDivisionError")


def test_an_unknown_subshell_cannot_be_deleted(live: Session) -> None:
    reply = control(live, "delete_subshell_request", {"subshell_id": "none such"})
    assert reply["status"] == "error"


def interrupt_by_message(session: Session) -> None:
    assert control(session, "interrupt_request", {})["status"] == "ok"


def interrupt_by_signal(session: Session) -> None:
    os.kill(session.manager.provisioner.pid, signal.SIGINT)


@pytest.mark.parametrize("how", [interrupt_by_message, interrupt_by_signal])
@pytest.mark.parametrize("body", ["while True: pass", "import asyncio; await asyncio.sleep(60)"])
def test_two_ways_to_interrupt(live: Session, how: Callable[[Session], None], body: str) -> None:
    msg_id = live.send(f"print('started')\n{body}")
    live.until_output(msg_id, "started")
    how(live)
    assert live.wait(msg_id).ename in ("KeyboardInterrupt", "CancelledError")
    assert live.ok("6 * 7").text == "42"


def test_input_after_an_interrupted_input(live: Session) -> None:
    msg_id = live.send("input('first? ')", allow_stdin=True)
    assert live.client.get_stdin_msg(timeout=TIMEOUT)["content"]["prompt"] == "first? "
    live.manager.interrupt_kernel()
    assert live.wait(msg_id).ename == "KeyboardInterrupt"
    msg_id = live.send("input('second? ')", allow_stdin=True)
    assert live.client.get_stdin_msg(timeout=TIMEOUT)["content"]["prompt"] == "second? "
    live.client.input("yes")
    assert live.wait(msg_id).text == "'yes'"


def test_input_without_stdin(live: Session) -> None:
    assert live.run("input()", allow_stdin=False).ename == "StdinNotImplementedError"


@pytest.mark.parametrize("stop", [True, False])
def test_stop_on_error(live: Session, stop: bool) -> None:
    live.ok("after = 0")
    failing = live.send("import time; time.sleep(1)\n1 / 0", stop_on_error=stop)
    following = live.send("after = 1")
    assert live.wait(failing).ename == "ZeroDivisionError"
    assert live.wait(following).status == ("aborted" if stop else "ok")
    # Requests that were on their way when the cell failed may be dropped, too.
    deadline = time.monotonic() + TIMEOUT
    while (ran := live.run("after")).status == "aborted":
        assert time.monotonic() < deadline
    assert ran.text == str(int(not stop))


def test_restart_by_message() -> None:
    with open_session() as session:
        session.ok("kept = 1")
        reply = control(session, "shutdown_request", {"restart": True})
        assert reply["status"] == "ok" and reply["restart"] is True
        deadline = time.monotonic() + TIMEOUT
        while session.manager.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not session.manager.is_alive()


class Debugger:
    """What a front end does to debug: requests on the control channel, events on IOPub."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.number = 0

    def ask(self, command: str, **arguments: Any) -> Any:
        self.number += 1
        request = {
            "type": "request",
            "seq": self.number,
            "command": command,
            "arguments": arguments,
        }
        reply = control(self.session, "debug_request", request)
        assert reply["success"], (command, reply)
        return reply.get("body", {})

    def event(self, kind: str) -> Any:
        while True:
            message = self.session.client.get_iopub_msg(timeout=TIMEOUT)
            if message["msg_type"] == "debug_event" and message["content"]["event"] == kind:
                return message["content"]["body"]


def test_the_debugger_stops_in_a_cell_under_jit() -> None:
    with open_session() as session:
        session.ok("import perspex.numpy as jnp\nx = jnp.arange(3.0)")
        debugger = Debugger(session)
        debugger.ask("initialize", clientID="test", adapterID="test", linesStartAt1=True)
        debugger.ask("attach")
        cell = "%%jit\ny = x * 2\nz = y + 1"
        path = debugger.ask("dumpCell", code=cell)["sourcePath"]
        debugger.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": 3}])
        debugger.ask("configurationDone")
        msg_id = session.send(cell)
        thread = debugger.event("stopped")["threadId"]
        frames = debugger.ask("stackTrace", threadId=thread)["stackFrames"]
        assert (frames[0]["source"]["path"], frames[0]["line"]) == (path, 3)
        value = debugger.ask("evaluate", expression="str(y.shape)", frameId=frames[0]["id"])
        assert value["result"] == "'(3,)'"
        debugger.ask("continue", threadId=thread)
        assert session.wait(msg_id).status == "ok"
        debugger.ask("disconnect", restart=False, terminateDebuggee=False)
        assert session.ok("z.tolist()").text == "[1.0, 3.0, 5.0]"
