"""`shard_map` and `pmap` over eight devices: what real jax computed, and NumPy.

Real jax ran `oracle/recorders/shard_maps.py` for the records; here Perspex runs it.
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

from oracle import records

ROOT = Path(__file__).resolve().parents[3]
RECORDER = ROOT / "tests" / "oracle" / "recorders" / "shard_maps.py"
BODIES = records.section("shard_maps", "bodies")
PROGRAMS = records.section("shard_maps", "programs")
PMAPS = records.section("shard_maps", "pmaps")
OTHERS = {
    key: value
    for section in ("types", "errors", "pmap errors")
    for key, value in (
        (f"{section} / {name}", value)
        for name, value in records.section("shard_maps", section).items()
    )
}


def run(*args: str, **variables: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "core"), "JAX_NUM_CPU_DEVICES": "8"}
    env |= kept.environment() | variables
    out = subprocess.run(
        [sys.executable, *args], env=env, capture_output=True, text=True, timeout=600
    )
    assert out.returncode == 0, out.stderr[-3000:]
    return out.stdout


@pytest.fixture(scope="module")
def ours() -> Any:
    out = run("-m", "perspex.as_jax", str(RECORDER), **quick.environment())
    return json.loads(out.splitlines()[-1])


def check_close(found: Any, expected: Any) -> None:
    assert found[0] == expected[0], "shapes"
    np.testing.assert_allclose(found[1], expected[1], rtol=3e-4, atol=1e-4)


@pytest.mark.parametrize("name", BODIES)
def test_values_and_derivatives_are_those_of_jax(name: str, ours: Any) -> None:
    expected, found = BODIES[name], ours[f"bodies / {name}"]
    assert found.keys() == expected.keys()
    for what, arrays in expected.items():
        for mine, theirs in zip(found[what], arrays, strict=True):
            check_close(mine, theirs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_as_those_of_jax(name: str, ours: Any) -> None:
    """Where real jax raises for values, gradients or a batch, nothing is compared."""
    found = ours[f"programs / {name}"]
    computed = {key: value for key, value in PROGRAMS[name].items() if isinstance(value, list)}
    assert "values" in computed
    for key, arrays in computed.items():
        for mine, theirs in zip(found[key], arrays, strict=True):
            check_close(mine, theirs)


@pytest.mark.parametrize("name", PMAPS)
def test_pmap_computes_and_places_as_jax(name: str, ours: Any) -> None:
    for mine, theirs in zip(ours[f"pmaps / {name}"], PMAPS[name], strict=True):
        assert mine["axes"] == theirs["axes"]
        check_close(mine["values"], theirs["values"])


@pytest.mark.parametrize("name", OTHERS)
def test_types_and_errors_are_those_of_jax(name: str, ours: Any) -> None:
    assert OTHERS[name] is not None
    assert ours[name] == OTHERS[name]


SETUP = """
import numpy as np
import perspex
from perspex import lax, numpy as jnp, shard_map
from perspex.sharding import Mesh, NamedSharding
P = perspex.sharding.PartitionSpec

mesh = Mesh(np.array(perspex.devices()).reshape(4, 2), ("x", "y"))
A = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
parts = A.reshape(4, 2, 4)


def on(f, i=P("x"), o=P("x"), **options):
    return shard_map(f, mesh=mesh, in_specs=i, out_specs=o, **options)


def same(found, expected, tol=1e-5):
    np.testing.assert_allclose(found, expected, rtol=tol, atol=tol)


def raised(f, kind):
    try:
        f()
    except kind as error:
        return str(error)
    raise AssertionError("no error")
"""

# What real jax cannot run, or what concerns Perspex alone, against NumPy.
CASES = {
    "groups of devices": """
pairs = [[0, 2], [3, 1]]
total = lambda a: lax.psum(jnp.sin(a), "x", axis_index_groups=pairs)
f = on(total, check_vma=False)
sums = np.sin(parts)[[2, 3, 0, 1]] + np.sin(parts)
same(f(A), sums.reshape(8, 4))
weights = np.arange(32, dtype=np.float32).reshape(8, 4)
each = weights.reshape(4, 2, 4)
both = (each[[2, 3, 0, 1]] + each).reshape(8, 4)
same(perspex.grad(lambda a: (f(a) * weights).sum())(A), np.cos(A) * both)
half = on(lambda a: lax.all_gather(a[0], "x", axis_index_groups=pairs), check_vma=False)
first = parts[:, 0]
same(half(A), np.concatenate([first[g] for g in ([0, 2], [3, 1], [0, 2], [3, 1])]))
for groups, text in (
    ([[0, 1], [2]], "groups of one size"),
    ([[0, 1], [2, 2]], "once"),
):
    wrong = on(lambda a: lax.psum(a, "x", axis_index_groups=groups), check_vma=False)
    assert text in raised(lambda: wrong(A), ValueError)
assert "check_vma=False" in raised(lambda: on(total)(A), NotImplementedError)
both_axes = on(lambda a: lax.psum(a, ("x", "y"), axis_index_groups=pairs), check_vma=False)
assert "one axis" in raised(lambda: both_axes(A), NotImplementedError)
""",
    "a rule of the user's that names an axis": """
@perspex.custom_vjp
def total(x):
    return lax.psum(x, "x")
total.defvjp(
    lambda x: (lax.psum(x, "x"), x),
    lambda x, g: (g * lax.pmean(jnp.cos(x), "x") * lax.axis_index("x"),),
)
@perspex.custom_jvp
def mean(x):
    return lax.pmean(x, "x")
mean.defjvp(lambda x, t: (lax.pmean(x[0], "x"), 3 * lax.pmean(t[0], "x")))
found = perspex.grad(lambda a: on(total, o=P())(a).sum())(A)
same(found, (np.cos(parts).mean(0) * np.arange(4)[:, None, None]).reshape(8, 4))
for f in (lambda g: g, perspex.jit):
    same(f(perspex.grad(lambda a: on(mean, o=P())(a).sum()))(A), 0.75 * np.ones((8, 4)))
""",
    "vmap over a shard_map that takes a part of the examples": """
both = np.stack([A, A + 1, A + 2, A + 3])
cut_y = lambda f, o=P("y"): shard_map(f, mesh=mesh, in_specs=P("y"), out_specs=o)
f = perspex.vmap(cut_y(lambda a: lax.psum(a, "y"), P()), spmd_axis_name="x")
out = f(both)
same(out, both.reshape(4, 2, 4, 4).sum(1))
assert out.sharding.spec[0] == "x", out.sharding
ungiven = perspex.vmap(cut_y(lambda a: a * 2), spmd_axis_name="x")
assert "multiple" in raised(lambda: ungiven(both[:3]), ValueError)
same_axis = perspex.vmap(on(lambda a: a), spmd_axis_name="x")
assert "cannot appear" in raised(lambda: same_axis(both), ValueError)
""",
    "devices that take different branches share a gradient": """
def f(a, w):
    return lax.cond(lax.axis_index("x") > 1, lambda a: a * w, lambda a: jnp.sin(a), a)
loss = lambda w: on(f, (P("x"), P()))(A, w).sum()
same(perspex.jit(perspex.grad(loss))(np.ones(4, np.float32)), parts[2:].sum((0, 1)))
""",
    "all_to_all of single elements has a derivative": """
f = on(lambda a: lax.all_to_all(jnp.sin(a.reshape(4, 2)), "x", 0, 0))
out = np.sin(A.reshape(4, 4, 2)).transpose(1, 0, 2).reshape(16, 2)
same(f(A), out)
weights = np.arange(32, dtype=np.float32).reshape(16, 2)
same(
    perspex.grad(lambda a: (f(a) * weights).sum())(A),
    np.cos(A) * weights.reshape(4, 4, 2).transpose(1, 0, 2).reshape(8, 4),
)
""",
    "a sum along an axis where all are equal": """
f = on(lambda a: lax.psum(a, ("x", "y")), o=P())
same(f(A), 2 * parts.sum(0))
first = np.arange(32).reshape(8, 4) % 8 == 0
same(perspex.grad(lambda a: f(a)[0, 0])(A), 2 * first)
""",
    "pbroadcast": """
same(on(lambda a: lax.pbroadcast(a, "x", 2))(A), np.tile(parts[2], (4, 1)))
""",
    "C++ repeats a call over eight devices by itself": """
import sys
x = perspex.device_put(A, NamedSharding(mesh, P(("x", "y"))))
f = perspex.jit(lambda x: x + 1)
f(f(x))
called = []
sys.setprofile(lambda frame, event, arg: event == "call" and called.append(frame.f_code.co_name))
f(x)
sys.setprofile(None)
assert set(called) <= {"__hash__", "__eq__"}, called
""",
    "several axes are counted in the order of their names": """
both = P(("x", "y"))
back = on(lambda a: lax.pshuffle(a, ("x", "y"), range(7, -1, -1)), both, both)
same(back(A), A[::-1])
# Device (x, y) has row 2 x + y, and number 4 y + x.
turned = on(lambda a: lax.ppermute(a, ("y", "x"), [(i, (i + 1) % 8) for i in range(8)]), both, both)
rows = np.array([2 * (i % 4) + i // 4 for i in range(8)])
expected = np.empty_like(A)
expected[np.roll(rows, -1)] = A[rows]
same(turned(A), expected)
""",
    "pbroadcast backwards and along a batch": """
f = on(lambda a: lax.pbroadcast(a, "x", 2))
weights = np.arange(32, dtype=np.float32).reshape(4, 2, 4)
expected = np.zeros_like(parts)
expected[2] = weights.sum(0)
found = perspex.grad(lambda a: (f(a) * weights.reshape(8, 4)).sum())(A)
same(found, expected.reshape(8, 4))
same(perspex.vmap(f)(np.stack([A, A * 2]))[1], np.tile(parts[2] * 2, (4, 1)))
""",
    "pmin has a derivative, and goes along a batch": """
f = on(lambda a: lax.pmin(a, "x"), o=P())
same(perspex.grad(lambda a: f(a).sum())(A), (parts == parts.min(0)).reshape(8, 4))
same(perspex.vmap(f)(np.stack([A, -A]))[1], (-parts).min(0))
same(perspex.vmap(on(lambda a: lax.pmax(a, "x"), o=P()))(np.stack([A, -A]))[1], (-parts).max(0))
""",
    "ragged_all_to_all forwards, backwards and along a batch": """
B = np.random.default_rng(1).normal(size=(16, 2)).astype(np.float32)
order = np.arange(4, dtype=np.int32)

def exchanged(rows):
    # Row i of each device goes to device i, where device j's comes at place j.
    ones = jnp.ones(4, jnp.int32)
    here = lax.axis_index("x").astype(jnp.int32) * ones
    out = lax.pcast(jnp.zeros((4, 2)), "x", to="varying")
    return lax.ragged_all_to_all(rows, out, jnp.asarray(order), ones, here, ones, axis_name="x")

f = on(exchanged)
def turned(b):
    return b.reshape(4, 4, 2).transpose(1, 0, 2).reshape(16, 2)
same(f(B), turned(B))
weights = np.arange(32, dtype=np.float32).reshape(16, 2)
same(perspex.grad(lambda b: (jnp.sin(f(b)) * weights).sum())(B), np.cos(B) * turned(weights))
same(perspex.vmap(f)(np.stack([B, B * 2]))[1], turned(B * 2))
""",
    "pmax has a derivative": """
f = on(lambda a: lax.pmax(a, "x"), o=P())
same(f(A), parts.max(0))
same(perspex.grad(lambda a: f(a).sum())(A), (parts == parts.max(0)).reshape(8, 4))
""",
    "one of two axes; the compiler divides along the other": """
f = on(lambda a: a * 2 + lax.axis_index("x") * lax.psum(a, "x"), axis_names={"x"})
expected = parts * 2 + np.arange(4)[:, None, None] * parts.sum(0)
same(perspex.jit(f)(A), expected.reshape(8, 4))
same(f(perspex.device_put(A, NamedSharding(mesh, P(None, "y")))), expected.reshape(8, 4))
called = on(lambda a: perspex.jit(lambda b: b + lax.axis_index("x"))(a), axis_names={"x"})
same(called(A), (parts + np.arange(4)[:, None, None]).reshape(8, 4))
index = np.arange(4)[:, None, None]
# By hand: the loss is the sum of squares of z = 2 a + i s, with s the sum of all a.
z = parts * 2 + index * parts.sum(0)
by_hand = 4 * z + 2 * (index * z).sum(0)
same(perspex.jit(perspex.grad(lambda a: (f(a) ** 2).sum()))(A), by_hand.reshape(8, 4), 1e-4)
""",
    "one inside another": """
def outer(a):
    inner = shard_map(
        lambda b: b + lax.psum(b, "x") * lax.axis_index("y"), in_specs=P("y"), out_specs=P("y"),
        axis_names={"y"},
    )
    return inner(a)
expected = parts + parts.sum(0) * np.array([0, 1])[:, None]
same(perspex.jit(on(outer, axis_names={"x"}))(A), expected.reshape(8, 4))
assert "mapped over already" in raised(lambda: on(lambda a: on(lambda b: b)(a))(A), ValueError)
""",
    "loops make values of each device where they need them": """
f = on(lambda a: lax.fori_loop(0, 3, lambda i, c: c + a.sum(), 0.0)[None])
same(f(A), 3 * parts.sum((1, 2)))
reset = on(lambda a: lax.fori_loop(0, 3, lambda i, c: jnp.ones(()), a.sum())[None])
text = raised(lambda: reset(A), TypeError)
assert "manual axis types" in text and "pcast" in text, text
""",
    "the kinds of devices' own code": """
same(on(lambda a: jnp.linalg.svd(a)[1])(A), np.linalg.svd(parts)[1].reshape(-1))
same(on(lambda a: jnp.abs(jnp.fft.fft(a)))(A), np.abs(np.fft.fft(A)), 1e-4)
same(on(lambda a: jnp.sort(a, axis=None))(A), np.sort(parts.reshape(4, 8)).reshape(-1))
for dtype in (np.int32, bool, np.complex64):
    found = on(lambda a: lax.psum(a, "x"), o=P())(A.astype(dtype))
    same(found, parts.astype(dtype).astype(found.dtype).sum(0))
""",
    "keys": """
keys = perspex.random.split(perspex.random.key(0), 8)
draw = lambda k: perspex.vmap(lambda k: perspex.random.normal(k, (2,)))(k)
same(on(draw)(keys), draw(keys))
""",
    "callbacks are called by each device": """
seen = []
note = lambda: perspex.debug.callback(lambda i: seen.append(int(i)), lax.axis_index(("x", "y")))
f = on(lambda a: (note(), a)[1])
same(perspex.jit(f)(A), A)
perspex.effects_barrier()
assert sorted(seen) == list(range(8)), seen
ordered = on(lambda a: (perspex.debug.print("{}", a, ordered=True), a)[1])
text = raised(lambda: perspex.jit(ordered)(A), NotImplementedError)
assert "ordered" in text, text
""",
    "callbacks are called once for a part where the compiler divides it further": """
seen = []
def noted(a):
    def turn(i, a):
        perspex.debug.callback(lambda i, s: seen.append((int(i), float(s))), i, a.sum())
        return a + 1
    return lax.fori_loop(0, 2, turn, a)
f = on(noted, axis_names={"x"})
same(perspex.jit(f)(A), A + 2)
perspex.effects_barrier()
expected = [(i, s + 8 * i) for i in range(2) for s in parts.sum((1, 2))]
same(np.array(sorted(seen)), np.array(sorted(expected)))
seen.clear()
same(perspex.jit(perspex.grad(lambda a: f(a).sum()))(A), np.ones_like(A))
perspex.effects_barrier()
assert len(seen) == 8, seen
""",
    "results lie as out_specs say, arguments stay where they are": """
rows = NamedSharding(mesh, P("x"))
x = perspex.device_put(A, rows)
f = perspex.jit(on(lambda a: a * 2))
assert f(x).sharding == rows and f(A).sharding == rows and on(lambda a: a)(A).sharding == rows
assert "shard_map" in raised(lambda: f(perspex.device_put(A, perspex.devices()[1])), ValueError)
assert perspex.jit(on(lambda a: a * 2)).lower(A).compile()(A).sharding == rows
donated = perspex.jit(on(lambda a: a * 2), donate_argnums=0)
y = perspex.device_put(A, rows)
same(donated(y), A * 2)
assert y.is_deleted()
""",
    "specs that the arguments tell, and none": """
x = perspex.device_put(A, NamedSharding(mesh, P("x")))
same(shard_map(lambda a: lax.psum(a, "x"), mesh=mesh, out_specs=P())(x), parts.sum(0))
same(on(lambda a, b: a * b, (P("x"), None))(A, 2.0), A * 2)
with perspex.set_mesh(mesh):
    f = perspex.smap(lambda a: a + lax.axis_index("y"), in_axes=1, out_axes=1, axis_name="y")
    same(f(A), A + np.array([0, 0, 1, 1]))
""",
    "composed with transforms and loops": """
f = on(lambda a: a * 0.5 + lax.psum(a, "x") * 0.1, o=P("x"))
step = lambda a: (a.reshape(4, 2, 4) * 0.5 + a.reshape(4, 2, 4).sum(0) * 0.1).reshape(8, 4)
run = lambda a: lax.scan(lambda c, _: (f(c), None), a, None, length=3)[0]
same(perspex.jit(run)(A), step(step(step(A))))
# `step` is linear, and its matrix symmetric: the gradient of the sum is three steps of ones.
same(perspex.jit(perspex.grad(lambda a: run(a).sum()))(A), step(step(step(np.ones_like(A)))))
batch = np.stack([A, 2 * A])
gradients = perspex.vmap(perspex.grad(lambda a: (f(a) ** 2).sum()))(batch)
same(gradients, np.stack([2 * step(step(a)) for a in batch]), 1e-4)
same(perspex.jit(lambda p, a: lax.cond(p, f, lambda a: a, a))(True, A), step(A))
h = perspex.hessian(lambda w: on(lambda a: jnp.sin(a * w))(A).sum())(2.0)
same(h, (-np.sin(A * 2) * A**2).sum(), 1e-4)
""",
    "a complex constant that the compiler knows": """
summed = shard_map(lambda a: lax.psum(a, ("x", "y")), mesh=mesh, in_specs=P("y", None),
                   out_specs=P(), check_vma=False)
same(perspex.jit(lambda: summed(jnp.full((4, 2), 1 + 2j)))(), np.full((2, 2), 8 + 16j))
scattered = shard_map(lambda a: lax.psum_scatter(a, "x", tiled=True), mesh=mesh, in_specs=P(),
                      out_specs=P("x"), check_vma=False)
same(perspex.jit(lambda: scattered(jnp.full((4, 2), 1 + 2j)))(), np.full((4, 2), 4 + 8j))
""",
    "what a function with a rule computes in vain, on other devices": """
def in_vain(a):
    perspex.pmap(lambda b: b * 2)(a[:2])
    return a * 3

f = perspex.custom_jvp(in_vain)
f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
same(perspex.jit(lambda a: on(lambda b: b + 1)(f(a)))(A), A * 3 + 1)
""",
    "an unknown axis": """
text = raised(lambda: on(lambda a: lax.psum(a, "q"))(A), NameError)
assert "'q'" in text and "shard_map" in text, text
text = raised(lambda: lax.pcast(1.0, "x", to="varying"), NameError)
assert "vmap" in text, text
""",
}

RUN_ALL = """
import json, sys, traceback
found = {}
for name, code in CASES.items():
    try:
        exec(compile(SETUP + code, name, "exec"), {})
        found[name] = None
    except Exception:
        found[name] = traceback.format_exc()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: Any) -> Any:
    script = tmp_path_factory.mktemp("cases") / "cases.py"
    script.write_text(f"SETUP = {SETUP!r}\nCASES = {CASES!r}\n" + RUN_ALL)
    return json.loads(run(str(script)).splitlines()[-1])


@pytest.mark.parametrize("name", CASES)
def test_on_eight_devices(name: str, outcomes: Any) -> None:
    assert outcomes[name] is None, outcomes[name]
