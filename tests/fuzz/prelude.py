"""What every program of the fuzzer begins with, as text: it is run by Perspex and by real JAX."""

from __future__ import annotations

PRELUDE = '''
import importlib
import operator
from functools import partial

import numpy as np

P = jax.sharding.PartitionSpec
segments = importlib.import_module(
    jax.__name__ + (".ops" if jax.__name__ == "jax" else ".numpy.segments")
)

def is_inexact(x):
    return jnp.issubdtype(jnp.result_type(x), jnp.inexact)

def total(tree):
    """A real number in which all numbers of a tree have a part."""
    parts = [jnp.zeros(())]
    for x in jax.tree.leaves(tree):
        if is_inexact(x):
            x = jnp.real(x) + jnp.imag(x) if jnp.iscomplexobj(x) else x
            parts.append(jnp.sum(jnp.asarray(x).astype(parts[0].dtype)))
    return sum(parts[1:], parts[0])

def scalar(f):
    return lambda *args: total(f(*args))

def tangent(x):
    x = jnp.asarray(x)
    if not is_inexact(x):
        return np.zeros(x.shape, jax.dtypes.float0)
    cosines = np.cos(np.arange(x.size, dtype=np.float32)).reshape(x.shape)
    return jnp.asarray(cosines.astype(x.dtype))

def strong(x):
    """The number, not weakly typed. Whether jax's slopes are depends on what it compiles."""
    known = getattr(x, "dtype", None)
    return x if known is None or known == jax.dtypes.float0 else lax.convert_element_type(x, known)

def forward(f):
    """The results and their tangents."""
    def pushed(*args):
        out, tangents = jax.jvp(f, args, tuple([tangent(x) for x in args]))
        return out, jax.tree.map(strong, tangents)
    return pushed

def backward(f):
    """The cotangents of the arguments."""
    def pulled(*args):
        out, pull = jax.vjp(f, *args)
        return jax.tree.map(strong, pull(jax.tree.map(tangent, out)))
    return pulled

def linear(f):
    def pushed(*args):
        out, push = jax.linearize(f, *args)
        return out, jax.tree.map(strong, push(*[tangent(x) for x in args]))
    return pushed

def batched(f):
    """The rule of `custom_vmap` that maps as `vmap` does."""
    def rule(size, given, *args):
        out = jax.vmap(f, [0 if b else None for b in given], axis_size=size)(*args)
        return out, jax.tree.map(lambda _: True, out)
    return rule

def positive(x):
    """A parameter of a distribution, from 0.4 to 2.7."""
    return jnp.exp(jnp.sin(x))

def between(x):
    """A probability, from 0.1 to 0.9."""
    return 0.5 + 0.4 * jnp.sin(x)

def summed(x, start, f, axes):
    """What stands in for `lax.reduce` where a report asks what it is that differs."""
    return jnp.sum(x, axes).astype(x.dtype)

def without_rule(f):
    """What stands in for `custom_vmap` there."""
    plain = lambda *args: f(*args)
    plain.def_vmap = lambda rule: rule
    return plain

def mesh(**axes):
    devices = np.array(jax.devices()[:8]).reshape(tuple(axes.values()))
    return jax.sharding.Mesh(devices, tuple(axes))

def lanes(x, axis=0):
    """Two examples: an array, and itself backwards; without a compilation if it is known."""
    x = jnp.asarray(x)
    known = not isinstance(x, jax.core.Tracer) and not jnp.issubdtype(x.dtype, jax.dtypes.extended)
    if known and not x.weak_type:
        return jnp.asarray(np.stack([np.asarray(x), np.flip(np.asarray(x))], axis))
    return jnp.stack([x, jnp.flip(x)], axis)
'''
