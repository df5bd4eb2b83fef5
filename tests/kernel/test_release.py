"""In a real kernel: memory is back after the cell that follows a failed one; `%debug` works."""

from __future__ import annotations

import pytest
from support.session import TIMEOUT, Session

MIB = 1 << 20

# Each fails in a function that holds an array of 8 MiB under the name `big`.
FAILING = {
    "a function": "def f():\n    big = jnp.ones(1 << 21)\n    raise ValueError('no')\nf()",
    "a chain in a cycle": (
        "def f():\n    big = jnp.ones(1 << 21)\n    1 / 0\n"
        "def g():\n    try:\n        f()\n    except ZeroDivisionError as error:\n"
        "        kept = error\n        raise ValueError('no') from kept\ng()"
    ),
    "tracing": (
        "def f():\n    big = jnp.ones(1 << 21)\n"
        "    @perspex.jit\n    def loss(x):\n        if x > 0: return big.sum()\n        return x\n"
        "    return loss(1.0)\nf()"
    ),
    "a cell under %%jit": (
        "%%jit\ndef f(x):\n    big = concrete()\n    raise ValueError('no')\nf(1.0)"
    ),
    "an async cell": (
        "import asyncio\nasync def f():\n    big = jnp.ones(1 << 21)\n    await asyncio.sleep(0)\n"
        "    raise ValueError('no')\nawait f()"
    ),
}


@pytest.fixture(scope="module")
def session(live: Session) -> Session:
    live.ok(
        "import gc, perspex, perspex.numpy as jnp\nfrom perspex.runtime import client\n"
        "def held(): return sum(x.nbytes for x in client.client().live_arrays())\n"
        "gc.disable()"
    )
    return live


def held(session: Session) -> int:
    """Bytes of live arrays, asked in a way that does not count as the next cell."""
    reply = session.client.execute(
        "", silent=True, user_expressions={"held": "held()"}, store_history=False
    )
    while True:
        message = session.client.get_shell_msg(timeout=TIMEOUT)
        if message["parent_header"].get("msg_id") == reply:
            value: str = message["content"]["user_expressions"]["held"]["data"]["text/plain"]
            return int(value)


@pytest.mark.parametrize("cell", FAILING.values(), ids=FAILING)
def test_memory_is_back_after_the_next_cell(session: Session, cell: str) -> None:
    session.ok("concrete = [jnp.ones(1 << 21)].pop" if "concrete" in cell else "concrete = None")
    before = held(session) - 8 * MIB * ("concrete" in cell)
    ran = session.run(cell)
    assert ran.status == "error"
    assert held(session) >= before + 8 * MIB
    # What somebody else asks silently is no next cell.
    session.ok("1", silent=True)
    assert held(session) >= before + 8 * MIB
    session.ok("pass")
    assert held(session) < before + MIB


def test_the_notice_comes_after_the_traceback(session: Session) -> None:
    ran = session.run(FAILING["a function"])
    kinds = [output["msg_type"] for output in ran.outputs if output["msg_type"] != "status"]
    assert kinds.index("error") < kinds.index("display_data")
    shown = [
        output["content"]["data"]
        for output in ran.outputs
        if "application/vnd.perspex.pinned+json" in output["content"].get("data", {})
    ]
    assert len(shown) == 1
    assert "`big` in f(), 8.00 MiB" in shown[0]["text/plain"]
    session.ok("pass")


def test_post_mortem_debugging(session: Session) -> None:
    before = held(session)
    session.run(FAILING["a function"])
    msg_id = session.send("%debug", allow_stdin=True)
    for command in ("p float(big.sum())", "q"):
        assert session.client.get_stdin_msg(timeout=TIMEOUT)["msg_type"] == "input_request"
        session.client.input(command)
    ran = session.wait(msg_id)
    assert ran.status == "ok" and str(float(1 << 21)) in ran.stdout
    session.ok("pass")
    assert held(session) < before + MIB


def test_the_traceback_can_be_shown_again(session: Session) -> None:
    first = session.run(FAILING["a function"])
    session.ok("pass")
    again = session.run("%tb")
    shown = [o["content"] for o in again.outputs if o["msg_type"] == "error"]
    assert shown[0]["traceback"] == first.reply["traceback"]
    assert shown[0]["ename"] == "ValueError" and shown[0]["evalue"] == "no"


def test_exhausted_memory_names_the_owners(session: Session) -> None:
    session.ok("weights = jnp.ones((1 << 21, 3))")
    ran = session.run("jnp.ones(2**44)")
    assert ran.status == "error" and "RESOURCE_EXHAUSTED" in ran.reply["evalue"]
    assert "weights 24.0 MiB" in ran.traceback
    session.ok("%buffers free weights")


def test_buffers(session: Session) -> None:
    session.ok("weights = jnp.ones((1 << 20, 3))")
    before = held(session)
    ran = session.ok("%buffers")
    data = next(o["content"]["data"] for o in ran.outputs if o["msg_type"] == "display_data")
    assert data["application/vnd.perspex.buffers+json"]["rows"][0]["nbytes"] == 12 * MIB
    assert "weights" in data["text/plain"] and "weights" in data["text/html"]
    assert "12.0 MiB freed" in session.ok("%buffers free weights").stdout
    assert before - held(session) == 12 * MIB
