"""Device time by line from the planes of an accelerator, written by hand as its profiler does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.xspace import Event, plane, space

import perspex
from perspex import lax
from perspex import numpy as jnp
from perspex.runtime.profile import Profile, Program, Session


def f(x: Any) -> Any:
    y = jnp.fft.fft(x)
    return lax.sort(jnp.abs(y))


FFT, SORT = f.__code__.co_firstlineno + 1, f.__code__.co_firstlineno + 2


@pytest.fixture
def session() -> Session:
    """A measurement of one run, whose profile a test replaces."""
    x = np.ones(64, np.float32)
    compiled = perspex.jit(f)
    with Session() as session:
        compiled(x)
    return session


def instruction(session: Session, kind: str) -> str:
    """The name of the instruction of that kind."""
    program = Program(session._runs[-1].executable)
    names = [name for name, one in program.instructions.by_name.items() if one.kind == kind]
    return names[0]


def read(session: Session, *planes: bytes) -> Profile:
    mark = Event(f"perspex call {len(session._runs) - 1}", 1_000, 900)
    fft = instruction(session, "fft")
    host = plane("/host:CPU", {"main": [mark, Event(fft, 1_010, 800)]})
    session._data = space(host, *planes)
    return session.profile()


def seconds(found: Profile) -> dict[int, float]:
    return {place.line: spent.seconds for place, spent in found.lines.items()}


def test_kernels_of_a_gpu(session: Session) -> None:
    """The times of its streams, and not that of the host, which only starts kernels."""
    fft, sort = instruction(session, "fft"), instruction(session, "sort")
    streams = {
        "Stream #7(Compute)": [
            Event("vector_fft_kernel", 1_100, 300, fft),
            Event("radix_sort", 1_500, 100, sort),
            Event("of another program", 5_000, 300, fft),
        ],
        "Stream #8(MemcpyD2H)": [Event("MemcpyD2H", 1_600, 50)],
    }
    found = read(session, plane("/device:GPU:0", streams))
    assert found.device == pytest.approx(400e-6)
    assert seconds(found) == pytest.approx({FFT: 300e-6, SORT: 100e-6})
    assert found.programs[0].runs == 1


def test_two_streams_at_once(session: Session) -> None:
    """Kernels that overlap share the time in which they do."""
    fft, sort = instruction(session, "fft"), instruction(session, "sort")
    streams = {
        "Stream #7(Compute)": [Event("a", 1_100, 200, fft)],
        "Stream #9(Compute)": [Event("b", 1_100, 200, sort)],
    }
    found = read(session, plane("/device:GPU:0", streams))
    assert found.device == pytest.approx(200e-6)
    assert seconds(found) == pytest.approx({FFT: 100e-6, SORT: 100e-6})


def test_instructions_of_a_tpu(session: Session) -> None:
    """Its line of instructions; those of modules and steps are their sums."""
    fft = instruction(session, "fft")
    lines = {
        "Steps": [Event("1", 1_100, 400)],
        "XLA Modules": [Event("jit_f", 1_100, 400)],
        "XLA Ops": [Event(f"%{fft} = c64[33] fft(x)", 1_100, 250)],
    }
    found = read(session, plane("/device:TPU:0", lines))
    assert found.device == pytest.approx(250e-6)
    assert seconds(found) == pytest.approx({FFT: 250e-6})
