"""Indices into refs: which part of a ref is read or written.

An index is a param of an equation: the arrays in it are operands, and it marks their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex.errors import NonConcreteBooleanIndexError
from perspex.ir.avals import shaped
from perspex.ops import slices
from perspex.tracing import array_methods


class Slice(NamedTuple):
    """The elements `start`, `start + step` and so on before `stop`."""

    start: int
    stop: int
    step: int

    def text(self, length: int) -> str:
        first = str(self.start) if self.start else ""
        last = "" if self.stop >= length else str(self.stop)
        return f"{first}:{last}" + (f":{self.step}" if self.step != 1 else "")


class Window(NamedTuple):
    """`size` elements, `step` apart, from the place that the next of the arrays given says."""

    size: int
    step: int

    def text(self, start: str) -> str:
        return f"{start}:{start}+{self.size}" + (f":{self.step}" if self.step != 1 else "")


class Index(NamedTuple):
    """An entry for each axis: an integer, a `Slice`, a `Window`, or `None` for the next of the
    arrays given.

    Without entries it is the whole ref.
    """

    entries: tuple[int | Slice | Window | None, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it selects all elements as they are."""
        return not self.entries

    def filled(self, given: Sequence[Any]) -> tuple[Any, ...]:
        """The index as NumPy writes it."""
        arrays = iter(given)
        return tuple(
            [
                next(arrays)
                if entry is None
                else slice(*entry)
                if isinstance(entry, Slice)
                else slices.Slice(next(arrays), *entry)
                if isinstance(entry, Window)
                else entry
                for entry in self.entries
            ]
        )

    def shape(self, shape: tuple[int, ...], given: Sequence[Any]) -> tuple[int, ...]:
        """The shape of the part of an array of shape `shape`."""
        # The arrays in it may be anything: no element is looked at.
        lengths = [
            max(n, 1) if entry is None else entry.size if isinstance(entry, Window) else n
            for n, entry in zip(shape, self.entries, strict=False)
        ]
        whole = np.broadcast_to(np.int8(0), lengths or shape)
        places = self.filled([np.zeros(x.shape, int) for x in given])
        return whole[
            tuple([slice(None) if isinstance(p, slices.Slice) else p for p in places])
        ].shape

    def read(self, value: Any, given: Sequence[Any]) -> Any:
        """The part of an array."""
        return array_methods.face.getitem(value, self.filled(given))

    def write(self, value: Any, given: Sequence[Any], part: Any) -> Any:
        """An array with another part."""
        if self.is_whole:
            return part
        return self._at(value, given).set(part, mode=_mode(given))

    def add(self, value: Any, given: Sequence[Any], part: Any) -> Any:
        """An array with something added to its part."""
        return self._at(value, given).add(part, mode=_mode(given))

    def _at(self, value: Any, given: Sequence[Any]) -> Any:
        """The update of the part, in which starts of windows count from the end if negative."""
        places = [
            slices.Slice(_from_front(p.start, n), p.size, p.stride)
            if isinstance(p, slices.Slice)
            else p
            for p, n in zip(self.filled(given), value.shape, strict=True)
        ]
        return array_methods.face.at(value)[tuple(places)]

    def text(self, shape: tuple[int, ...], operands: Sequence[str]) -> str:
        """The index as it is printed; `operands` are the names of its arrays."""
        if self.is_whole:
            return "..."
        names = iter(operands)
        return ",".join(
            [
                next(names)
                if entry is None
                else entry.text(n)
                if isinstance(entry, Slice)
                else entry.text(next(names))
                if isinstance(entry, Window)
                else str(entry)
                for n, entry in zip(shape, self.entries, strict=True)
            ]
        )


WHOLE = Index(())


def _mode(given: Sequence[Any]) -> str | None:
    """As JAX: one place outside means the nearest one inside, of many those outside are dropped."""
    return "clip" if given and all(not shaped(x).shape for x in given) else None


def _from_front(start: Any, n: int) -> Any:
    return array_methods.face.where(start < 0, start + n, start)


def is_whole(idx: Any) -> bool:
    """Whether an index of the user's selects all elements as they are."""
    return idx is None or idx is Ellipsis or (idx.__class__ is tuple and not idx)


def parse(shape: tuple[int, ...], idx: Any) -> tuple[Index, list[Any]]:
    """The index and its arrays, for a ref of shape `shape`."""
    if is_whole(idx):
        return WHOLE, []
    items = list(idx) if isinstance(idx, tuple) else [idx]
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise ValueError(f"an index has at most one ellipsis, got {idx!r}")
    missing = len(shape) - (len(items) - len(places))
    if missing < 0:
        raise ValueError(
            f"`indices` must not be longer than `shape`: indices={tuple(items)}, shape={shape}"
        )
    at = places[0] if places else len(items)
    items[at : at + len(places)] = [slice(None)] * missing
    entries: list[int | Slice | Window | None] = []
    given: list[Any] = []
    for item, n in zip(items, shape, strict=True):
        if isinstance(item, slice):
            entries.append(_slice(item, n))
        elif isinstance(item, slices.Slice):
            count = slices.static_size(item)
            if item.is_dynamic_start:
                entries.append(Window(count, item.stride))
                given.append(_array(item.start))
            else:
                entries.append(_sized(int(item.start), count, item.stride, n))
        elif isinstance(item, (int, np.integer)) and not isinstance(item, bool):
            if not -n <= item < n:
                raise ValueError(f"Out of bound indexer: idx={item}, dim={n}.")
            entries.append(int(item))
        else:
            entries.append(None)
            given.append(_array(item))
    return Index(tuple(entries)), given


def _slice(item: slice, n: int) -> Slice:
    if item.step is not None and item.step < 1:
        raise ValueError(f"slice must have a step >= 1 (found: {item.step})")
    start, stop, step = item.indices(n)
    return Slice(start, max(start, stop), step)


def _sized(start: int, count: int, stride: int, n: int) -> Slice:
    if start < 0 or not stride or (count and start + (count - 1) * stride >= n):
        raise ValueError(
            f"Out of bound slice: start={start}, size={count}, stride={stride}, dim={n}."
        )
    return Slice(start, start + count * stride, stride)


def _array(item: Any) -> Any:
    if item is None:
        raise ValueError("an index into a ref adds no axes; reshape what you read")
    item = np.asarray(item) if isinstance(item, list) else item
    aval = shaped(item)
    if aval.dtype == bool:
        raise NonConcreteBooleanIndexError(
            f"Array boolean indices must be concrete; got {aval.str_short()}. "
            "Refs take no masks: use jnp.where on the value `ref[...]`."
        )
    if not np.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"an index into a ref is of integers, got {aval.str_short()}")
    return item
