"""Typed keys: what can be done with an element of dtype `key<fry>`.

A typed key hides its numbers, so that a key cannot be added to or printed as a sample by mistake.
Each operation is stated as a function of the numbers, by the key's generator (`ops.bits`), and its
lowering is that function written in place.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from perspex import config, dtypes
from perspex.base import xla
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops import bits, counters, rbg
from perspex.ops.families import batch_elementwise, broadcast_shape
from perspex.ops.lowering import expand
from perspex.ops.structural import broadcast_in_dim, convert, move_axis
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import stage

_UNSIGNED = {n: np.dtype(f"uint{n}") for n in (8, 16, 32, 64)}


class Generator:
    """A family of keys: their dtype, and the functions of their numbers. Compared by identity.

    `repeats` is how often a key has the two halves of its seed, one after the other; 0 where it has
    something else. One that is not `built_in` is a user's, and has no name that finds it.
    """

    __slots__ = (
        "built_in", "dtype", "fold_in", "name", "random_bits", "repeats", "seed", "split", "tag",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        tag: str,
        key_shape: tuple[int, ...],
        *,
        seed: Callable[..., Any],
        split: Callable[..., Any],
        fold_in: Callable[..., Any],
        random_bits: Callable[..., Any],
        repeats: int = 0,
        built_in: bool = True,
    ) -> None:
        self.name = name
        self.tag = tag
        self.dtype = dtypes.KeyType(name if built_in else self, tag, key_shape)
        self.repeats = repeats
        self.built_in = built_in
        self.seed = seed
        self.split = split
        self.fold_in = fold_in
        self.random_bits = random_bits

    def __repr__(self) -> str:
        return self.tag


def _of(how: Any, name: str, tag: str, length: int, repeats: int = 0) -> Generator:
    functions = {part: getattr(how, part) for part in ("seed", "split", "fold_in", "random_bits")}
    return Generator(name, tag, (length,), repeats=repeats, **functions)


THREEFRY = _of(bits, "threefry2x32", "fry", 2, 1)
RBG = _of(rbg, "rbg", "rbg", 4, 2)
UNSAFE_RBG = Generator(
    "unsafe_rbg",
    "urbg",
    (4,),
    seed=rbg.seed,
    split=rbg.unsafe_split,
    fold_in=rbg.unsafe_fold_in,
    random_bits=rbg.random_bits,
    repeats=2,
)
_COUNTERS = {"phx2": counters.PHILOX_2, "phx4": counters.PHILOX_4, "fry4": counters.THREEFRY_4}
PHILOX_2, PHILOX_4, THREEFRY_4 = [
    _of(how, how.hash.name, tag, how.length) for tag, how in _COUNTERS.items()
]

GENERATORS: dict[str, Generator] = {
    g.name: g for g in (THREEFRY, RBG, UNSAFE_RBG, PHILOX_2, PHILOX_4, THREEFRY_4)
}
"""All generators, by the name that `impl=` takes."""


def generator_of(dtype: Any) -> Generator:
    """The generator that keys of `dtype` belong to."""
    found = dtype.generator
    return found if found.__class__ is Generator else GENERATORS[found]


class KeyPrimitive(Primitive):
    """An operation on keys: its results do not vary smoothly with anything."""

    lowers_keys = True

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        return self(*primals, **params), None

    def keys(self, aval: ShapedArray) -> ShapedArray:
        """`aval`, which must be that of keys."""
        if not aval.is_extended:
            raise TypeError(
                f"{self.name} takes typed keys, got {aval.str_short()}; "
                "random.wrap_key_data makes keys from their numbers"
            )
        return aval


def _write(b: Any, impl: Generator, function: Callable[..., Any], *values: Any) -> Any:
    """Write a function of a generator, of the numbers `values`, where the builder stands."""
    avals = [aval.physical() for aval in b.in_avals]
    # 64-bit numbers in between are not the user's.
    with config.enable_x64(True) if impl.built_in else contextlib.nullcontext():
        (out,) = expand(b, function, *values, avals=avals)
    return out


# Fused with what follows, the hash keeps LLVM from vectorizing either, and is computed again in
# each consumer. So on CPU it is kept apart: on jaxlib 0.12, a million normals take 2.9 ms instead
# of 4.2, and 50 ms to compile instead of 95; on 0.10, `randint` takes 110 ms to compile instead of
# 515.


def _write_apart(b: Any, impl: Generator, function: Callable[..., Any], *values: Any) -> Any:
    """Like `_write`, with the result behind a barrier where that helps."""
    (out,) = b.out_avals
    value = _write(b, impl, function, *values)
    if b.platform != "cpu":
        return value
    return b.op("stablehlo.optimization_barrier", value, aval=out.physical())


def _call_apart(b: Any, draw: functools.partial[Any], keys: Any) -> Any:
    """Call `draw` as a function of the module that XLA does not write in place.

    It does what the barrier does where the compiler drops barriers.
    """
    closed = _function(draw.func, b.in_avals[0].physical(), tuple(draw.keywords.items()))
    attributes = {
        "callee": types.symbol(b.module.function(closed, "random_bits")),
        "mhlo.frontend_attributes": types.dictionary({"inlineable": types.string("false")}),
    }
    return b.ops("func.call", b.arguments_of([keys]), b.out_avals, attributes).result


@functools.lru_cache(maxsize=256)
def _function(
    draw: Callable[..., Any], aval: ShapedArray, params: tuple[tuple[str, Any], ...]
) -> ClosedJaxpr:
    """`draw` as a program; the same object for the same arguments: one function of a module."""
    with config.enable_x64(True):
        jaxpr, _ = stage(lambda x: [draw(x, **dict(params))], [aval])
    return ClosedJaxpr(jaxpr.replace(eqns=[eqn.replace(source=None) for eqn in jaxpr.eqns]))


class Drawing(KeyPrimitive):
    """What draws numbers from keys, in the layout of counters that the flag asks for right here.

    The layout is a param: a program may be lowered, and transformed, under another flag.
    """

    consumes_key = True
    quiet: ClassVar[dict[str, Any]] = {"partitionable": True}

    def __call__(self, keys: Any, *, partitionable: bool | None = None, **params: Any) -> Any:
        if partitionable is None:
            partitionable = config.threefry_partitionable.value
        return super().__call__(keys, partitionable=partitionable, **params)

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        return self(*operands, **params), axes[0]


class RandomSeed(KeyPrimitive):
    """The keys of integers."""

    name = "random_seed"

    def type(self, seeds: ShapedArray, *, impl: Generator) -> ShapedArray:
        if not dtypes.issubdtype(seeds.dtype, np.integer):
            raise TypeError(
                f"a PRNG key seed must be an integer, got {seeds.str_short(short_dtypes=False)}; "
                "convert it first"
            )
        return ShapedArray(seeds.shape, impl.dtype)

    def cut(self, out: Any, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.parts(x)

    def lower(self, b: Any, seeds: Any, *, impl: Generator) -> Any:
        return _write(b, impl, impl.seed, seeds)

    def batch(self, axis_size: int, operands: Any, axes: Any, *, impl: Generator) -> Any:
        return self(*operands, impl=impl), axes[0]


class RandomSplit(Drawing):
    """An array of new keys of the given shape from each key."""

    name = "random_split"

    def type(
        self, keys: ShapedArray, *, shape: tuple[int, ...], partitionable: bool
    ) -> ShapedArray:
        return ShapedArray((*self.keys(keys).shape, *shape), keys.dtype)

    def cut(self, out: ShapedArray, keys: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.padded(cuts.parts(keys), out.ndim)

    def lower(self, b: Any, keys: Any, **params: Any) -> Any:
        impl = generator_of(b.in_avals[0].dtype)
        return _write_apart(b, impl, functools.partial(impl.split, **params), keys)


class RandomFoldIn(KeyPrimitive):
    """A new key from each key and a number. Both have one shape, or one is a scalar."""

    name = "random_fold_in"

    def type(self, keys: ShapedArray, data: ShapedArray) -> ShapedArray:
        if not dtypes.issubdtype(data.dtype, np.integer):
            raise TypeError(
                f"random_fold_in takes integers to fold into a key, got {data.str_short()}"
            )
        return ShapedArray(broadcast_shape(self.name, (self.keys(keys), data)), keys.dtype)

    def cut(self, out: ShapedArray, *avals: ShapedArray) -> cuts.Parts:
        return cuts.merged(self.name, avals)

    def lower(self, b: Any, keys: Any, data: Any) -> Any:
        impl = generator_of(b.in_avals[0].dtype)
        return _write(b, impl, impl.fold_in, keys, data)

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        return batch_elementwise(self, axis_size, operands, axes)


class RandomBits(Drawing):
    """Random unsigned integers of `bit_width` bits: an array of `shape` from each key."""

    name = "random_bits"

    def type(
        self, keys: ShapedArray, *, bit_width: int, shape: tuple[int, ...], partitionable: bool
    ) -> ShapedArray:
        if bit_width not in _UNSIGNED:
            raise TypeError(f"random_bits gives 8, 16, 32 or 64 bits, not {bit_width}")
        return ShapedArray((*self.keys(keys).shape, *shape), _UNSIGNED[bit_width])

    def cut(self, out: ShapedArray, keys: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.padded(cuts.parts(keys), out.ndim)

    def lower(self, b: Any, keys: Any, **params: Any) -> Any:
        impl = generator_of(b.in_avals[0].dtype)
        draw = functools.partial(impl.random_bits, **params)
        if b.platform == "cpu" and not xla.KEEPS_BARRIERS and impl.built_in:
            return _call_apart(b, draw, keys)
        return _write_apart(b, impl, draw, keys)


class RandomWrap(KeyPrimitive):
    """Keys from their numbers."""

    name = "random_wrap"
    only_moves = True

    def type(self, numbers: ShapedArray, *, impl: Generator) -> ShapedArray:
        shape = impl.dtype.key_shape
        found = numbers.str_short(short_dtypes=False)
        if numbers.dtype != np.dtype("uint32"):
            raise TypeError(
                f"the numbers of {impl.dtype.name} keys are of dtype uint32, got {found}; "
                "make keys with random.key(seed)"
            )
        if numbers.ndim < len(shape) or numbers.shape[-len(shape) :] != shape:
            raise TypeError(
                f"the numbers of {impl.dtype.name} keys have a shape that ends in {shape}, "
                f"got {found}; make keys with random.key(seed)"
            )
        return ShapedArray(numbers.shape[: -len(shape)], impl.dtype)

    def cut(self, out: ShapedArray, numbers: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.in_batches(self.name, (numbers,), (numbers.ndim - out.ndim,))

    def lower(self, b: Any, numbers: Any, *, impl: Generator) -> Any:
        return numbers

    def batch(self, axis_size: int, operands: Any, axes: Any, *, impl: Generator) -> Any:
        return self(move_axis(operands[0], axes[0], 0), impl=impl), 0


class RandomUnwrap(KeyPrimitive):
    """The numbers of keys."""

    name = "random_unwrap"
    only_moves = True

    def type(self, keys: ShapedArray) -> ShapedArray:
        return self.keys(keys).physical()

    def cut(self, out: ShapedArray, keys: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.padded(cuts.parts(keys), out.ndim)

    def lower(self, b: Any, keys: Any) -> Any:
        return keys

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        return self(*operands), axes[0]


class RandomClone(KeyPrimitive):
    """The same key, for use once more where keys must be used once."""

    name = "random_clone"
    only_moves = True

    def type(self, keys: ShapedArray) -> ShapedArray:
        return keys

    def cut(self, out: ShapedArray, keys: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.padded(cuts.parts(keys), out.ndim)

    def lower(self, b: Any, keys: Any) -> Any:
        return keys

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        return self(*operands), axes[0]


random_seed = RandomSeed()
random_split = RandomSplit()
random_fold_in = RandomFoldIn()
random_bits = RandomBits()
random_wrap = RandomWrap()
random_unwrap = RandomUnwrap()
random_clone = RandomClone()


def filled_keys(value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Keys of `shape` whose numbers all are `value`: what zeros and ones of a key dtype are."""
    numbers = broadcast_in_dim(
        convert(value, np.dtype("uint32")),
        shape=(*shape, *dtype.key_shape),
        broadcast_dimensions=(),
    )
    return random_wrap(numbers, impl=generator_of(dtype))
