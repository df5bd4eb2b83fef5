"""Arrays of the device: memories, transfers, donation, other platforms and libraries, callbacks."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as jnp
from perspex.base import xla
from perspex.errors import JaxRuntimeError

DTYPES = ["float32", "float16", "int8", "int64", "uint32", "bool", "complex64", "bfloat16", "int4"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(dtype: str, device: Any) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = (np.arange(-8, 16) % 7).astype(kind).reshape(4, 6)
    with perspex.enable_x64(True):
        there = perspex.device_put(x, device)
        assert there.dtype == kind and there.devices() == {device}
        np.testing.assert_array_equal(there, x)


def test_much(device: Any, rng: np.random.Generator) -> None:
    """More than a staging buffer holds, while the device is at work."""
    x = rng.normal(size=(16 << 20,)).astype(np.float32)
    there = perspex.device_put(x, device)
    more = there + 1
    more.copy_to_host_async()
    there.copy_to_host_async()
    np.testing.assert_array_equal(there, x)
    np.testing.assert_array_equal(more, x + np.float32(1))


def test_the_host_may_change_what_it_gave(device: Any) -> None:
    x = np.zeros(1 << 20, np.float32)
    there = jnp.array(x)
    x[:] = 1
    assert float(there.sum()) == 0


def test_several_platforms(device: Any, cpu: Any) -> None:
    x = perspex.device_put(np.arange(6.0), device)
    y = perspex.device_put(x, cpu)
    assert y.devices() == {cpu} and x.devices() == {device}
    twice = perspex.jit(lambda x: x * 2)
    assert twice(y).devices() == {cpu} and twice(x).devices() == {device}
    np.testing.assert_array_equal(perspex.device_put(twice(y), device) - twice(x), np.zeros(6))
    with perspex.default_device(cpu):
        assert jnp.ones(3).devices() == {cpu}
    if device != cpu:
        with pytest.raises(ValueError, match="committed to different devices"):
            x + y


def test_uncommitted_arrays_follow(device: Any, cpu: Any) -> None:
    free = jnp.arange(3.0)
    assert free.devices() == {device}
    assert (free + perspex.device_put(np.ones(3), cpu)).devices() == {cpu}


def test_memories(device: Any) -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for memory in device.addressable_memories():
        place = perspex.sharding.SingleDeviceSharding(device, memory_kind=memory.kind)
        there = perspex.device_put(x, place)
        assert there.sharding.memory_kind == memory.kind
        np.testing.assert_array_equal(there, x)
    assert device.default_memory().kind in {m.kind for m in device.addressable_memories()}


def test_offload(device: Any) -> None:
    """Values that wait on the host inside a program."""
    if "pinned_host" not in {m.kind for m in device.addressable_memories()}:
        pytest.skip(f"{device.device_kind} has no pinned_host memory")
    host = perspex.memory.Space.Host

    @perspex.jit
    def f(x: Any) -> Any:
        waiting = perspex.device_put(jnp.sin(x), host)
        return perspex.device_put(waiting, perspex.memory.Space.Device) * 2

    x = np.linspace(0, 1, 1_000, dtype=np.float32)
    np.testing.assert_allclose(f(x), 2 * np.sin(x), rtol=1e-5)


def test_donation(device: Any) -> None:
    step = perspex.jit(lambda x, y: (x + y, y), donate_argnums=0)
    x, y = jnp.ones((64, 64)).block_until_ready(), jnp.full((64, 64), 2.0)
    where = x.unsafe_buffer_pointer()
    out, _ = step(x, y)
    assert x.is_deleted() and not y.is_deleted()
    assert out.unsafe_buffer_pointer() == where
    np.testing.assert_array_equal(out, np.full((64, 64), 3.0))
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


def test_memory_stats(device: Any, figures: dict[str, str]) -> None:
    stats = device.memory_stats()
    if stats is None:
        pytest.skip(f"{device.device_kind} does not count its memory")
    before = stats["bytes_in_use"]
    x = jnp.ones(32 << 20, jnp.uint8).block_until_ready()
    assert device.memory_stats()["bytes_in_use"] - before >= x.nbytes
    figures["memory"] = ", ".join(f"{name} {value:,}" for name, value in stats.items())


@pytest.mark.parametrize("library", ["numpy", "torch", "cupy"])
def test_dlpack(library: str, device: Any) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    other = importlib.import_module(library)
    if library == "cupy" and xla.platform_of(device.client) != "cuda":
        pytest.skip("cupy computes on NVIDIA's GPUs only")
    if library == "numpy" and device.platform != "cpu":
        pytest.skip("NumPy computes on the processor only")
    x = jnp.arange(12.0).reshape(3, 4)
    theirs = other.from_dlpack(x)
    pointer = {
        "numpy": lambda: theirs.ctypes.data,
        "torch": lambda: theirs.data_ptr(),
        "cupy": lambda: theirs.data.ptr,
    }[library]()
    assert pointer == x.unsafe_buffer_pointer()
    back = jnp.from_dlpack(x if library == "numpy" else theirs)  # NumPy's are read-only
    assert back.devices() == {device} and back.unsafe_buffer_pointer() == pointer
    np.testing.assert_array_equal(back, np.arange(12.0).reshape(3, 4))


def test_callbacks(device: Any) -> None:
    if device.platform == "tpu":
        pytest.skip("there are no callbacks on TPUs")
    seen: list[float] = []
    like = perspex.ShapeDtypeStruct((4,), np.float32)

    @perspex.jit
    def f(x: Any) -> Any:
        def step(c: Any, v: Any) -> Any:
            perspex.debug.callback(lambda v: seen.append(float(v)), v, ordered=True)
            return c + v, v

        total, _ = lax.scan(step, 0.0, x)
        return perspex.pure_callback(lambda v: np.sort(v)[::-1].copy(), like, x) + total

    x = np.array([3.0, 1.0, 4.0, 1.0], np.float32)
    np.testing.assert_array_equal(f(x), np.sort(x)[::-1] + 9)
    perspex.effects_barrier()
    assert seen == [3.0, 1.0, 4.0, 1.0]


def test_an_error_in_a_callback(device: Any) -> None:
    if device.platform == "tpu":
        pytest.skip("there are no callbacks on TPUs")

    def fail(x: Any) -> Any:
        raise ZeroDivisionError("of the user")

    like = perspex.ShapeDtypeStruct((), np.float32)
    with pytest.raises((ZeroDivisionError, JaxRuntimeError), match="of the user"):
        perspex.jit(lambda x: perspex.pure_callback(fail, like, x))(1.0).block_until_ready()
    assert float(perspex.jit(lambda x: x + 1)(1.0)) == 2


def test_too_much() -> None:
    """An error that can be survived, with 50 tries of each kind."""
    huge = perspex.jit(lambda x: jnp.sort(x[:, None] * x).sum())
    x = jnp.ones(10**6)
    for _ in range(50):
        with pytest.raises(JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
            jnp.zeros((10**6, 10**6)).block_until_ready()
        with pytest.raises(JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
            huge(x).block_until_ready()
    assert float(x.sum()) == 10**6


def test_nans_are_found() -> None:
    with perspex.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.log(jnp.array(-1.0)).block_until_ready()


def test_what_was_fastest_is_kept(device: Any, tmp_path: Path) -> None:
    """XLA writes down which kernels it chose, in the folder of the cache."""
    if not xla.is_gpu(device.client):
        pytest.skip(f"nothing is tried out on {device.platform}")
    folder = tmp_path / "cache"
    with perspex.config.compilation_cache_dir(str(folder)):
        x = jnp.ones((300, 500), jnp.bfloat16)
        perspex.jit(lambda x: jnp.tanh(x @ x.T).sum(0))(x).block_until_ready()
    assert any(path.is_file() for path in folder.glob("tuned-*/**/*"))
