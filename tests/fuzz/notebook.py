"""Run random notebooks as Perspex does and as plain Python does, and compare what their cells give.

PYTHONPATH=core:magics:tests python -m fuzz.notebook --notebooks 500 [--seed 1]

The truth is the same cells in the same order with NumPy for `jnp` and with `jit` and `%%jit` doing
nothing. Under the policy `retrace` every cell must give what plain Python gives. Under `warn` a
cell may give something else only if a notice has said so since the truth last changed, and what a
notice says must be so. Under `error` a cell that would give something else must raise. A notebook
that fails is shrunk and printed as a script.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import gc
import random
import re
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from support import quick
from support.shells import Notebook
from traitlets.config import Config

import perspex
from fuzz.notebook_cells import Writer
from perspex.errors import StaleCaptureError, StaleCaptureWarning
from perspex_magics import load_ipython_extension, unload_ipython_extension
from perspex_magics.captures import watcher

POLICIES = ("retrace", "warn", "error")
LENGTH = 22
SETUP = """
import numpy as np, perspex, perspex.numpy as jnp
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from perspex import grad, jit, vmap
from perspex.lax import fori_loop
"""
# A number where plain Python has one, and none where it has been traced: no comparison.
_NEEDS_VALUE = (perspex.errors.ConcretizationTypeError, perspex.errors.UnexpectedTracerError)

# A function that has no old program after such a line.
_NEW_PROGRAM = re.compile(r"^(?:def )?(f\d)(?= =|\(x|\.retrace)", re.M)


class Failure(NamedTuple):
    """What is wrong with a notebook: `kind` is `miss`, `false alarm`, `text` or `number`."""

    policy: str
    kind: str
    step: int
    told: str


# ---- the truth --------------------------------------------------------------------------------


def _grad(fun: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: (fun(x + 1e-3) - fun(x - 1e-3)) / 2e-3


def _vmap(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda xs: np.stack([fun(x) for x in xs])


def _fori_loop(lower: int, upper: int, body: Callable[[int, Any], Any], carry: Any) -> Any:
    for i in range(lower, upper):
        carry = body(i, carry)
    return carry


class Plain:
    """Runs cells in plain Python, with NumPy."""

    def __init__(self) -> None:
        self.ns: dict[str, Any] = {
            "__name__": "__main__",
            "np": np,
            "jnp": np,
            "dataclass": dataclass,
            "replace": replace,
            "partial": partial,
            "SimpleNamespace": SimpleNamespace,
            "grad": _grad,
            "jit": lambda fun: fun,
            "vmap": _vmap,
            "fori_loop": _fori_loop,
        }

    def run(self, cell: str) -> Any:
        """The value of the cell's last expression, or the exception that it ended with."""
        text = re.sub(
            r"^(\w+)\.retrace\(\)$", r"\1; None", cell.removeprefix("%%jit\n"), flags=re.M
        )
        tree = ast.parse(text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        try:
            exec(compile(tree, "<cell>", "exec"), self.ns)
            if last is not None:
                return eval(compile(ast.Expression(last.value), "<cell>", "eval"), self.ns)
        except Exception as error:
            return error
        return None


def content(value: Any, depth: int = 0) -> Any:
    """What a value holds, to tell whether it has changed."""
    inside = partial(content, depth=depth + 1)
    if depth > 6 or isinstance(value, types.ModuleType):
        return type(value).__name__
    if isinstance(value, np.ndarray | np.generic):
        return "array", value.dtype.str, value.tolist()
    if isinstance(value, dict):
        return "dict", [(key, inside(item)) for key, item in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return type(value).__name__, [inside(item) for item in value]
    if isinstance(value, partial):
        return "partial", inside(value.func), inside(value.args)
    if isinstance(value, types.FunctionType):
        cells = [inside(cell.cell_contents) for cell in value.__closure__ or ()]
        return "function", _code(value.__code__), inside(value.__defaults__), cells
    if isinstance(value, property):
        return "property", inside(value.fget)
    if isinstance(value, type):
        own = {k: v for k, v in vars(value).items() if not k.startswith("__") or k == "__call__"}
        return "class", inside(own)
    if hasattr(value, "__dict__"):
        return "object", inside(type(value)), inside(vars(value))
    return type(value).__name__, repr(value)


def _code(code: types.CodeType) -> Any:
    consts = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, consts


def agree(ours: Any, truth: Any) -> bool:
    """Whether two results are the same number, up to float32."""
    if isinstance(truth, Exception) or isinstance(ours, BaseException):
        return isinstance(ours, BaseException) and isinstance(truth, Exception)
    if truth is None or ours is None:
        return truth is ours
    if isinstance(truth, list) and isinstance(ours, list):
        return len(ours) == len(truth) and all(map(agree, ours, truth))
    if isinstance(truth, int | float | np.ndarray | np.generic):
        ours, truth = np.asarray(ours, np.float64), np.asarray(truth, np.float64)
        scale = max(1.0, float(np.max(np.abs(truth), initial=0.0)))
        return np.allclose(ours, truth, rtol=1e-3, atol=1e-3 * scale, equal_nan=True)
    return True


# ---- ours -------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_notebook() -> Iterator[Notebook]:
    """A shell of its own with our extension; each cell has the time to look at every object."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    vars(builtins).pop("_", None)
    shell = InteractiveShell.instance(config=config)
    if not gc.get_freeze_count():
        # `reset` collects garbage: what was imported is not to be looked through each time.
        gc.freeze()
    with mock.patch.multiple(watcher, _LEAST=10.0, _MOST=10.0, _BEGIN_BUDGET=10.0):
        load_ipython_extension(shell)
        notebook = Notebook(shell)
        notebook.ok(SETUP)
        try:
            with perspex.config.compiler_options(quick.OPTIONS):
                yield notebook
        finally:
            unload_ipython_extension(shell)
            shell.reset()
            InteractiveShell.clear_instance()


@contextlib.contextmanager
def _policy(policy: str) -> Iterator[None]:
    before = perspex.config.stale_captures.value
    perspex.config.update("stale_captures", policy)
    try:
        yield
    finally:
        perspex.config.update("stale_captures", before)


def run(notebook: Notebook, cell: str) -> tuple[Any, list[StaleCaptureWarning]]:
    """What a cell gives or raises, and the notices under it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = notebook.run(cell)
    told = [w.message for w in caught if isinstance(w.message, StaleCaptureWarning)]
    error = result.error_in_exec or result.error_before_exec
    return (result.result if error is None else error), told


# ---- the comparison ---------------------------------------------------------------------------


class Judge:
    """Runs one notebook both ways and says what is wrong."""

    def __init__(self, notebook: Notebook, policy: str) -> None:
        self.notebook, self.policy = notebook, policy
        self.plain = Plain()
        # What each cell has found under each name, by the number of the cell.
        self.held: dict[int, dict[str, Any]] = {}
        self.cells: dict[int, str] = {}
        # The functions that a notice was about, or that were called in its cell.
        self.told: set[str] = set()

    def judge(self, steps: Sequence[str]) -> Failure | None:
        with _policy(self.policy):
            for step, cell in enumerate(steps):
                number = self.notebook.shell.execution_count
                ours, told = run(self.notebook, cell)
                truth = self.plain.run(cell)
                self.cells[number] = cell
                self.held[number] = {
                    name: content(value)
                    for name, value in self.plain.ns.items()
                    if not name.startswith("__")
                }
                failure = self.compare(step, cell, ours, truth, told)
                if failure is not None or isinstance(ours, StaleCaptureError):
                    return failure
        return None

    def compare(
        self, step: int, cell: str, ours: Any, truth: Any, told: list[StaleCaptureWarning]
    ) -> Failure | None:
        if isinstance(ours, _NEEDS_VALUE):
            return None
        called = set(re.findall(r"\b[fh]\d\b", cell))
        self.told -= set(_NEW_PROGRAM.findall(cell))
        is_swap = re.fullmatch(r"(f\d), (f\d) = \2, \1", cell) is not None
        if told or (is_swap and called & self.told):
            self.told |= called
        changes = [change for warning in told for change in warning.changes]
        if isinstance(ours, StaleCaptureError):
            changes = []  # what it says stands in its text alone
        for change in changes:
            wrong = self.check(change)
            if wrong is not None:
                return Failure(self.policy, wrong[0], step, f"{wrong[1]}: {change}")
        if isinstance(ours, StaleCaptureError) and self.policy == "error":
            return None
        if agree(ours, truth):
            return None
        what = f"{_short(ours)} where plain Python has {_short(truth)}"
        if self.policy == "warn":
            if self.reached(called) & self.told:
                return None
            return Failure(self.policy, "miss", step, f"{what}, and no notice")
        return Failure(self.policy, "miss", step, what)

    def reached(self, names: set[str]) -> set[str]:
        """The functions that these call, and those that they call."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += re.findall(r"\b[fh]\d\b", repr(content(self.plain.ns.get(name))))
        return found

    def check(self, change: Any) -> tuple[str, str] | None:
        """What a notice says that is not so."""
        traced = re.match(r"Cell In\[(\d+)\]", change.traced)
        root = re.match(r"\w+", change.variable)
        if traced is None or root is None:
            return None
        now = self.held[max(self.held)]
        then = self.held.get(int(traced[1]), now)
        name = root[0]
        is_global = " (" not in change.variable and name in then
        if is_global and name in now and then[name] == now[name]:
            if self.was_steady(name, int(traced[1])):
                return "false alarm", f"`{name}` holds what it held"
            return None
        if not is_global and then == now and self.was_steady("", int(traced[1])):
            return "false alarm", "nothing has changed"
        if change.variable == name and name in now:
            for said, held, at in (
                (change.old, then[name], int(traced[1])),
                (change.new, now[name], max(self.held)),
            ):
                # In a cell that changes it and calls, it has been more than one thing.
                is_one = self.held.get(at - 1, {}).get(name) == held or "\n" not in self.cells[at]
                if is_one and held[0] in ("int", "float") and said != held[1]:
                    return "text", f"`{name}` is {held[1]}"
        return None

    def was_steady(self, name: str, since: int) -> bool:
        """Whether a name, or all of them, held the same thing all the time."""
        for at in (since, max(self.cells)):
            # A cell that changes something and calls has more states than the last one.
            if re.search(rf"\b{name}\b", self.cells[at]) and "\n" in self.cells[at]:
                return False
        states = [held.get(name) if name else held for at, held in self.held.items() if at >= since]
        return all(state == states[0] for state in states)


def _short(value: Any) -> str:
    return f"{type(value).__name__}: {value}"[:200]


def judge(steps: Sequence[str], policy: str) -> Failure | None:
    """What is wrong with a notebook under one policy."""
    with open_notebook() as notebook:
        return Judge(notebook, policy).judge(steps)


# ---- shrinking --------------------------------------------------------------------------------


def shrink(
    steps: Sequence[str], fails: Callable[[Sequence[str]], bool], seconds: float = 60.0
) -> list[str]:
    """The fewest cells, and the fewest lines in them, that still fail."""
    end = time.monotonic() + seconds
    best = list(steps)
    size = len(best) // 2
    while size and time.monotonic() < end:
        at = 0
        while at < len(best) and time.monotonic() < end:
            smaller = best[:at] + best[at + size :]
            if smaller and fails(smaller):
                best = smaller
            else:
                at += size
        size //= 2
    for at in range(len(best)):
        lines = best[at].split("\n")
        for number in reversed(range(len(lines))):
            fewer = lines[:number] + lines[number + 1 :]
            if not fewer or time.monotonic() > end:
                continue
            smaller = [*best[:at], "\n".join(fewer), *best[at + 1 :]]
            if _parses(smaller[at]) and fails(smaller):
                best, lines = smaller, fewer
    return best


def _parses(cell: str) -> bool:
    try:
        ast.parse(cell.removeprefix("%%jit\n"))
    except SyntaxError:
        return False
    return True


def script(steps: Sequence[str], failure: Failure) -> str:
    """A notebook as a script with cells."""
    head = f"# policy {failure.policy}: {failure.kind} in the last cell; {failure.told}"
    return "\n".join([head, *[f"# %% [{at}]\n{cell}" for at, cell in enumerate(steps)]])


def find(seed: int, policy: str, length: int = LENGTH) -> tuple[list[str], Failure] | None:
    """The shrunk notebook of a seed with what is wrong with it, or `None`."""
    steps = Writer(random.Random(seed)).write(length)
    failure = judge(steps, policy)
    if failure is None:
        return None

    def fails(smaller: Sequence[str]) -> bool:
        again = judge(smaller, policy)
        return again is not None and again.kind == failure.kind

    best = shrink(steps[: failure.step + 1], fails)
    return best, judge(best, policy) or failure


def main() -> int:
    """Run; the exit status says whether anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--notebooks", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file for what is found")
    given = parser.parse_args()
    found = []
    for seed in range(given.seed, given.seed + given.notebooks):
        result = find(seed, POLICIES[seed % 3])
        if result is not None:
            found.append(f"# seed {seed}\n{script(*result)}")
            print(found[-1], flush=True)
    if given.out:
        given.out.write_text("\n\n".join(found) + "\n", encoding="utf-8")
    print(f"{given.notebooks} notebooks of {LENGTH} cells: {len(found)} fail")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
