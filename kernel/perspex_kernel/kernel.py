"""The kernel class: its description, what it loads, and how it is interrupted.

Invariants: `import jax` is decided (`perspex.as_jax`) before any user code runs, startup files
included, and so is the folder for compiled programs; and SIGINT returns control from a cell within
a moment, whether the cell computes or awaits.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from traitlets import Bool, List, default

import perspex
from perspex import config
from perspex.base import environment, source
from perspex.runtime import array as concrete
from perspex.runtime import stopping, watching
from perspex.runtime.callbacks import effects_barrier
from perspex.runtime.compiler.disk import default_directory
from perspex_kernel.restarting import Restarting
from perspex_kernel.streams import Stream
from perspex_magics.compiling.stopped import Stopping
from perspex_magics.restart.contents import save
from perspex_magics.restart.magic import Restart
from perspex_magics.session import find

# Seconds after which an interrupt that came at a bad moment is tried again ...
_AGAIN = 0.005
# ... and during which further ones count as the same: a cell may clean up.
_PEACE = 0.1
# Seconds after which Python would have seen an interrupt, were it not in XLA; and were it in a wait
# for an array, which looks five times a second.
_DEAF, _DEAF_IN_WAIT = 0.05, 0.22

# What may be interrupted as code of the user's may.
_OURS = {effects_barrier.__code__, save.__code__}

# The handler of interrupts is the innermost frame of what it raises.
source.register_internal(os.path.dirname(__file__))


def _switch(text: str) -> bool:
    """What a variable of the environment says that is on or off."""
    said = text.strip().lower()
    if said not in ("0", "false", "no", "off", "1", "true", "yes", "on"):
        raise ValueError("expected 1 or 0")
    return said in ("1", "true", "yes", "on")


def _sendable(text: str) -> str:
    """A text without halves of characters, which no message can hold: its reply would be lost."""
    return text.encode("utf-8", "backslashreplace").decode()


def _is_usable(stream: Any) -> bool:
    """Whether a stream can be written to, and flushed before a reply."""
    try:
        stream.flush()
        return callable(stream.write) and not getattr(stream, "closed", False)
    except BaseException:
        return False


class PerspexKernel(IPythonKernel):
    """IPython's kernel, with `import jax` answered by Perspex unless told otherwise."""

    implementation = "perspex"
    implementation_version = perspex.__version__
    help_links = List(
        [
            {"text": "Python", "url": "https://docs.python.org/3/"},
            {"text": "IPython", "url": "https://ipython.readthedocs.io/en/stable/"},
            {"text": "NumPy", "url": "https://numpy.org/doc/stable/reference/"},
            {
                "text": "JAX, whose API Perspex provides",
                "url": "https://docs.jax.dev/en/latest/jax.html",
            },
            {"text": "Matplotlib", "url": "https://matplotlib.org/stable/"},
        ]
    ).tag(config=True)

    as_jax = Bool(
        help="""`import jax` gives Perspex. If off, an installed jax can be imported, though not in
        the same process as Perspex. The environment variable PERSPEX_AS_JAX=0 turns it off.""",
    ).tag(config=True)

    @default("as_jax")
    def _default_as_jax(self) -> bool:
        wanted: bool = environment.value("AS_JAX", True, _switch)
        return wanted

    def __init__(self, **kwargs: Any) -> None:
        # Compiled programs outlive the kernel; the flag `enable_compilation_cache` turns that off.
        if config.compilation_cache_dir.value is None:
            config.compilation_cache_dir.set(default_directory())
        self.restarting = Restarting(self)
        super().__init__(**kwargs)
        # What cells print to, unless they replace it.
        self._streams = {"stdout": sys.stdout, "stderr": sys.stderr}
        self._publishing = {n: getattr(s, "pub_thread", None) for n, s in self._streams.items()}
        # The request whose cell runs, and those whose cell could not be interrupted yet.
        self._executing: str | None = None
        self._early: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._retrier: threading.Thread | None = None
        # When Python last saw one, and whether that was during this request.
        self._seen = 0.0
        self._pressed = False
        # Where C writes the number of each signal, also while XLA keeps Python waiting.
        self._presses: socket.socket | None = None
        # When the last interrupt was raised, by `time.monotonic`.
        self._interrupted = 0.0
        self._report_ignored = sys.unraisablehook
        sys.unraisablehook = self._retry_ignored
        if self.as_jax:
            importlib.import_module("perspex.as_jax")
        assert self.shell is not None
        # Ahead of everything else that shows something at the end of a cell.
        self.shell.events.register("post_run_cell", self._check_streams)
        environment.check_xla_flags()
        if environment.problems:
            self._tell_problems()

    def _tell_problems(self) -> None:
        """Say in the log, and in the first cell, what of the environment was left out."""
        assert self.shell is not None
        hooks = self.shell.events
        told = [f"Perspex: {problem}" for problem in environment.problems]
        for line in told:
            self.log.warning(line)

        def tell(info: object) -> None:
            hooks.unregister("pre_run_cell", tell)
            print(*told, sep="\n", file=sys.stderr)

        hooks.register("pre_run_cell", tell)

    @property
    def banner(self) -> str:  # type: ignore[override]
        """The first lines that a console shows, and part of `kernel_info_reply`."""
        python = ".".join(map(str, sys.version_info[:3]))
        answer = (
            "`import jax` gives Perspex; PERSPEX_AS_JAX=0 turns that off."
            if self.as_jax
            else "`import jax` is left alone (as_jax is off)."
        )
        return f"Perspex {perspex.__version__} (Python {python}). {answer}\n%%jit? tells more.\n"

    def pre_handler_hook(self) -> None:
        """Before a request is handled: have SIGINT raise where an exception does no harm.

        ipykernel lets it raise anywhere. Between its own lines around a cell, the exception would
        lose the reply, and the notebook would wait for it for ever.
        """
        super().pre_handler_hook()
        header = self.get_parent("shell").get("header", {})
        if header.get("msg_type") == "execute_request":
            self._executing = header["msg_id"]
            self._interrupted, self._pressed = 0.0, False
            signal.signal(signal.SIGINT, self._raise_or_retry)
            if self._presses is None:
                self._presses = self._hear_presses()
            if self._retrier is None:
                self._retrier = threading.Thread(
                    target=self._retry, name="perspex-interrupt", daemon=True
                )
                self._retrier.start()

    def post_handler_hook(self) -> None:
        """After a request: SIGINT is ignored again."""
        super().post_handler_hook()  # fails in the thread of a subshell, which sets no handlers
        self._executing = None

    @property
    def restart_obstacle(self) -> str:
        """Why `%restart` cannot be had; empty if it can."""
        return self.restarting.obstacle

    def start(self) -> None:
        """Begin to answer requests."""
        self.restarting.answer()
        super().start()

    def _publish_status(self, status: str, channel: str, parent: Any = None) -> None:
        if status != "starting" or not self.restarting.has_begun:
            super()._publish_status(status, channel, parent)

    def restart(self) -> str:
        """Restart and keep the session, from any thread; returns why that cannot be done."""
        return self.restarting.at_once()

    async def shell_channel_thread_main(self, msg: Any) -> None:
        """Hand a message to the thread that is to handle it."""
        self.restarting.came(msg)
        await super().shell_channel_thread_main(msg)

    async def dispatch_shell(
        self, msg: Any, /, subshell_id: str | None = None, *, concurrent: bool = False
    ) -> None:
        """Handle a message."""
        with self.restarting.handling(msg, concurrent):
            await super().dispatch_shell(msg, subshell_id, concurrent=concurrent)

    async def do_execute(self, code: str, *args: Any, **options: Any) -> dict[str, Any]:
        """Run a cell. What leaves it besides an interrupt becomes the reply.

        IPython answers `sys.exit()` in the cell itself. The `SystemExit` of a hook, of a user's
        object that is looked at, or of the profiler would end the process and lose the notebook; an
        error would lose the reply, and the notebook would wait for it for ever.
        """
        try:
            reply: dict[str, Any] = await super().do_execute(code, *args, **options)
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except BaseException as error:
            assert self.shell is not None
            reply = {"execution_count": self.shell.execution_count - 1, "payload": []}
            reply |= {"user_expressions": {}, **self._survived(error)}
        self._check_streams()
        if reply["status"] == "error":
            for name in ("ename", "evalue"):
                reply[name] = _sendable(reply[name])
            reply["traceback"] = [_sendable(line) for line in reply["traceback"]]
        assert self.shell is not None
        restart = find(self.shell, Restart)
        asked = None if restart is None else restart.take()
        if asked is not None and reply["status"] == "ok":
            await self.restarting.leave(asked.now)
        return reply

    def _check_streams(self, result: object = None) -> None:
        """Put streams back that the cell has left unusable: IPython needs both for every cell."""
        for name, own in self._streams.items():
            stream = getattr(sys, name, None)
            if _is_usable(stream):
                continue
            if not _is_usable(own) and isinstance(own, Stream):
                # It was closed, and knows no more where to.
                own = self._streams[name] = Stream(own.session, self._publishing[name], name)
            setattr(sys, name, own)
            with suppress(Exception):
                what = "is gone" if stream is None else "cannot be written to"
                print(f"Perspex: sys.{name} {what}; the notebook's own is back.", file=own)

    def do_complete(self, code: str, cursor_pos: int) -> Any:
        """Complete a name. An object that exits when it is looked at ends nothing."""
        try:
            return super().do_complete(code, cursor_pos)
        except SystemExit as error:
            return self._survived(error)

    def do_inspect(self, code: str, cursor_pos: int, *args: Any, **options: Any) -> Any:
        """Describe an object. One that exits when it is looked at ends nothing."""
        try:
            return super().do_inspect(code, cursor_pos, *args, **options)
        except SystemExit as error:
            return self._survived(error)

    def _survived(self, error: BaseException) -> dict[str, Any]:
        """The reply for an exception that would have ended the process."""
        self.log.error("the kernel goes on after this:", exc_info=error)
        told = f"{type(error).__name__} was raised outside of the cell, and ended what raised it"
        return {"status": "error", "ename": type(error).__name__, "evalue": told, "traceback": []}

    def _raise_or_retry(self, signum: int, frame: FrameType | None) -> None:
        """Interrupt the cell where it is in code of the user's, or else a little later."""
        now = self._seen = time.monotonic()
        self._pressed = True
        assert self.shell is not None
        if (loops := find(self.shell, Stopping)) is not None:
            loops.settle()
        if now - self._interrupted < _PEACE:
            return  # the button pressed twice does not mean the `finally` that it set off
        if self._is_user_code(frame):
            self._interrupted = now
            raise KeyboardInterrupt
        self._early.put(self._executing)  # the one queue that a signal handler may use

    def _hear_presses(self) -> socket.socket:
        """Have a thread hear of signals that Python has no chance to see."""
        heard, presses = socket.socketpair()
        presses.setblocking(False)
        if (other := signal.set_wakeup_fd(presses.fileno(), warn_on_full_buffer=False)) != -1:
            signal.set_wakeup_fd(other)  # somebody else hears of them
        threading.Thread(
            target=self._follow_presses, args=(heard,), name="perspex-presses", daemon=True
        ).start()
        return presses

    def _follow_presses(self, heard: socket.socket) -> None:
        """After an interrupt that Python has not seen in time, stop what it waits for."""
        while numbers := heard.recv(64):
            assert self.shell is not None
            request, loops = self._executing, find(self.shell, Stopping)
            if signal.SIGINT not in numbers or request is None or loops is None:
                continue
            came = time.monotonic()
            loops.press()
            main = threading.main_thread().ident or 0
            frame = sys._current_frames().get(main)
            looks = frame is not None and frame.f_code.co_filename == concrete.__file__
            looks |= main in watching.running  # between two turns
            end = came + (_DEAF_IN_WAIT if looks else _DEAF)
            while time.monotonic() < end and self._seen < came:
                time.sleep(_AGAIN)
            if self._seen < came and request == self._executing:
                stopping.halt()

    def _retry_ignored(self, ignored: sys.UnraisableHookArgs) -> None:
        """Try an interrupt again that has got lost in a place where Python ignores exceptions.

        Such as the callback of a weak reference: it is the first code to run after a collection of
        garbage, during which most of the time of a large trace may pass. A `__del__` that raises a
        `KeyboardInterrupt` of its own has lost none.
        """
        if self._pressed and issubclass(
            ignored.exc_type, KeyboardInterrupt | asyncio.CancelledError
        ):
            self._interrupted = 0.0
            self._early.put(self._executing)
        else:
            self._report_ignored(ignored)

    def _retry(self) -> None:
        while True:
            request = self._early.get()
            time.sleep(_AGAIN)
            if request is not None and request == self._executing:
                os.kill(os.getpid(), signal.SIGINT)

    @contextmanager
    def _cancel_on_sigint(self, future: asyncio.Future[Any]) -> Iterator[None]:
        """Make SIGINT stop the async cell behind `future`.

        Overrides ipykernel's, whose cancellation waited for the next message: 5.6 s were measured
        where waking the event loop from the signal handler takes 30 ms. Nor could it stop a loop
        that never awaits; raising where the user's own frames are running can.
        """
        loop = asyncio.get_running_loop()

        def on_sigint(signum: int, frame: FrameType | None) -> None:
            self._seen = time.monotonic()
            self._pressed = True
            running = self._is_user_code(frame)
            if running and asyncio.current_task(loop) is future:
                raise KeyboardInterrupt
            loop.call_soon_threadsafe(future.cancel)
            if running:
                # In a task that the cell started: a KeyboardInterrupt would end the event loop.
                raise asyncio.CancelledError

        previous = signal.signal(signal.SIGINT, on_sigint)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    def _is_user_code(self, frame: FrameType | None) -> bool:
        assert self.shell is not None
        namespace = self.shell.user_global_ns
        while frame is not None:
            # At the end of a cell the notebook waits for what its programs print and call, and
            # `%restart` writes what it keeps.
            if frame.f_globals is namespace or frame.f_code in _OURS:
                return True
            frame = frame.f_back
        return False
