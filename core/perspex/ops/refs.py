"""Mutable arrays: refs, what reads and writes them, and how that stands in a program.

A `Ref` is a handle. While a program is written that takes or makes the ref, the handle has a tracer
(`staged`), and reading and writing are equations: `b <- a[0]`, `a[0] <- b`, `a[0] += b`. Everywhere
else the ref holds its value, an array or a tracer of the trace that made it, and reading and
writing are done at once. So no transform knows refs: forward mode and batching see what is read and
written, and `transforms.discharge` gives them programs in which a ref is a value that comes in and
goes out.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from perspex.base import effects
from perspex.base.effects import Effects
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.references import AbstractRef, refuse_memory
from perspex.ops import ref_index
from perspex.ops.placing import resharded
from perspex.ops.ref_index import Index
from perspex.ops.ref_values import Holder, part_type, ref_type, selected
from perspex.tracing import array_methods
from perspex.tracing.array_type import Array
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import JaxprTrace, JaxprTracer
from perspex.tracing.trace import Reference, Trace, Tracer, leaked, state, typeof


class Ref(Holder):
    """A mutable array: `new_ref` makes one.

    `ref[...]` reads its value, `ref[i] = v` and `ref[i] += v` write into it; `ref.at[i]` is a view
    of a part.

    Args:
      aval: the type, an `AbstractRef`.
      refs: the value.

    Returns:
      A ref that nothing else knows.

    >>> from perspex import new_ref
    >>> ref = new_ref([0.0, 1.0][0])
    >>> ref[...] = 5.0
    >>> ref
    Ref(5., dtype=float32)
    """

    __slots__ = ("_is_frozen",)

    def __init__(self, aval: AbstractRef, refs: Any) -> None:
        self.aval = aval
        self.staged: Tracer | None = None
        self._value = refs
        self._is_shared = True
        if not isinstance(refs, Tracer):
            self.lend()  # whoever holds the array may delete or donate it
        self._is_frozen = False
        self.writes = 0
        self.home: Trace = state.trace

    @classmethod
    def of(cls, tracer: JaxprTracer) -> Ref:
        """The handle of a ref that a program takes or makes."""
        ref: Ref = cls.__new__(cls)
        ref.aval, ref.staged, ref.home = tracer.aval, tracer, tracer._trace
        ref._is_frozen, ref.writes = False, 0
        return ref

    # ---- The face ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        shape: tuple[int, ...] = self.aval.shape
        return shape

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size: int = self.aval.size
        return size

    @property
    def sharding(self) -> Any:
        """How the value lies on devices."""
        return self._array().sharding

    @property
    def committed(self) -> bool:
        """Whether the device is the user's choice."""
        committed: bool = self._array().committed
        return committed

    def unsafe_buffer_pointer(self) -> Any:
        """The address of the value on its device, until the next write."""
        return self._array().unsafe_buffer_pointer()

    def _array(self) -> Any:
        if self.staged is not None:
            raise TypeError(
                f"the ref of type {self.aval} is traced: it lies on no device yet. Ask the ref "
                "that is passed to the traced function."
            )
        return self.held()

    def __len__(self) -> int:
        return len(self.aval)

    # The iterator would be that of `__getitem__`, which goes on until an index is refused.
    __iter__ = None

    def __getitem__(self, index: Any) -> Any:
        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        set(self, index, value)

    @property
    def at(self) -> _At:
        """`ref.at[i]`: a view of a part, to read, to write, or to index again."""
        return _At(self)

    def addupdate(self, x: Any, idx: Any = None) -> None:
        """Add `x` to the elements at `idx`."""
        addupdate(self, idx, x)

    def block_until_ready(self) -> Ref:
        """Wait until the value has been computed; returns the ref."""
        self._array().block_until_ready()
        return self

    def __copy__(self) -> Ref:
        return new_ref(self[...])

    def __deepcopy__(self, memo: dict[int, Any]) -> Ref:
        return new_ref(self[...])

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"a Ref of type {self.aval} is not an array; read its value with ref[...]")

    def __repr__(self) -> str:
        if self.staged is not None or isinstance(self._value, Tracer):
            return repr(self.aval)
        text = repr(self._value)
        return "Ref" + text[text.index("(") :] if "(" in text else f"Ref({text})"


class _At:
    """What `ref.at` is: it waits for an index."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any) -> None:
        self.ref = ref

    def __getitem__(self, index: Any) -> RefView:
        return RefView(self.ref, index)


class RefView:
    """A part of a ref, or of a view of one: reads and writes go through to the ref."""

    __slots__ = ("index", "ref")

    def __init__(self, ref: Any, index: Any) -> None:
        self.ref, self.index = ref, index

    @property
    def aval(self) -> AbstractRef:
        """The type of the part."""
        aval = self.ref.aval
        index, given = ref_index.parse(aval.shape, self.index)
        return AbstractRef(aval.inner_aval.update(shape=index.shape(aval.shape, given)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.ref.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def at(self) -> _At:
        """A view of a part of this one."""
        return _At(self)

    def __getitem__(self, index: Any) -> Any:
        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        set(self, index, value)

    def get(self) -> Any:
        """The part as an array."""
        return get(self)

    def set(self, value: Any) -> None:
        """Write the part."""
        set(self, None, value)

    def swap(self, value: Any) -> Any:
        """Write the part; returns what was there."""
        return swap(self, None, value)

    def addupdate(self, value: Any) -> None:
        """Add to the part."""
        addupdate(self, None, value)

    def __repr__(self) -> str:
        return f"RefView({self.ref!r}, {self.index!r})"


JaxprTrace.reference = Ref.of


# ---- The operations ---------------------------------------------------------------------------


class _OnRef(Primitive):
    """An operation on a ref, with the index in the param `index` and its arrays as operands.

    It becomes an equation only where a program is written, so it has no rules but `type`: before
    anything else happens to a program, `transforms.discharge` takes its refs out.
    """

    multiple_results = True
    takes_refs = True

    def cut_type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        # The type of a ref has that of its value, which says how it is cut.
        return self.type(*avals, **params)

    def effects(self, params: dict[str, Any]) -> Effects:
        return frozenset([effects.state])


class Get(_OnRef):
    """Reads a part of a ref."""

    name = "get"

    def type(self, ref: Any, *given: ShapedArray, index: Index) -> tuple[ShapedArray, ...]:
        return (selected(ref_type("get", ref), index, given),)

    def __call__(self, ref: Ref, *given: Any, index: Index) -> Any:
        _check_alive("get", ref)
        if not ref.is_here:
            return state.trace.bind(self, (ref, *given), {"index": index})
        if index.is_whole:
            return [ref.share()]
        return [index.read(ref.held(), given)]

    def notation(self, eqn: Any, outputs: list[str], operands: list[str], is_read: bool) -> str:
        return f"{outputs[0]} <- {_place(eqn, operands, 1)}"


class Swap(_OnRef):
    """Writes a part of a ref, and gives what was there."""

    name = "swap"

    def type(
        self, ref: Any, value: ShapedArray, *given: ShapedArray, index: Index
    ) -> tuple[ShapedArray, ...]:
        return (part_type("swap", ref, value, index, given),)

    def __call__(self, ref: Ref, value: Any, *given: Any, index: Index) -> Any:
        _check_alive("swap", ref)
        ref.accept("a set/swap", value, *given)
        if not ref.is_here:
            ref.writes += 1
            return state.trace.bind(self, (ref, value, *given), {"index": index})
        before = ref.held()
        ref.write(index, given, value)
        return [before if index.is_whole else index.read(before, given)]

    def notation(self, eqn: Any, outputs: list[str], operands: list[str], is_read: bool) -> str:
        place = _place(eqn, operands, 2)
        if is_read:
            return f"{outputs[0]}, {place} <- {place}, {operands[1]}"
        return f"{place} <- {operands[1]}"


class AddUpdate(_OnRef):
    """Adds to a part of a ref."""

    name = "addupdate"

    def type(self, ref: Any, value: ShapedArray, *given: ShapedArray, index: Index) -> tuple[()]:
        part_type("addupdate", ref, value, index, given)
        return ()

    def __call__(self, ref: Ref, value: Any, *given: Any, index: Index) -> Any:
        _check_alive("addupdate", ref)
        ref.accept("an addupdate", value, *given)
        if not ref.is_here:
            ref.writes += 1
            return state.trace.bind(self, (ref, value, *given), {"index": index})
        before = ref.held()
        part_type("addupdate", ref.aval, shaped(value), index, [shaped(x) for x in given])
        ref.hold(before + value if index.is_whole else index.add(before, given, value))
        return []

    def notation(self, eqn: Any, outputs: list[str], operands: list[str], is_read: bool) -> str:
        return f"{_place(eqn, operands, 2)} += {operands[1]}"


class NewRef(_OnRef):
    """Makes a ref."""

    name = "new_ref"
    printed: ClassVar[dict[str, Any]] = {"kind": None, "memory_space": None, "pin": False}

    def type(self, value: ShapedArray) -> tuple[Any, ...]:
        return (AbstractRef(value),)

    def __call__(self, value: Any) -> Any:
        if state.trace.writes:
            return [Ref.of(made) for made in state.trace.bind(self, (value,), {})]
        aval = shaped(value)
        if aval.weak_type or not isinstance(value, Array):
            value = array_methods.face.asarray(value, dtype=aval.dtype)
        return [Ref(AbstractRef(aval), value)]


class EmptyRef(_OnRef):
    """Makes a ref whose elements nobody has written."""

    name = "empty_ref"
    printed: ClassVar[dict[str, Any]] = {"memory_space": None, "pin": False}

    def type(self, *, ty: ShapedArray) -> tuple[Any, ...]:
        return (AbstractRef(ty),)

    def __call__(self, *, ty: ShapedArray) -> Any:
        if state.trace.writes:
            return [Ref.of(made) for made in state.trace.bind(self, (), {"ty": ty})]
        return [Ref(AbstractRef(ty), array_methods.face.zeros(ty.shape, ty.dtype))]


class Freeze(_OnRef):
    """Ends a ref; its value is the result."""

    name = "freeze"

    def type(self, ref: Any) -> tuple[ShapedArray, ...]:
        return (ref_type("freeze", ref).inner_aval,)

    def __call__(self, ref: Ref) -> Any:
        _end("freeze", ref)
        if not ref.is_here:
            return state.trace.bind(self, (ref,), {})
        return [ref.share()]


class FreeRef(_OnRef):
    """Ends a ref."""

    name = "free_ref"

    def type(self, ref: Any) -> tuple[()]:
        ref_type("free_ref", ref)
        return ()

    def __call__(self, ref: Ref) -> Any:
        _end("free_ref", ref)
        return [] if ref.is_here else state.trace.bind(self, (ref,), {})


get_p, swap_p, addupdate_p = Get(), Swap(), AddUpdate()
new_ref_p, empty_ref_p, freeze_p, free_ref_p = NewRef(), EmptyRef(), Freeze(), FreeRef()


def _place(eqn: Any, operands: list[str], first: int) -> str:
    """`a[0,:]`: the text of the part that an equation reads or writes."""
    shape = eqn.invars[0].aval.shape
    return f"{operands[0]}[{eqn.params['index'].text(shape, operands[first:])}]"


def _check_alive(operation: str, ref: Ref) -> None:
    if ref.staged is not None and not ref.staged._trace.alive:
        raise leaked(ref.staged)
    if ref._is_frozen:
        raise ValueError(
            f"`{operation}` must be called on `Ref` types: this ref of type {ref.aval} has been "
            "frozen or freed. Read it before, or use the array that `freeze` returned."
        )


def _end(operation: str, ref: Ref) -> None:
    """Note that a ref is over; only the trace that made it may say so."""
    _check_alive(operation, ref)
    if ref.staged is None:
        if ref.is_here:
            return
    elif ref.staged._trace is state.trace and not is_argument(ref.staged):
        ref._is_frozen = True
        return
    raise ValueError(
        f"{operation} takes a ref that the same traced function has made, but this one of type "
        f"{ref.aval} comes from outside. Read its value with `ref[...]`."
    )


def is_argument(tracer: Any) -> bool:
    """Whether a tracer stands for an argument of the program that is being written."""
    return any(var is tracer._var for var in tracer._trace.invars)


# ---- What users call --------------------------------------------------------------------------


def _target(operation: str, ref: Any) -> Any:
    if isinstance(ref, (Ref, RefView)):
        return ref
    raise ValueError(
        f"`{operation}` must be called on `Ref` types: got a value of type {type(ref)}. "
        "Make a ref of it with new_ref."
    )


def _value_of(ref: Any, value: Any) -> Any:
    """A value to be written, as an array; weak types take the dtype of the ref where they may."""
    aval = shaped(value)
    if aval.is_extended or (aval.dtype == ref.dtype and not aval.weak_type):
        return value if isinstance(value, Tracer) else array_methods.face.asarray(value)
    same_kind = np.dtype(aval.dtype).kind == np.dtype(ref.dtype).kind
    # The kind of bfloat16, int4 and their kin is that of no other type of NumPy.
    is_kind = array_methods.face.issubdtype
    alike = [
        all(is_kind(dtype, kind) for dtype in (aval.dtype, ref.dtype))
        for kind in (np.floating, np.integer)
    ]
    if aval.weak_type and (same_kind or any(alike)):
        return array_methods.face.asarray(value, dtype=ref.dtype)
    return array_methods.face.asarray(value)


def _placed(ref: Ref, value: Any, index: Index) -> Any:
    """A value to be written; one that is whole on a mesh is cut as the ref is."""
    value, inner = _value_of(ref, value), ref.aval.inner_aval
    if inner.cut is None or not index.is_whole or typeof(value).cut is not None:
        return value
    return resharded(value, inner.cut) if np.shape(value) == inner.shape else value


def get(ref: Any, idx: Any = None) -> Any:
    """Read a ref, or a view of one."""
    if isinstance(ref, RefView):
        part = get(ref.ref, ref.index)
        index, given = ref_index.parse(part.shape, idx)
        return part if index.is_whole else index.read(part, given)
    ref = _target("get", ref)
    index, given = ref_index.parse(ref.shape, idx)
    if any(isinstance(x, Tracer) and not x._trace.writes for x in given) and not ref.is_here:
        # The index belongs to a transform inside of the program that has the ref.
        (whole,) = get_p(ref, index=ref_index.WHOLE)
        return index.read(whole, given)
    (found,) = get_p(ref, *given, index=index)
    return found


def swap(ref: Any, idx: Any, value: Any) -> Any:
    """Write into a ref, or into a view of one; returns what was there."""
    if isinstance(ref, RefView):
        if ref_index.is_whole(idx):
            return swap(ref.ref, ref.index, value)
        part = get(ref.ref, ref.index)
        index, given = ref_index.parse(part.shape, idx)
        value = _value_of(ref, value)
        part_type("swap", ref.aval, shaped(value), index, [shaped(x) for x in given])
        set(ref.ref, ref.index, index.write(part, given, value))
        return index.read(part, given)
    ref = _target("swap", ref)
    index, given = ref_index.parse(ref.shape, idx)
    (old,) = swap_p(ref, _placed(ref, value, index), *given, index=index)
    return old


def set(ref: Any, idx: Any, value: Any) -> None:
    """Write into a ref, or into a view of one."""
    if not isinstance(ref, Ref) or not ref.is_here:
        swap(ref, idx, value)
        return
    # Without reading what was there.
    index, given = ref_index.parse(ref.shape, idx)
    value = _placed(ref, value, index)
    ref.accept("a set/swap", value, *given)
    ref.write(index, given, value)


def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add to a part of a ref, or of a view of one."""
    if isinstance(ref, RefView):
        if ref_index.is_whole(idx):
            addupdate(ref.ref, ref.index, x)
            return
        part = get(ref.ref, ref.index)
        index, given = ref_index.parse(part.shape, idx)
        x = _value_of(ref, x)
        part_type("addupdate", ref.aval, shaped(x), index, [shaped(i) for i in given])
        set(ref.ref, ref.index, index.add(part, given, x))
        return
    ref = _target("addupdate", ref)
    index, given = ref_index.parse(ref.shape, idx)
    addupdate_p(ref, _placed(ref, x, index), *given, index=index)


def new_ref(init_val: Any, *, memory_space: Any = None, kind: Any = None, pin: bool = False) -> Ref:
    """Make a ref of an array or a number."""
    refuse_memory("new_ref", memory_space=memory_space, kind=kind, pin=pin)
    if isinstance(init_val, (Reference, RefView)):
        raise TypeError("new_ref takes an array, got a ref; read its value with `ref[...]`")
    try:
        aval = shaped(init_val)
    except TypeError as error:
        raise TypeError(f"new_ref: {error}") from None
    if isinstance(init_val, np.ndarray):
        init_val = array_methods.face.asarray(init_val, dtype=aval.dtype)
    (ref,) = new_ref_p(init_val)
    made: Ref = ref
    return made


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """Make a ref of a type; its elements are zeros."""
    refuse_memory("empty_ref", memory_space=memory_space, pin=pin)
    if not (hasattr(ty, "shape") and hasattr(ty, "dtype")):
        raise TypeError(
            f"empty_ref takes something with a shape and a dtype, got {type(ty)}; "
            "pass a ShapeDtypeStruct"
        )
    (ref,) = empty_ref_p(ty=ShapedArray(tuple(ty.shape), ty.dtype))
    made: Ref = ref
    return made


def freeze(ref: Ref) -> Any:
    """End a ref; returns its value."""
    (value,) = freeze_p(_target("freeze", ref))
    return value


def free_ref(ref: Ref) -> None:
    """End a ref."""
    free_ref_p(_target("free_ref", ref))
