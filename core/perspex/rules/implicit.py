"""`custom_root` and `custom_linear_solve`: `x` with `f(c, x) = 0`, found by a function of the user.

How `x` is found does not matter to its derivative. With what `f` closes over as its arguments `c`,

    df/dx x' = -df/dc c'

(the implicit function theorem): a linear system. For a root the user gives the solver of that
system too. In a linear system `f` is `A x - b`: the derivative

    A x' = b' - A' x        bbar = A^-T xbar

is the solution of another system with the same matrix, or with its transpose.

    operands = constants of the programs, then the initial guess, or b
    results  = x, auxiliary output of `solve`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from perspex.base.effects import Effects
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn
from perspex.ops.elementwise import neg, sub
from perspex.ops.structural import is_linear, to_front
from perspex.rules.calls import WholeCall
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import typeof
from perspex.transforms.dce import dce_closed
from perspex.transforms.higher_order import batch_in_front, check_operands, instantiated
from perspex.transforms.jvp import jvp_jaxpr, tangent_aval
from perspex.transforms.linearize import split_jaxpr
from perspex.transforms.programs import by_program, cut, pick, program, with_gaps
from perspex.transforms.transpose import transpose_jaxpr
from perspex.transforms.vmap import batch_jaxpr


class Implicit(WholeCall):
    """The solution of an equation as an equation of a program.

    Params: the `programs`, of their constants and of an array of the type of `x`; `const_lengths`,
    how many constants each of them has; `num_aux`, how many auxiliary results `solve` has.
    """

    program = "solve"
    programs: ClassVar[tuple[str, ...]]

    def tangent(
        self, primals: Sequence[Any], tangents: Sequence[Any], x: Sequence[Any], **params: Any
    ) -> list[Any]:
        """The tangent of `x`; `None` is zero."""
        raise NotImplementedError

    def arguments(self, name: str, last: Sequence[Any]) -> Sequence[Any]:
        """What the program `name` takes after its constants; `last` is what `solve` takes."""
        return last

    def type(
        self, *avals: ShapedArray, const_lengths: Sequence[int], **params: Any
    ) -> tuple[ShapedArray, ...]:
        *groups, last = cut(avals, *const_lengths)
        for name, consts in zip(self.programs, groups, strict=True):
            if params[name] is not None:
                given = [*consts, *self.arguments(name, last)]
                check_operands(f"{self.name}: {name}", given, params[name].in_avals)
        outs: list[ShapedArray] = params["solve"].out_avals
        check_operands(f"{self.name}: the solution", outs[: len(last)], last)
        return tuple(outs)

    # Of the programs only the solver runs.

    def effects(self, params: dict[str, Any]) -> Effects:
        effects: Effects = params["solve"].effects
        return effects

    def called(
        self, operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[ClosedJaxpr, Sequence[Any]]:
        *groups, last = cut(operands, *params["const_lengths"])
        return params["solve"], [*groups[self.programs.index("solve")], *last]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        outs = self(*primals, **params)
        x = outs[: len(outs) - params["num_aux"]]
        found = self.tangent(primals, tangents, x, **params)
        return outs, [*found, *[None] * params["num_aux"]]

    def batch(
        self, axis: Axis, operands: Sequence[Any], axes: Sequence[int | None], **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        *groups, last = cut([at is not None for at in axes], *params["const_lengths"])
        # If one thing is batched then so is the solution.
        for name, batched in zip(self.programs, groups, strict=True):
            if params[name] is not None:
                full = (*batched, *[True] * len(self.arguments(name, last)))
                params[name] = batch_jaxpr(params[name], axis, full, True)[0]
        count = len(operands) - len(last)
        consts = batch_in_front(operands[:count], axes[:count])
        ends = zip(operands[count:], axes[count:], strict=True)
        outs = self(*consts, *[to_front(x, at, axis) for x, at in ends], **params)
        return outs, [0] * len(outs)

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        # Auxiliary output that nothing reads is dropped; a solution is whole or not there.
        params = eqn.params
        count = len(eqn.outvars) - params["num_aux"]
        keep = (*[True] * count, *used[count:])
        solve, _ = dce_closed(params["solve"], keep, (True,) * len(params["solve"].in_avals))
        return eqn.replace(
            outvars=pick(eqn.outvars, keep),
            params={**params, "solve": solve, "num_aux": sum(keep[count:])},
        )


def _by_consts(
    f: ClosedJaxpr, consts: Sequence[Any], x: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """`df/dc c'` for the tangents of what `f` closes over; `None` is zero."""
    nonzero = tuple([t is not None for t in tangents])
    none = (False,) * len(x)
    if not any(nonzero):
        return [None] * len(x)
    body, found = jvp_jaxpr(f, (*nonzero, *none))
    # Only `df/dc c'` is wanted, not `f(c, x)`.
    body, needed = dce_closed(body, (*none, *[True] * sum(found)))
    given = pick([*consts, *x, *pick(tangents, nonzero)], needed)
    return with_gaps(eval_jaxpr(body.jaxpr, (), *given), found)


# ---- Linear systems -----------------------------------------------------------------------------


class Lengths(NamedTuple):
    """How many of the operands are constants of each program."""

    matvec: int
    vecmat: int
    solve: int
    transpose_solve: int


class LinearSolve(Implicit):
    """The solution of a linear system; it is linear in `b`.

    `matvec` is `A x`, `vecmat` is `A^T x`, and `transpose_solve` does for `vecmat` what `solve`
    does for `matvec`; both are `None` where there is no transpose.
    """

    name = "custom_linear_solve"
    makes_nan = True
    programs = Lengths._fields

    def tangent(
        self, primals: Sequence[Any], tangents: Sequence[Any], x: Sequence[Any], **params: Any
    ) -> list[Any]:
        count, size = sum(params["const_lengths"]), params["const_lengths"].matvec
        moved = _by_consts(params["matvec"], primals[:size], x, tangents[:size])
        right = [_difference(t, m) for t, m in zip(tangents[count:], moved, strict=True)]
        if all(t is None for t in right):
            return right
        right = instantiated(right, primals[count:], [True] * len(right))
        found: list[Any] = self(*primals[:count], *right, **params)[: len(x)]
        return found

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
        *groups, b = cut(operands, *const_lengths)
        count = sum(const_lengths)
        assert not any(map(is_linear, operands[:count])), "a solution is linear in b alone"
        right = instantiated(cts[: len(b)], b, [True] * len(b))
        back = [groups[i] for i in (1, 0, 3, 2)]
        found = self(
            *[x for group in back for x in group],
            *right,
            const_lengths=Lengths(*map(len, back)),
            matvec=vecmat,
            vecmat=matvec,
            solve=transpose_solve,
            transpose_solve=solve,
            num_aux=len(transpose_solve.out_avals) - len(b),
        )
        return [*[None] * count, *found[: len(b)]]


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


# ---- Roots --------------------------------------------------------------------------------------


class CustomRoot(Implicit):
    """The root of a function.

    `tangent_solve` solves `df/dx x' = -y`: its arguments are `x` and `y`.
    """

    name = "custom_root"
    programs = ("f", "solve", "tangent_solve")

    def arguments(self, name: str, last: Sequence[Any]) -> Sequence[Any]:
        return [*last, *last] if name == "tangent_solve" else last

    def tangent(
        self, primals: Sequence[Any], tangents: Sequence[Any], x: Sequence[Any], **params: Any
    ) -> list[Any]:
        consts, _, mine, _ = cut(primals, *params["const_lengths"])
        moved = tangents[: len(consts)]
        if all(t is None for t in moved):
            return [None] * len(x)
        right = instantiated(_by_consts(params["f"], consts, x, moved), x, [True] * len(x))
        program = params["tangent_solve"]
        slopes = [tangent_aval(typeof(v)) for v in x]
        check_operands("custom_root: the result of tangent_solve", program.out_avals, slopes)
        return eval_jaxpr(program.jaxpr, (), *mine, *x, *right)


custom_root_p = CustomRoot()


def linear_at(
    f: ClosedJaxpr, consts: Sequence[Any], x: Sequence[Any]
) -> Callable[[Sequence[Any]], list[Any]]:
    """The derivative `df/dx` at `x`, as a function of `x'`."""
    known, linear = _by_x(f, len(x))
    coefficients = eval_jaxpr(known.jaxpr, (), *consts, *x)
    return lambda tangents: eval_jaxpr(linear.jaxpr, (), *coefficients, *tangents)


@by_program
def _by_x(f: ClosedJaxpr, count: int) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """`df/dx` in two programs.

    The first gives the coefficients that the second takes before `x'`, in which it is linear.
    """
    consts = len(f.in_avals) - count
    by_x, _ = jvp_jaxpr(f, (*[False] * consts, *[True] * count), True)
    by_x, _ = dce_closed(by_x, (*[False] * count, *[True] * count), (True,) * len(by_x.in_avals))
    halves = split_jaxpr(by_x, (*[False] * len(f.in_avals), *[True] * count), True)
    return halves.known, halves.unknown
