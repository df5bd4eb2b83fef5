"""Weak types of all public functions: one table, run under Perspex and under real JAX.

    PYTHONPATH=core:tests PYTHON_WITH_PERSPEX -m fuzz.weak_types perspex ours.json
    PYTHONPATH=tests PYTHON_WITH_JAX -m fuzz.weak_types jax theirs.json
    python -m fuzz.weak_types compare ours.json theirs.json

A probe is a public function, its arguments (Python scalars, weak and strong arrays) and a way to
run it: `eager`, `jit`, `grad`, `vmap`. The outcome is dtype, weak type and shape of each
result, or an error with its types. `compare` prints what differs; functions that only one library
has are counted apart. Errors differ where `except` with the type of JAX's does not catch ours.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MODULES = ("numpy", "numpy.linalg", "numpy.fft", "lax", "nn", "scipy.special", "scipy.linalg",
           "scipy.stats", "scipy.stats.norm", "scipy.stats.beta", "scipy.stats.gamma",
           "scipy.stats.poisson", "scipy.stats.expon", "scipy.stats.laplace", "scipy.stats.t",
           "scipy.stats.cauchy", "scipy.stats.uniform", "scipy.stats.logistic",
           "scipy.stats.bernoulli", "scipy.stats.chi2", "scipy.stats.pareto",
           "scipy.stats.binom", "scipy.stats.nbinom", "scipy.stats.geom",
           "scipy.stats.gumbel_l", "scipy.stats.gumbel_r", "scipy.stats.vonmises",
           "scipy.stats.truncnorm", "scipy.stats.wrapcauchy", "scipy.stats.betabinom")  # fmt: skip
# What has effects, what reads files, and types.
LEFT_OUT = {"save", "savez", "load", "fromfile", "from_dlpack", "printoptions", "get_printoptions",
            "set_printoptions", "infeed", "outfeed", "custom_root", "Array", "ndarray"}  # fmt: skip
RAISES = "raises"
KINDS = ("True", "2", "0.5", "1j", "wi", "wf", "wf3", "wi3", "f3", "i3", "h3", "f", "i", "n3", "b3")
FEW = ("2", "0.5", "wf", "wf3", "f3", "i3", "h3")
MODES = ("eager", "jit", "grad", "vmap")
# What differs in the modes `jit` and `grad`, and why.
MEANT = {
    "lax.create_token": "a token is a boolean here, which any function may take",
    "lax.random_gamma_grad": "jax drops the weak type of one operand with axes in its formula",
    "nn.celu": "the weak type of a cotangent is that of jax's order of products",
    "nn.sparse_plus": "the weak type of a cotangent is that of jax's order of products",
    "nn.squareplus": "the weak type of a cotangent is that of jax's order of products",
    "scipy.stats.mode": "the mode of a scalar is that scalar",
    "scipy.linalg.fiedler_companion": "the cotangent of a coefficient that has no part is zero",
}


def values(jnp: Any, lax: Any) -> dict[str, Any]:
    """The arguments by their names."""
    import numpy as np

    weak_float, weak_int = jnp.asarray(0.5), jnp.asarray(2)
    return {
        "True": True, "2": 2, "0.5": 0.5, "1j": 1j, "wi": weak_int, "wf": weak_float,
        "wf3": lax.broadcast(weak_float, (3,)), "wi3": lax.broadcast(weak_int, (3,)),
        "f3": jnp.array([0.25, 0.5, 0.75], "float32"), "i3": jnp.array([1, 2, 3], "int32"),
        "h3": jnp.array([0.25, 0.5, 0.75], "float16"), "f": jnp.float32(0.5), "i": jnp.int32(2),
        "n3": np.array([0.25, 0.5, 0.75], "float32"), "b3": jnp.array([True, False, True]),
    }  # fmt: skip


def probes(name: str, function: Any) -> Iterator[tuple[str, ...]]:
    """The arguments to try: as many as the function needs, and one more."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = []  # type: ignore[assignment]
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = sum(p.default is p.empty and p.kind in places for p in parameters)
    needed = max(1, min(needed, 3))
    del name
    if needed == 1:
        yield from ((k,) for k in KINDS)
        yield from ((k, k2) for k in ("wf3", "f3", "i3") for k2 in ("0.5", "2"))
    elif needed == 2:
        yield from ((a, b) for a in FEW for b in FEW)
        yield from (("True", "True"), ("wi", "wi3"), ("wi3", "h3"), ("n3", "0.5"), ("b3", "2"))
    else:
        triples = ("0.5", "wf3", "f3", "h3", "2")
        yield from ((a, b, c) for a in triples for b in triples[:3] for c in triples[:3])


def told(jax: Any, value: Any) -> list[str]:
    """Dtype, weak type and shape of each leaf."""
    out = []
    for leaf in jax.tree.leaves(value):
        weak = getattr(getattr(leaf, "aval", leaf), "weak_type", None)
        if hasattr(leaf, "dtype"):
            out.append(f"{leaf.dtype}{'*' if weak else ''}{list(leaf.shape)}")
        else:
            out.append(type(leaf).__name__)
    return out


def outcome(jax: Any, mode: str, function: Callable[..., Any], args: list[Any]) -> list[str]:
    """What one probe gives."""
    jnp = jax.numpy

    def total(*xs: Any) -> Any:
        leaves = [x for x in jax.tree.leaves(function(*xs)) if hasattr(x, "dtype")]
        return sum((jnp.real(x).sum() for x in leaves), 0.0)

    if mode == "eager":
        return told(jax, function(*args))
    if mode == "jit":
        return told(jax, [v.aval for v in jax.make_jaxpr(function)(*args).jaxpr.outvars])
    if mode == "grad":
        floating = [i for i, a in enumerate(args)
                    if isinstance(a, float) or "float" in str(getattr(a, "dtype", ""))]  # fmt: skip
        if not floating:
            return []
        made = jax.make_jaxpr(jax.grad(total, tuple(floating)))(*args)
        return told(jax, [v.aval for v in made.jaxpr.outvars])
    axes = [0 if getattr(a, "shape", ()) else None for a in args]
    if all(a is None for a in axes):
        return []
    made = jax.make_jaxpr(jax.vmap(function, axes))(*args)
    return told(jax, [v.aval for v in made.jaxpr.outvars])


def failed(error: Exception) -> list[str]:
    """That an error was raised, the types under which it can be caught, and what it says."""
    kinds = [kind.__name__ for kind in type(error).__mro__[: -len(Exception.__mro__)]]
    return [RAISES, " ".join(kinds), str(error).split("\n", 1)[0][:160]]


def caught(got: list[str], want: list[str]) -> bool:
    """Whether `except` with the type of the one error catches the other."""
    return want[1].split(" ", 1)[0] in got[1].split()


def run(library: str, path: Path, modes: tuple[str, ...]) -> None:
    """Write the outcomes of all probes."""
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if library == "perspex":
        importlib.import_module("perspex.as_jax")
    jax = importlib.import_module("jax")
    importlib.import_module("jax.scipy.stats")
    out: dict[str, list[str]] = {}
    with contextlib.suppress(AttributeError):
        jax.config.update("jax_compilation_cache_dir", None)
    arguments = values(jax.numpy, jax.lax)
    for module in MODULES:
        space = importlib.import_module(f"jax.{module}")
        for name in sorted(n for n in dir(space) if not n.startswith("_") and n not in LEFT_OUT):
            function = getattr(space, name)
            if not callable(function) or isinstance(function, type):
                continue
            if name.endswith(("_p", "Dimension")):
                continue
            for combination in probes(name, function):
                for mode in modes:
                    text = f"{mode} {module}.{name}({', '.join(combination)})"
                    try:
                        out[text] = outcome(
                            jax, mode, function, [arguments[k] for k in combination]
                        )
                    except Exception as error:
                        out[text] = failed(error)
        path.write_text(json.dumps(out, indent=0), encoding="utf-8")


def compare(ours: Path, theirs: Path) -> int:
    """Print what differs; returns how many."""
    got, want = (json.loads(p.read_text(encoding="utf-8")) for p in (ours, theirs))
    both = got.keys() & want.keys()
    counts: Counter[str] = Counter()
    for text in sorted(both, key=lambda t: t.split(" ", 1)[::-1]):
        if got[text] == want[text]:
            continue
        refused = [x[:1] == [RAISES] for x in (got[text], want[text])]
        if all(refused) and caught(got[text], want[text]):
            continue
        kind = {(True, True): "error type", (True, False): "we raise", (False, True): "jax raises"}
        said = kind.get((refused[0], refused[1]), "differs")
        if said == "differs" and text.split(" ", 1)[1].partition("(")[0] in MEANT:
            said = "meant"
        counts[said] += 1
        print(f"{said:10} {text}: got {got[text]} want {want[text]}")
    print(f"{len(both)} probes: {dict(counts)}; {len(got) - len(both)} only ours, "
          f"{len(want) - len(both)} only jax's")  # fmt: skip
    return counts["differs"]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "compare":
        sys.exit(compare(Path(sys.argv[2]), Path(sys.argv[3])) > 0)
    run(sys.argv[1], Path(sys.argv[2]), tuple(sys.argv[3:]) or MODES)
