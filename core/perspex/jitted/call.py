"""A call of a jitted function inside a traced one: the equation `jit`, with all its rules."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn
from perspex.ops.structural import is_linear
from perspex.tracing.axes import Axis
from perspex.tracing.staging import hoist_consts
from perspex.tracing.trace import typeof
from perspex.transforms import discharge
from perspex.transforms.checks import Checks
from perspex.transforms.dce import dce_closed
from perspex.transforms.expansion import Carried, Expand, Expanding
from perspex.transforms.higher_order import (
    Residuals,
    batch_in_front,
    check_operands,
    place_residuals,
)
from perspex.transforms.linearize import Rest, Split, split_jaxpr
from perspex.transforms.programs import by_program, merge, partition, pick, with_gaps
from perspex.transforms.sequence import sequenced
from perspex.transforms.transpose import transpose_jaxpr
from perspex.transforms.vmap import batch_jaxpr


class Jit(Expanding):
    """A call of a compiled function: one equation, one function of the module."""

    name = "jit"
    same_variables = True
    is_call = True
    quiet: ClassVar[dict[str, Any]] = {"donated_invars": ..., "inline": False, "keep_unused": False}

    def alternatives(self, params: dict[str, Any]) -> Sequence[ClosedJaxpr]:
        return (params["jaxpr"],)

    def type(self, *avals: ShapedArray, jaxpr: ClosedJaxpr, name: str, **params: Any) -> Any:
        check_operands(f"jit of {name}", avals, jaxpr.in_avals)
        return tuple(jaxpr.out_avals)

    def lower(self, b: Any, *values: Any, jaxpr: ClosedJaxpr, name: str, **params: Any) -> Any:
        return b.call(jaxpr, values, name)

    def call(self, jaxpr: ClosedJaxpr, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Call another program in the same way; nothing of it is donated."""
        donated = (False,) * len(operands)
        return self(*operands, jaxpr=jaxpr, **{**params, "donated_invars": donated})

    def checked(
        self, checks: Checks, *operands: Any, jaxpr: ClosedJaxpr, **params: Any
    ) -> list[Any]:
        return checks.called(jaxpr, operands, lambda c, xs: self.call(c, xs, params))

    def discharge(
        self, operands: Sequence[Any], refs: tuple[bool, ...], params: dict[str, Any]
    ) -> list[Any]:
        pure = discharge.discharge(params["jaxpr"], refs)
        params = {name: value for name, value in params.items() if name != "jaxpr"}
        outs = self.call(pure.closed, discharge.values(operands), params)
        return discharge.settle(operands, refs, pure.written, outs)

    def expanded(
        self, expand: Expand, primals: Any, carried: Carried, *, jaxpr: ClosedJaxpr, **params: Any
    ) -> tuple[list[Any], list[list[Any] | None]]:
        return expand.call(jaxpr, primals, carried, lambda c, xs: self.call(c, xs, params))

    def batch(
        self, axis: Axis, operands: Any, axes: Any, *, jaxpr: ClosedJaxpr, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        batched = tuple([at is not None for at in axes])
        body, out_batched = batch_jaxpr(jaxpr, axis, batched)
        outs = self.call(body, batch_in_front(operands, axes), params)
        return outs, [0 if flag else None for flag in out_batched]

    def split(
        self, unknown: Sequence[bool], *operands: Any, jaxpr: ClosedJaxpr, **params: Any
    ) -> tuple[list[Any], Rest | None]:
        halves, residuals = _split_call(jaxpr, tuple(unknown))
        early, late = partition(operands, unknown)
        known = residuals.known
        results = [] if known.is_idle else self.call(known, early, params)
        count = halves.out_unknown.count(False)
        outs = merge(halves.out_unknown, results[:count], [None] * sum(halves.out_unknown))
        if halves.unknown.is_idle:
            return outs, None
        rest = [*residuals.collect(early, results), *late]
        donated = (False,) * len(rest)
        return outs, Rest(
            self, rest, {**params, "jaxpr": halves.unknown, "donated_invars": donated}
        )

    def sequence(
        self, token: Any, *operands: Any, jaxpr: ClosedJaxpr, **params: Any
    ) -> tuple[Any, list[Any]]:
        token, *outs = self.call(sequenced(jaxpr), [token, *operands], params)
        return token, outs

    def transpose(self, cts: Any, *operands: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        linear = tuple([is_linear(x) for x in operands])
        nonzero = tuple([ct is not None for ct in cts])
        given = pick(cts, nonzero)
        weak = tuple([typeof(ct).weak_type for ct in given])
        body, out_nonzero = transpose_jaxpr(jaxpr, linear, nonzero, False, weak)
        given = [*partition(operands, linear)[0], *given]
        found = self.call(body, given, params) if body.out_avals else []
        return merge(linear, [None] * linear.count(False), with_gaps(found, out_nonzero))

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        jaxpr, needed = dce_closed(eqn.params["jaxpr"], tuple(used))
        donated = tuple(pick(eqn.params["donated_invars"], needed))
        return eqn.replace(
            invars=pick(eqn.invars, needed),
            outvars=pick(eqn.outvars, used),
            params={**eqn.params, "jaxpr": jaxpr, "donated_invars": donated},
        )


@by_program
def _split_call(jaxpr: ClosedJaxpr, unknown: tuple[bool, ...]) -> tuple[Split, Residuals]:
    halves = split_jaxpr(jaxpr, unknown)
    return halves, place_residuals(halves.known, halves.out_unknown.count(False))


jit_p = Jit()


_hoisted: weakref.WeakKeyDictionary[Any, ClosedJaxpr] = weakref.WeakKeyDictionary()


def hoisted(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """The program with its constants as first arguments; the same object for the same program."""
    if not closed.consts:
        return closed, []
    found = _hoisted.get(closed)
    if found is None:
        found = _hoisted[closed] = ClosedJaxpr(hoist_consts(closed.jaxpr))
    return found, closed.consts
