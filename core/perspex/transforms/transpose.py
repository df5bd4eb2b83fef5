"""Reverse mode's second half: a linear program run backwards.

For `y = J x` the transpose takes a cotangent of `y` to that of `x`. Each equation turns round by
the `transpose` rule of its primitive; where a value was read several times its cotangents add up.
Equations that read no linear value are evaluated first, forwards: they are coefficients. `None` is
the cotangent zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex import config
from perspex.base import source
from perspex.base.name_stack import NameStack
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from perspex.ops.families import add_any
from perspex.ops.memory import like_primal
from perspex.ops.structural import convert, is_linear, zeros
from perspex.tracing.primitive import Linear
from perspex.tracing.staging import are_mixed, bind_wide, number
from perspex.tracing.trace import state
from perspex.transforms.jvp import cotangent_aval
from perspex.transforms.programs import (
    by_program,
    cut,
    like_primals,
    merge,
    partition,
    pick,
    program,
)


def add_cotangents(x: Any, y: Any) -> Any:
    """The sum of two cotangents."""
    if x is None or y is None:
        return y if x is None else x
    return add_any(x, y)


def backward_pass(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """The cotangents of the arguments of a program due to those of its results.

    `args[i]` is `Linear` for an argument in which the program is linear, otherwise its value.
    Returns a cotangent for each argument; `None` is zero, and stands for all but the linear ones.
    """
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update([(v, x) for v, x in zip(jaxpr.invars, args, strict=True) if not is_linear(x)])
    outer, names, mixed = state.source, source.names_here(), are_mixed()
    try:
        linear = _evaluate_coefficients(jaxpr, values, names)
        found: dict[Any, Any] = {}
        for atom, ct in zip(jaxpr.outvars, cts, strict=True):
            if atom.__class__ is not Literal and atom not in values:
                found[atom] = add_cotangents(found.get(atom), ct)
        for eqn in reversed(linear):
            state.source = eqn.source if names is None else names[eqn.source]
            if mixed and eqn.is_wide:
                with config.enable_x64(True):
                    _transpose_eqn(eqn, values, found)
            else:
                _transpose_eqn(eqn, values, found)
    finally:
        state.source = outer
    return [found.get(v) for v in jaxpr.invars]


def _evaluate_coefficients(
    jaxpr: Jaxpr, values: dict[Any, Any], names: NameStack | None
) -> list[JaxprEqn]:
    """Evaluate the equations that read no linear value; returns the others."""
    linear: list[JaxprEqn] = []
    trace, mixed = state.trace, are_mixed()
    for eqn in jaxpr.eqns:
        if any(v.__class__ is not Literal and v not in values for v in eqn.invars):
            linear.append(eqn)
            continue
        operands = tuple([number(v) if v.__class__ is Literal else values[v] for v in eqn.invars])
        state.source = eqn.source if names is None else names[eqn.source]
        if mixed and eqn.is_wide:
            out = bind_wide(eqn, operands)
        else:
            out = trace.bind(eqn.primitive, operands, eqn.params)
        values.update(
            zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True)
        )
    return linear


def _transpose_eqn(eqn: JaxprEqn, values: dict[Any, Any], found: dict[Any, Any]) -> None:
    primitive = eqn.primitive
    cts = [found.pop(v, None) for v in eqn.outvars]
    if all(ct is None for ct in cts):
        return
    operands = [
        number(v) if v.__class__ is Literal else values[v] if v in values else Linear(v.aval)
        for v in eqn.invars
    ]
    try:
        given = primitive.transpose(
            cts if primitive.multiple_results else cts[0], *operands, **eqn.params
        )
    except (TypeError, ValueError) as error:
        # What is given a placeholder where it needs a number says so.
        if "Linear(" in str(error):
            raise _not_linear(eqn) from None
        raise
    for v, x, ct in zip(eqn.invars, operands, given, strict=True):
        if ct is not None and x.__class__ is Linear:
            if ShapedArray.are_spaces_used:
                ct = like_primal(ct, x.aval)
            found[v] = add_cotangents(found.get(v), ct)


def _not_linear(eqn: JaxprEqn) -> ValueError:
    return ValueError(
        f"a function that is transposed must be linear, but `{eqn.primitive}` at "
        f"{source.summary(eqn.source)} takes two values that depend on its argument"
    )


def _nothing(primal: ShapedArray) -> Any:
    """The cotangent zero, as weak as its primal."""
    aval = cotangent_aval(primal)
    return convert(zeros(aval), aval.dtype, True) if aval.weak_type else zeros(aval)


@by_program
def transpose_jaxpr(
    closed: ClosedJaxpr,
    linear: tuple[bool, ...],
    nonzero: tuple[bool, ...],
    instantiate: tuple[bool, ...] | bool = False,
    weak: tuple[bool, ...] | None = None,
    like: tuple[ShapedArray, ...] | None = None,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The transpose of a program by its arguments marked `linear`.

    The program returned takes the other arguments and the cotangents of the results marked
    `nonzero`; it returns the cotangents of the linear arguments that the second value returned
    marks. Those marked `instantiate` are returned in any case, as zeros if need be. `weak` says
    which of the cotangents taken are weakly typed; those returned then are as the rules leave them.
    Without it, all are weakly typed where their primals are, or where the types in `like` are.
    """
    others, mine = partition(closed.in_avals, linear)
    wanted = (instantiate,) * len(mine) if isinstance(instantiate, bool) else instantiate
    ct_avals = [cotangent_aval(aval) for aval in pick(closed.out_avals, nonzero)]
    if weak is not None:
        ct_avals = [a.update(weak_type=w) for a, w in zip(ct_avals, weak, strict=True)]
    out_nonzero: tuple[bool, ...] = ()

    def backward(*args: Any) -> list[Any]:
        nonlocal out_nonzero
        coefficients, given = cut(args, len(others))
        late = iter(given)
        cts = [next(late) if flag else None for flag in nonzero]
        operands = merge(linear, coefficients, [Linear(aval) for aval in mine])
        found = pick(backward_pass(closed.jaxpr, closed.consts, operands, cts), linear)
        found = [
            _nothing(aval) if ct is None and want else ct
            for ct, aval, want in zip(found, mine, wanted, strict=True)
        ]
        out_nonzero = tuple([ct is not None for ct in found])
        return pick(found, out_nonzero) if weak is not None else like_primals(found, like or mine)

    return program(backward, [*others, *ct_avals], closed.jaxpr.name), out_nonzero
