"""One short line for any value, of bounded length and cost, without waiting for a device."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from perspex.base import source
from perspex.runtime.array import ArrayImpl

_LENGTH = 60
_ITEMS = 4
_FEW = 6


def brief(value: Any, depth: int = 2) -> str:
    """A value as messages show it.

    Arrays show their numbers if these are few and already computed. No user code runs: an object
    is shown by its type.

    >>> import numpy as np
    >>> brief([1, 2.5, "a", np.zeros((20, 3))])
    "[1, 2.5, 'a', float64[20,3]]"
    >>> brief(np.array([1.0, 2.0]))
    'float64[2] [1.0, 2.0]'
    >>> brief(list(range(100)))
    '[0, 1, 2, 3, ...] (100 items)'
    """
    text = _brief(value, depth)
    text = " ".join(text.split())
    return text if len(text) <= _LENGTH else text[: _LENGTH - 4] + " ..."


def _brief(value: Any, depth: int) -> str:
    kind = type(value)
    if isinstance(value, str | bytes):
        return repr(value[:_LENGTH])
    if kind in (bool, float, complex, type(None), type(...), range) or (
        kind is int and abs(value) < 10**40
    ):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        return _array(value, True)
    if isinstance(value, ArrayImpl):
        return _array(value, not value.is_deleted() and value.is_ready())
    if depth <= 0 and isinstance(value, dict | list | tuple | set | frozenset) and value:
        left, right = "[]" if kind is list else "()" if kind is tuple else "{}"
        return f"{left}...{right} ({len(value)} items)"
    if isinstance(value, dict):
        items = [f"{_brief(k, 0)}: {_brief(v, depth - 1)}" for k, v in list(value.items())[:_ITEMS]]
        return _bracketed("{", items, "}", len(value))
    if isinstance(value, list | tuple | set | frozenset):
        items = [_brief(item, depth - 1) for item in list(value)[:_ITEMS]]
        left, right = "[]" if kind is list else "()" if kind is tuple else "{}"
        return _bracketed(left, items, right, len(value))
    if isinstance(value, types.ModuleType):
        return f"the module {value.__name__}"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    # Reads existing attributes only: a `__getattr__` would run user code.
    function = (getattr(value, "__dict__", None) or {}).get("__wrapped__", value)
    is_function = isinstance(function, types.FunctionType | types.MethodType)
    code = getattr(function, "__code__", None) if is_function else None
    if isinstance(code, types.CodeType):
        return f"the function of {source.line_name(code.co_filename, code.co_firstlineno)}"
    return f"an instance of {kind.__qualname__}"


def _bracketed(left: str, items: list[str], right: str, count: int) -> str:
    if count > len(items):
        return f"{left}{', '.join(items)}, ...{right} ({count} items)"
    return f"{left}{', '.join(items)}{right}"


def _array(value: Any, readable: bool) -> str:
    text = f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if value.size > _FEW or not readable or value.dtype.hasobject:
        return text
    numbers = np.asarray(value)
    items = numbers.reshape(-1).tolist()
    shown = [repr(float(f"{x:.6g}")) if isinstance(x, float) else str(x) for x in items]
    return f"{text} {shown[0] if value.ndim == 0 else '[' + ', '.join(shown) + ']'}"
