"""Functions of flat lists, and programs in two."""

# ruff: noqa: E501 - programs as libraries write them
from __future__ import annotations

from as_jax_programs import check

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from jax import core
from jax.api_util import argnums_partial, debug_info, flatten_fun, flatten_fun_nokwargs, safe_map
from jax.extend import linear_util as lu
from jax.interpreters import partial_eval as pe

def f(x, y, *, scale):
    return {"a": x * scale, "b": (x + y, 3.0)}
info = lambda: debug_info("test", lambda *a: 0, (), {})._replace(arg_names=None)
leaves, in_tree = jax.tree.flatten(((1.0, 2.0), {"scale": 2.0}))
flat, out_tree = flatten_fun(lu.wrap_init(f, debug_info=info()), in_tree)
print(flat.call_wrapped(*leaves), out_tree())
try: flatten_fun(lu.wrap_init(f, debug_info=info()), in_tree)[1]()
except lu.StoreException as e: print(e)

@lu.transformation2
def doubled(f, *args): return [2 * y for y in f(*args)]
@lu.transformation
def plus(n, *args):
    out = yield [a + n for a in args], {}
    yield out
fun = doubled(lu.wrap_init(lambda x: [x], debug_info=info()))
print(fun.call_wrapped(3), plus(fun, 10).call_wrapped(3))

S = core.ShapedArray((2,), jnp.float32)
flat, out_tree = flatten_fun_nokwargs(lu.wrap_init(lambda x: (x * 2, np.ones(2, np.float32)), debug_info=info()),
                                      jax.tree.structure((0,)))
jaxpr, avals, consts = pe.trace_to_jaxpr_dynamic(flat, [S])
print([a.shape for a in avals], [str(e.primitive) for e in jaxpr.eqns], out_tree())
jaxpr, used = pe.dce_jaxpr(jaxpr, [False, True])
print(len(jaxpr.eqns), used[-1])

fun = lu.wrap_init(lambda x, y: [x * 2, jnp.sin(y) + x], debug_info=info())
jaxpr, pvals, consts = pe.trace_to_jaxpr_nounits(fun, [pe.PartialVal.known(jnp.float32(3.0)), pe.PartialVal.unknown(core.ShapedArray((), jnp.float32))])
print([p.is_known() for p in pvals], float(pvals[0].get_known()), pvals[1].get_aval().shape, len(jaxpr.eqns))
print(round(float(core.eval_jaxpr(jaxpr, (), *consts, jnp.float32(1.0))[0]), 4))
g, dyn = argnums_partial(lu.wrap_init(lambda a, b: [a - b], debug_info=info()), (1,), (1.0, 5.0))
print(dyn, safe_map(lambda a, b: a + b, [1, 2], [3, 4]))
"""

# What jax 0.12 prints.
EXPECTED = """
[2.0, 3.0, 3.0] PyTreeDef({'a': *, 'b': (*, *)})
Store empty
[6] [26]
[(2,), (2,)] ['mul'] PyTreeDef((*, *))
0 False
[True, False] 6.0 () 2
3.8415
(5.0,) [4, 6]
"""


def test_flat_functions_and_programs_in_two(tmp_path) -> None:
    check(PROGRAM, EXPECTED, tmp_path)
