"""One record per operation drives all its tests.

An `Op` names a primitive, samples of its operands, and a NumPy reference. From that follow

* `check_value`: the result against the reference, for every dtype, and its dtype and shape; all
  cases of an operation are one program, since XLA takes as long for one case as for ten;
* `check_staged`: the same numbers, bit for bit, from the operation run eagerly, and traced into a
  program and compiled;
* `check_jvp`: the tangent against central differences in double precision, for each operand alone
  and for all together; the types of the rule's program at every inexact dtype; and that every
  step from tangent to result can be transposed;
* `check_transpose`: `<ct, J t> = <J^T ct, t>`;
* `check_batch`: the batched result against a loop, over combinations of batch axes;
* `check_weak`: which operands make the result weakly typed.

A test file makes its list of records `OPS` and writes

    test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perspex  # noqa: F401 - sets the bottom trace
from perspex import config, dtypes
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr, check
from perspex.runtime.client import default_device
from perspex.runtime.executable import compile_lowered
from perspex.runtime.lowered import Lowered
from perspex.tracing.primitive import Linear, Primitive
from perspex.tracing.staging import eval_jaxpr, stage
from perspex.transforms.linearize import linearize
from perspex.transforms.transpose import backward_pass

FLOATS = ("float32", "bfloat16", "float16", "float64")
COMPLEX = ("complex64", "complex128")
INEXACT = (*FLOATS, *COMPLEX)
INTEGERS = ("int32", "int8", "uint8", "uint32", "int64")
REALS = (*FLOATS, *INTEGERS)
NUMBERS = (*INEXACT, *INTEGERS)
ANY = (*NUMBERS, "bool")
BITS = (*INTEGERS, "bool")
# One of each kind and width: enough for what moves elements without looking at them.
MOVED = ("float32", "float64", "complex128", "bfloat16", "int8", "bool")

# Relative to the size of the result: a few units in the last place.
TOLERANCE = {
    "float64": 2e-14,
    "float32": 2e-6,
    "bfloat16": 1.6e-2,
    "float16": 2e-3,
    "complex64": 4e-6,
    "complex128": 4e-14,
}
_STEP = 1e-5
_DIFFERENCES = 2e-8  # error of central differences in double precision, with room
_MAX_COMBINATIONS = 14

Draw = Callable[[np.random.Generator, np.dtype], np.ndarray]


def dtype_named(name: str) -> np.dtype:
    """The dtype of a name, those of ml_dtypes included."""
    return np.dtype(getattr(ml_dtypes, name, name))


# ---- Operands -----------------------------------------------------------------------------------


def normal(*shape: int, scale: float = 1.5) -> Draw:
    """Numbers of every sign; small integers for integer dtypes, coin flips for booleans."""

    def draw(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        x = rng.normal(size=shape) * scale
        if dtype.kind == "b":
            return np.asarray(x > 0)
        if dtypes.issubdtype(dtype, np.complexfloating):
            return np.asarray(x + 1j * scale * rng.normal(size=shape)).astype(dtype)
        if dtypes.issubdtype(dtype, np.integer):
            x = np.rint(x * 3)
            x = np.abs(x) if dtype.name.startswith("u") else x
        return np.asarray(x).astype(dtype)

    return draw


def uniform(low: float, high: float, *shape: int) -> Draw:
    """Numbers between `low` and `high`; complex ones have such a modulus and any argument."""

    def draw(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        x = rng.uniform(low, high, size=shape)
        if dtypes.issubdtype(dtype, np.complexfloating):
            x = x * np.exp(2j * np.pi * rng.uniform(size=shape))
        elif dtypes.issubdtype(dtype, np.integer):
            x = rng.integers(int(low), int(high) + 1, size=shape)
        return np.asarray(x).astype(dtype)

    return draw


def distinct(*shape: int, offset: float = 0.0) -> Draw:
    """Distinct numbers in random order, no two closer than a finite difference can cross.

    Inexact ones are multiples of 1/2 plus `offset`, so that different offsets make no ties.
    """

    def draw(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        size = int(np.prod(shape))
        x = np.asarray(rng.permutation(size).reshape(shape))
        if dtypes.issubdtype(dtype, np.inexact):
            return np.asarray((x - size // 2) * 0.5 + 0.05 + offset).astype(dtype)
        return x.astype(dtype)

    return draw


def integers(low: int, high: int, *shape: int, dtype: str = "int32") -> Draw:
    """Integers from `low` below `high`, of one dtype whatever that of the other operands is."""

    def draw(rng: np.random.Generator, _: np.dtype) -> np.ndarray:
        return np.asarray(rng.integers(low, high, size=shape)).astype(dtype)

    draw.fixed = True  # type: ignore[attr-defined]
    return draw


def booleans(*shape: int) -> Draw:
    """Coin flips, whatever the dtype of the other operands is."""

    def draw(rng: np.random.Generator, _: np.dtype) -> np.ndarray:
        return np.asarray(rng.integers(0, 2, size=shape) > 0)

    draw.fixed = True  # type: ignore[attr-defined]
    return draw


def given(values: Any) -> Draw:
    """Exactly these values, in the dtype of the test."""

    def draw(_: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        return np.asarray(values).astype(dtype)

    return draw


def fixed(values: Any, dtype: str = "int32") -> Draw:
    """Exactly these values in exactly this dtype: indices and the like."""

    def draw(_: np.random.Generator, __: np.dtype) -> np.ndarray:
        return np.asarray(values, dtype)

    draw.fixed = True  # type: ignore[attr-defined]
    return draw


# ---- Records ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Operands, each drawn by a function of a generator and a dtype, and params."""

    operands: tuple[Draw, ...]
    params: dict[str, Any] = field(default_factory=dict)
    # Operands with a derivative, when not all of them that are inexact.
    differentiable: tuple[int, ...] | None = None
    # Sets of operands in which the operation is linear together, when not those of the record.
    linear: tuple[tuple[int, ...], ...] | None = None
    # Operands that may have a batch axis, when not all of them.
    batched: tuple[int, ...] | None = None


def sample(*operands: Draw, **params: Any) -> Sample:
    """A sample without exceptions."""
    return Sample(operands, params)


@dataclass(frozen=True)
class Op:
    """A primitive (or a function of arrays and params) with all that is needed to test it."""

    primitive: Any
    # `reference(*numpy_arrays, **params)`; inexact operands come in double precision.
    reference: Callable[..., Any]
    samples: Sequence[Sample]
    dtypes: Sequence[str] = FLOATS
    # The dtype of results, by that of the operands; `None` for what the reference returns.
    result: Callable[[np.dtype], Any] | None = lambda dtype: dtype
    # Multiplies the tolerances; 0 asks for equal bits.
    tolerance: float = 1.0
    linear: tuple[tuple[int, ...], ...] = ()
    # Dtypes for jvp and transpose tests; default: the double precision ones in `dtypes`.
    smooth: Sequence[str] | None = None
    # Whether the result is weakly typed, given which operands are; default: all of them.
    weak: Callable[[Sequence[bool]], bool] | None = all
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.primitive.name

    def draw(self, which: Sample, dtype: str) -> list[np.ndarray]:
        rng = np.random.default_rng(zlib.crc32(f"{self}/{self.samples.index(which)}".encode()))
        return [draw(rng, dtype_named(dtype)) for draw in which.operands]

    def smooth_dtypes(self) -> list[str]:
        if self.smooth is not None:
            return list(self.smooth)
        return [d for d in self.dtypes if d in ("float64", "complex128")]


@dataclass(frozen=True)
class Case:
    """One sample of one operation at one dtype."""

    op: Op
    sample: Sample
    dtype: str

    def __str__(self) -> str:
        return f"{self.op}-{self.op.samples.index(self.sample)}-{self.dtype}"

    @functools.cached_property
    def operands(self) -> list[np.ndarray]:
        return self.op.draw(self.sample, self.dtype)

    def differentiable(self) -> list[int]:
        if self.sample.differentiable is not None:
            return list(self.sample.differentiable)
        return [i for i, x in enumerate(self.operands) if is_inexact(x.dtype)]

    def linear(self) -> tuple[tuple[int, ...], ...]:
        return self.op.linear if self.sample.linear is None else self.sample.linear


def is_inexact(dtype: Any) -> bool:
    return bool(dtypes.issubdtype(dtype, np.inexact))


def many(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def apply(case: Case, operands: Sequence[Any]) -> list[Any]:
    return many(case.op.primitive(*operands, **case.sample.params))


def wide(x: Any) -> np.ndarray:
    """In double precision, if inexact; a copy that NumPy can compute with."""
    x = np.asarray(x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return x.astype(np.complex128)
    return x.astype(np.float64) if is_inexact(x.dtype) else x


def assert_close(found: Any, wanted: Any, tolerance: float, what: str = "") -> None:
    """Equal up to `tolerance` relative to the largest element; NaNs and infinities in place."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, f"{what}: shape {found.shape}, expected {wanted.shape}"
    if not (is_inexact(found.dtype) and tolerance):
        np.testing.assert_array_equal(wide(found), wide(wanted.astype(found.dtype)), err_msg=what)
        return
    a, b = wide(found), wide(wanted)
    finite = np.abs(b[np.isfinite(b)])
    scale = float(finite.max()) if finite.size else 0.0
    np.testing.assert_allclose(
        a, b, rtol=tolerance, atol=tolerance * builtin_min(scale, 1.0), err_msg=what
    )


builtin_min = min


# ---- Checks -------------------------------------------------------------------------------------


def check_value(case: Case, found: Sequence[Any]) -> None:
    """Compare what was found, compiled, with the reference."""
    op, dtype = case.op, dtype_named(case.dtype)
    exact = op.tolerance == 0
    args = [x if exact else wide(x) for x in case.operands]
    with np.errstate(all="ignore"):
        wanted = many(op.reference(*args, **case.sample.params))
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        want = np.asarray(want)
        result = want.dtype if op.result is None else np.dtype(op.result(dtype))
        assert got.dtype == result, f"{case}: dtype {got.dtype}, expected {result}"
        tolerance = op.tolerance * TOLERANCE.get(result.name, 0.0)
        with np.errstate(all="ignore"):
            want = want.astype(result)
        assert_close(got, want, tolerance, str(case))


def compiled(f: Callable[..., Sequence[Any]], operands: Sequence[Any]) -> list[Any]:
    """`f(*operands)` traced, checked, lowered and compiled as one program."""
    jaxpr, consts = stage(f, [shaped(x) for x in operands])
    check(jaxpr)
    lowered = Lowered(ClosedJaxpr(jaxpr, consts), "test", default_device())
    return compile_lowered(lowered)(operands)


def values(every: Sequence[Case]) -> list[list[Any]]:
    """The results of each case, all of them computed by one program."""
    sizes = [len(case.operands) for case in every]

    def whole(*xs: Any) -> list[Any]:
        rest = iter(xs)
        outs = []
        for case, size in zip(every, sizes, strict=True):
            try:
                outs.append(apply(case, list(itertools.islice(rest, size))))
            except Exception as error:
                error.add_note(f"in {case}")
                raise
        counts.extend(map(len, outs))
        return [y for ys in outs for y in ys]

    counts: list[int] = []
    found = iter(compiled(whole, [x for case in every for x in case.operands]))
    return [list(itertools.islice(found, count)) for count in counts]


def check_staged(case: Case) -> None:
    eager = apply(case, case.operands)
    whole = compiled(lambda *xs: apply(case, xs), case.operands)
    for got, want in zip(whole, eager, strict=True):
        assert got.aval is want.aval
        np.testing.assert_array_equal(wide(got), wide(want))


def tangent_of(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return normal(*x.shape, scale=1.0)(rng, x.dtype)


def check_jvp(case: Case) -> None:
    op, params, operands = case.op, case.sample.params, case.operands
    rng = np.random.default_rng(7)
    active = case.differentiable()
    subsets = [(i,) for i in active] + ([tuple(active)] if len(active) > 1 else [])
    assert subsets, f"{case} has nothing to differentiate"
    for subset in subsets:
        tangents = [tangent_of(x, rng) if i in subset else None for i, x in enumerate(operands)]
        out, tangent_out = op.primitive.jvp(operands, tangents, **params)

        def shifted(h: float, ts: Sequence[Any] = tangents) -> list[np.ndarray]:
            moved = [x if t is None else x + h * t for x, t in zip(operands, ts, strict=True)]
            return [np.asarray(y) for y in apply(case, moved)]

        outs, ts = many(out), many(tangent_out)
        plus, minus = shifted(_STEP), shifted(-_STEP)
        for y, want, t, p, m in zip(outs, apply(case, operands), ts, plus, minus, strict=True):
            assert_close(y, want, 10 * TOLERANCE.get(want.dtype.name, 0), f"{case} primal")
            if not is_inexact(want.dtype):
                assert t is None, f"{case}: an integer result has a tangent"
                continue
            slope = (p - m) / (2 * _STEP)
            found = np.zeros_like(slope) if t is None else t
            if t is not None:
                assert shaped(t).shape == shaped(y).shape, f"{case}: tangent's shape"
                assert shaped(t).dtype == shaped(y).dtype, f"{case}: tangent's dtype"
            scale = max(1.0, float(np.abs(slope).max(initial=0)))
            assert_close(found, slope, _DIFFERENCES * scale * 10, f"{case} tangents {subset}")


def check_jvp_types(case: Case) -> None:
    """Stage the rule, which type-checks every operation in it, at the case's own dtype."""
    avals = [shaped(x) for x in case.operands]
    active = case.differentiable()

    def rule(*xs: Any) -> list[Any]:
        primals, rest = xs[: len(avals)], list(xs[len(avals) :])
        tangents = [rest.pop(0) if i in active else None for i in range(len(avals))]
        out, tangent = case.op.primitive.jvp(list(primals), tangents, **case.sample.params)
        for y, t in zip(many(out), many(tangent), strict=True):
            assert t is None or (shaped(t).shape, shaped(t).dtype) == (y.shape, y.dtype)
        return [*many(out), *[t for t in many(tangent) if t is not None]]

    jaxpr, _ = stage(rule, [*avals, *[avals[i] for i in active]])
    check(jaxpr)


def check_reverse(case: Case) -> None:
    """What the jvp rule does to tangents can be turned round: every step of it transposes."""
    active = case.differentiable()
    wanted = [i in active for i in range(len(case.operands))]
    rng = np.random.default_rng(17)
    ts = [tangent_of(x, rng) for x, want in zip(case.operands, wanted, strict=True) if want]
    linear = linearize(lambda *xs: apply(case, xs), case.operands, wanted)
    if not any(linear.nonzero):
        return
    pushed = eval_jaxpr(linear.jaxpr, linear.residuals, *ts)
    cts = [tangent_of(np.asarray(y), rng) for y in pushed]
    placeholders = [Linear(v.aval) for v in linear.jaxpr.invars]
    pulled = backward_pass(linear.jaxpr, linear.residuals, placeholders, cts)
    left = pairing(cts, pushed)
    pairs = [(ct, t) for ct, t in zip(pulled, ts, strict=True) if ct is not None]
    right = pairing(*zip(*pairs, strict=True)) if pairs else 0.0
    size = sum(float(np.abs(wide(c) * wide(y)).sum()) for c, y in zip(cts, pushed, strict=True))
    assert abs(left - right) <= 1e-11 * max(size, 1.0), f"{case}: {left} != {right}"


def pairing(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """The real part of the sum of products, without conjugation: what transposition is with."""
    return float(sum(np.real(np.sum(wide(x) * wide(y))) for x, y in zip(xs, ys, strict=True)))


def check_transpose(case: Case) -> None:
    params, operands = case.sample.params, case.operands
    rng = np.random.default_rng(11)
    for subset in case.linear():
        ts = {i: tangent_of(operands[i], rng) for i in subset}
        # Affine in them, rather, for the operations that have another operand to add.
        moved, origin = (
            apply(case, [scale * ts[i] if i in subset else x for i, x in enumerate(operands)])
            for scale in (1, 0)
        )
        pushed = [np.asarray(y) - np.asarray(z) for y, z in zip(moved, origin, strict=True)]
        cts = [tangent_of(y, rng) if is_inexact(y.dtype) else None for y in pushed]
        placeholders = [Linear(shaped(x)) if i in subset else x for i, x in enumerate(operands)]
        multiple = getattr(case.op.primitive, "multiple_results", False)
        pulled = case.op.primitive.transpose(cts if multiple else cts[0], *placeholders, **params)
        assert len(pulled) == len(operands), f"{case}: one cotangent per operand"
        pairs = []
        for i, (ct, x) in enumerate(zip(pulled, operands, strict=True)):
            if i not in subset:
                assert ct is None, f"{case}: a cotangent for operand {i}, which is not linear"
            elif ct is not None:
                aval = shaped(ct)
                assert (aval.shape, aval.dtype) == (x.shape, x.dtype), f"{case}: operand {i}"
                pairs.append((ct, ts[i]))
        live = [(c, y) for c, y in zip(cts, pushed, strict=True) if c is not None]
        left = pairing(*zip(*live, strict=True))
        right = pairing(*zip(*pairs, strict=True)) if pairs else 0.0
        size = sum(float(np.abs(wide(c) * wide(y)).sum()) for c, y in live)
        assert abs(left - right) <= 1e-11 * max(size, 1.0), f"{case} {subset}: {left} != {right}"


def axis_choices(x: np.ndarray, may: bool) -> list[int | None]:
    return [None, *sorted({0, x.ndim})] if may else [None]


def check_batch(case: Case) -> None:
    op, params, operands = case.op, case.sample.params, case.operands
    size = 3
    rng = np.random.default_rng(13)
    which = case.sample.batched
    choices = [axis_choices(x, which is None or i in which) for i, x in enumerate(operands)]
    combinations = [c for c in itertools.product(*choices) if any(a is not None for a in c)]
    if len(combinations) > _MAX_COMBINATIONS:
        picked = rng.choice(len(combinations), _MAX_COMBINATIONS, replace=False)
        combinations = [combinations[i] for i in sorted(picked)]
    # `size` independent draws, so that lanes differ.
    draws = []
    for _ in range(size):
        lane = [draw(rng, dtype_named(case.dtype)) for draw in case.sample.operands]
        draws.append(lane)
    for axes in combinations:
        stacked = [
            draws[0][i] if at is None else np.stack([lane[i] for lane in draws], at)
            for i, at in enumerate(axes)
        ]
        out, out_axes = op.primitive.batch(size, stacked, axes, **params)
        outs = many(out)
        places = many(out_axes)
        loop = [
            apply(case, [draws[0][i] if at is None else lane[i] for i, at in enumerate(axes)])
            for lane in draws
        ]
        for k, (y, at) in enumerate(zip(outs, places, strict=True)):
            wanted = [np.asarray(lane[k]) for lane in loop]
            where = f"{case} axes {axes}"
            if at is None:
                for want in wanted:
                    assert_close(y, want, TOLERANCE.get(want.dtype.name, 0), where)
                continue
            assert shaped(y).dtype == loop[0][k].dtype, where
            tolerance = max(op.tolerance, 1.0) * TOLERANCE.get(wanted[0].dtype.name, 0)
            assert_close(np.moveaxis(np.asarray(y), at, 0), np.stack(wanted), tolerance, where)


def check_weak(case: Case) -> None:
    assert case.op.weak is not None
    dynamic = [
        i for i, draw in enumerate(case.sample.operands) if not getattr(draw, "fixed", False)
    ]
    avals = [shaped(x) for x in case.operands]
    patterns = [(False,) * len(dynamic), (True,) * len(dynamic)]
    patterns += [tuple(i == j for j in dynamic) for i in dynamic if len(dynamic) > 1]
    for pattern in patterns:
        typed = list(avals)
        for i, weak in zip(dynamic, pattern, strict=True):
            typed[i] = ShapedArray(avals[i].shape, avals[i].dtype, weak)
        outs = many(case.op.primitive.type(*typed, **case.sample.params))
        for out in outs:
            assert out.weak_type == case.op.weak(pattern), f"{case}: weak operands {pattern}"


# ---- Tests --------------------------------------------------------------------------------------


def cases(ops: Iterable[Op], dtypes_of: Callable[[Op], Iterable[str]]) -> list[Case]:
    return [Case(op, s, d) for op in ops for s in op.samples for d in dtypes_of(op)]


def each_of(group: Sequence[Case], check_case: Callable[[Case], None]) -> None:
    """Check all cases, and raise together what is wrong with any of them."""
    wrong = []
    for case in group:
        try:
            check_case(case)
        except Exception as error:
            error.add_note(f"in {case}")
            wrong.append(error)
    if wrong:
        raise ExceptionGroup(f"{len(wrong)} of {len(group)} cases", wrong)


def _test(check_case: Callable[[Case], None], params: list[Case]) -> Any:
    return _test_of_groups(lambda group: each_of(group, check_case), params)


def _test_of_groups(check_group: Callable[[list[Case]], None], params: list[Case]) -> Any:
    """One test for each operation, since most cases take less time than a test of their own."""
    if not params:
        return None  # nothing to collect
    groups: dict[int, list[Case]] = {}
    for case in params:
        groups.setdefault(id(case.op), []).append(case)

    @pytest.mark.parametrize("group", groups.values(), ids=lambda group: str(group[0].op))
    def test(group: list[Case]) -> None:
        with config.enable_x64(True):
            check_group(group)

    return test


def _value(group: list[Case]) -> None:
    found = iter(values(group))
    each_of(group, lambda case: check_value(case, next(found)))


def _jvp(case: Case) -> None:
    check_jvp_types(case)
    if case.dtype in case.op.smooth_dtypes():
        check_jvp(case)
        check_reverse(case)


def has_rule(op: Op, rule: str) -> bool:
    """Whether the primitive defines `rule`; families without derivatives do not differentiate."""
    if not isinstance(op.primitive, Primitive):
        return hasattr(op.primitive, rule)
    return getattr(type(op.primitive), rule) is not getattr(Primitive, rule)


def tests(ops: Sequence[Op]) -> tuple[Any, ...]:
    """The tests `value, staged, jvp, transpose, batch, weak` of the records.

    One of them is `None` when there is nothing of its kind to test.
    """
    smooth = [op for op in ops if has_rule(op, "jvp") and op.smooth_dtypes()]
    inexact = [
        case
        for case in cases(smooth, lambda op: [d for d in op.dtypes if d in INEXACT])
        if case.differentiable()
    ]
    linear = [case for case in cases(ops, lambda op: op.smooth_dtypes()) if case.linear()]
    batched = [op for op in ops if has_rule(op, "batch")]
    return (
        # Accuracy is that of the code which users run.
        pytest.mark.usefixtures("optimized")(
            _test_of_groups(_value, cases(ops, lambda op: op.dtypes))
        ),
        _test(check_staged, cases(ops, lambda op: op.dtypes[:1])),
        _test(_jvp, inexact),
        _test(check_transpose, linear),
        _test(check_batch, cases(batched, lambda op: op.dtypes[:1])),
        _test(check_weak, cases([op for op in ops if op.weak], lambda op: op.dtypes[:1])),
    )
