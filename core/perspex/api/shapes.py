"""Types without values: `ShapeDtypeStruct`, `eval_shape`, `make_jaxpr`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from perspex import config, dtypes, tree
from perspex.base.tree_paths import PyTree
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ir.references import AbstractRef, is_ref_type
from perspex.jitted.compiled import Compiled
from perspex.jitted.signature import Options, function_name
from perspex.layout.abstract import ManualAxisType
from perspex.layout.context import canonical_if_explicit
from perspex.layout.formats import Format
from perspex.layout.memories import MemorySpace
from perspex.tracing.axes import Axis


class ShapeDtypeStruct:
    """The shape and dtype of an array that need not exist.

    Stands for an array where only types matter: in `eval_shape`, `make_jaxpr`, `jit(f).lower`. Its
    dtype is the one that the array will have: `int` is `int32` unless 64 bits are enabled, where
    JAX's structure says `int64` and its array is of `int32` all the same.

    Args:
      shape: a sequence of integers.
      dtype: anything that names a dtype of numbers, or the dtype of keys.
      sharding: how the array lies on devices, a sharding or a `Format`.
      weak_type: whether the dtype gives way to that of another operand.
      manual_axis_type: inside `shard_map`, the axes of the mesh along which it varies.
      is_ref: stand for a `Ref` to such an array.

    Returns:
      An object with these attributes, and `ndim` and `size`.

    Raises:
      ValueError: if `dtype` is `None`.
      TypeError: if `dtype` is not one of numbers, or `manual_axis_type` is of another type.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("aval", "sharding")
    __module__ = "perspex"

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: ManualAxisType | None = None,
        is_ref: bool = False,
        _memory_space: MemorySpace | None = None,
    ) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be given")
        dtype = dtypes.check_user_dtype(dtype, "ShapeDtypeStruct")
        if isinstance(sharding, Format):
            sharding = sharding.place()
        placed = canonical_if_explicit(sharding)
        space = _memory_space or MemorySpace.Device
        aval = ShapedArray(tuple(shape), dtype, weak_type, sharding=placed, memory_space=space)
        if manual_axis_type is not None:
            aval = aval.update(vma=_varying(manual_axis_type))
        self.aval: ShapedArray | AbstractRef = AbstractRef(aval) if is_ref else aval
        self.sharding = sharding

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The shape, dtype and weak type of a value.

        Args:
          x: an array, a traced one too, or a number.

        Returns:
          A `ShapeDtypeStruct`, with the sharding that the type of `x` says.

        Raises:
          TypeError: if `x` is not an array or a number.

        >>> ShapeDtypeStruct.like(2.0)
        ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
        """
        return cls._of(shaped(x))

    @classmethod
    def _of(cls, aval: Any) -> ShapeDtypeStruct:
        is_ref = is_ref_type(aval)
        shape, dtype, weak = aval.shape, aval.dtype, aval.weak_type
        space = aval.memory_space
        return cls(
            shape, dtype, weak_type=weak, is_ref=is_ref, sharding=aval.cut, _memory_space=space
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def is_ref(self) -> bool:
        return is_ref_type(self.aval)

    @property
    def manual_axis_type(self) -> ManualAxisType | None:
        vma = self.aval.vma
        return ManualAxisType(varying=vma) if vma else None

    @property
    def format(self) -> Format:
        return Format(None, self.sharding)

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some attributes replaced.

        Args:
          changes: new values of `shape`, `dtype`, `sharding`, `weak_type`, `manual_axis_type` or
            `is_ref`.

        Returns:
          A `ShapeDtypeStruct`.

        Raises:
          TypeError: for a `dtype` that is not one of numbers.

        >>> import perspex
        >>> perspex.ShapeDtypeStruct((2,), "float32").update(shape=(3,))
        ShapeDtypeStruct(shape=(3,), dtype=float32)
        """
        return ShapeDtypeStruct(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            sharding=changes.get("sharding", self.sharding),
            weak_type=changes.get("weak_type", self.weak_type),
            manual_axis_type=changes.get("manual_axis_type", self.manual_axis_type),
            is_ref=changes.get("is_ref", self.is_ref),
            _memory_space=changes.get("_memory_space", self.aval.memory_space),
        )

    def __len__(self) -> int:
        return len(self.aval)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return self.aval is other.aval and self.sharding == other.sharding

    def __hash__(self) -> int:
        return hash((self.aval, self.sharding))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        ref = ", is_ref=True" if self.is_ref else ""
        where = f", sharding={self.sharding}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{where}{weak}{ref})"


def _varying(given: Any) -> frozenset[str]:
    if not isinstance(given, ManualAxisType):
        raise TypeError(
            "ShapeDtypeStruct takes a ManualAxisType as manual_axis_type, got "
            f"{given!r} of type {type(given).__name__}"
        )
    if given.unreduced or given.reduced:
        raise ValueError(
            f"ShapeDtypeStruct takes the axes along which a value varies, got {given}; use the "
            "type of a value that is unreduced or reduced itself"
        )
    return given.varying


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> PyTree:
    """The types of what `fun` would return, without computing anything.

    Args:
      fun: takes and returns pytrees of arrays.
      args, kwargs: arrays, numbers, or anything with a shape and a dtype.

    Returns:
      The result's tree with `ShapeDtypeStruct` leaves.

    Raises:
      TypeError: if `fun` is not a function, an argument has no shape and dtype, or a result is not
        an array.

    >>> import perspex.numpy as pnp
    >>> eval_shape(lambda x: x @ x.T, ShapeDtypeStruct((1000, 10), "float32"))
    ShapeDtypeStruct(shape=(1000, 1000), dtype=float32)
    """
    args, kwargs = tree.map(_with_aval, (args, kwargs))
    owner = Compiled(fun, Options())
    program = owner.trace(owner.call(args, kwargs))
    return tree.unflatten(
        program.out_tree,
        [ShapeDtypeStruct._of(a) for a in program.closed.out_avals],
    )


def _with_aval(x: Any) -> Any:
    """Anything with a shape and a dtype, as something that has an aval."""
    try:
        shaped(x)
        return x
    except TypeError:
        if hasattr(x, "shape") and hasattr(x, "dtype"):
            return ShapeDtypeStruct(x.shape, x.dtype)
        raise


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Any = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that returns the jaxpr of `fun` at the types of its arguments.

    Args:
      fun: takes and returns pytrees of arrays.
      static_argnums: positions of arguments that Python sees as they are.
      axis_env: pairs of name and size: axes that collectives in `fun` may name, as inside a `vmap`.
      return_shape: return the types of the results too.

    Returns:
      A function with the arguments of `fun` that returns a `ClosedJaxpr`, or with `return_shape`
      the pair of it and the tree of results with `ShapeDtypeStruct` leaves.

    Raises:
      TypeError: if `fun` is not a function, or an argument or a result is not an array.

    >>> import perspex.numpy as pnp
    >>> make_jaxpr(lambda x: x * 2 + 1)(3.0)
    { lambda ; a:f32[]. let
        b:f32[] = mul a 2.0:f32[]
        c:f32[] = add b 1.0:f32[]
      in (c,) }
    """
    if not callable(fun):
        raise TypeError(f"make_jaxpr takes a function, got {fun!r}")
    nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    axes = tuple([Axis(operator.index(size), name) for name, size in axis_env or ()])

    def made(*args: Any, **kwargs: Any) -> ClosedJaxpr | tuple[ClosedJaxpr, Any]:
        owner = Compiled(fun, Options(static_argnums=nums))
        held = tuple([a if i in nums else tree.map(_with_aval, a) for i, a in enumerate(args)])
        with config.axis_env((*config.axis_env.value, *axes)):
            program = owner.trace(owner.call(held, tree.map(_with_aval, kwargs)))
        if not return_shape:
            return program.closed
        structs = [ShapeDtypeStruct._of(a) for a in program.closed.out_avals]
        return program.closed, tree.unflatten(program.out_tree, structs)

    made.__name__ = f"make_jaxpr({function_name(fun)})"
    return made
