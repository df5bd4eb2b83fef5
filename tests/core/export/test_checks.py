"""Checks that can be turned off."""

from __future__ import annotations

import numpy as np
import pytest

import perspex
from perspex import export
from perspex import numpy as jnp
from perspex.export import checks


def test_values() -> None:
    check = export.DisabledSafetyCheck.custom_call("f")
    assert str(check) == "custom_call:f" and check.is_custom_call() == "f"
    assert check == export.DisabledSafetyCheck("custom_call:f")
    assert hash(check) == hash(export.DisabledSafetyCheck("custom_call:f"))
    assert check != export.DisabledSafetyCheck.platform()
    assert export.DisabledSafetyCheck.platform().is_custom_call() is None


def test_lapack_is_allowed_and_others_are_not() -> None:
    x = np.eye(3, dtype=np.float32)
    export.export(perspex.jit(jnp.linalg.cholesky))(x)
    function = perspex.jit(lambda x: perspex.scipy.linalg.hessenberg(x))
    export.export(function)(x)
    calls_python = perspex.jit(lambda x: perspex.pure_callback(np.sin, x, x))
    for allowed in ([], [export.DisabledSafetyCheck.custom_call("ALL")]):
        with pytest.raises(NotImplementedError, match="calls Python functions"):
            export.export(calls_python, disabled_checks=allowed)(x)


def test_functions_that_a_later_version_may_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.eye(3, dtype=np.float32)
    monkeypatch.setattr(checks, "_LAPACK_NAMES", set())
    cholesky = perspex.jit(jnp.linalg.cholesky)
    with pytest.raises(ValueError, match="no compatibility guarantees: `cholesky` calls lapack_sp"):
        export.export(cholesky)(x)
    check = export.DisabledSafetyCheck.custom_call("lapack_spotrf_ffi")
    assert export.export(cholesky, disabled_checks=[check])(x).disabled_safety_checks == (check,)


def test_what_is_no_check_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"made by export\.DisabledSafetyCheck, got 'platform'"):
        export.export(perspex.jit(jnp.sin), disabled_checks=["platform"])(np.float32(1))  # type: ignore[list-item]
