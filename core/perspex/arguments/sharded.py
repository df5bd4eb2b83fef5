"""The argument `out_sharding`: how the result lies along explicit axes of a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perspex.api.explicit import auto_axes
from perspex.layout.context import canonical
from perspex.layout.named import NamedSharding
from perspex.layout.spec import PartitionSpec
from perspex.ops.placing import resharded

# What such an argument may be.
OutSharding = NamedSharding | PartitionSpec | None

_NOTHING: dict[str, Any] = {}
# What docstrings say of it.
WORDS = (
    "how the result lies along explicit axes of the mesh of `set_mesh`: a sharding, or a "
    "`PartitionSpec`; as the operands say if not given."
)


def asked(name: str, given: OutSharding, word: str = "out_sharding") -> dict[str, Any]:
    """The params, by `word`, of an operation that takes the sharding of its result."""
    if given is None:
        return _NOTHING
    sharding = canonical(given, name)
    return _NOTHING if sharding is None else {word: sharding}


def lying(name: str, given: OutSharding, out: Any) -> Any:
    """The result of an operation, moved to where it is asked to lie."""
    sharding = None if given is None else canonical(given, name)
    return out if sharding is None else resharded(out, sharding)


def decided(given: OutSharding, f: Callable[..., Any], *arrays: Any) -> Any:
    """`f(*arrays)`; where a sharding is asked for, the compiler decides how all else lies."""
    return f(*arrays) if given is None else auto_axes(f, out_sharding=given)(*arrays)
