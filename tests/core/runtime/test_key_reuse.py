"""`debug_key_reuse` refuses what real jax 0.12 refuses, but for parts of arrays of keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import perspex
from perspex import lax, random
from perspex.errors import KeyReuseError

REFUSED: dict[str, Callable[[Any], Any]] = {
    "drawn twice": lambda key: (random.normal(key), random.normal(key)),
    "drawn, then split": lambda key: (random.uniform(key), random.split(key)),
    "split twice": lambda key: (random.split(key), random.split(key)),
    "drawn twice in jit": perspex.jit(lambda key: random.normal(key) + random.uniform(key)),
    "in jit, then outside": lambda key: (perspex.jit(random.normal)(key), random.normal(key)),
    "a constant of a loop": lambda key: lax.fori_loop(
        0, 3, lambda i, x: x + random.normal(key), 0.0
    ),
    "a while": lambda key: lax.while_loop(
        lambda x: x < 3, lambda x: x + 1 + 0 * random.uniform(key), 0.0
    ),
    "carried along": lambda key: lax.scan(lambda c, _: (c, random.normal(c)), key, length=3),
    "in a branch, then outside": lambda key: (
        lax.cond(True, lambda: random.normal(key), lambda: 0.0),
        random.normal(key),
    ),
    "returned after use": lambda key: random.normal(
        perspex.jit(lambda key: (random.normal(key), key))(key)[1]
    ),
}
TAKEN: dict[str, Callable[[Any], Any]] = {
    "once": random.normal,
    "fold_in": lambda key: [random.normal(random.fold_in(key, i)) for i in range(2)],
    "a clone": lambda key: (random.normal(key), random.normal(random.clone(key))),
    "halves of a split": lambda key: [random.normal(half) for half in random.split(key)],
    "halves in jit": perspex.jit(lambda key: [random.normal(half) for half in random.split(key)]),
    "both branches": lambda key: lax.cond(
        True, lambda: random.normal(key), lambda: random.uniform(key)
    ),
    "split on each turn": lambda key: lax.scan(
        lambda c, _: (random.split(c)[0], random.normal(random.split(random.clone(c))[1])),
        key,
        length=3,
    ),
    "a batch": lambda key: perspex.vmap(random.normal)(random.split(key, 3)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_key_that_is_used_twice(what: str) -> None:
    with perspex.debug_key_reuse(True), pytest.raises(KeyReuseError, match=r"random\.split"):
        REFUSED[what](random.key(0))
    REFUSED[what](random.key(0))


@pytest.mark.parametrize("what", TAKEN)
def test_keys_that_are_used_once(what: str) -> None:
    with perspex.debug_key_reuse(True):
        TAKEN[what](random.key(0))


def test_raw_keys_are_not_followed() -> None:
    key = random.PRNGKey(0)
    with perspex.debug_key_reuse(True):
        random.normal(key)
        random.normal(key)
