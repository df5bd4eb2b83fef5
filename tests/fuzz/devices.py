"""Statements with named axes: programs for each of eight devices, and lanes that exchange values.

`shard_map`, `pmap`, shardings and `vmap(axis_name=)`, whose bodies are programs again, with
collectives along the axes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fuzz.control import define
from fuzz.scope import Axes, Scope
from fuzz.values import Type

if TYPE_CHECKING:
    from fuzz.generator import Generator

KINDS = ("shard_map", "shard_map", "shard_map", "pmap", "vmap", "vmap", "sharded", "placed")
MESHES = ({"x": 8}, {"x": 4, "y": 2}, {"x": 2, "y": 2, "z": 2})


def statement(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    """The text of one, and the name that it assigns."""
    kind = g.rng.choice(KINDS)
    g.used.append(kind)
    text, call = globals()[f"_{kind}"](g, scope, depth)
    target = g.fresh("v")
    return f"{text}{target} = {call}", target


def collective(g: Generator, scope: Scope) -> tuple[str, str]:
    """A statement that exchanges values along an axis of the scope, and the name it assigns."""
    names = g.rng.sample(list(scope.axes), g.rng.choice([1, 1, 1, min(2, len(scope.axes))]))
    name, size = names[0], scope.axes[names[0]]
    many = repr(names[0]) if len(names) == 1 else repr(tuple(names))
    one = repr(name)
    text, found = g.operand(scope, g.rng.choice("ffrn"))
    whole = f"jnp.resize({text}, {(size, *found.shape)})"
    ring = [(i, (i + 1) % size) for i in range(size)]
    part = ring[: g.rng.randint(0, size)]
    groups = [[i for i in range(size) if i % 2 == odd] for odd in (0, 1)]
    call = g.rng.choice(
        [
            f"lax.psum({text}, {many})",
            f"lax.psum(({text}, 1), {many})",
            f"lax.pmean({text}, {many})",
            f"lax.pmax({text}, {many})",
            f"lax.pmin({text}, {many})",
            f"lax.psum({text}, {one}, axis_index_groups={groups})",
            f"lax.all_gather({text}, {many})",
            f"lax.all_gather({text}, {one}, axis={-1 if found.shape else 0})",
            f"lax.all_gather({whole}, {one}, tiled=True)",
            f"lax.psum_scatter({whole}, {one})",
            f"lax.psum_scatter({whole}, {one}, tiled=True)",
            f"lax.all_to_all({whole}, {one}, 0, {g.rng.randint(0, len(found.shape))})",
            f"lax.all_to_all({whole}, {one}, 0, 0, tiled=True)",
            f"lax.ppermute({text}, {one}, {ring})",
            f"lax.ppermute({text}, {one}, {part})",
            f"lax.pshuffle({text}, {one}, {list(reversed(range(size)))})",
            f"{text} * lax.axis_index({many}).astype({text}.dtype)",
            f"lax.axis_size({many}) + {text}",
            f"lax.pcast({text}, {many}, to='varying')",
        ]
    )
    g.used.append(call.partition("(")[0])
    target = g.fresh("v")
    return f"{target} = {call}", target


def _finish(g: Generator, name: str, axes: tuple[str, ...]) -> str:
    """What `name` gives, made into results that lie along the first axis of an array."""
    return f"(lambda *a: jax.tree.map(lambda r: jnp.asarray(r)[None], {name}(*a)))"


def _operands(
    g: Generator, scope: Scope, axes: Axes
) -> tuple[list[str], list[str], list[tuple[str, Type]]]:
    """For each operand: its text, its spec, and the parameter with the type on one device."""
    texts, specs, params = [], [], []
    for _ in range(g.rng.randint(1, 2)):
        text, found = g.operand(scope, g.rng.choice("ffnx"))
        used = g.rng.sample(list(axes), g.rng.randint(0, len(axes)))
        local = g.rng.choice([(2,), (1, 3), (2, 2), (1,)])
        shape, spec = list(local), ["None"] * len(local)
        if len(used) > 1 and g.rng.random() < 0.4:
            shape[0] *= math.prod(axes[a] for a in used)
            spec[0] = repr(tuple(used))
        else:
            for place, axis in zip(range(len(local)), used, strict=False):
                shape[place] *= axes[axis]
                spec[place] = repr(axis)
        texts.append(f"jnp.resize({text}, {tuple(shape)})")
        specs.append(f"P({', '.join(spec)})")
        params.append((g.fresh("p"), Type(local, found.dtype)))
    return texts, specs, params


def _shard_map(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    axes = g.rng.choice(MESHES)
    mesh = f"mesh({', '.join(f'{name}={size}' for name, size in axes.items())})"
    texts, specs, params = _operands(g, scope, axes)
    body, name = define(g, scope, params, depth, "any", axes)
    names = tuple(axes)
    ending = g.rng.random()
    if ending < 0.5:
        f, out = _finish(g, name, names), f"P({names!r})"
    elif ending < 0.7:
        f, out = f"(lambda *a: jax.tree.map(lambda r: lax.psum(r, {names!r}), {name}(*a)))", "P()"
    else:
        f, out = name, f"P({g.rng.choice([*map(repr, names), repr(names), ''])})"
    check = g.rng.choice(["", "", "", ", check_vma=False"])
    given = f"mesh={mesh}, in_specs=({', '.join(specs)},), out_specs={out}{check}"
    call = f"jax.shard_map({f}, {given})"
    call = g.rng.choice([call, f"jax.jit({call})", f"backward({call})", f"forward({call})"])
    return body, f"{call}({', '.join(texts)})"


def _pmap(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    size = g.rng.choice([1, 2, 4, 8])
    texts, params, places = [], [], []
    for position in range(g.rng.randint(1, 2)):
        text, found = g.operand(scope, g.rng.choice("ffnx"))
        local = g.rng.choice([(), (2,), (2, 3)])
        axis = g.rng.choice([0, 0, 0, len(local), None]) if position else 0
        shape = list(local)
        if axis is not None:
            shape.insert(axis, size)
        texts.append(f"jnp.resize({text}, {tuple(shape)})")
        places.append(axis)
        params.append((g.fresh("p"), Type(local, found.dtype)))
    body, name = define(g, scope, params, depth, "any", {"i": size})
    call = f"jax.pmap({name}, axis_name='i', in_axes={tuple(places)})"
    call = g.rng.choice([call, call, f"backward({call})", f"forward({call})"])
    return body, f"{call}({', '.join(texts)})"


def _vmap(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    text, found = g.operand(scope, g.rng.choice("ffnx"))
    body, name = define(
        g, scope, [(g.fresh("p"), Type(found.shape, found.dtype))], depth, "any", {"i": 2}
    )
    call = f"jax.vmap({name}, axis_name='i')"
    call = g.rng.choice([call, f"jax.jit({call})", f"backward({call})", f"forward({call})"])
    return body, f"{call}(lanes({text}))"


def _sharding(g: Generator) -> str:
    axes = g.rng.choice(MESHES)
    mesh = f"mesh({', '.join(f'{name}={size}' for name, size in axes.items())})"
    spec = g.rng.choice(["", "'x'", "None, 'x'", repr(tuple(axes))])
    return f"jax.sharding.NamedSharding({mesh}, P({spec}))"


def _sharded(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    text, found = g.operand(scope, g.rng.choice("ffnx"))
    param = (g.fresh("p"), Type((8, 8), found.dtype))
    body, name = define(g, scope, [param], depth, "any")
    what = g.rng.choice(["in_shardings", "out_shardings"])
    call = f"jax.jit({name}, {what}={_sharding(g)})"
    return body, f"{call}(jnp.resize({text}, (8, 8)))"


def _placed(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    text, _ = g.operand(scope, g.rng.choice("ffnx"))
    function = g.rng.choice(["jax.device_put", "lax.with_sharding_constraint"])
    return "", f"{function}(jnp.resize({text}, (8, 8)), {_sharding(g)})"
