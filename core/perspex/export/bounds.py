"""Bounds of symbolic dimensions.

Variables are at least 1. The bounds of a polynomial are the sums of those of its terms; they get
tighter by adding multiples of expressions that are known not to be negative, such that a term
vanishes:

    a - b >= 2 follows from a - b - 2 >= 0:   lower(a - b) >= lower(a - b - (a - b - 2)) = 2

Such expressions are the constraints of the user, and what defines `floordiv`, `mod`, `max`, `min`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perspex.export.expressions import Dimension, Product, Size, bounds_of, make

# How many multiples may be added one after another.
_DEPTH = 3


def bounds(x: Dimension, constraints: Sequence[tuple[Size, bool]]) -> tuple[float, float]:
    """A lower and an upper bound of `x`; of a constraint `(e, equal)`, `e >= 0` or `e == 0`."""
    both = [*[e for e, _ in constraints], *[-e for e, equal in constraints if equal]]
    known = [e for e in both if isinstance(e, Dimension)]  # with the rules, some are integers
    low = _lower(x, known, _DEPTH)
    high = -_lower(-x, known, _DEPTH)
    return low, high


def _times(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
    corners = [0 if 0 in (a, b) else a * b for a in one for b in two]
    return min(corners), max(corners)


def _factor(factor: Any) -> tuple[float, float]:
    if isinstance(factor, str):
        return 1, math.inf
    name, one, two = factor
    first, second = bounds_of(one), bounds_of(two)
    if name == "max":
        return max(first[0], second[0]), max(first[1], second[1])
    if name == "min":
        return min(first[0], second[0]), min(first[1], second[1])
    if name == "mod":
        if second[0] > 0:
            return 0, second[1] - 1
        return (second[0] + 1, 0) if second[1] < 0 else (-math.inf, math.inf)
    if second[0] <= 0:
        return -math.inf, math.inf
    ends = [_quotient(a, b) for a in first for b in second]
    return min(ends), max(ends)


def _quotient(a: float, b: float) -> float:
    if math.isinf(a):
        return a if not math.isinf(b) else 0 if a > 0 else -1
    if math.isinf(b):
        return 0 if a >= 0 else -1
    return a // b


def _term(product: Product, k: int) -> tuple[float, float]:
    found: tuple[float, float] = (k, k)
    for factor in product:
        found = _times(found, _factor(factor))
    if len(product) % 2 == 0 and product and product[::2] == product[1::2] and k > 0:
        return max(found[0], 0), found[1]  # a square
    return found


def _plain(x: Size) -> float:
    """The lower bound from the terms alone."""
    if not isinstance(x, Dimension):
        return float(x)
    total: float = 0
    for product, k in x.terms.items():
        total += _term(product, k)[0]
    return total


def _lower(x: Size, known: Sequence[Dimension], depth: int) -> float:
    best = _plain(x)
    if not isinstance(x, Dimension) or depth == 0 or len(x.terms) == 1 and best > -math.inf:
        return int(best) if math.isfinite(best) else best
    # A maximum or minimum is one of its operands.
    for product, k in x.terms.items():
        if len(product) == 1 and product[0][0] in ("max", "min") and product[0].__class__ is tuple:
            _, one, two = product[0]
            rest = x - make({product: k}, x.scope)
            cases = [_lower(rest + k * case, known, depth - 1) for case in (one, two)]
            best = max(best, min(cases))
    # One that is known not to be negative helps where it takes away a term.
    for e in [*known, *_implied(x)]:
        for product, k in e.terms.items():
            n = x.terms.get(product)
            # x = (n/k) e + rest and n/k > 0, so x >= rest
            if product and n is not None and n % k == 0 and n // k > 0:
                best = max(best, _lower(x - e * (n // k), known, depth - 1))
    return int(best) if math.isfinite(best) else best


def _implied(x: Dimension) -> list[Dimension]:
    """Expressions that are not negative because of what the operations in `x` mean."""
    found: list[Size] = []
    for product, k in x.terms.items():
        for factor in product:
            if isinstance(factor, str):
                continue
            name, one, two = factor
            value = make({(factor,): 1}, x.scope)
            if name == "max":
                found += [value - one, value - two]
            elif name == "min":
                found += [one - value, two - value]
            elif bounds_of(two)[0] > 0:
                quotient = make({(("floordiv", one, two),): 1}, x.scope)
                rest = one - quotient * two if name == "floordiv" else value
                found += [rest, two - rest - 1]
                if name == "mod" and bounds_of(one)[0] >= 0:
                    found.append(one - value)
        if len(product) > 1 and k > 0:
            # A product is at least what is left without a factor that is at least 1.
            for i, factor in enumerate(product):
                rest = product[:i] + product[i + 1 :]
                others = [_factor(f)[0] for f in rest]
                if rest in x.terms and _factor(factor)[0] >= 1 and all(n >= 0 for n in others):
                    found.append(make({product: 1, rest: -1}, x.scope))
    return [e for e in found if isinstance(e, Dimension)]
