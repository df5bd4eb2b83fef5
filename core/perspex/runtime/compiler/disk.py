"""Compiled programs on disk, for the next process: read when asked for, written behind.

Off unless the flag `compilation_cache_dir` names a folder, as the kernel does. An error with
the folder never fails a computation: there is one warning, and the program is compiled.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import queue
import sys
import threading
import warnings
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from perspex import config
from perspex.base import source
from perspex.base.xla import JAXLIB_VERSION, deserialize, is_gpu
from perspex.runtime.compiler.storage import OVERHEAD, DamagedError, Folder, RefusedError

# Check whether the folder is full after one write in so many ...
_LOOK_EVERY = 64
# ... and after writing this part of its limit.
_LOOK_SHARE = 1 / 16
# Seconds that the end of the process waits for pending writes.
_LAST_CHANCE = 10.0


class Counts:
    """What this process has done with its folder."""

    read: int = 0
    written: int = 0
    damaged: int = 0
    removed: int = 0
    unwritable: int = 0  # programs that XLA cannot turn into bytes


counts = Counts()


class About(NamedTuple):
    """What an entry says of its program: for people and for us, not for XLA."""

    name: str
    signature: str
    seconds: float  # that XLA took to compile it
    takes: int | None  # see `kept.bytes_taken`


class Loaded(NamedTuple):
    xla: Any
    about: About
    size: int  # of the file
    code_size: int  # of the serialized program


class Policy(NamedTuple):
    """The flags, and the folder that they name."""

    folder: Folder
    limit: int | None
    least_seconds: float
    least_bytes: int


def default_directory() -> str | None:
    """Where a notebook's compiled programs are kept; `None` if this user has no home."""
    if sys.platform == "darwin":
        caches = os.path.expanduser("~/Library/Caches")
    else:
        caches = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(caches):
            caches = os.path.expanduser("~/.cache")
    return os.path.join(caches, "perspex", "compiled") if os.path.isabs(caches) else None


def keep_tuning(policy: Policy | None, client: Any, options: Any) -> None:
    """Have XLA keep which kernels of a GPU were fastest, beside the programs.

    Looking for them is most of what compiling takes there. A program that differs a little from one
    that is kept contains the same products and fusions. XLA leaves it to us to tell versions apart.
    """
    debug = options.executable_build_options.debug_options
    if policy is None or not is_gpu(client) or debug.xla_gpu_per_fusion_autotune_cache_dir:
        return
    version = f"{JAXLIB_VERSION} {client.platform_version}".encode()
    path = os.path.join(policy.folder.path, "tuned-" + hashlib.sha256(version).hexdigest()[:16])
    with contextlib.suppress(OSError):  # where the folder can only be read
        os.makedirs(path, mode=0o700, exist_ok=True)
        debug.xla_gpu_per_fusion_autotune_cache_dir = path


# ---- the folder ---------------------------------------------------------------------------------

_lock = threading.Lock()
# The path that was opened last, and its folder; `None` if it was refused.
_opened: tuple[str, Folder | None] | None = None


def policy() -> Policy | None:
    """The flags as they are now; `None` if nothing may be read or written."""
    path = config.compilation_cache_dir.value
    limit = config.compilation_cache_max_size.value
    if path is None or limit == 0 or not config.enable_compilation_cache.value:
        return None
    folder = _folder(path)
    if folder is None:
        return None
    return Policy(
        folder,
        None if limit < 0 else limit,
        config.persistent_cache_min_compile_time_secs.value,
        config.persistent_cache_min_entry_size_bytes.value,
    )


def _folder(path: str) -> Folder | None:
    global _opened
    with _lock:
        if _opened is None or _opened[0] != path:
            try:
                _opened = (path, Folder(path))
            except RefusedError as error:
                _opened = (path, None)
                _note(
                    "refused",
                    f"compiled programs are not kept on disk: {error}. Or set the flag "
                    "`compilation_cache_dir` to another folder, or to None.",
                )
        return _opened[1]


def _reopened(folder: Folder) -> Folder | None:
    """The folder of the same path, which somebody has removed in the meantime."""
    global _opened
    with _lock:
        if _opened is not None and _opened[1] is folder:
            _opened = None
    return _folder(folder.path)


def reset() -> None:
    """Open the folder again when it is needed next, also one that was refused."""
    global _opened
    with _lock:
        _opened = None
    problems.clear()


# ---- what went wrong ----------------------------------------------------------------------------

# There is one warning for each kind of problem. Problems occur in threads that cannot warn, so they
# wait here until the main thread warns.
problems: dict[str, str] = {}
_untold: queue.SimpleQueue[str] = queue.SimpleQueue()


def _note(kind: str, text: str) -> None:
    if kind not in problems:
        problems[kind] = text
        _untold.put(text)


def tell() -> None:
    """Warn of the problems since the last time."""
    while not _untold.empty():
        with contextlib.suppress(queue.Empty):  # another thread may be telling it
            text = _untold.get_nowait()
            try:
                warnings.warn(text, RuntimeWarning, stacklevel=source.stacklevel())
            except RuntimeWarning:
                # Where warnings are errors: the program has run, with or without a cache.
                with contextlib.suppress(Exception):
                    print(f"RuntimeWarning: {text}", file=sys.stderr)


# ---- reading ------------------------------------------------------------------------------------


def load(policy: Policy, key: bytes, devices: Sequence[Any], options: Any) -> Loaded | None:
    """The program of this key, ready to run, or `None`. Bad entries are removed."""
    try:
        data = policy.folder.get(key)
        if data is None:
            # Perhaps it is on its way to the disk.
            job = _writer.waiting.get((policy.folder.path, key))
            if job is None:
                return None
            data = _pack(job.about, job.code)
        about, code = _unpack(data)
        xla = deserialize(devices, code, options)
    except OSError as error:
        _note("read", f"compiled programs cannot be read from {policy.folder.path}: {error}")
        return None
    except Exception as error:
        # Somebody changed the entry, which the folder detects, or this jaxlib cannot load it.
        counts.damaged += 1
        policy.folder.remove(key)
        _note(
            "damaged",
            f"removed a damaged entry from the cache of compiled programs: {error}. The program is "
            "compiled again. Further damaged entries are removed silently; %cache counts them."
            if isinstance(error, DamagedError)
            else f"removed an entry of {policy.folder.path} that could not be loaded: "
            f"{type(error).__name__}: {error}",
        )
        return None
    counts.read += 1
    return Loaded(xla, about, len(data) + OVERHEAD, len(code))


def _pack(about: About, code: bytes) -> bytes:
    # The fastest level makes a quarter of it, in a tenth of the time that loading takes.
    return zlib.compress(json.dumps(about).encode() + b"\n" + code, 1)


def _unpack(data: bytes) -> tuple[About, bytes]:
    head, _, code = zlib.decompress(data).partition(b"\n")
    return About(*json.loads(head)), code


# ---- writing ------------------------------------------------------------------------------------


class _Job(NamedTuple):
    policy: Policy
    key: bytes
    code: bytes
    about: About
    done: Callable[[int], None]  # called with the size


class _Writer:
    """A thread that writes entries one after the other."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[_Job | threading.Event | None] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.thread: threading.Thread | None = None
        # What has not been written yet, by its folder and its key.
        self.waiting: dict[tuple[str, bytes], _Job] = {}
        self.unseen = 0  # bytes written since the folder was looked through

    def add(self, job: _Job) -> bool:
        with self.lock:
            if self.thread is None:
                thread = threading.Thread(target=self._serve, name="perspex-cache", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the interpreter is about to end
                    return False
                self.thread = thread
        self.waiting[job.policy.folder.path, job.key] = job
        self.jobs.put(job)
        return True

    def wait(self, seconds: float | None) -> bool:
        if self.thread is None:
            return True
        done = threading.Event()
        self.jobs.put(done)
        return done.wait(seconds)

    def _serve(self) -> None:
        while (job := self.jobs.get()) is not None:
            if isinstance(job, threading.Event):
                job.set()
                continue
            try:
                self._write(job)
            except Exception as error:
                _note(
                    "write",
                    f"compiled programs cannot be written to {job.policy.folder.path}: {error}. "
                    "The next session will compile them again.",
                )
            self.waiting.pop((job.policy.folder.path, job.key), None)
            del job

    def _write(self, job: _Job) -> None:
        policy = job.policy
        data, limit = _pack(job.about, job.code), policy.limit
        if len(data) < policy.least_bytes or (limit is not None and len(data) > limit):
            return
        folder = policy.folder
        try:
            size = folder.put(job.key, data)
        except FileNotFoundError:
            again = _reopened(folder)
            if again is None:
                return
            folder, size = again, again.put(job.key, data)
        counts.written += 1
        job.done(size)
        self.unseen += size
        if limit is not None and (
            job.key[0] % _LOOK_EVERY == 0 or self.unseen > _LOOK_SHARE * limit
        ):
            self.unseen = 0
            counts.removed += folder.trim(limit)


_writer = _Writer()


def save(
    policy: Policy, key: bytes, code: bytes | None, about: About, done: Callable[[int], None]
) -> bool:
    """Write a serialized program, and call `done` with the size of its file; all of it behind.

    Returns whether it will be written, as far as that is known. `code` is `None` for a program that
    XLA cannot turn into bytes.
    """
    if about.seconds < policy.least_seconds:
        return False
    if code is None:
        counts.unwritable += 1
        return False
    return _writer.add(_Job(policy, key, code, about, done))


def flush(seconds: float | None = None) -> bool:
    """Wait until all is written that was to be; whether it was in time."""
    return _writer.wait(seconds)


@atexit.register
def _finish() -> None:
    # Also so that no thread is inside XLA when the interpreter ends.
    if flush(_LAST_CHANCE) and _writer.thread is not None:
        _writer.jobs.put(None)
        _writer.thread.join(1)


def _after_fork() -> None:
    """In the child, which has neither the thread nor, maybe, the lock."""
    global _lock, _writer
    _lock, _writer = threading.Lock(), _Writer()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_after_fork)
