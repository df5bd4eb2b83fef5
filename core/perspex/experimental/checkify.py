"""Errors of compiled programs as values: `jax.experimental.checkify`.

A compiled program cannot raise an exception. `checkify(f)` is a function that returns, beside the
results of `f`, an `Error` that says which check failed first. `jit` it, `vmap` it, differentiate
it, and then ask the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from perspex import tree
from perspex.base import source
from perspex.base.public import publish as _publish
from perspex.control.check import Error as Error
from perspex.control.check import JaxRuntimeError as JaxRuntimeError
from perspex.control.check import throw
from perspex.jitted.signature import function_name
from perspex.ops.elementwise import bitwise_not
from perspex.runtime.array import Array
from perspex.tracing.staging import eval_jaxpr, stage
from perspex.tracing.trace import state, typeof
from perspex.transforms.checks import Checks
from perspex.transforms.failures import (
    Cause,
    DivisionByZeroError,
    Entry,
    FailedCheckError,
    JaxException,
    NaNError,
    OOBError,
    Slot,
)

__all__ = [
    "Error",
    "ErrorCategory",
    "JaxRuntimeError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]

P = ParamSpec("P")
R = TypeVar("R")

ErrorCategory = type[JaxException]
init_error = Error()

user_checks = frozenset[ErrorCategory]([FailedCheckError])
nan_checks = frozenset[ErrorCategory]([NaNError])
index_checks = frozenset[ErrorCategory]([OOBError])
div_checks = frozenset[ErrorCategory]([DivisionByZeroError])
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


def checkify(
    f: Callable[P, R], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[P, tuple[Error, R]]:
    """A function that returns what failed, beside the results of `f`.

    Args:
      f: a function of pytrees of arrays, which may call `check`.
      errors: which checks are made. `user_checks` are calls of `check`; `nan_checks` find
        operations whose results are NaN, `div_checks` divisions by zero, `index_checks` indices
        that are out of bounds. `float_checks` are the first two of these three,
        `automatic_checks` all three, and `all_checks` every check. Combine sets with `|`.

    Returns:
      A function of the same arguments that returns an `Error` and the results of `f`. The error is
      that of the first check that failed; the results are what they would be without checks.

    Raises:
      ValueError: for a `vmap` of a `while_loop` whose examples stop at different steps. Write
        `vmap(checkify(f))` instead of `checkify(vmap(f))`.

    >>> import perspex
    >>> from perspex import numpy as pnp
    >>> from perspex.experimental import checkify
    >>> @perspex.jit
    ... @checkify.checkify
    ... def f(x):
    ...     checkify.check(x > 0, "x is {}, not positive", x)
    ...     return pnp.log(x)
    >>> error, out = f(-1.0)
    >>> error.get()
    'x is -1.0, not positive (`check` failed)'
    >>> error, out = f(1.0)
    >>> error.throw()
    """

    def checked(*args: P.args, **kwargs: P.kwargs) -> tuple[Error, R]:
        structure: Any = None

        def flat() -> list[Any]:
            nonlocal structure
            leaves, structure = tree.flatten(f(*args, **kwargs))
            return leaves

        jaxpr, consts = stage(flat, [], function_name(f))
        checks = Checks(errors)
        outs = checks.run(lambda *values: eval_jaxpr(jaxpr, values), consts)
        out: R = tree.unflatten(structure, outs)
        return Error(checks.entries, checks.causes), out

    return checked


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Raise an exception unless `pred` is true; under `checkify`, make it a result.

    Args:
      pred: a boolean, or a boolean array of shape `()`.
      msg: the message, a format string as that of `str.format`.
      fmt_args, fmt_kwargs: pytrees of arrays that the message shows. They may be traced.
      debug: do nothing outside of `checkify`.

    Returns:
      Nothing.

    Raises:
      JaxRuntimeError: if `pred` is false, unless it is traced.
      TypeError: for a `pred` that is not a boolean, or a format argument that is not an array.
      ValueError: in a program that is compiled without `checkify`.

    >>> from perspex.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "x is not positive")
    >>> checkify.checkify(f)(-1.0)[0].get()
    'x is not positive (`check` failed)'
    """
    _check("debug_check" if debug else "check", pred, msg, fmt_args, fmt_kwargs, debug)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Like `check` under `checkify`, and nothing elsewhere.

    Args:
      pred: a boolean, or a boolean array of shape `()`.
      msg: the message, a format string as that of `str.format`.
      fmt_args, fmt_kwargs: pytrees of arrays that the message shows. They may be traced.

    Returns:
      Nothing.

    Raises:
      TypeError: for a `pred` that is not a boolean, or a format argument that is not an array.

    >>> from perspex.experimental import checkify
    >>> def f(x):
    ...     checkify.debug_check(x != 0, "x is zero")
    >>> f(0)
    >>> checkify.checkify(f)(0)[0].get()
    'x is zero (`check` failed)'
    """
    _check("debug_check", pred, msg, fmt_args, fmt_kwargs, True)


def check_error(error: Error) -> None:
    """Raise an exception if `error` says so; under `checkify`, make it a result.

    The inverse of `checkify`: it makes an error that a function returned an exception again.

    Args:
      error: what a function made by `checkify` returned.

    Returns:
      Nothing.

    Raises:
      JaxRuntimeError: with the message of the first check that failed.
      TypeError: for anything but an `Error`.
      ValueError: in a program that is compiled without `checkify`.

    >>> import perspex
    >>> from perspex.experimental import checkify
    >>> def f(x):
    ...     error, out = perspex.jit(checkify.checkify(lambda x: 1 / x, checkify.div_checks))(x)
    ...     checkify.check_error(error)
    ...     return out
    >>> f(0.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    perspex.control.check.JaxRuntimeError: division by zero
    The check that failed is at ...
    """
    if not isinstance(error, Error):
        raise TypeError(
            f"check_error takes an Error as argument, got type {type(error)} instead. The first "
            "result of a function made by checkify is one."
        )
    throw(error)


def _check(
    name: str, pred: Any, msg: str, args: tuple[Any, ...], kwargs: dict[str, Any], debug: bool
) -> None:
    if not isinstance(pred, bool) and not (
        isinstance(pred, (Array, np.ndarray)) and pred.shape == () and pred.dtype == bool
    ):
        raise TypeError(
            f"{name} takes a scalar pred as argument, got {pred}. Reduce an array of booleans "
            "with `.all()`."
        )
    numbers, arguments = tree.flatten((args, kwargs))
    for x in numbers:
        if not isinstance(x, (Array, np.ndarray)):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{x!r} of type {type(x)}. Write what is known before the program runs into the "
                "message, as in an f-string."
            )
    slot = Slot(FailedCheckError, tuple([typeof(x).strip_weak_type() for x in numbers]))
    cause = Cause(FailedCheckError, state.source or source.capture(), (msg, arguments))
    entry = Entry(bitwise_not(pred), np.int32(0), tuple(numbers))
    throw(Error({slot: entry}, {0: cause}), debug)


_publish(globals())
