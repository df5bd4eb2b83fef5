"""Which modules are the user's own: files beside the notebook, and not what was installed."""

from __future__ import annotations

import functools
import sys
import sysconfig
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perspex.base import source
from perspex_magics.notebook.kinds import dict_of, is_a

_HOMES = ("stdlib", "platstdlib", "purelib", "platlib")
# Where Python finds its own modules and those of this environment, and what the folders are called
# in which it finds those of the user and of the system.
INSTALLED = tuple(dict.fromkeys(filter(None, map(sysconfig.get_path, _HOMES))))
_FOLDERS = {"site-packages", "dist-packages"}


def is_own(module: Any) -> bool:
    """Whether a module was read from a file of the user's, is a folder of such, or has no file.

    >>> import json
    >>> is_own(json)
    False
    """
    if not is_a(module, types.ModuleType):
        return False
    held = dict_of(module) or {}
    file = held.get("__file__")
    # A package without an `__init__.py` has folders only.
    files = [file] if file is not None else list(held.get("__path__") or ())
    if not files and held.get("__spec__") is None and held.get("__loader__") is None:
        # Made by hand, as the notebook's is, which is looked at by its names.
        return held.get("__name__") != "__main__"
    return any(isinstance(file, str) and is_own_file(file) for file in files)


def module_of(namespace: Mapping[str, Any]) -> types.ModuleType | None:
    """The module of the user's own whose variables these are, if they are those of one."""
    module = sys.modules.get(namespace.get("__name__", ""))
    is_its = module is not None and module.__dict__ is namespace
    return module if is_its and is_own(module) else None


@functools.cache
def is_own_file(file: str) -> bool:
    """Whether a file is the user's.

    >>> is_own_file("/home/ada/study/model.py")
    True
    >>> is_own_file("/home/ada/.local/lib/python3.12/site-packages/library.py")
    False
    """
    is_installed = file.startswith(INSTALLED) or not _FOLDERS.isdisjoint(Path(file).parts)
    return not is_installed and not source.is_internal(file)
