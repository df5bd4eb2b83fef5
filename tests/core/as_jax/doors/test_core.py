"""Programs as data: interpreters, registries, the current trace."""

# ruff: noqa: E501 - programs as libraries write them
from __future__ import annotations

from as_jax_programs import check

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from jax import core, lax
from jax.extend import core as jex
from jax.extend.core import primitives as P
from jax.interpreters import ad, batching

# an interpreter over a jaxpr, with a rule for a call
def interpret(jaxpr, consts, *args):
    env = {}
    read = lambda v: v.val if isinstance(v, jex.Literal) else env[v]
    env.update(zip(jaxpr.invars, args)); env.update(zip(jaxpr.constvars, consts))
    names = []
    for eqn in jaxpr.eqns:
        vals = [read(v) for v in eqn.invars]
        params = eqn.primitive.get_bind_params(eqn.params)
        if eqn.primitive is P.jit_p:
            inner = eqn.params["jaxpr"]
            out, more = interpret(inner.jaxpr, inner.consts, *vals)
            names += more
        else:
            out = eqn.primitive.bind(*vals, **params)
            if not eqn.primitive.multiple_results: out = [out]
            names.append(str(eqn.primitive))
        env.update(zip(eqn.outvars, out))
    return [read(v) for v in jaxpr.outvars], names

@jax.jit
def inner(x): return jnp.sin(x) * 2
@jax.custom_jvp
def cube(x): return x ** 3
cube.defjvp(lambda p, t: (cube(p[0]), 3 * p[0] ** 2 * t[0]))
def f(x):
    y = inner(x) + cube(x)
    c, ys = lax.scan(lambda c, a: (c + a, c * a), y, jnp.arange(3.0))
    return lax.cond(x > 0, lambda: c, lambda: -c), ys
closed = jax.make_jaxpr(f)(1.5)
out, names = interpret(closed.jaxpr, closed.consts, 1.5)
print(np.allclose(out[0], f(1.5)[0]), np.allclose(out[1], f(1.5)[1]), "sin" in names, "scan" in names)
out = core.eval_jaxpr(closed.jaxpr, closed.consts, 1.5)
print(np.allclose(out[0], f(1.5)[0]), np.allclose(jex.jaxpr_as_fun(closed)(1.5)[0], f(1.5)[0]))
print(len(list(jex.jaxprs_in_params(closed.eqns[0].params))), isinstance(closed.jaxpr, jex.Jaxpr),
      all(isinstance(e, jex.JaxprEqn) and isinstance(e.outvars[0], jex.Var) for e in closed.eqns))
print(all(isinstance(e.primitive, jex.Primitive) for e in closed.eqns))

# the registries show the rules of built-in primitives
(y,), (t,) = [[v] for v in ad.primitive_jvps[P.neg_p]((0.5,), (1.0,))]
print(round(float(y), 4), round(float(t), 4), P.sin_p in ad.primitive_jvps, P.neg_p in ad.primitive_transposes)
x = jnp.ones((2, 3))
print(batching.fancy_primitive_batchers[P.neg_p](None, (x,), (1,))[1])
ct = ad.primitive_transposes[P.neg_p](1.0, ad.UndefinedPrimal(core.ShapedArray((), np.dtype("float32"))))
print(*map(float, ct))

# which trace is current
state = jex.get_opaque_trace_state(convention="x")
print(state == jex.get_opaque_trace_state(convention="x"))
seen = []
def g(x):
    seen.append(state == jex.get_opaque_trace_state(convention="x"))
    seen.append(jex.unsafe_am_i_under_a_jit_DO_NOT_USE())
    return x
jax.jit(g)(1.0)
print(seen, jex.unsafe_am_i_under_a_jit_DO_NOT_USE())
print(jex.valid_jaxtype(1.0), jex.valid_jaxtype("a"), jex.mapped_aval(3, 0, core.ShapedArray((3, 2), jnp.float32)).shape,
      jex.unmapped_aval(3, 1, core.ShapedArray((2,), jnp.float32)).shape)
print(isinstance(core.ShapedArray((), jnp.float32), core.AbstractValue))
"""

# What jax 0.12 prints.
EXPECTED = """
True True True True
True True
1 True True
True
-0.5 -1.0 True True
1
-1.0
True
[False, True] False
True False (2,) (2, 3)
True
"""


def test_programs_are_data(tmp_path) -> None:
    check(PROGRAM, EXPECTED, tmp_path)
