"""Arithmetic, comparison, bits, complex numbers and choice: one row each.

In a derivative `t` is the tangent, `x`, `y` the operands and the last argument the result. A rule
of one line is the formula of a textbook; a longer one is written out below the table. `says` gives
a row the documentation of the function that `lax` makes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import expansions
from perspex.ops.expansions import real_dtype as real_dtype
from perspex.ops.families import (
    ANY,
    BITS,
    COMPLEX,
    FLOAT,
    INTEGER,
    NUMBER,
    ORDERED,
    PART,
    PARTS,
    REAL,
    Elementwise,
    as_bool,
    batch_elementwise,
    binary,
    broadcast_shape,
    same_dtype,
    unary,
)
from perspex.ops.structural import (
    Structural,
    broadcast_in_dim,
    is_linear,
    scalar_like,
    to_front,
    unbroadcast,
    weak_like,
    zero_like,
)
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


def is_complex(x: Any) -> bool:
    return typeof(x).dtype.kind == "c"


def complex_dtype(dtype: Any) -> Any:
    return np.dtype("complex128" if dtype.itemsize == 8 else "complex64")


def widened_dtype(dtype: Any) -> Any:
    """The complex dtype itself, or that with parts of the float `dtype`."""
    return dtype if dtype.kind == "c" else complex_dtype(dtype)


# ---- Arithmetic ---------------------------------------------------------------------------------

neg: Elementwise = unary(
    "neg", "stablehlo.negate", NUMBER, lambda t, x, y: neg(t), transposed=lambda ct, x: [neg(ct)]
)
neg.says("The negative of a number.", "neg(2.0) -> -2.")
add = binary(
    "add",
    "stablehlo.add",
    NUMBER,
    lambda t, x, y, z: t,
    lambda t, x, y, z: t,
    transposed=lambda ct, x, y: [ct if is_linear(x) else None, ct if is_linear(y) else None],
)
add.says("The sum `x + y`.", "add(1.0, 2.0) -> 3.")
sub = binary(
    "sub",
    "stablehlo.subtract",
    NUMBER,
    lambda t, x, y, z: t,
    lambda t, x, y, z: neg(t),
    transposed=lambda ct, x, y: [ct if is_linear(x) else None, neg(ct) if is_linear(y) else None],
    linear=True,
)
sub.says("The difference `x - y`.", "sub(1.0, 2.0) -> -1.")
mul: Elementwise = binary(
    "mul",
    "stablehlo.multiply",
    NUMBER,
    lambda t, x, y, z: mul(t, y),
    lambda t, x, y, z: mul(x, t),
    transposed=lambda ct, x, y: [mul(ct, y), None] if is_linear(x) else [None, mul(x, ct)],
)
mul.says("The product `x * y`.", "mul(3, 2) -> 6")


class Quotient(Elementwise):
    """Division. Where both operands change, `dz = (dx - z dy) / y` keeps just `y` and `z`."""

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        (tx, ty), (_, y) = tangents, primals
        if tx is None or ty is None:
            return super().jvp(primals, tangents)
        out = self(*primals)
        return out, self(sub(tx, mul(out, ty)), y)

    def taylor(self, series: Any, *operands: Any, **params: Any) -> Any:
        return series.quotient(*operands)

    def checked(self, checks: Any, *operands: Any, **params: Any) -> Any:
        checks.divides(operands[1])
        return super().checked(checks, *operands, **params)


div: Elementwise = Quotient(
    "div",
    lambda b, x, y: expansions.quotient(b, "stablehlo.divide", x, y),
    NUMBER,
    [lambda t, x, y, z: div(t, y), lambda t, x, y, z: neg(mul(div(z, y), t))],
    transposed=lambda ct, x, y: [div(ct, y), None],
)
div.says(
    "The quotient `x / y`; a quotient of integers is rounded towards zero.", "div(-7, 2) -> -3"
)
rem = binary(
    "rem",
    lambda b, x, y: expansions.quotient(b, "stablehlo.remainder", x, y),
    REAL,
    lambda t, x, y, z: t,
    lambda t, x, y, z: neg(mul(t, _truncated_quotient(x, y))),
)
rem.says("The remainder of the division `x / y`, with the sign of `x`.", "rem(-7, 2) -> -1")
max = binary(
    "max",
    lambda b, x, y: expansions.extremum(b, "stablehlo.maximum", "GT", x, y),
    ANY,
    lambda t, x, y, z: mul(t, _share(gt, x, y, z)),
    lambda t, x, y, z: mul(t, _share(gt, y, x, z)),
)
max.says("The greater of two values; NaN if either is NaN.", "max(1, 2) -> 2")
min = binary(
    "min",
    lambda b, x, y: expansions.extremum(b, "stablehlo.minimum", "LT", x, y),
    ANY,
    lambda t, x, y, z: mul(t, _share(lt, x, y, z)),
    lambda t, x, y, z: mul(t, _share(lt, y, x, z)),
)
min.says("The lesser of two values; NaN if either is NaN.", "min(1, 2) -> 1")
sign = unary("sign", expansions.sign, NUMBER, lambda t, x, y: _sign_jvp(t, x, y))
sign.says(
    "The sign of a number: -1, 0 or 1; of a complex number, `x / abs(x)`.", "sign(-2.0) -> -1."
)
abs = unary("abs", expansions.absolute, NUMBER, lambda t, x, y: _abs_jvp(t, x, y), dtype=real_dtype)
abs.says("The absolute value of a number.", "abs(-2.0) -> 2.")
square = unary(
    "square",
    lambda b, x: b.op("stablehlo.multiply", x, x),
    NUMBER,
    lambda t, x, y: mul(t, mul(scalar_like(x, 2), x)),
)
square.says("The square `x * x`.", "square(3.0) -> 9.")
# One unit in the last place from `x`, whichever way: the identity, up to rounding.
nextafter = binary("nextafter", "chlo.next_after", FLOAT, lambda t, x, y, z: t)
nextafter.makes_nan = False
for _row in (add, sub, mul, div, rem):
    _row.makes_nan = True

# ---- Rounding -----------------------------------------------------------------------------------

floor = unary("floor", "stablehlo.floor", FLOAT)
floor.says("The greatest whole number that is not above `x`.", "floor(1.5) -> 1.")
ceil = unary("ceil", "stablehlo.ceil", FLOAT)
ceil.says("The least whole number that is not below `x`.", "ceil(1.5) -> 2.")
is_finite = unary("is_finite", "stablehlo.is_finite", FLOAT, dtype=as_bool)
is_finite.says("Whether a float is neither infinite nor NaN.", "is_finite(1.0) -> True")

# ---- Bits and logic -----------------------------------------------------------------------------

bitwise_not = unary("not", "stablehlo.not", BITS)
bitwise_not.says("All bits inverted; of a boolean, its negation.", "bitwise_not(0) -> -1")
bitwise_and = binary("and", "stablehlo.and", BITS)
bitwise_and.says("The bits that are set in both operands.", "bitwise_and(6, 3) -> 2")
bitwise_or = binary("or", "stablehlo.or", BITS)
bitwise_or.says("The bits that are set in either operand.", "bitwise_or(6, 3) -> 7")
bitwise_xor = binary("xor", "stablehlo.xor", BITS)
bitwise_xor.says("The bits that are set in exactly one operand.", "bitwise_xor(6, 3) -> 5")
shift_left = binary("shift_left", "stablehlo.shift_left", INTEGER)
shift_left.says("The bits of `x` shifted left by `y` places.", "shift_left(1, 3) -> 8")
shift_right_logical = binary("shift_right_logical", "stablehlo.shift_right_logical", INTEGER)
shift_right_logical.says(
    "The bits of `x` shifted right by `y` places; zeros come in.", "shift_right_logical(8, 1) -> 4"
)
shift_right_arithmetic = binary(
    "shift_right_arithmetic", "stablehlo.shift_right_arithmetic", INTEGER
)
shift_right_arithmetic.says(
    "The bits of `x` shifted right by `y` places; the sign stays.",
    "shift_right_arithmetic(-8, 1) -> -4",
)
population_count = unary("population_count", "stablehlo.popcnt", INTEGER)
population_count.says("The number of bits that are set.", "population_count(7) -> 3")
clz = unary("clz", "stablehlo.count_leading_zeros", INTEGER)
clz.says("The number of leading zero bits.", "clz(1) -> 31")

# ---- Comparison ---------------------------------------------------------------------------------


class Comparison(Elementwise):
    """An elementwise predicate of two operands. Typed keys can be compared for equality."""

    lowers_keys = True

    def __init__(self, name: str, direction: str) -> None:
        def emit(b: Any, x: Any, y: Any) -> Any:
            return expansions.comparison(b, direction, x, y)

        self.equality = direction in ("EQ", "NE")
        kind = ANY if self.equality else ORDERED
        super().__init__(name, emit, kind, (None, None), as_bool)

    def type(self, *avals: ShapedArray) -> ShapedArray:
        dtype = same_dtype(self.name, avals)
        if self.equality and avals[0].is_extended:
            return ShapedArray(broadcast_shape(self.name, avals), np.dtype(bool))
        if not self.equality and dtype.kind == "c":
            raise TypeError(f"{self.name} does not accept dtype {dtype.name}: it has no order")
        return super().type(*avals)


eq = Comparison("eq", "EQ")
eq.says("Whether `x` equals `y`.", "eq(2.0, 1.0) -> False")
ne = Comparison("ne", "NE")
ne.says("Whether `x` differs from `y`.", "ne(2.0, 1.0) -> True")
lt: Comparison = Comparison("lt", "LT")
lt.says("Whether `x` is less than `y`.", "lt(2.0, 1.0) -> False")
le = Comparison("le", "LE")
le.says("Whether `x` is at most `y`.", "le(2.0, 1.0) -> False")
gt: Comparison = Comparison("gt", "GT")
gt.says("Whether `x` is greater than `y`.", "gt(2.0, 1.0) -> True")
ge = Comparison("ge", "GE")
ge.says("Whether `x` is at least `y`.", "ge(2.0, 1.0) -> True")

# Of its own for its derivative at 0, which is 0 where that of `max` is a half.
relu = unary(
    "relu",
    lambda b, x: b.op("stablehlo.maximum", x, b.constant(0, b.out_avals[0])),
    REAL,
    lambda t, x, y: select(gt(x, scalar_like(x, 0)), t, zero_like(t)),
)

# ---- Complex numbers ----------------------------------------------------------------------------

real: Elementwise = unary(
    "real",
    "stablehlo.real",
    COMPLEX,
    lambda t, x, y: real(t),
    dtype=real_dtype,
    transposed=lambda ct, x: [complex(ct, typeof(ct).dtype.type(0))],
)
real.says("The real part of a complex number.", "real(1 + 2j) -> 1.")
imag: Elementwise = unary(
    "imag",
    "stablehlo.imag",
    COMPLEX,
    lambda t, x, y: imag(t),
    dtype=real_dtype,
    # The transpose is that of a complex-linear map, hence the minus sign: Re(-i x) = Im(x).
    transposed=lambda ct, x: [complex(typeof(ct).dtype.type(0), neg(ct))],
)
imag.says("The imaginary part of a complex number.", "imag(1 + 2j) -> 2.")
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
complex.says(
    "The complex number with real part `x` and imaginary part `y`.", "complex(1.0, 2.0) -> 1.+2.j"
)
conj: Elementwise = unary(
    "conj",
    expansions.conjugate,
    PARTS,
    lambda t, x, y: conj(t),
    dtype=widened_dtype,
    transposed=lambda ct, x: [conj(ct) if typeof(x).dtype.kind == "c" else real(ct)],
)
conj.says("The complex conjugate of a number.", "conj(1 + 2j) -> 1.-2.j")
for _row in (neg, add, sub, real, imag, complex, conj):
    _row.degree = 1
mul.degree = 2


class Copy(Structural):
    """The operand, in memory of its own where results are not shared."""

    name = "copy"
    keeps_elements = True

    def type(self, x: ShapedArray) -> ShapedArray:
        return x

    def cut(self, out: Any, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.parts(x)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any) -> Any:
        return x

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any) -> Any:
        return [ct]

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        return self(*operands), axes[0]


for _row in (neg, add, sub, real, imag, complex, conj):
    _row.sums = cuts.LINEAR
mul.sums = cuts.BILINEAR
div.sums = cuts.LINEAR_IN_FIRST

copy = Copy()
stop_gradient = unary("stop_gradient", lambda b, x: x, ANY)

# ---- Choice -------------------------------------------------------------------------------------


class SelectN(Primitive):
    """Element by element the case that `which` says: a boolean of two cases, or an int32 of many.

    `which` has the shape of the cases, or is a scalar.
    """

    name = "select_n"
    degree = 1
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

    def cut(self, out: ShapedArray, which: ShapedArray, *cases: ShapedArray) -> cuts.Parts:
        return cuts.merged(self.name, (which, *cases))

    def pending(self, which: ShapedArray, *cases: ShapedArray) -> cuts.Sums:
        return cuts.joined(self.name, cases, cuts.LINEAR)

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
        full = [zero_like(c) if t is None else t for c, t in zip(cases, ts, strict=True)]
        tangent = self(which, *full)
        if typeof(tangent).shape != shape:
            tangent = broadcast_in_dim(tangent, shape=shape, broadcast_dimensions=())
        return out, tangent

    def transpose(self, ct: Any, which: Any, *cases: Any) -> Any:
        zero = zero_like(ct)
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
            raise TypeError(f"clamp does not accept dtype {dtype.name}: it has no order")
        for bound in (low, high):
            if bound.shape not in ((), x.shape):
                raise TypeError(
                    f"clamp: bounds must be scalars or have the shape {x.shape} of the operand, "
                    f"got {bound.shape}"
                )
        return ShapedArray(x.shape, dtype, all(a.weak_type for a in (low, x, high)))

    def cut(
        self, out: ShapedArray, low: ShapedArray, x: ShapedArray, high: ShapedArray
    ) -> cuts.Parts:
        return cuts.parts(x)

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
                term = select(region, t, weak_like(t, 0))
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


def _truncated_quotient(x: Any, y: Any) -> Any:
    q = div(x, y)
    return select(lt(q, scalar_like(q, 0)), ceil(q), floor(q))


def _share(above: Any, x: Any, y: Any, z: Any) -> Any:
    """1 where the result `z` is `x` and not `y`, 1/2 where they tie, else 0.

    The operands are compared, by `above`, and not the result with them: XLA may compute an operand
    again and round it otherwise, and then the result is neither. Complex numbers have no `above`.
    """
    one, half, zero = [typeof(z).dtype.type(n) for n in (1, 0.5, 0)]
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
