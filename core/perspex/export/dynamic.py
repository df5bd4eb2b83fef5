"""A builder for programs with symbolic shapes: it writes StableHLO's dynamic operations.

Rules of lowering are written for shapes of integers. Here the same rules run: where a size that
they write is symbolic, the operation becomes the one that takes the size as an operand, computed
from the variables. A module is refined to static shapes before XLA compiles it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex.base.dimensions import Symbolic, is_static
from perspex.base.xla import ir
from perspex.export.expressions import Dimension
from perspex.hlo import types
from perspex.hlo.builder import Builder, Module
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import Jaxpr, Literal, Var

SIZE = ShapedArray((), np.dtype("int32"))
_FLAG = ShapedArray((), np.dtype("bool"))
# Operations whose result has the type that is asked for: nothing computes its shape.
_SHAPELESS = {"stablehlo.rng_bit_generator", "stablehlo.rng"}


class Refused(NotImplementedError):
    """An operation that cannot take a symbolic dimension."""


class NoForm(Exception):
    """An operation of StableHLO that has no form for symbolic dimensions."""


def refusal(name: str, avals: Sequence[ShapedArray], params: str, why: BaseException) -> Refused:
    """The error for an operation that cannot take a symbolic dimension."""
    given = ", ".join([aval.str_short() for aval in avals])
    return Refused(
        f"`{name}` cannot take the symbolic dimensions of its operands and parameters "
        f"({given}{params}): {why}. Give these dimensions numbers in the specification of the "
        "arguments of the exported function"
    )


class DynamicModule(Module):
    """A module whose functions take the values of the variables in front of their arguments."""

    def __init__(self, name: str, platform: str, variables: Sequence[str]) -> None:
        super().__init__(name, platform)
        self.variables = list(variables)

    def hidden(self, visibility: str) -> list[Any]:
        count = len(self.variables) if visibility == "private" else 0
        return [types.tensor_type(SIZE)] * count

    def writer(self, block: Any, hidden: Sequence[Any]) -> Builder:
        values = dict(zip(self.variables, hidden, strict=True)) if hidden else {}
        return DynamicBuilder(self, ir.InsertionPoint(block), values)


class DynamicBuilder(Builder):
    """A builder that knows the values of the variables."""

    __slots__ = ("variables",)

    def __init__(self, module: Module, ip: Any, variables: dict[str, Any]) -> None:
        super().__init__(module, ip)
        self.variables = variables

    def at(self, ip: Any) -> Builder:
        return DynamicBuilder(self.module, ip, self.variables)

    def arguments_of(self, values: Sequence[Any]) -> list[Any]:
        return [*self.variables.values(), *values]

    # ---- programs ---------------------------------------------------------------------------

    def inline(self, jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
        env: dict[Any, Any] = dict(zip(jaxpr.invars, values, strict=True))
        for eqn in jaxpr.eqns:
            reads = list(dict.fromkeys([v for v in eqn.invars if isinstance(v, Var)]))
            one = Jaxpr((), reads, eqn.outvars, [eqn], jaxpr.name)
            try:
                outs = super().inline(one, [env[v] for v in reads])
            except Refused:
                raise
            except Exception as error:
                avals = [v.aval for v in eqn.invars]
                sizes = [n for aval in (*avals, *[v.aval for v in eqn.outvars]) for n in aval.shape]
                if is_static(sizes):
                    raise
                texts = [f", {k}={v}" for k, v in eqn.params.items() if isinstance(v, tuple)]
                raise refusal(eqn.primitive.name, avals, "".join(texts), error) from error
            env.update(zip(eqn.outvars, outs, strict=True))
        return [
            self.constant(v.val, v.aval) if v.__class__ is Literal else env[v]
            for v in jaxpr.outvars
        ]

    # ---- sizes ------------------------------------------------------------------------------

    def _scalar(self, name: str, *operands: Any, aval: ShapedArray = SIZE) -> Any:
        return super().op(f"stablehlo.{name}", *operands, aval=aval)

    def size(self, n: Any) -> Any:
        """The value of a size, an int32."""
        if not isinstance(n, Dimension):
            return n if isinstance(n, ir.Value) else super().constant(n, SIZE)
        return self.size(n.evaluate(self.variables, self._arithmetic()))

    def _arithmetic(self) -> dict[str, Callable[[Any, Any], Any]]:
        def binary(emit: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
            return lambda x, y: emit(self.size(x), self.size(y))

        def plain(name: str) -> Callable[[Any, Any], Any]:
            return binary(lambda x, y: self._scalar(name, x, y))

        return {
            "add": plain("add"),
            "mul": plain("multiply"),
            "max": plain("maximum"),
            "min": plain("minimum"),
            "floordiv": binary(self._floordiv),
            "mod": binary(self._mod),
        }

    def _rounds(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The remainder, and whether rounding towards zero differs from rounding down."""
        rest = self._scalar("remainder", x, y)
        zero = super().constant(0, SIZE)
        differ = self.compare("NE", self._scalar("sign", x), self._scalar("sign", y), SIZE)
        return rest, self._scalar("and", self.compare("NE", rest, zero, SIZE), differ, aval=_FLAG)

    def _floordiv(self, x: Any, y: Any) -> Any:
        quotient = self._scalar("divide", x, y)
        _, flag = self._rounds(x, y)
        less = self._scalar("subtract", quotient, super().constant(1, SIZE))
        return self._scalar("select", flag, less, quotient)

    def _mod(self, x: Any, y: Any) -> Any:
        rest, flag = self._rounds(x, y)
        return self._scalar("select", flag, self._scalar("add", rest, y), rest)

    def sizes(self, shape: Sequence[Any]) -> Any:
        """A vector of sizes, as an operand of dynamic operations."""
        aval = SIZE.update(shape=(len(shape),))
        if is_static(shape) and not any(isinstance(n, ir.Value) for n in shape):
            return super().constant(np.asarray(shape, np.int32), aval)
        one = SIZE.update(shape=(1,))
        parts = [
            super(DynamicBuilder, self).op("stablehlo.reshape", self.size(n), aval=one)
            for n in shape
        ]
        if len(parts) == 1:
            return parts[0]
        return super().op(
            "stablehlo.concatenate", *parts, attributes={"dimension": types.integer(0)}, aval=aval
        )

    # ---- operations -------------------------------------------------------------------------

    def constant(self, value: Any, aval: ShapedArray) -> Any:
        if isinstance(value, Symbolic):
            scalar = aval.update(shape=())
            found = super().op("stablehlo.convert", self.size(value), aval=scalar)
            return found if not aval.shape else self.broadcast(found, aval)
        if is_static(aval.shape):
            return super().constant(value, aval)
        scalar = aval.physical().update(shape=())
        return self.broadcast(super().constant(value, scalar), aval.physical())

    def op(
        self,
        name: str,
        *operands: Any,
        attributes: dict[str, Any] | None = None,
        aval: ShapedArray | None = None,
    ) -> Any:
        out = (self.out_avals[0] if aval is None else aval).physical()
        given = attributes or {}
        symbolic = {key for key, value in given.items() if value.__class__ is tuple}
        if is_static(out.shape) and not symbolic:
            return super().op(name, *operands, attributes=attributes, aval=out)
        rest = {key: value for key, value in given.items() if key not in symbolic}

        def emit(kind: str, *more: Any, attributes: dict[str, Any] = rest) -> Any:
            return super(DynamicBuilder, self).op(
                f"stablehlo.{kind}", *operands, *more, attributes=attributes, aval=out
            )

        if name == "stablehlo.broadcast_in_dim":
            return emit("dynamic_broadcast_in_dim", self.sizes(out.shape))
        if name == "stablehlo.reshape":
            return emit("dynamic_reshape", self.sizes(out.shape))
        if name == "stablehlo.iota":
            return emit("dynamic_iota", self.sizes(out.shape))
        if name == "stablehlo.slice" and symbolic:
            bounds = [
                self.sizes(_numbers(given[key]))
                for key in ("start_indices", "limit_indices", "strides")
            ]
            return emit("real_dynamic_slice", *bounds, attributes={})
        if name == "stablehlo.pad" and symbolic:
            amounts = [
                self.sizes(_numbers(given[f"{key}_padding{end}"]))
                for key, end in (("edge", "_low"), ("edge", "_high"), ("interior", ""))
            ]
            return emit("dynamic_pad", *amounts, attributes={})
        if name == "stablehlo.gather" and symbolic:
            sizes = self.sizes(given["slice_sizes"])
            return emit("dynamic_gather", sizes)
        if name == "stablehlo.dynamic_slice" and symbolic:
            return self._dynamic_slice(operands, given["slice_sizes"], out)
        if name == "stablehlo.convolution" and symbolic == {"padding"}:
            flat = self.sizes([n for row in given["padding"] for n in row])
            pairs = SIZE.update(shape=(len(given["padding"]), 2))
            return emit("dynamic_conv", super().op("stablehlo.reshape", flat, aval=pairs))
        if symbolic or name in _SHAPELESS:
            raise NoForm(f"{name} has no form for a result of the type {out.str_short()}")
        return super().op(name, *operands, attributes=attributes, aval=out)

    def _dynamic_slice(self, operands: Sequence[Any], sizes: Any, out: ShapedArray) -> Any:
        """A slice of symbolic sizes; the starts are moved so that it lies inside, as ever."""
        x, *starts = operands
        firsts = []
        for i, (start, n) in enumerate(zip(starts, sizes, strict=True)):
            if start.type != types.tensor_type(SIZE):
                start = super().op("stablehlo.convert", start, aval=SIZE)
            whole = super().op(
                "stablehlo.get_dimension_size",
                x,
                attributes={"dimension": types.integer(i)},
                aval=SIZE,
            )
            last = self._scalar("subtract", whole, self.size(n))
            firsts.append(
                self._scalar("maximum", self._scalar("minimum", start, last), self.size(0))
            )
        # Refining finds the sizes in the addition.
        vector = SIZE.update(shape=(len(firsts),))
        begin = self.sizes(firsts)
        end = super().op("stablehlo.add", begin, self.sizes(sizes), aval=vector)
        steps = self.sizes([1] * len(firsts))
        return super().op("stablehlo.real_dynamic_slice", x, begin, end, steps, aval=out)

    def _padded_first(
        self, operands: Sequence[Any], attributes: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """What a reduction of windows is given, with symbolic padding made beforehand."""
        padding = attributes.get("padding")
        if padding.__class__ is not tuple or not _is_plain(attributes.get("base_dilations")):
            return operands, attributes
        low, high = zip(*padding, strict=True)
        count = len(operands) // 2
        xs = []
        for x, init, aval in zip(
            operands[:count], operands[count:], self.in_avals[:count], strict=True
        ):
            sizes = zip(low, aval.shape, high, strict=True)
            out = aval.update(shape=tuple([a + n + b for a, n, b in sizes]))
            amounts = [self.sizes(low), self.sizes(high), self.sizes([0] * len(low))]
            xs.append(super().op("stablehlo.dynamic_pad", x, init, *amounts, aval=out))
        none = types.matrix(((0, 0),) * len(padding))
        return [*xs, *operands[count:]], {**attributes, "padding": none}

    def ops(
        self,
        name: str,
        operands: Sequence[Any],
        avals: Sequence[ShapedArray],
        attributes: dict[str, Any] | None = None,
        regions: int = 0,
    ) -> Any:
        if name == "stablehlo.reduce_window":
            operands, attributes = self._padded_first(operands, attributes or {})
        symbolic = [key for key, x in (attributes or {}).items() if x.__class__ is tuple]
        if symbolic:
            raise NoForm(f"{name} takes no symbolic {' and '.join(symbolic)}")
        if all([is_static(aval.shape) for aval in avals]):
            return super().ops(name, operands, avals, attributes, regions)
        if name in _SHAPELESS:
            texts = ", ".join([aval.str_short() for aval in avals])
            raise NoForm(f"{name} has no form for results of the types {texts}")
        if name == "stablehlo.custom_call":
            # The shapes of its results are operands that refining takes away.
            given = dict(attributes or {})
            shapes = [self.sizes(aval.physical().shape) for aval in avals]
            first = len(operands)
            given["indices_of_shape_operands"] = ir.DenseIntElementsAttr.get(
                np.arange(first, first + len(shapes)), context=types.context
            )
            if "operand_layouts" in given:
                more = types.layouts(((1, 0),) * len(shapes))
                given["operand_layouts"] = types.array([*given["operand_layouts"], *more])
            return super().ops(name, [*operands, *shapes], avals, given, regions)
        return super().ops(name, operands, avals, attributes, regions)


def _is_plain(dilations: Any) -> bool:
    """Whether elements are not dilated."""
    return dilations is None or all(n == 1 for n in dilations)


def _numbers(attribute: Any) -> Sequence[Any]:
    """The numbers in an attribute, symbolic or not."""
    return list(attribute)
