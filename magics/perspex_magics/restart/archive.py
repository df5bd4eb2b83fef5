"""A file that holds arrays and pickles, for the next process of the same notebook.

    numbers of arrays and pickles, one after the other | index | place of the index

Arrays are written once however many objects hold them, and read once, so what was one array is one
array again. The file has no name: only a process that inherits it can read it.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import IO, Any, NamedTuple

import numpy as np

import perspex
from perspex.base import xla
from perspex.ir.avals import ShapedArray
from perspex.layout.named import NamedSharding
from perspex.runtime import client, stopping
from perspex.runtime.array import ArrayImpl
from perspex.runtime.transfer import put

_END = struct.Struct("<8sQQ")
_MAGIC = b"perspex\x02"


class UnkeptError(Exception):
    """Something cannot be written; the text says what it is."""


class Stored(NamedTuple):
    """An array in the file. `place` is where it lies, `None` for an array of NumPy."""

    at: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_reversed: bool  # in Fortran's order
    is_writable: bool
    weak_type: bool = False
    place: Place | None = None


class Place(NamedTuple):
    """Where a device array lies; without a mesh on one device, the default one if uncommitted."""

    device: tuple[str, int] | None = None
    memory: str | None = None
    mesh: Any = None  # platform, numbers of the devices, names and types of the axes
    spec: Any = None


class Span(NamedTuple):
    """Bytes of the file."""

    at: int
    size: int


class Writer:
    """Writes arrays and pickles. With `waits`, arrays that are being computed are waited for."""

    def __init__(self, file: IO[bytes], waits: bool) -> None:
        self.file, self.waits = file, waits
        self.stored: list[Stored] = []
        self._numbers: dict[int, int] = {}
        # So that no other array gets the identity of one that is written.
        self._held: list[Any] = []

    def array(self, x: Any) -> int:
        """The number of an array of NumPy or of a device, which is written the first time."""
        number = self._numbers.get(id(x))
        if number is None:
            stored = self._host(x) if type(x) is np.ndarray else self._device(x)
            number = self._numbers[id(x)] = len(self.stored)
            self.stored.append(stored)
            self._held.append(x)
        return number

    def put(self, data: bytes) -> Span:
        """Write bytes."""
        at = self.file.tell()
        self.file.write(data)
        return Span(at, len(data))

    def finish(self, index: dict[str, Any]) -> None:
        """Write what says where everything is."""
        span = self.put(pickle.dumps((index, self.stored), protocol=5))
        self.put(_END.pack(_MAGIC, *span))
        self.file.flush()

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return sum(one.dtype.itemsize * int(np.prod(one.shape)) for one in self.stored)

    def _host(self, x: np.ndarray) -> Stored:
        is_reversed = bool(x.flags.f_contiguous and not x.flags.c_contiguous)
        at = self.file.tell()
        flat = np.ascontiguousarray(x.T if is_reversed else x).reshape(-1)
        if flat.size:
            self.file.write(flat.view(np.uint8).data)
        return Stored(at, x.dtype, x.shape, is_reversed, bool(x.flags.writeable))

    def _device(self, x: Any) -> Stored:
        if (said := stopping.reason(x)) is not None:
            raise UnkeptError(f"an array without a value: {said}")
        if x.is_deleted():
            raise UnkeptError("an array that was deleted or donated")
        if not x.is_ready():
            if not self.waits:
                raise UnkeptError("an array that is still being computed")
            try:
                x.block_until_ready()
            except Exception as error:
                raise UnkeptError(f"an array whose computation failed: {error}") from None
        if not x.is_fully_addressable:
            raise UnkeptError("an array that other processes hold parts of")
        host = self._host(np.asarray(x))
        return host._replace(weak_type=x.aval.weak_type, place=_place(x))


def _name_of(device: Any) -> tuple[str, int]:
    return xla.platform_of(device.client), device.id


def _place(x: Any) -> Place:
    sharding = x.sharding
    if isinstance(sharding, NamedSharding):
        mesh = sharding.mesh
        devices = [_name_of(device) for device in mesh.devices.flat]
        form = devices, mesh.devices.shape, mesh.axis_names, mesh.axis_types
        return Place(memory=sharding.asked_kind, mesh=form, spec=sharding.spec)
    device = _name_of(xla.device_of(sharding)) if x.committed else None
    kind = sharding.memory_kind
    usual = xla.device_of(sharding).default_memory().kind
    return Place(device, None if kind == usual else kind)


def device_of(name: tuple[str, int]) -> Any:
    """The device of this process with the name that one of the former process had."""
    platform, number = name
    return next(device for device in client.devices(platform) if device.id == number)


class Reader:
    """Reads what a `Writer` has written."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        file.seek(-_END.size, io.SEEK_END)
        magic, at, size = _END.unpack(file.read(_END.size))
        if magic != _MAGIC:
            raise ValueError("the file is not that of a session")
        self.index, self.stored = pickle.loads(self.get(Span(at, size)))
        self._arrays: dict[int, Any] = {}

    def get(self, span: Span) -> bytes:
        """Bytes of the file."""
        self.file.seek(span.at)
        return self.file.read(span.size)

    def array(self, number: int) -> Any:
        """The array of a number; one object for one number."""
        if number not in self._arrays:
            self._arrays[number] = self._read(self.stored[number])
        return self._arrays[number]

    def _read(self, one: Stored) -> Any:
        shape = one.shape[::-1] if one.is_reversed else one.shape
        value = np.empty(shape, one.dtype)
        if value.size:
            self.file.seek(one.at)
            whole = value.reshape(-1).view(np.uint8).data
            while whole and (count := self.file.readinto(whole)):  # type: ignore[attr-defined]
                whole = whole[count:]
            if whole:
                raise ValueError("the file of the session ends too early")
        value = value.T if one.is_reversed else value
        if one.place is None:
            value.flags.writeable = one.is_writable
            return value
        aval = ShapedArray(one.shape, one.dtype, one.weak_type)
        return _placed(put(value, client.default_device(), aval=aval), one.place)


def _placed(x: ArrayImpl, place: Place) -> Any:
    if place.mesh is not None:
        names, shape, axes, types = place.mesh
        devices = np.empty(len(names), object)
        devices[:] = [device_of(name) for name in names]
        mesh = perspex.sharding.Mesh(devices.reshape(shape), axes, axis_types=types)
        return perspex.device_put(x, NamedSharding(mesh, place.spec, memory_kind=place.memory))
    if place.device is None and place.memory is None:
        return x
    device = client.default_device() if place.device is None else device_of(place.device)
    if place.memory is None:
        return perspex.device_put(x, device)
    sharding = perspex.sharding.SingleDeviceSharding(device, memory_kind=place.memory)
    return perspex.device_put(x, sharding)
