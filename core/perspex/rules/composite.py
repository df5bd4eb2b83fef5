"""`composite`: a function as one operation with a name, which a compiler may replace by its own.

A compiler that does not know the name runs the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import tree
from perspex.api.calls import Call, check_callable
from perspex.errors import UnexpectedTracerError
from perspex.hlo import types
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn
from perspex.jitted.call import jit_p
from perspex.rules.calls import WholeCall, plain_call
from perspex.runtime.dispatch import EVAL
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr, stage_closed
from perspex.tracing.trace import Tracer, state
from perspex.transforms.checks import Checks
from perspex.transforms.higher_order import batch_in_front
from perspex.transforms.vmap import batch_jaxpr


class Constant:
    """An array of NumPy as part of the attributes of an equation: equal by its numbers."""

    __slots__ = ("key", "value")

    def __init__(self, value: np.ndarray) -> None:
        self.value = value.copy()
        self.key = value.tobytes(), value.shape, value.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


Attributes = tuple[tuple[str, tuple[Any, ...], Any], ...]


class Composite(WholeCall):
    """The call as an equation; `attributes` has the name, leaves and structure of each."""

    name = "composite"
    program = "call_jaxpr"

    def lower(
        self,
        b: Any,
        *values: Any,
        call_jaxpr: ClosedJaxpr,
        name: str,
        attributes: Attributes,
        version: int,
    ) -> list[Any]:
        found: list[Any] = b.composite(call_jaxpr, values, name, _written(attributes), version)
        return found

    def checked(self, checks: Checks, *operands: Any, call_jaxpr: Any, **params: Any) -> list[Any]:
        return checks.called(call_jaxpr, operands, lambda c, xs: eval_jaxpr(c.jaxpr, (), *xs))

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        # What the compiler knows by the name takes and gives all of it.
        return eqn

    def jvp(self, primals: Any, tangents: Any, *, name: str, **params: Any) -> Any:
        raise ValueError(
            f"the composite operation '{name}' has no derivative. Give the function that calls it "
            "one with jax.custom_jvp"
        )

    def transpose(self, cts: Any, *operands: Any, name: str, **params: Any) -> Any:
        raise ValueError(
            f"the composite operation '{name}' has no transpose. Give the function that calls it a "
            "derivative with jax.custom_jvp or jax.custom_vjp"
        )

    def batch(
        self, axis: Axis, operands: Any, axes: Any, *, call_jaxpr: ClosedJaxpr, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        # What the name stands for takes no batches: the function itself does.
        batched = tuple([at is not None for at in axes])
        body, found = batch_jaxpr(call_jaxpr, axis, batched)
        outs = eval_jaxpr(body.jaxpr, (), *batch_in_front(operands, axes))
        return outs, [0 if flag else None for flag in found]


composite_p = Composite()


def _written(attributes: Attributes) -> dict[str, Any]:
    """The attributes in MLIR; those that are `None` are left out."""
    found = {}
    for key, leaves, structure in attributes:
        plain = [x.value if isinstance(x, Constant) else x for x in leaves]
        value = tree.unflatten(structure, plain)
        if value is not None:
            found[key] = types.attribute_of(value)
    return found


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function as one operation with a name, which a compiler may replace by its own.

    Positional arguments of the result are operands, arguments by keyword are attributes of the
    operation. In the lowered program it is `stablehlo.composite`. It has no derivative, unless
    `custom_jvp` gives it one; `vmap` maps the decomposition.

    Args:
      decomposition: the function. A compiler that does not know the name compiles this instead.
      name: the name of the operation.
      version: which version of its meaning it has.

    Returns:
      A function with the arguments and results of `decomposition`.

    Raises:
      TypeError: if `decomposition` is no function.
      UnexpectedTracerError: from the result, where an attribute is traced, and where
        `decomposition` closes over what is traced.

    >>> from perspex import jit, lax
    >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent")
    >>> "stablehlo.composite" in jit(tangent).lower(1.0).as_text()
    True
    """
    check_callable(decomposition)

    @functools.wraps(decomposition)
    def as_one(*args: Any, **attributes: Any) -> Any:
        for key, value in attributes.items():
            if any(isinstance(leaf, Tracer) for leaf in tree.leaves(value)):
                raise UnexpectedTracerError(
                    f"composite: the attribute `{key}` of the operation '{name}' is traced, and "
                    "attributes are part of the program; pass it by position, or as a NumPy array"
                )
        call = Call("composite", functools.partial(decomposition, **attributes), args)
        closed, consts = stage_closed(call, call.avals, call.name)
        if any(isinstance(c, Tracer) for c in consts):
            raise UnexpectedTracerError(
                f"composite: the function of the operation '{name}' closes over a value that is "
                "traced; pass it as an argument"
            )
        if state.trace is EVAL:
            # Whoever runs it at once wants the numbers, and the name may be none of MLIR's.
            outs = jit_p(*consts, *call.leaves, **plain_call(closed, call.name, inline=False))
            return tree.unflatten(call.out_tree, outs)
        outs = composite_p(
            *consts,
            *call.leaves,
            name=name,
            attributes=tuple([_attribute(k, v) for k, v in attributes.items()]),
            version=version,
            call_jaxpr=closed,
        )
        return tree.unflatten(call.out_tree, outs)

    return as_one


def _attribute(key: str, value: Any) -> tuple[str, tuple[Any, ...], Any]:
    leaves, structure = tree.flatten(value)
    kept = [Constant(x) if isinstance(x, np.ndarray) else x for x in leaves]
    try:
        hash(tuple(kept))
    except TypeError:
        raise TypeError(
            f"composite: the attribute `{key}` has to be a number, a string, a dtype or a NumPy "
            f"array, or a list or dictionary of such; got {value!r}"
        ) from None
    return key, tuple(kept), structure
