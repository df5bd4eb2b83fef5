"""What a type checker must report: each line that says so at its end, and no other."""

from __future__ import annotations

import perspex
import perspex.numpy as jnp
from perspex import Array, lax, random
from perspex.typing import ArrayLike, DTypeLike

x = jnp.ones(3)
x.summ()  # wrong
print(x.shpae)  # wrong
x.sum(axes=0)  # wrong
x.at[0].sett(1.0)  # wrong
x.at[0].set()  # wrong
x.astype()  # wrong
x.shape = (3, 1)  # wrong
print(x["w"])  # wrong
print(x + "1")  # wrong
x[0] = 1.0  # wrong
float(x.sum) + 1  # wrong
perspex.jitt(abs)  # wrong
perspex.scipy.special.gamaln(x)  # wrong
jnp.sin("x")  # wrong
jnp.sin([1.0, 2.0])  # wrong
jnp.sin(x, 1)  # wrong
jnp.sum(x, axis="rows")  # wrong
jnp.zeros("3")  # wrong
jnp.sinn(x)  # wrong
lax.add(x, None)  # wrong
random.normal(0.5, shape="3")  # wrong

a: ArrayLike = "text"  # wrong
d: DTypeLike = 3  # wrong


@perspex.jit
def step(x: Array, rate: float) -> Array:
    return x * rate


step(x)  # wrong
step(x, "fast")  # wrong
step(x, rat=0.1)  # wrong
step.lowr(x)  # wrong
perspex.grad(step)(x)  # wrong
perspex.grad(step)(x, 0.1).summ()  # wrong
perspex.vmap(step)("x", 0.1)  # wrong
perspex.jit(step, static_argnum=0)  # wrong
lax.cond(True, "f", step, x)  # wrong


def body(carry: Array, x: Array) -> Array:
    return carry + x


lax.scan(body, x, x)  # wrong
