"""Shardings in types: what real jax printed, computed and refused, and NumPy.

Real jax ran `oracle/recorders/explicit_axes.py` for the records; here Perspex runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import kept, quick

import perspex
import perspex.numpy as jnp
from oracle import records
from perspex.errors import ShardingTypeError
from perspex.ir.avals import ShapedArray
from perspex.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from perspex.tracing import cuts

ROOT = Path(__file__).resolve().parents[3]
RECORDS = records.read("explicit_axes")
PROGRAMS = records.section("explicit_axes", "programs")
OTHERS = [key for key in RECORDS if not key.startswith("programs / ")]
P = PartitionSpec
MESH = AbstractMesh((4, 2), ("X", "Y"))


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    return records.ours("explicit_axes")


def check_close(found: Any, expected: Any) -> None:
    assert found[0] == expected[0], "shapes"
    np.testing.assert_allclose(found[1], expected[1], rtol=3e-4, atol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_typed_placed_and_computed_as_in_jax(name: str, ours: Any) -> None:
    found, expected = ours[f"programs / {name}"], PROGRAMS[name]
    assert found.keys() == expected.keys(), found
    for what in ("types", "eager types", "parts", "compiled parts"):
        assert found[what] == expected[what], what
    for what in ("values", "compiled"):
        for mine, theirs in zip(found[what], expected[what], strict=True):
            check_close(mine, theirs)


@pytest.mark.parametrize("key", OTHERS)
def test_texts_and_errors_are_those_of_jax(key: str, ours: Any) -> None:
    assert ours[key] == RECORDS[key]


def test_every_program_has_a_record_and_every_record_a_program(ours: Any) -> None:
    assert ours.keys() == RECORDS.keys()
    assert not [key for key, value in PROGRAMS.items() if "failed" in value]


# ---- Types, without devices ---------------------------------------------------------------------


def typed(shape: tuple[int, ...], *spec: Any, **sets: Any) -> ShapedArray:
    return ShapedArray(shape, np.dtype("float32"), sharding=NamedSharding(MESH, P(*spec, **sets)))


def test_types_are_interned_and_print_how_they_are_cut() -> None:
    aval = typed((8, 4), "X", "Y")
    assert aval is typed((8, 4), "X", "Y") is not typed((8, 4), "Y", "X")
    assert str(aval) == "float32[8@X,4@Y]" and aval.str_short() == "f32[8@X,4@Y]"
    assert str(typed((8,), ("X", "Y"))) == "float32[8@(X,Y)]"
    assert str(typed((8,), None, unreduced={"X"}, reduced={"Y"})) == "float32[8]{U:X, R:Y}"
    assert aval.update(shape=(3,)) is ShapedArray((3,), np.dtype("float32"))
    assert aval.update(weak_type=True).strip_weak_type() is aval
    assert aval.cotangent() is aval
    assert typed((8,), reduced={"X"}).cotangent() is typed((8,), unreduced={"X"})


def test_a_type_says_nothing_where_nothing_is_cut_along_explicit_axes() -> None:
    plain = ShapedArray((8, 4), np.dtype("float32"))
    auto = AbstractMesh((4, 2), ("X", "Y"), (AxisType.Auto, AxisType.Manual))
    for sharding in (NamedSharding(MESH, P()), NamedSharding(auto, P("X", "Y"))):
        assert plain.update(sharding=sharding) is plain
    assert plain.cut is None and plain.sharding.mesh.empty
    assert plain.sharding.spec == P(None, None)
    with perspex.sharding.use_abstract_mesh(MESH):
        assert plain.sharding == NamedSharding(MESH, P(None, None))


def test_a_mesh_of_a_thousand_devices_that_is_not_there() -> None:
    mesh = AbstractMesh((32, 32), ("data", "model"))

    def given(shape: tuple[int, ...], *spec: Any) -> Any:
        return perspex.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P(*spec)))

    def loss(w: Any, x: Any) -> Any:
        return (jnp.tanh(x @ w) ** 2).sum()

    w, x = given((64, 64), None, "model"), given((1024, 64), "data")
    traced = perspex.jit(perspex.grad(loss)).trace(w, x)
    assert str(traced.out_avals) == "float32[64,64@model]"
    lowered = traced.lower(lowering_platforms=("tpu",))
    text = lowered.as_text()
    assert '[{}, {"model"}]' in text and 'mesh<["data"=32, "model"=32]>' in text
    assert lowered.cost_analysis()["flops"] > 1024 * 64 * 64
    with pytest.raises(ValueError, match="no devices, and cannot be compiled: XLA .* tpu"):
        lowered.compile()


def test_a_program_is_compiled_for_devices_that_are_not_there() -> None:
    """Each of 64 x 16 devices has its part of arguments and results, and a ring adds up."""
    mesh = AbstractMesh((64, 16), ("data", "model"))

    def given(shape: tuple[int, ...], *spec: Any) -> Any:
        return perspex.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P(*spec)))

    def layer(w: Any, x: Any) -> Any:
        return jnp.tanh(x @ w).sum(1)

    w, x = given((32, 64), None, "model"), given((1024, 32), "data")
    threads = len(os.listdir("/proc/self/task"))
    compiled = perspex.jit(layer).trace(w, x).lower().compile()
    assert len(os.listdir("/proc/self/task")) < threads + 500
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 4 * (32 * 64 // 16 + 1024 * 32 // 64)
    assert memory.output_size_in_bytes == 4 * 1024 // 64
    # 2 n m k for the product, and more for the rest.
    product = 2 * (1024 // 64) * 32 * (64 // 16)
    assert product <= compiled.cost_analysis()["flops"] < 2 * product
    (sums,) = compiled.communication()
    assert (sums.collective, sums.group) == ("all-reduce", 16)
    assert sums.sent == 4 * (1024 // 64) * 2 * 15 / 16
    assert "num_partitions=1024" in compiled.as_text()
    assert compiled.output_shardings.spec == P("data")
    with pytest.raises(ValueError, match=r"`layer` was compiled for AbstractMesh.* no devices"):
        compiled(np.ones((32, 64), np.float32), np.ones((1024, 32), np.float32))


RESHAPES = {
    "split": ((8, 16), ("X",), (8, 4, 4), ("X", None, None)),
    "split the cut": ((8, 16), ("X",), (4, 2, 16), ("X", None, None)),
    "split between two axes": ((8, 4), (("X", "Y"),), (4, 2, 4), ("X", "Y", None)),
    "merge": ((2, 4, 3), ("Y", None, None), (8, 3), ("Y", None)),
    "merge two that are cut": ((8, 4), ("X", "Y"), (32,), (("X", "Y"),)),
    "ones": ((1, 8, 1, 4), (None, "X", None, "Y"), (8, 4, 1), ("X", "Y", None)),
    "whole": ((6, 4), (), (3, 8), ()),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_reshaped(name: str) -> None:
    before, spec, after, expected = RESHAPES[name]
    found = cuts.reshaped(typed(before, *spec), after)
    assert P(*found) == P(*expected, *[None] * (len(after) - len(expected)))


@pytest.mark.parametrize(
    ("before", "spec", "after"),
    [
        ((8, 16), (None, "X"), (2, 64)),  # neither a split nor a merge
        ((8, 16, 8), ("X",), (4, 2, 16, 4, 2)),  # two splits
        ((4, 8), (None, "X"), (32,)),  # a whole axis before one that is cut
        ((8,), ("X",), (2, 4)),  # parts that do not fit
    ],
)
def test_what_cannot_be_reshaped_asks_for_out_sharding(before: Any, spec: Any, after: Any) -> None:
    with pytest.raises(ShardingTypeError, match="out_sharding"):
        cuts.reshaped(typed(before, *spec), after)


# ---- On eight devices ---------------------------------------------------------------------------

PRELUDE = """
import json, sys
import numpy as np, perspex, perspex.numpy as jnp
from perspex import lax
from perspex.sharding import *
P = PartitionSpec
mesh = perspex.make_mesh((4, 2), ("X", "Y"))
numbers = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
squares = np.random.default_rng(1).normal(size=(8, 3, 3)).astype(np.float32)
positive = squares @ squares.transpose(0, 2, 1) + np.eye(3, dtype=np.float32)
def cut(x, *spec): return perspex.reshard(x, NamedSharding(mesh, P(*spec)))
def raised(kind, f, *args):
    try: f(*args)
    except kind as error: return str(error)
    raise AssertionError("no error")
x = cut(numbers, "X", "Y")
"""

SCRIPTS = {
    "matrices in a batch that is cut, which real jax refuses": """
for f, wanted in ((jnp.linalg.cholesky, np.linalg.cholesky), (jnp.linalg.inv, np.linalg.inv)):
    found = f(cut(positive, "X"))
    assert str(found.aval) == "float32[8@X,3,3]", found.aval
    np.testing.assert_allclose(found, wanted(positive), rtol=1e-3, atol=1e-4)
grad = perspex.grad(lambda a: jnp.log(jnp.diagonal(jnp.linalg.cholesky(a), axis1=1, axis2=2)).sum())
found = grad(cut(positive, "X"))
assert str(found.aval) == "float32[8@X,3,3]", found.aval
np.testing.assert_allclose(found, np.linalg.inv(positive) / 2, rtol=1e-2, atol=1e-3)
""",
    "a whole operand has what is needed": """
both = jnp.concatenate([cut(numbers, "X"), jnp.ones((8, 4))], 1)
assert str(both.aval) == "float32[8@X,8]"
chosen = jnp.where(x > 0, x, jnp.zeros((8, 4)))
np.testing.assert_array_equal(chosen, np.maximum(numbers, 0))
""",
    "constants in a program": """
f = perspex.jit(lambda a: a * numbers + np.arange(4, dtype=np.float32))
np.testing.assert_allclose(f(x), numbers * numbers + np.arange(4), rtol=1e-6)
assert f(x).sharding.spec == P("X", "Y")
""",
    "a function is traced again under another mesh": """
seen = []
@perspex.jit
def f(a):
    seen.append(get_abstract_mesh().axis_names)
    return jnp.zeros(4, out_sharding=P(get_abstract_mesh().axis_names[0])) + a
for names in (("X", "Y"), ("A", "B"), ("X", "Y")):
    with perspex.set_mesh(perspex.make_mesh((4, 2), names)):
        assert f(1.0).sharding.spec == P(names[0]), f(1.0).sharding
assert seen == [("X", "Y"), ("A", "B")], seen
""",
    "a program says how its results lie": """
text = perspex.jit(lambda a: jnp.sin(a).sum(0)).lower(x).as_text()
assert text.count("sdy.sharding_constraint") == 2, text
assert 'tensor<4xf32> {sdy.sharding = #sdy.sharding<mesh<["X"=4, "Y"=2]>, [{"Y"}]>}' in text
auto = perspex.make_mesh((4, 2), ("X", "Y"), AxisType.Auto)
y = perspex.device_put(numbers, NamedSharding(auto, P("X", "Y")))
assert "sharding_constraint" not in perspex.jit(lambda a: jnp.sin(a).sum(0)).lower(y).as_text()
""",
    "in_shardings are part of the types": """
f = perspex.jit(lambda a: a * 2, in_shardings=NamedSharding(mesh, P("X")))
assert str(f(numbers).aval) == "float32[8@X,4]" and f(numbers).sharding.spec == P("X", None)
""",
    "several transforms": """
w = cut(np.ones((4, 6), np.float32), None, "Y")
rows = cut(numbers, "X")
def step(w, row):
    def turn(carry, v): return jnp.tanh(carry + v), carry
    return lax.scan(turn, row @ w, jnp.arange(3.0))[0].sum()
per_row = perspex.jit(perspex.vmap(perspex.grad(perspex.checkpoint(step)), (None, 0)))
found = per_row(w, rows)
assert str(found.aval) == "float32[8@X,4,6@Y]", found.aval
alone = perspex.vmap(perspex.grad(step), (None, 0))(np.ones((4, 6), np.float32), numbers)
np.testing.assert_allclose(found, alone, rtol=1e-4, atol=1e-5)
""",
    "tangents and cotangents that are cut in another way": """
other, primal = cut(np.ones((8, 4), np.float32), None, "Y"), cut(numbers, "X")
for f, slope in ((jnp.sin, np.cos(numbers)), (lambda a: a.T.T * a, 2 * numbers)):
    for run in (perspex.jvp, perspex.jit(perspex.jvp, static_argnums=0)):
        y, t = run(f, (primal,), (other,))
        assert str(t.aval) == str(y.aval) == "float32[8@X,4]", t.aval
        np.testing.assert_allclose(t, slope, rtol=1e-4, atol=1e-5)
    # A primal that is not cut: its tangent is put together.
    assert str(perspex.jvp(f, (numbers,), (cut(numbers, "X", "Y"),))[1].aval) == "float32[8,4]"
    # A loop's carry keeps its type.
    def g(a): return lax.scan(lambda c, _: (f(c), None), a, None, length=1)[0]
    np.testing.assert_allclose(perspex.jvp(g, (primal,), (other,))[1], slope, rtol=1e-4, atol=1e-5)
for name, f in (
    ("linearized function", perspex.linearize(jnp.sin, primal)[1]),
    ("argument to VJP", perspex.vjp(jnp.sin, primal)[1]),
):
    text = raised(ValueError, f, other)
    assert name in text and "[8,4@Y]" in text and "[8@X,4]" in text, text
    # A tangent that is not cut agrees with any primal.
    (found,) = perspex.tree.leaves(f(np.ones((8, 4), np.float32)))
    np.testing.assert_allclose(found, np.cos(numbers), rtol=1e-5)
""",
    "what shard_map closes over": """
total = x.sum()
g = perspex.shard_map(lambda a: a * total, mesh=mesh, in_specs=P("X"), out_specs=P("X"))
np.testing.assert_allclose(g(numbers), numbers * numbers.sum(), rtol=1e-4, atol=1e-5)
g = perspex.shard_map(lambda a: a[0] * x, mesh=mesh, in_specs=P("X"), out_specs=P("X"))
assert "argument" in raised(NotImplementedError, perspex.jit(lambda a: g(a)), numbers)
""",
    "meshes that disagree": """
other = perspex.make_mesh((2, 4), ("X", "Y"))
y = perspex.device_put(numbers, NamedSharding(other, P("X")))
assert "one mesh" in raised(Exception, lambda: x + y)
with perspex.set_mesh(mesh):
    text = raised(ValueError, lambda: jnp.zeros(8, out_sharding=NamedSharding(other, P("X"))))
    assert "must be that of set_mesh" in text, text
""",
    "errors say what to do": """
text = raised(perspex.errors.ShardingTypeError, lambda: x + x.T.reshape(8, 4, out_sharding=
    NamedSharding(mesh, P("Y", "X"))))
assert "('X', 'Y'), ('Y', 'X')" in text and "reshard" in text, text
text = raised(ValueError, lambda: jnp.zeros(8, out_sharding=P("X")))
assert "set_mesh" in text, text
text = raised(AssertionError, lambda: lax.with_sharding_constraint(x, NamedSharding(mesh, P())))
assert "jax.sharding.reshard" in text, text
with perspex.set_mesh(perspex.make_mesh((8,), ("Z",), AxisType.Auto)):
    text = raised(ValueError, lambda: perspex.reshard(numbers, P("Z")))
    assert "Explicit" in text and "with_sharding_constraint" in text, text
text = raised(ValueError, perspex.jit(lambda a: perspex.set_mesh(mesh)), 1.0)
assert "outside" in text, text
""",
    "axes of one device can be left out": """
one = perspex.make_mesh((8, 1), ("X", "Y"))
with perspex.set_mesh(one):
    assert str(perspex.reshard(numbers, P("X", "Y")).aval) == "float32[8@X,4@Y]"
    with perspex.config.remove_size_one_mesh_axis_from_type(True):
        assert str(perspex.reshard(numbers, P("X", "Y")).aval) == "float32[8@X,4]"
""",
    "auto_pcast": """
f = perspex.shard_map(lambda a: a + 1.0, mesh=mesh, in_specs=P("X"), out_specs=P("X"))
assert f(numbers).shape == (8, 4)
with perspex.config.auto_pcast(False):
    assert "lax.pcast" in raised(ValueError, f, numbers)
""",
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    """What went wrong in each script, in one process with eight devices."""
    program = (
        f"{PRELUDE}\nimport traceback\nfound = {{}}\n"
        "for name, text in json.loads(sys.stdin.read()).items():\n"
        "    try: exec(text, dict(globals()))\n"
        "    except Exception: found[name] = traceback.format_exc()\n"
        "print(json.dumps(found))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "core"), "JAX_NUM_CPU_DEVICES": "8"}
    env |= kept.environment() | quick.environment()
    out = subprocess.run(
        [sys.executable, "-c", program],
        env=env,
        input=json.dumps(SCRIPTS),
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr[-3000:]
    found: dict[str, str] = json.loads(out.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_on_eight_devices(name: str, outcomes: dict[str, str]) -> None:
    assert name not in outcomes, outcomes.get(name)
