"""How elementwise operations are lowered that StableHLO lacks, or that lose digits there.

Each function takes the builder and the values of the operands, and emits the result.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.base import xla
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops.accuracy import Accuracy, attributes


def real_dtype(dtype: Any) -> Any:
    """float32 for complex64, float64 for complex128, the dtype itself for others."""
    return {"complex64": np.dtype("float32"), "complex128": np.dtype("float64")}.get(
        dtype.name, dtype
    )


def parts_of(b: Any, x: Any, given: ShapedArray) -> tuple[ShapedArray, Any, Any]:
    """The type of the parts of a complex value of type `given`, and both parts."""
    part = ShapedArray(given.shape, real_dtype(given.dtype))
    return part, b.op("stablehlo.real", x, aval=part), b.op("stablehlo.imag", x, aval=part)


def extremum(b: Any, op: str, direction: str, x: Any, y: Any) -> Any:
    """`op`; complex numbers compare by real part, then by imaginary part, as in NumPy."""
    out = b.out_avals[0]
    if out.dtype.kind != "c":
        return b.op(op, x, y)
    part, rx, ix = parts_of(b, x, out)
    _, ry, iy = parts_of(b, y, out)
    flag = ShapedArray(out.shape, np.dtype(bool))
    by_real = b.compare(direction, rx, ry, part)
    by_imag = b.compare(direction, ix, iy, part)
    same = b.compare("EQ", rx, ry, part)
    chosen = b.op("stablehlo.select", same, by_imag, by_real, aval=flag)
    return b.op("stablehlo.select", chosen, x, y)


def quotient(b: Any, op: str, x: Any, y: Any) -> Any:
    """`op`, a division or its remainder, of integers by zero too: -1, and what was divided.

    That is what XLA makes of it; the zero is only kept from compilers that fail on it.
    """
    out = b.out_avals[0]
    if not xla.FOLDS_DIVISIONS_BY_ZERO and dtypes.issubdtype(out.dtype, np.integer):
        if b.is_without_zero(y):
            return b.op(op, x, y)
        is_zero = b.compare("EQ", y, b.constant(0, out), out)
        safe = b.op("stablehlo.select", is_zero, b.constant(1, out), y)
        whole = ~np.zeros((), out.dtype)
        of_zero = b.constant(whole, out) if op == "stablehlo.divide" else x
        return b.op("stablehlo.select", is_zero, of_zero, b.op(op, x, safe))
    return b.op(op, x, b.spread_anew(y, out) if op == "stablehlo.divide" else y)


def comparison(b: Any, direction: str, x: Any, y: Any) -> Any:
    """The comparison of numbers; typed keys are equal when all their numbers are."""
    (out,), given = b.out_avals, b.in_avals[0]
    numbers = ShapedArray(out.shape, given.dtype).physical()
    found = b.compare(direction, x, y, numbers)
    if not given.is_extended:
        return found
    op, identity = ("and", True) if direction == "EQ" else ("or", False)
    scalar = ShapedArray((), np.dtype(bool))
    axes = types.integers(tuple(range(out.ndim, numbers.ndim)))
    reduce = b.ops(
        "stablehlo.reduce",
        [found, b.constant(identity, scalar)],
        [out],
        {"dimensions": axes},
        regions=1,
    )
    with b.block(reduce.regions[0], [scalar, scalar]) as (inner, values):
        inner.terminate("stablehlo.return", [inner.op(f"stablehlo.{op}", *values, aval=scalar)])
    return reduce.result


def sign(b: Any, x: Any) -> Any:
    out = b.out_avals[0]
    if not dtypes.issubdtype(out.dtype, np.unsignedinteger):
        return b.op("stablehlo.sign", x)
    zero = b.constant(0, out)
    return b.op("stablehlo.select", b.compare("EQ", x, zero, out), zero, b.constant(1, out))


def absolute(b: Any, x: Any) -> Any:
    unsigned = dtypes.issubdtype(b.in_avals[0].dtype, np.unsignedinteger)
    return x if unsigned else b.op("stablehlo.abs", x)


def one_minus_square(b: Any, x: Any) -> Any:
    """(1 - x)(1 + x)"""
    out = b.out_avals[0]
    one = b.constant(1, out)
    down, up = b.op("stablehlo.subtract", one, x), b.op("stablehlo.add", one, x)
    return b.op("stablehlo.multiply", down, up)


def sine(b: Any, x: Any, accuracy: Accuracy | None = None) -> Any:
    """sin(p + iq) = sin p cosh q + i cos p sinh q; XLA's own loses small numbers."""
    out = b.out_avals[0]
    if out.dtype.kind != "c":
        return b.op("stablehlo.sine", x, attributes=attributes(accuracy))
    part, p, q = parts_of(b, x, out)
    cosh_q, sinh_q = _cosh_and_sinh(b, q, part)
    re = b.op("stablehlo.multiply", b.op("stablehlo.sine", p, aval=part), cosh_q, aval=part)
    im = b.op("stablehlo.multiply", b.op("stablehlo.cosine", p, aval=part), sinh_q, aval=part)
    # 0 also where cosh q is infinite.
    at_zero = b.compare("EQ", p, b.constant(0, part), part)
    return b.op("stablehlo.complex", b.op("stablehlo.select", at_zero, p, re, aval=part), im)


def cosine(b: Any, x: Any, accuracy: Accuracy | None = None) -> Any:
    """cos(p + iq) = cos p cosh q - i sin p sinh q; XLA's own loses small numbers."""
    out = b.out_avals[0]
    if out.dtype.kind != "c":
        return b.op("stablehlo.cosine", x, attributes=attributes(accuracy))
    part, p, q = parts_of(b, x, out)
    cosh_q, sinh_q = _cosh_and_sinh(b, q, part)
    minus_sine = b.op("stablehlo.negate", b.op("stablehlo.sine", p, aval=part), aval=part)
    re = b.op("stablehlo.multiply", b.op("stablehlo.cosine", p, aval=part), cosh_q, aval=part)
    im = b.op("stablehlo.multiply", minus_sine, sinh_q, aval=part)
    at_zero = b.compare("EQ", p, b.constant(0, part), part)
    im = b.op("stablehlo.select", at_zero, minus_sine, im, aval=part)
    return b.op("stablehlo.complex", re, im)


def _cosh_and_sinh(b: Any, q: Any, part: ShapedArray) -> tuple[Any, Any]:
    """From exp(q) - 1 and exp(-q) - 1, which keep the digits of a small q."""
    up = b.op("stablehlo.exponential_minus_one", q, aval=part)
    minus = b.op("stablehlo.negate", q, aval=part)
    down = b.op("stablehlo.exponential_minus_one", minus, aval=part)
    half, two = b.constant(0.5, part), b.constant(2, part)
    total = b.op("stablehlo.add", b.op("stablehlo.add", up, down, aval=part), two, aval=part)
    gap = b.op("stablehlo.subtract", up, down, aval=part)
    return (
        b.op("stablehlo.multiply", total, half, aval=part),
        b.op("stablehlo.multiply", gap, half, aval=part),
    )


def scaled_log(b: Any, x: Any, scale: float, accuracy: Accuracy | None = None) -> Any:
    """`scale` times the natural logarithm."""
    out = b.out_avals[0]
    log = b.op("stablehlo.log", x, attributes=attributes(accuracy))
    if out.dtype.kind != "c":
        return b.op("stablehlo.multiply", log, b.constant(scale, out))
    # By parts: a complex product would turn an infinite part into NaN.
    part, re, im = parts_of(b, log, out)
    factor = b.constant(scale, part)
    scaled = [b.op("stablehlo.multiply", v, factor, aval=part) for v in (re, im)]
    return b.op("stablehlo.complex", *scaled)


def exp(b: Any, x: Any, accuracy: Accuracy | None = None) -> Any:
    """The exponential."""
    return _around_nan(b, "stablehlo.exponential", x, accuracy)


def expm1(b: Any, x: Any, accuracy: Accuracy | None = None) -> Any:
    """`exp(x) - 1`."""
    return _around_nan(b, "stablehlo.exponential_minus_one", x, accuracy)


def logistic(b: Any, x: Any, accuracy: Accuracy | None = None) -> Any:
    """`1 / (1 + exp(-x))`."""
    return _around_nan(b, "stablehlo.logistic", x, accuracy)


def _around_nan(b: Any, op: str, x: Any, accuracy: Accuracy | None) -> Any:
    """`op` of `x`, which is not given a NaN that the compiler may know.

    To exponentiate floats of 32 and 16 bits on CPU, XLA converts them to integers. Where LLVM finds
    that the operand is a constant NaN, as in a branch of `where(scalar, nan, x)`, the conversion is
    undefined, and the result is whatever lies in memory. So modules that hold a constant NaN pass
    it around the operation. Elsewhere that would be waste: it costs a third of a fused `exp`.
    """
    out = b.out_avals[0]
    how = attributes(accuracy)
    narrow = out.dtype.kind != "c" and out.dtype.itemsize < 8
    if b.platform != "cpu" or not narrow or not b.module.holds_nan:
        return b.op(op, x, attributes=how)
    is_nan = b.compare("NE", x, x, out)
    y = b.op(op, b.op("stablehlo.select", is_nan, b.constant(0, out), x), attributes=how)
    return b.op("stablehlo.select", is_nan, x, y)


def exp2(b: Any, x: Any, accuracy: Accuracy | None = None) -> Any:
    log2 = b.constant(np.log(2), b.out_avals[0])
    return exp(b, b.op("stablehlo.multiply", x, log2), accuracy)


def conjugate(b: Any, x: Any) -> Any:
    """The complex conjugate; a real operand becomes complex."""
    out, given = b.out_avals[0], b.in_avals[0]
    if given.dtype.kind != "c":
        part = ShapedArray(out.shape, real_dtype(out.dtype))
        return b.op("stablehlo.complex", x, b.constant(0, part))
    part, re, im = parts_of(b, x, given)
    return b.op("stablehlo.complex", re, b.op("stablehlo.negate", im, aval=part))


def integer_pow(b: Any, x: Any, *, y: int) -> Any:
    """By repeated squaring."""
    if y == 0:
        return b.constant(1, b.out_avals[0])
    n, square, result = builtins.abs(y), x, None
    while n:
        if n & 1:
            result = square if result is None else b.op("stablehlo.multiply", result, square)
        n >>= 1
        if n:
            square = b.op("stablehlo.multiply", square, square)
    if y < 0:
        result = b.op("stablehlo.divide", b.constant(1, b.out_avals[0]), result)
    return result


def power(b: Any, x: Any, y: Any) -> Any:
    out = b.out_avals[0]
    if b.in_avals[1].dtype != out.dtype:
        y = b.convert(y, ShapedArray(out.shape, out.dtype))
    return b.op("stablehlo.power", x, y)


def rounded(b: Any, x: Any, *, rounding_method: int) -> Any:
    away = int(rounding_method) == 0
    return b.op(f"stablehlo.round_nearest_{'afz' if away else 'even'}", x)


def reduced_precision(b: Any, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    return b.op(
        "stablehlo.reduce_precision",
        x,
        attributes={
            "exponent_bits": types.integer(exponent_bits, 32),
            "mantissa_bits": types.integer(mantissa_bits, 32),
        },
    )


def chosen(b: Any, which: Any, *cases: Any) -> Any:
    """The case that `which`, of the shape of the result, says; an index out of range clips."""
    if len(cases) == 1:
        return cases[0]
    out, given = b.out_avals[0], b.in_avals[0].dtype
    codes = ShapedArray(out.shape, given)

    def choose(here: Any, yes: Any, no: Any) -> Any:
        if out.is_extended:  # one choice for all numbers of a key
            flags = ShapedArray(out.physical().shape, np.dtype(bool))
            here = b.broadcast(here, flags, tuple(range(out.ndim)))
        return b.op("stablehlo.select", here, yes, no)

    if given.kind == "b":
        return choose(which, cases[1], cases[0])
    result = cases[-1]
    for i in range(len(cases) - 2, -1, -1):
        here = b.compare("LE", which, b.constant(i, codes), codes)
        result = choose(here, cases[i], result)
    return result
