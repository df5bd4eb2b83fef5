"""This process among those that compute together: whom it knows, what it tells them, who is gone.

The processes share a store of keys and a coordinator (`coordinator`). A thread of each asks the
coordinator twice a second who lives; the heartbeats behind that are C++'s, so a process that is
busy in Python is not taken for dead. When one has died, or finds that the processes run different
programs, the others cannot complete what they have begun together: whoever waits for that is told
instead of waiting on. Nothing here ends a process.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Set
from typing import Any, TypeVar

from perspex.base import source
from perspex.errors import JaxRuntimeError, ProcessEndedError, ProgramMismatchError
from perspex.runtime import interruptible
from perspex.runtime.processes import coordinator

T = TypeVar("T")

# The names of the keys: who the processes are, who cannot go on and why, and what they wait for.
_WHO, _TROUBLE, _WAITING = [f"perspex/{name}/" for name in ("who", "trouble", "waiting")]
# An error that the loss of a process has caused often comes before the news of the loss: wait for
# so many seconds longer than the heartbeats take, but not for ever.
_NEWS, _MOST_NEWS = 3.0, 10.0
# After so many seconds of waiting, others are told where this process waits.
_TELLS = 1.0
# What an error says that a broken connection has caused.
_BROKEN = ("Gloo", "gloo", "onnection", "endezvous")


class Connection:
    """This process, number `me` of `count`, and its access to the others.

    Attributes:
      client: jaxlib's side of it.
      heartbeat: after so many seconds without a sign of life, a process counts as dead.
      live: the processes that live, with a number that is another one when one has begun anew.
      left: the processes that have left on purpose.
      dead: the processes that have ended otherwise.
      told: the error that a process has told all others; empty if nothing is wrong.
      is_cut_off: whether a thread waits in C++ for what will never come.
    """

    def __init__(
        self, address: str, me: int, count: int, client: Any, heartbeat: int, shutdown: int
    ) -> None:
        self.address, self.me, self.count = address, me, count
        self.client, self.heartbeat, self._shutdown = client, heartbeat, shutdown
        self.live: dict[int, int] = {}
        self.left: set[int] = set()
        self.dead: set[int] = set()
        self.told, self.is_cut_off = "", False
        self.preemptions: Any = None
        self._names: dict[int, str] = {}
        self.waits = itertools.count()
        self._closing = threading.Event()
        self._changed = threading.Condition()
        self.put(f"{_WHO}{me}", f"host {platform.node()}, pid {os.getpid()}")
        self._watcher = threading.Thread(target=self._watch, name="perspex-peers", daemon=True)
        self._watcher.start()

    # ---- the store of keys ------------------------------------------------------------------

    def put(self, key: str, value: str) -> None:
        """Store a text; it replaces one that was there."""
        self.client.key_value_set(key, value, allow_overwrite=True)

    def found(self, folder: str) -> dict[str, str]:
        """The texts whose keys begin with `folder`, by what follows."""
        entries = self.client.key_value_dir_get(folder)
        return {key.rpartition("/")[2]: value for key, value in entries}

    def drop(self, key: str) -> None:
        """Remove a key, or all of a folder."""
        self.client.key_value_delete(key)

    def name(self, process: int) -> str:
        """`process 1 (host a, pid 17)`."""
        if process not in self._names:
            self._names |= {int(key): text for key, text in self.found(_WHO).items()}
        known = self._names.get(process)
        return f"process {process}" if known is None else f"process {process} ({known})"

    # ---- the others -------------------------------------------------------------------------

    def _watch(self) -> None:
        everyone = list(range(self.count + 1))
        while not self._closing.is_set():
            try:
                # Returns when all that live have asked.
                live = self.client.get_live_nodes(everyone)
                live.pop(self.count, None)
                left = {int(key) for key in self.found(coordinator.LEFT)}
                told = self.found(_TROUBLE)
                dead = set(range(self.count)) - set(live) - left
            except JaxRuntimeError:  # this process leaves; jaxlib ends it if the coordinator does
                return
            self._note(live, left, dead, next(iter(told.values()), ""))
            self._closing.wait(coordinator.EVERY)

    def _note(self, live: dict[int, int], left: Set[int], dead: Set[int], told: str) -> None:
        with self._changed:
            self.live, self.left, self.dead = live, self.left | left, self.dead | dead
            self.told = self.told or told
            self._changed.notify_all()

    def tell(self, trouble: str) -> None:
        """Have an error raised by everybody who waits for other processes, from now on."""
        self.told = self.told or trouble
        self.put(f"{_TROUBLE}{self.me}", trouble)

    def look(self, among: Set[int]) -> None:
        """Raise the error that says why there is no point in waiting for these, if there is one."""
        if self.told:
            raise ProgramMismatchError(self.told)
        if self.dead & among:
            raise self._ended(self.dead & among)

    def _ended(self, lost: Set[int]) -> ProcessEndedError:
        names = ", ".join([self.name(process) for process in sorted(lost)])
        return ProcessEndedError(
            f"{names} {'has' if len(lost) == 1 else 'have'} ended without leaving. What the "
            "processes compute together cannot be completed; start all of them again",
            sorted(lost),
        )

    def agree_on_live(self, among: Set[int]) -> set[int]:
        """The processes of these that live, once all of them ask this; all get the same answer."""
        asked = sorted(among)
        return set(interruptible.call(lambda: self.client.get_live_nodes(asked)))

    def gone(self, among: Set[int]) -> ProcessEndedError | None:
        """The error for a wait for processes some of which have left on purpose."""
        lost = sorted(self.left & among)
        if not lost:
            return None
        names = ", ".join([self.name(process) for process in lost])
        return ProcessEndedError(
            f"{names} {'has' if len(lost) == 1 else 'have'} left, and this process waits for it: "
            "each process must run the same programs as often as the others",
            lost,
        )

    def wait(self, work: Callable[[], T], what: str, among: Set[int]) -> T:
        """`work()`, which waits in C++ for what these processes compute, unless there is trouble.

        Raises the errors of the computation as well.
        """
        with Waiting(self, what) as waiting:

            def look() -> None:
                self.look(among)
                waiting.look()

            try:
                return interruptible.call(work, look=look)
            except JaxRuntimeError as error:
                found = self.explained(error)
                raise found from found.__cause__
            except (ProcessEndedError, ProgramMismatchError):
                self.is_cut_off = True
                raise

    def explained(self, error: BaseException) -> BaseException:
        """The loss of a process, if it has caused this error of what several processes compute.

        The connections between processes break at once, while heartbeats have to be missed.
        """
        if not any(sign in str(error) for sign in _BROKEN):
            return error
        everyone = set(range(self.count))
        with self._changed:
            self._changed.wait_for(
                lambda: self.dead or self.told or self.left,
                min(self.heartbeat + _NEWS, _MOST_NEWS),
            )
        found = self._ended(self.dead) if self.dead else self.gone(everyone)
        if found is None:
            return ProgramMismatchError(self.told) if self.told else error
        found.__cause__ = error
        return found

    # ---- the end ----------------------------------------------------------------------------

    def leave(self) -> None:
        """Leave, when all others want to as well or have ended, or after a while."""
        try:
            self.put(f"{coordinator.LEFT}{self.me}", "")
            with self._changed:
                self._changed.wait_for(self._is_last, self._shutdown)
        except JaxRuntimeError:
            pass  # the coordinator is gone, so there is nothing to leave
        finally:
            self._closing.set()
            if self.preemptions is not None:
                self.preemptions.shutdown()
            with contextlib.suppress(JaxRuntimeError):
                self.client.shutdown()

    def _is_last(self) -> bool:
        return self.left >= set(self.live)


class Waiting:
    """A place where this process waits for others, which it tells them when that takes long."""

    def __init__(self, others: Connection, what: str) -> None:
        self.others, self.what = others, what
        self.start = time.monotonic()
        self.is_told = False
        # Since when others have been seen to wait in the same place.
        self.seen: dict[tuple[int, int], float] = {}

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_told:
            with contextlib.suppress(JaxRuntimeError):  # what it waited for may be why
                self.others.drop(f"{_WAITING}{self.others.me}")

    def look(self) -> bool:
        """Whether the wait takes long; then the others are told."""
        if time.monotonic() - self.start < _TELLS:
            return False
        if not self.is_told:
            number = next(self.others.waits)
            record = {"number": number, "what": self.what, "at": source.here()}
            self.others.put(f"{_WAITING}{self.others.me}", json.dumps(record))
            self.is_told = True
        return True

    def elsewhere(self, processes: Set[int], seconds: float) -> list[str]:
        """Where these processes wait, if all of them have been seen there for so long."""
        found = {int(p): json.loads(text) for p, text in self.others.found(_WAITING).items()}
        now = time.monotonic()
        places = [(p, found[p]["number"]) for p in sorted(processes & set(found))]
        self.seen = {place: self.seen.get(place, now) for place in places}
        if len(places) < len(processes) or max(self.seen.values()) > now - seconds:
            return []
        return [
            f"{self.others.name(p)}: waits for {found[p]['what']} at {found[p]['at']}"
            for p, _ in places
        ]
