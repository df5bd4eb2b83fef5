"""Cells are compiled so that their calls can be seen while a function is traced.

`rng.normal()` inside a function becomes `seen(rng.normal)()`, where `seen` gives back what it gets
outside of traces, in some 0.05 us. Only calls of names change that one of the functions in
`sources.WORDS` has, values put into texts, and items of the environment. Code at the top of a cell
stays as it is unless a magic traces the cell. Every node keeps its place, so that errors and
messages show what was written.
"""

from __future__ import annotations

import ast
import re

from perspex_magics.fixed.flows import is_text_of
from perspex_magics.fixed.sources import WORDS
from perspex_magics.notebook.names import CALLED, READ, SHOWN

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_WORD = re.compile(r"\w+")
_PERCENT = re.compile(r"""["']\s*%""")


class Calls(ast.NodeTransformer):
    """Puts the calls into the trees of one notebook's cells."""

    def __init__(self) -> None:
        # Other names that cells import such functions under.
        self.aliases: set[str] = set()
        self.depth = 0

    def instrument(self, tree: ast.Module, text: str | None) -> ast.Module:
        """The tree of a cell with the calls in it.

        Args:
          tree: the tree.
          text: the cell's text; `None` for the body of a cell under a magic.
        """
        if text is not None:
            words = set(_WORD.findall(text))
            is_text = "{" in text and not {"f", "rf", "fr", "F"}.isdisjoint(words)
            is_text = is_text or _PERCENT.search(text) is not None
            hot = not words.isdisjoint(WORDS | self.aliases) or "environ" in words or is_text
            if not hot or words.isdisjoint({"def", "lambda", "import"}):
                return tree
        self.depth = text is None
        self.generic_visit(tree)
        return tree

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        for name in node.names:
            if name.name in WORDS and name.asname:
                self.aliases.add(name.asname)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if self.depth and _is_of_environment(node.func):
            # Around the call: stale captures know what is read by the form of it.
            return _wrapped(READ, node, node)
        if self.depth and self._is_hot(node.func):
            node.func = _wrapped(CALLED, node.func, node)
        return node

    def _is_hot(self, function: ast.expr) -> bool:
        match function:
            case ast.Name(id=name):
                return name in WORDS or name in self.aliases
            case ast.Attribute(attr=name):
                return name in WORDS
        return False

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if self.depth and type(node.ctx) is ast.Load:
            match node.value:
                case ast.Name(id="environ") | ast.Attribute(attr="environ"):
                    return _wrapped(READ, node, node)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        # With a format there is an error, which has a remedy of its own.
        is_plain = node.format_spec is None or node.conversion != -1
        if self.depth and is_plain and not isinstance(node.value, ast.Constant):
            node.value = _wrapped(SHOWN, node.value, node.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if self.depth and is_text_of(node):
            node.right = _wrapped(SHOWN, node.right, node.right)
        return node

    def _visit_function(self, node: ast.AST) -> ast.AST:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function


def _is_of_environment(function: ast.expr) -> bool:
    match function:
        case ast.Name(id="getenv") | ast.Attribute(attr="getenv"):
            return True
        case ast.Attribute(
            value=ast.Name(id="environ") | ast.Attribute(attr="environ"), attr="get"
        ):
            return True
    return False


def _wrapped(function: str, inside: ast.expr, where: ast.expr) -> ast.expr:
    name = ast.copy_location(ast.Name(function, ast.Load()), where)
    return ast.copy_location(ast.Call(name, [inside], []), where)
