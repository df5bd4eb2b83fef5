"""Where parts of a program run: `jax.experimental.compute_on`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from perspex import tree
from perspex.api.calls import Call, check_callable
from perspex.base.tree_paths import PyTree
from perspex.jitted.signature import name_after
from perspex.rules.compute_on import attributes, compute_on_p, holds_one
from perspex.runtime.dispatch import device_put
from perspex.tracing.staging import stage_closed

__all__ = ["compute_on"]


def compute_on(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: PyTree,
    compiler_options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """A function that runs on another unit than the program around it.

    On the CPU there is one unit, and the results are the same.

    Args:
      f: a function of pytrees of arrays; without it, the result is a decorator.
      compute_type: `"device_host"` for the processor of the host, `"device"` for the device itself,
        `"tpu_sparsecore"`, or `"gpu_stream:#"` for the GPU's stream with a number.
      out_memory_spaces: where the results lie: a `memory.Space`, or a tree of such that is a prefix
        of the structure of the results.
      compiler_options: options for XLA, for a computation on the sparse cores of a TPU.

    Returns:
      A function with the arguments and results of `f`. It has derivatives and batches, which run
      there, too.

    Raises:
      TypeError: if `f` is no function.
      ValueError: from the result, for another compute type, for memory spaces of another structure,
        and where `f` calls such a function itself.

    >>> from perspex import jit, lax, memory
    >>> sin = compute_on(lax.sin, compute_type="device_host", out_memory_spaces=memory.Space.Device)
    >>> '_xla_compute_type = "host"' in jit(sin).lower(1.0).as_text()
    True
    """
    if f is None:
        return functools.partial(
            compute_on,
            compute_type=compute_type,
            out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )
    check_callable(f)
    options = None if compiler_options is None else json.dumps(compiler_options)

    def computed(*args: Any, **kwargs: Any) -> Any:
        attributes(compute_type)
        call = Call("compute_on", f, args, kwargs)
        closed, consts = stage_closed(call, call.avals, call.name)
        if holds_one([closed]):
            raise ValueError(
                "Nesting `compute_on` with different compute types is not allowed. "
                f"`{call.name}` runs as {compute_type} and calls a function of compute_on itself; "
                "call one after the other"
            )
        spaces = tree.flatten_axes("compute_on out_memory_spaces", call.out_tree, out_memory_spaces)
        given = [*consts, *call.leaves]
        outs = compute_on_p(
            *given,
            jaxpr=closed,
            name="compute_on",
            donated_invars=(False,) * len(given),
            inline=False,
            keep_unused=False,
            compute_type=compute_type,
            compiler_options_json=options,
        )
        placed = [device_put(y, space) for y, space in zip(outs, spaces, strict=True)]
        return tree.unflatten(call.out_tree, placed)

    name_after(computed, f)
    return computed
