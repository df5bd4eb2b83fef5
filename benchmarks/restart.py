"""Restart and run all: a notebook in a fresh kernel, and again in another one with the same cache.

    python benchmarks/restart.py [NOTEBOOK] [--jax-python PATH] [--rounds 3] [--no-jax]

Perspex runs in its own kernel, real `jax` in IPython's with its persistent cache on, for programs
of any size and compile time. Each round begins with empty caches, and the next one in the other
order. A time goes from starting the kernel to the last reply; the one in brackets leaves the start
of the kernel out. Compilations are counted by Perspex's events: what came from the cache is none.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import nbformat
from environment import ROOT, jax_python
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

NOTEBOOK = ROOT / "examples" / "working_day.ipynb"
LAUNCHERS = {"perspex": "perspex_kernel_launcher", "jax": "ipykernel_launcher"}
TIMEOUT = 300

# Of the second run: to the first, and to the second of jax.
MOST_OF_FIRST, MOST_OF_JAX = 0.35, 0.6

# A program that was not kept has no `source`, or that of the compiler.
COUNT = """
from perspex import events as _events
_built = []
_events.subscribe(
    lambda e: e.kind == "compile" and _built.append((e.data.get("source", "xla"), e.name))
)
"""
COUNTED = {"counted": "','.join(f'{source} {name}' for source, name in _built)"}


@dataclass(frozen=True)
class Run:
    """One kernel's life: seconds to its last reply, those before it was ready, and what it built.

    `processor` are the seconds of all processors, which other work on the machine disturbs less;
    `programs` are the executables, each as where it came from and its name, where that is known.
    """

    seconds: float
    starting: float
    processor: float
    programs: list[tuple[str, str]]

    @property
    def cells(self) -> float:
        """Seconds without the start of the kernel."""
        return self.seconds - self.starting

    @property
    def compiled(self) -> list[str]:
        """The programs that came from the compiler."""
        return [name for source, name in self.programs if source == "xla"]


def cells_of(path: Path) -> list[str]:
    """The code cells of a notebook."""
    notebook = nbformat.read(path, as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def surroundings(library: str, cache: Path) -> dict[str, str]:
    """The environment variables of a kernel whose programs are kept in `cache`."""
    path = os.pathsep.join(str(ROOT / part) for part in ("core", "magics", "kernel"))
    if library == "perspex":
        extra = {"PYTHONPATH": path, "PERSPEX_COMPILATION_CACHE_DIR": str(cache)}
    else:
        extra = {
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    return {**os.environ, **extra, "IPYTHONDIR": str(cache.with_name("ipython"))}


@contextmanager
def open_kernel(
    library: str, python: str, cache: Path
) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """A kernel that answers, stopped at the end."""
    specs = cache.with_name("kernels")
    (specs / library).mkdir(parents=True, exist_ok=True)
    argv = [python, "-m", LAUNCHERS[library], "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": library, "language": "python"}
    (specs / library / "kernel.json").write_text(json.dumps(spec))
    finder = KernelSpecManager(kernel_dirs=[str(specs)], ensure_native_kernel=False)
    manager = KernelManager(kernel_name=library, kernel_spec_manager=finder)
    manager.start_kernel(env=surroundings(library, cache))
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=TIMEOUT)
        yield manager, client
    finally:
        client.stop_channels()
        # Not now: what is still being written to the cache belongs to the run.
        manager.shutdown_kernel()


def run_all(library: str, python: str, cache: Path, cells: list[str]) -> Run:
    """Run the cells in a new kernel."""
    used, start = processor_seconds(), time.perf_counter()
    with open_kernel(library, python, cache) as (_, client):
        starting = time.perf_counter() - start
        if library == "perspex":
            ask(client, COUNT)
        for cell in cells:
            ask(client, cell)
        seconds = time.perf_counter() - start
        counted = ask(client, "", COUNTED) if library == "perspex" else ""
    programs = [tuple(program.split(" ", 1)) for program in counted.split(",") if program]
    return Run(seconds, starting, processor_seconds() - used, programs)


def processor_seconds() -> float:
    """What the processes that were started from here, and have ended, took."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ask(client: BlockingKernelClient, cell: str, expressions: dict[str, str] | None = None) -> str:
    """Run a cell; the text of the one expression, if there is one.

    Errors: `RuntimeError` with the cell's traceback if it fails.
    """
    reply = client.execute_interactive(
        cell,
        user_expressions=expressions,
        output_hook=lambda message: None,
        stop_on_error=True,
        timeout=TIMEOUT,
    )["content"]
    if reply["status"] != "ok":
        raise RuntimeError("\n".join([cell, *reply["traceback"]]))
    found = reply["user_expressions"].get("counted")
    return found["data"]["text/plain"].strip("'") if found else ""


def measure(pythons: dict[str, str], cells: list[str], rounds: int) -> dict[str, list[list[Run]]]:
    """By library the first and the second run of each round."""
    found: dict[str, list[list[Run]]] = {library: [] for library in pythons}
    for number in range(rounds):
        order = list(pythons.items())
        for library, python in order if number % 2 == 0 else order[::-1]:
            with tempfile.TemporaryDirectory() as directory:
                cache = Path(directory) / "cache"
                cache.mkdir(mode=0o700)
                runs = [run_all(library, python, cache, cells) for _ in range(2)]
                size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
            found[library].append(runs)
            times = ", ".join(f"{run.seconds:.2f} s" for run in runs)
            print(f"round {number + 1}, {library}: {times}; cache {size / 1e6:.1f} MB", flush=True)
    return found


def report(found: dict[str, list[list[Run]]]) -> bool:
    """Print the medians over the rounds; whether all targets are met."""

    def middle(library: str, which: int, what: str) -> float:
        return statistics.median(getattr(runs[which], what) for runs in found[library])

    print(f"\n{'':10}{'first':>18}{'second':>18}{'ratio':>8}{'processor':>20}")
    for library in found:
        first, second = (middle(library, i, "seconds") for i in (0, 1))
        bare = [middle(library, i, "cells") for i in (0, 1)]
        times = [
            f"{total:.2f} s ({part:.2f})" for total, part in zip((first, second), bare, strict=True)
        ]
        processor = ", then ".join(f"{middle(library, i, 'processor'):.1f}" for i in (0, 1))
        print(
            f"{library:10}{times[0]:>18}{times[1]:>18}{second / first:>8.2f}{processor + ' s':>20}"
        )
    again = [run.compiled for _, run in found["perspex"]]
    first_run, second_run = found["perspex"][0]
    print(
        f"compilations: {len(first_run.compiled)}, then {len(max(again, key=len))} "
        f"of {len(second_run.programs)} programs {' '.join(max(again, key=len)[:10])}"
    )
    own = middle("perspex", 1, "seconds") / middle("perspex", 0, "seconds")
    verdicts = [
        ("second run to first", own, MOST_OF_FIRST),
        ("compilations again", max(map(len, again)), 0),
    ]
    if "jax" in found:
        ratio = middle("perspex", 1, "seconds") / middle("jax", 1, "seconds")
        verdicts.append(("second run to jax's", ratio, MOST_OF_JAX))
        bare_ratio = middle("perspex", 1, "cells") / middle("jax", 1, "cells")
        print(f"second run to jax's without the start of the kernel: {bare_ratio:.2f}")
    for name, value, most in verdicts:
        print(f"{name}: {value:.2f}, target <= {most}: {'met' if value <= most else 'missed'}")
    return all(value <= most for _, value, most in verdicts)


def jax_with_kernel() -> str:
    """The interpreter of the benchmarks' own environment, with IPython's kernel in it."""
    python = jax_python()
    known = [python, "-c", "import ipykernel"]
    if subprocess.run(known, stderr=subprocess.DEVNULL).returncode:
        wanted = f"ipykernel=={version('ipykernel')}"
        subprocess.run([python, "-m", "pip", "install", "--quiet", wanted], check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("notebook", nargs="?", type=Path, default=NOTEBOOK)
    parser.add_argument("--jax-python", help="an interpreter with jax and ipykernel")
    parser.add_argument("--no-jax", action="store_true", help="measure Perspex alone")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    pythons = {"perspex": sys.executable}
    if not options.no_jax:
        pythons["jax"] = options.jax_python or jax_with_kernel()
    cells = cells_of(options.notebook)
    print(f"{options.notebook.name}: {len(cells)} cells, jaxlib {version('jaxlib')}")
    sys.exit(not report(measure(pythons, cells, options.rounds)))


if __name__ == "__main__":
    main()
