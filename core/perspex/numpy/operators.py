"""The operators of concrete arrays as C++ callables: no Python between `x + y` and the device.

`operators` maps method names to what `runtime.array.install` puts in the place of the Python
methods. A foreign operand gives `NotImplemented`, so that Python asks the other operand. Powers and
products of matrices stay in Python: `x ** 2` depends on the number 2, which C++ does not see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perspex.jitted.fused import fused_operator
from perspex.numpy import arithmetic, logic
from perspex.numpy.arithmetic import integer_power, power
from perspex.tracing import array_methods

_binary: dict[str, Callable[..., Any]] = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.true_divide,
    "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder,
    "divmod": arithmetic.divmod,
    "and": logic.bitwise_and,
    "or": logic.bitwise_or,
    "xor": logic.bitwise_xor,
    "lshift": logic.left_shift,
    "rshift": logic.right_shift,
}
_comparisons: dict[str, Callable[..., Any]] = {
    "eq": logic.equal,
    "ne": logic.not_equal,
    "lt": logic.less,
    "le": logic.less_equal,
    "gt": logic.greater,
    "ge": logic.greater_equal,
}
_unary: dict[str, Callable[..., Any]] = {
    "neg": arithmetic.negative,
    "pos": arithmetic.positive,
    "abs": arithmetic.absolute,
    "invert": logic.bitwise_not,
}


def _reflected(f: Callable[..., Any]) -> Callable[..., Any]:
    def reflected(x: Any, y: Any) -> Any:
        return f(y, x)

    reflected.__name__ = f.__name__
    return reflected


def _power(self: Any, other: Any) -> Any:
    if other.__class__ is int:
        return integer_power(self, other)
    return power(self, other) if array_methods.accepts(other) else NotImplemented


operators: dict[str, Any] = {"__pow__": _power}
for _name, _f in {**_binary, **_comparisons, **_unary}.items():
    operators[f"__{_name}__"] = fused_operator(_f, array_methods.accepts)
for _name, _f in _binary.items():
    operators[f"__r{_name}__"] = fused_operator(_reflected(_f), array_methods.accepts)
