"""Collectives: what the examples of a `vmap` tell each other along the axis that it named.

    vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(xs)

Everything here takes a pytree of arrays, and one name or a tuple of names. A tuple stands for the
axes as one, counted in row-major order: the last name runs fastest.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from perspex import dtypes, tree
from perspex.arguments.arrays import aval_of
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.lax.named_axes import (
    AxisName,
    in_groups,
    is_bound,
    names_of,
    on_each,
    sizes_of,
    tracked,
)
from perspex.layout.context import get_abstract_mesh
from perspex.ops import casts, unreduced
from perspex.ops import collectives as ops
from perspex.ops.elementwise import div
from perspex.ops.reductions import reduce_max, reduce_min
from perspex.ops.structural import convert, move_axis, reduce_sum, reshape, scalar_like
from perspex.tracing import cuts
from perspex.tracing.trace import Tracer, typeof

T = TypeVar("T")

__all__ = [
    "all_gather", "all_to_all", "pbroadcast", "pmax", "pmean", "pmin", "ppermute", "pshuffle",
    "psum", "psum_scatter", "pswapaxes",
]  # fmt: skip

Groups = Sequence[Sequence[int]] | None


def _axes(what: str, names: Sequence[Any], groups: Groups) -> tuple[Sequence[Any], list[int]]:
    """The axes as params have them, and their sizes: of groups where there are some."""
    if groups is None:
        return names, sizes_of(what, names)
    axis, size = in_groups(what, names, groups)
    return (axis,), [size]


# ---- Sums and extremes --------------------------------------------------------------------------


def psum(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The sum over all examples, which each of them gets.

    Args:
      x: a pytree of arrays of numbers or booleans; booleans are counted, unless there is no axis. A
        Python number is multiplied by the size of the axis, and stays one: `psum(1, "i")` is that
        size.
      axis_name: a name or a tuple of names. An integer that names no axis is an axis of `x`, which
        is summed over as well.
      axis_index_groups: groups of places along an axis of a mesh to sum within, inside
        `shard_map(check_vma=False)` and `pmap`; everywhere for Python numbers.

    Returns:
      A pytree like `x`.

    Raises:
      NameError: for a name that no `vmap` around has given.
      NotImplementedError: for groups.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    return _reduced("psum", ops.psum, x, axis_name, axis_index_groups)


def pmean(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The mean over all examples, which each of them gets.

    Args:
      x: a pytree of arrays of numbers or booleans.

    Returns:
      A pytree like `x`; the mean of integers and booleans is a float.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([-1.,  1.], dtype=float32)
    """
    count = _reduced("pmean", ops.psum, 1, axis_name, axis_index_groups)
    total = _reduced("pmean", ops.psum, x, axis_name, axis_index_groups)

    def mean(y: Any) -> Any:
        if isinstance(y, (int, float, complex)):
            return y / count
        aval = typeof(y)
        y = convert(y, dtypes.to_inexact_dtype(aval.dtype), aval.weak_type)
        return convert(div(y, scalar_like(y, count)), typeof(y).dtype, aval.weak_type)

    return tree.map(mean, total)


def pmax(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The greatest value among all examples, element by element.

    Examples that tie share the derivative (JAX defines none).

    Args:
      x: a pytree of arrays of numbers or booleans.

    Returns:
      A pytree like `x`.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([3., 3.], dtype=float32)
    """
    return _reduced("pmax", ops.pmax, x, axis_name, axis_index_groups)


def pmin(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The least value among all examples, element by element.

    Examples that tie share the derivative (JAX defines none).

    Args:
      x: a pytree of arrays of numbers or booleans.

    Returns:
      A pytree like `x`.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([1., 1.], dtype=float32)
    """
    return _reduced("pmin", ops.pmin, x, axis_name, axis_index_groups)


def _reduced(what: str, primitive: Any, x: Any, axis_name: Any, groups: Groups) -> Any:
    names, positions = [], []
    for name in names_of(axis_name):
        if isinstance(name, int) and not is_bound(name):
            positions.append(name)
        else:
            names.append(name)
    size = math.prod(sizes_of(what, names)) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        if leaf.__class__ in (int, float, complex) and not positions:
            return leaf * size if primitive is ops.psum else leaf
        aval = aval_of(what, leaf)
        if not (names or positions):
            return leaf
        if primitive is ops.psum and aval.dtype == bool:
            leaf = convert(leaf, _COUNTS)
        if positions:
            axes = tuple([canonical_axis(at, aval.ndim, what) for at in positions])
            leaf = _POSITIONAL[primitive](leaf, axes=axes)
        if not names:
            return leaf
        if groups is not None:
            return primitive(leaf, axes=tuple(_axes(what, names, groups)[0]))
        along = tracked(names)
        if along and _is_unreduced(what, leaf, names):
            return _OF_PARTS[primitive](leaf, axes=tuple(names))
        # What no example is mapped over stays as weak as it is, as a product with their number.
        weak = aval.weak_type and not isinstance(leaf, Tracer)
        weak = weak and (primitive is ops.psum or bool(along))
        leaf = on_each(leaf, names)
        if primitive is not ops.psum or not along:
            out = primitive(leaf, axes=tuple(names))
        else:
            rest = tuple([name for name in names if name not in along])
            out = ops.psum_invariant(leaf, axes=tuple([n for n in names if n in along]))
            out = ops.psum(out, axes=rest) if rest else out
        return convert(out, typeof(out).dtype, True) if weak else out

    return tree.map(one, x)


def _is_unreduced(what: str, x: Any, names: Sequence[Any]) -> bool:
    """Whether devices along axes of a mesh hold parts of it; `ValueError` along some alone."""
    aval = typeof(x)
    if not cuts.sums(aval).unreduced.intersection(names):
        return False
    casts.check_state(what, aval, names, "unreduced")
    return True


# Booleans are counted in this dtype, also where integers have 64 bits.
_COUNTS = np.dtype("int32")
_POSITIONAL = {ops.psum: reduce_sum, ops.pmax: reduce_max, ops.pmin: reduce_min}
_OF_PARTS = {
    ops.psum: casts.unreduced_psum,
    ops.pmax: casts.unreduced_pmax,
    ops.pmin: casts.unreduced_pmin,
}


# ---- Gathering and scattering -------------------------------------------------------------------


def all_gather(
    x: T,
    axis_name: AxisName,
    *,
    axis_index_groups: Groups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> T:
    """The values of all examples, which each of them gets.

    Args:
      x: a pytree of arrays.
      axis: where the new axis of the results is, or with `tiled` the axis of `x` along which the
        values follow one another.
      tiled: concatenate instead of stacking.
      to: `"varying"`; with `"invarying"`, the type says that all devices along the axes of a mesh
        have the same; with `"reduced"`, also that the cotangent stays unreduced (`pcast`).

    Returns:
      Arrays of shape `(..., n, ...)`, or `(..., n * k, ...)` with `tiled`, for `n` examples.

    Raises:
      NameError: for a name that no `vmap` around has given.
      ValueError: for an axis that does not exist.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> vmap(lambda x: x @ lax.all_gather(x, "i"), axis_name="i")(jnp.eye(2) + 1)
    Array([[5., 4.],
           [4., 5.]], dtype=float32)
    """
    if to not in ("varying", "reduced", "invarying"):
        raise ValueError(
            f"all_gather: `to` must be 'varying', 'invarying' or 'reduced', got {to!r}"
        )
    given = names_of(axis_name)
    names, sizes = _axes("all_gather", given, axis_index_groups)
    special = tracked(given) if to != "varying" else ()
    more: dict[str, Any] = {}
    gather: Any = ops.all_gather_invariant
    if to == "reduced":
        gather, more = unreduced.all_gather_reduced, {"mesh": get_abstract_mesh()}

    def one(leaf: Any) -> Any:
        ndim = aval_of("all_gather", leaf).ndim
        if to != "reduced":
            leaf = on_each(leaf, given)
        at = canonical_axis(axis, ndim if tiled else ndim + 1, "all_gather")
        merge = tiled
        for name, size in zip(reversed(names), reversed(sizes), strict=True):
            params = {"axis_size": size, "all_gather_dimension": at, "tiled": merge}
            if name in special:
                leaf = gather(leaf, axis_name=(name,), **params, **more)
            else:
                leaf = ops.all_gather(leaf, axis_name=(name,), **params)
            merge = True
        return leaf

    return tree.map(one, x)


def psum_scatter(
    x: T,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> T:
    """The sum over all examples, of which example `j` gets part `j`.

    Args:
      x: a pytree of arrays of numbers.
      scatter_dimension: the axis of `x` that is divided among the examples. Its length is their
        number, and the axis disappears; with `tiled` it is a multiple, and each gets a piece.
      tiled: see `scatter_dimension`.

    Returns:
      A pytree like `x`; each array without the axis `scatter_dimension`, or with a piece of it.

    Raises:
      ValueError: for an axis that does not exist or does not divide.
      NameError: for a name that no `vmap` around has given.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> x = jnp.array([[1.0, 2.0], [10.0, 20.0]])
    >>> vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(x)
    Array([11., 22.], dtype=float32)
    """
    given = names_of(axis_name)
    names, sizes = _axes("psum_scatter", given, axis_index_groups)

    def one(leaf: Any) -> Any:
        aval = aval_of("psum_scatter", leaf)
        at = canonical_axis(scatter_dimension, aval.ndim, "psum_scatter")
        _check_divides("psum_scatter", "scatter_dimension", aval.shape, at, names, sizes, tiled)
        if aval.dtype == bool:
            leaf = convert(leaf, _COUNTS)
        scatter: Any = ops.reduce_scatter
        if tracked(given) and _is_unreduced("psum_scatter", leaf, given):
            scatter = unreduced.unreduced_reduce_scatter
        else:
            leaf = on_each(leaf, given)
        for i, (name, size) in enumerate(zip(names, sizes, strict=True)):
            leaf = scatter(
                leaf,
                axis_name=(name,),
                axis_size=size,
                scatter_dimension=at,
                tiled=tiled or i + 1 < len(names),
            )
        return leaf

    return tree.map(one, x)


def _check_divides(
    what: str,
    argument: str,
    shape: tuple[int, ...],
    at: int,
    names: Sequence[AxisName],
    sizes: Sequence[int],
    tiled: bool,
) -> None:
    """Raise `ValueError` unless axis `at` of `shape` can be divided among all examples."""
    size = math.prod(sizes)
    if shape[at] == size or (tiled and shape[at] % size == 0):
        return
    axis = f"the named axis {names[0]!r}" if len(names) == 1 else f"the named axes {tuple(names)}"
    relation = "a multiple of" if tiled else "equal to"
    remedy = "" if tiled else "; `tiled=True` divides an axis whose length is a multiple"
    raise ValueError(
        f"{what}: the length of {argument}={at} of an array of shape {shape} must be {relation} "
        f"the size of {axis}, but they are {shape[at]} and {size}{remedy}"
    )


# ---- Exchange -----------------------------------------------------------------------------------


def all_to_all(
    x: T,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> T:
    """Every example sends one part of its value to each other one: a transposition.

    Args:
      x: a pytree of arrays.
      split_axis: the axis of `x` that is divided among the receivers. Its length is their number,
        or with `tiled` a multiple of it.
      concat_axis: where the received parts are stacked, or with `tiled` the axis along which they
        are concatenated.
      tiled: divide and concatenate, instead of removing one axis and inserting another.

    Returns:
      A pytree like `x`.

    Raises:
      ValueError: for an axis that does not exist or does not divide.
      NameError: for a name that no `vmap` around has given.
      NotImplementedError: for `axis_index_groups` along anything but one axis of a mesh.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.arange(4).reshape(2, 2))
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    given = names_of(axis_name)
    names, sizes = _axes("all_to_all", given, axis_index_groups)

    def one(leaf: Any) -> Any:
        aval = aval_of("all_to_all", leaf)
        split = canonical_axis(split_axis, aval.ndim, "all_to_all")
        concat = canonical_axis(concat_axis, aval.ndim, "all_to_all")
        _check_divides("all_to_all", "split_axis", aval.shape, split, names, sizes, tiled)
        leaf = on_each(leaf, given)
        if len(names) == 1:
            return ops.all_to_all(
                leaf,
                axis_name=names[0],
                axis_size=sizes[0],
                split_axis=split,
                concat_axis=concat,
                tiled=tiled,
            )
        return _exchanged(leaf, aval.shape, names, sizes, split, concat, tiled)

    return tree.map(one, x)


def _exchanged(
    x: Any,
    shape: tuple[int, ...],
    names: Sequence[AxisName],
    sizes: Sequence[int],
    split: int,
    concat: int,
    tiled: bool,
) -> Any:
    """`all_to_all` along several named axes: the split axis is as many axes, one for each name."""
    size = math.prod(sizes)
    piece = [shape[split] // size] if tiled else []
    x = reshape(x, new_sizes=(*shape[:split], *sizes, *piece, *shape[split + 1 :]))
    for i, (name, n) in enumerate(zip(names, sizes, strict=True)):
        # The axes that have arrived are in front of the others.
        x = ops.all_to_all(
            x, axis_name=name, axis_size=n, split_axis=split + i, concat_axis=i, tiled=False
        )
    rest = typeof(x).shape[len(names) :]
    x = move_axis(reshape(x, new_sizes=(size, *rest)), 0, concat)
    if not tiled:
        return x
    return reshape(x, new_sizes=(*rest[:concat], size * rest[concat], *rest[concat + 1 :]))


def ppermute(x: T, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> T:
    """Examples send their values to one another, each to at most one.

    Args:
      x: a pytree of arrays.
      perm: pairs `(source, destination)` of numbers of examples, in which none occurs twice on one
        side. An example that is nobody's destination gets zeros. Along several axes of a mesh,
        devices are counted in the order of the names, the last one fastest.

    Returns:
      A pytree like `x`.

    Raises:
      ValueError: for pairs that are not as described.
      NameError: for a name that no `vmap` around has given.
      NotImplementedError: for several names, if a `vmap` has given one of them.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> shift = [(0, 1), (1, 2)]
    >>> vmap(lambda x: lax.ppermute(x, "i", shift), axis_name="i")(jnp.array([1.0, 2.0, 3.0]))
    Array([0., 1., 2.], dtype=float32)
    """
    names = names_of(axis_name)
    size = math.prod(sizes_of("ppermute", names))
    pairs = tuple([(operator.index(src), operator.index(dst)) for src, dst in perm])
    for side, which in (("source", 0), ("destination", 1)):
        found = [pair[which] for pair in pairs]
        if len(set(found)) != len(found) or any(not 0 <= i < size for i in found):
            raise ValueError(
                f"ppermute: every {side} in perm must be a different number below {size}, the size "
                f"of {' times '.join(map(repr, names))}, got {found}"
            )
    return tree.map(
        lambda leaf: ops.ppermute(on_each(leaf, names), axis_name=tuple(names), perm=pairs), x
    )


def _single(what: str, axis_name: Any) -> tuple[AxisName, int]:
    names = names_of(axis_name)
    if len(names) != 1:
        raise NotImplementedError(
            f"{what} runs along one named axis, got {names}; map over one axis of the product of "
            "their sizes"
        )
    return names[0], sizes_of(what, names)[0]


def pshuffle(x: T, axis_name: AxisName, perm: Sequence[int]) -> T:
    """Example `j` gets the value of example `perm[j]`.

    Args:
      x: a pytree of arrays.
      perm: a permutation of the numbers of the examples.

    Returns:
      A pytree like `x`.

    Raises:
      ValueError: if `perm` is not a permutation of the numbers of the examples.
      NameError: for a name that no `vmap` around has given.
      NotImplementedError: for several names, if a `vmap` has given one of them.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pshuffle(x, "i", [2, 1, 0]), axis_name="i")(jnp.arange(3))
    Array([2, 1, 0], dtype=int32)
    """
    if sorted(perm) != list(range(len(perm))):
        raise ValueError(f"pshuffle: `perm` does not represent a permutation: {list(perm)}")
    size = math.prod(sizes_of("pshuffle", names_of(axis_name)))
    if len(perm) != size:
        raise ValueError(
            f"pshuffle: `perm` has {len(perm)} entries, but the named axis has size {size}"
        )
    return ppermute(x, axis_name, [(src, dst) for dst, src in enumerate(perm)])


def pswapaxes(x: T, axis_name: AxisName, axis: int, *, axis_index_groups: Groups = None) -> T:
    """Exchange the named axis with an axis of `x`, which has the same length.

    Args:
      x: a pytree of arrays.
      axis: an axis of `x`.

    Returns:
      A pytree like `x`.

    Raises:
      ValueError: if the axis does not exist or has another length than the named axis.
      NameError: for a name that no `vmap` around has given.
      NotImplementedError: for `axis_index_groups`.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.arange(4).reshape(2, 2))
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: T, axis_name: AxisName, source: int) -> T:
    """The value of one example, which all of them get.

    Args:
      x: a pytree of arrays.
      source: the number of the example.

    Returns:
      A pytree like `x`.

    Raises:
      ValueError: if `source` is not the number of an example.
      NameError: for a name that no `vmap` around has given.

    >>> from perspex import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3) * 10)
    Array([10, 10, 10], dtype=int32)
    """
    name, size = _single("pbroadcast", axis_name)
    source = operator.index(source)
    if not 0 <= source < size:
        raise ValueError(
            f"pbroadcast: source={source} is no example of the named axis {name!r} of size {size}"
        )
    return tree.map(
        lambda leaf: ops.pbroadcast(on_each(leaf, [name]), axis_name=name, source=source), x
    )


describe(
    (pmean, pmax, pmin),
    {
        "axis_name": "a name or a tuple of names. An integer that names no axis is an axis of\n"
        "`x`, which is reduced as well.",
        "axis_index_groups": "groups of examples to reduce within; only for Python numbers.",
    },
    "NameError: for a name that no `vmap` around has given.\n"
    "NotImplementedError: for `axis_index_groups` with arrays.",
)
describe(
    (all_gather, psum_scatter, all_to_all, pswapaxes),
    {
        "axis_name": "a name, or a tuple of names.",
        "axis_index_groups": "must be `None` inside `vmap`.",
    },
)
describe((ppermute, pshuffle, pbroadcast), {"axis_name": "a name."})
