"""Where compiled programs are kept on disk: JAX's functions for Perspex's own cache.

They set the flag `compilation_cache_dir`. What is kept, and which folders are refused, is the same
as without them (docs/cache.md).
"""

from __future__ import annotations

import os

from perspex import config
from perspex.runtime.compiler import disk

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str] | None) -> None:
    """Keep compiled programs in a folder, for this process and the next.

    The same as `perspex.config.update("compilation_cache_dir", path)`. Loading a program runs code
    from the folder: Perspex refuses one that others may write to, with a warning.

    Args:
      path: the folder, which is made if it is not there; `None` for none.

    Returns:
      Nothing.

    Raises:
      Nothing.

    >>> from perspex.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.set_cache_dir(None)
    """
    config.update("compilation_cache_dir", None if path is None else os.fspath(path))


def reset_cache() -> None:
    """Open the folder of the cache again when it is needed next.

    After this, a folder that was refused is looked at again. Programs in memory stay; for those
    see `clear_caches`.

    Returns:
      Nothing.

    Raises:
      Nothing.

    >>> from perspex.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.reset_cache()
    """
    disk.reset()
