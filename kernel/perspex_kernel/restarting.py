"""How the kernel restarts by itself and keeps the session: the last and the first steps.

The old program writes the session to a file and begins again (`again`). It does not answer the
request that asked for this: the new program does, once all clients are connected again. So a client
that sends its next cell after the answer loses nothing, and requests that the old program has not
begun are handed on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any

from jupyter_client.session import DELIM

from perspex_kernel import again
from perspex_kernel.clients import Peers, Subscriptions
from perspex_magics.compiling.abandoned import Behind
from perspex_magics.restart.archive import Reader
from perspex_magics.restart.contents import Lost, Restored, Saved, load, save
from perspex_magics.restart.magic import tell
from perspex_magics.session import find

# Seconds after which the process begins again even if it does not come to its end.
_LAST = 5.0
# Seconds between two looks.
_LOOK = 0.02
# So much is told of an error.
_MOST_TOLD = 200
# Seconds that an interrupted cell has to end by itself.
_GRACE = 1.0


class Restarting:
    """The restarts of one kernel."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        # Requests that have not begun by their headers, and those that run by their threads.
        self.waiting: dict[bytes, list[bytes]] = {}
        self.current: dict[int, list[bytes]] = {}
        self.clients: list[Peers | Subscriptions] = []
        self._counts: list[int] = []
        self._restored: Restored | None = None
        self._left: dict[str, Any] = {}
        # Whether clients were told that the kernel is starting.
        self.has_begun = False
        self._never: asyncio.Future[None] | None = None
        self._lock = threading.Lock()

    @property
    def obstacle(self) -> str:
        """Why the kernel cannot restart by itself; empty if it can."""
        if again.can():
            return ""
        return "this process cannot begin again; use the menu's Restart, which keeps nothing"

    @property
    def shell(self) -> Any:
        return self.kernel.shell

    # ---- requests ---------------------------------------------------------------------------

    def came(self, frames: Sequence[Any]) -> None:
        """A request has come."""
        found = _bytes(frames)
        if (header := _header(found)) is not None and b'"comm_' not in header:
            self.waiting[header] = found  # a comm ends with the program

    @contextlib.contextmanager
    def handling(self, frames: Sequence[Any], concurrent: bool) -> Iterator[None]:
        """While a request is handled; a thread handles one after the other, if not concurrently."""
        found, thread = _bytes(frames), threading.get_ident()
        if (header := _header(found)) is not None:
            self.waiting.pop(header, None)
            if not concurrent:
                self.current[thread] = found
        try:
            yield
        finally:
            if not concurrent:
                self.current.pop(thread, None)

    @property
    def _is_running(self) -> bool:
        return (threading.main_thread().ident or 0) in self.current

    @property
    def is_leaving(self) -> bool:
        """Whether the loops have been stopped for the restart."""
        return self._never is not None

    # ---- the last steps ---------------------------------------------------------------------

    async def leave(self, now: bool) -> None:
        """Restart at the end of a cell; returns if that cannot be done."""
        saved = self._save(waits=not now and not self._is_left_alone())
        if saved is None:
            return
        if threading.current_thread() is not threading.main_thread():
            again.run()  # a subshell, while the main thread may hang
        with contextlib.suppress(Exception):
            await self.kernel._progressively_terminate_all_children()
        threading.Thread(target=self._insist, name="perspex-again", daemon=True).start()
        streams = [self.kernel.control_stream, self.kernel.shell_stream]
        for loop in {s.io_loop for s in streams if s} | {self.kernel.io_loop}:
            loop.add_callback(loop.stop)
        # Nothing more is said of this request here. Without a reference, the task would be lost.
        self._never = asyncio.get_running_loop().create_future()
        await self._never

    def at_once(self) -> str:
        """Restart from another thread, also while a cell runs; returns why that cannot be done.

        A cell that runs is interrupted. If it does not end, its thread is stuck in C++.
        """
        with self._lock:
            if self.obstacle:
                return f"Cannot restart: {self.obstacle}."
            is_stuck = not self._interrupted()
            if self._save(waits=not is_stuck and not self._is_left_alone()) is None:
                return "Cannot restart: the session cannot be written."
            return again.run()

    def _interrupted(self) -> bool:
        """Interrupt the cell that runs; returns whether none runs afterwards."""
        if not self._is_running:
            return True
        os.kill(os.getpid(), signal.SIGINT)
        end = time.monotonic() + _GRACE
        while self._is_running and time.monotonic() < end:
            time.sleep(_LOOK)
        return not self._is_running

    def _is_left_alone(self) -> bool:
        """Whether work goes on that an interrupt has not stopped."""
        behind = find(self.shell, Behind)
        return behind is not None and any(report.is_certain for report in behind.reports)

    def _save(self, waits: bool) -> Saved | None:
        """Write the session, and have the end of the process be a beginning."""
        file = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            saved = save(self.shell, file, waits)
        except KeyboardInterrupt:
            print("%restart: interrupted; the kernel goes on as it was.", file=sys.stderr)
            return None
        except OSError as error:
            folder = tempfile.gettempdir()
            said = f"%restart: cannot write the session to {folder} ({error.strerror}); the kernel "
            print(f"{said}goes on as it was. TMPDIR names another folder.", file=sys.stderr)
            return None
        copies = again.standard_streams()
        with contextlib.suppress(Exception):
            self.shell.history_manager.writeout_cache()

        asking = threading.get_ident()

        def last() -> IO[bytes]:
            for number, copy in copies.items():
                os.dup2(copy, number)
            self.collect()
            running = sorted(self.current.items(), key=lambda one: one[0] != asking)
            saved.finish(
                {
                    "running": [(frames, thread != asking) for thread, frames in running],
                    "waiting": list(self.waiting.values()),
                    "clients": self._counts,
                }
            )
            return file

        again.arm(last)
        return saved

    def _insist(self) -> None:
        time.sleep(_LAST)
        again.run()

    def collect(self) -> None:
        """Count the clients."""
        self._counts = self._counts or [clients.count() for clients in self.clients]

    def close(self) -> None:
        """The sockets are about to be closed."""
        if again.is_armed():
            self.collect()
        for clients in self.clients:
            if isinstance(clients, Peers):
                clients.close()

    # ---- the first steps --------------------------------------------------------------------

    def resume(self, file: IO[bytes]) -> None:
        """Bring the session back that the former program has left."""
        try:
            reader = Reader(file)
            self._left = reader.index["kernel"]
            self._restored = load(self.shell, reader)
        except Exception as error:
            self.kernel.log.exception("the session could not be brought back:")
            self._restored = Restored([], 0, [Lost("all variables", f"{error!r}"[:_MOST_TOLD])])

    def answer(self) -> None:
        """Answer the request that asked for the restart, and hand on those that had not begun."""
        if not self._left:
            return
        self._wait_for_clients()
        # Clients may take the last status for the kernel's, so this one comes before the answer.
        self.kernel._publish_status("starting", "shell")
        self.has_begun = True
        self._tell_later()
        for frames, is_cut in self._left["running"]:
            self._reply(frames, is_cut)
        for frames in self._left["waiting"]:
            if self.kernel.shell_channel_thread is not None:
                self.came(frames)
                manager = self.kernel.shell_channel_thread.manager
                manager.get_shell_channel_to_subshell_socket(None).send_multipart(frames)
        self._left = {}

    def _wait_for_clients(self) -> None:
        begun = time.monotonic()
        for clients, number in zip(self.clients, self._left["clients"], strict=False):
            while clients.count() < number and time.monotonic() < begun + clients.patience:
                time.sleep(_LOOK)

    def _reply(self, frames: list[bytes], is_cut: bool) -> None:
        kernel = self.kernel
        session: Any = kernel.session
        idents, rest = session.feed_identities(frames)
        parent = session.deserialize(rest)
        if parent["header"]["msg_type"] != "execute_request":
            return
        kernel.set_parent(idents, parent, channel="shell")
        self._tell()
        content: dict[str, Any] = {"status": "ok", "payload": [], "user_expressions": {}}
        if is_cut:
            said = "the kernel was restarted while the cell ran"
            content = {"status": "error", "ename": "Restarted", "evalue": said, "traceback": []}
        content["execution_count"] = self.shell.execution_count - 1
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        thread = kernel.shell_channel_thread
        socket = (
            kernel.shell_stream
            if thread is None
            else thread.manager.get_subshell_to_shell_channel_socket(None)
        )
        session.send(socket, "execute_reply", content, parent, ident=idents)
        kernel._publish_status("idle", "shell")

    def _tell(self) -> None:
        """Tell what came back, once."""
        restored, self._restored = self._restored, None
        if restored is not None:
            tell(restored)

    def _tell_later(self) -> None:
        """Tell in the first cell that begins, unless a cell has asked for the restart."""
        hooks = self.shell.events

        def first(info: object) -> None:
            hooks.unregister("pre_run_cell", first)
            self._tell()

        hooks.register("pre_run_cell", first)


def _bytes(frames: Sequence[Any]) -> list[bytes]:
    return [getattr(frame, "bytes", frame) for frame in frames]


def _header(frames: list[bytes]) -> bytes | None:
    """The header of a message, which has its number; `None` if it is no message of a client."""
    return frames[frames.index(DELIM) + 2] if DELIM in frames else None
