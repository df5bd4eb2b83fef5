"""Single operations of StableHLO, and the values that are made of few: what lowering rules write.

Operations are made with `ir.Operation.create` from interned types and attributes (1-1.7 us each,
where the generated builders take 3-5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perspex.base.xla import ir
from perspex.hlo import types
from perspex.ir.avals import ShapedArray

_create = ir.Operation.create
_tensor_type = types.tensor_type
# What a call of Python is named after.
_CALLBACKS = {"cpu": "cpu", "cuda": "gpu", "rocm": "gpu"}


class Writer:
    """Writes operations at one insertion point of a `module`: a `Builder` without programs.

    While a rule runs, `out_avals` are the types of its equation's results.
    """

    __slots__ = ("in_avals", "ip", "loc", "module", "out_avals", "scope", "source")

    # A `Module`, which is written with builders and so is defined above this.
    module: Any
    ip: Any
    loc: Any
    out_avals: Sequence[ShapedArray]

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
        """Whether `value` is a constant of integers without a zero."""
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
