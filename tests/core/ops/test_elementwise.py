"""Arithmetic, comparison, bits, transcendental functions, choice: against NumPy and SciPy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import harness
from support.harness import (
    ANY,
    BITS,
    COMPLEX,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMBERS,
    REALS,
    Draw,
    Op,
    Sample,
    booleans,
    distinct,
    given,
    integers,
    normal,
    sample,
    uniform,
)

import perspex
from perspex import jit
from perspex import numpy as pnp
from perspex.ops import elementwise as e
from perspex.ops import families

SHAPE = (2, 3)
NO_LOW = ("float32", "float64", "complex64", "complex128")


def one(*draws: Draw) -> list[Sample]:
    """A sample of arrays; the scalar cases are in `MIXED`."""
    return [sample(*draws)]


def unary(
    primitive: Any,
    reference: Callable[..., Any],
    draw: Draw | None = None,
    dtypes: Any = INEXACT,
    **options: Any,
) -> Op:
    return Op(primitive, reference, one(draw or normal(*SHAPE)), dtypes, **options)


def binary(
    primitive: Any,
    reference: Callable[..., Any],
    x: Draw | None = None,
    y: Draw | None = None,
    dtypes: Any = NUMBERS,
    **options: Any,
) -> Op:
    x, y = x or normal(*SHAPE), y or normal(*SHAPE)
    return Op(primitive, reference, one(x, y), dtypes, **options)


def real_of(dtype: np.dtype) -> np.dtype:
    return np.dtype({"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype))


def as_bool(dtype: np.dtype) -> np.dtype:
    return np.dtype(bool)


def truncated(x: Any, y: Any) -> Any:
    """Integer division towards zero, as in C."""
    if np.asarray(x).dtype.kind in "iu":
        return (np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))).astype(x.dtype)
    return x / y


def ordered_extreme(larger: bool) -> Callable[..., Any]:
    """Complex numbers by real part, then imaginary part; the others as they are."""

    def reference(x: Any, y: Any) -> Any:
        if x.dtype.kind != "c":
            return (np.maximum if larger else np.minimum)(x, y)
        first = (x.real > y.real) | ((x.real == y.real) & (x.imag > y.imag))
        return np.where(first == larger, x, y)

    return reference


positive = uniform(0.2, 3.0, *SHAPE)
inner = uniform(0.1, 0.9, *SHAPE)
nonzero = uniform(1, 5, *SHAPE)
signed_unit = given([[-0.9, -0.4, 0.1], [0.3, 0.6, 0.95]])

ARITHMETIC = [
    unary(e.neg, np.negative, dtypes=NUMBERS, linear=((0,),)),
    binary(e.add, np.add, linear=((0,), (1,), (0, 1))),
    binary(families.add_any, np.add, linear=((0,), (1,), (0, 1))),
    binary(e.sub, np.subtract, linear=((0,), (1,), (0, 1))),
    binary(e.mul, np.multiply, linear=((0,), (1,)), tolerance=2),
    binary(e.div, truncated, y=nonzero, linear=((0,),), tolerance=2),
    binary(e.rem, np.fmod, y=nonzero, dtypes=REALS, tolerance=2),
    binary(e.max, ordered_extreme(True), distinct(*SHAPE), distinct(*SHAPE, offset=0.25), ANY),
    binary(e.min, ordered_extreme(False), distinct(*SHAPE), distinct(*SHAPE, offset=0.25), ANY),
    unary(e.relu, lambda x: np.maximum(x, x.dtype.type(0)), nonzero, REALS),
    unary(
        e.sign,
        lambda x: x / np.abs(x) if x.dtype.kind == "c" else np.sign(x),
        nonzero,
        NUMBERS,
    ),
    unary(e.abs, np.abs, nonzero, NUMBERS, result=real_of),
    unary(e.square, np.square, dtypes=NUMBERS, tolerance=2),
    unary(e.floor, np.floor, uniform(0.1, 0.9, *SHAPE), FLOATS),
    unary(e.floor, np.floor, dtypes=FLOATS, smooth=(), name="floor of any"),
    unary(e.ceil, np.ceil, dtypes=FLOATS, smooth=()),
    unary(
        e.is_finite,
        np.isfinite,
        given([1.0, np.nan, np.inf, -np.inf, 0.0]),
        FLOATS,
        result=as_bool,
        smooth=(),
    ),
    binary(e.nextafter, np.nextafter, dtypes=("float32",), result=None, tolerance=0, smooth=()),
]

TRANSCENDENTAL = [
    unary(e.exp, np.exp, tolerance=4),
    unary(e.exp2, np.exp2, tolerance=4),
    unary(e.expm1, np.expm1, tolerance=4),
    unary(e.log2, np.log2, positive, tolerance=4),
    unary(e.one_minus_square, lambda x: 1 - x * x, inner, tolerance=4),
    unary(e.log, np.log, positive, tolerance=4),
    unary(e.log1p, np.log1p, inner, tolerance=4),
    unary(e.logistic, lambda x: 1 / (1 + np.exp(-x)), tolerance=4),
    unary(e.sqrt, np.sqrt, positive, tolerance=2),
    unary(e.rsqrt, lambda x: 1 / np.sqrt(x), positive, tolerance=4),
    unary(e.cbrt, np.cbrt, nonzero, FLOATS, tolerance=4),
    unary(e.sin, np.sin, tolerance=4),
    unary(e.cos, np.cos, tolerance=4),
    unary(e.tan, np.tan, inner, tolerance=8),
    unary(e.asin, np.arcsin, inner, tolerance=8),
    unary(e.acos, np.arccos, inner, tolerance=8),
    unary(e.atan, np.arctan, inner, tolerance=8),
    unary(e.sinh, np.sinh, tolerance=8),
    unary(e.cosh, np.cosh, tolerance=8),
    unary(e.tanh, np.tanh, inner, tolerance=8),
    unary(e.asinh, np.arcsinh, inner, tolerance=8),
    unary(e.acosh, np.arccosh, uniform(1.2, 4.0, *SHAPE), tolerance=16),
    unary(e.atanh, np.arctanh, inner, tolerance=8),
    binary(e.atan2, np.arctan2, dtypes=FLOATS, tolerance=4),
    Op(
        e.integer_pow,
        lambda x, y: np.asarray(x) ** (float(y) if x.dtype.kind == "f" else y),
        [sample(uniform(0.5, 2.0, *SHAPE), y=y) for y in (-3, -1, 0, 1, 2, 3, 7)],
        INEXACT,
        tolerance=16,
    ),
    Op(
        e.integer_pow,
        lambda x, y: x**y,
        [sample(uniform(1, 3, *SHAPE), y=y) for y in (0, 1, 2, 3, 5)],
        INTEGERS,
        name="integer_pow of integers",
    ),
    binary(e.pow, np.power, positive, dtypes=INEXACT, tolerance=16),
    binary(e.pow, np.power, uniform(0, 3, *SHAPE), uniform(0, 3, *SHAPE), INTEGERS,
           name="pow of integers"),
    binary(e.pow, lambda x, y: x**y, uniform(0.5, 2, *SHAPE), integers(-3, 4, *SHAPE), INEXACT,
           tolerance=16, weak=None, name="pow to an integer"),
]  # fmt: skip

LOGIC = [
    unary(e.bitwise_not, np.invert, dtypes=BITS),
    binary(e.bitwise_and, np.bitwise_and, dtypes=BITS),
    binary(e.bitwise_or, np.bitwise_or, dtypes=BITS),
    binary(e.bitwise_xor, np.bitwise_xor, dtypes=BITS),
    binary(e.shift_left, np.left_shift, y=uniform(0, 5, *SHAPE), dtypes=INTEGERS),
    binary(e.shift_right_arithmetic, np.right_shift, y=uniform(0, 5, *SHAPE), dtypes=INTEGERS),
    binary(
        e.shift_right_logical,
        lambda x, y: (x.view(f"u{x.itemsize}") >> y.astype(f"u{x.itemsize}")).view(x.dtype),
        y=uniform(0, 5, *SHAPE),
        dtypes=INTEGERS,
    ),
    unary(e.population_count, lambda x: np.bitwise_count(x.view(f"u{x.itemsize}")),
          dtypes=INTEGERS),
    unary(
        e.clz,
        lambda x: np.vectorize(lambda n: 8 * x.itemsize - int(n).bit_length())(
            x.view(f"u{x.itemsize}")
        ),
        dtypes=INTEGERS,
    ),
    *[
        binary(getattr(e, name), reference, normal(4, 5, scale=0.7), normal(4, 5, scale=0.7),
               dtypes, result=as_bool, smooth=())
        for name, reference, dtypes in [
            ("eq", np.equal, ANY),
            ("ne", np.not_equal, ANY),
            ("lt", np.less, (*REALS, "bool")),
            ("le", np.less_equal, (*REALS, "bool")),
            ("gt", np.greater, (*REALS, "bool")),
            ("ge", np.greater_equal, (*REALS, "bool")),
        ]
    ],
]  # fmt: skip

PARTS = [
    unary(e.real, np.real, dtypes=COMPLEX, result=real_of, linear=((0,),)),
    unary(e.imag, np.imag, dtypes=COMPLEX, result=real_of, linear=((0,),)),
    unary(e.conj, np.conj, dtypes=COMPLEX, linear=((0,),)),
    unary(
        e.conj,
        np.conj,
        dtypes=("float32", "float64"),
        result=lambda d: np.dtype("complex128" if d.itemsize == 8 else "complex64"),
        linear=((0,),),
        name="conj of reals",
    ),
    binary(
        e.complex,
        lambda x, y: x + 1j * y,
        dtypes=("float32", "float64"),
        result=lambda d: np.dtype("complex128" if d.itemsize == 8 else "complex64"),
        linear=((0,), (1,), (0, 1)),
    ),
    unary(e.copy, np.array, dtypes=ANY, tolerance=0, linear=((0,),)),
    Op(
        e.round,
        lambda x, rounding_method: (
            np.rint(x) if int(rounding_method) else np.trunc(x + np.copysign(0.5, x))
        ),
        [sample(given([-2.5, -1.2, -0.5, 0.5, 1.5, 2.5, 3.7]), rounding_method=m) for m in (0, 1)],
        FLOATS,
        smooth=(),
    ),
    Op(
        e.reduce_precision,
        # Five exponent and ten mantissa bits: half precision.
        lambda x, exponent_bits, mantissa_bits: x.astype(np.float16),
        [sample(normal(*SHAPE), exponent_bits=5, mantissa_bits=10)],
        ("float32", "float64"),
        tolerance=0,
        smooth=(),
    ),
]


def chosen(which: Any, *cases: Any) -> Any:
    return np.choose(np.clip(which, 0, len(cases) - 1).astype(int), cases)


def clamped(low: Any, x: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


CHOICE = [
    Op(
        e.select_n,
        chosen,
        [
            Sample((booleans(*SHAPE), normal(*SHAPE), normal(*SHAPE)), linear=((1,), (2,), (1, 2))),
            Sample((booleans(), normal(*SHAPE), normal(*SHAPE)), linear=((1,), (2,))),
            Sample((booleans(*SHAPE), normal(), normal()), linear=((1,), (2,))),
            Sample((booleans(*SHAPE), normal(*SHAPE), normal()), linear=((1,), (2,), (1, 2))),
            sample(integers(-1, 5, *SHAPE), normal(*SHAPE), normal(*SHAPE), normal(*SHAPE)),
            sample(integers(0, 2), normal(*SHAPE), normal(*SHAPE)),
            Sample((integers(0, 2, *SHAPE), normal(*SHAPE)), linear=((1,),)),
        ],
        ANY,
        tolerance=0,
    ),
    Op(
        e.clamp,
        clamped,
        [
            sample(given(-1), distinct(*SHAPE), given(1)),
            sample(distinct(*SHAPE), distinct(*SHAPE, offset=0.1), distinct(*SHAPE, offset=0.3)),
            sample(given(0), distinct(), given(1)),
        ],
        (*REALS, "bool"),
        tolerance=0,
    ),
]

# One operand a scalar, on either side: what the batch rules of families have to line up.
MIXED = [
    Op(
        primitive,
        reference,
        [
            sample(normal(), uniform(1, 4, *SHAPE)),
            sample(normal(*SHAPE), uniform(1, 4)),
            sample(normal(), uniform(1, 4)),
            sample(normal(0, 2), uniform(1, 4)),
        ],
        ("float32", "float64", "complex128"),
        linear=linear,
        tolerance=4,
        name=f"{primitive.name} with a scalar",
    )
    for primitive, reference, linear in [
        (e.add, np.add, ((0,), (1,), (0, 1))),
        (e.sub, np.subtract, ((0,), (1,), (0, 1))),
        (e.mul, np.multiply, ((0,), (1,))),
        (e.div, np.divide, ((0,),)),
    ]
] + [
    Op(
        e.max,
        np.maximum,
        [sample(distinct(), distinct(*SHAPE, offset=0.25)), sample(distinct(*SHAPE), given(0.3))],
        ("float32", "float64"),
        name="max with a scalar",
    ),
    Op(
        e.pow,
        np.power,
        [sample(positive, given(2.5)), sample(given(1.5), positive)],
        ("float32", "float64"),
        tolerance=16,
        name="pow with a scalar",
    ),
]

(
    test_value,
    test_staged,
    test_jvp,
    test_transpose,
    test_batch,
    test_weak,
) = harness.tests([*ARITHMETIC, *TRANSCENDENTAL, *LOGIC, *PARTS, *CHOICE, *MIXED])


DIVISIONS = """
import numpy as np, perspex
from perspex import lax

def known(op, dtype):
    return perspex.jit(lambda: op(np.full(3, 7, dtype), np.array([0, 2, 0], dtype)))()

def found_out(op, dtype):
    return perspex.jit(lambda x: op(np.full(3, 7, dtype), x - x))(np.arange(3, dtype=dtype))

for dtype in ("int8", "uint8", "int32"):
    top = np.iinfo(dtype).max if dtype == "uint8" else -1
    assert known(lax.div, dtype).tolist() == [top, 3, top]
    assert known(lax.rem, dtype).tolist() == [7, 1, 7]
    assert found_out(lax.div, dtype).tolist() == [top] * 3
    assert found_out(lax.rem, dtype).tolist() == [7] * 3
    assert perspex.jit(lambda x: lax.div(x, np.array(2, dtype)))(np.array(7, dtype)) == 3
perspex.jit(lambda: perspex.numpy.mean(perspex.numpy.zeros(0), dtype=int))()
"""


def test_integers_divided_by_a_known_zero() -> None:
    # In a process of its own, which the compiler would end. The results are those of XLA on
    # operands that it does not know.
    done = subprocess.run([sys.executable, "-c", DIVISIONS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("optimized")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("op", [e.exp, e.exp2, e.logistic, e.expm1, e.tanh], ids=str)
def test_a_nan_that_the_compiler_knows_stays_one(op: Any, dtype: str) -> None:
    # LLVM takes the exponential of a constant NaN for undefined, and leaves the memory as it was.
    with perspex.enable_x64(True):
        x = pnp.linspace(0, 1, 8, dtype=dtype)
        f = jit(lambda is_nan, x: op(pnp.where(is_nan, np.nan, x)))
        for _ in range(3):
            assert np.isnan(np.asarray(f(True, x), "float64")).all()
        np.testing.assert_array_equal(f(False, x), jit(op)(x))
        assert np.isnan(np.asarray(jit(lambda x: op(x * np.nan))(x), "float64")).all()


def test_exponentials_of_programs_without_nan_are_one_operation() -> None:
    for op in (e.exp, e.logistic):
        assert "select" not in jit(lambda x, op=op: op(x + 1)).lower(np.ones(3)).as_text()


CUT = [complex(0.0, -2), complex(-0.0, 2), complex(-2, -0.0), complex(-0.5, -0.0)]


@pytest.mark.parametrize("name", ["asinh", "acosh"])
@pytest.mark.parametrize("z", CUT)
def test_slopes_beside_a_branch_cut_are_those_of_its_side(name: str, z: complex) -> None:
    """The sign of a zero says on which side, also for NumPy, whose values along the cut differ."""
    f, h = getattr(np, f"arc{name[1:]}"), 1e-4
    if z.real == 0:
        ahead, behind, step = complex(z.real, z.imag + h), complex(z.real, z.imag - h), 2j * h
    else:
        ahead, behind, step = complex(z.real + h, z.imag), complex(z.real - h, z.imag), 2 * h
    found = perspex.grad(getattr(e, name), holomorphic=True)(np.complex64(z))
    np.testing.assert_allclose(found, (f(ahead) - f(behind)) / step, 1e-3, 1e-6)
