"""What docstrings of random functions say alike: `?` shows it, the source has it once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from perspex.arguments.dtypes import float_dtype, inexact_dtype, integer_dtype
from perspex.arguments.glossary import describe
from perspex.arguments.sharded import WORDS as PLACE

# What `dtype` may be, and its default.
_DTYPES: dict[Any, tuple[str, str]] = {
    float_dtype: ("a floating dtype", "float32 by default, float64 with `enable_x64`"),
    inexact_dtype: ("a floating or complex dtype", "float32 by default, float64 with `enable_x64`"),
    integer_dtype: ("an integer dtype", "int32 by default, int64 with `enable_x64`"),
}
WORDS = {
    "key": "one key, typed or raw.",
    "shape": "the shape of the result.",
    "method": '`"exact"`, or `"approximate"`: faster, without a loop; see `gamma`.',
    "mode": "how many bits each sample is made of; see `gumbel`.",
    "out_sharding": PLACE,
}


def document(
    function: Any, dtype: Callable[..., Any] | None, parameters: Sequence[str], united: bool
) -> None:
    """Complete the docstring of a formula with what its signature says.

    Args:
      function: the formula.
      dtype: the check of its `dtype`.
      parameters: the names of those that are arrays or numbers.
      united: whether these broadcast to `shape`.
    """
    kind, default = _DTYPES.get(dtype, ("", ""))
    words = {**WORDS, "dtype": f"{kind}; {default}."} if kind else dict(WORDS)
    if united and inspect.signature(function).parameters["shape"].default is None:
        alone = len(parameters) == 1
        found = f"that of `{parameters[0]}`" if alone else "what the parameters broadcast to"
        words["shape"] += f" The default is {found}."
    raises = "\n".join([_filled(e) for e in _errors(function, kind, parameters, united)])
    describe([function], words, raises, "An array of shape `shape` and dtype `dtype`.")


def _errors(function: Any, kind: str, parameters: Sequence[str], united: bool) -> list[str]:
    code = function.__code__
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    types, values = ["`key` is not a key"], ["`key` is an array of keys"]
    if "shape" in taken:
        types.append("`shape` is not a sequence of sizes")
    if parameters:
        types.append(f"{_list([f'`{p}`' for p in parameters], 'or')} is not an array or a number")
    if kind:
        values.append(f"`dtype` is not {kind}")
    values += [
        f"`{word}` is unknown" for word in ("method", "mode") if word in set(taken) - {*parameters}
    ]
    if united:
        values.append("the parameters do not broadcast to `shape`")
    return [f"TypeError: if {_list(types, 'or')}.", f"ValueError: if {_list(values, 'or')}."]


def _filled(text: str, width: int = 90) -> str:
    """`text` in lines of at most `width` characters; `textwrap` takes 30 times as long."""
    lines = []
    while len(text) > width:
        at = text.rindex(" ", 0, width + 1)
        lines.append(text[:at])
        text = text[at + 1 :]
    return "\n".join([*lines, text])


def _list(words: Sequence[str], last: str) -> str:
    if len(words) < 3:
        return f" {last} ".join(words)
    return f"{', '.join(words[:-1])}, {last} {words[-1]}"
