"""`jax._src.util`: small functions that the modules of JAX's inside share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import perspex.numpy as pnp
from perspex import dtypes
from perspex.as_jax.doors.api_util import safe_map as safe_map
from perspex.numpy.promotion import promote_dtypes

__all__ = ["promote_dtypes_inexact", "safe_map", "safe_zip", "unzip2"]


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The elements of lists in groups: `zip` with `strict=True`, as a list.

    Raises:
      ValueError: if the lists are not of one length.
    """
    lists = [list(arg) for arg in args]
    lengths = tuple([len(found) for found in lists])
    if len(set(lengths)) > 1:
        raise ValueError(f"safe_zip: the lists have the lengths {lengths}")
    return list(zip(*lists, strict=True))


def unzip2(xys: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first elements of pairs, and the second ones."""
    pairs = list(xys)
    return tuple([x for x, _ in pairs]), tuple([y for _, y in pairs])


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """Arrays of one dtype, that of floating-point or complex numbers to which all promote."""
    found = promote_dtypes("promote_dtypes_inexact", *args, to=dtypes.to_inexact_dtype)
    return [pnp.asarray(x) for x in found]
