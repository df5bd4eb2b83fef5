"""What all that the notebook tells costs: the Perspex kernel against the bare core in IPython.

    python benchmarks/overhead.py [--rounds 60] [--cells 6]

Two kernels run the same cells, in turn: IPython's with the core alone (`bare`), and Perspex's. The
latter is measured as it is (`on`), with what it does around cells left out and the streams of
IPython's kernel (`off`), and with the extension unloaded (`none`). Each round begins with the
notebook's first cells, so that what is watched is what a notebook has: jitted functions that
captured arrays, lists and NumPy arrays, and some sixty names.

Machines become faster and slower by the minute, and each run of the notebook lays its memory out
anew, which alone moves 10,000 calls by some per cent. So `on` and `off` take turns cell by cell in
the same run of the notebook, and show 0.1 %; against `none` it is seen whether calls themselves
became slower, as far as the noise lets that be seen.

`wall` goes from the request to the reply; `processor` is what all threads of the kernel used until
it was idle. What is added is compared within each round; the median of the rounds is told, with its
standard error.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from jupyter_client.blocking.client import BlockingKernelClient
from restart import TIMEOUT, ask, open_kernel

CALLS = 10_000
NOTEBOOK = """
import numpy as np
import perspex, perspex.numpy as jnp
from perspex import random

perspex.clear_caches()
rate, table, sizes = 0.1, np.linspace(0.0, 1.0, 5_000), [1, 2, 3]
options = {"decay": 0.9, "layers": [16, 16]}
for i in range(20):
    globals()[f"number_{i}"] = float(i)
    globals()[f"array_{i}"] = jnp.full(3, float(i))

def helper(x):
    return x * rate + table[: sizes[0]].sum()

@perspex.jit
def step(x):
    return helper(x) * options["decay"]

others = [perspex.jit(lambda x, scale=scale: helper(x) * scale) for scale in range(4)]
x = jnp.ones(3)
for f in [step, *others]:
    f(x).block_until_ready()
"""
CELLS = {"empty": "pass", "calls": f"for i in range({CALLS}):\n    step(x)"}
# The most that may be added: seconds to an empty cell, and a part of a cell of calls.
MOST_EMPTY, MOST_CALLS = 1e-3, 0.01
LOAD, UNLOAD = "%load_ext perspex_magics", "%unload_ext perspex_magics"
# Run without a word of IPython's about a cell, so that none is begun and never ended.
OFF = """
import ipykernel.iostream, perspex_kernel.streams
_shell = get_ipython()
_lists = [*_shell.events.callbacks.values()]
_lists += [_shell.input_transformers_cleanup, _shell.input_transformers_post]
_shell.left_out = [(each, each.copy()) for each in _lists]
for _each in _lists:
    _each[:] = [
        one for one in _each
        if not str(getattr(one, "__module__", type(one).__module__)).startswith("perspex_")
    ]
_shell.hook_left_out = vars(_shell).pop("transform_ast")
_shell.flush_left_out = perspex_kernel.streams.Stream.flush
perspex_kernel.streams.Stream.flush = ipykernel.iostream.OutStream.flush
_shell.kernel._check_streams = lambda: None
del _shell, _lists, _each
"""
ON = """
for _each, _all in get_ipython().left_out:
    _each[:] = _all
get_ipython().transform_ast = get_ipython().hook_left_out
perspex_kernel.streams.Stream.flush = get_ipython().flush_left_out
del get_ipython().kernel._check_streams
del _each, _all
"""


@dataclass(frozen=True)
class Cost:
    """Of one cell, in seconds."""

    wall: float
    processor: float


class Kernel:
    """A kernel to measure cells in."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client
        ask(client, "import os as _os")
        self.process = int(self._evaluate("_os.getpid()"))

    def _evaluate(self, expression: str) -> str:
        return ask(self.client, "", {"counted": expression})

    def begin(self, *cells: str) -> None:
        """Run what comes before the cells that are measured."""
        for cell in cells:
            ask(self.client, cell)

    def switch(self, code: str) -> None:
        """Run something that is no cell."""
        self.client.execute(code, silent=True)
        if self.client.get_shell_msg(timeout=TIMEOUT)["content"]["status"] != "ok":
            raise RuntimeError(f"this failed:\n{code}")

    def measure(self, cell: str) -> Cost:
        """Run a cell and wait until the kernel is idle."""
        used, start = self._processor(), time.perf_counter()
        asked = self.client.execute(cell)
        reply = self.client.get_shell_msg(timeout=TIMEOUT)
        wall = time.perf_counter() - start
        if reply["content"]["status"] != "ok":
            raise RuntimeError("\n".join(reply["content"]["traceback"]))
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            is_idle = message["content"].get("execution_state") == "idle"
            if is_idle and message["parent_header"].get("msg_id") == asked:
                return Cost(wall, self._processor() - used)

    def _processor(self) -> float:
        """Nanoseconds that the system has counted for each thread, added up; 0 if not on Linux."""
        total = 0
        for task in Path(f"/proc/{self.process}/task").glob("*/schedstat"):
            total += int(task.read_text().split()[0])
        return total / 1e9


@contextmanager
def kernels(directory: Path) -> Iterator[dict[str, Kernel]]:
    """The two kernels: `jax` names IPython's in `restart`."""
    with ExitStack() as stack:
        found = {}
        for library in ("perspex", "jax"):
            cache = directory / library / "cache"
            cache.mkdir(parents=True, mode=0o700)
            opened = open_kernel(library, sys.executable, cache)
            found[library] = Kernel(stack.enter_context(opened)[1])
        yield found


Found = dict[tuple[str, str], list[list[Cost]]]


def measure(rounds: int, cells: int) -> Found:
    """By state and cell what the cells cost, in each round."""
    found: Found = defaultdict(list)
    with tempfile.TemporaryDirectory() as directory, kernels(Path(directory)) as running:
        bare, ours = running["jax"], running["perspex"]
        for _ in range(rounds):
            for state in random.sample(("bare", "none", "on"), 3):
                one = bare if state == "bare" else ours
                one.begin(*{"none": [UNLOAD], "on": [LOAD]}.get(state, []), NOTEBOOK)
                for name, cell in CELLS.items():
                    one.measure(cell)  # the first after others is slower
                    costs: dict[str, list[Cost]] = defaultdict(list)
                    for _ in range(cells):
                        for each in random.sample(("off", "on"), 2) if state == "on" else [state]:
                            one.switch(OFF if each == "off" else "pass")
                            costs[each].append(one.measure(cell))
                            one.switch(ON if each == "off" else "pass")
                    for each, values in costs.items():
                        found[each, name].append(values)
    return found


def added(found: Found, name: str, what: str, base: str) -> tuple[list[float], list[float]]:
    """What `on` adds to the cells of each round, in seconds and as a part."""

    def middles(state: str) -> list[float]:
        return [statistics.median(getattr(c, what) for c in each) for each in found[state, name]]

    pairs = list(zip(middles("on"), middles(base), strict=True))
    return [on - other for on, other in pairs], [on / other - 1 for on, other in pairs]


def estimate(values: list[float]) -> tuple[float, float]:
    """The median and its standard error, as if the middle of the values were normal."""
    middle = statistics.median(values)
    spread = 1.4826 * statistics.median(abs(value - middle) for value in values)
    return middle, 1.2533 * spread / len(values) ** 0.5


def report(found: Found) -> bool:
    """Print the figures; whether the targets are met."""
    states = ("bare", "none", "off", "on")
    print(f"{'':18}" + "".join(f"{state:>14}" for state in states))
    for name in CELLS:
        for what in ("wall", "processor"):
            costs = [[getattr(c, what) for each in found[s, name] for c in each] for s in states]
            times = [1e3 * statistics.median(each) for each in costs]
            print(f"{name + ', ' + what:18}" + "".join(f"{ms:>11.3f} ms" for ms in times))
    is_met = True
    for what in ("wall", "processor"):
        empty, empty_error = estimate(added(found, "empty", what, "bare")[0])
        calls, calls_error = estimate(added(found, "calls", what, "off")[1])
        slower, slower_error = estimate(added(found, "calls", what, "none")[1])
        empty_text = f"{1e3 * empty:+.3f} ms (standard error {1e3 * empty_error:.3f})"
        calls_text = f"{100 * calls:+.2f} % (standard error {100 * calls_error:.2f})"
        for told, value, most in (
            (f"an empty cell, on against bare, {what}: {empty_text}", empty, MOST_EMPTY),
            (f"{CALLS:,} calls, on against off, {what}: {calls_text}", calls, MOST_CALLS),
        ):
            is_met &= value <= most
            print(f"{told}, target {'met' if value <= most else 'missed'}")
        text = f"{100 * slower:+.2f} % (standard error {100 * slower_error:.2f})"
        print(f"{CALLS:,} calls, on against unloaded, {what}: {text}")
    return is_met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--cells", type=int, default=6, help="of each kind, in each state")
    options = parser.parse_args()
    print(f"jaxlib {version('jaxlib')}, {os.cpu_count()} processors")
    sys.exit(not report(measure(options.rounds, options.cells)))


if __name__ == "__main__":
    main()
