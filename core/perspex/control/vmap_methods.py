"""What `vmap` does with a call of something that it cannot see into: the ways to choose from.

sequential, sequential_unrolled      a call for each example, in a loop
expand_dims, broadcast_all,          one call, with a new first axis of operands and results
legacy_vectorized
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.control.scan import scan_p
from perspex.ops.structural import broadcast_in_dim, move_axis, to_front
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof
from perspex.transforms.programs import cut, merge, partition, program

VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)


def check(vmap_method: str | None) -> None:
    """Raise `ValueError` for a method that there is not."""
    if vmap_method not in (None, *VMAP_METHODS):
        raise ValueError(
            f"vmap_method must be on of the allowed methods {[*VMAP_METHODS, None]}, but got: "
            f"{vmap_method}"
        )


class Opaque(Primitive):
    """A call of something that transforms cannot see into, with any number of results."""

    multiple_results = True
    lowers_keys = True

    def one_by_one(
        self,
        axis_size: int,
        operands: Sequence[Any],
        axes: Sequence[int | None],
        params: dict[str, Any],
        unroll: int = 1,
    ) -> tuple[list[Any], list[int | None]]:
        """A call for each example, in their order."""
        batched = [at is not None for at in axes]
        consts, xs = partition(operands, batched)
        places = [at for at in axes if at is not None]
        xs = [move_axis(x, at, 0) for x, at in zip(xs, places, strict=True)]

        def step(*args: Any) -> list[Any]:
            shared, mine = cut(args, len(consts))
            return self(*merge(batched, shared, mine), **params)

        rows_of = [typeof(x) for x in xs]
        of_one = [*map(typeof, consts), *[a.update(shape=a.shape[1:]) for a in rows_of]]
        outs = scan_p(
            *[*consts, *xs],
            jaxpr=program(step, of_one, self.name),
            length=axis_size,
            reverse=False,
            unroll=unroll,
            num_consts=len(consts),
            num_carry=0,
        )
        return outs, [0] * len(outs)

    def in_batch(
        self, grown: Sequence[bool], axis_size: int, params: dict[str, Any]
    ) -> dict[str, Any]:
        """The params for results with a new first axis, which `grown` operands have as well."""
        avals = tuple([a.update(shape=(axis_size, *a.shape)) for a in params["result_avals"]])
        return {**params, "result_avals": avals}

    def by_method(
        self, axis_size: int, operands: Any, axes: Any, params: dict[str, Any]
    ) -> tuple[list[Any], list[int | None]]:
        """The call for a batch, as its param `vmap_method` says; the rule `batch`."""
        method = params["vmap_method"]
        if method == "sequential":
            return self.one_by_one(axis_size, operands, axes, params)
        if method == "sequential_unrolled":
            return self.one_by_one(axis_size, operands, axes, params, unroll=axis_size)
        if method is None:
            raise NotImplementedError(
                f"vmap is only supported for the {self.name} primitive when vmap_method is one of "
                f"{', '.join(map(repr, VMAP_METHODS[:-1]))}, or {VMAP_METHODS[-1]!r}. "
                "Got vmap_method=None. 'sequential' makes a call for each example."
            )
        size = {"expand_dims": 1, "broadcast_all": axis_size, "legacy_vectorized": None}[method]
        given = [_spread(x, at, size) for x, at in zip(operands, axes, strict=True)]
        grown = [at is not None or size is not None for at in axes]
        outs = self(*given, **self.in_batch(grown, axis_size, params))
        return outs, [0] * len(outs)


def _spread(x: Any, at: int | None, size: int | None) -> Any:
    """A batch with its axis in front; what is not batched gets an axis of length `size`, if any."""
    if at is not None:
        return move_axis(x, at, 0)
    if size == 1:
        shape = typeof(x).shape
        dims = tuple(range(1, len(shape) + 1))
        return broadcast_in_dim(x, shape=(1, *shape), broadcast_dimensions=dims)
    return x if size is None else to_front(x, None, size)
