"""`debug.breakpoint`: a prompt that knows the variables of a program, where it is when it runs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

from perspex import tree
from perspex.api.callbacks import pure_callback
from perspex.api.shapes import ShapeDtypeStruct
from perspex.base import source
from perspex.base.tree_paths import PyTree
from perspex.control.callback import FlatCallback, arrays_apart, debug_callback_p, debug_effect
from perspex.ops.elementwise import stop_gradient
from perspex.runtime.prompt import Frame, Prompt
from perspex.tracing.array_type import Array
from perspex.tracing.trace import typeof


def breakpoint(  # the name that users know, in place of Python's
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: PyTree = None,
    **kwargs: Any,
) -> PyTree:
    """Stop at a prompt, each time that the compiled program gets there.

    The prompt shows the variables of the functions that were traced, with their numbers. It knows
    the commands `p`, `pp`, `up`, `down`, `list`, `where`, `continue` and `quit`, and expressions.

    Args:
      backend: `"cli"`, the only one: the prompt in a terminal or a notebook.
      filter_frames: leave out the functions of Perspex and of libraries that ask for it.
      num_frames: at most so many functions, the innermost ones; all if not given.
      ordered: keep the order of the program among all ordered calls of this thread.
      token: a pytree of arrays, returned unchanged: the program stops once they are computed, and
        only if the result is used.
      kwargs: `stdin` and `stdout`, files in place of those of Python.

    Returns:
      `token`.

    Raises:
      ValueError: for another `backend`, or both `ordered` and `token`.
      JaxRuntimeError: from a compiled program, if nobody can answer the prompt, or for `quit`.

    >>> import io, os, perspex
    >>> commands, shown = io.StringIO(f"y + 1{os.linesep}continue"), io.StringIO()
    >>> @perspex.jit
    ... def f(x):
    ...     y = x * 2
    ...     perspex.debug.breakpoint(stdin=commands, stdout=shown)
    ...     return y
    >>> y = f(2.0); perspex.effects_barrier()
    >>> shown.getvalue().splitlines()[1]
    '(jdb) Array(5., dtype=float32)'
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint has the backend 'cli', got {backend!r}")
    if token is not None and ordered:
        raise ValueError("`ordered` and `token` are mutually exclusive arguments.")
    frames, variables = _traced_frames(filter_frames, num_frames)

    def stop(variables: Sequence[dict[str, Any]]) -> None:
        found = [
            frame._replace(names={**frame.names, **names})
            for frame, names in zip(frames, variables, strict=True)
        ]
        Prompt(found, **kwargs).ask()

    if token is None:
        arrays, in_tree, static = arrays_apart((variables,), {})
        debug_callback_p(
            *arrays,
            callback=FlatCallback(stop, in_tree, static),
            effect=debug_effect(ordered),
            partitioned=False,
        )
        return None
    shapes = tree.map(lambda x: ShapeDtypeStruct(typeof(x).shape, typeof(x).dtype), token)

    def passed(token: Any, variables: Any) -> Any:
        stop(variables)
        return token

    return pure_callback(passed, shapes, *tree.map(stop_gradient, (token, variables)))


def _traced_frames(
    filter_frames: bool, count: int | None
) -> tuple[list[Frame], list[dict[str, Any]]]:
    """The functions on their way, the innermost first, and of each the variables with arrays."""
    frames, variables = [], []
    stack = inspect.stack(context=11)[2:]
    users = [info for info in stack if not source.is_internal(info.filename)]
    for info in (users if filter_frames and users else stack)[:count]:
        arrays: dict[str, Any] = {}
        names = dict(info.frame.f_globals)
        for name, value in info.frame.f_locals.items():
            (arrays if _is_of_arrays(value) else names)[name] = value
        lines = [line.rstrip("\n") for line in info.code_context or ()]
        first = info.lineno - (info.index or 0)
        frames.append(Frame(info.filename, info.lineno, info.function, tuple(lines), first, names))
        variables.append(arrays)
    return frames, variables


def _is_of_arrays(value: Any) -> bool:
    """Whether a variable is an array, or a container of nothing else."""
    if isinstance(value, Array):
        return True
    if not isinstance(value, (dict, list, tuple)):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about generators, which nobody looks into
            leaves = tree.leaves(value)
    except (TypeError, ValueError):  # keys of a dictionary that have no order
        return False
    return bool(leaves) and all([isinstance(leaf, Array) for leaf in leaves])
