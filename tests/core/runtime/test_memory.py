"""Out of memory: an error before the process is killed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

import perspex
from perspex import numpy as pnp
from perspex.errors import JaxRuntimeError
from perspex.runtime import memory

SIZE = memory.LARGE // 4  # so many float32 are large


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much memory there is; a test may change it."""
    found = [64 << 30]
    monkeypatch.setattr(memory, "available", lambda: found[0])
    return found


def test_a_result_that_does_not_fit(left: list[int]) -> None:
    f = perspex.jit(lambda x: pnp.broadcast_to(x, (SIZE,)) + 1)
    assert f(1.0).shape == (SIZE,)
    left[0] = memory.LARGE
    with pytest.raises(JaxRuntimeError, match=r"RESOURCE_EXHAUSTED: `<lambda>` needs 0\.0625 GiB"):
        f(1.0)
    left[0] = 64 << 30
    assert f(1.0).shape == (SIZE,)


def test_a_shared_program_is_named_by_who_calls_it_now(left: list[int]) -> None:
    # `zeros_like`, `ones` and `tile` come to programs that others have compiled before.
    pnp.empty(SIZE), pnp.ones_like(np.empty(SIZE, np.float32))
    calls = {
        "zeros": lambda: pnp.zeros(SIZE),
        "zeros_like": lambda: pnp.zeros_like(np.empty(SIZE, np.float32)),
        "ones": lambda: pnp.ones(SIZE),
        "tile": lambda: pnp.tile(1.0, SIZE),
    }
    left[0] = memory.LARGE
    for name, call in calls.items():
        with pytest.raises(JaxRuntimeError, match=f"RESOURCE_EXHAUSTED: `{name}` needs 0"):
            call()


def test_temporary_values_count(left: list[int]) -> None:
    f = perspex.jit(lambda x: pnp.sort(x[:, None] * x).sum())
    x = pnp.ones(4_096)
    assert float(f(x)) == 4_096**2
    left[0] = memory.LARGE
    with pytest.raises(JaxRuntimeError, match="temporary values"):
        f(x)


def test_small_programs_do_not_look(left: list[int]) -> None:
    left[0] = 0
    assert float(perspex.jit(lambda x: x + 1)(1.0)) == 2


def test_owners_are_named(left: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "owners", [lambda: "`weights` holds most of it"])
    left[0] = 0
    with pytest.raises(JaxRuntimeError) as found:
        pnp.zeros(SIZE)
    assert found.value.__notes__ == ["`weights` holds most of it"]


def test_far_too_large() -> None:
    with pytest.raises(JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        pnp.zeros((10**6, 10**6))


def test_errors_of_other_programs_stay_theirs() -> None:
    """All programs under way are waited for first; one of them may have failed."""

    def fail(_: object) -> None:
        raise ValueError("of the callback")

    @perspex.jit
    def calls(x: pnp.ndarray) -> pnp.ndarray:
        perspex.debug.callback(fail, x)
        return x

    @perspex.jit
    def slow(x: pnp.ndarray) -> pnp.ndarray:
        for _ in range(200):
            x = x @ x / 500
        return x

    failed = None
    while failed is None:
        # The call returns before it fails where its operand is not there yet.
        with contextlib.suppress(JaxRuntimeError):
            failed = calls(slow(pnp.ones((500, 500))))
    with pytest.raises(JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        pnp.zeros((10**6, 10**6))
    with pytest.raises(JaxRuntimeError, match="of the callback"):
        failed.block_until_ready()
    with contextlib.suppress(JaxRuntimeError):
        perspex.effects_barrier()


def test_the_limit_of_a_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit, used, stat = (tmp_path / name for name in ("limit", "used", "stat"))
    monkeypatch.setattr(memory, "_group", lambda: (limit, used, stat, "inactive_file"))
    whole = memory.available()
    if whole is None:
        pytest.skip("the memory of this machine is not known: there is no /proc/meminfo")
    limit.write_text("5000\n")
    used.write_text("3000\n")
    stat.write_text("anon 2000\ninactive_file 700\n")
    assert memory.available() == 2_700
    limit.write_text("max\n")
    assert (memory.available() or 0) > 5_000


class Card:
    """A device with memory of its own."""

    platform = "gpu"

    def __init__(self, limit: int, used: int) -> None:
        self.stats: dict[str, int] | None = {"bytes_limit": limit, "bytes_in_use": used}

    def memory_stats(self) -> dict[str, int] | None:
        return self.stats

    def __str__(self) -> str:
        return "cuda:0"


def test_a_device_with_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "owners", [lambda: "`weights` holds most of it"])
    card = Card(80 << 30, 70 << 30)
    memory.check_device("f", 10 << 30, card)
    with pytest.raises(
        JaxRuntimeError,
        match=r"RESOURCE_EXHAUSTED: `f` needs 11 GiB of cuda:0 .* and 10 GiB are free",
    ) as found:
        memory.check_device("f", 11 << 30, card)
    assert found.value.__notes__ == ["`weights` holds most of it"]
    card.stats = None
    memory.check_device("f", 11 << 30, card)


def test_which_programs_look() -> None:
    card = Card(64 << 30, 0)
    assert memory.large_on(perspex.devices("cpu")[0]) == memory.LARGE
    assert memory.large_on(card) == 1 << 30
    card.stats = {"bytes_in_use": 3}
    assert memory.large_on(card) is None


def test_waiting_programs_free_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is queued may end and give memory back."""
    card = Card(1 << 30, 1 << 30)

    class Queued:
        def is_deleted(self) -> bool:
            return False

        def block_until_ready(self) -> None:
            card.stats = {"bytes_limit": 1 << 30, "bytes_in_use": 0}

    monkeypatch.setattr(memory, "live_arrays", lambda: [Queued()])
    memory.check_device("f", 1 << 29, card)
