"""What public functions and classes say of where they are from, and what finds them by it."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
import pydoc
import subprocess
import sys
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex import lax, nn, random, tree_util
from perspex.base.public import MODULES, called
from perspex.scipy import special, stats

# Each stands in a file of its own below the module.
SAMPLES: dict[str, Any] = {
    "perspex.numpy": jnp.sin,
    "perspex.numpy.linalg": jnp.linalg.qr,
    "perspex.lax": lax.cos,
    "perspex.lax.linalg": lax.linalg.qdwh,
    "perspex.random": random.normal,
    "perspex.nn": nn.gelu,
    "perspex": perspex.jit,
    "perspex.tree_util": tree_util.register_dataclass,
    "perspex.scipy.special": special.gammaln,
    "perspex.scipy.stats": stats.rankdata,
}


# What `import perspex` leaves out, and a name by which users come to it.
LATER = {
    "perspex.custom_batching": "custom_batching.custom_vmap",
    "perspex.image": "image.resize",
    "perspex.lax.ragged": "lax.ragged_dot",
    "perspex.lax.scaled": "lax.scaled_dot",
    "perspex.nn.scaled": "nn.scaled_matmul",
}


def public(module: ModuleType) -> dict[str, Any]:
    """What a public module holds: what it says, or all that is neither private nor a module."""
    names = getattr(module, "__all__", vars(module))
    return {name: getattr(module, name) for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_public_functions_name_public_modules(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__all__ if hasattr(module, "__all__") else module.__doc__
    if name in ("perspex.config", "perspex.checkpoint_policies"):
        return  # objects in JAX, with their own functions
    wrong = [
        (key, value.__module__)
        for key, value in public(module).items()
        if isinstance(value, FunctionType | jnp.ufunc) and value.__module__ not in MODULES
        # Views of the notebook, and what is NumPy's own.
        if not value.__module__.startswith(("perspex_magics.", "numpy"))
    ]
    assert not wrong


@pytest.mark.parametrize("name", SAMPLES)
def test_a_function_is_found_by_what_it_says(name: str) -> None:
    function = SAMPLES[name]
    assert function.__module__ == name
    assert inspect.getmodule(function) is importlib.import_module(name)
    assert pickle.loads(pickle.dumps(function)) is function
    assert name.encode() in pickle.dumps(function)
    assert pkgutil.resolve_name(f"{name}:{function.__qualname__}") is function
    file = inspect.getsourcefile(inspect.unwrap(function))
    assert file is not None and not file.endswith("__init__.py")
    assert "return" in inspect.getsource(function)
    assert f"{function.__name__} in module {name}" in pydoc.plain(pydoc.render_doc(function))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("perspex", perspex.Array),
        ("perspex", perspex.ShapeDtypeStruct),
        ("perspex.numpy", jnp.ufunc),
        ("perspex.dtypes", perspex.dtypes.prng_key),
        ("perspex.dtypes", perspex.dtypes.extended),
        ("perspex.tree_util", tree_util.Partial),
    ],
)
def test_classes_that_jax_makes_public_are_public(name: str, kind: type) -> None:
    assert kind.__module__ == name
    assert pickle.loads(pickle.dumps(kind)) is kind


@pytest.mark.parametrize("kind", [perspex.custom_jvp, perspex.named_scope, lax.Precision])
def test_other_classes_show_their_source(kind: type) -> None:
    assert inspect.getsource(kind).lstrip("@").find(f"class {kind.__name__}") >= 0


def test_what_is_partial_pickles_by_public_names() -> None:
    kept = pickle.dumps(tree_util.Partial(jnp.sin, 1.0))
    assert b"perspex.tree_util" in kept and b"transcendental" not in kept
    assert float(pickle.loads(kept)()) == pytest.approx(0.8414709848)


def test_what_the_user_called() -> None:
    names: list[str] = []

    class Array:
        """It asks from where it is converted."""

        def __jax_array__(self) -> Any:
            names.append(called(2))
            return np.ones(3, np.float32)

    jnp.median(Array())
    special.logsumexp(Array())
    assert called() == ""
    # A function of the user's own ends the search, whoever calls it.
    lax.scan(lambda c, x: (names.append(called()) or c, x), 0.0, np.ones(2))
    assert names[-1] == ""
    assert {"median", "logsumexp"} <= set(names)


@pytest.mark.parametrize("home", LATER)
def test_names_of_modules_that_are_imported_later(home):
    path, _, name = LATER[home].rpartition(".")
    module = getattr(perspex, path)
    found = getattr(module, name)
    assert name in dir(module)
    assert found is getattr(importlib.import_module(home), name)
    assert found.__module__ == f"perspex.{path}" or inspect.isclass(found)
    assert pickle.loads(pickle.dumps(found)) is found
    with pytest.raises(AttributeError, match="no attribute 'ragged_dots'"):
        _ = module.ragged_dots


def test_what_is_imported_later_is_not_there_before():
    code = f"import sys, perspex; print([m for m in {[*LATER]} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
