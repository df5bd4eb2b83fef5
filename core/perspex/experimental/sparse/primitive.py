"""Equations of sparse arrays: each is a function of arrays under a name of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.ir.avals import ShapedArray
from perspex.ops.structural import is_linear
from perspex.rules.calls import transposed_call
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import stage
from perspex.tracing.trace import typeof
from perspex.transforms.jvp import jvp
from perspex.transforms.programs import program
from perspex.transforms.vmap import batch


class SparsePrimitive(Primitive):
    """An operation that is defined by array operations on its operands.

    A subclass writes `compute(*operands, **params)`, which returns the result or a tuple of results
    and raises errors for operands that do not fit. Everything else follows: the type, the compiled
    form, the tangents (with respect to the numbers; indices have none), and the batch. A derivative
    leaves the name behind, so the transpose is that of array operations: where an element is read,
    a cotangent is added, and the other way round.
    """

    multiple_results = False

    def compute(self, *operands: Any, **params: Any) -> Any:
        raise self.missing("compute")

    def _flat(self, params: dict[str, Any]) -> Any:
        def flat(*operands: Any) -> Sequence[Any]:
            out = self.compute(*operands, **params)
            return out if self.multiple_results else [out]

        return flat

    def type(self, *avals: ShapedArray, **params: Any) -> Any:
        jaxpr, _ = stage(self._flat(params), avals, self.name)
        outs = tuple([atom.aval for atom in jaxpr.outvars])
        return outs if self.multiple_results else outs[0]

    def lower(self, b: Any, *values: Any, **params: Any) -> Any:
        outs = b.inline(program(self._flat(params), b.in_avals, self.name).jaxpr, values)
        return outs if self.multiple_results else outs[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        outs, found = jvp(self._flat(params), primals, tangents)
        return (outs, found) if self.multiple_results else (outs[0], found[0])

    def transpose(self, ct: Any, *operands: Any, **params: Any) -> Any:
        avals = [x.aval if is_linear(x) else typeof(x) for x in operands]
        closed = program(self._flat(params), avals, self.name)
        return transposed_call(closed, ct if self.multiple_results else [ct], operands)

    def batch(
        self, axis_size: int, operands: Sequence[Any], axes: Sequence[int | None], **params: Any
    ) -> Any:
        outs, found = batch(self._flat(params), axis_size, operands, axes)
        return (outs, found) if self.multiple_results else (outs[0], found[0])
