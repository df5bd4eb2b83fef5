"""`perspex.save` and `perspex.load`: what was saved comes back, on other devices, or an error."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.several import run

import perspex
import perspex.numpy as jnp
from perspex import random
from perspex.sharding import NamedSharding, SingleDeviceSharding
from perspex.sharding import PartitionSpec as P

ROOT = Path(__file__).resolve().parents[2]
W = np.arange(64, dtype=np.float32).reshape(8, 8)
DTYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "int4": ml_dtypes.int4,
    "uint4": ml_dtypes.uint4,
    "int8": np.int8,
    "uint32": np.uint32,
    "bool": np.bool_,
    "complex64": np.complex64,
}
STRUCT = perspex.ShapeDtypeStruct


@pytest.mark.parametrize("name", DTYPES)
def test_each_dtype_comes_back_bit_by_bit(tmp_path: Path, name: str) -> None:
    values = np.array([[0, 1, 1], [1, 0, 3]]).astype(DTYPES[name])
    perspex.save(tmp_path / "a", {"x": jnp.asarray(values), "host": values})
    found = perspex.load(tmp_path / "a")
    assert found["x"].dtype == values.dtype and type(found["host"]) is np.ndarray
    for back in (np.asarray(found["x"]), found["host"]):
        assert back.dtype == values.dtype
        assert back.tobytes() == values.tobytes()


def test_numbers_containers_and_empty_arrays(tmp_path: Path) -> None:
    numbers = {"step": 2**80, "on": True, "rate": 0.1, "z": 1 + 2j, "none": None}
    tree = {"numbers": numbers, "more": [(), {}, {3: 1, 2: -1.5}]}
    perspex.save(tmp_path / "a", tree)
    assert perspex.load(tmp_path / "a") == tree
    assert perspex.load(tmp_path / "a", tree) == tree
    arrays = {"empty": jnp.zeros((0, 3)), "scalar": jnp.float32(2.5)}
    perspex.save(tmp_path / "b", arrays)
    found = perspex.load(tmp_path / "b")
    assert found["empty"].shape == (0, 3) and found["scalar"].shape == () and found["scalar"] == 2.5


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_typed_keys_draw_what_they_drew(tmp_path: Path, impl: str) -> None:
    keys = random.split(random.key(7, impl=impl), 4)
    before = random.normal(keys[2], (3,))
    perspex.save(tmp_path / "a", [keys])
    (found,) = perspex.load(tmp_path / "a")
    assert found.dtype == keys.dtype
    np.testing.assert_array_equal(random.normal(found[2], (3,)), before)
    (again,) = perspex.load(tmp_path / "a", [keys])
    np.testing.assert_array_equal(random.key_data(again), random.key_data(keys))


def test_containers_of_users_need_a_like(tmp_path: Path) -> None:
    Point = collections.namedtuple("Point", "x y")
    perspex.save(tmp_path / "a", {"p": Point(jnp.ones(2), jnp.zeros(2))})
    with pytest.raises(ValueError, match="containers other than dicts"):
        perspex.load(tmp_path / "a")
    like = {"p": Point(STRUCT((2,), jnp.float32), STRUCT((2,), jnp.float32))}
    found = perspex.load(tmp_path / "a", like)
    assert type(found["p"]) is Point and found["p"].x.sum() == 2


CHILD = """
import sys, numpy as np, perspex
perspex.config.update("num_cpu_devices", int(sys.argv[2]))
from perspex.sharding import NamedSharding, PartitionSpec as P
mesh = perspex.make_mesh((2, int(sys.argv[2]) // 2), ("x", "y"))
def at(*spec): return NamedSharding(mesh, P(*spec))
w = np.arange(64, dtype=np.float32).reshape(8, 8)
"""
SAVE = (
    CHILD
    + """
tree = {"w": perspex.device_put(w, at("x", "y")), "half": perspex.device_put(w, at(None, "y")),
        "whole": perspex.device_put(w[0], at())}
perspex.save(sys.argv[1], tree)
"""
)
LOAD = (
    CHILD
    + """
def struct(*spec): return perspex.ShapeDtypeStruct((8, 8), np.float32, sharding=at(*spec))
like = {"w": struct("y", "x"), "half": struct(("x", "y")),
        "whole": perspex.ShapeDtypeStruct((8,), np.float32, sharding=at("y"))}
found = perspex.load(sys.argv[1], like)
for name, want in (("w", w), ("half", w), ("whole", w[0])):
    assert found[name].sharding == like[name].sharding
    for shard in found[name].addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), want[shard.index])
"""
)


def child(code: str, *arguments: object) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "core")}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_eight_devices_save_and_four_or_one_load(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    child(SAVE, folder, 8)
    files = sorted(file.name for file in (folder / "1").iterdir())
    # `half` in four parts, `w` in eight, `whole` in one: no copy is written.
    assert files == sorted(
        [f"0.{i}.npy" for i in range(4)] + [f"1.{i}.npy" for i in range(8)] + ["2.0.npy"]
    )
    # Each file is one of NumPy's, with the numbers of its part.
    entry = json.loads((folder / "tree.json").read_text())["leaves"][1]
    for i, ((a, b), (c, d)) in enumerate(entry["parts"]):
        np.testing.assert_array_equal(np.load(folder / "1" / f"1.{i}.npy"), W[a:b, c:d])
    child(LOAD, folder, 4)
    found = perspex.load(folder)
    for name, want in (("w", W), ("half", W), ("whole", W[0])):
        np.testing.assert_array_equal(found[name], want)


def test_processes_save_and_load_together(tmp_path: Path) -> None:
    """Two processes of two devices save; both load on another layout, then one alone."""
    folder = str(tmp_path / "a")
    code = f"""
tree = {{"x": x, "step": 7, "own": jnp.ones(2)}}
perspex.save({folder!r}, tree)
whole = NamedSharding(mesh, P(None, None))
struct = perspex.ShapeDtypeStruct((8, 2), np.float32, sharding=whole)
found = perspex.load({folder!r}, {{"x": struct, "step": 0, "own": jnp.zeros(2)}})
say(np.asarray(found["x"]).tolist(), found["step"], len(os.listdir({folder!r} + "/1")))
"""
    expected = f"{np.arange(16, dtype=np.float32).reshape(8, 2).tolist()} 7 5"
    processes = run(code, count=2, devices=2)
    assert [process.code for process in processes] == [0, 0], [p.err for p in processes]
    assert [process.out.splitlines() for process in processes] == [[expected]] * 2
    np.testing.assert_array_equal(perspex.load(folder)["x"], np.arange(16).reshape(8, 2))


def test_sharding_places_all_arrays(tmp_path: Path) -> None:
    perspex.save(tmp_path / "a", {"w": jnp.asarray(W), "key": random.key(1)})
    place = NamedSharding(perspex.make_mesh((1,), ("x",)), P())
    found = perspex.load(tmp_path / "a", sharding=place)
    assert found["w"].sharding == place and found["key"].sharding == place
    one = SingleDeviceSharding(perspex.devices()[0])
    assert perspex.load(tmp_path / "a", sharding=one)["w"].committed


# ---- what fails ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "error", "text"),
    [
        ({"a": ["text"]}, TypeError, r"leaf `tree\['a'\]\[0\]` .* has type str"),
        ({"a": np.array([None])}, TypeError, r"leaf `tree\['a'\]` .* has type ndarray"),
        ([jnp.ones(2), object()], TypeError, r"leaf `tree\[1\]` .* has type object"),
    ],
)
def test_what_cannot_be_saved_is_named_and_nothing_is_written(
    tmp_path: Path, tree: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        perspex.save(tmp_path / "a", tree)
    assert not (tmp_path / "a").exists()


def test_traced_and_deleted_values_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"leaf `tree` .* is a traced value \(float32\[2\]\)"):
        perspex.jit(lambda x: perspex.save(tmp_path / "a", x))(jnp.ones(2))
    gone = jnp.ones(3)
    gone.delete()
    with pytest.raises(ValueError, match=r"leaf `tree\['g'\]` .* was deleted or donated"):
        perspex.save(tmp_path / "a", {"g": gone})


def test_a_checkpoint_is_replaced_only_when_that_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    perspex.save(folder, {"x": jnp.zeros(2)})
    with pytest.raises(FileExistsError, match="overwrite=True"):
        perspex.save(folder, {"x": jnp.ones(2)})
    perspex.save(folder, {"x": jnp.ones(2)}, overwrite=True)
    assert perspex.load(folder)["x"].tolist() == [1.0, 1.0]
    assert sorted(one.name for one in folder.iterdir()) == ["2", "tree.json"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo").write_text("")
    with pytest.raises(FileExistsError, match="it is no checkpoint"):
        perspex.save(tmp_path / "mine", {"x": 1}, overwrite=True)


@pytest.mark.parametrize("step", ["_write", "_replace"])
def test_what_dies_in_the_middle_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    from perspex import checkpoints

    def die(*arguments: Any) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "a"
    perspex.save(folder, {"x": jnp.zeros(2)})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoints, step, die)
        perspex.save(folder, {"x": jnp.ones(2)}, overwrite=True)
    assert perspex.load(folder)["x"].tolist() == [0.0, 0.0]
    # The next time works, and clears away what was left.
    perspex.save(folder, {"x": jnp.ones(2)}, overwrite=True)
    assert perspex.load(folder)["x"].tolist() == [1.0, 1.0]
    assert sorted(one.name for one in folder.iterdir()) == ["3", "tree.json"]


@pytest.mark.parametrize(
    ("like", "text"),
    [
        ({"w": STRUCT((8, 4), np.float32)}, r"leaf `tree\['w'\]` .* float32\[8, 8\], and `like`"),
        ({"w": STRUCT((8, 8), np.int32)}, r"`like` has int32\[8, 8\]"),
        ({"v": STRUCT((8, 8), np.float32)}, r"has no leaf `tree\['v'\]`"),
        ({"w": STRUCT((8, 8), np.float32), "v": 1}, r"has no leaf `tree\['v'\]`"),
        ({}, r"also has leaf `tree\['w'\]`"),
        ({"w": random.key(0)}, r"float32\[8, 8\], and `like` has key"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, like: Any, text: str) -> None:
    perspex.save(tmp_path / "a", {"w": jnp.asarray(W)})
    with pytest.raises(ValueError, match=text):
        perspex.load(tmp_path / "a", like)


def test_a_damaged_checkpoint_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    with pytest.raises(FileNotFoundError, match=r"is no checkpoint: it has no tree\.json"):
        perspex.load(folder)
    perspex.save(folder, {"w": jnp.asarray(W), "step": 1})
    file = folder / "1" / "1.0.npy"
    whole = file.read_bytes()
    for content in (whole[:-1], whole[:40], b""):
        file.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"1\.0\.npy, a part of leaf `tree\['w'\]`, is damaged"
        ):
            perspex.load(folder)
    np.save(file, W[:4])
    with pytest.raises(ValueError, match=r"shape \(4, 8\)"):
        perspex.load(folder)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"1\.0\.npy is missing"):
        perspex.load(folder)
    index = folder / "tree.json"
    for content, text in ((b"{", "is damaged"), (b"{}", "is not the index")):
        index.write_bytes(content)
        with pytest.raises(ValueError, match=text):
            perspex.load(folder)


def test_wide_dtypes_need_their_flag(tmp_path: Path) -> None:
    with perspex.enable_x64(True):
        perspex.save(tmp_path / "a", {"w": jnp.arange(3, dtype=jnp.float64)})
        assert perspex.load(tmp_path / "a")["w"].dtype == np.float64
    with pytest.raises(ValueError, match=r"`tree\['w'\]` .* has the dtype float64"):
        perspex.load(tmp_path / "a")
