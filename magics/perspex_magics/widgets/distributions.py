"""The distributions of the key explorer: how to draw, the code for that, and the expected counts.

The expectations are cumulative distribution functions in closed form, not output of Perspex.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from perspex import random

# The most bars of a histogram, unless the samples are few whole numbers.
_BARS = 40
_MOST_WHOLE = 60
# The part on each side that the histogram of a distribution with long tails leaves out and counts.
_TAIL = 0.01


class Distribution(NamedTuple):
    """`below(x)` is the probability of a sample less than `x`; for whole numbers, of at most `x`.

    `code` has the placeholders `{key}` and `{shape}`. `is_direct` says that an element depends only
    on its own 32 random bits.
    """

    code: str
    draw: Callable[[Any, tuple[int, ...]], Any]
    below: Callable[[float], float]
    is_whole: bool = False
    is_direct: bool = False
    has_tails: bool = False


def _normal(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


def _truncated(x: float) -> float:
    low, high = _normal(-2.0), _normal(2.0)
    return min(1.0, max(0.0, (_normal(x) - low) / (high - low)))


def _laplace(x: float) -> float:
    return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2


def _poisson(x: float) -> float:
    return sum(math.exp(-3.0) * 3.0**k / math.factorial(k) for k in range(math.floor(x) + 1))


def _unit(x: float) -> float:
    return min(1.0, max(0.0, x))


DISTRIBUTIONS = {
    "uniform": Distribution(
        "random.uniform({key}, {shape})", random.uniform, _unit, is_direct=True
    ),
    "normal": Distribution("random.normal({key}, {shape})", random.normal, _normal, is_direct=True),
    "truncated_normal": Distribution(
        "random.truncated_normal({key}, -2.0, 2.0, {shape})",
        lambda key, shape: random.truncated_normal(key, -2.0, 2.0, shape),
        _truncated,
        is_direct=True,
    ),
    "exponential": Distribution(
        "random.exponential({key}, {shape})",
        random.exponential,
        lambda x: 1 - math.exp(-max(x, 0.0)),
        is_direct=True,
    ),
    "laplace": Distribution(
        "random.laplace({key}, {shape})", random.laplace, _laplace, is_direct=True
    ),
    "logistic": Distribution(
        "random.logistic({key}, {shape})",
        random.logistic,
        lambda x: 1 / (1 + math.exp(-x)),
        is_direct=True,
    ),
    "gumbel": Distribution(
        "random.gumbel({key}, {shape})", random.gumbel, lambda x: math.exp(-math.exp(-x))
    ),
    "cauchy": Distribution(
        "random.cauchy({key}, {shape})",
        random.cauchy,
        lambda x: 0.5 + math.atan(x) / math.pi,
        has_tails=True,
    ),
    "gamma": Distribution(
        "random.gamma({key}, 2.0, {shape})",
        lambda key, shape: random.gamma(key, 2.0, shape),
        lambda x: 1 - (1 + max(x, 0.0)) * math.exp(-max(x, 0.0)),
    ),
    "beta": Distribution(
        "random.beta({key}, 2.0, 2.0, {shape})",
        lambda key, shape: random.beta(key, 2.0, 2.0, shape),
        lambda x: _unit(x) ** 2 * (3 - 2 * _unit(x)),
    ),
    "bernoulli": Distribution(
        "random.bernoulli({key}, 0.3, {shape})",
        lambda key, shape: random.bernoulli(key, 0.3, shape),
        lambda x: 0.0 if x < 0 else 0.7 if x < 1 else 1.0,
        is_whole=True,
        is_direct=True,
    ),
    "randint": Distribution(
        "random.randint({key}, {shape}, 0, 10)",
        lambda key, shape: random.randint(key, shape, 0, 10),
        lambda x: min(1.0, max(0.0, (math.floor(x) + 1) / 10)),
        is_whole=True,
    ),
    "poisson": Distribution(
        "random.poisson({key}, 3.0, {shape})",
        lambda key, shape: random.poisson(key, 3.0, shape),
        _poisson,
        is_whole=True,
    ),
    "bits": Distribution(
        "random.bits({key}, {shape}, 'uint32')",
        lambda key, shape: random.bits(key, shape, "uint32"),
        lambda x: _unit(x / 2**32),
        is_direct=True,
    ),
}


class Histogram(NamedTuple):
    """How many samples lie between one edge and the next, and the expected number."""

    edges: list[float]
    counts: list[int]
    expected: list[float]
    outside: int


def histogram(samples: np.ndarray[Any, Any], distribution: Distribution) -> Histogram:
    """The histogram of samples, of any shape and at least one.

    >>> ones = np.ones(4)
    >>> histogram(ones, DISTRIBUTIONS["bernoulli"]).counts
    [4]
    """
    values = np.asarray(samples, np.float64).ravel()
    below = distribution.below
    low, high = float(values.min()), float(values.max())
    if distribution.is_whole and high - low < _MOST_WHOLE:
        middles = np.arange(low, high + 1)
        edges = np.append(middles - 0.5, high + 0.5)
        probabilities = [below(float(x)) - below(float(x) - 1) for x in middles]
    else:
        if distribution.has_tails:
            low, high = map(float, np.quantile(values, (_TAIL, 1 - _TAIL)))
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, min(_BARS, max(5, round(2 * values.size**0.5))) + 1)
        at = [below(float(edge)) for edge in edges]
        probabilities = [after - before for before, after in zip(at, at[1:], strict=False)]
    counts = np.histogram(values, edges)[0]
    return Histogram(
        edges.tolist(),
        counts.tolist(),
        [values.size * p for p in probabilities],
        int(values.size - counts.sum()),
    )
