"""Trees of cells that several features change, and what remains when one of them goes."""

from __future__ import annotations

import ast
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell
from support.shells import Notebook

from perspex_magics.notebook.trees import change_trees


class Doubled(ast.NodeTransformer):
    """Makes each number twice as large."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.copy_location(ast.Constant(node.value * 2), node)


def test_one_above_the_other(notebook: Notebook) -> None:
    first = change_trees(notebook.shell, Doubled().visit)
    second = change_trees(notebook.shell, Doubled().visit)
    assert notebook.ok("3") == 12
    second()
    assert notebook.ok("3") == 6
    first()
    assert notebook.ok("3") == 3


def test_without_any_the_shell_has_its_own() -> None:
    shell = InteractiveShell()
    change_trees(shell, Doubled().visit)()
    assert "transform_ast" not in vars(shell)


def test_a_tree_that_cannot_be_changed_stays(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: seen.append(str(told.exc_value)))

    def fails(tree: ast.Module) -> ast.Module:
        raise ValueError("on purpose")

    undo = change_trees(notebook.shell, fails)
    assert notebook.ok("3") == 3
    undo()
    assert "on purpose" in seen
