"""Reads what a page says to the kernel, with suspicion: a message comes from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from perspex_magics.panel.contract import VERSION, Ask, Open, Resync, Watch
from perspex_magics.panel.texts import NAME, cut

# The `request` of a reply to a message that was no request.
NO_REQUEST = -1

_LATER: Mapping[str, type[Watch] | type[Resync]] = {"watch": Watch, "resync": Resync}
_ASKS = tuple(kind.__struct_config__.tag for kind in get_args(Ask))


class RefusedError(ValueError):
    """The kernel cannot understand a message; `request` is the one to answer."""

    def __init__(self, text: str, request: int = NO_REQUEST) -> None:
        super().__init__(text)
        self.request = request


def read_open(data: Any) -> Open:
    """The data of `comm_open`; of another version, only that version is read.

    Raises:
      RefusedError: if the data do not fit the contract.
    """
    version: Any = data.get("version") if isinstance(data, dict) else None
    if is_integer(version) and version != VERSION:
        return Open(version, "", [])
    return _converted(data, Open)


def read(data: Any) -> Watch | Resync | Ask:
    """A later message.

    Raises:
      RefusedError: if it does not fit the contract.
    """
    kind = data.get("type") if isinstance(data, dict) else None
    if kind == "ask":
        return _ask(data)
    later = _LATER.get(kind) if isinstance(kind, str) else None
    if later is None:
        raise RefusedError("a message must be a `watch`, a `resync` or an `ask`")
    return _converted(data, later)


def is_integer(value: Any) -> bool:
    """Whether a value of JSON is an integer.

    >>> is_integer(1), is_integer(True), is_integer("1")
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


def _ask(data: dict[str, Any]) -> Ask:
    request: Any = data.get("request")
    if not is_integer(request):
        raise RefusedError("`request` must be an integer")
    what = data.get("what")
    if not isinstance(what, str) or what not in _ASKS:
        raise RefusedError(f"`what` must be one of {', '.join(map(str, _ASKS))}", request)
    return _converted(data, Ask, request)


def _converted(data: Any, kind: Any, request: int = NO_REQUEST) -> Any:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        # It may quote a value, which may be long.
        raise RefusedError(cut(_said(str(error)), NAME), request) from None


def _said(text: str) -> str:
    """
    >>> _said("Expected `str`, got `int` - at `$.client`")
    '`client`: expected `str`, got `int`'
    """
    text, _, place = text.rpartition(" - at ") if " - at " in text else (text, "", "")
    text = text[:1].lower() + text[1:]
    return f"{place.replace('$.', '', 1)}: {text}" if place.startswith("`$.") else text
