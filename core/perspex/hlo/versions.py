"""How the compilers in the jaxlibs that we support differ."""

from __future__ import annotations

from jaxlib import version

# Whether an optimization barrier still stands when XLA's CPU compiler fuses: not before 0.11.
KEEPS_BARRIERS = version.__version_info__ >= (0, 11)

# Whether the compiler survives a division of integers by a zero that it finds out itself: in 0.10.2
# the process ends with a floating point exception, in 0.12 the quotient is -1.
FOLDS_DIVISIONS_BY_ZERO = version.__version_info__ >= (0, 12)
