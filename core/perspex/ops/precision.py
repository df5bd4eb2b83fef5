"""How exactly products are computed: precisions, which accelerators read, and algorithms.

An algorithm says to which types operands are rounded and in which type products are added up. It
takes the place of a precision wherever products of matrices take one.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from perspex import config, dtypes
from perspex.hlo import types

# ---- Precisions ---------------------------------------------------------------------------------


class Precision(enum.Enum):
    """How exactly an accelerator multiplies float32; CPUs are exact at every setting.

    `DEFAULT` is the fastest, `HIGHEST` computes in float32. Strings name them as well:
    `"default"`, `"high"`, `"highest"`, or what they come down to on a TPU, `"bfloat16"`,
    `"bfloat16_3x"`, `"float32"`; also `"fastest"` and `"tensorfloat32"`.

    >>> Precision("highest")
    Precision.HIGHEST
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        try:
            return _PRECISIONS.get(value)
        except TypeError:
            return None

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


_PRECISIONS: dict[object, Precision] = {
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    None: Precision.DEFAULT,
}
PrecisionPair = tuple[Precision, Precision]
DEFAULT: PrecisionPair = (Precision.DEFAULT, Precision.DEFAULT)

# ---- Algorithms ---------------------------------------------------------------------------------


class DotAlgorithm(NamedTuple):
    """An algorithm for products of matrices, as `precision=` of `dot_general` takes it.

    Args:
      lhs_precision_type, rhs_precision_type: the dtypes to which the operands are rounded.
      accumulation_type: the dtype in which products are added up.
      lhs_component_count, rhs_component_count: into how many parts an operand is split.
      num_primitive_operations: how many products of parts are computed.
      allow_imprecise_accumulation: whether sums may be less exact for a while.

    Returns:
      The algorithm. CPUs support none but some of `DotAlgorithmPreset`.

    References:
      StableHLO specification, `dot_general`.

    >>> import numpy as np
    >>> DotAlgorithm(np.float16, np.float16, np.float32).num_primitive_operations
    1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class _Row(NamedTuple):
    """What a preset stands for: `None` says that the operands or the caller decide.

    `storage` are the dtypes that operands may have, others are converted to the first of them.
    `rounds_to` is the type that StableHLO calls the operands' precision.
    """

    storage: tuple[Any, ...] | None
    rounds_to: str | None
    accumulation: Any
    operations: int = 1
    on_cpu: bool = False
    is_fast: bool = False


_F16, _F32, _F64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
_BF16 = np.dtype(ml_dtypes.bfloat16)
_ROWS = {
    "DEFAULT": _Row(None, None, None, on_cpu=True),
    "ANY_F8_ANY_F8_F32": _Row(None, None, _F32),
    "ANY_F8_ANY_F8_F32_FAST_ACCUM": _Row(None, None, _F32, is_fast=True),
    "ANY_F8_ANY_F8_ANY": _Row(None, None, None),
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM": _Row(None, None, None),
    "F16_F16_F16": _Row((_F16,), "f16", _F16, on_cpu=True),
    "F16_F16_F32": _Row((_F16,), "f16", _F32),
    "BF16_BF16_BF16": _Row((_BF16, _F32), "bf16", _BF16),
    "BF16_BF16_F32": _Row((_BF16, _F32), "bf16", _F32, on_cpu=True),
    "BF16_BF16_F32_X3": _Row((_F32,), "bf16", _F32, 3, on_cpu=True),
    "BF16_BF16_F32_X6": _Row((_F32,), "bf16", _F32, 6, on_cpu=True),
    "BF16_BF16_F32_X9": _Row((_F32,), "bf16", _F32, 9),
    "TF32_TF32_F32": _Row((_F32,), "tf32", _F32),
    "TF32_TF32_F32_X3": _Row((_F32,), "tf32", _F32, 3),
    "F32_F32_F32": _Row((_F32,), "f32", _F32, on_cpu=True),
    "F64_F64_F64": _Row((_F64,), "f64", _F64, on_cpu=True),
}
# What an algorithm for float8 may return.
_OF_FLOAT8 = (
    *(_F32, _F16, _BF16),
    *[
        np.dtype(getattr(ml_dtypes, f"float8_{kind}"))
        for kind in ("e4m3fn", "e5m2", "e5m2fnuz", "e4m3fnuz", "e4m3b11fnuz")
    ],
)


class DotAlgorithmPreset(enum.Enum):
    """Algorithms for products of matrices that some platform supports.

    `LHS_RHS_SUM` are the types of the operands and of the sum. `_X3` computes three products to
    make up for the rounding, `_X6` six; `_FAST_ACCUM` lets the sum be less exact for a while.
    The name of a member is as good as the member.

    >>> import numpy as np
    >>> from perspex import lax
    >>> x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    >>> lax.dot(x, x, precision=lax.DotAlgorithmPreset.F32_F32_F32)
    Array([[ 7., 10.],
           [15., 22.]], dtype=float32)
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def row(self) -> _Row:
        return _ROWS[self.name]

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """The dtypes that the left operand may have; others become the first. `None`: any."""
        return self.row.storage

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """The dtypes that the right operand may have; others become the first. `None`: any."""
        return self.row.storage

    @property
    def accumulation_type(self) -> Any:
        """The dtype in which products are added up; `None`: that of the result."""
        return self.row.accumulation

    def supported_output_types(self, lhs_dtype: Any, rhs_dtype: Any) -> tuple[Any, ...] | None:
        """The dtypes that the product of operands of two dtypes may have. `None`: any."""
        if self.name.startswith("ANY_F8_ANY_F8_F32"):
            return _OF_FLOAT8
        total = self.row.accumulation
        if self.name in ("F16_F16_F32", "BF16_BF16_F32"):
            half = _F16 if self.name[0] == "F" else _BF16
            if dtypes.promote_types(lhs_dtype, rhs_dtype) == half:
                return total, half
        return None if total is None else (total,)


Algorithm = DotAlgorithm | DotAlgorithmPreset
Choice = PrecisionPair | Algorithm | None


def canonical_precision(precision: Any) -> Choice:
    """What a user's `precision=` means: the precisions of both operands, or an algorithm.

    Takes `None` (then the flag `default_matmul_precision` counts, and if that is not set the result
    is `None`), a `Precision`, its name, a pair of them, an algorithm, or the name of a preset.
    Raises `ValueError` for anything else.

    >>> canonical_precision("highest")
    (Precision.HIGHEST, Precision.HIGHEST)
    """
    if precision is None:
        precision = config.default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    named = (Precision, str, type(None))
    try:
        if all(isinstance(p, named) for p in pair):
            left, right = [Precision(p) for p in pair]
            return left, right
    except ValueError:
        pass
    names = ", ".join([repr(name) for name in _PRECISIONS if name])
    raise ValueError(
        f"precision must be None, a lax.Precision, one of the strings {names}, a pair of such, a "
        f"lax.DotAlgorithm, or a lax.DotAlgorithmPreset or its name; got {precision!r}"
    )


# ---- Lowering -----------------------------------------------------------------------------------


@functools.cache
def precision_config(choice: Choice) -> Any:
    """StableHLO's attribute for the precisions of both operands."""
    pair = DEFAULT if choice is None or isinstance(choice, Algorithm) else choice
    names = ", ".join([f"#stablehlo<precision {p.name}>" for p in pair])
    return types.attribute(f"[{names}]")


class Plan(NamedTuple):
    """How a product is computed by an algorithm: the dtypes of operands and sum, the attribute."""

    lhs: Any
    rhs: Any
    total: Any
    attribute: Any


def planned(algorithm: Algorithm, platform: str, lhs: Any, rhs: Any, out: Any) -> Plan:
    """The plan for operands and a result of these dtypes.

    Raises `ValueError` for an algorithm that the platform or the dtypes rule out.
    """
    preset = algorithm if isinstance(algorithm, DotAlgorithmPreset) else None
    # XLA would compute something else on CPU, and not say so.
    if platform == "cpu" and not (preset and preset.row.on_cpu):
        names = ", ".join([name for name, row in _ROWS.items() if row.on_cpu])
        raise ValueError(
            f"The precision '{algorithm}' is not supported by dot_general on CPU; there are {names}"
        )
    if preset is None:
        assert isinstance(algorithm, DotAlgorithm)
        left, right, summed = [np.dtype(d) for d in algorithm[:3]]
        written = [_named(d) for d in (left, right, summed)]
        return Plan(left, right, summed, _attribute(written, algorithm[3:]))
    lhs, rhs = [_stored(d, preset.row.storage) for d in (lhs, rhs)]
    total = _stored(out, preset.supported_output_types(lhs, rhs))
    if preset is DotAlgorithmPreset.DEFAULT:
        return Plan(lhs, rhs, total, None)
    row = preset.row
    if row.rounds_to is None and not all(d.name.startswith("float8") for d in (lhs, rhs)):
        raise ValueError(
            f"The dot algorithm '{preset}' requires both inputs to have float8 dtypes, got "
            f"{lhs.name} and {rhs.name}; convert them"
        )
    summed = row.accumulation or _F32
    written = [*[row.rounds_to or _named(d) for d in (lhs, rhs)], _named(summed)]
    return Plan(lhs, rhs, total, _attribute(written, (1, 1, row.operations, row.is_fast)))


def _named(dtype: Any) -> str:
    return str(types.element_type(dtype))


def _stored(dtype: Any, allowed: tuple[Any, ...] | None) -> Any:
    return dtype if allowed is None or dtype in allowed else allowed[0]


def _attribute(names: Sequence[str], numbers: tuple[int, ...]) -> Any:
    lhs, rhs, total = names
    lhs_parts, rhs_parts, operations, is_fast = numbers
    return types.attribute(
        f"#stablehlo.dot_algorithm<lhs_precision_type = {lhs}, rhs_precision_type = {rhs}, "
        f"accumulation_type = {total}, lhs_component_count = {lhs_parts}, "
        f"rhs_component_count = {rhs_parts}, num_primitive_operations = {operations}, "
        f"allow_imprecise_accumulation = {str(bool(is_fast)).lower()}>"
    )
