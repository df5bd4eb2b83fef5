"""The trees of cells, looked through before they are compiled."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.base import events
from perspex_magics.notebook.kinds import stops


def change_trees(
    shell: InteractiveShell, visit: Callable[[ast.Module], ast.Module]
) -> Callable[[], object]:
    """Have the tree of each cell go through `visit`; returns a function that ends that.

    A tree that `visit` fails with stays as it is. Not as one of `ast_transformers`: where there is
    any, IPython gives places to all nodes of every cell, which takes 1 us for each and more than
    all that is done here.
    """
    before = vars(shell).get("transform_ast")
    transform = shell.transform_ast

    def transform_ast(tree: Any) -> Any:
        tree = transform(tree)
        try:
            return visit(tree)
        except BaseException as error:
            if stops(error):
                raise
            events.report_ignored(error, "while looking through", tree)
            return tree

    hooked: Any = shell
    hooked.transform_ast = transform_ast

    def undo() -> None:
        if vars(shell).get("transform_ast") is not transform_ast:
            return
        if before is None:
            del hooked.transform_ast
        else:
            hooked.transform_ast = before

    return undo
