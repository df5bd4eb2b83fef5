"""Statements that apply transforms, up to four deep, to functions written there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzz.control import define, param
from fuzz.coverage import dtype_class
from fuzz.programs import Statement
from fuzz.scope import Scope
from fuzz.values import Type

if TYPE_CHECKING:
    from fuzz.generator import Generator

# Wrappers, and how often each is drawn.
WRAPPERS = {
    "jit": 4,
    "vmap": 5,
    "grad": 4,
    "value_and_grad": 1,
    "forward": 3,
    "backward": 2,
    "linear": 1,
    "checkpoint": 2,
    "jacfwd": 1,
    "jacrev": 1,
    "hessian": 1,
    "custom_jvp": 1,
    "custom_vjp": 1,
    "custom_vmap": 1,
    "closed": 1,
}


def wrapped(
    g: Generator, name: str, arguments: list[tuple[str, Type]], depth: int
) -> tuple[str, str]:
    """A call of a function under transforms: definitions before it, and the expression."""
    before, f = "", name
    args = [(text, t) for text, t in arguments]
    for _ in range(depth):
        kind = g.rng.choices(list(WRAPPERS), list(WRAPPERS.values()))[0]
        g.used.append(kind)
        inexact = [
            i for i, (_, t) in enumerate(args) if dtype_class(t.dtype) in ("float", "float16")
        ]
        if kind == "vmap":
            f, args = _mapped(g, f, args)
        elif kind in ("grad", "value_and_grad", "jacfwd", "jacrev", "hessian"):
            if not inexact:
                continue
            which = tuple(g.rng.sample(inexact, g.rng.randint(1, len(inexact))))
            argnums = str(which[0]) if len(which) == 1 else str(which)
            function = f if kind.startswith("jac") else f"scalar({f})"
            f = f"jax.{kind}({function}, {argnums})"
        elif kind in ("forward", "backward", "linear"):
            f = f"{kind}({f})"
        elif kind in ("jit", "checkpoint"):
            f = f"jax.{kind}({f})"
        elif kind == "closed":
            f = f"(lambda *a: {f}(*a))"
        elif kind == "custom_vmap":
            rule = g.fresh("h")
            before += f"{rule}_plain = {f}\n"
            before += f"{rule} = jax.custom_batching.custom_vmap({rule}_plain)\n"
            before += f"{rule}.def_vmap(batched({rule}_plain))\n"
            f = rule
        else:
            rule = g.fresh("h")
            before += f"{rule}_plain = {f}\n{rule} = jax.{kind}({rule}_plain)\n"
            if kind == "custom_jvp":
                before += f"{rule}.defjvp(lambda p, t: jax.jvp({rule}_plain, p, t))\n"
            else:
                pair = f"lambda *a: jax.vjp({rule}_plain, *a), lambda pull, ct: pull(ct)"
                before += f"{rule}.defvjp({pair})\n"
            f = rule
    return before, f"{f}({', '.join(text for text, _ in args)})"


def _mapped(
    g: Generator, f: str, args: list[tuple[str, Type]]
) -> tuple[str, list[tuple[str, Type]]]:
    places: list[int | None] = []
    given = []
    for text, t in args:
        axis = g.rng.choice([0, 0, 0, len(t.shape), -1, None])
        places.append(axis)
        if axis is None:
            given.append((text, t))
            continue
        shape = list(t.shape)
        shape.insert(axis if axis >= 0 else len(shape), 2)
        many = f"lanes({text})" if axis == 0 else f"lanes({text}, {axis})"
        given.append((many, Type(tuple(shape), t.dtype)))
    if all(axis is None for axis in places):
        return f"jax.jit({f})", args
    out = g.rng.choice(["", "", "", ", out_axes=-1"])
    return f"jax.vmap({f}, {tuple(places) if len(places) != 1 else places[0]}{out})", given


def statement(g: Generator, scope: Scope, depth: int) -> tuple[str, str]:
    """The text of one, and the name that it assigns."""
    operands = [param(g, scope, g.rng.choice("fffnx")) for _ in range(g.rng.randint(1, 2))]
    text, name = define(g, scope, [(p, t) for _, p, t in operands], depth, "any")
    before, call = wrapped(g, name, [(o, t) for o, _, t in operands], g.rng.randint(1, 3))
    target = g.fresh("v")
    return f"{text}{before}{target} = {call}", target


def whole(
    g: Generator, scope: Scope, inputs: list[Statement], body: list[Statement]
) -> list[Statement]:
    """The statements as a function of the inputs, compiled and under further transforms."""
    types = dict(scope.own)
    params = [(s.target, types[s.target]) for s in inputs if s.target in types]
    traced = [s for s in body if s.traceable]
    if not params or not traced:
        return []
    results = [s.target for s in traced]
    lines = [line for s in traced for line in s.text.splitlines()]
    lines.append(f"return {', '.join(results)}")
    names = ", ".join(p for p, _ in params)
    text = f"def f({names}):\n" + "\n".join("    " + x for x in lines)
    tail = [Statement(text, "")]
    tail.append(Statement(f"r0 = jax.jit(f)({names})", "r0"))
    for position in range(1, g.rng.choice([1, 2, 2, 3])):
        before, call = wrapped(g, "f", params, g.rng.choice([1, 1, 2, 2, 3, 4]))
        if g.rng.random() < 0.8:  # one program, where each operation would be one
            call = f"jax.jit(lambda {names}: {call})({names})"
        tail.append(Statement(f"{before}r{position} = {call}", f"r{position}"))
    return tail
