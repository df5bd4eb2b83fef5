"""`custom_jvp`: a function with a rule for its tangents."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import tree
from perspex.control.bodies import place
from perspex.dtypes import issubdtype
from perspex.jitted.signature import function_name
from perspex.ops.elementwise import stop_gradient
from perspex.ops.families import add_any
from perspex.rules.custom_call import custom_jvp_call
from perspex.rules.function import CustomFunction, FunctionRule, P, R, fitted, pair_of, type_text
from perspex.rules.zeros import SymbolicZero, zero_tangent
from perspex.runtime.dispatch import without_numbers
from perspex.tracing.trace import Tracer, in_its_place, typeof
from perspex.transforms.jvp import is_differentiable


class custom_jvp(CustomFunction[P, R]):  # noqa: N801 - it is used as a decorator
    """Give a function a rule for derivatives: a decorator.

    The rule computes the tangents of the results. Forward and reverse mode follow from it, to any
    order if the operations of the rule have derivatives.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that are not arrays, such as functions. The rule gets
        them first.
      nondiff_argnames: the same by name.

    Returns:
      A function that does what `fun` does. Give it a rule with `defjvp` or `defjvps` before it is
      called. Pass the values that you differentiate with respect to as arguments: closing over
      them is an error.

    Raises:
      TypeError: if `fun` is not a function.
      ValueError: for arguments in `nondiff_argnums` or `nondiff_argnames` that `fun` does not have.
      AttributeError: at a call without a rule.

    >>> import perspex, perspex.numpy as pnp
    >>> @custom_jvp
    ... def log1pexp(x):
    ...     return pnp.log(1 + pnp.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), (1 - 1 / (1 + pnp.exp(x))) * t
    >>> perspex.grad(log1pexp)(100.0)
    Array(1., dtype=float32, weak_type=True)
    """

    what = "custom_jvp"
    missing = (
        "No JVP defined for custom_jvp function {name} using defjvp. Decorate its rule with "
        "@{name}.defjvp, or leave @custom_jvp out."
    )
    symbolic_zeros = False
    # Whether the rule takes symbolic zeros, asked for by its user or not.
    takes_symbols = False

    def defjvp(
        self, jvp: Callable[..., tuple[Any, Any]], symbolic_zeros: bool = False
    ) -> Callable[..., tuple[Any, Any]]:
        """Set the rule.

        Args:
          jvp: `jvp(*nondiff_args, primals, tangents)` returns the results of the function and their
            tangents, a tree like that of the results with the same shapes and dtypes. Tangents of
            integers have the dtype `float0`.
          symbolic_zeros: give tangents that are known to be zero as
            `custom_derivatives.SymbolicZero`, and not as arrays of zeros. The rule may return such.

        Returns:
          `jvp`, so that this is a decorator.

        Raises:
          TypeError: at a call, for tangents of another structure, shape or dtype.

        >>> import perspex, perspex.numpy as jnp
        >>> @perspex.custom_jvp
        ... def f(x):
        ...     return jnp.sin(x)
        >>> @f.defjvp
        ... def rule(primals, tangents):
        ...     return f(primals[0]), 10 * tangents[0]
        >>> perspex.grad(f)(1.0)
        Array(10., dtype=float32, weak_type=True)
        """
        self.rule = jvp
        self.symbolic_zeros = self.takes_symbols = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument; the tangents that they give are summed.

        Args:
          jvps: for each argument a function `(tangent, result, *args)` that returns the tangent of
            the result due to that of the argument, or `None` if that is zero. The function is not
            called where the tangent of the argument is zero.

        Returns:
          Nothing.

        Raises:
          TypeError: for a function with `nondiff_argnums`.

        >>> import perspex
        >>> f = custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: x * t)
        >>> perspex.grad(f, (0, 1))(2.0, 3.0)
        (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
        """
        if self.nondiff_argnums:
            raise TypeError(
                "Can't use ``defjvps`` with ``nondiff_argnums``. Write the rule for all arguments "
                "with defjvp."
            )
        if self.count is not None and len(jvps) != self.count:
            raise TypeError(
                f"defjvps takes a rule or None for each of the {self.count} arguments of "
                f"`{self.name}`, got {len(jvps)}"
            )

        function: Callable[..., Any] = self

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            out = function(*primals)
            total: Any = None
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is None or all(_is_zero(leaf) for leaf in tree.leaves(t)):
                    continue
                given = tree.map(_instantiated, t)
                found = rule(given, out, *primals)
                total = found if total is None else tree.map(add_any, total, found)
            if total is None:
                total = tree.map(SymbolicZero.from_primal_value, out)
            return out, total

        self.defjvp(jvp)
        self.takes_symbols = True

    def make_rule(self, static: dict[int, Any], in_tree: Any, count: int) -> JvpRule:
        return JvpRule(self, tree.map(_constant, static), in_tree, count)


def _constant(x: Any) -> Any:
    # There is no derivative with respect to what `nondiff_argnums` names.
    if isinstance(x, Tracer) and is_differentiable(x.aval):
        return stop_gradient(x)
    return x


def _is_zero(t: Any) -> bool:
    return t.__class__ is SymbolicZero


def _instantiated(t: Any) -> Any:
    return t.instantiate() if t.__class__ is SymbolicZero else t


class JvpRule(FunctionRule):
    """The rule of a `custom_jvp` function for one call, on flat lists."""

    equation = custom_jvp_call
    owner: custom_jvp[..., Any]

    def __init__(
        self, owner: custom_jvp[..., Any], static: dict[int, Any], in_tree: Any, count: int
    ) -> None:
        super().__init__(owner, static, in_tree, count)
        self.rule = owner.rule
        self.symbolic_zeros = owner.symbolic_zeros
        self.takes_symbols = owner.takes_symbols
        self.rule_name = function_name(owner.rule)

    def shown(self) -> dict[str, Any]:
        return {"symbolic_zeros": self.symbolic_zeros}

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        # A rule is given arrays: a literal of a program is a number by now.
        primals = without_numbers(primals)
        avals = [typeof(x) for x in primals]
        zero = SymbolicZero if self.takes_symbols else zero_tangent
        given = [zero(aval) if t is None else t for t, aval in zip(tangents, avals, strict=True)]
        found = in_its_place(
            self.rule,
            *self.static.values(),
            tree.unflatten(self.in_tree, primals),
            tree.unflatten(self.in_tree, given),
        )
        what = f"the JVP rule {place(self.rule)} of the custom_jvp function `{self.name}`"
        out, out_tangent = pair_of(found, what, "the results and their tangents")
        outs, out_tree = tree.flatten(out)
        ts, tangent_tree = tree.flatten(out_tangent)
        self.check_primals(what, outs, out_tree)
        if tangent_tree != out_tree:
            raise TypeError(
                f"{what} must produce primal and tangent outputs of the same structure, but they "
                f"are {out_tree} and {tangent_tree}. The tangent of what does not change is an "
                "array of zeros"
            )
        # A weakly typed primal has a tangent that is not, which may make the result wider.
        weak = any(aval.weak_type for aval in avals)

        def convertible(found: Any, wanted: Any) -> bool:
            return weak and bool(found.itemsize > wanted.itemsize)

        def error(i: int, problem: str) -> TypeError:
            aval = typeof(outs[i])
            return TypeError(
                f"{what} must produce tangents with the shapes and dtypes of the results: expected "
                f"the tangent type of {type_text(aval)} for {self.result_path(i)}, got {problem}. "
                + _remedy(aval)
            )

        return outs, [
            fitted(t, typeof(y), convertible, functools.partial(error, i))
            for i, (t, y) in enumerate(zip(ts, outs, strict=True))
        ]


def _remedy(aval: Any) -> str:
    if issubdtype(aval.dtype, np.inexact):
        return "Convert it with .astype, or reshape it"
    return "The tangent of an integer is `np.zeros(shape, perspex.float0)`"
