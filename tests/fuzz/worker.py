"""The process that runs programs: `python worker.py LIBRARY`, one JSON object a line.

A request has `statements` (each a text and the name that it assigns), `x64`, and perhaps `abstract`
(only types are asked for: the statements are traced, and nothing is compiled), `given`
(what a name is set to after its statement, so that the next one begins from the other library's
numbers) and `noise` (a seed: what is set, and what is computed inside of functions, is moved by a
unit in the last place). The answer has the outcome of each name, as `oracle.evaluate` encodes it.
"""

from __future__ import annotations

import json
import os
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

# The elements of an array whose values are compared.
MOST_ELEMENTS = 10**7


def dtype_named(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


class Session:
    """Runs programs under one library."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.jax = library.root
        import importlib

        names = "core flatten_util scipy.linalg scipy.optimize scipy.special scipy.stats"
        for name in names.split():
            importlib.import_module(f"{self.jax.__name__}.{name}")
        self.noise: random.Random | None = None

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """The outcomes of a program's statements, by the names that they assign."""
        seed = request.get("noise")
        self.noise = None if seed is None else random.Random(seed)
        given = request.get("given", {})
        outcomes: dict[str, Any] = {}
        with self.jax.enable_x64(request["x64"]):
            names = self.library.namespace(request["prelude"])
            names["noisy"] = self.noisy
            for inner in ("positive", "between"):
                names[inner] = self.moving(names[inner])
            if request.get("abstract"):
                return self.types(names, request["statements"])
            for text, target in request["statements"]:
                outcome = self.execute(names, text, target)
                if not target:
                    if outcome and outcome[0] == "error":
                        outcomes["def"] = outcome
                    continue
                outcomes[target] = outcome
                if target in given and target in names and self.differs(outcome, given[target]):
                    names[target] = self.decoded(given[target], names[target])
                if self.noise and target in names:
                    names[target] = self.noisy(names[target])
        return outcomes

    def types(self, names: dict[str, Any], statements: list[list[str]]) -> dict[str, Any]:
        """The types of what statements assign, traced and not run; inputs are called `x...`."""
        inputs = [item for item in statements if item[1].startswith("x")]
        outcomes = {target: self.execute(names, text, target) for text, target in inputs}
        arrays = {
            name: names[name] for name in outcomes if isinstance(names.get(name), self.jax.Array)
        }

        def run(given: dict[str, Any]) -> None:
            names.update(given)
            for text, target in statements:
                if target not in outcomes:
                    outcome = self.execute(names, text, target)
                    if target:
                        outcomes[target] = outcome

        self.jax.eval_shape(run, arrays)
        return outcomes

    def execute(self, names: dict[str, Any], text: str, target: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(compile(text, "<program>", "exec"), names)
                return self.encode(names[target]) if target else None
            except Exception as error:
                names.pop(target, None)
                kinds = [kind.__name__ for kind in type(error).__mro__]
                line = (str(error).strip().splitlines() or [""])[0]
                return ["error", kinds[: kinds.index("Exception")], line[:300]]

    def encode(self, value: Any) -> Any:
        """The outcome of a value; `Library.encode` knows the leaves."""
        if isinstance(value, dict):
            return ["dict", [[repr(key), self.encode(value[key])] for key in value]]
        if isinstance(value, (tuple, list)):
            tag = "list" if isinstance(value, list) else "tuple"
            return [tag, [self.encode(item) for item in value]]
        if type(value).__name__.startswith("Typed"):  # a constant that jax makes no array of
            value = self.jax.numpy.asarray(value)
        if getattr(value, "dtype", None) == self.jax.dtypes.float0:
            return ["float0", list(value.shape)]
        is_large = getattr(value, "size", 0) > MOST_ELEMENTS
        if isinstance(value, self.jax.core.Tracer) or is_large:
            weak = bool(getattr(value, "weak_type", False))
            return ["aval", str(value.dtype), list(value.shape), weak]
        try:
            return self.library.encode(value)
        except TypeError:
            return ["python", type(value).__name__, ""]

    def differs(self, mine: Any, theirs: Any) -> bool:
        """Whether numbers differ; where types do, nothing is replaced."""
        if not isinstance(mine, list) or mine[0] != theirs[0]:
            return False
        if mine[0] in ("tuple", "list"):
            pairs = zip(mine[1], theirs[1], strict=False)
            return any(self.differs(a, b) for a, b in pairs)
        return mine[0] == "array" and mine[1:3] == theirs[1:3] and mine[-1] != theirs[-1]

    def decoded(self, outcome: Any, own: Any) -> Any:
        """The value of an outcome; what cannot be made from one stays as it is."""
        if outcome[0] in ("tuple", "list") and type(own) in (tuple, list):
            items = [self.decoded(o, v) for o, v in zip(outcome[1], own, strict=False)]
            return type(own)(items)
        if outcome[0] != "array" or outcome[3] or not isinstance(own, self.jax.Array):
            return own
        from base64 import b64decode

        data = np.frombuffer(b64decode(outcome[-1]), dtype_named(outcome[1]))
        return self.jax.numpy.asarray(data.reshape(outcome[2]))

    def noisy(self, tree: Any) -> Any:
        """A tree in which every inexact number is moved by a unit in the last place, or not."""
        if self.noise is None:
            return tree
        return self.jax.tree.map(self._moved, tree)

    def moving(self, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The function, with its result moved by noise."""
        return lambda x: self.noisy(f(x))

    def _moved(self, x: Any) -> Any:
        jax, jnp = self.jax, self.jax.numpy
        if not isinstance(x, jax.Array) or not jnp.issubdtype(x.dtype, jnp.inexact):
            return x
        assert self.noise is not None
        eps = float(jnp.finfo(x.dtype).eps)
        if getattr(x, "weak_type", False) or x.dtype.itemsize == 1:
            return x * (1 + eps * self.noise.choice([-1, 0, 1]))
        signs = np.array(self.noise.choices([-1, -1, 0, 1, 1], k=int(np.prod(x.shape)))).reshape(
            x.shape
        )
        real = jnp.finfo(x.dtype).dtype
        return x * jnp.asarray(1 + eps * signs, real).astype(x.dtype)


def serve(name: str) -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))
    from evaluate import Library

    session = Session(Library(name))
    counted = None
    if name == "perspex" and os.environ.get("FUZZ_COVERAGE"):
        sys.path.insert(0, str(Path(__file__).parent))
        import coverage

        counted = coverage.count_rules()
    answers.write('"ready"\n')
    answers.flush()
    for line in sys.stdin:
        outcomes = session.run(json.loads(line))
        answer = {"outcomes": outcomes}
        if counted is not None:
            answer["rules"] = counted.news()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    del sys.path[0]  # our modules have names that others have, too
    serve(sys.argv[1])
