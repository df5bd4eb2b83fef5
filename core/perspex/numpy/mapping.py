"""Functions of parts of arrays made functions of arrays: `apply_along_axis` and `vectorize`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from perspex.api.mapping import vmap
from perspex.arguments.arrays import arraylike, check_arraylike, expand
from perspex.arguments.axes import canonical_axis
from perspex.arguments.shapes import common_shape
from perspex.arguments.types import Array, ArrayLike
from perspex.numpy.axes import squeeze
from perspex.numpy.creation import asarray

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """A function of vectors applied to all vectors along an axis.

    Args:
      func1d: a function of a vector; the axes of its result take the place of the axis.
      axis: the axis.
      arr: an array of one axis or more.
      args, kwargs: further arguments of the function.

    Returns:
      An array with the axes of the result in the place of the axis.

    Raises:
      TypeError: if `arr` is not an array.
      ValueError: for an axis that is not there.

    >>> import perspex.numpy as jnp
    >>> jnp.apply_along_axis(jnp.sum, 1, jnp.arange(6).reshape(2, 3))
    Array([ 3, 12], dtype=int32)
    """
    x = arraylike("apply_along_axis", arr)
    axis = canonical_axis(axis, x.ndim)

    def mapped(vector: Any) -> Any:
        return func1d(vector, *args, **kwargs)

    for behind in range(1, x.ndim - axis):
        mapped = vmap(mapped, in_axes=behind, out_axes=-1)
    for _ in range(axis):
        mapped = vmap(mapped, in_axes=0, out_axes=0)
    return mapped(x)


def apply_over_axes(
    func: Callable[[Array, int], Array], a: ArrayLike, axes: Sequence[int]
) -> Array:
    """A function applied along one axis after another; an axis that it takes away is put back.

    Args:
      func: a function of an array and an axis, for example `jnp.sum`.
      a: an array of one axis or more.
      axes: the axes.

    Returns:
      An array with as many axes as `a`.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for an axis that is not there, and a function that takes away more than one.

    >>> import perspex.numpy as jnp
    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])
    Array([[6.]], dtype=float32)
    """
    x = arraylike("apply_over_axes", a)
    for axis in axes:
        d = canonical_axis(axis, x.ndim)
        out = func(x, d)
        if out.ndim == x.ndim - 1:
            out = expand(out, (d,))
        if out.ndim != x.ndim:
            raise ValueError(
                f"apply_over_axes: the function made {out.ndim} axes of {x.ndim}; it must keep "
                "them, or take one away"
            )
        x = out
    return x


# ---- vectorize ----------------------------------------------------------------------------------

_NAME = r"\w+"
_CORE = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_SIGNATURE = re.compile(rf"^(?:{_CORE}(?:,{_CORE})*)?->{_CORE}(?:,{_CORE})*$")
Core = tuple[str, ...]


def _parse(signature: str) -> tuple[list[Core], list[Core]]:
    """The names of the axes of arguments and results."""
    text = re.sub(r"\s+", "", signature)
    if not _SIGNATURE.match(text):
        raise ValueError(
            f"vectorize: not a valid signature: {signature!r}; write it as '(n,m),(m)->(n)'"
        )
    sides = text.split("->")
    found = [[tuple(re.findall(_NAME, core)) for core in re.findall(_CORE, side)] for side in sides]
    return found[0], found[1]


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function of scalars as a function of arrays, which are broadcast.

    Args:
      pyfunc: the function.
      excluded: arguments, by position or name, that are passed on as they are.
      signature: the axes that the function itself works on, as in `"(n,m),(m)->(n)"`; the axes in
        front of them are broadcast.

    Returns:
      A function of arrays. It raises `ValueError` or `TypeError` for arguments that do not fit.

    Raises:
      TypeError: if `excluded` holds other things than positions and names.
      ValueError: for a wrong signature.

    >>> import perspex.numpy as jnp
    >>> f = jnp.vectorize(jnp.vdot, signature="(n),(n)->()")
    >>> f(jnp.ones((2, 3)), jnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    if not all(isinstance(e, (int, str)) for e in excluded):
        raise TypeError(f"vectorize: excluded must hold positions and names, got {excluded!r}")
    left_out = frozenset(excluded)
    cores = None if signature is None else _parse(signature)

    @functools.wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        names = {k for k in kwargs if k not in left_out}
        if names:
            raise TypeError(
                f"vectorize: arguments by name are passed on only if excluded, got {sorted(names)}"
            )
        places = [i for i in range(len(args)) if i not in left_out]
        check_arraylike("vectorize", *[args[i] for i in places])
        arrays = [asarray(args[i]) for i in places]

        def call(*given: Any) -> Any:
            whole = list(args)
            for i, x in zip(places, given, strict=True):
                whole[i] = x
            return pyfunc(*whole, **kwargs)

        inputs, outputs = ([()] * len(arrays), None) if cores is None else cores
        if len(inputs) != len(arrays):
            raise TypeError(
                f"vectorize: wrong number of positional arguments: expected {len(inputs)}, got "
                f"{len(arrays)}"
            )
        return _mapped(call, arrays, inputs, outputs, signature)

    return wrapped


def _mapped(
    call: Callable[..., Any],
    arrays: Sequence[Any],
    inputs: Sequence[Core],
    outputs: Sequence[Core] | None,
    signature: str | None,
) -> Any:
    """The function mapped over the axes in front of those of the signature."""
    sizes: dict[str, int] = {}
    for x, core in zip(arrays, inputs, strict=True):
        if x.ndim < len(core):
            raise ValueError(
                f"vectorize: input with shape {x.shape} does not have enough dimensions for the "
                f"axes {core} of signature {signature!r}"
            )
        _note_sizes(sizes, core, x.shape[x.ndim - len(core) :], signature)
    loops = [x.shape[: x.ndim - len(core)] for x, core in zip(arrays, inputs, strict=True)]
    full = common_shape(*loops)

    def checked(*given: Any) -> Any:
        out = call(*given)
        if outputs is not None:
            results = out if isinstance(out, tuple) else (out,)
            if len(results) != len(outputs):
                raise TypeError(
                    f"vectorize: wrong number of results: expected {len(outputs)} by signature "
                    f"{signature!r}, got {len(results)}"
                )
            for y, core in zip(results, outputs, strict=True):
                if np.ndim(y) != len(core):
                    raise ValueError(
                        f"vectorize: result of shape {np.shape(y)} does not have the axes {core} "
                        f"of signature {signature!r}"
                    )
                _note_sizes(dict(sizes), core, np.shape(y), signature)
        return out

    mapped = checked
    squeezed = []
    for x, loop in zip(arrays, loops, strict=True):
        # Axes of size one that others are spread over are no axes to map over.
        skip = len(full) - len(loop)
        alone = tuple([d for d, n in enumerate(loop) if n == 1 and full[d + skip] != 1])
        squeezed.append(squeeze(x, alone) if alone else x)
    for d in reversed(range(len(full))):
        axes = []
        for loop in loops:
            at = d - (len(full) - len(loop))
            held = at >= 0 and (loop[at] != 1 or full[d] == 1)
            axes.append(0 if held else None)
        if any(a is not None for a in axes):
            mapped = vmap(mapped, in_axes=tuple(axes))
    return mapped(*squeezed)


def _note_sizes(
    sizes: dict[str, int], core: Core, shape: tuple[int, ...], signature: str | None
) -> None:
    for name, n in zip(core, shape, strict=True):
        if sizes.setdefault(name, n) != n:
            raise ValueError(
                f"vectorize: inconsistent size for core dimension {name!r}: {n} vs {sizes[name]} "
                f"in signature {signature!r}"
            )
