"""Look into programs while they run: `jax.debug`.

    debug.print("x = {x}", x=x)       print values, formatted where they are known
    debug.log("x = {x}", x=x)         the same by way of `logging`
    debug.callback(f, x)              call any function with them
    debug.breakpoint()                stop at a prompt that knows the variables
    debug.inspect_array_sharding(x, callback=f)    tell `f` how the compiler cuts a value
    debug.visualize_array_sharding(x)    show which part of an array lies on which device

The first four work inside `jit`, loops, branches and all transforms, where Python's own `print`
would run once, while the function is traced, and see no numbers. None changes what is computed.
"""

from __future__ import annotations

import functools
import importlib
import logging
import string
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perspex import tree
from perspex.base import source, views
from perspex.base.effects import DebugEffect as DebugEffect
from perspex.base.effects import OrderedDebugEffect as OrderedDebugEffect
from perspex.base.tree_paths import PyTree
from perspex.control.callback import (
    FlatCallback,
    LogRecord,
    arrays_apart,
    debug_callback_p,
    debug_effect,
    debug_print_p,
    hashable,
)
from perspex.control.inspecting import inspect_sharding_p

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log",
    "print",
]  # fmt: skip


def print(  # the name that users know, in place of Python's
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values from inside a traced function, each time that the compiled program gets there.

    Under `vmap` it prints once for each example, under `grad` the values of the forward pass, once.
    Numbers are shown with the `numpy.set_printoptions` of the time when the function is traced.

    Args:
      fmt: a format string, as for `str.format`; not an f-string, which Python fills in while
        tracing. Without it, returns a function that takes it.
      args, kwargs: what it refers to: pytrees of arrays, or any other values.
      ordered: keep the order of the program among all ordered prints of this thread. Otherwise
        prints may come in any order.
      partitioned: print the part of each device; there is one.
      skip_format_check: do not check, while tracing, that `fmt` fits the values.

    Returns:
      `None`; without `fmt` a function that takes it.

    Raises:
      TypeError: if `fmt` is not a string.
      KeyError: for a value that is missing by name.
      IndexError: for a value that is missing by position.
      ValueError: for a value that `fmt` does not use.

    >>> import perspex
    >>> @perspex.jit
    ... def f(x):
    ...     perspex.debug.print("x = {x:.2f}", x=x)
    ...     return x
    >>> y = f(2.0); perspex.effects_barrier()
    x = 2.00
    """
    if fmt is None:
        return functools.partial(
            print, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check
        )
    _show("print", None, fmt, args, kwargs, ordered, partitioned, skip_format_check)
    return None


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Log values from inside a traced function: `print` by way of `logging`.

    The records go to the logger `perspex.debug` at level `INFO` and name the line of the call. What
    that logger's level lets through, and where it goes, is decided when the program runs.

    Args:
      fmt: a format string, as for `str.format`. Without it, returns a function that takes it.
      args, kwargs: what it refers to: pytrees of arrays, or any other values.
      ordered: keep the order of the program among all ordered prints of this thread.
      partitioned: log the part of each device; there is one.
      skip_format_check: do not check, while tracing, that `fmt` fits the values.

    Returns:
      `None`; without `fmt` a function that takes it.

    Raises:
      TypeError: if `fmt` is not a string.
      KeyError: for a value that is missing by name.
      IndexError: for a value that is missing by position.
      ValueError: for a value that `fmt` does not use.

    >>> import logging, sys, perspex
    >>> logger = logging.getLogger("perspex.debug")
    >>> handler = logging.StreamHandler(sys.stdout)
    >>> logger.addHandler(handler); logger.setLevel("INFO")
    >>> @perspex.jit
    ... def f(x):
    ...     perspex.debug.log("x = {x:.2f}", x=x)
    ...     return x
    >>> y = f(2.0); perspex.effects_barrier()
    x = 2.00
    >>> logger.removeHandler(handler); logger.setLevel("NOTSET")
    """
    if fmt is None:
        return functools.partial(
            log, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check
        )
    at = source.resolve(source.capture())
    file, line, function = (
        ("(unknown file)", 0, "") if at is None else (at.file, at.line, at.function)
    )
    record = LogRecord(logging.INFO, file, line, function)
    _show("log", record, fmt, args, kwargs, ordered, partitioned, skip_format_check)
    return None


def _show(
    what: str,
    record: LogRecord | None,
    fmt: str,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    ordered: bool,
    partitioned: bool,
    skip_format_check: bool,
) -> None:
    if not isinstance(fmt, str):
        raise TypeError(f"debug.{what}: expected a format string, got {type(fmt)}")
    has_placeholders = skip_format_check or _check_format(fmt, args, kwargs)
    arrays, in_tree, static = arrays_apart(args, kwargs)
    debug_print_p(
        *arrays,
        fmt=fmt,
        ordered=bool(ordered),
        partitioned=bool(partitioned),
        in_tree=in_tree,
        static_args=static,
        np_printoptions=tuple(
            [(name, hashable(value)) for name, value in np.get_printoptions().items()]
        ),
        has_placeholders=has_placeholders,
        logging_record=record,
    )


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with values from inside a traced function; what it returns is dropped.

    It is for looking on. The compiler may not drop it, but a transform that computes a value again
    may call it again; what must happen exactly once goes through `io_callback`.

    Args:
      callback: takes arrays where `args` and `kwargs` have them. Without it, returns a function
        that takes it.
      args, kwargs: pytrees of arrays, or any other values, which are passed on as they are.
      ordered: keep the order of the program among all ordered calls of this thread.
      partitioned: call it for the part of each device; there is one.

    Returns:
      `None`; without `callback` a function that takes it.

    Raises:
      TypeError: if `callback` is not a function.
      JaxRuntimeError: for an exception of `callback` in a compiled program, which is its cause. It
        is raised where the program's results or `effects_barrier` are waited for.

    >>> import perspex, perspex.numpy as pnp
    >>> seen = []
    >>> @perspex.jit
    ... def f(x):
    ...     perspex.debug.callback(lambda v: seen.append(v.sum()), x)
    ...     return x
    >>> y = f(pnp.arange(3.0)); perspex.effects_barrier()
    >>> seen
    [Array(3., dtype=float32)]
    """
    if callback is None:
        return functools.partial(_call, ordered=ordered, partitioned=partitioned)
    return _call(callback, *args, ordered=ordered, partitioned=partitioned, **kwargs)


def _call(
    function: Callable[..., Any],
    /,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None:
    if not callable(function):
        raise TypeError(
            "first argument to jax.debug.callback must be callable, but got an object of type "
            f"{type(function)}"
        )
    arrays, in_tree, static = arrays_apart(args, kwargs)
    debug_callback_p(
        *arrays,
        callback=FlatCallback(function, in_tree, static),
        effect=debug_effect(bool(ordered)),
        partitioned=bool(partitioned),
    )


def inspect_array_sharding(value: PyTree, *, callback: Callable[[Any], None]) -> None:
    """Tell a function how arrays lie on devices, also values inside of a program.

    An array outside a program has its sharding: the function is called at once. In a program for
    several devices the compiler decides, and calls the function when it compiles; for one device it
    is called when the program is lowered. A program that is run again is not compiled again.

    Args:
      value: a pytree of arrays.
      callback: takes the sharding, of each array.

    >>> import perspex.numpy as pnp
    >>> seen = []
    >>> inspect_array_sharding(pnp.zeros(3), callback=seen.append)
    >>> seen[0].num_devices
    1
    """
    tree.map(lambda x: inspect_sharding_p(x, callback=callback), value)


class _FormatCheck(string.Formatter):
    """Finds out whether a format string and its values fit, without formatting a value."""

    used: set[int | str]

    def __init__(self) -> None:
        self.used = set()
        self.fields = 0

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Any) -> Any:
        self.used.add(key)
        return super().get_value(key, args, kwargs)

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value

    def format_field(self, value: Any, format_spec: str) -> str:
        self.fields += 1
        return ""


def _check_format(fmt: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether `fmt` has anything to fill in; raises if it and the values do not fit."""
    check = _FormatCheck()
    check.vformat(fmt, args, kwargs)
    unused = [x for i, x in enumerate(args) if i not in check.used]
    if unused:
        raise ValueError(f"Unused positional arguments to `jax.debug.print`: {unused}")
    missing = [name for name in kwargs if name not in check.used]
    if missing:
        raise ValueError(
            f"Unused keyword arguments to `jax.debug.print`: {missing}. You may be passing an "
            'f-string (i.e, `f"{x}"`) into `jax.debug.print` and instead should pass in a regular '
            "string."
        )
    return check.fields > 0


# A type checker would take every misspelt name for a view.
if TYPE_CHECKING:
    from perspex.api.breakpoints import breakpoint as breakpoint
else:
    # What few programs use is imported when it is.
    _LATER = {"breakpoint": "perspex.api.breakpoints"}

    def __getattr__(name: str) -> object:
        if name in _LATER:
            found = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
            found.__module__ = __name__
            return found
        return views.find("debug.", name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER, *views.names("debug.")})
