"""How much of what users call has a type: parameters of public functions that are not `Any`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sources import trees

import perspex.numpy as jnp
from perspex.tracing.array_type import Array

CORE = Path(__file__).resolve().parents[2] / "core" / "perspex"
PUBLIC = "numpy lax random nn scipy api rules tree.py debug.py image.py"
MOST = 0.07  # it was 0.33 when `Array` and `ArrayLike` were `Any` themselves


def exported(tree: ast.Module) -> set[str] | None:
    """The names in `__all__`, if a module has one."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and "__all__" in map(ast.unparse, node.targets):
            return set(ast.literal_eval(node.value))
    return None


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The public functions of a module, and the public methods of its public classes."""
    names = exported(tree)
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if node.name.startswith("_") or (names is not None and node.name not in names):
            continue
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        for member in members:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                yield member


def parameters(function: ast.FunctionDef) -> Iterator[ast.arg]:
    """All but `self`, `*args` and `**kwargs`, which hand on what they are given."""
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if argument.arg not in ("self", "cls"):
            yield argument


def test_public_functions_are_typed() -> None:
    total, untyped = 0, []
    for place in PUBLIC.split():
        path = CORE / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            for function in functions(trees()[file]):
                for argument in parameters(function):
                    total += 1
                    if argument.annotation is None or ast.unparse(argument.annotation) == "Any":
                        where = f"{file.relative_to(CORE)}:{function.lineno}"
                        untyped.append(f"{where} {function.name}({argument.arg})")
    share = len(untyped) / total
    assert total > 2500
    assert share < MOST, f"{share:.1%} of {total:,} parameters are Any:\n" + "\n".join(untyped)


METHODS = [name for name, method in vars(Array).items() if name in dir(jnp) and callable(method)]


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_the_parameters_of_the_functions(name: str) -> None:
    if name in ("astype", "reshape", "transpose", "view"):
        pytest.skip("takes its arguments otherwise, as in NumPy")
    method = list(inspect.signature(getattr(Array, name)).parameters.values())[1:]
    function = list(inspect.signature(getattr(jnp, name)).parameters.values())
    # `x.compress(condition)` is `compress(condition, x)`.
    del function[1 if name == "compress" else 0]
    assert [(p.name, p.default, p.kind) for p in method] == [
        (p.name, p.default, p.kind) for p in function
    ]
