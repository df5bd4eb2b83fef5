"""Arithmetic, comparison, bits and transcendental functions: one row each.

In a derivative `t` is the tangent, `x`, `y` the operands and the last argument the result. A rule
of one line is the formula of a textbook; a longer one is written out below the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.ops import expansions
from perspex.ops.expansions import real_dtype as real_dtype
from perspex.ops.families import (
    ANY,
    BITS,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    PART,
    PARTS,
    REAL,
    Elementwise,
    as_bool,
    batch_elementwise,
    binary,
    broadcast_shape,
    check_dtype,
    same_dtype,
    unary,
)
from perspex.ops.structural import (
    Structural,
    broadcast_in_dim,
    convert,
    is_linear,
    scalar_like,
    to_front,
    unbroadcast,
)
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


def is_complex(x: Any) -> bool:
    return typeof(x).dtype.kind == "c"


def complex_dtype(dtype: Any) -> Any:
    return np.dtype("complex128" if dtype.itemsize == 8 else "complex64")


# ---- Arithmetic ---------------------------------------------------------------------------------

neg: Elementwise = unary(
    "neg", "stablehlo.negate", NUMBER, lambda t, x, y: neg(t), transposed=lambda ct, x: [neg(ct)]
)
add = binary(
    "add",
    "stablehlo.add",
    NUMBER,
    lambda t, x, y, z: t,
    lambda t, x, y, z: t,
    transposed=lambda ct, x, y: [ct if is_linear(x) else None, ct if is_linear(y) else None],
)
sub = binary(
    "sub",
    "stablehlo.subtract",
    NUMBER,
    lambda t, x, y, z: t,
    lambda t, x, y, z: neg(t),
    transposed=lambda ct, x, y: [ct if is_linear(x) else None, neg(ct) if is_linear(y) else None],
    linear=True,
)
mul: Elementwise = binary(
    "mul",
    "stablehlo.multiply",
    NUMBER,
    lambda t, x, y, z: mul(t, y),
    lambda t, x, y, z: mul(x, t),
    transposed=lambda ct, x, y: [mul(ct, y), None] if is_linear(x) else [None, mul(x, ct)],
)


class Quotient(Elementwise):
    """Division. Where both operands change, `dz = (dx - z dy) / y` keeps just `y` and `z`."""

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        (tx, ty), (_, y) = tangents, primals
        if tx is None or ty is None:
            return super().jvp(primals, tangents)
        out = self(*primals)
        return out, self(sub(tx, mul(out, ty)), y)


div: Elementwise = Quotient(
    "div",
    lambda b, x, y: expansions.quotient(b, "stablehlo.divide", x, y),
    NUMBER,
    [lambda t, x, y, z: div(t, y), lambda t, x, y, z: neg(mul(div(z, y), t))],
    transposed=lambda ct, x, y: [div(ct, y), None],
)
rem = binary(
    "rem",
    lambda b, x, y: expansions.quotient(b, "stablehlo.remainder", x, y),
    REAL,
    lambda t, x, y, z: t,
    lambda t, x, y, z: neg(mul(t, _truncated_quotient(x, y))),
)
max = binary(
    "max",
    lambda b, x, y: expansions.extremum(b, "stablehlo.maximum", "GT", x, y),
    ANY,
    lambda t, x, y, z: mul(t, _share(gt, x, y, z)),
    lambda t, x, y, z: mul(t, _share(gt, y, x, z)),
)
min = binary(
    "min",
    lambda b, x, y: expansions.extremum(b, "stablehlo.minimum", "LT", x, y),
    ANY,
    lambda t, x, y, z: mul(t, _share(lt, x, y, z)),
    lambda t, x, y, z: mul(t, _share(lt, y, x, z)),
)
sign = unary("sign", expansions.sign, NUMBER, lambda t, x, y: _sign_jvp(t, x, y))
abs = unary(
    "abs",
    expansions.absolute,
    NUMBER,
    lambda t, x, y: _abs_jvp(t, x, y),
    dtype=real_dtype,
)
square = unary(
    "square",
    lambda b, x: b.op("stablehlo.multiply", x, x),
    NUMBER,
    lambda t, x, y: mul(t, mul(scalar_like(x, 2), x)),
)
# One unit in the last place from `x`, whichever way: the identity, up to rounding.
nextafter = binary("nextafter", "chlo.next_after", FLOAT, lambda t, x, y, z: t)

# ---- Rounding -----------------------------------------------------------------------------------

floor = unary("floor", "stablehlo.floor", FLOAT)
ceil = unary("ceil", "stablehlo.ceil", FLOAT)
is_finite = unary("is_finite", "stablehlo.is_finite", FLOAT, dtype=as_bool)

# ---- Exponentials and logarithms ----------------------------------------------------------------

exp = unary("exp", "stablehlo.exponential", INEXACT, lambda t, x, y: mul(t, y))
expm1 = unary("expm1", "stablehlo.exponential_minus_one", INEXACT, lambda t, x, y: mul(t, exp(x)))
log = unary("log", "stablehlo.log", INEXACT, lambda t, x, y: div(t, x))
log2 = unary(
    "log2",
    lambda b, x: expansions.scaled_log(b, x, 1 / np.log(2)),
    INEXACT,
    lambda t, x, y: div(t, mul(x, scalar_like(x, np.log(2)))),
)
log1p = unary("log1p", "stablehlo.log_plus_one", INEXACT, lambda t, x, y: div(t, _plus(x, 1)))
exp2 = unary(
    "exp2",
    expansions.exp2,
    INEXACT,
    lambda t, x, y: mul(mul(scalar_like(y, np.log(2)), t), y),
)
logistic = unary(
    "logistic",
    "stablehlo.logistic",
    INEXACT,
    lambda t, x, y: mul(t, mul(y, sub(scalar_like(y, 1), y))),
)

# ---- Powers and roots ---------------------------------------------------------------------------

sqrt = unary("sqrt", "stablehlo.sqrt", INEXACT, lambda t, x, y: mul(t, div(scalar_like(x, 0.5), y)))
rsqrt = unary(
    "rsqrt",
    "stablehlo.rsqrt",
    INEXACT,
    lambda t, x, y: mul(t, mul(scalar_like(x, -0.5), div(y, x))),
)
cbrt = unary(
    "cbrt", "stablehlo.cbrt", FLOAT, lambda t, x, y: mul(t, div(scalar_like(x, 1 / 3), square(y)))
)
# 1 - x^2, without the cancellation where x is near 1.
one_minus_square = unary(
    "one_minus_square",
    expansions.one_minus_square,
    INEXACT,
    lambda t, x, y: mul(t, mul(scalar_like(x, -2), x)),
)

# ---- Trigonometry -------------------------------------------------------------------------------

sin = unary("sin", expansions.sine, INEXACT, lambda t, x, y: mul(t, cos(x)))
cos: Elementwise = unary("cos", expansions.cosine, INEXACT, lambda t, x, y: neg(mul(t, sin(x))))
tan = unary("tan", "stablehlo.tan", INEXACT, lambda t, x, y: mul(t, _plus(square(y), 1)))
asin = unary("asin", "chlo.asin", INEXACT, lambda t, x, y: mul(t, rsqrt(one_minus_square(x))))
acos = unary("acos", "chlo.acos", INEXACT, lambda t, x, y: mul(t, neg(rsqrt(one_minus_square(x)))))
atan = unary("atan", "chlo.atan", INEXACT, lambda t, x, y: div(t, _plus(square(x), 1)))
atan2 = binary(
    "atan2",
    "stablehlo.atan2",
    INEXACT,
    lambda t, x, y, z: mul(t, div(y, add(square(x), square(y)))),
    lambda t, x, y, z: mul(t, div(neg(x), add(square(x), square(y)))),
)
sinh = unary("sinh", "chlo.sinh", INEXACT, lambda t, x, y: mul(t, cosh(x)))
cosh: Elementwise = unary("cosh", "chlo.cosh", INEXACT, lambda t, x, y: mul(t, sinh(x)))
tanh = unary("tanh", "stablehlo.tanh", INEXACT, lambda t, x, y: mul(t, one_minus_square(y)))
asinh = unary("asinh", "chlo.asinh", INEXACT, lambda t, x, y: mul(t, _asinh_slope(x)))
acosh = unary(
    "acosh",
    "chlo.acosh",
    INEXACT,
    lambda t, x, y: mul(t, mul(rsqrt(_plus(x, -1)), rsqrt(_plus(x, 1)))),
)
atanh = unary("atanh", "chlo.atanh", INEXACT, lambda t, x, y: div(t, one_minus_square(x)))

# ---- Bits and logic -----------------------------------------------------------------------------

bitwise_not = unary("not", "stablehlo.not", BITS)
bitwise_and = binary("and", "stablehlo.and", BITS)
bitwise_or = binary("or", "stablehlo.or", BITS)
bitwise_xor = binary("xor", "stablehlo.xor", BITS)
shift_left = binary("shift_left", "stablehlo.shift_left", INTEGER)
shift_right_logical = binary("shift_right_logical", "stablehlo.shift_right_logical", INTEGER)
shift_right_arithmetic = binary(
    "shift_right_arithmetic", "stablehlo.shift_right_arithmetic", INTEGER
)
population_count = unary("population_count", "stablehlo.popcnt", INTEGER)
clz = unary("clz", "stablehlo.count_leading_zeros", INTEGER)

# ---- Comparison ---------------------------------------------------------------------------------


class Comparison(Elementwise):
    """An elementwise predicate of two operands. Typed keys can be compared for equality."""

    lowers_keys = True

    def __init__(self, name: str, direction: str) -> None:
        def emit(b: Any, x: Any, y: Any) -> Any:
            return expansions.comparison(b, direction, x, y)

        super().__init__(name, emit, ANY, (None, None), as_bool)
        self.equality = direction in ("EQ", "NE")

    def type(self, *avals: ShapedArray) -> ShapedArray:
        dtype = same_dtype(self.name, avals)
        if self.equality and avals[0].is_extended:
            return ShapedArray(broadcast_shape(self.name, avals), np.dtype(bool))
        if not self.equality and dtype.kind == "c":
            raise TypeError(f"{self.name} does not accept dtype {dtype.name}: no order on it")
        return super().type(*avals)


eq = Comparison("eq", "EQ")
ne = Comparison("ne", "NE")
lt: Comparison = Comparison("lt", "LT")
le = Comparison("le", "LE")
gt: Comparison = Comparison("gt", "GT")
ge = Comparison("ge", "GE")

# Of its own for its derivative at 0, which is 0 where that of `max` is a half.
relu = unary(
    "relu",
    lambda b, x: b.op("stablehlo.maximum", x, b.constant(0, b.out_avals[0])),
    REAL,
    lambda t, x, y: select(gt(x, scalar_like(x, 0)), t, scalar_like(t, 0)),
)

# ---- Complex numbers ----------------------------------------------------------------------------

real: Elementwise = unary(
    "real",
    "stablehlo.real",
    COMPLEX,
    lambda t, x, y: real(t),
    dtype=real_dtype,
    transposed=lambda ct, x: [complex(ct, scalar_like(ct, 0))],
)
imag: Elementwise = unary(
    "imag",
    "stablehlo.imag",
    COMPLEX,
    lambda t, x, y: imag(t),
    dtype=real_dtype,
    # The transpose is that of a complex-linear map, hence the minus sign: Re(-i x) = Im(x).
    transposed=lambda ct, x: [complex(scalar_like(ct, 0), neg(ct))],
)
complex: Elementwise = binary(
    "complex",
    "stablehlo.complex",
    PART,
    lambda t, x, y, z: complex(t, scalar_like(t, 0)),
    lambda t, x, y, z: complex(scalar_like(t, 0), t),
    dtype=complex_dtype,
    transposed=lambda ct, x, y: [
        real(ct) if is_linear(x) else None,
        imag(neg(ct)) if is_linear(y) else None,
    ],
)
conj: Elementwise = unary(
    "conj",
    expansions.conjugate,
    PARTS,
    lambda t, x, y: conj(t),
    dtype=lambda d: d if d.kind == "c" else complex_dtype(d),
    transposed=lambda ct, x: [conj(ct) if typeof(x).dtype.kind == "c" else real(ct)],
)


# ---- Rows with parameters -----------------------------------------------------------------------


class IntegerPow(Elementwise):
    """`x ** y` for a Python integer `y`, by repeated squaring."""

    def __init__(self) -> None:
        super().__init__("integer_pow", expansions.integer_pow, NUMBER, (_integer_pow_jvp,))

    def type(self, x: ShapedArray, *, y: int) -> ShapedArray:
        if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
            raise TypeError(
                f"integers cannot be raised to the negative power {y}; convert to a float first"
            )
        return super().type(x)


class Pow(Elementwise):
    """`x ** y`; an inexact `x` takes an integer `y` as it is."""

    def __init__(self) -> None:
        super().__init__("pow", expansions.power, NUMBER, (_pow_jvp_x, _pow_jvp_y))

    def type(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        if dtypes.issubdtype(y.dtype, np.integer):
            check_dtype("pow", x.dtype, NUMBER)
            weak = x.weak_type and y.weak_type
            out = super().type(x, ShapedArray(y.shape, x.dtype, y.weak_type))
            return out.update(weak_type=weak)
        check_dtype("pow", x.dtype, INEXACT)
        return super().type(x, y)


class Round(Elementwise):
    """To the nearest integer: halves away from zero (method 0) or to even (method 1)."""

    def __init__(self) -> None:
        super().__init__("round", expansions.rounded, FLOAT, (None,))


class ReducePrecision(Elementwise):
    """The operand rounded to fewer exponent and mantissa bits, in its own dtype."""

    def __init__(self) -> None:
        super().__init__(
            "reduce_precision",
            expansions.reduced_precision,
            FLOAT,
            (lambda t, x, y, **p: reduce_precision(t, **p),),
            transposed=lambda ct, x, **p: [reduce_precision(ct, **p)],
        )


def _integer_pow_jvp(t: Any, x: Any, out: Any, *, y: int) -> Any:
    if y == 0:
        return scalar_like(t, 0)
    if y == 1:
        return t
    rest = x if y == 2 else integer_pow(x, y=y - 1)
    return mul(t, mul(scalar_like(x, y), rest))


def _pow_jvp_x(t: Any, x: Any, y: Any, z: Any) -> Any:
    # y x^(y-1), and 0 where y is 0, whatever x is.
    y = convert(y, typeof(x).dtype)
    zero = eq(y, scalar_like(y, 0))
    power = pow(x, select(zero, scalar_like(y, 1), sub(y, scalar_like(y, 1))))
    slope = mul(y, power)
    return mul(t, select(zero, scalar_like(slope, 0), slope))


def _pow_jvp_y(t: Any, x: Any, y: Any, z: Any) -> Any:
    if dtypes.issubdtype(typeof(y).dtype, np.integer):
        return None
    # log(x) x^y, with the limit 0 at x = 0.
    safe = select(eq(x, scalar_like(x, 0)), scalar_like(x, 1), x)
    return mul(t, mul(log(safe), z))


integer_pow = IntegerPow()
pow = Pow()
round = Round()
reduce_precision = ReducePrecision()


class Copy(Structural):
    """The operand, in memory of its own where results are not shared."""

    name = "copy"

    def type(self, x: ShapedArray) -> ShapedArray:
        return x

    def lower(self, b: Any, x: Any) -> Any:
        return x

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any) -> Any:
        return [ct]

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        return self(*operands), axes[0]


copy = Copy()
stop_gradient = unary("stop_gradient", lambda b, x: x, ANY)

# ---- Choice -------------------------------------------------------------------------------------


class SelectN(Primitive):
    """Element by element the case that `which` says: a boolean of two cases, or an int32 of many.

    `which` has the shape of the cases, or is a scalar.
    """

    name = "select_n"
    elementwise = True
    lowers_keys = True

    def type(self, which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
        if not cases:
            raise TypeError("select_n needs at least one case")
        if which.dtype != bool and which.dtype != np.dtype("int32"):
            raise TypeError(f"select_n: `which` must be boolean or int32, got {which.dtype.name}")
        if which.dtype == bool and len(cases) > 2:
            raise TypeError(f"select_n: a boolean chooses between two cases, got {len(cases)}")
        dtype = cases[0].dtype
        if any(c.dtype != dtype for c in cases):
            found = ", ".join([c.dtype.name for c in cases])
            raise TypeError(f"select_n: cases must have one dtype, got {found}; convert them")
        shape = broadcast_shape("select_n", (which, *cases))
        return ShapedArray(shape, dtype, all([c.weak_type for c in cases]))

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(results[0].size)

    def lower(self, b: Any, which: Any, *cases: Any) -> Any:
        return expansions.chosen(b, which, *cases)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        which, *cases = primals
        out = self(which, *cases)
        ts = tangents[1:]
        if all(t is None for t in ts):
            return out, None
        shape = typeof(out).shape
        full = [scalar_like(c, 0) if t is None else t for c, t in zip(cases, ts, strict=True)]
        tangent = self(which, *full)
        if typeof(tangent).shape != shape:
            tangent = broadcast_in_dim(tangent, shape=shape, broadcast_dimensions=())
        return out, tangent

    def transpose(self, ct: Any, which: Any, *cases: Any) -> Any:
        zero = scalar_like(ct, 0)
        cts: list[Any] = [None]
        for i, case in enumerate(cases):
            if is_linear(case):
                routed = self(which, *[ct if i == j else zero for j in range(len(cases))])
                cts.append(unbroadcast(routed, case.aval))
            else:
                cts.append(None)
        return cts

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        return batch_elementwise(self, axis_size, operands, axes)


class Clamp(Primitive):
    """`min(max(x, low), high)`; the bounds have the shape of `x` or are scalars."""

    name = "clamp"
    elementwise = True

    def type(self, low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
        dtype = same_dtype(self.name, (low, x, high))
        if dtype.kind == "c":
            raise TypeError(f"clamp does not accept dtype {dtype.name}: no order on it")
        for bound in (low, high):
            if bound.shape not in ((), x.shape):
                raise TypeError(
                    f"clamp: bounds must be scalars or have the shape {x.shape} of the operand, "
                    f"got {bound.shape}"
                )
        return ShapedArray(x.shape, dtype, all(a.weak_type for a in (low, x, high)))

    def flops(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(results[0].size)

    def lower(self, b: Any, low: Any, x: Any, high: Any) -> Any:
        return b.op("stablehlo.clamp", low, x, high)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        low, x, high = primals
        out = self(low, x, high)
        # `high` counts last: it is the result also where it is below `low`.
        regions = (
            bitwise_and(gt(low, x), lt(low, high)),
            bitwise_and(gt(x, low), lt(x, high)),
            bitwise_or(lt(high, x), lt(high, low)),
        )
        total = None
        for t, region in zip(tangents, regions, strict=True):
            if t is not None:
                term = select(region, t, scalar_like(t, 0))
                total = term if total is None else add(total, term)
        return out, total

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        low, x, high = operands
        if axes[0] is None and axes[2] is None:
            shapes = [typeof(v).shape for v in (low, high)]
            if shapes == [(), ()]:
                return self(low, x, high), axes[1]
        x = to_front(x, axes[1], axis_size)
        shape = typeof(x).shape
        bounds = []
        for v, at in ((low, axes[0]), (high, axes[2])):
            v = to_front(v, at, axis_size)
            if typeof(v).shape != shape:
                v = broadcast_in_dim(v, shape=shape, broadcast_dimensions=(0,))
            bounds.append(v)
        return self(bounds[0], x, bounds[1]), 0


select_n = SelectN()
clamp = Clamp()


def select(which: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where `which`, else `on_false`."""
    return select_n(which, on_false, on_true)


# ---- Written-out rules --------------------------------------------------------------------------


def _plus(x: Any, n: int) -> Any:
    return add(x, scalar_like(x, n))


def _truncated_quotient(x: Any, y: Any) -> Any:
    q = div(x, y)
    return select(lt(q, scalar_like(q, 0)), ceil(q), floor(q))


def _share(above: Any, x: Any, y: Any, z: Any) -> Any:
    """1 where the result `z` is `x` and not `y`, 1/2 where they tie, else 0.

    The operands are compared, by `above`, and not the result with them: XLA may compute an operand
    again and round it otherwise, and then the result is neither. Complex numbers have no `above`.
    """
    one, half, zero = scalar_like(z, 1), scalar_like(z, 0.5), scalar_like(z, 0)
    if is_complex(z):
        return mul(select(eq(x, z), one, zero), select(eq(y, z), half, one))
    return select(above(x, y), one, select(eq(x, y), half, zero))


def _nonzero(x: Any) -> Any:
    """`x`, with 1 for 0, to divide by."""
    return select(eq(x, scalar_like(x, 0)), scalar_like(x, 1), x)


def _sign_jvp(t: Any, x: Any, y: Any) -> Any:
    if not is_complex(x):
        return None
    # d(x/|x|) = i y Im(conj(y) dx) / |x|: only the argument counts; 0 at the origin.
    turn = div(imag(mul(conj(y), t)), _nonzero(abs(x)))
    return mul(y, complex(scalar_like(turn, 0), turn))


def _abs_jvp(t: Any, x: Any, y: Any) -> Any:
    if not is_complex(x):
        return select(ge(x, scalar_like(x, 0)), t, neg(t))
    # d|x| = Re(conj(x) dx) / |x|, and 0 at the origin. Part by part: XLA leaves a division of
    # complex numbers out of its fusions.
    scale = _nonzero(y)
    unit = complex(div(real(x), scale), div(imag(x), scale))
    return real(mul(t, conj(unit)))


def _asinh_slope(x: Any) -> Any:
    """1 / sqrt(1 + x^2); for reals without overflow, x and 1 being divided by max(1, |x|)."""
    if is_complex(x):
        return rsqrt(_plus(square(x), 1))
    one = scalar_like(x, 1)
    limit = 2 * float(dtypes.finfo(typeof(x).dtype).max) ** 0.5  # leaves an infinite x infinite
    scale = div(one, clamp(one, abs(x), scalar_like(x, limit)))
    return mul(scale, rsqrt(add(square(mul(x, scale)), square(scale))))
