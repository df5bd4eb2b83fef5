"""What the namespace can do, in the words of the array API standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.runtime import client
from perspex.tracing.array_methods import API_VERSION

__all__ = ["__array_api_version__", "__array_namespace_info__"]

__array_api_version__ = API_VERSION

_KINDS = {
    "bool": ["bool"],
    "signed integer": ["int8", "int16", "int32", "int64"],
    "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
    "real floating": ["float32", "float64"],
    "complex floating": ["complex64", "complex128"],
}
_GROUPS = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


class _Info:
    """Answers about capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """What depends on values: nothing may, and how many axes an array may have."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """`None`: arrays go where `default_device` says."""

    def devices(self) -> tuple[Any, ...]:
        """The devices, and `None` for the default one."""
        return (None, *client.devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of numbers that name none."""
        whole = dtypes.canonicalize_dtype(np.int64)
        return {
            "real floating": dtypes.canonicalize_dtype(np.float64),
            "complex floating": dtypes.canonicalize_dtype(np.complex128),
            "integral": whole,
            "indexing": whole,
        }

    def dtypes(
        self, *, device: Any = None, kind: str | Sequence[str] | None = None
    ) -> dict[str, np.dtype]:
        """The dtypes by name, of a kind or of several; `ValueError` for an unknown one."""
        kinds = list(_KINDS) if kind is None else [kind] if isinstance(kind, str) else list(kind)
        unknown = [k for k in kinds if k not in _KINDS and k not in _GROUPS]
        if unknown:
            raise ValueError(
                f"unknown kind of dtypes {unknown[0]!r}; there are {[*_KINDS, *_GROUPS]}"
            )
        wanted = {part for k in kinds for part in _GROUPS.get(k, (k,))}
        names = [name for k, names in _KINDS.items() if k in wanted for name in names]
        found = {name: np.dtype(name) for name in names}
        return {
            name: dtype
            for name, dtype in found.items()
            if dtypes.canonicalize_dtype(dtype) == dtype
        }


def __array_namespace_info__() -> _Info:  # noqa: N807 - the name in the standard
    """What the namespace can do: https://data-apis.org/array-api/latest

    Returns:
      An object with methods `capabilities`, `default_device`, `default_dtypes`, `devices` and
      `dtypes`.

    Raises:
      Nothing.

    >>> __array_namespace_info__().capabilities()["boolean indexing"]
    False
    """
    return _Info()
