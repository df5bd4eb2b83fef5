"""Perspex: accelerated array computing that you can see through.

Functions of arrays are traced by our own core and executed by XLA. The names are those of JAX:
`jit`, `make_jaxpr`, `perspex.numpy`, `perspex.lax`, `perspex.random`.
"""

import gc as _gc
import importlib as _importlib
import typing as _typing

from perspex.base import installed as _installed
from perspex.base import jax_finder as _jax_finder
from perspex.base import public as _public

_jax_finder.install()

from perspex.base import xla as _xla  # noqa: E402

# What is imported from here on is ours and stays. Python would look through all of it for garbage,
# again and again, which took a quarter of the time.
_collects = _gc.isenabled()
_gc.disable()


from perspex import config as config  # noqa: E402
from perspex.runtime import array as _array  # noqa: E402
from perspex.runtime import dispatch as _dispatch  # noqa: E402
from perspex.tracing import array_methods as _array_methods  # noqa: E402
from perspex.tracing import trace as _tracing  # noqa: E402
from perspex.tracing import trials as _trials  # noqa: E402, F401

# The two late bindings: what operations mean outside every trace, and what the methods of arrays
# forward to.
_xla.prepare_shardings()
_tracing.set_bottom(_dispatch.EVAL)

from perspex import numpy as numpy  # noqa: E402
from perspex.numpy import operators as _operators  # noqa: E402

_array_methods.set_namespace(numpy)
_array.install(_operators.operators)

from perspex import ad_checkpoint as ad_checkpoint  # noqa: E402
from perspex import checkpoint_policies as checkpoint_policies  # noqa: E402
from perspex import core as core  # noqa: E402
from perspex import custom_derivatives as custom_derivatives  # noqa: E402
from perspex import debug as debug  # noqa: E402
from perspex import dlpack as dlpack  # noqa: E402
from perspex import dtypes as dtypes  # noqa: E402
from perspex import errors as errors  # noqa: E402
from perspex import events as events  # noqa: E402
from perspex import extend as extend  # noqa: E402
from perspex import flatten_util as flatten_util  # noqa: E402
from perspex import lax as lax  # noqa: E402
from perspex import nn as nn  # noqa: E402
from perspex import random as random  # noqa: E402
from perspex import ref as ref  # noqa: E402
from perspex import scipy as scipy  # noqa: E402
from perspex import sharding as sharding  # noqa: E402
from perspex import stages as stages  # noqa: E402
from perspex import tree as tree  # noqa: E402
from perspex import tree_util as tree_util  # noqa: E402
from perspex import typing as typing  # noqa: E402
from perspex.api.callbacks import pure_callback as pure_callback  # noqa: E402
from perspex.api.choices import CompilerEffortLevel as CompilerEffortLevel  # noqa: E402
from perspex.api.choices import Inline as Inline  # noqa: E402
from perspex.api.differentiation import fwd_and_bwd as fwd_and_bwd  # noqa: E402
from perspex.api.differentiation import grad as grad  # noqa: E402
from perspex.api.differentiation import jvp as jvp  # noqa: E402
from perspex.api.differentiation import linearize as linearize  # noqa: E402
from perspex.api.differentiation import value_and_grad as value_and_grad  # noqa: E402
from perspex.api.differentiation import vjp as vjp  # noqa: E402
from perspex.api.explicit import reshard as reshard  # noqa: E402
from perspex.api.jacobians import hessian as hessian  # noqa: E402
from perspex.api.jacobians import jacfwd as jacfwd  # noqa: E402
from perspex.api.jacobians import jacobian as jacobian  # noqa: E402
from perspex.api.jacobians import jacrev as jacrev  # noqa: E402
from perspex.api.jit import jit as jit  # noqa: E402
from perspex.api.mapping import vmap as vmap  # noqa: E402
from perspex.api.placing import make_array_from_callback as make_array_from_callback  # noqa: E402
from perspex.api.placing import (  # noqa: E402
    make_array_from_process_local_data as make_array_from_process_local_data,
)
from perspex.api.placing import (  # noqa: E402
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from perspex.api.placing import make_mesh as make_mesh  # noqa: E402
from perspex.api.remat import checkpoint as checkpoint  # noqa: E402
from perspex.api.scopes import named_call as named_call  # noqa: E402
from perspex.api.scopes import named_scope as named_scope  # noqa: E402
from perspex.api.shapes import ShapeDtypeStruct as ShapeDtypeStruct  # noqa: E402
from perspex.api.shapes import eval_shape as eval_shape  # noqa: E402
from perspex.api.shapes import make_jaxpr as make_jaxpr  # noqa: E402
from perspex.api.waiting import block_until_ready as block_until_ready  # noqa: E402
from perspex.api.waiting import clear_caches as clear_caches  # noqa: E402
from perspex.api.waiting import copy_to_host_async as copy_to_host_async  # noqa: E402
from perspex.api.waiting import device_get as device_get  # noqa: E402
from perspex.api.waiting import ensure_compile_time_eval as ensure_compile_time_eval  # noqa: E402
from perspex.api.waiting import live_arrays as live_arrays  # noqa: E402
from perspex.api.watching import watch_loops as watch_loops  # noqa: E402
from perspex.base import views as _views  # noqa: E402
from perspex.config import allow_f16_reductions as allow_f16_reductions  # noqa: E402
from perspex.config import (  # noqa: E402
    array_garbage_collection_guard as array_garbage_collection_guard,
)
from perspex.config import auto_pcast as auto_pcast  # noqa: E402
from perspex.config import check_tracer_leaks as check_tracer_leaks  # noqa: E402
from perspex.config import debug_infs as debug_infs  # noqa: E402
from perspex.config import debug_key_reuse as debug_key_reuse  # noqa: E402
from perspex.config import debug_nans as debug_nans  # noqa: E402
from perspex.config import default_device as default_device  # noqa: E402
from perspex.config import default_matmul_precision as default_matmul_precision  # noqa: E402
from perspex.config import default_prng_impl as default_prng_impl  # noqa: E402
from perspex.config import disable_jit as disable_jit  # noqa: E402
from perspex.config import enable_checks as enable_checks  # noqa: E402
from perspex.config import enable_custom_prng as enable_custom_prng  # noqa: E402
from perspex.config import enable_x64 as enable_x64  # noqa: E402
from perspex.config import explain_cache_misses as explain_cache_misses  # noqa: E402
from perspex.config import (  # noqa: E402
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
)
from perspex.config import legacy_prng_key as legacy_prng_key  # noqa: E402
from perspex.config import log_compiles as log_compiles  # noqa: E402
from perspex.config import make_user_context as make_user_context  # noqa: E402
from perspex.config import no_execution as no_execution  # noqa: E402
from perspex.config import no_tracing as no_tracing  # noqa: E402
from perspex.config import numpy_dtype_promotion as numpy_dtype_promotion  # noqa: E402
from perspex.config import numpy_rank_promotion as numpy_rank_promotion  # noqa: E402
from perspex.config import (  # noqa: E402
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
)
from perspex.config import softmax_custom_jvp as softmax_custom_jvp  # noqa: E402
from perspex.config import thread_guard as thread_guard  # noqa: E402
from perspex.config import threefry_partitionable as threefry_partitionable  # noqa: E402
from perspex.config import transfer_guard as transfer_guard  # noqa: E402
from perspex.config import (  # noqa: E402
    transfer_guard_device_to_device as transfer_guard_device_to_device,
)
from perspex.config import (  # noqa: E402
    transfer_guard_device_to_host as transfer_guard_device_to_host,
)
from perspex.config import (  # noqa: E402
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from perspex.dtypes import float0 as float0  # noqa: E402
from perspex.ops.slices import ds as ds  # noqa: E402
from perspex.ref import Ref as Ref  # noqa: E402
from perspex.ref import empty_ref as empty_ref  # noqa: E402
from perspex.ref import free_ref as free_ref  # noqa: E402
from perspex.ref import freeze as freeze  # noqa: E402
from perspex.ref import new_ref as new_ref  # noqa: E402
from perspex.rules.closures import closure_convert as closure_convert  # noqa: E402
from perspex.rules.closures import custom_gradient as custom_gradient  # noqa: E402
from perspex.rules.custom_jvp import custom_jvp as custom_jvp  # noqa: E402
from perspex.rules.custom_vjp import custom_vjp as custom_vjp  # noqa: E402
from perspex.rules.linear import linear_transpose as linear_transpose  # noqa: E402
from perspex.runtime.array import Array as Array  # noqa: E402
from perspex.runtime.callbacks import effects_barrier as effects_barrier  # noqa: E402
from perspex.runtime.client import Device as Device  # noqa: E402
from perspex.runtime.client import default_backend as default_backend  # noqa: E402
from perspex.runtime.client import device_count as device_count  # noqa: E402
from perspex.runtime.client import devices as devices  # noqa: E402
from perspex.runtime.client import local_device_count as local_device_count  # noqa: E402
from perspex.runtime.client import local_devices as local_devices  # noqa: E402
from perspex.runtime.client import process_count as process_count  # noqa: E402
from perspex.runtime.client import process_index as process_index  # noqa: E402
from perspex.runtime.client import process_indices as process_indices  # noqa: E402
from perspex.runtime.dispatch import device_put as device_put  # noqa: E402
from perspex.runtime.shards import Shard as Shard  # noqa: E402
from perspex.sharding import NamedSharding as NamedSharding  # noqa: E402
from perspex.sharding import PartitionSpec as P  # noqa: E402, F401
from perspex.sharding import get_abstract_mesh as get_abstract_mesh  # noqa: E402
from perspex.sharding import get_mesh as get_mesh  # noqa: E402
from perspex.sharding import set_mesh as set_mesh  # noqa: E402
from perspex.sharding import use_abstract_mesh as use_abstract_mesh  # noqa: E402
from perspex.tracing.trace import typeof as typeof  # noqa: E402

# The other names that JAX gives them.
remat = checkpoint
host_count, host_id, host_ids = process_count, process_index, process_indices
checking_leaks = check_tracer_leaks

_public.publish(
    globals(),
    *map(vars, (ad_checkpoint, core, custom_derivatives, dlpack, dtypes, events)),
    *map(vars, (extend, sharding, stages, tree, tree_util)),
)

# To freeze and unfreeze makes everything old, so that the first collection does not begin with all
# of it. What somebody else froze stays frozen.
if _collects:
    if not _gc.get_freeze_count():
        _gc.freeze()
        _gc.unfreeze()
    _gc.enable()

if _typing.TYPE_CHECKING:
    __version__: str
    from perspex import custom_batching as custom_batching
    from perspex import distributed as distributed
    from perspex import ffi as ffi
    from perspex import image as image
    from perspex import memory as memory
    from perspex import monitoring as monitoring
    from perspex import profiler as profiler
    from perspex.api.environment import print_environment_info as print_environment_info
    from perspex.api.pmap import pmap as pmap
    from perspex.api.shard_map import shard_map as shard_map
    from perspex.api.shard_map import smap as smap
    from perspex.checkpoints import load as load
    from perspex.checkpoints import save as save
else:
    # What most programs never use is imported when it is: functions, and modules of that name.
    # Other names are views that packages above declare; a type checker would take every misspelt
    # name for one of them.
    _LATER = {
        "ad": "perspex.ad",
        "custom_batching": "perspex.custom_batching",
        "distributed": "perspex.distributed",
        "export": "perspex.export",
        "ffi": "perspex.ffi",
        "image": "perspex.image",
        "load": "perspex.checkpoints",
        "memory": "perspex.memory",
        "monitoring": "perspex.monitoring",
        "pmap": "perspex.api.pmap",
        "print_environment_info": "perspex.api.environment",
        "profiler": "perspex.profiler",
        "save": "perspex.checkpoints",
        "shard_map": "perspex.api.shard_map",
        "smap": "perspex.api.shard_map",
    }

    def __getattr__(name: str) -> object:
        if name in _LATER:
            found = _importlib.import_module(_LATER[name])
            if found.__name__ != f"{__name__}.{name}":
                found = getattr(found, name)
                found.__module__ = __name__
        elif name == "__version__":
            found = _installed.version()
        else:
            found = _views.find("", name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER, *_views.names("")})


def load_ipython_extension(shell: object) -> None:
    """What `%load_ext perspex` calls."""
    shell.extension_manager.load_extension(_views.extension())  # type: ignore[attr-defined]


def unload_ipython_extension(shell: object) -> None:
    """What `%unload_ext perspex` calls."""
    shell.extension_manager.unload_extension(_views.extension())  # type: ignore[attr-defined]
