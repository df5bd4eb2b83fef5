"""Arrays over several devices: how results lie and what they hold, as real jax has it.

Real jax ran `oracle/recorders/shardings.py` for the records; here Perspex runs it.
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
from oracle import records
from perspex.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

HERE = Path(__file__).resolve().parent
SHARDINGS = HERE.parent / "oracle" / "recorders" / "shardings.py"
PROGRAMS = records.section("shardings", "programs")
ERRORS = records.section("shardings", "errors")
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(HERE.parents[1] / "core"),
    "JAX_NUM_CPU_DEVICES": "8",
    **kept.environment(),
    **quick.environment(),
}


def run(*args: str, given: str = "") -> str:
    command = [sys.executable, *args]
    out = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=240, input=given
    )
    assert out.returncode == 0, out.stderr[-3000:]
    return out.stdout


@pytest.fixture(scope="module")
def ours() -> Any:
    out = run("-m", "perspex.as_jax", str(SHARDINGS))
    return json.loads(out.splitlines()[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_lie_and_compute_as_in_jax(name: str, ours: Any) -> None:
    expected, found = PROGRAMS[name], ours[f"programs / {name}"]
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        for what in ("axes", "places", "parts"):
            assert mine[what] == theirs[what], what
        np.testing.assert_allclose(mine["values"], theirs["values"], rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_jax(name: str, ours: Any) -> None:
    assert ERRORS[name] is not None
    assert ours[f"errors / {name}"] == ERRORS[name]


def test_every_program_has_a_record_and_every_record_a_program(ours: Any) -> None:
    assert ours.keys() == records.read("shardings").keys()


PRELUDE = """
import numpy as np, perspex, perspex.numpy as pnp
from perspex import lax
from perspex.sharding import *
devices = perspex.devices()
mesh = perspex.make_mesh((2, 4), ("x", "y"), AxisType.Auto)
def on(*spec): return NamedSharding(mesh, PartitionSpec(*spec))
numbers = np.arange(32, dtype=np.float32).reshape(8, 4)
x = perspex.device_put(numbers, on("x", "y"))
def raised(f):
    try: f()
    except Exception as error: return str(error)
    raise AssertionError("no error")
"""

CASES = {
    "a repeated call is not asked for in Python": """
traces = []
f = perspex.jit(lambda a: (traces.append(0), pnp.sin(a) @ a.T)[1])
published = []
perspex.events.subscribe(lambda event: published.append(event), ["cache"])
for _ in range(5): out = f(x)
assert len(traces) == 1 and len(published) == 1, (traces, published)
np.testing.assert_allclose(out, np.sin(numbers) @ numbers.T, rtol=1e-5)
f(perspex.device_put(numbers, on("y")))
assert len(traces) == 1, "another placement needs no other trace"
""",
    "a miss names the argument that lies otherwise": """
causes = []
perspex.events.subscribe(lambda e: e.data["hit"] or causes.append(e.data["cause"]), ["cache"])
f = perspex.jit(lambda params, b: params["w"] + b)
f({"w": x}, x)
f({"w": perspex.device_put(numbers, on("y"))}, x)
mine = [c for c in causes if "w" in c]
assert mine == ["sharding of `params['w']`: P('x', 'y') -> P('y',)"], causes
f({"w": perspex.device_put(numbers, devices[1])}, perspex.device_put(numbers, devices[1]))
assert "device: 8 devices (x: 2, y: 4) (committed) -> cpu:1 (committed)" in causes[-1], causes
combinations = []
perspex.events.subscribe(lambda e: combinations.append(e.data["combination"]), ["recompile"])
g = perspex.jit(lambda x: x * 3)
g(perspex.device_put(numbers, devices[1]))
g(perspex.device_put(numbers, on("x")))
g(perspex.device_put(numbers, on(None, "y")))
assert combinations == [False, False], "this way to lie was never seen"
""",
    "parts are on their devices and not copied": """
for shard in x.addressable_shards:
    assert shard.data.devices() == {shard.device} and shard.data.committed
    np.testing.assert_array_equal(shard.data, numbers[shard.index])
    assert (shard.data + 1).devices() == {shard.device}
pointers = [s.data.unsafe_buffer_pointer() for s in x.addressable_shards]
assert pointers == [s.data.unsafe_buffer_pointer() for s in x.addressable_shards]
assert len(set(pointers)) == 8
""",
    "numbers given away are not written to": """
given = np.ones((8, 4), np.float32)
a = perspex.device_put(given, on("x"))
b = perspex.make_array_from_callback((8, 4), on("x"), lambda i: given[i])
given[:] = 7
np.testing.assert_array_equal(a, np.ones((8, 4)))
np.testing.assert_array_equal(b, np.ones((8, 4)))
value = np.asarray(a)
assert not value.flags.writeable
""",
    "donated arrays are gone": """
a = perspex.device_put(numbers, on("x"))
f = perspex.jit(lambda v: v + 1, donate_argnums=0)
np.testing.assert_array_equal(f(a), numbers + 1)
assert a.is_deleted() and "deleted" in raised(lambda: f(a))
b = perspex.device_put(numbers, on("x"))
g = perspex.jit(lambda v, w: v + w, donate_argnums=0)
for _ in range(2): assert "twice" in raised(lambda: g(b, b))
np.testing.assert_array_equal(g(b, x), numbers * 2)
""",
    "an axis cut in two by the compiler": """
line = perspex.make_mesh((8,), ("z",), AxisType.Auto)
v = perspex.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(line, PartitionSpec("z")))
out = perspex.jit(lambda a: a.reshape(2, 4) * 2)(v)
np.testing.assert_array_equal(out, np.arange(8.0).reshape(2, 4) * 2)
for shard in out.addressable_shards:
    np.testing.assert_array_equal(shard.data, np.asarray(out)[shard.index])
np.testing.assert_array_equal(out + v.reshape(2, 4), np.arange(8.0).reshape(2, 4) * 3)
""",
    "compiled ahead of time": """
lowered = perspex.jit(lambda a: a @ a.T).lower(x)
assert 'sdy.sharding' in lowered.as_text() and '"x"=2' in lowered.as_text()
compiled = lowered.compile()
np.testing.assert_allclose(compiled(x), numbers @ numbers.T)
assert "all-" in compiled.as_text() and compiled.cost_analysis()["flops"] > 0
assert compiled.input_shardings == ((on("x", "y"),), {})
assert compiled.output_shardings == compiled(x).sharding == on("x")
np.testing.assert_allclose(compiled(numbers), numbers @ numbers.T)
""",
    "kept on disk": """
import tempfile
with tempfile.TemporaryDirectory() as folder:
    perspex.config.update("compilation_cache_dir", folder)
    perspex.config.update("persistent_cache_min_compile_time_secs", 0)
    found = []
    perspex.events.subscribe(lambda event: found.append(event.data["source"]), ["compile"])
    for _ in range(2):
        f = perspex.jit(lambda a: pnp.cos(a) @ a.T)
        out = f(x)
        np.testing.assert_allclose(out, np.cos(numbers) @ numbers.T, rtol=1e-5)
        assert out.sharding.spec == PartitionSpec("x")
        from perspex.runtime.compiler import cache, disk
        disk.flush(10.0)
        cache.forget()
    assert found == ["xla", "disk"], found
    perspex.config.update("compilation_cache_dir", None)
""",
    "invalid values are found": """
with perspex.debug_nans(True):
    assert "nan" in raised(lambda: pnp.log(x - 1))
""",
    "an array put nowhere in particular stays where it lies": """
assert perspex.device_put(x) is x and pnp.asarray(x) is x
other = perspex.device_put(numbers, devices[3])
assert perspex.device_put(other) is other
assert perspex.device_put(numbers).devices() == {devices[0]}
key = perspex.device_put(perspex.random.key(0), devices[3])
assert perspex.device_put(key).devices() == {devices[3]} and key.committed
""",
    "callbacks, eager": """
wanted = perspex.ShapeDtypeStruct((8, 4), np.float32)
for given in (x, perspex.device_put(numbers, devices[3])):
    out = perspex.pure_callback(lambda v: np.asarray(v) * 2, wanted, given)
    assert out.committed and out.devices() == given.devices() and out.is_fully_replicated
    np.testing.assert_array_equal(out, numbers * 2)
""",
    "keys are not cut in two": """
keys = perspex.random.split(perspex.random.key(0), 8)
words = perspex.device_put(perspex.random.key_data(keys), on("y", "x"))
wrapped = perspex.jit(perspex.random.wrap_key_data)(words)
assert wrapped.sharding.spec == PartitionSpec("y"), wrapped.sharding
draw = perspex.vmap(perspex.random.uniform)
np.testing.assert_array_equal(draw(wrapped), draw(keys))
np.testing.assert_array_equal(draw(perspex.random.wrap_key_data(words)), draw(keys))
assert "2 axes" in raised(lambda: perspex.device_put(keys, on("y", "x")))
put = perspex.device_put(keys, on("y"))
assert put.committed and not put.is_fully_replicated and put.is_fully_addressable
for shard in put.addressable_shards:
    assert shard.data.shape == (2,) and shard.data.dtype == keys.dtype
    np.testing.assert_array_equal(draw(shard.data), np.asarray(draw(keys))[shard.index])
""",
    "groups of a convolution's batch are cut": """
a, b = np.arange(128.0, dtype=np.float32).reshape(16, 2, 4), numbers.reshape(2, 2, 8)[..., :2]
@perspex.jit
def convolve(a, b):
    out = lax.conv_general_dilated(a, b, (1,), "VALID", batch_group_count=2)
    return lax.with_sharding_constraint(out, on(("y", "x")))
def wanted(x, y): return sum(map(np.correlate, x, y))
by_batch = np.stack([[wanted(x, b[0]) for x in a[:8]], [wanted(x, b[1]) for x in a[8:]]], 1)
np.testing.assert_array_equal(convolve(a, b), by_batch)  # XLA by itself would end the process

# With axes in types: their rules are not those of what a convolution is written as.
from perspex.ops import depthwise
depthwise._LEAST = 0
explicit = NamedSharding(perspex.make_mesh((2, 4), ("x", "y")), PartitionSpec("y"))
put = perspex.device_put(a, explicit)
by_feature = [[np.correlate(x[i], b[i, 0]) for i in range(2)] for x in a]
for kernels, groups, by_numpy in (
    (b, {"batch_group_count": 2}, by_batch),
    (b[:, :1], {"feature_group_count": 2}, by_feature),
):
    apply = lambda a, b: lax.conv_general_dilated(a, b, (1,), "VALID", **groups)
    out = perspex.jit(apply)(put, kernels)
    assert out.sharding.spec[0] == "y", out.sharding
    np.testing.assert_array_equal(out, by_numpy)
""",
    "a mesh of one device is that device": """
one = Mesh(np.array(devices[3:4]), ("o",))
a = perspex.device_put(numbers, NamedSharding(one, PartitionSpec("o")))
b = perspex.device_put(numbers, devices[3])
for out in (a + b, b + a, perspex.jit(lambda p, q: p + q, in_shardings=(a.sharding, None))(a, b)):
    assert out.devices() == {devices[3]}
    np.testing.assert_array_equal(out, numbers * 2)
f = perspex.jit(lambda p: p * 2, out_shardings=a.sharding)
assert f(b).sharding == f(numbers).sharding == a.sharding
assert "different devices" in raised(lambda: a + perspex.device_put(numbers, devices[0]))
assert "different devices" in raised(lambda: perspex.device_put(numbers, devices[0]) + x)
""",
    "a part of a deleted array": """
a = perspex.device_put(numbers, on("x"))
shard = a.addressable_shards[0]
a.delete()
assert "deleted" in raised(lambda: shard.data)
""",
    "errors say what to do": """
text = raised(lambda: perspex.device_put(np.ones((3, 4)), on("x")))
assert "axis 0" in text and "3 elements" in text and "multiple of 2" in text, text
text = raised(lambda: x + perspex.device_put(numbers, devices[1]))
assert "different devices" in text and "device_put" in text, text
text = raised(lambda: perspex.make_mesh((3, 4), ("x", "y")))
assert "12 devices" in text and "there are 8" in text and "num_cpu_devices" in text, text
text = raised(lambda: perspex.make_mesh((8,), ("x",), axis_types=("Auto",)))
assert "AxisType" in text and "'Auto'" in text, text
text = raised(lambda: lax.with_sharding_constraint(x, SingleDeviceSharding(devices[0])))
assert "device_put" in text, text
text = raised(lambda: perspex.jit(lambda a: a, in_shardings=on("x"), device=devices[0]))
assert "not both" in text, text
mixed = lambda i: numbers[i] if i[0].start == 0 else numbers[i].astype(int)
text = raised(lambda: perspex.make_array_from_callback((8, 4), on("x"), mixed))
assert "float32" in text and "int32" in text and "convert" in text, text
for place in (on("x"), devices[0], None):
    text = raised(lambda: perspex.device_put(numbers.astype(">f4"), place))
    assert "byte order" in text, text
text = raised(lambda: perspex.jit(lambda a: lax.with_sharding_constraint(a, on("x")))(numbers[:3]))
assert "multiple of 2" in text, text
import pickle
text = raised(lambda: pickle.dumps(on("x")))
assert "cannot be pickled" in text, text
""",
}


RUN_ALL = """
import json, sys, traceback
prelude, cases = json.load(sys.stdin)
found = {}
for name, code in cases.items():
    try: exec(prelude + code, {})
    except BaseException: found[name] = traceback.format_exc()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def failures() -> Any:
    return json.loads(run("-c", RUN_ALL, given=json.dumps([PRELUDE, CASES])))


@pytest.mark.parametrize("name", CASES)
def test_eight_devices(name: str, failures: Any) -> None:
    assert name not in failures, failures[name]


def test_specs() -> None:
    assert PartitionSpec("x", None, ("y", "z"))[2] == ("y", "z")
    assert PartitionSpec(("x",)) == PartitionSpec("x")
    assert PartitionSpec("x") != PartitionSpec("x", None)
    assert list(PartitionSpec((), "x")) == [None, "x"]
    with pytest.raises(ValueError, match="twice"):
        PartitionSpec("x", unreduced={"x"})
    with pytest.raises(TypeError, match="got 3 of type int"):
        PartitionSpec(3)


def test_a_spec_that_names_an_axis_twice_is_refused_with_a_mesh() -> None:
    # Without one it may hold names that a library translates.
    spec, mesh = PartitionSpec("x", ("y", "x")), perspex.make_mesh((1, 1), ("x", "y"))
    assert list(spec) == ["x", ("y", "x")]
    for of in (mesh, mesh.abstract_mesh):
        with pytest.raises(ValueError, match="'x' twice"):
            NamedSharding(of, spec)
    mapped = perspex.shard_map(lambda x: x, mesh=mesh, in_specs=spec, out_specs=spec)
    with pytest.raises(ValueError, match="'x' twice"):
        mapped(np.ones((2, 2)))
    whole = perspex.shard_map(lambda x: x, mesh=mesh, in_specs=PartitionSpec(), out_specs=spec)
    with pytest.raises(ValueError, match="'x' twice"):
        whole(np.ones((2, 2)))


def test_meshes() -> None:
    mesh = perspex.make_mesh((1, 1), ("x", "y"))
    one = np.array(perspex.devices()).reshape(1, 1)
    assert mesh == Mesh(one, ("x", "y"), AxisType.Explicit) != Mesh(one, ("x", "y"))
    assert hash(mesh) == hash(perspex.make_mesh((1, 1), ("x", "y")))
    assert mesh != perspex.make_mesh((1, 1), ("y", "x"))
    for devices, names, text in (
        (perspex.devices(), ("x", "y"), "1 axes of devices"),
        (perspex.devices() * 2, ("x",), "twice"),
        ([["cpu"]], ("x", "y"), "made of devices"),
        (np.array(perspex.devices()).reshape(1, 1), ("x", "x"), "different names"),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            Mesh(devices, names)


def test_a_mesh_of_one_device() -> None:
    mesh = perspex.make_mesh((1,), ("x",))
    rows = NamedSharding(mesh, PartitionSpec("x"))
    a = perspex.device_put(np.arange(4.0, dtype=np.float32), rows)
    assert a.sharding == rows and a.is_fully_replicated
    out = perspex.jit(lambda v: v * 2)(a)
    np.testing.assert_array_equal(out, [0, 2, 4, 6])
    assert perspex.device_put(a, perspex.devices()[0]).devices() == {perspex.devices()[0]}


def test_a_mesh_counts_for_its_block() -> None:
    mesh = perspex.make_mesh((1,), ("x",))
    with pytest.raises(ValueError, match="there is no mesh"):
        perspex.get_mesh()
    with mesh:
        assert perspex.get_mesh() is mesh
        with pytest.raises(ZeroDivisionError), perspex.set_mesh(perspex.make_mesh((1,), ("z",))):
            assert perspex.get_mesh().axis_names == ("z",)
            1 / 0  # noqa: B018
        assert perspex.get_mesh() is mesh
    with pytest.raises(ValueError, match="with mesh"):
        perspex.device_put(1.0, PartitionSpec("x"))
