"""A cell of statements as a function of what it reads, under the magics that stand above it.

The cell is traced by running it in the notebook's own namespace, with tracers in the place of its
inputs: so it means exactly what it would mean without the magic, and the functions it calls see
the globals they always see. What it assigned is taken back out and returned. A `Layer` is what one
magic does to such a function: compile it, differentiate it, map it.

Always true: outside `Program.trace` the namespace holds no tracer; a cell that fails at any point
leaves it as it was; containers that were inputs are never changed, a cell that changes one binds
its name to a new one. Other threads that read the namespace while a cell is traced can meet
tracers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from perspex import tree
from perspex.jitted.compiled import owners
from perspex.jitted.differences import Difference
from perspex_magics.captures import kept
from perspex_magics.captures.codes import known_code
from perspex_magics.captures.tokens import State
from perspex_magics.display.summaries import brief
from perspex_magics.notebook.cell import Cell
from perspex_magics.notebook.names import Names
from perspex_magics.programs.undoing import contents_restored_on_error
from perspex_magics.programs.values import (
    RESULT,
    Given,
    Outputs,
    Planner,
    find_tracer,
    flatten,
    refuse_tracers,
    split,
)

# A cell as a function: of what the names it reads hold, by name.
CellFunction = Callable[..., Outputs]

# What a cell is called as a function, unless its user gives it a name.
CELL = "cell"

_MISSING = object()


class Reads:
    """What a cell reads, as it is now: the inputs, and what tracing would capture."""

    def __init__(self, names: Names, namespace: dict[str, Any], static: Sequence[str]) -> None:
        self.names, self.namespace, self.static = names, namespace, static
        self.given: dict[str, Given] = {}
        self.captured: dict[str, Any] = {}
        # The structures of the inputs, and which leaves of them are no arrays; and these leaves.
        self.structures: dict[str, tuple[Any, tuple[int, ...]]] = {}
        parts: list[Any] = []
        for name in sorted(names.reads & namespace.keys()):
            found = None if name in static else split(namespace[name])
            if found is None:
                self.captured[name] = namespace[name]
            else:
                fixed = found.fixed
                self.given[name], self.structures[name] = found, (found.structure, tuple(fixed))
                parts += fixed.values()
        # What is part of the program, and not given to it.
        labels = functools.partial(_labels, self.given)
        self.captures = kept.Reads(
            namespace, self.captured, parts, labels, self.given, known_code(names.code)
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """What the program is called with."""
        return {name: given.argument for name, given in self.given.items()}


def _labels(given: dict[str, Given]) -> list[tuple[str, str]]:
    """The labels of the leaves that are no arrays, each with its name."""
    found = []
    for name, value in given.items():
        fixed = value.fixed
        paths = value.all_paths(name) if fixed else []
        found += [(paths[i], name) for i in fixed]
    return found


@dataclass(frozen=True)
class Layer:
    """One magic above a cell: what it makes of the function that the cell below it is.

    `row` is the line of the magic, counted from the top of the cell. Equal layers make equal
    programs of equal functions.
    """

    row: int
    magic: str

    @property
    def static(self) -> tuple[str, ...]:
        """Names that Python sees as they are."""
        return ()

    @property
    def donated(self) -> tuple[str, ...]:
        """Names whose arrays are gone after the run."""
        return ()

    @property
    def traces(self) -> bool:
        """Whether Python runs once for all runs of a program, with tracers for all inputs."""
        return False

    def check(self, cell: Cell, reads: Reads) -> None:
        """Raise what can be said against the use of this magic before the cell is traced."""

    def apply(self, function: CellFunction, program: Program) -> CellFunction:
        """The function that this magic makes of `function`."""
        raise NotImplementedError

    def check_inputs(self, wanted: Sequence[str], cell: Cell, reads: Reads) -> None:
        """Raise unless the cell reads the names `wanted` and they hold arrays."""
        for name in wanted:
            if name not in reads.names.reads:
                order = " before it assigns it" if name in reads.names.writes else ""
                raise UsageError(f"%%{self.magic}: this cell does not read `{name}`{order}")
            if name not in reads.namespace:
                cell.blame(NameError(f"name '{name}' is not defined", name=name), self.row)
            if name not in reads.given:
                kind = type(reads.namespace[name]).__name__
                what = (
                    f"%%{self.magic}: `{name}` is a {kind}, not an array or a container of arrays"
                )
                cell.blame(TypeError(what), self.row)


class Program:
    """A cell of statements under its magics, for some structures of its inputs and some captures.

    `layers` begin with the outermost, the topmost magic of the cell. `state` is what it captures,
    where it is kept.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        reads: Reads,
        layers: Sequence[Layer],
        state: State | None = None,
    ) -> None:
        self.shell = shell
        self.names = reads.names
        self.structures, self.state, self.static = reads.structures, state, reads.static
        self.texts = {name: brief(reads.namespace[name]) for name in reads.given}
        self.given = {name: Given(None, g.structure, g.known) for name, g in reads.given.items()}
        self.donated = {name for layer in layers for name in layer.donated}
        self.cell: Cell | None = None
        function: CellFunction = self.trace
        for layer in reversed(layers):
            function = layer.apply(function, self)
        self.call: Any = function

    def take_place_of(self, earlier: Program) -> None:
        """Say of this new program what made it necessary, for when it is compiled."""
        because = [
            Difference("tree", name, earlier.texts[name], self.texts[name])
            for name, structure in self.structures.items()
            if earlier.structures.get(name, structure) != structure
        ]
        assert earlier.state is not None and self.state is not None
        for change in earlier.state.differences(self.state, wait=True)[0]:
            is_static = change.root in self.static
            kind = "tree" if change.root in self.given else "static" if is_static else "captured"
            because.append(Difference(kind, change.variable, change.old, change.new))
        functions = {id(owner.fun): owner for owner in owners()}
        old, new = [
            functions.get(id(getattr(program.call, "__wrapped__", None)))
            for program in (earlier, self)
        ]
        if because and old is not None and new is not None:
            new.take_place_of(old, because)

    def run(self, cell: Cell, reads: Reads) -> tuple[dict[str, Any], list[str]]:
        """Run the program: its outputs by name, the last expression's under `RESULT`; deletions.

        The namespace is left alone, but for side effects of Python that happen only while tracing.
        """
        self.cell = cell
        arguments = reads.arguments
        outputs: Outputs = self.call(**arguments)
        return outputs.values(self.arrays(arguments)), outputs.plan.deleted

    def arrays(self, arguments: dict[str, Any]) -> list[Any]:
        """The arrays and numbers in the arguments, in the order that `Passed` counts."""
        return [leaf for name in self.given for leaf in tree.leaves(arguments[name])]

    def trace(self, /, **arguments: Any) -> Outputs:
        """Run the cell on tracers, and put the namespace back as it was."""
        assert self.cell is not None
        namespace = self.shell.user_ns
        statements, expression = self.cell.compile(self.shell)
        before = dict(namespace)
        read = [namespace.get(name) for name in self.names.reads]
        with restored_on_error(namespace), contents_restored_on_error(read):
            inputs = {name: self.given[name].rebuild(arguments[name]) for name in self.given}
            installed = {name: flatten(value) for name, value in inputs.items()}
            # Before the cell runs, which may change containers in place.
            planner = Planner(
                [
                    None if name in self.donated else leaf
                    for name in self.given
                    for leaf in tree.leaves(arguments[name])
                ]
            )
            namespace.update(inputs)
            exec(statements, self.shell.user_global_ns, namespace)
            result = eval(expression, self.shell.user_global_ns, namespace) if expression else None
            kept = {}
            planner.add(RESULT, result)
            for name, value in list(namespace.items()):
                if name in self.names.certain or self._changed(name, value, before, installed):
                    planner.add(name, value)
                elif name not in installed and value is not before.get(name, _MISSING):
                    kept[name] = value
            planner.plan.deleted = [name for name in before if name not in namespace]
            for name in self.names.reads & before.keys() - installed.keys():
                refuse_tracers(name, before[name])
            restore(namespace, before)
            namespace.update(kept)
        return Outputs(planner.computed, planner.plan)

    def _changed(
        self,
        name: str,
        value: Any,
        before: dict[str, Any],
        installed: dict[str, tuple[list[Any], Any]],
    ) -> bool:
        """Whether the cell gave `name` another value, or changed the one it had in place.

        What Python code elsewhere did to other names while it was traced stays a side effect,
        unless it put a traced value there.
        """
        if name in installed:
            leaves, structure = installed[name]
            now, structure_now = flatten(value)
            return structure_now != structure or any(
                x is not y for x, y in zip(now, leaves, strict=True)
            )
        if value is before.get(name, _MISSING):
            return False
        return name in self.names.writes or find_tracer(value) is not None


def call_by_outputs(function: Any, program: Program) -> None:
    """Let lists call the function of a cell by the names that the cell assigns, in their order."""
    writes = program.names.writes
    function.cell_outputs = [name for name in program.names.code.co_names if name in writes]


def outputs_of(function: Any) -> list[str] | None:
    """The names that a cell assigns whose function this is, or `None` for any other function."""
    found: list[str] | None = getattr(function, "cell_outputs", None)
    return found


def restore(namespace: dict[str, Any], before: dict[str, Any]) -> None:
    """Make `namespace` hold what it held; it is never empty on the way, for other threads' sake."""
    for name in namespace.keys() - before.keys():
        del namespace[name]
    for name, value in before.items():
        if namespace.get(name, _MISSING) is not value:
            namespace[name] = value


@contextmanager
def restored_on_error(namespace: dict[str, Any]) -> Iterator[None]:
    """Undo what happened to the names of `namespace` if the block fails, or is interrupted."""
    before = dict(namespace)
    try:
        yield
    except BaseException:
        restore(namespace, before)
        raise
