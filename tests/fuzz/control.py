"""Statements with loops and branches, whose bodies are programs again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzz.scope import Axes, Scope
from fuzz.values import Type

if TYPE_CHECKING:
    from fuzz.generator import Generator

KINDS = ("cond", "switch", "scan", "scan", "while", "fori", "map", "associative", "reduce")


def statement(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    """The text of one, and the name that it assigns."""
    kind = g.rng.choice(KINDS)
    g.used.append(kind)
    text, call = globals()[f"_{kind}"](g, scope, depth)
    target = g.fresh("v")
    return f"{text}{target} = {call}", target


def define(
    g: Generator,
    scope: Scope,
    params: list[tuple[str, Type]],
    depth: int,
    finish: str,
    axes: Axes | None = None,
) -> tuple[str, str]:
    """A function: its text and its name; `axes` are bound around it."""
    name = g.fresh("g")
    body = g.body(scope, params, g.rng.randint(1, 3), depth, finish, axes)
    return f"def {name}({', '.join(p for p, _ in params)}):\n{body}\n", name


def param(g: Generator, scope: Scope, kind: str = "n", rank: str = "") -> tuple[str, str, Type]:
    """An operand and the parameter that takes it: text of the operand, name, type."""
    text, found = g.operand(scope, kind, rank)
    return text, g.fresh("p"), found


def condition(g: Generator, scope: Scope) -> str:
    if g.rng.random() < 0.15:
        return g.rng.choice(["True", "False", "jnp.array(1)", "0"])
    text, _ = g.operand(scope, "r")
    return g.rng.choice(
        [f"jnp.any({text} > 0)", f"jnp.sum({text}) < 1", f"jnp.all({text} == {text})"]
    )


def _cond(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    scope = scope.without_axes()
    operands = [param(g, scope) for _ in range(g.rng.randint(1, 2))]
    params = [(p, t) for _, p, t in operands]
    one, first = define(g, scope, params, depth, "carry")
    two, second = define(g, scope, params, depth, "carry")
    given = ", ".join(text for text, _, _ in operands)
    return one + two, f"lax.cond({condition(g, scope)}, {first}, {second}, {given})"


def _switch(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    scope = scope.without_axes()
    operands = [param(g, scope) for _ in range(g.rng.randint(1, 2))]
    params = [(p, t) for _, p, t in operands]
    texts, names = zip(*[define(g, scope, params, depth, "carry") for _ in range(3)], strict=True)
    which, _ = g.operand(scope, "s", "0")
    given = ", ".join(text for text, _, _ in operands)
    return "".join(texts), f"lax.switch({which}, [{', '.join(names)}], {given})"


def _scan(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    carry, c, carried = param(g, scope)
    xs, x, many = param(g, scope, rank="1+")
    params = [(c, carried), (x, Type(many.shape[1:], many.dtype, many.weak))]
    text, name = define(g, scope, params, depth, "pair")
    options = g.rng.choice(["", "", ", reverse=True", ", unroll=2", ", unroll=True"])
    return text, f"lax.scan({name}, {carry}, {xs}{options})"


def _while(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    scope = scope.without_axes()
    carry, c, carried = param(g, scope)
    text, name = define(g, scope, [(c, carried)], depth, "carry")
    steps = g.rng.choice(["3", "0", "1", "2"])
    more = g.rng.choice(["", "", " & (jnp.sum(s[1]) < 10)"])
    return (
        text,
        f"lax.while_loop(lambda s: (s[0] < {steps}){more}, "
        f"lambda s: (s[0] + 1, {name}(s[1])), (0, {carry}))",
    )


def _fori(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    carry, c, carried = param(g, scope)
    i = g.fresh("p")
    integer = "int64" if g.x64 else "int32"
    params = [(i, Type((), integer, True)), (c, carried)]
    text, name = define(g, scope, params, depth, "last carry")
    low, high = g.rng.choice(
        [("0", "3"), ("1", "2"), ("0", "0"), ("3", "1"), ("-1", "jnp.int32(2)")]
    )
    unroll = g.rng.choice(["", "", ", unroll=2"])
    return text, f"lax.fori_loop({low}, {high}, {name}, {carry}{unroll})"


def _map(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    xs, x, many = param(g, scope, rank="1+")
    text, name = define(g, scope, [(x, Type(many.shape[1:], many.dtype, many.weak))], depth, "any")
    batch = g.rng.choice(["", "", ", batch_size=2"])
    return text, f"lax.map({name}, {xs}{batch})"


def _associative(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    xs, _, many = param(g, scope, "r", "1+")
    combine = g.rng.choice(
        ["jnp.add", "jnp.multiply", "jnp.maximum", "lambda a, b: a + b + a * b", "lambda a, b: b"]
    )
    axis = g.rng.randrange(-len(many.shape), len(many.shape))
    # JAX cannot turn a negative axis around.
    reverse = g.rng.choice(["", ", reverse=True"]) if axis >= 0 else ""
    return "", f"lax.associative_scan({combine}, {xs}, axis={axis}{reverse})"


def _reduce(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    xs, _, many = param(g, scope, "r", "1+")
    combine = g.rng.choice(
        ["lambda a, b: a + b", "lambda a, b: jnp.maximum(a, b)", "lambda a, b: a * b"]
    )
    start = f"jnp.asarray({g.rng.choice(['0', '1'])}, {xs}.dtype)"
    return "", f"lax.reduce({xs}, {start}, {combine}, ({g.rng.randrange(len(many.shape))},))"
