"""Exporting: what is written of a function, for which platforms, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import export, lax
from perspex import numpy as jnp

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def test_attributes() -> None:
    def f(x: Any, unused: Any, *, y: Any) -> Any:
        return {"sum": x + y}

    exported = export.export(perspex.jit(f))(X, 1, y=X)
    assert exported.fun_name == "f" and repr(exported) == "Exported(fun_name=f, ...)"
    assert exported.module_kept_var_idx == (0, 2)
    assert [aval.str_short() for aval in exported.in_avals] == ["f32[3,4]", "i32[]", "f32[3,4]"]
    assert exported.in_tree == perspex.tree.structure(((X, 1), {"y": X}))
    assert exported.out_tree == perspex.tree.structure({"sum": X})
    assert exported.platforms == ("cpu",) == (export.default_export_platform(),)
    assert exported.nr_devices == 1 and not exported.uses_global_constants
    assert exported.ordered_effects == exported.unordered_effects == ()
    assert exported.disabled_safety_checks == ()
    assert (
        exported.calling_convention_version == export.maximum_supported_calling_convention_version
    )
    assert export.minimum_supported_calling_convention_version == 9
    assert exported.in_shardings_jax() == (None,) * 3 and exported.out_shardings_jax() == (None,)
    assert "stablehlo.add" in exported.mlir_module()
    assert "jax.uses_shape_polymorphism = false" in exported.mlir_module()
    np.testing.assert_allclose(exported.call(X, 5, y=X)["sum"], 2 * X)


def test_keep_unused() -> None:
    f = perspex.jit(lambda x, y: x, keep_unused=True)
    assert export.export(f)(X, X).module_kept_var_idx == (0, 1)


def test_constants_go_along() -> None:
    large = jnp.asarray(np.arange(1000, dtype=np.float32))
    exported = export.export(perspex.jit(lambda x: x + large))(np.float32(1))
    loaded = export.deserialize(exported.serialize())
    np.testing.assert_array_equal(loaded.call(np.float32(2)), np.arange(1000) + 2)


def test_exported_functions_are_called_in_others() -> None:
    exported = export.export(perspex.jit(lambda x: jnp.sin(x).sum(1)))(X)

    def f(x: Any) -> Any:
        return (exported.call(2 * x) ** 2).sum()

    expected = (np.sin(2 * X).sum(1) ** 2).sum()
    np.testing.assert_allclose(perspex.jit(f)(X), expected, rtol=1e-5)
    gradient = perspex.jit(perspex.grad(f))(X)
    reference = perspex.grad(lambda x: (jnp.sin(2 * x).sum(1) ** 2).sum())(X)
    np.testing.assert_allclose(gradient, reference, rtol=1e-4)
    again = export.export(perspex.jit(f))(X)
    np.testing.assert_allclose(export.deserialize(again.serialize()).call(X), expected, rtol=1e-5)
    _, ys = lax.scan(lambda c, x: (c, exported.call(x)), 0.0, np.stack([X, X + 1]))
    np.testing.assert_allclose(ys[1], np.sin(X + 1).sum(1), rtol=1e-4, atol=1e-5)


def test_symbolic_functions_are_called_in_symbolic_ones() -> None:
    (spec,) = export.symbolic_args_specs((X,), ("n, m",))
    inner = export.export(perspex.jit(lambda x: (x @ x.T, x[1:])))(spec)
    (other,) = export.symbolic_args_specs((X,), ("2*k, 4",))
    outer = export.export(perspex.jit(lambda x: inner.call(x)))(other)
    assert [str(aval) for aval in outer.out_avals] == ["float32[2*k,2*k]", "float32[2*k - 1,4]"]
    x = np.ones((6, 4), np.float32)
    found = export.deserialize(outer.serialize()).call(x)
    np.testing.assert_allclose(found[0], x @ x.T)
    assert found[1].shape == (5, 4)


def test_several_platforms() -> None:
    def f(x: Any) -> Any:
        return lax.platform_dependent(
            x, cpu=lambda x: x + 1, tpu=lambda x: x + 2, default=lambda x: x + 3
        )

    exported = export.export(perspex.jit(f), platforms=["tpu", "cpu", "cuda"])(X)
    assert exported.platforms == ("tpu", "cpu", "cuda")
    text = exported.mlir_module()
    assert text.count("stablehlo.case") == 1 and text.count("dense<3.0") == 1
    assert exported.uses_global_constants
    np.testing.assert_allclose(export.deserialize(exported.serialize()).call(X), X + 1)
    np.testing.assert_allclose(perspex.grad(lambda x: exported.call(x).sum())(X), np.ones((3, 4)))
    same = export.export(perspex.jit(lambda x: x + 1), platforms=["cpu", "tpu"])(X)
    assert "stablehlo.case" not in same.mlir_module()


def test_the_wrong_platform() -> None:
    exported = export.export(perspex.jit(lambda x: x + 1), platforms=["tpu"])(X)
    with pytest.raises(ValueError, match=r"exported for platforms '\('tpu',\)' but it is used"):
        exported.call(X)
    check = export.DisabledSafetyCheck.platform()
    options: dict[str, Any] = {"platforms": ["tpu"], "disabled_checks": [check]}
    exported = export.export(perspex.jit(lambda x: x + 1), **options)(X)
    loaded = export.deserialize(exported.serialize())
    assert loaded.disabled_safety_checks == (check,)
    np.testing.assert_allclose(loaded.call(X), X + 1)


def test_calls_with_other_arguments() -> None:
    exported = export.export(perspex.jit(lambda x: x))(X)
    with pytest.raises(ValueError, match="must have the same pytree structure"):
        exported.call(X, X)
    with pytest.raises(ValueError, match=r"Shape mismatch for args\[0\].shape\[0\] of `<lambda>`"):
        exported.call(X[:2])
    with pytest.raises(ValueError, match=r"Rank mismatch for args\[0\]"):
        exported.call(X[0])
    with pytest.raises(ValueError, match=r"Dtype mismatch for args\[0\]"):
        exported.call(X.astype("int32"))
    with pytest.raises(NotImplementedError, match="has no batch rule"):
        perspex.vmap(exported.call)(X[None])


def test_what_cannot_be_exported() -> None:
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(lambda x: x)
    with pytest.raises(ValueError, match="platforms must be a sequence of names"):
        export.export(perspex.jit(lambda x: x), platforms="cpu")

    def prints(x: Any) -> Any:
        perspex.debug.print("{}", x)
        return x

    with pytest.raises(NotImplementedError, match="calls Python functions"):
        export.export(perspex.jit(prints))(X)
