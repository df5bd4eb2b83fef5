"""`linear_call`: a linear function that comes with its transpose.

    residuals, linear operands -> results

The derivative of the call is the call, and its transpose is the call of the other function, whose
transpose is the first one again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.structural import is_linear, to_front, zeros
from perspex.rules.calls import LinearInRest, WholeCall
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr, stage_closed
from perspex.tracing.trace import typeof
from perspex.transforms.higher_order import batch_in_front
from perspex.transforms.identity import HowToTransform
from perspex.transforms.programs import cut
from perspex.transforms.vmap import batch, batch_jaxpr


class Transposed(HowToTransform):
    """The transpose of a function on flat lists: it takes residuals and cotangents."""

    def __init__(self, f: Callable[..., Sequence[Any]], name: str) -> None:
        self.f = f
        self.name = name

    def __repr__(self) -> str:
        return self.name


class LinearCall(LinearInRest, WholeCall):
    """The call as an equation; the first `num_res` operands are the residuals."""

    name = "linear_call"
    program = "callee"

    def of_residuals(self, params: dict[str, Any]) -> Exception:
        return TypeError(
            "linear_call: cannot differentiate with respect to residual_args, or to what the "
            "function closes over; use stop_gradient on them, or custom_vjp instead"
        )

    def transpose(
        self, cts: Any, *operands: Any, callee: ClosedJaxpr, num_res: int, transpose: Transposed
    ) -> list[Any]:
        residuals, given = cut(operands, num_res)
        assert not any(is_linear(x) for x in residuals), "a residual is not linear"
        cts = [
            zeros(aval.strip_weak_type()) if ct is None else ct
            for ct, aval in zip(cts, callee.out_avals, strict=True)
        ]
        avals = [typeof(x) for x in (*residuals, *cts)]
        backward, consts = stage_closed(transpose.f, avals, transpose.name)

        def forward(*args: Any) -> list[Any]:
            return eval_jaxpr(callee.jaxpr, (), *args[len(consts) :])

        found = self(
            *[*consts, *residuals, *cts],
            callee=backward,
            num_res=len(consts) + num_res,
            transpose=Transposed(forward, callee.jaxpr.name),
        )
        return [*[None] * num_res, *found]

    def batch(
        self,
        axis: Axis,
        operands: Any,
        axes: Any,
        *,
        callee: ClosedJaxpr,
        num_res: int,
        transpose: Transposed,
    ) -> tuple[list[Any], list[int | None]]:
        # All linear operands and results have the axis, and so have their cotangents.
        values = batch_in_front(operands, axes)
        stored, given = cut(values, num_res)
        at_stored, at_given = cut(axes, num_res)
        given = [
            x if at is not None else to_front(x, None, axis)
            for x, at in zip(given, at_given, strict=True)
        ]
        flags = [at is not None for at in at_stored]
        body, _ = batch_jaxpr(callee, axis, (*flags, *[True] * len(given)), True)

        def many(*args: Any) -> list[Any]:
            places = [0 if flag else None for flag in flags]
            outs, found = batch(
                transpose.f, axis, args, [*places, *[0] * (len(args) - len(places))]
            )
            return [
                y if at == 0 else to_front(y, at, axis) for y, at in zip(outs, found, strict=True)
            ]

        outs = self(
            *stored,
            *given,
            callee=body,
            num_res=num_res,
            transpose=Transposed(many, transpose.name),
        )
        return outs, [0] * len(outs)


linear_call_p = LinearCall()
