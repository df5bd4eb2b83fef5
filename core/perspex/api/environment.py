"""What to say of an installation in a report of a problem."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from typing import Any

import numpy as np

from perspex.base import xla
from perspex.runtime import client


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, devices and settings, for a report of a problem.

    Args:
      return_string: return the text instead of printing it.

    Returns:
      Nothing, or the text.

    Raises:
      Nothing.

    >>> print(print_environment_info(return_string=True).splitlines()[0].split(":")[0])
    perspex
    """
    devices = client.devices()
    rows: dict[str, Any] = {
        "perspex": _version(),
        "jaxlib": xla.JAXLIB_VERSION,
        "numpy": np.__version__,
        "python": sys.version.replace("\n", " "),
        "device info": f"{devices[0].device_kind}-{len(devices)}, "
        f"{client.local_device_count()} local devices",
        "process_count": client.process_count(),
        "platform": platform.uname(),
    }
    lines = [f"{name + ':':<8}{value}" for name, value in rows.items()]
    lines += [
        f"{name}={value}"
        for name, value in os.environ.items()
        if name.startswith(("JAX_", "PERSPEX_", "XLA_"))
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None


def _version() -> str:
    try:
        return importlib.metadata.version("perspex")
    except importlib.metadata.PackageNotFoundError:  # run from its sources
        return "not installed"
