"""`custom_lin`: the derivative of a `custom_vjp` function, of which only the transpose is known.

    residuals, tangents -> tangents of the results

Forward mode leaves this equation where a function has a rule for cotangents. It can be split, which
keeps it whole, batched and transposed, which calls the rule; it cannot be evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import JaxprEqn
from perspex.ops.structural import reduce_sum, to_front
from perspex.tracing.axes import Axis
from perspex.transforms.higher_order import HigherOrder, batch_in_front, instantiated
from perspex.transforms.identity import HowToTransform
from perspex.transforms.linearize import Rest
from perspex.transforms.programs import cut, merge, pick, spread
from perspex.transforms.vmap import batch, batched_aval


class Pullback(HowToTransform):
    """A rule for cotangents, on flat lists.

    `out_avals` are the types of the tangents of the results by which one can differentiate.
    """

    name: str
    rule_name: str
    out_avals: Sequence[ShapedArray]

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Cotangents of all arguments; `None` is zero, in `cts` too."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.rule_name


class CustomLin(HigherOrder):
    """The equation. Tangents marked `in_zeros` are zero, and are no operands."""

    name = "custom_lin"

    def type(self, *avals: ShapedArray, bwd: Pullback, **params: Any) -> Any:
        return tuple(bwd.out_avals)

    def lower(self, b: Any, *values: Any, bwd: Pullback, **params: Any) -> Any:
        raise forward_mode(bwd)

    def jvp(
        self, primals: Any, tangents: Any, *, num_res: int, bwd: Pullback, **params: Any
    ) -> tuple[list[Any], list[Any]]:
        if any(t is not None for t in tangents[:num_res]):
            raise forward_mode(bwd)
        params = {**params, "num_res": num_res, "bwd": bwd}
        residuals, given = primals[:num_res], primals[num_res:]
        ts = instantiated(tangents[num_res:], given, [True] * len(given))
        return self(*primals, **params), self(*residuals, *ts, **params)

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
        pullback = BatchedPullback(bwd, axis, batched[:num_res], spread(batched[num_res:], here))
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

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        # The rule is one for all results: those that nobody reads have the cotangent zero.
        return eqn


custom_lin = CustomLin()


def forward_mode(bwd: Pullback) -> TypeError:
    return TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function: "
        f"`{bwd.name}` has a rule for cotangents only (`{bwd.rule_name}`). Use reverse mode (grad, "
        "vjp, jacrev), or define the rule with custom_jvp, from which both modes follow."
    )


class BatchedPullback(Pullback):
    """The rule for batches, whose axis is in front: the rule for one example, batched.

    `args_batched` is `None` for arguments whose cotangent nobody wants.
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
        self.out_avals = [batched_aval(aval, axis.size) for aval in inner.out_avals]

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        nonzero = [ct is not None for ct in cts]
        here: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            stored, given = cut(args, len(residuals))
            found = self.inner.pull(stored, spread(given, nonzero))
            here[:] = [
                ct is not None and want is not None
                for ct, want in zip(found, self.args_batched, strict=True)
            ]
            return pick(found, here)

        axes = [0 if b else None for b in self.residuals_batched] + [0] * sum(nonzero)
        outs, places = batch(flat, self.axis, [*residuals, *pick(cts, nonzero)], axes)
        wanted = pick(self.args_batched, here)
        found = [
            self._settle(ct, at, want) for ct, at, want in zip(outs, places, wanted, strict=True)
        ]
        return merge(here, [None] * here.count(False), found)

    def _settle(self, ct: Any, at: int | None, batched: bool | None) -> Any:
        if batched:
            return to_front(ct, at, self.axis.size)
        # All examples had this argument in common: it has the sum of their cotangents.
        return reduce_sum(to_front(ct, at, self.axis.size), axes=(0,))
