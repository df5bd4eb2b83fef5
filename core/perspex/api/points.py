"""The derivative of a call at a point: a linear program, run forwards and backwards."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes, tree
from perspex.api.calls import Call, argument_avals, array_of
from perspex.base.pytree_registry import Partial, register_pytree_node
from perspex.base.source import transformed
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import Jaxpr
from perspex.ops.refs import addupdate as add_to_ref
from perspex.ops.refs import get as get_ref
from perspex.ops.refs import set as set_ref
from perspex.tracing.primitive import Linear
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import Reference
from perspex.transforms.discharge import Valued
from perspex.transforms.jvp import is_differentiable
from perspex.transforms.linearize import linearize as linearized
from perspex.transforms.programs import pick, with_gaps
from perspex.transforms.transpose import backward_pass

_FLOAT0 = dtypes.float0


def is_cut_as(given: ShapedArray, aval: ShapedArray) -> bool:
    """Whether a tangent is cut as its primal along explicit axes; one that is not cut may be."""
    return given.cut is None or given.cut == aval.cut


class GradValue:
    """Stands in `with_refs` for an argument whose gradient is to be returned."""

    def __repr__(self) -> str:
        return "GradValue()"


class GradRef(GradValue):
    """Stands in place of a gradient that has been added to a ref."""

    def __repr__(self) -> str:
        return "GradRef()"


class DontWant(GradValue):
    """Stands in `with_refs` for an argument whose gradient nobody needs."""

    def __repr__(self) -> str:
        return "DontWant()"


class DidntWant(GradValue):
    """Stands in place of a gradient that nobody needs."""

    def __repr__(self) -> str:
        return "DidntWant()"


def tangent_out(t: Any, aval: ShapedArray, as_primal: bool = False) -> Any:
    """A tangent or cotangent as it is handed to the user.

    It is weakly typed where the rules that made it left it so, and a zero where the value is.
    With `as_primal`, that of a strongly typed value is strong.
    """
    if not is_differentiable(aval):
        return np.zeros(aval.shape, _FLOAT0)
    if t is None or (as_primal and not aval.weak_type):
        return array_of(t, aval)
    return array_of(t, aval.update(weak_type=shaped(t).weak_type))


def _named(aval: ShapedArray) -> str:
    return aval.str_short(short_dtypes=False)


class Point:
    """What the derivative of a call at a point needs beside the residuals: static and hashable."""

    def __init__(self, call: Call, found: Any, valued: Valued) -> None:
        self.name = call.name
        self.jaxpr: Jaxpr = found.jaxpr
        self.in_tree, self.out_tree = call.in_tree, call.out_tree
        self.in_avals = call.avals
        self.wanted = [is_differentiable(aval) for aval in call.avals]
        self.out_avals = [shaped(y) for y in found.outs[: call.count]]
        self.nonzero = found.nonzero[: call.count]
        # The arguments that are refs, and those of them that the function has written.
        self.refs, self.written = valued.places, valued.written
        self.after = found.nonzero[valued.count :]

    def push(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        """Tangents of the results."""
        given, given_tree = tree.flatten(tangents)
        if given_tree != self.in_tree:
            raise TypeError(
                f"the linearized function {self.name} takes tangents of the structure "
                f"{self.in_tree}, got {given_tree}"
            )
        for t, aval in zip(given, self.in_avals, strict=True):
            self._check_tangent(t, aval)
        outs = eval_jaxpr(self.jaxpr, residuals, *pick(given, self.wanted))
        return tree.unflatten(
            self.out_tree,
            [
                tangent_out(t, aval)
                for t, aval in zip(with_gaps(outs, self.nonzero), self.out_avals, strict=True)
            ],
        )

    def _check_tangent(self, t: Any, aval: ShapedArray) -> None:
        if getattr(t, "dtype", None) == _FLOAT0:
            if not is_differentiable(aval) and np.shape(t) == aval.shape:
                return
            shown = f"float0[{','.join(map(str, np.shape(t)))}]"
        else:
            given = shaped(t)
            if given.shape == aval.shape and given.dtype == aval.dtype and is_cut_as(given, aval):
                return
            shown = _named(given)
        raise ValueError(
            "linearized function called on tangent values inconsistent with the original primal "
            f"values: got tangent type {shown} for primal type {_named(aval)}; "
            "convert it with `.astype`, `.reshape` or `jax.sharding.reshard`"
        )

    def pull(
        self, residuals: Sequence[Any], *given: Any, wanted: Sequence[Any] = ()
    ) -> tuple[Any, ...]:
        """Cotangents of the arguments.

        `wanted` says for each argument where its cotangent goes, if not all are returned: see
        `VJP.with_refs`.
        """
        if len(given) != 1:
            raise TypeError(
                f"the function returned by `vjp` applied to `{self.name}` was called with "
                f"{len(given)} arguments, but it takes one, with the structure of the result of "
                f"`{self.name}`: for a tuple of results call it with a tuple, `pull((ct_a, ct_b))`"
            )
        (ct,) = given
        cts, ct_tree = tree.flatten(ct)
        if ct_tree != self.out_tree:
            raise ValueError(
                "unexpected tree structure.\nThe argument to a VJP function returned by `vjp` must "
                f"match the pytree structure of the results of the differentiated function "
                f"`{self.name}`: it is {ct_tree}, and that of the results is {self.out_tree}"
            )
        for c, aval in zip(cts, self.out_avals, strict=True):
            self._check_cotangent(c, aval)
        self._check_refs(wanted)
        late = pick([get_ref(wanted[i]) for i in self.written], self.after)
        linear = [Linear(v.aval) for v in self.jaxpr.invars]
        cts = [*pick(cts, self.nonzero), *late]
        found = transformed("transpose", backward_pass, self.jaxpr, residuals, linear, cts)
        if wanted:
            return self._settled(with_gaps(found, self.wanted), wanted)
        pulled: tuple[Any, ...] = tree.unflatten(
            self.in_tree,
            [
                tangent_out(c, aval)
                for c, aval in zip(with_gaps(found, self.wanted), self.in_avals, strict=True)
            ],
        )
        return pulled

    def _check_refs(self, wanted: Sequence[Any]) -> None:
        for i in self.refs:
            if not wanted or not isinstance(wanted[i], (Reference, DontWant)):
                raise ValueError(
                    f"argument {i} of the differentiated function `{self.name}` is Ref-typed, so "
                    "its gradient must be accumulated into a ref, but no gradient ref was "
                    "provided. Bind one before: `pull.with_refs(grad_ref)(ct)`."
                )
            if i in self.written and not isinstance(wanted[i], Reference):
                raise ValueError(
                    f"argument {i} of the differentiated function `{self.name}` is a ref that it "
                    "writes: the gradient of what it writes comes from a ref. Give one to "
                    "with_refs."
                )

    def _settled(self, found: Sequence[Any], wanted: Sequence[Any]) -> tuple[Any, ...]:
        """The cotangents of the arguments where they are `wanted`: in refs, or returned."""
        outs: list[Any] = []
        for i, (ct, want, aval) in enumerate(zip(found, wanted, self.in_avals, strict=True)):
            if isinstance(want, DontWant):
                outs.append(DidntWant())
            elif not isinstance(want, Reference):
                outs.append(tangent_out(ct, aval))
            else:
                if i in self.written:
                    set_ref(want, None, array_of(ct, aval.strip_weak_type()))
                elif ct is not None:
                    add_to_ref(want, None, array_of(ct, aval.strip_weak_type()))
                outs.append(GradRef())
        settled: tuple[Any, ...] = tree.unflatten(self.in_tree, outs)
        return settled

    def _check_cotangent(self, ct: Any, aval: ShapedArray) -> None:
        if not is_differentiable(aval):
            return
        given = argument_avals("vjp", [ct], lambda _: "a cotangent")[0]
        same = given.shape == aval.shape and given.dtype == aval.dtype
        if not (same and is_cut_as(given, aval)):
            raise ValueError(
                "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
                f"{_named(given)}, but expected {_named(aval)} because the corresponding output of "
                f"the differentiated function had JAX type {_named(aval)}"
            )


class Push:
    """The derivative of a call as a function of tangents, shown by what it takes and gives."""

    __slots__ = ("point",)

    def __init__(self, point: Point) -> None:
        self.point = point

    def __call__(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        return self.point.push(residuals, *tangents)

    def __repr__(self) -> str:
        point = self.point
        return f"jvp of {point.name}: {_types(point.in_avals)} -> {_types(point.out_avals)}"


class Pull:
    """The transpose of the derivative of a call as a function of cotangents."""

    __slots__ = ("point",)

    def __init__(self, point: Point) -> None:
        self.point = point

    def __call__(self, residuals: Sequence[Any], *cotangents: Any) -> Any:
        return self.point.pull(residuals, *cotangents)

    def __repr__(self) -> str:
        point = self.point
        return f"vjp of {point.name}: {_types(point.out_avals)} -> {_types(point.in_avals)}"


def _types(avals: Sequence[ShapedArray]) -> str:
    return f"({', '.join(map(_named, avals))})"


def linearized_call(call: Call) -> tuple[list[Any], Point, list[Any]]:
    wanted = [is_differentiable(aval) for aval in call.avals]
    valued = Valued(call, call.leaves, wanted if Reference.exist else ())

    def is_result(i: int) -> bool:
        return call.is_result(i) or i >= valued.count

    run = functools.partial(transformed, "jvp", valued)
    found = linearized(run, valued.values, wanted, call.name, is_result, call.names)
    for i, value in zip(valued.written, found.outs[valued.count :], strict=True):
        set_ref(call.leaves[i], None, value)
    return found.outs[: valued.count], Point(call, found, valued), found.residuals


class VJP(Partial):
    """A function from cotangents of the results to those of the arguments."""

    def with_refs(self, *maybe_ct_refs: Any) -> Any:
        """The function that accumulates cotangents in refs instead of returning them.

        Args:
          maybe_ct_refs: what to do with the cotangent of each argument, in the same structure. A
            `Ref` has it added, `GradValue()` returns it, and `DontWant()` drops it. For an argument
            that is a ref, pass a `Ref` with the cotangent of what the function left in it; the call
            replaces that with the cotangent of what the function found in it.

        Returns:
          A function of the cotangents of the results. In place of a cotangent that is in a ref it
          returns `GradRef()`.

        Raises:
          ValueError: for another structure than that of the arguments.

        >>> import perspex
        >>> total = perspex.new_ref(10.0)
        >>> _, pull = perspex.vjp(lambda x: x * 3, 2.0)
        >>> pull.with_refs(total)(1.0)
        (GradRef(),)
        >>> total
        Ref(13., dtype=float32)
        """
        point = self.func.point  # type: ignore[attr-defined]
        wanted, given_tree = tree.flatten(maybe_ct_refs)
        if given_tree != point.in_tree:
            raise ValueError(
                "unexpected tree structure in the arguments to a VJP function's `with_refs` "
                f"method: {given_tree}. They must match the arguments of the differentiated "
                f"function `{point.name}`, {point.in_tree}: a `Ref` to accumulate a gradient in, "
                "GradValue() to have it returned, or DontWant()."
            )
        (residuals,) = self.args

        def pull(*cotangents: Any) -> Any:
            return point.pull(residuals, *cotangents, wanted=wanted)

        return pull


# Compiled functions may return these: they hold no arrays.
register_pytree_node(GradRef, lambda _: ((), None), lambda *_: GradRef())
register_pytree_node(DidntWant, lambda _: ((), None), lambda *_: DidntWant())
register_pytree_node(
    VJP,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: VJP(func, *children[0], **children[1]),
)
