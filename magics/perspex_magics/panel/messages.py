"""What a page says to the kernel, read with suspicion: a message comes from outside."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from perspex_magics.panel.texts import cut

VERSION = 1
# Where a reply answers something that was no request.
NO_REQUEST = -1
_LONGEST_CLIENT = 64
_LONGEST_ID = 1_000

# What can be asked, and whether it takes an `id`, and whether it takes `on`.
ASKS: Mapping[str, tuple[bool, bool]] = {
    "program": (True, False),
    "compiled": (True, False),
    "evict": (True, False),
    "pin": (True, False),
    "unpin": (True, False),
    "clear": (False, False),
    "free": (True, False),
    "profile": (False, True),
}


class RefusedError(ValueError):
    """A message that cannot be understood; `request` is what a reply names."""

    def __init__(self, text: str, request: int = NO_REQUEST) -> None:
        super().__init__(text)
        self.request = request


class Open(NamedTuple):
    """A page is there: its version, what it calls itself, and the topics that it shows."""

    version: int
    client: str
    topics: tuple[str, ...]


class Watch(NamedTuple):
    """The topics that are shown from now on."""

    topics: tuple[str, ...]


class Resync(NamedTuple):
    """A message was missing: send everything again."""


class Ask(NamedTuple):
    """Something to be done or looked up, and answered."""

    request: int
    what: str
    id: str = ""
    on: bool = False


def read_open(data: Any, known: Collection[str]) -> Open:
    """The data of `comm_open`. Raises `RefusedError` where they are not what they should be."""
    version: Any = data.get("version") if isinstance(data, dict) else None
    if not _is_integer(version):
        raise RefusedError(f"`version` must be an integer, and is {_shown(version)}")
    if version != VERSION:
        # What another version says may look otherwise.
        return Open(version, "", ())
    fields = _fields(data, ("version", "client", "topics"))
    client = fields["client"]
    if not isinstance(client, str) or not 0 < len(client) <= _LONGEST_CLIENT:
        raise RefusedError(
            f"`client` must be a text of 1 to {_LONGEST_CLIENT} characters, and is {_shown(client)}"
        )
    return Open(version, client, _topics(fields["topics"], known))


def read(data: Any, known: Collection[str]) -> Watch | Resync | Ask:
    """A later message. Raises `RefusedError` where it is not what it should be."""
    kind = data.get("type") if isinstance(data, dict) else None
    if kind == "watch":
        return Watch(_topics(_fields(data, ("type", "topics"))["topics"], known))
    if kind == "resync":
        _fields(data, ("type",))
        return Resync()
    if kind == "ask":
        return _ask(data)
    what = _shown(kind if isinstance(data, dict) else data)
    raise RefusedError(f"a message must be a `watch`, a `resync` or an `ask`, and is {what}")


def _ask(data: dict[str, Any]) -> Ask:
    request: Any = data.get("request")
    if not _is_integer(request):
        raise RefusedError(f"`request` must be an integer, and is {_shown(request)}")
    try:
        what = data.get("what")
        if not isinstance(what, str) or what not in ASKS:
            raise RefusedError(f"`what` must be one of {', '.join(ASKS)}, and is {_shown(what)}")
        wants_id, wants_on = ASKS[what]
        needed = ["type", "request", "what", *["id"] * wants_id, *["on"] * wants_on]
        fields = _fields(data, needed, ("id", "on"))
        key, on = fields.get("id", ""), fields.get("on", False)
        if not isinstance(key, str) or len(key) > _LONGEST_ID:
            raise RefusedError(f"`id` must be that of a row, and is {_shown(key)}")
        if not isinstance(on, bool):
            raise RefusedError(f"`on` must be true or false, and is {_shown(on)}")
    except RefusedError as error:
        error.request = request
        raise
    return Ask(request, what, key, on)


def _fields(data: Any, needed: Collection[str], allowed: Collection[str] = ()) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise RefusedError(f"a message must be an object, and is {_shown(data)}")
    missing = [name for name in needed if name not in data]
    if missing:
        raise RefusedError(f"a field is missing: `{missing[0]}`")
    unknown = [name for name in data if name not in needed and name not in allowed]
    if unknown:
        raise RefusedError(f"there is no field {_shown(unknown[0])} in such a message")
    return data


def _topics(value: Any, known: Collection[str]) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise RefusedError(f"`topics` must be a list, and is {_shown(value)}")
    for topic in value:
        if not isinstance(topic, str) or topic not in known:
            raise RefusedError(f"a topic is one of {', '.join(known)}, and not {_shown(topic)}")
    return tuple(dict.fromkeys(value))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """A value for a message, or what kind of value it is if it may be large."""
    if isinstance(value, str):
        return f"`{cut(value, 40)}`"
    if value is None or isinstance(value, bool | float) or _is_integer(value):
        return "too large" if _is_integer(value) and abs(value) > 10**30 else str(value)
    return "a list" if isinstance(value, list) else "an object"
