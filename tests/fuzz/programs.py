"""A program: statements that either library runs, one after the other."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from fuzz.prelude import PRELUDE


@dataclass(frozen=True)
class Statement:
    """Lines of Python that assign `target`; without a target they only define."""

    text: str
    target: str
    traceable: bool = True


# Of twenty programs, one is run statement by statement, and six as compiled functions, which takes
# nearly all the time. Of the others only types are compared, since nothing is compiled for that.
OF, EAGER, COMPILED = 20, 1, 6


def turn(seed: int) -> str:
    """How the program of a seed is run: `compiled`, `eager`, or for its `types` alone."""
    place = seed % OF
    return "compiled" if place < COMPILED else "eager" if place < COMPILED + EAGER else "types"


@dataclass(frozen=True)
class Program:
    """Inputs, statements on them, and what is done with all of it as a function."""

    seed: int
    x64: bool
    inputs: tuple[Statement, ...]
    body: tuple[Statement, ...]
    tail: tuple[Statement, ...]
    # How it is run, if not as its seed says.
    how: str = ""

    @property
    def run(self) -> str:
        """How it is run."""
        return self.how or turn(self.seed)

    @property
    def statements(self) -> tuple[Statement, ...]:
        return (*self.inputs, *self.body, *self.tail)

    @property
    def compiled(self) -> tuple[Statement, ...]:
        """The function of the inputs, without the statements that it is made of."""
        return (*self.inputs, *self.tail) if self.tail else self.statements


def notebook(statements: tuple[Statement, ...], x64: bool, library: str = "jax") -> str:
    """A cell to paste: the program, with what it needs before it."""
    head = f"import {library} as jax\nfrom {library} import lax, numpy as jnp\n"
    x = 'jax.config.update("jax_enable_x64", True)\n' if x64 else ""
    text = "\n".join(s.text for s in statements)
    return head + x + _needed(PRELUDE, text) + "\n" + text + "\n"


def _needed(prelude: str, text: str) -> str:
    """The definitions of the prelude that a text uses."""
    tree = ast.parse(prelude)
    wanted = _names(ast.parse(text))
    kept: list[ast.stmt] = []
    for node in reversed(tree.body):
        if isinstance(node, ast.FunctionDef) and node.name not in wanted:
            continue
        wanted |= _names(node)
        kept.append(node)
    return "\n".join(ast.unparse(node) for node in reversed(kept)) + "\n"


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


class _Noise(ast.NodeTransformer):
    """Puts `noisy(...)` around what is assigned and returned inside of functions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Assign, ast.Return)) and inner.value is not None:
                call = ast.Name("noisy", ast.Load())
                inner.value = ast.Call(call, [inner.value], [])
        return node


def noisy(text: str) -> str:
    """The text in which every value inside of a function is moved by a unit in the last place."""
    return ast.unparse(ast.fix_missing_locations(_Noise().visit(ast.parse(text))))
