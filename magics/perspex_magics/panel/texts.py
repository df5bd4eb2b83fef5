"""Makes texts that come from the user fit to be sent: cut to a length, and valid Unicode."""

from __future__ import annotations

from typing import Any

NAME = 200
LINE = 500
SENTENCE = 1_000


def cut(text: str, most: int = NAME) -> str:
    """The text, or its beginning and an ellipsis if it has more than `most` characters.

    >>> cut("abcdefgh", 5)
    'abcd…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def valid(value: Any) -> Any:
    """A value of JSON with a question mark for each lone surrogate, which cannot be sent.

    >>> valid({"name": ["x" + chr(0xD800), 1]})
    {'name': ['x?', 1]}
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {valid(key): valid(item) for key, item in value.items()}
    return list(map(valid, value)) if isinstance(value, list | tuple) else value
