"""What a traced cell takes and what it leaves behind: values, and the arrays in them.

A program takes and returns arrays. A name of the notebook may hold a container of arrays and of
other things, so each value is divided: the arrays go through the program, and the rest is written
down beside it, as `Given` for inputs and as `Plan` for outputs.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from perspex import tree
from perspex.ir.avals import PYTHON_SCALARS, shaped
from perspex.runtime.array import ArrayImpl
from perspex.tracing.trace import Tracer
from perspex_magics.captures.objects import parts, step_text

# Where the value of a cell's last expression stands among its outputs; no name is empty.
RESULT = ""

_ARRAY = object()  # in the place of each array, in a list of known leaves
_LEAF = tree.structure(0)

# Past so many objects no tracer is looked for; following 2,000 takes about 2 ms.
_MOST_OBJECTS = 2_000
_OPAQUE = (
    *(str, bytes, int, float, complex, bool, type(None), type(...), types.BuiltinFunctionType),
    *(ArrayImpl, type, types.ModuleType, np.ndarray),
)

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Given:
    """A value that a cell reads, split into what the program takes and what it is made for.

    `argument` is the value itself, or the list of its arrays where it holds other things as well;
    `known` are its leaves, with `_ARRAY` in the place of each array.
    """

    argument: Any
    structure: Any
    known: list[Any]

    @property
    def fixed(self) -> dict[int, Any]:
        """The leaves that are part of the program, by their numbers."""
        return {i: leaf for i, leaf in enumerate(self.known) if leaf is not _ARRAY}

    def rebuild(self, argument: Any) -> Any:
        """The value with other arrays in it; the containers are new."""
        arrays = iter(tree.leaves(argument))
        return self.structure.unflatten([next(arrays) if x is _ARRAY else x for x in self.known])

    def paths(self, name: str) -> list[str]:
        """Where the arrays are, in order, as in `params['w']`."""
        found = zip(self.all_paths(name), self.known, strict=True)
        return [path for path, leaf in found if leaf is _ARRAY]

    def all_paths(self, name: str) -> list[str]:
        """Where the leaves are, in order."""
        where = tree.leaves_with_path(self.structure.unflatten([0] * len(self.known)))
        return [name + tree.keystr(path) for path, _ in where]


def split(value: Any) -> Given | None:
    """`value` as an input of a program: an array, a number or a container; else `None`."""
    leaves, structure = flatten(value)
    arrays = [leaf for leaf in leaves if is_array(leaf)]
    if not arrays and structure == _LEAF:
        return None
    known = [_ARRAY if is_array(leaf) else leaf for leaf in leaves]
    return Given(value if len(arrays) == len(leaves) else arrays, structure, known)


def named(
    name: str, parameters: Sequence[str], of: Callable[..., Any] | None = None
) -> Callable[[F], F]:
    """Give a function the name and the parameters that errors show, and the place of another."""

    def decorate(function: F) -> F:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        shown: Any = function
        shown.__name__ = shown.__qualname__ = name
        if of is not None:
            shown.__wrapped__ = of
        valid = [p if p.isidentifier() else f"argument_{i}" for i, p in enumerate(parameters)]
        shown.__signature__ = inspect.Signature([inspect.Parameter(p, kind) for p in valid])
        return function

    return decorate


def is_array(value: Any) -> bool:
    """Whether `value` is an array or a number."""
    try:
        shaped(value)
    except (TypeError, OverflowError):
        return False
    return True


def flatten(value: Any) -> tuple[list[Any], Any]:
    """The leaves and the structure of any value; what has no structure is one leaf."""
    try:
        return tree.flatten(value)
    except ValueError:  # a dict whose keys do not sort
        return [value], _LEAF


@dataclass(frozen=True)
class Passed:
    """A leaf of an output that is array number `index` among the inputs, as it came in."""

    index: int


@dataclass(frozen=True)
class Computed:
    """A leaf of an output that is result number `index` of the device."""

    index: int


@dataclass(eq=False)
class Plan:
    """What a run leaves behind: outputs by name, as structure and leaves, and deletions.

    A leaf is `Passed`, `Computed`, or an object that tracing made.
    """

    outputs: dict[str, tuple[Any, list[Any]]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)


class Outputs:
    """What a cell returns while it is traced: the leaves that the device computes, and their plan.

    A pytree whose plan is part of its structure, so that jit keeps one plan per signature. A plan
    that has been returned is never changed.
    """

    def __init__(self, leaves: list[Any], plan: Plan) -> None:
        self.leaves, self.plan = leaves, plan

    def value(self, name: str, inputs: Sequence[Any]) -> Any:
        """One output, where `inputs` are the arrays that the program was given."""
        sources: dict[type, Sequence[Any]] = {Passed: inputs, Computed: self.leaves}
        structure, leaves = self.plan.outputs[name]
        return structure.unflatten(
            [sources[type(x)][x.index] if type(x) in sources else x for x in leaves]
        )

    def values(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """All outputs by name."""
        return {name: self.value(name, inputs) for name in self.plan.outputs}

    def added(self, name: str, value: Any) -> Outputs:
        """These outputs and one more, or with another value for `name`."""
        computed = list(self.leaves)
        leaves, structure = flatten(value)
        noted = [_computed(leaf, computed) if is_array(leaf) else leaf for leaf in leaves]
        outputs = {**self.plan.outputs, name: (structure, noted)}
        return Outputs(computed, Plan(outputs, self.plan.deleted))

    def all_computed(self, inputs: Sequence[Any]) -> Outputs:
        """The same with all arrays among the results, those as well that are handed through.

        Numbers and objects of Python stay what they are.
        """
        computed: list[Any] = []
        outputs = {}
        for name, (structure, _) in self.plan.outputs.items():
            found, _ = flatten(self.value(name, inputs))
            leaves = [
                _computed(x, computed) if is_array(x) and type(x) not in PYTHON_SCALARS else x
                for x in found
            ]
            outputs[name] = (structure, leaves)
        return Outputs(computed, Plan(outputs, self.plan.deleted))


def _computed(leaf: Any, computed: list[Any]) -> Computed:
    computed.append(leaf)
    return Computed(len(computed) - 1)


tree.register_pytree_node(
    Outputs,
    lambda outputs: (outputs.leaves, outputs.plan),
    lambda plan, leaves: Outputs(list(leaves), plan),
)


class Planner:
    """Collects what a traced cell leaves behind.

    `inputs` are the tracers of the program's arguments, in order; one is `None` where the array is
    donated. An input is not computed but handed through, so that a container that the cell changed
    keeps its other items as they were.
    """

    def __init__(self, inputs: list[Any]) -> None:
        self.plan = Plan()
        self.computed: list[Any] = []
        self._leaf: dict[int, Passed | Computed] = {
            id(x): Passed(i) for i, x in enumerate(inputs) if x is not None
        }
        self._alive = inputs  # an id is free for others once its object is gone

    def add(self, name: str, value: Any) -> None:
        """Note that the cell leaves `value` under `name`."""
        leaves, structure = flatten(value)
        for leaf in leaves:
            if not isinstance(leaf, Tracer):
                refuse_tracers(name or "the last expression", leaf)
        self.plan.outputs[name] = (structure, [self._known(leaf) for leaf in leaves])

    def _known(self, leaf: Any) -> Any:
        if not isinstance(leaf, Tracer):
            return leaf
        if id(leaf) not in self._leaf:
            self._leaf[id(leaf)] = _computed(leaf, self.computed)
        return self._leaf[id(leaf)]


def refuse_tracers(name: str, value: Any) -> None:
    """Raise `TypeError` if `value` keeps a tracer where the program cannot see it."""
    where = find_tracer(value)
    if where is not None:
        raise TypeError(
            f"`{name}{where}` is a traced value in an object that is not a pytree, so the program "
            "cannot return it. Assign the value to a variable, or register the class "
            f"`{type(value).__name__}` with `perspex.tree_util.register_pytree_node`."
        )


def find_tracer(value: Any) -> str | None:
    """Where inside `value` a tracer is kept, as in `.weight` or `[0]`; `None` where there is none.

    A tracer that is the value itself is at `""`.
    """
    seen: set[int] = set()

    def visit(value: Any, path: str) -> str | None:
        if isinstance(value, Tracer):
            return path
        if id(value) in seen or len(seen) >= _MOST_OBJECTS:
            return None
        seen.add(id(value))
        if isinstance(value, _OPAQUE):
            return None
        for step, part in parts(value):
            found = visit(part, path + step_text(step))
            if found is not None:
                return found
        return None

    return visit(value, "")
