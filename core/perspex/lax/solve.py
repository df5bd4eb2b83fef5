"""`custom_linear_solve` and `custom_root`: solutions whose derivatives follow from the equation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from perspex import tree
from perspex.base.tree_paths import PyTree
from perspex.control.bodies import Body, place, stage_body
from perspex.ir.avals import ShapedArray, shaped
from perspex.ops.elementwise import neg
from perspex.rules.implicit import Lengths, custom_root_p, linear_at, linear_solve_p, transposed
from perspex.tracing.staging import eval_jaxpr
from perspex.transforms.jvp import tangent_aval

__all__ = ["custom_linear_solve", "custom_root"]

Solver = Callable[[Callable[[PyTree], PyTree], PyTree], PyTree]
# Containers, and the types of what they hold.
Typed = tuple[Any, Sequence[ShapedArray]]


def custom_linear_solve(
    matvec: Callable[[PyTree], PyTree],
    b: PyTree,
    solve: Solver,
    transpose_solve: Solver | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> PyTree:
    """Solve `matvec(x) = b` with a function of your own; derivatives follow from the equation.

    `solve` itself, for example a loop that stops when the error is small, is not differentiated.
    The derivative of a solution is the solution of another system with the same matrix.

    Args:
      matvec: a linear, invertible function of a pytree of arrays like `b`.
      b: the right-hand side, a pytree of arrays.
      solve: takes `matvec` and a right-hand side like `b`, gives the solution.
      transpose_solve: takes the transpose of `matvec` and a right-hand side, gives the solution of
        the transposed system. Reverse mode needs it.
      symmetric: `matvec` is its own transpose; then `solve` stands for `transpose_solve` too.
      has_aux: the two solvers return a pair; its second part is returned and not differentiated.

    Returns:
      The solution, a pytree like `b`; with `has_aux` the pair of it and the auxiliary output.

    Raises:
      ValueError: if `matvec` or a solver returns other shapes than those of `b`.
      TypeError: in reverse mode, without `transpose_solve`.

    >>> import perspex, perspex.numpy as pnp
    >>> from perspex import lax
    >>> a = pnp.array([2.0, 4.0])
    >>> solve = lambda matvec, b: b / a
    >>> f = lambda b: lax.custom_linear_solve(lambda x: a * x, b, solve, symmetric=True).sum()
    >>> perspex.grad(f)(pnp.ones(2))
    Array([0.5 , 0.25], dtype=float32)
    """
    what = "custom_linear_solve"
    _check_functions(what, matvec=matvec, solve=solve)
    leaves, structure = tree.flatten(b)
    avals = [shaped(leaf) for leaf in leaves]
    in_tree = tree.structure((b,))
    count = len(leaves)

    product = stage_body(what, matvec, in_tree, avals)
    wanted = structure, avals
    _check_shapes("matvec", matvec, (product.out_tree, product.out_avals), wanted)

    def staged(name: str, solver: Callable[..., Any], by: Callable[[Any], Any]) -> Body:
        body = stage_body(what, functools.partial(solver, by), in_tree, avals)
        found = _solution_tree(name, solver, body.out_tree, has_aux)
        _check_shapes(name, solver, (found, body.out_avals[: found.num_leaves]), wanted)
        return body

    forward = staged("solve", solve, matvec)
    vecmat, backward = None, None
    if symmetric:
        vecmat, backward = product.closed, forward
    elif transpose_solve is not None:
        closed = vecmat = transposed(product.closed, count)

        def by_columns(y: Any) -> Any:
            outs = eval_jaxpr(closed.jaxpr, (), *product.consts, *tree.leaves(y))
            return tree.unflatten(structure, outs)

        backward = staged("transpose_solve", transpose_solve, by_columns)
    consts = [
        product.consts,
        [] if vecmat is None else product.consts,
        forward.consts,
        [] if backward is None else backward.consts,
    ]
    outs = linear_solve_p(
        *[const for group in consts for const in group],
        *leaves,
        const_lengths=Lengths(*map(len, consts)),
        matvec=product.closed,
        vecmat=vecmat,
        solve=forward.closed,
        transpose_solve=None if backward is None else backward.closed,
        num_aux=len(forward.out_avals) - count,
    )
    return tree.unflatten(forward.out_tree, outs)


def custom_root(
    f: Callable[[PyTree], PyTree],
    initial_guess: PyTree,
    solve: Solver,
    tangent_solve: Solver,
    has_aux: bool = False,
) -> PyTree:
    """Solve `f(x) = 0` with a function of your own; derivatives follow from the equation.

    `solve` itself is not differentiated. By the implicit function theorem, the derivative of a root
    with respect to what `f` closes over is the solution of a linear system.

    Args:
      f: a function of a pytree of arrays that returns one of the same containers and types.
      initial_guess: where to start, a pytree of arrays.
      solve: takes `f` and the guess, gives the root.
      tangent_solve: takes a linear function `g`, the derivative of `f` at the root, and a pytree
        `y`; gives `x` with `g(x) = y`. For a number `lambda g, y: y / g(1.0)`; for a vector
        `lambda g, y: pnp.linalg.solve(jacobian(g)(y), y)`. It is differentiated, and must be linear
        in `y`.
      has_aux: `solve` returns a pair; its second part is returned and not differentiated.

    Returns:
      The root; with `has_aux` the pair of it and the auxiliary output. The derivative with respect
      to the initial guess is zero.

    Raises:
      TypeError: if `f` or a solver returns other containers or types than those of the guess.

    >>> import perspex, perspex.numpy as pnp
    >>> from perspex import lax
    >>> def root(a):
    ...     newton = lambda f, x: pnp.sqrt(a)
    ...     return lax.custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> perspex.value_and_grad(root)(4.0)
    (Array(2., dtype=float32, weak_type=True), Array(0.25, dtype=float32, weak_type=True))
    """
    what = "custom_root"
    _check_functions(what, f=f, solve=solve, tangent_solve=tangent_solve)
    leaves, structure = tree.flatten(initial_guess)
    avals = [shaped(leaf) for leaf in leaves]
    in_tree = tree.structure((initial_guess,))
    value = stage_body(what, f, in_tree, avals)
    wanted = structure, avals
    _check_types("f", f, (value.out_tree, value.out_avals), wanted)
    forward = stage_body(what, functools.partial(solve, f), in_tree, avals)
    found = _solution_tree("solve", solve, forward.out_tree, has_aux)
    _check_types("solve", solve, (found, forward.out_avals[: found.num_leaves]), wanted)

    def tangent(x: PyTree, y: PyTree) -> PyTree:
        by_x = linear_at(value.closed, value.consts, tree.leaves(x))

        def g(t: PyTree) -> PyTree:
            tangents, given = tree.flatten(t)
            if given != structure:
                raise TypeError(
                    "custom_root: the function given to tangent_solve takes what initial_guess is, "
                    f"{structure}, got {given}"
                )
            return tree.unflatten(structure, by_x(tangents))

        return tangent_solve(g, tree.map(neg, y))

    slopes = [tangent_aval(aval) for aval in avals]
    two = tree.structure((initial_guess, initial_guess))
    back = stage_body(what, tangent, two, [*avals, *slopes])
    if back.out_tree != structure:
        raise TypeError(
            "tangent_solve() output pytree structure must match x, got "
            f"{back.out_tree} and {structure}"
        )
    bodies = (value, forward, back)
    outs = custom_root_p(
        *[x for body in bodies for x in body.consts],
        *leaves,
        const_lengths=tuple([len(body.consts) for body in bodies]),
        f=value.closed,
        solve=forward.closed,
        tangent_solve=back.closed,
        num_aux=len(forward.out_avals) - len(leaves),
    )
    return tree.unflatten(forward.out_tree, outs)


# ---- Checks -------------------------------------------------------------------------------------


def _check_functions(what: str, **functions: Any) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"{what}: {name} must be a function, got {function!r}")


def _solution_tree(name: str, solver: Callable[..., Any], out_tree: Any, has_aux: bool) -> Any:
    """The containers of the solution in what a solver returns."""
    if not has_aux:
        return out_tree
    out = tree.unflatten(out_tree, list(range(out_tree.num_leaves)))
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise ValueError(
            f"{name}() must return a pair (solution, auxiliary output) with has_aux=True, but "
            f"{place(solver)} returned {out_tree}"
        )
    return tree.structure(out[0])


def _check_shapes(name: str, function: Callable[..., Any], found: Typed, wanted: Typed) -> None:
    shapes = [[aval.shape for aval in avals] for _, avals in (found, wanted)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{name}() output shapes must match b, got {shapes[0]} and {shapes[1]}, from "
            f"{place(function)}"
        )
    if found[0] != wanted[0]:
        raise TypeError(
            f"{name}() output pytree structure must match b, got {found[0]} and {wanted[0]}, "
            f"from {place(function)}"
        )


def _check_types(name: str, function: Callable[..., Any], found: Typed, wanted: Typed) -> None:
    if found[0] != wanted[0]:
        raise TypeError(
            f"{name}() output pytree structure must match initial_guess, got {found[0]} and "
            f"{wanted[0]}, from {place(function)}"
        )
    types = [[(a.shape, a.dtype) for a in avals] for _, avals in (found, wanted)]
    if types[0] != types[1]:
        shown = [[a.str_short(short_dtypes=False) for a in avals] for _, avals in (found, wanted)]
        raise TypeError(
            f"{name}() output types must match initial_guess, got {shown[0]} and {shown[1]}, from "
            f"{place(function)}; convert one of them"
        )
