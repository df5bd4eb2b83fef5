"""`custom_vmap`: a function with a rule for batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perspex import errors, tree
from perspex.control.bodies import place
from perspex.ir.avals import shaped
from perspex.jitted.signature import function_name
from perspex.ops.structural import to_front
from perspex.rules.batching import BatchRule, custom_vmap_call
from perspex.rules.function import CustomFunction, FunctionRule, P, R, pair_of
from perspex.runtime.dispatch import EVAL
from perspex.tracing.axes import Axis
from perspex.tracing.staging import stage_closed
from perspex.tracing.trace import in_its_place, state


class custom_vmap(CustomFunction[P, R]):  # noqa: N801 - it is used as a decorator
    """Give a function a rule for `vmap`: a decorator.

    Args:
      fun: a function of pytrees of arrays.

    Returns:
      A function that does what `fun` does. Give it a rule with `def_vmap` before it is called.
      Where the function is differentiated, `grad` of `vmap` differentiates the rule, and `vmap` of
      `grad` batches the function itself. It may close over values that you differentiate with
      respect to.

    Raises:
      TypeError: if `fun` is not a function.
      AttributeError: at a call without a rule.

    >>> import perspex, perspex.numpy as pnp
    >>> @custom_vmap
    ... def total(xs):
    ...     return pnp.sum(xs)
    >>> @total.def_vmap
    ... def total_of_many(axis_size, in_batched, xs):
    ...     return xs @ pnp.ones(xs.shape[1]), True
    >>> perspex.vmap(total)(pnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """

    what = "custom_vmap"
    takes_arrays = True
    missing = (
        "No batching rule defined for custom_vmap function {name} using def_vmap. Decorate its "
        "rule with @{name}.def_vmap, or leave @custom_vmap out."
    )

    def __init__(self, fun: Callable[P, R]) -> None:
        super().__init__(fun)

    def def_vmap(self, vmap_rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Set the rule.

        Args:
          vmap_rule: `vmap_rule(axis_size, in_batched, *args)`. The arguments have the axis of the
            batch in front where `in_batched`, a list of their structures with booleans, says so.
            It returns the results and, in the same structure, which of them have the axis in front.

        Returns:
          `vmap_rule`, so that this is a decorator.

        Raises:
          ValueError: at a call, for flags of another structure than the results, or results without
            the axis that the flags promise.

        >>> import perspex, perspex.numpy as jnp
        >>> from perspex.custom_batching import custom_vmap
        >>> @custom_vmap
        ... def f(x):
        ...     return jnp.sin(x)
        >>> @f.def_vmap
        ... def rule(axis_size, in_batched, x):
        ...     return 10 * x, True
        >>> perspex.vmap(f)(jnp.arange(3.0))
        Array([ 0., 10., 20.], dtype=float32)
        """
        self.rule = vmap_rule
        return vmap_rule

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return super().__call__(*args, **kwargs)
        except errors.UnexpectedTracerError:
            if state.trace is EVAL:
                raise
        # It closes over a value that is differentiated here. As an operand it has its tangent.
        leaves, rule = self.call_of(self.by_position(args, kwargs))
        closed, consts = stage_closed(rule.primal, [shaped(x) for x in leaves], rule.name)
        params = custom_vmap_call.params(rule, closed, consts)
        outs = custom_vmap_call(*consts, *leaves, **params)
        return tree.unflatten(rule.out_tree, outs)

    def make_rule(self, static: dict[int, Any], in_tree: Any, count: int) -> VmapRule:
        return VmapRule(self, static, in_tree, count)


class VmapRule(FunctionRule, BatchRule):
    """The rule of a `custom_vmap` function for one call, on flat lists."""

    equation = custom_vmap_call

    def __init__(self, owner: Any, static: dict[int, Any], in_tree: Any, count: int) -> None:
        super().__init__(owner, static, in_tree, count)
        self.rule = owner.rule
        self.rule_name = function_name(owner.rule)

    def vmap(
        self, axis: Axis, values: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[list[Any], list[int | None]]:
        args = [
            x if at is None else to_front(x, at, axis) for x, at in zip(values, axes, strict=True)
        ]
        flags = tree.unflatten(self.in_tree, [at is not None for at in axes])
        found = in_its_place(self.rule, axis.size, list(flags), *tree.unflatten(self.in_tree, args))
        what = f"the vmap rule {place(self.rule)} of the custom_vmap function `{self.name}`"
        out, out_batched = pair_of(found, what, "the results and which of them are batched")
        outs, out_tree = tree.flatten(out)
        batched, batched_tree = tree.flatten(out_batched)
        if batched_tree != out_tree:
            raise ValueError(
                f"structure of output value and output batching specification returned by {what} "
                f"do not match.\nOutput values: {out_tree}\nBatching spec: {batched_tree}\n"
                "Return one boolean for each array"
            )
        if self.out_tree is None:
            self.out_tree = out_tree
        elif self.out_tree != out_tree:
            raise ValueError(
                f"{what} must return what `{self.name}` returns, with one more axis, but that is "
                f"of the structure {out_tree}, and `{self.name}` returns {self.out_tree}"
            )
        for i, (y, flag) in enumerate(zip(outs, batched, strict=True)):
            shape = shaped(y).shape
            if flag and shape[:1] != (axis.size,):
                raise ValueError(
                    f"{what} says that {self.result_path(i)} is batched, but its shape {shape} "
                    f"does not start with the batch's size {axis.size}"
                )
        return outs, [0 if flag else None for flag in batched]
