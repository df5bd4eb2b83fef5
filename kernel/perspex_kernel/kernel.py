"""The kernel class: what it says about itself, what it loads, how it is interrupted.

Always true here: `import jax` is settled (`perspex.as_jax`) before any user code runs, startup
files included; and SIGINT gets a cell back within a moment, whether it computes or awaits.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from traitlets import Bool, List, default

import perspex


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
                "text": "JAX, whose names Perspex answers to",
                "url": "https://docs.jax.dev/en/latest/jax.html",
            },
            {"text": "Matplotlib", "url": "https://matplotlib.org/stable/"},
        ]
    ).tag(config=True)

    as_jax = Bool(
        help="""`import jax` gives Perspex. Off: an installed jax can be imported, though not in the
        same process as Perspex. The environment variable PERSPEX_AS_JAX=0 turns it off, too.""",
    ).tag(config=True)

    @default("as_jax")
    def _default_as_jax(self) -> bool:
        answer = os.environ.get("PERSPEX_AS_JAX", "1").strip().lower()
        return answer not in ("0", "false", "no", "off")

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if self.as_jax:
            importlib.import_module("perspex.as_jax")

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

    @contextmanager
    def _cancel_on_sigint(self, future: asyncio.Future[Any]) -> Iterator[None]:
        """Make SIGINT stop the async cell behind `future`.

        Overrides ipykernel's, whose cancellation waited for the next message: 5.6 s were measured
        where waking the event loop from the signal handler takes 30 ms. Nor could it stop a loop
        that never awaits; raising where the user's own frames are running can.
        """
        loop = asyncio.get_running_loop()

        def on_sigint(signum: int, frame: FrameType | None) -> None:
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
            if frame.f_globals is namespace:
                return True
            frame = frame.f_back
        return False
