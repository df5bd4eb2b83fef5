"""Evaluate cases under one library and encode what came out as plain JSON data.

The same file serves both sides: the worker imports it under real JAX, the tests under Perspex.
Hence it imports neither: `Library("jax")` or `Library("perspex")` decides.

An outcome is a small list whose first element is a tag:

    ["array", dtype, shape, weak_type, base64]   ["key", dtype, shape, base64 of the key data]
    ["numpy", dtype, shape, base64]              ["aval", dtype, shape, weak_type]
    ["text", text]                               ["python", type name, repr]
    ["tuple" | "list", [outcome, ...]]           ["dict", [[key, outcome], ...]]
    ["error", [type names, most specific first], first line of the message]
"""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib
import io
import operator
import re
import warnings
from typing import Any

import ml_dtypes
import numpy as np

Outcome = list[Any]
_DESCRIBED = ("ClosedJaxpr", "Jaxpr", "PyTreeDef")  # outcomes of which the text counts
_ADDRESS = re.compile("at 0x[0-9a-f]+")


class Library:
    """An array library and the names that cases see."""

    def __init__(self, name: str) -> None:
        self.root = importlib.import_module(name)
        self.names = {
            "jax": self.root,
            "jnp": importlib.import_module(name + ".numpy"),
            "lax": importlib.import_module(name + ".lax"),
            "random": importlib.import_module(name + ".random"),
            "jit": self.root.jit,
            "make_jaxpr": self.root.make_jaxpr,
            "np": np,
            "ml_dtypes": ml_dtypes,
            "functools": functools,
            "operator": operator,
            "partial": functools.partial,
            "printed": printed,
        }

    def namespace(self, setup: str) -> dict[str, Any]:
        """A fresh namespace in which `setup` was executed."""
        namespace = dict(self.names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(setup, "<set-up>", "exec"), namespace)
        return namespace

    def outcome(self, namespace: dict[str, Any], source: str, flags: Any) -> Outcome:
        """Evaluate `source` under `flags`; an exception is an outcome as well."""
        with contextlib.ExitStack() as stack:
            for name, value in flags:
                stack.enter_context(getattr(self.root, name)(value))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            try:
                return self.encode(eval(compile(source, "<case>", "eval"), namespace))
            except Exception as error:
                names = [kind.__name__ for kind in type(error).__mro__]
                first_line = (str(error).strip().splitlines() or [""])[0]
                return [
                    "error",
                    names[: names.index("Exception")],
                    _ADDRESS.sub("at 0x", first_line[:100]),
                ]

    def encode(self, value: Any) -> Outcome:
        """Turn a result into its outcome; a type without an encoding raises `TypeError`."""
        jax = self.root
        if isinstance(value, jax.Array):
            if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
                data = np.asarray(jax.random.key_data(value))
                return ["key", str(value.dtype), list(value.shape), _base64(data)]
            host = np.asarray(value)
            return ["array", host.dtype.name, list(host.shape), value.weak_type, _base64(host)]
        if isinstance(value, (np.ndarray, np.generic)):
            return ["numpy", value.dtype.name, list(value.shape), _base64(np.asarray(value))]
        if isinstance(value, str):
            return ["text", value]
        if value is None or isinstance(value, (bool, int, float, complex, slice)):
            return ["python", type(value).__name__, repr(value)]
        if isinstance(value, dict):
            return ["dict", [[repr(key), self.encode(value[key])] for key in value]]
        if isinstance(value, (tuple, list)):
            tag = "list" if isinstance(value, list) else "tuple"
            return [tag, [self.encode(item) for item in value]]
        if isinstance(value, np.dtype) or type(value).__name__ in _DESCRIBED:
            return ["text", str(value)]
        if isinstance(value, jax.ShapeDtypeStruct):
            return ["aval", str(value.dtype), list(value.shape), value.weak_type]
        if jax.dtypes.issubdtype(value, jax.dtypes.extended):
            return ["text", str(value)]
        raise TypeError(f"a case gave a `{type(value).__name__}`, which has no encoding")


def printed(call: Any) -> str:
    """What calling `call()` writes to standard output."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        call()
    return out.getvalue()


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
