"""What libraries do through JAX's side doors: generators of their own, and so on.

Each question is a function; its answer is written as `told` tells it. The same lines run under real
jax and under Perspex, which gives the name `jax` in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Questions = dict[str, Callable[[], Any]]


def told(x: Any) -> Any:
    """A value as JSON has it: arrays with dtype and shape, keys as numbers, others as text."""
    import jax

    if isinstance(x, (list, tuple)):
        return [told(y) for y in x]
    if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return [str(x.dtype), told(jax.random.key_data(x))]
    if isinstance(x, (jax.Array, np.ndarray, np.generic)):
        return [str(x.dtype), list(x.shape), np.asarray(x).ravel().tolist()]
    return x if isinstance(x, (bool, int, float)) else str(x)


def answers(questions: Questions) -> dict[str, Any]:
    """The answers, an error as the names of its types."""
    found = {}
    for name, question in questions.items():
        try:
            found[name] = told(question())
        except Exception as error:
            found[name] = {"error": [kind.__name__ for kind in type(error).__mro__]}
    return found


def generators() -> Questions:
    """Generators of random numbers that are given by functions."""
    import jax
    import jax.numpy as jnp
    from jax import random
    from jax.extend import random as extended

    def mixed(key: Any, n: Any) -> Any:
        return (key + n) * jnp.uint32(1664525) ^ (key + n) >> 16

    def grid(shape: Any) -> Any:
        return jnp.arange(int(np.prod(shape)), dtype=jnp.uint32).reshape(shape)

    def pair_seed(seed: Any) -> Any:
        return mixed(jnp.array([1, 2], jnp.uint32), seed.astype(jnp.uint32))

    def split(key: Any, shape: Any) -> Any:
        return mixed(key, grid((*shape, 1)))

    def pair_bits(key: Any, width: int, shape: Any) -> Any:
        return mixed(key[0] ^ key[1], grid(shape)).astype(f"uint{width}")

    def flat_seed(seed: Any) -> Any:
        return seed.astype(jnp.uint32)[None]

    def flat_bits(key: Any, width: int, shape: Any) -> Any:
        return mixed(key[0], grid(shape)).astype(f"uint{width}")

    pair_parts: Any = {
        "key_shape": (2,),
        "seed": pair_seed,
        "split": split,
        "random_bits": pair_bits,
        "fold_in": mixed,
        "name": "pair",
        "tag": "mine",
    }
    pair = extended.define_prng_impl(**pair_parts)
    flat = extended.define_prng_impl(
        key_shape=(1,), seed=flat_seed, split=split, random_bits=flat_bits, fold_in=mixed
    )

    def chained(key: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            return random.fold_in(c, i), random.bits(c, (2,))

        return jax.lax.scan(step, key, jnp.arange(3))[1]

    def folded(key: Any, n: Any) -> Any:
        return random.key_data(random.fold_in(key, n))

    def program(f: Any, *args: Any) -> str:
        return " ".join(str(jax.make_jaxpr(f)(*args)).split())

    found: Questions = {
        "again": lambda: extended.define_prng_impl(**pair_parts) == pair,
        "another": lambda: pair == flat,
        "wrap": lambda: random.wrap_key_data(jnp.array([[1, 2], [3, 4]], jnp.uint32), impl=pair),
        "wrap of a wrong shape": lambda: random.wrap_key_data(jnp.zeros(3, jnp.uint32), impl=pair),
        "wrap of others": lambda: random.wrap_key_data(
            random.key_data(random.key(0, impl=pair)), impl=flat
        ),
        "equal": lambda: random.key(1, impl=pair) == random.key(1, impl=pair),
        "equal to another": lambda: random.key(0, impl=pair) == random.key(0, impl=flat),
        "type": lambda: random.key(0, impl=type(pair)),
        "number": lambda: random.key(0, impl=3),
        "dtype": lambda: random.key(5, dtype=random.key(0, impl=pair).dtype),
        "two axes": lambda: jax.vmap(jax.vmap(lambda k: random.bits(k, (2,))))(
            random.split(random.key(1, impl=pair), (2, 2))
        ),
        "fold in both": lambda: jax.vmap(folded)(
            random.split(random.key(1, impl=pair), 3), jnp.arange(3)
        ),
        "program": lambda: program(lambda k: random.bits(k, (2,)), random.key(0, impl=pair)),
        "program of a seed": lambda: program(lambda s: random.key(s, impl=pair), 3),
        "built in": lambda: random.key(5, impl=extended.rbg_prng_impl),
        "seed_with_impl": lambda: extended.seed_with_impl(extended.threefry_prng_impl, 5),
        "random_seed": lambda: extended.random_seed(5, impl=extended.unsafe_rbg_prng_impl),
        "numbers of Python": lambda: extended.threefry_2x32((3, 4), jnp.arange(4, dtype="uint32")),
    }
    for name, impl in (("pair", pair), ("flat", flat)):
        key = random.key(7, impl=impl)
        found |= {
            f"{name}: seeds": lambda impl=impl: [
                random.key(s, impl=impl) for s in (0, 7, jnp.int32(5))
            ],
            f"{name}: text": lambda impl=impl, key=key: [
                repr(impl),
                str(impl),
                key.dtype,
                repr(random.key_impl(key)),
                repr(key),
            ],
            f"{name}: raw": lambda impl=impl: random.PRNGKey(3, impl=impl),
            f"{name}: split": lambda key=key: [random.split(key, n) for n in (3, (2, 2), ())],
            f"{name}: fold_in": lambda key=key: [
                random.fold_in(key, n) for n in (5, jnp.uint32(6))
            ],
            f"{name}: bits": lambda key=key: [
                random.bits(key, shape, dtype)
                for shape in ((3,), (), (2, 0))
                for dtype in ("uint32", "uint8")
            ],
            f"{name}: jit": lambda impl=impl: jax.jit(
                lambda s: random.randint(random.key(s, impl=impl), (4,), 0, 100)
            )(3),
            f"{name}: vmap": lambda key=key: jax.vmap(lambda k: random.bits(k, (3,)))(
                random.split(key, 3)
            ),
            f"{name}: vmap of seeds": lambda impl=impl: jax.vmap(
                lambda s: random.bits(random.key(s, impl=impl), (2,))
            )(jnp.arange(3)),
            f"{name}: vmap of numbers": lambda key=key: jax.vmap(lambda n: folded(key, n))(
                jnp.arange(3)
            ),
            f"{name}: vmap of keys": lambda key=key: jax.vmap(lambda k: folded(k, 2))(
                random.split(key, 3)
            ),
            f"{name}: scan": lambda key=key: [chained(key), jax.jit(chained)(key)],
            f"{name}: floats": lambda key=key: random.uniform(key, (3,)),
            f"{name}: order": lambda key=key: random.permutation(key, 5),
        }
    for shape in ((4,), (5,), (0,), (2, 3)):
        found[f"threefry_2x32 {shape}"] = lambda shape=shape: extended.threefry_2x32(
            (jnp.uint32(3), jnp.uint32(4)), grid(shape)
        )
    return found


def backend() -> Questions:
    """XLA's options for a program."""
    import jax
    from jax.extend.backend import get_compile_options

    def options(*args: Any) -> list[Any]:
        found = get_compile_options(*args)
        build = found.executable_build_options
        return [
            found.num_replicas,
            found.num_partitions,
            build.use_shardy_partitioner,
            build.use_spmd_partitioning,
        ]

    return {
        "options": lambda: options(1, 1),
        "number": lambda: options(1, 1, np.array([[0]])),
        "device": lambda: options(1, 1, np.array(jax.devices()[:1])),
        "partitions": lambda: options(1, 2, np.array([[0, 1]])),
        "too few": lambda: options(2, 1, np.array([0])),
        "one axis": lambda: options(1, 2, np.array([0, 1])),
    }


def record() -> dict[str, Any]:
    """All answers, by the part and the question."""
    parts = {"backend": backend(), "generators": generators()}
    return {
        f"{part} / {name}": answer
        for part, questions in parts.items()
        for name, answer in answers(questions).items()
    }
