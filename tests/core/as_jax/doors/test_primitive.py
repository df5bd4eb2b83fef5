"""Primitives that a library defines in the way of JAX."""

# ruff: noqa: E501 - programs as libraries write them
from __future__ import annotations

from as_jax_programs import check

PROGRAM = """
import functools
import jax, jax.numpy as jnp, numpy as np
from jax import core
from jax.extend import core as jex_core
from jax.interpreters import ad, batching, mlir, xla

# multiply_add, as JAX's tutorial on primitives has it
ma_p = jex_core.Primitive("multiply_add")
ma = lambda x, y, z: ma_p.bind(x, y, z)
ma_p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
ma_p.def_abstract_eval(lambda x, y, z: core.ShapedArray(x.shape, x.dtype))

def lower(ctx, x, y, z):
    from jax.extend.mlir.dialects import stablehlo as hlo
    return [hlo.AddOp(hlo.MulOp(x, y).result, z).result]
mlir.register_lowering(ma_p, lower)

def jvp(primals, tangents):
    x, y, z = primals
    xt, yt, zt = [ad.instantiate_zeros(t) for t in tangents]
    return ma(x, y, z), ma(xt, y, ma(x, yt, zt))
ad.primitive_jvps[ma_p] = jvp

def transpose(ct, x, y, z):
    zero = jnp.zeros_like(ct)
    return (ma(ct, y, zero) if ad.is_undefined_primal(x) else None,
            ma(x, ct, zero) if ad.is_undefined_primal(y) else None,
            ct if ad.is_undefined_primal(z) else None)
ad.primitive_transposes[ma_p] = transpose

def batch(args, axes):
    size = next(x.shape[i] for x, i in zip(args, axes) if i is not None)
    return ma(*[batching.bdim_at_front(x, i, size) for x, i in zip(args, axes)]), 0
batching.primitive_batchers[ma_p] = batch

square_add = lambda a, b: ma(a, a, b)
print(square_add(2.0, 10.0), jax.jit(square_add)(2.0, 10.0))
print(*[float(y) for y in jax.jvp(square_add, (2.0, 10.0), (1.0, 1.0))])
print(jax.grad(square_add)(2.0, 10.0), jax.jit(jax.grad(square_add, 1))(2.0, 10.0))
x = jnp.arange(3.0)
print(jax.vmap(square_add)(x, x + 1), jax.jit(jax.vmap(jax.grad(square_add)))(x, x))
print([e.primitive is ma_p for e in jax.make_jaxpr(square_add)(2.0, 1.0).eqns])

# several results, params, lower_fun, rules for each operand
sc_p = jex_core.Primitive("sin_cos")
sc_p.multiple_results = True
both = lambda x, *, scale: [jnp.sin(x) * scale, jnp.cos(x) * scale]
sc_p.def_impl(both)
sc_p.def_abstract_eval(lambda x, *, scale: [x, x])
mlir.register_lowering(sc_p, mlir.lower_fun(both, multiple_results=True))
def sc_jvp(primals, tangents, *, scale):
    (x,), (t,) = primals, tangents
    s, c = sc_p.bind(x, scale=scale)
    if type(t) is ad.Zero:
        return [s, c], [ad.Zero.from_primal_value(s), ad.Zero.from_primal_value(c)]
    return [s, c], [c * t, -s * t]
ad.primitive_jvps[sc_p] = sc_jvp
def sc_batch(axis_size, axis_name, trace_type, args, axes, *, scale):
    return sc_p.bind(*args, scale=scale), [axes[0], axes[0]]
batching.axis_primitive_batchers[sc_p] = sc_batch
f = lambda x: sum(sc_p.bind(x, scale=[2.0][0]))
print(round(float(jax.jit(f)(1.0)), 5), round(float(jax.grad(f)(1.0)), 5), jax.vmap(f)(x).round(4))
print(round(float(jax.jit(jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(c), c), x, None, 3)[0]))(1.0)), 4))

half_p = jex_core.Primitive("half")
half_p.def_impl(functools.partial(xla.apply_primitive, half_p))
half_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(half_p, mlir.lower_fun(lambda x: x / 2, multiple_results=False))
ad.deflinear(half_p, lambda ct: [half_p.bind(ct)])
batching.defvectorized(half_p)
print(half_p.bind(3.0), jax.grad(lambda x: half_p.bind(x).sum())(x), jax.vmap(half_p.bind)(x))

mul_p = jex_core.Primitive("my_mul")
mul_p.def_impl(lambda x, y: x * y)
mul_p.def_abstract_eval(lambda x, y: x)
mlir.register_lowering(mul_p, mlir.lower_fun(lambda x, y: x * y, multiple_results=False))
ad.defbilinear(mul_p, lambda ct, x, y: mul_p.bind(ct, y), lambda ct, x, y: mul_p.bind(x, ct))
batching.defbroadcasting(mul_p)
print(jax.grad(lambda x: mul_p.bind(mul_p.bind(x, x), x))(2.0), jax.vmap(mul_p.bind, (0, None))(x, 3.0))

for g in (lambda: jax.grad(jex_core.Primitive("bare").bind)(1.0),
          lambda: jex_core.Primitive("bare").bind(1.0)):
    try: g()
    except NotImplementedError as e: print(str(e).split(";")[0])
"""

# What jax 0.12 prints.
EXPECTED = """
14.0 14.0
14.0 5.0
4.0 1.0
[1. 3. 7.] [0. 2. 4.]
[True]
2.76355 -0.60234 [2.     2.7635 0.9863]
4.1782
1.5 [0.5 0.5 0.5] [0.  0.5 1. ]
12.0 [0. 3. 6.]
Differentiation rule for 'bare' not implemented
Evaluation rule for 'bare' not implemented
"""


def test_a_primitive_is_given_its_rules(tmp_path) -> None:
    check(PROGRAM, EXPECTED, tmp_path)
