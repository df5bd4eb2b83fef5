"""Dtypes against the table that real JAX gave (`tests/oracle/recorders/promotion_table.py`)."""

from __future__ import annotations

import enum
import functools
import itertools
import pickle
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from oracle import records
from oracle.recorders.promotion_table import FAMILIES, KINDS, MODES, STRONG, mode_name
from perspex import config, dtypes
from perspex.base import source

PROMOTED = records.section("promotion_table", "promote_types")
SUBDTYPES = records.section("promotion_table", "issubdtype")
FACTS = records.section("promotion_table", "facts")
KEY = dtypes.KeyType("threefry2x32", "fry", (2,))


def present(kind: str) -> bool:
    # int1 and uint1 came with ml_dtypes 0.6.
    return kind.rstrip("*") in dtypes.scalar_types


def dtype(name: str) -> np.dtype:
    return np.dtype(dtypes.scalar_types[name])


def kind(name: str) -> tuple[np.dtype, bool]:
    return dtypes.canonicalize_dtype(dtype(name.rstrip("*"))), name.endswith("*")


def outcome(f: Any, *args: Any) -> str:
    """The result as the table writes it."""
    try:
        found, weak = f(*args)
    except (TypeError, ValueError):
        return "-"
    return dtypes.short_name(found) + ("*" if weak else "")


def as_dtype(kinds: tuple[tuple[np.dtype, bool], ...]) -> Any:
    """What `result_type` gives for arrays of these kinds."""
    avals = [SimpleNamespace(dtype=dtype, weak_type=weak) for dtype, weak in kinds]
    return dtypes.result_type(
        *[SimpleNamespace(aval=aval) for aval in avals], return_weak_type_flag=True
    )


def row(outcomes: str, columns: list[str]) -> dict[str, str]:
    found = dict(zip(columns, outcomes.split(), strict=True))
    return {name: out for name, out in found.items() if present(name)}


# -- Promotion


@pytest.mark.parametrize("x64, mode", MODES)
def test_all_pairs_promote_as_in_jax(x64: bool, mode: str) -> None:
    rows = records.section("promotion_table", f"result_type / {mode_name(x64, mode)}")
    with config.enable_x64(x64), config.numpy_dtype_promotion(mode):
        for a in filter(present, KINDS):
            expected = row(rows[a], KINDS)
            got = {b: outcome(as_dtype, (kind(a), kind(b))) for b in expected}
            assert got == expected, a


@pytest.mark.parametrize("x64", [False, True])
def test_triples_promote_as_in_jax(x64: bool) -> None:
    with config.enable_x64(x64):
        name = mode_name(x64, "standard")
        for triple, expected in records.section("promotion_table", f"triples / {name}").items():
            names = triple.split()
            if all(map(present, names)):
                got = outcome(as_dtype, tuple(map(kind, names)))
                assert got == expected, triple


def test_promote_types_as_in_jax() -> None:
    python = {"int": int, "float": float, "complex": complex}
    spec = {**{name: dtype(name) for name in filter(present, STRONG)}, **python}
    for a in spec:
        expected = dict(zip([*STRONG, *python], PROMOTED[a].split(), strict=True))
        for b in spec:
            got = outcome(lambda x, y: (dtypes.promote_types(x, y), False), spec[a], spec[b])
            assert got == expected[b], (a, b)


def test_weak_operands_meet_as_strong_ones_do() -> None:
    # Unlike `result_type`, an operation on weak arrays keeps their width: it does not convert them.
    with config.enable_x64(True):
        weak = {name: (dtype(name), True) for name in ("int8", "int64", "float32", "float64")}
        pairs = {
            ("float32", "int64"): "f32*",
            ("float32", "float64"): "f64*",
            ("int8", "int64"): "i64*",
            ("int8", "int8"): "i8*",
        }
        for (a, b), expected in pairs.items():
            assert outcome(dtypes.promote, (weak[a], weak[b])) == expected


def test_promotion_does_not_depend_on_order() -> None:
    names = ["bool", "int8", "uint8", "int32*", "float16", "bfloat16", "float32*", "complex64"]
    for group in itertools.combinations(map(kind, names), 3):
        found = {dtypes.promote(order) for order in itertools.permutations(group)}
        assert len(found) == 1, group


@functools.cache
def weak_array(name: str) -> Any:
    return SimpleNamespace(aval=SimpleNamespace(dtype=dtype(name), weak_type=True))


@pytest.mark.parametrize(
    "args, expected",
    [
        ((1, 2.0), "f32*"),
        ((True, 1), "i32*"),
        ((True, True), "bool"),
        ((1, np.int8(2)), "i8"),
        ((1.0, np.int8(2)), "f32*"),
        ((np.float64(1), 1), "f32"),  # NumPy's numbers are not weak, and are narrowed
        ((np.zeros(2), np.arange(2)), "f32"),
        ((1j, np.ones(2, ml_dtypes.bfloat16)), "c64"),
        ((2**40,), "i32*"),  # the value does not count, only its type
        ((weak_array("float32"), np.float16(1)), "f16"),
        ((np.float32,), "f32"),
        (("bfloat16", 1.5), "bf16"),
        ((None, 1), "f32"),
        ((int, "int8"), "i8"),
        ((KEY,), "key<fry>"),
        ((KEY, KEY), "key<fry>"),
    ],
)
def test_result_type_of_values_and_specs(args: tuple, expected: str) -> None:
    got = outcome(lambda *xs: dtypes.result_type(*xs, return_weak_type_flag=True), *args)
    assert got == expected
    assert dtypes.short_name(dtypes.result_type(*args)) == expected.rstrip("*")


def test_result_type_of_integer_subclasses_is_not_weak() -> None:
    # As in JAX 0.12: result_type(IntEnum member) is (int32, False).
    member = enum.IntEnum("Color", "RED").RED  # type: ignore[attr-defined]
    assert dtypes.result_type(member, return_weak_type_flag=True) == (np.dtype("int32"), False)


@pytest.mark.parametrize(
    "args, error, words",
    [
        ((), ValueError, "at least one"),
        (([1, 2],), TypeError, r"dtype of \[1, 2\] of type list"),
        ((object(),), TypeError, "type object; pass an array"),
        (("foo",), TypeError, "'foo' not understood in result_type"),
        ((object,), TypeError, "dtype object in result_type"),
        ((np.zeros(2, "S3"),), TypeError, "dtype .S3"),
        ((np.zeros(2, ">f4"),), TypeError, r"x.astype\('float32'\)"),
        ((KEY, 1), ValueError, "key<fry> promotes to no other dtype"),
        ((dtypes.float0, 1), ValueError, "float0"),
        (("float8_e5m2", "float32"), dtypes.TypePromotionError, r"x.astype\('float32'\)"),
        (("int4", "int8"), dtypes.TypePromotionError, r"int4.*x.astype\('int32'\)"),
    ],
)
def test_result_type_errors(args: tuple, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        dtypes.result_type(*args)


def test_strict_mode_says_how_to_leave_it() -> None:
    with (
        config.numpy_dtype_promotion("strict"),
        pytest.raises(dtypes.TypePromotionError, match=r"int8, Python float.*standard"),
    ):
        dtypes.result_type(np.int8(1), 1.0)


def test_arrays_wider_than_enabled_keep_their_dtype_among_themselves() -> None:
    # An array made under enable_x64 and used outside: in JAX 0.12 `a + a` stays float64, `a + 1.0`
    # and `a + int32` give float32.
    wide = np.dtype("float64"), False
    assert dtypes.promote((wide, wide)) == wide
    assert dtypes.promote((wide, (np.dtype("float32"), True)))[0] == np.float32
    assert dtypes.promote((wide, (np.dtype("int32"), False)))[0] == np.float32


# -- What a dtype argument means


def test_canonical_dtypes_as_in_jax() -> None:
    for name in filter(present, STRONG):
        assert dtypes.canonicalize_dtype(name).name == FACTS[name]["canonical"]
        with config.enable_x64(True):
            assert dtypes.canonicalize_dtype(name) == dtype(name)


def test_canonicalize_extended() -> None:
    assert dtypes.canonicalize_dtype(KEY, allow_extended_dtype=True) is KEY
    with pytest.raises(ValueError, match="allow_extended_dtype"):
        dtypes.canonicalize_dtype(KEY)


@pytest.mark.parametrize(
    "spec, expected",
    [
        ("float32", "float32"),
        (np.int8, "int8"),
        (np.dtype("uint16"), "uint16"),
        ("bfloat16", "bfloat16"),
        (ml_dtypes.int4, "int4"),
        ("i4", "int32"),
        (float, "float32"),
        (int, "int32"),
        (complex, "complex64"),
        (bool, "bool"),
        (None, "float32"),
        (KEY, "key<fry>"),
    ],
)
def test_check_user_dtype(spec: Any, expected: str) -> None:
    for _ in range(2):  # cold and from the cache
        assert dtypes.check_user_dtype(spec, "zeros").name == expected


def test_python_number_types_follow_x64() -> None:
    with config.enable_x64(True):
        assert dtypes.check_user_dtype(int) == np.int64
        assert dtypes.check_user_dtype(None) == np.float64
        assert dtypes.dtype_of(1j) == np.complex128
    assert dtypes.dtype_of(1j) == np.complex64


@pytest.mark.parametrize("spec", ["float64", np.int64, np.dtype("uint64"), "complex128", "float"])
def test_asking_for_64_bits_warns_each_time(spec: Any) -> None:
    name = np.dtype(spec).name
    for _ in range(2):
        with pytest.warns(UserWarning, match=f"requested dtype {name} requested in zeros") as seen:
            found = dtypes.check_user_dtype(spec, "zeros")
        assert found.itemsize * 2 == np.dtype(spec).itemsize
        # The warning is about this line, not about one of ours.
        assert seen[0].filename == __file__
    with config.enable_x64(True):
        assert dtypes.check_user_dtype(spec, "zeros") == np.dtype(spec)


@pytest.mark.parametrize(
    "spec, error, words",
    [
        ("foo", TypeError, "'foo' not understood in zeros"),
        (5, TypeError, "5 does not name a dtype"),
        (str, TypeError, "booleans and numbers.*in zeros"),
        (object, TypeError, "dtype object in zeros"),
        ("datetime64[s]", TypeError, "datetime64"),
        (">i4", TypeError, r"x.astype\('int32'\)"),
        (np.dtype([("a", "f4")]), TypeError, "numbers"),
        (np.ones(2), ValueError, r"dtype=x.dtype, not dtype=x"),
    ],
)
def test_check_user_dtype_errors(spec: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        dtypes.check_user_dtype(spec, "zeros")


def test_scalar_type_objects_are_dtypes() -> None:
    # The classes that perspex.numpy exports carry a `dtype`; they are no arrays.
    class float32:  # noqa: N801
        dtype = np.dtype("float32")

    assert dtypes.check_user_dtype(float32) == np.float32
    assert dtypes.result_type(float32, 1) == np.float32
    assert dtypes.finfo(float32).dtype == np.float32
    assert dtypes.issubdtype(float32, np.floating)


# -- Values


def test_kind_of() -> None:
    assert dtypes.kind_of(True) == (np.dtype("bool"), False)
    assert dtypes.kind_of(3) == (np.dtype("int32"), True)
    assert dtypes.kind_of(np.uint64(3)) == (np.dtype("uint32"), False)
    assert dtypes.kind_of(weak_array("bfloat16")) == (np.dtype(ml_dtypes.bfloat16), True)
    assert dtypes.kind_of(SimpleNamespace(dtype=KEY)) == (KEY, False)
    assert dtypes.dtype_of(np.zeros(2, dtypes.float0)) == dtypes.float0
    assert dtypes.is_weakly_typed(weak_array("int32"))
    assert not dtypes.is_weakly_typed([1])


def test_python_scalars_are_exact() -> None:
    assert [dtypes.is_python_scalar(x) for x in (1, True, 1.0, 1j)] == [True] * 4
    assert not dtypes.is_python_scalar(np.float64(1))  # although it is a subclass of float


# -- Facts


def test_families_as_in_jax() -> None:
    families = [getattr(np, name) for name in FAMILIES]
    for name in filter(present, STRONG):
        expected = SUBDTYPES[name].split()
        assert [str(int(dtypes.issubdtype(name, f))) for f in families] == expected, name
        assert dtypes.issubdtype(name, name)


def test_families_of_keys() -> None:
    assert dtypes.issubdtype(KEY, dtypes.prng_key)
    assert dtypes.issubdtype(KEY, dtypes.extended)
    assert dtypes.issubdtype(KEY, np.generic)
    assert dtypes.issubdtype(KEY, KEY)
    assert not dtypes.issubdtype(KEY, np.number)
    assert not dtypes.issubdtype(np.float32, dtypes.extended)
    assert not dtypes.issubdtype(np.float32, KEY)
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)


def test_facts_as_in_jax() -> None:
    for name in filter(present, STRONG):
        facts = FACTS[name]
        assert dtypes.short_name(dtype(name)) == facts["short"]
        assert dtypes.itemsize_bits(name) == facts["bits"]
        assert dtypes.to_numeric_dtype(name).name == facts["numeric"]
        assert dtypes.to_complex_dtype(name).name == facts["complex"]
        assert dtypes.scalar_type_of(np.zeros(1, dtype(name))).__name__ == facts["python"]
        # JAX leaves integers of 1 and 2 bits as they are, so that its `sin` of them is an integer.
        if facts["bits"] > 2:
            assert dtypes.to_inexact_dtype(name).name == facts["inexact"]


@pytest.mark.parametrize("name", [name for name in STRONG if present(name) and name != "bool"])
def test_limits(name: str) -> None:
    if dtypes.issubdtype(name, np.integer):
        info = dtypes.iinfo(dtype(name))
        bits = dtypes.itemsize_bits(name)
        low = 0 if name.startswith("u") else -(2 ** (bits - 1))
        assert (info.min, info.max) == (low, low + 2**bits - 1)
    else:
        info = dtypes.finfo(dtype(name))
        # eps: the spacing of the numbers above 1.
        one = np.array(1, info.dtype)
        assert float(one + np.array(info.eps, info.dtype)) > 1


# -- Typed keys


def test_key_types_are_interned() -> None:
    same = dtypes.KeyType("threefry2x32", "fry", (2,))
    other = dtypes.KeyType("rbg", "rbg", (4,))
    assert same is KEY and pickle.loads(pickle.dumps(KEY)) is KEY
    assert other != KEY and len({KEY, same, other}) == 2
    for plain in ("float32", np.dtype("float32"), np.float32):
        assert plain != KEY
    assert (repr(KEY), KEY.name, KEY.itemsize, KEY.type) == (
        "key<fry>",
        "key<fry>",
        8,
        dtypes.prng_key,
    )
    assert dtypes.short_name(KEY) == "key<fry>"
    assert dtypes.itemsize_bits(KEY) == 64
    with pytest.raises(TypeError):
        np.dtype(KEY)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        dtypes.prng_key()


def test_keys_have_no_number_type() -> None:
    with pytest.raises(TypeError, match="are not numbers"):
        dtypes.scalar_type_of(KEY)


def test_warnings_name_the_first_frame_outside() -> None:
    scope: dict[str, Any] = {"check": dtypes.check_user_dtype}
    exec(compile("def inner(): return check('int64')", "<perspex inner>", "exec"), scope)
    assert source.is_internal("<perspex inner>")
    with pytest.warns(UserWarning) as seen:
        scope["inner"]()
    assert seen[0].filename == __file__
