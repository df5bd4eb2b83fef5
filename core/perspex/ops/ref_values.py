"""The value of a ref: who may hold it, change it, and give its memory away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.errors import ShardingTypeError
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.references import AbstractRef
from perspex.ops.ref_index import Index, Slice
from perspex.tracing import array_methods, cuts
from perspex.tracing.trace import Reference, Trace, Tracer, bottom, leaked, state


class Holder(Reference):
    """A ref with its value, unless it is `staged`.

    `home` is the trace that made it: only its values, and those of the traces around it, are held.
    """

    __slots__ = ("_is_shared", "_value", "home", "writes")
    home: Trace
    # How often it has been written, in the programs that are being written too.
    writes: int
    # Whether somebody else may hold the value, so that it must not be donated.
    _is_shared: bool
    _value: Any

    @property
    def is_here(self) -> bool:
        """Whether the ref holds its value, and no program is being written that would miss it."""
        return self.staged is None and self._writer() is None

    def _writer(self) -> Trace | None:
        """The innermost trace inside of the ref's own that writes a program."""
        trace: Any = state.trace
        while trace is not self.home and trace is not bottom():
            if trace.writes:
                found: Trace = trace
                return found
            trace = trace.parent
        return None

    def held(self) -> Any:
        """The value; raises for one that the end of a trace has taken away."""
        value = self._value
        if isinstance(value, Tracer) and not value._trace.alive:
            raise leaked(value)
        return value

    def hold(self, value: Any) -> None:
        """Let `value`, which nobody else holds, be the value."""
        self._value, self._is_shared = value, False
        self.writes += 1

    def write(self, index: Index, given: Sequence[Any], value: Any) -> None:
        """Put `value` in a part."""
        before = self.held()
        part_type("swap", self.aval, shaped(value), index, [shaped(x) for x in given])
        self.hold(index.write(before, given, value))
        if index.is_whole:
            self._is_shared = True

    def share(self) -> Any:
        """The value for somebody who may keep it."""
        self._is_shared = True
        return self.held()

    def lend(self) -> Any:
        """The value for a program that may overwrite its memory."""
        value = self.held()
        if self._is_shared:
            value = self._value = array_methods.face.array(value, copy=True)
            self._is_shared = False
        return value

    def accept(self, operation: str, *values: Any) -> None:
        """Raise `ValueError` if one of `values` belongs to a transform that does not know the ref.

        Such a value depends on what is differentiated or mapped over; the ref would carry it out.
        """
        tracers = [x for x in values if isinstance(x, Tracer)]
        if not tracers:
            return
        around: Any = self._writer() or self.home
        known = []
        while around is not None:
            known.append(around)
            around = getattr(around, "parent", None)
        for x in tracers:
            if x._trace in known:
                continue
            if not x._trace.alive:
                raise leaked(x)
            doing = getattr(x._trace, "doing", "") or "transformed"
            raise ValueError(
                f"performing {operation} operation with a value that is {doing} on an array "
                f"reference of type {self.aval} that is not {doing}. Make the ref inside the "
                f"function that is {doing}, or pass it to that function as an argument."
            )


def ref_type(operation: str, aval: Any) -> AbstractRef:
    if not isinstance(aval, AbstractRef):
        raise ValueError(f"`{operation}` must be called on `Ref` types: {aval}.")
    return aval


def part_type(
    operation: str, ref: Any, value: ShapedArray, index: Index, given: Sequence[Any]
) -> ShapedArray:
    """The type of the part of a ref to which `value` is written; raises if it does not fit."""
    part = selected(ref_type(operation, ref), index, given)
    if value.shape != part.shape:
        raise ValueError(
            f"Invalid shape for `{operation}`. Ref shape: {ref.shape}. Expected shape: "
            f"{part.shape}. Value shape: {value.shape}. Values are not broadcast: write "
            f"`jnp.broadcast_to(value, {part.shape})`."
        )
    if value.cut is not part.cut and value.cut != part.cut:
        raise ShardingTypeError(
            f"{operation}: the value has type {value.str_short()}, but the part of the ref has "
            f"{part.str_short()}: what is written must be cut as the ref is. Move the value with "
            "jax.sharding.reshard"
        )
    if value.dtype != part.dtype:
        raise ValueError(
            f"Invalid dtype for `{operation}`. Ref dtype: {part.dtype.name}. Value dtype: "
            f"{value.dtype.name}. Values are not converted: write "
            f"`value.astype({part.dtype.name!r})`."
        )
    return part


def selected(ref: AbstractRef, index: Index, given: Sequence[Any]) -> ShapedArray:
    inner = ref.inner_aval
    part = inner.update(shape=index.shape(ref.shape, given))
    if inner.cut is None or index.is_whole:
        return part
    if not all([isinstance(entry, Slice) for entry in index.entries]):
        raise TypeError(
            f"a ref that is cut along explicit axes of a mesh can only be indexed by slices, got "
            f"an index of other kinds into {ref}; read all of it with ref[...], and index that"
        )
    mesh = inner.cut.mesh
    return cuts.made("get", mesh, [inner], part, cuts.resized("get", inner, part), cuts.NO_SUMS)
