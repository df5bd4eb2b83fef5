"""Arguments with JAX's names that Perspex does not take."""

from __future__ import annotations

from typing import Any


def check_no_out(name: str, out: Any) -> None:
    """Raise `NotImplementedError` if the caller asks to write into an array."""
    if out is not None:
        raise NotImplementedError(
            f"The 'out' argument to jnp.{name} is not supported: arrays never change; "
            "use the value that it returns"
        )
