"""Profiles for XProf, TensorBoard and Perfetto, with marks of your own: `jax.profiler`.

In a notebook, `%%profile` shows the time of each line at once. A profile of this module is a file
for those programs, or numbers to read: what each thread and each device did, and when.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import json
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from perspex.base import xla
from perspex.base.xla import ProfileData as ProfileData
from perspex.base.xla import ProfileEvent as ProfileEvent
from perspex.base.xla import ProfileLine as ProfileLine
from perspex.base.xla import ProfilePlane as ProfilePlane
from perspex.runtime.client import client

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileLine", "ProfileOptions", "ProfilePlane",
    "ProfileSession", "StepTraceAnnotation", "TraceAnnotation", "annotate_function",
    "device_memory_profile", "export_profile_data", "register_subprocess",
    "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace",
    "trace",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

# Where ui.perfetto.dev looks for a file of this machine.
_PERFETTO_PORT = 9001

_server: Any = None
_lock = threading.Lock()
_session: ProfileSession | None = None


class ProfileOptions(xla.ProfileOptions):
    """What a profile records: `host_tracer_level`, `python_tracer_level`, `session_id`, ...

    >>> options = ProfileOptions()
    >>> options.python_tracer_level = 0
    """

    __slots__ = ()


class ProfileSession:
    """A profile that is being recorded, or its numbers afterwards.

    Args:
      log_dir: the folder to write to when it ends; `None` keeps the numbers in memory only.
      create_perfetto_link: wait until somebody opens the printed link to Perfetto.
      create_perfetto_trace: write a file for Perfetto as well.
      profiler_options: what to record.

    >>> with ProfileSession() as session:
    ...     _ = sum(range(10))
    >>> session.is_running
    False
    >>> any(plane.name == "/host:CPU" for plane in session.profile_data.planes)
    True
    """

    def __init__(
        self,
        log_dir: Any = None,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: Any = None,
    ) -> None:
        self.log_dir = None if log_dir is None else os.fspath(log_dir)
        self.create_perfetto_link = create_perfetto_link
        self.create_perfetto_trace = create_perfetto_trace or create_perfetto_link
        self.profiler_options = profiler_options
        self._running: Any = None
        self._data: Any = None

    @property
    def is_running(self) -> bool:
        """Whether it records."""
        return self._running is not None

    @property
    def profile_data(self) -> Any:
        """The numbers, once it has ended; `None` before, and where jaxlib 0.10 wrote a file."""
        return self._data

    def start(self) -> ProfileSession:
        """Begin to record; returns the session. Raises `RuntimeError` if one records already."""
        global _session
        with _lock:
            if _session is not None:
                raise RuntimeError(
                    "a profile is being recorded already; end it with stop_trace() first"
                )
            client()  # before the recorder, which would not see it otherwise
            self._running = xla.ProfilerSession(self.profiler_options or ProfileOptions())
            self._data, _session = None, self
        return self

    def stop(self) -> Any:
        """End it and write what `log_dir` asks for; returns the numbers."""
        global _session
        with _lock:
            if self._running is None:
                raise RuntimeError("no profile is being recorded; begin one with start_trace()")
            if self.log_dir is not None and not xla.EXPORTS_PROFILES:
                self._running.stop_and_export(self.log_dir)
            else:
                self._data = self._running.stop_and_get_profile_data()
            self._running = _session = None
        if self.log_dir is not None:
            if xla.EXPORTS_PROFILES:
                options = self.profiler_options
                session_id = "" if options is None else options.session_id
                xla.export_profile(self._data, self.log_dir, session_id or "")
            _write_perfetto(self.log_dir, self.create_perfetto_trace, self.create_perfetto_link)
        return self._data

    def export_profile_data(
        self,
        log_dir: Any,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Write the numbers to a folder, as `profiler.export_profile_data` does."""
        export_profile_data(self, log_dir, create_perfetto_link, create_perfetto_trace, session_id)

    def __enter__(self) -> ProfileSession:
        return self.start()

    def __exit__(self, *raised: object) -> None:
        if self.is_running:
            self.stop()


def start_trace(
    log_dir: Any,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> ProfileSession:
    """Begin to record a profile, which `stop_trace` ends.

    Args:
      log_dir: the folder to write to, such as TensorBoard's.
      create_perfetto_link: when it ends, wait until somebody opens the printed link to Perfetto.
      create_perfetto_trace: write `perfetto_trace.json.gz` as well.
      profiler_options: a `ProfileOptions`.

    Returns:
      The `ProfileSession`.

    Raises:
      RuntimeError: if a profile is being recorded already.

    >>> import tempfile
    >>> session = start_trace(tempfile.mkdtemp())
    >>> session.is_running
    True
    >>> _ = stop_trace()
    """
    session = ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    return session.start()


def stop_trace() -> Any:
    """End the profile that is being recorded, and write it.

    Returns:
      The numbers, a `ProfileData`; `None` with jaxlib 0.10.

    Raises:
      RuntimeError: if none is being recorded.

    >>> import tempfile
    >>> _ = start_trace(tempfile.mkdtemp())
    >>> _ = stop_trace()
    """
    if _session is None:
        raise RuntimeError("no profile is being recorded; begin one with start_trace()")
    return _session.stop()


@contextlib.contextmanager
def trace(
    log_dir: Any = None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Iterator[ProfileSession]:
    """Record a profile of what is inside of the `with`.

    Args:
      log_dir: the folder to write to; `None` keeps the numbers in memory only.
      create_perfetto_link: at the end, wait until somebody opens the printed link to Perfetto.
      create_perfetto_trace: write `perfetto_trace.json.gz` as well.
      profiler_options: a `ProfileOptions`.

    Returns:
      A context manager, which gives the `ProfileSession`.

    Raises:
      RuntimeError: if a profile is being recorded already.

    >>> import perspex
    >>> import perspex.numpy as pnp
    >>> with trace() as session:
    ...     with TraceAnnotation("my product"):
    ...         _ = pnp.dot(pnp.ones((8, 8)), pnp.ones((8, 8))).block_until_ready()
    >>> names = {event.name for plane in session.profile_data.planes
    ...          for line in plane.lines for event in line.events}
    >>> "my product" in names
    True
    """
    session = ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    with session:
        yield session


def export_profile_data(
    profile_data: Any,
    log_dir: Any,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    session_id: str | None = None,
) -> None:
    """Write the numbers of a profile to a folder, as XProf and TensorBoard read them.

    Args:
      profile_data: a `ProfileData`, or a `ProfileSession` that has ended.
      log_dir: the folder.
      create_perfetto_link: wait until somebody opens the printed link to Perfetto.
      create_perfetto_trace: write `perfetto_trace.json.gz` as well.
      session_id: the name of the folder below `plugins/profile`; the time if not given.

    Returns:
      Nothing.

    Raises:
      RuntimeError: for a session that records or has no numbers, and with jaxlib 0.10, which
        writes a profile only when it ends: give the folder to `trace`.
      TypeError: for anything else.

    >>> import tempfile
    >>> export_profile_data(None, tempfile.mkdtemp())
    Traceback (most recent call last):
        ...
    TypeError: expected a ProfileData or a ProfileSession, got NoneType
    """
    if isinstance(profile_data, ProfileSession):
        if profile_data.is_running:
            raise RuntimeError("the session still records; call its stop() first")
        options = profile_data.profiler_options
        if session_id is None and options is not None:
            session_id = options.session_id
        profile_data = profile_data.profile_data
        if profile_data is None:
            raise RuntimeError("the session has no numbers to write; it has not been run")
    elif not isinstance(profile_data, ProfileData):
        kind = type(profile_data).__name__
        raise TypeError(f"expected a ProfileData or a ProfileSession, got {kind}")
    if not xla.EXPORTS_PROFILES:
        raise RuntimeError(
            f"jaxlib {xla.JAXLIB_VERSION} writes a profile only when it ends; give log_dir to "
            "trace() or start_trace(), or install jaxlib 0.12"
        )
    xla.export_profile(profile_data, os.fspath(log_dir), session_id or "")
    _write_perfetto(log_dir, create_perfetto_trace or create_perfetto_link, create_perfetto_link)


def _write_perfetto(log_dir: Any, wanted: bool, link: bool) -> None:
    """Write the newest profile below a folder in Perfetto's form, if that is wanted."""
    if not wanted:
        return
    runs = (pathlib.Path(log_dir).absolute() / "plugins" / "profile").iterdir()
    newest = max(runs, key=os.path.getmtime)
    (found,) = newest.glob("*.trace.json.gz")
    with gzip.open(found, "rb") as file:
        content = json.load(file)
    content.pop("metadata", None)  # which Perfetto does not read
    path = newest / "perfetto_trace.json.gz"
    with gzip.open(path, "wt", encoding="utf-8") as out:
        json.dump(content, out)
    if link:
        _offer(path)


_read: set[str] = set()


class _Folder(http.server.SimpleHTTPRequestHandler):
    """Serves files of a folder to ui.perfetto.dev, and notes which ones were read."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        _read.add(self.path)
        super().do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


def _offer(path: pathlib.Path) -> None:
    """Print a link that opens the file in Perfetto, and wait until that has read it."""
    _read.clear()
    handler = functools.partial(_Folder, directory=str(path.parent))
    with http.server.HTTPServer(("127.0.0.1", _PERFETTO_PORT), handler) as server:
        address = f"http://127.0.0.1:{_PERFETTO_PORT}/{path.name}"
        print(f"Open URL in browser: https://ui.perfetto.dev/#!/?url={address}")
        while f"/{path.name}" not in _read:
            server.handle_request()


class TraceAnnotation(xla.TraceMe):
    """A mark in a profile: how long the `with` took, under a name.

    >>> with TraceAnnotation("evaluation"):
    ...     pass
    """


class StepTraceAnnotation(TraceAnnotation):
    """A mark of one step of training, by which profilers group what they show.

    >>> for step in range(2):
    ...     with StepTraceAnnotation("train", step_num=step):
    ...         pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: F, name: str | None = None, **decorator_kwargs: Any) -> F:
    """A function whose calls are marked in profiles.

    Args:
      func: the function.
      name: the name of the mark; that of the function if not given.
      decorator_kwargs: further values of the mark.

    Returns:
      A function that does the same.

    Raises:
      Nothing.

    >>> @annotate_function
    ... def step(x):
    ...     return x + 1
    >>> step(1)
    2
    """
    mark = name or getattr(func, "__qualname__", None) or func.__name__

    @functools.wraps(func)
    def marked(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(mark, **decorator_kwargs):
            return func(*args, **kwargs)

    return marked  # type: ignore[return-value]


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Begin to answer TensorBoard and XProf, which can then record profiles of this process.

    Args:
      port: where to listen.
      requires_backend: make the platform's client first.

    Returns:
      The server.

    Raises:
      ValueError: if there is one already.

    >>> server = start_server(0)
    >>> stop_server()
    """
    global _server
    if _server is not None:
        raise ValueError("a profiler server runs already, and only one can; call stop_server()")
    if requires_backend:
        client()
    _server = xla.start_profiler_server(port)
    return _server


def stop_server() -> None:
    """End the server of `start_server`.

    Returns:
      Nothing.

    Raises:
      ValueError: if none runs.

    >>> _ = start_server(0)
    >>> stop_server()
    """
    global _server
    if _server is None:
        raise ValueError("no profiler server runs; begin one with start_server(port)")
    _server = None


def register_subprocess(pid: int, port: int) -> Any:
    """Record another process along with this one.

    Args:
      pid: the process.
      port: where its `start_server` listens.

    Returns:
      A function that ends this.

    Raises:
      RuntimeError: if the process cannot be reached.

    >>> register_subprocess(1, 1)  # doctest: +SKIP
    """
    return xla.register_profiled_process(pid, port)


def device_memory_profile(backend: str | None = None) -> bytes:
    """What holds the device's memory now, for the tool `pprof`.

    Args:
      backend: a platform; the default one if not given.

    Returns:
      A compressed protocol buffer.

    Raises:
      RuntimeError: for a platform that is not there.

    >>> len(device_memory_profile()) > 0
    True
    """
    return gzip.compress(client(backend).heap_profile())


def save_device_memory_profile(filename: Any, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file.

    Args:
      filename: the file.
      backend: a platform; the default one if not given.

    Returns:
      Nothing.

    Raises:
      RuntimeError: for a platform that is not there.

    >>> import tempfile
    >>> save_device_memory_profile(tempfile.mkdtemp() + "/memory.prof")
    """
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))
