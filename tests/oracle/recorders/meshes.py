"""What libraries ask about arrays on eight devices: how values lie inside of programs, and so on.

Questions and answers are as in `doors.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .doors import Questions, answers


def sharding(found: Any) -> list[Any]:
    """The kind of a sharding and how it cuts arrays, without trailing axes that it leaves whole."""
    spec = list(getattr(found, "spec", ()))
    while spec and spec[-1] is None:
        spec.pop()
    return [spec, found.memory_kind, len(found.device_set)]


def inspecting() -> Questions:
    """`debug.inspect_array_sharding`."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))
    rows = jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x", "y")))

    def seen(f: Any, *args: Any) -> list[Any]:
        found: list[Any] = []

        def look(value: Any) -> None:
            jax.debug.inspect_array_sharding(value, callback=lambda s: found.append(sharding(s)))

        for _ in range(2):
            jax.block_until_ready(f(look, *args))
        return found

    def program(look: Any, a: Any, wrap: Any = jax.jit) -> Any:
        def body(a: Any) -> Any:
            b = jnp.sin(a) @ jnp.ones((4, 4), np.float32)
            look(b)
            look({"t": a.T})
            return b.sum()

        return wrap(body)(a)

    def compiled(look: Any, a: Any) -> Any:
        def body(a: Any) -> Any:
            look(a)
            return a

        jax.jit(body).lower(a).compile()

    return {
        "eager": lambda: seen(lambda look, a: look(a), rows),
        "jit": lambda: sorted(seen(program, rows), key=str),
        "grad": lambda: sorted(
            seen(lambda look, a: program(look, a, lambda f: jax.jit(jax.grad(f))), rows), key=str
        ),
        "ahead of time": lambda: seen(compiled, rows),
    }


def memories() -> Questions:
    """Parts of arrays in the memory of the host."""
    import jax
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))
    numbers = np.arange(32, dtype=np.float32).reshape(8, 4)

    def lies(a: Any) -> list[Any]:
        return [*sharding(a.sharding), a]

    def on(kind: str, *axes: Any) -> Any:
        return NamedSharding(mesh, P(*axes), memory_kind=kind)

    x = jax.device_put(numbers, on("device", "x"))
    return {
        "numbers": lambda: lies(jax.device_put(numbers, on("pinned_host", "x"))),
        "array": lambda: lies(jax.device_put(x, on("pinned_host", "y"))),
        "space": lambda: lies(jax.device_put(x, jax.memory.Space.Host)),
        "back": lambda: lies(
            jax.device_put(jax.device_put(x, jax.memory.Space.Host), jax.memory.Space.Device)
        ),
        "part": lambda: [
            [s.data.sharding.memory_kind, s.data]
            for s in jax.device_put(x, jax.memory.Space.Host).addressable_shards
        ],
        "out_shardings": lambda: lies(
            jax.jit(lambda a: a * 2, out_shardings=on("pinned_host", "x"))(x)
        ),
        # JAX leaves how a value in a program is cut to the compiler.
        "in a program": lambda: lies(
            jax.jit(lambda a: jax.device_put(a * 2, on("pinned_host", "y", "x")))(x)
        )[1:],
    }


# Rules with shapes of operands and results, and what else `def_partition` is given.
RULES: list[tuple[str, list[Any], list[Any], dict[str, Any]]] = [
    ("i j, j k -> i k", [(8, 16), (16, 4)], [(8, 4)], {}),
    ("i j, j k -> i k", [(8, 16), (16, 4)], [(8, 4)], {"reduction_factors": ("j",)}),
    ("... i, ... i -> ...", [(2, 3), (2, 3)], [(2,)], {}),
    ("... i, ...1 i -> ...1 i", [(2, 3), (4, 5, 3)], [(4, 5, 3)], {}),
    ("(a b) c -> a b c", [(6, 4)], [(2, 3, 4)], {}),
    ("(a b) c -> c", [(6, 4)], [(4,)], {"a": 2, "b": 3}),
    ("(a b) c -> c", [(6, 4)], [(4,)], {"a": 2, "b": 4}),
    ("(a b) c -> c", [(6, 4)], [(4,)], {}),
    ("i->i", [(3,)], [(3,)], {"need_replication_factors": ("i",)}),
    ("i j->i j", [(3, 2)], [(3, 2)], {"permutation_factors": ("i",), "reduction_factors": ("j",)}),
    ("->", [()], [()], {}),
    (" , i -> i", [(), (3,)], [(3,)], {}),
    ("i i -> i", [(3, 4)], [(3,)], {}),
    ("a b c d e f g h i j k l m n o p q r s t -> t", [(2,) * 20], [(2,)], {}),
    ("i -> i", [(4,)], [(2,)], {}),
    ("i", [(1,)], [(1,)], {}),
    ("i->j->k", [(1,)], [(1,)], {}),
    ("i.j->i", [(1,)], [(1,)], {}),
    ("i ... -> i", [(1,)], [(1,)], {}),
    ("((i j) k) -> i", [(1,)], [(1,)], {}),
    ("i) -> i", [(1,)], [(1,)], {}),
    ("(i) -> i", [(1,)], [(1,)], {}),
    ("(i j -> i", [(1,)], [(1,)], {}),
    ("1i -> i", [(1,)], [(1,)], {}),
    ("_i -> i", [(1,)], [(1,)], {}),
    ("i$ -> i", [(1,)], [(1,)], {}),
    ("…i -> i", [(1,)], [(1,)], {}),
    ("i -> i", [(1,)], [(1,)], {"reduction_factors": ("k",)}),
    ("i -> i", [(1,)], [(1,)], {"reduction_factors": ("i", "i")}),
    ("i -> i", [(1,)], [(1,)], {"reduction_factors": ("i",), "permutation_factors": ("i",)}),
    ("i -> i", [(1,)], [(1,)], {"reduction_factors": ["i"]}),
    ("i -> i", [(1,)], [(1,)], {"i": 3}),
    ("i -> i", [(1,)], [(1,)], {"k": 3}),
    ("i -> i", [(1,)], [(1,)], {"i": "3"}),
    ("i -> i", [(1, 2)], [(1,)], {}),
    ("i -> i", [(1,), (1,)], [(1,)], {}),
    ("i -> i", [(1,)], [(1,), (1,)], {}),
    ("... i -> ... i", [(2, 3)], [(4, 3)], {}),
    ("... i -> ... i", [(2, 3)], [(3,)], {}),
    ("... i -> ... i", [()], [(3,)], {}),
    ("i_1 j2 -> j2 i_1", [(1, 2)], [(2, 1)], {}),
]


def partitioning() -> Questions:
    """`custom_partitioning`: rules, programs of devices, and where it is only the function."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import custom_partitioning as c
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))

    def put(a: Any, *axes: Any) -> Any:
        return jax.device_put(a, NamedSharding(mesh, P(*axes)))

    def on(*axes: Any) -> Any:
        return NamedSharding(mesh, P(*axes))

    a = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
    b = np.cos(np.arange(32, dtype=np.float32)).reshape(8, 4)
    seen: list[Any] = []

    def product(note: bool = True, **options: Any) -> Any:
        @c.custom_partitioning
        def f(u: Any, v: Any) -> Any:
            return u @ v

        def partition(mesh: Any, args: Any, result: Any) -> Any:
            if note:
                seen.append([[list(x.shape), list(x.sharding.spec)] for x in (*args, result)])

            def lower(u: Any, v: Any) -> Any:
                return jax.lax.psum(u @ v, "y")

            return mesh, lower, on("x"), (on("x", "y"), on("y"))

        f.def_partition(partition, **{"sharding_rule": "i j, j k -> i k", **options})
        return f

    def run(f: Any, *args: Any) -> list[Any]:
        seen.clear()
        out = jax.jit(f)(*args)
        return [out, sharding(out.sharding), list(seen)]

    def rule_of(f: Any, *args: Any) -> str:
        lines = jax.jit(f).lower(*args).as_text().splitlines()
        (line,) = [line for line in lines if "CustomSPMDPartitioning" in line]
        return line.split("sdy.sharding_rule = ", 1)[1].split(">}", 1)[0]

    def ruled(rule: str, operands: Any, results: Any, options: Any) -> str:
        f = c.custom_partitioning(lambda *xs: tuple([jnp.ones(s, np.float32) for s in results]))
        f.def_partition(lambda *args: None, sharding_rule=rule, **options)
        return rule_of(lambda x, *xs: (f(*xs), x + 1), put(a, "x"), *map(np.ones, operands))

    @c.custom_partitioning
    def pair(tree: Any) -> Any:
        return {"sum": tree["u"] + tree["v"], "twice": 2 * tree["u"]}

    def halves(mesh: Any, args: Any, result: Any) -> Any:
        (tree,) = args
        cut = jax.tree.map(lambda x: x.sharding, tree)
        out = jax.tree.map(lambda x: x.sharding, result)
        return mesh, lambda t: {"sum": t["u"] + t["v"], "twice": 2 * t["u"]}, out, (cut,)

    pair.def_partition(halves, sharding_rule="i j, i j -> i j, i j")

    def scaled(x: Any, factor: float, axis: str) -> Any:
        return x * factor

    def scaled_partition(factor: float, axis: str, mesh: Any, args: Any, result: Any) -> Any:
        def lower(x: Any) -> Any:
            return x * factor + 0 * jax.lax.axis_index(axis)

        return mesh, lower, result.sharding, (args[0].sharding,)

    static = c.custom_partitioning(scaled, static_argnums=(1, 2))
    static.def_partition(
        scaled_partition,
        sharding_rule=lambda factor, axis, mesh, types, out: (
            "i (j k) -> i (j k)",
            {"j": 2, "k": 4},
        ),
    )
    wrong = c.custom_partitioning(lambda x: x * 2)
    wrong.def_partition(
        lambda mesh, args, result: (mesh, lambda x: x[:1], result.sharding, (args[0].sharding,)),
        sharding_rule="i j -> i j",
    )
    propagating = c.custom_partitioning(lambda x: x)
    propagating.def_partition(halves, infer_sharding_from_operands=lambda *args: None)
    nested = jax.custom_vjp(product(note=False))
    nested.defvjp(
        lambda u, v: (product(note=False)(u, v), (u, v)),
        lambda kept, ct: (product(note=False)(ct, kept[1].T), product(note=False)(kept[0].T, ct)),
    )
    ordinary = product(note=False)
    manual = jax.shard_map(ordinary, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    found: Questions = {
        "product": lambda: run(product(), put(a, "x", "y"), put(b, "y")),
        "other cuts": lambda: run(product(), put(a), put(b, None, "x")),
        "in a program": lambda: run(
            lambda u, v: jnp.sin(product()(u * 2, v)).sum(0), put(a, "x", "y"), put(b, "y")
        ),
        "eager": lambda: ordinary(put(a, "x", "y"), put(b, "y")),
        "on one device": lambda: run(product(), a, b),
        "in shard_map": lambda: jax.jit(manual)(put(a, "x"), put(b)),
        "a tree": lambda: jax.tree.leaves(
            jax.tree.map(
                lambda x: [x, sharding(x.sharding)],
                jax.jit(pair)({"u": put(a, "x"), "v": put(a, "x")}),
                is_leaf=lambda x: isinstance(x, jax.Array),
            )
        )[:1],
        "rule of a tree": lambda: rule_of(pair, {"u": put(a, "x"), "v": put(a, "x")}),
        "static": lambda: run(lambda x: static(x, 3.0, "y"), put(a, "x")),
        "rule of static": lambda: rule_of(lambda x: static(x, 3.0, axis="y"), put(a, "x")),
        "backward": lambda: jax.jit(jax.grad(lambda u, v: (nested(u, v) ** 2).sum()))(
            put(a, "x", "y"), put(b, "y")
        ),
        "no derivative": lambda: jax.jit(jax.grad(lambda u: ordinary(u, b).sum()))(put(a)),
        "no vmap": lambda: jax.vmap(ordinary)(a[None], b[None]),
        "shapes that do not fit": lambda: jax.jit(wrong)(put(a, "x")),
        "no rule": lambda: jax.jit(propagating)(put(a, "x")),
        "options of no text": lambda: product(sharding_rule=None, reduction_factors=("i",)),
        "too many": lambda: ordinary(a, b, b),
        "printed": lambda: str(c.SdyShardingRule((c.ArrayMapping("i"),), (c.ArrayMapping("i"),))),
        "one factor": lambda: c.CompoundFactor("i"),
        "dots in a compound": lambda: c.CompoundFactor("i", c.BATCHING),
        "a number": lambda: c.ArrayMapping(1),
        "dots later": lambda: c.ArrayMapping("i", c.BATCHING),
        "mapping": lambda: str(c.ArrayMapping(c.BATCHING, c.CompoundFactor("b", "c"), "d")),
    }
    for i, (rule, operands, results, options) in enumerate(RULES):
        found[f"rule {i}: {rule} {options}"] = lambda r=rule, o=operands, s=results, k=options: (
            ruled(r, o, s, dict(k))
        )
    return found


def record() -> dict[str, Any]:
    """All answers, by the part and the question."""
    parts = {"inspecting": inspecting(), "memories": memories(), "partitioning": partitioning()}
    return {
        f"{part} / {name}": answer
        for part, questions in parts.items()
        for name, answer in answers(questions).items()
    }
