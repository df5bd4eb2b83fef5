"""Symbolic shapes for users: `symbolic_shape` and `symbolic_args_specs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex import dtypes, tree
from perspex.api.shapes import ShapeDtypeStruct
from perspex.base.dimensions import Symbolic, size
from perspex.export.expressions import bounds_of
from perspex.export.parsing import parse
from perspex.export.scopes import SymbolicScope
from perspex.ir.avals import shaped


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is symbolic.

    Args:
      p: anything.

    Returns:
      A boolean.

    Raises:
      Nothing.

    >>> from perspex import export
    >>> [export.is_symbolic_dim(n) for n in export.symbolic_shape("a, 2")]
    [True, False]
    """
    return isinstance(p, Symbolic)


def symbolic_dim_bounds(dimension: Any) -> tuple[float, float]:
    """Bounds of a size, which need not be the tightest ones.

    Args:
      dimension: an integer or a symbolic dimension.

    Returns:
      The least and the greatest value, infinite where nothing is known.

    Raises:
      TypeError: for anything else.

    >>> from perspex import export
    >>> (a,) = export.symbolic_shape("a", constraints=["a <= 8"])
    >>> export.symbolic_dim_bounds(2 * a + 1)
    (3, 17)
    """
    return bounds_of(size(dimension))


def _scope(scope: SymbolicScope | None, constraints: Sequence[str]) -> SymbolicScope:
    if scope is not None and constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return SymbolicScope(constraints) if scope is None else scope


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """The shape that a text describes, with a symbolic dimension for each name.

    Args:
      shape_spec: sizes with commas between them. A size is an integer, a name, or made of these by
        `+`, `-`, `*`, `floordiv(e1, e2)`, `mod(e1, e2)`, `max(e1, e2)` and `min(e1, e2)`. `_`
        stands for the size of `like` there and `...`, at the end, for the rest; `None` is `...`.
      constraints: what is known of the names: texts such as `"a >= 2*b"`, `"a <= 8"` or
        `"mod(a, 4) == 0"`.
      scope: the scope of other symbolic dimensions, to combine them with these.
      like: a shape for `_` and `...`.

    Returns:
      A tuple of integers and symbolic dimensions.

    Raises:
      ValueError: for a text that is no shape or does not match `like`, or for both a scope and
        constraints.

    >>> from perspex import export
    >>> a, b = export.symbolic_shape("a, 2*a + 1")
    >>> a + b
    3*a + 1
    >>> export.symbolic_shape("n, ...", like=(2, 3, 4))
    (n, 3, 4)
    """
    if shape_spec is not None and not isinstance(shape_spec, str):
        raise ValueError(
            f"polymorphic shape spec should be None or a string. Found {shape_spec!r}; write "
            'symbolic_shape("a, 2")'
        )
    text = "..." if shape_spec is None else shape_spec
    return parse(text, _scope(scope, constraints), like)


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """The types of arguments with symbolic shapes, for `export`.

    Args:
      args: a pytree of arrays or `ShapeDtypeStruct`s, which have the dtypes.
      shapes_specs: texts as for `symbolic_shape`, in a prefix of the tree of `args`. One text is
        for all arguments; `None` keeps shapes.
      constraints, scope: as for `symbolic_shape`.

    Returns:
      A tree like `args` of `ShapeDtypeStruct`s.

    Raises:
      ValueError: for a tree that is no prefix of that of `args`, or a text that is no shape.

    >>> import numpy as np
    >>> from perspex import export
    >>> export.symbolic_args_specs((np.ones((3, 2)), np.ones(3)), ("n, _", "n"))
    (ShapeDtypeStruct(shape=(n, 2), dtype=float32), ShapeDtypeStruct(shape=(n,), dtype=float32))
    """
    found = _scope(scope, constraints)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    leaves, structure = tree.flatten(args)
    texts = tree.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    specs = []
    for leaf, text in zip(leaves, texts, strict=True):
        known = leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else shaped(leaf)
        shape = symbolic_shape(text, scope=found, like=known.shape)
        dtype = known.dtype if hasattr(known, "aval") else dtypes.canonicalize_dtype(known.dtype)
        specs.append(ShapeDtypeStruct(shape, dtype))
    return tree.unflatten(structure, specs)
