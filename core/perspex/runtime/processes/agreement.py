"""Whether all processes are about to run the same program, asked before each runs it first.

Processes that run different programs with collectives wait for each other for ever. So the first
run of a program over devices of several processes begins with a comparison: each process stores
which program it is about to run under the number of such programs so far, and reads what the others
have stored. Programs are compared by what they compute, without source lines and names. A program
that a process has run before is not compared, which is a look into a set; the C++ fast path does
not even come here.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from perspex import config
from perspex.base import source
from perspex.errors import JaxRuntimeError, ProgramMismatchError
from perspex.runtime.processes.connection import Connection, Waiting
from perspex.sharding import Mesh

# The names of the keys: what processes are about to run, and the text of it where they differ.
_PROGRAMS, _TEXTS = "perspex/programs/", "perspex/texts/"
# Seconds between two looks at what the others have stored: the first, and the longest.
_FIRST, _LONGEST = 0.0005, 0.05
# At most so much of a program is compared in text, compressed.
_MOST_TEXT = 1 << 20
# Seconds to wait for the text of another process's program, which it stores when it differs.
_PATIENCE = 5.0


class Program(NamedTuple):
    """A program over devices of several processes: `digest` says what it computes and where.

    `does` is what the processes are about to do with different ones.
    """

    digest: str
    name: str
    signature: str
    processes: tuple[int, ...]
    does: str = "run different programs"


def program(name: str, signature: str, mesh: Mesh, code: bytes) -> Program:
    """The program of a module, given as bytes without locations, on the devices of a mesh."""
    digest = hashlib.blake2b(mesh.device_ids.tobytes() + code, digest_size=16).hexdigest()
    return Program(digest, name, signature, mesh.processes)


def value(host: np.ndarray, mesh: Mesh) -> Program:
    """The same for a value that each process puts on the devices of a mesh."""
    digest = hashlib.blake2b(mesh.device_ids.tobytes(), digest_size=16)
    digest.update(host.tobytes())
    signature = f"{host.dtype}{list(host.shape)}"
    return Program(
        digest.hexdigest(), "device_put", signature, mesh.processes, "put different values"
    )


class Agreement:
    """What this process has compared with the others of one connection."""

    def __init__(self, others: Connection) -> None:
        self.others = others
        self.agreed: set[str] = set()
        self.orders: Counter[tuple[int, ...]] = Counter()
        self.age = 0

    def begin(self, age: int) -> None:
        """Compare everything anew, if `age` is another than before: it is the same on all.

        For a point that all processes reach together, after one of them was interrupted.
        """
        if age != self.age:
            self.age = age
            self.agreed.clear()
            self.orders.clear()

    def reach(self, program: Program, text: Callable[[], str]) -> None:
        """Return when all processes are about to run the program for the first time.

        Raises `ProgramMismatchError` if one of them is about to run another, and
        `ProcessEndedError` if one is gone. `text` writes the program, to find the difference.
        """
        others = self.others
        if others.me not in program.processes:
            raise ValueError(
                f"`{program.name}` runs on devices of other processes only ({program.processes}), "
                f"and this is process {others.me}; call it in those processes"
            )
        others.look(set(program.processes))
        if program.digest in self.agreed or not config.check_processes.value:
            return
        self.compare(program, text)
        self.agreed.add(program.digest)

    def compare(self, program: Program, text: Callable[[], str]) -> None:
        """The same, whether it has been asked before or not."""
        others = self.others
        order = self.orders[program.processes]
        group = f"{self.age}/{'-'.join(map(str, program.processes))}"
        self.orders[program.processes] += 1
        mine = program._asdict() | {"order": order, "at": source.here()}
        others.put(f"{_PROGRAMS}{group}/{order}/{others.me}", json.dumps(mine))
        if order > 1:  # everybody has read the one before the last
            others.drop(f"{_PROGRAMS}{group}/{order - 2}/{others.me}")
        self._meet(mine, f"{group}/{order}/", text)

    def _meet(self, mine: dict[str, Any], folder: str, text: Callable[[], str]) -> None:
        others = self.others
        pause = _FIRST
        with Waiting(others, f"the first run of `{mine['name']}`") as waiting:
            while True:
                entries = others.found(f"{_PROGRAMS}{folder}")
                found = {int(key): json.loads(value) for key, value in entries.items()}
                if any(their["digest"] != mine["digest"] for their in found.values()):
                    raise self._mismatch(found, folder, text)
                missing = set(mine["processes"]) - set(found)
                if not missing:
                    return
                others.look(missing)
                gone = others.gone(missing)
                if gone is not None:
                    raise gone
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST)
                if waiting.look():
                    self._find_stuck(mine, missing, waiting)

    def _find_stuck(self, mine: dict[str, Any], missing: set[int], waiting: Waiting) -> None:
        """Raise, and tell all others, if those that are missing have long waited elsewhere."""
        seconds = config.check_processes_timeout.value
        stuck = waiting.elsewhere(missing, seconds)
        if not stuck:
            return
        others = self.others
        lines = [_line(others.name(others.me), mine), *stuck]
        error = (
            f"the processes have waited for one another for {seconds:g} s, in different places:\n"
            + "\n".join(f"  {line}" for line in lines)
            + "\nEach process must run the same programs in the same order; start all of them "
            "again"
        )
        others.tell(error)
        raise ProgramMismatchError(error)

    def _mismatch(
        self, found: dict[int, dict[str, Any]], folder: str, text: Callable[[], str]
    ) -> ProgramMismatchError:
        others = self.others
        mine = found[others.me]
        lines = [_line(others.name(process), their) for process, their in sorted(found.items())]
        # Each stores its own text, and the one that differs from it first is compared.
        other = next(p for p, their in sorted(found.items()) if their["digest"] != mine["digest"])
        own = text()
        packed = zlib.compress(own.encode(), 1)
        if len(packed) <= _MOST_TEXT:
            others.client.key_value_set_bytes(f"{_TEXTS}{folder}{others.me}", packed)
        difference = self._difference(own, f"{_TEXTS}{folder}{other}", other)
        return ProgramMismatchError(
            f"the processes are about to {mine['does']}:\n"
            + "\n".join(f"  {line}" for line in lines)
            + f"\n{difference}\n"
            "They would wait for one another for ever, or go on with different numbers. What "
            "decides which program runs, and what is written into it (shapes, dtypes, constants), "
            "must not depend on the process"
        )

    def _difference(self, own: str, key: str, other: int) -> str:
        me = self.others.me
        try:
            packed = self.others.client.blocking_key_value_get_bytes(key, int(1000 * _PATIENCE))
        except JaxRuntimeError:
            return f"What process {other} has is too large to show, or it has ended."
        theirs = zlib.decompress(packed).decode()
        first = first_difference(own, theirs)
        if first is None:
            return "They read alike; the devices are ordered differently."
        return f"The first difference:\n  process {me}: {first[0]}\n  process {other}: {first[1]}"


def first_difference(one: str, other: str) -> tuple[str, str] | None:
    """The first lines of two texts that differ, `None` if there are none."""
    lines = itertools.zip_longest(one.splitlines(), other.splitlines(), fillvalue="(it ends)")
    return next(((mine.strip(), its.strip()) for mine, its in lines if mine != its), None)


def _line(process: str, record: dict[str, Any]) -> str:
    """Which program a process is about to run, and where the user has written that."""
    return (
        f"{process}: `{record['name']}` of ({record['signature']}) at {record['at']}, the number "
        f"{record['order'] + 1} of what it does with these processes"
    )
