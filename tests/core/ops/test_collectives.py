"""Collectives along a named axis, as functions of the whole batch.

Outside a batch that has their axis they mean nothing, so a record is one mapped over the rows of
its operand. What they are along axes of other batches is in `transforms/test_collectives.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from support import harness
from support.harness import Op, distinct, normal, sample

from perspex import vmap
from perspex.ops import collectives
from perspex.tracing.primitive import Primitive
from perspex.transforms.jvp import jvp

SIZE = 4
MOVED = ("float32", "float64", "int8")
ADDED = ("float32", "float64", "complex64", "complex128", "int32")


class Mapped:
    """A collective over the rows of an array, as an operation on that array."""

    def __init__(self, collective: Primitive) -> None:
        self.collective = collective
        self.name = f"mapped {collective.name}"

    def __call__(self, *operands: Any, **params: Any) -> Any:
        rows = vmap(lambda *row: self.collective(*row, **params), axis_name="i", axis_size=SIZE)
        return rows(*operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (y,), (t,) = jvp(lambda *xs: [self(*xs, **params)], primals, tangents)
        return y, t


def every(y: np.ndarray) -> np.ndarray:
    """What all examples get."""
    return np.repeat(y[None], SIZE, 0)


def gathered(x: np.ndarray, all_gather_dimension: int, tiled: bool, **_: Any) -> np.ndarray:
    axis = all_gather_dimension
    return every(np.concatenate(list(x), axis) if tiled else np.stack(list(x), axis))


def scattered(x: np.ndarray, scatter_dimension: int, tiled: bool, **_: Any) -> np.ndarray:
    total = x.sum(0)
    if tiled:
        return np.stack(np.split(total, SIZE, scatter_dimension))
    return np.moveaxis(total, scatter_dimension, 0)


def exchanged(
    x: np.ndarray, split_axis: int, concat_axis: int, tiled: bool, **_: Any
) -> np.ndarray:
    parts = [np.split(row, SIZE, split_axis) for row in x]
    if not tiled:
        parts = [[part.squeeze(split_axis) for part in row] for row in parts]
    join = np.concatenate if tiled else np.stack
    return np.stack([join([row[j] for row in parts], concat_axis) for j in range(SIZE)])


def permuted(x: np.ndarray, perm: Any, **_: Any) -> np.ndarray:
    out = np.zeros_like(x)
    for src, dst in perm:
        out[dst] = x[src]
    return out


AXES = {"axes": ("i",)}
GATHER = {"axis_name": ("i",), "axis_size": SIZE}
SEND = {"axis_name": "i", "axis_size": SIZE}
RING = tuple([(k, (k + 1) % SIZE) for k in range(SIZE)])

OPS = [
    Op(
        Mapped(collectives.psum),
        lambda x, axes: every(x.sum(0)),
        [sample(normal(SIZE, 3), **AXES), sample(normal(SIZE), **AXES)],
        ADDED,
        tolerance=4,
        weak=None,
    ),
    *[
        Op(
            Mapped(collective),
            lambda x, axes, which=which: every(which(x, 0)),
            [sample(distinct(SIZE, 3), **AXES)],
            MOVED,
            weak=None,
        )
        for collective, which in ((collectives.pmax, np.max), (collectives.pmin, np.min))
    ],
    Op(
        Mapped(collectives.all_gather),
        gathered,
        [
            sample(normal(SIZE, 3), **GATHER, all_gather_dimension=1, tiled=False),
            sample(normal(SIZE, 2, 3), **GATHER, all_gather_dimension=1, tiled=True),
            sample(normal(SIZE), **GATHER, all_gather_dimension=0, tiled=False),
        ],
        MOVED,
        tolerance=0,
        weak=None,
    ),
    Op(
        Mapped(collectives.reduce_scatter),
        scattered,
        [
            sample(normal(SIZE, 2, SIZE), **GATHER, scatter_dimension=1, tiled=False),
            sample(normal(SIZE, 2 * SIZE, 3), **GATHER, scatter_dimension=0, tiled=True),
        ],
        ADDED,
        tolerance=4,
        weak=None,
    ),
    Op(
        Mapped(collectives.all_to_all),
        exchanged,
        [
            sample(normal(SIZE, SIZE, 3), **SEND, split_axis=0, concat_axis=1, tiled=False),
            sample(normal(SIZE, 3, SIZE), **SEND, split_axis=1, concat_axis=0, tiled=False),
            sample(normal(SIZE, 2, 2 * SIZE), **SEND, split_axis=1, concat_axis=0, tiled=True),
            sample(normal(SIZE, SIZE, 1), **SEND, split_axis=0, concat_axis=0, tiled=True),
        ],
        MOVED,
        tolerance=0,
        weak=None,
    ),
    Op(
        Mapped(collectives.ppermute),
        permuted,
        [
            sample(normal(SIZE, 3), axis_name=("i",), perm=RING),
            sample(normal(SIZE), axis_name=("i",), perm=((0, 2), (3, 1))),
            sample(normal(SIZE, 2), axis_name=("i",), perm=()),
        ],
        MOVED,
        tolerance=0,
        weak=None,
    ),
    Op(
        Mapped(collectives.pbroadcast),
        lambda x, axis_name, source: every(x[source]),
        [sample(normal(SIZE, 3), axis_name="i", source=2)],
        MOVED,
        tolerance=0,
        weak=None,
    ),
    Op(
        Mapped(collectives.axis_index),
        lambda axis_name: np.arange(SIZE, dtype=np.int32),
        [sample(axis_name="i")],
        ("int32",),
        weak=None,
    ),
]

test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)
