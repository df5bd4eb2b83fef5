"""The array type: jaxlib's C++ `ArrayImpl`, given its Python face here and nowhere else.

That is how jaxlib is meant to be used and what makes dispatch fast. It also means that a process
holds either Perspex or jax: both give the one C++ class its methods.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from perspex import dtypes
from perspex.base import events, xla
from perspex.errors import JaxRuntimeError
from perspex.ir.avals import ShapedArray
from perspex.layout.formats import Format, Layout
from perspex.runtime import capsules, client, interruptible, stopping
from perspex.runtime.callbacks import explained
from perspex.runtime.keys import KeyArray
from perspex.runtime.placed import deleted_error
from perspex.runtime.processes import joining
from perspex.runtime.processes.connection import Connection
from perspex.runtime.shards import Shard, shards
from perspex.runtime.transfer import LARGE, assembled, put
from perspex.sharding import NamedSharding
from perspex.tracing import array_methods, array_type
from perspex.tracing.trace import Tracer

ArrayImpl = xla.ArrayImpl
_block_until_ready = xla.block_until_ready


if TYPE_CHECKING:
    Array = array_type.Array
else:

    class _ArrayMeta(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            if cls is Array:
                return isinstance(instance, (ArrayImpl, Tracer, KeyArray))
            return type.__instancecheck__(cls, instance)

        def __subclasscheck__(cls, kind: type) -> bool:
            # As in JAX, tracers are instances and yet their class is no subclass.
            return type.__subclasscheck__(cls, kind) or (
                cls is Array and issubclass(kind, (ArrayImpl, KeyArray))
            )

        # What only concrete arrays have is an attribute of the class of arrays too.
        def __getattr__(cls, name: str) -> Any:
            if cls is Array and not name.startswith("_"):
                return getattr(ArrayImpl, name)
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")

        def __dir__(cls) -> list[str]:
            return sorted({*type.__dir__(cls), *(n for n in dir(ArrayImpl) if n[0] != "_")})

    class Array(array_type.Array, metaclass=_ArrayMeta):
        """The type of arrays, for annotations and `isinstance`; tracers are instances of it too.

        Arrays are made by the functions of `perspex.numpy`, and never change.

        >>> import perspex.numpy as pnp
        >>> isinstance(pnp.zeros(3), Array)
        True
        """

        __slots__ = ()
        __module__ = "perspex"

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError("Array is not made directly; use perspex.numpy.array(values)")


def to_numpy(x: Any) -> np.ndarray:
    """The numbers of a concrete array, as a read-only NumPy array; waits for them."""
    if x.is_deleted() or (stopping.pending and stopping.reason(x)):
        raise deleted_error(x)
    try:
        if not x.is_ready():
            x.block_until_ready()  # which an interrupt ends, unlike the wait inside the copy
        if not events.listeners or xla.numpy_value(x) is not None:
            return assembled(x)
        start = time.perf_counter()
        before = events.processor() if x.aval.nbytes >= LARGE else None
        if xla.sharding_of(x).__class__ is NamedSharding:
            out, copied = assembled(x), True
        else:
            out, copied = xla.to_numpy(x)
    except JaxRuntimeError as error:
        found = explained(error)
        raise found from found.__cause__
    if before is not None:
        events.count_as_phase(before)
    if copied:
        events.publish(
            "transfer", "to_numpy", start, x.aval.str_short(), direction="out", bytes=out.nbytes
        )
    return out


def _scalar(x: Any, what: str) -> Any:
    if x.aval.size != 1:
        raise TypeError(
            f"only arrays with one element can be converted to a Python {what}, "
            f"got shape {x.aval.shape}"
        )
    if x.aval.shape:
        raise TypeError(
            f"only scalar arrays can be converted to a Python {what}, got shape {x.aval.shape}; "
            "use .item() or index the element"
        )
    return to_numpy(x)[()]


class _Face(array_type.Array):
    """What concrete arrays have beyond the methods that tracers have too."""

    __slots__ = ()
    _sharding: Any
    _committed: bool

    @property
    def sharding(self) -> Any:
        """How the array is placed on devices."""
        return xla.sharding_of(self)

    @property
    def format(self) -> Format:
        """In which order the memory has the axes, and the sharding."""
        return Format(Layout(range(self.aval.ndim), ()), xla.sharding_of(self))

    @property
    def device(self) -> Any:
        """The device that holds the array; its sharding if it lies on several."""
        sharding = xla.sharding_of(self)
        return sharding if sharding.__class__ is NamedSharding else xla.device_of(sharding)

    @property
    def committed(self) -> bool:
        """Whether the array was put on its device on purpose, so that computations follow it."""
        return xla.is_committed(self)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices that hold the array belong to this process."""
        return xla.sharding_of(self).is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device that holds the array holds all of it."""
        return xla.sharding_of(self).is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts of the array, one for each device of this process that holds one."""
        if self.is_deleted():
            raise deleted_error(self)
        return shards(self)

    @property
    def global_shards(self) -> list[Shard]:
        """The parts of the array, one for each device that holds one.

        The `data` of those of other processes are `None`.
        """
        if self.is_deleted():
            raise deleted_error(self)
        return shards(self, everywhere=True)

    def addressable_data(self, index: int) -> Any:
        """What one device holds, as an array on that device."""
        return self.addressable_shards[index].data

    @property
    def _value(self) -> np.ndarray:
        return to_numpy(self)

    def devices(self) -> set[Any]:
        """The devices that hold the array."""
        return xla.sharding_of(self).device_set

    def block_until_ready(self) -> Any:
        """Wait until the numbers are there; returns the array."""
        if joining.connection is not None:
            return _wait_for_others(self, joining.connection)
        if stopping.reasons and stopping.reason(self):
            raise deleted_error(self)
        if not events.listeners:
            return _block_until_ready(self)
        start, before = time.perf_counter(), events.processor()
        try:
            return _block_until_ready(self)
        finally:
            interruptible.waited(start, before)

    def copy_to_host_async(self) -> None:
        """Start copying the numbers to the host, without waiting for them."""
        if self.is_deleted():
            return
        if xla.sharding_of(self).__class__ is NamedSharding:
            for shard in self.addressable_shards:
                shard.data.copy_to_host_async()
        else:
            self._copy_single_device_array_to_host_async()  # type: ignore[attr-defined]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = to_numpy(self)
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(f"converting {value.dtype} to {dtype} needs a copy")
            return value.astype(dtype)
        return value.copy() if copy else value

    # Those of all arrays ask NumPy, which would wait in C++, where no interrupt arrives.

    def item(self, *args: int) -> Any:
        """The only element, or the one at `args`, as a Python number."""
        return to_numpy(self).item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return to_numpy(self).tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The bytes of the elements."""
        return to_numpy(self).tobytes(order)

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
                if self.aval.size
                else "The truth value of an empty array is ambiguous. Use x.size > 0"
            )
        return bool(to_numpy(self).reshape(())[()])

    def __int__(self) -> int:
        return int(_scalar(self, "int").item())

    def __float__(self) -> float:
        return float(_scalar(self, "float").item())

    def __complex__(self) -> complex:
        return complex(_scalar(self, "complex"))

    def __index__(self) -> int:
        if self.aval.shape or not dtypes.issubdtype(self.aval.dtype, np.integer):
            raise TypeError(
                "only integer scalar arrays can be converted to a scalar index, "
                f"got {self.aval.str_short(short_dtypes=False)}"
            )
        return int(to_numpy(self))

    def __format__(self, spec: str) -> str:
        lies = xla.sharding_of(self)
        if lies.__class__ is NamedSharding and lies.spec.unreduced:
            return repr(self)
        value = to_numpy(self)
        return format(value[()], spec) if not self.aval.shape else format(value, spec)

    def __str__(self) -> str:
        return str(to_numpy(self)) if is_printed(self) else repr(self)

    def __repr__(self) -> str:
        if stopping.reasons and stopping.reason(self):
            return f"Array(stopped, {self.aval.str_short(short_dtypes=False)})"
        if self.is_deleted():
            return f"Array(deleted, {self.aval.str_short(short_dtypes=False)})"
        return represent(self)

    def __reduce__(self) -> Any:
        return _restore, (np.array(to_numpy(self)), self.aval.weak_type)

    def __copy__(self) -> Any:
        return array_methods.face.copy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return array_methods.face.copy(self)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        if self.is_deleted():
            raise deleted_error(self)
        _check_single(self)
        array = array_methods.face.copy(self) if copy else self
        return xla.to_dlpack(array, stream, max_version, bool(copy))

    def __dlpack_device__(self) -> tuple[int, int]:
        _check_single(self)
        device = xla.device_of(xla.sharding_of(self))
        kind = capsules.KINDS[xla.platform_of(device.client)]
        return kind, device.local_hardware_id or 0


def _wait_for_others(x: Any, others: Connection) -> Any:
    """Wait for an array that other processes compute with this one, or what it is made of."""
    if x.is_ready():
        return _block_until_ready(x)  # which raises its error
    processes = {device.process_index for device in xla.sharding_of(x).device_set}
    return others.wait(lambda: _block_until_ready(x), f"an array {x.aval.str_short()}", processes)


def _check_single(x: Any) -> None:
    if xla.sharding_of(x).__class__ is NamedSharding:
        sharding = xla.sharding_of(x)
        raise BufferError(
            f"DLPack exports arrays on one device, but this one lies on {sharding.num_devices} as "
            f"{sharding.spec}; move it to one device with device_put, or export the `.data` of "
            "each of its addressable_shards"
        )


# Larger arrays are not fetched to be printed: their shape stands for their numbers, as in JAX.
_PRINTED_BYTES = 1 << 20


def is_printed(x: Any) -> bool:
    """Whether an array is printed with its numbers: if it is small and they are here."""
    lies = xla.sharding_of(x)
    if lies.__class__ is NamedSharding and lies.spec.unreduced:
        return False
    is_here = lies.is_fully_addressable or (lies.is_fully_replicated and lies.addressable_devices)
    return bool(x.nbytes < _PRINTED_BYTES and is_here)


def represent(x: Any) -> str:
    """`Array([1., 2.], dtype=float32)`, letter for letter as JAX prints it."""
    aval = x.aval
    kind = f"dtype={aval.dtype.name}{', weak_type=True' if aval.weak_type else ''}"
    prefix, width = "Array(", np.get_printoptions()["linewidth"]
    if aval.size == 0:
        body = f"[], shape={aval.shape}"
    elif x.aval.cut is not None and x.aval.cut.spec.unreduced:
        return f"{prefix}shape={aval.shape}, {kind}, sharding={x.sharding})"
    elif not is_printed(x):
        body = f"shape={aval.shape}"
    else:
        body = np.array2string(to_numpy(x), prefix=prefix, suffix=",", separator=", ")
    last_line = len(body) - body.rfind("\n") + 1
    gap = " " if last_line + len(kind) + 2 <= width else " " * len(prefix)
    return f"{prefix}{body},{gap}{kind})"


def _restore(value: np.ndarray, weak_type: bool) -> Any:
    aval = ShapedArray(value.shape, value.dtype, weak_type)
    return put(value, client.default_device(), aval=aval)


def install(operators: dict[str, Any]) -> None:
    """Give the C++ class its methods; `operators` take the place of the Python ones."""
    for base in (array_methods.Operators, array_type.Array, _Face):
        for name, value in vars(base).items():
            if name not in ("__slots__", "__module__", "__doc__", "__dict__", "__annotations__"):
                setattr(ArrayImpl, name, value)
    for name, operator in operators.items():
        setattr(ArrayImpl, name, operator)
    array_methods.accept_operand(ArrayImpl)
