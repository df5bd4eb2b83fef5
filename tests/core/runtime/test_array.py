"""Concrete arrays: their face, and how they come and go."""

from __future__ import annotations

import copy
import pickle
import sys

import ml_dtypes
import numpy as np
import pytest

import perspex
import perspex.numpy as pnp

X = np.arange(12, dtype=np.float32).reshape(3, 4)
DTYPES = [
    "bool", "int8", "int16", "int32", "uint8", "uint16", "uint32",
    "float16", "float32", "complex64", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(dtype) -> None:
    host = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    x = perspex.device_put(host)
    assert x.dtype == np.dtype(dtype) and x.shape == (2, 3)
    back = np.asarray(x)
    assert back.dtype == host.dtype
    wide = np.complex64
    np.testing.assert_array_equal(back.astype(wide), host.astype(wide))
    out = np.asarray(perspex.jit(lambda v: v)(host))
    np.testing.assert_array_equal(out.astype(wide), host.astype(wide))


def test_attributes() -> None:
    x = perspex.device_put(X)
    assert (x.shape, x.ndim, x.size, x.nbytes, x.itemsize) == ((3, 4), 2, 12, 48, 4)
    assert x.device in x.devices() and x.device == perspex.devices()[0]
    assert isinstance(x, perspex.Array) and not isinstance(X, perspex.Array)
    assert len(x) == 3
    with pytest.raises(TypeError, match="unsized"):
        len(pnp.asarray(1.0))


def test_immutable() -> None:
    x = perspex.device_put(X)
    with pytest.raises(TypeError, match=r"immutable.*x\.at\[idx\]\.set\(y\)"):
        x[0] = 1
    with pytest.raises(TypeError, match="item deletion"):
        del x[0]
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    view = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5


def test_the_host_array_may_change_afterwards() -> None:
    host = np.zeros(1000, np.float32)
    x = perspex.device_put(host)
    host[:] = 1
    np.testing.assert_array_equal(x, np.zeros(1000))


def test_python_numbers_of_scalars() -> None:
    assert float(pnp.asarray(2.5)) == 2.5 and int(pnp.asarray(3)) == 3
    assert complex(pnp.asarray(1 + 2j)) == 1 + 2j and bool(pnp.asarray([True]))
    assert [10, 20, 30][pnp.asarray(1)] == 20
    assert f"{pnp.asarray(2.5):.3f}" == "2.500"
    with pytest.raises(TypeError):
        float(pnp.asarray([1.0, 2.0]))
    with pytest.raises(TypeError, match="integer scalar"):
        [1, 2][pnp.asarray(1.0)]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(pnp.asarray([True, False]))


@pytest.mark.parametrize("read", [float, int, bool, np.asarray, lambda x: x.item()])
def test_reading_a_number_imports_nothing(read, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of jaxlib's looks for a module of jax each time, which takes 30 us."""
    asked = []

    class Asked:
        def find_spec(self, name: str, *rest: object) -> None:
            asked.append(name)

    numbers = [pnp.float32(n) * 2 for n in (1, 2)]
    assert read(numbers[0]) == 2 or read is bool  # what Python imports the first time
    monkeypatch.setattr(sys, "meta_path", [Asked(), *sys.meta_path])
    assert read(numbers[1]) == (4 if read is not bool else True)
    assert not asked


def test_operators_refuse_strangers() -> None:
    x = perspex.device_put(X)
    for bad in ("a", [1, 2, 3, 4], None, object()):
        with pytest.raises(TypeError):
            x + bad
        with pytest.raises(TypeError):
            bad * x


def test_numpy_on_the_other_side_of_an_operator() -> None:
    x = perspex.device_put(X)
    for out in (X + x, x + X, np.float32(2) * x, x * np.float32(2)):
        assert isinstance(out, perspex.Array)
    np.testing.assert_array_equal(X + x, 2 * X)
    np.testing.assert_array_equal(np.add(x, 1), X + 1)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies(duplicate) -> None:
    x = perspex.device_put(X)
    y = duplicate(x)
    assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    x.delete()
    np.testing.assert_array_equal(y, X)


def test_pickle_keeps_weak_type() -> None:
    for x in (perspex.device_put(X), perspex.jit(lambda v: v)(2.0)):
        y = pickle.loads(pickle.dumps(x))
        np.testing.assert_array_equal(x, y)
        assert (x.dtype, x.weak_type) == (y.dtype, y.weak_type)


def test_buffer_protocol_and_dlpack_do_not_copy() -> None:
    x = perspex.device_put(X)
    view = np.asarray(memoryview(x))
    assert view.ctypes.data == x.unsafe_buffer_pointer()
    shared = np.from_dlpack(x)
    assert shared.ctypes.data == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(shared, X)
    back = perspex.dlpack.from_dlpack(x)
    np.testing.assert_array_equal(back, X)
    with pytest.raises(TypeError, match="__dlpack__"):
        perspex.dlpack.from_dlpack([1, 2])


def test_writable_numpy_memory_is_copied_by_from_dlpack() -> None:
    host = np.zeros(100, np.float32)
    x = perspex.dlpack.from_dlpack(host)
    host[:] = 1
    np.testing.assert_array_equal(x, np.zeros(100))


def test_array_protocol() -> None:
    x = perspex.device_put(X)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    mine = np.array(x, copy=True)
    mine[0, 0] = 99
    assert float(x[0, 0]) == 0
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.int8, copy=False)


def test_deleted() -> None:
    x = perspex.device_put(X)
    x.delete()
    assert x.is_deleted()
    for use in (lambda: x + 1, lambda: np.asarray(x), lambda: pnp.sum(x), lambda: float(x[0, 0])):
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3,4\]"):
            use()
    assert repr(x) == "Array(deleted, float32[3,4])"


def test_device_get_and_block() -> None:
    tree = {"a": perspex.device_put(X), "b": [perspex.device_put(X[0]), 3]}
    assert perspex.block_until_ready(tree) is tree
    out = perspex.device_get(tree)
    assert type(out["a"]) is np.ndarray and out["b"][1] == 3
    np.testing.assert_array_equal(out["b"][0], X[0])


def test_device_put_of_what_is_no_array() -> None:
    with pytest.raises(TypeError):
        perspex.device_put("text")
    with pytest.raises(TypeError):
        perspex.device_put(np.array(["a"]))
    with pytest.raises(ValueError, match=r"perspex\.devices\(\)"):
        perspex.device_put(1.0, device=3)


def test_big_integers_do_not_wrap_silently() -> None:
    with pytest.raises(OverflowError, match="2147483648"):
        perspex.jit(lambda v: v)(2**31)


def test_default_device_of_an_unknown_kind() -> None:
    with pytest.raises(RuntimeError, match="Unknown backend 'tpu'"), perspex.default_device("tpu"):
        pnp.ones(2) + 1


def test_memory_of_another_library_is_shared() -> None:
    class Foreign:  # what any library's tensor offers, and not NumPy's own class
        memory = np.zeros(128, np.uint8)
        start = -memory.ctypes.data % 64  # jaxlib copies what is not aligned for XLA
        host = memory[start : start + 24].view(np.float32)

        def __dlpack__(self, **kwargs):
            return self.host.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.host.__dlpack_device__()

    Foreign.host[:] = np.arange(6)
    x = perspex.dlpack.from_dlpack(Foreign())
    assert x.shape == (6,) and x.dtype == np.float32
    assert x.unsafe_buffer_pointer() == Foreign.host.ctypes.data
    np.testing.assert_array_equal(x + 1, Foreign.host + 1)


def test_dlpack_keeps_booleans() -> None:
    for host in (np.array([True, False, True]), np.array(True)):
        got = np.from_dlpack(perspex.device_put(host))
        assert got.dtype == bool
        np.testing.assert_array_equal(got, host)


def test_deleted_arrays_are_not_put_on_devices() -> None:
    x = perspex.device_put(X)
    x.delete()
    for device in (None, perspex.devices()[0]):
        with pytest.raises(RuntimeError, match="deleted"):
            perspex.device_put({"x": x}, device)


def test_a_sharding_names_its_device() -> None:
    place = perspex.device_put(X).sharding
    want = "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"
    assert repr(place) == str(place) == want
