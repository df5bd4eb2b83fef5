"""Functions of the array namespace, called eagerly: one program each."""

from __future__ import annotations

import numpy as np
import pytest

import perspex.numpy as pnp
from perspex import events
from perspex.jitted.compiled import owners


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "max", "mean", "any", "median", "sort"])
def test_a_program_is_called_what_the_user_called(name: str) -> None:
    """Functions that share a program, and those behind another one, have the public name."""
    seen: list[str] = []
    stop = events.subscribe(lambda event: seen.append(event.name), ["compile"])
    # The size is one that no other test has.
    getattr(pnp, name)(np.ones(1237, np.float32))
    stop()
    assert name in seen


X = np.arange(1239.0, dtype=np.float32)
# What a user writes, and the name for the programs behind it that have none that users know.
SHARED = {
    "zeros": lambda: pnp.zeros(1231),
    "ones": lambda: pnp.ones(1232),
    "full": lambda: pnp.full(1233, 7.0),
    "empty": lambda: pnp.empty(1234),
    "zeros_like": lambda: pnp.zeros_like(X),
    "arange": lambda: pnp.arange(1235),
    "identity": lambda: pnp.identity(31),
    "hstack": lambda: pnp.hstack([X, X]),
    "concatenate": lambda: pnp.concatenate([X, X, X]),
    "rfft": lambda: pnp.fft.rfft(X),
    "std": lambda: pnp.std(X),
    "unique": lambda: pnp.unique(X),
    "getitem": lambda: pnp.asarray(X)[3:1237],
    "at.multiply": lambda: pnp.asarray(X).at[1:1238].multiply(2.0),
    "at.add": lambda: pnp.asarray(X).at[5].add(2.0),
    "pad": lambda: pnp.pad(X, 11),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_program_is_called_what_its_first_caller_called(name: str) -> None:
    seen: list[tuple[str, str]] = []
    kinds = ["trace", "lower", "compile"]
    stop = events.subscribe(lambda event: seen.append((event.kind, event.name)), kinds)
    SHARED[name]()
    stop()
    assert {(kind, name) for kind in kinds} <= set(seen)
    assert not {"repeated", "read", "join", "transformed", "runs"} & {each for _, each in seen}


def test_the_name_of_the_caller_is_no_part_of_the_program() -> None:
    # In caches it is the same one, as the module keeps a name of its own.
    seen: list[events.Event] = []
    stop = events.subscribe(seen.append, ["compile"])
    pnp.zeros(1236)
    for owner in owners():
        if owner.name == "_repeated":
            owner.come_to_python()
            owner.clear()
    pnp.empty(1236)
    stop()
    assert [event.name for event in seen] == ["zeros", "empty"]
    assert seen[0].data["key"] == seen[1].data["key"]
