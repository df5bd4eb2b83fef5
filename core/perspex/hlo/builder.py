"""Jaxpr -> StableHLO.

A `Module` is one MLIR module; a `Builder` writes into one block of it and is what a primitive's
`lower` rule sees. Operations are made with `ir.Operation.create` from interned types and attributes
(1-1.7 us each, where the generated builders take 3-5).
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perspex.base.xla import ir, load_dialect
from perspex.hlo import frontend, types
from perspex.hlo.manual import Manual
from perspex.hlo.numbering import named
from perspex.hlo.placed import as_typed
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from perspex.layout.abstract import AbstractMesh

_create = ir.Operation.create
_tensor_type = types.tensor_type
# What a call of Python is named after.
_CALLBACKS = {"cpu": "cpu", "cuda": "gpu", "rocm": "gpu"}
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


class Builder:
    """Writes operations at one insertion point.

    While a rule runs, `in_avals` and `out_avals` are the types of its equation, `source` is where
    it was written, and `scope` the names that the user gave to what is around it, as a path.
    """

    __slots__ = ("in_avals", "ip", "loc", "module", "out_avals", "scope", "source")

    def __init__(self, module: Module, ip: Any) -> None:
        self.module = module
        self.ip = ip
        self.loc = types.unknown
        self.scope = ""
        self.in_avals: Sequence[ShapedArray] = ()
        self.out_avals: Sequence[ShapedArray] = ()
        self.source: Any = None

    @property
    def platform(self) -> str:
        return self.module.platform

    # ---- operations -------------------------------------------------------------------------

    def op(
        self,
        name: str,
        *operands: Any,
        attributes: dict[str, Any] | None = None,
        aval: ShapedArray | None = None,
    ) -> Any:
        """Emit an operation with one result, of type `aval` or else that of the equation."""
        return _create(
            name,
            results=(_tensor_type(self.out_avals[0] if aval is None else aval),),
            operands=operands,
            attributes=attributes,
            ip=self.ip,
            loc=self.loc,
        ).result

    def ops(
        self,
        name: str,
        operands: Sequence[Any],
        avals: Sequence[ShapedArray],
        attributes: dict[str, Any] | None = None,
        regions: int = 0,
    ) -> Any:
        """Emit an operation with any number of results and regions; returns the operation."""
        return _create(
            name,
            results=[_tensor_type(aval) for aval in avals],
            operands=operands,
            attributes=attributes,
            regions=regions,
            ip=self.ip,
            loc=self.loc,
        )

    def ffi_call(
        self,
        target: str,
        operands: Sequence[tuple[Any, ShapedArray, int]],
        results: Sequence[tuple[ShapedArray, int]],
        attributes: str = "",
        aliases: Sequence[tuple[int, int]] = (),
        frontend: Mapping[str, str] | None = None,
    ) -> list[Any]:
        """Emit a call of a function registered with XLA's foreign function interface.

        Each operand is a value with its type and its number of trailing axes that make up one
        element of the batch: those of a matrix (2) are laid out by columns, others by rows.
        `attributes` is the inside of an MLIR dictionary; `aliases` are pairs of an operand and
        the result that takes its memory over. `frontend` are names and texts for the compiler.
        """
        alone = len(results) == 1
        told = {} if not frontend else {"mhlo.frontend_attributes": types.texts(frontend)}
        return list(
            self.ops(
                "stablehlo.custom_call",
                [value for value, _, _ in operands],
                [aval for aval, _ in results],
                {
                    "call_target_name": types.string(target),
                    "api_version": types.integer(4, 32),
                    "backend_config": types.attribute(f"{{{attributes}}}"),
                    "operand_layouts": types.layouts(
                        tuple([(aval.ndim, core) for _, aval, core in operands])
                    ),
                    "result_layouts": types.layouts(
                        tuple([(aval.ndim, core) for aval, core in results])
                    ),
                    "output_operand_aliases": types.aliases(tuple(aliases), alone),
                    **told,
                },
            ).results
        )

    def callback(
        self,
        function: Callable[..., Any],
        values: Sequence[Any],
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        has_side_effect: bool,
    ) -> list[Any]:
        """Emit a call of a Python function, which takes and returns NumPy arrays of these types."""
        kind = _CALLBACKS.get(self.platform)
        if kind is None:
            raise NotImplementedError(
                f"callbacks are not available on the platform {self.platform!r}; compute what they "
                "need first, and call Python with the results"
            )
        number = len(self.module.callbacks)
        self.module.callbacks.append(function)
        ranks = [
            tuple([(aval.physical().ndim, 0) for aval in avals]) for avals in (in_avals, out_avals)
        ]
        attributes = {
            "call_target_name": types.string(f"xla_ffi_python_{kind}_callback"),
            "api_version": types.integer(4, 32),
            "has_side_effect": types.boolean(has_side_effect),
            "backend_config": types.attribute(f"{{index = {number} : ui64}}"),
            "operand_layouts": types.layouts(ranks[0]),
            "result_layouts": types.layouts(ranks[1]),
        }
        if not self.module.mesh or self.module.manual is not None:
            return list(self.ops("stablehlo.custom_call", values, out_avals, attributes).results)
        # Python is called once, for the first device; then all get its results. The barrier keeps
        # the partitioner from asking for that of the call itself.
        alone = ", ".join(["<mesh<[], device_ids=[0]>, []>"] * max(1, len(out_avals)))
        attributes["sdy.sharding"] = types.attribute(f"#sdy.sharding_per_value<[{alone}]>")
        values = [self._everywhere(x, aval) for x, aval in zip(values, in_avals, strict=True)]
        results = self.ops("stablehlo.custom_call", values, out_avals, attributes).results
        if not out_avals:
            return []
        results = self.ops("stablehlo.optimization_barrier", results, out_avals).results
        return [self._everywhere(x, aval) for x, aval in zip(results, out_avals, strict=True)]

    def _everywhere(self, value: Any, aval: ShapedArray) -> Any:
        """The value, replicated on every device."""
        axes = ", ".join(["{}"] * aval.physical().ndim)
        whole = types.attribute(f"#sdy.sharding<{self.module.mesh}, [{axes}]>")
        return self.op("sdy.sharding_constraint", value, attributes={"sharding": whole}, aval=aval)

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

    def terminate(self, name: str, values: Sequence[Any]) -> None:
        """End the block: `func.return` or `stablehlo.return`."""
        _create(name, operands=values, ip=self.ip, loc=self.loc)

    # ---- values -----------------------------------------------------------------------------

    def constant(self, value: Any, aval: ShapedArray) -> Any:
        """A constant of type `aval`; a scalar fills the shape."""
        physical = aval.physical()
        value = np.asarray(False if aval.is_float0 else value, physical.dtype)
        if value.ndim == 0 and (number := value.item()) != number:
            self.module.holds_nan = True
        return self.op(
            "stablehlo.constant", attributes={"value": types.dense(value, physical)}, aval=physical
        )

    def is_without_zero(self, value: Any) -> bool:
        """Whether `value` is a constant of integers none of which is zero."""
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != "stablehlo.constant":
            return False
        numbers = ir.DenseIntElementsAttr(owner.attributes["value"])
        return numbers.get_splat_value().value != 0 if numbers.is_splat else 0 not in numbers

    def broadcast(self, value: Any, aval: ShapedArray, dims: tuple[int, ...] = ()) -> Any:
        """`value` spread over `aval`, its axes becoming the axes `dims` of the result."""
        return self.op(
            "stablehlo.broadcast_in_dim",
            value,
            attributes={"broadcast_dimensions": types.integers(dims)},
            aval=aval,
        )

    def spread_anew(self, value: Any, aval: ShapedArray) -> Any:
        """`value`, spread once more, from an operand of its own, if it is a smaller array spread.

        XLA divides by a spread array with one small division and a product, but only where nothing
        else uses what was spread.
        """
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != "stablehlo.broadcast_in_dim":
            return value
        small = owner.operands[0]
        dims = list(owner.attributes["broadcast_dimensions"])
        if not dims:
            return value
        shape = [aval.shape[i] if i in dims else 1 for i in range(aval.ndim)]
        for i, size in zip(dims, small.type.shape, strict=True):
            shape[i] = size
        flat = self.reshape(small, aval.update(shape=tuple(shape)))
        return self.broadcast(flat, aval, tuple(range(aval.ndim)))

    def reshape(self, value: Any, aval: ShapedArray) -> Any:
        return self.op("stablehlo.reshape", value, aval=aval)

    def convert(self, value: Any, aval: ShapedArray) -> Any:
        """Convert elements to the dtype of `aval`, whose shape is that of `value`."""
        return self.op("stablehlo.convert", value, aval=aval)

    def compare(
        self, direction: str, x: Any, y: Any, operand: ShapedArray, is_total: bool = False
    ) -> Any:
        """`x direction y` with direction EQ NE LT LE GT GE, for operands of type `operand`.

        With `is_total`, in the total order of floats.
        """
        kind = {"b": "UNSIGNED", "u": "UNSIGNED", "i": "SIGNED"}.get(operand.dtype.kind, "FLOAT")
        if "int" in operand.dtype.name:
            kind = "UNSIGNED" if operand.dtype.name.startswith("u") else "SIGNED"
        if is_total and kind == "FLOAT":
            kind = "TOTALORDER"
        return self.op(
            "stablehlo.compare",
            x,
            y,
            attributes={
                "comparison_direction": types.attribute(
                    f"#stablehlo<comparison_direction {direction}>"
                ),
                "compare_type": types.attribute(f"#stablehlo<comparison_type {kind}>"),
            },
            aval=ShapedArray(operand.shape, np.dtype(bool)),
        )

    # ---- programs ---------------------------------------------------------------------------

    def inline(self, jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
        """Write the equations of `jaxpr` here; `values` are those of its arguments."""
        env: dict[Any, Any] = dict(zip(jaxpr.invars, values, strict=True))
        outer, scope = self.loc, self.scope
        numbers, explicit = self.module.numbers, self.module.explicit
        for eqn in jaxpr.eqns:
            primitive = eqn.primitive
            at = eqn.source
            if at is not None:
                self.scope = f"{scope}{at.scope}/" if at.scope else scope
                self.loc = _location(at, self.scope + primitive.name)
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
            if at is None or not at.names.attributes:
                out = primitive.lower(self, *operands, **params)
            else:
                out = frontend.lower_marked(self, eqn, operands, params)
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
