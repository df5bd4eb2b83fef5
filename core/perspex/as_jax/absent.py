"""Names of JAX that Perspex does not have: they can be imported, and using one is an error.

Libraries import names that they never use. A library that does use one gets an error, which says
what is missing, why, and what to use instead. A module that Perspex has takes precedence.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, NamedTuple, NoReturn


class AbsentError(NotImplementedError, AttributeError):
    """The use of a name of JAX that Perspex does not have."""


class Absent(NamedTuple):
    """Why a name is not here, and what to use instead.

    `names` are those of a module; `...` are all that one asks for.
    """

    why: str
    instead: str
    names: Any = ()


_KERNELS = "kernels are written in a language of their own, for GPUs and TPUs"
_LATER = "it is not built yet"

_ABSENT: dict[str, Absent] = {
    "jax.experimental.pallas": Absent(_KERNELS, "a function of jax.numpy", ...),
    "jax.experimental.pallas.mosaic_gpu": Absent(_KERNELS, "a function of jax.numpy", ...),
    "jax.experimental.pallas.tpu": Absent(_KERNELS, "a function of jax.numpy", ...),
    "jax.experimental.pallas.triton": Absent(_KERNELS, "a function of jax.numpy", ...),
    "jax.experimental.mosaic": Absent(_KERNELS, "a function of jax.numpy", ...),
    "jax.extend.pallas": Absent(_KERNELS, "a function of jax.numpy", ...),
    "jax.experimental.jax2tf": Absent(
        "it needs TensorFlow", "jax.export", ...
    ),
    "jax.experimental.colocated_python": Absent(
        "it runs Python beside accelerators of other machines", "the function itself", ...
    ),
    "jax.experimental.colocated_python.func": Absent(
        "it runs Python beside accelerators of other machines", "the function itself", ...
    ),
    "jax.experimental.colocated_python.serialization": Absent(
        "it runs Python beside accelerators of other machines", "the function itself", ...
    ),
    "jax.experimental.topologies": Absent(
        "programs are compiled for the devices that there are", "jax.devices()", ...
    ),
    "jax.experimental.array_serialization": Absent(
        "it needs tensorstore and several processes",
        "orbax with its StandardCheckpointer, or np.save",
    ),
    "jax.experimental.array_serialization.serialization": Absent(
        "it needs tensorstore and several processes",
        "orbax with its StandardCheckpointer, or np.save",
        ...,
    ),
    "jax.experimental.key_reuse": Absent(
        "keys are followed while a program runs", "jax.debug_key_reuse(True)", ...
    ),
    "jax.extend.ifrt_programs": Absent(
        "programs of IFRT are XLA's inside", "jax.jit", ("ifrt_programs",)
    ),
    "jax.extend.lowering": Absent("MLIR contexts are shared", "jax.extend.mlir", ...),
    "jax.extend.xla": Absent("XLA takes no passes from Python", "jax.jit", ...),
    "jax.extend.sharding": Absent(
        "shardings of XLA are not made from protocol buffers", "jax.sharding.NamedSharding",
        ("get_hlo_sharding_from_serialized_proto", "get_op_sharding_from_serialized_proto",
         "get_serialized_proto_from_hlo_sharding"),
    ),
    "jax.lax": Absent(
        "its functions consist of other primitives", "the function, as docs/names.md lists it",
        ("polynomial_p", "select_and_scatter_p", "stage_p"),
    ),
    "jax.random": Absent(
        "the samples come from a loop of ordinary equations", "jax.random.gamma",
        ("random_gamma_p",),
    ),
    "jax.ffi": Absent(
        "calls neither take nor give tokens", "has_side_effect=True", ("abstract_token",)
    ),
    "jax.custom_derivatives": Absent(
        "optimize_remat needs no equation of its own", "jax.custom_vjp", ("remat_opt_p",)
    ),
    "jax.experimental": Absent(
        "users define no types of elements", "a pytree", ("EArray", "primal_tangent_dtype")
    ),
    "jax.experimental.jet": Absent(
        "series follow from the rules for jvp", "perspex.extend",
        ("JetTrace", "JetTracer", "ZeroSeries", "ZeroTerm", "call_param_updaters", "def_comp",
         "def_deriv", "deflinear", "defzero", "deriv_prop", "fact", "jet_fun", "jet_rules",
         "jet_subtrace", "linear_prop", "traceable", "weakref_lru_cache", "zero_prop",
         "zero_series", "zero_term"),
    ),
    "jax.experimental.multihost_utils": Absent(
        "arrays are put together outside of equations",
        "host_local_array_to_global_array or global_array_to_host_local_array",
        ("global_array_to_host_local_array_impl", "global_array_to_host_local_array_p",
         "gtl_abstract_eval", "host_local_array_to_global_array_impl",
         "host_local_array_to_global_array_p", "ltg_abstract_eval", "ltg_batcher"),
    ),
    "jax.experimental.ode": Absent(
        "odeint is not written with layers of functions", "jax.flatten_util.ravel_pytree",
        ("ravel_first_arg",),
    ),
    "jax.extend.core": Absent(
        "calls are transformed by one rule", "jax.jit", ("eval_jaxpr_transpose",)
    ),
    "jax.extend.core.primitives": Absent(
        "calls are transformed by one rule", "jax.jit", ("eval_jaxpr_transpose",)
    ),
    "jax.interpreters.ad": Absent("it is done in one step", "jax.linearize", ("linearize",)),
    "jax.interpreters.batching": Absent(
        "containers are pytrees here", "jax.tree_util.register_pytree_node",
        ("register_vmappable", "unregister_vmappable"),
    ),
    "jax.interpreters.mlir": Absent(
        "modules are written by one builder", "mlir.lower_fun",
        ("LoweringParameters", "LoweringResult", "ShapePolyLoweringState", "ir_tree_registry",
         "ir_type_handlers", "lower_jaxpr_to_module", "lowerable_effects"),
    ),
    "jax.interpreters.partial_eval": Absent(
        "equations are written as they come", "custom_partial_eval_rules",
        ("lower_jaxpr", "lower_jaxpr2", "new_eqn_recipe", "partial_eval_jaxpr_custom_rules"),
    ),
    "jax.interpreters.pxla": Absent(
        "results are made in C++", "jax.make_array_from_single_device_arrays",
        ("MeshComputation", "create_compile_options", "global_avals_to_results_handler"),
    ),
    "jax._src.earray": Absent("arrays of new dtypes are not supported", "a pytree", ("EArray",)),
    "jax.experimental.buffer_callback": Absent(
        "buffers of devices are not handed to Python", "jax.pure_callback", ...
    ),
    "jax.experimental.fused": Absent("it is for kernels on GPUs", "jax.jit", ...),
    "jax.experimental.overlap": Absent(
        "XLA orders operations", "jax.lax.optimization_barrier", ...
    ),
    "jax.experimental.profiler": Absent(
        "it reads what XLA profiled on NVIDIA GPUs", "jax.profiler.trace", ...
    ),
    "jax.experimental.random": Absent(
        "a generator that changes hides its keys", "jax.random.split", ...
    ),
    "jax.experimental.rnn": Absent("it calls cuDNN", "jax.lax.scan of a cell", ...),
    "jax.experimental.roofline": Absent(
        _LATER, "jax.jit(f).lower(...).compile().cost_analysis()", ...
    ),
    "jax.experimental.scheduling_groups": Absent(
        "XLA orders operations", "jax.lax.optimization_barrier", ...
    ),
    "jax.experimental.source_mapper": Absent(
        "the text of a program has your lines", "jax.jit(f).lower(...).compile().as_text()", ...
    ),
    "jax.experimental.thunky": Absent(_KERNELS, "a function of jax.numpy", ...),
    "jax.experimental.transfer": Absent("processes exchange whole programs", "jax.device_put", ...),
    "jax.experimental.xla_metadata": Absent(
        _LATER, "jax.experimental.xla_metadata.set_xla_metadata",
        ("annotations", "fuse_limit", "must_fuse_call", "xla_metadata_call", "xla_metadata_call2"),
    ),
}  # fmt: skip


def _refuse(full: str, entry: Absent) -> NoReturn:
    raise AbsentError(
        f"Perspex has no `{full}`: {entry.why}. Use {entry.instead} instead; "
        "docs/names.md and docs/libraries.md say more"
    )


class _Kind(type):
    """The class of stand-ins: they can be named, and nothing else."""

    entry: Absent
    full: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        _refuse(cls.full, cls.entry)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _refuse(f"{cls.full}.{name}", cls.entry)


def _stand_in(full: str, entry: Absent) -> Any:
    home, _, name = full.rpartition(".")
    doc = f"Not in Perspex: {entry.why}."
    return _Kind(name, (), {"full": full, "entry": entry, "__doc__": doc, "__module__": home})


def is_absent(value: Any) -> bool:
    """Whether a value only stands for a name that Perspex does not have."""
    return isinstance(value, (_Kind, AbsentModule))


def find(module: str, name: str) -> Any:
    """What stands for a name that a module of JAX has and Perspex does not.

    Raises:
      KeyError: if JAX has no such name, or the table does not know it.
    """
    entry = _ABSENT[module]
    if name.startswith("__") or not (entry.names is ... or name in entry.names):
        raise KeyError(name)
    return _stand_in(f"{module}.{name}", entry)


def has_module(name: str) -> bool:
    """Whether a module can be imported, although Perspex has none."""
    return _entry_of(name) is not None


def submodules(name: str) -> list[str]:
    """The modules of the table below one."""
    return [full.rpartition(".")[2] for full in _ABSENT if full.rpartition(".")[0] == name]


def _entry_of(name: str) -> Absent | None:
    while name not in _ABSENT:
        name, _, last = name.rpartition(".")
        if name in _ABSENT and (_ABSENT[name].names is not ... or last.startswith("_")):
            return None
        if not name:
            return None
    return _ABSENT[name]


class AbsentModule(ModuleType):
    """A module that Perspex does not have."""

    def __init__(self, name: str) -> None:
        entry = _entry_of(name)
        assert entry is not None, name
        super().__init__(name, f"Not in Perspex: {entry.why}.")
        self.__dict__["__path__"] = []
        self.__dict__["__all__"] = [] if entry.names is ... else list(entry.names)
        self.__dict__["__perspex__"] = None
        self.__dict__["entry"] = entry

    def __getattr__(self, name: str) -> Any:
        entry = self.__dict__["entry"]
        if f"{self.__name__}.{name}" in _ABSENT:
            return importlib.import_module(f"{self.__name__}.{name}")
        if name.startswith("__") or not (entry.names is ... or name in entry.names):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        made = self.__dict__[name] = _stand_in(f"{self.__name__}.{name}", entry)
        return made
