"""Gather, scatter and dynamic slices against loops over the definition of XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import ANY, Op, Sample, distinct, fixed, integers, normal, sample

from perspex import config
from perspex.ir.avals import ShapedArray
from perspex.ops import dynamic, indexing
from perspex.ops.windows import (
    FillValue,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    default_fill,
)
from perspex.tracing.primitive import Linear

CLIP = GatherScatterMode.CLIP
FILL = GatherScatterMode.FILL_OR_DROP
PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS


def starts_of(
    numbers: Any, index: np.ndarray, lane: tuple[int, ...], shape: Any, sizes: Any, mode: Any
) -> list[int] | None:
    """Where in the operand the window of a lane starts; `None` if it is outside and dropped."""
    _, _, index_map, batching, index_batching = numbers
    start = [0] * len(shape)
    for k, d in enumerate(index_map):
        start[d] = int(index[(*lane, k)])
    for d, at in zip(batching, index_batching, strict=True):
        start[d] = lane[at]
    largest = [n - s for n, s in zip(shape, sizes, strict=True)]
    if any(not 0 <= a <= b for a, b in zip(start, largest, strict=True)):
        if mode is FILL:
            return None
        start = [min(max(a, 0), b) for a, b in zip(start, largest, strict=True)]
    return start


def window_axes(numbers: Any, ndim: int) -> list[int]:
    return [
        d for d in range(ndim) if d not in numbers[1] and d not in numbers.operand_batching_dims
    ]


def gathered(
    x: np.ndarray,
    index: np.ndarray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    mode: GatherScatterMode,
    fill_value: FillValue | None,
    **_: Any,
) -> np.ndarray:
    numbers = dimension_numbers
    axes = window_axes(numbers, x.ndim)
    lanes = index.shape[:-1]
    ndim = len(lanes) + len(axes)
    lane_dims = [d for d in range(ndim) if d not in numbers.offset_dims]
    shape = [0] * ndim
    for d, n in zip(lane_dims, lanes, strict=True):
        shape[d] = n
    for d, a in zip(numbers.offset_dims, axes, strict=True):
        shape[d] = slice_sizes[a]
    fill = (default_fill(x.dtype) if fill_value is None else fill_value).value
    out = np.full(shape, np.asarray(fill).astype(x.dtype), x.dtype)
    for where in np.ndindex(*shape):
        lane = tuple(where[d] for d in lane_dims)
        start = starts_of(numbers, index, lane, x.shape, slice_sizes, mode)
        if start is not None:
            for d, a in zip(numbers.offset_dims, axes, strict=True):
                start[a] += where[d]
            out[where] = x[tuple(start)]
    return out


def scattered(
    combine: Callable[[Any, Any], Any],
) -> Callable[..., np.ndarray]:
    def reference(
        x: np.ndarray,
        index: np.ndarray,
        updates: np.ndarray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        mode: GatherScatterMode,
        **_: Any,
    ) -> np.ndarray:
        numbers = dimension_numbers
        axes = window_axes(numbers, x.ndim)
        sizes = [1] * x.ndim
        for d, a in zip(numbers.update_window_dims, axes, strict=True):
            sizes[a] = updates.shape[d]
        lane_dims = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
        out = x.copy()
        # Lane by lane: of updates of one element, the last one stands.
        lane_shape = [updates.shape[d] for d in lane_dims]
        for lane in np.ndindex(*lane_shape):
            start = starts_of(numbers, index, lane, x.shape, sizes, mode)
            if start is None:
                continue
            window: list[Any] = [slice(None)] * updates.ndim
            for d, k in zip(lane_dims, lane, strict=True):
                window[d] = k
            shape = [n if d in axes else 1 for d, n in enumerate(sizes)]
            block = updates[tuple(window)].reshape(shape)
            for offset in np.ndindex(*shape):
                where = tuple(i + j for i, j in zip(start, offset, strict=True))
                out[where] = combine(out[where], block[offset])
        return out

    return reference


def params(numbers: Any, mode: Any = CLIP, unique: bool = False, **rest: Any) -> dict[str, Any]:
    return {
        "dimension_numbers": numbers,
        "mode": mode,
        "unique_indices": unique,
        "indices_are_sorted": False,
        **rest,
    }


# name -> (operand shape, index draw, numbers, slice sizes), for gather; for scatter the updates
# have the shape of the gather's result.
PLACES: dict[str, Any] = {
    "rows": ((4, 3), integers(-2, 7, 5, 1), ((1,), (0,), (0,)), (1, 3)),
    "elements": ((4, 3), integers(-1, 5, 4, 2), ((), (0, 1), (0, 1)), (1, 1)),
    "swapped map": ((4, 3), integers(-1, 5, 4, 2), ((), (0, 1), (1, 0)), (1, 1)),
    "windows": ((5, 4), integers(-1, 5, 2, 3, 2), ((1, 3), (), (0, 1)), (2, 3)),
    "one window": ((5, 4), fixed([1]), ((0, 1), (), (1,)), (5, 2)),
    "one scalar": ((5,), fixed([3]), ((), (0,), (0,)), (1,)),
    "no index": ((2, 3), fixed(np.zeros((2, 0))), ((1, 2), (), ()), (2, 3)),
    "batching": ((3, 4, 2), integers(-1, 5, 5, 3, 1), ((2,), (1,), (1,), (0,), (1,)), (1, 1, 2)),
    "no lanes": ((4, 3), fixed(np.zeros((0, 1))), ((1,), (0,), (0,)), (1, 3)),
}


def gather_samples(*modes: tuple[GatherScatterMode, Any]) -> list[Sample]:
    return [
        Sample(
            (normal(*shape), index),
            params(GatherDimensionNumbers(*numbers), mode, slice_sizes=sizes, fill_value=fill),
        )
        for shape, index, numbers, sizes in PLACES.values()
        for mode, fill in modes
    ]


def update_shape(name: str) -> tuple[int, ...]:
    shape, index, numbers, sizes = PLACES[name]
    drawn = index(np.random.default_rng(0), np.dtype("int32"))
    aval = indexing.gather.type(
        ShapedArray(shape, np.dtype("float32")),
        ShapedArray(drawn.shape, drawn.dtype),
        slice_sizes=sizes,
        fill_value=None,
        **params(GatherDimensionNumbers(*numbers)),
    )
    return aval.shape


FEW = ("elements", "windows", "batching")


def scatter_samples(
    operand: Any, updates: Any, *modes: GatherScatterMode, places: Any = PLACES
) -> list[Sample]:
    return [
        Sample(
            (operand(*shape), index, updates(*update_shape(name))),
            params(ScatterDimensionNumbers(*numbers), mode),
        )
        for name, (shape, index, numbers, _) in PLACES.items()
        if name in places
        for mode in modes
    ]


NUMERIC = ("float32", "float64", "complex128", "int8", "bfloat16")
ORDERED = ("float32", "float64", "int32", "uint8", "bfloat16")

UNIQUE = [
    Sample(
        (normal(6, 2), fixed([[4], [0], [3]]), normal(3, 2)),
        params(ScatterDimensionNumbers((1,), (0,), (0,)), PROMISE, unique=True),
        linear=((0,), (2,), (0, 2)),
    ),
    Sample(
        (normal(6, 5), fixed([[0, 1], [3, 9]]), normal(2, 2, 3)),
        params(ScatterDimensionNumbers((1, 2), (), (0, 1)), FILL, unique=True),
        linear=((0,), (2,), (0, 2)),
    ),
]
SAMPLES = scatter_samples(normal, normal, CLIP, FILL)


def with_linear(samples: list[Sample], *sets: tuple[int, ...]) -> list[Sample]:
    return [Sample(s.operands, s.params, linear=sets) for s in samples]


def offset_distinct(*shape: int) -> harness.Draw:
    return distinct(*shape, offset=0.25)


OPS = [
    Op(
        indexing.gather,
        gathered,
        gather_samples((CLIP, None), (FILL, FillValue(1))),
        NUMERIC,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        indexing.gather,
        gathered,
        gather_samples((FILL, None))[:2],
        ANY,
        tolerance=0,
        smooth=(),  # filled with NaN
        name="gather with the default fill",
    ),
    Op(
        indexing.scatter,
        scattered(lambda old, new: new),
        [*SAMPLES, *UNIQUE],
        NUMERIC,
        tolerance=0,
        weak=lambda weak: weak[0],
    ),
    Op(
        indexing.scatter_add,
        scattered(lambda old, new: old + new),
        with_linear([*SAMPLES, *UNIQUE], (0,), (2,), (0, 2)),
        NUMERIC,
        tolerance=4,
        weak=lambda weak: weak[0],
    ),
    Op(
        indexing.scatter_sub,
        scattered(lambda old, new: old - new),
        with_linear(UNIQUE + SAMPLES[:2], (0,), (2,), (0, 2)),
        NUMERIC,
        tolerance=4,
        weak=lambda weak: weak[0],
    ),
    Op(
        indexing.scatter_mul,
        scattered(lambda old, new: old * new),
        with_linear([*scatter_samples(normal, normal, CLIP, FILL, places=FEW), *UNIQUE], (0,)),
        ("float32", "float64", "complex128", "int32"),
        tolerance=4,
        weak=lambda weak: weak[0],
    ),
    Op(
        indexing.scatter_min,
        scattered(min),
        scatter_samples(distinct, offset_distinct, CLIP, FILL, places=FEW),
        ORDERED,
        tolerance=0,
        weak=lambda weak: weak[0],
    ),
    Op(
        indexing.scatter_max,
        scattered(max),
        scatter_samples(distinct, offset_distinct, CLIP, FILL, places=FEW),
        ORDERED,
        tolerance=0,
        weak=lambda weak: weak[0],
    ),
]


def sliced(x: np.ndarray, *starts: Any, slice_sizes: tuple[int, ...]) -> np.ndarray:
    at = [min(max(int(i), 0), n - s) for i, n, s in zip(starts, x.shape, slice_sizes, strict=True)]
    return x[tuple(slice(i, i + s) for i, s in zip(at, slice_sizes, strict=True))]


def updated(x: np.ndarray, update: np.ndarray, *starts: Any) -> np.ndarray:
    at = [min(max(int(i), 0), n - s) for i, n, s in zip(starts, x.shape, update.shape, strict=True)]
    out = x.copy()
    out[tuple(slice(i, i + s) for i, s in zip(at, update.shape, strict=True))] = update
    return out


START = integers(-2, 6)
BYTE = integers(0, 250, dtype="uint8")

DYNAMIC = [
    Op(
        dynamic.dynamic_slice,
        sliced,
        [
            sample(normal(5, 4), START, START, slice_sizes=(2, 3)),
            sample(normal(5, 4), BYTE, BYTE, slice_sizes=(5, 1)),
            sample(normal(5), START, slice_sizes=(0,)),
            sample(normal(), slice_sizes=()),
        ],
        ANY,
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        dynamic.dynamic_update_slice,
        updated,
        [
            sample(normal(5, 4), normal(2, 3), START, START),
            sample(normal(5, 4), normal(5, 1), BYTE, BYTE),
            sample(normal(5), normal(0), START),
            sample(normal(), normal()),
        ],
        ANY,
        tolerance=0,
        linear=((0,), (1,), (0, 1)),
        weak=lambda _: False,
    ),
]

(
    test_value,
    test_staged,
    test_jvp,
    test_transpose,
    test_batch,
    test_weak,
) = harness.tests([*OPS, *DYNAMIC])


ROWS = ScatterDimensionNumbers((), (0,), (0,))


def test_tangent_of_products_with_zeros_and_repeated_places() -> None:
    with config.enable_x64(True):
        x = np.array([2.0, 3.0, 5.0, 7.0])
        index = np.array([[0], [1], [1], [2], [2], [2], [3], [9]])
        u = np.array([0.0, 0.0, 4.0, 0.0, 0.0, 6.0, 1.5, 2.5])
        for k in range(u.size):
            t = np.eye(u.size)[k]
            _, tangent = indexing.scatter_mul.jvp(
                [x, index, u], [None, None, t], **params(ROWS, FILL)
            )
            # A product is linear in each factor, so the difference quotient is exact.
            reference = scattered(lambda old, new: old * new)
            moved = reference(x, index, u + t, dimension_numbers=ROWS, mode=FILL)
            still = reference(x, index, u, dimension_numbers=ROWS, mode=FILL)
            np.testing.assert_allclose(np.asarray(tangent), moved - still, rtol=1e-14)


@pytest.mark.parametrize("name", ["min", "max"])
def test_extrema_share_the_tangent_of_a_tie(name: str) -> None:
    scatter = getattr(indexing, f"scatter_{name}")
    x, index, u = np.ones(2, "f"), np.array([[0], [0]]), np.ones(2, "f")
    t = [np.array([30.0, 1.0], "f"), None, np.array([60.0, 90.0], "f")]
    _, tangent = scatter.jvp([x, index, u], t, **params(ROWS))
    np.testing.assert_allclose(np.asarray(tangent), [60.0, 1.0])


def test_set_with_repeated_places_is_transposed_only_through_its_tangent() -> None:
    x, index, u = np.zeros(4, "f"), np.array([[1], [1], [3]]), np.ones(3, "f")
    with pytest.raises(NotImplementedError, match="unique_indices"):
        indexing.scatter.transpose(x, Linear(ShapedArray((4,), x.dtype)), index, u, **params(ROWS))
    out, tangent = indexing.scatter.jvp(
        [x, index, u], [None, None, np.array([1.0, 2.0, 4.0], "f")], **params(ROWS)
    )
    # One of the first two was written; its tangent, and only its, is there.
    assert np.asarray(tangent)[1] in (1.0, 2.0)
    np.testing.assert_array_equal(np.asarray(tangent)[[0, 2, 3]], [0, 0, 4])
    np.testing.assert_array_equal(np.asarray(out), [0, 1, 0, 1])


@pytest.mark.usefixtures("optimized")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("mode", [CLIP, FILL])
def test_indices_at_the_ends_of_their_dtype(dtype: str, mode: GatherScatterMode) -> None:
    with config.enable_x64(True):
        info = np.iinfo(dtype)
        index = np.array([[0], [info.max], [info.min], [100]], dtype)
        x = np.arange(300.0)
        numbers = GatherDimensionNumbers((), (0,), (0,))
        p = params(numbers, mode, slice_sizes=(1,), fill_value=FillValue(-1))
        found = indexing.gather(x, index, **p)
        np.testing.assert_array_equal(np.asarray(found), gathered(x, index, **p))
        p = params(ScatterDimensionNumbers(*numbers), mode)
        u = np.arange(4.0)
        found = indexing.scatter_add(x, index, u, **p)
        wanted = scattered(lambda old, new: old + new)(x, index, u, **p)
        np.testing.assert_array_equal(np.asarray(found), wanted)


def test_fill_values_are_equal_only_to_the_same_number() -> None:
    assert FillValue(0.0) != FillValue(-0.0)
    assert FillValue(float("nan")) == FillValue(float("nan"))
    assert FillValue(1) != FillValue(1.0)
    assert len({FillValue(0.0), FillValue(-0.0), FillValue(0.0)}) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offset_dims": (2,)}, "offset_dims"),
        ({"offset_dims": ()}, "offset_dims"),
        ({"collapsed_slice_dims": (1, 0)}, "ascending"),
        ({"collapsed_slice_dims": (0, 0)}, "repeat"),
        ({"start_index_map": (0, 1)}, "start_index_map"),
        ({"start_index_map": (5,)}, "below 2"),
        ({"operand_batching_dims": (0,), "start_indices_batching_dims": (0,)}, "also|and in"),
        ({"slice_sizes": (1,)}, "slice_sizes"),
        ({"slice_sizes": (1, 9)}, "do not fit"),
        ({"slice_sizes": (2, 3)}, "must be 1"),
    ],
)
def test_gather_says_what_disagrees(changes: dict[str, Any], message: str) -> None:
    changes = dict(changes)
    sizes = changes.pop("slice_sizes", (1, 3))
    numbers = GatherDimensionNumbers((1,), (0,), (0,))._replace(**changes)
    with pytest.raises(TypeError, match=message):
        indexing.gather(
            np.zeros((4, 3), "f"),
            np.zeros((5, 1), np.int32),
            **params(numbers, slice_sizes=sizes, fill_value=None),
        )


def test_indices_that_are_not_integers_are_refused() -> None:
    numbers = GatherDimensionNumbers((1,), (0,), (0,))
    with pytest.raises(ValueError, match="integer type, got float32"):
        indexing.gather(
            np.zeros((4, 3), "f"),
            np.zeros((5, 1), np.float32),
            **params(numbers, slice_sizes=(1, 3), fill_value=None),
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"updates": np.zeros((4, 3), "f")}, "index vectors"),
        ({"updates": np.zeros((5,), "f")}, "axes of the indices"),
        ({"updates": np.zeros((5, 4), "f")}, "do not fit"),
        ({"updates": np.zeros((5, 3), np.int32)}, "one dtype"),
        ({"update_window_dims": (0, 1)}, "axes of the indices"),
        ({"inserted_window_dims": ()}, "window runs over"),
        ({"scatter_dims_to_operand_dims": (2,)}, "below 2"),
    ],
)
def test_scatter_says_what_disagrees(changes: dict[str, Any], message: str) -> None:
    changes = dict(changes)
    updates = changes.pop("updates", np.zeros((5, 3), "f"))
    numbers = ScatterDimensionNumbers((1,), (0,), (0,))._replace(**changes)
    with pytest.raises(TypeError, match=message):
        indexing.scatter(
            np.zeros((4, 3), "f"), np.zeros((5, 1), np.int32), updates, **params(numbers)
        )


def test_modes_have_names() -> None:
    assert [GatherScatterMode.from_any(m) for m in ("clip", "fill", "drop", None, CLIP)] == [
        CLIP, FILL, FILL, FILL, CLIP,
    ]  # fmt: skip
    for strange in ("strange", 1, []):
        with pytest.raises(ValueError, match="Unknown gather mode"):
            GatherScatterMode.from_any(strange)
