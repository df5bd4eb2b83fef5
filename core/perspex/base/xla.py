"""XLA, as jaxlib offers it: every name of jaxlib that Perspex uses, and where its versions differ.

jaxlib promises none of this to anybody but JAX. So nothing else here imports jaxlib (but the
compiler process, a script that imports nothing of ours): a new version is one file to look at.
"""

from __future__ import annotations

import functools
import importlib
import operator
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

# XLA's C++ reports every client it makes on stderr unless it is told to keep to warnings, before
# it is loaded.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# ruff: noqa: E402
import jaxlib
import numpy as np
from jaxlib import _jax, _profile_data, _profiler, version, xla_client
from jaxlib._jax import JaxRuntimeError as JaxRuntimeError
from jaxlib._jax import pytree as pytree
from jaxlib.mlir import ir as ir
from jaxlib.mlir import passmanager as passmanager
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo

from perspex.base import imports

JAXLIB_FILE: str = jaxlib.__file__
JAXLIB_VERSION: str = version.__version__
jaxlib_version: tuple[int, ...] = tuple([int(n) for n in JAXLIB_VERSION.split(".")[:3]])

# ---- Where the supported versions differ --------------------------------------------------------

# From 0.11 on, C++ hands a call with donated arguments over to Python, which names the array.
# Before, it fails in XLA with a line of log: there, a donating function has no fast path.
FAST_PATH_NOTICES_DONATION = jaxlib_version >= (0, 11)

# Whether an optimization barrier still stands when XLA's CPU compiler fuses: not before 0.11.
KEEPS_BARRIERS = jaxlib_version >= (0, 11)

# Whether the compiler survives a division of integers by a zero that it finds out itself: in 0.10.2
# the process ends with a floating point exception, in 0.12 the quotient is -1.
FOLDS_DIVISIONS_BY_ZERO = jaxlib_version >= (0, 12)

# Before 0.12, a processor as several devices that runs ahead of Python can wait for itself for ever
# where the devices exchange numbers: XLA then ends the process.
SEVERAL_RUN_AHEAD = jaxlib_version >= (0, 12)

# Before 0.12, a sharding of Shardy's can say that values are parts of a sum, and of nothing else.
KNOWS_PARTS_OF_EXTREMA = jaxlib_version >= (0, 12)


def prepare_shardings() -> None:
    """jaxlib 0.10 asks a sharding in Python for its form in HLO; 0.12 knows it."""

    def to_hlo(self: Any, num_dimensions: int) -> Any:
        return HloSharding.replicate()

    if jaxlib_version < (0, 11):
        SingleDeviceSharding._to_xla_hlo_sharding = to_hlo


def result_handler(aval: Any, sharding: Any, committed: bool) -> Any:
    """What turns a result buffer into an array of type `aval`."""
    if jaxlib_version < (0, 11):
        # Its check calls a method that jax defines in Python, for arrays over several devices.
        return _jax.array_result_handler(aval, sharding, committed, _skip_checks=True)
    return _jax.array_result_handler(aval, sharding, committed)


# ---- Arrays -------------------------------------------------------------------------------------

ArrayImpl: Any = _jax.ArrayImpl
# That of C++, whatever `runtime.array` puts in its place.
block_until_ready = ArrayImpl.block_until_ready

# Attributes of the C++ class, as functions of an array.
sharding_of = operator.attrgetter("_sharding")
is_committed = operator.attrgetter("_committed")
# One array for each device.
parts_of = operator.attrgetter("_arrays")
# The numbers once they have been read; `None` before.
numpy_value = operator.attrgetter("_npy_value")


def set_numpy_value(array: Any, value: Any) -> None:
    """Remember the numbers of an array over several devices."""
    array._npy_value = value


def to_numpy(array: Any) -> tuple[Any, bool]:
    """The numbers of an array on one device, and whether they were copied for that."""
    if array.dtype.isbuiltin == 1:
        # The method below looks for a module of jax each time and throws: 30 us where this takes 2,
        # and more the more programs there are, for libgcc (up to 12) looks through all of them.
        try:
            return np.asarray(memoryview(array)), False
        except BufferError:  # not in the memory of the host, or laid out otherwise
            pass
    found: tuple[Any, bool] = array._single_device_array_to_np_array_did_copy()
    return found


def with_type(array: Any, aval: Any, sharding: Any) -> Any:
    """The same buffer as an array of another type, or of another sharding on its device."""
    return array._rewrap_with_aval_and_sharding(aval, sharding)


batched_device_put = _jax.batched_device_put
batched_copy = _jax.batched_copy_array_to_devices_with_sharding
REUSE_INPUT = _jax.ArrayCopySemantics.REUSE_INPUT
ALWAYS_COPY = _jax.ArrayCopySemantics.ALWAYS_COPY
# Release the Python objects that XLA has no use for any more, which it does by and by.
release_garbage = _jax.collect_garbage
from_dlpack = _jax.dlpack_managed_tensor_to_buffer


def stream_of(device: Any) -> int:
    """The stream of a GPU that waits for what other libraries compute."""
    return int(device.get_stream_for_external_ready_events())


def to_dlpack(x: Any, stream: Any, max_version: tuple[int, int] | None, copied: bool) -> Any:
    """An array as a capsule of DLPack, of a version that its consumer takes where jaxlib can."""
    if jaxlib_version < (0, 12):  # it makes capsules without a version, which every consumer takes
        return _jax.buffer_to_dlpack_managed_tensor(x, stream=stream)
    return _jax.buffer_to_dlpack_managed_tensor(
        x, stream=stream, max_version=max_version, copied=copied
    )


# ---- Devices and shardings ----------------------------------------------------------------------

Client: Any = _jax.Client
Device: Any = _jax.Device
DeviceList: Any = _jax.DeviceList
Sharding: Any = _jax.Sharding
SingleDeviceSharding: Any = _jax.SingleDeviceSharding
GSPMDSharding: Any = _jax.GSPMDSharding
HloSharding: Any = xla_client.HloSharding
DeviceAssignment: Any = xla_client.DeviceAssignment
# The device of a `SingleDeviceSharding`.
device_of = operator.attrgetter("_device")

make_cpu_client = xla_client.make_cpu_client
gpu_options = xla_client.generate_pjrt_gpu_plugin_options


def load_plugin(platform: str, library: str | None, api: Any = None) -> Any:
    """Load the library of a PJRT plugin, once in a process; returns its C API, which may be given.

    Raises jaxlib's error if it cannot be loaded, or fails to start.
    """
    if not xla_client.pjrt_plugin_loaded(platform):
        if library is None:
            xla_client.load_pjrt_plugin_with_c_api(platform, api)
        else:
            api = xla_client.load_pjrt_plugin_dynamically(platform, library)
        _plugin_apis[platform] = api
        _profiler.register_plugin_profiler(api)
    if not xla_client.pjrt_plugin_initialized(platform):
        xla_client.initialize_pjrt_plugin(platform)
    return _plugin_apis[platform]


_plugin_apis: dict[str, Any] = {}


def platform_of(client: Any) -> str:
    """What programs of a client are lowered for: `cuda` or `rocm` where its name is `gpu`."""
    return str(client._raw_platform)


# What `gpu` stands for: NVIDIA's and AMD's.
GPUS = ("cuda", "rocm")


def is_gpu(client: Any) -> bool:
    """Whether the devices of a client are GPUs of NVIDIA's or AMD's."""
    return platform_of(client) in GPUS


def make_plugin_client(platform: str, options: dict[str, Any]) -> Any:
    """The client of a plugin that is loaded. Raises jaxlib's error if it finds no device."""
    return xla_client.make_c_api_client(platform, options)


def register_gpu(kind: str, api: Any, functions: Any) -> None:
    """Make known what programs on `"CUDA"` or `"ROCM"` call: Python, and the vendor's libraries.

    `api` is the C API of the plugin, `functions` its module that registers with it.
    """
    xla_client.register_custom_type_handler(
        kind, functools.partial(functions.register_custom_type, api)
    )
    xla_client.register_custom_call_handler(
        kind, functools.partial(functions.register_custom_call_target, api)
    )
    for name, value in functions.ffi_types().items():
        xla_client.register_custom_type(name, value, platform=kind)
    for name, value in functions.ffi_handlers().items():
        register_custom_call_target(name, value, platform=kind, api_version=1)
    for module in ("gpu_linalg", "gpu_prng", "gpu_solver", "gpu_sparse"):
        targets = importlib.import_module(f"jaxlib.{module}").registrations()
        for name, value, api_version in targets.get(kind, ()):
            register_custom_call_target(name, value, platform=kind, api_version=api_version)
    # What is computed on the host finds LAPACK in SciPy, and without this jumps to nowhere.
    importlib.import_module("jaxlib.gpu_solver").initialize_hybrid_kernels()


register_custom_call_target = xla_client.register_custom_call_target
register_custom_call_as_batch_partitionable = xla_client.register_custom_call_as_batch_partitionable
register_custom_type = xla_client.register_custom_type
register_custom_call_partitioner = xla_client.register_custom_call_partitioner
# The name under which the partitioner calls a function with the sharding of a value.
encode_inspect_sharding_callback = _jax.encode_inspect_sharding_callback
set_tracebacks_enabled = _jax.set_tracebacks_enabled

# ---- Several processes --------------------------------------------------------------------------


make_gloo_collectives = _jax.make_gloo_tcp_collectives
create_preemption_sync_manager = _jax.create_preemption_sync_manager
# Before 0.12, processes cannot prove to one another who they are.
KNOWS_CERTIFICATES = jaxlib_version >= (0, 12)


def make_distributed_client(address: str, node: int, **options: Any) -> Any:
    """One process's access to the coordinator at `address`: a store of keys, and heartbeats.

    The process is the number `node`. What C++ would tell a callback in Python ends the process
    (it has no Python form of its status), so nothing here asks for one.
    """
    return _jax.get_distributed_runtime_client(
        address, node, shutdown_on_destruction=False, use_compression=True, **options
    )


# ---- Compiled calls -----------------------------------------------------------------------------

CompileOptions: Any = xla_client.CompileOptions
PjitFunction: Any = _jax.PjitFunction
PjitFunctionCache: Any = _jax.PjitFunctionCache
pjit = _jax.pjit


class FastPath(NamedTuple):
    """What jaxlib's C++ keeps of a compiled call; it reads these attributes by name."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Any
    out_shardings: Any
    out_avals: Any
    out_committed: Any
    kept_var_bitvec: Any
    in_device_local_layouts: Any
    const_args: Any


def deserialize(devices: Sequence[Any], data: bytes, options: Any) -> Any:
    """The executable that `serialize()` wrote. Runs code: only ever pass bytes that we wrote."""
    return devices[0].client.deserialize_executable(data, DeviceList(tuple(devices)), options)


def clear_cache(function: Any) -> None:
    """Make a C++ callable forget its compiled calls: the next one comes to Python."""
    function._clear_cache()


hlo_module_cost_analysis = _jax.hlo_module_cost_analysis
mlir_module_to_xla_computation = _jax.mlir.mlir_module_to_xla_computation

# ---- Flags that C++ reads -----------------------------------------------------------------------

Config: Any = _jax.config.Config
# What `get_local` of a flag returns in a thread that has no value of its own.
UNSET: Any = _jax.config.unset
set_enable_x64_state = _jax.jax_jit.set_enable_x64_state
set_disable_jit_state = _jax.jax_jit.set_disable_jit_state
set_post_hook_state = _jax.jax_jit.set_post_hook_state

# ---- Guards that C++ reads ----------------------------------------------------------------------

_guards = _jax.guard_lib


def set_guard(name: str, level: str | None, everywhere: bool) -> None:
    """Set what C++ does at a transfer, or when Python's garbage collection frees an array.

    `None` leaves it to the level of all threads, or to that of jaxlib.
    """
    state = _guards.global_state() if everywhere else _guards.thread_local_state()
    if name == "garbage_collect_array":
        levels = _guards.GarbageCollectionGuardLevel
    else:
        levels = _guards.TransferGuardLevel
    setattr(state, name, None if level is None else getattr(levels, level.upper()))


def guard_thread(on: bool) -> None:
    """Make C++ refuse computations of several processes from another thread than this one."""
    _guards.update_thread_guard_global_state(on)


def guards() -> Any:
    """The guards of this thread; `explicit_device_put` says that a transfer was asked for."""
    return _guards.thread_local_state()


# ---- Profiles -----------------------------------------------------------------------------------

ProfileData: Any = _profile_data.ProfileData
ProfileEvent: Any = _profile_data.ProfileEvent
ProfileLine: Any = _profile_data.ProfileLine
ProfileOptions: Any = _profiler.ProfileOptions
ProfilePlane: Any = _profile_data.ProfilePlane
ProfilerSession: Any = _profiler.ProfilerSession
TraceMe: Any = _profiler.TraceMe
start_profiler_server = _profiler.start_server
register_profiled_process = _profiler.register_subprocess
# jaxlib 0.10 writes a profile only while it ends the session.
EXPORTS_PROFILES = hasattr(_profiler, "export_to_xprof")


def export_profile(data: Any, folder: str, session_id: str) -> None:
    """Write the numbers of a profile as XProf reads them; from jaxlib 0.12 on."""
    _profiler.export_to_xprof(data, folder, session_id=session_id)


# ---- MLIR ---------------------------------------------------------------------------------------


def make_context() -> Any:
    """An MLIR context that knows StableHLO, CHLO and Shardy."""
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (_stablehlo, _chlo, _sdy):
        dialect.register_dialect(context)
    context.enable_multithreading(False)
    return context


def dialect(name: str) -> Any:
    """What `jaxlib` has in Python of a dialect: a module."""
    return importlib.import_module(f"jaxlib.mlir.dialects.{name}")


def portable(module: Any) -> bytes:
    """The module in the form that other versions of StableHLO read, for four weeks back."""
    requirement = _stablehlo.StablehloCompatibilityRequirement.WEEK_4
    version = _stablehlo.get_version_from_compatibility_requirement(requirement)
    written: bytes = _jax.mlir.serialize_portable_artifact(module, version, True)
    return written


read_portable = _jax.mlir.deserialize_portable_artifact


def refined(code: bytes) -> Any:
    """The bytecode of the module whose shapes all follow from those of the arguments of `main`."""
    return _jax.mlir.refine_polymorphic_shapes(code, True, True, True)


_dialects: set[str] = set()


def load_dialect(name: str) -> None:
    """Import what `jaxlib` says in Python of a dialect, in a thread that no interrupt reaches.

    MLIR imports it when it is first needed, from C++, where an interrupt crashes the process.
    """
    if name not in _dialects:
        imports.undisturbed(f"jaxlib.mlir.dialects.{name}")
        _dialects.add(name)


def lapack() -> Any:
    """The module `jaxlib.lapack`, which imports SciPy's linear algebra: 4 ms and more."""
    from jaxlib import lapack

    return lapack
