"""What DLPack says of memory: the numbers of devices, and the type of what a capsule holds.

The layouts are those of `dlpack.h`, versions 0.8 and 1.0.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray

CPU = 1
# The number of each platform's devices.
KINDS = {"cpu": CPU, "cuda": 2, "rocm": 10}
PLATFORMS = {kind: platform for platform, kind in KINDS.items()}

_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"
# NumPy's letters of the kinds of numbers by their codes.
_LETTERS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_BFLOAT = 4


class _Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("owner", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


def type_of(capsule: Any) -> ShapedArray:
    """The shape and dtype of what a capsule holds that nobody has taken yet.

    Raises `TypeError` for numbers that no array of ours has.
    """
    if _is_valid(capsule, _VERSIONED):
        tensor = _Versioned.from_address(_pointer(capsule, _VERSIONED)).tensor
    else:
        tensor = _Tensor.from_address(_pointer(capsule, _PLAIN))
    shape = tuple(int(tensor.shape[i]) for i in range(tensor.ndim))
    return ShapedArray(shape, _dtype(tensor.code, tensor.bits, tensor.lanes))


def _dtype(code: int, bits: int, lanes: int) -> np.dtype:
    if lanes == 1 and bits % 8 == 0:
        if code == _BFLOAT and bits == 16:
            return np.dtype(dtypes.bfloat16)
        if code in _LETTERS:
            return np.dtype(f"{_LETTERS[code]}{bits // 8}")
    raise TypeError(
        f"from_dlpack: no dtype has the DLPack code {code} with {bits} bits and {lanes} lanes; "
        "convert the array before it is exported"
    )
