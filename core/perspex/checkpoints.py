"""Pytrees of arrays in a folder, and back: `perspex.save` and `perspex.load`.

A folder has an index, `tree.json`, and a folder for each time that it was saved, with one file of
NumPy for each part of each array. The index names the files and is replaced last, in one step. So a
process that dies in the middle of saving leaves the checkpoint of before.

Each process writes the parts that its devices hold, and no part is written twice. Reading takes
from the files what a device needs, whatever the devices were that wrote them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perspex import dtypes, random
from perspex import tree as trees
from perspex.api.placing import make_array_from_callback
from perspex.base.tree_paths import PyTree
from perspex.experimental.multihost_utils import sync_global_devices
from perspex.runtime import client
from perspex.runtime.array import ArrayImpl
from perspex.runtime.dispatch import device_put
from perspex.runtime.keys import KeyArray
from perspex.runtime.shards import shards
from perspex.tracing.trace import Tracer

__all__ = ["load", "save"]

_FORMAT, _VERSION = "perspex checkpoint", 1
_INDEX = "tree.json"
# What numbers of Python are called in the index.
_NUMBERS: dict[str, type] = {"bool": bool, "int": int, "float": float, "complex": complex}
# In place of bits that NumPy has no dtype for.
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32}

Ranges = tuple[tuple[int, int], ...]


def save(path: str | os.PathLike[str], tree: PyTree, *, overwrite: bool = False) -> None:
    """Write a pytree of arrays into a folder, one file for each part of an array.

    All processes call it with the same tree; each writes what its devices hold. The folder has the
    new checkpoint when the call returns, and if it does not, still the old one.

    Args:
      path: the folder, which is made. On several machines it must be the same folder for all.
      tree: a pytree of arrays of any dtype, typed keys, NumPy arrays and numbers of Python.
      overwrite: whether to replace a checkpoint that is there.

    Returns:
      Nothing.

    Raises:
      FileExistsError: if `path` exists and is not to be replaced, or is no checkpoint.
      TypeError: if a leaf is none of these, or traced.

    >>> import tempfile, perspex, perspex.numpy as jnp
    >>> folder = tempfile.mkdtemp() + "/step-10"
    >>> save(folder, {"w": jnp.ones((2, 3), jnp.bfloat16), "step": 10})
    >>> load(folder)["step"], load(folder)["w"].dtype
    (10, dtype(bfloat16))
    """
    folder = Path(path)
    leaves = [(_name(keys), leaf) for keys, leaf in _leaves(tree)]
    for name, leaf in leaves:
        _check(leaf, name, folder)
    number = _next(folder, overwrite)
    written = folder / str(number)
    several = client.process_count() > 1
    if several:  # until all have looked at the folder, nobody changes it
        sync_global_devices(f"perspex.save {path}: looked")
    if client.process_index() == 0:
        written.mkdir(parents=True)
    if several:
        sync_global_devices(f"perspex.save {path}: begin")
    entries = [
        {"path": name, "leaf": i, **_written(leaf, written, i)}
        for i, (name, leaf) in enumerate(leaves)
    ]
    if several:
        sync_global_devices(f"perspex.save {path}: written")
    if client.process_index() == 0:
        index = {
            "format": _FORMAT,
            "version": _VERSION,
            "saved": number,
            "tree": _described(tree),
            "leaves": entries,
        }
        _replace(folder / _INDEX, json.dumps(index, indent=1).encode())
        for old in folder.iterdir():
            if old.is_dir() and old.name.isdigit() and int(old.name) != number:
                shutil.rmtree(old)
    if several:
        sync_global_devices(f"perspex.save {path}: done")


def load(path: str | os.PathLike[str], like: PyTree = None, *, sharding: Any = None) -> PyTree:
    """Read what `save` has written, onto any number of devices.

    Args:
      path: the folder.
      like: a pytree with the structure of the result: arrays, or `ShapeDtypeStruct`s with the
        shapes and dtypes of the saved ones. Where such a leaf has a sharding, the array gets it.
        Without it the tree has the dicts, lists and tuples that were saved.
      sharding: where all arrays go, in place of what `like` says. Without either they lie whole on
        the default device.

    Returns:
      The tree. NumPy arrays and numbers of Python come back as such.

    Raises:
      FileNotFoundError: if there is no checkpoint, or a file of it is missing.
      ValueError: if the checkpoint is damaged, does not fit `like` (the error names the leaf), or
        has containers that only `like` can describe.

    >>> import tempfile, perspex, perspex.numpy as jnp
    >>> folder = tempfile.mkdtemp() + "/weights"
    >>> save(folder, [jnp.arange(3), {"scale": 0.5}])
    >>> load(folder)
    [Array([0, 1, 2], dtype=int32), {'scale': 0.5}]
    >>> load(folder, [jnp.zeros(3, jnp.int32), {"scale": 0.0}])
    [Array([0, 1, 2], dtype=int32), {'scale': 0.5}]
    """
    folder = Path(path)
    index = _index(folder)
    files = folder / str(index["saved"])
    entries = index["leaves"]
    if like is None:
        found = [_read(entry, files, None, sharding) for entry in entries]
        return _built(index["tree"], iter(found), folder)
    wanted = {_name(keys): leaf for keys, leaf in _leaves(like)}
    saved = {entry["path"]: entry for entry in entries}
    for one, other, what in ((wanted, saved, "has no"), (saved, wanted, "also has")):
        if missing := [name for name in one if name not in other]:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise ValueError(
                f"load: the checkpoint {folder} {what} leaf `tree{missing[0]}`{more}; give a "
                "`like` with the structure that was saved"
            )
    found = [_read(saved[name], files, leaf, sharding) for name, leaf in wanted.items()]
    return trees.unflatten(trees.structure(like), found)


# ---- Trees --------------------------------------------------------------------------------------


def _leaves(value: PyTree) -> list[tuple[Any, Any]]:
    return list(trees.flatten_with_path(value)[0])


def _name(keys: Any) -> str:
    return trees.keystr(keys)


def _described(value: Any) -> Any:
    """The containers of a tree, for the index; `None` for leaves, `"?"` for classes of users."""
    kind = type(value)
    if value is None:
        return "none"
    if kind is dict and all(type(key) in (str, int, bool) for key in value):
        # In the order of the leaves.
        return {"dict": [[key, _described(value[key])] for key in sorted(value)]}
    if kind in (list, tuple):
        return {kind.__name__: [_described(item) for item in value]}
    return None if trees.all_leaves([value]) else "?"


def _built(described: Any, leaves: Iterator[Any], folder: Path) -> Any:
    if described is None:
        return next(leaves)
    if described == "none":
        return None
    if described == "?":
        raise ValueError(
            f"load: the checkpoint {folder} has containers other than dicts, lists and tuples; "
            "pass a tree of the same structure as `like`"
        )
    (kind, items), *_ = described.items()
    if kind == "dict":
        return {key: _built(item, leaves, folder) for key, item in items}
    made = [_built(item, leaves, folder) for item in items]
    return made if kind == "list" else tuple(made)


# ---- Writing ------------------------------------------------------------------------------------


def _check(leaf: Any, name: str, folder: Path) -> None:
    if isinstance(leaf, Tracer):
        raise TypeError(
            f"save: leaf `tree{name}` for {folder} is a traced value ({leaf.aval}); save what the "
            "compiled function returns"
        )
    kind = type(leaf)
    is_array = kind in (ArrayImpl, KeyArray) or (
        isinstance(leaf, (np.ndarray, np.generic)) and not leaf.dtype.hasobject
    )
    if not is_array and kind not in _NUMBERS.values():
        raise TypeError(
            f"save: leaf `tree{name}` for {folder} has type {kind.__name__}; a checkpoint has "
            "arrays, typed keys and numbers"
        )
    if kind in (ArrayImpl, KeyArray) and leaf.is_deleted():
        raise ValueError(f"save: leaf `tree{name}` for {folder} was deleted or donated")


def _next(folder: Path, overwrite: bool) -> int:
    """The number of this time; the folder is checked."""
    if not folder.exists():
        return 1
    is_empty = folder.is_dir() and not any(folder.iterdir())
    taken = [int(one.name) for one in folder.glob("[0-9]*") if one.name.isdigit()]
    is_ours = (folder / _INDEX).exists() or (folder.is_dir() and bool(taken))
    if not is_empty and not (overwrite and is_ours):
        why = "pass overwrite=True to replace it" if is_ours else "it is no checkpoint"
        raise FileExistsError(f"save: {folder} exists; {why}")
    return max(taken, default=0) + 1


def _written(leaf: Any, folder: Path, number: int) -> dict[str, Any]:
    """Write a leaf, or the parts of it that this process has; returns its entry."""
    kind = type(leaf)
    if kind in _NUMBERS.values():
        value = [leaf.real, leaf.imag] if kind is complex else leaf
        return {"number": kind.__name__, "value": value}
    entry: dict[str, Any] = {}
    if kind is KeyArray:
        entry["key"] = str(random.key_impl(leaf))
        leaf = random.key_data(leaf)
    entry |= {"shape": list(leaf.shape), "dtype": np.dtype(leaf.dtype).name, "parts": []}
    if type(leaf) is not ArrayImpl:
        entry["numpy"] = True
        if client.process_index() == 0:
            _write(folder / f"{number}.0.npy", np.asarray(leaf))
        entry["parts"].append([[0, n] for n in leaf.shape])
        return entry
    numbers: dict[Ranges, int] = {}
    # An array that each process has for itself is the same in all: the first writes it.
    is_own = client.process_count() > 1 and leaf.is_fully_addressable
    for shard in shards(leaf, everywhere=True):
        place = _ranges(shard.index, leaf.shape)
        if place not in numbers:
            numbers[place] = len(numbers)
            entry["parts"].append([list(range_) for range_ in place])
            is_here = shard.data is not None and not (is_own and client.process_index())
            if is_here:
                _write(folder / f"{number}.{numbers[place]}.npy", np.asarray(shard.data))
    return entry


def _ranges(index: Sequence[slice], shape: Sequence[int]) -> Ranges:
    return tuple([part.indices(n)[:2] for part, n in zip(index, shape, strict=True)])


def _write(file: Path, values: np.ndarray) -> None:
    if values.dtype.isbuiltin != 1:
        values = values.view(_BITS[values.dtype.itemsize])
    with open(file, "wb") as out:
        np.lib.format.write_array(out, np.asarray(values, order="C"), allow_pickle=False)
        out.flush()
        os.fsync(out.fileno())


def _replace(file: Path, content: bytes) -> None:
    """Write a file in one step: readers see the old one or the new one."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    with open(new, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    os.replace(new, file)


# ---- Reading ------------------------------------------------------------------------------------


def _index(folder: Path) -> dict[str, Any]:
    file = folder / _INDEX
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"load: {folder} is no checkpoint: it has no {_INDEX}") from None
    except ValueError as error:
        raise ValueError(f"load: {file} is damaged: {error}") from None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError(f"load: {file} is not the index of a checkpoint")
    if found["version"] != _VERSION:
        raise ValueError(
            f"load: {folder} has version {found['version']} of the format, and this Perspex reads "
            f"version {_VERSION}"
        )
    return found


def _read(entry: dict[str, Any], folder: Path, like: Any, sharding: Any) -> Any:
    name = entry["path"]
    if "number" in entry:
        kind = _NUMBERS[entry["number"]]
        value = entry["value"]
        return complex(*value) if kind is complex else kind(value)
    dtype, shape = np.dtype(_dtype(entry["dtype"])), tuple(entry["shape"])
    if like is not None:
        _compare(entry, like, folder)
        sharding = getattr(like, "sharding", None) if sharding is None else sharding
        if type(like) is ArrayImpl and not like.committed:
            sharding = None
    parts = _Parts(entry, folder, dtype, shape)
    if entry.get("numpy"):
        return parts.at(tuple([(0, n) for n in shape]))
    if "key" not in entry and dtypes.canonicalize_dtype(dtype) != dtype:
        raise ValueError(
            f"load: leaf `tree{name}` of {folder.parent} has the dtype {dtype.name}, which needs "
            '`perspex.config.update("enable_x64", True)`'
        )
    if "key" in entry:
        whole = parts.at(tuple([(0, n) for n in shape]))
        keys = random.wrap_key_data(whole, impl=entry["key"])
        return keys if sharding is None else device_put(keys, sharding)
    if sharding is None:
        return device_put(parts.at(tuple([(0, n) for n in shape])))
    return make_array_from_callback(
        shape, sharding, lambda index: parts.at(_ranges(index, shape)), dtype
    )


def _dtype(name: str) -> Any:
    return getattr(dtypes, name, None) or name


def _compare(entry: dict[str, Any], like: Any, folder: Path) -> None:
    """Raise if a leaf is not what the caller expects."""
    shape, dtype = np.shape(like), getattr(like, "dtype", None)
    if dtype is None:
        return
    is_key = dtypes.issubdtype(dtype, dtypes.prng_key)
    saved = tuple(entry["shape"])
    saved = saved[: len(shape)] if "key" in entry and is_key else saved
    name = f"key<{entry['key']}>" if "key" in entry else entry["dtype"]
    wanted = str(dtype) if is_key else np.dtype(dtype).name
    if saved != shape or ("key" in entry) != is_key or (not is_key and name != wanted):
        raise ValueError(
            f"load: leaf `tree{entry['path']}` of {folder.parent} is {name}{list(entry['shape'])}, "
            f"and `like` has {wanted}{list(shape)}"
        )


class _Parts:
    """The files of one array; each is opened when something in it is asked for."""

    def __init__(
        self, entry: dict[str, Any], folder: Path, dtype: np.dtype, shape: tuple[int, ...]
    ) -> None:
        self.entry, self.folder, self.dtype, self.shape = entry, folder, dtype, shape

    def at(self, wanted: Ranges) -> np.ndarray:
        """The numbers in these ranges, from all files that have some of them."""
        found = np.empty([stop - start for start, stop in wanted], self.dtype)
        for i, ranges in enumerate(self.entry["parts"]):
            common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(ranges, wanted, strict=True)]
            if any(start >= stop for start, stop in common):
                continue
            there = tuple(
                [slice(s - a, e - a) for (s, e), (a, _) in zip(common, ranges, strict=True)]
            )
            here = tuple(
                [slice(s - a, e - a) for (s, e), (a, _) in zip(common, wanted, strict=True)]
            )
            found[here] = self._file(i, ranges)[there]
        return found

    def _file(self, part: int, ranges: Sequence[Sequence[int]]) -> np.ndarray:
        file = self.folder / f"{self.entry['leaf']}.{part}.npy"
        name = f"leaf `tree{self.entry['path']}`"
        try:
            values = np.load(file, mmap_mode="r" if ranges else None, allow_pickle=False)
        except FileNotFoundError:
            raise FileNotFoundError(f"load: {file} is missing, a part of {name}") from None
        except (ValueError, EOFError, OSError) as error:
            raise ValueError(f"load: {file}, a part of {name}, is damaged: {error}") from None
        shape = tuple([stop - start for start, stop in ranges])
        if values.shape != shape or values.dtype.itemsize != self.dtype.itemsize:
            raise ValueError(
                f"load: {file}, a part of {name}, is damaged: it has shape {values.shape} and "
                f"dtype {values.dtype}, and should have {shape} and {self.dtype}"
            )
        return values if values.dtype == self.dtype else values.view(self.dtype)
