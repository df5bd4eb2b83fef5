"""Compiled programs as bytes, for another process: `jax.experimental.serialize_executable`.

The bytes are for one version of jaxlib and one kind of device, and reading them runs code: only
read what you trust. A program that has to outlive that is for `perspex.export`.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import tree
from perspex.api.stages import Compiled
from perspex.base import events, xla
from perspex.base.public import publish as _publish
from perspex.base.pytree_registry import PyTreeDef
from perspex.base.tree_paths import PyTree
from perspex.hlo.numbering import numbered_bytecode
from perspex.ir.avals import ShapedArray, shaped
from perspex.runtime import client
from perspex.runtime.compiler import cache, compiling
from perspex.runtime.compiler.kept import serialized as _code_of
from perspex.runtime.executable import Executable
from perspex.runtime.placed import placed

__all__ = ["deserialize_and_load", "serialize"]

# A type as plain data: shape, dtype, and whether it is weak.
_Type = tuple[tuple[int, ...], str, bool]


def _refusal(executable: Executable, compiled: Compiled) -> str:
    """Why a program cannot be written, or nothing."""
    if executable.engines is not None:
        return "it calls Python functions"
    if executable.has_effects or executable.token_place is not None:
        return "it has effects"
    if compiled._traced._program.pure is not None:
        return "it changes arrays in place"
    if executable.place is not executable.device:
        return "it runs on a mesh of devices"
    if not executable.is_plain or any(a.physical() is not a for a in executable.in_avals):
        return "it takes or gives typed keys; pass random.key_data of them"
    if any(executable.donated):
        return "it donates arguments"
    return ""


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """Write a compiled program as bytes. XLA compiles it once more for that.

    Args:
      compiled: what `jit(f).lower(...).compile()` returns, for one device.

    Returns:
      The bytes, and the trees of the arguments `(args, kwargs)` and of the results.

    Raises:
      ValueError: for a program that calls Python, has effects, changes arrays in place, donates
        arguments, takes or gives typed keys, or runs on a mesh, and where XLA has no such form of
        it.

    >>> import perspex
    >>> compiled = perspex.jit(lambda x: x + 1).lower(1.0).compile()
    >>> print(deserialize_and_load(*serialize(compiled))(2.0))
    3.0
    """
    executable = compiled._executable
    why = _refusal(executable, compiled)
    code = None if why else _code_of(_fresh(executable))
    if code is None:
        raise ValueError(
            f"serialize: the program `{executable.name}` cannot be written as bytes, because "
            f"{why or 'XLA has no such form of it'}; use perspex.export, which writes StableHLO"
        )
    written = {
        "jaxlib": xla.JAXLIB_VERSION,
        "platform": executable.device.platform,
        "name": executable.name,
        "code": code,
        "takes": [_plain(aval) for aval in executable.in_avals],
        "gives": [_plain(aval) for aval in executable.out_avals],
        "kept": list(executable.kept),
        "consts": [np.asarray(x) for x in executable.consts],
    }
    return pickle.dumps(written), compiled.in_tree, compiled.out_tree


def _fresh(executable: Executable) -> Any:
    """The program compiled once more: one that has run, or was read, may lack its functions."""
    device = executable.device
    options = cache.options_for(device, executable.compiler_options)
    with events.unheard():
        code = numbered_bytecode(executable.lowered_again().module.module)
    return compiling.here(device.client, [device], code, options).xla


def _plain(aval: ShapedArray) -> _Type:
    return aval.shape, str(aval.dtype), aval.weak_type


class Loaded:
    """A compiled program that was read. Call it with the arguments that were not static."""

    def __init__(
        self, written: dict[str, Any], in_tree: PyTreeDef, out_tree: PyTreeDef, device: Any
    ) -> None:
        self.in_tree, self.out_tree = in_tree, out_tree
        self._name = written["name"]
        self._takes = [ShapedArray(s, np.dtype(d), weak_type=w) for s, d, w in written["takes"]]
        self._kept = written["kept"]
        options = cache.options_for(device)
        self._xla = xla.deserialize([device], written["code"], options)
        self._sharding = client.sharding(device)
        self._consts = [placed(x, self._sharding) for x in written["consts"]]
        gives = [ShapedArray(s, np.dtype(d), weak_type=w) for s, d, w in written["gives"]]
        self._handlers = [xla.result_handler(aval, self._sharding, False) for aval in gives]

    def __call__(self, /, *args: Any, **kwargs: Any) -> PyTree:
        """Run the program; `TypeError` when the arguments are of other types."""
        leaves, in_tree = tree.flatten((args, kwargs))
        given = [shaped(x) for x in leaves]
        wanted = [aval.str_short() for aval in self._takes]
        if in_tree != self.in_tree or any(
            a.shape != b.shape or a.dtype != b.dtype
            for a, b in zip(given, self._takes, strict=False)
        ):
            raise TypeError(
                f"the program `{self._name}` was compiled for {', '.join(wanted)} in the tree "
                f"{self.in_tree}, got {', '.join([a.str_short() for a in given])} in {in_tree}; "
                "compile it again for these types"
            )
        buffers = [
            placed(x, self._sharding) for x, keep in zip(leaves, self._kept, strict=True) if keep
        ]
        outs = self._xla.execute_sharded([*self._consts, *buffers])
        return tree.unflatten(self.out_tree, outs.consume_with_handlers(self._handlers))


def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: str | None = None,
    execution_devices: Sequence[Any] | None = None,
) -> Loaded:
    """Read a compiled program, for a device of this process.

    Args:
      serialized, in_tree, out_tree: what `serialize` returned. Reading it runs code.
      backend: the platform; that of the default device, if not given.
      execution_devices: the device to run it on, in a sequence of one.

    Returns:
      A function of the arguments that the program was compiled for.

    Raises:
      ValueError: for another version of jaxlib or another kind of device than it was compiled for.
    """
    written = pickle.loads(serialized)
    devices = list(execution_devices or ([client.devices(backend)[0]] if backend else []))
    device = devices[0] if devices else client.default_device()
    here = (xla.JAXLIB_VERSION, device.platform)
    if (written["jaxlib"], written["platform"]) != here:
        raise ValueError(
            f"deserialize_and_load: the program `{written['name']}` was compiled by jaxlib "
            f"{written['jaxlib']} for {written['platform']}, but this is jaxlib {here[0]} with "
            f"{here[1]}; compile it again, or use perspex.export"
        )
    return Loaded(written, in_tree, out_tree, device)


_publish(globals())
