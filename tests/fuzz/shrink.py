"""From a program that differs to the smallest one that differs in the same way.

Statements that the result does not need go first, then the numbers that real JAX computed take the
place of what computed them, and then parts of the syntax tree are cut for as long as the difference
remains: statements, arguments, calls around a value, elements of arrays.
"""

from __future__ import annotations

import ast
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fuzz.compare import Difference
from fuzz.programs import Statement
from fuzz.values import literal
from oracle.compare import decode

Test = Callable[[Sequence[Statement]], Difference | None]


def shrink(
    statements: Sequence[Statement],
    target: str,
    test: Test,
    values: dict[str, Any],
    seconds: float = 30.0,
) -> list[Statement]:
    """The smallest program found in that time.

    Arguments:
      statements: the program.
      target: the name whose outcome differs.
      test: gives the difference of a program in the way that is looked for, or `None`.
      values: what real JAX computed for the names.
    """
    end = time.monotonic() + seconds
    live = True
    best = needed(statements, target)
    if test(best) is None:  # the difference is in lines whose results nobody reads
        live = False
        best = needed(statements, target, live)
        if test(best) is None:
            return list(statements)
    best = replaced(best, target, test, values, live)
    tried = {_text(best)}
    while time.monotonic() < end:
        smaller = None
        for candidate in candidates(best, target, live):
            text = _text(candidate)
            if text not in tried and time.monotonic() < end:
                tried.add(text)
                if test(candidate) is not None:
                    smaller = candidate
                    break
        if smaller is None:
            break
        best = smaller
    return best


def _copied(node: Any) -> Any:
    """A copy of a tree.

    `deepcopy` follows what others hang onto nodes: `executing`, for one, gives parents to those
    that all trees share.
    """
    if isinstance(node, list):
        return [_copied(part) for part in node]
    if not isinstance(node, ast.AST):
        return node
    new = type(node)(**{name: _copied(part) for name, part in ast.iter_fields(node)})
    return ast.copy_location(new, node)


def _text(statements: Sequence[Statement]) -> str:
    return "\n".join(s.text for s in statements)


def needed(
    statements: Sequence[Statement], targets: str | set[str], live: bool = True
) -> list[Statement]:
    """What the targets depend on; `live`: without dead lines in functions."""
    wanted, kept = {targets} if isinstance(targets, str) else set(targets), []
    for s in reversed(statements):
        tree = ast.parse(s.text)
        if not _assigned(tree.body) & wanted:
            continue
        if live:
            tree.body = _live(tree.body, set(wanted))
        text = ast.unparse(tree)
        kept.append(Statement(text, s.target))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a cut may leave a call of a tuple
            wanted |= _names(compile(text, "<program>", "exec"))
    return kept[::-1]


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """The names that statements assign."""
    names = set()
    for node in body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        for t in node.targets if isinstance(node, ast.Assign) else []:
            names |= {n.id for n in ast.walk(t) if isinstance(n, ast.Name)}
    return names


def _live(body: list[ast.stmt], wanted: set[str]) -> list[ast.stmt]:
    """The statements that give what is wanted, and those that return or do something."""
    kept: list[ast.stmt] = []
    for node in reversed(body):
        plain = isinstance(node, (ast.Assign, ast.FunctionDef))
        if plain and not _assigned([node]) & wanted:
            continue
        about = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if isinstance(node, ast.Expr) and about.isdisjoint(wanted):
            continue  # a rule of a function that is not called
        if isinstance(node, ast.FunctionDef):
            node.body = _live(node.body, set())
            about = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        wanted |= about
        kept.append(node)
    return kept[::-1]


def _names(code: types.CodeType) -> set[str]:
    """The names that code reads from outside; attributes too."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def replaced(
    statements: list[Statement], target: str, test: Test, values: dict[str, Any], live: bool
) -> list[Statement]:
    """The program with numbers in the place of the statements before the last."""
    best = statements
    for s in reversed(statements):
        outcome = values.get(s.target)
        if s.target == target or not s.target or not outcome or s not in best:
            continue
        text = _constant(outcome)
        if text is None or len(text) >= 2 * len(s.text) + 200 or s.text.startswith("x"):
            continue
        place = best.index(s)
        changed = [*best[:place], Statement(f"{s.target} = {text}", s.target), *best[place + 1 :]]
        changed = needed(changed, target, live)
        if test(changed) is not None:
            best = changed
    return best


def _constant(outcome: Any) -> str | None:
    if outcome[0] == "array":
        return literal(decode(outcome), outcome[3])
    if outcome[0] in ("tuple", "list"):
        items = [_constant(item) for item in outcome[1]]
        if all(item is not None for item in items):
            return "(" + ", ".join(str(item) for item in items) + ",)"
    return None


def candidates(
    statements: Sequence[Statement], target: str, live: bool
) -> Iterator[list[Statement]]:
    """Programs that are smaller by one cut, the largest cuts first."""
    for i, s in enumerate(statements):
        tree = ast.parse(s.text)
        for kind in (_statements, _hoisted, _elements, _keywords, _simpler):
            for changed in kind(tree):
                text = ast.unparse(ast.fix_missing_locations(changed))
                if len(text) < len(s.text) or (kind is _simpler and text != s.text):
                    smaller = [*statements[:i], Statement(text, s.target), *statements[i + 1 :]]
                    yield needed(smaller, target, live)


def _copies(tree: ast.AST) -> Iterator[tuple[ast.AST, int]]:
    for number, _ in enumerate(ast.walk(tree)):
        yield _copied(tree), number


def _node(tree: ast.AST, number: int) -> ast.AST:
    return next(node for i, node in enumerate(ast.walk(tree)) if i == number)


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Without one statement; the last one of a function remains."""
    for changed, number in _copies(tree):
        body = getattr(_node(changed, number), "body", None)
        if not isinstance(body, list):
            continue
        for position in range(len(body) - 1):
            again = _copied(changed)
            del _node(again, number).body[position]  # type: ignore[attr-defined]
            yield again


def _hoisted(tree: ast.AST) -> Iterator[ast.AST]:
    """With a part of an expression in the place of the whole."""
    count = len(list(ast.walk(tree)))
    for number in range(count):
        for field, value in ast.iter_fields(_node(tree, number)):
            for position, item in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(item, ast.expr):
                    continue
                for part in _parts(item):
                    again = _copied(tree)
                    node = _node(again, number)
                    if isinstance(value, list):
                        getattr(node, field)[position] = _copied(part)
                    else:
                        setattr(node, field, _copied(part))
                    yield again


def _parts(item: ast.expr) -> list[ast.expr]:
    if isinstance(item, ast.Call):
        parts = [a for a in item.args if not isinstance(a, ast.Starred)]
        if isinstance(item.func, ast.Attribute):
            parts.append(item.func.value)
        return [p for p in parts if not isinstance(p, ast.Constant)]
    if isinstance(item, ast.BinOp):
        return [item.left, item.right]
    if isinstance(item, ast.UnaryOp):
        return [item.operand]
    if isinstance(item, ast.Subscript):
        return [item.value]
    if isinstance(item, (ast.Tuple, ast.List)):
        return [e for e in item.elts if not isinstance(e, ast.Constant)]
    if isinstance(item, ast.Dict):
        return item.values
    return []


def _keywords(tree: ast.AST) -> Iterator[ast.AST]:
    """Without one keyword, or one argument of several."""
    for changed, number in _copies(tree):
        node = _node(changed, number)
        if isinstance(node, ast.Call):
            for position in range(len(node.keywords)):
                again = _copied(changed)
                del _node(again, number).keywords[position]  # type: ignore[attr-defined]
                yield again


def _elements(tree: ast.AST) -> Iterator[ast.AST]:
    """With fewer elements of a list, a tuple, or a dict."""
    for changed, number in _copies(tree):
        node = _node(changed, number)
        if not isinstance(node, (ast.List, ast.Tuple)) or len(node.elts) < 2:
            continue
        half = len(node.elts) // 2
        cuts = [slice(0, half), slice(half, None)] if half > 1 else []
        cuts += [slice(i, i + 1) for i in range(len(node.elts))]
        for cut in cuts:
            again = _copied(changed)
            del _node(again, number).elts[cut]  # type: ignore[attr-defined]
            yield again


def _simpler(tree: ast.AST) -> Iterator[ast.AST]:
    """With a plain number in the place of another."""
    for changed, number in _copies(tree):
        node = _node(changed, number)
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            for value in (0.0, 1.0, 2.0, 0.5):
                if node.value == value:
                    break
                again = _copied(changed)
                _node(again, number).value = value  # type: ignore[attr-defined]
                yield again
