"""`jax._src.checkify`: the public names, and the base of the exceptions."""

from __future__ import annotations

from perspex.experimental.checkify import *  # noqa: F403
from perspex.experimental.checkify import __all__ as _public
from perspex.transforms.failures import JaxException as JaxException

__all__ = [*_public, "JaxException"]
