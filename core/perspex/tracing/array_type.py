"""The type of arrays: the methods and operators that tracers and concrete arrays share.

To a type checker, `Array` is the class of every array, `perspex.Array`. Concrete arrays take its
methods over in `runtime.array`, where the operators get a C++ fast path.
"""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Never, Protocol, Self, SupportsIndex, TypeAlias, TypedDict
from typing import Unpack as Unpack

import numpy as np

from perspex.advice import messages
from perspex.base import source
from perspex.ir.avals import ShapedArray
from perspex.tracing import array_methods
from perspex.tracing.array_methods import Operators, forwarded


class SupportsDType(Protocol):
    """Anything with a dtype of its own, such as an array or `jnp.float32`."""

    @property
    def dtype(self) -> np.dtype: ...


NumPyLike: TypeAlias = np.ndarray | np.bool_ | np.number | bool | int | float | complex
ArrayLike: TypeAlias = "Array | NumPyLike"
DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
Axis: TypeAlias = int | Sequence[int] | None
Shape: TypeAlias = Sequence[int]
_OneIndex: TypeAlias = (
    "Array | np.ndarray | np.bool_ | SupportsIndex | slice[Any, Any, Any] | EllipsisType | None"
)
Index: TypeAlias = "_OneIndex | tuple[_OneIndex, ...]"


class Promises(TypedDict, total=False):
    """What the methods of `x.at[index]` are told of the index and of the result."""

    indices_are_sorted: bool
    unique_indices: bool
    mode: str | Enum | None
    wrap_negative_indices: bool
    out_sharding: Any


class Update(Protocol):
    """A method of `x.at[index]`: a new array, changed by `values` in that place."""

    def __call__(self, values: ArrayLike, **promises: Unpack[Promises]) -> Array: ...


class AtPlace(Protocol):
    """`x.at[index]`, waiting for what to do there; `perspex.numpy.at` documents the methods."""

    set: Update
    add: Update
    subtract: Update
    multiply: Update
    mul: Update
    divide: Update
    power: Update
    min: Update
    max: Update

    def get(
        self, *, fill_value: ArrayLike | None = None, **promises: Unpack[Promises]
    ) -> Array: ...
    def apply(self, func: Callable[[Array], ArrayLike], **promises: Unpack[Promises]) -> Array: ...


class At(Protocol):
    """`x.at`, waiting for an index."""

    def __getitem__(self, index: Index, /) -> AtPlace: ...


class Array(Operators):
    """What an array can do, in terms of the array namespace.

    The class of all arrays, to a type checker. Tracers and typed keys inherit from it; the C++
    class of other concrete arrays is given its methods.
    """

    __slots__ = ()

    aval: ShapedArray

    if TYPE_CHECKING:
        # The operators, which `array_methods` makes.
        def __add__(self, other: ArrayLike, /) -> Array: ...
        def __radd__(self, other: ArrayLike, /) -> Array: ...
        def __sub__(self, other: ArrayLike, /) -> Array: ...
        def __rsub__(self, other: ArrayLike, /) -> Array: ...
        def __mul__(self, other: ArrayLike, /) -> Array: ...
        def __rmul__(self, other: ArrayLike, /) -> Array: ...
        def __truediv__(self, other: ArrayLike, /) -> Array: ...
        def __rtruediv__(self, other: ArrayLike, /) -> Array: ...
        def __floordiv__(self, other: ArrayLike, /) -> Array: ...
        def __rfloordiv__(self, other: ArrayLike, /) -> Array: ...
        def __mod__(self, other: ArrayLike, /) -> Array: ...
        def __rmod__(self, other: ArrayLike, /) -> Array: ...
        def __divmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
        def __rdivmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
        def __pow__(self, other: ArrayLike, /) -> Array: ...
        def __rpow__(self, other: ArrayLike, /) -> Array: ...
        def __matmul__(self, other: ArrayLike, /) -> Array: ...
        def __rmatmul__(self, other: ArrayLike, /) -> Array: ...
        def __and__(self, other: ArrayLike, /) -> Array: ...
        def __rand__(self, other: ArrayLike, /) -> Array: ...
        def __or__(self, other: ArrayLike, /) -> Array: ...
        def __ror__(self, other: ArrayLike, /) -> Array: ...
        def __xor__(self, other: ArrayLike, /) -> Array: ...
        def __rxor__(self, other: ArrayLike, /) -> Array: ...
        def __lshift__(self, other: ArrayLike, /) -> Array: ...
        def __rlshift__(self, other: ArrayLike, /) -> Array: ...
        def __rshift__(self, other: ArrayLike, /) -> Array: ...
        def __rrshift__(self, other: ArrayLike, /) -> Array: ...
        def __lt__(self, other: ArrayLike, /) -> Array: ...
        def __le__(self, other: ArrayLike, /) -> Array: ...
        def __gt__(self, other: ArrayLike, /) -> Array: ...
        def __ge__(self, other: ArrayLike, /) -> Array: ...
        def __eq__(self, other: object, /) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: object, /) -> Array: ...  # type: ignore[override]
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...

        # What concrete arrays have, and tracers refuse or lack: see `runtime.array`.

        def __array__(
            self, dtype: DTypeLike | None = None, copy: bool | None = None
        ) -> np.ndarray: ...

        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __dlpack__(
            self,
            *,
            stream: Any = None,
            max_version: tuple[int, int] | None = None,
            dl_device: Any = None,
            copy: bool | None = None,
        ) -> Any: ...
        def __dlpack_device__(self) -> tuple[int, int]: ...
        @property
        def sharding(self) -> Any: ...
        @property
        def device(self) -> Any: ...
        @property
        def committed(self) -> bool: ...
        @property
        def is_fully_addressable(self) -> bool: ...
        @property
        def is_fully_replicated(self) -> bool: ...
        @property
        def addressable_shards(self) -> list[Any]: ...
        @property
        def global_shards(self) -> list[Any]: ...
        def addressable_data(self, index: int) -> Array: ...
        def devices(self) -> set[Any]: ...
        def block_until_ready(self) -> Self: ...
        def copy_to_host_async(self) -> None: ...
        def delete(self) -> None: ...
        def is_deleted(self) -> bool: ...
        def is_ready(self) -> bool: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to that of another operand, as a Python number's does."""
        return self.aval.weak_type

    def __round__(self, ndigits: int | None = None) -> Array:
        # Python's `round(x)` is an integer, `round(x, n)` a float.
        face = array_methods.face
        return face.astype(face.round(self), int) if ndigits is None else face.round(self, ndigits)

    def __len__(self) -> int:
        return len(self.aval)

    def __iter__(self) -> Iterator[Array]:
        return array_methods.face.iterate(self)

    def __reversed__(self) -> Iterator[Array]:
        face = array_methods.face
        return face.iterate(face.flip(self, 0) if self.ndim else self)

    def __contains__(self, value: ArrayLike) -> Array:
        if self.ndim != 1:
            raise ValueError(f"`in` takes an array of one axis, got shape {self.shape}; use any()")
        if not array_methods.accepts(value):
            raise TypeError(f"`in` takes a number, got {type(value).__name__}")
        if np.shape(value):
            raise ValueError("`in` takes a number, got an array; use isin()")
        return array_methods.face.any(self == value)  # `in` takes its truth value

    def __getitem__(self, index: Index, /) -> Array:
        return array_methods.face.getitem(self, index)

    def __setitem__(self, index: Never, value: Never) -> None:
        raise TypeError(messages.item_assignment(type(self).__name__, source.statement()))

    def __delitem__(self, index: Any) -> None:
        raise TypeError(
            f"{type(self).__name__} object does not support item deletion: arrays are immutable. "
            "Use `perspex.numpy.delete`, which returns a new array."
        )

    @property
    def at(self) -> At:
        """`x.at[idx].set(y)` and its kin: a new array with some elements updated.

        The operations are `set add subtract multiply divide power min max apply get`.
        """
        return array_methods.face.at(self)

    @property
    def T(self) -> Array:
        """The array with its axes reversed."""
        return array_methods.face.transpose(self)

    @property
    def mT(self) -> Array:
        """The array with its last two axes swapped."""
        return array_methods.face.matrix_transpose(self)

    @property
    def real(self) -> Array:
        """The real part."""
        return array_methods.face.real(self)

    @property
    def imag(self) -> Array:
        """The imaginary part; zeros for an array of reals."""
        return array_methods.face.imag(self)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize

    def astype(self, dtype: DTypeLike | None, copy: bool = False, device: Any = None) -> Array:
        """The array converted to `dtype`."""
        return array_methods.face.astype(self, dtype, copy=copy, device=device)

    def reshape(
        self, *shape: SupportsIndex | Shape, order: str = "C", out_sharding: Any = None
    ) -> Array:
        """The same elements in another shape; one entry may be -1."""
        sizes: Any = shape[0] if len(shape) == 1 else shape
        return array_methods.face.reshape(self, sizes, order=order, out_sharding=out_sharding)

    def transpose(self, *axes: SupportsIndex | Sequence[int] | None) -> Array:
        """The array with its axes permuted; reversed when no axes are given."""
        if not axes or axes == (None,):
            return array_methods.face.transpose(self)
        return array_methods.face.transpose(self, axes[0] if len(axes) == 1 else axes)

    def flatten(self, order: str = "C", *, out_sharding: Any = None) -> Array:
        """The elements in one axis."""
        return array_methods.face.ravel(self, order=order, out_sharding=out_sharding)

    @property
    def flat(self) -> Never:
        """Refused: an iterator over memory that cannot be written to. Use `x.ravel()`."""
        raise NotImplementedError("arrays have no .flat, which could be assigned to; use x.ravel()")

    def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array:
        """The same bits as another dtype; `type`, a subclass of NumPy's array, is refused."""
        if type is not None:
            raise NotImplementedError("x.view(type=) is for subclasses of NumPy's array")
        return array_methods.face.view(self, dtype)

    def byteswap(self) -> Array:
        """The array with the bytes of each number in reverse order."""
        face = array_methods.face
        if self.itemsize == 1:
            return face.copy(self)
        if self.dtype.kind == "c":
            parts = face.stack([self.real.byteswap(), self.imag.byteswap()], -1)
            return face.view(parts, self.dtype)[..., 0]
        swapped = face.flip(face.view(self[..., None], "uint8"), -1)
        return face.view(swapped, self.dtype)[..., 0]

    def item(self, *args: int) -> Any:
        """The only element, or the one at `args`, as a Python number."""
        return np.asarray(self).item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return np.asarray(self).tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """The bytes of the elements."""
        return np.asarray(self).tobytes(order)  # type: ignore[arg-type]

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return array_methods.standard(api_version)

    @forwarded
    def all(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array: ...

    @forwarded
    def any(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array: ...

    @forwarded
    def argmax(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array: ...

    @forwarded
    def argmin(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array: ...

    @forwarded
    def argpartition(self, kth: int, axis: int = -1) -> Array: ...

    @forwarded
    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Array: ...

    @forwarded
    def choose(
        self, choices: Sequence[ArrayLike] | Array, out: None = None, mode: str = "raise"
    ) -> Array: ...

    @forwarded
    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array: ...

    def compress(
        self,
        condition: ArrayLike,
        axis: int | None = None,
        *,
        size: int | None = None,
        fill_value: ArrayLike = 0,
        out: None = None,
    ) -> Array:
        """`perspex.numpy.compress` of this array."""
        compress = array_methods.face.compress
        return compress(condition, self, axis, size=size, fill_value=fill_value, out=out)

    @forwarded
    def conj(self) -> Array: ...

    @forwarded
    def conjugate(self) -> Array: ...

    @forwarded
    def copy(self, order: str | None = None) -> Array: ...

    @forwarded
    def cumprod(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array: ...

    @forwarded
    def cumsum(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array: ...

    @forwarded
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array: ...

    @forwarded
    def dot(
        self,
        b: ArrayLike,
        *,
        precision: str | Enum | tuple[str | Enum, str | Enum] | None = None,
        preferred_element_type: DTypeLike | None = None,
        out_sharding: Any = None,
    ) -> Array: ...

    @forwarded
    def max(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array: ...

    @forwarded
    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array: ...

    @forwarded
    def min(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array: ...

    @forwarded
    def nonzero(
        self,
        *,
        size: int | None = None,
        fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
    ) -> tuple[Array, ...]: ...

    @forwarded
    def partition(self, kth: int, axis: int = -1) -> Array: ...

    @forwarded
    def prod(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array: ...

    @forwarded
    def ptp(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array: ...

    @forwarded
    def ravel(self, order: str = "C", *, out_sharding: Any = None) -> Array: ...

    @forwarded
    def repeat(
        self,
        repeats: ArrayLike,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: Any = None,
    ) -> Array: ...

    @forwarded
    def round(self, decimals: int = 0, out: None = None) -> Array: ...

    @forwarded
    def searchsorted(
        self,
        v: ArrayLike,
        side: str = "left",
        sorter: ArrayLike | None = None,
        *,
        method: str = "scan",
    ) -> Array: ...

    @forwarded
    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array: ...

    @forwarded
    def squeeze(self, axis: Axis = None) -> Array: ...

    @forwarded
    def std(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array: ...

    @forwarded
    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array: ...

    @forwarded
    def swapaxes(self, axis1: int, axis2: int) -> Array: ...

    @forwarded
    def take(
        self,
        indices: ArrayLike,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array: ...

    @forwarded
    def trace(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array: ...

    @forwarded
    def var(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array: ...
