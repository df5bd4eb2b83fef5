"""What keys are called, and which variables hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perspex.runtime.array import ArrayImpl
from perspex.runtime.keys import KeyArray
from perspex_magics.keys.lineage import Key, Keys, argument_at, names_at

_KEY_LENGTHS = (2, 4)


class Names:
    """What keys are called: by the notebook's variables now, or by the line that made them."""

    def __init__(self, lineage: Keys, namespace: Mapping[str, Any]) -> None:
        self.bound: dict[Key, str] = {}
        for name, value in list(namespace.items()):
            array = None if name.startswith("_") else numbers_of_keys(value)
            keys = [] if array is None else lineage.find(array)
            for i, key in enumerate(keys):
                self.bound.setdefault(key, name if len(keys) == 1 else f"{name}[{i}]")

    def of(self, key: Key) -> str:
        """The name of a key."""
        if key in self.bound:
            return self.bound[key]
        names = names_at(key.made.at) if key.made else []
        if len(names) == 1 and key.made and key.made.function == "split":
            return f"{names[0]}[{key.row}]"
        if key.row < len(names):
            return names[key.row]
        return argument_at(key.uses[0].at) if key.uses else "a key"


def numbers_of_keys(value: Any) -> Any:
    """The array of the numbers of a key or an array of them; `None` for anything else."""
    if value.__class__ is KeyArray:
        return value.base
    if value.__class__ is ArrayImpl and value.dtype.name == "uint32":
        return value if value.shape[-1:] and value.shape[-1] in _KEY_LENGTHS else None
    return None
