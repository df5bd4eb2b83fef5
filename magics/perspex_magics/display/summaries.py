"""One short line for any value, of bounded length and cost, without waiting for a device."""

from __future__ import annotations

import itertools
import types
from typing import Any

import numpy as np

from perspex.base import source
from perspex.runtime.array import ArrayImpl
from perspex_magics.notebook.kinds import dict_of, is_a, items, plain

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
    if is_a(value, str | bytes):
        return repr(plain(value)[:_LENGTH])
    if kind in (bool, float, complex, type(None), type(...), range) or (
        kind is int and abs(value) < 10**40
    ):
        return repr(value)
    if is_a(value, np.ndarray | np.generic):
        return _array(value, True)
    if is_a(value, ArrayImpl):
        return _array(value, not value.is_deleted() and value.is_ready())
    if is_a(value, dict | list | tuple | set | frozenset):
        return _container(value, kind, depth)
    if is_a(value, types.ModuleType):
        return f"the module {(dict_of(value) or {}).get('__name__')}"
    if is_a(value, type):
        return f"the class {value.__qualname__}"
    function = (dict_of(value) or {}).get("__wrapped__", value)
    if is_a(function, types.MethodType):
        function = function.__func__
    if is_a(function, types.FunctionType):
        code = function.__code__
        return f"the function of {source.line_name(code.co_filename, code.co_firstlineno)}"
    return f"an instance of {kind.__qualname__}"


def _container(value: Any, kind: type, depth: int) -> str:
    found = items(value)
    assert found is not None
    inside, count = found
    first = list(itertools.islice(inside, _ITEMS))
    if is_a(value, dict):
        left, right = "{", "}"
        shown = [f"{_brief(k, 0)}: {_brief(v, depth - 1)}" for k, v in first] if depth > 0 else []
    else:
        left, right = "[]" if kind is list else "()" if kind is tuple else "{}"
        shown = [_brief(item, depth - 1) for _, item in first] if depth > 0 else []
    if depth <= 0 and count:
        return f"{left}...{right} ({count} items)"
    return _bracketed(left, shown, right, count)


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
    shown = [repr(float(f"{x:.6g}")) if is_a(x, float) else str(x) for x in items]
    return f"{text} {shown[0] if value.ndim == 0 else '[' + ', '.join(shown) + ']'}"
