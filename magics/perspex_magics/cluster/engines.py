"""The engines of a notebook's cluster: starting them, running cells on all, and noticing an end.

ipyparallel starts the engines and carries cells and outputs. Unless a profile of IPython or the
user says how to start them elsewhere (`ssh`, `slurm`, ...), they are processes of this machine, and
the connections are on its loopback interface only. The notebook's own kernel is no part of the
program: it only sends cells and shows what comes back, so whatever happens to an engine leaves the
notebook as it is.

What happens to a process of this machine is asked of the system. Of others ipyparallel tells:
its controller hears a heart of each engine, which beats in C, and a nanny beside each engine passes
signals on.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from perspex_magics.cluster import engine

# Seconds without a sign of life, after which the others are told that an engine is dead.
HEARTBEAT = 5
# Seconds between two looks at the engines while a cell runs.
_EVERY = 0.05
# Seconds that all engines may take to start, and that the rest of them have to end a cell after
# one has died or an interrupt.
_STARTS, _ENDS = 180.0, 15.0
# Milliseconds between two beats that the controller asks for, and how many may be missed.
_BEAT, _MISSES = 1000, 4
# Seconds that engines elsewhere may wait in the queue of a batch system.
_QUEUES = 600.0
# Seconds to wait for what an engine says of a cell that it has ended.
_ANSWERS = 10.0
# Where launchers of ipyparallel have the command that starts engines.
_PROGRAMS = "submit_command", "ssh_cmd", "mpi_cmd"
# Windows has no signal that cannot be caught; there, any ends a process at once.
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class ClusterError(RuntimeError):
    """There is no cluster, or it cannot be started."""


class Failure(NamedTuple):
    """An error of an engine: the name of its class, its message and its traceback."""

    name: str
    text: str
    traceback: str


@dataclass
class Told:
    """What one engine has given for a cell: its outputs in their order, and its error."""

    process: int
    outputs: list[dict[str, Any]] = field(default_factory=list)
    error: Failure | None = None
    is_dead: bool = False
    is_unfinished: bool = False


class Engines:
    """The engines of one cluster; process `i` of the program is the engine number `i`."""

    def __init__(self, count: int, devices: int, profile: str, launcher: str = "") -> None:
        self.count, self.devices, self.profile = count, devices, profile
        self.launcher = launcher
        self.failures = 0
        self.pids: list[int] = []
        self.hosts: list[str] = []
        # Whether they are processes that this one has started.
        self.is_local = True
        self._cluster: Any = None
        self._client: Any = None
        # What each engine is asked about its last cell; it answers when it has time.
        self._asked: list[Any] = []

    def start(self) -> None:
        """Start the engines, and have them join one program.

        Raises `ClusterError` if ipyparallel is not installed, or if they do not start.
        """
        self._cluster = self._made(_ipyparallel())
        waits = _STARTS if self.is_local else _QUEUES
        try:
            with _environment(self._cluster):
                self._cluster.start_cluster_sync()
            self._client = self._cluster.connect_client_sync()
            self._client.wait_for_engines(self.count, timeout=waits, interactive=False)
            views = [self._client[i] for i in range(self.count)]
            asked = [view.apply_async(engine.whereabouts) for view in views]
            found = [one.get(timeout=_STARTS) for one in asked]
            self.hosts, self.pids = [host for host, _ in found], [pid for _, pid in found]
            address = _free_address()
            if not self.is_local:
                address = views[0].apply_async(engine.free_address).get(timeout=_STARTS)
            joining = [
                view.apply_async(engine.join, address, self.count, i, self.devices, HEARTBEAT)
                for i, view in enumerate(views)
            ]
            for one in joining:
                one.get(timeout=_STARTS)
        except BaseException as error:
            with contextlib.suppress(ClusterError):
                self.stop()
            if isinstance(error, Exception):
                raise ClusterError(f"the engines did not start: {error}") from error
            raise

    def _made(self, parallel: Any) -> Any:
        """A cluster that is not started yet; its profile may say how engines are started."""
        given: dict[str, Any] = {"profile": self.profile} if self.profile else {}
        if self.launcher or not self.profile:
            given["engines"] = self.launcher or "local"
        try:
            cluster = parallel.Cluster(n=self.count, log_level=logging.WARNING, **given)
        except Exception as error:  # traitlets': for a launcher that is not known
            raise ClusterError(f"{error}") from error
        local = importlib.import_module("ipyparallel.cluster.launcher").LocalEngineSetLauncher
        self.is_local = cluster.engine_launcher_class is local
        _check_program(cluster)
        if self.is_local:
            cluster.controller_ip = "127.0.0.1"
        else:
            # Engines elsewhere must reach it, and their messages are signed.
            cluster.controller_ip = cluster.controller_ip or "*"
            beats = f"--HeartMonitor.period={_BEAT}"
            misses = f"--HeartMonitor.max_heartmonitor_misses={_MISSES}"
            cluster.controller_args = [*cluster.controller_args, beats, misses]
        return cluster

    def stop(self) -> None:
        """End the engines, however they are.

        Raises `ClusterError` if what has started them cannot end them.
        """
        client, cluster, self._client, self._cluster = self._client, self._cluster, None, None
        # One that waits in C++ hears nothing else; they hold nothing that must be saved.
        self._send(client, _KILL)
        if client is not None:
            client.close()
        if cluster is None:
            return
        # What a batch system has refused has no job to cancel.
        for name in [name for name, one in cluster.engines.items() if one.state == "before"]:
            del cluster.engines[name]
        controller = _group(cluster.controller)
        try:
            cluster.stop_cluster_sync()
        except Exception as error:  # such as that of a batch system
            cluster.stop_controller_sync()
            raise ClusterError(f"a job of engines may still be there: {error}") from error
        finally:
            _end(controller)

    def dead(self) -> list[int]:
        """The engines whose process has ended."""
        if self.is_local:
            return [i for i, pid in enumerate(self.pids) if not is_running(pid)]
        known = self._client.ids
        return [i for i in range(self.count) if i not in known]

    def _send(self, client: Any, number: int) -> None:
        """Send a signal to all engines that live."""
        if self.is_local:
            for pid in self.pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        elif client is not None and self.pids:
            # One that has just ended, or whose machine is gone, hears nothing.
            with contextlib.suppress(Exception):
                client.send_signal(number, targets=client.ids, block=False)

    def run(self, code: str, number: int, show: Callable[[Told], object]) -> list[Told]:
        """Run a cell on all engines and return what each has given.

        `show` is called with what engine 0 has given so far, whenever that is more. An interrupt of
        the notebook interrupts all of them.
        """
        if gone := self.dead():
            raise ClusterError(f"{self.names(gone)} has ended; run %cluster restart")
        views = [self._client[i] for i in range(self.count)]
        for view in views:
            view.apply_async(engine.begin, number, self.failures)
        asked = [view.execute(code, silent=False, block=False) for view in views]
        since: float | None = None
        while not all(one.ready() for one in asked):
            try:
                for one in asked:
                    if not one.ready():
                        one.wait(_EVERY)
                        break
                show(_told(0, asked[0]))
                if since is None and self.dead():
                    since = time.monotonic()
            except KeyboardInterrupt:
                self.interrupt()
                since = time.monotonic()
            if since is not None and time.monotonic() - since > _ENDS:
                break
            if since is not None and all(
                one.ready() or i in self.dead() for i, one in enumerate(asked)
            ):
                break
        dead = self.dead()
        found = []
        for i, one in enumerate(asked):
            if one.ready():
                with contextlib.suppress(TimeoutError):
                    one.wait_for_output(timeout=1)
            found.append(_told(i, one))
            found[-1].is_dead, found[-1].is_unfinished = i in dead, not one.ready()
        self.failures += any(told.error or told.is_dead or told.is_unfinished for told in found)
        self._asked = [
            None if told.is_dead or told.is_unfinished else view.apply_async(engine.report)
            for told, view in zip(found, views, strict=True)
        ]
        return found

    @property
    def has_run(self) -> bool:
        """Whether a cell has run on the engines."""
        return bool(self._asked)

    def reports(self) -> list[dict[str, Any] | None]:
        """What each engine says of its last cell (`engine.report`); `None` if it has not yet."""
        found: list[dict[str, Any] | None] = [None] * self.count
        for i, asked in enumerate(self._asked):
            if asked is not None and asked.ready() and asked.successful():
                found[i] = asked.get(timeout=0)
        return found

    def settled(self) -> list[dict[str, Any] | None]:
        """`reports`, after waiting for engines that live and have ended their cell."""
        for asked in self._asked:
            if asked is not None:
                asked.wait(_ANSWERS)
        return self.reports()

    def held(self, process: int, variable: str) -> str:
        """A short text of what an engine holds in a variable."""
        try:
            asked = self._client[process].apply_async(engine.held, variable)
            found: str = asked.get(timeout=_ANSWERS)
        except Exception:  # it has died, or it is busy: that is told elsewhere
            return "unknown"
        return found

    def interrupt(self) -> None:
        """Interrupt the cells of all engines."""
        self._send(self._client, signal.SIGINT)

    def names(self, processes: list[int]) -> str:
        """`process 2 (pid 17)`, with its machine where that may be another one."""
        on = ["" if self.is_local else f" on {host}" for host in self.hosts]
        return ", ".join([f"process {i} (pid {self.pids[i]}{on[i]})" for i in processes])

    def memory(self, process: int, report: dict[str, Any] | None) -> int | None:
        """The bytes of memory that an engine uses; `None` where nothing is known of it."""
        if self.is_local:
            return memory_of(self.pids[process])
        found: int | None = report["memory"] if report else None
        return found


def _group(controller: Any) -> int | None:
    """The group of processes of a controller on this machine, which leads it."""
    launchers = importlib.import_module("ipyparallel.cluster.launcher")
    if type(controller) is launchers.LocalControllerLauncher and hasattr(os, "killpg"):
        return int(controller.pid)
    return None


def _end(group: int | None) -> None:
    """End what is left of a group: a controller that was ended as it began leaves children."""
    if group is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, _KILL)


@contextlib.contextmanager
def _environment(cluster: Any) -> Iterator[None]:
    """What an engine has to find in its environment, where its launcher does not see to it.

    That of LSF gives `bsub` the environment of this process, which its jobs get.
    """
    launchers = importlib.import_module("ipyparallel.cluster.launcher")
    if not issubclass(cluster.engine_launcher_class, launchers.LSFLauncher):
        yield
        return
    given = {"IPP_CLUSTER_ID": cluster.cluster_id, "IPP_PROFILE_DIR": cluster.profile_dir}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _check_program(cluster: Any) -> None:
    """Raise `ClusterError` if the program that starts the engines is not here."""
    launcher = cluster.engine_launcher_class
    made = launcher(parent=cluster)  # it reads the profile
    for name in _PROGRAMS:
        program, *_ = getattr(made, name, None) or [""]
        if program and shutil.which(program) is None:
            raise ClusterError(
                f"{launcher.__name__} needs the program `{program}`, which is not on the PATH of "
                "this machine. Start the notebook where it is, or say another launcher with "
                "--engines"
            )


def _told(process: int, asked: Any) -> Told:
    """What the engine has given so far."""
    told = Told(process)
    for kind in ("stdout", "stderr"):
        text = getattr(asked, kind)
        if text:
            told.outputs.append({"output_type": "stream", "name": kind, "text": text})
    for output in asked.outputs:
        content = output.get("content", output)
        if "data" in content:
            told.outputs.append({"output_type": "display_data", "data": content["data"]})
    if not asked.ready():
        return told
    try:
        result = asked.get(timeout=0)
    except Exception as error:  # whatever the cell has raised there
        name = getattr(error, "ename", type(error).__name__)
        text = getattr(error, "evalue", str(error))
        lines = getattr(error, "traceback", None) or ""
        told.error = Failure(name, text, lines if isinstance(lines, str) else "\n".join(lines))
    else:
        shown = getattr(result, "execute_result", None)
        if shown:
            told.outputs.append({"output_type": "display_data", "data": shown["data"]})
    return told


def is_running(pid: int) -> bool:
    """Whether a process of this machine runs; one that nobody has waited for yet does not."""
    psutil = importlib.import_module("psutil")
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def memory_of(pid: int) -> int | None:
    """The bytes of memory that a process uses; `None` if it does not run."""
    psutil = importlib.import_module("psutil")
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.NoSuchProcess:
        return None


def _ipyparallel() -> Any:
    try:
        return importlib.import_module("ipyparallel")
    except ImportError:
        raise ClusterError(
            "a cluster needs the package ipyparallel: pip install 'perspex[cluster]'"
        ) from None


def _free_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"
