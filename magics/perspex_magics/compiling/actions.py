"""What can be done with compiled programs by hand: keep one in memory, let it go, forget them.

The panel and the widget of the cache do the same and say the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from perspex.runtime.compiler import cache
from perspex_magics.compiling.cache import forget
from perspex_magics.compiling.compilations import Compilation, Recorder


class Done(NamedTuple):
    """Whether it could be done, and what there is to say about it."""

    ok: bool
    text: str


def evict(recorder: Recorder, one: Compilation) -> Done:
    """Forget a program, in memory and on disk."""
    closed = one.origin and one.origin.closed()
    owner = one.origin and one.origin.owner()
    if owner is not None and closed is not None:
        owner.evict(closed)
    if one.key:
        cache.evict(bytes.fromhex(one.key))
        recorder.remove(one.key)
    if owner is None or closed is None:
        said = "XLA compiles it when it is needed anew; what holds it still uses it."
    else:
        said = "its next call compiles it."
    return Done(True, f"`{one.name}` ({one.signature}) is forgotten: {said}")


def pin(recorder: Recorder, one: Compilation) -> Done:
    """Keep a program in memory when others have to go."""
    if not one.key:
        return Done(False, f"`{one.name}` calls Python functions, and is never kept.")
    key = bytes.fromhex(one.key)
    if not cache.pin(key):
        return Done(False, "So many programs are pinned already that there is no room.")
    if cache.is_remembered(key):
        return Done(True, f"`{one.name}` ({one.signature}) stays in memory.")
    return Done(True, f"`{one.name}` is not in memory now; it stays once it is needed again.")


def unpin(recorder: Recorder, one: Compilation) -> Done:
    """Let a program go when others need the room."""
    if one.key:
        cache.unpin(bytes.fromhex(one.key))
    return Done(True, f"`{one.name}` ({one.signature}) may go when others need the room.")


def clear(recorder: Recorder) -> Done:
    """Forget all programs in memory, pinned or not, and the record."""
    count = forget(recorder)
    kept = "those on disk stay; `%cache clear --disk` removes them"
    return Done(True, f"{count} programs in memory are forgotten; {kept}.")


# What can be done with one program, by the name that the panel's protocol has for it.
WITH_ONE: dict[str, Callable[[Recorder, Compilation], Done]] = {
    "evict": evict,
    "pin": pin,
    "unpin": unpin,
}
UNKNOWN = Done(False, "This program is not in the record any more.")
