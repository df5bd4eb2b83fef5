"""`export`, and the exported function: a program that other processes load and call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from perspex import dtypes, tree
from perspex.api.differentiation import vjp as differentiate
from perspex.api.jit import jit
from perspex.base import xla
from perspex.base.dimensions import Symbolic
from perspex.export import modules, serialization
from perspex.export.calling import caller
from perspex.export.checks import DisabledSafetyCheck, check_calls
from perspex.export.refusing import explained
from perspex.export.tables import Reader
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ir.references import is_ref_type
from perspex.runtime import client
from perspex.tracing.staging import eval_jaxpr
from perspex.transforms.discharge import without_own_refs
from perspex.transforms.jvp import is_differentiable, tangent_aval

minimum_supported_calling_convention_version = 9
"""The oldest version of the calling convention that exported functions may have."""

maximum_supported_calling_convention_version = 10
"""The newest version of the calling convention; the one that is written."""


@dataclasses.dataclass(frozen=True, eq=False)
class Exported:
    """A function as a program for other processes: what `export` and `deserialize` return.

    Attributes:
      fun_name: the name of the function.
      in_tree: the structure of `(args, kwargs)`.
      in_avals: the types of the arguments, flat; their shapes may have symbolic dimensions.
      out_tree: the structure of the result.
      out_avals: the types of the results, flat.
      nr_devices: how many devices the program is for; 1.
      platforms: the platforms that it runs on.
      ordered_effects, unordered_effects: what it does beyond its results; nothing.
      disabled_safety_checks: the checks that were turned off.
      mlir_module_serialized: the program, in the portable form of StableHLO.
      calling_convention_version: which convention `main` of the program follows.
      module_kept_var_idx: the numbers of the arguments that the program takes.
      uses_global_constants: whether the program has to be refined for the shapes and the platform
        of a call before it is compiled.

    >>> import numpy as np, perspex
    >>> from perspex import export
    >>> exported = export.export(perspex.jit(lambda x: 2 * x))(np.ones(3, "float32"))
    >>> exported.in_avals
    (ShapedArray(float32[3]),)
    """

    fun_name: str
    in_tree: Any
    in_avals: tuple[ShapedArray, ...]
    out_tree: Any
    out_avals: tuple[ShapedArray, ...]
    _in_named_shardings: tuple[Any, ...]
    _out_named_shardings: tuple[Any, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Any, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def mlir_module(self, serialized: bool = True) -> Any:
        """The program as StableHLO.

        Args:
          serialized: whether as text; else as a module of jaxlib.

        Returns:
          A string, or a module.

        Raises:
          ValueError: if this jaxlib is too old to read the program.

        >>> import perspex
        >>> from perspex import export
        >>> "stablehlo.sine" in export.export(perspex.jit(perspex.numpy.sin))(1.0).mlir_module()
        True
        """
        module = xla.read_portable(self.mlir_module_serialized, types.context)
        return str(module) if serialized else module

    def in_shardings_jax(self, mesh: Any = None) -> Sequence[Any]:
        """How the arguments lie on devices: `None` for each, because there is one device.

        Args:
          mesh: a mesh in place of the one that the function was exported for.

        Returns:
          A tuple.

        Raises:
          Nothing.

        >>> import perspex
        >>> from perspex import export
        >>> export.export(perspex.jit(perspex.numpy.sin))(1.0).in_shardings_jax()
        (None,)
        """
        return self._in_named_shardings

    def out_shardings_jax(self, mesh: Any = None) -> Sequence[Any]:
        """How the results lie on devices: `None` for each, because there is one device.

        Args:
          mesh: a mesh in place of the one that the function was exported for.

        Returns:
          A tuple.

        Raises:
          Nothing.

        >>> import perspex
        >>> from perspex import export
        >>> export.export(perspex.jit(perspex.numpy.sin))(1.0).out_shardings_jax()
        (None,)
        """
        return self._out_named_shardings

    def has_vjp(self) -> bool:
        """Whether the function comes with its derivative in reverse mode.

        Returns:
          `False` for a function from a file that was written without it.

        Raises:
          Nothing.

        >>> import perspex
        >>> from perspex import export
        >>> export.export(perspex.jit(perspex.numpy.sin))(1.0).has_vjp()
        True
        """
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The derivative in reverse mode, exported for the same platforms.

        Returns:
          A function of the flat arguments and a cotangent for each result; it returns a cotangent
          for each argument.

        Raises:
          ValueError: if the function comes from a file that was written without it.

        >>> import perspex
        >>> from perspex import export
        >>> exported = export.export(perspex.jit(lambda x: x**2))(3.0)
        >>> exported.vjp().call(3.0, 1.0)
        (Array(6., dtype=float32, weak_type=True),)
        """
        if self._get_vjp is None:
            raise ValueError(
                f"No VJP is available for `{self.fun_name}`: write it with "
                "`serialize(vjp_order=1)` to have it in the file"
            )
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes, in the file format of JAX.

        Args:
          vjp_order: how many orders of the derivative in reverse mode go along.

        Returns:
          Bytes for `deserialize`, here or in JAX.

        Raises:
          ValueError: for a container that is not registered for it, or an order of the derivative
            that the function does not have.
          TypeError: for a dictionary with keys that are not strings.

        >>> import perspex
        >>> from perspex import export
        >>> data = export.export(perspex.jit(lambda x: x**2))(3.0).serialize(vjp_order=1)
        >>> perspex.grad(export.deserialize(data).call)(3.0)
        Array(6., dtype=float32)
        """
        return serialization.to_bytes(self, vjp_order)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, also in functions that are traced, jitted or differentiated.

        Args:
          args, kwargs: pytrees of the structure, shapes and dtypes that it was exported for.

        Returns:
          The result of the function.

        Raises:
          ValueError: for arguments of other structure, shapes or dtypes, or another platform.

        >>> import perspex
        >>> from perspex import export
        >>> export.export(perspex.jit(lambda x: x + 1))(3.0).call(4.0)
        Array(5., dtype=float32, weak_type=True)
        """
        return caller(self)(*args, **kwargs)


def default_export_platform() -> str:
    """The platform that functions are exported for unless told otherwise.

    Returns:
      The platform of the default device, `"cpu"` for example.

    Raises:
      Nothing.

    >>> from perspex import export
    >>> export.default_export_platform()
    'cpu'
    """
    return client.default_backend()


class _Argument:
    """Stands for an array of a type."""

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval


def _cotangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the cotangent of a result."""
    if is_differentiable(aval):
        return tangent_aval(aval)
    return ShapedArray(aval.shape, dtypes.float0)


def _check_scopes(args: Any) -> None:
    """Raise `ValueError` if the shapes have symbolic dimensions that do not belong together."""
    first: Any = None
    for leaf in tree.leaves(args):
        for n in getattr(leaf, "shape", ()):
            if isinstance(n, Symbolic):
                first = n if first is None else first
                first._same_scope(n)


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """Make a jitted function a program that other processes can load and call.

    Args:
      fun_jit: a jitted function.
      platforms: the platforms to export it for, of `"cpu"`, `"cuda"`, `"rocm"` and `"tpu"`; by
        default the one of this process.
      disabled_checks: checks to turn off.

    Returns:
      A function that takes arrays or `ShapeDtypeStruct`s like the arguments of `fun_jit` and
      returns an `Exported`.

    Raises:
      ValueError: if the function is not jitted; at a call, for a program that calls functions which
        a later version may lack, or symbolic dimensions of several scopes.
      NotImplementedError: at a call, for a program that calls Python, or an operation that cannot
        take a symbolic dimension.
      InconclusiveDimensionOperation: at a call, where the function depends on the value of a
        symbolic dimension while it is traced.

    >>> import numpy as np, perspex
    >>> from perspex import export
    >>> shape = export.symbolic_shape("n, 2")
    >>> double = export.export(perspex.jit(lambda x: 2 * x))
    >>> exported = double(perspex.ShapeDtypeStruct(shape, "float32"))
    >>> exported.call(np.ones((1, 2), "float32"))
    Array([[2., 2.]], dtype=float32)
    """
    if not (hasattr(fun_jit, "trace") and hasattr(fun_jit, "lower")):
        raise ValueError(
            f"Function to be exported must be the result of `jit` but is: {fun_jit}; write "
            "export(jit(f))"
        )
    if _override_lowering_rules:
        raise NotImplementedError(
            "export: `_override_lowering_rules` names rules of JAX; in Perspex a rule is a method "
            "of its primitive"
        )
    names = (default_export_platform(),) if platforms is None else tuple(platforms)
    if isinstance(platforms, str) or not names or not all(isinstance(p, str) for p in names):
        raise ValueError(f"export: platforms must be a sequence of names, got {platforms!r}")
    checks = tuple(disabled_checks)

    def exporting(*args: Any, **kwargs: Any) -> Exported:
        _check_scopes((args, kwargs))
        return _exported(fun_jit, names, checks, args, kwargs)

    return exporting


def _exported(
    fun_jit: Any,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Exported:
    traced = explained(fun_jit.trace, *args, **kwargs)
    options = traced._owner.options
    if options.in_shardings is not None or options.out_shardings is not None:
        raise NotImplementedError(
            f"export: `{traced.fun_name}` is jitted for several devices; Perspex exports functions "
            "of one device. Leave in_shardings and out_shardings out"
        )
    closed = traced.jaxpr
    operands = [*closed.constvars, *closed.invars]
    if any(is_ref_type(v.aval) for v in operands):
        raise NotImplementedError(
            f"export: `{traced.fun_name}` takes a ref, or closes over one, and a program in a file "
            "has arrays only. Pass `ref[...]`, and return what is to be written."
        )
    closed = without_own_refs(closed)
    lowered = modules.lower(closed, platforms, traced.fun_name, traced.in_tree, options.keep_unused)
    check_calls(traced.fun_name, lowered.module, checks)
    in_avals, out_avals = tuple(closed.in_avals), tuple(closed.out_avals)

    def derivative(primal: Exported) -> Exported:
        def pulled_back(*flat: Any) -> Any:
            primals, cts = flat[: len(in_avals)], flat[len(in_avals) :]

            def function(*leaves: Any) -> Any:
                return tuple(eval_jaxpr(closed.jaxpr, closed.consts, *leaves))

            return differentiate(function, *primals)[1](tuple(cts))

        pulled_back.__name__ = "fun_vjp_jax"
        avals = [*in_avals, *map(_cotangent_aval, out_avals)]
        return _exported(jit(pulled_back), platforms, checks, tuple(map(_Argument, avals)), {})

    return made(
        fun_name=traced.fun_name,
        in_tree=traced.in_tree,
        in_avals=in_avals,
        out_tree=traced.out_tree,
        out_avals=out_avals,
        nr_devices=1,
        platforms=platforms,
        disabled_safety_checks=checks,
        mlir_module_serialized=modules.written(lowered.module, lowered.is_refined),
        calling_convention_version=maximum_supported_calling_convention_version,
        module_kept_var_idx=lowered.kept,
        uses_global_constants=lowered.is_refined,
        _get_vjp=derivative,
    )


def made(**fields: Any) -> Exported:
    """An exported function of one device and without effects."""
    count, results = len(fields["in_avals"]), len(fields["out_avals"])
    return Exported(
        **fields,
        _in_named_shardings=(None,) * count,
        _out_named_shardings=(None,) * results,
        in_shardings_hlo=(None,) * count,
        out_shardings_hlo=(None,) * results,
        ordered_effects=(),
        unordered_effects=(),
    )


def deserialize(blob: bytes | bytearray) -> Exported:
    """Load a function that `Exported.serialize` has written, here or in JAX.

    Load only what you trust: a program may call any function that is registered with XLA.

    Args:
      blob: the bytes.

    Returns:
      An `Exported`.

    Raises:
      ValueError: for bytes that are no exported function, or containers that are not registered.
      NotImplementedError: for a function with effects.

    >>> import perspex
    >>> from perspex import export
    >>> data = export.export(perspex.jit(lambda x: x + 1))(3.0).serialize()
    >>> export.deserialize(data).call(4.0)
    Array(5., dtype=float32)
    """
    return _loaded(Reader.root(bytes(blob)))


def _loaded(table: Reader) -> Exported:
    fields = serialization.fields_in(table)
    derivative = fields.pop("vjp")
    get = None if derivative is None else lambda _: _loaded(derivative)
    return made(**fields, _get_vjp=get)


__all__ = [
    "Exported", "default_export_platform", "deserialize", "export",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
]  # fmt: skip
