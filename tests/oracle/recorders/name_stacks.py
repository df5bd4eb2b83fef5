"""The names around the equations of derivatives and batches, as JAX writes them."""

from __future__ import annotations

from typing import Any


def record() -> dict[str, Any]:
    """The equations of programs by the program's name: primitive, and the names around it."""
    import jax
    import jax.extend.core  # the names of JAX's inside, which Perspex has when a library asks

    jnp, lax = jax.numpy, jax.lax

    def f(x: Any) -> Any:
        with jax.named_scope("outer"):
            y = lax.sin(x)
            with jax.named_scope("inner"):
                z = lax.mul(y, y)
        return lax.exp(z)

    def two(x: Any) -> Any:
        with jax.named_scope("a"):
            y = lax.sin(x)
        with jax.named_scope("b"):
            return lax.mul(y, x) + y * x

    @jax.custom_jvp
    def forward(x: Any) -> Any:
        return lax.sin(x)

    @forward.defjvp
    def forward_rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return forward(x), jax.named_scope("rule")(lax.mul)(t, lax.cos(x))

    @jax.custom_vjp
    def backward(x: Any) -> Any:
        return lax.sin(x)

    def pull(x: Any, ct: Any) -> Any:
        return (jax.named_scope("pull")(lax.mul)(ct, lax.cos(x)),)

    backward.defvjp(lambda x: (backward(x), x), pull)

    def total(f: Any) -> Any:
        return lambda x: f(x).sum()

    def loop(x: Any) -> Any:
        return lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]

    def linear(x: Any) -> Any:
        return jax.linear_transpose(jax.named_scope("q")(lambda x: lax.mul(x, 2.0)), x)(x)

    x, xs = jnp.ones(3), jnp.ones((2, 3))
    programs: dict[str, tuple[Any, Any]] = {
        "plain": (f, x),
        "grad": (jax.grad(total(f)), x),
        "value_and_grad": (jax.value_and_grad(total(two)), x),
        "auxiliary": (jax.grad(lambda x: (f(x).sum(), x * 2), has_aux=True), x),
        "jvp": (lambda x: jax.jvp(f, (x,), (x,)), x),
        "vjp": (lambda x: jax.vjp(f, x)[1](x), x),
        "linearize": (lambda x: jax.linearize(f, x)[1](x), x),
        "linear_transpose": (linear, x),
        "vmap": (jax.vmap(jax.vmap(f)), jnp.ones((2, 2, 3))),
        "vmap in a scope": (jax.named_scope("pre")(jax.vmap(f)), xs),
        "grad of vmap": (jax.grad(lambda x: jax.vmap(f)(x).sum()), xs),
        "grad in a scope": (jax.named_scope("o")(jax.grad(total(f))), x),
        "second derivative": (jax.grad(jax.grad(lax.sin)), 1.0),
        "grad of jit": (jax.grad(total(jax.jit(f))), x),
        "jit of grad": (jax.jit(jax.grad(total(f))), x),
        "grad of scan": (jax.grad(total(loop)), x),
        "vmap of scan": (jax.vmap(loop), xs),
        "custom_jvp": (jax.grad(total(jax.named_scope("w")(forward))), x),
        "custom_vjp": (jax.grad(total(jax.named_scope("w")(backward))), x),
    }

    def listed(jaxpr: Any) -> list[list[str]]:
        found = []
        for eqn in jaxpr.eqns:
            found.append([eqn.primitive.name, str(eqn.source_info.name_stack)])
            if "jaxpr" in eqn.params:
                found += [[f"  {name}", at] for name, at in listed(eqn.params["jaxpr"].jaxpr)]
        return found

    return {name: listed(jax.make_jaxpr(g)(a).jaxpr) for name, (g, a) in programs.items()}
