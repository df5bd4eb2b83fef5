"""Taking arrays apart and putting them together, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import MOVED, NUMBERS, Op, normal, sample

from perspex import dtypes
from perspex.ops import passing
from perspex.ops import shape as ops

F32 = np.dtype("float32")


def padded(x: np.ndarray, value: Any, padding_config: Any) -> np.ndarray:
    """The definition of pad: write each element to its place, then crop."""
    for axis, (low, high, interior) in enumerate(padding_config):
        n = x.shape[axis]
        spaced = n + max(n - 1, 0) * interior
        shape = [*x.shape]
        shape[axis] = spaced
        out = np.full(shape, value, x.dtype)
        where: list[Any] = [slice(None)] * x.ndim
        where[axis] = slice(None, None, interior + 1)
        if n:
            out[tuple(where)] = x
        widths = [(0, 0)] * x.ndim
        widths[axis] = (max(low, 0), max(high, 0))
        out = np.pad(out, widths, constant_values=value)
        where[axis] = slice(max(-low, 0), out.shape[axis] - max(-high, 0))
        x = out[tuple(where)]
    return x


def sliced(x: np.ndarray, start_indices: Any, limit_indices: Any, strides: Any) -> np.ndarray:
    steps = strides or (1,) * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


OPS = [
    Op(
        ops.rev,
        lambda x, dimensions: np.flip(x, dimensions),
        [sample(normal(3, 4), dimensions=d) for d in [(0,), (0, 1), ()]],
        MOVED,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        ops.pad,
        padded,
        [
            sample(normal(3, 4), normal(), padding_config=c)
            for c in [
                ((1, 0, 0), (0, 2, 0)),
                ((0, 0, 1), (1, -1, 2)),
                ((-1, 2, 1), (-2, -1, 3)),
                ((-3, 0, 0), (0, 0, 0)),
            ]
        ]
        + [
            sample(normal(0, 2), normal(), padding_config=((1, 1, 2), (0, 0, 0))),
            sample(normal(), normal(), padding_config=()),
        ],
        MOVED,
        tolerance=0,
        linear=((0,), (0, 1), (1,)),
    ),
    Op(
        ops.slice,
        sliced,
        [
            sample(normal(3, 5), start_indices=a, limit_indices=b, strides=c)
            for a, b, c in [
                ((0, 0), (3, 5), None),
                ((1, 2), (3, 4), None),
                ((0, 1), (3, 5), (2, 3)),
                ((0, 0), (3, 5), (3, 2)),
                ((2, 4), (2, 5), (1, 4)),
                ((3, 0), (3, 5), None),
            ]
        ],
        MOVED,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        ops.concatenate,
        lambda *xs, dimension: np.concatenate(xs, dimension),
        [
            sample(normal(2, 3), normal(1, 3), dimension=0),
            sample(normal(2, 0), normal(2, 2), normal(2, 1), dimension=1),
            sample(normal(2), dimension=0),
        ],
        MOVED,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        ops.stack,
        lambda *xs, axis: np.stack(xs, axis),
        [
            sample(normal(2, 3), normal(2, 3), axis=0),
            sample(normal(2), normal(2), normal(2), axis=1),
            sample(normal(), normal(), axis=0),
        ],
        MOVED,
        tolerance=0,
        linear=((0, 1), (1,)),
    ),
    Op(
        ops.unstack,
        lambda x, axis: list(np.moveaxis(x, axis, 0)),
        [sample(normal(2, 3), axis=0), sample(normal(2, 3), axis=1)],
        MOVED,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        ops.split,
        lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
        [
            sample(normal(2, 5), sizes=(1, 0, 4), axis=1),
            sample(normal(4), sizes=(3, 1), axis=0),
        ],
        MOVED,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        ops.tile,
        lambda x, reps: np.tile(x, reps),
        [
            sample(normal(2, 3), reps=(2, 1)),
            sample(normal(2, 3), reps=(1, 0)),
            sample(normal(3), reps=(3,)),
        ],
        MOVED,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        passing.optimization_barrier,
        lambda *xs: list(xs),
        [sample(normal(2, 3), normal(4)), sample(normal())],
        MOVED,
        tolerance=0,
        linear=((0,),),
        # Each result is as weakly typed as its own operand.
        weak=None,
    ),
]

BITS = [
    Op(
        passing.bitcast_convert_type,
        lambda x, new_dtype: x.view(new_dtype),
        [sample(normal(3, 4), new_dtype=np.dtype("int32"))],
        ("float32", "uint32"),
        result=lambda d: np.dtype("int32"),
        tolerance=0,
        weak=lambda _: False,
    ),
    Op(
        passing.bitcast_convert_type,
        lambda x, new_dtype: x[..., None].view(new_dtype),
        [
            sample(normal(3, 2), new_dtype=np.dtype("uint8")),
            sample(normal(), new_dtype=np.dtype("uint8")),
        ],
        ("float32", "float64", "int32"),
        result=lambda d: np.dtype("uint8"),
        tolerance=0,
        weak=lambda _: False,
        name="bitcast to narrower",
    ),
    Op(
        passing.bitcast_convert_type,
        lambda x, new_dtype: x.view(new_dtype)[..., 0],
        [sample(normal(3, 4), new_dtype=np.dtype("uint32"))],
        ("uint8", "int8"),
        result=lambda d: np.dtype("uint32"),
        tolerance=0,
        weak=lambda _: False,
        name="bitcast to wider",
    ),
]

(
    test_value,
    test_staged,
    test_jvp,
    test_transpose,
    test_batch,
    test_weak,
) = harness.tests([*OPS, *BITS])


@pytest.mark.parametrize("dtype", NUMBERS)
def test_iota(dtype: str) -> None:
    d = dtypes.canonicalize_dtype(harness.dtype_named(dtype))
    for shape, dimension in [((4,), 0), ((2, 3), 0), ((2, 3), 1), ((0,), 0)]:
        found = ops.iota(dtype=d, shape=shape, dimension=dimension)
        wanted = np.indices(shape)[dimension].astype(d)
        assert found.dtype == d and not found.weak_type
        np.testing.assert_array_equal(np.asarray(found), wanted)
