"""A process that ends is named on the others, which go on in Python."""

from __future__ import annotations

import pytest
from support import several

ENDS = """
f = perspex.jit(lambda a: a.sum())
f(x)
if me == DIES:
    say("ends")
    END
error = raised(lambda: f(x))
say(type(error).__name__, error.processes)
say(error)
# What is here can still be computed and read.
say(jnp.arange(3).sum(), np.asarray(x.addressable_shards[0].data).sum())
"""
KILL = "os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.parametrize("dies", [0, 2])
def test_a_killed_process_is_named_on_all_others(dies: int) -> None:
    # Process 0 has started the coordinator, which outlives it.
    found = several.run(ENDS.replace("DIES", str(dies)).replace("END", KILL), count=4, devices=2)
    for me, ended in enumerate(found):
        if me == dies:
            assert ended.code == -9
            continue
        # What it had begun with the others was cut off.
        assert ended.code == 1, ended.err[-3000:]
        first, text, rest = ended.out.splitlines()
        assert first == f"ProcessEndedError ({dies},)"
        assert text.startswith(f"process {dies} (host ")
        assert "has ended without leaving" in text
        assert rest.startswith("3 ")


def test_a_process_that_has_left_is_named_before_the_next_program() -> None:
    program = (
        ENDS.replace("DIES", "0")
        .replace("END", "raise SystemExit")
        .replace("raised(lambda: f(x))", "raised(lambda: perspex.jit(lambda a: a.max())(x))")
    )
    first, second = several.run(program)
    assert (first.code, second.code) == (0, 0), second.err[-3000:]
    assert second.out.startswith("ProcessEndedError (0,)\nprocess 0 (host ")
    assert "has left" in second.out


LIVE = """
from perspex.experimental import multihost_utils
try:
    with multihost_utils.live_devices(perspex.devices()) as devices:
        say([d.id for d in devices])
        if me == 1: os.kill(os.getpid(), signal.SIGKILL)
except multihost_utils.ProcessFailureError as error:
    say(sorted(d.process_index for d in error.failed_devices))
with multihost_utils.live_devices(perspex.devices()) as devices:
    say([d.process_index for d in devices])
    left = NamedSharding(perspex.sharding.Mesh(np.array(devices), "x"), P("x"))
    y = perspex.make_array_from_callback((6,), left, lambda i: np.arange(6.0)[i])
    say(perspex.jit(lambda a: a.sum())(y))
"""


def test_those_that_live_go_on_with_their_devices() -> None:
    first, killed, *rest = several.run(LIVE, count=4)
    assert killed.code == -9
    for ended in (first, *rest):
        assert ended.code == 0, ended.err[-3000:]
        assert ended.out == "[0, 2048, 4096, 6144]\n[1]\n[0, 2, 3]\n15.0\n"
