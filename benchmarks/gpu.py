"""Perspex against real `jax` on one device, and against what that device can do at best.

    python benchmarks/gpu.py [--small] [--rounds 5] [--jax-python PATH] [--report build/gpu.md]
    python benchmarks/gpu.py --install     # what is missing, where a package index can be reached

Two processes, one with either library, compute the same programs on the default device and are
asked in turn, so that they meet the same machine; a row has the medians of the rounds. The limits
are measured by jax alone: bytes that a sum moves in a second, and operations of a large product in
each dtype. `--small` takes sizes for a processor: a rehearsal, whose figures say nothing.

Each library has its own half of a GPU's memory, as neither allocates it beforehand.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "build" / "device-packages"
TARGET = 1.0
_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
# Seconds of one measurement, and the most runs in it.
_SECONDS, _MOST_RUNS = 0.2, 2_000


@dataclass(frozen=True)
class Sizes:
    """How large the programs are."""

    rows: int  # of square matrices
    numbers: int  # of vectors
    tokens: int  # of attention
    decomposed: int  # rows of matrices that are factored

    @classmethod
    def of(cls, small: bool) -> Sizes:
        return cls(256, 1 << 16, 64, 32) if small else cls(8192, 1 << 28, 2048, 1024)


@dataclass(frozen=True)
class Program:
    """A function of a library's arrays, its arguments, and what it needs of the device.

    `kind` is the limit that holds for it: a dtype of products, `bytes`, or nothing.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    work: float = 0.0
    kind: str = ""
    is_jitted: bool = True


def attention(jnp: Any) -> Callable[..., Any]:
    """Softmax attention written out, as users write it."""

    def f(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32(np.sqrt(q.shape[-1]))
        scores = scores - scores.max(-1, keepdims=True)
        weights = jnp.exp(scores)
        weights = weights / weights.sum(-1, keepdims=True)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v)

    return f


def programs(library: str, sizes: Sizes) -> dict[str, Program]:
    """What is measured, by its name."""
    jax = importlib.import_module(library)
    jnp = importlib.import_module(library + ".numpy")
    rng = np.random.default_rng(0)

    def normal(*shape: int, dtype: str = "float32") -> Any:
        # Few numbers from the host, repeated on the device.
        seed = jnp.asarray(rng.normal(size=1 << 12).astype(np.float32))
        return jnp.resize(seed, shape).astype(dtype)

    n, m, d = sizes.rows, sizes.numbers, sizes.decomposed
    a, b = normal(n, n), normal(n, n)
    q = normal(4, sizes.tokens, 8, 64, dtype="bfloat16")
    attend = attention(jnp)
    loss = jax.grad(lambda *qkv: attend(*qkv).astype("float32").sum(), argnums=(0, 1, 2))
    flops = 4.0 * 4 * 8 * 64 * sizes.tokens**2
    x = normal(m)
    spd = normal(d, d)
    spd = spd @ spd.T + d * jnp.eye(d)
    key = jax.random.key(0)
    images, filters = normal(n // 256, 56, 56, 64), normal(3, 3, 64, 64)
    places = jnp.asarray(rng.integers(0, m // 64, m // 64))
    layers = normal(24, n // 16, n // 16) / n

    def convolution(x: Any, w: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)

    def deep(x: Any, layers: Any) -> Any:
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, layers)[0].sum()

    few = jnp.arange(8.0)
    host = np.ones(m // 4, np.float32)
    highest = functools.partial(jnp.matmul, precision="highest")
    product = 2.0 * n**3
    return {
        "matmul bf16": Program(
            jnp.matmul, (a.astype("bfloat16"), b.astype("bfloat16")), product, "bfloat16"
        ),
        "matmul f32, default": Program(jnp.matmul, (a, b), product, "float32 default"),
        "matmul f32, highest": Program(highest, (a, b), product, "float32 highest"),
        "attention forward": Program(attend, (q, q, q), flops, "bfloat16"),
        "attention backward": Program(loss, (q, q, q), 3.5 * flops, "bfloat16"),
        "sum": Program(jnp.sum, (x,), 4.0 * m, "bytes"),
        "softmax": Program(jax.nn.softmax, (x.reshape(-1, 1 << 10),), 8.0 * m, "bytes"),
        "cumsum": Program(jnp.cumsum, (x,), 8.0 * m, "bytes"),
        "sort": Program(jnp.sort, (x[: m // 8],)),
        "argsort": Program(jnp.argsort, (x[: m // 8],)),
        "top_k": Program(lambda x: jax.lax.top_k(x, 8), (x[: m // 8].reshape(-1, 1 << 12),)),
        "gather": Program(lambda x, i: x[i], (x, places)),
        "scatter add": Program(lambda x, i: x.at[i].add(1.0), (x[: m // 64], places)),
        "convolution, gradients": Program(
            jax.grad(lambda x, w: convolution(x, w).sum(), (0, 1)), (images, filters)
        ),
        "fft": Program(jnp.fft.fft, (x[: m // 16].reshape(-1, 1 << 12),)),
        "scan, gradients": Program(jax.grad(deep, 1), (a[: n // 16, : n // 16], layers)),
        "random bits": Program(lambda k: jax.random.bits(k, (m // 4,)), (key,), 1.0 * m, "bytes"),
        "random normal": Program(
            lambda k: jax.random.normal(k, (m // 4,)), (key,), 1.0 * m, "bytes"
        ),
        "cholesky": Program(jnp.linalg.cholesky, (spd,)),
        "eigh": Program(jnp.linalg.eigh, (spd,)),
        "dispatch x + y": Program(lambda x, y: x + y, (few, few), is_jitted=False),
        "dispatch sin(x)": Program(jnp.sin, (few,), is_jitted=False),
        "dispatch jit": Program(lambda x: x * 2 + 1, (few,)),
        "host to device": Program(jax.device_put, (host,), is_jitted=False),
        "device to host": Program(lambda x: np.asarray(x + 0), (x[: m // 4],), is_jitted=False),
    }


def per_run(call: Callable[[], Any], finish: Callable[[Any], Any]) -> float:
    """Seconds of one call of many that are queued one after the other."""
    started = time.perf_counter()
    finish(call())
    count = int(_SECONDS / max(time.perf_counter() - started, 1e-6))
    count = max(1, min(_MOST_RUNS, count))
    started = time.perf_counter()
    for _ in range(count):
        result = call()
    finish(result)
    return (time.perf_counter() - started) / count


def serve(library: str, sizes: Sizes) -> None:
    """Say which device computes; then time the program that each line names, or print its work."""
    jax = importlib.import_module(library)
    known = programs(library, sizes)
    device = jax.devices()[0]
    about = {
        "device": device.device_kind,
        "platform": device.client.platform,
        "version": jax.__version__,
        "jaxlib": importlib.import_module("jaxlib.version").__version__,
        "programs": {name: (one.work, one.kind) for name, one in known.items()},
    }
    print(json.dumps(about), flush=True)
    calls: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in calls:
                one = known[name]
                function = jax.jit(one.function) if one.is_jitted else one.function
                calls[name] = functools.partial(function, *one.arguments)
                jax.block_until_ready(calls[name]())
            told: Any = per_run(calls[name], jax.block_until_ready)
        except Exception as error:  # a row says so, and the others are measured
            told = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        print(json.dumps(told), flush=True)


class Library:
    """A process that computes with one library."""

    def __init__(self, python: str, library: str, small: bool) -> None:
        environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
        environment.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", ".45")
        extra = [str(ROOT / "core")] if library == "perspex" else []
        path = [*extra, os.environ.get("PYTHONPATH", ""), str(PACKAGES)]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        command = [python, __file__, "--serve", library, *["--small"] * small]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=environment
        )
        self.about: dict[str, Any] = self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process ended with status {self.process.wait()}; see above")
        return json.loads(line)

    def ask(self, name: str) -> Any:
        """The seconds of a run of that program, or the text of an error."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self.process.stdin is not None
        with self.process:  # closes the pipes and waits
            self.process.stdin.close()


def compare(
    ours: Library, theirs: Library, rounds: int, until: float, only: str = ""
) -> dict[str, list[Any]]:
    """The seconds of both libraries, by program, asked in turn; ends after `until`."""
    names = [name for name in ours.about["programs"] if only in name]
    found: dict[str, list[Any]] = {name: [[], []] for name in names}
    for turn in range(rounds):
        for name, (mine, other) in found.items():
            if turn and time.monotonic() > until:
                return found
            pair = [(mine, ours), (other, theirs)]
            for kept, library in pair if turn % 2 else reversed(pair):
                kept.append(library.ask(name))
    return found


def limits(found: dict[str, list[Any]], work: dict[str, Any]) -> dict[str, float]:
    """What the device can do in a second at best, by kind: the best that either library reached."""
    best: dict[str, float] = {}
    for name, both in found.items():
        amount, kind = work[name]
        times = [t for one in both for t in one if isinstance(t, float)]
        if kind and times:
            best[kind] = max(best.get(kind, 0.0), amount / min(times))
    return best


def written(
    found: dict[str, list[Any]], ours: dict[str, Any], theirs: dict[str, Any], note: str
) -> str:
    """The report."""
    work = ours["programs"]
    best = limits(found, work)
    lines = [
        f"# Perspex on {ours['device']} ({ours['platform']})",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Perspex {ours['version']} on jaxlib "
        f"{ours['jaxlib']}, jax {theirs['version']}, Python {platform.python_version()}. {note}",
        "",
        "| program | Perspex | jax | ratio | of the limit |",
        "|---|---|---|---|---|",
    ]
    slower = []
    for name, both in found.items():
        texts = [t for one in both for t in one if not isinstance(t, float)]
        if texts or not all(both):
            lines.append(f"| {name} | {texts[0] if texts else 'not measured'} | | | |")
            continue
        mine, other = map(statistics.median, both)
        ratio = statistics.median(m / o for m, o in zip(*both, strict=False))
        amount, kind = work[name]
        part = f"{100 * amount / mine / best[kind]:.0f} % of {kind}" if kind else ""
        lines.append(f"| {name} | {_time(mine)} | {_time(other)} | {ratio:.2f} | {part} |")
        if round(ratio, 2) > TARGET:
            slower.append(name)
    lines += ["", "Limits, the best that was measured here:", ""]
    for kind, rate in best.items():
        unit = "GB/s" if kind == "bytes" else "GFLOP/s"
        lines.append(f"* {kind}: {rate / 1e9:,.4g} {unit}")
    lines += ["", f"Above {TARGET}: {', '.join(slower) or 'none'}."]
    return "\n".join(lines) + "\n"


def _time(seconds: float) -> str:
    unit, size = next((pair for pair in _UNITS if seconds >= pair[1]), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def lacking(python: str, modules: list[str]) -> list[str]:
    """Those modules that a Python does not have."""
    code = "import importlib.util, sys; print(*[m for m in sys.argv[1:]"
    code += " if importlib.util.find_spec(m) is None])"
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(PACKAGES)])
    ran = subprocess.run(
        [python, "-c", code, *modules],
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=path),
        check=True,
    )
    return ran.stdout.split()


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status, 2 where something is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--small", action="store_true", help="a rehearsal with small sizes")
    parser.add_argument("--only", default="", help="programs whose names contain this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=5.0, help="begin nothing after these")
    parser.add_argument("--python", default=sys.executable, help="which computes with Perspex")
    parser.add_argument("--jax-python", default=sys.executable, help="which computes with jax")
    parser.add_argument("--install", action="store_true", help="have pip install what is missing")
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "gpu.md")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options.serve, Sizes.of(options.small))
        return 0
    missing = lacking(options.jax_python, ["jax"]) + lacking(
        options.python, ["jaxlib", "opt_einsum"]
    )
    if missing and options.install:
        jax = "jax[cuda13]>=0.10.2,<0.13" if os.path.exists("/dev/nvidiactl") else "jax<0.13"
        pip = [options.python, "-m", "pip", "install", "--quiet", "--target", str(PACKAGES)]
        subprocess.run([*pip, jax, "opt_einsum"])
        missing = lacking(options.jax_python, ["jax"])
    if missing:
        print(
            f"missing: {', '.join(missing)}. --install has pip install it, and --jax-python names "
            "a Python that has jax",
            file=sys.stderr,
        )
        return 2
    until = time.monotonic() + 60 * options.minutes
    ours = Library(options.python, "perspex", options.small)
    theirs = Library(options.jax_python, "jax", options.small)
    try:
        found = compare(ours, theirs, options.rounds, until, options.only)
    finally:
        ours.close()
        theirs.close()
    note = "A rehearsal with small sizes." if options.small else ""
    if ours.about["platform"] != theirs.about["platform"]:
        note += f" jax computed on {theirs.about['platform']}, so the ratios say nothing."
    text = written(found, ours.about, theirs.about, note)
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(text, encoding="utf-8")
    print(text + f"\nwritten to {options.report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
