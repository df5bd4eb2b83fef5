"""How a value inside a program lies on devices: the primitive of `debug.inspect_array_sharding`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perspex.base import effects, xla
from perspex.base.effects import Effects
from perspex.control.callback import hashable, unwrapped
from perspex.hlo import foreign
from perspex.ir.avals import ShapedArray
from perspex.layout.named import named
from perspex.runtime.placement import Spread, whole
from perspex.tracing.primitive import Primitive


class InspectSharding(Primitive):
    """Calls `callback` with the sharding of the operand: at once, or when a program is compiled.

    On one device that is when the program is lowered. On several the partitioner decides, which
    calls back.
    """

    name = "inspect_sharding"
    multiple_results = True
    lowers_keys = True
    on_host = True

    def __call__(self, x: Any, *, callback: Any) -> Any:
        return super().__call__(x, callback=hashable(callback))

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        # Not cached: the key would keep every callback alive.
        return self.fresh_type(avals, params)

    def type(self, x: ShapedArray, *, callback: Any) -> tuple[()]:
        return ()

    def effects(self, params: dict[str, Any]) -> Effects:
        return frozenset([effects.debug])

    def evaluate(self, x: Any, *, callback: Any) -> list[Any]:
        unwrapped(callback)(x.sharding)
        return []

    def lower(self, b: Any, x: Any, *, callback: Any) -> list[Any]:
        place, tell = b.module.place, unwrapped(callback)
        if place.__class__ is not Spread:
            tell(whole(place))
            return []
        answer = _answer(tell, place.mesh, b.in_avals[0].physical().ndim)
        b.module.asked.append(answer)
        foreign.custom_call(
            "InspectSharding",
            [x],
            [x.type],
            backend_config=xla.encode_inspect_sharding_callback(answer),
            has_side_effect=True,
            api_version=1,
            ip=b.ip,
            loc=b.loc,
        )
        return []

    def jvp(self, primals: Any, tangents: Any, *, callback: Any) -> tuple[list[Any], list[Any]]:
        return self(*primals, callback=callback), []

    def transpose(self, cts: Any, x: Any, *, callback: Any) -> list[Any]:
        return [None]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, callback: Any
    ) -> tuple[list[Any], list[Any]]:
        return self(*operands, callback=callback), []


def _answer(tell: Callable[[Any], None], mesh: Any, ndim: int) -> Callable[[Any], None]:
    """What the partitioner calls with XLA's sharding of a value with `ndim` axes."""
    return lambda found: tell(named(found, [mesh], ndim))


inspect_sharding_p = InspectSharding()
