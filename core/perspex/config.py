"""Flags: one `Flag` each, kept in jaxlib's C++ so that its fast paths see them by themselves.

A flag has a global value and a thread-local override. `flag.value` is what counts here and now,
`flag(new)` is a context manager that overrides it in this thread, `update(name, new)` sets it for
all threads. A flag with `retraces=True` is part of the key of every compiled call, so changing it
never runs a program that was traced under another value.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from perspex.base import environment, logs, xla
from perspex.base.flags import (
    LEVEL,
    DisableJit,
    Flag,
    Guard,
    Logging,
    ThreadGuard,
    Transfers,
    UserContext,
    anything,
    boolean,
    count,
    flags,
    folder,
    names,
    one_of,
    options,
    precision,
    rate,
    retracing,
)

enable_x64 = Flag(
    "enable_x64", False, "64-bit types where a dtype is not given; off: 32 bits.", boolean, True
)
disable_jit = DisableJit("disable_jit", False, "Run `jit` functions op by op.", boolean, True)
default_device = Flag(
    "default_device", None, "Where uncommitted computations run; None: device 0.", anything, True
)
default_matmul_precision = Flag(
    "default_matmul_precision",
    None,
    "Precision of dot products and convolutions that do not name one.",
    precision,
    True,
)
numpy_dtype_promotion = Flag(
    "numpy_dtype_promotion",
    "standard",
    "`standard` promotes along the lattice, `strict` only weakly typed values.",
    one_of("standard", "strict"),
    True,
)
numpy_rank_promotion = Flag(
    "numpy_rank_promotion",
    "allow",
    "What to do when operands of different rank broadcast.",
    one_of("allow", "warn", "raise"),
    True,
)
threefry_partitionable = Flag(
    "threefry_partitionable",
    True,
    "Counter layout of threefry bits; off: the layout of JAX before 0.5.",
    boolean,
    True,
)
default_prng_impl = Flag(
    "default_prng_impl",
    "threefry2x32",
    "The generator behind `random.key` and `PRNGKey`.",
    one_of("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"),
    True,
)
enable_custom_prng = Flag("enable_custom_prng", False, "`PRNGKey` gives typed keys.", boolean, True)
debug_nans = Flag(
    "debug_nans",
    False,
    "Raise an error at the first operation that makes a NaN; slow.",
    boolean,
    True,
)
debug_infs = Flag(
    "debug_infs",
    False,
    "Raise an error at the first operation that makes an infinity; slow.",
    boolean,
    True,
)
experimental_unsafe_xla_runtime_errors = Flag(
    "experimental_unsafe_xla_runtime_errors",
    False,
    "Let compiled programs raise the exceptions of `checkify.check`, by calls of Python.",
    boolean,
    True,
)
check_tracer_leaks = Flag(
    "check_tracer_leaks",
    False,
    "Raise an error when a function has been traced and a tracer of it is still held; slow.",
    boolean,
    True,
)
auto_pcast = Flag(
    "auto_pcast",
    True,
    "Inside `shard_map`, make operands values of each device where others are; off: an error.",
    boolean,
    True,
)
remove_size_one_mesh_axis_from_type = Flag(
    "remove_size_one_mesh_axis_from_type",
    False,
    "Leave axes of a mesh that have one device out of the types of arrays.",
    boolean,
    True,
)
no_collectives = Flag(
    "no_collectives",
    frozenset(),
    "Explicit axes of a mesh along which devices may not exchange numbers.",
    names,
    True,
)
compiler_options = Flag(
    "compiler_options",
    (),
    "Options of XLA for every program, by name; those of a `jit` come first. Like `XLA_FLAGS`, "
    "but they can be changed while the process runs.",
    options,
    True,
)
num_cpu_devices = Flag(
    "num_cpu_devices",
    None,
    "How many devices the CPU client has; read when it is made.",
    count,
    False,
)
compilation_cache_dir = Flag(
    "compilation_cache_dir",
    None,
    "The folder in which compiled programs are kept for the next process; None: nowhere.",
    folder,
    False,
)
enable_compilation_cache = Flag(
    "enable_compilation_cache",
    True,
    "Off: nothing is read from the folder of `compilation_cache_dir`, or written to it.",
    boolean,
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
    lambda value: None if value is None else boolean(value),
    False,
)
stoppable_loops = Flag(
    "stoppable_loops",
    None,
    "Compile long loops so that an interrupt of a cell ends them, on one CPU device; None: in "
    "notebooks only.",
    lambda value: None if value is None else boolean(value),
    False,
)
platforms = Flag(
    "platforms", None, "Comma-separated platforms in order of preference.", anything, False
)

enable_preemption_service = Flag(
    "enable_preemption_service",
    True,
    "Take SIGTERM for the news that the machine will be taken away, once processes have joined; "
    "see `multihost_utils.reached_preemption_sync_point`. It then ends no process any more.",
    boolean,
    False,
)
check_processes = Flag(
    "check_processes",
    True,
    "Before a program over devices of several processes runs for the first time, make sure that "
    "all of them are about to run it.",
    boolean,
    False,
)
check_processes_timeout = Flag(
    "check_processes_timeout",
    60.0,
    "Seconds after which processes that wait for one another in different places are an error.",
    float,
    False,
)

link_bandwidth = Flag(
    "link_bandwidth",
    None,
    "Bytes that a device sends to others in a second, for predictions; None: as measured here.",
    rate,
    False,
)
device_flops = Flag(
    "device_flops",
    None,
    "Operations that a device does in a second, for predictions; None: as measured here.",
    rate,
    False,
)

precision_cards = Flag(
    "precision_cards",
    True,
    "In a notebook, say once that an accelerator rounds the float32 that it multiplies, when a "
    "cell compares it with float64.",
    boolean,
    False,
)

recompile_cards = Flag(
    "recompile_cards",
    True,
    "In a notebook, show below a cell which functions were recompiled, and why.",
    boolean,
    False,
)

stale_captures = Flag(
    "stale_captures",
    "warn",
    "When a notebook changed what a jitted function captured: `warn` and run the old program, "
    "`retrace`, raise an `error`, or `ignore` it.",
    one_of("warn", "retrace", "error", "ignore"),
    True,
)

# ---- Guards, logs, and switches that forbid something -------------------------------------------

transfer_guard_host_to_device = Guard(
    "transfer_guard_host_to_device",
    "host_to_device",
    "What happens when numbers go from the host to a device: `allow`, `log`, `disallow`, or "
    "`log_explicit` and `disallow_explicit`, which `device_put` does not escape.",
    LEVEL,
)
transfer_guard_device_to_device = Guard(
    "transfer_guard_device_to_device",
    "device_to_device",
    "What happens when numbers go from one device to another, as above.",
    LEVEL,
)
transfer_guard_device_to_host = Guard(
    "transfer_guard_device_to_host",
    "device_to_host",
    "What happens when numbers go from a device to the host, as above; a processor that is the "
    "device has nothing to transfer.",
    LEVEL,
)
transfer_guard = Transfers(
    "transfer_guard",
    "The level of transfers in all directions. Set only: read that of a direction.",
    (transfer_guard_host_to_device, transfer_guard_device_to_device, transfer_guard_device_to_host),
)
array_garbage_collection_guard = Guard(
    "array_garbage_collection_guard",
    "garbage_collect_array",
    "What happens when Python's garbage collection frees an array: `allow`, `log` or `fatal`.",
    one_of(None, "allow", "log", "fatal"),
)
thread_guard = ThreadGuard(
    "thread_guard",
    False,
    "Raise an error when another thread starts a computation of several processes.",
    boolean,
    False,
)
log_compiles = Logging(
    "log_compiles",
    "Log each trace, lowering and compilation as a warning of the logger `perspex`.",
    logs.stage,
    logs.STAGES,
)
explain_cache_misses = Logging(
    "explain_cache_misses",
    "Log why a call of a jitted function found no program, as a warning of the logger `perspex`.",
    logs.miss,
    ("cache",),
)
no_tracing = Flag(
    "no_tracing", False, "Raise an error where `jit` would trace a function.", boolean, False
)
no_execution = Flag(
    "no_execution", False, "Raise an error where a program would run.", boolean, True
)
enable_checks = Flag(
    "enable_checks",
    False,
    "Check that each program is well formed and well typed once it has been traced; slow.",
    boolean,
    False,
)
debug_key_reuse = Flag(
    "debug_key_reuse",
    False,
    "Raise an error when a typed random key is used twice; slow.",
    boolean,
    True,
)
legacy_prng_key = Flag(
    "legacy_prng_key",
    "allow",
    "What to do when a random function is given a raw key of numbers: `allow`, `warn` or `error`.",
    one_of("allow", "warn", "error"),
    True,
)
allow_f16_reductions = Flag(
    "allow_f16_reductions",
    True,
    "Off: a sum of float16 or bfloat16 numbers raises an error.",
    boolean,
    True,
)
softmax_custom_jvp = Flag(
    "softmax_custom_jvp",
    False,
    "JAX's choice between two derivatives of softmax. Perspex has one: without effect.",
    boolean,
    False,
)
jax2tf_associative_scan_reductions = Flag(
    "jax2tf_associative_scan_reductions",
    False,
    "How JAX exports cumulative sums to TensorFlow: without effect.",
    boolean,
    False,
)
# `jax.config.jax2tf_...`: here the prefix is part of the name.
flags["2tf_associative_scan_reductions"] = jax2tf_associative_scan_reductions

flags["platform_name"] = platforms  # JAX's older name for it

# Not for users. `trace_depth` is nonzero while a function is traced, which takes the C++ fast paths
# out of play; `post_hook`, when set, is called by jaxlib after every fast call.
trace_depth = Flag("perspex_trace_depth", 0, "Identity of the current trace.", anything, True)
# C++ keeps calls apart by it; a program is the same for every caller, so it is no part of
# `context()`, and a function that was called is not traced again when it is differentiated.
retracing.remove(trace_depth)
# Likewise: a call under another policy goes through Python again, and finds its program.
retracing.remove(stale_captures)
# Likewise: while a cell is profiled, or loops are watched, each call goes through Python.
profiling = Flag("perspex_profiling", False, "Whether calls come to Python.", boolean, True)
retracing.remove(profiling)
# Likewise: in a forked child, each call goes through Python, which says that it cannot run.
forked = Flag("perspex_forked", False, "Whether XLA's threads are gone.", boolean, True)
retracing.remove(forked)
# Likewise: after a stop, each call goes through Python once, which gives the program another page
# (`runtime.stopping`).
stops = Flag("perspex_stops", 0, "The page of this thread; 0: that of all others.", anything, True)
retracing.remove(stops)
# The other way round: programs are traced under it, but C++ never sees a call that depends on it,
# because inside a `vmap` every call goes to Python.
axis_env = Flag("perspex_axis_env", (), "The named axes around, outermost first.", anything, False)
retracing.append(axis_env)
mesh = Flag("perspex_mesh", None, "The meshes around (`layout.mesh`).", anything, True)
post_hook = Flag("post_hook", None, "Called after every fast call.", anything, False)

environment.settle()

xla.set_enable_x64_state(enable_x64.cell)
xla.set_disable_jit_state(disable_jit.cell)
xla.set_post_hook_state(post_hook.cell)


def make_user_context(default_value: Any = None) -> UserContext:
    """A value of yours that compiled programs depend on, as they do on the flags.

    A jitted function that is called under another value is traced and compiled again.

    Args:
      default_value: the value outside every `with`; it must be hashable, as all values.

    Returns:
      A function that takes a value and returns a context manager, under which the value counts;
      its attribute `value` is the one here and now.

    Raises:
      Nothing.

    >>> import perspex
    >>> rounds = make_user_context(1)
    >>> f = perspex.jit(lambda x: x * rounds.value)
    >>> with rounds(3):
    ...     print(f(2))
    6
    >>> print(f(2))
    2
    """
    return UserContext(default_value)


def context() -> tuple[Any, ...]:
    """The values here and now of all flags that programs are traced under.

    Returns:
      A tuple, in the order of `context_names`.

    Raises:
      Nothing.

    >>> len(context()) == len(context_names())
    True
    """
    return tuple([flag.value for flag in retracing])


def context_names() -> tuple[str, ...]:
    """The names of the flags that programs are traced under.

    Returns:
      A tuple of strings.

    Raises:
      Nothing.

    >>> "enable_x64" in context_names()
    True
    """
    return tuple([flag.name for flag in retracing])


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


def config_with_absl() -> None:
    """Make each flag an option `--jax_NAME` of programs that read their options with `absl`.

    Returns:
      Nothing. `absl.app.run` sets the flags that the command line has.

    Raises:
      ModuleNotFoundError: if absl is not installed.
    """
    absl = importlib.import_module("absl.flags")
    define = {bool: absl.DEFINE_bool, int: absl.DEFINE_integer, float: absl.DEFINE_float}
    for flag in flags.values():
        if flag is not post_hook and f"jax_{flag.name}" not in absl.FLAGS:
            kind = define.get(type(flag.value), absl.DEFINE_string)
            kind(f"jax_{flag.name}", flag.value if kind in define.values() else None, flag.doc)
    importlib.import_module("absl.app").call_after_init(_take_from_absl)


def parse_flags_with_absl() -> None:
    """`config_with_absl`, and read the command line of this program at once.

    Returns:
      Nothing.

    Raises:
      ModuleNotFoundError: if absl is not installed.
    """
    config_with_absl()
    importlib.import_module("absl.flags").FLAGS(sys.argv, known_only=True)
    _take_from_absl()


def _take_from_absl() -> None:
    given = importlib.import_module("absl.flags").FLAGS
    for flag in flags.values():
        if flag is not post_hook and given[f"jax_{flag.name}"].present:
            flag.set(given[f"jax_{flag.name}"].value)


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
