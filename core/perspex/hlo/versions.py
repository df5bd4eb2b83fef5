"""How the compilers in the jaxlibs that we support differ."""

from __future__ import annotations

from jaxlib import version

# Whether an optimization barrier still stands when XLA's CPU compiler fuses: not before 0.11.
KEEPS_BARRIERS = version.__version_info__ >= (0, 11)
