"""`jax.interpreters.ad`: forward and reverse mode, as libraries call them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from perspex.as_jax.doors import zeros
from perspex.as_jax.doors.linear_util import WrappedFun, flat_function
from perspex.as_jax.doors.rules import primitive_jvps as primitive_jvps
from perspex.as_jax.doors.rules import primitive_transposes as primitive_transposes
from perspex.as_jax.doors.zeros import UndefinedPrimal as UndefinedPrimal
from perspex.as_jax.doors.zeros import Zero as Zero
from perspex.as_jax.doors.zeros import instantiate_zeros as instantiate_zeros
from perspex.as_jax.doors.zeros import is_undefined_primal as is_undefined_primal
from perspex.ops.families import add_any as add_jaxvals_p
from perspex.ops.structural import zeros as zeros_like_aval
from perspex.tracing.trace import typeof
from perspex.transforms import jvp as forward
from perspex.transforms import transpose as reverse
from perspex.transforms.jvp import JvpTrace as JVPTrace
from perspex.transforms.jvp import JvpTracer as JVPTracer

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p",
    "add_tangents", "backward_pass", "defbilinear", "defjvp", "defjvp2", "deflinear",
    "deflinear2", "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal", "jvp",
    "jvp_jaxpr", "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip

Rule = Callable[..., Any]


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two tangents."""
    return add_jaxvals_p(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents; either may be a `Zero`."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_jaxvals(x, y)


def _sum(found: list[Any], out: Any) -> Any:
    return functools.reduce(add_tangents, found, Zero.from_primal_value(out))


def defjvp(primitive: Any, *jvprules: Rule | None) -> None:
    """Give a primitive a derivative for each operand: `rule(tangent, *operands, **params)`."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        found = [
            rule(t, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=False)
            if rule is not None and type(t) is not Zero
        ]
        return out, _sum(found, out)

    primitive_jvps[primitive] = jvp


def defjvp2(primitive: Any, *jvprules: Rule | None) -> None:
    """Like `defjvp`, with the result: `rule(tangent, result, *operands, **params)`."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        found = [
            rule(t, out, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=False)
            if rule is not None and type(t) is not Zero
        ]
        return out, _sum(found, out)

    primitive_jvps[primitive] = jvp


def _linear_jvp(primitive: Any) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            if primitive.multiple_results:
                return out, [Zero.from_primal_value(y) for y in out]
            return out, Zero.from_primal_value(out)
        return out, primitive.bind(*[instantiate_zeros(t) for t in tangents], **params)

    return jvp


def deflinear(primitive: Any, transpose_rule: Rule) -> None:
    """Say that a primitive is linear, with `transpose_rule(cotangent, **params)`."""

    def transpose(ct: Any, *operands: Any, **params: Any) -> Any:
        if type(ct) is Zero:
            return [Zero(x.aval) for x in operands]
        return transpose_rule(ct, **params)

    deflinear2(primitive, transpose)


def deflinear2(primitive: Any, transpose_rule: Rule) -> None:
    """Say that a primitive is linear, with `transpose_rule(cotangent, *operands, **params)`."""
    primitive_jvps[primitive] = _linear_jvp(primitive)
    primitive_transposes[primitive] = transpose_rule


def defbilinear(prim: Any, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Say that a primitive is linear in each of its two operands, with a transpose for each."""
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        if is_undefined_primal(x) == is_undefined_primal(y):
            raise ValueError(f"{prim} is transposed with respect to one of its two operands")
        if is_undefined_primal(x):
            return Zero(x.aval) if type(ct) is Zero else lhs_rule(ct, x, y, **params), None
        return None, Zero(y.aval) if type(ct) is Zero else rhs_rule(ct, x, y, **params)

    primitive_transposes[prim] = transpose


def get_primitive_transpose(p: Any) -> Rule:
    """The transpose rule of a primitive."""
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{p}' not implemented"
        ) from None


def jvp(
    fun: WrappedFun, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[list[Any], list[Any]]:
    """The results of a flat function and their tangents; a tangent may be a `Zero`."""
    if has_aux:
        raise NotImplementedError(
            "ad.jvp: has_aux is not supported here; use jax.jvp(..., has_aux=True)"
        )
    given = [zeros.from_jax(t) for t in tangents]
    outs, found = forward.jvp(flat_function(fun), primals, given)
    return outs, [
        instantiate_zeros(zeros.to_jax(t, typeof(y))) for y, t in zip(outs, found, strict=True)
    ]


def jvp_jaxpr(
    jaxpr: Any, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[Any, list[bool]]:
    """The program that computes results and tangents, and which results have one."""
    wanted = instantiate if isinstance(instantiate, bool) else tuple(instantiate)
    closed, found = forward.jvp_jaxpr(jaxpr, tuple(nonzeros), wanted)
    return closed, list(found)


def backward_pass(
    jaxpr: Any,
    transform_stack: Any,
    consts: Sequence[Any],
    primals_in: Sequence[Any],
    cotangents_in: Sequence[Any],
) -> list[Any]:
    """The cotangents of the arguments of a linear program; others have a `Zero` or `None`."""
    given = [zeros.linear(x) for x in primals_in]
    cts = [zeros.from_jax(ct) for ct in cotangents_in]
    found = reverse.backward_pass(jaxpr, consts, given, cts)
    return [
        Zero(x.aval) if ct is None and is_undefined_primal(x) else ct
        for x, ct in zip(primals_in, found, strict=True)
    ]
