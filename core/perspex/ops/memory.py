"""The operation that moves an array to another memory of its device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from perspex.base import xla
from perspex.hlo import foreign, types
from perspex.ir.avals import ShapedArray
from perspex.layout import memories
from perspex.layout.memories import MemorySpace
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


def in_memory(b: Any, x: Any, kind: str) -> Any:
    """Emit what puts a value into a memory. A processor has one, whatever its name."""
    if b.platform == "cpu":
        return x
    placement = types.dictionary({"_xla_buffer_placement": types.string(kind)})
    (out,) = b.out_avals
    return foreign.custom_call(
        "annotate_device_placement",
        [x],
        [types.tensor_type(out)],
        has_side_effect=True,
        api_version=1,
        extra_attributes={"mhlo.frontend_attributes": placement},
        ip=b.ip,
        loc=b.loc,
    ).result


class DevicePut(Primitive):
    """The operand, in a memory of its device: `devices` has one space or sharding that says which.

    `copy_semantics` says whether the result may be the operand, where it lies there already.
    """

    name = "device_put"
    only_moves = True
    degree = 1
    printed: ClassVar[dict[str, Any]] = {"srcs": (None,)}
    # Whether any program has one: where none has, nobody looks for them.
    is_used: ClassVar[bool] = False
    memory = None

    def type(
        self, x: ShapedArray, *, devices: tuple[Any], copy_semantics: tuple[Any]
    ) -> ShapedArray:
        DevicePut.is_used = True
        if not isinstance(devices[0], MemorySpace) and not hasattr(devices[0], "asked_kind"):
            raise TypeError(
                f"device_put_p: `devices` must be one memory space or sharding, got {devices!r}; "
                "jax.device_put takes devices"
            )
        return x.update(memory_space=memories.space_of(devices[0]))

    def cut(self, out: ShapedArray, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.parts(x)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any, *, devices: tuple[Any], copy_semantics: tuple[Any]) -> Any:
        return in_memory(b, x, memories.kind_of(devices[0]))

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (t,) = tangents
        return self(*primals, **params), None if t is None else self(t, **params)

    def transpose(self, ct: Any, x: Any, **params: Any) -> Any:
        return [like_primal(ct, x.aval)]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        return self(*operands, **params), axes[0]


device_put = DevicePut()


def moved(x: Any, space: MemorySpace, copy: bool = False) -> Any:
    """The value `x` in that memory."""
    semantics = xla.ALWAYS_COPY if copy else xla.REUSE_INPUT
    return device_put(x, devices=(space,), copy_semantics=(semantics,))


def like_primal(ct: Any, aval: ShapedArray) -> Any:
    """A cotangent in the memory of the value that it belongs to."""
    same = typeof(ct).memory_space is aval.memory_space
    return ct if same else moved(ct, aval.memory_space, copy=True)
