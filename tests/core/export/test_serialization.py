"""Files of exported functions: those of the real jax load here, and ours are in its format."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perspex
from oracle import records
from perspex import export, lax, nn, random, tree
from perspex import numpy as jnp
from perspex.export import serialization
from perspex.export.tables import Reader

ROWS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
FILES: dict[str, Any] = records.read("exports")
# A Python with jax and flatbuffers, to load our files there.
JAX = os.environ.get("PERSPEX_EXPORT_JAX")


def total(call: Any, x: Any) -> Any:
    leaves = [leaf for leaf in tree.leaves(call(x)) if leaf.dtype == np.float32]
    return sum([jnp.sum(leaf) for leaf in leaves])


def of_jax(name: str) -> export.Exported:
    return export.deserialize(base64.b64decode(FILES[name]["file"]))


def newest() -> bool:
    return perspex.base.xla.jaxlib_version >= (0, 12)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_jax_has_the_types_that_jax_wrote(name: str) -> None:
    loaded = of_jax(name)
    assert [str(aval) for aval in loaded.in_avals] == FILES[name]["in_avals"]
    assert [str(aval) for aval in loaded.out_avals] == FILES[name]["out_avals"]
    assert loaded.calling_convention_version == 10
    assert loaded.nr_devices == 1
    assert loaded.has_vjp()


@pytest.mark.skipif(not newest(), reason="jaxlib 0.10 reads no programs that jax 0.12 writes")
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_jax_gives_the_results_of_jax(name: str) -> None:
    loaded = of_jax(name)
    found = tree.leaves(perspex.jit(loaded.call)(ROWS))
    for leaf, expected in zip(found, FILES[name]["results"], strict=True):
        np.testing.assert_allclose(leaf, np.asarray(expected), rtol=1e-5, atol=1e-6)
    gradient = perspex.grad(lambda x: total(loaded.call, x))(ROWS)
    np.testing.assert_allclose(gradient, FILES[name]["gradient"], rtol=1e-4, atol=1e-5)


FUNCTIONS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "static": (lambda x: {"y": jnp.sin(x) @ x.T, "z": (x.sum(), [x > 0, None])}, "3,4", {}),
    "platforms": (lambda x: jnp.tanh(x) + 1, "3,4", {"platforms": ["cpu", "tpu"]}),
    "symbolic": (lambda x: (jnp.sin(x).reshape(-1), x.mean(0), x[1:] - x[:-1]), "n,4", {}),
    "both": (lambda x: nn.softmax(x) @ x.T, "n,m", {"platforms": ["cpu", "cuda"]}),
    "scan": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), x[0], x), "n,4", {}),
    "special": (lambda x: lax.erf(x) + lax.erf_inv(x * 0.5) + lax.lgamma(x + 3), "n,m", {}),
    "sorted": (lambda x: (jnp.sort(x, 0), x.argmax(1), jnp.cumsum(x, 0)), "n,m", {}),
    "cholesky": (lambda x: jnp.linalg.cholesky(x.T @ x + jnp.eye(4) * 3), "n,4", {}),
}


def ours(name: str, vjp_order: int = 1) -> bytes:
    function, text, options = FUNCTIONS[name]
    (spec,) = export.symbolic_args_specs((ROWS,), (text,))
    exported = export.export(perspex.jit(function), **options)(spec)
    return bytes(exported.serialize(vjp_order=vjp_order))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_written_is_read(name: str) -> None:
    loaded = export.deserialize(ours(name))
    expected = tree.leaves(FUNCTIONS[name][0](ROWS))
    for leaf, value in zip(tree.leaves(loaded.call(ROWS)), expected, strict=True):
        np.testing.assert_allclose(leaf, value, rtol=1e-5, atol=1e-6)
    gradient = perspex.grad(lambda x: total(loaded.call, x))(ROWS)
    expected = perspex.grad(lambda x: total(FUNCTIONS[name][0], x))(ROWS)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5)


SCRIPT = """
import pickle, sys
import numpy as np, jax, jax.numpy as jnp
from jax import export
def total(call, x):
    return sum(jnp.sum(l) for l in jax.tree_util.tree_leaves(call(x)) if l.dtype == jnp.float32)
for name, (data, x, results, gradient) in pickle.load(sys.stdin.buffer).items():
    loaded = export.deserialize(bytearray(data))
    for leaf, value in zip(jax.tree_util.tree_leaves(loaded.call(x)), results, strict=True):
        np.testing.assert_allclose(leaf, value, rtol=1e-5, atol=1e-5)
    found = jax.grad(lambda x: total(loaded.call, x))(x)
    np.testing.assert_allclose(found, gradient, rtol=1e-4, atol=1e-5)
    print(name)
"""


@pytest.mark.skipif(not JAX, reason="PERSPEX_EXPORT_JAX names no Python with jax and flatbuffers")
def test_jax_loads_our_files() -> None:
    import pickle

    assert JAX is not None
    cases = {}
    for name, (function, _, _) in FUNCTIONS.items():
        results = [np.asarray(leaf) for leaf in tree.leaves(function(ROWS))]
        gradient = np.asarray(perspex.grad(lambda x, f=function: total(f, x))(ROWS))
        cases[name] = (ours(name), ROWS, results, gradient)
    done = subprocess.run(
        [JAX, "-c", SCRIPT],
        input=pickle.dumps(cases),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.environ.get("PERSPEX_EXPORT_PATH", "")},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().split() == list(FUNCTIONS)


def test_another_process_calls_a_loaded_function(tmp_path: Path) -> None:
    (tmp_path / "f.bin").write_bytes(ours("symbolic", 0))
    script = (
        "import sys, numpy, perspex\n"
        "from perspex import export\n"
        "loaded = export.deserialize(open(sys.argv[1], 'rb').read())\n"
        "print([y.shape for y in loaded.call(numpy.ones((5, 4), 'float32'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "f.bin")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[(20,), (4,), (4, 4)]"


def test_typed_keys_and_dtypes() -> None:
    def draw(key: Any, x: Any) -> Any:
        return random.uniform(key, (2,)) + x.astype("float32"), random.split(key)

    x = np.arange(2).astype(jnp.bfloat16)
    exported = export.export(perspex.jit(draw))(random.key(0), x)
    loaded = export.deserialize(exported.serialize())
    assert [aval.str_short() for aval in loaded.in_avals] == ["key<fry>[]", "bf16[2]"]
    expected, keys = draw(random.key(3), jnp.asarray(x))
    found, others = loaded.call(random.key(3), x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(random.key_data(others), random.key_data(keys))


def test_the_orders_of_the_derivative() -> None:
    exported = export.export(perspex.jit(lambda x: x**3))(2.0)
    first = export.deserialize(exported.serialize(vjp_order=1))
    assert float(perspex.grad(first.call)(2.0)) == 12.0
    with pytest.raises(ValueError, match="No VJP is available for `fun_vjp_jax`"):
        perspex.grad(perspex.grad(first.call))(2.0)
    with pytest.raises(ValueError, match="does not have vjps of high-enough order"):
        first.serialize(vjp_order=2)
    second = export.deserialize(exported.serialize(vjp_order=2))
    assert float(perspex.grad(perspex.grad(second.call))(2.0)) == 12.0


def test_damaged_files() -> None:
    data = ours("static", 0)
    with pytest.raises(ValueError, match="the bytes are damaged"):
        export.deserialize(data[:100])
    with pytest.raises(ValueError, match="the bytes are damaged"):
        export.deserialize(b"")


def test_the_version_is_that_of_jax_0_12() -> None:
    table = Reader.root(ours("static", 0))
    assert table.number(serialization._VERSION, "H") == 12
    assert table.string(serialization._JAX_VERSION).startswith("0.12")
