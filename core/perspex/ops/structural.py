"""The linear operations that every other rule is written with.

Broadcast, sum, reshape, transpose, squeeze, convert: they move or add numbers up and nothing else,
so their jvp is themselves. `Structural` holds what they share. The lowest file of `ops`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from perspex import config, dtypes
from perspex.errors import InconclusiveDimensionOperation
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.layout.abstract import UnreducedKind
from perspex.layout.named import NamedSharding
from perspex.ops.memory import like_primal
from perspex.tracing import cuts, spaces
from perspex.tracing.array_type import Array
from perspex.tracing.axes import Axis
from perspex.tracing.primitive import Linear, Primitive
from perspex.tracing.staging import JaxprTrace, kept
from perspex.tracing.trace import typeof


class Structural(Primitive):
    """A primitive that is linear in its single array operand, and mostly moves its elements."""

    only_moves = True
    degree = 1

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **params: Any) -> Array: ...

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (t,) = tangents
        return self(*primals, **params), None if t is None else self(t, **params)


class JointlyLinear(Primitive):
    """A primitive that is linear in all its operands together."""

    only_moves = True
    degree = 1

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        out = self(*primals, **params)
        if all(t is None for t in tangents):
            return out, [None] * len(out) if self.multiple_results else None
        full = [zeros_like(x) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        return out, self(*full, **params)


# ---- Building blocks of rules -----------------------------------------------------------------


def zeros(aval: ShapedArray) -> Any:
    """Zeros of type `aval`: the tangent or cotangent that a rule could not leave symbolic."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    zero = kept(aval.dtype.type(0), ShapedArray((), aval.dtype))
    if aval.shape or aval.memory_space is not spaces.DEVICE:
        zero = broadcast_like(zero, aval)
    return JaxprTrace.varying(zero, aval.vma) if aval.vma else zero


def zeros_like(x: Any) -> Any:
    return zeros(typeof(x).strip_weak_type())


def full_like(x: Any, value: Any) -> Any:
    """An array of the type of `x` filled with the number `value`."""
    aval = typeof(x)
    scalar = size_as(value, aval.dtype)
    return broadcast_like(scalar, aval) if aval.shape else scalar


def broadcast_like(x: Any, aval: ShapedArray, dims: tuple[int, ...] = ()) -> Any:
    """`x` broadcast to the shape of `aval`, cut as that is, and in its memory."""
    asked: dict[str, Any] = {} if aval.cut is None else {"sharding": aval.cut}
    out = broadcast_in_dim(x, shape=aval.shape, broadcast_dimensions=dims, **asked)
    return like_primal(out, aval) if ShapedArray.are_spaces_used else out


def reshape_like(x: Any, aval: ShapedArray) -> Any:
    """The elements of `x` in the shape of `aval`, and cut as that is."""
    if aval.cut is None:
        return reshape(x, new_sizes=aval.shape)
    return reshape(x, new_sizes=aval.shape, sharding=aval.cut)


def in_front(params: dict[str, Any], x: Any) -> dict[str, Any]:
    """The params of an operation on one example, with how the batch `x` is cut in front."""
    return {**params, "sharding": cuts.batched(params["sharding"], cuts.parts(typeof(x))[0], 0)}


def _weak_scalar(value: Any, dtype: Any) -> Any:
    """A number of Python where that has the dtype, and else one of NumPy, which is strong."""
    python = {"f": float, "c": complex}.get(dtype.kind)
    if python is None or dtypes.canonicalize_dtype(python) != dtype:
        return size_as(value, dtype)
    return python(value)


def scalar_like(x: Any, value: Any) -> Any:
    """The number `value` in the dtype of `x`: elementwise operations broadcast it themselves.

    Beside a weakly typed scalar it is weakly typed too, as in JAX.
    """
    aval = typeof(x)
    if aval.weak_type and not aval.shape:
        return _weak_scalar(value, aval.dtype)
    return size_as(value, aval.dtype)


def weak_like(x: Any, value: Any) -> Any:
    """The number `value` in the dtype of `x`, weakly typed where `x` is, whatever its shape."""
    aval = typeof(x)
    return _weak_scalar(value, aval.dtype) if aval.weak_type else aval.dtype.type(value)


def zero_like(x: Any) -> Any:
    """The number zero in the dtype of `x`, weakly typed where `x` is."""
    return weak_like(x, 0)


def size_as(n: Any, dtype: Any) -> Any:
    """A number, which may be the size of an axis, in a dtype: a scalar of NumPy.

    A symbolic size is an array.
    """
    try:
        return dtype.type(n)
    except InconclusiveDimensionOperation:
        return convert(n.__jax_array__(), dtype)


def move_axis(x: Any, source: int, destination: int) -> Array:
    """`x` with one axis moved; no operation when it is there already."""
    if source == destination:
        return x
    perm = [i for i in range(typeof(x).ndim) if i != source]
    perm.insert(destination, source)
    return transpose(x, permutation=tuple(perm))


def merge_axis(x: Any, source: int, axis: int) -> Any:
    """Axis `source` moved into `axis` (counted without it), whose index then varies faster."""
    x = move_axis(x, source, axis)
    shape = typeof(x).shape
    merged = shape[axis] * shape[axis + 1]
    return reshape(x, new_sizes=(*shape[:axis], merged, *shape[axis + 2 :]))


def split_axis(x: Any, axis: int, size: int) -> Any:
    """Axis `axis` as two: a slow one of the given size, and in its place + 1 the rest."""
    shape = typeof(x).shape
    return reshape(x, new_sizes=(*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))


def to_front(x: Any, axis: int | None, size: Any) -> Any:
    """The batched operand `x` with its batch axis in front; unbatched values are repeated.

    `size` is the number of examples, or the `Axis` of the batch.
    """
    if axis is not None:
        return move_axis(x, axis, 0)
    aval = typeof(x)
    dims = tuple(range(1, aval.ndim + 1))
    if size.__class__ is Axis:
        if size.cut is not None:
            return broadcast_like(x, cuts.with_axis(aval, size.size, 0, size.cut), dims)
        size = size.size
    return broadcast_in_dim(x, shape=(size, *aval.shape), broadcast_dimensions=dims)


def unbroadcast(ct: Any, aval: ShapedArray) -> Any:
    """The cotangent of a scalar that was broadcast to the shape of `ct`."""
    ndim = typeof(ct).ndim
    if aval.ndim == 0 and ndim:
        return reduce_sum(ct, axes=tuple(range(ndim)))
    return ct


def is_linear(x: Any) -> bool:
    return x.__class__ is Linear


def check_permutation(name: str, permutation: Sequence[int], ndim: int) -> None:
    if sorted(permutation) != list(range(ndim)):
        raise TypeError(
            f"{name}: permutation {tuple(permutation)} is not a permutation of the "
            f"{ndim} axes of the operand"
        )


def check_axes(name: str, axes: Sequence[int], ndim: int) -> None:
    """Axes must be distinct and in range."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: duplicate axes in {tuple(axes)}")
    if any(not 0 <= a < ndim for a in axes):
        raise ValueError(f"{name}: axes {tuple(axes)} are out of range for {ndim} axes")


def without(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def inserted(values: Sequence[Any], at: int, value: Any) -> tuple[Any, ...]:
    """`values` with `value` put in at index `at`."""
    return (*values[:at], value, *values[at:])


def zero_of(x: Any) -> Any:
    """The scalar zero of the dtype of `x`: what linear operations pad with."""
    return typeof(x).dtype.type(0)


def check_same_dtype(name: str, avals: Sequence[ShapedArray]) -> None:
    """Raise `TypeError` unless the operands, which are not promoted, have one dtype."""
    if any(a.dtype != avals[0].dtype for a in avals):
        found = ", ".join([a.dtype.name for a in avals])
        raise TypeError(f"{name} requires operands of one dtype, got {found}; convert them")


def check_rank(name: str, what: str, values: Sequence[Any], ndim: int) -> None:
    """Raise `TypeError` unless there is one value for each axis."""
    if len(values) != ndim:
        raise TypeError(
            f"{name}: {what} must have one entry for each of the {ndim} axes of the operand, "
            f"got {tuple(values)}"
        )


# ---- The operations -----------------------------------------------------------------------------


class BroadcastInDim(Structural):
    """Axis `i` of the operand becomes axis `broadcast_dimensions[i]` of an array of `shape`."""

    name = "broadcast_in_dim"
    keeps_elements = True
    memory = staticmethod(spaces.of_first)
    # `x[:, None] - mean` broadcasts in two steps; in one, its transpose is one sum.
    merges = True
    quiet: ClassVar[dict[str, Any]] = {"shape": ..., "broadcast_dimensions": (), "sharding": ...}

    def type(
        self,
        x: ShapedArray,
        *,
        shape: tuple[int, ...],
        broadcast_dimensions: tuple[int, ...],
        sharding: Any = None,
    ) -> ShapedArray:
        if len(broadcast_dimensions) != x.ndim:
            raise TypeError(
                f"broadcast_in_dim: {x.ndim} axes need as many broadcast_dimensions, "
                f"got {broadcast_dimensions}"
            )
        for n, axis in zip(x.shape, broadcast_dimensions, strict=True):
            if not 0 <= axis < len(shape) or n not in (1, shape[axis]):
                raise TypeError(
                    f"broadcast_in_dim: shape {x.shape} does not broadcast to {shape} "
                    f"with broadcast_dimensions={broadcast_dimensions}"
                )
        if list(broadcast_dimensions) != sorted(set(broadcast_dimensions)):
            raise TypeError(
                "broadcast_in_dim: broadcast_dimensions must be strictly increasing, "
                f"got {broadcast_dimensions}"
            )
        return ShapedArray(shape, x.dtype, x.weak_type)

    def cut(
        self, out: ShapedArray, x: ShapedArray, *, broadcast_dimensions: Any, **params: Any
    ) -> cuts.Parts:
        given = dict(zip(broadcast_dimensions, cuts.parts(x), strict=True))
        return tuple([given.get(i, ()) for i in range(out.ndim)])

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def check_asked(self, asked: NamedSharding, avals: Any, params: dict[str, Any]) -> None:
        cuts.only_sums(self.name, asked)

    def merged(self, first: Any, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        places = params["broadcast_dimensions"]
        dims = tuple([places[axis] for axis in first.params["broadcast_dimensions"]])
        return first.invars, {**params, "broadcast_dimensions": dims}

    def lower(self, b: Any, x: Any, *, broadcast_dimensions: tuple[int, ...], **params: Any) -> Any:
        return b.broadcast(x, b.out_avals[0], broadcast_dimensions)

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        shape = out_avals[0].physical().shape
        extra = tuple(range(out_avals[0].ndim, len(shape)))
        dims = (*params["broadcast_dimensions"], *extra)
        return {"shape": shape, "broadcast_dimensions": dims}

    def transpose(
        self,
        ct: Any,
        x: Any,
        *,
        shape: tuple[int, ...],
        broadcast_dimensions: tuple[int, ...],
        **params: Any,
    ) -> Any:
        kept = {
            axis for n, axis in zip(x.shape, broadcast_dimensions, strict=True) if n == shape[axis]
        }
        summed = tuple([i for i in range(len(shape)) if i not in kept])
        ct = reduce_sum(ct, axes=summed) if summed else ct
        return [ct if typeof(ct).shape == x.shape else reshape_like(ct, x.aval.cotangent())]

    def batch(
        self,
        axis_size: int,
        operands: Any,
        axes: Any,
        *,
        shape: tuple[int, ...],
        broadcast_dimensions: tuple[int, ...],
        **params: Any,
    ) -> Any:
        x = to_front(operands[0], axes[0], axis_size)
        dims = (0, *[d + 1 for d in broadcast_dimensions])
        if params:
            params = in_front(params, x)
        return self(x, shape=(axis_size, *shape), broadcast_dimensions=dims, **params), 0


_HALVES = ("bfloat16", "float16")


class ReduceSum(Structural):
    """The sum over `axes`."""

    name = "reduce_sum"
    makes_nan = True
    printed: ClassVar[dict[str, Any]] = {"out_sharding": None}

    def type(
        self, x: ShapedArray, *, axes: tuple[int, ...], out_sharding: Any = None
    ) -> ShapedArray:
        check_axes(self.name, axes, x.ndim)
        if x.dtype == bool or x.is_extended:
            raise TypeError(f"reduce_sum: dtype {x.dtype.name} is not a number; convert it first")
        return ShapedArray(without(x.shape, axes), x.dtype, x.weak_type)

    def cut(self, out: ShapedArray, x: ShapedArray, *, axes: Any, **params: Any) -> cuts.Parts:
        return cuts.without(cuts.parts(x), axes)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def check_asked(
        self, asked: NamedSharding, avals: Sequence[ShapedArray], params: dict[str, Any]
    ) -> None:
        cuts.check_summed(self.name, asked, avals[0], params["axes"], UnreducedKind.sum)

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        # Outside of `type`, whose results are remembered under all flags.
        if not config.allow_f16_reductions.value and avals[0].dtype.name in _HALVES:
            raise ValueError(
                f"reduce_sum: a sum of {avals[0].str_short()} is not allowed while the flag "
                "`allow_f16_reductions` is off; convert the operand to float32 first"
            )
        return super().typed(avals, params)

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(operands[0].size)

    def lower(self, b: Any, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        return lower_reduce(b, "stablehlo.add", 0, x, axes)

    def transpose(self, ct: Any, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        kept = tuple([i for i in range(x.ndim) if i not in axes])
        return [broadcast_like(ct, x.aval.cotangent(), kept)]

    def batch(
        self, axis_size: int, operands: Any, axes_: Any, *, axes: tuple[int, ...], **params: Any
    ) -> Any:
        return batch_reduction(self, operands[0], axes_[0], axes, **params)


def lower_reduce(b: Any, op: str, identity: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """`stablehlo.reduce` of `x` with the binary operation `op`."""
    (out,) = b.out_avals
    scalar = ShapedArray((), out.dtype)
    init = b.constant(identity, scalar)
    reduce = b.ops(
        "stablehlo.reduce", [x, init], [out], {"dimensions": types.integers(axes)}, regions=1
    )
    with b.block(reduce.regions[0], [scalar, scalar]) as (inner, (left, right)):
        inner.terminate("stablehlo.return", [inner.op(op, left, right, aval=scalar)])
    return reduce.result


def batch_reduction(
    primitive: Primitive, x: Any, at: int, axes: tuple[int, ...], **params: Any
) -> Any:
    """The batch rule of a reduction of one operand: the batch axis keeps its place."""
    shifted = tuple([a + (a >= at) for a in axes])
    place = at - sum(a < at for a in shifted)
    if "out_sharding" in params:
        asked = cuts.batched(params["out_sharding"], cuts.parts(typeof(x))[at], place)
        params = {**params, "out_sharding": asked}
    return primitive(x, axes=shifted, **params), place


class Reshape(Structural):
    """The elements in row-major order, in another shape of the same size."""

    name = "reshape"
    keeps_elements = True
    printed: ClassVar[dict[str, Any]] = {"dimensions": None, "sharding": None}

    def type(
        self, x: ShapedArray, *, new_sizes: tuple[int, ...], sharding: Any = None
    ) -> ShapedArray:
        if any(n < 0 for n in new_sizes) or math.prod(new_sizes) != x.size:
            raise TypeError(
                f"cannot reshape array of shape {x.shape} (size {x.size}) into shape {new_sizes} "
                f"(size {math.prod(new_sizes)})"
            )
        return ShapedArray(new_sizes, x.dtype, x.weak_type)

    def cut(self, out: ShapedArray, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.reshaped(x, out.shape)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def check_asked(
        self, asked: NamedSharding, avals: Sequence[ShapedArray], params: dict[str, Any]
    ) -> None:
        cuts.check_kept(self.name, asked, avals[0])

    def lower(self, b: Any, x: Any, **params: Any) -> Any:
        return b.reshape(x, b.out_avals[0])

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return {"new_sizes": out_avals[0].physical().shape}

    def transpose(self, ct: Any, x: Any, **params: Any) -> Any:
        return [reshape_like(ct, x.aval.cotangent())]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, new_sizes: Any, **params: Any
    ) -> Any:
        x = move_axis(operands[0], axes[0], 0)
        if params:
            params = in_front(params, x)
        return self(x, new_sizes=(axis_size, *new_sizes), **params), 0


class Transpose(Structural):
    """Axis `i` of the result is axis `permutation[i]` of the operand."""

    name = "transpose"

    def type(self, x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
        check_permutation(self.name, permutation, x.ndim)
        return ShapedArray([x.shape[p] for p in permutation], x.dtype, x.weak_type)

    def cut(self, out: ShapedArray, x: ShapedArray, *, permutation: tuple[int, ...]) -> cuts.Parts:
        given = cuts.parts(x)
        return tuple([given[i] for i in permutation])

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any, *, permutation: tuple[int, ...]) -> Any:
        return b.op(
            "stablehlo.transpose", x, attributes={"permutation": types.integers(permutation)}
        )

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        ndim = in_avals[0].ndim
        extra = tuple(range(ndim, in_avals[0].physical().ndim))
        return {"permutation": (*params["permutation"], *extra)}

    def transpose(self, ct: Any, x: Any, *, permutation: tuple[int, ...]) -> Any:
        inverse = tuple([int(i) for i in np.argsort(permutation)])
        return [transpose(ct, permutation=inverse)]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, permutation: tuple[int, ...]
    ) -> Any:
        (x,), (at,) = operands, axes
        shifted = tuple([p + (p >= at) for p in permutation])
        return self(x, permutation=(at, *shifted)), 0


class Squeeze(Structural):
    """The operand without the axes `dimensions`, which have size one."""

    name = "squeeze"
    keeps_elements = True

    def type(self, x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
        check_axes(self.name, dimensions, x.ndim)
        if any(x.shape[d] != 1 for d in dimensions):
            raise ValueError(
                "cannot select an axis to squeeze out which has size not equal to one, "
                f"got shape={x.shape} and dimensions={dimensions}"
            )
        return ShapedArray(without(x.shape, dimensions), x.dtype, x.weak_type)

    def cut(self, out: ShapedArray, x: ShapedArray, *, dimensions: tuple[int, ...]) -> cuts.Parts:
        return cuts.without(cuts.parts(x), dimensions)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any, *, dimensions: Any) -> Any:
        return b.reshape(x, b.out_avals[0])

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any, *, dimensions: Any) -> Any:
        return [reshape_like(ct, x.aval.cotangent())]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, dimensions: tuple[int, ...]
    ) -> Any:
        (x,), (at,) = operands, axes
        shifted = tuple([d + (d >= at) for d in dimensions])
        return self(x, dimensions=shifted), at - sum(d < at for d in shifted)


class ConvertElementType(Structural):
    """The elements converted to `new_dtype`; linear between inexact dtypes."""

    name = "convert_element_type"

    def type(self, x: ShapedArray, *, new_dtype: Any, weak_type: bool) -> ShapedArray:
        if x.is_extended or isinstance(new_dtype, dtypes.KeyType):
            raise TypeError(
                f"convert_element_type: no conversion from {x.dtype.name} to {new_dtype.name}; "
                "use random.key_data and random.wrap_key_data for typed keys"
            )
        return ShapedArray(x.shape, new_dtype, weak_type)

    def cut(self, out: Any, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.parts(x)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any, *, new_dtype: np.dtype, weak_type: bool) -> Any:
        (given,), (out,) = b.in_avals, b.out_avals
        if given.dtype == out.dtype:
            return x
        if given.dtype.kind == "c" and out.dtype.kind != "c":
            part = ShapedArray(
                given.shape, np.dtype("float32" if given.dtype.itemsize == 8 else "float64")
            )
            if out.dtype == bool:
                return b.compare("NE", x, b.constant(0, given), given)
            return b.convert(b.op("stablehlo.real", x, aval=part), out)
        if out.dtype == bool:
            return b.compare("NE", x, b.constant(0, given), given)
        return b.convert(x, out)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        out = self(*primals, **params)
        (t,) = tangents
        if t is None or not dtypes.issubdtype(params["new_dtype"], np.inexact):
            return out, None
        return out, self(t, **params)

    def transpose(self, ct: Any, x: Any, *, new_dtype: np.dtype, weak_type: bool) -> Any:
        return [convert(ct, x.dtype, x.aval.weak_type)]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        return self(*operands, **params), axes[0]


broadcast_in_dim = BroadcastInDim()
reduce_sum = ReduceSum()
reshape = Reshape()
transpose = Transpose()
squeeze = Squeeze()
convert_element_type = ConvertElementType()


def convert(x: Any, dtype: np.dtype, weak_type: bool = False) -> Any:
    """`x` as `dtype`; no operation when it is that already."""
    aval = typeof(x)
    if aval.dtype == dtype and aval.weak_type == weak_type and not isinstance(x, (int, float)):
        return x
    return convert_element_type(x, new_dtype=dtype, weak_type=weak_type)
