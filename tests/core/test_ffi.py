"""Calls of compiled functions: handlers in C++, built here, and those of LAPACK.

What is expected is the same computation in NumPy, and LAPACK as SciPy calls it.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import perspex
from perspex import ShapeDtypeStruct, ffi, grad, jit, lax, random, vmap
from perspex import numpy as pnp
from perspex.as_jax.doors import mlir
from perspex.as_jax.doors.primitive import Primitive
from perspex.experimental.layout import Layout
from perspex.hlo import lapack
from perspex.ir.avals import ShapedArray

SOURCE = Path(__file__).parents[1] / "data" / "handlers.cc"
HANDLERS = ("RmsNorm", "Shapes", "Counted", "Raw")
RNG = np.random.default_rng(0)
EPS = np.float32(1e-5)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The handlers, built and registered under their names."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler to build the handlers with")
    made = tmp_path_factory.mktemp("handlers") / "handlers.so"
    options = ["-O1", "-w", "-std=c++17", "-fPIC", "-shared", f"-I{ffi.include_dir()}"]
    subprocess.run([compiler, *options, str(SOURCE), "-o", str(made)], check=True)
    found = ctypes.cdll.LoadLibrary(str(made))
    for name in HANDLERS:
        handler = getattr(found, f"{name}Handler")
        ffi.register_ffi_target(f"test_{name}", ffi.pycapsule(handler))
    return found


def like(x: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype)


def rms_norm(x: Any, **options: Any) -> Any:
    return ffi.ffi_call("test_RmsNorm", like(x), **options)(x, eps=EPS)


def rms_norm_in_numpy(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS)


@pytest.fixture
def x() -> np.ndarray:
    return RNG.normal(size=(4, 3)).astype(np.float32)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: f,
        jit,
        lambda f: jit(lambda x: lax.scan(lambda c, row: (c, f(row)), 0, x)[1]),
        lambda f: jit(lambda x: lax.cond(x[0, 0] > 9, lambda a: a, f, x)),
        perspex.checkpoint,
    ],
    ids=["eager", "jit", "scan", "cond", "checkpoint"],
)
def test_a_handler_runs_wherever_an_operation_does(wrap: Any, x: np.ndarray) -> None:
    np.testing.assert_allclose(wrap(rms_norm)(x), rms_norm_in_numpy(x), rtol=1e-5)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "method",
    ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_vmap_calls_as_its_method_says(method: str, wrap: Any, x: np.ndarray) -> None:
    f = wrap(vmap(lambda a: rms_norm(a, vmap_method=method), in_axes=1, out_axes=1))
    expected = rms_norm_in_numpy(x.T).T
    np.testing.assert_allclose(f(x), expected, rtol=1e-5)
    twice = vmap(f, in_axes=0)(np.stack([x, 2 * x]))
    np.testing.assert_allclose(twice, [expected, rms_norm_in_numpy(2 * x.T).T], rtol=1e-5)


ATTRIBUTES: Any = {
    "whole": 1,
    "real": 0.5,
    "flag": True,
    "text": "four",
    "list": np.array([10, 20]),
    "dict": {"inner": np.int32(100)},
}


def shapes(x: Any, y: Any, **options: Any) -> Any:
    """The ranks and leading sizes that the handler was given, and the sum of its attributes."""
    results = [ShapeDtypeStruct((4,), "int32"), ShapeDtypeStruct((), "float32")]
    return ffi.ffi_call("test_Shapes", results, **options)(x, y, **ATTRIBUTES)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_attributes_and_several_results(wrap: Any) -> None:
    ranks, total = wrap(shapes)(np.zeros((2, 3), np.float32), np.zeros(5, np.float32))
    assert ranks.tolist() == [2, 2, 1, 5]
    assert total == 1 + 0.5 + 1 + len("four") + 10 + 20 + 100


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        # rank and leading size of an operand of three examples of (2,), and of one that is shared
        ("sequential", [[1, 2, 1, 5]] * 3),
        ("expand_dims", [[2, 3, 2, 1]] * 3),
        ("broadcast_all", [[2, 3, 2, 3]] * 3),
        ("legacy_vectorized", [[2, 3, 1, 5]] * 3),
    ],
)
def test_what_vmap_gives_to_the_handler(method: str, expected: Any) -> None:
    xs, y = np.zeros((3, 2), np.float32), np.zeros(5, np.float32)
    ranks, total = vmap(lambda a: tuple(shapes(a, y, vmap_method=method)))(xs)
    assert ranks.tolist() == expected and total.tolist() == [136.5] * 3


@pytest.mark.usefixtures("library")
def test_a_derivative_from_custom_vjp_and_from_custom_jvp(x: np.ndarray) -> None:
    def written(a: Any) -> Any:
        return a / pnp.sqrt((a * a).mean(-1, keepdims=True) + EPS)

    by_vjp = perspex.custom_vjp(rms_norm)
    by_vjp.defvjp(lambda a: (rms_norm(a), a), lambda a, ct: perspex.vjp(written, a)[1](ct))
    by_jvp = perspex.custom_jvp(rms_norm)
    by_jvp.defjvp(lambda a, t: (rms_norm(*a), perspex.jvp(written, a, t)[1]))
    expected = grad(lambda a: (written(a) ** 3).sum())(x)
    for f in (by_vjp, by_jvp):
        found = jit(grad(lambda a, f=f: (f(a) ** 3).sum()))(x)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    tangent = perspex.jvp(by_jvp, (x,), (np.ones_like(x),))[1]
    step = np.float32(1e-3)
    difference = (rms_norm_in_numpy(x + step) - rms_norm_in_numpy(x - step)) / (2 * step)
    np.testing.assert_allclose(tangent, difference, atol=2e-3)


@pytest.mark.usefixtures("library")
def test_without_a_rule_a_derivative_is_an_error(x: np.ndarray) -> None:
    for transform in (grad(lambda a: rms_norm(a).sum()), jit(perspex.jacfwd(rms_norm))):
        with pytest.raises(ValueError, match=r"FFI call to `test_RmsNorm` cannot be different"):
            transform(x)
    assert grad(lambda a: (rms_norm(lax.stop_gradient(a)) * a).sum())(x).shape == x.shape


def test_a_side_effect_happens_even_if_nobody_reads_the_result(library: Any) -> None:
    count = library.CallsSoFar

    def calls(f: Any, *args: Any) -> int:
        before = count()
        perspex.block_until_ready(f(*args))
        perspex.effects_barrier()
        return count() - before

    def f(a: Any, keep: bool) -> Any:
        ffi.ffi_call("test_Counted", like(a), has_side_effect=keep)(a)
        return a * 2

    a = np.ones(3, np.float32)
    assert calls(jit(lambda a: f(a, True)), a) == 1
    assert calls(jit(lambda a: f(a, False)), a) == 0
    assert calls(jit(lambda a: lax.fori_loop(0, 5, lambda _, c: f(c, True), a)), a) == 5
    assert calls(jit(grad(lambda a: f(lax.stop_gradient(a), True).sum() + a.sum())), a) == 1


def test_a_result_in_the_memory_of_an_operand(library: Any) -> None:
    def f(a: Any, aliases: dict[int, int]) -> Any:
        call = ffi.ffi_call("test_Counted", like(a), input_output_aliases=aliases)
        return call(a * 2) * 3

    a = np.arange(1000, dtype=np.float32)
    for aliases, expected in (({}, 0), ({0: 0}, 1)):
        before = library.CallsInPlace()
        out = jit(lambda a, aliases=aliases: f(a, aliases))(a)
        np.testing.assert_array_equal(out, (a * 2 + 1) * 3)
        # Without the alias XLA may choose the same memory, and does not.
        assert library.CallsInPlace() - before == expected
    # The operand is not overwritten where it is needed again.
    b = pnp.arange(1000.0)
    ffi.ffi_call("test_Counted", like(b), input_output_aliases={0: 0})(b)
    np.testing.assert_array_equal(b, a)


@pytest.mark.usefixtures("library")
def test_layouts_say_how_the_handler_sees_arrays() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def raw(a: Any, inputs: Any = None, outputs: Any = None, shape: Any = (2, 3)) -> Any:
        wanted = ShapeDtypeStruct(shape, "float32")
        return ffi.ffi_call(
            "test_Raw",
            wanted,
            input_layouts=inputs,
            output_layouts=outputs,
            vmap_method="expand_dims",
        )(a)

    by_columns = x.ravel(order="F")
    for layout in ((1, 0), Layout((1, 0))):
        np.testing.assert_array_equal(raw(x, [layout]), by_columns.reshape(2, 3))
        np.testing.assert_array_equal(raw(x, None, layout), x.ravel().reshape(2, 3, order="F"))
        np.testing.assert_array_equal(raw(x, [layout], layout), x)
    batch = np.stack([x, x + 6])
    found = vmap(lambda a: raw(a, [(1, 0)]))(batch)
    expected = [a.ravel(order="F").reshape(2, 3) for a in batch]
    np.testing.assert_array_equal(found, expected)


def test_a_state_lives_from_one_stage_to_the_next(library: Any) -> None:
    addresses = {}
    for name in ("KeptId", "KeptInfo"):
        getattr(library, name).restype = ctypes.c_void_p
        addresses[name] = ctypes.c_void_p(getattr(library, name)())
    kept = {
        "type_id": ffi.pycapsule(addresses["KeptId"]),
        "type_info": ffi.pycapsule(addresses["KeptInfo"]),
    }
    ffi.register_ffi_type("test_kept", kept)
    stages = {
        "instantiate": ffi.pycapsule(library.PrepareHandler),
        "execute": ffi.pycapsule(library.RunHandler),
    }
    ffi.register_ffi_target("test_state", stages)
    result = ShapeDtypeStruct((2,), "float32")
    f = jit(lambda: ffi.ffi_call("test_state", result, has_side_effect=True)(start=np.float32(5)))
    assert [f().tolist() for _ in range(3)] == [[5, 6], [7, 8], [9, 10]]
    with pytest.raises(ValueError, match="register_ffi_type"):
        ffi.register_ffi_type_id("test_kept", kept["type_id"])


@pytest.mark.usefixtures("library")
def test_an_error_of_the_handler_names_it() -> None:
    scalar = np.float32(1)
    with pytest.raises(perspex.errors.JaxRuntimeError, match="RmsNorm input must be an array"):
        perspex.block_until_ready(rms_norm(scalar))
    with pytest.raises(perspex.errors.JaxRuntimeError, match="nobody_registered_this"):
        ffi.ffi_call("nobody_registered_this", like(scalar))(scalar)


@pytest.mark.usefixtures("library")
def test_keys_are_given_as_their_numbers() -> None:
    key = random.key(3)
    call = ffi.ffi_call("test_nobody", like(key))
    text = jit(call).lower(key).as_text()
    assert "(tensor<2xui32>) -> tensor<2xui32>" in text


# ---- Targets that jaxlib brings along -----------------------------------------------------------


@pytest.mark.parametrize("letter", "sd")
def test_qr_by_lapack(letter: str) -> None:
    dtype = np.dtype({"s": "float32", "d": "float64"}[letter])
    with perspex.enable_x64(letter == "d"):
        a = RNG.normal(size=(5, 3)).astype(dtype)
        factor = ffi.ffi_call(
            f"lapack_{letter}geqrf_ffi",
            [like(a), ShapeDtypeStruct((3,), dtype)],
            input_layouts=[(1, 0)],
            output_layouts=[(1, 0), None],
            input_output_aliases={0: 0},
        )
        (qr, tau), _ = scipy.linalg.qr(a, mode="raw")
        for f in (factor, jit(factor)):
            found, found_tau = f(a)
            np.testing.assert_allclose(found, qr, rtol=1e-4)
            np.testing.assert_allclose(found_tau, tau, rtol=1e-4)


def test_cholesky_of_a_batch_by_lapack() -> None:
    m = RNG.normal(size=(4, 3, 3)).astype(np.float32)
    a = m @ m.transpose(0, 2, 1) + np.eye(3, dtype=np.float32)

    def factor(a: Any) -> Any:
        results = (like(a), ShapeDtypeStruct(a.shape[:-2], "int32"))
        return ffi.ffi_call(
            "lapack_spotrf_ffi",
            results,
            input_layouts=[(1, 0)],
            output_layouts=[(1, 0), None],
            vmap_method="broadcast_all",
        )(a, uplo=np.uint8(ord("L")))

    found, info = jit(vmap(factor))(a)
    np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(a), rtol=1e-3, atol=1e-5)
    assert info.tolist() == [0] * 4


def test_a_call_as_the_rule_of_a_primitive() -> None:
    """LU of a matrix, as a library for JAX makes a primitive of it."""
    lu_p = Primitive("test_lu")
    lu_p.multiple_results = True
    lu_p.def_abstract_eval(
        lambda a, **_: (
            ShapedArray(a.shape, a.dtype),
            ShapedArray((min(a.shape),), np.int32),
            ShapedArray((), np.int32),
        )
    )
    columns = (0, 1)
    options: Any = {
        "operand_layouts": [columns],
        "result_layouts": [Layout((1, 0)), None, None],
        "operand_output_aliases": {0: 0},
    }
    a = RNG.normal(size=(4, 3)).astype(np.float32)
    expected, pivots = scipy.linalg.lu_factor(a)
    lapack.register()
    rule = ffi.ffi_lowering("lapack_sgetrf_ffi", **options)
    write = ffi.build_ffi_lowering_function("lapack_sgetrf_ffi", **options)
    for lower in (rule, lambda ctx, x: write(ctx, x).results):
        mlir.register_lowering(lu_p, lower)
        found, at, info = jit(lambda a: lu_p.bind(a))(a)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert (at - 1).tolist() == pivots.tolist() and info == 0
    mlir.register_lowering(lu_p, ffi.ffi_lowering("lapack_sgetrf_ffi", api_version=1))
    with pytest.raises(ValueError, match="at least 4; got api_version=1"):
        jit(lambda a: lu_p.bind(a, flag=True)).lower(a)
    mlir.register_lowering(lu_p, ffi.ffi_lowering("lapack_sgetrf_ffi", backend_config="text"))
    with pytest.raises(ValueError, match="must be a dictionary"):
        jit(lambda a: lu_p.bind(a)).lower(a)


CHILD = """
import ctypes, json, sys
import numpy as np
import perspex.as_jax, jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
lib = ctypes.cdll.LoadLibrary(sys.argv[1])
jax.ffi.register_ffi_target("test_rows", jax.ffi.pycapsule(lib.RmsNormHandler))
jax.ffi.register_ffi_target_as_batch_partitionable("test_rows")
x = np.arange(32, dtype=np.float32).reshape(8, 4)
mesh = Mesh(np.array(jax.devices()), ("i",))
on = jax.device_put(x, NamedSharding(mesh, P("i")))
def f(a):
    return jax.ffi.ffi_call("test_rows", jax.ShapeDtypeStruct(a.shape, a.dtype))(
        a, eps=np.float32(1e-5))
found = []
for g in (jax.jit(f), jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i")))):
    found.append([np.asarray(g(on)).tolist(), "all-gather" in g.lower(on).compile().as_text()])
print(json.dumps(found))
"""


def test_on_eight_devices(library: Any) -> None:
    env = {**os.environ, "JAX_NUM_CPU_DEVICES": "8"}
    out = subprocess.run(
        [sys.executable, "-c", CHILD, library._name], env=env, capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    (whole, gathers), (parts, still_gathers) = json.loads(out.stdout)
    expected = rms_norm_in_numpy(np.arange(32, dtype=np.float32).reshape(8, 4))
    np.testing.assert_allclose(whole, expected, rtol=1e-5)
    np.testing.assert_allclose(parts, expected, rtol=1e-5)
    # Real jax gathers too, whatever is registered: Shardy sees nothing of it.
    assert gathers and not still_gathers
