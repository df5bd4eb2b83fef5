"""Private names of JAX (`jax._src`) that well-known libraries use: one class for each module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from perspex import dtypes as our_dtypes
from perspex.as_jax.doors import zeros
from perspex.base.pytree_registry import PyTreeDef, containers, default_registry
from perspex.base.source import is_internal, register_internal
from perspex.base.xla import JAXLIB_VERSION
from perspex.ops.arithmetic import stop_gradient
from perspex.ops.families import add_any
from perspex.runtime import client as clients
from perspex.runtime import platforms
from perspex.runtime.callbacks import effects_barrier
from perspex.runtime.processes import joining
from perspex.tree import flatten_one_level as _flatten_one_level
from perspex.tree import structure

F = TypeVar("F", bound=Callable[..., Any])


def api_boundary(fun: F, **options: Any) -> F:
    """The function itself: no frames are taken out of tracebacks here."""
    return fun


def _include_frame(frame: Any) -> bool:
    return not is_internal(frame.f_code.co_filename)


class traceback_util:  # noqa: N801 - the name of a module in JAX
    """Which frames of a traceback are the user's."""

    _exclude_paths: list[str] = []  # noqa: RUF012 - libraries add to it
    register_exclusion = staticmethod(register_internal)
    api_boundary = staticmethod(api_boundary)
    include_frame = staticmethod(_include_frame)


class dispatch:  # noqa: N801
    """What waits for effects."""

    wait_for_tokens = staticmethod(effects_barrier)


class _State:
    """The processes that compute together."""

    @property
    def client(self) -> Any:
        return None if joining.connection is None else joining.connection.client

    @property
    def process_id(self) -> int:
        return 0 if joining.connection is None else joining.connection.me

    @property
    def num_processes(self) -> int:
        return 1 if joining.connection is None else joining.connection.count

    @property
    def coordinator_address(self) -> str | None:
        return None if joining.connection is None else joining.connection.address

    @property
    def preemption_sync_manager(self) -> Any:
        return None if joining.connection is None else joining.connection.preemptions


class distributed:  # noqa: N801
    """Several processes, and what this one knows of them."""

    global_state = _State()


class xla_bridge:  # noqa: N801
    """The platforms that have been started."""

    _backends = clients.started
    get_backend = staticmethod(clients.client)

    @staticmethod
    def backends() -> dict[str, Any]:
        """The clients by the names of their platforms."""
        clients.client()
        return dict(clients.started)

    @staticmethod
    def register_plugin(
        plugin_name: str,
        *,
        priority: int = 400,
        library_path: str | None = None,
        options: Any = None,
        c_api: Any = None,
        factory: Callable[[], Any] | None = None,
        make_topology: Any = None,
    ) -> Any:
        """Add the platform of a PJRT plugin: called by its own Python side."""
        return platforms.register_plugin(
            plugin_name, library_path, priority, options, c_api, factory
        )


class literals:  # noqa: N801
    """Typed numbers, which are NumPy's here."""

    class TypedNdArray(np.ndarray):
        """A NumPy array with a type of JAX's: nothing here makes one."""

    LiteralArray = TypedNdArray


def _one_level(x: Any) -> tuple[list[Any], Any]:
    children, data = _flatten_one_level(x)
    return list(children), data


class _Entry(NamedTuple):
    """How a container is taken apart, by one level, and put together again."""

    kind: type

    def to_iter(self, x: Any) -> tuple[list[Any], Any]:
        """The children of a container, and its static data."""
        return _one_level(x)

    def from_iter(self, data: Any, children: Iterable[Any]) -> Any:
        """A container of these children."""
        given = list(children)
        leaves = [structure(0)] * len(given)
        node = (self.kind, data)
        return PyTreeDef.from_node_data_and_children(default_registry, node, leaves).unflatten(
            given
        )


class _Registered:
    """Which classes are containers, and how each is taken apart."""

    def __contains__(self, kind: Any) -> bool:
        return kind in containers

    def __getitem__(self, kind: Any) -> _Entry:
        if kind not in self:
            raise KeyError(kind)
        return _Entry(kind)


class tree_util:  # noqa: N801
    """Containers."""

    _registry = _Registered()
    flatten_one_level = staticmethod(_one_level)


class ad_util:  # noqa: N801
    """Zeros, and sums of tangents."""

    Zero = zeros.Zero
    stop_gradient_p = stop_gradient
    add_jaxvals_p = add_any
    instantiate = staticmethod(zeros.instantiate_zeros)


class ExtendedDType:
    """A dtype that a library defines; no array here has one."""


class dtypes:  # noqa: N801
    """Dtypes."""

    DType = np.dtype
    ExtendedDType = ExtendedDType
    TypePromotionError = our_dtypes.TypePromotionError
    extended = our_dtypes.extended
    finfo = our_dtypes.finfo
    iinfo = our_dtypes.iinfo
    issubdtype = staticmethod(our_dtypes.issubdtype)
    canonicalize_dtype = staticmethod(our_dtypes.canonicalize_dtype)

    @staticmethod
    def supports_inf(dtype: Any) -> bool:
        """Whether there is an infinity among the numbers of a dtype."""
        return bool(np.isinf(np.asarray(np.inf).astype(dtype)))


class compiler:  # noqa: N801
    """The compiler, which no library can replace here."""

    JAXLIB_VERSION = JAXLIB_VERSION
