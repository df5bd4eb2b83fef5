"""Checks as results: a program that raises exceptions becomes one that returns what failed.

While a `Checks` trace is current, each operation is its rule `checked`, under the trace below. The
rule computes the results, and tells the trace what may have failed: a division by zero, an index
out of bounds. The trace keeps what failed first, as arrays. Loops, branches and calls take these
arrays in, and give them back: `checked_program` makes the programs for that.

>>> from perspex.experimental import checkify
>>> import perspex
>>> f = checkify.checkify(lambda x: 1 / x, checkify.div_checks)
>>> perspex.make_jaxpr(f)(2.0)
{ lambda ; a:f32[]. let
    b:bool[] = eq a 0.0:f32[]
    c:f32[] = div 1.0:f32[] a
  in (b, 0:i32[], c) }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.collectives import varying
from perspex.ops.dynamic import dynamic_slice
from perspex.ops.elementwise import add, bitwise_or, eq, gt, lt, ne, rem, select
from perspex.ops.reductions import argmax, reduce_or
from perspex.ops.shape import concatenate
from perspex.ops.structural import broadcast_in_dim, convert, reshape, scalar_like
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import state, typeof, under
from perspex.transforms.failures import (
    Cause,
    DivisionByZeroError,
    Entry,
    JaxException,
    NaNError,
    OOBError,
    Slot,
    empty,
)
from perspex.transforms.higher_order import rearranged
from perspex.transforms.programs import by_program, cut, program
from perspex.transforms.trace import TransformTrace

Kinds = frozenset[type[JaxException]]
_INT32 = np.dtype("int32")
_BOOL = np.dtype("bool")
# Where an index is out of bounds: the index, the axis, and how long that is.
_PLACE = Slot(OOBError, (ShapedArray((3,), _INT32),))


class Place(NamedTuple):
    """A slot among the arguments or the results of a program.

    `shape` is that of a batch, and `vma` says along which axes of a mesh the arrays vary.
    """

    slot: Slot
    shape: tuple[int, ...]
    vma: frozenset[str]

    @property
    def avals(self) -> list[ShapedArray]:
        """The types of the arrays."""
        types = [ShapedArray((), _BOOL), ShapedArray((), _INT32), *self.slot.types]
        return [
            ShapedArray(self.shape + aval.shape, aval.dtype).update(vma=self.vma) for aval in types
        ]


Layout = tuple[Place, ...]


class Checks(TransformTrace):
    """Keeps what failed: `entries` by slots, and the `causes` that their codes stand for.

    Only checks whose kind is `enabled` count. `next_code` is that of the next check, and so its
    place in the program.
    """

    __slots__ = ("causes", "enabled", "entries", "next_code")

    def __init__(self, enabled: Kinds, next_code: int = 0) -> None:
        super().__init__()
        self.enabled = enabled
        self.next_code = next_code
        self.entries: dict[Slot, Entry] = {}
        self.causes: dict[int, Cause] = {}

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.below(primitive.checked, (self, *args), params)

    # ---- For first-order operations -------------------------------------------------------------

    def fails(self, pred: Any, slot: Slot, details: tuple[Any, ...] = (), *payload: Any) -> None:
        """Take note of a check that fails if `pred` is true, with these numbers for its message."""
        code = self.next_code
        self.next_code += 1
        self.causes[code] = Cause(slot.kind, state.source, details)
        self.add(slot, Entry(pred, np.int32(code), payload))

    def add(self, slot: Slot, new: Entry) -> None:
        """Put what failed in its slot, unless something before it did."""
        old = self.entries.get(slot)
        if old is not None:
            new = _first_of(old, new, slot)
        self.entries[slot] = new

    def absorb(self, entries: dict[Slot, Entry], causes: dict[int, Cause]) -> None:
        """Take note of what failed elsewhere, where codes begin at 0."""
        first = self.next_code
        self.next_code += max(causes, default=-1) + 1
        self.causes.update({first + code: cause for code, cause in causes.items()})
        for slot, entry in entries.items():
            if slot.kind in self.enabled:
                code = add(entry.code, np.int32(first)) if first else entry.code
                self.add(slot, entry._replace(code=code))

    def nans(self, primitive: Primitive, outs: Sequence[Any]) -> None:
        """Check that the results of an operation are numbers."""
        if NaNError not in self.enabled:
            return
        found = [_any(ne(x, x)) for x in outs if dtypes.issubdtype(typeof(x).dtype, np.inexact)]
        if found:
            pred = found[0]
            for other in found[1:]:
                pred = bitwise_or(pred, other)
            self.fails(pred, Slot(NaNError), (primitive.name,))

    def divides(self, y: Any) -> None:
        """Check that no divisor is zero."""
        if DivisionByZeroError in self.enabled:
            self.fails(_any(eq(y, scalar_like(y, 0))), Slot(DivisionByZeroError))

    @property
    def bounds_count(self) -> bool:
        """Whether indices are checked."""
        return OOBError in self.enabled

    def bounds(
        self,
        primitive: Primitive,
        operand: Any,
        indices: Any,
        last: Sequence[int],
        axes: Sequence[int],
    ) -> None:
        """Check that windows lie inside of an operand.

        Each row of `indices` says where a window starts: along which of the `axes` of the operand,
        and `last` are the greatest starts that are valid.
        """
        aval = typeof(indices)
        if not aval.size:
            return
        count, most = len(axes), np.iinfo(aval.dtype).max
        flat = reshape(indices, new_sizes=(aval.size,))
        ends = np.tile(np.minimum(last, most).astype(aval.dtype), aval.size // count)
        outside = bitwise_or(lt(flat, scalar_like(flat, 0)), gt(flat, ends))
        number = argmax(convert(outside, _INT32), axes=(0,), index_dtype=_INT32)
        which = rem(number, np.int32(count))
        shape = typeof(operand).shape
        numbers = [
            convert(_at(flat, number), _INT32),
            _at(np.asarray(axes, _INT32), which),
            _at(np.asarray([shape[axis] for axis in axes], _INT32), which),
        ]
        place = concatenate(*numbers, dimension=0)
        self.fails(reduce_or(outside, axes=(0,)), _PLACE, (primitive.name, shape), place)

    # ---- For operations that hold programs ------------------------------------------------------

    def run(self, f: Callable[..., Any], args: Sequence[Any]) -> Any:
        """`f(*args)`, checked. For the interpreter, and for the rules of operations."""
        return under(self, f, *args)

    def inline(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """The results of a program that is written out."""
        found: list[Any] = self.run(lambda *xs: eval_jaxpr(closed.jaxpr, (), *xs), operands)
        return found

    def finds(self, *programs: ClosedJaxpr) -> list[Slot]:
        """The slots that the programs fill: none if nothing in them is checked."""
        found: dict[Slot, None] = {}
        for closed in programs:
            layout = checked_program(closed, self.enabled, (), 0, True).layout
            found.update(dict.fromkeys([place.slot for place in layout]))
        return list(found)

    def enter(self, *programs: ClosedJaxpr) -> bool:
        """Make room for what programs may find that loops and branches run; false if nothing.

        What failed so far is that of one example or device, and has the types that the programs
        return.
        """
        slots = self.finds(*programs)
        if not slots:
            return False
        self.reduce()
        for slot in slots:
            if slot not in self.entries:
                self.entries[slot] = empty(slot)
        layout = self.layout()
        while True:
            vma = [place.vma for place in layout]
            for closed in programs:
                outs = checked_program(closed, self.enabled, layout, 0, True).layout
                vma = [a | b.vma for a, b in zip(vma, outs, strict=True)]
            wider = tuple([p._replace(vma=a) for p, a in zip(layout, vma, strict=True)])
            if wider == layout:
                break
            layout = wider
        self.update([varying(x, p.vma) for p, x in self._by_place(layout)], layout)
        return True

    def program(self, closed: ClosedJaxpr, num_consts: int = 0) -> ClosedJaxpr:
        """The checked program of a loop or of a branch, only after `enter`.

        It takes what failed after its consts, and returns it first.
        """
        found = self.of_program(closed)
        return _consts_first(found.closed, len(found.avals), num_consts)

    def of_program(self, closed: ClosedJaxpr, scalar: bool = True) -> CheckedProgram:
        """The program as `checked_program` makes it of what failed so far."""
        found = checked_program(closed, self.enabled, self.layout(), self.next_code, scalar)
        self.next_code = found.next_code
        self.causes.update(found.causes)
        return found

    def called(
        self,
        closed: ClosedJaxpr,
        operands: Sequence[Any],
        bind: Callable[[ClosedJaxpr, Sequence[Any]], list[Any]],
    ) -> list[Any]:
        """The results of a call of a program, which `bind` writes for any program."""
        if not self.finds(closed):
            return bind(closed, operands)
        found = self.of_program(closed, scalar=False)
        outs = bind(found.closed, [*self.values, *operands])
        failed, outs = cut(outs, len(found.avals))
        self.update(failed, found.layout)
        return outs

    @property
    def values(self) -> list[Any]:
        """What failed, as a list of arrays."""
        return [x for _, entry in self.sorted() for x in entry.leaves]

    def sorted(self) -> list[tuple[Slot, Entry]]:
        """The slots and their entries, in one order for all programs."""
        return sorted(self.entries.items(), key=lambda item: item[0].order())

    def layout(self) -> Layout:
        """What `values` are."""
        return tuple(
            [
                Place(
                    slot,
                    typeof(entry.pred).shape,
                    frozenset().union(*[typeof(x).vma for x in entry.leaves]),
                )
                for slot, entry in self.sorted()
            ]
        )

    def _by_place(self, layout: Layout) -> list[tuple[Place, Any]]:
        pairs = zip(layout, self.sorted(), strict=True)
        return [(place, x) for place, (_, entry) in pairs for x in entry.leaves]

    def update(self, values: Sequence[Any], layout: Layout) -> None:
        """Replace what failed by the results of a program, which knew it."""
        given = iter(values)
        self.entries = {
            slot: Entry(next(given), next(given), tuple([next(given) for _ in slot.types]))
            for slot, _, _ in layout
        }

    def leave(self, outs: Sequence[Any]) -> list[Any]:
        """Take what failed from the results of a loop or a branch; the other results."""
        layout = self.layout()
        failed, rest = cut(outs, sum([len(place.avals) for place in layout]))
        self.update(failed, layout)
        return rest

    def reduce(self) -> None:
        """Keep of the errors of a batch one that says whether there is any."""
        self.entries = {slot: reduced(entry) for slot, entry in self.entries.items()}

    def spread(self, values: Sequence[Any], layout: Layout, size: int) -> None:
        """Replace what failed by what failed on each of `size` devices."""
        self.update(values, tuple([p._replace(shape=(size, *p.shape)) for p in layout]))


class CheckedProgram(NamedTuple):
    """A program that takes what failed before it, and returns what has failed after it.

    `layout` is that of the results; the codes of its checks end before `next_code`.
    """

    closed: ClosedJaxpr
    layout: Layout
    causes: tuple[tuple[int, Cause], ...]
    next_code: int

    @property
    def avals(self) -> list[ShapedArray]:
        """The types of the results that say what failed."""
        return [aval for place in self.layout for aval in place.avals]


@by_program
def checked_program(
    closed: ClosedJaxpr, enabled: Kinds, layout: Layout, first_code: int, scalar: bool
) -> CheckedProgram:
    """The program with its checks, whose codes begin at `first_code`.

    `layout` says what it takes. With `scalar` what failed is one error, also if it is of a batch.
    """
    found: Any = None

    def run(*args: Any) -> list[Any]:
        nonlocal found
        given = [aval for place in layout for aval in place.avals]
        failed, operands = cut(args, len(given))
        checks = Checks(enabled, first_code)
        checks.update(failed, layout)
        outs = checks.inline(closed, operands)
        if scalar:
            checks.reduce()
        places = checks.layout()
        values = [varying(x, place.vma) for place, x in checks._by_place(places)]
        found = places, tuple(checks.causes.items()), checks.next_code
        return [*values, *outs]

    avals = [aval for place in layout for aval in place.avals]
    body = program(run, [*avals, *closed.in_avals], closed.jaxpr.name)
    return CheckedProgram(body, *found)


@by_program
def _consts_first(closed: ClosedJaxpr, count: int, num_consts: int) -> ClosedJaxpr:
    """The program that takes its first `count` arguments after the consts that follow them."""
    failed, consts, rest = cut(closed.jaxpr.invars, count, num_consts)
    return rearranged(closed, [*consts, *failed, *rest]) if num_consts else closed


# ---- Arrays -------------------------------------------------------------------------------------


def _any(x: Any) -> Any:
    ndim = typeof(x).ndim
    return reduce_or(x, axes=tuple(range(ndim))) if ndim else x


def _at(xs: Any, place: Any) -> Any:
    """The element at a place, as an array of one."""
    return dynamic_slice(xs, place, slice_sizes=(1,))


def _spread(x: Any, shape: tuple[int, ...], after: int = 0) -> Any:
    """An array for a batch of that shape, whose last `after` axes are those of one example."""
    own = typeof(x).shape
    full = shape + own[len(own) - after :]
    if own == full:
        return x
    first = len(own) - after
    axes = (*range(first), *range(len(shape), len(full)))
    return broadcast_in_dim(x, shape=full, broadcast_dimensions=axes)


def _first_of(old: Entry, new: Entry, slot: Slot) -> Entry:
    """What failed before, or if nothing did, what may have failed now."""
    shapes = [typeof(old.pred).shape, typeof(new.pred).shape]
    shape = max(shapes, key=len)
    was, now = [_spread(x, shape) for x in (old.pred, new.pred)]

    def choose(a: Any, b: Any, aval: ShapedArray) -> Any:
        a, b = _spread(a, shape, aval.ndim), _spread(b, shape, aval.ndim)
        if not shape:
            return select(was, a, b)
        full = typeof(a).shape
        which = broadcast_in_dim(was, shape=full, broadcast_dimensions=tuple(range(len(shape))))
        return select(which, a, b)

    code = choose(old.code, new.code, ShapedArray((), _INT32))
    triples = zip(old.payload, new.payload, slot.types, strict=True)
    return Entry(bitwise_or(was, now), code, tuple([choose(*triple) for triple in triples]))


def reduced(entry: Entry) -> Entry:
    """The last error of a batch; one that says that nothing failed if there is none."""
    shape = typeof(entry.pred).shape
    if not shape:
        return entry
    size = int(np.prod(shape))
    pred = reshape(entry.pred, new_sizes=(size,))
    order = select(pred, np.arange(1, size + 1, dtype=_INT32), np.zeros(size, _INT32))
    last = argmax(order, axes=(0,), index_dtype=_INT32)

    def chosen(x: Any) -> Any:
        own = typeof(x).shape[len(shape) :]
        rows = reshape(x, new_sizes=(size, *own))
        starts = [last, *[np.int32(0)] * len(own)]
        row = dynamic_slice(rows, *starts, slice_sizes=(1, *own))
        return reshape(row, new_sizes=own)

    return Entry(chosen(entry.pred), chosen(entry.code), tuple(map(chosen, entry.payload)))
