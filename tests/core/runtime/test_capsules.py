"""Types of what other libraries export, and memory of accelerators."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perspex
from perspex.base import xla
from perspex.runtime import capsules, client, platforms

DTYPES = ["float32", "float64", "float16", "int8", "int16", "uint32", "complex64", "bool"]


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_types(dtype: str, version: Any) -> None:
    x = np.zeros((2, 0, 3), dtype)
    try:
        capsule = x.__dlpack__(**({"max_version": version} if version else {}))
    except TypeError:  # of NumPy 1
        pytest.skip(f"NumPy {np.__version__} exports no versions")
    found = capsules.type_of(capsule)
    assert found.shape == (2, 0, 3) and found.dtype == np.dtype(dtype)


def test_types_of_ours() -> None:
    x = perspex.numpy.zeros((3, 1), "bfloat16")
    found = capsules.type_of(x.__dlpack__())
    assert found.shape == (3, 1) and found.dtype == np.dtype(ml_dtypes.bfloat16)


def test_a_type_that_there_is_not() -> None:
    with pytest.raises(TypeError, match="code 2 with 32 bits and 4 lanes"):
        capsules._dtype(2, 32, 4)
    with pytest.raises(TypeError, match="code 9 with 8 bits"):
        capsules._dtype(9, 8, 1)


class Tensor:
    """A tensor of another library, on the second device of a GPU's platform."""

    def __init__(self, x: Any, kind: int = 2, number: int = 0) -> None:
        self.x, self.kind, self.number = x, kind, number
        self.streams: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, self.number

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.streams.append(-1 if stream is None else stream)
        return self.x.__dlpack__()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A platform of the name `cuda`, which the CPU stands for, with the stream 77."""
    monkeypatch.setattr(platforms, "_registered", {})
    monkeypatch.setattr(client, "_clients", dict(client._clients))
    monkeypatch.setattr(client, "_asked", dict(client._asked))
    platforms.register("cuda", lambda: xla.make_cpu_client(num_devices=1), 0)
    monkeypatch.setattr(xla, "stream_of", lambda device: 77)
    monkeypatch.setattr(xla, "from_dlpack", without_stream(xla.from_dlpack))
    return perspex.devices("cuda")[0]


def without_stream(original: Any) -> Any:
    def shared(capsule: Any, device: Any, stream: Any, copy: Any) -> Any:
        assert stream == 77
        return original(capsule, device, None, copy)

    return shared


def test_memory_of_an_accelerator_is_shared(gpu: Any) -> None:
    there = perspex.device_put(np.arange(6.0, dtype=np.float32).reshape(2, 3), gpu)
    theirs = Tensor(there)
    x = perspex.dlpack.from_dlpack(theirs)
    assert theirs.streams == [77]
    assert x.devices() == {gpu} and x.shape == (2, 3) and x.dtype == np.float32
    assert x.unsafe_buffer_pointer() == there.unsafe_buffer_pointer()
    np.testing.assert_array_equal(x, there)


def test_wide_numbers_of_an_accelerator(gpu: Any) -> None:
    with perspex.enable_x64(True):
        there = perspex.device_put(np.arange(3.0), gpu)
    with pytest.raises(TypeError, match="float64 need enable_x64"):
        perspex.dlpack.from_dlpack(Tensor(there))


@pytest.mark.parametrize(("kind", "number"), [(2, 5), (7, 0)])
def test_memory_out_of_reach(gpu: Any, kind: int, number: int) -> None:
    theirs = Tensor(perspex.device_put(np.ones(3), gpu), kind, number)
    with pytest.raises(RuntimeError, match=f"device type {kind}, device {number}"):
        perspex.dlpack.from_dlpack(theirs)
