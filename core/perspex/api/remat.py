"""`checkpoint`: compute again in the backward pass what would be stored for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from perspex import errors, tree
from perspex.api.calls import argument_avals, check_callable
from perspex.base import source
from perspex.base.tree_paths import PyTree
from perspex.control.bodies import place, stage_body
from perspex.control.remat import Policy, remat_p
from perspex.ir.jaxpr import Jaxpr, Literal
from perspex.jitted.call import jit_p
from perspex.jitted.compiled import Compiled
from perspex.jitted.signature import Options, function_name, name_after
from perspex.ops.names import name_p
from perspex.transforms.jvp import is_differentiable
from perspex.transforms.linearize import linearize

F = TypeVar("F", bound=Callable[..., Any])


def _call(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return f(*args, **kwargs)


def checkpoint(
    fun: F,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Policy | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
) -> F:
    """Make a function store only its arguments for the backward pass, and compute the rest again.

    Reverse mode needs values of the forward pass in the backward pass. Between the two they take
    memory, in proportion to the number of operations. A checkpointed function stores its arguments,
    and computes the rest a second time when its cotangents have arrived: memory for time. The
    results are the same, to the last bit if the compiler orders sums in the same way.

    Args:
      fun: a function of pytrees of arrays.
      prevent_cse: keep the compiler from finding out that it computes the same twice, which would
        store what the two have in common. Not needed, and a little faster without, where `fun` is
        the body of a `scan`: the loops are apart already. Of a sequence any true value counts.
      policy: which values are stored all the same, from `checkpoint_policies`; none if not given.
        It is called with a primitive, the types of its operands, and its params, and says whether
        the results are stored.
      static_argnums, static_argnames: arguments that Python sees as they are.

    Returns:
      A function with the arguments and results of `fun`.

    Raises:
      TypeError: if `fun` is not a function, and for results that are not arrays.
      ValueError: for a static argument that the call does not have or that has no hash.

    References:
      Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse
      automatic differentiation" (1992).

    >>> import perspex, perspex.numpy as pnp
    >>> layer = checkpoint(lambda w, x: pnp.tanh(w @ x))
    >>> w, x = pnp.eye(2), pnp.ones(2)
    >>> perspex.grad(lambda w: layer(w, layer(w, x)).sum())(w).shape
    (2, 2)
    """
    check_callable(fun)
    barrier = prevent_cse if isinstance(prevent_cse, bool) else any(prevent_cse)
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    if any(isinstance(n, bool) or not isinstance(n, int) for n in numbers):
        raise TypeError(f"checkpoint: static_argnums must be integers, got {static_argnums!r}")
    if any(not isinstance(n, str) for n in names):
        raise TypeError(f"checkpoint: static_argnames must be strings, got {static_argnames!r}")
    # `fun` with some arguments given, kept so that what was staged for it is found again.
    variants: dict[Any, Callable[..., Any]] = {}

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        f: Callable[..., Any] = fun
        if numbers or names:
            f, args, kwargs = _without_static(fun, numbers, names, variants, args, kwargs)
        leaves, in_tree = tree.flatten((args, kwargs))
        paths = _Names(f, in_tree)
        avals = argument_avals("checkpoint", leaves, paths.__getitem__)
        try:
            body = stage_body("checkpoint", f, in_tree, avals, _call, paths)
        except errors.ConcretizationTypeError as error:
            error.add_note(
                "If Python may depend on an argument of the checkpointed function "
                f"{place(fun)}, mark it static: "
                f"checkpoint({function_name(fun)}, static_argnums=...)."
            )
            raise
        outs = remat_p(
            *body.consts,
            *leaves,
            jaxpr=body.closed,
            policy=policy,
            prevent_cse=barrier,
            differentiated=False,
        )
        return tree.unflatten(body.out_tree, outs)

    name_after(checkpointed, fun, updated=functools.WRAPPER_UPDATES)
    return checkpointed  # type: ignore[return-value]


class _Names(Sequence[str]):
    """What the arrays of a call are called, worked out only if an error asks."""

    def __init__(self, fun: Callable[..., Any], in_tree: Any) -> None:
        self.fun, self.in_tree = fun, in_tree

    def __getitem__(self, i: Any) -> Any:
        return f"`{Compiled(self.fun, Options()).argument_names(self.in_tree)[i]}`"

    def __len__(self) -> int:
        return self.in_tree.num_leaves


def _without_static(
    fun: Callable[..., Any],
    numbers: tuple[int, ...],
    names: tuple[str, ...],
    variants: dict[Any, Callable[..., Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """`fun` with its static arguments given, and the others."""
    count = len(args)
    if any(not -count <= n < count for n in numbers):
        raise ValueError(
            f"checkpoint: static_argnums {numbers} of {place(fun)} must be positions from "
            f"{-count} to {count - 1} of a call with {count} arguments"
        )
    fixed = {n % count: args[n] for n in numbers}
    named = {name: kwargs[name] for name in names if name in kwargs}
    key = (count, tuple(fixed.items()), tuple(named.items()))
    rest = tuple([x for i, x in enumerate(args) if i not in fixed])
    others = {name: x for name, x in kwargs.items() if name not in named}

    def given(*rest: Any, **others: Any) -> Any:
        dynamic = iter(rest)
        whole = [fixed[i] if i in fixed else next(dynamic) for i in range(count)]
        return fun(*whole, **named, **others)

    try:
        return variants.setdefault(key, given), rest, others
    except TypeError:
        # A program is remembered by the hash of its static arguments.
        return given, rest, others


def checkpoint_name(x: PyTree, name: str) -> PyTree:
    """Name the arrays of a pytree, so that a policy of `checkpoint` can tell them apart.

    Args:
      x: a pytree of arrays.
      name: what policies such as `checkpoint_policies.save_only_these_names` know them by.

    Returns:
      The pytree, with the same values.

    Raises:
      TypeError: for a name that is not a string, or leaves that are not arrays.

    >>> import perspex, perspex.numpy as pnp
    >>> perspex.make_jaxpr(lambda x: checkpoint_name(pnp.sin(x), "wave"))(1.0)
    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = name[name=wave] b in (c,) }
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: the name must be a string, got {name!r}")
    return tree.map(lambda leaf: name_p(leaf, name=name), x)


# ---- What is stored -----------------------------------------------------------------------------


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the values that reverse mode stores between its two passes.

    Args:
      f: a function of pytrees of arrays.
      args, kwargs: its arguments.

    Returns:
      Nothing.

    Raises:
      TypeError: for arguments that are not arrays.

    >>> import perspex.numpy as pnp
    >>> print_saved_residuals(lambda x: pnp.exp(x) * x, 2.0)  # doctest: +ELLIPSIS
    f32[] from the argument x
    f32[] output of exp from ...
    """
    leaves, in_tree = tree.flatten((args, kwargs))
    avals = argument_avals("print_saved_residuals", leaves, _Names(f, in_tree).__getitem__)
    wanted = [is_differentiable(aval) for aval in avals]

    def flat(*xs: Any) -> list[Any]:
        given, named = tree.unflatten(in_tree, xs)
        return [y for y in tree.leaves(f(*given, **named))]

    def residuals(*xs: Any) -> list[Any]:
        return linearize(flat, xs, wanted).residuals

    owner = Compiled(residuals, Options())
    closed = owner.trace(owner.call(tuple(leaves), {})).closed
    names = Compiled(f, Options()).argument_names(in_tree)
    for line in _described(closed.jaxpr, names):
        print(line)


def _described(jaxpr: Jaxpr, names: Sequence[str]) -> list[str]:
    argument = dict(zip(jaxpr.invars, names, strict=True))
    outs = dict.fromkeys(jaxpr.outvars)
    lines = [
        f"{v.aval.str_short()} from the argument {name}"
        for v, name in argument.items()
        if v in outs
    ]
    for v in outs:
        if v.__class__ is Literal:
            lines.append(f"{v.aval.str_short()} from a literal")
        elif v not in argument:
            lines.append(f"{v.aval.str_short()} {_origin(jaxpr, v)}")
    return lines


def _origin(jaxpr: Jaxpr, v: Any) -> str:
    """Where a value comes from, looked for in calls too."""
    # Under its name, if it has one, rather than as the result that was named.
    for eqn in jaxpr.eqns:
        if eqn.primitive is name_p and v in (eqn.invars[0], eqn.outvars[0]):
            return f"named '{eqn.params['name']}' from {source.summary(eqn.source)}"
    for eqn in jaxpr.eqns:
        if v in eqn.outvars:
            if eqn.primitive in (jit_p, remat_p):
                inner = eqn.params["jaxpr"].jaxpr
                return _origin(inner, inner.outvars[eqn.outvars.index(v)])
            return f"output of {eqn.primitive} from {source.summary(eqn.source)}"
    return "from an argument of a call" if v in jaxpr.invars else "from a constant"
