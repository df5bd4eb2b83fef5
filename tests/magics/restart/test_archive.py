"""Arrays in a file: what is written comes back with its type, its order and its place."""

from __future__ import annotations

import io
import re

import ml_dtypes
import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex_magics.restart.archive import Reader, UnkeptError, Writer

HOST = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "Fortran's order": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "a part": np.arange(12).reshape(3, 4)[::2, 1:],
    "no axes": np.array(3.5),
    "empty": np.zeros((0, 4), np.int16),
    "texts": np.array(["one", "three"]),
    "records": np.array([(1, 2.0)], dtype=[("n", "i4"), ("x", "f8")]),
    "times": np.array(["2026-01-01"], "datetime64[D]"),
    "bfloat16": np.arange(3).astype(ml_dtypes.bfloat16),
    "int4": np.array([-8, 7], ml_dtypes.int4),
}


def again(*arrays: object) -> list[object]:
    """Arrays after they were written and read."""
    file = io.BytesIO()
    writer = Writer(file, waits=True)
    numbers = [writer.array(x) for x in arrays]
    writer.finish({})
    reader = Reader(file)
    return [reader.array(number) for number in numbers]


@pytest.mark.parametrize("x", HOST.values(), ids=HOST)
def test_arrays_of_numpy(x: np.ndarray) -> None:
    (y,) = again(x)
    assert type(y) is np.ndarray and y.dtype == x.dtype and y.shape == x.shape
    np.testing.assert_array_equal(y, x)
    assert y.flags.f_contiguous == x.flags.f_contiguous or not x.flags.c_contiguous
    assert y.flags.writeable


def test_read_only_stays_read_only() -> None:
    x = np.arange(3)
    x.flags.writeable = False
    assert not again(x)[0].flags.writeable


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4", "bool", "complex64", "uint8"])
def test_arrays_of_a_device(dtype: str) -> None:
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    (y,) = again(x)
    assert y.aval == x.aval and y.committed == x.committed is False
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x))


def test_a_weak_type_stays_weak() -> None:
    weak, strong = again(jnp.sin(1.0), jnp.float32(1) * jnp.ones(()))
    assert weak.weak_type and not strong.weak_type


def test_places() -> None:
    """Where an array was put, it is put again: on a device, and over a mesh."""
    device = perspex.devices()[-1]
    count = len(perspex.devices())
    mesh = perspex.make_mesh((count,), ("x",))
    sharding = perspex.NamedSharding(mesh, perspex.P("x"))
    on_device, over_mesh = again(
        perspex.device_put(jnp.arange(3), device),
        perspex.device_put(jnp.arange(4 * count), sharding),
    )
    assert on_device.committed and on_device.device == device
    assert over_mesh.sharding == sharding
    np.testing.assert_array_equal(np.asarray(over_mesh), np.arange(4 * count))


def test_one_array_is_written_once() -> None:
    x = np.arange(1000)
    first, second, other = again(x, x, x.copy())
    assert first is second and first is not other


def test_what_has_no_value_is_refused() -> None:
    x = jnp.ones(3)
    x.delete()
    with pytest.raises(UnkeptError, match="deleted or donated"):
        Writer(io.BytesIO(), waits=True).array(x)


def test_another_file_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("not that of a session")):
        Reader(io.BytesIO(b"x" * 100))


def test_a_file_that_ends_early() -> None:
    file = io.BytesIO()
    writer = Writer(file, waits=True)
    number = writer.array(np.arange(10))
    writer.finish({})
    reader = Reader(file)
    reader.stored[number] = reader.stored[number]._replace(at=len(file.getvalue()) - 4)
    with pytest.raises(ValueError, match="too early"):
        reader.array(number)
