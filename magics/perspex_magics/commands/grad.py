"""`%grad` and `%%grad`: gradients of a function, of a call, of a cell."""

from __future__ import annotations

import argparse
import ast
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from IPython.core.error import UsageError

import perspex
from perspex import dtypes, tree
from perspex.ir.avals import shaped
from perspex.jitted.signature import function_name
from perspex.transforms.jvp import is_differentiable
from perspex_magics.commands.jit import JitLayer
from perspex_magics.commands.magic import ProgramMagic
from perspex_magics.notebook.cell import Cell, Head
from perspex_magics.notebook.options import LineParser, MagicParser, flat
from perspex_magics.programs.expressions import Call, Expression, parameter_numbers
from perspex_magics.programs.program import CELL, CellFunction, Layer, Program, Reads
from perspex_magics.programs.runner import CellMagic, listed
from perspex_magics.programs.values import RESULT, Given, Outputs, is_array, named, split

line_parser = LineParser(
    "grad",
    """Differentiate a function, or a call of one.

    %grad f            the function that returns the gradient of f
    %grad f(w, x)      the gradient of the call with respect to its first argument""",
    """Results can be assigned, and several names give a tuple of gradients:

    step = %grad loss --wrt w,b --jit
    value, (d_w, d_b) = %grad loss(w, b, x) --wrt w,b --value""",
    usage="%grad [--wrt NAME,...] [--value] [--jit] [--help] EXPRESSION",
)
line_parser.add_names("--wrt", help="parameters of the function, or arguments of the call")
line_parser.add_argument("--value", action="store_true", help="return (value, gradient)")
line_parser.add_argument("--jit", action="store_true", help="compile it")

cell_parser = MagicParser(
    "grad",
    """Differentiate a cell that ends in a scalar.

The cell reads each NAME; its gradient is assigned to d_NAME. Everything else that the
cell assigns is assigned in the notebook, as without the magic.""",
    """A name may hold a container of arrays; its gradient has the same structure.
Below %%vmap there is one gradient per example.

    %%grad w b --value --jit
    error = jnp.tanh(x @ w + b) - y
    (error**2).mean()""",
)
cell_parser.add_names(help="names to differentiate with respect to")
cell_parser.add_argument("--value", action="store_true", help="display the scalar")
cell_parser.add_argument("--jit", action="store_true", help="compile the cell, gradient included")


@dataclass(frozen=True)
class GradLayer(Layer):
    """Adds the gradients of a cell's last expression with respect to some inputs to its outputs."""

    magic: str = "grad"
    wrt: tuple[str, ...] = ()
    value: bool = False

    def check(self, cell: Cell, reads: Reads) -> None:
        if not self.wrt:
            cell_parser.error("name at least one input to differentiate with respect to")
        self.check_inputs(self.wrt, cell, reads)
        last = cell.tree.body[-1] if cell.tree.body else None
        if not isinstance(last, ast.Expr):
            self._refuse(cell, "the cell does not end in an expression; end it with the scalar")
        for name in self.wrt:
            if what := _not_differentiable(name, reads.given[name]):
                cell.blame(TypeError(f"%%grad: {what}"), self.row)

    def apply(self, function: CellFunction, program: Program) -> CellFunction:
        def differentiated(**arguments: Any) -> Outputs:
            @named(CELL, self.wrt)
            def last(*chosen: Any) -> tuple[Any, Outputs]:
                given = {**arguments, **dict(zip(self.wrt, chosen, strict=True))}
                outputs = function(**given)
                value = outputs.value(RESULT, program.arrays(given))
                assert program.cell is not None
                self._check_scalar(value, program.cell)
                return value, outputs

            argnums = tuple(range(len(self.wrt)))
            both = perspex.value_and_grad(last, argnums, has_aux=True)
            (_, outputs), found = both(*[arguments[name] for name in self.wrt])
            for name, gradient in zip(self.wrt, found, strict=True):
                outputs = outputs.added(f"d_{name}", program.given[name].rebuild(gradient))
            return outputs if self.value else outputs.added(RESULT, None)

        return differentiated

    def _check_scalar(self, value: Any, cell: Cell) -> None:
        if not is_array(value):
            kind = "None" if value is None else f"a {type(value).__name__}"
            self._refuse(cell, f"the last expression of the cell is not a scalar: {kind}")
        aval = shaped(value)
        if aval.shape:
            self._refuse(
                cell,
                f"the last expression of the cell is not a scalar: {_kind(value)}; add .sum() or "
                ".mean(), or use %%vmap above for one gradient per example, or perspex.jacobian",
            )
        if aval.is_extended or not dtypes.issubdtype(aval.dtype, np.floating):
            remedy = ".real or abs(...)" if aval.dtype.kind == "c" else "a floating point value"
            self._refuse(
                cell, f"the last expression of the cell is {_kind(value)}; end it with {remedy}"
            )

    def _refuse(self, cell: Cell, message: str) -> NoReturn:
        cell.blame(TypeError(f"%%grad: {message}"), None if cell.tree.body else self.row)
        raise AssertionError


def _not_differentiable(name: str, given: Given) -> str:
    """Why this value has no gradient; empty if it has one."""
    for path, leaf in zip(given.paths(name), tree.leaves(given.argument), strict=True):
        if not is_differentiable(shaped(leaf)):
            return f"`{path}` is {_kind(leaf)}; {_remedy(path, leaf)}"
    return ""


def _refusal(name: str, value: Any) -> str:
    """Why any value has no gradient; empty if it has one."""
    given = split(value)
    if given is None:
        return f"`{name}` is of type {type(value).__name__}, not an array or a container of them"
    return _not_differentiable(name, given)


def _refuse_function(text: str, value: Any) -> None:
    if callable(value):
        raise UsageError(
            f"%grad: `{text}` returns a function; assign it to a name, as in "
            f"f = {text}, and use %grad on that"
        )


def _kind(value: Any) -> str:
    if isinstance(value, bool | int):
        return f"the Python number {value!r}"
    return str(shaped(value).str_short(short_dtypes=False))


def _remedy(path: str, value: Any) -> str:
    if isinstance(value, bool | int):
        return f"gradients need floating point numbers: write {float(value)!r}"
    if shaped(value).is_extended:
        return "cannot differentiate with respect to a random key"
    return f"gradients need floating point numbers; cast: {path}.astype(float)"


def _layers(options: argparse.Namespace, head: Head) -> list[Layer]:
    layer = GradLayer(head.row, "grad", flat(options.names), options.value)
    return [JitLayer(head.row, "jit", CELL), layer] if options.jit else [layer]


cell_magic_of_grad = CellMagic(cell_parser, _layers)


class GradMagics(ProgramMagic):
    """Differentiate a cell that ends in a scalar, a function, or a call of one.

    `%%grad w b` binds `d_w` and `d_b`; everything else that the cell
    assigns is assigned in the notebook. If
    the cell fails, no name in the notebook has changed. `%grad f` is the function that returns
    the gradient of `f`; `%grad f(w, x) --wrt w` is the gradient of the call. `%%grad --help`
    and `%grad --help` list the options.
    """

    cell_magic = cell_magic_of_grad
    expressions = line_parser
    is_silenced = True

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> Any:
        expression = Expression(self.shell, "grad", options.expression, local_ns)
        wrt = flat(options.wrt)
        transform = perspex.value_and_grad if options.value else perspex.grad
        if expression.is_call:
            return self._of_call(expression, wrt, transform, options)
        function = expression.evaluate()
        if not callable(function):
            raise UsageError(
                f"%grad: `{expression.text}` is not a function or a call of one; "
                "%%grad differentiates a cell"
            )
        numbers = parameter_numbers(expression, function, wrt) or (0,)
        gradient = transform(function, argnums=numbers if len(numbers) > 1 else numbers[0])
        return perspex.jit(gradient) if options.jit else gradient

    def _of_call(
        self, expression: Expression, wrt: tuple[str, ...], transform: Any, options: Any
    ) -> Any:
        call = expression.call()
        if not wrt and not call.args:
            raise UsageError(f"%grad: name an argument of `{expression.text}` with --wrt")
        places = [expression.place(call, name) for name in wrt] if wrt else [0]
        # What is no argument itself is a variable that arguments are made of.
        variables = [name for name, place in zip(wrt, places, strict=False) if place is None]
        values = [
            expression.namespace[wrt[i]] if place is None else call[place]
            for i, place in enumerate(places)
        ]
        for name, value in zip(wrt or [call.texts.get(0, "0")], values, strict=True):
            if what := _refusal(name, value):
                _refuse_function(expression.text, expression.evaluate())
                raise TypeError(f"%grad: {what}")
        if options.jit and variables:
            raise UsageError(
                f"%grad --jit: {listed(set(variables))} is part of an argument, or several; "
                "assign the argument to a name, and differentiate with respect to that"
            )

        # A program that is kept holds on to these, and not to the notebook or the arguments.
        text, call_with = expression.text, expression.call if variables else None
        outside = [x if place is None else None for place, x in zip(places, values, strict=True)]

        def differentiate(now: Call) -> Any:
            @named(function_name(now.function), wrt or [now.shown(0)], now.function)
            def function(*chosen: Any) -> Any:
                changed = {n: x for n, x in zip(wrt, chosen, strict=False) if n in variables}
                again = call_with(changed) if call_with else now
                found = zip(places, chosen, strict=True)
                result = again.run({place: x for place, x in found if place is not None})
                _refuse_function(text, result)
                return result

            pairs = zip(places, outside, strict=True)
            point = [x if place is None else now[place] for place, x in pairs]
            argnums = tuple(range(len(point))) if len(point) > 1 else 0
            return transform(function, argnums=argnums)(*point)

        if options.jit:
            chosen = [place for place in places if place is not None]
            settings = ("grad", tuple(chosen), options.value)
            return self.runner.run_compiled(call, settings, chosen, differentiate)
        return differentiate(call)
