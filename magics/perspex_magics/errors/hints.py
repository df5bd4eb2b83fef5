"""Notes on errors that say too little: misspelled names, missing modules, static arguments.

Python adds "Did you mean" where it prints an error itself, and IPython prints without. The error
about a static argument without a hash comes from jaxlib, which knows its value and not its name.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from types import ModuleType, TracebackType
from typing import Any

from perspex.advice.code import UNKNOWN, Place, place_of
from perspex.base import source
from perspex.jitted.compiled import owners

_OURS = re.compile(r"(perspex|jax)(\.\w+)*$")
_NOT_IMPORTED = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_ABSENT = re.compile(r"has no `(jax[\w.]*)\.(\w+)`")
_UNHASHABLE = "Non-hashable static arguments"
_REMEDIES = {
    "list": "a tuple has one",
    "dict": "`tuple(sorted(d.items()))` has one, or a frozen dataclass",
    "set": "a `frozenset` has one",
}


def add_hint(error: BaseException, tb: TracebackType | None) -> None:
    """Add a note to an error that says what was meant, or which argument it is about."""
    text = ""
    if isinstance(error, AttributeError):
        text = _attribute(error)
    elif isinstance(error, ImportError):
        text = _imported(error)
    elif isinstance(error, ValueError) and str(error).startswith(_UNHASHABLE):
        text = _unhashable(tb)
    if text and text not in getattr(error, "__notes__", ()):
        error.add_note(text)


def _attribute(error: AttributeError) -> str:
    absent = _ABSENT.search(str(error))
    if absent:
        return _meant(absent[2], sys.modules.get(absent[1]))
    holder, name = error.obj, error.name
    is_module = isinstance(holder, ModuleType) and bool(_OURS.match(holder.__name__))
    is_array = _is_array(holder)
    return _meant(name, holder) if name and (is_module or is_array) else ""


def _imported(error: ImportError) -> str:
    found = _NOT_IMPORTED.search(str(error))
    if found is None or not _OURS.match(found[2]):
        return ""
    name, module = found[1], found[2]
    what = f"Perspex has no `{module}.{name}`."
    return f"{what} {_meant(name, sys.modules.get(module))}".rstrip()


def _meant(name: str, holder: Any) -> str:
    if holder is None:
        return ""
    holder = vars(holder).get("__perspex__", holder) if isinstance(holder, ModuleType) else holder
    names = [known for known in dir(holder) if not known.startswith("_")]
    close = near(name, names)
    listed = " or ".join(f"`{found}`" for found in close)
    return f"Did you mean {listed}?" if close else ""


def near(name: str, names: Iterable[str]) -> list[str]:
    """Up to three names that `name` was probably meant to be: those with the fewest edits.

    A third of the letters may be wrong, at most: `foo` is not `floor`.
    """
    by_edits: dict[int, list[str]] = {}
    for known in names:
        edits = _edits(name.lower(), known.lower(), (len(name) + len(known) + 3) // 6)
        if edits is not None:
            by_edits.setdefault(edits, []).append(known)
    if not by_edits:
        return []
    # One that the name begins with comes first.
    return sorted(by_edits[min(by_edits)], key=lambda x: (not name.startswith(x), x))[:3]


def _edits(one: str, other: str, most: int) -> int | None:
    """How many letters to add, leave out, change or swap with the next, if no more than `most`."""
    if abs(len(one) - len(other)) > most:
        return None
    before, row = [0] * (len(other) + 1), [*range(len(other) + 1)]
    for i, a in enumerate(one):
        last, before, row = before, row, [i + 1]
        for j, b in enumerate(other):
            row.append(min(before[j] + (a != b), before[j + 1] + 1, row[j] + 1))
            if i and j and a == other[j - 1] and b == one[i - 1]:
                row[-1] = min(row[-1], last[j - 1] + 1)
    return row[-1] if row[-1] <= most else None


def _unhashable(tb: TracebackType | None) -> str:
    """Which argument it is, and what has a hash instead."""
    user: TracebackType | None = None
    while tb is not None:
        if not source.is_internal(tb.tb_frame.f_code.co_filename):
            user = tb
        tb = tb.tb_next
    place = None if user is None else place_of(user.tb_frame, user.tb_lasti)
    call = None if place is None else place.node
    if place is None or not isinstance(call, ast.Call):
        return ""
    fun = getattr(place.value(call.func), "__wrapped__", None)
    owner = next((found for found in owners() if fun is not None and found.fun is fun), None)
    if fun is None or owner is None:
        return ""
    code = fun.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given = {**dict(zip(names, call.args, strict=False)), **{k.arg: k.value for k in call.keywords}}
    static = {*owner.options.static_argnames}
    static |= {names[i] for i in owner.options.static_argnums if -len(names) <= i < len(names)}
    for name, node in given.items():
        kind = _kind_without_hash(place, node) if name in static else ""
        if kind:
            instead = _REMEDIES.get(kind, "pass it as an ordinary argument instead")
            return (
                f"`{name}` of `{owner.name}` is static, and its value is of type `{kind}`, which "
                f"has no hash: {instead}."
            )
    return ""


_LITERALS = {ast.List: "list", ast.Dict: "dict", ast.Set: "set", ast.ListComp: "list"}


def _kind_without_hash(place: Place, node: ast.expr) -> str:
    for literal, kind in _LITERALS.items():
        if isinstance(node, literal):
            return kind
    value = place.value(node)
    if value is UNKNOWN:
        origin = str(getattr(place.value(getattr(node, "func", node)), "__module__", ""))
        return "Array" if origin.partition(".")[0] == "perspex" else ""
    try:
        hash(value)
    except TypeError:
        return "Array" if _is_array(value) else type(value).__name__
    return ""


def _is_array(value: Any) -> bool:
    """Whether a value is an array of ours, traced or not."""
    return type(value).__module__.startswith(("perspex", "jaxlib")) and hasattr(value, "aval")
