"""How exact the compiled function of an elementwise operation is to be."""

from __future__ import annotations

import enum
from typing import Any

from perspex.hlo import types


class AccuracyMode(enum.Enum):
    """Which of its functions the compiler takes: the most exact one, or the one it prefers.

    >>> from perspex import lax
    >>> lax.exp(0.0, accuracy=lax.AccuracyMode.HIGHEST)
    Array(1., dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """How large an error of the compiled function may be: two of them bound it together.

    Args:
      atol: the absolute error.
      rtol: the relative error.
      ulps: the error in units in the last place.

    Returns:
      The tolerance, equal to others with the same numbers.

    Raises:
      ValueError: for negative numbers, and if all are zero.

    >>> Tolerance(atol=1e-3)
    Tolerance(atol=0.001, rtol=0.0, ulps=0)
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(
                f"tolerances must not be negative, got atol={atol}, rtol={rtol} and ulps={ulps}"
            )
        if not (atol or rtol or ulps):
            raise ValueError("Tolerance takes atol, rtol or ulps, one of which must be positive")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def _numbers(self) -> tuple[float, float, int]:
        return self.atol, self.rtol, self.ulps

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tolerance) and self._numbers() == other._numbers()

    def __hash__(self) -> int:
        return hash(self._numbers())

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


Accuracy = AccuracyMode | Tolerance


def attributes(accuracy: Accuracy | None) -> dict[str, Any] | None:
    """What StableHLO calls it, as attributes of an operation; `None` says nothing."""
    if accuracy is None:
        return None
    numbers, mode = "", "TOLERANCE"
    if isinstance(accuracy, AccuracyMode):
        mode = accuracy.name
    else:
        numbers = (
            f"atol = {float(accuracy.atol):e}, rtol = {float(accuracy.rtol):e}, "
            f"ulps = {int(accuracy.ulps)}, "
        )
    text = f"{numbers}mode = #stablehlo.result_accuracy_mode<{mode}>"
    return {"result_accuracy": types.attribute(f"#stablehlo.result_accuracy<{text}>")}
