"""Python called from compiled programs: `pure_callback` and `io_callback`.

Inside `jit` a function of arrays is compiled, and no Python runs when the program does. These
functions leave a call of Python in the program: it gets arrays and returns arrays to the program.
`perspex.debug` has the two that only show something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perspex import dtypes, tree
from perspex.api.shapes import ShapeDtypeStruct
from perspex.base.tree_paths import PyTree
from perspex.control import vmap_methods
from perspex.control.callback import FlatCallback, io_callback_p, pure_callback_p
from perspex.ir.avals import ShapedArray, shaped
from perspex.sharding import Sharding


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: Any,
    sharding: Sharding | None = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> PyTree:
    """Call a Python function of arrays from a compiled program.

    The function must depend on its arguments alone and do nothing but return: the compiler may call
    it again, merge two calls, or drop one whose results nobody reads. For anything else there is
    `io_callback`.

    Args:
      callback: takes arrays where `args` and `kwargs` have them, and returns NumPy arrays, arrays
        or numbers in the structure of `result_shape_dtypes`. It may compute with arrays itself.
      result_shape_dtypes: a pytree whose leaves have the `shape` and `dtype` of the results, such
        as `ShapeDtypeStruct((3,), float32)`.
      args, kwargs: pytrees of arrays.
      sharding: where the callback runs; there is one host, so it changes nothing.
      vmap_method: what `vmap` does. `"sequential"`: a call for each example,
        `"sequential_unrolled"`: the same without a loop. The others make one call with a new first
        axis of arrays and results: `"expand_dims"` gives arrays that are the same for all examples
        an axis of length 1, `"broadcast_all"` of the batch's length, `"legacy_vectorized"` none.

    Returns:
      Arrays in the structure of `result_shape_dtypes`.

    Raises:
      ValueError: for another `vmap_method`, for results of 64 bits where those are not enabled, and
        when it is differentiated (wrap it in `custom_jvp`).
      TypeError: if `callback` is not a function, or an argument is not an array.
      NotImplementedError: under `vmap` without a `vmap_method`.
      JaxRuntimeError: for an exception of the callback in a compiled program, which is its cause.

    >>> import numpy as np
    >>> import perspex, perspex.numpy as pnp
    >>> @perspex.jit
    ... def f(x):
    ...     return 2 * perspex.pure_callback(np.sort, x, x)
    >>> f(pnp.array([3.0, 1.0, 2.0]))
    Array([2., 4., 6.], dtype=float32)
    """
    vmap_methods.check(vmap_method)
    operands, flat = _flatten("pure_callback", callback, args, kwargs)
    avals, out_tree = _results("pure_callback", result_shape_dtypes)
    outs = pure_callback_p(
        *operands, callback=flat, result_avals=avals, sharding=sharding, vmap_method=vmap_method
    )
    return tree.unflatten(out_tree, outs)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: Any,
    sharding: Sharding | None = None,
    ordered: bool = False,
    **kwargs: Any,
) -> PyTree:
    """Call a Python function that reads or changes the world from a compiled program.

    It is called exactly as often as the program says, whether its results are read or not.

    Args:
      callback: takes arrays where `args` and `kwargs` have them, and returns NumPy arrays, arrays
        or numbers in the structure of `result_shape_dtypes`.
      result_shape_dtypes: a pytree whose leaves have the `shape` and `dtype` of the results; `None`
        for a function without results.
      args, kwargs: pytrees of arrays.
      sharding: where the callback runs; there is one host, so it changes nothing.
      ordered: keep the order of the program among all ordered calls of this thread, in loops and
        from one compiled call to the next.

    Returns:
      Arrays in the structure of `result_shape_dtypes`.

    Raises:
      ValueError: for results of 64 bits where those are not enabled, when it is differentiated, and
        for an ordered call under `vmap`.
      TypeError: if `callback` is not a function, or an argument is not an array.
      JaxRuntimeError: for an exception of the callback in a compiled program, which is its cause.

    >>> import perspex
    >>> log = []
    >>> @perspex.jit
    ... def f(x):
    ...     io_callback(lambda v: log.append(float(v)), None, x, ordered=True)
    ...     return x + 1
    >>> f(1.0)
    Array(2., dtype=float32, weak_type=True)
    >>> perspex.effects_barrier()
    >>> log
    [1.0]
    """
    operands, flat = _flatten("io_callback", callback, args, kwargs)
    avals, out_tree = _results("io_callback", result_shape_dtypes)
    outs = io_callback_p(
        *operands, callback=flat, ordered=bool(ordered), result_avals=avals, sharding=sharding
    )
    return tree.unflatten(out_tree, outs)


def _flatten(
    what: str, callback: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], FlatCallback]:
    if not callable(callback):
        raise TypeError(
            f"first argument to {what} must be callable, but got an object of type {type(callback)}"
        )
    leaves, in_tree = tree.flatten((tuple(args), kwargs))
    for i, leaf in enumerate(leaves):
        try:
            shaped(leaf)
        except TypeError:
            raise TypeError(
                f"Error interpreting argument to {what} as a JAX value. The problematic value is "
                f"of type {type(leaf)} and is leaf {i} of its arguments; let the callback close "
                "over values that are not arrays (functools.partial)"
            ) from None
    return leaves, FlatCallback(callback, in_tree)


def _results(what: str, shapes: Any) -> tuple[tuple[ShapedArray, ...], Any]:
    leaves, out_tree = tree.flatten(shapes)
    avals = []
    for leaf in leaves:
        if isinstance(leaf, ShapeDtypeStruct) or (
            hasattr(leaf, "shape") and hasattr(leaf, "dtype")
        ):
            aval = ShapedArray(tuple(leaf.shape), leaf.dtype)
        else:
            raise TypeError(
                f"{what}: result_shape_dtypes must have leaves with a shape and a dtype, got "
                f"{leaf!r}; use ShapeDtypeStruct(shape, dtype)"
            )
        if not aval.is_extended and dtypes.canonicalize_dtype(aval.dtype) != aval.dtype:
            raise ValueError(
                "result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is "
                f"disabled: got {aval.str_short(short_dtypes=False)}; "
                "use 32 bits, or config.enable_x64(True)"
            )
        avals.append(aval)
    return tuple(avals), out_tree
