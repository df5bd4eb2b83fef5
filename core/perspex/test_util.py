"""Derivatives checked against differences: `jax.test_util`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes, tree
from perspex.api.differentiation import jvp, vjp
from perspex.ir.avals import shaped

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_EPS = 1e-4
# How far derivatives may be off, by dtype; what is not here may be off by 0.1.
_TOLERANCES = {
    "float16": 1e-2,
    "float32": 2e-3,
    "float64": 1e-5,
    "complex64": 1e-3,
    "complex128": 1e-5,
}


def _tolerance(dtype: np.dtype, given: Any) -> float:
    if isinstance(given, dict):
        found = {np.dtype(key).name: value for key, value in given.items()}
        given = found.get(dtype.name)
    if given is None:
        given = _TOLERANCES.get(dtype.name, 0.1)
    return float(given) if dtypes.issubdtype(dtype, np.inexact) or given else 0.0


def _check_close(found: Any, wanted: Any, atol: Any, rtol: Any, what: str, err_msg: str) -> None:
    def check(x: Any, y: Any) -> None:
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape:
            raise AssertionError(f"{err_msg} {what}: shapes {x.shape} and {y.shape} differ")
        if x.dtype == dtypes.float0:
            return
        kinds = x.dtype, y.dtype
        near = max([_tolerance(kind, atol) for kind in kinds]) * max(x.size, 1)
        part = max([_tolerance(kind, rtol) for kind in kinds]) * max(x.size, 1)
        if dtypes.issubdtype(x.dtype, np.floating) and x.dtype.itemsize < 4:
            x, y = x.astype(np.float32), y.astype(np.float32)
        np.testing.assert_allclose(x, y, rtol=part, atol=near, err_msg=f"{err_msg} {what}".strip())

    tree.map(check, found, wanted)


def _dtype(x: Any) -> np.dtype:
    return dtypes.canonicalize_dtype(shaped(x).dtype)


def _direction(rng: np.random.RandomState, x: Any) -> Any:
    """Random numbers like `x`; a Python number for one."""
    dtype, shape = _dtype(x), np.shape(x)
    out = np.asarray(rng.randn(*shape), dtype=dtype)
    if dtypes.issubdtype(dtype, np.complexfloating):
        out = out + dtype.type(1j) * np.asarray(rng.randn(*shape), dtype=dtype)
    is_number = isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic)
    return out.item() if is_number else np.asarray(out, dtype)


def _differences(f: Callable[..., Any], primals: Any, tangents: Any, eps: float) -> Any:
    """The derivative of `f` in a direction, from two values."""

    def moved(x: Any, t: Any, by: float) -> Any:
        out = np.asarray(np.asarray(x) + by * np.asarray(t), _dtype(x))
        return out.item() if isinstance(t, (float, complex)) else out

    ahead = f(*tree.map(lambda x, t: moved(x, t, eps), primals, tangents))
    behind = f(*tree.map(lambda x, t: moved(x, t, -eps), primals, tangents))

    def slope(x: Any, y: Any) -> Any:
        dtype, (x, y) = _dtype(x), (np.asarray(x), np.asarray(y))
        with np.errstate(invalid="ignore"):
            difference = np.where(x == y, np.zeros((), dtype), x - y)
        return np.asarray(difference * np.asarray(0.5 / eps, dtype), dtype)

    return tree.map(slope, ahead, behind)


def _inner(xs: Any, ys: Any) -> Any:
    pairs = zip(tree.leaves(xs), tree.leaves(ys), strict=True)
    return sum([np.real(np.vdot(np.asarray(x), np.asarray(y))) for x, y in pairs])


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float = _EPS,
    err_msg: str = "",
) -> None:
    """Compare a forward derivative with differences, in one random direction.

    Args:
      f: a function of pytrees.
      f_jvp: its derivative: takes `args` and as many tangents, such as `partial(jvp, f)`.
      args: where to compare.
      atol, rtol: how far it may be off, as a number or by dtype.
      eps: the step of the differences.
      err_msg: the beginning of the error's text.

    Returns:
      Nothing.

    Raises:
      AssertionError: if they differ.

    >>> import perspex.numpy as pnp
    >>> check_jvp(pnp.sin, lambda x, t: (pnp.sin(*x), pnp.cos(*x) * t[0]), (0.5,), eps=1e-2)
    """
    rng = np.random.RandomState(0)
    args = tuple(args)
    tangents = tree.map(functools.partial(_direction, rng), args)
    out, tangent = f_jvp(args, tangents)
    _check_close(out, f(*args), atol, rtol, "primal", err_msg)
    _check_close(tangent, _differences(f, args, tangents, eps), atol, rtol, "tangent", err_msg)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float = _EPS,
    err_msg: str = "",
) -> None:
    """Compare a reverse derivative with differences, in one random direction.

    Args:
      f: a function of pytrees.
      f_vjp: its derivative: takes `*args`, returns the result and a function of cotangents, such
        as `partial(vjp, f)`.
      args: where to compare.
      atol, rtol: how far it may be off, as a number or by dtype.
      eps: the step of the differences.
      err_msg: the beginning of the error's text.

    Returns:
      Nothing.

    Raises:
      AssertionError: if they differ.

    >>> import functools, perspex, perspex.numpy as pnp
    >>> check_vjp(pnp.sin, functools.partial(perspex.vjp, pnp.sin), (0.5,), eps=1e-2)
    """
    rng = np.random.RandomState(0)
    args = tuple(args)
    out, pull = f_vjp(*args)
    _check_close(out, f(*args), atol, rtol, "primal", err_msg)
    tangents = tree.map(functools.partial(_direction, rng), args)
    slopes = _differences(f, args, tangents, eps)
    cotangents = tree.map(functools.partial(_direction, rng), out)
    pulled = tree.map(np.conj, pull(tree.map(np.conj, cotangents)))
    _check_close(
        _inner(tangents, pulled),
        _inner(slopes, cotangents),
        atol,
        rtol,
        "cotangent projection",
        err_msg,
    )


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
) -> None:
    """Compare the derivatives of a function with differences, in random directions.

    Args:
      f: a function of pytrees of arrays.
      args: where to compare.
      order: up to the derivatives of this order.
      modes: `"fwd"`, `"rev"`, or both, in all combinations.
      atol, rtol: how far they may be off, as a number or by dtype.
      eps: the step of the differences, 1e-4 if not given. In 32 bits, 1e-2 or 1e-3 loses less.

    Returns:
      Nothing.

    Raises:
      AssertionError: if they differ.

    >>> import perspex.numpy as pnp
    >>> check_grads(lambda x: pnp.sin(x) * x, (0.5,), order=2, eps=1e-2)
    """
    step = _EPS if eps is None else eps
    forward = functools.partial(check_jvp, atol=atol, rtol=rtol, eps=step)
    backward = functools.partial(check_vjp, atol=atol, rtol=rtol, eps=step)

    def check(f: Callable[..., Any], args: tuple[Any, ...], order: int, err_msg: str) -> None:
        if "fwd" in modes:
            name = f"JVP of {err_msg}" if err_msg else "JVP"
            forward(f, functools.partial(jvp, f), args, err_msg=name)
            if order > 1:
                check(functools.partial(jvp, f), (args, args), order - 1, name)
        if "rev" in modes:
            name = f"VJP of {err_msg}" if err_msg else "VJP"
            backward(f, functools.partial(vjp, f), args, err_msg=name)
            if order > 1:
                out, _ = vjp(f, *args)

                def pulled(*given: Any) -> Any:
                    return vjp(f, *given[:-1])[1](given[-1])

                check(pulled, (*args, out), order - 1, name)

    check(f, tuple(args), order, "")
