"""Compiled programs as bytes, read by this process and by another one."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex.experimental import serialize_executable as files

TABLE = np.arange(3000, dtype=np.float32)


def compiled():
    def f(x, unused, *, scale):
        return {"a": x * scale + TABLE[-3:], "b": (x.sum(),)}

    return perspex.jit(f).lower(pnp.ones(3), 1.0, scale=2.0).compile()


X = np.array([1, 2, 4], np.float32)
A, B = X * 5 + np.array([2997, 2998, 2999], np.float32), 7.0


def test_what_is_read_computes_the_same() -> None:
    run = files.deserialize_and_load(*files.serialize(compiled()))
    out = run(X, 0.0, scale=5.0)
    np.testing.assert_array_equal(out["a"], A)
    assert out["b"][0] == B and isinstance(out["a"], perspex.Array)
    assert float((out["a"] + 1)[0]) == A[0] + 1


def test_another_process_runs_it(tmp_path) -> None:
    code, in_tree, out_tree = files.serialize(compiled())
    (tmp_path / "program").write_bytes(code)
    program = """
import sys
import numpy as np, perspex
from perspex.experimental.serialize_executable import deserialize_and_load
in_tree = perspex.tree.structure(((0, 0), {"scale": 0}))
out_tree = perspex.tree.structure({"a": 0, "b": (0,)})
heard = []
perspex.events.subscribe(lambda event: heard.append(event.kind))
run = deserialize_and_load(open(sys.argv[1], "rb").read(), in_tree, out_tree)
out = run(np.array([1, 2, 4], np.float32), 0.0, scale=5.0)
print(out["a"].tolist(), float(out["b"][0]), "compile" in heard)
"""
    out = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "program")], capture_output=True, text=True
    )
    assert out.stdout.strip() == f"{A.tolist()} {B} False", out.stderr


def test_arguments_are_checked() -> None:
    run = files.deserialize_and_load(*files.serialize(compiled()))
    with pytest.raises(TypeError, match=r"was compiled for f32\[3\].*got f32\[4\]"):
        run(np.ones(4, np.float32), 0.0, scale=5.0)
    with pytest.raises(TypeError, match="in the tree"):
        run(X, scale=5.0)


@pytest.mark.parametrize(
    ("fun", "args", "why"),
    [
        (lambda x: perspex.pure_callback(lambda x: x, x, x), (1.0,), "calls Python"),
        (lambda k: perspex.random.split(k), (perspex.random.key(0),), "typed keys"),
    ],
)
def test_what_cannot_be_written(fun, args, why) -> None:
    with pytest.raises(ValueError, match=f"{why}.*use perspex.export"):
        files.serialize(perspex.jit(fun).lower(*args).compile())
    donating = perspex.jit(lambda x: x + 1, donate_argnums=0).lower(1.0).compile()
    with pytest.raises(ValueError, match="donates"):
        files.serialize(donating)


def test_other_versions_are_refused() -> None:
    code, in_tree, out_tree = files.serialize(compiled())
    older = pickle.dumps(pickle.loads(code) | {"jaxlib": "0.1"})
    with pytest.raises(ValueError, match=r"compiled by jaxlib 0\.1 for cpu"):
        files.deserialize_and_load(older, in_tree, out_tree)
