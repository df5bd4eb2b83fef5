"""`x.at[index].set(y)` and its kin: new arrays with some elements updated.

What happens is what `x[index] = y` would do, with two differences: updates outside are dropped, and
where several updates meet one element all of them count (for `set`, one of them stands).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex.arguments.glossary import describe
from perspex.arguments.sharded import OutSharding, decided
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy import words
from perspex.numpy.creation import asarray
from perspex.numpy.indexing.parse import Index, Point, grow, parse, whole
from perspex.numpy.indexing.read import PROMISED, evaluate, read, restored
from perspex.numpy.indexing.take import fill
from perspex.numpy.indexing.windows import is_advanced, is_inside
from perspex.numpy.indexing.write import (
    OPERATIONS,
    Options,
    applied,
    check_cast,
    masked,
    update_program,
    updated,
)
from perspex.ops.windows import GatherScatterMode
from perspex.runtime.dispatch import EVAL
from perspex.tracing.array_methods import is_operand
from perspex.tracing.trace import is_concrete, state

__all__ = ["at"]


def at(x: Array) -> _IndexUpdateHelper:
    """The updates of an array: what `x.at` is.

    Args:
      x: an array.

    Returns:
      An object to index; `at(x)[index]` has the methods `set`, `add`, `multiply`, `divide`,
      `power`, `min`, `max`, `apply` and `get`, which return new arrays.

    Raises:
      ValueError: from the methods, for values that do not fit; and what `x[index]` raises.

    >>> import perspex.numpy as jnp
    >>> jnp.zeros(3).at[1].set(5)
    Array([0., 5., 0.], dtype=float32)
    """
    return _IndexUpdateHelper(x)


class _IndexUpdateHelper:
    """`x.at`, waiting for an index."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> _IndexUpdateRef:
        return _IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


def _method(operation: str, summary: str, example: str) -> Callable[..., Any]:
    """The method for one operation; integers that are inside have a program of their own."""

    def update(
        self: Any,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
        out_sharding: OutSharding = None,
    ) -> Array:
        if out_sharding is not None:
            keywords = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)

            arrays, indexed = _arrays_of(self.index)

            def whole_update(x: Any, values: Any, *given: Any) -> Any:
                return update(_IndexUpdateRef(x, indexed(given)), values, **_named(keywords))

            return decided(out_sharding, whole_update, self.array, values, *arrays)
        x, index = self.array, self.index
        if not is_operand(values):
            values = asarray(values)
        check_cast(x, values)
        eager = state.trace is EVAL
        if eager and index.__class__ is int and mode is None and wrap_negative_indices:
            shape = x.shape
            if shape and -shape[0] <= index < shape[0]:
                return update_row.fast(x, index, values)
        one = not np.ndim(values)
        if eager and one and is_mask(index) and index.shape == x.shape[: index.ndim]:
            return masked(x, index, values, operation)
        parsed = parse(index, x.shape)
        options = Options(
            operation,
            GatherScatterMode.from_any(mode),
            wrap_negative_indices,
            bool(unique_indices),
            bool(indices_are_sorted),
            is_inside(parsed, grow(x.shape, parsed.grown), wrap_negative_indices),
        )
        if eager:
            return evaluate(update_program, x, parsed, values, options)
        return updated(x, parsed, values, options)

    def row(x: Any, place: Any, values: Any) -> Any:
        index = Index((Point(place), *whole(x.shape[1:])))
        return updated(x, index, values, Options(operation, inside=True))

    row.__name__ = f"{operation}_row"
    update_row: Any = fused(row)
    update.__name__, update.__qualname__ = operation, f"_IndexUpdateRef.{operation}"
    # Its frames too: errors and the names of programs are read from the stack.
    update.__code__ = update.__code__.replace(co_name=operation, co_qualname=update.__qualname__)
    update.__doc__ = f"""{summary}

        Args:
          values: what broadcasts to the shape of `x[index]`; converted to the dtype of `x`.

        Returns:
          An array of the shape of `x`.

        >>> import perspex.numpy as jnp
        {example}
        """
    return update


class _IndexUpdateRef:
    """`x.at[index]`, waiting for what to do there."""

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    set = _method(
        "set",
        "The array with `values` in that place, converted to its dtype.",
        """>>> jnp.arange(4).at[1:3].set(7)
        Array([0, 7, 7, 3], dtype=int32)""",
    )
    add = _method(
        "add",
        "The array with `values` added there.",
        """>>> jnp.zeros(3).at[jnp.array([0, 2, 2])].add(1)
        Array([1., 0., 2.], dtype=float32)""",
    )
    subtract = _method(
        "subtract",
        "The array with `values` subtracted there.",
        """>>> jnp.arange(3).at[0].subtract(5)
        Array([-5,  1,  2], dtype=int32)""",
    )
    multiply = mul = _method(
        "multiply",
        "The array with the elements there multiplied by `values`.",
        """>>> jnp.arange(3).at[1:].multiply(10)
        Array([ 0, 10, 20], dtype=int32)""",
    )
    divide = _method(
        "divide",
        "The array, as floats, with the elements there divided by `values`.",
        """>>> jnp.arange(3).at[1].divide(4)
        Array([0.  , 0.25, 2.  ], dtype=float32)""",
    )
    power = _method(
        "power",
        "The array with the elements there raised to the power `values`.",
        """>>> jnp.arange(4).at[2:].power(2)
        Array([0, 1, 4, 9], dtype=int32)""",
    )
    min = _method(
        "min",
        "The array with the lesser of the elements and `values` there.",
        """>>> jnp.arange(4).at[1:].min(2)
        Array([0, 1, 2, 2], dtype=int32)""",
    )
    max = _method(
        "max",
        "The array with the greater of the elements and `values` there.",
        """>>> jnp.arange(4).at[:2].max(1)
        Array([1, 1, 2, 3], dtype=int32)""",
    )

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: ArrayLike | None = None,
        wrap_negative_indices: bool = True,
        out_sharding: OutSharding = None,
    ) -> Array:
        """Read `x[index]`, with a choice of what happens outside.

        Args:
          mode: `"fill"` (or `"drop"`) reads `fill_value` outside; `"clip"` and the default the
            nearest element.

        Returns:
          An array of the dtype of `x`.

        Raises:
          ValueError: for unknown modes; and what `x[index]` raises.

        >>> import perspex.numpy as jnp
        >>> jnp.arange(3).at[5].get(mode="fill", fill_value=-1)
        Array(-1, dtype=int32)
        """
        if out_sharding is not None:
            keywords = _named((indices_are_sorted, unique_indices, mode, wrap_negative_indices))
            keywords["fill_value"] = fill_value
            arrays, indexed = _arrays_of(self.index)
            read = functools.partial(_got, indexed=indexed, keywords=keywords)
            return decided(out_sharding, read, self.array, *arrays)
        how = PROMISED if mode is None else GatherScatterMode.from_any(mode)
        promises = (bool(unique_indices), bool(indices_are_sorted))
        options = (how, fill(fill_value), wrap_negative_indices, promises)
        parsed = parse(self.index, self.array.shape)
        if state.trace is EVAL:
            return evaluate(_get, self.array, parsed, options)
        return _read_with(self.array, parsed, options)

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Replace each element there by `func` of it.

        Where an array of integers names an element twice, `func` is applied twice. That has no
        derivative; promise `unique_indices` if it does not happen.

        Args:
          func: takes and returns an array, element by element.

        Returns:
          An array of the shape and dtype of `x`.

        Raises:
          TypeError: if `func` changes the shape.
          NotImplementedError: if `func` closes over arrays and the index may name an element twice.

        >>> import perspex.numpy as jnp
        >>> jnp.arange(3.0).at[1:].apply(jnp.square)
        Array([0., 1., 4.], dtype=float32)
        """
        keywords: dict[str, Any] = {
            "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices,
            "mode": mode,
            "wrap_negative_indices": wrap_negative_indices,
        }
        parsed = parse(self.index, self.array.shape)
        if is_advanced(parsed) and not unique_indices and not is_mask(self.index):
            how = GatherScatterMode.from_any(mode)
            return applied(self.array, parsed, func, how, wrap_negative_indices)
        old = self.get(**keywords)
        new = func(old)
        if np.shape(new) != old.shape:
            raise TypeError(
                f"apply: the function must work element by element, but it made an array of shape "
                f"{np.shape(new)} of one of shape {old.shape}"
            )
        return self.set(new, **keywords)


def _named(keywords: tuple[Any, ...]) -> dict[str, Any]:
    names = "indices_are_sorted", "unique_indices", "mode", "wrap_negative_indices"
    return dict(zip(names, keywords, strict=True))


def _got(x: Any, *given: Any, indexed: Callable[[Any], Any], keywords: dict[str, Any]) -> Any:
    return _IndexUpdateRef(x, indexed(given)).get(**keywords)


def _arrays_of(index: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """The arrays in an index, whose types may say how they are cut, and the index with others."""
    items = list(index) if isinstance(index, tuple) else [index]
    places = [i for i, item in enumerate(items) if isinstance(item, Array)]

    def indexed(given: Any) -> Any:
        found = dict(zip(places, given, strict=True))
        made = [found.get(i, item) for i, item in enumerate(items)]
        return tuple(made) if isinstance(index, tuple) else made[0]

    return [items[i] for i in places], indexed


describe(
    [getattr(_IndexUpdateRef, name) for name in (*OPERATIONS, "apply", "get")],
    {
        **words.INDEXED,
        **words.LIES,
        "mode": 'what happens outside: nothing by default, also called `"drop"` and `"fill"`;\n'
        '`"clip"` updates the nearest element, `"promise_in_bounds"` leaves it open.',
    },
    "ValueError: for values that do not broadcast, for unknown modes, and what `x[index]` raises.",
)


def is_mask(index: Any) -> bool:
    """Whether an index is one concrete array of booleans."""
    array = hasattr(index, "dtype") and is_concrete(index)
    return array and index.dtype == bool and index.ndim > 0


@fused(static=("options", "pattern"))
def _get(x: Any, places: Any, options: Any, pattern: Any) -> Any:
    return _read_with(x, restored(places, pattern), options)


def _read_with(x: Any, index: Index, options: Any) -> Any:
    mode, fill_value, wrap, (unique, is_sorted) = options
    return read(
        x, index, mode, fill_value, wrap, unique_indices=unique, indices_are_sorted=is_sorted
    )
