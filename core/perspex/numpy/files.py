"""Arrays from buffers, texts and files, and into files."""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from perspex import dtypes
from perspex.arguments.types import Array, DTypeLike
from perspex.numpy.creation import asarray

__all__ = ["frombuffer", "fromfile", "fromiter", "fromstring", "load", "save", "savez"]


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """An array from the bytes of a buffer.

    Args:
      buffer: bytes, a memory view, or another object with a buffer.
      dtype: how to read the bytes.
      count: how many elements to read; -1 reads all.
      offset: where to begin, in bytes.

    Returns:
      An array of one axis.

    Raises:
      ValueError: if the size of the buffer is no multiple of the size of an element.
      TypeError: if `buffer` has no bytes.

    >>> import perspex.numpy as jnp
    >>> jnp.frombuffer(bytes([1, 0, 2, 0]), jnp.int16)
    Array([1, 2], dtype=int16)
    """
    return asarray(np.frombuffer(buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """An array from the numbers in a text.

    Args:
      string: the text.
      dtype: the dtype of the numbers.
      count: how many numbers to read; -1 reads all.
      sep: what stands between the numbers, such as `","` or `" "`.

    Returns:
      An array of one axis.

    Raises:
      ValueError: for a text that holds something else, and for an empty `sep`.

    >>> import perspex.numpy as jnp
    >>> jnp.fromstring("1 2", int, sep=" ")
    Array([1, 2], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Not available: a traced program would read the iterator only once.

    Returns:
      Nothing: use `jnp.asarray(np.fromiter(...))`.

    Raises:
      NotImplementedError: always.

    >>> import numpy as np
    >>> import perspex.numpy as jnp
    >>> jnp.asarray(np.fromiter(range(3), int))
    Array([0, 1, 2], dtype=int32)
    """
    raise NotImplementedError(
        "fromiter reads an iterator, which a traced program would do only once; "
        "use jnp.asarray(np.fromiter(...))"
    )


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Not available: a traced program would read the file only once.

    Returns:
      Nothing: use `jnp.asarray(np.fromfile(...))`.

    Raises:
      NotImplementedError: always.

    >>> import io
    >>> import numpy as np
    >>> import perspex.numpy as jnp
    >>> jnp.asarray(np.frombuffer(io.BytesIO(bytes([1, 2])).read(), np.uint8))
    Array([1, 2], dtype=uint8)
    """
    raise NotImplementedError(
        "fromfile reads a file, which a traced program would do only once; "
        "use jnp.asarray(np.fromfile(...))"
    )


def load(file: str | os.PathLike[str] | IO[bytes], *args: Any, **kwargs: Any) -> Any:
    """The array that `save` wrote.

    Args:
      file: a path or an open binary file.
      args, kwargs: passed on to `numpy.load`.

    Returns:
      An array; for a file with several of them what `numpy.load` returns.

    Raises:
      OSError: if the file cannot be read.
      ValueError: for a file with Python objects, unless `allow_pickle=True`.

    >>> import io
    >>> import perspex.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    out = np.load(file, *args, **kwargs)
    if not isinstance(out, np.ndarray):
        return out
    # NumPy's format has no name for bfloat16.
    return asarray(out.view(dtypes.bfloat16) if out.dtype == np.dtype("V2") else out)


save = np.save
savez = np.savez
