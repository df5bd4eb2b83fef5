"""`custom_lin`: the derivative of a `custom_vjp` function; only its transpose is known.

    residuals, tangents -> tangents of the results

Forward mode leaves this equation where a function has a rule for cotangents. It can be split, which
keeps it whole, batched, and transposed, which calls the rule. It cannot be evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.ir.avals import ShapedArray
from perspex.ops.structural import reduce_sum, to_front
from perspex.rules.calls import LinearInRest
from perspex.rules.custom_call import Dense
from perspex.tracing.axes import Axis
from perspex.transforms.higher_order import batch_in_front
from perspex.transforms.identity import HowToTransform
from perspex.transforms.linearize import Rest
from perspex.transforms.programs import pick, with_gaps
from perspex.transforms.vmap import batch, batched_aval


class Pullback(HowToTransform):
    """A rule for cotangents, on flat lists.

    `out_avals` are the types of the tangents of those results that can have one.
    """

    name: str
    rule_name: str
    out_avals: Sequence[ShapedArray]

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Cotangents of all arguments; `None` is zero, in `cts` too."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.rule_name


class CustomLin(LinearInRest):
    """The equation. Tangents marked `in_zeros` are zero, and are no operands."""

    name = "custom_lin"

    def type(self, *avals: ShapedArray, bwd: Pullback, **params: Any) -> Any:
        return tuple(bwd.out_avals)

    def lower(self, b: Any, *values: Any, bwd: Pullback, **params: Any) -> Any:
        raise forward_mode(bwd)

    def of_residuals(self, params: dict[str, Any]) -> Exception:
        return forward_mode(params["bwd"])

    def batch(
        self,
        axis: Axis,
        operands: Any,
        axes: Any,
        *,
        num_res: int,
        in_zeros: tuple[bool, ...],
        bwd: Pullback,
        **params: Any,
    ) -> tuple[list[Any], list[int | None]]:
        batched = [at is not None for at in axes]
        here = [not zero for zero in in_zeros]
        pullback = BatchedPullback(bwd, axis, batched[:num_res], with_gaps(batched[num_res:], here))
        outs = self(
            *batch_in_front(operands, axes),
            num_res=num_res,
            in_zeros=in_zeros,
            bwd=pullback,
            **params,
        )
        return outs, [0] * len(outs)

    def split(self, unknown: Sequence[bool], *operands: Any, **params: Any) -> Any:
        return [None] * len(params["bwd"].out_avals), Rest(self, operands, params)

    def transpose(
        self,
        cts: Any,
        *operands: Any,
        num_res: int,
        in_zeros: tuple[bool, ...],
        bwd: Pullback,
        **params: Any,
    ) -> list[Any]:
        found = bwd.pull(operands[:num_res], cts)
        return [*[None] * num_res, *pick(found, [not zero for zero in in_zeros])]


custom_lin = CustomLin()


def forward_mode(bwd: Pullback) -> TypeError:
    return TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function: "
        f"`{bwd.name}` has a rule for cotangents only (`{bwd.rule_name}`). Use reverse mode (grad, "
        "vjp, jacrev), or define the rule with custom_jvp, from which both modes follow."
    )


class BatchedPullback(Pullback):
    """The rule for batches, whose axis is in front: the rule for one example, batched.

    `args_batched` is `None` for arguments whose cotangent is not wanted.
    """

    def __init__(
        self,
        inner: Pullback,
        axis: Axis,
        residuals_batched: Sequence[bool],
        args_batched: Sequence[bool | None],
    ) -> None:
        self.inner = inner
        self.axis = axis
        self.residuals_batched = residuals_batched
        self.args_batched = args_batched
        self.name, self.rule_name = inner.name, inner.rule_name
        self.out_avals = [batched_aval(aval, axis) for aval in inner.out_avals]

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        count = len(residuals)

        def wanted(args: list[Any]) -> list[Any]:
            found = self.inner.pull(args[:count], args[count:])
            pairs = zip(found, self.args_batched, strict=True)
            return [None if batched is None else ct for ct, batched in pairs]

        dense = Dense(wanted, [*residuals, *cts])
        axes = [0 if flag else None for flag in self.residuals_batched] + [0] * len(cts)
        outs, places = batch(dense, self.axis, dense.given, pick(axes, dense.here))
        flags = pick(self.args_batched, dense.found)
        return dense.restored(
            [self._settle(*each) for each in zip(outs, places, flags, strict=True)]
        )

    def _settle(self, ct: Any, at: int | None, batched: bool | None) -> Any:
        if batched:
            return to_front(ct, at, self.axis)
        # All examples had this argument in common: it has the sum of their cotangents.
        return reduce_sum(to_front(ct, at, self.axis), axes=(0,))
