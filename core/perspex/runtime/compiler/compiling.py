"""Where XLA compiles a program: in this process, or in one of its own, which an interrupt ends.

XLA cannot stop a compilation, and it writes machine code in one queue for the whole process. So a
compilation that an interrupt abandons delays the next one. A process can be ended. The compiler
process (`child`) gets the module and the options as bytes, compiles, and sends the executable back
as bytes, which are loaded like those of the cache on disk.

That has a price: the first such process takes 0.2 s to start, and loading its results took 5 to
78 % more CPU for large programs. So it compiles only modules that are likely to take long, judged
by their size, and everything while an abandoned compilation continues here. Only notebooks do this,
unless the flag `compiler_process` says otherwise. Programs that call back into Python are compiled
here, and so are programs for other platforms than the CPU.

Nothing waits for such a process longer than it lives. If it cannot start, or somebody else ended
it, this process compiles the program. If compiling ended it, that is an error.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from perspex.base import xla
from perspex.base.xla import deserialize
from perspex.errors import JaxRuntimeError
from perspex.hlo.apart import with_own_module
from perspex.runtime import interruptible
from perspex.runtime.compiler import child
from perspex.runtime.compiler.child import receive, send

# Bytes of a module from which on compiling is expected to take long: programs of this size took
# between 0.7 s (800 products of matrices) and 5 s (150 draws of random numbers) of CPU.
LONG = 128 * 1024
# A process is ended after so many idle seconds: it takes up to 0.4 GB.
IDLE = 60.0
# At most so many at once. Further threads compile in this process.
_MOST = 4

# What the process needs of this one's packages; SciPy has the LAPACK.
_PACKAGES = ("jaxlib", "numpy", "ml_dtypes", "scipy")
# How a process ends that its own work has ended.
_CRASHES = {
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE")
    if hasattr(signal, name)
}


class Compiled(NamedTuple):
    """An executable, and the same as bytes if that is how it came: from another process."""

    xla: Any
    code: bytes | None = None


# Why no process could be started, which is not tried again; empty if nothing is wrong.
problem = ""


def is_for(client: Any, code: bytes) -> bool:
    """Whether the compiler process should compile this module, if the flag allows one."""
    return (
        (len(code) >= LONG or any(left.kind == "compile" for left in interruptible.left.copy()))
        and not problem
        and client.platform == "cpu"
        and client.device_count() == client.local_device_count()
        and _is_possible
    )


def here(
    client: Any, devices: Sequence[Any], code: bytes, options: Any, callbacks: Sequence[Any] = ()
) -> Compiled:
    """The executable of a module, compiled in this process."""
    where = xla.DeviceList(tuple(devices))
    return with_own_module(
        code,
        lambda module: Compiled(client.compile_and_load(module, where, options, list(callbacks))),
    )


def apart(
    client: Any,
    devices: Sequence[Any],
    code: bytes,
    options: Any,
    name: str,
    stop: interruptible.Stop,
) -> Compiled:
    """The executable of a module, compiled in another process, or in this one if that fails.

    Raises `StoppedError` when an interrupt has ended it, and `JaxRuntimeError` when compiling the
    function `name` was what ended the process.
    """
    numbers = " ".join([str(device.id) for device in devices]).encode()
    needs_lapack = b"1" if b"lapack_" in code else b""
    request = (numbers, options.SerializeAsString(), code, needs_lapack)
    made = _asked(client, request, name, stop)
    stop.enter()
    if made is not None:
        # Some programs cannot be loaded, which the cache on disk finds as well.
        with contextlib.suppress(JaxRuntimeError):
            return Compiled(deserialize(devices, made, options), made)
    return here(client, devices, code, options)


def _asked(
    client: Any, request: Sequence[bytes], name: str, stop: interruptible.Stop
) -> bytes | None:
    """The executable as bytes, or `None` if this process has to compile."""
    killed_before = _killed_for_memory()
    while (process := _take(client)) is not None:
        was_idle = process.is_ready
        try:
            stop.enter(process.kill)
            if not process.is_ready and not process.get_ready(client):
                process.end()
                return None
            made = process.compile(request)
            stop.enter()
        except interruptible.StoppedError:
            process.end()
            raise
        except (EOFError, OSError):
            code = process.end()
            if stop.is_asked:
                raise interruptible.StoppedError from None
            if process.has_begun:
                _blame(name, code, _killed_for_memory() > killed_before)
                return None
            if not was_idle:
                _give_up(f"it ended with code {code} before it compiled anything")
                return None
            continue  # somebody ended it while it had nothing to do
        _rest(process)
        # What XLA refuses there it refuses here, and the error is its own.
        return made
    return None


def _blame(name: str, code: int, is_memory: bool) -> None:
    """Raise an error if a process has died of compiling `name`: this one would, too."""
    if is_memory and code == -signal.SIGKILL:
        raise JaxRuntimeError(
            f"RESOURCE_EXHAUSTED: the system ran out of memory while XLA compiled `{name}`, and "
            "ended the compiler process. The notebook is unaffected."
        )
    if -code in _CRASHES:
        raise JaxRuntimeError(
            f"INTERNAL: XLA crashed while it compiled `{name}` ({signal.Signals(-code).name}), in "
            "the compiler process. The notebook is unaffected."
        )


def _killed_for_memory() -> int:
    """How many processes this system has ended for want of memory; 0 if it does not tell."""
    try:
        with open("/proc/vmstat", encoding="ascii") as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def _give_up(why: str) -> None:
    global problem
    problem = f"the compiler process cannot be used: {why}; XLA compiles in this process"


# ---- processes ----------------------------------------------------------------------------------

# They are their own groups of processes, so that Ctrl-C in a terminal is for this process alone.
_is_possible = os.name == "posix" and bool(sys.executable) and not getattr(sys, "frozen", False)


class _Process:
    """A process that compiles; one program at a time."""

    def __init__(self, devices: int) -> None:
        # Whether it has said that it can, and whether it works on a request.
        self.is_ready = self.has_begun = False
        answers, theirs = os.pipe()
        try:
            self.popen = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-S", "-W", "ignore", child.__file__),
                    *(str(theirs), str(devices), *_path()),
                ],
                stdin=subprocess.PIPE,
                pass_fds=(theirs,),
                process_group=0,
                env=_environment(),
            )
        except BaseException:
            os.close(answers)
            raise
        finally:
            os.close(theirs)
        assert self.popen.stdin is not None
        self.requests, self.answers = self.popen.stdin, os.fdopen(answers, "rb")

    def get_ready(self, client: Any) -> bool:
        """Wait until it can compile; whether it will compile as this process would."""
        found = receive(self.answers)
        if tuple(found) != child.versions(client, xla.JAXLIB_VERSION):
            _give_up("it reports " + b", ".join(found).decode(errors="replace"))
            return False
        self.is_ready = True
        return True

    def compile(self, request: Sequence[bytes]) -> bytes | None:
        """The executable as bytes; `None` if XLA refuses. `EOFError` or `OSError` if it ends."""
        self.has_begun = False
        send(self.requests, *request)
        receive(self.answers)
        self.has_begun = True
        outcome, made = receive(self.answers)
        return made if outcome == child.DONE else None

    def kill(self) -> None:
        """End it, whatever it does: from any thread."""
        self.popen.kill()

    def end(self) -> int:
        """End it and wait until it is gone; returns its exit code."""
        self.kill()
        _living.discard(self)
        for file in (self.requests, self.answers):
            with contextlib.suppress(OSError):  # for requests that it no longer read
                file.close()
        return self.popen.wait()

    def forget(self, nothing: int) -> None:
        """In a child of this process: close the pipes, so that the other end waits no longer."""
        for file in (self.requests, self.answers):
            os.dup2(nothing, file.fileno(), inheritable=False)
        self.popen.returncode = 0


def _path() -> list[str]:
    """The folders of the packages that this process uses."""
    found = dict.fromkeys(
        os.path.dirname(os.path.dirname(spec.origin))
        for spec in map(importlib.util.find_spec, _PACKAGES)
        if spec is not None and spec.origin is not None
    )
    return list(found)


def _environment() -> dict[str, str]:
    """The environment of this process, without settings of its Python."""
    return {name: value for name, value in os.environ.items() if name not in _PYTHONS}


_PYTHONS = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONPROFILEIMPORTTIME")

_lock = threading.Lock()
# Held while a process is started: no child of this one may get the other ends of its pipes.
_starting = threading.Lock()
_living: set[_Process] = set()
# Those that have nothing to do, and since when, by `time.monotonic`.
_idle: list[tuple[float, _Process]] = []
_retiring: threading.Thread | None = None


def _take(client: Any) -> _Process | None:
    """A process that has nothing to do, or a new one; `None` if there are too many."""
    with _lock:
        if _idle:
            return _idle.pop()[1]
        if len(_living) >= _MOST:
            return None
    try:
        with _starting:
            process = _Process(client.device_count())
            _living.add(process)
    except OSError as error:
        _give_up(str(error))
        return None
    return process


def _rest(process: _Process) -> None:
    """Keep a process for a while."""
    global _retiring
    with _lock:
        _idle.append((time.monotonic(), process))
        if _retiring is None or not _retiring.is_alive():
            _retiring = threading.Thread(target=_retire, name="perspex-retiring", daemon=True)
            _retiring.start()


def _retire() -> None:
    """End processes that have had nothing to do for long, until there are none."""
    global _retiring
    while True:
        with _lock:
            now = time.monotonic()
            old = [entry for entry in _idle if now - entry[0] >= IDLE]
            _idle[:] = [entry for entry in _idle if entry not in old]
            if not _idle:
                _retiring = None
            wait = min([entry[0] for entry in _idle], default=now) + IDLE - now
        for _, process in old:
            process.end()
        if _retiring is None:
            return
        time.sleep(wait)


def processes() -> list[int]:
    """The numbers of the processes that there are."""
    return [process.popen.pid for process in _living.copy()]


@atexit.register
def _end_all() -> None:
    for process in _living.copy():
        process.end()


def _after_fork() -> None:
    """In the child, which has part in none of it."""
    global _lock, _retiring
    nothing = os.open(os.devnull, os.O_RDWR)
    for process in _living:
        process.forget(nothing)
    os.close(nothing)
    _living.clear()
    _idle.clear()
    _lock, _retiring = threading.Lock(), None
    _starting.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(
        before=_starting.acquire, after_in_parent=_starting.release, after_in_child=_after_fork
    )
