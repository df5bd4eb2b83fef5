"""A trace of the user."""

from __future__ import annotations

from as_jax_programs import check

PROGRAM = """
import jax, jax.numpy as jnp
from jax import core
from jax.extend import core as jex

# a trace of the user's own
class Counting(core.Trace):
    def __init__(self, parent): super().__init__(); self.parent_trace = parent; self.names = []
    def process_primitive(self, p, tracers, params):
        self.names.append(str(p))
        vals = [t.val if isinstance(t, Counted) else t for t in tracers]
        avals = [jax.typeof(v) for v in vals]
        out = p.bind_with_trace(self.parent_trace, vals, avals, params)
        return [Counted(self, o) for o in out] if p.multiple_results else Counted(self, out)
class Counted(core.Tracer):
    def __init__(self, trace, val): super().__init__(trace, jax.typeof(val)); self.val = val
with jex.take_current_trace() as parent:
    trace = Counting(parent)
    with jex.set_current_trace(trace):
        out = jnp.exp(Counted(trace, jnp.float32(1.0))) * 2
print(trace.names, round(float(out.val), 4), isinstance(out, core.Tracer))
"""

# e, twice.
EXPECTED = """
['exp', 'mul'] 5.4366 True
"""


def test_a_trace_of_the_users_own(tmp_path) -> None:
    check(PROGRAM, EXPECTED, tmp_path)
