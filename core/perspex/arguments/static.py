"""Arguments that must be known while tracing, because they decide the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import errors
from perspex.advice import messages
from perspex.base.dimensions import size
from perspex.tracing.trace import Tracer, concrete_value, is_concrete, story


def concrete(what: str, convert: Callable[[Any], Any], x: Any) -> Any:
    """`convert(x)` for an argument that must be known while tracing, `what` in the messages.

    Errors:
      `ConcretizationTypeError` for a tracer without a value; those of `convert`.
    """
    if not is_concrete(x):
        raise errors.ConcretizationTypeError(messages.concretization(what, *story(x)))
    try:
        return convert(concrete_value(x))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from None


def integers(name: str, what: str, values: Any) -> tuple[int, ...]:
    """A sequence of integers that are known while tracing; `TypeError` for anything else."""
    if values.__class__ is tuple and all([v.__class__ is int for v in values]):
        return values
    if not np.iterable(values):
        raise TypeError(f"{name}: {what} must be a sequence of integers, got {values!r}")
    values = tuple(values)
    try:
        return tuple([size(v) for v in values])
    except TypeError:
        if any(isinstance(v, Tracer) for v in values):
            raise
        raise TypeError(
            f"{name}: {what} must be a 1D sequence of concrete integers, got {values}"
        ) from None
