"""`%restart` in a live kernel under a manager of Jupyter's: what comes back, and who notices."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import zmq
from support.session import TIMEOUT, Ran, Session, open_session
from zmq.utils.monitor import recv_monitor_message

KIND = "application/vnd.perspex.restarted+json"
# A thread that no signal and no exception reaches, as one that waits inside XLA.
HANG = """
import ctypes
mutex = ctypes.create_string_buffer(64)
libc = ctypes.CDLL(None)
print("hanging", flush=True)
libc.pthread_mutex_lock(mutex), libc.pthread_mutex_lock(mutex)
"""
FILES = """
def files():
    folder = "/proc/self/fd/"
    return [os.readlink(folder + n) for n in os.listdir(folder) if os.path.islink(folder + n)]
"""
LONG = """
import perspex, perspex.numpy as jnp
from perspex import lax
perspex.config.update("stoppable_loops", False)
long = perspex.jit(lambda a: lax.fori_loop(0, 10**9, lambda i, b: b @ b / 300, a))
a = jnp.ones((300, 300))
"""


@pytest.fixture
def own(jupyter_home: object) -> Iterator[Session]:
    """A kernel of one test."""
    with open_session() as session:
        yield session


def notice(ran: Ran) -> dict[str, object]:
    """What the cell was told of the restart."""
    shown = [output["content"].get("data", {}) for output in ran.outputs]
    return next(data[KIND] for data in shown if KIND in data)


def lost(ran: Ran) -> dict[str, str]:
    return {one["name"]: one["reason"] for one in notice(ran)["lost"]}


def test_the_notebook_goes_on(own: Session) -> None:
    own.ok(
        """
        import dataclasses, random as of_python
        import numpy as np, perspex, perspex.numpy as jnp
        from perspex import random
        rate = 0.5
        w = jnp.arange(4.0)
        alias, params = w, {"w": w, "n": 3}
        host = np.arange(6).reshape(2, 3)

        @perspex.jit
        def step(x):
            return x * rate

        @perspex.tree_util.register_dataclass
        @dataclasses.dataclass
        class Layer:
            w: object
            def go(self):
                return step(self.w)

        layer, slope = Layer(w), perspex.grad(lambda x: (x * rate).sum())
        shape = perspex.tree.structure(layer)
        key, ref = random.key(3), perspex.new_ref(jnp.zeros(2))
        step(w)
        perspex.config.update("enable_x64", True)
        np.random.seed(2), of_python.seed(1)
        """.replace("\n        ", "\n")
    )
    expected = own.ok("draws = np.random.RandomState(2).rand(2); draws.tolist()").text
    process = own.ok("import os; os.getpid()").text
    ran = own.ok("before = 5\n%restart")
    assert lost(ran) == {} and ran.reply["execution_count"] == 4
    assert own.ok("os.getpid()").text == process and own.manager.is_alive()
    assert own.ok("before, alias is w, params['w'] is w, layer.w is w").text == str(
        (5, True, True, True)
    )
    assert own.ok("w.tolist(), host.tolist(), ref[...].tolist()").text == str(
        ([0.0, 1.0, 2.0, 3.0], [[0, 1, 2], [3, 4, 5]], [0.0, 0.0])
    )
    # Functions see what the notebook assigns.
    own.ok("rate = 3.0")
    assert own.ok("layer.go().tolist(), step(w).tolist()").text == str(([0.0, 3.0, 6.0, 9.0],) * 2)
    assert own.ok("slope(w).tolist()").text == str([3.0] * 4)
    # Classes are containers, flags and generators are as they were.
    assert own.ok("perspex.tree.structure(layer) == shape").text == "True"
    assert own.ok("perspex.config.enable_x64.value, random.key_data(key).tolist()").text == str(
        (True, [0, 3])
    )
    assert own.ok("np.random.rand(2).tolist()").text == expected
    assert own.ok("of_python.random()").text == "0.13436424411240122"
    own.manager.restart_kernel()
    own.client.wait_for_ready(timeout=TIMEOUT)
    assert own.run("w").ename == "NameError"


def test_the_history_and_the_cells(own: Session) -> None:
    own.ok("def fails():\n    return 1 / 0")
    own.ok("41 + 1")
    own.ok("%restart")
    assert own.ok("Out[2], _2, In[2], len(In)").text == str((42, 42, "41 + 1", 5))
    failed = own.run("fails()")
    assert "Cell In[1], line 2" in failed.traceback and "return 1 / 0" in failed.traceback
    own.ok("import inspect")
    assert own.ok("print(inspect.getsource(fails))").stdout.startswith("def fails():")


def test_what_cannot_be_kept_is_told(own: Session, tmp_path: Path) -> None:
    own.ok(
        f"""
import threading
log = open({str(tmp_path / "log")!r}, "w")
settings = {{"log": log, "rate": 2}}
steps = (n for n in range(3))
lock = threading.Lock()
gone = __import__("perspex").numpy.ones(2); gone.delete()
kept = 1
"""
    )
    ran = own.ok("%restart")
    assert lost(ran) == {
        "log": f"the open file `{tmp_path / 'log'}`",
        "settings": f"it holds the open file `{tmp_path / 'log'}`",
        "steps": "a generator that has begun",
        "lock": "a lock",
        "gone": "an array that was deleted or donated",
    }
    assert own.run("steps").ename == "NameError" and own.ok("kept").text == "1"


def test_an_array_that_is_being_computed_is_not_waited_for(own: Session) -> None:
    own.ok(LONG)
    own.ok("endless = long(a)")
    assert lost(own.ok("%restart --now")) == {"endless": "an array that is still being computed"}
    assert own.ok("a.sum().item()").text == "90000.0"


def test_work_of_an_interrupted_cell_is_not_waited_for(own: Session) -> None:
    own.ok(LONG)
    ran = own.interrupt("end = long(a)\nprint('on')\nend.block_until_ready()", after="on")
    assert ran.ename == "KeyboardInterrupt"
    assert lost(own.ok("%restart")) == {"end": "an array that is still being computed"}


def test_requests_that_have_not_begun_are_handed_on(own: Session) -> None:
    """Also where a client sends several cells at once, and nobody gets a wrong answer."""
    sent = [own.send(code) for code in ("n = 1\n%restart", "n += 1", "n * 10")]
    replies: dict[str, dict[str, object]] = {}
    end = time.monotonic() + TIMEOUT
    while not {*sent} <= {*replies} and time.monotonic() < end:
        # As front ends listen to outputs all the time: ZeroMQ subscribes again while one does.
        own.client.iopub_channel.socket.poll(0)
        with suppress(queue.Empty):
            reply = own.client.get_shell_msg(timeout=0.05)
            replies[reply["parent_header"]["msg_id"]] = reply["content"]
    assert [replies[one]["status"] for one in sent] == ["ok"] * 3
    assert [replies[one]["execution_count"] for one in sent] == [1, 2, 3]
    assert own.ok("n").text == "2"


def test_outputs_wait_for_subscriptions(own: Session) -> None:
    """A client that is slow to subscribe again misses nothing."""
    socket = own.client.iopub_channel.socket
    events = zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
    with socket.get_monitor_socket(events) as monitor:
        sent = [own.send(code) for code in ("%restart", "'after it'")]
        assert recv_monitor_message(monitor)["event"] == zmq.EVENT_DISCONNECTED
        socket.unsubscribe(b"")
        assert recv_monitor_message(monitor)["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED
        socket.disable_monitor()
    time.sleep(0.3)
    socket.subscribe(b"")
    assert own.wait(sent[1]).text == "'after it'"


def test_a_thread_that_hangs_is_ended(own: Session) -> None:
    """The panel asks from another thread, while the main thread is stuck in C."""
    own.ok("x = 7")
    hanging = own.send("import threading\nx += 1" + HANG)
    own.until_output(hanging, "hanging")
    own.client.session.send(own.client.control_channel.socket, "create_subshell_request", {})
    subshell = own.client.get_control_msg(timeout=TIMEOUT)["content"]["subshell_id"]
    behind = own.send("x * 2")
    message = own.client.session.msg(
        "execute_request",
        {"code": "get_ipython().kernel.restart()", "silent": True, "store_history": False},
    )
    message["header"]["subshell_id"] = subshell
    own.client.shell_channel.send(message)
    ended = own.wait(hanging)
    assert ended.ename == "Restarted"
    assert own.wait(behind).text == "16"


def test_an_interrupt_while_it_writes_changes_nothing(own: Session) -> None:
    own.ok(
        """
import threading
class Slow:
    def __reduce__(self):
        print("writing", flush=True)
        threading.Event().wait()
slow = Slow()
"""
    )
    ran = own.interrupt("%restart", after="writing")
    assert "the kernel goes on as it was" in ran.stderr
    assert own.ok("type(slow) is Slow").text == "True"


def test_a_cell_that_fails_restarts_nothing(own: Session) -> None:
    own.ok("thread = __import__('threading').Lock()")
    assert own.run("%restart\n1 / 0").ename == "ZeroDivisionError"
    assert own.ok("thread.locked(), 1").text == "(False, 1)"


def test_nothing_is_left(own: Session, tmp_path: Path) -> None:
    """Neither a file with a name, nor an open one, nor a variable of the environment."""
    own.ok(f"import os, tempfile; tempfile.tempdir = {str(tmp_path)!r}")
    own.ok(FILES)
    own.ok("%restart")
    assert os.listdir(tmp_path) == []
    assert own.ok("[name for name in os.environ if 'INHERITED' in name]").text == "[]"
    assert own.ok(f"[name for name in files() if {str(tmp_path)!r} in name]").text == "[]"
