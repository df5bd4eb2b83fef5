"""Flags that forbid, check or log something."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex import config
from perspex.errors import JaxRuntimeError

LOGGER = "perspex"


def test_transfers_can_be_forbidden() -> None:
    f = perspex.jit(lambda x: x + 1)
    given = np.ones(3, np.float32)
    f(given)
    with perspex.transfer_guard("disallow"):
        with pytest.raises(JaxRuntimeError, match="Disallowed host-to-device transfer"):
            f(given)
        asked = perspex.device_put(given)
        assert perspex.device_get(f(asked)).tolist() == [2, 2, 2]
        with perspex.transfer_guard_host_to_device("allow"):
            f(given)
        with pytest.raises(JaxRuntimeError):
            f(given)
    with (
        perspex.transfer_guard_host_to_device("disallow_explicit"),
        pytest.raises(JaxRuntimeError),
    ):
        perspex.device_put(given)
    f(given)


def test_the_guard_of_all_threads_is_set_and_taken_back() -> None:
    config.update("jax_transfer_guard", "disallow")
    try:
        with pytest.raises(JaxRuntimeError):
            pnp.asarray(np.ones(3))
        with perspex.transfer_guard("allow"):
            pnp.asarray(np.ones(3))
        assert config.read("transfer_guard_host_to_device") == "disallow"
    finally:
        config.update("jax_transfer_guard", None)
    pnp.asarray(np.ones(3))


def test_a_level_that_is_none() -> None:
    with pytest.raises(ValueError, match="expected one of"), perspex.transfer_guard("never"):
        pass


def test_no_tracing() -> None:
    f = perspex.jit(lambda x: x * 2)
    f(1.0)
    with perspex.no_tracing(True):
        again = f(2.0)
        with pytest.raises(RuntimeError, match=r"`<lambda>` for \(i32\[\]\*\), but 'no_tracing'"):
            f(1)
    assert again == 4


def test_no_execution() -> None:
    x = pnp.ones(3)
    f = perspex.jit(lambda x: x * 2)
    f(x)
    with perspex.no_execution(True), pytest.raises(RuntimeError, match="no_execution"):
        f(x)
    with perspex.no_execution(True):
        assert f.lower(x).as_text()
    f(x)


def test_checks_of_programs() -> None:
    with perspex.enable_checks(True):
        assert perspex.jit(perspex.grad(lambda x: pnp.sin(x) ** 2))(0.0) == 0


def test_compiles_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    def cubed(x: Any) -> Any:
        return x * x * x

    with caplog.at_level(logging.WARNING, LOGGER):
        with perspex.log_compiles(True):
            perspex.jit(cubed)(2.0)
        perspex.jit(lambda x: x - 1)(2.0)
    told = caplog.text
    assert "Finished tracing cubed for jit in" in told
    assert "Compiling jit(cubed) with global shapes and types [f32[]*]" in told
    assert "Finished XLA compilation of jit(cubed) in" in told
    assert "<lambda>" not in told


def test_a_flag_for_all_threads_logs(caplog: pytest.LogCaptureFixture) -> None:
    config.update("jax_log_compiles", True)
    try:
        with caplog.at_level(logging.WARNING, LOGGER):
            perspex.jit(lambda x: x - 7)(2.0)
            with perspex.log_compiles(False):
                perspex.jit(lambda y: y - 8)(2)
    finally:
        config.update("jax_log_compiles", False)
    assert caplog.text.count("Compiling") == 1


def test_misses_are_explained(caplog: pytest.LogCaptureFixture) -> None:
    f = perspex.jit(lambda x: x + 1)
    with caplog.at_level(logging.WARNING, LOGGER), perspex.explain_cache_misses(True):
        f(1.0)
        f(1)
    first, second = caplog.messages
    assert "TRACING CACHE MISS at test_config.py" in first and "first call" in first
    assert "f32[] -> i32[]" in second


def test_a_context_of_the_users_is_part_of_the_key() -> None:
    mode = perspex.make_user_context("plain")
    traced = []

    @perspex.jit
    def f(x: Any) -> Any:
        traced.append(mode.value)
        return x if mode.value == "plain" else -x

    with mode("negative"):
        assert f(1.0) == -1
    assert f(1.0) == 1 and f(1.0) == 1
    with mode("negative"):
        assert f(2.0) == -2
    assert traced == ["negative", "plain"]
    mode.set_global("other")
    assert (mode.value, mode.get_global()) == ("other", "other")


def test_raw_keys_can_be_refused() -> None:
    raw = perspex.random.PRNGKey(0)
    with perspex.legacy_prng_key("error"), pytest.raises(ValueError, match="legacy uint32"):
        perspex.random.split(raw)
    with perspex.legacy_prng_key("warn"), pytest.warns(UserWarning, match="legacy uint32"):
        perspex.random.split(raw)
    perspex.random.split(raw)


def test_sums_of_halves_can_be_refused() -> None:
    x = pnp.ones(4, pnp.bfloat16)
    with perspex.allow_f16_reductions(False), pytest.raises(ValueError, match="reduce_sum"):
        perspex.lax.reduce_sum(x, (0,))
    assert perspex.lax.reduce_sum(x, (0,)) == 4


@pytest.mark.parametrize(
    "switch",
    [
        perspex.softmax_custom_jvp,
        perspex.jax2tf_associative_scan_reductions,
        perspex.thread_guard,
    ],
)
def test_switches_without_effect_here(switch: Callable[..., Any]) -> None:
    with switch(True):
        assert perspex.nn.softmax(pnp.zeros(2)).tolist() == [0.5, 0.5]


def test_what_is_collected_can_be_reported() -> None:
    with perspex.array_garbage_collection_guard("log"):
        pnp.ones(3)


def test_the_report_of_an_environment() -> None:
    text = perspex.print_environment_info(return_string=True)
    assert text is not None
    assert f"numpy:  {np.__version__}" in text and "process_count:" in text
