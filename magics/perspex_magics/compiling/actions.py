"""Actions on compiled programs: pin one in memory, evict it, remove them all.

The panel and the cache widget perform them and show these texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from perspex.runtime.compiler import cache
from perspex_magics.compiling.cache import forget
from perspex_magics.compiling.compilations import Compilation, Recorder
from perspex_magics.display.units import many


class Done(NamedTuple):
    """Whether an action succeeded, and the text that says so."""

    ok: bool
    text: str


def _named(one: Compilation) -> str:
    return f"`{one.name}` ({one.signature})"


def evict(recorder: Recorder, one: Compilation) -> Done:
    """Remove a program from memory and from disk."""
    closed = one.origin and one.origin.closed()
    owner = one.origin and one.origin.owner()
    if owner is not None and closed is not None:
        owner.evict(closed)
    if one.key:
        cache.evict(bytes.fromhex(one.key))
        recorder.remove(one.key)
    if owner is None or closed is None:
        said = "Existing references keep working; XLA compiles it again when it is needed."
    else:
        said = "The next call compiles it again."
    return Done(True, f"Evicted {_named(one)}. {said}")


def pin(recorder: Recorder, one: Compilation) -> Done:
    """Keep a program in memory when others have to go."""
    if not one.key:
        return Done(False, f"Cannot pin `{one.name}`: it calls Python functions and is not cached.")
    key = bytes.fromhex(one.key)
    if not cache.pin(key):
        text = f"Cannot pin: {cache.MOST_PINNED} programs are pinned already. Unpin one first."
        return Done(False, text)
    if cache.is_remembered(key):
        return Done(True, f"Pinned {_named(one)} in memory.")
    return Done(
        True, f"Pinned {_named(one)}. It is not in memory now, and stays after its next use."
    )


def unpin(recorder: Recorder, one: Compilation) -> Done:
    """Let a program go when others need the room."""
    if one.key:
        cache.unpin(bytes.fromhex(one.key))
    return Done(True, f"Unpinned {_named(one)}.")


def clear(recorder: Recorder) -> Done:
    """Remove all programs from memory, pinned or not, and empty the record."""
    removed = many(forget(recorder), "program")
    kept = "Programs on disk remain; `%cache clear --disk` removes them."
    return Done(True, f"Removed {removed} from memory. {kept}")


# The actions on one program, by their names in the panel's protocol.
WITH_ONE: dict[str, Callable[[Recorder, Compilation], Done]] = {
    "evict": evict,
    "pin": pin,
    "unpin": unpin,
}
UNKNOWN = Done(False, "This program is no longer in the record.")
