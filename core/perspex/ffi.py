"""Calls of compiled functions of your own from programs: `jax.ffi`.

A function that C++ compiled against the headers in `include_dir()` is registered with XLA under a
name. `ffi_call` puts a call of it into a program: no Python runs when the program does, and arrays
are not copied.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from perspex.base import xla
from perspex.base.tree_paths import PyTree
from perspex.control import vmap_methods
from perspex.control.foreign import ffi_call_p, hashable
from perspex.hlo import foreign, types
from perspex.ir.avals import ShapedArray
from perspex.layout.formats import Layout
from perspex.tracing.trace import typeof

__all__ = [
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]


class _Shaped(Protocol):
    """What the type of a result is read from, such as `ShapeDtypeStruct`."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...


# ---- Registering --------------------------------------------------------------------------------


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Make a compiled function known to XLA under a name.

    Args:
      name: the name that `ffi_call` calls it by.
      fn: a `PyCapsule` with the address of the function (`pycapsule`), or a dictionary of these by
        stage: `"instantiate"`, `"prepare"`, `"initialize"`, `"execute"`.
      platform: `"cpu"`, `"cuda"`, ...
      api_version: 1 for a handler of the typed interface, 0 for the older untyped one.
      kwargs: what else jaxlib's `register_custom_call_target` takes: `traits`.

    Raises:
      Exception: of XLA's, if another function has that name already.
    """
    xla.register_custom_call_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Make a type known whose values handlers keep between their stages.

    Args:
      name: the name of the type.
      type_registration: a dictionary with `"type_id"`, and `"type_info"` where there is one: each a
        `PyCapsule` with an address.
      platform: `"cpu"`, `"cuda"`, ...
    """
    xla.register_custom_type(name, type_registration, platform=platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Raise a `ValueError`: jaxlib no longer takes the number of a type alone.

    Args:
      name, obj, platform: as for `register_ffi_type`.

    Raises:
      ValueError: always, as in JAX.
    """
    raise ValueError(
        "register_ffi_type_id is not supported by this jaxlib; use "
        f"register_ffi_type({name!r}, {{'type_id': obj}}, platform={platform!r})"
    )


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Say that a function may be called for parts of a batch, on several devices.

    It is for the older of XLA's partitioners, GSPMD. Shardy, which partitions programs here and in
    JAX, gives each device whole operands nevertheless: `shard_map` gives it parts.

    Args:
      name: the name of the function.
    """
    xla.register_custom_call_as_batch_partitionable(name)


def pycapsule(funcptr: Any) -> Any:
    """A function of a library that `ctypes` loaded, as `register_ffi_target` takes it.

    Args:
      funcptr: the function: `ctypes.cdll.LoadLibrary("./lib.so").my_function`.

    Returns:
      A `PyCapsule` with its address.
    """
    destructor = ctypes.CFUNCTYPE(None, ctypes.py_object)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, destructor)
    return new(funcptr, None, destructor(0))


def include_dir() -> str:
    """The folder with the C++ headers of XLA's foreign function interface.

    Returns:
      The path, for `g++ -I`; the headers are `xla/ffi/api/*.h`.

    >>> import os
    >>> os.path.exists(os.path.join(include_dir(), "xla/ffi/api/ffi.h"))
    True
    """
    return os.path.join(os.path.dirname(os.path.abspath(xla.JAXLIB_FILE)), "include")


# ---- Calling ------------------------------------------------------------------------------------


def ffi_call(
    target_name: str,
    result_shape_dtypes: _Shaped | Sequence[_Shaped],
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Sequence[int] | Layout | None] | None = None,
    output_layouts: Sequence[int] | Layout | Sequence[Sequence[int] | Layout | None] | None = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., PyTree]:
    """A function of arrays that calls a compiled function, registered with XLA.

    Args:
      target_name: the name under which `register_ffi_target` has it.
      result_shape_dtypes: the type of the result, such as a `ShapeDtypeStruct`; or a list or tuple
        of these, for a list or tuple of results.
      has_side_effect: keep the call in the program even if nobody reads its results.
      vmap_method: what `vmap` does, as for `pure_callback`: `"sequential"`,
        `"sequential_unrolled"`, `"expand_dims"`, `"broadcast_all"` or `"legacy_vectorized"`.
      input_layouts: for each operand how it lies in memory: its axes, the one whose neighbours are
        farthest apart first; a `Layout`; or `None`, which is the order of the shape.
      output_layouts: the same for the result, or for each of several.
      input_output_aliases: from the index of an operand to that of the result that is written in
        its place.
      custom_call_api_version: 4 for handlers of the typed interface; 1 to 3 for older ones.
      legacy_backend_config: the text that an older handler gets instead of attributes.

    Returns:
      A function of arrays. The keyword arguments that it takes are the attributes of the call:
      numbers, text, NumPy arrays, dtypes, and lists and dictionaries of these.

    Raises:
      ValueError: for another `vmap_method`, for a result type without shape and dtype, for layouts
        or aliases that do not fit the operands, and when the call is differentiated.
      TypeError: for an attribute that has no hash, when the function is called.
      NotImplementedError: under `vmap` without a `vmap_method`.

    `perspex.custom_jvp` and `perspex.custom_vjp` give such a function a derivative.

    >>> import numpy as np
    >>> import perspex, perspex.numpy as pnp
    >>> x = pnp.array([[4.0, 2.0], [2.0, 10.0]])
    >>> factor = perspex.ffi.ffi_call(
    ...     "lapack_spotrf_ffi",
    ...     (perspex.ShapeDtypeStruct((2, 2), "float32"), perspex.ShapeDtypeStruct((), "int32")),
    ...     input_layouts=[(1, 0)],
    ...     output_layouts=[(1, 0), None],
    ... )
    >>> lower, info = factor(x, uplo=np.uint8(ord("L")))
    >>> pnp.tril(lower)
    Array([[2., 0.],
           [1., 3.]], dtype=float32)
    """
    vmap_methods.check(vmap_method)
    several = isinstance(result_shape_dtypes, Sequence)
    wanted: Any = result_shape_dtypes if several else [result_shape_dtypes]
    result_avals = tuple([_result(i, found) for i, found in enumerate(wanted)])
    given: Any = output_layouts if several or output_layouts is None else [output_layouts]
    outputs = _layouts("outputs", "output", result_avals, given)
    if custom_call_api_version >= 4 and legacy_backend_config is not None:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires custom_call_api_version < 4; "
            f"got {custom_call_api_version}. Pass attributes as keyword arguments."
        )

    def call(*args: Any, **kwargs: Any) -> Any:
        in_avals = [typeof(x) for x in args]
        inputs = _layouts("input arguments", "input", in_avals, input_layouts)
        aliases = [
            _alias(int(i), int(o), (in_avals, inputs), (result_avals, outputs))
            for i, o in sorted((input_output_aliases or {}).items())
        ]
        results = ffi_call_p(
            *args,
            result_avals=result_avals,
            vmap_method=vmap_method,
            target_name=target_name,
            has_side_effect=has_side_effect,
            input_layouts=inputs,
            output_layouts=outputs,
            input_output_aliases=tuple(aliases),
            custom_call_api_version=custom_call_api_version,
            legacy_backend_config=legacy_backend_config,
            attributes=tuple([(name, hashable(name, kwargs[name])) for name in sorted(kwargs)]),
        )
        if not several:
            return results[0]
        return tuple(results) if isinstance(result_shape_dtypes, tuple) else list(results)

    return call


def _result(i: int, found: Any) -> ShapedArray:
    if not (hasattr(found, "shape") and hasattr(found, "dtype")):
        raise ValueError(
            "All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got "
            f"{found} at position {i}. Use ShapeDtypeStruct(shape, dtype)."
        )
    return ShapedArray(tuple(found.shape), found.dtype)


def _layouts(
    what: str, which: str, avals: Sequence[ShapedArray], layouts: Any
) -> tuple[tuple[int, ...], ...]:
    """Layouts in XLA's order, after a check that they fit."""
    if layouts is None:
        layouts = [None] * len(avals)
    if len(layouts) != len(avals):
        raise ValueError(
            f"The number of {what} ({len(avals)}) must equal the number of {which} layouts "
            f"({len(layouts)})."
        )
    given = [x if x is None or isinstance(x, Layout) else tuple(x)[::-1] for x in layouts]
    return tuple(map(_minor_to_major, avals, given))


def _minor_to_major(aval: ShapedArray, layout: Any = None) -> tuple[int, ...]:
    """The axes of an array as XLA wants them: the one that changes fastest in memory first."""
    ndim = aval.physical().ndim
    if layout is None:
        return tuple(range(ndim))[::-1]
    if isinstance(layout, Layout):
        if layout.tiling is not None:
            raise ValueError("The FFI does not support layouts with tiling")
        layout = layout.major_to_minor[::-1]
    if len(layout) != ndim:
        raise ValueError(
            f"A layout of {len(layout)} axes cannot be that of an array of shape {aval.shape}, "
            f"which has {ndim}; name each axis once"
        )
    return tuple(layout)


def _alias(i: int, o: int, inputs: Any, outputs: Any) -> tuple[int, int]:
    """A pair of operand and result that share memory, after a check that they can."""
    (in_avals, in_layouts), (out_avals, out_layouts) = inputs, outputs
    start = f"input_output_aliases contains the mapping '{i}:{o}'"
    for which, index, count in (("input", i, len(in_avals)), ("output", o, len(out_avals))):
        if not 0 <= index < count:
            raise ValueError(f"{start} with {which} index {index} outside the range [0, {count}).")
    if (in_avals[i].shape, in_avals[i].dtype) != (out_avals[o].shape, out_avals[o].dtype):
        raise ValueError(
            f"{start} referring to an input with abstract value {in_avals[i]} and an output with a "
            f"different abstract value {out_avals[o]}."
        )
    if in_layouts[i] != out_layouts[o]:
        raise ValueError(
            f"{start} referring to an input with layout {in_layouts[i]} and an output with a "
            f"different layout {out_layouts[o]}."
        )
    return i, o


# ---- Lowering rules of primitives ---------------------------------------------------------------


class _Context(Protocol):
    """What a lowering rule of JAX's kind gets: `mlir.LoweringRuleContext`."""

    @property
    def avals_in(self) -> Sequence[ShapedArray]: ...

    @property
    def avals_out(self) -> Sequence[ShapedArray]: ...


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Sequence[int] | Layout | None] | None = None,
    result_layouts: Sequence[Sequence[int] | Layout | None] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A function that writes a call of a compiled function, in a rule for `mlir.register_lowering`.

    Args:
      call_target_name: the name under which `register_ffi_target` has it.
      operand_layouts, result_layouts: how each array lies in memory, in XLA's order: the axis that
        changes fastest is the first. The order of the shape, if not given.
      backend_config: attributes of the call, as attributes of MLIR.
      skip_ffi_layout_processing: leave the layouts to `lowering_args`.
      lowering_args: what else `mlir.custom_call` takes: `has_side_effect`, `api_version`, ...

    Returns:
      `write(ctx, *operands, **params)`, which returns the operation; `params` are attributes too.

    Raises:
      ValueError: when it is called, for attributes that the version of the interface cannot take.
    """

    def write(ctx: _Context, *operands: Any, **params: Any) -> Any:
        options = {"api_version": 4, **lowering_args}
        if options["api_version"] >= 4:
            if not isinstance(backend_config, Mapping | None):
                raise ValueError("When api_version >= 4, backend_config must be a dictionary.")
            added = {name: types.attribute_of(value) for name, value in params.items()}
            config: Any = {**(backend_config or {}), **added}
        elif params:
            raise ValueError(
                "The use of ffi_call attributes requires a custom call API version of at least 4; "
                f"got api_version={options['api_version']}."
            )
        else:
            config = backend_config
        if not skip_ffi_layout_processing:
            for key, avals, layouts in (
                ("operand_layouts", ctx.avals_in, operand_layouts),
                ("result_layouts", ctx.avals_out, result_layouts),
            ):
                given = [None] * len(avals) if layouts is None else layouts
                options[key] = list(map(_minor_to_major, avals, given))
        results = options.pop("result_types", None)
        if results is None:
            results = [types.tensor_type(aval) for aval in ctx.avals_out]
        return foreign.custom_call(
            call_target_name, operands, results, backend_config=config, **options
        )

    return write


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Sequence[int] | Layout | None] | None = None,
    result_layouts: Sequence[Sequence[int] | Layout | None] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Sequence[Any]]:
    """A rule for `mlir.register_lowering` that calls a compiled function.

    Args:
      call_target_name, operand_layouts, result_layouts, backend_config: as for
        `build_ffi_lowering_function`.
      skip_ffi_layout_processing, lowering_args: likewise.

    Returns:
      `rule(ctx, *operands, **params)`, which returns the values of the results.
    """
    write = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(ctx: _Context, *operands: Any, **params: Any) -> Sequence[Any]:
        return list(write(ctx, *operands, **params).results)

    return rule
