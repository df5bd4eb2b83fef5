"""The array API standard, version 2024.12: its functions, their parameters, and its array object.

`tests/data/array_api.json` has the parameters of each function, in the notation of Python, as
`array_api_strict` 2.6.1 declares them. What the functions return is in the oracle's `array_api`.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex import jit, vmap

STANDARD = json.loads(
    (Path(__file__).resolve().parents[2] / "data" / "array_api.json").read_text(encoding="utf-8")
)
CONSTANTS = ["e", "inf", "nan", "newaxis", "pi"]
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["float32", "float64", "complex64", "complex128"]
METHODS = """
abs add and array_namespace bool complex dlpack dlpack_device eq float floordiv ge getitem gt index
int invert le lshift lt matmul mod mul ne neg or pos pow rshift sub truediv xor radd rsub rmul
rtruediv rfloordiv rpow rmod rmatmul rand ror rxor rlshift rrshift
""".split()  # noqa: SIM905 - a list of fifty words
Parameter = inspect.Parameter


def found(name: str) -> Any:
    return functools.reduce(getattr, name.split("."), pnp)


def declared(text: str) -> list[Parameter]:
    """The parameters that the standard declares; a `=` says that there is a default."""
    namespace: dict[str, Any] = {}
    exec(f"def f({text.replace('=', '=None')}): ...", namespace)
    return list(inspect.signature(namespace["f"]).parameters.values())


def lacking(function: Any, wanted: list[Parameter]) -> list[str]:
    """The parameters that a call by the standard has and the function does not take."""
    own = inspect.signature(function).parameters
    places = [p for p in own.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    many = any(p.kind is p.VAR_POSITIONAL for p in own.values())
    missing = []
    for i, p in enumerate(wanted):
        if p.kind is p.VAR_POSITIONAL:
            missing += [] if many else [f"*{p.name}"]
        elif p.kind is not p.KEYWORD_ONLY and not many:
            optional = i < len(places) and places[i].default is not p.empty
            if i >= len(places) or (p.default is not p.empty and not optional):
                missing.append(f"{p.name} at {i}")
        if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD):
            mine = own.get(p.name)
            if mine is None or (p.default is not p.empty and mine.default is p.empty):
                missing.append(p.name)
    return missing


def test_every_function_takes_what_the_standard_says() -> None:
    assert len(STANDARD) == 172
    found_lacking = {name: lacking(found(name), declared(p)) for name, p in STANDARD.items()}
    assert {name: missing for name, missing in found_lacking.items() if missing} == {}


def test_a_function_without_a_parameter_is_found() -> None:
    assert lacking(lambda x, /: x, declared("x, /, *, axis=")) == ["axis"]
    assert lacking(lambda x, y: x, declared("x, y=, /")) == ["y at 1"]
    assert lacking(lambda x: x, declared("*arrays")) == ["*arrays"]


def test_constants_and_dtypes() -> None:
    assert all(hasattr(pnp, name) for name in CONSTANTS)
    assert [np.dtype(getattr(pnp, name)).name for name in DTYPES] == DTYPES
    assert pnp.__array_api_version__ == "2025.12"


def test_the_array_object() -> None:
    x = pnp.ones((2, 3))
    check_object(x, METHODS)
    # A traced value has no memory to share.
    jit(lambda x: check_object(x, [name for name in METHODS if "dlpack" not in name]))(x)


def check_object(x: Any, methods: list[str]) -> None:
    assert not [name for name in methods if not hasattr(x, f"__{name}__")]
    # Where another test has given Perspex the name `jax`, it is the module of that name.
    names = sys.modules.get("jax.numpy", pnp)
    assert x.__array_namespace__(api_version="2025.12") in (pnp, names)
    assert x.T.shape == x.mT.shape == (3, 2) and (x.ndim, x.size) == (2, 6)
    assert x.to_device(perspex.devices()[0]).shape == (2, 3)
    with pytest.raises(ValueError, match="api_version='2021.12' is not available"):
        x.__array_namespace__(api_version="2021.12")
    with pytest.raises(NotImplementedError, match="to_device takes no stream"):
        x.to_device(None, stream=1)


def test_to_device_in_a_batch() -> None:
    device = perspex.devices()[0]
    out = vmap(lambda x: x.to_device(device) * 2)(pnp.arange(3))
    assert out.tolist() == [0, 2, 4] and pnp.arange(3).to_device(device).device == device


def test_dlpack_capsules_have_the_version_that_the_consumer_asks_for() -> None:
    x = pnp.arange(3)
    names = {
        repr(x.__dlpack__()).split('"')[1],
        repr(x.__dlpack__(max_version=(1, 0))).split('"')[1],
    }
    assert "dltensor" in names and names <= {"dltensor", "dltensor_versioned"}
    np.testing.assert_array_equal(np.from_dlpack(x), [0, 1, 2])
