"""The libraries of linear algebra: LAPACK on CPUs, their likes on GPUs, XLA's own on TPUs.

The libraries of NVIDIA's and AMD's GPUs have the same routines, under names with another beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.hlo import lapack, types
from perspex.ir.avals import ShapedArray

# How the names begin of the vendors' libraries, and of jaxlib's kernels for their GPUs.
_VENDORS = {"cuda": "cu", "rocm": "hip"}

# Routines that MAGMA may run, if it is installed.
AUTO_MAGMA = 'magma = "auto"'

# A value with its type and its number of trailing axes that make up one element of the batch; a
# result has no value.
Operand = tuple[Any, ShapedArray, int]
Result = tuple[ShapedArray, int]


def is_gpu(b: Any) -> bool:
    """Whether the program is for a GPU of a vendor that is known."""
    return b.platform in _VENDORS


def code(letter: str) -> str:
    """A character argument of LAPACK as an attribute."""
    return f"{ord(letter)} : ui8"


def flag(name: str, value: bool) -> str:
    """A boolean argument as an attribute."""
    return f"{name} = {str(value).lower()}"


def call(
    b: Any,
    name: str,
    routines: tuple[str, str],
    operands: Sequence[Operand],
    results: Sequence[Result],
    attributes: tuple[str, str] = ("", ""),
    aliases: Sequence[tuple[int, int]] = (),
) -> list[Any]:
    """Emit a call of a routine of LAPACK, or of the one of GPUs: names and attributes of both.

    `name` is that of the operation. Raises `NotImplementedError` on other platforms.
    """
    if b.platform == "cpu":
        return call_lapack(b, routines[0], operands, results, attributes[0], aliases)
    return call_gpu(b, name, routines[1], operands, results, attributes[1], aliases)


def call_lapack(
    b: Any,
    routine: str,
    operands: Sequence[Operand],
    results: Sequence[Result],
    attributes: str = "",
    aliases: Sequence[tuple[int, int]] = (),
) -> list[Any]:
    """Emit a call of a LAPACK routine; the first operand has its dtype."""
    target = lapack.target(routine, operands[0][1].dtype)
    return b.ffi_call(target, operands, results, attributes, aliases)


def call_gpu(
    b: Any,
    name: str,
    routine: str,
    operands: Sequence[Operand],
    results: Sequence[Result],
    attributes: str = "",
    aliases: Sequence[tuple[int, int]] = (),
    by_rows: bool = False,
) -> list[Any]:
    """Emit a call of a routine for GPUs, `solver_getrf_ffi` or `_lu_pivots_to_permutation` for one.

    Raises `NotImplementedError` on other platforms.
    """
    if not is_gpu(b):
        raise refused(b, name)
    batch = operands[0][1].ndim - operands[0][2]
    if by_rows:
        operands = [(value, aval, 0) for value, aval, _ in operands]
        results = [(aval, 0) for aval, _ in results]
    frontend = {"num_batch_dims": str(batch)}
    target = _VENDORS[b.platform] + routine
    return b.ffi_call(target, operands, results, attributes, aliases, frontend)


def call_tpu(
    b: Any,
    routine: str,
    operands: Sequence[Any],
    results: Sequence[ShapedArray],
    config: str = "",
    version: int = 1,
) -> list[Any]:
    """Emit a call of a routine that XLA's compiler for TPUs knows."""
    attributes = {
        "call_target_name": types.string(routine),
        "backend_config": types.string(config),
        "api_version": types.integer(version, 32),
    }
    return list(b.ops("stablehlo.custom_call", operands, results, attributes).results)


def refused(b: Any, name: str) -> NotImplementedError:
    """The error on a platform for which there is no routine."""
    return NotImplementedError(
        f"{name} is not available on the platform {b.platform!r}; "
        "compute it on the CPU: device_put(x, devices('cpu')[0])"
    )


def needs_cpu(b: Any, name: str) -> None:
    """Refuse all platforms but the CPU, for what LAPACK alone has."""
    if b.platform != "cpu":
        raise refused(b, name)
