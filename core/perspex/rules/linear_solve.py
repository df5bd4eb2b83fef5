"""`custom_linear_solve`: `x` with `A x = b`, found by whatever the user has for that.

How `x` is found does not matter to its derivative, which follows from the equation:

    A x' + A' x = b'        x' = solve(b' - A' x)        bbar = A^-T xbar

so every derivative of a solution is another solution of a system with the same matrix.

    operands = constants of four programs, b
    results  = x, auxiliary output of `solve`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from perspex.base.effects import Effects
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn
from perspex.ops.elementwise import neg, sub
from perspex.ops.structural import is_linear, to_front, zeros
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import typeof
from perspex.transforms.dce import dce_closed
from perspex.transforms.higher_order import HigherOrder, batch_in_front, check_operands
from perspex.transforms.jvp import jvp_jaxpr, tangent_aval
from perspex.transforms.linearize import Rest, split_jaxpr
from perspex.transforms.programs import by_program, cut, pick, program, spread
from perspex.transforms.transpose import transpose_jaxpr
from perspex.transforms.vmap import batch_jaxpr

PROGRAMS = ("matvec", "vecmat", "solve", "transpose_solve")


class Lengths(NamedTuple):
    """How many of the operands are constants of which program."""

    matvec: int
    vecmat: int
    solve: int
    transpose_solve: int


class LinearSolve(HigherOrder):
    """The solution as an equation.

    Params: the four programs, of their constants and of a vector: `matvec` is `A x`, `vecmat` is
    `A^T x`, `solve` gives `x` and auxiliary output, `transpose_solve` does for `vecmat`; the last
    two of a pair are `None` where there is no transpose. `const_lengths`; `num_aux`.
    """

    name = "custom_linear_solve"

    def type(
        self,
        *avals: ShapedArray,
        const_lengths: Lengths,
        matvec: ClosedJaxpr,
        solve: ClosedJaxpr,
        num_aux: int,
        **params: Any,
    ) -> tuple[ShapedArray, ...]:
        *_, b = cut(avals, *const_lengths)
        consts = cut(avals, *const_lengths)[2]
        check_operands("custom_linear_solve: solve", [*consts, *b], solve.in_avals)
        x = solve.out_avals[: len(b)]
        check_operands("custom_linear_solve: the solution", x, b)
        return tuple(solve.out_avals)

    # Of the four programs only the solver runs.

    def effects(self, params: dict[str, Any]) -> Effects:
        effects: Effects = params["solve"].effects
        return effects

    def lower(
        self, b: Any, *values: Any, const_lengths: Lengths, solve: ClosedJaxpr, **params: Any
    ) -> list[Any]:
        _, _, consts, _, rhs = cut(values, *const_lengths)
        return b.inline(solve.jaxpr, [*consts, *rhs])

    def called(
        self, operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[ClosedJaxpr, Sequence[Any]]:
        _, _, consts, _, rhs = cut(operands, *params["const_lengths"])
        return params["solve"], [*consts, *rhs]

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        const_lengths: Lengths,
        matvec: ClosedJaxpr,
        num_aux: int,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        params = {**params, "const_lengths": const_lengths, "matvec": matvec, "num_aux": num_aux}
        outs = self(*primals, **params)
        consts, b = cut(primals, sum(const_lengths))
        consts_t, b_t = cut(tangents, sum(const_lengths))
        x = outs[: len(b)]
        right = list(b_t)
        mine = consts_t[: const_lengths.matvec]
        nonzero = tuple([t is not None for t in mine])
        if any(nonzero):
            body, found = jvp_jaxpr(matvec, (*nonzero, *[False] * len(b)))
            given = [*consts[: const_lengths.matvec], *x, *pick(mine, nonzero)]
            # Only A' x is wanted, not A x.
            body, needed = dce_closed(
                body, (*[False] * len(b), *[True] * sum(found)), (True,) * len(given)
            )
            moved = spread(eval_jaxpr(body.jaxpr, (), *pick(given, needed)), found)
            right = [_difference(t, m) for t, m in zip(right, moved, strict=True)]
        none = [None] * num_aux
        if all(t is None for t in right):
            return outs, [None] * len(outs)
        right = [
            zeros(tangent_aval(typeof(y))) if t is None else t
            for t, y in zip(right, b, strict=True)
        ]
        return outs, [*self(*consts, *right, **params)[: len(b)], *none]

    def batch(
        self,
        axis: Axis,
        operands: Sequence[Any],
        axes: Sequence[int | None],
        *,
        const_lengths: Lengths,
        num_aux: int,
        **params: Any,
    ) -> tuple[list[Any], list[int | None]]:
        count = sum(const_lengths)
        consts, b = cut(operands, count)
        consts_at, b_at = cut(axes, count)
        flags = cut([at is not None for at in consts_at], *const_lengths)
        whole: dict[str, Any] = {}
        outs = len(params["solve"].out_avals)
        for name, mine in zip(PROGRAMS, flags, strict=False):
            closed = params[name]
            if closed is not None:
                # If one thing is batched then so is the solution.
                batched = (*mine, *[True] * len(b))
                closed = batch_jaxpr(closed, axis, batched, True)[0]
            whole[name] = closed
        b = [to_front(y, at, axis.size) for y, at in zip(b, b_at, strict=True)]
        given = [*batch_in_front(consts, consts_at), *b]
        found = self(*given, const_lengths=const_lengths, num_aux=num_aux, **whole)
        return found, [0] * outs

    def split(
        self, unknown: Sequence[bool], *operands: Any, **params: Any
    ) -> tuple[list[Any], Rest | None]:
        # There is nothing in a solver that is worth having before its right-hand side is there.
        return [None] * len(params["solve"].out_avals), Rest(self, operands, params)

    def transpose(
        self,
        cts: Sequence[Any],
        *operands: Any,
        const_lengths: Lengths,
        matvec: ClosedJaxpr,
        vecmat: ClosedJaxpr | None,
        solve: ClosedJaxpr,
        transpose_solve: ClosedJaxpr | None,
        num_aux: int,
    ) -> list[Any]:
        if transpose_solve is None:
            raise TypeError(
                "custom_linear_solve: transpose_solve is required for reverse mode; give the "
                "argument, or symmetric=True if the matrix is"
            )
        consts, b = cut(operands, sum(const_lengths))
        assert not any(map(is_linear, consts)), "a solution is linear in the right-hand side alone"
        groups = cut(consts, *const_lengths)
        right = [
            zeros(tangent_aval(x.aval)) if ct is None else ct for ct, x in zip(cts, b, strict=False)
        ]
        found = self(
            *[*groups[1], *groups[0], *groups[3], *groups[2], *right],
            const_lengths=Lengths(
                const_lengths.vecmat,
                const_lengths.matvec,
                const_lengths.transpose_solve,
                const_lengths.solve,
            ),
            matvec=vecmat,
            vecmat=matvec,
            solve=transpose_solve,
            transpose_solve=solve,
            num_aux=len(transpose_solve.out_avals) - len(b),
        )
        return [*[None] * len(consts), *found[: len(b)]]

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        # Auxiliary output goes if nobody reads it; a solution is whole or not there.
        params = eqn.params
        count = len(eqn.outvars) - params["num_aux"]
        keep = (*[True] * count, *used[count:])
        solve, _ = dce_closed(params["solve"], keep, (True,) * len(params["solve"].in_avals))
        return eqn.replace(
            outvars=pick(eqn.outvars, keep),
            params={**params, "solve": solve, "num_aux": sum(keep[count:])},
        )


def _difference(x: Any, y: Any) -> Any:
    if y is None:
        return x
    return neg(y) if x is None else sub(x, y)


linear_solve_p = LinearSolve()


@by_program
def transposed(matvec: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """`A^T x` as a program of the constants of `matvec` and a vector of `count` arrays."""
    consts = len(matvec.in_avals) - count
    halves = split_jaxpr(matvec, (*[False] * consts, *[True] * count), True)
    held = len(halves.unknown.in_avals) - count
    linear = (*[False] * held, *[True] * count)
    back, _ = transpose_jaxpr(halves.unknown, linear, (True,) * count, True)

    def whole(*args: Any) -> list[Any]:
        mine, cts = cut(args, consts)
        coefficients = eval_jaxpr(halves.known.jaxpr, (), *mine)
        return eval_jaxpr(back.jaxpr, (), *coefficients, *cts)

    avals = [tangent_aval(aval) for aval in matvec.out_avals]
    return program(whole, [*matvec.in_avals[:consts], *avals], f"{matvec.jaxpr.name}_transposed")
