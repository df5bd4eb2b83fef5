"""The application that opens the sockets and holds one `PerspexKernel`.

Its options are those of ipykernel, and `--PerspexKernel.as_jax=False`.
"""

from __future__ import annotations

import os
import sys

from ipykernel.kernelapp import IPKernelApp
from traitlets import Type, default

from perspex_kernel.kernel import PerspexKernel

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
    # ipykernel's subcommand would install ipykernel's kernelspec; ours comes with the wheel.
    subcommands = {}

    @default("default_extensions")
    def _default_extensions(self) -> list[str]:
        return ["storemagic", "perspex_magics"]

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
