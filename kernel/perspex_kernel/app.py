"""The application that opens the sockets and holds one `PerspexKernel`.

Its options are those of ipykernel, and `--PerspexKernel.as_jax=False`.
"""

from __future__ import annotations

from ipykernel.kernelapp import IPKernelApp
from traitlets import Type, default

from perspex_kernel.kernel import PerspexKernel


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
