"""What becomes of values in the environment that cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, perspex, perspex.numpy as pnp
from perspex.base import environment
print(float(perspex.jit(lambda x: x * 2)(pnp.float32(21))), perspex.config.enable_x64.value)
print(environment.problems, os.environ.get("XLA_FLAGS"), len(perspex.devices()))
"""


def run(**variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("JAX_ENABLE_X64", "yess", "expected a boolean"),
        ("PERSPEX_NUM_CPU_DEVICES", "-3", "above 0"),
        ("JAX_NUM_CPU_DEVICES", "many", "invalid literal"),
        ("JAX_DEFAULT_MATMUL_PRECISION", "banana", "expected one of"),
        ("PERSPEX_COMPILER_OPTIONS", "[1]", "sequence"),
        ("JAX_NUMPY_RANK_PROMOTION", "never", "expected one of"),
    ],
)
def test_a_bad_value_is_named(variable: str, value: str, told: str) -> None:
    strict = run(**{variable: value})
    assert strict.returncode == 1
    assert f"ValueError: the environment variable {variable} has the bad value" in strict.stderr
    assert repr(value) in strict.stderr and told in strict.stderr
    lenient = run(**{variable: value}, PERSPEX_BAD_VALUES="default")
    assert lenient.stdout.startswith("42.0 False\n"), lenient.stderr
    assert variable in lenient.stdout


def test_an_empty_value_is_none() -> None:
    assert run(JAX_NUM_CPU_DEVICES="", JAX_ENABLE_X64="").stdout.startswith("42.0 False\n[]")


def test_flags_that_xla_does_not_know_do_not_end_the_process() -> None:
    flags = "--xla_nothing=1 --xla_cpu_enable_fast_math=true --xla_dump_hlo_as_text=perhaps"
    strict = run(XLA_FLAGS=flags)
    assert strict.returncode == 1 and "ValueError" in strict.stderr
    assert "does not take --xla_nothing=1, --xla_dump_hlo_as_text=perhaps, " in strict.stderr
    lenient = run(XLA_FLAGS=flags, PERSPEX_BAD_VALUES="default")
    assert lenient.stdout.startswith("42.0"), lenient.stderr
    assert lenient.stdout.endswith(" --xla_cpu_enable_fast_math=true 1\n")
    assert "RuntimeWarning" in lenient.stderr and "--xla_nothing=1" in lenient.stderr


def test_flags_that_xla_knows_stay() -> None:
    flags = "--xla_force_host_platform_device_count=3 --xla_cpu_enable_fast_math=false"
    assert run(XLA_FLAGS=flags).stdout.endswith(f"[] {flags} 3\n")


def test_a_file_of_flags_that_is_not_there() -> None:
    assert "does not take /nowhere/at/all" in run(XLA_FLAGS="/nowhere/at/all").stderr
