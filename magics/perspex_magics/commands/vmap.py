"""`%vmap` and `%%vmap`: a function, a call or a cell for one example, mapped over many."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError

import perspex
from perspex import tree
from perspex.ir.avals import shaped
from perspex.jitted.signature import function_name
from perspex_magics.commands.jit import JitLayer
from perspex_magics.commands.magic import ProgramMagic
from perspex_magics.notebook.cell import Cell, Head
from perspex_magics.notebook.options import (
    LineParser,
    MagicParser,
    axes_by_name,
    axes_literal,
    flat,
)
from perspex_magics.programs.expressions import Call, Expression, parameter_numbers
from perspex_magics.programs.program import CELL, CellFunction, Layer, Program, Reads
from perspex_magics.programs.runner import CellMagic
from perspex_magics.programs.values import Outputs, named, split

line_parser = LineParser(
    "vmap",
    """Map a function of one example, or a call of one, over many examples.

    %vmap f --in 0,None         the function that maps f over its first argument
    %vmap f(xs, y) --in 0,None  the results of the call for all examples""",
    """--in gives an axis for each argument, and None for one that all examples share; the
default is 0 for all. With names, as in --in xs=0, all other arguments are shared.

    distances = %vmap distance(points, centre) --in points=0""",
    usage="%vmap [--in AXES] [--out AXIS] [--jit] [--help] EXPRESSION",
)
line_parser.add_argument("--in", dest="axes", type=axes_literal, default=0, help="axes to map over")
line_parser.add_argument(
    "--out", type=axes_literal, default=0, help="the axis of the examples in the results"
)
line_parser.add_argument("--jit", action="store_true", help="compile it")

cell_parser = MagicParser(
    "vmap",
    """Run a cell that is written for one example over many examples.

For each example, NAME holds one slice of its value in the notebook, taken along the
first axis. The arrays that the cell assigns, and its last expression, have the examples
along a new first axis.""",
    """Values that are not arrays are passed through unchanged. A container is mapped over
with all its arrays.

    %%vmap x --in y=1
    distance = jnp.sqrt(((x - y) ** 2).sum())""",
)
cell_parser.add_names(help="names to map over, along their first axis")
cell_parser.add_argument(
    "--in",
    dest="axes",
    nargs="+",
    action="extend",
    type=axes_by_name,
    default=[],
    metavar="NAME=AXIS",
    help="names to map over along another axis",
)
cell_parser.add_argument("--jit", action="store_true", help="compile the mapped cell")


@dataclass(frozen=True)
class VmapLayer(Layer):
    """Maps a cell over axes of some of its inputs."""

    magic: str = "vmap"
    axes: tuple[tuple[str, int], ...] = ()

    def check(self, cell: Cell, reads: Reads) -> None:
        if not self.axes:
            cell_parser.error("name at least one input to map over")
        self.check_inputs([name for name, _ in self.axes], cell, reads)

    def apply(self, function: CellFunction, program: Program) -> CellFunction:
        axes = dict(self.axes)

        def mapped(**arguments: Any) -> Outputs:
            entries = [
                (name, program.given[name].rebuild(arguments[name]), axis)
                for name, axis in self.axes
            ]
            if what := _disagreement(entries):
                assert program.cell is not None
                program.cell.blame(ValueError(f"%%vmap: {what}"), self.row)

            @named(CELL, list(axes))
            def one(*chosen: Any) -> Outputs:
                given = {**arguments, **dict(zip(axes, chosen, strict=True))}
                return function(**given).all_computed(program.arrays(given))

            over = perspex.vmap(one, in_axes=tuple(axes.values()))
            return over(*[arguments[name] for name in axes])

        return mapped


def _layers(options: argparse.Namespace, head: Head) -> list[Layer]:
    axes: dict[str, int | None] = dict.fromkeys(flat(options.names), 0)
    for given in options.axes:
        axes |= given
    mapped = tuple([(name, axis) for name, axis in axes.items() if axis is not None])
    layer = VmapLayer(head.row, "vmap", mapped)
    return [JitLayer(head.row, "jit", CELL), layer] if options.jit else [layer]


cell_magic_of_vmap = CellMagic(cell_parser, _layers)


class VmapMagics(ProgramMagic):
    """Map a cell for one example, a function, or a call of one, over many examples.

    `%%vmap x` runs the cell for each `x` along its first axis; the arrays that it assigns land
    in the notebook with the examples in front. If the cell fails, no name has changed.
    `%vmap f --in 0,None` is the mapped function; `%vmap f(xs, y) --in 0,None` is its result.
    `%%vmap --help` and `%vmap --help` list the options.
    """

    cell_magic = cell_magic_of_vmap
    expressions = line_parser
    is_silenced = True

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> Any:
        expression = Expression(self.shell, "vmap", options.expression, local_ns)
        if expression.is_call:
            return self._of_call(expression, options)
        function = expression.evaluate()
        if not callable(function):
            raise UsageError(
                f"%vmap: `{expression.text}` is not a function or a call of one; %%vmap maps a cell"
            )
        mapped = _mapped(expression, function, options)
        return perspex.jit(mapped) if options.jit else mapped

    def _of_call(self, expression: Expression, options: argparse.Namespace) -> Any:
        call = expression.call()
        axes = _axes_by_place(expression, call, options.axes)
        places = list(axes)
        entries = [(call.texts.get(p, str(p)), call[p], axis) for p, axis in axes.items()]
        if what := _disagreement(entries):
            raise ValueError(f"%vmap: {what}")

        def map_over(now: Call) -> Any:
            @named(function_name(now.function), [now.shown(p) for p in places], now.function)
            def one(*chosen: Any) -> Any:
                return now.run(dict(zip(places, chosen, strict=True)))

            mapped = perspex.vmap(one, in_axes=tuple(axes.values()), out_axes=options.out)
            return mapped(*[now[place] for place in places])

        if not options.jit:
            return map_over(call)
        settings = ("vmap", repr(axes), repr(options.out))
        return self.runner.run_compiled(call, settings, places, map_over)


def _mapped(
    expression: Expression, function: Callable[..., Any], options: argparse.Namespace
) -> Callable[..., Any]:
    """The function over many examples."""
    if not isinstance(options.axes, dict):
        return perspex.vmap(function, in_axes=options.axes, out_axes=options.out)
    numbers = parameter_numbers(expression, function, list(options.axes))
    axes = dict(zip(numbers, options.axes.values(), strict=True))

    @functools.wraps(function)
    def mapped(*args: Any) -> Any:
        # A parameter that is given no argument has its default, which all examples have in common.
        given = tuple([axes.get(i) for i in range(len(args))])
        return perspex.vmap(function, in_axes=given, out_axes=options.out)(*args)

    return mapped


def _axes_by_place(expression: Expression, call: Call, given: Any) -> dict[int | str, Any]:
    """The arguments that are mapped over, and their axes."""
    if isinstance(given, dict):
        axes = {}
        for name, axis in given.items():
            place = expression.place(call, name)
            if place is None:
                raise UsageError(
                    f"%vmap: `{name}` is part of an argument; assign the argument to a name, and "
                    "map over that"
                )
            axes[place] = axis
    elif isinstance(given, tuple | list):
        if len(given) != call.positional:
            raise UsageError(
                f"%vmap: --in has {len(given)} axes, but `{expression.text}` has {call.positional} "
                "positional arguments; an argument by name is mapped over with --in NAME=AXIS"
            )
        axes = dict(enumerate(given))
    else:
        axes = dict.fromkeys(range(call.positional), given)
    mapped = {place: axis for place, axis in axes.items() if axis is not None}
    if not mapped:
        raise UsageError(f"%vmap: no argument of `{expression.text}` is mapped over")
    return mapped


def _disagreement(entries: Sequence[tuple[str, Any, Any]]) -> str:
    """What is wrong with the axes of named values; empty if nothing is.

    An axis that is not an integer is a tree of axes, whose errors `perspex.vmap` reports.
    """
    sizes: dict[int, str] = {}
    for name, value, axis in entries:
        given = split(value)
        if given is None:
            return f"`{name}` is a {type(value).__name__}, not an array or a container of them"
        if not isinstance(axis, int):
            return ""
        for path, leaf in zip(given.paths(name), tree.leaves(given.argument), strict=True):
            aval = shaped(leaf)
            kind = aval.str_short(short_dtypes=False)
            if not -aval.ndim <= axis < aval.ndim:
                return f"`{path}` is {kind}, which has no axis {axis} to map over"
            size = aval.shape[axis]
            sizes.setdefault(size, f"axis {axis} of `{path}`, {kind}, has length {size}")
    if len(sizes) > 1:
        return "the inputs disagree about the number of examples: " + "; ".join(sizes.values())
    if not sizes:
        return "there is no array in " + ", ".join(f"`{name}`" for name, _, _ in entries)
    return ""
