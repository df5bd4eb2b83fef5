"""A program's optimized text has its own names and lines, whoever compiled the executable first.

What it should be is what XLA writes when it compiles that very program.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex import config
from perspex.base import events
from perspex.runtime.compiler import cache, disk

X = np.arange(3, dtype=np.float32)
# Operations one by one, calls, loops of the user and of ours, derivatives, and a sort's comparison.
PROGRAM = """
def model(x):
    with perspex.named_scope({scope!r}):
        y = jnp.sin(x) * 2
    def step(c, z):
        with perspex.named_scope({scope!r} + "/inside"):
            return jnp.cos(c) * z, c + z
    last, sums = perspex.lax.scan(step, x[0], y)
    inner = perspex.jit(lambda x: jnp.tanh(x) * 3)
    slope = perspex.grad(lambda x: step(x, x)[0])(last)
    return inner(y) + jnp.cumsum(sums) + last + slope, jnp.sort(y)
"""


def model(scope: str, file: str, line: int) -> Any:
    space: dict[str, Any] = {"perspex": perspex, "jnp": jnp}
    exec(compile("\n" * line + PROGRAM.format(scope=scope), file, "exec"), space)
    return perspex.jit(space["model"]).lower(X).compile()


def written_by_xla(compiled: Any) -> str:
    return "\n\n".join([module.to_string() for module in compiled._executable.xla.hlo_modules()])


SCOPES = ["layer", "layer#3", "a/b c", 'quoted "\\', "größe\n"]


@pytest.mark.parametrize("scope", SCOPES, ids=ascii)
def test_a_program_that_is_found_in_memory(compiled_here: None, scope: str) -> None:
    wanted = written_by_xla(model(scope, "second.py", 7))
    cache.forget()
    first = model("other", "first.py", 0)
    second = model(scope, "second.py", 7)
    assert second._executable.xla is first._executable.xla  # so it has the names of the first
    assert written_by_xla(second) != wanted
    assert second.as_text() == wanted
    assert first.as_text() == written_by_xla(first)


def test_a_program_that_is_found_on_disk(compiled_here: None, tmp_path: Path) -> None:
    with config.compilation_cache_dir(tmp_path):
        model("other", "first.py", 0)
        assert disk.flush(30)
        cache.forget()
        second = model("layer", "second.py", 7)
    text = second.as_text()
    assert 'op_name="layer/sin#' in text and "other" not in text
    assert '"second.py"' in text and '"first.py"' not in text


def test_looking_at_it_tells_nobody(compiled_here: None) -> None:
    compiled = model("layer", "second.py", 7)
    heard: list[Any] = []
    stop = events.subscribe(heard.append)
    try:
        compiled.as_text()
    finally:
        stop()
    assert heard == []
