"""Taylor mode: values that are truncated power series of one variable.

A `Series` is `x_0 + x_1 s + x_2 s^2 + ...`, and an operation on series gives the series of the
result: higher derivatives along a curve in one pass. The rule of a primitive is `Primitive.taylor`.
Three things make nearly all of them:

* A linear operation works term by term, and a product of two is a convolution (`degree`).
* Everything else follows from the `jvp` rule, read as a differential equation. It says what
  `y'(s)` is in terms of `x(s)`, `x'(s)` and `y(s)`, and term `k` of that is `(k + 1) y_{k+1}`. So
  terms are computed on demand: each needs only those below it, and `y` may occur in its own rule.
* A program becomes the program on terms, as in forward mode.

`None` is the term zero. Values all of whose terms are zero are not wrapped.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from perspex import config
from perspex.ir.avals import shaped
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.arithmetic import div, mul
from perspex.ops.families import add_any
from perspex.ops.structural import scalar_like, zeros
from perspex.tracing.past import UNKNOWN, Names
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import refuse_leaks, typeof, under
from perspex.transforms.expansion import Expand, grouped
from perspex.transforms.jvp import is_differentiable, tangent_aval
from perspex.transforms.programs import by_program, cut, like_primals, pick, program, with_gaps
from perspex.transforms.trace import PrimalTracer, TransformTrace

# The terms of an operation's results: `rule(k)` lists those of order `k`, one for each result. It
# is `None` where all are zero.
Rule = Callable[[int], Sequence[Any] | None]


class Terms:
    """The terms of the results of one operation, computed when somebody asks, in order."""

    __slots__ = ("rows", "rule")

    def __init__(self, rule: Rule, rows: Sequence[Sequence[Any] | None] = ()) -> None:
        self.rule = rule
        self.rows = list(rows)

    def term(self, k: int, index: int) -> Any:
        """The term of order `k`, from 1 on, of one of the results."""
        while len(self.rows) < k:
            self.rows.append(self.rule(len(self.rows) + 1))
        row = self.rows[k - 1]
        return None if row is None else row[index]


class Series(PrimalTracer):
    """A value with its terms; the primal is the term of order 0."""

    __slots__ = ("_derivative", "_index", "_terms")

    def __init__(self, trace: TaylorTrace, primal: Any, terms: Terms, index: int = 0) -> None:
        self._trace = trace
        self._past = UNKNOWN
        self.primal = primal
        self.aval = shaped(primal)
        self._terms = terms
        self._index = index
        self._derivative: Series | None = None

    def term(self, k: int) -> Any:
        """The term of order `k`; `None` is zero."""
        return self.primal if k == 0 else self._terms.term(k, self._index)

    def derivative(self) -> Series:
        """The series of the derivative, whose term `k` is `(k + 1) x_{k+1}`."""
        if self._derivative is None:
            terms = Terms(lambda k: [scaled(self.term(k + 1), k + 1)])
            first = self.term(1)
            if first is None:
                first = zeros(tangent_aval(self.aval))
            trace: Any = self._trace
            self._derivative = Series(trace, first, terms)
        return self._derivative

    def __repr__(self) -> str:
        return f"Series(primal={self.primal!r})"


class TaylorTrace(TransformTrace):
    """Expands: every operation on series is its `taylor` rule.

    An operation of the function is expanded to `order` at once. While a rule is `deriving` terms
    from a `jvp` rule, the operations of that rule give series that are computed on demand; equal
    ones are one (`known`), which closes the circle from `sin` to `cos` and back.
    """

    __slots__ = ("deriving", "known", "order")
    doing = "expanded"

    def __init__(self, order: int, arg_names: Names | None = None) -> None:
        super().__init__(arg_names)
        self.order = order
        self.deriving = False
        self.known: dict[Any, tuple[Sequence[Any], Any]] = {}

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not any([self.owns(x) for x in args]):
            return self.below(self.parent.bind, (primitive, args, params), {})
        key = (primitive, *map(id, args), *params.items())
        if not self.deriving:
            self.known = {}
        elif key in self.known:
            return self.known[key][1]
        outs = self.below(primitive.taylor, (self, *args), params)
        # With the operands, so that no other object gets the id of one of them.
        self.known[key] = args, outs
        if self.deriving:
            return outs
        outs = self.below(self._settled, (outs,), {})
        if self.remembers:
            self.remember(primitive, args, outs if primitive.multiple_results else [outs])
        return outs

    def owns(self, x: Any) -> bool:
        return x.__class__ is Series and x._trace is self

    def primal(self, x: Any) -> Any:
        """The term of order 0."""
        return x.primal if self.owns(x) else x

    def term(self, x: Any, k: int) -> Any:
        """The term of order `k` of an operand; `None` is zero."""
        return x.term(k) if self.owns(x) else x if k == 0 else None

    def _settled(self, outs: Any) -> Any:
        """Results with all terms computed; without those that have none."""
        if isinstance(outs, (list, tuple)):
            return [self._settled(y) for y in outs]
        if not self.owns(outs):
            return outs
        terms = [outs.term(k) for k in range(1, self.order + 1)]
        return self.series(outs.primal, terms)

    def series(self, primal: Any, terms: Sequence[Any] | None) -> Any:
        """A value with known terms."""
        if terms is None or all(t is None for t in terms):
            return primal
        return Series(self, primal, Terms(_beyond, [[t] for t in terms]))

    # ---- Rules, for `Primitive.taylor` ----------------------------------------------------------

    def expanding(self, primitive: Primitive, operands: Any, params: Any, rule: Rule) -> Any:
        """The results of an operation, whose terms are those of a rule."""
        out = primitive(*[self.primal(x) for x in operands], **params)
        terms = Terms(rule)
        if not primitive.multiple_results:
            return Series(self, out, terms) if is_differentiable(typeof(out)) else out
        return [
            Series(self, y, terms, i) if is_differentiable(typeof(y)) else y
            for i, y in enumerate(out)
        ]

    def linear(self, primitive: Primitive, operands: Any, params: Any) -> Any:
        """An operation that is linear in its inexact operands together."""
        avals = [typeof(x) for x in operands]
        smooth = [is_differentiable(aval) for aval in avals]

        def rule(k: int) -> Sequence[Any] | None:
            terms = [self.term(x, k) for x in operands]
            if all(t is None for t in terms):
                return None
            given = [
                x if not flag else zeros(tangent_aval(aval)) if t is None else t
                for x, t, aval, flag in zip(operands, terms, avals, smooth, strict=True)
            ]
            outs = primitive(*given, **params)
            return outs if primitive.multiple_results else [outs]

        return self.expanding(primitive, operands, params, rule)

    def bilinear(self, primitive: Primitive, operands: Any, params: Any) -> Any:
        """A product of two operands."""
        x, y = operands
        product = functools.partial(primitive, **params)
        return self.expanding(
            primitive, operands, params, lambda k: [self.convolved(product, x, y, k, 0)]
        )

    def convolved(self, product: Callable[..., Any], x: Any, y: Any, k: int, least: int) -> Any:
        """The sum of `x_i y_j` with `i + j = k` and `j >= least`."""
        total = None
        for j in range(least, k + 1):
            a, b = self.term(x, k - j), self.term(y, j)
            if a is not None and b is not None:
                total = added(total, product(a, b))
        return total

    def quotient(self, x: Any, y: Any) -> Any:
        """`z = x / y`: the terms of `z y = x`, solved for the last of `z`."""

        def rule(k: int) -> Sequence[Any]:
            rest = self.convolved(mul, out, y, k, 1)
            term = self.term(x, k)
            if rest is not None:
                term = added(term, scaled(rest, -1))
            return [None if term is None else div(term, self.primal(y))]

        out = self.expanding(div, (x, y), {}, rule)
        return out

    def derived(self, primitive: Primitive, operands: Any, params: Any) -> Any:
        """Any operation, by its `jvp` rule."""
        slopes: Sequence[Any] = ()

        def slope() -> Sequence[Any]:
            tangents = [x.derivative() if self.owns(x) else None for x in operands]
            outer = self.deriving
            try:
                self.deriving = True
                _, found = under(
                    self, functools.partial(primitive.jvp, list(operands), tangents, **params)
                )
            finally:
                self.deriving = outer
            return found if primitive.multiple_results else [found]

        def rule(k: int) -> Sequence[Any]:
            nonlocal slopes
            slopes = slopes or slope()
            return [scaled(None if t is None else self.term(t, k - 1), 1 / k) for t in slopes]

        return self.expanding(primitive, operands, params, rule)

    def inline(self, f: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """What a function does, operation by operation."""
        return under(self, f, *operands)

    def expanded(self, primitive: Any, operands: Any, params: dict[str, Any]) -> Any:
        """An operation that holds programs, by the programs on terms."""
        if self.deriving:  # the terms are not there yet
            return self.derived(primitive, operands, params)
        given = [self.instantiated(x) if self.owns(x) else None for x in operands]
        outs, terms = primitive.expanded(
            Expand(Programs(self.order), self.order),
            [self.primal(x) for x in operands],
            given,
            **params,
        )
        return [self.series(y, t) for y, t in zip(outs, terms, strict=True)]

    def instantiated(self, x: Any) -> list[Any]:
        """All terms of a value, as arrays also where they are zero."""
        zero = tangent_aval(typeof(x))
        terms = [self.term(x, k) for k in range(1, self.order + 1)]
        return [zeros(zero) if t is None else t for t in terms]


def _beyond(k: int) -> Sequence[Any]:
    raise AssertionError(f"a series has no term of order {k}: the rule of an operation looks ahead")


def scaled(x: Any, factor: float) -> Any:
    """`factor * x`; `None` is zero."""
    return x if x is None or factor == 1 else mul(scalar_like(x, factor), x)


def added(x: Any, y: Any) -> Any:
    """`x + y`; `None` is zero."""
    return y if x is None else x if y is None else add_any(x, y)


def taylor(
    f: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    terms: Sequence[Sequence[Any] | None],
    order: int,
    arg_names: Names | None = None,
) -> tuple[list[Any], list[list[Any] | None]]:
    """Results of the flat function `f` at series, and their terms of order 1 to `order`.

    `None` is a value without terms, among those given and those returned.
    """
    trace = TaylorTrace(order, arg_names)
    args = [trace.series(x, given) for x, given in zip(primals, terms, strict=True)]
    outs = trace.run(f, args)
    found = (
        [trace.primal(y) for y in outs],
        [trace.instantiated(y) if trace.owns(y) else None for y in outs],
    )
    if config.check_tracer_leaks.value:
        trace.known = {}
        del args, outs
        refuse_leaks(trace)
    return found


@dataclasses.dataclass(frozen=True)
class Programs:
    """From a program to the one on terms up to `order`; called as `jvp_jaxpr` is."""

    order: int

    def __call__(
        self, closed: ClosedJaxpr, nonzero: tuple[bool, ...], instantiate: Any = False
    ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
        return _taylor_jaxpr(closed, self.order, nonzero, instantiate)


@by_program
def _taylor_jaxpr(
    closed: ClosedJaxpr, order: int, nonzero: tuple[bool, ...], instantiate: Any
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program that takes and returns, after all values, the terms of those that have some."""
    count, outs = len(closed.in_avals), len(closed.out_avals)
    wanted = (instantiate,) * outs if isinstance(instantiate, bool) else instantiate
    out_nonzero: tuple[bool, ...] = ()

    def expanded(*args: Any) -> list[Any]:
        nonlocal out_nonzero
        primals, given = cut(args, count)
        f = functools.partial(eval_jaxpr, closed.jaxpr, closed.consts)
        results, terms = taylor(f, primals, with_gaps(grouped(given, order), nonzero), order)
        filled = [
            [zeros(tangent_aval(aval))] * order
            if t is None and want and is_differentiable(aval)
            else t
            for t, aval, want in zip(terms, closed.out_avals, wanted, strict=True)
        ]
        out_nonzero = tuple([t is not None for t in filled])
        found = [
            like_primals(t, [aval] * order)
            for t, aval in zip(filled, closed.out_avals, strict=True)
            if t is not None
        ]
        return [*results, *[x for terms in found for x in terms]]

    avals = [tangent_aval(aval) for aval in pick(closed.in_avals, nonzero) for _ in range(order)]
    return program(expanded, [*closed.in_avals, *avals], closed.jaxpr.name), out_nonzero
