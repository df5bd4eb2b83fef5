"""Jitted functions that threads share, and how many programs are kept."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from perspex import custom_jvp, custom_vjp, grad, jit
from perspex import numpy as pnp
from perspex.base.recent import Recent
from perspex.jitted.compiled import owners
from perspex.runtime.compiler import pressure
from perspex.runtime.dispatch import EVAL, MOST_PROGRAMS


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*works: Callable[[], object]) -> list[BaseException]:
    """What is raised by functions that threads run at the same time."""
    start, raised = threading.Barrier(len(works)), []

    def run(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_functions_are_jitted_while_one_looks_at_all(eager_switching: None) -> None:
    def make() -> None:
        for _ in range(2_000):
            jit(lambda x: x)

    def look() -> None:
        for _ in range(300):
            owners()

    assert not together(make, look)


def test_programs_are_forgotten_while_another_thread_uses_them(eager_switching: None) -> None:
    def use() -> None:
        for i in range(3_000):
            recent[i % 7] = i
            recent.get(i % 5)

    def forget() -> None:
        for _ in range(3_000):
            recent.clear()
            recent.entries()

    recent = Recent[int, int](4)
    assert not together(use, forget) and len(recent) <= 4
    assert isinstance(EVAL.programs, Recent)


def test_the_programs_of_a_function_are_bounded() -> None:
    f = jit(lambda x: x)
    (owner,) = [one for one in owners() if one.fun is f.__wrapped__]
    assert owner.programs.most == owner.executables.most == MOST_PROGRAMS


def test_programs_are_forgotten_where_the_system_counts_no_mappings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forgotten: list[int] = []
    monkeypatch.setattr(pressure, "mappings", lambda: 0)
    monkeypatch.setattr(pressure, "forget", lambda: forgotten.append(1))
    monkeypatch.setattr(pressure, "_MOST_PROGRAMS", 256)
    for _ in range(1_024):
        pressure.relieve()
    assert len(forgotten) in (3, 4)  # one may have been due for what was compiled before


def test_threads_transform_one_remembered_program(eager_switching: None) -> None:
    """Its rules close over values of a trace that is over."""

    def make() -> Callable[..., Any]:
        def f(x: Any, c: Any) -> Any:
            @custom_jvp
            def g(y: Any) -> Any:
                return y * c

            @g.defjvp
            def _(primals: Any, tangents: Any) -> Any:
                for _ in range(20):
                    zero = 0 * pnp.sin(primals[0] * c)
                return g(*primals), tangents[0] * c * 2 + zero

            @custom_vjp
            def h(y: Any) -> Any:
                return y * c

            h.defvjp(lambda y: (y * c, y), lambda y, ct: (ct * c * 3,))
            return g(x) + h(x)

        return jit(f)

    for _ in range(15):
        f = make()
        f(1.0, 2.0)
        found: list[float] = []

        def work(f: Any = f, found: list[float] = found) -> None:
            found.append(float(grad(f)(1.0, 2.0)))

        assert not together(*[work] * 6)
        np.testing.assert_allclose(found, 10.0)


def test_an_object_that_converts_itself_is_no_argument() -> None:
    class Array:
        def __jax_array__(self) -> Any:
            return np.ones(3, np.float32)

    with pytest.raises(ValueError, match=r"`x` of .* __jax_array__ is not called[\s\S]*asarray"):
        jit(lambda x: x)(Array())
