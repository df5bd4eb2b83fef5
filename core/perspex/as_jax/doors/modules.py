"""Modules of StableHLO as libraries put them together: tokens, axes, and modules in one."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from perspex.base.xla import ir
from perspex.export import calling
from perspex.hlo import types
from perspex.layout.abstract import AbstractMesh
from perspex.layout.mesh import Mesh

# The kinds of channels in StableHLO.
DEVICE_TO_DEVICE_TYPE = 1
SEND_TO_HOST_TYPE = 2
RECV_FROM_HOST_TYPE = 3

Token = ir.Value


def token_type() -> Any:
    """The type of tokens."""
    return ir.Type.parse("!stablehlo.token", types.context)


class TokenSet:
    """A token for each of some effects; it does not change."""

    def __init__(self, tokens: dict[Any, Any] | None = None) -> None:
        self._tokens = dict(tokens or {})

    @classmethod
    def create(cls, effects: Iterable[Any]) -> TokenSet:
        """A new token for each effect, written where the library writes now."""
        made = ("stablehlo.create_token", token_type())
        return cls({e: ir.Operation.create(made[0], results=[made[1]]).result for e in effects})

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Any) -> Any:
        """The token of an effect; raises `KeyError` if it has none."""
        return self._tokens[effect]

    def items(self) -> Sequence[tuple[Any, Any]]:
        """The effects with their tokens."""
        return tuple(self._tokens.items())

    def effects(self) -> set[Any]:
        """The effects that have a token."""
        return set(self._tokens)

    def subset(self, effects: Iterable[Any]) -> TokenSet:
        """The tokens of some of the effects."""
        return TokenSet({effect: self._tokens[effect] for effect in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """The set with the tokens of another one instead of its own."""
        return TokenSet(self._tokens | tokens._tokens)


@dataclasses.dataclass(frozen=True)
class SPMDAxisContext:
    """The mesh of a program, and those of its axes over which the program is that of one device."""

    mesh: Mesh
    manual_axes: frozenset[Hashable] = frozenset()


@dataclasses.dataclass(frozen=True)
class ShardingContext:
    """How many devices a program is for, and which."""

    num_devices: int
    device_assignment: tuple[Any, ...] | None = None
    abstract_mesh: AbstractMesh | None = None


AxisContext = SPMDAxisContext | ShardingContext


class _Merging:
    """A module that functions are moved into, in the form that `calling.merge` writes to."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.taken = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in module.body.operations
            if "sym_name" in op.attributes
        }

    def _fresh(self, name: str) -> str:
        found, count = name, 0
        while found in self.taken:
            found, count = f"{name}_{count}", count + 1
        self.taken.add(found)
        return found


def merge_mlir_modules(
    dst_module: Any, sym_name: str, src_module: Any, dst_symtab: Any = None
) -> str:
    """Move the functions of a module into another one, which renames none of its own.

    Returns the symbol there of the `main` of `src_module`: `sym_name`, or one like it that is free.
    """
    found: str = calling.merge(_Merging(dst_module), src_module, sym_name)
    for op in dst_module.body.operations if dst_symtab is not None else ():
        if "sym_name" in op.attributes and op.attributes["sym_name"].value not in dst_symtab:
            dst_symtab.insert(op)
    return found
