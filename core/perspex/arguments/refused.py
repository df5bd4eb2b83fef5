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


def check_unsharded(name: str, sharding: Any) -> None:
    """Raise `NotImplementedError` if the caller asks for a sharding, as meshes with types take."""
    if sharding is not None:
        raise NotImplementedError(
            f"{name}: out_sharding is not supported; constrain the result with "
            "lax.with_sharding_constraint, or move it with device_put"
        )
