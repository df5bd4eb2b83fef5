"""Names that modules of JAX have for their own use. The same programs ran on jax 0.12."""

from __future__ import annotations

from as_jax_programs import check

IMPORTED = """
import jax, jax.numpy as jnp
import jax.experimental.jet as jet, jax.experimental.ode as ode
import jax.example_libraries.optimizers as o, jax.example_libraries.stax as s
import jax.experimental.multihost_utils as m
print(o.jnp is jnp, s.random is jax.random, m.P is jax.P, jet.api_util is jax.api_util)
print(jet.safe_zip([1], [2]), jet.unzip2([(1, 2), (3, 4)]), ode.op.add(1, 2), ode.map(abs, [-1]))
print(ode.promote_dtypes_inexact(1, jnp.arange(2)))
try: ode.zip([1], [1, 2])
except ValueError: print("refused")
value, series = jet.jet2(jnp.square, (3.0,), ((1.0, 0.0),))
print(float(value), [float(x) for x in series])
try: ode.nothing
except AttributeError as error: print("ode" in str(error))
names = {}
exec("from jax.experimental.ode import odeint", names)
print("zip" in names)
"""

STEPS = """
import jax.numpy as jnp, numpy as np
from jax.experimental import ode
np.set_printoptions(precision=4, suppress=True)
y0, y1, half, dt = jnp.array([1.0, 2.0]), jnp.array([1.5, 2.5]), jnp.array(0.5), jnp.array(0.1)
f = lambda y, t: -y * t
after, slope, error, stages = ode.runge_kutta_step(f, y0, f(y0, half), half, dt)
print(np.asarray(after), np.asarray(slope), np.abs(error).max() < 1e-8, stages.shape)
print(np.asarray(ode.interp_fit_dopri(y0, after, stages, dt))[2:])
for c in ode.fit_4th_order_polynomial(y0, y1, y0, f(y0, dt), f(y1, 2 * dt), dt):
    print(np.asarray(c))
print(f"{ode.initial_step_size(f, 0.5, y0, 4, 1e-4, 1e-4, f(y0, 0.5)):.5f}")
print(f"{ode.mean_error_ratio(jnp.array([0.1, 0.2]), 0.1, 0.1, y0, y1):.5f}", ode.abs2(y0))
print([f"{ode.optimal_step_size(0.1, jnp.array(v)):.4f}" for v in (0.0, 0.5, 2.0, 1e9)])
"""


IMPORTED_EXPECTED = """
True True True True
[(1, 2)] ((1, 3), (2, 4)) 3 [1]
[Array(1., dtype=float32), Array([0., 1.], dtype=float32)]
refused
9.0 [6.0, 1.0]
True
False
"""

STEPS_EXPECTED = """
[0.9465 1.893 ] [-0.5679 -1.1358] True (7, 2)
[[-0.0037 -0.0075]
 [-0.05   -0.1   ]
 [ 1.      2.    ]]
[-4.04 -4.06]
[7.04 7.05]
[-2.49 -2.47]
[-0.01 -0.02]
[1. 2.]
0.06950
0.49322 [1. 4.]
['1.0000', '0.1034', '0.0783', '0.0200']
"""


def test_imported_names(tmp_path) -> None:
    check(IMPORTED, IMPORTED_EXPECTED, tmp_path)


def test_one_step_of_odeint(tmp_path) -> None:
    check(STEPS, STEPS_EXPECTED, tmp_path)
