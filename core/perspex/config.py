"""Flags: one `Flag` each, kept in jaxlib's C++ so that its fast paths see them by themselves.

A flag has a global value and a thread-local override. `flag.value` is what counts here and now,
`flag(new)` is a context manager that overrides it in this thread, `update(name, new)` sets it for
all threads. A flag with `retraces=True` is part of the key of every compiled call, so changing it
never runs a program that was traced under another value.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

from perspex.base import environment, xla

_Config = xla.Config

flags: dict[str, Flag] = {}
_retracing: list[Flag] = []


class Flag:
    """A named setting with a global value and a per-thread override.

    Args:
      name: its name, in the environment too: `PERSPEX_NAME` or `JAX_NAME`.
      default: the value where the environment has none.
      doc: what it means.
      check: turns what a user gives into a value, or raises `ValueError`.
      retraces: whether programs are traced under it, so that another value is another program.

    >>> with enable_x64(True):
    ...     enable_x64.value
    True
    """

    __slots__ = ("cell", "check", "doc", "name")

    def __init__(
        self, name: str, default: Any, doc: str, check: Callable[[Any], Any], retraces: bool
    ) -> None:
        value = environment.value(name.upper(), default, check)
        self.name, self.doc, self.check = name, doc, check
        self.cell = _Config(
            name, value, include_in_jit_key=retraces, include_in_trace_context=retraces
        )
        flags[name] = self
        if retraces:
            _retracing.append(self)

    @property
    def value(self) -> Any:
        return self.cell.value

    def set(self, value: Any) -> None:
        """Set the global value, for every thread.

        Args:
          value: the new value.

        Returns:
          Nothing.

        Raises:
          ValueError: for a value that the flag cannot have.

        >>> enable_x64.set(False)
        """
        self.cell.set_global(self.check(value))

    @contextlib.contextmanager
    def __call__(self, new_val: Any = True) -> Iterator[None]:
        previous = self.cell.swap_local(self.check(new_val))
        try:
            yield
        finally:
            self.cell.set_local(previous)

    def __repr__(self) -> str:
        return f"Flag({self.name}={self.value!r})"

    def __bool__(self) -> bool:
        raise TypeError(f"read the flag with `{self.name}.value`")


class _DisableJit(Flag):
    """A flag whose context manager names its argument as JAX's does."""

    __slots__ = ()

    def __call__(self, disable: Any = True) -> Any:
        return super().__call__(disable)


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        lowered = value.strip().lower()
        if lowered in ("1", "true", "yes", "on", "y", "t"):
            return True
        if lowered in ("0", "false", "no", "off", "n", "f", ""):
            return False
        raise ValueError(f"expected a boolean, got {value!r}")
    return bool(value)


def _one_of(*choices: Any) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value not in choices:
            raise ValueError(f"expected one of {choices}, got {value!r}")
        return value

    return check


_PRECISION = _one_of(
    *("default", "high", "highest", "float32", "tensorfloat32"),
    *("bfloat16", "bfloat16_3x", "fastest"),
)


def _anything(value: Any) -> Any:
    return value


def _folder(path: Any) -> str | None:
    if not path:
        return None
    text = os.fsdecode(path)
    return text if "://" in text else os.path.abspath(os.path.expanduser(text))


def _options(value: Any) -> tuple[tuple[str, Any], ...]:
    """Names and values, hashable and in order; from JSON, too, for the environment's sake."""
    return tuple(sorted(dict(json.loads(value) if isinstance(value, str) else value).items()))


def _count(value: Any) -> int | None:
    if value is None:
        return None
    if int(value) < 1:
        raise ValueError(f"expected a number above 0, got {value!r}")
    return int(value)


def _precision(value: Any) -> Any:
    return _PRECISION(value) if isinstance(value, str) else value


enable_x64 = Flag(
    "enable_x64", False, "64-bit types where a dtype is not given; off: 32 bits.", _boolean, True
)
disable_jit = _DisableJit("disable_jit", False, "Run `jit` functions op by op.", _boolean, True)
default_device = Flag(
    "default_device", None, "Where uncommitted computations run; None: device 0.", _anything, True
)
default_matmul_precision = Flag(
    "default_matmul_precision",
    None,
    "Precision of dot products and convolutions that do not name one.",
    _precision,
    True,
)
numpy_dtype_promotion = Flag(
    "numpy_dtype_promotion",
    "standard",
    "`standard` promotes along the lattice, `strict` only weakly typed values.",
    _one_of("standard", "strict"),
    True,
)
numpy_rank_promotion = Flag(
    "numpy_rank_promotion",
    "allow",
    "What to do when operands of different rank broadcast.",
    _one_of("allow", "warn", "raise"),
    True,
)
threefry_partitionable = Flag(
    "threefry_partitionable",
    True,
    "Counter layout of threefry bits; off: the layout of JAX before 0.5.",
    _boolean,
    True,
)
default_prng_impl = Flag(
    "default_prng_impl",
    "threefry2x32",
    "The generator behind `random.key` and `PRNGKey`.",
    _one_of("threefry2x32", "rbg", "unsafe_rbg"),
    True,
)
enable_custom_prng = Flag(
    "enable_custom_prng", False, "`PRNGKey` gives typed keys.", _boolean, True
)
debug_nans = Flag(
    "debug_nans",
    False,
    "Raise an error at the first operation that makes a NaN; slow.",
    _boolean,
    True,
)
debug_infs = Flag(
    "debug_infs",
    False,
    "Raise an error at the first operation that makes an infinity; slow.",
    _boolean,
    True,
)
check_tracer_leaks = Flag(
    "check_tracer_leaks",
    False,
    "Raise an error when a function has been traced and a tracer of it is still held; slow.",
    _boolean,
    True,
)
compiler_options = Flag(
    "compiler_options",
    (),
    "Options of XLA for every program, by name; those of a `jit` come first. Like `XLA_FLAGS`, "
    "but they can be changed while the process runs.",
    _options,
    True,
)
num_cpu_devices = Flag(
    "num_cpu_devices",
    None,
    "How many devices the CPU client has; read when it is made.",
    _count,
    False,
)
compilation_cache_dir = Flag(
    "compilation_cache_dir",
    None,
    "The folder in which compiled programs are kept for the next process; None: nowhere.",
    _folder,
    False,
)
enable_compilation_cache = Flag(
    "enable_compilation_cache",
    True,
    "Off: nothing is read from the folder of `compilation_cache_dir`, or written to it.",
    _boolean,
    False,
)
compilation_cache_max_size = Flag(
    "compilation_cache_max_size",
    10**9,
    "Bytes that the folder may hold; beyond, the least recently used are evicted. -1: no limit.",
    int,
    False,
)
persistent_cache_min_compile_time_secs = Flag(
    "persistent_cache_min_compile_time_secs",
    0.0,
    "Programs that compile in less time are not written to the folder.",
    float,
    False,
)
persistent_cache_min_entry_size_bytes = Flag(
    "persistent_cache_min_entry_size_bytes",
    0,
    "Programs that are smaller are not written to the folder.",
    int,
    False,
)
compiler_process = Flag(
    "compiler_process",
    None,
    "Compile large programs in a process of their own, which an interrupt ends; None: in notebooks "
    "only.",
    lambda value: None if value is None else _boolean(value),
    False,
)
platforms = Flag(
    "platforms", None, "Comma-separated platforms in order of preference.", _anything, False
)

recompile_cards = Flag(
    "recompile_cards",
    True,
    "In a notebook, show below a cell which functions were recompiled, and why.",
    _boolean,
    False,
)

stale_captures = Flag(
    "stale_captures",
    "warn",
    "When a notebook changed what a jitted function captured: `warn` and run the old program, "
    "`retrace`, raise an `error`, or `ignore` it.",
    _one_of("warn", "retrace", "error", "ignore"),
    True,
)

flags["platform_name"] = platforms  # JAX's older name for it

# Not for users. `trace_depth` is nonzero while a function is traced, which takes the C++ fast paths
# out of play; `post_hook`, when set, is called by jaxlib after every fast call.
trace_depth = Flag("perspex_trace_depth", 0, "Identity of the current trace.", _anything, True)
# C++ keeps calls apart by it; a program is the same for every caller, so it is no part of
# `context()`, and a function that was called is not traced again when it is differentiated.
_retracing.remove(trace_depth)
# Likewise: a call under another policy goes through Python again, and finds its program.
_retracing.remove(stale_captures)
# Likewise: while a cell is profiled, each call goes through Python, which records the caller.
profiling = Flag("perspex_profiling", False, "Whether calls are written down.", _boolean, True)
_retracing.remove(profiling)
# Likewise: in a forked child, each call goes through Python, which says that it cannot run.
forked = Flag("perspex_forked", False, "Whether XLA's threads are gone.", _boolean, True)
_retracing.remove(forked)
# The other way round: programs are traced under it, but C++ never sees a call that depends on it,
# because inside a `vmap` every call goes to Python.
axis_env = Flag("perspex_axis_env", (), "The named axes around, outermost first.", _anything, False)
_retracing.append(axis_env)
post_hook = Flag("post_hook", None, "Called after every fast call.", _anything, False)

environment.settle()

xla.set_enable_x64_state(enable_x64.cell)
xla.set_disable_jit_state(disable_jit.cell)
xla.set_post_hook_state(post_hook.cell)


def context() -> tuple[Any, ...]:
    """The values here and now of all flags that programs are traced under.

    Returns:
      A tuple, in the order of `context_names`.

    Raises:
      Nothing.

    >>> len(context()) == len(context_names())
    True
    """
    return tuple([flag.value for flag in _retracing])


def context_names() -> tuple[str, ...]:
    """The names of the flags that programs are traced under.

    Returns:
      A tuple of strings.

    Raises:
      Nothing.

    >>> "enable_x64" in context_names()
    True
    """
    return tuple([flag.name for flag in _retracing])


def find(name: str) -> Flag:
    """A flag by its name.

    Args:
      name: the name, with or without JAX's `jax_` before it.

    Returns:
      A `Flag`.

    Raises:
      AttributeError: for another name.

    >>> find("jax_enable_x64")
    Flag(enable_x64=False)
    """
    try:
        return flags[name.removeprefix("jax_")]
    except KeyError:
        raise AttributeError(f"perspex has no configuration flag {name!r}") from None


def update(name: str, val: Any) -> None:
    """Set a flag for all threads.

    Args:
      name: the name, with or without JAX's `jax_` before it.
      val: the new value.

    Returns:
      Nothing.

    Raises:
      AttributeError: for another name.
      ValueError: for a value that the flag cannot have.

    >>> update("enable_x64", False)
    """
    find(name).set(val)


def read(name: str) -> Any:
    """The value of a flag here and now.

    Args:
      name: the name, with or without JAX's `jax_` before it.

    Returns:
      The override of this thread if there is one, else the global value.

    Raises:
      AttributeError: for another name.

    >>> read("enable_x64")
    False
    """
    return find(name).value


def __getattr__(name: str) -> Any:
    # `jax.config.jax_enable_x64` reads the value; `values` has all, `x64_enabled` is an older name.
    if name.startswith("jax_"):
        return find(name).value
    if name == "x64_enabled":
        return enable_x64.value
    if name == "values":
        return {f"jax_{key}": flag.value for key, flag in flags.items() if flag is not post_hook}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *[f"jax_{name}" for name in flags], "values", "x64_enabled"})
