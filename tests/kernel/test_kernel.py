"""What a notebook gets from the Perspex kernel beyond IPython's."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from support.session import TIMEOUT, Session, open_session


def test_it_says_what_it_is(live: Session) -> None:
    live.client.kernel_info()
    content = live.client.get_shell_msg(timeout=TIMEOUT)["content"]
    assert content["implementation"] == "perspex"
    assert content["language_info"]["name"] == "python"
    assert content["banner"].startswith("Perspex ") and "import jax" in content["banner"]
    assert all(link["url"].startswith("https://") for link in content["help_links"])
    assert "debugger" in content["supported_features"]


def test_import_jax_is_perspex(live: Session) -> None:
    ran = live.ok("import jax, jax.numpy as jnp, perspex\njnp.add is perspex.numpy.add")
    assert ran.text == "True"


def test_as_jax_can_be_turned_off() -> None:
    with open_session(extra_arguments=["--PerspexKernel.as_jax=False"]) as session:
        assert session.ok("import sys\n'perspex.as_jax' in sys.modules").text == "False"
        session.client.kernel_info()
        while "banner" not in (content := session.client.get_shell_msg(timeout=60)["content"]):
            continue
        assert "left alone" in content["banner"]
        # The magics are there all the same.
        assert "%%jit" in session.ok("%%jit --help").stdout


def test_as_jax_can_be_turned_off_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSPEX_AS_JAX", "0")
    with open_session() as session:
        assert session.ok("import sys\n'perspex.as_jax' in sys.modules").text == "False"


def test_a_module_beside_the_notebook_does_not_break_the_start(tmp_path: object) -> None:
    (tmp_path / "random.py").write_text("raise RuntimeError('not the real random')")  # type: ignore[operator]
    with open_session(cwd=str(tmp_path)) as session:
        assert session.ok("6 * 7").text == "42"
        # Once it runs, the folder is on the path as ever.
        assert session.ok(f"import sys\n{str(tmp_path)!r} in sys.path or '' in sys.path").text == (
            "True"
        )


def test_a_start_tells_the_front_end_nothing(tmp_path: Path) -> None:
    # What the kernel sends as streams, before anybody listens perhaps, goes to a file as well.
    said = tmp_path / "said.txt"
    with said.open("w") as file:
        options = {"stdout": file, "stderr": file}
        with open_session(extra_arguments=["--IPKernelApp.quiet=False"], **options) as session:
            session.ok("print('hello')")
    log = "[PerspexKernelApp]"  # goes nowhere else
    told = [line for line in said.read_text().splitlines() if not line.startswith(log)]
    assert told == ["hello"]


def test_a_cell_that_fails_half_way(live: Session) -> None:
    ran = live.run("before = 1\nraise ValueError('on purpose')\nafter = 2")
    assert (ran.status, ran.ename) == ("error", "ValueError")
    assert "----> 2 raise" in ran.traceback
    assert live.ok("before").text == "1"
    assert live.run("after").ename == "NameError"


def test_input(live: Session) -> None:
    msg_id = live.send("name = input('who? ')\nname.upper()", allow_stdin=True)
    request = live.client.get_stdin_msg(timeout=TIMEOUT)
    assert request["content"]["prompt"] == "who? "
    live.client.input("ada")
    assert live.wait(msg_id).text == "'ADA'"


def test_await(live: Session) -> None:
    assert live.ok("import asyncio\nawait asyncio.sleep(0.01, 'done')").text == "'done'"


ECHO = """
from ipykernel.comm import Comm
import threading
heard = []
def opened(comm, message):
    @comm.on_msg
    def on_message(message):
        heard.append((message['content']['data'], threading.current_thread().name))
        comm.send({'echo': message['content']['data']})
get_ipython().kernel.comm_manager.register_target('echo', opened)
"""


def comm_message(
    session: Session, comm: str, kind: str, subshell: str | None = None, **content: object
) -> None:
    message = session.client.session.msg(kind, {"comm_id": comm, **content})
    if subshell:
        message["header"]["subshell_id"] = subshell
    session.client.shell_channel.send(message)


def echoes(session: Session, until: object) -> float:
    """When the echo of `until` came."""
    while True:
        message = session.client.get_iopub_msg(timeout=TIMEOUT)
        if message["msg_type"] == "comm_msg" and message["content"]["data"] == {"echo": until}:
            return time.monotonic()


def test_comm_messages_wait_for_a_busy_kernel(live: Session) -> None:
    live.ok(ECHO)
    comm_message(live, "a", "comm_open", target_name="echo", data={})
    started = time.monotonic()
    live.send("import time; time.sleep(0.5)")
    comm_message(live, "a", "comm_msg", data=1)
    assert echoes(live, 1) - started > 0.4


def test_comm_messages_by_subshell_do_not(live: Session, tmp_path: Path) -> None:
    live.ok(ECHO)
    live.client.control_channel.send(live.client.session.msg("create_subshell_request", {}))
    subshell = live.client.get_control_msg(timeout=TIMEOUT)["content"]["subshell_id"]
    comm_message(live, "b", "comm_open", target_name="echo", data={}, subshell=subshell)
    begun = tmp_path / "begun"
    msg_id = live.send(
        f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(600)"
    )
    while not begun.exists():
        time.sleep(0.01)
    comm_message(live, "b", "comm_msg", data=2, subshell=subshell)
    echoes(live, 2)
    live.manager.interrupt_kernel()
    assert live.wait(msg_id).ename == "KeyboardInterrupt"


def test_matplotlib_draws_into_the_notebook(live: Session) -> None:
    ran = live.ok(
        "import matplotlib.pyplot as plt, perspex.numpy as jnp\n"
        "_ = plt.plot(jnp.arange(3.0), jnp.arange(3.0) ** 2)"
    )
    shown = [o["content"]["data"] for o in ran.outputs if o["msg_type"] == "display_data"]
    images = [data["image/png"] for data in shown if "image/png" in data]
    assert len(images) == 1 and images[0].startswith("iVBOR")


def test_arrays_are_shown_as_text_and_as_html(live: Session) -> None:
    ran = live.ok("import perspex.numpy as jnp\njnp.array([1.5, 2.5])")
    assert ran.text == "Array([1.5, 2.5], dtype=float32)"
    assert "float32[2]" in ran.data["text/html"] and "2.5" in ran.data["text/html"]
    assert "<script" not in ran.data["text/html"]


def test_jit_of_a_cell(live: Session) -> None:
    live.ok("import perspex.numpy as jnp\nx = jnp.array([1.0, 2.0, 3.0])\na = 2.0")
    cell = "%%jit --time\nx = 0.5 * (x + a / x)\nx"
    first, second = live.ok(cell), live.ok(cell)
    assert "compile" in first.stdout and "compile" not in second.stdout
    x = np.array([1.0, 2.0, 3.0], np.float32)
    for ran in (first, second):
        x = np.float32(0.5) * (x + np.float32(2) / x)
        shown = ran.text.removeprefix("Array(").split("], ")[0] + "]"
        np.testing.assert_allclose(json.loads(shown), x, rtol=1e-5)
    # 64-bit arithmetic of the same, from outside.
    assert abs(float(live.ok("float(x[1])").text) - 1.5 / 2 - 1 / 1.5) < 1e-5


def test_jit_of_definitions(live: Session) -> None:
    live.ok("%%jit --static n\ndef power(x, n):\n    return x if n == 1 else x * power(x, n - 1)")
    assert live.ok("float(power(2.0, 10)), type(power).__name__").text.startswith("(1024.0,")


def test_an_error_under_jit_is_the_cells_error(live: Session) -> None:
    live.ok("import perspex.numpy as jnp\nx = jnp.ones(3)\nkept = x")
    ran = live.run("%%jit\ny = x * 2\nx = y + 1\nif x.sum() > 0:\n    x = x + 1")
    assert (ran.status, ran.ename) == ("error", "TracerBoolConversionError")
    assert "line 4" in ran.traceback and "----> 4 if x.sum() > 0:" in ran.traceback
    assert "perspex_magics" not in ran.traceback and "run_cell_magic" not in ran.traceback
    assert [o["msg_type"] for o in ran.outputs].count("error") == 1
    assert live.ok("x is kept, 'y' in globals()").text == "(True, False)"


def test_options_are_completed(live: Session) -> None:
    code = "%%jit --st"
    live.client.complete(code, len(code))
    content = live.client.get_shell_msg(timeout=TIMEOUT)["content"]
    assert content["matches"] == ["--static"]
    assert code[content["cursor_start"] : content["cursor_end"]] == "--st"


def test_the_debugger_answers(live: Session) -> None:
    request = {"type": "request", "seq": 1, "command": "debugInfo"}
    live.client.control_channel.send(live.client.session.msg("debug_request", request))
    content = live.client.get_control_msg(timeout=TIMEOUT)["content"]
    assert content["success"] and content["body"]["isStarted"] is False
