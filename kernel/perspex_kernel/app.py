"""The application that opens the sockets and holds one `PerspexKernel`.

Its options are those of ipykernel, and `--PerspexKernel.as_jax=False`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from ipykernel.kernelapp import IPKernelApp
from traitlets import Bunch, DottedObjectName, Type, default, observe

from perspex_kernel import again
from perspex_kernel.clients import Peers, Subscriptions
from perspex_kernel.kernel import PerspexKernel
from perspex_kernel.streams import Stream

_PACKAGES = {"site-packages", "dist-packages"}


class PerspexKernelApp(IPKernelApp):
    """IPython's kernel application, with the Perspex kernel and its extension."""

    name = "perspex-kernel"
    description = "The Perspex kernel: IPython over Perspex's arrays and transforms."
    classes = [PerspexKernel, *IPKernelApp.classes]
    kernel_class = Type(  # type: ignore[assignment]
        PerspexKernel,
        klass="ipykernel.kernelbase.Kernel",
        help="The kernel class to run.",
    ).tag(config=True)
    outstream_class = DottedObjectName(
        f"{Stream.__module__}.{Stream.__name__}",
        help="The class of sys.stdout and sys.stderr.",
        allow_none=True,
    ).tag(config=True)
    # ipykernel's subcommand would install ipykernel's kernelspec; ours comes with the wheel.
    subcommands = {}

    @default("default_extensions")
    def _default_extensions(self) -> list[str]:
        return ["storemagic", "perspex_magics"]

    def initialize(self, argv: list[str] | None = None) -> None:
        """Open the sockets and make the kernel, with the session that a restart has kept."""
        left = again.inherited()
        super().initialize(argv)
        if left is not None:
            with left:
                self.kernel.restarting.resume(left)

    def init_sockets(self) -> None:
        """Open the sockets, and count who connects to them."""
        self.clients: list[Peers | Subscriptions] = []
        super().init_sockets()

    def _bind_socket(self, s: Any, port: int) -> int:
        if s is self.shell_socket:
            self.clients.append(Peers(s))
        elif s is self.iopub_socket:
            self.clients.append(Subscriptions(s))
        bound: int = super()._bind_socket(s, port)
        return bound

    @observe("iopub_thread")
    def _listen(self, change: Bunch) -> None:
        if (thread := change.new) is not None:
            subscriptions = next(one for one in self.clients if isinstance(one, Subscriptions))
            subscriptions.listen(thread)

    def init_kernel(self) -> None:
        """Make the kernel, which knows who is connected."""
        super().init_kernel()
        self.kernel.restarting.clients = self.clients

    def close(self) -> None:
        """Close the sockets."""
        self.kernel.restarting.close()
        super().close()

    def init_path(self) -> None:
        """Let cells import what lies beside the notebook, behind Python's own modules.

        IPython leaves that out under `python -P`, which here is only meant for the start. Whoever
        sets PYTHONSAFEPATH means the notebook as well.
        """
        super().init_path()
        is_wanted = not self.ignore_cwd and "PYTHONSAFEPATH" not in os.environ
        if is_wanted and "" not in sys.path:
            names = [os.path.basename(folder) for folder in sys.path]
            at = next((i for i, name in enumerate(names) if name in _PACKAGES), 0)
            sys.path.insert(at, "")

    def _run_startup_files(self) -> None:
        """Run them, and put back a stream that one has left unusable: IPython writes to both."""
        super()._run_startup_files()
        self.kernel._check_streams()

    def start(self) -> None:
        """Serve until the kernel is shut down.

        ipykernel ends with its event loop: when a cell stops the loop, and when the handler of a
        signal raises between two cells. Nobody asked for that, so the loop goes on.
        """
        self._serve(super().start)
        loop = getattr(self, "io_loop", None)
        if loop is None or self.trio_loop:
            return
        while not loop.asyncio_loop.is_closed():
            if self.kernel._shutdown_message is not None or self.kernel.restarting.is_leaving:
                return
            self.log.warning("something stopped the kernel's event loop; it goes on")
            self._serve(loop.start)

    def _serve(self, start: Callable[[], None]) -> None:
        try:
            start()
        except BaseException as error:
            if getattr(self, "io_loop", None) is None:
                raise  # the kernel could not be started
            self.log.error("the kernel goes on after this:", exc_info=error)
