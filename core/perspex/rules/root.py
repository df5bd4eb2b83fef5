"""`custom_root`: `x` with `f(x) = 0`, found by whatever the user has for that.

How `x` is found does not matter to its derivative. With what `f` closes over as its arguments `c`,

    f(c, x) = 0        df/dx x' = -df/dc c'

(the implicit function theorem): a linear system, for which the user gives the solver too. Reverse
mode is the transpose of that.

    operands = constants of f, constants of solve, initial guess
    results  = x, auxiliary output of `solve`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perspex import tree
from perspex.base.effects import Effects
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn
from perspex.ops.elementwise import neg
from perspex.ops.structural import to_front
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import typeof
from perspex.transforms.dce import dce_closed
from perspex.transforms.higher_order import HigherOrder, batch_in_front, check_operands
from perspex.transforms.jvp import jvp_jaxpr
from perspex.transforms.linearize import Rest, split_jaxpr
from perspex.transforms.programs import by_program, cut, pick, spread
from perspex.transforms.vmap import batch, batch_jaxpr


class Derivative:
    """The tangent of a root, due to those of what `f` closes over.

    All of them are equal: programs that differ in nothing else compute the same.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Derivative)

    def __hash__(self) -> int:
        return hash(Derivative)

    def __call__(
        self, f: ClosedJaxpr, consts: Sequence[Any], x: Sequence[Any], tangents: Sequence[Any]
    ) -> list[Any]:
        raise NotImplementedError


class TangentSolve(Derivative):
    """The solution of the linear system by the user's function `tangent_solve(g, y)`."""

    def __init__(self, solve: Callable[..., Any], structure: Any) -> None:
        self.solve = solve
        self.structure = structure

    def __repr__(self) -> str:
        return getattr(self.solve, "__name__", repr(self.solve))

    def __call__(
        self, f: ClosedJaxpr, consts: Sequence[Any], x: Sequence[Any], tangents: Sequence[Any]
    ) -> list[Any]:
        nonzero = tuple([t is not None for t in tangents])
        known, linear, by_consts = _linearized(f, len(x), nonzero)
        right = eval_jaxpr(by_consts.jaxpr, (), *consts, *x, *pick(tangents, nonzero))
        coefficients = eval_jaxpr(known.jaxpr, (), *consts, *x)

        def g(y: Any) -> Any:
            leaves, structure = tree.flatten(y)
            if structure != self.structure:
                raise TypeError(
                    "custom_root: the function given to tangent_solve takes what initial_guess is, "
                    f"{self.structure}, got {structure}"
                )
            return tree.unflatten(
                self.structure, eval_jaxpr(linear.jaxpr, (), *coefficients, *leaves)
            )

        found = self.solve(g, tree.unflatten(self.structure, [neg(y) for y in right]))
        leaves, structure = tree.flatten(found)
        if structure != self.structure:
            raise TypeError(
                "tangent_solve() output pytree structure must match x, got "
                f"{structure} and {self.structure}"
            )
        check_operands(
            "custom_root: the result of tangent_solve",
            [typeof(t) for t in leaves],
            [typeof(y) for y in x],
        )
        return leaves


class Mapped(Derivative):
    """The tangents of a batch of roots: one by one, what `f` closes over batched where flagged."""

    def __init__(
        self, one: Derivative, f: ClosedJaxpr, batched: tuple[bool, ...], axis: Axis
    ) -> None:
        self.one, self.f, self.batched, self.axis = one, f, batched, axis

    def __repr__(self) -> str:
        return repr(self.one)

    def __call__(
        self, f: ClosedJaxpr, consts: Sequence[Any], x: Sequence[Any], tangents: Sequence[Any]
    ) -> list[Any]:
        nonzero = [t is not None for t in tangents]

        def example(*args: Any) -> list[Any]:
            mine, roots, given = cut(args, len(consts), len(x))
            return self.one(self.f, mine, roots, spread(given, nonzero))

        at = [0 if flag else None for flag in self.batched]
        found, axes = batch(
            example,
            self.axis,
            [*consts, *x, *pick(tangents, nonzero)],
            [*at, *[0] * len(x), *pick(at, nonzero)],
        )
        return [to_front(t, where, self.axis.size) for t, where in zip(found, axes, strict=True)]


@by_program
def _linearized(
    f: ClosedJaxpr, count: int, nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, ClosedJaxpr, ClosedJaxpr]:
    """`f` linearized by `x`, in two parts, and by its constants of which some have a tangent.

    The first program gives the coefficients that the second takes before `x'`, in which it is
    linear. The third gives `df/dc c'`.
    """
    consts = len(f.in_avals) - count
    by_x, _ = jvp_jaxpr(f, (*[False] * consts, *[True] * count), True)
    by_x, _ = dce_closed(by_x, (*[False] * count, *[True] * count), (True,) * len(by_x.in_avals))
    unknown = (*[False] * len(f.in_avals), *[True] * count)
    halves = split_jaxpr(by_x, unknown, True)
    by_c, _ = jvp_jaxpr(f, (*nonzero, *[False] * count), True)
    by_c, _ = dce_closed(by_c, (*[False] * count, *[True] * count), (True,) * len(by_c.in_avals))
    return halves.known, halves.unknown, by_c


class CustomRoot(HigherOrder):
    """The root as an equation.

    Params: the programs `f` and `solve` of their constants, of which there are `const_lengths`, and
    of `x`; `derivative`; `num_aux`, how many auxiliary results `solve` has.
    """

    name = "custom_root"

    def type(
        self,
        *avals: ShapedArray,
        const_lengths: tuple[int, int],
        f: ClosedJaxpr,
        solve: ClosedJaxpr,
        **params: Any,
    ) -> tuple[ShapedArray, ...]:
        of_f, of_solve, guess = cut(avals, *const_lengths)
        check_operands("custom_root: f", [*of_f, *guess], f.in_avals)
        check_operands("custom_root: solve", [*of_solve, *guess], solve.in_avals)
        return tuple(solve.out_avals)

    # Of the programs only the solver runs.

    def effects(self, params: dict[str, Any]) -> Effects:
        effects: Effects = params["solve"].effects
        return effects

    def lower(
        self,
        b: Any,
        *values: Any,
        const_lengths: tuple[int, int],
        solve: ClosedJaxpr,
        **params: Any,
    ) -> list[Any]:
        return b.inline(solve.jaxpr, values[const_lengths[0] :])

    def called(
        self, operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[ClosedJaxpr, Sequence[Any]]:
        return params["solve"], operands[params["const_lengths"][0] :]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        outs = self(*primals, **params)
        count = params["const_lengths"][0]
        x = outs[: len(outs) - params["num_aux"]]
        mine = tangents[:count]
        found: list[Any] = [None] * len(x)
        if any(t is not None for t in mine):
            found = params["derivative"](params["f"], primals[:count], x, mine)
        return outs, [*found, *[None] * params["num_aux"]]

    def batch(
        self,
        axis: Axis,
        operands: Sequence[Any],
        axes: Sequence[int | None],
        *,
        const_lengths: tuple[int, int],
        f: ClosedJaxpr,
        solve: ClosedJaxpr,
        derivative: Derivative,
        num_aux: int,
    ) -> tuple[list[Any], list[int | None]]:
        of_f, of_solve, guess = cut([at is not None for at in axes], *const_lengths)
        # If one thing is batched then so is the root.
        every = [True] * len(guess)
        consts, start = cut(batch_in_front(operands, axes), sum(const_lengths))
        start = [
            x if flag else to_front(x, None, axis.size)
            for x, flag in zip(start, guess, strict=True)
        ]
        outs = self(
            *consts,
            *start,
            const_lengths=const_lengths,
            f=batch_jaxpr(f, axis, (*of_f, *every), True)[0],
            solve=batch_jaxpr(solve, axis, (*of_solve, *every), True)[0],
            derivative=Mapped(derivative, f, tuple(of_f), axis),
            num_aux=num_aux,
        )
        return outs, [0] * len(outs)

    def split(
        self, unknown: Sequence[bool], *operands: Any, **params: Any
    ) -> tuple[list[Any], Rest | None]:
        # A solver is not taken apart.
        return [None] * len(params["solve"].out_avals), Rest(self, operands, params)

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        # Auxiliary output goes if nobody reads it; a root is whole or not there.
        params = eqn.params
        count = len(eqn.outvars) - params["num_aux"]
        keep = (*[True] * count, *used[count:])
        solve, _ = dce_closed(params["solve"], keep, (True,) * len(params["solve"].in_avals))
        return eqn.replace(
            outvars=pick(eqn.outvars, keep),
            params={**params, "solve": solve, "num_aux": sum(keep[count:])},
        )


custom_root_p = CustomRoot()
