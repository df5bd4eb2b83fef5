"""Compiled programs by what they compute, so that nothing is compiled twice.

The key of a program is a hash of its StableHLO without source locations, and of all else that
decides what XLA makes of it. So a function that is defined again, moved to another line or found in
another process has the key that it had. Large constants are arguments of the program, and no part
of it. A program is in memory while something holds it, a jitted function for example, and as long
as `perspex.runtime.compiler.kept` keeps it. It is kept on disk by `perspex.runtime.compiler.disk`.

Programs that call back into Python hold the functions that they call, and are in neither.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform as machine
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from perspex.base import xla
from perspex.base.recent import Recent
from perspex.base.xla import deserialize
from perspex.errors import JaxRuntimeError
from perspex.hlo.unlocated import unlocated_bytecode
from perspex.runtime.compiler import disk, pressure
from perspex.runtime.compiler.compiling import Compiled
from perspex.runtime.compiler.kept import Entry, Kept, bytes_taken, serialized, weight
from perspex.runtime.interruptible import StoppedError
from perspex.runtime.placement import Place, Spread, devices_of, is_abstract

# Changes whenever the same program no longer means the same executable.
_FORMAT = b"perspex 3"
# Sizes of files that are known, also of programs that are no longer in memory.
_MOST_SIZES = 4_096
# So many programs can be pinned: far from as many as a process can hold.
MOST_PINNED = 256

# Seconds to wait for an entry that is being written to disk.
_PATIENCE = 10.0

# Where an executable came from: the `source` of `compile` events.
XLA, MEMORY, DISK = "xla", "memory", "disk"


class Counts:
    """How often programs were asked for, by where they were found."""

    xla: int = 0
    memory: int = 0
    disk: int = 0
    callbacks: int = 0  # compiled without being looked for
    apart: int = 0  # of those from XLA: compiled in a process of their own


counts = Counts()
# Keys of programs that stay in memory when others have to go.
_pinned: set[bytes] = set()
# What is in memory, whoever holds it; and what is there only because it was used lately.
_memory: weakref.WeakValueDictionary[bytes, Entry] = weakref.WeakValueDictionary()
_kept = Kept(_pinned)
_sizes = Recent[bytes, int](_MOST_SIZES)
_lock = threading.Lock()
# Programs being loaded or compiled, maybe after an interrupt: none is started twice.
_flights: dict[bytes, Future[Entry]] = {}


def options_for(place: Place, compiler_options: Sequence[tuple[str, Any]] = ()) -> Any:
    """XLA's options for a program at a place."""
    options = xla.CompileOptions()
    numbers = (
        list(range(place.mesh.size))
        if is_abstract(place)
        else [device.id for device in devices_of(place)]
    )
    options.num_replicas, options.num_partitions = 1, len(numbers)
    options.device_assignment = xla.DeviceAssignment.create(np.array([numbers], np.int32))
    if place.__class__ is Spread:
        build = options.executable_build_options
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
        # The compiler decides how results lie that the program says nothing of.
        build.allow_spmd_sharding_propagation_to_output = [True]
    if compiler_options:
        options.env_option_overrides = list(compiler_options)
    return options


# ---- the key ------------------------------------------------------------------------------------


def key(module: Any, place: Place, compiler_options: Sequence[tuple[str, Any]] = ()) -> bytes:
    """What identifies the executable that XLA would make of an MLIR module."""
    around = _surroundings(place) if not compiler_options else _around(place, compiler_options)
    digest = around.copy()
    digest.update(unlocated_bytecode(module))
    return digest.digest()


@functools.lru_cache(256)
def _surroundings(place: Place) -> Any:
    return _around(place, ())


def _around(place: Place, compiler_options: Sequence[tuple[str, Any]]) -> Any:
    """The hash of everything but the program. XLA's own flags are among its options."""
    digest = hashlib.blake2b(digest_size=32, person=b"perspex-program")
    device = devices_of(place)[0]
    client = device.client
    for part in (
        _FORMAT,
        xla.JAXLIB_VERSION.encode(),
        client.platform.encode(),
        client.platform_version.encode(),
        device.device_kind.encode(),
        str(client.device_count()).encode(),
        _processor(),
        options_for(place, compiler_options).SerializeAsString(),
    ):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest


@functools.cache
def _processor() -> bytes:
    """What tells this processor from others, for which XLA would write other code.

    The number of cores decides how a program is split.
    """
    wanted = ("vendor_id", "cpu family", "model", "model name", "flags", "features", "cpu ")
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read().split("\n\n")[0].splitlines()
        found = [line for line in first if line.lower().startswith(wanted)]
        # The cores of a machine differ in these.
        found = [line for line in found if not line.startswith(("cpu MHz", "cpu cores"))]
    except OSError:
        # Elsewhere the features cannot be read, so the key holds for this machine alone.
        found = [machine.machine(), machine.processor(), machine.node()]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return "\n".join([*found, f"cores {cores}"]).encode()


# ---- looking up ---------------------------------------------------------------------------------


class Wanted(NamedTuple):
    """A requested program; without a key it is neither looked up nor kept."""

    key: bytes
    place: Place
    options: Any
    name: str
    signature: str


def remembered(key: bytes) -> Entry | None:
    """What this process has compiled or loaded already."""
    with _lock:
        entry = _found(key)
        counts.memory += entry is not None
    return entry


def _found(key: bytes) -> Entry | None:
    """What is in memory, used now. The caller holds the lock."""
    entry = _memory.get(key)
    if entry is not None:
        _kept.use(key, entry)
    return entry


def obtain(
    wanted: Wanted, compile: Callable[[], Compiled], policy: disk.Policy | None
) -> tuple[Entry, str]:
    """What is not in memory: from disk, from a thread that is just compiling it, or compiled.

    Returns the entry and where it came from. Raises `StoppedError` if an interrupt has ended it.
    """
    key = wanted.key
    if not key:
        with _lock:
            counts.callbacks += 1
        return _compiled(compile)[0], XLA
    mine: Future[Entry] = Future()
    with _lock:
        entry = _found(key)  # since the caller looked there
        flight = mine if entry is not None else _flights.setdefault(key, mine)
    if entry is not None or flight is not mine:
        try:
            entry = entry or flight.result()
        except StoppedError:  # by an interrupt that was meant for another thread
            return obtain(wanted, compile, policy)
        with _lock:
            counts.memory += 1
        return entry, MEMORY
    try:
        entry, where = _unpacked(wanted), MEMORY
        if entry is None:
            entry, where = _load(wanted, policy), DISK
        if entry is None:
            (entry, code), where = _compiled(compile), XLA
            _save(wanted, entry, code, policy)
    except BaseException as error:
        with _lock:
            del _flights[key]
        mine.set_exception(error)
        raise
    with _lock:
        counts.xla += where is XLA
        counts.apart += entry.apart
        counts.disk += where is DISK
        counts.memory += where is MEMORY
        _memory[key] = entry
        _kept.use(key, entry)
        del _flights[key]
    mine.set_result(entry)
    return entry, where


def _compiled(compile: Callable[[], Compiled]) -> tuple[Entry, bytes | None]:
    start = time.perf_counter()
    xla, code = compile()
    seconds = time.perf_counter() - start
    return Entry(xla, seconds, bytes_taken(xla), apart=code is not None), code


def _unpacked(wanted: Wanted) -> Entry | None:
    """What is in memory as bytes."""
    packed = _kept.packed.get(wanted.key)
    if packed is None:
        return None
    code = zlib.decompress(packed.code)
    try:
        xla = deserialize(devices_of(wanted.place), code, wanted.options)
    except JaxRuntimeError:  # there are programs that cannot be loaded
        _kept.packed.pop(wanted.key)
        return None
    return Entry(xla, packed.seconds, packed.takes, weight=weight(len(code)))


def _load(wanted: Wanted, policy: disk.Policy | None) -> Entry | None:
    if policy is None:
        return None
    loaded = disk.load(policy, wanted.key, devices_of(wanted.place), wanted.options)
    if loaded is None:
        return None
    _sizes[wanted.key] = loaded.size
    about, heavy = loaded.about, weight(loaded.code_size)
    return Entry(loaded.xla, about.seconds, about.takes, loaded.size, weight=heavy)


def _save(wanted: Wanted, entry: Entry, code: bytes | None, policy: disk.Policy | None) -> None:
    """Keep what has just been compiled, and has not run yet, as bytes: on disk, or in memory."""
    key = wanted.key

    def written(size: int) -> None:
        entry.size = _sizes[key] = size

    code = code or serialized(entry.xla)
    entry.weight = weight(None if code is None else len(code))
    about = disk.About(wanted.name, wanted.signature, entry.seconds, entry.takes)
    if not (policy is not None and disk.save(policy, key, code, about, written)) and code:
        _kept.pack(key, entry, code)


def size(key: bytes) -> int | None:
    """The bytes that a program takes on disk, if that is known."""
    return _sizes.peek(key)


def remembered_count() -> int:
    """How many programs are in memory."""
    return len({*_memory.keys(), *dict(_kept.packed.entries())})


def is_remembered(key: bytes) -> bool:
    """Whether a program is in memory. This is no use of it."""
    return key in _memory or key in _kept.packed


def is_pinned(key: bytes) -> bool:
    """Whether a program stays in memory when others have to go."""
    return key in _pinned


def pin(key: bytes) -> bool:
    """Keep a program in memory, now or when it is compiled next; whether there was room for it."""
    with _lock:
        if len(_pinned) >= MOST_PINNED and key not in _pinned:
            return False
        _pinned.add(key)
        _found(key)
        return True


def unpin(key: bytes | None = None) -> None:
    """Let a program go like any other, or all of them."""
    with _lock:
        if key is None:
            _pinned.clear()
        else:
            _pinned.discard(key)


def evict(key: bytes) -> None:
    """Forget a program, in memory and on disk. Existing references keep working."""
    with _lock:
        _memory.pop(key, None)
        _pinned.discard(key)
        _kept.forget(key)
        _sizes.pop(key)
    policy = disk.policy()
    if policy is not None:
        disk.flush(_PATIENCE)  # it may be about to be written
        policy.folder.remove(key)


@pressure.register
def forget() -> None:
    """Empty the cache in memory, except for pinned programs."""
    with _lock:
        _kept.forget()
        for key in [key for key in _memory.keys() if key not in _pinned]:  # noqa: SIM118
            _memory.pop(key, None)


def _after_fork() -> None:
    """In the child of a fork, where no compilation continues."""
    global _kept, _lock
    _lock = threading.Lock()
    # Another thread may have held the locks inside.
    _kept = _kept.copied()
    _flights.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_after_fork)
