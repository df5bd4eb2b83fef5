"""The harness itself: it must read cases as its documentation says, and see every difference."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from . import records
from .cases import case_names, load, parse
from .compare import decode, differences
from .session import check


def array(values: Any, dtype: str, weak: bool = False) -> list[Any]:
    host = np.asarray(values, dtype)
    data = base64.b64encode(host.tobytes()).decode()
    return ["array", dtype, list(host.shape), weak, data]


def test_a_file_becomes_cases() -> None:
    text = """
# comment
> x = 1
> def f(v):
>     return v
x + {{1 | 2}} #@ tol=0.5
f(x,
  2)
#! enable_x64 exact
x
x #@ exact=False threefry_partitionable=False
"""
    table = parse("name", text)
    assert table.setup == "x = 1\ndef f(v):\n    return v"
    first, second, third, fourth, fifth = table.cases
    assert (first.source, second.source) == ("x + 1", "x + 2")
    assert first.compare == {"tol": 0.5} and first.flags == ()
    assert third.source == "f(x, 2)" and third.line == 7
    assert fourth.key == "x #@ enable_x64=True" and fourth.compare == {"exact": True}
    assert fifth.key == "x #@ enable_x64=True threefry_partitionable=False"
    assert fifth.compare == {"exact": False}
    assert [case.optimized for case in table.cases] == [False, False, False, True, False]


def test_all_combinations_and_no_case_twice() -> None:
    table = parse("name", "{{a | b}} + {{1 | 2}}\na + 1\na | b")
    assert [case.source for case in table.cases] == ["a + 1", "a + 2", "b + 1", "b + 2", "a | b"]


def test_a_malformed_case_names_its_line() -> None:
    with pytest.raises(ValueError, match="name:2: f\\(: not an expression"):
        parse("name", "x\nf(")


def test_a_malformed_option_is_refused() -> None:
    with pytest.raises(ValueError, match="`#@` is no option"):
        parse("name", "x #@ raises #@ raises")


def test_differences_of_type_and_shape() -> None:
    one = array([1.0, 2.0], "float32")
    assert differences(one, one) == ""
    assert differences(array([1.0, 2.0], "float64"), one)
    assert differences(array([[1.0, 2.0]], "float32"), one)
    assert differences(array([1.0, 2.0], "float32", weak=True), one)
    assert differences(["numpy", *one[1:3], one[4]], one)
    assert differences(["error", ["TypeError"], ""], one)


def test_differences_of_values() -> None:
    want = array([1.0, 1e-30, np.nan, np.inf], "float32")
    assert differences(array([1.0 + 1e-6, 1e-30, np.nan, np.inf], "float32"), want) == ""
    assert differences(array([1.0 + 1e-5, 1e-30, np.nan, np.inf], "float32"), want)
    assert differences(array([1.0 + 1e-5, 1e-30, np.nan, np.inf], "float32"), want, tol=2e-5) == ""
    assert differences(array([1.0, 1e-30, 0.0, np.inf], "float32"), want)
    assert differences(array([1.0, 1e-30, np.nan, -np.inf], "float32"), want)
    assert differences(array([1.0, 1e-30, np.nan, 1e38], "float32"), want)
    assert differences(array([1.0 + 1e-6, 1e-30, np.nan, np.inf], "float32"), want, exact=True)
    assert differences(array(2e-30, "float32"), array(1e-30, "float32"))
    assert differences(array([1, 2], "int32"), array([1, 3], "int32"), tol=0.9)
    assert differences(array([True], "bool"), array([False], "bool"))


def test_exact_takes_any_nan_for_a_nan_but_sees_the_sign_of_zero() -> None:
    other_nan = np.array([0x7FC00001], "uint32").view("float32")
    assert differences(array(other_nan, "float32"), array([np.nan], "float32"), exact=True) == ""
    assert differences(array([0.0], "float32"), array([-0.0], "float32"), exact=True)
    assert differences(array([1j], "complex64"), array([1j], "complex64"), exact=True) == ""


def test_differences_of_errors() -> None:
    want = ["error", ["TypeError"], "old words"]
    assert differences(["error", ["OurError", "PerspexError", "TypeError"], "new"], want) == ""
    assert differences(["error", ["ValueError"], ""], want)
    assert differences(["error", ["ValueError"], ""], want, raises=True) == ""
    assert differences(["error", ["AttributeError"], ""], want, raises=True)
    assert differences(array(1, "int32"), want, raises=True)


def test_differences_inside_containers() -> None:
    one, two = ["python", "int", "1"], ["python", "int", "2"]
    assert differences(["tuple", [one, two]], ["tuple", [one, two]]) == ""
    assert "item 1" in differences(["tuple", [one, one]], ["tuple", [one, two]])
    assert differences(["tuple", [one]], ["list", [one]])
    assert differences(["list", [one]], ["list", [one, two]])
    assert "item 'k'" in differences(["dict", [["'k'", one]]], ["dict", [["'k'", two]]])
    assert differences(["dict", [["'k'", one]]], ["dict", [["'l'", one]]])


def test_decode_knows_the_narrow_dtypes() -> None:
    assert decode(["array", "bfloat16", [1], False, "gD8="]).tolist() == [1.0]
    assert decode(["array", "int4", [2], False, "AQI="]).tolist() == [1, 2]


def test_a_wrong_record_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in load("smoke").cases if case.source == "jnp.float32(1)")
    check(case)
    wrong = {case.key: array(2.0, "float32")}
    monkeypatch.setattr("oracle.session._recorded", lambda table: wrong)
    with pytest.raises(pytest.fail.Exception, match="want"):
        check(case)
    monkeypatch.setattr("oracle.session._recorded", lambda table: {})
    with pytest.raises(pytest.fail.Exception, match="no record"):
        check(case)


def test_records_come_from_jax_and_not_from_us() -> None:
    for name in [*case_names(), *records.recorder_names()]:
        text = (records.HERE / "records" / f"{name}.json").read_text(encoding="utf-8")
        assert text.startswith('{"versions": {"jax": "0.12.'), name
