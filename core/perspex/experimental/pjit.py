"""`jit` under the name that it had when it compiled for several devices only."""

from perspex.api.jit import jit as pjit

__all__ = ["pjit"]
