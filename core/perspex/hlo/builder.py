"""Jaxpr -> StableHLO.

A `Module` is one MLIR module; a `Builder` writes into one block of it and is what a primitive's
`lower` rule sees. The operations that a rule writes with it are in `writing`, programs are here.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perspex.base.xla import ir, load_dialect
from perspex.hlo import frontend, types
from perspex.hlo.manual import Manual
from perspex.hlo.numbering import named
from perspex.hlo.placed import as_typed
from perspex.hlo.writing import Writer
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from perspex.layout.abstract import AbstractMesh

_create = ir.Operation.create
_tensor_type = types.tensor_type
# Which platform a program runs on that was lowered for several: JAX's calling convention.
INDEX = ShapedArray((), np.dtype("int32"))
PLATFORM_INDEX = {"jax.global_constant": types.string("_platform_index")}


class Module:
    """An MLIR module under construction, for one platform.

    A program for several devices has their `mesh`, as Shardy writes it.

    Where `numbers` are given, they number equations by the variables that these bind, or one that
    binds none by itself, and the locations of what an equation becomes have its number in their
    names (`hlo.numbering`).
    """

    def __init__(
        self,
        name: str,
        platform: str = "cpu",
        numbers: Mapping[Any, int] | None = None,
        mesh: str = "",
        explicit: AbstractMesh | None = None,
    ) -> None:
        self.platform = platform
        self.mesh = mesh
        # The mesh, if it has explicit axes, along which results lie as their types say.
        self.explicit = explicit
        self.numbers = numbers
        load_dialect("builtin")
        self.module = ir.Module.create(types.unknown)
        self.module.operation.attributes["sym_name"] = types.string(symbol_name(name))
        self.body = ir.InsertionPoint(self.module.body)
        self.symbols: set[str] = set()
        # Whether a NaN was written as a constant: some lowerings have to know.
        self.holds_nan = False
        # The Python functions that the program calls, by the number with which it names them.
        self.callbacks: list[Any] = []
        # The Python functions that the compiler calls while it compiles.
        self.asked: list[Any] = []
        # Where the program will run: a device, or devices of a mesh. Few lowerings have to know.
        self.place: Any = None
        # A program lowered as a function, by identity; the program is kept so that its id is.
        self.functions: dict[tuple[int, int], tuple[ClosedJaxpr, str]] = {}
        # The region for each device of a mesh that is being written.
        self.manual: Manual | None = None

    def main(
        self,
        jaxpr: Jaxpr,
        argument_attributes: Sequence[dict[str, Any]] = (),
        result_attributes: Sequence[dict[str, Any]] = (),
        platforms: Sequence[str] = (),
    ) -> None:
        """Write the entry point. The constants of `jaxpr` must have become arguments.

        For several `platforms` it has one more argument in front, the index of the one it runs on.
        """
        if len(platforms) < 2:
            self._function("main", jaxpr, "public", argument_attributes, result_attributes)
            return
        symbols = self.for_each(platforms, jaxpr, "main_on")
        inputs = [_tensor_type(v.aval) for v in jaxpr.invars]
        out_avals = [v.aval for v in jaxpr.outvars]
        outputs = [_tensor_type(aval) for aval in out_avals]
        index, *values = self.entry(
            [_tensor_type(INDEX), *inputs],
            outputs,
            [PLATFORM_INDEX, *(argument_attributes or [{}] * len(inputs))],
            result_attributes,
        ).arguments
        b = self.writer(index.owner, [])
        b.terminate("func.return", b.chosen(symbols, index, values, out_avals))

    def for_each(self, platforms: Sequence[str], jaxpr: Jaxpr, name: str) -> list[str]:
        """The symbols of private functions that run `jaxpr`, one for each platform."""
        symbols = []
        for platform in platforms:
            self.platform = platform
            self.functions.clear()
            symbols.append(self._function(name, jaxpr, "private"))
        return symbols

    def entry(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        argument_attributes: Sequence[dict[str, Any]] = (),
        result_attributes: Sequence[dict[str, Any]] = (),
    ) -> Any:
        """The empty block of the entry point, given MLIR types of arguments and results."""
        given = (argument_attributes, result_attributes)
        return self._block(self._fresh("main"), "public", inputs, outputs, *given)

    def function(self, closed: ClosedJaxpr, name: str) -> str:
        """The symbol of a private function that runs `closed`, written once a module."""
        # What it becomes depends on the mesh that it is for.
        key = id(closed), id(self.manual)
        entry = self.functions.get(key)
        if entry is None:
            symbol = self._function(name, closed.jaxpr, "private")
            entry = self.functions[key] = (closed, symbol)
        return entry[1]

    def _function(
        self,
        name: str,
        jaxpr: Jaxpr,
        visibility: str,
        argument_attributes: Sequence[dict[str, Any]] = (),
        result_attributes: Sequence[dict[str, Any]] = (),
    ) -> str:
        symbol = self._fresh(symbol_name(name))
        hidden = self.hidden(visibility)
        inputs = [*hidden, *[_tensor_type(v.aval) for v in jaxpr.invars]]
        outputs = [_tensor_type(v.aval) for v in jaxpr.outvars]
        given = symbol, visibility, inputs, outputs, argument_attributes, result_attributes
        block = self._block(*given)
        values = list(block.arguments)
        b = self.writer(block, values[: len(hidden)])
        b.terminate("func.return", b.inline(jaxpr, values[len(hidden) :]))
        return symbol

    def _block(
        self,
        symbol: str,
        visibility: str,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        argument_attributes: Sequence[dict[str, Any]],
        result_attributes: Sequence[dict[str, Any]],
    ) -> Any:
        """The empty block of a new function."""
        attributes = {
            "sym_name": types.string(symbol),
            "sym_visibility": types.string(visibility),
            "function_type": ir.TypeAttr.get(
                ir.FunctionType.get(inputs, outputs, types.context), types.context
            ),
        }
        for key, given in (("arg_attrs", argument_attributes), ("res_attrs", result_attributes)):
            if any(given):
                attributes[key] = types.array([types.dictionary(d) for d in given])
        function = _create(
            "func.func", attributes=attributes, regions=1, ip=self.body, loc=types.unknown
        )
        return function.regions[0].blocks.append(*inputs, arg_locs=[types.unknown] * len(inputs))

    def hidden(self, visibility: str) -> list[Any]:
        """The MLIR types of arguments that functions have in front of those of the program."""
        return []

    def writer(self, block: Any, hidden: Sequence[Any]) -> Builder:
        """What writes a function into its block, given the values of the arguments in front."""
        return Builder(self, ir.InsertionPoint(block))

    def _fresh(self, name: str) -> str:
        symbol, n = name, 0
        while symbol in self.symbols:
            symbol, n = f"{name}_{n}", n + 1
        self.symbols.add(symbol)
        return symbol

    def bytecode(self) -> bytes:
        """The module in MLIR's binary form, with its source locations."""
        out = io.BytesIO()
        self.module.operation.write_bytecode(out)
        return out.getvalue()

    def text(self, debug_info: bool = False) -> str:
        return str(self.module.operation.get_asm(enable_debug_info=debug_info))


class Builder(Writer):
    """Writes operations and programs at one insertion point.

    While a rule runs, `in_avals` and `out_avals` are the types of its equation, `source` is where
    it was written, and `scope` the names that the user gave to what is around it, as a path.
    """

    __slots__ = ()

    module: Module

    def __init__(self, module: Module, ip: Any) -> None:
        self.module = module
        self.ip = ip
        self.loc = types.unknown
        self.scope = ""
        self.in_avals: Sequence[ShapedArray] = ()
        self.out_avals: Sequence[ShapedArray] = ()
        self.source: Any = None

    @contextlib.contextmanager
    def block(
        self, region: Any, avals: Sequence[ShapedArray]
    ) -> Iterator[tuple[Builder, list[Any]]]:
        """A new block in `region` with arguments of types `avals`: its builder and arguments."""
        inputs = [_tensor_type(aval) for aval in avals]
        block = region.blocks.append(*inputs, arg_locs=[self.loc] * len(inputs))
        inner = self.at(ir.InsertionPoint(block))
        inner.loc, inner.scope = self.loc, self.scope
        yield inner, list(block.arguments)

    def at(self, ip: Any) -> Builder:
        """A builder for another place in the function."""
        return Builder(self.module, ip)

    def arguments_of(self, values: Sequence[Any]) -> Sequence[Any]:
        """What a function of the module is called with to give it these arguments."""
        return values

    def chosen(
        self,
        symbols: Sequence[str],
        index: Any,
        values: Sequence[Any],
        avals: Sequence[ShapedArray],
    ) -> list[Any]:
        """The results, of types `avals`, of the function of that index among `symbols`."""

        def call(b: Builder, symbol: str) -> list[Any]:
            callee = {"callee": types.symbol(symbol)}
            return list(b.ops("func.call", b.arguments_of(values), avals, callee).results)

        if len(symbols) == 1:
            return call(self, symbols[0])
        choice = self.ops("stablehlo.case", [index], avals, regions=len(symbols))
        for region, symbol in zip(choice.regions, symbols, strict=True):
            with self.block(region, []) as (inner, _):
                inner.terminate("stablehlo.return", call(inner, symbol))
        return list(choice.results)

    def inline(self, jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
        """Write the equations of `jaxpr` here; `values` are those of its arguments."""
        env: dict[Any, Any] = dict(zip(jaxpr.invars, values, strict=True))
        outer, scope = self.loc, self.scope
        numbers, explicit = self.module.numbers, self.module.explicit
        for eqn in jaxpr.eqns:
            primitive = eqn.primitive
            at = eqn.source
            marked = False
            if at is not None:
                self.scope = f"{scope}{at.scope}/" if at.scope else scope
                self.loc = _location(at, self.scope + primitive.name)
                marked = at.names.attributes
            if numbers is not None:
                self.loc = _numbered(self.loc, eqn, numbers) or outer
            self.source = at
            in_avals, out_avals = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
            params = eqn.params
            if primitive.elementwise:
                shape = out_avals[0].shape
                operands = [
                    env[v]
                    if v.__class__ is not Literal and v.aval.shape == shape
                    else self._spread(v, env, shape)
                    for v in eqn.invars
                ]
            else:
                operands = [
                    self.constant(v.val, v.aval) if v.__class__ is Literal else env[v]
                    for v in eqn.invars
                ]
            if not primitive.lowers_keys and any(a.is_extended for a in (*in_avals, *out_avals)):
                params = primitive.physical(in_avals, out_avals, params)
                in_avals = [a.physical() for a in in_avals]
                out_avals = [a.physical() for a in out_avals]
            self.in_avals, self.out_avals = in_avals, out_avals
            if marked:
                out = frontend.lower_marked(self, eqn, operands, params)
            else:
                out = primitive.lower(self, *operands, **params)
            if explicit is not None and not primitive.higher_order:
                out = as_typed(self, eqn, out)
            if primitive.multiple_results:
                env.update(zip(eqn.outvars, out, strict=True))
            else:
                env[eqn.outvars[0]] = out
        self.loc, self.scope = outer, scope
        return [
            self.constant(v.val, v.aval) if v.__class__ is Literal else env[v]
            for v in jaxpr.outvars
        ]

    def _spread(self, atom: Any, env: dict[Any, Any], shape: tuple[int, ...]) -> Any:
        """A scalar operand of an elementwise operation, at the shape of the others."""
        aval = ShapedArray(shape, atom.aval.dtype)
        if atom.__class__ is Literal:
            return self.constant(atom.val, aval)
        # The axes inside a typed key stay the last ones.
        return self.broadcast(env[atom], aval, tuple(range(len(shape), aval.physical().ndim)))

    def call(self, closed: ClosedJaxpr, values: Sequence[Any], name: str) -> list[Any]:
        """Call `closed` as a function of the module."""
        if self.module.manual is not None and not self.module.manual.is_whole:
            return self.inline(closed.jaxpr, values)  # a function sees no values of the region
        symbol = self.module.function(closed, name)
        return list(
            self.ops(
                "func.call",
                self.arguments_of(values),
                closed.out_avals,
                {"callee": types.symbol(symbol)},
            ).results
        )

    def composite(
        self,
        closed: ClosedJaxpr,
        values: Sequence[Any],
        name: str,
        attributes: dict[str, Any],
        version: int = 0,
    ) -> list[Any]:
        """Call `closed` as the operation `name`, which a compiler may know by that name."""
        if self.module.manual is not None and not self.module.manual.is_whole:
            return self.inline(closed.jaxpr, values)
        return list(
            self.ops(
                "stablehlo.composite",
                self.arguments_of(values),
                closed.out_avals,
                {
                    "name": types.string(name),
                    "decomposition": types.symbol(self.module.function(closed, name)),
                    "composite_attributes": types.dictionary(attributes),
                    "version": types.integer(version, 32),
                },
            ).results
        )


_locations: dict[Any, Any] = {}


def _location(at: Any, name: str) -> Any:
    found = _locations.get((id(at), name))
    if found is None:
        frame = at.frame
        made = types.location(frame.file, frame.line, frame.column, name)
        # The source is kept so that its id stays its own.
        found = _locations[id(at), name] = (at, made)
    return found[1]


def _numbered(at: Any, eqn: JaxprEqn, numbers: Mapping[Any, int]) -> Any:
    """The location with the equation's number; `None` if it has none.

    An equation that a rule has put in another's place binds the same variables. One that a rule
    has added has no number, and counts as part of the equation whose rule it is.
    """
    for key in (*eqn.outvars, eqn):
        if key in numbers:
            return types.numbered(at, named(eqn.primitive.name, numbers[key]))
    return None


def symbol_name(name: str) -> str:
    """`name` as an MLIR symbol: `<lambda>` becomes `_lambda_`."""
    return re.sub(r"[^\w.]", "_", name) or "_"
