"""What stands under all classes of sparse arrays: their base, and whether parts fit a shape.

What their operators and methods compute stands in rooms above this one: `methods` holds it, once
the package has been imported.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.experimental.sparse.util import Shape, check, check_indices
from perspex.tracing.trace import Tracer

__all__ = ["JAXSparse"]


class _Later:
    """The module `methods`, bound by the package: it stands above the formats."""

    def __init__(self) -> None:
        self.module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)


methods = _Later()


class JAXSparse:
    """What all sparse arrays have in common: a shape, numbers, and a name in print.

    >>> from perspex.experimental import sparse
    >>> isinstance(sparse.eye(3), sparse.JAXSparse)
    True
    """

    data: Any
    shape: Shape
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    # Operators between a dense array and a sparse one are the sparse one's.
    __array_priority__ = 100
    __array_ufunc__ = None

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        self.shape = tuple([operator.index(n) for n in shape])

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def nse(self) -> int:
        """The number of elements that are stored."""
        return self.data.size

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Any:
        return self.transpose()

    def __len__(self) -> int:
        return self.shape[0]

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its axes in another order, reversed if not given."""
        raise self._missing("transpose")

    def todense(self) -> Array:
        """The dense array."""
        raise self._missing("todense")

    def tree_flatten(self) -> tuple[Any, Any]:
        raise self._missing("tree_flatten")

    def block_until_ready(self) -> JAXSparse:
        """Wait until the arrays are computed."""
        for x in self.tree_flatten()[0]:
            x.block_until_ready()
        return self

    def _facts(self) -> str:
        return f"nse={self.nse}"

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            text = f"{name}({self.dtype}{list(self.shape)}, {self._facts()})"
        except Exception:  # inside of transforms the leaves need not be arrays
            text = f"{name}(<invalid>)"
        if isinstance(self.data, Tracer):
            text = f"{type(self.data).__name__}[{text}]"
        return text

    def _missing(self, name: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} has no {name}; convert it with todense(), or use BCOO"
        )

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        raise self._missing("sum")

    def __neg__(self) -> Any:
        raise self._missing("__neg__")

    def __pos__(self) -> Any:
        raise self._missing("__pos__")

    def __matmul__(self, other: Any) -> Any:
        raise self._missing("__matmul__")

    def __rmatmul__(self, other: Any) -> Any:
        raise self._missing("__rmatmul__")

    def __mul__(self, other: Any) -> Any:
        raise self._missing("__mul__")

    def __rmul__(self, other: Any) -> Any:
        raise self._missing("__rmul__")

    def __add__(self, other: Any) -> Any:
        raise self._missing("__add__")

    def __radd__(self, other: Any) -> Any:
        raise self._missing("__radd__")

    def __sub__(self, other: Any) -> Any:
        raise self._missing("__sub__")

    def __rsub__(self, other: Any) -> Any:
        raise self._missing("__rsub__")

    def __getitem__(self, item: Any) -> Any:
        raise self._missing("__getitem__")


def unflattened(cls: type, facts: Any, names: Sequence[str], children: Sequence[Any]) -> Any:
    """An object without a check of its children, which need not be arrays."""
    made: Any = object.__new__(cls)
    made.__dict__.update(zip(names, children, strict=True))
    made.__dict__.update(facts)
    return made


class BCOOProperties(NamedTuple):
    """How many axes of each kind a BCOO array has, and how many elements it stores."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


def validate_indices(indices: Any, shape: Sequence[int]) -> BCOOProperties:
    """The properties that indices give to an array of a shape; raises if they do not fit."""
    check_indices(indices)
    check(indices.ndim >= 2, f"indices of shape {indices.shape}: give [*batch, nse, n_sparse]")
    nse, n_sparse = indices.shape[-2:]
    n_batch = indices.ndim - 2
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0:
        raise ValueError(
            f"indices of shape {indices.shape} index {n_batch + n_sparse} axes, but the array has "
            f"the shape {tuple(shape)}"
        )
    check_batch("indices", indices.shape[:n_batch], shape[:n_batch])
    return BCOOProperties(n_batch, n_sparse, n_dense, nse)


def validate(data: Any, indices: Any, shape: Sequence[int]) -> BCOOProperties:
    """The properties of the parts of a BCOO array; raises if they do not fit."""
    props = validate_indices(indices, shape)
    n_batch, n_sparse, _, nse = props
    check_batch("data", data.shape[:n_batch], shape[:n_batch])
    wanted = (nse, *shape[n_batch + n_sparse :])
    if data.shape[n_batch:] != wanted:
        raise ValueError(
            f"data of shape {data.shape} does not fit indices of shape {indices.shape} in an array "
            f"of shape {tuple(shape)}; after {n_batch} batch axes it must be {wanted}"
        )
    return props


def check_batch(what: str, got: Sequence[int], wanted: Sequence[int]) -> None:
    if len(got) != len(wanted) or any(
        n not in (1, size) for n, size in zip(got, wanted, strict=True)
    ):
        raise ValueError(
            f"{what} batch dimensions {tuple(got)} are not compatible with those of the array, "
            f"{tuple(wanted)}; each must be the same or 1"
        )


def batched_facts(mat: Any) -> str:
    more = [f", {name}={n}" for name in ("n_batch", "n_dense") if (n := getattr(mat, name))]
    return f"nse={mat.nse}" + "".join(more)


def check_aux(name: str, facts: dict[str, Any], wanted: Sequence[str]) -> None:
    check(facts.keys() == set(wanted), f"{name}.tree_unflatten: invalid aux_data={facts}")


def diagonal(N: int, M: int, k: int, dtype: Any) -> tuple[Any, Any]:
    """The rows and columns of the elements on a diagonal."""
    size = max(0, min(N, M - k) if k > 0 else min(N + k, M))
    along = pnp.arange(size, dtype=dtype)
    return along + along.dtype.type(max(0, -k)), along + along.dtype.type(max(0, k))


class BCSRProperties(NamedTuple):
    """How many axes of each kind a BCSR array has, and how many elements it stores."""

    n_batch: int
    n_dense: int
    nse: int


def validate_rows(indices: Any, indptr: Any, shape: Sequence[int]) -> BCSRProperties:
    """The properties that indices in rows give to an array; raises if they do not fit."""
    check_indices(indices)
    check_indices(indptr, "indptr")
    n_batch = indices.ndim - 1
    n_dense = len(shape) - n_batch - 2
    check(n_dense >= 0, f"an array of shape {tuple(shape)} is no BCSR array with {n_batch=}")
    check_batch("indices", indices.shape[:n_batch], shape[:n_batch])
    check_batch("indptr", indptr.shape[:n_batch], shape[:n_batch])
    if indptr.shape[n_batch:] != (shape[n_batch] + 1,):
        raise ValueError(
            f"indptr shape {indptr.shape} must match the matrix shape plus 1: "
            f"{shape[n_batch] + 1} numbers for {shape[n_batch]} rows"
        )
    return BCSRProperties(n_batch, n_dense, indices.shape[-1])
