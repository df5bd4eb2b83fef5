"""`custom_vjp`: a function with a rule for its cotangents."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from perspex import errors, tree
from perspex.api.calls import array_of
from perspex.base.tree_paths import PyTree
from perspex.control.bodies import not_an_array, place
from perspex.ir.avals import ShapedArray
from perspex.jitted.signature import function_name, paths
from perspex.rules.custom_call import Dense, closes_over_the_past, custom_vjp_call, with_values
from perspex.rules.custom_lin import Pullback, custom_lin
from perspex.rules.function import CustomFunction, FunctionRule, P, R, fitted, pair_of, type_text
from perspex.rules.remat_opt import call_forward, is_written
from perspex.rules.zeros import SymbolicZero, zero_tangent
from perspex.runtime.dispatch import without_numbers
from perspex.tracing.trace import Tracer, in_its_place, typeof
from perspex.transforms.identity import HowToTransform
from perspex.transforms.jvp import is_differentiable, tangent_aval
from perspex.transforms.programs import cut, pick, with_gaps
from perspex.tree import tree_map


@dataclasses.dataclass(frozen=True)
class CustomVJPPrimal:
    """What `fwd` gets for an array if it asked for symbolic zeros.

    Attributes:
      value: the array.
      perturbed: whether it has a tangent that may differ from zero.
    """

    value: Any
    perturbed: bool


class custom_vjp(CustomFunction[P, R]):  # noqa: N801 - it is used as a decorator
    """Give a function a rule for reverse mode: a decorator.

    In reverse mode the first half of the rule, `fwd`, runs in place of the function and keeps what
    the second half, `bwd`, needs. Forward mode raises an error; `custom_jvp` gives both modes.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that are not arrays, such as functions. A traced
        value there is an error.
      nondiff_argnames: the same by name.

    Returns:
      A function that does what `fun` does. Give it a rule with `defvjp` before it is called.
      Pass the values that you differentiate with respect to as arguments: closing over them is an
      error.

    Raises:
      TypeError: if `fun` is not a function; in forward mode.
      ValueError: for arguments in `nondiff_argnums` or `nondiff_argnames` that `fun` does not have.
      AttributeError: at a call without a rule.

    >>> import perspex, perspex.numpy as pnp
    >>> @custom_vjp
    ... def clip_gradient(x, limit):
    ...     return x
    >>> def forward(x, limit):
    ...     return x, limit
    >>> def backward(limit, ct):
    ...     return pnp.clip(ct, -limit, limit), None
    >>> clip_gradient.defvjp(forward, backward)
    >>> perspex.grad(lambda x: 10 * clip_gradient(x, 1.0))(3.0)
    Array(1., dtype=float32, weak_type=True)
    """

    what = "custom_vjp"
    missing = (
        "No VJP defined for custom_vjp function {name} using defvjp. Give it one, "
        "{name}.defvjp(fwd, bwd), or leave @custom_vjp out."
    )

    def defvjp(
        self,
        fwd: Callable[..., tuple[Any, Any]],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rule.

        Args:
          fwd: takes the arguments of the function, and returns its results and a pytree of arrays,
            the residuals.
          bwd: `bwd(*nondiff_args, residuals, cotangents)` returns the tuple of the cotangents of
            the arguments, of the same structures, shapes and dtypes. `None` is zero for an argument
            or for a part of one. Cotangents of integers are ignored.
          symbolic_zeros: give `fwd` each array as a `custom_derivatives.CustomVJPPrimal`, which
            says whether its cotangent is wanted, and give `bwd` cotangents that are known to be
            zero as `custom_derivatives.SymbolicZero`.
          optimize_remat: where nothing reads the residuals, as in the first pass of `checkpoint`,
            run the function instead of `fwd`. Without it `fwd` runs, less what only the residuals
            need. In programs the function and `fwd` are both traced then.

        Returns:
          Nothing.

        Raises:
          TypeError: at a call, for cotangents of another structure or dtype.
          ValueError: at a call, for cotangents of another shape.

        >>> import perspex, perspex.numpy as jnp
        >>> @perspex.custom_vjp
        ... def f(x):
        ...     return jnp.sin(x)
        >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (10 * ct,))
        >>> perspex.grad(f)(1.0)
        Array(10., dtype=float32, weak_type=True)
        """
        self.rule = (fwd, bwd)
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat

    def make_rule(self, static: dict[int, Any], in_tree: Any, count: int) -> VjpRule:
        for i, x in static.items():
            for leaf in tree.leaves(x):
                if isinstance(leaf, Tracer):
                    raise errors.UnexpectedTracerError(
                        f"argument {i} of the custom_vjp function `{self.name}` is one of its "
                        f"nondiff_argnums, but it is traced, {leaf!r}: nondiff_argnums is for what "
                        "cannot be an array, such as a function. Leave it out of nondiff_argnums, "
                        "and let bwd return None for its cotangent."
                    )
        return VjpRule(self, static, in_tree, count)


class VjpRule(FunctionRule):
    """The rule of a `custom_vjp` function for one call, on flat lists."""

    equation = custom_vjp_call
    owner: custom_vjp[..., Any]

    def __init__(
        self, owner: custom_vjp[..., Any], static: dict[int, Any], in_tree: Any, count: int
    ) -> None:
        super().__init__(owner, static, in_tree, count)
        self.fwd, self.bwd = owner.rule
        self.symbolic_zeros = owner.symbolic_zeros
        self.optimize_remat = owner.optimize_remat
        self.rule_name = function_name(self.fwd)
        self.values: Sequence[Any] = ()

    def close_over(self, values: Sequence[Any]) -> None:
        self.values = values

    def shown(self) -> dict[str, Any]:
        return {"bwd": Named(self.bwd), "symbolic_zeros": self.symbolic_zeros}

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        here = [t is not None for t in tangents]
        # A rule is given arrays: a literal of a program is a number by now.
        primals = without_numbers(primals)
        residual_tree: Any = None

        def forward(*primals: Any) -> list[Any]:
            nonlocal residual_tree
            given = (
                [CustomVJPPrimal(x, flag) for x, flag in zip(primals, here, strict=True)]
                if self.symbolic_zeros
                else primals
            )
            found = in_its_place(self.fwd, *self.arguments(tree.unflatten(self.in_tree, given)))
            what = f"the fwd rule {place(self.fwd)} of the custom_vjp function `{self.name}`"
            out, stored = pair_of(found, what, "the results and the residuals")
            outs, out_tree = tree.flatten(out)
            self.check_primals(what, outs, out_tree)
            residuals, residual_tree = tree.flatten(stored)
            wrong = not_an_array(residuals)
            if wrong is not None:
                path = tree.keystr(tree.leaves_with_path(stored)[wrong][0])
                raise TypeError(
                    f"{what} returned a value of type {type(residuals[wrong])} among the "
                    f"residuals, residuals{path}, which is not an array; close over it in bwd, or "
                    "name its argument in nondiff_argnums"
                )
            return [*residuals, *outs]

        if self.optimize_remat and is_written():
            found = call_forward(self, forward, primals, lambda: residual_tree.num_leaves)
        else:
            found = forward(*primals)
        residuals, outs = cut(found, residual_tree.num_leaves)
        pullback = RulePullback(
            self, residual_tree, [typeof(x) for x in primals], [typeof(y) for y in outs]
        )
        # `bwd` may close over the same values: they are residuals too.
        residuals = [*self.values, *residuals]
        ts = custom_lin(
            *residuals,
            *pick(tangents, here),
            bwd=pullback,
            in_zeros=tuple([not flag for flag in here]),
            num_res=len(residuals),
            symbolic_zeros=self.symbolic_zeros,
        )
        return outs, with_gaps(ts, pullback.differentiable)


class Named(HowToTransform):
    """The second half of a rule as a param to be printed; the first half calls it."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f

    def __repr__(self) -> str:
        return function_name(self.f)


class RulePullback(Pullback):
    """The second half of a rule for one call, on flat lists."""

    def __init__(
        self,
        rule: VjpRule,
        residual_tree: Any,
        in_avals: Sequence[ShapedArray],
        primal_out_avals: Sequence[ShapedArray],
    ) -> None:
        self.rule = rule
        self.name = rule.name
        self.rule_name = function_name(rule.bwd)
        self.residual_tree = residual_tree
        self.in_avals = in_avals
        self.primal_out_avals = primal_out_avals
        self.differentiable = [is_differentiable(aval) for aval in primal_out_avals]
        self.out_avals = [
            tangent_aval(aval) for aval in pick(primal_out_avals, self.differentiable)
        ]

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        values = self.rule.values
        if not values:
            return self._pull(residuals, cts)
        instead, stored = cut(residuals, len(values))
        count = len(stored)
        dense = Dense(lambda args: self._pull(args[:count], args[count:]), [*stored, *cts])
        return dense.restored(with_values(dense, dense.given, values, instead))

    def _pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        rule = self.rule
        zero = SymbolicZero if rule.symbolic_zeros else zero_tangent
        given = [
            zero(aval) if ct is None else ct
            for ct, aval in zip(
                with_gaps(cts, self.differentiable), self.primal_out_avals, strict=True
            )
        ]
        try:
            found = in_its_place(
                rule.bwd,
                *rule.static.values(),
                tree.unflatten(self.residual_tree, _arrays(residuals)),
                tree.unflatten(rule.out_tree, given),
            )
        except errors.UnexpectedTracerError as error:
            raise closes_over_the_past(self.name, self.rule_name, error) from error
        what = f"Custom VJP bwd rule {place(rule.bwd)} of the custom_vjp function `{self.name}`"
        checked = []
        for i, (ct, aval) in enumerate(
            zip(self._by_argument(found, what), self.in_avals, strict=True)
        ):
            if ct is not None and is_differentiable(aval):
                refuse = functools.partial(self._error, what, i)
                checked.append(fitted(ct, aval, _any_precision, refuse))
            else:
                checked.append(None)
        return checked

    def _by_argument(self, found: Any, what: str) -> list[Any]:
        """What the rule returns for each array among the arguments; `None` stands for zeros."""
        in_tree = self.rule.in_tree
        if isinstance(found, list):
            found = tuple(found)
        leaves, treedef = tree.flatten(found)
        if treedef == in_tree:
            return leaves
        args = tree.unflatten(in_tree, list(range(in_tree.num_leaves)))
        if isinstance(found, tuple) and len(found) == len(args):
            try:
                return tree.broadcast_prefix(found, args, lambda x: x is None)
            except ValueError:
                pass
        raise TypeError(
            f"{what} must produce an output with the same structure as the args tuple of the "
            f"primal function: a tuple with the cotangent, or None, for each of its {len(args)} "
            f"arguments. It returned {treedef}, and the arguments are {in_tree}"
        )

    def _error(self, what: str, i: int, problem: str) -> Exception:
        path = tree.keystr(paths(self.rule.in_tree)[i])
        kind = ValueError if "shape" in problem or "varies" in problem else TypeError
        return kind(
            f"{what} must produce cotangents of the types of the arguments, but at output{path} it "
            f"produced one of {problem}, for {self.rule.owner.argument_path(self.rule.in_tree, i)} "
            f"of type {type_text(self.in_avals[i])}"
        )


def _arrays(residuals: Sequence[Any]) -> list[Any]:
    """Residuals as they were stored: arrays, and the flags of Python among them."""
    return [x if x.__class__ is bool else without_numbers([x])[0] for x in residuals]


def _any_precision(found: Any, wanted: Any) -> bool:
    return True


def zero_from_primal(val: PyTree, symbolic_zeros: bool = False) -> PyTree:
    """The zero tangent of each array in a pytree, for rules to return.

    Args:
      val: pytree of arrays.
      symbolic_zeros: give `SymbolicZero` instead of arrays of zeros.

    Returns:
      A tree of the same structure; the tangents of integers have the dtype `float0`.

    Raises:
      TypeError: for leaves that are not arrays.

    >>> zero_from_primal({"w": 2.0})
    {'w': Array(0., dtype=float32, weak_type=True)}
    """

    def zero(x: Any) -> Any:
        aval = typeof(x)
        if symbolic_zeros:
            return SymbolicZero(aval)
        return array_of(None, aval) if is_differentiable(aval) else zero_tangent(aval)

    return tree.map(zero, val)


def custom_vjp_primal_tree_values(tree: PyTree) -> PyTree:
    """The values in a tree of `CustomVJPPrimal`, which `fwd` gets with symbolic zeros.

    Args:
      tree: a pytree whose leaves are of the class `CustomVJPPrimal`.

    Returns:
      A tree of the same structure.

    Raises:
      TypeError: for other leaves.

    >>> custom_vjp_primal_tree_values((CustomVJPPrimal(1.0, True),))
    (1.0,)
    """

    def value(leaf: Any) -> Any:
        if leaf.__class__ is not CustomVJPPrimal:
            raise TypeError(f"unexpected leaf type {type(leaf)}; expected CustomVJPPrimal")
        return leaf.value

    return tree_map(value, tree)
