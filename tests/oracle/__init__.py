"""Expected values from real JAX, run in a process of its own.

A *case* is one line of Python in `cases/NAME.txt`, written in the names `jax jnp lax random np`.
Real JAX evaluated every line once and its outcomes stand in `records/NAME.json`; the tests
evaluate the same text under Perspex's names and compare value, dtype, weak type and shape, or the
kind of error. A question
that needs more than one line has a *recorder*: `recorders/NAME.py`, which runs as a whole under
real JAX, and whose records the tests of its subject compare. `README.md` in this directory says how
to add cases and how to record them again.

What always holds: this process never imports `jax`, and no record comes from Perspex.
"""

from .cases import Case as Case
from .cases import case_names as case_names
from .cases import case_table as case_table
from .compare import differences as differences
from .session import check as check
