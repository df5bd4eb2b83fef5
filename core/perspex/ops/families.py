"""Families of primitives: a row of a table gives a primitive with all its rules.

An elementwise primitive is described by its StableHLO operation, the dtypes it takes and one
derivative per operand; type, batch and shape rules come from the family. Operands have one shape,
or are scalars, which broadcast to it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.ops.accuracy import Accuracy, attributes
from perspex.ops.structural import broadcast_in_dim, is_linear, to_front, unbroadcast
from perspex.tracing import cuts
from perspex.tracing.array_type import Array
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof

FLOAT = "float"
COMPLEX = "complex"
INEXACT = "float or complex"
PART = "float32 or float64"
PARTS = "float32, float64 or complex number"
INTEGER = "integer"
BITS = "integer or boolean"
NUMBER = "number"
REAL = "real number"
ORDERED = "real number or boolean"
ANY = "number or boolean"

_KINDS: dict[str, tuple[Any, ...]] = {
    FLOAT: (np.floating,),
    COMPLEX: (np.complexfloating,),
    INEXACT: (np.inexact,),
    PART: (np.float32, np.float64),
    PARTS: (np.float32, np.float64, np.complexfloating),
    INTEGER: (np.integer,),
    BITS: (np.integer, np.bool_),
    NUMBER: (np.number,),
    REAL: (np.integer, np.floating),
    ORDERED: (np.integer, np.floating, np.bool_),
    ANY: (np.number, np.bool_),
}


def check_not_float0(name: str, dtype: Any) -> None:
    """Raise `TypeError` for the dtype of tangents of integers."""
    if dtype == dtypes.float0:
        raise TypeError(
            f"Called {name} with a float0 array. float0 is the dtype of tangents of integers: its "
            "elements hold nothing, so no operation computes with them. Leave such a leaf out, or "
            "put jnp.zeros(x.shape, dtype) in its place"
        )


def check_dtype(name: str, dtype: Any, kind: str) -> None:
    """Raise `TypeError` unless `dtype` is of the `kind` that the operation takes."""
    if not any(dtypes.issubdtype(dtype, k) for k in _KINDS[kind]):
        check_not_float0(name, dtype)
        article = "an" if kind[0] in "aeiou" else "a"
        raise TypeError(f"{name} does not accept dtype {dtype.name}: it takes {article} {kind}")


def broadcast_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The shape of an elementwise result: that of the operands that are not scalars."""
    shape: tuple[int, ...] = ()
    for aval in avals:
        if aval.shape and aval.shape != shape:
            if shape:
                shapes = ", ".join([str(a.shape) for a in avals])
                raise TypeError(f"{name} got incompatible shapes for broadcasting: {shapes}.")
            shape = aval.shape
    return shape


def same_dtype(name: str, avals: Sequence[ShapedArray]) -> Any:
    """The dtype that all operands share."""
    dtype = avals[0].dtype
    for aval in avals:
        if aval.dtype != dtype:
            found = ", ".join([a.dtype.name for a in avals])
            raise TypeError(
                f"{name} requires arguments to have equal dtypes, got {found}; "
                "convert them, or use the function of `perspex.numpy`, which promotes"
            )
    return dtype


def batch_elementwise(
    primitive: Primitive,
    axis_size: int,
    operands: Sequence[Any],
    axes: Sequence[int | None],
    **params: Any,
) -> Any:
    """Line the batch axes of the operands up; unbatched scalars stay scalars."""
    shared = None
    for x, at in zip(operands, axes, strict=True):
        if at is None:
            if getattr(x, "shape", ()):
                break
        elif shared is None:
            shared, rank = at, x.ndim
        elif at != shared or x.ndim != rank:
            break
    else:  # nearly always: nothing moves
        return primitive(*operands, **params), shared
    avals = [typeof(x) for x in operands]
    ndims = [a.ndim - (at is not None) for a, at in zip(avals, axes, strict=True)]
    ndim = max(ndims)
    shape = next(
        tuple([n for i, n in enumerate(a.shape) if i != at])
        for a, at, n in zip(avals, axes, ndims, strict=True)
        if n == ndim
    )
    lined_up = []
    for x, at, n in zip(operands, axes, ndims, strict=True):
        if at is None and n == 0:
            lined_up.append(x)
        elif n == ndim:
            lined_up.append(to_front(x, at, axis_size))
        else:  # a batch of scalars among arrays
            lined_up.append(
                broadcast_in_dim(x, shape=(axis_size, *shape), broadcast_dimensions=(0,))
            )
    return primitive(*lined_up, **params), 0


Rule = Callable[..., Any]


class Elementwise(Primitive):
    """A primitive that works element by element on operands of one dtype.

    `jvps[i](t, *operands, out)` is the tangent due to the tangent `t` of operand `i`; `None` means
    that the result does not change with it. `transposed(ct, *operands)` gives the cotangents where
    the operation can be linear. `dtype(d)` is the dtype of the result, that of the operands if not
    given. One that is `linear` in all operands does to their tangents what it does to them.
    """

    elementwise = True

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **params: Any) -> Array: ...

    def __init__(
        self,
        name: str,
        op: str | Rule,
        kind: str,
        jvps: Sequence[Rule | None],
        dtype: Callable[[Any], Any] | None = None,
        transposed: Rule | None = None,
        linear: bool = False,
    ) -> None:
        super().__init__()
        self.name = name
        self.kind = kind
        self.jvps = tuple(jvps)
        self.out_dtype = dtype
        self.transposed = transposed
        self.linear = linear
        # What it does to operands that are parts of sums: nothing linear unless said.
        self.sums = cuts.LINEAR if linear else cuts.NOT_LINEAR
        # What rounds has no derivative, and makes no NaN.
        self.makes_nan = kind in (FLOAT, INEXACT) and any(jvps)
        self.emit: Rule = op if callable(op) else lambda b, *xs, **_: b.op(op, *xs)

    summary = example = source = ""

    def says(self, summary: str, example: str, source: str = "") -> None:
        """Give the row its documentation: what `lax` writes about the function that it makes of it.

        `example` is a call and its result, `sin(0.0) -> 0.`. `source` is where the mathematics is
        from.
        """
        self.summary, self.example, self.source = summary, example, source

    def type(self, *avals: Any, **params: Any) -> ShapedArray:
        dtype = same_dtype(self.name, avals)
        check_dtype(self.name, dtype, self.kind)
        if self.out_dtype is not None:
            dtype = self.out_dtype(dtype)
        weak = all([a.weak_type for a in avals])
        return ShapedArray(broadcast_shape(self.name, avals), dtype, weak)

    def cut(self, out: ShapedArray, *avals: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.merged(self.name, avals)

    def pending(self, *avals: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.joined(self.name, avals, self.sums)

    def lower(self, b: Any, *values: Any, **params: Any) -> Any:
        return self.emit(b, *values, **params)

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(results[0].size)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self(*primals, **params)
        if self.linear and all(t is not None for t in tangents):
            return out, _broadcast_scalar(self(*tangents), typeof(out).shape)
        total = None
        for t, rule in zip(tangents, self.jvps, strict=True):
            if t is not None and rule is not None:
                term = rule(t, *primals, out, **params)
                if term is not None:
                    total = term if total is None else add_any(total, term)
        if total is not None:
            total = _broadcast_scalar(total, typeof(out).shape)
        return out, total

    def transpose(self, ct: Any, *operands: Any, **params: Any) -> Any:
        if self.transposed is None:
            raise self.missing("transpose")
        cts = self.transposed(ct, *operands, **params)
        return [
            None if c is None else unbroadcast(c, typeof(x))
            for c, x in zip(cts, operands, strict=True)
        ]

    batch = batch_elementwise


def _broadcast_scalar(x: Any, shape: tuple[int, ...]) -> Any:
    if typeof(x).shape == shape:
        return x
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=())


class Accurate(Elementwise):
    """A row of one operand whose compiled function the param `accuracy` chooses, where given."""

    def __init__(self, name: str, op: str | Rule, kind: str, jvp: Rule) -> None:
        emit = op if callable(op) else functools.partial(_emit_accurate, op=op)
        super().__init__(name, emit, kind, (jvp,))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        if not params:
            return super().jvp(primals, tangents)
        (x,), (t,) = primals, tangents
        out = self(x, **params)
        rule = self.jvps[0]
        assert rule is not None
        return out, None if t is None else rule(t, x, out)


def _emit_accurate(b: Any, x: Any, accuracy: Accuracy | None = None, *, op: str) -> Any:
    return b.op(op, x, attributes=attributes(accuracy))


def accurate(name: str, op: str | Rule, kind: str, jvp: Rule) -> Accurate:
    """A row of the table of functions of one operand whose accuracy can be chosen."""
    return Accurate(name, op, kind, jvp)


def unary(
    name: str,
    op: str | Rule,
    kind: str,
    jvp: Rule | None = None,
    dtype: Callable[[Any], Any] | None = None,
    transposed: Rule | None = None,
) -> Elementwise:
    """A row of the table of functions of one operand; `jvp(t, x, y)` with `y` the result."""
    return Elementwise(name, op, kind, (jvp,), dtype, transposed)


def binary(
    name: str,
    op: str | Rule,
    kind: str,
    jvp_x: Rule | None = None,
    jvp_y: Rule | None = None,
    dtype: Callable[[Any], Any] | None = None,
    transposed: Rule | None = None,
    linear: bool = False,
) -> Elementwise:
    """A row of the table of functions of two operands; `jvp_x(t, x, y, z)`, `z` the result."""
    return Elementwise(name, op, kind, (jvp_x, jvp_y), dtype, transposed, linear)


def as_bool(dtype: Any) -> np.dtype:
    """The result dtype of comparisons and predicates."""
    return np.dtype(bool)


# The sum of tangents: one rule of every transform, hence here and not in the table.
add_any = binary(
    "add_any",
    "stablehlo.add",
    NUMBER,
    lambda t, x, y, z: t,
    lambda t, x, y, z: t,
    transposed=lambda ct, x, y: [ct if is_linear(x) else None, ct if is_linear(y) else None],
)
add_any.degree = 1
add_any.sums = cuts.LINEAR


def product_rule(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
) -> Any:
    """The `jvp` of an operation that is linear in each of its first two operands."""
    (x, y, *rest), (tx, ty, *_) = primals, tangents
    out = primitive(x, y, *rest, **params)
    if not dtypes.issubdtype(typeof(out).dtype, np.inexact):
        return out, None
    terms = [] if tx is None else [primitive(tx, y, *rest, **params)]
    terms += [] if ty is None else [primitive(x, ty, *rest, **params)]
    if len(terms) == 2:
        return out, add_any(*terms)
    return out, terms[0] if terms else None
