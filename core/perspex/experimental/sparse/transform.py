"""`sparsify`: a function of dense arrays becomes one of sparse arrays.

The function is traced at the shapes and dtypes that its arguments have as dense arrays. Then its
program runs on the sparse ones, each operation by its rule in `rules`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from perspex import lax, tree
from perspex import numpy as pnp
from perspex.api.mapping import containers
from perspex.control.cond import cond_p
from perspex.control.loops import while_p
from perspex.control.remat import remat_p
from perspex.control.scan import scan_p
from perspex.experimental.sparse.formats import BCOO, BCSR
from perspex.experimental.sparse.rules import (
    Sparse,
    apply,
    array,
    sparse,
    sparse_rules_bcoo,
    sparse_rules_bcsr,
)
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal
from perspex.jitted.call import jit_p
from perspex.jitted.signature import function_name
from perspex.rules.custom_call import custom_jvp_call, custom_vjp_call
from perspex.tracing.past import UNKNOWN
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import number, stage
from perspex.tracing.trace import state
from perspex.transforms.programs import cut
from perspex.transforms.trace import TransformTrace, TransformTracer

__all__ = ["SparseTracer", "sparse_rules_bcoo", "sparse_rules_bcsr", "sparsify"]


def _is_sparse(x: Any) -> bool:
    return isinstance(x, (BCOO, BCSR))


def _aval(value: Any) -> ShapedArray:
    """The type that a value has as a dense array."""
    if not isinstance(value, Sparse):
        return shaped(value)
    data = shaped(value.mat.data)
    return ShapedArray(value.mat.shape, data.dtype, data.weak_type, data.vma)


def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Run a program on sparse and dense values."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, values, strict=True))
    outer = state.source
    try:
        for eqn in jaxpr.eqns:
            operands = [number(v) if v.__class__ is Literal else env[v] for v in eqn.invars]
            state.source = eqn.source
            env.update(zip(eqn.outvars, apply(eqn.primitive, operands, eqn.params), strict=True))
    finally:
        state.source = outer
    return [number(v) if v.__class__ is Literal else env[v] for v in jaxpr.outvars]


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Make a function of dense arrays one that takes sparse arrays as well.

    Args:
      f: a function of pytrees of arrays. What it does to sparse arrays must be linear algebra,
        elementwise operations that give zero for zero, sums, indexing, or reshaping. Other
        operations need `sparse.todense` inside of `f`.
      use_tracer: run the function itself, with tracers for sparse arrays, instead of its program.

    Returns:
      A function of pytrees of arrays, sparse ones (`BCOO`, `BCSR`) among them. Its results are
      sparse where they follow from sparse arguments alone.

    Raises:
      NotImplementedError: at a call, for an operation whose result would be dense.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.arange(12).reshape(3, 4))
    >>> sparse.sparsify(lambda m, v: 2 * m.T @ v)(m, jnp.array([3, 4, 2]))
    Array([ 64,  82, 100, 118], dtype=int32)
    """
    run = _run_traced if use_tracer else _run_program

    @functools.wraps(f)
    def wrapped(*args: Any, **params: Any) -> Any:
        leaves, in_tree = tree.flatten(args, is_leaf=_is_sparse)
        out_tree: Any = None

        def flat(*given: Any) -> list[Any]:
            nonlocal out_tree
            results, out_tree = tree.flatten(f(*tree.unflatten(in_tree, given), **params))
            return results

        values = [sparse(x) if _is_sparse(x) else pnp.asarray(x) for x in leaves]
        outs = run(flat, values, function_name(f))
        return tree.unflatten(out_tree, [array(x) for x in outs])

    return wrapped


def _run_program(f: Callable[..., Any], values: Sequence[Any], name: str) -> list[Any]:
    jaxpr, consts = stage(f, [_aval(x) for x in values], name)
    return evaluate(jaxpr, consts, values)


# ---- By tracers ---------------------------------------------------------------------------------


class SparseTracer(TransformTracer):
    """A sparse array where a function expects a dense one."""

    __slots__ = ("_spvalue",)

    def __init__(self, trace: SparseTrace, *, spvalue: Sparse) -> None:
        self._trace = trace
        self._past = UNKNOWN
        self._spvalue = spvalue
        self.aval = _aval(spvalue)

    @property
    def _inner(self) -> Any:
        return self._spvalue.mat.data

    def __repr__(self) -> str:
        return f"SparseTracer({self._spvalue.mat!r})"


class SparseTrace(TransformTrace):
    """Every operation on sparse arrays is its rule."""

    __slots__ = ()
    doing = "sparsified"

    def __init__(self) -> None:
        super().__init__()
        self.remembers = False

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        mine = [x.__class__ is SparseTracer and x._trace is self for x in args]
        values = [x._spvalue if own else x for x, own in zip(args, mine, strict=True)]
        if not any(mine):
            return self.below(self.parent.bind, (primitive, args, params), {})
        if primitive.untraced:
            avals = [_aval(x) for x in values]
            primitive, values, params = primitive.staged(avals, values, **params)
        outs = self.below(apply, (primitive, values, params), {})
        found = [self.tracer(x) for x in outs]
        return found if primitive.multiple_results else found[0]

    def tracer(self, value: Any) -> Any:
        return SparseTracer(self, spvalue=value) if isinstance(value, Sparse) else value


def _run_traced(f: Callable[..., Any], values: Sequence[Any], name: str) -> list[Any]:
    trace = SparseTrace()
    outs = trace.run(f, [trace.tracer(x) for x in values])
    mine = [y.__class__ is SparseTracer and y._trace is trace for y in outs]
    return [y._spvalue if own else y for y, own in zip(outs, mine, strict=True)]


# ---- Operations that hold programs --------------------------------------------------------------


def _taken_apart(values: Sequence[Any]) -> tuple[list[Any], Any]:
    """The parts of all arrays, and how they belong together."""
    parts, structure = tree.flatten([array(x) for x in values])
    return parts, structure


def _put_together(structure: Any, parts: Sequence[Any]) -> list[Any]:
    return [sparse(x) for x in tree.unflatten(structure, parts)]


class _Parts:
    """A program on sparse and dense values as a function of lists of their parts."""

    def __init__(self, program: ClosedJaxpr, *structures: Any) -> None:
        self.program = program
        self.structures = structures
        self.out_tree: Any = None

    def __call__(self, *groups: Sequence[Any]) -> list[Any]:
        values: list[Any] = []
        for structure, parts in zip(self.structures, groups, strict=True):
            values += _put_together(structure, parts)
        outs = evaluate(self.program.jaxpr, self.program.consts, values)
        parts, self.out_tree = _taken_apart(outs)
        return parts


def _while(
    *values: Any,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
) -> list[Any]:
    cond_consts, body_consts, init = map(_taken_apart, cut(values, cond_nconsts, body_nconsts))
    goes_on = _Parts(cond_jaxpr, cond_consts[1], init[1])
    turn = _Parts(body_jaxpr, body_consts[1], init[1])
    out = lax.while_loop(
        lambda carry: goes_on(cond_consts[0], carry)[0],
        lambda carry: turn(body_consts[0], carry),
        init[0],
    )
    return _put_together(turn.out_tree, out)


def _cond(index: Any, *values: Any, branches: Sequence[ClosedJaxpr]) -> list[Any]:
    parts, structure = _taken_apart(values)
    choices = [_Parts(branch, structure) for branch in branches]
    # Functions, because a call of `_Parts` notes the structure that it found.
    out = lax.switch(index, [lambda x, run=choice: run(x) for choice in choices], parts)
    return _put_together(choices[0].out_tree, out)


def _scan(
    *values: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **params: Any
) -> list[Any]:
    consts, init, rows = cut(values, num_consts, num_carry)
    if any(isinstance(x, Sparse) for x in rows):
        raise NotImplementedError(
            "sparse rule for scan with sparse x values; close over the array, and index it"
        )
    const_parts, const_tree = _taken_apart(consts)
    parts, structure = _taken_apart(init)
    count = len(parts)
    row_tree = tree.structure(list(rows))
    step = _Parts(jaxpr, const_tree, structure, row_tree)

    def body(carry: Any, xs: Any) -> Any:
        after, ys = cut(step(const_parts, carry, xs), count)
        return tuple(after), tuple(ys)

    carry, ys = lax.scan(body, tuple(parts), list(rows), **params)
    outs = _put_together(step.out_tree, [*carry, *ys])
    return [*outs[:num_carry], *[_stacked(y, params["length"]) for y in outs[num_carry:]]]


def _stacked(y: Any, length: int) -> Any:
    """What each turn gives, whose parts are stacked already, as one array."""
    return sparse(containers[type(y.mat)].batch(y.mat, 0, length)) if isinstance(y, Sparse) else y


def _call(*values: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    return evaluate(jaxpr.jaxpr, jaxpr.consts, values)


def _custom_call(*values: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    return evaluate(call_jaxpr.jaxpr, call_jaxpr.consts, values)


for _rules in (sparse_rules_bcoo, sparse_rules_bcsr):
    _rules.update({jit_p: _call, remat_p: _call, scan_p: _scan, while_p: _while, cond_p: _cond})
    _rules.update({custom_jvp_call: _custom_call, custom_vjp_call: _custom_call})
