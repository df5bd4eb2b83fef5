"""Collectives over devices for which real jax has no answer, held against their definitions.

The programs are those of `recorders/device_collectives.py`. NumPy applies the definition of each
collective to the parts of all devices, and derivatives are finite differences of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracle import records

RECORDS = records.read("device_collectives")
# Devices along the axis `x`.
COUNT = 4
Array = np.ndarray[Any, Any]
Parts = list[Array]


def many() -> Array:
    """The array `MANY` of `oracle.on_devices`, in float64: the ninth that its generator draws."""
    rng = np.random.default_rng(0)
    shapes = [(8, 4), (8, 8), (16, 8), (8, 4, 4), (4, 8), (8, 4), (8, 8), (8,), (16, 4)]
    drawn = [rng.normal(size=shape) for shape in shapes]
    return drawn[-1].astype(np.float32).astype(np.float64)


def exchanged(parts: Parts) -> Array:
    """Device `j` gets element `j` of what each has, along a new axis 1."""
    return np.concatenate([np.stack([p[j] for p in parts], 1) for j in range(COUNT)])


# A collective -> the whole result, given the parts of all devices.
DEFINITIONS: dict[str, Callable[[Parts], Array]] = {
    "psum": lambda parts: np.sum(parts, 0),
    "pmax": lambda parts: np.max(parts, 0),
    "pmin": lambda parts: np.min(parts, 0),
    "psum_scatter": lambda parts: np.concatenate(list(np.sum(parts, 0))),
    "all_to_all": exchanged,
    "pbroadcast": lambda parts: np.concatenate([parts[2]] * COUNT),
    "ragged_all_to_all": lambda parts: np.concatenate(
        [np.stack([p[j] for p in parts]) for j in range(COUNT)]
    ),
}


def applied(name: str, x: Array) -> Array:
    return DEFINITIONS[name](np.split(x, COUNT))


def weighted(y: Array) -> float:
    return float((y * np.cos(np.arange(y.size)).reshape(y.shape)).sum())


def gradient(f: Callable[[Array], float], x: Array) -> Array:
    """Central differences."""
    found, step = np.zeros_like(x), 1e-5
    for at in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[at] += step
        behind[at] -= step
        found[at] = (f(ahead) - f(behind)) / (2 * step)
    return found


def tangent(name: str) -> Array:
    x, step = many(), 1e-5
    ahead, behind = x + step * np.cos(x), x - step * np.cos(x)
    return (applied(name, ahead) - applied(name, behind)) / (2 * step)


def several(name: str, *xs: Array) -> Array:
    return np.stack([applied(name, x) for x in xs])


def gradients(name: str) -> Array:
    return np.stack(
        [gradient(lambda a: weighted(applied(name, a * a)), x) for x in (many(), many() - 1)]
    )


# What each way of running a collective gives.
EXPECTED: dict[str, Callable[[str], Array]] = {
    "forward": lambda name: applied(name, many()),
    "without types": lambda name: applied(name, many()),
    "reverse": lambda name: gradient(lambda a: weighted(applied(name, np.sin(a))), many()),
    "tangent": tangent,
    "batch inside": lambda name: several(name, many(), 2 * many(), many() + 1),
    "batch outside": lambda name: several(name, many(), 2 * many()),
    "batch of gradients": gradients,
}
CASES = [f"{name} / {way}" for name in DEFINITIONS for way in EXPECTED]
UNANSWERED = [
    key
    for key, answer in RECORDS.items()
    if isinstance(answer, str) and not key.startswith(("pmap / ", "groups / "))
]


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    return records.ours("device_collectives")


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_the_definition(case: str, ours: dict[str, Any]) -> None:
    name, way = case.split(" / ")
    expected = EXPECTED[way](name)
    assert isinstance(ours[case], list), ours[case]
    (found,) = ours[case]
    np.testing.assert_allclose(found["values"], expected.ravel(), rtol=3e-4, atol=1e-4)


@pytest.mark.parametrize("case", [case for case in CASES if case not in UNANSWERED])
def test_real_jax_agrees_with_the_definition_where_it_answers(case: str) -> None:
    name, way = case.split(" / ")
    (answer,) = RECORDS[case]
    expected = EXPECTED[way](name)
    np.testing.assert_allclose(answer["values"], expected.ravel(), rtol=3e-4, atol=1e-4)


def test_all_that_jax_does_not_answer_is_compared() -> None:
    assert set(UNANSWERED) <= set(CASES)
